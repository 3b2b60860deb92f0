"""The promises of the store, kept by the SQLite store and by the memory store alike."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stopwarden.core.errors import (
    StaleVerdictError,
    StopwardenError,
    StoreNewerError,
    StoreUnwritableError,
)
from stopwarden.core.events import AwayPeriod, Reservation, SessionState
from stopwarden.core.record import Record
from stopwarden.store import database, migrate, place
from stopwarden.store.memory import MemoryStore
from stopwarden.store.port import (
    KeeperRow,
    LedgerItem,
    Parked,
    RecordLine,
    SeenWake,
    SessionRow,
    TrackedItem,
    Tracker,
    VerdictRow,
)
from stopwarden.store.rows import LARGEST, stored
from stopwarden.store.sqlite import open_sqlite
from tests.support.records import INSTANTS, TEXTS, records

SRC = pathlib.Path(migrate.__file__).parents[2]
KNOWN = database.VERSION  # the newest migration there is
WRITER = pathlib.Path(__file__).with_name("support") / "busy_writer.py"


@pytest.fixture
def state_dir() -> Iterator[str]:
    """A state directory in memory where the machine has one: what is tested here needs no real disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as home:
        yield place.prepare({"XDG_STATE_HOME": home})


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, state_dir: str) -> Iterator[Any]:
    made = MemoryStore() if request.param == "memory" else open_sqlite(state_dir)
    yield made
    made.close()


def period(name: str = "p1", **fields: Any) -> AwayPeriod:
    return AwayPeriod(**{"id": name, "since": 100, **fields})


def line(at: int = 1, kind: str = "line", **fields: Any) -> RecordLine:
    return RecordLine(at=at, kind=kind, **fields)


def filled(kind: type[Record], **fields: Any) -> Any:
    """A record in which every field differs from its default."""
    values: dict[str, Any] = {}
    for number, field in enumerate(kind.fields, start=1):
        annotation = kind.__annotations__[field]
        texts = (f"one of {field}", f'"two", of {field}')
        made: Any = number
        if annotation == "bool":
            made = not kind.defaults.get(field, False)
        elif annotation.startswith("tuple[Instant"):
            made = (number, number + 1)
        elif annotation.startswith("tuple"):
            made = texts
        elif "str" in annotation:
            made = texts[0]
        values[field] = "session" if field == "scope" else made
    return kind(**{**values, **fields})


# away periods


def test_a_new_store_holds_nothing(store: Any) -> None:
    assert store.open_periods() == store.periods() == store.sessions() == store.lines() == []
    assert store.verdicts() == store.parked() == store.wakes("S") == []
    assert store.session("S") is store.verdict(1) is store.keeper("S") is None
    assert store.state("S") == SessionState(id="S")
    assert store.fact("mode", "all") == store.snapshot("d") == store.list_snapshot("l") == store.host_todos("S") == ""


def test_a_period_comes_back_with_every_field_and_its_policy(store: Any) -> None:
    whole = filled(AwayPeriod, ended_at=None, ended_why="")
    store.add_period(whole, '{"skew":0}')
    store.add_period(period("other"), "")
    assert store.open_periods() == store.periods() == [whole, period("other")]
    assert store.period_policy(whole.id) == '{"skew":0}'
    assert store.period_policy("other") == store.period_policy("unknown") == ""


def test_a_period_ends_once(store: Any) -> None:
    store.add_period(period(), "{}")
    assert store.end_period("p1", 200, "back")
    assert not store.end_period("p1", 300, "time")
    assert not store.end_period("unknown", 300, "time")
    assert store.open_periods() == []
    assert store.periods() == [period(ended_at=200, ended_why="back")]


def test_periods_are_listed_by_when_they_began_and_those_over_before_an_instant_left_out(store: Any) -> None:
    for name, since in (("late", 300), ("early", 100), ("b", 200), ("a", 200)):
        store.add_period(period(name, since=since), "{}")
    store.end_period("early", 250, "back")
    store.end_period("a", 350, "back")
    assert [one.id for one in store.periods()] == ["early", "a", "b", "late"]
    assert [one.id for one in store.periods(250)] == ["early", "a", "b", "late"]
    assert [one.id for one in store.periods(251)] == ["a", "b", "late"]
    assert [one.id for one in store.open_periods()] == ["b", "late"]


def test_an_id_is_used_for_one_period_only(store: Any) -> None:
    store.add_period(period(), "{}")
    store.end_period("p1", 200, "back")
    with pytest.raises(StoreUnwritableError, match="p1 already"):
        store.add_period(period(since=500), "{}")
    assert store.periods() == [period(ended_at=200, ended_why="back")]


# sessions and their state


