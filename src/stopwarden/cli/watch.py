"""`stopwarden watch`: tells of stalled sessions while it runs, and may run a command of yours to resume one.

Theory of operation. Each round opens the database for a moment, takes over what hooks left, tells
every session's state, and asks `report.stalls` which of them do not go on by themselves. A stall's
first sight is one line in the away record and a fact beside it, in one transaction; that it was
*told* is a second fact, stored after the telling, so that a watch that is killed in between tells
of it when it runs again: at worst twice, never not at all. Nothing is written into any list, and
no session is woken unless the person gave a resume command (`cli.resuming`).

It is opt-in, runs in the foreground, and ends with Ctrl-C; no other command starts anything that
stays. While it runs it stands in the store with its process, so that a declared look may count.
"""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING

from stopwarden import machine, wire
from stopwarden.cli import alerts, known, resuming, status, timed
from stopwarden.cli.person import RECENT, session_named
from stopwarden.core.bounds import MINUTE
from stopwarden.core.errors import HeldError, StopwardenError, UsageError
from stopwarden.core.periods import holds
from stopwarden.core.record import Record
from stopwarden.hook import declared, promised
from stopwarden.report import stalls
from stopwarden.report.moments import moment
from stopwarden.report.reading import count
from stopwarden.store import place
from stopwarden.store.port import RecordLine
from stopwarden.work import checkout, gather

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from stopwarden.cli.context import Context
    from stopwarden.cli.resuming import Command, Process
    from stopwarden.core.events import AwayPeriod, Instant, Reservation
    from stopwarden.report.stalls import Stall
    from stopwarden.report.state import Known
    from stopwarden.store.port import Store

    T = TypeVar("T")

EVERY = (10, 600)  # seconds between two looks
TOLD = "stall_told"  # fact (TOLD, key): the episode that was told of
TRACKERS_EVERY = 10 * MINUTE


class Round(Record):
    """What one look has found."""

    now: Instant
    periods: tuple[AwayPeriod, ...] = ()
    stalls: tuple[Stall, ...] = ()
    untold: tuple[Stall, ...] = ()
    sessions: tuple[Known, ...] = ()


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `watch`."""
    parser.add_argument("--every", type=int, default=60, metavar="SECONDS", help="between two looks (60; 10 to 600)")
    parser.add_argument("--once", action="store_true", help="look once and end")
    parser.add_argument("--desktop", action="store_true", help="also as a desktop notification")
    parser.add_argument(
        "--run", default="", metavar="CMD", help="also run this command, with the stall in STOPWARDEN_… variables"
    )
    parser.add_argument(
        "--resume", default="", metavar="CMD", help="run this to resume a session whose program is gone"
    )
    parser.add_argument("--prove", default="", metavar="SESSION", help="try --resume on this session, then end")
    parser.add_argument("--json", action="store_true", help="one JSON object a stall, one a line")
    parser.description = (
        "Tells of sessions that have stalled, each once, until Ctrl-C: a look that did not come, nothing heard for\n"
        "half an hour, a lost hold, a permission prompt or question, idle without a wake, an error past its back-off,\n"
        "a keeper that is gone, a promise that is overdue. It wakes nobody, unless you give it --resume."
    )
    parser.epilog = (
        "examples:\n  stopwarden watch\n  stopwarden watch --once || echo something has stalled\n"
        '  stopwarden watch --run \'sh -c "echo \\"$STOPWARDEN_TEXT\\" | mail -s stalled me@example.org"\'\n'
        "  stopwarden watch --resume 'claude -p --resume {session} {prompt}'\n\n"
        "--resume: {session} and {prompt} are filled in; no shell reads them. It runs once a stall, only for a\n"
        "session whose program is gone. An event of that session proves that it works: --prove SESSION tries it.\n"
        "exit codes: 0 nothing has stalled (or the command is proven); 1 something has (or it is not);\n"
        "2 wrong words; 3 a watch runs already; 4 Stopwarden itself failed"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Looks once, or again and again until Ctrl-C."""
    return Watching(args, context).run()


