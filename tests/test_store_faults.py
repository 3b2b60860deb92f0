"""What the store does when the disk, the file or another program is in the way: nothing lost, nothing by halves."""

from __future__ import annotations

import errno
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import pytest

from stopwarden.core.errors import (
    StopwardenError,
    StoreBusyError,
    StoreCorruptError,
    StorePlaceError,
    StoreUnwritableError,
)
from stopwarden.core.events import SessionState
from stopwarden.store import database, failure, migrate, place
from stopwarden.store.port import RecordLine, SessionRow, VerdictRow
from stopwarden.store.sqlite import SqliteStore, open_sqlite
from tests.support.failing_disk import failing_disk

SRC = pathlib.Path(migrate.__file__).parents[2]
SUPPORT = pathlib.Path(__file__).with_name("support")
MODES = pytest.mark.parametrize("journal_mode", ["wal", "delete"])


@pytest.fixture
def state_dir(tmp_path: pathlib.Path) -> str:
    return place.prepare({"XDG_STATE_HOME": str(tmp_path / "state")})


@pytest.fixture
def quick_dir() -> Iterator[str]:
    """A state directory in memory where the machine has one: the failing disk is ours, no real one is needed."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as home:
        yield place.prepare({"XDG_STATE_HOME": home})


def use(journal_mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the store write as with a SQLite of one kind or the other."""
    if journal_mode == "delete":
        monkeypatch.setattr(database, "WAL_SINCE", (99,))


def line(at: int = 1, **fields: Any) -> RecordLine:
    return RecordLine(at=at, kind="line", **fields)


def filled(state_dir: str) -> pathlib.Path:
    """A database with something in it, its log written back and closed; its path."""
    store = open_sqlite(state_dir)
    store.append(line(at=number, text="x" * 500) for number in range(50))
    store._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    store.close()
    return pathlib.Path(store.path)


def files(state_dir: str) -> set[str]:
    return {path.name for path in pathlib.Path(state_dir).iterdir()}


# a damaged database


def _junk(path: pathlib.Path) -> None:
    path.write_bytes(b"this is no database, but it is quite long. " * 500)


def _empty(path: pathlib.Path) -> None:
    path.write_bytes(b"")


