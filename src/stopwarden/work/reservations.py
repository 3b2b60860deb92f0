"""Acts on reservations: each reads, decides (`core.reservations`) and writes in one transaction.

The transaction holds the database's write lock from its first statement to its commit, and reads
the clock inside, so a process that was stopped in between is judged by the time at which it goes
on, and nobody else could take the item meanwhile. A claim whose commit failed may have reached the
disk all the same: it is *unknown* and read back by its nonce, never repeated blindly.

A session that holds something has a file of its name in `held/` of the state directory, which is
there before the hold is and goes after it: by that a hook knows, without the database, that the
session's tools renew something even while nobody is away.

On the hook's path. May not live here: wording, wakes.
"""

from __future__ import annotations

import os

from stopwarden.core import leases, periods
from stopwarden.core import reservations as rules
from stopwarden.core.errors import StopwardenError, StoreUnwritableError
from stopwarden.core.reservations import Claim, Denied, Granted
from stopwarden.store.port import RecordLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import Instant, Reservation
    from stopwarden.store.port import Store

HELD = "held"


def reserve(store: Store, ask: Claim, clock: Callable[[], Instant]) -> Granted | Denied:
    """Claims an item for a session, or renews its hold.

    Raises the Store…Error classes; where it cannot even be told whether the claim was stored,
    StoreUnwritableError says so.
    """
    try:
        with store.transaction():
            now = clock()
            stored = store.reservation(ask.place, ask.item)
            gone = stored is not None and is_gone(store, stored)
            done = rules.claim(ask, stored, store.reservations_in(ask.project), now, gone=gone)
            if isinstance(done, Granted):
                store.save_reservation(done.row)
                if done.how != "renewed":
                    _record(store, done.row, "reserved", now, done.row.title)
                if done.replaced is not None:
                    _record(store, done.replaced, "hold_lost", now, f"taken over by session {ask.session or 'person'}")
    except StopwardenError as failed:
        return _read_back(store, ask, failed)
    return done


def renew(
    store: Store,
    place: str,
    item: str,
    session: str,
    clock: Callable[[], Instant],
    *,
    lease: int | None = None,
    token: int | None = None,
) -> Granted | Denied:
    """Extends a session's own hold. Raises the Store…Error classes."""
    with store.transaction():
        done = rules.renew(store.reservation(place, item), session, clock(), lease=lease, token=token)
        if isinstance(done, Granted) and done.how == "renewed":
            store.save_reservation(done.row)
    return done


def release(
    store: Store, place: str, item: str, session: str, clock: Callable[[], Instant], *, done: bool = False
) -> Granted | Denied:
    """Ends a session's own hold; `done`: because the item is finished. Raises the Store…Error classes."""
    with store.transaction():
        now = clock()
        told = rules.release(store.reservation(place, item), session, now, why_done=done)
        if isinstance(told, Granted) and told.how == "released":
            store.save_reservation(told.row)
            _record(store, told.row, "released", now, "done" if done else "")
    return told


def check_fence(
    store: Store, place: str, item: str, session: str, now: Instant, token: int | None = None
) -> Denied | None:
    """Why a protected write to the item is refused. Call it in the transaction that writes."""
    return rules.fence(store.reservation(place, item), session, now, token=token)


def renew_own(holds: list[Reservation], at: Instant, policy: Policy | None = None) -> list[Reservation]:
    """Those of a session's holds that an event of its own at `at` renews, renewed.

    `policy`: the event is a stop, which also renews what no wake could keep in time any more.
    """
    return [
        rules.renewed(held, at)
        for held in holds
        if held.session
        and leases.is_live(held, at)
        and (rules.is_due(held, at) if policy is None else rules.is_overdue(held, at, policy))
    ]


def is_gone(store: Store, held: Reservation) -> bool:
    """Whether the holder's session is known to have ended since its claim."""
    row = store.session(held.session) if held.session else None
    return row is not None and row.ended_at is not None and row.ended_at >= held.claimed_at


# --- the sign beside the database ---------------------------------------------------------------


def sign_path(state_dir: str, session: str) -> str:
    """The file that says a session holds something; "" for an id that is no file name."""
    plain = session.isascii() and session.replace("-", "").replace("_", "").isalnum() and len(session) <= 100
    return f"{state_dir}/{HELD}/{session}" if plain else ""


def show_sign(state_dir: str, session: str) -> None:
    """Makes the sign; call it before the claim. Raises StoreUnwritableError."""
    path = sign_path(state_dir, session)
    if not path:
        return
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as failed:
        raise StoreUnwritableError(
            f"{path} cannot be written ({os.strerror(failed.errno or 0)})",
            kept="Nothing was reserved",
            do="Make the state directory writable",
        ) from failed


def settle_sign(store: Store, state_dir: str, session: str) -> None:
    """Takes the sign away if the session holds nothing any more."""
    path = sign_path(state_dir, session)
    if path and not store.reservations_of(session=session):
        try:
            os.unlink(path)
        except OSError:
            pass  # a sign without a hold costs a line in the spool, nothing else


def _read_back(store: Store, ask: Claim, failed: StopwardenError) -> Granted:
    try:
        held = store.reservation(ask.place, ask.item)
    except StopwardenError:
        raise StoreUnwritableError(
            f"It cannot be told whether {ask.item} was reserved ({failed.happened})",
            kept="Take it for not reserved",
            do="See: stopwarden peers",
        ) from failed
    if held is None or not ask.nonce or held.nonce != ask.nonce:
        raise failed
    return Granted(how="new", row=held)


def _record(store: Store, held: Reservation, kind: str, now: Instant, text: str = "") -> None:
    """A line of the away record, if an away period covers the holder."""
    if not held.session:
        return
    covering = periods.covering(
        store.open_periods(), session=held.session, copy=held.copy, root=held.root, script=False, now=now
    )
    if covering is not None:
        store.append(
            [RecordLine(at=now, kind=kind, session=held.session, period=covering.id, item=held.item, text=text[:500])]
        )
