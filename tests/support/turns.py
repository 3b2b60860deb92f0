"""A scripted world around the turn machine: model, tools, hooks, the bridge, and history as it becomes.

`World.play` answers each effect by its script, in order, until an effect of a named kind is reached or
nothing is left to answer; a test says what the world answers (`replies`, `drains`, `claims`, `hooks`)
and injects what happens in between. What the machine may never do is checked after every single step.
"""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

from stopwarden.core import backlog as backlogs
from stopwarden.core import backlog_events as waits
from stopwarden.core import door_events as asks
from stopwarden.core import turn_events as ev
from stopwarden.core.chain_words import Chain
from stopwarden.core.guard import Guard
from stopwarden.core.record import Record
from stopwarden.core.todo_envelope import Todo, TodoList
from stopwarden.core.turn import step
from stopwarden.core.turn_state import Session

E = TypeVar("E", bound=ev.Effect)


def todos(unfinished: int, done: int = 0) -> TodoList:
    """A trusted list."""
    items = [Todo(id=f"t{number}", content="work", status="pending") for number in range(unfinished)]
    items += [Todo(id=f"d{number}", content="work", status="completed") for number in range(done)]
    return TodoList(items=tuple(items))


class Reply(Record):
    """What the model does with one request."""

    calls: int = 0
    left: int | None = None  # the calls write a todo list with so many items unfinished
    refused: str = ""
    broken: str = ""
    stop: str = ""  # how the tool batch was stopped


SAY = Reply()
ARM = Reply(calls=1, left=2)
LOOK = Reply(calls=1)
FINISH = Reply(calls=1, left=0)


def text(name: str, image: bool = False) -> ev.Part:
    """Words of the person in the middle of a turn."""
    return ev.Part(kind="mid_turn", id=name, image=image)


