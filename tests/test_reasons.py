"""The words of a blocked stop: what to do first, then the deadline, then what helps; never too long, never a person."""

from __future__ import annotations

import pytest

from stopwarden.core.bounds import REASON_MAX
from stopwarden.core.events import BackgroundTask, Item, Reservation, Wake
from stopwarden.core.reason import local_time, quoted, span
from tests.conftest import LONDON, at
from tests.support.stops import NIGHT, SOON, Night, items, one_shot


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 minutes"),
        (59, "0 minutes"),
        (60, "1 minute"),
        (119, "1 minute"),
        (120, "2 minutes"),
        (89 * 60, "89 minutes"),
        (90 * 60, "1 h 30 min"),
        (120 * 60, "2 h"),
        (25 * 3600 + 61, "25 h 1 min"),
    ],
)
def test_a_length_of_time_in_words(seconds: int, words: str) -> None:
    """Minutes up to an hour and a half, then hours and minutes."""
    assert span(seconds) == words


def test_a_local_time_names_its_weekday_only_on_another_day() -> None:
    """The same day: the clock alone; before and after midnight of that zone: with the weekday. Summer time counts."""
    assert local_time(at("2026-11-30 23:55"), LONDON, NIGHT) == "23:55"
    assert local_time(at("2026-12-01 00:05"), LONDON, NIGHT) == "Tue 00:05"
    assert local_time(at("2026-11-29 23:59"), LONDON, NIGHT) == "Sun 23:59"
    assert local_time(at("2026-07-01 00:30"), LONDON, at("2026-07-01 12:00")) == "00:30"
    assert local_time(at("2025-11-30 21:00"), LONDON, NIGHT) == "Sun 21:00"


def test_quoted_text_is_cut_to_its_limit_and_marked() -> None:
    """At the limit it is whole; past it the last character says that there was more; a huge text costs nothing."""
    assert quoted("x" * 10, 10) == '"' + "x" * 10 + '"'
    assert quoted("x" * 11, 10) == '"' + "x" * 9 + '…"'
    assert quoted("a\x00" * 20, 10) == '"a a a a a…"'
    assert quoted("y" * 10_000_000, 10) == '"' + "y" * 9 + '…"'


def test_the_order_of_a_reason() -> None:
    """What to do, the deadline with the minutes left, and the schedule last."""
    reason = Night(*items("A")).stop((one_shot("23:00", "late"),)).reason
    do, by, late, last = (
        reason.index(part) for part in ("Go on:", "by 22:00 (in 60 minutes)", '"late"', "ScheduleWakeup last")
    )
    assert do < by < late < last
    assert reason.endswith("(with a cron it does not).")


def test_with_a_wake_in_time_the_reason_names_the_look_and_asks_for_none() -> None:
    """A changed list with a good wake: the look is named, and nothing about scheduling is said."""
    reason = Night(*items("A")).stop(SOON).reason
    assert "Your next look at 21:30 is in time" in reason
    assert "A wake must come" not in reason
    assert "ScheduleWakeup" not in reason


def test_where_no_wake_could_come_in_time_that_is_said() -> None:
    """An overdue renewal leaves no deadline that could be met, also at its very second."""
    for due in (NIGHT, NIGHT - 100):
        held = Reservation(item="A", session="s1", copy="c", claimed_at=due - 3300, expires_at=due + 3900)
        reason = Night(*items("A"), reservations=(held,), copy="c").stop().reason
        assert "No wake can come in time before that." in reason
        assert "A wake must come" not in reason


def test_what_was_parked_or_taken_off_is_asked_for_in_its_own_words() -> None:
    """A waiting item: do what can be done without waiting; a removed one: do it, or say why it is gone."""
    waiting = Item(id="A", title="do A", state="waiting", before="open")
    assert "was marked as waiting" in Night(waiting).stop().reason
    for state in ("removed", "dropped"):
        gone = Item(id="A", title="do A", state=state, before="doing")  # type: ignore[arg-type]
        assert "was taken off the list while it was open" in Night(gone).stop().reason
    assert "was marked as waiting" not in Night(*items("A")).stop().reason


def test_an_own_list_is_named_where_nothing_is_on_it() -> None:
    """With nothing owed the session is told where to write what is left; with work owed it knows."""
    assert "Your own list is /x/list.md" in Night(checklist="/x/list.md").stop().reason
    assert "Your own list" not in Night(*items("A"), checklist="/x/list.md").stop().reason


@pytest.mark.case("A104")
def test_a_reason_never_grows_past_its_bound() -> None:
    """Everything at its longest: the reason stays under its bound, keeps what is needed first, and drops whole lines."""
    many = tuple(Wake(id=f"w{number}", schedule="y" * 300, kind="recurring") for number in range(50))
    tasks = tuple(BackgroundTask(id=str(number), type="shell", description="z" * 900) for number in range(9))
    owing = Night(
        Item(id="i" * 500, title="t" * 50_000, source="s" * 90),
        unread=tuple("u" * 900 for _ in range(9)),
        answers=tuple("a" * 5_000 for _ in range(9)),
        checklist="/c" * 400,
    )
    for _ in range(4):
        verdict = owing.stop(many, background=tasks)
        assert len(verdict.reason) < REASON_MAX
        assert verdict.reason.startswith("Go on: item ")
        assert "A wake must come by" in verdict.reason
        assert len(verdict.rejected) == 50
    assert all(
        not line.startswith(("The person answered", "Wake")) or line.endswith(".")
        for line in verdict.reason.splitlines()
    )


def test_more_wakes_than_fit_are_counted() -> None:
    """Four rejected wakes are named, the others counted."""
    late = tuple(one_shot("23:30", f"w{number}") for number in range(7))
    reason = Night(*items("A")).stop(late).reason
    assert reason.count("does not count") == 4
    assert "3 more wakes do not count either." in reason


@pytest.mark.case("BR-073")
def test_a_list_that_does_not_move_while_tools_run_is_to_be_brought_up_to_date_first() -> None:
    """Third block with tool use and an unchanged list: reconcile it, instead of naming the same stale item again."""
    night = Night(*items("A", "B"))
    night.stop()
    assert "list has not moved" not in night.tool().stop().reason
    assert "first bring it up to date" in night.tool().stop().reason
    assert "list has not moved" not in night.stop().reason, "no tool ran since"
    night.owes(*items("B", A="done"))
    assert "list has not moved" not in night.tool().stop().reason
