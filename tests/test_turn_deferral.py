"""The wait of a chain for its own background work: what it holds back, for how long, and what goes on beside it."""

from __future__ import annotations

import pytest

from stopwarden.core import backlog_events as waits
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DEFERRAL_LIMIT
from stopwarden.core.fires import Fire
from stopwarden.core.lineage import Task, relevant_background
from stopwarden.core.results import Result
from tests.support.turns import LOOK, SAY, World

SHELL = Task(kind="shell", id="build")
LIMIT = DEFERRAL_LIMIT * 1_000


def waiting() -> World:
    """A chain that armed, set a shell going, and stopped: its guard waits for the shell."""
    world = World()
    world.arm()
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(SHELL,)))
    world.play()
    assert world.ends()[-1] == ("P1", "deferred")
    world.feed(ev.Tick(now=0))
    return world


def past_the_limit(world: World) -> None:
    """Time passes up to the limit of the wait."""
    world.feed(ev.Tick(now=world.state.now + LIMIT))
    world.play()


def begun(world: World) -> list[str]:
    """The kinds of the turns that began."""
    return [one.kind for one in world.effects if isinstance(one, ev.BeginTurn)]


def test_past_the_limit_it_is_said_once_and_a_scheduled_prompt_runs() -> None:
    """Up to the last second the fire waits; then it is told that the wait takes too long, and the fire has its turn."""
    world = waiting()
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    world.feed(ev.Tick(now=LIMIT - 1))
    world.play()
    assert begun(world) == ["foreground"]
    world.feed(ev.Tick(now=LIMIT))
    world.play()
    assert begun(world) == ["foreground", "cron"]
    assert world.stored("fire") == 1
    assert [one["tasks"] for one in world.told("DeferredTooLong")] == [("build",)]


def test_a_turn_beside_the_waiting_chain_changes_nothing_of_it() -> None:
    """Its own list, its stop and its end leave trust, count and lineage of the chain as they are."""
    world = waiting()
    past_the_limit(world)
    guard, lineage = world.state.chain.guard, world.state.backlog.lineage
    number = world.state.chain.number
    world.replies.extend([LOOK.replace(left=1), SAY])
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    world.play()
    assert world.ends()[-1][1] == "done"
    assert world.state.chain.guard == guard
    assert world.state.chain.number == number
    assert world.state.backlog.lineage == lineage
    assert world.attempts() == []


def test_what_a_turn_beside_the_chain_sets_going_is_none_of_its_work() -> None:
    """A shell and an agent of the guest, and an agent it writes to, hold the chain back no longer than its own shell."""
    world = waiting()
    old = Task(kind="agent", id="old")
    past_the_limit(world)
    world.replies.extend([LOOK, SAY])
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    world.play(until=ev.RunTools)
    theirs = (Task(kind="shell", id="theirs"), Task(kind="agent", id="helper"), old)
    world.feed(waits.Spawned(agent="helper"))
    world.feed(ev.BackgroundChanged(tasks=(SHELL, *theirs)))
    world.feed(waits.MessageSending(send="m1", agent="old"))
    world.feed(waits.MessageSettled(send="m1", succeeded=True))
    world.play()
    assert relevant_background(world.state.backlog.lineage, world.state.tasks) == (SHELL,)
    world.feed(ev.BackgroundChanged(tasks=theirs))
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="build")))
    world.play()
    assert world.attempts()[:1] == [1]


def test_the_chains_own_result_takes_it_up_again_and_the_next_wait_is_counted_anew() -> None:
    """Half an hour after the limit the result comes: the guard goes on, and a second shell may be waited for as long."""
    world = waiting()
    past_the_limit(world)
    second = Task(kind="shell", id="second")
    world.replies.extend([LOOK, SAY])
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="build", digest="x")))
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(second,)))
    world.play()
    assert world.ends()[-1][1] == "deferred"
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    world.feed(ev.Tick(now=world.state.now + 1))
    world.play()
    assert begun(world) == ["foreground", "notification"]
    past_the_limit(world)
    assert begun(world) == ["foreground", "notification", "cron"]
    assert [one["tasks"] for one in world.told("DeferredTooLong")] == [("build",), ("second",)]


def test_what_the_chain_goes_on_waiting_for_is_counted_from_when_it_went_on() -> None:
    """Of two shells one is done and the chain goes on; nothing else is heard before it waits for the other, as long again."""
    world = World()
    world.arm()
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(SHELL, Task(kind="shell", id="second"))))
    world.play()
    world.feed(ev.Tick(now=0))
    past_the_limit(world)
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="build", digest="x")))
    world.play()
    assert begun(world) == ["foreground", "notification"]
    assert world.ends()[-1][1] == "deferred"
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="second"),)))
    past_the_limit(world)
    assert [one["tasks"] for one in world.told("DeferredTooLong")] == [("build", "second"), ("second",)]


def test_a_guest_that_runs_when_the_clock_ticks_does_not_begin_the_wait_anew() -> None:
    """It is said once that the wait takes too long, however many turns run beside it."""
    world = waiting()
    past_the_limit(world)
    for number in range(3):
        world.feed(ev.FireArrived(fire=Fire(id=f"f{number}")))
        world.play(until=ev.Send)
        world.feed(ev.Tick(now=world.state.now + 1))
        world.play()
        world.feed(ev.Tick(now=world.state.now + 1))
        past_the_limit(world)
    assert len(world.told("DeferredTooLong")) == 1
    assert begun(world) == ["foreground", *["cron"] * 3]


def test_a_prompt_ends_the_wait_and_begins_its_own() -> None:
    """The person writes shortly before the limit: the wait of the new chain has all its time."""
    world = waiting()
    world.feed(ev.Tick(now=LIMIT - 1_000))
    world.replies.extend([LOOK.replace(left=2), SAY])
    world.prompt(play=False)
    world.play(until=ev.RunTools)
    mine = Task(kind="shell", id="mine")
    world.feed(ev.BackgroundChanged(tasks=(SHELL, mine)))
    world.play()
    assert world.ends()[-1] == ("P2", "deferred")
    world.feed(ev.Tick(now=LIMIT))
    world.feed(ev.Tick(now=2 * LIMIT - 1))
    assert not world.told("DeferredTooLong")
    world.feed(ev.Tick(now=2 * LIMIT))
    assert [one["tasks"] for one in world.told("DeferredTooLong")] == [("mine",)]


@pytest.mark.parametrize("kind", [ev.ORDINARY, ev.RETRY])
def test_a_chain_begins_when_the_older_turn_has_unwound_not_when_its_prompt_is_admitted(kind: str) -> None:
    """A shell that the unwinding tools still set going is old for the new chain, and new for a retry that goes on."""
    world = World()
    world.arm()
    world.play(until=ev.Drain, skip=1)
    world.play(until=ev.Send)
    world.replies.append(LOOK)
    world.play(until=ev.RunTools)
    world.replies.append(SAY)
    world.prompt(kind=kind, play=False)
    assert world.state.next is not None
    assert world.state.backlog.lineage.baseline == frozenset()
    world.feed(ev.BackgroundChanged(tasks=(SHELL,)))
    world.answer(world.pending(ev.RunTools))
    assert world.state.turn is not None
    assert world.state.turn.id == "P2"
    old = frozenset({("shell", "build")})
    assert world.state.backlog.lineage.baseline == (old if kind == ev.ORDINARY else frozenset())
