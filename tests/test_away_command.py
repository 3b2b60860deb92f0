"""`away` and `back`: what holds from then on, what is not covered, and the way home."""

from __future__ import annotations

import io
import json
import os
import pathlib
import threading

import pytest

from stopwarden import wire
from stopwarden.cli.context import Context
from stopwarden.cli.main import main
from stopwarden.cli.settings import FILE_MAX
from stopwarden.cli.settings import policy_of as policy_from_words
from stopwarden.core.bounds import DAY, HOUR, policy_from
from stopwarden.core.errors import StopwardenError
from stopwarden.core.events import AwayPeriod
from stopwarden.hook.terms import policy_of
from stopwarden.store import marker
from stopwarden.store.port import RecordLine
from stopwarden.work import checkout, gather
from tests.conftest import at
from tests.support.person import Person

MORNING = at("2026-12-01 07:30")
TODO = "# Parser\n\n- [ ] lexer\n- [ ] parser\n- [x] plan\n- [ ] docs (waits for person: which style)\n"


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Person:
    """A person in a checkout with a list, our hooks installed yesterday."""
    made = Person(tmp_path)
    made.installs()
    made.list(TODO)
    return made


def only_period(person: Person) -> AwayPeriod:
    """The one away period that is open."""
    with person.store() as store:
        (period,) = store.open_periods()
    return period


def lines(person: Person, kind: str) -> list[RecordLine]:
    """The lines of one kind in the away record."""
    with person.store() as store:
        return [line for line in store.lines() if line.kind == kind]


# --- leaving ------------------------------------------------------------------------------------


def test_the_first_five_minutes_fit_one_screen(person: Person) -> None:
    """The terms in one line, one line a session, what stands in the way, and the undo; nothing more."""
    person.save(person.session(title="parser"))
    assert person.types("away", "until", "07:30", "--list", "TODO.md", "--until-done") == 0
    shown = person.said.splitlines()
    assert shown[0] == ("This checkout, until Tue 07:30 Europe/London (8 h 25 min). TODO.md: 2 open, 1 waits for you.")
    assert '  ok    session 7e15 "parser"  hook seen 12 s ago · scheduler on' in shown
    assert "  ok    permission prompts     will be refused and noted" in shown
    assert shown[-1] == "Undo: stopwarden back"
    assert len(shown) <= 24
    assert person.complained == ""


def test_away_is_set_with_all_its_terms(person: Person) -> None:
    """By default for this checkout, from now until then, with the list by its absolute path."""
    assert person.types("away", "until", "07:30", "--list", "TODO.md", "--until-done") == 0
    period = only_period(person)
    assert (period.scope, period.root, period.copy) == ("checkout", person.root, person.copy)
    assert (period.since, period.until, period.zone) == (person.now, MORNING, "Europe/London")
    assert period.lists == (str(person.repo / "TODO.md"),)
    assert (period.until_done, period.also_scripts, period.session) == (True, False, "")
    assert [line.period for line in lines(person, "away")] == [period.id]


def test_the_marker_says_the_same_as_the_database(person: Person) -> None:
    """The file that hooks look at first names the very period."""
    assert person.types("away", "for", "8h") == 0
    assert person.marked() == [only_period(person).id]
    assert only_period(person).until == person.now + 8 * HOUR


def test_away_alone_holds_until_back_and_says_so(person: Person) -> None:
    """No end is stored, and the first line says how it ends."""
    assert person.types("away") == 0
    assert only_period(person).until is None
    assert "until you type `stopwarden back`" in person.said.splitlines()[0]


def test_an_odd_time_is_explained(person: Person) -> None:
    """A time that clocks show twice says which one is meant."""
    person.now = at("2026-10-24 23:05")
    assert person.types("away", "until", "01:30") == 0
    assert only_period(person).until == at("2026-10-25 01:30", fold=1)
    assert "twice" in person.said


@pytest.mark.parametrize(
    "words",
    [
        ("until", "7"),
        ("until", "07:30", "--list", "missing.md"),
        ("until", "07:30", "--list", "."),
        ("until", "07:30", "--set", "blocks_an_hour=0"),
        ("until", "07:30", "--set", "blocks_per_hour=3"),
        ("until", "07:30", "--set", "skew"),
        ("until", "07:30", "--set", "skew=-1"),
        ("until", "07:30", "--session", "nobody"),
        ("until", "07:30", "--session", "7e15", "--everywhere"),
        ("--unknown",),
    ],
)
def test_wrong_words_change_nothing(person: Person, words: tuple[str, ...]) -> None:
    """Exit code 2, and neither database nor marker says away."""
    assert person.types("away", *words) == 2
    with person.store() as store:
        assert store.periods() == []
    assert person.marked() == []


def test_a_missing_list_says_what_a_list_is(person: Person) -> None:
    """The refusal names the path, that nothing was set, and what an item looks like."""
    person.types("away", "--list", "missing.md")
    assert str(person.repo / "missing.md") in person.complained
    assert "You are not away" in person.complained
    assert "- [ ] what to do" in person.complained


