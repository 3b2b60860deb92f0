"""What a session asks of a model, and what comes back: our own words for it, whoever answers.

A request is the whole conversation: the session keeps history, a model keeps nothing. The answer is a
stream of events whose first is always `Began`: it stands for the send boundary, the moment at which the
provider has answered with headers or a first event. Whatever fails before it is a refusal
(`ModelRefusedError`): nothing counts, nothing stays in history. Whatever fails after it is a break
(`ModelBrokenError`). The last event is `Ended` with the whole message.

May not live here: retries, history, tools, the meaning of a tool call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from stopwarden.core.record import Record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping


class Text(Record):
    """Words."""

    text: str


class Image(Record):
    """A picture, as bytes of a media type such as image/png."""

    data: bytes
    media_type: str


class Thought(Record):
    """What the model thought aloud. `seal` is the provider's own data that must go back to it unchanged."""

    text: str
    seal: str = ""
    provider: str = ""


class Call(Record):
    """A tool call. `arguments` is the JSON text as the model wrote it: it may be broken."""

    id: str
    name: str
    arguments: str


class Result(Record):
    """What a tool call came to."""

    call: str
    name: str
    text: str
    failed: bool = False


Said = Text | Image | Thought | Call | Result


class Message(Record):
    """One message of the conversation. Results and pictures come from the user's side."""

    role: Literal["user", "assistant"]
    parts: tuple[Said, ...]


class ToolSpec(Record):
    """A tool the model may call; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


class Request(Record):
    """All that the model is to know."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()


class Usage(Record):
    """Tokens, as the provider counted them; 0 where it does not say."""

    input: int = 0
    output: int = 0


class Began(Record):
    """The provider has answered: from here on the request counts."""


class Words(Record):
    """More of the reply."""

    text: str


class Thinking(Record):
    """More of what the model thinks aloud."""

    text: str


class Ended(Record):
    """The reply is whole. `why` is stop, length (cut by the output limit) or refused (by the provider's filter)."""

    message: Message
    usage: Usage = Usage()
    why: Literal["stop", "length", "refused"] = "stop"


ModelEvent = Began | Words | Thinking | Ended


class Model(Protocol):
    """Somebody who answers requests."""

    name: str  # for people, transcripts and telemetry
    window: int  # tokens that a request and its reply may have together
    sees_images: bool

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Began, then the reply as it comes, then Ended.

        Raises ModelRefusedError before Began and ModelBrokenError after it. Closing the iterator ends
        the request at the provider.
        """
        ...

    async def count_tokens(self, request: Request) -> int:
        """How many tokens the request has: counted by the provider where it can, else estimated, never too low."""
        ...

    async def close(self) -> None:
        """Ends the connections that are kept open between requests; nothing is asked afterwards."""
        ...
