"""A scenario played to the shipped Qwen Code: the real `qwen --acp` behind the same bridge.

The program is started with an empty environment and a home of its own, its model is a scripted one on
loopback. It is told at its start, as its own daemon does, a secret by which it knows that its client may
vouch for prompts; so the bridge names owners, and grants retry and continue. Scenarios of a client that
speaks to the agent itself run against a program without that secret.

What the model was sent is read from the requests that reached it, never from what the program says of
itself. Sessions do not share a program with sessions of another kind, but one after the other share one.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from comparison.bridge import Bridge
from comparison.json_lines import UNKNOWN_METHOD, Peer, Refused, wait_until
from comparison.script import HOOK, IDLE, SAY, Ask, Cancel, Ends, Move, Plan, Release, Remove, Restart, Speak
from comparison.seen import CUT_SHORT, WAITED_FOR, Seen, gave_up, started
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.sim.scripted_model import Reply as ModelReply
from stopwarden.sim.scripted_model import ScriptedModel, Tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from comparison.script import Act, Reply, Scenario
    from stopwarden.core import queue_words as q
    from stopwarden.models.script import Request

SETTINGS: dict[str, Any] = {
    "security": {"auth": {"selectedType": "openai"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False},
    "experimental": {"todoStopGuard": True},
    "tools": {"todoWrite": {"enabled": True}, "approvalMode": "yolo"},
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
    "ui": {"enableFollowupSuggestions": False},
}
CLAIM, DRAIN = "craft/claimTodoStopGuardContinuation", "craft/drainMidTurnQueue"
RELEASE, START_TURN, END_TURN = "craft/todoStopGuardQueueReleased", "_qwencode/start_turn", "_qwencode/end_turn"
MOVE = "qwen/control/session/cd"
OWNER_KEY, PARENT_KEY = "qwen-code/invocation", "qwen-code/private-parent-capability"
PARENT_VARIABLE = "QWEN_CODE_PRIVATE_ACP_CAPABILITY"
VOUCHED = {"retry": "qwen.daemon.retry", "continue": "qwen.daemon.continueLastTurn"}
GUARD = "[Todo Stop Guard]"
WORDS = "Words number "
AGENT_TASK = "Count the files for the desk."
DEADLINE = 30.0
PATIENCE = 1.0  # seconds in which something running could have been cut short
LONG_QUIET = 2.0  # seconds without any event, where background work has just ended

HOOK_PROGRAM = """#!/bin/sh
n=$(cat "$HOME/hook-count" 2>/dev/null || echo 0)
n=$((n + 1))
echo "$n" >"$HOME/hook-count"
while [ ! -e "$HOME/hook-go" ]; do sleep 0.02; done
cat "$HOME/hook-$n" 2>/dev/null || echo '{}'
"""


class Program:
    """One running `qwen --acp` with its home and its model; a context manager. `kind`: bridge, direct or hooks."""

    def __init__(self, command: tuple[str, ...], kind: str) -> None:
        self._command, self._kind = command, kind
        self.place = Path(tempfile.mkdtemp(prefix="comparison-"))
        self.home, self.project = self.place / "home", self.place / "project"
        self.played: Played | None = None
        self.version = ""

    def __enter__(self) -> Self:
        (self.home / ".qwen").mkdir(parents=True)
        self.project.mkdir()
        settings = dict(SETTINGS)
        if self._kind == "hooks":
            program = self.home / "hook.sh"
            program.write_text(HOOK_PROGRAM, encoding="utf-8")
            program.chmod(0o755)
            settings["hooks"] = {"Stop": [{"hooks": [{"type": "command", "command": str(program), "timeout": 30}]}]}
        (self.home / ".qwen" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        self.model = ScriptedModel(self._answer, streaming=self._streaming)
        self.model.__enter__()
        self._start()
        return self

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(self._command[0]).parent}:/usr/bin:/bin",
            "HOME": str(self.home),
            "OPENAI_API_KEY": "dummy",
            "OPENAI_BASE_URL": self.model.url + "/v1",
            "OPENAI_MODEL": "test-model",
            "http_proxy": "http://127.0.0.1:9",
            "https_proxy": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
        }

    def _start(self) -> None:
        secret = secrets.token_urlsafe(32)
        env = self._environment()
        meta = {}
        if self._kind != "direct":
            env[PARENT_VARIABLE] = secret
            meta = {"_meta": {PARENT_KEY: secret}}
        self.peer = Peer((*self._command, "--acp"), env, self.project, self._asked, self._told, self.place / "errors")
        said = self._ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}, **meta})
        self.version = said["agentInfo"]["version"]

    def start_again(self, session: str) -> None:
        """Ends the program, starts it anew and lets it load the session."""
        self.peer.close()
        self._start()
        self._ask("session/load", {"sessionId": session, "cwd": str(self.project), "mcpServers": []})

    def __exit__(self, *_: object) -> None:
        self.model.close()
        self._stop()
        shutil.rmtree(self.place, ignore_errors=True)

    def _stop(self) -> None:
        self.peer.close()

    def play(self, scenario: Scenario) -> Seen:
        """The scenario in a session of its own. Raises TimeoutError when a moment of it does not come."""
        for left in self.home.glob("hook-*"):
            left.unlink()
        self.played = self._new_session(scenario)
        try:
            return self.played.to_the_end()
        except TimeoutError as error:
            raise TimeoutError(f"scenario {scenario.id}: {error}\n{self.played.seen}\n{self.errors()}") from None
        finally:
            self.played.let_go()
            self.played = None

    def _new_session(self, scenario: Scenario) -> Played:
        session = self._ask("session/new", {"cwd": str(self.project), "mcpServers": []})["sessionId"]
        return Played(self, scenario, session)

    def errors(self) -> str:
        """The end of what the program wrote on its standard error."""
        return (self.place / "errors").read_text(encoding="utf-8", errors="replace")[-1_000:]

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        return self.peer.ask(method, params).result(DEADLINE)

    def _answer(self, request: Request) -> ModelReply:
        played = self.played
        return played.answer(request) if played is not None else ModelReply(text="ok")

    def _streaming(self, request: Request) -> None:
        if self.played is not None:
            self.played.streaming(request)

    def _asked(self, method: str, params: dict[str, Any], answer: Callable[..., None]) -> None:
        if self.played is not None and params.get("sessionId") == self.played.session:
            self.played.asked(method, params, answer)
        else:
            answer(error=(UNKNOWN_METHOD, "not this session's client"))

    def _told(self, method: str, params: dict[str, Any]) -> None:
        if self.played is not None and params.get("sessionId") == self.played.session:
            self.played.told(method, params)


class Played:
    """One scenario in one session. The bridge's port towards the program."""

    def __init__(self, program: Program, scenario: Scenario, session: str) -> None:
        self.program, self.scenario, self.session = program, scenario, session
        self.seen, self.token = Seen(), f"[scenario {scenario.id} {session[:8]}]"
        self.bridge = self._in_front()
        self._waiting: dict[str, Callable[..., None]] = {}
        self._calls, self._drains = 0, 0
        self._open: dict[int, int] = {}  # requests that are being answered, and which model call each is
        self._held: dict[int, threading.Event] = {}
        self._heard: set[int] = set()  # model calls of which the program has passed words on
        self._agent_may_end = threading.Event()
        self._moments = {one.when for one in scenario.steps}
        self._running: set[str] = set()
        self._last_event = time.monotonic()
        self._lock = threading.RLock()

    def _in_front(self) -> Any:
        return Bridge(self, self.scenario.bridge)

    def to_the_end(self) -> Seen:
        """Plays the steps, each at its moment, and then until nothing happens any more."""
        if HOOK not in self._moments:
            self._hooks_may_go()
        for number, reason in enumerate(self.scenario.hooks or (), 1):
            said = json.dumps({"decision": "block", "reason": reason}) if reason else "{}"
            (self.program.home / f"hook-{number}").write_text(said, encoding="utf-8")
        self._ask_for(Ask("P1"))
        before = IDLE
        quiet = self.scenario.patience
        for number, step in enumerate(self.scenario.steps):
            if step.when != before:
                self._leave(before)
            self._reach(step.when, quiet)
            self._act(step.act)
            quiet = LONG_QUIET if isinstance(step.act, Ends) else self.scenario.patience
            before = step.when
            if number + 1 == len(self.scenario.steps):
                self._leave(before)
        self._reach(IDLE, quiet)
        return self.seen

    def let_go(self) -> None:
        """Nothing of this scenario is held open any more."""
        for event in (*self._held.values(), self._agent_may_end):
            event.set()
        self._hooks_may_go()
        (self.program.project / f"go-{self.session}").touch()

    # ---- moments

    def _reach(self, when: int, quiet: float) -> None:
        if when == IDLE:
            wait_until(lambda: self._idle(quiet), DEADLINE, f"quiet, of scenario {self.scenario.id}")
        elif when == HOOK:
            wait_until((self.program.home / "hook-count").exists, DEADLINE, "the Stop hook")
        else:
            wait_until(lambda: when in self._held, DEADLINE, f"model call {when}")
            until = time.monotonic() + LONG_QUIET  # a turn that brings a result passes no words on before its end
            while self._reply(when).does == "say" and when not in self._heard and time.monotonic() < until:
                time.sleep(0.01)

    def _leave(self, when: int) -> None:
        """The moment is over: what it held open goes on."""
        if when == HOOK:
            running = set(self._running)
            time.sleep(PATIENCE)
            self.seen.hooks.append(WAITED_FOR if self._running >= running else CUT_SHORT)
            self._hooks_may_go()
        elif when in self._held:
            self._held[when].set()

    def _hooks_may_go(self) -> None:
        (self.program.home / "hook-go").touch()

    def _idle(self, quiet: float) -> bool:
        busy = self.bridge.busy or self._running or self._open
        return not busy and time.monotonic() - self._last_event > quiet

    def stir(self) -> None:
        """Something happens: it is not quiet."""
        self._last_event = time.monotonic()

    # ---- what the person does

    def _act(self, act: Act) -> None:
        self.stir()
        match act:
            case Ask():
                self._ask_for(act)
            case Speak():
                self.bridge.speak(act.name)
            case Remove():
                self.bridge.remove(act.name)
            case Cancel():
                self.bridge.cancel()
                wait_until(lambda: not self._running, DEADLINE, "the end of the cancelled turn")
            case Plan():
                self._request("session/set_mode", {"modeId": "plan"}).result(DEADLINE)
            case Ends():
                (self.program.project / f"go-{self.session}").touch()
                self._agent_may_end.set()
                if self.bridge.busy:
                    time.sleep(LONG_QUIET)  # all of it shall have ended before the turn goes on
            case Release():
                self._released(act.owner)
            case Move():
                self._move(act.to)
            case Restart():
                self.program.start_again(self.session)

    def said(self, name: str) -> str:
        """The words of a prompt."""
        return f"{name}: please go on with the work {self.token}"

    def _ask_for(self, act: Ask) -> None:
        if self.scenario.bridge.direct:
            older = set(self._running)
            self._prompt(act.name, {})
            until = time.monotonic() + PATIENCE  # it may throw the older one out; that takes a moment
            while self._running >= older > set() and time.monotonic() < until:
                time.sleep(0.01)
        else:
            self.bridge.ask(act.name, act.how, act.client)

    def _request(self, method: str, params: dict[str, Any]) -> Future[Any]:
        return self.program.peer.ask(method, {"sessionId": self.session, **params})

    def _prompt(self, name: str, meta: dict[str, Any], text: str | None = None) -> Future[Any]:
        if self.scenario.bridge.forged:
            meta = {OWNER_KEY: {"version": 1, "sessionId": self.session, "promptId": name}}
        self._running.add(name)
        said = self.said(name) if text is None else text
        blocks = [{"type": "text", "text": said}] if said else []
        future = self._request("session/prompt", {"prompt": blocks, "_meta": meta})
        future.add_done_callback(lambda done: self._prompt_ended(name, done))
        return future

    def _prompt_ended(self, name: str, done: Future[Any]) -> None:
        error = done.exception()
        self.seen.ends.append(f"{name} {'error' if error is not None else done.result()['stopReason']}")
        self._running.discard(name)
        self.stir()

    def _released(self, owner: str) -> None:
        """A release: what is answered?"""
        try:
            said = self._request(RELEASE, {"promptId": owner}).result(DEADLINE)
            self.seen.answers.append(f"released {said['released']}".lower())
        except Refused as refused:
            self.seen.answers.append(f"refused with {refused.code}")

    def _move(self, to: str) -> None:
        """To another directory, or to where the session stands."""
        place = self.program.place / to if to else self.program.project
        place.mkdir(exist_ok=True)
        said = self._request(MOVE, {"path": str(place)}).result(DEADLINE)
        self.seen.answers.append("unchanged" if said["previousCwd"] == said["newCwd"] else "moved")

    # ---- the model

    def answer(self, request: Request) -> ModelReply:
        """The model's reply; what was new to it is noted. An agent's own calls and side calls are not counted."""
        self.stir()
        if self.token not in request.raw:
            return ModelReply(text="There are none.")
        with self._lock:
            self._calls += 1
            reply = self._reply(self._calls)
            self.seen.asks += "*"
            refused = " (refused)" if reply.does == "refused" else ""
            self.seen.calls.append(news(request.body["messages"]) + refused)
            if not refused:
                self._open[request.n] = self._calls
            return self._as_model(reply)

    def _reply(self, call: int) -> Reply:
        replies = self.scenario.replies
        return replies[call - 1] if call <= len(replies) else SAY

    def streaming(self, request: Request) -> None:
        """The reply's first words are out. If a step waits for this call, it is held until the step is done."""
        number = self._open.get(request.n)
        if number is None and AGENT_TASK in request.raw and self.token not in request.raw:
            self._agent_may_end.wait(DEADLINE)
        if number is not None and number in self._moments:
            gate = threading.Event()
            self._held[number] = gate
            gate.wait(DEADLINE)
        self._open.pop(request.n, None)
        self.stir()

    def _as_model(self, reply: Reply) -> ModelReply:
        match reply.does:
            case "refused":
                return ModelReply(text="scripted refusal", status=400)
            case "todo":
                items = [{"id": f"d{n}", "content": f"done {n}", "status": "completed"} for n in range(reply.done)]
                items += [{"id": f"t{n}", "content": f"open {n}", "status": "pending"} for n in range(reply.left)]
                return _call("todo_write", {"todos": items})
            case "look":
                return _call("list_directory", {"path": str(self.program.project)})
            case "shell":
                wait = f"while [ ! -e go-{self.session} ]; do sleep 0.05; done; echo counted"
                given = {"command": wait, "description": "wait", "is_background": True}
                return ModelReply(tools=(Tool("run_shell_command", given),) * reply.times)
            case "agent":
                task = {"description": "count the files", "prompt": AGENT_TASK, "subagent_type": "general-purpose"}
                return _call("agent", {**task, "run_in_background": True})
            case "message":
                return _call("send_message", {"task_id": self._agent_id(), "message": "please be quick"})
        return ModelReply(text=f"{WORDS}{self._calls}")

    def _agent_id(self) -> str:
        """The id of the agent, as the model was told it."""
        told = "\n".join(request.raw for request in self.program.model.requests if self.token in request.raw)
        found = re.findall(r"(general-purpose-[0-9A-Za-z_-]+)", told)
        return found[-1] if found else "none"

    # ---- the program's questions and news

    def asked(self, method: str, params: dict[str, Any], answer: Callable[..., None]) -> None:
        """A request of the program to its client."""
        self.stir()
        if method == DRAIN:
            self.seen.asks += "d"
            self._drains += 1
            self._drain(params, answer)
        elif method == CLAIM:
            self.seen.asks += "c"
            if self.scenario.bridge.direct and "promptId" in params:
                self.seen.answers.append("claims name an owner")
            self._claim(params, answer)
        elif method == START_TURN and not self.scenario.bridge.direct:
            self._running.add(params["turnId"])
            self._waiting[params["turnId"]] = answer
            self.bridge.start_turn(params["turnId"], params["turnId"])
        else:
            answer(error=(UNKNOWN_METHOD, f"no {method} here"))

    def _drain(self, params: dict[str, Any], answer: Callable[..., None]) -> None:
        manners = self.scenario.bridge
        if manners.drain == "unknown":
            answer(error=(UNKNOWN_METHOD, "no drain here"))
        elif manners.drain == "no_hint":
            answer({"messages": []})
        elif manners.drain == "malformed":
            answer({"messages": [7], "hasQueuedPrompt": False})
        elif manners.drain == "late" and self._drains == 1:
            late = {"messages": ["S1: also this"], "hasQueuedPrompt": False}
            threading.Timer(DRAIN_DEADLINE_MS / 1_000 + 0.2, answer, (late,)).start()
        elif manners.direct:
            answer({"messages": [], "hasQueuedPrompt": False})
        else:
            self._drains += 1
            request = f"drain-{self._drains}"
            self._waiting[request] = answer
            watched = params.get("todoStopGuardWatchQueuedPrompt") is True
            self.bridge.drain(request, params.get("promptId"), watched)

    def _claim(self, params: dict[str, Any], answer: Callable[..., None]) -> None:
        manners = self.scenario.bridge
        if manners.claim == "unknown":
            answer(error=(UNKNOWN_METHOD, "no claim here"))
        elif manners.claim == "malformed":
            answer({"claimed": True, "hasQueuedPrompt": True})
        elif manners.claim == "queued":
            answer({"claimed": False, "hasQueuedPrompt": True})
        elif manners.claim == "silent":
            pass
        elif manners.direct:
            answer({"claimed": True, "hasQueuedPrompt": False})
        else:
            request = f"claim-{len(self.seen.asks)}"
            self._waiting[request] = answer
            self.bridge.claim(request, params.get("promptId"))

    def told(self, method: str, params: dict[str, Any]) -> None:
        """A notification of the program."""
        self.stir()
        if method == END_TURN and params.get("turnId"):
            self.seen.ends.append(f"result turn {params['reason']}")
            self._running.discard(params["turnId"])
            self.bridge.end_turn(params["turnId"])
        update = params.get("update") or {}
        text = (update.get("content") or {}).get("text") if isinstance(update.get("content"), dict) else None
        if isinstance(text, str) and text.startswith(WORDS):
            self._heard.add(int(text.removeprefix(WORDS)))
        meta = update.get("_meta") or {}
        if meta.get("source") == "todo_stop_guard":
            attempt, cap, left = meta["attempt"], meta["maxAttempts"], meta["unfinishedCount"]
            gone = "stopped" in update["content"]["text"]  # nothing but the text tells the two apart
            self.seen.shown.append(gave_up(left) if gone else started(attempt, cap, left))

    # ---- the bridge's port

    def run(self, order: q.RunPrompt) -> None:
        meta: dict[str, Any] = {OWNER_KEY: {"version": 1, "sessionId": self.session, "promptId": order.prompt}}
        if order.trust:
            meta[VOUCHED[order.trust]] = True
        future = self._prompt(order.prompt, meta, "" if order.trust == "continue" else None)

        def ended(done: Future[Any]) -> None:
            failed = done.exception() is not None
            cancelled = not failed and done.result().get("stopReason") == "cancelled"
            self.bridge.settled(order, "failed" if failed else "cancelled" if cancelled else "completed")

        future.add_done_callback(ended)

    def cancel(self, order: q.ForwardCancel) -> None:
        self.program.peer.tell("session/cancel", {"sessionId": self.session})
        self.bridge.forwarded(order)

    def release(self, order: q.SendRelease) -> None:
        def answered(done: Future[Any]) -> None:
            said = done.exception() is None and bool((done.result() or {}).get("released"))
            self.bridge.released(order, said)

        self._request(RELEASE, {"promptId": order.owner}).add_done_callback(answered)

    def cut_hook(self) -> None:
        pass  # the shipped agent has no ear for it

    def claim_answered(self, request: str, claimed: bool, queued: bool) -> None:
        self._waiting.pop(request)({"claimed": claimed, "hasQueuedPrompt": queued})

    def drain_answered(self, request: str, words: tuple[str, ...], queued: bool) -> None:
        messages = [f"{one}: also this" for one in words]
        self._waiting.pop(request)({"messages": messages, "hasQueuedPrompt": queued})

    def turn_answered(self, request: str, accepted: bool) -> None:
        if not accepted:
            self._running.discard(request)
        self._waiting.pop(request)({"accepted": accepted})


