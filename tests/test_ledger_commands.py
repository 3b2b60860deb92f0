"""The ledger at the command line: two sessions and a person on one project, verify commands, and the same for lists."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from stopwarden.core.bounds import HOUR, LEASE_DEFAULT, MINUTE, TAKE_OVER_MARGIN
from stopwarden.store.port import LedgerItem, RecordLine
from stopwarden.work import checkout, reservations
from tests.support.person import Person

SOURCE = pathlib.Path(__file__).parent.parent / "src"


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Person:
    return Person(tmp_path)


def acts_as(person: Person, session: str) -> None:
    """From now on an agent types, in that session; "" the person."""
    for name in ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID"):
        person.env.pop(name, None)
    if session:
        person.env |= {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session}


def item(person: Person, number: int = 1) -> LedgerItem:
    with person.store() as store:
        found = store.ledger_item(number)
    assert found is not None
    return found


def held(person: Person, known: str = "w1", place: str = "") -> tuple[str, int, bool] | None:
    """Who has an item: session, token, and whether the hold is over."""
    with person.store() as store:
        row = store.reservation(place or checkout.project_key(person.root), known)
    return None if row is None else (row.session, row.token, row.released_at is not None)


# --- adding and showing -------------------------------------------------------------------------------


def test_the_ledger_needs_no_list_and_is_shown_below_the_lists(person: Person) -> None:
    """By `--ledger` or whatever only the ledger has; the list stays where it was."""
    assert person.types("add", "a") == 2
    assert 'stopwarden add "what to do" --ledger' in person.complained
    assert person.types("add", "write", "the", "lexer", "--ledger") == 0
    assert person.said == 'Added w1 "write the lexer" to the ledger, priority 2.\n'
    assert person.types("add", "parser", "--after", "w1", "--priority", "0", "--json") == 0
    assert json.loads(person.said)["id"] == "w2"
    person.types("add", "docs", "--priority", "4")
    assert person.types("list") == 0
    assert person.said.splitlines() == [
        "Ledger: 3 open",
        "    [ ] w1  write the lexer",
        "    [ ] w3  docs   (priority 4)",
        "    [ ] w2  parser   (priority 0; after w1)",
    ]
    assert person.types("list", "--ready") == 0
    assert person.said.splitlines() == ["  w1  write the lexer", "  w3  docs"]
    person.list("- [ ] on the list\n")
    person.types("add", "also")
    assert person.types("list") == 0
    assert person.said.startswith("TODO.md: 2 open\n")
    assert "\n\nLedger: 3 open\n" in person.said
    person.types("list", "--list", "TODO.md")
    assert "Ledger" not in person.said
    person.types("list", "--json")
    told = json.loads(person.said)
    assert (told["ready"], [one["blocked_by"] for one in told["ledger"]]) == (["w1", "w3"], [[], ["w1"], []])


def test_worktrees_share_a_ledger_and_other_folders_do_not(person: Person, tmp_path: pathlib.Path) -> None:
    """The project is the repository; from elsewhere the item is refused by name."""
    person.types("add", "a", "--ledger")
    tree = tmp_path / "tree"
    own = person.repo / ".git" / "worktrees" / "tree"
    own.mkdir(parents=True)
    tree.mkdir()
    (own / "HEAD").write_text("ref: refs/heads/x\n", encoding="utf-8")
    (own / "commondir").write_text("../..\n", encoding="utf-8")
    (tree / ".git").write_text(f"gitdir: {own}\n", encoding="utf-8")
    person.cwd = tree
    assert person.types("start", "w1") == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    person.cwd = elsewhere
    assert person.types("done", "w1") == 2
    assert f"w1 belongs to another project ({checkout.project_key(person.root)})" in person.complained
    assert person.types("list") == 2
    assert item(person).state == "doing"


def test_show_tells_everything_of_an_item(person: Person) -> None:
    """State, place in the queue, what it waits for and what waits for it, holder, command, its lines of the record."""
    person.types("add", "a", "--ledger")
    person.types("add", "b", "--after", "w1", "--verify", "exit 1")
    assert person.types("show", "w1") == 0
    assert "ready     number 1" in person.said
    assert "before    w2" in person.said
    acts_as(person, "7e15aaaa")
    person.types("start", "w1", "--lease", "30m")
    with person.store() as store:
        store.append([RecordLine(at=person.now, kind="item_done", session="7e15aaaa", item="w1", text="so\x1b[2J")])
    person.types("show", "w1")
    assert "held by this session until 23:35" in person.said
    assert "in the away record:\n    23:05 item done session 7e15aaaa: so" in person.said
    person.types("done", "w1")
    person.types("done", "w2")
    person.types("show", "w2")
    for line in (
        "after     w1 (done)",
        "verify    exit 1",
        "verified  failed when it was last run",
        "added     23:05 by you",
    ):
        assert line in person.said
    person.types("show", "w2", "--json")
    told = json.loads(person.said)
    assert (told["after"], told["ready"], told["held"], told["verify"]) == (["w1"], 1, None, "exit 1")
    assert person.types("show", "w9") == 2


def test_show_tells_of_an_item_on_a_list(person: Person) -> None:
    """Where it stands and who holds it."""
    person.list("- [ ] write tests\n")
    assert person.types("show", "write") == 0
    assert "where     TODO.md:1" in person.said
    assert not pathlib.Path(person.state_dir).exists()
    acts_as(person, "7e15aaaa")
    person.types("start", "write")
    acts_as(person, "")
    person.types("show", "write")
    assert "held      by 7e15aaaa until Tue 01:05" in person.said
    person.types("show", "write", "--json")
    told = json.loads(person.said)
    assert (told["state"], told["held"]["session"]) == ("doing", "7e15aaaa")


@pytest.mark.parametrize(
    "words, said",
    [
        (("add", "x", "--ledger", "--list", "TODO.md"), "Leave one of them out"),
        (("add", "x", "--after", "a3f"), "'a3f' is no id of the ledger"),
        (("add", "x", "--after", "w9"), "no w9"),
        (("add", "x", "--priority", "7"), "no priority 7"),
        (("start", "w9"), "no w9"),
        (("start", "w1", "--lease", "10s"), "10 s is not allowed"),
        (("start", "w1", "--lease", "25h"), "not allowed"),
        (("done", "w1", "--timeout", "7h"), "not waited for"),
        (("change", "w1"), "Nothing to change"),
        (("change", "a3f", "--open"), "no id of the ledger"),
        (("change", "w1", "--title", "\n"), "no words"),
        (("change", "w1", "--after", "w2"), "w1 after w2 after w1"),
        (("start", "w2"), "w2 comes after w1 (open)"),
        (("list", "--ready", "--list", "TODO.md"), "Leave --list out"),
    ],
)
def test_wrong_words_change_nothing(words: tuple[str, ...], said: str, person: Person) -> None:
    """Exit code 2 and what would be right."""
    person.types("add", "a", "--ledger")
    person.types("add", "b", "--after", "w1")
    with person.store() as store:
        before = store.ledger_items()
    assert person.types(*words) == 2
    assert said in person.complained
    with person.store() as store:
        assert store.ledger_items() == before


def test_hostile_titles_reach_no_terminal(person: Person) -> None:
    """Also from a database that somebody else wrote into."""
    person.types("add", "fix\x1b[2J\u202eit\nnow", "--ledger")
    with person.store() as store:
        store.add_ledger_item(
            LedgerItem(
                project=checkout.project_key(person.root), title="\x1b[31m" + "y" * 50_000, created_at=person.now
            )
        )
    for words in (("list",), ("list", "--ready"), ("show", "w1"), ("show", "w2"), ("start", "w2")):
        assert person.types(*words) == 0
        assert "\x1b" not in person.said
        assert "\u202e" not in person.said
        assert max(map(len, person.said.splitlines())) < 330


# --- two sessions and a person ------------------------------------------------------------------------


def test_two_sessions_never_work_on_one_item(person: Person) -> None:
    """The second is told who and until when with exit code 3, by every command that writes; then it takes other work."""
    person.types("add", "a", "--ledger")
    person.types("add", "b", "--ledger")
    acts_as(person, "7e15aaaa")
    assert person.types("start", "w1") == 0
    assert "until Tue 01:05 Europe/London, token 1" in person.said
    assert pathlib.Path(reservations.sign_path(person.state_dir, "7e15aaaa")).exists()
    before = item(person)
    acts_as(person, "9b22bbbb")
    for words in (
        ("start", "w1"),
        ("done", "w1"),
        ("wait", "w1", "--for", "external", "--why", "x"),
        ("change", "w1", "--open"),
    ):
        assert person.types(*words) == 3, words
        assert "held by 7e15aaaa until Tue 01:05" in person.complained
    assert item(person) == before
    person.types("list", "--ready")
    assert person.said == "  w2  b\n"
    acts_as(person, "")
    assert person.types("start", "w1") == 3
    assert person.types("done", "w1") == 0
    assert held(person) == ("7e15aaaa", 1, True)
    assert not pathlib.Path(reservations.sign_path(person.state_dir, "7e15aaaa")).exists()
    acts_as(person, "7e15aaaa")
    assert person.types("wait", "w1", "--for", "person", "--why", "x") == 2


def test_a_hold_that_ran_out_finishes_nothing(person: Person) -> None:
    """Exit code 2, with what to do; taken up again it is another token, and the old one is refused."""
    person.types("add", "a", "--ledger")
    acts_as(person, "7e15aaaa")
    person.types("start", "w1")
    person.now += LEASE_DEFAULT
    assert person.types("done", "w1") == 2
    assert 'Your hold on w1 "a" lapsed at 01:05' in person.complained
    assert item(person).state == "doing"
    assert person.types("start", "w1") == 0
    assert person.types("done", "w1", "--token", "1") == 2
    assert person.types("done", "w1", "--token", "2") == 0
    assert (item(person).state, item(person).done_by) == ("done", "7e15aaaa")
    assert person.types("done", "w1") == 0
    assert person.said.startswith("Was done already")


@pytest.mark.case("BR-163")
def test_what_a_dead_session_has_begun_is_said_and_may_be_taken_up(person: Person) -> None:
    """Its hold ran out: who began it is named, it is first in the queue, and another session starts it."""
    person.types("add", "a", "--ledger")
    person.types("add", "urgent", "--priority", "0")
    acts_as(person, "7e15aaaa")
    person.types("start", "w1")
    person.now += LEASE_DEFAULT + TAKE_OVER_MARGIN
    acts_as(person, "9b22bbbb")
    person.types("list")
    assert "[/] w1  a   (begun by session 7e15aaaa, held by nobody now: start takes it up)" in person.said
    person.types("list", "--ready")
    assert person.said.splitlines() == ["  w1  a", "  w2  urgent"]
    assert person.types("start", "w1") == 0
    assert held(person) == ("9b22bbbb", 2, False)
    assert item(person).assigned == "9b22bbbb"


def test_a_refusal_is_json_too(person: Person) -> None:
    """Whoever asked for JSON gets who has it and until when, with the same exit code."""
    person.types("add", "a", "--ledger")
    person.list("- [ ] write tests\n")
    acts_as(person, "7e15aaaa")
    person.types("start", "w1")
    person.types("start", "write")
    acts_as(person, "9b22bbbb")
    for words in (("start", "w1"), ("done", "w1"), ("start", "write"), ("done", "write")):
        assert person.types(*words, "--json") == 3
        told = json.loads(person.said)
        assert (told["done"], told["why"], told["by"][0]["session"], told["until"]) == (
            False, "held", "7e15aaaa", "2026-12-01T01:05:00Z",
        )  # fmt: skip


def test_a_large_ledger_is_shown_by_its_head(person: Person) -> None:
    """What is next and a hundred lines; `--all` has everything."""
    with person.store() as store, store.transaction():
        project = checkout.project_key(person.root)
        for number in range(150):
            store.add_ledger_item(LedgerItem(project=project, title=f"item {number}", created_at=person.now))
    person.types("list")
    assert len(person.said.splitlines()) == 102
    assert person.said.splitlines()[-1] == "  50 more are not over: --all shows them."
    person.types("list", "--all")
    assert len(person.said.splitlines()) == 151


def test_only_the_person_drops(person: Person) -> None:
    """An agent that could drop work would be done at once; allowed by the person, it may."""
    person.types("add", "a", "--ledger")
    person.list("- [ ] write tests\n- [ ] more\n")
    acts_as(person, "7e15aaaa")
    for what in ("w1", "write"):
        assert person.types("drop", what) == 2
        assert "Only the person may drop work" in person.complained
    acts_as(person, "")
    assert person.types("drop", "w1", "--why", "done upstream") == 0
    assert person.types("drop", "w1") == 0
    assert "Was dropped already" in person.said
    assert person.types("drop", "write") == 0
    assert (person.repo / "TODO.md").read_text(encoding="utf-8").splitlines()[0] == "- [-] write tests"
    person.types("on", "--agents-may-end", "yes")
    acts_as(person, "7e15aaaa")
    assert person.types("drop", "more") == 0


def test_an_agent_says_why_a_ledger_item_waits(person: Person) -> None:
    """On a person, on another session or on something external; begun again it waits no more."""
    person.types("add", "a", "--ledger")
    acts_as(person, "7e15aaaa")
    assert person.types("wait", "w1", "--for", "session") == 2
    assert person.types("wait", "w1", "--for", "session", "--why", "schema\nfirst") == 0
    assert (item(person).state, item(person).waits_on, item(person).why) == ("waiting", "session", "schema first")
    person.types("list")
    assert "[?] w1  a   (waits for another session: schema first)" in person.said
    assert person.types("start", "w1", "--json") == 0
    told = json.loads(person.said)
    assert (told["state"], told["waits_on"], told["held"]["token"]) == ("doing", None, 1)


def test_opened_again_it_is_offered_again(person: Person) -> None:
    """Done by mistake, dropped, or waiting: open, with its age."""
    person.types("add", "a", "--ledger")
    person.types("done", "w1")
    assert person.types("start", "w1") == 2
    assert "stopwarden change w1 --open" in person.complained
    assert person.types("change", "w1", "--open", "--priority", "0", "--title", "b") == 0
    assert person.said == 'Changed: w1 "b", open, priority 0\n'
    person.types("list", "--ready")
    assert person.said == "  w1  b\n"


# --- verify -------------------------------------------------------------------------------------------


@pytest.mark.case("BR-022")
def test_done_is_what_the_command_says(person: Person) -> None:
    """It runs in the checkout's root through a shell; failing, the item stays owed and its last lines are shown."""
    (person.repo / "src").mkdir()
    person.types("add", "a", "--verify", "echo checking; test -f ready && pwd >where")
    person.cwd = person.repo / "src"
    acts_as(person, "7e15aaaa")
    person.types("start", "w1")
    assert person.types("done", "w1") == 1
    assert "  | checking\n" in person.said
    assert "its command failed (exit code 1). It stays doing." in person.said
    assert (item(person).state, item(person).verified_at) == ("doing", None)
    assert held(person) == ("7e15aaaa", 1, False)
    (person.repo / "ready").touch()
    person.now += MINUTE
    assert person.types("done", "w1") == 0
    assert person.said.endswith('Done, verified: w1 "a"\n')
    assert (person.repo / "where").read_text(encoding="utf-8") == f"{person.root}\n"
    assert (item(person).state, item(person).verified_at) == ("done", person.now)
    assert held(person) == ("7e15aaaa", 1, True)


