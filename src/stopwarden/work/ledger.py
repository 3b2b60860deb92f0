"""Acts on the ledger: each reads, asks the fence, decides and writes in one transaction.

An item belongs to a project, and is acted on from within it. `was` and `changed_at` follow every
change of state and nothing else: by them a stop is told what the agent did in this away period.
What a session holds is checked by `work.reservations` inside the writing transaction, so a session
that lost an item, or slept past its lease, writes nothing to it. Finishing or dropping an item
ends whatever hold is on it. `first` is what a caller does inside the transaction before the clock
is read.

An item with a verify command is finished only by a command that passed (`Passed`), or by the
person's word. The command itself is run by whoever calls, between `may_finish` and `finish`: it
may take an hour, so `finish` asks everything again.

May not live here: running a program, wording beyond that of errors, other trackers.
"""

from __future__ import annotations

from stopwarden.core import leases
from stopwarden.core import ledger as rules
from stopwarden.core.bounds import LEASE_DEFAULT
from stopwarden.core.errors import RefusedError, StoreBusyError, StoreUnwritableError, UsageError
from stopwarden.core.record import Record
from stopwarden.core.reservations import Denied
from stopwarden.store.port import LedgerItem
from stopwarden.work import reservations
from stopwarden.work.titles import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Literal

    from stopwarden.core.events import Instant, ItemState, Reservation
    from stopwarden.store.port import Store
    from stopwarden.work.reservations import Actor

    WaitsOn = Literal["person", "external", "session"]

VERIFY_MAX = 4_000  # characters of a verify command
NEEDS_MAX = 100  # of one item
WHY_MAX = 300


class Started(Record):
    """The item as it is begun, and the hold that goes with it (None for the person)."""

    item: LedgerItem
    held: Reservation | None = None


class Ended(Record):
    """The item as it is now, and the session whose hold on it ended by that."""

    item: LedgerItem
    released: str = ""


class Passed(Record):
    """Its verify command ran and ended well."""


class Failed(Record):
    """Its verify command ran and did not end well: a digest of how."""

    digest: str


def item_of(store: Store, project: str, number: int) -> LedgerItem:
    """The project's item of that number. Raises UsageError where there is none."""
    item = store.ledger_item(number)
    if item is None:
        raise UsageError(f"There is no w{number} in the ledger", kept="Nothing was changed", do=_SEE)
    if item.project != project:
        raise UsageError(
            f"w{number} belongs to another project ({item.project})", kept="Nothing was changed", do="Do it from there"
        )
    return item


_SEE = "See the ids: stopwarden list"


def add(
    store: Store,
    project: str,
    title: str,
    clock: Callable[[], Instant],
    *,
    session: str = "",
    priority: int = rules.PRIORITY_DEFAULT,
    needs: Iterable[int] = (),
    verify: str = "",
) -> LedgerItem:
    """Another open item. Raises UsageError for no title, a priority beyond 0 to 4, needs that are not there."""
    title = one_line(title)
    if not title:
        raise UsageError("There is no title to add", kept="Nothing was changed", do="Name the work in a few words")
    if "\0" in verify or len(verify) > VERIFY_MAX:
        raise UsageError(
            f"The verify command holds a NUL or is longer than {VERIFY_MAX:,} characters",
            kept="Nothing was changed",
            do="Put it into a script, and name that",
        )
    with store.transaction():
        now = clock()
        item = LedgerItem(
            project=project,
            title=title,
            changed_at=now,
            priority=_priority(priority),
            needs=_needs(store, project, needs),
            verify=verify.strip(),
            created_at=now,
            created_by=session,
        )
        return item.replace(number=store.add_ledger_item(item))


