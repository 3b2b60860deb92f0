"""`stopwarden watch` with the real agent program: a session that was closed in the night goes on, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real_host.workers import Worker, cron, steps, tick

if TYPE_CHECKING:
    from tests.real_host.conftest import Furnish

pytestmark = [pytest.mark.real_host, pytest.mark.slow]


def test_a_session_closed_with_work_owed_is_resumed_once_by_a_command_that_proves_itself(furnish: Furnish) -> None:
    """Closed while it waited: `watch --resume` opens the same conversation again, which finishes the list.

    The command was never proven before; the event of that very session proves it. A second look
    resumes nobody, and what was resumed is the conversation of before, not another one.
    """
    worker = Worker(
        prompts={
            "Work through TODO.md": steps(cron("*/20 * * * *", "Look again.", recurring=True), "A wake is set."),
            "Stopwarden: your program ended": steps(tick("write the lexer"), "The lexer is written."),
        },
        items={"write the lexer": ["Waiting for the build."]},
    )
    night = furnish(worker, allow=("Bash(sed:*)",))
    night.todo.write_text("- [ ] write the lexer\n")
    night.install()
    night.leave_for("2h", "--until-done", "--also-scripts")
    night.start()
    night.type("Work through TODO.md")
    session = night.wait_for_verdict("waiting").session
    night.leave()
    resume = night.resume_command()

    assert "Open it again" in night.stopwarden("watch", "--once", expect=1), "without a command it only tells"
    said = night.stopwarden("watch", "--once", "--resume", resume, expect=1)
    assert "is resumed" in said, said
    assert "is proven for claude-code" in said, said
    done = night.wait_for_verdict("done")
    woken = night.request_saying("Stopwarden: your program ended")

    assert done.session == session, night.account()
    assert "Work through TODO.md" in str(woken.body), "the same conversation"
    assert night.todo.read_text() == "- [x] write the lexer\n"
    assert [line.text.partition(";")[0] for line in night.lines("watch_resumed")] == ["closed"]
    assert [line.text for line in night.lines("look")] == ["kept"], "known as ours, not as a person's prompt"
    night.stopwarden("watch", "--once", "--resume", resume, expect=0)
    assert len(night.lines("watch_resumed")) == 1
