"""`stopwarden look`: notes on the list when to look again; on a host without wakes a session declares its next look.

The line is shown and reported. It is no wake and changes no verdict, except where a session's own
program reports no wakes at all: there the look that the session declares may count, while somebody
keeps it (see `hook.declared`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import timed, times
from stopwarden.core.errors import UsageError
from stopwarden.hook import declared
from stopwarden.report.moments import moment
from stopwarden.report.values import utc
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Instant


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `look`."""
    from stopwarden.cli.lists import add_list_option

    parser.add_argument("why", nargs="*", metavar="WHY", help="what to look at, in one line")
    parser.add_argument("--at", metavar="TIME", help="when: 23:30, tomorrow 02:00, 2h")
    parser.add_argument(
        "--looked", metavar="TIME_OR_WORDS", help="that look was made: its time, or the beginning of its words"
    )
    add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.description = (
        "Notes on the list when to look again. It is shown and reported, and wakes nobody. Where an agent program\n"
        "reports no wakes of its own, the look that a session declares so counts as its wake while it will be kept:\n"
        "by its keeper, or by a running `stopwarden watch` with a proven resume command."
    )
    parser.epilog = (
        "examples:\n  stopwarden look --at 23:30 see whether the build passed\n  stopwarden look --at 2h\n"
        "  stopwarden look --looked 23:30\n\n"
        "exit codes: 0 noted; 2 no time, no list here, or nothing is meant; 4 the list cannot be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Writes the line, or ticks one; a session's declaration is stored besides."""
    if args.looked is not None:
        one = timed.handle(context, args.list, "look", args.looked)
        if args.json:
            context.say(json.dumps(timed.as_json(one, context.now())))
        else:
            context.say(f"Looked: {timed.words(one, context.zone, context.now())} ({one.source}:{one.line})")
        return 0
    if not args.at:
        raise UsageError(
            "A look needs a time", kept="Nothing was written", do="For instance: stopwarden look --at 23:30"
        )
    at = times.parse_until(args.at.split(), context.now(), context.zone).at
    if at is None:
        raise UsageError(
            "A look needs a time", kept="Nothing was written", do="For instance: stopwarden look --at 23:30"
        )
    written = timed.write(context, args.list, "look", at, one_line(" ".join(args.why)))
    session = context.session
    told = _declare(context, session, at) if session else None
    if args.json:
        counts = None if told is None else told.counts
        context.say(json.dumps({"at": utc(at), "path": written.path, "line": written.line, "counts_as_wake": counts}))
        return 0
    context.say(f"Look at {moment(at, context.zone, context.now())} noted in {written.name}, line {written.line}.")
    if told is None:
        context.say("It is shown and reported; it wakes nobody.")
    elif told.counts:
        context.say("It will be kept, so it counts as a wake if it comes early enough.")
    else:
        context.say(f"It is no wake: {told.why}.")
    return 0


def _declare(context: Context, session: str, at: Instant) -> declared.Declared:
    """Stores the session's declaration. What it is worth."""
    store = context.open_store()
    try:
        store.save_fact(declared.LOOK, session, str(at))
        row = store.session(session)
        if row is None:
            return declared.Declared(at=at, why="nothing was heard of this session yet")
        if row.last_verdict and not store.fact("no_wakes_said", session):
            why = "this program reports its own wakes, and those are what counts: schedule one with its own tool"
            return declared.Declared(at=at, why=why)
        told = declared.declared(store, session, row.host, context.now())
        return told if told is not None else declared.Declared(at=at, why="it could not be stored")
    finally:
        store.close()
