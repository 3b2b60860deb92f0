"""A stop of a turn while the person is away: the away check is the policy, it claims first, and is never judged on old facts."""

from __future__ import annotations

import pytest

from stopwarden.core import away_words as away
from stopwarden.core import turn_events as ev
from stopwarden.core.events import Happening, Verdict
from stopwarden.core.fires import Fire
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from tests.support.away_turns import AwayWorld
from tests.support.stops import SOON, items
from tests.support.turns import BLOCK, LOOK, SAY, Reply, text

OWED = items("A", "B")


def asked(world: AwayWorld) -> int:
    """How often the stop was judged."""
    return sum(isinstance(one, away.Judge) for one in world.effects)


def policies(world: AwayWorld) -> list[str]:
    """Whose claims went out, as far as the chain has them not answered."""
    return [claim.policy for claim in world.state.chain.claims]


# ---- the policy


def test_a_session_that_owes_work_and_has_no_wake_is_blocked_without_any_armed_list() -> None:
    """No todo list was written: the away check names the item, in a stream of its own, after all else that is sent."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    assert world.kinds(1) == ["away"]
    assert '"do A"' in world.reasons()[0]
    assert world.attempts() == []
    assert world.rules() == ["away.no_qualifying_wake"]


def test_a_session_with_a_wake_and_nothing_owed_waits_and_that_is_in_the_record_before_the_turn_ends() -> None:
    """One verdict, one record, then the end with the verdict's kind and rule."""
    world = AwayWorld(wakes=SOON)
    world.prompt()
    assert world.ends() == [("P1", "waiting")]
    assert world.order(away.Judge, away.CommitVerdict, ev.EndTurn) == ["Judge", "CommitVerdict", "EndTurn"]
    assert world.rules() == ["away.waiting_nothing_owed"]
    assert len(world.sent) == 1


def test_an_armed_list_has_no_say_while_away_and_its_attempts_are_not_spent() -> None:
    """Seven blocks and the one that reaches the bound, then the stop is allowed and recorded; the guard counted none."""
    world = AwayWorld(*OWED)
    world.arm(play=True)
    assert len(world.reasons()) == 8
    assert world.rules()[-1] == "away.bound_reached"
    assert world.ends() == [("P1", "bound_reached")]
    assert world.attempts() == []
    assert world.state.chain.guard.attempts == 0
    assert world.state.chain.guard.armed


def test_a_continuation_is_prepared_in_the_guards_order_and_recorded_between_claim_and_send() -> None:
    """What the person said comes first, then the place in order, then the record, and the send last."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    kinds = (ev.Drain, away.Judge, ev.Claim, away.CommitVerdict, ev.CheckTokens, ev.Send)
    assert world.order(*kinds)[2:9] == ["Drain", "Judge", "Drain", "Claim", "CommitVerdict", "CheckTokens", "Send"]


def test_its_claim_says_whose_it_is() -> None:
    """So a claim that fails locks no list."""
    world = AwayWorld(*OWED)
    world.arm()
    world.play(until=ev.Claim)
    assert policies(world) == ["away"]


def test_tools_of_a_continuation_are_sent_back_plainly() -> None:
    """Only the continuation itself claims; its tools are a turn's work like any other."""
    world = AwayWorld(*OWED, wakes=SOON)
    world.replies.extend([SAY, LOOK])
    world.prompt()
    assert [world.kinds(number) for number in range(3)] == [["user"], ["away"], ["tool_result"]]
    assert world.order(ev.Claim) == ["Claim"]
    assert world.ends() == [("P1", "waiting")]


def test_a_verdict_that_away_does_not_hold_leaves_the_stop_to_the_guard() -> None:
    """The period has ended by its time, and the session has not heard of it yet."""
    world = AwayWorld(*OWED)
    world.said.append({"verdict": Verdict(block=False, kind="idle", rule="away.not_away", at=0)})
    world.arm()
    world.play(until=ev.Send, skip=4)
    assert world.attempts() == [1]
    assert world.recorded == []


@pytest.mark.parametrize("kind", ["observed", "off", "done", "waiting_on_person"])
def test_a_verdict_without_a_block_ends_the_turn_with_its_kind(kind: str) -> None:
    """Observed, off, done: recorded, and nothing is sent."""
    world = AwayWorld(*OWED)
    world.said.append({"verdict": Verdict(block=False, kind=kind, rule=f"away.{kind}", at=0)})
    world.prompt()
    assert world.ends() == [("P1", kind)]
    assert world.rules() == [f"away.{kind}"]
    assert len(world.sent) == 1