class Watching:
    """One `stopwarden watch`."""

    def __init__(
        self, args: argparse.Namespace, context: Context, start: Callable[..., Process] = resuming.start
    ) -> None:
        if not EVERY[0] <= args.every <= EVERY[1]:
            raise UsageError(f"--every {args.every} is not allowed", do=f"Use {EVERY[0]} to {EVERY[1]} seconds")
        if args.prove and not args.resume:
            raise UsageError("--prove needs --resume CMD: which command is to be tried", do="stopwarden watch --help")
        self.args, self.context = args, context
        self._start = start
        self._command: Command | None = resuming.command_of(args.resume) if args.resume else None
        self._alerts = alerts.Alerts(context, desktop=args.desktop, run=args.run, as_json=args.json)
        self._children: dict[str, Process] = {}
        self._said_why: dict[str, str] = {}
        self._trackers_at = 0

    def run(self) -> int:
        """Its exit code: whether something had stalled at the last look."""
        if self.args.prove:
            return self._prove()
        code = 0
        if self.args.once:
            return self._round()
        self._begin()
        try:
            while True:
                try:
                    code = self._round()
                except StopwardenError as error:  # a watch outlives what may pass
                    self.context.warn(f"stopwarden: {error}")
                    code = error.exit_code
                self.context.out.flush()
                self.context.sleep(self.args.every)
        except KeyboardInterrupt:
            self._end()
            return code

    # --- one round

    def _round(self) -> int:
        found = self._look()
        for stall in found.untold:
            self._alerts.tell(stall)
            self._with_store(partial(_told, stall))
        if self._command is not None:
            for one in found.sessions:
                self._resume_if_due(one, found)
        if self.args.once and not self.args.json and not found.stalls:
            self._say("Nothing has stalled." if found.periods else "You are here: there is nothing to watch.")
        elif self.args.once and not self.args.json and not found.untold:
            self._say(f"{count(len(found.stalls), 'stall')}, told of before: stopwarden status")
        return 1 if found.stalls else 0

    def _look(self) -> Round:
        now = self.context.now()
        if not os.path.lexists(os.path.join(self.context.state_dir, place.DATABASE)):
            return Round(now=now)
        return self._with_store(lambda store: self._seen(store, now))

    def _seen(self, store: Store, now: Instant) -> Round:
        known.take_in(store, self.context)
        self._read_trackers(store, now)
        periods = tuple(one for one in store.open_periods() if holds(one, now))
        since = status.installation_time(self.context, periods)
        zone = self.context.zone
        told = known.known_sessions(store, periods, now, zone, since=now - RECENT, installed_at=since)
        sessions = tuple(one for one, _ in told if one.period is not None)
        rows = [(one.row, one.period) for one in sessions]
        lines = [(period.id, one) for period, one in timed.of_periods(periods, rows, zone)]
        found = self._stalls(store, sessions, now) + stalls.overdue(lines, now, zone)
        with store.transaction():
            for period in periods:
                promised.record_overdue(store, [one for at, one in lines if at == period.id], period, now)
            for stall in found:
                _record(store, stall, now)
            if not self.args.once:
                self._stand(store, now)
        untold = tuple(stall for stall in found if store.fact(TOLD, stall.key) != stall.episode)
        return Round(now=now, periods=periods, stalls=tuple(found), untold=untold, sessions=sessions)

    def _stalls(self, store: Store, sessions: Sequence[Known], now: Instant) -> list[Stall]:
        reservations = store.reservations()
        found: list[Stall] = []
        for one in sessions:
            since = one.period.since if one.period is not None else now
            mine = [held for held in reservations if held.session == one.row.id and not _finished(store, held, one)]
            lost = [
                held
                for held in reservations
                if held.taken_from == one.row.id and held.granted_at >= since and not _finished(store, held, one)
            ]
            found += stalls.stalls(one, now, self.context.zone, holds=mine, lost=lost)
        return found

    def _read_trackers(self, store: Store, now: Instant) -> None:
        """Other trackers, every ten minutes: what they say is told by `list` and by stops."""
        if now - self._trackers_at < TRACKERS_EVERY:
            return
        self._trackers_at = now
        from stopwarden.work import trackers

        trackers.read_all(store, now, self.context.env)

    # --- resuming

    def _resume_if_due(self, one: Known, found: Round) -> None:
        due = next((stall for stall in found.stalls if stall.session == one.row.id and stall.resumable), None)
        if due is not None:
            kind, episode = due.kind, due.episode
        elif stalls.look_is_due(one, found.now):
            kind, episode = "declared_look", str(one.declared)
        else:
            return
        command = self._command
        if command is None:
            return
        why = resuming.why_not(one, self.context, self._children.get(one.row.id)) or self._may_try(command, one)
        if not why:
            now = self.context.now()
            why = self._with_store(lambda store: resuming.take(store, one, kind, episode, now))
        if why:
            self._say_why(one, episode, why)
            return
        self._resume(command, one, kind)

    def _may_try(self, command: Command, one: Known) -> str:
        """An unproven command may try once."""

        def tried(store: Store) -> bool:
            proven = declared.is_proven(store, one.row.host, command.digest)
            return not proven and bool(store.fact(resuming.TRIED, command.digest))

        if self._with_store(tried):
            return "the command was tried and is not proven. Try it: stopwarden watch --resume … --prove SESSION"
        return ""

    def _resume(self, command: Command, one: Known, kind: str) -> bool:
        """Runs the command for one session, and sees whether it works where that is not proven. Whether it is."""
        session = one.row.id
        try:
            child = self._start(command.filled(session, kind), one.row.root, self.context.env)
        except OSError as failed:
            self.context.warn(f"stopwarden: the resume command cannot be started: {failed.strerror}")
            return False
        self._children[session] = child
        self._say(f"{self._name(one)} is resumed (process {child.pid}).", session=session, pid=child.pid)
        if resuming.stays_a_script(one):
            self._say("Resumed with a script's flag (`-p`), its stops are held only by: stopwarden away --also-scripts")
        if self._with_store(lambda store: declared.is_proven(store, one.row.host, command.digest)):
            return True
        proven = resuming.prove(
            self.context.open_store, lambda store: known.take_in(store, self.context), command, one, self.context
        )
        if proven:
            self._say(f"The command is proven for {one.row.host}: the session was heard of.")
        else:
            self._say(f"Nothing was heard of the session within {resuming.SEEN_WITHIN} s: the command is not proven.")
        return proven

    def _prove(self) -> int:
        """Tries the command on one session that is closed."""
        command = self._command
        assert command is not None
        now, zone = self.context.now(), self.context.zone
        if not os.path.lexists(os.path.join(self.context.state_dir, place.DATABASE)):
            raise UsageError("No session was ever heard of", do="Start one with the hooks installed, and close it")

        def find(store: Store) -> Known:
            known.take_in(store, self.context)
            session = session_named(self.args.prove, {row.id: row for row in store.sessions()})
            told = known.known_sessions(store, store.open_periods(), now, zone, since=0, installed_at=0)
            found = next((one for one, _ in told if one.row.id == session), None)
            if found is None:
                raise UsageError(f"Nothing was ever heard of session {session}", do="Name one of: stopwarden status -v")
            return found

        one = self._with_store(find)
        why = resuming.why_not(one, self.context, None)
        if why:
            raise UsageError(f"{self._name(one)} cannot be resumed: {why}", kept="Nothing was run", do="Close it first")
        return 0 if self._resume(command, one, "prove") else 1

    # --- standing in the store

    def _begin(self) -> None:
        def begin(store: Store) -> None:
            other = declared.running_watch(store, self.context.now())
            if other is not None and other.pid != os.getpid():
                raise HeldError(
                    f"A watch runs already (process {other.pid})",
                    kept="Nothing was begun",
                    do="End it with Ctrl-C first",
                )
            self._stand(store, self.context.now())

        self._with_store(begin)
        proven = ""
        if self._command is not None:
            digest = self._command.digest
            if not self._with_store(lambda store: declared.is_proven(store, "claude-code", digest)):
                proven = " The resume command is not proven yet: the first session that needs it tries it."
        self._say(f"Watching every {self.args.every} s. Ctrl-C ends.{proven}")

    def _stand(self, store: Store, now: Instant) -> None:
        """That this watch lives, and what it would do."""
        standing = declared.Watch(
            pid=os.getpid(),
            started=str(machine.started_ticks()),
            at=now,
            every=self.args.every,
            resume=self._command.digest if self._command is not None else "",
        )
        store.save_fact(*declared.WATCH, wire.dumps(standing.as_dict()))

    def _end(self) -> None:
        self._with_store(lambda store: store.save_fact(*declared.WATCH, ""))
        for session, child in self._children.items():
            if child.poll() is None:
                self._say(f"Session {session[:8]} goes on without this watch (process {child.pid}).")

    # --- saying

    def _with_store(self, do: Callable[[Store], T]) -> T:
        store = self.context.open_store()
        try:
            return do(store)
        finally:
            store.close()

    def _name(self, one: Known) -> str:
        return one.name or one.row.id[:8]

    def _say(self, text: str, **values: object) -> None:
        now = self.context.now()
        if self.args.json:
            self.context.say(json.dumps({"kind": "note", "text": text, **values}))
        else:
            self.context.say(f"{moment(now, self.context.zone, now)}  {text}")

    def _say_why(self, one: Known, episode: str, why: str) -> None:
        """Why a session is not resumed, said once an episode and reason."""
        key = f"{one.row.id} {episode}"
        if self._said_why.get(key) != why:
            self._said_why[key] = why
            self._say(f"{self._name(one)} is not resumed: {why}.")


