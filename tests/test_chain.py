"""The guard's place in a session: who may found a chain, who may claim, what a wait is and how it ends."""

from __future__ import annotations

import pytest

from stopwarden.core import chain as chains
from stopwarden.core import guard as guards
from stopwarden.core.chain_words import (
    AttemptCommitted,
    AttemptCounted,
    AutomaticEnded,
    AutomaticFreed,
    AutomaticStarted,
    BudgetSet,
    CancelAnswered,
    Cancelled,
    Chain,
    ChainEffect,
    ChainEvent,
    ChainSuspended,
    ClaimAnswered,
    ClaimSent,
    ClaimSettled,
    CommitRefused,
    DeferralTooLong,
    Disposed,
    Exhausted,
    ExhaustionReported,
    GateReleased,
    GateTaken,
    GuardChanged,
    LineageReset,
    MidTurnAccepted,
    ModeChanged,
    PriorityChanged,
    PromptAbandoned,
    PromptAdmitted,
    PromptEnded,
    PromptStarted,
    ReleaseAnswered,
    Released,
    Relocated,
    RetryPaused,
    Rewound,
    SwitchSet,
    TodoObserved,
    TokensSpent,
)
from stopwarden.core.errors import IllegalEventError, SettingError
from stopwarden.core.guard import Budget, Guard
from stopwarden.core.todo_envelope import Todo, TodoList

LEFT = TodoList(items=(Todo(id="1", content="", status="pending"), Todo(id="2", content="", status="pending")))
FINISHED = TodoList(items=(Todo(id="1", content="", status="completed"),))
NOT_GRANTED = ("refused", "malformed", "unimplemented", "deadline", "failed")


def run(chain: Chain, *events: ChainEvent) -> Chain:
    """The chain after these events."""
    for event in events:
        chain, _ = chains.step(chain, event)
    return chain


def last(chain: Chain, *events: ChainEvent) -> tuple[Chain, tuple[ChainEffect, ...]]:
    """The chain after these events, and the effects of the last one."""
    return chains.step(run(chain, *events[:-1]), events[-1])


def start(name: str, kind: str = "ordinary") -> tuple[ChainEvent, ...]:
    return PromptAdmitted(id=name, kind=kind), PromptStarted(id=name)


def working(attempts: int = 0, name: str = "p1") -> Chain:
    """A prompt runs, its list has two items left, and `attempts` of the guard's streams are used."""
    chain = run(Chain(), *start(name), TodoObserved(turn=name, todos=LEFT))
    for attempt in range(1, attempts + 1):
        chain = run(chain, AttemptCommitted(turn=name, attempt=attempt))
    return chain


def claiming(attempts: int = 0, owner: str | None = "p1") -> Chain:
    """As `working`, with claim 1 on its way."""
    return run(working(attempts), ClaimSent(id=1, owner=owner))


def yielded(attempts: int = 0) -> Chain:
    """As `working`, and a claim has found a queued prompt."""
    return run(claiming(attempts), ClaimAnswered(id=1, answer="queued"))


def deferred() -> Chain:
    """The turn has ended with items left, because background work of the chain still runs."""
    return run(working(1), PromptEnded(id="p1"))


def settled(effects: tuple[ChainEffect, ...]) -> tuple[str, str]:
    """What the claim came to, and why."""
    found = [one for one in effects if isinstance(one, ClaimSettled)]
    assert len(found) == 1
    return found[0].outcome, found[0].why


def frees(effects: tuple[ChainEffect, ...]) -> bool:
    return AutomaticFreed() in effects


def goes_on(chain: Chain, turn: str) -> bool:
    """Whether a stop of this turn, after a fresh list, would be continued by the guard."""
    chain = run(chain, TodoObserved(turn=turn, todos=LEFT))
    return chains.decide(chain, turn, background=False).kind == "continue"


# ---- prompts


@pytest.mark.case("G31")
def test_a_retry_goes_on_with_the_attempt_after_the_one_that_failed() -> None:
    """A stream that had begun and broke has cost its attempt; the trusted retry has one left."""
    failed = run(working(1), RetryPaused(turn="p1"), PromptEnded(id="p1", outcome="failed"))
    assert guards.state_name(failed.guard) == "PAUSED"
    chain, effects = last(failed, *start("p2", "retry"))
    assert chains.decide(chain, "p2", False).attempt == 2
    assert not any(isinstance(one, LineageReset) for one in effects)


@pytest.mark.case("G32")
def test_an_ordinary_prompt_clears_a_chain_that_failed() -> None:
    """The paused list of the failed turn is forgotten, and the new chain has both attempts."""
    failed = run(working(1), RetryPaused(turn="p1"), PromptEnded(id="p1", outcome="failed"))
    chain, effects = last(failed, *start("p2"))
    assert chain.guard == Guard()
    assert LineageReset(chain=chain.number) in effects


@pytest.mark.case("G33")
@pytest.mark.parametrize("kind", ["retry", "continue", "restore_question"])
def test_a_retry_without_trust_takes_all_background_work_for_old(kind: str) -> None:
    """Nothing is left of the chain it could go on with, so what runs now belongs to none."""
    idle = run(Chain(), *start("p1"), PromptEnded(id="p1", outcome="failed"))
    chain, effects = last(idle, *start("p2", kind))
    assert LineageReset(chain=chain.number) in effects
    assert goes_on(chain, "p2")


