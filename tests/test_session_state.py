"""What one session is doing, told from stored facts alone: the state function and its sentences."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwarden.core.bounds import HOUR, MINUTE, MISSED_LOOK_AFTER, SILENT_AFTER
from stopwarden.core.events import AwayPeriod, SessionState
from stopwarden.report.moments import length, moment
from stopwarden.report.state import STALLED_AFTER, Known, Standing, standing
from stopwarden.store.port import SessionRow, VerdictRow
from tests.conftest import LONDON, at

LEFT = at("2026-11-30 21:00")
NOW = at("2026-11-30 22:00")
NIGHT = AwayPeriod(id="n1", since=LEFT, until=at("2026-12-01 07:30"), scope="checkout", copy="c1", root="/work/repo")
ROW = SessionRow(
    id="7e15aaaa",
    title="parser",
    root="/work/repo",
    copy="c1",
    entrypoint="cli",
    first_event_at=LEFT - HOUR,
    chain_started_at=LEFT - HOUR,
)


def known(last: str, heard: int, verdict: str = "", judged: int | None = None, **more: Any) -> Known:
    """A session whose last event came at `heard`; its last verdict, if any, at `judged` (else then too)."""
    row = ROW.replace(last_event=last, last_event_at=heard, **more.pop("row", {}))
    state = SessionState(id=row.id, period="n1", **more.pop("state", {}))
    stored = VerdictRow(at=heard if judged is None else judged, session=row.id, kind=verdict) if verdict else None
    return Known(row=row, state=state, verdict=stored, **{"period": NIGHT, **more})


def told(last: str, heard: int, verdict: str = "", now: int = NOW, **more: Any) -> Standing:
    """Its standing at `now`."""
    return standing(known(last, heard, verdict, **more), now, LONDON)


# --- working, and falling silent


def test_a_session_in_a_turn_is_working() -> None:
    """A tool use a moment ago is a sign of life; nobody is needed."""
    found = told("post-tool", NOW - 12)
    assert (found.word, found.text, found.needs_you) == ("working", "Heard 12 s ago.", False)


def test_a_blocked_stop_is_work_going_on() -> None:
    """After a block the agent goes on; the count of blocks is told with it."""
    found = told("stop", NOW - 5, "block", state={"period_blocks": 3, "blocks": 1})
    assert (found.word, found.blocked, found.blocked_in_a_row) == ("working", 3, 1)


def test_counts_of_an_earlier_night_are_not_shown() -> None:
    """Blocks counted in another away period are not this one's."""
    other = known("stop", NOW - 5, "block", state={"period_blocks": 9, "blocks": 9})
    found = standing(other.replace(state=other.state.replace(period="n0")), NOW, LONDON)
    assert (found.blocked, found.blocked_in_a_row) == (0, 0)


@pytest.mark.case("A91")
def test_an_interrupted_turn_is_silent_and_never_called_waiting() -> None:
    """A person's interrupt makes no stop: half an hour later a reader says silent, whatever look was once stored."""
    state = {"next_look": NOW + HOUR, "next_look_latest": NOW + HOUR}
    before = told("prompt", NOW - SILENT_AFTER + 1, "waiting", judged=LEFT + 60, state=state)
    after = told("prompt", NOW - SILENT_AFTER, "waiting", judged=LEFT + 60, state=state)
    assert (before.word, after.word) == ("working", "silent")
    assert "interrupted" in after.text
    assert not after.needs_you


@pytest.mark.case("BR-107")
def test_a_session_unheard_of_for_a_whole_lease_is_stalled() -> None:
    """Liveness is told by the age of the last event, not by a failure: 3 h 14 min of nothing needs the person."""
    found = told("post-tool", NOW - 11_640)
    assert (found.word, found.needs_you) == ("stalled", True)
    assert "3 h 14 min" in found.text
    assert told("post-tool", NOW - STALLED_AFTER + 1).word == "silent"
    assert told("post-tool", NOW - STALLED_AFTER).word == "stalled"


