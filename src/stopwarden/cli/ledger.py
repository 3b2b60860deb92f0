"""What the commands on items share: who acts, which item is meant, why an act was refused.

An id such as `w12` means the ledger of this project, one such as `gh-42` what another tracker
said; every other word means the lists (`cli.lists`). With `--list` all words do. Inside a session
(the agent program says so in the environment) the session acts and its holds count; else it is
the person.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

from stopwarden.cli import hold_words, holds
from stopwarden.cli.holds import Target
from stopwarden.core.errors import StopwardenError, UsageError
from stopwarden.report.reading import plain
from stopwarden.work import checkout, ready, reservations

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Reservation
    from stopwarden.core.reservations import Denied
    from stopwarden.store.port import LedgerItem, Store, TrackedItem
    from stopwarden.work.reservations import Actor


@contextlib.contextmanager
def opened(context: Context) -> Iterator[tuple[Store, Actor]]:
    """The store and who acts. Raises the Store…Error classes."""
    store = context.open_store()
    try:
        yield store, holds.asker(context, store)
    finally:
        store.close()


# --- which item -----------------------------------------------------------------------------------


def ledger_number(args: argparse.Namespace) -> int | None:
    """The ledger item that ITEM names; None where it names something else."""
    return None if args.list else number_in(" ".join(args.item))


def number_in(said: str) -> int | None:
    """The number in an id of the ledger such as "w12"."""
    return ready.ledger_number(said.strip().lower())


def numbers_in(said: Iterable[str]) -> list[int]:
    """The numbers of `--after w3 --after w4,w5`. Raises UsageError for a word that is no id of the ledger."""
    found = []
    for word in (part for words in said for part in words.replace(",", " ").split()):
        number = number_in(word)
        if number is None:
            raise UsageError(
                f"{plain(word, 40)!r} is no id of the ledger", kept="Nothing was changed", do="Name one such as w3"
            )
        found.append(number)
    return found


def tracked_meant(context: Context, args: argparse.Namespace) -> TrackedItem | None:
    """The item of another tracker that ITEM names; None where it names something else."""
    said = " ".join(args.item).strip()
    if args.list or "-" not in said or " " in said or not database_there(context):
        return None
    with opened(context) as (store, by):
        return next((one for one in store.tracked_items(by.project) if one.id.lower() == said.lower()), None)


def database_there(context: Context) -> bool:
    """Whether anything was ever stored: looking alone makes no database."""
    from stopwarden.store import place

    return os.path.exists(f"{context.state_dir}/{place.DATABASE}")


def words(item: LedgerItem) -> str:
    """How to call it in a sentence."""
    return f'{item.id} "{plain(item.title, 80)}"'


def verify_root(context: Context, by: Actor) -> str:
    """Where a verify command runs: the checkout one is in if it is of the project, else the session's."""
    here = checkout.find_root(context.cwd)
    return here if checkout.project_key(here) == by.project else by.root


# --- holds ------------------------------------------------------------------------------------------


def refusal(
    denied: Denied,
    item: LedgerItem | TrackedItem | Target,
    args: argparse.Namespace,
    context: Context,
    store: Store,
) -> StopwardenError:
    """The error for an act that a hold refuses: who, until when, what to do. With `--json` that is printed, too."""
    of = item if isinstance(item, Target) else _target(item)
    if args.json:
        by = holds.asker(context, store)
        context.say(json.dumps(hold_words.denied_json(denied, of, by, store, context)))
    return hold_words.refusal(denied, of, store, context)


def _target(item: LedgerItem | TrackedItem) -> Target:
    return Target(item=item.id, place=item.project, project=item.project, title=item.title)


def held_by(held: Reservation, context: Context, store: Store, by: Actor) -> str:
    """`held by this session until 23:40`."""
    who = "this session" if held.session and held.session == by.session else None
    who = who or hold_words.holders(store, [held])[held.session]
    end = "" if held.expires_at is None else f" until {hold_words.at(held.expires_at, context)}"
    return f"held by {who}{end}"


def settle(store: Store, context: Context, sessions: Sequence[str]) -> None:
    """Takes away the signs of sessions that hold nothing any more."""
    for session in sessions:
        if session:
            reservations.settle_sign(store, context.state_dir, session)
