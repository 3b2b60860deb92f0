"""A whole turn on the machine, told as stories: who may go on at a stop, how often, and what becomes of every word."""

from __future__ import annotations

import pytest

from stopwarden.core import turn_events as ev
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.fires import Fire
from stopwarden.core.instruction import LAST_TIME, MARKER, is_ours
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from tests.support.turns import ARM, FINISH, LOOK, SAY, Reply, World, todos


def armed(**kw: object) -> World:
    """A world in which the model has written a list with two open items and is about to say its last word."""
    world = World(**kw)  # type: ignore[arg-type]
    world.arm()
    return world


@pytest.mark.case("G21")
def test_with_the_guard_off_a_stop_is_a_stop() -> None:
    """Switched off, the guard costs no model call: the turn has the two that the person's prompt needs."""
    world = armed(switch="off")
    world.play()
    assert len(world.sent) == 2
    assert world.ends() == [("P1", "off")]
    assert ev.Claim not in map(type, world.effects)


@pytest.mark.case("G22", "G23")
def test_an_unfinished_list_is_continued_twice_and_then_given_up_once() -> None:
    """Two streams of the guard, two notes that they run and one that it gave up; the second says it is the last."""
    world = armed()
    world.play()
    assert world.attempts() == [1, 2]
    first, last = (send.parts[-1].text for send in world.sent if send.attempt)
    assert first.startswith(f"{MARKER}2 ")
    assert LAST_TIME not in first
    assert last.endswith(LAST_TIME)
    assert is_ours(first)
    assert is_ours(last)
    assert [one["attempt"] for one in world.told("AttemptCounted")] == [1, 2]
    (gave_up,) = world.told("Exhausted")
    assert (gave_up["attempts"], gave_up["cap"], gave_up["unfinished"]) == (2, 2, 2)
    assert world.ends() == [("P1", "exhausted")]
    assert "work" not in str([one for one in world.effects if isinstance(one, ev.Tell | ev.Pass)])


@pytest.mark.case("G29")
def test_each_follow_up_inside_a_guard_stream_is_an_attempt() -> None:
    """Tools in the first stream make its follow-up the second; tools in that one are stored, and no third is sent."""
    world = armed()
    world.replies.extend([LOOK, LOOK])
    world.play()
    assert world.attempts() == [1, 2]
    assert [part.kind for part in world.sent[-1].parts] == ["tool_result", "guard"]
    assert world.sent[-1].parts[-1].text.endswith(LAST_TIME)
    last = [part.id for parts in world.history.values() for part in parts if part.kind == "tool_result"][-1]
    assert str(world.sent[-1].id) in last
    assert world.ends() == [("P1", "exhausted")]


@pytest.mark.case("G30")
def test_a_list_finished_in_the_first_stream_gets_a_closing_word() -> None:
    """The second stream carries the tool's result alone, counts as the second attempt, and names none left."""
    world = armed()
    world.replies.append(FINISH)
    world.play()
    assert world.attempts() == [1, 2]
    assert world.kinds(-1) == ["tool_result"]
    assert world.told("AttemptCounted")[-1] == {"attempt": 2, "cap": 2, "unfinished": 0}
    assert world.ends() == [("P1", "done")]


@pytest.mark.case("G31")
def test_a_stream_that_broke_counts_and_a_retry_goes_on_with_the_second() -> None:
    """The provider had begun, so the attempt is spent; a trusted retry of that turn has one left."""
    world = armed()
    world.replies.append(Reply(broken="network"))
    world.play()
    assert world.ends() == [("P1", "error")]
    assert world.state.chain.guard.retry_paused
    world.prompt(kind=ev.RETRY)
    assert world.attempts() == [1, 2]


def test_a_refused_stream_costs_nothing_and_leaves_no_trace() -> None:
    """Beyond the source: without a first event there was no attempt, nothing was shown, and history is as before."""
    world = armed()
    world.replies.append(Reply(refused="429"))
    world.play()
    assert world.ends() == [("P1", "error")]
    assert world.told("AttemptCounted") == []
    assert world.state.chain.guard.retry_paused
    assert not any(part.kind == "guard" for parts in world.history.values() for part in parts)
    world.prompt(kind=ev.RETRY)
    assert world.attempts() == [1, 1, 2]


@pytest.mark.case("G32")
def test_an_ordinary_prompt_ends_a_failed_chain() -> None:
    """After an error the person writes something new: the old list continues nothing."""
    world = armed()
    world.replies.append(Reply(broken="network"))
    world.play()
    world.prompt()
    assert world.attempts() == [1]
    assert world.ends()[-1] == ("P2", "done")


@pytest.mark.case("G34")
def test_a_retry_that_is_cancelled_before_it_begins_frees_its_place() -> None:
    """It was admitted while the older turn unwound: both end as cancelled, the chain is locked, nothing is left."""
    world = armed()
    world.play(until=ev.RunTools)
    world.prompt(kind=ev.RETRY, play=False)
    world.feed(ev.Cancelled())
    world.play()
    assert world.ends() == [("P2", "cancelled"), ("P1", "cancelled")]
    assert world.state.next is None
    assert world.state.turn is None
    assert world.state.chain.guard.suspended_by == "cancelled"
    world.feed(ev.Cancelled())
    assert world.told("CancelAnswered")[-1] == {"running": False}


