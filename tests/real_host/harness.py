"""The real agent program in a real terminal, with nobody at the keys and a scripted model on loopback.

A `RealHost` is one throw-away home and project: it writes what the program's first run would ask
for, starts the program in tmux with an empty environment, types what a person would type, and
waits by looking at files, at the model server and at the terminal, always with a deadline. The
program gets a dummy key and an address on 127.0.0.1 and nothing else, so it can reach nobody.

What is asserted is what the model was sent and what Stopwarden recorded, never what the terminal
showed; the terminal is only looked at to know when to type, and printed when something fails.
Leaving ends every process that was started in that home, found by its environment.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from zoneinfo import ZoneInfo

import pytest

from stopwarden.sim.scripted_model import Request, ScriptedModel
from stopwarden.store.sqlite import open_sqlite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stopwarden.sim.scripted_model import Answer
    from stopwarden.store.port import RecordLine, SessionRow, VerdictRow

CLONE = Path(__file__).resolve().parents[2]
GIVEN = os.environ.get("STOPWARDEN_TEST_CLAUDE", "")  # read now: each test runs without variables of ours
MUST_RUN = bool(os.environ.get("CI"))
KEY = "sk-ant-dummy-0123456789abcdefghij"
ENDINGS_OF_KEY = 20  # the program remembers an approved key by its last characters
READY = re.compile(r"(manual|auto|plan|edits|bypass\w*)( permissions)? (mode )?on", re.I)
REASON = "Stop hook feedback:\n"
ZONE = "Europe/London"
DEADLINE = 30.0
POLL = 0.05


def claude() -> str:
    """The agent program to drive; skips the test where it is not installed (in CI that is a failure)."""
    missing = ""
    if not GIVEN or not os.access(GIVEN, os.X_OK):
        missing = "real host not installed: run make real-host"
    elif shutil.which("tmux") is None:
        missing = "no tmux, which the real host is driven through: install it, then run make real-host"
    if missing and MUST_RUN:
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    return GIVEN


def soon() -> str:
    """A one-shot schedule half a minute to a few minutes from now, at no minute that the host fires early."""
    moment = datetime.fromtimestamp(time.time() + 90, ZoneInfo(ZONE))
    while moment.minute % 30 == 0:  # one-shots on the full and the half hour may come 90 s early
        moment += timedelta(minutes=1)
    return f"{moment.minute} {moment.hour} {moment.day} {moment.month} *"


class RealHost:
    """One home, one project, one model; a context manager. `program` is the `stopwarden` to run."""

    def __init__(
        self,
        program: Path,
        answer: Answer,
        *,
        allow: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._claude = claude()
        self.root = Path(tempfile.mkdtemp(prefix="sw-real-"))  # short: a socket's path has room for 100 characters
        self.home, self.project = self.root / "home", self.root / "project"
        self.todo = self.project / "TODO.md"
        self._program = program
        self.model = ScriptedModel(answer, log=str(self.root / "model.jsonl"))
        self._terminals: list[str] = []
        self._env = {
            "PATH": f"{program.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TZ": ZONE,
        }
        self._host_env = {
            **self._env,
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            **({"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}),  # it refuses some modes to root otherwise
            **(env or {}),
        }
        self._furnish(allow)

    def _furnish(self, allow: Sequence[str]) -> None:
        """A home in which the first run asks nothing, and a project that is trusted."""
        for directory in (self.home / ".claude", self.project / ".claude", self.root / "tmp"):
            directory.mkdir(parents=True)
        first_run = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-ENDINGS_OF_KEY:]], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
        }
        (self.home / ".claude.json").write_text(json.dumps(first_run))
        settings = {"permissions": {"defaultMode": "default", "allow": list(allow)}}
        self.settings.write_text(json.dumps(settings, indent=2) + "\n")
        subprocess.run(["git", "init", "-q", str(self.project)], check=True, env=self._env)

    def __enter__(self) -> Self:
        self.model.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for terminal in self._terminals:
            self._tmux(terminal, "kill-server")
        self._end_processes()
        self.model.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def _end_processes(self) -> None:
        """Ends what was started in this home and has not ended with its terminal: known by its environment."""
        mark = f"HOME={self.home}\0".encode()
        for sign in (signal.SIGTERM, signal.SIGKILL):
            left = [pid for pid in _processes() if mark in _environment(pid)]
            for pid in left:
                try:
                    os.kill(pid, sign)
                except ProcessLookupError:
                    continue
            until = time.monotonic() + 3
            while left and time.monotonic() < until:
                left = [pid for pid in left if mark in _environment(pid)]
                time.sleep(POLL)

    # --- Stopwarden --------------------------------------------------------------------------

    @property
    def settings(self) -> Path:
        return self.project / ".claude" / "settings.json"

    @property
    def state_dir(self) -> Path:
        return self.home / ".local" / "state" / "stopwarden"

    def stopwarden(self, *words: str, expect: int | None = 0) -> str:
        """Runs a command as the person, in the project; its output. `expect` None accepts any exit code."""
        done = subprocess.run(
            [str(self._program), *words],
            cwd=self.project,
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        said = done.stdout + done.stderr
        if expect is not None and done.returncode != expect:
            self.fail(f"stopwarden {' '.join(words)} ended with {done.returncode}, not {expect}:\n{said}")
        return said

    def install(self, *, keeper: bool = False) -> None:
        """Writes the hooks into the project's settings, as a person would."""
        self.stopwarden("install", "claude-code", "--project", "--yes", "--keeper" if keeper else "--no-keeper")

    def leave_for(self, length: str, *words: str) -> None:
        """The person goes away, naming the list."""
        self.stopwarden("away", "for", length, "--list", "TODO.md", *words, expect=None)
        if not (self.state_dir / "away.json").exists():
            self.fail("`stopwarden away` did not arm anything")

    def verdicts(self) -> list[VerdictRow]:
        """Every verdict so far, oldest first."""
        return self._stored(lambda store: store.verdicts())

    def sessions(self) -> list[SessionRow]:
        """What is known of every session."""
        return self._stored(lambda store: store.sessions())

    def lines(self, *kinds: str) -> list[RecordLine]:
        """The away record so far, or its lines of these kinds."""
        return [line for line in self._stored(lambda store: store.lines()) if not kinds or line.kind in kinds]

    def _stored(self, read: Callable[[Any], list[Any]]) -> list[Any]:
        if not (self.state_dir / "stopwarden.db").exists():
            return []
        store = open_sqlite(str(self.state_dir))
        try:
            return read(store)
        finally:
            store.close()

    # --- the terminal ------------------------------------------------------------------------

    def start(self, *words: str) -> None:
        """Starts the program in a terminal of its own and waits until it can be typed to."""
        terminal = str(self.root / f"t{len(self._terminals)}")
        self._terminals.append(terminal)
        variables = [f"{name}={value}" for name, value in self._host_env.items()]
        self._tmux(
            terminal,
            *("new-session", "-d", "-x", "150", "-y", "50", "-c", str(self.project)),
            *("env", "-i", *variables, self._claude, "--permission-mode", "default", *words),
        )
        self.wait_until("the program can be typed to", lambda: bool(READY.search(self._bottom())))

    def resume_command(self) -> str:
        """What a person gives to `watch --resume` here: the program as a script, with what it needs to reach the model."""
        variables = [f"{name}={value}" for name, value in self._host_env.items() if name not in self._env]
        words = [self._claude, "-p", "--permission-mode", "default", "--resume", "{session}", "{prompt}"]
        return shlex.join(["env", *variables, *words])

    def run_script(self, prompt: str, seconds: float = DEADLINE) -> str:
        """Runs the program as a script does (`-p`), with nobody to be asked; its output. Fails if it does not end."""
        words = [self._claude, "-p", prompt, "--permission-mode", "default"]
        try:
            done = subprocess.run(
                words,
                cwd=self.project,
                env=self._host_env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            self.fail(f"`claude -p` had not ended after {seconds} s")
        return done.stdout + done.stderr

    def type(self, text: str) -> None:
        """Types a line and presses Enter once it stands in the input."""
        self._tmux(self._terminals[-1], "send-keys", "-t", "0", "-l", text)
        self.wait_until(f"{text!r} stands in the input", lambda: text[:100] in self.screen())
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Presses keys by tmux's names: Enter, Escape, Up."""
        self._tmux(self._terminals[-1], "send-keys", "-t", "0", *keys)

    def screen(self) -> str:
        """What the terminal shows now; only for knowing when to type, and for failures."""
        return self._tmux(self._terminals[-1], "capture-pane", "-p", "-t", "0") if self._terminals else ""

    def _bottom(self) -> str:
        return "\n".join(self.screen().rstrip().splitlines()[-2:])

    def _tmux(self, socket: str, *words: str) -> str:
        env = {**self._env, "TMUX_TMPDIR": str(self.root)}
        done = subprocess.run(
            ["tmux", "-S", socket, "-f", "/dev/null", *words], env=env, capture_output=True, text=True, timeout=DEADLINE
        )
        return done.stdout

    def close_terminal(self) -> None:
        """The terminal goes away under the program: a closed window, a lost connection."""
        self._tmux(self._terminals[-1], "kill-server")
        mark = f"HOME={self.home}\0".encode()
        self.wait_until("the program has ended", lambda: not any(mark in _environment(pid) for pid in _processes()))

    def leave(self) -> None:
        """Ends the program as a person does, and waits until it is gone."""
        terminal = self._terminals[-1]

        def ended() -> bool:
            if "Exit and stop tasks" in self.screen():  # asked where wakes are scheduled; the first answer is meant
                self.press("Enter")
            return not self._tmux(terminal, "list-panes").strip()

        self.type("/exit")
        self.wait_until("the program has ended", ended)

    # --- what the model was sent -------------------------------------------------------------

    @property
    def turns(self) -> list[Request]:
        """The requests of the conversation itself: those that offer tools."""
        return [request for request in self.model.requests if request.tools]

    def reasons(self) -> list[str]:
        """The reasons of blocked stops, in the order in which the model read them."""
        found = []
        for request in self.turns:
            for text in told(request):
                if REASON in text:
                    found.append(text.partition(REASON)[2].removesuffix("\n</system-reminder>"))
        return found

    def request_saying(self, words: str, seconds: float = DEADLINE, *, after: int = 0) -> Request:
        """The first request of the conversation, later than number `after`, whose news hold these words."""
        found = self.model.wait_for(
            lambda request: request.n > after and bool(request.tools) and words in "\n".join(told(request)), seconds
        )
        return found if found is not None else self.fail(f"the model was not told {words!r} within {seconds} s")

    # --- waiting and failing -----------------------------------------------------------------

    def wait_until(self, what: str, holds: Callable[[], bool], seconds: float = DEADLINE) -> None:
        """Waits until something holds; fails with everything that is known when it does not in time."""
        until = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > until:
                self.fail(f"not within {seconds} s: {what}")
            time.sleep(POLL)

    def wait_for_verdict(self, kind: str, count: int = 1, seconds: float = DEADLINE) -> VerdictRow:
        """The `count`-th verdict of that kind, past or to come."""
        self.wait_until(
            f"{count} verdicts of kind {kind}",
            lambda: sum(row.kind == kind for row in self.verdicts()) >= count,
            seconds,
        )
        return [row for row in self.verdicts() if row.kind == kind][count - 1]

    def stays(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        """Something holds all the time; fails as soon as it does not."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not holds():
                self.fail(f"did not stay so for {seconds} s: {what}")
            time.sleep(POLL)

    def fail(self, what: str) -> Any:
        """Fails the test with the terminal, what the model was sent, and our own record."""
        raise AssertionError(f"{what}\n{self.account()}")

    def account(self) -> str:
        """Everything that is known, for a failure."""
        shown = ["--- terminal", self.screen().rstrip(), "--- model"]
        for request in self.turns:
            reply = request.reply.as_json() if request.reply else None
            shown.append(f"{_clock(request.arrived)} #{request.n}")
            shown += [f"    < {_cut(text)!r}" for text in told(request)]
            shown.append(f"    > {json.dumps(reply)[:300]}")
        shown.append("--- verdicts")
        shown += [f"{_clock(row.at)} {row.kind} {row.rule}" for row in self.verdicts()]
        shown.append("--- away record")
        shown += [f"{_clock(line.at)} {line.kind} {line.item} {line.text}".rstrip() for line in self.lines()]
        for name in ("spool", "faults"):
            path = self.state_dir / name
            if path.exists():
                shown += [f"--- {name}", path.read_text(errors="replace")[-2_000:]]
        shown += ["--- TODO.md", self.todo.read_text() if self.todo.exists() else "none"]
        return "\n".join(shown)


class Part(NamedTuple):
    """One thing that the model was told: a prompt, a reason, a context, or a tool's result."""

    text: str
    is_result: bool = False


def parts(request: Request) -> list[Part]:
    """What the model was told since its last reply, in order."""
    since: list[Part] = []
    for message in request.body.get("messages", []):
        if message.get("role") == "assistant":
            since = []
            continue
        content = message.get("content")
        for part in [content] if isinstance(content, str) else content or []:
            if isinstance(part, str):
                since.append(Part(part))
            elif part.get("type") == "tool_result":
                inner = part.get("content")
                since.append(Part(inner if isinstance(inner, str) else json.dumps(inner), is_result=True))
            elif isinstance(part.get("text"), str):
                since.append(Part(part["text"]))
    return since


def told(request: Request) -> list[str]:
    """The texts of what the model was told since its last reply."""
    return [part.text for part in parts(request)]


def _cut(text: str) -> str:
    """A long text by its two ends, and by our own words where they stand in it."""
    if len(text) <= 600:
        return text
    ours = text.find("Stopwarden:")
    start = ours if ours > 0 else text.find(REASON) if REASON in text else 0
    return f"{text[start : start + 450]} … {text[-150:]}"


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    except OSError:
        return []


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
