"""No message of a conversation is stored, told or exported, whatever the host hands over.

A whole night, armed and not, with faults and a spool; each text of the conversation carries a word
that stands nowhere else. What is kept on purpose (work text, refused questions and acts) carries
another word, which shows that the search would find it. Both kinds are listed in docs/export.md.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest

from stopwarden.cli.context import Context
from stopwarden.cli.main import main
from stopwarden.hosts import claude_code_facts
from stopwarden.store import place
from tests.support.night import SESSION, HookNight, cron
from tests.support.payloads import EVENTS, recorded

SAID = "zq-message-text-9157"  # in all that is said in the conversation
WORK = "zq-work-text-2648"  # in titles of work, which are kept
ASKED = "zq-asked-6302"  # in questions, plans and acts that are parked for the person


def texts() -> dict[str, Any]:
    """Fields of a payload that hold text of the conversation, by every name seen or likely."""
    nested = {"text": SAID, "content": [{"type": "text", "text": SAID}], SAID: SAID}
    names = (
        *("last_assistant_message", "message", "title", "custom_instructions", "error_details", "error_message"),
        *("transcript", "summary", "response", "details", "compact_summary", "tool_error", "stderr", "stdout"),
    )
    return {**dict.fromkeys(names, f"about {SAID} it said"), "extra": nested, "messages": [nested]}


def ordinary(tool: str) -> dict[str, Any]:
    """A tool call with text of the conversation in what it was given and gave."""
    given = {"command": f"echo {SAID}", "file_path": f"/tmp/{SAID}", "content": SAID, "new_string": SAID}
    return {"tool_name": tool, "tool_input": given, "tool_response": {"stdout": SAID, "filePath": SAID, "id": SAID}}


def wake(tool: str, **answered: Any) -> dict[str, Any]:
    given = {
        "cron": "5 22 * * *",
        "recurring": True,
        "prompt": f"look again {SAID}",
        "reason": SAID,
        "delaySeconds": 60,
    }
    return {
        "tool_name": tool,
        "tool_input": given,
        "tool_response": {"prompt": SAID, "humanSchedule": SAID, **answered},
    }


def todo(tool: str, **given: Any) -> dict[str, Any]:
    more = {"description": SAID, "activeForm": SAID, "metadata": {"note": SAID}}
    answered = {"task": {"id": "7", "subject": f"a {WORK}", "description": SAID}, "message": SAID, "success": True}
    return {"tool_name": tool, "tool_input": {**given, **more}, "tool_response": answered}


def a_night(night: HookNight) -> list[str]:
    """Every event, each text marked; what was printed."""
    said: list[str] = []

    def send(event: str, name: str, **fields: Any) -> None:
        base = night.payload(name, **{**texts(), **fields})
        said.append(json.dumps(night.send(event, base)))

    crons = [cron("21:50", prompt=f"look {SAID}")]
    send("session-start", "SessionStart", source="startup")
    send("prompt", "UserPromptSubmit", prompt=f"please {SAID}")
    for tool in ("Bash", "Edit", "WebFetch", "mcp__x__y"):
        send("post-tool", "PostToolUse", **ordinary(tool))
    send("post-tool", "PostToolUse", **wake("CronCreate", id="w1", nextFireAt=1_796_000_000_000, recurring=True))
    send("post-tool", "PostToolUse", **wake("ScheduleWakeup", scheduledFor=1_796_100_000_000))
    send("post-tool", "PostToolUse", **wake("CronDelete", id="w9"))
    todos = [{"content": f"write {WORK}", "status": "pending", "activeForm": SAID, "notes": SAID}]
    send("post-tool", "PostToolUse", **todo("TodoWrite", todos=todos))
    send("post-tool", "PostToolUse", **todo("TaskCreate", subject=f"a {WORK}"))
    send("post-tool", "PostToolUse", **todo("TaskUpdate", taskId="7", status="in_progress"))
    send(
        "stop",
        "Stop",
        session_crons=crons,
        background_tasks=[{"id": "b", "command": f"npm run {SAID}", "description": SAID}],
    )
    question = {
        "questions": [{"question": f"{ASKED}?", "header": SAID, "options": [{"label": "a", "description": SAID}]}]
    }
    send("pre-tool", "PreToolUse", tool_name="AskUserQuestion", tool_input=question)
    send(
        "permission", "PermissionRequest", tool_name="Bash", tool_input={"command": f"rm {ASKED}", "description": SAID}
    )
    send("pre-tool", "PreToolUse", tool_name="ExitPlanMode", tool_input={"plan": f"{ASKED} plan", "more": SAID})
    send("notification", "Notification", notification_type="permission_prompt")
    send("notification", "Notification", notification_type="idle_prompt")
    limit = f"You said {SAID}. You've hit your limit · resets 3am (Europe/London) {SAID} and more"
    send("stop-failure", "StopFailure", error="rate_limit", last_assistant_message=limit)
    send("stop-failure", "StopFailure", error=f"a sentence with {SAID}")
    send("stop-failure", "StopFailure", error="server_error", last_assistant_message=f"limit resets {SAID}")
    send("prompt", "UserPromptSubmit", prompt=f"<task-notification>{SAID}</task-notification>")
    send("pre-compact", "PreCompact", trigger="manual")
    for number in range(4):
        night.list.write_text(f"- [ ] A {number}\n- [ ] B\n", encoding="utf-8")
        send("stop", "Stop", session_crons=crons)
    torn = json.dumps(night.payload("Stop", **texts(), session_crons=crons)).encode()
    said.append(json.dumps(night.send("stop", torn[: len(torn) * 2 // 3])))
    said.append(json.dumps(night.send("stop", b'{"session_id": "' + SESSION.encode() + b'", ' + SAID.encode())))
    send("session-end", "SessionEnd", reason="logout")
    return said


def files_with(state_dir: str, word: str) -> list[str]:
    """The files below the state directory that hold a word, by name or by content."""
    paths = [path for path in pathlib.Path(state_dir).rglob("*") if path.is_file()]
    return [str(path) for path in paths if word.encode() in path.read_bytes() or word in path.name]


def typed(night: HookNight, *words: str) -> str:
    """What one command prints."""
    import io

    out = io.StringIO()
    context = Context(env=night.env, cwd=str(night.project), now=lambda: night.now, out=out, err=out)
    main(list(words), context)
    return out.getvalue()


def check_nothing_was_said(night: HookNight, said: list[str], *, kept: bool) -> None:
    """The word of the conversation stands in no file, in no answer, and in nothing that a command tells."""
    assert files_with(night.state_dir, SAID) == []
    assert SAID not in "\n".join(said)
    told = {
        words: typed(night, *words)
        for words in (
            ("status", "--json"),
            ("report", "--verbose"),
            ("report", "--json"),
            ("explain", "--verbose"),
            ("explain", "--json"),
            ("parked",),
            ("replay", "--json"),
            ("export", "-"),
        )
    }
    for words, text in told.items():
        assert SAID not in text, words
    assert files_with(night.state_dir, SAID) == []
    assert bool(files_with(night.state_dir, WORK)) == kept, "the search would find what is kept"
    if kept:
        assert WORK in told["export", "-"]


@pytest.fixture
def night(tmp_path: pathlib.Path) -> HookNight:
    return HookNight(tmp_path)


@pytest.mark.parametrize("lists", [True, False], ids=["a named list", "own lists"])
def test_no_message_of_an_armed_night_is_stored_or_told(night: HookNight, lists: bool) -> None:
    """Every event while away: prompts, answers, tools, notifications and errors leave none of their words."""
    night.away(lists=lists)
    said = a_night(night)
    assert any('"block"' in answer for answer in said)
    check_nothing_was_said(night, said, kept=True)
    assert files_with(night.state_dir, ASKED), "what is parked for the person is kept"


def test_no_message_of_an_unarmed_day_is_stored_or_told(night: HookNight) -> None:
    """Nobody is away: only facts are spooled, then taken over."""
    night.store().close()
    said = a_night(night)
    assert pathlib.Path(night.state_dir, "spool").exists()
    assert files_with(night.state_dir, SAID) == []
    assert files_with(night.state_dir, ASKED) == []
    check_nothing_was_said(night, said, kept=True)


def test_no_message_is_stored_by_our_own_faults(night: HookNight) -> None:
    """The database is junk, then gone: what is counted and set aside names no word of the payload."""
    night.away()
    database = pathlib.Path(night.state_dir, place.DATABASE)
    for suffix in place.COMPANIONS:
        pathlib.Path(f"{database}{suffix}").unlink(missing_ok=True)
    database.write_bytes(b"junk" * 4000)
    said = a_night(night)
    assert "fault" in pathlib.Path(night.state_dir, "faults").read_text()
    check_nothing_was_said(night, said, kept=True)


def test_an_error_of_ours_quotes_no_payload(night: HookNight, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that names what it choked on is recorded by its kind and place alone."""
    from stopwarden.hook import at_stop

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError(f"cannot read {SAID}")

    night.away()
    monkeypatch.setattr(at_stop, "judge", broken)
    answer = night.send("stop", night.payload("Stop", **texts()))
    assert answer["decision"] == "block"
    assert "ValueError at test_privacy.py" in answer["reason"]
    assert SAID not in json.dumps(answer)
    assert "ValueError" in pathlib.Path(night.state_dir, "faults").read_text()
    assert files_with(night.state_dir, SAID) == []


