"""What is forgotten is gone for good, whatever happens meanwhile; and what runs is never forgotten."""

from __future__ import annotations

import json
import os
import pathlib
import random
from typing import Any

import apsw
import pytest

from stopwarden import wire
from stopwarden.cli import retention
from stopwarden.core.bounds import DAY
from stopwarden.core.errors import StopwardenError
from stopwarden.core.events import AwayPeriod, Reservation
from stopwarden.hook import spool
from stopwarden.store import beside, database, forgetting, migrate, place
from stopwarden.store.forgetting import Choice
from stopwarden.store.forgotten import Forgotten, read_forgotten
from stopwarden.store.port import KeeperRow, LedgerItem, Parked, RecordLine, SeenWake, SessionRow, VerdictRow
from stopwarden.store.sqlite import SqliteStore, open_sqlite
from tests.conftest import at
from tests.support.failing_disk import failing_disk
from tests.support.person import Person

NOW = at("2026-11-30 23:05")
OLD, NEWER = NOW - 100 * DAY, NOW - 10 * DAY
WORD = "xq-distinctive-7431"


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Person:
    made = Person(tmp_path)
    made.interrupt_after = 99
    return made


def night(store: SqliteStore, name: str, since: int, *, session: str, ended: bool = True, word: str = "work") -> None:
    """A night of one session: eight verdicts whose texts are kept by digest, lines, a question and all that goes with it."""
    until = since + 8 * 3600 if ended else None
    store.add_period(AwayPeriod(id=name, since=since, until=until, root="/repo", copy="c"), "{}")
    for number in range(8):
        own = store.put_snapshot(f"{word} of {name}\nitem {number}")
        shared = store.put_snapshot("a text that every night names")
        body = wire.dumps({"v": 1, "world": {"title": {"lines": own}, "id": {"snapshot": shared}}, "pad": word * 20})
        row = VerdictRow(
            at=since + number, session=session, period=name, nonce=f"{name}{number}", kind="block", body=body
        )
        store.append_verdict(row)
        store.append(
            [RecordLine(at=since + number, kind="item_done", session=session, period=name, text=f"{word} done")]
        )
    asked = Parked(at=since + 9, session=session, period=name, kind="question", digest=name, text=f"{word}?")
    store.park(asked)
    store.save_session(SessionRow(id=session, title=f"{word} session", first_event_at=since, last_event_at=since + 20))
    store.save_state(store.state(session), expected_revision=store.state(session).revision)
    store.save_wake(SeenWake(session=session, id="w", schedule=word))
    store.save_host_todos(session, wire.dumps({"todos": [word]}))
    store.save_keeper(KeeperRow(session=session, pid=1, started="x", generation=1, at=since))
    store.save_fact("mode", session, "observe")
    store.save_fact("gone_said", f"{session} /{word}", "1")
    store.save_fact("promise", f"{name} {word}", "1")
    store.save_list_snapshot(f"list /repo/TODO.md {name}", word)
    store.save_list_snapshot(f"list /repo/TODO.md {name} second line", word)
    store.save_list_snapshot(f"todos {session} {name}", word)
    if ended:
        store.end_period(name, since + 8 * 3600, "time")


def opened(person: Person) -> SqliteStore:
    return open_sqlite(place.prepare(person.env))


def two_nights(person: Person) -> None:
    """One night a hundred days ago, one ten days ago."""
    store = opened(person)
    night(store, "old", OLD, session="aaaa0001", word=WORD)
    night(store, "newer", NEWER, session="bbbb0002")
    store.close()


def everywhere(state_dir: str, word: str) -> list[str]:
    """The files of the state directory in which a word stands."""
    files = [path for path in pathlib.Path(state_dir).rglob("*") if path.is_file()]
    return [path.name for path in files if word.encode() in path.read_bytes()]


def kept(store: SqliteStore, session: str = "bbbb0002", name: str = "newer") -> dict[str, Any]:
    """All that belongs to one night and its session."""
    return {
        "period": [one for one in store.periods() if one.id == name],
        "verdicts": store.verdicts(period=name),
        "lines": store.lines(period=name),
        "parked": store.parked(session=session),
        "session": store.session(session),
        "state": store.state(session),
        "wakes": store.wakes(session),
        "todos": store.host_todos(session),
        "keeper": store.keeper(session),
        "mode": store.fact("mode", session),
        "list": store.list_snapshot(f"list /repo/TODO.md {name}"),
        "texts": [store.snapshot(digest) for row in store.verdicts(period=name) for digest in _named(row)],
    }


