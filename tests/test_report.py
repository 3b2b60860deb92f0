"""The account of a night, and the page that is read in the morning."""

from __future__ import annotations

import json
import pathlib
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stopwarden.clock import ZoneOf
from stopwarden.core.events import AwayPeriod, Item
from stopwarden.report import timeline
from stopwarden.report.account import Account, SessionAccount, account, as_json
from stopwarden.report.judged import Judged
from stopwarden.report.reading import LocalTimes, hours, short_ids, tokens, whole_minutes, width
from stopwarden.report.text import render
from stopwarden.report.timeline import Span
from stopwarden.store.port import RecordLine, SessionRow
from tests.conftest import LONDON, at
from tests.support.terminal import Terminal
from tests.support.written_night import PARSER, Night, ordinary_night

NEW_YORK = ZoneOf(ZoneInfo("America/New_York"))


def page(night: Night, now: str = "08:00", **more: Any) -> str:
    return render(night.account(now), more.pop("zone", night.zone), **more)


def said(night: Night, now: str = "08:00", **more: Any) -> str:
    """The page as running text: where its lines break does not matter."""
    return " ".join(page(night, now, **more).split())


def only(told: Account) -> SessionAccount:
    (session,) = told.sessions
    return session


def stretches(session: SessionAccount, zone: ZoneOf = LONDON) -> list[str]:
    """The spans as short words: "working 23:05-23:40"."""
    times = LocalTimes(zone, session.spans[0].since, session.spans[-1].until)
    return [
        f"{span.kind}{f' ({span.cause})' if span.cause else ''} {times.clock(span.since)}-{times.clock(span.until)}"
        for span in session.spans
    ]


# --- one screen -----------------------------------------------------------------------------------


def test_an_ordinary_night_is_one_screen_exactly() -> None:
    """What to do first, what was done and what not, where the time went, what it took: in twenty lines."""
    assert page(ordinary_night()).splitlines() == [
        "Mon 23:05 - Tue 07:30   Europe/London   5 of 6 done · 1 for you",
        "",
        'DO FIRST   "Drop column legacy_id?"  asked 02:11 · chosen meanwhile: keep it',
        "             (can be undone)",
        "             drop it / keep it",
        "             stopwarden answer 1 TEXT",
        "",
        "DONE       lexer    23:40  verified",
        "           parser   00:52  verified",
        "           printer  01:30  ticked, not verified",
        "           errors   02:05  ticked, not verified",
        "           readme   04:10  ticked, not verified",
        "NOT DONE   docs  handed back to you 06:33 after 3 wakes without progress",
        "TIME       worked 4 h 29 · waited 3 h 00 · lost 0 h 55 (usage limit",
        "             03:02-03:57) · stopped 0 h 01",
        "REFUSED    2 permission prompts: rm -rf build, git push",
        "COST       6 turns · 5 wakes · 5 blocks · 3.1 M tokens",
    ]


def test_a_night_with_nothing_wrong_says_so_in_one_line() -> None:
    """No question, no fault, no stall: the person may have breakfast first."""
    night = Night()
    night.list("lexer")
    night.line("23:06", "prompt", "person")
    night.tick("23:40", "i1")
    night.stop("23:41", "waiting", look="00:20")
    night.wake("00:20")
    night.stop("00:21", "done")
    night.end("00:21", "done")
    text = page(night)
    assert "Nothing waits for you, and nothing went wrong." in text
    assert "It ended 7 h 9 min early: the list was done." in text
    assert "DO FIRST" not in text


