"""The store on one SQLite database per user: the durable truth on a machine.

Each method is one or two of the statements in `sql/queries.sql`; how they are executed, waited for
and kept is in `store.database`. On the hook's path. May not live here: decisions.
"""

from __future__ import annotations

import apsw

from stopwarden.core.bounds import STORE_WAIT
from stopwarden.core.errors import StoreCorruptError, StoreUnwritableError
from stopwarden.core.events import AwayPeriod, Reservation, SessionState
from stopwarden.store import failure, migrate, place, rows
from stopwarden.store.database import Database, journal_mode
from stopwarden.store.port import (
    KeeperRow,
    LedgerItem,
    Parked,
    RecordLine,
    SeenWake,
    SessionRow,
    Store,
    TrackedItem,
    Tracker,
    VerdictRow,
)
from stopwarden.store.rows import LARGEST, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.core.events import Instant


def open_sqlite(state_dir: str, *, create: bool = True, wait: float = STORE_WAIT) -> SqliteStore:
    """The store in this state directory, at the newest schema.

    `create` begins a database where there is none. `wait` is how long to wait for another
    program's lock, in seconds. Raises StorePlaceError for an unsafe place, StoreBusyError,
    StoreUnwritableError, StoreNewerError for a database of a newer program (which is left as it
    is), and StoreCorruptError for a damaged one (which is set aside), or with `create` False for none.
    """
    place.check(state_dir)
    path = f"{state_dir}/{place.DATABASE}"
    if not place.check_database(path):
        if not create:
            raise StoreCorruptError(
                f"There is no database in {state_dir}", do="The next stopwarden command begins a new one"
            )
        try:
            migrate.begin(path, wait, journal_mode())
        except (apsw.Error, OSError) as error:
            raise failure.translated(error, path) from error
    return SqliteStore(path, wait)


