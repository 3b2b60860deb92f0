"""The bridge in front of either agent: the project's own queue machine, with the agent's connection as its port.

Prompts get owners and their place in order, claims and drains are answered from the queue, releases are
sent when they are due. `Manners` make it answer badly on purpose. The same object serves the pure turn
machine and the real `qwen --acp`, so a difference on the page is a difference of the agents.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from stopwarden.core import queue_words as q
from stopwarden.core.queue import open_queue, step

if TYPE_CHECKING:
    from comparison.script import Manners

SESSION, CHILD, DESK, PHONE = "session", "child", "desk", "phone"


def admission(status: int) -> str:
    """How a prompt was received, in the shared words."""
    return "admitted" if status == 202 else f"refused with {status}"


class Child(Protocol):
    """What the bridge wants of the agent."""

    def run(self, order: q.RunPrompt) -> None:
        """Begin this prompt; `Bridge.settled` when its turn is over."""

    def cancel(self, order: q.ForwardCancel) -> None:
        """Stop what runs; `Bridge.forwarded` when that is on its way."""

    def release(self, order: q.SendRelease) -> None:
        """The prompt that this owner waited for is gone."""

    def cut_hook(self) -> None:
        """A prompt waits: a Stop hook that still runs need not be waited for."""

    def claim_answered(self, request: str, claimed: bool, queued: bool) -> None:
        """The answer to a claim."""

    def drain_answered(self, request: str, words: tuple[str, ...], queued: bool) -> None:
        """The answer to a drain."""

    def turn_answered(self, request: str, accepted: bool) -> None:
        """Whether a background turn may begin."""


class Bridge:
    """One session's queue, wired."""

    def __init__(self, child: Child, manners: Manners) -> None:
        self._child, self.manners = child, manners
        self._queue = open_queue(SESSION, CHILD)
        self._lock = threading.RLock()
        self._asked = 0
        self.admissions: list[str] = []
        self._hear(q.ClientJoined(at=0, client=DESK))

    @property
    def busy(self) -> bool:
        """Whether a prompt or a background turn runs or waits."""
        return bool(self._queue.entries) or self._queue.turn is not None

    # ---- the person

    def ask(self, name: str, how: str = "ordinary", client: str = DESK) -> None:
        """A full prompt. A second client attaches first; `nobody` does not."""
        if client == PHONE and client not in self._queue.clients:
            self._hear(q.ClientJoined(at=0, client=client))
        asks: q.Asks = "retry" if how == "retry" else "continue" if how == "continue" else ""
        self._client(q.Admit, client, prompt=name, content=name, asks=asks)

    def speak(self, name: str) -> None:
        """Words for the turn that runs."""
        self._client(q.PostMessage, message=name, text=name)

    def remove(self, name: str) -> None:
        """A queued prompt is taken out."""
        self._client(q.RemovePrompt, prompt=name)

    def cancel(self) -> None:
        """What runs is cancelled."""
        self._client(q.CancelRunning)

    def _client(self, kind: type[q.Request], client: str = DESK, **fields: object) -> None:
        with self._lock:
            self._asked += 1
            self._hear(kind(at=0, request=f"asked-{self._asked}", session=SESSION, client=client, **fields))

    # ---- the agent

    def claim(self, request: str, owner: str | None) -> None:
        """The agent claims the next place in order."""
        self._hear(q.AskClaim(at=0, request=request, session=SESSION, child=CHILD, prompt=owner))

    def drain(self, request: str, owner: str | None, watched: bool) -> None:
        """The agent takes the person's words."""
        self._hear(q.AskDrain(at=0, request=request, session=SESSION, child=CHILD, prompt=owner, watch=watched))

    def start_turn(self, request: str, turn: str) -> None:
        """The agent wants to begin a background turn."""
        with self._lock:
            epoch = self._queue.cancel_epoch
            self._hear(q.StartTurn(at=0, request=request, session=SESSION, child=CHILD, turn=turn, epoch=epoch))

    def end_turn(self, turn: str) -> None:
        """A background turn is over."""
        self._hear(q.EndTurn(at=0, request=f"end-{turn}", session=SESSION, child=CHILD, turn=turn))

    def settled(self, order: q.RunPrompt, outcome: q.Outcome) -> None:
        """A prompt's turn is over."""
        self._hear(q.PromptSettled(at=0, effect=order.id, outcome=outcome))

    def forwarded(self, order: q.ForwardCancel) -> None:
        """A cancel has reached the agent."""
        self._hear(q.CancelForwarded(at=0, effect=order.id))

    def released(self, order: q.SendRelease, released: bool) -> None:
        """The agent has answered a release."""
        self._hear(q.ReleaseAnswered(at=0, effect=order.id, released=released))

    def _hear(self, event: q.QueueEvent) -> None:
        with self._lock:
            self._queue, effects = step(self._queue, event)
            for effect in effects:
                self._carry_out(effect)

    def _carry_out(self, effect: q.Effect) -> None:
        match effect:
            case q.RunPrompt():
                self._child.run(effect)
            case q.ForwardCancel():
                self._child.cancel(effect)
            case q.SendRelease():
                self._child.release(effect)
            case q.CutStopHook():
                self._child.cut_hook()
            case q.AnswerAdmission():
                self.admissions.append(admission(effect.status))
            case q.AnswerClaim():
                self._child.claim_answered(effect.request, effect.claimed, effect.has_queued_prompt)
            case q.AnswerDrain():
                words = tuple(one.message for one in effect.messages)
                self._child.drain_answered(effect.request, words, effect.has_queued_prompt)
            case q.AnswerTurn():
                self._child.turn_answered(effect.request, effect.accepted)
            case _:
                pass  # events for clients, the ledger and timers: nobody here reads them
