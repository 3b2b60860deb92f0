"""The documents are kept true."""

from __future__ import annotations

import pathlib
import re

import pytest

from stopwarden.sim import machines_page
from tests import cases_page

ROOT = pathlib.Path(__file__).parent.parent


def test_the_page_of_cases_is_what_the_tests_say() -> None:
    """docs/cases.md is generated; `make cases` renews it."""
    assert cases_page.PAGE.read_text(encoding="utf-8") == cases_page.page(), "run: make cases"


def test_the_page_of_machines_is_what_the_tables_say() -> None:
    """docs/machines.md is generated from the core; `make diagrams` renews it."""
    kept = machines_page.PAGE.read_text(encoding="utf-8")
    assert kept == machines_page.page(), "run: make diagrams (python -m stopwarden.sim.machines_page)"


def test_every_module_the_tour_names_exists() -> None:
    """docs/architecture.md and AGENTS.md speak only of files that are there."""
    for page in ("docs/architecture.md", "AGENTS.md", "docs/decisions.md", "docs/hosts.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for name in re.findall(
            r"`((?:core|store|work|hosts|hook|report|sim|cli|tests|docs)/[\w/]+\.(?:py|md|sql))`", text
        ):
            here = ROOT / name if name.startswith(("tests", "docs")) else ROOT / "src" / "stopwarden" / name
            assert here.exists(), f"{page} names {name}"


def test_every_command_is_in_the_guide_with_its_help() -> None:
    """The user guide names each command, and each command's help has an example."""
    from stopwarden.cli.main import COMMANDS, main

    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"stopwarden {command}" in guide, command
        assert main([command, "--help"]) == 0


def test_every_command_speaks_json_and_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` everywhere, and a line that can be typed as it stands."""
    from stopwarden.cli.main import COMMANDS, main

    for command in COMMANDS:
        main([command, "--help"])
        shown = capsys.readouterr().out
        assert "--json" in shown, command
        assert "example" in shown, command
        assert f"stopwarden {command}" in shown, command


def test_no_file_names_a_registry_or_a_place_of_one_machine() -> None:
    """Packages come by name; nothing points to a host of theirs or to somebody's directories."""
    forbidden = re.compile(r"pypi\.org|npmjs\.org|files\.pythonhosted|/work/|/root/|\.\./shared")
    for path in [*ROOT.glob("[!.]*.*"), *(ROOT / "requirements").iterdir(), *(ROOT / "docs").iterdir()]:
        if path.is_file():
            assert not forbidden.search(path.read_text(encoding="utf-8", errors="replace")), path
