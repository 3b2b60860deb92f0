"""`stopwarden list`: the work as it stands, with the ids that the other commands take.

The lists first, then the ledger of this project and what other trackers said.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from stopwarden.cli import ledger, ledger_view, lists, timed
from stopwarden.core.errors import ListError, StopwardenError, UsageError
from stopwarden.report.reading import count, plain

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.cli.ledger_view import View
    from stopwarden.core.events import Item
    from stopwarden.store.port import Store
    from stopwarden.work.gather import ReadList
    from stopwarden.work.reservations import Actor

BOXES = {"open": "[ ]", "doing": "[/]", "done": "[x]", "waiting": "[?]", "dropped": "[-]", "removed": " - "}


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `list`."""
    lists.add_list_option(parser)
    parser.add_argument("--all", action="store_true", help="also what is done, dropped or taken off")
    parser.add_argument("--ready", action="store_true", help="only what is offered next, in that order")
    parser.add_argument("--json", action="store_true", help="the list as one JSON object")
    parser.epilog = (
        "examples:\n  stopwarden list\n  stopwarden list --all --list TODO.md\n  stopwarden list --ready\n\n"
        "In the file: [ ] open, [/] begun, [x] done, [-] dropped, [?] waits for you.\n"
        "--ready: of the ledger and of other trackers, what nobody holds and nothing blocks, by priority, then age.\n"
        "exit codes: 0 shown; 2 no list here; 4 a list cannot be read"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Prints the lists, then the ledger. A list that cannot be read is said last, and is the exit code."""
    if args.ready:
        return _ready(args, context)
    with contextlib.ExitStack() as opened:
        ledger_part = None if args.list else _ledger(context, opened)
        try:
            read = lists.lists_meant(context, args.list).lists
        except UsageError:
            if ledger_part is None or ledger_part[2].empty:
                raise
            read = ()
        if args.json:
            seen = ledger_view.View() if ledger_part is None else ledger_part[2]
            context.say(
                json.dumps(
                    {
                        "lists": [_as_json(one) | timed.json_of(context, one) for one in read],
                        **ledger_view.view_json(seen),
                    }
                )
            )
        else:
            shown = [one for one in read if not one.unread]
            for place, one in enumerate(shown):
                if place:
                    context.say()
                _say(context, one, everything=args.all)
                for line in timed.lines(timed.in_list(context, one), context.zone, context.now()):
                    context.say(f"    {line}")
            if ledger_part is not None and not ledger_part[2].empty:
                if shown:
                    context.say()
                store, by, seen = ledger_part
                ledger_view.say_ledger(context, seen, store, by, everything=args.all)
    unread = [one.unread for one in read if one.unread]
    for source in unread:
        context.warn(f"stopwarden: {source}. What it holds is unknown, so it counts as unfinished work.")
    return ListError.exit_code if unread else 0


def _ready(args: argparse.Namespace, context: Context) -> int:
    if args.list:
        raise UsageError("--ready shows the ledger and other trackers, no list", do="Leave --list out")
    if not ledger.database_there(context):
        context.say(json.dumps({"ready": []}) if args.json else "Nothing is ready.")
        return 0
    with ledger.opened(context) as (store, by):
        seen = ledger_view.view(store, by, context.now())
        if args.json:
            context.say(json.dumps({"ready": [{"id": one.id, "title": one.title} for one in seen.ready]}))
        else:
            ledger_view.say_ready(context, seen)
    return 0


def _ledger(context: Context, opened: contextlib.ExitStack) -> tuple[Store, Actor, View] | None:
    """The ledger's part, if anything was ever stored. What is wrong with the database the lists tell."""
    try:
        if not ledger.database_there(context):
            return None
        store, by = opened.enter_context(ledger.opened(context))
        return store, by, ledger_view.view(store, by, context.now())
    except StopwardenError:
        return None


def _say(context: Context, one: ReadList, *, everything: bool) -> None:
    context.say(lists.how_it_stands(one))
    shown = [item for item in one.items if everything or item.state in lists.UNFINISHED]
    shown.sort(key=lambda item: item.line or 10**9)
    depths, headings = _layout(one)
    columns = max((len(item.id) for item in shown), default=0)
    heading = ""
    for item in shown:
        above = headings.get(item.line, "") if item.line else "Taken off the list"
        if above != heading:
            heading = above
            context.say(f"  {heading}" if heading else "")
        said = lists.state_words(item)
        context.say(
            f"    {BOXES[item.state]} {item.id:<{columns}}  {'  ' * depths.get(item.line, 0)}{plain(item.title)}"
            + (f"   ({said})" if said else "")
        )
    hidden = len(one.items) - len(shown)
    bullets = one.reading.bullets if one.reading else 0
    if not one.items:
        line = (
            f"{count(bullets, 'line begins', 'lines begin')} with a bullet but no box." if bullets else "No item yet."
        )
        context.say(f"  {line} An item is a line such as: - [ ] what to do")
    elif not shown:
        context.say("  Nothing is left to do. --all shows what was.")
    elif hidden:
        context.say(f"  {count(hidden, 'more is', 'more are')} done, dropped or taken off: --all shows them.")


def _layout(one: ReadList) -> tuple[dict[int, int], dict[int, str]]:
    """By line: how deep an item stands, and below which heading."""
    depths: dict[int, int] = {}
    headings: dict[int, str] = {}
    if one.reading is not None:
        for line, parent, heading in zip(one.reading.lines, one.reading.parents, one.reading.headings, strict=True):
            depths[line] = depths[one.reading.lines[parent]] + 1 if parent >= 0 else 0
            headings[line] = heading
    return depths, headings


def _as_json(one: ReadList) -> dict[str, object]:
    return {
        "path": one.path,
        "unread": one.unread or None,
        "items": [_item(item) for item in sorted(one.items, key=lambda item: item.line or 10**9)],
    }


def _item(item: Item) -> dict[str, object]:
    return {
        "id": item.id,
        "title": item.title,
        "state": item.state,
        "waits_on": item.waits_on,
        "why": item.why,
        "line": item.line or None,
        "verified": item.verified,
    }
