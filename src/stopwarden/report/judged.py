"""What the account needs of each verdict, read out of its record without decoding the whole.

Weeks of nights are a hundred thousand verdicts, each of which holds the list of work as it was, the
wakes, the settings: three thousand characters of JSON for five small facts. So the facts are cut out
at their keys. That is exact and no guess: in JSON a quote inside a text is written with a backslash
before it, so `,"verdict":{` can only be a key. Where a fact is not where it belongs the record is
damaged; then only the row speaks, and the account says so.
May not live here: what any of it means (see `timeline`).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from stopwarden.core.record import Record
from stopwarden.wire import loads_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from stopwarden.core.events import Instant
    from stopwarden.store.port import VerdictRow


class Bare(NamedTuple):
    """A stored verdict with what the account needs of its row, as `Store.bare_verdicts` gives it."""

    id: int
    at: Instant
    session: str
    period: str
    kind: str
    rule: str
    body: str


class Judged(Record):
    """What the account needs of one verdict. Where its record is damaged only the row speaks."""

    id: int
    at: Instant
    session: str
    period: str
    kind: str
    rule: str
    block: bool = False
    look: Instant | None = None  # the nominal next look of the wake it was allowed with
    look_latest: Instant | None = None
    kept: bool = False  # that look is the keeper's
    tokens: int = 0
    unchanged_looks: int = 0  # the policy's: after so many wakes without progress an item is handed back
    readable: bool = True


LONGEST = 24  # characters of a number and what follows it
_ROW = ("id", "at", "session", "period", "kind", "rule")
_BODY = ("block", "look", "look_latest", "kept", "tokens", "unchanged_looks", "readable")


def judged(rows: Sequence[VerdictRow | Bare]) -> list[Judged]:
    """The few facts of each row, in the order given."""
    columns: dict[str, Sequence[Any]] = {name: list(map(attrgetter(name), rows)) for name in _ROW}
    facts = [_facts(row.kind == "block", row.body) for row in rows]
    columns.update(zip(_BODY, zip(*facts, strict=True), strict=False))
    return Judged.many(len(rows), columns)


def _facts(block: bool, body: str) -> tuple[bool, Instant | None, Instant | None, bool, int, int, bool]:
    """The values of `_BODY`. `block` is what the row says."""
    try:
        verdict = body.rindex(',"verdict":{"block":')
        if not body.endswith("}}"):
            raise ValueError("it ends early")
        block = body.startswith("true", verdict + 20)
        wake = body.index(',"wake":', verdict) + 8
        found = {} if body.startswith("null", wake) else loads_at(body, wake)
        return (
            block,
            _instant(found.get("nominal")),
            _instant(found.get("latest")),
            found.get("id") == "kept",
            _number(body, '"tokens_used":', verdict),
            _number(body, '"unchanged_looks":', verdict),
            True,
        )
    except (ValueError, TypeError, AttributeError):
        return block, None, None, False, 0, 0, False


def _instant(value: object) -> Instant | None:
    if value is not None and not isinstance(value, int):
        raise ValueError("no instant where one belongs")
    return value


def _number(body: str, key: str, before: int) -> int:
    """The whole number that stands at the last such key before a place. Raises ValueError where there is none."""
    begin = body.rindex(key, 0, before) + len(key)
    digits = body[begin : begin + LONGEST].partition(",")[0].partition("}")[0]
    if not digits.isdecimal():
        raise ValueError("no whole number where one belongs")
    return int(digits)
