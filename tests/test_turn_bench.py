"""The bench of the turn machine measures what it says: whole turns, with everything an event can meet in them.

How quick it is, is the bench's business (`make bench`); no test asks for a time.
"""

from __future__ import annotations

import pytest
from bench import turns

from stopwarden.core import turn_events as ev


def test_a_turn_of_the_bench_meets_everything_that_costs() -> None:
    """Admission, tools, a list, hooks, drains, claims and both streams of the guard, to a turn's end."""
    driven = turns.Driven()
    driven.turn()
    driven.turn(batches=3)
    seen = {type(event) for event in driven.events}
    assert seen >= {
        *(ev.PromptOffered, ev.WriterAdmitted, ev.TodoWritten, ev.BackgroundChanged, ev.ResultArrived, ev.ToolsDone),
        *(ev.HookAnswered, ev.DrainAnswered, ev.ClaimAnswered, ev.TokensChecked, ev.ProviderAccepted, ev.StreamEnded),
    }
    assert sum(isinstance(event, ev.ClaimAnswered) for event in driven.events) == 4  # both streams of both turns
    assert driven.state.turn is None
    assert driven.state.chain.guard.suspended_by == "exhausted"


def test_a_recorded_turn_is_taken_again_from_the_same_state() -> None:
    """Nothing is refused, and the session comes to the same end: the recorded events are the real ones."""
    driven = turns.Driven()
    for _ in range(3):
        driven.turn()
    state = turns.FRESH
    for event in driven.events:
        state, _ = turns.step(state, event)
    assert state == driven.state


def test_the_bench_has_a_figure_for_an_event_a_decision_and_a_long_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each names what it is compared with; here over a short history, and whatever the ratio is."""
    monkeypatch.setattr(turns, "ENTRIES", 300)
    found = turns.figures(rounds=1)
    assert [figure.peer for figure in found] == ["two dataclass copies", "a look-up of each", "the same in a young one"]
    assert all(figure.ratio > 0 for figure in found)