def test_a_night_that_lost_hours_is_not_said_to_have_gone_well() -> None:
    """Nothing waits for the person, and yet a wake did not come for two hours."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:40", "waiting", look="00:20")
    night.wake("02:20")
    night.stop("02:40", "waiting", look="03:00")
    text = page(night, "02:50")
    assert "nothing went wrong" not in text
    assert "Nothing waits for you. Time was lost, though: see below." in text


@pytest.mark.parametrize("columns", [50, 60, 80, 110])
def test_no_line_is_wider_than_the_screen_whatever_the_titles(columns: int) -> None:
    """Titles and questions are untrusted: escapes are taken out, long and wide ones are cut or wrapped."""
    night = Night()
    night.list("ラ" * 300, "\x1b[31mred\x07\r\nstopwarden back", "x" * 5_000, "a\u202eb", "\ud800 half")
    night.line("23:06", "prompt", "person")
    night.tick("23:40", "i1", "i2")
    night.ask(
        "01:00", "drop\x1b]0;owned\x07 it? " + "y" * 900, options=("\x1b[2J", "n" * 500), chosen="\x9b1m" + "c" * 900
    )
    night.ask("01:01", "rm -rf \x1b[8m" + "z" * 900, kind="permission")
    night.line("02:00", "item_parked", "why\x1b[0m" + "w" * 900, "i3")
    night.stop("02:00")
    for verbose in (False, True):
        text = page(night, columns=columns, verbose=verbose)
        assert max(width(line) for line in text.splitlines()) <= columns
        assert all(char.isprintable() or char == "\n" for char in text)


def test_a_long_list_does_not_push_anything_off_the_screen() -> None:
    """Four hundred items, fifty questions and fifty refusals still are one screen, and say how many more."""
    night = Night()
    night.list(*(f"part {number}" for number in range(400)))
    night.line("23:06", "prompt", "person")
    for number in range(1, 200):
        night.tick(night.at("23:40") + 60 * number, f"i{number}")
    for number in range(50):
        night.ask(night.at("03:10") + number, f"question {number}?")
        night.ask(night.at("04:10") + number, f"command {number}", kind="permission")
    night.stop("06:00")
    text = page(night)
    assert len(text.splitlines()) <= 32
    assert "199 of 400 done · 50 for you" in text
    for said in (
        "47 more questions: stopwarden parked",
        "195 more ticked, not verified",
        "196 more not done",
        "command 3, 46",
    ):
        assert said in text


def test_colour_only_helps() -> None:
    """With the escapes taken out the words are the same."""
    plain, colored = page(ordinary_night()), page(ordinary_night(), color=True)
    assert colored.replace("\x1b[1m", "").replace("\x1b[0m", "") == plain != colored


# --- time -----------------------------------------------------------------------------------------


def test_the_spans_of_an_ordinary_night() -> None:
    """Working from prompt or wake to stop, waiting from stop to wake, lost from error to resumption."""
    told = only(ordinary_night().account())
    assert stretches(told)[:6] == [
        "stopped (no_turn) 23:05-23:06",
        "working 23:06-03:02",
        "lost (limit) 03:02-03:57",
        "working 03:57-04:12",
        "waiting 04:12-04:50",
        "working 04:50-04:56",
    ]
    assert told.spans[4].look == at("2026-12-01 04:50")


KINDS = ["prompt", "look", "kept_look", "error", "idle", "api_resumed", "waiting_permission", "session_started"]
KINDS += ["session_ended", "missed_look", "clock_stepped", "silent", "stopped_with_work_owed", "resumed", "plan_mode"]
KINDS += ["wake_seen", "item_done", "compacted", "refused_permission", "unheard_of"]
TEXTS = ["", "person", "wake", "rate_limit; resets 3am", "+7200 s", "-7200 s", "compact", "question", "1780000000", "x"]
START = at("2026-10-24 23:00")


@st.composite
def happenings(draw: st.DrawFn) -> tuple[list[RecordLine], list[Judged]]:
    times = st.integers(START, START + 40_000)
    lines = [
        RecordLine(at=draw(times), kind=draw(st.sampled_from(KINDS)), text=draw(st.sampled_from(TEXTS)), seq=seq)
        for seq in range(draw(st.integers(0, 12)))
    ]
    verdicts = [
        Judged(
            id=number,
            at=draw(times),
            session="s",
            period="p",
            kind=draw(st.sampled_from(["block", "waiting", "bound_reached", "done", "plan_mode", "observed", "odd"])),
            rule="",
            block=draw(st.booleans()),
            look=draw(st.one_of(st.none(), times)),
            look_latest=draw(st.one_of(st.none(), times)),
        )
        for number in range(draw(st.integers(0, 8)))
    ]
    return lines, verdicts


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(happenings(), st.integers(0, 36_000), st.integers(0, 40_000))
def test_every_second_of_the_night_is_accounted_for_once(
    told: tuple[list[RecordLine], list[Judged]], length: int, heard: int
) -> None:
    """Whatever the record holds, in whatever order, the spans follow each other from the beginning to the end."""
    end = START + length
    row = SessionRow(id="s", last_event_at=START + heard)
    for known in (row, None):
        spans = timeline.spans(told[0], told[1], START, end, known)
        edges = [(span.since, span.until) for span in spans]
        assert all(since < until for since, until in edges)
        assert [until for _, until in edges[:-1]] == [since for since, _ in edges[1:]]
        assert not length or (edges[0][0], edges[-1][1]) == (START, end)


def test_a_look_that_came_late_within_its_jitter_is_no_lost_time() -> None:
    """Waiting lasts until the look's latest time and ten minutes: hosts fire late."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:10", "waiting", look="23:40", latest="23:55")
    night.wake("00:04")
    night.stop("00:10", "waiting", look="00:40", latest="00:55")
    night.wake("01:06")
    assert "lost" not in " ".join(stretches(only(night.account("00:05"))))
    assert stretches(only(night.account("01:06")))[-2:] == ["waiting 00:10-00:55", "lost (missed_look) 00:55-01:06"]


def test_a_missed_look_is_named_with_the_time_it_cost() -> None:
    """The page says which look did not come, from when to when nothing happened, and counts it."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:10", "waiting", look="23:40", latest="23:50")
    night.line("03:00", "missed_look", str(night.at("23:40")))
    night.wake("03:00")
    night.stop("03:10", "waiting", look="03:30")
    told = night.account("03:11")
    assert only(told).missed_looks == (night.at("23:40"),)
    assert "lost 3 h 10 (the look of 23:40 did not come 23:50-03:00)" in said(night, "03:11")
    assert "1 wake (1 missed)" in page(night, "03:11")


@pytest.mark.case("BR-107", "A91")
def test_work_that_is_never_heard_of_again_is_silent_not_working_and_not_waiting() -> None:
    """A turn that makes no stop (a parked dialog, an interrupt) shows only by nothing being heard any more."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:40")
    night.row(PARSER, last_event_at=night.at("23:50"))
    assert stretches(only(night.account("03:04")))[-2:] == ["working 23:06-23:50", "lost (silent) 23:50-03:04"]
    assert "parser: nothing heard since 23:50. Look at it." in page(night, "03:04")
    assert stretches(only(night.account("00:15")))[-1] == "working 23:06-00:15"


