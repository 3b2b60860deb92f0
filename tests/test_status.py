"""`status`: one line a session, an exit code that says whether anything needs the person, and nothing written."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from stopwarden import machine
from stopwarden.cli import go
from stopwarden.cli.known import next_wake
from stopwarden.cli.surroundings import Agent
from stopwarden.core.bounds import HOUR, MINUTE, MISSED_LOOK_AFTER, Policy
from stopwarden.core.events import AwayPeriod, SessionState
from stopwarden.hosts import installation
from stopwarden.store import marker
from stopwarden.store.port import KeeperRow, SeenWake, SessionRow, Store, VerdictRow
from stopwarden.work import gather
from tests.conftest import LONDON, at
from tests.support.night import SESSION, HookNight, cron
from tests.support.person import Person

NOW = at("2026-11-30 23:05")
MORNING = at("2026-12-01 07:30")


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Person:
    """A person in a checkout, our hooks installed yesterday."""
    made = Person(tmp_path)
    made.installs()
    return made


@pytest.fixture
def night(person: Person) -> AwayPeriod:
    """Away since two hours, until 07:30, with a list of six of which two are done."""
    path = person.list("- [x] long ago\n" + "".join(f"- [ ] {name}\n" for name in "abcde") + "- [?] f\n")
    person.now = at("2026-11-30 21:00")
    period = person.away_since(id="n1", until=MORNING, lists=(path,))
    with person.store() as store:
        for one in gather.read_lists(store, period.lists, period.id, period.root):
            gather.keep(store, one, period.id)
    person.list("- [x] long ago\n- [x] a\n- [x] b\n- [ ] c\n- [ ] d\n- [/] e\n- [?] f\n")
    person.now = at("2026-11-30 23:05")
    return period


def judged(person: Person, kind: str, when: int, session: str = "7e15aaaa", rule: str = "") -> int:
    """A stored verdict of the night; its id."""
    with person.store() as store:
        return store.append_verdict(VerdictRow(at=when, session=session, period="n1", kind=kind, rule=rule))


def waiting(person: Person, look: int, session: str = "7e15aaaa", **fields: Any) -> None:
    """A session that was allowed to wait at 22:00 until its look."""
    when = at("2026-11-30 22:00")
    row = person.session(
        session,
        last_event="stop",
        last_event_at=when,
        chain_started_at=when - 600,
        last_verdict=judged(person, "waiting", when, session, "away.waiting_unchanged"),
        **fields,
    )
    person.save(row, period="n1", next_look=look, next_look_latest=look)


def rows_of(person: Person) -> list[list[str]]:
    """The lines of the last answer, split at double blanks."""
    return [[cell for cell in line.split("  ") if cell] for line in person.said.splitlines()]


# --- nothing wrong ------------------------------------------------------------------------------


def test_nothing_ever_stored_is_one_line_and_makes_nothing(person: Person, tmp_path: pathlib.Path) -> None:
    """A first look creates no database."""
    person.env["XDG_STATE_HOME"] = str(tmp_path / "state")
    assert person.types("status") == 0
    assert person.said == "You are here: nothing is held, and nothing needs you.\n"
    assert not os.path.exists(tmp_path / "state")


def test_a_working_session_is_one_line_with_progress_blocks_and_next_look(person: Person, night: AwayPeriod) -> None:
    """What a person wants to see: who, how far, how often sent on, when it looks again; and that all is well."""
    row = person.session(title="parser")
    person.save(row, period=night.id, period_blocks=1, blocks=1)
    with person.store() as store:
        store.save_wake(SeenWake(session=row.id, id="w1", kind="one_shot", fires_at=at("2026-11-30 23:40")))
    assert person.types("status") == 0
    heading, session, verdict = rows_of(person)
    assert heading[0] == f"Away until Tue 07:30 Europe/London (8 h 25 min left): {person.root}"
    assert session == ["parser", "working", "2 of 6", "blocked 1x", "next look 23:40"]
    assert verdict == ["Nothing needs you."]


def test_a_recurring_wake_shows_its_next_fire(person: Person, night: AwayPeriod) -> None:
    """Where the host said its next fire long ago, the schedule tells the one to come, until it expires."""
    row = person.save(person.session())
    wake = SeenWake(session=row.id, id="w1", schedule="*/20 * * * *", kind="recurring", first_seen=person.now - HOUR)
    with person.store() as store:
        store.save_wake(wake)
    person.types("status")
    assert "next look 23:20" in person.said
    with person.store() as store:
        store.save_wake(wake.replace(max_age=HOUR + 60))
    person.types("status")
    assert "next look" not in person.said


def test_a_waiting_session_says_until_when(person: Person, night: AwayPeriod) -> None:
    """The time of its look is the state."""
    waiting(person, at("2026-11-30 23:40"))
    assert person.types("status") == 0
    assert rows_of(person)[1][:2] == ["7e15", "waiting until 23:40"]


def test_no_session_yet_is_no_alarm(person: Person, night: AwayPeriod) -> None:
    """Away with nobody heard of says what would be covered."""
    assert person.types("status") == 0
    assert "No session was heard of yet. One that is started now is covered." in person.said


def test_after_the_end_it_says_how_the_night_ended(person: Person, night: AwayPeriod) -> None:
    """Past its time the period no longer holds, whether or not anything has noticed yet."""
    person.save(person.session(last_event="stop"))
    person.now = MORNING
    assert person.types("status") == 0
    assert person.said == "You are here: away ended 07:30 by itself. The night: stopwarden report\n"


# --- what needs the person: the exit code -------------------------------------------------------


@pytest.mark.case("BR-167")
def test_a_look_that_did_not_come_is_stalled_with_its_own_exit_code(person: Person, night: AwayPeriod) -> None:
    """Detection is not kept quiet: the word, the time of the look, what to do, and exit code 1."""
    look = person.now - MISSED_LOOK_AFTER
    waiting(person, look)
    assert person.types("status") == 0
    person.now += 1
    assert person.types("status") == 1
    assert rows_of(person)[1][:2] == ["7e15", "stalled"]
    assert "Was to look at 22:55" in person.said
    assert "Open it and type: continue" in person.said
    assert "This needs you: 7e15." in person.said


@pytest.mark.case("BR-066")
def test_a_limit_window_that_passed_without_a_resume_needs_the_person(person: Person, night: AwayPeriod) -> None:
    """Told from the recorded reset time, with exit code 1."""
    person.save(
        person.session(
            last_event="stop-failure",
            last_event_at=at("2026-11-30 21:30"),
            error="rate_limit",
            error_at=at("2026-11-30 21:30"),
            error_resets_at=at("2026-11-30 22:40"),
        )
    )
    assert person.types("status") == 1
    assert "The limit window passed at 22:40, but the session did not resume" in person.said


@pytest.mark.case("BR-173")
def test_plan_mode_is_named_with_its_beginning(person: Person, night: AwayPeriod) -> None:
    """What holds the session is in its line."""
    when = at("2026-11-30 22:02")
    person.save(
        person.session(
            last_event="stop",
            last_event_at=when,
            permission_mode="plan",
            waits_on_person="plan",
            waits_since=when,
            last_verdict=judged(person, "plan_mode", when),
        )
    )
    assert person.types("status") == 1
    assert rows_of(person)[1][1] == "waiting on you"
    assert "Held: plan mode since 22:02." in person.said


@pytest.mark.case("BR-103")
def test_a_dialog_left_open_is_told_with_its_age_and_exit_code(person: Person, night: AwayPeriod) -> None:
    """The person is told that it is frozen, since when, and for how long."""
    when = at("2026-11-30 21:50")
    person.save(
        person.session(last_event="notification", last_event_at=when, waits_on_person="permission", waits_since=when)
    )
    assert person.types("status") == 1
    assert "Frozen by a permission prompt since 21:50 (1 h 15 min). Answer it in that session." in person.said


@pytest.mark.case("A91")
def test_an_interrupt_is_silent_in_the_line_too(person: Person, night: AwayPeriod) -> None:
    """No stop was heard, so nothing is called waiting."""
    when = person.now - 45 * MINUTE
    person.save(
        person.session(last_event="prompt", last_event_at=when),
        period="n1",
        next_look=MORNING,
        next_look_latest=MORNING,
    )
    assert person.types("status") == 0
    assert rows_of(person)[1][1] == "silent"


def test_a_bound_reached_is_stopped_with_work_owed(person: Person, night: AwayPeriod) -> None:
    """The list says how much is left."""
    when = person.now - 600
    row = person.session(
        last_event="stop",
        last_event_at=when,
        last_verdict=judged(person, "bound_reached", when, rule="away.bound_reached"),
    )
    person.save(row, period="n1", blocks=8, bound="blocks_without_tools")
    assert person.types("status") == 1
    assert "Stopped at 22:55 with 3 items owed: 8 times in a row it was sent on and did nothing." in person.said


def test_a_list_that_cannot_be_read_is_unknown_work_not_none(person: Person, night: AwayPeriod) -> None:
    """A session closed in the night with its list gone may have left work: it needs the person."""
    os.unlink(night.lists[0])
    person.save(person.session(ended_at=person.now - 60, ended_why="logout", last_event="session-end"))
    assert person.types("status", "--json") == 1
    (session,) = json.loads(person.said)["sessions"]
    assert (session["owed"], session["items"], session["state"]) == (None, None, "stopped")


def test_a_finished_list_needs_nobody(person: Person, night: AwayPeriod) -> None:
    """Nothing open and nothing parked: a closed session is simply closed."""
    person.list("- [x] long ago\n" + "".join(f"- [x] {name}\n" for name in "abcdef"))
    person.save(person.session(ended_at=person.now - 60, ended_why="logout", last_event="session-end"))
    assert person.types("status") == 0
    assert rows_of(person)[1][1:3] == ["ended", "6 of 6"]


def test_what_needs_the_person_is_named_at_the_end(person: Person, night: AwayPeriod) -> None:
    """Several sessions, two of them in need: both names, one exit code."""
    person.save(person.session("1111aaaa", title="lexer"))
    person.save(person.session("2222aaaa", title="parser", last_event="stop"))
    person.save(person.session("3333aaaa", title="docs", last_event_at=person.now - 3 * HOUR))
    assert person.types("status") == 1
    assert "These need you: docs, parser." in person.said


def test_sessions_of_one_title_are_told_apart_by_id(person: Person, night: AwayPeriod) -> None:
    """A name stands for one session only."""
    person.save(person.session("7e15aaaa", title="main"))
    person.save(person.session("9a02bbbb", title="main"))
    person.types("status")
    assert [row[0] for row in rows_of(person)[1:3]] == ["7e15", "9a02"]


def test_a_hostile_title_stays_on_its_line(person: Person, night: AwayPeriod) -> None:
    """Control characters and length of a title do not break the table."""
    person.save(person.session(title="x\x1b[2J\n" + "y" * 500))
    person.types("status")
    assert "\x1b" not in person.said
    assert len(person.said.splitlines()) == 3
    assert len(person.said.splitlines()[1]) < 120


def test_the_keeper_counts_as_a_waker_only_while_it_lives(person: Person) -> None:
    """A turn that an error ended waits for a living keeper, and is stopped once that is gone."""
    person.away_since(id="n1", policy=Policy(keeper=True), until=MORNING)
    row = person.session(
        last_event="stop-failure", last_event_at=person.now, error="overloaded", error_at=person.now, chain_started_at=1
    )
    person.save(row)
    alive = KeeperRow(
        session=row.id, pid=os.getpid(), started=str(machine.started_ticks()), generation=1, at=person.now
    )
    with person.store() as store:
        store.save_keeper(alive)
    assert person.types("status") == 0
    assert "It will be woken again." in person.said
    with person.store() as store:
        store.save_keeper(alive.replace(started="1", generation=2))
    assert person.types("status") == 1
    assert "Nothing will wake it." in person.said


# --- switches, other sessions, other periods ----------------------------------------------------


def test_switched_off_is_said_first_with_the_undo(person: Person, night: AwayPeriod) -> None:
    """A forgotten switch is not hidden behind a healthy table."""
    person.save(person.session())
    person.types("off")
    assert person.types("status") == 0
    assert "Switched off: no stop is judged. Undo: stopwarden on" in person.said
    assert rows_of(person)[2][1] == "off"


def test_a_session_that_only_is_observed_says_so(person: Person, night: AwayPeriod) -> None:
    """Its state stands, and that nothing is blocked."""
    person.save(person.session())
    person.types("observe", "--session", "7e15")
    person.types("status")
    assert "working" in person.said
    assert "Observed only" in person.said


def test_sessions_that_no_period_holds_for_show_only_on_request(person: Person, night: AwayPeriod) -> None:
    """Another checkout's session is no part of this night; `--verbose` shows it with its id and reason."""
    person.save(person.session())
    person.save(person.session("9a02bbbb", title="other", root="/elsewhere", copy="zz"))
    person.types("status")
    assert "other" not in person.said
    person.types("status", "--verbose")
    assert "You are not away for it" in person.said
    assert "/elsewhere, last heard 23:04 (post-tool)" in person.said