def test_a_session_comes_back_with_every_field_when_new_and_when_replaced(store: Any) -> None:
    first, then = filled(SessionRow, id="S"), SessionRow(id="S", title="other")
    store.save_session(first)
    assert store.session("S") == first
    store.save_session(then)
    assert store.session("S") == then
    store.save_session(first)
    assert store.sessions() == [first]


def test_sessions_are_listed_by_their_first_event_and_the_silent_ones_left_out(store: Any) -> None:
    for name, first, last in (("c", 30, 90), ("b", 10, 50), ("a", 10, 70)):
        store.save_session(SessionRow(id=name, first_event_at=first, last_event_at=last))
    assert [row.id for row in store.sessions()] == ["a", "b", "c"]
    assert [row.id for row in store.sessions(70)] == ["a", "c"]


def test_a_state_comes_back_with_every_field_at_the_next_revision(store: Any) -> None:
    whole = filled(SessionState, id="S", revision=77)
    store.save_state(whole, expected_revision=0)
    assert store.state("S") == whole.replace(revision=1)
    store.save_state(SessionState(id="S", bound="cap"), expected_revision=1)
    assert store.state("S") == SessionState(id="S", bound="cap", revision=2)
    store.save_state(whole, expected_revision=2)
    assert store.state("S") == whole.replace(revision=3)


@pytest.mark.parametrize("expected", [0, 1, 3])
def test_a_verdict_reached_on_an_older_state_is_refused(store: Any, expected: int) -> None:
    store.save_state(SessionState(id="S", blocks=1), expected_revision=0)
    store.save_state(SessionState(id="S", blocks=2), expected_revision=1)
    with pytest.raises(StaleVerdictError):
        store.save_state(SessionState(id="S", blocks=9), expected_revision=expected)
    assert store.state("S") == SessionState(id="S", blocks=2, revision=2)


def test_a_state_that_nobody_stored_has_no_later_revision(store: Any) -> None:
    with pytest.raises(StaleVerdictError):
        store.save_state(SessionState(id="S"), expected_revision=1)
    assert store.state("S") == SessionState(id="S")


@pytest.mark.case("A24", "BR-135", "BR-138")
def test_one_session_never_changes_what_another_has_stored(store: Any) -> None:
    """Two sessions of one checkout: whatever one of them stores, the other's state, row, wakes and todos stay."""
    mine = filled(SessionRow, id="mine", copy="same", root="/same")
    store.save_session(mine)
    store.save_state(filled(SessionState, id="mine"), expected_revision=0)
    store.save_wake(SeenWake(session="mine", id="w"))
    store.save_host_todos("mine", "[1]")
    before = store.state("mine")

    store.save_session(SessionRow(id="theirs", copy="same", root="/same"))
    store.save_state(SessionState(id="theirs", blocks=3), expected_revision=0)
    store.save_state(SessionState(id="theirs", blocks=4), expected_revision=1)
    store.save_wake(SeenWake(session="theirs", id="w", gone_at=5))
    store.save_host_todos("theirs", "[2]")

    assert store.session("mine") == mine
    assert store.state("mine") == before
    assert store.wakes("mine") == [SeenWake(session="mine", id="w")]
    assert store.host_todos("mine") == "[1]"


@pytest.mark.case("A101")
def test_a_session_id_is_a_key_and_never_a_path(store: Any, state_dir: str) -> None:
    """An id full of path characters is stored as it stands, and no file is named after it."""
    home = pathlib.Path(state_dir).parent
    before = sorted(home.rglob("*"))
    for name in ("../../escaped", "/etc/passwd", "a/b", ".", "..", "", "null", "x' OR '1'='1", "%s:session"):
        store.save_session(SessionRow(id=name, title=name))
        store.save_state(SessionState(id=name), expected_revision=0)
        store.append([line(session=name)])
        assert store.session(name) == SessionRow(id=name, title=name)
        assert store.state(name).revision == 1
    assert sorted(home.rglob("*")) == before
    assert not (home.parent / "escaped").exists()


def test_wakes_are_listed_by_first_sight(store: Any) -> None:
    whole = filled(SeenWake, session="S", id="b", first_seen=20)
    for wake in (whole, SeenWake(session="S", id="a", first_seen=20), SeenWake(session="S", id="c", first_seen=10)):
        store.save_wake(wake)
    assert [wake.id for wake in store.wakes("S")] == ["c", "a", "b"]
    assert store.wakes("S")[2] == whole
    store.save_wake(SeenWake(session="S", id="b", first_seen=1))
    assert store.wakes("S")[0] == SeenWake(session="S", id="b", first_seen=1)
    assert store.wakes("T") == []


# the append-only account


def test_lines_are_kept_in_the_order_they_were_appended_with_numbers_of_the_store(store: Any) -> None:
    given = [filled(RecordLine, at=at, seq=99) for at in (50, 10, 30)]
    store.append(given[:2])
    store.append(iter(given[2:]))
    store.append([])
    assert store.lines() == [given[0].replace(seq=1), given[1].replace(seq=2), given[2].replace(seq=3)]


