"""Where the record has holes: what the person had forgotten, and what is gone for no reason it knows.

Lines are numbered without a gap, and a forgetting leaves a line that says how many went and from when to
when (`store.forgotten`). So a jump in the numbers is told as lost only where no forgetting accounts
for it. Pure. May not live here: wording.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from stopwarden.core.record import Record
from stopwarden.store.forgotten import KIND, Forgotten, read_forgotten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.core.events import Instant
    from stopwarden.store.port import RecordLine


class Hole(Record):
    """Lines that are gone, and between which instants."""

    since: Instant
    until: Instant
    lines: int


def forgotten_between(lines: Iterable[RecordLine], begin: Instant, end: Instant) -> list[Forgotten]:
    """What was forgotten of the time between two instants, both included."""
    told = [read_forgotten(line.at, line.text) for line in lines if line.kind == KIND]
    return [one for one in told if _touches(one, begin, end)]


def lost(lines: Sequence[RecordLine]) -> list[Hole]:
    """Jumps in the numbers of these lines, in their order, that no forgetting accounts for."""
    told = [read_forgotten(line.at, line.text) for line in lines if line.kind == KIND]
    left = [one.lines for one in told]
    found = []
    for before, after in pairwise(line for line in lines if line.seq):
        missing = after.seq - before.seq - 1
        if missing < 1:
            continue
        since, until = min(before.at, after.at), max(before.at, after.at)
        for place, one in enumerate(told):
            if _touches(one, since, until):
                taken = min(left[place], missing)
                left[place] -= taken
                missing -= taken
        if missing:
            found.append(Hole(since=before.at, until=after.at, lines=missing))
    return found


def _touches(one: Forgotten, since: Instant, until: Instant) -> bool:
    if one.since is None or one.until is None:
        return one.lines > 0 or one.verdicts > 0
    return one.since <= until and one.until >= since
