"""When we ourselves fail: never silence while away, never a loop, and nothing lost (design §3)."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess

import pytest

from stopwarden.hook import fault
from tests.support.night import SESSION, HookNight, cron, hook_command


@pytest.fixture
def night(tmp_path: pathlib.Path) -> HookNight:
    """A checkout with two open items, the person away."""
    made = HookNight(tmp_path)
    made.away()
    return made


def junk(night: HookNight) -> None:
    """The database is no database any more."""
    for suffix in ("-wal", "-shm"):
        pathlib.Path(f"{night.state_dir}/stopwarden.db{suffix}").unlink(missing_ok=True)
    pathlib.Path(f"{night.state_dir}/stopwarden.db").write_bytes(b"no database at all\n" * 400)


def wedge(night: HookNight) -> pathlib.Path:
    """A directory stands where the database was: nothing can be read, written or begun anew."""
    database = pathlib.Path(f"{night.state_dir}/stopwarden.db")
    database.rename(f"{database}.real")
    database.mkdir()
    return database


@pytest.mark.case("A99")
def test_faults_in_a_row_block_three_times_and_then_allow(night: HookNight) -> None:
    """Away, and the database cannot be used: three blocks that say so, counted beside the marker, then allowed."""
    wedge(night)
    answers = [night.send("stop") for _ in range(5)]
    assert [answer.get("decision") for answer in answers] == ["block"] * 3 + [None] * 2
    assert "could not judge" in answers[0]["reason"]
    assert "doctor" in answers[3]["systemMessage"]
    assert fault.in_a_row(night.state_dir, SESSION) == 3


@pytest.mark.case("A96")
def test_a_damaged_database_is_set_aside_and_the_night_goes_on(night: HookNight) -> None:
    """Junk in place of the database: a fault that says so, nothing deleted, a new one that knows the away period."""
    junk(night)
    assert "could not judge" in night.send("stop")["reason"]
    aside = list(pathlib.Path(night.state_dir).glob("stopwarden.db.damaged-*"))
    assert aside
    assert aside[0].read_bytes().startswith(b"no database")
    night.send("stop")
    answer = night.send("stop")
    assert '"A"' in answer["reason"], "judged again"
    assert {"store_damaged", "fault"} <= set(night.lines())
    assert fault.in_a_row(night.state_dir, SESSION) == 0


def test_a_judged_stop_ends_the_row_of_faults_and_records_it(night: HookNight) -> None:
    """Two faults, then a judged stop: the count begins anew and the record says what happened."""
    database = wedge(night)
    night.send("stop")
    night.send("stop")
    database.rmdir()
    pathlib.Path(f"{database}.real").rename(database)
    assert '"A"' in night.send("stop")["reason"]
    assert fault.in_a_row(night.state_dir, SESSION) == 0
    assert "fault" in night.lines()
    wedge(night)
    assert [night.send("stop").get("decision") for _ in range(4)] == ["block"] * 3 + [None]


@pytest.mark.case("A97")
def test_a_fault_that_cannot_be_counted_never_blocks(night: HookNight) -> None:
    """An uncounted block would be a loop: where even the count fails the stop is allowed, and said."""
    wedge(night)
    os.unlink(f"{night.state_dir}/faults")
    os.mkdir(f"{night.state_dir}/faults")
    answer = night.send("stop")
    assert "decision" not in answer
    assert "could not even count" in answer["systemMessage"]


def test_a_disk_that_fills_up_in_the_night_still_has_room_for_the_count(night: HookNight) -> None:
    """The file of faults is begun when the person leaves: appending to its first block needs no new room."""
    faults = pathlib.Path(f"{night.state_dir}/faults")
    assert 0 < faults.stat().st_size < 1024
    assert faults.stat().st_mode & 0o777 == 0o600
    assert fault.in_a_row(night.state_dir, SESSION) == 0


def test_with_nobody_away_a_fault_allows_and_says_so(tmp_path: pathlib.Path) -> None:
    """A marker for another checkout is not away here; an unreadable one counts as away."""
    night = HookNight(tmp_path)
    night.away(root="/somewhere/else", copy="0" * 32)
    junk(night)
    answer = night.send("stop")
    assert "decision" not in answer
    assert "you are not away" in answer["systemMessage"]
    pathlib.Path(f"{night.state_dir}/away.json").write_text("{", encoding="utf-8")
    assert night.send("stop")["decision"] == "block"


def test_an_unarmed_hook_is_silent_whatever_is_broken(tmp_path: pathlib.Path) -> None:
    """Nothing armed: an unreadable payload or state directory ends in silence and exit 0."""
    night = HookNight(tmp_path)
    os.mkdir(f"{night.state_dir}/spool")
    for raw in (b"", b"\0\0", b"[1]", json.dumps(night.payload()).encode()):
        done = night.run("stop", raw)
        assert (done.returncode, done.stdout) == (0, b"")


def test_a_program_that_cannot_be_loaded_is_a_fault_like_any_other(night: HookNight, tmp_path: pathlib.Path) -> None:
    """Half an upgrade: the store's driver is missing, and the stop is still blocked with a reason."""
    from tests.support.night import SOURCE

    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from stopwarden.hook.run import main; main()"
    command = [hook_command()[0], "-I", "-S", "-c", code, "stop", "--at", str(night.now)]
    raw = json.dumps(night.payload()).encode()
    done = subprocess.run(command, input=raw, capture_output=True, env=night.env, timeout=30)
    assert done.returncode == 0
    assert json.loads(done.stdout)["decision"] == "block"
    assert done.stderr.startswith(b"stopwarden:")


