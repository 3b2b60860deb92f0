"""`stopwarden forget`: takes what is recorded away for good, after saying what will go."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from stopwarden.cli import record, retention
from stopwarden.cli.known import end_those_over, take_in
from stopwarden.cli.person import only_the_person, session_named
from stopwarden.cli.retention import in_words
from stopwarden.cli.times import duration
from stopwarden.core.errors import RefusedError, StopwardenError, StoreBusyError, StoreUnwritableError, UsageError
from stopwarden.core.record import Record
from stopwarden.hook import spool
from stopwarden.report.reading import LocalTimes, count, plain
from stopwarden.report.values import utc
from stopwarden.store import beside, forgetting
from stopwarden.store.forgetting import Choice
from stopwarden.store.sqlite import SqliteStore
from stopwarden.work import reservations

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Instant
    from stopwarden.store.beside import Beside
    from stopwarden.store.forgetting import Plan

ROUNDS = 4  # by size: how much each night frees is known only when it is gone


class Whole(Record):
    """All that would go: rows, and files beside the database."""

    rows: Plan
    files: tuple[Beside, ...] = ()
    faults: int = 0  # lines of the file of faults

    @property
    def empty(self) -> bool:
        """Nothing would go."""
        return self.rows.empty and not self.files and not self.faults


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--older-than", metavar="AGE", help="nights that ended longer ago (90d)")
    which.add_argument("--keep-size", metavar="SIZE", help="the oldest nights, until so much is left (200MB)")
    which.add_argument("--session", metavar="ID", help="one session (its id, the beginning of it, or its title)")
    which.add_argument("--period", metavar="ID", help="one away period (its id or the beginning of it)")
    which.add_argument("--all", action="store_true", help="everything but an away period that is running")
    which.add_argument("--damaged", action="store_true", help="only damaged databases that were set aside")
    parser.add_argument("--set-age", metavar="AGE", help="from now on forget older nights by itself, or: none")
    parser.add_argument("--set-size", metavar="SIZE", help="from now on keep at most so much by itself, or: none")
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object, times in UTC")
    parser.description = (
        "Forgets what is recorded: nights with their verdicts, lines and questions, and what belongs to no night.\n"
        "Says what will go and asks first. An away period that is running, live holds and unfinished items stay.\n"
        "Alone it keeps to the limits (400 days, 1 GiB, unless you set others) now."
    )
    parser.epilog = (
        "examples:\n"
        "  stopwarden forget --older-than 90d --dry-run\n"
        "  stopwarden forget --session 7e15\n"
        "  stopwarden forget --all --yes\n"
        "  stopwarden forget --set-age 90d --set-size 500MB\n\n"
        "exit codes: 0 forgotten, or there was nothing to forget; 1 it was not confirmed; 2 wrong words, or an agent "
        "tried it"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Says what will go, asks, and forgets it."""
    only_the_person(context, None, "forget what is recorded")
    with record.opened(context) as store:
        if not isinstance(store, SqliteStore):
            raise UsageError("This store forgets nothing", do="Use the database of this machine")
        end_those_over(store, context.now())
        if args.set_age is not None or args.set_size is not None:
            retention.set_limits(store, args.set_age, args.set_size)
            if not _names_something(args):
                return _said_limits(args, context, store)
        return _forget(args, context, store)


def _names_something(args: argparse.Namespace) -> bool:
    return bool(args.older_than or args.keep_size or args.session or args.period or args.all or args.damaged)


def _said_limits(args: argparse.Namespace, context: Context, store: SqliteStore) -> int:
    held = retention.limits(store)
    if args.json:
        context.say(json.dumps({"v": 1, "age": held.age, "size": held.size}))
        return 0
    context.say(f"From now on {retention.limits_in_words(held)}.")
    return 0


