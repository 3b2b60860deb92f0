"""`stopwarden change`: another priority, other needs, other words for an item of the ledger; or open again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import holds, ledger
from stopwarden.cli.ledger_view import item_json
from stopwarden.core.errors import UsageError
from stopwarden.core.reservations import Denied
from stopwarden.work import ledger as acts
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `change`."""
    parser.add_argument("item", metavar="ITEM", help="an item of the ledger, such as w12")
    parser.add_argument("--priority", type=int, metavar="0..4", help="0 first, 4 last")
    parser.add_argument("--after", action="append", default=[], metavar="w3", help="only once that item is done")
    parser.add_argument("--not-after", action="append", default=[], metavar="w3", help="it need not wait for that one")
    parser.add_argument("--title", metavar="TEXT", help="other words")
    parser.add_argument("--open", action="store_true", help="open again: done, dropped or waiting by mistake")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        "examples:\n  stopwarden change w3 --priority 0\n  stopwarden change w4 --after w3 --not-after w2\n"
        "  stopwarden change w3 --open\n\n"
        "Items of a list are changed in the file.\n"
        "exit codes: 0 changed; 2 wrong words, or items would wait for each other; 3 held by another; "
        "4 it could not be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Changes one item."""
    number = ledger.number_in(args.item)
    if number is None:
        raise UsageError(
            f"{args.item[:40]!r} is no id of the ledger",
            kept="Nothing was changed",
            do="Items of a list: edit the file",
        )
    if args.title is not None and not one_line(args.title):
        raise UsageError("The title has no words", kept="Nothing was changed", do="Name the work in a few words")
    if not (args.priority is not None or args.after or args.not_after or args.title or args.open):
        raise UsageError("Nothing to change was named", do="See: stopwarden change --help")
    needs, needs_no_more = ledger.numbers_in(args.after), ledger.numbers_in(args.not_after)
    with ledger.opened(context) as (store, by):
        told = acts.change(
            store,
            by,
            number,
            context.now,
            title=args.title,
            priority=args.priority,
            needs=needs,
            needs_no_more=needs_no_more,
            reopen=args.open,
            first=lambda: holds.hear(store, context),
        )
        if isinstance(told, Denied):
            raise ledger.refusal(told, acts.item_of(store, by.project, number), args, context, store)
    if args.json:
        context.say(json.dumps(item_json(told)))
        return 0
    after = f", after {', '.join(f'w{need}' for need in told.needs)}" if told.needs else ""
    context.say(f"Changed: {ledger.words(told)}, {told.state}, priority {told.priority}{after}")
    return 0
