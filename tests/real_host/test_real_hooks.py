"""The installed hooks in the real agent program: bounds, errors, `back`, moves, and what stays untouched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stopwarden.sim.scripted_model import Reply
from tests.real_host.harness import CLONE, told
from tests.real_host.workers import Worker, always, ask_about, bash, cron, steps, tick

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_host.conftest import Furnish

pytestmark = [pytest.mark.real_host, pytest.mark.slow]


@pytest.mark.case("A81")
def test_text_only_stops_reach_the_bound_which_is_recorded_and_then_allowed(furnish: Furnish) -> None:
    """The eighth block in a row without a tool is still a block, and the record then says once that work is owed.

    The ninth stop is allowed by us, before the host would have overridden it.
    """
    talker = furnish(always(lambda _: "I am finished, I believe."))
    talker.todo.write_text("- [ ] write the lexer\n")
    talker.install()
    talker.leave_for("2h")
    talker.start()
    talker.type("Work through TODO.md")

    allowed = talker.wait_for_verdict("bound_reached")
    talker.stays("no further request after the allowed stop", lambda: len(talker.turns) == 9, 2)

    assert [row.kind for row in talker.verdicts()] == ["block"] * 8 + ["bound_reached"], talker.account()
    assert allowed.rule == "away.bound_reached"
    reasons = talker.reasons()
    assert len(reasons) == 8
    assert all('"write the lexer" (quoted' in reason for reason in reasons)
    assert "CronCreate" not in reasons[1], "the first two reasons only name the item"
    assert "CronCreate" in reasons[2], "from the third on they name the call that would do"
    assert [line.text for line in talker.lines("stopped_with_work_owed")] == ["blocks_without_tools"]


def test_thirty_items_are_thirty_blocks_and_no_bound(furnish: Furnish) -> None:
    """An agent that ticks one item a round is never cut off, neither by the host nor by us."""
    titles = [f"part {number:02} of the work" for number in range(1, 31)]
    busy = furnish(Worker(), allow=("Bash(sed:*)",))
    busy.todo.write_text("".join(f"- [ ] {title}\n" for title in titles))
    busy.install()
    busy.leave_for("2h", "--until-done", "--set", "blocks_an_hour=100")
    busy.start()
    busy.type("Work through TODO.md")

    busy.wait_for_verdict("done", seconds=180)

    assert [row.kind for row in busy.verdicts()] == ["block"] * 30 + ["done"], busy.account()
    assert [next(t for t in titles if t in reason) for reason in busy.reasons()] == titles
    assert not busy.lines("stopped_with_work_owed")


@pytest.mark.case("A90")
def test_an_api_error_is_outlived_by_the_safety_wake(furnish: Furnish) -> None:
    """A turn that ends in an error has no stop; the error is recorded and no verdict is given.

    The wake that the session was asked for at its first turn opens the next one, and the work goes on.
    """
    look = "Look again at TODO.md and go on."
    worker = Worker(
        prompts={
            "Work through TODO.md": steps(cron("* * * * *", look, recurring=True), Reply(text="down", status=400)),
            look: steps(tick("write the lexer"), "The lexer is written."),
        }
    )
    night = furnish(worker, allow=("Bash(sed:*)",))
    night.todo.write_text("- [ ] write the lexer\n")
    night.install()
    night.leave_for("2h", "--until-done")
    night.start()
    night.type("Work through TODO.md")

    first = night.request_saying("Work through TODO.md")
    assert any("safety wake" in text and "CronCreate" in text for text in told(first)), night.account()
    night.wait_until("the error is recorded", lambda: bool(night.lines("error")))
    assert not night.verdicts(), "an error ends a turn without a stop"
    before = len(night.model.requests)
    night.request_saying(look, 100, after=before)
    night.wait_for_verdict("done")
    assert night.lines("api_resumed"), night.account()


def test_after_back_the_next_stop_is_allowed(furnish: Furnish) -> None:
    """The person comes back while the agent works: its next stop is the host's business again."""
    worker = Worker(items={"write the lexer": [Reply(text="Thinking about the lexer.", delay=4)]})
    night = furnish(worker)
    night.todo.write_text("- [ ] write the lexer\n")
    night.install()
    night.leave_for("2h")
    night.start()
    night.type("Work through TODO.md")

    night.request_saying('write the lexer" (quoted')
    night.stopwarden("back", expect=None)
    night.wait_until("the last reply is out", lambda: all(request.answered for request in night.turns))
    night.stays("nothing is asked of the model any more", lambda: len(night.turns) == 2, 3)

    assert [row.kind for row in night.verdicts()] == ["block"], night.account()


