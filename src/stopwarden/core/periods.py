"""Which away period holds for a session.

The narrowest scope that covers it: the session's own, then its checkout's, then everywhere. A
session that a script started (`claude -p`) is covered only by a period that says so, or by its
own. A period holds from its beginning until its end, half-open.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.core.events import AwayPeriod, Instant

_NARROWEST_FIRST = ("session", "checkout", "everywhere")


def holds(period: AwayPeriod, now: Instant) -> bool:
    """Whether the period has begun and not ended."""
    return period.ended_at is None and period.since <= now and (period.until is None or now < period.until)


def covers(period: AwayPeriod, *, session: str, copy: str, root: str, script: bool) -> bool:
    """Whether the period is meant for this session, whatever the time."""
    if period.scope == "session":
        return period.session == session
    if script and not period.also_scripts:
        return False
    if period.scope == "everywhere":
        return True
    return period.copy == copy if period.copy and copy else bool(root) and period.root == root


def covering(
    periods: Iterable[AwayPeriod], *, session: str, copy: str, root: str, script: bool, now: Instant
) -> AwayPeriod | None:
    """The period that holds for this session now, or None. The newest of equals."""
    holding = [
        period
        for period in periods
        if holds(period, now) and covers(period, session=session, copy=copy, root=root, script=script)
    ]
    return min(holding, key=lambda period: (_NARROWEST_FIRST.index(period.scope), -period.since), default=None)