def start(
    store: Store,
    by: Actor,
    number: int,
    clock: Callable[[], Instant],
    *,
    lease: int = LEASE_DEFAULT,
    nonce: str = "",
    state_dir: str = "",
    first: Callable[[], object] | None = None,
) -> Started | Denied:
    """Begins an item: "doing", assigned to the session, and reserved for it. The person reserves nothing.

    `lease` in seconds; with `state_dir` the session's sign is shown there. Raises UsageError for an
    item that is over, RefusedError for one that needs another first. A start whose commit failed is
    read back by its nonce.
    """
    try:
        with store.transaction():
            now = _begun(clock, first)
            item = _unfinished(item_of(store, by.project, number))
            _refuse_unmet(store, item)
            held = None
            if by.session:
                ask = by.claim(item.id, item.title, lease, nonce)
                granted = reservations.reserve(store, ask, clock, state_dir=state_dir)
                if isinstance(granted, Denied):
                    return granted
                held = granted.row
            else:
                there = store.reservation(item.project, item.id)
                if there is not None and there.session and leases.is_live(there, now):
                    return Denied(why="held", by=(there,), until=there.expires_at)
            item = _turned(item, "doing", now).replace(assigned=by.session)
            store.save_ledger_item(item)
    except (StoreBusyError, StoreUnwritableError):
        there = store.reservation(by.project, f"w{number}") if nonce and not store.in_transaction else None
        if there is None or there.nonce != nonce:
            raise
        return Started(item=item_of(store, by.project, number), held=there)
    return Started(item=item, held=held)


def may_finish(
    store: Store,
    by: Actor,
    number: int,
    clock: Callable[[], Instant],
    *,
    token: int | None = None,
    first: Callable[[], object] | None = None,
) -> LedgerItem | Denied:
    """The item if this actor may finish it now, or may have done already. Raises UsageError if it was dropped."""
    with store.transaction():
        now = _begun(clock, first)
        item = item_of(store, by.project, number)
        if item.state == "done":
            return item
        _unfinished(item)
        return reservations.check_fence(store, item.project, item.id, by.session, now, token) or item


def finish(
    store: Store,
    by: Actor,
    number: int,
    clock: Callable[[], Instant],
    *,
    token: int | None = None,
    ran: Passed | Failed | None = None,
    first: Callable[[], object] | None = None,
) -> Ended | Denied:
    """Done, if its verify command passed or it has none; `Failed`: as it was, the failure remembered.

    `ran` None on an item with a verify command is the person's own word. Whatever was asked before
    the command ran is asked again.
    """
    with store.transaction():
        now = _begun(clock, first)
        item = item_of(store, by.project, number)
        if item.state == "done":
            return Ended(item=item)
        _unfinished(item)
        if item.verify and ran is None and by.session:
            raise RefusedError(
                f"{item.id} is done when its command passed: {one_line(item.verify)}",
                kept="Nothing was changed",
                do=f"Run: stopwarden done {item.id}",
            )
        if isinstance(ran, Failed):
            item = item.replace(failure=ran.digest)
        else:
            verified = now if ran is not None and item.verify else None
            item = _turned(item, "done", now).replace(verified_at=verified, failure="", done_by=by.session)
        denied = _written(store, by, item, clock, token)
        if denied is not None:
            return denied
        return Ended(item=item, released=_end_hold(store, item, clock) if item.state == "done" else "")


def wait(
    store: Store,
    by: Actor,
    number: int,
    clock: Callable[[], Instant],
    waits_on: WaitsOn,
    why: str = "",
    *,
    first: Callable[[], object] | None = None,
) -> LedgerItem | Denied:
    """Marks an item as waiting. Its hold stays. Raises UsageError for one that is over."""
    with store.transaction():
        now = _begun(clock, first)
        item = _unfinished(item_of(store, by.project, number))
        item = _turned(item, "waiting", now).replace(waits_on=waits_on, why=one_line(why, WHY_MAX))
        return _written(store, by, item, clock) or item


def drop(
    store: Store,
    by: Actor,
    number: int,
    clock: Callable[[], Instant],
    why: str = "",
    *,
    first: Callable[[], object] | None = None,
) -> Ended | Denied:
    """It will not be done; what needs it may begin. Dropping twice changes nothing."""
    with store.transaction():
        now = _begun(clock, first)
        item = item_of(store, by.project, number)
        if item.state == "dropped":
            return Ended(item=item)
        item = _turned(_unfinished(item), "dropped", now).replace(why=one_line(why, WHY_MAX))
        return _written(store, by, item, clock) or Ended(item=item, released=_end_hold(store, item, clock))


