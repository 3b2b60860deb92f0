"""The away check of a guard simulation: the stores that a stop is judged by, and the real judge.

While the person is away the session asks (`Judge`); here the owed list, the wakes and the session's
row are read, `core/judge` is asked twice, and must say the same twice (I8). `CommitVerdict` is one
transaction: counted and recorded, or stale, or not to be written. Items get done, wakes come and go,
holds change, away begins and ends. Faults: a judge that cannot judge, a record that cannot be written,
and a store that has gone on. May not live here: what the session makes of it, the promises (`guard_book`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import away_words as away
from stopwarden.core.bounds import DAY, MINUTE, Policy
from stopwarden.core.events import AwayPeriod, Item, SessionState, Stop, Wake
from stopwarden.core.events import World as Facts
from stopwarden.core.judge import commit, judge
from stopwarden.core.session import heard, prompted, tool_used
from stopwarden.sim.guard_wire import SESSION, Wire
from stopwarden.sim.plans import ZONE

if TYPE_CHECKING:
    from stopwarden.sim.guard_faults import Plan

NIGHT = 1_764_540_000  # seconds: when a history begins
PERIOD = AwayPeriod(id="p", since=NIGHT - MINUTE, until=NIGHT + 365 * DAY, scope="checkout", root="/repo")
POLICY = Policy(blocks_without_tools=2, blocks_without_progress=3)  # short: a history has few stops
ITEMS = 3


class Away(Wire):
    """One history's stores."""

    def __init__(self, plan: Plan, told: list[str] | None = None) -> None:
        super().__init__(plan, told)
        self.row = SessionState(id=SESSION)
        self.done, self.wakes = 0, False  # items done; whether a wake is scheduled
        self.period = ""

    def clock(self) -> int:
        """The time by the machine's clock, in seconds."""
        return NIGHT + max(0, self.now) // 1_000

    def judged(self, ask: away.Judge) -> away.Judged:
        """The verdict on a stop, or none."""
        if self.fault("no_judge", 3):
            return away.Judged(id=ask.id, failed="the store cannot be read")
        now = self.clock()
        items = tuple(
            Item(id=f"I{one}", title=f"do {one}", source="TODO.md", state="done" if one < self.done else "open")
            for one in range(ITEMS)
        )
        facts = Facts(zone=ZONE, period=PERIOD if ask.revision.away else None, items=items)
        soon = now + 30 * MINUTE
        wake = Wake(id="w", schedule="* * * * *", first_seen=now, fires_at=soon, fires_said_at=now)
        self.row, _ = heard(self.row.replace(cancelled=ask.revision.cancelled), now, by_stop=True)
        stop = Stop(session=SESSION, at=now, wakes=(wake,) if self.wakes else (), plan_mode=ask.revision.plan)
        verdict = judge(stop, self.row, facts, POLICY)
        self.book.checked("I8")
        if judge(stop, self.row, facts, POLICY) != verdict:
            self.book.wrong("I8: the judge says two things of one stop")
        self.book.hit(f"verdict {verdict.kind}")
        return away.Judged(id=ask.id, verdict=verdict)

    def committed(self, ask: away.CommitVerdict) -> away.VerdictKept:
        """The transaction that counts and records."""
        if self.fault("stale_store", 3):
            return away.VerdictKept(id=ask.id, stale=True)
        if self.fault("no_record", 3):
            return away.VerdictKept(id=ask.id, failed="the disk is full")
        if ask.verdict.after is not None and ask.verdict.after.revision != self.row.revision:
            return away.VerdictKept(id=ask.id, stale=True)
        self.row = commit(self.row, ask.verdict)
        self.book.recorded(ask.verdict)
        return away.VerdictKept(id=ask.id)

    # ---- moves

    def go_away(self) -> None:
        """The person goes away, or comes back."""
        self.period = "" if self.period else "p"
        self.feed(away.AwaySet(period=self.period))

    def holds_change(self) -> None:
        """A hold of this session was taken, lost or given back."""
        self.feed(away.FencesChanged())

    def work_goes_on(self) -> None:
        """An item gets done, a wake is scheduled or used up, a tool is used, or the list begins anew."""
        pick = self.choices.below(5)
        if pick == 0:
            self.done = (self.done + 1) % (ITEMS + 1)
        elif pick == 1:
            self.wakes = not self.wakes
        elif pick == 2:
            self.row = tool_used(self.row, self.clock())
        elif pick == 3:
            self.row = prompted(self.row, "person")
