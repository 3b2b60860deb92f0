"""All that a session may owe, from every source, in order: lists, holds and the ledger, the host's own todos.

Theory of operation. The lists are those that the person named when they left, shared by all
sessions, else the session's own. Every list has a snapshot in the store, one an away period, by
which its items keep their ids; the newest one of a list is where the next period begins. Ids are
unique across sources: a new item gets none that another source has, and where two were given
alike before they met, the later source's gets a number and a dot before it.

A source that cannot be read is named in `unread` with why: what it holds is unknown. A checkout
that is gone is named in `gone`: what it held cannot be done any more.

May not live here: what of it is owed (`core.owed`), wording.
"""

from __future__ import annotations

import os

from stopwarden.core.bounds import ITEMS_MAX
from stopwarden.core.errors import ListError
from stopwarden.core.record import Record
from stopwarden.work import checkout, files, host_todos, identity, ready
from stopwarden.work.checklist import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopwarden.core.events import AwayPeriod, Instant, Item, Reservation
    from stopwarden.store.port import SessionRow, Store
    from stopwarden.work.checklist import Reading


NOBODY_AWAY = "-"  # in the place of a period's id: a list of which something was reserved between two periods
_SECOND = "second line"  # of a snapshot: kept by itself, it changes seldom


class Gathered(Record):
    """What every source says at one moment."""

    items: tuple[Item, ...] = ()
    unread: tuple[str, ...] = ()  # sources that could not be read: name and why
    checklist: str = ""  # the list to tell the session of
    gone: tuple[str, ...] = ()  # checkouts and lists that are no longer there with their checkout
    dormant: tuple[Item, ...] = ()  # host todos of earlier chains: shown, never owed
    ready: tuple[Item, ...] = ()  # the ready queue
    reservations: tuple[Reservation, ...] = ()  # items named as in `items` and `ready`
    own: tuple[tuple[str, Reservation], ...] = ()  # what this session holds, as stored, by that name
    unread_ready: tuple[str, ...] = ()  # trackers that are not known now
    bulleted: tuple[tuple[str, str, str], ...] = ()  # lists with plain bullets: path, name, whose own ("": shared)


class ReadList(Record):
    """One list with its items, and the snapshot to keep if it is not the stored one."""

    path: str
    name: str
    items: tuple[Item, ...] = ()
    snapshot: str = ""
    stored: str = ""
    unread: str = ""
    reading: Reading | None = None  # None where it was not read


def gather(store: Store, row: SessionRow, period: AwayPeriod | None, env: Mapping[str, str], now: Instant) -> Gathered:
    """Everything the session may owe, snapshots brought up to date. Raises only the Store…Error classes."""
    period_id = period.id if period else ""
    named = period.lists if period else ()
    own = checkout.own_list_path(row.root, row.id) if row.root else ""
    paths = named or ((own,) if own else ())
    gone: list[str] = []
    if row.root and checkout.is_gone(row.root):
        gone = [row.root, *(path for path in named if _is_below(path, row.root))]
        paths = tuple(path for path in named if path not in gone)
    items: list[Item] = []
    unread: list[str] = []
    lists = read_lists(store, paths, period_id, row.root, now=now, own=own)
    for one in lists:
        items += one.items
        if one.unread:
            unread.append(one.unread)
        elif one.snapshot != one.stored:
            keep(store, one, period_id)
    found = {one.path: one.items for one in lists if not one.unread}
    other = ready.other_work(store, row, period.since if period else now, found, now)
    items += other.items
    todos, dormant, unread_todos = _host_todos(store, row, period_id, env, items)
    return Gathered(
        items=(*items, *todos),
        ready=other.ready,
        reservations=other.reservations,
        own=other.own,
        unread_ready=other.unread,
        bulleted=tuple(
            (one.path, one.name, row.id if one.path == own else "")
            for one in lists
            if one.reading is not None and one.reading.bullets
        ),
        unread=(*unread, *unread_todos),
        checklist=paths[0] if paths else own,
        gone=tuple(gone),
        dormant=dormant,
    )


