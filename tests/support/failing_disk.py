"""A disk that fails on purpose, as a virtual file system of SQLite.

While it is in use every connection goes through it. It counts what would reach the disk (writes,
flushes, truncations, deletions) and fails the one it is told to, or from there on; a failing write
leaves half of its bytes, as a torn write does. `lose_power` takes back whatever was written and
never flushed, as a machine that is switched off does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw


class Disk:
    """What happens to the next accesses. `at` is 1 for the first; 0 fails none."""

    def __init__(self) -> None:
        self.at, self.done, self.for_good = 0, 0, False
        self.late = False  # a deletion that fails is done all the same
        self.error: type[apsw.Error] = apsw.IOError
        self.kinds = frozenset({"write", "sync", "truncate", "delete"})
        self.log: list[str] = []  # the kind of every access, in order
        self.not_flushed: dict[str, list[tuple[int, bytes, int]]] = {}  # by file: offset, what was there, its size

    def fail(self, at: int, *, for_good: bool = False, error: type[apsw.Error] = apsw.IOError) -> None:
        """From now on, fails the access of this number; with `for_good` every later one too."""
        self.at, self.done, self.for_good, self.error = at, 0, for_good, error
        self.not_flushed = {}

    def works(self) -> None:
        """From now on, fails nothing."""
        self.fail(0)
        self.late = False

    def fails(self, kind: str) -> bool:
        """Counts one access; whether it is to fail."""
        if kind not in self.kinds:
            return False
        self.log.append(kind)
        self.done += 1
        return bool(self.at) and (self.done == self.at or (self.for_good and self.done > self.at))

    def lose_power(self) -> None:
        """Puts every file back to what was flushed last. Only with all connections closed."""
        for path, changes in self.not_flushed.items():
            with open(path, "r+b") as file:
                for offset, before, size in reversed(changes):
                    file.seek(offset)
                    file.write(before)
                    file.truncate(size)
        self.not_flushed = {}


class _Files(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__("failing disk", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        if self._disk.fails("delete"):
            if self._disk.late:
                super().xDelete(filename, syncdir)
            raise self._disk.error("a failing disk")
        super().xDelete(filename, syncdir)
        self._disk.not_flushed.pop(filename, None)

    def excepthook(self, *_: Any) -> bool:
        return True


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__("unix", name, flags)

    def _remember(self, offset: int, length: int) -> None:
        size = self.xFileSize()
        there = max(0, min(length, size - offset))
        before = self.xRead(there, offset) if there else b""
        self._disk.not_flushed.setdefault(self._path, []).append((offset, before, size))

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        fails = self._disk.fails("write")
        part = bytes(data)[: len(data) // 2] if fails else bytes(data)
        self._remember(offset, len(part))
        super().xWrite(part, offset)
        if fails:
            raise self._disk.error("a failing disk")

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._disk.fails("sync"):
            raise self._disk.error("a failing disk")
        super().xSync(flags)
        self._disk.not_flushed.pop(self._path, None)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        if self._disk.fails("truncate"):
            raise self._disk.error("a failing disk")
        self._remember(newsize, self.xFileSize())
        super().xTruncate(newsize)

    def excepthook(self, *_: Any) -> bool:
        return True


@contextmanager
def failing_disk() -> Iterator[Disk]:
    """The disk under every connection opened inside."""
    disk = Disk()
    files = _Files(disk)
    try:
        yield disk
    finally:
        disk.works()
        files.unregister()
