"""`stopwarden report`: what happened while you were away."""

from __future__ import annotations

import gc
import json
import shutil
from typing import TYPE_CHECKING

from stopwarden.cli import record, timed
from stopwarden.core.bounds import DAY
from stopwarden.core.errors import UsageError
from stopwarden.core.periods import covers, holds
from stopwarden.hosts import claude_code
from stopwarden.report import holes
from stopwarden.report.account import account, as_json
from stopwarden.report.judged import Bare
from stopwarden.report.moments import moment
from stopwarden.report.nights import nights
from stopwarden.report.reading import LocalTimes, count, plain
from stopwarden.report.text import render

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stopwarden.cli.context import Context
    from stopwarden.core.events import AwayPeriod, Instant, Zone
    from stopwarden.report.account import Account
    from stopwarden.store.forgotten import Forgotten
    from stopwarden.store.port import RecordLine, Store
    from stopwarden.work.promises import Timed

WEEK = 7 * DAY
WIDEST = 110  # columns; longer lines are hard to read in the morning


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = "What happened in the last away period, or in the one that is still running."
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--since", metavar="TIME", help="only from then on, over all away periods since (22:00, 8h, …)")
    which.add_argument("--week", action="store_true", help="all away periods of the last 7 days, one line a night")
    parser.add_argument("--period", metavar="ID", help="this away period (its id or the beginning of it)")
    parser.add_argument("--verbose", "-v", action="store_true", help="every stretch of time, every item, every wake")
    parser.add_argument(
        "--html", metavar="FILE", help="write it as one page for a browser, with a lane for each session (- for stdout)"
    )
    parser.add_argument("--json", action="store_true", help="the whole account as one JSON object, times in UTC")
    parser.epilog = (
        "examples:\n  stopwarden report\n  stopwarden report --since 22:00 --verbose\n"
        "  stopwarden report --week --html week.html\n"
        "exit code: 0 a report was given, 1 nothing is recorded"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Prints the report; 1 where no away period is recorded."""
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of values without a cycle among them: to look for one costs as much again
    try:
        return _run(args, context)
    finally:
        if collecting:
            gc.enable()


def _run(args: argparse.Namespace, context: Context) -> int:
    if args.html == "-" and args.json:
        raise UsageError("Two things cannot both go to standard output", do="Use --html FILE together with --json")
    if args.week and args.period:
        raise UsageError("--week is all away periods, --period is one", do="Leave one of them out")
    now = context.now()
    since = record.instant_before(args.since, now, context.zone) if args.since else None
    if args.week:
        since = now - WEEK
    with record.opened(context) as store:
        all_periods = sorted(store.periods(), key=lambda period: period.since)
        if args.period:
            _refuse_a_forgotten(store, args.period, all_periods, context, now)
        chosen = _chosen(all_periods, args.period, since, now, context.cwd)
        if args.week and chosen and chosen[0].since > now - WEEK - DAY:
            since = None  # the night a week ago is told whole
        told = tell(store, chosen, now, context.state_dir, since, context.zone) if chosen else None
        gone = [] if told is not None else holes.forgotten_between(store.lines(), since or 0, now)
    page = _page(args.html, told, context) if args.html is not None and told is not None else ""
    if args.json:
        values = {"v": 1, "account": None} if told is None else as_json(told, nights(told, context.zone))
        context.say(json.dumps(values, ensure_ascii=False))
        return 0 if told is not None else 1
    if told is None:
        _nothing(context, since, now)
        for one in gone:
            context.say(_forgotten_words(one, context, now))
        return 1
    if args.html is not None:
        context.say(page)
        return 0
    out = render(told, context.zone, verbose=args.verbose, columns=_columns(context), color=_color(context))
    context.say(out.rstrip("\n"))
    _say_others(context, all_periods, chosen, now)
    return 0


def tell(
    store: Store,
    periods: Sequence[AwayPeriod],
    now: Instant,
    state_dir: str,
    since: Instant | None = None,
    zone: Zone | None = None,
) -> Account:
    """The account of these away periods, oldest first, from everything stored and the files beside it.

    With `zone` the looks and promises of the lists are read, too, if the last period is the newest of all.
    """
    begin = min(period.since for period in periods)
    end = max(period.ended_at or period.until or now for period in periods)
    faults, aside = record.faults(state_dir, begin, end), record.databases_set_aside(state_dir, begin, end)
    lines = [
        line
        for line in store.lines(since=begin)
        if not (faults and _counts_faults(line)) and not (aside and line.kind == "store_damaged" and not line.text)
    ]
    ids = {period.id for period in periods}
    verdicts = (Bare._make(row) for period in periods for row in store.bare_verdicts(period.id))  # a period at a time
    return account(
        periods,
        now=now,
        since=since,
        lines=[*faults, *aside, *lines],
        verdicts=verdicts,
        sessions=store.sessions(),
        parked=[parked for parked in store.parked() if parked.period in ids],
        snapshot=store.snapshot,
        timed=_timed(store, periods[-1], zone) if zone is not None else (),
    )


def _timed(store: Store, period: AwayPeriod, zone: Zone) -> tuple[Timed, ...]:
    """Those of the lists as they stand now; they speak of the newest period alone."""
    if period.since < max(one.since for one in store.periods()):
        return ()
    rows = [
        (row, period)
        for row in store.sessions(period.since)
        if covers(period, session=row.id, copy=row.copy, root=row.root, script=claude_code.is_script(row.entrypoint))
    ]
    return tuple(one for _, one in timed.of_periods([period], rows, zone))


def _page(named: str, told: Account, context: Context) -> str:
    """Writes the page; what is then said of it. For "-" it is the page itself."""
    from stopwarden.cli import written  # a page is asked for now and then; jinja2 is no small import
    from stopwarden.report import html

    text = html.render(told, context.zone)
    if named == "-":
        return text.rstrip("\n")
    return f"The report is in {written.write(context, named, text, html.MARK)}"


def _counts_faults(line: RecordLine) -> bool:
    """Whether a line only counts faults that the file of faults names one by one."""
    return line.kind == "fault" and "could not be judged or recorded" in line.text


def _chosen(
    periods: Sequence[AwayPeriod], named: str | None, since: Instant | None, now: Instant, cwd: str
) -> list[AwayPeriod]:
    """The periods to tell of: the one named; those since a time; else this checkout's last, or the last of all."""
    if named:
        return [record.period_named(named, periods)]
    begun = [period for period in periods if period.since <= now]
    if since is not None:
        return [period for period in begun if (period.ended_at or period.until or now) >= since]
    if not begun:
        return []
    last = begun[-1]
    beside = [period for period in begun if (period.ended_at or period.until or now) > last.since]
    here = [period for period in beside if _covers(period, cwd)]
    return [(here or [last])[-1]]


def _covers(period: AwayPeriod, cwd: str) -> bool:
    return period.scope == "everywhere" or not period.root or f"{cwd}/".startswith(f"{period.root.rstrip('/')}/")


def _say_others(context: Context, periods: Sequence[AwayPeriod], chosen: Sequence[AwayPeriod], now: Instant) -> None:
    for period in periods:
        if period not in chosen and holds(period, now):
            where = f" in {plain(period.root, 100)}" if period.root else ""
            context.say(f"Another away period is running{where}: stopwarden report --period {period.id}")


def _refuse_a_forgotten(
    store: Store, named: str, periods: Sequence[AwayPeriod], context: Context, now: Instant
) -> None:
    """Raises UsageError where the name is one of a night that was forgotten."""
    if any(period.id == named for period in periods):
        return
    begun = any(period.id.startswith(named) for period in periods)
    for one in holes.forgotten_between(store.lines(), 0, now):
        if named in one.periods or (not begun and any(period.startswith(named) for period in one.periods)):
            at = moment(one.at, context.zone, now)
            raise UsageError(f"That away period was forgotten at {at}", do="What is left: stopwarden report --week")


def _forgotten_words(one: Forgotten, context: Context, now: Instant) -> str:
    at = moment(one.at, context.zone, now)
    if one.since is None or one.until is None:
        return f"Something was forgotten at {at}, as you had asked."
    times = LocalTimes(context.zone, one.since, one.until, now)
    when = f"from {times.day_clock(one.since)} to {times.day_clock(one.until)}"
    what = count(one.nights, "night") if one.nights else count(one.verdicts, "verdict")
    return f"{what} {when} forgotten at {at}, as you had asked ({plain(one.how, 60)})."


def _nothing(context: Context, since: Instant | None, now: Instant) -> None:
    if since is not None:
        at = LocalTimes(context.zone, since, now).day_clock(since)
        context.say(f"Nothing is recorded since {at} ({context.zone.name}).")
    else:
        context.say("Nothing is recorded yet: you have not been away.")
    for line in record.databases_set_aside(context.state_dir, 0, now):
        context.say(f"A damaged database was set aside; what it held is not told here: {line.text}")
    context.say("Begin with: stopwarden away until 07:30")


def _columns(context: Context) -> int:
    said = context.env.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said) > 0:
        return min(WIDEST, int(said))
    return min(WIDEST, shutil.get_terminal_size((80, 24)).columns) if context.out.isatty() else 80


def _color(context: Context) -> bool:
    return context.out.isatty() and not context.env.get("NO_COLOR") and context.env.get("TERM") != "dumb"
