"""The comparison with the shipped Qwen Code: our side of it, and the page that tells of both."""

from __future__ import annotations

import pathlib
import re

import pytest
from comparison import ours, page, scenarios
from comparison.qwen import command, news
from comparison.script import Expect, Scenario
from comparison.seen import Seen, differences

ROOT = pathlib.Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda one: one.id)
def test_our_machines_do_in_each_scenario_what_the_page_says(scenario: Scenario) -> None:
    """Each scenario as expected, and its row on the page is what the machines do today; else: make compare."""
    seen = ours.play(scenario)
    assert page.complaints(scenario, seen, None) == []
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {scenario.id} | {scenario.told} |"))
    assert row.split(" | ")[3] == page.facts(seen, ours=True), "run: make compare"
    assert row.endswith("| same |") is not bool(scenario.why)


def test_the_page_names_the_version_that_is_installed() -> None:
    """The version on the page is the one that the command installs."""
    (pinned,) = re.findall(r"^QWEN_VERSION := (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert f"Measured with Qwen Code {pinned} on 20" in PAGE


def test_what_is_new_to_the_model_is_read_from_its_request() -> None:
    """Only what stands after the model's last words counts; an old instruction before new words is seen as such."""
    instruction = "[Todo Stop Guard] 2 todo item(s) are still pending. Go on."
    last = instruction + " This is the final automatic continuation."
    messages = [
        {"role": "system", "content": "P9: no prompt"},
        {"role": "user", "content": [{"type": "text", "text": "a reminder"}, {"type": "text", "text": "P1: go on"}]},
        {"role": "assistant", "content": "words"},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
        {"role": "user", "content": [{"type": "text", "text": instruction}, {"type": "text", "text": "P2: go on"}]},
    ]
    assert news(messages[:2]) == "P1"
    assert news(messages) == "tools + guard 1/2 + P2"
    assert news([{"role": "user", "content": f"HOOK1\n{last}"}]) == "HOOK1 + guard 2/2"
    assert news([{"role": "user", "content": "<task-notification>done</task-notification>"}]) == "result"


def test_a_difference_needs_a_reason_and_a_reason_a_difference() -> None:
    """The command fails when either is missing, and when our side does other than expected."""
    expect = Expect(attempts=(1,), ends=("done",), calls=1)
    plain = Scenario("T", "tries", (), expect)
    reasoned = Scenario("T", "tries", (), expect, why="Decided.")
    here = Seen(calls=["P1"], shown=["1/2 with 1 left"], ends=["P1 end_turn"], kinds=["done"])
    there = Seen(calls=["P1", "P2"], shown=["1/2 with 1 left"], ends=["P1 end_turn"])
    assert differences(here, there) == ["calls"]
    assert "different without a reason" in page.complaints(plain, here, there)[0]
    assert "a reason without a difference" in page.complaints(reasoned, here, here)[0]
    assert page.complaints(reasoned, here, there) == page.complaints(plain, here, here) == []
    assert "expected was" in page.complaints(plain, there, None)[0]
    assert page.verdict(reasoned, here, there) == "**different** in what the model was sent. Decided."


def test_without_the_program_it_is_said_how_to_get_it(tmp_path: pathlib.Path) -> None:
    """A directory without the program names the command that installs it."""
    with pytest.raises(FileNotFoundError, match="make compare"):
        command(tmp_path)
