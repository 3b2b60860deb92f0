"""What an event costs the turn machine: against bare copies, among a thousand tasks, and after a long history.

A session is driven through whole turns: a prompt, tools that write a todo list, Stop hooks, drains,
claims, both streams of the guard, background results. Its events are recorded and taken again, so that
nothing but `turn.step` is measured, on one core, in the processor time of this process.

- The peer of an event is what changing one field each of the session and of its turn costs with the
  standard library: two `dataclasses.replace` of frozen dataclasses with the same fields. Our step does
  that and takes the event.
- The peer of a decision is one bare look-up of each task in the set of those that are old.
- The peer of an event after 100,000 history entries is the same event in a young session.

    python -m bench, or this alone: python -m bench.turns
"""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import TYPE_CHECKING

from bench.figure import Figure, ratio
from stopwarden.core import backlog, chain
from stopwarden.core import turn_events as ev
from stopwarden.core.chain_words import Chain
from stopwarden.core.fires import Fire
from stopwarden.core.guard import Guard
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from stopwarden.core.todo_envelope import Todo, TodoList
from stopwarden.core.turn import step
from stopwarden.core.turn_state import Session, Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.record import Record

ENTRIES, TASKS = 100_000, 1_000
FRESH = Session(chain=Chain(guard=Guard(switch="on")), hooks=True)
OPEN = TodoList(items=tuple(Todo(id=str(one), content="work", status="pending") for one in range(3)))


class Driven:
    """A session that is played from prompt to prompt; what it was told is kept if it is asked for."""

    def __init__(self, state: Session = FRESH, prompts: int = 0) -> None:
        self.state, self.prompts = state, prompts
        self.events: list[Record] = []
        self.entries = 0
        self.keeps = True

    def turn(self, batches: int = 1) -> None:
        """A prompt, so many batches of tools, then stops until the guard has used its streams up."""
        self.prompts += 1
        name = f"P{self.prompts}"
        self.calls = batches
        words = ev.Part(kind="user", id=f"{name}-words")
        waits = self.feed(ev.PromptOffered(prompt=ev.Prompt(id=name, owner=name, parts=(words,))))
        while waits:
            waits += self.answer(waits.pop(0))

    def feed(self, event: Record) -> list[ev.Effect]:
        """One step; the effects that want an answer."""
        if self.keeps:
            self.events.append(event)
        self.state, effects = step(self.state, event)
        self.entries += sum(type(effect) is ev.WriteHistory for effect in effects)
        return [effect for effect in effects if type(effect) in ANSWERS]

    def answer(self, effect: ev.Effect) -> list[ev.Effect]:
        """What comes back for one effect."""
        more: list[ev.Effect] = []
        if isinstance(effect, ev.RunTools):
            turn = self.state.turn
            assert turn is not None
            task = Task(kind="shell", id=f"shell-{effect.id}", state="finished")
            more += self.feed(ev.TodoWritten(turn=turn.id, todos=OPEN))
            more += self.feed(ev.BackgroundChanged(tasks=(task,)))
            more += self.feed(ev.ResultArrived(result=Result(id=f"told-{effect.id}", kind="shell", task=task.id)))
        if isinstance(effect, ev.Send):
            more += self.feed(ev.ProviderAccepted(id=effect.id))
            calls = (f"call-{effect.id}",) if self.calls > 0 else ()
            self.calls -= 1
            return more + self.feed(ev.StreamEnded(id=effect.id, reply=f"reply-{effect.id}", calls=calls, tokens=100))
        return more + self.feed(ANSWERS[type(effect)](effect.id))


ANSWERS: dict[type[ev.Effect], Callable[[int], Record]] = {
    ev.AdmitWriter: lambda id: ev.WriterAdmitted(id=id),
    ev.RegisterTurn: lambda id: ev.TurnRegistered(id=id, accepted=True),
    ev.Drain: lambda id: ev.DrainAnswered(id=id),
    ev.Claim: lambda id: ev.ClaimAnswered(id=id, claimed=True, queued=False),
    ev.RunHooks: lambda id: ev.HookAnswered(id=id),
    ev.Compress: lambda id: ev.CompressionDone(id=id),
    ev.CheckTokens: lambda id: ev.TokensChecked(id=id),
    ev.Send: lambda id: ev.ProviderAccepted(id=id),
    ev.RunTools: lambda id: ev.ToolsDone(id=id, parts=(ev.Part(kind="tool_result", id=f"result-{id}"),)),
}


