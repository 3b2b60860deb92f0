"""Shared by all tests: an injected clock and zone; no test sleeps and none touches the real home."""

from __future__ import annotations

import os
import pathlib
import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from stopwarden.clock import ZoneOf

LONDON = ZoneOf(ZoneInfo("Europe/London"))


def at(text: str, zone: str = "Europe/London", fold: int = 0) -> int:
    """The instant of a local time such as "2026-11-30 21:00" or "2026-11-30 21:00:10"."""
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp())


@pytest.fixture(autouse=True)
def _own_home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a home, state and configuration of its own, and no agent's environment."""
    for name in [n for n in os.environ if n.startswith(("CLAUDE", "XDG_", "STOPWARDEN", "AI_AGENT", "ANTHROPIC"))]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TZ", "Europe/London")
    time.tzset()
