"""A scenario played to our pure machines: the turn (`core/turn`) behind the queue (`core/queue`).

Everything the machines ask for is answered by the script, one thing after the other, so a scenario is
over in a millisecond and always the same. Model history is followed as the machine writes it, which is
how it is known what a model call would have contained.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from comparison.bridge import Bridge
from comparison.script import HOOK, IDLE, SAY, Ask, Cancel, Ends, Move, Plan, Release, Remove, Restart, Speak
from comparison.seen import CUT_SHORT, WAITED_FOR, Seen, gave_up, started
from stopwarden.core import backlog_events as waits
from stopwarden.core import chain_words as words
from stopwarden.core import door_events as door
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.core.chain_words import Chain
from stopwarden.core.guard import Guard
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from stopwarden.core.todo_envelope import Todo, TodoList
from stopwarden.core.turn import step
from stopwarden.core.turn_state import Session

if TYPE_CHECKING:
    from comparison.script import Act, Reply, Scenario
    from stopwarden.core.record import Record

ANSWERED = (
    *(ev.AdmitWriter, ev.Drain, ev.Claim, ev.RunHooks, ev.ChooseModel, ev.Compress, ev.CheckTokens),
    *(ev.Send, ev.RunTools, ev.RegisterTurn),
    *(door.CheckPlace, door.ReadPlace, door.LookForActivity, door.MakeMove, door.Restore),
)
HERE = "here"


def play(scenario: Scenario) -> Seen:
    """The scenario, from the first prompt until nothing more happens."""
    return _Played(scenario).seen


class _Played:
    """The pure side of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.seen = scenario, Seen()
        self.state, self.place = self._new(), HERE
        self.open: deque[ev.Effect] = deque()
        self.taking: deque[ev.Effect] = deque()
        self.cut: set[int] = set()
        self.staged: dict[str, list[str]] = {}
        self.news: list[str] = []  # what the model has been told, or lies in its history, since its last reply
        self.runs: dict[str, q.RunPrompt] = {}
        self.releases: deque[q.SendRelease] = deque()
        self.streams: dict[int, Reply] = {}  # begun
        self.calls, self.stops, self.drains, self.now = 0, 0, 0, 0
        self.held: tuple[int, ev.Effect] | None = None
        self.late: ev.Drain | None = None
        self.bridge = Bridge(self, scenario.bridge)
        self.bridge.ask("P1")
        for one in scenario.steps:
            self._go_on_to(one.when)
            self._act(one.act)
            while self.held is not None and self.open:  # the moment lasts until this is heard
                self._answer(self.open.popleft(), IDLE)
        self._go_on_to(IDLE)
        if scenario.bridge.daemon:
            self.seen.answers += self.bridge.admissions

    def _new(self) -> Session:
        return Session(chain=Chain(guard=Guard(switch="on")), hooks=self.scenario.hooks is not None)

    # ---- the script

    def _go_on_to(self, when: int) -> None:
        """Answer until the moment has come; what is held open is let go unless this is still its moment."""
        if self.held is not None and self.held[0] != when:
            before, effect = self.held
            self.held = None
            if before == HOOK:
                self.seen.hooks.append(WAITED_FOR)
            self._finish(effect)
        while self.held is None and self.open:
            self._answer(self.open.popleft(), when)
        if when != IDLE and self.held is None:
            raise AssertionError(f"scenario {self.scenario.id}: moment {when} never came on our side")

    def _act(self, act: Act) -> None:
        match act:
            case Ask():
                self.bridge.ask(act.name, act.how, act.client)
            case Speak():
                self.bridge.speak(act.name)
            case Remove():
                self.bridge.remove(act.name)
            case Cancel():
                self.bridge.cancel()
            case Plan():
                self._feed(ev.ModeChanged(plan=True))
            case Ends():
                self._end_work(act.kind)
            case Release():
                self._feed(ev.QueueReleased(owner=act.owner))
            case Move():
                self._feed(door.MoveAsked(move="move", path=act.to or HERE))
            case Restart():
                self.state = self._new()
                self._feed(door.LoadBegan())

    def _end_work(self, kind: str) -> None:
        for task in [one for one in self.state.tasks if one.kind == kind]:
            self._feed(ev.ResultArrived(result=Result(id=f"told-{task.id}", kind=kind, task=task.id)))  # type: ignore[arg-type]
            self._feed(ev.BackgroundChanged(tasks=tuple(one for one in self.state.tasks if one is not task)))

    # ---- the machine asks

    def _feed(self, event: Record) -> None:
        """One step. What it leads to is taken in order, also where taking one effect leads to the next step."""
        self.state, effects = step(self.state, event)
        nested = bool(self.taking)
        self.taking.extend(effects)
        while self.taking and not nested:
            self._take(self.taking[0])
            self.taking.popleft()

    def _take(self, effect: ev.Effect) -> None:
        match effect:
            case ev.WriteHistory():
                self._write(effect)
            case ev.Abort():
                self._abort(effect.of)
            case ev.EndTurn():
                self._ended(effect)
            case ev.Refuse():
                self.bridge.settled(self.runs.pop(effect.prompt), "failed")
            case ev.Pass():
                self._passed(effect.what)
            case door.MoveEnded():
                self.seen.answers.append(effect.kind)
            case _ if isinstance(effect, ANSWERED):
                self.open.append(effect)
            case _:
                pass  # for people to see

    def _write(self, effect: ev.WriteHistory) -> None:
        if effect.act == "commit":
            self.news += self.staged.pop(effect.entry)
        elif effect.act == "roll_back":
            self.staged.pop(effect.entry, None)
        elif effect.act == "append" and any(part.kind == "reply" for part in effect.parts):
            self.news = []
        elif effect.act == "append":
            self.news += [_named(part) for part in effect.parts]

    def _abort(self, number: int) -> None:
        self.cut.add(number)
        if self.held is not None and self.held[1].id == number:
            when, effect = self.held
            self.held = None
            self.open.appendleft(effect)
            if when == HOOK:
                self.seen.hooks.append(CUT_SHORT)

    def _ended(self, effect: ev.EndTurn) -> None:
        failed = effect.kind in ("error", "loop_detected", "max_tokens")
        how = effect.kind if effect.kind in ("cancelled", "error", "max_tokens") else "end_turn"
        name = effect.turn if not effect.turn.startswith("auto-") else "result turn"
        self.seen.ends.append(f"{name} {how}")
        self.seen.kinds.append(effect.kind)
        if effect.turn in self.runs:
            outcome: q.Outcome = "cancelled" if how == "cancelled" else "failed" if failed else "completed"
            self.bridge.settled(self.runs.pop(effect.turn), outcome)
        else:
            self.bridge.end_turn(effect.turn)

    def _passed(self, what: Record) -> None:
        match what:
            case words.AttemptCounted():
                self.seen.shown.append(started(what.attempt, what.cap, what.unfinished))
            case words.Exhausted():
                self.seen.shown.append(gave_up(what.unfinished))
            case words.ReleaseAnswered():
                if self.releases:
                    self.bridge.released(self.releases.popleft(), what.released)
                else:
                    self.seen.answers.append(f"released {what.released}".lower())
            case _:
                pass

    # ---- and is answered

    def _answer(self, effect: ev.Effect, when: int) -> None:
        number = effect.id
        match effect:
            case ev.Send() | ev.RunHooks() if number in self.cut:
                self._cut_off(effect)
            case _ if number in self.cut:
                pass
            case ev.AdmitWriter():
                self._feed(ev.WriterAdmitted(id=number))
            case ev.RegisterTurn():
                self.bridge.start_turn(str(number), effect.turn)
            case ev.Drain():
                self._drain(effect)
            case ev.Claim():
                self._claim(effect)
            case ev.RunHooks():
                self.stops += 1
                if when == HOOK:
                    self.held = (HOOK, effect)
                else:
                    self._finish(effect)
            case ev.ChooseModel():
                self._feed(ev.ModelChosen(id=number))
            case ev.Compress():
                self._feed(ev.CompressionDone(id=number))
            case ev.CheckTokens():
                self._feed(ev.TokensChecked(id=number))
            case ev.Send():
                self._send(effect, when)
            case ev.RunTools():
                self._run_tools(effect)
            case door.CheckPlace():
                self._feed(door.PlaceChecked(id=number, place=effect.path))
            case door.ReadPlace():
                self._feed(door.PlaceRead(id=number, same=effect.place == self.place))
            case door.LookForActivity():
                self._feed(door.ActivitySeen(id=number))
            case door.MakeMove():
                self.place = effect.place
                self._feed(door.MoveMade(id=number))
            case door.Restore():
                waiting = waits.Restored() if effect.what == "waiting" else None
                self._feed(door.RestoreAnswered(id=number, waiting=waiting))

    def _cut_off(self, effect: ev.Effect) -> None:
        if effect.id in self.streams:
            self._feed(ev.StreamBroken(id=effect.id, why="aborted", reply=f"reply-{effect.id}"))
        elif isinstance(effect, ev.Send):
            self._feed(ev.ProviderRefused(id=effect.id, why="aborted"))

    def _drain(self, effect: ev.Drain) -> None:
        self.seen.asks += "d"
        self.drains += 1
        manners = self.bridge.manners.drain
        if manners == "unknown":
            self._feed(ev.DrainAnswered(id=effect.id, unknown_method=True))
        elif manners == "no_hint":
            self._feed(ev.DrainAnswered(id=effect.id, hint=None))
        elif manners == "malformed":
            self._feed(ev.DrainAnswered(id=effect.id, reliable=False))
        elif manners == "late" and self.drains == 1:
            self._let_time_pass()
            said = ev.Part(kind="mid_turn", id="S1")
            self._feed(ev.DrainAnswered(id=effect.id, parts=(said,)))
        else:
            self.bridge.drain(str(effect.id), effect.owner, effect.watched)

    def _claim(self, effect: ev.Claim) -> None:
        self.seen.asks += "c"
        manners = self.bridge.manners.claim
        if manners == "unknown":
            self._feed(ev.ClaimAnswered(id=effect.id))
        elif manners == "malformed":
            self._feed(ev.ClaimAnswered(id=effect.id, claimed=True, queued=True))
        elif manners == "queued":
            self._feed(ev.ClaimAnswered(id=effect.id, claimed=False, queued=True))
        elif manners == "silent":
            self._let_time_pass()
        else:
            self.bridge.claim(str(effect.id), effect.owner)

    def _let_time_pass(self) -> None:
        self.now += DRAIN_DEADLINE_MS
        self._feed(ev.Tick(now=self.now))

    def _send(self, effect: ev.Send, when: int) -> None:
        replies = self.scenario.replies
        reply = replies[self.calls] if self.calls < len(replies) else SAY
        self.calls += 1
        self.seen.asks += "*"
        new = [_named(part, effect) for part in effect.parts]
        self.staged[effect.entry] = new
        self.seen.calls.append(_joined(self.news + new))
        if reply.does == "refused":
            self.seen.calls[-1] += " (refused)"
            self._feed(ev.ProviderRefused(id=effect.id))
            return
        self.streams[effect.id] = reply
        self._feed(ev.ProviderAccepted(id=effect.id))
        if when == self.calls:
            self.held = (when, effect)
        else:
            self._finish(effect)

    def _finish(self, effect: ev.Effect) -> None:
        """A stream or a hook comes to its end."""
        if effect.id in self.cut:
            self._cut_off(effect)
        elif isinstance(effect, ev.RunHooks):
            reasons = self.scenario.hooks or ()
            reason = reasons[self.stops - 1] if self.stops <= len(reasons) else ""
            self._feed(ev.HookAnswered(id=effect.id, block=bool(reason), reason=reason))
        else:
            reply = self.streams[effect.id]
            calls = () if reply.does == "say" else (f"call-{effect.id}",)
            self._feed(ev.StreamEnded(id=effect.id, reply=f"reply-{effect.id}", calls=calls))

    def _run_tools(self, effect: ev.RunTools) -> None:
        reply = self.streams[max(self.streams)]
        turn = self.state.turn
        assert turn is not None
        if reply.does == "todo":
            items = [Todo(id=f"t{n}", content="item", status="pending") for n in range(reply.left)]
            items += [Todo(id=f"d{n}", content="item", status="completed") for n in range(reply.done)]
            self._feed(ev.TodoWritten(turn=turn.id, todos=TodoList(items=tuple(items))))
        elif reply.does in ("shell", "agent"):
            for _ in range(reply.times):
                task = Task(kind=reply.does, id=f"{reply.does}-{len(self.state.tasks) + 1}")  # type: ignore[arg-type]
                self._feed(ev.BackgroundChanged(tasks=(*self.state.tasks, task)))
        elif reply.does == "message":
            agent = next(task.id for task in self.state.tasks if task.kind == "agent")
            self._feed(waits.MessageSending(send="send-1", agent=agent))
            self._feed(waits.MessageSettled(send="send-1", succeeded=True))
        parts = tuple(ev.Part(kind="tool_result", id=f"result-{call}") for call in effect.calls)
        self._feed(ev.ToolsDone(id=effect.id, parts=parts))

    # ---- the bridge's port

    def run(self, order: q.RunPrompt) -> None:
        self.runs[order.prompt] = order
        carried = tuple(ev.Part(kind="mid_turn", id=one.message) for one in order.carried)
        said = () if order.trust == "continue" else (ev.Part(kind="user", id=order.prompt),)
        kind = order.trust or ev.ORDINARY
        prompt = ev.Prompt(id=order.prompt, kind=kind, owner=order.prompt, parts=(*carried, *said))
        self._feed(ev.PromptOffered(prompt=prompt))

    def cancel(self, order: q.ForwardCancel) -> None:
        self._feed(ev.Cancelled())
        self.bridge.forwarded(order)

    def release(self, order: q.SendRelease) -> None:
        self.releases.append(order)
        self._feed(ev.QueueReleased(owner=order.owner))

    def cut_hook(self) -> None:
        self._feed(ev.PromptQueuedSeen())

    def claim_answered(self, request: str, claimed: bool, queued: bool) -> None:
        self._feed(ev.ClaimAnswered(id=int(request), claimed=claimed, queued=queued))

    def drain_answered(self, request: str, words: tuple[str, ...], queued: bool) -> None:
        parts = tuple(ev.Part(kind="mid_turn", id=one) for one in words)
        self._feed(ev.DrainAnswered(id=int(request), parts=parts, hint=queued))

    def turn_answered(self, request: str, accepted: bool) -> None:
        self._feed(ev.TurnRegistered(id=int(request), accepted=accepted))


def _named(part: ev.Part, send: ev.Send | None = None) -> str:
    """A part in the shared words."""
    if part.kind in ("user", "mid_turn"):
        return part.id
    if part.kind == "guard" and send is not None:
        return f"guard {send.attempt}/2"
    if part.kind == "hook_reason":
        return part.text
    return {"tool_result": "tools"}.get(part.kind, part.kind)


def _joined(labels: list[str]) -> str:
    """Labels of one call; a batch of tool results is one."""
    return " + ".join(label for number, label in enumerate(labels) if number == 0 or label != labels[number - 1])
