"""A night on the core alone: one session, one list, wakes, and a clock that the test moves."""

from __future__ import annotations

from stopwarden.core.bounds import Policy
from stopwarden.core.events import AwayPeriod, Item, SessionState, Stop, Verdict, Wake, World
from stopwarden.core.judge import commit, judge
from stopwarden.core.session import heard, prompted, tool_used
from tests.conftest import LONDON, at

NIGHT = at("2026-11-30 21:00")
AWAY = AwayPeriod(id="p1", since=NIGHT - 60, until=at("2026-12-01 07:30"), scope="checkout", root="/work/repo")


def items(*names: str, **states: str) -> tuple[Item, ...]:
    """Open items A, B, …; a keyword gives an item another state than open: items("A", B="done")."""
    made = [Item(id=name, title=f"do {name}", source="TODO.md") for name in names]
    made += [Item(id=name, title=f"do {name}", source="TODO.md", state=state) for name, state in states.items()]  # type: ignore[arg-type]
    return tuple(made)


def one_shot(clock: str, name: str = "w1") -> Wake:
    """A nominal one-shot at a local time of day."""
    hour, minute = clock.split(":")
    return Wake(id=name, schedule=f"{int(minute)} {int(hour)} * * *", kind="one_shot")


SOON = (one_shot("21:30"),)


class Night:
    """One session through the night: each `stop` is judged and committed, as the hook would."""

    def __init__(self, *owed: Item, policy: Policy | None = None, period: AwayPeriod | None = AWAY, **world: object):
        self.now = NIGHT
        self.policy = policy or Policy()
        self.world = World(zone=LONDON, period=period, items=owed, **world)  # type: ignore[arg-type]
        self.state = SessionState(id="s1")
        self.lines: list[str] = []

    def owes(self, *owed: Item) -> Night:
        """From now on the sources hold these items."""
        self.world = self.world.replace(items=owed)
        return self

    def judged(self, wakes: tuple[Wake, ...] | None = (), **stop: object) -> Verdict:
        """The verdict now, nothing stored."""
        return judge(Stop(session="s1", at=self.now, wakes=wakes, **stop), self.state, self.world, self.policy)  # type: ignore[arg-type]

    def stop(self, wakes: tuple[Wake, ...] | None = (), **stop: object) -> Verdict:
        """One stop, judged and committed; the clock goes on by ten seconds."""
        self.state, happened = heard(self.state, self.now, by_stop=True)
        verdict = self.judged(wakes, **stop)
        self.state = commit(self.state, verdict)
        self.lines += [line.kind for line in (*happened, *verdict.happenings)]
        self.now += 10
        return verdict

    def tool(self) -> Night:
        """A tool is used."""
        self.state, happened = heard(self.state, self.now)
        self.state = tool_used(self.state, self.now)
        self.lines += [line.kind for line in happened]
        return self

    def prompt(self, by: str = "person") -> Night:
        """A turn begins."""
        self.state, happened = heard(self.state, self.now)
        self.state = prompted(self.state, by)
        self.lines += [line.kind for line in happened]
        return self

    def at(self, text: str) -> Night:
        """The clock reads this local time."""
        self.now = at(text)
        return self
