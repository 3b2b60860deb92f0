"""The words between a turn and the away check: what a verdict is judged by, asked, answered and recorded.

The turn cannot judge a stop while the person is away: what is owed, which wakes there are and who holds
what lie in stores. So it asks (`Judge`), and whoever drives it reads all that and calls `core/judge.judge`.
Both sides know the *revision*: all that a verdict is judged by and that may change while it is on its
way. The driver records the verdict (`CommitVerdict`) in one transaction that finds things as they were
judged, or answers that it is stale. Nothing here decides anything.
"""

from __future__ import annotations

from stopwarden.core.record import Record
from stopwarden.core.turn_events import Answer, Effect, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import Verdict


class Revision(Record):
    """What a verdict of the away check is judged by, as far as the session knows it. Equal: nothing has changed."""

    switch: str  # of the guard in this session
    cancelled: bool
    queue: tuple[int, str | None]  # rises with each admitted prompt; and who gave way to a queued one
    plan: bool
    away: str  # the away period's id; empty: away does not hold
    workspace: int  # rises with each move
    fences: int  # rises whenever a hold of this session was taken, lost or given back


class AwaySet(Event):
    """Away holds for this session from here on, under this period; empty: it does not."""

    period: str


class FencesChanged(Event):
    """A hold of this session was taken, lost or given back."""


class Judged(Answer):
    """The verdict on the stop. None: it could not be judged, and `failed` says why."""

    verdict: Verdict | None = None
    failed: str = ""


class VerdictKept(Answer):
    """The verdict is counted and in the record; or it is `stale`, or could not be recorded (`failed` says why)."""

    stale: bool = False
    failed: str = ""


class Judge(Effect):
    """Judge the stop of this turn as the away check does, by what is so in this revision."""

    turn: str
    reply: str
    revision: Revision


class CommitVerdict(Effect):
    """Count and record the verdict in one transaction, if all is still as in this revision."""

    turn: str
    verdict: Verdict
    revision: Revision
