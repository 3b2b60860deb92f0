"""How a person says when they are back: "until 07:30", "until tue 07:30", "for 8h30m".

Pure: words, an instant and a zone in, an instant out; nothing here asks a clock. A wall time is
read in the zone of the machine as its clocks will show it then: a time that clocks show twice is
the second of the two (the night is not cut short), one that they skip is the moment they jump. A
length of time is real time, whatever the clocks do. What can be read in two ways is refused with
the two spellings that cannot, because a wrong guess here costs a night.
May not live here: what an away period is, any output.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from stopwarden.core.bounds import DAY, HOUR, MINUTE
from stopwarden.core.errors import UsageError
from stopwarden.core.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopwarden.core.events import Instant, Zone

LONGEST = 31 * DAY
SMALL_HOURS = 5  # before this hour "tomorrow" may mean the coming morning: it is said which day is meant

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": 1}
_CLOCK = re.compile(r"([0-9]{1,2})[:.]([0-9]{2})(am|pm)?|([0-9]{1,2})(am|pm)|([0-9]{2})([0-9]{2})")
_STAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})t([0-9]{2}:[0-9]{2})(?::00)?(z|[+-][0-9]{2}:[0-9]{2})?")
_UNIT = r"d(?:ays?)?|h(?:rs?|ours?)?|m(?:ins?|inutes?)?|s(?:ecs?|econds?)?"
_PART = re.compile(rf"([0-9]+(?:\.[0-9]+)?)\s*({_UNIT})(?![a-z])\s*(?:and\s+)?")
_FOR_INSTANCE = "Use for instance `until 2026-12-01 07:30`"


class Until(Record):
    """When the person is back. `at` is None where they said nothing: until `back`."""

    at: Instant | None = None
    note: str = ""  # how an odd time was read, for the person


def parse_until(words: Sequence[str], now: Instant, zone: Zone) -> Until:
    """The end that `words` name, strictly after `now`. Raises UsageError with what would be right."""
    said = " ".join(words).strip()
    tokens = said.lower().replace(",", " ").split()
    if not tokens:
        return Until()
    kind = tokens.pop(0) if tokens[0] in ("until", "till", "til", "for") else ""
    if not tokens:
        raise _unclear(said, f"`{kind}` needs a time after it")
    if kind == "for" or (not kind and _PART.match(" ".join(tokens))):
        return Until(at=_within_reach(now + duration(" ".join(tokens)), now, said))
    if tokens == ["back"]:
        raise UsageError("`until back` needs no words", do="Leave the time out: stopwarden away")
    return _Reading(said, tokens, now, zone).until()


def duration(text: str) -> int:
    """Seconds of a length such as "8h", "8h30m", "90 min", "1.5h". Raises UsageError; at least one minute."""
    said = text.strip().lower()
    if clock := re.fullmatch(r"([0-9]{1,2}):([0-9]{2})", said):
        raise UsageError(
            f"{text!r} is a time of day, not a length", do=f"Use `for {int(clock[1])}h{clock[2]}m` or `until {said}`"
        )
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", said):
        raise UsageError(f"{text!r} of what", do=f"Use `{said}h` for hours or `{said}m` for minutes")
    if re.fullmatch(r"[0-9]+h[0-5][0-9]", said):
        said += "m"  # "8h30" can only be hours and minutes
    seconds, place, smaller_than = 0.0, 0, 2 * DAY
    while place < len(said):
        part = _PART.match(said, place)
        if part is None or _UNITS[part[2][0]] >= smaller_than:
            raise UsageError(f"{text!r} is not a length of time", do="Use for instance 8h, 8h30m, 90m or 2d")
        smaller_than = _UNITS[part[2][0]]
        seconds += min(float(part[1]), 1e9) * smaller_than
        place = part.end()
    if seconds < MINUTE:
        raise UsageError(f"{text!r} is shorter than a minute", do="Use at least 1m")
    return int(seconds)


def local(instant: Instant, zone: Zone) -> datetime:
    """The zone's reading of an instant, as a naive date and time."""
    return datetime.fromtimestamp(instant + zone.offset(instant), UTC).replace(tzinfo=None)


def instants_of(wall: datetime, zone: Zone) -> tuple[Instant, ...]:
    """The instants at which the zone's clocks show `wall`: one, two in an autumn hour, none in a spring gap."""
    seconds = int(wall.replace(tzinfo=UTC).timestamp())
    offsets = {zone.offset(seconds - 15 * HOUR), zone.offset(seconds + 15 * HOUR)}
    return tuple(sorted(seconds - offset for offset in offsets if zone.offset(seconds - offset) == offset))


