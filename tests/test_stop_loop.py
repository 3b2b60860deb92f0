"""The order at a stop and before each stream: the person's words, the queue, the hooks, the guard, the claim."""

from __future__ import annotations

import pytest

from stopwarden.core import turn_events as ev
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from tests.support.turns import BLOCK, FINISH, HINT, LOOK, SAY, Reply, World, at_the_stop, text

# ---- drains


@pytest.mark.case("G39")
def test_words_of_the_person_go_first_and_begin_a_new_stage() -> None:
    """Said between the attempts: sent as they are, then both attempts are there again after the budget was used."""
    world = at_the_stop()
    world.replies.extend([SAY, SAY])
    world.drains.extend([{}, {}, {}, {}, {"parts": (text("go left"),)}])
    world.play()
    assert world.attempts() == [1, 2, 1, 2]
    assert world.stored("go left") == 1


@pytest.mark.case("G40")
def test_a_watched_drain_without_a_word_on_the_queue_locks_the_guard() -> None:
    """The owner's side must say whether a prompt waits; if it does not, nothing is claimed and nothing sent."""
    world = at_the_stop()
    world.drains.append({"hint": None})
    world.play()
    assert world.attempts() == []
    assert ev.Claim not in map(type, world.effects)
    assert world.state.chain.guard.suspended_by == "drain_unreliable"
    assert world.ends() == [("P1", "suspended")]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(0, marks=pytest.mark.case("G41")),
        pytest.param(1, marks=pytest.mark.case("G42")),
    ],
)
def test_a_malformed_drain_locks_the_guard_at_each_of_its_drains(step: int) -> None:
    """A drain that cannot be read, at the stop or before the stream, is no leave to go on."""
    world = at_the_stop()
    world.drains.extend([{}] * step + [{"reliable": False}])
    world.play()
    assert world.attempts() == []
    assert world.state.chain.guard.suspended_by == "drain_unreliable"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(0, marks=pytest.mark.case("G43")),
        pytest.param(1, marks=pytest.mark.case("G44")),
    ],
)
def test_words_drained_with_a_queued_prompt_are_stored_when_the_turn_yields(step: int) -> None:
    """A claim confirms the prompt, at the stop or at the last look: the words are in history once, nothing is sent."""
    world = at_the_stop()
    world.drains.extend([{}] * step + [{**HINT, "parts": (text("and also"),)}])
    world.claims.append("queued")
    world.play()
    assert world.ends() == [("P1", "yielded")]
    assert world.attempts() == []
    assert world.stored("and also") == 1
    assert world.told("AttemptCounted") == []


@pytest.mark.case("G45")
def test_words_drained_with_a_hint_that_nobody_confirms_are_sent_alone() -> None:
    """The claim comes to nothing: the guard is locked, and what the person said is sent without it."""
    world = at_the_stop()
    world.drains.append({**HINT, "parts": (text("and also"),)})
    world.claims.append("refused")
    world.play()
    assert world.kinds(-1) == ["mid_turn"]
    assert world.attempts() == []
    assert world.ends() == [("P1", "suspended")]


@pytest.mark.case("G46")
def test_a_picture_chooses_the_model_before_the_claim_and_for_the_rest_of_the_turn() -> None:
    """No compression for the turn's own model after it, and the streams that follow stay on the one that can see."""
    world = at_the_stop()
    world.drains.extend([{}, {**HINT, "parts": (text("look", image=True),)}])
    before = len(world.effects)
    world.play()
    later = [type(one).__name__ for one in world.effects[before:]]
    assert later.index("ChooseModel") < later.index("Claim")
    assert "Compress" not in later
    assert {send.model for send in world.sent[2:]} == {"eyes"}
    assert world.attempts() == [1, 2]


@pytest.mark.case("G47")
def test_a_drain_the_owner_does_not_know_is_not_asked_again() -> None:
    """Its first answer says there is no such thing: from then on the session asks no more, and the guard is locked."""
    world = at_the_stop()
    world.drains.append({"unknown_method": True, "reliable": False})
    world.play()
    asked = world.order(ev.Drain)
    world.arm(play=True)
    assert world.order(ev.Drain) == asked
    assert world.attempts() == []


