"""What a night was worth: every second of it on one account.

While idle with something pending, a session waits *validly* if a wake would come by its deadline, and
comes. What the world spoils (a silent scheduler, an error, a restart) is the world's. A stop past a
bound, and a look that is seen to be missed, are in the record. What remains is a *quiet stall*:
nobody would know. A session with nothing open and nothing awaited has nothing left to do, whatever
the policy; so a policy is not blamed for a list that is done.
Pure arithmetic; may not live here: time passing, anything of a policy.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from stopwarden.core.bounds import MINUTE, MISSED_LOOK_AFTER
from stopwarden.core.owed import LIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopwarden.core.events import Instant
    from stopwarden.sim.agents import Work

NEVER = 2**40
HOST_CAP = "blocks_without_tools"  # as the judge calls it: past it the host lets the session stop, whatever is answered
CLOSE = 1 * MINUTE  # a wake comes a moment after its time: what is later than this is late


@dataclass(frozen=True)
class Rest:
    """A session at rest between two turns."""

    since: Instant
    until: Instant
    why: str  # what ended the turn before: "stop", "error", "restart"
    bound: str  # the bound by which the record says it ended: "", "blocks_without_tools", …
    promised: Instant  # when its next wake would come if nothing spoiled it
    deadline: Instant  # by when it had to look again
    came: bool  # something did open a turn
    look: Instant | None  # what the record expects as its next look, at the latest

    @property
    def in_time(self) -> bool:
        return self.promised <= self.deadline + CLOSE


@dataclass
class Tally:
    """Seconds of the night by what the session was, and what was counted."""

    working: int = 0
    waiting: int = 0  # for a wake that comes in time
    nothing_left: int = 0  # nothing is open and nothing awaited
    silent_scheduler: int = 0  # a wake was due in time, and the host did not fire it
    after_error: int = 0  # an error ended the turn, and nothing was there to wake it in time
    after_restart: int = 0
    at_host_cap: int = 0  # past the host's own cap on blocks, and the record says so
    at_bound: int = 0  # past a bound of ours, and the record says so
    missed: int = 0  # its wake was late, and the record says that a look was missed
    late: int = 0  # its wake was late by less than what is called missed
    quiet: int = 0  # none of these: nobody would know
    lost: int = 0  # idle while an item of the list could have been worked on, whatever the reason
    lost_waiting: int = 0  # of these, while it waited validly
    turns: int = 0
    forced: int = 0  # blocked stops
    over_run: int = 0  # of these, with nothing to work on and nothing to schedule
    stalls: int = 0  # quiet ones, in number
    done: int = 0  # items really done
    false_ticks: int = 0
    holds_lost: int = 0

    def add(self, other: Tally) -> None:
        """Puts another account to this one."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    @property
    def night(self) -> int:
        """All of its seconds."""
        idle = self.at_bound + self.missed + self.late + self.quiet
        return self.kept + self.world + idle

    @property
    def kept(self) -> int:
        """Working or validly waiting, or with nothing left to do."""
        return self.working + self.waiting + self.nothing_left

    @property
    def world(self) -> int:
        """Seconds that no policy of stops could have saved."""
        return self.silent_scheduler + self.after_error + self.after_restart + self.at_host_cap

    @property
    def share(self) -> float:
        """Of the time that the world allowed, what was kept."""
        allowed = self.night - self.world
        return self.kept / allowed if allowed else 1.0

    @property
    def told_share(self) -> float:
        """What was kept, where time past a recorded bound is left out: no more could be asked of that agent."""
        allowed = self.night - self.world - self.at_bound
        return self.kept / allowed if allowed else 1.0

    @property
    def share_with_errors(self) -> float:
        """What was kept, where what followed an error counts against the policy."""
        allowed = self.night - self.world + self.after_error
        return self.kept / allowed if allowed else 1.0

    def rest(self, rest: Rest, works: Sequence[Work]) -> None:
        """Puts a time at rest to its account."""
        length = rest.until - rest.since
        if length <= 0:
            return
        lost, before = _lost(rest, works), self.waiting
        self.lost += lost
        if not _pending(works):
            self.nothing_left += length
        elif rest.in_time:
            waited = min(length, max(0, rest.promised + CLOSE - rest.since))
            self.waiting += waited
            if rest.why == "restart":
                self.after_restart += length - waited
            else:
                self.silent_scheduler += length - waited
        elif rest.why == "error":
            self.after_error += length
        elif rest.why == "restart":
            self.after_restart += length
        elif rest.bound == HOST_CAP:
            self.at_host_cap += length
        elif rest.bound:
            self.at_bound += length
        else:
            waited = min(length, max(0, rest.deadline - rest.since)) if rest.came else 0
            self.waiting += waited
            self._stalled(rest, length - waited)
        self.lost_waiting += min(lost, self.waiting - before)

    def _stalled(self, rest: Rest, length: int) -> None:
        """Idle past its deadline, and not the world's doing: is it in the record?"""
        if rest.look is not None and rest.until > rest.look + MISSED_LOOK_AFTER:
            self.missed += length
        elif length <= MISSED_LOOK_AFTER:
            self.late += length
        else:
            self.quiet += length
            self.stalls += 1


def _pending(works: Sequence[Work]) -> bool:
    """Something is open, or awaited from outside."""
    return any(work.state in LIVE or work.awaited for work in works)


def _lost(rest: Rest, works: Sequence[Work]) -> int:
    """Seconds of a rest in which an item of the list could have been worked on."""
    since = rest.until
    for work in works:
        if work.state in LIVE and work.doable(rest.since):
            since = rest.since
        elif work.errand.obstacle == "external" and (work.state in LIVE or work.awaited):
            since = min(since, max(rest.since, work.errand.clears_at))
    return rest.until - since
