"""`watch` tells of stalled sessions, each once; resumes one only by a proven command and never beside an open program."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pathlib
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from stopwarden import machine, wire
from stopwarden.cli import resuming, watch
from stopwarden.cli.context import Context
from stopwarden.cli.main import COMMANDS
from stopwarden.cli.resuming import Process
from stopwarden.core.bounds import HOUR, MINUTE, Policy
from stopwarden.core.errors import StopwardenError
from stopwarden.core.events import Reservation
from stopwarden.hook import declared
from stopwarden.hook.declared import WATCH
from stopwarden.store.port import KeeperRow, RecordLine, VerdictRow
from tests.conftest import at
from tests.support.night import HookNight
from tests.support.person import Person

NINE = at("2026-11-30 21:00")
LATE = at("2026-11-30 23:05")
MORNING = at("2026-12-01 07:30")
ONE = "7e15aaaa-0000-4000-8000-000000000001"
TWO = "8f26bbbb-0000-4000-8000-000000000002"
RESUME = "agent -p --resume {session} {prompt}"


class Watched(Person):
    """A person who is away since 21:00 with a list of two items, and watches at 23:05."""

    def __init__(self, tmp_path: pathlib.Path) -> None:
        super().__init__(tmp_path)
        self.installs()
        self.now = NINE
        self.todo = self.list("- [ ] A\n- [ ] B\n")
        self.away_since(id="n1", until=MORNING, lists=(self.todo,), also_scripts=True)
        self.now = LATE
        self.meanwhile: dict[int, Callable[[], object]] = {}

    def watches(self, *words: str, rounds: int = 1) -> int:
        """Looks so many times, then Ctrl-C. What it told is in `said`."""
        self.naps, self.interrupt_after = [], rounds
        return self.types("watch", *words)

    def watches_with(self, start: Callable[..., Process], *words: str, rounds: int = 1) -> int:
        """The same, with something else that starts programs."""
        self.naps, self.interrupt_after = [], rounds
        out, err = io.StringIO(), io.StringIO()
        context = Context(
            env=self.env,
            cwd=str(self.cwd),
            now=lambda: self.now,
            zone=self.zone,
            out=out,
            err=err,
            sleep=self._sleep,
            system=str(self.system),
        )
        parser = argparse.ArgumentParser()
        watch.configure(parser)
        try:
            code = watch.Watching(parser.parse_args(words), context, start).run()
        except StopwardenError as error:
            err.write(str(error))
            code = error.exit_code
        self.said, self.complained = out.getvalue(), err.getvalue()
        return code

    def told(self) -> list[dict[str, Any]]:
        """The stalls of the last `--json`."""
        return [one for one in map(json.loads, self.said.splitlines()) if one["kind"] != "note"]

    def notes(self) -> list[str]:
        """What else the last `--json` said."""
        return [one["text"] for one in map(json.loads, self.said.splitlines()) if one["kind"] == "note"]

    def looks(self) -> list[str]:
        """The kinds that one look finds new."""
        self.watches("--once", "--json")
        return [one["kind"] for one in self.told()]

    def record(self, kind: str = "stall") -> list[RecordLine]:
        """The away record's lines of that kind."""
        with self.store() as store:
            return [line for line in store.lines() if line.kind == kind]

    def _sleep(self, seconds: float) -> None:
        super()._sleep(seconds)
        for when in sorted(self.meanwhile):
            if self.now >= when:
                self.meanwhile.pop(when)()

    def waits(self, session: str = ONE, look: str = "2026-11-30 22:30", **fields: Any) -> None:
        """A session that was allowed to wait at 22:00."""
        when, then = at("2026-11-30 22:00"), at(look)
        with self.store() as store:
            number = store.append_verdict(VerdictRow(at=when, session=session, period="n1", kind="waiting"))
        row = self.session(session, last_event="stop", last_event_at=when, last_verdict=number, **fields)
        self.save(row, period="n1", next_look=then, next_look_latest=then)

    def closed(self, session: str = ONE, when: int = LATE - 600, **fields: Any) -> None:
        """A session that was closed with work owed."""
        made = {"last_event": "session-end", "last_event_at": when, "ended_at": when, "ended_why": "other"}
        self.save(self.session(session, **{**made, **fields}))


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Watched:
    """Away since 21:00, hooks installed."""
    return Watched(tmp_path)


