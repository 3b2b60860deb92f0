"""Payloads as no host should write them: seeded changes of the recorded ones, as bytes.

Each payload begins as a recorded one (or as one of ours that touches what the recorded ones do
not), is changed a few times in its values, and then, some of the time, in its bytes. The same seed
gives the same payloads.
"""

from __future__ import annotations

import json
import pathlib
import random
from typing import Any

RECORDED = pathlib.Path(__file__).parents[1] / "payloads" / "claude-code"
EVENTS = {
    "Stop": "stop",
    "SubagentStop": "subagent-stop",
    "StopFailure": "stop-failure",
    "SessionStart": "session-start",
    "SessionEnd": "session-end",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "pre-tool",
    "PermissionRequest": "permission",
    "PostToolUse": "post-tool",
    "Notification": "notification",
    "PreCompact": "pre-compact",
}
FIELDS = (
    *("session_id", "prompt_id", "cwd", "permission_mode", "agent_id", "transcript_path", "hook_event_name"),
    *("session_crons", "background_tasks", "stop_hook_active", "last_assistant_message", "prompt", "source"),
    *("reason", "error", "notification_type", "tool_name", "tool_input", "tool_response", "trigger"),
)
TOOLS = (
    *("AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "CronCreate", "CronDelete", "ScheduleWakeup"),
    *("TodoWrite", "TaskCreate", "TaskUpdate", "Bash", "Edit"),
)
LONG = "x" * 5_000
DEEP = "@deep@"
TEXTS = (
    *("", " ", "\x00", "\n\r\n", "null", "undefined", "\u202e\u2066abc\u200b", "ünï – 漢字 🦊", "\ud800", "a\udfffb"),
    *("-- DROP TABLE session;", "' OR 1=1 --", "../../../etc/passwd", "/" * 3000, "%s%n{0}", "\x1b[2J\x1b]0;x\x07"),
    *("<!-- sw:A -->", "- [ ] A", "Stopwarden: go on", "<task-notification>", "resets 6:30pm (Europe/London)"),
    *("resets at 1788625200", "resets Feb 30, 2026, 25:61 PM (Nowhere/There)", "resets jun 31 99999 12:00am"),
    *("resets Jun 99999999999999999999, 2026, 12:27 AM", "resets 99999999999999999999pm", "resets 12am (Europe)"),
    *("API Error · resets 99999999999999999999", "reset" * 50, "İstanbul reset", LONG, "\x00" * 50),
)
SCHEDULES = (
    *("*/20 * * * *", "0 9 * * 1-5", "30 22 30 11 *", "0 0 31 2 *", "* * * * *", "@wakeup", "@daily", "", "*"),
    *("60 24 32 13 8", "*/0 * * * *", "1-0 * * * *", "5/15 * * * *", "* * */2 * */2", "0 0 0 0 0", "٣ * * * *"),
    *("1,2,3,4,5,6,7,8,9,10,11,12,13,14 * * * *", "*/" + "9" * 180 + " * * * *", "0 1 29 2 *", "59 23 * * 7"),
)
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**40, 10**400, 0.1, -0.0, 1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf"), 1_796_057_847_345.816, 1_796_057_847),
)


