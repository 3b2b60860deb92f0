"""Claude Code: what its stop payload says, what its answers look like, what its scheduler can do.

Versions: `session_crons` and `background_tasks` since 2.1.145, `decision` and `reason` on exit 0
throughout. Only the portable answer is given: exit 0 and one JSON object, or nothing at all.
Never `continue`, never exit 2, never "ask". Facts measured on 2.1.332; see docs/hosts.md.
"""

from __future__ import annotations

from stopwarden import wire
from stopwarden.core.events import BackgroundTask, Scheduler, Stop, Wake
from stopwarden.hosts.claude_code_facts import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from stopwarden.core.events import Instant, Verdict, WakeKind
    from stopwarden.hosts.claude_code_facts import Env
    from stopwarden.store.port import SeenWake

NAME = "claude-code"
CAP_VARIABLE = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
WAKES_MAX = 500  # the host allows 50; beyond this a payload is not believed

# How the program was started: whoever drives it by script is covered only on request, and no
# terminal is there to keep a scheduler alive.
SCRIPTS = {
    "sdk-cli": Scheduler(
        works="non_recurring", why="`claude -p` leaves with a recurring wake pending", jitter="claude_code"
    ),
    "sdk-ts": Scheduler(works="none", why="sessions run through the SDK or an editor adapter get no wakes"),
    "sdk-py": Scheduler(works="none", why="sessions run through the SDK get no wakes"),
}
INTERACTIVE = Scheduler(works="all", jitter="claude_code")


def is_script(entrypoint: str) -> bool:
    """Whether a program, not a person at a terminal, started this session. Unknown is a person."""
    return entrypoint in SCRIPTS or entrypoint.startswith("sdk-")


def scheduler(entrypoint: str, env: Env) -> Scheduler:
    """What the scheduler of a session started that way can do."""
    if env("CLAUDE_CODE_DISABLE_CRON").strip().lower() not in ("", "0", "false", "no", "off"):
        return Scheduler(works="none", why="its scheduler is switched off (CLAUDE_CODE_DISABLE_CRON)")
    if entrypoint in SCRIPTS:
        return SCRIPTS[entrypoint]
    if is_script(entrypoint):
        return SCRIPTS["sdk-ts"]
    return INTERACTIVE


def host_cap(env: Env) -> int | None:
    """The host's cap on blocks in a row: None where it says nothing readable, 0 where it is switched off."""
    text = env(CAP_VARIABLE).strip()
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        return None
    return max(0, int(text))


def stop(
    payload: dict[str, Any],
    *,
    session: str,
    at: Instant,
    env: Env,
    seen: Sequence[SeenWake],
    nonce: str,
    damaged: bool = False,
) -> Stop:
    """The stop a payload tells of. `seen` are the wakes this session is known to have scheduled."""
    wakes, unread = _wakes(payload.get("session_crons"), at, seen)
    prompt = payload.get("prompt_id")
    return Stop(
        session=session,
        at=at,
        host=NAME,
        nonce=nonce,
        prompt=prompt[:100] if isinstance(prompt, str) else "",
        plan_mode=payload.get("permission_mode") == "plan",
        subagent=bool(payload.get("agent_id")) or payload.get("hook_event_name") == "SubagentStop",
        wakes=wakes,
        unread_wakes=unread,
        background=_background(payload.get("background_tasks")),
        host_cap=host_cap(env),
        damaged=damaged,
    )


def _wakes(listed: object, at: Instant, seen: Sequence[SeenWake]) -> tuple[tuple[Wake, ...] | None, tuple[str, ...]]:
    """The wakes the host lists, joined with what is known of them; None where it lists none at all."""
    if not isinstance(listed, list):
        return None, ()
    known = {wake.id: wake for wake in seen if wake.gone_at is None}
    promised = [wake for wake in seen if wake.kind == "self_paced" and wake.fires_at]
    wakes: list[Wake] = []
    unread: list[str] = []
    for entry in listed[:WAKES_MAX]:
        schedule = entry.get("schedule") if isinstance(entry, dict) else None
        if not isinstance(schedule, str):
            unread.append(str(entry)[:60])
            continue
        name = str(entry.get("id", ""))[:60]
        recurring = bool(entry.get("recurring", False))
        prompt = entry.get("prompt")
        wakes.append(
            _joined(
                name,
                schedule[:10_000],
                recurring,
                digest(prompt) if isinstance(prompt, str) else "",
                at,
                known,
                promised,
            )
        )
    return tuple(wakes), tuple(unread)


def _joined(
    name: str,
    schedule: str,
    recurring: bool,
    prompt: str,
    at: Instant,
    known: dict[str, SeenWake],
    promised: list[SeenWake],
) -> Wake:
    """One listed wake. A self-paced one has another id in the list than in its tool's result: its prompt tells."""
    kind: WakeKind = "recurring" if recurring else "one_shot"
    before = known.get(name)
    said = before
    if not recurring and (before is None or before.fires_at is None):
        same = [
            wake for wake in promised if wake.prompt_digest == prompt and wake.fires_at and wake.fires_at >= at - 120
        ]
        if same:
            said, kind = max(same, key=lambda wake: wake.fires_said_at or 0), "self_paced"
    return Wake(
        id=name,
        schedule=schedule,
        kind=kind,
        first_seen=before.first_seen if before else at,
        fires_at=said.fires_at if said else None,
        fires_said_at=said.fires_said_at if said else None,
        max_age=before.max_age if before else None,
    )


def _background(listed: object) -> tuple[BackgroundTask, ...]:
    if not isinstance(listed, list):
        return ()
    return tuple(
        BackgroundTask(
            id=str(task.get("id", ""))[:60],
            type=str(task.get("type", ""))[:40],
            description=_program(task.get("command")),
        )
        for task in listed[:50]
        if isinstance(task, dict)
    )


def _program(command: object) -> str:
    """The program that a command begins with, "" where it is no plain word: what it was given is message text."""
    words = command.split(None, 1) if isinstance(command, str) else []
    name = words[0][words[0].rfind("/") + 1 :] if words else ""
    return name[:40] if name.replace("-", "").replace("_", "").replace(".", "").isalnum() else ""


# --- answers ------------------------------------------------------------------------------------


def stop_answer(verdict: Verdict) -> str:
    """What to print for a verdict: a block with its reason, else nothing, or one line for the person."""
    if verdict.block:
        return wire.dumps({"decision": "block", "reason": verdict.reason})
    return notice_answer(verdict.notice)


def block_answer(reason: str) -> str:
    """A block that no verdict stands behind (a fault of ours while away)."""
    return wire.dumps({"decision": "block", "reason": reason})


def notice_answer(notice: str) -> str:
    """One line for the person, or nothing."""
    return wire.dumps({"systemMessage": notice}) if notice else ""


def context_answer(event: str, text: str) -> str:
    """Words for the model at a prompt or at a session's start."""
    if not text:
        return ""
    name = "SessionStart" if event == "session-start" else "UserPromptSubmit"
    return wire.dumps({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}})


def refusal_answer(event: str, text: str) -> str:
    """Refuses a question, a plan or a permission prompt, with advice for the model."""
    if event == "permission":
        decision = {"behavior": "deny", "message": text}
        return wire.dumps({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
    return wire.dumps(
        {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": text,
            }
        }
    )
