"""The nights of a longer account, one line each: how long was worked, waited and lost, and what got done.

A night is what the person left for: one away period, or several that overlap or follow on each other
(several checkouts at once, away anew). One that lasts longer than a day and a half is told from noon
to noon. Lengths are summed over the sessions that were covered. Pure.
May not live here: any sentence, and what happened within a night (see `account`).
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING

from stopwarden.core.bounds import DAY, HOUR
from stopwarden.core.record import Record
from stopwarden.report.heard import end_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.core.events import Instant, Zone
    from stopwarden.report.account import Account
    from stopwarden.report.timeline import Span

LONG = 36 * HOUR


class Night(Record):
    """One night of an account; lengths in seconds, over all covered sessions."""

    since: Instant
    until: Instant
    periods: tuple[str, ...] = ()
    sessions: int = 0  # that were covered in it
    working: int = 0
    waiting: int = 0
    lost: int = 0
    stopped: int = 0
    finished: int = 0
    unknown: int = 0
    done: int = 0  # items done in it
    blocks: int = 0
    looks: int = 0
    missed_looks: int = 0


SPENT = ("working", "waiting", "lost", "stopped", "finished", "unknown")


def nights(account: Account, zone: Zone) -> tuple[Night, ...]:
    """The nights of an account, oldest first, cut to what it covers."""
    return tuple(_told(account, since, until) for since, until in _times(account, zone))


def within(spans: Sequence[Span], since: Instant, until: Instant) -> list[Span]:
    """The stretches of time between two instants, cut to them. They follow each other, as a session's do."""
    found = []
    first = bisect_right(spans, since, key=attrgetter("until"))
    for span in spans[first : bisect_left(spans, until, key=attrgetter("since"))]:
        whole = since <= span.since and span.until <= until
        found.append(span if whole else span.replace(since=max(since, span.since), until=min(until, span.until)))
    return found


def _times(account: Account, zone: Zone) -> Iterable[tuple[Instant, Instant]]:
    runs: list[list[Instant]] = []
    for period in sorted(account.periods, key=lambda period: period.since):
        since = max(period.since, account.since)
        until = min(end_of(period, account.now), account.until)
        if until < since:
            continue
        if runs and since <= runs[-1][1]:
            runs[-1][1] = max(until, runs[-1][1])
        else:
            runs.append([since, until])
    for since, until in runs:
        noon = until if until - since <= LONG else _noon_after(since, zone)
        while noon < until:
            yield since, noon
            since, noon = noon, _noon_after(noon, zone)
        yield since, until


def _noon_after(at: Instant, zone: Zone) -> Instant:
    """The next local noon."""
    there = time.gmtime(at + zone.offset(at))
    noon = at + 12 * HOUR - (there.tm_hour * HOUR + there.tm_min * 60 + there.tm_sec)
    if noon <= at:
        noon += DAY
    return noon + zone.offset(at) - zone.offset(noon)


def _told(account: Account, since: Instant, until: Instant) -> Night:
    spent = dict.fromkeys(SPENT, 0)
    sessions = blocks = looks = missed = 0

    def then(times: Sequence[Instant]) -> int:
        last = until == account.until  # the account's own end belongs to its last night
        times = sorted(times)
        return (bisect_right if last else bisect_left)(times, until) - bisect_left(times, since)

    for one in account.sessions:
        spans = within(one.spans, since, until) if one.covered else []
        sessions += bool(spans)
        for span in spans:
            if span.kind in spent:
                spent[span.kind] += span.seconds
        blocks += then(one.blocked_at)
        looks += then([look.at for look in one.looks])
        missed += then(one.missed_looks)
    return Night(
        since=since,
        until=until,
        periods=tuple(
            period.id for period in account.periods if period.since < until and since < end_of(period, account.now)
        ),
        sessions=sessions,
        done=then([story.at for story in account.done if story.at is not None]),
        blocks=blocks,
        looks=looks,
        missed_looks=missed,
        **spent,
    )
