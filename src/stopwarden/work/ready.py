"""What a session may owe beside its lists, and what it may take: holds, begun items, the ready queue.

Theory of operation. Everything is read from the local database: the ledger of the session's
project, the holds in it, and what other trackers said when they were last read (no hook ever asks
one). A hold speaks of an item by place and id; here it gets the id by which this session knows
the item, so that the judge compares ids alone.

The ready queue begins with what an ended or stalled session of this copy left undone; then come
open items of the ledger and of the trackers, by priority, then age. Holds of sessions that are
known to have ended keep nobody from anything and set no deadline.

On the hook's path. May not live here: what of it is owed or offered (`core.owed`, `core.away`).
"""

from __future__ import annotations

from stopwarden.core import leases
from stopwarden.core.bounds import READY_SHOWN
from stopwarden.core.events import Item
from stopwarden.core.record import Record
from stopwarden.core.reservations import is_taken
from stopwarden.work import checkout
from stopwarden.work.reservations import gone_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stopwarden.core.events import Instant, ItemState, Reservation
    from stopwarden.store.port import LedgerItem, SessionRow, Store

LEDGER = "ledger"
RESERVED = "reserved"


class OtherWork(Record):
    """What the database says of work beside the lists, seen from one session."""

    items: tuple[Item, ...] = ()  # held, then lapsed, then begun in the ledger
    ready: tuple[Item, ...] = ()
    reservations: tuple[Reservation, ...] = ()  # items named as this session knows them
    own: tuple[tuple[str, Reservation], ...] = ()  # what this session holds, as stored, by that name
    unread: tuple[str, ...] = ()  # trackers that are not known now


def other_work(
    store: Store, row: SessionRow, since: Instant, lists: Mapping[str, Sequence[Item]], now: Instant
) -> OtherWork:
    """Everything beside lists. `lists` are the session's own, items by path; `since` is when the period began.

    A claim that lies in the future, because the clock was set back, is noted as first seen now.
    """
    project = checkout.project_key(row.root) if row.root else ""
    places = {checkout.place_of_list(path): items for path, items in lists.items()}
    known: dict[tuple[str, str], Reservation] = {}
    for one in dict.fromkeys((project, *(of for of, _ in places))):
        for held in (*store.reservations_in(one), *store.reservations_in(one, finished_since=since)):
            known[held.place, held.item] = held
    for held in store.reservations_of(copy=row.copy) if row.copy else ():
        known[held.place, held.item] = held
    items_of = {place: items for (_, place), items in places.items()}
    all_named = [(_dated(store, held, now), _name(held, project, items_of)) for held in known.values()]
    named: list[tuple[Reservation, str]] = []
    left: list[tuple[Reservation, str]] = []
    gone_until: dict[str, Instant] = {}
    for held, name in all_named:
        over = held.terminal or held.released_at is not None
        others = bool(held.session) and held.session != row.id and not over
        if others and held.session not in gone_until:
            gone_until[held.session] = gone_since(store, held.session)
        gone = others and held.claimed_at <= gone_until[held.session]
        if not gone:
            named.append((held, name))
        stalled = others and held.copy == row.copy and not leases.is_live(held, now)
        if (gone or stalled) and held.place not in items_of:  # what stands on a list of its own is owed already
            left.append((held, name))
    mine = [(held, name) for held, name in named if held.session == row.id and held.place not in items_of]
    live = [one for one in mine if leases.is_live(one[0], now)]
    rest = [one for one in mine if not leases.is_live(one[0], now)]
    begun = [_of_ledger(item, since) for item in store.ledger_items_assigned(row.id) if _matters(item, since)]
    held_items = [_held_item(store, held, name, since) for held, name in (*live, *rest)]
    items = (*(item for item in held_items if item is not None), *begun)
    owed = {item.id for item in items}
    return OtherWork(
        items=items,
        ready=_ready(store, project, left, named, owed, row, since, now),
        reservations=tuple(held.replace(item=name) for held, name in named),
        own=tuple((name, held) for held, name in named if held.session == row.id and held.released_at is None),
        unread=tuple(
            f"{tracker.name}: {tracker.why or 'never read yet'}"
            for tracker in store.trackers(project)
            if tracker.failed_at is not None or tracker.read_at is None
        ),
    )


