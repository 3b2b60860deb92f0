"""What effects and ends carry besides their kind: who, for which call, by which rule, with which parts.

Whoever carries an effect out has nothing else to go by, and the record of a night is made of these words.
"""

from __future__ import annotations

import pytest

from stopwarden.core import claim_hosts, gaps
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.core.fires import Fire
from stopwarden.core.gaps import Gap, Gaps
from stopwarden.core.queue_words import (
    AnswerDone,
    AnswerDrain,
    Emit,
    MessagesResolved,
    ReleaseAnswered,
    ResolveMessages,
    SendRelease,
    WriteLedger,
)
from stopwarden.core.results import Result
from tests.support.bridge import Bridge
from tests.support.turns import HINT, LOOK, Reply, World, at_the_stop, text

# ---- the turn


def ended(world: World) -> list[tuple[str, str, str]]:
    return [(one.turn, one.kind, one.rule) for one in world.effects if isinstance(one, ev.EndTurn)]


def test_a_drain_asks_for_queued_prompts_at_a_stop_and_not_after_tools() -> None:
    """After tools the turn goes on whatever waits; at the stop, and before each continuation, that decides."""
    world = World()
    world.arm(play=True)
    asked = [one.watched for one in world.effects if isinstance(one, ev.Drain)]
    assert asked[0] is False
    assert all(asked[1:])
    assert len(asked) >= 4


def test_the_model_is_chosen_for_the_very_parts_that_are_sent() -> None:
    """A picture drained at the stop: the choice sees it, and nothing else."""
    world = at_the_stop()
    world.drains.extend([{}, {"parts": (text("look", image=True),)}])
    world.play()
    (chosen,) = [one for one in world.effects if isinstance(one, ev.ChooseModel)]
    assert chosen.parts == (text("look", image=True),)


def test_a_claim_names_the_owner_of_its_turn_and_the_chain_knows_it_by_the_same_id() -> None:
    """What the chain waits for is what was asked."""
    world = at_the_stop()
    claim = world.play(until=ev.Claim)
    assert (claim.owner, claim.probe) == ("P1", False)
    (known,) = world.state.chain.claims
    assert (known.id, known.owner, known.policy) == (claim.id, "P1", "guard")


@pytest.mark.parametrize("how, rule", [(ev.Cancelled(), "turn.cancel"), (ev.Disposed(), "turn.dispose")])
def test_what_cuts_a_turn_short_is_named_to_what_is_cut_and_to_the_prompt_that_never_began(
    how: ev.Event, rule: str
) -> None:
    """The stream is told why; the prompt that waited for the turn ends by that rule."""
    world = World()
    world.replies.append(LOOK)
    world.prompt(play=False)
    sending = world.play(until=ev.Send)
    world.answer(sending)
    world.prompt(play=False)
    world.feed(how)
    aborted = [one.why for one in world.effects if isinstance(one, ev.Abort)]
    assert aborted[0] == "new_prompt"
    assert ("P2", "cancelled", rule) in ended(world)


@pytest.mark.parametrize("how, why", [(ev.Cancelled(), "cancel"), (ev.Disposed(), "dispose")])
def test_a_stream_that_is_cut_is_told_why(how: ev.Event, why: str) -> None:
    """By a cancel or because the session is put away."""
    world = World()
    world.prompt(play=False)
    sending = world.play(until=ev.Send)
    world.answer(sending)
    world.feed(how)
    assert [(one.of, one.why) for one in world.effects if isinstance(one, ev.Abort)] == [(sending.id, why)]


def test_yielding_is_an_end_by_its_own_rule() -> None:
    """The claim found a queued prompt."""
    world = at_the_stop()
    world.drains.append(HINT)
    world.claims.append("queued")
    world.play()
    assert ended(world) == [("P1", "yielded", "turn.yielded")]