def test_a_compaction_in_the_middle_of_a_turn_does_not_end_it() -> None:
    """The host starts the session anew at a compaction; after a resume it sits idle until a prompt."""
    for source, span in (("compact", "working 23:06-00:10"), ("resume", "stopped (no_turn) 23:50-00:10")):
        night = Night()
        night.line("23:06", "prompt", "person")
        night.line("23:50", "compacted")
        night.line("23:50", "session_started", source)
        assert stretches(only(night.account("00:10")))[-1] == span


def test_the_notice_of_an_idle_session_ends_only_what_was_thought_to_be_work() -> None:
    """While it waits or is held by a limit the host says idle too; that changes nothing."""
    waiting, working, limited = Night(), Night(), Night()
    for night in (waiting, working, limited):
        night.line("23:06", "prompt", "person")
    waiting.stop("23:10", "waiting", look="23:50")
    limited.line("23:10", "error", "rate_limit")
    for night in (waiting, working, limited):
        night.line("23:11", "idle")
    assert [stretches(only(night.account("23:40")))[-1] for night in (waiting, working, limited)] == [
        "waiting 23:10-23:40",
        "stopped (no_stop_seen) 23:11-23:40",
        "lost (limit) 23:10-23:40",
    ]


def test_a_stop_after_a_look_whose_prompt_was_not_seen_shows_that_the_look_came() -> None:
    """Work began at the look; had the look been missed, the record would say so."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:10", "waiting", look="23:50")
    night.stop("23:56", "waiting", look="00:30")
    assert stretches(only(night.account("00:00")))[2:] == [
        "waiting 23:10-23:50",
        "working 23:50-23:56",
        "waiting 23:56-00:00",
    ]


def test_a_long_turn_with_tools_is_work() -> None:
    """Tool use writes no line, but the session was heard: four hours in one turn are four hours of work."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.row(PARSER, last_event_at=night.at("03:05"))
    assert stretches(only(night.account("03:10")))[-1] == "working 23:06-03:10"
    night.stop("03:20", "waiting", look="04:00")
    assert stretches(only(night.account("03:30")))[1] == "working 23:06-03:20"


def test_a_wake_that_opens_a_turn_though_no_stop_was_seen_shows_that_the_work_had_ended() -> None:
    """Hosts wake idle sessions only: a long stretch before such a wake was not work, a short one is let pass."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.wake("23:20")
    night.wake("03:00")
    night.stop("03:10", "waiting", look="04:00")
    assert stretches(only(night.account("03:20")))[1:4] == [
        "working 23:06-23:20",
        "lost (silent) 23:20-03:00",
        "working 03:00-03:10",
    ] or stretches(only(night.account("03:20")))[1:3] == ["lost (silent) 23:06-03:00", "working 03:00-03:10"]


def test_going_away_for_one_session_is_no_sign_of_that_session() -> None:
    """The line that begins the period names it; what it did before its first prompt is still unknown to be work."""
    night = Night()
    night.line("23:05", "away", "until 07:30")
    night.row(PARSER, last_event_at=0)
    assert stretches(only(night.account("23:50"))) == ["stopped (not_heard) 23:05-23:50"]
    assert "No session was heard of yet." in page(night, "23:50")
    night.line("23:40", "prompt", "person")
    assert stretches(only(night.account("23:50"))) == ["stopped (no_turn) 23:05-23:40", "working 23:40-23:50"]


def test_a_typed_prompt_in_the_middle_of_a_turn_does_not_end_it() -> None:
    """A person's prompt may come while the agent works; the hours before it stay work."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.line("02:00", "prompt", "person")
    night.stop("02:30", "waiting", look="03:00")
    assert stretches(only(night.account("02:40")))[1] == "working 23:06-02:30"


@pytest.mark.case("BR-103")
def test_a_dialog_that_freezes_a_session_is_lost_time_and_the_first_thing_to_do() -> None:
    """From the notification to the next sign of life nothing can happen there, scheduled wakes included."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.line("23:30", "waiting_permission", "permission")
    assert "parser: frozen by a permission prompt since 23:30. Answer it in that session." in page(
        night, "03:00", columns=110
    )
    night.line("03:30", "refused_permission", "rm -rf build")
    night.stop("03:40", "waiting", look="04:20")
    assert stretches(only(night.account("03:50")))[1:] == [
        "working 23:06-23:30",
        "lost (permission) 23:30-03:30",
        "working 03:30-03:40",
        "waiting 03:40-03:50",
    ]


@pytest.mark.case("BR-173")
def test_plan_mode_is_named_as_what_holds_the_session() -> None:
    """A session that plans makes no progress and no stop that may be blocked: the page names it, with the time."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.line("00:02", "plan_mode")
    night.stop("00:02", "plan_mode")
    text = said(night, "03:00")
    assert "parser: held in plan mode since 00:02. Approve the plan there, or leave plan mode." in text
    assert "lost 2 h 58 (plan mode since 00:02)" in text