def ledger_number(known: str) -> int | None:
    """The number of a ledger item's id ("w12"), None for any other id."""
    digits = known[1:]
    return int(digits) if known[:1] == "w" and digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def _dated(store: Store, held: Reservation, now: Instant) -> Reservation:
    """The hold, with when a claim from the future was first seen: it is renewed within half its lease from then."""
    if held.claimed_at <= now or held.first_seen is not None or held.released_at is not None:
        return held
    seen = held.replace(first_seen=now)
    store.save_reservation(seen)
    return seen


def _name(held: Reservation, project: str, lists: Mapping[str, Sequence[Item]]) -> str:
    """The id by which this session knows a held item."""
    if held.place in lists:
        ids = [item.id for item in lists[held.place]]
        return next((known for known in ids if known.rpartition(".")[2] == held.item), held.item)
    if held.place == project:
        return held.item
    return f"{held.place.removeprefix(held.project).strip() or held.project}#{held.item}"


def _held_item(store: Store, held: Reservation, name: str, since: Instant) -> Item | None:
    """What a session holds, or held until its lease ran out or the item was done, as an item."""
    number = ledger_number(held.item) if held.place == held.project else None
    item = store.ledger_item(number) if number is not None else None
    if item is not None:
        return _of_ledger(item, since).replace(id=name)
    if held.released_at is not None and not held.terminal:
        return None
    state: ItemState = "done" if held.terminal else "open"
    return Item(id=name, title=held.title or name, state=state, before="open", source=RESERVED)


def _matters(item: LedgerItem, since: Instant) -> bool:
    return item.state in ("open", "doing", "waiting") or item.changed_at >= since


def _of_ledger(item: LedgerItem, since: Instant) -> Item:
    """A ledger item as the judge takes it: `before` is how it stood when the away period began."""
    state: ItemState = item.state  # type: ignore[assignment]
    before: ItemState = (item.was or "open") if item.changed_at >= since else state  # type: ignore[assignment]
    return Item(
        id=item.id,
        title=item.title,
        state=state,
        before=before,
        waits_on=item.waits_on or None,  # type: ignore[arg-type]
        why=item.why,
        source=LEDGER,
        verified=item.verified_at is not None,
    )


def _ready(
    store: Store,
    project: str,
    left: Iterable[tuple[Reservation, str]],
    named: Iterable[tuple[Reservation, str]],
    owed: set[str],
    row: SessionRow,
    since: Instant,
    now: Instant,
) -> tuple[Item, ...]:
    """What this session may take, in order, and between it some of what others hold, to be named."""
    finished = {name for held, name in named if held.terminal}
    taken = {name for held, name in named if held.session != row.id and is_taken(held, now)}
    first = [_held_item(store, held, name, since) for held, name in left]
    queue = [item for item in first if item is not None and item.state in ("open", "doing")]
    if project:
        ledger = store.ready_items(project, READY_SHOWN + len(taken) + len(owed))
        tracked = [item for item in store.tracked_items(project) if item.state == "open" and not item.blocked]
        ordered = [(item.priority, item.created_at, _of_ledger(item, since)) for item in ledger]
        ordered += [
            (item.priority, item.created_at, Item(id=item.id, title=item.title, source=item.tracker))
            for item in tracked
            if item.id not in finished
        ]
        ordered.sort(key=lambda one: one[:2])
        queue += [item for _, _, item in ordered]
    each: dict[str, Item] = {}
    shown = {True: 0, False: 0}
    for item in queue:
        held = item.id in taken
        if item.id not in owed and item.id not in each and shown[held] < READY_SHOWN:
            each[item.id] = item
            shown[held] += 1
    return tuple(each.values())