def test_with_nothing_armed_the_program_is_as_it_was(furnish: Furnish) -> None:
    """Installed and not away: the stop is allowed, the question is shown to the person, nothing is judged."""
    worker = Worker(prompts={"Do one thing": ["It is done."], "Ask me": steps(ask_about("Drop the column?"))})
    host = furnish(worker)
    host.todo.write_text("- [ ] write the lexer\n")
    host.install()
    host.start()
    host.type("Do one thing")
    host.wait_until("the reply is out", lambda: len(host.turns) == 1 and host.turns[0].answered is not None)
    host.stays("the stop is allowed", lambda: len(host.turns) == 1, 2)
    host.type("Ask me")
    host.wait_until("the question is shown", lambda: "Drop the column?" in host.screen() and "Keep it" in host.screen())
    host.stays("the question waits for the person", lambda: len(host.turns) == 2, 2)
    assert not host.verdicts()


@pytest.mark.case("A106")
def test_moving_compacting_and_resuming_keep_what_is_known_of_a_session(furnish: Furnish) -> None:
    """A session that changes directory, is compacted and is resumed still works on the same list.

    A stop that was allowed to wait is allowed again: nothing has changed, and its wake has come along.
    """
    worker = Worker(
        prompts={"Work through TODO.md": steps(cron("*/20 * * * *", "Look again.", recurring=True), "Set.")},
        items={
            "write the lexer": steps(
                bash("mkdir -p deep/er && cd deep/er && pwd"), tick("write the lexer", "../../TODO.md"), "There now."
            ),
            "write the parser": ["Waiting for the build."],
        },
    )
    night = furnish(worker, allow=("Bash(*)",))
    night.todo.write_text("- [ ] write the lexer\n- [ ] write the parser\n")
    night.install()
    night.leave_for("4h")
    night.start()
    night.type("Work through TODO.md")
    night.wait_for_verdict("waiting")
    session = night.verdicts()[0].session

    night.type("/compact")
    night.wait_until("it is compacted", lambda: bool(night.lines("compacted")))
    night.type("How far are you?")
    night.wait_for_verdict("waiting", 2)

    night.close_terminal()
    night.start("--resume", session)
    night.type("Are you still there?")
    night.wait_for_verdict("waiting", 3)

    verdicts = night.verdicts()
    assert {row.session for row in verdicts} == {session}
    assert [row.kind for row in verdicts] == ["block", "block", "waiting", "waiting", "waiting"], night.account()
    assert {row.rule for row in verdicts[2:]} == {"away.waiting_unchanged"}
    assert len(night.reasons()) == 2
    assert not night.lines("relocated"), "the checkout is the one the session began in"


def test_a_cleared_conversation_is_told_of_the_night_again(furnish: Furnish) -> None:
    """Clearing starts a session with a new id, briefed at its first turn and judged by the same list.

    The host keeps the old wakes in it (measured), so it may wait once it has been told what is next.
    """
    worker = Worker(
        prompts={"Work through TODO.md": steps(cron("*/20 * * * *", "Look again.", recurring=True), "Set.")},
        items={"write the lexer": ["I wait for the build.", "I still wait."]},
    )
    night = furnish(worker)
    night.todo.write_text("- [ ] write the lexer\n")
    night.install()
    night.leave_for("2h")
    night.start()
    night.type("Work through TODO.md")
    night.wait_for_verdict("waiting")
    night.type("/clear")
    night.wait_until("it is cleared", lambda: len(night.lines("session_ended")) == 1)
    night.type("What is to be done?")
    briefed = night.request_saying("What is to be done?")
    night.wait_for_verdict("waiting", 2)

    assert any("the person is away" in text for text in told(briefed)), night.account()
    first, second = night.verdicts()[0].session, night.verdicts()[-1].session
    assert first != second
    assert [(row.session == second, row.kind) for row in night.verdicts()] == [
        (False, "block"),
        (False, "waiting"),
        (True, "block"),
        (True, "waiting"),
    ], night.account()


def test_what_is_installed_runs_from_the_installed_wheel_alone(furnish: Furnish, program: Path) -> None:
    """Every hook names the environment of the installed wheel, nothing of a checkout; other settings are untouched."""
    host = furnish(always(lambda _: "Yes."))
    mine = host.settings.read_text()
    host.install()
    written = (host.project / ".claude" / "settings.local.json").read_text()
    commands = [
        handler["command"]
        for groups in json.loads(written)["hooks"].values()
        for group in groups
        for handler in group["hooks"]
    ]
    assert commands
    assert all(command.startswith(str(program.parent)) for command in commands)
    launcher = (host.home / ".local" / "share" / "stopwarden" / "hook.py").read_text()
    assert str(CLONE) not in written + launcher
    assert host.settings.read_text() == mine
