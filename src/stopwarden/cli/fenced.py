"""Editing one item of a list under the rules of holds.

A list is a file, holds are in the database. So the database's transaction is held around the edit
of the file: nobody can take the item in between, and a session that lost it, or slept past its
lease, writes nothing. Where nothing was ever stored there is no hold and no database is made for it.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from stopwarden.cli import holds, ledger, lists
from stopwarden.core import leases
from stopwarden.core.errors import RefusedError, StopwardenError, StoreBusyError, StoreUnwritableError
from stopwarden.core.reservations import Denied
from stopwarden.work import checkout, reservations

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from stopwarden.cli.context import Context
    from stopwarden.cli.lists import Found
    from stopwarden.core.events import Reservation
    from stopwarden.store.port import Store


@contextlib.contextmanager
def writing(
    args: argparse.Namespace, context: Context, found: Found, *, token: int | None = None, ends: bool = False
) -> Iterator[None]:
    """Holds the fence while the item is edited; with `ends` whatever hold is on it ends by that.

    Raises HeldError or RefusedError before anything is written, and the Store…Error classes.
    """
    store = _store(context, must=token is not None)
    if store is None:
        if token is not None:
            raise RefusedError(f"{found.words} is held by nobody", kept="Nothing was changed", do="Leave --token out")
        yield
        return
    project, place = checkout.place_of_list(found.one.path)
    bare = lists.bare(found.item.id)
    released = ""
    try:
        by = holds.asker(context, store).replace(project=project)
        with (
            _told_apart(found, lambda: not ends or _is_over(store.reservation(place, bare))) as edited,
            store.transaction(),
        ):
            holds.hear(store, context)
            denied = reservations.check_fence(store, place, bare, by.session, context.now(), token)
            if denied is not None:
                raise ledger.refusal(denied, _target(found, project, place), args, context, store)
            yield
            edited.append(True)
            held = store.reservation(place, bare)
            if ends and held is not None and held.released_at is None:
                reservations.release(store, place, bare, held.session, context.now, done=True)
                released = held.session
        ledger.settle(store, context, [released])
    finally:
        store.close()


@contextlib.contextmanager
def beginning(args: argparse.Namespace, context: Context, found: Found, lease: int) -> Iterator[Reservation | None]:
    """Reserves the item for this session while it is edited; the person only sees that nobody else holds it.

    Raises HeldError or RefusedError before anything is written, and the Store…Error classes.
    """
    session = context.session
    store = context.open_store() if session else _store(context, must=False)
    if store is None:
        yield None
        return
    project, place = checkout.place_of_list(found.one.path)
    bare = lists.bare(found.item.id)
    try:
        by = holds.asker(context, store).replace(project=project)
        target = _target(found, project, place)
        nonce = os.urandom(16).hex()
        with _told_apart(found, lambda: _is_of(store.reservation(place, bare), nonce)) as edited, store.transaction():
            holds.hear(store, context)
            held = store.reservation(place, bare)
            if session:
                ask = by.claim(bare, found.item.title, lease, nonce, place=place)
                granted = reservations.reserve(store, ask, context.now, state_dir=context.state_dir)
                if isinstance(granted, Denied):
                    raise ledger.refusal(granted, target, args, context, store)
                lists.keep_ids(store, found)
                yield granted.row
                edited.append(True)
            elif held is not None and held.session and leases.is_live(held, context.now()):
                denied = Denied(why="held", by=(held,), until=held.expires_at)
                raise ledger.refusal(denied, target, args, context, store)
            else:
                yield None
    finally:
        try:
            ledger.settle(store, context, [session])
        finally:
            store.close()


@contextlib.contextmanager
def _told_apart(found: Found, stored: Callable[[], bool]) -> Iterator[list[bool]]:
    """A database that fails once the file is written: `stored` tells whether its part is there all the same.

    If not, the list is changed and the hold may not be, and that is said. What is entered into the
    list that this gives says that the file is written.
    """
    edited: list[bool] = []
    try:
        yield edited
    except (StoreUnwritableError, StoreBusyError) as failed:
        if not edited:
            raise
        with contextlib.suppress(StopwardenError):
            if stored():
                return
        raise StoreUnwritableError(
            f"{found.words} was changed in {found.one.name}, but the hold on it may not be ({failed.happened})",
            kept="The list is as it was to be",
            do="See who holds it: stopwarden peers",
        ) from failed


def _is_over(held: Reservation | None) -> bool:
    return held is None or held.released_at is not None


def _is_of(held: Reservation | None, nonce: str) -> bool:
    return held is not None and held.nonce == nonce


def _target(found: Found, project: str, place: str) -> holds.Target:
    return holds.Target(item=lists.bare(found.item.id), place=place, project=project, title=found.item.title)


def _store(context: Context, *, must: bool) -> Store | None:
    """The store if there is one. The person goes on without one that is broken; a session must not."""
    try:
        return context.open_store() if ledger.database_there(context) else None
    except StopwardenError as error:
        if must or context.session:
            raise
        context.warn(f"stopwarden: {error} The list is changed without what is stored about it.")
        return None
