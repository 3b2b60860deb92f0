"""The claim protocol, every order of events: both machines, three pipes, and a person who changes their mind."""

from __future__ import annotations

import json
import pathlib
from typing import TYPE_CHECKING, Any

import pytest

from stopwarden.core import chain as chains
from stopwarden.core import guard as guards
from stopwarden.core import queue_claims, queue_messages, queue_prompts, stop_loop, turn, turn_answers
from stopwarden.core.queue_words import CutStopHook, SendRelease
from stopwarden.core.record import Record
from stopwarden.sim import claim_key, claim_pairs
from stopwarden.sim.claim_model import LITTLE, Bounds, World, begin, counterexample, explore_part, key, moves
from stopwarden.sim.claim_page import told
from stopwarden.sim.explorer import Explored, explore
from tests.support.person import Person

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = LITTLE.replace(deadlines=True, words=1, orders=1, answers=1)


def check_whole(found: Explored[World]) -> None:
    """Nothing is broken, and nothing was left out."""
    assert not found.broken, "\n".join([found.broken, *found.story])
    assert found.whole
    assert found.resting > 0


def test_the_explorer_tells_the_shortest_story() -> None:
    """A counter that may be raised by one or by three breaks at six: in two steps, not six."""
    found = explore(
        0,
        lambda n: [("one: +1", n + 1, False), ("three: +3", n + 3, False)],
        lambda n: "six is too many" if n == 6 else "",
        limit=1_000,
    )
    assert (found.broken, found.story) == ("six is too many", ("three: +3", "three: +3"))


def test_an_exploration_that_meets_its_limit_says_so() -> None:
    """What was not visited is never taken for visited, and it is said how far everything was."""
    found = explore(0, lambda n: [("one", n + 1, False)], lambda n: "", limit=50)
    assert (found.whole, found.complete_to) == (False, 49)


def test_a_world_that_cannot_come_to_rest_is_found() -> None:
    """Only a person's move leads out of the trap: the world is stuck there."""
    arrows = {
        0: [("walk: into the trap", 1, False), ("walk: home", 9, False)],
        1: [("a person: helps", 9, True)],
        9: [],
    }
    found = explore(0, lambda n: arrows[n], lambda n: "", rests=lambda n: n == 9)
    assert found.broken.startswith("the world is stuck")
    assert found.story == ("walk: into the trap",)


def test_worlds_that_differ_in_names_alone_are_one() -> None:
    """After a prompt has come, run and gone, the world is the one it was; with plan mode on it is another."""
    first = begin(LITTLE.replace(prompts=1))
    again = first
    kinds = ("the person sends a prompt", "the session hears", "the reply ends", "the owner hears")
    for kind in kinds:
        again = next(after for words, after, _ in moves(again) if words.startswith(f"{kind}: "))
    assert again.named > first.named
    assert key(again) == key(first)
    plan = next(after for words, after, _ in moves(begin(Bounds())) if words.startswith("plan mode"))
    assert key(plan) != key(begin(Bounds()))


def test_what_is_left_out_of_a_key_is_named_field_by_field() -> None:
    """Each name in the lists of what does not count is a field of a record of the core."""
    fields_of: dict[str, set[str]] = {}
    ahead: list[type[Record]] = [Record]
    while ahead:
        kind = ahead.pop()
        ahead += kind.__subclasses__()
        if kind.__module__.startswith("stopwarden.core"):
            fields_of.setdefault(kind.__name__, set()).update(kind.names)
    for table in (claim_key.LEFT_OUT, claim_key.QUEUE_IDS, claim_key.NAMES):
        for name, fields in table.items():
            assert set(fields) <= fields_of[name], name


@pytest.mark.case("G56", "G57", "G63")
def test_no_order_of_events_breaks_a_rule_of_the_claim() -> None:
    """Sent and admitted: never a third continuation, none ahead of an earlier prompt, no wait for nobody."""
    found, met = explore_part(LITTLE)
    check_whole(found)
    assert met["session", "overtaken", "claim queued"]
    assert met["owner", "gave way", "taken out"]


