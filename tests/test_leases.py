"""Leases: how long a reservation lives, when it is due for renewal, by when its session must look."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwarden.core.bounds import DAY, HOUR, LEASE_DEFAULT, LEASE_MAX, LEASE_MIN, MINUTE, Policy, policy_from
from stopwarden.core.errors import SettingError
from stopwarden.core.events import Reservation
from stopwarden.core.leases import (
    check_lease,
    deadline,
    effective_expiry,
    is_live,
    overdue,
    renewal_due,
    skew_for,
)
from tests.conftest import at

NOW = at("2026-11-30 21:00")
POLICY = Policy()


def held(claimed: str = "2026-11-30 20:30", lease: int = 2 * HOUR, item: str = "i1", copy: str = "here") -> Reservation:
    start = at(claimed)
    return Reservation(item=item, session="s1", copy=copy, claimed_at=start, expires_at=start + lease)


def look_by(*reservations: Reservation, now: int = NOW, policy: Policy = POLICY) -> int:
    return deadline(reservations, "here", now, policy)


def test_two_hours_from_half_past_eight_are_due_at_half_past_nine() -> None:
    """The midpoint of the lease is the renewal due; five minutes before it is the deadline."""
    assert renewal_due(held()) == at("2026-11-30 21:30")
    assert look_by(held()) == at("2026-11-30 21:25")


@pytest.mark.case("A32")
def test_of_two_reservations_the_earlier_due_governs() -> None:
    """Due at 21:30 and at 21:10: the session must look by 21:05, in whichever order they are listed."""
    sooner = held("2026-11-30 20:10", item="i2")
    assert look_by(held(), sooner) == at("2026-11-30 21:05")
    assert look_by(sooner, held()) == at("2026-11-30 21:05")


@pytest.mark.case("A33")
def test_a_renewal_moves_the_due_on() -> None:
    """Renewed at 21:15 for two hours, it is due at 22:15; what it was due before no longer counts."""
    renewed = held().replace(claimed_at=at("2026-11-30 21:15"), expires_at=at("2026-11-30 23:15"))
    assert look_by(renewed, now=at("2026-11-30 21:20")) == at("2026-11-30 22:10")


@pytest.mark.case("A34", "A35")
@pytest.mark.parametrize("session", ["s1", "another person's"])
def test_reservations_of_other_copies_are_ignored(session: str) -> None:
    """The same person's other checkout, and another person's, have no say here although they are due sooner."""
    elsewhere = held("2026-11-30 20:10", copy="there").replace(session=session)
    assert look_by(held(), elsewhere) == at("2026-11-30 21:25")
    assert look_by(elsewhere) == NOW + HOUR


def test_a_reservation_by_another_session_of_this_copy_counts() -> None:
    """All sessions of a copy are bound by its earliest deadline."""
    assert look_by(held(), held("2026-11-30 20:10").replace(session="s2")) == at("2026-11-30 21:05")


@pytest.mark.case("A36")
def test_an_expired_reservation_is_none() -> None:
    """With nothing but a lapsed reservation the next look is due in one hour, without skew."""
    assert look_by(held("2026-11-30 18:00")) == at("2026-11-30 22:00")
    assert look_by() == at("2026-11-30 22:00")


@pytest.mark.case("A37")
def test_a_released_reservation_is_none() -> None:
    """Given back, it stops counting at once, whatever its expiry said."""
    released = held().replace(released_at=at("2026-11-30 20:45"), expires_at=at("2026-11-30 20:45"))
    assert look_by(released) == NOW + HOUR
    assert look_by(held().replace(released_at=at("2026-11-30 20:45"))) == NOW + HOUR


@pytest.mark.case("A38")
def test_a_reservation_of_a_finished_item_is_none() -> None:
    """When its item is finished the hold is over, although the lease still runs."""
    assert look_by(held().replace(terminal=True)) == NOW + HOUR
    assert not is_live(held().replace(terminal=True), NOW)


def test_the_look_without_a_reservation_is_a_setting() -> None:
    """One hour is the default of `look_without_reservation`; the skew plays no part in it."""
    policy = policy_from({"look_without_reservation": 20 * MINUTE, "skew": 600})
    assert look_by(policy=policy) == NOW + 20 * MINUTE


@pytest.mark.case("A41")
def test_thirty_days_count_as_one() -> None:
    """A stated expiry far ahead is cut to 24 hours after the claim, so the due is twelve hours after it."""
    month = held(lease=30 * DAY)
    assert effective_expiry(month) == at("2026-12-01 20:30")
    assert renewal_due(month) == at("2026-12-01 08:30")
    assert not is_live(month, at("2026-12-01 20:30"))
    assert effective_expiry(held(lease=LEASE_MAX - 1)) == at("2026-12-01 20:30") - 1


@pytest.mark.case("A42")
def test_a_lease_of_twenty_minutes_is_to_be_looked_after_in_seven_and_a_half() -> None:
    """Due in ten minutes, less a skew that is cut to an eighth of the lease, two and a half minutes."""
    short = held("2026-11-30 21:00", lease=20 * MINUTE)
    assert skew_for(short, POLICY.skew) == 150
    assert look_by(short) == NOW + 10 * MINUTE - 150


@pytest.mark.case("A43")
def test_a_lease_of_five_minutes_leaves_time_to_look() -> None:
    """The skew at most an eighth of the lease: the deadline lies ahead where the plain rule puts it in the past."""
    short = held("2026-11-30 21:00", lease=5 * MINUTE)
    assert look_by(short) == NOW + 150 - 37
    assert overdue([short], "here", NOW + 112) == ()
    assert overdue([short], "here", NOW + 113) == ("i1",)


@pytest.mark.case("A44")
def test_an_overdue_renewal_leaves_a_deadline_in_the_past_and_is_named() -> None:
    """Claimed at 20:00 the deadline was 20:55; at 21:00 the items to renew first are told by id."""
    late = held("2026-11-30 20:00", item="i7")
    assert look_by(late, held("2026-11-30 20:50")) == at("2026-11-30 20:55")
    assert overdue([late, held("2026-11-30 20:50")], "here", NOW) == ("i7",)


def test_what_is_released_lapsed_or_elsewhere_is_never_overdue() -> None:
    """Nobody is asked to renew what is no longer theirs."""
    late = held("2026-11-30 20:00")
    gone = [
        late.replace(released_at=NOW),
        late.replace(terminal=True),
        held("2026-11-30 18:00"),
        held("2026-11-30 20:00", copy="there"),
    ]
    assert overdue(gone, "here", NOW) == ()


def test_the_time_between_deadline_and_due_is_overdue_too() -> None:
    """From 21:25 on no wake can come in time any more, so the renewal is asked for from then, not from 21:30."""
    assert overdue([held()], "here", at("2026-11-30 21:24:59")) == ()
    assert overdue([held()], "here", at("2026-11-30 21:25")) == ("i1",)
    assert overdue([held()], "here", at("2026-11-30 21:25"), policy_from({"skew": 0})) == ()
    assert overdue([held()], "here", at("2026-11-30 21:30"), policy_from({"skew": 0})) == ("i1",)


@pytest.mark.case("A58")
@pytest.mark.parametrize("skew, expected", [(0, "21:30"), (300, "21:25"), (600, "21:20"), (3_600, "21:15")])
def test_the_skew_moves_the_deadline(skew: int, expected: str) -> None:
    """None, five, ten minutes as set; an hour is cut to an eighth of the two hours' lease."""
    assert look_by(held(), policy=policy_from({"skew": skew})) == at(f"2026-11-30 {expected}")


