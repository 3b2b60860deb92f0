"""The native agent's tools on a real directory: what they do, what they refuse, and what they never lose."""

from __future__ import annotations

import asyncio
import os
import pathlib
import stat
import time
from typing import Any

import pytest

from stopwarden.session.tools.contract import Outcome, Place, plain, shortened
from stopwarden.session.tools.files import Edit, Find, Read, Write
from stopwarden.session.tools.shell import KEPT_MAX, Shell


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    """A checkout with a few files."""
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "src" / "a.py").write_text("one = 1\ntwo = 2\none_more = 1\n")
    (work / "notes.txt").write_bytes(b"caf\xe9 \x1b[31mred\n")
    (work / "node_modules").mkdir()
    (work / "node_modules" / "big.js").write_text("one = 1\n")
    return Place(str(work))


def use(tool: Any, place: Place, **given: Any) -> Outcome:
    """One call, run to its end."""
    outcome = asyncio.run(tool.run(tool.takes(**given), place))
    assert isinstance(outcome, Outcome)
    return outcome


def test_a_file_is_read_with_its_line_numbers_and_what_is_left(place: Place) -> None:
    assert use(Read(), place, path="src/a.py", first=2, lines=1).text == "2\ttwo = 2\n[2 more lines]"
    assert use(Read(), place, path="src/none.py").failed
    assert use(Read(), place, path="src/a.py", first=90).failed


def test_hostile_bytes_are_told_as_plain_text(place: Place) -> None:
    """Invalid UTF-8 and control characters never reach the model or the terminal."""
    text = use(Read(), place, path="notes.txt").text
    assert "\x1b" not in text
    assert "caf\ufffd \ufffd[31mred" in text
    assert plain(b"a\r\nb\x00\x07c") == "a\nb\ufffd\ufffdc"


def test_an_edit_must_be_clear_about_its_place(place: Place) -> None:
    """Text that occurs never or more than once changes nothing, and the model is told which."""
    path = pathlib.Path(place.cwd, "src", "a.py")
    before = path.read_text()
    assert "does not occur" in use(Edit(), place, path="src/a.py", old="three", new="3").text
    assert "occurs 2 times" in use(Edit(), place, path="src/a.py", old="= 1", new="= 9").text
    assert path.read_text() == before
    assert not use(Edit(), place, path="src/a.py", old="= 1", new="= 9", all=True).failed
    assert path.read_text() == "one = 9\ntwo = 2\none_more = 9\n"


def test_a_written_file_is_whole_and_keeps_its_mode(place: Place) -> None:
    script = pathlib.Path(place.cwd, "run.sh")
    script.write_text("old")
    script.chmod(0o755)
    assert not use(Write(), place, path="run.sh", content="new\n").failed
    assert script.read_text() == "new\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert not use(Write(), place, path="deep/er/new.txt", content="x").failed
    assert sorted(os.listdir(place.cwd)) == ["deep", "node_modules", "notes.txt", "run.sh", "src"]


def test_a_file_that_cannot_be_written_is_as_it_was(place: Place) -> None:
    outcome = use(Write(), place, path="notes.txt/below", content="x")
    assert outcome.failed
    assert "It is as it was" in outcome.text


def test_finding_tells_path_line_and_number_and_leaves_out_what_is_not_ours(place: Place) -> None:
    assert use(Find(), place, pattern="^one ").text == "src/a.py:1: one = 1"
    assert use(Find(), place, pattern="", files=r"\.py$").text == "src/a.py"
    assert use(Find(), place, pattern="nowhere").text == "Nothing found."
    assert use(Find(), place, pattern="(").failed


def test_a_command_tells_its_output_and_its_exit_code(place: Place) -> None:
    assert use(Shell(), place, command="pwd").text == f"{place.cwd}\n"
    failed = use(Shell(), place, command="echo oh; exit 3")
    assert (failed.failed, failed.text) == (True, "oh\n\n[exit code 3]")
    assert use(Shell(), place, command="true").text == "[no output]"


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(place: Place) -> None:
    """The whole process group: a child in the background does not outlive it."""
    outcome = use(Shell(), place, command="sleep 60 & echo $!; wait", seconds=1)
    assert outcome.failed
    assert "time ran out" in outcome.text
    child = int(outcome.text.split()[0])
    assert ends(child)


def ends(pid: int) -> bool:
    """Whether a killed process is gone; the system may need a moment for it."""
    until = time.monotonic() + 10
    while _state(pid) != "Z" and time.monotonic() < until:
        os.sched_yield()
    return _state(pid) == "Z"


def _state(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_a_cancelled_command_leaves_nothing_running(place: Place) -> None:
    async def story() -> int:
        shell = Shell()
        task = asyncio.ensure_future(shell.run(shell.takes(command="echo $$ > pid; sleep 60"), place))
        path = pathlib.Path(place.cwd, "pid")
        while not (path.exists() and path.read_text().strip()):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(path.read_text())

    assert ends(asyncio.run(story()))


def test_output_without_end_is_kept_within_bounds(place: Place) -> None:
    """The beginning and the end stay; how much is left out is said."""
    outcome = use(Shell(), place, command="head -c 5000000 /dev/zero | tr '\\0' x; echo the end")
    assert len(outcome.text) < 32_000
    assert outcome.text.startswith("xxx")
    assert outcome.text.rstrip().endswith("the end")
    assert "left out" in outcome.text
    assert KEPT_MAX < 5_000_000


def test_a_long_text_keeps_head_and_tail() -> None:
    told = shortened("a" * 50 + "b" * 50, 30)
    assert told == "a" * 20 + "\n[... 70 characters left out ...]\n" + "b" * 10
