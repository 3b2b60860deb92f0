"""A night on the ledger, as a session lives it: offered, begun, kept owed by its command, done, and left behind."""

from __future__ import annotations

import pathlib

import pytest

from stopwarden.core.bounds import HOUR, MINUTE
from tests.support.night import SESSION, HookNight, cron

OTHER = "5d0c7a52-0000-4000-8000-00000000000b"


@pytest.fixture
def night(tmp_path: pathlib.Path) -> HookNight:
    """Two items in the ledger, the second needs the first and has a command; the person has left without a list."""
    night = HookNight(tmp_path, todo=None)
    assert night.types("add", "write the lexer", "--ledger") == 0
    assert night.types("add", "write the parser", "--after", "w1", "--verify", "test -f parser") == 0
    night.away(lists=False)
    return night


def acts(night: HookNight, session: str, *words: str) -> int:
    """A command that the session's agent types in its shell."""
    return night.types(*words, session=session)


def reason(night: HookNight, session: str = SESSION, at: str = "21:40") -> str:
    """Why the session's stop, with a wake in time, is blocked; "" if it may wait."""
    return str(night.send("stop", session_id=session, session_crons=[cron(at, "the wake")]).get("reason", ""))


@pytest.mark.case("BR-022")
def test_a_session_stays_until_the_command_of_its_item_has_passed(night: HookNight) -> None:
    """Offered in order; begun it is owed; its own word does not make it done; the command does."""
    assert 'w1 of ledger, "write the lexer"' in reason(night)
    assert acts(night, SESSION, "start", "w1") == 0
    assert "w1" in reason(night)
    assert acts(night, SESSION, "done", "w1") == 0
    assert acts(night, SESSION, "start", "w2") == 0
    assert '"write the parser"' in reason(night)
    for _ in range(2):
        assert acts(night, SESSION, "done", "w2") == 1
        assert acts(night, SESSION, "done", "w2", "--unverified") == 2
    reason(night)
    blocked = night.send("stop", session_id=SESSION, session_crons=[])
    assert "w2" in blocked["reason"]
    (night.project / "parser").touch()
    assert acts(night, SESSION, "done", "w2") == 0
    answers = [reason(night) for _ in range(3)]
    assert answers[-1] == ""
    assert not any("w2" in one for one in answers)


def test_a_sleeper_finishes_nothing_and_the_other_goes_on_with_it(night: HookNight) -> None:
    """Its lease ran out: refused with what to do; the other session starts it under the next token."""
    for session in (SESSION, OTHER):
        reason(night, session)
    assert acts(night, SESSION, "start", "w1") == 0
    assert acts(night, OTHER, "start", "w1") == 3
    night.now += 2 * HOUR
    assert acts(night, SESSION, "done", "w1") == 2
    assert "lapsed" in night.complained
    assert acts(night, OTHER, "start", "w1") == 3
    night.now += 5 * MINUTE
    assert acts(night, OTHER, "start", "w1") == 0
    assert "token 2" in night.said
    assert acts(night, SESSION, "done", "w1") == 3
    assert acts(night, OTHER, "done", "w1") == 0
    assert acts(night, OTHER, "list", "--ready") == 0
    assert "w2" in night.said


def test_an_item_that_waits_for_the_person_is_said_and_lets_the_session_wait(night: HookNight) -> None:
    """One more block for what the agent has parked, then it may wait; the morning's start takes it up again."""
    reason(night)
    acts(night, SESSION, "start", "w1")
    assert "w1" in reason(night)
    assert acts(night, SESSION, "wait", "w1", "--for", "person", "--why", "which alphabet?") == 0
    answers = [reason(night) for _ in range(3)]
    assert answers[-1] == ""
    assert night.types("list") == 0
    assert "waits for you: which alphabet?" in night.said
    assert night.types("show", "w1") == 0
    assert acts(night, SESSION, "start", "w1") == 0
