"""The bridge's queue: one order for everything that people and chains want to say in a session."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from stopwarden.core import bounds
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.queue import step
from stopwarden.core.queue_claims import CLAIM_TABLE, ClaimFacts
from stopwarden.core.queue_words import (
    AnswerList,
    CancelForwarded,
    ChildCame,
    ChildGone,
    ClientLeft,
    Close,
    CutStopHook,
    Emit,
    ForwardCancel,
    ListPending,
    MessagesResolved,
    PromptSettled,
    QueueEvent,
    ReleaseAnswered,
    ResolveMessages,
    RunPrompt,
    SendRelease,
    StartTimer,
    TimerFired,
    WriteLedger,
)
from tests.support.bridge import CHILD, Bridge, S

GRANTED, QUEUED, REFUSED = (True, False), (False, True), (False, False)


def busy(*queued: str, clients: tuple[str, ...] = ()) -> Bridge:
    """A session in which p1 runs and others wait."""
    bridge = Bridge(*clients)
    for prompt in ("p1", *queued):
        bridge.admit(prompt)
    return bridge


def posted(*messages: str, **fields: Any) -> Bridge:
    """A session in which p1 runs and messages were posted."""
    bridge = busy()
    for message in messages:
        bridge.post(message, **fields)
    return bridge


# --- admission and the one turn at a time ---------------------------------------------------------


def test_prompts_run_one_by_one_in_the_order_of_admission() -> None:
    bridge = busy("p2", "p3")
    assert bridge.ran() == ["p1"]
    bridge.settle("p1")
    bridge.settle("p2", "failed")
    bridge.settle("p3")
    assert bridge.ran() == ["p1", "p2", "p3"]
    assert bridge.ends() == [("p1", "completed"), ("p2", "failed"), ("p3", "completed")]
    assert bridge.told("pending_prompt_added", "pending_prompt_started", "pending_prompt_completed") == [
        ("pending_prompt_added", "p2", ""),
        ("pending_prompt_added", "p3", ""),
        ("pending_prompt_started", "p2", ""),
        ("pending_prompt_completed", "p2", "completed"),
        ("pending_prompt_started", "p3", ""),
        ("pending_prompt_completed", "p3", "completed"),
    ]
    assert bridge.state.entries == ()


def test_the_sixth_prompt_is_refused_with_503_and_a_place_that_falls_free_can_be_taken() -> None:
    bridge = busy("p2", "p3", "p4", "p5")
    refused = bridge.admit("p6")
    assert (refused.status, refused.rule, refused.prompt) == (503, "admit.prompt_queue_full", None)
    bridge.remove("p4")
    assert (bridge.admit("p6").status, [one.prompt for one in bridge.state.entries]) == (
        202,
        ["p1", "p2", "p3", "p5", "p6"],
    )


def test_a_limit_of_nothing_means_any_number() -> None:
    bridge = Bridge(limit=0)
    assert {bridge.admit(f"p{n}").status for n in range(40)} == {202}


@pytest.mark.parametrize(
    ("fields", "status", "rule"),
    [
        ({"session": "other"}, 404, "admit.unknown_session"),
        ({"client": "nobody"}, 400, "admit.invalid_client_id"),
        ({"missing": ("picture.png",)}, 400, "admit.missing_attachment"),
        ({"deadline": 0}, 400, "admit.bad_deadline"),
        ({"caller_gone": True}, 499, "admit.caller_gone"),
        ({"prompt": "p1"}, 409, "admit.duplicate_prompt_id"),
        ({"prompt": "m1"}, 409, "admit.duplicate_prompt_id"),
    ],
)
def test_a_prompt_that_cannot_be_admitted_is_refused_with_its_reason_and_leaves_no_trace(
    fields: dict[str, Any], status: int, rule: str
) -> None:
    bridge = posted("m1")
    before = bridge.state.entries, bridge.state.messages
    answer = bridge.admit(**{"prompt": "p2", **fields})
    assert (answer.status, answer.rule, answer.prompt) == (status, rule, None)
    assert (bridge.state.entries, bridge.state.messages) == before
    assert [one.prompt for one in bridge.all(WriteLedger)] == ["p1"]


def test_an_admitted_prompt_is_on_disk_before_its_caller_is_told_and_before_it_runs() -> None:
    bridge = busy()
    kinds = [type(one).__name__ for one in bridge.effects]
    assert kinds.index("WriteLedger") < kinds.index("AnswerAdmission") < kinds.index("RunPrompt")


def test_a_caller_that_goes_away_after_admission_cancels_nothing() -> None:
    bridge = Bridge("anna")
    bridge.admit("p1", client="anna")
    bridge.admit("p2", client="anna")
    bridge.feed(ClientLeft(at=bridge.now, client="anna"))
    bridge.settle("p1")
    bridge.settle("p2")
    assert bridge.ends() == [("p1", "completed"), ("p2", "completed")]
    assert bridge.admit("p3", client="anna").rule == "admit.invalid_client_id"


def test_the_next_prompt_waits_for_the_turn_to_settle_and_for_the_cancel_to_be_answered() -> None:
    for first, second in ((Bridge.forwarded, Bridge.settle), (Bridge.settle, Bridge.forwarded)):
        bridge = busy("p2")
        bridge.cancel()
        first(bridge, "p1")
        assert bridge.ran() == ["p1"]
        second(bridge, "p1")
        assert bridge.ran() == ["p1", "p2"]


def test_a_child_that_never_settles_a_cancelled_turn_holds_up_the_queue_for_thirty_seconds_only() -> None:
    bridge = busy("p2")
    bridge.cancel()
    timer = bridge.all(StartTimer)[-1]
    assert timer.after == bounds.SETTLE_DEADLINE_MS == 30_000
    bridge.forwarded("p1")
    bridge.feed(TimerFired(at=bridge.now + timer.after, effect=timer.id))
    assert bridge.ran() == ["p1", "p2"]
    assert bridge.settle("p1") == []  # its late word means nothing any more
    assert bridge.ends() == [("p1", "cancelled")]


def test_a_deadline_ends_a_running_prompt_at_once_and_the_next_one_runs_when_it_has_settled() -> None:
    bridge = Bridge()
    bridge.admit("p1", deadline=5_000)
    bridge.admit("p2")
    deadline = bridge.all(StartTimer)[0]
    assert deadline.after == 5_000
    bridge.feed(TimerFired(at=6_000, effect=deadline.id))
    assert bridge.ends() == [("p1", "failed")]
    assert [one.target for one in bridge.all(ForwardCancel)] == ["p1"]
    bridge.forwarded("p1")
    assert bridge.ran() == ["p1"]
    bridge.settle("p1", "cancelled")
    assert (bridge.ran(), bridge.ends()) == (["p1", "p2"], [("p1", "failed")])


def test_a_deadline_ends_a_queued_prompt_where_it_stands_and_means_nothing_afterwards() -> None:
    bridge = busy()
    bridge.admit("p2", deadline=5_000)
    bridge.admit("p3")
    timer = bridge.all(StartTimer)[0]
    bridge.feed(TimerFired(at=6_000, effect=timer.id))
    assert bridge.ends() == [("p2", "failed")]
    assert bridge.feed(TimerFired(at=6_000, effect=timer.id)) == []
    bridge.settle("p1")
    assert bridge.ran() == ["p1", "p3"]


def test_a_failure_that_our_own_cancel_caused_is_a_cancel() -> None:
    bridge = busy()
    bridge.cancel()
    bridge.settle("p1", "failed")
    assert bridge.ends() == [("p1", "cancelled")]


@pytest.mark.parametrize(
    ("ended", "asks", "trust"),
    [
        ("failed", "retry", "retry"),
        ("cancelled", "retry", ""),
        ("completed", "retry", ""),
        ("failed", "continue", "continue"),
        ("cancelled", "continue", "continue"),
        ("completed", "continue", ""),
        ("failed", "", ""),
    ],
)
def test_a_retry_is_vouched_for_only_after_an_error_and_only_where_it_was_asked_for(
    ended: Any, asks: str, trust: str
) -> None:
    bridge = busy()
    bridge.settle("p1", ended)
    bridge.admit("p2", asks=asks)
    assert bridge.all(RunPrompt)[-1].trust == trust


@pytest.mark.case("G65")
def test_a_retry_that_had_to_wait_is_vouched_for_when_its_turn_comes_and_ends_the_wait() -> None:
    """A queued retry is given to the agent as a trusted one after the turn before it has failed, and nobody waits."""
    bridge = busy()
    bridge.admit("p2", asks="retry")
    assert bridge.claim("p1") == QUEUED
    bridge.settle("p1", "failed")
    assert (bridge.all(RunPrompt)[-1].trust, bridge.state.wait_owner) == ("retry", None)


def test_the_allowance_for_a_retry_is_used_up_by_the_next_prompt_whatever_it_is() -> None:
    bridge = busy("p2")
    bridge.settle("p1", "failed")
    bridge.admit("p3", asks="retry")
    bridge.settle("p2")
    assert bridge.all(RunPrompt)[-1].trust == ""


# --- claims ---------------------------------------------------------------------------------------


def test_exactly_one_line_of_the_claim_table_fits_any_facts() -> None:
    flags = (False, True)
    for hosted, owner, rival, queued, working in itertools.product(
        flags, ("none", "current", "other"), flags, flags, flags
    ):
        facts = ClaimFacts(hosted=hosted, owner=owner, rival=rival, queued=queued, busy=working)  # type: ignore[arg-type]
        assert len([row for row in CLAIM_TABLE if row.fits(facts)]) == 1, facts


@pytest.mark.case("G144")
def test_a_claim_is_answered_by_owner_queue_and_competitor_in_that_order() -> None:
    """Wrong owner refused, queued prompt makes it wait, free queue grants; a competing turn changes nobody's wait."""
    bridge = busy()
    assert bridge.claim("p1") == GRANTED
    assert bridge.claim("p0") == REFUSED
    bridge.admit("p2")
    assert bridge.claim("p0") == REFUSED
    assert bridge.state.wait_owner is None
    assert bridge.claim("p1") == QUEUED
    assert bridge.state.wait_owner == "p1"
    assert bridge.claim("p2") == REFUSED  # queued, not in progress
    assert bridge.state.wait_owner == "p1"


