"""A native session with a scripted model, an in-process queue, memory for a disk, and a note of all it told."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from stopwarden.models.port import Text
from stopwarden.models.script import Reply, Tool
from stopwarden.models.scripted import Scripted
from stopwarden.session.made import make
from stopwarden.session.permissions import Permissions
from stopwarden.store.transcripts import MemoryTranscripts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stopwarden.models.script import Request
    from stopwarden.session.ports import Told
    from stopwarden.store.transcripts import Transcripts


def todos(*statuses: str) -> Tool:
    """A call that writes a list with an item for each status."""
    items = [{"id": str(n), "content": f"step {n}", "status": status} for n, status in enumerate(statuses, 1)]
    return Tool("todo_write", {"todos": items})


ARM = Reply(text="I plan.", tools=(todos("pending", "pending"),))
FINISH = Reply(text="All is done.", tools=(todos("completed", "completed"),))


class Native:
    """Made inside a running loop."""

    def __init__(
        self,
        replies: Sequence[Reply | str] | Callable[[Request], Reply | str],
        *,
        cwd: str = "/",
        mode: Any = "full",
        guard: str = "on",
        id: str = "s",
        transcripts: Transcripts | None = None,
        now: Callable[[], float] = lambda: 1_000.0,
    ) -> None:
        self.told: list[Told] = []
        self.seen: dict[str, asyncio.Event] = {}
        self.model = Scripted(_in_order(replies) if not callable(replies) else replies)
        self.transcripts = transcripts or MemoryTranscripts()

        async def no(*_: object) -> Any:
            return "no"

        self.permissions = Permissions(mode, no)
        self.session, self.prompts = make(
            id=id,
            cwd=cwd,
            model=self.model,
            permissions=self.permissions,
            watcher=self._watch,
            guard=guard,
            now=now,
            transcripts=self.transcripts,
        )

    async def say(self, text: str) -> str:
        """A prompt; how its turn ended."""
        return await self.prompts.say(Text(text=text))

    async def until(self, kind: str) -> None:
        """Until something of this kind was told."""
        if not any(told.kind == kind for told in self.told):
            await asyncio.wait_for(self.seen.setdefault(kind, asyncio.Event()).wait(), 10)

    def kinds(self, *kinds: str) -> list[Told]:
        """What was told of these kinds, in order."""
        return [told for told in self.told if told.kind in kinds]

    @property
    def words(self) -> str:
        """All that the model said to the person."""
        return "".join(told.text for told in self.kinds("words"))

    def _watch(self, told: Told) -> None:
        self.told.append(told)
        if told.kind in self.seen:
            self.seen[told.kind].set()


def _in_order(replies: Sequence[Reply | str]) -> Callable[[Request], Reply | str]:
    left = list(replies)
    return lambda _: left.pop(0) if left else "Nothing more."


def run(story: Any) -> Any:
    """Run a story to its end, within ten seconds."""

    async def within() -> Any:
        async with asyncio.timeout(10):
            return await story

    return asyncio.run(within())


def told_to(request: Request) -> str:
    """Everything a request says, as one text."""
    return json.dumps(request.body)