# --- what is a stall -----------------------------------------------------------------------------


def test_a_session_at_work_or_waiting_in_time_is_none(person: Watched) -> None:
    """Nothing is told and nothing recorded; exit code 0."""
    person.save(person.session(ONE), period="n1")
    person.waits(TWO, look="2026-11-30 23:40")
    assert person.watches("--once") == 0
    assert person.said == "23:05  Nothing has stalled.\n"
    assert person.record() == []


@pytest.mark.case("BR-167")
def test_a_missed_look_is_told_with_what_to_do(person: Watched, tmp_path: pathlib.Path) -> None:
    """Seeing it is not enough: `status` says stalled and ends with 1, the watch tells it and runs the person's command."""
    person.waits()
    told = script(tmp_path / "told", f'echo "$STOPWARDEN_KIND $STOPWARDEN_SESSION" > {tmp_path}/heard')
    assert person.types("status") == 1
    assert "stalled" in person.said
    assert person.watches("--once", "--run", told) == 1
    assert "7e15  Was to look at 22:30, and nothing came since 22:00. Open it and type: continue." in person.said
    assert (tmp_path / "heard").read_text() == f"missed_look {ONE}\n"
    assert [(line.session, line.text) for line in person.record()] == [
        (ONE, f"missed_look; {at('2026-11-30 22:30')}; ")
    ]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"last_event_at": LATE - 31 * MINUTE}, "silent"),
        ({"waits_on_person": "permission", "waits_since": LATE - 60, "last_event": "notification"}, "permission"),
        ({"waits_on_person": "question", "waits_since": LATE - 60, "last_event": "notification"}, "question"),
        ({"last_event": "notification", "idle_since": LATE - 60, "chain_started_at": 0}, "idle"),
        (
            {"last_event": "stop-failure", "last_event_at": LATE - 70, "error": "overloaded", "error_at": LATE - 70},
            "error",
        ),
        (
            {"last_event": "session-end", "last_event_at": LATE - 60, "ended_at": LATE - 60, "ended_why": "other"},
            "closed",
        ),
    ],
)
def test_each_way_of_not_going_on_is_told_apart(person: Watched, fields: dict[str, Any], kind: str) -> None:
    """Nothing heard for half an hour, a dialog, idle without a wake, an error past its back-off, a closed program."""
    person.save(person.session(ONE, **fields), period="n1")
    assert person.looks() == [kind]
    assert [line.text.split(";")[0] for line in person.record()] == [kind]


def test_an_error_may_pass_until_its_back_off_is_over(person: Watched) -> None:
    """The first minute, then five, fifteen, thirty; with a limit that ends at a time, ten minutes past that."""
    failed = {"last_event": "stop-failure", "error": "overloaded"}
    person.save(person.session(ONE, **failed, last_event_at=LATE - 59, error_at=LATE - 59))
    person.save(person.session(TWO, **failed, last_event_at=LATE - 120, error_at=LATE - 120, errors_in_a_row=2))
    assert person.looks() == []
    limit = {"error_resets_at": LATE + 60}
    person.save(person.session(ONE, **failed, last_event_at=LATE - 900, error_at=LATE - 900, **limit))
    assert person.looks() == []
    person.now = LATE + 60 + 10 * MINUTE + 1
    assert sorted(person.looks()) == ["error", "error"]


def test_an_error_that_only_the_person_mends_is_told_at_once_and_never_resumed(person: Watched) -> None:
    """A refused login passes by no back-off."""
    person.save(
        person.session(
            ONE, last_event="stop-failure", last_event_at=LATE - 5, error="authentication_failed", error_at=LATE - 5
        )
    )
    starts = Starts(person)
    starts.watch("--once")
    assert "Log in again there" in person.said
    assert starts.argvs == []