def test_scopes_and_switches_are_stored_as_typed(person: Person) -> None:
    """Everywhere, one session, and scripts too."""
    person.save(person.session("9a02bbbb"))
    assert person.types("away", "--everywhere", "--also-scripts") == 0
    assert person.types("away", "--session", "9a02") == 0
    with person.store() as store:
        scopes = {(one.scope, one.session, one.also_scripts) for one in store.open_periods()}
    assert scopes == {("everywhere", "", True), ("session", "9a02bbbb", False)}
    assert "Undo: stopwarden back --session 9a02bbbb" in person.said


def test_a_second_away_replaces_the_first_of_the_same_scope(person: Person) -> None:
    """The first is ended as replaced, the marker names the second alone, and it is said."""
    person.types("away", "until", "06:00", "--list", "TODO.md")
    first = only_period(person)
    person.now += 600
    assert person.types("away", "until", "07:30", "--list", "TODO.md") == 0
    second = only_period(person)
    assert (second.until, person.marked()) == (MORNING, [second.id])
    with person.store() as store:
        ended = {one.id: (one.ended_at, one.ended_why) for one in store.periods() if one.ended_at is not None}
    assert ended == {first.id: (person.now, "replaced")}
    assert "It replaces the time away until Tue 06:00" in person.said


def test_another_scope_is_left_alone_and_mentioned(person: Person) -> None:
    """A period everywhere and one of this checkout hold side by side; the narrower one is said to win."""
    person.types("away", "until", "06:00", "--everywhere")
    assert person.types("away", "until", "07:30") == 0
    with person.store() as store:
        assert len(store.open_periods()) == 2
    assert "everywhere until Tue 06:00 holds too" in person.said
    person.save(person.session())
    person.types("away", "--session", "7e15")
    assert "everywhere until Tue 06:00 holds too" in person.said
    assert f"{person.root} until Tue 07:30 holds too" in person.said


def test_another_checkouts_night_is_not_mentioned(person: Person) -> None:
    """Two checkouts do not get in each other's way."""
    person.away_since(id="other", root="/elsewhere", copy="zz", until=MORNING)
    assert "also away" not in [one["subject"] for one in findings(person)]


def test_only_the_very_same_scope_is_replaced(person: Person, tmp_path: pathlib.Path) -> None:
    """Neither another checkout's night nor another session's; but this checkout's, also after it was moved."""
    person.save(person.session("7e15aaaa", title="parser"))
    person.save(person.session("9a02bbbb"))
    person.types("away", "--session", "7e15")
    assert person.said.startswith('Session 7e15aaaa "parser", until')
    person.types("away", "--session", "9a02")
    person.types("away")
    other = tmp_path / "other"
    other.mkdir()
    person.cwd = other
    person.types("away")
    with person.store() as store:
        assert len(store.open_periods()) == 4
    moved = tmp_path / "moved"
    os.rename(person.repo, moved)
    person.cwd = moved
    person.types("away")
    with person.store() as store:
        periods = store.open_periods()
    assert len(periods) == 4
    assert str(moved) in [one.root for one in periods]
    assert "It replaces the time away" in person.said


def test_the_record_says_on_what_terms_the_person_left(person: Person) -> None:
    """Whom, until when in UTC, and which lists."""
    person.types("away", "until", "07:30", "--list", "TODO.md", "--until-done")
    person.now += 60
    person.types("away", "--everywhere")
    terms = [line.text for line in lines(person, "away")]
    assert terms == [
        f"{person.root} until 2026-12-01T07:30:00Z, until done, lists: {person.repo / 'TODO.md'}",
        "everywhere until back",
    ]


def test_a_list_of_the_replaced_period_is_not_dropped_in_silence(person: Person) -> None:
    """Only lengthening the night must not lose its list without a word."""
    person.types("away", "until", "06:00", "--list", "TODO.md")
    person.types("away", "until", "07:30")
    assert only_period(person).lists == ()
    assert "WARN  TODO.md" in person.said
    assert "--list TODO.md" in person.said


def test_a_period_whose_time_has_come_is_ended_by_time_not_replaced(person: Person) -> None:
    """The account of last night ends when it was to end."""
    person.types("away", "for", "1h")
    first = only_period(person)
    person.now += 2 * HOUR
    person.types("away", "for", "1h")
    with person.store() as store:
        ended = next(one for one in store.periods() if one.id == first.id)
    assert (ended.ended_at, ended.ended_why) == (first.until, "time")


# --- the terms ----------------------------------------------------------------------------------


def test_the_policy_is_that_of_the_settings_file_and_the_command_line(person: Person) -> None:
    """The file is read once, now; --set wins; lengths may be written out."""
    config = person.home / ".config" / "stopwarden" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("blocks_an_hour = 12\nskew = '10m'\n[away]\nkeeper = true\n", encoding="utf-8")
    assert (
        person.types("away", "--set", "blocks_an_hour=20", "--set", "wall_time=6h", "--set", "unchanged-looks=5") == 0
    )
    with person.store() as store:
        policy = policy_of(store, only_period(person))
    assert policy == policy_from(
        {"blocks_an_hour": 20, "skew": 600, "keeper": True, "wall_time": 6 * HOUR, "unchanged_looks": 5}
    )


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("blocks_without_tools=none", {"blocks_without_tools": None}),
        ("blocks_without_tools=host", {"blocks_without_tools": None}),
        ("blocks_without_tools=", {"blocks_without_tools": None}),
        ("blocks_without_tools=4", {"blocks_without_tools": 4}),
        ("skew = 0", {"skew": 0}),
        ("skew=1h", {"skew": HOUR}),
        ("keeper=yes", {"keeper": True}),
        ("person_prompt_ends=ON", {"person_prompt_ends": True}),
        ("person-prompt-ends=off", {"person_prompt_ends": False}),
        ("wake_evidence=nominal", {"wake_evidence": "nominal"}),
    ],
)
def test_a_setting_is_typed_as_a_person_would(word: str, value: dict[str, object]) -> None:
    """Words for yes and no, lengths, a minus for an underscore, and `none` where the host's own bound serves."""
    assert policy_from_words({}, [word]) == policy_from(value)


