"""Where state lives on this machine, and whether that place is safe to write in.

One private directory per user holds the database, the marker and the append-only files. It is
refused, never repaired, when somebody else could have prepared it: a symbolic link in the part of
the path that is ours to make, another owner, a directory that others may write in. It is also
refused on a network file system, where SQLite's locks do not hold. What is merely readable by
others is narrowed (0700 for directories, 0600 for files), whatever the umask.

Every opening of the store passes here, so it costs a handful of `lstat` calls and one small read.
May not live here: anything about what the files hold.
"""

from __future__ import annotations

import errno
import os
import stat

from stopwarden.core.errors import StoreBusyError, StorePlaceError, StoreUnwritableError
from stopwarden.store import mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

DIRECTORY = "stopwarden"
DATABASE = "stopwarden.db"
DEFAULT_STATE = "/.local/state"
COMPANIONS = ("-wal", "-shm", "-journal")  # SQLite's files beside a database
LONGEST_PATH = 480  # bytes; SQLite opens no database whose path is longer than 512


def state_dir(env: Mapping[str, str]) -> str:
    """The absolute path of the state directory, which need not exist.

    A relative XDG_STATE_HOME is ignored, as the XDG base directory specification says; without a
    usable HOME the user's entry in the password database serves. Raises StorePlaceError if there
    is none either.
    """
    base = _absolute(env.get("XDG_STATE_HOME", ""))
    if not base:
        home = _absolute(env.get("HOME", "")) or _home_of_user()
        base = home.rstrip("/") + DEFAULT_STATE
    return base.rstrip("/") + "/" + DIRECTORY


def prepare(env: Mapping[str, str]) -> str:
    """The state directory, made where it is missing, and checked. Returns its path.

    Made one level at a time, each private, and nothing below a level that is refused.
    Raises StorePlaceError where the place is refused, StoreUnwritableError where it cannot be made.
    """
    path = state_dir(env)
    _refuse_unusable(path)
    ours = _ours(path)
    above = os.path.dirname(ours[0])
    missing = []
    while not os.path.lexists(above):
        missing.append(above)
        above = os.path.dirname(above)
    _refuse_network(above, first_time=not os.path.lexists(path))
    for level in [*reversed(missing), *ours]:
        if not _directory_there(level, follow=level in missing):
            _make(level)
    check(path)
    return path


def check(path: str) -> None:
    """Whether the state directory at this path is safe. Where it is only too readable, that is taken from it.

    Raises StorePlaceError for a symbolic link, another owner, a directory that others may write
    in, a network file system, a path too long for SQLite, or no directory at all.
    """
    _refuse_unusable(path)
    for level in _ours(path):
        if not _directory_there(level):
            raise _refused(level, "there is no such directory", do="Any stopwarden command makes it")
    there = os.lstat(path)
    if there.st_uid != os.geteuid():
        raise _refused(path, f"it belongs to another user (uid {there.st_uid})")
    if there.st_mode & 0o022:
        raise _refused(path, "others may write in it", do=f"See what is in it, then: chmod 700 {path}")
    if stat.S_IMODE(there.st_mode) & ~0o700:
        _narrow(path, there.st_mode & 0o700)
    _refuse_network(path)


def check_file(path: str) -> bool:
    """Whether there is a file of ours at this path. Where it is only too open, that is taken from it.

    Raises StorePlaceError for a symbolic link, anything but a regular file, or another owner.
    """
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refused(path, os.strerror(error.errno or 0)) from error
    _refuse_strange(path, there)
    if stat.S_IMODE(there.st_mode) & ~0o600:
        _narrow(path, there.st_mode & 0o600)
    return True


def check_database(path: str) -> bool:
    """Whether there is a database of ours at this path; its companions are checked with it.

    It looks and never opens: closing any descriptor of a database file would drop the locks that
    this process holds on it through SQLite.
    """
    for companion in COMPANIONS:
        check_file(path + companion)
    return check_file(path)


