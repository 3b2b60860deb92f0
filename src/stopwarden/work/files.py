"""A list of work as a file: read so that nothing is mistaken for empty, written so that nobody's edit is lost.

Theory of operation. A list is edited by a person's editor, by an agent's tools and by our commands
at any time. Reading: what cannot be read whole and as text raises ListError, so what it holds is
*unknown*; a file that changes while it is read is read again, and one that was emptied a moment
ago is most likely about to be written. Text is UTF-8 (a BOM and stray bytes are kept as they are),
or UTF-16 where a BOM says so.

Writing (`edit`): read, change, look whether the file is still what was read, then put a synced
file of the same owner and mode in its place by one rename; if it changed meanwhile, everything
again on the new text. Our own commands take turns by a lock on the file. A linked list is written
through to its target. Where a rename would break something (a hard link, another owner, a folder
without permission, a mount point), the file is written in place.

May not live here: the grammar of lists, which list a session has.
"""

from __future__ import annotations

import errno
import os
import stat

from stopwarden.core.bounds import LIST_MAX
from stopwarden.core.errors import ListError
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.events import Instant

READS = 3
EDITS = 50
LOCK_WAIT = 2.0  # seconds that our own commands wait for each other
JUST_EMPTIED = 3  # seconds for which an empty file is taken as about to be written
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_TROUBLE = {
    errno.ENOENT: "it is not there",
    errno.ENOTDIR: "it is not there",
    errno.EACCES: "it may not be read",
    errno.EPERM: "it may not be read",
    errno.ELOOP: "it is a symbolic link",
    errno.EAGAIN: "it is locked",
    errno.EBUSY: "it is locked",
    errno.ENXIO: "it is no ordinary file",
    errno.ENAMETOOLONG: "its name is too long",
    errno.EISDIR: "it is a folder",
}


class ListFile(Record):
    """A list as it was when it was read."""

    text: str
    raw: bytes
    encoding: str = "utf-8"
    inode: tuple[int, int] = (0, 0)


def read_list(path: str, name: str = "", *, now: Instant | None = None, follow: bool = True) -> ListFile:
    """The list in a file. `name` is what a person calls it. With `now`, a file emptied just then is not believed.

    Raises ListError for anything that cannot be read whole: missing, not allowed, locked, no ordinary
    file, larger than LIST_MAX, no text, changing all the time.
    """
    name = name or path
    for _ in range(READS):
        try:
            raw, before, after = _bytes_of(path, follow)
        except (OSError, ValueError) as error:
            raise unreadable(name, _TROUBLE.get(getattr(error, "errno", 0) or 0, "it cannot be read")) from error
        if not stat.S_ISREG(before.st_mode):
            kind = "a folder" if stat.S_ISDIR(before.st_mode) else "no ordinary file"
            raise unreadable(name, f"it is {kind}")
        if len(raw) > LIST_MAX:
            raise unreadable(name, f"it is larger than {LIST_MAX // 1024 // 1024} MiB")
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) and len(raw) == after.st_size:
            if not raw and now is not None and abs(now - after.st_mtime) <= JUST_EMPTIED:
                raise unreadable(name, "it was emptied a moment ago")
            text, encoding = _decoded(raw, name)
            return ListFile(text=text, raw=raw, encoding=encoding, inode=(after.st_dev, after.st_ino))
    raise unreadable(name, "it changes all the time")


def unreadable(name: str, why: str) -> ListError:
    """The error for a list that cannot be read."""
    return unknown(f"{name} ({why})")


def unknown(source: str) -> ListError:
    """The error for a source of work, `NAME (WHY)`: what it means that it was not read, and what to do."""
    return ListError(
        source,
        kept="What it holds is unknown, so it counts as unfinished work",
        do="Make it readable again, or name another list",
    )


def edit(path: str, change: Callable[[str], str], name: str = "") -> str:
    """Changes the text of a list by `change`, which may be called again on a newer text; the new text.

    Raises ListError if the file cannot be read or written, or changes all the time; then it is as
    others left it. What `change` raises is passed on and nothing is written.
    """
    path = os.path.realpath(path)
    name = name or path
    for _ in range(EDITS):
        with _Turn(path) as turn:
            there = read_list(path, name)
            if not turn.is_for(there.inode):
                continue  # another of our commands replaced it while we waited
            text = change(there.text)
            if text == there.text:
                return text
            try:
                if _replace(path, _encoded(text, there.encoding), there):
                    return text
            except OSError as error:
                raise ListError(
                    f"{name} cannot be written ({os.strerror(error.errno or 0).lower()})",
                    kept="It is as it was",
                    do="Give yourself permission to write it, or make room on the disk",
                ) from error
    raise ListError(f"{name} changes all the time", kept="It is as others left it", do="Try again in a moment")