class SqliteStore(Database, Store):
    """See `store.port.Store` for what each method does."""

    # away periods

    def add_period(self, period: AwayPeriod, policy_json: str) -> None:
        with self.transaction():
            if self._rows("period_known", id=storable(period.id)):
                raise rows.known_already(period.id)
            self._write("add_period", **period.as_dict(), policy=policy_json)

    def end_period(self, period_id: str, at: Instant, why: str) -> bool:
        return bool(self._write("end_period", id=period_id, at=at, why=why))

    def open_periods(self) -> list[AwayPeriod]:
        return self._records(AwayPeriod, "open_periods")

    def periods(self, since: Instant = 0) -> list[AwayPeriod]:
        return self._records(AwayPeriod, "periods", since=since)

    def period_policy(self, period_id: str) -> str:
        return self._text("period_policy", id=period_id)

    # sessions

    def session(self, session_id: str) -> SessionRow | None:
        return next(iter(self._records(SessionRow, "session", id=session_id)), None)

    def save_session(self, row: SessionRow) -> None:
        self._write("save_session", **row.as_dict())

    def sessions(self, since: Instant = 0) -> list[SessionRow]:
        return self._records(SessionRow, "sessions", since=since)

    def state(self, session_id: str) -> SessionState:
        found = self._records(SessionState, "state", id=session_id)
        return found[0] if found else SessionState(id=session_id)

    def save_state(self, state: SessionState, *, expected_revision: int) -> None:
        if not self._write("save_state", **state.as_dict(), expected_revision=expected_revision):
            raise rows.stale(state.id, expected_revision)

    # wakes

    def wakes(self, session_id: str) -> list[SeenWake]:
        return self._records(SeenWake, "wakes", session=session_id)

    def save_wake(self, wake: SeenWake) -> None:
        self._write("save_wake", **wake.as_dict())

    # the append-only account

    def append(self, lines: Iterable[RecordLine]) -> None:
        with self.transaction():
            for line in lines:
                self._write("append_line", **line.as_dict())

    def lines(self, *, period: str | None = None, since: Instant = 0, until: Instant | None = None) -> list[RecordLine]:
        until = LARGEST if until is None else until
        if period is None:
            return self._records(RecordLine, "lines", since=since, until=until)
        return self._records(RecordLine, "lines_of_period", period=period, since=since, until=until)

    def append_verdict(self, row: VerdictRow) -> int:
        with self.transaction():
            given = self._write("verdict_by_nonce", session=row.session, nonce=row.nonce)
            return int((given or self._write("append_verdict", **row.as_dict()))[0][0])

    def verdict(self, verdict_id: int) -> VerdictRow | None:
        return next(iter(self._records(VerdictRow, "verdict", id=verdict_id)), None)

    def verdicts(
        self, *, period: str | None = None, since: Instant = 0, until: Instant | None = None
    ) -> list[VerdictRow]:
        until = LARGEST if until is None else until
        if period is None:
            return self._records(VerdictRow, "verdicts", since=since, until=until)
        return self._records(VerdictRow, "verdicts_of_period", period=period, since=since, until=until)

    def bare_verdicts(self, period: str) -> list[tuple[int, Instant, str, str, str, str, str]]:
        return self._rows("bare_verdicts", period=storable(period))

    # parked questions

    def park(self, parked: Parked) -> int:
        with self.transaction():
            again = self._write("asked_again", session=parked.session, period=parked.period, digest=parked.digest)
            return int((again or self._write("park", **parked.as_dict()))[0][0])

    def parked(self, *, open_only: bool = False, session: str | None = None) -> list[Parked]:
        if session is None:
            return self._records(Parked, "parked", open_only=open_only)
        return self._records(Parked, "parked_of_session", open_only=open_only, session=session)

    def save_parked(self, parked: Parked) -> None:
        if not self._write("save_parked", **parked.as_dict()):
            raise rows.not_parked(parked.id)

    # texts, facts, keepers

    def list_snapshot(self, source: str) -> str:
        return self._text("list_snapshot", source=source)

    def save_list_snapshot(self, source: str, body: str) -> None:
        self._write("save_list_snapshot", source=source, body=body)

    def put_snapshot(self, body: str) -> str:
        digest = rows.digest_of(storable(body))
        self._write("put_snapshot", digest=digest, body=body)
        return digest

    def snapshot(self, digest: str) -> str:
        return self._text("snapshot", digest=digest)

    def host_todos(self, session_id: str) -> str:
        return self._text("host_todos", session=session_id)

    def save_host_todos(self, session_id: str, body: str) -> None:
        self._write("save_host_todos", session=session_id, body=body)

    def fact(self, subject: str, name: str) -> str:
        return self._text("fact", subject=subject, name=name)

    def save_fact(self, subject: str, name: str, value: str) -> None:
        self._write("save_fact", subject=subject, name=name, value=value)

    def keeper(self, session_id: str) -> KeeperRow | None:
        return next(iter(self._records(KeeperRow, "keeper", session=session_id)), None)

    def save_keeper(self, row: KeeperRow) -> bool:
        return bool(self._write("save_keeper", **row.as_dict()))

    # reservations

    def reservation(self, place: str, item: str) -> Reservation | None:
        return next(iter(self._records(Reservation, "reservation", place=place, item=item)), None)

    def save_reservation(self, held: Reservation) -> None:
        try:
            self._write("save_reservation", **held.as_dict())
        except StoreUnwritableError as error:
            if not isinstance(error.__cause__, apsw.ConstraintError):
                raise
            raise rows.another_token(held) from error.__cause__  # a trigger holds it to the rule

    def reservations(self, *, released: bool = False) -> list[Reservation]:
        return self._records(Reservation, "reservations", released=released)

    def reservations_in(self, project: str, *, finished_since: Instant | None = None) -> list[Reservation]:
        if finished_since is None:
            return self._records(Reservation, "reservations_held_in", project=project)
        return self._records(Reservation, "reservations_finished_in", project=project, since=finished_since)

    def reservations_of(self, *, session: str = "", copy: str = "") -> list[Reservation]:
        if session:
            return self._records(Reservation, "reservations_of_session", session=session)
        return self._records(Reservation, "reservations_of_copy", copy=copy)

    # the ledger and other trackers

    def add_ledger_item(self, item: LedgerItem) -> int:
        return int(self._write("add_ledger_item", **item.as_dict())[0][0])

    def save_ledger_item(self, item: LedgerItem) -> None:
        if not self._write("save_ledger_item", **item.as_dict()):
            raise rows.not_in_the_ledger(item.number)

    def ledger_item(self, number: int) -> LedgerItem | None:
        return next(iter(self._records(LedgerItem, "ledger_item", number=number)), None)

    def ledger_items(self, project: str | None = None) -> list[LedgerItem]:
        if project is None:
            return self._records(LedgerItem, "ledger_items_of_all")
        return self._records(LedgerItem, "ledger_items", project=project)

    def ledger_items_assigned(self, session: str) -> list[LedgerItem]:
        return self._records(LedgerItem, "ledger_items_assigned", session=session)

    def ready_items(self, project: str, limit: int) -> list[LedgerItem]:
        return self._records(LedgerItem, "ready_items", project=project, limit=limit)

    def trackers(self, project: str | None = None) -> list[Tracker]:
        if project is None:
            return self._records(Tracker, "trackers_of_all")
        return self._records(Tracker, "trackers", project=project)

    def save_tracker(self, tracker: Tracker) -> None:
        self._write("save_tracker", **tracker.as_dict())

    def remove_tracker(self, project: str, name: str) -> bool:
        with self.transaction():
            self._write("forget_tracked", project=project, tracker=name)
            return bool(self._write("remove_tracker", project=project, name=name))

    def replace_tracked(self, project: str, tracker: str, items: Iterable[TrackedItem]) -> None:
        with self.transaction():
            self._write("forget_tracked", project=project, tracker=tracker)
            for item in items:
                self._write("add_tracked", **item.replace(project=project, tracker=tracker).as_dict())

    def tracked_items(self, project: str) -> list[TrackedItem]:
        return self._records(TrackedItem, "tracked_items", project=project)
