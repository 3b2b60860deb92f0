"""What the account of many nights costs beyond reading what is stored.

A hundred thousand verdicts, as two weeks of nights with many sessions leave them: each with the whole
list of twenty items as it was, its wakes and its settings. Reading those rows through the store is the
peer; the report in text, by the command itself, is measured against it in the same process, in
turns. What counts is the processor time of this process alone.

    python -m bench, or this alone: python -m bench.report
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from bench.figure import Figure, ratio
from stopwarden.cli.context import Context
from stopwarden.cli.main import main
from stopwarden.clock import SystemZone
from stopwarden.core.bounds import DAY, HOUR, Policy
from stopwarden.core.events import AwayPeriod, Counters, Item, SessionState, Stop, Verdict, Wake, WakeFinding, World
from stopwarden.store import journal, place
from stopwarden.store.port import RecordLine, SessionRow, VerdictRow
from stopwarden.store.sqlite import open_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stopwarden.core.events import Instant
    from stopwarden.store.port import Store

VERDICTS, NIGHTS, SESSIONS, ITEMS = 100_000, 20, 10, 20
LIMIT = 3.0  # times the plain reading
OWN = 2.0  # seconds, what a hundred thousand rows may cost beyond reading them
BEGAN = 1_796_072_400  # 2026-11-30 21:00:00Z
ZONE = SystemZone({"TZ": "Europe/London"})


def figures(verdicts: int = VERDICTS, rounds: int = 5) -> list[Figure]:
    """The report against the plain reading."""
    with tempfile.TemporaryDirectory(prefix="stopwarden-bench-") as root:
        env = {"HOME": root, "TZ": "Europe/London"}
        store = open_sqlite(place.prepare(env))
        _fill(store, verdicts)
        store.close()
        reading, report = [], []
        for number in range(rounds):
            for what in (0, 1) if number % 2 else (1, 0):
                (reading, report)[what].append((_reading, _report)[what](env))
    own = min(report) - min(reading)  # of the quietest rounds: whatever else runs only adds
    per_hundred_thousand = own * 100_000 / verdicts
    return [
        Figure(
            f"report over {verdicts:,} verdicts",
            "reading their rows",
            ratio(report, reading),
            LIMIT,
            f"reading {min(reading):.2f} s, report {min(report):.2f} s of processor time",
        ),
        Figure("  of its own, per 100,000 verdicts", "two seconds of CPU", per_hundred_thousand / OWN, 1.0),
    ]


def _reading(env: dict[str, str]) -> float:
    """Processor seconds for reading every row that the report is made of."""
    began = time.process_time()
    store = open_sqlite(place.state_dir(env))
    rows = [row for period in store.periods() for row in store.verdicts(period=period.id)]
    lines, sessions = store.lines(), store.sessions()
    took = time.process_time() - began
    store.close()
    if not (rows and lines and sessions):
        raise SystemExit("nothing was read")
    return took


def _report(env: dict[str, str]) -> float:
    """Processor seconds for the whole report in text, by the command itself."""
    out = io.StringIO()
    context = Context(env=env, cwd="/shop", now=lambda: BEGAN + NIGHTS * DAY, zone=ZONE, out=out, err=out)
    began = time.process_time()
    code = main(["report", "--since", "2026-11-30 20:00"], context)
    took = time.process_time() - began
    if code or f"{ITEMS // 2} of {ITEMS} done" not in out.getvalue():
        raise SystemExit(f"this is no report of those nights:\n{out.getvalue()}")
    return took


def _fill(store: Store, verdicts: int) -> None:
    """Nights as hooks leave them: half of the stops are blocked, half wait and are followed by a wake."""
    each = verdicts // NIGHTS
    for night in range(NIGHTS):
        since = BEGAN + night * DAY
        period = AwayPeriod(id=f"n{night}", since=since, until=since + 10 * HOUR, zone="Europe/London", root="/shop")
        bodies = [_body(store, period, since + 600 * number, number % 2 == 0) for number in range(50)]
        with store.transaction():
            store.add_period(period, "{}")
            for number in range(each):
                at, session = since + number * 10 * HOUR // each, f"{night:02}{number % SESSIONS:02}"
                kind, body = bodies[number // SESSIONS % 50]
                store.append_verdict(
                    VerdictRow(
                        at=at, session=session, period=period.id, kind=kind, nonce=f"{night}-{number}", body=body
                    )
                )
                if kind == "waiting":
                    told = (("look", "w1"), ("prompt", "wake"))
                    store.append(
                        [RecordLine(at=at + 5, kind=k, text=t, session=session, period=period.id) for k, t in told]
                    )
            for number in range(SESSIONS):
                store.save_session(
                    SessionRow(id=f"{night:02}{number:02}", title=f"s{number}", root="/shop", last_event_at=at)
                )
            store.end_period(period.id, since + 10 * HOUR, "time")


def _body(store: Store, period: AwayPeriod, at: Instant, block: bool) -> tuple[str, str]:
    """The kind and the record of one verdict over a list of twenty items."""
    items = tuple(
        Item(
            id=f"{number:03x}",
            title=f"write the parser for thing number {number}, with its tests",
            state="done" if number < ITEMS // 2 else "open",
            source="TODO.md",
            line=number + 1,
        )
        for number in range(ITEMS)
    )
    wakes = tuple(Wake(id=f"w{number}", schedule="*/20 * * * *", kind="recurring", first_seen=at) for number in (1, 2))
    found = WakeFinding(
        id="w1", schedule="*/20 * * * *", qualifies=True, nominal=at + 1200, earliest=at, latest=at + 1800
    )
    verdict = Verdict(
        block=block,
        kind="block" if block else "waiting",
        rule="away.owed_changed" if block else "away.waiting",
        at=at,
        reason="Go on: " * 60 if block else "",
        owed=tuple(item.id for item in items if item.state == "open"),
        fingerprint="5" * 64,
        counters=Counters(blocks=1, cap=8),
        wake=None if block else found,
        rejected=(found.replace(qualifies=False, why="it comes too late"),) if block else (),
        zone="Europe/London",
    )
    world = World(zone=ZONE, period=period, items=items, tokens_used=at - period.since)
    stop = Stop(session="5d0c7a52", at=at, wakes=wakes)
    body = journal.encode(stop, SessionState(id="5d0c7a52"), world, Policy(), verdict, store.put_snapshot)
    return verdict.kind, body


def _main() -> Iterator[str]:
    for figure in figures():
        yield figure.row()


if __name__ == "__main__":
    sys.stdout.writelines(f"{row}\n" for row in _main())
