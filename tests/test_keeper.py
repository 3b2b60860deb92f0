"""The keeper brings a session back when its look does not come, and never when it should not."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

import pytest

from stopwarden.clock import SystemZone
from stopwarden.core.bounds import HOUR, KEEPER_BACKOFF, Policy
from stopwarden.hook import keeper
from tests.conftest import LONDON, at
from tests.support.night import SESSION, HookNight, cron

KEEPER = Policy(keeper=True)


class Kept:
    """A keeper on a virtual clock: `sleep` moves it, and something may happen meanwhile."""

    def __init__(self, night: HookNight) -> None:
        self.night, self.now = night, float(night.now)
        self.left: list[int] = []
        self.meanwhile: dict[int, Callable[[], object]] = {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for when in sorted(self.meanwhile):
            if self.now >= when:
                self.night.now = when
                self.meanwhile.pop(when)()

    def keep(self, session: str = SESSION) -> str:
        """Runs the keeper to its end: the line that woke the session, or ""."""
        return keeper.keep(
            session,
            self.night.state_dir,
            LONDON,
            now=lambda: self.now,
            sleep=self.sleep,
            leave=self.left.append,
            lives=7 * HOUR,
        )


@pytest.fixture
def night(tmp_path: pathlib.Path) -> HookNight:
    """Away with the keeper allowed; the session was blocked once and now waits for 21:30."""
    made = HookNight(tmp_path)
    made.away(policy=KEEPER)
    made.send("stop", session_crons=[cron("21:30")])
    made.send("stop", session_crons=[cron("21:30")])
    assert made.store().state(SESSION).next_look == at("2026-11-30 21:30")
    return made


def test_a_look_that_does_not_come_is_made_at_its_latest_time(night: HookNight) -> None:
    """The host's own wake fails: the keeper ends with exit code 2 and a line once the latest time has passed."""
    latest = night.store().state(SESSION).next_look_latest
    assert latest is not None
    kept = Kept(night)
    line = kept.keep()
    assert line.startswith("Stopwarden: your next look is due")
    assert kept.left == [2]
    assert latest + 10 <= kept.now < latest + 61, "the host's own wake gets a moment first"
    assert night.lines().count("kept_look") == 1
    assert night.store().state(SESSION).period_blocks == 2, "its wakes count under the ceilings"


def test_a_look_that_came_is_not_made_again(night: HookNight) -> None:
    """The wake opened its turn in time: the session is at work, the keeper says nothing until its life is over."""
    kept = Kept(night)
    kept.meanwhile[at("2026-11-30 21:30")] = lambda: night.send("prompt", prompt="look again")
    assert kept.keep() == ""
    assert kept.left == []


def test_a_look_that_was_made_is_not_made_again_though_the_host_still_lists_it(night: HookNight) -> None:
    """Woken for 21:30, the session stops again at once with the same wake listed: the next keeper leaves that look alone."""
    kept = Kept(night)
    assert kept.keep() != ""
    night.now = int(kept.now) + 1
    night.send("prompt", prompt="<task-notification> Stopwarden: your next look is due")
    night.send("stop", session_crons=[cron("21:30")])
    state = night.store().state(SESSION)
    if state.next_look_latest is not None and state.next_look_latest <= kept.now:
        assert Kept(night).keep() == ""
    assert night.lines().count("kept_look") == 1


