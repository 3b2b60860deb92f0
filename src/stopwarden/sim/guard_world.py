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
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.core.door import OUTSIDE
from stopwarden.core.fires import Fire
from stopwarden.core.lineage import Task
from stopwarden.core.queue_move import live_queued
from stopwarden.core.results import Result
from stopwarden.core.todo_envelope import Todo, TodoList
from stopwarden.sim.guard_faults import Choices
from stopwarden.sim.guard_wire import CLIENTS, SESSION, Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.record import Record
    from stopwarden.sim.guard_faults import Plan

LOADED_IN = 4  # so many seeds, one begins with a session that is loaded
PROMPTS, QUIET_STEPS = 3, 4_000  # PROMPTS: an eager person has at most so many waiting
LISTS = tuple(
    TodoList(
        items=tuple(
            Todo(id=str(one), content="work", status="completed" if one >= left else "pending") for one in range(3)
        )
    )
    for left in range(4)
)


class World(Wire):
    """One history."""

    def __init__(self, plan: Plan, told: list[str] | None = None) -> None:
        super().__init__(plan, told)
        self.moves = tuple(move for move in MOVES if not move[1] or move[1] in self.habits)
        if plan.seed % LOADED_IN == 0:
            self.feed(asks.LoadBegan())

    # ---- moves: the session's own process

    def answer(self) -> None:
        """Something that the session asked for in its own process comes to an end, or begins."""
        numbers = list(self.open)
        late = len(numbers) > 1 and self.fault("late", 2)
        number = numbers[self.choices.below(len(numbers))] if late else numbers[0]
        effect = self.open[number]
        if isinstance(effect, ev.Send):
            self._answer_send(effect)
            return
        del self.open[number]
        said: Record
        match effect:
            case ev.AdmitWriter():
                said = ev.WriterAdmitted(id=number, granted=effect.prompt not in self.denied)
            case ev.RunHooks():
                pick = self.choices.below(4)
                failed = self.fault("failing_hook")
                said = ev.HookAnswered(
                    id=number, block=pick == 3, reason="go on", message="seen" if pick == 2 else "", failed=failed
                )
            case ev.ChooseModel():
                said = ev.ModelChosen(id=number, model="eyes")
            case ev.Compress():
                said = ev.CompressionFailed(id=number) if self.fault("no_room", 10) else ev.CompressionDone(id=number)
            case ev.CheckTokens():
                said = ev.TokensChecked(id=number, fits=not self.fault("no_room", 15))
            case asks.CheckPlace():
                said = asks.PlaceChecked(id=number, place=effect.path, problem="gone" if self.choices.one_in(4) else "")
            case asks.ReadPlace():
                said = asks.PlaceRead(id=number, same=self.choices.one_in(3))
            case asks.LookForActivity():
                live = not self.healed and self.choices.one_in(2)
                said = asks.ActivitySeen(id=number, live=live, ended=live and self.choices.one_in(2))
            case asks.MakeMove():
                said = asks.MoveMade(id=number, problem="busy" if self.choices.one_in(4) else "")
            case asks.Restore():
                said = asks.RestoreAnswered(id=number, waiting=self._waited() if effect.what == "waiting" else None)
            case _:
                assert isinstance(effect, ev.RunTools)
                self._run_tools(effect)
                return
        self.feed(said)
        if self.fault("doubled", 4):
            self.feed(said)

    def _waited(self) -> waits.Restored:
        """What the store still held for the model when the session was last put away."""
        result, fire = Result(id=self.name("told"), kind="shell", task="before"), Fire(id=self.name("fire"), job="look")
        self.book.owe(result.id, "the background result")
        self.book.owe(fire.id, "the scheduled prompt")
        return waits.Restored(results=(result,), fires=(fire,))

    def _answer_send(self, effect: ev.Send) -> None:
        number = effect.id
        if number not in self.begun:
            if number in self.cut or self.fault("refused_send", 6):
                del self.open[number]
                self.feed(ev.ProviderRefused(id=number, why="error"))
            else:
                self.begun[number] = None
                self.feed(ev.ProviderAccepted(id=number))
            return
        del self.open[number]
        if number in self.cut or self.fault("broken_send", 6):
            self.feed(ev.StreamBroken(id=number))
            return
        calls = (
            ()
            if self.healed
            else tuple(f"call-{number}-{one}" for one in range((1, 0, 1, 2, 0)[self.choices.below(5)]))
        )
        self.feed(ev.StreamEnded(id=number, reply=f"reply-{number}", calls=calls, tokens=10))

    def _run_tools(self, effect: ev.RunTools) -> None:
        turn = self.state.turn
        if turn is not None:
            pick = self.choices.below(10)
            if pick < 6:
                if turn.abort:
                    self.book.race("late todo write")
                self.feed(ev.TodoWritten(turn=turn.id, todos=LISTS[(2, 3, 1, 2, 0, 0)[pick]]))
            elif pick == 6:
                self.feed(ev.TodoWritten(turn=turn.id, todos=None))
            elif self.state.tasks:
                self.sends.append(self.name("send"))
                self.feed(waits.MessageSending(send=self.sends[-1], agent=self.state.tasks[0].id))
            if "background" in self.habits and self.choices.one_in(3):
                self._spawn()
        if self.sends:
            self.feed(waits.MessageSettled(send=self.sends.pop(), succeeded=self.choices.one_in(2)))
        results = tuple(ev.Part(kind="tool_result", id=f"result-{call}") for call in effect.calls)
        for part in results:
            self.book.owe(part.id, "the tool result")
        stop = ""
        if self.fault("stopped_tools", 5):
            stop = ("post_tool_use", "repeated_failure", "loop", "permission")[self.choices.below(4)]
        self.feed(ev.ToolsDone(id=effect.id, parts=results, stop=stop))

    def _spawn(self) -> None:
        kind = ("agent", "shell", "monitor")[self.choices.below(3)]
        task = Task(kind=kind, id=self.name(kind))  # type: ignore[arg-type]
        if kind == "agent" and self.choices.one_in(2):
            self.feed(waits.Spawned(agent=task.id))
        self.feed(ev.BackgroundChanged(tasks=(*self.state.tasks, task)))

    def finish_task(self) -> None:
        """Background work ends, with something to tell."""
        task = self.state.tasks[self.choices.below(len(self.state.tasks))]
        result = Result(id=self.name("told"), kind=task.kind, task=task.id)  # type: ignore[arg-type]
        self.book.owe(result.id, "the background result")
        self.feed(ev.ResultArrived(result=result))
        self.feed(ev.BackgroundChanged(tasks=tuple(one for one in self.state.tasks if one is not task)))

    def pulse(self) -> None:
        """Background work has much to tell, and goes on."""
        task = self.state.tasks[0]
        for _ in range(9):
            result = Result(id=self.name("told"), kind=task.kind, task=task.id, interim=True)  # type: ignore[arg-type]
            self.book.owe(result.id, "the background result")
            self.feed(ev.ResultArrived(result=result))

    def fire(self) -> None:
        """A schedule fires."""
        fire = Fire(id=self.name("fire"), job=("", "look", "sweep")[self.choices.below(3)])
        self.book.owe(fire.id, "the scheduled prompt")
        self.feed(ev.FireArrived(fire=fire))

    def show_gaps(self) -> None:
        """The person's screen takes gap entries, or cannot."""
        shows = self.shows.pop(0)
        self.feed(waits.GapsShown(ids=tuple(gap.id for gap in shows.gaps), done=self.healed or self.choices.one_in(2)))

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

    # ---- moves: the person

    def ask(self, kind: type[q.Request], **fields: object) -> None:
        """A client's call."""
        client = CLIENTS[self.choices.below(2)]
        if client not in self.queue.clients:
            client = CLIENTS[0]
        self.owner(kind(at=0, request=self.name("ask"), session=SESSION, client=client, **fields))

    def prompt(self) -> None:
        """The person writes a prompt, now and then a retry or with a deadline."""
        self.prompts += 1
        asks = ("", "", "", "retry", "continue")[self.choices.below(5)] if not self.healed else ""
        deadline = 30_000 if not self.healed and self.choices.one_in(8) else None
        self.ask(q.Admit, prompt=f"P{self.prompts}", asks=asks, deadline=deadline)

    def message(self) -> None:
        """The person says something in the middle of a turn."""
        name = self.name("m")
        files = ("picture",) if self.choices.one_in(2) else ()
        self.ask(q.PostMessage, message=name, text="also", attachments=files)

    def remove_prompt(self) -> None:
        """The person takes a prompt out of the queue."""
        entries = live_queued(self.queue)
        self.ask(q.RemovePrompt, prompt=entries[self.choices.below(len(entries))].prompt)

    def remove_message(self) -> None:
        """The person takes a message back."""
        self.ask(q.RemoveMessage, message=self.queue.messages[0].message)

    def cancel(self) -> None:
        """The person cancels what runs, through the bridge."""
        self.ask(q.CancelRunning)

    def cancel_here(self) -> None:
        """The person cancels at the session itself."""
        self.feed(ev.Cancelled())

    def change_mode(self) -> None:
        """The person enters or leaves plan mode."""
        self.feed(ev.ModeChanged(plan=not self.state.chain.plan))

    def set_switch(self) -> None:
        """The person turns the guard off, lets it observe, or on again."""
        on = self.state.chain.guard.switch == "on"
        self.feed(ev.SwitchSet(switch=("observe", "off")[self.choices.below(2)] if on else "on"))

    def set_budget(self) -> None:
        """The person gives the guard less, or more again."""
        pick = self.choices.below(3)
        self.feed(ev.BudgetSet(attempts=(1, 2, None)[pick], tokens=(0, 0, 25)[pick]))

    def look(self) -> None:
        """A client comes and looks, or goes."""
        if CLIENTS[1] in self.queue.clients:
            self.owner(q.ClientLeft(at=0, client=CLIENTS[1]))
        else:
            self.owner(q.ClientJoined(at=0, client=CLIENTS[1]))
            self.ask(q.ListPending)
            self.feed(waits.PersonLooks())

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

    def withdraw(self) -> None:
        """The caller of a prompt that waits for an older turn goes away."""
        assert self.state.next is not None
        self.feed(ev.PromptWithdrawn(prompt=self.state.next.id))

    def rewind(self) -> None:
        """Between turns, history is taken back."""
        self.feed(ev.Rewound())

    def gate(self) -> None:
        """Somebody outside closes the session, may wait until all rests, and opens it again."""
        door = self.state.door
        if not self.state.chain.closing:
            self.feed(ev.GateTaken())
        elif not door.settling and self.choices.one_in(2):
            self.feed(asks.SettleAsked())
        else:
            self.feed(ev.GateReleased())

    def move(self) -> None:
        """The person moves the session to another directory."""
        self.feed(asks.MoveAsked(move=self.name("move"), path="elsewhere"))

    def quiet(self) -> bool:
        """Whether nothing runs in the session, and no prompt is on its way to it."""
        state = self.state
        return state.turn is None and state.next is None and not state.arriving and not state.door.loading

    # ---- steps

    def play(self, number: int) -> None:
        """One step of the plan."""
        self.choices = Choices(number)
        possible = [move for move in self.moves if move[2](self)]
        place = self.choices.below(sum(move[0] for move in possible))
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
        if dispose:
            self.feed(ev.Disposed())
        else:
            if self.state.door.holder == OUTSIDE:
                self.feed(ev.GateReleased())
            if self.state.chain.plan:
                self.feed(ev.ModeChanged(plan=False))
            self._wait_out()
            while self.state.tasks and not self.book.broken:
                self.finish_task()
        self._settle()
        if not dispose and not self.book.broken:
            self.prompt()
            self._settle()
        if not self.book.broken:
            self._nothing_left()

    def _wait_out(self) -> None:
        """Background work runs for hours: a scheduled prompt is held back no longer than the limit."""
        self._settle()
        self._settle()
        if not {"refused_send", "no_room"} & set(self.plan.faults):  # then what was tried often waits for a prompt
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
                self.now = max(self.now, self.state.now, self.state.retry_at) + 3_600_000
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
    (2, "moves", lambda world: not world.state.chain.closing, World.gate),
    (15, "", lambda world: world.state.door.holder == OUTSIDE, World.gate),
    (2, "moves", lambda world: len(world.state.door.moves) < 2, World.move),
    (2, "", lambda world: bool(world.state.tasks), World.finish_task),
    (1, "floods", lambda world: bool(world.state.tasks), World.pulse),
    (2, "schedules", lambda world: not world.state.door.loading, World.fire),
    (4, "", lambda world: bool(world.shows), World.show_gaps),
)
SETTLING: tuple[tuple[Callable[[World], bool], Callable[[World], None]], ...] = (
    (lambda world: bool(world.calls), World.hear_call),
    (lambda world: bool(world.answers), World.hear_answer),
    (lambda world: bool(world.orders), World.hear_order),
    (lambda world: bool(world.reads), World.read_attachments),
    (lambda world: bool(world.open), World.answer),
    (lambda world: bool(world.shows), World.show_gaps),
)
