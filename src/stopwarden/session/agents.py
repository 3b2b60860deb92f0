"""Sub-agents of one session: children with a conversation of their own, waited for or in the background.

A child has the model and the tools of its parent, but no sub-agents and no background work of its own. What
is said to it while it works goes into its turn at the next step; said to one that has ended, it goes on with that. The
machine hears of a message before and after it is sent, so that even an answer quicker than the send is
known to belong to the chain. Children live as long as their parent; of each, the last reply is kept on disk.

May not live here: commands in the background (`tasks`).
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

from stopwarden.core import backlog_events as waits
from stopwarden.core.errors import RefusedError
from stopwarden.core.lineage import Task
from stopwarden.models.port import Text
from stopwarden.session.ports import Drained, Spoken

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.session.actor import Session
    from stopwarden.session.tasks import Background, Work

RESTED_MAX = 20  # children that have ended and can go on
WELL = frozenset({"done", "exhausted", "observed", "off", "suspended"})


class Mail:
    """The owner's side of a child: what its parent says to it meanwhile."""

    def __init__(self) -> None:
        self._said: list[Spoken] = []

    def put(self, text: str) -> None:
        """One message."""
        self._said.append(Spoken(id=str(uuid.uuid4()), said=(Text(text=text),)))

    def take(self) -> tuple[Spoken, ...]:
        """All of them, once."""
        said, self._said = tuple(self._said), []
        return said

    async def drain(self, owner: str | None, *, watched: bool) -> Drained:
        """See `ports.OwnerSide`."""
        return Drained(messages=self.take())

    async def claim(self, owner: str | None) -> tuple[bool | None, bool | None]:
        """Nobody else is in the line."""
        return True, False


class Child:
    """One sub-agent."""

    def __init__(self, session: Session, mail: Mail, about: str) -> None:
        self.session, self.mail, self.about = session, mail, about


class Agents:
    """The sub-agents of one session. `spawn` makes a child's session."""

    def __init__(self, background: Background, spawn: Callable[[str, Mail], Session]) -> None:
        self._background, self._spawn = background, spawn
        self._children: dict[str, Child] = {}

    async def begin(self, prompt: str, *, background: bool) -> tuple[str, str]:
        """A child on a task: its id and, if it is waited for, its last reply. Raises RefusedError."""
        id = f"agent-{uuid.uuid4().hex[:8]}"
        self._background.room()
        mail = Mail()
        self._children[id] = Child(self._spawn(id, mail), mail, prompt)
        self._parent.feed(waits.Spawned(agent=id))
        work = self._go_on(id, prompt, foreground=not background)
        assert work.doing is not None
        if background:
            return id, ""
        try:
            await asyncio.shield(work.doing)
        except asyncio.CancelledError:
            work.doing.cancel()
            await asyncio.gather(work.doing, return_exceptions=True)
            raise
        return id, self._reply(id)

    def send(self, agent: str, text: str) -> bool:
        """Say something to a child; answers whether it works already (else it goes on now). Raises RefusedError."""
        send = str(uuid.uuid4())
        self._parent.feed(waits.MessageSending(send=send, agent=agent))
        try:
            child = self._children.get(agent)
            if child is None:
                raise RefusedError(f"There is no agent {agent!r}", kept="Nothing was sent", do="See task_list")
            works = self._background.runs(agent)
            if works:
                child.mail.put(text)
            else:
                self._background.room()
                self._go_on(agent, text, foreground=False)
        except RefusedError:
            self._parent.feed(waits.MessageSettled(send=send, succeeded=False))
            raise
        self._parent.feed(waits.MessageSettled(send=send, succeeded=True))
        return works

    async def close(self) -> None:
        """All children are put away."""
        for child in self._children.values():
            await child.session.close()

    @property
    def _parent(self) -> Session:
        assert self._background.session is not None
        return self._background.session

    def _go_on(self, id: str, prompt: str, *, foreground: bool) -> Work:
        task = Task(kind="agent", id=id, foreground=foreground)
        return self._background.begin(task, prompt, lambda work: self._run(work, prompt))

    async def _run(self, work: Work, prompt: str) -> None:
        """A child until it has nothing more to say and nothing more was said to it."""
        id = work.task.id
        child = self._children[id]
        turn = asyncio.ensure_future(child.session.prompt(str(uuid.uuid4()), (Text(text=prompt),)))
        try:
            how = await asyncio.shield(turn)
            while late := child.mail.take():
                said = tuple(part for spoken in late for part in spoken.said)
                turn = asyncio.ensure_future(child.session.prompt(late[0].id, said))
                how = await asyncio.shield(turn)
            status = "completed" if how in WELL else "failed"
        except asyncio.CancelledError:
            if not turn.done():
                child.session.cancel()
                await turn
            how, status = "stopped", "cancelled"
        work.kept.take(self._reply(id).encode())
        self._background.ended(work, status, how)
        ended = [one for one in self._children if not self._background.runs(one)]
        for one in ended[: max(0, len(ended) - RESTED_MAX)]:
            await self._children.pop(one).session.close()

    def _reply(self, id: str) -> str:
        """The last words of a child."""
        child = self._children[id].session
        for entry in reversed(child.conversation.entries):
            said = [one.text for part in entry.parts for one in child.conversation.words(part) if isinstance(one, Text)]
            if entry.is_reply and said:
                return "".join(said)
        return f"[no words; {child.last_error}]" if child.last_error else "[no words]"
