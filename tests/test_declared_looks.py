"""A look that a session declares itself counts as a wake on a host without wakes, and only while somebody keeps it."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

from stopwarden import machine, wire
from stopwarden.core.bounds import HOUR, MINUTE, Policy
from stopwarden.hook import declared
from stopwarden.hook.declared import declared_look
from stopwarden.store.port import KeeperRow
from tests.conftest import at
from tests.support.night import SESSION, HookNight, cron
from tests.support.person import Person

HOST = "claude-code"
LOOK = at("2026-11-30 21:40")


def a_watch(night: HookNight, *, resume: str = "d1", proven: bool = True, **fields: Any) -> None:
    """A living `stopwarden watch` (this very process) whose resume command is proven for the host."""
    made = {"pid": os.getpid(), "started": str(machine.started_ticks()), "at": night.now, "resume": resume}
    store = night.store()
    store.save_fact(*declared.WATCH, wire.dumps(declared.Watch(**{**made, **fields}).as_dict()))
    if proven:
        store.save_fact(declared.PROVEN, HOST, f"{resume} {night.now}")
    store.close()


def declares(night: HookNight, look: int = LOOK) -> None:
    """The session runs `stopwarden look --at`."""
    store = night.store()
    store.save_fact(declared.LOOK, SESSION, str(look))
    store.close()


def a_keeper(night: HookNight, **fields: Any) -> None:
    """The session's living keeper (this very process)."""
    made = {"session": SESSION, "pid": os.getpid(), "started": str(machine.started_ticks()), "generation": 1}
    store = night.store()
    store.save_keeper(KeeperRow(**{**made, "at": night.now, **fields}))
    store.close()


