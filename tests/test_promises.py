"""Timed looks and promises of a list: plain bullets with a time, shown and reported, never an item, a wake or a verdict."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from stopwarden.core.errors import ListError
from stopwarden.hook import promised
from stopwarden.store import journal
from stopwarden.work import edits, promises
from stopwarden.work.checklist import parse
from tests.conftest import LONDON, at
from tests.support.night import HookNight, cron
from tests.support.person import Person

LEFT = at("2026-11-30 22:00")
LIST = """# Tonight

- [ ] write the lexer
- [x] write the parser

- look 23:30: see whether the build passed
- promise 02:00: merge once CI is green
"""


def told(text: str, since: int = LEFT) -> list[tuple[str, str, int | None]]:
    """What a text holds: kind, words, time."""
    return [(one.kind, one.text, one.at) for one in promises.read(text, since, LONDON)]


# --- reading -------------------------------------------------------------------------------------


def test_a_look_and_a_promise_are_read_with_their_local_times_and_are_no_items() -> None:
    """A time of day is the next one after the person left; the list has two items as before."""
    assert told(LIST) == [
        ("look", "see whether the build passed", at("2026-11-30 23:30")),
        ("promise", "merge once CI is green", at("2026-12-01 02:00")),
    ]
    assert [entry.title for entry in parse(LIST)] == ["write the lexer", "write the parser"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- look 22:00: a", at("2026-11-30 22:00")),
        ("- look 21:59: a", at("2026-12-01 21:59")),
        ("* Look 9:05 a", at("2026-12-01 09:05")),
        ("  + LOOK 23:30:a", at("2026-11-30 23:30")),
        ("> - look 23:30 - a", at("2026-11-30 23:30")),
        ("- look 2026-12-24 02:00: a", at("2026-12-24 02:00")),
        ("- look 2026-12-24T02:00: a", at("2026-12-24 02:00")),
        ("- look 2028-02-29 02:00: a", at("2028-02-29 02:00")),
        ("- looked 23:30: a", at("2026-11-30 23:30")),
    ],
)
def test_times_are_read_as_people_write_them(line: str, expected: int) -> None:
    """With or without a date, a colon, a blank; on any marker, indented or quoted."""
    (one,) = promises.read(line + "\n", LEFT, LONDON)
    assert (one.at, one.text) == (expected, "a")


@pytest.mark.parametrize(
    "line",
    [
        "- look at the build",
        "- look: the docs",
        "- promise to be quick",
        "- kept: nothing",
        "- [ ] look 23:30: an item",
        "look 23:30: no bullet",
        "- looking 23:30: no",
        "-look 23:30: no",
        "- outlook 23:30: no",
    ],
)
def test_prose_and_items_are_none(line: str) -> None:
    """Only a bullet that begins with the word and a time is one."""
    assert told(line + "\n") == []


@pytest.mark.case("A140")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("- promise: merge once CI is green", "- promise HH:MM: merge once CI is green"),
        ("- promise 25:00: merge", '"25:00" is no time'),
        ("- promise 2am: merge", '"2am" is no time'),
        ("- promise 2026-02-30 02:00: merge", '"2026-02-30 02:00" is no time'),
        ("- look 24:00: merge", '"24:00" is no time'),
    ],
)
def test_a_promise_without_a_fallback_time_is_refused_and_never_counts(line: str, says: str) -> None:
    """It is shown with what to write, and however late it gets it is not overdue: there is no time to be late for."""
    (one,) = promises.read(line + "\n", LEFT, LONDON)
    assert one.at is None
    assert says in one.refused
    assert not one.is_overdue(LEFT + 10**9)
    assert promises.overdue([("TODO.md", line + "\n")], LEFT, LEFT + 10**9, LONDON) == []


def test_a_promise_is_overdue_past_its_time_and_a_look_ten_minutes_later() -> None:
    """To the second; what was handled is never overdue."""
    look, promise = promises.read(LIST, LEFT, LONDON)
    assert not look.is_overdue(at("2026-11-30 23:40"))
    assert look.is_overdue(at("2026-11-30 23:40") + 1)
    assert not promise.is_overdue(at("2026-12-01 02:00"))
    assert promise.is_overdue(at("2026-12-01 02:00") + 1)
    handled = LIST.replace("- look ", "- looked ").replace("- promise ", "- kept ")
    assert promises.overdue([("TODO.md", handled)], LEFT, at("2026-12-03 00:00"), LONDON) == []
    late = promises.overdue([("TODO.md", LIST)], LEFT, at("2026-12-01 03:00"), LONDON)
    assert [(one.kind, one.source) for one in late] == [("look", "TODO.md"), ("promise", "TODO.md")]


def test_what_stands_in_a_fence_or_a_comment_is_no_promise() -> None:
    """Examples are not promises; a fence that never ends hides nothing."""
    assert told("```\n- look 23:30: a\n```\n<!--\n- look 23:30: b\n-->\n- look 23:31: c\n")[0][1] == "c"
    assert len(told("```\n- look 23:30: a\n")) == 1


def test_clocks_that_go_forward_or_back_leave_one_moment_each() -> None:
    """A time shown twice is the first of the two, one that is skipped comes as much later as clocks skip."""
    (twice,) = promises.read("- look 01:30: a\n", at("2026-10-24 23:00"), LONDON)
    assert twice.at == at("2026-10-25 01:30")
    (skipped,) = promises.read("- look 01:30: a\n", at("2026-03-28 23:00"), LONDON)
    assert skipped.at == at("2026-03-29 02:30")


def test_hostile_text_stays_one_line_of_plain_words() -> None:
    """Line breaks, escapes and comments in a promise's words become nothing that a list would read otherwise."""
    line = promises.line_of("promise", "02:00", "a\n- [ ] b \x1b[2J <!-- sw:x -->\u202e" + "x" * 500)
    assert "\n" not in line
    assert "\x1b" not in line
    changed, number = edits.append_timed(LIST, line)
    assert parse(changed) == parse(LIST)
    assert number == LIST.count("\n") + 1


