"""`stopwarden back`: the person is here again, and the night in one line.

Ends what holds for this checkout: its own away period and those of single sessions in it, else the
one that holds everywhere. A period whose time has come has ended by itself; `back` then only tells
of it. The database says so first and the marker goes last (`store.marker`), so a crash in between
leaves sessions held, never let go unnoticed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli.known import end_those_over, take_in
from stopwarden.cli.person import only_the_person, session_named
from stopwarden.cli.retention import keep_to_limits
from stopwarden.core.bounds import DAY
from stopwarden.core.errors import StoreCorruptError
from stopwarden.report.account import account, as_json
from stopwarden.report.moments import length, moment
from stopwarden.report.text import render
from stopwarden.store import marker
from stopwarden.store.port import RecordLine
from stopwarden.work import checkout

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stopwarden.cli.context import Context
    from stopwarden.core.events import AwayPeriod, Instant
    from stopwarden.report.account import Account
    from stopwarden.store.port import Store

LATELY = 1 * DAY  # an end by itself within that time is still worth telling
ONE_LINE = 1_000  # columns: the account's head on one line


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `back`."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="end every away period, of other checkouts too")
    which.add_argument("--session", metavar="ID", help="end only the away period of this one session")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.description = "You are here again: sessions of this checkout may stop as they like."
    parser.epilog = (
        "example:\n  stopwarden back\n\n"
        "exit codes: 0 ended; 1 there was nothing to end; 2 wrong words, or an agent tried it"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Ends the periods, records it, and prints the night in one line each."""
    store = _open(context)
    try:
        only_the_person(context, store, "end away")
        now = context.now()
        marker.settle(store, context.state_dir)
        if missed := take_in(store, context):
            context.warn(missed)
        lapsed = end_those_over(store, now)
        held = store.open_periods()
        chosen = _chosen(args, context, store, held)
        with store.transaction():
            for period in chosen:
                store.end_period(period.id, now, "back")
                store.append([RecordLine(at=now, kind="back", session=period.session, period=period.id)])
        marker.settle(store, context.state_dir)
        unreadable = not chosen and not held and marker.read(context.state_dir) is marker.UNREADABLE
        if unreadable:
            marker.remove(context.state_dir)
        code = _told(args, context, store, chosen, lapsed, unreadable, now)
        keep_to_limits(store, context)
        return code
    finally:
        store.close()


def _open(context: Context) -> Store:
    """The database; a damaged one is set aside, said, and a new one begun, because the person must get back in."""
    try:
        return context.open_store()
    except StoreCorruptError as error:
        context.warn(f"stopwarden: {error}")
        return context.open_store()


def _chosen(args: argparse.Namespace, context: Context, store: Store, held: Sequence[AwayPeriod]) -> list[AwayPeriod]:
    rows = {row.id: row for row in store.sessions()}
    if args.all:
        return list(held)
    if args.session:
        known = {**rows, **{one.session: rows.get(one.session) for one in held if one.scope == "session"}}
        session = session_named(args.session, {key: row for key, row in known.items() if row is not None})
        return [one for one in held if one.scope == "session" and one.session == session]
    root = checkout.find_root(context.cwd)
    copy = checkout.copy_key(root, context.state_dir, make=False)
    here = {row.id for row in rows.values() if row.root == root or (copy and row.copy == copy)}
    own = [
        one
        for one in held
        if (one.scope == "checkout" and (one.root == root or (copy and one.copy == copy)))
        or (one.scope == "session" and one.session in here)
    ]
    return own or [one for one in held if one.scope == "everywhere"]


def _told(
    args: argparse.Namespace,
    context: Context,
    store: Store,
    chosen: Sequence[AwayPeriod],
    lapsed: Sequence[AwayPeriod],
    unreadable: bool,
    now: Instant,
) -> int:
    ended = [*chosen, *lapsed]
    after = {one.id: one for one in store.periods()}
    accounts = [_account(store, after[one.id], now) for one in ended]
    still = store.open_periods()
    if args.json:
        said = {"v": 1, "ended": [as_json(one) for one in accounts], "still_away": [one.id for one in still]}
        context.say(json.dumps(said))
        return 0 if ended or unreadable else 1
    for night in accounts:
        context.say(render(night, context.zone, columns=ONE_LINE).splitlines()[0])
    if lapsed and not chosen:
        context.say("Away had ended by itself at its time.")
    if unreadable:
        context.say("The mark of an away period could not be read; it was taken away. You are here again.")
    elif not ended:
        context.say(_nothing_to_end(args, context, list(after.values()), still, now))
    for one in still if ended else ():
        context.say(f"Still away: {_whom(one)}{_end(context, one, now)}. To end that too: stopwarden back --all")
    if ended:
        context.say("The whole night: stopwarden report")
    return 0 if ended or unreadable else 1


def _account(store: Store, period: AwayPeriod, now: Instant) -> Account:
    return account(
        [period],
        now=now,
        lines=store.lines(period=period.id),
        verdicts=store.verdicts(period=period.id),
        sessions=store.sessions(),
        parked=store.parked(),
        snapshot=store.snapshot,
    )


def _nothing_to_end(
    args: argparse.Namespace, context: Context, periods: Sequence[AwayPeriod], still: Sequence[AwayPeriod], now: Instant
) -> str:
    if still:
        where = f"session {args.session}" if args.session else context.cwd
        held = ", ".join(f"{_whom(one)}{_end(context, one, now)}" for one in still)
        return f"No away period to end for {where}. You are away for {held}: stopwarden back --all"
    ends = [one for one in periods if one.ended_at is not None and now - one.ended_at <= LATELY]
    if not ends:
        return "You were not away: there is nothing to end."
    last = max(ends, key=lambda one: one.ended_at or 0)
    at = last.ended_at if last.ended_at is not None else now
    how = {"time": "by itself", "done": "when the list was done", "prompt": "when you typed a prompt"}
    ended = f"{how.get(last.ended_why, '')} at {moment(at, context.zone, now)}".strip()
    return f"Nothing to end: away ended {ended}, {length(now - at)} ago. The whole night: stopwarden report"


def _whom(period: AwayPeriod) -> str:
    if period.scope == "everywhere":
        return "every checkout"
    return period.root if period.scope == "checkout" else f"session {period.session[:8]}"


def _end(context: Context, period: AwayPeriod, now: Instant) -> str:
    return f" until {moment(period.until, context.zone, now)}" if period.until is not None else ""
