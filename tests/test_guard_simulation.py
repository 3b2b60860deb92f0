"""The guard simulation: many seeded histories hold every promise, meet every race, and are the same each time."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from stopwarden.core import turn_events as ev
from stopwarden.core.fires import Fire
from stopwarden.core.record import Record
from stopwarden.core.turn import step
from stopwarden.core.turn_state import Session
from stopwarden.sim import guard_run, guard_wire
from stopwarden.sim.guard_faults import Plan, drawn
from tests.support.person import Person
from tests.support.turns import World

TRACE = """
import hashlib
from stopwarden.sim.guard_faults import drawn
from stopwarden.sim.guard_run import story
print(hashlib.sha256("\\n".join(line for seed in range(1, 25) for line in story(drawn(seed))).encode()).hexdigest())
"""


def test_every_promise_holds_and_every_race_is_met() -> None:
    """Two hundred and fifty seeds: nothing breaks, and no event, fault or named race stays out."""
    swept = guard_run.sweep(250, 1)
    assert not swept.broken, "\n".join(swept.story)
    assert swept.never == ()
    assert 180 <= swept.median <= 400


@pytest.mark.slow
def test_every_promise_holds_for_a_minute() -> None:
    """As many seeds as a minute holds."""
    end = time.monotonic() + 60
    swept = guard_run.sweep(1_000_000, 10_000, go_on=lambda _: time.monotonic() < end)
    assert not swept.broken, f"seed {swept.seed}\n" + "\n".join(swept.story)
    assert swept.never == ()


def test_a_seed_is_the_same_history_under_any_hash_seed() -> None:
    """The stories of two dozen seeds, letter by letter, from two interpreters that hash differently."""
    said = set()
    for hashing in ("1", "2"):
        there = {**os.environ, "PYTHONHASHSEED": hashing, "PYTHONPATH": os.pathsep.join(sys.path)}
        said.add(subprocess.run([sys.executable, "-c", TRACE], env=there, capture_output=True, check=True).stdout)
    assert len(said) == 1
    assert len(said.pop().strip()) == 64


def forgets_the_claim(state: Session, event: Record) -> tuple[Session, tuple[ev.Effect, ...]]:
    """A session that takes every answer to a claim for a grant."""
    if isinstance(event, ev.ClaimAnswered):
        event = event.replace(claimed=True, queued=False)
    return step(state, event)


def says_words_twice(state: Session, event: Record) -> tuple[Session, tuple[ev.Effect, ...]]:
    """A session that puts what it appends to history there twice."""
    after, effects = step(state, event)
    again = tuple(one for one in effects if isinstance(one, ev.WriteHistory) and one.act == "append")
    return after, effects + again


def hears_no_cancel(state: Session, event: Record) -> tuple[Session, tuple[ev.Effect, ...]]:
    """A session that a cancel does not reach."""
    return (state, ()) if isinstance(event, ev.Cancelled) else step(state, event)


def loses_drained_words(state: Session, event: Record) -> tuple[Session, tuple[ev.Effect, ...]]:
    """A session that forgets the words of a drain."""
    return step(state, event.replace(parts=()) if isinstance(event, ev.DrainAnswered) else event)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [(forgets_the_claim, "I2"), (says_words_twice, "I5"), (hears_no_cancel, "I6"), (loses_drained_words, "I5")],
)
def test_a_broken_session_is_found_and_told_as_a_short_story(
    broken: Callable[[Session, Record], tuple[Session, tuple[ev.Effect, ...]]],
    promise: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each fault breaks its promise within two hundred seeds, and the story is shorter than the history was."""
    monkeypatch.setattr(guard_wire, "step", broken)
    monkeypatch.setattr(guard_run, "SHRINK_RUNS", 150)
    swept = guard_run.sweep(400, 1)
    assert swept.broken.startswith(promise)
    assert swept.story[-1].startswith(promise)
    whole: list[str] = []
    guard_run.play(drawn(swept.seed), whole)
    assert len(swept.story) < len(whole)


def test_the_command_says_what_was_met_and_tells_a_broken_promise(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`simulate guard` counts what it met, and ends with 1 and the story where a promise is broken, in JSON too."""
    person = Person(tmp_path)
    assert person.types("simulate", "guard", "--seeds", "3") == 0
    assert "event PromptOffered" in person.said
    assert "Held after every event" in person.said
    assert person.types("simulate", "guard", "--seeds", "0") == 2
    monkeypatch.setattr(guard_wire, "step", says_words_twice)
    assert person.types("simulate", "guard", "--seeds", "3") == 1
    assert "BROKEN  I5" in person.said
    assert person.types("simulate", "guard", "--seeds", "3", "--json") == 1
    assert json.loads(person.said)["story"][-1].startswith("I5")


def test_a_plan_without_some_of_its_steps_is_a_plan_again() -> None:
    """What shrinking relies on: any steps may be left out, and the history still comes to rest."""
    plan: Plan = drawn(7)
    for place in range(0, len(plan.steps), 40):
        fewer = plan.replace(steps=plan.steps[:place] + plan.steps[place + 40 :])
        assert guard_run.play(fewer).book.broken == ""


# What the simulation found in the machines, as the smallest tests.


def test_a_fire_whose_turn_the_dispose_cut_is_named_as_left_out() -> None:
    """It was on its way when the session was put away; it came back, and no turn would ever take it."""
    world = World()
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    world.pending(ev.Compress)
    world.feed(ev.Disposed())
    world.answer(world.pending(ev.Compress)) if world.state.turn is not None else None
    assert world.state.backlog.fires == ()
    assert [gap.id for gap in world.state.backlog.gaps.open] == ["fire"]


def test_words_of_a_drain_that_answers_after_the_dispose_are_kept_in_history() -> None:
    """The owner has handed them over, and no drain and no prompt will come for them."""
    world = World()
    world.arm()
    drain = world.play(until=ev.Drain, skip=1)
    world.feed(ev.Disposed())
    word = ev.Part(kind="mid_turn", id="word")
    world.feed(ev.DrainAnswered(id=drain.id, parts=(word,)))
    assert world.stored("word") == 1


def test_a_chain_that_gave_way_waits_no_more_for_a_prompt_that_was_refused() -> None:
    """The gate was closed when the awaited prompt came: its owner counts it as begun, and will tell no release."""
    world = World()
    world.drains.extend([{}, {"hint": True}])
    world.claims.append("queued")
    world.arm(play=True)
    assert world.ends()[-1][1] == "yielded"
    world.feed(ev.GateTaken())
    world.feed(ev.PromptOffered(prompt=ev.Prompt(id="P9", owner="P9")))
    world.feed(ev.GateReleased())
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    world.play()
    assert world.stored("fire") == 1
    assert not world.told("ReleaseAnswered")