@pytest.fixture
def night(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> HookNight:
    """A script's session of a program that reports no wakes, blocked once; it declared a look for 21:40."""
    made = HookNight(tmp_path)
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    made.away(also_scripts=True)
    assert made.send("stop", session_crons=None)["decision"] == "block"
    declares(made)
    return made


def test_it_counts_while_a_watch_with_a_proven_command_lives(night: HookNight) -> None:
    """Blocked before; with the watch there the same stop may wait, and its next look is the declared one, to the second."""
    assert night.send("stop", session_crons=None)["decision"] == "block"
    a_watch(night)
    assert "decision" not in night.send("stop", session_crons=None)
    store = night.store()
    state = store.state(SESSION)
    assert (state.next_look, state.next_look_latest) == (LOOK, LOOK)
    assert store.verdicts()[-1].kind == "waiting"


@pytest.mark.case("BR-169")
@pytest.mark.parametrize(
    "watch",
    [
        pytest.param({"started": "12345"}, id="its process is gone"),
        pytest.param({"pid": 2**22 - 3}, id="its pid is nobody's"),
        pytest.param({"at": at("2026-11-30 20:50")}, id="it hangs: no look for ten minutes"),
        pytest.param({"resume": ""}, id="it resumes nobody"),
        pytest.param({"proven": False}, id="its command is not proven"),
    ],
)
def test_a_watch_that_would_not_keep_it_makes_it_no_wake(night: HookNight, watch: dict[str, Any]) -> None:
    """Away is set and somebody once promised to look, but nobody would: the session with work owed is blocked."""
    a_watch(night, **watch)
    assert night.send("stop", session_crons=None)["decision"] == "block"


def test_another_command_than_the_proven_one_proves_nothing(night: HookNight) -> None:
    """The proof is of one command, known by its digest."""
    a_watch(night, resume="d1")
    a_watch(night, resume="d2", proven=False)
    assert night.send("stop", session_crons=None)["decision"] == "block"


def test_a_living_keeper_keeps_it_too(tmp_path: pathlib.Path) -> None:
    """In a terminal with the keeper on, the session waits until the look it declared, sooner than the keeper's own."""
    night = HookNight(tmp_path)
    night.away(policy=Policy(keeper=True))
    night.send("stop", session_crons=None)
    declares(night)
    a_keeper(night)
    night.send("stop", session_crons=None)
    assert night.store().state(SESSION).next_look == LOOK
    a_keeper(night, started="12345", generation=2)
    assert night.send("stop", session_crons=None)["decision"] == "block"


def test_for_a_session_in_a_terminal_a_watch_keeps_nothing(tmp_path: pathlib.Path) -> None:
    """Its program stays open, and a second one beside it would spoil the conversation; so the stop is blocked."""
    night = HookNight(tmp_path)
    night.away()
    night.send("stop", session_crons=None)
    declares(night)
    a_watch(night)
    assert night.send("stop", session_crons=None)["decision"] == "block"


def test_where_the_host_reports_wakes_only_those_count(night: HookNight) -> None:
    """An empty list of wakes is the host's word: the declaration stands beside it and counts for nothing."""
    a_watch(night)
    assert night.send("stop", session_crons=[])["decision"] == "block"
    store = night.store()
    assert declared_look(store, SESSION, HOST, night.now) == LOOK, "kept, and yet not asked for"


@pytest.mark.case("A150")
@pytest.mark.parametrize(
    ("look", "waits"),
    [("2026-11-30 21:59", True), ("2026-11-30 22:30", False), ("2026-11-30 20:59", False)],
)
def test_it_must_come_by_the_deadline_like_any_wake(night: HookNight, look: str, waits: bool) -> None:
    """A host without wakes: within the hour it counts; later, or past already, the stop is blocked, never let go in silence."""
    a_watch(night)
    declares(night, at(look))
    answer = night.send("stop", session_crons=None)
    assert ("decision" not in answer) is waits
    if not waits:
        for _ in range(12):
            night.send("stop", session_crons=None)
        assert "stopped_with_work_owed" in night.lines(), "the bound is in the record"


def test_the_function_says_when_and_why_not(night: HookNight) -> None:
    """What `status` and `doctor` tell: nothing declared, past, not kept and why."""
    store = night.store()
    assert declared_look(store, "nobody", HOST, night.now) is None
    assert declared_look(store, SESSION, HOST, night.now) is None
    told = declared.declared(store, SESSION, HOST, night.now)
    assert told is not None
    assert "no `stopwarden watch` runs" in told.why
    a_watch(night)
    assert declared_look(store, SESSION, HOST, LOOK - 1 * MINUTE) is None, "by then that watch hangs"
    a_watch(night, at=LOOK - 1 * MINUTE)
    assert declared_look(store, SESSION, HOST, LOOK - 1 * MINUTE) == LOOK
    assert declared_look(store, SESSION, HOST, LOOK) is None
    store.save_fact(declared.LOOK, SESSION, "soon")
    assert declared.declared(store, SESSION, HOST, night.now) is None


def test_look_declares_for_the_session_that_runs_it(tmp_path: pathlib.Path) -> None:
    """Inside an agent the line goes to the list and the declaration to the store; it says whether it will be kept."""
    person = Person(tmp_path)
    path = person.list("- [ ] A\n")
    person.away_since(id="n1", lists=(path,))
    person.save(person.session(SESSION))
    person.env["CLAUDE_CODE_SESSION_ID"] = SESSION
    assert person.types("look", "--at", "23:40", "the", "build") == 0
    assert "It is no wake: no keeper lives" in person.said
    assert person.fact("look", SESSION) == str(at("2026-11-30 23:40"))
    assert (person.repo / "TODO.md").read_text().endswith("- look 23:40: the build\n")
    person.save(person.session(SESSION, last_verdict=1))
    person.types("look", "--at", "23:50")
    assert "reports its own wakes" in person.said


def test_a_person_declares_nothing(tmp_path: pathlib.Path) -> None:
    """Without a session it is a line on the list."""
    person = Person(tmp_path)
    person.list("- [ ] A\n")
    assert person.types("look", "--at", "23:40") == 0
    assert "wakes nobody" in person.said
    assert not os.path.exists(f"{person.state_dir}/stopwarden.db")


def test_a_wake_of_the_host_is_still_the_better_one(night: HookNight) -> None:
    """A later version of the program reports wakes again: the sooner real one is chosen, and nothing is doubled."""
    a_watch(night)
    night.send("stop", session_crons=[cron("21:30")])
    assert "decision" not in night.send("stop", session_crons=[cron("21:30")])
    assert night.store().state(SESSION).next_look == at("2026-11-30 21:30")
    assert LOOK - night.now < HOUR


def test_status_and_doctor_say_whether_it_counts_and_why_not(tmp_path: pathlib.Path) -> None:
    """With nobody to keep it: the reason. With a proven watch: that it counts, and that the watch runs."""
    person = Person(tmp_path)
    person.installs()
    path = person.list("- [ ] A\n")
    person.away_since(id="n1", lists=(path,), also_scripts=True)
    person.save(person.session(SESSION, entrypoint="sdk-cli", last_verdict=1))
    with person.store() as store:
        store.save_fact("no_wakes_said", SESSION, "1")
        store.save_fact(declared.LOOK, SESSION, str(person.now + HOUR))
    person.types("status")
    assert (
        "the look it declared for Tue 00:05 does not count: no keeper lives and no `stopwarden watch` runs"
        in person.said
    )
    watch = declared.Watch(pid=os.getpid(), started=str(machine.started_ticks()), at=person.now, resume="d1")
    with person.store() as store:
        store.save_fact(*declared.WATCH, wire.dumps(watch.as_dict()))
    person.types("status")
    assert "its resume command is not proven for this host" in person.said
    person.types("doctor", "--quick")
    assert "its resume command is not proven" in person.said
    with person.store() as store:
        store.save_fact(declared.PROVEN, HOST, f"d1 {person.now}")
    person.types("status")
    assert "the look it declared for Tue 00:05 counts as its wake" in person.said
    assert f"stopwarden watch runs (process {os.getpid()})" in person.said
    person.types("doctor", "--quick")
    assert "its resume command is proven" in person.said