def _forget(args: argparse.Namespace, context: Context, store: SqliteStore) -> int:
    named = retention.marked(context.state_dir)
    now = context.now()
    size = retention.size_of(args.keep_size) if args.keep_size else None
    chosen = _choice(args, context, store, named, now)
    whole = _whole(args, context, store, named, chosen, now)
    if whole.empty and not store.fact("forgetting", "texts"):
        return _said_nothing(args, context, store, whole)
    if not args.json:
        for line in _preview(whole, context, now):
            context.say(line)
    if args.dry_run:
        if args.json:
            context.say(json.dumps(_as_json(whole, done=False)))
        else:
            context.say("Nothing was changed.")
        return 0
    if not args.yes and not _confirmed(args, context, whole):
        return 1
    before = forgetting.used(store)
    for _ in range(ROUNDS):
        if chosen is not None:
            forgetting.carry_out(store, whole.rows, named, context.now)
        forgetting.sweep(store)
        again = None
        if size is not None and forgetting.used(store) > size:
            again = _by_size(store, named, size, now)
        if again is None or again == chosen:
            break
        chosen = again
        whole = whole.replace(rows=forgetting.plan(store, chosen, named, now))
    left = _files_gone(context, store, whole, None if args.all else _before(chosen))
    freed = _given_back(context, store, before)
    return _said_done(args, context, whole, left, freed)


# --- what is meant ------------------------------------------------------------------------------


def _choice(
    args: argparse.Namespace, context: Context, store: SqliteStore, named: list[str], now: Instant
) -> Choice | None:
    """What the words name; None: files alone. Raises UsageError or RefusedError."""
    if args.damaged:
        return None
    if args.all:
        return Choice(everything=True, how="everything")
    if args.older_than:
        return Choice(before=now - duration(args.older_than), how=f"older than {args.older_than}")
    if args.keep_size:
        return _by_size(store, named, retention.size_of(args.keep_size), now)
    if args.session:
        session = session_named(args.session, {row.id: row for row in store.sessions()})
        return Choice(session=session, how=f"session {session[:8]}")
    if args.period:
        return Choice(period=_period(args.period, store, named), how="an away period")
    return retention.choice_by_limits(store, named, now)


def _by_size(store: SqliteStore, named: list[str], size: int, now: Instant) -> Choice | None:
    before = forgetting.before_for_size(store, named, forgetting.used(store) - size, now + 1)
    return None if before is None else Choice(before=before, how=f"at most {in_words(size)}")


def _period(said: str, store: SqliteStore, named: list[str]) -> str:
    found = record.period_named(said, store.periods())
    if found.ended_at is None or found.id in named:
        raise RefusedError(
            "That away period is running: its sessions are held by what is recorded of it",
            kept="Nothing was forgotten",
            do="End it first: stopwarden back",
        )
    return found.id


def _whole(
    args: argparse.Namespace,
    context: Context,
    store: SqliteStore,
    named: list[str],
    chosen: Choice | None,
    now: Instant,
) -> Whole:
    rows = forgetting.Plan(choice=chosen or Choice())
    if chosen is not None:
        rows = forgetting.plan(store, chosen, named, now)
    if args.session or args.period:
        return Whole(rows=rows)
    if args.all or args.damaged:
        faults = beside.old_faults(context.state_dir, None) if args.all else 0
        return Whole(rows=rows, files=tuple(beside.set_aside(context.state_dir)), faults=faults)
    before = _before(chosen)
    if before is None:
        return Whole(rows=rows)
    files = tuple(beside.set_aside(context.state_dir, before))
    return Whole(rows=rows, files=files, faults=beside.old_faults(context.state_dir, before))


def _before(chosen: Choice | None) -> Instant | None:
    return None if chosen is None else chosen.before


# --- doing it -----------------------------------------------------------------------------------


def _files_gone(context: Context, store: SqliteStore, whole: Whole, before: Instant | None) -> list[str]:
    """Removes the files that go, and what hooks left of what was taken in; those that could not be removed."""
    left = beside.remove(whole.files)
    for session in whole.rows.sessions:
        reservations.settle_sign(store, context.state_dir, session)
    try:
        if whole.faults:
            beside.forget_faults(context.state_dir, before)
    except (OSError, StopwardenError):
        left.append(os.path.join(context.state_dir, "faults"))
    try:
        if not spool.emptied(store, context.state_dir, lambda: take_in(store, context), context.sleep):
            left.append(os.path.join(context.state_dir, "spool.old"))
    except OSError:
        left.append(os.path.join(context.state_dir, "spool"))
    return left


def _given_back(context: Context, store: SqliteStore, before: int) -> int | None:
    """Bytes that the disk has again; None where another program reads the database and the log is still full."""
    try:
        if not forgetting.shrink(store):
            return None
    except (StoreBusyError, StoreUnwritableError) as failed:
        context.warn(f"stopwarden: the room was not given back to the disk: {failed}")
        return None
    return max(0, before - forgetting.used(store))


