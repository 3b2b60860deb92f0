"""Whether a scheduled wake comes in time, judged by what is known of the host's scheduler.

A wake qualifies when the latest moment at which it can fire is no later than the deadline. That
moment is found from the strongest evidence there is:

1. the host's own word (`fires_at`), exact for a wake that fires once; for a recurring one it tells
   that fire, and how much later than its schedule this wake always comes;
2. else its schedule, over every dialect the host may read it in, plus the host's worst lateness.

A one-shot keeps the moment that its schedule meant when it was first seen: afterwards the same
five fields would mean tomorrow. A recurring wake ends when it reaches its age. What is in doubt
does not qualify, and each finding says why in a clause that follows "this wake …".

With evidence "nominal" the recorded rule holds instead: the next minute that matches, as it is.

May not live here: the deadline's arithmetic (`core.leases`), how schedules are searched
(`core.cron`), what a host's payload looks like.
"""

from __future__ import annotations

from stopwarden.core import cron
from stopwarden.core.bounds import DAY, HOUR, MINUTE, ONE_SHOT_GRACE, WAKE_EXPIRY_DEFAULT
from stopwarden.core.errors import ScheduleError
from stopwarden.core.events import Wake, WakeFinding
from stopwarden.core.reason import local_time, span
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.core.cron import Schedule
    from stopwarden.core.events import Instant, Scheduler, WakeKind, Zone

EARLY_MAX = 90  # a one-shot on a full or half hour may be this much early, so that not all come at once
LATE_SHARE = {"claude_code": 2, "qwen_code": 10}  # a recurring wake may be late by 1/n of its interval …
LATE_MAX = {"claude_code": 30 * MINUTE, "qwen_code": 15 * MINUTE}  # … at most

SELF_PACED_MIN, SELF_PACED_MAX = 60, HOUR  # what ScheduleWakeup takes
_EVERY = (30, 20, 15, 12, 10, 6, 5)  # minutes between wakes that are worth a turn, the fewest turns first


class _Terms(Record):
    """What a wake is judged by."""

    now: Instant
    deadline: Instant
    scheduler: Scheduler
    zone: Zone
    evidence: str


class _Expected(Record):
    """When a wake fires, None where that cannot be told; a `doubt` tells against it whatever the deadline."""

    nominal: Instant | None = None
    earliest: Instant | None = None
    latest: Instant | None = None
    doubt: str = ""


def judge_wakes(
    wakes: Iterable[Wake], *, now: Instant, deadline: Instant, scheduler: Scheduler, zone: Zone, evidence: str
) -> tuple[WakeFinding | None, tuple[WakeFinding, ...]]:
    """The qualifying wake that fires first, if any, and a finding for each wake, in the order given."""
    terms = _Terms(now=now, deadline=deadline, scheduler=scheduler, zone=zone, evidence=evidence)
    findings = tuple(_judge(wake, terms) for wake in wakes)
    chosen = min(
        (finding for finding in findings if finding.qualifies),
        key=lambda finding: (finding.nominal, finding.latest),
        default=None,
    )
    return chosen, findings


def judge_wake(
    wake: Wake, *, now: Instant, deadline: Instant, scheduler: Scheduler, zone: Zone, evidence: str
) -> WakeFinding:
    """Whether one wake fires no later than the deadline, when it does, and if it does not qualify, why."""
    return _judge(wake, _Terms(now=now, deadline=deadline, scheduler=scheduler, zone=zone, evidence=evidence))


def suggest(now: Instant, deadline: Instant, scheduler: Scheduler, zone: Zone, evidence: str) -> str:
    """The call that would schedule a qualifying wake, in the host's words; "" if none can come in time.

    A recurring wake is preferred, since it outlives an error that ends a turn; where it would have to
    come more often than every five minutes, one self-paced wake costs less. What is named qualifies
    now and a minute from now, whatever the host's jitter does to it.
    """
    if scheduler.works == "none":
        return ""
    terms = _Terms(now=now, deadline=deadline, scheduler=scheduler, zone=zone, evidence=evidence)
    if scheduler.works == "non_recurring":
        return _self_paced_call(terms)
    return _recurring_call(terms) or _self_paced_call(terms)


# The finding


def _judge(wake: Wake, terms: _Terms) -> WakeFinding:
    expected = _by_the_recorded_rule(wake, terms) if terms.evidence == "nominal" else _by_evidence(wake, terms)
    why = _cannot_fire(wake, terms.scheduler) or expected.doubt or _too_late(expected, terms)
    return WakeFinding(
        id=wake.id,
        schedule=wake.schedule,
        qualifies=not why,
        nominal=expected.nominal,
        earliest=expected.earliest,
        latest=expected.latest,
        why=why,
    )


