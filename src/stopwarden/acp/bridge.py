"""A bridge as the owner's side of a session: claims and drains over its extension methods.

Nothing here raises: whatever a bridge does, old, silent, malformed or gone, comes back as an answer that
the turn knows how to take. The turn has its own deadline; a call that is late is cut there.
May not live here: what an answer means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acp import RequestError
from acp.schema import EmbeddedResourceContentBlock, ImageContentBlock, ResourceContentBlock, TextContentBlock
from pydantic import TypeAdapter, ValidationError

from stopwarden.acp.content import said_in
from stopwarden.core.bounds import MESSAGES_A_DRAIN
from stopwarden.models.port import Text
from stopwarden.session.ports import Drained, Spoken

if TYPE_CHECKING:
    from acp.core import Connection

CLAIM = "craft/claimTodoStopGuardContinuation"
DRAIN = "craft/drainMidTurnQueue"
RELEASED = "craft/todoStopGuardQueueReleased"
UNKNOWN_METHOD = -32601

_BLOCKS: TypeAdapter[list[Any]] = TypeAdapter(
    list[TextContentBlock | ImageContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock]
)


class Bridge:
    """See `session.ports.OwnerSide`."""

    def __init__(self, connection: Connection, session: str) -> None:
        self._connection, self._session = connection, session
        self._unnamed = 0

    async def drain(self, owner: str | None, *, watched: bool) -> Drained:
        """Takes the bridge's mid-turn messages."""
        asked: dict[str, Any] = {"sessionId": self._session}
        if owner is not None:
            asked["promptId"] = owner
        if watched:
            asked["todoStopGuardWatchQueuedPrompt"] = True
        try:
            answer = await self._connection.send_request(DRAIN, asked)
        except RequestError as failed:
            return Drained(reliable=False, unknown_method=failed.code == UNKNOWN_METHOD)
        except Exception:  # a connection that breaks raises what it likes
            return Drained(reliable=False)
        return self._read(answer)

    async def claim(self, owner: str | None) -> tuple[bool | None, bool | None]:
        """Asks for the next place in order; without an owner the request names none."""
        asked = {"sessionId": self._session} | ({"promptId": owner} if owner is not None else {})
        try:
            answer = await self._connection.send_request(CLAIM, asked)
        except Exception:
            return None, None
        if not isinstance(answer, dict):
            return None, None
        claimed, queued = answer.get("claimed"), answer.get("hasQueuedPrompt")
        return claimed if isinstance(claimed, bool) else None, queued if isinstance(queued, bool) else None

    def _read(self, answer: object) -> Drained:
        """Structured items where there are any, else plain texts; one bad entry makes the whole answer unreliable."""
        if not isinstance(answer, dict):
            return Drained(reliable=False)
        hinted = answer.get("hasQueuedPrompt")
        hint = hinted if isinstance(hinted, bool) else None
        items, texts = answer.get("items"), answer.get("messages", [])
        try:
            if isinstance(items, list) and items:
                messages = tuple(self._item(item) for item in items[:MESSAGES_A_DRAIN])
            elif isinstance(texts, list):
                messages = tuple(self._text(text) for text in texts[:MESSAGES_A_DRAIN])
            else:
                return Drained(reliable=False)
        except (RequestError, ValidationError, ValueError, KeyError, TypeError):
            return Drained(reliable=False)
        return Drained(messages=messages, hint=hint)

    def _item(self, item: Any) -> Spoken:
        return Spoken(id=f"{self._session}/{item['messageId']}", said=said_in(_BLOCKS.validate_python(item["content"])))

    def _text(self, text: Any) -> Spoken:
        if not isinstance(text, str) or not text.strip():
            raise ValueError("a message without words")
        self._unnamed += 1
        return Spoken(id=f"{self._session}/said-{self._unnamed}", said=(Text(text=text),))
