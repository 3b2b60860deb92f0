"""Who may hold an item: claims, take-overs, renewals, releases and fences, as values.

Theory of operation. An item has at most one reservation, that of its last grant. A claim is
granted where nobody holds the item: it was never held, it was released, its lease ran out at
least the take-over margin ago, or its holder is known to be gone. Each grant carries a token that is
one higher than the last, so whoever lost the item is told apart from whoever has it now. `fence`
is asked in the transaction of every protected write: a holder that slept past its lease writes
nothing, whether or not somebody has come since.

Sessions are the holders, each in one copy; the person's own hold (no session) does not lapse. Who
goes on in another copy moves the hold there first, and only the person takes what another holds
now. Footprints are paths below the checkout; two that overlap would be edited twice, so the second
is refused, in whichever copy of the project.

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
    Why = Literal["held", "margin", "elsewhere", "footprint", "too_many", "lapsed", "not_held", "fence"]

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
    take_over: bool = False  # also from another copy, if it is one's own
    from_others: bool = False  # and also what another holds now: only the person may say so
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

    `stored` is the item's reservation, `others` those not released that may be in the way: of this
    session, and where paths are named, of the project. `gone` says that the holder is known to have
    ended, so that no margin is needed.
    """
    how = _how(ask, stored, now, gone=gone)
    if isinstance(how, Denied):
        return how
    kept = stored.footprint if stored is not None and how in ("renewed", "again", "moved") else ()
    footprint = ask.footprint or kept
    other_holds = [held for held in others if (held.place, held.item) != (ask.place, ask.item)]
    if ask.footprint or how != "renewed":
        in_the_way = tuple(held for held in other_holds if is_taken(held, now) and _in_the_way(ask, footprint, held))
        if in_the_way:
            return Denied(why="footprint", by=in_the_way, until=_until(in_the_way[0], now))
    mine = tuple(held for held in other_holds if held.session == ask.session and leases.is_live(held, now))
    if how != "renewed" and ask.session and len(mine) >= RESERVATIONS_MAX:
        return Denied(why="too_many", by=mine)
    row = _granted(ask, stored, how, footprint, now)
    if stored is None or how not in ("took_over", "moved"):
        return Granted(how=how, row=row)
    taken_from = stored.session if how == "took_over" else ""
    return Granted(how=how, row=row.replace(taken_from=taken_from), replaced=stored)


def _how(ask: Claim, stored: Reservation | None, now: Instant, *, gone: bool) -> How | Denied:
    """How the item comes to who asks for it, or why it does not, other holds aside."""
    if stored is None or _over(stored):
        return "new"
    if stored.session == ask.session:
        if not leases.is_live(stored, now):
            return "again"
        if stored.copy == ask.copy:
            return "renewed"
        return "moved" if ask.take_over else Denied(why="elsewhere", by=(stored,), until=stored.expires_at)
    if gone or not is_taken(stored, now) or (ask.take_over and ask.from_others):
        return "took_over"
    return Denied(why="held" if leases.is_live(stored, now) else "margin", by=(stored,), until=_until(stored, now))


def renew(
    stored: Reservation | None,
    session: str,
    now: Instant,
    *,
    lease: int | None = None,
    token: int | None = None,
    copy: str = "",
) -> Granted | Denied:
    """Extends a live hold by its lease from now on, once half of it has gone by; with `lease` at once, by that."""
    refused = fence(stored, session, now, token=token, copy=copy, holder_only=True)
    if refused is not None or stored is None:
        return refused or Denied(why="not_held")
    if stored.expires_at is None or (lease is None and stored.claimed_at <= now and not is_due(stored, now)):
        return Granted(how="not_yet", row=stored)
    return Granted(how="renewed", row=renewed(stored, now, lease))


