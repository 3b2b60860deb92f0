"""The scheduler of the agent program, on a virtual clock, as it was measured (docs/hosts.md).

A recurring wake comes late by a share of its interval that its id decides, at most half of it and
half an hour. A one-shot on a full or half hour comes up to 90 seconds early. A self-paced wake is
exact to the minute. A wake that comes due in a turn fires once when the turn is over.
May not live here: what a wake is worth (`core.wakes`), what stops the scheduler from firing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwarden.core import cron
from stopwarden.core.bounds import DAY, MINUTE
from stopwarden.core.errors import HostError
from stopwarden.core.events import Wake

if TYPE_CHECKING:
    from stopwarden.core.cron import Schedule
    from stopwarden.core.events import Instant, WakeKind, Zone

LATEST = 30 * MINUTE  # a recurring wake comes late by a share of its interval, at most this
EARLIEST = 90  # seconds by which a one-shot on a full or half hour may be early
MAX_AGE = 30 * DAY


@dataclass
class Scheduled:
    """A wake of the host's scheduler."""

    id: str
    schedule: str
    kind: WakeKind
    made_at: Instant
    fires_at: Instant
    said: Instant | None  # what the tool that made it answered, None where the hook did not hear it

    @property
    def recurring(self) -> bool:
        return self.kind == "recurring"

    def listed(self) -> Wake:
        """As a stop lists it, with what the hook knows of it."""
        return Wake(
            id=self.id,
            schedule=self.schedule,
            kind=self.kind,
            first_seen=self.made_at,
            fires_at=self.said,
            fires_said_at=None if self.said is None else self.made_at,
            max_age=MAX_AGE if self.recurring and self.said is not None else None,
        )


def recurring_fire(schedule: Schedule, share: float, now: Instant, zone: Zone) -> float:
    """When a recurring wake fires next after `now`; `share` (0 to 1/2) is how late it is within its interval.

    Raises HostError for a schedule that never fires.
    """
    after = now
    while True:
        fire = cron.next_fire(schedule, after, zone)
        following = None if fire is None else cron.next_fire(schedule, fire, zone)
        if fire is None or following is None:
            raise HostError("The wake never fires")
        late = fire + min(share * (following - fire), LATEST)
        if late > now:
            return late
        after = fire


def create(name: str, schedule: str, *, recurring: bool, now: Instant, zone: Zone, says: bool) -> Scheduled:
    """CronCreate. `says`: the hook hears when it fires. Raises HostError, ScheduleError."""
    kind: WakeKind = "recurring" if recurring else "one_shot"
    made = Scheduled(id=name, schedule=schedule, kind=kind, made_at=now, fires_at=now, said=None)
    advance(made, now, zone)
    made.said = made.fires_at if says else None
    return made


def pace(name: str, delay: int, *, now: Instant, zone: Zone, says: bool) -> Scheduled:
    """ScheduleWakeup: after the delay, rounded up to a full minute; listed with a schedule without a date."""
    fires = -(-(now + delay) // MINUTE) * MINUTE
    minute = (fires + zone.offset(fires)) // MINUTE % (24 * 60)
    schedule = f"{minute % 60} {minute // 60} * * *"
    kind: WakeKind = "self_paced" if says else "one_shot"
    return Scheduled(id=name, schedule=schedule, kind=kind, made_at=now, fires_at=fires, said=fires if says else None)


def advance(wake: Scheduled, now: Instant, zone: Zone) -> None:
    """Sets when it fires next after `now`."""
    schedule = cron.parse(wake.schedule)
    share = int(wake.id, 16) / 16 ** len(wake.id)
    if wake.recurring:
        wake.fires_at = -int(-recurring_fire(schedule, share / 2, now, zone) // 1)
        return
    fire = cron.next_fire(schedule, now, zone)
    if fire is None:
        raise HostError(f"The wake {wake.schedule!r} never fires")
    on_the_half_hour = (fire + zone.offset(fire)) // MINUTE % 30 == 0
    wake.fires_at = max(now + 1, fire - int(share * EARLIEST)) if on_the_half_hour else fire + 1