@pytest.mark.parametrize(
    "word",
    [
        "blocks_an_hour=none",
        "blocks_an_hour=",
        "blocks_an_hour=1.5",
        "blocks_an_hour=" + "9" * 30,
        "blocks_an_hour=²",
        "skew=4000",
        "skew=30s",
        "keeper=1",
        "wake_evidence=on",
        "wake_evidence=perhaps",
        "=3",
        "skew",
    ],
)
def test_a_setting_out_of_its_range_is_refused(word: str) -> None:
    """With what would be right; never cut to fit."""
    with pytest.raises(StopwardenError) as refused:
        policy_from_words({}, [word])
    assert refused.value.exit_code == 2
    assert refused.value.do


def test_a_settings_file_of_absurd_size_is_not_read(person: Person) -> None:
    """The limit itself is still read."""
    config = person.home / ".config" / "stopwarden" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("#" * FILE_MAX, encoding="utf-8")
    assert person.types("away", "--dry-run") == 0
    config.write_text("#" * (FILE_MAX + 1), encoding="utf-8")
    assert person.types("away") == 2
    assert "longer than 64 kB" in person.complained


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("blocks_per_hour = 3\n", "There is no setting blocks_per_hour"),
        ("blocks_an_hour = 0\n", "from 1 to 1000"),
        ("blocks_an_hour = 3.5\n", "from 1 to 1000"),
        ("keeper = 'perhaps'\n", "True or False"),
        ("skew = 'soon'\n", "skew = 'soon'"),
        ("blocks_an_hour = \n", "cannot be used"),
        ("skew = 300\n[away]\nskew = 300\n", "set twice"),
        ("away = 3\n", "write [away]"),
        ("[guard]\nx = 1\n", "There is no setting guard"),
        ("\udcff\n", "not UTF-8"),
    ],
)
def test_a_settings_file_that_is_not_understood_is_refused_by_name(person: Person, text: str, said: str) -> None:
    """A misspelt bound is never silently the default: nothing is set, the file and the fault are named."""
    config = person.home / "conf" / "stopwarden" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_bytes(text.encode("utf-8", "surrogateescape"))
    person.env["XDG_CONFIG_HOME"] = str(person.home / "conf")
    assert person.types("away") == 2
    assert str(config) in person.complained
    assert said in person.complained
    assert person.marked() == []


def test_a_settings_file_that_cannot_be_opened_is_not_taken_for_none(person: Person) -> None:
    """A directory in its place is a fault, not an empty file."""
    (person.home / ".config" / "stopwarden" / "config.toml").mkdir(parents=True)
    assert person.types("away") == 2
    assert "cannot be used" in person.complained


def test_the_keeper_said_yes_to_at_the_install_is_on_unless_told_otherwise(person: Person) -> None:
    """Its hooks were asked for then; `--set keeper=false` leaves it out for one night."""
    person.installs(keeper=True)
    person.types("away")
    with person.store() as store:
        assert policy_of(store, only_period(person)).keeper
    assert "ok    keeper" in person.said
    person.types("away", "--set", "keeper=false")
    with person.store() as store:
        assert not policy_of(store, only_period(person)).keeper


def test_a_keeper_without_its_hooks_is_warned_of(person: Person) -> None:
    """Wanting it is not having it."""
    person.types("away", "--set", "keeper=on")
    assert "WARN  keeper" in person.said
    assert "stopwarden install claude-code" in person.said


def test_the_list_is_remembered_as_it_is_when_the_person_leaves(person: Person) -> None:
    """What is ticked between leaving and the first stop is work of this night; what was ticked before is not."""
    person.types("away", "--list", "TODO.md")
    person.list(TODO.replace("- [ ] lexer", "- [x] lexer"))
    assert before_states(person) == {"lexer": "open", "parser": "open", "plan": "done", "docs": "waiting"}
    person.now += 60
    person.types("away", "--list", "TODO.md")
    person.list(TODO.replace("- [ ] lexer", "- [x] lexer").replace("- [ ] parser", "- [x] parser"))
    assert before_states(person) == {"lexer": "done", "parser": "open", "plan": "done", "docs": "waiting"}


def test_a_sessions_own_list_is_remembered_too(person: Person) -> None:
    """Where no list was named, the list a known session has already begins the night as it stands."""
    row = person.save(person.session())
    own = pathlib.Path(checkout.own_list_path(person.root, row.id))
    own.parent.mkdir()
    own.write_text("- [ ] lexer\n", encoding="utf-8")
    person.types("away")
    own.write_text("- [x] lexer\n", encoding="utf-8")
    assert before_states(person) == {"lexer": "open"}