def test_a_keeper_that_is_gone_is_told_while_its_session_waits(tmp_path: pathlib.Path) -> None:
    """The wait is still in time, but nobody would notice if the look did not come; with the keeper alive, nothing."""
    person = Watched(tmp_path)
    with person.store() as store:
        store.end_period("n1", LATE, "back")
    person.away_since(Policy(keeper=True), id="n2", since=NINE, until=MORNING, lists=(person.todo,))
    with person.store() as store:
        number = store.append_verdict(VerdictRow(at=LATE - 600, session=ONE, period="n2", kind="waiting"))
    person.save(
        person.session(ONE, last_event="stop", last_event_at=LATE - 600, last_verdict=number),
        period="n2",
        next_look=LATE + 600,
        next_look_latest=LATE + 600,
    )
    alive = KeeperRow(session=ONE, pid=os.getpid(), started=str(machine.started_ticks()), generation=1, at=LATE - 600)
    with person.store() as store:
        store.save_keeper(alive)
    assert person.looks() == []
    with person.store() as store:
        store.save_keeper(alive.replace(started="12345", generation=2))
    assert person.looks() == ["keeper_gone"]


@pytest.mark.case("A143", "BR-164")
def test_two_sessions_and_one_has_stalled_with_a_hold_the_record_shows_why(person: Watched) -> None:
    """The dead one's lapsed hold is told by item and session, and written down; its neighbour is at work and untouched."""
    person.save(person.session(ONE, last_event_at=LATE - 2 * HOUR), period="n1")
    person.save(person.session(TWO), period="n1")
    before = pathlib.Path(person.todo).read_bytes()
    hold(person, "w3", ONE, claimed_at=LATE - 2 * HOUR - 60, title="the lexer")
    with person.store() as store:
        untouched = (store.session(TWO), store.state(TWO), store.reservation("/p", "w3"))
    person.types("status")
    assert 'w3 "the lexer": the hold of 7e15 lapsed at 23:04.' in person.said
    assert sorted(person.looks()) == ["lost_hold", "silent"]
    assert [(line.session, line.text.split(";")[0], line.text.rpartition("; ")[2]) for line in person.record()] == [
        (ONE, "silent", ""),
        (ONE, "lost_hold", "the lexer"),
    ]
    with person.store() as store:
        assert (store.session(TWO), store.state(TWO), store.reservation("/p", "w3")) == untouched
    assert pathlib.Path(person.todo).read_bytes() == before


def test_a_hold_that_went_to_another_is_told_and_one_that_was_given_back_is_not(person: Watched) -> None:
    """Taken over: told with who has it now. Released, finished, or still live: nothing."""
    person.save(person.session(ONE), period="n1")
    hold(person, "w1", ONE, claimed_at=LATE - 60)
    hold(person, "w2", ONE, claimed_at=LATE - 3 * HOUR, released_at=LATE - 3 * HOUR)
    hold(person, "w4", ONE, claimed_at=LATE - 3 * HOUR, terminal=True)
    assert person.looks() == []
    hold(person, "w3", TWO, claimed_at=LATE - 60, taken_from=ONE, granted_at=LATE - 60)
    person.watches("--once")
    assert "Its hold on w3 went to session 8f26bbbb at 23:04" in person.said


def test_a_silent_session_that_holds_something_says_what_it_keeps_from_others(person: Watched) -> None:
    """The item and until when."""
    person.save(person.session(ONE, last_event_at=LATE - 40 * MINUTE), period="n1")
    hold(person, "w1", ONE, claimed_at=LATE - 40 * MINUTE, title="the lexer")
    person.watches("--once")
    assert "It holds the lexer until Tue 00:25." in person.said


@pytest.mark.case("A141")
def test_an_overdue_promise_is_told_once_and_one_line_whoever_saw_it_first(person: Watched) -> None:
    """Recorded by a stop already or not: the person hears of it once, the record holds one line, the list no other byte."""
    person.list("- [ ] A\n- promise 22:00: merge\n")
    before = pathlib.Path(person.todo).read_bytes()
    person.watches("--once")
    assert 'The promise "merge" was not kept by 22:00.' in person.said
    assert person.looks() == []
    assert [line.text.split(";")[0] for line in person.record()] == ["empty_promise"]
    assert pathlib.Path(person.todo).read_bytes() == before


def test_sessions_that_nobody_is_away_for_are_not_watched(person: Watched) -> None:
    """Another checkout, an ended period, a switched-off session: silence."""
    person.waits(root="/elsewhere", copy="c9")
    assert person.looks() == []
    person.waits()
    with person.store() as store:
        store.save_fact("mode", ONE, "off")
    assert person.looks() == []
    with person.store() as store:
        store.save_fact("mode", ONE, "on")
        store.end_period("n1", LATE, "back")
    assert person.watches("--once") == 0
    assert "You are here" in person.said