def figures(rounds: int = 40) -> list[Figure]:
    """Every figure of the turn machine."""
    return [_against_copies(rounds), _decision(rounds), _after_long_history(rounds)]


def _against_copies(rounds: int, turns: int = 60) -> Figure:
    driven = Driven()
    for _ in range(turns):
        driven.turn()
    session, turn = _bare(Session)(), _bare(Turn)()

    def copies() -> None:
        for number, _ in enumerate(driven.events):
            dataclasses.replace(session, next_id=number)
            dataclasses.replace(turn, row="stop.drain")

    ours, peers = _interleaved(rounds, lambda: _taken(FRESH, driven.events), copies)
    count = len(driven.events)
    detail = f"{count / min(ours):,.0f} events/s at best, {min(ours) / count * 1e6:.1f} us an event"
    return Figure("an event through the turn machine", "two dataclass copies", ratio(ours, peers), 2.5, detail)


def _bare(kind: type[Record]) -> type:
    """A frozen dataclass with the fields of a record."""
    fields = [(name, object, dataclasses.field(default=None)) for name in kind.fields]
    return dataclasses.make_dataclass(kind.__name__, fields, frozen=True, slots=True)


def _decision(rounds: int) -> Figure:
    """At a stop with all the work old, which is the longest look: nothing that is found ends it early."""
    driven = Driven(FRESH.replace(tasks=tuple(Task(kind="agent", id=f"a{one}") for one in range(TASKS))))
    waits = driven.feed(ev.PromptOffered(prompt=ev.Prompt(id="P", owner="P")))
    driven.feed(ANSWERS[type(waits[0])](waits[0].id))
    driven.feed(ev.TodoWritten(turn="P", todos=OPEN))
    for one in range(300):
        driven.feed(ev.ResultArrived(result=Result(id=f"r{one}", kind="agent", task=f"a{one}")))
        driven.feed(ev.FireArrived(fire=Fire(id=f"f{one}", job=f"j{one}")))
    state = driven.state
    old = state.backlog.lineage.baseline

    def decide() -> None:
        decision = chain.decide(state.chain, "P", backlog.defers_guard(state.backlog, state.tasks))
        assert decision.kind == "continue"

    def look() -> None:
        assert not [task for task in state.tasks if (task.kind, task.id) not in old]

    ours, peers = _interleaved(10 * rounds, decide, look)
    queued = f"{len(state.backlog.results)} results and {len(state.backlog.fires)} fires wait"
    detail = f"{min(ours) * 1e3:.2f} ms at best, {queued}"
    return Figure(f"a decision among {TASKS:,} tasks", "a look-up of each", ratio(ours, peers), 6.0, detail)


def _after_long_history(rounds: int, turns: int = 60) -> Figure:
    young, old = Driven(), Driven()
    old.keeps = False
    while old.entries < ENTRIES:
        old.turn(batches=10)
    retired = old.state.next_id
    old.keeps = True
    states = young.state, old.state
    for driven in (young, old):
        for _ in range(turns):
            driven.turn()
    aged, fresh = _interleaved(rounds, lambda: _taken(states[1], old.events), lambda: _taken(states[0], young.events))
    detail = f"{old.entries:,} entries and {retired:,} ids are behind it"
    return Figure("an event after a long history", "the same in a young one", ratio(aged, fresh), 1.2, detail)


def _taken(state: Session, events: list[Record]) -> None:
    for event in events:
        state, _ = step(state, event)


def _interleaved(rounds: int, ours: Callable[[], None], peer: Callable[[], None]) -> tuple[list[float], list[float]]:
    """Seconds of both, in turns; the first round only warms up."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for one in (0, 1) if number % 2 else (1, 0):
            begun = time.process_time_ns()
            (ours, peer)[one]()
            if number:
                times[one].append((time.process_time_ns() - begun) / 1e9)
    return times


if __name__ == "__main__":
    found = figures()
    for figure in found:
        print(figure.row())
    sys.exit(not all(figure.holds for figure in found))
