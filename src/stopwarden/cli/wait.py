"""`stopwarden wait`: marks an item as waiting on a person or on something external, with the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import lists
from stopwarden.cli.done import ITEM_HELP
from stopwarden.core.errors import UsageError
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `wait`."""
    parser.add_argument("item", nargs="+", metavar="ITEM", help=ITEM_HELP)
    parser.add_argument(
        "--for",
        dest="whom",
        choices=("person", "external"),
        required=True,
        help="what it waits on: you, or anything else",
    )
    parser.add_argument("--why", default="", metavar="TEXT", help="why it cannot be done now (an agent must say)")
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        'examples:\n  stopwarden wait a3f --for person --why "which database?"\n'
        '  stopwarden wait deploy --for external --why "the build is running"\n\n'
        "An item that waits is listed, not worked on. Undo: stopwarden done, or take the words in brackets "
        "out of its line.\n"
        "exit codes: 0 marked; 2 nothing, or more than one thing, is meant; 4 the list cannot be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Marks the one item that is meant."""
    why = one_line(args.why)
    if context.inside_agent and not why:
        raise UsageError(
            "An agent that marks an item waiting says why", kept="Nothing was changed", do="Add --why TEXT"
        )
    meant = lists.lists_meant(context, args.list)
    found = lists.item_meant(meant, " ".join(args.item))
    if found.item.state == "done":
        raise UsageError(
            f"{found.words} is done already ({found.where})", kept="Nothing was changed", do="Open it in the file first"
        )
    lists.mark_item(found, "waiting", args.whom, why)
    one = lists.read_again(found.one)
    if args.json:
        context.say(
            json.dumps(
                {"id": found.item.id, "title": found.item.title, "path": one.path, "waits_on": args.whom, "why": why}
            )
        )
        return 0
    whom = "you" if args.whom == "person" else "something external"
    context.say(f"Waits for {whom}: {found.words} ({found.where})")
    context.say(lists.how_it_stands(one))
    return 0
