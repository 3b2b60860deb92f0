"""`off`, `on` and `observe`: one stored fact each, nothing else touched, and never by an agent."""

from __future__ import annotations

import json
import pathlib

import pytest

from stopwarden.core.events import AwayPeriod
from stopwarden.store.port import SessionRow
from tests.conftest import at
from tests.support.night import SESSION, HookNight
from tests.support.person import Person


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Person:
    """A person at their own terminal, with two sessions known."""
    made = Person(tmp_path)
    made.save(SessionRow(id="7e15aaaa", title="parser", last_event_at=made.now, last_event="prompt"))
    made.save(SessionRow(id="9a02bbbb", last_event_at=made.now, last_event="prompt"))
    return made


@pytest.mark.parametrize("word", ["off", "observe", "on"])
def test_a_switch_for_all_is_one_stored_fact(person: Person, word: str) -> None:
    """The fact that hooks read is stored under "all", and the answer says what it means and the undo."""
    assert person.types(word) == 0
    assert person.fact("mode", "all") == word
    assert person.said.startswith(f"{word.capitalize()}: ")
    assert "Undo: stopwarden o" in person.said


@pytest.mark.parametrize("said", ["7e15", "7e15aaaa", "parser"])
def test_a_switch_for_one_session_is_found_by_id_beginning_or_title(person: Person, said: str) -> None:
    """Only that session's fact is stored."""
    assert person.types("off", "--session", said) == 0
    assert (person.fact("mode", "7e15aaaa"), person.fact("mode", "all"), person.fact("mode", "9a02bbbb")) == (
        "off",
        "",
        "",
    )
    assert 'session 7e15 "parser"' in person.said
    assert "stopwarden on --session 7e15aaaa" in person.said


def test_an_unknown_session_is_refused_with_those_that_are_known(person: Person) -> None:
    """Wrong words: exit code 2, what would be right, nothing stored."""
    assert person.types("off", "--session", "zzzz") == 2
    assert 'Name one of: 7e15 "parser", 9a02' in person.complained
    assert person.fact("mode", "zzzz") == ""


def test_a_beginning_that_two_sessions_share_is_refused(person: Person) -> None:
    """No guess which one was meant."""
    person.save(SessionRow(id="7e15cccc"))
    assert person.types("off", "--session", "7e15") == 2
    assert "names 2 sessions" in person.complained
    assert "7e15a" in person.complained


def test_switching_changes_nothing_but_the_switch(person: Person) -> None:
    """An away period, a session's row and its state stand as they were, and `on` brings back what held."""
    period = person.away_since(until=at("2026-12-01 07:30"))
    with person.store() as store:
        before = (store.open_periods(), store.sessions(), store.state("7e15aaaa"))
    for word in ("off", "observe", "on"):
        assert person.types(word) == 0
    with person.store() as store:
        assert (store.open_periods(), store.sessions(), store.state("7e15aaaa")) == before
        kinds = [(line.kind, line.text) for line in store.lines(period=period.id)]
    assert kinds[-3:] == [("switched", "off: all"), ("switched", "observe: all"), ("switched", "on: all")]


def test_off_while_away_says_what_that_means(person: Person) -> None:
    """The person is told that sessions may now stop with work owed, and until when."""
    person.away_since(until=at("2026-12-01 07:30"))
    assert person.types("off") == 0
    assert "You are away until Tue 07:30: meanwhile sessions may stop with work owed" in person.said


def test_on_for_all_says_which_session_keeps_its_own_switch(person: Person) -> None:
    """A session's own switch goes before the one for all and is not cleared by it."""
    person.types("off", "--session", "9a02")
    assert person.types("on") == 0
    assert person.fact("mode", "9a02bbbb") == "off"
    assert "Session 9a02 keeps its own switch: off. stopwarden on --session 9a02bbbb" in person.said


@pytest.mark.parametrize("words", [("off",), ("observe",), ("off", "--session", "7e15")])
@pytest.mark.parametrize("variable", ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "AI_AGENT", "QWEN_CODE_SESSION_ID"])
def test_an_agent_may_not_weaken_the_guard(person: Person, words: tuple[str, ...], variable: str) -> None:
    """Started by an agent program the switch is refused, and nothing is stored."""
    person.env[variable] = "1"
    assert person.types(*words) == 2
    assert "Only the person may switch" in person.complained
    assert (person.fact("mode", "all"), person.fact("mode", "7e15aaaa")) == ("", "")


