"""A night driven through the hook itself, event by event, and what the commands tell of it afterwards."""

from __future__ import annotations

import io
import json
import pathlib

import pytest

from stopwarden.cli.context import Context
from stopwarden.cli.main import main
from tests.conftest import LONDON, at
from tests.support.night import SESSION, HookNight, cron

LIST = "- [ ] write the lexer\n- [ ] write the parser\n- [ ] write the docs\n"


def tick(night: HookNight, *titles: str) -> None:
    text = night.list.read_text(encoding="utf-8")
    for title in titles:
        text = text.replace(f"[ ] {title}", f"[x] {title}")
    night.list.write_text(text, encoding="utf-8")


def command(night: HookNight, *words: str) -> tuple[int, str]:
    """One command in the person's own terminal."""
    out = io.StringIO()
    env = {name: value for name, value in night.env.items() if name != "CLAUDE_CODE_ENTRYPOINT"}
    context = Context(env=env, cwd=str(night.project), now=lambda: night.now, zone=LONDON, out=out, err=out)
    return main(words, context), out.getvalue()


@pytest.fixture
def morning(tmp_path: pathlib.Path) -> HookNight:
    """Two items done, a question and a permission refused, an overloaded provider, a wake, then 07:31."""
    night = HookNight(tmp_path, todo=LIST)
    command(night, "away", "until", "07:30", "--list", "TODO.md")
    assert night.armed
    night.send("session-start", night.payload("SessionStart", source="startup"))
    night.send("prompt", prompt="go on")
    night.now = at("2026-11-30 21:40")
    tick(night, "write the lexer")
    night.send("post-tool", tool_name="Edit")
    assert night.send("stop")["decision"] == "block"
    night.now = at("2026-11-30 22:05")
    options = [{"label": "keep it"}, {"label": "drop it"}]
    asked = {"questions": [{"question": "Drop column legacy_id?", "options": options}]}
    night.send("pre-tool", night.payload("PreToolUse", tool_name="AskUserQuestion", tool_input=asked))
    act = {"command": "rm -rf build"}
    night.send("permission", night.payload("PermissionRequest", tool_name="Bash", tool_input=act))
    tick(night, "write the parser")
    night.send("stop")
    wake = cron("22:50", prompt="look again")
    assert night.send("stop", session_crons=[wake]) == {}
    night.now = at("2026-11-30 22:50")
    night.send("prompt", prompt="look again")
    night.now = at("2026-11-30 22:55")
    night.send("stop-failure", night.payload("StopFailure", error="overloaded"))
    night.now = at("2026-11-30 23:25")
    night.send("prompt", prompt="<task-notification>wake</task-notification>")
    night.send("post-tool", tool_name="Bash")
    night.now = at("2026-11-30 23:30")
    assert night.send("stop", session_crons=[cron("00:10", "w2")]) == {}
    night.now = at("2026-12-01 07:31")
    return night


def test_the_report_tells_the_night_as_it_was_driven(morning: HookNight) -> None:
    """From the hook's own lines: items with their times, the refusals, the failed look, the missed one."""
    code, out = command(morning, "report")
    text = " ".join(out.split())
    assert code == 0
    assert text.startswith("Mon 21:00 - Tue 07:30 Europe/London 2 of 3 done · 1 for you")
    for said in (
        '"Drop column legacy_id?" asked 22:05 keep it / drop it stopwarden answer 1 TEXT',
        "write the lexer 21:40 ticked, not verified",
        "write the parser 22:05 ticked, not verified",
        "NOT DONE write the docs not begun",
        "the model was overloaded 22:55-23:25",
        "the look of 00:10 did not come 00:10-07:30",
        "1 permission prompt: Bash: rm -rf build",
        "1 wake (1 missed, 1 failed)",
    ):
        assert said in text
    told = json.loads(command(morning, "report", "--json")[1])
    assert sum(told["counts"]["seconds"].values()) == at("2026-12-01 07:30") - at("2026-11-30 21:00")


def test_every_verdict_of_the_night_is_explained_and_judged_the_same_again(morning: HookNight) -> None:
    """What the hook stored is enough to reach each verdict again."""
    listed = json.loads(command(morning, "explain", "--list", "--json")[1])["verdicts"]
    assert [one["kind"] for one in listed] == ["block", "block", "waiting", "waiting"]
    for one in listed:
        code, out = command(morning, "explain", str(one["id"]))
        assert (code, "the same verdict" in out) == (0, True)


def test_an_answer_reaches_the_session_at_its_next_prompt_once(morning: HookNight) -> None:
    """The person answers in the morning; the hook hands it over, and the list shows that it did."""
    assert command(morning, "answer", "1", "2")[0] == 0
    told = json.dumps(morning.send("prompt", prompt="good morning"))
    if "drop it" not in told:  # the period is over: the next prompt goes through the spool
        store = morning.store()
        assert [one.answer for one in store.parked(session=SESSION) if one.kind == "question"] == ["drop it"]
        store.close()
    again = json.dumps(morning.send("prompt", prompt="and now"))
    assert "drop it" not in again


def test_tool_use_that_only_the_spool_knows_of_is_heard_in_the_report(tmp_path: pathlib.Path) -> None:
    """A tool hook never opens the database; the report takes its facts over first."""
    night = HookNight(tmp_path, todo=LIST)
    command(night, "away", "until", "07:30", "--list", "TODO.md")
    night.send("prompt", prompt="go on")
    night.now = at("2026-11-30 22:00")
    night.send("post-tool", tool_name="Bash")
    night.now = at("2026-11-30 22:20")
    out = command(night, "report")[1]
    assert "nothing heard" not in out
    assert "worked 1 h 20" in out
