"""A list's own timed looks and promises: plain bullets with a time, never items, never a wake. Pure.

    - look 23:30: see whether the build passed        done: - looked 23:30: …
    - promise 02:00: merge once CI is green           done: - kept 02:00: …

Theory of operation. They are bullets without a box, so the reading of a list (`work.checklist`)
passes them by: nothing here can change what is owed, and no verdict asks for it. A time is local:
`HH:MM`, the first such moment from when the person left (without an away period: from when the
file was written), or a date with it, `2026-12-01 02:00`. A time that clocks show twice is the
first of the two, and one that they skip is as much later as they skip. What has no time that can
be read is *refused*: it is shown with what to write, and never counts.

May not live here: files, who is told, writing lines (`work.edits`), wakes.
"""

from __future__ import annotations

from stopwarden.core.bounds import DAY, HOUR, MINUTE, MISSED_LOOK_AFTER
from stopwarden.core.digest import digest
from stopwarden.core.record import Record
from stopwarden.work.checklist import Closers, closes
from stopwarden.work.titles import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from stopwarden.core.events import Instant, Zone

WORDS: dict[str, tuple[Literal["look", "promise"], bool]] = {  # the first word of a line: what it is, whether handled
    "look": ("look", False),
    "looked": ("look", True),
    "promise": ("promise", False),
    "promised": ("promise", False),
    "kept": ("promise", True),
}
HANDLED = {"look": "looked", "promise": "kept"}
STALL = {"look": "missed_timed_look", "promise": "empty_promise"}
_LATEST = {"look": MISSED_LOOK_AFTER, "promise": 0}  # how long after its time it is overdue


class Timed(Record):
    """One timed look or promise. `at` None: refused, because of `refused`."""

    kind: Literal["look", "promise"]
    text: str
    at: Instant | None = None
    handled: bool = False
    line: int = 0  # 1-based
    refused: str = ""  # why it does not count, and what to write
    source: str = ""  # the list it stands in, as a person calls it
    session: str = ""  # whose own list that is; "" where it is shared

    @property
    def id(self) -> str:
        """What it is known by once it was told of: another time or wording is another one."""
        return digest(f"{self.source}\0{self.kind}\0{self.at}\0{self.text}", 12)

    def is_overdue(self, now: Instant) -> bool:
        """Whether its time has passed (a look's by more than 10 minutes) and nobody has handled it."""
        return self.at is not None and not self.handled and now > self.at + _LATEST[self.kind]


def read(text: str, since: Instant, zone: Zone) -> tuple[Timed, ...]:
    """The timed looks and promises of a list, in the order of their lines. Never raises."""
    told = [_timed(said, number, since, zone) for number, said in _said(text)]
    return tuple(one for one in told if one is not None)


def bullets(text: str) -> list[int]:
    """The lines (1-based) of the timed looks and promises, whatever their times."""
    return [one.line for one in read(text, 0, _UTC)]


def _said(text: str) -> list[tuple[int, str]]:
    """Number and text of every bullet that may be one: outside fences, comments and the like."""
    lower = text.lower()
    if not any(word in lower for word in ("look", "promise", "kept")):
        return []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n")
    closers = Closers(lines)
    found = []
    hidden = ""  # what ends the fence or comment we are in
    for number, line in enumerate(lines, 1):
        body = line.lstrip(" \t>")
        if hidden:
            hidden = "" if closes(body, hidden) else hidden
            continue
        hidden = closers.opened_by(body, number)
        if not hidden and body[:1] in ("-", "*", "+") and body[1:2] in (" ", "\t"):
            found.append((number, body[1:].strip()))
    return found


class _Utc:
    """The zone in which times are read where only their lines are asked for."""

    name = "UTC"

    def offset(self, instant: Instant) -> int:
        return 0


_UTC = _Utc()


def overdue(texts: Iterable[tuple[str, str]], since: Instant, now: Instant, zone: Zone) -> list[Timed]:
    """Those of these lists (name and text) whose time has passed unhandled, the longest overdue first."""
    told = [one.replace(source=name) for name, text in texts for one in read(text, since, zone)]
    return sorted((one for one in told if one.is_overdue(now)), key=lambda one: one.at or 0)


def line_of(kind: str, clock: str, text: str) -> str:
    """The line of one that is still to come; its text is made harmless. `clock` as `HH:MM` or with a date before it."""
    said = one_line(text).replace("<!--", "<! --")
    return f"- {kind} {clock}: {said}" if said else f"- {kind} {clock}:"


