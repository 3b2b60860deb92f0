"""Random histories of a session's guard state: every event in every state, and what must always hold."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stopwarden.core import chain as chains
from stopwarden.core import guard as guards
from stopwarden.core.chain_words import (
    AttemptCommitted,
    AttemptCounted,
    AutomaticEnded,
    AutomaticFreed,
    AutomaticStarted,
    BudgetSet,
    Cancelled,
    Chain,
    ChainEffect,
    ChainEvent,
    ChainSuspended,
    ClaimAnswered,
    ClaimSent,
    DeferralTooLong,
    Disposed,
    ExhaustionReported,
    GateReleased,
    GateTaken,
    LineageReset,
    MidTurnAccepted,
    ModeChanged,
    PromptAbandoned,
    PromptAdmitted,
    PromptEnded,
    PromptStarted,
    Released,
    Relocated,
    RetryPaused,
    Rewound,
    SwitchSet,
    TodoObserved,
    TokensSpent,
)
from stopwarden.core.errors import IllegalEventError, SettingError
from stopwarden.core.guard import Budget
from stopwarden.core.todo_envelope import Todo, TodoList

LEFT = TodoList(items=(Todo(id="1", content="", status="pending"),))
NAME = st.sampled_from(["t1", "t2", "t3"])
OWNER = st.sampled_from(["t1", "t2", None])
OUTCOME = st.sampled_from(["ended", "failed", "cancelled", "aborted"])

ANY_EVENT = st.one_of(
    st.builds(PromptAdmitted, id=NAME, kind=st.sampled_from(["ordinary", "retry", "continue", "restore_question"])),
    st.builds(PromptStarted, id=NAME),
    st.builds(PromptAbandoned, id=NAME),
    st.builds(PromptEnded, id=NAME, outcome=OUTCOME),
    st.builds(AutomaticStarted, id=NAME, kind=st.sampled_from(["cron", "notification"]), related=st.booleans()),
    st.builds(AutomaticEnded, id=NAME, outcome=OUTCOME),
    st.builds(ClaimSent, id=st.integers(1, 9), owner=OWNER, policy=st.sampled_from(["guard", "away"])),
    st.builds(ClaimAnswered, id=st.integers(1, 9), answer=st.sampled_from([*chains.CLAIM_ANSWERS, "no answer"])),
    st.builds(Released, owner=st.sampled_from(["t1", "t2"])),
    st.builds(ModeChanged, plan=st.booleans()),
    st.sampled_from([Rewound(), GateTaken(), GateReleased(), Relocated(), Cancelled(), DeferralTooLong()]),
    st.builds(SwitchSet, switch=st.sampled_from(["off", "observe", "on", "on"])),
    st.builds(BudgetSet, budget=st.builds(Budget, attempts=st.integers(1, 2))),
    st.builds(TodoObserved, turn=NAME, todos=st.sampled_from([LEFT, LEFT, TodoList(), None])),
    st.builds(MidTurnAccepted, turn=NAME),
    st.builds(AttemptCommitted, turn=NAME, attempt=st.integers(0, 3)),
    st.builds(TokensSpent, turn=NAME, tokens=st.integers(-1, 9)),
    st.builds(ExhaustionReported, turn=NAME),
    st.builds(ChainSuspended, turn=NAME, reason=st.sampled_from([*guards.SUSPENSIONS, "mood"])),
    st.builds(RetryPaused, turn=NAME),
)
RARELY = st.just(Disposed())


def quiet(chain: Chain) -> bool:
    """Whether nothing runs, nothing is about to, and something could begin."""
    return chain.running is None and chain.admitted is None and not chain.closing and not chain.disposed


class Watched:
    """Knows from the events and effects alone what the machine should not be believed on."""

    def __init__(self) -> None:
        self.streams = 0
        self.held = False
        self.cancelled = False

    def see(self, before: Chain, event: ChainEvent, after: Chain, effects: tuple[ChainEffect, ...]) -> None:
        """One step, and what must hold of it."""
        if isinstance(event, MidTurnAccepted) or any(isinstance(one, LineageReset) for one in effects):
            self.streams = 0
        self.streams += sum(isinstance(one, AttemptCounted) for one in effects)
        assert self.streams <= 2
        assert not (before.guard.suspended and any(isinstance(one, AttemptCounted) for one in effects))
        assert not after.guard.awaiting or after.priority
        if after.priority and not before.priority:
            assert isinstance(event, ClaimAnswered)
        if isinstance(event, Cancelled) and not before.disposed:
            self.cancelled = True
        if isinstance(event, PromptStarted) and after.guard.suspended_by is None:
            self.cancelled = False
        assert not self.cancelled or chains.is_cancelled(after)
        if before.guard.suspended and not after.guard.suspended:
            assert isinstance(event, PromptStarted)
        assert set(chains.tombstones(after)) <= {claim.owner for claim in after.claims}
        assert all(claim.id <= after.last_claim for claim in after.claims)
        self._held_work(after, effects)
        hash(after)

    def _held_work(self, after: Chain, effects: tuple[ChainEffect, ...]) -> None:
        """What was held back is freed once nothing runs and nothing holds."""
        self.held = (self.held and AutomaticFreed() not in effects) or chains.holds_automatic(after)
        if quiet(after):
            assert not after.drain_when_idle or after.priority
            assert not self.held or chains.holds_automatic(after)
        if AutomaticFreed() in effects:
            assert chains.may_start_automatic(after, related=True)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(*[ANY_EVENT] * 12, RARELY), min_size=10, max_size=60))
def test_whatever_happens_in_whatever_order_the_rules_hold(events: list[ChainEvent]) -> None:
    """An event that cannot happen changes nothing; every other keeps order, trust, counts and what is held."""
    chain, watched = Chain(), Watched()
    for event in events:
        kept = chain.as_dict()
        try:
            after, effects = chains.step(chain, event)
        except (IllegalEventError, SettingError):
            assert chain.as_dict() == kept
            continue
        watched.see(chain, event, after, effects)
        for turn in ("t1", "t2", "t3"):
            said = chains.decide(after, turn, background=False)
            assert said == chains.decide(after, turn, background=False)
            assert not (after.guard.suspended and said.kind == "continue")
        chain = after


# A session that is driven sensibly goes deeper than random names do.
WALK = st.lists(st.integers(0, 999), min_size=20, max_size=120)


@settings(max_examples=120, deadline=None)
@given(WALK)
def test_long_histories_of_events_that_can_happen_keep_the_rules(choices: list[int]) -> None:
    """At each step one of the events that can happen now is taken; claims, prompts and turns overlap freely."""
    chain, watched = Chain(), Watched()
    for named, choice in enumerate(choices):
        legal = [one for one in possible(chain, named) if _can(chain, one)]
        event = legal[choice % len(legal)]
        after, effects = chains.step(chain, event)
        watched.see(chain, event, after, effects)
        chain = after


def possible(chain: Chain, named: int) -> list[ChainEvent]:
    """What might happen next, with names that fit."""
    turn = chain.running.id if chain.running else "nobody"
    waiting = chain.admitted.id if chain.admitted else "nobody"
    events: list[ChainEvent] = [
        *(PromptAdmitted(id=f"t{named}", kind=kind) for kind in ("ordinary", "retry")),
        *(PromptStarted(id=waiting), PromptAbandoned(id=waiting)),
        *(PromptEnded(id=turn, outcome=outcome) for outcome in ("ended", "failed")),
        *(AutomaticStarted(id=f"t{named}", kind="cron", related=related) for related in (True, False)),
        *(AutomaticEnded(id=turn, outcome=outcome) for outcome in ("ended", "aborted")),
        *(ClaimSent(id=chain.last_claim + 1, owner=owner) for owner in (turn, None)),
        *(ClaimAnswered(id=claim.id, answer=answer) for claim in chain.claims for answer in ("granted", "queued")),
        *(ClaimAnswered(id=claim.id, answer="deadline") for claim in chain.claims),
        *(Released(owner=claim.owner) for claim in chain.claims if claim.owner),
        *([Released(owner=chain.priority_owner)] if chain.priority_owner else []),
        *(ModeChanged(plan=True), ModeChanged(plan=False), Rewound(), Cancelled()),
        *(GateTaken(), GateReleased(), Relocated(), DeferralTooLong()),
        *(SwitchSet(switch="off"), SwitchSet(switch="on")),
        *(TodoObserved(turn=turn, todos=LEFT) for _ in range(4)),
        TodoObserved(turn=turn, todos=TodoList()),
        *(AttemptCommitted(turn=turn, attempt=attempt) for attempt in (1, 2, 3)),
        *(MidTurnAccepted(turn=turn), RetryPaused(turn=turn), ExhaustionReported(turn=turn)),
        ChainSuspended(turn=turn, reason="aborted"),
    ]
    return events


def _can(chain: Chain, event: ChainEvent) -> bool:
    try:
        chains.step(chain, event)
    except IllegalEventError:
        return False
    return True
