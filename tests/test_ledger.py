"""The ledger: what follows what, what is ready and in which order, and acts that a hold may refuse."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwarden.core import ledger as rules
from stopwarden.core.bounds import HOUR, LEASE_DEFAULT, MINUTE, TAKE_OVER_MARGIN, TITLE_MAX
from stopwarden.core.errors import RefusedError, StoreUnwritableError, UsageError
from stopwarden.core.reservations import Claim, Denied
from stopwarden.store.memory import MemoryStore
from stopwarden.store.port import LedgerItem, Store
from stopwarden.store.sqlite import open_sqlite
from stopwarden.work import ledger, reservations
from stopwarden.work.ledger import Ended, Failed, Passed, Started
from stopwarden.work.reservations import Actor
from tests.conftest import at

NINE = at("2026-11-30 21:00")
PERSON = Actor(project="p")
MINE = Actor(project="p", session="mine", copy="here", root="/repo")
OTHER = Actor(project="p", session="other", copy="here", root="/repo")


class Clock:
    """Says the time it is told."""

    def __init__(self) -> None:
        self.now = NINE

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    (tmp_path / "state").mkdir(mode=0o700)
    opened = open_sqlite(str(tmp_path / "state"))
    yield opened
    opened.close()


def added(store: Store, clock: Clock, *titles: str) -> list[int]:
    """Items one after another, a second apart."""
    numbers = []
    for title in titles:
        numbers.append(ledger.add(store, "p", title, clock).number)
        clock.now += 1
    return numbers


def item(store: Store, number: int) -> LedgerItem:
    found = store.ledger_item(number)
    assert found is not None
    return found


def began(told: Started | Denied) -> Started:
    assert isinstance(told, Started), told
    return told


# --- what is ready --------------------------------------------------------------------------------


@pytest.mark.case("A138")
def test_ready_work_is_ordered_by_priority_then_age_then_number(store: Store, clock: Clock) -> None:
    """Most urgent first; among equals the one that has waited longest; of two born together the lower number."""
    clock.now = NINE + 50
    late = ledger.add(store, "p", "late", clock).number
    clock.now = NINE
    early, twin = ledger.add(store, "p", "early", clock).number, ledger.add(store, "p", "twin", clock).number
    clock.now = NINE + 90
    urgent = ledger.add(store, "p", "urgent", clock, priority=0).number
    someday = ledger.add(store, "p", "someday", clock, priority=4).number
    ledger.add(store, "q", "of another project", clock, priority=0)
    expected = [urgent, early, twin, late, someday]
    assert [one.number for one in store.ready_items("p", 99)] == expected
    assert [one.number for one in rules.ready(store.ledger_items("p"), store.ledger_items())] == expected
    assert [one.number for one in store.ready_items("p", 2)] == expected[:2]


def test_what_comes_after_something_is_ready_once_that_is_done_or_dropped(store: Store, clock: Clock) -> None:
    """Waiting or begun is not over; all that an item comes after must be."""
    first, second, third = added(store, clock, "a", "b", "c")
    ledger.change(store, PERSON, third, clock, needs=[first, second])
    assert [one.number for one in store.ready_items("p", 9)] == [first, second]
    ledger.start(store, PERSON, first, clock)
    ledger.wait(store, PERSON, second, clock, "external")
    assert store.ready_items("p", 9) == []
    ledger.finish(store, PERSON, first, clock)
    assert store.ready_items("p", 9) == []
    ledger.drop(store, PERSON, second, clock)
    assert [one.number for one in store.ready_items("p", 9)] == [third]
    ledger.change(store, PERSON, first, clock, reopen=True)
    assert [one.number for one in store.ready_items("p", 9)] == [first]


STATES = st.sampled_from(["open", "open", "doing", "done", "dropped", "waiting", "handed_back"])
ITEMS = st.lists(
    st.tuples(STATES, st.integers(0, 4), st.integers(0, 3), st.lists(st.integers(1, 9), max_size=3, unique=True)),
    max_size=9,
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    """Two stores that get the same items, for every example other ones of another project."""
    (state := tmp_path_factory.mktemp("both") / "state").mkdir(mode=0o700)
    real = open_sqlite(str(state))
    yield real, MemoryStore()
    real.close()


@settings(max_examples=60, deadline=None)
@given(items=ITEMS)
def test_the_database_and_the_rules_agree_on_what_is_ready(
    both: tuple[Store, Store], items: list[tuple[str, int, int, list[int]]]
) -> None:
    """Whatever the states, priorities, ages and needs: SQL, the memory store and the pure rule give one order."""
    real, memory = both
    last = len(memory.ledger_items())
    project = f"p{last}-{len(items)}"
    for state, priority, age, needs in items:
        one = LedgerItem(
            project=project,
            title="x",
            state=state,
            priority=priority,
            created_at=age,
            needs=tuple(last + need for need in needs if need <= len(items)),
        )
        assert real.add_ledger_item(one) == memory.add_ledger_item(one)
    expected = [one.number for one in rules.ready(memory.ledger_items(project), memory.ledger_items())]
    assert [one.number for one in real.ready_items(project, 99)] == expected
    assert [one.number for one in memory.ready_items(project, 99)] == expected


@settings(max_examples=100, deadline=None)
@given(edges=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), max_size=20))
def test_needs_never_form_a_circle(edges: list[tuple[int, int]]) -> None:
    """A change that would close one is refused and changes nothing; the way it names is one, step by step."""
    store, clock = MemoryStore(), Clock()
    added(store, clock, *"abcdefg")
    for number, need in edges:
        known = {one.number: one.needs for one in store.ledger_items("p")}
        way = rules.circle(number, (*known[number], need), known)
        if not way:
            ledger.change(store, PERSON, number, clock, needs=[need])
            continue
        with pytest.raises(UsageError) as refused:
            ledger.change(store, PERSON, number, clock, needs=[need])
        assert way[0] == way[-1] == number
        assert " after ".join(f"w{one}" for one in way) in refused.value.happened
        after = {**known, number: (*known[number], need)}
        assert all(then in after[one] for one, then in zip(way, way[1:], strict=False))
        assert item(store, number).needs == known[number]
    left = {one.number: set(one.needs) for one in store.ledger_items("p")}
    while left:  # whatever has no needs goes: nothing that waits for itself is left
        free = [number for number, needs in left.items() if not needs & left.keys()]
        assert free
        for number in free:
            del left[number]


def test_ten_thousand_items_are_read_in_order_without_reading_them_all(tmp_path: pathlib.Path) -> None:
    """The head of the queue does not cost more than a small ledger's would, times a little."""
    (tmp_path / "state").mkdir(mode=0o700)
    store = open_sqlite(str(tmp_path / "state"))
    try:
        with store.transaction():
            for number in range(1, 10_001):
                needs = (number - 1,) if number % 3 == 0 else ()
                store.add_ledger_item(
                    LedgerItem(project="p", title=f"item {number}", priority=number % 5, needs=needs, created_at=number)
                )
        began_at = time.process_time()
        head = store.ready_items("p", 20)
        read = time.process_time()
        store.ledger_items("p")
        whole = time.process_time() - read
        assert [one.number for one in head[:3]] == [5, 10, 20]
        assert all(one.priority == 0 for one in head)
        assert read - began_at < whole, "the head of the queue costs more than reading the whole ledger"
        assert rules.circle(1, [9_999], {one.number: one.needs for one in store.ledger_items("p")}) == ()
    finally:
        store.close()


