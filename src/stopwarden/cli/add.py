"""`stopwarden add`: puts an item on the list, in the list's own style, or into the ledger."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import ledger, lists
from stopwarden.core.errors import UsageError
from stopwarden.core.ledger import PRIORITY_DEFAULT
from stopwarden.work import edits, files, gather
from stopwarden.work import ledger as acts
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `add`."""
    parser.add_argument("title", nargs="+", metavar="TITLE", help="what to do, in one line")
    lists.add_list_option(parser)
    parser.add_argument("--ledger", action="store_true", help="into the ledger of this project; the rest below too")
    parser.add_argument("--priority", type=int, metavar="0..4", help="0 first, 4 last; without it 2")
    parser.add_argument("--after", action="append", default=[], metavar="w3", help="only once that item is done")
    parser.add_argument("--verify", default="", metavar="CMD", help="done only when this shell command passes")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        "examples:\n  stopwarden add write the lexer tests\n"
        '  stopwarden add "update the docs" --list TODO.md\n'
        '  stopwarden add "write the lexer" --ledger --priority 1\n'
        '  stopwarden add "write the parser" --after w1 --verify "pytest -q tests/test_parser.py"\n\n'
        "A list that is not there yet is begun with --list. The ledger holds work of the whole project, in every\n"
        "worktree, by priority, then age. The verify command is run by `stopwarden done` and by nothing else.\n"
        "exit codes: 0 added; 2 no list here, or no words; 4 the list or the ledger cannot be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Adds the item after the last unfinished one of the list, or to the ledger."""
    title = one_line(" ".join(args.title))
    if not title:
        raise UsageError("There is no title to add", kept="Nothing was changed", do="Name the work in a few words")
    if args.ledger or args.priority is not None or args.after or args.verify:
        return _to_ledger(args, context, title)
    meant = lists.lists_meant(context, args.list, adding=True)
    if len(meant.paths) > 1 and not meant.period_lists:
        names = ", ".join(gather.name_of(path, meant.root) for path in meant.paths)
        raise UsageError(f"Several lists may be meant: {names}", kept="Nothing was changed", do="Say which with --list")
    one = meant.lists[0]
    lists.begin(meant, one.path, context, named=bool(args.list))
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


def _to_ledger(args: argparse.Namespace, context: Context, title: str) -> int:
    if args.list:
        raise UsageError(
            "--list names a list, and --ledger, --priority, --after and --verify mean the ledger",
            kept="Nothing was changed",
            do="Leave one of them out",
        )
    needs = ledger.numbers_in(args.after)
    with ledger.opened(context) as (store, by):
        item = acts.add(
            store,
            by.project,
            title,
            context.now,
            session=by.session,
            priority=PRIORITY_DEFAULT if args.priority is None else args.priority,
            needs=needs,
            verify=args.verify,
        )
    if args.json:
        context.say(json.dumps({"id": item.id, "title": item.title, "priority": item.priority, "verify": item.verify}))
        return 0
    after = f", after {', '.join(f'w{need}' for need in item.needs)}" if item.needs else ""
    context.say(f"Added {ledger.words(item)} to the ledger, priority {item.priority}{after}.")
    if item.verify:
        context.say(f"It is done when this passes: {one_line(item.verify)}")
    return 0
