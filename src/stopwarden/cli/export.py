"""`stopwarden export`: the record as JSON lines, each an object that says what it is (see docs/export.md)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from stopwarden import __version__
from stopwarden.cli import record
from stopwarden.cli.person import session_named
from stopwarden.cli.written import put_record
from stopwarden.core.errors import UsageError
from stopwarden.report.reading import count
from stopwarden.report.values import plain_values, utc
from stopwarden.store.forgotten import KIND as FORGOTTEN
from stopwarden.store.forgotten import read_forgotten
from stopwarden.store.recorded import write_stops
from stopwarden.wire import dumps, loads

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from stopwarden.cli.context import Context
    from stopwarden.core.events import AwayPeriod, Instant
    from stopwarden.core.record import Record
    from stopwarden.store.port import SessionRow, Store

FORMAT = 1
# Instants that stand in fields of other names than those that `report.values` knows.
INSTANTS = (
    "first_event_at", "last_event_at", "chain_started_at", "waits_since", "idle_since", "error_at", "error_resets_at",
    "gone_at", "changed_at", "created_at", "verified_at", "granted_at",
)  # fmt: skip
NO_EVENT = ("first_event_at", "last_event_at", "chain_started_at")  # where 0 is "never"
OF_THE_MACHINE = (  # means nothing elsewhere
    "boot", "answered_ticks", "wall_minus_boot", "program", "program_started", "program_seen",
)  # fmt: skip


class Part:
    """What is exported: all, or what belongs to a period, a session, a time."""

    def __init__(self, since: Instant | None, period: AwayPeriod | None, session: str) -> None:
        self.since, self.period, self.session = since or 0, period, session

    def takes(self, at: Instant, session: str, period: str) -> bool:
        """Whether an entry of this instant, session and period is part of it."""
        return (
            at >= self.since
            and (not self.session or session == self.session)
            and (self.period is None or period == self.period.id)
        )


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.add_argument("file", metavar="FILE", help="where to write; - is standard output")
    parser.add_argument("--since", metavar="TIME", help="only what was recorded from then on (22:00, 8h, …)")
    parser.add_argument("--period", metavar="ID", help="only this away period (its id or the beginning of it)")
    parser.add_argument("--session", metavar="ID", help="only this session (its id, the beginning of it, or its title)")
    parser.add_argument("--stops", action="store_true", help="only the judged stops, as `stopwarden replay` reads them")
    parser.add_argument("--force", action="store_true", help="replace a file that is there already")
    parser.add_argument("--json", action="store_true", help="what was written as one JSON object")
    parser.description = (
        "Writes what is recorded as JSON lines. It holds titles of work, paths and parked questions; no messages."
    )
    parser.epilog = (
        "examples:\n"
        "  stopwarden export nights.jsonl\n"
        "  stopwarden export - --since 22:00\n"
        "  stopwarden export stops.jsonl --stops; stopwarden replay stops.jsonl\n\n"
        "exit codes: 0 written; 2 wrong words; 4 the file could not be written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Writes the file, whole or not at all."""
    now = context.now()
    since = record.instant_before(args.since, now, context.zone) if args.since else None
    to_screen = args.file == "-"
    if to_screen and args.json:
        raise UsageError("- already writes JSON to standard output", do="Leave --json out")
    path = os.path.join(context.cwd, args.file)
    if not to_screen and os.path.lexists(path) and not args.force:
        raise UsageError(f"{args.file} is there already", do="Name another file, or replace it with --force")
    with record.opened(context) as store:
        lines = _lines(args, context, store, since)
        if to_screen:
            for line in lines:
                context.say(line)
            return 0
        written = put_record(path, args.file, lines)
    if args.json:
        context.say(json.dumps({"v": 1, "written": written, "file": path}))
    else:
        said = "It holds titles of work, paths and parked questions, and no messages."
        context.say(f"{count(written, 'line')} written to {args.file}. {said}")
    return 0


