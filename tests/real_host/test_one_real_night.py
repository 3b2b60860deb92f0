"""One real night: the agent program works through a list in a terminal and nobody touches it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.real_host.harness import told
from tests.real_host.workers import Worker, ask_about, bash, cron, look_soon, steps, tick

if TYPE_CHECKING:
    from tests.real_host.conftest import Furnish

pytestmark = [pytest.mark.real_host, pytest.mark.slow]

TODO = """# Tonight

- [ ] write the lexer
- [ ] write the parser
- [ ] run the long tests
- [ ] write the docs
- [ ] choose the name (waits for person: which of the two?)
"""
NAMED_TITLE = re.compile(r'"([^"]+)" \(quoted')
LOOK = "Look again at TODO.md and go on."


@pytest.mark.case("BR-042", "BR-109")
def test_a_list_is_worked_through_in_the_night_with_nobody_at_the_keys(furnish: Furnish) -> None:
    """A question, a permission prompt and an agent that tries to end the night freeze and change nothing.

    Stops name the next item; the agent waits for the host's own cron, is woken by it with no key
    pressed and is told the person's answer; it finishes the list, which ends the night; and the
    report of the morning says so.
    """
    ask = bash("git push --force")
    worker = Worker(
        prompts={
            "Work through TODO.md": steps(cron("*/20 * * * *", LOOK, recurring=True), "A safety wake is set."),
            LOOK: steps(tick("run the long tests"), "The tests are through."),
        },
        items={
            "write the lexer": steps(tick("write the lexer"), "The lexer is written."),
            "write the parser": steps(
                ask_about("Drop the column legacy_id?"),
                ask,
                bash("stopwarden back"),
                tick("write the parser"),
                "The parser is written.",
            ),
            "run the long tests": steps(lambda: look_soon(LOOK), "They run; nothing to do until they are through."),
            "write the docs": steps(tick("write the docs"), "All is written."),
        },
    )
    night = furnish(worker, allow=("Bash(sed:*)", "Bash(stopwarden:*)"))
    night.todo.write_text(TODO)
    night.install()
    night.leave_for("2h", "--until-done")
    night.start()
    night.type("Work through TODO.md")

    waits = night.wait_for_verdict("waiting")
    told_until_then = len(night.model.requests)
    status = json.loads(night.stopwarden("status", "--json", expect=None))
    assert [session["state"] for session in status["sessions"]] == ["waiting"], status
    assert "waiting until" in night.stopwarden("status", expect=0)
    assert "Drop the column legacy_id?" in night.stopwarden("parked", expect=None)
    night.stopwarden("answer", "1", "Keep it", expect=0)
    woken = night.request_saying(LOOK, 240, after=told_until_then)
    done = night.wait_for_verdict("done")

    assert [found and found[1] for found in map(NAMED_TITLE.search, night.reasons())] == [
        "write the lexer",
        "write the parser",
        "run the long tests",
        "write the docs",
    ], night.account()
    assert waits.rule == "away.waiting_unchanged"
    assert woken.arrived >= waits.at, "the wake came after the wait began"
    news = told(woken)
    assert LOOK in news, "the host's own cron opened the turn with the prompt it was given"
    assert any("Keep it" in text for text in news), "the person's answer went along with the next turn"
    assert done.rule == "away.until_done"
    assert night.todo.read_text().count("- [x]") == 4

    heard = [text for request in night.turns for text in told(request)]
    assert any("this question was kept for them and not shown" in text for text in heard), night.account()
    assert any("this permission was not granted" in text for text in heard), night.account()
    assert any("Only the person may end away" in text for text in heard), night.account()
    assert [line.text for line in night.lines("period_ended")] == ["done"]

    night.leave()
    assert "away ended" in night.stopwarden("status", expect=0)
    morning = night.stopwarden("report", expect=None)
    for words in ("4 of 4 done", "git push --force", "2 turns · 1 wake · 4 blocks"):
        assert words in morning, morning
    facts = json.loads(night.stopwarden("report", "--json", expect=None))
    assert [(session["turns"], session["blocks"]) for session in facts["sessions"]] == [(2, 4)]
    assert facts["periods"][0]["ended_why"] == "done"
    for row in night.verdicts():
        assert "the same verdict" in night.stopwarden("explain", str(row.id), expect=0)
