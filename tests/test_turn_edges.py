"""The turn where two things happen at once: late answers, words in flight, work that appears, a session that goes."""

from __future__ import annotations

import pytest

from stopwarden.core import backlog_events as waits
from stopwarden.core import turn_events as ev
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.fires import Fire
from stopwarden.core.instruction import MARKER, instruction, is_ours
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from tests.support.turns import ARM, BLOCK, HINT, LOOK, World, at_the_stop, text

SHELL = Task(kind="shell", id="sh1")


def test_a_claim_for_the_stream_itself_may_find_a_prompt() -> None:
    """No hint came before it: the claim says queued, tool results are stored once, and the turn yields."""
    world = at_the_stop()
    world.replies.append(LOOK)
    world.claims.extend(["granted", "queued"])
    world.play()
    assert world.attempts() == [1]
    assert world.ends() == [("P1", "yielded")]
    assert sum(part.kind == "tool_result" for parts in world.history.values() for part in parts) == 2


def test_a_hint_before_the_stream_that_nobody_confirms_sends_nothing() -> None:
    """The last look sees a prompt, the claim comes to nothing: the guard is locked."""
    world = at_the_stop()
    world.drains.extend([{}, HINT])
    world.claims.append("refused")
    world.play()
    assert world.attempts() == []
    assert world.ends() == [("P1", "suspended")]


def test_background_work_that_appears_during_the_preparation_defers_the_stream() -> None:
    """Decided on, but not yet claimed: the decision is made again, and the attempt is kept for later."""
    world = at_the_stop()
    world.play(until=ev.Drain, skip=1)
    world.feed(ev.BackgroundChanged(tasks=(SHELL,)))
    world.play()
    assert world.ends() == [("P1", "deferred")]
    assert ev.Claim not in map(type, world.effects)
    assert world.state.chain.guard.armed


def test_a_result_of_this_turns_own_work_goes_on_without_an_attempt() -> None:
    """It came while the guard's first stream ran: sent at the stop, before hooks and guard, which still has its second."""
    world = at_the_stop()
    send = world.play(until=ev.Send)
    while not send.attempt:
        world.answer(send)
        send = world.play(until=ev.Send)
    world.answer(send)
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh1")))
    world.play()
    assert [one.parts[0].kind for one in world.sent[2:]] == ["guard", "result", "guard"]
    assert world.attempts() == [1, 2]
    assert world.stored("r1") == 1


def test_words_in_flight_are_kept_when_the_turn_is_cancelled() -> None:
    """They were drained, and the claim about the queue is still out: the cancel stores them once."""
    world = at_the_stop()
    world.drains.append({**HINT, "parts": (text("one more"),)})
    claim = world.play(until=ev.Claim)
    world.feed(ev.Cancelled())
    assert world.ends() == [("P1", "cancelled")]
    assert world.stored("one more") == 1
    world.feed(ev.ClaimAnswered(id=claim.id, claimed=False, queued=True))
    assert world.attempts() == []


def test_a_hook_that_answers_before_the_queue_is_heard() -> None:
    """The claim was asked because a prompt had been seen; the hook's block counts, and the queue is asked again."""
    world = at_the_stop(hooks=True)
    hook = world.play(until=ev.RunHooks)
    world.feed(ev.PromptQueuedSeen())
    claim = world.pending(ev.Claim)
    with pytest.raises(IllegalEventError):
        world.feed(ev.TokensChecked(id=hook.id))
    world.fail(hook, ev.HookAnswered(id=hook.id, **BLOCK))
    world.fail(claim, ev.ClaimAnswered(id=claim.id, claimed=False, queued=True))
    world.play()
    assert world.kinds(2) == ["hook_reason"]
    assert world.ends() == [("P1", "yielded")]


def test_hooks_that_cannot_be_asked_end_the_turn_as_an_error_that_may_be_retried() -> None:
    """The guard pauses: a trusted retry goes on with both attempts."""
    world = at_the_stop(hooks=True)
    world.hooks.append({"failed": True})
    world.play()
    assert world.ends() == [("P1", "error")]
    world.prompt(kind=ev.RETRY)
    assert world.attempts() == [1, 2]


def test_what_a_hook_says_with_an_allow_is_shown() -> None:
    """A message without a block goes to the person once and to nobody else."""
    world = at_the_stop(hooks=True)
    world.hooks.append({"message": "all green"})
    world.play()
    assert world.told("hook_message") == [{"message": "all green"}]


def test_turning_the_guard_off_while_it_prepares_sends_nothing() -> None:
    """The person's switch holds at once, also between the claim and the send."""
    world = at_the_stop()
    world.play(until=ev.Compress)
    world.feed(ev.SwitchSet(switch="off"))
    world.play()
    assert world.attempts() == []


