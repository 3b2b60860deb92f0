"""The store in memory: the reference that the SQLite store is tested against, and the simulator's.

It keeps the same promises in the plainest way: tables are dictionaries, a transaction remembers
what each change replaced, and undoing it puts that back. Nothing outlives the process.
May not live here: anything that the SQLite store does not do.
"""

from __future__ import annotations

from stopwarden.core import ledger
from stopwarden.core.errors import StoreUnwritableError
from stopwarden.core.events import AwayPeriod, Reservation, SessionState
from stopwarden.store import rows
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
from stopwarden.store.rows import LARGEST, storable, stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from types import TracebackType
    from typing import Any

    from stopwarden.core.events import Instant

_nothing: Any = object()


class _Transaction:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store._enter()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._store._leave(keep=kind is None)


class MemoryStore(Store):
    """See `store.port.Store` for what each method does."""

    def __init__(self) -> None:
        self._closed = False
        self._replaced: list[tuple[dict[Any, Any], Hashable, Any]] = []  # table, key, what was there before
        self._began: list[int] = []  # where in it each open transaction began
        self._last: dict[str, int] = {}  # the last number given, by table
        self._periods: dict[str, AwayPeriod] = {}
        self._policies: dict[str, str] = {}
        self._sessions: dict[str, SessionRow] = {}
        self._states: dict[str, SessionState] = {}
        self._wakes: dict[tuple[str, str], SeenWake] = {}
        self._lines: dict[int, RecordLine] = {}
        self._verdicts: dict[int, VerdictRow] = {}
        self._nonces: dict[tuple[str, str], int] = {}
        self._parked: dict[int, Parked] = {}
        self._texts: dict[tuple[str, ...], str] = {}
        self._keepers: dict[str, KeeperRow] = {}
        self._reservations: dict[tuple[str, str], Reservation] = {}
        self._ledger: dict[int, LedgerItem] = {}
        self._trackers: dict[tuple[str, str], Tracker] = {}
        self._tracked: dict[tuple[str, str], tuple[TrackedItem, ...]] = {}

    def close(self) -> None:
        while self._began:
            self._leave(keep=False)
        self._closed = True

    # transactions

    def transaction(self) -> _Transaction:
        return _Transaction(self)

    @property
    def in_transaction(self) -> bool:
        return bool(self._began)

    def _enter(self) -> None:
        self._refuse_if_closed()
        self._began.append(len(self._replaced))

    def _leave(self, *, keep: bool) -> None:
        if not self._began:  # the store was closed inside the transaction, which undid it
            if keep:
                self._refuse_if_closed()
            return
        began = self._began.pop()
        if not keep:
            for table, key, before in reversed(self._replaced[began:]):
                if before is _nothing:
                    del table[key]
                else:
                    table[key] = before
            del self._replaced[began:]
        elif not self._began:
            self._replaced.clear()

    def _put(self, table: dict[Any, Any], key: Hashable, value: Any) -> None:
        if self._began:
            self._replaced.append((table, key, table.get(key, _nothing)))
        table[key] = value

    def _take(self, table: dict[Any, Any], key: Hashable) -> None:
        if self._began:
            self._replaced.append((table, key, table[key]))
        del table[key]

    def _number(self, table: str) -> int:
        """The next number of an append-only table."""
        number = self._last.get(table, 0) + 1
        self._put(self._last, table, number)
        return number

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreUnwritableError("The store was closed", kept="Nothing was written")

    # away periods

    def add_period(self, period: AwayPeriod, policy_json: str) -> None:
        self._refuse_if_closed()
        period = stored(period)
        if period.id in self._periods:
            raise rows.known_already(period.id)
        self._put(self._periods, period.id, period)
        self._put(self._policies, period.id, storable(policy_json))

    def end_period(self, period_id: str, at: Instant, why: str) -> bool:
        self._refuse_if_closed()
        period = self._periods.get(storable(period_id))
        if period is None or period.ended_at is not None:
            return False
        self._put(self._periods, period.id, stored(period.replace(ended_at=at, ended_why=why)))
        return True

    def open_periods(self) -> list[AwayPeriod]:
        return [period for period in self.periods(LARGEST) if period.ended_at is None]

    def periods(self, since: Instant = 0) -> list[AwayPeriod]:
        self._refuse_if_closed()
        found = [period for period in self._periods.values() if period.ended_at is None or period.ended_at >= since]
        return sorted(found, key=lambda period: (period.since, period.id))

    def period_policy(self, period_id: str) -> str:
        self._refuse_if_closed()
        return self._policies.get(storable(period_id), "")

    # sessions

    def session(self, session_id: str) -> SessionRow | None:
        self._refuse_if_closed()
        return self._sessions.get(storable(session_id))

    def save_session(self, row: SessionRow) -> None:
        self._refuse_if_closed()
        row = stored(row)
        self._put(self._sessions, row.id, row)

    def sessions(self, since: Instant = 0) -> list[SessionRow]:
        self._refuse_if_closed()
        found = [row for row in self._sessions.values() if row.last_event_at >= since]
        return sorted(found, key=lambda row: (row.first_event_at, row.id))

    def state(self, session_id: str) -> SessionState:
        self._refuse_if_closed()
        return self._states.get(storable(session_id)) or SessionState(id=session_id)

    def save_state(self, state: SessionState, *, expected_revision: int) -> None:
        self._refuse_if_closed()
        state = stored(state)
        before = self._states.get(state.id)
        if expected_revision != (before.revision if before else 0):
            raise rows.stale(state.id, expected_revision)
        self._put(self._states, state.id, state.replace(revision=expected_revision + 1))

    # wakes

    def wakes(self, session_id: str) -> list[SeenWake]:
        self._refuse_if_closed()
        found = [wake for wake in self._wakes.values() if wake.session == storable(session_id)]
        return sorted(found, key=lambda wake: (wake.first_seen, wake.id))

    def save_wake(self, wake: SeenWake) -> None:
        self._refuse_if_closed()
        wake = stored(wake)
        self._put(self._wakes, (wake.session, wake.id), wake)

    # the append-only account

    def append(self, lines: Iterable[RecordLine]) -> None:
        with self.transaction():
            for line in lines:
                number = self._number("lines")
                self._put(self._lines, number, stored(line.replace(seq=number)))

    def lines(self, *, period: str | None = None, since: Instant = 0, until: Instant | None = None) -> list[RecordLine]:
        self._refuse_if_closed()
        return [line for line in self._lines.values() if _within(line, period, since, until)]

    def append_verdict(self, row: VerdictRow) -> int:
        self._refuse_if_closed()
        row = stored(row)
        if (row.session, row.nonce) in self._nonces:
            return self._nonces[row.session, row.nonce]
        number = self._number("verdicts")
        self._put(self._verdicts, number, row.replace(id=number))
        if row.nonce:
            self._put(self._nonces, (row.session, row.nonce), number)
        return number

    def verdict(self, verdict_id: int) -> VerdictRow | None:
        self._refuse_if_closed()
        return self._verdicts.get(verdict_id)

    def verdicts(
        self, *, period: str | None = None, since: Instant = 0, until: Instant | None = None
    ) -> list[VerdictRow]:
        self._refuse_if_closed()
        return [row for row in self._verdicts.values() if _within(row, period, since, until)]

    def bare_verdicts(self, period: str) -> list[tuple[int, Instant, str, str, str, str, str]]:
        rows = self.verdicts(period=period)
        return [(row.id, row.at, row.session, row.period, row.kind, row.rule, row.body) for row in rows]

    # parked questions

    def park(self, parked: Parked) -> int:
        self._refuse_if_closed()
        parked = stored(parked)
        asked = (parked.session, parked.period, parked.digest)
        for known in self._parked.values():
            if (known.session, known.period, known.digest) == asked:
                self._put(self._parked, known.id, known.replace(times=known.times + 1))
                return known.id
        number = self._number("parked")
        self._put(self._parked, number, parked.replace(id=number))
        return number

    def parked(self, *, open_only: bool = False, session: str | None = None) -> list[Parked]:
        self._refuse_if_closed()
        return [
            parked
            for parked in self._parked.values()
            if (session is None or parked.session == storable(session))
            and not (open_only and parked.answered_at is not None)
        ]

    def save_parked(self, parked: Parked) -> None:
        self._refuse_if_closed()
        if parked.id not in self._parked:
            raise rows.not_parked(parked.id)
        self._put(self._parked, parked.id, stored(parked))

    # texts, facts, keepers

    def list_snapshot(self, source: str) -> str:
        return self._text("list", source)

    def save_list_snapshot(self, source: str, body: str) -> None:
        self._save_text(body, "list", source)

    def put_snapshot(self, body: str) -> str:
        digest = rows.digest_of(storable(body))
        self._save_text(body, "snapshot", digest)
        return digest

    def snapshot(self, digest: str) -> str:
        return self._text("snapshot", digest)

    def host_todos(self, session_id: str) -> str:
        return self._text("todos", session_id)

    def save_host_todos(self, session_id: str, body: str) -> None:
        self._save_text(body, "todos", session_id)

    def fact(self, subject: str, name: str) -> str:
        return self._text("fact", subject, name)

    def save_fact(self, subject: str, name: str, value: str) -> None:
        self._save_text(value, "fact", subject, name)

    def keeper(self, session_id: str) -> KeeperRow | None:
        self._refuse_if_closed()
        return self._keepers.get(storable(session_id))

    def save_keeper(self, row: KeeperRow) -> bool:
        self._refuse_if_closed()
        row = stored(row)
        before = self._keepers.get(row.session)
        if before is not None and before.generation > row.generation:
            return False
        self._put(self._keepers, row.session, row)
        return True

    # reservations

    def reservation(self, place: str, item: str) -> Reservation | None:
        self._refuse_if_closed()
        return self._reservations.get((storable(place), storable(item)))

    def save_reservation(self, held: Reservation) -> None:
        self._refuse_if_closed()
        held = stored(held)
        before = self._reservations.get((held.place, held.item))
        goes_on = before is None or (held.token, held.session) == (before.token, before.session)
        if before is not None and not goes_on and held.token != before.token + 1:
            raise rows.another_token(held)
        self._put(self._reservations, (held.place, held.item), held)

    def reservations(self, *, released: bool = False) -> list[Reservation]:
        self._refuse_if_closed()
        found = [held for held in self._reservations.values() if released or held.released_at is None]
        return sorted(found, key=lambda held: (held.granted_at, held.place, held.item))

    def reservations_in(self, project: str, *, finished_since: Instant | None = None) -> list[Reservation]:
        if finished_since is None:
            return [held for held in self.reservations() if held.project == storable(project)]
        since = storable(finished_since)
        return [
            held
            for held in self.reservations(released=True)
            if held.project == storable(project)
            and held.terminal
            and held.released_at is not None
            and held.released_at >= since
        ]

    def reservations_of(self, *, session: str = "", copy: str = "") -> list[Reservation]:
        if session:
            return [held for held in self.reservations() if held.session == storable(session)]
        return [held for held in self.reservations() if held.copy == storable(copy)]

    # the ledger and other trackers

    def add_ledger_item(self, item: LedgerItem) -> int:
        self._refuse_if_closed()
        number = self._number("ledger")
        self._put(self._ledger, number, stored(item.replace(number=number)))
        return number

    def save_ledger_item(self, item: LedgerItem) -> None:
        self._refuse_if_closed()
        item = stored(item)
        if item.number not in self._ledger:
            raise rows.not_in_the_ledger(item.number)
        self._put(self._ledger, item.number, item)

    def ledger_item(self, number: int) -> LedgerItem | None:
        self._refuse_if_closed()
        return self._ledger.get(storable(number))

    def ledger_items(self, project: str | None = None) -> list[LedgerItem]:
        self._refuse_if_closed()
        found = [item for item in self._ledger.values() if project is None or item.project == storable(project)]
        return sorted(found, key=lambda item: item.number)

    def ledger_items_assigned(self, session: str) -> list[LedgerItem]:
        return [item for item in self.ledger_items() if item.assigned and item.assigned == storable(session)]

    def ready_items(self, project: str, limit: int) -> list[LedgerItem]:
        return list(ledger.ready(self.ledger_items(project), self.ledger_items()))[: storable(limit)]

    def trackers(self, project: str | None = None) -> list[Tracker]:
        self._refuse_if_closed()
        found = [one for one in self._trackers.values() if project is None or one.project == storable(project)]
        return sorted(found, key=lambda one: (one.project, one.name))

    def save_tracker(self, tracker: Tracker) -> None:
        self._refuse_if_closed()
        tracker = stored(tracker)
        self._put(self._trackers, (tracker.project, tracker.name), tracker)

    def remove_tracker(self, project: str, name: str) -> bool:
        self._refuse_if_closed()
        key = (storable(project), storable(name))
        self._put(self._tracked, key, ())
        if key not in self._trackers:
            return False
        self._take(self._trackers, key)
        return True

    def replace_tracked(self, project: str, tracker: str, items: Iterable[TrackedItem]) -> None:
        self._refuse_if_closed()
        kept: dict[str, TrackedItem] = {}
        for item in items:
            item = stored(item.replace(project=project, tracker=tracker))
            kept.setdefault(item.id, item)
        self._put(self._tracked, (storable(project), storable(tracker)), tuple(kept.values()))

    def tracked_items(self, project: str) -> list[TrackedItem]:
        self._refuse_if_closed()
        found = [item for items in self._tracked.values() for item in items if item.project == storable(project)]
        return sorted(found, key=lambda item: (item.priority, item.created_at, item.tracker, item.id))

    def _text(self, *key: str) -> str:
        self._refuse_if_closed()
        return self._texts.get(tuple(storable(part) for part in key), "")

    def _save_text(self, text: str, *key: str) -> None:
        self._refuse_if_closed()
        self._put(self._texts, tuple(storable(part) for part in key), storable(text))


def _within(row: RecordLine | VerdictRow, period: str | None, since: Instant, until: Instant | None) -> bool:
    return (period is None or row.period == storable(period)) and since <= row.at and (until is None or row.at <= until)
