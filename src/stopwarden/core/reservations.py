"""Who may hold an item: claims, take-overs, renewals, releases and fences, as values.

Theory of operation. An item has at most one reservation, that of its last grant. A claim is
granted where nobody holds the item: it was never held, it was released, its lease ran out at
least the take-over margin ago, or its holder is known to be gone. Each grant carries a token that is
one higher than the last, so whoever lost the item is told apart from whoever has it now. `fence`
is asked in the transaction of every protected write: a holder that slept past its lease writes
nothing, whether or not somebody has come since.

Sessions are the holders; the person's own hold (no session) does not lapse. Footprints are paths
below the checkout; two that overlap would be edited twice, so the second is refused, in whichever
copy of the project.

May not live here: reading a clock, the store, wording.
"""

from __future__ import annotations

from stopwarden.core import leases
from stopwarden.core.bounds import RESERVATIONS_MAX, TAKE_OVER_MARGIN, Policy
from stopwarden.core.errors import UsageError
from stopwarden.core.events import Reservation
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Literal

    from stopwarden.core.events import Instant

    How = Literal["new", "again", "renewed", "not_yet", "took_over", "moved", "released", "nothing"]
    Why = Literal["held", "margin", "footprint", "too_many", "lapsed", "not_held", "fence", "person"]

FOOTPRINT_MAX = 100  # paths
PATH_MAX = 400  # characters of one


class Claim(Record):
    """What is asked for: this item, for this session in this copy. `session` "" is the person."""

    item: str
    place: str
    project: str
    session: str
    copy: str
    root: str = ""
    title: str = ""
    lease: int = 0  # seconds, checked by `leases.check_lease`; a person's hold has none
    footprint: tuple[str, ...] = ()
    take_over: bool = False  # also a live hold of another
    nonce: str = ""


class Granted(Record):
    """The act was done: the row to store, and how it came about."""

    how: How
    row: Reservation
    replaced: Reservation | None = None  # the hold that ended by it


class Denied(Record):
    """The act was not done: why, because of which holds, and from when on it can be tried again."""

    why: Why
    by: tuple[Reservation, ...] = ()
    until: Instant | None = None


def claim(
    ask: Claim, stored: Reservation | None, others: Iterable[Reservation], now: Instant, *, gone: bool = False
) -> Granted | Denied:
    """Who holds the item after this claim.

    `stored` is the item's reservation, `others` every reservation of the project that is not
    released; `gone` says that the holder is known to have ended, so that no margin is needed.
    """
    other_holds = [held for held in others if (held.place, held.item) != (ask.place, ask.item)]
    if stored is None or _over(stored):
        how: How = "new"
    elif stored.session == ask.session:
        how = "again" if not leases.is_live(stored, now) else "renewed" if stored.copy == ask.copy else "moved"
    elif not leases.is_live(stored, now):
        free = free_from(stored)
        if now < free and not gone and not ask.take_over:
            return Denied(why="margin", by=(stored,), until=free)
        how = "took_over"
    elif gone:
        how = "took_over"
    elif ask.take_over:
        how = "moved"
    else:
        return Denied(why="held", by=(stored,), until=stored.expires_at)
    in_the_way = tuple(held for held in other_holds if is_taken(held, now) and _overlap(ask, held))
    if in_the_way:
        return Denied(why="footprint", by=in_the_way, until=in_the_way[0].expires_at)
    mine = tuple(held for held in other_holds if held.session == ask.session and leases.is_live(held, now))
    if how != "renewed" and ask.session and len(mine) >= RESERVATIONS_MAX:
        return Denied(why="too_many", by=mine)
    row = _granted(ask, stored, how, now)
    lost = stored if stored is not None and how in ("took_over", "moved") and stored.session != ask.session else None
    return Granted(how=how, row=row if lost is None else row.replace(taken_from=lost.session), replaced=lost)


def renew(
    stored: Reservation | None, session: str, now: Instant, *, lease: int | None = None, token: int | None = None
) -> Granted | Denied:
    """Extends a live hold by its lease from now on, once half of it has gone by; with `lease` at once, by that."""
    refused = fence(stored, session, now, token=token, holder_only=True)
    if refused is not None or stored is None:
        return refused or Denied(why="not_held")
    if stored.expires_at is None or (lease is None and not is_due(stored, now)):
        return Granted(how="not_yet", row=stored)
    return Granted(how="renewed", row=renewed(stored, now, lease))


def release(stored: Reservation | None, session: str, now: Instant, *, why_done: bool = False) -> Granted | Denied:
    """Ends a hold of one's own, also one that lapsed. What is released already stays so."""
    if stored is None:
        return Denied(why="not_held")
    if _over(stored):
        return Granted(how="nothing", row=stored)
    if stored.session != session:
        return Denied(why="held", by=(stored,), until=stored.expires_at)
    return Granted(how="released", row=stored.replace(released_at=now, terminal=why_done))


