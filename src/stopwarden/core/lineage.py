"""Which background work belongs to the work chain: baseline, related agents, provisional marks, the wait's limit.

Theory of operation. A chain begins with a snapshot of every task that is known then, the *baseline*:
what is in it is old. What is not in it was made by this chain, if the rule of its kind says so (the
relation table below). Agents made old by the snapshot become related again when the chain sends them
a message; a mark set before the send and settled after it classifies even an answer that is quicker
than the send's own result. Marks are counted by send, so a send that fails takes away its own mark
and no other. Baseline, related agents and marks are one value and are reset by one function: a chain
never judges with half of its predecessor's knowledge. Doubt (an unknown agent, a missing parent, a
circle of parents) is never related.

`has_relevant_background` is what defers the todo guard; `Deferral` says for how long that may last.

May not live here: reading a clock, the queues (backlog.py), whether the guard is armed (guard.py).
"""

from __future__ import annotations

from stopwarden.core.bounds import DEFERRAL_LIMIT
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from stopwarden.core.events import Instant

    Kind = Literal["agent", "monitor", "shell", "workflow", "wakeup", "cron"]
    TaskState = Literal["running", "paused", "cancelled", "finished", "scheduled"]
    Rule = Literal["by_parents", "by_owner", "if_new", "never"]

# Relation: how a task of each kind is judged. One row one rule.
RELATION: Mapping[str, Rule] = {
    "agent": "by_parents",  # lineage.agent: sent to, else not old and every parent known and not old
    "monitor": "by_owner",  # lineage.monitor: as its owner agent, whatever the baseline says; without one, if new
    "shell": "if_new",  # lineage.shell
    "workflow": "if_new",  # lineage.workflow
    "wakeup": "if_new",  # lineage.wakeup: a self-paced wakeup made after the chain began
    "cron": "never",  # lineage.cron: an ordinary schedule belongs to no chain
}
# Live: in which states a task of each kind can still bring something.
LIVE: frozenset[tuple[str, str]] = frozenset(
    {
        ("agent", "running"),
        ("agent", "paused"),
        ("agent", "cancelled"),  # only until it has notified
        ("monitor", "running"),
        ("shell", "running"),
        ("workflow", "running"),
        ("workflow", "paused"),
        ("wakeup", "scheduled"),
    }
)


class Task(Record):
    """One piece of background work as the host lists it now. `parent` is the agent that made it, "" for none."""

    kind: Kind
    id: str
    state: TaskState = "running"
    parent: str = ""
    foreground: bool = False  # an agent that its caller waits for is not background work
    notified: bool = False


class Lineage(Record):
    """What this chain knows of background work. `baseline` holds (kind, id); `marks` holds (send id, agent id)."""

    baseline: frozenset[tuple[str, str]] = frozenset()
    related: frozenset[str] = frozenset()
    marks: tuple[tuple[str, str], ...] = ()


def begun(world: Iterable[Task], queued: Iterable[tuple[str, str]] = ()) -> Lineage:
    """The lineage of a chain that begins now: all known tasks, and the (kind, id) of all queued results, are old.

    Related agents and marks of the chain before are gone.
    """
    return Lineage(baseline=frozenset((task.kind, task.id) for task in world) | frozenset(queued))


def message_sending(lineage: Lineage, send: str, agent: object, *, team: bool = False) -> Lineage:
    """A message to an agent is about to be sent, after permission and hooks: its target is marked.

    A message to a team, to no valid id, or to an agent that is related already marks nothing.
    Raises IllegalEventError when this send is under way already, or has no id.
    """
    if not send:
        raise IllegalEventError("A send without an id cannot be settled", kept="The marks are as they were")
    if any(mark == send for mark, _ in lineage.marks):
        raise IllegalEventError(f"The send {send} is under way already", kept="Its mark is as it was")
    if team or not isinstance(agent, str) or not agent or agent in lineage.related:
        return lineage
    return lineage.replace(marks=(*lineage.marks, (send, agent)))


def message_settled(lineage: Lineage, send: str, *, succeeded: bool) -> Lineage:
    """The send came to its end: its own mark goes, and after a success its target is related.

    A send without a mark (settled before, or begun in an earlier chain) changes nothing.
    """
    targets = [agent for mark, agent in lineage.marks if mark == send]
    if not targets:
        return lineage
    marks = tuple(mark for mark in lineage.marks if mark[0] != send)
    related = lineage.related | frozenset(targets) if succeeded else lineage.related
    return lineage.replace(marks=marks, related=related)


def spawned(lineage: Lineage, agent: str) -> Lineage:
    """The chain made this sub-session: it is related. Raises IllegalEventError for an empty id."""
    if not agent:
        raise IllegalEventError("A sub-session without an id cannot be related", kept="The lineage is as it was")
    return lineage.replace(related=lineage.related | {agent})


