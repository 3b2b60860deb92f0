"""The marker says *away* before the database does and until after it: whatever fails in between, nobody is let go."""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwarden import wire
from stopwarden.core.errors import StorePlaceError, StoreUnwritableError
from stopwarden.core.events import AwayPeriod
from stopwarden.store import marker, place
from stopwarden.store.memory import MemoryStore
from stopwarden.store.sqlite import open_sqlite
from tests.support.failing_disk import Disk, failing_disk
from tests.support.records import records

SRC = pathlib.Path(marker.__file__).parents[2]
NIGHT = AwayPeriod(
    id="night", since=100, until=900, copy="c", root="/work", lists=("/work/TODO.md",), zone="Europe/London"
)
LUNCH = AwayPeriod(id="lunch", since=50, scope="session", session="S", also_scripts=True, until_done=True)


@pytest.fixture
def state_dir() -> Iterator[str]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as home:
        yield place.prepare({"XDG_STATE_HOME": home})


@pytest.fixture
def file(state_dir: str) -> pathlib.Path:
    return pathlib.Path(state_dir, "away.json")


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, state_dir: str) -> Iterator[Any]:
    made = MemoryStore() if request.param == "memory" else open_sqlite(state_dir)
    yield made
    made.close()


# the file


def test_no_marker_means_that_nobody_is_away(state_dir: str) -> None:
    assert marker.read(state_dir) is None
    assert marker.read(f"{state_dir}/missing") is None
    marker.remove(state_dir)


def test_what_was_written_is_read(state_dir: str, file: pathlib.Path) -> None:
    marker.write(state_dir, [NIGHT, LUNCH], {"night": '{"skew":0}'})
    assert marker.read(state_dir) == (NIGHT, LUNCH)
    told = wire.loads(file.read_bytes())
    assert told["v"] == 1
    assert [(period["id"], period["policy"]) for period in told["periods"]] == [("night", '{"skew":0}'), ("lunch", "")]
    marker.remove(state_dir)
    assert marker.read(state_dir) is None
    assert os.listdir(state_dir) == []


@given(periods=st.lists(records(AwayPeriod), min_size=1, max_size=3))
def test_any_period_comes_back(periods: list[AwayPeriod]) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as state_dir:
        marker.write(state_dir, periods)
        assert marker.read(state_dir) == tuple(wire_clean(period) for period in periods)


def wire_clean(period: AwayPeriod) -> AwayPeriod:
    """The period as JSON keeps it."""
    told = wire.loads(wire.dumps(period.as_dict()))
    return AwayPeriod(**{**told, "lists": tuple(told["lists"])})


def test_a_period_keeps_its_policy_when_the_marker_is_written_anew(state_dir: str, file: pathlib.Path) -> None:
    marker.write(state_dir, [NIGHT, LUNCH], {"night": "n", "lunch": "l"})
    marker.write(state_dir, [NIGHT], {"other": "o"})
    (told,) = wire.loads(file.read_bytes())["periods"]
    assert told["policy"] == "n"


def test_a_marker_of_nothing_is_no_marker(state_dir: str, file: pathlib.Path) -> None:
    marker.write(state_dir, [NIGHT])
    marker.write(state_dir, [])
    assert not file.exists()


