"""A turn while the person is away: the real judge answers, from one night's list and wakes, and its store commits."""

from __future__ import annotations

from collections import deque
from typing import Any

from stopwarden.core import away_words as away
from stopwarden.core import turn_events as ev
from stopwarden.core.errors import StaleVerdictError
from stopwarden.core.events import Item, Verdict, Wake
from stopwarden.core.judge import commit
from tests.support.stops import AWAY, Night
from tests.support.turns import World


class AwayWorld(World):
    """A session whose person is away, and what it owes. `said` overrides single verdicts, `kept` single commits."""

    def __init__(self, *owed: Item, wakes: tuple[Wake, ...] = (), period: str = "p1", **kw: Any) -> None:
        super().__init__(**kw)
        self.night, self.wakes = Night(*owed), wakes
        self.said: deque[dict[str, Any]] = deque()
        self.kept: deque[dict[str, Any]] = deque()
        self.recorded: list[Verdict] = []
        if period:
            self.feed(away.AwaySet(period=period))

    def answer(self, effect: ev.Effect) -> None:
        """As the script says, and the away check by itself."""
        if isinstance(effect, away.Judge):
            del self.open[effect.id]
            said = self.said.popleft() if self.said else {"verdict": self.judged(effect.revision)}
            self.feed(away.Judged(id=effect.id, **said))
        elif isinstance(effect, away.CommitVerdict):
            del self.open[effect.id]
            said = self.kept.popleft() if self.kept else self.commit(effect.verdict)
            self.feed(away.VerdictKept(id=effect.id, **said))
        else:
            super().answer(effect)

    def judged(self, revision: away.Revision) -> Verdict:
        """What the judge says of a stop now."""
        night = self.night
        night.now += 10
        night.world = night.world.replace(period=AWAY if revision.away else None)
        night.state = night.state.replace(cancelled=revision.cancelled)
        return night.judged(self.wakes, plan_mode=revision.plan)

    def commit(self, verdict: Verdict) -> dict[str, Any]:
        """The transaction that counts and records."""
        try:
            self.night.state = commit(self.night.state, verdict)
        except StaleVerdictError:
            return {"stale": True}
        self.recorded.append(verdict)
        return {}

    def reasons(self) -> list[str]:
        """The words of the away check that were sent, in order."""
        return [part.text for send in self.sent for part in send.parts if part.kind == "away"]

    def rules(self) -> list[str]:
        """The rules of the recorded verdicts."""
        return [verdict.rule for verdict in self.recorded]
