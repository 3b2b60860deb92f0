"""Everything stored about the sessions, brought together for the commands that tell of them.

Facts that hooks left in the spool are taken over first, so what is told is the last that was
heard. Nothing else is written: counts are read from the lists as they stand, not from what a
stop would remember of them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stopwarden import machine
from stopwarden.core import cron
from stopwarden.core.bounds import DAY, WAKE_EXPIRY_DEFAULT
from stopwarden.core.errors import ScheduleError, StoreCorruptError
from stopwarden.core.owed import assess
from stopwarden.core.record import Record
from stopwarden.hook import declared, spool, terms
from stopwarden.hook.note import take_all
from stopwarden.report.reading import short_ids
from stopwarden.report.state import Known
from stopwarden.store import journal
from stopwarden.store.port import RecordLine
from stopwarden.work import checkout, gather, host_todos

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.cli.context import Context
    from stopwarden.core.events import AwayPeriod, Instant, Item, SessionState, Zone
    from stopwarden.store.port import SeenWake, SessionRow, Store


class Tally(Record):
    """How a list stands. What was finished before the person left is left out of `of` and `done`."""

    of: int = 0
    done: int = 0
    open: int = 0
    waits_for_you: int = 0
    waits: int = 0  # for something else


class Work(Record):
    """What a session has to do: how its lists stand, and how much it owes; None: not known."""

    tally: Tally | None = None
    owes: int | None = None


def take_in(store: Store, context: Context) -> str:
    """Takes over what hooks left in the spool. "", or why it could not be read: then what is known may be old."""
    try:
        with store.transaction():
            told = spool.facts(store, context.state_dir)
            take_all(store, told, context.state_dir, store.open_periods(), context.zone)
    except OSError as error:
        why = error.strerror or type(error).__name__
        return f"What hooks left in {context.state_dir}/spool cannot be read ({why}): what is told here may be old."
    return ""


def end_those_over(store: Store, now: Instant) -> list[AwayPeriod]:
    """Ends the periods whose time has come, each at its time, and records it. Those."""
    with store.transaction():
        over = [one for one in store.open_periods() if one.until is not None and now >= one.until]
        for period in over:
            end = period.until if period.until is not None else now
            store.end_period(period.id, end, "time")
            store.append([RecordLine(at=end, kind="period_ended", period=period.id, text="time")])
    return over


def known_sessions(
    store: Store, periods: Sequence[AwayPeriod], now: Instant, zone: Zone, *, since: Instant, installed_at: Instant
) -> list[tuple[Known, Tally | None]]:
    """Every session heard of since an instant: all that its state is told from, and how its lists stand."""
    rows = store.sessions(since)
    called = names(rows)
    return [_known(store, row, periods, now, zone, installed_at, called[row.id]) for row in rows]


def names(rows: Iterable[SessionRow]) -> dict[str, str]:
    """One name a session: its title where no other has it, else its short id."""
    known = list(rows)
    titles = [row.title for row in known]
    short = short_ids(row.id for row in known)
    return {row.id: row.title if row.title and titles.count(row.title) == 1 else short[row.id] for row in known}


def _known(
    store: Store,
    row: SessionRow,
    periods: Sequence[AwayPeriod],
    now: Instant,
    zone: Zone,
    installed_at: Instant,
    name: str,
) -> tuple[Known, Tally | None]:
    period = terms.period_of(row, periods, now)
    keeper = store.keeper(row.id)
    kept = keeper is not None and period is not None and terms.policy_of(store, period).keeper
    lives = keeper is not None and machine.is_alive(keeper.pid, keeper.started)
    said = declared.declared(store, row.id, row.host, now) if period is not None else None
    state = store.state(row.id)
    work = _work(store, row, state, period)
    known = Known(
        row=row,
        state=state,
        period=period,
        verdict=store.verdict(row.last_verdict) if row.last_verdict else None,
        mode=terms.mode_of(store, row.id, now),
        owes=work.owes,
        wake_at=next_wake(store.wakes(row.id), now, zone),
        kept=kept and lives,
        keeper_gone=kept and not lives and keeper is not None and (keeper.woke_at or 0) < row.last_event_at,
        declared=said.at if said is not None else None,
        declared_counts=said is not None and said.counts,
        woken_at=keeper.woke_at if keeper is not None else None,
        installed_at=installed_at,
        name=name,
    )
    return known, work.tally


def next_wake(wakes: Iterable[SeenWake], now: Instant, zone: Zone) -> Instant | None:
    """The next nominal fire of a session's wakes within a day, as far as it can be told."""
    fires = [fire for wake in wakes if wake.gone_at is None and (fire := _fire(wake, now, zone)) is not None]
    return min(fires, default=None)


def _fire(wake: SeenWake, now: Instant, zone: Zone) -> Instant | None:
    if wake.fires_at is not None and wake.fires_at > now:
        return wake.fires_at
    if wake.kind != "recurring" and (wake.fires_at is not None or not wake.schedule):
        return None
    try:
        schedule = cron.parse(wake.schedule)
    except ScheduleError:
        return None
    if wake.kind != "recurring":
        once = cron.next_fire(schedule, wake.first_seen, zone)
        return once if once is not None and now < once <= now + DAY else None
    fire = cron.next_fire(schedule, now, zone, within=DAY)
    ends = wake.first_seen + (WAKE_EXPIRY_DEFAULT if wake.max_age is None else wake.max_age)
    return fire if fire is not None and fire <= ends else None


def _work(store: Store, row: SessionRow, state: SessionState, period: AwayPeriod | None) -> Work:
    """What it has to do by the lists as they stand; by its last stop where those know of nothing."""
    if period is None:
        return Work()
    own = checkout.own_list_path(row.root, row.id) if row.root else ""
    lists = gather.read_lists(store, period.lists or ((own,) if own else ()), period.id, row.root, own=own)
    unread = tuple(one.unread for one in lists if one.unread)
    items = [item for one in lists for item in one.items]
    owes = len(assess(items, unread, state).owed) or _owed_at_its_last_stop(store, row, period)
    return Work(tally=None if unread or not items else tally(items), owes=None if unread else owes)


def _owed_at_its_last_stop(store: Store, row: SessionRow, period: AwayPeriod) -> int | None:
    """How many of the host's own todos it owed then; lists are not asked again."""
    last = store.verdict(row.last_verdict) if row.last_verdict else None
    if last is None or last.period != period.id:
        return 0 if period.lists else None
    try:
        _, _, world, _, verdict = journal.decode(last.body, store.snapshot)
    except StoreCorruptError:
        return None
    todos = {item.id for item in world.items if item.source == host_todos.SOURCE}
    return sum(one in todos for one in verdict.owed)


def tally(items: Iterable[Item]) -> Tally:
    """How these items stand."""
    counted = [item for item in items if item.state not in ("dropped", "removed")]
    tonight = [item for item in counted if item.before != "done" or item.state != "done"]
    states = [item.state for item in tonight]
    yours = sum(item.state == "waiting" and item.waits_on == "person" for item in tonight)
    return Tally(
        of=len(tonight),
        done=states.count("done"),
        open=states.count("open") + states.count("doing"),
        waits_for_you=yours,
        waits=states.count("waiting") - yours,
    )


def set_aside(state_dir: str) -> list[str]:
    """Damaged databases that were set aside, oldest first."""
    try:
        return sorted(os.path.join(state_dir, name) for name in os.listdir(state_dir) if ".db.damaged-" in name)
    except OSError:
        return []
