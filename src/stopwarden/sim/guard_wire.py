"""The two machines of a guard simulation, and the connection between them.

The session (`core/turn`) and the owner of its prompts (`core/queue`) hear each other through `calls`
(session to owner), `answers` and `orders` (owner to session), each in order, though answers and orders
overlap as on a real connection. What the session asks of its own process lies in `open`. Faults of
the bridge change how a thing is answered, never what is asked. All that goes in and out is written in
the book. May not live here: who does what next (`guard_world`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import away_words as away
from stopwarden.core import backlog_events as waits
from stopwarden.core import chain_words as words
from stopwarden.core import door_events as asks
from stopwarden.core import queue as queues
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.chain import tombstones
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.gaps import ReadGaps, ShowGaps
from stopwarden.core.turn import step
from stopwarden.core.turn_state import Session
from stopwarden.sim.guard_book import Book
from stopwarden.sim.guard_disk import Disk
from stopwarden.sim.guard_faults import Choices
from stopwarden.sim.guard_races import ON_QUEUE, ON_SESSION, look
from stopwarden.sim.guard_words import plain

if TYPE_CHECKING:
    from stopwarden.core.lineage import Task
    from stopwarden.core.record import Record
    from stopwarden.sim.guard_faults import Plan

SESSION, CLIENTS = "s", ("desk", "phone")
JUDGED_TWICE = 31  # a mask: one event in so many and one is stepped a second time
HOOK_CAP = 2  # blocks of the Stop hooks in a row: small, so that it is reached
CRASHES = 3  # at most so many in one history


class Wire:
    """One history's two machines, and what lies between them."""

    def __init__(self, plan: Plan, told: list[str] | None = None) -> None:
        self.plan, self.told = plan, told
        self.faults, self.habits = frozenset(plan.faults), frozenset(plan.habits)
        self.book = Book()
        self.state: Session = Session(hooks="hooks" in plan.habits, hook_cap=HOOK_CAP)
        self.disk = Disk()
        self.lives, self.life_from, self.down = 1, 1, False  # of the agent process
        self.child = "child1"
        self.queue: q.Queue = queues.open_queue(SESSION, self.child)
        self.choices = Choices(0)
        self.now = 0
        self.events = 0
        self.open: dict[int, ev.Effect] = {}
        self.begun: dict[int, None] = {}  # streams that the provider accepted
        self.cut: dict[int, None] = {}  # effects that were aborted
        self.calls: list[q.QueueEvent] = []
        self.answers: list[ev.Answer | waits.GapsRead] = []
        self.orders: list[q.Effect] = []
        self.reads: list[q.ResolveMessages] = []
        self.timers: list[tuple[int, int]] = []
        self.registered: dict[str, bool] = {}  # turns for results that the owner was asked about
        self.runs: dict[str, int] = {}  # what the child owes a PromptSettled for
        self.denied: dict[str, None] = {}
        self.release = 0
        self.shows: list[ShowGaps] = []
        self.sends: list[str] = []  # messages to agents under way
        self.tasks: tuple[Task, ...] = ()  # background work there is
        self.outage = 0  # so many sends more are refused
        self.names, self.prompts = 0, 0
        self.healed = False
        for client in CLIENTS:
            self.owner(q.ClientJoined(at=0, client=client))

    # ---- the two machines

    def say(self, line: str) -> None:
        """A line of the story."""
        if self.told is not None:
            self.told.append(f"{self.now / 1000:9.1f}s  {line}")

    def name(self, kind: str) -> str:
        """A new name."""
        self.names += 1
        return f"{kind}{self.names}"

    def fault(self, name: str, one_in: int = 3) -> bool:
        """Whether this fault strikes now."""
        if name not in self.faults or not self.choices.one_in(one_in):
            return False
        self.book.hit(f"fault {name}")
        return True

    def feed(self, event: Record) -> None:
        """The session takes an event, unless its process is gone. The process may end before any effect of it."""
        if self.down:
            return
        book, kind = self.book, type(event).__name__
        book.hit(f"event {kind}")
        book.checked("Legal")
        self.events += 1
        if isinstance(event, ev.DrainAnswered) and event.id in self.state.late_drains and event.parts:
            book.race("late drain")
        if isinstance(event, ev.ClaimAnswered) and event.id in book.claims and not self._waits_for(event.id):
            book.race("late claim")
        look(ON_SESSION, self, event)
        book.heard(event)
        before = self.state
        try:
            self.state, effects = step(before, event)
        except IllegalEventError as error:
            book.wrong(f"Legal: {error}")
            return
        if not self.events & JUDGED_TWICE:
            book.checked("I8")
            if (self.state, effects) != step(before, event):
                book.wrong(f"I8: {kind} has two outcomes on one state")
        if self.told is not None:
            self.say(f"  the session hears: {plain(event)}")
        odds = 2 if self.disk.stages_ours else 8 if self.queue.drain is not None else 50  # the worst moments are rare
        crash = self.lives <= CRASHES and self.fault("crash", odds)
        done = self.choices.below(len(effects) + 1) if crash else len(effects)
        for effect in effects[:done]:
            self.do(effect)
        if crash:
            self.crash(event, effects[done:])
            return
        if isinstance(event, ev.QueueReleased):
            book.tombstones(effects, len(tombstones(self.state.chain)) > len(tombstones(before.chain)))

    def do(self, effect: ev.Effect) -> None:
        """An effect of the session is carried out: on disk what belongs there, and on its way."""
        if self.told is not None:
            self.say(f"    it {plain(effect)}")
        self.disk.write(effect)
        self.book.done(effect, self.state.chain.number)
        self._take(effect)

    def crash(self, event: Record, undone: tuple[ev.Effect, ...]) -> None:
        """The agent process ends. What it had not written is gone, and of what it had said the last may be."""
        self.say(f"The agent process dies, {len(undone)} effects of {type(event).__name__} not carried out")
        self.book.crashed(self.disk, event, undone)
        self.calls = self.calls[: self.choices.below(len(self.calls) + 1)]
        self.end_process()

    def end_process(self) -> None:
        """There is no agent process: what it was asked and what it had asked for in memory is nobody's any more."""
        self.down, self.state = True, Session()
        for under_way in (self.open, self.begun, self.cut, self.runs, self.registered, self.denied):
            under_way.clear()
        for heard_by_it in (self.answers, self.orders, self.shows, self.sends):
            heard_by_it.clear()
        self.release = 0
        self.calls.append(q.ChildGone(at=0, child=self.child))

    def restart(self) -> None:
        """A new agent process loads the session: history first, then what waits, then the modes; prompts come last."""
        self.lives += 1
        self.child, self.down = f"child{self.lives}", False
        self.say(f"A new agent process loads the session as {self.child}")
        self.life_from = self.disk.last_id + 1
        self.tasks = tuple(task.replace(state="paused") for task in self.tasks if task.kind == "agent")
        self.book.restarted(self.now)
        self.state = Session(hooks="hooks" in self.plan.habits, hook_cap=HOOK_CAP, now=self.now)
        self.disk.process_gone()
        self.feed(asks.LoadBegan(first=self.life_from))
        if self.disk.cancelled:
            self.feed(ev.Cancelled())
        if self.book.plan:
            self.feed(ev.ModeChanged(plan=True))
        if self.book.away:
            self.feed(away.AwaySet(period=self.book.away))
        if self.book.switch != "on":
            self.feed(ev.SwitchSet(switch=self.book.switch))
        self.owner(q.ChildCame(at=0, child=self.child))

    def _waits_for(self, number: int) -> bool:
        turn = self.state.turn
        return turn is not None and turn.waiting is not None and turn.waiting.id == number

    def _take(self, effect: ev.Effect) -> None:
        """What the session asks for is on its way."""
        match effect:
            case ev.Drain():
                self._ask_drain(effect)
            case ev.Claim():
                self._ask_claim(effect)
            case ev.Abort():
                self._abort(effect)
            case ev.RegisterTurn():
                self._register(effect)
            case ev.EndTurn():
                if self.registered.pop(effect.turn, False):
                    self.calls.append(
                        q.EndTurn(at=0, request=f"end-{effect.id}", session=SESSION, child=self.child, turn=effect.turn)
                    )
                kind = effect.kind
                failed = kind in ("error", "max_tokens", "loop_detected")
                self.settle(effect.turn, "cancelled" if kind == "cancelled" else "failed" if failed else "completed")
            case ev.Refuse():
                self.open = {n: one for n, one in self.open.items() if getattr(one, "prompt", "") != effect.prompt}
                self.settle(effect.prompt, "failed")
            case ev.Pass():
                if isinstance(effect.what, words.ReleaseAnswered) and self.release:
                    answer = q.ReleaseAnswered(at=0, effect=self.release, released=effect.what.released)
                    self.calls.append(answer)
                    self.release = 0
                elif isinstance(effect.what, ShowGaps):
                    self.shows.append(effect.what)
                elif isinstance(effect.what, ReadGaps):
                    read = waits.GapsRead(asked=effect.what, entries=self.disk.read(effect.what))
                    self.answers.append(read)
            case ev.WriteHistory() | ev.HoldWords() | ev.Tell() | ev.BeginTurn() | ev.ShowPlan() | ev.Suggest():
                pass
            case asks.MoveEnded() | asks.GateSettled() | asks.LoadEnded() | asks.StartCron():
                pass
            case _:
                self.open[effect.id] = effect

    def _of_dead(self, answer: q.AnswerClaim | q.AnswerDrain | q.AnswerTurn) -> bool:
        """Whether this answers a process that is gone."""
        return self.down or int(answer.request) < self.life_from

    def settle(self, prompt: str, outcome: q.Outcome) -> None:
        """The child tells the owner that a prompt's turn is over."""
        run = self.runs.pop(prompt, 0)
        if run:
            self.calls.append(q.PromptSettled(at=0, effect=run, outcome=outcome))

    def _ask_drain(self, effect: ev.Drain) -> None:
        if self.fault("no_drain", 8):
            self.answers.append(ev.DrainAnswered(id=effect.id, unknown_method=True))
        elif self.fault("gone_bridge", 6):
            self.answers.append(ev.DrainAnswered(id=effect.id, reliable=False))
        else:
            call = q.AskDrain(
                at=0,
                request=str(effect.id),
                session=SESSION,
                child=self.child,
                prompt=effect.owner,
                watch=effect.watched,
            )
            self.calls.append(call)

    def _register(self, effect: ev.RegisterTurn) -> None:
        knows = "registers" in self.habits
        if not knows or self.fault("gone_bridge", 6):
            self.answers.append(ev.TurnRegistered(id=effect.id, unknown_method=not knows))
            return
        self.registered[effect.turn] = True
        epoch, request = max(0, self.queue.cancel_epoch - self.fault("late", 2)), str(effect.id)
        self.calls.append(
            q.StartTurn(at=0, request=request, session=SESSION, child=self.child, turn=effect.turn, epoch=epoch)
        )

    def _ask_claim(self, effect: ev.Claim) -> None:
        if self.fault("gone_bridge", 6):
            self.answers.append(ev.ClaimAnswered(id=effect.id))
        else:
            self.calls.append(
                q.AskClaim(
                    at=0,
                    request=str(effect.id),
                    session=SESSION,
                    child=self.child,
                    prompt=effect.owner,
                )
            )

    def _abort(self, effect: ev.Abort) -> None:
        out = self.open.get(effect.of)
        if isinstance(out, ev.Send) and effect.of in self.begun:
            if effect.why == "new_prompt":
                self.book.race("superseded in stream")
            elif effect.why == "cancel":
                self.book.race("cancelled in stream")
        self.cut[effect.of] = None

    def owner(self, event: q.QueueEvent) -> None:
        """The owner's queue takes an event."""
        event = event.replace(at=max(0, self.now))
        look(ON_QUEUE, self, event)
        self.book.hit(f"queue {type(event).__name__}")
        self.book.checked("Legal")
        self.events += 1
        try:
            self.queue, effects = queues.step(self.queue, event)
        except IllegalEventError as error:
            self.book.wrong(f"Legal: {error}")
            return
        if self.told is not None:
            self.say(f"  the queue hears: {plain(event)}")
        for effect in effects:
            if self.told is not None and not isinstance(effect, q.StartTimer | q.WriteLedger):
                self.say(f"    it answers: {plain(effect)}")
            self.book.owner_did(event, effect)
            self._on_its_way(event, effect)
        if isinstance(event, q.ChildGone):
            self.book.child_gone()

    def _on_its_way(self, event: q.QueueEvent, effect: q.Effect) -> None:
        match effect:
            case q.RunPrompt() | q.ForwardCancel() | q.SendRelease() | q.CutStopHook():
                if not self.down:
                    self.orders.append(effect)
            case q.AnswerClaim() | q.AnswerDrain() | q.AnswerTurn() if self._of_dead(effect):
                self.book.race("answer to a dead process")
            case q.AnswerClaim():
                answer = ev.ClaimAnswered(
                    id=int(effect.request), claimed=effect.claimed, queued=effect.has_queued_prompt
                )
                if self.fault("lying_bridge"):
                    answer = answer.replace(claimed=True, queued=True)
                if not self.fault("lost_claim"):
                    self.answers.append(answer)
            case q.AnswerTurn():
                if not effect.accepted:
                    self.book.race("background turn refused")
                self.answers.append(ev.TurnRegistered(id=int(effect.request), accepted=effect.accepted))
            case q.AnswerDrain():
                parts = mid_turn(effect.messages)
                assert isinstance(event, q.QueueEvent)
                said = ev.DrainAnswered(id=int(effect.request), parts=parts, hint=effect.has_queued_prompt)
                self.answers.append(said.replace(hint=None) if self.fault("lying_bridge", 5) else said)
            case q.ResolveMessages():
                self.reads.append(effect)
            case q.StartTimer():
                self.timers.append((self.now + effect.after, effect.id))
            case q.AnswerAdmission() if effect.prompt is not None:
                self.book.owe(f"{effect.prompt}-words", "the prompt")
            case q.AnswerMessage() if effect.accepted and isinstance(event, q.PostMessage):
                self.book.owe(event.message, "the message")
            case q.Emit() if effect.told == "pending_prompt_added" and effect.prompt in self.book.owed:
                self.book.race("left-over words")
            case _:
                pass

    # ---- what is on its way is heard

    def hear_call(self) -> None:
        """The owner hears the oldest call."""
        call = self.calls.pop(0)
        if isinstance(call, q.CancelForwarded) and self.fault("lost_cancel"):
            return
        self.owner(call)

    def hear_answer(self) -> None:
        """The session hears an answer, the oldest unless they overtake each other."""
        place = self.choices.below(len(self.answers)) if self.fault("late", 2) else 0
        answer = self.answers.pop(place)
        self.feed(answer)
        if self.fault("doubled", 4):
            self.feed(answer)

    def hear_order(self) -> None:
        """The session hears what the owner wants done."""
        order = self.orders.pop(0)
        match order:
            case q.RunPrompt():
                self.runs[order.prompt] = order.id
                said = ev.Part(kind="user", id=self.words_of(order.prompt))
                parts = (*mid_turn(order.carried), said)
                prompt = ev.Prompt(id=order.prompt, kind=order.trust or ev.ORDINARY, owner=order.prompt, parts=parts)
                self.feed(ev.PromptOffered(prompt=prompt))
            case q.ForwardCancel():
                turn, following, starting = self.state.turn, self.state.next, self.state.starting
                if following is not None:
                    target = following.id
                elif starting is not None:
                    target = starting.turn
                else:
                    target = turn.id if turn is not None and not turn.abort else ""
                if self.state.chain.disposed:  # nothing is left to cancel
                    pass
                elif target == order.target or not (order.target or self.runs):
                    self.feed(ev.Cancelled())
                elif order.target in self.runs:
                    self.denied[order.target] = None
                self.calls.append(q.CancelForwarded(at=0, effect=order.id))
            case q.SendRelease():
                self.release = order.id
                self.feed(ev.QueueReleased(owner=order.owner))
            case _:
                self.feed(ev.PromptQueuedSeen())

    def words_of(self, prompt: str) -> str:
        """A message that became a prompt keeps its id."""
        return prompt if prompt in self.book.owed else f"{prompt}-words"

    def read_attachments(self) -> None:
        """The attachments of a drain are read, or not."""
        read = self.reads.pop(0)
        failed = (read.messages[0].message,) if self.fault("unreadable") else ()
        self.owner(q.MessagesResolved(at=0, effect=read.id, failed=failed))


def mid_turn(messages: tuple[q.Message, ...]) -> tuple[ev.Part, ...]:
    """Messages as parts."""
    return tuple(ev.Part(kind="mid_turn", id=one.message, image=bool(one.attachments)) for one in messages)
