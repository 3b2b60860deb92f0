"""`stopwarden wait`: marks an item as waiting on a person, another session or something external, with the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import fenced, holds, ledger, lists
from stopwarden.cli.done import ITEM_HELP
from stopwarden.cli.ledger_view import item_json
from stopwarden.core.errors import UsageError
from stopwarden.core.reservations import Denied
from stopwarden.work import ledger as acts
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context

WHOM = {"person": "you", "external": "something external", "session": "another session"}


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `wait`."""
    parser.add_argument("item", nargs="+", metavar="ITEM", help=ITEM_HELP)
    parser.add_argument(
        "--for",
        dest="whom",
        choices=tuple(WHOM),
        required=True,
        help="what it waits on: you, another session, or anything else",
    )
    parser.add_argument("--why", default="", metavar="TEXT", help="why it cannot be done now (an agent must say)")
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        'examples:\n  stopwarden wait a3f --for person --why "which database?"\n'
        '  stopwarden wait deploy --for external --why "the build is running"\n'
        '  stopwarden wait w3 --for session --why "the schema comes from the other one"\n\n'
        "An item that waits is listed, not worked on. Undo: stopwarden start, stopwarden done, or take the words in\n"
        "brackets out of its line.\n"
        "exit codes: 0 marked; 2 nothing, or more than one thing, is meant; 3 held by another; "
        "4 it cannot be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Marks the one item that is meant."""
    why = one_line(args.why)
    if context.inside_agent and not why:
        raise UsageError(
            "An agent that marks an item waiting says why", kept="Nothing was changed", do="Add --why TEXT"
        )
    number = ledger.ledger_number(args)
    return _on_list(args, context, why) if number is None else _in_ledger(args, context, number, why)


def _on_list(args: argparse.Namespace, context: Context, why: str) -> int:
    meant = lists.lists_meant(context, args.list)
    found = lists.item_meant(meant, " ".join(args.item))
    if found.item.state == "done":
        raise UsageError(
            f"{found.words} is done already ({found.where})", kept="Nothing was changed", do="Open it in the file first"
        )
    with fenced.writing(args, context, found):
        lists.mark_item(found, "waiting", args.whom, why)
    one = lists.read_again(found.one)
    if args.json:
        context.say(
            json.dumps(
                {"id": found.item.id, "title": found.item.title, "path": one.path, "waits_on": args.whom, "why": why}
            )
        )
        return 0
    context.say(f"Waits for {WHOM[args.whom]}: {found.words} ({found.where})")
    context.say(lists.how_it_stands(one))
    return 0


def _in_ledger(args: argparse.Namespace, context: Context, number: int, why: str) -> int:
    with ledger.opened(context) as (store, by):
        told = acts.wait(store, by, number, context.now, args.whom, why, first=lambda: holds.hear(store, context))
        if isinstance(told, Denied):
            raise ledger.refusal(told, acts.item_of(store, by.project, number), args, context, store)
    if args.json:
        context.say(json.dumps(item_json(told)))
        return 0
    context.say(f"Waits for {WHOM[args.whom]}: {ledger.words(told)}")
    return 0
