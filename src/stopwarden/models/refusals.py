"""What a provider's refusal means for the session: wait, shorten, or ask the person."""

from __future__ import annotations

STATUSES = {401: "access", 402: "access", 403: "access", 408: "network", 413: "too_long", 429: "rate_limit"}
# Providers say "too long" with a plain 400. In each: words of one provider's message or error code.
TOO_LONG = (
    "prompt is too long",
    "context_length_exceeded",
    "maximum context length",
    "exceeds the maximum number of tokens",
    "input length and `max_tokens` exceed",
)


def why_refused(status: int, said: str) -> str:
    """rate_limit, overloaded, too_long, access, network, request or error, from an HTTP status and its message."""
    lower = said.lower()
    if status in (400, 413, 422) and any(words in lower for words in TOO_LONG):
        return "too_long"
    if "overloaded" in lower or status in (503, 529):
        return "overloaded"
    if status in STATUSES:
        return STATUSES[status]
    return "request" if 400 <= status < 500 else "error"