def read_lists(
    store: Store | None,
    paths: tuple[str, ...],
    period_id: str,
    root: str,
    *,
    now: Instant | None = None,
    own: str = "",
) -> list[ReadList]:
    """The lists at those paths, each once, with ids unique across them. Nothing is stored.

    An own list that has never been there is empty; every other list that is not there is unread.
    """
    lists: list[ReadList] = []
    seen: set[str] = set()
    taken: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            continue
        seen.add(real)
        name = name_of(path, root)
        stored, fresh = _stored(store, real, period_id)
        try:
            reading = read(files.read_list(path, name, now=now, follow=path != own).text)
            if len(reading.titles) > ITEMS_MAX:
                raise files.unreadable(name, f"it has more than {ITEMS_MAX:,} items")
        except ListError as error:
            never_made = path == own and not fresh and not os.path.lexists(path)
            lists.append(ReadList(path=path, name=name, unread="" if never_made else error.happened))
            continue
        begun = identity.begin_period(stored, period_id)
        snapshot, items = identity.track(begun, reading, name, taken)
        items = _apart(items, taken, f"{len(lists) + 1}.")
        if len(paths) > 1:
            taken.update([item.id for item in items])
        lists.append(
            ReadList(
                path=path,
                name=name,
                items=items,
                snapshot=snapshot,
                stored=stored if fresh else "",
                reading=reading,
            )
        )
    return lists


def keep(store: Store, one: ReadList, period_id: str) -> None:
    """Stores a list's snapshot, of it only the lines that changed, and that it is the newest of that list."""
    real = os.path.realpath(one.path)
    source = _source(real, period_id)
    stand, _, second = one.snapshot.partition("\n")
    with store.transaction():
        store.save_list_snapshot(source, stand)
        if second != one.stored.partition("\n")[2]:
            store.save_list_snapshot(f"{source} {_SECOND}", second)
        newest = store.list_snapshot(f"newest {real}")
        if newest != period_id:
            store.save_list_snapshot(f"newest {real}", period_id)
            if newest and newest not in [period.id for period in store.open_periods()]:
                for old in (_source(real, newest), f"{_source(real, newest)} {_SECOND}"):
                    store.save_list_snapshot(old, "")  # nobody reads it again


def name_of(path: str, root: str) -> str:
    """What to call a list: its path inside the checkout, else the whole path."""
    return os.path.relpath(path, root) if root and _is_below(path, root) else path


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")


def _source(real: str, period_id: str) -> str:
    return f"list {real} {period_id}"


def _stored(store: Store | None, real: str, period_id: str) -> tuple[str, bool]:
    """The snapshot a list was left with, and whether it is of this very period."""
    if store is None:
        return "", False
    stored = _both_lines(store, _source(real, period_id))
    if stored:
        return stored, True
    newest = store.list_snapshot(f"newest {real}")
    return (_both_lines(store, _source(real, newest)) if newest else ""), False


def _both_lines(store: Store, source: str) -> str:
    stand = store.list_snapshot(source)
    return f"{stand}\n{store.list_snapshot(f'{source} {_SECOND}')}" if stand else ""


def _apart(items: tuple[Item, ...], taken: set[str], prefix: str) -> tuple[Item, ...]:
    """The same items, with a prefix before ids that another source has."""
    if not taken or taken.isdisjoint([item.id for item in items]):
        return items
    return tuple(item.replace(id=prefix + item.id) if item.id in taken else item for item in items)


def _host_todos(
    store: Store, row: SessionRow, period_id: str, env: Mapping[str, str], others: list[Item]
) -> tuple[tuple[Item, ...], tuple[Item, ...], tuple[str, ...]]:
    """The host's todos of this chain, those of earlier ones, and what could not be read."""
    found = host_todos.read_todos(env, row.id, store.host_todos(row.id))
    source = f"todos {row.id} {period_id}"
    stored = store.list_snapshot(source)
    if not found.todos and not stored:
        return (), (), found.unread
    if found.unread_ids or (found.unread and not found.todos):
        found = _as_last_seen(found, stored, row.chain_started_at)
    snapshot, items = identity.track(identity.begin_period(stored, period_id), found.reading(), host_todos.SOURCE)
    if snapshot != stored:
        store.save_list_snapshot(source, snapshot)
    touched = {todo.id: todo.touched for todo in found.todos}
    since = row.chain_started_at
    current = tuple(item for item in items if touched.get(item.id, since) >= since)
    dormant = tuple(item for item in items if touched.get(item.id, since) < since and item.state in ("open", "doing"))
    return _apart(current, {item.id for item in others}, "todo."), dormant, found.unread


def _as_last_seen(found: host_todos.HostTodos, stored: str, touched: Instant) -> host_todos.HostTodos:
    """Todos whose files cannot be read now, as they were: unread is not removed."""
    there = {todo.id for todo in found.todos}
    everything = not found.todos
    kept = [
        host_todos.Todo(id=known, title=title, state=state, touched=touched)
        for known, (title, state) in identity.last_seen(stored).items()
        if known not in there and (everything or known in found.unread_ids)
    ]
    return found.replace(todos=(*found.todos, *kept))