def of_another(lineage: Lineage, tasks: Iterable[Task]) -> Lineage:
    """These tasks were made beside the chain: they are as old work to it."""
    return lineage.replace(baseline=lineage.baseline | frozenset((task.kind, task.id) for task in tasks))


class Kinship:
    """Answers for one look at the world; made, asked and thrown away within one step, so it may remember."""

    def __init__(self, lineage: Lineage, world: Iterable[Task]) -> None:
        self.baseline, self.world = lineage.baseline, world
        self.sent_to = lineage.related.union([agent for _, agent in lineage.marks])
        self.known: dict[str, bool] = {}
        self.parents: dict[str, str] | None = None

    def related(self, kind: str, id: str, owner: str = "") -> bool:
        """Whether the task belongs to this chain. Raises IllegalEventError for a kind that is not in the table."""
        rule = RELATION.get(kind)
        if rule is None:
            raise IllegalEventError(f"There is no background work of kind {kind!r}", kept="Nothing was changed")
        if (kind, id) in self.baseline and rule != "by_owner" and id not in self.sent_to:
            return False  # old, as most tasks are: no other rule asks further
        if rule == "by_parents":
            return self._agent(id)
        if rule == "by_owner" and owner:
            return self._agent(owner)
        return rule != "never" and (kind, id) not in self.baseline

    def _agent(self, agent: str) -> bool:
        """Up the parents until something decides; all on the way share the answer. A loop: chains may be long."""
        known = self.known
        way: list[str] = []
        answer = known.get(agent)
        while answer is None:
            if agent in self.sent_to:
                answer = True
            elif ("agent", agent) in self.baseline or agent not in self._parents():
                answer = False
            else:
                way.append(agent)
                known[agent] = False  # met again further up, it is its own ancestor: a circle is never related
                agent = self._parents()[agent]
                answer = known.get(agent) if agent else True
        if answer:
            known.update(dict.fromkeys(way, True))
        return answer

    def _parents(self) -> dict[str, str]:
        """The parent of every agent. Most tasks are old, and then nobody asks for it."""
        if self.parents is None:
            self.parents = {task.id: task.parent for task in self.world if task.kind == "agent"}
        return self.parents


def is_related(lineage: Lineage, world: Iterable[Task], kind: str, id: str, owner: str = "") -> bool:
    """Whether one task belongs to this chain. Raises IllegalEventError for an unknown kind."""
    return Kinship(lineage, world).related(kind, id, owner)


def relevant_background(lineage: Lineage, world: Iterable[Task]) -> tuple[Task, ...]:
    """The live tasks of this chain, in the order of the world: what the guard waits for."""
    tasks = tuple(world)
    related = Kinship(lineage, tasks).related
    return tuple([task for task in live(tasks) if related(task.kind, task.id, task.parent)])


def has_relevant_background(lineage: Lineage, world: Iterable[Task]) -> bool:
    """Whether a live task belongs to this chain. Queued results count too: `backlog.defers_guard` asks for both."""
    tasks = tuple(world)
    related = Kinship(lineage, tasks).related
    return any(related(task.kind, task.id, task.parent) for task in live(tasks))


def live(world: Iterable[Task]) -> list[Task]:
    """The tasks that can still bring something: background work in a live state; cancelled, until it has told so."""
    return [
        task
        for task in world
        if (task.kind, task.state) in LIVE and not task.foreground and not (task.notified and task.state == "cancelled")
    ]


class Deferral(Record):
    """How long the guard has waited for background work: since when, for which tasks, and whether it was told."""

    since: Instant | None = None
    tasks: tuple[str, ...] = ()
    too_long: bool = False


class DeferredTooLong(Record):
    """Effect: the wait passed its limit at `now`; these tasks still run, unrelated automatic turns run again."""

    since: Instant
    now: Instant
    tasks: tuple[str, ...]


def waited(
    deferral: Deferral, tasks: tuple[str, ...], now: Instant, limit: int = DEFERRAL_LIMIT
) -> tuple[Deferral, tuple[DeferredTooLong, ...]]:
    """The wait at `now` (seconds): begun, gone on, or, without tasks, over. Told once when it reaches `limit` seconds.

    A clock that goes back begins the count anew, so that it cannot make the wait endless.
    """
    if not tasks:
        return Deferral(), ()
    since = now if deferral.since is None else min(deferral.since, now)
    if deferral.too_long or now - since < limit:
        return deferral.replace(since=since, tasks=tasks), ()
    return Deferral(since=since, tasks=tasks, too_long=True), (DeferredTooLong(since=since, now=now, tasks=tasks),)
