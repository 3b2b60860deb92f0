"""How a scripted reply looks on each model wire: the whole body, and the same as a stream of events.

One function a wire, pure but for the ids and the clock handed in. The Anthropic wire is the one
the project's own proofs drive (`doctor`, the real nights); the other three serve the other agent
programs. May not live here: sockets, files, the choice of a reply.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stopwarden.models.script import Reply


@dataclass(frozen=True)
class Encoded:
    """A reply on one wire: as one body, and as server-sent events (name or none, data)."""

    whole: dict[str, Any]
    events: tuple[tuple[str | None, Any], ...]


def anthropic(body: Mapping[str, Any], reply: Reply, new_id: Callable[[str], str], now: int) -> Encoded:
    """POST /v1/messages."""
    content: list[dict[str, Any]] = []
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    content += [
        {"type": "tool_use", "id": new_id("toolu_"), "name": tool.name, "input": tool.input} for tool in reply.tools
    ]
    stop_reason = reply.stop_reason or ("tool_use" if reply.tools else "end_turn")
    usage = {
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    message: dict[str, Any] = {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[tuple[str | None, Any]] = [("message_start", {"message": message})]
    for index, block in enumerate(content):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if block["type"] == "text"
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        events.append(("content_block_start", {"index": index, "content_block": empty}))
        events.append(("content_block_delta", {"index": index, "delta": delta}))
        events.append(("content_block_stop", {"index": index}))
    ended = {"stop_reason": stop_reason, "stop_sequence": None}
    events.append(("message_delta", {"delta": ended, "usage": {"output_tokens": reply.output_tokens}}))
    events.append(("message_stop", {}))
    return Encoded(
        whole={**message, "content": content, "stop_reason": stop_reason},
        events=tuple((name, {"type": name, **data}) for name, data in events),
    )


def openai_chat(body: Mapping[str, Any], reply: Reply, new_id: Callable[[str], str], now: int) -> Encoded:
    """POST /v1/chat/completions."""
    base = {"id": new_id("chatcmpl-"), "created": now, "model": body.get("model")}
    calls = [
        {
            "index": index,
            "id": new_id("call_"),
            "type": "function",
            "function": {"name": tool.name, "arguments": json.dumps(tool.input)},
        }
        for index, tool in enumerate(reply.tools)
    ]
    ended = reply.stop_reason or ("tool_calls" if calls else "stop")
    usage = {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if calls:
        message["tool_calls"] = [{key: value for key, value in call.items() if key != "index"} for call in calls]
    chunk = {**base, "object": "chat.completion.chunk"}

    def choice(delta: dict[str, Any], finish: str | None = None) -> tuple[None, dict[str, Any]]:
        return (None, {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    return Encoded(
        whole={
            **base,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": ended}],
            "usage": usage,
        },
        events=(
            choice({"role": "assistant", "content": reply.text}),
            *(choice({"tool_calls": [call]}) for call in calls),
            choice({}, ended),
            (None, {**chunk, "choices": [], "usage": usage}),
            (None, "[DONE]"),
        ),
    )


def openai_responses(body: Mapping[str, Any], reply: Reply, new_id: Callable[[str], str], now: int) -> Encoded:
    """POST /v1/responses."""
    output: list[dict[str, Any]] = []
    if reply.text:
        text = {"type": "output_text", "text": reply.text, "annotations": []}
        output.append(
            {"type": "message", "id": new_id("msg_"), "status": "completed", "role": "assistant", "content": [text]}
        )
    for tool in reply.tools:
        call: dict[str, Any] = {"call_id": new_id("call_"), "name": tool.name, "status": "completed"}
        if tool.custom:
            call |= {"type": "custom_tool_call", "id": new_id("ctc_"), "input": tool.input}
        else:
            call |= {"type": "function_call", "id": new_id("fc_"), "arguments": json.dumps(tool.input)}
            if tool.namespace:
                call["namespace"] = tool.namespace
        output.append(call)
    usage = {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
    begun: dict[str, Any] = {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": now,
        "status": "in_progress",
        "model": body.get("model"),
        "output": [],
    }
    whole = {**begun, "status": "completed", "output": output, "usage": usage}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(output):
        opened = {**item, "status": "in_progress"}
        if item["type"] == "message":
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            empty = {"type": "output_text", "text": "", "annotations": []}
            events += [
                {"type": "response.output_item.added", "output_index": index, "item": {**opened, "content": []}},
                {"type": "response.content_part.added", **place, "part": empty},
                {"type": "response.output_text.delta", **place, "delta": reply.text},
                {"type": "response.output_text.done", **place, "text": reply.text},
            ]
        else:
            events.append({"type": "response.output_item.added", "output_index": index, "item": opened})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return Encoded(
        whole=whole,
        events=tuple((event["type"], {**event, "sequence_number": number}) for number, event in enumerate(events)),
    )


def gemini(body: Mapping[str, Any], reply: Reply, new_id: Callable[[str], str], now: int) -> Encoded:
    """POST /v1beta/models/M:generateContent and :streamGenerateContent."""
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"name": tool.name, "args": tool.input}} for tool in reply.tools]
    content = {"role": "model", "parts": parts or [{"text": "ok"}]}
    whole = {
        "candidates": [{"content": content, "finishReason": reply.stop_reason or "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": reply.input_tokens,
            "candidatesTokenCount": reply.output_tokens,
            "totalTokenCount": reply.input_tokens + reply.output_tokens,
        },
        "modelVersion": "scripted",
    }
    return Encoded(whole=whole, events=((None, whole),))
