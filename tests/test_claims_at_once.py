"""Many sessions, one item: real processes on one database, stopped, killed and started all at once."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from stopwarden.core import reservations as rules
from stopwarden.core.events import AwayPeriod
from stopwarden.core.reservations import Granted
from stopwarden.store import database, migrate, place
from stopwarden.store.sqlite import SqliteStore, open_sqlite
from stopwarden.work import reservations
from tests.support.claimer import PLACE, ask

SRC = pathlib.Path(migrate.__file__).parents[2]
CLAIMER = pathlib.Path(__file__).with_name("support") / "claimer.py"
MODES = pytest.mark.parametrize("journal_mode", ["wal", "delete"])
MINUTE, MARGIN, NOW = 60, 300, 1_000_000


class Crowd:
    """Sessions in processes of their own, a database, a clock that is set by hand, and a gate they start at."""

    def __init__(self, home: str, journal_mode: str) -> None:
        self.state_dir = place.prepare({"XDG_STATE_HOME": home})
        self.clock, self.gate = f"{home}/clock", f"{home}/gate"
        self.journal_mode = journal_mode
        self.processes: list[subprocess.Popen[bytes]] = []
        self.set_clock(NOW)
        self.store: SqliteStore = open_sqlite(self.state_dir)

    def set_clock(self, now: int) -> None:
        self.now = now
        with open(self.clock, "w", encoding="ascii") as file:
            file.write(str(now))

    def start(self, *sessions: str) -> list[subprocess.Popen[bytes]]:
        """Sessions that are ready to take orders. Their `args[3]` is the session."""
        begun = [
            subprocess.Popen(
                [sys.executable, str(CLAIMER), self.state_dir, session, self.clock, self.gate, self.journal_mode],
                env={**os.environ, "PYTHONPATH": f"{SRC}{os.pathsep}{CLAIMER.parents[2]}"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for session in sessions
        ]
        self.processes += begun
        for one in begun:
            assert hears(one) == {"ready": True}
        return begun

    def ends(self) -> None:
        for one in self.processes:
            one.kill()
            one.wait()
            for pipe in (one.stdin, one.stdout):
                assert pipe is not None
                pipe.close()
        self.store.close()


def tells(one: subprocess.Popen[bytes], do: str, **order: Any) -> None:
    assert one.stdin is not None
    one.stdin.write(json.dumps({"do": do, **order}).encode() + b"\n")
    one.stdin.flush()


def hears(one: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert one.stdout is not None
    return dict(json.loads(one.stdout.readline()))


def does(one: subprocess.Popen[bytes], do: str, **order: Any) -> dict[str, Any]:
    tells(one, do, **order)
    return hears(one)


def waits_until_stopped(one: subprocess.Popen[bytes]) -> None:
    """Returns once the process is really stopped by SIGSTOP."""
    _, status = os.waitpid(one.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


@pytest.fixture
def crowd(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crowd]:
    mode = request.node.callspec.params.get("journal_mode", "wal") if hasattr(request.node, "callspec") else "wal"
    if mode == "delete":
        monkeypatch.setattr(database, "WAL_SINCE", (99,))
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as home:
        made = Crowd(home, mode)
        yield made
        made.ends()


def is_sound(store: SqliteStore) -> bool:
    return store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# --- all at once --------------------------------------------------------------------------------


def check_rounds(crowd: Crowd, sessions: int, rounds: int) -> None:
    """In each round all claim the one item at the same moment; the winner gives it back."""
    crowd_of = {f"s{number}": one for number, one in enumerate(crowd.start(*[f"s{n}" for n in range(sessions)]))}
    gate = os.open(crowd.gate, os.O_RDONLY)
    for number in range(1, rounds + 1):
        fcntl.flock(gate, fcntl.LOCK_EX)
        for one in crowd_of.values():
            tells(one, "reserve", item="contested", gate=True)
        for one in crowd_of.values():
            assert hears(one) == {"ready": True}
        fcntl.flock(gate, fcntl.LOCK_UN)
        answers = {session: hears(one) for session, one in crowd_of.items()}
        winners = [session for session, told in answers.items() if "how" in told]
        assert len(winners) == 1, f"round {number}: {winners}"
        (winner,) = winners
        assert answers.pop(winner) == {"how": "new", "token": number}, "a token left out, or given twice"
        assert all(told == {"why": "held", "by": [winner]} for told in answers.values())
        assert does(crowd_of[winner], "release", item="contested")["how"] == "released"
    os.close(gate)
    held = crowd.store.reservation(PLACE, "contested")
    assert held is not None
    assert held.token == rounds


@pytest.mark.case("A131")
def test_of_eight_that_claim_at_once_one_has_it(crowd: Crowd) -> None:
    """Twenty rounds of eight processes: one winner each, and the others are told who it is."""
    check_rounds(crowd, 8, 20)


@pytest.mark.slow
@MODES
@pytest.mark.case("A131", "BR-141")
def test_of_thirty_two_that_claim_at_once_one_has_it_two_hundred_times(crowd: Crowd, journal_mode: str) -> None:
    """Exactly one winner a round, and its token is the number of the round: none is left out, none given twice."""
    check_rounds(crowd, 32, 200)


# --- stopped ------------------------------------------------------------------------------------


@pytest.mark.case("A129")
@pytest.mark.parametrize("stop", ["before", "inside", "writing"])
@pytest.mark.parametrize("with_token", [True, False])
def test_a_holder_that_was_stopped_past_its_lease_writes_nothing(crowd: Crowd, stop: str, with_token: bool) -> None:
    """SIGSTOP before its transaction, inside it before the clock is read, or after the write: it goes on and is refused."""
    (sleeper,) = crowd.start("sleeper")
    token = does(sleeper, "reserve", item="i1")["token"]
    assert does(sleeper, "write", item="i1", text="first", token=token) == {"how": "written"}
    tells(sleeper, "write", item="i1", text="late", stop=stop, **({"token": token} if with_token else {}))
    waits_until_stopped(sleeper)
    crowd.set_clock(crowd.now + 2 * MINUTE)
    sleeper.send_signal(signal.SIGCONT)
    assert hears(sleeper)["why"] == "lapsed"
    assert [line.text for line in crowd.store.lines()] == ["first"]
    assert does(sleeper, "reserve", item="i1") == {"how": "again", "token": token + 1}
    assert does(sleeper, "write", item="i1", text="again") == {"how": "written"}


@pytest.mark.case("A129", "A117")
@pytest.mark.parametrize("with_token", [True, False])
def test_a_holder_that_was_stopped_while_another_took_over_writes_nothing(crowd: Crowd, with_token: bool) -> None:
    """Past lease and margin another has the item and works; the first goes on with an old token, and is refused."""
    sleeper, other = crowd.start("sleeper", "other")
    token = does(sleeper, "reserve", item="i1")["token"]
    tells(sleeper, "write", item="i1", text="late", stop="before", **({"token": token} if with_token else {}))
    waits_until_stopped(sleeper)
    crowd.set_clock(crowd.now + 2 * MINUTE + MARGIN - 1)
    assert does(other, "reserve", item="i1") == {"why": "margin", "by": ["sleeper"]}
    crowd.set_clock(crowd.now + 1)
    assert does(other, "reserve", item="i1") == {"how": "took_over", "token": token + 1}
    assert does(other, "write", item="i1", text="the other's", token=token + 1) == {"how": "written"}
    sleeper.send_signal(signal.SIGCONT)
    assert hears(sleeper) == {"why": "fence" if with_token else "held", "by": ["other"]}
    assert [(line.session, line.text) for line in crowd.store.lines()] == [("other", "the other's")]


@pytest.mark.parametrize("stop", ["before", "inside"])
def test_a_claim_that_was_stopped_is_judged_by_the_time_at_which_it_goes_on(crowd: Crowd, stop: str) -> None:
    """The clock is read inside: no lease begins in the past, and what was free before and is held now is not granted."""
    sleeper, other = crowd.start("sleeper", "other")
    tells(sleeper, "reserve", item="i1", stop=stop)
    waits_until_stopped(sleeper)
    crowd.set_clock(crowd.now + 10 * MINUTE)
    if stop == "before":
        assert does(other, "reserve", item="i1")["how"] == "new"
    sleeper.send_signal(signal.SIGCONT)
    told = hears(sleeper)
    held = crowd.store.reservation(PLACE, "i1")
    assert held is not None
    assert held.claimed_at == crowd.now
    assert told == ({"why": "held", "by": ["other"]} if stop == "before" else {"how": "new", "token": 1})


def test_a_claim_that_waited_for_the_lock_is_judged_by_the_time_at_which_it_got_it(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program writes for ten minutes: the lease begins when the claim is made, not when it was asked for."""
    holder, clock = open_sqlite(crowd.state_dir), [NOW]
    holder._enter()

    def lets_go(_: float) -> None:
        if holder.in_transaction:
            clock[0] += 10 * MINUTE
            holder._keep()

    monkeypatch.setattr(database.time, "sleep", lets_go)
    told = reservations.reserve(crowd.store, ask("a", "i1"), lambda: clock[0])
    assert isinstance(told, Granted)
    assert told.row.claimed_at == NOW + 10 * MINUTE
    holder.close()


