"""What users of such tools suffered, told as nights of ours: the whole kind of fault, not the one example."""

from __future__ import annotations

import json
import pathlib

import pytest

from stopwarden.core.bounds import Policy
from tests.conftest import at
from tests.support.night import SESSION, HookNight, cron
from tests.support.stops import SOON, Night, items, one_shot


@pytest.fixture
def night(tmp_path: pathlib.Path) -> HookNight:
    """A checkout with two open items, the person away."""
    made = HookNight(tmp_path)
    made.away()
    return made


@pytest.mark.case("BR-005", "BR-031", "BR-014")
@pytest.mark.parametrize(
    "words",
    [
        "<promise>DONE</promise>",
        "I will not say done yet, because B is open",
        "Stopwarden: go on",
        "Goal reached. Everything on the list is complete.",
        "",
    ],
)
def test_what_a_session_says_neither_ends_nor_continues_it(night: HookNight, words: str) -> None:
    """Owed work and counts are structured state: no text of a message is searched, whatever tokens are in it."""
    for block in (1, 2):
        answer = night.send("stop", last_assistant_message=words)
        assert "item" in answer["reason"]
        assert night.store().state(SESSION).blocks == block


@pytest.mark.case("BR-010", "BR-011", "BR-013")
def test_done_stays_done(night: HookNight) -> None:
    """Once the list is done nothing continues the session again, however often the unchanged list is rewritten."""
    night.list.write_text("- [x] A\n- [x] B\n", encoding="utf-8")
    wake = [cron("21:40")]
    assert night.send("stop", session_crons=wake) == {}
    for _ in range(3):
        night.list.write_text("- [x] A\n- [x] B\n", encoding="utf-8")
        night.send("post-tool", night.payload("PostToolUse", tool_name="Write", tool_input={}, tool_response={}))
        assert night.send("stop", session_crons=wake) == {}


@pytest.mark.case("BR-001", "BR-007")
def test_continuations_without_any_activity_in_between_end_at_the_hosts_bound() -> None:
    """The same list, no tool, no progress: eight continuations at most, never seventy, and the end is recorded."""
    owing = Night(*items("A", "B", "C"))
    kinds = [owing.stop().kind for _ in range(70)]
    longest = max(len(row) for row in "".join("b" if kind == "block" else " " for kind in kinds).split())
    assert longest == 8
    assert kinds.count("block") <= 30, "the ceiling of an hour"


@pytest.mark.case("BR-047")
def test_after_a_compaction_the_next_stop_is_judged_as_ever(night: HookNight) -> None:
    """PreCompact and the start after it drop nothing: the same session is judged again at its next stop."""
    night.send("stop", session_crons=[cron("21:40")])
    night.send("pre-compact", night.payload("PreCompact", trigger="auto"))
    night.send("session-start", night.payload("SessionStart", source="compact"))
    assert night.send("stop")["decision"] == "block"


@pytest.mark.case("BR-060")
def test_a_background_task_is_only_ever_what_the_host_lists_now(night: HookNight) -> None:
    """No registry of ours keeps a task alive: the next stop knows only the list that comes with it."""
    task = {"id": "b1", "type": "shell", "status": "running", "command": "sleep 99"}
    assert 'is no wake: "sleep"' in night.send("stop", background_tasks=[task])["reason"]
    assert "is no wake" not in night.send("stop")["reason"]


@pytest.mark.case("BR-069")
def test_missed_looks_are_recorded_once_however_many_there_were(night: HookNight) -> None:
    """A machine that slept over several looks says one missed look at the next event."""
    night.send("stop", session_crons=[cron("21:30")])
    night.send("stop", session_crons=[cron("21:30")])
    night.now = at("2026-12-01 03:00")
    night.send("prompt", prompt="look again")
    night.send("stop")
    assert night.lines().count("missed_look") == 1


