"""The stored record, opened for the commands that tell of it.

What hooks left in the spool is taken over first, so the record is as new as it can be; where that
cannot be written, what is stored already is told all the same, and the person is warned.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from stopwarden.cli import known, times
from stopwarden.core.errors import StopwardenError, UsageError
from stopwarden.store import marker
from stopwarden.store.port import RecordLine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stopwarden.cli.context import Context
    from stopwarden.core.events import AwayPeriod, Instant, Zone
    from stopwarden.store.port import Store

FAULTS_MAX = 256 * 1024
_AT = "Use for instance 22:00, `2026-11-30 22:00` or 8h"


@contextmanager
def opened(context: Context) -> Iterator[Store]:
    """The store with every fact taken in. Raises the Store…Error classes where it cannot be opened at all."""
    store = context.open_store()
    try:
        try:
            marker.settle(store, context.state_dir)
            known.take_in(store, context)
        except (StopwardenError, OSError) as failed:
            context.warn(f"stopwarden: the newest events could not be taken in, so they are not told here: {failed}")
        yield store
    finally:
        store.close()


def period_named(said: str, periods: Sequence[AwayPeriod]) -> AwayPeriod:
    """The away period of that id, or the only one that begins so. Raises UsageError with the last ones."""
    found = [one for one in periods if one.id == said] or [one for one in periods if one.id.startswith(said)]
    if len(found) != 1:
        lately = ", ".join(one.id for one in periods[-5:]) or "none is recorded"
        which = f"{len(found)} away periods" if found else "no away period"
        raise UsageError(f"{said!r} names {which}", do=f"The last ones: {lately}")
    return found[0]


def instant_before(said: str, now: Instant, zone: Zone) -> Instant:
    """The past instant that `said` names: a time of day (the last such), a date and time, or a length ago.

    A local time that clocks showed twice is the first of the two, so that nothing is left out.
    Raises UsageError with what would be right.
    """
    text = " ".join(said.split())
    if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}", text):
        today = times.local(now, zone)
        for days in range(3):
            wall = _parsed(f"{(today - timedelta(days=days)):%Y-%m-%d} {text.zfill(5)}", said)
            found = [at for at in times.instants_of(wall, zone) if at <= now]
            if found:
                return found[0]
        raise UsageError(f"{said!r} was not on the clock lately", do=_AT)
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?(Z|[+-][0-9]{2}:[0-9]{2})?", text):
        wall = _parsed(text, said)
        if wall.tzinfo is not None:
            return _past(int(wall.timestamp()), now, said)
        found = list(times.instants_of(wall, zone)) or list(times.instants_of(wall + timedelta(hours=1), zone))
        return _past(found[0], now, said)
    try:
        return now - times.duration(text)
    except UsageError:
        raise UsageError(f"{said!r} is no time that has been", do=_AT) from None


def _parsed(text: str, said: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{said!r} is not on the clock", do=_AT) from None


def _past(at: Instant, now: Instant, said: str) -> Instant:
    if at > now:
        raise UsageError(f"{said!r} is still to come", do=_AT)
    return at


def faults(state_dir: str, since: Instant, until: Instant) -> list[RecordLine]:
    """Our own faults in that time, from the file they are counted in when the database may be what is broken."""
    try:
        file = os.open(os.path.join(state_dir, "faults"), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    with open(file, "rb") as faults_file:
        faults_file.seek(max(0, os.fstat(file).st_size - FAULTS_MAX))
        told = faults_file.read().decode("utf-8", "replace")
    found = []
    for line in told.splitlines():
        words = line.split(" ", 3)
        if len(words) == 4 and words[2] == "fault" and words[0].isascii() and words[0].isdigit():
            at = int(words[0])
            if since <= at <= until:
                found.append(RecordLine(at=at, kind="fault", text=words[3]))
    return found


def databases_set_aside(state_dir: str, since: Instant, until: Instant) -> list[RecordLine]:
    """Damaged databases that were set aside in that time."""
    found = []
    for path in known.set_aside(state_dir):
        stamp = re.search(r"\.damaged-([0-9]{8}T[0-9]{6})Z", path)
        if stamp is None or re.search(r"-(wal|shm|journal)(\.[0-9]+)?$", path):
            continue
        at = int(datetime.fromisoformat(f"{stamp[1]}+00:00").timestamp())
        if since <= at <= until:
            found.append(RecordLine(at=at, kind="store_damaged", text=path))
    return found
