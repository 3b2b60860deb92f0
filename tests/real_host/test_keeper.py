"""The keeper in the real agent program: background hooks that bring a session back, and when they do not.

Two kinds of loss are real here, not played: an error of the model's provider ends a turn without a
stop, and Escape at an idle prompt cancels a self-paced wake without telling anyone.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from stopwarden.sim.scripted_model import Reply
from tests.real_host.workers import TASK_NOTIFICATION, Worker, cron, look_soon, steps, tick, wakeup

if TYPE_CHECKING:
    from tests.real_host.conftest import Furnish
    from tests.real_host.harness import RealHost

pytestmark = [pytest.mark.real_host, pytest.mark.slow]

ERROR = Reply(text="the provider is down", status=400)
KEEPS = "Stopwarden:"
FIRST_BACK_OFF = 60  # seconds after an error
LATE = 30  # seconds by which a keeper may be late on a busy machine


def kept_nights(furnish: Furnish, worker: Worker) -> RealHost:
    """A night with the keeper on and one open item, started."""
    night = furnish(worker, allow=("Bash(sed:*)",))
    night.todo.write_text("- [ ] write the lexer\n")
    night.install(keeper=True)
    night.leave_for("2h", "--until-done")
    night.start()
    night.type("Work through TODO.md")
    return night


def wait_for_the_error(night: RealHost) -> None:
    night.wait_until("the error is recorded", lambda: bool(night.lines("error")))


@pytest.mark.case("BR-148")
def test_back_a_persons_prompt_and_a_look_that_came_leave_the_keeper_nothing_to_do(furnish: Furnish) -> None:
    """A look that the host keeps is not kept twice, and the keeper is silent after `back` or a typed prompt.

    Three nights at once, because each must be watched for longer than a keeper would wait; the
    longest test of all, so it comes first.
    """
    later = cron("*/20 * * * *", "Look again later.", recurring=True)
    ended = kept_nights(furnish, Worker(prompts={"Work through TODO.md": [ERROR]}))
    typed = kept_nights(
        furnish,
        Worker(
            prompts={
                "Work through TODO.md": [ERROR],
                "I am here": steps(later, "Good."),
            },
            items={"write the lexer": ["Waiting for the build."]},
        ),
    )
    looked = kept_nights(
        furnish,
        Worker(
            prompts={
                "Work through TODO.md": steps(lambda: look_soon("Look again."), "Set."),
                "Look again.": steps(later, "Nothing yet."),
            },
            items={"write the lexer": ["Waiting for the build.", "Waiting still."]},
        ),
    )
    for night in (ended, typed):
        wait_for_the_error(night)
    ended.stopwarden("back", expect=None)
    typed.type("I am here")
    typed.wait_for_verdict("waiting")
    looked.wait_for_verdict("waiting")
    looked.request_saying("Look again.", 100)
    looked.wait_for_verdict("waiting", 2)
    quiet = {night: len(night.turns) for night in (ended, typed, looked)}
    last_error = max(night.lines("error")[-1].at for night in (ended, typed))
    watched_until = max(last_error + FIRST_BACK_OFF, looked.lines("look")[-1].at) + LATE

    looked.stays(
        "no keeper wakes anyone",
        lambda: all(len(night.turns) == count for night, count in quiet.items()),
        watched_until - time.time(),
    )

    for night in (ended, typed, looked):
        assert not night.lines("kept_look"), night.account()
        assert not any(TASK_NOTIFICATION in request.news() for request in night.turns), night.account()
    assert len(looked.lines("look")) == 1


def test_after_an_api_error_the_keeper_brings_the_session_back(furnish: Furnish) -> None:
    """An error ended the turn and no wake is scheduled: after the first back-off the keeper opens a new one."""
    worker = Worker(
        prompts={
            "Work through TODO.md": [ERROR],
            TASK_NOTIFICATION: steps(tick("write the lexer"), "The lexer is written."),
        }
    )
    night = kept_nights(furnish, worker)
    wait_for_the_error(night)
    failed = night.lines("error")[0].at
    woken = night.request_saying(TASK_NOTIFICATION, FIRST_BACK_OFF + 2 * LATE)
    night.wait_for_verdict("done")

    assert FIRST_BACK_OFF <= woken.arrived - failed <= FIRST_BACK_OFF + LATE
    assert woken.says(KEEPS)
    assert [line.text for line in night.lines("kept_look")] == ["error"]
    assert night.lines("api_resumed")


def test_a_look_that_the_host_lost_is_kept(furnish: Furnish) -> None:
    """A stray Escape cancels a self-paced wake and no hook is told: the keeper opens that turn instead."""
    worker = Worker(
        prompts={
            "Work through TODO.md": steps(wakeup(60, "Look again."), "Set."),
            TASK_NOTIFICATION: steps(tick("write the lexer"), "The lexer is written."),
        },
        items={"write the lexer": ["Waiting for the build."]},
    )
    night = kept_nights(furnish, worker)
    waits = night.wait_for_verdict("waiting")
    night.press("Escape")
    woken = night.request_saying(TASK_NOTIFICATION, 180)
    night.wait_for_verdict("done")

    assert woken.says(KEEPS)
    assert woken.arrived > waits.at + 55
    assert [line.text for line in night.lines("kept_look")] == ["kept_look"]
    assert [line.text for line in night.lines("look")] == ["kept"], "the host's own wake did not fire"


def test_a_scripted_run_is_never_held_open_by_the_keeper(furnish: Furnish) -> None:
    """`claude -p`, covered or not, ends as soon as its last stop is allowed.

    It waits for every background hook before it ends (measured), so a keeper beside it would hang it.
    """
    night = furnish(Worker(items={"write the parser": ["I wait."] * 9}), allow=("Bash(sed:*)",))
    night.todo.write_text("- [ ] write the lexer\n")
    night.install(keeper=True)
    night.leave_for("2h")
    night.run_script("Work through TODO.md")
    assert not night.verdicts(), "scripts are covered only on request"

    night.stopwarden("back", expect=None)
    night.leave_for("2h", "--also-scripts", "--until-done")
    night.run_script("Work through TODO.md", 60)
    assert [row.kind for row in night.verdicts()] == ["block", "done"], night.account()
    night.todo.write_text("- [ ] write the parser\n")
    night.leave_for("2h", "--also-scripts")
    night.run_script("Work through TODO.md once more", 60)
    assert night.verdicts()[-1].kind == "bound_reached", night.account()