def test_verbose_names_the_last_verdict_and_how_to_ask_why(person: Person, night: AwayPeriod) -> None:
    """From the line of a session to the reason for its state."""
    waiting(person, at("2026-11-30 23:40"))
    person.types("status", "-v")
    assert "1 waiting for you, 0 for something else" in person.said
    assert "last stop 22:00: waiting (away.waiting_unchanged). Why: stopwarden explain 1" in person.said


def test_a_conversation_that_went_on_under_another_id_is_not_shown(person: Person, night: AwayPeriod) -> None:
    """After /clear there is a new session; the old one is over."""
    person.save(person.session("7e15aaaa", ended_at=person.now - 60, ended_why="clear", last_event="session-end"))
    person.save(person.session("9a02bbbb"))
    assert person.types("status") == 0
    assert "7e15" not in person.said


@pytest.mark.parametrize(("before", "shown"), [(1, False), (0, True)])
def test_what_was_closed_before_the_person_left_is_not_shown(
    person: Person, night: AwayPeriod, before: int, shown: bool
) -> None:
    """What was closed in the night is."""
    person.save(person.session(ended_at=night.since - before, ended_why="logout", last_event="session-end"))
    assert person.types("status") == (1 if shown else 0)
    assert ("7e15" in person.said) is shown


