"""How long the record is kept, and how large it may grow: the limits, and keeping to them.

Two stored facts, set with `stopwarden forget --set-age` and `--set-size`. They are kept to when the
person leaves and when they are back, never in a hook, at most once a day and for some tenths of a
second a go; what is not done then is done next time. Nights of the last days always stay, because a
report is read in the morning after.

A clock that was set far ahead must not cost the record: a go that finds the clock more than a month
later than at the last one forgets nothing, and the next one does if the clock still says so.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from stopwarden.cli.times import duration
from stopwarden.core.bounds import DAY
from stopwarden.core.errors import RefusedError, StopwardenError, UsageError
from stopwarden.core.record import Record
from stopwarden.store import beside, forgetting, marker
from stopwarden.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from stopwarden.cli.context import Context
    from stopwarden.core.events import Instant
    from stopwarden.store.port import Store

AGE = 400 * DAY
SIZE = 1024 * 1024 * 1024
AGE_MIN, SIZE_MIN = 7 * DAY, 1_000_000
FRESH = 3 * DAY  # nights that ended since stay, whatever the limits say
JUMP = 35 * DAY
A_GO = 0.3  # seconds of forgetting, and as long again for texts and for room
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


class Limits(Record):
    """What the person set, or the defaults; None: no limit."""

    age: int | None = AGE  # seconds
    size: int | None = SIZE  # bytes


def limits(store: Store) -> Limits:
    """What holds now. What is stored and cannot be read counts as not set."""
    return Limits(age=_limit(store, "age", AGE), size=_limit(store, "size", SIZE))


def _limit(store: Store, name: str, default: int) -> int | None:
    said = store.fact("forgetting", name)
    if said == "none":
        return None
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else default


def set_limits(store: Store, age: str | None, size: str | None) -> None:
    """Stores what was said: a length, a size, or "none". Raises UsageError; then nothing was changed."""
    given: dict[str, str] = {}
    if age is not None:
        seconds = None if age.strip().lower() == "none" else duration(age)
        if seconds is not None and seconds < AGE_MIN:
            raise UsageError(f"--set-age {age}: the least is 7d", do="To forget now: stopwarden forget --older-than")
        given["age"] = "none" if seconds is None else str(seconds)
    if size is not None:
        given["size"] = "none" if size.strip().lower() == "none" else str(size_of(size))
    with store.transaction():
        for name, value in given.items():
            store.save_fact("forgetting", name, value)


def size_of(said: str) -> int:
    """Bytes of "200MB", "1.5 GiB", "500k". Raises UsageError with what would be right."""
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(|k|m|g|t|ki|mi|gi|ti)b?", said.strip().lower())
    if found is None:
        raise UsageError(f"{said!r} is no size", do="Use for instance 200MB or 1GiB")
    size = int(float(found[1]) * _UNITS[found[2]])
    if size < SIZE_MIN:
        raise UsageError(f"{said!r} is less than a database needs", do="The least is 1MB")
    return size


def in_words(size: int) -> str:
    """ "1.0 GiB", "200 MB", "12 kB": as a person would say it."""
    if size >= 2**30 and size % 2**29 == 0:
        return f"{size / 2**30:g} GiB"
    for unit, name in ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}" if size < 1000 * unit else f"{size // unit} {name}"
    return f"{size} bytes"


def limits_in_words(held: Limits) -> str:
    """What holds from now on, in one clause."""
    age = f"older than {held.age // DAY} days" if held.age is not None else ""
    size = f"beyond {in_words(held.size)}" if held.size is not None else ""
    what = " or ".join(part for part in (age, size) if part)
    return f"nights {what} are forgotten when you leave or are back" if what else "nothing is forgotten by itself"


def marked(state_dir: str) -> list[str]:
    """The ids of the periods that the marker names. Raises RefusedError where it cannot be read."""
    told = marker.read(state_dir)
    if told is marker.UNREADABLE:
        raise RefusedError(
            "The mark of an away period cannot be read, so it cannot be told what is running",
            kept="Nothing was forgotten",
            do="Run: stopwarden back",
        )
    return [period.id for period in told or ()]


def choice_by_limits(store: SqliteStore, named: list[str], now: Instant) -> forgetting.Choice | None:
    """What the limits ask to forget, None if they are kept to."""
    held = limits(store)
    befores = []
    if held.age is not None:
        befores.append((min(now - held.age, now - FRESH), f"older than {_days(held.age)}"))
    if held.size is not None:
        surplus = forgetting.used(store) - held.size
        by_size = forgetting.before_for_size(store, named, surplus, now - FRESH) if surplus > 0 else None
        if by_size is not None:
            befores.append((by_size, f"at most {in_words(held.size)}"))
    if not befores:
        return None
    before, how = max(befores)
    return forgetting.Choice(before=before, how=f"{how} (limit)")


def keep_to_limits(store: Store, context: Context) -> None:
    """One go, of some tenths of a second. Never raises a failure of ours: the person came for something else."""
    if not isinstance(store, SqliteStore):
        return
    now = context.now()
    try:
        seen, looked = _instant(store, "seen"), _instant(store, "looked")
        store.save_fact("forgetting", "seen", str(now))
        if seen is None or now - seen > JUMP or (looked is not None and 0 <= now - looked < DAY):
            return
        if _go(store, context, now):
            store.save_fact("forgetting", "looked", str(now))
    except (StopwardenError, OSError) as failed:
        context.warn(f"stopwarden: what is older than the limits could not be forgotten: {failed}")


def _go(store: SqliteStore, context: Context, now: Instant) -> bool:
    """Whether everything the limits ask for is done."""
    named = marked(context.state_dir)
    chosen = choice_by_limits(store, named, now)
    if chosen is not None:
        going = forgetting.plan(store, chosen, named, now)
        if not going.empty and not forgetting.carry_out(store, going, named, context.now, _within(A_GO)):
            return False
        beside.remove(beside.set_aside(context.state_dir, chosen.before))
        beside.forget_faults(context.state_dir, chosen.before)
    if store.fact("forgetting", "texts"):
        return forgetting.sweep(store, _within(A_GO)) and forgetting.shrink(store, _within(A_GO))
    return True


def _within(seconds: float) -> forgetting.Enough:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


def _instant(store: Store, name: str) -> Instant | None:
    said = store.fact("forgetting", name)
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else None


def _days(seconds: int) -> str:
    return f"{seconds // DAY}d" if seconds % DAY == 0 else f"{seconds // 3600}h"
