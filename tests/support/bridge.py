"""A bridge in a test: it feeds the queue's machine and keeps what it asked for, by hand and in plain words."""

from __future__ import annotations

from typing import Any, TypeVar

from stopwarden.core.queue import open_queue, step
from stopwarden.core.queue_words import (
    Admit,
    AnswerAdmission,
    AnswerClaim,
    AnswerDone,
    AnswerDrain,
    AnswerMessage,
    AnswerTurn,
    AskClaim,
    AskDrain,
    CancelForwarded,
    CancelRunning,
    ClientJoined,
    Effect,
    Emit,
    EndTurn,
    ForwardCancel,
    PostMessage,
    PromptSettled,
    Queue,
    QueueEvent,
    RemoveMessage,
    RemovePrompt,
    RunPrompt,
    StartTurn,
)

E = TypeVar("E", bound=Effect)
S, CHILD = "s1", "agent-1"


class Bridge:
    """One session's queue, its clock, and every effect so far."""

    def __init__(self, *clients: str, limit: int = 5) -> None:
        self.state: Queue = open_queue(S, CHILD, limit=limit)
        self.effects: list[Effect] = []
        self.now = 1_000
        self.requests = 0
        for client in clients:
            self.feed(ClientJoined(at=self.now, client=client))

    def feed(self, event: QueueEvent) -> list[Effect]:
        """One step; answers its effects."""
        self.state, effects = step(self.state, event)
        self.effects.extend(effects)
        return list(effects)

    def _call(self, kind: type[QueueEvent], **fields: Any) -> list[Effect]:
        self.requests += 1
        asked = {"at": self.now, "request": f"r{self.requests}", "session": S, **fields}
        return self.feed(kind(**asked))

    def _answer(self, kind: type[E], effects: list[Effect]) -> E:
        (answer,) = (one for one in effects if type(one) is kind)
        assert isinstance(answer, kind)
        return answer

    # --- clients

    def admit(self, prompt: str, **fields: Any) -> AnswerAdmission:
        return self._answer(AnswerAdmission, self._call(Admit, prompt=prompt, **{"content": prompt, **fields}))

    def remove(self, prompt: str, **fields: Any) -> AnswerDone:
        return self._answer(AnswerDone, self._call(RemovePrompt, prompt=prompt, **fields))

    def cancel(self, **fields: Any) -> AnswerDone:
        return self._answer(AnswerDone, self._call(CancelRunning, **fields))

    def post(self, message: str, text: str = "also this", **fields: Any) -> AnswerMessage:
        return self._answer(AnswerMessage, self._call(PostMessage, message=message, text=text, **fields))

    def take_back(self, message: str, **fields: Any) -> AnswerDone:
        return self._answer(AnswerDone, self._call(RemoveMessage, message=message, **fields))

    # --- the child

    def claim(self, prompt: str | None, **fields: Any) -> tuple[bool, bool]:
        answer = self._answer(AnswerClaim, self._call(AskClaim, **{"child": CHILD, "prompt": prompt, **fields}))
        return answer.claimed, answer.has_queued_prompt

    def ask_drain(self, prompt: str | None, **fields: Any) -> list[Effect]:
        return self._call(AskDrain, **{"child": CHILD, "prompt": prompt, **fields})

    def drain(self, prompt: str | None, **fields: Any) -> tuple[list[str], bool]:
        answer = self._answer(AnswerDrain, self.ask_drain(prompt, **fields))
        return [one.message for one in answer.messages], answer.has_queued_prompt

    def start_turn(self, turn: str, **fields: Any) -> bool:
        asked = {"child": CHILD, "turn": turn, "epoch": self.state.cancel_epoch, **fields}
        return self._answer(AnswerTurn, self._call(StartTurn, **asked)).accepted

    def end_turn(self, turn: str, **fields: Any) -> None:
        self._call(EndTurn, **{"child": CHILD, "turn": turn, **fields})

    def settle(self, prompt: str, outcome: Any = "completed") -> list[Effect]:
        run = [one for one in self.all(RunPrompt) if one.prompt == prompt][-1]
        return self.feed(PromptSettled(at=self.now, effect=run.id, outcome=outcome))

    def forwarded(self, target: str) -> list[Effect]:
        sent = [one for one in self.all(ForwardCancel) if one.target == target][-1]
        return self.feed(CancelForwarded(at=self.now, effect=sent.id))

    # --- what was asked for

    def all(self, kind: type[E]) -> list[E]:
        return [one for one in self.effects if isinstance(one, kind)]

    def ran(self) -> list[str]:
        """Prompts given to the child, in order."""
        return [one.prompt for one in self.all(RunPrompt)]

    def told(self, *kinds: str) -> list[tuple[str, str | None, str]]:
        """Events of these kinds: what, about which prompt, its state."""
        return [(one.told, one.prompt, one.state) for one in self.all(Emit) if one.told in kinds]

    def ends(self) -> list[tuple[str | None, str]]:
        """Terminal events in order: the prompt and how it ended."""
        return [(prompt, state) for _, prompt, state in self.told("turn_complete", "turn_error")]