@pytest.mark.case("BR-118", "BR-124")
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"[]",
        b"null",
        b'{"session_id": "x", "session_crons": [',
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\x00}\x00",
        b"{\r\n}\r\n",
        b'{"a": "\x00\x01"}',
        b'{"session_id": 5, "session_crons": {"x": 1}, "background_tasks": "y", "permission_mode": []}',
        b'{"last_assistant_message": "' + b"\\udc88" * 50 + b'"}',
        b'{"last_assistant_message": "\xa5\xe9\xff"}',
    ],
    ids=range(12),
)
@pytest.mark.case("A99")
def test_any_payload_gets_a_valid_answer_while_away(
    night: HookNight, raw: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever arrives, the session is known from the environment, the stop is judged, and the answer is valid."""
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", SESSION)
    monkeypatch.chdir(night.project)
    night.send("session-start", night.payload("SessionStart", source="startup"))
    answer = night.send("stop", raw)
    assert answer["decision"] == "block"
    assert '"A"' in answer["reason"], "judged, not a fault"
    done = night.run("stop", raw, CLAUDE_CODE_SESSION_ID=SESSION)
    assert json.loads(done.stdout)["decision"] == "block"


def test_a_payload_without_any_session_is_a_fault(night: HookNight, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing names a session: blocked as a fault, at most three times."""
    monkeypatch.chdir(night.project)
    assert [night.send("stop", b"{}").get("decision") for _ in range(4)] == ["block"] * 3 + [None]


def test_a_truncated_payload_is_read_as_far_as_it_goes(night: HookNight) -> None:
    """Clipped in the middle: session and place are found, its wakes are unknown, and the damage is recorded."""
    whole = json.dumps(night.payload(session_crons=[cron("21:30")])).encode()
    answer = night.send("stop", whole[:-20])
    assert answer["decision"] == "block"
    assert "payload_damaged" in night.lines()


@pytest.mark.slow
def test_eight_mebibytes_and_more_are_read_within_the_deadline(night: HookNight) -> None:
    """A payload at and beyond the limit is answered in time; beyond it counts as damaged."""
    for size in (8 * 1024 * 1024 - 600, 9 * 1024 * 1024):
        raw = json.dumps(night.payload(last_assistant_message="x" * size)).encode()
        done = night.run("stop", raw)
        assert json.loads(done.stdout)["decision"] == "block"
    assert night.lines().count("payload_damaged") == 1


@pytest.mark.case("BR-125")
def test_a_killed_hook_leaves_no_half_written_state(night: HookNight) -> None:
    """SIGTERM at any moment: what is stored is a whole verdict or none."""
    raw = json.dumps(night.payload()).encode()
    for delay in range(8):
        process = subprocess.Popen(
            [*hook_command(), "stop", "--at", str(night.now)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=night.env,
        )
        assert process.stdin is not None
        process.stdin.write(raw)
        process.stdin.close()
        try:
            process.wait(timeout=0.012 * delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
        assert process.stdout is not None
        process.stdout.close()
        night.now += 10
        store = night.store()
        assert len(store.verdicts()) == store.state(SESSION).blocks
        store.close()


@pytest.mark.case("A98")
def test_a_locked_database_is_waited_for_and_then_a_fault(night: HookNight) -> None:
    """Another writer holds the database past our wait: the stop is answered as a fault, within our deadline."""
    import apsw

    other = apsw.Connection(f"{night.state_dir}/stopwarden.db")
    other.execute("begin immediate")
    try:
        done = night.run("stop", night.payload())
    finally:
        other.execute("rollback")
        other.close()
    answer = json.loads(done.stdout)
    assert answer["decision"] == "block"
    assert "could not judge" in answer["reason"]
    assert night.send("stop")["decision"] == "block"


@pytest.mark.case("A102")
def test_a_symlink_planted_in_the_state_directory_is_refused(night: HookNight, tmp_path: pathlib.Path) -> None:
    """A link in place of the database or of the spool is never followed."""
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    database = pathlib.Path(f"{night.state_dir}/stopwarden.db")
    database.rename(f"{database}.real")
    database.symlink_to(victim)
    spool = pathlib.Path(f"{night.state_dir}/spool")
    spool.unlink(missing_ok=True)
    spool.symlink_to(victim)
    assert "could not judge" in night.send("stop")["reason"]
    night.run("post-tool", night.payload("PostToolUse", tool_name="Bash"))
    assert victim.read_text(encoding="utf-8") == "precious"


def test_wrong_words_on_the_command_line_end_with_2_and_say_what_would_be_right() -> None:
    """An unknown event is a fault of the settings file, told on standard error."""
    done = subprocess.run([*hook_command(), "stoop"], input=b"{}", capture_output=True, timeout=30)
    assert done.returncode == 2
    assert b"stop" in done.stderr


def test_the_limits_of_the_quick_path_are_those_of_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that imports nothing repeats one number; it must stay the same."""
    from stopwarden.core import bounds
    from stopwarden.hook import run
    from stopwarden.store import place

    assert run.PAYLOAD_MAX == bounds.PAYLOAD_MAX
    for name, value in (
        ("XDG_STATE_HOME", "/x/y/"),
        ("XDG_STATE_HOME", "relative"),
        ("HOME", "relative"),
        ("HOME", ""),
    ):
        monkeypatch.setenv(name, value)
        monkeypatch.setattr(run.posix, "environ", {key.encode(): text.encode() for key, text in os.environ.items()})
        assert run.state_dir() == place.state_dir(os.environ)