def _named(row: VerdictRow) -> list[str]:
    world = json.loads(row.body)["world"]
    return [world["title"]["lines"], world["id"]["snapshot"]]


# what goes and what stays


def test_an_old_night_goes_whole_and_the_newer_one_stays_whole(person: Person) -> None:
    """Of the old night no row is left, of the newer one every row and every text is."""
    two_nights(person)
    store = opened(person)
    before = kept(store)
    store.close()
    assert person.types("forget", "--older-than", "90d", "--yes") == 0, person.complained
    assert "1 night" in person.said
    store = opened(person)
    assert kept(store) == before
    assert all(before["texts"])
    assert [one.id for one in store.periods()] == ["newer"]
    assert store.verdicts(period="old") == store.lines(period="old") == store.wakes("aaaa0001") == []
    assert store.session("aaaa0001") is store.keeper("aaaa0001") is None
    assert store.fact("mode", "aaaa0001") == store.fact("gone_said", f"aaaa0001 /{WORD}") == ""
    assert store.fact("promise", f"old {WORD}") == ""
    assert store.fact("promise", "newer work") == "1"
    assert store.host_todos("aaaa0001") == store.list_snapshot("list /repo/TODO.md old") == ""
    assert store.snapshot(store.put_snapshot("a text that every night names"))
    store.close()


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_what_is_forgotten_is_in_no_file_any_more(person: Person, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distinctive word of the old night stands in no file: not in the database, its log, nor what hooks left."""
    if mode == "delete":
        monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    two_nights(person)
    person.spools("post-tool", "aaaa0001", tool="TodoWrite", **{"in": {"todos": [{"content": WORD}]}, "out": {}})
    assert everywhere(person.state_dir, WORD)
    assert person.types("status") in (0, 1)
    person.now = NOW
    store = opened(person)  # the fact of the spool made the session heard of just now
    row = store.session("aaaa0001")
    assert row is not None
    store.save_session(row.replace(last_event_at=OLD + 20))
    store.close()
    person.naps.clear()
    assert person.types("forget", "--older-than", "90d", "--yes") == 0, person.complained
    assert everywhere(person.state_dir, WORD) == []


def test_a_running_night_and_what_it_needs_are_never_forgotten(person: Person) -> None:
    """Everything that belongs to an away period without an end stays, whatever is asked for."""
    store = opened(person)
    night(store, "runs", OLD, session="cccc0003", ended=False)
    held = Reservation(
        item="i1", session="cccc0003", copy="c", claimed_at=OLD, place="p", project="p", token=1, expires_at=NOW
    )
    store.save_reservation(held.replace(granted_at=OLD, title="held"))
    store.add_ledger_item(LedgerItem(project="p", title="open item", changed_at=OLD))
    before = kept(store, "cccc0003", "runs")
    store.close()
    for words in (("--all",), ("--older-than", "1d"), ("--session", "cccc0003"), ("--keep-size", "1MB")):
        assert person.types("forget", *words, "--yes") == 0
    assert person.types("forget", "--period", "runs", "--yes") == 2
    assert "stopwarden back" in person.complained
    store = opened(person)
    assert kept(store, "cccc0003", "runs") == before
    assert store.reservation("p", "i1") is not None
    assert [one.title for one in store.ledger_items()] == ["open item"]
    store.close()


def test_nothing_is_forgotten_while_the_mark_of_a_period_cannot_be_read(person: Person) -> None:
    """What runs cannot be told then."""
    store = opened(person)
    store.append([RecordLine(at=OLD, kind="x", text=WORD)])
    store.close()
    pathlib.Path(person.state_dir, "away.json").write_bytes(b"{torn")
    assert person.types("forget", "--all", "--yes") == 2
    assert "stopwarden back" in person.complained
    assert everywhere(person.state_dir, WORD)


def test_a_session_is_forgotten_and_the_others_of_its_nights_stay(person: Person) -> None:
    two_nights(person)
    store = opened(person)
    store.append_verdict(VerdictRow(at=OLD, session="dddd0004", period="old", nonce="other", body="{}"))
    store.close()
    assert person.types("forget", "--session", "aaaa", "--yes") == 0
    store = opened(person)
    assert [row.session for row in store.verdicts(period="old")] == ["dddd0004"]
    assert {one.id for one in store.periods()} == {"old", "newer"}
    assert store.session("aaaa0001") is None
    assert len(store.verdicts(period="newer")) == 8
    store.close()
    assert everywhere(person.state_dir, WORD) == ["stopwarden.db"] or everywhere(person.state_dir, WORD) == []


def test_a_released_hold_loses_its_words_and_keeps_its_token(person: Person) -> None:
    """A token is never given twice, so the row stays; what it said goes. A live hold is left as it is."""
    store = opened(person)
    for item, released in (("a", OLD), ("b", None)):
        made = Reservation(
            item=item, session="S", copy="c", claimed_at=OLD - 9, place="p", project="p", token=1, expires_at=NOW
        )
        made = made.replace(granted_at=OLD - 9, title=WORD, root=f"/{WORD}", footprint=(WORD,), nonce=WORD)
        store.save_reservation(made)
        store.save_reservation(made.replace(released_at=released))
    store.close()
    assert person.types("forget", "--older-than", "90d", "--yes") == 0
    store = opened(person)
    gone, live = store.reservation("p", "a"), store.reservation("p", "b")
    assert gone is not None
    assert (gone.title, gone.root, gone.footprint, gone.nonce, gone.token) == ("", "", (), "", 1)
    assert live is not None
    assert live.title == WORD
    with pytest.raises(StopwardenError):
        store.save_reservation(gone.replace(session="T", token=1))
    store.close()


def test_the_number_of_a_forgotten_verdict_is_never_given_again(person: Person) -> None:
    """After everything is forgotten the next verdict has the next number, through a rewriting of the file too."""
    two_nights(person)
    assert person.types("forget", "--all", "--yes") == 0
    store = opened(person)
    assert store.verdicts() == []
    assert store.append_verdict(VerdictRow(at=NOW, session="S", nonce="n")) == 17
    store.append([RecordLine(at=NOW, kind="x")])
    assert store.lines()[-1].seq > 16
    store.close()


def test_finished_items_of_the_ledger_go_and_open_ones_stay(person: Person) -> None:
    store = opened(person)
    for state in ("done", "dropped", "open", "waiting", "doing"):
        store.add_ledger_item(LedgerItem(project="p", title=state, state=state, changed_at=OLD))
    store.add_ledger_item(LedgerItem(project="p", title="lately", state="done", changed_at=NOW - DAY, needs=(1,)))
    store.close()
    assert person.types("forget", "--older-than", "90d", "--yes") == 0
    store = opened(person)
    assert [one.title for one in store.ledger_items()] == ["open", "waiting", "doing", "lately"]
    assert store.add_ledger_item(LedgerItem(project="p", title="next")) == 7
    store.close()


def test_a_damaged_database_that_was_set_aside_is_named_and_removed(person: Person) -> None:
    """`forget` lists what was set aside, with its log, and takes it away; newer ones stay by age."""
    opened(person).close()
    state = pathlib.Path(person.state_dir)
    names = ["stopwarden.db.damaged-20260801T010203Z", "stopwarden.db.damaged-20260801T010203Z-wal"]
    names += ["away.json.damaged-20260801T010203Z.2", "stopwarden.db.damaged-20261129T010203Z"]
    for name in names:
        (state / name).write_text(WORD)
    assert person.types("forget", "--older-than", "90d", "--dry-run") == 0
    assert all(name in person.said for name in names[:3])
    assert names[3] not in person.said
    assert person.types("forget", "--older-than", "90d", "--yes") == 0
    assert [name for name in names if (state / name).exists()] == names[3:]
    assert person.types("forget", "--damaged", "--yes") == 0
    assert everywhere(person.state_dir, WORD) == []


def test_old_faults_go_only_while_nobody_is_away(person: Person) -> None:
    """While a mark stands hooks count in that file, so it is left alone."""
    opened(person).close()
    faults = pathlib.Path(person.state_dir, "faults")
    faults.write_text(f"# begun\n{OLD} S fault {WORD}\n{NOW - 5} S fault new\n")
    person.away_since()
    assert person.types("forget", "--older-than", "90d", "--yes") == 0
    assert WORD in faults.read_text()
    assert person.types("back") == 0
    assert person.types("forget", "--older-than", "90d", "--yes") == 0
    assert faults.read_text() == f"# begun\n{NOW - 5} S fault new\n"
    assert beside.forget_faults(person.state_dir, None) == 2
    assert not faults.exists()


# asking first


def test_nothing_goes_before_the_person_has_said_yes(person: Person) -> None:
    """What would go is told with counts, dates and size; without an answer nothing is changed."""
    two_nights(person)
    for words, code in ((("--dry-run",), 0), ((), 1), (("--json",), 1)):
        assert person.types("forget", "--older-than", "90d", *words) == code
        if "--json" in words:
            told = json.loads(person.said)
            assert (told["verdicts"], told["lines"], told["questions"], told["nights"]) == (8, 8, 1, ["old"])
            assert told["since"] == "2026-08-22T23:05:00Z"
            assert told["forgotten"] is False
        else:
            for part in ("1 night", "8 verdicts", "8 lines", "1 question", "23 Aug", "not answered", "Europe/London"):
                assert part in person.said
    store = opened(person)
    assert len(store.verdicts()) == 16
    store.close()


def test_only_the_person_may_forget(person: Person) -> None:
    """An agent is refused, also where the person lets agents end away."""
    two_nights(person)
    assert person.types("on", "--agents-may-end", "yes") == 0
    person.env = {**person.env, "CLAUDECODE": "1"}
    assert person.types("forget", "--all", "--yes") == 2
    assert "Only the person" in person.complained


@pytest.mark.parametrize(
    "words",
    [("--older-than", "soon"), ("--keep-size", "lots"), ("--keep-size", "12"), ("--period", "none"), ("--set-age", "1h"),
     ("--session", "nobody"), ("--all", "--session", "S")],
)  # fmt: skip
def test_words_that_mean_nothing_change_nothing(person: Person, words: tuple[str, ...]) -> None:
    two_nights(person)
    assert person.types("forget", *words, "--yes") == 2
    store = opened(person)
    assert len(store.verdicts()) == 16
    store.close()


# the account says so


def test_the_record_says_what_was_forgotten(person: Person) -> None:
    """One line with counts and range, without a word of what it held; it stays through everything."""
    two_nights(person)
    assert person.types("forget", "--older-than", "90d", "--yes") == 0
    assert person.types("forget", "--all", "--yes") == 0
    store = opened(person)
    told = [read_forgotten(line.at, line.text) for line in store.lines() if line.kind == "forgotten"]
    store.close()
    assert told[0] == Forgotten(
        at=NOW, how="older than 90d", since=OLD, until=OLD + 9, nights=1, verdicts=8, lines=8, questions=1, sessions=1,
        periods=("old",),
    )  # fmt: skip
    assert (told[1].how, told[1].periods, told[1].verdicts) == ("everything", ("newer",), 8)
    assert read_forgotten(5, "no json") == read_forgotten(5, "[1]") == Forgotten(at=5)


def test_a_report_of_a_night_with_a_hole_says_so(person: Person) -> None:
    """One of two sessions is forgotten: the night's report says that entries were forgotten, and none that they are lost."""
    two_nights(person)
    store = opened(person)
    for number in range(9):
        store.append([RecordLine(at=OLD + number, kind="item_done", session="dddd0004", period="old", text="x")])
    store.append(
        [RecordLine(at=OLD, kind="prompt", session="aaaa0001", period="old"), RecordLine(at=OLD + 30, kind="x")]
    )
    store.close()
    assert person.types("forget", "--session", "aaaa", "--yes") == 0
    assert person.types("report", "--period", "old") == 0
    assert "17 entries of the record were forgotten, as you had asked" in " ".join(person.said.split())
    assert "is gone" not in person.said
    assert "are gone" not in person.said
    assert person.types("report", "--period", "newer") == 0
    assert "forgotten" not in person.said
    assert person.types("forget", "--period", "old", "--yes") == 0
    assert person.types("report", "--since", "2026-08-01") == 0
    assert "entries of the record were forgotten" in " ".join(person.said.split()), "asked of that time, it is told"


def test_lines_that_no_forgetting_accounts_for_are_still_told_as_lost(person: Person) -> None:
    """A forgetting explains the holes it made and no other."""
    two_nights(person)
    assert person.types("forget", "--session", "aaaa", "--yes") == 0
    by_hand = apsw.Connection(f"{person.state_dir}/stopwarden.db")
    by_hand.execute("BEGIN; INSERT INTO forgetting VALUES (1); DELETE FROM record_line WHERE seq IN (12, 13)")
    by_hand.execute("DELETE FROM forgetting; COMMIT")
    by_hand.close()
    assert person.types("report", "--period", "newer") == 0
    assert "2 lines of the record are gone" in " ".join(person.said.split())


def test_a_report_of_a_forgotten_night_says_that_it_was_forgotten(person: Person) -> None:
    """Named, it is refused with when; where nothing is left, what was forgotten is told beside that."""
    two_nights(person)
    assert person.types("forget", "--all", "--yes") == 0
    assert person.types("report", "--period", "old") == 2
    assert "forgotten at 23:05" in person.complained
    assert person.types("report", "--since", "2026-01-01") == 1
    assert "2 nights from" in person.said
    assert "as you had asked (everything)" in person.said


# the database's own guard


@pytest.mark.parametrize("table", ["record_line", "verdict"])
def test_a_delete_passes_only_while_a_forgetting_is_open(person: Person, table: str) -> None:
    """Before and after a forgetting the database itself refuses; an update is refused even then."""
    two_nights(person)
    assert person.types("forget", "--older-than", "90d", "--yes") == 0
    by_hand = apsw.Connection(f"{person.state_dir}/stopwarden.db")
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        by_hand.execute(f"DELETE FROM {table}")
    assert by_hand.execute("SELECT count(*) FROM forgetting").fetchall() == [(0,)]
    by_hand.execute("BEGIN; INSERT INTO forgetting VALUES (1)")
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        by_hand.execute(f"UPDATE {table} SET kind = 'other'")
    by_hand.close()


# crashes


def test_a_crash_at_any_access_loses_nothing_that_is_kept(
    person: Person, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails for good at one access after another: what stays is whole, and doing it again finishes it."""
    monkeypatch.setattr(forgetting, "PIECE_ROWS", 3)
    two_nights(person)
    store = opened(person)
    forgetting.shrink(store)
    before = kept(store)
    store.close()
    state = pathlib.Path(person.state_dir)
    whole = {path.name: path.read_bytes() for path in state.iterdir() if path.is_file()}
    unfinished = 0
    for number in range(1, 400, 11):
        for path in state.iterdir():
            if path.is_file():
                path.unlink()
        for name, data in whole.items():
            (state / name).write_bytes(data)
        with failing_disk() as disk:
            disk.fail(number, for_good=True)
            code = person.types("forget", "--older-than", "90d", "--yes")
            reached = disk.done >= number
        assert code == 0 or reached
        store = opened(person)
        assert kept(store) == before, number
        said = [read_forgotten(line.at, line.text) for line in store.lines() if line.kind == "forgotten"]
        left = len(store.verdicts(period="old"))
        assert sum(one.verdicts for one in said) == 8 - left, "what is gone is said, and nothing else"
        unfinished += 0 < left < 8
        store.close()
        assert person.types("forget", "--older-than", "90d", "--yes") == 0
        store = opened(person)
        assert kept(store) == before
        assert store.verdicts(period="old") == []
        store.close()
        if not reached:
            break
    assert unfinished
    assert not reached


def test_a_verdict_that_comes_meanwhile_keeps_the_texts_it_names(person: Person) -> None:
    """Texts are counted without a lock; a stop judged in between, naming an old text, does not lose it."""
    two_nights(person)
    store, other = opened(person), opened(person)
    going = forgetting.plan(store, Choice(before=NOW - 90 * DAY), [], NOW)
    assert forgetting.carry_out(store, going, [], lambda: NOW)
    calls = 0

    def a_stop_is_judged() -> bool:
        nonlocal calls
        calls += 1
        if calls == 3:  # after the bodies were read, before the first text goes
            with other.transaction():
                digest = other.put_snapshot(f"{WORD} of old\nitem 1")
                other.append_verdict(VerdictRow(at=NOW, session="S", body=wire.dumps({"x": {"lines": digest}})))
        return False

    assert forgetting.sweep(store, a_stop_is_judged)
    assert calls >= 3
    assert [row[0] for row in store._execute("SELECT body FROM snapshot").fetchall() if "old" in row[0]] == [
        f"{WORD} of old\nitem 1"
    ]
    other.close()
    store.close()


def test_the_spool_is_emptied_without_losing_a_fact(person: Person) -> None:
    """A hook that writes while the file is put aside is heard; a new file with the old one's number is read whole."""
    store = opened(person)
    state = person.state_dir
    heard: list[str] = []

    def take() -> None:
        with store.transaction():
            heard.extend(one["s"] for one in spool.facts(store, state))

    def write(name: str, session: str) -> None:
        with open(f"{state}/{name}", "a") as file:
            file.write(wire.dumps({"e": "prompt", "t": 1, "s": session}) + "\n")

    write("spool.old", "first")
    write("spool", "second")
    assert spool.emptied(store, state, take, lambda seconds: write("spool.old", "late"))
    assert heard == ["first", "second", "late"]
    assert not os.path.exists(f"{state}/spool.old")
    for number in range(5):
        write("spool", f"new{number}")
    take()
    take()
    assert heard[3:] == [f"new{number}" for number in range(5)]
    store.close()


def test_a_session_heard_of_meanwhile_is_not_forgotten(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between choosing and doing it a session comes back: its row, state and todos stay."""
    two_nights(person)
    store, other = opened(person), opened(person)
    going = forgetting.plan(store, Choice(before=NOW - 90 * DAY), [], NOW)
    planned = forgetting.plan

    def then_it_comes_back(*given: Any) -> forgetting.Plan:
        made = planned(*given)
        if not store.in_transaction:
            row = other.session("aaaa0001")
            assert row is not None
            other.save_session(row.replace(last_event_at=NOW))
        return made

    monkeypatch.setattr(forgetting, "plan", then_it_comes_back)
    assert forgetting.carry_out(store, going, [], lambda: NOW)
    assert store.session("aaaa0001") is not None
    assert store.host_todos("aaaa0001") != ""
    assert store.verdicts(period="old") == []
    other.close()
    store.close()


def test_room_is_given_back_a_piece_at_a_time(person: Person) -> None:
    """Where a whole rewriting would hold others up, the file shrinks in small steps."""
    store = opened(person)
    for number in range(4):
        night(store, f"n{number}", OLD + number * DAY, session=f"hhhh{number}", word=str(number) * 5000)
    assert forgetting.shrink(store, lambda: False)
    before = os.path.getsize(store.path)
    going = forgetting.plan(store, Choice(everything=True), [], NOW)
    assert forgetting.carry_out(store, going, [], lambda: NOW)
    assert forgetting.sweep(store)
    statements: list[str] = []
    store._connection.set_exec_trace(lambda cursor, sql, bindings: statements.append(sql) or True)
    assert forgetting.shrink(store, lambda: False)
    assert not [one for one in statements if one.startswith("VACUUM")]
    assert os.path.getsize(store.path) < before / 5
    assert not os.path.exists(f"{store.path}-wal") or os.path.getsize(f"{store.path}-wal") == 0
    store.close()


# limits


def test_the_limits_are_kept_to_when_the_person_is_back(person: Person) -> None:
    """By default 400 days; what the person sets holds from the next `back` on, and `doctor` tells it."""
    store = opened(person)
    night(store, "ancient", NOW - 401 * DAY, session="eeee0005")
    night(store, "old", OLD, session="aaaa0001")
    store.save_fact("forgetting", "seen", str(NOW - DAY))
    store.close()

    def left() -> set[str]:
        store = opened(person)
        try:
            return {one.id for one in store.periods()}
        finally:
            store.close()

    person.types("back")
    assert left() == {"old"}
    assert person.types("forget", "--set-age", "90d") == 0
    person.types("back")
    assert left() == {"old"}, "once a day"
    person.now += DAY + 1
    person.types("back")
    assert left() == set()
    assert person.types("forget", "--set-age", "none", "--set-size", "none") == 0
    assert "nothing is forgotten by itself" in person.said


def test_doctor_says_how_much_is_kept_and_what_was_set_aside(person: Person) -> None:
    two_nights(person)
    assert person.types("forget", "--set-age", "90d", "--set-size", "500MB") == 0
    assert "older than 90 days or beyond 500 MB" in person.said
    pathlib.Path(person.state_dir, "stopwarden.db.damaged-20260801T010203Z").write_text(WORD)
    person.types("doctor", "--quick", "--json")
    told = [one for one in json.loads(person.said)["findings"] if one["subject"] == "record"]
    assert [one["level"] for one in told] == ["ok", "WARN"]
    assert "older than 90 days or beyond 500 MB are forgotten" in told[0]["text"]
    assert "forget --damaged" in told[1]["do"]


@pytest.mark.parametrize(
    ("said", "bytes_"),
    [("200MB", 200_000_000), ("1.5 GiB", 3 * 2**29), ("5000k", 5_000_000), ("1TB", 10**12), ("2 tib", 2**41)],
)
def test_sizes_are_read_as_they_are_written(said: str, bytes_: int) -> None:
    assert retention.size_of(said) == bytes_


def test_a_clock_that_jumps_ahead_does_not_cost_the_record(person: Person) -> None:
    """Years later at one go, and back again at the next: nothing was forgotten by the limits."""
    two_nights(person)
    person.types("back")
    person.now = NOW + 12 * 365 * DAY
    person.types("back")
    person.now = NOW + DAY
    person.types("back")
    store = opened(person)
    assert {one.id for one in store.periods()} == {"old", "newer"}
    store.close()


def test_the_size_is_kept_by_forgetting_the_oldest_nights(person: Person) -> None:
    """Oldest first, no more than needed; the last night stays whatever its size when it is by limit."""
    store = opened(person)
    for number in range(6):
        night(store, f"n{number}", NOW - (60 - number) * DAY, session=f"ffff{number}", word=str(number) * 4000)
    assert forgetting.used(store) > 2_500_000
    store.close()
    assert person.types("forget", "--keep-size", "2MB", "--yes") == 0, person.complained
    store = opened(person)
    names = [one.id for one in store.periods()]
    assert forgetting.used(store) <= 2_000_000
    assert names == [f"n{number}" for number in range(6 - len(names), 6)]
    assert 2 <= len(names) < 6
    store.close()


def test_dates_ahead_of_the_clock_are_said_and_not_taken_for_old(person: Person) -> None:
    """A night recorded while the clock was ahead stays by age, is said, and goes by name."""
    store = opened(person)
    night(store, "ahead", NOW + 300 * DAY, session="gggg0006")
    store.close()
    assert person.types("forget", "--older-than", "1d", "--yes") == 0
    assert "dated later than now" in person.said
    assert person.types("forget", "--period", "ahead", "--yes") == 0
    store = opened(person)
    assert store.verdicts() == []
    store.close()


@pytest.mark.parametrize("seed", range(8))
def test_random_nights_forgotten_at_random_leave_the_others_as_they_were(person: Person, seed: int) -> None:
    """Whatever is named, every night that was not named is there, byte for byte, with its texts."""
    chance = random.Random(seed)
    store = opened(person)
    names = {f"p{n}": NOW - chance.randrange(1, 300) * DAY for n in range(5)}
    for number, (name, since) in enumerate(names.items()):
        night(store, name, since, session=f"{number:08x}", word=f"word{number}")
    before = {name: kept(store, f"{number:08x}", name) for number, name in enumerate(names)}
    store.close()
    gone: set[str] = set()
    for _ in range(2):
        if chance.random() < 0.5:
            name = chance.choice(sorted(names))
            if name not in gone:
                assert person.types("forget", "--period", name, "--yes") == 0
                gone.add(name)
        else:
            days = chance.randrange(1, 300)
            assert person.types("forget", "--older-than", f"{days}d", "--yes") == 0
            gone |= {name for name, since in names.items() if since + 8 * 3600 < NOW - days * DAY}
    store = opened(person)
    for number, name in enumerate(names):
        if name in gone:
            assert store.verdicts(period=name) == []
        else:
            assert kept(store, f"{number:08x}", name) == before[name]
    store.close()
    for number, name in enumerate(names):
        assert (name in gone) == (everywhere(person.state_dir, f"word{number} of {name}") == [])


def test_every_statement_has_a_name_a_purpose_and_is_used() -> None:
    text = pathlib.Path(migrate.SQL, "forgetting.sql").read_text(encoding="utf-8")
    used = pathlib.Path(forgetting.__file__).read_text(encoding="utf-8")
    for name, statement in database.queries(text).items():
        assert f"-- name: {name}\n-- " in text
        assert statement.count(";") == 1
        assert f'"{name}"' in used or f'"{name.removeprefix("forget_")}"' in used, name