@pytest.mark.parametrize("kind", ["lines", "verdicts"])
def test_the_account_is_read_by_period_and_between_two_instants_both_included(store: Any, kind: str) -> None:
    for at, name in ((10, "p"), (20, "p"), (20, "q"), (30, "p"), (40, "")):
        if kind == "lines":
            store.append([line(at, period=name)])
        else:
            store.append_verdict(VerdictRow(at=at, session="S", period=name))
    read: Callable[..., list[Any]] = getattr(store, kind)

    def told(**asked: Any) -> list[tuple[int, str]]:
        return [(row.at, row.period) for row in read(**asked)]

    assert told(period="p") == [(10, "p"), (20, "p"), (30, "p")]
    assert told(since=20, until=30) == [(20, "p"), (20, "q"), (30, "p")]
    assert told(period="p", since=11, until=29) == [(20, "p")]
    assert told(since=31) == told(period="") == [(40, "")]
    assert told(period="unknown") == told(since=41) == told(until=9) == []


def test_a_periods_verdicts_can_be_had_bare_with_the_same_values(store: Any) -> None:
    for at, name in ((10, "p"), (20, "q"), (30, "p")):
        store.append_verdict(
            VerdictRow(at=at, session="S", period=name, kind="block", rule="a.b", body=f'{{"at":{at}}}')
        )
    rows = store.verdicts(period="p")
    assert store.bare_verdicts("p") == [(r.id, r.at, r.session, r.period, r.kind, r.rule, r.body) for r in rows]
    assert len(rows) == 2
    assert store.bare_verdicts("unknown") == []


def test_a_failing_line_takes_the_whole_batch_with_it(store: Any) -> None:
    def lines() -> Iterator[RecordLine]:
        yield line()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        store.append(lines())
    assert store.lines() == []


@pytest.mark.case("A93")
@pytest.mark.parametrize("table", ["record_line", "verdict"])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {} SET kind = 'other'",
        "UPDATE {} SET at = at + 1 WHERE rowid = 1",
        "DELETE FROM {}",
        "DELETE FROM {} WHERE rowid = 1",
        "REPLACE INTO {} SELECT * FROM {}",
        "UPDATE OR REPLACE {} SET rowid = 1 WHERE rowid = 2",
    ],
)
def test_the_database_itself_refuses_to_change_what_was_recorded(state_dir: str, table: str, change: str) -> None:
    """The away record and the journal grow and never change, even for somebody who writes SQL by hand."""
    store = open_sqlite(state_dir)
    store.append([line(), line(2)])
    for nonce in ("n1", "n2"):
        store.append_verdict(VerdictRow(at=1, session="S", nonce=nonce))
    before = store.lines(), store.verdicts()
    by_hand = apsw.Connection(store.path)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        by_hand.execute(change.replace("{}", table))
    by_hand.close()
    assert (store.lines(), store.verdicts()) == before
    store.close()


def test_a_verdict_with_a_known_nonce_is_not_replaced_by_hand_either(state_dir: str) -> None:
    store = open_sqlite(state_dir)
    store.append_verdict(VerdictRow(at=1, session="S", nonce="n", body="first"))
    by_hand = apsw.Connection(store.path)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        by_hand.execute(
            "REPLACE INTO verdict (at, session, period, nonce, kind, rule, body) VALUES (2, 'S', '', 'n', '', '', '')"
        )
    by_hand.close()
    assert [row.body for row in store.verdicts()] == ["first"]
    store.close()


def test_a_verdict_comes_back_with_every_field_under_its_number(store: Any) -> None:
    whole = filled(VerdictRow, id=44)
    number = store.append_verdict(whole)
    assert store.verdict(number) == whole.replace(id=number)
    assert store.verdict(number + 1) is None
    assert store.append_verdict(VerdictRow(at=1, session="S")) == number + 1


@pytest.mark.case("A25")
def test_the_same_stop_judged_twice_has_one_verdict(store: Any) -> None:
    """A stop that arrives twice (two registrations of the hook) is stored once; the second gets the first's number."""
    first = store.append_verdict(VerdictRow(at=1, session="S", nonce="n", kind="block"))
    again = store.append_verdict(VerdictRow(at=2, session="S", nonce="n", kind="waiting"))
    other = store.append_verdict(VerdictRow(at=3, session="T", nonce="n"))
    assert again == first != other
    assert [(row.id, row.kind) for row in store.verdicts()] == [(first, "block"), (other, "")]


def test_stops_without_a_nonce_are_never_taken_for_one(store: Any) -> None:
    numbers = [store.append_verdict(VerdictRow(at=1, session="S")) for _ in range(3)]
    assert len(set(numbers)) == len(store.verdicts()) == 3