def open_private(path: str, flags: int) -> int:
    """A descriptor of a private file of ours in the state directory, created as 0600 if `flags` say O_CREAT.

    For the marker and the append-only files, not for the database. Raises StorePlaceError for a
    symbolic link, anything but a regular file, or another owner; OSError for the rest.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise _refused(path, "it is a symbolic link or no regular file") from error
        raise
    try:
        there = os.fstat(descriptor)
        _refuse_strange(path, there)
        wanted = 0o600 if flags & os.O_CREAT else there.st_mode & 0o600
        if stat.S_IMODE(there.st_mode) != wanted:
            os.fchmod(descriptor, wanted)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def sync_directory(path: str) -> None:
    """Puts on disk which names the directory holds. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Turn:
    """A lock on the directory itself, for the two acts that replace the database: beginning one, setting one aside.

    Ends with the process, so nothing has to be cleaned up after a crash.
    Raises StoreBusyError when another process has it for longer than `wait` seconds.
    """

    def __init__(self, path: str, wait: float) -> None:
        self._path, self._wait = path, wait

    def __enter__(self) -> None:
        import fcntl
        import time

        until = time.monotonic() + self._wait
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if time.monotonic() < until and error.errno in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                    time.sleep(0.005)
                    continue
                os.close(self._descriptor)
                raise StoreBusyError(
                    f"Another stopwarden is replacing the database in {self._path}",
                    kept="Nothing was written",
                    do="Try again in a moment",
                ) from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._descriptor)


def _absolute(path: str) -> str:
    """The path normalised, or nothing if it is relative or cannot be one."""
    if not path.startswith("/") or "\0" in path:
        return ""
    return "/" + os.path.normpath(path).lstrip("/")


def _home_of_user() -> str:
    import pwd

    try:
        home = _absolute(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        home = ""
    if not home:
        raise StorePlaceError("There is no home directory", do="Set HOME or XDG_STATE_HOME to an absolute path")
    return home


def _ours(path: str) -> list[str]:
    """The levels of the path that are ours to make, from the top: a link in one of them is refused.

    Above them stands what the person or the system laid out (a linked /home, say): it is followed.
    """
    levels = [path]
    for _ in range(2 if path.endswith(DEFAULT_STATE + "/" + DIRECTORY) else 1):
        above = os.path.dirname(levels[0])
        if above != "/":
            levels.insert(0, above)
    return levels


def _refuse_unusable(path: str) -> None:
    """Refuses what SQLite cannot open."""
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        path = os.fsencode(path).decode("utf-8", "replace")
        raise _refused(path, "its path is no UTF-8 text") from None
    if length > LONGEST_PATH:
        raise _refused(path, "its path is too long for a database")


def _directory_there(path: str, *, follow: bool = False) -> bool:
    """True: a directory; False: nothing. Anything else is refused."""
    try:
        there = os.stat(path) if follow else os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refused(path, os.strerror(error.errno or 0)) from error
    if stat.S_ISLNK(there.st_mode):
        raise _refused(path, "it is a symbolic link", do="Remove the link, or set XDG_STATE_HOME to a real directory")
    if not stat.S_ISDIR(there.st_mode):
        raise _refused(path, "it is no directory")
    return True


def _make(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)  # a umask may have taken our own permission too
    except FileExistsError:
        _directory_there(path)  # made by another process since we looked
    except OSError as error:
        raise StoreUnwritableError(
            f"{path} cannot be made: {os.strerror(error.errno or 0)}",
            kept="Nothing was written",
            do="Make it writable, or set XDG_STATE_HOME to a directory that is",
        ) from error


def _narrow(path: str, mode: int) -> None:
    try:
        os.chmod(path, mode)
    except OSError as error:
        if error.errno != errno.EROFS:  # on a read-only disk it can still be read
            raise _refused(path, f"its mode cannot be made {mode:o}: {os.strerror(error.errno or 0)}") from error


def _refuse_strange(path: str, there: os.stat_result) -> None:
    if stat.S_ISLNK(there.st_mode):
        raise _refused(path, "it is a symbolic link", do="Remove the link")
    if not stat.S_ISREG(there.st_mode):
        raise _refused(path, "it is no regular file")
    if there.st_uid != os.geteuid():
        raise _refused(path, f"it belongs to another user (uid {there.st_uid})")


def _refused(path: str, why: str, *, do: str = "") -> StorePlaceError:
    return StorePlaceError(
        f"{path} is not used for state: {why}",
        kept="Nothing was written there",
        do=do or "Put that right, or set XDG_STATE_HOME to a directory of your own on a local disk",
    )


def _refuse_network(path: str, *, first_time: bool = False) -> None:
    kind = mounts.file_system(path, may_start_a_process=first_time)
    if mounts.is_network(kind):
        raise _refused(path, f"it is on a network file system ({kind}), where a database's locks do not hold")


def stamp() -> str:
    """Now, for the name of a file that is set aside: UTC, to the second."""
    import time

    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def unused(path: str) -> str:
    """This path, or the first of `path.2`, `path.3` … at which there is nothing."""
    free, number = path, 1
    while os.path.lexists(free):
        number += 1
        free = f"{path}.{number}"
    return free
