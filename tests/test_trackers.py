"""Other trackers: real small programs on the PATH, read whole or not at all, and never written."""

from __future__ import annotations

import json
import os
import pathlib
import time

import pytest

from stopwarden.store.memory import MemoryStore
from stopwarden.store.port import TrackedItem, Tracker
from stopwarden.work import trackers
from tests.conftest import at
from tests.support.person import Person

NINE = at("2026-11-30 21:00")
ISSUES = [
    {"createdAt": "2026-11-20T10:00:00Z", "labels": [{"name": "bug"}], "number": 42, "title": "Parser hangs"},
    {"createdAt": "2026-11-01T10:00:00Z", "labels": [{"name": "P1"}, {"name": "x"}], "number": 7, "title": "Lexer"},
    {"createdAt": "2026-11-02T10:00:00Z", "labels": [{"name": "blocked"}], "number": 8, "title": "Docs"},
]


class Programs:
    """A folder on the PATH, and programs in it that the test writes."""

    def __init__(self, tmp_path: pathlib.Path) -> None:
        self.folder, self.root = tmp_path / "bin", tmp_path / "repo"
        self.folder.mkdir()
        self.root.mkdir(exist_ok=True)
        self.env = {"PATH": f"{self.folder}:{os.defpath}", "HOME": str(tmp_path), "TOKEN": "kept"}

    def write(self, name: str, script: str) -> None:
        """A shell script of that name."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def prints(self, name: str, text: str) -> None:
        """A program that prints exactly that text."""
        (self.folder / f"{name}.out").write_text(text, encoding="utf-8", newline="")
        self.write(name, f'cat "{self.folder}/{name}.out"')

    def ask(self, name: str, *command: str, limit: float = 20.0) -> trackers.Said:
        """What a tracker says now."""
        tracker = trackers.new_tracker("p", str(self.root), name, command or ([] if name in ("gh", "bd") else [name]))
        return trackers.ask(tracker, self.env, limit)


@pytest.fixture
def programs(tmp_path: pathlib.Path) -> Programs:
    return Programs(tmp_path)


def told(said: trackers.Said) -> list[tuple[str, str, str, int, bool]]:
    assert said.why == ""
    return [(one.id, one.title, one.state, one.priority, one.blocked) for one in said.items]


# --- what they say ----------------------------------------------------------------------------------


def test_github_is_asked_for_open_issues_without_a_question(programs: Programs) -> None:
    """Number, title, age; priority and blocked by labels; no prompt, no input, all of the person's environment."""
    (programs.folder / "issues").write_text(json.dumps(ISSUES), encoding="utf-8")
    programs.write(
        "gh",
        f'printf "%s\\n" "$*" >"{programs.folder}/asked"; env >"{programs.folder}/env"; pwd >>"{programs.folder}/env"\n'
        f'cat >"{programs.folder}/input"; cat "{programs.folder}/issues"',
    )
    said = programs.ask("gh")
    assert told(said) == [
        ("gh-42", "Parser hangs", "open", 2, False),
        ("gh-7", "Lexer", "open", 1, False),
        ("gh-8", "Docs", "open", 2, True),
    ]
    assert said.items[1].created_at == at("2026-11-01 10:00")
    asked = (programs.folder / "asked").read_text(encoding="utf-8").split()
    assert asked == ["issue", "list", "--state", "open", "--limit", "5001", "--json", "number,title,labels,createdAt"]
    env = (programs.folder / "env").read_text(encoding="utf-8").splitlines()
    assert "GH_PROMPT_DISABLED=1" in env
    assert "TOKEN=kept" in env
    assert env[-1] == str(programs.root)
    assert (programs.folder / "input").read_bytes() == b""