def _end_of_gap(wall: datetime, zone: Zone) -> Instant:
    """The instant at which clocks jump over `wall`."""
    seconds = int(wall.replace(tzinfo=UTC).timestamp())
    before, after = seconds - 15 * HOUR, seconds + 15 * HOUR
    old = zone.offset(before)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if zone.offset(middle) == old else (before, middle)
    return after


def _unclear(said: str, why: str, right: str = "") -> UsageError:
    return UsageError(f"{said!r} is not clear: {why}", do=right or "Use for instance `until 07:30` or `for 8h`")


def _within_reach(at: Instant, now: Instant, said: str) -> Instant:
    if at - now > LONGEST:
        raise UsageError(
            f"{said!r} is more than {LONGEST // DAY} days away",
            do="Name an earlier time, or none at all: `stopwarden away` holds until `stopwarden back`",
        )
    return at


class _Reading:
    """One `until …`, taken apart word by word: a day, a time of day, or both in either order."""

    def __init__(self, said: str, tokens: list[str], now: Instant, zone: Zone) -> None:
        self.said, self.tokens, self.now, self.zone = said, tokens, now, zone
        self.today = local(now, zone).date()
        self.day: date | None = None
        self.weekly = False  # the day was named by its weekday: it may be a week later
        self.yearly = False  # the day was named without a year
        self.clock: tuple[int, int] | None = None
        self.note = ""  # how the day was read
        self.odd = ""  # how a time was read that clocks show twice or never
        self.midnight = False

    def until(self) -> Until:
        if len(self.tokens) == 1 and (stamp := _STAMP.fullmatch(self.tokens[0])):
            if stamp[3]:
                return self._exact(stamp)
            self.tokens = [stamp[1], stamp[2]]
        while self.tokens:
            token = self.tokens.pop(0)
            if token in ("at", "on", "the"):
                continue
            if not self._takes_day(token) and not self._takes_clock(token):
                raise self._not_understood(token)
        if self.clock is None:
            named = self.said.split()[-1] if self.day is None else self.said
            raise _unclear(named, "which time of that day", f"Say it too, for instance `{self._with_until()} 07:30`")
        return self._settle(self.clock)

    def _with_until(self) -> str:
        return self.said if self.said.lower().startswith(("until", "till", "til ")) else f"until {self.said}"

    def _not_understood(self, token: str) -> UsageError:
        if re.fullmatch(r"[0-9]{1,2}", token) and int(token) <= 24:
            hour = int(token) % 24
            other = f"until {hour + 12:02}:00" if 0 < hour < 12 else f"for {int(token)}h"
            return _unclear(self.said, f"{token} may be a time or a length", f"Use `until {hour:02}:00` or `{other}`")
        if re.fullmatch(r"[0-9]{1,2}[./][0-9]{1,2}(?:[./][0-9]{0,4})?", token):
            return _unclear(self.said, "the day and the month can be mixed up", _FOR_INSTANCE)
        if token == "next":
            return _unclear(self.said, "this week or the one after", "Use a date: `until 2026-12-01 07:30`")
        return _unclear(self.said, f"{token!r} is neither a day nor a time of day")

    # --- the two parts

    def _takes_day(self, token: str) -> bool:
        found = self._day(token)
        if found is None:
            return False
        if self.day is not None:
            raise _unclear(self.said, "it names two days")
        self.day = found
        return True

    def _day(self, token: str) -> date | None:
        if token in ("today", "tonight"):
            return self.today
        if token == "tomorrow":
            if local(self.now, self.zone).hour < SMALL_HOURS:
                self.note = "It is past midnight: `tomorrow` is the day after this one. Leave it out for this morning."
            return self.today + timedelta(days=1)
        if (weekday := _named(token, _DAYS, 3)) is not None:
            self.weekly = True
            return self.today + timedelta(days=(weekday - self.today.weekday()) % 7)
        if re.fullmatch(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}", token):
            return self._date(*(int(part) for part in token.split("-")))
        if (month := _named(token, _MONTHS, 3)) is not None and self.tokens:
            if number := re.fullmatch(r"([0-9]{1,2})(?:st|nd|rd|th|\.)?", self.tokens[0]):
                self.tokens.pop(0)
                return self._date_without_year(month + 1, int(number[1]))
        elif (number := re.fullmatch(r"([0-9]{1,2})(?:st|nd|rd|th|\.)?", token)) and self.tokens:
            month = _named(self.tokens[0], _MONTHS, 3)
            if month is not None:
                self.tokens.pop(0)
                return self._date_without_year(month + 1, int(number[1]))
        return None

    def _date_without_year(self, month: int, day: int) -> date:
        if self.tokens and re.fullmatch(r"20[0-9]{2}", self.tokens[0]):
            return self._date(int(self.tokens.pop(0)), month, day)
        self.yearly = True
        return self._date(self.today.year, month, day)

    def _date(self, year: int, month: int, day: int) -> date:
        try:
            return date(year, month, day)
        except ValueError:
            raise UsageError(f"{self.said!r} names a day that does not exist", do=_FOR_INSTANCE) from None

    def _takes_clock(self, token: str) -> bool:
        if token in ("noon", "midnight"):
            found = (12 if token == "noon" else 0, 0)
            self.midnight = token == "midnight"
        else:
            if self.tokens and self.tokens[0] in ("am", "pm") and re.fullmatch(r"[0-9]{1,2}(?:[:.][0-9]{2})?", token):
                token += self.tokens.pop(0)
            read = _CLOCK.fullmatch(token)
            if read is None:
                return False
            hour, minute, half = read[1] or read[4] or read[6], read[2] or read[7] or "0", read[3] or read[5]
            found = self._hour_and_minute(int(hour), int(minute), half or "", token)
        if self.clock is not None:
            raise _unclear(self.said, "it names two times of day")
        self.clock = found
        return True

    def _hour_and_minute(self, hour: int, minute: int, half: str, token: str) -> tuple[int, int]:
        if hour == 24 and minute == 0 and not half:
            raise UsageError(f"{token} is not on the clock", do="Use 00:00 and the day it begins, or `midnight`")
        if minute > 59 or hour > 23 or (half and not 1 <= hour <= 12):
            raise UsageError(f"{token} is not on the clock", do="Use a time from 00:00 to 23:59")
        return (hour % 12 + 12 * (half == "pm"), minute) if half else (hour, minute)

    # --- and what they come to

    def _exact(self, stamp: re.Match[str]) -> Until:
        try:
            at = int(datetime.fromisoformat(stamp[0].upper()).timestamp())
        except ValueError:
            raise UsageError(f"{self.said!r} does not exist", do="Use for instance `until 2026-12-01T07:30Z`") from None
        if at <= self.now:
            raise self._past()
        return Until(at=_within_reach(at, self.now, self.said))

    def _settle(self, clock: tuple[int, int]) -> Until:
        if self.midnight and self.day is not None:
            right = f"Use `until midnight` for the coming one, or a date: `until {self.day + timedelta(days=1)} 00:00`"
            raise _unclear(self.said, "the midnight before that day or after it", right)
        step = timedelta(days=1 if self.day is None else 7)
        day = self.day or self.today
        if not self.yearly and day < self.today:
            raise self._past()
        if day - self.today > timedelta(seconds=LONGEST) + step:
            return Until(at=_within_reach(self.now + 2 * LONGEST, self.now, self.said))
        at = self._instant(day, clock)
        if at <= self.now and (self.day is None or self.weekly):
            at = self._instant(day + step, clock)
        elif at <= self.now and self.yearly:
            at = self._instant(self._date(day.year + 1, day.month, day.day), clock)
        if at <= self.now:
            raise self._past()
        return Until(at=_within_reach(at, self.now, self.said), note=self.odd or self.note)

    def _instant(self, day: date, clock: tuple[int, int]) -> Instant:
        wall = datetime(day.year, day.month, day.day, *clock)
        readings = instants_of(wall, self.zone)
        shown = f"{clock[0]:02}:{clock[1]:02}"
        if not readings:
            at = _end_of_gap(wall, self.zone)
            self.odd = (
                f"Clocks go forward and skip {shown} that day: it ends as they do, at {local(at, self.zone):%H:%M}."
            )
            return at
        self.odd = f"Clocks go back and show {shown} twice that day: it ends the second time." if readings[1:] else ""
        return readings[-1]

    def _past(self) -> UsageError:
        return UsageError(
            f"{self.said!r} is already past: it is {local(self.now, self.zone):%Y-%m-%d %H:%M} ({self.zone.name})",
            do="Name a time to come, for instance `until tomorrow 07:30`",
        )


def _named(token: str, names: Sequence[str], least: int) -> int | None:
    """Which of `names` the token begins, with at least `least` letters; None if none."""
    plain = token.rstrip(".")
    found = [place for place, name in enumerate(names) if len(plain) >= least and name.startswith(plain)]
    return found[0] if len(found) == 1 else None
