"""Policies compared on the same nights.

Each policy plays every night of a seed; the nights do not depend on it, nor on how many there are.
May not live here: what happens in a night (`sim.nights`), what a second of it is worth (`sim.tally`),
the page that tells of it (`sim.nights_page`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwarden.core.bounds import Policy
from stopwarden.core.errors import UsageError
from stopwarden.sim import plans
from stopwarden.sim.nights import SessionNight
from stopwarden.sim.policies import GUARDS
from stopwarden.sim.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stopwarden.sim.policies import Guard


@dataclass(frozen=True)
class Contender:
    """One policy of the comparison."""

    name: str
    words: str
    guard: Guard
    policy: Policy


CONTENDERS = (
    *(Contender(guard.name, guard.words, guard, Policy()) for guard in GUARDS.values()),
    Contender("ours-with-keeper", "ours, with the keeper", GUARDS["ours"], Policy(keeper=True)),
)


@dataclass(frozen=True)
class Result:
    """What came of all nights under one policy."""

    contender: Contender
    nights: int
    total: Tally
    by_temper: dict[str, Tally]

    def a_night(self, value: float) -> float:
        """On average."""
        return value / self.nights


def contender(name: str) -> Contender:
    """The contender of this name. Raises UsageError with those that there are."""
    for one in CONTENDERS:
        if one.name == name:
            return one
    raise UsageError(
        f"There is no policy {name!r}", do=f"Use one of: {', '.join(one.name for one in CONTENDERS)}; or NAME=VALUE"
    )


def compare(
    contenders: Sequence[Contender],
    nights: int,
    seed: int,
    watch: Callable[[str, int], None] = lambda name, night: None,
) -> list[Result]:
    """Plays nights 0 to `nights` - 1 of the seed under each policy."""
    drawn = [plans.plan(seed, number) for number in range(nights)]
    results = []
    for one in contenders:
        total, by_temper = Tally(), {temper: Tally() for temper in plans.TEMPERS}
        for plan in drawn:
            watch(one.name, plan.number)
            told = SessionNight(plan, one.guard, one.policy).play()
            total.add(told)
            by_temper[plan.temper].add(told)
        results.append(Result(one, nights, total, by_temper))
    return results