# --- killed -------------------------------------------------------------------------------------


@pytest.mark.slow
@MODES
@pytest.mark.case("BR-141")
def test_thirty_two_that_are_killed_at_any_moment_leave_one_holder_and_dense_tokens(
    crowd: Crowd, journal_mode: str
) -> None:
    """kill -9 again and again in the middle of claims: the file is sound, and each grant on record has the next token."""
    chance, items = random.Random(journal_mode), 4
    crowd.store.add_period(AwayPeriod(id="night", since=0, scope="everywhere"), "{}")
    for wave in range(6):
        running = crowd.start(*[f"w{wave}s{number}" for number in range(32)])
        for number, one in enumerate(running):
            tells(one, "storm", seed=f"{wave} {number}", items=items)
        for one in chance.sample(running, len(running)):
            assert one.stdout is not None
            if chance.random() < 0.5:
                one.stdout.read(1)  # it has come through at least once
            one.kill()
        for one in running:
            one.wait()
        crowd.store.close()
        crowd.store = open_sqlite(crowd.state_dir)
        assert is_sound(crowd.store)
        _is_dense(crowd.store, items)
        crowd.set_clock(crowd.now + 2 * MINUTE + MARGIN)  # what the killed ones held has lapsed
    assert len(crowd.store.lines()) > 200


