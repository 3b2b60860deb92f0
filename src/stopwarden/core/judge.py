"""The one door: judges a stop (step 7 of the order at a stop), and says what to store for it.

`judge` is pure: no clock, no I/O, the same answer when called twice on the same values; so a
recorded verdict can be judged again (`stopwarden explain`). `commit` is separate: the shell calls
it inside the transaction that also counts and appends.
"""

from __future__ import annotations

from stopwarden.core import away
from stopwarden.core.errors import StaleVerdictError
from stopwarden.core.events import Happening, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import Instant, SessionState, Stop, World

JUDGE = "2"  # raised when the same inputs may get another verdict; recorded with every verdict


def judge(stop: Stop, session: SessionState, world: World, policy: Policy) -> Verdict:
    """Whether this stop is allowed, and why. Raises nothing of its own."""
    if stop.subagent:
        return _left_alone("off", "stop.subagent", stop, world)
    if stop.plan_mode:
        verdict = _left_alone("plan_mode", "stop.plan_mode", stop, world)
        return verdict.replace(happenings=(Happening(kind="plan_mode"),)) if world.period else verdict
    if session.cancelled:
        return _left_alone("cancelled", "stop.cancelled", stop, world)
    if world.mode == "off" and world.paused_until is not None and world.period is not None:
        return _paused(stop, session, world, world.paused_until)
    if world.mode == "off":
        return _left_alone("off", "policy.off", stop, world)
    if world.period is None:
        return _left_alone("idle", "away.not_away", stop, world)
    verdict = away.check(stop, session, world, policy, world.period)
    if world.mode == "observe":
        return _observed(verdict, session)
    return verdict


def commit(session: SessionState, verdict: Verdict) -> SessionState:
    """The session's state after this verdict. Raises StaleVerdictError if it was judged on another revision."""
    if verdict.after is None:
        return session
    if verdict.after.revision != session.revision:
        raise StaleVerdictError(
            f"The stop was judged on revision {verdict.after.revision} of the session, which is now {session.revision}",
            kept="Nothing was counted",
            do="Judge it again",
        )
    return verdict.after


def _left_alone(kind: str, rule: str, stop: Stop, world: World) -> Verdict:
    return Verdict(block=False, kind=kind, rule=rule, at=stop.at, zone=world.zone.name)


def _paused(stop: Stop, session: SessionState, world: World, until: Instant) -> Verdict:
    """The person said until when nothing is to be done: the session waits for that, and is missed if it sleeps on."""
    after = session.replace(next_look=until, next_look_latest=until, wake_started=False)
    verdict = _left_alone("waiting", "policy.paused", stop, world)
    return verdict.replace(deadline=until, after=after)


def _observed(verdict: Verdict, session: SessionState) -> Verdict:
    """What would have been said, recorded but not said; no block is counted that nobody felt."""
    notice = "observed only: would have blocked" if verdict.block else f"observed only: {verdict.kind}"
    look = verdict.after
    after = session.replace(
        next_look=look.next_look if look else None, next_look_latest=look.next_look_latest if look else None
    )
    return verdict.replace(block=False, kind="observed", notice=notice, after=after, happenings=())