@pytest.mark.case("G47")
def test_three_drains_in_a_row_without_an_answer_are_the_last() -> None:
    """Each waits two seconds, and after the third the drain counts as gone."""
    world = World()
    for _ in range(3):
        assert not world.state.drain_gone
        world.replies.extend([LOOK, SAY])
        world.prompt(play=False)
        world.play(until=ev.Drain)
        world.feed(ev.Tick(now=world.state.now + 2_000))
        world.open = {id: one for id, one in world.open.items() if not isinstance(one, ev.Drain)}
        world.play()
    assert world.state.drain_gone


@pytest.mark.case("G48")
def test_words_of_a_late_drain_come_with_the_next_prompt_and_its_hint_with_nothing() -> None:
    """The answer came after its two seconds: the words are kept and sent, once; the hint of then is not believed."""
    world = at_the_stop()
    late = world.play(until=ev.Drain)
    del world.open[late.id]
    world.feed(ev.Tick(now=2_000))
    world.play()
    assert world.ends() == [("P1", "suspended")]
    for _ in range(2):
        world.feed(ev.DrainAnswered(id=late.id, hint=True, parts=(text("late words"),)))
    world.prompt()
    assert [part.id for part in world.sent[-1].parts] == ["late words", "P2-words"]
    assert not world.state.chain.priority


@pytest.mark.case("G49")
def test_words_drained_before_the_token_limit_are_stored() -> None:
    """They do not fit: no stream, the turn ends as max_tokens, and the words are in history for the next one."""
    world = at_the_stop()
    world.drains.append({"parts": (text("long"),)})
    check = world.play(until=ev.CheckTokens)
    world.fail(check, ev.TokensChecked(id=check.id, fits=False))
    world.play()
    assert world.ends() == [("P1", "max_tokens")]
    assert world.stored("long") == 1
    assert world.state.chain.guard.suspended_by == "token_limit"


# ---- claims


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("malformed", marks=pytest.mark.case("G50")),
        pytest.param("missing", marks=pytest.mark.case("G51")),
        "refused",
    ],
)
def test_a_claim_that_is_not_granted_sends_nothing(answer: str) -> None:
    """Whatever is not a plain yes locks the guard; the turn ends without another stream."""
    world = at_the_stop()
    world.claims.append(answer)
    world.play()
    assert world.attempts() == []
    assert world.ends() == [("P1", "suspended")]


@pytest.mark.case("G52")
def test_a_claim_without_an_answer_in_two_seconds_sends_nothing() -> None:
    """Just before the deadline it still waits; at it the guard is locked, and a yes that comes later is too late."""
    world = at_the_stop()
    claim = world.play(until=ev.Claim)
    world.feed(ev.Tick(now=1_999))
    assert world.ends() == []
    world.feed(ev.Tick(now=2_000))
    assert world.ends() == [("P1", "suspended")]
    assert world.feed(ev.ClaimAnswered(id=claim.id, claimed=True, queued=False)) == []
    assert world.attempts() == []


@pytest.mark.case("G57")
def test_a_prompt_after_the_claim_waits_for_that_stream_and_stops_the_next() -> None:
    """Seen while history is compressed: the stream that has its place goes on; the next asks, and yields."""
    world = at_the_stop()
    world.play(until=ev.Claim)
    world.play(until=ev.Compress)
    world.feed(ev.PromptQueuedSeen())
    world.drains.append(HINT)
    world.claims.append("queued")
    world.play()
    assert world.attempts() == [1]
    assert world.ends() == [("P1", "yielded")]


@pytest.mark.case("G58")
def test_each_stream_of_the_guard_claims_for_itself() -> None:
    """Two streams, two claims, each after its own drain and before its own compression and send."""
    world = at_the_stop()
    before = len(world.effects)
    world.play()
    kinds = (ev.Drain, ev.Claim, ev.Compress, ev.CheckTokens, ev.Send)
    later = [type(one).__name__ for one in world.effects[before:] if isinstance(one, kinds)]
    first = ["Drain", "Drain", "Claim", "Compress", "CheckTokens", "Send"]
    second = ["Drain", "Drain", "Claim", "CheckTokens", "Send"]
    assert later == [*first, *second, "Drain"]