@pytest.mark.case("BR-066")
def test_a_usage_limit_that_passed_without_the_session_going_on_is_the_first_thing_to_do() -> None:
    """The reset came and went and nobody woke the session: that is said with both times."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.line("01:02", "error", "rate_limit; resets 3:57am (Europe/London)")
    night.row(PARSER, error_resets_at=night.at("03:57"), error="rate_limit")
    wanted = "parser: the usage limit passed at 03:57, but the session did not resume. Open it and type: continue."
    assert wanted in said(night, "07:00")
    assert wanted not in said(night, "03:00")
    night.end()
    night.row(PARSER, last_event_at=night.at("07:45"))
    assert "DO FIRST" not in page(night, "08:00")  # it has gone on since


def test_an_error_of_the_provider_is_named_in_plain_words() -> None:
    """Overloaded, refused login, unknown: the words are those that status uses."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.line("00:00", "error", "overloaded")
    night.wake("00:30")
    night.line("00:31", "api_resumed", "overloaded")
    night.stop("00:40", "waiting", look="01:20")
    told = night.account("00:50")
    assert "lost 0 h 30 (the model was overloaded 00:00-00:30)" in said(night, "00:50")
    assert [(one.error, one.resumed_at, one.limit) for one in told.failures] == [
        ("overloaded", night.at("00:31"), False)
    ]


@pytest.mark.case("BR-147")
def test_a_look_whose_turn_failed_is_no_successful_look() -> None:
    """Each look has an outcome: answered by a stop, failed with its error, or still open."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:10", "waiting", look="23:40")
    night.wake("23:40")
    night.line("23:41", "error", "overloaded")
    night.line("00:20", "kept_look", "error")
    night.line("00:20", "prompt", "notification")
    night.stop("00:30", "waiting", look="01:00")
    night.wake("01:00")
    looks = only(night.account("01:05")).looks
    assert [(look.outcome, look.error, look.kept) for look in looks] == [
        ("failed", "overloaded", False),
        ("ok", "", True),
        ("open", "", False),
    ]
    assert "3 wakes (1 failed, 1 by the keeper)" in page(night, "01:05")


def test_a_bound_that_ended_a_session_is_said_with_what_to_do() -> None:
    """The block that reached the bound was the last word: stopped since then, and the person must act."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:10")
    night.stop("23:20", bound="blocks_without_tools")
    night.end()
    text = said(night)
    assert "parser: stopped at 23:20" in text
    assert "Open it and type: continue." in text
    assert stretches(only(night.account()))[-1] == "stopped (bound) 23:20-07:30"


def test_a_session_that_went_on_after_a_bound_is_marked_so() -> None:
    """The stop at the bound is provisional: a wake brought the session back, and the page says when."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:20", bound="blocks_without_tools")
    night.line("01:00", "resumed", "blocks_without_tools")
    night.wake("01:00")
    night.stop("01:10", "waiting", look="01:50")
    (bound,) = night.account("01:20").bounds
    assert (bound.at, bound.resumed_at, bound.owed) == (night.at("23:20"), night.at("01:00"), True)
    assert "It went on at 01:00." in said(night, "01:20")
    assert stretches(only(night.account("01:20")))[2] == "stopped (bound) 23:20-01:00"


def test_a_bound_is_marked_with_the_first_time_the_session_went_on() -> None:
    """A later bound of the same session has its own mark."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:20", bound="blocks_without_tools")
    night.line("01:00", "resumed", "blocks_without_tools")
    night.line("02:00", "resumed", "blocks_an_hour")
    night.stop("03:00", bound="blocks_an_hour")
    assert [(one.bound, one.resumed_at) for one in night.account("03:20").bounds] == [
        ("blocks_without_tools", night.at("01:00")),
        ("blocks_an_hour", None),
    ]


def test_work_that_goes_on_after_the_block_at_a_bound_was_never_stopped() -> None:
    """Where the host kept the agent going, the next stop shows that the time between was work."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:20", bound="blocks_without_tools")
    night.stop("23:50", "waiting", look="00:30")
    assert stretches(only(night.account("00:00")))[1] == "working 23:06-23:50"


def test_a_closed_session_and_one_that_finished_are_told_apart() -> None:
    """Closing a session with work left is stopped time; closing a finished one is not."""
    closed, finished = Night(), Night()
    for night, kind in ((closed, "block"), (finished, "done")):
        night.line("23:06", "prompt", "person")
        night.stop("23:20", kind)
        night.line("23:30", "session_ended", "logout")
    assert stretches(only(closed.account("23:50")))[-1] == "stopped (ended) 23:30-23:50"
    assert stretches(only(finished.account("23:50")))[-1] == "finished 23:20-23:50"
    assert "closed: logout since 23:30" in said(closed, "23:50")


def test_a_clock_set_forward_adds_no_work() -> None:
    """Three hours that never happened belong to nothing, and the page says that the clock was set."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.line("03:06", "clock_stepped", "+10800 s")
    night.stop("03:16", "waiting", look="04:00")
    told = only(night.account("03:20"))
    assert told.seconds("working") == 70 * 60
    assert "The clock was set forward by 3 h: times around it are not exact." in said(night, "03:20")


def test_a_clock_set_back_never_makes_time_negative() -> None:
    """The two hours after it are told in the order they were written."""
    night = Night()
    night.line("03:00", "prompt", "person")
    night.line("01:00", "clock_stepped", "-7200 s")
    night.stop("01:30", "waiting", look="02:00")
    told = night.account("04:00")
    assert sum(span.seconds for span in only(told).spans) == night.at("04:00") - night.at("23:05")
    assert "The clock was set back by 2 h" in page(night, "04:00")