@pytest.mark.slow
@pytest.mark.case("G53", "G54", "G69")
def test_nor_do_cancels_plan_mode_hooks_and_failures_in_between() -> None:
    """All parts of the exploration; every named state is met, and each event in it or a reason why not."""
    done = told()
    for name, bounds, found in done.parts:
        assert not found.broken, "\n".join([name, found.broken, *found.story])
        assert found.whole or bounds.rewinds, name
    explained = claim_pairs.explained(claim_pairs.unmet(done.met))
    assert "not explained" not in explained, explained["not explained"]
    assert set(explained) == {why for _, _, _, why in claim_pairs.UNREACHABLE}
    shown = "\n".join(done.lines())
    assert "pairs met" in shown
    assert "in no history" in shown
    assert {pair[1] for pair in claim_pairs.every_pair()} == {pair[1] for pair, times in done.met.items() if times}


# ---- it bites


class Broken:
    """A rule broken in the machines, and what the model says of it."""

    def __init__(self, says: str, bounds: Bounds, breaks: Callable[[pytest.MonkeyPatch], None]) -> None:
        self.says, self.bounds, self.breaks = says, bounds, breaks


def _without(condition: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A release that overtook its claim marks nothing."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        handle = chains.EVENTS[getattr(chains, condition)]

        def forgets(chain: Any, event: Any) -> Any:
            after, effects = handle(chain, event)
            return after.replace(claims=tuple(one.replace(released=False) for one in after.claims)), effects

        monkeypatch.setitem(chains.EVENTS, getattr(chains, condition), forgets)  # type: ignore[arg-type]

    return patch


def _table(rule: str, **changes: Any) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        rows = tuple(row.replace(**changes) if row.rule == rule else row for row in queue_claims.CLAIM_TABLE)
        monkeypatch.setattr(queue_claims, "CLAIM_TABLE", rows)

    return patch


def _no_effect(kind: type) -> Callable[[pytest.MonkeyPatch], None]:
    """The queue forgets to ask for an effect of this kind."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        do = queue_prompts.Move.do
        monkeypatch.setattr(
            queue_prompts.Move, "do", lambda move, what, **fields: 0 if what is kind else do(move, what, **fields)
        )

    return patch


def _row(order: str, rule: str, act: Callable[[Any], None]) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for place, (_, following) in list(turn.WALK.items()):
            if place == (order, rule) or (place == (order, "") and turn.ORDERS[order][0].rule == rule):
                monkeypatch.setitem(turn.WALK, place, (act, following))  # type: ignore[index]

    return patch


def _nothing(_: Any) -> None:
    """A row that was forgotten."""


def _only_keeps_words(pen: Any) -> None:
    """What is found after the hooks is kept, and their answer goes out all the same."""
    if pen.running.found is not None:
        pen.store(pen.running.found.parts)
    pen.on(found=None, claim="")


def _asks_nobody(pen: Any) -> None:
    pen.on(claim="claimed")


def _keeps_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    run_next = queue_prompts.run_next

    def forgets(move: Any, carried: Any) -> None:
        waits = move.state.wait_owner
        run_next(move, carried)
        move.set(wait_owner=waits)

    monkeypatch.setattr(queue_messages, "run_next", forgets)


def _plan_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan mode is noted, and the chain stays as it was; neither row nor send looks at it."""
    monkeypatch.setitem(chains.EVENTS, chains.ModeChanged, lambda chain, event: (chain, ()))  # type: ignore[arg-type]


def _cancel_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "cut_short", lambda pen, why: None)
    monkeypatch.setitem(chains.EVENTS, chains.Cancelled, lambda chain, event: (chain, ()))  # type: ignore[arg-type]


def _forgets_on_yield(pen: Any) -> None:
    """The words that were drained are not stored when the turn gives way."""
    if pen.running.found is not None and pen.running.claim == "queued":
        pen.on(found=pen.running.found.replace(parts=()))
    stop_loop.weigh_drained(pen)


def _third_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "_used_up", lambda guard, at: "")
    monkeypatch.setattr(guards, "commit", lambda guard, attempt, at=0: (guard.replace(attempts=attempt % 2), True))