def test_a_closed_session_does_not_stand_for_an_open_program(person: Person, night: AwayPeriod) -> None:
    """One program, one session heard of: fine; if that session is closed, the program is another."""
    person.machine_has("proc/4711/cmdline", "claude\0")
    os.symlink(person.repo, person.system / "proc" / "4711" / "cwd")
    person.save(person.session())
    person.types("status")
    assert "program 4711" not in person.said
    person.save(person.session(ended_at=person.now - 5, ended_why="logout", last_event="session-end"))
    person.types("status")
    assert "program 4711" in person.said


def test_hooks_installed_for_another_checkout_only_say_nothing_about_this_one(
    person: Person, night: AwayPeriod
) -> None:
    """The time of an install counts where it serves."""
    file = installation.SettingsFile(path="/elsewhere/.claude/settings.local.json", scope="project", at=person.now)
    installation.save(person.state_dir, installation.Record(files=(file,)))
    person.save(person.session())
    assert person.types("status") == 0
    here = file.__class__(path=f"{person.root}/.claude/settings.local.json", scope="project", at=person.now)
    installation.save(person.state_dir, installation.Record(files=(here,)))
    assert person.types("status") == 1
    assert "not covered" in person.said


def test_an_end_of_long_ago_is_not_told_again(person: Person, night: AwayPeriod) -> None:
    """A day later the person simply is here."""
    person.now = MORNING + 24 * HOUR
    person.types("status")
    assert "away ended" in person.said
    person.now += 1
    person.types("status")
    assert person.said == "You are here: nothing is held, and nothing needs you.\n"


