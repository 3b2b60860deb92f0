"""One session through one night under one policy, on a virtual clock.

The night's plan says what the world does, the agent what it does in a turn, the guard what a stop is
answered; the host is Claude Code's, as measured: a wake opens a turn only while the session is
idle, the ninth block in a row without a tool ends the turn, an error of the provider ends it without
a stop, a restart keeps cron wakes and loses self-paced ones. Session state goes through the very
functions the hook uses (`core.session`, `judge`, `commit`, the keeper's `due`).

Every second is put to one account (`sim.tally`).
May not live here: chance (`sim.plans`), what a rest was worth (`sim.tally`), many nights and their table
(`sim.comparison`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stopwarden.core import leases, wakes
from stopwarden.core.bounds import HOST_CAP_DEFAULT, MINUTE, Policy
from stopwarden.core.errors import HostError, ScheduleError
from stopwarden.core.events import (
    AwayPeriod,
    BackgroundTask,
    Item,
    Reservation,
    Scheduler,
    SessionState,
    Stop,
    World,
)
from stopwarden.core.judge import commit
from stopwarden.core.owed import LIVE
from stopwarden.core.session import heard, tool_used
from stopwarden.sim import agents, scheduler
from stopwarden.sim.agents import Told, Work
from stopwarden.sim.keeping import Keeper
from stopwarden.sim.plans import VANISHES, ZONE
from stopwarden.sim.policies import turn_begins
from stopwarden.sim.tally import CLOSE, NEVER, Rest, Tally
from stopwarden.store.port import SessionRow

if TYPE_CHECKING:
    from stopwarden.core.events import Instant, Verdict
    from stopwarden.sim.plans import Plan
    from stopwarden.sim.policies import Guard
    from stopwarden.sim.scheduler import Scheduled

SESSION, COPY = "s1", "c1"
SCHEDULER = Scheduler(jitter="claude_code")
RESTART_TAKES = 2 * MINUTE
FAILS_AFTER = 1 * MINUTE  # until a turn gives up on a provider that does not answer


@dataclass
class _Cut(Exception):
    """The turn ends in the middle, without a stop: "error" or "restart"."""

    why: str
    resets: Instant | None = None


@dataclass
class _End:
    """How the last turn ended."""

    since: Instant
    why: str  # "stop", "error", "restart"
    bound: str = ""  # the bound by which the record says it ended


@dataclass
class SessionNight(agents.Machine):
    """One session, one night. `play` runs it."""

    plan: Plan
    guard: Guard
    policy: Policy = Policy()  # noqa: RUF009 - a Record is immutable
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        plan = self.plan
        self.now, self.zone = plan.since, ZONE
        self.works = [Work(errand=one, left=float(one.minutes), title=f"do {one.id}") for one in plan.errands]
        self.wakes: list[Scheduled] = []
        self.background: list[BackgroundTask] = []
        self.state = SessionState(id=SESSION)
        self.row = SessionRow(id=SESSION)
        self.period = AwayPeriod(
            id="p1", since=plan.since, until=plan.until, scope="session", session=SESSION, until_done=plan.until_done
        )
        self.hold: Reservation | None = None
        self.asked_safety_wake = False
        self.keeper = Keeper(self.policy)
        self.last: Verdict | None = None
        self._turn = self._act = self._made = 0
        self._blocks_in_a_row = 0  # the host's own count
        self._tool_ran = False

    def play(self) -> Tally:
        """The whole night."""
        rest = self._take_turn(Told(by="person", reason=self._briefing()))
        while self.now < self.plan.until:
            told = self._wait(rest)
            if told is None:
                break
            rest = self._take_turn(told)
        self.tally.done = sum(work.left <= 0 for work in self.works)
        self.tally.false_ticks = sum(work.state == "done" and work.left > 0 for work in self.works)
        return self.tally

    def _briefing(self) -> str:
        """What a session is told at its first prompt by a policy that keeps an account of wakes."""
        if self.guard.by_turn:
            return ""
        deadline = self.now + self.policy.look_without_reservation
        call = wakes.suggest(self.now, deadline, SCHEDULER, self.zone, self._evidence)
        return f"Before anything else schedule a safety wake, in case an error ends a turn: {call}."

    @property
    def _evidence(self) -> str:
        return "nominal" if self.guard.name == "nominal" else self.policy.wake_evidence

    # a turn

    def _take_turn(self, told: Told) -> _End:
        """One turn to its end, whatever ends it."""
        begins = self.now
        self._turn += 1
        self.tally.turns += 1
        self._blocks_in_a_row = 0
        self._event("prompt")
        self.state = turn_begins(self.guard, self.state, told.by)
        try:
            rest = self._go_on(told)
        except _Cut as cut:
            rest = self._cut_off(cut)
        self.tally.working += max(0, min(self.now, self.plan.until) - begins)
        rest.since = self.now
        return rest

    def _go_on(self, told: Told) -> _End:
        """Deeds and stops, until one is allowed or the host has had enough."""
        while True:
            self._act += 1
            dice = self.plan.dice(self._turn, self._act)
            self._tool_ran = False
            self._pass(5)
            agents.act(self, agents.temper_of(self.plan.temper, dice, self.plan.dice("temper")), told, dice)
            verdict = self._stop()
            if not verdict.block:
                return _End(self.now, "stop", self.state.bound)
            self._blocks_in_a_row = 1 if self._tool_ran else self._blocks_in_a_row + 1
            if self._blocks_in_a_row > HOST_CAP_DEFAULT or self.now >= self.plan.until:
                return _End(self.now, "stop", self.state.bound)
            told = Told(by="block", reason=verdict.reason, item=verdict.owed[0] if verdict.owed else "")
            self._pass(5)

    def _cut_off(self, cut: _Cut) -> _End:
        if cut.why == "error":
            self.row = self.row.replace(
                last_event="stop-failure",
                error="error",
                error_at=self.now,
                error_resets_at=cut.resets,
                errors_in_a_row=self.row.errors_in_a_row + 1,
            )
            self.keeper.starts()
            self.last = None
        else:
            self._restart()
        return _End(self.now, cut.why)

    def _restart(self) -> None:
        """The program dies and is started again: self-paced wakes, background and the keeper are gone."""
        self.now += RESTART_TAKES
        self.wakes = [wake for wake in self.wakes if wake.kind == "recurring" or self._survives(wake)]
        for wake in self.wakes:
            if wake.recurring and wake.fires_at <= self.now:
                scheduler.advance(wake, self.now, self.zone)
        self.background = []
        self.keeper.ends()
        self.row = self.row.replace(last_event="session-start")

    def _survives(self, wake: Scheduled) -> bool:
        return not wake.id.startswith("f") and wake.fires_at > self.now  # ids of self-paced wakes begin with f

    # what the agent can do

    def use(self, minutes: float = 0.1) -> None:
        self._pass(int(minutes * MINUTE))
        self._tool_ran = True
        self._event("post-tool")
        self.state = tool_used(self.state, self.now)

    def say(self, seconds: int) -> None:
        self._pass(seconds)

    def create(self, schedule: str, *, recurring: bool) -> None:
        self.use()
        try:
            made = scheduler.create(
                self._id("0"), schedule, recurring=recurring, now=self.now, zone=self.zone, says=self.plan.says
            )
        except (ScheduleError, HostError):
            return  # the tool refuses it
        self._keep(made)

    def pace(self, delay: int) -> None:
        self.use()
        self._keep(scheduler.pace(self._id("f"), delay, now=self.now, zone=self.zone, says=self.plan.says))

    def leave_running(self, command: str) -> None:
        self.background = [*self.background[-2:], BackgroundTask(id="b", type="shell", description=command)]

    def _keep(self, wake: Scheduled) -> None:
        """Two of a kind are enough: the older one is deleted."""
        alike = [one for one in self.wakes if one.recurring == wake.recurring]
        if len(alike) >= 2:
            self.wakes.remove(alike[0])
        self.wakes.append(wake)

    def _id(self, first: str) -> str:
        self._made += 1
        return first + f"{self.plan.dice('wake', self._made).getrandbits(28):07x}"

    def _pass(self, seconds: int) -> None:
        """Time goes by in a turn, unless the world ends it."""
        until = self.now + seconds
        trouble = self.plan.trouble(self.now)
        if trouble is not None:
            self.now += FAILS_AFTER
            raise _Cut("error", trouble.until if trouble.limit else None)
        begins = [one.since for one in self.plan.troubles if self.now < one.since <= until]
        ends = [(at, "error") for at in (*self.plan.errors, *begins) if self.now < at <= until]
        ends += [(at, "restart") for at in self.plan.restarts if self.now < at <= until]
        if ends:
            self.now, why = min(ends)
            trouble = self.plan.trouble(self.now)
            raise _Cut(why, trouble.until if trouble is not None and trouble.limit else None)
        self.now = until

    def _event(self, event: str) -> None:
        """A sign of life: looks are met or missed, holds are renewed past half their lease."""
        self.state, _ = heard(self.state, self.now, by_stop=event == "stop")
        if event in ("stop", "post-tool") and self.row.error:
            self.row = self.row.replace(error="", error_at=None, error_resets_at=None, errors_in_a_row=0)
        self.row = self.row.replace(last_event=event, last_event_at=self.now)
        self._renew()

    def _renew(self) -> None:
        if not self.plan.lease:
            return
        if self.hold is not None and not leases.is_live(self.hold, self.now):
            self.tally.holds_lost += 1
            self.hold = None
        if self.hold is None or self.now >= leases.renewal_due(self.hold):
            live = [work.errand.id for work in self.works if work.state in LIVE]
            self.hold = (
                Reservation(
                    item=live[0],
                    session=SESSION,
                    copy=COPY,
                    claimed_at=self.now,
                    expires_at=self.now + self.plan.lease,
                )
                if live
                else None
            )

    # a stop

    def _stop(self) -> Verdict:
        """The stop judged and committed, as the hook does."""
        self._event("stop")
        self._vanish()
        stop = Stop(
            session=SESSION,
            at=self.now,
            prompt=f"prompt-{self._turn}",
            wakes=tuple(wake.listed() for wake in self.wakes),
            background=tuple(self.background),
        )
        verdict = self.guard.judge(stop, self.state, self._world(), self.policy)
        if verdict.block:
            self.tally.forced += 1
            self.tally.over_run += self._over_run()
            self.asked_safety_wake = True
        self.state = commit(self.state, verdict)
        self.last = verdict
        self.keeper.starts()
        return verdict

    def _world(self) -> World:
        """All that the hook gathers at a stop."""
        return World(
            zone=self.zone,
            period=self.period,
            items=tuple(
                Item(id=work.errand.id, title=work.title, state=work.state, waits_on=work.waits_on, source="TODO.md")
                for work in self.works
            ),
            reservations=self._holds(),
            copy=COPY,
            scheduler=SCHEDULER,
            kept_look=self.keeper.look(self._holds(), COPY, self.now),
            ask_safety_wake=not self.asked_safety_wake,
        )

    def _holds(self) -> tuple[Reservation, ...]:
        return () if self.hold is None else (self.hold,)

    def _deadline(self) -> Instant:
        """By when a session that rests now must look again, whatever its policy."""
        return leases.deadline(self._holds(), COPY, self.now, Policy())

    def _over_run(self) -> bool:
        """Whether a block now asks for what cannot be: nothing can be worked on, and a wake comes already."""
        if any(work.state in LIVE and work.doable(self.now) for work in self.works):
            return False
        return self._promised() <= self._deadline() + CLOSE

    # at rest

    def _promised(self) -> Instant:
        """When the next wake would come if nothing spoiled it."""
        return max(self.now, min((wake.fires_at for wake in self.wakes), default=NEVER))

    def _wait(self, rest: _End) -> Told | None:
        """Idle until something opens a turn; None: the night is over. What the time was is put to the account."""
        self._vanish()
        deadline = self._deadline()
        kept = self._keeper_due()
        promised = min(self._promised(), NEVER if kept is None else max(kept, self.now))
        began, until = self.now, self.plan.until
        told: Told | None = None
        while told is None and self.now < until:
            kept = self._keeper_due()
            happens = min(
                (at, what)
                for at, what in (
                    (self._fires(), "wake"),
                    (NEVER if kept is None else max(kept, self.now + 1), "kept"),
                    (min((at for at in self.plan.restarts if at > self.now), default=NEVER), "restart"),
                    (until, "over"),
                )
            )
            self.now = happens[0]
            if happens[1] == "wake":
                told = Told(by="wake")
                self._fired()
            elif happens[1] == "kept":
                self.state = self.keeper.wakes(self.state, self.now)
                self.row = self.row.replace(last_event="kept-look", last_event_at=self.now)
                told = Told(by="wake")
            elif happens[1] == "restart":
                self._restart()
                if promised <= deadline + CLOSE and rest.why == "stop":
                    rest = _End(rest.since, "restart")
            else:
                break
        self.tally.rest(
            Rest(
                since=began,
                until=min(self.now, until),
                why=rest.why,
                bound=rest.bound,
                promised=promised,
                deadline=deadline,
                came=told is not None,
                look=self.state.next_look_latest,
            ),
            self.works,
        )
        return told

    def _vanish(self) -> None:
        """A one-shot that the host lost is listed until its time, and never fired."""
        self.wakes = [wake for wake in self.wakes if wake.fires_at > self.now or self._really(wake) != NEVER]

    def _fires(self) -> Instant:
        """When a wake really opens a turn: what the scheduler's silence leaves of them."""
        return max(self.now + 1, min(map(self._really, self.wakes), default=NEVER))

    def _really(self, wake: Scheduled) -> Instant:
        if not wake.recurring and self.plan.dice("vanishes", wake.id).random() < VANISHES:
            return NEVER
        silent = self.plan.silent
        if silent is not None and silent[0] <= max(wake.fires_at, self.now) < silent[1]:
            return silent[1]
        return wake.fires_at

    def _fired(self) -> None:
        """What is due has fired, all at once: one turn."""
        due = [wake for wake in self.wakes if self._really(wake) <= self.now]
        for wake in due:
            if wake.recurring:
                scheduler.advance(wake, self.now, self.zone)
        self.wakes = [wake for wake in self.wakes if wake.recurring or wake not in due]

    def _keeper_due(self) -> Instant | None:
        return self.keeper.due(self.row, self.state, block_stands=self.last is not None and self.last.block)