@settings(deadline=None)
@given(st.lists(st.integers(0, 50_000), min_size=1, max_size=5))
def test_lengths_are_rounded_so_that_they_add_up(parts: list[int]) -> None:
    """Nobody should find a minute missing when adding up the columns."""
    rounded = whole_minutes(parts)
    assert sum(rounded) == (sum(parts) + 30) // 60 * 60
    assert all(abs(one - part) < 60 for one, part in zip(rounded, parts, strict=True))


# --- zones and nights in which the clocks change ------------------------------------------------


def test_an_autumn_night_has_its_real_hours_and_tells_its_repeated_times_apart() -> None:
    """From 23:00 to 07:00 it is nine hours, and 01:30 comes twice."""
    night = Night("2026-10-24", "23:00", "07:00")
    night.line("23:00", "prompt", "person")
    night.stop(at("2026-10-25 01:30"), "waiting", look=at("2026-10-25 01:30", fold=1))
    night.wake(at("2026-10-25 01:30", fold=1))
    night.stop("02:30", "waiting", look="03:00")
    night.wake("03:00")
    night.stop("06:30", "waiting", look="07:30")
    night.end()
    text = said(night)
    assert "The clocks went back from 02:00 to 01:00" in text
    assert "worked 7 h 00 · waited 2 h 00" in text
    assert "01:30 (1st)-01:30 (2nd)  waiting 1 h" in page(night, verbose=True)


def test_a_spring_night_is_an_hour_shorter() -> None:
    """From 23:00 to 07:00 it is seven hours."""
    night = Night("2027-03-27", "23:00", "07:00")
    night.line("23:00", "prompt", "person")
    night.row(PARSER, last_event_at=night.at("07:00"))
    night.end()
    text = page(night)
    assert "The clocks went forward from 01:00 to 02:00" in text
    assert "worked 7 h 00" in text


def test_a_night_before_the_clocks_change_says_nothing_about_it() -> None:
    """A change on the following night, or an hour and a half after the end, is of no concern."""
    for night in (Night("2026-10-23", "23:00", "07:00"), Night("2026-10-24", "21:00", "00:30")):
        night.line("22:00" if night.first == "21:00" else "23:30", "prompt", "person")
        night.end()
        assert "clocks" not in page(night)


@pytest.mark.case("BR-151")
def test_the_zone_is_named_once_and_a_record_from_another_zone_says_so() -> None:
    """Read in New York, a London night shows New York times, and JSON shows instants in UTC for every reader."""
    night = ordinary_night()
    home, abroad = page(night), page(night, zone=NEW_YORK)
    assert home.count("Europe/London") == 1
    assert abroad.startswith("Mon 18:05 - Tue 02:30   America/New_York")
    assert "It was recorded in Europe/London; the times here are those of America/New_York." in abroad
    assert "lexer    18:40  verified" in abroad
    told = as_json(night.account())
    assert told["since"] == "2026-11-30T23:05:00Z"
    assert told["sessions"][0]["spans"][4]["look"] == "2026-12-01T04:50:00Z"
    assert told["questions"][0]["at"] == "2026-12-01T02:11:00Z"
    assert told["zone"] == "Europe/London"


def test_a_night_of_last_month_is_named_by_its_date() -> None:
    """A weekday alone would be taken for this week's."""
    night = ordinary_night()
    assert render(night.account(at("2027-01-20 09:00")), LONDON).startswith(
        "Mon 30 Nov 2026 23:05 - Tue 1 Dec 2026 07:30"
    )


# --- items ----------------------------------------------------------------------------------------


def test_only_the_work_of_this_night_is_counted() -> None:
    """What was done, or waited on somebody, before the person left is neither done nor left over tonight."""
    night = Night()
    night.list("old", "asked", "new", "added")
    night.items["i1"] = Item(id="i1", title="old", state="done", before="done", source="TODO.md")
    night.items["i2"] = Item(
        id="i2", title="asked", state="waiting", before="waiting", waits_on="person", source="TODO.md"
    )
    night.line("23:06", "prompt", "person")
    night.tick("00:10", "i3")
    night.stop("00:10")
    told = night.account("00:20")
    assert [(story.id, story.outcome) for story in told.items] == [
        ("i1", "before"),
        ("i2", "waits"),
        ("i3", "done"),
        ("i4", "open"),
    ]
    assert page(night, "00:20").splitlines()[0].endswith("1 of 2 done")
    assert "1 item waited for you or others before you left." in page(night, "00:20")


def test_what_the_agent_set_aside_or_took_off_the_list_is_told_as_its_doing() -> None:
    """Parked for the person comes first; removed, dropped, begun and not begun each have their word."""
    night = Night()
    night.list("ask", "gone", "dropped", "begun", "rest", "elsewhere")
    night.line("23:06", "prompt", "person")
    night.stop("23:30")
    night.items["i1"] = night.items["i1"].replace(state="waiting", waits_on="person", why="needs the password")
    night.items["i6"] = night.items["i6"].replace(state="waiting", waits_on="external", why="the build farm")
    night.items["i3"] = night.items["i3"].replace(state="dropped")
    night.items["i4"] = night.items["i4"].replace(state="doing")
    night.items["i2"] = night.items["i2"].replace(state="removed")
    night.line("00:10", "item_parked", "needs the password", "i1")
    night.line("00:10", "item_removed", "gone", "i2")
    night.line("00:20", "item_doing", "begun", "i4")
    night.stop("00:20")
    text = said(night, "00:30")
    assert '"ask" set aside for you by the agent 00:10: needs the password' in text
    for line in (
        "gone taken off the list by the agent 00:10",
        "dropped dropped by the agent",
        "begun begun 00:20, not finished",
        "rest not begun",
        "elsewhere waits for something external: the build farm",
    ):
        assert line in text
    assert "0 of 6 done · 1 for you" in text


