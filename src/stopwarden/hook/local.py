"""Answers an event that needs the database: one transaction, one answer, within the deadline.

Theory of operation. The transaction takes over the spool, then this event's own fact, then what
the event asks for: a stop is judged and recorded (`hook.at_stop`), a prompt may get a briefing, a
question is refused and parked (`hook.at_event`). The answer is printed after the commit, never
before. Everything that goes wrong, and our own deadline (a second thread holds it, because a
disk can hang inside a system call), ends in the answer that `hook.fault` gives; whichever answer
comes first is the only one.
"""

from __future__ import annotations

import _thread
import os
import time

from stopwarden import machine
from stopwarden.clock import SystemZone
from stopwarden.core.bounds import EVENT_DEADLINE, PAYLOAD_MAX, STOP_DEADLINE, STORE_WAIT
from stopwarden.core.errors import DeadlineError, HostError, StoreCorruptError
from stopwarden.hook import at_event, at_stop, fault, spool, starter, words
from stopwarden.hook.note import Noted, take_all
from stopwarden.hook.payload import read_payload
from stopwarden.hosts import claude_code
from stopwarden.hosts.claude_code_facts import fact
from stopwarden.store.port import RecordLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import AwayPeriod, Instant, Zone
    from stopwarden.store.port import Store

EVENT_STORE_WAIT = 1.0  # seconds for a busy database at an event that must be answered within 2
CLOCK_STEP = 90  # seconds by which wall and boot clock may drift apart between two events of a session


class Event:
    """One event to answer: what came in, when, and where our state is."""

    def __init__(self, name: str, raw: bytes, state_dir: str, at: float, started: int | None = None) -> None:
        self.name, self.state_dir, self.at = name, state_dir, at
        self.started = machine.started_ticks() if started is None else started
        self.now: Instant = int(at)
        self.payload, self.damaged = read_payload(raw, PAYLOAD_MAX)
        self.told = fact(name, self.payload, self.env, at)
        self.told["pp"] = starter.program()
        self.session: str = self.told["s"]
        self.told["cwd"] = self.cwd  # a host starts its hooks where the session works
        self.zone: Zone = SystemZone({"TZ": self.env("TZ")})
        self.rehearsed = abs(at - time.time()) > 5  # a virtual clock was handed in

    def env(self, name: str) -> str:
        """One variable of the environment, "" where it is not set."""
        return os.environ.get(name, "")

    @property
    def cwd(self) -> str:
        """Where the session works, as its payload or else our own process says; "" if neither can."""
        told = self.told.get("cwd")
        if isinstance(told, str):
            return told
        try:
            return os.getcwd()
        except OSError:
            return ""


class _Answer:
    """Printed once, by whoever comes first."""

    def __init__(self) -> None:
        self._given = _thread.allocate_lock()

    def give(self, text: str) -> None:
        if not self._given.acquire(False):
            self._given.acquire()  # for good: whoever came first ends the process
        data = text.encode("utf-8", "replace") + b"\n" if text else b""
        try:
            while data:
                data = data[os.write(1, data) :]
        except OSError:
            pass  # nobody listens any more


def answer(event: Event) -> None:
    """Prints the answer to an event. Never raises."""
    out = _Answer()
    finished = _thread.allocate_lock()
    finished.acquire()

    def watch() -> None:
        seconds = STOP_DEADLINE if event.name == "stop" else EVENT_DEADLINE
        if not finished.acquire(timeout=seconds):
            out.give(at_fault(event, DeadlineError(f"no answer within {seconds} seconds")))
            os._exit(0)

    if event.name != "keep":
        _thread.start_new_thread(watch, ())
    text = reply(event)
    finished.release()
    out.give(text)


def reply(event: Event) -> str:
    """The answer to an event, everything it changed being on disk; a fault of ours is answered too. Never raises."""
    try:
        return _answered(event)
    except BaseException as failed:
        return at_fault(event, failed)


def _answered(event: Event) -> str:
    """The answer of an event, after everything it changed is on disk."""
    if event.name == "keep":
        from stopwarden.hook import keeper

        return keeper.keep(event.session, event.state_dir, event.zone)
    if not event.session:
        raise HostError("the payload names no session", do="Run: stopwarden doctor")
    store = open_existing(event.state_dir, STORE_WAIT if event.name == "stop" else EVENT_STORE_WAIT)
    try:
        return answered_with(store, event)
    finally:
        store.close()


