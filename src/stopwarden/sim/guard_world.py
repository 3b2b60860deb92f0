"""The scripted world of a guard simulation: a person with two clients, model, tools, hooks, work, and the bridge.

Theory of operation. A step of the plan picks one of MOVES by weight among those
that are possible, and plays it on one virtual clock. Faults change how a thing is answered, never
what is asked. After the last step the world is `healed`: no faults, everything is answered, time
passes, the person says one more thing; then nothing may be left over.

A stray answer is no fault of a legal world and does not occur: an IllegalEventError breaks a promise.
May not live here: promises and counts (`guard_book`), seeds (`guard_run`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import backlog_events as waits
from stopwarden.core import door_events as asks
from stopwarden.core import queue as queues
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.core.door import OUTSIDE
from stopwarden.core.queue_move import live_queued
from stopwarden.sim.guard_faults import Choices
from stopwarden.sim.guard_neighbour import Neighbour
from stopwarden.sim.guard_wire import CLIENTS, SESSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.sim.guard_faults import Plan

CLOSED_IN = 12  # so many seeds, one of those that end put away is closed by the owner too
LOADED_IN = 4  # so many seeds, one begins with a session that is loaded
# After these, what was tried in vain and what a paused chain holds back waits for the person's next prompt.
WAITS_FOR_A_PROMPT = frozenset({"refused_send", "outage", "broken_send", "no_room", "failing_hook"})
PROMPTS, QUIET_STEPS = 3, 4_000  # PROMPTS: an eager person has at most so many waiting


GAP_TURNS = 40


class World(Neighbour):
    """One history."""

    def __init__(self, plan: Plan, told: list[str] | None = None) -> None:
        super().__init__(plan, told)
        self.moves = tuple(move for move in MOVES if not move[1] or move[1] in self.habits)
        if plan.seed % LOADED_IN == 0:
            self.was_there_before()
            self.feed(asks.LoadBegan(first=self.life_from))

    # ---- moves: time

    def pass_time(self) -> None:
        """A moment passes; with a silent bridge, more than it has to answer; when all is quiet, perhaps an hour."""
        if self.fault("clock_step", 4):
            self.now = max(0, self.now + (-5_000, 60_000)[self.choices.below(2)])
        elif (self.calls or self.answers) and self.fault("silent_bridge", 2):
            self.now += DRAIN_DEADLINE_MS
        else:
            idle = not (self.calls or self.answers or self.orders or self.open)
            self.now += (3_600_000, 40_000, 5_000, 1_000)[self.choices.below(4)] if idle else 20
        self.feed(ev.Tick(now=self.now))

    def ring(self) -> None:
        """A timer of the owner's runs out."""
        due, number = min(self.timers)
        self.timers.remove((due, number))
        if self.now < due:
            self.now = due
        if any(one.timer == number for one in self.queue.forwards):
            self.book.race("settle deadline")
        self.owner(q.TimerFired(at=0, effect=number))

    def due(self) -> bool:
        """Whether a timer has run out; a silent child lets it come to that."""
        return bool(self.timers) and (min(self.timers)[0] <= self.now or "lost_cancel" in self.faults)

    def guard_knocks(self, kind: type[ev.Effect] = ev.Send) -> bool:
        """Whether the guard prepares a stream, and waits just now for an answer to this: where races are."""
        turn = self.state.turn
        if turn is None or turn.waiting is None or not turn.stream.attempt:
            return False
        return turn.waiting.what == ("send" if kind is ev.Send else "drain")

    def hooks_are_out(self) -> bool:
        """Whether the Stop hooks think, and no prompt waits yet."""
        turn = self.state.turn
        out = turn is not None and turn.waiting is not None and turn.waiting.what == "hooks"
        return out and len(self.queue.entries) == 1

    def works(self) -> bool:
        """Whether background work can tell of itself."""
        return bool(self.tasks) and not self.state.door.loading

    def quiet(self) -> bool:
        """Whether nothing runs in the session, and no prompt is on its way to it."""
        state = self.state
        idle = state.turn is None and state.next is None and state.starting is None
        return idle and not state.arriving and not state.door.loading

    # ---- steps

    def play(self, number: int) -> None:
        """One step of the plan."""
        self.choices = Choices(number)
        possible = [move for move in (DOWN if self.down else self.moves) if move[2](self)]
        place = self.choices.below(sum([move[0] for move in possible]))
        for weight, _, _, act in possible:
            place -= weight
            if place < 0:
                if self.told is not None:
                    self.say((act.__doc__ or "").strip().rstrip(".").split("\n")[0])
                act(self)
                break
        self.check()

    def check(self) -> None:
        """I3, the one promise about a flag: once all is quiet, nobody waits for a prompt that is not there."""
        if self.calls or self.answers or self.orders or self.open or not self.quiet() or live_queued(self.queue):
            return
        if self.down:
            return
        self.book.checked("I3")
        if self.state.chain.priority:
            self.book.wrong(f"I3: {self.state.chain.priority_owner} waits for a queued prompt, and none is there")
        if self.queue.wait_owner is not None:
            self.book.wrong(f"I3: the owner remembers a wait of {self.queue.wait_owner}, and no prompt is queued")

    def heal(self, *, dispose: bool) -> None:
        """The world becomes obliging; then everything owed must come to an end."""
        self.say("From here on nothing goes wrong any more")
        self.faults, self.healed = frozenset(), True
        self.choices = Choices(0)
        self._come_back()
        if dispose:
            if self.plan.seed % CLOSED_IN == 0:
                self.owner(q.Close(at=0))
            self.feed(ev.Disposed())
            self._settle()
            if self.queue.closing:
                self._open_again()
            self.say("The session is put away, and loaded again")
            self.end_process()
            self._come_back()
        if self.state.door.holder == OUTSIDE:
            self.feed(ev.GateReleased())
        if self.state.chain.plan:
            self.feed(ev.ModeChanged(plan=False))
        if self.period:
            self.go_away()
        self._wait_out()
        while self.tasks and not self.book.broken:
            self.finish_task()
        self._settle()
        if not self.book.broken:
            self.feed(waits.PersonLooks())  # what could not be shown before is shown now
            self.prompt()
            self._settle()
        for _ in range(GAP_TURNS):  # a notice names so many gap entries, the next turn the next ones
            if not self.book.broken and self.book.witness.untold():
                self.prompt()
                self._settle()
        if not self.book.broken:
            self._nothing_left()

    def _open_again(self) -> None:
        """The owner has closed the session's queue; when the session is wanted again, it opens another."""
        if not self.queue.closed:
            self.book.wrong("Rest: a queue that is to be closed never is")
        self.calls.clear()
        self.timers.clear()
        self.queue = queues.open_queue(SESSION, self.child)
        for client in CLIENTS:
            self.owner(q.ClientJoined(at=0, client=client))

    def _come_back(self) -> None:
        """There is an agent process again."""
        while self.down:
            if self.calls:
                self.hear_call()
            else:
                self.restart()

    def _wait_out(self) -> None:
        """Background work runs for hours: a scheduled prompt is held back no longer than the limit."""
        self._settle()
        self._settle()
        if not WAITS_FOR_A_PROMPT & set(self.plan.faults):
            held = [one for one, what in self.book.owed.items() if what == "the scheduled prompt"]
            self.book.checked("Waiting")
            held = [one for one in held if not self.book.where.get(one) and one not in self.book.named]
            if held:
                self.book.wrong(f"Waiting: {', '.join(held)} is held back for ever by background work")

    def _settle(self) -> None:
        """Everything is answered, and time passes until nothing happens any more."""
        for _ in range(QUIET_STEPS):
            if self.book.broken:
                return
            act = next((act for waits_now, act in SETTLING if waits_now(self)), None)
            if act is not None:
                act(self)
            elif self.timers:
                self.ring()
            else:  # also after a clock that went back: time passes for the session only beyond what it has seen
                self.now = max(self.now, self.state.now, self.state.retry_at, self.state.door.again_at) + 3_600_000
                self.feed(ev.Tick(now=self.now))
                if not any(waits_now(self) for waits_now, _ in SETTLING):
                    self.check()
                    return
        self.book.wrong("Rest: the healed world does not come to rest")

    def _nothing_left(self) -> None:
        self.book.checked("Rest")
        left = [entry.prompt for entry in self.queue.entries] + [one.message for one in self.queue.messages]
        if left:
            self.book.wrong(f"Rest: the owner still holds {', '.join(left)}")
        if not self.quiet():
            self.book.wrong("Rest: a turn or a prompt does not come to an end")
        if self.state.door.moves or (self.state.chain.closing and not self.state.chain.disposed):
            self.book.wrong("Rest: the gate is never opened again")
        if self.runs:
            self.book.wrong(f"Rest: {', '.join(self.runs)} never settled")
        self.book.settled()


