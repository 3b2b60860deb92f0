"""A history that broke a promise, made as short as it still breaks it, and told.

Theory of operation. A history is a plan: what may go wrong, what is usual, and one number a step from
which all of that step is drawn. Whatever is left out of a plan leaves a plan, so shrinking is trying:
without a fault, without a habit, without runs of steps (long ones first), then with smaller numbers,
which mean the first of what may happen, no stroke of a fault, the shortest time; and steps again. A
smaller plan is taken when it breaks the same promise. Names are given as things come, so they shrink
with the history.

May not live here: what is played (`guard_run`), the words of a single line (`guard_words`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.sim.guard_faults import FAULTS, HABITS
from stopwarden.sim.guard_run import play

if TYPE_CHECKING:
    from stopwarden.sim.guard_faults import Plan

SHRINK_RUNS = 3_000
SMALLER = (0, 8, 16, 24, 40)  # bits of a step's number that are tried


class Shrinking:
    """One plan on its way to a shorter one."""

    def __init__(self, plan: Plan, broken: str) -> None:
        self.plan, self.kind = plan, promise(broken)
        self.runs = 0

    def tried(self, smaller: Plan) -> bool:
        """Takes the smaller plan if it breaks the same promise, and says whether."""
        if self.runs >= SHRINK_RUNS:
            return False
        self.runs += 1
        if promise(play(smaller).book.broken) != self.kind:
            return False
        self.plan = smaller
        return True

    def without_names(self) -> None:
        """What need not go wrong, and what need not be usual."""
        for fault in self.plan.faults:
            self.tried(self.plan.replace(faults=tuple(one for one in self.plan.faults if one != fault)))
        for habit in self.plan.habits:
            self.tried(self.plan.replace(habits=tuple(one for one in self.plan.habits if one != habit)))

    def without_steps(self) -> None:
        """Runs of steps that need not be, by halves down to single ones, until no single one can go."""
        size = max(1, len(self.plan.steps) // 2)
        while self.runs < SHRINK_RUNS:
            place, before = 0, len(self.plan.steps)
            while place < len(self.plan.steps) and self.runs < SHRINK_RUNS:
                steps = self.plan.steps
                if not self.tried(self.plan.replace(steps=steps[:place] + steps[place + size :])):
                    place += size
            if size == 1 and len(self.plan.steps) == before:
                return
            size = max(1, size // 2)

    def with_smaller_numbers(self) -> None:
        """The plainest that each step can be."""
        for place in range(len(self.plan.steps)):
            steps = self.plan.steps
            for bits in SMALLER:
                number = steps[place] % (1 << bits)
                if number == steps[place] or self.tried(
                    self.plan.replace(steps=(*steps[:place], number, *steps[place + 1 :]))
                ):
                    break


def promise(broken: str) -> str:
    """Which promise the words of a break are about."""
    return broken.partition(":")[0]


def shrunk(plan: Plan, broken: str) -> Plan:
    """A plan with as few steps and faults, and numbers as small, as still break the same promise."""
    shrinking = Shrinking(plan, broken)
    shrinking.without_names()
    shrinking.without_steps()
    shrinking.with_smaller_numbers()
    shrinking.without_names()
    shrinking.without_steps()
    return shrinking.plan


def story(plan: Plan) -> tuple[str, ...]:
    """A history, told: its world, numbered lines in order of time, and the promise that it broke."""
    told: list[str] = []
    world = play(plan, told)
    wrong = [f"may go wrong: {FAULTS[name]}" for name in plan.faults] or ["nothing goes wrong"]
    usual = [f"usual: {HABITS[name]}" for name in plan.habits]
    end = f"BROKEN  {world.book.broken}" if world.book.broken else "Every promise held."
    return (*wrong, *usual, *(f"{place:>4} {line}" for place, line in enumerate(told, start=1)), end)
