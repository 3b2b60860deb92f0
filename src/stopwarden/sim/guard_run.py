"""Seeds of the guard simulation played, counted, and where a promise breaks, shrunk and told.

The same seed and the same code give the same history, letter by letter: only `random.Random(seed)`
decides, and nothing depends on the order of a set. May not live here: the world (`guard_world`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stopwarden.sim.guard_book import RACES
from stopwarden.sim.guard_faults import FAULTS, drawn
from stopwarden.sim.guard_world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.sim.guard_faults import Plan

SHRINK_RUNS = 3_000
DISPOSED_IN = 6  # so many seeds, one ends with the session put away
EVENTS = (
    *("PromptOffered", "WriterAdmitted", "PromptWithdrawn", "PromptQueuedSeen", "QueueReleased", "ModeChanged"),
    *("TodoWritten", "BackgroundChanged", "ResultArrived", "FireArrived", "SwitchSet", "Rewound", "Cancelled"),
    *("Disposed", "GateTaken", "Relocated", "GateReleased", "Tick", "DrainAnswered", "ClaimAnswered", "HookAnswered"),
    *("ModelChosen", "CompressionDone", "CompressionFailed", "TokensChecked", "ProviderAccepted", "ProviderRefused"),
    *("StreamEnded", "StreamBroken", "ToolsDone", "MessageSending", "MessageSettled", "Spawned", "GapsShown"),
    "PersonLooks",
)
QUEUE_EVENTS = (
    *("Admit", "RemovePrompt", "CancelRunning", "ListPending", "PostMessage", "RemoveMessage", "ClientJoined"),
    *("ClientLeft", "AskClaim", "AskDrain", "PromptSettled", "CancelForwarded", "ReleaseAnswered", "TimerFired"),
    "MessagesResolved",
)
EXPECTED = (
    *(f"event {name}" for name in EVENTS),
    *(f"queue {name}" for name in QUEUE_EVENTS),
    *(f"fault {name}" for name in FAULTS),
    *(f"race {name}" for name in RACES),
    "guard stream",
)
HELD = (
    "",
    "Held after every event: never a third stream of the guard without new words of the person (I1), none without a",
    "claim of its own, granted when no other prompt was admitted (I2), no wait for a prompt that is not there once all",
    "is quiet (I3), none of the guard's words in history outside a stream that began (I4), every word of the person,",
    "tool result and background result in history once or named as left out (I5), nothing sent by a chain that was",
    "cancelled, put in plan mode or otherwise stopped (I6), nothing while a shell of its own still runs, and no event",
    "of a legal world refused.",
)


@dataclass
class Swept:
    """What many seeds came to."""

    seeds: int = 0
    events: int = 0
    lengths: list[int] = field(default_factory=list)  # events of each history
    hits: dict[str, int] = field(default_factory=dict)
    broken: str = ""
    seed: int = 0  # the one that broke it
    story: tuple[str, ...] = ()

    @property
    def median(self) -> int:
        """Events of the middle history."""
        return sorted(self.lengths)[len(self.lengths) // 2] if self.lengths else 0

    @property
    def never(self) -> tuple[str, ...]:
        """What was to be met and was not."""
        return tuple(name for name in EXPECTED if not self.hits.get(name))


def play(plan: Plan, told: list[str] | None = None) -> World:
    """One history, to its healed end or to the first broken promise."""
    world = World(plan, told)
    for number in plan.steps:
        world.play(number)
        if world.book.broken:
            return world
    world.heal(dispose=plan.seed % DISPOSED_IN == 0)
    return world


def sweep(seeds: int, first: int, *, go_on: Callable[[Swept], bool] | None = None) -> Swept:
    """Plays `seeds` seeds from `first` on; stops at the first broken promise, or when `go_on` says no."""
    swept = Swept()
    for seed in range(first, first + seeds):
        if go_on is not None and not go_on(swept):
            break
        plan = drawn(seed)
        world = play(plan)
        swept.seeds += 1
        swept.events += world.events
        swept.lengths.append(world.events)
        for name, times in world.book.hits.items():
            swept.hits[name] = swept.hits.get(name, 0) + times
        if world.book.broken:
            swept.seed, swept.broken = seed, world.book.broken
            swept.story = story(shrunk(plan, world.book.broken))
            break
    return swept


def shrunk(plan: Plan, broken: str) -> Plan:
    """A plan with as few steps and faults as still break the same promise."""
    kind, runs = broken.partition(":")[0], 0

    def still(smaller: Plan) -> bool:
        nonlocal runs
        runs += 1
        return play(smaller).book.broken.partition(":")[0] == kind

    for fault in plan.faults:
        fewer = plan.replace(faults=tuple(one for one in plan.faults if one != fault))
        plan = fewer if still(fewer) else plan
    for habit in plan.habits:
        fewer = plan.replace(habits=tuple(one for one in plan.habits if one != habit))
        plan = fewer if still(fewer) else plan
    size = max(1, len(plan.steps) // 2)
    while runs < SHRINK_RUNS:
        place, before = 0, len(plan.steps)
        while place < len(plan.steps) and runs < SHRINK_RUNS:
            fewer = plan.replace(steps=plan.steps[:place] + plan.steps[place + size :])
            if still(fewer):
                plan = fewer
            else:
                place += size
        if size == 1 and len(plan.steps) == before:
            break
        size = max(1, size // 2)
    return plan


def story(plan: Plan) -> tuple[str, ...]:
    """A history, told."""
    told: list[str] = []
    world = play(plan, told)
    may = ", ".join(plan.faults) or "nothing"
    usual = ", ".join(plan.habits) or "nothing"
    return (f"What may go wrong: {may}. What is usual there: {usual}.", *told, world.book.broken)
