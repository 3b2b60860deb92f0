"""`stopwarden drop`: an item that will not be done. Only the person's, since it takes work away from the agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import fenced, holds, ledger, lists
from stopwarden.cli.done import ITEM_HELP
from stopwarden.cli.ledger_view import item_json
from stopwarden.cli.person import only_the_person
from stopwarden.core.reservations import Denied
from stopwarden.work import ledger as acts

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `drop`."""
    parser.add_argument("item", nargs="+", metavar="ITEM", help=ITEM_HELP)
    parser.add_argument("--why", default="", metavar="TEXT", help="why, kept with an item of the ledger")
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        'examples:\n  stopwarden drop w3 --why "done upstream"\n  stopwarden drop write the lexer\n\n'
        "What comes after a dropped item may begin. Undo: stopwarden change w3 --open, or in the file.\n"
        "An agent is refused: it marks an item waiting instead.\n"
        "exit codes: 0 dropped (or it was already); 2 nothing, or more than one thing, is meant, or refused; "
        "4 it cannot be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Drops the one item that is meant."""
    _only_the_person(context)
    number = ledger.ledger_number(args)
    return _on_list(args, context) if number is None else _in_ledger(args, context, number, args.why)


def _only_the_person(context: Context) -> None:
    if not context.inside_agent:
        return
    store = context.open_store()
    try:
        only_the_person(context, store, "drop work")
    finally:
        store.close()


def _on_list(args: argparse.Namespace, context: Context) -> int:
    meant = lists.lists_meant(context, args.list)
    found = lists.item_meant(meant, " ".join(args.item))
    already = found.item.state == "dropped"
    if not already:
        with fenced.writing(args, context, found, ends=True):
            lists.mark_item(found, "dropped")
    one = lists.read_again(found.one)
    if args.json:
        context.say(json.dumps({"id": found.item.id, "title": found.item.title, "path": one.path, "already": already}))
        return 0
    context.say(f"{'Was dropped already' if already else 'Dropped'}: {found.words} ({found.where})")
    context.say(lists.how_it_stands(one))
    return 0


def _in_ledger(args: argparse.Namespace, context: Context, number: int, why: str) -> int:
    with ledger.opened(context) as (store, by):
        before = acts.item_of(store, by.project, number)
        ended = acts.drop(store, by, number, context.now, why, first=lambda: holds.hear(store, context))
        if isinstance(ended, Denied):
            raise ledger.refusal(ended, before, args, context, store)
        ledger.settle(store, context, [ended.released])
    if args.json:
        context.say(json.dumps({**item_json(ended.item), "already": before.state == "dropped"}))
        return 0
    context.say(f"{'Was dropped already' if before.state == 'dropped' else 'Dropped'}: {ledger.words(ended.item)}")
    return 0