@pytest.mark.case("BR-002")
def test_failing_the_same_way_twice_is_said_so_that_nobody_tries_for_ever(person: Person) -> None:
    """Same exit code and same output, times apart: change something, or mark it waiting. Another failure is news."""
    person.types("add", "a", "--verify", 'cat out; exit "$(cat code)"')
    (person.repo / "out").write_text("2 failed in 0.12s at 0x7f00\n", encoding="utf-8")
    (person.repo / "code").write_text("2", encoding="utf-8")
    acts_as(person, "7e15aaaa")

    def fails() -> bool:
        assert person.types("done", "w1", "--json") == 1
        told = json.loads(person.said)
        assert told["done"] is False
        return bool(told["same_failure"])

    assert fails() is False
    (person.repo / "out").write_text("2 failed in 3.40s at 0x7fff\n", encoding="utf-8")
    assert fails() is True
    person.types("done", "w1")
    assert "It failed the same way twice." in person.said
    assert "stopwarden wait w1 --for person" in person.said
    (person.repo / "out").write_text("1 failed in 3.40s at 0x7fff\n", encoding="utf-8")
    assert fails() is False
    (person.repo / "code").write_text("3", encoding="utf-8")
    assert fails() is False
    assert fails() is True


def test_a_command_that_hangs_is_killed_with_its_children(person: Person) -> None:
    """At the time limit; that is a failure like any other. (The limit is a minute at least: here it is cut short.)"""
    from stopwarden.cli import verify

    script = f"sleep 600 & echo $! >{person.repo}/child; echo begun; wait"
    outcome = verify.verify(script, item="w1", root=person.root, env=person.env, limit=1)
    assert (outcome.passed, outcome.how, outcome.tail) == (False, "still running after 1 s", "begun")
    assert not _lives(int((person.repo / "child").read_text(encoding="utf-8")))
    quick = verify.verify(
        "yes | head -c 3000000; printf '\\033[2Jlast'", item="w1", root=person.root, env=person.env, limit=60
    )
    assert quick.passed
    assert quick.tail.endswith("last")
    assert "\x1b" not in quick.tail
    assert len(quick.tail) < 100
    gone = verify.verify("true", item="w1", root="/none", env=person.env)
    assert (gone.passed, gone.how) == (False, "could not be started: /none is not there")
    assert verify.verify("kill -9 $$", item="w1", root=person.root, env=person.env).how == "killed by signal 9"