@pytest.mark.case("G144")
def test_a_background_turn_loses_to_a_prompt_that_runs_beside_it_and_leaves_the_wait_as_it_is() -> None:
    """A background turn that a prompt has overtaken may not go on by itself, and nobody's wait is touched by asking."""
    bridge = Bridge()
    assert bridge.start_turn("t1")
    assert bridge.claim("t1") == GRANTED
    bridge.admit("p1")
    assert bridge.ran() == ["p1"]  # not queued: the child ends its background turn
    bridge.admit("p2")
    assert bridge.claim("p1") == QUEUED
    assert bridge.claim("t1") == REFUSED
    assert bridge.state.wait_owner == "p1"


@pytest.mark.case("G145")
def test_a_claim_without_owner_is_granted_only_when_nothing_is_going_on() -> None:
    """Without an id a claim is refused beside a live prompt or for a session not known, and granted when all is idle."""
    bridge = Bridge()
    assert bridge.claim(None) == GRANTED
    assert bridge.claim(None, session="unknown") == REFUSED
    bridge.admit("p1")
    bridge.admit("p2")
    assert bridge.claim(None) == REFUSED
    assert bridge.state.wait_owner is None
    bridge.remove("p2")
    bridge.settle("p1")
    assert bridge.claim(None) == GRANTED
    bridge.start_turn("t1")
    assert bridge.claim(None) == REFUSED


