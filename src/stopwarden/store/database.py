"""One open SQLite database: how it is opened, written, waited for, and given up.

Theory of operation. Every process of ours (a hook lives for some milliseconds, a command for
seconds, a keeper for hours) opens the same file. A transaction takes the write lock at once
(BEGIN IMMEDIATE), so nothing that was read in it can change before it commits; it waits for the
lock within bounds; it is on disk when it returns (`synchronous` is always FULL). A nested
transaction is a savepoint: whole or not at all by itself, durable with the outermost one.

Write-ahead logging is used only with a SQLite in which two processes can do so safely
(`WAL_SINCE`), else the rollback journal. The log is not written back at every close, which would
cost each hook two more disk flushes, but once it is longer than `LOG_PAGES` pages; then it is removed
too, because a process that opens the database alone reads the whole log first.

A file that was replaced or removed under an open database is noticed before the next transaction:
nothing is written where nobody would find it. The statements are in `sql/queries.sql`, the steps of
the schema in `sql/migrations`. May not live here: SQL of ours, and what is stored.
"""

from __future__ import annotations

import os
import time

import apsw

from stopwarden.core.bounds import STORE_WAIT
from stopwarden.core.errors import StopwardenError, StoreCorruptError, StoreNewerError, StoreUnwritableError
from stopwarden.store import failure, migrate
from stopwarden.store.rows import record_of, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, TypeVar

    from stopwarden.core.record import Record

    R = TypeVar("R", bound=Record)

VERSION = 4  # the newest migration; a test holds it to the files
WAL_SINCE = (3, 51, 3)  # SQLite before this could damage a log that two processes write (fixed 2026-03)
LOG_PAGES = 250
PAGE = 4096
LONGEST_PAUSE = 0.016  # seconds between two attempts at a lock
UNSURE = "All that was being stored is there, or nothing of it"

_queries: dict[str, str] = {}


def queries(text: str) -> dict[str, str]:
    """The statements of a file by name: `-- name: x`, comment lines, the statement."""
    named = {}
    for part in text.split("-- name: ")[1:]:
        name, _, statement = part.partition("\n")
        while statement.startswith("--"):
            statement = statement.partition("\n")[2]
        named[name.strip()] = statement.strip()
    return named


def journal_mode() -> str:
    """How the SQLite that is linked here may write: "wal" or "delete"."""
    linked = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    return "wal" if linked >= WAL_SINCE else "delete"


class Transaction:
    """Whole or not at all. The outermost holds the write lock; an inner one is a savepoint of it."""

    def __init__(self, store: Database) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store._enter()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._store._keep()
        else:
            self._store._undo()