@pytest.mark.case("G59")
def test_plan_mode_during_the_preparation_ends_it() -> None:
    """Entered while the drain before the stream is out: no claim is made, nothing is sent."""
    world = at_the_stop()
    world.play(until=ev.Drain, skip=1)
    world.feed(ev.ModeChanged(plan=True))
    world.play()
    assert ev.Claim not in map(type, world.effects)
    assert world.ends() == [("P1", "plan_mode")]


@pytest.mark.case("G60")
def test_a_hint_that_the_claim_refutes_lets_the_stop_go_on() -> None:
    """The queued prompt was gone when asked for: the guard continues as if it had never been seen."""
    world = at_the_stop()
    world.drains.append(HINT)
    world.play()
    assert world.attempts() == [1, 2]


@pytest.mark.case("G67")
def test_a_queued_prompt_holds_the_turn_although_words_came_with_it() -> None:
    """Priority is set, the words are stored, and the hooks are not asked about a stop that is overtaken."""
    world = at_the_stop(hooks=True)
    world.drains.append({**HINT, "parts": (text("and also"),)})
    world.claims.append("queued")
    world.play()
    assert world.state.chain.priority_owner == "P1"
    assert ev.RunHooks not in map(type, world.effects)
    assert world.stored("and also") == 1


# ---- what is preserved


@pytest.mark.case("G76")
def test_a_cancel_during_compression_leaves_no_words_of_ours() -> None:
    """The turn unwinds when the compression is back; history holds nothing of the guard."""
    world = at_the_stop()
    world.play(until=ev.Compress)
    world.feed(ev.Cancelled())
    world.play()
    assert world.attempts() == []
    assert world.ends() == [("P1", "cancelled")]


@pytest.mark.case("G77")
def test_a_failed_compression_spends_no_attempt_and_holds_nothing_back() -> None:
    """The chain is locked with its attempts unused, and automatic turns are free again."""
    world = at_the_stop()
    compress = world.play(until=ev.Compress)
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh1")))
    world.fail(compress, ev.CompressionFailed(id=compress.id))
    world.play()
    guard = world.state.chain.guard
    assert world.attempts() == []
    assert (guard.attempts, guard.suspended_by) == (0, "compression_failed")
    assert world.stored("r1") == 1


@pytest.mark.parametrize(
    "replies",
    [
        pytest.param((LOOK, Reply(refused="down")), marks=pytest.mark.case("G78")),
        pytest.param((LOOK, Reply(broken="down")), marks=pytest.mark.case("G79")),
    ],
)
def test_a_follow_up_that_fails_leaves_its_tool_results_once(replies: tuple[Reply, ...]) -> None:
    """Refused: stored by us without the instruction. Broken: already there with the stream that began. Never twice."""
    world = at_the_stop()
    world.replies.extend(replies)
    world.play()
    assert world.ends() == [("P1", "error")]
    results = [part.id for part in world.sent[-1].parts if part.kind == "tool_result"]
    assert [world.stored(one) for one in results] == [1]
    refused = bool(replies[1].refused)
    ours = sum(part.kind == "guard" for parts in world.history.values() for part in parts)
    assert ours == (1 if refused else 2)


@pytest.mark.case("G81")
def test_words_that_come_with_the_tools_of_a_guard_stream_take_the_results_along() -> None:
    """They are sent together as the person's own stream: no instruction, and not said to be the last time."""
    world = at_the_stop()
    world.replies.append(LOOK)
    world.drains.extend([{}, {}, {"parts": (text("wait"),)}])
    world.play()
    sent = next(send for send in world.sent if any(part.id == "wait" for part in send.parts))
    assert [part.kind for part in sent.parts] == ["tool_result", "mid_turn"]
    assert world.attempts() == [1, 1, 2]


@pytest.mark.case("G83")
def test_words_after_the_list_was_finished_sponsor_the_results() -> None:
    """With the person's words the closing stream is theirs: one attempt was made, and no other is counted."""
    world = at_the_stop()
    world.replies.append(FINISH)
    world.drains.extend([{}, {}, {"parts": (text("thanks"),)}])
    world.play()
    assert world.attempts() == [1]
    assert world.kinds(-1) == ["tool_result", "mid_turn"]
    assert world.ends() == [("P1", "done")]