# ---- the person goes first


def test_a_queued_prompt_found_by_the_claim_ends_the_turn_and_nothing_is_counted() -> None:
    """The block is neither sent nor in the record."""
    world = AwayWorld(*OWED)
    world.claims.append("queued")
    world.prompt()
    assert world.ends() == [("P1", "yielded")]
    assert world.recorded == []
    assert world.night.state.blocks == 0
    assert world.state.chain.priority_owner == "P1"


def test_a_hint_at_the_stop_is_confirmed_before_anything_is_judged() -> None:
    """A queued prompt waits: the away check is not asked."""
    world = AwayWorld(*OWED)
    world.drains.append({"hint": True})
    world.claims.append("queued")
    world.prompt()
    assert world.ends() == [("P1", "yielded")]
    assert asked(world) == 0


def test_words_of_the_person_are_sent_instead_of_ours() -> None:
    """They came between the verdict and the claim; the stop after them is judged on its own."""
    world = AwayWorld(*OWED)
    world.drains.extend([{}, {"parts": (text("word"),)}])
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    assert world.kinds(1) == ["mid_turn"]
    assert world.recorded == []


@pytest.mark.parametrize("place", [away.Judge, ev.Drain, ev.Claim, away.CommitVerdict, ev.Compress, ev.CheckTokens])
@pytest.mark.case("BR-038")
def test_a_cancel_after_the_model_fell_silent_is_never_followed_by_a_continuation(place: type[ev.Effect]) -> None:
    """The session looked idle first, and the cancel was heard a moment later, wherever the continuation stood by then."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    world.play(until=ev.Send, skip=1)
    world.play(until=place, skip=place in (ev.Drain,))
    world.feed(ev.Cancelled())
    world.play()
    assert world.reasons() == []
    assert world.ends() == [("P1", "cancelled")]


def test_a_cancel_holds_the_away_check_back_until_an_ordinary_prompt_and_is_recorded() -> None:
    """A result's turn after it is judged cancelled, and so is a retry; after the next ordinary prompt it is blocked again."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    world.feed(ev.Cancelled())
    world.play()
    assert world.told("GuardChanged")[-1]["suspended_by"] == "cancelled"
    world.prompt(kind=ev.RETRY)
    assert world.ends()[-1] == ("P2", "cancelled")
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="t1")))
    world.play()
    assert world.ends()[-1][1] == "cancelled"
    assert world.rules() == ["stop.cancelled", "stop.cancelled"]
    assert world.reasons() == []
    world.prompt()
    assert world.reasons()


@pytest.mark.parametrize("held", ["plan_mode", "cancelled"])
def test_not_even_a_block_of_the_judge_goes_on_against_the_person(held: str) -> None:
    """A driver that judged without knowing: the turn ends as the person wanted."""
    world = AwayWorld(*OWED)
    said = {"verdict": Verdict(block=True, kind="block", rule="away.owed_changed", reason="go on", at=0)}
    world.said.extend([said, said])
    if held == "plan_mode":
        world.feed(ev.ModeChanged(plan=True))
        world.prompt()
    else:
        world.feed(ev.Cancelled())
        world.prompt(kind=ev.RETRY)
    assert world.ends() == [("P1", held)]
    assert world.reasons() == []


def test_plan_mode_ends_the_stop_before_anything_is_asked_and_is_recorded() -> None:
    """Nothing goes on by itself; the record says that the session waits for its person."""
    world = AwayWorld(*OWED, hooks=True)
    world.feed(ev.ModeChanged(plan=True))
    world.prompt()
    assert world.ends() == [("P1", "plan_mode")]
    assert world.rules() == ["stop.plan_mode"]
    assert world.recorded[0].happenings == (Happening(kind="plan_mode"),)
    assert not world.order(ev.Drain, ev.RunHooks)


# ---- the guard's suspensions bind the guard alone


def test_a_guard_that_is_held_back_does_not_hold_back_the_away_check() -> None:
    """Rewound history locks the guard: the stop while away is blocked all the same."""
    world = AwayWorld(*OWED)
    world.feed(ev.Rewound())
    assert world.state.chain.guard.suspended_by == "rewound"
    world.prompt(kind=ev.RETRY)
    assert world.state.chain.guard.suspended
    assert world.reasons()