def test_a_compaction_in_the_middle_of_a_turn_is_still_work() -> None:
    """A session start that follows an ordinary prompt and no end of a turn is the same turn after a compaction."""
    assert told("session-start", NOW - 10, row={"chain_started_at": NOW - 600}).word == "working"


def test_a_resumed_session_that_ended_its_turn_before_is_idle() -> None:
    """Opened again after its last turn had ended by a verdict of this night, it sits at its prompt."""
    found = told("session-start", NOW - 10, "cancelled", judged=LEFT + 60)
    assert found.word == "stopped"


# --- waiting, and the look that does not come


def test_waiting_names_the_look_to_come() -> None:
    """An allowed wait tells when the session looks again, and that nobody need do anything."""
    look = at("2026-11-30 22:40")
    found = told("stop", NOW - 60, "waiting", state={"next_look": look, "next_look_latest": look + 60})
    assert (found.word, found.text, found.next_look) == ("waiting", "Looks again at 22:40 by itself.", look)
    assert not found.needs_you


def test_a_look_tomorrow_names_the_day() -> None:
    """A look past midnight is told with its weekday."""
    look = at("2026-12-01 00:10")
    assert "Tue 00:10" in told("stop", NOW - 60, "waiting", state={"next_look": look, "next_look_latest": look}).text


def test_a_look_within_its_latest_time_is_not_missed_yet() -> None:
    """Until ten minutes after the latest time it may still come."""
    state = {"next_look": NOW - 25 * MINUTE, "next_look_latest": NOW - MISSED_LOOK_AFTER}
    found = told("notification", LEFT + 100, "waiting", judged=LEFT + 60, row={"idle_since": LEFT + 100}, state=state)
    assert (found.word, found.needs_you) == ("waiting", False)
    assert "due now" in found.text


def test_a_look_that_did_not_come_is_a_state_of_its_own_that_needs_the_person() -> None:
    """One second past the margin the word is stalled, with the time of the look and what to do."""
    state = {"next_look": NOW - 25 * MINUTE, "next_look_latest": NOW - MISSED_LOOK_AFTER - 1}
    found = told("notification", LEFT + 100, "waiting", judged=LEFT + 60, row={"idle_since": LEFT + 100}, state=state)
    assert (found.word, found.needs_you) == ("stalled", True)
    assert "21:35" in found.text
    assert found.act


def test_an_event_after_the_look_ends_the_suspicion() -> None:
    """The turn that a wake opened is work, however late it is by now."""
    state = {"next_look": NOW - HOUR, "next_look_latest": NOW - HOUR, "wake_started": True}
    assert told("post-tool", NOW - 20, "waiting", judged=LEFT + 60, state=state).word == "working"


def test_a_wait_that_began_before_this_period_still_ends_with_its_look() -> None:
    """Going away again while a session waits does not make it idle: its look stands, and can be missed."""
    state = {"next_look": NOW + 60, "next_look_latest": NOW + 60, "period": "n0"}
    early = known("stop", LEFT - 600, "waiting")
    waits = standing(early.replace(state=early.state.replace(**state)), NOW, LONDON)
    assert (waits.word, waits.next_look) == ("waiting", NOW + 60)
    state["next_look"] = state["next_look_latest"] = LEFT
    assert standing(early.replace(state=early.state.replace(**state)), NOW, LONDON).word == "stalled"


def test_a_session_that_the_keeper_woke_is_working_until_that_fails_too() -> None:
    """Between the keeper's wake and the turn it opens there is no event; if none comes it is stalled."""
    woken = NOW - MISSED_LOOK_AFTER
    row = {"idle_since": LEFT + 100}
    found = told("notification", LEFT + 100, "waiting", judged=LEFT + 60, row=row, woken_at=woken)
    assert (found.word, "keeper" in found.text) == ("working", True)
    found = told("notification", LEFT + 100, "waiting", judged=LEFT + 60, row=row, woken_at=woken - 1)
    assert (found.word, found.needs_you) == ("stalled", True)
    failed = {"error": "overloaded", "error_at": LEFT + 100}
    assert told("stop-failure", LEFT + 100, row=failed, woken_at=woken).word == "working"
    after = {"next_look": NOW + 60, "next_look_latest": NOW + 60}
    found = told("stop", NOW - 30, "waiting", woken_at=woken, state=after)
    assert found.word == "waiting"


