"""The clocks and zones of the machine, as the shell hands them to the core.

A zone here is two things: a name to show and `offset(instant)`, the seconds east of UTC then.
`SystemZone` asks the C library (so `TZ` and /etc/localtime hold) and imports nothing heavy.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

    from stopwarden.core.events import Instant


def system_now() -> Instant:
    """Seconds since the epoch, by the wall clock."""
    return int(time.time())


class SystemZone:
    """The machine's local time zone (`TZ`, else /etc/localtime)."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    @property
    def name(self) -> str:
        """An IANA name where one can be told, else the zone's abbreviation now."""
        import os

        named = self._env.get("TZ", "").lstrip(":")
        if named and not named.startswith("/"):
            return named
        try:
            target = os.readlink("/etc/localtime")
        except OSError:
            return time.strftime("%Z")
        return target.partition("zoneinfo/")[2] or time.strftime("%Z")

    def offset(self, instant: Instant) -> int:
        """Seconds east of UTC at the instant."""
        return time.localtime(instant).tm_gmtoff


class ZoneOf:
    """Any `datetime.tzinfo` (a `zoneinfo.ZoneInfo`, say) as a zone of the core."""

    def __init__(self, zone: tzinfo, name: str = "") -> None:
        self._zone, self._name = zone, name or str(zone)

    @property
    def name(self) -> str:
        return self._name

    def offset(self, instant: Instant) -> int:
        """Seconds east of UTC at the instant."""
        from datetime import UTC, datetime

        there = datetime.fromtimestamp(instant, UTC).astimezone(self._zone).utcoffset()
        return int(there.total_seconds()) if there is not None else 0
