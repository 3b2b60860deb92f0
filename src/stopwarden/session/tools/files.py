"""Files of the checkout: read, write, edit, find.

Paths are taken from the session's directory. Whatever happens to a file happens whole: it is written beside
and put in place. May not live here: permissions; what may be touched is asked before a tool runs.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from typing import TYPE_CHECKING

from pydantic import Field

from stopwarden.session.tools.contract import Arguments, Outcome, Touches, plain, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stopwarden.session.tools.contract import Place

READ_MAX = 10 * 1024 * 1024  # bytes; a larger file is read in parts with the shell
LINES = 2_000
FOUND_MAX = 200
SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__", ".mypy_cache"})


class ReadArguments(Arguments):
    """Which part of which file."""

    path: str
    first: int = Field(default=1, ge=1, description="The first line")
    lines: int = Field(default=LINES, ge=1, le=LINES)


class Read:
    """Reads a text file."""

    name = "read_file"
    description = "Read a text file of the checkout; each line is told with its number."
    touches: Touches = "reads"
    takes = ReadArguments

    async def run(self, given: ReadArguments, place: Place) -> Outcome:
        """The lines asked for, and how many there are."""
        path = within(place, given.path)
        try:
            if os.path.getsize(path) > READ_MAX:
                return Outcome(
                    text=f"{given.path} has more than 10 MiB: read a part of it with the shell.", failed=True
                )
            with open(path, "rb") as file:
                lines = plain(file.read()).split("\n")
        except OSError as failed:
            return Outcome(text=f"{given.path} cannot be read: {failed.strerror}.", failed=True)
        shown = lines[given.first - 1 : given.first - 1 + given.lines]
        if not shown:
            return Outcome(text=f"{given.path} has {len(lines)} lines.", failed=True)
        text = "\n".join(f"{number}\t{line}" for number, line in enumerate(shown, given.first))
        rest = len(lines) - (given.first - 1) - len(shown)
        return Outcome(text=shortened(text) + (f"\n[{rest} more lines]" if rest else ""), display={"path": path})


class WriteArguments(Arguments):
    """A file and all that is to be in it."""

    path: str
    content: str


class Write:
    """Writes a whole file."""

    name = "write_file"
    description = "Write a whole file, new or in place of the old one."
    touches: Touches = "edits"
    takes = WriteArguments

    async def run(self, given: WriteArguments, place: Place) -> Outcome:
        """How many lines it has now."""
        path = within(place, given.path)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            put(path, given.content)
        except OSError as failed:
            return Outcome(text=f"{given.path} cannot be written: {failed.strerror}. It is as it was.", failed=True)
        return Outcome(
            text=f"{given.path} is written: {given.content.count(chr(10)) + 1} lines.", display={"path": path}
        )


class EditArguments(Arguments):
    """What stands there, and what is to stand there."""

    path: str
    old: str = Field(min_length=1, description="Text of the file, exactly; it must occur once, unless all is true")
    new: str
    all: bool = Field(default=False, description="Replace every occurrence")


class Edit:
    """Replaces text in a file."""

    name = "edit_file"
    description = "Replace text in a file. The old text must be given exactly as it stands there."
    touches: Touches = "edits"
    takes = EditArguments

    async def run(self, given: EditArguments, place: Place) -> Outcome:
        """How many places were changed; none if it is not clear which one is meant."""
        path = within(place, given.path)
        try:
            with open(path, encoding="utf-8", newline="") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as failed:
            return Outcome(text=f"{given.path} cannot be edited: {failed}. It is as it was.", failed=True)
        count = text.count(given.old)
        if count == 0 or (count > 1 and not given.all):
            why = "does not occur" if count == 0 else f"occurs {count} times: give more of the text around it"
            return Outcome(text=f"The old text {why}. {given.path} is as it was.", failed=True)
        try:
            put(path, text.replace(given.old, given.new))
        except OSError as failed:
            return Outcome(text=f"{given.path} cannot be written: {failed.strerror}. It is as it was.", failed=True)
        return Outcome(text=f"{given.path}: {count} changed.", display={"path": path})


class FindArguments(Arguments):
    """What to look for, and where."""

    pattern: str = Field(description="A regular expression; empty lists the files")
    path: str = Field(default=".", description="A file or a directory")
    files: str = Field(default="", description="Only files whose path matches this regular expression")


class Find:
    """Finds files and lines."""

    name = "find"
    description = "Find lines in the files of the checkout by a regular expression, or list the files."
    touches: Touches = "reads"
    takes = FindArguments

    async def run(self, given: FindArguments, place: Place) -> Outcome:
        """Path, line number and line; at most 200."""
        try:
            wanted, named = re.compile(given.pattern), re.compile(given.files)
        except re.error as wrong:
            return Outcome(text=f"That is no regular expression: {wrong}.", failed=True)
        return await asyncio.to_thread(self._look, given, wanted, named, place.cwd, within(place, given.path))

    def _look(
        self, given: FindArguments, wanted: re.Pattern[str], named: re.Pattern[str], cwd: str, top: str
    ) -> Outcome:
        found: list[str] = []
        for path in _files(top):
            told = os.path.relpath(path, cwd)
            if not named.search(told):
                continue
            if not given.pattern:
                found.append(told)
            else:
                found += [f"{told}:{number}: {line[:400]}" for number, line in _lines(path) if wanted.search(line)]
            if len(found) > FOUND_MAX:
                found = [*found[:FOUND_MAX], f"[more than {FOUND_MAX}: narrow the search]"]
                break
        return Outcome(text=shortened("\n".join(found)) or "Nothing found.")


def within(place: Place, path: str) -> str:
    """The absolute path that a tool means."""
    return os.path.normpath(os.path.join(place.cwd, os.path.expanduser(path)))


def put(path: str, text: str) -> None:
    """Write a file whole. Raises OSError; then the old one is as it was."""
    directory = os.path.dirname(path)
    number, beside = tempfile.mkstemp(dir=directory, prefix=".stopwarden-")
    try:
        with open(number, "w", encoding="utf-8", newline="", errors="surrogateescape") as file:
            file.write(text)
        if os.path.exists(path):
            os.chmod(beside, os.stat(path).st_mode & 0o7777)
        else:
            os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _files(top: str) -> Iterator[str]:
    if os.path.isfile(top):
        yield top
    for directory, below, names in os.walk(top):
        below[:] = sorted(name for name in below if name not in SKIPPED)
        yield from (os.path.join(directory, name) for name in sorted(names))


def _lines(path: str) -> Iterator[tuple[int, str]]:
    try:
        if os.path.getsize(path) > READ_MAX:
            return
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return
    if b"\0" not in data[:8_192]:
        yield from enumerate(plain(data).split("\n"), 1)