# --- waiting on the person


@pytest.mark.case("BR-103")
def test_an_open_permission_prompt_waits_on_the_person_with_its_age() -> None:
    """However old it grows, it is told as frozen by a dialog, since when, and that it needs the person."""
    now = LEFT + 38 * HOUR
    row = {"waits_on_person": "permission", "waits_since": LEFT}
    found = told("notification", LEFT, now=now, row=row)
    assert (found.word, found.needs_you) == ("waiting_on_you", True)
    assert "permission prompt" in found.text
    assert "38 h" in found.text


def test_one_sessions_dialog_says_nothing_about_another() -> None:
    """Each standing is told from its own rows only."""
    frozen = told("notification", LEFT, row={"waits_on_person": "permission", "waits_since": LEFT})
    look = at("2026-11-30 22:40")
    other = told("stop", NOW - 60, "waiting", state={"next_look": look, "next_look_latest": look}, row={"id": "9a02"})
    assert (frozen.word, other.word) == ("waiting_on_you", "waiting")


@pytest.mark.case("BR-173")
def test_plan_mode_is_named_as_what_holds_the_session() -> None:
    """A stop in plan mode is told as held, since when, never as work going on."""
    since = at("2026-11-30 21:02")
    row = {"waits_on_person": "plan", "waits_since": since, "permission_mode": "plan"}
    found = told("stop", since, "plan_mode", row=row)
    assert (found.word, found.text, found.needs_you) == ("waiting_on_you", "Held: plan mode since 21:02.", True)
    assert told("notification", since + 60, "plan_mode", judged=since).text == found.text


def test_a_turn_in_plan_mode_says_that_it_will_be_held() -> None:
    """Before its stop the session works, and the person is told what will come."""
    found = told("post-tool", NOW - 5, row={"permission_mode": "plan"})
    assert (found.word, "plan mode will hold it" in found.text) == ("working", True)


def test_work_that_waits_on_a_person_alone_is_theirs() -> None:
    """The verdict that only a person can go on is told as such."""
    found = told("stop", NOW - 60, "waiting_on_person")
    assert (found.word, found.needs_you) == ("waiting_on_you", True)


# --- stopped


@pytest.mark.case("BR-066")
def test_a_limit_window_that_passed_without_a_sign_of_life_is_said() -> None:
    """From the recorded reset time alone a reader sees that the session did not come back."""
    reset = NOW - 1000
    row = {"error": "rate_limit", "error_at": LEFT + 60, "error_resets_at": reset, "chain_started_at": LEFT}
    found = told("stop-failure", LEFT + 60, row=row)
    assert (found.word, found.needs_you) == ("stalled", True)
    assert "limit window passed at 21:43" in found.text
    assert "did not resume" in found.text
    resumed = told("post-tool", NOW - 5, row=row)
    assert resumed.word == "working"


def test_a_limit_that_still_holds_says_until_when() -> None:
    """Before the reset the session is not stalled; it is told whether anything will wake it."""
    row = {"error": "rate_limit", "error_at": LEFT + 60, "error_resets_at": at("2026-11-30 23:57")}
    found = told("stop-failure", LEFT + 60, row=row)
    assert (found.word, found.text) == (
        "stopped",
        "Its turn ended at 21:01: usage limit until 23:57. Nothing will wake it.",
    )
    kept = told("stop-failure", LEFT + 60, row=row, kept=True)
    assert (kept.word, kept.needs_you) == ("waiting", False)
    woken = told("stop-failure", LEFT + 60, row=row, wake_at=at("2026-11-30 23:58"))
    assert (woken.word, "23:58" in woken.text) == ("waiting", True)


