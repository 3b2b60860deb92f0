"""`stopwarden done`: ticks an item."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import lists

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.work.gather import ReadList

ITEM_HELP = "its id, the beginning of its text, or its line as :12"


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `done`."""
    parser.add_argument("item", nargs="+", metavar="ITEM", help=ITEM_HELP)
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        "examples:\n  stopwarden done a3f\n  stopwarden done write the lexer\n  stopwarden done :12 --list TODO.md\n\n"
        "exit codes: 0 ticked (or it was already); 2 nothing, or more than one thing, is meant; "
        "4 the list cannot be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Ticks the one item that is meant."""
    meant = lists.lists_meant(context, args.list)
    found = lists.item_meant(meant, " ".join(args.item))
    already = found.item.state == "done"
    if not already:
        lists.mark_item(found, "done")
    one = lists.read_again(found.one)
    if args.json:
        context.say(json.dumps({"id": found.item.id, "title": found.item.title, "path": one.path, "already": already}))
        return 0
    context.say(f"{'Was done already' if already else 'Done'}: {found.words} ({found.where})")
    below = _left_below(one, found.item.line)
    if below:
        context.say(f"Still open below it: {below}")
    context.say(lists.how_it_stands(one))
    return 0


def _left_below(one: ReadList, line: int) -> str:
    """What is unfinished below an item, named."""
    if one.reading is None or line not in one.reading.lines:
        return ""
    reading = one.reading
    inside = {reading.lines.index(line)}
    left = []
    for index, parent in enumerate(reading.parents):
        if parent in inside:
            inside.add(index)
            if reading.states[index] in lists.UNFINISHED:
                left.append(f'"{reading.titles[index]}"')
    return ", ".join(left[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