class Database:
    """An open database. Not for use by two threads at once."""

    def __init__(self, path: str, wait: float = STORE_WAIT) -> None:
        self.path = path
        self._wait = wait
        self._depth = 0
        self._broken: StopwardenError | None = None
        self._file = failure.identity(path)
        try:
            if not _queries:
                with open(f"{migrate.SQL}/queries.sql", encoding="utf-8") as file:
                    _queries.update(queries(file.read()))
            self._connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        except (apsw.Error, OSError) as error:
            raise failure.translated(error, path) from error
        try:
            self._settle()
        except (apsw.Error, OSError) as error:
            told = self._failed(error)
            self.close()
            raise told from error
        except BaseException:
            self.close()
            raise

    def _settle(self) -> None:
        """Checks that the database is ours, brings it up to date, and sets how it is written."""
        connection = self._connection
        connection.set_busy_handler(_patience(self._wait))
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        told: list[Any] = connection.execute("PRAGMA application_id; PRAGMA user_version").fetchall()
        (application,), (version,) = told
        if application != migrate.APPLICATION or version < 1:
            raise self._damaged("it is no database of Stopwarden")
        if version > VERSION:
            raise StoreNewerError(
                f"The database {self.path} was written by a newer Stopwarden (schema {version}, known here: {VERSION})",
                kept="Nothing in it was changed",
                do="Upgrade Stopwarden, or set XDG_STATE_HOME to another directory",
            )
        connection.execute("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA secure_delete = FAST").fetchall()  # what is replaced leaves its page at once
        wanted = journal_mode()
        try:
            connection.execute(f"PRAGMA journal_mode = {wanted}; PRAGMA wal_autocheckpoint = {LOG_PAGES}").fetchall()
        except apsw.BusyError:
            if wanted != "wal":  # staying with the rollback journal is safe; staying with a log may not be
                raise
        if version < VERSION:
            migrate.migrate(connection)

    def close(self) -> None:
        if self._broken is None:
            self._broken = StoreUnwritableError("The store was closed", kept=failure.NOTHING)
            if self._log_is_long():
                self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        try:
            self._connection.close()
        except apsw.Error:  # the log could not be put away; all that was committed is on disk, in it
            self._connection.close(force=True)

    def _log_is_long(self) -> bool:
        try:
            return os.stat(f"{self.path}-wal").st_size > LOG_PAGES * PAGE
        except OSError:
            return False

    # transactions

    def transaction(self) -> Transaction:
        return Transaction(self)

    @property
    def in_transaction(self) -> bool:
        return self._depth > 0

    def _enter(self) -> None:
        self._execute(f"SAVEPOINT level_{self._depth}" if self._depth else "BEGIN IMMEDIATE")
        self._depth += 1

    def _keep(self) -> None:
        """Ends the innermost transaction and keeps it; if that fails, nothing of it is kept."""
        try:
            self._execute(f"RELEASE level_{self._depth - 1}" if self._depth > 1 else "COMMIT")
        except BaseException as error:
            self._undo()
            if isinstance(error, StoreUnwritableError) and isinstance(error.__cause__, apsw.IOError):
                raise StoreUnwritableError(error.happened, kept=UNSURE, do=error.do) from error.__cause__
            raise
        self._depth -= 1

    def _undo(self) -> None:
        """Ends the innermost transaction and undoes it. Never raises: the failure that led here is told instead."""
        self._depth -= 1
        try:
            if self._connection.in_transaction:
                level = f"level_{self._depth}"
                self._connection.execute(f"ROLLBACK TO {level}; RELEASE {level}" if self._depth else "ROLLBACK")
        except apsw.ConnectionClosedError:
            pass
        except apsw.Error as error:
            if self._connection.in_transaction:  # it can do nothing any more; the next opening undoes what is left
                self._broken = failure.translated(error, self.path)
                self._connection.close()

    # statements

    def _execute(self, statement: str, values: Mapping[str, Any] | None = None) -> apsw.Cursor:
        if self._broken is not None:
            raise self._broken
        if not self._depth:
            self._refuse_a_lost_file()
        elif not self._connection.in_transaction:
            raise StoreUnwritableError(
                f"A failure in {self.path} undid the whole transaction", kept=failure.NOTHING, do="Try again"
            )
        try:
            return self._connection.execute(statement, values)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._failed(error) from error

    def _rows(self, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """All rows that a statement gives. The values must be storable."""
        cursor = self._execute(_queries[query], values)
        try:
            return cursor.fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._failed(error) from error

    def _records(self, kind: type[R], query: str, /, **values: Any) -> list[R]:
        """The records that a query finds."""
        found: list[R] = []
        columns: Sequence[str] = ()
        cursor = self._execute(_queries[query], {key: storable(value) for key, value in values.items()})
        try:
            for row in cursor:
                columns = columns or [column[0] for column in cursor.get_description()]
                found.append(record_of(kind, columns, row))
        except (apsw.Error, ValueError) as error:
            raise self._failed(error) from error
        return found

    def _text(self, query: str, /, **values: str) -> str:
        """The one text that a query finds, or ""."""
        found = self._rows(query, **{key: storable(value) for key, value in values.items()})
        return str(found[0][0]) if found else ""

    def _write(self, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """One statement that changes something, in the transaction that is open or in its own."""
        given = {key: storable(value) for key, value in values.items()}
        if self._depth:
            return self._rows(query, **given)
        with self.transaction():
            return self._rows(query, **given)

    # failures

    def _refuse_a_lost_file(self) -> None:
        if failure.identity(self.path) != self._file:
            self._broken = StoreCorruptError(
                f"The database {self.path} was replaced or removed while it was open",
                kept=failure.NOTHING,
                do="Run the command again",
            )
            self._connection.close()
            raise self._broken

    def _failed(self, error: BaseException) -> StopwardenError:
        """Our error for a failure of SQLite; a damaged database has been set aside by then."""
        if self._broken is not None:
            return self._broken
        if failure.is_damage(error) or (isinstance(error, apsw.SQLError) and not self._schema_is_whole()):
            return self._damaged(str(error))
        return failure.translated(error, self.path)

    def _damaged(self, why: str) -> StopwardenError:
        self._connection.close(force=True)
        self._broken = failure.set_aside(self.path, self._file, why, self._wait)
        return self._broken

    def _schema_is_whole(self) -> bool:
        """Whether every table, index and trigger is as the migrations make it: a statement failed, and why matters."""
        schema = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"
        expected = apsw.Connection(":memory:")
        try:
            migrate.migrate(expected)
            return self._connection.execute(schema).fetchall() == expected.execute(schema).fetchall()
        except (apsw.Error, OSError) as error:  # a disk that fails just now says nothing about the schema
            return not failure.is_damage(error)
        finally:
            expected.close()


def _patience(wait: float) -> Callable[[int], bool]:
    """A busy handler: asks again after a short pause, until `wait` seconds have gone by.

    SQLite's own pauses grow to a tenth of a second, which starves one hook among several.
    """
    until = 0.0

    def again(calls: int) -> bool:
        nonlocal until
        now = time.monotonic()
        if not calls:
            until = now + wait
        if now >= until:
            return False
        time.sleep(min(0.0005 * 2 ** min(calls, 8), LONGEST_PAUSE, until - now))
        return True

    return again
