"""Records as plain values for `--json`: instants as ISO 8601 in UTC, so that no zone can be guessed wrong."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stopwarden.core.record import Record

if TYPE_CHECKING:
    from typing import Any

    from stopwarden.core.events import Instant

# Fields that hold instants wherever they stand.
_NAMES = """
    at since until now look resets_at resumed_at ended_at answered_at delivered_at missed_looks nominal earliest latest
    deadline first_seen fires_at fires_said_at next_look next_look_latest recent_blocks claimed_at expires_at
    released_at kept_look blocked_at
"""
_INSTANTS = frozenset(_NAMES.split())
FIRST, LAST = -30_610_224_000, 253_402_300_799  # the years 1000 to 9999: what is beyond is a clock gone mad


def plain_values(value: object, name: str = "") -> Any:
    """A record as plain values for JSON; `name` is the field it stands in, by which instants are known."""
    if isinstance(value, Record):
        return {field: plain_values(part, field) for field, part in value.as_dict().items()}
    if isinstance(value, tuple):
        return [plain_values(part, name) for part in value]
    if name in _INSTANTS and isinstance(value, int) and not isinstance(value, bool):
        return utc(value)
    return value


def utc(at: Instant) -> str:
    """ "2026-11-30T23:05:00Z"."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(FIRST, min(at, LAST))))
