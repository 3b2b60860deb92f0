"""The claim protocol, every order of events: both machines, two pipes, and a person who changes their mind."""

from __future__ import annotations

import json
import pathlib

import pytest

from stopwarden.core.chain_words import Claim
from stopwarden.sim.claim_model import Bounds, World, begin, moves, wrong
from stopwarden.sim.explorer import Explored, explore
from tests.support.person import Person

SMALL = Bounds(prompts=2, removals=1, cancels=0, plans=0, deadlines=1)
KINDS = {
    *("the person sends", "the person takes out", "the session hears", "the owner hears"),
    *("a stop", "the deadline of the claim passes", "the turn of p1", "the turn of p2"),
}


def check_whole(found: Explored[World]) -> None:
    """Nothing is broken, and nothing was left out."""
    assert not found.broken, "\n".join([found.broken, *found.story])
    assert found.whole
    assert found.ends > 0


def test_the_explorer_tells_the_shortest_story() -> None:
    """A counter that may be raised by one or by three breaks at six: in two steps, not six."""
    found = explore(
        0,
        lambda n: [("one: +1", n + 1), ("three: +3", n + 3)],
        lambda n, _: "six is too many" if n == 6 else "",
        limit=1_000,
    )
    assert (found.broken, found.story) == ("six is too many", ("three: +3", "three: +3"))


def test_an_exploration_that_meets_its_limit_says_so() -> None:
    """What was not visited is never taken for visited."""
    assert not explore(0, lambda n: [("one", n + 1)], lambda n, _: "", limit=50).whole


@pytest.mark.case("G56", "G57", "G63")
def test_no_order_of_events_breaks_a_rule_of_the_claim() -> None:
    """Sent and admitted: never a third continuation, none ahead of an earlier prompt, no wait for nobody."""
    found = explore(begin(SMALL), moves, wrong)
    check_whole(found)
    assert KINDS - {"plan mode", "the person cancels"} <= set(found.words)


@pytest.mark.slow
@pytest.mark.case("G53", "G54", "G69")
def test_nor_do_cancels_and_plan_mode_in_between() -> None:
    """The same with a cancel and with plan mode turned on and off at every moment."""
    found = explore(begin(Bounds()), moves, wrong)
    check_whole(found)
    assert {"plan mode", "the person cancels"} <= set(found.words)
    assert found.states > 10_000


@pytest.mark.slow
def test_the_named_races_are_among_them() -> None:
    """A release that overtakes its claim's answer; an answer after its deadline; a promotion during a claim."""
    seen: set[str] = set()

    def look(world: World, _: bool) -> str:
        answers = [number for kind, number, _ in world.orders if kind == "answer"]
        claims: tuple[Claim, ...] = world.chain.claims
        if any(claim.released for claim in claims):
            seen.add("tombstone")
        if any(number not in [claim.id for claim in claims] for number in answers):
            seen.add("late answer")
        if claims and world.queue.wait_owner is None and any(kind == "run" for kind, _, _ in world.orders):
            seen.add("promotion during a claim")
        if world.chain.priority and not world.chain.guard.awaiting:
            seen.add("priority without trust")
        return ""

    explore(begin(Bounds()), moves, look)
    assert seen == {"tombstone", "late answer", "promotion during a claim", "priority without trust"}


def test_the_command_says_what_was_tried_and_what_held(tmp_path: pathlib.Path) -> None:
    """`simulate claims` counts states and kinds of moves; bad bounds are refused."""
    person = Person(tmp_path)
    assert person.types("simulate", "claims", "--prompts", "1") == 0
    assert "all of them visited" in person.said
    assert "Held in every one" in person.said
    assert person.types("simulate", "claims", "--prompts", "1", "--json") == 0
    assert json.loads(person.said)["broken"] is None
    assert person.types("simulate", "claims", "--prompts", "9") == 2