def test_an_unreliable_drain_locks_an_armed_guard_and_not_the_away_check() -> None:
    """The claim says that nobody waits, and that is enough when nobody is there."""
    world = AwayWorld(*OWED)
    world.drains.extend([{}, {"reliable": False}, {"reliable": False}])
    world.arm()
    world.play(until=ev.Send, skip=4)
    assert len(world.reasons()) == 1
    assert world.state.chain.guard.suspended_by == "drain_unreliable"


def test_without_a_list_an_unreliable_drain_locks_nothing() -> None:
    """A list that the session writes later may still arm."""
    world = AwayWorld(*OWED)
    world.drains.extend([{"reliable": False}, {"reliable": False}])
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    assert len(world.reasons()) == 1
    assert not world.state.chain.guard.suspended


# ---- hooks


def test_a_hooks_reason_goes_first_and_the_checks_second() -> None:
    """Both in one message."""
    world = AwayWorld(*OWED, hooks=True)
    world.hooks.append(BLOCK)
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    assert world.kinds(1) == ["hook_reason", "away"]


def test_a_hooks_reason_goes_on_alone_when_the_check_lets_the_session_wait() -> None:
    """The verdict is recorded; the hook's continuation needs no claim."""
    world = AwayWorld(wakes=SOON, hooks=True)
    world.hooks.append(BLOCK)
    world.prompt()
    assert world.kinds(1) == ["hook_reason"]
    assert world.rules() == ["away.waiting_nothing_owed"] * 2
    assert not world.order(ev.Claim)
    assert world.ends() == [("P1", "waiting")]


def test_a_hooks_reason_goes_on_alone_when_the_claim_fails() -> None:
    """Three claims come to nothing; the block of the check is neither sent nor counted."""
    world = AwayWorld(*OWED, hooks=True)
    world.hooks.append(BLOCK)
    world.claims.extend(["malformed"] * 3)
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    assert world.kinds(1) == ["hook_reason"]
    assert world.recorded == []
    assert world.night.state.blocks == 0


def test_a_hook_that_has_had_all_its_blocks_leaves_the_stop_to_the_check() -> None:
    """Its cap is told and its reason no longer sent; the session is not let go for it."""
    world = AwayWorld(*OWED, hooks=True, hook_cap=1)
    world.hooks.append(BLOCK)
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    assert world.told("hook_cap") == [{"blocks": 1}]
    assert world.kinds(1) == ["away"]


def test_a_queued_prompt_cuts_a_slow_hook_short_while_away_too() -> None:
    """The guard is off; the place in order is asked for by the away check."""
    world = AwayWorld(*OWED, hooks=True, switch="off")
    world.prompt(play=False)
    world.play(until=ev.RunHooks)
    world.feed(ev.PromptQueuedSeen())
    assert policies(world) == ["away"]
    world.claims.append("queued")
    world.answer(world.pending(ev.Claim))
    assert world.ends() == [("P1", "yielded")]


# ---- claims


def test_a_claim_that_fails_is_asked_for_again() -> None:
    """One slow answer is no reason to stop: the second claim is granted, and the block is sent."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    claim = world.play(until=ev.Claim)
    world.open.pop(claim.id)
    world.feed(ev.Tick(now=2_000))
    world.play(until=ev.Send)
    assert len(world.reasons()) == 1
    assert not world.state.chain.guard.suspended


def test_three_claims_that_fail_end_the_turn_and_that_is_told() -> None:
    """Never ahead of anything the person has said: without a place in order nothing is sent."""
    world = AwayWorld(*OWED)
    world.claims.extend(["refused", "malformed", "missing"])
    world.arm(play=True)
    assert world.reasons() == []
    assert world.ends() == [("P1", "error")]
    assert world.told("stopped_while_away") == [{"end": "error", "rule": "turn.claim_unavailable"}]
    assert world.state.chain.guard.suspended_by is None


# ---- stale verdicts


CHANGES = {
    "switch": (ev.SwitchSet(switch="observe"),),
    "fences": (away.FencesChanged(),),
    "away": (away.AwaySet(period="p2"),),
}


@pytest.mark.parametrize("change", ["switch", "fences", "away"])
@pytest.mark.parametrize("place", [away.Judge, ev.Drain, ev.Claim, ev.Compress, ev.CheckTokens])
def test_a_verdict_on_facts_that_have_changed_is_not_sent_but_judged_again(change: str, place: type[ev.Effect]) -> None:
    """Switch, holds and period: wherever the continuation stands before its send, the stop is judged anew, and claims anew."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    world.play(until=ev.Send, skip=1)
    world.play(until=place, skip=place is ev.Drain)
    for event in CHANGES[change]:
        world.feed(event)
    world.play(until=ev.Send)
    assert asked(world) == 2
    assert len(world.reasons()) == 1
    if place not in (away.Judge, ev.Drain):
        assert world.order(ev.Claim) == ["Claim", "Claim"]


