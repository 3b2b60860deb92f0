"""Claims of reservations against the bare SQL statement they end in, and how long one waits among many.

The peer is the `save_reservation` statement alone, in a transaction of its own, on a database of the
same schema, the same journal mode and the same `synchronous`, in the same directory. What ours does
besides, it does inside that transaction: reading what is held, judging, the session's sign, the line
of the record. Each round does one of each, in alternating order.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from typing import TYPE_CHECKING, Any

import apsw

from bench.figure import Figure, ratio
from stopwarden.core.bounds import HOUR, STORE_WAIT
from stopwarden.core.events import Reservation
from stopwarden.core.reservations import Claim, Granted
from stopwarden.store import database, migrate, place, rows
from stopwarden.store.sqlite import open_sqlite
from stopwarden.work import reservations

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.store.sqlite import SqliteStore

PLACE = "/home/me/project/.git"
MODES = ("wal", "delete")
HELD_BY_OTHERS = 50  # live holds of the project that a claim has to look at
PROCESSES = 32
CLAIMS_EACH = 40
WARMING_UP = 50


def figures(rounds: int = 600) -> list[Figure]:
    """Every figure of claims."""
    return [*(_against_bare_sql(mode, rounds) for mode in MODES), *(_among_many(mode) for mode in MODES)]


def _against_bare_sql(mode: str, rounds: int) -> Figure:
    _use(mode)
    with tempfile.TemporaryDirectory(prefix="stopwarden-bench-") as root:
        state_dir = place.prepare({"XDG_STATE_HOME": f"{root}/ours"})
        store = open_sqlite(state_dir)
        for number in range(HELD_BY_OTHERS):
            reservations.reserve(store, _ask(f"held-{number}", f"other-{number}"), _now, state_dir=state_dir)
        bare, statement = _bare(f"{root}/bare.db", store, mode)
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(rounds + WARMING_UP):
            acts: list[Callable[[], None]] = [
                lambda item=f"i{number}": _claimed(store, item, state_dir),  # type: ignore[misc]
                lambda item=f"i{number}": _stored(bare, statement, item),  # type: ignore[misc]
            ]
            for one in (0, 1) if number % 2 else (1, 0):
                begun = time.perf_counter()
                acts[one]()
                if number >= WARMING_UP:
                    times[one].append(time.perf_counter() - begun)
            reservations.release(store, PLACE, f"i{number}", "s", _now)
        store.close()
        bare.close()
    measured = ratio(*times)
    per_second = 1 / (sum(times[0]) / len(times[0]))
    detail = f"{per_second:,.0f} claims/s, {1 / measured:.2f} x of the statement's rate, {HELD_BY_OTHERS} held"
    return Figure(f"a claim ({mode})", "bare INSERT", measured, 2.0, detail)


def _claimed(store: SqliteStore, item: str, state_dir: str) -> None:
    told = reservations.reserve(store, _ask(item, "s"), _now, state_dir=state_dir)
    if not isinstance(told, Granted):
        raise AssertionError(f"{item} was not granted")


def _bare(path: str, store: SqliteStore, mode: str) -> tuple[apsw.Connection, str]:
    """A database of the same schema and settings, and the statement."""
    bare = apsw.Connection(path)
    migrate.migrate(bare)
    settings = (
        f"PRAGMA journal_mode = {mode}; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = {database.LOG_PAGES}"
    )
    bare.execute(f"{settings}; PRAGMA temp_store = MEMORY").fetchall()
    statement = database._queries["save_reservation"]
    for held in store.reservations():
        bare.execute(statement, rows.row_of(held))
    return bare, statement


def _stored(bare: apsw.Connection, statement: str, item: str) -> None:
    now = _now()
    held = Reservation(
        item=item, session="s", copy="c" * 32, claimed_at=now, expires_at=now + HOUR, token=1, place=PLACE,
        project=PLACE, title="write the parser", root="/home/me/project", lease=HOUR, granted_at=now, nonce="n" * 32,
    )  # fmt: skip
    bare.execute("BEGIN IMMEDIATE")
    bare.execute(statement, rows.row_of(held))
    bare.execute("COMMIT")


# --- among many -----------------------------------------------------------------------------------


def _among_many(mode: str) -> Figure:
    with tempfile.TemporaryDirectory(prefix="stopwarden-bench-") as root:
        _use(mode)
        state_dir = place.prepare({"XDG_STATE_HOME": root})
        open_sqlite(state_dir).close()
        spawning = multiprocessing.get_context("spawn")
        start = spawning.Barrier(PROCESSES)
        told: Any = spawning.Queue()
        crowd = [
            spawning.Process(target=_one_of_many, args=(state_dir, f"s{number}", mode, start, told))
            for number in range(PROCESSES)
        ]
        for one in crowd:
            one.start()
        waited = sorted(seconds for _ in crowd for seconds in told.get(timeout=300))
        for one in crowd:
            one.join()
    p99 = waited[int(len(waited) * 0.99)]
    detail = f"p99 {p99:.3f} s, longest {waited[-1]:.3f} s of {len(waited):,} claims"
    return Figure(
        f"claim p99, {PROCESSES} processes ({mode})", f"{STORE_WAIT:g} s store wait", p99 / STORE_WAIT, 1.0, detail
    )


def _one_of_many(state_dir: str, session: str, mode: str, start: Any, told: Any) -> None:
    """Claims items that the others want too, and gives back what it got."""
    _use(mode)
    store = open_sqlite(state_dir, wait=60)
    start.wait()
    waited = []
    for number in range(CLAIMS_EACH):
        item = f"i{number % 8}"
        begun = time.perf_counter()
        granted = reservations.reserve(store, _ask(item, session), _now, state_dir=state_dir)
        waited.append(time.perf_counter() - begun)
        if isinstance(granted, Granted):
            reservations.release(store, PLACE, item, session, _now)
    store.close()
    told.put(waited)


def _ask(item: str, session: str) -> Claim:
    return Claim(
        item=item, place=PLACE, project=PLACE, session=session, copy="c" * 32, root="/home/me/project",
        title="write the parser", lease=HOUR, nonce=os.urandom(16).hex(),
    )  # fmt: skip


def _now() -> int:
    return int(time.time())


def _use(mode: str) -> None:
    """Makes the store write as with a SQLite of one kind or the other."""
    database.WAL_SINCE = (3, 0, 0) if mode == "wal" else (99, 0, 0)