@pytest.mark.case("G146")
@pytest.mark.parametrize("fields", [{"session": "unknown"}, {"child": "agent-2"}, {"session": ""}])
def test_a_child_that_does_not_host_the_session_gets_neither_the_place_nor_a_message(fields: dict[str, str]) -> None:
    """A claim for another's or an unknown session is refused, and its drain is empty, without a hint."""
    bridge = busy("p2")
    bridge.post("m1")
    before = bridge.state
    assert bridge.claim("p1", **fields) == REFUSED
    assert bridge.drain("p1", **fields) == ([], False)
    assert bridge.state.replace(next_effect=0) == before.replace(next_effect=0)
    assert not Bridge().start_turn("t1", **fields)


@pytest.mark.case("G57")
def test_a_prompt_that_comes_after_a_granted_claim_waits_for_that_stream_and_stops_the_next_one() -> None:
    """The granted stream keeps its place; the claim for the stream after it finds the new prompt and gives way."""
    bridge = busy()
    assert bridge.claim("p1") == GRANTED
    bridge.admit("p2")
    assert not bridge.all(ForwardCancel)
    assert bridge.claim("p1") == QUEUED


def test_a_granted_claim_ends_the_claimants_own_wait_and_no_other() -> None:
    for waiting, left in (("p1", None), ("t1", "t1")):
        bridge = busy()
        bridge.state = bridge.state.replace(wait_owner=waiting)
        assert bridge.claim("p1") == GRANTED
        assert bridge.state.wait_owner == left


def test_a_cancelled_prompt_may_not_claim() -> None:
    bridge = busy()
    bridge.cancel()
    assert bridge.claim("p1") == REFUSED


def test_a_closing_session_grants_nothing() -> None:
    bridge = busy()
    bridge.feed(Close(at=bridge.now))
    assert bridge.claim("p1") == REFUSED


@pytest.mark.case("BR-033", "BR-036")
def test_whatever_a_person_has_queued_goes_before_the_next_continuation() -> None:
    """A message or a command queued behind an endless chain runs at the next boundary; no continuation gets past it."""
    bridge = busy("/goal clear")
    assert bridge.claim("p1") == QUEUED
    bridge.settle("p1")
    assert bridge.ran() == ["p1", "/goal clear"]
    assert bridge.claim("p1") == REFUSED


