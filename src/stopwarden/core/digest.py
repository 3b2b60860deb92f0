"""A short name for a text, by which it is known again. No secret: who has the text has the name.

BLAKE2 from its own small module: `hashlib` loads OpenSSL, which costs the hook a third of an
interpreter's start for one digest.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # pragma: no cover - another Python
    from hashlib import blake2b


def digest(text: str, size: int = 16) -> str:
    """The digest in hexadecimal, two digits a byte of `size`. Any text has one, lone surrogates included."""
    return str(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest())
