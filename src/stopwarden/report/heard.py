"""What was recorded in some away periods: sorted into them and by session, read once.

Verdicts come in any number and are not kept: of each the few facts of `judged`, and of each session
and period its newest rows, from which its list is read. Where periods overlap or touch (several
checkouts, away anew) a session's time in them is one. May not live here: what any of it means.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import islice
from typing import TYPE_CHECKING

from stopwarden.report.judged import judged
from stopwarden.report.stories import Told

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.core.events import AwayPeriod, Instant
    from stopwarden.report.judged import Bare, Judged
    from stopwarden.store.port import RecordLine, VerdictRow

AT_A_TIME = 2_000  # verdicts whose records are held at once
TRIED = 8  # a session's newest verdicts that are tried for its list, where records are damaged
_SAW_NO_LIST = ("plan_mode", "cancelled", "off")


class Heard:
    """What was recorded in these periods, sorted into them and by session, read once."""

    def __init__(
        self,
        periods: Sequence[AwayPeriod],
        lines: Iterable[RecordLine],
        verdicts: Iterable[VerdictRow | Bare],
        now: Instant,
    ) -> None:
        self.periods, self.now = periods, now
        self.ids = {period.id for period in periods}
        self.lines: list[RecordLine] = []
        self.judged: list[Judged] = []
        self._lines: defaultdict[str, list[RecordLine]] = defaultdict(list)  # by period
        self._judged: defaultdict[str, list[Judged]] = defaultdict(list)
        self._newest: defaultdict[tuple[str, str], deque[VerdictRow | Bare]] = defaultdict(lambda: deque(maxlen=TRIED))
        self.lines_of: defaultdict[str, list[RecordLine]] = defaultdict(list)  # by session
        self.judged_of: defaultdict[str, list[Judged]] = defaultdict(list)
        self._take(lines)
        for some in _some(row for row in verdicts if row.period in self.ids):
            self._judge(some)

    def told(self) -> Iterable[Told]:
        """Each period's, oldest first."""
        for period in self.periods:
            newest = [tuple(reversed(rows)) for key, rows in self._newest.items() if key[0] == period.id]
            yield Told(lines=tuple(self._lines[period.id]), judged=tuple(self._judged[period.id]), newest=tuple(newest))

    def times(self, session: str, begin: Instant) -> list[tuple[Instant, Instant]]:
        """When the person was away for this session: its periods, those that overlap or touch made one."""
        named = {line.period for line in self.lines_of[session]} | {one.period for one in self.judged_of[session]}
        took = [period for period in self.periods if period.id in named] or self.periods
        found: list[tuple[Instant, Instant]] = []
        for period in sorted(took, key=lambda period: period.since):
            since, until = max(period.since, begin), min(end_of(period, self.now), self.now)
            if found and since <= found[-1][1]:
                found[-1] = (found[-1][0], max(until, found[-1][1]))
            elif since <= until:
                found.append((since, until))
        return found

    def _take(self, lines: Iterable[RecordLine]) -> None:
        """Sorts lines in. One that names no period belongs to each that it falls into."""
        ids, by_period, by_session, whole = self.ids, self._lines, self.lines_of, self.lines
        for line in lines:
            if line.period in ids:
                by_period[line.period].append(line)
            elif line.period or not (within := [one.id for one in self.periods if self._holds(one, line.at)]):
                continue
            else:
                for period in within:
                    by_period[period].append(line)
            whole.append(line)
            by_session[line.session].append(line)

    def _holds(self, period: AwayPeriod, at: Instant) -> bool:
        return period.since <= at <= end_of(period, self.now)

    def _judge(self, rows: Sequence[VerdictRow | Bare]) -> None:
        """Sorts verdicts in, those of one session in one period at a time."""
        together: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            together[row.period, row.session].append(place)
        all_facts = judged(rows)
        self.judged += all_facts
        for (period, session), places in together.items():
            facts = [all_facts[place] for place in places]
            self._judged[period] += facts
            self.judged_of[session] += facts
            self._newest[period, session].extend(
                row for row in (rows[place] for place in places) if row.kind not in _SAW_NO_LIST
            )


def _some(rows: Iterable[VerdictRow | Bare]) -> Iterable[list[VerdictRow | Bare]]:
    """The rows, so many at a time, so that those read are let go."""
    source = iter(rows)
    while some := list(islice(source, AT_A_TIME)):
        yield some


def end_of(period: AwayPeriod, now: Instant) -> Instant:
    """When the period ended, or is to end; one without an end lasts until now."""
    return period.ended_at if period.ended_at is not None else period.until if period.until is not None else now
