"""Five-field schedules: reading them, and when they fire next in a zone.

A schedule is parsed once into bit masks (bit 5 of `minutes` is minute 5). The search never steps
through minutes: a month's matching days are one mask, built from the day-of-month mask and the
weekday mask laid over the month, so a fire is found by a few shifts, whatever the distance.

Schedulers disagree on five things only, and a *dialect* is a set of answers to them:

| question                        | `minute`       | `debian`                | `qwen_code`         |
|---------------------------------|----------------|-------------------------|---------------------|
| fixed time in a skipped hour    | no fire        | first instant after it  | no fire             |
| fixed time in a repeated hour   | both times     | the first time          | the first time      |
| `*` or `*/n` in a repeated hour | both times     | both times              | the first time      |
| `*/2` in a day field            | later of both  | counts as a wildcard    | counts as restricted|
| `5/15`                          | later of both  | 5, 20, 35, 50           | 5                   |

`minute` is the recorded rule (every real minute whose local reading matches), `debian` is what
Debian's cron does (the package `cronsim` is the oracle), `qwen_code` what Qwen Code's own parser
answers. When both day fields are restricted, either may match; else both must.

The zone is asked for one thing only, its offset at an instant; no zone is taken to change its
clock twice within a week. May not live here: jitter, expiry, deadlines, or the question whether a
wake is good enough (`core.wakes`).
"""

from __future__ import annotations

from stopwarden.core.bounds import DAY, MINUTE
from stopwarden.core.errors import ScheduleError
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.core.events import Instant, Zone

DIALECTS = ("minute", "debian", "qwen_code")
HORIZON = 366 * DAY  # a fire further away is no fire

_LONGEST = 200  # characters
_WEEK = 7 * DAY
_MINUTES_A_DAY = 24 * 60
_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 7),
)
_SIX_WEEKS = sum(1 << 7 * week for week in range(6))
_MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_COUNTS = ("no fields", "one field", "two fields", "three fields", "four fields", "", "six fields", "seven fields")


class Reading(Record):
    """One way to read a schedule: a bit mask a field, and whether both day fields must match."""

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int  # bit 0 is Sunday; 7 is folded into it
    both: bool


class Schedule(Record):
    """A parsed schedule. Where its text can be read in more than one way, it holds each reading."""

    text: str
    debian: Reading
    qwen_code: Reading
    readings: tuple[Reading, ...]  # those two, and where both questions are open, the mixed answers
    fixed: bool  # neither the minute nor the hour starts with a star


def parse(text: object) -> Schedule:
    """The schedule that five blank-separated fields say.

    Raises ScheduleError for anything else: other types, names, seconds, over 200 characters, any
    character that is not plain ASCII. A date that never comes (`0 0 31 2 *`) parses and never fires.
    """
    if not isinstance(text, str):
        raise _unreadable("it is not text")
    if len(text) > _LONGEST:
        raise _unreadable(f"it is longer than {_LONGEST} characters")
    blanked = text.replace("\t", " ")
    if not blanked.isascii() or not blanked.isprintable():
        raise _unreadable("it holds characters that are no digits, stars, commas, dashes, slashes or blanks")
    fields = blanked.split()
    if len(fields) != 5:
        count = len(fields)
        raise _unreadable(f"{_COUNTS[count] if count < len(_COUNTS) else f'{count} fields'} instead of five")
    wide, narrow = [], []
    for field, (name, low, high) in zip(fields, _FIELDS, strict=True):
        to_end, alone = _masks(field, name, low, high)
        wide.append(to_end)
        narrow.append(alone)
    for masks in (wide, narrow):
        masks[4] = masks[4] & 0x7F | masks[4] >> 7
    day, weekday = fields[2], fields[4]
    star = day[0] == "*" or weekday[0] == "*"
    lone_star = day == "*" or weekday == "*"
    readings: tuple[Reading, ...] = (_reading(wide, star),)
    if narrow != wide:
        readings += (_reading(narrow, star),)
    if lone_star != star:
        readings += tuple(reading.replace(both=lone_star) for reading in readings)
    return Schedule(
        text=" ".join(fields),
        debian=readings[0],
        qwen_code=readings[-1],
        readings=readings,
        fixed=fields[0][0] != "*" and fields[1][0] != "*",
    )


