"""What was promised to the person, kept beside the machines of the claim model: who said what, what was sent.

Nothing here reads a flag of a machine to judge it. The book hears what each machine was told and what
it asked for, and knows from that alone what may be sent (`Book.wrong` is the first thing that may
not). `places` looks through both machines and the pipes for a person's words, so that words which are
neither delivered nor anywhere are seen to be lost at the very step that lost them.
May not live here: what happens next (`claim_model`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import chain_words as said
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import GUARD_STREAMS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.core.record import Record
    from stopwarden.core.turn_state import Session

WORDS = ("user", "mid_turn")


class Book:
    """What one history has promised so far."""

    __slots__ = (
        "claim",
        "forbidden",
        "grants",
        "owed",
        "own",
        "released",
        "said",
        "staged",
        "streams",
        "void",
        "wrong",
    )

    def __init__(self) -> None:
        self.streams = 0  # of the guard, since the person last said something that was sent
        self.forbidden = ""  # why the guard may not send now; lifted when an ordinary prompt begins
        self.claim = 0  # the claim (no probe) that the running turn asked last
        self.own: tuple[str, ...] | None = None  # it was granted in time: who else was waiting then
        self.grants: tuple[tuple[int, tuple[str, ...]], ...] = ()  # granted, and the answer is on its way
        self.void = False  # what the hooks said last was overtaken by the person
        self.released = False  # a release came while the last claim or probe was out
        self.staged: tuple[tuple[str, ...], int] | None = (
            None  # words in an entry that is not committed, and the attempt
        )
        self.owed: tuple[str, ...] = ()  # admitted prompts and messages that the model has not seen
        self.said: tuple[str, ...] = ()  # delivered, but still somewhere
        self.wrong = ""

    def copy(self) -> Book:
        """Another book with the same in it."""
        made = Book.__new__(Book)
        for name in Book.__slots__:
            setattr(made, name, getattr(self, name))
        return made

    def break_rule(self, what: str) -> None:
        """The first broken rule stands."""
        self.wrong = self.wrong or what

    def forbid(self, why: str) -> None:
        """The guard may not send until an ordinary prompt begins."""
        self.forbidden = self.forbidden or why

    def turn_facts(self) -> tuple[int, bool, bool, bool]:
        """What counts only while a turn runs; the next one begins anew."""
        return self.streams, bool(self.forbidden), self.void, self.released

    # ---- what the owner's side does

    def admitted(self, name: str) -> None:
        """A prompt or a message was taken: it is owed to the model."""
        self.owed = (*self.owed, name)

    def taken_back(self, name: str) -> None:
        """The person took it out again, or was told that it will not run."""
        self.owed = tuple(one for one in self.owed if one != name)

    def answered_claim(self, number: int, granted: bool, rivals: tuple[str, ...]) -> None:
        """The owner's side has decided; `rivals` are the live prompts of others at that moment."""
        if granted:
            self.grants = (*(one for one in self.grants if one[0] != number), (number, rivals))

    # ---- what the session hears

    def heard(self, event: Record, session: Session) -> None:
        """An event is about to reach the session."""
        if isinstance(event, ev.Cancelled | ev.Rewound | ev.Disposed):
            self.forbid(f"after {type(event).__name__}")
        elif isinstance(event, ev.ModeChanged) and event.plan:
            self.forbid("in plan mode")
        elif isinstance(event, ev.QueueReleased):
            self.released = True
        elif isinstance(event, ev.DrainAnswered):
            waits = session.turn is not None and session.turn.waiting is not None
            if event.parts and waits and session.turn.waiting.id == event.id:  # type: ignore[union-attr]
                self.void = True
        elif isinstance(event, ev.ClaimAnswered):
            self._heard_claim(event, session)
        elif isinstance(event, ev.HookAnswered):
            self.void = False
        elif isinstance(event, ev.ProviderAccepted | ev.ProviderRefused):
            self._provider(isinstance(event, ev.ProviderAccepted))

    def _heard_claim(self, event: ev.ClaimAnswered, session: Session) -> None:
        rivals = dict(self.grants).get(event.id)
        turn = session.turn
        in_time = turn is not None and turn.waiting is not None and turn.waiting.id == event.id
        if event.queued and in_time and not self.released:
            self.void = True
        if event.id == self.claim and in_time:
            if event.claimed and rivals is not None:
                self.own = rivals
            elif not event.queued:
                self.forbid("after a refused claim")

    def deadline_passed(self, what: str) -> None:
        """Whoever waited has given up."""
        if what == "claim":
            self.forbid("after a claim without an answer")

    def _provider(self, accepted: bool) -> None:
        if self.staged is None:
            return
        words, attempt = self.staged
        if accepted and words:
            self.streams = 0
        if accepted and attempt:
            self.streams += 1
            if self.streams > GUARD_STREAMS:
                self.break_rule(f"I1: {self.streams} continuations without a word of the person in between")

    # ---- what the session asks for

    def asked(self, effect: ev.Effect) -> None:
        """An effect of the session, in order."""
        match effect:
            case ev.Claim():
                self.released = False
                if not effect.probe:
                    self.claim, self.own = effect.id, None
            case ev.RunHooks():
                self.void = False
            case ev.Send():
                self._send(effect)
            case ev.WriteHistory():
                self._write(effect)
            case ev.EndTurn():
                self.own = None
                if self.staged is not None:
                    self.break_rule("I4: a turn ends while an entry of it is neither committed nor taken back")
            case ev.Pass() if isinstance(effect.what, said.Exhausted):
                self.forbid("after the guard gave up")

    def began(self, plan: bool) -> None:
        """An ordinary prompt begins: a fresh chain, unless it runs in plan mode."""
        self.forbidden, self.streams, self.own = "in plan mode" if plan else "", 0, None

    def _send(self, send: ev.Send) -> None:
        words = tuple(part.id for part in send.parts if part.kind in WORDS)
        kinds = {part.kind for part in send.parts}
        self.staged = (words, send.attempt)
        if "hook_reason" in kinds and self.void:
            self.break_rule("a hook's answer is sent, though the person had spoken after it")
        if not send.attempt:
            if "guard" in kinds:
                self.break_rule("I4: the guard's words go out in a stream that is not the guard's")
            return
        if words:
            self.break_rule("the guard speaks in the same breath as the person")
        if self.forbidden:
            self.break_rule(f"I6: a continuation is sent {self.forbidden}")
        if self.own is None:
            self.break_rule("I2: a continuation is sent without a granted claim of its own")
        elif self.own:
            self.break_rule(
                f"I2: a continuation is sent, though {', '.join(self.own)} had been admitted before its claim"
            )
        self.own = None

    def _write(self, write: ev.WriteHistory) -> None:
        if write.act == "append":
            if any(part.kind == "guard" for part in write.parts):
                self.break_rule("I4: the guard's words are kept in history without a stream")
            self._deliver(part.id for part in write.parts if part.kind in WORDS)
            return
        if write.act == "commit" and self.staged is not None:
            self._deliver(self.staged[0])
        self.staged = None

    def _deliver(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self.said:
                self.break_rule(f"I5: the model is told {name} twice")
            self.taken_back(name)
            self.said = (*self.said, name)

    # ---- what lies where

    def look(self, places: set[str]) -> None:
        """Nothing that is owed may be nowhere; what was said and lies nowhere any more cannot come twice."""
        if not set(self.owed) <= places:
            lost = next(name for name in self.owed if name not in places)
            self.break_rule(f"I5: {lost} was admitted, never reached the model, and is nowhere")
        if self.said:
            self.said = tuple(name for name in self.said if name in places)


def places(queue: q.Queue, session: Session, orders: Iterable[q.Effect], answers: Iterable[ev.Answer]) -> set[str]:
    """Where words of the person can be that the model has not seen: queues, pipes, and what a turn has in hand."""
    found = {one.prompt for one in queue.entries if one.state == "queued"}
    found.update(one.message for one in queue.messages)
    for order in orders:
        if isinstance(order, q.RunPrompt):
            found.add(order.prompt)
            found.update(one.message for one in order.carried)
    parts = list(session.kept)
    for answer in answers:
        if isinstance(answer, ev.DrainAnswered):
            parts += answer.parts
    if session.next is not None:
        parts += session.next.parts
    turn = session.turn
    if turn is not None:
        if not turn.stream.begun:
            parts += turn.stream.parts
        parts += turn.tool_parts
        if turn.found is not None:
            parts += turn.found.parts
    found.update([part.id for part in parts if part.kind in WORDS])
    return found
