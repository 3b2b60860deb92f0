"""The arithmetic of leases: how long a reservation lives, when it must be renewed, by when to look.

A reservation runs from its claim, or its last renewal, to its expiry. Halfway it is due for
renewal, so a waiting session must look before that; the skew is what it must be earlier by, since
clocks differ. A session's deadline is the earliest such moment among the live reservations of its
copy, whoever in that copy made them; without one it is a fixed time from now.

All instants and durations are whole seconds. May not live here: who may claim what, fencing
tokens, the store.
"""

from __future__ import annotations

from stopwarden.core.bounds import HOUR, LEASE_MAX, LEASE_MIN, MINUTE, SKEW_SHARE, Policy
from stopwarden.core.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stopwarden.core.events import Instant, Reservation

NEVER = 2**62  # the effective expiry of a hold that does not lapse
RETRY_AFTER = 15  # seconds until a renewal that failed is tried again
_AS_SHIPPED = Policy()


def effective_expiry(reservation: Reservation) -> Instant:
    """When the reservation lapses: its stated expiry, at most 24 h after the claim. A person's does not: `NEVER`."""
    if reservation.expires_at is None:
        return NEVER
    return min(reservation.expires_at, reservation.claimed_at + LEASE_MAX)


def lapses_at(reservation: Reservation, now: Instant) -> Instant:
    """When it lapses, told by a clock that says `now`.

    A clock that was set back behind the claim would let it live until the day it is right again: by
    that clock it lives for its lease from when it was first seen.
    """
    ends = effective_expiry(reservation)
    if reservation.first_seen is None or not reservation.first_seen <= now < reservation.claimed_at:
        return ends
    return min(ends, reservation.first_seen + _lease(reservation))


def is_live(reservation: Reservation, now: Instant) -> bool:
    """Whether it holds at `now`. At the very second of its expiry it has lapsed; released or finished, it is over."""
    if reservation.released_at is not None or reservation.terminal:
        return False
    return now < lapses_at(reservation, now)


def renewal_due(reservation: Reservation) -> Instant:
    """Halfway between claim, or last renewal, and expiry; at most half a lease after it was first seen.

    The second term is for a clock that was set back after the claim: by that clock the claim lies in
    the future, and its midpoint would be further away than any renewal may be.
    """
    half = _lease(reservation) // 2
    due = reservation.claimed_at + half
    if reservation.first_seen is None:
        return due
    return min(due, reservation.first_seen + half)


def skew_for(reservation: Reservation, skew: int) -> int:
    """The skew that is kept towards this reservation: as set, at most an eighth of its lease."""
    return min(skew, _lease(reservation) // SKEW_SHARE)


def deadline(
    reservations: Iterable[Reservation], copy: str, now: Instant, policy: Policy, session: str | None = None
) -> Instant:
    """The latest instant at which a session of this copy must look again.

    The earliest renewal due, less the skew, of the live reservations that sessions of this copy
    hold; it may be past. The person's own holds need no renewal. With none it is
    `look_without_reservation` from now, and no skew is taken off. `session`: whose deadline it is.
    """
    return min(
        (_look_by(held, policy) for held in binding(reservations, copy, now, policy, session)),
        default=now + policy.look_without_reservation,
    )


def binding(
    reservations: Iterable[Reservation], copy: str, now: Instant, policy: Policy, session: str | None = None
) -> list[Reservation]:
    """The holds by which the deadline is set.

    What another session of the copy has let become overdue binds this one no longer, since it
    cannot renew it: no wake would ever come in time for it.
    """
    return [
        held
        for held in _live(reservations, copy, now)
        if session in (None, held.session) or _look_by(held, policy) > now
    ]


def overdue(
    reservations: Iterable[Reservation],
    copy: str,
    now: Instant,
    policy: Policy = _AS_SHIPPED,
    session: str | None = None,
) -> tuple[str, ...]:
    """The items of this copy's, or this session's, holds that no wake can keep in time any more: renew these first."""
    return tuple(
        held.item
        for held in _live(reservations, copy, now)
        if _look_by(held, policy) <= now and session in (None, held.session)
    )


def check_lease(seconds: object, *, retry: int = RETRY_AFTER) -> int:
    """The length of a new lease, as it was given, if it is a whole number of seconds from 1 min to 24 h.

    A lease must outlast its renewal due, and that the pause after which a failed renewal is tried
    again, or one failure would lose the hold. Raises SettingError.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        raise SettingError(
            f"A lease of {seconds!r} is no whole number of seconds", kept="Nothing was reserved", do="Give seconds"
        )
    if not LEASE_MIN <= seconds <= LEASE_MAX:
        raise SettingError(
            f"A lease of {seconds} s is not allowed",
            kept="Nothing was reserved",
            do=f"Use {LEASE_MIN // MINUTE} minute to {LEASE_MAX // HOUR} hours",
        )
    due = seconds // 2
    if not seconds > due > retry > 0:
        raise SettingError(
            f"A lease of {seconds} s must be renewed within {due} s, and a retry after {retry} s is not within that",
            kept="Nothing was reserved",
            do="Use a longer lease, or a retry of at least 1 s and less than half the lease",
        )
    return seconds


def _lease(reservation: Reservation) -> int:
    return max(0, effective_expiry(reservation) - reservation.claimed_at)


def _look_by(reservation: Reservation, policy: Policy) -> Instant:
    return renewal_due(reservation) - skew_for(reservation, policy.skew)


def _live(reservations: Iterable[Reservation], copy: str, now: Instant) -> Iterator[Reservation]:
    return (held for held in reservations if held.copy == copy and held.expires_at is not None and is_live(held, now))
