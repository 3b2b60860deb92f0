"""`stopwarden status`: one line a session, and whether anything needs the person.

It only reads: facts that hooks left in the spool are taken over so that the last sign of life
counts, and nothing is decided or repaired. What is shown is of the away periods that hold now;
`--verbose` adds every session heard of lately, and why each is told as it is.

Exit codes: 0 nothing needs you, 1 something does, 2 wrong words, 4 our own failure.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from stopwarden.cli import go, surroundings, timed
from stopwarden.cli.known import known_sessions, set_aside, take_in
from stopwarden.cli.person import RECENT
from stopwarden.core import leases
from stopwarden.core.bounds import DAY
from stopwarden.core.errors import StopwardenError, StoreBusyError, StoreCorruptError, StoreUnwritableError
from stopwarden.core.periods import holds
from stopwarden.core.record import Record
from stopwarden.hook import declared, fault
from stopwarden.hook.terms import mode_of
from stopwarden.hosts import installation
from stopwarden.report.moments import length, moment
from stopwarden.report.reading import count, cut, padded, plain, short_ids, width
from stopwarden.report.state import CONTINUED, Known, Standing, standing
from stopwarden.report.values import utc
from stopwarden.store import marker, place

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stopwarden.cli.context import Context
    from stopwarden.cli.known import Tally
    from stopwarden.core.events import AwayPeriod, Instant
    from stopwarden.store.port import SessionRow, Store
    from stopwarden.work.promises import Timed

REDRAW = 3.0  # seconds between two looks of --watch
NAME = 24  # columns of a session's name
LATELY = 1 * DAY
TIMED = 5  # looks and promises shown
LAPSED = 3  # lapsed holds shown


class Line(Record):
    """One session as shown."""

    told: Standing
    known: Known
    tally: Tally | None


class View(Record):
    """All that is shown at one moment."""

    now: Instant
    periods: tuple[AwayPeriod, ...]
    lines: tuple[Line, ...]
    others: tuple[Line, ...]  # sessions no period holds for
    alarms: tuple[go.Finding, ...]  # what is not covered besides
    notes: tuple[str, ...]
    mode: str
    ended: AwayPeriod | None = None  # the last period, where none holds
    timed: tuple[Timed, ...] = ()  # looks and promises of the lists: shown, never a reason for an alarm

    @property
    def needing(self) -> tuple[Line, ...]:
        """Those that need the person."""
        return tuple(line for line in self.lines if line.told.needs_you)

    @property
    def needs_you(self) -> bool:
        """Whether anything here does."""
        return bool(self.needing or self.alarms)


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `status`."""
    parser.add_argument("--watch", action="store_true", help="look again every few seconds until Ctrl-C")
    parser.add_argument(
        "--verbose", "-v", action="store_true", help="all sessions heard of lately, with ids and reasons"
    )
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object (with --watch one a line)")
    parser.description = "One line a session: working, waiting until when, waiting on you, stopped and why, or stalled."
    parser.epilog = (
        "example:\n  stopwarden status || echo something needs me\n\n"
        "exit codes: 0 nothing needs you; 1 something does (stalled, stopped with work owed,\n"
        "waiting on you, not covered); 2 wrong words; 4 Stopwarden itself failed"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Prints the view once, or again and again with `--watch`."""
    if not args.watch:
        return _show(args, context)
    code = 0
    try:
        while True:
            if not args.json and context.out.isatty():
                context.say("\x1b[H\x1b[2J\x1b[3J")
            try:
                code = _show(args, context)
            except StopwardenError as error:  # a watch outlives what may pass
                context.warn(f"stopwarden: {error}")
                code = error.exit_code
            if not args.json:
                context.say(
                    f"{moment(context.now(), context.zone, context.now())}, again every {REDRAW:g} s. Ctrl-C ends."
                )
            context.out.flush()
            context.sleep(REDRAW)
    except KeyboardInterrupt:
        context.say()
        return code


def _show(args: argparse.Namespace, context: Context) -> int:
    seen = look(context)
    if args.json:
        context.say(json.dumps(as_json(seen, context)))
    else:
        for line in text(seen, context, verbose=args.verbose):
            context.say(line)
    return 1 if seen.needs_you else 0


# --- looking ------------------------------------------------------------------------------------


def look(context: Context) -> View:
    """What there is to be seen now. Raises the Store…Error classes."""
    state_dir, now = context.state_dir, context.now()
    if not os.path.lexists(os.path.join(state_dir, place.DATABASE)):
        return _without_database(context, now)
    store = context.open_store()
    try:
        missed = _heard(store, context)
        periods = tuple(one for one in store.open_periods() if holds(one, now))
        installed_at = installation_time(context, periods)
        known = known_sessions(store, periods, now, context.zone, since=now - RECENT, installed_at=installed_at)
        lines = [Line(told=standing(one, now, context.zone), known=one, tally=how) for one, how in known]
        held = [line for line in lines if line.known.period is not None and _worth_showing(line)]
        ended = None if periods else max(store.periods(), key=lambda one: one.since, default=None)
        return View(
            now=now,
            periods=periods,
            lines=tuple(sorted(held, key=lambda line: (line.known.row.root, line.told.name, line.told.session))),
            others=tuple(line for line in lines if line not in held),
            alarms=tuple(_alarms(context, periods, held, installed_at, now)),
            notes=(*missed, *_notes(context, store, held, periods, now)),
            mode=mode_of(store, "", now),
            ended=ended,
            timed=tuple(one for _, one in timed.of_periods(periods, _covered(lines), context.zone)),
        )
    finally:
        store.close()


def _covered(lines: Sequence[Line]) -> list[tuple[SessionRow, AwayPeriod | None]]:
    return [(line.known.row, line.known.period) for line in lines]


def _heard(store: Store, context: Context) -> tuple[str, ...]:
    """Takes over the spool if that is possible now; what keeps it from being heard is said, and the rest is shown."""
    try:
        missed = take_in(store, context)
    except (StoreBusyError, StoreUnwritableError) as error:
        missed = f"What hooks heard lately is not in this: {error}"
    return (missed,) if missed else ()


def _without_database(context: Context, now: Instant) -> View:
    """Nothing was ever stored; a marker without a database is damage, because it speaks of one."""
    if marker.read(context.state_dir) is not None:
        raise StoreCorruptError(
            "You are away, but the database is gone",
            kept="Sessions are held by the mark alone, three stops each",
            do="Run `stopwarden away` again, or `stopwarden back`",
        )
    return View(now=now, periods=(), lines=(), others=(), alarms=(), notes=(), mode="on")


def installation_time(context: Context, periods: Sequence[AwayPeriod]) -> Instant:
    """When the hooks that serve these periods were installed; 0 where that is not recorded."""
    roots = {one.root for one in periods if one.root}
    files = installation.load(context.state_dir).files
    serving = [one.at for one in files if one.scope == "user" or any(one.path.startswith(f"{root}/") for root in roots)]
    return min(serving, default=0)


def _worth_showing(line: Line) -> bool:
    """Not what was over before the person left, nor what went on under another id."""
    row, period = line.known.row, line.known.period
    if line.told.word == "ended" and row.ended_why in CONTINUED:
        return False
    return row.ended_at is None or period is None or row.ended_at >= period.since


def _alarms(
    context: Context, periods: Sequence[AwayPeriod], held: Sequence[Line], installed_at: Instant, now: Instant
) -> list[go.Finding]:
    if not periods:
        return []
    found = []
    if marker.read(context.state_dir) is None:
        text = "its mark is missing, so hooks let every session stop. Run: stopwarden away again"
        found.append(go.Finding(level="warn", subject="away", text=text, covered=False))
    for period in periods:
        if period.scope == "checkout":
            live = [one.known.row for one in held if one.known.period == period and one.known.row.ended_at is None]
            agents = surroundings.agents(period.root, context.system)
            found += go.check_unseen(agents, live, installed_at, now, context.zone)
    return found


def _notes(
    context: Context, store: Store, held: Sequence[Line], periods: Sequence[AwayPeriod], now: Instant
) -> list[str]:
    notes = []
    for path in set_aside(context.state_dir):
        notes.append(f"A damaged database was set aside: {path}. What it held is in no report; keep or delete it.")
    for line in held:
        failed = fault.in_a_row(context.state_dir, line.told.session)
        if failed:
            times = count(failed, "stop")
            notes.append(f"{line.told.name}: {times} in a row could not be judged. Run: stopwarden doctor")
    notes += _of_watch(context, store, held, now)
    notes += _lapsed(context, store, held, now)
    marked = marker.read(context.state_dir)
    still = {one.id for one in store.open_periods()}
    if not periods and marked is not None and not {one.id for one in marked} <= still:
        notes.append("A mark of an away period is left over. Take it away: stopwarden back")
    return notes


def _of_watch(context: Context, store: Store, held: Sequence[Line], now: Instant) -> list[str]:
    """Whether a watch runs, and what a look that a session declared is worth where its host reports no wakes."""
    notes = []
    watch = declared.running_watch(store, now)
    if watch is not None:
        notes.append(f"stopwarden watch runs (process {watch.pid}).")
    for line in held:
        row = line.known.row
        said = declared.declared(store, row.id, row.host, now) if store.fact("no_wakes_said", row.id) else None
        if said is not None and said.at > now:
            at = moment(said.at, context.zone, now)
            worth = "counts as its wake" if said.counts else f"does not count: {said.why}"
            notes.append(f"{line.told.name}: the look it declared for {at} {worth}.")
    return notes


def _lapsed(context: Context, store: Store, held: Sequence[Line], now: Instant) -> list[str]:
    """What these sessions held and let lapse: begun perhaps, done by nobody, free for another."""
    names = {line.told.session: line.told.name for line in held}
    over = [one for one in store.reservations() if one.session in names and not leases.is_live(one, now)]
    notes = []
    for one in sorted(over, key=leases.effective_expiry)[:LAPSED]:
        title = f' "{plain(one.title, 60)}"' if one.title else ""
        at = moment(leases.effective_expiry(one), context.zone, now)
        notes.append(f"{one.item}{title}: the hold of {names[one.session]} lapsed at {at}. See: stopwarden peers")
    return notes + ([f"{len(over) - LAPSED} more lapsed holds: stopwarden peers"] if len(over) > LAPSED else [])


# --- telling ------------------------------------------------------------------------------------


def text(seen: View, context: Context, *, verbose: bool = False) -> list[str]:
    """The view as lines for a person."""
    lines = [_heading(seen, one, context) for one in seen.periods] or [_not_away(seen, context)]
    if seen.mode != "on":
        means = {"off": "no stop is judged", "observe": "stops are recorded, never blocked"}.get(seen.mode, seen.mode)
        lines.append(f"Switched {seen.mode}: {means}. Undo: stopwarden on")
    shown = [*seen.lines, *seen.others] if verbose else list(seen.lines)
    lines += _table(shown, seen, context, verbose)
    lines += [f"{one.subject}  {one.text}" for one in seen.alarms]
    lines += seen.notes
    lines += timed.lines(seen.timed, context.zone, seen.now)[:TIMED]
    if seen.periods and not shown and not seen.alarms:
        lines.append("No session was heard of yet. One that is started now is covered.")
    elif seen.periods:
        lines.append(_verdict(seen))
    return lines


def _heading(seen: View, period: AwayPeriod, context: Context) -> str:
    whom = {"everywhere": "every checkout", "checkout": period.root, "session": f"session {period.session[:8]}"}
    if period.until is None:
        end = "until `stopwarden back`"
    else:
        left = length(period.until - seen.now)
        end = f"until {moment(period.until, context.zone, seen.now)} {context.zone.name} ({left} left)"
    return f"Away {end}: {whom[period.scope]}"


def _not_away(seen: View, context: Context) -> str:
    last = seen.ended
    at = None if last is None else last.ended_at if last.ended_at is not None else last.until
    if last is None or at is None or seen.now - at > LATELY:
        return "You are here: nothing is held, and nothing needs you."
    how = {"time": " by itself", "done": ", the list was done", "back": ""}.get(last.ended_why or "time", "")
    return f"You are here: away ended {moment(at, context.zone, seen.now)}{how}. The night: stopwarden report"


def _verdict(seen: View) -> str:
    names = [cut(line.told.name, NAME) for line in seen.needing]
    if not seen.needs_you:
        return "Nothing needs you."
    if not names:
        return "This needs you."
    return f"{'These need' if len(names) > 1 else 'This needs'} you: {', '.join(names)}."


def _table(lines: Sequence[Line], seen: View, context: Context, verbose: bool) -> list[str]:
    rows = [_columns(line, seen, context) for line in lines]
    if verbose:
        short = short_ids(line.told.session for line in lines)
        rows = [[short[line.told.session], *row] for line, row in zip(lines, rows, strict=True)]
    last = len(rows[0]) - 1 if rows else 0
    widths = [max(width(row[place]) for row in rows) for place in range(last)]
    table = []
    for line, row in zip(lines, rows, strict=True):
        cells = [padded(cell, widths[place]) for place, cell in enumerate(row[:-1]) if widths[place]]
        table.append("  ".join([*cells, row[-1]]).rstrip())
        if verbose:
            table += [f"      {detail}" for detail in _details(line, context, seen.now)]
    return table


def _columns(line: Line, seen: View, context: Context) -> list[str]:
    """Name, state, how far, how often blocked, and what else there is to say."""
    told = line.told
    word = told.word.replace("_", " ")
    if told.word == "waiting" and told.next_look is not None:
        word = f"waiting until {moment(told.next_look, context.zone, seen.now)}"
    tally = line.tally
    far = f"{tally.done} of {tally.of}" if tally is not None and tally.of else ""
    blocked = f"blocked {told.blocked}x" if told.blocked else ""
    if told.word == "working" and told.next_look is not None:
        more = f"next look {moment(told.next_look, context.zone, seen.now)}"
    else:
        more = f"{told.text} {told.act}." if told.act else told.text
    return [cut(plain(told.name), NAME), word, far, blocked, more]


def _details(line: Line, context: Context, now: Instant) -> list[str]:
    row, told, verdict = line.known.row, line.told, line.known.verdict
    where = (
        f"{row.root or 'place not known'}, last heard {moment(row.last_event_at, context.zone, now)} ({row.last_event})"
    )
    details = [where]
    if verdict is not None:
        at = moment(verdict.at, context.zone, now)
        details.append(f"last stop {at}: {verdict.kind} ({verdict.rule}). Why: stopwarden explain {verdict.id}")
    if told.blocked_in_a_row:
        details.append(f"{count(told.blocked_in_a_row, 'block')} in a row without progress")
    tally = line.tally
    if tally is not None and (tally.waits_for_you or tally.waits):
        details.append(f"{tally.waits_for_you} waiting for you, {tally.waits} for something else")
    return details


def as_json(seen: View, context: Context) -> dict[str, object]:
    """The view as plain values; instants as ISO 8601 in UTC."""

    def instant(at: Instant | None) -> str | None:
        return None if at is None else utc(at)

    def session(line: Line) -> dict[str, object]:
        told, row = line.told, line.known.row
        return {
            "session": told.session,
            "name": told.name,
            "state": told.word,
            "text": told.text,
            "act": told.act,
            "needs_you": told.needs_you,
            "since": instant(told.since),
            "next_look": instant(told.next_look),
            "last_event": row.last_event,
            "last_event_at": instant(row.last_event_at or None),
            "root": row.root,
            "mode": line.known.mode,
            "period": line.known.period.id if line.known.period is not None else None,
            "blocked": told.blocked,
            "blocked_in_a_row": told.blocked_in_a_row,
            "owed": line.known.owes,
            "items": None if line.tally is None else line.tally.as_dict(),
        }

    return {
        "v": 1,
        "at": utc(seen.now),
        "zone": context.zone.name,
        "mode": seen.mode,
        "needs_you": seen.needs_you,
        "away": [
            {**one.as_dict(), "since": utc(one.since), "until": instant(one.until), "ended_at": None}
            for one in seen.periods
        ],
        "sessions": [session(line) for line in seen.lines],
        "others": [session(line) for line in seen.others],
        "alarms": [one.as_dict() for one in seen.alarms],
        "notes": list(seen.notes),
        "timed": [timed.as_json(one, seen.now) for one in seen.timed],
    }
