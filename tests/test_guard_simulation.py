"""The guard simulation: many seeded histories hold every promise, meet every race, and are the same each time."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

from stopwarden.core import backlog_events as waits
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.core.fires import Fire
from stopwarden.core.record import Record
from stopwarden.core.results import Result
from stopwarden.core.turn import step
from stopwarden.core.turn_state import Session
from stopwarden.sim import guard_run, guard_story, guard_wire
from stopwarden.sim.guard_disk import Disk
from stopwarden.sim.guard_faults import Plan, drawn
from tests.support.person import Person
from tests.support.turns import World

TRACE = """
import hashlib
from stopwarden.sim.guard_faults import drawn
from stopwarden.sim.guard_story import story
print(hashlib.sha256("\\n".join(line for seed in range(1, 25) for line in story(drawn(seed))).encode()).hexdigest())
"""


def test_every_promise_holds_and_every_race_is_met() -> None:
    """Four hundred seeds: nothing breaks, every fault strikes, and at most two of the rarest races stay out."""
    swept = guard_run.sweep(400, 1)
    assert not swept.broken, f"{swept.broken}\nstopwarden simulate guard --seed {swept.seed}"
    assert not [name for name in swept.never if name.startswith(("fault", "checked"))]
    assert len([name for name in swept.never if name.startswith("race")]) <= 2
    assert 180 <= swept.median <= 400


def test_the_outcome_is_the_same_in_one_process_and_in_several() -> None:
    """Counts, lengths and their order; also where the seeds are no whole number of chunks."""
    assert guard_run.sweep(70, 5, jobs=2) == guard_run.sweep(70, 5)


def test_what_is_never_met_counts_only_where_seeds_enough_were_played() -> None:
    """A few seeds may miss a rare race; twenty thousand may not."""
    few = guard_run.Swept(seeds=guard_run.ENOUGH - 1)
    assert few.never
    assert not few.failed
    assert guard_run.Swept(seeds=guard_run.ENOUGH).failed
    assert not guard_run.Swept(guard_run.ENOUGH, hits=dict.fromkeys(guard_run.EXPECTED, 1)).failed
    assert guard_run.Swept(broken="I1").failed


def test_what_is_to_be_met_is_read_from_the_machines() -> None:
    """Every event and effect of both machines, every fault, race and promise; what is exempt has its reason."""
    for name in ("event PromptOffered", "event ClaimAnswered", "effect Send", "passed ReleaseAnswered", "queue Admit"):
        assert name in guard_run.EXPECTED
    assert not set(guard_run.UNMET) & set(guard_run.EXPECTED)
    assert all(guard_run.UNMET.values())


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
    [(forgets_the_claim, "I2"), (says_words_twice, "I5"), (hears_no_cancel, "Order"), (loses_drained_words, "I5")],
)
def test_a_broken_session_is_found_and_told_as_a_short_story(
    broken: Callable[[Session, Record], tuple[Session, tuple[ev.Effect, ...]]],
    promise: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each fault breaks its promise within two hundred seeds, and the story is shorter than the history was."""
    monkeypatch.setattr(guard_wire, "step", broken)
    monkeypatch.setattr(guard_story, "SHRINK_RUNS", 150)
    swept = guard_run.sweep(400, 1)
    assert swept.broken.startswith(promise)
    plan = drawn(swept.seed)
    short = guard_story.story(guard_story.shrunk(plan, swept.broken))
    assert short[-1].startswith(f"BROKEN  {promise}")
    assert len(short) < len(guard_story.story(plan))


def test_a_broken_history_is_shrunk_to_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that come twice need no step at all: the one prompt of the healed world is enough."""
    monkeypatch.setattr(guard_wire, "step", says_words_twice)
    short = guard_story.shrunk(drawn(1), "I5: words came twice")
    assert (short.faults, short.habits, short.steps) == ((), (), ())
    assert guard_run.play(short).book.broken.startswith("I5")


def test_shrinking_takes_the_smallest_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that hears no cancel: what is left of the history is plain, and breaks the same promise."""
    monkeypatch.setattr(guard_wire, "step", hears_no_cancel)
    swept = guard_run.sweep(100, 40)
    plan = drawn(swept.seed)
    short = guard_story.shrunk(plan, swept.broken)
    assert len(short.steps) < len(plan.steps) / 4
    assert sum(number.bit_length() for number in short.steps) / len(short.steps) < 40
    assert guard_story.promise(guard_run.play(short).book.broken) == guard_story.promise(swept.broken)


