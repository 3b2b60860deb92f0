"""`stopwarden release`: gives back what this session holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.cli import hold_words, holds
from stopwarden.core.errors import RefusedError
from stopwarden.work import reservations

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.core.reservations import Denied, Granted
    from stopwarden.store.port import Store


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
    return holds.carry_out(args, context, reservations.release, holds.Words("released", _said, _refused))


def _refused(denied: Denied, target: holds.Target, store: Store, context: Context) -> RefusedError:
    """Only the holder gives back, in its own checkout: anything else is refused, not contended for."""
    do = {
        "elsewhere": "Release it in that checkout",
        "held": f"Wait until it is free; you yourself can take it: stopwarden reserve {target.item} --take-over",
        "not_held": "See what is held: stopwarden peers",
    }.get(denied.why, "See who has it: stopwarden peers")
    happened = hold_words.refusal(denied, target, store, context).happened
    return RefusedError(happened, kept="Nothing was changed", do=do)


def _said(done: Granted, target: holds.Target, context: Context) -> str:
    if done.how == "nothing":
        return f"Given back already: {target.words}"
    return f"Given back: {target.words}. It is free."