# parked questions


def question(digest: str = "d", **fields: Any) -> Parked:
    return Parked(
        **{"at": 1, "session": "S", "period": "p", "kind": "question", "text": "Which?", **fields}, digest=digest
    )


@pytest.mark.case("BR-109")
def test_a_question_asked_again_in_a_night_is_counted_and_not_repeated(store: Any) -> None:
    """A runner that asks the same thing three times leaves one parked question, asked three times."""
    number = store.park(question())
    assert store.park(question(at=7, text="reworded")) == number
    assert store.park(question(at=9)) == number
    assert store.parked() == [question(times=3, id=number)]


def test_other_questions_sessions_and_nights_have_numbers_of_their_own(store: Any) -> None:
    asked = [question(), question("e"), question(session="T"), question(period="q")]
    numbers = [store.park(one) for one in asked]
    assert len(set(numbers)) == 4
    assert store.parked() == [one.replace(id=number) for one, number in zip(asked, numbers, strict=True)]
    assert [one.session for one in store.parked(session="T")] == ["T"]


def test_an_answered_question_is_no_longer_open(store: Any) -> None:
    whole = filled(Parked, answered_at=None)
    number = store.park(whole)
    other = store.park(question())
    assert store.parked(open_only=True) == [whole.replace(id=number), question(id=other)]
    answered = filled(Parked, id=number, text="changed", answered_at=0)
    store.save_parked(answered)
    assert store.parked() == [answered, question(id=other)]
    assert store.parked(open_only=True) == [question(id=other)]
    assert store.parked(open_only=True, session=whole.session) == []
    assert store.parked(session=answered.session) == [answered]
    store.save_parked(question(id=other, answer="this one", answered_at=7))
    assert store.parked(open_only=True) == store.parked(open_only=True, session="S") == []
    assert store.parked(session="S") == [question(id=other, answer="this one", answered_at=7)]


def test_an_answer_to_a_question_that_does_not_exist_is_refused(store: Any) -> None:
    with pytest.raises(StoreUnwritableError, match="no parked question 9"):
        store.save_parked(question(id=9))
    assert store.parked() == []


# texts, facts, keepers


def test_texts_are_kept_by_what_they_belong_to(store: Any) -> None:
    store.save_list_snapshot("/a/TODO.md", "one")
    store.save_list_snapshot("/b/TODO.md", "two")
    store.save_list_snapshot("/a/TODO.md", "three")
    store.save_host_todos("S", "[]")
    store.save_fact("mode", "all", "off")
    store.save_fact("mode", "S", "on")
    store.save_fact("mode", "S", "observe")
    assert (store.list_snapshot("/a/TODO.md"), store.list_snapshot("/b/TODO.md")) == ("three", "two")
    assert (store.host_todos("S"), store.host_todos("T")) == ("[]", "")
    assert (store.fact("mode", "all"), store.fact("mode", "S"), store.fact("S", "mode")) == ("off", "observe", "")


def test_a_snapshot_is_kept_once_under_its_digest(store: Any) -> None:
    digests = [store.put_snapshot(text) for text in ("a", "b", "a", "")]
    assert digests[0] == digests[2]
    assert len(set(digests)) == 3
    assert [store.snapshot(digest) for digest in digests] == ["a", "b", "a", ""]
    assert store.snapshot("unknown") == ""


def test_the_newest_keeper_of_a_session_stays(store: Any) -> None:
    old = filled(KeeperRow, session="S", generation=1)
    new = filled(KeeperRow, session="S", generation=2, pid=77)
    assert store.save_keeper(old)
    assert store.save_keeper(new)
    assert not store.save_keeper(old.replace(woke_at=500))
    assert store.keeper("S") == new
    assert store.save_keeper(new.replace(woke_at=500))
    assert store.keeper("S") == new.replace(woke_at=500)
    assert store.keeper("T") is None


# transactions


def test_a_failed_transaction_leaves_nothing_behind(store: Any) -> None:
    store.save_state(SessionState(id="S", blocks=1), expected_revision=0)
    store.save_fact("a", "b", "before")

    def change_everything() -> None:
        store.add_period(period(), "{}")
        store.end_period("p1", 5, "back")
        store.save_session(SessionRow(id="S"))
        store.save_state(SessionState(id="S", blocks=2), expected_revision=1)
        store.save_wake(SeenWake(session="S", id="w"))
        store.append([line()])
        store.append_verdict(VerdictRow(at=1, session="S", nonce="n"))
        store.park(question())
        store.save_fact("a", "b", "after")
        store.save_keeper(filled(KeeperRow, session="S"))
        digest = store.put_snapshot("text")
        assert (store.fact("a", "b"), store.snapshot(digest), len(store.lines())) == ("after", "text", 1)

    def change_everything_and_fail() -> None:
        with store.transaction():
            change_everything()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        change_everything_and_fail()
    assert store.periods() == store.sessions() == store.wakes("S") == store.lines() == store.verdicts() == []
    assert store.parked() == []
    assert store.keeper("S") is None
    assert store.state("S") == SessionState(id="S", blocks=1, revision=1)
    assert store.fact("a", "b") == "before"
    with store.transaction():
        change_everything()
    assert store.append_verdict(VerdictRow(at=1, session="S", nonce="n")) == 1