@pytest.mark.parametrize("failing", ["write", "fsync", "rename"])
def test_a_marker_that_cannot_be_written_is_left_as_it_was(
    state_dir: str, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: the old marker is whole, and nothing half-written lies about."""
    marker.write(state_dir, [NIGHT])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, full)
        with pytest.raises(StoreUnwritableError, match=r"No space left.*not changed in the database.*Make room"):
            marker.write(state_dir, [LUNCH])
    assert marker.read(state_dir) == (NIGHT,)
    assert os.listdir(state_dir) == ["away.json"]


@pytest.mark.case("A94")
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_marker_is_private_whatever_the_umask(state_dir: str, file: pathlib.Path, umask: int) -> None:
    """It holds paths and session ids, so it is for its owner alone."""
    before = os.umask(umask)
    try:
        marker.write(state_dir, [NIGHT])
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert marker.read(state_dir) == (NIGHT,)


UNREADABLE = {
    "empty": b"",
    "cut short": b'{"v":1,"periods":[{"id":"night","since":10',
    "no JSON": b"away!",
    "another value": b"[]",
    "null": b"null",
    "a newer format": b'{"v":2,"periods":[]}',
    "no format": b'{"periods":[]}',
    "no periods": b'{"v":1}',
    "periods of another type": b'{"v":1,"periods":"night"}',
    "a period of another type": b'{"v":1,"periods":[7]}',
    "a period without an id": b'{"v":1,"periods":[{"since":1}]}',
    "a period without a beginning": b'{"v":1,"periods":[{"id":"a"}]}',
    "a beginning that is null": b'{"v":1,"periods":[{"id":"a","since":null}]}',
    "an end that is text": b'{"v":1,"periods":[{"id":"a","since":1,"until":"07:30"}]}',
    "an end that is a fraction": b'{"v":1,"periods":[{"id":"a","since":1,"until":1.5}]}',
    "a beginning that is true": b'{"v":1,"periods":[{"id":"a","since":true}]}',
    "an unknown scope": b'{"v":1,"periods":[{"id":"a","since":1,"scope":"planet"}]}',
    "a copy of another type": b'{"v":1,"periods":[{"id":"a","since":1,"copy":7}]}',
    "a truth value of another type": b'{"v":1,"periods":[{"id":"a","since":1,"also_scripts":"no"}]}',
    "lists of another type": b'{"v":1,"periods":[{"id":"a","since":1,"lists":[1]}]}',
    "lists that are none": b'{"v":1,"periods":[{"id":"a","since":1,"lists":null}]}',
    "a policy of another type": b'{"v":1,"periods":[{"id":"a","since":1,"policy":{}}]}',
    "one good and one bad": b'{"v":1,"periods":[{"id":"a","since":1},{"id":7,"since":1}]}',
    "two values": b'{"v":1,"periods":[]}{}',
    "binary": bytes(range(256)),
    "too large": b'{"v":1,"periods":[]}' + b" " * (2 * 1024 * 1024),
    "nested too deeply": b"[" * 100_000,
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_marker_that_cannot_be_understood_means_armed_for_everybody(
    state_dir: str, file: pathlib.Path, content: bytes
) -> None:
    file.write_bytes(content)
    told = marker.read(state_dir)
    assert told is marker.UNREADABLE
    assert [(period.scope, period.until, period.ended_at) for period in told] == [("everywhere", None, None)]


def test_a_marker_that_the_disk_does_not_give_means_armed(
    state_dir: str, file: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker.write(state_dir, [NIGHT])

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "read", fail)
        assert marker.read(state_dir) is marker.UNREADABLE
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", fail)
        assert marker.read(state_dir) is marker.UNREADABLE
    assert marker.read(state_dir) == (NIGHT,)


def test_fields_of_a_later_version_are_overlooked(state_dir: str, file: pathlib.Path) -> None:
    file.write_bytes(b'{"v":1,"more":1,"periods":[{"id":"a","since":1,"mood":"tired"}]}')
    assert marker.read(state_dir) == (AwayPeriod(id="a", since=1),)


@pytest.mark.case("A102")
@pytest.mark.parametrize("planted", ["link", "dangling link", "pipe", "directory", "another's file"])
def test_a_marker_that_somebody_planted_is_refused(
    state_dir: str, file: pathlib.Path, tmp_path: pathlib.Path, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link, a pipe, a directory or another user's file: neither believed nor followed nor written through."""
    target = tmp_path / "target"
    if planted == "another's file":
        marker.write(state_dir, [NIGHT])
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
    elif planted == "pipe":
        os.mkfifo(file)
    elif planted == "directory":
        file.mkdir()
    else:
        if planted == "link":
            target.write_text("precious")
        file.symlink_to(target)
    with pytest.raises(StorePlaceError, match="not used for state"):
        marker.read(state_dir)
    with pytest.raises(StorePlaceError, match="not used for state"):
        marker.write(state_dir, [NIGHT])
    assert not target.exists() or target.read_text() == "precious"


def test_the_marker_is_read_without_the_database_driver() -> None:
    """When the database or its driver is what is broken, the marker must still be read."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from stopwarden.store import marker\n"
        "marker.read('/nonexistent')\n"
        "print([name for name in ('apsw', 'json', 're', 'typing', 'dataclasses', 'enum') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, str(SRC)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# arming and disarming


def marked(state_dir: str) -> set[str]:
    """The ids of the periods that the marker says are armed; "?" if it cannot be understood."""
    return {period.id for period in marker.read(state_dir) or ()}


def test_arming_and_disarming_change_both(store: Any, state_dir: str) -> None:
    marker.arm(store, state_dir, NIGHT, "{}")
    assert store.open_periods() == [NIGHT]
    assert store.period_policy("night") == "{}"
    assert marker.read(state_dir) == (NIGHT,)
    assert marker.disarm(store, state_dir, "night", 200, "back")
    assert store.periods() == [NIGHT.replace(ended_at=200, ended_why="back")]
    assert marker.read(state_dir) is None
    assert not marker.disarm(store, state_dir, "night", 300, "back")


def test_several_periods_are_armed_side_by_side(store: Any, state_dir: str) -> None:
    marker.arm(store, state_dir, NIGHT, "n")
    marker.arm(store, state_dir, LUNCH, "l")
    assert marked(state_dir) == {"night", "lunch"}
    assert marker.disarm(store, state_dir, "night", 200, "back")
    assert marker.read(state_dir) == tuple(store.open_periods()) == (LUNCH,)
    assert marker.disarm(store, state_dir, "lunch", 200, "time")
    assert marker.read(state_dir) is None


def test_a_period_that_is_known_already_is_not_armed_again(store: Any, state_dir: str) -> None:
    marker.arm(store, state_dir, NIGHT, "{}")
    marker.disarm(store, state_dir, "night", 200, "back")
    with pytest.raises(StoreUnwritableError, match="night already"):
        marker.arm(store, state_dir, NIGHT.replace(until=None), "{}")
    assert marker.read(state_dir) is None
    assert store.open_periods() == []


def test_a_period_ended_inside_a_transaction_leaves_the_marker_to_what_follows(store: Any, state_dir: str) -> None:
    """The marker may say "not away" only after the commit that says so, which is still to come."""
    marker.arm(store, state_dir, NIGHT, "{}")

    def undone() -> None:
        with store.transaction():
            assert marker.disarm(store, state_dir, "night", 200, "done")
            assert marked(state_dir) == {"night"}
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert marker.settle(store, state_dir) == [NIGHT]
    with store.transaction():
        marker.disarm(store, state_dir, "night", 200, "done")
    assert marked(state_dir) == {"night"}
    assert marker.settle(store, state_dir) == []
    assert marker.read(state_dir) is None


# settling


def test_a_new_database_hears_from_the_marker_what_holds(state_dir: str) -> None:
    """The database was damaged in the night and set aside: away goes on, with the policy it began on."""
    store = open_sqlite(state_dir)
    marker.arm(store, state_dir, NIGHT, '{"skew":60}')
    store.close()
    os.unlink(store.path)
    new = open_sqlite(state_dir)
    assert new.open_periods() == []
    assert marker.settle(new, state_dir) == [NIGHT]
    assert new.open_periods() == [NIGHT]
    assert new.period_policy("night") == '{"skew":60}'
    assert marker.settle(new, state_dir) == [NIGHT]
    assert marker.disarm(new, state_dir, "night", 500, "back")
    assert marker.read(state_dir) is None
    new.close()


def test_a_new_database_does_not_make_another_period_forget_the_marker(state_dir: str) -> None:
    """After the damage the person goes away for a second checkout: the first one stays armed."""
    store = open_sqlite(state_dir)
    marker.arm(store, state_dir, NIGHT, "n")
    store.close()
    os.unlink(store.path)
    new = open_sqlite(state_dir)
    marker.arm(new, state_dir, LUNCH, "l")
    assert marked(state_dir) == {"night", "lunch"}
    assert {period.id for period in marker.settle(new, state_dir)} == {"night", "lunch"}
    assert new.period_policy("night") == "n"
    new.close()


def test_a_marker_that_is_missing_is_written_again(store: Any, state_dir: str, file: pathlib.Path) -> None:
    marker.arm(store, state_dir, NIGHT, "n")
    file.unlink()
    assert marker.settle(store, state_dir) == [NIGHT]
    assert marker.read(state_dir) == (NIGHT,)
    assert wire.loads(file.read_bytes())["periods"][0]["policy"] == "n"


def test_the_database_is_believed_about_a_period_that_both_know(store: Any, state_dir: str) -> None:
    marker.arm(store, state_dir, NIGHT, "n")
    marker.write(state_dir, [NIGHT.replace(until=None, scope="everywhere")])
    assert marker.settle(store, state_dir) == [NIGHT]
    assert marker.read(state_dir) == (NIGHT,)


def test_an_unreadable_marker_is_written_anew_from_a_database_that_knows(
    store: Any, state_dir: str, file: pathlib.Path
) -> None:
    marker.arm(store, state_dir, NIGHT, "n")
    file.write_bytes(b"garbage")
    assert marker.settle(store, state_dir) == [NIGHT]
    assert marker.read(state_dir) == (NIGHT,)
    (aside,) = pathlib.Path(state_dir).glob("away.json.damaged-*")
    assert aside.read_bytes() == b"garbage"
    file.write_bytes(b"garbage")
    marker.disarm(store, state_dir, "night", 200, "back")
    assert marker.read(state_dir) is None


def test_an_unreadable_marker_beside_an_empty_database_stays_armed(
    store: Any, state_dir: str, file: pathlib.Path
) -> None:
    """Neither can say what held, so it is not for us to say that nothing did."""
    file.write_bytes(b"garbage")
    assert marker.settle(store, state_dir) == list(marker.UNREADABLE)
    assert marker.read(state_dir) is marker.UNREADABLE
    marker.arm(store, state_dir, NIGHT, "n")
    assert marker.read(state_dir) == (NIGHT,)


def test_settling_what_agrees_touches_nothing(store: Any, state_dir: str, file: pathlib.Path) -> None:
    marker.arm(store, state_dir, NIGHT, "n")
    before = file.stat().st_ino
    assert marker.settle(store, state_dir) == [NIGHT]
    assert file.stat().st_ino == before


def test_commands_that_arm_at_once_forget_nobody(state_dir: str) -> None:
    """Four terminals go away at the same time: all four periods are armed, in the database and in the marker."""
    open_sqlite(state_dir).close()
    code = (
        "import sys\n"
        "from stopwarden.core.events import AwayPeriod\n"
        "from stopwarden.store import marker\n"
        "from stopwarden.store.sqlite import open_sqlite\n"
        "store = open_sqlite(sys.argv[1], wait=60)\n"
        "for n in range(5): marker.arm(store, sys.argv[1], AwayPeriod(id=f'{sys.argv[2]}{n}', since=n), '{}')\n"
        "marker.disarm(store, sys.argv[1], f'{sys.argv[2]}0', 9, 'back')\n"
    )
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    running = [subprocess.Popen([sys.executable, "-c", code, state_dir, name], env=env) for name in "abcd"]
    assert [process.wait() for process in running] == [0] * 4
    expected = {f"{name}{n}" for name in "abcd" for n in range(1, 5)}
    store = open_sqlite(state_dir)
    assert marked(state_dir) == {period.id for period in store.open_periods()} == expected
    store.close()


# whatever fails in between


CALLS = ("open", "write", "fsync", "rename", "unlink", "link")


def count_calls(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operating system's calls are counted, and fail, in one row with the accesses of the database to its disk.

    Their kinds are "os.open" and so on, with "os.fsync directory" told apart; a failing write leaves half its bytes.
    """

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def maybe(*args: Any, **named: Any) -> Any:
            of_directory = name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode)
            if disk.fails(f"os.{name} directory" if of_directory else f"os.{name}"):
                if name == "write":
                    call(args[0], args[1][: len(args[1]) // 2])
                raise OSError(errno.EIO, "Input/output error")
            return call(*args, **named)

        return maybe

    for name in CALLS:
        monkeypatch.setattr(os, name, counted(name, getattr(os, name)))
    disk.kinds = disk.kinds | {*(f"os.{name}" for name in CALLS), "os.fsync directory"}


def test_each_step_is_on_disk_before_the_next_begins(state_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker's content, then its name, then the commit; at the end the commit, then the name again."""
    with failing_disk() as disk:
        store = open_sqlite(state_dir)
        with monkeypatch.context() as patched:
            count_calls(disk, patched)
            disk.log.clear()
            marker.arm(store, state_dir, NIGHT, "n")
            armed = [kind for kind in disk.log if kind not in ("os.open", "truncate")]
            disk.log.clear()
            marker.disarm(store, state_dir, "night", 500, "back")
            disarmed = [kind for kind in disk.log if kind not in ("os.open", "truncate")]
        store.close()
    assert armed[:6] == ["os.unlink", "os.write", "os.fsync", "os.rename", "os.fsync directory", "write"]
    assert armed[-2:] == ["sync", "os.write"], "the file of faults is begun last"
    assert "sync" in disarmed
    assert disarmed[-2:] == ["os.unlink", "os.fsync directory"]
    assert not any(kind.startswith("os.") for kind in disarmed[:-2])


@pytest.mark.parametrize("act", ["arm", "disarm", "disarm the last", "settle a new database"])
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "from then on, as if killed"])
def test_whatever_fails_in_between_nobody_is_silently_let_go(
    state_dir: str, tmp_path: pathlib.Path, act: str, for_good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call to the system and every access of the database to its disk fails in turn.

    The database never says away where the marker does not; what was acknowledged holds in both; a
    period that nobody touched stays armed in both; and settling afterwards makes them agree
    without letting anybody go.
    """
    store = open_sqlite(state_dir)
    marker.arm(store, state_dir, LUNCH, "l")
    if act != "arm":
        marker.arm(store, state_dir, NIGHT, "n")
    if act == "disarm the last":
        marker.disarm(store, state_dir, "lunch", 120, "back")
    store.close()
    if act == "settle a new database":
        for path in pathlib.Path(state_dir).glob("stopwarden.db*"):
            path.unlink()
        open_sqlite(state_dir).close()
    template = tmp_path / "template"
    shutil.copytree(state_dir, template)
    others = set() if act == "disarm the last" else {"lunch"}

    def do(store: Any) -> None:
        if act == "arm":
            marker.arm(store, state_dir, NIGHT, "n")
        elif act == "settle a new database":
            marker.settle(store, state_dir)
        else:
            marker.disarm(store, state_dir, "night", 500, "back")

    with failing_disk() as disk, monkeypatch.context() as patched:
        count_calls(disk, patched)
        for number in range(1, 500):
            disk.works()
            shutil.rmtree(state_dir)
            shutil.copytree(template, state_dir)
            store = open_sqlite(state_dir)
            acknowledged = False
            disk.fail(number, for_good=for_good)
            try:
                do(store)
                acknowledged = True
            except (StoreUnwritableError, StorePlaceError):
                pass
            clean = disk.done < number
            store.close()
            disk.works()

            store = open_sqlite(state_dir)
            told, away = marked(state_dir), {period.id for period in store.open_periods()}
            assert away <= told, f"access {number}: the database says away, the marker does not"
            assert others <= told
            if acknowledged and act in ("arm", "settle a new database"):
                assert away == told == {"lunch", "night"}
            elif acknowledged:
                assert away == told == others
            settled = {period.id for period in marker.settle(store, state_dir)}
            assert settled == marked(state_dir) == {period.id for period in store.open_periods()}
            assert away <= settled
            assert others <= settled
            if act in ("arm", "settle a new database"):
                assert settled == told, "what the marker said was forgotten"
            assert store.period_policy("lunch") == ("" if act == "disarm the last" else "l") or act == "disarm the last"
            store.close()
            if clean:
                break
    assert acknowledged
    assert number > 5


def test_a_refusal_of_the_database_puts_the_marker_back(store: Any, state_dir: str) -> None:
    """`away` says that it failed, so nothing is armed that was not before."""
    marker.arm(store, state_dir, LUNCH, "l")
    store.add_period(NIGHT.replace(ended_at=1), "")
    with pytest.raises(StoreUnwritableError, match="night already"):
        marker.arm(store, state_dir, NIGHT, "n")
    assert marker.read(state_dir) == (LUNCH,)
    assert marker.settle(store, state_dir) == [LUNCH]


def test_an_interrupted_command_arms_nothing(store: Any, state_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while `away` is at work: nothing is armed, now or when something settles later."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "add_period", interrupted)
        with pytest.raises(KeyboardInterrupt):
            marker.arm(store, state_dir, NIGHT, "n")
    assert marker.read(state_dir) is None
    assert marker.settle(store, state_dir) == []