@pytest.mark.case("BR-035")
def test_prompts_queued_behind_a_turn_that_breaks_run_in_order_and_nothing_is_put_behind_them() -> None:
    """After an error the person's queued prompts run first to last; no recovery prompt of ours is in the queue."""
    bridge = busy("u1", "u2")
    bridge.settle("p1", "failed")
    assert bridge.claim("p1") == REFUSED
    bridge.settle("u1")
    bridge.settle("u2")
    assert (bridge.ran(), bridge.state.entries) == (["p1", "u1", "u2"], ())


# --- removal and release --------------------------------------------------------------------------


@pytest.mark.case("G147")
def test_the_owner_is_released_only_when_the_last_prompt_it_waits_for_is_taken_out() -> None:
    """Taking out one of two waiting prompts releases nobody; taking out the last sends the owner's id, once."""
    bridge = busy("p2", "p3")
    bridge.claim("p1")
    bridge.remove("p2")
    assert (bridge.all(SendRelease), bridge.state.wait_owner) == ([], "p1")
    bridge.remove("p3")
    assert [one.owner for one in bridge.all(SendRelease)] == ["p1"]
    assert bridge.state.wait_owner is None
    assert bridge.ends() == [("p2", "cancelled"), ("p3", "cancelled")]
    bridge.admit("p4")
    bridge.remove("p4")
    assert len(bridge.all(SendRelease)) == 1  # nobody waited for this one


@pytest.mark.case("G147")
def test_promotion_ends_the_wait_without_a_release() -> None:
    """When the prompt that was waited for begins to run, the wait is over and the old owner hears nothing."""
    bridge = busy("p2")
    bridge.claim("p1")
    bridge.settle("p1")
    assert bridge.state.wait_owner is None
    bridge.admit("p3")
    bridge.remove("p3")
    assert bridge.all(SendRelease) == []


def test_a_deadline_of_the_last_waiting_prompt_releases_the_owner_too() -> None:
    bridge = busy()
    bridge.admit("p2", deadline=10)
    bridge.claim("p1")
    bridge.feed(TimerFired(at=bridge.now, effect=bridge.all(StartTimer)[0].id))
    assert [one.owner for one in bridge.all(SendRelease)] == ["p1"]


def test_a_release_that_cannot_be_delivered_is_told_and_one_that_can_is_not() -> None:
    for failed, told in (("the pipe is closed", [("release_failed", "p1", "")]), ("", [])):
        bridge = busy("p2")
        bridge.claim("p1")
        bridge.remove("p2")
        sent = bridge.all(SendRelease)[0].id
        answer = ReleaseAnswered(at=bridge.now, effect=sent, released=not failed, failed=failed)
        bridge.feed(answer)
        assert bridge.told("release_failed") == told
        assert bridge.feed(answer) == []


@pytest.mark.case("G143")
def test_only_live_queued_prompts_count_in_the_hint() -> None:
    """A drain says that a prompt waits only while one is queued that was not taken out; the running one is none."""
    bridge = busy()
    assert bridge.drain("p1") == ([], False)
    bridge.admit("p2")
    assert bridge.drain("p1") == ([], True)
    assert bridge.drain("p1", watch=False) == ([], False)
    bridge.remove("p2")
    assert bridge.drain("p1") == ([], False)


def test_removing_the_running_prompt_cancels_it_and_says_removed_to_whoever_saw_it_wait() -> None:
    bridge = busy("p2")
    bridge.settle("p1")
    assert bridge.remove("p2").status == 204
    assert bridge.remove("p2").status == 204  # again: still one cancel
    assert len(bridge.all(ForwardCancel)) == 1
    bridge.settle("p2", "cancelled")
    bridge.forwarded("p2")
    assert bridge.told("pending_prompt_completed") == [("pending_prompt_completed", "p2", "removed")]
    assert bridge.remove("p2").status == 404


def test_cancel_stops_what_runs_and_leaves_what_waits() -> None:
    bridge = busy("p2")
    bridge.cancel()
    bridge.cancel()
    assert [one.target for one in bridge.all(ForwardCancel)] == ["p1"]
    bridge.settle("p1", "cancelled")
    bridge.forwarded("p1")
    assert bridge.ran() == ["p1", "p2"]
    assert bridge.ends() == [("p1", "cancelled")]


# --- background turns -----------------------------------------------------------------------------


def test_a_cancel_holds_background_turns_back_until_the_next_prompt() -> None:
    bridge = Bridge()
    bridge.cancel()
    assert not bridge.start_turn("t1")
    bridge.forwarded("")
    bridge.admit("p1")
    bridge.settle("p1")
    assert bridge.start_turn("t1")