def clock_of(at: Instant, since: Instant, zone: Zone) -> str:
    """How a list says an instant: `HH:MM` where that is read as this instant, else with its date."""
    local = at + zone.offset(at)
    clock = f"{local % DAY // HOUR:02}:{local % HOUR // MINUTE:02}"
    if _next(local % DAY // HOUR, local % HOUR // MINUTE, since, zone) // MINUTE == at // MINUTE:
        return clock
    from stopwarden.core.cron import date_of

    year, month, day = date_of(local // DAY)
    return f"{year:04}-{month:02}-{day:02} {clock}"


def _timed(said: str, number: int, since: Instant, zone: Zone) -> Timed | None:
    """What a bullet's text says, None where it is no timed look or promise."""
    end = next((at for at, char in enumerate(said) if char in " \t:"), len(said))
    known = WORDS.get(said[:end].lower())
    if known is None:
        return None
    kind, handled = known
    rest = said[end:].strip()
    if rest.startswith(":"):
        if kind == "look" or handled:
            return None  # prose
        text = one_line(rest[1:])
        why = f"it has no time by when something else is done. Write: {line_of(kind, 'HH:MM', text)[:120]}"
        return Timed(kind=kind, text=text, line=number, refused=why)
    if not rest[:1].isdigit():
        return None
    clock, text = _split(rest)
    at = _instant_of(clock, since, zone)
    if at is None:
        if handled:
            return None
        why = f'"{one_line(clock, 30)}" is no time. Write: {line_of(kind, "HH:MM", text)[:120]}'
        return Timed(kind=kind, text=text, line=number, refused=why)
    return Timed(kind=kind, text=text, at=at, handled=handled, line=number)


def _split(rest: str) -> tuple[str, str]:
    """The time that a text begins with, and what follows it."""
    words = rest.replace("T", " ", 1).split(" ", 2) if rest[4:5] == "-" and rest[10:11] == "T" else rest.split(" ", 2)
    many = 2 if words[0][4:5] == "-" and len(words) > 1 else 1
    clock = " ".join(words[:many])
    text = " ".join(words[many:])
    last = clock.rpartition(" ")[2]
    if last.count(":") > 1:  # `23:30:see`
        hour, minute, more = last.split(":", 2)
        clock = clock[: len(clock) - len(last)] + f"{hour}:{minute}"
        text = f"{more} {text}"
    return clock.rstrip(":"), one_line(text.lstrip(" :-"))


def _instant_of(clock: str, since: Instant, zone: Zone) -> Instant | None:
    """The instant that `HH:MM`, or a date and that, stands for; None where it is no time."""
    date, _, time = clock.rpartition(" ")
    hour, colon, minute = time.partition(":")
    if not (colon and _is_number(hour, 1, 2) and _is_number(minute, 2, 2)):
        return None
    if int(hour) > 23 or int(minute) > 59:
        return None
    if not date:
        return _next(int(hour), int(minute), since, zone)
    day = _day_number(date)
    return None if day is None else _instant(day * DAY + int(hour) * HOUR + int(minute) * MINUTE, zone)


def _next(hour: int, minute: int, since: Instant, zone: Zone) -> Instant:
    """The first moment of that minute or later, from the minute of `since` on."""
    since -= since % MINUTE
    today = (since + zone.offset(since)) // DAY
    for day in (today - 1, today, today + 1, today + 2):
        at = _instant(day * DAY + hour * HOUR + minute * MINUTE, zone)
        if at >= since:
            return at
    return since + DAY


def _instant(local: int, zone: Zone) -> Instant:
    """The first instant at which the zone's clocks show a local time, else as much later as they skip."""
    read = sorted({local - zone.offset(local - 15 * HOUR), local - zone.offset(local + 15 * HOUR)})
    return next((at for at in read if at + zone.offset(at) == local), read[-1])


def _is_number(text: str, least: int, most: int) -> bool:
    return text.isascii() and text.isdigit() and least <= len(text) <= most


def _day_number(date: str) -> int | None:
    """The day number of `YYYY-MM-DD` counted from 1970-01-01, None where there is no such day."""
    from stopwarden.core.cron import date_of

    parts = date.split("-")
    if len(parts) != 3 or not (_is_number(parts[0], 4, 4) and all(_is_number(part, 1, 2) for part in parts[1:])):
        return None
    year, month, day = (int(part) for part in parts)
    if not 1970 <= year <= 9999 or not 1 <= month <= 12:
        return None
    shifted = year - (month <= 2)
    number = 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400
    number += (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1 - 719_468
    return number if date_of(number) == (year, month, day) else None
