"""The offline model: a provider like any other, whose replies come from a script.

The script is the one that the model server on loopback reads (docs/models.md), so one file serves our
own agent in process and any other agent over HTTP. A session cannot tell it from a real provider: it
begins, says its words in pieces, is slow, refuses, or breaks in the middle, as its script says. No
process and no socket is needed, and time is the loop's own, so the simulator's virtual clock holds.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING, Any

from stopwarden.core.errors import ModelBrokenError, ModelRefusedError, ScriptError
from stopwarden.models.port import Began, Call, Ended, Image, Message, Result, Text, Thought, Usage, Words
from stopwarden.models.refusals import why_refused
from stopwarden.models.script import Reply, Script
from stopwarden.models.script import Request as Seen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from stopwarden.models.port import ModelEvent, Request, Said

    Answer = Callable[[Seen], Reply | str | Mapping[str, Any]]

CHARACTERS_A_TOKEN = 3  # an estimate that is rather too high than too low
PIECE = 24  # characters of a reply in one event


class Scripted:
    """A model whose replies come from a script, or from any function of what it was told."""

    def __init__(
        self, answer: Answer, *, name: str = "scripted", window: int = 200_000, sees_images: bool = True
    ) -> None:
        self.name, self.window, self.sees_images = name, window, sees_images
        self._answer = answer
        self.seen: list[Seen] = []  # every request, with its reply

    @classmethod
    def from_file(cls, path: str) -> Scripted:
        """Raises ScriptError for a file that cannot be read or holds words that a script does not have."""
        try:
            with open(path, encoding="utf-8") as file:
                return cls(Script.from_json(json.load(file)), name=f"scripted:{path}")
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as wrong:
            raise ScriptError(
                f"{path} is no script for the offline model: {wrong}", kept="Nothing was run", do="See docs/models.md"
            ) from wrong

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """See `port.Model`. `breaks` counts the events after Began that still come."""
        reply = self._reply(request)
        await asyncio.sleep(reply.delay)
        if reply.status:
            said = reply.text or "scripted error"
            raise ModelRefusedError(
                f"The model answered {reply.status}: {said}",
                why=why_refused(reply.status, f"{reply.error_type} {said}"),
                retry_after=float(reply.headers["retry-after"]) if "retry-after" in reply.headers else None,
            )
        yield Began()
        pieces = [reply.text[at : at + PIECE] for at in range(0, len(reply.text), PIECE)]
        for number, piece in enumerate(pieces):
            if reply.breaks is not None and number >= reply.breaks:
                break
            yield Words(text=piece)
        if reply.breaks is not None:
            raise ModelBrokenError("The model's answer ended early", kept="What was sent stays in the conversation")
        calls = tuple(_call(tool.name, tool.input) for tool in reply.tools)
        words = (Text(text=reply.text),) if reply.text else ()
        usage = Usage(input=reply.input_tokens, output=reply.output_tokens)
        message = Message(role="assistant", parts=words + calls)
        yield Ended(message=message, usage=usage, why="length" if reply.stop_reason == "max_tokens" else "stop")

    async def count_tokens(self, request: Request) -> int:
        """An estimate from the length of what would be sent."""
        return len(json.dumps(as_json(request))) // CHARACTERS_A_TOKEN

    async def close(self) -> None:
        """Nothing is open."""

    def _reply(self, request: Request) -> Reply:
        body = as_json(request)
        seen = Seen(n=len(self.seen) + 1, path="", body=body, raw=json.dumps(body), arrived=0.0)
        seen.reply = Reply.of(self._answer(seen))
        self.seen.append(seen)
        return seen.reply


def _call(name: str, given: Any) -> Call:
    """A string stands for arguments exactly as a model wrote them, broken or not."""
    arguments = given if isinstance(given, str) else json.dumps(given)
    return Call(id=f"call_{uuid.uuid4().hex[:20]}", name=name, arguments=arguments)


def as_json(request: Request) -> dict[str, Any]:
    """A request in the shape that scripts match against: the messages, and the names of the tools."""
    return {
        "system": request.system,
        "messages": [
            {"role": message.role, "content": [_part(part) for part in message.parts]} for message in request.messages
        ],
        "tools": [{"name": tool.name} for tool in request.tools],
    }


def _part(part: Said) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Thought(text=text):
            return {"type": "thinking", "thinking": text}
        case Image(media_type=kind, data=data):
            return {"type": "image", "media_type": kind, "bytes": len(data)}
        case Call(id=name, name=tool, arguments=arguments):
            return {"type": "tool_use", "id": name, "name": tool, "input": arguments}
        case Result(call=call, text=text, failed=failed):
            return {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed}