def _call(name: str, given: dict[str, Any]) -> ModelReply:
    return ModelReply(tools=(Tool(name, given),))


def news(messages: list[dict[str, Any]]) -> str:
    """What stands in a request since the model's last reply, in the shared words."""
    labels: list[str] = []
    for message in messages:
        if message.get("role") == "assistant":
            labels = []
        elif message.get("role") == "tool":
            labels.append("tools")
        elif message.get("role") == "user":
            content = message.get("content")
            for text in [content] if isinstance(content, str) else [part.get("text", "") for part in content or ()]:
                labels += _labels(text)
    return " + ".join(label for n, label in enumerate(labels) if n == 0 or label != labels[n - 1])


def _labels(text: str) -> list[str]:
    """The pieces of one text: prompts, words of the person, reasons of hooks, instructions, results."""
    found = re.finditer(
        r"\b(?P<said>[PS]\d): |\b(?P<hook>HOOK\d)\b|\[Todo Stop Guard\] \d+ (?P<guard>[^\[]*)"
        r"|<task-notification>(?P<result>.*?)</task-notification>",
        text,
        re.DOTALL,
    )
    labels = []
    for piece in found:
        if piece["guard"] is not None:
            labels.append("guard 2/2" if "final automatic" in piece["guard"] else "guard 1/2")
        else:
            result = "gap" if "dropped before delivery" in (piece["result"] or "") else "result"
            labels.append(piece["said"] or piece["hook"] or result)
    return labels


def command(directory: Path) -> tuple[str, ...]:
    """How the installed program is started: node and the program's own entry. Raises FileNotFoundError."""
    node = next((directory / "node").rglob("bin/node"), None)
    entry = directory / "node_modules" / "@qwen-code" / "qwen-code" / "cli-entry.js"
    if node is None or not os.access(node, os.X_OK) or not entry.exists():
        raise FileNotFoundError(f"no Qwen Code in {directory}: run make compare")
    return str(node), str(entry)