# --- once each -----------------------------------------------------------------------------------


def test_a_stall_is_told_once_however_long_it_lasts_and_again_when_it_comes_again(person: Watched) -> None:
    """Five looks tell it once; the session goes on and misses another look: told again. A restart repeats nothing."""
    person.waits()
    person.watches("--json", rounds=5)
    assert [one["kind"] for one in person.told()] == ["missed_look"]
    assert person.looks() == [], "another watch, the same stall"
    assert person.watches("--once") == 1
    assert "1 stall, told of before" in person.said
    person.waits(look="2026-11-30 22:45")
    assert person.looks() == ["missed_look"]
    assert len(person.record()) == 2


@pytest.mark.case("BR-160")
def test_a_watch_that_dies_between_writing_and_telling_tells_it_when_it_runs_again(
    person: Watched, tmp_path: pathlib.Path
) -> None:
    """First the record, then the telling, then the mark: a crash in between loses nothing, and the line is there once."""
    person.waits()
    killed = script(tmp_path / "killed", 'kill -9 "$PPID"')
    pid = os.fork()
    if not pid:
        person.watches("--once", "--run", killed)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "it died while it told"
    assert len(person.record()) == 1
    assert person.looks() == ["missed_look"]
    assert person.looks() == []
    assert len(person.record()) == 1


def test_ctrl_c_ends_it_and_leaves_no_watch_standing(person: Watched) -> None:
    """While it runs it stands in the store with its process; after that nobody would think that it still looks."""
    seen: list[Any] = []

    def peek() -> None:
        with person.store() as store:
            seen.append(declared.running_watch(store, person.now))

    person.meanwhile[LATE + 60] = peek
    person.watches("--every", "30", rounds=3)
    assert seen[0] is not None
    assert (seen[0].pid, seen[0].every, seen[0].resume) == (os.getpid(), 30, "")
    assert person.fact(*WATCH) == ""
    assert person.naps == [30, 30, 30]


def test_a_second_watch_is_refused_while_the_first_lives(person: Watched) -> None:
    """Exit code 3 and the process that has it; a dead one is no hindrance."""
    there = declared.Watch(pid=os.getppid(), started=str(machine.started_ticks(os.getppid())), at=LATE)
    with person.store() as store:
        store.save_fact(*WATCH, wire.dumps(there.as_dict()))
    assert person.watches() == 3
    assert str(os.getppid()) in person.complained
    with person.store() as store:
        store.save_fact(*WATCH, wire.dumps(there.replace(started="1").as_dict()))
    assert person.watches() == 0


def test_a_fault_of_ours_does_not_end_it(person: Watched) -> None:
    """The database cannot be read for a while: said, and looked at again."""
    person.waits()
    database = pathlib.Path(person.state_dir) / "stopwarden.db"
    spare = database.with_suffix(".spare")

    def hurt() -> None:
        database.rename(spare)
        database.mkdir()

    def mend() -> None:
        database.rmdir()
        spare.rename(database)

    person.meanwhile = {LATE + 60: hurt, LATE + 120: mend}
    person.watches(rounds=4)
    assert person.complained.startswith("stopwarden: ")
    assert person.said.count("Was to look") == 1


# --- ways of telling -----------------------------------------------------------------------------


def test_a_hostile_title_is_never_read_by_a_shell(person: Watched, tmp_path: pathlib.Path) -> None:
    """The person's command gets words as variables; what is in them is text, whatever it looks like."""
    title = "$(touch pwned); `touch pwned` \x1b[2J\n'\""
    person.waits(title=title)
    told = script(tmp_path / "told", f'printf "%s|%s" "$STOPWARDEN_NAME" "$1" > {tmp_path}/heard')
    person.watches("--once", "--run", f"{told} '{{name}} $STOPWARDEN_NAME'")
    name, _, argument = (tmp_path / "heard").read_text().partition("|")
    assert name.startswith("$(touch pwned); `touch pwned`")
    assert "\n" not in name
    assert "\x1b" not in name
    assert argument == "{name} $STOPWARDEN_NAME", "the command line is as the person wrote it"
    assert not list(tmp_path.rglob("pwned"))


