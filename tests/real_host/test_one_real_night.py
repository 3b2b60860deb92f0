"""One real night: the agent program works through a list in a terminal and nobody touches it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.real_host.harness import told
from tests.real_host.workers import Worker, ask_about, bash, cron, steps, tick

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
LOOK = "Look again at TODO.md and go on."


def test_a_list_is_worked_through_in_the_night_with_nobody_at_the_keys(furnish: Furnish) -> None:
    """Stops name the next item, a question and a permission prompt freeze nothing, the agent waits for the
    host's own cron, is woken by it with no key pressed, finishes the list, and the morning's report says so."""
    ask = bash("git push --force")
    worker = Worker(
        prompts={
            "Work through TODO.md": steps(cron("* * * * *", LOOK, recurring=True), "A safety wake is set."),
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
            "run the long tests": steps("They run; nothing to do until they are through."),
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
    woken = night.request_saying(LOOK, 100, after=told_until_then)
    done = night.wait_for_verdict("done")

    titles = [re.search(r'"([^"]+)" \(quoted', reason) for reason in night.reasons()]
    assert [title and title[1] for title in titles] == [
        "write the lexer",
        "write the parser",
        "run the long tests",
        "write the docs",
    ], night.account()
    assert waits.rule == "away.waiting_unchanged"
    assert woken.arrived >= waits.at, "the wake came after the wait began"
    assert told(woken)[-1] == LOOK, "the host's own cron opened the turn with the prompt it was given"
    assert done.rule == "away.until_done"
    assert "- [ ]" not in night.todo.read_text().replace("- [ ] choose the name", "")

    answers = [text for request in night.turns for text in told(request) if text.startswith(("Stopwarden:", "PreTool"))]
    assert any("this question was kept for them and not shown" in text for text in answers), night.account()
    assert any("this permission was not granted" in text for text in answers), night.account()
    refused = [text for request in night.turns for text in told(request) if "stopwarden back" in text]
    assert refused, night.account()
    assert [line.text for line in night.lines("period_ended")] == ["done"]

    night.leave()
    report = night.stopwarden("report", expect=None)
    assert "Drop the column legacy_id?" in report
    assert "git push --force" in report
    assert "4 of 5" in report
    facts = json.loads(night.stopwarden("report", "--json", expect=None))
    assert facts, "the report is there for programs too"
    status = night.stopwarden("status", expect=None)
    assert "not away" in status.lower() or "done" in status.lower()
