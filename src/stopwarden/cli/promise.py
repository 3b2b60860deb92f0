"""`stopwarden promise`: notes on the list what is to be done once something holds, and by when otherwise.

A promise without a fallback time is refused: nobody could ever say that it was not kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import timed, times
from stopwarden.core.errors import UsageError
from stopwarden.report.moments import moment
from stopwarden.report.values import utc
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `promise`."""
    from stopwarden.cli.lists import add_list_option

    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help='what is promised, for instance "merge once CI is green"'
    )
    parser.add_argument(
        "--by", metavar="TIME", help="when it is to be settled at the latest: 02:00, tomorrow 02:00, 2h"
    )
    parser.add_argument(
        "--kept", metavar="TIME_OR_WORDS", help="that promise was kept: its time, or the beginning of its words"
    )
    add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.description = (
        "Notes a promise on the list, with the time by when it is settled otherwise. It is shown and reported when\n"
        "it is overdue; it wakes nobody and changes no verdict. Without --by it is refused."
    )
    parser.epilog = (
        'examples:\n  stopwarden promise "merge once CI is green" --by 02:00\n  stopwarden promise --kept 02:00\n\n'
        "exit codes: 0 noted; 2 no time by when, no words, no list here, or nothing is meant; "
        "4 the list cannot be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Writes the line, or ticks one."""
    if args.kept is not None:
        one = timed.handle(context, args.list, "promise", args.kept)
        if args.json:
            context.say(json.dumps(timed.as_json(one, context.now())))
        else:
            context.say(f"Kept: {timed.words(one, context.zone, context.now())} ({one.source}:{one.line})")
        return 0
    text = one_line(" ".join(args.text))
    if not text:
        raise UsageError("There is nothing promised", kept="Nothing was written", do="Say it in a few words")
    at = times.parse_until(args.by.split(), context.now(), context.zone).at if args.by else None
    if at is None:
        raise UsageError(
            "A promise needs a time by when it is settled otherwise",
            kept="Nothing was written",
            do='For instance: stopwarden promise "merge once CI is green" --by 02:00',
        )
    written = timed.write(context, args.list, "promise", at, text)
    if args.json:
        context.say(json.dumps({"at": utc(at), "text": text, "path": written.path, "line": written.line}))
        return 0
    context.say(f"Promise by {moment(at, context.zone, context.now())} noted in {written.name}, line {written.line}.")
    context.say("It is shown and reported; it wakes nobody.")
    return 0