@pytest.mark.parametrize("kind", ["retry", "continue", "restore_question"])
def test_a_retry_lifts_no_hard_suspension(kind: str) -> None:
    """The seed: only an ordinary prompt does. The reason stands as it was."""
    given_up = run(working(2), ExhaustionReported(turn="p1"), PromptEnded(id="p1"))
    chain, effects = last(given_up, *start("p2", kind))
    assert chain.guard.suspended_by == "exhausted"
    assert LineageReset(chain=chain.number) in effects
    assert not goes_on(chain, "p2")


@pytest.mark.case("G34")
def test_a_retry_cancelled_before_it_starts_frees_its_place_and_leaves_the_chain_locked() -> None:
    """While the old turn unwinds the waiting retry is cancelled: nothing waits, the chain is held, a second cancel finds nothing."""
    waiting = run(working(1), RetryPaused(turn="p1"), PromptAdmitted(id="p2", kind="retry"))
    chain = run(waiting, PromptAbandoned(id="p2"), PromptEnded(id="p1", outcome="cancelled"))
    assert (chain.admitted, chain.running, chain.guard.suspended_by) == (None, None, "cancelled")
    assert chains.step(chain, Cancelled())[1][0] == CancelAnswered(running=False)
    by_cancel, effects = last(waiting, Cancelled())
    assert effects[0] == CancelAnswered(running=True)
    assert (by_cancel.admitted, by_cancel.guard.suspended_by) == (None, "cancelled")
    assert run(by_cancel, PromptAbandoned(id="p2")) == by_cancel


@pytest.mark.case("G35")
def test_a_list_written_late_after_trust_was_lost_neither_arms_nor_counts() -> None:
    """Trust goes while a stream of the guard is opened: the late list does not arm, the attempt is refused."""
    lost = run(working(), ModeChanged(plan=True), ModeChanged(plan=False), TodoObserved(turn="p1", todos=LEFT))
    chain, effects = last(lost, AttemptCommitted(turn="p1", attempt=1))
    assert effects == (CommitRefused(attempt=1, why="plan"),)
    assert not goes_on(chain, "p1")


