"""`stopwarden reserve`: keeps an item for this session, so that no other takes it."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from stopwarden.cli import hold_words, holds, lists
from stopwarden.cli.person import ALLOWED, only_the_person
from stopwarden.cli.times import duration
from stopwarden.core import leases
from stopwarden.core import reservations as rules
from stopwarden.core.bounds import LEASE_DEFAULT
from stopwarden.core.errors import RefusedError, UsageError
from stopwarden.core.reservations import Denied, Granted
from stopwarden.report.reading import plain
from stopwarden.work import reservations

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Reservation
    from stopwarden.store.port import Store
    from stopwarden.work.reservations import Actor


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `reserve`."""
    parser.add_argument("item", nargs="*", metavar="ITEM", help=holds.ITEM_HELP)
    parser.add_argument(
        "--footprint",
        nargs="+",
        action="extend",
        default=[],
        metavar="PATH",
        help="files or directories of the checkout that the work will touch: who claims one of them too is refused",
    )
    parser.add_argument("--lease", metavar="TIME", help="how long it is kept without a sign of life (2h, 90m); 2h")
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="move it here from another checkout; typed by you, also from a session that holds it now",
    )
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object, times in UTC")
    parser.description = (
        "Keeps an item for this session. The session's own work renews it; without a sign of life it\n"
        "lapses, and five minutes later another may take it. Typed by you, it is yours until you release it."
    )
    parser.epilog = (
        "examples:\n  stopwarden reserve a3f\n  stopwarden reserve issue-42 --footprint src/parser docs/parser.md\n"
        "  stopwarden reserve w12 --lease 4h\n\n"
        "exit codes: 0 reserved; 2 wrong words, or refused; 3 another has it: take other work, do not\n"
        "try again in a loop; 4 Stopwarden itself failed"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Claims one item."""
    said = " ".join(args.item).strip()
    if not said:
        where = "Name one, before --footprint" if args.footprint else "Name one"
        raise UsageError("Which item", kept="Nothing was reserved", do=f"{where}; what is held: stopwarden peers")
    footprint = rules.footprint_of(args.footprint)
    store = context.open_store()
    try:
        by = holds.asker(context, store)
        lease = _lease(args.lease, by.session)
        target = holds.target(context, store, by, said, args.list)
        holds.refuse_what_is_over(target)
        nonce = uuid.uuid4().hex
        ask = by.claim(target.item, target.title, lease, nonce, place=target.place, project=target.project).replace(
            footprint=footprint,
            take_over=args.take_over,
            from_others=args.take_over and _may_take(context, store),
        )
        told = reservations.reserve(
            store, ask, context.now, state_dir=context.state_dir, first=lambda: holds.hear(store, context)
        )
        if isinstance(told, Denied):
            if args.take_over and told.why in ("held", "margin"):
                only_the_person(context, store, "take over what another holds")
            if args.json:
                context.say(json.dumps(hold_words.denied_json(told, target, by, store, context)))
            raise hold_words.refusal(told, target, store, context)
        _say(args, context, store, by, target, told)
    finally:
        store.close()
    return 0


def _lease(said: str | None, session: str) -> int:
    if said is None:
        return LEASE_DEFAULT
    if not session:
        raise RefusedError(
            "What you reserve yourself does not lapse, so it has no lease",
            kept="Nothing was reserved",
            do="Leave --lease out, and give it back with: stopwarden release ITEM",
        )
    return lease_said(said)


def lease_said(said: str) -> int:
    """Seconds of a lease as it was typed. Raises UsageError, and SettingError where it is too short or too long."""
    return leases.check_lease(0 if said.strip().lower() in ("0", "0s", "0m") else duration_or_seconds(said))


def duration_or_seconds(said: str) -> int:
    """Like `times.duration`, but what is shorter than a minute is a length too, to be refused as a lease."""
    text = said.strip().lower()
    if text.endswith("s") and text[:-1].isascii() and text[:-1].isdigit():
        return int(text[:-1][:9])
    return duration(said)


def _may_take(context: Context, store: Store) -> bool:
    """Whether whoever asks may take what another session holds now: the person, and agents if they were allowed."""
    return not context.inside_agent or store.fact(*ALLOWED) == "yes"


def _say(
    args: argparse.Namespace, context: Context, store: Store, by: Actor, target: holds.Target, told: Granted
) -> None:
    row, lost = told.row, told.replaced
    who = hold_words.holders(store, [row] if lost is None else [row, lost])
    if args.json:
        replaced = None if lost is None else hold_words.as_json(lost, by, context, who[lost.session])
        said = {"v": 1, "done": True, "how": told.how, "replaced": replaced}
        context.say(json.dumps(said | hold_words.as_json(row, by, context, who[row.session])))
        return
    verb = {"renewed": "Still reserved", "moved": "Moved here"}.get(told.how, "Reserved")
    whose = "" if by.session else " for you"
    context.say(f"{verb}{whose}: {target.words}, {hold_words.until_own(row, context)} (token {row.token})")
    if lost is not None:
        context.say(_replaced(lost, who[lost.session], by, store, context))
    if row.footprint:
        context.say(f"Footprint: {hold_words.paths(row.footprint)}")
    if by.session:
        due = hold_words.at(leases.renewal_due(row), context)
        context.say(
            f"Your tools, prompts and stops renew it from {due} on; where none will come, type: "
            f"stopwarden renew {row.item}"
        )
    context.say(f"When it is finished or given up: stopwarden release {row.item}")


def _replaced(lost: Reservation, who: str, by: Actor, store: Store, context: Context) -> str:
    """What ended by it, in one sentence."""
    where = "this checkout" if lost.copy == by.copy else f"another checkout, {plain(lost.root, 120)}"
    if lost.session == by.session:
        return f"It replaces your hold in {where}."
    if reservations.is_gone(store, lost):
        why = "its session has ended, or its program died"
    elif leases.is_live(lost, context.now()):
        why = "taken over while held; that session is told at its next stop"
    else:
        why = f"it lapsed at {hold_words.at(lost.expires_at or 0, context)}"
    return f"It replaces the hold of {who} in {where}: {why}."
