"""Every payload that Claude Code was seen to write goes through the hook, armed and unarmed."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.support.night import HookNight
from tests.support.payloads import EVENTS, RECORDED

PAYLOADS = sorted(RECORDED.glob("*-*.json"))
RECORDED_AT = 1_796_057_500.0  # the day the payloads were recorded


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.stem)
def test_a_recorded_payload_is_understood(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Unarmed it leaves at most a fact; armed, a stop is judged without a fault and any other event noted."""
    payload = json.loads(path.read_text(encoding="utf-8"))
    event = EVENTS.get(payload["hook_event_name"], "notification")  # one we do not register for says only: it lives
    night = HookNight(tmp_path)
    night.now = int(RECORDED_AT)
    payload["cwd"] = str(night.project)
    assert night.send(event, payload) == {}
    night.away(until=night.now + 36_000)
    answer = night.send(event, payload)
    if event == "stop":
        assert answer["decision"] == "block"
        assert "could not judge" not in answer["reason"]
    store = night.store()
    assert "fault" not in [line.kind for line in store.lines()]
    if event not in ("subagent-stop", "post-tool"):
        assert store.session(payload["session_id"]) is not None


def test_a_wake_seen_at_its_tool_is_known_at_the_stop(tmp_path: pathlib.Path) -> None:
    """CronCreate's own next fire (jitter included) and age limit reach the judge; a self-paced wake is known by its prompt."""
    folder = PAYLOADS[0].parent
    night = HookNight(tmp_path, todo="")
    for case in ("cron", "wakeup"):
        tool = json.loads((folder / f"{case}.PostToolUse-1.json").read_text(encoding="utf-8"))
        stop = json.loads((folder / f"{case}.Stop-1.json").read_text(encoding="utf-8"))
        tool["cwd"] = stop["cwd"] = str(night.project)
        fires = tool["tool_response"].get("nextFireAt") or tool["tool_response"]["scheduledFor"]
        night.now = int(fires / 1000) - 110
        night.away(id=case, until=night.now + 36_000)
        night.send("post-tool", tool)
        assert night.send("stop", stop) == {}, case
        state = night.store().state(stop["session_id"])
        assert state.next_look_latest == int(fires / 1000), case
