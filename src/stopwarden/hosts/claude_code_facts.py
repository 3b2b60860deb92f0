"""What Claude Code's hook payloads tell us, as small *facts* without message text.

This is all that runs at most tool calls, so it imports nothing. A fact is a flat JSON object:
`e` the event word, `t` seconds UTC (with a fraction), `s` the session, `pp` the pid of
the agent program (`hook.starter`), and what the event adds.
Facts go into the spool or straight into the database (`hook.note`), whichever the moment allows.

Texts of the conversation are never kept. Kept are: the work text of todo tools, a digest of a
prompt (to recognise a scheduled one), and the name of an error.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Fact = dict[str, Any]
    Env = Callable[[str], str]

WAKE_TOOLS = ("CronCreate", "CronDelete", "ScheduleWakeup")
TODO_TOOLS = ("TodoWrite", "TaskCreate", "TaskUpdate")
WAKE_ANSWER = ("id", "recurring", "nextFireAt", "maxAgeMs", "scheduledFor")
WORK = ("content", "subject", "status", "id", "taskId", "success", "to")  # of a todo tool's input and answer
MONTHS = " january february march april may june july august september october november december "

# Prompts that no person typed begin with one of these (design §8.13); doubt is not a person.
NOTIFICATIONS = ("<task-notification>", "<system-reminder>", "<bash-input>", "<bash-stdout>", "<local-command-")
OURS = ("Stopwarden:", "Stop hook feedback:")
KEPT_LOOK = "Stopwarden: your "  # what a keeper, or a watch that resumes, says when it opens a turn


def fact(event: str, payload: Fact, env: Env, at: float) -> Fact:
    """The fact of one hook event. Any field of the payload may be missing or of the wrong type."""
    told: Fact = {"e": event, "t": at, "s": session_of(payload, env)}
    _keep_text(told, "cwd", payload.get("cwd"), 4096)
    _keep_text(told, "mode", payload.get("permission_mode"), 40)
    _keep_text(told, "agent", payload.get("agent_id"), 100)
    _keep_text(told, "ep", env("CLAUDE_CODE_ENTRYPOINT"), 40)
    _keep_text(told, "host", env("AI_AGENT"), 100)
    adds = _ADDS.get(event)
    if adds is not None:
        adds(told, payload)
    return told


def session_of(payload: Fact, env: Env) -> str:
    """The session's id: from the payload, else from the environment; "" if neither names one."""
    for named in (payload.get("session_id"), env("CLAUDE_CODE_SESSION_ID")):
        if isinstance(named, str) and named.strip() and named not in ("null", "undefined"):
            return named[:200]
    return ""


def matters_unarmed(told: Fact) -> bool:
    """Whether this fact is worth a line while nothing is armed: what `away` will want to know later."""
    return told["e"] != "post-tool" or "tool" in told


def _keep_text(told: Fact, name: str, value: object, limit: int) -> None:
    if isinstance(value, str) and value and "\0" not in value:  # no path and no name holds one
        told[name] = value[:limit]


def _prompt(told: Fact, payload: Fact) -> None:
    text = payload.get("prompt")
    if not isinstance(text, str):
        told["by"] = "notification"
    elif text.lstrip().startswith(OURS):
        told["by"] = "wake" if text.lstrip().startswith(KEPT_LOOK) else "ours"
    elif text.lstrip().startswith(NOTIFICATIONS):
        told["by"] = "wake" if KEPT_LOOK in text[:2000] else "notification"
    else:
        told["digest"] = digest(text)


def _post_tool(told: Fact, payload: Fact) -> None:
    tool = payload.get("tool_name")
    if tool in WAKE_TOOLS or tool in TODO_TOOLS:
        told["tool"] = tool
        given, answered = payload.get("tool_input"), payload.get("tool_response")
        told["in"] = _wake_input(given) if tool in WAKE_TOOLS else _work_only(given)
        told["out"] = _only(answered, WAKE_ANSWER) if tool in WAKE_TOOLS else _work_only(answered)


def _only(given: object, names: tuple[str, ...]) -> Fact:
    """The fields of these names, where they hold no nested value."""
    if not isinstance(given, dict):
        return {}
    return {name: given[name] for name in names if isinstance(given.get(name), str | int | float)}


def _work_only(given: object) -> Fact:
    """A todo tool's titles, states and order: what an item is, not what else was written about it."""
    kept = _only(given, WORK)
    if not isinstance(given, dict):
        return kept
    for name in ("todos", "newTodos"):
        if isinstance(given.get(name), list):
            kept[name] = [_only(todo, WORK) for todo in given[name]]
    for name in ("task", "statusChange"):
        if isinstance(given.get(name), dict):
            kept[name] = _only(given[name], WORK)
    for name in ("addBlockedBy", "addBlocks"):
        if isinstance(given.get(name), list):
            kept[name] = [one for one in given[name] if isinstance(one, str | int) and len(str(one)) < 100]
    return kept


def _wake_input(given: object) -> Fact:
    """The input of a scheduling tool with its prompt as a digest only."""
    if not isinstance(given, dict):
        return {}
    kept = {name: value for name, value in given.items() if name in ("cron", "recurring", "delaySeconds", "id", "stop")}
    if isinstance(given.get("prompt"), str):
        kept["digest"] = digest(given["prompt"])
    return kept


def _stop_failure(told: Fact, payload: Fact) -> None:
    error = payload.get("error")
    if isinstance(error, str) and error.replace("_", "").replace("-", "").isalnum():  # a name, no sentence
        _keep_text(told, "error", error, 60)
    shown = payload.get("last_assistant_message")
    if isinstance(shown, str) and "limit" in shown.lower() and "reset" in shown.lower():
        told["resets"] = _rendered_limit(shown[shown.lower().index("reset") :][:120])


def _rendered_limit(text: str) -> str:
    """When a limit resets, as far as it is a time and a zone: whatever else follows is message text."""
    kept = ["resets"]
    for word in text.split()[1:]:
        plain = word.strip(",.;").lower()
        zone = word[:1] == "(" and word[-1:] == ")" and ("/" in word or word == "(UTC)")
        month = len(plain) > 2 and f" {plain}" in MONTHS
        if plain not in ("at", "on", "·") and not month and not zone and plain.strip("0123456789:amp"):
            break
        kept.append(word)
    return " ".join(kept)


def _notification(told: Fact, payload: Fact) -> None:
    _keep_text(told, "type", payload.get("notification_type"), 60)


def _session_start(told: Fact, payload: Fact) -> None:
    _keep_text(told, "source", payload.get("source"), 40)


def _session_end(told: Fact, payload: Fact) -> None:
    _keep_text(told, "why", payload.get("reason"), 60)


_ADDS: dict[str, Callable[[Fact, Fact], None]] = {
    "prompt": _prompt,
    "post-tool": _post_tool,
    "stop-failure": _stop_failure,
    "notification": _notification,
    "session-start": _session_start,
    "session-end": _session_end,
}


def digest(text: str) -> str:
    """A short digest of a prompt, surrounding blanks left out: enough to know it again."""
    from stopwarden.core.digest import digest as digest_of

    return digest_of(text.strip(), 12)