def test_words_kept_for_a_prompt_go_with_it_and_with_no_later_one() -> None:
    """Said to a turn that was overtaken before it began: sent with the next prompt, and not again."""
    world = World()
    world.replies.append(LOOK)
    world.prompt(play=False)
    world.play(until=ev.RunTools)
    world.prompt(play=False)
    world.prompt()
    world.prompt()
    assert [part.id for part in world.sent[-2].parts] == ["P2-words", "P3-words"]
    assert [part.id for part in world.sent[-1].parts] == ["P4-words"]
    assert world.state.kept == ()


def test_a_broken_stream_says_why_to_people() -> None:
    """The turn ends with an error that names what the provider said."""
    world = World()
    world.replies.append(Reply(broken="overloaded"))
    world.prompt()
    (end,) = [one for one in world.effects if isinstance(one, ev.EndTurn)]
    assert (end.kind, end.rule) == ("error", "turn.stream_broken")
    assert "overloaded" in (
        end.why,
        *(str(value) for one in world.effects if isinstance(one, ev.Tell) for _, value in one.detail),
    )


def test_a_turn_for_what_waits_is_labelled_and_ends_as_what_it_is() -> None:
    """A scheduled prompt's turn: begun by name and kind, its send under that name."""
    world = World()
    world.feed(ev.FireArrived(fire=Fire(id="f1", job="j1")))
    world.play()
    (begun,) = [one for one in world.effects if isinstance(one, ev.BeginTurn)]
    assert (begun.kind, world.sent[0].label) == (ev.CRON, begun.turn)
    assert [one[:2] for one in ended(world)] == [(begun.turn, "done")]


def test_a_prompt_that_was_let_in_too_late_is_refused_for_what_happened_meanwhile() -> None:
    """The writer let it in after the session was put away, or not at all."""
    for before, granted, why in (((ev.Disposed(),), True, "disposed"), ((), False, "cancelled")):
        world = World()
        world.feed(ev.PromptOffered(prompt=ev.Prompt(id="p", owner="p")))
        asked = world.pending(ev.AdmitWriter)
        for event in before:
            world.feed(event)
        world.feed(ev.WriterAdmitted(id=asked.id, granted=granted))
        assert [one.why for one in world.effects if isinstance(one, ev.Refuse)] == [why]


def test_a_queued_prompt_that_is_seen_when_no_turn_runs_asks_nothing() -> None:
    """Nothing to give way: no claim."""
    world = World()
    assert world.feed(ev.PromptQueuedSeen()) == []


def test_what_the_person_said_in_a_stage_is_stored_under_one_name_by_an_append() -> None:
    """Words of a drain that the turn yields with: one transaction on history."""
    world = at_the_stop()
    world.drains.append({**HINT, "parts": (text("and also"),)})
    world.claims.append("queued")
    world.play()
    kept = [one for one in world.effects if isinstance(one, ev.WriteHistory) and text("and also") in one.parts]
    assert [one.act for one in kept] == ["append"]


# ---- gap entries


def gap(number: int, turn: str = "") -> Gap:
    return Gap(number=number, id=f"r{number}", kind="shell", task="t", where="", why="bound", turn=turn)


def test_a_turn_that_came_to_nothing_gives_back_only_what_rode_on_it() -> None:
    """Another turn's entries stay with it; a turn without a name carries nothing."""
    held = Gaps(open=(gap(1, "t"), gap(2, "u"), gap(3)), next=4)
    assert [one.turn for one in gaps.returned(held, "t").open] == ["", "u", ""]
    assert gaps.returned(held, "v") is held
    assert gaps.returned(held, "") is held


def test_each_gap_that_rides_on_a_send_is_a_part_named_like_its_entry() -> None:
    """Twenty-five results found twenty places: five parts of the next send name those that were left out."""
    world = World()
    world.prompt(play=False)
    for number in range(25):
        world.feed(ev.ResultArrived(result=Result(id=f"r{number}", kind="shell", task=f"t{number}")))
    left_out = [one.id for one in world.state.backlog.gaps.open]
    world.play()
    told = [part.id for send in world.sent for part in send.parts if part.kind == "gap"]
    assert len(left_out) == 5
    assert sorted(told) == sorted(left_out)


# ---- the queue