def _told(stall: Stall, store: Store) -> None:
    store.save_fact(TOLD, stall.key, stall.episode)


def _record(store: Store, stall: Stall, now: Instant) -> None:
    """One line in the away record for each episode of a session's stall. Those of lists have theirs already."""
    if stall.kind in ("empty_promise", "missed_timed_look"):
        return
    if store.fact(promised.STALL, stall.key) == stall.episode:
        return
    store.save_fact(promised.STALL, stall.key, stall.episode)
    text = f"{stall.kind}; {stall.since}; {stall.detail}"
    store.append([RecordLine(at=now, kind=promised.STALL, session=stall.session, period=stall.period, text=text)])


def _finished(store: Store, held: Reservation, one: Known) -> bool:
    """Whether the item of a hold is done or dropped, so that nothing is lost by losing it."""
    number = held.item[1:]
    if held.item[:1] == "w" and number.isdigit():
        item = store.ledger_item(int(number))
        return item is not None and item.state in ("done", "dropped")
    period = one.period
    for path in period.lists if period is not None else ():
        if checkout.place_of_list(path)[1] == held.place and period is not None:
            for listed in gather.read_lists(store, (path,), period.id, one.row.root):
                return any(
                    item.id == held.item and item.state in ("done", "dropped", "removed") for item in listed.items
                )
    return False