@pytest.mark.parametrize(
    ("wake", "fires"),
    [
        ({"fires_at": NOW + 1}, NOW + 1),
        ({"fires_at": NOW}, None),
        ({"fires_at": NOW + 60, "gone_at": NOW - 5}, None),
        ({"kind": "self_paced"}, None),
        ({"schedule": "40 23 * * *"}, at("2026-11-30 23:40")),
        ({"schedule": "0 23 * * *"}, at("2026-12-01 23:00")),
        ({"schedule": "0 23 * * *", "first_seen": NOW - 24 * HOUR}, None),
        ({"schedule": "0 23 * * *", "kind": "recurring", "first_seen": NOW - HOUR}, at("2026-12-01 23:00")),
        (
            {"schedule": "*/30 * * * *", "kind": "recurring", "fires_at": NOW - 60, "first_seen": NOW - HOUR},
            at("2026-11-30 23:30"),
        ),
        ({"schedule": "*/30 * * * *", "kind": "recurring", "first_seen": NOW - 7 * 24 * HOUR}, None),
        ({"schedule": "0 12 2 12 *"}, None),
        ({"schedule": "30 23 * * *", "fires_at": NOW - 60}, None),
        ({"schedule": "0 0 31 2 *", "kind": "recurring", "first_seen": NOW}, None),
        ({"schedule": "@hourly", "kind": "recurring", "first_seen": NOW}, None),
    ],
)
def test_the_next_wake_is_told_from_what_is_known_of_it(wake: dict[str, Any], fires: int | None) -> None:
    """The host's word while it lies ahead, else the schedule; a wake that is spent, gone or expired is none."""
    seen = SeenWake(**{"session": "s", "id": "w", "first_seen": at("2026-11-30 23:01"), **wake})
    assert next_wake([seen], NOW, LONDON) == fires
    assert next_wake([seen, seen.replace(id="v", fires_at=NOW + 9, gone_at=None)], NOW, LONDON) is not None