def test_an_admission_under_way_when_a_cancel_comes_has_lost_even_after_the_next_prompt() -> None:
    bridge = Bridge()
    seen = bridge.state.cancel_epoch
    bridge.cancel()
    bridge.forwarded("")
    bridge.admit("p1")
    bridge.settle("p1")
    assert not bridge.start_turn("t1", epoch=seen)


def test_a_cancel_with_nothing_running_reaches_the_agent_once_and_the_next_prompt_comes_after_it() -> None:
    """The chain may be waiting for background work: it hears of the cancel; a prompt sent after it is not cancelled."""
    bridge = Bridge()
    bridge.cancel()
    bridge.cancel()
    assert [one.target for one in bridge.all(ForwardCancel)] == [""]
    bridge.admit("p1")
    assert bridge.ran() == []
    bridge.forwarded("")
    assert bridge.ran() == ["p1"]
    bridge.settle("p1")
    bridge.cancel()
    bridge.feed(TimerFired(at=bridge.now, effect=bridge.all(StartTimer)[-1].id))
    bridge.admit("p2")
    assert bridge.ran() == ["p1", "p2"]


def test_a_cancel_without_an_agent_holds_nothing_up() -> None:
    """Nobody is there to hear of it: the next agent gets the next prompt at once."""
    bridge = Bridge()
    bridge.feed(ChildGone(at=bridge.now, child=CHILD))
    bridge.cancel()
    assert not bridge.all(ForwardCancel)


def test_a_cancel_stops_the_background_turn_in_progress_and_the_next_prompt_waits_for_the_answer() -> None:
    bridge = Bridge()
    bridge.start_turn("t1")
    bridge.cancel()
    bridge.cancel()
    assert [one.target for one in bridge.all(ForwardCancel)] == ["t1"]
    bridge.admit("p1")
    assert bridge.ran() == []
    assert bridge.claim("t1") == QUEUED
    bridge.forwarded("t1")
    assert (bridge.ran(), bridge.state.wait_owner) == (["p1"], None)


def test_a_background_turn_that_does_not_answer_a_cancel_is_given_up() -> None:
    bridge = Bridge()
    bridge.start_turn("t1")
    bridge.cancel()
    bridge.feed(TimerFired(at=bridge.now, effect=bridge.all(StartTimer)[-1].id))
    bridge.admit("p1")
    assert (bridge.ran(), bridge.state.turn) == (["p1"], None)


@pytest.mark.case("G66")
def test_no_background_turn_begins_while_a_prompt_runs_or_waits() -> None:
    """Related or not, a result that wants a turn of its own comes after every prompt that was admitted."""
    bridge = busy("p2")
    assert not bridge.start_turn("t1")
    bridge.settle("p1")
    assert not bridge.start_turn("t1")
    bridge.settle("p2")
    assert bridge.start_turn("t1")
    assert not bridge.start_turn("t2")
    bridge.end_turn("t2")
    assert bridge.state.turn == "t1"
    bridge.end_turn("t1")
    assert bridge.start_turn("t2")


# --- mid-turn messages ----------------------------------------------------------------------------


def test_messages_are_handed_over_in_order_ten_at_a_time_and_shown_once() -> None:
    names = [f"m{n}" for n in range(12)]
    bridge = posted(*names)
    assert bridge.drain("p1") == (names[:10], False)
    assert bridge.drain("p1") == (names[10:], False)
    assert bridge.drain("p1") == ([], False)
    injected = [one for one in bridge.all(Emit) if one.told == "mid_turn_message_injected"]
    assert [one.messages for one in injected] == [tuple(names[:10]), tuple(names[10:])]
    bridge.settle("p1")
    assert bridge.ran() == ["p1"]


@pytest.mark.case("G67")
def test_a_drain_hands_over_the_text_and_still_says_that_a_prompt_waits() -> None:
    """Text that comes with the hint does not hide the queued prompt: it still runs next, and the claim gives way."""
    bridge = busy("p2")
    bridge.post("m1")
    assert bridge.drain("p1") == (["m1"], True)
    assert bridge.claim("p1") == QUEUED


def test_the_same_message_posted_twice_is_one_message_before_and_after_it_was_handed_over() -> None:
    bridge = posted("m1")
    again = bridge.post("m1", "other words")
    assert (again.accepted, again.rule) == (True, "message.waiting")
    assert bridge.drain("p1") == (["m1"], False)
    late = bridge.post("m1")
    assert (late.accepted, late.rule) == (True, "message.delivered")
    assert bridge.drain("p1") == ([], False)