def test_the_command_says_what_was_met_and_tells_a_broken_promise(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`simulate guard` counts what it met, and ends with 1 and the story where a promise is broken, in JSON too."""
    person = Person(tmp_path)
    assert person.types("simulate", "guard", "--seeds", "3") == 0
    assert "  PromptOffered\n" in person.said
    assert "Every promise held." in person.said
    assert person.types("simulate", "guard", "--seeds", "0") == 2
    assert person.types("simulate", "guard", "--jobs", "0") == 2
    assert person.types("simulate", "guard", "--seed", "3") == 0
    assert "Every promise held." in person.said
    monkeypatch.setattr(guard_wire, "step", says_words_twice)
    assert person.types("simulate", "guard", "--seeds", "3") == 1
    assert "BROKEN  I5" in person.said
    assert person.types("simulate", "guard", "--seeds", "3", "--json") == 1
    told = json.loads(person.said)
    assert told["story"][-1].startswith("BROKEN  I5")
    assert person.types("simulate", "guard", "--seed", str(told["seed"]), "--json") == 1
    assert json.loads(person.said)["history"][-1].startswith("BROKEN  I5")


def test_a_plan_without_some_of_its_steps_is_a_plan_again() -> None:
    """What shrinking relies on: any steps may be left out, and the history still comes to rest."""
    plan: Plan = drawn(7)
    for place in range(0, len(plan.steps), 40):
        fewer = plan.replace(steps=plan.steps[:place] + plan.steps[place + 40 :])
        assert guard_run.play(fewer).book.broken == ""


# What the simulation found in the machines, as the smallest tests.


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


def test_words_that_came_too_late_are_on_disk_until_history_has_them() -> None:
    """Their turn was told as ended well, so after a crash nobody else would know of them."""
    world = World()
    world.arm()
    drain = world.play(until=ev.Drain, skip=1)
    world.feed(ev.Tick(now=world.state.now + DRAIN_DEADLINE_MS))
    word = ev.Part(kind="mid_turn", id="word")
    held = [one for one in world.feed(ev.DrainAnswered(id=drain.id, parts=(word,))) if isinstance(one, ev.HoldWords)]
    assert [one.parts for one in held] == [(word,)]
    disk = Disk()
    disk.write(held[0])
    assert disk.recover() == (), "the process that holds them lives, and will send them itself"
    disk.process_gone()
    assert [one.parts for one in disk.recover()] == [(word,)]
    disk.write(ev.WriteHistory(id=99, act="append", entry="an entry", parts=(word,)))
    assert disk.recover() == ()


# What a new process makes of the disk.


def test_an_intent_to_send_that_nobody_committed_leaves_words_and_no_instruction() -> None:
    """What the person said goes into history, what the backlog gave out waits again, and the guard's words are gone."""
    disk = Disk()
    kinds = ("user", "tool_result", "result", "gap", "guard")
    parts = tuple(ev.Part(kind=kind, id=kind) for kind in kinds)
    disk.write(ev.Pass(id=1, what=waits.Keep(item=Result(id="result", kind="shell", task="a shell"))))
    disk.write(ev.WriteHistory(id=2, act="stage", entry="entry", parts=parts))
    written = disk.recover()
    for one in written:
        disk.write(one)
    assert [part.id for entry in disk.history.values() for part in entry] == ["user", "tool_result"]
    assert disk.staged == {}
    assert [one.id for one in disk.restored(()).results] == ["result"]


def test_a_result_that_history_has_is_not_told_again_though_nobody_wrote_that_it_was() -> None:
    """The process died between the commit and the word that the result is delivered."""
    disk = Disk()
    disk.write(ev.Pass(id=1, what=waits.Keep(item=Result(id="told", kind="shell", task="a shell"))))
    disk.write(ev.WriteHistory(id=2, act="stage", entry="entry", parts=(ev.Part(kind="result", id="told"),)))
    disk.write(ev.WriteHistory(id=3, act="commit", entry="entry"))
    assert disk.restored(()).results == ()