def test_an_error_that_ended_the_turn_names_its_kind() -> None:
    """A provider's error makes no stop; the session is told as stopped by it, with the kind in words."""
    row = {"error": "overloaded", "error_at": NOW - 600, "chain_started_at": LEFT}
    found = told("stop-failure", NOW - 600, "block", judged=LEFT + 5, row=row)
    assert (found.word, found.needs_you, "overloaded" in found.text) == ("stopped", True, True)


def test_an_error_that_only_a_person_can_mend_is_never_waiting() -> None:
    """A refused login is not outlived by any wake."""
    row = {"error": "authentication_failed", "error_at": NOW - 600}
    found = told("stop-failure", NOW - 600, row=row, wake_at=NOW + 60, kept=True)
    assert (found.word, found.act) == ("stopped", "Log in again there")


def test_a_bound_tells_how_many_times_and_with_what_left() -> None:
    """Past the bound the session is stopped with work owed, and that needs the person."""
    state = {"bound": "blocks_without_tools", "blocks": 8}
    found = told("stop", NOW - 600, "bound_reached", state=state, owes=4)
    assert (found.word, found.needs_you) == ("stopped", True)
    assert found.text == "Stopped at 21:50 with 4 items owed: 8 times in a row it was sent on and did nothing."


def test_the_block_that_reached_a_bound_counts_as_stopped_once_nothing_follows() -> None:
    """The host overrides that block without a word: two quiet minutes tell."""
    state = {"bound": "blocks_without_tools", "blocks": 8}
    assert told("stop", NOW - 30, "block", state=state).word == "working"
    assert told("stop", NOW - 120, "block", state=state).word == "stopped"
    assert told("post-tool", NOW - 120, "block", judged=NOW - 130, state=state).word == "working"
    assert told("stop", NOW - 120, "block").word == "working"
    old = known("stop", NOW - 120, "block", state=state)
    assert standing(old.replace(state=old.state.replace(period="n0")), NOW, LONDON).word == "working"


def test_a_session_that_sat_idle_before_the_night_is_said_to_need_a_prompt() -> None:
    """A stop that nobody judged in this period ended its turn before: no stop will come from it."""
    found = told("stop", LEFT - 600, "waiting", judged=LEFT - 600)
    assert (found.word, found.needs_you, found.act) == ("stopped", True, "Type a prompt there")


def test_a_finished_session_needs_nobody() -> None:
    """Done is its own word."""
    found = told("stop", NOW - 60, "done")
    assert (found.word, found.needs_you) == ("done", False)


@pytest.mark.parametrize(
    ("why", "owes", "word", "needs"),
    [
        ("logout", 2, "stopped", True),
        ("prompt_input_exit", None, "stopped", True),
        ("logout", 0, "ended", False),
        ("clear", 2, "ended", False),
        ("resume", None, "ended", False),
    ],
)
def test_a_closed_session_needs_the_person_only_if_work_may_be_left(
    why: str, owes: int | None, word: str, needs: bool
) -> None:
    """Unknown work counts as owed; a conversation that went on under another id does not."""
    row = {"ended_at": NOW - 60, "ended_why": why}
    found = told("session-end", NOW - 60, "block", judged=LEFT + 60, row=row, owes=owes)
    assert (found.word, found.needs_you) == (word, needs)


# --- not covered, off, observed


def test_a_session_whose_hook_was_never_seen_is_not_covered() -> None:
    """Without one event of ours nothing can be held; the act is to restart it."""
    found = told("", 0)
    assert (found.word, found.needs_you, found.act) == ("not_covered", True, "Restart it")


