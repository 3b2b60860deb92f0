"""The smallest payload of each kind that once broke something, found by generating a hundred thousand."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.support.night import SESSION, HookNight


@pytest.fixture
def night(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> HookNight:
    """A checkout with two open items, where the host starts its hooks, and the person away."""
    made = HookNight(tmp_path)
    made.away()
    monkeypatch.chdir(made.project)
    return made


def judged(night: HookNight) -> bool:
    """Whether the next stop is judged, by an answer that is no fault."""
    return '"A"' in night.send("stop")["reason"]


@pytest.mark.case("BR-118")
def test_a_directory_with_a_nul_does_not_break_the_events_after_it(night: HookNight) -> None:
    """No path holds a NUL: the place is unknown, the event counts, and the stops after it are judged."""
    night.send("post-tool", night.payload("PostToolUse", cwd="/work\0/x", tool_name="Bash"))
    night.send("session-start", night.payload("SessionStart", cwd="\0", source="startup"))
    assert judged(night)
    assert "fault" not in night.lines()


def test_a_spooled_event_that_cannot_be_understood_is_left_out_and_recorded(night: HookNight) -> None:
    """Whatever stands in the spool, it costs its own event and never the stops after it."""
    night.send("session-start", night.payload("SessionStart", source="startup"))
    with open(f"{night.state_dir}/spool", "a", encoding="utf-8") as spool:
        for line in ({"t": 10**400}, {"t": "now"}, {"e": []}, {"cwd": "\0"}, {"s": "other"}, [], "stop"):
            fact = {"e": "session-start", "t": night.now, "s": SESSION}
            spool.write(json.dumps(fact | line if isinstance(line, dict) else line) + "\n")
    assert judged(night)
    row = night.store().session(SESSION)
    assert row is not None
    assert row.last_event_at == night.now - 10
    assert night.lines().count("fault") == 1
    assert judged(night)
    assert night.lines().count("fault") == 1, "read once"


@pytest.mark.parametrize("escape", ["", '"\\ud800",'])
@pytest.mark.parametrize("depth", [90, 150, 450, 985, 5000])
def test_a_payload_nested_too_deeply_is_damaged_and_answered(night: HookNight, depth: int, escape: str) -> None:
    """What could be read but not cleaned or written again is not read; session and place are found all the same."""
    for event, tool in (("stop", None), ("permission", "mcp__x"), ("post-tool", "TodoWrite")):
        whole = json.dumps(night.payload(event, tool_name=tool, tool_input="@"))
        raw = whole.replace('"@"', "[" * depth + escape + "1" + "]" * depth).encode()
        done = night.run(event, raw)
        assert done.returncode == 0
        assert done.stderr.count(b"\n") == (depth > 100 and event != "post-tool")
        if event == "stop":
            assert '"A"' in json.loads(done.stdout)["reason"]


def test_a_limit_on_a_day_that_no_calendar_has_is_an_error_without_a_time(night: HookNight) -> None:
    """The turn ended in an error; when the limit ends cannot be told."""
    for shown in ("resets Jun 99999999999999999999, 2026, 12:27 AM", "resets Feb 30, 2026, 1:00 AM", "resets 25:61pm"):
        night.send("stop-failure", night.payload("StopFailure", error="rate_limit", last_assistant_message=shown))
        row = night.store().session(SESSION)
        assert row is not None
        assert (row.error, row.error_resets_at) == ("rate_limit", None), shown
    assert "fault" not in night.lines()
