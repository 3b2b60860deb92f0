"""What a session tells, as updates for an ACP client.

A status of the guard is a discrete message of the agent with its numbers in `_meta`, so that a client
need not read text to know what happened. May not live here: sending.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from acp import helpers
from acp.schema import AgentMessageChunk, TextContentBlock

from stopwarden.models.port import Call, Result, Text, Thought
from stopwarden.session.ports import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stopwarden.session.conversation import Conversation

KINDS = {
    "read_file": "read",
    "find": "search",
    "write_file": "edit",
    "edit_file": "edit",
    "shell": "execute",
    "todo_write": "think",
}


def updates(told: Told) -> list[Any]:
    """The updates for one thing told; most guard events are for the transcript alone and have none."""
    make = UPDATES.get(told.kind)
    return make(told) if make is not None else []


def _words(told: Told) -> list[Any]:
    return [helpers.update_agent_message_text(told.text)]


def _thinking(told: Told) -> list[Any]:
    return [helpers.update_agent_thought_text(told.text)]


def _call(told: Told) -> list[Any]:
    tool = str(told.detail["tool"])
    try:
        given = json.loads(told.text)
    except ValueError:
        given = told.text
    first = next(
        (str(given[key]) for key in ("command", "path", "pattern") if isinstance(given, dict) and key in given), ""
    )
    title = f"{tool} {first}".strip()[:200]
    kind: Any = KINDS.get(tool, "other")
    return [helpers.start_tool_call(str(told.detail["call"]), title, kind=kind, status="in_progress", raw_input=given)]


def _result(told: Told) -> list[Any]:
    status: Any = "failed" if told.detail["failed"] else "completed"
    content = [helpers.tool_content(helpers.text_block(told.text))]
    return [helpers.update_tool_call(str(told.detail["call"]), status=status, content=content)]


def _plan(told: Told) -> list[Any]:
    entries = [
        helpers.plan_entry(item["content"], status=item["status"])  # the words of both protocols are the same
        for item in told.detail["todos"]
    ]
    return [helpers.update_plan(entries)]


def _attempt(told: Told) -> list[Any]:
    attempt, cap, left = (int(told.detail[name]) for name in ("attempt", "cap", "unfinished"))
    return [_guard(f"Todo guard: continuation {attempt} of {cap}, {left} not finished", "attempt", attempt, cap, left)]


def _exhausted(told: Told) -> list[Any]:
    attempts, cap, left = (int(told.detail[name]) for name in ("attempts", "cap", "unfinished"))
    return [_guard(f"Todo guard: stopped after {attempts}, {left} not finished", "exhausted", attempts, cap, left)]


def _guard(text: str, event: str, attempt: int, cap: int, left: int) -> AgentMessageChunk:
    meta = {
        "source": "todo_stop_guard",
        "event": event,
        "qwenDiscreteMessage": True,
        "attempt": attempt,
        "maxAttempts": cap,
        "unfinishedCount": left,
    }
    block = TextContentBlock(type="text", text=text)
    return AgentMessageChunk(session_update="agent_message_chunk", content=block, field_meta=meta)


def replayed(conversation: Conversation) -> list[Any]:
    """All of a conversation again, as its client saw it: what the person said, the replies, the calls and results."""
    made: list[Any] = []
    for entry in conversation.entries:
        for part in entry.parts:
            if part.kind == "guard":
                continue
            for said in conversation.words(part):
                match said:
                    case Text(text=text) if entry.is_reply:
                        made.append(helpers.update_agent_message_text(text))
                    case Text(text=text):
                        made.append(helpers.update_user_message_text(text))
                    case Thought(text=text):
                        made.append(helpers.update_agent_thought_text(text))
                    case Call(id=id, name=name, arguments=arguments):
                        made += _call(Told(kind="call", text=arguments, detail={"tool": name, "call": id}))
                    case Result(call=call, text=text, failed=failed):
                        made += _result(Told(kind="result", text=text, detail={"call": call, "failed": failed}))
                    case _:
                        pass
    return made


UPDATES: Mapping[str, Callable[[Told], list[Any]]] = {
    "words": _words,
    "thinking": _thinking,
    "call": _call,
    "result": _result,
    "plan": _plan,
    "AttemptCounted": _attempt,
    "Exhausted": _exhausted,
}
