"""When a usage limit ends, as Claude Code writes it for people.

Seen forms: `resets 6:30pm (Asia/Jerusalem)`, `resets 8pm (America/New_York)`, `resets Jun 11, 2026,
12:27 AM`, `resets at 1788625200`. A zone that is not named is the machine's. A time of day is the
next such instant. What cannot be read is None: then the plain back-off serves.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import Instant, Zone

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAY = 86_400


def resets_at(text: str, now: Instant, zone: Zone) -> Instant | None:
    """The instant a rendered limit names, or None."""
    words = text.replace(",", " ").replace("·", " ").split()
    named = next((word[1:-1] for word in words if word.startswith("(") and word.endswith(")")), "")
    there = _named_zone(named) or zone
    plain = [word.lower() for word in words if not word.startswith("(")]
    for index, word in enumerate(plain):
        if word.isascii() and word.isdigit() and len(word) in (10, 13):
            return int(word[:10])
        after = plain[index + 1] if index + 1 < len(plain) else ""
        clock = _clock(word + after if after in ("am", "pm") else word)
        if clock is not None:
            return _at(clock, _date(plain[:index]), now, there)
    return None


def _named_zone(name: str) -> Zone | None:
    if not name:
        return None
    from zoneinfo import ZoneInfo

    from stopwarden.clock import ZoneOf

    try:
        return ZoneOf(ZoneInfo(name), name)
    except (ValueError, OSError, KeyError):
        return None


def _clock(word: str) -> int | None:
    """Seconds after midnight of `6:30pm`, `8pm`, `18:30`."""
    half = word[-2:] if word[-2:] in ("am", "pm") else ""
    hours, colon, minutes = (word[: -len(half)] if half else word).partition(":")
    if not (half or colon) or not _digits(hours) or (colon and not (_digits(minutes) and len(minutes) == 2)):
        return None
    hour, minute = int(hours), int(minutes or 0)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return (hour * 60 + minute) * 60 if hour < 24 and minute < 60 else None


def _date(words: list[str]) -> tuple[int, int, int] | None:
    """Year, month, day of `jun 11 2026` or `jun 11` (year 0: the next such day)."""
    for index, word in enumerate(words):
        if word[:3] in MONTHS and index + 1 < len(words) and _digits(words[index + 1]):
            year = words[index + 2] if index + 2 < len(words) else ""
            known_year = int(year) if _digits(year) and len(year) == 4 else 0
            return known_year, MONTHS.index(word[:3]) + 1, int(words[index + 1])
    return None


def _at(clock: int, date: tuple[int, int, int] | None, now: Instant, zone: Zone) -> Instant | None:
    if date is None:
        midnight = (now + zone.offset(now)) // DAY * DAY
        candidates = [_instant(midnight + days * DAY + clock, zone) for days in (0, 1, 2)]
        return next((instant for instant in candidates if instant > now), None)
    from datetime import UTC, datetime

    year, month, day = date
    try:
        for maybe in [year] if year else [datetime.fromtimestamp(now, UTC).year + more for more in (0, 1)]:
            instant = _instant(int(datetime(maybe, month, day, tzinfo=UTC).timestamp()) + clock, zone)
            if year or instant > now:
                return instant
    except (ValueError, OverflowError):  # a day that no calendar has
        pass
    return None


def _instant(local: int, zone: Zone) -> Instant:
    """The instant whose local reading is `local`; a repeated hour's first, a gap's far side."""
    return local - zone.offset(local - zone.offset(local))


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