# Weight, the habit it takes ("" for none), when it is possible, and what happens.
MOVES: tuple[tuple[int, str, Callable[[World], bool], Callable[[World], None]], ...] = (
    (80, "", lambda world: bool(world.open), World.answer),
    (60, "", lambda world: bool(world.calls), World.hear_call),
    (60, "", lambda world: bool(world.answers), World.hear_answer),
    (50, "", lambda world: bool(world.orders), World.hear_order),
    (20, "", lambda world: bool(world.reads), World.read_attachments),
    (3, "", lambda world: True, World.pass_time),
    (40, "", lambda world: world.state.turn is None and world.state.retry_at > world.state.now, World.pass_time),
    (2, "", World.due, World.ring),
    (20, "", lambda world: not world.queue.entries, World.prompt),
    (5, "eager", lambda world: len(world.queue.entries) < PROMPTS, World.prompt),
    (5, "talks", lambda world: bool(world.queue.entries), World.message),
    (10, "takes_back", lambda world: bool(live_queued(world.queue)), World.remove_prompt),
    (
        50,
        "takes_back",
        lambda world: world.queue.wait_owner is not None and bool(live_queued(world.queue)),
        World.remove_prompt,
    ),
    (2, "takes_back", lambda world: bool(world.queue.messages), World.remove_message),
    (10, "takes_back", lambda world: world.state.next is not None, World.withdraw),
    (1, "cancels", lambda world: bool(world.queue.entries), World.cancel),
    (1, "cancels", lambda world: True, World.cancel_here),
    (90, "cancels", lambda world: bool(world.queue.releases), World.cancel_here),
    (90, "plans", lambda world: bool(world.queue.releases) and not world.state.chain.plan, World.change_mode),
    (40, "cancels", World.guard_knocks, World.cancel_here),
    (40, "plans", lambda world: world.guard_knocks() and not world.state.chain.plan, World.change_mode),
    (40, "talks", lambda world: world.guard_knocks(ev.Drain), World.message),
    (30, "eager", lambda world: world.guard_knocks(ev.Drain) and len(world.queue.entries) < 2, World.prompt),
    (120, "eager", World.hooks_are_out, World.prompt),
    (1, "plans", lambda world: not world.state.chain.plan, World.change_mode),
    (15, "", lambda world: world.state.chain.plan, World.change_mode),
    (1, "switches", lambda world: world.state.chain.guard.switch == "on", World.set_switch),
    (15, "", lambda world: world.state.chain.guard.switch != "on", World.set_switch),
    (1, "switches", lambda world: True, World.set_budget),
    (1, "", lambda world: True, World.look),
    (3, "moves", World.quiet, World.rewind),
    (1, "moves", World.quiet, World.clear),
    (2, "moves", lambda world: not world.state.chain.closing, World.gate),
    (15, "", lambda world: world.state.door.holder == OUTSIDE, World.gate),
    (2, "moves", lambda world: len(world.state.door.moves) < 2, World.move),
    (8, "", World.works, World.finish_task),
    (2, "", World.works, World.pause_task),
    (1, "floods", World.works, World.pulse),
    (2, "schedules", lambda world: not world.state.door.loading, World.fire),
    (4, "", lambda world: bool(world.shows), World.show_gaps),
    (4, "leaves", lambda world: not world.period, World.go_away),
    (1, "leaves", lambda world: bool(world.period), World.go_away),
    (1, "leaves", lambda world: bool(world.period), World.holds_change),
    (6, "leaves", lambda world: bool(world.period), World.work_goes_on),
    (1, "shares", lambda world: True, World.misaddress),
    (6, "shares", lambda world: "clock_step" not in world.faults, World.share),
)
# While there is no agent process: what its owner and the person do.
DOWN: tuple[tuple[int, str, Callable[[World], bool], Callable[[World], None]], ...] = (
    (60, "", lambda world: bool(world.calls), World.hear_call),
    (30, "", lambda world: world.queue.child is None, World.restart),
    (20, "", lambda world: bool(world.reads), World.read_attachments),
    (3, "", lambda world: True, World.pass_time),
    (2, "", World.due, World.ring),
    (10, "", lambda world: len(world.queue.entries) < PROMPTS, World.prompt),
    (5, "", lambda world: bool(world.queue.entries), World.message),
    (5, "", lambda world: bool(live_queued(world.queue)), World.remove_prompt),
    (2, "", lambda world: bool(world.queue.messages), World.remove_message),
    (1, "", lambda world: bool(world.queue.entries), World.cancel),
    (1, "", lambda world: True, World.look),
)
SETTLING: tuple[tuple[Callable[[World], bool], Callable[[World], None]], ...] = (
    (lambda world: bool(world.calls), World.hear_call),
    (lambda world: bool(world.answers), World.hear_answer),
    (lambda world: bool(world.orders), World.hear_order),
    (lambda world: bool(world.reads), World.read_attachments),
    (lambda world: bool(world.open), World.answer),
    (lambda world: bool(world.shows), World.show_gaps),
)
