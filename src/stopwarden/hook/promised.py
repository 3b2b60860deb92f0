"""Overdue looks and promises of the lists, told of once: one `stall` line in the away record, nothing else.

Whoever notices first writes it, a stop or `stopwarden watch`; that it was written is a fact in the
same transaction. No list is touched and no verdict asks for any of this.
"""

from __future__ import annotations

import os

from stopwarden.core.errors import ListError
from stopwarden.store.port import RecordLine
from stopwarden.work import files, promises

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.core.events import AwayPeriod, Instant, Zone
    from stopwarden.store.port import Store
    from stopwarden.work.promises import Timed

STALL = "stall"  # of a record line, and the subject of the facts that keep it from being written twice


def in_lists(lists: Iterable[tuple[str, str, str]], since: Instant | None, zone: Zone) -> tuple[Timed, ...]:
    """The timed looks and promises in these files: path, name, and whose own list it is ("" if shared).

    Without `since` a time of day counts from when the file was written. A list that cannot be read
    has none to show; that it cannot be read is said where its items are asked for.
    """
    found: list[Timed] = []
    for path, name, session in lists:
        try:
            text = files.read_list(path, name, follow=not session).text
            begin = int(os.stat(path).st_mtime) if since is None else since
        except (ListError, OSError):
            continue
        found += [one.replace(source=name, session=session) for one in promises.read(text, begin, zone)]
    return tuple(found)


def noticed(
    store: Store, lists: Iterable[tuple[str, str, str]], period: AwayPeriod, zone: Zone, now: Instant
) -> list[Timed]:
    """Reads these lists and records what is overdue in them: for a stop, whose transaction this is part of."""
    return record_overdue(store, in_lists(lists, period.since, zone), period, now)


def record_overdue(store: Store, told: Iterable[Timed], period: AwayPeriod, now: Instant) -> list[Timed]:
    """Writes one line for each that is overdue and was not told of in this period; those."""
    fresh = []
    for one in told:
        if not one.is_overdue(now) or store.fact(STALL, f"{period.id} {one.id}"):
            continue
        store.save_fact(STALL, f"{period.id} {one.id}", str(now))
        store.append(
            [
                RecordLine(
                    at=now,
                    kind=STALL,
                    session=one.session,
                    period=period.id,
                    text=f"{promises.STALL[one.kind]}; {one.at}; {one.text}",
                )
            ]
        )
        fresh.append(one)
    return fresh