def test_the_store_may_know_better_and_the_stop_is_judged_again() -> None:
    """Between verdict and record another process changed something: nothing was counted, and the second verdict is."""
    world = AwayWorld(*OWED)
    world.kept.extend([{"stale": True}, {"stale": True}])
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    assert asked(world) == 3
    assert len(world.reasons()) == 1
    assert world.night.state.blocks == 1


def test_an_allow_that_is_stale_is_judged_again() -> None:
    """The wake was gone when the record was to be written."""
    world = AwayWorld(wakes=SOON)
    world.kept.append({"stale": True})
    world.prompt(play=False)
    world.play(until=away.CommitVerdict)
    world.wakes = ()
    world.play(until=ev.Send, skip=0)
    assert world.rules() == ["away.no_next_look"]


@pytest.mark.case("BR-043")
def test_plan_mode_that_comes_while_a_continuation_is_prepared_or_opens_ends_it() -> None:
    """The mode is read again up to the provider's first event: the stream is taken back, and the stop recorded as plan mode."""
    for place in (away.Judge, ev.Claim, away.CommitVerdict, ev.CheckTokens, ev.Send):
        world = AwayWorld(*OWED)
        world.prompt(play=False)
        world.play(until=ev.Send, skip=1)
        world.play(until=place, skip=place is ev.Send)
        world.feed(ev.ModeChanged(plan=True))
        world.play()
        assert world.ends() == [("P1", "plan_mode")], place
        assert world.rules()[-1] == "stop.plan_mode"
        assert not any(part.kind == "away" for parts in world.history.values() for part in parts)


def test_a_hooks_reason_is_kept_when_the_verdict_is_stale() -> None:
    """It is told once and sent once, with the verdict that holds."""
    world = AwayWorld(*OWED, hooks=True)
    world.hooks.append(BLOCK)
    world.prompt(play=False)
    world.play(until=ev.CheckTokens, skip=1)
    world.feed(away.FencesChanged())
    world.play(until=ev.Send)
    assert world.kinds(1) == ["hook_reason", "away"]
    assert len(world.told("hook_block")) == 1


def test_away_that_ends_before_the_record_leaves_the_stop_to_the_guard() -> None:
    """The person is back: the verdict is stale, and the armed list is the reason now."""
    world = AwayWorld(*OWED)
    world.arm()
    world.play(until=ev.Claim)
    world.feed(away.AwaySet(period=""))
    world.play(until=ev.Send)
    assert world.attempts() == [1]
    assert world.reasons() == []


def test_a_stream_of_the_guard_that_is_prepared_when_away_begins_stays_the_guards() -> None:
    """It was decided while the person was there; the next stop is the away check's."""
    world = AwayWorld(*OWED, period="")
    world.arm()
    world.play(until=ev.Claim)
    world.feed(away.AwaySet(period="p1"))
    world.play(until=ev.Send, skip=2)
    assert world.attempts() == [1]
    assert len(world.reasons()) == 1


def test_a_late_word_that_a_prompt_is_queued_ends_the_judging() -> None:
    """The hooks were quicker than the queue; its answer, that a prompt waits, comes while the stop is judged."""
    world = AwayWorld(*OWED, hooks=True)
    world.prompt(play=False)
    world.play(until=ev.RunHooks)
    world.feed(ev.PromptQueuedSeen())
    claim = world.pending(ev.Claim)
    world.answer(world.pending(ev.RunHooks))
    world.open.pop(claim.id)
    world.play(until=away.Judge)
    world.feed(ev.ClaimAnswered(id=claim.id, claimed=False, queued=True))
    world.play()
    assert world.ends() == [("P1", "yielded")]
    assert world.reasons() == []


# ---- our own faults


