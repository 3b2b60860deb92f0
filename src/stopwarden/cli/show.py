"""`stopwarden show`: everything known of one item, wherever it stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import ledger, ledger_view, lists
from stopwarden.cli.done import ITEM_HELP
from stopwarden.cli.list import BOXES
from stopwarden.report.reading import plain
from stopwarden.work import checkout
from stopwarden.work import ledger as acts

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Reservation
    from stopwarden.store.port import TrackedItem


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `show`."""
    parser.add_argument("item", nargs="+", metavar="ITEM", help=f"{ITEM_HELP}; or gh-42 of another tracker")
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        "examples:\n  stopwarden show w3\n  stopwarden show write the lexer\n  stopwarden show gh-42\n\n"
        "exit codes: 0 shown; 2 nothing, or more than one thing, is meant; 4 it cannot be read"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Shows the one item that is meant."""
    number = ledger.ledger_number(args)
    if number is not None:
        return _in_ledger(args, context, number)
    tracked = ledger.tracked_meant(context, args)
    if tracked is not None:
        return _tracked(args, context, tracked)
    return _on_list(args, context)


def _in_ledger(args: argparse.Namespace, context: Context, number: int) -> int:
    with ledger.opened(context) as (store, by):
        item = acts.item_of(store, by.project, number)
        seen = ledger_view.view(store, by, context.now())
        if args.json:
            context.say(json.dumps(ledger_view.as_json(item, seen)))
        else:
            ledger_view.say_item(context, item, seen, store, by)
    return 0


def _tracked(args: argparse.Namespace, context: Context, item: TrackedItem) -> int:
    with ledger.opened(context) as (store, by):
        seen = ledger_view.view(store, by, context.now())
        if args.json:
            context.say(json.dumps(ledger_view.tracked_json(item, seen)))
        else:
            ledger_view.say_tracked(context, item, seen, store, by)
    return 0


def _on_list(args: argparse.Namespace, context: Context) -> int:
    meant = lists.lists_meant(context, args.list)
    found = lists.item_meant(meant, " ".join(args.item))
    item, held = found.item, None
    _, place = checkout.place_of_list(found.one.path)
    if not ledger.database_there(context):
        _say(args, context, found, None)
        return 0
    with ledger.opened(context) as (store, by):
        held = store.reservation(place, lists.bare(item.id))
        live = held is not None and held.released_at is None
        who = ledger.held_by(held, context, store, by).removeprefix("held ") if live and held is not None else ""
        _say(args, context, found, held if live else None, who)
        if not args.json:
            ledger_view.say_lines(context, store, item.id, 0)
    return 0


def _say(
    args: argparse.Namespace,
    context: Context,
    found: lists.Found,
    held: Reservation | None,
    who: str = "",
) -> None:
    item = found.item
    if args.json:
        told = {
            "id": item.id,
            "title": item.title,
            "state": item.state,
            "waits_on": item.waits_on,
            "why": item.why,
            "path": found.one.path,
            "line": item.line,
            "verified": item.verified,
            "held": None if held is None else ledger_view.hold_json(held),
        }
        context.say(json.dumps(told))
        return
    context.say(f"{BOXES[item.state]} {item.id}  {plain(item.title, 200)}")
    said = lists.state_words(item)
    context.say(f"  where     {found.where}")
    context.say(f"  state     {said or item.state}")
    if who:
        context.say(f"  held      {who}")
