"""`stopwarden answer`: your answer to a parked question; the session is told at its next prompt or block."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import record
from stopwarden.cli.person import names, only_the_person
from stopwarden.core.errors import UsageError
from stopwarden.report.reading import LocalTimes, plain
from stopwarden.report.values import plain_values

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.store.port import Parked, SessionRow, Store

ANSWER_MAX = 2_000


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = (
        "Answers a parked question or a refused permission. The session is told at its next prompt or block.\n"
        "A number alone picks that option. Answering again replaces the answer."
    )
    parser.add_argument("number", type=int, metavar="NUMBER", help="as `stopwarden parked` shows it")
    parser.add_argument("text", nargs="+", metavar="TEXT", help="the answer, or the number of one of its options")
    parser.add_argument("--json", action="store_true", help="what is stored now, as one JSON object")
    parser.epilog = "examples:\n  stopwarden answer 1 keep the column\n  stopwarden answer 1 2"


def run(args: argparse.Namespace, context: Context) -> int:
    """Stores the answer. Raises RefusedError inside an agent program, UsageError for a number that is not there."""
    only_the_person(context, None, "answer a parked question")
    said = " ".join(" ".join(args.text).split())
    if not said:
        raise UsageError("There is no answer", do="Say it: stopwarden answer NUMBER TEXT")
    if len(said) > ANSWER_MAX:
        raise UsageError(f"The answer has {len(said)} characters", kept="It is not stored", do=f"At most {ANSWER_MAX}")
    now = context.now()
    with record.opened(context) as store:
        with store.transaction():
            before = _parked(store, args.number)
            text, picked = _picked(before, said)
            after = before.replace(answer=text, answered_at=now, delivered_at=None)
            store.save_parked(after)
        row = store.session(before.session)
        name = names(store.sessions()).get(before.session, before.session[:8])
    if args.json:
        context.say(json.dumps({"v": 1, "parked": plain_values(after), "replaced": before.answer or None}))
        return 0
    context.say(
        f'{after.id}: "{plain(after.text, 100)}" is answered: {plain(text)}' + (f" (option {said})" if picked else "")
    )
    times = LocalTimes(context.zone, before.at, now)
    if before.answered_at is not None:
        context.say(f"It replaces your answer of {times.day_clock(before.answered_at)}: {plain(before.answer)}")
    context.say(_told_when(before, row, name, times))
    return 0


def _parked(store: Store, number: int) -> Parked:
    everything = {one.id: one for one in store.parked()}
    if number in everything:
        return everything[number]
    still_open = ", ".join(str(one.id) for one in everything.values() if one.answered_at is None)
    raise UsageError(
        f"There is no parked question {number}",
        do=f"These are open: {still_open}" if still_open else "Nothing is parked: see `stopwarden parked --all`",
    )


def _picked(parked: Parked, said: str) -> tuple[str, bool]:
    """The answer, and whether it was given as the number of an option."""
    if said.isascii() and said.isdigit() and 1 <= int(said) <= len(parked.options):
        return parked.options[int(said) - 1], True
    return said, False


def _told_when(before: Parked, row: SessionRow | None, name: str, times: LocalTimes) -> str:
    if before.delivered_at is not None:
        earlier = times.clock(before.delivered_at)
        return f"{name} was told the earlier answer at {earlier}; it is told this one at its next prompt or block."
    if row is not None and row.ended_at is not None:
        return f"{name} was closed at {times.day_clock(row.ended_at)}: it is told when it is opened again and prompted."
    return f"{name} is told at its next prompt or block."