@pytest.mark.case("BR-098")
def test_a_judge_that_fails_blocks_three_times_in_a_row_and_then_lets_go() -> None:
    """The session is told why; the fourth stop in the row is allowed as an error, and nothing loops."""
    world = AwayWorld(*OWED)
    world.said.extend([{"failed": "the disk is full"}] * 4)
    world.prompt()
    assert len(world.reasons()) == 3
    assert "the disk is full" in world.reasons()[0]
    assert world.ends() == [("P1", "error")]
    assert [one["count"] for one in world.told("away_fault")] == [1, 2, 3, 4]
    assert world.recorded == []


def test_a_verdict_that_was_recorded_ends_the_row_of_faults() -> None:
    """Two faults, a judged block, two faults: all are blocked, and the count begins anew."""
    world = AwayWorld(*OWED)
    bad = {"failed": "locked"}
    good = {"verdict": Verdict(block=True, kind="block", rule="away.owed_changed", reason="go on", at=0)}
    world.said.extend([bad, bad, good, bad, bad])
    world.prompt()
    assert world.reasons()[2] == "go on"
    assert [one["count"] for one in world.told("away_fault")] == [1, 2, 1, 2]


@pytest.mark.parametrize("place", [away.Judge, away.CommitVerdict])
def test_a_driver_that_does_not_answer_within_eight_seconds_is_a_fault(place: type[ev.Effect]) -> None:
    """The stop is blocked with a reason that says so, and the late answer is not heard."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    late = world.play(until=place)
    world.open.pop(late.id)
    world.feed(ev.Tick(now=7_999))
    assert world.told("away_fault") == []
    world.feed(ev.Tick(now=8_000))
    world.feed(away.VerdictKept(id=late.id) if place is away.CommitVerdict else away.Judged(id=late.id, failed="late"))
    world.play(until=ev.Send)
    assert "no answer in time" in world.reasons()[0]


def test_an_allow_that_cannot_be_recorded_is_a_fault_too() -> None:
    """What is not in the record must not end the turn."""
    world = AwayWorld(wakes=SOON)
    world.kept.append({"failed": "read-only"})
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    assert "read-only" in world.reasons()[0]


def test_a_fault_takes_a_hooks_reason_along_and_never_goes_against_the_person() -> None:
    """The hook's reason first; in plan mode a fault ends the turn."""
    world = AwayWorld(*OWED, hooks=True)
    world.hooks.append(BLOCK)
    world.kept.append({"failed": "locked"})
    world.prompt(play=False)
    world.play(until=ev.Send, skip=2)
    assert world.kinds(1) == ["hook_reason", "away"]
    plan = AwayWorld(*OWED)
    plan.feed(ev.ModeChanged(plan=True))
    plan.said.append({"failed": "locked"})
    plan.prompt()
    assert plan.ends() == [("P1", "plan_mode")]


# ---- sends that fail


@pytest.mark.case("BR-091")
def test_after_a_compression_that_failed_nothing_of_ours_is_sent() -> None:
    """No continuation into a full context, not while away either: the turn ends, and that is told."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    compress = world.play(until=ev.Compress, skip=1)
    world.fail(compress, ev.CompressionFailed(id=compress.id))
    world.play()
    assert world.reasons() == []
    assert world.ends() == [("P1", "error")]
    assert world.told("stopped_while_away") == [{"end": "error", "rule": "turn.compression_failed"}]


@pytest.mark.case("BR-092")
def test_a_context_that_is_full_ends_the_turn_once() -> None:
    """What does not fit is not sent, and not tried again."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    check = world.play(until=ev.CheckTokens, skip=1)
    world.fail(check, ev.TokensChecked(id=check.id, fits=False))
    world.play()
    assert world.ends() == [("P1", "max_tokens")]
    assert world.told("stopped_while_away") == [{"end": "max_tokens", "rule": "turn.token_limit"}]
    assert len(world.sent) == 1


def test_a_send_that_is_refused_leaves_no_word_of_ours_in_history() -> None:
    """The block was counted before the send, as the record says; the turn ends as an error."""
    world = AwayWorld(*OWED)
    world.replies.extend([SAY, Reply(refused="429")])
    world.prompt()
    assert world.ends() == [("P1", "error")]
    assert world.rules() == ["away.no_qualifying_wake"]
    assert not any(part.kind == "away" for parts in world.history.values() for part in parts)


