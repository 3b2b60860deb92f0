"""`stopwarden tracker`: other trackers whose open items are offered, too. They are read, never written."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from stopwarden.cli import ledger
from stopwarden.cli.ledger_view import read_words, tracker_json
from stopwarden.cli.person import only_the_person
from stopwarden.core.errors import UsageError
from stopwarden.work import trackers

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.store.port import Store, Tracker
    from stopwarden.work.reservations import Actor

ACTS = ("add", "list", "read", "remove")


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `tracker`."""
    parser.add_argument("act", choices=ACTS, nargs="?", default="list", help="without it: list")
    parser.add_argument("name", nargs="?", metavar="NAME", help="gh, bd, or a name of yours with --command")
    parser.add_argument(
        "--command", dest="program", metavar="'CMD …'", help="a program that prints its open items, run without a shell"
    )
    parser.add_argument(
        "--label", action="append", default=[], metavar="L", help="gh and bd: only items with this label (all of them)"
    )
    parser.add_argument(
        "--timeout", type=float, default=trackers.LIMIT, metavar="SECONDS", help=f"to read (20; at most {_LONGEST:g})"
    )
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        "examples:\n  stopwarden tracker add gh --label night\n  stopwarden tracker add bd\n"
        "  stopwarden tracker add notes --command './open-notes --json'\n"
        "  stopwarden tracker read\n  stopwarden tracker remove gh\n\n"
        "gh is GitHub's own program, bd that of beads. A program of yours prints a JSON object a line, or one array:\n"
        '  {"id": "7", "title": "write it", "state": "open", "priority": 1, "created": "2026-11-30T21:00:00Z",\n'
        '   "blocked": false}\n'
        "All but id and title may be left out. What cannot be read whole is unknown, never empty.\n"
        "They are read by `tracker read` and when you leave; adding and removing is yours, not an agent's.\n"
        "exit codes: 0 done; 1 a tracker could not be read; 2 wrong words, or refused; 4 our own failure"
    )


_LONGEST = 300.0


def run(args: argparse.Namespace, context: Context) -> int:
    """Adds, lists, reads or removes."""
    if args.act in ("add", "remove") and not args.name:
        raise UsageError(f"Which tracker to {args.act}", kept="Nothing was changed", do="Name one, for instance gh")
    if not 0 < args.timeout <= _LONGEST:
        raise UsageError(f"A time-out of {args.timeout:g} s is not allowed", do=f"Use up to {_LONGEST:g} seconds")
    if args.act in ("list", "read") and not ledger.database_there(context):
        return _say(args, context, [], {})
    with ledger.opened(context) as (store, by):
        if args.act == "add":
            return _add(args, context, store, by)
        if args.act == "remove":
            return _remove(args, context, store, by)
        if args.name and args.name not in [one.name for one in store.trackers(by.project)]:
            raise _unknown(args.name)
        if args.act == "read":
            trackers.read_all(store, context.now(), context.env, project=by.project, name=args.name, limit=args.timeout)
        shown = [one for one in store.trackers(by.project) if args.name in (None, one.name)]
        return _say(args, context, shown, _counts(store, by))


def _add(args: argparse.Namespace, context: Context, store: Store, by: Actor) -> int:
    only_the_person(context, store, "name a program that is run for them")
    try:
        command = shlex.split(args.program) if args.program is not None else []
    except ValueError as error:
        raise UsageError(f"The command cannot be read ({error})", kept="Nothing was changed", do="Mend it") from error
    if args.program is not None and (not command or "\0" in args.program):
        raise UsageError("The command is empty", kept="Nothing was changed", do="Say how it is read: --command 'CMD …'")
    tracker = trackers.new_tracker(by.project, by.root, args.name, command, args.label)
    with store.transaction():
        there = [one for one in store.trackers(by.project) if one.name == args.name]
        if there and (there[0].command, there[0].root) != (tracker.command, tracker.root):
            store.remove_tracker(by.project, args.name)  # what the other command said is not this one's
        if not there or there[0].command != tracker.command or there[0].root != tracker.root:
            store.save_tracker(tracker)
    if not args.json:
        context.say(f"Added {args.name}: {shlex.join(tracker.command)}")
    trackers.read_all(store, context.now(), context.env, project=by.project, name=args.name, limit=args.timeout)
    return _say(args, context, [one for one in store.trackers(by.project) if one.name == args.name], _counts(store, by))


def _remove(args: argparse.Namespace, context: Context, store: Store, by: Actor) -> int:
    only_the_person(context, store, "take a tracker away")
    if not store.remove_tracker(by.project, args.name):
        raise _unknown(args.name)
    context.say(json.dumps({"removed": args.name}) if args.json else f"Removed {args.name}. Nothing in it was changed.")
    return 0


def _unknown(name: str) -> UsageError:
    return UsageError(f"There is no tracker {name[:40]!r} here", do="See: stopwarden tracker list")


def _counts(store: Store, by: Actor) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in store.tracked_items(by.project):
        counts[item.tracker] = counts.get(item.tracker, 0) + 1
    return counts


def _say(args: argparse.Namespace, context: Context, shown: list[Tracker], counts: dict[str, int]) -> int:
    if args.json:
        told = [{**tracker_json(one), "items": counts.get(one.name, 0)} for one in shown]
        context.say(json.dumps({"trackers": told}))
    elif not shown:
        context.say("No other tracker is read here. Add one: stopwarden tracker add gh")
    else:
        for one in shown:
            context.say(f"{one.name}: {read_words(one, counts.get(one.name, 0), context)}")
    return 1 if any(one.failed_at is not None or one.read_at is None for one in shown) else 0