def test_a_session_unheard_of_since_the_install_is_not_covered() -> None:
    """Its hooks are those of the time it was started."""
    found = told("stop", LEFT, installed_at=LEFT + 1)
    assert (found.word, found.needs_you) == ("not_covered", True)
    assert told("prompt", LEFT + 1, now=LEFT + 5, installed_at=LEFT + 1).word == "working"


def test_a_session_outside_every_period_is_not_covered_and_needs_nobody() -> None:
    """The person is there for it."""
    found = told("post-tool", NOW - 5, period=None)
    assert (found.word, found.needs_you) == ("not_covered", False)


def test_the_switches_show_and_hide_nothing_else() -> None:
    """Off says how to switch on; observe keeps the state and says that nothing is blocked."""
    assert (told("post-tool", NOW - 5, mode="off").word, told("post-tool", NOW - 5, mode="off").act) == (
        "off",
        "stopwarden on",
    )
    observed = told("post-tool", NOW - 5, mode="observe")
    assert (observed.word, observed.text) == ("working", "Heard 5 s ago. Observed only: no stop is blocked.")


# --- to the second and to the letter


@pytest.mark.parametrize(
    ("why", "text"), [("logout", "Closed at 21:59 (logout)."), ("other", "Closed at 21:59."), ("", "Closed at 21:59.")]
)
def test_a_closed_session_says_why_where_the_host_did(why: str, text: str) -> None:
    """The host's word `other` says nothing."""
    row = {"ended_at": NOW - 60, "ended_why": why}
    assert told("session-end", NOW - 60, row=row).text == text


def test_an_event_after_the_end_means_it_is_open_again() -> None:
    """Only a later event does; one of the same second may be the end's own."""
    row = {"ended_at": NOW - 60, "ended_why": "logout"}
    assert told("prompt", NOW - 60, row=row).word == "stopped"
    assert told("prompt", NOW - 59, row=row).word == "working"


def test_an_event_after_a_dialog_opened_means_it_was_answered() -> None:
    """A tool use later than the dialog is work; one of the same second is not later."""
    row = {"waits_on_person": "permission", "waits_since": NOW - 60}
    assert told("post-tool", NOW - 60, row=row).word == "waiting_on_you"
    assert told("post-tool", NOW - 59, row=row).word == "working"


def test_a_plan_mode_verdict_alone_holds_too() -> None:
    """Also where the mark in the session's row is gone."""
    found = told("stop", NOW - 60, "plan_mode")
    assert (found.word, found.text, found.needs_you) == ("waiting_on_you", "Held: plan mode since 21:59.", True)


@pytest.mark.parametrize(
    ("reset", "word", "text"),
    [
        (NOW + 1, "stopped", "usage limit until 22:00. Nothing"),
        (NOW, "stopped", "usage limit. Nothing"),
        (NOW - MISSED_LOOK_AFTER, "stopped", "usage limit. Nothing"),
        (NOW - MISSED_LOOK_AFTER - 1, "stalled", "The limit window passed at 21:49"),
    ],
)
def test_a_limit_window_is_over_ten_minutes_after_its_end(reset: int, word: str, text: str) -> None:
    """Until then the session may still resume by itself."""
    row = {"error": "rate_limit", "error_at": LEFT + 60, "error_resets_at": reset}
    found = told("stop-failure", LEFT + 60, row=row)
    assert (found.word, text in found.text) == (word, True)


def test_the_later_of_error_and_verdict_tells() -> None:
    """A verdict after the error means a turn was judged since; one of the same second does not."""
    row = {"error": "overloaded", "error_at": NOW - 60, "idle_since": NOW - 50}
    assert "overloaded" in told("notification", NOW - 50, "done", judged=NOW - 60, row=row).text
    assert told("notification", NOW - 50, "done", judged=NOW - 59, row=row).word == "done"


