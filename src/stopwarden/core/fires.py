"""The queue of scheduled prompts that came while something else ran: coalescing, trims, who goes next.

Theory of operation. A schedule that fires again while its last fire still waits is one entry, in the
place it had: what the person wants is the look, not its number. While a chain or a person's prompt
holds automatic work back, at most twenty unrelated entries wait, counted after coalescing; the
oldest go, together and told once, and are named like any other thing left out (gaps.py). A related
wakeup never goes and overtakes older unrelated fires.

May not live here: schedules (cron.py), gap entries, the turn that runs a fire.
"""

from __future__ import annotations

from stopwarden.core.bounds import DEFERRED_FIRES_MAX, FIRES_MAX
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from stopwarden.core.results import Holding


class Fire(Record):
    """One fire of a schedule, its prompt kept in the store under `id`. `job` is the schedule's id, "" if it has none.

    `kind` "wakeup" is a self-paced wakeup, "cron" an ordinary schedule. `times` counts the fires it stands for.
    """

    id: str
    job: str = ""
    kind: Literal["cron", "wakeup"] = "cron"
    where: str = ""
    related: bool = False
    times: int = 1


Fires = tuple[Fire, ...]


class Admission(Record):
    """The queue after a fire: whom it replaced in place, and who had to go, oldest first."""

    queue: Fires
    replaced: Fires = ()
    gone: Fires = ()


def admitted(queue: Fires, fire: Fire, holding: Holding) -> Admission:
    """The queue with this fire: in the place of its job's waiting fire, else at the end of a trimmed queue.

    The trim makes room for an unrelated newcomer (19 stay, it is the twentieth); a related one takes no
    place of theirs (20 stay).
    """
    same = next((waits for waits in queue if fire.job and _alike(waits, fire)), None)
    if same is not None:
        stands = fire.replace(times=same.times + fire.times)
        queue = tuple(stands if waits is same else waits for waits in queue)
        queue, gone = _trimmed(queue, _limit(holding))
        return Admission(queue=queue, replaced=(same,), gone=gone)
    queue, gone = _trimmed(queue, _limit(holding) - (not fire.related))
    return Admission(queue=(*queue, fire), gone=gone)


def put_back(queue: Fires, fire: Fire, holding: Holding) -> Admission:
    """The queue with a fire whose turn came to nothing in front; a later fire of its job stands for it."""
    same = next((waits for waits in queue if fire.job and _alike(waits, fire)), None)
    if same is not None:
        later = tuple(waits for waits in queue if waits is not same)
        return Admission(queue=(same.replace(times=same.times + fire.times), *later), replaced=(fire,))
    queue, gone = _trimmed((fire, *queue), _limit(holding))
    return Admission(queue=queue, gone=gone)


def next_up(queue: Fires, holding: Holding) -> Fire | None:
    """The fire that runs next: none under a person's priority; the first, or while a chain waits the first related."""
    if holding.fifo_priority or not queue:
        return None
    if not holding.guard_blocks:
        return queue[0]
    related = next((fire for fire in queue if fire.related), None)
    return related if related is not None or not holding.too_long else queue[0]


def as_old(queue: Fires) -> Fires:
    """The same fires, none of them related: another chain has begun."""
    return tuple(fire.replace(related=False) if fire.related else fire for fire in queue)


def _alike(one: Fire, other: Fire) -> bool:
    return (one.kind, one.job, one.related) == (other.kind, other.job, other.related)


def _limit(holding: Holding) -> int:
    return DEFERRED_FIRES_MAX if holding.deferring else FIRES_MAX


def _trimmed(queue: Fires, limit: int) -> tuple[Fires, Fires]:
    """At most `limit` unrelated fires, the youngest, and those that had to go."""
    unrelated = [fire for fire in queue if not fire.related]
    gone = tuple(unrelated[: max(0, len(unrelated) - limit)])
    left_out = frozenset(fire.id for fire in gone)
    return tuple(fire for fire in queue if fire.id not in left_out), gone