class World:
    """One session's turns, played."""

    def __init__(self, switch: str = "on", hooks: bool = False, hook_cap: int = 8) -> None:
        self.state = Session(chain=Chain(guard=Guard(switch=switch)), hooks=hooks, hook_cap=hook_cap)
        self.open: dict[int, ev.Effect] = {}  # effects that are not answered yet, oldest first
        self.effects: list[ev.Effect] = []
        self.history: dict[str, tuple[ev.Part, ...]] = {}
        self.intents: dict[str, tuple[ev.Part, ...]] = {}  # staged, and not yet sent
        self.staged: dict[str, ev.Send] = {}
        self.committed: list[ev.Send] = []
        self.sent: list[ev.Send] = []
        self.replies: deque[Reply] = deque()
        self.drains: deque[dict[str, Any]] = deque()
        self.claims: deque[str] = deque()
        self.hooks: deque[dict[str, Any]] = deque()
        self.running: dict[int, Reply] = {}
        self.prompts = 0
        self.stage = 0  # guard streams the provider began since the person last said something

    # ---- what happens

    def feed(self, event: Record) -> list[ev.Effect]:
        """One step."""
        self.state, effects = step(self.state, event)
        for effect in effects:
            self._note(effect)
        self._check()
        return list(effects)

    def prompt(self, kind: str = ev.ORDINARY, play: bool = True, **replies: Any) -> str:
        """The person writes; the prompt is admitted, and by default all is played out."""
        self.prompts += 1
        name = f"P{self.prompts}"
        said = ev.Part(kind="user", id=f"{name}-words")
        self.feed(ev.PromptOffered(prompt=ev.Prompt(id=name, kind=kind, owner=name, parts=(said,))))
        self.answer(self.pending(ev.AdmitWriter))
        if play:
            self.play()
        return name

    def play(self, until: type[ev.Effect] | None = None, skip: int = 0) -> Any:
        """Answer by the script until an effect of this kind waits (after `skip` others); that effect, or None."""
        for _ in range(500):
            waits = [one for one in self.open.values() if not isinstance(one, ev.Pass)]
            if not waits:
                assert until is None or skip < 0, f"nothing asked for {until}"
                return None
            effect = waits[0]
            if until is not None and isinstance(effect, until):
                if skip == 0:
                    return effect
                skip -= 1
            self.answer(effect)
        raise AssertionError("the turn does not come to an end")

    def pending(self, kind: type[E]) -> E:
        """The effect of this kind that waits for an answer."""
        return next(one for one in self.open.values() if isinstance(one, kind))

    def answer(self, effect: ev.Effect) -> None:
        """Answer one effect as the script says."""
        if isinstance(effect, ev.Send) and effect.id not in self.running:
            self._open_stream(effect)
            return
        del self.open[effect.id]
        match effect:
            case ev.AdmitWriter():
                self.feed(ev.WriterAdmitted(id=effect.id))
            case ev.RegisterTurn():
                self.feed(ev.TurnRegistered(id=effect.id, accepted=True))
            case ev.Drain():
                self.feed(ev.DrainAnswered(id=effect.id, **(self.drains.popleft() if self.drains else {})))
            case ev.Claim():
                self.feed(CLAIM_SAID[self.claims.popleft() if self.claims else "granted"](effect.id))
            case ev.RunHooks():
                self.feed(ev.HookAnswered(id=effect.id, **(self.hooks.popleft() if self.hooks else {})))
            case ev.ChooseModel():
                self.feed(ev.ModelChosen(id=effect.id, model="eyes"))
            case ev.Compress():
                self.feed(ev.CompressionDone(id=effect.id))
            case ev.CheckTokens():
                self.feed(ev.TokensChecked(id=effect.id))
            case ev.Send():
                self._close_stream(effect)
            case ev.RunTools():
                self._run_tools(effect)
            case asks.CheckPlace():
                self.feed(asks.PlaceChecked(id=effect.id, place=effect.path))
            case asks.ReadPlace():
                self.feed(asks.PlaceRead(id=effect.id))
            case asks.LookForActivity():
                self.feed(asks.ActivitySeen(id=effect.id))
            case asks.MakeMove():
                self.feed(asks.MoveMade(id=effect.id))
            case _:
                raise AssertionError(f"nobody answers {effect}")

    def fail(self, effect: ev.Effect, answer: ev.Answer) -> None:
        """Answer otherwise than the script."""
        self.open.pop(effect.id, None)
        self.feed(answer)

    def arm(self, unfinished: int = 2, play: bool = False) -> str:
        """A prompt whose tools write an unfinished list; then the model says its last words, up to the stop."""
        self.replies.extend([Reply(calls=1, left=unfinished), SAY])
        return self.prompt(play=play)

    def _open_stream(self, effect: ev.Send) -> None:
        reply = self.replies.popleft() if self.replies else SAY
        if reply.refused:
            del self.open[effect.id]
            self.feed(ev.ProviderRefused(id=effect.id, why=reply.refused))
            return
        self.running[effect.id] = reply
        self.feed(ev.ProviderAccepted(id=effect.id))

    def _close_stream(self, effect: ev.Send) -> None:
        reply = self.running.pop(effect.id)
        if reply.broken:
            self.feed(ev.StreamBroken(id=effect.id, why=reply.broken))
            return
        calls = tuple(f"call-{effect.id}-{number}" for number in range(reply.calls))
        if calls:
            self.batch = reply
        self.feed(ev.StreamEnded(id=effect.id, reply=f"reply-{effect.id}", calls=calls))

    def _run_tools(self, effect: ev.RunTools) -> None:
        reply, turn = self.batch, self.state.turn
        assert turn is not None
        if reply.left is not None:
            self.feed(ev.TodoWritten(turn=turn.id, todos=todos(reply.left, done=1)))
        results = tuple(ev.Part(kind="tool_result", id=f"result-{call}") for call in effect.calls)
        self.feed(ev.ToolsDone(id=effect.id, parts=results, stop=reply.stop))

    # ---- what the world keeps, and what it sees to

    def _note(self, effect: ev.Effect) -> None:
        self.effects.append(effect)
        match effect:
            case ev.WriteHistory(act="commit"):
                send = self.staged.pop(effect.entry)
                self.history[effect.entry] = send.parts
                self.committed.append(send)
                if any(part.kind in ("user", "mid_turn") for part in send.parts):
                    self.stage = 0
                self.stage += send.attempt > 0
            case ev.WriteHistory(act="stage"):
                self.intents[effect.entry] = effect.parts
            case ev.WriteHistory(act="roll_back"):
                del self.staged[effect.entry]
            case ev.WriteHistory():
                assert effect.entry not in self.history
                self.history[effect.entry] = effect.parts
            case ev.Abort():
                self.open.pop(effect.of, None) if not self._unwinds(effect.of) else None
            case ev.Send():
                assert self.intents.pop(effect.entry) == effect.parts, "a send whose intent is not on disk (I10)"
                self.staged[effect.entry] = effect
                self.sent.append(effect)
                self.open[effect.id] = effect
            case (
                ev.Tell()
                | ev.Pass()
                | ev.HoldWords()
                | ev.BeginTurn()
                | ev.EndTurn()
                | ev.Refuse()
                | ev.ShowPlan()
                | ev.Suggest()
            ):
                pass
            case asks.MoveEnded() | asks.GateSettled() | asks.LoadEnded() | asks.StartCron():
                pass
            case _:
                self.open[effect.id] = effect

    def _unwinds(self, effect: int) -> bool:
        turn = self.state.turn
        return turn is not None and turn.waiting is not None and turn.waiting.id == effect

    def _check(self) -> None:
        begun = {send.entry for send in self.committed}
        for entry, parts in self.history.items():
            ours = [part for part in parts if part.kind in ("guard", "away")]
            assert not ours or entry in begun, "our instruction lies in history outside a stream that began (I4)"
        ids = [part.id for parts in self.history.values() for part in parts if part.kind != "guard"]
        assert len(ids) == len(set(ids)), "something is in history twice (I5)"
        assert self.stage <= 2, "a third stream of the guard without a word of the person (I1)"

    # ---- another process

    def restored(self, **held: Any) -> tuple[waits.Backlog, tuple[Record, ...]]:
        """The backlog of a process that finds this in the store, and what is to be done."""
        return backlogs.step(waits.Backlog(), waits.Restored(**held))

    # ---- what a story asks

    def ends(self) -> list[tuple[str, str]]:
        """Each turn that ended, with its kind."""
        return [(one.turn, one.kind) for one in self.effects if isinstance(one, ev.EndTurn)]

    def attempts(self) -> list[int]:
        """The guard's streams that were sent, by attempt."""
        return [send.attempt for send in self.sent if send.attempt]

    def told(self, kind: str) -> list[dict[str, Any]]:
        """What people were told of this kind."""
        tells = [dict(one.detail) for one in self.effects if isinstance(one, ev.Tell) and one.kind == kind]
        passed = [one.what.as_dict() for one in self.effects if isinstance(one, ev.Pass)]
        names = [type(one.what).__name__ for one in self.effects if isinstance(one, ev.Pass)]
        return tells + [what for what, name in zip(passed, names, strict=True) if name == kind]

    def kinds(self, number: int) -> list[str]:
        """The kinds of the parts of one send."""
        return [part.kind for part in self.sent[number].parts]

    def stored(self, name: str) -> int:
        """How often a part lies in history."""
        return sum(part.id == name for parts in self.history.values() for part in parts)

    def order(self, *kinds: type[ev.Effect]) -> list[str]:
        """The effects of these kinds (all, if none is named) in the order they were asked for."""
        return [type(one).__name__ for one in self.effects if not kinds or isinstance(one, kinds)]


def _said(claimed: bool | None, queued: bool | None) -> Any:
    return lambda id: ev.ClaimAnswered(id=id, claimed=claimed, queued=queued)


CLAIM_SAID = {
    "granted": _said(True, False),
    "queued": _said(False, True),
    "refused": _said(False, False),
    "malformed": _said(True, True),
    "missing": _said(None, None),
}

HINT = {"hint": True}
BLOCK = {"block": True, "reason": "run the tests"}


def at_the_stop(hooks: bool = False, **kw: Any) -> World:
    """A turn whose list has two open items, its last reply just about to end."""
    world = World(hooks=hooks, **kw)
    world.drains.append({})
    world.arm()
    world.answer(world.play(until=ev.Send))
    world.answer(world.play(until=ev.Send))
    world.answer(world.play(until=ev.Send))
    return world