def test_a_command_that_fails_or_is_not_there_is_said_and_the_stall_is_told_all_the_same(
    person: Watched, tmp_path: pathlib.Path
) -> None:
    """Its exit code and last words; the other ways go on."""
    person.waits()
    assert person.watches("--once", "--run", script(tmp_path / "fails", "echo no network; exit 7")) == 1
    assert "--run ended with 7: no network" in person.complained
    assert "Was to look" in person.said
    person.waits(TWO)
    person.watches("--once", "--run", "/nowhere/at/all")
    assert "--run could not be started" in person.complained
    assert person.watches("--run", "'") == 2
    assert person.watches("--run", " ") == 2


def test_the_desktop_is_told_by_whatever_is_installed_and_its_absence_is_said(
    person: Watched, tmp_path: pathlib.Path
) -> None:
    """notify-send with title and words as arguments; where nothing is installed, one plain line."""
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "notify-send", f'for word in "$@"; do echo "$word"; done > {tmp_path}/heard')
    person.env["PATH"] = f"{tmp_path}/bin:{os.defpath}"
    person.waits(title="--parser $(x)")
    person.watches("--once", "--desktop")
    words = (tmp_path / "heard").read_text().splitlines()
    assert words[-3:-1] == ["--", "Stopwarden: --parser $(x)"]
    assert words[-1].startswith("Was to look at 22:30")
    person.env["PATH"] = str(tmp_path / "empty")
    person.waits(TWO)
    person.watches("--once", "--desktop")
    assert "no desktop notifications here" in person.complained
    assert "Was to look" in person.said


# --- resuming ------------------------------------------------------------------------------------


class Child:
    """An agent program that was started: at work until told otherwise."""

    def __init__(self) -> None:
        self.pid = 4711
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code


class Starts:
    """Stands in for the agent program: keeps the command lines, and lets the session be heard of, or not."""

    def __init__(self, person: Watched, *, heard: bool = True) -> None:
        self.person, self.heard = person, heard
        self.argvs: list[list[str]] = []
        self.children: list[Child] = []

    def __call__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Child:
        self.argvs.append(list(argv))
        self.children.append(Child())
        if self.heard:
            session = argv[argv.index("--resume") + 1]
            self.person.spools("session-start", session, t=self.person.now, ep="sdk-cli", source="resume")
        return self.children[-1]

    def watch(self, *words: str, rounds: int = 1, resume: str = RESUME) -> int:
        """Watches with a resume command that starts nothing real. Its exit code."""
        return self.person.watches_with(self, *words, *(("--resume", resume) if resume else ()), rounds=rounds)


def proves(person: Watched, resume: str = RESUME) -> None:
    """The command was seen to work."""
    with person.store() as store:
        store.save_fact(declared.PROVEN, "claude-code", f"{resuming.command_of(resume).digest} {NINE}")


def test_a_session_closed_with_work_owed_is_resumed_once(person: Watched) -> None:
    """Its id and our words as two arguments; recorded; not again for the same end, however often one looks."""
    person.closed()
    proves(person)
    starts = Starts(person, heard=False)
    starts.watch(rounds=4)
    assert len(starts.argvs) == 1
    assert starts.argvs[0][:4] == ["agent", "-p", "--resume", ONE]
    assert starts.argvs[0][4].startswith("Stopwarden: your program ended with work owed")
    assert [(line.session, line.text.split(";")[0]) for line in person.record("watch_resumed")] == [(ONE, "closed")]
    starts.watch(rounds=2)
    assert len(starts.argvs) == 1, "nor by another watch"


def test_without_a_resume_command_nobody_is_woken(person: Watched) -> None:
    """By default a watch starts nothing at all."""
    person.closed()
    starts = Starts(person)
    starts.watch(rounds=3, resume="")
    assert starts.argvs == []
    assert person.record("watch_resumed") == []


def test_an_idle_session_is_resumed_only_where_no_program_can_be_open(person: Watched) -> None:
    """A second program on one conversation would spoil it: an open one in the checkout, or not knowing, forbids it."""
    person.waits()
    proves(person)
    starts = Starts(person)
    starts.watch("--once")
    assert "it is not known whether its program is still open" in person.said
    process = person.system / "proc" / "77"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"claude\0")
    (process / "cwd").symlink_to(person.root)
    starts.watch("--once")
    assert "a second one beside it would spoil the conversation" in person.said
    assert starts.argvs == []
    (process / "cmdline").write_bytes(b"bash\0")
    starts.watch("--once")
    assert len(starts.argvs) == 1


