"""How a hold is told: who has what until when, why an act was refused, and the same as plain values.

Everything stored is data of others: names and paths are shown on one line and cut, and an instant
that no clock can show is said to be so. May not live here: looking anything up but names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stopwarden.cli.person import names
from stopwarden.core import leases
from stopwarden.core import reservations as rules
from stopwarden.core.errors import HeldError, RefusedError
from stopwarden.report.moments import moment
from stopwarden.report.reading import plain, short_ids
from stopwarden.report.values import utc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.cli.context import Context
    from stopwarden.cli.holds import Target
    from stopwarden.core.events import Instant, Reservation
    from stopwarden.core.reservations import Denied
    from stopwarden.store.port import Store
    from stopwarden.work.reservations import Actor

NO_CLOCK = "a time that no clock shows"


def called(item: str, title: str) -> str:
    """An item in a sentence: its id, and its text where it has one."""
    shown = plain(item, 80)
    return f'{shown} "{plain(title, 60)}"' if title else shown


def holders(store: Store, holds: Iterable[Reservation]) -> dict[str, str]:
    """What to call the holders: short id and title; "" is the person."""
    known = names(store.sessions())
    unknown = short_ids((held.session for held in holds if held.session not in known), least=8)
    return {**known, **{one: plain(short) for one, short in unknown.items()}, "": "the person"}


def at(instant: Instant, context: Context) -> str:
    """An instant as a local time."""
    try:
        return moment(instant, context.zone, context.now())
    except (OverflowError, OSError, ValueError):
        return NO_CLOCK


def utc_or_none(instant: Instant | None) -> str | None:
    """ISO 8601, None also for what no clock can show."""
    try:
        return None if instant is None else utc(instant)
    except (OverflowError, OSError, ValueError):
        return None


def until(held: Reservation, context: Context) -> str:
    """ "until 23:05", or that it does not lapse."""
    if held.expires_at is None:
        return "until they release it"
    return f"until {at(leases.lapses_at(held, context.now()), context)} ({context.zone.name})"


def until_own(held: Reservation, context: Context) -> str:
    """The same for one's own hold."""
    return until(held, context).replace("they release", "you release")


def paths(footprint: Iterable[str]) -> str:
    """A footprint on one line, the first eight paths of it."""
    shown = list(footprint)
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return ", ".join(plain(one, 80) for one in shown[:8]) + more


def refusal(denied: Denied, target: Target, store: Store, context: Context) -> HeldError | RefusedError:
    """Why an act was not done, as an error that says who, until when, and what to do."""
    who = holders(store, denied.by)
    held = denied.by[0] if denied.by else None
    other_work = "Take other work (stopwarden peers shows what is held); do not try again in a loop"
    if held is None:
        if denied.why == "not_held":
            return RefusedError(
                f"{target.words} is not reserved", kept="Nothing was changed", do=f"Reserve it: {_retype(target)}"
            )
        return RefusedError(f"{target.words} is refused ({denied.why})", kept="Nothing was changed", do=other_work)
    holder = who[held.session]
    if denied.why == "elsewhere":
        return HeldError(
            f"{target.words} is being worked on in another checkout, {plain(held.root, 120)}, {until(held, context)}",
            kept="Nothing was changed",
            do=f"Go on there, or move it here: {_retype(target)} --take-over",
        )
    if denied.why == "margin":
        free = at(denied.until or 0, context)
        return HeldError(
            f"{target.words} was held by {holder} and lapsed at {at(held.expires_at or 0, context)}; it is kept for "
            f"them until {free} ({context.zone.name})",
            kept="Nothing was changed",
            do=f"Take other work, or try once more at {free}",
        )
    if denied.why == "footprint":
        told = "; ".join(
            f"{paths(one.footprint)} is held by {who[one.session]} for "
            f"{called(one.item, one.title)} {until(one, context)}"
            for one in denied.by[:3]
        )
        return HeldError(
            f"The footprint of {target.words} overlaps: {told}",
            kept="Nothing was reserved",
            do="Take other work, or name other paths; do not try again in a loop",
        )
    if denied.why == "too_many":
        told = ", ".join(called(one.item, one.title) for one in denied.by)
        return RefusedError(
            f"This session holds {len(denied.by)} items already: {told}",
            kept="Nothing was reserved",
            do="Finish one, or give one back: stopwarden release ITEM",
        )
    if denied.why == "lapsed":
        return RefusedError(
            f"Your hold on {target.words} lapsed at {at(held.expires_at or 0, context)} ({context.zone.name})",
            kept="Nothing was changed",
            do=f"Reserve it again before you go on: {_retype(target)}",
        )
    if denied.why == "fence":
        return RefusedError(
            f"The number of the hold on {target.words} is {held.token} by now: it was granted again since",
            kept="Nothing was changed",
            do="Stop what you were doing with it, and see who has it: stopwarden peers",
        )
    return HeldError(
        f"{target.words} is held by {holder} {until(held, context)}", kept="Nothing was changed", do=other_work
    )


def _retype(target: Target) -> str:
    return f"stopwarden reserve {target.item}"


def state_of(held: Reservation, now: Instant) -> str:
    """ "live", "lapsed" (kept a while for its holder), "free", "released" or "done"."""
    if held.terminal:
        return "done"
    if held.released_at is not None:
        return "released"
    if leases.is_live(held, now):
        return "live"
    return "lapsed" if rules.is_taken(held, now) else "free"


def as_json(held: Reservation, by: Actor, context: Context, holder: str = "") -> dict[str, Any]:
    """A hold as plain values; which checkout is said, never a checkout's key."""
    return {
        "item": held.item,
        "title": held.title,
        "list": held.place[len(held.project) :].strip() or None,
        "project": held.project,
        "session": held.session or None,
        "holder": holder or ("the person" if not held.session else held.session[:8]),
        "copy": "this" if held.copy == by.copy else "another",
        "root": held.root,
        "state": state_of(held, context.now()),
        "granted_at": utc_or_none(held.granted_at),
        "claimed_at": utc_or_none(held.claimed_at),
        "expires_at": utc_or_none(held.expires_at),
        "released_at": utc_or_none(held.released_at),
        "lease": held.lease or None,
        "token": held.token,
        "footprint": list(held.footprint),
    }


def denied_json(denied: Denied, target: Target, by: Actor, store: Store, context: Context) -> dict[str, Any]:
    """A refusal as plain values."""
    who = holders(store, denied.by)
    return {
        "v": 1,
        "done": False,
        "why": denied.why,
        "item": target.item,
        "until": utc_or_none(denied.until),
        "by": [as_json(held, by, context, who[held.session]) for held in denied.by],
    }