@pytest.mark.parametrize("end", ["cancel", "withdrawn", "refused", "dispose", "newer"])
def test_words_that_came_with_a_prompt_outlive_the_prompt(end: str) -> None:
    """They missed their drain and were carried by the next prompt; when that one never begins they go on, once."""
    world = World()
    world.prompt(play=False)
    world.play(until=ev.Send)
    late = ev.Part(kind="mid_turn", id="late")
    own = ev.Part(kind="user", id="own")
    world.feed(ev.PromptOffered(prompt=ev.Prompt(id="P9", parts=(late, own))))
    admit = world.pending(ev.AdmitWriter)
    if end == "refused":
        world.feed(ev.WriterAdmitted(id=admit.id, granted=False))
    else:
        world.answer(admit)
        if end == "cancel":
            world.feed(ev.Cancelled())
        elif end == "withdrawn":
            world.feed(ev.PromptWithdrawn(prompt="P9"))
        elif end == "dispose":
            world.feed(ev.Disposed())
    world.play()
    if end != "dispose":
        world.prompt()
    sent = [part.id for effect in world.effects if isinstance(effect, ev.Send) for part in effect.parts]
    stored = [
        part.id
        for effect in world.effects
        if isinstance(effect, ev.WriteHistory) and effect.act == "append"
        for part in effect.parts
    ]
    assert sent.count("late") + stored.count("late") == 1
    assert ("own" in sent) == (end == "newer")


def test_a_session_that_is_put_away_refuses_what_was_still_arriving() -> None:
    """The prompt that waits for the writer hears it at once; its late admission and a second end change nothing."""
    world = World()
    world.feed(ev.PromptOffered(prompt=ev.Prompt(id="P1")))
    admit = world.pending(ev.AdmitWriter)
    world.feed(ev.Disposed())
    assert [(one.prompt, one.why) for one in world.effects if isinstance(one, ev.Refuse)] == [("P1", "disposed")]
    assert world.feed(ev.WriterAdmitted(id=admit.id)) == []
    for event in (ev.Disposed(), ev.Cancelled(), ev.WriterAdmitted(id=99)):
        with pytest.raises(IllegalEventError):
            world.feed(event)


def test_a_message_to_an_old_agent_makes_it_work_of_this_chain() -> None:
    """The send was settled as a success: the guard waits for the agent, although it is older than the chain."""
    agent = Task(kind="agent", id="a1")
    world = World()
    world.feed(ev.BackgroundChanged(tasks=(agent,)))
    world.arm()
    world.play(until=ev.RunTools)
    world.feed(waits.MessageSending(send="s1", agent="a1"))
    world.feed(waits.MessageSettled(send="s1", succeeded=True))
    world.play()
    assert world.ends() == [("P1", "deferred")]


def test_only_our_own_words_are_taken_for_ours() -> None:
    """A person who quotes the marker, a count with a zero in front, and words added behind are not ours."""
    ours = instruction(3, 1, 2).text
    assert is_ours(ours)
    for other in (
        MARKER,
        f"{MARKER}3 left",
        ours.replace("3", "03"),
        ours + " please",
        "> " + ours,
        ours[len(MARKER) :],
    ):
        assert not is_ours(other)


@pytest.mark.case("G27")
def test_the_guard_does_not_need_the_hooks() -> None:
    """With external hooks switched off nobody asks them, and the list is continued all the same."""
    world = at_the_stop(hooks=False)
    world.play()
    assert ev.RunHooks not in map(type, world.effects)
    assert world.attempts() == [1, 2]


@pytest.mark.case("G61")
def test_a_turn_without_an_owner_claims_without_one() -> None:
    """A scheduled prompt's turn writes its own list: its claims name nobody, and hooks are not asked about it."""
    world = World(hooks=True)
    world.replies.append(ARM)
    world.feed(ev.FireArrived(fire=Fire(id="f1", job="nightly")))
    world.play()
    claims = [one for one in world.effects if isinstance(one, ev.Claim)]
    assert [one.owner for one in claims] == [None, None]
    assert world.attempts() == [1, 2]
    assert ev.RunHooks not in map(type, world.effects)


@pytest.mark.case("G139")
def test_an_open_gate_does_not_start_results_beside_a_turn_that_unwinds() -> None:
    """The prompt was cancelled while the gate was held: its tools come back first, then what may go has its turn."""
    world = World()
    world.replies.append(LOOK)
    world.prompt(play=False)
    tools = world.play(until=ev.RunTools)
    world.feed(ev.GateTaken())
    world.feed(ev.Cancelled())
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh1")))
    world.feed(ev.FireArrived(fire=Fire(id="f1", job="nightly")))
    world.feed(ev.GateReleased())
    assert [one.turn for one in world.effects if isinstance(one, ev.BeginTurn)] == ["P1"]
    world.answer(tools)
    assert [one.kind for one in world.effects if isinstance(one, ev.BeginTurn)] == ["foreground", "cron"]
    assert world.stored("r1") == 0