def _lines(args: argparse.Namespace, context: Context, store: Store, since: Instant | None) -> Iterator[str]:
    """Every line, in order: what the file is, periods, sessions, the record, stops, questions, work; how many."""
    part = Part(
        since, record.period_named(args.period, store.periods()) if args.period else None, _session(args.session, store)
    )
    stops = _stops(store, part)
    if args.stops:
        yield from stops
        return
    written = 1
    yield _line(
        "export",
        {
            "program": __version__,
            "at": utc(context.now()),
            "zone": context.zone.name,
            "since": utc(part.since) if since is not None else None,
            "period": part.period.id if part.period else None,
            "session": part.session or None,
        },
    )
    for line in _whole(store, part):
        yield line
        written += 1
    for line in stops:
        yield line
        written += 1
    yield _line("end", {"lines": written + 1})


def _whole(store: Store, part: Part) -> Iterator[str]:
    lines = [line for line in store.lines() if line.kind == FORGOTTEN or part.takes(line.at, line.session, line.period)]
    everything = part.period is None and not part.session
    rows = [] if everything else [r for r in store.verdicts(since=part.since) if part.takes(r.at, r.session, r.period)]
    named = {line.session for line in lines} | {row.session for row in rows}
    nights = {line.period for line in lines} | {row.period for row in rows}
    for period in store.periods():
        whole = everything and (period.ended_at or period.until or part.since) >= part.since
        if whole or (part.period is not None and period.id == part.period.id) or period.id in nights:
            policy = _json_or_text(store.period_policy(period.id))
            yield _line("period", {**_plain(period), "policy": policy})
    for row in store.sessions():
        if (everything and row.last_event_at >= part.since) or row.id in named or row.id == part.session:
            wakes = [_plain(wake) for wake in store.wakes(row.id)]
            yield _line("session", {**_known(row), "wakes": wakes, "todos": _json_or_text(store.host_todos(row.id))})
    for line in lines:
        if line.kind == FORGOTTEN:
            yield _line("forgotten", _plain(read_forgotten(line.at, line.text)))
        else:
            yield _line("line", _plain(line))
    for parked in store.parked():
        if part.takes(parked.at, parked.session, parked.period):
            yield _line("question", _plain(parked))
    if everything:
        for item in store.ledger_items():
            if item.changed_at >= part.since:
                yield _line("item", {"id": item.id, **_plain(item)})
    for held in store.reservations(released=True):
        over = held.released_at if held.released_at is not None else part.since
        if (everything and over >= part.since) or (part.session and held.session == part.session):
            yield _line("reservation", _plain(held))


def _stops(store: Store, part: Part) -> Iterator[str]:
    """As `replay` reads them, with the instant in words as well."""
    period = part.period.id if part.period else None
    rows = [r for r in store.verdicts(period=period, since=part.since) if part.takes(r.at, r.session, r.period)]
    for row, text in zip(rows, write_stops(store, rows), strict=True):
        yield f'{text[:-1]},"time":"{utc(row.at)}"}}'


def _line(kind: str, fields: dict[str, Any]) -> str:
    """One object. `kind` says which fields it has; a field of that name is a line's own kind."""
    return dumps({"stopwarden": kind, "v": FORMAT, **fields})


def _plain(value: Record) -> dict[str, Any]:
    """A record's fields, instants in UTC."""
    fields: dict[str, Any] = plain_values(value)
    for name in INSTANTS:
        at = fields.get(name)
        if isinstance(at, int):
            fields[name] = None if at == 0 and name in NO_EVENT else utc(at)
    return fields


def _known(row: SessionRow) -> dict[str, Any]:
    return {name: value for name, value in _plain(row).items() if name not in OF_THE_MACHINE}


def _json_or_text(text: str) -> Any:
    try:
        return loads(text) if text else None
    except ValueError:
        return text


def _session(said: str | None, store: Store) -> str:
    return session_named(said, {row.id: row for row in store.sessions()}) if said else ""