def test_beads_are_listed_and_what_it_calls_not_ready_is_blocked(programs: Programs) -> None:
    """Two questions to `bd`, all it has and what it would offer; states that are over are left out; both shapes."""
    listed = [
        {"id": "bd-a1b2", "title": "parse", "status": "open", "priority": 0, "created_at": "2026-11-20T10:00:00.123456789Z"},
        {"id": "bd-c3", "title": "lex", "status": "in_progress", "priority": 1, "created_at": "2026-11-20T10:00:00+01:00"},
        {"id": "bd-d4", "title": "docs", "status": "open", "priority": 3, "created_at": "2026-11-20T10:00:00Z"},
        {"id": "bd-e5", "title": "old", "status": "closed", "priority": 3, "created_at": "2026-11-20T10:00:00Z"},
        {"id": "proj-f6", "title": "held up", "status": "blocked", "priority": 3, "created_at": "2026-11-20T10:00:00Z"},
    ]  # fmt: skip
    (programs.folder / "list").write_text(json.dumps({"schema_version": 1, "data": listed}, indent=2), encoding="utf-8")
    (programs.folder / "ready").write_text(json.dumps([listed[0]]), encoding="utf-8")
    programs.write("bd", f'test "$2 $3 $4" = "--json --limit 0" && cat "{programs.folder}/$1"')
    assert told(programs.ask("bd")) == [
        ("bd-a1b2", "parse", "open", 0, False),
        ("bd-c3", "lex", "doing", 1, False),
        ("bd-d4", "docs", "open", 3, True),
        ("bd-proj-f6", "held up", "open", 3, True),
    ]
    programs.write("bd", f'test "$1" = list && cat "{programs.folder}/list"')
    assert programs.ask("bd").why == "bd ended with exit code 1"


@pytest.mark.parametrize(
    "line, expected",
    [
        ('{"id": "7", "title": "write it"}', ("notes-7", "write it", "open", 2, False)),
        ('{"id": 7, "title": "a", "priority": 0, "blocked": true}', ("notes-7", "a", "open", 0, True)),
        ('{"id": "notes-7", "title": "a", "state": "In Progress"}', ("notes-7", "a", "doing", 2, False)),
        ('{"id": "7", "title": "a", "state": "awaiting review"}', ("notes-7", "a", "open", 2, True)),
        ('{"id": "7", "title": "a", "labels": ["priority: high"]}', ("notes-7", "a", "open", 1, False)),
        ('{"id": "7", "title": "a", "labels": ["3", "p4"], "priority": null}', ("notes-7", "a", "open", 4, False)),
        ('{"id": "7", "title": "fix\\n\\u001b[31mred\\u202e"}', ("notes-7", "fix [31mred", "open", 2, False)),
        ('{"id": "7", "title": "\\u0000"}', ("notes-7", "(no title)", "open", 2, False)),
    ],
)
def test_any_program_may_print_json_lines(line: str, expected: tuple[object, ...], programs: Programs) -> None:
    """Id and title suffice; strangers' titles are cleaned; a state that nobody knows is not offered."""
    programs.prints("notes", f'\n{line}\n{{"id": "8", "title": "over", "state": "Done"}}\n')
    assert told(programs.ask("notes")) == [expected]
    programs.prints("notes", f"[{line}]")
    assert told(programs.ask("notes")) == [expected]


def test_no_open_item_is_an_answer(programs: Programs) -> None:
    """Nothing printed, or an empty array, with exit code 0: there is nothing open."""
    for text in ("", "\n", "[]", '{"data": []}'):
        programs.prints("notes", text)
        assert programs.ask("notes") == trackers.Said()


# --- what cannot be read is unknown ---------------------------------------------------------------