def test_an_item_opened_again_is_not_done() -> None:
    """The last word on an item counts, also where it came after the last stop."""
    night = Night()
    night.list("lexer", "parser")
    night.tick("00:10", "i1", "i2")
    night.stop("00:10")
    night.line("00:40", "item_reopened", "lexer", "i1")
    assert [story.outcome for story in night.account("01:00").items] == ["open", "done"]


@pytest.mark.case("BR-076")
def test_many_items_ticked_at_once_after_a_block_are_not_shown_as_steady_work() -> None:
    """An agent told that its list is open may tick it all: the ticks are shown together, and as no evidence."""
    night = Night()
    night.list("one", "two", "three", "four", "five", "six")
    night.line("23:06", "prompt", "person")
    night.stop("01:00")
    night.tick("01:02", *(f"i{number}" for number in range(1, 7)))
    night.stop("01:02", "waiting", look="01:40")
    told = night.account("01:10")
    assert {story.at_once for story in told.items} == {6}
    assert "6 ticked at once 01:02, after a block, not verified: one, two, three, …" in page(
        night, "01:10", columns=110
    )


def test_items_ticked_one_by_one_are_no_bulk_close() -> None:
    """Neither a tick at each stop, nor two at one, nor several found at a first stop that no block came before."""
    steady, first, two = Night(), Night(), Night()
    for night in (steady, first, two):
        night.list("one", "two", "three")
        night.line("23:06", "prompt", "person")
    for number, clock in enumerate(("23:20", "23:40", "00:10"), 1):
        steady.tick(clock, f"i{number}")
        steady.stop(clock)
    first.tick("23:40", "i1", "i2", "i3")
    first.stop("23:40")
    two.stop("23:30")
    two.tick("23:40", "i1", "i2")
    two.stop("23:40")
    for night in (steady, first, two):
        assert {story.at_once for story in night.account("00:20").items} == {0}
        assert "at once" not in page(night, "00:20")


def test_a_list_of_two_sessions_is_one_list() -> None:
    """Both read TODO.md; an item that one of them did is counted once, with the later sight of it."""
    night = Night()
    night.list("one", "two")
    night.line("23:06", "prompt", "person")
    night.stop("23:10")
    night.session = "9a02aaaa-0000-4000-8000-000000000002"
    night.line("23:07", "prompt", "person")
    night.tick("00:10", "i1")
    night.stop("00:10")
    told = night.account("00:20")
    assert [(story.id, story.outcome) for story in told.items] == [("i1", "done"), ("i2", "open")]


