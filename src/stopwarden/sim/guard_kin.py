"""Which background work belongs to a chain, found out a second time from what was seen.

Kept beside the machines, from what goes in and comes out: which tasks there were when a chain began,
which agents it has made or written to. The machine says of each result and fire, when it keeps it, whether it
is related; `related` says whether that is so. Only where it is certain that a chain began or went on:
after a retry, which may do either, nothing is said until the next chain begins (`certain`).

May not live here: the machine's own rule (`core/lineage`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import backlog_events as waits
from stopwarden.core import turn_events as ev
from stopwarden.core.fires import Fire

if TYPE_CHECKING:
    from stopwarden.core.lineage import Task
    from stopwarden.core.record import Record
    from stopwarden.core.results import Result

LIVE_STATES = {"agent": ("running", "paused", "cancelled"), "workflow": ("running", "paused"), "wakeup": ("scheduled",)}


class Kin:
    """What one session's chain may call its own."""

    def __init__(self) -> None:
        self.world: tuple[Task, ...] = ()
        self.kept: dict[str, Result | Fire] = {}  # not delivered, not left out
        self.old: set[tuple[str, str]] = set()
        self.made: set[str] = set()  # agents that the chain made or wrote to
        self.sends: dict[str, str] = {}  # messages under way, and to whom
        self.certain = True

    def heard(self, event: Record) -> None:
        """Something that was seen of background work."""
        match event:
            case ev.BackgroundChanged():
                self.world = event.tasks
            case waits.MessageSending() if not event.team and isinstance(event.agent, str):
                self.sends[event.send] = event.agent
            case waits.MessageSettled():
                agent = self.sends.pop(event.send, "")
                if event.succeeded and agent:
                    self.made.add(agent)
            case waits.Spawned():
                self.made.add(event.agent)
            case _:
                pass

    def began(self) -> None:
        """A chain begins: all there is is old."""
        told = {(one.kind, one.job if isinstance(one, Fire) else one.task) for one in self.kept.values()}
        self.old = {(task.kind, task.id) for task in self.world} | told
        self.made, self.sends, self.certain = set(), {}, True
        self.kept = {name: one.replace(related=False) for name, one in self.kept.items()}

    def doubted(self) -> None:
        """A chain may have begun, or may go on. Nobody knows from outside."""
        self.certain = False
        self.kept = {name: one.replace(related=False) for name, one in self.kept.items()}

    def restarted(self) -> None:
        """A new process: no chain of it has begun."""
        self.world, self.made, self.sends = (), set(), {}
        self.doubted()

    def related(self, one: Result | Fire) -> bool:
        """Whether this result or fire comes from the chain's own work."""
        if isinstance(one, Fire):
            return bool(one.job) and one.kind == "wakeup" and (one.kind, one.job) not in self.old
        return self._own(one.kind, one.task, one.owner)

    def live(self) -> list[str]:
        """Tasks of the chain that still run."""
        return [
            task.id
            for task in self.world
            if task.state in LIVE_STATES.get(task.kind, ("running",))
            and not task.foreground
            and not (task.notified and task.state == "cancelled")
            and task.kind != "cron"
            and self._own(task.kind, task.id, task.parent)
        ]

    def _own(self, kind: str, name: str, owner: str) -> bool:
        if kind == "agent" or (kind == "monitor" and owner):
            return self._from_here(owner if kind == "monitor" else name, ())
        return (kind, name) not in self.old

    def _from_here(self, agent: str, below: tuple[str, ...]) -> bool:
        """Made or written to, or new with every ancestor new. `below` are the agents that led here."""
        if agent in self.made or agent in self.sends.values():
            return True
        found = next((task for task in self.world if task.kind == "agent" and task.id == agent), None)
        if found is None or ("agent", agent) in self.old or agent in below:
            return False
        return not found.parent or self._from_here(found.parent, (*below, agent))