def _is_dense(store: SqliteStore, items: int) -> None:
    """Every grant left one line in the record, written with it: as many as the token says."""
    lines = store.lines()
    held = {one.item: one for one in store.reservations(released=True)}
    assert set(held) <= {f"i{number}" for number in range(items)}
    for item, one in held.items():
        granted = [line for line in lines if line.item == item and line.kind == "reserved"]
        given_back = [line for line in lines if line.item == item and line.kind == "released"]
        assert one.token == len(granted), f"{item} has token {one.token} after {len(granted)} grants"
        assert one.session == granted[-1].session
        assert (one.released_at is not None) == (bool(given_back) and given_back[-1].seq > granted[-1].seq)


def test_who_comes_after_a_killed_holder_waits_for_its_lease_and_the_margin_only(crowd: Crowd) -> None:
    """No word came of its end, so its lease is all there is to go by; after it the next one gets the next token."""
    dead, next_one = crowd.start("dead", "next")
    assert does(dead, "reserve", item="i1", lease=MINUTE) == {"how": "new", "token": 1}
    dead.kill()
    assert does(next_one, "reserve", item="i1") == {"why": "held", "by": ["dead"]}
    crowd.set_clock(crowd.now + MINUTE + MARGIN)
    assert does(next_one, "reserve", item="i1") == {"how": "took_over", "token": 2}
    held = crowd.store.reservation(PLACE, "i1")
    assert held is not None
    assert held.taken_from == "dead"
    assert not rules.is_due(held, crowd.now)


def test_signs_of_many_that_claim_and_give_back_at_once_are_there_exactly_for_holders(crowd: Crowd) -> None:
    """One session in several processes: whoever finds nothing held takes the sign away, never that of a hold just made."""
    same = crowd.start(*["s"] * 6)
    for number in range(30):
        for place_, one in enumerate(same):
            tells(one, "reserve" if (number + place_) % 2 else "release", item=f"i{place_}")
        for one in same:
            hears(one)
        there = bool(crowd.store.reservations_of(session="s"))
        assert os.path.exists(reservations.sign_path(crowd.state_dir, "s")) == there