def before_states(person: Person) -> dict[str, str]:
    """The state of each item of the list, by its title, as it was when the period began."""
    with person.store() as store:
        period = only_period(person)
        row = person.session()
        seen = gather.gather(store, row, period, person.env, person.now)
    return {item.title: item.before for item in seen.items}


# --- go or no go --------------------------------------------------------------------------------


def findings(person: Person, *words: str) -> list[dict[str, object]]:
    """What the check of a dry run finds."""
    person.types("away", *words, "--dry-run", "--json")
    found: list[dict[str, object]] = json.loads(person.said)["findings"]
    return found


def about(person: Person, subject: str, *words: str) -> dict[str, object]:
    """The one finding whose subject begins so."""
    (found,) = [one for one in findings(person, *words) if str(one["subject"]).startswith(subject)]
    return found


def test_no_session_yet_says_that_one_started_now_is_covered(person: Person) -> None:
    """Nothing known is no alarm."""
    found = about(person, "no session yet")
    assert (found["level"], found["covered"]) == ("note", True)
    assert "started now in this checkout will be covered" in str(found["text"])


def test_hooks_that_are_not_installed_cover_nothing(person: Person) -> None:
    """The person is told before they leave, with the command, and it is no go."""
    os.unlink(person.home / ".claude" / "settings.json")
    assert person.types("away", "--dry-run") == 1
    assert "WARN  hooks" in person.said
    assert "stopwarden install claude-code" in person.said
    assert "Not everything is covered" in person.said


def test_hooks_that_are_switched_off_cover_nothing(person: Person) -> None:
    """The setting and its file are named."""
    local = person.repo / ".claude" / "settings.local.json"
    local.parent.mkdir()
    local.write_text('{"disableAllHooks": true}', encoding="utf-8")
    found = about(person, "hooks")
    assert found["covered"] is False
    assert f"disableAllHooks in {local}" in str(found["text"])


def test_an_organisation_that_allows_only_its_own_hooks_is_named(person: Person) -> None:
    """Managed settings can switch ours off as a whole."""
    person.machine_has("etc/claude-code/managed-settings.json", '{"allowManagedHooksOnly": true}')
    found = about(person, "hooks")
    assert found["covered"] is False
    assert "allowManagedHooksOnly in " in str(found["text"])


def test_settings_that_cannot_be_read_are_said_and_not_taken_for_empty(person: Person) -> None:
    """They may hold hooks or not."""
    local = person.repo / ".claude" / "settings.local.json"
    local.parent.mkdir()
    local.write_text("{ not json", encoding="utf-8")
    found = about(person, "settings")
    assert (found["level"], str(local) in str(found["text"])) == ("warn", True)


def test_a_spool_that_cannot_be_read_stops_neither_away_nor_back(person: Person) -> None:
    """It is said; the person leaves and returns all the same."""
    os.mkdir(f"{person.state_dir}/spool")
    assert person.types("away") == 0
    assert "WARN  spool" in person.said
    assert "may be old" in person.said
    assert person.types("back") == 0
    assert "may be old" in person.complained
    assert person.marked() == []


@pytest.mark.parametrize(
    ("fields", "covered", "said"),
    [
        ({}, True, "hook seen 12 s ago · scheduler on"),
        ({"last_event_at": at("2026-11-28 12:00")}, None, ""),
        ({"last_event_at": at("2026-11-29 23:04")}, None, ""),
        ({"last_event_at": at("2026-11-29 23:05:00"), "last_event": "stop"}, False, "idle since"),
        ({"last_event": "stop"}, False, "no stop will come from it. Type there now: Work through TODO.md"),
        ({"last_event": "notification", "idle_since": at("2026-11-30 22:50")}, False, "idle since 22:50"),
        ({"permission_mode": "plan"}, False, "Leave plan mode there now"),
        (
            {"last_event": "notification", "waits_on_person": "permission", "waits_since": at("2026-11-30 22:00")},
            False,
            "Answer it in that session now",
        ),
        (
            {"last_event": "stop-failure", "error": "overloaded", "error_at": at("2026-11-30 23:04")},
            False,
            "overloaded",
        ),
        ({"last_event_at": at("2026-11-30 22:30")}, True, "Look at it now"),
        ({"last_event_at": at("2026-11-30 20:30")}, False, "Look at it now"),
        ({"entrypoint": "sdk-cli"}, None, ""),
        ({"root": "/elsewhere", "copy": "other"}, None, ""),
        ({"ended_at": at("2026-11-30 23:04:48"), "last_event": "session-end"}, None, ""),
    ],
)
def test_each_session_is_told_whether_this_night_holds_for_it(
    person: Person, fields: dict[str, object], covered: bool | None, said: str
) -> None:
    """In a turn it is covered; idle, planning, behind a dialog or after an error no stop will come, and it is said."""
    person.save(person.session(**fields))
    found = [one for one in findings(person, "--list", "TODO.md") if str(one["subject"]).startswith("session")]
    assert [one["covered"] for one in found] == ([] if covered is None else [covered])
    if found:
        assert said in str(found[0]["text"])
        assert found[0]["level"] == ("ok" if covered and fields == {} else "warn")


