"""What a night brings, drawn from a seed: the work, the agent, and what the world does to both.

A plan is drawn once and played under every policy, so all of them meet the same items, the same
errors at the same minutes, the same scheduler. How often something happens follows what people
report of such nights (schedules that go silent, usage limits, restarts); the numbers are in
`docs/nights.md`, and none of them depends on what a policy does.
May not live here: time passing (`sim.nights`), what an agent makes of it (`sim.agents`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

from stopwarden.core.bounds import HOUR, MINUTE
from stopwarden.store.journal import RecordedZone

if TYPE_CHECKING:
    from stopwarden.core.events import Instant

TEMPERS = {"obedient": 35, "lazy": 25, "looping": 15, "lying": 15, "mixed": 10}  # of a hundred nights
OBSTACLES = {"": 78, "person": 12, "external": 10}  # of a hundred items
FIRST_EVENING = int(datetime(2026, 10, 20, 21, tzinfo=UTC).timestamp())
CLOCKS_GO_BACK = int(datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp())
SUMMER = 1 * HOUR
ZONE = RecordedZone(name="Europe/London", offsets=((0, SUMMER), (CLOCKS_GO_BACK, 0)), until=2**40)

ERRORS = 0.6  # of the provider in a night, on average: each ends the turn that runs then, if any
OUTAGE, LIMIT = 0.10, 0.12  # share of nights in which the provider is down for a while, or a usage limit is reached
SILENT, SHORT_SILENT = 0.04, 0.04  # share of nights in which the scheduler never fires again, or not for some hours
RESTART = 0.08  # share of nights in which the agent program dies and is started again
VANISHES = 0.01  # share of one-shots that never fire
SAYS = 0.8  # share of nights in which the hook hears the host's own word on a wake
HOLDS = 0.3  # share of nights in which the session holds its items by a lease
UNTIL_DONE = 0.3


@dataclass(frozen=True)
class Errand:
    """One item of the list, and what it takes."""

    id: str
    minutes: int
    obstacle: str  # "": it can be done; "person", "external": not before `clears_at`
    clears_at: Instant  # for a person: never in this night


@dataclass(frozen=True)
class Trouble:
    """The provider answers nothing from `since` until `until`; a limit tells when it ends."""

    since: Instant
    until: Instant
    limit: bool = False


@dataclass(frozen=True)
class Plan:
    """One night."""

    seed: int
    number: int
    since: Instant
    until: Instant
    temper: str
    errands: tuple[Errand, ...]
    errors: tuple[Instant, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    silent: tuple[Instant, Instant] | None = None  # the scheduler fires nothing in between
    restarts: tuple[Instant, ...] = ()
    says: bool = True
    lease: int = 0  # seconds; 0: nothing is held
    until_done: bool = False

    def dice(self, *place: object) -> Random:
        """Chance that is the same for the same place of the same night, whatever was drawn elsewhere."""
        return Random("/".join(map(str, (self.seed, self.number, *place))))

    def trouble(self, at: Instant) -> Trouble | None:
        """What the provider suffers from at that moment."""
        return next((one for one in self.troubles if one.since <= at < one.until), None)


def plan(seed: int, number: int) -> Plan:
    """The night of this number, of all nights of this seed."""
    dice = Random(f"{seed}/{number}")
    since = FIRST_EVENING + number % 12 * 24 * HOUR + dice.randrange(3 * HOUR)
    length = dice.randrange(8 * 60, 10 * 60 + 31) * MINUTE

    def moment(first: float = 0.0, last: float = 1.0) -> Instant:
        return since + int(dice.uniform(first, last) * length)

    errors = tuple(sorted(moment() for _ in range(8) if dice.random() < ERRORS / 8))
    troubles = []
    if dice.random() < OUTAGE:
        begins = moment(0.05, 0.9)
        troubles.append(Trouble(begins, begins + dice.randrange(20, 181) * MINUTE))
    if dice.random() < LIMIT:
        begins = moment(0.1, 0.8)
        troubles.append(Trouble(begins, begins + dice.randrange(60, 241) * MINUTE, limit=True))
    silent: tuple[Instant, Instant] | None = None
    if dice.random() < SILENT:
        silent = (moment(0.0, 0.6), since + 2 * length)
    elif dice.random() < SHORT_SILENT:
        begins = moment(0.0, 0.6)
        silent = (begins, begins + dice.randrange(2, 7) * HOUR)
    return Plan(
        seed=seed,
        number=number,
        since=since,
        until=since + length,
        temper=dice.choices(list(TEMPERS), list(TEMPERS.values()))[0],
        errands=tuple(_errand(dice, place, moment) for place in range(dice.randrange(3, 25))),
        errors=errors,
        troubles=tuple(troubles),
        silent=silent,
        restarts=(moment(0.1, 0.9),) if dice.random() < RESTART else (),
        says=dice.random() < SAYS,
        lease=dice.choice((1, 2, 4)) * HOUR if dice.random() < HOLDS else 0,
        until_done=dice.random() < UNTIL_DONE,
    )


def _errand(dice: Random, place: int, moment: object) -> Errand:
    obstacle = dice.choices(list(OBSTACLES), list(OBSTACLES.values()))[0]
    minutes = min(120, max(4, int(dice.lognormvariate(3.1, 0.8))))
    clears = moment(0.1, 0.9) if obstacle == "external" else 0  # type: ignore[operator]
    return Errand(id=f"i{place + 1}", minutes=minutes, obstacle=obstacle, clears_at=clears)
