"""Turns that no person began: who may start when, whose they are, and what a refusal leaves behind (nothing)."""

from __future__ import annotations

from typing import Any

import pytest

from stopwarden.core import backlog_events as waits
from stopwarden.core import door_events as asks
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.fires import Fire
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from tests.support.turns import ARM, SAY, World, at_the_stop

SHELL = Task(kind="shell", id="sh1")
RESULT = ev.ResultArrived(result=Result(id="r1", kind="shell", task="sh1"))
FIRE = ev.FireArrived(fire=Fire(id="f1", job="nightly"))


def asked(world: World) -> ev.RegisterTurn:
    """The turn that asks to begin."""
    return world.pending(ev.RegisterTurn)


def answer(world: World, **said: Any) -> list[ev.Effect]:
    """The owner's side answers it."""
    out = asked(world)
    del world.open[out.id]
    return world.feed(ev.TurnRegistered(id=out.id, **said))


def begun(world: World) -> list[tuple[str, str]]:
    """The turns that began, with their kind."""
    return [(one.turn, one.kind) for one in world.effects if isinstance(one, ev.BeginTurn)]


def waiting_chain() -> World:
    """A chain whose list is unfinished waits for its own shell."""
    world = World()
    world.replies.append(ARM)
    world.prompt(play=False)
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(SHELL,)))
    world.play()
    assert world.ends() == [("P1", "deferred")]
    return world


def test_a_turn_for_results_is_an_owner_once_it_is_let_in() -> None:
    """It asks first; then its claims and drains carry its own name."""
    world = World()
    world.replies.extend([ARM, SAY])
    world.feed(RESULT)
    name = asked(world).turn
    assert begun(world) == []
    answer(world, accepted=True)
    assert begun(world) == [(name, "notification")]
    world.play()
    owners = {one.owner for one in world.effects if isinstance(one, ev.Claim | ev.Drain)}
    assert owners == {name}
    assert world.attempts() == [1, 2]


def test_a_scheduled_prompts_turn_asks_nobody() -> None:
    """It begins at once, without an owner."""
    world = World()
    world.feed(FIRE)
    assert [kind for _, kind in begun(world)] == ["cron"]
    assert world.state.turn is not None
    assert world.state.turn.owner is None


def test_an_owners_side_that_knows_no_such_call_is_asked_once() -> None:
    """The turn begins without an owner, and so does the next, unasked."""
    world = World()
    world.feed(RESULT)
    answer(world, unknown_method=True)
    world.play()
    world.feed(ev.ResultArrived(result=Result(id="r2", kind="shell", task="sh2")))
    world.play()
    assert [kind for _, kind in begun(world)] == ["notification", "notification"]
    assert sum(isinstance(one, ev.RegisterTurn) for one in world.effects) == 1
    assert world.stored("r2") == 1


@pytest.mark.parametrize("said", [{"accepted": False}, {}], ids=["no", "an error"])
def test_a_refusal_changes_neither_chain_nor_lineage(said: dict[str, Any]) -> None:
    """A result of an older chain is not let in: the session's chain and what is known of its work are as before."""
    world = World()
    world.prompt()
    before = world.state
    world.feed(RESULT)
    answer(world, **said)
    assert begun(world) == [("P1", "foreground")]
    assert world.state.chain == before.chain
    assert world.state.backlog.lineage == before.backlog.lineage
    assert [one.id for one in world.state.backlog.results] == ["r1"]


def test_a_related_result_that_is_refused_does_not_resume_the_chain_that_waits() -> None:
    """The chain goes on only when the turn for its result really begins, and then it does."""
    world = waiting_chain()
    before = world.state.chain
    world.feed(RESULT)
    world.feed(ev.BackgroundChanged())
    answer(world, accepted=False)
    assert world.state.chain == before
    world.feed(ev.Tick(now=1_000))
    world.play()
    assert world.attempts() == [1, 2]
    assert world.stored("r1") == 1