@pytest.mark.case("G84")
def test_a_stop_by_a_tool_hook_gets_no_closing_stream() -> None:
    """The list is finished, but a hook stopped the tools: results are stored, the chain is locked."""
    world = at_the_stop()
    world.replies.append(Reply(calls=1, left=0, stop="post_tool_use"))
    world.play()
    assert world.attempts() == [1]
    assert world.ends() == [("P1", "suspended")]
    assert sum(part.kind == "tool_result" for parts in world.history.values() for part in parts) == 2


@pytest.mark.case("G85")
def test_words_after_a_stop_by_a_tool_hook_are_delivered_and_revive_nothing() -> None:
    """What the person said goes to the model with the results; the chain stays locked at the stop that follows."""
    world = at_the_stop()
    world.replies.append(Reply(calls=1, left=1, stop="post_tool_use"))
    world.drains.extend([{}, {}, {"parts": (text("so?"),)}])
    world.play()
    assert world.attempts() == [1]
    assert world.kinds(-1) == ["tool_result", "mid_turn"]
    assert world.state.chain.guard.suspended_by == "tool_hook_stop"


# ---- external hooks


@pytest.mark.case("G86")
def test_a_hook_that_blocks_and_the_guard_speak_in_one_message() -> None:
    """The hook's reason first, the guard's instruction second, in one stream."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    world.play()
    assert world.kinds(2) == ["hook_reason", "guard"]
    assert world.sent[2].parts[0].text == "run the tests"


@pytest.mark.case("G87")
def test_a_hook_goes_on_alone_when_compression_fails() -> None:
    """The guard gives up; the hook's reason is sent without it."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    compress = world.play(until=ev.Compress)
    world.fail(compress, ev.CompressionFailed(id=compress.id))
    world.play()
    assert world.kinds(2) == ["hook_reason"]
    assert world.attempts() == []


@pytest.mark.case("G88")
def test_what_the_person_says_before_the_stream_beats_the_hook() -> None:
    """Found at the last look: the words go alone, the block is neither shown nor counted; the next one is the first."""
    world = at_the_stop(hooks=True)
    world.hooks.extend([BLOCK, BLOCK])
    world.drains.extend([{}, {}, {"parts": (text("leave it"),)}])
    world.play()
    assert world.kinds(2) == ["mid_turn"]
    assert [one["count"] for one in world.told("hook_block")] == [1]
    assert [one.forced for one in world.effects if isinstance(one, ev.RunHooks)][:2] == [False, False]


@pytest.mark.case("G88")
def test_a_prompt_before_the_stream_beats_the_hook_too() -> None:
    """The turn yields; the hook's reason is not in history, its block not shown."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    world.drains.extend([{}, {}, HINT])
    world.claims.append("queued")
    world.play()
    assert world.ends() == [("P1", "yielded")]
    assert world.told("hook_block") == []
    assert not any(part.kind == "hook_reason" for parts in world.history.values() for part in parts)


@pytest.mark.case("G90", "G91")
def test_a_hooks_own_tools_go_on_after_the_guard_has_no_attempt_left() -> None:
    """The second attempt ran with the hook's reason: the results that follow are sent plainly, and none is lost."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    world.replies.extend([LOOK, LOOK])
    world.play()
    assert world.attempts() == [1, 2]
    assert world.kinds(4) == ["tool_result"]
    assert all(world.stored(part.id) == 1 for part in world.sent[4].parts)


