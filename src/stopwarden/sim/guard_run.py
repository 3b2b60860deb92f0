"""Seeds of the guard simulation played in as many processes as wished, and what was met counted.

The same seed and the same code give the same history, letter by letter: only `random.Random(seed)`
decides, and nothing depends on the order of a set. Seeds are played in chunks, and the chunks counted
in their order up to the first broken promise, so the outcome is the same with one process or many.

What must be met is read from the machines themselves (every event they take, every effect they ask
for), so that a new one which the simulated world does not know is seen as never met.

May not live here: the world (`guard_world`), how a broken history is made short and told (`guard_story`).
"""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stopwarden.core import backlog_events as waits
from stopwarden.core import chain_words as words
from stopwarden.core import door_events as asks
from stopwarden.core import gaps, lineage
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.failures import FAILURES
from stopwarden.core.queue import TAKES
from stopwarden.core.stop_loop import ALLOWED
from stopwarden.core.turn import EVENTS
from stopwarden.core.turn_answers import ANSWERS
from stopwarden.sim.guard_book import PROMISES
from stopwarden.sim.guard_faults import FAULTS, drawn
from stopwarden.sim.guard_races import RACES
from stopwarden.sim.guard_world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from stopwarden.sim.guard_faults import Plan

CHUNK = 50  # seeds that one process plays before it tells
ENOUGH = 20_000  # from so many seeds on, what was never met is a fault of the simulation
DISPOSED_IN = 6  # so many seeds, one ends with the session put away


def kinds_of(module: ModuleType, base: type) -> tuple[str, ...]:
    """The names of all kinds of `base` in a module that are made there; a kind of kinds is none."""
    made = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)]
    return tuple(one.__name__ for one in made if not one.__subclasses__())


PASSED = (  # what the backlog and the wait for background work have to say
    *(waits.Keep, waits.Settle, waits.LeftOut, waits.RetryLater, waits.ShowRetained),
    *(gaps.OpenGap, gaps.MarkTold, gaps.ShowGaps, gaps.ReadGaps, lineage.DeferredTooLong),
)
# What no history meets, and why that is right.
UNMET = {
    "passed LineageReset": "the backlog hears it within the step",
    "passed AutomaticFreed": "the turn looks for automatic turns whenever nothing runs, and passes no word of it on",
}
EXPECTED = tuple(
    name
    for name in (
        *(f"event {kind.__name__}" for kind in dict.fromkeys((*EVENTS, *(kind for _, kind in ANSWERS)))),
        *(f"effect {kind}" for kind in (*kinds_of(ev, ev.Effect), *kinds_of(asks, ev.Effect))),
        *(f"passed {kind}" for kind in (*kinds_of(words, words.ChainEffect), *(kind.__name__ for kind in PASSED))),
        *(f"queue {kind.__name__}" for kind in TAKES),
        *(f"queue effect {kind}" for kind in kinds_of(q, q.Effect)),
        *(f"end {kind}" for kind in sorted({*ALLOWED.values(), *(failure.end for failure in FAILURES.values())})),
        *(f"fault {name}" for name in FAULTS),
        *(f"race {name}" for name in RACES),
        *(f"checked {name}" for name in PROMISES),
        "guard stream",
    )
    if name not in UNMET
)


@dataclass
class Swept:
    """What many seeds came to."""

    seeds: int = 0
    lengths: list[int] = field(default_factory=list)  # events of each history
    hits: dict[str, int] = field(default_factory=dict)
    broken: str = ""
    seed: int = 0  # the one that broke it

    @property
    def events(self) -> int:
        """Events of all histories."""
        return sum(self.lengths)

    @property
    def median(self) -> int:
        """Events of the middle history."""
        return sorted(self.lengths)[len(self.lengths) // 2] if self.lengths else 0

    @property
    def never(self) -> tuple[str, ...]:
        """What was to be met and was not."""
        return tuple(name for name in EXPECTED if not self.hits.get(name))

    @property
    def failed(self) -> bool:
        """A promise is broken, or seeds enough were played and something was never met."""
        return bool(self.broken or (self.seeds >= ENOUGH and self.never))

    def add(self, other: Swept) -> None:
        """Count what later seeds came to."""
        self.seeds += other.seeds
        self.lengths += other.lengths
        for name, times in other.hits.items():
            self.hits[name] = self.hits.get(name, 0) + times
        self.broken, self.seed = other.broken, other.seed


def play(plan: Plan, told: list[str] | None = None) -> World:
    """One history, to its healed end or to the first broken promise."""
    world = World(plan, told)
    for number in plan.steps:
        world.play(number)
        if world.book.broken:
            return world
    world.heal(dispose=plan.seed % DISPOSED_IN == 0)
    return world


def played(seeds: range) -> Swept:
    """These seeds one after the other; stops at the first broken promise."""
    swept = Swept()
    for seed in seeds:
        world = play(drawn(seed))
        swept.add(Swept(1, [world.events], world.book.hits, world.book.broken, seed if world.book.broken else 0))
        if swept.broken:
            break
    return swept


def sweep(seeds: int, first: int, *, jobs: int = 1, progress: Callable[[int], None] = lambda _: None) -> Swept:
    """Plays `seeds` seeds from `first` on in `jobs` processes, to the first broken promise.

    `progress` is told how many were played.
    """
    chunks = [range(one, min(one + CHUNK, first + seeds)) for one in range(first, first + seeds, CHUNK)]
    swept = Swept()
    for chunk in _in_order(chunks, min(jobs, len(chunks))):
        swept.add(chunk)
        progress(swept.seeds)
        if swept.broken:
            break
    return swept


def _in_order(chunks: list[range], jobs: int) -> Iterator[Swept]:
    if jobs < 2:
        yield from map(played, chunks)
        return
    with multiprocessing.Pool(jobs) as pool:  # its end ends what still plays
        yield from pool.imap(played, chunks)