@pytest.mark.parametrize(
    ("fields", "status", "rule"),
    [
        ({"session": "other"}, 404, "message.unknown_session"),
        ({"client": "nobody"}, 400, "message.invalid_client_id"),
        ({"message": ""}, 400, "message.bad_id"),
        ({"message": "x" * 129}, 400, "message.bad_id"),
        ({"text": " \n"}, 400, "message.empty"),
        ({"text": "x" * 16_385}, 413, "message.too_long"),
        ({"message": "p1"}, 409, "message.duplicate_prompt_id"),
        ({"message": "gone"}, 409, "message.was_removed"),
    ],
)
def test_a_message_that_cannot_be_taken_is_refused_with_its_reason(
    fields: dict[str, Any], status: int, rule: str
) -> None:
    bridge = posted("gone")
    bridge.take_back("gone")
    answer = bridge.post(**{"message": "m1", **fields})
    assert (answer.accepted, answer.status, answer.rule) == (False, status, rule)
    assert bridge.state.messages == ()


def test_a_message_to_an_idle_session_is_not_taken_and_its_sender_is_told_why() -> None:
    answer = Bridge().post("m1")
    assert (answer.accepted, answer.status, answer.rule) == (False, 200, "message.session_idle")


def test_the_twenty_first_message_is_refused_also_while_ten_are_out_with_a_drain() -> None:
    bridge = posted(*(f"m{n}" for n in range(20)), attachments=("a.png",))
    assert bridge.post("m20").status == 503
    bridge.ask_drain("p1")
    assert bridge.post("m20").status == 503
    assert bridge.post("m3").accepted  # known: not taken again


def test_messages_can_be_taken_back_until_a_drain_has_them() -> None:
    bridge = posted("m1", "m2")
    assert bridge.take_back("m1").status == 204
    assert bridge.drain("p1") == (["m2"], False)
    assert (bridge.take_back("m2").status, bridge.take_back("m9").status) == (409, 404)
    assert [one.messages for one in bridge.all(Emit) if one.told == "mid_turn_message_removed"] == [("m1",)]


def test_internal_messages_are_handed_over_and_not_shown() -> None:
    bridge = posted("m1", internal=True)
    bridge.post("m2")
    bridge.drain("p1")
    injected = [one for one in bridge.all(Emit) if one.told == "mid_turn_message_injected"]
    assert [[one.message for one in event.shown] for event in injected] == [["m2"]]


def test_a_drain_that_names_another_turn_gets_nothing_and_the_messages_stay() -> None:
    bridge = posted("m1")
    assert bridge.drain("p0") == ([], False)
    bridge.cancel()
    assert bridge.drain("p1") == ([], False)  # its turn is being stopped
    assert bridge.drain(None) == ([], False)
    assert [one.message for one in bridge.state.messages] == ["m1"]


def test_a_background_turn_drains_what_was_posted_while_it_runs_and_leaves_become_prompts() -> None:
    bridge = Bridge()
    bridge.start_turn("t1")
    bridge.post("m1")
    assert bridge.drain("t1") == (["m1"], False)
    bridge.post("m2")
    bridge.end_turn("t1")
    assert bridge.ran() == ["m2"]


def test_a_child_that_names_no_turn_drains_for_the_one_in_progress() -> None:
    assert posted("m1").drain(None) == (["m1"], False)


def test_messages_left_when_the_last_prompt_has_settled_become_prompts_with_the_same_ids() -> None:
    bridge = posted("m1", "m2")
    bridge.admit("p2")
    bridge.settle("p1")
    assert bridge.ran() == ["p1", "p2"]  # not the last one yet: they may still be drained
    bridge.settle("p2")
    bridge.settle("m1")
    bridge.settle("m2")
    assert bridge.ran() == ["p1", "p2", "m1", "m2"]
    assert bridge.post("m1").rule == "message.promoted"
    assert bridge.ran() == ["p1", "p2", "m1", "m2"]


def test_left_over_messages_are_promoted_beyond_the_limit_and_new_prompts_wait_for_room() -> None:
    bridge = posted(*(f"m{n}" for n in range(7)))
    bridge.settle("p1")
    assert len(bridge.state.entries) == 7
    assert bridge.admit("p2").status == 503


def test_attachments_that_cannot_be_read_put_the_messages_back_in_front_and_in_order() -> None:
    bridge = posted("m1", attachments=("a.png",))
    bridge.post("m2")
    bridge.ask_drain("p1")
    bridge.post("m3")
    assert bridge.drain("p1") == ([], False)  # one drain at a time, or their order would be lost
    read = bridge.all(ResolveMessages)[0]
    assert [one.message for one in read.messages] == ["m1", "m2"]
    bridge.feed(MessagesResolved(at=bridge.now, effect=read.id, failed=("m1",)))
    assert [one.message for one in bridge.state.messages] == ["m1", "m2", "m3"]
    bridge.admit("p2")
    bridge.settle("p1")
    assert bridge.all(RunPrompt)[-1].carried == ()  # what cannot be read must not spoil the next prompt
    bridge.settle("p2")
    assert [one.prompt for one in bridge.state.entries] == ["m1", "m2", "m3"]


