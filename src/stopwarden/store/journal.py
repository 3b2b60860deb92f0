"""One verdict with everything it was reached by, as one line of JSON, and back again exactly.

`explain` and `replay` judge a recorded stop again, so the values that come back must be the
values that went in: every field of every record is written, never only those that differ from
today's defaults. A tuple of records is a table of columns (ten thousand items must cost the hook
few milliseconds, and most of their columns are one value throughout). A column, or a tuple of plain
values, of more than `INLINE` entries is kept once by its digest, because most of a long list of
work is the same from stop to stop; texts are kept as lines, which needs no JSON. The machine's zone
is kept as what it answered from the oldest instant that a judge may look back to until 400 days
after the stop.

Runs on the hook's path: nothing is imported but the core and `wire`. May not live here: message
text (there is none in a `Stop`), `Verdict.after` (it is in the session's row), any decision.
"""

from __future__ import annotations

from _operator import attrgetter

from stopwarden import __version__
from stopwarden.core.bounds import DAY, Policy
from stopwarden.core.errors import StoreCorruptError
from stopwarden.core.events import (
    AwayPeriod,
    BackgroundTask,
    Counters,
    Happening,
    Item,
    Reservation,
    Scheduler,
    SessionState,
    Stop,
    Verdict,
    Wake,
    WakeFinding,
    World,
)
from stopwarden.core.judge import JUDGE
from stopwarden.core.record import Record
from stopwarden.wire import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from stopwarden.core.events import Instant, Zone

FORMAT = 1
INLINE = 50  # entries of a tuple that are written in place; more are kept by digest
WEEK = 7 * DAY  # no zone on record changed twice within a week
ZONE_AHEAD = 400 * DAY
ZONE_BEHIND = 400 * DAY
SAME_SEASON = 364 * DAY  # a year in whole weeks

# Every field that holds records; whatever else is a list in JSON is a tuple of plain values.
_PARTS: dict[tuple[type[Record], str], type[Record]] = {
    (Stop, "wakes"): Wake,
    (Stop, "background"): BackgroundTask,
    (World, "period"): AwayPeriod,
    (World, "items"): Item,
    (World, "ready"): Item,
    (World, "reservations"): Reservation,
    (World, "scheduler"): Scheduler,
    (Verdict, "counters"): Counters,
    (Verdict, "wake"): WakeFinding,
    (Verdict, "rejected"): WakeFinding,
    (Verdict, "happenings"): Happening,
}