def test_a_session_whose_program_died_in_its_turn_is_resumed_too(person: Watched) -> None:
    """No end was heard, nothing else for half an hour, and no agent program is there: it is gone, not at a long tool."""
    person.save(person.session(ONE, last_event_at=LATE - 31 * MINUTE), period="n1")
    proves(person)
    (person.system / "proc").mkdir(parents=True)
    starts = Starts(person)
    starts.watch("--once")
    assert starts.argvs[0][4].startswith("Stopwarden: your session was idle with work owed")


def test_what_a_resumed_session_is_told_is_known_as_a_wake_and_no_persons_prompt(tmp_path: pathlib.Path) -> None:
    """Each of the watch's prompts: it ends no cancel, and the record says that the session was woken."""
    night = HookNight(tmp_path)
    night.away()
    for kind in (*resuming.PROMPTS, "idle"):
        night.send("prompt", prompt=resuming.prompt_of(kind))
    assert night.lines() == ["look", "prompt"] * (len(resuming.PROMPTS) + 1)
    with contextlib.closing(night.store()) as store:
        assert {line.text for line in store.lines()} == {"kept", "wake"}


@pytest.mark.case("BR-166")
def test_a_session_has_one_owner_of_its_recovery(person: Watched) -> None:
    """While its keeper lives the command does not run; nor for a session that is observed, cancelled, or has a child of ours."""
    with person.store() as store:
        store.end_period("n1", LATE, "back")
    person.away_since(Policy(keeper=True), id="n2", since=NINE, until=MORNING, lists=(person.todo,))
    proves(person)
    person.closed()
    starts = Starts(person)
    alive = KeeperRow(session=ONE, pid=os.getpid(), started=str(machine.started_ticks()), generation=1, at=LATE)
    with person.store() as store:
        store.save_keeper(alive)
    starts.watch("--once")
    assert "its keeper wakes it" in person.said
    with person.store() as store:
        store.save_keeper(alive.replace(started="12345", generation=2))
        store.save_fact("mode", ONE, "observe")
    starts.watch("--once")
    with person.store() as store:
        store.save_fact("mode", ONE, "on")
        state = store.state(ONE)
        store.save_state(state.replace(cancelled=True), expected_revision=state.revision)
    starts.watch("--once")
    assert starts.argvs == []
    with person.store() as store:
        state = store.state(ONE)
        store.save_state(state.replace(cancelled=False), expected_revision=state.revision)
    starts.watch("--once")
    assert len(starts.argvs) == 1


def test_resumes_back_off_and_count_under_the_persons_ceilings(person: Watched) -> None:
    """A session that ends again and again: a minute, five, fifteen, thirty between; at the ceiling, none."""
    proves(person)
    starts = Starts(person, heard=False)
    for _ in range(60):
        person.closed(when=person.now)
        starts.watch("--once")
        person.now += 60
    times = [line.at for line in person.record("watch_resumed")]
    gaps = [after - before for before, after in zip(times, times[1:], strict=False)]
    assert gaps[:4] == [60, 300, 900, 1800]
    with person.store() as store:
        state = store.state(ONE)
        assert state.period_blocks == len(times)
        store.save_state(state.replace(period_blocks=300), expected_revision=state.revision)
    person.now += 3 * HOUR
    person.closed(when=person.now)
    starts.watch("--once")
    assert "as often as you allowed" in person.said
    assert len(starts.argvs) == len(times)


def test_a_command_is_proven_by_an_event_of_that_very_session(person: Watched) -> None:
    """The first run tries it: heard of within two minutes, it is proven from then on, for that host and those words only."""
    person.closed()
    starts = Starts(person)
    starts.watch("--once")
    assert "The command is proven for claude-code" in person.said
    with person.store() as store:
        assert declared.is_proven(store, "claude-code", resuming.command_of(RESUME).digest)
        assert not declared.is_proven(store, "claude-code", resuming.command_of("other {session}").digest)
        assert not declared.is_proven(store, "codex", resuming.command_of(RESUME).digest)