@pytest.mark.case("G36")
@pytest.mark.parametrize(
    "late",
    [
        ChainSuspended(turn="p1", reason="aborted"),
        RetryPaused(turn="p1"),
        MidTurnAccepted(turn="p1"),
        TokensSpent(turn="p1", tokens=7),
        PromptEnded(id="p1", outcome="cancelled"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_a_replaced_turn_still_reports_leaves_the_newer_prompts_state_alone(late: ChainEvent) -> None:
    """The old turn unwinds under a retry that goes on with its chain: guard and order stay as the retry has them."""
    waiting = run(working(1), PromptAdmitted(id="p2", kind="retry"))
    after = run(waiting, late)
    assert (after.guard, after.priority_owner, after.admitted) == (waiting.guard, None, waiting.admitted)
    assert chains.decide(after, "p1", False).why in ("superseded", "over")


def test_reports_of_a_turn_that_is_over_do_nothing() -> None:
    newer = run(working(1), PromptAdmitted(id="p2"), PromptEnded(id="p1"), PromptStarted(id="p2"))
    for late in (
        TodoObserved(turn="p1", todos=LEFT),
        MidTurnAccepted(turn="p1"),
        ExhaustionReported(turn="p1"),
        ChainSuspended(turn="p1", reason="aborted"),
    ):
        assert chains.step(newer, late) == (newer, ())
    assert chains.step(newer, AttemptCommitted(turn="p1", attempt=2)) == (
        newer,
        (CommitRefused(attempt=2, why="over"),),
    )


@pytest.mark.case("G37")
def test_the_new_chains_snapshot_is_taken_when_it_starts_and_not_when_it_is_admitted() -> None:
    """What the old turn sets going while it unwinds is already old for the new chain."""
    _, at_admission = last(working(), PromptAdmitted(id="p2"))
    assert not any(isinstance(one, LineageReset) for one in at_admission)
    chain, at_start = last(working(), PromptAdmitted(id="p2"), PromptEnded(id="p1"), PromptStarted(id="p2"))
    assert LineageReset(chain=chain.number) in at_start


@pytest.mark.case("G38")
def test_what_the_newer_prompt_must_let_go_survives_the_older_prompts_end() -> None:
    """The older turn's end neither drains nor forgets it; the newer one's end drains, even after an error."""
    waiting = run(working(), PromptAdmitted(id="p2"))
    after, effects = last(waiting, PromptEnded(id="p1", outcome="cancelled"))
    assert (after.drain_when_idle, frees(effects)) == (True, False)
    _, effects = last(after, PromptStarted(id="p2"), PromptEnded(id="p2", outcome="failed"))
    assert frees(effects)


def test_between_admission_and_start_the_old_turns_list_cannot_arm() -> None:
    waiting = run(working(), PromptAdmitted(id="p2"))
    assert not goes_on(waiting, "p1")
    fresh = run(waiting, TodoObserved(turn="p1", todos=LEFT), PromptEnded(id="p1"), PromptStarted(id="p2"))
    assert fresh.guard == Guard()


def test_an_attempt_under_way_counts_when_a_retry_of_its_chain_was_admitted_meanwhile() -> None:
    """Otherwise the chain would get a third stream."""
    waiting = run(working(1), PromptAdmitted(id="p2", kind="retry"))
    after, effects = last(waiting, AttemptCommitted(turn="p1", attempt=2))
    assert AttemptCounted(attempt=2, cap=2, unfinished=2) in effects
    chain = run(after, PromptEnded(id="p1"), PromptStarted(id="p2"))
    assert chains.decide(chain, "p2", False).kind == "exhausted"


def test_a_prompt_that_meets_plan_mode_before_it_starts_founds_no_chain() -> None:
    """It runs in plan mode, so it is no ordinary prompt; leaving the mode within it does not help."""
    chain = run(Chain(), PromptAdmitted(id="p1"), ModeChanged(plan=True), PromptStarted(id="p1"))
    assert chain.guard.suspended_by == "plan"
    assert not goes_on(run(chain, ModeChanged(plan=False)), "p1")


# ---- the claim


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("malformed", marks=pytest.mark.case("G50")),
        pytest.param("unimplemented", marks=pytest.mark.case("G51")),
        pytest.param("deadline", marks=pytest.mark.case("G52")),
        "refused",
        "failed",
    ],
)
def test_a_claim_that_is_not_granted_locks_the_guard_and_nothing_is_sent(answer: str) -> None:
    """A bad answer, no such method, or two seconds of silence: no continuation, until an ordinary prompt."""
    chain, effects = last(claiming(), ClaimAnswered(id=1, answer=answer))
    assert settled(effects) == ("unavailable", answer)
    assert (chain.guard, chain.claims) == (Guard(suspended_by="claim_unavailable"), ())
    assert not goes_on(chain, "p1")


@pytest.mark.case("G50")
@pytest.mark.parametrize(
    ("claimed", "queued", "answer"),
    [
        (True, False, "granted"),
        (False, True, "queued"),
        (False, False, "refused"),
        (True, True, "malformed"),
        (1, False, "malformed"),
        (True, None, "malformed"),
        ("true", False, "malformed"),
    ],
)
def test_only_three_answers_are_answers(claimed: object, queued: object, answer: str) -> None:
    """Two real booleans that do not contradict each other; anything else is malformed."""
    assert chains.read_claim_answer(claimed, queued) == answer
    assert answer in chains.CLAIM_ANSWERS


def test_a_granted_claim_goes_on() -> None:
    chain, effects = last(claiming(), ClaimAnswered(id=1, answer="granted"))
    assert settled(effects) == ("claimed", "")
    assert (chain.claims, chains.decide(chain, "p1", False).attempt) == ((), 1)


def test_a_granted_claim_lifts_a_pause() -> None:
    paused = run(claiming(1), RetryPaused(turn="p1"), ClaimAnswered(id=1, answer="granted"))
    assert guards.state_name(paused.guard) == "ARMED"


# Why a turn itself may be held back; "superseded" is what an admission says.
REASONS = {reason: row for reason, row in guards.SUSPENSIONS.items() if reason != "superseded"}


@pytest.mark.case("G53")
@pytest.mark.parametrize("reason", REASONS)
def test_a_claim_granted_to_a_chain_that_was_locked_meanwhile_sends_nothing(reason: str) -> None:
    """Whatever locked it while the claim was out, the permission comes too late."""
    chain, effects = last(claiming(), ChainSuspended(turn="p1", reason=reason), ClaimAnswered(id=1, answer="granted"))
    assert settled(effects) == ("unavailable", "suspended")
    assert chain.guard.suspended_by == reason


@pytest.mark.case("G54")
def test_a_queued_prompt_found_by_a_locked_chain_goes_first_but_gives_no_trust_back() -> None:
    """The order is known and kept for its owner; the guard stays locked and waits for nothing."""
    cancelled = run(claiming(), Cancelled())
    chain, effects = last(cancelled, ClaimAnswered(id=1, answer="queued"))
    assert settled(effects) == ("queued", "")
    assert (chain.priority_owner, chain.guard.suspended_by, chain.guard.awaiting) == ("p1", "cancelled", False)
    assert PriorityChanged(owner="p1") in effects
    assert not chains.may_start_automatic(run(chain, PromptEnded(id="p1")), related=True)


@pytest.mark.case("G55")
def test_a_queued_answer_while_the_session_closes_sets_no_order() -> None:
    """A session whose gate is held will run no queued prompt before it opens again."""
    chain, effects = last(claiming(), GateTaken(), ClaimAnswered(id=1, answer="queued"))
    assert settled(effects) == ("unavailable", "closing")
    assert not chain.priority


@pytest.mark.case("G56")
def test_a_release_that_overtakes_the_answer_leaves_no_wait() -> None:
    """The late answer installs nothing, no mark and no count stays, a second release finds nothing, and held results run."""
    released, effects = last(claiming(), Released(owner="p1"))
    assert ReleaseAnswered(owner="p1", released=True) in effects
    assert (chains.tombstones(released), chains.claims_in_flight(released, "p1")) == ({"p1"}, 1)
    chain, effects = last(released, ClaimAnswered(id=1, answer="queued"))
    assert settled(effects) == ("unavailable", "released")
    assert (chain.priority, chain.guard.suspended_by) == (False, "released")
    assert (chains.tombstones(chain), chains.claims_in_flight(chain, "p1")) == (frozenset(), 0)
    again, effects = last(chain, Released(owner="p1"))
    assert (again, effects) == (chain, (ReleaseAnswered(owner="p1", released=False),))
    ended, effects = last(chain, PromptEnded(id="p1", outcome="failed"))
    assert frees(effects)
    assert chains.may_start_automatic(ended, related=False)


def test_a_release_that_overtakes_a_second_answer_leaves_the_first_owners_wait() -> None:
    """Two owners, one wait: the mark is set, and the wait of the other one is not touched."""
    other = yielded().replace(priority_owner="other")
    chain, effects = last(other, ClaimSent(id=2, owner="p1"), Released(owner="p1"))
    assert ReleaseAnswered(owner="p1", released=True) in effects
    assert (chain.priority_owner, chain.guard.suspended, chains.tombstones(chain)) == ("other", False, {"p1"})


def test_a_mark_goes_only_with_the_claim_it_was_made_for() -> None:
    """Two claims of one owner are out; both are void after the release, and both must settle."""
    released = run(claiming(), ClaimSent(id=2, owner="p1"), Released(owner="p1"), ClaimAnswered(id=2, answer="queued"))
    assert (released.priority, chains.tombstones(released)) == (False, {"p1"})
    assert not run(released, ClaimAnswered(id=1, answer="queued")).claims


@pytest.mark.case("G57")
def test_a_prompt_after_the_grant_does_not_stop_that_stream_but_the_next() -> None:
    """Admitted while the granted stream is prepared: that one is not held, a further claim finds the prompt."""
    granted = run(claiming(), ClaimAnswered(id=1, answer="granted"), AttemptCommitted(turn="p1", attempt=1))
    assert granted.guard.attempts == 1
    chain = run(granted, ClaimSent(id=2, owner="p1"), ClaimAnswered(id=2, answer="queued"))
    assert chains.decide(chain, "p1", False) == guards.Decision(kind="inactive", why="awaiting")
    _, effects = last(chain, AttemptCommitted(turn="p1", attempt=2))
    assert effects == (CommitRefused(attempt=2, why="awaiting"),)


@pytest.mark.case("G59")
def test_no_claim_is_decided_for_in_plan_mode() -> None:
    """Plan mode entered while the stream is prepared: there is no decision to go on, and no claim to make."""
    chain = run(working(), ModeChanged(plan=True))
    assert chains.decide(chain, "p1", False) == guards.Decision(kind="inactive", why="plan")
    assert chains.decide_tool_closure(chain, "p1", 1, False).kind == "inactive"


def test_an_ownerless_claim_that_is_told_of_a_queue_is_refused() -> None:
    """Nobody could ever release such a wait."""
    chain, effects = last(claiming(owner=None), ClaimAnswered(id=1, answer="queued"))
    assert settled(effects) == ("unavailable", "ownerless")
    assert not chain.priority
    assert settled(last(claiming(owner=None), ClaimAnswered(id=1, answer="granted"))[1]) == ("claimed", "")


def test_the_answer_to_a_claim_given_up_on_does_nothing() -> None:
    given_up = run(claiming(), ClaimAnswered(id=1, answer="deadline"))
    assert chains.step(given_up, ClaimAnswered(id=1, answer="granted")) == (given_up, ())


@pytest.mark.parametrize("answer", chains.CLAIM_ANSWERS)
def test_an_answer_for_a_chain_that_was_replaced_touches_nothing_of_the_new_one(answer: str) -> None:
    """The queued prompt it tells of may be the very one that runs now."""
    newer = run(claiming(), PromptAdmitted(id="p2"), PromptEnded(id="p1"), PromptStarted(id="p2"))
    newer = run(newer, TodoObserved(turn="p2", todos=LEFT))
    chain, effects = last(newer, ClaimAnswered(id=1, answer=answer))
    assert settled(effects) == ("unavailable", "superseded")
    assert chain == newer.replace(claims=())


def test_a_release_for_a_chain_that_was_replaced_touches_nothing_of_the_new_one() -> None:
    newer = run(claiming(1), PromptAdmitted(id="p2", kind="retry"))
    assert chains.step(newer, Released(owner="p1")) == (newer, (ReleaseAnswered(owner="p1", released=False),))


def test_the_refusal_of_one_owner_leaves_the_wait_of_another() -> None:
    other = yielded().replace(priority_owner="other")
    chain = run(other, ClaimSent(id=2, owner="p1"), ClaimAnswered(id=2, answer="refused"))
    assert (chain.priority_owner, chain.guard.suspended_by) == ("other", "claim_unavailable")


@pytest.mark.parametrize(("owner", "stays"), [("p1", None), (None, None), ("other", "p1")])
def test_a_later_grant_ends_the_wait_of_its_own_owner(owner: str | None, stays: str | None) -> None:
    """Without an owner nothing at all is live, so nothing is waited for; another owner's wait stays."""
    chain = run(yielded(), ClaimSent(id=2, owner=owner), ClaimAnswered(id=2, answer="granted"))
    assert chain.priority_owner == stays
    assert not chain.guard.awaiting


def test_an_away_claim_is_not_bound_by_the_guards_own_lock_but_by_a_cancel() -> None:
    """The guard gave up; the away check may still go on, until the person cancels."""
    given_up = run(working(2), ExhaustionReported(turn="p1"), ClaimSent(id=1, owner="p1", policy="away"))
    assert settled(last(given_up, ClaimAnswered(id=1, answer="granted"))[1]) == ("claimed", "")
    cancelled = run(given_up, Cancelled())
    assert chains.is_cancelled(cancelled)
    assert settled(last(cancelled, ClaimAnswered(id=1, answer="granted"))[1]) == ("unavailable", "suspended")


def test_an_away_claim_that_fails_does_not_lock_the_guard() -> None:
    chain = run(working(), ClaimSent(id=1, owner="p1", policy="away"), ClaimAnswered(id=1, answer="deadline"))
    assert goes_on(chain, "p1")


# ---- release, promotion, order


@pytest.mark.case("G62")
def test_a_chain_that_yielded_ends_when_the_queue_is_empty_after_all() -> None:
    """The release ends it; a second one finds nothing; a related result later cannot arm it again."""
    waiting = run(yielded(), PromptEnded(id="p1"))
    chain, effects = last(waiting, Released(owner="p1"))
    assert ReleaseAnswered(owner="p1", released=True) in effects
    assert frees(effects)
    assert (chain.priority, chain.guard.suspended_by) == (False, "released")
    assert ReleaseAnswered(owner="p1", released=False) in chains.step(chain, Released(owner="p1"))[1]
    assert not goes_on(run(chain, AutomaticStarted(id="n1", kind="notification", related=True)), "n1")


@pytest.mark.case("G63")
def test_a_release_for_an_older_owner_leaves_the_newer_wait() -> None:
    """Only the owner that waits can be released."""
    waiting = run(yielded(), PromptEnded(id="p1"))
    chain, effects = last(waiting, Released(owner="p0"))
    assert (chain, effects) == (waiting, (ReleaseAnswered(owner="p0", released=False),))


@pytest.mark.case("G64")
def test_a_released_chain_does_not_arm_again() -> None:
    """A list that is written after the release finds the chain locked."""
    assert not goes_on(run(yielded(), Released(owner="p1")), "p1")


@pytest.mark.case("G65")
def test_a_queued_prompt_that_is_a_trusted_retry_ends_the_wait_and_goes_on() -> None:
    """The same chain goes on with the attempts it has left."""
    chain = run(yielded(1), PromptEnded(id="p1"), *start("p2", "retry"))
    assert not chain.priority
    assert chains.decide(chain, "p2", False).attempt == 2


@pytest.mark.case("G66")
@pytest.mark.parametrize("related", [True, False])
def test_a_queued_prompt_runs_before_any_automatic_turn(related: bool) -> None:
    """While its turn is to come, not even a result of the chain itself may begin one."""
    waiting, effects = last(yielded(), PromptEnded(id="p1"))
    assert not frees(effects)
    assert not chains.may_start_automatic(waiting, related)
    with pytest.raises(IllegalEventError):
        run(waiting, AutomaticStarted(id="n1", kind="notification", related=related))
    assert not chains.may_suggest(waiting)


@pytest.mark.case("G67")
def test_words_drained_with_the_hint_do_not_end_the_order() -> None:
    """Text came together with a queued prompt: the chain takes the text, the prompt still goes first."""
    chain = run(yielded(1), MidTurnAccepted(turn="p1"))
    assert (chain.priority_owner, chain.guard.attempts) == ("p1", 0)
    assert chains.decide(chain, "p1", False).why == "awaiting"


@pytest.mark.case("G68")
def test_a_prompt_in_plan_mode_ends_a_stale_wait_and_founds_no_chain() -> None:
    """It is the queued prompt's turn, so nothing waits; it is no ordinary one, so the guard stays locked."""
    planned = run(yielded(), PromptEnded(id="p1"), ModeChanged(plan=True))
    chain, effects = last(planned, *start("p2"))
    assert (chain.priority, chain.guard.suspended_by) == (False, "plan")
    assert not any(isinstance(one, LineageReset) for one in effects)
    assert not goes_on(run(chain, ModeChanged(plan=False)), "p2")


@pytest.mark.case("G69")
@pytest.mark.parametrize("event", [ModeChanged(plan=True), Rewound()], ids=lambda event: type(event).__name__)
def test_plan_mode_and_rewinding_keep_the_order_and_a_release_still_works(event: ChainEvent) -> None:
    """Trust is gone, the queued prompt still goes first, and its release still ends the wait."""
    waiting = run(yielded(), PromptEnded(id="p1"))
    chain, effects = last(waiting, event)
    assert (chain.priority_owner, frees(effects), chain.guard.suspended) == ("p1", False, True)
    released, effects = last(chain, Released(owner="p1"))
    assert ReleaseAnswered(owner="p1", released=True) in effects
    assert (released.priority, frees(effects)) == (False, True)


@pytest.mark.case("G70")
def test_a_queued_answer_still_orders_after_trust_was_cleared() -> None:
    """Trust went while the queue was asked: the queued prompt is first all the same."""
    chain = run(claiming(), ModeChanged(plan=True), ClaimAnswered(id=1, answer="queued"))
    assert (chain.priority_owner, chain.guard.awaiting) == ("p1", False)


@pytest.mark.case("G71")
def test_held_work_runs_when_the_queued_prompt_fails_before_it_has_a_list() -> None:
    """What the old chain held back is let go although the prompt that replaced it ended in an error."""
    chain = run(yielded(), PromptEnded(id="p1"), *start("p2"))
    assert frees(last(chain, PromptEnded(id="p2", outcome="failed"))[1])


@pytest.mark.case("G72")
def test_held_work_runs_when_the_queued_prompt_is_cancelled() -> None:
    """Cancelled while it runs, or before it could begin: what was held back is let go."""
    waiting = run(yielded(), PromptEnded(id="p1"))
    assert frees(last(waiting, *start("p2"), PromptEnded(id="p2", outcome="cancelled"))[1])
    assert frees(last(waiting, PromptAdmitted(id="p2"), PromptAbandoned(id="p2"))[1])


@pytest.mark.case("G73")
def test_held_work_runs_when_a_chain_lost_its_trust_and_its_prompt_failed() -> None:
    """Plan mode ended the armed chain in the middle; the error at the end does not keep anything back."""
    chain = run(working(), ModeChanged(plan=True))
    assert frees(last(chain, PromptEnded(id="p1", outcome="failed"))[1])


@pytest.mark.case("G74")
def test_an_error_of_a_chain_that_held_nothing_drains_nothing_more() -> None:
    """Only what was held back needs a push after an error; a turn that ends well always gives one."""
    plain = run(Chain(), *start("p1"))
    assert not frees(last(plain, PromptEnded(id="p1", outcome="failed"))[1])
    assert frees(last(plain, PromptEnded(id="p1"))[1])


@pytest.mark.case("G75")
def test_a_queued_prompt_comes_before_the_closing_reply() -> None:
    """The list is finished and its results could go back: a queued prompt takes the turn instead."""
    finished = run(working(1), TodoObserved(turn="p1", todos=FINISHED))
    assert chains.decide_tool_closure(finished, "p1", 1, False).tool_closure
    chain = run(finished, ClaimSent(id=1, owner="p1"), ClaimAnswered(id=1, answer="queued"))
    assert chains.decide_tool_closure(chain, "p1", 1, False).why == "awaiting"
    assert guards.state_name(chain.guard) == "AWAITING"


@pytest.mark.parametrize(("reason", "row"), REASONS.items())
def test_a_hard_suspension_ends_the_wait_except_where_its_row_keeps_the_order(
    reason: str, row: guards.Suspension
) -> None:
    chain = run(yielded(), ChainSuspended(turn="p1", reason=reason))
    assert chain.priority_owner == ("p1" if row.keeps_priority else None)
    assert not chain.guard.awaiting


# ---- automatic turns


@pytest.mark.case("G110")
def test_a_result_of_the_chain_resumes_it_with_its_attempts() -> None:
    """Deferred with one attempt used, the chain goes on with the second when its result arrives."""
    chain, effects = last(deferred(), AutomaticStarted(id="n1", kind="notification", related=True))
    assert chains.decide(chain, "n1", False).attempt == 2
    assert not any(isinstance(one, LineageReset) for one in effects)


@pytest.mark.case("G111")
def test_attempts_are_kept_over_a_background_result() -> None:
    """A result is no new word of the person: both attempts used stay used."""
    waiting = run(working(2), PromptEnded(id="p1"))
    chain = run(waiting, AutomaticStarted(id="n1", kind="notification", related=True))
    assert chains.decide(chain, "n1", False).kind == "exhausted"


@pytest.mark.case("G112")
def test_a_related_result_lifts_a_pause() -> None:
    """The provider failed before; the chain's own result brings it back."""
    paused = run(working(1), RetryPaused(turn="p1"), PromptEnded(id="p1", outcome="failed"))
    chain = run(paused, AutomaticStarted(id="n1", kind="notification", related=True))
    assert chains.decide(chain, "n1", False).attempt == 2


@pytest.mark.case("G113")
def test_an_unrelated_result_cannot_come_before_a_chain_that_waits() -> None:
    """Only the chain's own results may begin a turn while it waits."""
    assert not chains.may_start_automatic(deferred(), related=False)
    assert chains.may_start_automatic(deferred(), related=True)
    with pytest.raises(IllegalEventError):
        run(deferred(), AutomaticStarted(id="c1", kind="cron"))


@pytest.mark.case("G114")
@pytest.mark.parametrize(
    "ends",
    [(Cancelled(),), (Rewound(),), (GateTaken(), Relocated(), GateReleased())],
    ids=["cancelled", "rewound", "moved"],
)
def test_a_related_result_cannot_bring_back_a_chain_that_was_ended(ends: tuple[ChainEvent, ...]) -> None:
    """After a cancel, a rewind or a move to another directory even the chain's own result only reports."""
    ended = run(deferred(), *ends)
    chain, effects = last(ended, AutomaticStarted(id="n1", kind="notification", related=True))
    assert not goes_on(chain, "n1")
    assert not any(isinstance(one, LineageReset) for one in effects)


@pytest.mark.case("G115", "G116")
@pytest.mark.parametrize("related", [True, False])
@pytest.mark.parametrize("kind", ["cron", "notification"])
def test_no_automatic_turn_lifts_a_suspension(kind: str, related: bool) -> None:
    """A chain that gave up stays so, whatever result or scheduled prompt comes, its own or another's."""
    given_up = run(working(2), ExhaustionReported(turn="p1"), PromptEnded(id="p1"))
    chain, _ = last(given_up, AutomaticStarted(id="a1", kind=kind, related=related))
    assert chain.guard.suspended_by == "exhausted"
    assert not goes_on(chain, "a1")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("notification", marks=pytest.mark.case("G117")),
        pytest.param("cron", marks=pytest.mark.case("G118")),
    ],
)
def test_an_automatic_turn_of_its_own_founds_an_unarmed_chain_and_may_arm_it(kind: str) -> None:
    """Nothing is suspended or pending: what was known before is forgotten, and its own list counts."""
    finished = run(working(1), TodoObserved(turn="p1", todos=FINISHED), PromptEnded(id="p1"))
    chain, effects = last(finished, AutomaticStarted(id="a1", kind=kind))
    assert chain.guard == Guard()
    assert LineageReset(chain=chain.number) in effects
    assert goes_on(chain, "a1")


