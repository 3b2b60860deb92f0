"""Reading what a host wrote on standard input, whatever it is.

A payload may be empty, clipped (hosts clip long strings and leave lone surrogates), of another
encoding, or no JSON at all. What can be understood is used; the rest is said to be damaged. The
event itself is never in doubt: it is an argument of the command that `install` wrote.
"""

from __future__ import annotations

from stopwarden import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Fields worth finding in a payload that does not parse: all short strings near its beginning.
FINDABLE = ("session_id", "prompt_id", "cwd", "permission_mode", "agent_id", "tool_name", "error", "source", "reason")


def read_payload(raw: bytes, limit: int) -> tuple[dict[str, Any], bool]:
    """The payload's fields, and whether it was damaged (not one whole JSON object within the limit)."""
    text = raw[:limit].decode(_encoding(raw), "replace")
    if len(raw) <= limit:
        try:
            value = wire.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value, False
    return find_fields(text), True


def _encoding(raw: bytes) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return "utf-8"  # `wire.loads` leaves a BOM out, and its codec would have to be loaded


def find_fields(text: str) -> dict[str, Any]:
    """The findable fields of a text that is no whole JSON object; the first place of each counts."""
    found: dict[str, Any] = {}
    for name in FINDABLE:
        place = text.find(f'"{name}"')
        if place < 0:
            continue
        rest = text[place + len(name) + 2 : place + len(name) + 5000].lstrip()
        if not rest.startswith(":"):
            continue
        rest = rest[1:].lstrip()
        end = _string_end(rest)
        if end:
            try:
                found[name] = wire.loads(rest[:end])
            except ValueError:
                continue
    return found


def _string_end(text: str) -> int:
    """The length of the JSON string the text begins with, or 0."""
    if not text.startswith('"'):
        return 0
    place = 1
    while place < len(text):
        if text[place] == "\\":
            place += 2
        elif text[place] == '"':
            return place + 1
        else:
            place += 1
    return 0