def test_a_command_that_wakes_nobody_is_tried_once_and_said_to_be_unproven(person: Watched) -> None:
    """Nothing heard in two minutes: no second session is given to it."""
    person.closed()
    person.closed(TWO)
    starts = Starts(person, heard=False)
    person.interrupt_after = 200
    starts.watch(rounds=200)
    assert len(starts.argvs) == 1
    assert "the command is not proven" in person.said
    assert "tried and is not proven" in person.said
    with person.store() as store:
        assert store.fact(declared.PROVEN, "claude-code") == ""


def test_prove_tries_it_on_one_session(person: Watched) -> None:
    """`--prove SESSION`: exit code 0 with the proof, 1 without, 2 where it must not be tried."""
    person.closed()
    starts = Starts(person)
    starts.watch("--prove", ONE[:6], rounds=200)
    assert "proven for claude-code" in person.said
    assert "whether that works" in starts.argvs[0][4]
    person.save(person.session(TWO), period="n1")
    starts.watch("--prove", TWO)
    assert "cannot be resumed" in person.complained
    assert len(starts.argvs) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("--resume", "agent --resume"),
        ("--resume", "agent '"),
        ("--prove", ONE),
        ("--every", "5"),
        ("--every", "601"),
    ],
)
def test_words_that_cannot_be_meant_are_refused(person: Watched, words: tuple[str, ...]) -> None:
    """No {session}, an open quote, a proof of nothing, a rhythm out of bounds: exit code 2, nothing begun."""
    assert person.watches(*words) == 2
    assert person.naps == []


def test_the_real_start_gives_the_words_to_no_shell_and_the_child_outlives_ctrl_c(
    person: Watched, tmp_path: pathlib.Path
) -> None:
    """A real process, in a session of its own, without the variables of an agent that may have started the watch."""
    person.closed()
    proves(person)
    path = script(tmp_path / "agent", f'echo "$1|$2|$CLAUDECODE|$(pwd)" > {tmp_path}/out; exec cat {tmp_path}/fifo')
    os.mkfifo(tmp_path / "fifo")
    resume = f"{path} {{session}} {{prompt}}"
    proves(person, resume)
    person.env["CLAUDECODE"] = "1"
    started: list[Process] = []

    def start(*words: Any) -> Process:
        started.append(resuming.start(*words))
        return started[-1]

    person.watches_with(start, "--resume", resume, rounds=2)
    assert "goes on without this watch" in person.said
    (pid,) = (one.pid for one in started)
    assert f"(process {pid})" in person.said
    assert os.getsid(pid) == pid
    with open(tmp_path / "fifo", "w") as fifo:
        fifo.write("end")
    while started[0].poll() is None:
        os.sched_yield()
    session, prompt, inside, where = (tmp_path / "out").read_text().strip().split("|")
    assert (session, inside, where) == (ONE, "", person.root)
    assert prompt.startswith("Stopwarden: your program ended")


def test_an_id_that_looks_like_an_option_is_never_given_to_a_command(person: Watched) -> None:
    """Session ids come from payloads: one that is no plain word is left alone."""
    for strange in ("--help", "a b", "x;y", "../x"):
        person.closed(strange)
    proves(person)
    starts = Starts(person)
    starts.watch("--once")
    assert starts.argvs == []


# --- declared looks ------------------------------------------------------------------------------


def test_a_declared_look_is_kept_by_resuming_the_closed_session_at_its_time(person: Watched) -> None:
    """Until then it waits and is no stall; at its time it is resumed; had nothing come of it, ten minutes later it is told."""
    person.closed(entrypoint="sdk-cli")
    look = LATE + 20 * MINUTE
    with person.store() as store:
        store.save_fact(declared.LOOK, ONE, str(look))
    proves(person)
    starts = Starts(person, heard=False)
    starts.watch(rounds=2)
    person.types("status")
    assert "it will be resumed at 23:25, the look it declared" not in person.said, "no watch runs any more"
    seen: list[str] = []
    person.meanwhile[person.now + 60] = lambda: (person.types("status"), seen.append(person.said))
    starts.watch(rounds=16)
    assert "it will be resumed at 23:25, the look it declared" in seen[0]
    assert starts.argvs == [], "not before its time"
    assert person.record() == []
    starts.watch(rounds=5)
    assert [argv[4] for argv in starts.argvs] == [
        "Stopwarden: your next look is due; look again, and go on with the list of work."
    ]
    assert person.record() == []
    starts.children[0].code = 1
    starts.watch(rounds=12)
    assert [line.text.split(";")[0] for line in person.record()] == ["closed"]