@pytest.mark.case("G119")
@pytest.mark.parametrize("kind", ["cron", "notification"])
def test_an_automatic_turn_that_is_cut_off_suspends_its_chain(kind: str) -> None:
    """Its list stays unfinished, and nothing automatic goes on with it."""
    started = run(Chain(), AutomaticStarted(id="a1", kind=kind), TodoObserved(turn="a1", todos=LEFT))
    chain, effects = last(started, AutomaticEnded(id="a1", outcome="aborted"))
    assert chain.guard.suspended_by == "aborted"
    assert frees(effects)
    assert not goes_on(run(chain, AutomaticStarted(id="a2", kind=kind, related=True)), "a2")


def test_an_automatic_turn_cut_off_by_a_prompt_leaves_the_guard_to_the_prompt() -> None:
    started = run(Chain(), AutomaticStarted(id="a1", kind="cron"), TodoObserved(turn="a1", todos=LEFT))
    chain, effects = last(started, PromptAdmitted(id="p1", kind="retry"), AutomaticEnded(id="a1", outcome="aborted"))
    assert effects == ()
    assert chains.decide(run(chain, PromptStarted(id="p1")), "p1", False).kind == "continue"


def test_what_an_automatic_turn_left_in_the_queue_runs_although_the_prompt_that_cut_it_off_never_began() -> None:
    """The queue was being worked off; a prompt that comes between and goes away must not leave it standing."""
    started = run(Chain(), AutomaticStarted(id="a1", kind="notification"), PromptAdmitted(id="p1"))
    ended, effects = last(started, AutomaticEnded(id="a1", outcome="aborted"))
    assert not frees(effects)
    assert frees(last(ended, PromptAbandoned(id="p1"))[1])
    assert frees(last(ended, PromptStarted(id="p1"), PromptEnded(id="p1", outcome="failed"))[1])