BROKEN = {
    "half a line": ('{"id": "7", "title": "a"}\n{"id": "8", "ti', "not all of it"),
    "half an array": ('[{"id": "7", "title": "a"}, {"id": "8"', "not all of it"),
    "prose": ("No issues match your search\n", "no JSON"),
    "a raw control character": ('{"id": "7", "title": "a\x01b"}', "no JSON"),
    "an id with an escape": ('{"id": "\\u001b[2J7", "title": "a"}', "item 1: its id is empty"),
    "an id with a blank": ('{"id": "7 8", "title": "a"}', "item 1: its id"),
    "an empty id": ('{"id": "", "title": "a"}', "item 1: its id"),
    "an endless id": ('{"id": "' + "x" * 81 + '", "title": "a"}', "item 1: its id"),
    "no id": ('{"title": "a"}', "item 1: it has no id"),
    "a list as id": ('{"id": [7], "title": "a"}', "it has no id"),
    "true as id": ('{"id": true, "title": "a"}', "it has no id"),
    "an id of a thousand digits": ('{"id": ' + "9" * 1000 + ', "title": "a"}', "item 1: its id"),
    "no title": ('{"id": "6", "title": "a"}\n{"id": "7"}', "item 2: 7 has no title"),
    "a number as title": ('{"id": "7", "title": 5}', "7 has no title"),
    "one id twice": ('{"id": "7", "title": "a"}\n{"id": "notes-7", "title": "b"}', "it names notes-7 twice"),
    "a priority of 9": ('{"id": "7", "title": "a", "priority": 9}', "7 has an odd priority"),
    "a priority in words": ('{"id": "7", "title": "a", "priority": "high"}', "odd priority"),
    "true as priority": ('{"id": "7", "title": "a", "priority": true}', "odd priority"),
    "a time that is none": ('{"id": "7", "title": "a", "created": "yesterday"}', "odd creation time"),
    "a time before time": ('{"id": "7", "title": "a", "created": -5}', "odd creation time"),
    "a number as state": ('{"id": "7", "title": "a", "state": 1}', "odd state"),
    "a word for blocked": ('{"id": "7", "title": "a", "blocked": "no"}', "odd blocked"),
    "labels that are none": ('{"id": "7", "title": "a", "labels": [1]}', "odd labels"),
    "numbers": ("[1, 2]", "something else than objects"),
    "a bare word": ('"open"', "something else than objects"),
    "an error as JSON": ('{"error": "no database"}', "it has no id"),
    "too deep": ("[" * 100_000, "no JSON"),
    "too many": ("\n".join(f'{{"id": {n}, "title": "t"}}' for n in range(5_001)), "more than 5,000 items"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_an_answer_that_is_not_understood_whole_is_none(what: str, programs: Programs) -> None:
    """Not one item of it is believed, and why is said."""
    text, why = BROKEN[what]
    programs.prints("notes", text)
    said = programs.ask("notes")
    assert said.items == ()
    assert why in said.why


def test_a_hundred_thousand_items_are_too_much(programs: Programs) -> None:
    """More than four MiB is not even read to its end."""
    programs.write("notes", 'yes \'{"id": "7", "title": "a"}\'')
    assert programs.ask("notes").why == "notes prints more than 4 MiB"


def test_bytes_that_are_no_text_are_no_answer(programs: Programs) -> None:
    """UTF-8 or nothing."""
    programs.write("notes", r"""printf '{"id": "7", "title": "\377\376"}'""")
    assert programs.ask("notes").why == "its answer is no UTF-8"


@pytest.mark.parametrize(
    "script, why",
    [
        ("echo 'To get started, please run: gh auth login' >&2; exit 4", "gh ended with exit code 4: not logged in. Run: gh auth login"),
        ("echo 'some noise' >&2; printf '\\033[31merror connecting\\033[0m\\n' >&2; exit 1", "exit code 1: [31merror connecting [0m"),
        ("echo '[]'; exit 1", "gh ended with exit code 1: []"),
        ("kill -9 $$", "gh ended with exit code -9"),
    ],
)  # fmt: skip
def test_a_program_that_fails_is_not_believed(script: str, why: str, programs: Programs) -> None:
    """Whatever it has printed; its last complaint is passed on, cleaned."""
    programs.write("gh", script)
    said = programs.ask("gh")
    assert said.items == ()
    assert said.why.endswith(why)


def test_what_is_not_installed_or_not_there_is_said(programs: Programs) -> None:
    """No program, no rights, no checkout."""
    assert programs.ask("bd").why == "bd is not installed, or not on the PATH"
    assert programs.ask("notes", "./none").why == "./none is not installed, or not on the PATH"
    (programs.folder / "bad").write_text("no program", encoding="utf-8")
    (programs.folder / "bad").chmod(0o755)
    assert programs.ask("bad").why == "bad cannot be started: exec format error"
    programs.root.rmdir()
    assert programs.ask("gh").why == f"{programs.root} is not there any more"


def test_a_program_that_hangs_is_killed_with_all_its_children(programs: Programs) -> None:
    """At the time limit; nothing of it stays, and we do not wait for who holds its output open."""
    programs.write("notes", f'sleep 600 & echo $! >"{programs.folder}/child"; echo $$ >"{programs.folder}/self"; wait')
    before = time.monotonic()
    assert programs.ask("notes", limit=0.4).why == "notes did not answer within 0.4 s"
    assert time.monotonic() - before < 5
    for name in ("child", "self"):
        pid = int((programs.folder / name).read_text(encoding="utf-8"))
        assert not _lives(pid)
    programs.write("notes", f'sleep 600 & echo $! >"{programs.folder}/child"; echo "[]"')
    assert programs.ask("notes") == trackers.Said()
    assert not _lives(int((programs.folder / "child").read_text(encoding="utf-8")))


def _lives(pid: int) -> bool:
    for _ in range(100):  # init takes a moment to take an orphan off the table
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state in "ZX":
            return False
        time.sleep(0.01)
    return True


# --- what is kept -----------------------------------------------------------------------------------


def test_what_was_read_before_stays_but_counts_as_unknown(programs: Programs) -> None:
    """Failed: when and why, with what is stored; answered: all of it replaced, the failure gone."""
    store = MemoryStore()
    store.save_tracker(trackers.new_tracker("p", str(programs.root), "notes", ["notes"]))
    programs.prints("notes", '{"id": "7", "title": "a"}\n{"id": "8", "title": "b"}')
    (one,) = trackers.read_all(store, NINE, programs.env)
    assert (one.read_at, one.failed_at) == (NINE, None)
    programs.prints("notes", "oops")
    (one,) = trackers.read_all(store, NINE + 60, programs.env)
    assert (one.read_at, one.failed_at, one.why) == (NINE, NINE + 60, "its answer is no JSON, or not all of it")
    assert store.trackers("p") == [one]
    assert [item.id for item in store.tracked_items("p")] == ["notes-7", "notes-8"]
    programs.prints("notes", '{"id": "8", "title": "b"}\n{"id": "9", "title": "c"}')
    (one,) = trackers.read_all(store, NINE + 120, programs.env)
    assert (one.read_at, one.failed_at, one.why) == (NINE + 120, None, "")
    ages = {item.id: item.created_at for item in store.tracked_items("p")}
    assert ages == {"notes-8": NINE, "notes-9": NINE + 120}, "without a date an item is as old as our knowing of it"


def test_all_are_read_side_by_side_each_by_itself(programs: Programs) -> None:
    """One that hangs costs its own answer and no other's; without `keep` nothing is stored."""
    store = MemoryStore()
    programs.prints("good", '{"id": "7", "title": "a"}')
    programs.write("slow", "sleep 600")
    for project, name in (("p", "good"), ("p", "slow"), ("q", "slow"), ("q", "good")):
        store.save_tracker(trackers.new_tracker(project, str(programs.root), name, [name]))
    before = time.monotonic()
    assert all(
        one.read_at is None or one.why == ""
        for one in trackers.read_all(store, NINE, programs.env, limit=0.5, keep=False)
    )
    assert [one.read_at for one in store.trackers()] == [None] * 4
    read = trackers.read_all(store, NINE, programs.env, limit=0.5)
    assert time.monotonic() - before < 4
    assert [(one.project, one.name, one.failed_at is None) for one in read] == [
        ("p", "good", True), ("p", "slow", False), ("q", "good", True), ("q", "slow", False),
    ]  # fmt: skip
    assert [item.project for item in (*store.tracked_items("p"), *store.tracked_items("q"))] == ["p", "q"]


def test_a_tracker_taken_away_while_it_was_read_stays_away(programs: Programs, tmp_path: pathlib.Path) -> None:
    """The answer comes late and is dropped."""

    class Removed(MemoryStore):
        def transaction(self):  # type: ignore[no-untyped-def]
            if not self.in_transaction and self._trackers and (tmp_path / "asked").exists():
                (tmp_path / "asked").unlink()
                self.remove_tracker("p", "notes")
            return super().transaction()

    store = Removed()
    store.save_tracker(trackers.new_tracker("p", str(programs.root), "notes", ["notes"]))
    programs.write("notes", f'touch {tmp_path}/asked; echo \'[{{"id": 1, "title": "a"}}]\'')
    trackers.read_all(store, NINE, programs.env)
    assert store.trackers() == []
    assert store.tracked_items("p") == []


# --- the command --------------------------------------------------------------------------------------


@pytest.fixture
def person(tmp_path: pathlib.Path, programs: Programs) -> Person:
    person = Person(tmp_path)
    person.env["PATH"] = programs.env["PATH"]
    return person


def test_a_tracker_is_added_read_shown_and_taken_away(person: Person, programs: Programs) -> None:
    """What it says stands below the ledger, in the queue by priority and age, and under its id."""
    assert person.types("tracker") == 0
    assert "stopwarden tracker add gh" in person.said
    programs.prints("gh", json.dumps(ISSUES))
    assert person.types("tracker", "add", "gh", "--label", "night") == 0
    assert "--label night" in person.said
    assert "gh: 3 open, read at 23:05" in person.said
    person.types("add", "in between", "--priority", "1")
    assert person.types("list") == 0
    assert person.said.splitlines()[:2] == ["Ledger: 1 open", "    [ ] w1  in between   (priority 1)"]
    assert "    [ ] gh-8   Docs   (blocked there)" in person.said.splitlines()
    person.types("list", "--ready", "--json")
    assert [one["id"] for one in json.loads(person.said)["ready"]] == ["gh-7", "w1", "gh-42"]
    assert person.types("show", "GH-42") == 0
    assert "Parser hangs" in person.said
    assert person.types("tracker", "remove", "gh") == 0
    assert person.types("tracker", "remove", "gh") == 2
    person.types("tracker", "list", "--json")
    assert json.loads(person.said) == {"trackers": []}
    assert person.types("show", "gh-42") == 2


def test_added_again_with_other_labels_it_forgets_what_the_first_said(person: Person, programs: Programs) -> None:
    """Items that the new question would not have brought are not offered meanwhile."""
    programs.prints("gh", json.dumps(ISSUES))
    person.types("tracker", "add", "gh")
    programs.write("gh", "exit 1")
    assert person.types("tracker", "add", "gh", "--label", "night") == 1
    with person.store() as store:
        (one,) = store.trackers()
        assert (one.read_at, store.tracked_items(one.project)) == (None, [])


def test_a_tracker_that_cannot_be_read_is_exit_code_one_and_said_everywhere(person: Person, programs: Programs) -> None:
    """Why, what that means, and what is known from before."""
    programs.prints("gh", json.dumps(ISSUES))
    person.types("tracker", "add", "gh")
    programs.write("gh", "exit 4")
    person.now += 600
    assert person.types("tracker", "read") == 1
    assert "not logged in. Run: gh auth login" in person.said
    assert "what is open there is unknown; 3 open when it was last read, at 23:05" in person.said
    assert person.types("tracker", "read", "--json") == 1
    (one,) = json.loads(person.said)["trackers"]
    assert (one["known"], one["items"], one["read_at"]) == (False, 3, "2026-11-30T23:05:00Z")
    for words in (("list",), ("list", "--ready"), ("tracker",)):
        person.types(*words)
        assert "what is open there is unknown" in person.said, words


def test_leaving_reads_the_trackers_and_says_what_is_not_known(person: Person, programs: Programs) -> None:
    """Part of the go/no-go; a dry run reads and keeps nothing."""
    programs.prints("gh", json.dumps(ISSUES))
    programs.prints("notes", "oops")
    person.types("tracker", "add", "gh")
    person.types("tracker", "add", "notes", "--command", "notes")
    person.now += 600
    person.types("away", "for", "8h", "--dry-run")
    assert "tracker gh" in person.said
    with person.store() as store:
        assert [one.read_at for one in store.trackers()] == [person.now - 600, None]
    assert person.types("away", "for", "8h", "--json") == 0
    found = {one["subject"]: one for one in json.loads(person.said)["findings"]}
    assert (found["tracker gh"]["level"], found["tracker gh"]["text"]) == ("ok", "read now, 2 could be taken up")
    assert found["tracker notes"]["level"] == "warn"
    assert "cannot be read (its answer is no JSON, or not all of it)" in found["tracker notes"]["text"]
    with person.store() as store:
        assert [one.read_at for one in store.trackers()] == [person.now, None]


@pytest.mark.parametrize(
    "words, said",
    [
        (("tracker", "add"), "Which tracker"),
        (("tracker", "add", "jira"), "neither gh nor bd"),
        (("tracker", "add", "Bad Name", "--command", "x"), "no name for a tracker"),
        (("tracker", "add", "w", "--command", "x"), "no name for a tracker"),
        (("tracker", "add", "notes", "--command", "a 'b"), "cannot be read"),
        (("tracker", "add", "notes", "--command", ""), "empty"),
        (("tracker", "add", "notes", "--command", "x", "--label", "y"), "for gh and bd"),
        (("tracker", "read", "none"), "no tracker 'none'"),
        (("tracker", "read", "--timeout", "0"), "not allowed"),
        (("tracker", "read", "--timeout", "nan"), "not allowed"),
    ],
)
def test_wrong_words_name_no_tracker(words: tuple[str, ...], said: str, person: Person) -> None:
    """Exit code 2, nothing stored."""
    person.types("add", "x", "--ledger")
    assert person.types(*words) == 2
    assert said in person.complained
    with person.store() as store:
        assert store.trackers() == []


def test_an_agent_reads_trackers_and_names_none(person: Person, programs: Programs) -> None:
    """A program that it named would run later with the person's rights; taking one away takes work away."""
    programs.prints("gh", json.dumps(ISSUES))
    person.types("tracker", "add", "gh")
    person.env |= {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "mine"}
    assert person.types("tracker", "read") == 0
    assert person.types("tracker", "add", "x", "--command", "rm -rf /") == 2
    assert person.types("tracker", "remove", "gh") == 2
    with person.store() as store:
        assert [one.name for one in store.trackers()] == ["gh"]


def test_an_item_of_a_tracker_is_reserved_and_finished_here_and_the_tracker_stays_as_it_is(
    person: Person, programs: Programs
) -> None:
    """Two sessions, one issue: the second is refused and takes the next; done here, it is offered to nobody again."""
    programs.prints("gh", json.dumps(ISSUES))
    person.types("tracker", "add", "gh")
    assert person.types("start", "gh-7") == 2
    person.env["CLAUDE_CODE_SESSION_ID"] = "mine"
    assert person.types("start", "gh-7") == 0
    assert "token 1" in person.said
    person.env["CLAUDE_CODE_SESSION_ID"] = "other"
    assert person.types("start", "gh-7") == 3
    assert person.types("done", "gh-7") == 3
    person.types("list", "--ready", "--json")
    assert [one["id"] for one in json.loads(person.said)["ready"]] == ["gh-42"]
    person.env["CLAUDE_CODE_SESSION_ID"] = "mine"
    assert person.types("done", "gh-7") == 0
    assert "close it there" in person.said
    with person.store() as store:
        assert [item.id for item in store.tracked_items(store.trackers()[0].project)] == ["gh-7", "gh-8", "gh-42"]


def test_the_values_of_a_tracker_are_plain(programs: Programs) -> None:
    """What is stored is what was said: no shell is put around a command."""
    tracker = trackers.new_tracker("p", "/repo", "notes", ["sh", "-c", "echo $HOME"])
    assert tracker == Tracker(
        project="p", name="notes", kind="command", command=("sh", "-c", "echo $HOME"), root="/repo"
    )
    programs.prints("notes", '{"id": "$(x)", "title": "`reboot`"}')
    assert programs.ask("notes").items == (
        TrackedItem(project="p", tracker="notes", id="notes-$(x)", title="`reboot`"),
    )
