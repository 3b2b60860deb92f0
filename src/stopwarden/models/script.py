"""What a scripted model answers: replies, the requests they answer, and the script that chooses.

May not live here: how a reply looks on a wire (`model_wires`), sockets (`scripted_model`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True)
class Tool:
    """One tool call of a reply. `custom` and `namespace` exist on the OpenAI responses wire alone."""

    name: str
    input: Any = field(default_factory=dict)
    custom: bool = False
    namespace: str = ""


@dataclass(frozen=True)
class Reply:
    """What the model answers to one request.

    `delay` is in seconds before the first byte. `status` answers with that HTTP error instead of a
    reply (`text` is then its message, `error_type` its type, `headers` go with it: `retry-after`,
    say). `breaks` cuts the connection after that many events of the stream.
    """

    text: str = ""
    tools: tuple[Tool, ...] = ()
    delay: float = 0.0
    status: int = 0
    error_type: str = "invalid_request_error"
    headers: Mapping[str, str] = field(default_factory=dict)
    breaks: int | None = None
    stop_reason: str = ""  # "": tool_use with tools, else end_turn
    input_tokens: int = 100
    output_tokens: int = 10

    @classmethod
    def of(cls, value: Reply | str | Mapping[str, Any]) -> Reply:
        """A reply from its JSON form (see `scripted_model`) or from bare text. Raises ValueError for unknown words."""
        if isinstance(value, Reply):
            return value
        if isinstance(value, str):
            return cls(text=value)
        renamed = {"etype": "error_type", "in_tokens": "input_tokens"}
        given = {renamed.get(name, name): part for name, part in value.items()}
        unknown = sorted(set(given) - set(cls.__dataclass_fields__))
        if unknown:
            raise ValueError(
                f"a scripted reply has no {', '.join(unknown)}; it has {', '.join(cls.__dataclass_fields__)}"
            )
        given["tools"] = tuple(tool if isinstance(tool, Tool) else Tool(**tool) for tool in given.get("tools") or ())
        return cls(**given)

    def as_json(self) -> dict[str, Any]:
        """Only what differs from a plain empty reply, for the log."""
        plain = Reply()
        shown = {name: getattr(self, name) for name in self.__dataclass_fields__}
        shown = {name: value for name, value in shown.items() if value != getattr(plain, name)}
        if self.tools:
            shown["tools"] = [{"name": tool.name, "input": tool.input} for tool in self.tools]
        if self.headers:
            shown["headers"] = dict(self.headers)
        return shown


@dataclass
class Request:
    """One request as it arrived, and what it was answered. Times are epoch seconds."""

    n: int
    path: str
    body: Any
    raw: str
    arrived: float
    answered: float | None = None  # when the last byte was written; None while it is being answered
    queue: str = ""
    reply: Reply | None = None
    broken: bool = False  # the agent hung up, or the reply said to

    def texts(self) -> Iterator[str]:
        """Every string anywhere in the body, as the model would read it."""
        return _strings(self.body)

    def says(self, words: str) -> bool:
        """Whether the words stand anywhere in what the model was sent."""
        return any(words in text for text in self.texts())

    def news(self) -> str:
        """What was said to the model since its last reply (wires with `messages`), as one text."""
        messages = self.body.get("messages") if isinstance(self.body, dict) else None
        since: list[str] = []
        for message in messages if isinstance(messages, list) else []:
            if isinstance(message, dict) and message.get("role") == "assistant":
                since = []
            else:
                since += _strings(message.get("content") if isinstance(message, dict) else message)
        return "\n".join(since)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools offered to the model (Anthropic wire)."""
        offered = self.body.get("tools") if isinstance(self.body, dict) else None
        return tuple(str(tool.get("name", "")) for tool in offered or () if isinstance(tool, dict))

    def as_json(self) -> dict[str, Any]:
        """The request as one line of the log."""
        return {
            "n": self.n,
            "t_in": self.arrived,
            "t_out": self.answered,
            "path": self.path,
            "queue": self.queue,
            "reply": self.reply.as_json() if self.reply else None,
            "broken": self.broken,
            "body": self.body,
        }


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


@dataclass
class Script:
    """Replies in order. Calling it chooses the reply to a request (and names the queue it came from)."""

    replies: Sequence[Reply | str | Mapping[str, Any]] = ()
    queues: Sequence[tuple[str, Sequence[Reply | str | Mapping[str, Any]]]] = ()
    side: str = "ok"
    no_side: bool = False
    _taken: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Script:
        """A script from its file form. Raises ValueError for a word it does not know."""
        unknown = sorted(set(value) - {"replies", "queues", "side", "no_side"})
        if unknown:
            raise ValueError(f"a script has no {', '.join(unknown)}")
        script = cls(
            replies=[Reply.of(reply) for reply in value.get("replies", ())],
            queues=[
                (queue["match"], [Reply.of(reply) for reply in queue["replies"]]) for queue in value.get("queues", ())
            ],
            side=value.get("side", "ok"),
            no_side=value.get("no_side", False),
        )
        for pattern, _ in script.queues:
            re.compile(pattern)
        return script

    def __call__(self, request: Request) -> Reply:
        for number, (pattern, replies) in enumerate(self.queues):
            if re.search(pattern, request.raw):
                return self._next(request, f"q{number}", replies)
        offers_tools = isinstance(request.body, dict) and bool(request.body.get("tools"))
        if not offers_tools and not self.no_side:
            request.queue = "side"
            return Reply(text=self.side)
        return self._next(request, "main", self.replies)

    def _next(self, request: Request, queue: str, replies: Sequence[Reply | str | Mapping[str, Any]]) -> Reply:
        request.queue = queue
        number = self._taken.get(queue, 0)
        self._taken[queue] = number + 1
        if number < len(replies):
            return Reply.of(replies[number])
        last = Reply.of(replies[-1]) if replies else Reply()
        return last if last.text and not last.tools and not last.status else Reply(text="done")