def create(path: str, text: str, name: str = "") -> None:
    """A new list file with that text. Raises ListError if there is something already, or it cannot be made."""
    try:
        into = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        why = "there is something already" if error.errno == errno.EEXIST else os.strerror(error.errno or 0).lower()
        raise ListError(f"{name or path} cannot be made ({why})", kept="Nothing was written") from error
    with os.fdopen(into, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.flush()
        os.fsync(file.fileno())


def _bytes_of(path: str, follow: bool) -> tuple[bytes, os.stat_result, os.stat_result]:
    """What a file holds, up to a byte more than is allowed, and its facts before and after. Never waits for a FIFO."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        before = os.fstat(descriptor)
        parts = []
        left = LIST_MAX + 1 if stat.S_ISREG(before.st_mode) else 0
        while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts), before, os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _decoded(raw: bytes, name: str) -> tuple[str, str]:
    encoding = "utf-16" if raw.startswith(_UTF16) else "utf-8"
    if encoding == "utf-16":
        encoding = "utf-16-le" if raw.startswith(_UTF16[0]) else "utf-16-be"
        try:
            return raw.decode(encoding), encoding
        except UnicodeDecodeError as error:
            raise unreadable(name, "it is damaged UTF-16 text") from error
    if raw.count(b"\0") > len(raw) // 10:
        raise unreadable(name, "it is no text in UTF-8")
    return raw.decode("utf-8", "surrogateescape"), encoding


def _encoded(text: str, encoding: str) -> bytes:
    return text.encode(encoding, "surrogateescape" if encoding == "utf-8" else "replace")


def _replace(path: str, content: bytes, there: ListFile) -> bool:
    """Puts new content in the place of what was read; False if that has changed since."""
    now = os.lstat(path)
    temporary = f"{os.path.dirname(path)}/.{os.path.basename(path)[:200]}.stopwarden-{os.urandom(6).hex()}"
    made = _written_beside(temporary, content, now) if now.st_nlink == 1 else False
    try:
        if _bytes_of(path, follow=False)[0] != there.raw:
            return False
        if made:
            try:
                os.rename(temporary, path)
                made = False
            except OSError as error:
                if error.errno not in (errno.EBUSY, errno.EPERM, errno.EACCES, errno.EXDEV):
                    raise
                _write_in_place(path, content)  # a mount point of its own, or a sticky folder
            else:
                _sync_folder(os.path.dirname(path))
        else:
            _write_in_place(path, content)
        return True
    finally:
        if made:
            os.unlink(temporary)


def _written_beside(path: str, content: bytes, like: os.stat_result) -> bool:
    """A synced file with the owner and mode of another; False where it can have them only in that file itself."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP):
            return False
        raise
    try:
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
            os.fchown(descriptor, like.st_uid, like.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        _write_all(descriptor, content)
        os.fsync(descriptor)
    except OSError as error:
        os.unlink(path)
        if error.errno == errno.EPERM:
            return False
        raise
    finally:
        os.close(descriptor)
    return True


def _write_in_place(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _write_all(descriptor, content)
        os.ftruncate(descriptor, len(content))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_folder(path: str) -> None:
    descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some file systems cannot sync a folder; the file itself is synced
    finally:
        os.close(descriptor)


class _Turn:
    """Our commands, one after another: a lock on the file itself, where the file system has locks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> _Turn:
        import fcntl
        import time

        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return self  # reading it says why
        until = time.monotonic() + LOCK_WAIT
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES, errno.EINTR) and time.monotonic() < until:
                    time.sleep(0.005)
                    continue
            return self

    def is_for(self, inode: tuple[int, int]) -> bool:
        """Whether the file read is the one that is locked."""
        if self._descriptor < 0:
            return True
        there = os.fstat(self._descriptor)
        return (there.st_dev, there.st_ino) == inode

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
