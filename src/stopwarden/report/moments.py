"""Moments and lengths of time as a person reads them.

Local to the given zone, short, the day named only where it is not the reader's own. The zone
itself is named once by whoever lays out the page. Pure; may not live here: any sentence.
"""

from __future__ import annotations

import time

from stopwarden.core.bounds import DAY, HOUR, MINUTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import Instant, Zone

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def moment(instant: Instant, zone: Zone, near: Instant) -> str:
    """ "07:30" on near's own day, "Tue 07:30" within six days of it, "2026-12-24 07:30" beyond."""
    there = time.gmtime(instant + zone.offset(instant))
    here = time.gmtime(near + zone.offset(near))
    clock = f"{there.tm_hour:02}:{there.tm_min:02}"
    if there[:3] == here[:3]:
        return clock
    if abs(instant - near) < 6 * DAY:
        return f"{WEEKDAYS[there.tm_wday]} {clock}"
    return f"{there.tm_year:04}-{there.tm_mon:02}-{there.tm_mday:02} {clock}"


def length(seconds: int) -> str:
    """ "12 s", "52 min", "8 h 25 min", "3 d 4 h": the two largest units, rounded down."""
    if seconds < MINUTE:
        return f"{max(0, seconds)} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min"
    if seconds < 2 * DAY:
        large, small = f"{seconds // HOUR} h", f"{seconds % HOUR // MINUTE} min"
    else:
        large, small = f"{seconds // DAY} d", f"{seconds % DAY // HOUR} h"
    return large if small.startswith("0 ") else f"{large} {small}"