@pytest.mark.case("G92")
def test_a_hooks_tool_results_are_sent_when_the_nested_claim_fails() -> None:
    """The guard's claim for the follow-up comes to nothing: the results go on under the hook's own rules."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    world.claims.extend(["granted", "refused"])
    world.replies.append(LOOK)
    world.play()
    assert world.attempts() == [1]
    assert world.kinds(3) == ["tool_result"]


@pytest.mark.case("G93")
def test_exhaustion_is_told_before_the_cap_of_the_hooks_ends_the_turn() -> None:
    """Both limits are met at one stop: the guard's end is told first, then the turn ends at the hooks' cap."""
    world = at_the_stop(hooks=True, hook_cap=3)
    world.hooks.extend([BLOCK] * 3)
    world.play()
    kinds = [
        one.kind if isinstance(one, ev.Tell) else type(one.what).__name__
        for one in world.effects
        if isinstance(one, ev.Tell | ev.Pass)
    ]
    assert kinds.index("Exhausted") < kinds.index("hook_cap")
    assert world.ends() == [("P1", "bound_reached")]


@pytest.mark.case("G94")
def test_an_allow_begins_the_hooks_count_anew() -> None:
    """Block, allow, block, with the guard in between: with a cap of two no row of two is ever reached."""
    world = at_the_stop(hooks=True, hook_cap=2)
    world.hooks.extend([BLOCK, {}, BLOCK])
    world.play()
    assert world.told("hook_cap") == []
    assert world.ends() == [("P1", "exhausted")]


@pytest.mark.case("G95")
def test_a_hooks_reason_survives_the_token_limit() -> None:
    """It was shown and does not fit: the reason is stored, the guard's words are not."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    check = world.play(until=ev.CheckTokens)
    world.fail(check, ev.TokensChecked(id=check.id, fits=False))
    world.play()
    assert len(world.told("hook_block")) == 1
    assert sum(part.kind == "hook_reason" for parts in world.history.values() for part in parts) == 1
    assert world.ends() == [("P1", "max_tokens")]


@pytest.mark.case("G96", "G97", "G101")
def test_words_during_a_slow_hook_discard_its_answer_and_it_is_asked_again() -> None:
    """Its block is not shown, not counted and not sent; about the new reply it is asked as if for the first time."""
    world = at_the_stop(hooks=True)
    world.hooks.extend([BLOCK, {}])
    world.drains.extend([{}, {"parts": (text("never mind"),)}])
    world.play()
    assert world.kinds(2) == ["mid_turn"]
    assert world.told("hook_block") == []
    asked = [one for one in world.effects if isinstance(one, ev.RunHooks)]
    assert [one.forced for one in asked[:2]] == [False, False]
    assert asked[0].reply != asked[1].reply


@pytest.mark.case("G101")
def test_after_a_block_the_hooks_hear_that_the_stop_was_forced() -> None:
    """The next question says so, and after an allow no longer."""
    world = at_the_stop(hooks=True)
    world.hooks.extend([BLOCK, {}, {}])
    world.play()
    assert [one.forced for one in world.effects if isinstance(one, ev.RunHooks)] == [False, True, False]


@pytest.mark.case("G98")
def test_a_slow_hooks_block_is_sent_alone_when_the_claim_fails() -> None:
    """A hint after the hook that nobody confirms locks the guard; what the hook said is shown and sent."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    world.drains.extend([{}, HINT])
    world.claims.append("refused")
    world.play()
    assert world.kinds(2) == ["hook_reason"]
    assert len(world.told("hook_block")) == 1
    assert world.attempts() == []


@pytest.mark.case("G99")
def test_a_slow_hooks_answer_is_dropped_for_a_queued_prompt() -> None:
    """Confirmed after the hook: the turn yields, the hook was asked once and is not heard."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    world.drains.extend([{}, HINT])
    world.claims.append("queued")
    world.play()
    assert world.ends() == [("P1", "yielded")]
    assert world.order(ev.RunHooks) == ["RunHooks"]
    assert world.told("hook_block") == []


def test_a_queued_prompt_cuts_a_slow_hook_short() -> None:
    """Beyond the source: the prompt is confirmed while the hook is still out, and does not wait for it."""
    world = at_the_stop(hooks=True)
    hook = world.play(until=ev.RunHooks)
    world.feed(ev.PromptQueuedSeen())
    claim = world.pending(ev.Claim)
    world.fail(claim, ev.ClaimAnswered(id=claim.id, claimed=False, queued=True))
    assert world.ends() == [("P1", "yielded")]
    assert (hook.id, "queued_prompt") in [(one.of, one.why) for one in world.effects if isinstance(one, ev.Abort)]


