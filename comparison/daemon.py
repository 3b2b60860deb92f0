"""A scenario played to the shipped Qwen Code as a whole: `qwen serve`, its own bridge and the agent behind it.

The person's acts are HTTP calls of the session's clients, what happens is read from its stream of events.
What passes between the shipped bridge and its agent is not seen here.
"""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from comparison.bridge import DESK, PHONE, admission
from comparison.json_lines import wait_until
from comparison.qwen import DEADLINE, Played, Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.script import Scenario


class Daemon(Program):
    """One running `qwen serve`."""

    def _start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{free.getsockname()[1]}"
        words = (*self._command, "serve", "--no-web", "--hostname", "127.0.0.1", "--port", self.address.split(":")[2])
        with open(self.place / "errors", "wb") as log:
            self.process = subprocess.Popen(
                words, env=self._environment(), cwd=self.project, stdout=log, stderr=subprocess.STDOUT
            )
        wait_until(lambda: self.call("GET", "/health")[0] == 200, DEADLINE, "the daemon")

    def _stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _new_session(self, scenario: Scenario) -> Played:
        _, made = self.call("POST", "/session", {"cwd": str(self.project), "sessionScope": "thread"})
        played = PlayedThere(self, scenario, made["sessionId"])
        played.bridge.clients[DESK] = made["clientId"]
        threading.Thread(target=self._listen, args=(played,), daemon=True).start()
        if not played.bridge.listening.wait(DEADLINE):
            raise TimeoutError("the stream of events did not open")
        return played

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, client: str = "") -> tuple[int, Any]:
        """One HTTP call: its status (0: nobody listens) and what it answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"content-type": "application/json"}, method=method)
        if client:
            request.add_header("X-Qwen-Client-Id", client)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read() or b"null")
        except OSError:
            return 0, None

    def _listen(self, played: PlayedThere) -> None:
        """Hands on the session's events until its stream ends."""
        try:
            with urllib.request.urlopen(f"{self.address}/session/{played.session}/events") as stream:
                played.bridge.listening.set()
                for line in stream:
                    if line.startswith(b"data:"):
                        played.bridge.heard(json.loads(line[5:]))
        except (OSError, ValueError):
            return  # the daemon has ended


class ShippedBridge:
    """The shipped bridge, as its clients use it."""

    def __init__(self, played: PlayedThere) -> None:
        self._played, self._daemon = played, played.daemon
        self.clients: dict[str, str] = {}
        self.listening = threading.Event()
        self._names: dict[str, str] = {}  # prompt ids of the daemon's making
        self._pending: set[str] = set()
        self._started: set[str] = set()
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        """Whether a prompt runs or waits."""
        return bool(self._pending)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, client: str = DESK) -> Any:
        return self._daemon.call(
            method, f"/session/{self._played.session}{path}", body, self.clients.get(client, client)
        )

    def ask(self, name: str, how: str = "ordinary", client: str = DESK) -> None:
        """A full prompt. A second client attaches first; `nobody` does not."""
        if client == PHONE and client not in self.clients:
            self.clients[client] = self._call("POST", "/load", {"cwd": str(self._daemon.project)})[1]["clientId"]
        body: dict[str, Any] = {"prompt": [{"type": "text", "text": self._played.said(name)}]}
        if how == "retry":
            body["retry"] = True
        with self._lock:  # its events wait until its id is known
            status, said = self._call("POST", "/prompt", body, client)
            self._played.seen.answers.append(admission(status))
            if status == 202:
                self._names[said["promptId"]] = name
                if not self._pending:
                    self._started.add(name)
                self._pending.add(name)

    def speak(self, name: str) -> None:
        """Words for the turn that runs."""
        self._call("POST", "/mid-turn-message", {"message": f"{name}: also this", "messageId": name})

    def remove(self, name: str) -> None:
        """A queued prompt is taken out."""
        known = next(prompt for prompt, one in self._names.items() if one == name)
        self._call("DELETE", f"/pending-prompts/{known}")

    def cancel(self) -> None:
        """What runs is cancelled."""
        self._call("POST", "/cancel", {})

    def heard(self, event: Mapping[str, Any]) -> None:
        """An event of the session."""
        with self._lock:
            kind, data = event.get("type"), event.get("data") or {}
            name = self._names.get(event.get("promptId") or data.get("promptId") or "", "")
            if kind == "pending_prompt_started":
                self._started.add(name)
            elif kind in ("turn_complete", "turn_error") and name in self._pending:
                self._pending.discard(name)
                if name in self._started:
                    how = data.get("stopReason") if kind == "turn_complete" else "error"
                    self._played.seen.ends.append(f"{name} {how}")
        self._played.told("session/update" if kind == "session_update" else "", data)


class PlayedThere(Played):
    """One scenario in one session of the daemon."""

    bridge: ShippedBridge

    @property
    def daemon(self) -> Daemon:
        """The program, which is a daemon here."""
        assert isinstance(self.program, Daemon)
        return self.program

    def _in_front(self) -> ShippedBridge:
        return ShippedBridge(self)
