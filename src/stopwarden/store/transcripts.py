"""Conversations of the native agent on disk: one row each, and its transcript as lines that are only added.

The lines of one step are one transaction, on disk when `write` returns. What a line means is the session's
matter (`session.journal`). May not live here: anything of the away check; the hook does not open this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stopwarden.core.record import Record
from stopwarden.store import place
from stopwarden.store.database import Database
from stopwarden.store.sqlite import open_sqlite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Conversation(Record):
    """One conversation. Instants are seconds UTC; `ended_at` is when it was put away for good."""

    id: str
    cwd: str
    created_at: int
    updated_at: int
    model: str = ""
    mode: str = ""
    title: str = ""
    parent: str = ""  # the session that spawned it
    ended_at: int | None = None


class TranscriptLine(Record):
    """One line. `at` is milliseconds UTC; `body` JSON. `number` is given by the store."""

    session: str
    at: int
    kind: str
    entry: str = ""
    turn: str = ""
    chain: int = 0
    attempt: int = 0
    body: str = "{}"
    number: int = 0


class Transcripts(Protocol):
    """Where conversations are kept. All raise the Store…Error classes."""

    def save(self, row: Conversation) -> None:
        """By id."""
        ...

    def conversation(self, id: str) -> Conversation | None:
        """None if it is not known."""
        ...

    def conversations(self, cwd: str = "", limit: int = 100) -> list[Conversation]:
        """Of a directory, or all: the latest first."""
        ...

    def write(self, lines: Sequence[TranscriptLine]) -> None:
        """Adds lines; all are on disk when this returns, or none."""
        ...

    def lines(self, session: str, after: int = 0) -> list[TranscriptLine]:
        """The lines after a number, in order."""
        ...

    def forget(self, session: str) -> bool:
        """A conversation and its transcript; False if there was none."""
        ...


def open_transcripts(env: Mapping[str, str]) -> SqliteTranscripts:
    """The user's transcripts; the database is begun at first use. Raises as `store.sqlite.open_sqlite` does."""
    state_dir = place.prepare(env)
    open_sqlite(state_dir).close()
    return SqliteTranscripts(f"{state_dir}/{place.DATABASE}")


class SqliteTranscripts(Database):
    """See `Transcripts`."""

    def save(self, row: Conversation) -> None:
        self._write("save_conversation", **row.as_dict())

    def conversation(self, id: str) -> Conversation | None:
        return next(iter(self._records(Conversation, "conversation", id=id)), None)

    def conversations(self, cwd: str = "", limit: int = 100) -> list[Conversation]:
        return self._records(Conversation, "conversations", cwd=cwd, limit=limit)

    def write(self, lines: Sequence[TranscriptLine]) -> None:
        if lines:
            with self.transaction():
                for line in lines:
                    given = line.as_dict()
                    del given["number"]
                    self._write("add_transcript_line", **given)

    def lines(self, session: str, after: int = 0) -> list[TranscriptLine]:
        return self._records(TranscriptLine, "transcript", session=session, after=after)

    def forget(self, session: str) -> bool:
        with self.transaction():
            self._write("forget_transcript", session=session)
            return bool(self._write("forget_conversation", session=session))


class MemoryTranscripts:
    """The same in memory: the simulator's, and a session's that is not to be kept."""

    def __init__(self) -> None:
        self._rows: dict[str, Conversation] = {}
        self._lines: dict[str, list[TranscriptLine]] = {}

    def save(self, row: Conversation) -> None:
        before = self._rows.get(row.id)
        if before is not None:
            row = row.replace(created_at=before.created_at, parent=before.parent)
        self._rows[row.id] = row

    def conversation(self, id: str) -> Conversation | None:
        return self._rows.get(id)

    def conversations(self, cwd: str = "", limit: int = 100) -> list[Conversation]:
        found = [row for row in self._rows.values() if not cwd or row.cwd == cwd]
        return sorted(found, key=lambda row: (-row.updated_at, row.id))[:limit]

    def write(self, lines: Sequence[TranscriptLine]) -> None:
        for line in lines:
            kept = self._lines.setdefault(line.session, [])
            kept.append(line.replace(number=len(kept) + 1))

    def lines(self, session: str, after: int = 0) -> list[TranscriptLine]:
        return [line for line in self._lines.get(session, []) if line.number > after]

    def forget(self, session: str) -> bool:
        self._lines.pop(session, None)
        return self._rows.pop(session, None) is not None