def test_two_periods_have_a_heading_each(person: Person, night: AwayPeriod) -> None:
    """For whom each holds, and until when."""
    person.away_since(id="n2", scope="everywhere", root="", copy="")
    person.types("status")
    assert "Away until `stopwarden back`: every checkout" in person.said
    assert "Away until Tue 07:30" in person.said


def test_a_program_open_since_before_the_install_needs_the_person(person: Person, night: AwayPeriod) -> None:
    """What the machine shows and no hook ever said is not covered."""
    person.installs(when=person.now - 600)
    person.machine_has("proc/stat", f"btime {person.now - 10_000}\n")
    person.machine_has("proc/4711/cmdline", "claude\0")
    person.machine_has("proc/4711/stat", "4711 (claude) S " + "0 " * 18 + "100000 0\n")
    os.symlink(person.repo, person.system / "proc" / "4711" / "cwd")
    assert person.types("status") == 1
    assert "program 4711  hook never seen" in person.said


@pytest.mark.parametrize(
    ("started", "programs_named", "unseen"),
    [
        ({4711: -600}, [], [4711]),
        ({4711: -600}, [4711], []),
        ({4711: -1}, [0], []),
        ({4711: -3}, [0], [4711]),
        ({4711: 5, 4712: 6}, [4712], [4711]),
        ({4711: 5, 4712: 6}, [9, 9], []),
        ({4711: 5, 4712: 6}, [9], [4711]),
        ({4711: 0}, [], [4711]),
    ],
)
def test_a_program_whose_session_was_heard_of_is_never_called_unseen(
    started: dict[int, int], programs_named: list[int], unseen: list[int]
) -> None:
    """By its process, however early its start reads; the others are counted against the sessions left."""
    agents = [Agent(pid=pid, started=NOW + after) for pid, after in started.items()]
    heard = [SessionRow(id=str(n), program=pid, program_seen=1) for n, pid in enumerate(programs_named)]
    found = go.check_unseen(agents, heard, NOW, NOW + 60, LONDON)
    assert [one.subject for one in found] == [f"program {pid}" for pid in unseen]