def change(
    store: Store,
    by: Actor,
    number: int,
    clock: Callable[[], Instant],
    *,
    title: str | None = None,
    priority: int | None = None,
    needs: Iterable[int] = (),
    needs_no_more: Iterable[int] = (),
    reopen: bool = False,
    first: Callable[[], object] | None = None,
) -> LedgerItem | Denied:
    """Other words, another priority, other needs; or open again. Raises UsageError where needs would form a circle."""
    with store.transaction():
        now = _begun(clock, first)
        item = item_of(store, by.project, number)
        if title is not None:
            item = item.replace(title=one_line(title) or item.title)
        if priority is not None:
            item = item.replace(priority=_priority(priority))
        gone = set(needs_no_more)
        wanted = tuple(dict.fromkeys([*(one for one in item.needs if one not in gone), *needs]))
        if wanted != item.needs:
            item = item.replace(needs=_needs(store, by.project, wanted))
            _refuse_circle(store, item)
        if reopen:
            item = _turned(item, "open", now).replace(verified_at=None, done_by="", failure="", assigned="")
        return _written(store, by, item, clock) or item


# --- what an act stands on ------------------------------------------------------------------------


def _begun(clock: Callable[[], Instant], first: Callable[[], object] | None) -> Instant:
    """The time inside the transaction, after what the caller does first (taking over what hooks left)."""
    if first is not None:
        first()
    return clock()


def _turned(item: LedgerItem, state: ItemState, now: Instant) -> LedgerItem:
    """The item in a state; if that is another one, `was` and `changed_at` tell of it."""
    cleared = item.replace(state=state, waits_on="", why="")
    return cleared if state == item.state else cleared.replace(was=item.state, changed_at=now)


def _unfinished(item: LedgerItem) -> LedgerItem:
    if item.state in rules.OVER:
        raise UsageError(
            f'{item.id} "{item.title}" is {item.state} already',
            kept="Nothing was changed",
            do=f"To take it up again: stopwarden change {item.id} --open",
        )
    return item


def _refuse_unmet(store: Store, item: LedgerItem) -> None:
    states = {}
    for need in item.needs:
        there = store.ledger_item(need)
        if there is not None:
            states[need] = there.state
    unmet = rules.unmet(item, states)
    if unmet:
        raise RefusedError(
            f"{item.id} comes after {', '.join(f'w{need} ({states[need]})' for need in unmet)}",
            kept="Nothing was changed",
            do=f"Do that first, or: stopwarden change {item.id} --not-after w{unmet[0]}",
        )


def _written(
    store: Store, by: Actor, item: LedgerItem, clock: Callable[[], Instant], token: int | None = None
) -> Denied | None:
    """Stores the item, or says which hold refuses that."""
    return reservations.write_fenced(
        store, item.project, item.id, by.session, clock, lambda: store.save_ledger_item(item), token=token
    )


def _refuse_circle(store: Store, item: LedgerItem) -> None:
    known = {one.number: one.needs for one in store.ledger_items(item.project)}
    way = rules.circle(item.number, item.needs, known)
    if way:
        raise UsageError(
            f"{item.id} would wait for itself: {' after '.join(f'w{one}' for one in way)}",
            kept="Nothing was changed",
            do="Leave one of these out",
        )


def _end_hold(store: Store, item: LedgerItem, clock: Callable[[], Instant]) -> str:
    """Ends the hold on a finished item, whoever has it; that session."""
    held = store.reservation(item.project, item.id)
    if held is None or held.released_at is not None:
        return ""
    reservations.release(store, item.project, item.id, held.session, clock, done=True)
    return held.session


def _priority(priority: int) -> int:
    if priority not in rules.PRIORITIES:
        raise UsageError(f"There is no priority {priority}", kept="Nothing was changed", do="Use 0 (first) to 4 (last)")
    return priority


def _needs(store: Store, project: str, needs: Iterable[int]) -> tuple[int, ...]:
    wanted = tuple(dict.fromkeys(needs))
    if len(wanted) > NEEDS_MAX:
        raise UsageError(
            f"{len(wanted)} items to come after are too many", kept="Nothing was changed", do=f"At most {NEEDS_MAX}"
        )
    for need in wanted:
        item_of(store, project, need)
    return wanted