def test_an_error_for_the_person_is_not_excused_by_a_missed_look() -> None:
    """What to do is to mend the error, whatever look was missed."""
    state = {"next_look": LEFT + 120, "next_look_latest": LEFT + 120}
    row = {"error": "billing_error", "error_at": LEFT + 60}
    assert told("stop-failure", LEFT + 60, row=row, state=state).act == "Mend the account"
    row = {"error": "overloaded", "error_at": LEFT + 60}
    assert told("stop-failure", LEFT + 60, row=row, state=state).word == "stalled"


def test_a_look_of_this_very_second_is_due_and_not_to_come() -> None:
    """Between its time and its latest time it may come at any moment."""
    state = {"next_look": NOW, "next_look_latest": NOW + 60}
    found = told("stop", NOW - 60, "waiting", state=state)
    assert found.text == "Its look of 22:00 is due now."
    assert told("post-tool", NOW - 5, state=state).next_look is None
    assert told("post-tool", NOW - 5, state=state, wake_at=NOW + 1).next_look == NOW + 1


def test_a_turn_begun_as_the_last_one_ended_is_not_begun() -> None:
    """A notice tells nothing about a turn; the last prompt must be later than the last rest."""
    assert (
        told("notification", NOW - 5, "cancelled", judged=NOW - 60, row={"chain_started_at": NOW - 60}).word
        == "stopped"
    )
    assert (
        told("notification", NOW - 5, "cancelled", judged=NOW - 60, row={"chain_started_at": NOW - 59}).word
        == "working"
    )


def test_work_is_told_with_the_beginning_of_its_turn() -> None:
    """Where no prompt was ever heard, nothing is made up."""
    assert told("post-tool", NOW - 5).since == ROW.chain_started_at
    assert told("post-tool", NOW - 5, row={"permission_mode": "plan"}).since == ROW.chain_started_at
    assert told("post-tool", NOW - 5, row={"chain_started_at": 0}).since is None
    assert told("post-tool", NOW - 5, row={"chain_started_at": 0, "permission_mode": "plan"}).since is None


def test_a_verdict_of_the_periods_first_second_belongs_to_it() -> None:
    """One of the second before does not."""
    assert told("stop", LEFT, "done").word == "done"
    assert told("stop", LEFT - 1, "done").word == "stopped"


def test_a_stop_that_our_own_failure_let_go_sends_to_the_doctor() -> None:
    """The words differ from every other stop."""
    found = told("stop", NOW - 60, "error")
    assert (found.text, found.act) == ("Stopped at 21:59: Stopwarden itself failed and let it go.", "stopwarden doctor")


def test_a_block_of_an_earlier_stop_does_not_carry_a_later_one() -> None:
    """A stop that was not judged at all ended its turn, whatever was said at the stop before."""
    assert told("stop", NOW - 10, "block", judged=NOW - 11).word == "working"  # its hook took a second
    assert told("stop", NOW - 10, "block", judged=NOW - 12).word == "stopped"


def test_a_look_that_even_the_keeper_missed_needs_the_person() -> None:
    """The keeper lives and did not wake it: that is ours to explain."""
    state = {"next_look": LEFT + 120, "next_look_latest": LEFT + 120}
    found = told("stop", LEFT + 60, "waiting", state=state, kept=True)
    assert (found.word, found.needs_you, "doctor" in found.act) == ("stalled", True, True)


def test_one_item_is_one_item() -> None:
    """And nothing owed is not counted."""
    assert "with 1 item owed:" in told("stop", NOW - 600, "bound_reached", owes=1).text
    assert told("stop", NOW - 600, "bound_reached", owes=0).text.startswith("Stopped at 21:50: ")


# --- all of them

EVENTS = ("", "prompt", "pre-tool", "post-tool", "permission", "stop", "stop-failure", "session-start", "session-end",
          "notification", "pre-compact")  # fmt: skip
KINDS = ("", "block", "done", "idle", "waiting", "waiting_on_person", "deferred", "yielded", "plan_mode", "cancelled",
         "bound_reached", "off", "observed", "error")  # fmt: skip
moments = st.none() | st.integers(LEFT - 3 * HOUR, NOW + 3 * HOUR)

