"""Forgetting: what of the record goes, and how it goes so that nothing else does.

Theory of operation. A `Choice` says which nights, session or age. `plan` reads what would go, so that
the person can be asked; `carry_out` does it. Nights go whole, with their verdicts, lines and questions;
what belongs to no night goes by its instant. What is running stays: periods that have not ended or
that the marker names, all that was recorded since the earliest of them, the sessions they cover, live
holds, unfinished items. A token is never given twice, so a released hold loses its words and keeps its
row, and no number of a verdict or a line is used again.

Rows go in pieces, each a transaction of some milliseconds, so that no hook waits; each piece brings the
line that says what has gone so far up to date, so a crash in between leaves a record that tells the
truth, and doing it again goes on. The away periods themselves go last. The database refuses every
other delete in the account (see `sql/migrations/003_forgetting.sql`).

Texts that verdicts name by digest go when no verdict that is left names them (`sweep`). Then the room is
given back and the log emptied (`shrink`), after which the words are in no file of the database.
May not live here: files beside the database (`store.beside`), wording, limits.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import apsw

from stopwarden.core.bounds import DAY
from stopwarden.core.record import Record
from stopwarden.store import migrate
from stopwarden.store.database import queries
from stopwarden.store.forgotten import Forgotten, as_text
from stopwarden.store.rows import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any

    from stopwarden.core.events import AwayPeriod, Instant
    from stopwarden.store.sqlite import SqliteStore

PIECE_ROWS, PIECE_BYTES = 400, 2 * 1024 * 1024  # of one transaction
SCANNED = 500  # bodies read at a time
ROOM_PAGES = 512  # given back in one transaction
REWRITTEN_MAX = 64 * 1024 * 1024  # bytes; a database up to this is rewritten whole, which takes less than a second
HEARD_BEFORE = 1 * DAY  # a session heard of so long before a running period is taken to be in it

_NAMED = re.compile(r'"(?:lines|snapshot)"\s*:\s*"([0-9a-f]+)"')
_sql: dict[str, str] = {}


if TYPE_CHECKING:
    Enough = Callable[[], bool]  # whether to leave the rest for another time


class Choice(Record):
    """What the person chose to forget. Exactly one of them, or `everything`."""

    before: Instant | None = None  # nights that ended before, and what belongs to none
    period: str = ""
    session: str = ""
    everything: bool = False
    how: str = ""  # in words, for the record: "older than 90d"


class Plan(Record):
    """What would go."""

    choice: Choice
    periods: tuple[str, ...] = ()  # nights that go whole
    running: tuple[str, ...] = ()  # nights that stay because they have not ended
    sessions: tuple[str, ...] = ()  # those of which all goes
    verdicts: tuple[tuple[int, Instant, int], ...] = ()  # number, instant, bytes
    lines: tuple[tuple[int, Instant, int], ...] = ()
    questions: tuple[tuple[int, Instant, int], ...] = ()  # number, instant, whether it needs no answer
    ledger: tuple[int, ...] = ()
    holds: int = 0  # released ones whose words go
    finished: Instant = 0  # items finished, and holds released, before that go
    later: int = 0  # verdicts and lines dated after now: a clock was ahead

    @property
    def since(self) -> Instant | None:
        """The first instant of what goes, None if nothing does."""
        return min((row[1] for rows in (self.verdicts, self.lines, self.questions) for row in rows), default=None)

    @property
    def until(self) -> Instant | None:
        """The last instant of what goes."""
        return max((row[1] for rows in (self.verdicts, self.lines, self.questions) for row in rows), default=None)

    @property
    def unanswered(self) -> int:
        """Questions that nobody has answered."""
        return sum(not row[2] for row in self.questions)

    @property
    def size(self) -> int:
        """About how many bytes of verdicts and lines go."""
        return sum(row[2] for row in (*self.verdicts, *self.lines))

    @property
    def empty(self) -> bool:
        """Nothing would go."""
        return not (self.periods or self.sessions or self.verdicts or self.lines or self.questions or self.ledger) and (
            not self.holds
        )


# --- what goes ----------------------------------------------------------------------------------


def plan(store: SqliteStore, choice: Choice, marked: Collection[str], now: Instant) -> Plan:
    """What would go; `marked` are the ids of the periods that the marker names. Nothing is changed."""
    going = [one for one in _ended(store, marked) if _chosen(one, choice)]
    running = [one for one in store.periods() if one.ended_at is None or one.id in marked]
    earliest = min((one.since for one in running), default=LARGEST)
    loose = -LARGEST if choice.period else min(earliest, LARGEST if choice.before is None else choice.before)
    given = {"session": choice.session or None, "loose": loose}
    _fill(store, "going_period", [one.id for one in going])
    sessions = _sessions_going(store, choice, given, going, earliest)
    _fill(store, "going_session", sessions)
    finished = -LARGEST if choice.session or choice.period else loose
    return Plan(
        choice=choice,
        periods=() if choice.session else tuple(one.id for one in going),
        running=tuple(one.id for one in running if choice.everything or choice.session or _chosen(one, choice)),
        sessions=tuple(sessions),
        verdicts=tuple(_all(store, "verdicts_going", **given)),
        lines=tuple(_all(store, "lines_going", **given)),
        questions=tuple(_all(store, "questions_going", **given)),
        ledger=tuple(number for (number,) in _all(store, "ledger_going", finished=finished)),
        holds=_all(store, "holds_going", finished=finished)[0][0],
        finished=finished,
        later=_all(store, "dated_after", now=now)[0][0],
    )


def before_for_size(store: SqliteStore, marked: Collection[str], surplus: int, keep_from: Instant) -> Instant | None:
    """Before when nights must go, the oldest first, so that about `surplus` bytes do.

    Nights that ended at `keep_from` or later stay. None: there is nothing to forget for it.
    """
    sizes = dict(_all(store, "sizes"))
    beside = max(1.0, used(store) / max(1, sum(sizes.values())))  # indexes, texts and all else grow with them
    before = None
    for period in sorted(_ended(store, marked), key=_end):
        if surplus <= 0 or _end(period) >= keep_from:
            break
        before = _end(period) + 1
        surplus -= int(sizes.get(period.id, 0) * beside)
    return before


def _ended(store: SqliteStore, marked: Collection[str]) -> list[AwayPeriod]:
    return [one for one in store.periods() if one.ended_at is not None and one.id not in marked]


def _end(period: AwayPeriod) -> Instant:
    return max(period.since, period.ended_at or 0)


def _chosen(period: AwayPeriod, choice: Choice) -> bool:
    if choice.period:
        return period.id == choice.period
    return choice.everything or bool(choice.session) or (choice.before is not None and _end(period) < choice.before)


def _sessions_going(
    store: SqliteStore, choice: Choice, given: dict[str, Any], going: list[AwayPeriod], earliest: Instant
) -> list[str]:
    """The sessions of which all goes: nothing that stays names them, and they are not in a running period."""
    kept = {session for (session,) in _all(store, "sessions_named_by_what_stays", **given)}
    known = [(one, heard) for one, heard in _all(store, "sessions_known") if one not in kept]
    known = [(one, heard) for one, heard in known if heard < earliest - HEARD_BEFORE]
    if choice.session:
        return [one for one, _ in known if one == choice.session]
    if choice.period:
        named = {session for (session,) in _all(store, "sessions_named_by_what_goes")}
        return [one for one, heard in known if one in named and heard <= max(map(_end, going), default=0)]
    return [one for one, heard in known if choice.before is None or heard < choice.before]


# --- how it goes --------------------------------------------------------------------------------


def carry_out(
    store: SqliteStore,
    going: Plan,
    marked: Collection[str],
    clock: Callable[[], Instant],
    enough: Enough = lambda: False,
) -> bool:
    """Forgets what was planned, a piece at a time, until `enough` says so. Whether all of it is gone.

    Raises the Store…Error classes; what was forgotten until then is said in the record.
    """
    act = _Act(store, going.choice, clock)
    store._execute("PRAGMA secure_delete = ON").fetchall()
    try:
        for what, rows in (("verdicts", going.verdicts), ("lines", going.lines)):
            for piece in _pieces(rows):
                if enough():
                    return False
                act.forget(what, piece)
        if enough():
            return False
        act.forget_the_rest(marked)
        return True
    finally:
        if store._broken is None:
            store._execute("PRAGMA secure_delete = FAST").fetchall()


class _Act:
    """One forgetting: what has gone so far, and the line that says it."""

    def __init__(self, store: SqliteStore, choice: Choice, clock: Callable[[], Instant]) -> None:
        self._store, self._choice, self._clock = store, choice, clock
        self._so_far = Forgotten(at=0, how=choice.how)
        self._line: int | None = None

    def forget(self, what: str, piece: list[tuple[int, Instant, int]]) -> None:
        """Verdicts or lines, in a transaction of their own."""
        with self._store.transaction():
            self._open()
            one = "forget_verdict" if what == "verdicts" else "forget_line"
            for number, _, _ in piece:
                _all(self._store, one, id=number)
            self._tell(piece, **{what: len(piece)})

    def forget_the_rest(self, marked: Collection[str]) -> None:
        """Everything else, the periods last; chosen anew, because a session may have been heard of meanwhile."""
        store, now = self._store, self._clock()
        before = _alive(store)
        going = plan(store, self._choice, marked, now)  # reads the whole account, so not under the lock
        with store.transaction():
            self._open()
            if _alive(store, going.sessions) != _only(before, going.sessions):
                going = plan(store, self._choice, marked, now)
            for number, _, _ in going.verdicts:  # came in since
                _all(store, "forget_verdict", id=number)
            for number, _, _ in going.lines:
                _all(store, "forget_line", id=number)
            for number, _, _ in going.questions:
                _all(store, "forget_question", id=number)
            for source, newest in _all(store, "list_sources"):
                if _is_of(source, newest, going):
                    _all(store, "forget_list_snapshot", source=source)
            gone = {*going.sessions, *going.periods}
            for subject, name in _all(store, "fact_names"):
                if name in gone or not gone.isdisjoint(name.split()):
                    _all(store, "forget_fact", subject=subject, name=name)
            for every in ("wakes", "states", "host_todos", "keepers", "sessions"):
                _all(store, f"forget_{every}")
            _all(store, "empty_holds", finished=going.finished)
            for number in going.ledger:
                _all(store, "forget_ledger_item", id=number)
            if self._choice.everything and not going.running:
                _all(store, "forget_tracked")
                _all(store, "trackers_unread")
            if going.periods:
                _all(store, "forget_periods")
            self._tell(
                [*going.verdicts, *going.lines, *going.questions],
                verdicts=len(going.verdicts),
                lines=len(going.lines),
                questions=len(going.questions),
                items=len(going.ledger),
                sessions=len(going.sessions),
                nights=len(going.periods),
                periods=going.periods,
            )
            store.save_fact("forgetting", "texts", "unswept")

    def _open(self) -> None:
        _all(self._store, "open_forgetting", now=self._clock())

    def _tell(self, rows: Iterable[tuple[int, Instant, int]], **counts: Any) -> None:
        """Brings the line up to date, and closes the forgetting."""
        so_far = self._so_far
        moments = [row[1] for row in rows]
        moments += [at for at in (so_far.since, so_far.until) if at is not None]
        added = {name: getattr(so_far, name) + number for name, number in counts.items()}
        then = so_far.replace(since=min(moments, default=None), until=max(moments, default=None), **added)
        line = self._line
        if any(added.values()) or then != so_far:
            if line is not None:
                _all(self._store, "forget_line", id=line)
            line = _all(self._store, "tell", seq=line, at=self._clock(), text=as_text(then))[0][0]
        _all(self._store, "close_forgetting")
        self._so_far, self._line = then, line


def _alive(store: SqliteStore, sessions: Iterable[str] | None = None) -> dict[str, Any]:
    """What would make a plan wrong if it changed: open periods, live holds, and when sessions were last heard of."""
    heard = dict(_all(store, "sessions_known"))
    holds = {held.session for held in store.reservations()}
    told = {"periods": [one.id for one in store.open_periods()], "holds": holds, "heard": heard}
    return told if sessions is None else _only(told, sessions)


def _only(told: dict[str, Any], sessions: Iterable[str]) -> dict[str, Any]:
    """The same, of some sessions."""
    named = set(sessions)
    heard = {one: at for one, at in told["heard"].items() if one in named}
    return {"periods": told["periods"], "holds": told["holds"] & named, "heard": heard}


def _is_of(source: str, newest: str, going: Plan) -> bool:
    """Whether a list's snapshot was taken for a period that goes, or for a session that does."""
    words = source.removesuffix(" second line").split(" ")
    if words[0] == "newest":
        return newest in going.periods
    if words[0] == "todos" and " ".join(words[1:-1]) in going.sessions:
        return True
    return words[-1] in going.periods


