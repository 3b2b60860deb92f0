"""Reservations on a disk that fails: nothing acknowledged is lost, nothing is half done, and what is not known is read back."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

import apsw
import pytest

from stopwarden.core.errors import StopwardenError, StoreUnwritableError
from stopwarden.core.events import AwayPeriod, Reservation
from stopwarden.core.reservations import Denied, Granted
from stopwarden.store import database, place
from stopwarden.store.sqlite import SqliteStore, open_sqlite
from stopwarden.work import reservations
from tests.support.claimer import PLACE, ask
from tests.support.failing_disk import failing_disk

MODES = pytest.mark.parametrize("journal_mode", ["wal", "delete"])
NOW, HOUR = 1_000_000, 3_600


@pytest.fixture
def quick_dir() -> Iterator[str]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as home:
        yield place.prepare({"XDG_STATE_HOME": home})


def use(journal_mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if journal_mode == "delete":
        monkeypatch.setattr(database, "WAL_SINCE", (99,))


def is_sound(store: SqliteStore) -> bool:
    return store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# --- a sweep: every write, flush, truncation and deletion fails in turn -------------------------------


class Acts:
    """One after the other: claims, renewals, a take-over and releases; what the store acknowledged is kept."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.acknowledged: list[tuple[str, Reservation]] = []

    def do_all(self, state_dir: str) -> None:
        store = self.store
        for number in range(3):
            for session in ("a", "b"):
                claim = ask(session, f"i{number}", HOUR, f"{session} {number}", title="t" * 500)
                self._act(lambda claim=claim: reservations.reserve(store, claim, lambda: NOW, state_dir=state_dir))  # type: ignore[misc]
        for number in range(3):
            item = f"i{number}"
            self._act(lambda item=item: reservations.renew(store, PLACE, item, "a", lambda: NOW + HOUR // 2))  # type: ignore[misc]
        self._act(
            lambda: reservations.reserve(
                store, ask("b", "i0", HOUR, "b again", take_over=True, from_others=True), lambda: NOW + HOUR,
                state_dir=state_dir,
            )
        )  # fmt: skip
        for number in range(3):
            for session in ("a", "b"):
                self._act(
                    lambda number=number, session=session: reservations.release(  # type: ignore[misc]
                        store, PLACE, f"i{number}", session, lambda: NOW + HOUR, state_dir=state_dir
                    )
                )

    def _act(self, act) -> None:  # type: ignore[no-untyped-def]
        try:
            done = act()
        except StopwardenError:
            return
        if isinstance(done, Granted) and done.how not in ("not_yet", "nothing"):
            self.acknowledged.append((done.how, done.row))


def check(state_dir: str, acts: Acts | None) -> None:
    """What was acknowledged is there or was followed by a later act; each grant is on record once, with its token."""
    assert not [name for name in os.listdir(state_dir) if "damaged" in name]
    store = open_sqlite(state_dir)
    assert is_sound(store)
    there = {held.item: held for held in store.reservations(released=True)}
    lines = store.lines()
    for how, row in acts.acknowledged if acts is not None else []:
        held = there[row.item]
        assert held.token >= row.token, f"{how} of {row.item} was lost"
        if held.token == row.token:
            assert (held.session, held.title) == (row.session, row.title)
            assert held.released_at == row.released_at or row.released_at is None
            assert held.claimed_at >= row.claimed_at
    for item, held in there.items():
        granted = [line for line in lines if line.item == item and line.kind == "reserved"]
        assert len(granted) == held.token, "a grant without its line, or a line without its grant"
        assert granted[-1].session == held.session
        given_back = [line for line in lines if line.item == item and line.kind == "released"]
        assert bool(given_back) == (held.released_at is not None)
    for session in ("a", "b"):
        if any(held.session == session and held.released_at is None for held in there.values()):
            assert os.path.exists(reservations.sign_path(state_dir, session)), "a hold without a sign dies by itself"
    store.close()


@pytest.mark.slow
@MODES
@pytest.mark.parametrize("how", ["it fails once", "it is full once", "it fails from then on", "the power is lost"])
def test_whichever_access_fails_no_hold_is_lost_and_none_half_made(
    quick_dir: str, tmp_path: pathlib.Path, journal_mode: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first access fails, then the second, and so on: row, record and sign agree, and tokens are as many as grants."""
    use(journal_mode, monkeypatch)
    monkeypatch.setattr(database, "LOG_PAGES", 12)
    store = open_sqlite(quick_dir)
    store.add_period(AwayPeriod(id="night", since=0, scope="everywhere"), "{}")
    store.close()
    template = tmp_path / "template"
    shutil.copytree(quick_dir, template)
    with failing_disk() as disk:
        for at in range(1, 10_000):
            shutil.rmtree(quick_dir)
            shutil.copytree(template, quick_dir)
            disk.fail(at, for_good="once" not in how, error=apsw.FullError if "full" in how else apsw.IOError)
            acts = None
            try:
                store = open_sqlite(quick_dir)
                acts = Acts(store)
                acts.do_all(quick_dir)
                store.close()
            except StoreUnwritableError:
                pass
            clean = disk.done < at
            if "power" in how:
                disk.lose_power()
            disk.works()
            check(quick_dir, acts)
            if clean:
                break
    assert acts is not None
    assert [how for how, _ in acts.acknowledged].count("released") == 3
    assert at > 40


# --- not known whether it was stored ------------------------------------------------------------------


def test_a_claim_whose_commit_says_it_failed_is_read_back_and_granted(
    quick_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is gone, so the claim is stored, and then the disk reports a failure: it is there, and is granted once."""
    use("delete", monkeypatch)
    with failing_disk() as disk:
        store = open_sqlite(quick_dir)
        disk.kinds = frozenset({"delete"})
        disk.fail(1)
        disk.late = True
        told = reservations.reserve(store, ask("a", "i1", HOUR, "this very claim"), lambda: NOW)
        assert disk.done >= 1
        disk.works()
        assert isinstance(told, Granted)
        assert (told.how, told.row.token) == ("new", 1)
        assert store.reservation(PLACE, "i1") == told.row
        again = reservations.reserve(store, ask("b", "i1", HOUR), lambda: NOW)
        assert isinstance(again, Denied)
        store.close()


@MODES
def test_a_claim_whose_commit_failed_and_is_not_there_is_an_error_and_free(
    quick_dir: str, journal_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read back and not found: the failure is told, nothing is held, and the next one gets the first token."""
    use(journal_mode, monkeypatch)
    with failing_disk() as disk:
        store = open_sqlite(quick_dir)
        disk.kinds = frozenset({"write" if journal_mode == "wal" else "sync"})
        disk.fail(1)
        with pytest.raises(StoreUnwritableError):
            reservations.reserve(store, ask("a", "i1", HOUR, "n"), lambda: NOW, state_dir=quick_dir)
        disk.works()
        assert store.reservation(PLACE, "i1") is None
        told = reservations.reserve(store, ask("b", "i1", HOUR, "m"), lambda: NOW)
        assert isinstance(told, Granted)
        assert told.row.token == 1
        store.close()


def test_another_claim_of_the_same_session_is_not_taken_for_the_one_that_failed(quick_dir: str) -> None:
    """What is read back is known by its own mark, not by its session: an earlier hold is no success of this claim."""
    with failing_disk() as disk:
        store = open_sqlite(quick_dir)
        assert isinstance(reservations.reserve(store, ask("a", "i1", HOUR, "first"), lambda: NOW), Granted)
        disk.fail(1)
        with pytest.raises(StoreUnwritableError):
            reservations.reserve(store, ask("a", "i1", 2 * HOUR, "second"), lambda: NOW + 60)
        disk.works()
        held = store.reservation(PLACE, "i1")
        assert held is not None
        assert (held.nonce, held.expires_at) == ("first", NOW + HOUR)
        store.close()


def test_a_claim_that_cannot_be_read_back_is_said_to_be_unknown(
    quick_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is gone for good in the middle: the error says that it is not known; looked at later it is whole or absent."""
    use("delete", monkeypatch)
    told: list[str] = []
    with failing_disk() as disk:
        for at in range(12, 30):
            store = open_sqlite(quick_dir)
            disk.fail(at, for_good=True)
            try:
                reservations.reserve(store, ask("a", f"i{at}", HOUR, "n"), lambda: NOW)
            except StopwardenError as failed:
                told.append(str(failed))
            disk.works()
            store.close()
            after = open_sqlite(quick_dir)
            assert is_sound(after)
            held = after.reservation(PLACE, f"i{at}")
            assert held is None or (held.token, held.session) == (1, "a")
            after.close()
    assert any("It cannot be told whether i" in one and "Take it for not reserved" in one for one in told), told