def _confirmed(args: argparse.Namespace, context: Context, whole: Whole) -> bool:
    answer = None if args.json else context.ask("Forget all this for good? [y/N] ")
    if answer is not None and answer.strip().lower() in ("y", "yes"):
        return True
    if args.json:
        context.say(json.dumps(_as_json(whole, done=False)))
    elif answer is None:
        context.say("Nothing was changed: nobody could be asked. To do it without asking: --yes")
    else:
        context.say("Nothing was changed.")
    return False


# --- saying it ----------------------------------------------------------------------------------


def _preview(whole: Whole, context: Context, now: Instant) -> list[str]:
    rows, lines = whole.rows, []
    counts = [
        count(len(rows.periods), "night") if rows.periods else "",
        count(len(rows.verdicts), "verdict") if rows.verdicts else "",
        count(len(rows.lines), "line", "lines") + " of the record" if rows.lines else "",
        count(len(rows.questions), "question") if rows.questions else "",
        count(len(rows.ledger), "finished item") if rows.ledger else "",
        f"the words of {count(rows.holds, 'released hold')}" if rows.holds else "",
        f"all of {count(len(rows.sessions), 'session')}" if rows.sessions else "",
        count(whole.faults, "line", "lines") + " of faults" if whole.faults else "",
    ]
    what = ", ".join(part for part in counts if part)
    when = _when(rows, context, now)
    if what:
        lines.append(f"Will be forgotten: {what}{when}; about {in_words(rows.size)}.")
    for one in whole.files:
        lines.append(
            f"Will be removed: {plain(one.path, 200)} ({in_words(one.size)}), which was damaged and set aside."
        )
    if rows.unanswered:
        lines.append(f"{count(rows.unanswered, 'question is', 'questions are')} not answered: stopwarden parked")
    if rows.running:
        lines.append(f"Stays: {count(len(rows.running), 'away period')} that is running, and what it needs.")
    if rows.later and not rows.choice.everything:
        lines.append(
            f"{count(rows.later, 'entry is', 'entries are')} dated later than now (a clock was ahead): "
            "their nights stay until then; --period or --all takes them."
        )
    return lines


def _when(rows: Plan, context: Context, now: Instant) -> str:
    since, until = rows.since, rows.until
    if since is None or until is None:
        return ""
    times = LocalTimes(context.zone, since, until, now)
    return f", from {times.day_clock(since)} to {times.day_clock(until)} ({context.zone.name})"


def _said_nothing(args: argparse.Namespace, context: Context, store: SqliteStore, whole: Whole) -> int:
    if args.json:
        context.say(json.dumps(_as_json(whole, done=True)))
        return 0
    for line in _preview(whole, context, context.now()):
        context.say(line)
    context.say(f"There is nothing to forget. The record takes {in_words(forgetting.used(store))}.")
    return 0


def _said_done(args: argparse.Namespace, context: Context, whole: Whole, left: Sequence[str], freed: int | None) -> int:
    for path in left:
        context.warn(f"stopwarden: {path} is still there. Remove it yourself, or run the command again.")
    if args.json:
        context.say(json.dumps({**_as_json(whole, done=True), "left": list(left), "freed": freed}))
        return 4 if left else 0
    if freed is None:
        context.say("Forgotten. Another program reads the database just now: run this again to free the disk, too.")
    else:
        context.say(f"Forgotten; {in_words(freed)} given back to the disk.")
    return 4 if left else 0


def _as_json(whole: Whole, *, done: bool) -> dict[str, Any]:
    rows = whole.rows
    since, until = rows.since, rows.until
    return {
        "v": 1,
        "forgotten": done,
        "nights": list(rows.periods),
        "verdicts": len(rows.verdicts),
        "lines": len(rows.lines),
        "questions": len(rows.questions),
        "unanswered": rows.unanswered,
        "items": len(rows.ledger),
        "holds": rows.holds,
        "sessions": list(rows.sessions),
        "faults": whole.faults,
        "files": [one.path for one in whole.files],
        "since": None if since is None else utc(since),
        "until": None if until is None else utc(until),
        "bytes": rows.size + sum(one.size for one in whole.files),
        "running": list(rows.running),
        "dated_later": rows.later,
    }