@pytest.mark.case("G120")
def test_plan_mode_in_and_out_during_the_wait_ends_the_chain() -> None:
    """The chain waited for background work; after plan mode its result revives nothing, and others run again."""
    planned, effects = last(deferred(), ModeChanged(plan=True))
    assert frees(effects)
    chain = run(planned, ModeChanged(plan=False), AutomaticStarted(id="n1", kind="notification", related=True))
    assert not goes_on(chain, "n1")


def test_an_automatic_turn_in_plan_mode_is_locked() -> None:
    chain = run(Chain(), ModeChanged(plan=True), AutomaticStarted(id="c1", kind="cron"))
    assert chain.guard.suspended_by == "plan"


def test_with_the_guard_off_automatic_turns_change_nothing() -> None:
    off = run(Chain(), SwitchSet(switch="off"))
    chain, effects = last(off, AutomaticStarted(id="c1", kind="cron"))
    assert (chain.guard, effects) == (off.guard, ())


@pytest.mark.case("G125")
def test_rewinding_frees_what_the_chain_held_back() -> None:
    """History was restored: the chain is over, and results that waited for it may run."""
    assert frees(last(deferred(), Rewound())[1])


def test_a_wait_past_its_limit_lets_others_run_as_guests() -> None:
    """A guest's list, words and end do not touch the chain; the chain's own result still resumes it."""
    late, effects = last(deferred(), DeferralTooLong())
    assert frees(effects)
    guest, effects = last(late, AutomaticStarted(id="c1", kind="cron"))
    assert effects == ()
    assert chains.decide(guest, "c1", False).why == "guest"
    after = run(guest, TodoObserved(turn="c1", todos=FINISHED), MidTurnAccepted(turn="c1"))
    assert CommitRefused(attempt=2, why="guest") in chains.step(after, AttemptCommitted(turn="c1", attempt=2))[1]
    after, effects = last(after, AutomaticEnded(id="c1", outcome="aborted"))
    assert frees(effects)
    assert after.guard == deferred().guard
    resumed = run(after, AutomaticStarted(id="n1", kind="notification", related=True))
    assert chains.decide(resumed, "n1", False).attempt == 2
    assert not chains.may_start_automatic(run(resumed, AutomaticEnded(id="n1")), related=False)