def _lives(pid: int) -> bool:
    for _ in range(100):
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state in "ZX":
            return False
        time.sleep(0.01)
    return True


class Sleeper(Person):
    """Somebody for whom a lease goes by as soon as a file `later` is there."""

    @property
    def now(self) -> int:  # type: ignore[override]
        return self._now + (LEASE_DEFAULT if (self.repo / "later").exists() else 0)

    @now.setter
    def now(self, now: int) -> None:
        self._now = now


@pytest.mark.parametrize("command, end", [("touch later", "passed"), ("touch later; false", "failed (exit code 1)")])
def test_a_hold_that_ran_out_while_the_command_ran_writes_nothing(
    command: str, end: str, tmp_path: pathlib.Path
) -> None:
    """The fence is asked again after it: neither a pass nor a failure is stored, and how the command ended is said."""
    sleeper = Sleeper(tmp_path)
    sleeper.types("add", "a", "--verify", command)
    acts_as(sleeper, "7e15aaaa")
    sleeper.types("start", "w1")
    before = item(sleeper)
    assert sleeper.types("done", "w1") == 2
    assert f"The command {end}." in sleeper.said
    assert "lapsed" in sleeper.complained
    assert item(sleeper) == before


def test_only_the_person_finishes_without_the_command(person: Person) -> None:
    """And it is shown as not verified."""
    person.types("add", "a", "--verify", "touch ran; exit 1")
    acts_as(person, "7e15aaaa")
    assert person.types("done", "w1", "--unverified") == 2
    assert "Only the person may finish w1 without its verify command" in person.complained
    acts_as(person, "")
    assert person.types("done", "w1", "--unverified") == 0
    assert person.said == 'Done, not verified: w1 "a"\n'
    assert not (person.repo / "ran").exists()
    person.types("list", "--all")
    assert "[x] w1  a   (not verified)" in person.said