def test_a_list_that_could_not_be_read_at_the_end_is_not_called_empty() -> None:
    """What it held is not known: that is what the page says."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:40", unread=("TODO.md",))
    text = said(night, "00:10")
    assert "Europe/London the list could not be read" in text
    assert "TODO.md could not be read at the end: what it holds is not known." in text


# --- the record itself ----------------------------------------------------------------------------


def test_an_empty_night_is_said_as_such_with_what_to_do() -> None:
    """No session was heard of: the page does not say that all is well."""
    night = Night()
    assert "No session was heard of yet. Is its hook running? stopwarden doctor" in page(night, "02:00")
    night.line("23:05", "not_covered", "its hook was never seen", session="9a02")
    night.end()
    text = page(night)
    assert "No session was heard of. Is its hook running?" in text
    assert "Not covered when you left: its hook was never seen." in text
    assert "nothing went wrong" not in text


def test_a_running_night_says_until_when_and_what_is_open() -> None:
    """Now, the planned end, and the present span as "since"."""
    night = Night()
    night.list("lexer")
    night.line("23:06", "prompt", "person")
    night.stop("23:40", "waiting", look="00:30")
    text = page(night, "00:10")
    assert text.splitlines()[0] == "Mon 23:05 - now (00:10), until Tue 07:30   Europe/London   0 of 1 done"
    night.period = night.period.replace(until=None)
    assert "now (00:10), until you are back" in page(night, "00:10")


def test_a_period_whose_time_has_come_is_over_even_if_nothing_ended_it() -> None:
    """No event came after 07:30 to write it down."""
    night = ordinary_night()
    night.period = night.period.replace(ended_at=None, ended_why="")
    told = night.account("09:00")
    assert (told.running, told.until) == (False, night.at("07:30"))


def test_our_own_faults_and_a_database_set_aside_are_in_the_report() -> None:
    """Each says when, what was kept and what to do; the same fault again is counted."""
    night = ordinary_night()
    for clock in ("02:40", "02:41", "02:42"):
        night.line(clock, "fault", "the disk is full", session="")
    night.line("03:00", "store_damaged", "/state/stopwarden.db.damaged-1", session="")
    night.line("03:10", "payload_damaged", "stop")
    text = said(night)
    assert "02:40 Stopwarden itself failed (3 times): the disk is full. Run: stopwarden doctor" in text
    assert "03:00 The database could not be read and was set aside: /state/stopwarden.db.damaged-1." in text
    assert "03:10 parser: what the agent program reported could not be read whole." in text
    assert "nothing went wrong" not in text


def test_what_a_lost_database_held_is_not_made_up() -> None:
    """The new record begins at 03:00: what was before is neither work nor a stop, it is not recorded."""
    night = Night()
    night.line("03:00", "store_damaged", session="")
    night.stop("03:10", "waiting", look="03:50")
    assert stretches(only(night.account("03:20"))) == [
        "unknown 23:05-03:00",
        "working 03:00-03:10",
        "waiting 03:10-03:20",
    ]
    text = said(night, "03:20")
    assert "worked 0 h 10 · waited 0 h 10 · not recorded 3 h 55" in text
    assert "03:00 The database was gone, and a new one was begun. What it held is not in this report." in text


def test_a_switch_that_was_turned_in_the_night_is_told() -> None:
    """What was not guarded is said, with the time."""
    night = ordinary_night()
    night.line("02:50", "switched", "observe: all", session="")
    assert "02:50 Switched observe: all." in said(night)


def test_lines_that_are_missing_from_the_record_are_said() -> None:
    """The numbering jumps: whatever happened there is not known, and not made up."""
    night = ordinary_night()
    kept = [line for line in night.lines if line.seq not in (4, 5)]
    night.lines = kept
    assert "2 lines of the record are gone: what happened then is not known." in said(night)
    (gap,) = [trouble for trouble in night.account().troubles if trouble.kind == "record_gap"]
    assert gap.times == 2


def test_lines_of_another_away_period_are_no_gap_and_no_part_of_this_one() -> None:
    """Two checkouts write into one record; each report tells its own."""
    night = ordinary_night()
    other = RecordLine(at=night.at("02:00"), kind="prompt", text="person", session="other", period="p2", seq=4)
    night.lines = [line.replace(seq=line.seq + (line.seq >= 4)) for line in night.lines]
    night.lines.append(other)
    told = night.account()
    assert [one.id for one in told.sessions] == [PARSER]
    assert told.troubles == ()


def test_a_damaged_verdict_is_counted_and_said_to_be_unreadable() -> None:
    """Its row still says when and what; its record is not guessed at."""
    night = ordinary_night()
    night.verdicts[2] = night.verdicts[2].replace(body=night.verdicts[2].body[:100])
    told = night.account()
    assert only(told).blocks == 5
    assert [trouble.kind for trouble in told.troubles] == ["verdict_unreadable"]
    assert "the record of stop 3 cannot be read" in said(night)


def test_two_periods_of_one_night_are_one_account() -> None:
    """Back for an hour in between: the hour belongs to nobody's night."""
    first = ordinary_night()
    first.period = first.period.replace(ended_at=first.at("02:31"), ended_why="back")
    second = AwayPeriod(id="p2", since=first.at("03:30"), until=first.at("07:30"), zone="Europe/London")
    lines = [line.replace(period="p2") if line.at >= second.since else line for line in first.lines]
    rows = [row.replace(period="p2") if row.at >= second.since else row for row in first.verdicts]
    told = account(
        [first.period, second],
        now=first.at("08:00"),
        lines=lines,
        verdicts=rows,
        sessions=list(first.rows.values()),
        snapshot=lambda digest: first.kept.get(digest, ""),
    )
    assert sum(span.seconds for span in only(told).spans) == (206 + 240) * 60
    assert len(told.done) == 5


def test_each_session_has_its_own_line_of_time() -> None:
    """Several sessions in one checkout are told apart by title, else by the shortest id that is its own."""
    night = ordinary_night()
    night.session = "9a02aaaa-0000-4000-8000-000000000002"
    night.line("23:10", "prompt", "person")
    night.stop("23:30", "waiting", look="00:10")
    night.session = "9a02bbbb-0000-4000-8000-000000000003"
    night.line("23:20", "prompt", "person")
    night.stop("23:40", "done")
    text = page(night)
    for begin in ("TIME       parser", "           9a02a", "           9a02b"):
        assert begin in text
    assert "nothing left 7 h 50" in text


def test_sessions_of_one_title_are_told_apart_by_their_ids() -> None:
    """A title that two sessions have does not name either alone."""
    night = ordinary_night()
    night.session = "9a02aaaa-0000-4000-8000-000000000002"
    night.line("23:10", "prompt", "person")
    night.row(night.session, title="parser")
    assert {one.name for one in night.account().sessions} == {"parser 7e15", "parser 9a02"}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("abc", min_size=4, max_size=8), max_size=6, unique=True))
def test_short_ids_tell_sessions_apart(ids: list[str]) -> None:
    """Each is the beginning of its id, and of no other."""
    short = short_ids(ids)
    assert set(short) == set(ids)
    for one, begin in short.items():
        assert one.startswith(begin)
        assert [other for other in ids if other.startswith(begin)] in ([one], [*[o for o in ids if o.startswith(one)]])


@pytest.mark.parametrize(("seconds", "said"), [(0, "0 h 00"), (89, "0 h 01"), (90, "0 h 02"), (15_000, "4 h 10")])
def test_lengths_are_written_in_hours_and_minutes(seconds: int, said: str) -> None:
    """To the minute, half up."""
    assert hours(seconds) == said


