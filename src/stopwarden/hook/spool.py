"""The spool: facts that hooks left without opening the database, taken over exactly once.

Writers only ever append whole lines. The reader keeps, in the database and in the same
transaction that uses the facts, how far it has read (`inode offset`), so a crash between reading
and committing loses nothing and repeats nothing. A spool that has grown is renamed to `spool.old`
once it is read to its end; a writer that still held it open is heard at the next reading.
"""

from __future__ import annotations

import os

from stopwarden import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stopwarden.hosts.claude_code_facts import Fact
    from stopwarden.store.port import Store

ROTATE_AT = 1024 * 1024
READ_MAX = 64 * 1024 * 1024
FARTHEST = 10**11  # seconds: no event is later than that
SETTLED = 0.3  # seconds after which whoever had the spool open has written
NAMES = ("spool.old", "spool")  # the older first


def facts(store: Store, state_dir: str) -> list[Fact]:
    """The facts not taken over yet, in the order they were written. Call inside a transaction.

    Lines that are no facts are left out. Raises OSError where the spool is there and unreadable.
    """
    taken: list[Fact] = []
    places = _places(store)
    kept: dict[str, str] = {}
    for name in NAMES:
        path = f"{state_dir}/{name}"
        try:
            spool = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            status = os.fstat(spool)
            inode, begin = str(status.st_ino), 0
            if places.get(inode, 0) <= status.st_size:
                begin = places.get(inode, 0)
            lines, end = _whole_lines(spool, begin, status.st_size)
            taken += _parsed(lines)
            kept[inode] = str(end)
            if name == "spool" and end == status.st_size > ROTATE_AT:
                os.rename(path, f"{state_dir}/spool.old")
        finally:
            os.close(spool)
    if kept != {inode: str(offset) for inode, offset in places.items()}:
        store.save_fact("spool", "read", " ".join(f"{inode}:{offset}" for inode, offset in kept.items()))
    return taken


def _places(store: Store) -> dict[str, int]:
    """How far each spool file, by inode, has been read."""
    places = {}
    for part in store.fact("spool", "read").split():
        inode, _, offset = part.partition(":")
        if offset.isdigit():
            places[inode] = int(offset)
    return places


def _whole_lines(spool: int, begin: int, size: int) -> tuple[bytes, int]:
    """The bytes of the whole lines from `begin` on, and where they end; a torn last line waits."""
    os.lseek(spool, begin, os.SEEK_SET)
    data = b""
    while len(data) < min(size - begin, READ_MAX):
        part = os.read(spool, 1 << 20)
        if not part:
            break
        data += part
    whole = data[: data.rfind(b"\n") + 1]
    return whole, begin + len(whole)


def _parsed(lines: bytes) -> Iterator[Fact]:
    for line in lines.splitlines():
        try:
            told = wire.loads(line)
        except ValueError:
            continue
        if not isinstance(told, dict) or not isinstance(told.get("e"), str):
            continue
        at = told.get("t")
        if isinstance(at, int | float) and 0 <= at < FARTHEST:
            yield told


def emptied(store: Store, state_dir: str, take: Callable[[], object], pause: Callable[[float], None]) -> bool:
    """Takes over all facts with `take`, then removes the files that held them. False if that cannot be done now.

    A writer opens, writes one line and closes at once: one that had the file open when it was put aside is
    heard at the second taking. The file is emptied before its place is forgotten, and removed last: a
    crash in between neither loses nor repeats a fact, whatever file has its inode next.
    """
    path, old = f"{state_dir}/spool", f"{state_dir}/spool.old"
    take()
    for name in (old, path):
        if name == path:
            try:
                os.rename(path, old)
            except FileNotFoundError:
                return True
            pause(SETTLED)
        take()
        if not _removed(store, old):
            return False
    return True


def _removed(store: Store, path: str) -> bool:
    """Removes a spool file that was read to its end."""
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        there = os.fstat(file)
        with store.transaction():
            places = _places(store)
            begin = places.get(str(there.st_ino), 0)
            if begin > there.st_size or _whole_lines(file, begin, there.st_size)[0]:
                return False  # a line that came just now; one without an end nobody will finish
            os.ftruncate(file, 0)
            os.fsync(file)
            places.pop(str(there.st_ino), None)
            store.save_fact("spool", "read", " ".join(f"{inode}:{offset}" for inode, offset in places.items()))
        os.unlink(path)
    finally:
        os.close(file)
    return True
