"""`stopwarden demo`: a night that tells the same at every run, with nothing of the person's touched."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.support.night import SOURCE


def demo(tmp_path: pathlib.Path, *words: str) -> str:
    """What one run prints, with a home and a temporary directory that are empty before and after."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "CLAUDECODE": "1"}
    for name, variable in (("home", "HOME"), ("state", "XDG_STATE_HOME"), ("data", "XDG_DATA_HOME"), ("tmp", "TMPDIR")):
        env[variable] = str(tmp_path / name)
        (tmp_path / name).mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "stopwarden", "demo", *words], capture_output=True, env=env, cwd=tmp_path, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    return done.stdout.decode()


@pytest.mark.slow
def test_the_demo_tells_a_whole_night(tmp_path: pathlib.Path) -> None:
    """Each kind of thing that happens in a night is in it, it ends with the report, and no path of this machine shows."""
    told = demo(tmp_path)
    assert str(tmp_path) not in told
    assert demo(tmp_path) == told, "the same at every run"
    night, report = told.split("$ stopwarden report\n")
    for said in (
        "(away.not_away)",
        "$ stopwarden away until 07:30 --list TODO.md",
        'BLOCKED  The agent stops: "All done!',
        'goes on with "Add tests for the zone parser"',
        "does not count: it fires Tue 03:00",
        "(away.waiting_unchanged)",
        "WAKE  The schedule opens a new turn",
        "REFUSED  Keep the old name tz as an alias?",
        "REFUSED  Bash: make publish",
        "ERROR  The turn breaks off",
        "is asked for once more, then it is kept for you",
        "so it goes\n       back to you",
        "(away.waiting_nothing_owed)",
    ):
        assert said in night, said
    assert "4 of 6 done" in report
    assert "stopwarden answer 1" in report


@pytest.mark.slow
def test_the_demo_as_json_is_one_object_a_stop(tmp_path: pathlib.Path) -> None:
    """Every stop of the night with its rule, why, the next item and the next look; a block carries its reason."""
    stops = [json.loads(line) for line in demo(tmp_path, "--json").splitlines()]
    assert len(stops) > 20
    assert [stop["local"] for stop in stops[:2]] == ["22:59", "23:27"]
    assert {stop["rule"] for stop in stops} == {
        *("away.not_away", "away.no_qualifying_wake", "away.owed_changed"),
        *("away.waiting_unchanged", "away.waiting_nothing_owed"),
    }
    for stop in stops:
        assert stop["block"] == (stop["kind"] == "block") == bool(stop["reason"]) == bool(stop["next_item"])
        assert (stop["kind"] == "waiting") == bool(stop["next_look"])
        assert stop["why"]