# ---- cancel, exhaustion, settings, ends


def test_a_cancel_holds_although_nothing_runs() -> None:
    """Design section 3: a chain that only waits for background work is over when the person cancels."""
    chain, effects = last(deferred(), Cancelled())
    assert effects[0] == CancelAnswered(running=False)
    assert frees(effects)
    assert chains.is_cancelled(chain)
    assert not goes_on(run(chain, *start("p2", "retry")), "p2")
    assert goes_on(run(chain, *start("p2")), "p2")


def test_exhaustion_is_told_once_with_what_was_used_up() -> None:
    """A program can tell it from the second attempt without reading any text."""
    spent = run(working(2), TokensSpent(turn="p1", tokens=5))
    chain, effects = last(spent, ExhaustionReported(turn="p1"))
    assert Exhausted(attempts=2, cap=2, unfinished=2, why="attempts") in effects
    changed = [one for one in effects if isinstance(one, GuardChanged)]
    assert [(one.was, one.state, one.suspended_by) for one in changed] == [("ARMED", "SUSPENDED", "exhausted")]
    assert chains.step(chain, ExhaustionReported(turn="p1")) == (chain, ())


def test_turning_the_guard_off_lets_go_what_it_held_back() -> None:
    chain, effects = last(deferred(), SwitchSet(switch="off"))
    assert frees(effects)
    assert chain.guard.attempts == 1
    assert run(chain, SwitchSet(switch="on")) == deferred()
    with pytest.raises(SettingError):
        run(chain, SwitchSet(switch="perhaps"))
    assert run(chain, BudgetSet(budget=Budget(attempts=1))).guard.budget.attempts == 1