def _cannot_fire(wake: Wake, scheduler: Scheduler) -> str:
    if scheduler.works == "none":
        return scheduler.why or "its scheduler is off"
    if scheduler.works == "non_recurring" and wake.kind == "recurring":
        return scheduler.why or "this session does not stay for a recurring wake"
    return ""


def _too_late(expected: _Expected, terms: _Terms) -> str:
    """Why this is too late for the deadline, or ""."""
    if expected.nominal is None or expected.latest is None:
        return "is not sure to fire within a year"
    if expected.latest <= terms.deadline:
        return ""
    fires = f"fires {_local(expected.nominal, terms)}"
    if expected.latest - expected.nominal >= MINUTE:
        fires += f" but may come as late as {_local(expected.latest, terms)}"
    return f"{fires}, {_span(expected.latest - terms.deadline)} after {_local(terms.deadline, terms)}"


def _unreadable(error: ScheduleError) -> str:
    return error.happened.removeprefix("The schedule ")


def _local(instant: Instant, terms: _Terms) -> str:
    """The local reading, with the date where a weekday would not tell which week."""
    if abs(instant - terms.now) < 6 * DAY:
        return local_time(instant, terms.zone, terms.now)
    year, month, day = cron.date_of((instant + terms.zone.offset(instant)) // DAY)
    return f"{year}-{month:02}-{day:02} {local_time(instant, terms.zone, instant)}"


def _span(seconds: int) -> str:
    return span(seconds) if seconds >= MINUTE else f"{seconds} s"


# When it fires


def _by_the_recorded_rule(wake: Wake, terms: _Terms) -> _Expected:
    try:
        fire = cron.next_fire(cron.parse(wake.schedule), terms.now, terms.zone)
    except ScheduleError as error:
        return _Expected(doubt=_unreadable(error))
    return _Expected(nominal=fire, earliest=fire, latest=fire)


def _by_evidence(wake: Wake, terms: _Terms) -> _Expected:
    word = _host_word(wake, terms.now)
    if word is not None and wake.kind == "self_paced":  # its schedule only shows the moment ("@wakeup" in Qwen Code)
        return _once(word, word, word, terms)
    try:
        schedule = cron.parse(wake.schedule)
    except ScheduleError as error:
        return _Expected(doubt=_unreadable(error))
    if wake.kind == "recurring":
        return _recurring(wake, schedule, word, terms)
    if word is not None:
        return _once(word, word, word, terms)
    return _first_after_first_sight(wake, schedule, terms)


def _host_word(wake: Wake, now: Instant) -> Instant | None:
    """What the host said this wake's fire is, unless that is no time of this age."""
    if wake.fires_at is None or abs(wake.fires_at - now) > cron.HORIZON:
        return None
    return wake.fires_at


def _first_after_first_sight(wake: Wake, schedule: Schedule, terms: _Terms) -> _Expected:
    """A wake that fires once, by its schedule alone: the first match after it was first seen, then and ever after."""
    scheduler, zone = terms.scheduler, terms.zone
    seen = terms.now if wake.first_seen is None else wake.first_seen
    nominal = cron.next_fire(schedule, seen, zone, scheduler.dialects[0])
    earliest, latest = cron.interval(schedule, seen, zone, scheduler.dialects)
    if nominal is None or earliest is None or latest is None:
        return _Expected(nominal=nominal, earliest=earliest)
    exempt = scheduler.jitter == "none" or (wake.kind == "self_paced" and scheduler.exempt_self_paced)
    if not exempt and (earliest + zone.offset(earliest)) // MINUTE % 30 == 0:
        earliest -= EARLY_MAX
    return _once(nominal, earliest, latest, terms)


def _once(nominal: Instant, earliest: Instant, latest: Instant, terms: _Terms) -> _Expected:
    """A wake that fires once. Hosts fire it when the session is idle: just past, it is due now; long past, lost."""
    ago = terms.now - latest
    if ago < 0:
        return _Expected(nominal=nominal, earliest=earliest, latest=latest)
    if ago <= ONE_SHOT_GRACE:
        return _Expected(nominal=nominal, earliest=earliest, latest=terms.now)
    doubt = f"was due {_local(latest, terms)}, {_span(ago)} ago, and has not fired"
    return _Expected(nominal=nominal, earliest=earliest, latest=latest, doubt=doubt)


def _recurring(wake: Wake, schedule: Schedule, word: Instant | None, terms: _Terms) -> _Expected:
    """The next fire of a recurring wake over the host's dialects, and whether the wake lives to see it."""
    since = min(terms.now - HOUR, wake.fires_said_at or terms.now)
    fires: list[_Expected] = []
    for dialect in terms.scheduler.dialects:
        fire = _next_recurring(wake, schedule, word, dialect, terms)
        fires.append(fire)
        if fire.latest is not None and cron.agree(schedule, since, fire.latest, terms.zone):
            break
    nominal = fires[0].nominal
    earliest = min((fire.earliest for fire in fires if fire.earliest is not None), default=None)
    known = [fire.latest for fire in fires if fire.latest is not None]
    if len(known) < len(fires):
        return _Expected(nominal=nominal, earliest=earliest)
    latest = max(known)
    age = WAKE_EXPIRY_DEFAULT if wake.max_age is None else wake.max_age
    ends = (terms.now if wake.first_seen is None else wake.first_seen) + age
    doubt = f"ends {_local(ends, terms)}, before it is sure to have fired again" if latest > ends else ""
    return _Expected(nominal=nominal, earliest=earliest, latest=latest, doubt=doubt)


def _next_recurring(wake: Wake, schedule: Schedule, word: Instant | None, dialect: str, terms: _Terms) -> _Expected:
    """The next fire of a recurring wake in one dialect.

    The host's word shows how late this wake comes. A host that scales its lateness with the interval
    makes it later before a longer interval, so of the same and the scaled lateness the later counts.
    """
    lateness, bound_then = _shown_lateness(wake, schedule, word, dialect, terms)
    fire = cron.next_fire(schedule, terms.now - (lateness or 0), terms.zone, dialect)
    if fire is None:
        return _Expected()
    worst = _worst_lateness(schedule, fire, dialect, terms)
    if word is not None and word > terms.now:
        earliest = latest = word
    elif lateness is None:
        earliest, latest = fire, fire + worst
    else:
        scaled = -(-lateness * worst // bound_then) if bound_then else worst
        earliest, latest = fire + lateness, fire + max(lateness, min(scaled, worst))
    return _Expected(nominal=fire if terms.now < fire <= latest else latest, earliest=earliest, latest=latest)


def _shown_lateness(
    wake: Wake, schedule: Schedule, word: Instant | None, dialect: str, terms: _Terms
) -> tuple[int | None, int]:
    """How much later than its schedule the host said this wake fires, and the bound for that one fire.

    None where nothing was said, or where what was said does not fit the schedule in this dialect.
    """
    if word is None or wake.fires_said_at is None or abs(wake.fires_said_at - word) > cron.HORIZON:
        return None, 0
    nominal = cron.next_fire(schedule, wake.fires_said_at, terms.zone, dialect)
    if nominal is None or not 0 <= word - nominal <= max(LATE_MAX.values()):
        return None, 0
    following = cron.next_fire(schedule, nominal, terms.zone, dialect) or nominal
    return word - nominal, _lateness(following - nominal, terms.scheduler.jitter)


def _worst_lateness(schedule: Schedule, fire: Instant, dialect: str, terms: _Terms) -> int:
    """How late a recurring wake may come at most: by a share of its interval, the longer of the two that follow."""
    jitter = terms.scheduler.jitter
    if jitter == "none":
        return 0
    late = 0
    for _ in range(2):
        following = cron.next_fire(schedule, fire, terms.zone, dialect, within=LATE_SHARE[jitter] * LATE_MAX[jitter])
        if following is None:
            return LATE_MAX[jitter]
        late = max(late, _lateness(following - fire, jitter))
        fire = following
    return late


def _lateness(interval: int, jitter: str) -> int:
    if jitter == "none":
        return 0
    return min(LATE_MAX[jitter], -(-interval // LATE_SHARE[jitter]))


# What would qualify


def _recurring_call(terms: _Terms) -> str:
    """A recurring wake of one of these intervals that comes in time at any phase of it."""
    room = terms.deadline - terms.now - MINUTE  # the call is made later than now
    for minutes in _EVERY:
        interval = minutes * MINUTE
        late = 0 if terms.evidence == "nominal" else _lateness(interval, terms.scheduler.jitter)
        schedule = f"*/{minutes} * * * *"
        if interval + late <= room and _qualifies(schedule, "recurring", None, terms):
            return f'CronCreate with cron "{schedule}" and recurring true'
    return ""


def _self_paced_call(terms: _Terms) -> str:
    """The longest delay that leaves time for the call itself and for the host's rounding up to a minute."""
    room = terms.deadline - terms.now
    delay = min((room - min(5 * MINUTE, room // 3)) // MINUTE * MINUTE, SELF_PACED_MAX)
    if delay < SELF_PACED_MIN:
        return ""
    fires_at = -(-(terms.now + delay) // MINUTE) * MINUTE
    minute_of_day = (fires_at + terms.zone.offset(fires_at)) // MINUTE % (24 * 60)
    schedule = f"{minute_of_day % 60} {minute_of_day // 60} * * *"
    if not _qualifies(schedule, "self_paced", fires_at, terms):
        return ""
    return f"ScheduleWakeup with delaySeconds {delay}"


def _qualifies(schedule: str, kind: WakeKind, fires_at: Instant | None, terms: _Terms) -> bool:
    wake = Wake(id="suggested", schedule=schedule, kind=kind, first_seen=terms.now, fires_at=fires_at)
    return _judge(wake, terms).qualifies
