"""The owner's side in this process: who spoke in which order, for a session with clients of our own.

It executes what `core.queue` asks for. The terminal and stdio clients thereby get the FIFO, owners and
mid-turn words that the daemon's clients have. May not live here: any decision about order.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from typing import TYPE_CHECKING, Any

from stopwarden.core import queue as queues
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.errors import RefusedError, StopwardenError
from stopwarden.models.port import Text
from stopwarden.session.ports import Drained, Spoken, Told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stopwarden.models.port import Said
    from stopwarden.session.actor import Session
    from stopwarden.session.ports import Watcher

HERE = "here"  # the one child of this queue: the session in this process
ENDED_WELL = frozenset({"done", "yielded", "exhausted", "deferred", "suspended", "plan_mode", "observed", "off"})


class Prompts:
    """The prompts and mid-turn words of one session, in order. It is the session's `OwnerSide`."""

    def __init__(self, session: str, watcher: Watcher, now: Callable[[], float], client: str = "terminal") -> None:
        self._id, self._client, self._watcher, self._now = session, client, watcher, now
        self._queue = queues.open_queue(session, HERE)
        self._words: dict[str, tuple[Said, ...]] = {}
        self._asked: dict[str, asyncio.Future[q.Answer]] = {}
        self._over: dict[str, asyncio.Future[str]] = {}
        self._inbox: deque[q.QueueEvent] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._stepping = False
        self.session: Session | None = None
        self._feed(q.ClientJoined(at=0, client=client))

    # ---- the person's side

    async def say(self, *said: Said) -> str:
        """A full prompt, in order behind those before it; answers how its turn ended.

        Raises RefusedError when the queue is full, and the Store…Error classes when it cannot be kept.
        """
        name = str(uuid.uuid4())
        self._words[name] = said
        over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._over[name] = over
        answer = await self._call(
            lambda request: q.Admit(
                at=0, request=request, session=self._id, client=self._client, prompt=name, content=name
            )
        )
        if answer.status >= 400:
            self._over.pop(name)
            raise RefusedError(
                f"The prompt was not taken ({answer.rule})", kept="Nothing was queued", do="Wait for a turn to end"
            )
        try:
            return await over
        finally:
            self._over.pop(name, None)
            self._words.pop(name, None)

    async def mention(self, text: str) -> bool:
        """Words for the turn that runs, handed over at its next step; False if they were not taken."""
        name = str(uuid.uuid4())
        self._words[name] = (Text(text=text),)
        answer = await self._call(
            lambda request: q.PostMessage(
                at=0, request=request, session=self._id, client=self._client, message=name, text=text
            )
        )
        return answer.status < 400

    async def cancel(self) -> None:
        """Stop what runs; queued prompts stay and run next."""
        await self._call(lambda request: q.CancelRunning(at=0, request=request, session=self._id, client=self._client))

    @property
    def waiting(self) -> int:
        """How many prompts are queued behind the one that runs."""
        return sum(entry.live and entry.state == "queued" for entry in self._queue.entries)

    # ---- the session's side (`ports.OwnerSide`)

    async def drain(self, owner: str | None, *, watched: bool) -> Drained:
        """See `ports.OwnerSide`."""
        answer = await self._call(
            lambda request: q.AskDrain(at=0, request=request, session=self._id, child=HERE, prompt=owner, watch=watched)
        )
        if not isinstance(answer, q.AnswerDrain):
            return Drained(reliable=False)
        messages = tuple(
            Spoken(id=one.message, said=self._words.pop(one.message, (Text(text=one.text),))) for one in answer.messages
        )
        return Drained(messages=messages, hint=answer.has_queued_prompt)

    async def claim(self, owner: str | None) -> tuple[bool | None, bool | None]:
        """See `ports.OwnerSide`."""
        answer = await self._call(
            lambda request: q.AskClaim(at=0, request=request, session=self._id, child=HERE, prompt=owner)
        )
        if isinstance(answer, q.AnswerClaim):
            return answer.claimed, answer.has_queued_prompt
        return None, None

    # ---- the machine

    async def _call(self, event: Callable[[str], q.QueueEvent]) -> q.Answer:
        request = str(uuid.uuid4())
        answer: asyncio.Future[q.Answer] = asyncio.get_running_loop().create_future()
        self._asked[request] = answer
        self._feed(event(request))
        try:
            return await answer
        finally:
            self._asked.pop(request, None)

    def _feed(self, event: q.QueueEvent) -> None:
        self._inbox.append(event.replace(at=int(self._now() * 1_000)))
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._inbox:
                self._queue, effects = queues.step(self._queue, self._inbox.popleft())
                for effect in effects:
                    if isinstance(effect, q.Answer):
                        asked = self._asked.get(effect.request)
                        if asked is not None and not asked.done():
                            asked.set_result(effect)
                    else:
                        EXECUTE[type(effect)](self, effect)
        finally:
            self._stepping = False

    def _run_prompt(self, effect: q.RunPrompt) -> None:
        said = self._words.get(effect.prompt, ())
        for message in effect.carried:
            said = (*self._words.pop(message.message, (Text(text=message.text),)), *said)
        kind = {"": ev.ORDINARY, "retry": ev.RETRY, "continue": ev.CONTINUE}[effect.trust]

        async def run() -> None:
            assert self.session is not None
            over = self._over.get(effect.prompt)
            try:
                how = await self.session.prompt(effect.prompt, said, kind=kind, owner=effect.prompt)
            except StopwardenError as failed:
                how = "failed"
                if over is not None and not over.done():
                    over.set_exception(failed)
            if over is not None and not over.done():
                over.set_result(how)
            outcome: q.Outcome = "cancelled" if how == "cancelled" else "completed" if how in ENDED_WELL else "failed"
            self._feed(q.PromptSettled(at=0, effect=effect.id, outcome=outcome))

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forward_cancel(self, effect: q.ForwardCancel) -> None:
        assert self.session is not None
        self.session.cancel()
        self._feed(q.CancelForwarded(at=0, effect=effect.id))

    def _send_release(self, effect: q.SendRelease) -> None:
        assert self.session is not None
        self.session.feed(ev.QueueReleased(owner=effect.owner))
        self._feed(q.ReleaseAnswered(at=0, effect=effect.id, released=True))

    def _cut_stop_hook(self, effect: q.CutStopHook) -> None:
        assert self.session is not None
        self.session.feed(ev.PromptQueuedSeen())

    def _resolve(self, effect: q.ResolveMessages) -> None:
        self._feed(q.MessagesResolved(at=0, effect=effect.id))

    def _start_timer(self, effect: q.StartTimer) -> None:
        loop = asyncio.get_running_loop()
        self._timers[effect.id] = loop.call_later(
            effect.after / 1_000, lambda: self._feed(q.TimerFired(at=0, effect=effect.id))
        )

    def _emit(self, effect: q.Emit) -> None:
        detail: dict[str, Any] = {"state": effect.state, "messages": effect.messages}
        self._watcher(Told(kind=effect.told, turn=effect.prompt or "", text=effect.why, detail=detail))

    def _write_ledger(self, effect: q.WriteLedger) -> None:
        """Prompts of a terminal live as long as the terminal."""


EXECUTE: Mapping[type[q.Effect], Callable[[Prompts, Any], None]] = {
    q.RunPrompt: Prompts._run_prompt,
    q.ForwardCancel: Prompts._forward_cancel,
    q.SendRelease: Prompts._send_release,
    q.CutStopHook: Prompts._cut_stop_hook,
    q.ResolveMessages: Prompts._resolve,
    q.StartTimer: Prompts._start_timer,
    q.Emit: Prompts._emit,
    q.WriteLedger: Prompts._write_ledger,
}