@pytest.mark.parametrize("number", range(len(recorded())))
def test_a_recorded_payload_with_every_unknown_text_marked_leaves_none_of_it(number: int) -> None:
    """The host's own payloads with the word in every string that is no name, path or work: the fact holds none."""
    payload = marked(recorded()[number])
    event = EVENTS[str(payload["hook_event_name"])]
    told = claude_code_facts.fact(event, payload, lambda name: os.environ.get(name, ""), 1.0)
    assert SAID not in json.dumps(told)


KEPT = (
    *("session_id", "cwd", "permission_mode", "hook_event_name", "tool_name", "source", "reason", "error", "agent_id"),
    *("notification_type", "trigger", "content", "subject", "status", "cron", "id", "taskId", "addBlockedBy", "to"),
    *("addBlocks", "agent_type", "prompt_id"),
)


def marked(value: Any, name: str = "") -> Any:
    """The same payload; each string but those of `KEPT` names has the word before and after."""
    if isinstance(value, dict):
        return {key: marked(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [marked(part, name) for part in value]
    return f"{SAID} {value} {SAID}" if isinstance(value, str) and name not in KEPT else value


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        ("limit · resets 6:30pm (Asia/Jerusalem)", "resets 6:30pm (Asia/Jerusalem)"),
        ("limit, resets Jun 11, 2026, 12:27 AM", "resets Jun 11, 2026, 12:27 AM"),
        ("limit · resets at 1788625200", "resets at 1788625200"),
        ("limit · resets 8 pm. Now remember the password", "resets 8 pm."),
        ("limit: reset the database to marker", "resets"),
        ("limit resets 3am (my secret)", "resets 3am"),
    ],
)
def test_of_a_limits_text_only_the_time_is_kept(shown: str, kept: str) -> None:
    """A message that speaks of a limit and a reset is no reason to keep the rest of it."""
    payload = {"hook_event_name": "StopFailure", "error": "rate_limit", "last_assistant_message": shown}
    told = claude_code_facts.fact("stop-failure", payload, lambda name: "", 1.0)
    assert told["resets"] == kept