class RecordedZone(Record):
    """The machine's zone as it answered at the recorded stop.

    Exact from `offsets[0]` until `until`; later it answers as a whole number of 364-day years
    before, earlier as at its beginning.
    """

    name: str
    offsets: tuple[tuple[Instant, int], ...]  # from each instant on, seconds east of UTC
    until: Instant

    def offset(self, instant: Instant) -> int:
        """Seconds east of UTC at the instant."""
        if instant > self.until:
            instant -= -((self.until - instant) // SAME_SEASON) * SAME_SEASON
        east = self.offsets[0][1]
        for since, then in self.offsets:
            if since > instant:
                break
            east = then
        return east


def encode(
    stop: Stop,
    session: SessionState,
    world: World,
    policy: Policy,
    verdict: Verdict,
    put_snapshot: Callable[[str], str],
) -> str:
    """The JSON that `decode` turns back into these five. `put_snapshot` keeps a text and returns its digest."""

    def packed(record: Record, *leave_out: str) -> dict[str, Any]:
        return {field: written(getattr(record, field)) for field in type(record).fields if field not in leave_out}

    def written(value: object) -> object:
        if isinstance(value, Record):
            return packed(value)
        if not isinstance(value, tuple):
            return value
        return _table(value, put_snapshot) if value and isinstance(value[0], Record) else _column(value, put_snapshot)

    return dumps(
        {
            "v": FORMAT,
            "judge": __version__,
            "rules": JUDGE,
            "stop": packed(stop),
            "session": packed(session),
            "world": {"zone": _zone(stop, world), **packed(world, "zone")},
            "policy": packed(policy),
            "verdict": packed(verdict, "after"),
        }
    )


def decode(body: str, snapshot: Callable[[str], str]) -> tuple[Stop, SessionState, World, Policy, Verdict]:
    """The five values of a recorded verdict; `snapshot` gives a kept text by its digest.

    Raises StoreCorruptError when the record cannot be read, was written by a newer version, or
    names a text that is no longer kept.
    """

    def unpacked(kind: type[Record], fields: dict[str, Any]) -> Any:
        return kind(**{field: read(value, _PARTS.get((kind, field))) for field, value in fields.items()})

    def read(value: Any, kind: type[Record] | None) -> Any:
        value = _values(value, snapshot)
        if isinstance(value, list):
            return tuple(value)
        if not isinstance(value, dict):
            return value
        if kind is None:
            raise ValueError("a record where none belongs")
        return _records(kind, value, snapshot) if "rows" in value else unpacked(kind, value)

    try:
        whole = loads(body)
        if whole["v"] != FORMAT:
            raise ValueError(f"its format is {whole['v']}, this program reads {FORMAT}")
        zone = whole["world"].pop("zone")
        offsets = tuple((since, east) for since, east in zone["offsets"])
        recorded = RecordedZone(name=zone["name"], offsets=offsets, until=zone["until"])
        world = {field: read(value, _PARTS.get((World, field))) for field, value in whole["world"].items()}
        return (
            unpacked(Stop, whole["stop"]),
            unpacked(SessionState, whole["session"]),
            World(zone=recorded, **world),
            unpacked(Policy, whole["policy"]),
            unpacked(Verdict, whole["verdict"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as broken:
        raise StoreCorruptError(
            f"This verdict's record cannot be read ({broken})",
            kept="The record itself is left as it is",
            do="Look at a later verdict, or use the version of Stopwarden that wrote it",
        ) from None


def judged_by(body: str) -> str:
    """The version and the rules that a recorded verdict was judged by ("0.1.0, rules 1"), "" where unreadable."""
    try:
        whole = loads(body)
        return f"{whole['judge']}, rules {whole['rules']}"
    except (ValueError, TypeError, KeyError):
        return ""


def _table(records: tuple[Record, ...], put_snapshot: Callable[[str], str]) -> dict[str, object]:
    """The records of one kind as columns; a column whose every entry is the same is that entry alone."""
    table: dict[str, object] = {"rows": len(records)}
    for field in type(records[0]).fields:
        column = list(map(attrgetter(field), records))
        same = not isinstance(column[0], tuple) and column.count(column[0]) == len(column)
        table[field] = column[0] if same else _column(column, put_snapshot)
    return table


def _records(kind: type[Record], table: dict[str, Any], snapshot: Callable[[str], str]) -> tuple[Record, ...]:
    rows = table.pop("rows")
    columns = {field: _values(column, snapshot) for field, column in table.items()}
    for field, column in columns.items():
        if isinstance(column, list) and column and isinstance(column[0], list):
            columns[field] = [tuple(entry) for entry in column]
    return tuple(
        kind.many(rows, {name: one if isinstance(one, list) else [one] * rows for name, one in columns.items()})
    )


def _column(values: Sequence[object], put_snapshot: Callable[[str], str]) -> object:
    """Plain values as they are written: a few in place, more by digest."""
    if len(values) <= INLINE:
        return values
    try:
        text = "\n".join(values)  # type: ignore[arg-type]
    except TypeError:
        text = "\n"
    if text.count("\n") == len(values) - 1:
        return {"lines": put_snapshot(text)}
    return {"snapshot": put_snapshot(dumps(values))}


def _values(written: Any, snapshot: Callable[[str], str]) -> Any:
    """What `_column` was given; anything else is returned as it is."""
    if isinstance(written, dict) and "lines" in written:
        return snapshot(written["lines"]).split("\n")
    if isinstance(written, dict) and "snapshot" in written:
        return loads(snapshot(written["snapshot"]))
    return written


def _zone(stop: Stop, world: World) -> dict[str, object]:
    """The zone's name and its offsets from the oldest instant a judge looks back to, found by bisection."""
    zone, until = world.zone, stop.at + ZONE_AHEAD
    told = [at for wake in stop.wakes or () for at in (wake.first_seen, wake.fires_said_at)]
    seen = [at for at in told if at is not None]
    oldest = min([stop.at, *seen, *(reservation.claimed_at for reservation in world.reservations)])
    since = max(oldest, stop.at - ZONE_BEHIND) - 2 * DAY
    before, east = since, zone.offset(since)
    offsets = [(since, east)]
    for point in (*range(since + WEEK, until, WEEK), until):
        while zone.offset(point) != east:
            before, east = _change(zone, before, point)
            offsets.append((before, east))
        before = point
    return {"name": zone.name, "offsets": offsets, "until": until}


def _change(zone: Zone, before: Instant, after: Instant) -> tuple[Instant, int]:
    """The first instant after `before` at which the zone answers otherwise, and its answer then."""
    east = zone.offset(before)
    while after - before > 1:
        middle = (before + after) // 2
        if zone.offset(middle) == east:
            before = middle
        else:
            after = middle
    return after, zone.offset(after)