# --- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- [ ] a",
        "- [ ] a\r\n  - [ ] b\r\n",
        "# T\n\n1. [ ] a\n2. [ ] b\n\nwords\n",
        "- [ ] a\n```\nopen\n",
        "\ufeff- [ ] a\n",
        "> - [ ] a\n> more",
        LIST,
    ],
)
def test_a_line_is_added_without_touching_an_item(text: str) -> None:
    """Whatever the list looks like: every item as before, every byte of before still there, one more line."""
    changed, number = edits.append_timed(text, promises.line_of("look", "23:45", "see"))
    before, after = parse(text), parse(changed)
    assert [(one.title, one.state) for one in before] == [(one.title, one.state) for one in after]
    assert [one.line for one in promises.read(changed, LEFT, LONDON)][-1] == number
    assert len(changed.replace("- look 23:45: see", "").replace("\r", "").replace("\n", "")) == len(
        text.replace("\r", "").replace("\n", "")
    )


def test_handled_is_one_word_changed() -> None:
    """`look` becomes `looked`, `promise` becomes `kept`; the rest of the file is as it was."""
    text = edits.mark_handled(edits.mark_handled(LIST, 6), 7)
    assert text == LIST.replace("- look ", "- looked ").replace("- promise ", "- kept ")
    with pytest.raises(ListError):
        edits.mark_handled(LIST, 3)


@pytest.mark.parametrize(("when", "said"), [("2026-11-30 23:30", "23:30"), ("2026-12-01 23:30", "2026-12-01 23:30")])
def test_a_time_is_written_so_that_it_is_read_again_as_the_same(when: str, said: str) -> None:
    """The time alone where that is enough, else with its date."""
    clock = promises.clock_of(at(when), LEFT, LONDON)
    assert clock == said
    (one,) = promises.read(f"- look {clock}: a\n", LEFT, LONDON)
    assert one.at == at(when)


# --- commands ------------------------------------------------------------------------------------


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Person:
    """A person with a list, away since 22:00."""
    made = Person(tmp_path)
    made.now = LEFT
    path = made.list(LIST)
    made.away_since(id="n1", until=at("2026-12-01 07:30"), lists=(path,))
    made.now = at("2026-11-30 23:05")
    return made


def test_a_look_and_a_promise_are_written_into_the_list(person: Person) -> None:
    """In the list that the person is away with, below those that are there; with a date only where it is needed."""
    assert person.types("look", "--at", "2h", "see", "the", "tests") == 0
    assert "noted in TODO.md, line 8" in person.said
    assert person.types("promise", "tell Ann\n- [ ] x", "--by", "tomorrow 22:30") == 0
    text = (person.repo / "TODO.md").read_text()
    assert text == LIST + "- look 01:05: see the tests\n- promise 2026-12-01 22:30: tell Ann - [ ] x\n"


@pytest.mark.case("A140")
def test_a_promise_without_by_is_refused_and_writes_nothing(person: Person) -> None:
    """Exit code 2, what would be right, and the list byte for byte as before."""
    assert person.types("promise", "merge once CI is green") == 2
    assert "--by 02:00" in person.complained
    assert person.types("look", "see") == 2
    assert (person.repo / "TODO.md").read_text() == LIST


def test_one_is_ticked_by_its_time_or_its_words(person: Person) -> None:
    """`--looked` and `--kept` change one word; what is not there, or ticked already, is refused."""
    assert person.types("look", "--looked", "23:30") == 0
    assert person.types("promise", "--kept", "merge once") == 0
    assert (person.repo / "TODO.md").read_text() == LIST.replace("- look ", "- looked ").replace(
        "- promise ", "- kept "
    )
    assert person.types("promise", "--kept", "merge once") == 2


