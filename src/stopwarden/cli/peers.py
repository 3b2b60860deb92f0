"""`stopwarden peers`: who holds what, until when, and whether the holder is still there.

It only reads, once what hooks left in the spool is taken over. What is stored is data of others: a
hold that cannot be told sensibly (an instant that no clock shows, no name) is listed as unreadable
and is nobody else's trouble.

Exit codes: 0 shown, 2 wrong words, 4 our own failure.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from stopwarden.cli import hold_words, holds
from stopwarden.cli.known import take_in
from stopwarden.core import reservations as rules
from stopwarden.core.errors import StoreBusyError, StoreUnwritableError
from stopwarden.core.record import Record
from stopwarden.report.reading import count, cut, padded, plain, width
from stopwarden.store import place

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Instant, Reservation, SessionState
    from stopwarden.store.port import SessionRow, Store
    from stopwarden.work.reservations import Actor

UNHEARD = 10 * 60  # seconds without an event after which "working" is no longer said
FARTHEST = 10**11  # seconds: no instant of ours is later
COLUMNS = (44, 28, 30)


class Peer(Record):
    """One hold, and what is known of its holder."""

    held: Reservation
    holder: str
    state: str  # "live", "lapsed", "free", "released", "done", "unreadable"
    holder_is: str = ""  # "waiting", "working", "gone", "silent", "unknown"; "" for the person
    next_look: Instant | None = None
    last_event_at: Instant | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `peers`."""
    parser.add_argument("--all", action="store_true", help="every project, and what was given back or is done")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object, times in UTC")
    parser.description = (
        "Who holds what: item, holder, checkout, until when, and whether the holder works, waits or is gone."
    )
    parser.epilog = (
        "examples:\n  stopwarden peers\n  stopwarden peers --all --json\n\n"
        "exit codes: 0 shown; 2 wrong words; 4 Stopwarden itself failed"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Prints the holds."""
    if not os.path.lexists(os.path.join(context.state_dir, place.DATABASE)):
        context.say(json.dumps({"v": 1, "peers": [], "notes": []}) if args.json else _nothing(args.all))
        return 0
    store = context.open_store()
    try:
        notes = _heard(store, context)
        by = holds.asker(context, store, only_looks=True)
        found = store.reservations(released=True) if args.all else store.reservations_in(by.project)
        peers = _peers(store, found, context)
    finally:
        store.close()
    if args.json:
        told = {
            "v": 1,
            "peers": [_as_json(one, by, context) for one in peers],
            "counts": _counts(peers),
            "notes": notes,
        }
        context.say(json.dumps(told))
        return 0
    for line in _text(peers, by, context, everything=args.all):
        context.say(line)
    for note in notes:
        context.say(note)
    return 0


def _heard(store: Store, context: Context) -> list[str]:
    try:
        missed = take_in(store, context)
    except (StoreBusyError, StoreUnwritableError) as error:
        missed = f"What hooks heard lately is not in this: {error}"
    return [missed] if missed else []


def _nothing(everything: bool) -> str:
    return "Nothing is reserved." if everything else "Nothing is reserved in this project."


# --- looking ------------------------------------------------------------------------------------


def _peers(store: Store, found: Sequence[Reservation], context: Context) -> list[Peer]:
    rows = {row.id: row for row in store.sessions()}
    who = hold_words.holders(store, found)
    states: dict[str, SessionState] = {}
    peers = []
    for held in found:
        if held.session and held.session not in states:
            states[held.session] = store.state(held.session)
        peers.append(_peer(held, who[held.session], rows.get(held.session), states.get(held.session), context.now()))
    order = ("live", "lapsed", "free", "unreadable", "released", "done")
    return sorted(peers, key=lambda one: (one.held.project, order.index(one.state)))


def _peer(held: Reservation, holder: str, row: SessionRow | None, state: SessionState | None, now: Instant) -> Peer:
    told = Peer(held=held, holder=holder, state=hold_words.state_of(held, now) if _is_readable(held) else "unreadable")
    if not held.session:
        return told
    if row is None:
        return told.replace(holder_is="unknown")
    heard = row.last_event_at or None
    if row.ended_at is not None:
        return told.replace(holder_is="gone", last_event_at=row.ended_at)
    look = state.next_look if state is not None else None
    if look is not None and look > now and row.last_event in ("stop", "stop-failure", "notification"):
        return told.replace(holder_is="waiting", next_look=look, last_event_at=heard)
    working = heard is not None and now - heard <= UNHEARD
    return told.replace(holder_is="working" if working else "silent", next_look=look, last_event_at=heard)


def _is_readable(held: Reservation) -> bool:
    """Whether it can be told at all. The database refuses rows of the wrong shape, not values without sense."""
    instants = (held.claimed_at, held.granted_at, held.expires_at or 0, held.released_at or 0)
    return bool(held.item and held.place) and held.token > 0 and all(0 <= one < FARTHEST for one in instants)


def _counts(peers: Sequence[Peer]) -> dict[str, int]:
    """How many live holds each holder has."""
    counted: dict[str, int] = {}
    for one in peers:
        if one.state == "live":
            counted[one.holder] = counted.get(one.holder, 0) + 1
    return counted


def _as_json(one: Peer, by: Actor, context: Context) -> dict[str, Any]:
    return hold_words.as_json(one.held, by, context, one.holder) | {
        "state": one.state,
        "free_from": hold_words.utc_or_none(_free_from(one, context.now())),
        "holder_is": one.holder_is or None,
        "next_look": hold_words.utc_or_none(one.next_look),
        "last_event_at": hold_words.utc_or_none(one.last_event_at),
    }


def _free_from(one: Peer, now: Instant) -> Instant | None:
    return rules.free_from(one.held, now) if one.state in ("lapsed", "free") else None


# --- telling ------------------------------------------------------------------------------------


def _text(peers: Sequence[Peer], by: Actor, context: Context, *, everything: bool) -> list[str]:
    if not peers:
        return [_nothing(everything)]
    lines = [f"Times are {context.zone.name}."]
    rows = [_columns(one, by, context) for one in peers]
    widths = [min(most, max(width(row[at]) for row in rows)) for at, most in enumerate(COLUMNS)]
    project = by.project
    for one, row in zip(peers, rows, strict=True):
        if one.held.project != project:
            project = one.held.project
            lines.append(f"In {plain(project, 200)}:")
        cells = [padded(cut(cell, widths[at]), widths[at]) for at, cell in enumerate(row[:3])]
        lines.append("  ".join([*cells, row[3]]).rstrip())
        if one.held.footprint:
            lines.append(f"    footprint: {hold_words.paths(one.held.footprint)}")
    counts = _counts(peers)
    if counts:
        lines.append("Held now: " + ", ".join(f"{count(number, 'item')} by {who}" for who, number in counts.items()))
    return lines


def _columns(one: Peer, by: Actor, context: Context) -> list[str]:
    """Item, holder, until when, and where the holder is and how it stands."""
    held = one.held
    where = "this checkout" if held.copy == by.copy else f"another checkout, {plain(held.root, 80)}"
    stands = _holder_stands(one, context)
    return [
        hold_words.called(held.item, held.title),
        one.holder,
        _state(one, context),
        f"{where}; {stands}" if stands else where,
    ]


def _state(one: Peer, context: Context) -> str:
    held, now = one.held, context.now()
    if one.state == "unreadable":
        return "unreadable"
    if one.state == "live":
        return "held" if held.expires_at is None else f"held until {hold_words.at(held.expires_at, context)}"
    if one.state == "lapsed":
        return f"lapsed, free from {hold_words.at(rules.free_from(held, now), context)}"
    if one.state == "free":
        return f"free since {hold_words.at(rules.free_from(held, now), context)}"
    return f"{one.state} {hold_words.at(held.released_at or 0, context)}"


def _holder_stands(one: Peer, context: Context) -> str:
    if one.state in ("released", "done"):
        return ""
    heard = "" if one.last_event_at is None else hold_words.at(one.last_event_at, context)
    if one.holder_is == "waiting" and one.next_look is not None:
        return f"waiting, next look {hold_words.at(one.next_look, context)}"
    if one.holder_is == "working":
        return f"working, last heard {heard}"
    if one.holder_is == "gone":
        return f"gone, ended {heard}"
    if one.holder_is == "silent":
        missed = one.next_look is not None and one.next_look <= context.now()
        look = f", its look of {hold_words.at(one.next_look or 0, context)} did not come" if missed else ""
        return f"not heard of since {heard}{look}" if heard else "not heard of"
    return "never heard of by our hook" if one.holder_is == "unknown" else ""