def test_after_four_refusals_results_wait_for_the_person_and_schedules_go_on() -> None:
    """The person is told; a scheduled prompt needs nobody's yes; the next prompt lets the results go again."""
    world = World()
    world.feed(RESULT)
    for second in (0, 1, 3, 7):
        world.feed(ev.Tick(now=second * 1_000))
        answer(world, accepted=False)
    world.feed(ev.Tick(now=60_000))
    assert world.told("ShowRetained") == [{"ids": ("r1",)}]
    assert not world.open
    world.feed(FIRE)
    world.play()
    assert [kind for _, kind in begun(world)] == ["cron"]
    world.prompt()
    assert world.stored("r1") == 1


def test_no_answer_in_time_is_a_no_and_the_turn_is_over_for_the_other_side() -> None:
    """Two seconds; a yes that comes then begins nothing."""
    world = World()
    world.feed(RESULT)
    out = asked(world)
    world.feed(ev.Tick(now=DRAIN_DEADLINE_MS - 1))
    assert world.ends() == []
    world.feed(ev.Tick(now=DRAIN_DEADLINE_MS))
    assert world.ends() == [(out.turn, "cancelled")]
    assert world.feed(ev.TurnRegistered(id=out.id, accepted=True)) == []
    assert begun(world) == []


@pytest.mark.parametrize("comes", ["prompt", "cancel", "dispose", "clear"])
def test_what_comes_before_the_answer_gives_the_results_back(comes: str) -> None:
    """The other side hears that the turn is over, for its yes may be on the way; that yes is late."""
    world = World()
    world.feed(RESULT)
    out = asked(world)
    del world.open[out.id]
    if comes == "prompt":
        world.prompt(play=False)
    else:
        events = {"cancel": ev.Cancelled(), "dispose": ev.Disposed(), "clear": waits.Cleared()}
        world.feed(events[comes])
    assert (out.turn, "cancelled") in world.ends()
    assert world.feed(ev.TurnRegistered(id=out.id, accepted=True)) == []
    world.play()
    assert (out.turn, "notification") not in begun(world)
    assert world.stored("r1") == (comes == "prompt")
    waits_still = [one.id for one in world.state.backlog.results]
    assert waits_still == (["r1"] if comes in ("cancel", "dispose") else [])
    assert bool(world.told("LeftOut")) == (comes == "clear")


@pytest.mark.parametrize("comes", ["gate", "prompt", "priority"])
def test_a_yes_is_looked_at_again(comes: str) -> None:
    """The gate is held by now, a prompt asks to be let in, or a queued one goes first: the turn does not begin."""
    world = World()
    if comes == "priority":
        world = at_the_stop()
        world.drains.append({"hint": True})
        claim = world.play(until=ev.Claim)
        del world.open[claim.id]
        world.feed(ev.Tick(now=DRAIN_DEADLINE_MS))
        world.play()
        assert world.ends() == [("P1", "suspended")]
    world.feed(RESULT)
    out = asked(world)
    if comes == "gate":
        world.feed(ev.GateTaken())
    elif comes == "prompt":
        world.feed(ev.PromptOffered(prompt=ev.Prompt(id="P9")))
    else:
        world.state = world.state.replace(chain=world.state.chain.replace(priority_owner="P1"))
    answer(world, accepted=True)
    assert (out.turn, "cancelled") in world.ends()
    assert (out.turn, "notification") not in begun(world)
    assert [one.id for one in world.state.backlog.results] == ["r1"]


def test_an_answer_about_a_turn_that_nobody_asked_for_is_illegal() -> None:
    """Its id was never given out; nothing changes."""
    world = World()
    before = world.state
    with pytest.raises(IllegalEventError):
        world.feed(ev.TurnRegistered(id=7, accepted=True))
    assert world.state is before


def test_nothing_rests_while_a_turn_asks_to_begin() -> None:
    """Who holds the gate is told of rest only when the answer has come."""
    world = World()
    world.feed(RESULT)
    world.feed(ev.GateTaken())
    world.feed(asks.SettleAsked())
    assert not any(isinstance(one, asks.LookForActivity) for one in world.effects)
    answer(world, accepted=True)
    assert any(isinstance(one, asks.LookForActivity) for one in world.effects)
