"""The rules of holds under any order of events: at most one holder, tokens that rise by one, nobody else's hold touched."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from stopwarden.core import leases
from stopwarden.core import reservations as rules
from stopwarden.core.bounds import DAY, HOUR, LEASE_MAX, LEASE_MIN, MINUTE, RESERVATIONS_MAX, TAKE_OVER_MARGIN
from stopwarden.core.events import Reservation
from stopwarden.core.reservations import Claim, Denied, Granted
from stopwarden.work import reservations as acts

SESSIONS = st.sampled_from(["a", "b", "c", ""])  # "" is the person
COPIES = st.sampled_from(["here", "there"])
ITEMS = st.sampled_from(["i1", "i2", "i3"])
LEASES = st.one_of(st.sampled_from([LEASE_MIN, 2 * HOUR, LEASE_MAX]), st.integers(LEASE_MIN, LEASE_MAX))
PATHS = st.lists(st.sampled_from(["src", "src/a", "src/ab", "docs", "."]), max_size=2, unique=True)
STEPS = st.one_of(
    st.sampled_from([0, 1, MINUTE, TAKE_OVER_MARGIN - 1, TAKE_OVER_MARGIN, HOUR, 2 * HOUR, DAY]),
    st.integers(0, 2 * DAY),
)


class Holds(RuleBasedStateMachine):
    """A world of three items, three sessions and the person in two copies; time goes on as it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Reservation] = {}
        self.now = 0
        self.grants: list[tuple[str, str, int]] = []  # item, session, token

    @initialize(at=st.integers(0, 2**31))
    def begin(self, at: int) -> None:
        self.now = at

    def put(self, done: Granted) -> None:
        """Stores an act and holds it to what every act keeps."""
        before, row = self.rows.get(done.row.item), done.row
        token = before.token if before is not None else 0
        granted = done.how in ("new", "again", "took_over", "moved")
        assert row.token == token + granted, "a grant has the next token, anything else keeps it"
        if not granted and before is not None:
            assert (row.session, row.copy) == (before.session, before.copy)
        if granted:
            self.grants.append((row.item, row.session, row.token))
        self.rows[row.item] = row

    @rule(seconds=STEPS)
    def time_goes_on(self, seconds: int) -> None:
        self.now += seconds

    @rule(item=ITEMS, session=SESSIONS, copy=COPIES, lease=LEASES, paths=PATHS, over=st.booleans(), gone=st.booleans())
    def claims(self, item: str, session: str, copy: str, lease: int, paths: list[str], over: bool, gone: bool) -> None:
        stored = self.rows.get(item)
        ask = Claim(
            item=item, place="p", project="p", session=session, copy=copy, lease=lease, footprint=tuple(paths),
            take_over=over, from_others=over and not session,
        )  # fmt: skip
        gone = gone and stored is not None and bool(stored.session) and stored.session != session
        held = [row for row in self.rows.values() if row.released_at is None]
        done = rules.claim(ask, stored, held, self.now, gone=gone)
        if isinstance(done, Denied):
            return
        if stored is not None and stored.session != session and stored.released_at is None:
            kept = self.now < leases.effective_expiry(stored) + TAKE_OVER_MARGIN
            assert gone or not kept or (over and not session), "another's hold was granted before its time"
            assert stored.session or over, "the person's hold was taken"
        for other in held:
            if (
                other.item != item
                and (other.session, other.copy) != (session, copy)
                and rules.is_taken(other, self.now)
            ):
                assert not (paths and rules.overlapping(paths, other.footprint)), "two work on the same files"
        mine = [row for row in held if row.session == session and leases.is_live(row, self.now)]
        assert not session or done.how == "renewed" or len(mine) <= RESERVATIONS_MAX
        self.put(done)
        assert leases.is_live(self.rows[item], self.now)

    @rule(item=ITEMS, session=SESSIONS, lease=st.none() | LEASES, token=st.none() | st.integers(0, 6))
    def renews(self, item: str, session: str, lease: int | None, token: int | None) -> None:
        stored = self.rows.get(item)
        done = rules.renew(stored, session, self.now, lease=lease, token=token)
        if isinstance(done, Granted):
            assert stored is not None
            assert stored.session == session, "another's hold was renewed"
            assert leases.is_live(stored, self.now), "what had lapsed was renewed"
            assert token in (None, stored.token)
            self.put(done)

    @rule(session=SESSIONS)
    def works(self, session: str) -> None:
        holds = [row for row in self.rows.values() if row.session == session]
        for row in acts.renew_own(holds, self.now):
            assert session
            assert leases.is_live(self.rows[row.item], self.now)
            self.put(Granted(how="renewed", row=row))

    @rule(item=ITEMS, session=SESSIONS, copy=COPIES, done=st.booleans(), token=st.none() | st.integers(0, 6))
    def releases(self, item: str, session: str, copy: str, done: bool, token: int | None) -> None:
        stored = self.rows.get(item)
        told = rules.release(stored, session, self.now, why_done=done, token=token, copy=copy)
        if isinstance(told, Granted) and told.how == "released":
            assert stored is not None
            assert (stored.session, stored.copy) == (session, copy), "another's hold was given back"
            assert token in (None, stored.token)
            self.put(told)
            assert not leases.is_live(told.row, self.now)

    @invariant()
    def only_the_last_grant_passes_the_fence(self) -> None:
        """Of all that were ever granted an item, nobody but the last may write, and that one while its lease runs."""
        for item, session, token in self.grants:
            row = self.rows[item]
            refused = rules.fence(row, session, self.now, token=token)
            if token != row.token or not leases.is_live(row, self.now):
                assert refused is not None
            else:
                assert refused is None
                assert session == row.session

    @invariant()
    def at_most_one_session_may_write(self) -> None:
        """Where an item is held, no other session may write to it."""
        for row in self.rows.values():
            if rules.is_taken(row, self.now):
                allowed = [one for one in ("a", "b", "c") if rules.fence(row, one, self.now) is None]
                assert allowed == ([row.session] if row.session and leases.is_live(row, self.now) else [])

    @invariant()
    def tokens_are_dense(self) -> None:
        """One to the last, each given once."""
        for item, row in self.rows.items():
            assert [token for one, _, token in self.grants if one == item] == list(range(1, row.token + 1))


def check_histories(how: settings) -> None:
    """Plays random acts; every rule and invariant of the machine is asserted after each."""
    run_state_machine_as_test(Holds, settings=how)


@pytest.mark.case("A129", "A113")
def test_at_most_one_holder_and_dense_tokens_whatever_is_done_in_whichever_order() -> None:
    """One may write at any time, every earlier grant is kept out by its number, and no act touches another's hold."""
    check_histories(settings(max_examples=100, stateful_step_count=40, deadline=None))