def test_attachments_read_in_time_are_handed_over_with_the_hint_of_that_moment() -> None:
    bridge = posted("m1", attachments=("a.png",))
    bridge.ask_drain("p1")
    bridge.admit("p2")
    read = bridge.all(ResolveMessages)[0]
    (answer, _) = bridge.feed(MessagesResolved(at=bridge.now + 1_999, effect=read.id))
    assert ([one.message for one in answer.messages], answer.has_queued_prompt) == (["m1"], True)  # type: ignore[attr-defined]


def test_a_message_that_missed_its_drain_is_carried_by_the_next_prompt_exactly_once() -> None:
    bridge = posted("m1", attachments=("a.png",))
    bridge.ask_drain("p1")
    read = bridge.all(ResolveMessages)[0]
    bridge.post("m2")
    bridge.admit("p2")
    bridge.now += bounds.DRAIN_DEADLINE_MS
    (answer,) = bridge.feed(MessagesResolved(at=bridge.now, effect=read.id))
    assert answer.messages == ()  # type: ignore[attr-defined]
    bridge.settle("p1")
    run = bridge.all(RunPrompt)[-1]
    assert (run.prompt, [one.message for one in run.carried]) == ("p2", ["m1"])
    assert bridge.drain("p2") == (["m2"], False)
    bridge.settle("p2")
    ends = [one for one in bridge.all(Emit) if one.told == "turn_complete"]
    assert (bridge.ran(), ends[-1].messages) == (["p1", "p2"], ("m1", "m2"))


def test_a_message_that_missed_its_drain_is_handed_to_the_next_drain_of_the_same_turn() -> None:
    bridge = posted("m1", attachments=("a.png",))
    bridge.ask_drain("p1")
    bridge.now += 5_000
    bridge.feed(MessagesResolved(at=bridge.now, effect=bridge.all(ResolveMessages)[0].id))
    assert bridge.drain("p1") == (["m1"], False)


def test_a_turn_that_ends_while_attachments_are_read_gets_nothing_more_and_the_message_runs_by_itself() -> None:
    bridge = posted("m1", attachments=("a.png",))
    bridge.ask_drain("p1")
    bridge.settle("p1")
    assert bridge.ran() == ["p1", "m1"]
    assert bridge.feed(MessagesResolved(at=bridge.now, effect=bridge.all(ResolveMessages)[0].id)) == []


# --- several clients, the Stop hook, the child ----------------------------------------------------


def test_all_clients_share_one_queue_and_each_event_says_who_began_it() -> None:
    bridge = Bridge("anna", "ben")
    bridge.admit("p1", client="anna")
    bridge.admit("p2", client="ben")
    bridge.admit("p3", client="anna")
    assert bridge.remove("p3", client="ben").status == 204
    assert bridge.cancel(client="ben").status == 204
    bridge.post("m1", client="ben")
    (seen,) = bridge.feed(ListPending(at=bridge.now, request="r", session=S, client="anna"))
    assert isinstance(seen, AnswerList)
    assert [(one.prompt, one.client, one.state) for one in seen.entries] == [
        ("p1", "anna", "running"),
        ("p2", "ben", "queued"),
    ]
    assert [one.message for one in seen.messages] == ["m1"]
    added = [(one.prompt, one.client) for one in bridge.all(Emit) if one.told == "pending_prompt_added"]
    assert added == [("p2", "ben"), ("p3", "anna")]


def test_a_client_that_is_not_attached_can_neither_see_nor_change_anything() -> None:
    bridge = posted("m1")
    before = bridge.state
    assert bridge.remove("p1", client="eve").status == 400
    assert bridge.cancel(client="eve").status == 400
    assert bridge.take_back("m1", client="eve").status == 400
    assert bridge.cancel(session="other").status == 404
    (answer,) = bridge.feed(ListPending(at=bridge.now, request="r", session=S, client="eve"))
    assert answer.status == 400  # type: ignore[attr-defined]
    assert bridge.state.replace(next_effect=0) == before.replace(next_effect=0)


def test_the_first_prompt_to_wait_cuts_a_slow_stop_hook_of_that_turn_short() -> None:
    bridge = busy()
    assert bridge.all(CutStopHook) == []
    bridge.admit("p2")
    bridge.admit("p3")
    assert [one.owner for one in bridge.all(CutStopHook)] == ["p1"]


