"""What may go wrong in a guard simulation, and where its choices come from.

A seed draws a *swarm*: some of FAULTS and none of the others, so that each fault also meets a world in
which nothing else goes wrong. A history is a `Plan`: its swarm and one number a step. All that is
decided within a step is drawn from that number, so a plan without some of its steps is a plan again,
and a failing one can be shrunk. May not live here: what a fault does (`guard_world`).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from stopwarden.core.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

FAULTS: Mapping[str, str] = {
    "late": "answers and orders overtake each other",
    "doubled": "an answer comes twice",
    "lost_claim": "the answer to a claim never comes",
    "lost_cancel": "the answer to a forwarded cancel never comes",
    "silent_bridge": "time passes while a drain or a claim is out",
    "lying_bridge": "the answer to a claim or a drain is malformed",
    "gone_bridge": "claims and drains fail at once",
    "no_drain": "the bridge knows no drain",
    "refused_send": "the provider does not begin a stream",
    "outage": "the provider refuses everything for a while",
    "broken_send": "a stream ends early",
    "failing_hook": "the Stop hooks cannot be asked",
    "stopped_tools": "a protection stops a batch of tools",
    "no_room": "compression fails, or what is to be sent does not fit",
    "unreadable": "an attachment cannot be read",
    "no_judge": "a stop cannot be judged while the person is away",
    "no_record": "a verdict cannot be recorded",
    "stale_store": "the store has gone on since a stop was judged",
    "told_twice": "a result or a fire is told twice",
    "crash": "the agent process ends between two effects, and another one loads what is on disk",
    "clock_step": "the clock goes back, or far ahead",
}
# What the people and the work of a seed are given to; drawn like faults, and none of them is one.
HABITS: Mapping[str, str] = {
    "eager": "the person writes while a turn runs",
    "talks": "the person says things in the middle of a turn",
    "takes_back": "prompts and messages are taken out of the queue, callers go away",
    "cancels": "the person cancels",
    "plans": "plan mode comes and goes",
    "switches": "the guard is switched",
    "moves": "the session is closed, moved, rewound",
    "schedules": "schedules fire",
    "background": "tools set work going that tells of itself later",
    "registers": "background turns are announced to the owner",
    "leaves": "the person goes away and comes back",
    "floods": "background work tells more than can wait",
    "shares": "another session wants the same item, and what it says comes here now and then",
    "hooks": "there are Stop hooks",
}
FEWEST_STEPS, MOST_STEPS = 140, 300


class Plan(Record):
    """One history to be: which seed it came from, what may go wrong, what is usual there, and its steps."""

    seed: int
    faults: tuple[str, ...]
    habits: tuple[str, ...]
    steps: tuple[int, ...]


def drawn(seed: int) -> Plan:
    """The plan of a seed."""
    dice = random.Random(seed)
    share = dice.choice((0.0, 0.15, 0.3, 0.6))
    faults = tuple(name for name in FAULTS if dice.random() < share)
    share = dice.choice((0.2, 0.4, 0.7))
    habits = tuple(name for name in HABITS if dice.random() < share)
    count = dice.randint(FEWEST_STEPS, MOST_STEPS)
    return Plan(seed=seed, faults=faults, habits=habits, steps=tuple(dice.getrandbits(62) for _ in range(count)))


class Choices:
    """All decisions of one step, from its number. A number that is used up decides for what comes first."""

    __slots__ = ("rest",)

    def __init__(self, number: int) -> None:
        self.rest = number

    def below(self, count: int) -> int:
        """A whole number from 0 to `count` - 1."""
        self.rest, drawn_now = divmod(self.rest, count)
        return drawn_now

    def one_in(self, count: int) -> bool:
        """True in one of `count` cases."""
        return self.below(count) == count - 1