def next_fire(
    schedule: Schedule, after: Instant, zone: Zone, dialect: str = "minute", *, within: int = HORIZON
) -> Instant | None:
    """The first fire strictly after an instant, on a whole local minute; None if none comes `within` seconds.

    Raises ScheduleError for a dialect that does not exist.
    """
    until = after + within
    if dialect == "minute":
        fires = [_matching_minute(reading, after, zone, until, repeats=True) for reading in schedule.readings]
        return _latest(fires)
    if dialect == "debian":
        if schedule.fixed:
            return _fixed_time(schedule.debian, after, zone, until)
        return _matching_minute(schedule.debian, after, zone, until, repeats=True)
    if dialect == "qwen_code":
        return _matching_minute(schedule.qwen_code, after, zone, until, repeats=False)
    raise ScheduleError(f"There is no dialect {dialect!r}", do=f"Use one of {', '.join(DIALECTS)}")


def interval(
    schedule: Schedule, after: Instant, zone: Zone, dialects: Iterable[str]
) -> tuple[Instant | None, Instant | None]:
    """The earliest and the latest next fire over several dialects.

    The latest is None as soon as one dialect gives no fire; the earliest only if all give none.
    """
    fires: list[Instant | None] = []
    for dialect in dialects:
        fire = next_fire(schedule, after, zone, dialect)
        fires.append(fire)
        if fire is not None and agree(schedule, after, fire, zone):
            return fire, fire
    return min((fire for fire in fires if fire is not None), default=None), _latest(fires)


def agree(schedule: Schedule, start: Instant, end: Instant, zone: Zone) -> bool:
    """Whether all dialects are known to give the same fires from `start` to two days after `end`.

    So it is for a schedule with one reading while no clock changes, which can be told for a few days.
    """
    if len(schedule.readings) > 1 or end - start > _WEEK - 3 * DAY:
        return False
    return zone.offset(start - DAY) == zone.offset(end + 2 * DAY)


def _latest(fires: list[Instant | None]) -> Instant | None:
    """The latest of several answers; no answer among them is later than any."""
    latest: Instant | None = None
    for fire in fires:
        if fire is None:
            return None
        if latest is None or fire > latest:
            latest = fire
    return latest


# Reading the text


def _unreadable(clause: str) -> ScheduleError:
    return ScheduleError(
        f"The schedule cannot be read: {clause}",
        kept="It never counts as a wake",
        do="Use five fields: minute, hour, day of month, month, day of week, such as */15 * * * *",
    )


def _reading(masks: list[int], both: bool) -> Reading:
    minutes, hours, days, months, weekdays = masks
    return Reading(minutes=minutes, hours=hours, days=days, months=months, weekdays=weekdays, both=both)


def _masks(field: str, name: str, low: int, high: int) -> tuple[int, int]:
    """A field's mask twice: with a single value's step running on to the end, and with the value alone."""
    if field == "*":
        mask = (1 << high + 1) - (1 << low)
        return mask, mask
    wide = narrow = 0
    for part in field.split(","):
        base, slash, step_text = part.partition("/")
        step = _number(step_text, name) if slash else 1
        if base == "*":
            start, end = low, high
        else:
            start_text, dash, end_text = base.partition("-")
            start = _number(start_text, name)
            end = _number(end_text, name) if dash else start
        if step == 0:
            raise _unreadable(f"{name}: a step of 0")
        if not low <= start <= end <= high:
            raise _unreadable(f"{name}: {_shown(part)} is outside {low} to {high}")
        if start == end:
            narrow |= 1 << start
            wide |= _every(start, high if slash else start, step)
        else:
            mask = _every(start, end, step)
            wide |= mask
            narrow |= mask
    return wide, narrow


def _every(start: int, end: int, step: int) -> int:
    if step == 1:
        return (1 << end + 1) - (1 << start)
    mask = 0
    for value in range(start, end + 1, step):
        mask |= 1 << value
    return mask


def _number(digits: str, name: str) -> int:
    if not digits.isdigit():  # ASCII by now, so these are 0 to 9
        raise _unreadable(f"{name}: {_shown(digits)} is no number" if digits else f"{name}: a number is missing")
    return int(digits)


def _shown(text: str) -> str:
    return text if len(text) <= 20 else text[:20] + "…"


# Finding the fire