def _pieces(rows: Iterable[tuple[Any, Instant, int]]) -> Iterator[list[tuple[Any, Instant, int]]]:
    """The rows, the oldest first, so many at a time that no transaction is long."""
    piece: list[tuple[Any, Instant, int]] = []
    size = 0
    for row in rows:
        if piece and (len(piece) >= PIECE_ROWS or size + row[2] > PIECE_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(row)
        size += row[2]
    if piece:
        yield piece


# --- texts, and room ----------------------------------------------------------------------------


def sweep(store: SqliteStore, enough: Enough = lambda: False) -> bool:
    """Takes away the texts that no verdict names any more. Whether it came to its end.

    Verdicts are read without a lock; those that came meanwhile are read under it.
    """
    named: set[str] = set()
    after = 0
    while True:
        if enough():
            return False
        bodies = _all(store, "bodies", after=after, limit=SCANNED)
        if not bodies:
            break
        after = bodies[-1][0]
        for _, body in bodies:
            named.update(_NAMED.findall(body))
    unnamed = tuple((digest, 0, size) for digest, size in _all(store, "texts") if digest not in named)
    for piece in _pieces(unnamed):
        if enough():
            return False
        with store.transaction():
            while bodies := _all(store, "bodies", after=after, limit=SCANNED):
                after = bodies[-1][0]
                for _, body in bodies:
                    named.update(_NAMED.findall(body))
            store._execute("PRAGMA secure_delete = ON").fetchall()
            for digest, _, _ in piece:
                if digest not in named:
                    _all(store, "forget_text", digest=digest)
            store._execute("PRAGMA secure_delete = FAST").fetchall()
    store.save_fact("forgetting", "texts", "")
    return True


def used(store: SqliteStore) -> int:
    """Bytes of the database that hold something."""
    pages = _pragma(store, "page_count") - _pragma(store, "freelist_count")
    return int(pages * _pragma(store, "page_size"))


def shrink(store: SqliteStore, enough: Enough | None = None) -> bool:
    """Gives free room back to the disk, and empties the log. Whether that came to its end.

    Without `enough` a small database is rewritten whole, so that no page keeps a trace of what was
    in it. Raises StoreBusyError where another program reads for too long: nothing is lost by that.
    """
    if enough is None and (used(store) <= REWRITTEN_MAX or _pragma(store, "auto_vacuum") != 2):
        store._execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
        store._execute("VACUUM").fetchall()
    while _pragma(store, "auto_vacuum") == 2 and _pragma(store, "freelist_count"):
        if enough is not None and enough():
            return False
        store._execute(f"PRAGMA incremental_vacuum({ROOM_PAGES})").fetchall()
    if _pragma(store, "journal_mode") != "wal":
        return True
    busy = store._execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
    return not busy


def _pragma(store: SqliteStore, name: str) -> Any:
    return store._execute(f"PRAGMA {name}").fetchall()[0][0]


def _fill(store: SqliteStore, table: str, ids: Iterable[str]) -> None:
    store._execute(f"CREATE TEMP TABLE IF NOT EXISTS {table} (id TEXT NOT NULL PRIMARY KEY)").fetchall()
    store._execute(f"DELETE FROM temp.{table}").fetchall()
    for one in ids:
        store._execute(f"INSERT INTO temp.{table} VALUES (:id)", {"id": one}).fetchall()


def _all(store: SqliteStore, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
    """All rows of one of the statements in `sql/forgetting.sql`."""
    if not _sql:
        with open(f"{migrate.SQL}/forgetting.sql", encoding="utf-8") as file:
            _sql.update(queries(file.read()))
    try:
        return store._execute(_sql[query], values).fetchall()
    except apsw.Error as error:
        raise store._failed(error) from error