def _truncated(path: pathlib.Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _short(path: pathlib.Path) -> None:
    os.truncate(path, 700)


def _first_page_overwritten(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    content[100:4096] = random.Random(1).randbytes(3996)
    path.write_bytes(content)


def _every_other_page_overwritten(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = random.Random(1).randbytes(len(content) - 4096)
    path.write_bytes(content)


def _another_database(path: pathlib.Path) -> None:
    path.unlink()
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE other (a); INSERT INTO other VALUES (1)")
    other.close()


def _table_dropped(path: pathlib.Path) -> None:
    by_hand = apsw.Connection(str(path))
    by_hand.execute("DROP TABLE session; DROP TABLE record_line")
    by_hand.close()


def _schema_garbled(path: pathlib.Path) -> None:
    by_hand = apsw.Connection(str(path))
    by_hand.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    by_hand.execute("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE' WHERE name = 'session'")
    by_hand.close()


def _text_undecodable(path: pathlib.Path) -> None:
    by_hand = apsw.Connection(str(path))
    by_hand.execute("INSERT INTO record_line VALUES (NULL, 1, 'k', '', '', '', CAST(x'ff' AS TEXT))")
    columns = by_hand.execute("SELECT name, type FROM pragma_table_info('session_state')").fetchall()
    lists = {"reached", "graced", "handed_back", "offered", "passed_over"}
    values = {name: "'[]'" if name in lists else "0" if kind == "INTEGER" else "''" for name, kind in columns}
    values |= {"id": "'S'", "recent_blocks": "'no list'", "revision": "1"}
    by_hand.execute(f"INSERT INTO session_state ({', '.join(values)}) VALUES ({', '.join(values.values())})")
    by_hand.close()


DAMAGE = [
    _junk,
    _empty,
    _truncated,
    _short,
    _first_page_overwritten,
    _every_other_page_overwritten,
    _another_database,
    _table_dropped,
    _schema_garbled,
    _text_undecodable,
]


def use_everything(store: SqliteStore) -> None:
    store.save_session(SessionRow(id="S"))
    store.state("S")
    store.sessions()
    store.lines()


@pytest.mark.case("A96")
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__.strip("_"))
def test_a_damaged_database_is_set_aside_and_a_new_one_begun(
    state_dir: str, damage: Callable[[pathlib.Path], None]
) -> None:
    """Whatever the damage: the file is kept under another name, the error says which, and the next opening works."""
    path = filled(state_dir)
    damage(path)
    damaged = path.read_bytes()
    with pytest.raises(StoreCorruptError) as told:
        use_everything(open_sqlite(state_dir))
    (aside,) = pathlib.Path(state_dir).glob("stopwarden.db.damaged-*Z")
    assert str(aside) in str(told.value)
    assert "next stopwarden command begins a new" in str(told.value)
    assert damage is _table_dropped or aside.read_bytes()[:4096] == damaged[:4096]
    assert not path.exists()
    assert not {f"stopwarden.db{companion}" for companion in place.COMPANIONS} & files(state_dir)

    store = open_sqlite(state_dir)
    assert store.lines() == []
    use_everything(store)
    store.close()
    assert aside.exists()


def test_two_damaged_databases_in_one_second_are_both_kept(state_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "stamp", lambda: "20261130T210000Z")
    for _ in range(3):
        _junk(filled(state_dir))
        with pytest.raises(StoreCorruptError):
            open_sqlite(state_dir)
    name = "stopwarden.db.damaged-20261130T210000Z"
    assert {found for found in files(state_dir) if "-wal" not in found and "-shm" not in found} == {
        *(name, f"{name}.2", f"{name}.3")
    }


def test_the_log_goes_aside_with_its_database(state_dir: str) -> None:
    """What is only in the log belongs to the damaged database and must not be taken for the new one's."""
    store = open_sqlite(state_dir)
    store.append([line(text="only in the log")])
    store.close()
    path = pathlib.Path(store.path)
    assert pathlib.Path(f"{path}-wal").stat().st_size > 0
    _junk(path)
    with pytest.raises(StoreCorruptError):
        open_sqlite(state_dir)
    (log,) = pathlib.Path(state_dir).glob("stopwarden.db.damaged-*-wal")
    assert b"only in the log" in log.read_bytes()
    again = open_sqlite(state_dir)
    assert again.lines() == []
    again.close()


def test_a_log_left_by_a_database_that_is_gone_is_not_taken_for_the_new_ones(state_dir: str) -> None:
    store = open_sqlite(state_dir)
    store.append([line()])
    store.close()
    os.unlink(store.path)
    again = open_sqlite(state_dir)
    assert again.lines() == []
    again.close()
    assert len(list(pathlib.Path(state_dir).glob("stopwarden.db.damaged-*-wal"))) == 1


def test_a_database_that_another_program_has_replaced_already_is_not_set_aside(state_dir: str) -> None:
    """Two programs find the damage; the slower one must not set aside the new, healthy database."""
    path = filled(state_dir)
    slow = open_sqlite(state_dir)
    _every_other_page_overwritten(path)
    with pytest.raises(StoreCorruptError, match="set aside as"):
        open_sqlite(state_dir).lines()
    healthy = open_sqlite(state_dir)
    healthy.append([line()])
    with pytest.raises(StoreCorruptError, match="replaced or removed"):
        slow.lines()
    told = failure.set_aside(slow.path, slow._file, "test", 1)
    assert "Another program has set it aside" in str(told)
    assert len(healthy.lines()) == 1
    healthy.close()


def test_nothing_is_written_to_a_file_that_nobody_would_find(state_dir: str) -> None:
    """The state directory was emptied or restored under an open store: an error, not a write into the void."""
    store = open_sqlite(state_dir)
    for path in pathlib.Path(state_dir).iterdir():
        path.unlink()
    with pytest.raises(StoreCorruptError, match="replaced or removed"):
        store.append([line()])
    with pytest.raises(StoreCorruptError, match="replaced or removed"):
        store.append([line()])
    assert files(state_dir) == set()


def test_a_damaged_database_that_cannot_be_moved_is_left_and_the_error_says_so(
    state_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(state_dir)
    _junk(path)

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(StoreCorruptError, match=r"could not be set aside.*Rename it yourself to /.*damaged-"):
        open_sqlite(state_dir)
    assert path.exists()


def test_a_statement_that_fails_on_a_whole_database_is_no_damage(
    state_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of our own in a statement must never cost the user the database."""
    store = open_sqlite(state_dir)
    monkeypatch.setitem(database._queries, "fact", "SELECT x FROM nowhere;")
    with pytest.raises(StoreUnwritableError, match="no such table"):
        store.fact("a", "b")
    monkeypatch.undo()
    store.save_fact("a", "b", "c")
    assert store.fact("a", "b") == "c"
    store.close()
    assert not [name for name in files(state_dir) if "damaged" in name]


def test_a_hook_that_must_find_a_database_does_not_begin_one(state_dir: str) -> None:
    with pytest.raises(StoreCorruptError, match="no database"):
        open_sqlite(state_dir, create=False)
    assert files(state_dir) == set()
    open_sqlite(state_dir).close()
    open_sqlite(state_dir, create=False).close()


# a disk that cannot be written


@pytest.mark.case("A97")
@MODES
def test_a_full_disk_is_told_and_nothing_is_counted(
    state_dir: str, journal_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No room for the state: an error that says so, the state as it was, and all works again once there is room."""
    use(journal_mode, monkeypatch)
    with failing_disk() as disk:
        store = open_sqlite(state_dir)
        store.save_state(SessionState(id="S", blocks=1), expected_revision=0)
        disk.fail(1, for_good=True, error=apsw.FullError)
        with pytest.raises(StoreUnwritableError, match=r"full.*Nothing was written.*Make room"):
            store.save_state(SessionState(id="S", blocks=2), expected_revision=1)
        disk.works()
        assert store.state("S") == SessionState(id="S", blocks=1, revision=1)
        store.save_state(SessionState(id="S", blocks=2), expected_revision=1)
        store.close()
        assert not [name for name in files(state_dir) if "damaged" in name]


@pytest.mark.case("A97")
@pytest.mark.parametrize(
    "closed", ["the state home", "the state directory", "the directory of a database", "the files"]
)
def test_a_place_that_cannot_be_written_is_told(tmp_path: pathlib.Path, closed: str) -> None:
    """A read-only place, at first use and later: one clear error that says what to do."""
    home = tmp_path / "state"
    directory = pathlib.Path(place.prepare({"XDG_STATE_HOME": str(home)}))
    if closed == "the state home":
        directory.rmdir()
        home.chmod(0o500)
    elif closed == "the state directory":
        directory.chmod(0o500)
    else:
        open_sqlite(str(directory)).close()
        for path in directory.iterdir():
            path.chmod(0o400)
        if closed == "the directory of a database":
            directory.chmod(0o500)
    told = subprocess.run(
        [sys.executable, str(SUPPORT / "lesser_user.py"), str(home)],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    home.chmod(0o700)
    directory.parent.joinpath("stopwarden").exists() and directory.chmod(0o700)
    assert told.startswith("StoreUnwritableError: "), told
    assert "Nothing was written" in told
    assert "riteable" in told or "ritable" in told or "has room" in told


def test_a_failure_that_undoes_a_transaction_undoes_what_follows_in_it_too(state_dir: str) -> None:
    """A caller who catches the failure and goes on inside the transaction must not store the second half alone."""
    store = open_sqlite(state_dir)

    def go_on_after_a_failure() -> None:
        with store.transaction():
            store.append([line(text="first")])
            store._connection.execute("ROLLBACK")  # as SQLite does by itself after some failures
            with pytest.raises(StoreUnwritableError, match="undid the whole transaction"):
                store.append([line(text="second")])

    with pytest.raises(StoreUnwritableError):
        go_on_after_a_failure()
    assert store.lines() == []
    store.append([line(text="third")])
    assert [one.text for one in store.lines()] == ["third"]
    store.close()


# another program holds the lock


@pytest.mark.case("A98")
@MODES
def test_a_held_lock_is_waited_for_within_bounds_and_then_told(
    state_dir: str, journal_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program writes for longer than we wait: an error, nothing written, and no database thought damaged."""
    use(journal_mode, monkeypatch)
    clock = [100.0]
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(database.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(database.time, "sleep", sleep)
    holder, store = open_sqlite(state_dir), open_sqlite(state_dir, wait=5)
    with holder.transaction():
        holder.append([line()])
        with pytest.raises(StoreBusyError, match=r"in use by another program.*Nothing was written"):
            store.append([line()])
    assert 4.9 <= sum(pauses) <= 5.1
    assert 0 < max(pauses) <= database.LONGEST_PAUSE
    store.append([line(2)])
    assert [one.at for one in store.lines()] == [1, 2]
    holder.close()
    store.close()


def test_a_lock_that_is_let_go_in_time_is_waited_for(state_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, store = open_sqlite(state_dir), open_sqlite(state_dir, wait=5)
    holder._enter()
    holder.append([line()])
    monkeypatch.setattr(database.time, "sleep", lambda _: holder._keep() if holder.in_transaction else None)
    store.append([line(2)])
    assert [one.at for one in store.lines()] == [1, 2]
    holder.close()
    store.close()


def test_nobody_waits_longer_than_told_for_the_right_to_begin_a_database(state_dir: str) -> None:
    with place.Turn(state_dir, 1), pytest.raises(StoreBusyError, match="replacing the database"):
        open_sqlite(state_dir, wait=0)
    assert files(state_dir) == set()


@MODES
def test_programs_that_open_a_new_store_at_once_share_one_database(state_dir: str, journal_mode: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    writer = [sys.executable, str(SUPPORT / "busy_writer.py"), state_dir]
    running = [
        subprocess.Popen([*writer, f"w{number}", "1", journal_mode], env=env, stdout=subprocess.PIPE)
        for number in range(6)
    ]
    assert [process.communicate()[0] for process in running] == [b"1\n"] * 6
    store = open_sqlite(state_dir)
    assert len(store.lines()) == 12
    store.close()
    assert files(state_dir) <= {"stopwarden.db", "stopwarden.db-wal", "stopwarden.db-shm"}


# every failure of SQLite is one of ours


@pytest.mark.parametrize(
    "kind", [kind for kind in vars(apsw).values() if isinstance(kind, type) and issubclass(kind, apsw.Error)]
)
def test_every_error_of_sqlite_has_one_of_ours(kind: type[apsw.Error]) -> None:
    error = kind("what it says")
    if failure.is_damage(error):
        assert kind in (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)
        return
    told = failure.translated(error, "/path/of/it")
    assert type(told) in (StoreBusyError, StorePlaceError, StoreUnwritableError)
    assert isinstance(told, StoreBusyError) == (kind in failure.BUSY)
    assert "/path/of/it" in str(told)
    assert told.kept
    assert told.do


# sweeps: fail every access in turn


def _work(store: SqliteStore, acknowledged: list[int]) -> None:
    """Numbered transactions of several rows each; those that the store acknowledged are told."""
    for number in range(1, 6):
        try:
            with store.transaction():
                state = store.state("S")
                store.append(line(at=number, text=f"{half} {number} " + "x" * 900) for half in ("first", "second"))
                store.save_state(state.replace(blocks=number), expected_revision=state.revision)
                store.append_verdict(VerdictRow(at=number, session="S", nonce=f"n{number}", body="y" * 3000))
            acknowledged.append(number)
        except StoreUnwritableError:
            pass


def _check(state_dir: str, acknowledged: list[int]) -> None:
    """Everything acknowledged is there, everything else whole or absent, and the file is sound."""
    assert not [name for name in files(state_dir) if "damaged" in name]
    store = open_sqlite(state_dir)
    lines, verdicts = store.lines(), store.verdicts()
    there = [row.at for row in verdicts]
    assert set(acknowledged) <= set(there), f"lost: {set(acknowledged) - set(there)}"
    assert there == sorted(set(there))
    assert [one.text.split()[:2] for one in lines] == [
        [half, str(number)] for number in there for half in ("first", "second")
    ]
    assert all(one.text.endswith("x" * 900) for one in lines)
    assert store.state("S").revision == len(there)
    assert store.state("S").blocks == (there[-1] if there else 0)
    assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store.append([line(at=99)])
    store.close()


def _fresh(template: pathlib.Path, state_dir: str) -> None:
    shutil.rmtree(state_dir)
    shutil.copytree(template, state_dir)


@pytest.mark.slow
@MODES
@pytest.mark.parametrize("how", ["it fails once", "it is full once", "it fails from then on", "the power is lost"])
def test_whichever_access_to_the_disk_fails_nothing_acknowledged_is_lost(
    quick_dir: str,
    tmp_path: pathlib.Path,
    journal_mode: str,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fails the first write, flush, truncation or deletion, then the second, and so on until none is left to fail.

    With lost power nothing that was not flushed survives, so an answer before the flush would be found out.
    """
    use(journal_mode, monkeypatch)
    monkeypatch.setattr(database, "LOG_PAGES", 12)  # write the log back often, so that this fails too
    open_sqlite(quick_dir).close()
    template = tmp_path / "template"
    shutil.copytree(quick_dir, template)
    with failing_disk() as disk:
        for at in range(1, 10_000):
            _fresh(template, quick_dir)
            acknowledged: list[int] = []
            disk.fail(at, for_good="once" not in how, error=apsw.FullError if "full" in how else apsw.IOError)
            try:
                store = open_sqlite(quick_dir)
                _work(store, acknowledged)
                store.close()
            except StoreUnwritableError:
                pass
            clean = disk.done < at
            if "power" in how:
                disk.lose_power()
            disk.works()
            _check(quick_dir, acknowledged)
            if clean:
                break
    assert acknowledged == list(range(1, 6))
    assert at > 40


@MODES
def test_whichever_access_fails_while_a_database_is_begun_the_next_opening_begins_it(
    quick_dir: str, journal_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(journal_mode, monkeypatch)
    with failing_disk() as disk:
        for at in range(1, 1_000):
            for path in pathlib.Path(quick_dir).iterdir():
                path.unlink()
            disk.fail(at)
            try:
                open_sqlite(quick_dir).close()
            except StoreUnwritableError:
                assert "stopwarden.db" not in files(quick_dir)
            clean = disk.done < at
            disk.works()
            _check(quick_dir, [])
            if clean:
                break
    assert at > 15


@MODES
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
@pytest.mark.slow
def test_a_writer_killed_at_any_moment_has_lost_nothing_it_acknowledged(
    state_dir: str, journal_mode: str, sign: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed over and over in the middle of its work: every acknowledged line is there, with its other half."""
    use(journal_mode, monkeypatch)
    chance = random.Random(journal_mode)
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    last = 0
    for _ in range(15):
        writer = subprocess.Popen(
            [sys.executable, str(SUPPORT / "busy_writer.py"), state_dir, "S", "0", journal_mode],
            env=env,
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        for _ in range(chance.randrange(1, 12)):
            last = int(writer.stdout.readline())
        for _ in range(chance.randrange(30_000)):
            pass
        writer.send_signal(sign)
        rest = writer.stdout.read().split()
        writer.stdout.close()
        writer.wait()
        last = int(rest[-1]) if rest else last
        store = open_sqlite(state_dir)
        there = store.state("S").revision
        assert there in (last, last + 1), "acknowledged and lost, or more than one that was not acknowledged"
        assert [one.text.split()[:2] for one in store.lines()] == [
            [half, str(number)] for number in range(1, there + 1) for half in ("first", "second")
        ]
        assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        store.close()
        last = there
    assert last >= 15


def test_a_disk_that_fails_says_so_without_an_error_of_sqlite(state_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading too: whatever fails, callers meet our errors alone."""
    with failing_disk() as disk:
        store = open_sqlite(state_dir)
        for kinds in ({"write"}, {"sync"}):
            disk.kinds = frozenset(kinds)
            disk.fail(1, for_good=True)
            with pytest.raises(StopwardenError):
                store.append([line()])
            disk.works()
        store.append([line(at=5)])
        assert store.lines()[-1].at == 5
        store.close()