def test_an_inner_transaction_is_undone_by_itself_and_kept_with_the_outer(store: Any) -> None:
    def inner_fails() -> None:
        with store.transaction():
            store.append([line(2)])
            store.save_state(SessionState(id="S"), expected_revision=8)

    def outer_fails() -> None:
        with store.transaction():
            with store.transaction():
                store.append([line(4)])
            raise RuntimeError

    assert not store.in_transaction
    with store.transaction():
        store.append([line(1)])
        with pytest.raises(StaleVerdictError):
            inner_fails()
        with store.transaction():
            store.append([line(3)])
            assert store.in_transaction
        assert store.in_transaction
    assert not store.in_transaction
    assert [one.at for one in store.lines()] == [1, 3]
    with pytest.raises(RuntimeError):
        outer_fails()
    assert [one.at for one in store.lines()] == [1, 3]


def test_a_closed_store_undoes_what_was_open_and_refuses_everything_after(store: Any) -> None:
    def close_and_go_on() -> None:
        with store.transaction():
            store.append([line()])
            store.close()
            store.append([line()])

    with pytest.raises(StoreUnwritableError, match="closed"):
        close_and_go_on()
    with pytest.raises(StoreUnwritableError, match="closed"), store.transaction():
        pass
    with pytest.raises(StoreUnwritableError, match="closed"):
        store.lines()
    store.close()


def test_what_a_closed_store_left_open_is_not_there_later(state_dir: str) -> None:
    def close_inside() -> None:
        store = open_sqlite(state_dir)
        with store.transaction():
            store.append([line()])
            store.close()

    with pytest.raises(StoreUnwritableError):
        close_inside()
    again = open_sqlite(state_dir)
    assert again.lines() == []
    again.close()


# what is stored comes back


@pytest.mark.case("BR-124")
def test_text_that_cannot_be_encoded_is_stored_readable(store: Any) -> None:
    """A lone surrogate from a clipped payload becomes a replacement sign; the row it is in stays readable for ever."""
    store.save_session(SessionRow(id="\udc88", title="cut \ud83d"))
    store.append([line(text="\udc88 in a line", session="\udc88")])
    store.park(question(options=("\udc88", "fine"), session="\udc88"))
    store.save_fact("\udc88", "\udc88", "\udc88")
    assert store.session("\udc88") == SessionRow(id="\ufffd", title="cut \ufffd")
    assert store.lines()[0].text == "\ufffd in a line"
    assert store.parked(session="\udc88")[0].options == ("\ufffd", "fine")
    assert store.fact("\udc88", "\udc88") == "\ufffd"


def test_hostile_and_huge_values_come_back_as_they_were(store: Any) -> None:
    texts = ["\0", "a\0b", "'; DROP TABLE session; --", "\x1b[2J", "x" * 3_000_000, "💤" * 1000, "\r\n\u2028"]
    store.append(line(text=text) for text in texts)
    assert [one.text for one in store.lines()] == texts


def test_an_instant_beyond_what_a_database_holds_is_the_largest_there_is(store: Any) -> None:
    store.save_wake(SeenWake(session="S", id="w", fires_at=10**30, max_age=-(10**30)))
    assert store.wakes("S") == [SeenWake(session="S", id="w", fires_at=LARGEST, max_age=-LARGEST)]