def test_an_agent_may_switch_the_guard_on(person: Person) -> None:
    """What strengthens it is open to everybody."""
    person.types("off")
    person.env["CLAUDECODE"] = "1"
    assert person.types("on") == 0
    assert person.fact("mode", "all") == "on"


def test_the_person_can_allow_agents_and_take_it_back(person: Person) -> None:
    """The leave holds for agents until it is withdrawn."""
    assert person.types("on", "--agents-may-end", "yes") == 0
    assert person.fact("mode", "all") == ""
    person.env["CLAUDECODE"] = "1"
    assert person.types("off") == 0
    del person.env["CLAUDECODE"]
    assert person.types("on", "--agents-may-end", "no") == 0
    person.env["CLAUDECODE"] = "1"
    assert person.types("observe") == 2


@pytest.mark.parametrize("leave", ["yes", "no"])
def test_an_agent_cannot_give_itself_leave_even_with_leave(person: Person, leave: str) -> None:
    """What agents may do is said outside an agent only."""
    person.types("on", "--agents-may-end", "yes")
    person.env["CLAUDECODE"] = "1"
    assert person.types("on", "--agents-may-end", leave) == 2
    assert person.fact("agents_may_weaken", "all") == "yes"
    assert "To let agents do it" not in person.complained


def test_wrong_words_are_refused_with_what_would_be_right(person: Person) -> None:
    """An option that makes no sense together, or does not exist, ends in exit code 2."""
    assert person.types("on", "--agents-may-end", "yes", "--session", "7e15") == 2
    assert person.types("on", "--agents-may-end", "perhaps") == 2
    assert person.types("off", "--agents-may-end", "yes") == 2
    assert person.fact("agents_may_weaken", "all") == ""


def test_the_switches_speak_json(person: Person) -> None:
    """One object with the switch, whom it is for, and the sessions that keep their own."""
    person.types("observe", "--session", "9a02")
    assert person.types("off", "--json") == 0
    assert json.loads(person.said) == {
        "v": 1,
        "mode": "off",
        "of": "all",
        "away": False,
        "others": {"9a02bbbb": "observe"},
        "until": None,
    }
    assert person.types("on", "--agents-may-end", "yes", "--json") == 0
    assert json.loads(person.said) == {"v": 1, "agents_may_end": True}


@pytest.mark.parametrize("word", ["off", "on", "observe"])
def test_the_help_shows_an_example(person: Person, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command's help ends with a line one can type."""
    assert person.types(word, "--help") == 0
    assert f"stopwarden {word} --session 7e15" in capsys.readouterr().out


def test_a_period_that_is_over_gets_no_line(person: Person) -> None:
    """A switch after the end of the night is no part of it."""
    period: AwayPeriod = person.away_since(until=person.now + 60)
    person.now += 61
    assert person.types("off") == 0
    with person.store() as store:
        assert [line.kind for line in store.lines(period=period.id)] == []
    assert "You are away" not in person.said


@pytest.mark.case("BR-150")
def test_a_pause_until_a_time_is_honoured_and_over_by_itself(tmp_path: pathlib.Path) -> None:
    """Off until 22:00: a stop is allowed, waiting until then; at 22:00 work that is owed blocks again."""
    night = HookNight(tmp_path)
    night.away()
    assert night.types("off", "--until", "22:00") == 0
    assert "Off until 22:00 Europe/London" in night.said
    assert night.send("stop") == {}
    store = night.store()
    (verdict,) = store.verdicts()
    assert (verdict.kind, verdict.rule) == ("waiting", "policy.paused")
    assert store.state(SESSION).next_look == at("2026-11-30 22:00")
    store.close()
    night.now = at("2026-11-30 22:00")
    assert night.send("stop")["decision"] == "block"


def test_a_session_that_sleeps_on_after_a_pause_is_missed(tmp_path: pathlib.Path) -> None:
    """Nothing woke it when the pause was over: its next event finds the look missed."""
    night = HookNight(tmp_path)
    night.away()
    night.types("off", "--until", "22:00")
    night.send("stop")
    night.now = at("2026-11-30 23:00")
    night.send("prompt", prompt="hello?")
    assert "missed_look" in night.lines()


def test_off_without_a_time_and_on_forget_the_pause(tmp_path: pathlib.Path) -> None:
    """The last word counts."""
    night = HookNight(tmp_path)
    night.away()
    for words in (("off", "--until", "2h"), ("off",)):
        night.types(*words)
    night.now = at("2026-12-01 03:00")
    assert night.send("stop") == {}
    night.types("off", "--until", "06:00")
    night.types("on")
    assert night.send("stop")["decision"] == "block"