def test_a_session_unheard_of_since_the_install_is_to_be_restarted(person: Person) -> None:
    """It runs with the hooks of the time it was started."""
    person.save(person.session(title="docs"))
    person.installs(when=person.now - 5)
    found = about(person, "session 7e15")
    assert found["covered"] is False
    assert "not covered. Restart it." in str(found["text"])


def test_a_scheduler_that_is_switched_off_is_said_before_leaving(person: Person) -> None:
    """With the scheduler off by the host's own settings a session can work but never wait."""
    settings = person.home / ".claude" / "settings.json"
    told = json.loads(settings.read_text(encoding="utf-8"))
    settings.write_text(json.dumps({**told, "env": {"CLAUDE_CODE_DISABLE_CRON": "1"}}), encoding="utf-8")
    person.save(person.session())
    found = about(person, "session 7e15")
    assert found["level"] == "warn"
    assert "CLAUDE_CODE_DISABLE_CRON" in str(found["text"])


def test_a_program_that_was_open_before_the_install_is_not_covered(person: Person) -> None:
    """Told from the machine's own list of processes, with its number and since when it is open."""
    person.installs(when=person.now - 600)
    booted = person.now - 10_000
    person.machine_has("proc/stat", f"cpu 1 2 3\nbtime {booted}\n")
    for pid, ticks in (("4711", 100_000), ("4712", 990_000)):
        person.machine_has(f"proc/{pid}/cmdline", "/usr/local/bin/claude\0--resume\0")
        person.machine_has(f"proc/{pid}/stat", f"{pid} (claude) S " + "0 " * 18 + f"{ticks} 0\n")
        os.symlink(person.repo, person.system / "proc" / pid / "cwd")
    person.machine_has("proc/4713/cmdline", "/usr/bin/vim\0claude\0notes\0".replace("claude\0", ""))
    person.save(person.session())
    found = [one for one in findings(person) if str(one["subject"]).startswith("program")]
    assert [one["subject"] for one in found] == ["program 4711"]
    assert "not covered. Restart it" in str(found[0]["text"])


def test_a_program_more_than_the_sessions_heard_of_is_not_covered(person: Person) -> None:
    """A second open program of which no event ever came."""
    for pid in ("4711", "4712"):
        person.machine_has(f"proc/{pid}/cmdline", "claude\0")
        os.symlink(person.repo, person.system / "proc" / pid / "cwd")
    person.save(person.session())
    found = [one for one in findings(person) if str(one["subject"]).startswith("program")]
    assert [one["covered"] for one in found] == [False]
    person.save(person.session("9a02bbbb", ended_at=person.now - 12, last_event="session-end"))
    assert len([one for one in findings(person) if str(one["subject"]).startswith("program")]) == 1
    person.save(person.session("9a02bbbb"))
    assert not [one for one in findings(person) if str(one["subject"]).startswith("program")]


def test_on_battery_is_warned_of_with_what_to_do(person: Person) -> None:
    """Sleep stops everything; the charge is named."""
    person.machine_has("sys/class/power_supply/BAT0/type", "Battery\n")
    person.machine_has("sys/class/power_supply/BAT0/status", "Discharging\n")
    person.machine_has("sys/class/power_supply/BAT0/capacity", "64\n")
    found = about(person, "on battery")
    assert (found["level"], found["subject"]) == ("warn", "on battery (64 %)")
    assert "Plug in, and keep it awake: " in str(found["text"])


def test_a_plugged_in_laptop_may_still_sleep_unless_something_keeps_it_awake(person: Person) -> None:
    """A note, not a warning; none at all while an inhibitor holds; a mouse's battery is no laptop."""
    person.machine_has("sys/class/power_supply/mouse/type", "Battery\n")
    person.machine_has("sys/class/power_supply/mouse/scope", "Device\n")
    assert not [one for one in findings(person) if one["subject"] in ("plugged in", "on battery")]
    person.machine_has("sys/class/power_supply/AC/type", "Mains\n")
    person.machine_has("sys/class/power_supply/AC/online", "1\n")
    person.machine_has("sys/class/power_supply/BAT0/type", "Battery\n")
    person.machine_has("sys/class/power_supply/BAT0/status", "Full\n")
    assert about(person, "plugged in")["level"] == "note"
    person.machine_has("run/systemd/inhibit/1.ref", "WHAT=idle:sleep\nMODE=delay\n")
    person.machine_has("run/systemd/inhibit/2.ref", "WHAT=shutdown\nMODE=block\n")
    assert about(person, "plugged in")["level"] == "note"
    person.machine_has("run/systemd/inhibit/1.ref", "WHAT=idle:sleep\nMODE=block\n")
    assert not [one for one in findings(person) if one["subject"] == "plugged in"]


def test_a_battery_that_nothing_feeds_is_on_battery_whatever_it_says_of_itself(person: Person) -> None:
    """Some report no state; then the mains decide. What keeps the machine awake need not be advised again."""
    person.machine_has("sys/class/power_supply/BAT0/type", "Battery\n")
    person.machine_has("sys/class/power_supply/BAT0/status", "Unknown\n")
    person.machine_has("sys/class/power_supply/AC/type", "Mains\n")
    person.machine_has("sys/class/power_supply/AC/online", "0\n")
    person.machine_has("run/systemd/inhibit/1.ref", "WHAT=sleep\nMODE=block\n")
    found = about(person, "on battery")
    assert found["text"] == "sleep stops everything. Plug in."