@pytest.mark.case("G35")
def test_trust_lost_while_the_stream_opens_takes_the_stream_back() -> None:
    """Plan mode came before the provider answered: no attempt is shown, our words go, a late todo write arms nothing."""
    world = armed()
    send = next_guard_send(world)
    world.feed(ev.ModeChanged(plan=True))
    world.feed(ev.ModeChanged(plan=False))
    world.feed(ev.TodoWritten(turn="P1", todos=todos(1)))
    world.answer(send)
    assert world.told("AttemptCounted") == []
    assert world.told("CommitRefused")
    assert world.ends() == [("P1", "suspended")]
    assert send.entry not in world.history


def next_guard_send(world: World) -> ev.Send:
    """Play up to a send of the guard's."""
    while True:
        send = world.play(until=ev.Send)
        assert isinstance(send, ev.Send)
        if send.attempt and send.id not in world.running:
            return send
        world.answer(send)


@pytest.mark.case("G36")
def test_a_newer_prompt_ends_the_older_turn_and_keeps_its_results() -> None:
    """The tools come back after the newer prompt was admitted: stored once, the old turn cancelled, the new untouched."""
    world = armed()
    tools = world.play(until=ev.RunTools)
    world.prompt(play=False)
    assert world.ends() == []
    world.play()
    assert world.ends() == [("P1", "cancelled"), ("P2", "done")]
    assert world.stored(f"result-{tools.calls[0]}") == 1
    assert world.attempts() == []


@pytest.mark.case("G36")
def test_a_cancel_keeps_the_results_of_the_tools_that_ran() -> None:
    """The person stops the turn: what the tools brought is in history, and no policy goes on."""
    world = armed()
    tools = world.play(until=ev.RunTools)
    world.feed(ev.Cancelled())
    world.play()
    assert world.ends() == [("P1", "cancelled")]
    assert world.stored(f"result-{tools.calls[0]}") == 1


def test_results_are_kept_when_the_turn_ends_while_their_drain_is_out() -> None:
    """Between the tools and the next send a newer prompt may come: nothing of the batch is lost."""
    world = armed()
    tools = world.play(until=ev.RunTools)
    world.answer(tools)
    assert isinstance(world.pending(ev.Drain), ev.Drain)
    world.prompt()
    assert world.stored(f"result-{tools.calls[0]}") == 1


@pytest.mark.case("G135")
def test_dispose_is_an_end_of_its_own() -> None:
    """A session put away ends its turn as cancelled by dispose; a late todo write changes nothing, no prompt is taken."""
    world = armed()
    world.play(until=ev.RunTools)
    world.feed(ev.Disposed())
    world.feed(ev.TodoWritten(turn="P1", todos=todos(1)))
    world.play()
    assert world.ends() == [("P1", "cancelled")]
    assert next(one for one in world.effects if isinstance(one, ev.EndTurn)).rule == "turn.dispose"
    assert world.state.chain.guard.suspended_by == "disposed"
    assert not world.state.chain.guard.armed
    refused = world.feed(ev.PromptOffered(prompt=ev.Prompt(id="late")))
    assert [(one.why) for one in refused if isinstance(one, ev.Refuse)] == ["disposed"]


def test_the_gate_is_looked_at_before_and_after_the_writer() -> None:
    """A prompt is refused while the gate is held, also if it was taken while the prompt waited for the writer."""
    world = World()
    world.feed(ev.PromptOffered(prompt=ev.Prompt(id="early")))
    world.feed(ev.GateTaken())
    world.play()
    world.feed(ev.PromptOffered(prompt=ev.Prompt(id="late")))
    assert [(one.prompt, one.why) for one in world.effects if isinstance(one, ev.Refuse)] == [
        ("early", "closing"),
        ("late", "closing"),
    ]
    world.feed(ev.GateReleased())
    assert world.prompt()
    assert world.ends() == [("P1", "done")]


def test_plan_mode_ends_the_stop_before_anything_is_asked() -> None:
    """In plan mode nobody is asked at a stop, and leaving it does not bring the old list back."""
    world = armed(hooks=True)
    world.play(until=ev.RunTools)
    world.answer(world.pending(ev.RunTools))
    world.feed(ev.ModeChanged(plan=True))
    world.play()
    assert world.ends() == [("P1", "plan_mode")]
    assert ev.RunHooks not in map(type, world.effects)


@pytest.mark.case("G119")
@pytest.mark.parametrize(
    "arrival",
    [
        ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh1")),
        ev.FireArrived(fire=Fire(id="f1", job="nightly")),
    ],
)
def test_an_aborted_automatic_turn_locks_its_chain(arrival: ev.Event) -> None:
    """A notification's or a schedule's turn that is cut short while it streams does not go on by itself afterwards."""
    world = World()
    world.replies.extend([ARM, SAY])
    world.feed(arrival)
    world.play(until=ev.RunTools)
    stream = world.play(until=ev.Send)
    world.answer(stream)
    world.feed(ev.Cancelled())
    world.play()
    assert [kind for _, kind in world.ends()] == ["cancelled"]
    assert world.state.chain.guard.suspended