def test_a_hook_is_not_cut_short_for_a_prompt_that_is_gone() -> None:
    """The claim says that nothing waits: the hook goes on, and its block counts."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    world.play(until=ev.RunHooks)
    world.feed(ev.PromptQueuedSeen())
    world.answer(world.pending(ev.Claim))
    world.play()
    assert world.kinds(2) == ["hook_reason", "guard"]


@pytest.mark.case("G100")
def test_a_claim_that_failed_before_the_hook_does_not_silence_it() -> None:
    """The guard was locked by the first look at the queue: the hook is asked all the same, and goes on alone."""
    world = at_the_stop(hooks=True)
    world.drains.append(HINT)
    world.claims.append("refused")
    world.hooks.append(BLOCK)
    world.play()
    assert world.kinds(2) == ["hook_reason"]


@pytest.mark.case("G102")
def test_with_the_guard_off_the_hooks_do_as_ever() -> None:
    """A block goes on alone, is shown and counted; no drain or claim is made at a stop."""
    world = at_the_stop(hooks=True, switch="off")
    world.hooks.append(BLOCK)
    before = len(world.effects)
    world.play()
    assert world.kinds(2) == ["hook_reason"]
    assert [one["count"] for one in world.told("hook_block")] == [1]
    assert not [one for one in world.effects[before:] if isinstance(one, ev.Drain | ev.Claim)]


@pytest.mark.case("G103")
def test_loop_protection_refuses_a_persons_turn_and_lets_an_automatic_one_end() -> None:
    """In front of the person it is an error with a name; a notification's turn just ends; a cancel wins over both."""
    world = at_the_stop()
    world.replies.append(Reply(calls=1, stop="loop"))
    world.play()
    assert world.ends() == [("P1", "loop_detected")]
    automatic = World()
    automatic.replies.append(Reply(calls=1, stop="loop"))
    automatic.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh1")))
    automatic.play()
    assert [kind for _, kind in automatic.ends()] == ["suspended"]
    stopped = at_the_stop()
    stopped.replies.append(Reply(calls=1, stop="loop"))
    stopped.play(until=ev.RunTools)
    stopped.feed(ev.Cancelled())
    stopped.play()
    assert stopped.ends() == [("P1", "cancelled")]


def test_work_of_this_chain_defers_the_guard_and_costs_nothing() -> None:
    """A shell that the chain started still runs: the turn ends as deferred, with both attempts left."""
    world = at_the_stop()
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh1"),)))
    world.play()
    assert world.ends() == [("P1", "deferred")]
    assert world.told("guard_deferred") == [{"unfinished": 2}]
    assert world.state.chain.guard.attempts == 0


@pytest.mark.case("G80")
def test_a_refusal_after_compression_keeps_what_is_not_ours_once() -> None:
    """History was made over between the decision and the send: the hook's reason lies in it once, ours not at all."""
    world = at_the_stop(hooks=True)
    world.hooks.append(BLOCK)
    world.replies.append(Reply(refused="down"))
    before = len(world.effects)
    world.play()
    assert ev.Compress in [type(one) for one in world.effects[before:]]
    kept = [part.kind for parts in world.history.values() for part in parts]
    assert (kept.count("hook_reason"), kept.count("guard")) == (1, 0)


@pytest.mark.case("G82")
def test_a_closing_stream_that_fails_still_lets_results_come() -> None:
    """The model finished the list and the provider fails at its closing word: a waiting result gets its turn."""
    world = at_the_stop()
    world.replies.extend([FINISH, Reply(refused="down")])
    world.play(until=ev.RunTools)
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="monitor", task="m1", owner="other")))
    world.play()
    assert [kind for _, kind in world.ends()] == ["error", "done"]
    assert world.stored("r1") == 1


@pytest.mark.case("G89")
def test_the_hooks_count_stays_when_work_inside_its_continuation_yields_to_the_person() -> None:
    """The block was shown and followed; words found at its follow-up take over, and the next block is the second."""
    world = at_the_stop(hooks=True)
    world.hooks.extend([BLOCK, BLOCK])
    world.replies.append(LOOK)
    world.drains.extend([{}, {}, {}, {}, {"parts": (text("hm"),)}])
    world.play()
    assert world.kinds(3) == ["tool_result", "mid_turn"]
    assert [one["count"] for one in world.told("hook_block")] == [1, 2]


