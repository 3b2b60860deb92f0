"""The bridge's queue under every order of events: nothing is lost, nothing is twice, nobody waits for nothing."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stopwarden.core import bounds
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.queue import open_queue, step
from stopwarden.core.queue_words import (
    Admit,
    AnswerAdmission,
    AnswerClaim,
    AnswerDrain,
    AnswerMessage,
    AskClaim,
    AskDrain,
    CancelForwarded,
    CancelRunning,
    ChildCame,
    ChildGone,
    Close,
    Effect,
    Emit,
    EndTurn,
    ForwardCancel,
    MessagesResolved,
    PostMessage,
    PromptSettled,
    Queue,
    QueueEvent,
    ReleaseAnswered,
    RemoveMessage,
    RemovePrompt,
    ResolveMessages,
    RunPrompt,
    SendRelease,
    StartTimer,
    StartTurn,
    TimerFired,
)

S = "s1"
NAMES = st.integers(0, 30)
ANSWERED = {
    RunPrompt: lambda at, one, pick: PromptSettled(
        at=at, effect=one, outcome=("completed", "cancelled", "failed")[pick % 3]
    ),
    ForwardCancel: lambda at, one, pick: CancelForwarded(at=at, effect=one, ok=bool(pick % 2)),
    SendRelease: lambda at, one, pick: ReleaseAnswered(at=at, effect=one, failed="" if pick % 2 else "gone"),
    StartTimer: lambda at, one, pick: TimerFired(at=at, effect=one),
}


class QueueUnderFire(RuleBasedStateMachine):
    """Clients, a child and a clock that do anything in any order; what was promised is kept in our own books."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Queue = open_queue(S, "c0")
        self.now = 0
        self.made = 0
        self.children = 0
        self.open: list[Effect] = []  # effects that want a reply, oldest first
        self.given: list[Effect] = []  # every effect, in order
        self.order: list[str] = []  # prompts admitted or promoted, in order
        self.live: list[str] = []  # of these, what has not been run, removed or ended, by our own books
        self.ran: list[str] = []
        self.ended: Counter[str] = Counter()
        self.accepted: list[str] = []  # messages taken
        self.heard: Counter[str] = Counter()  # messages handed over, carried, promoted or named as removed

    # --- one step, and our own books

    def feed(self, event: QueueEvent) -> list[Effect]:
        before = self.state
        self.state, effects = step(before, event)
        assert step(before, event) == (self.state, effects)  # the same answer twice
        for one in effects:
            self.book(one)
        return list(effects)

    def book(self, effect: Effect) -> None:
        self.given.append(effect)
        match effect:
            case RunPrompt():
                self.ran.append(effect.prompt)
                self.heard.update(one.message for one in effect.carried)
            case AnswerDrain():
                self.heard.update(one.message for one in effect.messages)
                assert len(effect.messages) <= bounds.MESSAGES_A_DRAIN
            case Emit(told="turn_complete" | "turn_error"):
                self.ended[str(effect.prompt)] += 1
            case Emit(told="mid_turn_message_removed"):
                self.heard.update(effect.messages)
            case Emit(told="pending_prompt_added") if effect.prompt not in self.order:
                self.order.append(str(effect.prompt))  # promoted: admissions are booked when answered
                self.heard[str(effect.prompt)] += 1
            case AnswerAdmission(status=202):
                self.order.append(str(effect.prompt))
            case _:
                pass
        if type(effect) in ANSWERED or isinstance(effect, ResolveMessages):
            self.open.append(effect)

    def request(self) -> str:
        self.made += 1
        return f"r{self.made}"

    # --- clients

    @rule(deadline=st.sampled_from([None, None, 5]), asks=st.sampled_from(["", "retry", "continue"]))
    def admit(self, deadline: int | None, asks: str) -> None:
        self.made += 1
        self.feed(
            Admit(at=self.now, request="r", session=S, prompt=f"p{self.made}", deadline=deadline, asks=asks)  # type: ignore[arg-type]
        )

    @rule(pick=NAMES)
    def remove(self, pick: int) -> None:
        names = [one.prompt for one in self.state.entries] or ["p0"]
        self.feed(RemovePrompt(at=self.now, request="r", session=S, prompt=names[pick % len(names)]))

    @rule()
    def cancel(self) -> None:
        self.feed(CancelRunning(at=self.now, request="r", session=S))

    @rule(again=st.booleans(), attached=st.booleans(), pick=NAMES)
    def post(self, again: bool, attached: bool, pick: int) -> None:
        self.made += 1
        known = again and self.accepted
        name = self.accepted[pick % len(self.accepted)] if known else f"m{self.made}"
        attachments = ("a.png",) if attached else ()
        effects = self.feed(
            PostMessage(at=self.now, request="r", session=S, message=name, text="and", attachments=attachments)
        )
        (answer,) = (one for one in effects if isinstance(one, AnswerMessage))
        if answer.accepted and not known:
            self.accepted.append(name)

    @rule(pick=NAMES)
    def take_back(self, pick: int) -> None:
        name = self.accepted[pick % len(self.accepted)] if self.accepted else "m0"
        self.feed(RemoveMessage(at=self.now, request="r", session=S, message=name))

    # --- the child

    def an_owner(self, pick: int) -> str | None:
        return [None, "stranger", self.state.turn, *(one.prompt for one in self.state.entries[:2])][pick % 5 % (3 + min(2, len(self.state.entries)))]  # fmt: skip

    @rule(pick=NAMES)
    def claim(self, pick: int) -> None:
        owner = self.an_owner(pick)
        before = self.state
        others = [name for name in self.unended() if name != owner]
        (answer,) = self.feed(
            AskClaim(at=self.now, request="r", session=S, child=self.state.child or "none", prompt=owner)
        )
        assert isinstance(answer, AnswerClaim)
        if answer.claimed:  # I2, by our own books: no prompt but the claimant's own is still to come or at work
            assert others == []
        if not answer.has_queued_prompt and self.state.wait_owner != before.wait_owner:
            assert before.wait_owner == owner  # nobody else's wait is touched

    def unended(self) -> list[str]:
        """Admitted prompts without a terminal, except one that is being stopped."""
        stopping = {one.target for one in self.state.forwards}
        return [name for name in self.order if not self.ended[name] and name not in stopping]

    @rule(pick=NAMES)
    def drain(self, pick: int) -> None:
        owner = self.an_owner(pick)
        self.feed(AskDrain(at=self.now, request="r", session=S, child=self.state.child or "none", prompt=owner))

    @rule()
    def start_turn(self) -> None:
        self.made += 1
        self.feed(
            StartTurn(
                at=self.now,
                request="r",
                session=S,
                child=self.state.child or "none",
                turn=f"t{self.made}",
                epoch=self.state.cancel_epoch,
            )
        )

    @precondition(lambda self: self.state.turn is not None)
    @rule()
    def end_turn(self) -> None:
        self.feed(EndTurn(at=self.now, request="r", session=S, child=str(self.state.child), turn=str(self.state.turn)))

    @precondition(lambda self: self.open)
    @rule(pick=NAMES, how=st.integers(0, 5), keep=st.booleans())
    def reply(self, pick: int, how: int, keep: bool) -> None:
        """Any effect is answered, late, early, or twice."""
        effect = self.open[pick % len(self.open)]
        if not keep:
            self.open.remove(effect)
        self.answer(effect, how)

    def answer(self, effect: Effect, how: int) -> None:
        if isinstance(effect, ResolveMessages):
            failed = (effect.messages[0].message,) if how == 5 else ()
            self.feed(MessagesResolved(at=self.now, effect=effect.id, failed=failed))
        else:
            self.feed(ANSWERED[type(effect)](self.now, effect.id, how))  # type: ignore[index]

    @rule(by=st.sampled_from([-1_000, 1, 900, 2_500]))
    def time_passes(self, by: int) -> None:
        self.now += by

    @precondition(lambda self: self.state.child is not None)
    @rule(really=st.integers(0, 3))
    def child_dies(self, really: int) -> None:
        if really == 3:
            self.feed(ChildGone(at=self.now, child=str(self.state.child)))

    @precondition(lambda self: self.state.child is None)
    @rule()
    def child_comes(self) -> None:
        self.children += 1
        self.feed(ChildCame(at=self.now, child=f"c{self.children}"))

    @rule(really=st.integers(0, 9))
    def close(self, really: int) -> None:
        if really == 9:
            self.feed(Close(at=self.now))

    @rule(number=st.one_of(st.just(0), st.integers(10_000, 10_010)))
    def impossible_reply(self, number: int) -> None:
        for event in (
            PromptSettled(at=self.now, effect=number, outcome="completed"),
            CancelForwarded(at=self.now, effect=number),
            ReleaseAnswered(at=self.now, effect=number),
            TimerFired(at=self.now, effect=number),
            MessagesResolved(at=self.now, effect=number),
            QueueEvent(at=self.now),
        ):
            self.refused(event)
        if self.state.child is not None:
            self.refused(ChildCame(at=self.now, child="second"))

    def refused(self, event: QueueEvent) -> None:
        """A typed error, and the state is as it was."""
        before = self.state
        with pytest.raises(IllegalEventError):
            step(self.state, event)
        assert self.state == before

    # --- what holds after every step

    @invariant()
    def nobody_waits_without_a_live_queued_prompt(self) -> None:
        """I3, stronger: not only once things are quiet."""
        if self.state.wait_owner is not None:
            assert any(one.state == "queued" and one.live for one in self.state.entries)

    @invariant()
    def prompts_run_in_order_one_at_a_time_and_end_once(self) -> None:
        assert self.ran == [name for name in self.order if name in set(self.ran)]
        assert len(set(self.ran)) == len(self.ran)
        assert all(count == 1 for count in self.ended.values())
        assert all(one.state == "queued" for one in self.state.entries[1:])

    @invariant()
    def every_prompt_is_in_the_queue_or_has_ended(self) -> None:
        """I5 for prompts: never lost."""
        held = {one.prompt for one in self.state.entries}
        assert all(name in held or self.ended[name] for name in self.order)

    @invariant()
    def every_message_is_in_one_place(self) -> None:
        """I5 for messages: waiting, or heard exactly once."""
        out = self.state.drain.messages if self.state.drain else ()
        waiting = Counter(one.message for one in out + self.state.messages)
        for name in self.accepted:
            assert waiting[name] + self.heard[name] == 1, name

    @invariant()
    def the_queue_is_bounded(self) -> None:
        out = self.state.drain.messages if self.state.drain else ()
        assert len(out + self.state.messages) <= bounds.MESSAGES_MAX
        assert len(self.state.entries) <= bounds.PROMPTS_MAX + bounds.MESSAGES_MAX

    def teardown(self) -> None:
        """Things go quiet: every effect is answered at last; nothing and nobody is left."""
        for _ in range(400):
            if self.state.child is None:
                self.child_comes()
            if self.state.turn is not None:
                self.end_turn()
            while self.open:
                self.answer(self.open.pop(0), 0)
            if not self.state.entries and self.state.turn is None:
                break
        assert (self.state.entries, self.state.messages, self.state.drain) == ((), (), None)
        assert (self.state.wait_owner, self.state.forwards) == (None, ())
        assert sorted(self.order) == sorted(self.ended.elements())
        assert all(self.heard[name] == 1 for name in self.accepted)
        assert self.state.closing == self.state.closed


# A story is made short for a reader; where rules are broken on purpose nobody reads it, and it takes minutes.
PHASES = [phase for phase in Phase if phase is not Phase.shrink or "STOPWARDEN_TEST_SOURCE" not in os.environ]

TestQueueUnderFire = QueueUnderFire.TestCase
TestQueueUnderFire.settings = settings(
    phases=PHASES,
    report_multiple_bugs=False,
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