# --- adding and changing ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attempt, said",
    [
        (lambda store, clock: ledger.add(store, "p", " \n ", clock), "no title"),
        (lambda store, clock: ledger.add(store, "p", "x", clock, priority=5), "no priority 5"),
        (lambda store, clock: ledger.add(store, "p", "x", clock, priority=-1), "no priority -1"),
        (lambda store, clock: ledger.add(store, "p", "x", clock, needs=[99]), "no w99"),
        (lambda store, clock: ledger.add(store, "p", "x", clock, needs=[2]), "another project"),
        (lambda store, clock: ledger.add(store, "p", "x", clock, needs=range(1, 200)), "too many"),
        (lambda store, clock: ledger.add(store, "p", "x", clock, verify="a\0b"), "NUL"),
        (lambda store, clock: ledger.add(store, "p", "x", clock, verify="x" * 5_000), "4,000"),
        (lambda store, clock: ledger.change(store, PERSON, 1, clock, needs=[1]), "w1 after w1"),
        (lambda store, clock: ledger.change(store, PERSON, 2, clock, priority=1), "another project"),
        (lambda store, clock: ledger.finish(store, PERSON, 99, clock), "no w99"),
        (lambda store, clock: ledger.finish(store, PERSON, 10**14, clock), "no w1"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    attempt: Callable[[Store, Clock], object], said: str, store: Store, clock: Clock
) -> None:
    """Unknown ids, other projects, priorities out of range, circles, hostile commands."""
    ledger.add(store, "p", "mine", clock)
    ledger.add(store, "q", "of another project", clock)
    before = store.ledger_items()
    with pytest.raises(UsageError, match=said):
        attempt(store, clock)
    assert store.ledger_items() == before


def test_a_hostile_title_is_one_plain_line(store: Store, clock: Clock) -> None:
    """Line breaks, escapes, text that reads backwards and fifty kilobytes go; the words stay."""
    number = ledger.add(store, "p", "fix\n\x1b[31mred\u202egnihtyna\0 " + "x" * 50_000, clock).number
    title = item(store, number).title
    assert title.startswith("fix [31mredgnihtyna xxx")
    assert title.isprintable()
    assert len(title) == TITLE_MAX


def test_was_tells_of_changes_of_state_and_of_nothing_else(store: Store, clock: Clock) -> None:
    """A stop is judged by it: another priority must not hide that the agent has just parked the item."""
    (number,) = added(store, clock, "a")
    clock.now = NINE + HOUR
    ledger.wait(store, PERSON, number, clock, "person", "which one?")
    parked = item(store, number)
    assert (parked.was, parked.changed_at) == ("open", NINE + HOUR)
    clock.now += HOUR
    ledger.change(store, PERSON, number, clock, priority=0, title="b")
    ledger.wait(store, PERSON, number, clock, "external", "the build")
    still = item(store, number)
    assert (still.was, still.changed_at, still.priority, still.title) == ("open", NINE + HOUR, 0, "b")
    assert (still.waits_on, still.why) == ("external", "the build")
    ledger.start(store, PERSON, number, clock)
    begun = item(store, number)
    assert (begun.state, begun.was, begun.changed_at, begun.waits_on, begun.why) == (
        "doing",
        "waiting",
        clock.now,
        "",
        "",
    )


# --- beginning and finishing ------------------------------------------------------------------------


def test_a_session_that_begins_an_item_holds_it_and_the_person_holds_nothing(store: Store, clock: Clock) -> None:
    """One step: begun, assigned and reserved; begun again it is renewed under the same token."""
    first, second = added(store, clock, "a", "b")
    held = began(ledger.start(store, MINE, first, clock, nonce="n")).held
    assert held is not None
    assert (held.session, held.token, held.expires_at) == ("mine", 1, clock.now + LEASE_DEFAULT)
    assert (item(store, first).state, item(store, first).assigned) == ("doing", "mine")
    clock.now += HOUR
    again = began(ledger.start(store, MINE, first, clock)).held
    assert again is not None
    assert (again.token, again.expires_at) == (1, clock.now + LEASE_DEFAULT)
    assert began(ledger.start(store, PERSON, second, clock)).held is None
    assert store.reservation("p", "w2") is None


def test_what_another_holds_is_not_begun_by_anybody(store: Store, clock: Clock) -> None:
    """Not by a session, and not by the person without moving it; nothing is written."""
    (number,) = added(store, clock, "a")
    ledger.start(store, MINE, number, clock)
    before = item(store, number)
    for by in (OTHER, PERSON):
        told = ledger.start(store, by, number, clock)
        assert isinstance(told, Denied)
        assert (told.why, told.by[0].session, told.until) == ("held", "mine", clock.now + LEASE_DEFAULT)
    assert item(store, number) == before
    clock.now += LEASE_DEFAULT + TAKE_OVER_MARGIN
    assert began(ledger.start(store, OTHER, number, clock)).item.assigned == "other"


@pytest.mark.parametrize("act", ["finish", "wait", "drop", "change", "fail"])
@pytest.mark.parametrize("lost", ["lapsed", "taken"])
def test_a_session_that_slept_past_its_lease_writes_nothing(act: str, lost: str, store: Store, clock: Clock) -> None:
    """Whether or not somebody came since; also a failed command leaves no trace then."""
    (number,) = added(store, clock, "a")
    ledger.start(store, MINE, number, clock)
    clock.now += LEASE_DEFAULT
    if lost == "taken":
        clock.now += TAKE_OVER_MARGIN
        began(ledger.start(store, OTHER, number, clock))
    before = item(store, number)
    told: object = {
        "finish": lambda: ledger.finish(store, MINE, number, clock),
        "fail": lambda: ledger.finish(store, MINE, number, clock, ran=Failed(digest="x")),
        "wait": lambda: ledger.wait(store, MINE, number, clock, "external", "x"),
        "drop": lambda: ledger.drop(store, MINE, number, clock),
        "change": lambda: ledger.change(store, MINE, number, clock, reopen=True),
    }[act]()
    assert isinstance(told, Denied)
    assert told.why == {"lapsed": "lapsed", "taken": "held"}[lost]
    assert item(store, number) == before


def test_a_process_stopped_within_an_act_past_its_lease_undoes_it(store: Store, clock: Clock) -> None:
    """The clock is asked again after the write: what was written a lease ago by the clock is taken back."""
    (number,) = added(store, clock, "a")
    ledger.start(store, MINE, number, clock)
    readings = iter([NINE + 10, NINE + 10, NINE + 10 + LEASE_DEFAULT])
    told = ledger.finish(store, MINE, number, lambda: next(readings))
    assert isinstance(told, Denied)
    assert told.why == "lapsed"
    assert item(store, number).state == "doing"


def test_a_token_that_is_not_the_last_finishes_nothing(store: Store, clock: Clock) -> None:
    """A session that has the item again under a new token cannot finish what it began under the old one."""
    (number,) = added(store, clock, "a")
    ledger.start(store, MINE, number, clock)
    clock.now += LEASE_DEFAULT
    again = began(ledger.start(store, MINE, number, clock)).held
    assert again is not None
    assert again.token == 2
    told = ledger.finish(store, MINE, number, clock, token=1)
    assert isinstance(told, Denied)
    assert told.why == "fence"
    assert isinstance(ledger.finish(store, MINE, number, clock, token=2), Ended)


def test_finishing_ends_the_hold_in_the_same_step(store: Store, clock: Clock) -> None:
    """Also when the person finishes what a session holds: that session's hold is over for good."""
    first, second = added(store, clock, "a", "b")
    for number, by in ((first, MINE), (second, PERSON)):
        ledger.start(store, MINE, number, clock)
        told = ledger.finish(store, by, number, clock)
        assert isinstance(told, Ended)
        assert told.released == "mine"
        held = store.reservation("p", f"w{number}")
        assert held is not None
        assert held.terminal
        assert held.released_at == clock.now
        assert item(store, number).done_by == by.session
    assert isinstance(ledger.finish(store, MINE, first, clock), Ended)  # twice is no failure


@pytest.mark.case("BR-022")
def test_an_item_with_a_command_is_done_only_when_the_command_passed(store: Store, clock: Clock) -> None:
    """A session's word is refused; a failure leaves it owed as it was; a pass says when; the person may overrule."""
    number = ledger.add(store, "p", "a", clock, verify="make check").number
    ledger.start(store, MINE, number, clock)
    with pytest.raises(RefusedError, match="when its command passed: make check"):
        ledger.finish(store, MINE, number, clock)
    told = ledger.finish(store, MINE, number, clock, ran=Failed(digest="abc"))
    assert isinstance(told, Ended)
    assert (told.item.state, told.item.failure, told.item.verified_at, told.released) == ("doing", "abc", None, "")
    assert store.reservation("p", f"w{number}").released_at is None  # type: ignore[union-attr]
    clock.now += MINUTE
    told = ledger.finish(store, MINE, number, clock, ran=Passed())
    assert isinstance(told, Ended)
    assert (told.item.state, told.item.failure, told.item.verified_at) == ("done", "", clock.now)
    ledger.change(store, PERSON, number, clock, reopen=True)
    assert item(store, number).verified_at is None
    told = ledger.finish(store, PERSON, number, clock)
    assert isinstance(told, Ended)
    assert (told.item.state, told.item.verified_at) == ("done", None)


def test_what_is_over_or_comes_later_is_not_begun(store: Store, clock: Clock) -> None:
    """The error names what comes first, or how to open it again."""
    first, second = added(store, clock, "a", "b")
    ledger.change(store, PERSON, second, clock, needs=[first])
    with pytest.raises(RefusedError, match=r"w2 comes after w1 \(open\)"):
        ledger.start(store, MINE, second, clock)
    assert store.reservation("p", "w2") is None
    ledger.finish(store, PERSON, first, clock)
    ledger.start(store, MINE, second, clock)
    ledger.drop(store, PERSON, second, clock, "not needed")
    assert (item(store, second).state, item(store, second).why) == ("dropped", "not needed")
    for attempt in (ledger.start, ledger.finish, ledger.may_finish):
        with pytest.raises(UsageError, match="change w2 --open"):
            attempt(store, MINE, second, clock)
    assert store.reservation("p", "w2").terminal  # type: ignore[union-attr]


def test_a_start_whose_commit_failed_is_read_back(clock: Clock) -> None:
    """Committed all the same: it is begun. Not committed: the error, and nothing is begun."""

    class Failing(MemoryStore):
        reached_disk = False

        def _leave(self, *, keep: bool) -> None:
            outermost = len(self._began) == 1
            super()._leave(keep=keep and (not outermost or self.reached_disk))
            if outermost and keep:
                raise StoreUnwritableError("The disk is full", kept="x", do="y")

    store = Failing()
    with pytest.raises(StoreUnwritableError):
        ledger.add(store, "p", "lost", clock)
    store.reached_disk = True
    with pytest.raises(StoreUnwritableError):
        ledger.add(store, "p", "a", clock)
    (number,) = [one.number for one in store.ledger_items()]
    told = began(ledger.start(store, MINE, number, clock, nonce="mine-alone"))
    assert told.item.state == "doing"
    assert told.held is not None
    store.reached_disk = False
    clock.now += LEASE_DEFAULT + TAKE_OVER_MARGIN
    with pytest.raises(StoreUnwritableError):
        ledger.start(store, OTHER, number, clock, nonce="another")
    assert item(store, number).assigned == "mine"


def test_an_item_reserved_before_it_is_begun_stays_the_holders(store: Store, clock: Clock) -> None:
    """`reserve w1` and `start w1` speak of one hold."""
    (number,) = added(store, clock, "a")
    ask = Claim(item="w1", place="p", project="p", session="mine", copy="here", lease=HOUR)
    reservations.reserve(store, ask, clock)
    assert isinstance(ledger.start(store, OTHER, number, clock), Denied)
    held = began(ledger.start(store, MINE, number, clock)).held
    assert held is not None
    assert held.token == 1
