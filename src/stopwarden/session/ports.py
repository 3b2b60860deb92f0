"""What a session needs from its surroundings, and what it tells those who watch it.

Each port is one small protocol, so that the terminal, an ACP client and the simulator are three sets of
plain objects. May not live here: any of their implementations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from stopwarden.core.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stopwarden.models.port import Call, Result, Said, ToolSpec


class Spoken(Record):
    """Words of the person under an id: said once, however often they are handed over."""

    id: str
    said: tuple[Said, ...]


class Drained(Record):
    """What the owner's side handed over. `hint` None: it did not say whether a prompt is queued."""

    messages: tuple[Spoken, ...] = ()
    hint: bool | None = False
    reliable: bool = True
    unknown_method: bool = False


class OwnerSide(Protocol):
    """Whoever keeps the prompts of this session in order: the queue of this process, or an ACP client."""

    async def drain(self, owner: str | None, *, watched: bool) -> Drained:
        """Take all messages said in the middle of the turn. Never raises: what fails is not reliable."""
        ...

    async def claim(self, owner: str | None) -> tuple[bool | None, bool | None]:
        """(claimed, a prompt is queued) as the owner's side said it; None where it did not say."""
        ...


class HookSays(Record):
    """The answer of the external Stop hooks."""

    block: bool = False
    reason: str = ""
    message: str = ""
    failed: bool = False


class Hooks(Protocol):
    """The external hooks of the person. None of these raises: a hook that fails is told in its answer."""

    @property
    def has_stop(self) -> bool:
        """Whether a Stop hook is there to be asked."""
        ...

    async def stop(self, *, forced: bool, reply: str) -> HookSays:
        """Ask all Stop hooks. Cancelled when something beats them; their processes end with it."""
        ...


class Batch(Record):
    """What a batch of tool calls came to. `stop`: post_tool_use, repeated_failure, loop, permission, or empty."""

    results: tuple[Result, ...]
    stop: str = ""


class ToolBox(Protocol):
    """The tools of a session."""

    def specs(self) -> Sequence[ToolSpec]:
        """Those that the model is offered now."""
        ...

    async def run(self, turn: str, calls: Sequence[Call]) -> Batch:
        """Run a batch. Cancelled: what is under way is ended, and every call still gets a result."""
        ...


class Told(Record):
    """Something to show. `kind` is words, thinking, call, result, prompt, turn_begun, turn_ended, or a guard event."""

    kind: str
    turn: str = ""
    text: str = ""
    detail: Mapping[str, Any] = {}


class Watcher(Protocol):
    """Whoever shows the session to people."""

    def __call__(self, told: Told) -> None:
        """Must not raise and must not wait."""
        ...
