"""The agents of a simulated night: what each kind does between being told something and its next stop.

* *obedient*: does what it is told, marks what waits, schedules when asked; still it stops after some items.
* *lazy*: stops early and says it is done, leaves things half done, schedules looks for the morning.
* *looping*: moves nothing; talks, or runs the same command again. One in five never schedules anything.
* *lying*: says what is not so. It ticks what it has not done, moves states back and forth, rewords
  the list, takes items off it, leaves an endless command running as its excuse.
* *mixed*: another of these at each turn.

An agent reads what a model reads: the reason of the block, and the exact call in it if there is one.
Of a wake that it makes by itself it knows nothing better than people do. Chance comes from the
night's own dice, so the same agent meets the same moods under every policy.
May not live here: time, the scheduler, what is judged (`sim.nights`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwarden.core.bounds import MINUTE
from stopwarden.core.owed import LIVE

if TYPE_CHECKING:
    from random import Random

    from stopwarden.core.events import Instant, ItemState, WaitsOn, Zone
    from stopwarden.sim.plans import Errand
    from stopwarden.sim.scheduler import Scheduled

LOOK_MINUTES = 1  # to look whether something has come
FIND_OUT = 5  # minutes until an obstacle is met
_CALL = re.compile(r'CronCreate with cron "([^"]+)" and recurring true|ScheduleWakeup with delaySeconds ([0-9]+)')


@dataclass
class Work:
    """An item as it stands on the list, and how it really stands."""

    errand: Errand
    left: float  # minutes
    title: str
    state: ItemState = "open"
    waits_on: WaitsOn | None = None
    met: bool = False  # its obstacle is known

    @property
    def awaited(self) -> bool:
        """It is marked as waiting for something that comes from outside."""
        return self.state == "waiting" and self.waits_on == "external"

    def doable(self, now: Instant) -> bool:
        """Whether somebody who tried could do something about it now. To find out what hinders it is something."""
        if self.left <= 0:
            return False
        return not self.errand.obstacle or not self.met or self.cleared(now)

    def cleared(self, now: Instant) -> bool:
        """Whether what it waits for has come."""
        return self.errand.obstacle == "external" and now >= self.errand.clears_at


@dataclass(frozen=True)
class Told:
    """What the agent reads at the beginning of a turn, or as the reason of a block."""

    by: str  # "person", "wake", "block"
    reason: str = ""
    item: str = ""  # that the reason names first

    @property
    def asks_for_a_wake(self) -> bool:
        return "wake must come by" in self.reason or "safety wake" in self.reason or "your next look" in self.reason


@dataclass(frozen=True)
class Temper:
    """How an agent is: the weights of what it does in a turn, and how it is about wakes (shares of one)."""

    deeds: dict[str, float]
    stamina: float  # it goes on with the next item
    marks: float  # it marks what waits on somebody
    habit: float  # it schedules a look though nobody asked
    asked: float  # it schedules one when asked
    well: float  # and then one that is meant to be within the hour
    call: float  # it types the exact call that it is given


TEMPERS = {
    "obedient": Temper({"work": 0.9, "part": 0.1}, stamina=0.6, marks=0.9, habit=0.4, asked=0.95, well=0.85, call=0.99),
    "lazy": Temper(
        {"work": 0.25, "part": 0.45, "talk": 0.3}, stamina=0.1, marks=0.4, habit=0.3, asked=0.4, well=0.4, call=0.85
    ),
    "looping": Temper({"talk": 0.4, "same": 0.6}, stamina=0.0, marks=0.0, habit=0.15, asked=0.3, well=0.5, call=0.8),
    "silent": Temper({"talk": 0.7, "same": 0.3}, stamina=0.0, marks=0.0, habit=0.0, asked=0.0, well=0.0, call=0.0),
    "lying": Temper(
        {"tick": 0.12, "flip": 0.18, "reword": 0.15, "drop": 0.03, "excuse": 0.17, "talk": 0.15, "work": 0.2},
        stamina=0.1,
        marks=0.3,
        habit=0.25,
        asked=0.4,
        well=0.5,
        call=0.8,
    ),
}
NEVER_SCHEDULES = 0.2  # of the looping ones

WELL = (
    *("*/15 * * * *", "*/20 * * * *", "*/30 * * * *", "*/45 * * * *", "7 * * * *"),
    *("in 25", "in 40", "in 50", "pace 1500", "pace 2700", "pace 3500"),
)
BADLY = (
    "0 9 * * *",
    "0 3 * * *",
    "0 */2 * * *",
    "*/50 * * * *",
    "30 6 * * *",
    "pace 3600",
    "in 90",
    "@hourly",
    "in 180",
)


class Machine:
    """What an agent can do. The night keeps it by structure; this class is for type checkers."""

    if TYPE_CHECKING:
        now: Instant
        zone: Zone
        works: list[Work]
        wakes: list[Scheduled]

        def use(self, minutes: float = 0.1) -> None:
            """A tool runs. The turn may end in it, and then this does not return."""

        def say(self, seconds: int) -> None:
            """Words alone."""

        def create(self, schedule: str, *, recurring: bool) -> None: ...
        def pace(self, delay: int) -> None: ...
        def leave_running(self, command: str) -> None: ...


def temper_of(name: str, dice: Random, of_night: Random) -> Temper:
    """The temper in which an agent of this kind is now; `of_night` gives what holds all night."""
    if name == "mixed":
        name = dice.choice(("obedient", "lazy", "looping", "lying"))
    if name == "looping" and of_night.random() < NEVER_SCHEDULES:
        name = "silent"
    return TEMPERS[name]


def act(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """All that the agent does until its next stop."""
    deed = dice.choices(list(temper.deeds), list(temper.deeds.values()))[0]
    _DEEDS[deed](machine, temper, told, dice)
    _schedule(machine, temper, told, dice)


def _work(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """Item after item, as long as it feels like it."""
    done = 0
    for work in _in_order(machine, told):
        if done and dice.random() >= temper.stamina:
            break
        done += _do(machine, work, work.left, temper, dice)
    if not done:
        machine.say(20)


def _part(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """Some of the first item; then it says that this was it."""
    for work in _in_order(machine, told)[:1]:
        _do(machine, work, min(work.left * dice.uniform(0.3, 0.7), 20), temper, dice)
    machine.say(20)


def _do(machine: Machine, work: Work, minutes: float, temper: Temper, dice: Random) -> bool:
    """Works on one item: to its end, for some minutes, or until it meets what hinders it. False: nothing came of it."""
    if work.met and not work.cleared(machine.now):
        machine.use(LOOK_MINUTES)
        return False
    if work.state != "doing":
        work.state, work.waits_on = "doing", None
        machine.use()
    if work.errand.obstacle and not work.cleared(machine.now):
        machine.use(FIND_OUT)
        work.met = True
        if dice.random() < temper.marks:
            work.state = "waiting"
            work.waits_on = "person" if work.errand.obstacle == "person" else "external"
            machine.use()
        return True
    while minutes > 0:
        step = min(5.0, minutes)
        machine.use(step)
        minutes -= step
        work.left -= step
    if work.left < 0.01:
        work.left, work.state = 0, "done"
        machine.use()
    return True


def _in_order(machine: Machine, told: Told) -> list[Work]:
    """What it would do: the item it was told, then the list; then what had waited for something that may have come."""
    live = [work for work in machine.works if work.state in LIVE and work.left > 0]
    waits = [work for work in machine.works if work.awaited]
    return sorted([*live, *waits], key=lambda work: work.errand.id != told.item)


def _talk(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """ "I am waiting for you." """
    machine.say(dice.randrange(15, 40))


def _same(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """The same command again."""
    machine.use(1)


def _tick(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """An item is ticked that nobody did."""
    for work in _in_order(machine, told)[:1]:
        work.state = "done"
        machine.use()
    machine.say(10)


def _flip(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """A state goes back and forth."""
    for work in [work for work in machine.works if work.state in LIVE][:1]:
        work.state = "open" if work.state == "doing" else "doing"
        machine.use(1)


def _reword(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """The list is put into other words."""
    for work in machine.works:
        work.title = f"{work.title.split(' (')[0]} (again, {dice.randrange(1000)})"
    machine.use(2)


def _drop(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """An item is taken off the list."""
    for work in [work for work in machine.works if work.state in LIVE][-1:]:
        work.state = "removed"
        machine.use()


def _excuse(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """An endless command is left running, to wait for."""
    machine.leave_running(dice.choice(("sleep 36000", "tail -f build.log")))
    machine.use()


_DEEDS = {
    "work": _work,
    "part": _part,
    "talk": _talk,
    "same": _same,
    "tick": _tick,
    "flip": _flip,
    "reword": _reword,
    "drop": _drop,
    "excuse": _excuse,
}


def _schedule(machine: Machine, temper: Temper, told: Told, dice: Random) -> None:
    """Last of all: a wake, by the call it was given, or as it sees fit."""
    call = _CALL.search(told.reason)
    if call is not None and dice.random() < temper.call:
        if call[1]:
            machine.create(call[1], recurring=True)
        else:
            machine.pace(int(call[2]))
        return
    chance = temper.asked if told.asks_for_a_wake else 0.0 if machine.wakes else temper.habit
    if dice.random() >= chance:
        return
    choice = dice.choice(WELL if dice.random() < temper.well else BADLY)
    if choice.startswith("pace "):
        machine.pace(int(choice[5:]))
    elif choice.startswith("in "):
        minute = (machine.now + machine.zone.offset(machine.now)) // MINUTE + int(choice[3:])
        machine.create(f"{minute % 60} {minute // 60 % 24} * * *", recurring=False)
    else:
        machine.create(choice, recurring="/" in choice or choice.startswith("7 "))