@pytest.mark.case("G135")
def test_a_session_put_away_is_locked_and_a_late_list_does_nothing() -> None:
    """It has its own reason; lists, prompts and results that come after change nothing, claims end without a wait."""
    chain = run(claiming(1), Disposed())
    assert (chain.guard, chain.disposed, chain.drain_when_idle) == (Guard(suspended_by="disposed"), True, False)
    assert chains.step(chain, TodoObserved(turn="p1", todos=LEFT)) == (chain, ())
    assert not goes_on(chain, "p1")
    assert settled(last(chain, ClaimAnswered(id=1, answer="queued"))[1]) == ("unavailable", "disposed")
    assert chains.step(chain, Released(owner="p1"))[1] == (ReleaseAnswered(owner="p1", released=False),)
    assert chains.step(chain, Disposed()) == (chain, ())
    assert chains.step(chain, PromptEnded(id="p1", outcome="cancelled")) == (chain.replace(running=None), ())


@pytest.mark.case("G138")
def test_a_gate_let_go_after_the_session_was_put_away_opens_nothing() -> None:
    """No turn begins in a session that is gone."""
    chain = run(Chain(), GateTaken(), Disposed(), GateReleased())
    assert not chains.may_start_automatic(chain, related=True)
    with pytest.raises(IllegalEventError):
        run(chain, PromptAdmitted(id="p1"))


