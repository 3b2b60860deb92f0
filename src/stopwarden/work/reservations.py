"""Acts on reservations: each reads, decides (`core.reservations`) and writes in one transaction.

The transaction holds the database's write lock from its first statement to its commit, and reads
the clock inside, so a process that was stopped in between is judged by the time at which it goes
on, and nobody else could take the item meanwhile. `first` is what the caller does inside before the
clock is read: it takes over what hooks left in the spool, because another session's tools may have
renewed its holds there. A claim whose commit failed may have reached the disk all the same: it is
*unknown* and read back by its nonce, never repeated blindly.

A session that holds something has a file of its name in `held/` of the state directory: by that a
hook knows, without the database, that the session's tools renew something even while nobody is
away. Its size says how often such a tool leaves word in the spool (`SIGN_UNIT` seconds a byte): a few
times in a lease, so that nobody has to empty the spool for days. It is made in the transaction
that grants the hold, before it commits, and taken away in one that finds no hold, so the two
never cross.

On the hook's path. May not live here: wording, wakes.
"""

from __future__ import annotations

import os

from stopwarden import machine
from stopwarden.core import leases, periods
from stopwarden.core import reservations as rules
from stopwarden.core.bounds import LEASE_MIN, MINUTE
from stopwarden.core.errors import HeldError, StopwardenError, StoreUnwritableError
from stopwarden.core.record import Record
from stopwarden.core.reservations import Claim, Denied, Granted
from stopwarden.store.port import RecordLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import Instant, Reservation
    from stopwarden.store.port import Store

HELD = "held"
SIGN_UNIT = 10  # seconds; `hook.run` reads it, a test holds the two together
SIGN_PAUSE = 5 * MINUTE  # at most: so long a session that works is not heard of
_SIGN = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Actor(Record):
    """Who acts, and from where: a session in its checkout, or the person (session "") in this one."""

    project: str
    session: str = ""
    copy: str = ""
    root: str = ""

    def claim(self, item: str, title: str, lease: int, nonce: str, *, place: str = "", project: str = "") -> Claim:
        """Its claim of an item of its project, or of another place in another project."""
        return Claim(
            item=item,
            place=place or self.project,
            project=project or self.project,
            session=self.session,
            copy=self.copy,
            root=self.root,
            title=title,
            lease=lease,
            nonce=nonce,
        )


def reserve(
    store: Store,
    ask: Claim,
    clock: Callable[[], Instant],
    *,
    state_dir: str = "",
    first: Callable[[], object] | None = None,
) -> Granted | Denied:
    """Claims an item for a session, or renews its hold. With `state_dir` the session's sign is shown there.

    Raises the Store…Error classes; where it cannot even be told whether the claim was stored,
    StoreUnwritableError says so.
    """
    done: Granted | Denied | None = None
    try:
        with store.transaction():
            if first is not None:
                first()
            done = _claimed(store, ask, clock(), state_dir)
    except StopwardenError as failed:
        if not isinstance(done, Granted):
            raise
        _read_back(store, ask, failed)
    if state_dir and isinstance(done, Granted) and done.replaced is not None:
        settle_sign(store, state_dir, done.replaced.session)
    return done


def _claimed(store: Store, ask: Claim, now: Instant, state_dir: str) -> Granted | Denied:
    """The claim, judged and stored."""
    stored = store.reservation(ask.place, ask.item)
    gone = stored is not None and is_gone(store, stored)
    done = rules.claim(ask, stored, _others(store, ask, stored), now, gone=gone)
    if isinstance(done, Denied):
        for held in done.by:
            if now < held.claimed_at and (held.first_seen is None or now < held.first_seen):
                store.save_reservation(held.replace(first_seen=now))  # the clock was set back: it lapses all the same
        return done
    if state_dir:
        show_sign(state_dir, ask.session, done.row.lease)
    store.save_reservation(done.row)
    if done.how != "renewed":
        _record(store, done.row, "reserved", now, done.row.title)
    if done.replaced is not None and done.replaced.session != ask.session:
        by = f"session {ask.session}" if ask.session else "the person"
        _record(store, done.replaced, "hold_lost", now, f"taken over by {by}")
    return done


def _others(store: Store, ask: Claim, stored: Reservation | None) -> list[Reservation]:
    """Every hold that may be in the way: of this session wherever it is, and where paths are named, of the project."""
    mine = store.reservations_of(session=ask.session) if ask.session else []
    kept = stored.footprint if stored is not None and stored.session == ask.session else ()
    if not (ask.footprint or kept):
        return mine
    there = [held for held in store.reservations_in(ask.project) if held.footprint and not is_gone(store, held)]
    return [*there, *(held for held in mine if held not in there)]


