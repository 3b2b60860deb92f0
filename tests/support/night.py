"""A throw-away machine for the hook: a home, a checkout with a list, an away period, and a virtual clock.

`send` answers in this process (quick); `run` starts the real program as a host would. Both take
the same payloads and leave the same state, and a test holds them together.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
from typing import Any

from stopwarden import machine, wire
from stopwarden.cli.context import Context
from stopwarden.cli.main import main
from stopwarden.core.bounds import Policy
from stopwarden.core.events import AwayPeriod
from stopwarden.hook import run
from stopwarden.hook.local import Event, reply
from stopwarden.store import marker, place
from stopwarden.store.port import Store
from stopwarden.store.sqlite import open_sqlite
from stopwarden.work import checkout
from tests.conftest import LONDON, at

SOURCE = pathlib.Path(os.environ.get("STOPWARDEN_TEST_SOURCE") or pathlib.Path(__file__).parents[2] / "src")
SESSION = "5d0c7a52-0000-4000-8000-000000000001"
START = at("2026-11-30 21:00")


class HookNight:
    """One user's machine in one night."""

    def __init__(self, tmp_path: pathlib.Path, *, todo: str | None = "- [ ] A\n- [ ] B\n") -> None:
        self.now = START
        self.said = self.complained = ""
        self.project = tmp_path / "project"
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        self.list = self.project / "TODO.md"
        if todo is not None:
            self.list.write_text(todo, encoding="utf-8")
        self.env = {
            "HOME": os.environ["HOME"],
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "TZ": "Europe/London",
            "PATH": os.environ["PATH"],
            "CLAUDE_CODE_ENTRYPOINT": "cli",
        }
        os.environ.update(self.env)
        self.state_dir = place.prepare(self.env)

    @property
    def armed(self) -> bool:
        """Whether the marker of an away period is there."""
        return os.path.exists(f"{self.state_dir}/away.json")

    def store(self) -> Store:
        """The user's database."""
        return open_sqlite(self.state_dir)

    def away(self, *, policy: Policy | None = None, lists: bool = True, **period: Any) -> AwayPeriod:
        """The person leaves until 07:30, for this checkout unless said otherwise."""
        root = checkout.find_root(str(self.project))
        made = AwayPeriod(
            **{
                "id": f"p{self.now}",
                "since": self.now,
                "until": at("2026-12-01 07:30"),
                "scope": "checkout",
                "root": root,
                "copy": checkout.copy_key(root, self.state_dir),
                "lists": (str(self.list),) if lists else (),
                **period,
            }
        )
        store = self.store()
        marker.arm(store, self.state_dir, made, wire.dumps((policy or Policy()).as_dict()))
        store.close()
        return made

    def payload(self, event: str = "Stop", **fields: Any) -> dict[str, Any]:
        """A payload as Claude Code writes it; a field given as None is left out."""
        made: dict[str, Any] = {
            "session_id": SESSION,
            "prompt_id": "7b1e",
            "cwd": str(self.project),
            "permission_mode": "bypassPermissions",
            "hook_event_name": event,
        }
        if event == "Stop":
            made |= {"stop_hook_active": False, "last_assistant_message": "done", "background_tasks": []}
            made |= {"session_crons": []}
        return {name: value for name, value in (made | fields).items() if value is not None}

    def send(self, event: str, payload: dict[str, Any] | bytes | None = None, **fields: Any) -> dict[str, Any]:
        """The answer to one event, in this process; {} for silence. The clock goes on by ten seconds."""
        names = {"stop": "Stop", "prompt": "UserPromptSubmit", "post-tool": "PostToolUse"}
        if payload is None:
            payload = self.payload(names.get(event, event), **fields)
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        text = ""
        if self.armed and event != "post-tool":
            started = int(machine.boot_seconds() * 100) + 1  # a process of its own, started now
            text = reply(Event(event, raw, self.state_dir, self.now, started))
        else:
            run._spool(event, raw, self.state_dir, self.now)
        self.now += 10
        return json.loads(text) if text else {}

    def run(self, event: str, payload: dict[str, Any] | bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
        """The same through the real program, as installed: `python -I -S`, payload on standard input."""
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        done = subprocess.run(
            [*hook_command(), event, "--at", str(self.now)],
            input=raw,
            capture_output=True,
            env=self.env | env,
            cwd=self.project,
            timeout=60,
        )
        self.now += 10
        return done

    def types(self, *words: str, session: str = "") -> int:
        """`stopwarden WORDS` in the checkout, typed by the person, or run by a session's agent. Its exit code."""
        out, err = io.StringIO(), io.StringIO()
        env = self.env | ({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session} if session else {})
        context = Context(
            env=env,
            cwd=str(self.project),
            now=lambda: self.now,
            zone=LONDON,
            out=out,
            err=err,
            ask=lambda question: None,
        )
        code = main(list(words), context)
        self.said, self.complained = out.getvalue(), err.getvalue()
        return code

    def lines(self) -> list[str]:
        """The kinds of the away record's lines, in order."""
        store = self.store()
        kinds = [line.kind for line in store.lines()]
        store.close()
        return kinds


def hook_command() -> list[str]:
    """The hook program of this checkout, started as the installed launcher starts it."""
    paths = [str(SOURCE), sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
    code = f"import sys; sys.path[:0] = {paths!r}; from stopwarden.hook.run import main; main()"
    return [sys.executable, "-I", "-S", "-c", code]


def cron(clock: str, name: str = "w1", *, recurring: bool = False, prompt: str = "look again") -> dict[str, Any]:
    """A `session_crons` entry that fires at a local time of day."""
    hour, minute = clock.split(":")
    return {"id": name, "schedule": f"{int(minute)} {int(hour)} * * *", "recurring": recurring, "prompt": prompt}