def _late_answer_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever locked the chain while its claim was out, the permission counts."""
    settled = chains._settled
    monkeypatch.setattr(
        chains,
        "_settled",
        lambda chain, claim, answer: ("claimed", "") if answer == "granted" else settled(chain, claim, answer),
    )
    monkeypatch.setattr(chains.guards, "resume_trusted", lambda guard: guard.replace(suspended_by=None, awaiting=False))


def _no_roll_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        turn_answers.ANSWERS,  # type: ignore[arg-type]
        ("send", turn_answers.ev.ProviderRefused),
        lambda pen, event: turn_answers.fail(pen, "refused", event.why),
    )


def _late_words_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_answers, "late", lambda pen, event: None)


BROKEN = {
    "a wait is installed after its release": Broken("I3", SMALL, _without("Released")),
    "a claim is granted over a queued prompt": Broken(
        "I2", SMALL, _table("claim.queued", claimed=True, has_queued_prompt=False)
    ),
    "nobody is told of the release": Broken("I3", SMALL, _no_effect(SendRelease)),
    "a promotion does not clear the wait": Broken("I3", SMALL, _keeps_the_wait),
    "plan mode is entered during a claim, and it is sent": Broken("I6", LITTLE.replace(plans=True), _plan_is_forgotten),
    "a cancel is not heeded": Broken("I6", LITTLE.replace(cancels=True), _cancel_is_forgotten),
    "drained words are forgotten on yielding": Broken(
        "I5", SMALL, _row("stop", "stop.weigh_drained", _forgets_on_yield)
    ),
    "a hook's answer is used after the person spoke": Broken(
        "a hook's answer",
        LITTLE.replace(hooks=True, words=1),
        _row("stop", "stop.weigh_drained_again", _only_keeps_words),
    ),
    "a stream goes out without a claim": Broken("I2", SMALL, _row("stream", "stream.claim", _asks_nobody)),
    "the claim's answer is not looked at": Broken("I", SMALL, _row("stream", "stream.weigh_claim", _nothing)),
    "a third stream is sent": Broken("I1", LITTLE.replace(prompts=1), _third_stream),
    "a permission lifts what locked the chain": Broken("I6", LITTLE.replace(plans=True), _late_answer_is_trusted),
    "a refused entry stays staged": Broken("I4", LITTLE.replace(refusals=True, prompts=1), _no_roll_back),
    "words of a late drain are dropped": Broken("I5", SMALL, _late_words_are_dropped),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_rule_is_told_as_a_short_story(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model sees each of these within its bounds, names the promise, and tells how it comes to that."""
    broken = BROKEN[what]
    broken.breaks(monkeypatch)
    found = counterexample(broken.bounds)
    assert found is not None, f"nobody noticed: {what}"
    says, story = found
    assert says.startswith(broken.says), says
    assert 3 <= len(story) <= 30
    assert story[0].startswith(("the person", "plan mode"))


def test_without_hints_the_world_still_comes_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint only saves time: nothing depends on its being heard."""
    _no_effect(CutStopHook)(monkeypatch)
    assert counterexample(LITTLE.replace(prompts=1, hooks=True), 3_000) is None


def test_the_command_says_what_was_tried_and_what_held(tmp_path: pathlib.Path) -> None:
    """`simulate claims` names dimensions and bounds, counts states and kinds of moves; bad bounds are refused."""
    person = Person(tmp_path)
    assert person.types("simulate", "claims", "--prompts", "1") == 0
    assert "at a time at most 1 prompts" in person.said
    assert "all of them" in person.said
    assert "Held in every one" in person.said
    assert person.types("simulate", "claims", "--prompts", "1", "--json") == 0
    assert json.loads(person.said)["broken"] is None
    assert person.types("simulate", "claims", "--prompts", "9") == 2


def test_the_command_tells_a_broken_rule_as_a_story(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The promise that was broken, then one line a step, in plain words."""
    _no_effect(SendRelease)(monkeypatch)
    person = Person(tmp_path)
    assert person.types("simulate", "claims", "--prompts", "2") == 1
    assert "BROKEN  I3" in person.said
    assert "the person takes out a queued prompt: p2" in person.said
