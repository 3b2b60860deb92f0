"""The timed looks and promises of the lists, for the commands that write, tick and show them.

They are plain bullets in the list itself (`work.promises`), so a person or an agent may as well
write them by hand. May not live here: what they mean for a verdict; they mean nothing for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stopwarden.cli import lists
from stopwarden.core.errors import ListError, UsageError
from stopwarden.core.record import Record
from stopwarden.hook.promised import in_lists
from stopwarden.report.moments import moment
from stopwarden.report.reading import plain
from stopwarden.work import checkout, edits, files, gather, promises
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from stopwarden.cli.context import Context
    from stopwarden.core.events import AwayPeriod, Instant, Zone
    from stopwarden.store.port import SessionRow
    from stopwarden.work.gather import ReadList
    from stopwarden.work.promises import Timed


class Written(Record):
    """A line as it was written."""

    path: str
    name: str
    line: int
    clock: str


def write(context: Context, named: str | None, kind: str, at: Instant, text: str) -> Written:
    """Writes one that is still to come into the list that is meant. Raises UsageError, ListError."""
    meant = lists.lists_meant(context, named, adding=True)
    if len(meant.paths) > 1 and not meant.period_lists:
        names = ", ".join(gather.name_of(path, meant.root) for path in meant.paths)
        raise UsageError(f"Several lists may be meant: {names}", kept="Nothing was changed", do="Say which with --list")
    one = meant.lists[0]
    lists.begin(meant, one.path, context, named=bool(named))
    since = _since(context, one.path)
    clock = promises.clock_of(at, since, context.zone)
    line = 0

    def change(current: str) -> str:
        nonlocal line
        changed, line = edits.append_timed(current, promises.line_of(kind, clock, text))
        return changed

    files.edit(one.path, change, one.name)
    return Written(path=one.path, name=one.name, line=line, clock=clock)


def handle(context: Context, named: str | None, kind: str, said: str) -> Timed:
    """Marks the one of that kind that is meant, by its time or the beginning of its words, as handled.

    Raises UsageError where none or several are meant, ListError where the list cannot be written.
    """
    meant = lists.lists_meant(context, named)
    since = _since(context, meant.lists[0].path)
    said = one_line(said)
    found: list[tuple[str, Timed]] = []
    for one in meant.lists:
        if one.unread:
            raise files.unknown(one.unread)
        told = in_lists([(one.path, one.name, "")], since, context.zone)
        found += [(one.path, timed) for timed in told if timed.kind == kind and not timed.handled]
    named_so = [pair for pair in found if _is_meant(pair[1], said, since, context.zone)]
    if len(named_so) != 1:
        known = "; ".join(words(timed, context.zone, context.now()) for _, timed in (named_so or found)[:6])
        which = "names more than one" if named_so else "names none that is open"
        raise UsageError(
            f'"{plain(said, 60)}" {which}', kept="Nothing was changed", do=f"Name one of: {known}" if known else ""
        )
    path, timed = named_so[0]

    def change(current: str) -> str:
        there = promises.read(current, since, context.zone)
        same = [
            one for one in there if (one.kind, one.at, one.text, one.handled) == (kind, timed.at, timed.text, False)
        ]
        if not same:
            raise ListError(f"{words(timed, context.zone, context.now())} is gone from {timed.source}")
        return edits.mark_handled(current, same[0].line)

    files.edit(path, change, timed.source)
    return timed.replace(handled=True)


def in_list(context: Context, one: ReadList) -> tuple[Timed, ...]:
    """Those of one list as it was just read; a list without a plain bullet is not read again."""
    if one.reading is None or not one.reading.bullets:
        return ()
    return in_lists([(one.path, one.name, "")], _since(context, one.path), context.zone)


def json_of(context: Context, one: ReadList) -> dict[str, object]:
    """Those of one list as plain values, by the name `timed`."""
    return {"timed": [as_json(timed, context.now()) for timed in in_list(context, one)]}


def of_periods(
    periods: Iterable[AwayPeriod], rows: Sequence[tuple[SessionRow, AwayPeriod | None]], zone: Zone
) -> list[tuple[AwayPeriod, Timed]]:
    """Every timed look and promise of the lists of these away periods, the sessions' own lists included."""
    found: list[tuple[AwayPeriod, Timed]] = []
    for period in periods:
        places = [(path, gather.name_of(path, period.root), "") for path in period.lists]
        if not period.lists:
            mine = [
                row for row, covered_by in rows if covered_by is not None and covered_by.id == period.id and row.root
            ]
            owned = [(checkout.own_list_path(row.root, row.id), row) for row in mine]
            places = [(path, gather.name_of(path, row.root), row.id) for path, row in owned if os.path.lexists(path)]
        found += [(period, one) for one in in_lists(places, period.since, zone)]
    return found


def words(one: Timed, zone: Zone, now: Instant) -> str:
    """One in words: `promise 02:00 "merge once CI is green"`."""
    clock = f" {moment(one.at, zone, now)}" if one.at is not None else ""
    return f'{one.kind}{clock} "{plain(one.text, 80)}"' if one.text else f"{one.kind}{clock}"


def lines(told: Iterable[Timed], zone: Zone, now: Instant) -> list[str]:
    """The open ones for a person: what is overdue, what comes next, what is refused and why."""
    shown = []
    open_ones = sorted((one for one in told if not one.handled), key=lambda one: (one.at is None, one.at or 0))
    for one in open_ones:
        where = f" ({one.source}:{one.line})"
        if one.at is None:
            shown.append(f"refused: {words(one, zone, now)}{where}: {one.refused}")
        elif one.is_overdue(now):
            shown.append(f"overdue: {words(one, zone, now)}{where}")
        else:
            shown.append(f"{words(one, zone, now)}{where}")
    return shown


def as_json(one: Timed, now: Instant) -> dict[str, Any]:
    """One as plain values."""
    from stopwarden.report.values import utc

    return {
        "kind": one.kind,
        "text": one.text,
        "at": None if one.at is None else utc(one.at),
        "handled": one.handled,
        "overdue": one.is_overdue(now),
        "refused": one.refused or None,
        "list": one.source,
        "line": one.line,
    }


def _is_meant(one: Timed, said: str, since: Instant, zone: Zone) -> bool:
    if one.at is not None and said == promises.clock_of(one.at, since, zone):
        return True
    return bool(said) and one.text.lower().startswith(said.lower())


def _since(context: Context, path: str) -> Instant:
    """From when on a time of day counts in this list: when the person left, else when the file was written."""
    from stopwarden.store import place

    if os.path.exists(f"{context.state_dir}/{place.DATABASE}"):
        store = context.open_store()
        try:
            root = checkout.find_root(context.cwd)
            session = context.session
            for period in sorted(store.open_periods(), key=lambda one: -one.since):
                if os.path.realpath(path) in map(os.path.realpath, period.lists):
                    return period.since
                if not period.lists and (
                    period.scope == "everywhere" or period.root == root or period.session == session
                ):
                    return period.since
        finally:
            store.close()
    try:
        return int(os.stat(path).st_mtime)
    except OSError:
        return context.now()