@pytest.mark.case("A58")
@pytest.mark.parametrize("skew", [-1, -300, 3_601, 2.5, "300", True])
def test_a_skew_below_nothing_is_refused(skew: object) -> None:
    """A negative skew would let a wake come after the renewal is due; it is no setting."""
    with pytest.raises(SettingError, match="skew"):
        policy_from({"skew": skew})


@pytest.mark.case("A107")
def test_a_clock_set_back_two_hours_does_not_put_the_renewal_off() -> None:
    """Claimed at 20:30, then the clock says 18:30: due half a lease from first sight, not at 21:30 of that clock."""
    back = at("2026-11-30 18:30")
    seen = held().replace(first_seen=back)
    assert renewal_due(seen) == back + HOUR
    assert look_by(seen, now=back) == back + 55 * MINUTE


def test_first_sight_after_the_claim_puts_nothing_off() -> None:
    """Seen late, a reservation is still due halfway from its claim."""
    assert renewal_due(held().replace(first_seen=at("2026-11-30 20:50"))) == at("2026-11-30 21:30")
    assert renewal_due(held().replace(first_seen=at("2026-11-30 20:30"))) == at("2026-11-30 21:30")


@pytest.mark.case("A108")
def test_a_clock_set_forward_past_the_expiry_ends_the_reservation() -> None:
    """Three hours on it has lapsed by every clock's reading; the next look is one hour from then."""
    later = NOW + 3 * HOUR
    assert is_live(held(), NOW)
    assert not is_live(held(), later)
    assert look_by(held(), now=later) == later + HOUR


