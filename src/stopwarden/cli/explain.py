"""`stopwarden explain`: why one stop was blocked or allowed, and whether the judge would say so again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import record
from stopwarden.cli.person import names, session_named
from stopwarden.core.bounds import DAY
from stopwarden.core.errors import UsageError
from stopwarden.report import explanation
from stopwarden.report.reading import LocalTimes, padded
from stopwarden.report.values import utc

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.store.port import SessionRow, Store, VerdictRow

LISTED = 20
LIST_DAYS = 7


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = "Why one stop was blocked or allowed: the rule, the wakes, what was owed, the counts."
    parser.add_argument(
        "what", nargs="?", metavar="ID", help="a verdict's number, or a session (its last); alone: the last"
    )
    parser.add_argument("--list", action="store_true", help=f"the last {LISTED} verdicts, of ID if that is a session")
    parser.add_argument("--verbose", "-v", action="store_true", help="every wake and item, and what the agent was told")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object, times in UTC")
    parser.epilog = (
        "examples:\n  stopwarden explain\n  stopwarden explain 41\n  stopwarden explain 7e15 --list\n"
        "exit code: 0 judged again it is the same verdict, 1 it is not"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Prints the explanation; 1 where judging the record again gives another verdict."""
    with record.opened(context) as store:
        rows = {row.id: row for row in store.sessions()}
        if args.list:
            return _listed(args, context, store, rows)
        verdict = _named(args.what, store, rows)
        told = explanation.explain(verdict, store.snapshot, _name(verdict.session, rows))
    if args.json:
        context.say(json.dumps(explanation.as_json(told), ensure_ascii=False))
    else:
        text = explanation.render(told, context.zone, context.now(), verbose=args.verbose)
        context.say(text.rstrip("\n"))
    return 0 if told.agrees else 1


def _named(what: str | None, store: Store, rows: dict[str, SessionRow]) -> VerdictRow:
    """The verdict that `what` names. Raises UsageError where there is none."""
    last = max((row.last_verdict for row in rows.values()), default=0)
    if not last:
        raise UsageError(
            "No stop has been judged yet", do="While you are away every stop is: stopwarden away until 07:30"
        )
    number = last
    if what is not None and what.isascii() and what.isdigit() and what not in rows:
        number = int(what)
    elif what is not None:
        session = session_named(what, rows)
        number = rows[session].last_verdict if session in rows else 0
        if not number:
            raise UsageError(f"No stop of session {what!r} has been judged", do="See: stopwarden explain --list")
    found = store.verdict(number) if number < 2**63 else None
    if found is None and 0 < number <= last:
        raise UsageError(f"Verdict {number} was forgotten", do="See what is left: stopwarden explain --list")
    if found is None:
        raise UsageError(f"There is no verdict {number}", do=f"The last one is {last}. See: stopwarden explain --list")
    return found


def _listed(args: argparse.Namespace, context: Context, store: Store, rows: dict[str, SessionRow]) -> int:
    now = context.now()
    session = session_named(args.what, rows) if args.what else None
    since = now - LIST_DAYS * DAY
    found = [row for row in store.verdicts(since=since) if session is None or row.session == session][-LISTED:]
    if args.json:
        keys = ("id", "session", "kind", "rule")
        told = [{**{key: getattr(row, key) for key in keys}, "at": utc(row.at)} for row in found]
        context.say(json.dumps({"v": 1, "verdicts": told}))
        return 0
    if not found:
        context.say(f"No stop was judged in the last {LIST_DAYS} days.")
        return 0
    times = LocalTimes(context.zone, found[0].at, now)
    called = {row.session: _name(row.session, rows) for row in found}
    widest = max(len(name) for name in called.values())
    context.say(f"Times are {context.zone.name}. One of them: stopwarden explain {found[-1].id}")
    for row in found:
        kind = padded(row.kind.replace("_", " "), 14)
        at = f"{times.day(row.at)} {times.second(row.at)}"
        context.say(f"{row.id:>5}  {at}  {padded(called[row.session], widest)}  {kind}  {row.rule}")
    return 0


def _name(session: str, rows: dict[str, SessionRow]) -> str:
    """What to call a session: its short id among all that are known, and its title."""
    return names(rows.values()).get(session, session[:8])
