"""A look that a session declared itself (`stopwarden look --at`): when it counts as a wake, and when not.

Theory of operation. Where a host reports its own wakes, those are judged and a declaration is only
shown. Where it reports none, a declared look may stand in, but only while somebody will keep it:
the session's keeper, or a running `stopwarden watch` whose resume command was seen to wake a
session of that host. `watch` never starts a second program beside an open one, so for a session
in a terminal it keeps nothing. Away alone, and a watch that has gone or hangs, keep nothing.

Whether the look comes early enough is judged like any wake's (`core.away`). May not live here:
running anything.
"""

from __future__ import annotations

from stopwarden import machine, wire
from stopwarden.core.bounds import MINUTE
from stopwarden.core.record import Record
from stopwarden.hook import terms
from stopwarden.hosts import claude_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import Instant
    from stopwarden.store.port import SessionRow, Store

LOOK = "look"  # fact (LOOK, session): the instant it declared
WATCH = ("watch", "all")  # the fact in which a running watch stands
PROVEN = "resume_proven"  # fact (PROVEN, host): digest of the command, and when it was seen to work
HANGS_AFTER = 5 * MINUTE  # a watch that has not looked for so long, or three of its rounds, keeps nothing


class Watch(Record):
    """A `stopwarden watch` as it stands in the store."""

    pid: int
    started: str  # as `machine.started_ticks` says it
    at: Instant  # its last look
    every: int = 60
    resume: str = ""  # digest of its resume command, "" without one


class Declared(Record):
    """A declared look. `why` says why it does not count; "" if it does."""

    at: Instant
    why: str = ""

    @property
    def counts(self) -> bool:
        return not self.why


def declared_look(store: Store, session: str, host: str, now: Instant) -> Instant | None:
    """The look that this session declared, if it is still to come and will be kept; else None.

    To be asked only where the host reports no wakes (`stop.wakes is None`).
    """
    told = declared(store, session, host, now)
    return told.at if told is not None and told.counts and told.at > now else None


def declared(store: Store, session: str, host: str, now: Instant) -> Declared | None:
    """What a session declared last, past or to come, and whether somebody keeps it. None: nothing."""
    said = store.fact(LOOK, session)
    if not (said.isascii() and said.isdigit()):
        return None
    at = int(said)
    row = store.session(session)
    if row is None:
        return Declared(at=at, why="nothing was heard of that session yet")
    return Declared(at=at, why=_why_not_kept(store, row, host, now))


def running_watch(store: Store, now: Instant) -> Watch | None:
    """The `stopwarden watch` that runs now and looks regularly, or None."""
    try:
        told = Watch(**wire.loads(store.fact(*WATCH) or "null"))
    except (ValueError, TypeError):
        return None
    hangs = abs(now - told.at) > max(HANGS_AFTER, 3 * told.every)
    return None if hangs or not machine.is_alive(told.pid, told.started) else told


def is_proven(store: Store, host: str, command: str) -> bool:
    """Whether the resume command of this digest was seen to wake a session of that host."""
    return bool(command) and store.fact(PROVEN, host).partition(" ")[0] == command


def _why_not_kept(store: Store, row: SessionRow, host: str, now: Instant) -> str:
    keeper = store.keeper(row.id)
    if keeper is not None and machine.is_alive(keeper.pid, keeper.started) and _keeper_allowed(store, row, now):
        return ""
    watch = running_watch(store, now)
    if watch is None:
        return "no keeper lives and no `stopwarden watch` runs"
    if not watch.resume:
        return "`stopwarden watch` runs without --resume"
    if not is_proven(store, host, watch.resume):
        return "its resume command is not proven for this host: stopwarden watch --prove"
    if not claude_code.is_script(row.entrypoint):
        return "watch resumes no session whose program stays open"
    return ""


def _keeper_allowed(store: Store, row: SessionRow, now: Instant) -> bool:
    period = terms.period_of(row, store.open_periods(), now)
    return period is not None and terms.policy_of(store, period).keeper