@pytest.mark.parametrize("how", ["cancel", "dispose", "broken", "tool hook", "fault"])
def test_a_session_that_stops_without_a_verdict_that_let_it_is_known_to_have_stopped(how: str) -> None:
    """Whatever the end was, it is told with its kind and rule; the morning's account has it."""
    world = AwayWorld(*OWED)
    if how == "broken":
        world.replies.append(Reply(broken="network"))
    elif how == "tool hook":
        world.replies.append(Reply(calls=1, stop="post_tool_use"))
    elif how == "fault":
        world.said.extend([{"failed": "locked"}] * 4)
    world.prompt(play=False)
    if how in ("cancel", "dispose"):
        world.play(until=ev.CheckTokens)
        world.feed(ev.Cancelled() if how == "cancel" else ev.Disposed())
    world.play()
    (end,) = (one for one in world.effects if isinstance(one, ev.EndTurn))
    assert world.told("stopped_while_away") == [{"end": end.kind, "rule": end.rule}]


def test_a_session_that_was_let_wait_or_gave_way_is_not_said_to_have_stopped() -> None:
    """A wait, a yield, a newer prompt, and a stop the guard decided because the judge knew that away is over."""
    waits = AwayWorld(wakes=SOON)
    waits.prompt()
    gives_way = AwayWorld(*OWED)
    gives_way.claims.append("queued")
    gives_way.prompt()
    overtaken = AwayWorld(wakes=SOON)
    overtaken.prompt(play=False)
    overtaken.play(until=ev.CheckTokens)
    overtaken.prompt()
    over = AwayWorld(*OWED)
    over.said.append({"verdict": Verdict(block=False, kind="idle", rule="away.not_away", at=0)})
    over.prompt()
    for world in (waits, gives_way, overtaken, over):
        assert world.ends()
        assert world.told("stopped_while_away") == []


def test_hooks_that_cannot_be_asked_do_not_end_the_night() -> None:
    """It is told, the guard waits for a retry, and the stop is judged without them."""
    world = AwayWorld(*OWED, hooks=True)
    world.hooks.append({"failed": True})
    world.arm()
    world.play(until=ev.Send, skip=4)
    assert world.told("hooks_failed") == [{}]
    assert len(world.reasons()) == 1
    assert world.state.chain.guard.retry_paused


# ---- automatic turns


def test_an_unfinished_list_does_not_hold_back_the_wakes_of_a_session_that_waits() -> None:
    """The fire of its wake has its turn at once, as a guest beside the list, and its stop is judged like any other."""
    world = AwayWorld(wakes=SOON)
    world.arm(play=True)
    assert world.ends()[-1] == ("P1", "waiting")
    world.feed(ev.FireArrived(fire=Fire(id="look")))
    world.play()
    assert world.stored("look") == 1
    assert world.ends()[-1][1] == "waiting"
    assert len(world.rules()) == 2
    assert world.state.chain.guard.armed


def test_a_list_that_was_put_off_overnight_holds_nobody_back_in_the_morning() -> None:
    """Away ends by its time while the session waits: schedules go on, and trust in the list is kept."""
    world = AwayWorld(wakes=SOON)
    world.arm(play=True)
    world.feed(away.AwaySet(period=""))
    world.feed(ev.FireArrived(fire=Fire(id="look")))
    world.play()
    assert world.stored("look") == 1
    assert world.state.chain.guard.armed
    assert world.ends()[-1][1] == "done"


def test_away_that_ends_without_a_list_changes_nothing() -> None:
    """There is nothing that could have been put off."""
    world = AwayWorld(wakes=SOON)
    world.prompt()
    world.feed(away.AwaySet(period=""))
    assert not world.state.chain.too_long


def test_results_of_the_turns_own_work_come_before_the_verdict() -> None:
    """The model hears of them first, and the stop after that is judged."""
    world = AwayWorld(*OWED)
    world.prompt(play=False)
    world.play(until=ev.Send)
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="t1"),)))
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="t1")))
    world.feed(ev.BackgroundChanged())
    world.play(until=ev.Send, skip=2)
    assert world.kinds(1) == ["result"]
    assert asked(world) == 0


def test_a_guest_leaves_the_results_of_the_chain_beside_it_to_the_chain() -> None:
    """They are related to the chain that waits, and not to a turn that runs beside it."""
    world = AwayWorld(wakes=SOON)
    world.arm()
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="t1"),)))
    world.play()
    world.feed(ev.FireArrived(fire=Fire(id="look")))
    world.play(until=ev.Send)
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="t1")))
    world.play()
    turns = [one.turn for one in world.effects if isinstance(one, ev.BeginTurn)]
    carrier = next(send.label for send in world.committed if any(part.id == "r1" for part in send.parts))
    assert carrier == turns[2]