SMALL = st.integers(0, 3)
IDS = st.sampled_from(["S", "T", "\udc88", ""])
RESERVED: dict[str, Any] = dict.fromkeys(("place", "item", "project", "session", "copy"), IDS) | {"token": SMALL}
LISTED: dict[str, Any] = {
    "project": IDS,
    "state": st.sampled_from(["open", "open", "open", "done", "dropped"]),
    "needs": st.lists(SMALL, max_size=2).map(tuple),
    "assigned": IDS,
}
OPERATIONS: st.SearchStrategy[tuple[str, Any]] = st.one_of(
    st.tuples(st.just("add_period"), st.tuples(records(AwayPeriod, id=IDS), TEXTS)),
    st.tuples(st.just("end_period"), st.tuples(IDS, INSTANTS, TEXTS)),
    st.tuples(st.just("open_periods"), st.just(())),
    st.tuples(st.just("periods"), st.tuples(INSTANTS)),
    st.tuples(st.just("period_policy"), st.tuples(IDS)),
    st.tuples(st.just("save_session"), st.tuples(records(SessionRow, id=IDS))),
    st.tuples(st.just("session"), st.tuples(IDS)),
    st.tuples(st.just("sessions"), st.tuples(INSTANTS)),
    st.tuples(st.just("save_state"), st.tuples(records(SessionState, id=IDS), SMALL)),
    st.tuples(st.just("state"), st.tuples(IDS)),
    st.tuples(st.just("save_wake"), st.tuples(records(SeenWake, session=IDS, id=IDS))),
    st.tuples(st.just("wakes"), st.tuples(IDS)),
    st.tuples(st.just("append"), st.tuples(st.lists(records(RecordLine, period=IDS), max_size=3))),
    st.tuples(st.just("append_verdict"), st.tuples(records(VerdictRow, session=IDS, nonce=IDS, period=IDS))),
    st.tuples(st.just("verdict"), st.tuples(SMALL)),
    st.tuples(st.just("park"), st.tuples(records(Parked, session=IDS, period=IDS, digest=IDS, times=SMALL))),
    st.tuples(st.just("save_parked"), st.tuples(records(Parked, id=SMALL, times=SMALL))),
    st.tuples(st.just("parked"), st.just(())),
    st.tuples(st.just("save_fact"), st.tuples(IDS, IDS, TEXTS)),
    st.tuples(st.just("fact"), st.tuples(IDS, IDS)),
    st.tuples(st.just("put_snapshot"), st.tuples(TEXTS)),
    st.tuples(st.just("save_list_snapshot"), st.tuples(IDS, TEXTS)),
    st.tuples(st.just("save_host_todos"), st.tuples(IDS, TEXTS)),
    st.tuples(st.just("save_keeper"), st.tuples(records(KeeperRow, session=IDS))),
    st.tuples(st.just("keeper"), st.tuples(IDS)),
    st.tuples(st.just("save_reservation"), st.tuples(records(Reservation, **RESERVED))),
    st.tuples(st.just("reservation"), st.tuples(IDS, IDS)),
    st.tuples(st.just("add_ledger_item"), st.tuples(records(LedgerItem, **LISTED))),
    st.tuples(st.just("save_ledger_item"), st.tuples(records(LedgerItem, **LISTED, number=SMALL))),
    st.tuples(st.just("ready_items"), st.tuples(IDS, SMALL)),
    st.tuples(st.just("save_tracker"), st.tuples(records(Tracker, project=IDS, name=IDS))),
    st.tuples(st.just("remove_tracker"), st.tuples(IDS, IDS)),
    st.tuples(st.just("replace_tracked"), st.tuples(IDS, IDS, st.lists(records(TrackedItem, id=IDS), max_size=3))),
)


@st.composite
def operation(draw: st.DrawFn) -> tuple[str, Any]:
    """One of them; by this name Hypothesis need not print them all."""
    return draw(OPERATIONS)


SCRIPTS = st.recursive(
    st.lists(operation(), max_size=6),
    lambda inner: st.lists(operation() | st.tuples(st.sampled_from(["kept", "undone"]), inner), max_size=6),
    max_leaves=12,
)


def act(store: Any, script: list[tuple[str, Any]]) -> list[Any]:
    """What each operation of the script answers, its error included."""
    answers: list[Any] = []
    for name, given_ in script:
        try:
            if name == "kept":
                with store.transaction():
                    answers += act(store, given_)
            elif name == "undone":
                with store.transaction():
                    answers += act(store, given_)
                    raise ZeroDivisionError
            elif name == "save_state":
                answers.append(store.save_state(given_[0], expected_revision=given_[1]))
            else:
                answers.append(getattr(store, name)(*given_))
        except (StopwardenError, ZeroDivisionError) as error:
            answers.append(f"{type(error).__name__}: {error}")
    return answers


def everything(store: Any) -> list[Any]:
    """All that a store holds."""
    ids = ["S", "T", "\udc88", ""]
    return [
        *(store.periods(-LARGEST), store.open_periods(), store.sessions(-LARGEST)),
        *(store.lines(since=-LARGEST), store.verdicts(since=-LARGEST), store.parked(), store.parked(open_only=True)),
        *([store.period_policy(name) for name in ids], [store.state(name) for name in ids]),
        *([store.wakes(name) for name in ids], [store.keeper(name) for name in ids]),
        *([store.lines(period=name) for name in ids], [store.verdicts(period=name) for name in ids]),
        *([store.list_snapshot(name) for name in ids], [store.host_todos(name) for name in ids]),
        *([store.fact(name, other) for name in ids for other in ids],),
        *(store.reservations(), store.reservations(released=True), store.ledger_items(), store.trackers()),
        *([store.reservations_in(name) for name in ids], [store.trackers(name) for name in ids]),
        *([store.reservations_in(name, finished_since=3) for name in ids],),
        *([store.reservations_of(session=name, copy=other) for name in ids for other in ids],),
        *([store.ledger_items(name) for name in ids], [store.ledger_items_assigned(name) for name in ids]),
        *([store.ready_items(name, 50) for name in ids], [store.tracked_items(name) for name in ids]),
    ]


