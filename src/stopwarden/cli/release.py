"""`stopwarden release`: gives back what this session holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import hold_words, holds
from stopwarden.core.errors import RefusedError
from stopwarden.core.reservations import Denied, Granted
from stopwarden.work import reservations

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `release`."""
    holds.add_words(parser)
    parser.description = "Gives a reservation back, so that another may take the item at once."
    parser.epilog = (
        "examples:\n  stopwarden release a3f\n  stopwarden release --all\n\n"
        "exit codes: 0 given back (or it was already); 2 not yours to give back, or wrong words;\n"
        "4 Stopwarden itself failed"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Releases one hold, or all of them; a refusal is the exit code."""
    store = context.open_store()
    code, told = 0, []
    try:
        by = holds.asker(context, store)
        targets = holds.meant_by(args, context, store, by)
        for target in targets:
            done = reservations.release(
                store,
                target.place,
                target.item,
                by.session,
                context.now,
                token=args.token,
                copy=by.copy,
                state_dir=context.state_dir,
                first=lambda: holds.hear(store, context),
            )
            if isinstance(done, Denied):
                refused = _refused(done, target, hold_words.refusal(done, target, store, context).happened)
                code = code or refused.exit_code
                told.append(hold_words.denied_json(done, target, by, store, context))
                context.warn(f"stopwarden: {refused}")
                continue
            told.append({"v": 1, "done": True, "how": done.how} | hold_words.as_json(done.row, by, context))
            if not args.json:
                context.say(_said(done, target))
        if args.json:
            context.say(json.dumps({"v": 1, "released": told} if args.all else told[0]))
        elif not targets:
            context.say("Nothing is held, so nothing was given back.")
    finally:
        store.close()
    return code


def _refused(denied: Denied, target: holds.Target, happened: str) -> RefusedError:
    """Only the holder gives back, in its own checkout: anything else is refused, not contended for."""
    do = {
        "elsewhere": "Release it in that checkout",
        "held": f"Wait until it is free; you yourself can take it: stopwarden reserve {target.item} --take-over",
        "not_held": "See what is held: stopwarden peers",
    }.get(denied.why, "See who has it: stopwarden peers")
    return RefusedError(happened, kept="Nothing was changed", do=do)


def _said(done: Granted, target: holds.Target) -> str:
    if done.how == "nothing":
        return f"Given back already: {target.words}"
    return f"Given back: {target.words}. It is free."