def answers(bridge: Bridge, kind: type) -> list[tuple[str, int, str]]:
    return [(one.request, one.status, one.rule) for one in bridge.all(kind)]


def test_the_ledger_holds_each_prompt_from_its_admission_to_its_end() -> None:
    """In flight before its caller is told, and then how it ended."""
    bridge = Bridge()
    bridge.admit("p1")
    bridge.admit("p2")
    bridge.remove("p2")
    bridge.settle("p1", "failed")
    assert [(one.prompt, one.state) for one in bridge.all(WriteLedger)] == [
        ("p1", "in_flight"),
        ("p2", "in_flight"),
        ("p2", "cancelled"),
        ("p1", "failed"),
    ]


def test_an_answer_names_its_call_and_the_rule_it_was_given_by() -> None:
    """A removal of what is not there, and a drain of an empty queue, of another turn, and while one is out."""
    bridge = Bridge()
    bridge.admit("p1")
    bridge.remove("nothing")
    assert [one[1:] for one in answers(bridge, AnswerDone)] == [(404, "remove.not_pending")]
    bridge.drain("p9")
    bridge.drain("p1")
    bridge.post("m1")
    bridge.drain("p1")
    rules = answers(bridge, AnswerDrain)
    assert [rule for _, _, rule in rules] == ["drain.not_in_turn", "drain.nothing", "drain.handed_over"]
    assert all(request for request, _, _ in rules)
    assert len({request for request, _, _ in rules}) == 3


def test_a_release_that_failed_says_for_whom_and_why() -> None:
    """The owner would wait on: people are told its name and the reason."""
    bridge = Bridge()
    bridge.admit("p1")
    bridge.admit("p2")
    bridge.claim("p1")
    bridge.remove("p2")
    (release,) = bridge.all(SendRelease)
    bridge.feed(ReleaseAnswered(at=bridge.now, effect=release.id, failed="no such session"))
    (told,) = [one for one in bridge.all(Emit) if one.told == "release_failed"]
    assert (told.prompt, told.why) == ("p1", "no such session")


def test_a_drain_that_comes_to_nothing_says_which_rule_it_was() -> None:
    """Another is under way, its attachments cannot be read or came too late, or its turn is over."""
    for late, failed, rule in ((0, ("m1",), "drain.unreadable"), (DRAIN_DEADLINE_MS, (), "drain.too_late")):
        bridge = Bridge()
        bridge.admit("p1")
        bridge.post("m1", attachments=("a.png",))
        bridge.ask_drain("p1")
        bridge.drain("p1")
        bridge.admit("p2")
        read = bridge.all(ResolveMessages)[0]
        bridge.feed(MessagesResolved(at=bridge.now + late, effect=read.id, failed=failed))
        first, second = answers(bridge, AnswerDrain)
        assert (first[2], second[2]) == ("drain.another_under_way", rule)
        assert bridge.all(AnswerDrain)[-1].has_queued_prompt
    bridge = Bridge()
    bridge.admit("p1")
    bridge.post("m1", attachments=("a.png",))
    bridge.ask_drain("p1")
    bridge.settle("p1")
    assert [rule for _, _, rule in answers(bridge, AnswerDrain)] == ["drain.turn_over"]


def test_whoever_takes_something_back_or_cancels_is_named_and_answered_by_rule() -> None:
    """A message, and the running prompt: the clients are told who began it."""
    bridge = Bridge("ada", "bob")
    bridge.admit("p1", client="ada")
    bridge.post("m1", client="ada")
    bridge.take_back("m1", client="bob")
    bridge.cancel(client="bob")
    assert next(one[1:] for one in answers(bridge, AnswerDone)) == (204, "message.removed")
    told = {one.told: one.client for one in bridge.all(Emit)}
    assert (told["mid_turn_message_removed"], told["prompt_cancelled"]) == ("bob", "bob")


