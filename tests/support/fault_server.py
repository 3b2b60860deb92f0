"""Runs chosen tests against a copy of the program with one place changed, many times, without starting anew.

A server process imports pytest and the third-party packages once, but nothing of the program. For each
fault it is asked about it changes one file of its copy of `src/`, forks, and the child runs the tests
with that copy first on its path; so every child meets the broken program as if freshly started. The copy
stays at one path and its compiled files are kept, so that only what changed is compiled again: each
change gets a modification time never used before, since Python tells compiled files apart by that.
"""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).parents[2]
PRELOADED = (
    "pytest",
    "hypothesis.stateful",
    "hypothesis.strategies",
    "_hypothesis_pytestplugin",
    "apsw",
    "jinja2",
    "rich",
    "cronsim",
    "croniter",
)
SECONDS = 300
NEVER_USED = itertools.count(1_000_000_000)


class FaultServer:
    """The other end of the server: one request at a time."""

    def __init__(self, room: pathlib.Path) -> None:
        """`room` is an empty directory of its own."""
        self.source = room / "src"
        self._room = room
        shutil.copytree(ROOT / "src", self.source, ignore=shutil.ignore_patterns("__pycache__"))
        self._arguments = (
            *("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"),
            *("-o", f"pythonpath={self.source} {ROOT}"),
            *("-p", "no:unraisableexception", f"--basetemp={room / 'temporary'}"),  # nothing of other runs is met
            *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # what is imported once is not rewritten again
        )
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env |= {
            "PYTHONPATH": str(self.source),
            "STOPWARDEN_TEST_SOURCE": str(self.source),
            "PYTHONPYCACHEPREFIX": str(room / "compiled"),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(room / "hypothesis"),
        }
        self._server = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__)), str(room)],
            cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def tests(self, file: str, text: str, names: tuple[str, ...]) -> tuple[int, str]:
        """Pytest's exit code and words over the named tests, with `text` in place of what `file` of the package holds."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        broken = self.source / "stopwarden" / file
        broken.write_text(text, encoding="utf-8")
        moment = next(NEVER_USED)
        os.utime(broken, (moment, moment))
        try:
            self._server.stdin.write(
                json.dumps([*self._arguments, *(str(ROOT / "tests" / name) for name in names)]) + "\n"
            )
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
        finally:
            shutil.copy2(ROOT / "src" / "stopwarden" / file, broken)
        return code, (self._room / "output").read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """Lets the server end."""
        self._server.communicate(timeout=30)


def serve(room: pathlib.Path) -> None:
    """A line of arguments in, an exit code out, until the input ends."""
    for name in PRELOADED:
        __import__(name)
    own = [name for name in sys.modules if name.partition(".")[0] in ("stopwarden", "tests")]
    assert not own, f"a child would not meet the broken program: {own}"
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(json.loads(line), room)
        print(_ended(child), flush=True)


def _run(arguments: list[str], room: pathlib.Path) -> None:
    """In the child: pytest over the tests, its words in a file; never returns."""
    os.setsid()
    with open(room / "output", "w", encoding="utf-8") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    import pytest

    code = 99
    try:
        code = int(pytest.main(arguments))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ended(child: int) -> int:
    """The child's exit code; one that hangs is ended with all it started, and counts as 98."""
    until = time.monotonic() + SECONDS
    pause = 0.002
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    os.killpg(child, 9)
    os.waitpid(child, 0)
    return 98


if __name__ == "__main__":
    serve(pathlib.Path(sys.argv[1]))