def test_results_wait_for_the_end_of_the_prompt_and_come_in_one_turn() -> None:
    """Two results that came meanwhile are one turn after the person's own, and each is delivered once."""
    world = World()
    world.prompt(play=False)
    for number in (1, 2):
        world.feed(ev.ResultArrived(result=Result(id=f"r{number}", kind="shell", task=f"sh{number}")))
    world.play()
    assert [kind for _, kind in world.ends()] == ["done", "done"]
    assert world.kinds(-1) == ["result", "result"]
    assert world.stored("r1") == world.stored("r2") == 1
    world.feed(ev.ResultArrived(result=Result(id="r3", kind="shell", task="sh3")))
    world.play()
    assert world.kinds(-1) == ["result"]
    assert world.stored("r3") == 1


def test_words_of_a_prompt_that_was_overtaken_before_it_began_go_with_the_newer_one() -> None:
    """Two prompts come while an older turn unwinds: the first never begins, and nothing the person wrote is lost."""
    world = armed()
    world.play(until=ev.RunTools)
    world.prompt(play=False)
    world.prompt()
    assert world.ends() == [("P2", "cancelled"), ("P1", "cancelled"), ("P3", "done")]
    assert [part.id for part in world.sent[-1].parts] == ["P2-words", "P3-words"]


def test_a_prompt_whose_caller_went_away_does_not_begin() -> None:
    """It was admitted and waited for an older turn: that turn still unwinds, and nothing follows it."""
    world = armed()
    world.play(until=ev.RunTools)
    world.prompt(play=False)
    world.feed(ev.PromptWithdrawn(prompt="P2"))
    world.play()
    assert world.ends() == [("P2", "cancelled"), ("P1", "cancelled")]


@pytest.mark.case("G37")
def test_work_that_an_unwinding_turn_still_begins_is_old_for_the_prompt_that_replaced_it() -> None:
    """The shell came up while the older turn unwound: the new chain's guard does not wait for it."""
    world = armed()
    world.play(until=ev.RunTools)
    world.replies.clear()
    world.arm()
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh1"),)))
    world.play()
    assert world.attempts() == [1, 2]
    assert world.ends()[-1] == ("P2", "exhausted")


def test_a_wait_for_background_work_has_a_limit() -> None:
    """Beyond the source: after half an hour it is told, once, and an unrelated scheduled prompt runs again."""
    world = armed()
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh1"),)))
    world.play()
    assert world.ends() == [("P1", "deferred")]
    world.feed(ev.FireArrived(fire=Fire(id="f1", job="nightly")))
    world.feed(ev.Tick(now=0))
    world.feed(ev.Tick(now=1_799_000))
    world.play()
    assert world.stored("f1") == 0
    for now in (1_800_000, 1_900_000):
        world.feed(ev.Tick(now=now))
        world.play()
    assert world.stored("f1") == 1
    assert len(world.told("DeferredTooLong")) == 1


def test_a_related_result_resumes_the_chain_that_waited() -> None:
    """The shell's result gets a turn of its own, and in it the guard goes on with the attempts it had."""
    world = armed()
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh1"),)))
    world.play()
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh1", state="finished"),)))
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh1")))
    world.play()
    assert [kind for _, kind in world.ends()] == ["deferred", "exhausted"]
    assert world.attempts() == [1, 2]


def test_a_refused_turn_of_results_gives_them_back_and_tries_again_later() -> None:
    """Nothing is stored for a turn the provider did not begin: the result waits, and is delivered when time has passed."""
    world = World()
    world.replies.append(Reply(refused="overloaded"))
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh1")))
    world.play()
    assert world.stored("r1") == 0
    world.feed(ev.Tick(now=1_000))
    world.play()
    assert world.stored("r1") == 1


@pytest.mark.parametrize(
    "event",
    [
        ev.DrainAnswered(id=9_999),
        ev.GateReleased(),
        ev.Rewound(),
        ev.Event(),
        ev.PromptOffered(prompt=ev.Prompt(id="P1")),
    ],
)
def test_an_illegal_event_is_an_error_and_changes_nothing(event: ev.Event) -> None:
    """The state of a running turn is the very same after an event that cannot be."""
    world = armed()
    before = world.state
    with pytest.raises(IllegalEventError):
        world.feed(event)
    assert world.state is before


def test_an_answer_of_another_kind_is_illegal_and_a_late_one_is_nothing() -> None:
    """The id that is waited for takes only its own kind of answer; an older id takes any, without effect."""
    world = armed()
    tools = world.play(until=ev.RunTools)
    with pytest.raises(IllegalEventError):
        world.feed(ev.TokensChecked(id=tools.id))
    before = world.state
    assert world.feed(ev.TokensChecked(id=1)) == []
    assert world.state == before