def test_a_list_with_nothing_open_is_a_warning_not_an_error(person: Person) -> None:
    """It may be what the person wants, so it is only said."""
    person.list("- [x] all done\n", "done.md")
    person.list("no list at all\n", "empty.md")
    assert person.types("away", "--list", "done.md", "--list", "empty.md") == 0
    assert "has no open item" in person.said
    assert "holds no item. An item is a line such as: - [ ] what to do" in person.said
    person.list("- not\n- boxed\n", "plain.md")
    person.types("away", "--list", "plain.md")
    assert "holds no item (2 bullets without a box)" in person.said


def test_a_list_that_another_night_names_too_is_warned_of(person: Person) -> None:
    """Two checkouts on one list would do one item twice."""
    path = person.list(TODO)
    person.away_since(id="other", root="/elsewhere", copy="zz", lists=(path,), until=MORNING)
    found = about(person, "TODO.md", "--list", "TODO.md")
    assert found["level"] == "warn"
    assert "/elsewhere until Tue 07:30" in str(found["text"])


def test_two_sessions_on_one_list_are_noted(person: Person) -> None:
    """Both would be told the same next item."""
    person.save(person.session("7e15aaaa"))
    person.save(person.session("9a02bbbb"))
    assert "2 sessions share it" in str(about(person, "TODO.md", "--list", "TODO.md")["text"])
    assert not [one for one in findings(person) if one["subject"] == "no session yet"]
    person.save(person.session("9a02bbbb", ended_at=person.now - 12, last_event="session-end"))
    assert not [one for one in findings(person, "--list", "TODO.md") if one["subject"] == "TODO.md"]


def test_a_list_that_is_there_but_was_not_named_is_pointed_out(person: Person) -> None:
    """Forgetting --list is the commonest slip."""
    assert "--list TODO.md" in str(about(person, "TODO.md")["text"])


@pytest.mark.parametrize("word", ["off", "observe"])
def test_a_forgotten_switch_is_no_go(person: Person, word: str) -> None:
    """Away while switched off holds nothing."""
    person.save(person.session())
    person.types(word)
    assert person.types("away", "--dry-run") == 1
    assert f"switched {word}" in person.said
    assert about(person, f"switched {word}")["covered"] is False
    assert about(person, "session 7e15")["covered"] is False
    assert "stopwarden on" in person.said


def test_what_is_not_covered_is_recorded_with_the_night(person: Person) -> None:
    """The report can say in the morning that the evening said so."""
    person.save(person.session(title="docs", last_event="stop"))
    person.types("away")
    (line,) = lines(person, "not_covered")
    assert (line.session, line.period) == ("7e15aaaa", only_period(person).id)
    assert "no stop will come from it" in line.text


def test_a_dry_run_changes_nothing(person: Person) -> None:
    """No period, no marker, no line; go is exit code 0."""
    person.save(person.session())
    assert person.types("away", "until", "07:30", "--dry-run") == 0
    assert person.said.startswith("Would be away: This checkout")
    assert person.said.endswith("Nothing was changed.\n")
    assert person.marked() == []
    with person.store() as store:
        assert (store.periods(), store.lines()) == ([], [])


def test_facts_left_in_the_spool_are_heard_before_the_check(person: Person) -> None:
    """A session known only from what its hooks left while nothing was armed counts as seen."""
    person.spools("prompt")
    assert "hook seen 0 s ago" in str(about(person, "session 7e15")["text"])


def test_a_session_blocked_a_moment_ago_is_at_work_in_the_next_period_too(person: Person) -> None:
    """Going away again in the middle of a turn does not make the turn idle."""
    from stopwarden.store.port import VerdictRow

    with person.store() as store:
        number = store.append_verdict(VerdictRow(at=person.now - 12, session="7e15aaaa", period="p0", kind="block"))
    person.save(person.session(last_event="stop", last_verdict=number))
    assert about(person, "session 7e15")["covered"] is True


def test_a_session_that_waits_for_its_look_is_covered(person: Person) -> None:
    """Its wake stands from the period before; when it looks is said instead of when it was heard."""
    look = at("2026-11-30 23:40")
    person.save(person.session(last_event="stop"), period="p0", next_look=look, next_look_latest=look)
    found = about(person, "session 7e15")
    assert (found["level"], found["text"]) == ("ok", "waits, looks again at 23:40")


def test_the_answer_as_json_holds_terms_findings_and_undo(person: Person) -> None:
    """Instants in UTC with their zone, everything else as stored."""
    assert person.types("away", "until", "07:30", "--list", "TODO.md", "--json") == 0
    told = json.loads(person.said)
    assert told["away"] is True
    assert (told["period"]["since"], told["period"]["until"]) == ("2026-11-30T23:05:00Z", "2026-12-01T07:30:00Z")
    assert told["lists"] == [
        {"path": str(person.repo / "TODO.md"), "of": 3, "done": 0, "open": 2, "waits_for_you": 1, "waits": 0}
    ]
    assert told["undo"] == "stopwarden back"
    assert {"level", "subject", "text", "session", "covered"} == set(told["findings"][0])


# --- agents -------------------------------------------------------------------------------------


