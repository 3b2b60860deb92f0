"""While away nothing may wait for a person: questions, plans and permissions are refused and kept."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from tests.support.night import SESSION, HookNight

QUESTION: dict[str, Any] = {
    "questions": [
        {
            "question": "Drop column legacy_id?",
            "header": "Schema",
            "options": [{"label": "keep", "description": "…"}, {"label": "drop", "description": "…"}],
            "multiSelect": False,
        }
    ]
}


@pytest.fixture
def night(tmp_path: pathlib.Path) -> HookNight:
    """A checkout with two open items, the person away."""
    made = HookNight(tmp_path)
    made.away()
    return made


def ask(night: HookNight, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """The answer to a tool that is about to be used."""
    return night.send("pre-tool", night.payload("PreToolUse", tool_name=tool, tool_input=given))


@pytest.mark.case("BR-109", "BR-106")
def test_a_question_is_refused_with_advice_and_kept_once_with_its_options(night: HookNight) -> None:
    """The dialog never opens; the agent is told to decide what can be undone; asked again it is counted, not repeated."""
    answer = ask(night, "AskUserQuestion", QUESTION)["hookSpecificOutput"]
    assert answer["permissionDecision"] == "deny"
    assert "ask" not in {answer["permissionDecision"]}
    assert "Decide yourself what can be undone" in answer["permissionDecisionReason"]
    ask(night, "AskUserQuestion", QUESTION)
    (parked,) = night.store().parked()
    assert (parked.text, parked.options, parked.times) == ("Drop column legacy_id?", ("keep", "drop"), 2)
    assert parked.kind == "question"


@pytest.mark.case("BR-103", "BR-104", "BR-107")
def test_a_permission_prompt_is_refused_never_granted(night: HookNight) -> None:
    """A permission dialog would freeze even the wakes: it is denied with advice and kept for the report."""
    payload = night.payload("PermissionRequest", tool_name="Bash", tool_input={"command": "git push\x1b[0m origin"})
    answer = night.send("permission", payload)["hookSpecificOutput"]
    assert answer["hookEventName"] == "PermissionRequest"
    assert answer["decision"]["behavior"] == "deny"
    (parked,) = night.store().parked()
    assert parked.text == "Bash: git push [0m origin"
    assert "refused_permission" in night.lines()


@pytest.mark.case("BR-042")
@pytest.mark.parametrize("tool", ["EnterPlanMode", "ExitPlanMode"])
def test_plan_mode_is_refused_while_nobody_can_approve(night: HookNight, tool: str) -> None:
    """Neither entering plan mode nor asking for a plan's approval may wait for a person who is away."""
    answer = ask(night, tool, {"plan": "1. write it"})["hookSpecificOutput"]
    assert answer["permissionDecision"] == "deny"
    assert "refused_plan" in night.lines()


def test_other_tools_and_a_person_who_is_here_are_left_alone(night: HookNight, tmp_path: pathlib.Path) -> None:
    """Only what would open a dialog is refused, and only while away."""
    assert ask(night, "Bash", {"command": "ls"}) == {}
    here = HookNight(tmp_path / "here")
    assert ask(here, "AskUserQuestion", QUESTION) == {}
    assert here.send("permission", here.payload("PermissionRequest", tool_name="Bash", tool_input={})) == {}


def test_observing_refuses_nothing_and_off_does_not_even_look(night: HookNight) -> None:
    """Observe keeps the question and lets it be shown; off leaves it alone."""
    store = night.store()
    store.save_fact("mode", "all", "observe")
    assert ask(night, "AskUserQuestion", QUESTION) == {}
    assert len(store.parked()) == 1
    store.save_fact("mode", "all", "off")
    assert ask(night, "EnterPlanMode", {}) == {}
    assert len(store.parked()) == 1


def test_the_first_turn_asks_for_a_safety_wake_once(night: HookNight) -> None:
    """The first prompt while away is briefed: until when, the list, and a recurring safety wake first of all."""
    first = night.send("prompt", prompt="go on with the list")["hookSpecificOutput"]
    assert first["hookEventName"] == "UserPromptSubmit"
    text = first["additionalContext"]
    assert "until Tue 07:30 (Europe/London)" in text
    assert str(night.list) in text
    assert text.index("safety wake") < text.index("Work through")
    assert "CronCreate" in text
    assert night.send("prompt", prompt="and on") == {}


def test_a_session_that_stops_before_any_prompt_is_asked_at_its_stop(night: HookNight) -> None:
    """Away began in mid-turn: the first block carries the request, the second no more."""
    assert "safety wake" in night.send("stop")["reason"]
    assert "safety wake" not in night.send("stop")["reason"]


def test_an_answer_reaches_the_agent_at_its_next_turn_once(night: HookNight) -> None:
    """What the person answers is told at the session's next prompt, and never again."""
    night.send("prompt", prompt="go")
    ask(night, "AskUserQuestion", QUESTION)
    store = night.store()
    (parked,) = store.parked()
    store.save_parked(parked.replace(answer="drop it", answered_at=night.now))
    text = night.send("prompt", prompt="go on")["hookSpecificOutput"]["additionalContext"]
    assert "Drop column legacy_id?: drop it" in text
    assert night.send("prompt", prompt="go on") == {}


def test_a_session_without_a_list_gets_one_and_is_told_where(tmp_path: pathlib.Path) -> None:
    """No list named: the session's own list is made in the checkout, its path is in the briefing, git does not see it."""
    night = HookNight(tmp_path, todo=None)
    night.away(lists=False)
    text = night.send("prompt", prompt="go")["hookSpecificOutput"]["additionalContext"]
    (made,) = (night.project / ".stopwarden").glob("*.md")
    assert str(made) in text
    assert ".stopwarden" in (night.project / ".git" / "info" / "exclude").read_text(encoding="utf-8")
    assert night.lines().count("checklist_made") == 1
    made.write_text(made.read_text(encoding="utf-8") + "- [ ] my own item\n", encoding="utf-8")
    assert '"my own item"' in night.send("stop")["reason"]


@pytest.mark.case("BR-157", "BR-004")
def test_a_prompt_no_person_typed_is_no_persons_prompt(night: HookNight) -> None:
    """Task notifications, our own words and scheduled prompts are recognised; only a person's prompt begins a chain."""
    night.send(
        "stop", session_crons=[{"id": "w", "schedule": "30 21 * * *", "recurring": False, "prompt": "look again"}]
    )
    for text in ("<task-notification>\n<task-id>x", "Stopwarden: go on", "look again"):
        night.send("prompt", prompt=text)
    store = night.store()
    assert [line.text for line in store.lines() if line.kind == "prompt"] == ["notification", "ours", "wake"]
    row = store.session(SESSION)
    assert row is not None
    assert row.chain_started_at == 0
    night.send("prompt", prompt="hello, I am here")
    row = night.store().session(SESSION)
    assert row is not None
    assert row.chain_started_at == night.now - 10


def test_a_persons_prompt_ends_away_only_if_they_said_so(tmp_path: pathlib.Path) -> None:
    """By default a prompt meanwhile is answered and judged like any other; a setting makes it the end."""
    from stopwarden.core.bounds import Policy

    night = HookNight(tmp_path)
    night.away()
    night.send("prompt", prompt="quick question")
    assert night.armed
    ends = HookNight(tmp_path / "two")
    ends.away(policy=Policy(person_prompt_ends=True))
    ends.send("prompt", prompt="<task-notification>")
    assert ends.armed
    ends.send("prompt", prompt="I am back")
    assert not ends.armed
