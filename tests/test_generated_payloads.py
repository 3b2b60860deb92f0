"""A hundred thousand payloads that no host should write: always a valid answer, never a fault, nothing torn."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator

import apsw
import pytest

from stopwarden.core.bounds import REASON_MAX, Policy
from stopwarden.core.errors import HostError
from stopwarden.core.judge import judge
from stopwarden.hook import local, run
from stopwarden.hook.local import Event
from stopwarden.store import journal, marker
from stopwarden.store.port import Store
from tests.support.night import SESSION, HookNight
from tests.support.payloads import Payloads

SEED = 20261130
UNBOUND = Policy(blocks_without_tools=0, blocks_without_progress=1_000, blocks_an_hour=1_000, blocks_a_period=100_000)


@pytest.fixture
def night(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HookNight]:
    """A night on a disk in memory, where there is one, so that a commit costs nothing; no session but the payload's."""
    memory = pathlib.Path("/dev/shm")
    place = pathlib.Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else tmp_path))
    monkeypatch.chdir(tmp_path)  # a payload's working directory may be a relative path
    yield HookNight(place, todo="- [ ] A\n- [ ] B\n- [x] C\n- [ ] D (waits for person: why)\n")
    shutil.rmtree(place)


def check_answer(event: str, text: str) -> str:
    """The shape of a valid answer: "", "block", "notice", "context" or "deny". Fails for anything else."""
    if not text:
        return ""
    assert text.isascii()
    answer = json.loads(text)
    if event == "stop" and answer.get("decision") == "block":
        assert set(answer) == {"decision", "reason"}
        assert 0 < len(answer["reason"]) < REASON_MAX
        return "block"
    if event == "stop":
        assert set(answer) == {"systemMessage"}
        return "notice"
    assert set(answer) == {"hookSpecificOutput"}
    told = answer["hookSpecificOutput"]
    if event in ("prompt", "session-start"):
        name = {"prompt": "UserPromptSubmit", "session-start": "SessionStart"}[event]
        assert set(told) == {"hookEventName", "additionalContext"}
        assert told["hookEventName"] == name
        assert told["additionalContext"].startswith("Stopwarden")
        return "context"
    if event == "pre-tool":
        assert set(told) == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
        assert (told["hookEventName"], told["permissionDecision"]) == ("PreToolUse", "deny")
        return "deny"
    assert event == "permission"
    assert set(told["decision"]) == {"behavior", "message"}
    assert told["decision"]["behavior"] == "deny"
    return "deny"


def answered(night: HookNight, store: Store, event: str, raw: bytes) -> str:
    """What the hook prints, in this process; an exception of any kind fails, but for a payload that names no session."""
    night.now += 7
    if event == "subagent-stop":
        return ""
    if not night.armed or event == "post-tool":
        run._spool(event, raw, night.state_dir, night.now)
        return ""
    made = Event(event, raw, night.state_dir, night.now)
    if not made.session:
        with pytest.raises(HostError, match="no session"):
            local._answered(made)
        return ""
    return local.answered_with(store, made)


def back(night: HookNight, store: Store) -> None:
    """The person is here again."""
    for period in store.open_periods():
        marker.disarm(store, night.state_dir, period.id, night.now, "back")


def check_state(night: HookNight) -> None:
    """Everything stored can be read, and a sample of the verdicts is reached again from its record."""
    connection = apsw.Connection(f"{night.state_dir}/stopwarden.db", flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    store = night.store()
    try:
        sessions = store.sessions()
        for row in sessions:
            assert store.session(row.id) == row
            store.state(row.id), store.wakes(row.id), json.loads(store.host_todos(row.id) or "{}")
        assert {parked.session for parked in store.parked()} <= {row.id for row in sessions}
        verdicts = store.verdicts()
        for stored in verdicts[:: max(1, len(verdicts) // 500)]:
            stop, session, world, policy, verdict = journal.decode(stored.body, store.snapshot)
            assert judge(stop, session, world, policy).replace(after=None) == verdict
        assert "fault" not in {line.kind for line in store.lines()}
    finally:
        store.close()
    assert not [name for name in os.listdir(night.state_dir) if "damaged" in name]
    faults = pathlib.Path(night.state_dir, "faults").read_text(encoding="utf-8")
    assert " fault " not in faults


@pytest.mark.slow
def test_a_hundred_thousand_payloads_in_process(night: HookNight) -> None:
    """Armed and unarmed in turns, every event: valid answers, no exception, a state that is whole in the end."""
    payloads = Payloads(SEED)
    told: Counter[str] = Counter()
    store = night.store()
    for number in range(100_000):
        if number % 10_000 == 3_000:
            night.away(scope="everywhere", until=night.now + 10**6, policy=UNBOUND)
        if number % 10_000 == 9_000:
            back(night, store)
        event, raw = payloads.next()
        try:
            told[check_answer(event, answered(night, store, event, raw))] += 1
        except Exception as error:
            raise AssertionError(f"payload {number}, {event}: {raw[:3000]!r}") from error
    store.close()
    assert all(told[kind] > 500 for kind in ("block", "deny", "context", "")), told
    check_state(night)


@pytest.mark.slow
def test_three_hundred_payloads_through_the_real_program(night: HookNight) -> None:
    """Exit code 0, one valid answer, at most one line for each thing that is wrong."""
    payloads = Payloads(SEED + 1)
    for number in range(300):
        if number == 60:
            night.away(scope="everywhere", until=night.now + 10**6, policy=UNBOUND)
        event, raw = payloads.next()
        done = night.run(event, raw, CLAUDE_CODE_SESSION_ID=SESSION)
        what = f"payload {number}, {event}: {raw[:3000]!r} {done.stdout!r} {done.stderr!r}"
        assert done.returncode == 0, what
        assert done.stdout.count(b"\n") == bool(done.stdout), what
        check_answer(event, done.stdout.decode().rstrip("\n"))
        said = done.stderr.decode().splitlines()
        assert len(said) <= 1, what
        assert all(line.startswith("stopwarden: the payload could not be read whole") for line in said), what
    check_state(night)
