"""The real Qwen Code, driven by the comparison's command, on the scenarios that everything else rests on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real_host
CLONE = Path(__file__).resolve().parents[2]
GIVEN = os.environ.get("STOPWARDEN_TEST_QWEN", "")  # read now: each test runs without variables of ours


@pytest.fixture(scope="module")
def seen() -> dict[str, dict[str, Any]]:
    """What both sides did, by scenario."""
    if not GIVEN or not Path(GIVEN).exists():
        missing = "Qwen Code is not installed: run make real-host"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    words = (sys.executable, "-m", "comparison", "--program", GIVEN, "--only", "A,B,D,E2,N3")
    env = {**os.environ, "PYTHONPATH": str(CLONE / "src")}
    done = subprocess.run(words, cwd=CLONE, env=env, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    return {line["id"]: line for line in map(json.loads, done.stdout.splitlines())}


def test_the_shipped_guard_goes_on_twice_and_so_do_we(seen: dict[str, dict[str, Any]]) -> None:
    """An unfinished list and a bridge that grants claims: two continuations reach the model, then it gives up."""
    theirs = seen["A"]["theirs"]
    assert theirs["calls"] == ["P1", "tools", "guard 1/2", "guard 2/2"]
    assert theirs["shown"] == ["1/2 with 2 left", "2/2 with 2 left", "gave up with 2 left"]
    assert theirs["asks"] == seen["A"]["ours"]["asks"]


def test_the_shipped_guard_yields_to_a_prompt_and_to_words_of_the_person(seen: dict[str, dict[str, Any]]) -> None:
    """A queued prompt goes first, without a continuation; words in the middle of a turn begin a new stage."""
    assert seen["B"]["theirs"]["calls"] == ["P1", "tools", "P2"]
    assert seen["D"]["theirs"]["calls"] == ["P1", "tools", "guard 1/2", "S1", "guard 1/2", "guard 2/2"]


def test_the_shipped_guard_does_nothing_for_a_client_without_claims(seen: dict[str, dict[str, Any]]) -> None:
    """An editor that knows no claim: no continuation."""
    assert seen["N3"]["theirs"]["calls"] == ["P1", "tools"]


def test_a_refused_send_leaves_our_instruction_out_of_history(seen: dict[str, dict[str, Any]]) -> None:
    """The shipped program sends its old instruction in front of the next prompt; ours is gone with the refused send."""
    assert seen["E2"]["theirs"]["calls"][-1] == "guard 1/2 + P2"
    assert seen["E2"]["ours"]["calls"][-1] == "P2"
