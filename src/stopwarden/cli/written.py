"""What a command writes for the person: whole or not at all; a page never over something else.

It is written beside its place and then renamed, so a browser never meets half of it and a full disk
costs nothing. Only the person may read it: it holds the titles of their work. What is there already
is replaced only if it is such a page itself: a mistyped name must not cost anybody a list.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from stopwarden.core.errors import StoreUnwritableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stopwarden.cli.context import Context

_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def write(context: Context, named: str, text: str, mark: str) -> str:
    """Writes the text as a UTF-8 file; the path it is at then, absolute.

    `mark` is what every such file has near its beginning. Raises UsageError for a path at which no
    file can or may be written, StoreUnwritableError where the disk fails.
    """
    if not named or "\0" in named:
        raise UsageError(f"{named!r} is no name of a file", do="Use for instance: --html report.html")
    path = os.path.realpath(os.path.join(context.cwd, named))  # of a symbolic link, what it leads to
    try:
        _see_that_it_may_go(path, named, mark)
        put(path, [text])
    except OSError as error:
        said = f"{named} cannot be written: {error.strerror}"
        if error.errno in _THE_DISK:
            raise StoreUnwritableError(
                said, kept="Whatever was there is as it was", do="Make room on the disk"
            ) from error
        raise UsageError(
            said, kept="Nothing was written", do="Name a file in a folder that you can write to"
        ) from error
    return path


def put_record(path: str, named: str, lines: Iterable[str]) -> int:
    """Writes lines of the record to a file for the person alone; how many. Raises StoreUnwritableError."""
    written = 0

    def ended() -> Iterator[str]:
        nonlocal written
        for line in lines:
            written += 1
            yield line + "\n"

    try:
        put(path, ended())
    except OSError as error:
        raise StoreUnwritableError(
            f"{named} cannot be written ({error.strerror})",
            kept="What is recorded stays where it is",
            do="Name another file",
        ) from None
    return written


def put(path: str, parts: Iterable[str], mode: int = 0o600) -> None:
    """Writes the parts beside the path, puts them on disk, and renames: whole or not at all. Raises OSError."""
    fresh = os.path.join(os.path.dirname(path), f".{os.path.basename(path)[:200]}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(descriptor)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def _see_that_it_may_go(path: str, named: str, mark: str) -> None:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(there.st_mode):
        inside = os.path.join(named, "report.html")
        raise UsageError(f"{named} is a folder", kept="Nothing was written", do=f"Name a file in it: --html {inside}")
    if not stat.S_ISREG(there.st_mode):
        raise UsageError(f"{named} is no ordinary file", kept="Nothing was written", do="For standard output: --html -")
    with open(path, "rb") as file:
        begins = file.read(4096)
    if begins and mark.encode() not in begins:
        raise UsageError(
            f"{named} is there already and is no report", kept="It was left as it is", do="Choose another name"
        )
