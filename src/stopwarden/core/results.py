"""The bounded queue of background results: who is protected, who has to go, who goes next, and with whom.

Theory of operation. A result's relation to the chain is decided once, when it comes, and kept; only the
beginning of another chain sets it to old. While automatic work is held back, related results are
protected: they are what the chain waits for. When the queue is full somebody has to go by the table
of `admitted`; that one is not lost, it becomes a gap entry (gaps.py). Results leave together: all that
may go now are one turn, in the order they came.

May not live here: gap entries, the turn that carries the results, texts (a result is known by its id).
"""

from __future__ import annotations

from stopwarden.core.bounds import NOTIFICATIONS_MAX
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    ResultKind = Literal["agent", "shell", "monitor", "workflow"]

RESULT_KINDS = frozenset({"agent", "shell", "monitor", "workflow"})


class Holding(Record):
    """What holds automatic turns back now, as the session knows it.

    `guard_blocks`: a trusted chain has unfinished work. `fifo_priority`: a person's prompt
    comes first. `too_long`: the wait for background work has passed its limit (lineage.Deferral).
    """

    guard_blocks: bool = False
    fifo_priority: bool = False
    too_long: bool = False

    @property
    def deferring(self) -> bool:
        return self.guard_blocks or self.fifo_priority


class Result(Record):
    """One background result, its text kept in the store under `id`. `where` tells how it can be read again.

    `owner` is the agent a monitor belongs to. `digest` names the content where the host can tell, so that the
    same result under another id is known again. `interim` is a pulse of a monitor that goes on running.
    """

    id: str
    kind: ResultKind
    task: str
    status: str = "completed"
    owner: str = ""
    where: str = ""
    digest: str = ""
    interim: bool = False
    related: bool = False

    @property
    def known_as(self) -> tuple[str, ...]:
        """What this result is known by: its id, and its task with its digest."""
        return (self.id, f"{self.kind}\0{self.task}\0{self.digest}") if self.digest else (self.id,)


Results = tuple[Result, ...]


def admitted(queue: Results, result: Result, holding: Holding) -> tuple[Results, Results]:
    """The queue with the result at its end, and who had to go for it (perhaps the result itself).

    The table, first row that fits: room -> nobody; every waiting one protected -> the newcomer; an
    unprotected pulse waits -> the oldest of these; the newcomer is a pulse -> the newcomer; else -> the
    oldest unprotected.
    """
    if len(queue) < NOTIFICATIONS_MAX:
        return (*queue, result), ()
    open_to_go = [waiting for waiting in queue if not (holding.deferring and waiting.related)]
    pulses = [waiting for waiting in open_to_go if waiting.interim]
    if not open_to_go or (result.interim and not pulses):
        return queue, (result,)
    goes = (pulses or open_to_go)[0]
    return (*(waiting for waiting in queue if waiting is not goes), result), (goes,)


def put_back(queue: Results, batch: Results, holding: Holding) -> tuple[Results, Results]:
    """The batch in front of the queue again, and who had to go where that is more than the queue holds."""
    kept: Results = ()
    gone: Results = ()
    for result in (*batch, *queue):
        kept, out = admitted(kept, result, holding)
        gone += out
    return kept, gone


def may_go(queue: Results, holding: Holding) -> Results:
    """The results that one turn would take now, in order.

    Nobody under the priority of a person's prompt; all if no chain is waiting; else the related ones; and
    if none is related and the wait has passed its limit, the others.
    """
    if holding.fifo_priority:
        return ()
    if not holding.guard_blocks:
        return queue
    related = tuple(result for result in queue if result.related)
    return queue if holding.too_long and not related else related


def as_old(queue: Results) -> Results:
    """The same results, none of them related: another chain has begun."""
    return tuple(result.replace(related=False) if result.related else result for result in queue)