@pytest.mark.parametrize(("number", "said"), [(840, "840"), (12_300, "12 k"), (999_600, "1.0 M"), (3_140_000, "3.1 M")])
def test_token_counts_are_short(number: int, said: str) -> None:
    """Nobody reads seven digits in the morning."""
    assert tokens(number) == said


def test_the_account_as_json_counts_like_the_page() -> None:
    """The same numbers, with nothing rounded."""
    told = as_json(ordinary_night().account())
    assert told["v"] == 1
    assert told["counts"] == {
        "done": 5,
        "of": 6,
        "for_you": 1,
        "turns": 6,
        "looks": 5,
        "missed_looks": 0,
        "blocks": 5,
        "refused": 2,
        "tokens": 3_100_000,
        "seconds": {"working": 16_140, "waiting": 10_800, "lost": 3_300, "stopped": 60, "finished": 0, "unknown": 0},
    }
    assert json.loads(json.dumps(told)) == told


def test_a_span_knows_its_length() -> None:
    """In seconds."""
    assert Span(since=10, until=70, kind="working").seconds == 60


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def terminal(tmp_path: pathlib.Path) -> Terminal:
    return Terminal(tmp_path)


def test_the_report_from_the_store_is_the_page(terminal: Terminal) -> None:
    """What the hook stored comes out as the same page, and again as the same."""
    night = ordinary_night()
    terminal.keep(night)
    assert terminal.run("report") == (0, page(night), "")
    assert terminal.run("report") == (0, page(night), "")


def test_without_any_night_the_report_says_so_and_how_to_begin(terminal: Terminal) -> None:
    """Exit code 1: there is nothing to report."""
    assert terminal.run("report") == (
        1,
        "Nothing is recorded yet: you have not been away.\nBegin with: stopwarden away until 07:30\n",
        "",
    )
    assert json.loads(terminal.run("report", "--json")[1]) == {"v": 1, "account": None}


def test_the_report_of_a_time_on_leaves_out_what_was_before(terminal: Terminal) -> None:
    """A time of day is the last such one; the night is cut there, questions and all counts with it."""
    terminal.keep(ordinary_night())
    code, out, _ = terminal.run("report", "--since", "04:00")
    assert code == 0
    assert out.startswith("Tue 04:00 - Tue 07:30")
    assert "4 wakes" in out
    assert terminal.run("report", "--since", "7h")[1].startswith("Tue 01:00 - Tue 07:30")
    assert "Nothing is recorded since" in terminal.run("report", "--since", "07:59")[1]


@pytest.mark.parametrize("said", ["25:00", "yesterday", "2026-12-05", "-3h", "12"])
def test_a_time_that_cannot_be_meant_is_refused_with_what_would_be_right(terminal: Terminal, said: str) -> None:
    """Exit code 2, nothing printed but the advice."""
    code, out, err = terminal.run("report", f"--since={said}")
    assert (code, out) == (2, "")
    assert "Use for instance 22:00" in err


def test_a_time_that_the_clocks_showed_twice_is_the_first_of_the_two(tmp_path: pathlib.Path) -> None:
    """So that nothing is left out of the report."""
    terminal = Terminal(tmp_path, "2026-10-25 08:00")
    night = Night("2026-10-24", "23:00", "07:00")
    night.line("23:10", "prompt", "person")
    night.end()
    terminal.keep(night)
    assert terminal.run("report", "--since", "01:30")[1].startswith("Sun 01:30 (1st) - Sun 07:00")


def test_another_period_is_named_by_its_id(terminal: Terminal) -> None:
    """Any beginning of it will do; an unknown one is answered with the last known."""
    terminal.keep(ordinary_night())
    later = Night("2026-12-01", "22:00", "23:00")
    later.period = later.period.replace(id="q7")
    store = terminal.context.open_store()
    store.add_period(later.period, "")
    store.close()
    terminal.now = at("2026-12-01 22:30")
    assert "No session was heard of yet" in terminal.run("report")[1]
    assert terminal.run("report", "--period", "p1")[1].startswith("Mon 23:05 - Tue 07:30")
    assert terminal.run("report", "--period", "x")[0] == 2
    assert (
        "Another away period is running in /work/shop: stopwarden report --period q7"
        in terminal.run("report", "--period", "p")[1]
    )


def test_faults_beside_the_database_are_told_once(terminal: Terminal) -> None:
    """The file in which faults are counted says each; the line that only counts them is left out."""
    night = ordinary_night()
    night.line("02:45", "fault", "2 stops before this one could not be judged or recorded", session="")
    terminal.keep(night)
    state = pathlib.Path(terminal.context.state_dir)
    told = [f"{night.at('02:40')} s fault the disk is full", f"{night.at('22:00')} s fault of yesterday", "junk", ""]
    (state / "faults").write_text("\n".join(told), encoding="utf-8")
    (state / "stopwarden.db.damaged-20261201T030000Z").write_text("junk", encoding="utf-8")
    out = terminal.run("report")[1]
    assert "02:40 Stopwarden itself failed: the disk is full." in out
    assert "could not be judged or recorded" not in out
    assert "yesterday" not in out
    assert "03:00 The database could not be read and was set aside" in out


def test_the_report_can_be_had_as_json(terminal: Terminal) -> None:
    """One object on one line."""
    terminal.keep(ordinary_night())
    code, out, _ = terminal.run("report", "--json")
    assert code == 0
    assert json.loads(out)["counts"]["done"] == 5
    assert len(out.splitlines()) == 1