def yielded_with_a_result() -> World:
    """P1 has given way to a queued prompt, its drained words stored, while an unrelated result waits."""
    world = at_the_stop()
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="monitor", task="m1", owner="other")))
    world.drains.append({**HINT, "parts": (text("and also"),)})
    world.claims.append("queued")
    world.play()
    assert world.ends() == [("P1", "yielded")]
    assert world.stored("r1") == 0
    return world


@pytest.mark.case("G71")
def test_a_result_that_waited_comes_after_the_queued_prompt_failed() -> None:
    """The prompt that was yielded to ends in an error before it wrote any list: what was held back goes."""
    world = yielded_with_a_result()
    world.replies.append(Reply(refused="down"))
    world.prompt()
    assert [kind for _, kind in world.ends()] == ["yielded", "error", "done"]
    assert world.stored("r1") == 1


@pytest.mark.case("G72")
def test_a_result_that_waited_comes_when_the_queued_prompt_is_taken_back() -> None:
    """The release ends the wait and the chain; the words that were stored are not sent again on their own."""
    world = yielded_with_a_result()
    world.feed(ev.QueueReleased(owner="P1"))
    world.play()
    assert world.stored("r1") == 1
    assert world.kinds(-1) == ["result"]
    assert world.told("ReleaseAnswered") == [{"owner": "P1", "released": True}]


@pytest.mark.case("G73")
def test_a_result_that_waited_comes_after_the_chain_was_ended_and_its_prompt_failed() -> None:
    """Plan mode ended the chain in the middle of the prompt, which then ends in an error."""
    world = at_the_stop()
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="monitor", task="m1", owner="other")))
    send = world.play(until=ev.Send)
    world.feed(ev.ModeChanged(plan=True))
    world.feed(ev.ModeChanged(plan=False))
    del world.running[send.id]
    world.fail(send, ev.StreamBroken(id=send.id))
    world.play()
    assert [kind for _, kind in world.ends()] == ["error", "suspended"]
    assert world.stored("r1") == 1


@pytest.mark.case("G75")
def test_a_queued_prompt_comes_before_the_closing_word() -> None:
    """The list is finished, but the closing stream's own claim finds a prompt: results stored once, the turn yields."""
    world = at_the_stop()
    world.replies.append(FINISH)
    world.drains.extend([{}, {}, {}, HINT])
    world.claims.extend(["granted", "queued"])
    world.play()
    assert world.attempts() == [1]
    assert world.ends() == [("P1", "yielded")]
    assert sum(part.kind == "tool_result" for parts in world.history.values() for part in parts) == 2


def test_plan_mode_after_the_claim_still_keeps_the_stream_from_being_sent() -> None:
    """Entered while history is compressed: the place was granted, but trust is gone, so nothing is sent."""
    world = at_the_stop()
    world.play(until=ev.Compress)
    world.feed(ev.ModeChanged(plan=True))
    world.play()
    assert world.attempts() == []
    assert world.ends() == [("P1", "plan_mode")]


def test_words_at_a_stop_begin_the_hooks_count_anew() -> None:
    """A block was followed; then the person spoke: the next block is the first again, and not called forced."""
    world = at_the_stop(hooks=True)
    world.hooks.extend([BLOCK, BLOCK])
    world.drains.extend([{}, {}, {}, {"parts": (text("now this"),)}])
    world.play()
    assert [one["count"] for one in world.told("hook_block")] == [1, 1]
    assert [one.forced for one in world.effects if isinstance(one, ev.RunHooks)][:2] == [False, False]


# ---- half an answer


@pytest.mark.parametrize("cancelled", [False, True])
def test_what_the_model_had_said_before_its_stream_broke_stays_in_history(cancelled: bool) -> None:
    """A broken or cancelled stream leaves its first words behind what was sent, so no later prompt reads as its other half."""
    world = at_the_stop()
    send = world.play(until=ev.Send)
    if cancelled:
        world.feed(ev.Cancelled())
    del world.running[send.id]
    world.fail(send, ev.StreamBroken(id=send.id, reply="half"))
    world.play()
    assert world.stored("half") == 1
    assert [kind for _, kind in world.ends()] == ["cancelled" if cancelled else "error"]
