"""Times, lengths and names as a person reads them in the morning.

Everything recorded is UTC; here it is turned into the readings of one zone. In an autumn night the
clocks show one hour twice: a time in it is marked 1st or 2nd, and a note says why. Lengths are
real time, whatever the clocks do.
May not live here: what happened (see `account`), where it stands on the screen (see `text`).
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from stopwarden.core.bounds import DAY, HOUR, MINUTE
from stopwarden.core.reason import quoted
from stopwarden.core.record import Record
from stopwarden.report.moments import WEEKDAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.core.events import Instant, Zone

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LONGEST_CHANGE = 3 * HOUR  # no zone on record moves its clocks further in one night


class ClockChange(Record):
    """The zone's clocks were moved at `at`, by `by` seconds (negative: back)."""

    at: Instant
    by: int


class LocalTimes:
    """Readings of one zone between two instants; marks what its clocks showed twice."""

    def __init__(self, zone: Zone, since: Instant, until: Instant, now: Instant | None = None) -> None:
        self.zone, self._near = zone, until if now is None else now
        self._since, self._until = since, until
        self._of_days = until - since > DAY  # then a time of day alone would not tell which day's
        self.changes = tuple(_changes(zone, since, until))

    def clock(self, at: Instant) -> str:
        """ "23:05", in a repeated hour "01:30 (1st)"; "Mon 23:05" where the account is longer than a day."""
        return self.day_clock(at) if self._of_days else self.time_of_day(at)

    def time_of_day(self, at: Instant) -> str:
        """ "23:05", whatever the day."""
        there = self._there(at)
        return f"{there.tm_hour:02}:{there.tm_min:02}{self._which(at)}"

    def second(self, at: Instant) -> str:
        """ "23:05:09": where events follow each other within a minute."""
        there = self._there(at)
        day = f"{self.day(at)} " if self._of_days else ""
        return f"{day}{there.tm_hour:02}:{there.tm_min:02}:{there.tm_sec:02}{self._which(at)}"

    def day(self, at: Instant) -> str:
        """ "Mon", with the date where the weekday alone would not tell: "Mon 30 Nov"."""
        there, near = self._there(at), self._there(self._near)
        name = WEEKDAYS[there.tm_wday]
        if abs(self._near - at) < 6 * DAY:
            return name
        year = f" {there.tm_year}" if there.tm_year != near.tm_year else ""
        return f"{name} {there.tm_mday} {MONTHS[there.tm_mon - 1]}{year}"

    def day_clock(self, at: Instant) -> str:
        """ "Mon 23:05"."""
        return f"{self.day(at)} {self.time_of_day(at)}"

    def span(self, since: Instant, until: Instant) -> str:
        """ "03:02-03:57", and "03:02" alone within one minute."""
        begin, end = self.clock(since), self.clock(until)
        if self._of_days and self.day(since) == self.day(until):
            end = self.time_of_day(until)
            return begin if begin.endswith(f" {end}") and until - since < HOUR else f"{begin}-{end}"
        return begin if begin == end and until - since < HOUR else f"{begin}-{end}"

    def notes(self) -> list[str]:
        """What to know about the clocks of this night; nothing in an ordinary one."""
        said = []
        for change in self.changes:
            if not self._since - abs(change.by) < change.at < self._until + abs(change.by):
                continue  # no time of this night is shown twice because of it
            before, after = self._hands(change.at - 1, 1), self._hands(change.at)
            if change.by < 0:
                said.append(f"The clocks went back from {before} to {after}: times shown twice are marked 1st and 2nd.")
            else:
                said.append(f"The clocks went forward from {before} to {after}: lengths are real time.")
        return said

    def _there(self, at: Instant) -> time.struct_time:
        return time.gmtime(at + self.zone.offset(at))

    def _hands(self, at: Instant, later: int = 0) -> str:
        there = time.gmtime(at + self.zone.offset(at) + later)
        return f"{there.tm_hour:02}:{there.tm_min:02}"

    def _which(self, at: Instant) -> str:
        for change in self.changes:
            if change.at + change.by <= at < change.at:
                return " (1st)"
            if change.at <= at < change.at - change.by:
                return " (2nd)"
        return ""


def _changes(zone: Zone, since: Instant, until: Instant) -> Iterable[ClockChange]:
    """The moments between two instants (and a little around them) at which the zone's clocks are moved."""
    before, end = since - LONGEST_CHANGE, until + LONGEST_CHANGE
    while before < end:
        after = min(before + DAY, end)
        old, new = zone.offset(before), zone.offset(after)
        if old != new:
            low, high = before, after
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if zone.offset(middle) == old else (low, middle)
            if since - LONGEST_CHANGE < high <= until + LONGEST_CHANGE:
                yield ClockChange(at=high, by=new - old)
        before = after


def hours(seconds: int) -> str:
    """ "4 h 10", "0 h 55": whole minutes, half up."""
    minutes = (max(0, seconds) + MINUTE // 2) // MINUTE
    return f"{minutes // 60} h {minutes % 60:02}"


def whole_minutes(parts: Sequence[int]) -> list[int]:
    """The lengths rounded to whole minutes so that they add up to their rounded sum; in seconds."""
    minutes = [part // MINUTE for part in parts]
    missing = (sum(parts) + MINUTE // 2) // MINUTE - sum(minutes)
    for index in sorted(range(len(parts)), key=lambda i: -(parts[i] % MINUTE))[: max(0, missing)]:
        minutes[index] += 1
    return [MINUTE * minute for minute in minutes]


def count(number: int, one: str, many: str = "") -> str:
    """ "1 block", "3 blocks", "12,000 blocks"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def tokens(number: int) -> str:
    """ "3.1 M", "12 k", "840"."""
    if number >= 999_500:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e3:.0f} k" if number >= 1_000 else str(number)


def plain(text: str, limit: int = 200) -> str:
    """Untrusted text on one line: no control characters, cut to `limit` characters."""
    return quoted(text, limit)[1:-1]


def width(text: str) -> int:
    """Columns a terminal takes for the text."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def cut(text: str, columns: int) -> str:
    """The text in at most that many columns, with an ellipsis where something is left out."""
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for char in text:
        used += 2 if east_asian_width(char) in "WF" else 1
        if used > columns - 1:
            break
        kept += char
    return kept.rstrip() + "…"


def padded(text: str, columns: int) -> str:
    """The text filled with blanks to that many columns."""
    return text + " " * max(0, columns - width(text))


def short_ids(ids: Iterable[str], least: int = 4) -> dict[str, str]:
    """For each id the shortest beginning, of at least `least` characters, that no other has."""
    known = list(dict.fromkeys(ids))
    size = dict.fromkeys(known, least)
    for one, following in pairwise(sorted(known)):  # who shares the longest beginning stands next to it
        shared = 1 + next(
            (at for at, pair in enumerate(zip(one, following, strict=False)) if pair[0] != pair[1]), len(one)
        )
        size[one], size[following] = max(size[one], shared), max(size[following], shared)
    return {one: one[: size[one]] for one in known}
