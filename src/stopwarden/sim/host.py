"""A scripted host: what Claude Code does around an agent, with a script for the agent and a virtual clock.

The hooks are taken from a settings file as `install` wrote it and started as the host starts them:
one process an event, through a shell, the payload on standard input, the answer on standard output.
Only `--at` is added, so that the hook reads this clock. The scheduler, its lateness, the cap on
blocks in a row, which events come and which do not, are those of the real program (measured on
2.1.332, docs/hosts.md).

An agent is a generator: it yields how each of its turns ends (its last words, or an `ApiError`) and
is sent what it is told next (a prompt, or the reason of a blocked stop). In between it calls the
host's tools. When a turn is over, only a scheduled wake opens another.

May not live here: what the hook makes of it all, and any words for a person.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stopwarden.core import cron
from stopwarden.core.bounds import DAY, HOST_CAP_DEFAULT, MINUTE
from stopwarden.core.errors import HostError
from stopwarden.hosts import claude_settings
from stopwarden.sim import scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from stopwarden.core.events import Instant, Zone

    Agent = Generator["str | ApiError", str, None]

SHELL = "/bin/sh"
IDLE_AFTER = 60  # seconds at rest until the host says so
MAX_AGE = 30 * DAY
HOOK_TIMEOUT = 60


@dataclass(frozen=True)
class ApiError:
    """A turn that ends in an error of the provider: no stop, nothing to block."""

    error: str
    shown: str


@dataclass
class Scheduled:
    """A wake of the host's scheduler."""

    id: str
    schedule: str
    prompt: str
    recurring: bool
    fires_at: float


@dataclass(frozen=True)
class Happened:
    """What the host did: "prompt", "wake", "stop", "error", "refused". `told` is what the agent reads of it."""

    at: Instant
    kind: str
    text: str
    told: str = ""