def test_a_host_says_by_which_rule_it_grants_or_refuses() -> None:
    """Known to the channel or not; current on the desktop, another, or none."""
    channel = claim_hosts.opened(claim_hosts.Channel(), "s1")
    desktop = claim_hosts.switched(claim_hosts.Desktop(), "s1")
    asked = [(channel, "s1"), (channel, "s2"), (desktop, "s1"), (desktop, "s2"), (desktop, None)]
    assert [answer.rule for host, session in asked if (answer := claim_hosts.claim(host, session)) is not None] == [
        "host.known_session",
        "host.unknown_session",
        "host.current_session",
        "host.unknown_session",
        "host.no_session",
    ]


# ---- what comes when nobody waits for it any more


def test_a_prompt_that_is_withdrawn_when_it_is_not_waiting_changes_nothing() -> None:
    """It began already, or was never heard of."""
    world = World()
    world.prompt(play=False)
    for name in ("P1", "P9"):
        before = world.state
        assert world.feed(ev.PromptWithdrawn(prompt=name)) == []
        assert world.state == before


def test_a_prompt_that_is_seen_to_wait_while_hooks_are_out_is_no_matter_without_the_guard() -> None:
    """Switched off, the session makes no claim: the hooks are asked and the stop stands."""
    world = at_the_stop(hooks=True, switch="off")
    world.play(until=ev.RunHooks)
    assert world.feed(ev.PromptQueuedSeen()) == []


def test_a_refused_prompt_releases_the_chain_that_gave_way_to_it() -> None:
    """The chain yielded, and then the prompt it yielded to could not be let in: it is told as released."""
    world = at_the_stop()
    world.drains.append(HINT)
    world.claims.append("queued")
    world.play()
    assert world.state.chain.priority_owner == "P1"
    world.feed(ev.PromptOffered(prompt=ev.Prompt(id="P2", owner="P2")))
    world.feed(ev.WriterAdmitted(id=world.pending(ev.AdmitWriter).id, granted=False))
    assert world.state.chain.priority_owner is None


def late_drain(world: World) -> ev.Drain:
    """A drain at the stop that got no answer in time; the turn has ended without it."""
    asked = world.play(until=ev.Drain)
    assert isinstance(asked, ev.Drain)
    del world.open[asked.id]
    world.feed(ev.Tick(now=world.state.now + 2_000))
    world.play()
    return asked


def test_words_of_a_drain_that_answers_after_the_session_was_put_away_are_stored_at_once() -> None:
    """No prompt will come to carry them."""
    world = at_the_stop()
    asked = late_drain(world)
    world.feed(ev.Disposed())
    world.feed(ev.DrainAnswered(id=asked.id, parts=(text("late"),)))
    assert world.stored("late") == 1
    assert world.state.kept == ()


def test_a_late_drain_without_words_is_nothing() -> None:
    """Heard, forgotten, nothing kept."""
    world = at_the_stop()
    asked = late_drain(world)
    assert world.feed(ev.DrainAnswered(id=asked.id)) == []
    assert world.state.late_drains == ()


def test_a_guard_that_is_switched_off_at_the_last_look_sends_nothing() -> None:
    """While the last drain is out: neither plan mode nor background work, so it is told as neither."""
    world = at_the_stop()
    world.answer(world.play(until=ev.Drain))
    world.play(until=ev.Drain)
    world.feed(ev.SwitchSet(switch="off"))
    world.play()
    assert world.attempts() == []
    assert world.told("guard_deferred") == []
    assert [one[:2] for one in ended(world)] == [("P1", "suspended")]


def test_a_stream_of_the_guard_that_is_accepted_after_a_cancel_is_taken_back_and_nothing_more() -> None:
    """The provider was already answering: the staged entry goes, the stream is cut, the turn ends as cancelled once."""
    world = at_the_stop()
    while not (sending := world.play(until=ev.Send)).attempt:
        world.answer(sending)
    world.feed(ev.Cancelled())
    world.fail(sending, ev.ProviderAccepted(id=sending.id))
    world.play()
    assert sending.entry not in world.history
    assert [one[:2] for one in ended(world)] == [("P1", "cancelled")]
    assert world.told("AttemptCounted") == []
