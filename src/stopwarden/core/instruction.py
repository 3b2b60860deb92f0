"""The guard's own words to the model, and how they are known again.

The instruction is one text: a marker, the count, what to do. It is known again by its exact shape, not
by its beginning, so a person who quotes the marker is not taken for us. It never holds a word of the
list itself: work text is untrusted. What becomes of it in history is `core/continuation`'s matter.
"""

from __future__ import annotations

from stopwarden.core.turn_events import Part

MARKER = "[Todo Stop Guard] "
GO_ON = (
    " of the items on your todo list are not finished. Take up the next one now and do not ask whether to go on. "
    "If you need a decision or a permission, use the tool that asks for it. "
    "If something outside this session holds you up, say exactly what it is."
)
LAST_TIME = (
    " This is the last time you are continued automatically: finish the items, or bring the list up to date, "
    "or report how far you got and what is in the way."
)


def instruction(unfinished: int, attempt: int, cap: int) -> Part:
    """What the guard says to the model at this attempt; the last attempt says that it is the last."""
    text = f"{MARKER}{unfinished}{GO_ON}{LAST_TIME if attempt >= cap else ''}"
    return Part(kind="guard", id=f"guard-{attempt}", text=text)


def is_ours(text: str) -> bool:
    """Whether a text is exactly an instruction of ours: marker, a plain positive number, known words."""
    if not text.startswith(MARKER):
        return False
    count, said, rest = text[len(MARKER) :].partition(GO_ON)
    plain = count.isascii() and count.isdigit() and not count.startswith("0")
    return plain and bool(said) and rest in ("", LAST_TIME)
