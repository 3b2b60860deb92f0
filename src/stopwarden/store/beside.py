"""The files beside the database that keep something of the past: damaged ones set aside, and faults.

A database that was damaged is set aside whole, with its log, and a marker that could not be read is
kept under another name (`store.failure`, `store.marker`): what they hold stays until the person
forgets it. The file of faults grows by a line a fault; while a marker stands, hooks count in it, so it is
left alone then. May not live here: the spool (`hook.spool`), what the person is asked.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from typing import TYPE_CHECKING

from stopwarden.core.record import Record
from stopwarden.store import marker, place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.core.events import Instant

FAULTS_MAX = 64 * 1024 * 1024
_ASIDE = re.compile(r"(?:stopwarden\.db|away\.json)\.damaged-([0-9]{8}T[0-9]{6})Z")


class Beside(Record):
    """One file that was set aside."""

    path: str
    at: Instant  # when it was set aside, by its name
    size: int


def set_aside(state_dir: str, before: Instant | None = None) -> list[Beside]:
    """What was set aside before an instant, by name; all of it without one."""
    found = []
    try:
        names = sorted(os.listdir(state_dir))
    except OSError:
        return []
    for name in names:
        stamp = _ASIDE.match(name)
        if stamp is None:
            continue
        try:
            at = int(datetime.fromisoformat(f"{stamp[1]}+00:00").timestamp())
            size = os.lstat(f"{state_dir}/{name}").st_size
        except (ValueError, OSError):
            continue
        if before is None or at < before:
            found.append(Beside(path=f"{state_dir}/{name}", at=at, size=size))
    return found


def remove(files: Iterable[Beside]) -> list[str]:
    """Removes them; the paths of those that could not be."""
    left = []
    for one in files:
        try:
            os.unlink(one.path)
        except FileNotFoundError:
            continue
        except OSError:
            left.append(one.path)
    return left


def old_faults(state_dir: str, before: Instant | None) -> int:
    """How many lines of the file of faults are older; all without an instant. 0 while hooks may count in it."""
    if marker.read(state_dir) is not None:
        return 0
    return len(_parted(state_dir, before)[0])


def forget_faults(state_dir: str, before: Instant | None) -> int:
    """Takes older lines out of the file of faults, whole or not at all; how many.

    Raises OSError where it cannot be written; then it is as it was.
    """
    if marker.read(state_dir) is not None:
        return 0
    gone, kept = _parted(state_dir, before)
    if not gone:
        return 0
    path = f"{state_dir}/{marker.FAULTS}"
    if not kept:
        os.unlink(path)
        return len(gone)
    new = f"{path}.new"
    file = place.open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        data = "".join(f"{line}\n" for line in kept).encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    finally:
        os.close(file)
    os.rename(new, path)
    place.sync_directory(state_dir)
    return len(gone)


def _parted(state_dir: str, before: Instant | None) -> tuple[list[str], list[str]]:
    """The file's lines that go, and those that stay. A line without a time goes with everything alone."""
    try:
        file = os.open(f"{state_dir}/{marker.FAULTS}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return [], []
    with open(file, "rb") as faults:
        lines = faults.read(FAULTS_MAX).decode("utf-8", "surrogateescape").splitlines()
    gone: list[str] = []
    kept: list[str] = []
    for line in lines:
        at = line.partition(" ")[0]
        goes = before is None or (at.isascii() and at.isdigit() and len(at) < 20 and int(at) < before)
        (gone if goes else kept).append(line)
    return gone, kept