def test_an_agent_may_go_away_but_not_change_the_persons_terms(person: Person) -> None:
    """Arming is open to everybody; a shorter or laxer away in place of the person's is refused."""
    person.types("away", "until", "07:30")
    period = only_period(person)
    person.env["CLAUDECODE"] = "1"
    for words in (("for", "1m"), ("--everywhere",), ("--set", "blocks_a_period=1")):
        assert person.types("away", *words) == 2
    assert only_period(person) == period
    assert "terms of their own" in person.complained
    del person.env["CLAUDECODE"]
    person.types("back")
    person.env["CLAUDECODE"] = "1"
    assert person.types("away", "for", "1h") == 0


@pytest.mark.parametrize("words", [("back",), ("back", "--all"), ("back", "--session", "7e15")])
def test_an_agent_may_not_end_away(person: Person, words: tuple[str, ...]) -> None:
    """Inside an agent's environment `back` is refused; period and marker stand."""
    person.save(person.session())
    person.types("away", "until", "07:30")
    period = only_period(person)
    person.env["CLAUDE_CODE_SESSION_ID"] = "7e15aaaa"
    assert person.types(*words) == 2
    assert "Only the person may end away" in person.complained
    assert "stopwarden on --agents-may-end yes" in person.complained
    assert (only_period(person), person.marked()) == (period, [period.id])


# --- coming back --------------------------------------------------------------------------------


def test_back_ends_this_checkouts_night_and_tells_it_in_one_line(person: Person) -> None:
    """Database first, marker with it, a line in the record, and where to read more."""
    person.types("away", "until", "07:30", "--list", "TODO.md")
    period = only_period(person)
    person.now = at("2026-12-01 06:10")
    assert person.types("back") == 0
    with person.store() as store:
        (ended,) = store.periods()
        assert store.open_periods() == []
    assert (ended.ended_at, ended.ended_why, person.marked()) == (person.now, "back", [])
    assert not os.path.exists(f"{person.state_dir}/{marker.NAME}")
    assert [line.period for line in lines(person, "back")] == [period.id]
    shown = person.said.splitlines()
    assert shown[0].startswith("Mon 23:05 - Tue 06:10")
    assert shown[-1] == "The whole night: stopwarden report"


def test_back_with_nothing_to_end_says_so(person: Person) -> None:
    """Exit code 1 and a plain sentence, never an error."""
    assert person.types("back") == 1
    assert person.said == "You were not away: there is nothing to end.\n"
    assert person.complained == ""


def test_a_second_back_says_when_it_ended(person: Person) -> None:
    """Nothing is ended twice."""
    person.types("away", "until", "07:30")
    person.types("back")
    person.now += 3 * 60
    assert person.types("back") == 1
    assert "away ended at 23:05, 3 min ago" in person.said
    assert len(lines(person, "back")) == 1


def test_back_after_the_time_tells_the_night_that_ended_by_itself(person: Person) -> None:
    """In the morning the person reads the same line, the end being the time they set."""
    person.types("away", "until", "07:30")
    person.now = at("2026-12-01 07:45")
    assert person.types("back") == 0
    with person.store() as store:
        (ended,) = store.periods()
    assert (ended.ended_at, ended.ended_why) == (MORNING, "time")
    assert "Mon 23:05 - Tue 07:30" in person.said
    assert "ended by itself" in person.said
    assert person.types("back") == 1
    assert "by itself at 07:30, 15 min ago" in person.said


def test_away_ends_at_its_very_second(person: Person) -> None:
    """`back` a second before the time ends it; at the time it had ended by itself."""
    person.types("away", "until", "07:30")
    person.now = MORNING
    person.types("back")
    assert "ended by itself" in person.said
    person.now = at("2026-11-30 23:05")
    person.types("away", "until", "07:30")
    person.now = MORNING - 1
    person.types("back")
    assert "ended by itself" not in person.said


def test_back_in_another_checkout_ends_nothing_and_says_where_away_holds(
    person: Person, tmp_path: pathlib.Path
) -> None:
    """Another checkout's night is not ended by accident; `--all` ends it."""
    person.types("away", "until", "07:30")
    root = person.root
    other = tmp_path / "other"
    other.mkdir()
    person.cwd = other
    assert person.types("back") == 1
    assert f"You are away for {root} until Tue 07:30: stopwarden back --all" in person.said
    assert only_period(person).ended_at is None
    assert person.types("back", "--all") == 0
    assert person.marked() == []


def test_back_ends_what_holds_everywhere_where_nothing_narrower_does(person: Person) -> None:
    """First the checkout's own night, and says what still holds; then the one everywhere."""
    person.types("away", "--everywhere")
    person.types("away", "until", "07:30")
    assert person.types("back") == 0
    assert "Still away: every checkout. To end that too: stopwarden back --all" in person.said
    assert only_period(person).scope == "everywhere"
    assert person.types("back") == 0
    assert person.marked() == []


def test_back_also_ends_the_nights_of_single_sessions_here(person: Person) -> None:
    """Those of this checkout's sessions, not those of another's."""
    person.save(person.session("7e15aaaa"))
    person.save(person.session("9a02bbbb", root="/elsewhere", copy="zz"))
    person.types("away", "--session", "7e15")
    person.types("away", "--session", "9a02")
    assert person.types("back") == 0
    assert only_period(person).session == "9a02bbbb"
    assert "Still away: session 9a02bbbb" in person.said