# --- only reading -------------------------------------------------------------------------------


def test_reading_status_changes_no_sessions_state_and_records_nothing(person: Person, night: AwayPeriod) -> None:
    """A missed look is told, not written; only what hooks left in the spool is taken over, once."""
    waiting(person, at("2026-11-30 22:20"))
    before = stored(person)
    for words in (("status",), ("status", "--verbose"), ("status", "--json")):
        assert person.types(*words) == 1
    assert stored(person) == before


def stored(person: Person) -> tuple[object, ...]:
    """Everything stored that a reader could disturb."""
    with person.store() as store:
        state: SessionState = store.state("7e15aaaa")
        return (store.open_periods(), store.sessions(), state, store.lines(), store.verdicts(), person.marked())


def test_what_hooks_left_in_the_spool_counts(person: Person, night: AwayPeriod) -> None:
    """A tool use that only reached the spool is the last sign of life."""
    waiting(person, at("2026-11-30 22:20"))
    person.spools("post-tool")
    assert person.types("status") == 0
    assert rows_of(person)[1][1] == "working"


# --- our own damage -----------------------------------------------------------------------------


def _junk(person: Person) -> None:
    """Damages the database for good."""
    for name in os.listdir(person.state_dir):
        if name.startswith("stopwarden.db"):
            pathlib.Path(person.state_dir, name).write_bytes(b"junk " * 2000)


def test_a_spool_that_cannot_be_read_is_said_beside_what_is_known(person: Person, night: AwayPeriod) -> None:
    """What is told may then be old, and the person knows it."""
    person.save(person.session())
    os.mkdir(f"{person.state_dir}/spool")
    assert person.types("status") == 0
    assert "working" in person.said
    assert "what is told here may be old" in person.said


def test_a_damaged_database_is_said_and_is_our_failure(person: Person, night: AwayPeriod) -> None:
    """Exit code 4 with where it was set aside; afterwards every status still names that file."""
    _junk(person)
    assert person.types("status") == 4
    assert "damaged" in person.complained
    person.types("away", "until", "07:30")
    person.types("status")
    assert "A damaged database was set aside: " in person.said


def test_away_without_a_database_is_our_failure(person: Person, night: AwayPeriod) -> None:
    """The marker speaks of a database that is gone."""
    for name in os.listdir(person.state_dir):
        if name.startswith("stopwarden.db"):
            os.unlink(f"{person.state_dir}/{name}")
    assert person.types("status") == 4
    assert "the database is gone" in person.complained


def test_a_missing_marker_means_that_nothing_is_held(person: Person, night: AwayPeriod) -> None:
    """Hooks look at the marker first; without it the database's word holds nobody."""
    person.save(person.session())
    os.unlink(f"{person.state_dir}/{marker.NAME}")
    assert person.types("status") == 1
    assert "its mark is missing" in person.said
    assert "Run: stopwarden away again" in person.said


def test_a_left_over_marker_is_said(person: Person, night: AwayPeriod) -> None:
    """A period that ended while its marker stayed."""
    with person.store() as store:
        store.end_period(night.id, person.now, "back")
    assert person.types("status") == 0
    assert "A mark of an away period is left over. Take it away: stopwarden back" in person.said