anything = st.builds(
    lambda last, heard, kind, judged, row, state, more: known(
        last, heard, kind, judged=judged, row=row, state=state, **more
    ),
    st.sampled_from(EVENTS),
    st.just(0) | st.integers(LEFT - 3 * HOUR, NOW),
    st.sampled_from(KINDS),
    st.integers(LEFT - 3 * HOUR, NOW),
    st.fixed_dictionaries(
        {},
        optional={
            "waits_on_person": st.sampled_from(("permission", "question", "plan", "something new")),
            "waits_since": moments,
            "idle_since": moments,
            "error": st.sampled_from(("rate_limit", "overloaded", "authentication_failed", "something new")),
            "error_at": moments,
            "error_resets_at": moments,
            "ended_at": moments,
            "ended_why": st.sampled_from(("", "clear", "logout", "other")),
            "permission_mode": st.sampled_from(("default", "plan")),
            "chain_started_at": st.just(0) | st.integers(LEFT - HOUR, NOW),
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "next_look": moments,
            "next_look_latest": moments,
            "bound": st.sampled_from(("", "blocks_an_hour", "tokens", "something new")),
            "wake_started": st.booleans(),
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "period": st.just(None),
            "mode": st.sampled_from(("on", "off", "observe")),
            "owes": st.none() | st.integers(0, 9),
            "wake_at": moments,
            "kept": st.booleans(),
            "woken_at": moments,
            "installed_at": st.sampled_from((0, LEFT)),
        },
    ),
)


@given(anything)
def test_every_standing_is_one_sentence_and_what_needs_the_person_says_what_to_do(one: Known) -> None:
    """Whatever is stored, the answer is a sentence; an alarm carries an act; asking twice gives the same."""
    found = standing(one, NOW, LONDON)
    assert found.text.endswith(".")
    assert "{" not in found.text
    assert found.name == "parser"
    assert found.act or not found.needs_you
    assert not found.act.endswith(".")
    assert found == standing(one, NOW, LONDON)


@given(anything)
def test_nobody_is_told_to_be_waiting_unless_something_will_wake_them(one: Known) -> None:
    """Waiting means a look within its time, a known wake ahead, or a living keeper."""
    found = standing(one, NOW, LONDON)
    if found.word == "waiting":
        latest = one.state.next_look_latest or one.state.next_look
        in_time = latest is not None and latest + MISSED_LOOK_AFTER >= NOW
        assert in_time or one.kept or (one.wake_at is not None and one.wake_at > NOW)
        assert not found.needs_you


@given(anything)
def test_a_state_that_stops_the_night_always_needs_the_person(one: Known) -> None:
    """Stalled, frozen, or stopped with work that may be owed are never told as fine."""
    found = standing(one, NOW, LONDON)
    if found.word in ("stalled", "waiting_on_you") or (found.word == "stopped" and one.owes != 0):
        assert found.needs_you


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 s"),
        (12, "12 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (8 * HOUR + 25 * MINUTE, "8 h 25 min"),
        (38 * HOUR, "38 h"),
        (48 * HOUR, "2 d"),
        (53 * HOUR, "2 d 5 h"),
    ],
)
def test_lengths_are_told_in_their_two_largest_units(seconds: int, said: str) -> None:
    """Nobody counts seconds of an hour."""
    assert length(seconds) == said


def test_moments_name_the_day_only_where_it_is_another() -> None:
    """The same day by its clock, the coming days by name, others by date; always the zone's own reading."""
    assert moment(at("2026-11-30 23:59"), LONDON, NOW) == "23:59"
    assert moment(at("2026-12-01 00:00"), LONDON, NOW) == "Tue 00:00"
    assert moment(at("2026-12-24 07:30"), LONDON, NOW) == "2026-12-24 07:30"
    assert moment(at("2026-10-25 01:30", fold=1), LONDON, at("2026-10-25 00:30")) == "01:30"