def test_a_script_gets_no_keeper(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`claude -p` would wait for its keeper before it ends."""
    night = HookNight(tmp_path)
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    night.away(policy=KEEPER, also_scripts=True)
    night.send("stop")
    assert Kept(night).keep() == ""
    assert night.store().keeper(SESSION) is None


def test_the_newest_keeper_wins(night: HookNight) -> None:
    """A later stop starts another keeper: the older ends, and there is one wake for one look."""
    older, newer = Kept(night), Kept(night)
    lines: list[str] = []
    older.meanwhile[night.now + 60] = lambda: lines.append(newer.keep())
    assert older.keep() == ""
    assert len(lines) == 1
    assert lines[0] != ""
    assert night.lines().count("kept_look") == 1


def test_an_older_keeper_ends_even_if_the_newest_is_dead(night: HookNight) -> None:
    """Superseded is superseded: what the newest does not do, an older one must not do either."""
    older = Kept(night)
    older.meanwhile[night.now + 60] = lambda: keeper._register(SESSION, night.state_dir, LONDON, night.now)
    assert older.keep() == ""
    assert older.left == []


@pytest.mark.parametrize("ending", ["back", "end", "off", "prompt"])
def test_it_never_wakes_after_back_the_sessions_end_off_or_a_persons_prompt(night: HookNight, ending: str) -> None:
    """Whatever makes the look needless makes the keeper silent."""

    def back() -> None:
        from stopwarden.store import marker

        store = night.store()
        (period,) = store.open_periods()
        marker.disarm(store, night.state_dir, period.id, night.now, "back")
        store.close()

    acts: dict[str, Callable[[], object]] = {
        "back": back,
        "end": lambda: night.send("session-end", night.payload("SessionEnd", reason="logout")),
        "off": lambda: night.store().save_fact("mode", "all", "off"),
        "prompt": lambda: night.send("prompt", prompt="hello, I am here again"),
    }
    kept = Kept(night)
    kept.meanwhile[night.now + 120] = acts[ending]
    assert kept.keep() == ""
    assert kept.left == []


def test_a_blocked_stop_needs_no_keeper(night: HookNight) -> None:
    """After a block the session is at work; nothing is due."""
    night.list.write_text("- [x] A\n- [ ] B\n", encoding="utf-8")
    night.send("stop", session_crons=[cron("21:30")])
    assert Kept(night).keep() == ""


def test_without_the_persons_yes_there_is_no_keeper(tmp_path: pathlib.Path) -> None:
    """Off by default: a keeper that the host starts all the same ends at once, and counts for nothing."""
    night = HookNight(tmp_path)
    night.away()
    night.send("stop")
    kept = Kept(night)
    assert kept.keep() == ""
    assert kept.now == night.now
    assert night.store().keeper(SESSION) is None


@pytest.mark.case("BR-096", "BR-099")
def test_after_errors_it_backs_off(night: HookNight) -> None:
    """Errors in a row: 1, 5, 15, 30 and again 30 minutes after each; each wake is taken once."""
    for number in range(5):
        failed = night.now
        night.send("stop-failure", night.payload("StopFailure", error="overloaded"))
        kept = Kept(night)
        assert "ended in an error" in kept.keep()
        waited = kept.now - failed
        expected = KEEPER_BACKOFF[min(number, 3)]
        assert expected <= waited < expected + 30
        night.now = int(kept.now)
        night.send(
            "prompt", prompt="<task-notification>\n<summary>Stop hook feedback</summary> Stopwarden: your last turn"
        )
    night.send("stop", session_crons=[cron("23:00")])
    row = night.store().session(SESSION)
    assert row is not None
    assert row.errors_in_a_row == 0
    assert "api_resumed" in night.lines()


@pytest.mark.case("BR-066", "BR-101", "BR-102")
def test_a_usage_limit_is_waited_out_to_its_reset(night: HookNight) -> None:
    """The error names when the limit ends: the session is brought back a minute after that, not before."""
    night.send(
        "stop-failure",
        night.payload(
            "StopFailure",
            error="rate_limit",
            last_assistant_message="You've hit your limit · resets 3am (Europe/London)",
        ),
    )
    kept = Kept(night)
    assert kept.keep() != ""
    assert at("2026-12-01 03:01") <= kept.now < at("2026-12-01 03:02")


def test_a_ceiling_ends_its_wakes_too(night: HookNight) -> None:
    """Past the blocks an hour no keeper wakes anybody."""
    store = night.store()
    state = store.state(SESSION)
    full = tuple(range(at("2026-11-30 21:25"), at("2026-11-30 21:25") + 30))
    store.save_state(state.replace(recent_blocks=full, period_blocks=300), expected_revision=state.revision)
    assert Kept(night).keep() == ""


def test_a_living_keeper_is_a_wake_and_a_dead_one_is_none(tmp_path: pathlib.Path) -> None:
    """A kept look qualifies while its process lives, known by pid and start time; then the stop needs another wake."""
    from stopwarden import machine
    from stopwarden.store.port import KeeperRow

    night = HookNight(tmp_path)
    night.away(policy=KEEPER)
    night.send("stop")
    alive = KeeperRow(
        session=SESSION, pid=os.getpid(), started=str(machine.started_ticks()), generation=1, at=night.now
    )
    night.store().save_keeper(alive)
    assert night.send("stop") == {}
    state = night.store().state(SESSION)
    assert state.next_look == state.next_look_latest == night.now - 10 + 3600
    night.store().save_keeper(alive.replace(started="12345"))
    assert night.send("stop")["decision"] == "block"


def test_a_keeper_looks_in_time_for_what_the_session_holds(tmp_path: pathlib.Path) -> None:
    """A hold of two hours is due in one, less the skew: a kept look in a whole hour would come too late, and never count."""
    from stopwarden import machine
    from stopwarden.core.events import Reservation
    from stopwarden.hook.at_stop import kept_look
    from stopwarden.store.memory import MemoryStore
    from stopwarden.store.port import KeeperRow

    store, now = MemoryStore(), at("2026-11-30 21:00")
    store.save_keeper(
        KeeperRow(session=SESSION, pid=os.getpid(), started=str(machine.started_ticks()), generation=1, at=now)
    )
    hold = Reservation(item="w1", session=SESSION, copy="c", claimed_at=now, expires_at=now + 2 * HOUR)
    assert kept_look(store, SESSION, "c", now, KEEPER) == now + HOUR
    assert kept_look(store, SESSION, "c", now, KEEPER, (hold,)) == now + HOUR - KEEPER.skew
    long = hold.replace(expires_at=now + 24 * HOUR)
    assert kept_look(store, SESSION, "c", now, KEEPER, (long,)) == now + HOUR, "never later than without a hold"


@pytest.mark.case("BR-151", "BR-152")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resets 6:30pm (Asia/Jerusalem)", at("2026-12-01 18:30", "Asia/Jerusalem")),
        ("resets 8pm (America/New_York)", at("2026-11-30 20:00", "America/New_York")),
        ("resets 10pm", at("2026-11-30 22:00")),
        ("resets at 21:45", at("2026-11-30 21:45")),
        ("resets Dec 3, 2026, 12:27 AM", at("2026-12-03 00:27")),
        ("resets Jan 4 at 9 am", at("2027-01-04 09:00")),
        ("resets 1796090000", 1796090000),
        ("resets soon", None),
        ("resets 25:00 (No/Where)", None),
        ("resets 13pm", None),
        ("", None),
    ],
)
def test_the_end_of_a_usage_limit_is_read_with_its_zone_and_date(text: str, expected: int | None) -> None:
    """A time of day is the next such instant in the named zone, a full date is honoured, anything else is unknown."""
    from stopwarden.hosts.claude_limits import resets_at

    assert resets_at(text, at("2026-11-30 21:00"), SystemZone({"TZ": "Europe/London"})) == expected
