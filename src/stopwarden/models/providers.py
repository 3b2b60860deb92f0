"""Real providers, through pydantic-ai's direct model interface: our request in, our events out.

It is imported only when a session that has such a model sends for the first time: the import costs more
than everything else of the agent. Retries are switched off in the SDKs below it, because a request
that is repeated behind our back may be answered twice; the session decides about retries.

May not live here: anything about sessions; tools are only described, never run.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import exceptions, messages
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from stopwarden.core.errors import ModelBrokenError, ModelRefusedError
from stopwarden.models.port import (
    Began,
    Call,
    Ended,
    Image,
    Message,
    Result,
    Text,
    Thinking,
    Thought,
    Usage,
    Words,
)
from stopwarden.models.refusals import why_refused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from pydantic_ai.models import Model as ProviderModel

    from stopwarden.models.port import ModelEvent, Request, Said

CHARACTERS_A_TOKEN = 3  # where the provider does not count: rather too many tokens than too few
IMAGE_TOKENS = 1_600  # what the large providers count at most for one picture of ordinary size

ENDINGS = {"length": "length", "content_filter": "refused"}


class Provider:
    """One model of one provider."""

    def __init__(
        self, model: ProviderModel, close: Callable[[], Awaitable[None]], *, name: str, window: int, sees_images: bool
    ) -> None:
        self.name, self.window, self.sees_images = name, window, sees_images
        self._model, self._close = model, close

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """See `port.Model`."""
        begun = False
        try:
            async with model_request_stream(
                self._model, _messages(request), model_request_parameters=_tools(request)
            ) as streamed:
                begun = True
                yield Began()
                async for event in streamed:
                    for told in _told(event):
                        yield told
                answer = streamed.get()
        except (exceptions.AgentRunError, exceptions.UserError, OSError) as failed:
            raise self._failed(failed, begun) from failed
        except Exception as failed:
            # SDKs below raise errors of their own for a connection that breaks or bytes that are no JSON.
            raise self._failed(failed, begun) from failed
        why = cast("Any", ENDINGS.get(answer.finish_reason or "", "stop"))
        usage = Usage(input=answer.usage.input_tokens or 0, output=answer.usage.output_tokens or 0)
        yield Ended(message=_message(answer), usage=usage, why=why)

    async def count_tokens(self, request: Request) -> int:
        """The provider's count where it offers one; else an estimate that is rather too high."""
        try:
            counted = await self._model.count_tokens(_messages(request), None, _tools(request))
        except NotImplementedError:
            return _estimate(request)
        except Exception:  # the count is a help; a provider that cannot be asked will say so at the send
            return _estimate(request)
        return counted.input_tokens or _estimate(request)

    async def close(self) -> None:
        """See `port.Model`."""
        await self._close()

    def _failed(self, failed: Exception, begun: bool) -> ModelRefusedError | ModelBrokenError:
        said = " ".join(str(failed).split())[:500]
        if begun:
            return ModelBrokenError(
                f"The answer of {self.name} ended early: {said}", kept="What was sent stays in the conversation"
            )
        if isinstance(failed, exceptions.ModelHTTPError):
            after = (failed.headers or {}).get("retry-after", "")
            return ModelRefusedError(
                f"{self.name} answered {failed.status_code}: {said}",
                why=why_refused(failed.status_code, f"{said} {failed.body}"),
                retry_after=float(after) if after.replace(".", "", 1).isdigit() else None,
            )
        why = "network" if isinstance(failed, (OSError, exceptions.ModelConnectionError)) else "error"
        return ModelRefusedError(f"{self.name} could not be asked: {said}", why=why)


# ---- our words to pydantic-ai's


def _messages(request: Request) -> list[messages.ModelMessage]:
    made: list[messages.ModelMessage] = []
    for message in request.messages:
        if message.role == "assistant":
            made.append(messages.ModelResponse(parts=[_answered(part) for part in message.parts]))
        else:
            made.append(messages.ModelRequest(parts=_asked(message.parts), instructions=request.system or None))
    return made


def _asked(parts: tuple[Said, ...]) -> list[messages.ModelRequestPart]:
    """Results first, as providers want them, then the words and pictures in their order."""
    results: list[messages.ModelRequestPart] = []
    words: list[messages.UserContent] = []
    for part in parts:
        if isinstance(part, Result):
            outcome = "failed" if part.failed else "success"
            results.append(
                messages.ToolReturnPart(
                    tool_name=part.name, content=part.text, tool_call_id=part.call, outcome=cast("Any", outcome)
                )
            )
        elif isinstance(part, Image):
            words.append(messages.BinaryContent(data=part.data, media_type=part.media_type))
        elif isinstance(part, Text):
            words.append(part.text)
    if words:
        results.append(messages.UserPromptPart(content=words))
    return results


def _answered(part: Said) -> messages.ModelResponsePart:
    if isinstance(part, Call):
        return messages.ToolCallPart(tool_name=part.name, args=part.arguments, tool_call_id=part.id)
    if isinstance(part, Thought):
        return messages.ThinkingPart(
            content=part.text, signature=part.seal or None, provider_name=part.provider or None
        )
    return messages.TextPart(content=part.text if isinstance(part, Text) else "")


def _tools(request: Request) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema))
            for tool in request.tools
        ]
    )


# ---- and back


def _told(event: Any) -> tuple[ModelEvent, ...]:
    """What of a stream event people can read as it comes."""
    if isinstance(event, messages.PartStartEvent):
        part = event.part
        if isinstance(part, messages.TextPart) and part.content:
            return (Words(text=part.content),)
        if isinstance(part, messages.ThinkingPart) and part.content:
            return (Thinking(text=part.content),)
    elif isinstance(event, messages.PartDeltaEvent):
        delta = event.delta
        if isinstance(delta, messages.TextPartDelta) and delta.content_delta:
            return (Words(text=delta.content_delta),)
        if isinstance(delta, messages.ThinkingPartDelta) and delta.content_delta:
            return (Thinking(text=delta.content_delta),)
    return ()


def _message(answer: messages.ModelResponse) -> Message:
    parts: list[Said] = []
    for part in answer.parts:
        if isinstance(part, messages.TextPart):
            parts += [Text(text=part.content)] if part.content else []
        elif isinstance(part, messages.ThinkingPart):
            parts.append(Thought(text=part.content, seal=part.signature or "", provider=part.provider_name or ""))
        elif isinstance(part, messages.ToolCallPart):
            arguments = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
            parts.append(Call(id=part.tool_call_id, name=part.tool_name, arguments=arguments))
    return Message(role="assistant", parts=tuple(parts))


def _estimate(request: Request) -> int:
    """From the length of everything that would be sent."""
    characters = len(request.system) + sum(len(json.dumps(dict(tool.schema))) + 200 for tool in request.tools)
    images = 0
    for message in request.messages:
        for part in message.parts:
            match part:
                case Image():
                    images += 1
                case Call(arguments=arguments):
                    characters += len(arguments) + 50
                case Result(text=text) | Text(text=text) | Thought(text=text):
                    characters += len(text) + 10
    return characters // CHARACTERS_A_TOKEN + images * IMAGE_TOKENS
