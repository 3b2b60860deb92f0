"""`stopwarden renew`: keeps what this session holds for another lease."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stopwarden.cli import hold_words, holds
from stopwarden.cli.reserve import lease_said
from stopwarden.core import leases
from stopwarden.work import reservations

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.core.reservations import Granted


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
    act = functools.partial(reservations.renew, lease=lease)
    return holds.carry_out(args, context, act, holds.Words("renewed", _said, hold_words.refusal))


def _said(done: Granted, target: holds.Target, context: Context) -> str:
    row = done.row
    if row.expires_at is None:
        return f"Yours: {target.words}. It does not lapse."
    if done.how == "not_yet":
        due = hold_words.at(leases.renewal_due(row), context)
        yours = f"{target.words} is yours {hold_words.until_own(row, context)}"
        return f"Not due before {due}: {yours}. --lease renews it now."
    return f"Renewed: {target.words}, {hold_words.until_own(row, context)} (token {row.token})"