def test_back_finds_a_checkout_that_was_moved_meanwhile(person: Person, tmp_path: pathlib.Path) -> None:
    """By the key that lies in it, not by its path; a look makes no new key."""
    person.types("away")
    person.save(person.session("7e15aaaa"))
    person.types("away", "--session", "7e15")
    person.cwd = tmp_path / "moved"
    os.rename(person.repo, person.cwd)
    assert person.types("back") == 0
    with person.store() as store:
        assert store.open_periods() == []


def test_back_in_a_place_without_a_key_ends_no_night_without_one(person: Person, tmp_path: pathlib.Path) -> None:
    """Two checkouts of which no key is known are not the same for that."""
    person.away_since(root="/elsewhere", copy="")
    person.cwd = tmp_path / "fresh"
    person.cwd.mkdir()
    assert person.types("back") == 1
    assert only_period(person).root == "/elsewhere"


def test_the_last_of_several_nights_is_the_one_that_is_told(person: Person) -> None:
    """Nothing to end: the end that was last is named."""
    person.types("away", "for", "1h")
    person.now += 2 * HOUR
    person.types("back")
    person.types("away")
    person.now += HOUR
    person.types("back")
    person.now += 60
    assert person.types("back") == 1
    assert "away ended at 02:05, 1 min ago" in person.said


def test_back_for_one_session_leaves_the_checkouts_night(person: Person) -> None:
    """Only the session's own period ends."""
    person.save(person.session())
    person.types("away", "until", "07:30")
    person.types("away", "--session", "7e15")
    assert person.types("back", "--session", "7e15") == 0
    assert only_period(person).scope == "checkout"
    assert person.types("back", "--session", "7e15") == 1
    assert "No away period to end for session 7e15" in person.said


def test_back_works_after_the_database_was_damaged_in_the_night(person: Person) -> None:
    """The damage is said, the marker's periods are ended in the new database, and the person is back."""
    person.types("away", "until", "07:30")
    for name in os.listdir(person.state_dir):
        if name.startswith("stopwarden.db"):
            pathlib.Path(person.state_dir, name).write_bytes(b"junk " * 2000)
    assert person.types("back") == 0
    assert "damaged" in person.complained
    assert person.marked() == []
    with person.store() as store:
        assert [one.ended_why for one in store.periods()] == ["back"]


def test_back_takes_away_a_marker_that_nobody_can_read(person: Person) -> None:
    """Unreadable means armed for hooks; the person at the terminal ends that too."""
    with person.store():
        pass
    pathlib.Path(person.state_dir, marker.NAME).write_text("not a marker", encoding="utf-8")
    assert person.types("back") == 0
    assert "could not be read" in person.said
    assert marker.read(person.state_dir) is None


def test_back_as_json_tells_each_night(person: Person) -> None:
    """The account of what ended, and what still holds."""
    person.types("away", "until", "07:30")
    assert person.types("back", "--json") == 0
    told = json.loads(person.said)
    assert told["still_away"] == []
    assert told["ended"][0]["periods"][0]["ended_why"] == "back"
    assert person.types("back", "--json") == 1
    assert json.loads(person.said)["ended"] == []


def test_the_period_that_hooks_find_is_the_one_that_was_set(person: Person) -> None:
    """The policy travels with the marker too, for the night in which the database is lost."""
    person.types("away", "--set", "blocks_an_hour=7")
    told = wire.loads(pathlib.Path(person.state_dir, marker.NAME).read_bytes())
    assert wire.loads(told["periods"][0]["policy"])["blocks_an_hour"] == 7


def test_the_longest_away_is_a_month(person: Person) -> None:
    """A slip in a date does not leave sessions held for a year."""
    assert person.types("away", "for", "32d") == 2
    assert person.types("away", "for", "31d") == 0
    assert only_period(person).until == person.now + 31 * DAY


@pytest.mark.parametrize(("command", "example"), [("away", "stopwarden away until 07:30"), ("back", "stopwarden back")])
def test_help_shows_an_example_and_the_exit_codes(
    person: Person, command: str, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a new user types first, and what a script can rely on."""
    assert person.types(command, "--help") == 0
    shown = capsys.readouterr().out
    assert example in shown
    assert "exit codes: 0" in shown


def test_until_done_without_a_list_is_a_warning(tmp_path: pathlib.Path) -> None:
    """A session whose own list is still empty has nothing to do and may stop at once: said before the person leaves."""
    person = Person(tmp_path)
    assert person.types("away", "for", "8h", "--until-done") == 0
    assert "--until-done" in person.said
    assert "may stop at once" in person.said


def test_of_two_away_at_the_same_moment_one_stays(person: Person) -> None:
    """Two terminals, one instant: whichever way they interleave, one period of the scope is open, never two or none."""
    for _ in range(8):
        both = threading.Barrier(2)

        def leave(meet: threading.Barrier = both) -> None:
            context = Context(env=person.env, cwd=str(person.cwd), now=lambda: person.now, zone=person.zone,
                              out=io.StringIO(), err=io.StringIO(), ask=lambda question: None, system=str(person.system))  # fmt: skip
            meet.wait()
            main(["away", "until", "07:30", "--list", "TODO.md"], context)

        threads = [threading.Thread(target=leave) for _ in range(2)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert person.marked() == [only_period(person).id]
        person.now += 60
