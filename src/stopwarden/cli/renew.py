"""`stopwarden renew`: keeps what this session holds for another lease."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import hold_words, holds
from stopwarden.cli.reserve import lease_said
from stopwarden.core import leases
from stopwarden.core.reservations import Denied, Granted
from stopwarden.work import reservations

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `renew`."""
    holds.add_words(parser)
    parser.add_argument(
        "--lease", metavar="TIME", help="for how long from now on (2h, 90m); without it as long as before"
    )
    parser.description = (
        "Renews a reservation once half of its lease has gone by; with --lease at once. A session's own\n"
        "tools, prompts and stops do the same, so this is for a session that only waits."
    )
    parser.epilog = (
        "examples:\n  stopwarden renew a3f\n  stopwarden renew --all\n  stopwarden renew a3f --lease 4h --token 3\n\n"
        "exit codes: 0 renewed, or not due yet; 2 not yours, lapsed or refused; 3 another has it;\n"
        "4 Stopwarden itself failed"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Renews one hold, or all of them; the first refusal is the exit code."""
    lease = None if args.lease is None else lease_said(args.lease)
    store = context.open_store()
    code, told = 0, []
    try:
        by = holds.asker(context, store)
        targets = holds.meant_by(args, context, store, by)
        for target in targets:
            done = reservations.renew(
                store,
                target.place,
                target.item,
                by.session,
                context.now,
                lease=lease,
                token=args.token,
                copy=by.copy,
                state_dir=context.state_dir,
                first=lambda: holds.hear(store, context),
            )
            if isinstance(done, Denied):
                refused = hold_words.refusal(done, target, store, context)
                code = code or refused.exit_code
                told.append(hold_words.denied_json(done, target, by, store, context))
                context.warn(f"stopwarden: {refused}")
                continue
            told.append({"v": 1, "done": True, "how": done.how} | hold_words.as_json(done.row, by, context))
            if not args.json:
                context.say(_said(done, target, context))
        if args.json:
            context.say(json.dumps({"v": 1, "renewed": told} if args.all else told[0]))
        elif not targets:
            context.say("Nothing is held, so nothing was renewed.")
    finally:
        store.close()
    return code


def _said(done: Granted, target: holds.Target, context: Context) -> str:
    row = done.row
    if row.expires_at is None:
        return f"Yours: {target.words}. It does not lapse."
    if done.how == "not_yet":
        due = hold_words.at(leases.renewal_due(row), context)
        yours = f"{target.words} is yours {hold_words.until_own(row, context)}"
        return f"Not due before {due}: {yours}. --lease renews it now."
    return f"Renewed: {target.words}, {hold_words.until_own(row, context)} (token {row.token})"