@pytest.mark.case("BR-089", "BR-087")
def test_off_is_heeded_at_the_very_next_stop(night: HookNight) -> None:
    """There is one decision a stop, made on what holds at that moment: switched off in between, nothing is continued."""
    assert night.send("stop")["decision"] == "block"
    night.store().save_fact("mode", SESSION, "off")
    assert night.send("stop") == {}
    night.store().save_fact("mode", SESSION, "on")
    assert night.send("stop")["decision"] == "block"


@pytest.mark.case("BR-128")
def test_a_session_that_never_said_goodbye_is_no_trouble(night: HookNight) -> None:
    """Missing start and end events: the first thing heard of a session is enough to judge it."""
    assert night.send("stop", session_id="never-started")["decision"] == "block"
    row = night.store().session("never-started")
    assert row is not None
    assert row.root == str(night.project)


@pytest.mark.case("BR-159")
def test_a_notification_that_comes_again_changes_nothing(night: HookNight) -> None:
    """The same task notification five times: no chain begins, no count changes."""
    night.send("stop")
    before = night.store().state(SESSION)
    for _ in range(5):
        night.send("prompt", prompt="<task-notification>\n<task-id>a98e</task-id>\n<status>completed</status>")
    after = night.store().state(SESSION)
    assert after.replace(revision=0) == before.replace(revision=0)


@pytest.mark.case("BR-169")
def test_being_away_alone_relaxes_nothing(night: HookNight) -> None:
    """Away is no evidence that anything will wake the session: without a wake in time every stop is blocked."""
    store = night.store()
    assert store.open_periods() != []
    assert night.send("stop", night.payload() | {"session_crons": []})["decision"] == "block"


@pytest.mark.case("BR-170", "BR-171")
def test_waiting_for_something_that_runs_is_never_taken_for_a_loop() -> None:
    """Look, wait, look, wait with a wake each time: allowed stops count towards no bound, however many."""
    waiting = Night()
    for _ in range(60):
        assert waiting.stop((one_shot(_soon(waiting.now)),)).kind == "waiting"
        waiting.now += 300
        waiting.prompt("notification")
    assert waiting.lines.count("stopped_with_work_owed") == 0
    assert waiting.state.blocks == 0


def _soon(now: int) -> str:
    """A local time a few minutes ahead (London is on UTC that night)."""
    minute = now // 60 + 10
    return f"{minute // 60 % 24:02}:{minute % 60:02}"


@pytest.mark.case("BR-052")
def test_a_session_known_only_from_a_subagents_tools_is_nobodys_holder(night: HookNight) -> None:
    """A child's tool events make no chain, no wake and no stop of their own; they only show life."""
    night.send("post-tool", night.payload("PostToolUse", session_id="child", agent_id="a1", tool_name="Bash"))
    night.send("stop")
    store = night.store()
    assert store.state("child").tool_used is False
    child = store.session("child")
    assert child is None or child.last_event == ""


@pytest.mark.case("BR-138")
def test_a_second_session_in_the_same_checkout_leaves_the_first_ones_state_alone(night: HookNight) -> None:
    """What is stored of one session is byte for byte the same after another one's stops."""
    night.send("stop")
    before = json.dumps(night.store().state(SESSION).as_dict())
    for _ in range(3):
        night.send("stop", session_id="second")
    assert json.dumps(night.store().state(SESSION).as_dict()) == before
    assert night.store().state("second").blocks == 3


@pytest.mark.case("BR-110", "BR-094")
def test_blocks_that_bring_nothing_end_even_with_tools_and_compactions() -> None:
    """Tool calls and compactions are no progress: the larger bound ends such a row, recorded."""
    thrashing = Night(*items("A"), policy=Policy(blocks_an_hour=1000))
    for _ in range(40):
        thrashing.state = thrashing.state.replace(compacted=True)
        assert thrashing.tool().stop().block
    assert thrashing.lines.count("stopped_with_work_owed") == 1
    assert thrashing.stop(SOON).kind == "waiting"