def test_a_command_that_a_session_wrote_is_shown_to_the_person_before_it_runs(person: Person) -> None:
    """At the person's terminal it may do more than the session may; the session itself just runs it."""
    acts_as(person, "7e15aaaa")
    person.types("add", "a", "--verify", "touch ran")
    acts_as(person, "")
    assert person.types("done", "w1") == 2
    assert "A session wrote this command: touch ran" in person.said
    assert not (person.repo / "ran").exists()
    assert person.types("done", "w1", "--yes") == 0
    assert (person.repo / "ran").exists()
    acts_as(person, "7e15aaaa")
    person.types("add", "b", "--verify", "touch also")
    assert person.types("done", "w2") == 0


def test_a_command_does_not_verify_itself(person: Person) -> None:
    """`stopwarden done w1` as the verify command of w1 would run for ever."""
    command = f"PYTHONPATH={SOURCE} {sys.executable} -m stopwarden done w1"
    person.types("add", "a", "--verify", command)
    acts_as(person, "7e15aaaa")
    assert person.types("done", "w1") == 1
    assert "from within" in person.said


def test_a_verify_command_ends_with_the_command_that_runs_it(person: Person) -> None:
    """Told to end, `done` ends what it has started and leaves the item as it was."""
    person.types("add", "a", "--verify", f"echo $$ >{person.repo}/pid; sleep 600")
    env = {**person.env, "PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen([sys.executable, "-m", "stopwarden", "done", "w1"], cwd=person.repo, env=env)
    for _ in range(1000):
        if (person.repo / "pid").exists() and (person.repo / "pid").read_text(encoding="utf-8").strip():
            break
        time.sleep(0.01)
    pid = int((person.repo / "pid").read_text(encoding="utf-8"))
    assert _lives(os.getpid())
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    assert not _lives(pid)
    assert item(person).state == "open"


# --- the same for lists -------------------------------------------------------------------------------


def test_items_of_a_list_are_held_too(person: Person) -> None:
    """Begun in a session: marked and reserved; another session writes nothing to it; ticked, the hold ends."""
    todo = pathlib.Path(person.list("- [ ] write tests\n- [ ] write docs\n"))
    _, place = checkout.place_of_list(str(todo))
    acts_as(person, "7e15aaaa")
    assert person.types("start", "write t", "--json") == 0
    told = json.loads(person.said)
    known = told["id"]
    assert (told["state"], told["held"]["token"]) == ("doing", 1)
    assert todo.read_text(encoding="utf-8") == "- [/] write tests\n- [ ] write docs\n"
    assert held(person, known, place) == ("7e15aaaa", 1, False)
    acts_as(person, "9b22bbbb")
    before = todo.read_text(encoding="utf-8")
    for words in (("start", known), ("done", known), ("wait", known, "--for", "person", "--why", "x")):
        assert person.types(*words) == 3, words
        assert todo.read_text(encoding="utf-8") == before
    acts_as(person, "")
    assert person.types("start", known) == 3
    acts_as(person, "7e15aaaa")
    assert person.types("done", known, "--token", "2") == 2
    assert person.types("done", known, "--token", "1") == 0
    assert todo.read_text(encoding="utf-8").startswith("- [x] write tests\n")
    assert held(person, known, place) == ("7e15aaaa", 1, True)
    assert person.types("start", known) == 2


def test_a_hold_on_an_item_of_a_list_that_ran_out_ticks_nothing(person: Person) -> None:
    """The file stays as it was, whether or not another came since."""
    todo = pathlib.Path(person.list("- [ ] write tests\n"))
    acts_as(person, "7e15aaaa")
    person.types("start", "write", "--lease", "1h")
    person.now += HOUR
    for _ in range(2):
        assert person.types("done", "write") in (2, 3)
        assert todo.read_text(encoding="utf-8") == "- [/] write tests\n"
        person.now += TAKE_OVER_MARGIN
        acts_as(person, "9b22bbbb")
        person.types("start", "write")
        acts_as(person, "7e15aaaa")


def test_the_person_starts_without_reserving_or_storing_anything(person: Person) -> None:
    """On a list that nobody holds: the box, and no database."""
    todo = pathlib.Path(person.list("- [ ] write tests\n"))
    assert person.types("start", "write") == 0
    assert todo.read_text(encoding="utf-8") == "- [/] write tests\n"
    assert person.types("done", "write") == 0
    assert not pathlib.Path(person.state_dir).exists()
    assert person.types("done", "write", "--token", "1") == 0  # done already: nothing is written
    assert person.types("wait", "write", "--for", "person") == 2


def test_an_edit_that_fails_reserves_nothing(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list cannot be written: the hold that was to go with it is not there either, nor its sign."""
    person.list("- [ ] write tests\n")
    acts_as(person, "7e15aaaa")
    with person.store():
        pass
    real = os.fsync

    def full(descriptor: int) -> None:
        if "TODO" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    assert person.types("start", "write") == 4
    monkeypatch.undo()
    with person.store() as store:
        assert store.reservations(released=True) == []
    assert not pathlib.Path(reservations.sign_path(person.state_dir, "7e15aaaa")).exists()


def test_with_a_broken_database_a_session_writes_nothing_and_the_person_goes_on(person: Person) -> None:
    """Whether a hold was lost cannot be told then; the person's own file is theirs."""
    todo = pathlib.Path(person.list("- [ ] write tests\n"))
    person.types("add", "a", "--ledger")
    database = pathlib.Path(person.state_dir) / "stopwarden.db"
    database.unlink()
    database.mkdir()
    acts_as(person, "7e15aaaa")
    assert person.types("done", "write") == 4
    assert todo.read_text(encoding="utf-8") == "- [ ] write tests\n"
    acts_as(person, "")
    assert person.types("done", "write") == 0
    assert "without what is stored about it" in person.complained
    assert todo.read_text(encoding="utf-8") == "- [x] write tests\n"
    assert person.types("list") == 0


@pytest.mark.parametrize("command", ["add", "start", "done", "wait", "drop", "change", "show", "list", "tracker"])
def test_every_command_says_its_exit_codes_with_an_example(
    command: str, person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--help`, in lines that fit."""
    assert person.types(command, "--help") == 0
    said = capsys.readouterr().out
    assert f"  stopwarden {command}" in said
    assert "exit codes: 0" in said
    assert "--json" in said
