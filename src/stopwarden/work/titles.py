"""The title of a piece of work as one line that can be shown anywhere.

Work text is written by agents and strangers: it may hold line breaks, terminal escapes, text
that reads backwards, invisible characters, half a character, or fifty kilobytes. A title is data:
here it loses all that, and nothing else.
May not live here: quoting for a model (`core.reason`), the grammar of lists (`work.checklist`).
"""

from __future__ import annotations

from stopwarden.core.bounds import TITLE_MAX

_JOINERS = "\u200c\u200d"  # needed inside words of some scripts, and inside emoji
_UNSEEN = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),  # zero width, direction marks
    (0x202A, 0x202E),  # direction overrides
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE007F),  # tags: text that nobody sees and a model reads
)


def one_line(text: str, limit: int = TITLE_MAX) -> str:
    """The text on one line of at most `limit` characters, without control or unseen characters."""
    text = text.strip()
    if len(text) > 4 * limit:
        text = text[: 4 * limit]
    if not text.isprintable():
        text = "".join([char if char.isprintable() else _instead(char) for char in text])
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _instead(char: str) -> str:
    code = ord(char)
    if char in _JOINERS:
        return char
    if code < 0xA0 or char.isspace():
        return " "
    if any(first <= code <= last for first, last in _UNSEEN):
        return ""
    return "\ufffd"
