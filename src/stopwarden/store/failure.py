"""What SQLite's failures mean to us, and what is done about a damaged database.

Every exception of apsw becomes one of our closed set, so that a caller can tell "busy", "cannot be
written" and "damaged" apart and nothing else escapes. A damaged database is set aside: renamed with
its companions, never deleted, so that what is left in it can still be recovered by hand. It happens
under a lock on the directory and only if the file is still the one that was found damaged, because
another program may have replaced it already.
"""

from __future__ import annotations

import os

import apsw

from stopwarden.core.errors import (
    StopwardenError,
    StoreBusyError,
    StoreCorruptError,
    StorePlaceError,
    StoreUnwritableError,
)
from stopwarden.store import place

NOTHING = "Nothing was written"

BUSY = (apsw.BusyError, apsw.LockedError, apsw.ProtocolError, apsw.SchemaChangeError, apsw.InterruptError)
DAMAGED = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)
DAMAGED_IO = (apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_DATA)


def is_damage(error: BaseException) -> bool:
    """Whether the failure says that the database itself is damaged.

    An undecodable text or a list that is no JSON (ValueError) is damage too: only a store writes rows.
    """
    return isinstance(error, (*DAMAGED, ValueError)) or getattr(error, "extendedresult", 0) in DAMAGED_IO


def translated(error: BaseException, path: str) -> StopwardenError:
    """Our error for a failure of SQLite, or of the operating system, that is no damage."""
    what = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    if isinstance(error, BUSY):
        return StoreBusyError(
            f"The database {path} is in use by another program ({what})",
            kept=NOTHING,
            do="Try again in a moment",
        )
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_CANTOPEN_SYMLINK:
        return StorePlaceError(f"{path} is not used: it is a symbolic link", kept=NOTHING, do="Remove the link")
    if isinstance(error, apsw.FullError):
        return StoreUnwritableError(f"The disk of {path} is full", kept=NOTHING, do="Make room on it")
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError | apsw.AuthError):
        return StoreUnwritableError(
            f"The database {path} cannot be written ({what})", kept=NOTHING, do="Make its disk and directory writable"
        )
    if isinstance(error, apsw.CantOpenError | OSError):
        return StoreUnwritableError(
            f"The database {path} cannot be opened ({what})", kept=NOTHING, do="See whether its disk works and has room"
        )
    if isinstance(error, apsw.IOError):
        return StoreUnwritableError(
            f"The disk failed on {path} ({what})", kept=NOTHING, do="See whether its disk works and has room"
        )
    return StoreUnwritableError(
        f"The database {path} refused ({type(error).__name__}: {what})", kept=NOTHING, do="Run: stopwarden doctor"
    )


def set_aside(path: str, found: tuple[int, int] | None, why: str, wait: float) -> StopwardenError:
    """Renames the damaged database and its companions; the error to raise, which says where they are.

    `found` is the device and inode of the file that was found damaged: any other file is left alone.
    """
    aside = place.unused(f"{path}.damaged-{place.stamp()}")
    do = "The next stopwarden command begins a new database"
    try:
        with place.Turn(os.path.dirname(path), wait):
            if identity(path) != found:
                return StoreCorruptError(
                    f"The database {path} was damaged ({why})", kept="Another program has set it aside", do=do
                )
            os.rename(path, aside)
            for companion in place.COMPANIONS:
                if os.path.lexists(path + companion):
                    os.rename(path + companion, place.unused(aside + companion))
            place.sync_directory(os.path.dirname(path))
    except (OSError, StopwardenError) as error:
        return StoreCorruptError(
            f"The database {path} is damaged ({why})",
            kept=f"It is still there, because it could not be set aside ({error})",
            do=f"Rename it yourself to {aside}",
        )
    return StoreCorruptError(f"The database {path} is damaged ({why})", kept=f"It was set aside as {aside}", do=do)


def identity(path: str) -> tuple[int, int] | None:
    """Which file stands at the path (device and inode), None if there is none."""
    try:
        there = os.lstat(path)
    except OSError:
        return None
    return there.st_dev, there.st_ino
