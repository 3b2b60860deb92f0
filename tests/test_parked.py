"""Questions and permissions that were refused in the person's absence, and the answers given to them."""

from __future__ import annotations

import pathlib

import pytest

from stopwarden.cli.context import AGENT_VARIABLES
from stopwarden.hook import at_event
from tests.conftest import at
from tests.support.terminal import Terminal
from tests.support.written_night import PARSER, Night, ordinary_night


@pytest.fixture
def terminal(tmp_path: pathlib.Path) -> Terminal:
    terminal = Terminal(tmp_path)
    terminal.keep(ordinary_night())
    return terminal


def answered(terminal: Terminal, number: int = 1) -> str:
    store = terminal.store()
    try:
        return next(one.answer for one in store.parked() if one.id == number)
    finally:
        store.close()


def test_open_questions_and_refusals_are_listed_with_their_options(terminal: Terminal) -> None:
    """Number, time, session, what was asked, the options, what the agent chose meanwhile."""
    assert terminal.run("parked") == (
        0,
        "Times are Europe/London. Answer with: stopwarden answer NUMBER TEXT\n"
        '  1  Tue 02:11  7e15 "parser"  question: "Drop column legacy_id?"\n'
        "       options: 1 drop it · 2 keep it\n"
        "       chosen meanwhile: keep it (can be undone)\n"
        '  2  Tue 02:20  7e15 "parser"  permission refused: "rm -rf build"\n'
        '  3  Tue 02:21  7e15 "parser"  permission refused: "git push"\n',
        "",
    )
    told = terminal.json("parked")["parked"]
    assert next((one["id"], one["at"], one["options"]) for one in told) == (
        1,
        "2026-12-01T02:11:00Z",
        ["drop it", "keep it"],
    )


def test_nothing_parked_is_one_line(tmp_path: pathlib.Path) -> None:
    """And no error."""
    assert Terminal(tmp_path).run("parked") == (0, "Nothing waits for an answer.\n", "")


@pytest.mark.case("BR-109")
def test_a_question_that_was_asked_three_times_is_one_question(tmp_path: pathlib.Path) -> None:
    """It is posted once and counted, in the list and in the report."""
    terminal = Terminal(tmp_path)
    night = Night()
    night.line("23:06", "prompt", "person")
    night.ask("01:00", "Which port?", times=3)
    terminal.keep(night)
    out = terminal.run("parked")[1]
    assert out.count("Which port?") == 1
    assert 'question, asked 3 times: "Which port?"' in out
    report = terminal.run("report")[1]
    assert '"Which port?"  asked 01:00, 3 times' in report
    assert "1 for you" in report


def test_an_answer_is_stored_for_the_session(terminal: Terminal) -> None:
    """The hook finds it for that session, and the question waits no more."""
    code, out, _ = terminal.run("answer", "1", "keep", "the", "column")
    assert code == 0
    assert out.splitlines() == [
        '1: "Drop column legacy_id?" is answered: keep the column',
        '7e15 "parser" is told at its next prompt or block.',
    ]
    store = terminal.store()
    assert at_event.answers(store, PARSER) == ("Drop column legacy_id?: keep the column",)
    store.close()
    assert "Drop column" not in terminal.run("parked")[1]
    assert "your answer 08:00: keep the column (not told yet)" in terminal.run("parked", "--all")[1].replace("Tue ", "")
    assert "DO FIRST" not in terminal.run("report")[1]


def test_the_number_of_an_option_picks_it(terminal: Terminal) -> None:
    """Only where there is such an option: else the number is the answer."""
    assert '"Drop column legacy_id?" is answered: keep it (option 2)' in terminal.run("answer", "1", "2")[1]
    assert answered(terminal) == "keep it"
    terminal.run("answer", "1", "3")
    assert answered(terminal) == "3"


def test_answering_again_replaces_the_answer_and_says_so(terminal: Terminal) -> None:
    """Also after the session was told: then it is told again."""
    terminal.run("answer", "1", "keep it")
    terminal.now += 60
    out = terminal.run("answer", "1", "drop it")[1]
    assert "It replaces your answer of Tue 08:00: keep it" in out
    store = terminal.store()
    at_event.delivered(store, PARSER, terminal.now)
    assert at_event.answers(store, PARSER) == ()
    store.close()
    out = terminal.run("answer", "1", "keep it after all")[1]
    assert "was told the earlier answer at 08:01; it is told this one at its next prompt or block" in out
    store = terminal.store()
    assert at_event.answers(store, PARSER) == ("Drop column legacy_id?: keep it after all",)
    store.close()


def test_an_answer_to_a_closed_session_waits_until_it_is_opened_again(terminal: Terminal) -> None:
    """The person is told that nobody hears it now."""
    store = terminal.store()
    row = store.session(PARSER)
    assert row is not None
    store.save_session(row.replace(ended_at=at("2026-12-01 07:40")))
    store.close()
    assert "was closed at Tue 07:40: it is told when it is opened again" in terminal.run("answer", "1", "keep")[1]


@pytest.mark.parametrize("variable", AGENT_VARIABLES)
def test_an_agent_cannot_answer_for_the_person(tmp_path: pathlib.Path, variable: str) -> None:
    """Inside an agent program's environment it is refused, and nothing is stored."""
    terminal = Terminal(tmp_path)
    terminal.keep(ordinary_night())
    terminal.env[variable] = "1"
    code, out, err = terminal.run("answer", "1", "drop it")
    assert (code, out) == (2, "")
    assert "Only the person may answer a parked question" in err
    assert answered(terminal) == ""


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("99", "yes"), "There is no parked question 99. These are open: 1, 2, 3"),
        (("1", " "), "There is no answer"),
        (("1", "y" * 2_001), "The answer has 2001 characters"),
        (("one", "yes"), ""),
        (("1",), ""),
    ],
)
def test_wrong_words_store_nothing(terminal: Terminal, words: tuple[str, ...], advice: str) -> None:
    """Exit code 2 and what would be right."""
    code, out, err = terminal.run("answer", *words)
    assert (code, out) == (2, "")
    assert advice in err
    assert answered(terminal) == ""


def test_what_was_refused_in_an_earlier_period_is_left_out_but_questions_never(terminal: Terminal) -> None:
    """A refusal of last week needs nobody; a question waits until it is answered."""
    later = Night("2026-12-01", "22:00", "23:00")
    later.period = later.period.replace(id="p2")
    store = terminal.store()
    store.add_period(later.period, "")
    store.close()
    terminal.now = at("2026-12-01 22:30")
    out = terminal.run("parked")[1]
    assert "Drop column legacy_id?" in out
    assert "rm -rf build" not in out
    assert "2 more are answered or older: stopwarden parked --all" in out
    assert "rm -rf build" in terminal.run("parked", "--all")[1]


def test_hostile_questions_do_not_reach_the_terminal_as_they_are(tmp_path: pathlib.Path) -> None:
    """Escapes and line breaks are taken out of the question, its options and the answer."""
    terminal = Terminal(tmp_path)
    night = Night()
    night.line("23:06", "prompt", "person")
    night.ask("01:00", "a\x1b[2J\nb", options=("c\x07",), chosen="d\x9b")
    terminal.keep(night)
    out = terminal.run("parked")[1] + terminal.run("answer", "1", "e\x1b[0m")[1] + terminal.run("parked", "--all")[1]
    assert all(char.isprintable() or char == "\n" for char in out)
