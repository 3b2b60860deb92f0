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

from stopwarden import machine
from stopwarden.core.bounds import HOUR, KEEPER_BACKOFF, MINUTE
from stopwarden.core.errors import StopwardenError
from stopwarden.core.reason import quoted
from stopwarden.core.record import Record
from stopwarden.hook import terms
from stopwarden.hosts import claude_code
from stopwarden.hosts.claude_code_facts import KEPT_LOOK
from stopwarden.store.port import KeeperRow, RecordLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.events import AwayPeriod, Instant, SessionState, Zone
    from stopwarden.store.port import SessionRow, Store

ASK_EVERY = 60  # seconds between two looks at the state, at most
REGISTER_TRIES = 10
IDLE_AFTER = ("stop", "stop-failure", "notification")  # a session whose last event is another is at work
LIVES = 25 * HOUR  # then it ends by itself; a session waits no longer than a lease
FIRST_ASKS = (2, 5, 15)  # seconds: the stop that started us is judged at this moment
HOST_FIRST = 20  # seconds that the host's own wake gets, which comes up to 2 s after its time
RESET_MARGIN = 1 * MINUTE  # after the time a usage limit is said to end


class Due(Record):
    """When the session is to be woken, and for what; `at` None: nothing to wait for now."""

    at: Instant | None = None
    kind: str = ""  # "kept_look" or "error"


def due(row: SessionRow, state: SessionState, block_stands: bool, woke_at: Instant | None = None) -> Due:
    """When a session in this condition is to be woken. One that is at work, or gone, is not.

    The host's own wake comes a second or two after its time, so it gets a moment first; and a look
    that a keeper has made already (`woke_at`) is never made again, though the host may still list it.
    """
    if row.ended_at is not None or row.last_event not in IDLE_AFTER:
        return Due()
    if row.error and row.error_at is not None:
        wait = KEEPER_BACKOFF[min(max(row.errors_in_a_row, 1), len(KEEPER_BACKOFF)) - 1]
        resets = row.error_resets_at
        return Due(at=max(row.error_at + wait, resets + RESET_MARGIN if resets else 0), kind="error")
    if block_stands or state.next_look_latest is None:
        return Due()
    if woke_at is not None and state.next_look_latest <= woke_at:
        return Due()
    return Due(at=state.next_look_latest + HOST_FIRST, kind="kept_look")


def keep(
    session: str,
    state_dir: str,
    zone: Zone,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    leave: Callable[[int], None] = os._exit,
    lives: float = LIVES,
) -> str:
    """Waits beside a session as its newest keeper, and wakes it (exit code 2) when its time has come."""
    if not session:
        return ""
    began = now()
    generation: int | None = None
    for _ in range(REGISTER_TRIES):
        generation = _register(session, state_dir, zone, int(now()))
        if generation is not None:
            break
        sleep(1)  # the stop's own hook, started beside us, has not stored the session yet
    asked = 0
    while generation and now() - began < lives:
        when, line = _asked(session, state_dir, generation, int(now()))
        if when is None:
            break
        if line:
            os.write(2, (line + "\n").encode("utf-8", "replace"))
            leave(2)
            return line
        pause = FIRST_ASKS[asked] if asked < len(FIRST_ASKS) else ASK_EVERY
        asked += 1
        left = pause if when.at is None else when.at - now()
        sleep(left if 0 < left < pause else pause)
    return ""


def _register(session: str, state_dir: str, zone: Zone, now: Instant) -> int | None:
    """Becomes the session's newest keeper: its generation; 0 where none is wanted; None where it is not known yet."""
    from stopwarden.hook.local import end_by_time, open_existing

    try:
        store = open_existing(state_dir)
        try:
            with store.transaction():
                end_by_time(store, state_dir, zone, now)
                row = store.session(session)
                if row is None:
                    return None
                period = _period(store, row, now)
                if period is None or not terms.policy_of(store, period).keeper:
                    return 0
                if claude_code.is_script(row.entrypoint):
                    return 0  # `claude -p` waits for us before it ends, and a wake would count to its cap
                before = store.keeper(session)
                generation = before.generation + 1 if before else 1
                started = str(machine.started_ticks())
                store.save_keeper(
                    KeeperRow(
                        session=session,
                        pid=os.getpid(),
                        started=started,
                        generation=generation,
                        at=now,
                        woke_at=before.woke_at if before else None,
                    )
                )
                return generation
        finally:
            store.close()
    except (StopwardenError, OSError):
        return 0


def _asked(session: str, state_dir: str, generation: int, now: Instant) -> tuple[Due | None, str]:
    """What this keeper waits for (None: it is to end), and the line that wakes the session, once it is taken."""
    from stopwarden.hook.local import open_existing

    if not os.path.exists(f"{state_dir}/away.json"):
        return None, ""
    try:
        store = open_existing(state_dir)
        try:
            when = _waits_for(store, session, generation, now)
            if when is None or when.at is None or now < when.at:
                return when, ""
            with store.transaction():  # everything again, now that nobody else can write
                when = _waits_for(store, session, generation, now)
                if when is None or when.at is None or now < when.at:
                    return when, ""
                return when, _woken(store, session, when, now)
        finally:
            store.close()
    except (StopwardenError, OSError):
        return None, ""


def _waits_for(store: Store, session: str, generation: int, now: Instant) -> Due | None:
    """What the session's condition asks for; None where this keeper has no more business."""
    keeper, row = store.keeper(session), store.session(session)
    if keeper is None or keeper.generation != generation or row is None or row.ended_at is not None:
        return None
    period = _period(store, row, now)
    if period is None or not terms.policy_of(store, period).keeper:
        return None
    if terms.mode_of(store, session, now) != "on" and terms.paused_until(store, session) is None:
        return None
    last = store.verdict(row.last_verdict) if row.last_verdict else None
    return due(row, store.state(session), last is not None and last.kind == "block", keeper.woke_at)


def _woken(store: Store, session: str, when: Due, now: Instant) -> str:
    """Takes the wake: counted under the ceilings and recorded; the look it stands for is over. "" past a ceiling."""
    row, keeper = store.session(session), store.keeper(session)
    period = _period(store, row, now)
    if row is None or keeper is None or period is None:
        return ""
    state, policy = store.state(session), terms.policy_of(store, period)
    this_hour = tuple(then for then in state.recent_blocks if now - HOUR < then <= now)
    if len(this_hour) >= policy.blocks_an_hour or state.period_blocks >= policy.blocks_a_period:
        return ""
    store.save_state(
        state.replace(
            recent_blocks=(*this_hour, now),
            period_blocks=state.period_blocks + 1,
            next_look=None,
            next_look_latest=None,
        ),
        expected_revision=state.revision,
    )
    store.save_session(row.replace(last_event="kept-look", last_event_at=max(row.last_event_at, now)))
    store.save_keeper(keeper.replace(woke_at=now))
    store.append([RecordLine(at=now, kind="kept_look", session=row.id, period=period.id, text=when.kind)])
    if when.kind == "error":
        return f"{KEPT_LOOK}last turn ended in an error ({quoted(row.error, 60)}); go on with the list of work."
    return f"{KEPT_LOOK}next look is due; look again, and go on with the list of work."


def _period(store: Store, row: SessionRow | None, now: Instant) -> AwayPeriod | None:
    return None if row is None else terms.period_of(row, store.open_periods(), now)
