"""One session: it executes what the turn machine asks for, and feeds back what came of it.

Theory of operation. `core.turn.step` decides everything; this actor decides nothing. Each event is taken
to its end before the next one (`feed`), the effects are executed in order, those that take time as
tasks of one asyncio loop, each of which ends in exactly one answer with the effect's id. `Abort` cancels
a task, and its answer still comes, because the machine waits for streams, tools and compressions to be
over before another turn may touch history. Time comes in as ticks: before every event, and at the next
moment something is due.

With a machine that always ends its turns no continuation is left: there is no loop here that calls a
model twice. May not live here: the order of things, the tools, the queue of prompts, the store.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any

from stopwarden.core import backlog_events as waits
from stopwarden.core import door_events as asks
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DEFERRAL_LIMIT
from stopwarden.core.chain_words import ReleaseAnswered
from stopwarden.core.errors import ModelBrokenError, ModelRefusedError, StopwardenError
from stopwarden.core.gaps import OpenGap, ReadGaps, ShowGaps
from stopwarden.core.turn import step
from stopwarden.core.turn_state import Session as Machine
from stopwarden.models.port import Began, Call, Ended, Image, Text, Thinking, Words
from stopwarden.session.conversation import Conversation
from stopwarden.session.ports import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from stopwarden.core.record import Record
    from stopwarden.core.todo_envelope import TodoList
    from stopwarden.models.port import Model, Said
    from stopwarden.session.journal import Journal
    from stopwarden.session.ports import Hooks, OwnerSide, ToolBox, Watcher
    from stopwarden.session.schedules import Schedules
    from stopwarden.session.tasks import Background

RESERVE = 8_000  # tokens of a model's window that are left for its reply


class Session:
    """One conversation of one agent."""

    def __init__(
        self,
        *,
        id: str,
        system: str,
        model: Model,
        tools: ToolBox,
        owner: OwnerSide,
        hooks: Hooks,
        watcher: Watcher,
        now: Callable[[], float],
        machine: Machine | None = None,
        conversation: Conversation | None = None,
        journal: Journal | None = None,
        names: int = 0,
        vision: Model | None = None,
        background: Background | None = None,
        schedules: Schedules | None = None,
        shares_model: bool = False,
        kept: Callable[[], waits.Restored] = waits.Restored,
    ) -> None:
        self.id, self.system = id, system
        self.model, self.vision = model, vision
        self.tools, self.owner, self.hooks, self.watcher = tools, owner, hooks, watcher
        self.conversation = conversation or Conversation()
        self.journal = journal
        self.machine = machine or Machine(hooks=hooks.has_stop)
        self.background, self.schedules = background, schedules
        self._kept, self._shares_model = kept, shares_model
        self._first = max(self.machine.next_id, names + 1)
        self.machine = self.machine.replace(next_id=self._first)
        self._now = now
        self._inbox: deque[Record] = deque()
        self._stepping = False
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._calls: dict[str, Call] = {}
        self._ended: dict[str, asyncio.Future[ev.EndTurn | ev.Refuse]] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._sent = names
        self._unkept: list[tuple[int, str, int, tuple[Record, ...]]] = []  # steps that the disk has not taken yet
        self._release = False
        self.last_error = ""  # why the latest turn that ended in an error did so

    # ---- what the outside may do

    async def prompt(
        self, name: str, said: tuple[Said, ...], *, kind: str = ev.ORDINARY, owner: str | None = None
    ) -> str:
        """Offer a prompt and wait until its turn has ended; answers how (the kind of EndTurn, or the refusal's why)."""
        self.conversation.put(name, *said)
        image = any(isinstance(part, Image) for part in said)
        part = ev.Part(kind="user", id=name, image=image)
        ended = self._ended[name] = asyncio.get_running_loop().create_future()
        try:
            self.feed(ev.PromptOffered(prompt=ev.Prompt(id=name, kind=kind, owner=owner, parts=(part,))))
            how = await ended
        finally:
            self._ended.pop(name, None)
        return how.kind if isinstance(how, ev.EndTurn) else how.why

    def cancel(self) -> None:
        """The person cancels what runs."""
        self.feed(ev.Cancelled())

    def released(self, owner: str) -> bool:
        """The last prompt that `owner` yielded to is gone, its side says; answers whether that freed the chain."""
        self._release = False
        self.feed(ev.QueueReleased(owner=owner))
        return self._release

    def mode_changed(self, *, plan: bool) -> None:
        """Plan mode was entered or left."""
        self.feed(ev.ModeChanged(plan=plan))

    def todos_written(self, turn: str, todos: TodoList | None) -> None:
        """The todo tool has ended, before any hook sees its result."""
        self.feed(ev.TodoWritten(turn=turn, todos=todos))

    def load(self) -> None:
        """What waited when an earlier process ended waits again; before anything else happens to this session."""
        self.machine = self.machine.replace(next_id=1)
        self.feed(asks.LoadBegan(first=self._first))

    async def close(self) -> None:
        """The session is put away: what runs is cut short and waited for."""
        if not self.machine.chain.disposed:
            self.feed(ev.Disposed())
        if self._alarm is not None:
            self._alarm.cancel()
        if self.schedules is not None:
            self.schedules.close()
        if self.background is not None:
            await self.background.close()
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for model in (self.model, self.vision):
            if model is not None and not self._shares_model:
                await model.close()

    # ---- one event to its end

    def feed(self, event: Record) -> None:
        """Take an event, and every event that its effects bring about at once. Raises IllegalEventError."""
        self._inbox += (ev.Tick(now=int(self._now() * 1_000)), event)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._inbox:
                happened = self._inbox.popleft()
                machine, effects = step(self.machine, happened)
                failed = self._keep(machine, happened, effects)
                if failed is not None and isinstance(happened, ev.PromptOffered):
                    self._unkept.pop()
                    raise failed
                self.machine = machine
                for effect in effects:
                    if failed is not None and isinstance(effect, ev.Send):
                        self._inbox.append(ev.ProviderRefused(id=effect.id, why=str(failed)))
                    else:
                        EXECUTE[type(effect)](self, effect)
        finally:
            self._stepping = False
        self._set_alarm()

    def _keep(self, machine: Machine, happened: Record, effects: tuple[ev.Effect, ...]) -> StopwardenError | None:
        """Put what is durable of a step on disk, with what could not be put there before; the failure, if it is one.

        A session whose disk is full goes on, but takes no prompt and sends nothing until it can be written.
        """
        if self.journal is None:
            return None
        turn = machine.turn or self.machine.turn
        facts = (happened, *effects)
        self._unkept.append(
            (int(self._now() * 1_000), turn.id if turn is not None else "", machine.chain.number, facts)
        )
        try:
            while self._unkept:
                self.journal.step(*self._unkept[0], self.conversation)
                del self._unkept[0]
        except StopwardenError as failed:
            self.watcher(Told(kind="not_kept", text=str(failed)))
            return failed
        return None

    def _set_alarm(self) -> None:
        """The next moment at which something is due by itself."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        turn, deferral = self.machine.turn, self.machine.deferral
        due = [self.machine.retry_at] if self.machine.retry_at > self.machine.now else []
        if turn is not None and turn.waiting is not None and turn.waiting.due is not None:
            due.append(turn.waiting.due)
        if deferral.since is not None and not deferral.too_long:
            due.append((deferral.since + DEFERRAL_LIMIT) * 1_000)
        if due:
            wait = max(0.0, min(due) / 1_000 - self._now())
            self._alarm = asyncio.get_running_loop().call_later(wait, self._tick)

    def _tick(self) -> None:
        self.feed(ev.Tick(now=int(self._now() * 1_000)))

    def _begin(
        self, effect: ev.Effect, work: Coroutine[Any, Any, ev.Answer], cut: Callable[[], ev.Answer | None]
    ) -> None:
        """Start what takes time; its answer is fed when it is there, or `cut`'s when it was cut short."""
        self._tasks[effect.id] = asyncio.get_running_loop().create_task(self._see_through(effect.id, work, cut))

    async def _see_through(
        self, number: int, work: Coroutine[Any, Any, ev.Answer], cut: Callable[[], ev.Answer | None]
    ) -> None:
        answer: ev.Answer | None
        try:
            answer = await work
        except asyncio.CancelledError:
            answer = cut()
        finally:
            self._tasks.pop(number, None)
        if answer is not None:
            self.feed(answer)

    # ---- effects

    def _admit(self, effect: ev.AdmitWriter) -> None:
        self.feed(ev.WriterAdmitted(id=effect.id))

    def _register(self, effect: ev.RegisterTurn) -> None:
        """No owner's side of ours registers turns of the session's own: they are nobody's."""
        self.feed(ev.TurnRegistered(id=effect.id, unknown_method=True))

    def _restore(self, effect: asks.Restore) -> None:
        """History is here already; of what runs in the background nothing outlives its process."""
        self.feed(asks.RestoreAnswered(id=effect.id, waiting=self._kept() if effect.what == "waiting" else None))

    def _load_ended(self, effect: asks.LoadEnded) -> None:
        self.watcher(Told(kind="loaded", text=effect.problem))

    def _start_cron(self, effect: asks.StartCron) -> None:
        if self.schedules is not None:
            self.schedules.start()

    def _refuse(self, effect: ev.Refuse) -> None:
        self._over(effect.prompt, effect)

    def _abort(self, effect: ev.Abort) -> None:
        task = self._tasks.get(effect.of)
        if task is not None:
            task.cancel()

    def _drain(self, effect: ev.Drain) -> None:
        async def work() -> ev.Answer:
            drained = await self.owner.drain(effect.owner, watched=effect.watched)
            parts = []
            for message in drained.messages:
                self.conversation.put(message.id, *message.said)
                image = any(isinstance(part, Image) for part in message.said)
                parts.append(ev.Part(kind="mid_turn", id=message.id, image=image))
            return ev.DrainAnswered(
                id=effect.id,
                parts=tuple(parts),
                hint=drained.hint,
                reliable=drained.reliable,
                unknown_method=drained.unknown_method,
            )

        self._begin(effect, work(), lambda: None)

    def _claim(self, effect: ev.Claim) -> None:
        async def work() -> ev.Answer:
            claimed, queued = await self.owner.claim(effect.owner)
            return ev.ClaimAnswered(id=effect.id, claimed=claimed, queued=queued)

        self._begin(effect, work(), lambda: None)

    def _run_hooks(self, effect: ev.RunHooks) -> None:
        async def work() -> ev.Answer:
            words = self.conversation.words(ev.Part(kind="reply", id=effect.reply))
            reply = "".join(part.text for part in words if isinstance(part, Text))
            says = await self.hooks.stop(forced=effect.forced, reply=reply)
            return ev.HookAnswered(
                id=effect.id, block=says.block, reason=says.reason, message=says.message, failed=says.failed
            )

        self._begin(effect, work(), lambda: None)

    def _choose_model(self, effect: ev.ChooseModel) -> None:
        seen = self.model.sees_images or self.vision is None
        self.feed(ev.ModelChosen(id=effect.id, model="" if seen else "vision"))

    def _compress(self, effect: ev.Compress) -> None:
        self.feed(ev.CompressionDone(id=effect.id))

    def _check_tokens(self, effect: ev.CheckTokens) -> None:
        async def work() -> ev.Answer:
            self.conversation.stage("counted", effect.parts)
            request = self.conversation.request(self.system, self.tools.specs(), sending="counted")
            self.conversation.roll_back("counted")
            tokens = await self.model.count_tokens(request)
            return ev.TokensChecked(id=effect.id, fits=tokens + RESERVE <= self.model.window)

        self._begin(effect, work(), lambda: None)

    def _send(self, effect: ev.Send) -> None:
        accepted = False

        async def work() -> ev.Answer:
            nonlocal accepted
            self._sent += 1
            reply = f"reply-{self._sent}"
            model = self.vision if effect.model and self.vision is not None else self.model
            request = self.conversation.request(self.system, self.tools.specs(), sending=effect.entry)
            try:
                async with contextlib.aclosing(model.stream(request)) as stream:
                    async for event in stream:
                        match event:
                            case Began():
                                accepted = True
                                self.feed(ev.ProviderAccepted(id=effect.id))
                            case Words(text=text):
                                self.watcher(Told(kind="words", turn=self._turn(), text=text))
                            case Thinking(text=text):
                                self.watcher(Told(kind="thinking", turn=self._turn(), text=text))
                            case Ended():
                                return self._replied(effect, reply, event)
            except ModelRefusedError as refused:
                return ev.ProviderRefused(id=effect.id, why=str(refused))
            except ModelBrokenError as broken:
                return ev.StreamBroken(id=effect.id, why=str(broken))
            return ev.StreamBroken(id=effect.id, why="The model's answer ended without its end")

        def cut() -> ev.Answer:
            return ev.StreamBroken(id=effect.id, why="cut") if accepted else ev.ProviderRefused(id=effect.id, why="cut")

        self._begin(effect, work(), cut)

    def _replied(self, effect: ev.Send, reply: str, ended: Ended) -> ev.Answer:
        """The reply has its words, and its calls have names that the machine can repeat."""
        self.conversation.put(reply, *ended.message.parts)
        calls = [part for part in ended.message.parts if isinstance(part, Call)]
        names = tuple(f"{reply}/{number}" for number in range(len(calls)))
        self._calls.update(zip(names, calls, strict=True))
        tokens = ended.usage.input + ended.usage.output
        return ev.StreamEnded(id=effect.id, reply=reply, calls=names, tokens=tokens)

    def _run_tools(self, effect: ev.RunTools) -> None:
        calls = [self._calls.pop(name) for name in effect.calls]

        async def work() -> ev.Answer:
            batch = await self.tools.run(self._turn(), calls)
            parts = []
            for name, result in zip(effect.calls, batch.results, strict=True):
                self.conversation.put(f"{name}/result", result)
                parts.append(ev.Part(kind="tool_result", id=f"{name}/result"))
            return ev.ToolsDone(id=effect.id, parts=tuple(parts), stop=batch.stop)

        self._begin(effect, work(), lambda: ev.ToolsDone(id=effect.id))

    def _write_history(self, effect: ev.WriteHistory) -> None:
        if effect.act == "append":
            self.conversation.append(effect.entry, effect.parts)
        elif effect.act == "stage":
            self.conversation.stage(effect.entry, effect.parts)
        elif effect.act == "commit":
            self.conversation.commit(effect.entry)
        else:
            self.conversation.roll_back(effect.entry)

    def _hold_words(self, effect: ev.HoldWords) -> None:
        """They are in the transcript, and the machine has them for the next request."""

    def _show_plan(self, effect: ev.ShowPlan) -> None:
        items = [item.as_dict() for item in effect.todos.items]
        self.watcher(Told(kind="plan", turn=effect.turn, detail={"todos": items}))

    def _suggest(self, effect: ev.Suggest) -> None:
        self.watcher(Told(kind="may_suggest", turn=effect.turn))

    def _tell(self, effect: ev.Tell) -> None:
        self.watcher(Told(kind=effect.kind, turn=effect.turn, detail=dict(effect.detail)))

    def _begin_turn(self, effect: ev.BeginTurn) -> None:
        self.watcher(Told(kind="turn_begun", turn=effect.turn, detail={"kind": effect.kind}))

    def _end_turn(self, effect: ev.EndTurn) -> None:
        self.watcher(Told(kind="turn_ended", turn=effect.turn, text=effect.why, detail={"kind": effect.kind}))
        if effect.kind == "error":
            self.last_error = effect.why
        self._over(effect.turn, effect)

    def _pass(self, effect: ev.Pass) -> None:
        what = effect.what
        match what:
            case ReleaseAnswered():
                self._release = what.released
            case OpenGap():
                self.conversation.put_gap(what.gap)
            case ShowGaps():
                self.feed(waits.GapsShown(ids=tuple(gap.id for gap in what.gaps)))
            case ReadGaps():
                found = [gap for gap in self._kept().gaps if what.after < gap.number <= what.through]
                self.feed(waits.GapsRead(asked=what, entries=tuple(found[: what.limit])))
        self.watcher(Told(kind=type(what).__name__, turn=self._turn(), detail=what.as_dict()))

    # ---- small things

    def _turn(self) -> str:
        return self.machine.turn.id if self.machine.turn is not None else ""

    def _over(self, prompt: str, how: ev.EndTurn | ev.Refuse) -> None:
        ended = self._ended.get(prompt)
        if ended is not None and not ended.done():
            ended.set_result(how)


EXECUTE: Mapping[type[ev.Effect], Callable[[Session, Any], None]] = {
    ev.AdmitWriter: Session._admit,
    ev.Refuse: Session._refuse,
    ev.Abort: Session._abort,
    ev.Drain: Session._drain,
    ev.Claim: Session._claim,
    ev.RunHooks: Session._run_hooks,
    ev.ChooseModel: Session._choose_model,
    ev.Compress: Session._compress,
    ev.CheckTokens: Session._check_tokens,
    ev.Send: Session._send,
    ev.RunTools: Session._run_tools,
    ev.WriteHistory: Session._write_history,
    ev.HoldWords: Session._hold_words,
    ev.ShowPlan: Session._show_plan,
    ev.Suggest: Session._suggest,
    ev.Tell: Session._tell,
    ev.BeginTurn: Session._begin_turn,
    ev.EndTurn: Session._end_turn,
    ev.Pass: Session._pass,
    ev.RegisterTurn: Session._register,
    asks.Restore: Session._restore,
    asks.LoadEnded: Session._load_ended,
    asks.StartCron: Session._start_cron,
}
