"""The ledger on a disk that fails, and with many processes at once: an item and its hold change together or not at all."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

import apsw
import pytest

from stopwarden.core.errors import StopwardenError, StoreUnwritableError
from stopwarden.core.reservations import Denied
from stopwarden.store import database, place
from stopwarden.store.port import LedgerItem
from stopwarden.store.sqlite import SqliteStore, open_sqlite
from stopwarden.work import ledger
from stopwarden.work.ledger import Ended, Failed, Passed, Started
from stopwarden.work.reservations import Actor
from tests.support.failing_disk import failing_disk
from tests.support.person import Person

NOW = 1_000_000
PERSON = Actor(project="p")
MINE = Actor(project="p", session="mine", copy="here", root="/repo")


@pytest.fixture
def quick_dir() -> Iterator[str]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as home:
        yield place.prepare({"XDG_STATE_HOME": home})


def do_all(store: SqliteStore, acknowledged: list[LedgerItem]) -> None:
    """One act after the other, whatever becomes of each; what was said to be done is kept."""

    def act(done: Callable[[], object]) -> None:
        try:
            told = done()
        except StopwardenError:
            return
        if isinstance(told, (Started, Ended)):
            told = told.item
        if isinstance(told, LedgerItem):
            acknowledged.append(told)

    clock = lambda: NOW  # noqa: E731
    for number in (1, 2, 3, 4):
        act(lambda: ledger.add(store, "p", "t" * 150, clock, verify="true"))
        act(lambda number=number: ledger.start(store, MINE, number, clock, nonce=str(number)))  # type: ignore[misc]
    act(lambda: ledger.finish(store, MINE, 1, clock, ran=Failed(digest="x")))
    act(lambda: ledger.finish(store, MINE, 1, clock, ran=Passed()))
    act(lambda: ledger.wait(store, MINE, 2, clock, "person", "why"))
    act(lambda: ledger.drop(store, PERSON, 3, clock))
    act(lambda: ledger.change(store, PERSON, 4, clock, priority=0, needs=[1]))


def check(state_dir: str, acknowledged: list[LedgerItem]) -> None:
    """What was acknowledged is there, or what followed it; an item and its hold tell one story."""
    assert not [name for name in os.listdir(state_dir) if "damaged" in name]
    store = open_sqlite(state_dir)
    assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    there = {one.number: one for one in store.ledger_items()}
    order = {"open": 0, "doing": 1, "waiting": 2, "done": 2, "dropped": 2}
    for told in acknowledged:
        assert order[there[told.number].state] >= order[told.state], f"{told} was lost"
        assert there[told.number].needs == told.needs or told.needs == ()
    for number, one in there.items():
        held = store.reservation("p", f"w{number}")
        assert (held is not None) == (one.assigned == "mine"), "begun without a hold, or held and not begun"
        assert held is not None or one.state != "doing"
        if held is not None:
            assert held.terminal == (one.state in ("done", "dropped"))
            assert one.assigned == held.session == "mine"
        assert (one.verified_at is not None) == (one.state == "done")
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
@pytest.mark.parametrize("how", ["it fails once", "it is full once", "it fails from then on", "the power is lost"])
def test_whichever_access_fails_an_item_and_its_hold_agree(
    quick_dir: str, tmp_path: pathlib.Path, journal_mode: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first access fails, then the second, and so on, in both journal modes: nothing acknowledged is lost."""
    if journal_mode == "delete":
        monkeypatch.setattr(database, "WAL_SINCE", (99,))
    monkeypatch.setattr(database, "LOG_PAGES", 12)
    open_sqlite(quick_dir).close()
    template = tmp_path / "template"
    shutil.copytree(quick_dir, template)
    with failing_disk() as disk:
        for at in range(1, 10_000):
            shutil.rmtree(quick_dir)
            shutil.copytree(template, quick_dir)
            disk.fail(at, for_good="once" not in how, error=apsw.FullError if "full" in how else apsw.IOError)
            acknowledged: list[LedgerItem] = []
            try:
                store = open_sqlite(quick_dir)
                do_all(store, acknowledged)
                store.close()
            except StoreUnwritableError:
                pass
            clean = disk.done < at
            if "power" in how:
                disk.lose_power()
            disk.works()
            check(quick_dir, acknowledged)
            if clean:
                break
    assert len(acknowledged) == 13
    assert at > 30


def test_a_list_is_never_changed_in_silence(tmp_path: pathlib.Path) -> None:
    """Every access to the database fails in turn while an item is begun: either both are done, or it is said what is."""
    person = Person(tmp_path)
    todo = pathlib.Path(person.list("- [ ] write tests\n"))
    person.env |= {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "mine"}
    with person.store():
        pass
    template = tmp_path / "template"
    shutil.copytree(person.state_dir, template)
    said = set()
    with failing_disk() as disk:
        for at in range(1, 200):
            shutil.rmtree(person.state_dir)
            shutil.copytree(template, person.state_dir)
            todo.write_text("- [ ] write tests\n", encoding="utf-8")
            disk.fail(at)
            code = person.types("start", "write")
            clean = disk.done < at
            disk.works()
            begun = todo.read_text(encoding="utf-8") == "- [/] write tests\n"
            with person.store() as store:
                held = bool(store.reservations())
            assert code in (0, 4)
            if code == 0:
                assert begun
                assert held
            elif begun:
                assert "was changed in TODO.md, but the hold on it may not be" in person.complained
            said.add((code, begun, held))
            if clean:
                break
    assert clean
    assert {(0, True, True), (4, True, False)} <= said


@pytest.mark.slow
def test_of_many_sessions_that_start_one_item_at_once_one_does(tmp_path: pathlib.Path) -> None:
    """Twelve processes of twelve sessions: one exit code 0, the others 3; one token; the item is the winner's."""
    person = Person(tmp_path)
    person.types("add", "a", "--ledger")
    source = pathlib.Path(__file__).parent.parent / "src"
    env = {**person.env, "PYTHONPATH": os.environ.get("STOPWARDEN_TEST_SOURCE") or str(source), "CLAUDECODE": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "stopwarden", "start", "w1"],
            cwd=person.repo,
            env={**env, "CLAUDE_CODE_SESSION_ID": f"session-{number}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for number in range(12)
    ]
    codes = [process.wait(60) for process in started]
    assert sorted(codes) == [0] + [3] * 11
    with person.store() as store:
        (item,) = store.ledger_items()
        (held,) = store.reservations(released=True)
        told = ledger.start(store, MINE.replace(project=item.project), 1, lambda: held.claimed_at)
    assert item.assigned == held.session == f"session-{codes.index(0)}"
    assert held.token == 1
    assert isinstance(told, Denied)