def _matching_minute(reading: Reading, after: Instant, zone: Zone, until: Instant, *, repeats: bool) -> Instant | None:
    """The first real minute after an instant whose local reading matches.

    Between two changes of the clock local time runs evenly, so the match is found in local time
    and holds if no change lies before it; else the search goes on from the change. Without
    `repeats` the second of two equal local readings is passed over.
    """
    start = after + 1
    offset = zone.offset(start)
    if not repeats:
        start = _past_repeat(start, offset, zone)
    while True:
        last = until + offset + DAY  # a change of the clock may bring the match a little nearer
        local = _next_local(reading, start + offset, last)
        if local is None or local > last:
            return None
        fire = local - offset
        ahead = min(fire, start + _WEEK)
        while zone.offset(ahead) == offset:
            if ahead == fire:
                return fire if fire <= until else None
            start = ahead
            ahead = min(fire, start + _WEEK)
        start = _change(zone, start, ahead)
        changed = zone.offset(start)
        if not repeats and changed < offset:
            start += offset - changed
        offset = changed


def _past_repeat(start: Instant, offset: int, zone: Zone) -> Instant:
    """The instant itself, or where it lies in a repeated hour, the end of that hour."""
    before = zone.offset(start - DAY)
    if before <= offset:
        return start
    return max(start, _change(zone, start - DAY, start) + before - offset)


def _fixed_time(reading: Reading, after: Instant, zone: Zone, until: Instant) -> Instant | None:
    """The first fire of a schedule that names its times, each local time taken once."""
    offset = zone.offset(after)
    local: int | None = after + offset
    while local is not None:
        local = _next_local(reading, local + 1, until + offset + DAY)
        if local is not None:
            fire = _first_instant(local, zone)
            if fire > after:
                return fire if fire <= until else None
    return None


def _first_instant(local: int, zone: Zone) -> Instant:
    """When a local time is first read; for one that is skipped, the first instant after the gap."""
    for offset in (zone.offset(local - DAY), zone.offset(local + DAY)):
        if zone.offset(local - offset) == offset:
            return local - offset
    return _change(zone, local - DAY, local + DAY)


def _change(zone: Zone, low: Instant, high: Instant) -> Instant:
    """The first instant with another offset than at `low`; exactly one change lies between the two."""
    before = zone.offset(low)
    while high - low > 1:
        middle = (low + high) // 2
        if zone.offset(middle) == before:
            low = middle
        else:
            high = middle
    return high


def _next_local(reading: Reading, start: int, last: int) -> int | None:
    """The first matching local time from `start` on, both in seconds since 1970-01-01 local; None past `last`."""
    number, moment = divmod(-(-start // MINUTE), _MINUTES_A_DAY)
    year, month, day = date_of(number)
    first = number - day + 1  # the day number of the month's first day
    weekdays = reading.weekdays * _SIX_WEEKS
    while first * DAY <= last:
        length = 29 if month == 2 and _is_leap(year) else _MONTH_LENGTHS[month]
        if reading.months >> month & 1:
            of_week = weekdays >> (first + 4) % 7 << 1  # 1970-01-01 was a Thursday
            due = reading.days & of_week if reading.both else reading.days | of_week
            due = (due & (1 << length + 1) - 1) >> day << day
            if due >> day & 1 and moment:
                time = _time_of_day(reading, moment)
                if time is not None:
                    return (number * _MINUTES_A_DAY + time) * MINUTE
                due ^= 1 << day
            if due:
                time = _lowest(reading.hours) * 60 + _lowest(reading.minutes)
                return ((first + _lowest(due) - 1) * _MINUTES_A_DAY + time) * MINUTE
        first += length
        month += 1
        if month == 13:
            year, month = year + 1, 1
        day, moment = 1, 0
    return None


def _time_of_day(reading: Reading, moment: int) -> int | None:
    """The first matching minute of a day from minute `moment` on."""
    hour, minute = divmod(moment, 60)
    if reading.hours >> hour & 1 and reading.minutes >> minute:
        return moment + _lowest(reading.minutes >> minute)
    later = reading.hours >> hour + 1
    if not later:
        return None
    return (hour + 1 + _lowest(later)) * 60 + _lowest(reading.minutes)


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def date_of(number: int) -> tuple[int, int, int]:
    """Year, month and day of a day number counted from 1970-01-01 (Howard Hinnant's civil_from_days)."""
    era, of_era = divmod(number + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153  # months counted from March, so that leap days come last
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, day
