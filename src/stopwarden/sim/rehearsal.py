"""A throw-away place in which the installed hooks are tried as the host would start them.

Everything is new and goes again: home, project, list of work, state directory with an away period
of its own. The command lines are run as the settings write them, through a shell, with an
environment that holds nothing of the person's. The same place serves a real Claude Code that talks
to a scripted model on loopback, with a key that is none: nothing leaves the machine and nothing of
the person's own configuration is read.

Used by `doctor` and by tests of the real host. May not live here: what the outcome means.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from stopwarden.core.events import AwayPeriod
from stopwarden.sim.scripted_model import ScriptedModel
from stopwarden.store import marker, place
from stopwarden.store.sqlite import open_sqlite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stopwarden.hosts.claude_settings import Installed
    from stopwarden.sim.scripted_model import Request

SHELL = "/bin/sh"
HOUR = 60 * 60


@dataclass(frozen=True)
class Ran:
    """How one hook command ended. `code` is None where it was killed for taking too long."""

    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def answer(self) -> dict[str, Any] | None:
        """What it printed, as JSON; {} for nothing, None for what is no JSON object."""
        if not self.out.strip():
            return {}
        try:
            value = json.loads(self.out)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


@dataclass(frozen=True)
class Told:
    """What became of a run of the real host. `request` is the one that brought the block's reason to the model."""

    request: Request | None
    requests: int
    code: int | None  # None: it was still running, and was ended
    err: str
    seconds: float


class Rehearsal:
    """The place itself; a context manager that leaves nothing behind."""

    def __init__(self, path: str | None = None) -> None:
        self.token = f"rehearsal-{secrets.token_hex(4)}"
        self.path = path or os.environ.get("PATH", os.defpath)

    def __enter__(self) -> Self:
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="stopwarden-"))
        self.home, self.project = os.path.join(self.root, "home"), os.path.join(self.root, "project")
        for directory in (self.home, self.project, os.path.join(self.root, "tmp"), os.path.join(self.root, "state")):
            os.mkdir(directory, 0o700)
        self.list = os.path.join(self.project, "TODO.md")
        with open(self.list, "w", encoding="utf-8") as file:
            file.write(f"- [ ] {self.token}\n")
        return self

    def __exit__(self, *_: object) -> None:
        for _attempt in range(20):  # a program that was just ended may still be writing there
            shutil.rmtree(self.root, ignore_errors=True)
            if not os.path.exists(self.root):
                return
            time.sleep(0.1)

    @property
    def env(self) -> dict[str, str]:
        """The whole environment of what is started here."""
        return {
            "PATH": self.path,
            "HOME": self.home,
            "TMPDIR": os.path.join(self.root, "tmp"),
            "XDG_STATE_HOME": os.path.join(self.root, "state"),
            "LANG": "C.UTF-8",
        }

    def arm(self, now: int) -> None:
        """Away holds here for an hour, for every session, scripts too, with one item owed."""
        state_dir = place.prepare(self.env)
        store = open_sqlite(state_dir)
        try:
            period = AwayPeriod(
                id=self.token,
                since=now - 1,
                until=now + HOUR,
                scope="everywhere",
                root=self.project,
                also_scripts=True,
                lists=(self.list,),
                zone="UTC",
            )
            marker.arm(store, state_dir, period, "")
        finally:
            store.close()

    def stop_payload(self) -> dict[str, Any]:
        """A stop with nothing scheduled, as Claude Code reports it."""
        return {
            "session_id": self.token,
            "transcript_path": os.path.join(self.home, f"{self.token}.jsonl"),
            "cwd": self.project,
            "permission_mode": "default",
            "hook_event_name": "Stop",
            "stop_hook_active": False,
            "last_assistant_message": "Done.",
            "background_tasks": [],
            "session_crons": [],
        }

    def run(self, command: str, payload: Mapping[str, Any], seconds: float = 20) -> Ran:
        """Runs one hook command line as the host would."""
        own = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_PROJECT_DIR": self.project}
        began = time.monotonic()
        with subprocess.Popen(
            [SHELL, "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.env, **own},
            cwd=self.project,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(json.dumps(payload).encode(), timeout=seconds)
                code: int | None = process.returncode
            except subprocess.TimeoutExpired:
                end(process)
                (out, err), code = process.communicate(), None
        return Ran(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), time.monotonic() - began)

    def run_claude(self, claude: str, hooks: Sequence[Installed], seconds: float) -> Told:
        """Runs the real Claude Code with these hooks until a block's reason reaches its model, or time is over."""
        settings = os.path.join(self.project, ".claude", "settings.local.json")
        os.makedirs(os.path.dirname(settings), exist_ok=True)
        with open(settings, "w", encoding="utf-8") as file:
            json.dump(settings_with(hooks), file)
        began = time.monotonic()
        with (
            ScriptedModel(lambda request: "I stop here.") as model,
            open(os.path.join(self.root, "claude.err"), "wb+") as err,
            subprocess.Popen(
                [claude, "-p", "Go.", "--output-format", "json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
                env={**self.env, **offline(model.url)},
                cwd=self.project,
                start_new_session=True,
            ) as process,
        ):
            try:
                gone = lambda: process.poll() is not None  # noqa: E731
                request = model.wait_for(self._brings_the_reason, seconds, unless=gone)
                request = request or model.wait_for(self._brings_the_reason, 0)
                code = process.poll()
            finally:
                end(process)
            err.seek(0)
            said = err.read(4000).decode("utf-8", "replace")
            return Told(request, len(model.requests), code, said, time.monotonic() - began)

    def _brings_the_reason(self, request: Request) -> bool:
        """Whether the item stands in what came after the model's own reply: a block's reason, no earlier briefing."""
        body = request.body if isinstance(request.body, dict) else {}
        replied = any(isinstance(one, dict) and one.get("role") == "assistant" for one in body.get("messages") or ())
        return replied and self.token in request.news()


def settings_with(hooks: Sequence[Installed]) -> dict[str, Any]:
    """A settings file that holds these hooks and nothing else."""
    events: dict[str, list[dict[str, Any]]] = {}
    for hook in hooks:
        group: dict[str, Any] = {"matcher": hook.matcher} if hook.matcher else {}
        events.setdefault(hook.event, []).append({**group, "hooks": [dict(hook.handler)]})
    return {"hooks": events}


def offline(url: str) -> dict[str, str]:
    """What makes Claude Code talk to the model at this address and to nobody else."""
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that was started in a session of its own, and all it has started there."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, signal_number)
        except (ProcessLookupError, PermissionError):
            break
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            continue
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        return