def test_stops_that_we_failed_to_judge_are_said(person: Person, night: AwayPeriod) -> None:
    """A row of faults of ours beside the marker is named with the session."""
    person.save(person.session())
    pathlib.Path(person.state_dir, "faults").write_text(
        f"{person.now} 7e15aaaa fault disk full\n" * 2, encoding="utf-8"
    )
    person.types("status")
    assert "7e15: 2 stops in a row could not be judged. Run: stopwarden doctor" in person.said


# --- json and watch -----------------------------------------------------------------------------


def test_json_holds_every_line_with_instants_in_utc(person: Person, night: AwayPeriod) -> None:
    """For scripts: the state word, whether it needs the person, counts and times."""
    waiting(person, at("2026-11-30 23:40"))
    assert person.types("status", "--json") == 0
    told = json.loads(person.said)
    assert (told["at"], told["zone"], told["needs_you"]) == ("2026-11-30T23:05:00Z", "Europe/London", False)
    (session,) = told["sessions"]
    assert (session["state"], session["next_look"], session["owed"]) == ("waiting", "2026-11-30T23:40:00Z", 3)
    assert session["items"] == {"of": 6, "done": 2, "open": 3, "waits_for_you": 1, "waits": 0}
    assert told["away"][0]["until"] == "2026-12-01T07:30:00Z"


def test_watch_looks_again_until_it_is_interrupted(person: Person, night: AwayPeriod) -> None:
    """It sleeps between looks, tells what has changed, and ends with the last look's exit code."""
    waiting(person, person.now - MISSED_LOOK_AFTER + 4)
    assert person.types("status", "--watch") == 1
    assert person.naps == [3.0, 3.0, 3.0]
    assert "is due now" in person.said
    assert "stalled" in person.said
    assert "\x1b" not in person.said


def test_watch_outlives_a_failure_of_ours(person: Person, night: AwayPeriod) -> None:
    """It says what failed and looks again; the exit code is that of the last look."""
    person.save(person.session())
    _junk(person)
    assert person.types("status", "--watch") == 4
    assert person.complained.count("stopwarden: ") == 3
    assert len(person.naps) == 3


def test_watch_as_json_is_one_object_a_line(person: Person, night: AwayPeriod) -> None:
    """A stream that a script can follow."""
    person.save(person.session())
    assert person.types("status", "--watch", "--json") == 0
    seen = [json.loads(line) for line in person.said.splitlines() if line]
    assert [look["at"] for look in seen] == ["2026-11-30T23:05:00Z", "2026-11-30T23:05:03Z", "2026-11-30T23:05:06Z"]


def test_wrong_words_are_exit_code_2(person: Person) -> None:
    """An option that does not exist is refused."""
    assert person.types("status", "--loud") == 2


def test_the_help_names_every_exit_code(person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    """What a script can rely on, with an example."""
    assert person.types("status", "--help") == 0
    shown = capsys.readouterr().out
    assert "stopwarden status ||" in shown
    assert all(f"{code} " in shown for code in (0, 1, 2, 4))


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.save_fact("mode", "7e15aaaa", "off"),
        lambda store: store.end_period("n1", at("2026-11-30 23:05"), "back"),
    ],
)
def test_each_look_is_told_from_what_is_stored_then(
    person: Person, night: AwayPeriod, change: Callable[[Store], object]
) -> None:
    """Nothing is remembered between two looks."""
    person.save(person.session())
    person.types("status")
    first = person.said
    with person.store() as store:
        change(store)
    person.types("status")
    assert person.said != first


# --- with the hooks themselves ------------------------------------------------------------------


@pytest.fixture
def evening(tmp_path: pathlib.Path) -> tuple[Person, HookNight]:
    """A person and a session's real hooks on one machine; the session has been prompted, nothing is armed."""
    hooks = HookNight(tmp_path)
    person = Person(tmp_path)
    person.env, person.cwd = hooks.env, hooks.project
    hooks.send("session-start", source="startup")
    hooks.send("prompt", prompt="work through the list")
    return person, hooks