def test_a_gate_holds_turns_back_and_lets_them_go() -> None:
    held = run(Chain(), GateTaken())
    assert not chains.may_start_automatic(held, related=False)
    opened, effects = last(held, GateReleased())
    assert frees(effects)
    assert chains.step(opened, GateReleased()) == (opened, ())


@pytest.mark.case("G141")
def test_the_gate_alone_suspends_nothing_and_a_real_move_does() -> None:
    """A move that turns out to be none leaves the chain as it was; a real one ends it, also if it then fails."""
    looked = run(working(), GateTaken(), GateReleased())
    assert goes_on(looked, "p1")
    moved = run(yielded(), GateTaken(), Relocated(), GateReleased())
    assert (moved.guard.suspended_by, moved.priority) == ("relocated", False)
    assert not goes_on(moved, "p1")


@pytest.mark.parametrize(
    ("chain", "event"),
    [
        (Chain(), PromptStarted(id="p1")),
        (Chain(), PromptEnded(id="p1")),
        (Chain(), AutomaticEnded(id="a1")),
        (Chain(), ClaimSent(id=1, owner="p1")),
        (Chain(), ClaimAnswered(id=1, answer="granted")),
        (Chain(), Relocated()),
        (Chain(), DeferralTooLong()),
        (Chain(), ChainEvent()),
        (working(), PromptAdmitted(id="p1")),
        (working(), Rewound()),
        (working(), AutomaticStarted(id="a1", kind="cron")),
        (working(), AutomaticEnded(id="p1")),
        (working(), ExhaustionReported(turn="p1")),
        (working(), ChainSuspended(turn="p1", reason="mood")),
        (run(working(), PromptAdmitted(id="p2")), PromptStarted(id="p2")),
        (run(working(), PromptAdmitted(id="p2")), PromptAdmitted(id="p2")),
        (run(working(), PromptAdmitted(id="p2")), ClaimSent(id=1, owner="p1")),
        (claiming(), ClaimSent(id=1, owner="p1")),
        (claiming(), ClaimAnswered(id=1, answer="perhaps")),
        (run(Chain(), GateTaken()), GateTaken()),
        (run(Chain(), GateTaken()), PromptAdmitted(id="p1")),
        (run(Chain(), Disposed()), GateTaken()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_event_that_cannot_happen_is_refused_and_says_so(chain: Chain, event: ChainEvent) -> None:
    with pytest.raises(IllegalEventError, match=f"{type(event).__name__} cannot happen"):
        chains.step(chain, event)


def test_a_commit_that_is_refused_says_plan_only_in_plan_mode() -> None:
    """With nothing armed the guard's own state is the reason."""
    idle = run(Chain(), PromptAdmitted(id="p1"), PromptStarted(id="p1"))
    for chain, why in ((idle, "idle"), (idle.replace(plan=True), "plan")):
        assert chains.step(chain, AttemptCommitted(turn="p1", attempt=1))[1] == (CommitRefused(attempt=1, why=why),)
