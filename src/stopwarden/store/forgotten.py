"""What the record says was forgotten: lines of kind "forgotten", which nothing takes away again."""

from __future__ import annotations

from stopwarden.core.record import Record
from stopwarden.wire import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import Instant

KIND = "forgotten"
_COUNTS = ("nights", "verdicts", "lines", "questions", "items", "sessions")


class Forgotten(Record):
    """What was forgotten in one go, and when. No word of what it held."""

    at: Instant  # when it was forgotten
    how: str = ""  # as the person chose it: "older than 90d"
    since: Instant | None = None  # the first instant of what was forgotten, None where that is not known
    until: Instant | None = None  # the last
    nights: int = 0
    verdicts: int = 0
    lines: int = 0
    questions: int = 0
    items: int = 0  # finished ones of the ledger
    sessions: int = 0  # those of which all was forgotten
    periods: tuple[str, ...] = ()  # the ids of nights that went whole


def as_text(told: Forgotten) -> str:
    """The line's text."""
    return dumps({name: value for name, value in told.as_dict().items() if name != "at"})


def read_forgotten(at: Instant, text: str) -> Forgotten:
    """What a line says; of one that cannot be read only when it was written."""
    try:
        told = loads(text)
        return Forgotten(
            at=at,
            how=str(told.get("how", "")),
            since=None if told.get("since") is None else int(told["since"]),
            until=None if told.get("until") is None else int(told["until"]),
            periods=tuple(str(one) for one in told.get("periods", ())),
            **{name: int(told.get(name, 0)) for name in _COUNTS},
        )
    except (ValueError, TypeError, AttributeError):
        return Forgotten(at=at)