# --- by default nothing starts -------------------------------------------------------------------


def test_no_other_command_starts_anything_that_stays(tmp_path: pathlib.Path) -> None:
    """Every command but `watch`, with a program's usual words: when it has ended, no process of it is left."""
    person = Watched(tmp_path)
    person.waits()
    before = children()
    words = {
        "away": ["until", "07:30"],
        "look": ["--at", "2h"],
        "promise": ["x", "--by", "2h"],
        "status": [],
        "report": [],
        "add": ["x"],
        "list": [],
        "back": [],
    }
    for command in COMMANDS:
        if command in ("watch", "doctor", "demo", "install", "uninstall", "chat", "agent"):
            continue  # these run programs and wait for them, or talk until they are left; their own tests see them end
        person.types(command, *words.get(command, []))
        assert children() == before, command
    with person.store() as store:
        assert store.fact(*WATCH) == ""


def children() -> set[int]:
    """The processes that this one has started and that are still there."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = pathlib.Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[1] == str(os.getpid()):
                found.add(int(name))
    return found


# --- making things -------------------------------------------------------------------------------


def script(path: pathlib.Path, body: str) -> str:
    """A small shell program; its path."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def hold(person: Watched, item: str, session: str, *, claimed_at: int, **fields: Any) -> None:
    """A reservation as stored."""
    made = Reservation(
        item=item,
        place="/p",
        project="/p",
        session=session,
        copy=person.copy,
        claimed_at=claimed_at,
        expires_at=claimed_at + 2 * HOUR,
        lease=2 * HOUR,
        token=1,
        **{"granted_at": claimed_at, **fields},
    )
    with person.store() as store:
        store.save_reservation(made)


# --- in the morning ------------------------------------------------------------------------------


def test_the_report_words_what_the_watch_saw_and_what_was_promised(person: Watched) -> None:
    """Each stall with when it began and that it was resumed; promises kept, overdue and refused; and all as facts."""
    path = person.list(
        "- [ ] A\n- promise 22:00: merge\n- kept 22:30: tell Ann\n- promise: some day\n- look 06:00: build\n"
    )
    assert path == person.todo
    person.waits()
    person.closed(TWO)
    proves(person)
    Starts(person, heard=False).watch("--once")
    person.types("report")
    for words in (
        "7e15: its look of 22:30 did not come",
        "8f26: closed at 22:55 with work owed; resumed at 23:05",
        'the promise "merge" was not kept by 22:00',
        'promise Mon 22:00 "merge": overdue',
        'look Tue 06:00 "build": to come',
        'promise "some day" does not count',
        "1 settled",
    ):
        assert words in " ".join(person.said.split()), person.said
    person.types("report", "--json")
    told = json.loads(person.said)
    assert [one["kind"] for one in told["stalls"]] == ["empty_promise", "missed_look", "closed"]
    assert [one["resumed_at"] is not None for one in told["stalls"]] == [False, False, True]
    assert [one["handled"] for one in told["timed"]] == [False, True, False, False]


def test_a_night_without_stalls_and_promises_is_told_as_before(person: Watched) -> None:
    """No empty sections."""
    person.save(person.session(ONE), period="n1")
    person.watches("--once")
    person.types("report")
    assert "STALLED" not in person.said
    assert "PROMISED" not in person.said


def test_what_the_watch_writes_is_no_sign_of_life_of_the_session(person: Watched) -> None:
    """The time of a session is told the same with its stall's line in the record and without."""
    from stopwarden.report import timeline

    row = person.session(ONE, last_event_at=at("2026-11-30 21:30"))
    line = RecordLine(at=at("2026-11-30 21:30"), kind="prompt", session=ONE, text="person", seq=1)
    stall = RecordLine(at=at("2026-11-30 22:05"), kind="stall", session=ONE, text=f"silent; {line.at}; ", seq=2)
    resumed = stall.replace(kind="watch_resumed", seq=3)
    plain = timeline.spans([line], [], NINE, LATE, row)
    assert timeline.spans([line, stall, resumed], [], NINE, LATE, row) == plain