def test_a_stdio_clients_second_prompt_waits_with_an_owner_of_its_own_instead_of_throwing_the_first_out() -> None:
    bridge = Bridge()
    bridge.admit("client-prompt-1")
    assert bridge.admit("client-prompt-2").place == 1
    assert not bridge.all(ForwardCancel)
    assert bridge.claim("client-prompt-1") == QUEUED
    bridge.settle("client-prompt-1")
    assert bridge.ran() == ["client-prompt-1", "client-prompt-2"]


def test_a_child_that_dies_fails_its_turn_only_and_the_queue_goes_on_with_the_next_child() -> None:
    bridge = busy("p2")
    bridge.post("m1", attachments=("a.png",))
    bridge.ask_drain("p1")
    bridge.claim("p1")
    bridge.feed(ChildGone(at=bridge.now, child="another"))
    bridge.feed(ChildGone(at=bridge.now, child=CHILD))
    assert (bridge.ends(), bridge.state.wait_owner, bridge.ran()) == ([("p1", "failed")], None, ["p1"])
    assert bridge.admit("p3").status == 202
    bridge.feed(ChildCame(at=bridge.now, child="agent-2"))
    assert bridge.ran() == ["p1", "p2"]
    assert bridge.claim("p2", child="agent-2") == QUEUED
    assert [one.message for one in bridge.all(RunPrompt)[-1].carried] == ["m1"]


def test_a_child_that_dies_while_being_cancelled_leaves_a_cancelled_turn() -> None:
    bridge = busy()
    bridge.cancel()
    bridge.feed(ChildGone(at=bridge.now, child=CHILD))
    assert (bridge.ends(), bridge.state.entries) == ([("p1", "cancelled")], ())


def test_closing_names_everything_that_was_still_owed_and_takes_nothing_new() -> None:
    bridge = busy("p2")
    bridge.post("m1")
    bridge.claim("p1")
    bridge.feed(Close(at=bridge.now))
    assert bridge.feed(Close(at=bridge.now)) == []
    assert bridge.ends() == [("p2", "cancelled")]
    assert [one.owner for one in bridge.all(SendRelease)] == ["p1"]
    assert [one.messages for one in bridge.all(Emit) if one.told == "mid_turn_message_removed"] == [("m1",)]
    assert (bridge.admit("p3").status, bridge.post("m2").status) == (409, 409)
    assert bridge.told("session_closed") == []
    bridge.settle("p1", "cancelled")
    bridge.forwarded("p1")
    assert (bridge.ends()[-1], len(bridge.told("session_closed"))) == (("p1", "cancelled"), 1)


def test_closing_stops_a_background_turn_and_waits_for_the_answer() -> None:
    bridge = Bridge()
    bridge.start_turn("t1")
    bridge.feed(Close(at=bridge.now))
    bridge.end_turn("t1")
    assert bridge.told("session_closed") == []
    bridge.forwarded("t1")
    assert (len(bridge.told("session_closed")), bridge.state.turn) == (1, None)


def test_an_idle_session_closes_at_once_and_its_childs_end_is_only_told() -> None:
    bridge = Bridge()
    bridge.feed(Close(at=bridge.now))
    bridge.feed(ChildGone(at=bridge.now, child=CHILD))
    assert [told for told, _, _ in bridge.told("session_closed", "session_died")] == ["session_closed", "session_died"]
    assert not bridge.all(ForwardCancel)


# --- what cannot be -------------------------------------------------------------------------------


class Unheard(QueueEvent):
    """An event that the queue does not know."""


def test_events_that_cannot_be_are_typed_errors_and_change_nothing() -> None:
    bridge = busy("p2")
    run = bridge.all(RunPrompt)[0].id
    before = bridge.state
    for event in (
        Unheard(at=1),
        PromptSettled(at=1, effect=99, outcome="completed"),
        PromptSettled(at=1, effect=0, outcome="completed"),
        CancelForwarded(at=1, effect=run),
        TimerFired(at=1, effect=run),
        ChildCame(at=1, child="agent-2"),
    ):
        with pytest.raises(IllegalEventError, match="The queue is as it was"):
            step(bridge.state, event)
        assert bridge.state == before


def test_a_clock_that_steps_back_counts_as_standing_still() -> None:
    bridge = posted("m1", attachments=("a.png",))
    bridge.ask_drain("p1")
    bridge.feed(MessagesResolved(at=-50_000, effect=bridge.all(ResolveMessages)[0].id))
    assert (bridge.state.now, bridge.state.messages, bridge.post("m1").rule) == (1_000, (), "message.delivered")