def fence(
    stored: Reservation | None, session: str, now: Instant, *, token: int | None = None, holder_only: bool = False
) -> Denied | None:
    """Why a protected write to the item is refused to this session, or None.

    Refused are: whoever is not the holder while another holds it, or did until a margin ago; a
    holder whose lease ran out; and a token that is not the item's last. The person (session "")
    may write where sessions hold, unless a token is given. `holder_only`: and who holds nothing.
    """
    if stored is None or _over(stored):
        return Denied(why="not_held") if holder_only or token is not None else None
    if token is not None and token != stored.token:
        return Denied(why="fence", by=(stored,), until=stored.expires_at)
    if stored.session == session:
        return None if leases.is_live(stored, now) else Denied(why="lapsed", by=(stored,), until=stored.expires_at)
    if not session and not holder_only and token is None:
        return None
    if is_taken(stored, now) or holder_only:
        return Denied(why="held", by=(stored,), until=stored.expires_at)
    return None


def is_due(held: Reservation, now: Instant) -> bool:
    """Whether at least half the lease has gone by, or the clock was set back behind the claim."""
    return now >= leases.renewal_due(held) or now < held.claimed_at


def is_overdue(held: Reservation, now: Instant, policy: Policy) -> bool:
    """Whether no wake can keep it in time any more: a stop renews it first."""
    return is_due(held, now) or now >= leases.renewal_due(held) - leases.skew_for(held, policy.skew)


def renewed(held: Reservation, now: Instant, lease: int | None = None) -> Reservation:
    """The same hold, under the same token, from now on."""
    length = held.lease if lease is None else lease
    return held.replace(claimed_at=now, lease=length, expires_at=now + length, first_seen=None)


def free_from(held: Reservation) -> Instant:
    """From when on another may claim it without asking: its expiry and the take-over margin."""
    return leases.effective_expiry(held) + TAKE_OVER_MARGIN


def is_taken(held: Reservation, now: Instant) -> bool:
    """Whether another must leave the item alone: it is held, or was until less than the margin ago."""
    return not _over(held) and now < free_from(held)


def footprint_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths below the checkout as they are kept: without "." and doubled slashes, each once, all else verbatim.

    Raises UsageError for an absolute path, one with "..", an empty or an overlong one, and for too many.
    """
    kept: dict[str, None] = {}
    for path in paths:
        parts = [part for part in path.split("/") if part not in ("", ".")]
        wrong = (
            "is empty" if not path.strip() else
            "is absolute" if path.startswith("/") else
            'leads out of the checkout ("..")' if ".." in parts else
            "holds a NUL or a line break" if any(char in path for char in "\0\n\r") else
            f"is longer than {PATH_MAX} characters" if len(path) > PATH_MAX else ""
        )  # fmt: skip
        if wrong:
            raise UsageError(
                f"The footprint {path[:80]!r} {wrong}", kept="Nothing was reserved", do="Name paths inside the checkout"
            )
        kept["/".join(parts) or "."] = None
    if len(kept) > FOOTPRINT_MAX:
        raise UsageError(
            f"{len(kept)} paths are too many for one footprint",
            kept="Nothing was reserved",
            do=f"Name at most {FOOTPRINT_MAX}, or the directories above them",
        )
    return tuple(kept)


def overlapping(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a path of one is a path of the other, or lies below it; "a/bc" does not lie below "a/b"."""
    return any(_below(path, against) or _below(against, path) for path in one for against in other)


def _below(path: str, above: str) -> bool:
    return above == "." or path == above or path.startswith(above + "/")


def _overlap(ask: Claim, held: Reservation) -> bool:
    """Whether another holder's footprint is in the way; one's own never is."""
    same_holder = held.session == ask.session and held.copy == ask.copy
    return not same_holder and overlapping(ask.footprint, held.footprint)


def _over(held: Reservation) -> bool:
    return held.released_at is not None or held.terminal


def _granted(ask: Claim, stored: Reservation | None, how: How, now: Instant) -> Reservation:
    token = stored.token if stored is not None else 0
    kept = stored if stored is not None and how == "renewed" else None
    return Reservation(
        item=ask.item,
        place=ask.place,
        project=ask.project,
        session=ask.session,
        copy=ask.copy,
        root=ask.root,
        title=ask.title or (stored.title if stored is not None else ""),
        claimed_at=now,
        expires_at=now + ask.lease if ask.session else None,
        lease=ask.lease if ask.session else 0,
        token=token if kept else token + 1,
        granted_at=kept.granted_at if kept else now,
        footprint=ask.footprint or (kept.footprint if kept else ()),
        taken_from=kept.taken_from if kept else "",
        nonce=ask.nonce,
    )
