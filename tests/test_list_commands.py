"""`stopwarden list`, `add`, `done`, `wait`: typed by a person or an agent, on the file they both edit."""

from __future__ import annotations

import json
import pathlib

import pytest

from stopwarden.work import checkout
from tests.support.person import Person

SESSION = "7e15e06a-eefe-44da-90ad-b64555a1702d"
LIST = "# Tonight\n\n- [ ] write parser\n  - [x] tokens\n- [ ] write tests\n- [ ] ask (waits for person: which one?)\n"


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Person:
    return Person(tmp_path)


@pytest.fixture
def todo(person: Person) -> pathlib.Path:
    """A list in the usual place."""
    path = person.repo / "TODO.md"
    path.write_text(LIST, encoding="utf-8")
    return path


def agent(person: Person) -> None:
    """From now on commands are typed by an agent, in its session."""
    person.env |= {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": SESSION}


# --- list --------------------------------------------------------------------------------------


def test_list_shows_what_is_left_with_the_ids_to_type(person: Person, todo: pathlib.Path) -> None:
    """One line an item in the order of the file; what is done only on request; nothing is written anywhere."""
    assert person.types("list") == 0
    shown = person.said.splitlines()
    assert shown[0] == "TODO.md: 2 open, 1 waits for you, 1 done"
    assert shown[1].strip() == "Tonight"
    assert [line.split("  ", 1)[1].split("  ")[-1] for line in shown[2:4]] != []
    assert "tokens" not in person.said
    assert "waits for you: which one?" in person.said
    assert "1 more is done, dropped or taken off: --all shows them." in person.said
    assert person.types("list", "--all") == 0
    assert "[x]" in person.said
    assert "tokens   (ticked, not verified)" in person.said
    assert not pathlib.Path(person.state_dir).exists()
    assert todo.read_text(encoding="utf-8") == LIST


def test_list_as_json_says_everything(person: Person, todo: pathlib.Path) -> None:
    """Ids, states, lines, whom it waits on and why, and that nothing is verified."""
    assert person.types("list", "--json") == 0
    (one,) = json.loads(person.said)["lists"]
    assert one["path"] == str(todo)
    assert one["unread"] is None
    assert [(item["title"], item["state"], item["line"]) for item in one["items"]] == [
        ("write parser", "open", 3),
        ("tokens", "done", 4),
        ("write tests", "open", 5),
        ("ask", "waiting", 6),
    ]
    assert one["items"][3]["waits_on"] == "person"
    assert one["items"][3]["why"] == "which one?"
    assert not any(item["verified"] for item in one["items"])


def test_a_list_without_boxes_is_told_how_to_write_them(person: Person, todo: pathlib.Path) -> None:
    """Plain bullets are a common way to write a list; they hold no item, and that is said."""
    todo.write_text("- write parser\n- write tests\n", encoding="utf-8")
    assert person.types("list") == 0
    assert "2 lines begin with a bullet but no box. An item is a line such as: - [ ] what to do" in person.said
    todo.write_text("- [x] a\n", encoding="utf-8")
    person.types("list")
    assert "Nothing is left to do." in person.said


def test_a_list_that_cannot_be_read_is_said_and_fails(person: Person, todo: pathlib.Path) -> None:
    """Exit code 4, on the error output, with what it means."""
    todo.unlink()
    todo.mkdir()
    assert person.types("list") == 4
    assert person.complained == (
        "stopwarden: TODO.md (it is a folder). What it holds is unknown, so it counts as unfinished work.\n"
    )
    assert person.types("done", "a") == 4


# --- which list --------------------------------------------------------------------------------


def test_where_there_is_no_list_it_is_said_how_to_begin_one(person: Person) -> None:
    """Exit code 2, and the command that would do; typed so, it does."""
    for words in (("list",), ("add", "a"), ("done", "a"), ("wait", "a", "--for", "person")):
        assert person.types(*words) == 2
        assert 'stopwarden add "what to do" --list TODO.md' in person.complained
        assert 'stopwarden add "what to do" --ledger' in person.complained
    assert person.types("add", "what to do", "--list", "TODO.md") == 0
    assert (person.repo / "TODO.md").read_text(encoding="utf-8") == "# To do\n\n- [ ] what to do\n"


def test_from_anywhere_in_the_checkout_its_list_is_meant(person: Person, todo: pathlib.Path) -> None:
    """`--list` is read from where one is; without it, the checkout's list."""
    (person.repo / "src").mkdir()
    person.cwd = person.repo / "src"
    assert person.types("list") == 0
    assert "write parser" in person.said
    assert person.types("list", "--list", "../TODO.md") == 0
    assert person.types("list", "--list", "TODO.md") == 4


def test_away_the_lists_the_person_named_are_meant(person: Person, todo: pathlib.Path) -> None:
    """Not whatever is called TODO.md; an agent in the checkout works on the same ones; --list still wins."""
    plan, more = person.repo / "plan.md", person.repo / "more.md"
    plan.write_text("- [ ] plan it\n", encoding="utf-8")
    more.write_text("- [ ] more of it\n", encoding="utf-8")
    person.away_since(lists=(str(plan), str(more)))
    for _ in ("person", "agent"):
        assert person.types("list") == 0
        assert [line for line in person.said.splitlines() if ".md" in line] == ["plan.md: 1 open", "more.md: 1 open"]
        agent(person)
    assert person.types("done", "more") == 0
    assert more.read_text(encoding="utf-8") == "- [x] more of it\n"
    assert person.types("add", "next") == 0
    assert plan.read_text(encoding="utf-8") == "- [ ] plan it\n- [ ] next\n"
    assert person.types("list", "--list", "TODO.md") == 0
    assert "write parser" in person.said


def test_an_agent_without_a_named_list_works_on_its_sessions_own(person: Person) -> None:
    """It is made when something is added; the person sees it, and may add to it as well."""
    person.away_since()
    agent(person)
    assert person.types("add", "split", "the", "module") == 0
    own = pathlib.Path(checkout.own_list_path(person.root, SESSION))
    assert own.read_text(encoding="utf-8").endswith("\n- [ ] split the module\n")
    del person.env["CLAUDECODE"], person.env["CLAUDE_CODE_SESSION_ID"]
    person.save(person.session(SESSION))
    assert person.types("list") == 0
    assert "split the module" in person.said
    person.save(person.session("another-session"))
    checkout.make_own_list(person.root, "another-session")
    assert person.types("add", "x") == 2
    assert "Say which with --list" in person.complained


def test_ids_are_those_that_the_hook_tells_the_agent(person: Person, todo: pathlib.Path) -> None:
    """A reworded item keeps its id through the night, in the hook's reason and on the command line alike."""
    from stopwarden.work.gather import gather

    period = person.away_since(lists=(str(todo),))
    with person.store() as store:
        before = {item.title: item.id for item in gather(store, person.session(), period, {}, person.now).items}
    todo.write_text(LIST.replace("write tests", "write the lexer tests first"), encoding="utf-8")
    with person.store() as store:
        gather(store, person.session(), period, {}, person.now)
    todo.write_text(LIST.replace("write tests", "lexer tests"), encoding="utf-8")
    assert person.types("done", before["write tests"]) == 0
    assert "- [x] lexer tests\n" in todo.read_text(encoding="utf-8")


def test_a_damaged_database_does_not_keep_anybody_from_the_list(person: Person, todo: pathlib.Path) -> None:
    """What is wrong is said; the list is a file and is shown all the same."""
    person.away_since()
    (pathlib.Path(person.state_dir) / "stopwarden.db").chmod(0o600)
    (pathlib.Path(person.state_dir) / "stopwarden.db").unlink()
    (pathlib.Path(person.state_dir) / "stopwarden.db").mkdir()
    assert person.types("list") == 0
    assert "write parser" in person.said
    assert "without what is stored about it" in person.complained


# --- done --------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["write t", "WRITE  tests", ":5"])
def test_done_ticks_the_one_item_that_is_meant(said: str, person: Person, todo: pathlib.Path) -> None:
    """By the beginning of its text or its line; everything else in the file stays as it was."""
    assert person.types("done", *said.split(" ")) == 0
    assert todo.read_text(encoding="utf-8") == LIST.replace("[ ] write tests", "[x] write tests")
    assert '"write tests" (TODO.md:5)' in person.said
    assert "TODO.md: 1 open, 1 waits for you, 2 done" in person.said


def test_done_by_id_and_twice(person: Person, todo: pathlib.Path) -> None:
    """An id is the surest name; ticking again changes nothing and is no failure."""
    person.types("list", "--json")
    known = json.loads(person.said)["lists"][0]["items"][2]["id"]
    assert person.types("done", known.upper(), "--json") == 0
    assert json.loads(person.said)["already"] is False
    assert person.types("done", known) == 0
    assert person.said.startswith("Was done already")
    assert todo.read_text(encoding="utf-8") == LIST.replace("[ ] write tests", "[x] write tests")


def test_what_may_mean_several_items_names_them_and_changes_nothing(person: Person, todo: pathlib.Path) -> None:
    """Exit code 2, with the candidates, their ids and places."""
    assert person.types("done", "write") == 2
    assert '"write parser" (TODO.md:3)' in person.complained
    assert '"write tests" (TODO.md:5)' in person.complained
    assert "Say which by its id" in person.complained
    assert todo.read_text(encoding="utf-8") == LIST


def test_an_unfinished_item_is_meant_before_a_finished_one_of_the_same_words(
    person: Person, todo: pathlib.Path
) -> None:
    """Who ticks off `build` twice a night means the one that is still to be done."""
    todo.write_text("- [x] build\n- [ ] build\n- [ ] build all\n", encoding="utf-8")
    assert person.types("done", "build") == 0
    assert todo.read_text(encoding="utf-8") == "- [x] build\n- [x] build\n- [ ] build all\n"


@pytest.mark.parametrize(
    "said, answer",
    [
        ("nothing", '"nothing" is no item of TODO.md. See the ids: stopwarden list --all.'),
        ("tests", 'No item begins with "tests". Did you mean'),
        (":99", "is no item of TODO.md"),
        ("t3", "is a todo of the agent program"),
        ("", "is no item of TODO.md"),
    ],
)
def test_what_means_nothing_is_said_with_what_may_be_meant(
    said: str, answer: str, person: Person, todo: pathlib.Path
) -> None:
    """Exit code 2, nothing changed."""
    assert person.types("done", said) == 2
    assert answer in person.complained
    assert todo.read_text(encoding="utf-8") == LIST


def test_ticking_a_parent_says_what_is_still_open_below_it(person: Person, todo: pathlib.Path) -> None:
    """A parent's tick is no tick of its parts."""
    todo.write_text("- [ ] ship\n  - [ ] tag\n    - [?] sign\n  - [x] build\n", encoding="utf-8")
    assert person.types("done", "ship") == 0
    assert 'Still open below it: "tag", "sign"' in person.said


# --- wait, add ---------------------------------------------------------------------------------


def test_wait_marks_an_item_with_the_reason_and_done_takes_it_away(person: Person, todo: pathlib.Path) -> None:
    """The words stand in the file, for everybody to read."""
    assert person.types("wait", "write tests", "--for", "external", "--why", "the CI\nis red") == 0
    assert "- [ ] write tests (waits for external: the CI is red)\n" in todo.read_text(encoding="utf-8")
    assert person.said.startswith("Waits for something external: ")
    assert person.types("wait", "write tests", "--for", "person") == 0
    assert "- [ ] write tests (waits for person)\n" in todo.read_text(encoding="utf-8")
    assert person.types("done", "write tests") == 0
    assert todo.read_text(encoding="utf-8") == LIST.replace("[ ] write tests", "[x] write tests")
    assert person.types("wait", "write tests", "--for", "person") == 2
    assert "is done already" in person.complained


def test_an_agent_says_why_an_item_waits(person: Person, todo: pathlib.Path) -> None:
    """A person need not; for an agent it is refused without a reason, and nothing is changed."""
    agent(person)
    assert person.types("wait", "write tests", "--for", "person") == 2
    assert "Add --why" in person.complained
    assert todo.read_text(encoding="utf-8") == LIST
    assert person.types("wait", "write tests", "--for", "person", "--why", "which?", "--json") == 0
    assert json.loads(person.said)["why"] == "which?"


@pytest.mark.parametrize("words", [("wait", "write tests"), ("wait", "a", "--for", "luck"), ("add",), ("done",)])
def test_wrong_words_are_refused_with_the_right_ones(
    words: tuple[str, ...], person: Person, todo: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and the usage."""
    assert person.types(*words) == 2
    assert "usage: stopwarden" in capsys.readouterr().err
    assert todo.read_text(encoding="utf-8") == LIST


def test_add_puts_an_item_after_the_last_unfinished_one(person: Person, todo: pathlib.Path) -> None:
    """In the list's own style; its id and line are said."""
    todo.write_text(LIST + "\n## Done\n\n- [x] plan\n", encoding="utf-8")
    assert person.types("add", "update", "the", "docs", "--json") == 0
    told = json.loads(person.said)
    assert told["line"] == 6
    assert todo.read_text(encoding="utf-8").splitlines()[4:7] == [
        "- [ ] write tests",
        "- [ ] update the docs",
        "- [ ] ask (waits for person: which one?)",
    ]
    assert person.types("done", told["id"]) == 0
    assert person.types("add", " \n ") == 2
    assert "no title" in person.complained


def test_a_list_that_cannot_be_written_stays_as_it_was(
    person: Person, todo: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: exit code 4, the error says what was kept and what to do."""
    import os

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert person.types("done", "write tests") == 4
    assert "cannot be written (no space left on device). It is as it was." in person.complained
    assert todo.read_text(encoding="utf-8") == LIST
    assert sorted(one.name for one in person.repo.iterdir()) == [".git", "TODO.md"]


@pytest.mark.parametrize("command", ["list", "add", "done", "wait"])
def test_every_command_shows_an_example(command: str, person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` says how it is typed, and what the exit codes mean."""
    assert person.types(command, "--help") == 0
    said = capsys.readouterr().out
    assert f"  stopwarden {command}" in said
    assert "exit codes: 0" in said