def test_list_and_status_show_what_comes_next_what_is_overdue_and_what_is_refused(person: Person) -> None:
    """Below the items: times, places, and for a promise without a time what to write."""
    person.list(LIST + "- promise: no time\n")
    assert person.types("list") == 0
    assert 'look 23:30 "see whether the build passed" (TODO.md:6)' in person.said
    assert 'refused: promise "no time" (TODO.md:8)' in person.said
    person.types("list", "--json")
    timed = json.loads(person.said)["lists"][0]["timed"]
    assert [(one["kind"], one["overdue"], bool(one["refused"])) for one in timed] == [
        ("look", False, False), ("promise", False, False), ("promise", False, True),
    ]  # fmt: skip
    person.now = at("2026-12-01 02:01")
    person.types("status")
    assert re.search('overdue: look (Mon )?23:30 "see whether the build passed"', person.said)
    assert 'overdue: promise 02:00 "merge once CI is green"' in person.said


def test_status_only_shows_and_writes_nothing(person: Person) -> None:
    """An overdue promise is no alarm of `status`, and it leaves no line: that is for `watch` and the stops."""
    person.now = at("2026-12-01 02:01")
    person.types("status")
    with person.store() as store:
        assert [line.kind for line in store.lines()] == ["away"] or store.lines() == []


# --- never a wake, never a verdict ---------------------------------------------------------------


@pytest.mark.parametrize("wakes", [True, False])
def test_the_same_stops_get_the_same_verdicts_with_and_without_them(wakes: bool, tmp_path: pathlib.Path) -> None:
    """Byte for byte, over a block, an allowed wait and overdue promises; the record's input is the same, too."""

    def stops(folder: pathlib.Path, todo: str) -> list[str]:
        folder.mkdir()
        night = HookNight(folder, todo=todo)
        copy = night.away(id="p1").copy
        crons = {"session_crons": [cron("21:30")]} if wakes else {}
        answers = [json.dumps(night.send("stop", **crons)) for _ in range(3)]
        night.now = at("2026-12-01 06:00")
        answers.append(json.dumps(night.send("stop")))
        store = night.store()
        kept = []
        for row in store.verdicts():
            inputs = journal.decode(row.body, store.snapshot)
            told = repr((row.kind, row.rule, inputs[1:])).replace(str(folder), "").replace(copy, "")
            kept.append(told)
        store.close()
        return answers + kept

    plain = stops(tmp_path / "a", "- [ ] A\n- [ ] B\n")
    with_them = stops(
        tmp_path / "b", "- [ ] A\n- [ ] B\n\n- look 21:05: now\n- promise 02:00: merge\n- promise: never\n"
    )
    assert len(plain) == 8
    assert plain == with_them


@pytest.mark.case("A141")
def test_an_overdue_promise_is_one_line_in_the_record_and_touches_no_file(tmp_path: pathlib.Path) -> None:
    """Its time passed unhandled: whoever looks next records it once; list and neighbours keep every byte."""
    night = HookNight(tmp_path, todo="- [ ] A\n- promise 23:00: merge\n- look 23:30: see\n- promise 07:00: later\n")
    period = night.away()
    before = {path: path.read_bytes() for path in night.project.rglob("*") if path.is_file()}
    store = night.store()
    for clock, kinds in (
        ("22:59", []),
        ("23:01", ["empty_promise"]),
        ("23:02", ["empty_promise"]),
        ("23:41", ["empty_promise", "missed_timed_look"]),
        ("23:50", ["empty_promise", "missed_timed_look"]),
    ):
        promised.noticed(store, [(str(night.list), "TODO.md", "")], period, LONDON, at(f"2026-11-30 {clock}"))
        assert [line.text.split(";")[0] for line in store.lines() if line.kind == "stall"] == kinds
    store.close()
    assert {path: path.read_bytes() for path in night.project.rglob("*") if path.is_file()} == before


@pytest.mark.case("A141")
def test_a_stop_records_a_promise_past_its_time_once_and_judges_as_if_it_were_not_there(tmp_path: pathlib.Path) -> None:
    """The stop after 22:00 writes one stall line; the list stays as it is, and the answer is the same without it."""
    todo = "- [ ] A\n- promise 22:00: merge once CI is green\n"
    night = HookNight(tmp_path, todo=todo)
    night.away()
    night.now = at("2026-11-30 22:30")
    with_promise = night.send("stop")
    night.send("stop")
    store = night.store()
    (stall,) = [line for line in store.lines() if line.kind == "stall"]
    store.close()
    assert stall.text.startswith("empty_promise; ")
    assert stall.text.endswith("; merge once CI is green")
    assert night.list.read_text() == todo
    other = HookNight(tmp_path / "other", todo="- [ ] A\n")
    other.away()
    other.now = at("2026-11-30 22:30")
    assert other.send("stop")["decision"] == with_promise["decision"]