@given(script=SCRIPTS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_stores_answer_alike_whatever_is_done_to_them(script: list[tuple[str, Any]], state_dir: str) -> None:
    """Random scripts of operations, nested transactions kept and undone: the same answers and the same content."""
    for old in pathlib.Path(state_dir).iterdir():
        old.unlink()
    memory, sqlite = MemoryStore(), open_sqlite(state_dir)
    assert act(memory, script) == act(sqlite, script)
    held = everything(memory)
    assert held == everything(sqlite)
    sqlite.close()
    reopened = open_sqlite(state_dir)
    assert held == everything(reopened)
    reopened.close()


@given(
    record=st.one_of(
        *(records(kind) for kind in (AwayPeriod, SessionRow, SessionState, SeenWake, Parked, Reservation, LedgerItem))
    )
)
def test_what_comes_back_from_a_store_is_stored_unchanged(record: Record) -> None:
    once = stored(record)
    assert stored(once) == once


# the schema and the statements


def _schema(connection: apsw.Connection) -> list[tuple[str, ...]]:
    rows = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY 1, 2")
    return [(*row[:3], " ".join(str(row[3]).split())) for row in rows.fetchall()]


def test_the_schema_is_what_all_migrations_make() -> None:
    """`schema.sql`, for people to read, and the migrations, which databases are made by, never drift apart."""
    by_migrations, whole = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    migrate.migrate(by_migrations)
    whole.execute(pathlib.Path(migrate.SQL, "schema.sql").read_text(encoding="utf-8"))
    assert _schema(by_migrations) == _schema(whole)


def test_migrations_are_numbered_without_a_gap_up_to_the_version_the_program_knows() -> None:
    assert [number for number, _ in migrate.migrations()] == list(range(1, database.VERSION + 1))


@pytest.mark.parametrize(
    "kind",
    [
        *(AwayPeriod, SessionRow, SessionState, SeenWake, RecordLine, VerdictRow, Parked, KeeperRow),
        *(Reservation, LedgerItem, Tracker, TrackedItem),
    ],
)
def test_every_field_of_a_record_has_a_column(kind: type[Record]) -> None:
    tables = {
        AwayPeriod: "away_period",
        SessionRow: "session",
        SessionState: "session_state",
        SeenWake: "wake",
        RecordLine: "record_line",
        VerdictRow: "verdict",
        Parked: "parked",
        KeeperRow: "keeper",
        Reservation: "reservation",
        LedgerItem: "ledger_item",
        Tracker: "tracker",
        TrackedItem: "tracked_item",
    }
    connection = apsw.Connection(":memory:")
    migrate.migrate(connection)
    columns = {row[1] for row in connection.execute(f"PRAGMA table_info({tables[kind]})")}
    assert columns - {"policy"} == set(kind.fields)


def test_every_statement_has_a_name_a_purpose_and_is_used() -> None:
    text = pathlib.Path(migrate.SQL, "queries.sql").read_text(encoding="utf-8")
    named = database.queries(text)
    store = pathlib.Path(migrate.SQL).parent
    used = "".join(store.joinpath(name).read_text(encoding="utf-8") for name in ("sqlite.py", "transcripts.py"))
    assert len(named) == text.count("-- name: ") > 30
    for name, statement in named.items():
        assert f"-- name: {name}\n-- " in text
        assert statement.endswith(";")
        assert statement.count(";") == 1
        assert f'"{name}"' in used


def test_no_statement_asks_sqlite_for_the_time() -> None:
    sql = "".join(path.read_text(encoding="utf-8").lower() for path in pathlib.Path(migrate.SQL).rglob("*.sql"))
    for word in (
        "current_time",
        "current_date",
        "strftime",
        "datetime(",
        "date(",
        "time(",
        "unixepoch",
        "julianday",
        "'now'",
    ):
        assert word not in sql, word


def later_migrations(sql: pathlib.Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    """A program of the future: today's migrations and these."""
    shutil.rmtree(sql, ignore_errors=True)
    shutil.copytree(migrate.SQL, sql)
    for name, text in files.items():
        (sql / "migrations" / f"{name.strip('_')}.sql").write_text(text)
    monkeypatch.setattr(migrate, "SQL", str(sql))
    monkeypatch.setattr(database, "VERSION", KNOWN + len(files))


def test_an_older_database_is_brought_up_to_date_and_keeps_its_content(
    state_dir: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is applied once, in order, however far behind the database is and however often it is opened."""
    store = open_sqlite(state_dir)
    store.append([line()])
    store.close()
    second = {f"_{KNOWN + 1:03}_more": "CREATE TABLE more (a TEXT) STRICT; INSERT INTO more VALUES ('x');"}
    third = {f"_{KNOWN + 2:03}_more": "INSERT INTO more SELECT a || 'y' FROM more;"}
    for files in (second, second | third):
        with monkeypatch.context() as patched:
            later_migrations(tmp_path / "sql", patched, **files)
            for _ in range(2):
                newer = open_sqlite(state_dir)
                assert [one.at for one in newer.lines()] == [1]
                newer.close()
    by_hand = apsw.Connection(newer.path)
    assert by_hand.execute("SELECT a FROM more").fetchall() == [("x",), ("xy",)]
    assert by_hand.pragma("user_version") == KNOWN + 2
    by_hand.close()


def test_a_migration_that_fails_halfway_changes_nothing(
    state_dir: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_sqlite(state_dir).close()
    bad = {f"_{KNOWN + 1:03}_bad": "CREATE TABLE half (a TEXT); CREATE TABLE session (a TEXT);"}
    with monkeypatch.context() as patched:
        later_migrations(tmp_path / "sql", patched, **bad)
        with pytest.raises(StopwardenError):
            open_sqlite(state_dir)
    store = open_sqlite(state_dir)
    by_hand = apsw.Connection(store.path)
    assert by_hand.pragma("user_version") == KNOWN
    assert by_hand.execute("SELECT name FROM sqlite_schema WHERE name = 'half'").fetchall() == []
    by_hand.close()
    store.close()


def test_a_database_of_a_newer_program_is_left_exactly_as_it_is(state_dir: str) -> None:
    store = open_sqlite(state_dir)
    store.append([line()])
    store.close()
    by_hand = apsw.Connection(store.path)
    by_hand.execute("PRAGMA user_version = 4711; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    by_hand.close()
    before = pathlib.Path(store.path).read_bytes()
    with pytest.raises(StoreNewerError, match=r"newer Stopwarden \(schema 4711.*Upgrade"):
        open_sqlite(state_dir)
    assert pathlib.Path(store.path).read_bytes() == before
    assert not list(pathlib.Path(state_dir).glob("*damaged*"))


# how it is written


def test_every_commit_is_on_disk_and_the_log_is_used_only_where_it_is_safe(
    state_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def modes() -> tuple[Any, Any]:
        store = open_sqlite(state_dir)
        told = store._connection.pragma("journal_mode"), store._connection.pragma("synchronous")
        store.append([line()])
        store.close()
        return told

    assert tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) >= (3, 51, 3)
    assert modes() == ("wal", 2)
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    assert modes() == ("delete", 2)
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.3")
    assert modes() == ("wal", 2)
    store = open_sqlite(state_dir)
    assert len(store.lines()) == 3
    store.close()


def test_the_log_does_not_grow_from_one_short_process_to_the_next(state_dir: str) -> None:
    """Each opening reads the whole log, so a night of hooks may not lengthen it: past its bound a close removes it."""
    log = f"{state_dir}/stopwarden.db-wal"
    sizes = []
    for number in range(40):
        store = open_sqlite(state_dir)
        store.put_snapshot(f"{number} " + "x" * 100_000)
        store.close()
        sizes.append(os.path.getsize(log) if os.path.exists(log) else 0)
    longest = database.LOG_PAGES * (database.PAGE + 24)
    assert max(sizes) < longest + 150_000
    assert 2 <= sizes.count(0) <= 8, "put away now and then, not at every close"
    store = open_sqlite(state_dir)
    assert store._connection.execute("SELECT count(*) FROM snapshot").fetchall() == [(40,)]
    store.close()


@pytest.mark.case("A93")
@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_processes_that_append_at_once_keep_whole_lines(state_dir: str, journal_mode: str) -> None:
    """Three programs append to the record at the same time: every line is there, whole, in its writer's order."""
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    names = ["one", "two", "three"]
    writers = [
        subprocess.Popen([sys.executable, str(WRITER), state_dir, name, "25", journal_mode], env=env, stdout=-3)
        for name in names
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    store = open_sqlite(state_dir)
    for name in names:
        mine = [one for one in store.lines() if one.session == name]
        assert [one.text.split()[:2] for one in mine] == [
            [half, str(number)] for number in range(1, 26) for half in ("first", "second")
        ]
        assert all(one.text.endswith("x" * 300) for one in mine)
        assert store.state(name).revision == 25
    assert [one.seq for one in store.lines()] == list(range(1, 151))
    store.close()