def answered_with(store: Store, event: Event) -> str:
    """The answer of an event of a known session, in one transaction of its own. Raises what `reply` answers."""
    with store.transaction():
        before = store.open_periods()
        periods = end_by_time(store, event.state_dir, event.zone, event.now)
        noted = Noted(store, event.session, event.state_dir, periods, event.zone)
        noted.take(event.told, answering=True)
        _odd(event, noted)
        text = _asked(event, store, noted)
        failed = fault.in_a_row(event.state_dir, event.session) if event.name == "stop" else 0
        if failed:
            noted.line(event.now, "fault", f"{failed} stops before this one could not be judged or recorded")
        noted.save()
        after = store.open_periods()
    if len(after) != len(before):
        from stopwarden.store import marker

        marker.settle(store, event.state_dir)
    if failed:
        fault.all_is_well(event.state_dir, event.session, event.at)
    return text


def _asked(event: Event, store: Store, noted: Noted) -> str:
    if event.name == "stop":
        return at_stop.judged(event, store, noted)
    if event.name in ("session-start", "prompt"):
        return at_event.briefed(event, store, noted)
    if event.name in ("pre-tool", "permission"):
        return at_event.refused(event, store, noted)
    if event.name == "session-end":
        at_event.left(event, noted)
    return ""


def open_existing(state_dir: str, wait: float = STORE_WAIT) -> Store:
    """The database that the marker speaks of.

    One that is gone (set aside as damaged, or deleted) is begun anew and told by the marker what
    holds, so that the night goes on; but this event was judged by nothing and is a fault: raises
    StoreCorruptError, and the other Store…Error classes.
    """
    from stopwarden.store.sqlite import open_sqlite

    if os.path.exists(f"{state_dir}/stopwarden.db"):
        return open_sqlite(state_dir, wait=wait)
    from stopwarden.store import marker

    store = open_sqlite(state_dir, wait=wait)
    try:
        for period in marker.settle(store, state_dir):
            store.append([RecordLine(at=int(time.time()), kind="store_damaged", period=period.id)])
    finally:
        store.close()
    raise StoreCorruptError("the database was gone", kept="a new one was begun with the away period", do="Go on")


def end_by_time(store: Store, state_dir: str, zone: Zone, now: Instant) -> list[AwayPeriod]:
    """Takes over the spool, ends the periods whose time has come, and gives those that were open."""
    periods = store.open_periods()
    take_all(store, spool.facts(store, state_dir), state_dir, periods, zone)
    for period in periods:
        if period.until is not None and now >= period.until and store.end_period(period.id, period.until, "time"):
            store.append([RecordLine(at=period.until, kind="period_ended", period=period.id, text="time")])
    return periods


def _odd(event: Event, noted: Noted) -> None:
    """Records a damaged payload and a stepped clock."""
    if event.damaged:
        noted.line(event.now, "payload_damaged", event.name)
        _complain("the payload could not be read whole; what could be understood was used")
    if event.rehearsed:
        return
    drift = event.now - int(machine.boot_seconds())
    known = noted.row.wall_minus_boot
    if known and noted.row.boot == machine.boot_id() and abs(drift - known) > CLOCK_STEP:
        noted.line(event.now, "clock_stepped", f"{drift - known:+} s")
    noted.row = noted.row.replace(wall_minus_boot=drift, boot=machine.boot_id())


def at_fault(event: Event, failed: BaseException) -> str:
    """The answer when we could not do our work. Never raises."""
    what = fault.named(failed)
    _complain(what)
    try:
        if event.name == "stop":
            told = fault.at_stop(event.state_dir, event.session, event.cwd, event.at, what)
            return claude_code.block_answer(told.text) if told.block else claude_code.notice_answer(told.text)
        asked = event.name in ("pre-tool", "permission")
        if asked and fault.away_holds(event.state_dir, event.session, event.cwd, event.at):
            text = words.refused_permission() if event.name == "permission" else words.refused_question()
            return claude_code.refusal_answer(event.name, text)
    except BaseException as again:
        _complain(f"{fault.named(again)}, while answering that")
    return ""


def _complain(text: str) -> None:
    try:
        os.write(2, f"stopwarden: {text}\n".encode("utf-8", "replace"))
    except OSError:
        pass
