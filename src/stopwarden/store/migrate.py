"""Brings a database to the schema that this program knows, and begins new ones.

Migrations are the files `sql/migrations/NNN_name.sql`, applied in the order of their numbers; the
number of the last one applied is the database's `user_version`. Each is one transaction: it is
applied whole or not at all, and two programs that open the database at once apply it once.

A new database appears whole: it is made under another name, migrated, closed, put on disk, and
only then renamed. So a database file that is empty or has no schema was damaged, never "about to
be made". May not live here: SQL.
"""

from __future__ import annotations

import os

import apsw

from stopwarden.store import place

SQL = os.path.dirname(os.path.abspath(__file__)) + "/sql"
APPLICATION = 0x53746F70  # "Stop": marks the file as ours


def migrations() -> list[tuple[int, str]]:
    """All migrations, the oldest first: the number and the path of each. Raises OSError."""
    names = sorted(name for name in os.listdir(f"{SQL}/migrations") if name.endswith(".sql"))
    return [(int(name.partition("_")[0]), f"{SQL}/migrations/{name}") for name in names]


def migrate(connection: apsw.Connection) -> None:
    """Applies what the database lacks. Raises apsw.Error or OSError; then the database is at the last whole one."""
    for number, path in migrations():
        with open(path, encoding="utf-8") as file:
            text = file.read()
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.pragma("user_version") < number:  # another program may have been quicker
                connection.execute(text)
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def begin(path: str, wait: float, journal_mode: str) -> None:
    """Makes a new, empty database at this path, unless another program has just done so.

    Raises apsw.Error, OSError or StoreBusyError; then there is no database, as before.
    """
    directory = os.path.dirname(path)
    new = path + ".new"
    with place.Turn(directory, wait):
        if place.check_database(path):
            return
        for orphan in place.COMPANIONS:  # a log of a database that is gone must not be taken for the new one's
            if os.path.lexists(path + orphan):
                os.rename(path + orphan, place.unused(f"{path}.damaged-{place.stamp()}{orphan}"))
        for left in (new, *(new + companion for companion in place.COMPANIONS)):
            if os.path.lexists(left):
                os.unlink(left)
        os.close(place.open_private(new, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        connection = apsw.Connection(new, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            # Before anything is in it: so that what is forgotten can give its room back a piece at a time.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute(f"PRAGMA synchronous = FULL; PRAGMA application_id = {APPLICATION}")
            migrate(connection)
            connection.execute(f"PRAGMA journal_mode = {journal_mode}").fetchall()
        finally:
            connection.close()
        os.rename(new, path)
        place.sync_directory(directory)
