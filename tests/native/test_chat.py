"""`stopwarden chat`, `agent` and `transcript` as a person or an editor starts them: real programs, pipes, and a script."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import acp
import pytest
from acp import helpers

SCRIPT = {
    "replies": [
        {
            "text": "I plan.",
            "tools": [
                {"name": "todo_write", "input": {"todos": [{"id": "1", "content": "say hello", "status": "pending"}]}},
                {"name": "shell", "input": {"command": "echo hello from the shell"}},
            ],
        },
        "I stop here.",
        {
            "text": "On it.",
            "tools": [
                {"name": "todo_write", "input": {"todos": [{"id": "1", "content": "say hello", "status": "completed"}]}}
            ],
        },
        "Said.",
    ]
}


@pytest.fixture
def home(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with a script, and nothing of this machine's settings."""
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    return tmp_path


def env(home: pathlib.Path) -> dict[str, str]:
    source = os.environ.get("STOPWARDEN_TEST_SOURCE", str(pathlib.Path(__file__).parents[2] / "src"))
    return {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": source, "TZ": "Europe/London"}


def stopwarden(home: pathlib.Path, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    return subprocess.run(
        [sys.executable, "-m", "stopwarden", *words],
        cwd=home,
        env=env(home),
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_pipe_of_prompts_is_worked_through_with_the_guard(home: pathlib.Path) -> None:
    """The list, the command's output, the continuation and the end are on the screen; the transcript has them too."""
    done = stopwarden(home, "chat", "--model", "scripted:script.json", "--mode", "full", typed="Say hello.\nThanks.\n")
    assert (done.returncode, done.stderr) == (0, "")
    for said in ("[ ] say hello", "hello from the shell", "going on (1 of 2)", "[x] say hello", "Said."):
        assert said in done.stdout, said
    listed = stopwarden(home, "transcript").stdout
    shown = stopwarden(home, "transcript", listed.split()[0]).stdout
    assert "guard: continuation 1 of 2, 1 not finished" in shown
    resumed = stopwarden(
        home, "chat", "--resume", "latest", "--model", "scripted:script.json", "--json", typed="Again.\n"
    )
    kinds = [json.loads(line)["kind"] for line in resumed.stdout.splitlines()]
    assert {"turn_begun", "words", "call", "turn_ended"} <= set(kinds)
    assert stopwarden(home, "transcript", listed.split()[0], "--forget").returncode == 0
    assert "No conversation yet" in stopwarden(home, "transcript").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("chat", "--model", "scripted:none.json"), "is no script"),
        (("chat", "--model", "openai:m"), "needs a key"),
        (("chat", "--mode", "wild"), "There is no mode"),
        (("chat", "--resume", "zzz"), "No conversation is called"),
        (("transcript", "zzz"), "No conversation is called"),
        (("transcript", "--forget"), "Which conversation"),
    ],
)
def test_wrong_words_are_refused_with_what_to_do(home: pathlib.Path, words: tuple[str, ...], said: str) -> None:
    done = stopwarden(home, *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_without_a_key_the_person_is_told_how_to_give_one(home: pathlib.Path) -> None:
    done = stopwarden(home, "chat", typed="Hello?\n")
    assert "ANTHROPIC_API_KEY" in done.stdout


def test_an_editor_starts_the_agent_and_is_served(home: pathlib.Path) -> None:
    """The real program on real pipes under the protocol's Python client."""

    class Editor:
        said = ""

        async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
            if update.session_update == "agent_message_chunk":
                self.said += update.content.text

        async def request_permission(self, **_: Any) -> Any:
            raise AssertionError("nothing needs a permission in this mode")

        def on_connect(self, conn: Any) -> None: ...

    async def story() -> tuple[str, str]:
        editor: Any = Editor()
        words = ("-m", "stopwarden", "agent", "--model", "scripted:script.json", "--mode", "full")
        async with acp.spawn_agent_process(editor, sys.executable, *words, env=env(home), cwd=str(home)) as (agent, _):
            answer = await agent.initialize(protocol_version=1)
            session = await agent.new_session(cwd=str(home), mcp_servers=[])
            response = await agent.prompt(session_id=session.session_id, prompt=[helpers.text_block("Say hello.")])
            assert answer.agent_capabilities.load_session
            return response.stop_reason, editor.said

    reason, said = asyncio.run(asyncio.wait_for(story(), 60))
    assert reason == "end_turn"
    assert said.startswith("I plan.I stop here.Todo guard: continuation 1 of 2")
    assert said.endswith("Said.")
