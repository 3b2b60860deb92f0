"""The keeper: a background hook that brings a session back when its look does not come.

Claude Code starts it in the background at every Stop and StopFailure (`asyncRewake`, asked for at
`install`); when it ends with exit code 2, the line on its standard error opens a new turn of the
idle session. So one process waits beside a waiting session and, when the latest time of its next
look has passed without any event, wakes it; after an error it does so with a back-off, or when
the usage limit ends.

Newest wins: each keeper raises its session's generation, and one that is no longer the newest
ends. A wake is taken in one transaction that checks everything again (newest, away still holds,
no event since, no ceiling passed), so there are never two wakes for one look. A keeper that
cannot read the state ends silently: it may not wake what it does not know.

What it waits for is decided in `due`, which is pure; the loop only sleeps and asks again.
"""

from __future__ import annotations

import os
import time

from stopwarden.core.bounds import HOUR, KEEPER_BACKOFF, MINUTE, Policy
from stopwarden.core.errors import StopwardenError
from stopwarden.core.periods import covering
from stopwarden.core.reason import quoted
from stopwarden.core.record import Record
from stopwarden.hook import at_stop, machine
from stopwarden.hosts import claude_code
from stopwarden.store.port import KeeperRow, RecordLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.events import AwayPeriod, Instant, SessionState
    from stopwarden.store.port import SessionRow, Store

ASK_EVERY = 5  # seconds between two looks at the state
LIVES = 25 * HOUR  # then it ends by itself; a session waits no longer than a lease
RESET_MARGIN = 1 * MINUTE  # after the time a usage limit is said to end


class Due(Record):
    """When the session is to be woken, and for what; `at` None: nothing to wait for now."""

    at: Instant | None = None
    kind: str = ""  # "kept_look" or "error"


def due(row: SessionRow, state: SessionState, block_stands: bool) -> Due:
    """When a session in this condition is to be woken."""
    if row.ended_at is not None:
        return Due()
    if row.error and row.error_at is not None:
        wait = KEEPER_BACKOFF[min(max(row.errors_in_a_row, 1), len(KEEPER_BACKOFF)) - 1]
        resets = row.error_resets_at
        return Due(at=max(row.error_at + wait, resets + RESET_MARGIN if resets else 0), kind="error")
    if block_stands:
        return Due()
    return Due(at=state.next_look_latest, kind="kept_look") if state.next_look_latest is not None else Due()


def keep(
    session: str,
    state_dir: str,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    leave: Callable[[int], None] = os._exit,
) -> str:
    """Waits beside a session as its newest keeper, and wakes it (exit code 2) when its time has come."""
    if not session:
        return ""
    began = now()
    generation = _register(session, state_dir, int(began))
    while generation and now() - began < LIVES:
        line = _asked(session, state_dir, generation, int(now()))
        if line is None:
            break
        if line:
            os.write(2, (line + "\n").encode("utf-8", "replace"))
            leave(2)
            return line
        sleep(ASK_EVERY)
    return ""


def _open(state_dir: str) -> Store:
    from stopwarden.hook.local import open_existing

    return open_existing(state_dir)


def _register(session: str, state_dir: str, now: Instant) -> int:
    """Becomes the session's newest keeper; its generation, or 0 where no keeper is wanted."""
    try:
        store = _open(state_dir)
        try:
            with store.transaction():
                row = store.session(session)
                period = _period(store, row, now)
                if row is None or period is None or not _policy(store, period).keeper:
                    return 0
                before = store.keeper(session)
                generation = before.generation + 1 if before else 1
                started = str(machine.started_ticks())
                store.save_keeper(
                    KeeperRow(session=session, pid=os.getpid(), started=started, generation=generation, at=now)
                )
                return generation
        finally:
            store.close()
    except (StopwardenError, OSError):
        return 0


def _asked(session: str, state_dir: str, generation: int, now: Instant) -> str | None:
    """None: this keeper is to end. "": not yet. Else the line that wakes the session, recorded as given."""
    if not os.path.exists(f"{state_dir}/away.json"):
        return None
    try:
        store = _open(state_dir)
    except (StopwardenError, OSError):
        return None
    try:
        with store.transaction():
            keeper, row = store.keeper(session), store.session(session)
            period = _period(store, row, now)
            if keeper is None or keeper.generation != generation or row is None or period is None:
                return None
            policy = _policy(store, period)
            if not policy.keeper or at_stop.mode_of(store, session) != "on" or row.ended_at is not None:
                return None
            state = store.state(session)
            when = due(row, state, _block_stands(store, row))
            if when.at is None or now < when.at:
                return ""
            return _woken(store, row, state, period, policy, keeper, when, now)
    except (StopwardenError, OSError):
        return None
    finally:
        store.close()


def _woken(
    store: Store,
    row: SessionRow,
    state: SessionState,
    period: AwayPeriod,
    policy: Policy,
    keeper: KeeperRow,
    when: Due,
    now: Instant,
) -> str | None:
    """Takes the wake: counted under the ceilings, recorded, and the look it stands for is over."""
    this_hour = tuple(then for then in state.recent_blocks if now - HOUR < then <= now)
    if len(this_hour) >= policy.blocks_an_hour or state.period_blocks >= policy.blocks_a_period:
        return ""
    store.save_state(
        state.replace(
            recent_blocks=(*this_hour, now),
            period_blocks=state.period_blocks + 1,
            next_look=None,
            next_look_latest=None,
            wake_started=True,
        ),
        expected_revision=state.revision,
    )
    store.save_keeper(keeper.replace(woke_at=now))
    store.append([RecordLine(at=now, kind="kept_look", session=row.id, period=period.id, text=when.kind)])
    if when.kind == "error":
        return f"Stopwarden: the last turn ended in an error ({quoted(row.error, 60)}); go on with the list of work."
    return "Stopwarden: your next look is due; look again, and go on with the list of work."


def _period(store: Store, row: SessionRow | None, now: Instant) -> AwayPeriod | None:
    if row is None:
        return None
    return covering(
        store.open_periods(),
        session=row.id,
        copy=row.copy,
        root=row.root,
        script=claude_code.is_script(row.entrypoint),
        now=now,
    )


def _policy(store: Store, period: AwayPeriod) -> Policy:
    return at_stop.policy_of(store, period)


def _block_stands(store: Store, row: SessionRow) -> bool:
    """Whether the last stop was blocked: then the session is at work, not idle."""
    last = store.verdict(row.last_verdict) if row.last_verdict else None
    return last is not None and last.kind == "block"