@pytest.mark.case("A110")
def test_a_lease_lives_to_the_second_before_its_expiry() -> None:
    """One second before expiry it holds; at the second of expiry it has lapsed."""
    assert is_live(held(), at("2026-11-30 22:30") - 1)
    assert not is_live(held(), at("2026-11-30 22:30"))
    assert look_by(held(), now=at("2026-11-30 22:30") - 1) == at("2026-11-30 21:25")
    assert look_by(held(), now=at("2026-11-30 22:30")) == at("2026-11-30 23:30")


@pytest.mark.case("A111")
@pytest.mark.parametrize("seconds", [59, 0, -1, 25 * HOUR, LEASE_MAX + 1, 90.0, "7200", None, True])
def test_a_lease_outside_a_minute_and_a_day_is_refused(seconds: object) -> None:
    """59 seconds and 25 hours are refused before anything is done, as is what is no whole number."""
    with pytest.raises(SettingError, match="Nothing was reserved") as caught:
        check_lease(seconds)
    assert isinstance(seconds, int) is ("Use 1 minute to 24 hours" in str(caught.value)) or seconds is True


@pytest.mark.parametrize("seconds", [LEASE_MIN, 61, LEASE_DEFAULT, LEASE_MAX])
def test_a_lease_from_a_minute_to_a_day_is_taken(seconds: int) -> None:
    """Both ends are allowed."""
    assert check_lease(seconds) == seconds


@pytest.mark.parametrize(
    "retry, allowed", [(0, False), (-5, False), (1, True), (29, True), (30, False), (60, False), (90, False)]
)
def test_a_lease_outlasts_its_due_and_the_due_outlasts_the_retry(retry: int, allowed: bool) -> None:
    """A minute's lease is due after 30 s; a failed renewal must be tried again before that."""
    if allowed:
        assert check_lease(60, retry=retry) == 60
    else:
        with pytest.raises(SettingError, match="less than half the lease"):
            check_lease(60, retry=retry)


@given(
    claimed=st.integers(0, 2**32),
    lease=st.integers(-DAY, 40 * DAY),
    first_seen=st.none() | st.integers(0, 2**32),
    ago=st.integers(0, 2 * DAY),
    skew=st.integers(0, HOUR),
)
def test_a_live_reservation_is_looked_after_before_it_lapses(
    claimed: int, lease: int, first_seen: int | None, ago: int, skew: int
) -> None:
    """Whatever the lease, claim <= deadline <= renewal due <= expiry, and at least 3/8 of a lease is left to wait."""
    held = Reservation(
        item="i", session="s", copy="c", claimed_at=claimed, expires_at=claimed + lease, first_seen=first_seen
    )
    if not is_live(held, claimed + ago):
        return
    length = effective_expiry(held) - claimed
    look = deadline([held], "c", claimed + ago, policy_from({"skew": skew}))
    assert look <= renewal_due(held) <= claimed + length / 2
    assert effective_expiry(held) <= claimed + DAY
    if first_seen is None or first_seen >= claimed:
        assert look >= claimed + length // 2 - length / 8
    else:
        assert look <= first_seen + length / 2