class ScriptedHost:
    """One session of one agent. `clock` moves only when the script says so, or to the next wake."""

    def __init__(
        self,
        settings: str,
        env: Mapping[str, str],
        cwd: str,
        *,
        now: Instant,
        zone: Zone,
        session: str,
        watch: Callable[[Happened], None] = lambda happened: None,
    ) -> None:
        self.now = now
        self.session = session
        self.wakes: list[Scheduled] = []
        self._zone, self._cwd, self._watch = zone, cwd, watch
        self._env = {
            **env,
            "CLAUDECODE": "1",
            "CLAUDE_CODE_ENTRYPOINT": "cli",
            "CLAUDE_CODE_SESSION_ID": session,
            "CLAUDE_PROJECT_DIR": cwd,
        }
        with open(settings, encoding="utf-8") as file:
            self._hooks = claude_settings.installed(file.read())
        self._prompts = 0
        self._made = 0  # wakes and tool calls, for their ids

    # the session

    def open(self) -> None:
        """The program is started."""
        self._event("SessionStart", source="startup")

    def close(self) -> None:
        """The program is left."""
        self._event("SessionEnd", reason="prompt_input_exit")

    def converse(self, agent: Agent, prompt: str, until: Instant) -> None:
        """A person types a prompt; goes on turn by turn, wake by wake, until the script or the time is over."""
        next(agent)
        told = self._prompted(prompt, "prompt")
        while True:
            try:
                self._turn(agent, told)
            except StopIteration:
                return
            wake = self._next_wake(until)
            if wake is None:
                return
            told = self._prompted(wake.prompt, "wake")

    def _turn(self, agent: Agent, told: str) -> None:
        """One turn to its end: as often as the stop is blocked the agent goes on, up to the host's cap."""
        for blocks in range(HOST_CAP_DEFAULT + 1):
            ending = agent.send(told)
            if isinstance(ending, ApiError):
                self._event("StopFailure", error=ending.error, last_assistant_message=ending.shown)
                self._watch(Happened(self.now, "error", ending.shown))
                return
            answer = self._event(
                "Stop",
                stop_hook_active=blocks > 0,
                last_assistant_message=ending,
                background_tasks=[],
                session_crons=[
                    {"id": one.id, "schedule": one.schedule, "recurring": one.recurring, "prompt": one.prompt}
                    for one in self.wakes
                ],
            )
            told = answer["reason"] if answer.get("decision") == "block" else ""
            self._watch(Happened(self.now, "stop", ending, told))
            if not told:
                return
            self.pass_time(10)

    def _prompted(self, prompt: str, kind: str) -> str:
        """A prompt is submitted; what the agent reads, the hook's context included."""
        self._prompts += 1
        answer = self._event("UserPromptSubmit", prompt=prompt)
        context = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
        self._watch(Happened(self.now, kind, prompt, context))
        return f"{prompt}\n{context}" if context else prompt

    def pass_time(self, seconds: float) -> None:
        """Time goes by."""
        self.now += int(seconds)

    # what the agent can do

    def use(self, tool: str, given: Mapping[str, Any], answer: Mapping[str, Any], *, minutes: float = 0) -> None:
        """A tool that needs no permission is used, and takes its time."""
        self.pass_time(minutes * MINUTE)
        self._made += 1
        self._event(
            "PostToolUse", tool_name=tool, tool_input=given, tool_response=answer, tool_use_id=self._id("toolu")
        )

    def ask(self, question: str, options: tuple[str, ...]) -> str:
        """A question for the person; what comes back instead of an answer, "" where it would be shown."""
        given = {"questions": [{"question": question, "options": [{"label": option} for option in options]}]}
        answer = self._event("PreToolUse", tool_name="AskUserQuestion", tool_input=given)
        return self._refused(question, answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", ""))

    def permit(self, tool: str, given: Mapping[str, Any]) -> str:
        """A tool that needs a permission; why it is not given, "" where a dialog would be shown."""
        answer = self._event("PermissionRequest", tool_name=tool, tool_input=given)
        decision = answer.get("hookSpecificOutput", {}).get("decision", {})
        return self._refused(f"{tool}: {given.get('command', '')}", decision.get("message", ""))

    def _refused(self, what: str, why: str) -> str:
        if why:
            self._watch(Happened(self.now, "refused", what, why))
        return why

    def schedule(self, schedule: str, prompt: str, *, recurring: bool) -> str:
        """CronCreate; the wake's id."""
        self._made += 1
        wake = Scheduled(self._id("")[-8:], schedule, prompt, recurring, 0.0)
        self._set_next_fire(wake)
        self.wakes.append(wake)
        answer = {"id": wake.id, "recurring": recurring, "durable": False, "nextFireAt": wake.fires_at * 1000}
        if recurring:
            answer["maxAgeMs"] = MAX_AGE * 1000
        self.use("CronCreate", {"cron": schedule, "prompt": prompt, "recurring": recurring}, answer)
        return wake.id

    def unschedule(self, name: str) -> None:
        """CronDelete."""
        self.wakes = [one for one in self.wakes if one.id != name]
        self.use("CronDelete", {"id": name}, {"id": name})

    # the scheduler

    def _next_wake(self, until: Instant) -> Scheduled | None:
        """Waits for the wake that fires first, unless that is later than `until`."""
        wake = min(self.wakes, key=lambda one: one.fires_at, default=None)
        if wake is None or wake.fires_at > until:
            return None
        if wake.fires_at > self.now + IDLE_AFTER:
            self.pass_time(IDLE_AFTER)
            self._event("Notification", message="Claude is waiting for your input", notification_type="idle_prompt")
        self.now = max(self.now, -int(-wake.fires_at // 1))
        if wake.recurring:
            self._set_next_fire(wake)
        else:
            self.wakes.remove(wake)
        return wake

    def _set_next_fire(self, wake: Scheduled) -> None:
        """When the scheduler fires it next: a recurring one late by the share of its interval that its id decides."""
        parsed = cron.parse(wake.schedule)
        if wake.recurring:
            share = int(wake.id, 16) / 16 ** len(wake.id) / 2
            wake.fires_at = scheduler.recurring_fire(parsed, share, self.now, self._zone)
            return
        fire = cron.next_fire(parsed, self.now, self._zone)
        if fire is None:
            raise HostError(f"The wake {wake.schedule!r} never fires")
        wake.fires_at = fire

    # hooks

    def _event(self, event: str, **fields: Any) -> dict[str, Any]:
        """Fires one event: every hook of it whose matcher fits is run, and the last answer counts."""
        payload = {
            "session_id": self.session,
            "transcript_path": f"{self._env['HOME']}/.claude/projects/{self.session}.jsonl",
            "cwd": self._cwd,
            "prompt_id": f"prompt-{self._prompts:04}",
            "permission_mode": "acceptEdits",
            "hook_event_name": event,
            **fields,
        }
        answer: dict[str, Any] = {}
        for hook in self._hooks:
            fits = not hook.matcher or re.fullmatch(hook.matcher, str(fields.get("tool_name", "")))
            if hook.event == event and fits:
                answer = self._run(hook.line, payload) or answer
        return answer

    def _run(self, command: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """One hook process. Raises HostError where it fails or complains: the real host would hide that."""
        done = subprocess.run(
            [SHELL, "-c", f"{command} --at {self.now}"],
            input=json.dumps(payload).encode(),
            capture_output=True,
            env=self._env,
            cwd=self._cwd,
            timeout=HOOK_TIMEOUT,
        )
        if done.returncode != 0 or done.stderr:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise HostError(f"The hook ended with {done.returncode}: {command}: {said}", do="Run: stopwarden doctor")
        answer: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
        return answer

    def _id(self, prefix: str) -> str:
        """An id that is the same at every run."""
        digits = f"{(self._made * 0x0B3779B1) % 2**32:08x}"
        return f"{prefix}_{digits}" if prefix else digits


def environment(home: str) -> dict[str, str]:
    """The whole environment of a throw-away user: nothing of the person's own is read or written."""
    return {
        "HOME": home,
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "XDG_CONFIG_HOME": os.path.join(home, ".config"),
        "XDG_DATA_HOME": os.path.join(home, ".local", "share"),
        "XDG_STATE_HOME": os.path.join(home, ".local", "state"),
    }
