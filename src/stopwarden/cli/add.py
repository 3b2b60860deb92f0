"""`stopwarden add`: puts an item on the list, in the list's own style."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from stopwarden.cli import lists
from stopwarden.core.errors import ListError, UsageError
from stopwarden.work import checkout, edits, files, gather
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `add`."""
    parser.add_argument("title", nargs="+", metavar="TITLE", help="what to do, in one line")
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        "examples:\n  stopwarden add write the lexer tests\n"
        '  stopwarden add "update the docs" --list TODO.md\n\n'
        "A list that is not there yet is begun with --list.\n"
        "exit codes: 0 added; 2 no list here, or no words; 4 the list cannot be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Adds the item after the last unfinished one."""
    title = one_line(" ".join(args.title))
    if not title:
        raise UsageError("There is no title to add", kept="Nothing was changed", do="Name the work in a few words")
    meant = lists.lists_meant(context, args.list, adding=True)
    if len(meant.paths) > 1 and not meant.period_lists:
        names = ", ".join(gather.name_of(path, meant.root) for path in meant.paths)
        raise UsageError(f"Several lists may be meant: {names}", kept="Nothing was changed", do="Say which with --list")
    one = meant.lists[0]
    _begin(meant, one.path, context, named=bool(args.list))
    line = 0

    def change(text: str) -> str:
        nonlocal line
        changed, line = edits.append_item(text, title)
        return changed

    files.edit(one.path, change, one.name)
    one = lists.read_again(one)
    item = next((item for item in one.items if item.line == line), None)
    if item is None:  # moved by somebody in the same moment
        item = next(item for item in one.items if item.title == title)
    if args.json:
        context.say(json.dumps({"id": item.id, "title": item.title, "path": one.path, "line": item.line}))
    else:
        context.say(f'Added {item.id} "{item.title}" to {one.name}, line {item.line}.')
        context.say(lists.how_it_stands(one))
    return 0


def _begin(meant: lists.Meant, path: str, context: Context, *, named: bool) -> None:
    """Makes the list where there is none yet: the one named, or the session's own."""
    if os.path.lexists(path):
        return
    session = context.env.get("CLAUDE_CODE_SESSION_ID", "")
    if session and path == checkout.own_list_path(meant.root, session):
        checkout.make_own_list(meant.root, session)
    elif named:
        files.create(path, "# To do\n", gather.name_of(path, meant.root))
    else:
        raise ListError(f"{path} (it is not there)", kept="Nothing was changed", do="Name another one with --list")