def looks(person: Person, hooks: HookNight, *words: str) -> tuple[int, list[str]]:
    """What the person gets who types a command at the hooks' time: the exit code and the session's line."""
    person.now = hooks.now
    code = person.types(*(words or ("status",)))
    lines = [line for line in person.said.splitlines() if line.startswith(SESSION[:4])]
    return code, [cell for cell in "".join(lines).split("  ") if cell]


def test_from_the_evening_to_the_morning_each_look_tells_what_the_hooks_last_heard(
    evening: tuple[Person, HookNight],
) -> None:
    """Away, blocked, an item done, a wait, a missed look, a sign of life, back: status follows, `back` lets go."""
    person, hooks = evening
    code, _ = looks(person, hooks, "away", "until", "07:30", "--list", "TODO.md")
    assert (code, "hook seen 10 s ago · scheduler on" in person.said) == (0, True)
    assert hooks.send("stop")["decision"] == "block"
    code, line = looks(person, hooks)
    assert (code, line[1:4]) == (0, ["working", "0 of 2", "blocked 1x"])
    hooks.list.write_text("- [x] A\n- [ ] B\n", encoding="utf-8")
    hooks.send("post-tool", tool_name="Edit")
    wake = {"session_crons": [cron("21:30")]}
    assert hooks.send("stop", **wake)["decision"] == "block"
    assert hooks.send("stop", **wake) == {}
    code, line = looks(person, hooks)
    assert (code, line[1:4]) == (0, ["waiting until 21:30", "1 of 2", "blocked 2x"])
    hooks.now = at("2026-11-30 21:50")
    code, line = looks(person, hooks)
    assert (code, line[1]) == (1, "stalled")
    hooks.send("post-tool", tool_name="Edit")
    code, line = looks(person, hooks)
    assert (code, line[1]) == (0, "working")
    code, _ = looks(person, hooks, "back")
    assert code == 0
    assert "1 of 2 done" in person.said.splitlines()[0]
    assert hooks.send("stop") == {}
    code, line = looks(person, hooks)
    assert (code, line) == (0, [])


def test_switched_off_by_command_the_hooks_let_go_and_on_again_they_hold(evening: tuple[Person, HookNight]) -> None:
    """The fact that the switch stores is the one that a stop is judged by."""
    person, hooks = evening
    looks(person, hooks, "away", "--list", "TODO.md")
    looks(person, hooks, "off")
    assert hooks.send("stop") == {}
    looks(person, hooks, "observe")
    assert "decision" not in hooks.send("stop")
    looks(person, hooks, "on")
    assert hooks.send("stop")["decision"] == "block"


def test_the_terms_that_were_typed_are_those_that_hooks_judge_by(evening: tuple[Person, HookNight]) -> None:
    """A bound set with --set is reached by the hook at that number of blocks."""
    person, hooks = evening
    looks(person, hooks, "away", "--list", "TODO.md", "--set", "blocks_without_tools=2")
    answers = [hooks.send("stop").get("decision") for _ in range(3)]
    assert answers == ["block", "block", None]
    code, line = looks(person, hooks)
    assert (code, line[1]) == (1, "stopped")
    assert "with 2 items owed" in person.said


def test_the_hosts_own_todos_count_as_owed_where_no_list_was_named(evening: tuple[Person, HookNight]) -> None:
    """As the last stop was judged by them; before that nothing is known, and never taken for nothing."""
    person, hooks = evening
    os.unlink(hooks.list)
    looks(person, hooks, "away")
    looks(person, hooks, "status", "--json")
    assert json.loads(person.said)["sessions"][0]["owed"] is None
    todos = [{"content": f"step {n}", "status": "pending", "activeForm": f"step {n}"} for n in (1, 2)]
    hooks.send("post-tool", tool_name="TodoWrite", tool_input={"todos": todos}, tool_response={"newTodos": todos})
    assert hooks.send("stop")["decision"] == "block"
    looks(person, hooks, "status", "--json")
    assert json.loads(person.said)["sessions"][0]["owed"] == 2