def renew(
    store: Store,
    place: str,
    item: str,
    session: str,
    clock: Callable[[], Instant],
    *,
    lease: int | None = None,
    token: int | None = None,
    copy: str = "",
    state_dir: str = "",
    first: Callable[[], object] | None = None,
) -> Granted | Denied:
    """Extends a session's own hold. Raises the Store…Error classes."""
    with store.transaction():
        if first is not None:
            first()
        done = rules.renew(store.reservation(place, item), session, clock(), lease=lease, token=token, copy=copy)
        if isinstance(done, Granted) and done.how == "renewed":
            if state_dir and lease is not None:
                show_sign(state_dir, session, lease)
            store.save_reservation(done.row)
    return done


def release(
    store: Store,
    place: str,
    item: str,
    session: str,
    clock: Callable[[], Instant],
    *,
    done: bool = False,
    token: int | None = None,
    copy: str = "",
    state_dir: str = "",
    first: Callable[[], object] | None = None,
) -> Granted | Denied:
    """Ends a session's own hold; `done`: because the item is finished. Raises the Store…Error classes."""
    with store.transaction():
        if first is not None:
            first()
        now = clock()
        stored = store.reservation(place, item)
        told = rules.release(stored, session, now, why_done=done, token=token, copy=copy)
        if isinstance(told, Granted) and told.how == "released":
            store.save_reservation(told.row)
            _record(store, told.row, "released", now, "done" if done else "")
    if state_dir and isinstance(told, Granted):
        settle_sign(store, state_dir, session)
    return told


def write_fenced(
    store: Store,
    place: str,
    item: str,
    session: str,
    clock: Callable[[], Instant],
    write: Callable[[], object],
    *,
    token: int | None = None,
    copy: str = "",
) -> Denied | None:
    """Does a protected write, or nothing, and then says why not.

    The fence is asked before the write and again after it, by the clock of that moment: a process
    that was stopped in between past its lease undoes what it wrote.
    """
    refused: Denied | None = None
    try:
        with store.transaction():
            refused = rules.fence(store.reservation(place, item), session, clock(), token=token, copy=copy)
            if refused is None:
                write()
                refused = rules.fence(store.reservation(place, item), session, clock(), token=token, copy=copy)
                if refused is not None:
                    raise HeldError(f"The hold on {item} was lost", kept="Nothing was changed")
    except HeldError:
        if refused is None:
            raise
    return refused


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
    """Whether the holder's session is known to have ended since its claim, or its program to be dead."""
    return bool(held.session) and held.claimed_at <= gone_since(store, held.session)


def gone_since(store: Store, session: str) -> Instant:
    """What a session claimed until then it will not come back to: its end; `NEVER` if its program is dead; else -1."""
    row = store.session(session)
    if row is None:
        return -1
    if row.ended_at is not None:
        return row.ended_at
    dead = row.program_seen > 1 and not machine.is_alive(row.program, row.program_started)
    return leases.NEVER if dead else -1


# --- the sign beside the database ---------------------------------------------------------------


def sign_path(state_dir: str, session: str) -> str:
    """The file that says a session holds something; "" for an id that is no file name."""
    plain = session.isascii() and session.replace("-", "").replace("_", "").isalnum() and len(session) <= 100
    return f"{state_dir}/{HELD}/{session}" if plain else ""


def show_sign(state_dir: str, session: str, lease: int = LEASE_MIN) -> None:
    """Makes the sign, for the shortest lease it was shown for; call it in the transaction of the grant.

    A sixth of the lease from one word to the next: one comes between half the lease and its end.
    Raises StoreUnwritableError.
    """
    path = sign_path(state_dir, session)
    if not path:
        return
    try:
        try:
            sign = os.open(path, _SIGN, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            sign = os.open(path, _SIGN, 0o600)
        try:
            before, wanted = os.fstat(sign).st_size, max(1, min(lease // 6, SIGN_PAUSE) // SIGN_UNIT)
            if not 0 < before <= wanted:
                os.ftruncate(sign, wanted)
        finally:
            os.close(sign)
    except OSError as failed:
        raise StoreUnwritableError(
            f"{path} cannot be written ({os.strerror(failed.errno or 0)})",
            kept="Nothing was reserved",
            do="Make the state directory writable",
        ) from failed


def settle_sign(store: Store, state_dir: str, session: str) -> None:
    """Takes the sign away if the session holds nothing any more. Never raises: a sign too many costs a spooled line."""
    path = sign_path(state_dir, session)
    if not path or not os.path.lexists(path):
        return
    try:
        with store.transaction():
            if not store.reservations_of(session=session):
                os.unlink(path)
    except (OSError, StopwardenError):
        pass


def _read_back(store: Store, ask: Claim, failed: StopwardenError) -> None:
    """A claim whose commit failed: returns if it is there all the same, else raises why it is not."""
    try:
        held = store.reservation(ask.place, ask.item)
    except StopwardenError:
        raise StoreUnwritableError(
            f"It cannot be told whether {ask.item} was reserved ({failed.happened})",
            kept="Take it for not reserved",
            do="See: stopwarden peers",
        ) from failed
    if held is None or not ask.nonce or held.nonce != ask.nonce or held.session != ask.session:
        raise failed


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