def release(
    stored: Reservation | None,
    session: str,
    now: Instant,
    *,
    why_done: bool = False,
    token: int | None = None,
    copy: str = "",
) -> Granted | Denied:
    """Ends a hold of one's own, also one that lapsed. What is released already stays so.

    Refused are another's hold, one's own in another copy, and a token that is not the item's last.
    """
    if stored is None:
        return Denied(why="not_held")
    if token is not None and token != stored.token:
        return Denied(why="fence", by=(stored,), until=_until(stored, now))
    if _over(stored):
        return Granted(how="nothing", row=stored)
    if stored.session != session:
        return Denied(why="held", by=(stored,), until=_until(stored, now))
    if copy and stored.copy != copy:
        return Denied(why="elsewhere", by=(stored,), until=_until(stored, now))
    return Granted(how="released", row=stored.replace(released_at=now, terminal=why_done))


def fence(
    stored: Reservation | None,
    session: str,
    now: Instant,
    *,
    token: int | None = None,
    copy: str = "",
    holder_only: bool = False,
) -> Denied | None:
    """Why a protected write to the item is refused to this session, or None.

    Refused are: whoever is not the holder while another holds it, or did until a margin ago; a
    holder whose lease ran out; a token that is not the item's last; and with `copy`, the holder in
    another copy. The person (session "") may write where sessions hold, unless a token is given.
    `holder_only`: and who holds nothing.
    """
    if stored is None or _over(stored):
        return Denied(why="not_held") if holder_only or token is not None else None
    if token is not None and token != stored.token:
        return Denied(why="fence", by=(stored,), until=_until(stored, now))
    if stored.session == session:
        if not leases.is_live(stored, now):
            return Denied(why="lapsed", by=(stored,), until=stored.expires_at)
        return Denied(why="elsewhere", by=(stored,), until=stored.expires_at) if copy and copy != stored.copy else None
    if not session and not holder_only and token is None:
        return None
    if is_taken(stored, now) or holder_only:
        return Denied(why="held", by=(stored,), until=_until(stored, now))
    return None


def is_due(held: Reservation, now: Instant) -> bool:
    """Whether at least half the lease has gone by."""
    return now >= leases.renewal_due(held)


def is_overdue(held: Reservation, now: Instant, policy: Policy) -> bool:
    """Whether no wake can keep it in time any more, or the clock was set back behind it: a stop renews it first."""
    return now >= leases.renewal_due(held) - leases.skew_for(held, policy.skew) or now < held.claimed_at


def renewed(held: Reservation, now: Instant, lease: int | None = None) -> Reservation:
    """The same hold, under the same token, from now on."""
    length = held.lease if lease is None else lease
    return held.replace(claimed_at=now, lease=length, expires_at=now + length, first_seen=None)


def free_from(held: Reservation, now: Instant) -> Instant:
    """From when on another may claim it without asking: its expiry and the take-over margin."""
    return leases.lapses_at(held, now) + TAKE_OVER_MARGIN


def is_taken(held: Reservation, now: Instant) -> bool:
    """Whether another must leave the item alone: it is held, or was until less than the margin ago."""
    return not _over(held) and now < free_from(held, now)


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


def _in_the_way(ask: Claim, footprint: Sequence[str], held: Reservation) -> bool:
    """Whether another holder's footprint overlaps; one's own in the same copy never does harm."""
    same_holder = held.session == ask.session and held.copy == ask.copy
    return not same_holder and held.project == ask.project and overlapping(footprint, held.footprint)


def _until(held: Reservation, now: Instant) -> Instant | None:
    """Until when it is another's: its expiry, and once that is past the end of the margin. None: it does not lapse."""
    return held.expires_at if held.expires_at is None or leases.is_live(held, now) else free_from(held, now)


def _over(held: Reservation) -> bool:
    return held.released_at is not None or held.terminal


def _granted(ask: Claim, stored: Reservation | None, how: How, footprint: tuple[str, ...], now: Instant) -> Reservation:
    kept = stored if how == "renewed" else None
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
        token=kept.token if kept is not None else stored.token + 1 if stored is not None else 1,
        granted_at=kept.granted_at if kept is not None else now,
        footprint=footprint,
        taken_from=kept.taken_from if kept is not None else "",
        nonce=ask.nonce,
    )
