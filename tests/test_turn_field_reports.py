"""Failures that people reported of other agents' loops, played against the turn: each must not be able to happen here."""

from __future__ import annotations

import pytest

from stopwarden.core import door_events as asks
from stopwarden.core import turn_events as ev
from stopwarden.core.backlog_events import Restored
from stopwarden.core.fires import Fire
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from tests.support.away_turns import AwayWorld
from tests.support.stops import SOON, items
from tests.support.turns import ARM, BLOCK, LOOK, SAY, World


@pytest.mark.case("BR-032")
@pytest.mark.parametrize("before", ["finished", "cancelled", "deferred"])
def test_a_question_in_the_middle_of_guarded_work_is_answered_and_not_pushed_back_to_the_list(before: str) -> None:
    """However the guarded turn before it ended, a prompt whose turn touches no list stops where the model stops."""
    world = World()
    world.arm()
    if before == "cancelled":
        world.play(until=ev.Drain, skip=2)
        world.feed(ev.Cancelled())
    elif before == "deferred":
        world.play(until=ev.RunTools)
        world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh"),)))
    world.play()
    sent, pushed = len(world.sent), len(world.attempts())
    name = world.prompt()
    assert len(world.sent) == sent + 1
    assert len(world.attempts()) == pushed
    assert world.ends()[-1] == (name, "done")


@pytest.mark.case("BR-038")
def test_a_cancel_that_is_heard_after_the_session_went_idle_holds_all_that_would_follow() -> None:
    """First the stop and the end of the turn, then the cancel: neither a result, nor a schedule, nor a retry goes on."""
    world = World()
    world.arm()
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh"),)))
    world.play()
    assert world.ends()[-1] == ("P1", "deferred")
    world.feed(ev.Cancelled())
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh")))
    world.feed(ev.BackgroundChanged())
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    world.play()
    world.prompt(kind=ev.RETRY)
    assert world.attempts() == []


@pytest.mark.case("BR-043")
def test_a_plan_that_waits_behind_unfinished_work_is_made_in_plan_mode_and_before_anything_else() -> None:
    """The list would go on, but a prompt in another mode is queued: the claim yields, the plan runs, trust is gone."""
    world = World()
    world.claims.append("queued")
    world.arm(play=True)
    assert world.ends()[-1] == ("P1", "yielded")
    world.feed(ev.ModeChanged(plan=True))
    world.replies.extend([ARM, SAY])
    plan = world.prompt()
    assert world.ends()[-1] == (plan, "plan_mode")
    world.feed(ev.ModeChanged(plan=False))
    assert world.attempts() == []
    assert not world.state.chain.guard.armed


@pytest.mark.case("BR-023")
def test_a_condition_that_a_hook_checks_holds_whatever_the_model_says() -> None:
    """At two stops the check fails and the turn goes on; at the third it passes. Each time the model had said it was done."""
    world = World(hooks=True)
    world.hooks.extend([BLOCK, BLOCK, {"block": False}])
    world.prompt()
    assert [world.kinds(number) for number in range(3)] == [["user"], ["hook_reason"], ["hook_reason"]]
    assert world.ends() == [("P1", "done")]


@pytest.mark.case("BR-023")
def test_an_item_that_is_owed_is_owed_until_its_source_says_otherwise() -> None:
    """While away the stops after "I am done" are blocked as long as the item is open, and not one longer."""
    world = AwayWorld(*items("check"))
    world.prompt(play=False)
    for _ in range(3):
        world.answer(world.play(until=ev.Send))
    world.night.owes(*items(check="done"))
    world.wakes = SOON
    world.play()
    assert len(world.reasons()) == 1
    assert world.ends() == [("P1", "waiting")]


@pytest.mark.case("BR-050")
@pytest.mark.parametrize("lost", ["agents", "rest"])
def test_what_was_not_restored_is_said_and_nothing_claims_to_go_on(lost: str) -> None:
    """The policy does not let it be restored: that is told with its reason, and an unfinished list of before continues nothing."""
    world = World()
    world.feed(asks.LoadBegan())
    while waits := [one for one in world.open.values() if isinstance(one, asks.Restore)]:
        asked = world.open.pop(waits[0].id)
        problem = "policy" if asked.what == lost else ""
        waiting = {} if asked.what != "waiting" else {"waiting": Restored()}
        world.feed(asks.RestoreAnswered(id=asked.id, problem=problem, **waiting))
    assert world.told("not_restored") == [{"what": lost, "why": "policy"}]
    world.prompt()
    assert world.ends() == [("P1", "done")]
    assert world.attempts() == []


@pytest.mark.case("BR-053")
def test_stops_that_are_not_the_chains_own_cost_it_nothing() -> None:
    """A turn beside the waiting chain stops three times with a list of its own: the chain has both attempts afterwards."""
    world = World()
    world.arm()
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh"),)))
    world.play()
    world.feed(ev.Tick(now=0))
    world.feed(ev.Tick(now=1_800_000))
    for number in range(3):
        world.replies.extend([LOOK.replace(left=3), SAY])
        world.feed(ev.FireArrived(fire=Fire(id=f"f{number}")))
        world.play()
        assert world.ends()[-1][1] == "done"
    assert world.attempts() == []
    assert world.state.chain.guard.attempts == 0
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh")))
    world.feed(ev.BackgroundChanged())
    world.play()
    assert world.attempts() == [1, 2]
    assert world.told("AttemptCounted")[0]["unfinished"] == 2


@pytest.mark.case("BR-061")
def test_a_chain_that_waits_on_purpose_is_not_nagged_and_hears_the_person_at_once() -> None:
    """Ticks and word from older work while it waits: nothing is sent; a prompt is the very next thing that is."""
    old = Task(kind="monitor", id="old")
    world = World()
    world.feed(ev.BackgroundChanged(tasks=(old,)))
    world.arm()
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(old, Task(kind="shell", id="gate"))))
    world.play()
    sent = len(world.sent)
    for minute in range(29):
        world.feed(ev.Tick(now=minute * 60_000))
        world.feed(ev.ResultArrived(result=Result(id=f"p{minute}", kind="monitor", task="old", interim=True)))
        world.play()
    assert len(world.sent) == sent
    world.prompt(play=False)
    world.play(until=ev.Send)
    assert world.sent[sent].label == "P2"


@pytest.mark.case("BR-070")
def test_a_wake_that_an_older_chain_set_cannot_touch_a_newer_one() -> None:
    """It was that chain's own wake; when it comes the person has begun something else, which it neither resumes nor resets."""
    wake = Task(kind="wakeup", id="w1", state="scheduled")
    world = World()
    world.arm()
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(wake,)))
    world.play()
    assert world.ends()[-1] == ("P1", "deferred")
    world.replies.extend([LOOK.replace(left=3), SAY])
    world.prompt(play=False)
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(wake, Task(kind="shell", id="mine"))))
    world.play()
    assert world.ends()[-1] == ("P2", "deferred")
    guard, number = world.state.chain.guard, world.state.chain.number
    world.feed(ev.FireArrived(fire=Fire(id="fire", kind="wakeup", job="w1")))
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="mine"),)))
    world.play()
    assert world.state.chain.guard == guard
    assert world.state.chain.number == number
    assert world.attempts() == []
    assert world.state.turn is None