def recorded() -> list[dict[str, Any]]:
    """Every recorded payload of an event we register for, and some of ours beside them."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDED.glob("*-*.json"))]
    return [one for one in found if one["hook_event_name"] in EVENTS] + OURS


def _ours(event: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": "8eceb011", "cwd": "/work", "permission_mode": "default", "hook_event_name": event, **fields}


OURS = [
    _ours("Stop", session_crons=[{"id": f"w{n}", "schedule": s, "recurring": n % 2 == 0, "prompt": "look"} for n, s in enumerate(SCHEDULES)]),
    _ours("Stop", permission_mode="plan", session_crons=[], background_tasks=[]),
    _ours("PreToolUse", tool_name="AskUserQuestion", tool_input={"questions": [{"question": "A or B?", "options": [{"label": "A"}, "B"]}]}),
    _ours("PreToolUse", tool_name="ExitPlanMode", tool_input={"plan": "# Plan\n1. all"}),
    _ours("PreToolUse", tool_name="EnterPlanMode", tool_input={}),
    _ours("PermissionRequest", tool_name="Bash", tool_input={"command": "rm -rf build"}),
    _ours("PermissionRequest", tool_name="mcp__x__y", tool_input={"a": [1, {"b": None}]}),
    _ours("PostToolUse", tool_name="CronDelete", tool_input={"id": "ba56762a"}, tool_response={"id": "ba56762a"}),
    _ours("StopFailure", error="rate_limit", last_assistant_message="limit · resets 6:30pm (Europe/London)"),
    _ours("SessionEnd", reason="clear"),
    _ours("SessionStart", source="compact"),
    _ours("Notification", notification_type="permission_prompt"),
]  # fmt: skip


class Payloads:
    """An endless stream of payloads: `next()` gives an event word and the bytes on its standard input."""

    def __init__(self, seed: int, sessions: int = 7) -> None:
        self._random = random.Random(seed)
        self._known = [json.dumps(one) for one in recorded()]
        self._sessions = [f"session-{number}" for number in range(sessions)]

    def next(self) -> tuple[str, bytes]:
        """The next event and its payload."""
        rng = self._random
        payload = json.loads(rng.choice(self._known))
        event = EVENTS[payload["hook_event_name"]]
        payload["session_id"] = rng.choice(self._sessions)
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 8))):
            self._change(payload)
        if rng.random() < 0.05:
            event = rng.choice(tuple(EVENTS.values()))
        return event, self._spoiled(self._written(payload))

    # values

    def _change(self, payload: dict[str, Any]) -> None:
        """Changes one value somewhere in the payload."""
        rng = self._random
        kind = rng.randrange(8)
        if kind == 0:
            payload[rng.choice(FIELDS)] = self._anything()
        elif kind == 1:
            payload.pop(rng.choice((*payload, "")), None)
        elif kind == 2:
            payload["tool_name"] = rng.choice((*TOOLS, self._anything()))
        elif kind == 3:
            payload["session_crons"] = self._several(self._wake)
        elif kind == 4:
            payload["background_tasks"] = self._several(self._anything)
        elif kind == 5:
            payload[rng.choice(("tool_input", "tool_response"))] = self._fields()
        else:
            self._change_within(payload)

    def _change_within(self, payload: dict[str, Any]) -> None:
        """Changes one value at some depth, in place."""
        rng = self._random
        place: Any = payload
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                return
            key = rng.choice(keys)
            if isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.7:
                place = place[key]
                continue
            place[key] = self._anything()
            return

    def _anything(self, depth: int = 0) -> Any:
        """A value of any type."""
        rng = self._random
        kind = rng.randrange(9 if depth < 3 else 6)
        if kind < 3:
            return rng.choice(TEXTS)
        if kind == 3:
            return rng.choice(NUMBERS)
        if kind < 6:
            return rng.choice((None, True, False))
        if kind == 6:
            return [self._anything(depth + 1) for _ in range(rng.randrange(4))]
        if kind == 7:
            return {rng.choice((*FIELDS, *TEXTS)): self._anything(depth + 1) for _ in range(rng.randrange(4))}
        return self._deep()

    def _deep(self) -> Any:
        """Nested deeply; too deeply for a JSON writer to write it, so a placeholder stands for it till then."""
        return DEEP if self._random.random() < 0.3 else [[[[[[{"a": {"b": [[1]]}}]]]]]]

    def _several(self, make: Any) -> Any:
        rng = self._random
        count = rng.choice((0, 1, 2, 3, 60)) if rng.random() < 0.3 else rng.randrange(4)
        return [make() for _ in range(count)]

    def _wake(self) -> Any:
        """An entry of the scheduler's list, some of it as it should be."""
        rng = self._random
        wake = {
            "id": rng.choice(("w1", "w2", "ba56762a", "10001642")),
            "schedule": rng.choice(SCHEDULES),
            "recurring": rng.random() < 0.5,
            "prompt": "check the build",
        }
        if rng.random() < 0.5:
            wake[rng.choice(tuple(wake))] = self._anything()
        return wake if rng.random() < 0.9 else self._anything()

    def _fields(self) -> Any:
        """What a tool of interest was given or answered, some of it as it should be."""
        rng = self._random
        good: dict[str, Any] = {
            "id": "ba56762a", "cron": rng.choice(SCHEDULES), "prompt": "check the build", "recurring": True,
            "nextFireAt": 1_796_057_847_345.816, "maxAgeMs": 2_592_000_000, "scheduledFor": 1_796_057_880_000,
            "delaySeconds": 60, "stop": False, "questions": [{"question": "A?", "options": ["x", {"label": "y"}]}],
            "todos": [{"content": "a", "status": "pending"}], "task": {"id": "1", "subject": "s"}, "taskId": "1",
            "status": "completed", "subject": "s", "plan": "p", "command": "make",
        }  # fmt: skip
        for name in rng.sample(tuple(good), rng.randrange(6)):
            good[name] = self._anything()
        for name in rng.sample(tuple(good), rng.randrange(8)):
            del good[name]
        return good

    # bytes

    def _written(self, payload: dict[str, Any]) -> bytes:
        rng = self._random
        text = json.dumps(
            payload, ensure_ascii=rng.random() < 0.5, separators=rng.choice(((",", ":"), (" ,\r\n", "\t: ")))
        )
        depth = rng.choice((50, 90, 110, 300, 450, 700, 960, 990, 3000))
        opening, closing = rng.choice((("[", "]"), ('{"a":', "}"), ('[{"\\u00e9\\ud800":', "}]")))
        text = text.replace(f'"{DEEP}"', opening * depth + "1" + closing * depth)
        encoding = rng.choice(("utf-8",) * 12 + ("utf-8-sig", "utf-16", "utf-16-le", "latin-1"))
        return text.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")

    def _spoiled(self, raw: bytes) -> bytes:
        """Most of the time as it is; else cut, torn, doubled, or with bytes that do not belong there."""
        rng = self._random
        kind = rng.randrange(24)
        place = rng.randrange(len(raw) + 1)
        if kind == 0:
            return raw[:place]
        if kind == 1:
            return (
                raw[:place]
                + rng.choice((b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\\u", b'"', b"}"))
                + raw[place:]
            )
        if kind == 2:
            return raw + rng.choice((b"\x00", b"\n{}", raw, b"\r\n", b"]"))
        if kind == 3:
            return rng.choice((b"", b"null", b"[]", b"0", b'"text"', b"\xef\xbb\xbf", b"[" * 3000, b'{"a":' * 3000))
        if kind == 4:
            return bytes(rng.randrange(256) if rng.random() < 0.02 else byte for byte in raw[:4000])
        return raw
