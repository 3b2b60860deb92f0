"""`stopwarden start`: begins an item, and reserves it for the session that begins it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from stopwarden.cli import fenced, holds, ledger, lists
from stopwarden.cli.done import ITEM_HELP
from stopwarden.cli.ledger_view import hold_json, item_json
from stopwarden.cli.reserve import lease_said
from stopwarden.core.bounds import LEASE_DEFAULT
from stopwarden.core.errors import UsageError
from stopwarden.core.reservations import Denied
from stopwarden.report.moments import moment
from stopwarden.work import ledger as acts
from stopwarden.work import reservations

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Reservation
    from stopwarden.store.port import TrackedItem


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `start`."""
    parser.add_argument("item", nargs="+", metavar="ITEM", help=ITEM_HELP)
    parser.add_argument(
        "--lease", metavar="2h", help="how long the session holds it unless it renews (1m to 24h; without it 2h)"
    )
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        "examples:\n  stopwarden start w3\n  stopwarden start w3 --lease 30m\n  stopwarden start write the lexer\n\n"
        "Inside a session it is reserved for that session, in the same step; its tool calls renew the hold.\n"
        "You, at a terminal, reserve nothing by it.\n"
        "exit codes: 0 begun; 2 wrong words, over already, or another comes first; 3 held by another; "
        "4 it could not be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Begins the one item that is meant."""
    lease = lease_said(args.lease) if args.lease else LEASE_DEFAULT
    number = ledger.ledger_number(args)
    if number is not None:
        return _in_ledger(args, context, number, lease)
    tracked = ledger.tracked_meant(context, args)
    if tracked is not None:
        return _tracked(args, context, tracked, lease)
    return _on_list(args, context, lease)


def _in_ledger(args: argparse.Namespace, context: Context, number: int, lease: int) -> int:
    with ledger.opened(context) as (store, by):
        started = acts.start(
            store,
            by,
            number,
            context.now,
            lease=lease,
            nonce=os.urandom(16).hex() if by.session else "",
            state_dir=context.state_dir,
            first=lambda: holds.hear(store, context),
        )
        if isinstance(started, Denied):
            raise ledger.refusal(started, acts.item_of(store, by.project, number), args, context, store)
    if args.json:
        held = None if started.held is None else hold_json(started.held)
        context.say(json.dumps({**item_json(started.item), "held": held}))
        return 0
    context.say(f"Begun: {ledger.words(started.item)}")
    _say_hold(context, started.held, started.item.id)
    if started.item.verify:
        context.say(f"It is done when this passes: {started.item.verify}")
    return 0


def _on_list(args: argparse.Namespace, context: Context, lease: int) -> int:
    meant = lists.lists_meant(context, args.list)
    found = lists.item_meant(meant, " ".join(args.item))
    if found.item.state in ("done", "dropped"):
        raise UsageError(
            f"{found.words} is {found.item.state} already ({found.where})",
            kept="Nothing was changed",
            do="Open it in the file first",
        )
    with fenced.beginning(args, context, found, lease) as held:
        lists.mark_item(found, "doing")
    one = lists.read_again(found.one)
    if args.json:
        told = {"id": found.item.id, "title": found.item.title, "path": one.path, "state": "doing"}
        context.say(json.dumps({**told, "held": None if held is None else hold_json(held)}))
        return 0
    context.say(f"Begun: {found.words} ({found.where})")
    _say_hold(context, held, found.item.id)
    context.say(lists.how_it_stands(one))
    return 0


def _tracked(args: argparse.Namespace, context: Context, item: TrackedItem, lease: int) -> int:
    """Reserves it; the tracker itself is never written."""
    with ledger.opened(context) as (store, by):
        if not by.session:
            raise UsageError(
                f"{item.id} is kept by {item.tracker}, which is only read here",
                kept="Nothing was changed",
                do=f"Begin it there; to keep sessions off it: stopwarden reserve {item.id}",
            )
        ask = by.claim(item.id, item.title, lease, os.urandom(16).hex())
        granted = reservations.reserve(
            store, ask, context.now, state_dir=context.state_dir, first=lambda: holds.hear(store, context)
        )
        if isinstance(granted, Denied):
            raise ledger.refusal(granted, item, args, context, store)
    if args.json:
        told = {"id": item.id, "title": item.title, "tracker": item.tracker, "held": hold_json(granted.row)}
        context.say(json.dumps(told))
        return 0
    context.say(f'Reserved: {item.id} "{item.title}"')
    _say_hold(context, granted.row, item.id)
    context.say(f"{item.tracker} itself is not changed: tell it there, where you may.")
    return 0


def _say_hold(context: Context, held: Reservation | None, known: str) -> None:
    if held is not None and held.expires_at is not None:
        end = moment(held.expires_at, context.zone, context.now())
        context.say(
            f"Held for this session until {end} {context.zone.name}, token {held.token}; tool calls renew it. "
            f"When it is finished: stopwarden done {known}"
        )
