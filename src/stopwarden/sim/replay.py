"""Recorded stops judged again: as they were, or under another policy.

As they were, every verdict must come out the same in every part; one that does not is an error of
ours. Under another policy, each session's state is carried forward from stop to stop: what the new
verdicts store, and what the events between two stops changed. Those events are known without
having been kept: judging the recorded stop again gives the state that was stored after it, and
whatever the next stop's recorded state has different, events changed.

What the agent would have done after another answer cannot be known; the stops that follow are
judged as they were recorded. Pure: recorded stops in, a `Replayed` out.
May not live here: the file's format (`store.recorded`), how it is told (`cli.replay`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core.errors import StopwardenError, StoreCorruptError
from stopwarden.core.judge import commit, judge
from stopwarden.core.record import Record
from stopwarden.core.session import heard
from stopwarden.report.explanation import Difference, differences
from stopwarden.sim.policies import GUARDS, turn_begins

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stopwarden.core.events import Instant, SessionState, Stop, Verdict
    from stopwarden.sim.policies import Guard
    from stopwarden.store.recorded import RecordedStop

# Facts of a session's state that events write; a verdict only sets them back.
_OF_EVENTS = ("tool_used", "wake_started", "compacted", "cancelled")


class Again(Record):
    """One recorded stop and the verdict it gets now."""

    line: int
    id: int
    at: Instant
    session: str
    was: Verdict
    now: Verdict
    differences: tuple[Difference, ...] = ()  # as it was: every part; else the answer, and its rule if that is ours
    judged: bool = True  # False: a fault of ours gave the answer, no judge did

    @property
    def same(self) -> bool:
        return not self.differences


class Unjudged(Record):
    """A recorded stop that cannot be judged, and why."""

    line: int
    id: int
    error: StopwardenError


class Replayed(Record):
    """All stops of a file, in its order."""

    stops: tuple[Again, ...]
    unjudged: tuple[Unjudged, ...]
    changed_policy: bool

    @property
    def changed(self) -> tuple[Again, ...]:
        """Those whose verdict is another one."""
        return tuple(one for one in self.stops if not one.same)


def replay(
    stops: Iterable[RecordedStop], settings: Mapping[str, object] | None = None, guard: Guard | None = None
) -> Replayed:
    """Judges each stop again; with `settings` (checked values by name) or a `guard`, under these.

    Stops of one session are taken in the order given. A stop whose record cannot be read or judged
    is named and left out, and its session goes on from the following stop's recorded state.
    """
    changed_policy = bool(settings) or guard is not None
    sessions: dict[str, _Carried] = {}
    told: list[Again] = []
    unjudged: list[Unjudged] = []
    for one in stops:
        try:
            told.append(_judged(one, sessions, settings or {}, guard) if changed_policy else _as_it_was(one))
        except StopwardenError as error:
            sessions.pop(one.row.session, None)
            unjudged.append(Unjudged(line=one.line, id=one.row.id, error=error))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError) as failed:
            sessions.pop(one.row.session, None)  # a file may hold any value at any place
            unjudged.append(Unjudged(line=one.line, id=one.row.id, error=_no_judge_reads(one, failed)))
    return Replayed(stops=tuple(told), unjudged=tuple(unjudged), changed_policy=changed_policy)


def _as_it_was(one: RecordedStop) -> Again:
    stop, session, world, policy, verdict = one.decoded()
    if _is_fault(verdict):
        return _again(one, verdict, verdict, judged=False)
    now = judge(stop, session, world, policy)
    return _again(one, verdict, now, differences(verdict, now))


class _Carried(Record):
    """A session between two stops: its state under the new policy, and as it was stored; the last stop's prompt."""

    state: SessionState
    stored: SessionState
    prompt: str


def _judged(
    one: RecordedStop, sessions: dict[str, _Carried], settings: Mapping[str, object], guard: Guard | None
) -> Again:
    stop, recorded, world, policy, verdict = one.decoded()
    if _is_fault(verdict):
        return _again(one, verdict, verdict, judged=False)
    terms = policy.replace(**settings)
    using = guard or GUARDS["ours"]
    state = _carried(sessions.get(stop.session), stop, recorded, using)
    now = using.judge(stop, state, world, terms)
    as_stored = judge(stop, recorded, world, policy)
    sessions[stop.session] = _Carried(state=commit(state, now), stored=commit(recorded, as_stored), prompt=stop.prompt)
    answer = ("block",) if using.by_turn else ("block", "kind", "rule")  # another rule has other names for it all
    return _again(one, verdict, now, tuple(part for part in differences(verdict, now) if part.what in answer))


def _carried(before: _Carried | None, stop: Stop, recorded: SessionState, guard: Guard) -> SessionState:
    """The state in which this stop is judged: its session's own, and what events changed since the last stop."""
    if before is None:
        return recorded
    state, stored = before.state.replace(revision=recorded.revision), before.stored
    changes = {name: getattr(recorded, name) for name in _OF_EVENTS if getattr(recorded, name) != getattr(stored, name)}
    woken = tuple(at for at in recorded.recent_blocks if at not in stored.recent_blocks)  # by a keeper, and counted
    counted = recorded.period_blocks - stored.period_blocks if recorded.period == stored.period else 0
    state = state.replace(
        recent_blocks=tuple(sorted((*state.recent_blocks, *woken))),
        period_blocks=max(0, state.period_blocks + counted),
        **changes,
    )
    new_turn = bool(stop.prompt and stop.prompt != before.prompt)
    if new_turn or changes:
        state = heard(state, stop.at)[0]
    else:
        state = heard(state, stop.at, by_stop=True)[0]
    if guard.by_turn and (new_turn or recorded.wake_started):
        state = turn_begins(guard, state, "wake" if recorded.wake_started else "notification")
    return state


def _no_judge_reads(one: RecordedStop, failed: Exception) -> StopwardenError:
    return StoreCorruptError(
        f"Line {one.line}, verdict {one.row.id}, cannot be judged ({type(failed).__name__}: {failed})",
        kept="The record itself is left as it is",
        do="Tell us, if Stopwarden wrote this line itself",
    )


def _is_fault(verdict: Verdict) -> bool:
    return str(verdict.rule).startswith("fault.")


def _again(
    one: RecordedStop, was: Verdict, now: Verdict, found: tuple[Difference, ...] = (), *, judged: bool = True
) -> Again:
    return Again(
        line=one.line,
        id=one.row.id,
        at=one.row.at,
        session=one.row.session,
        was=was,
        now=now,
        differences=found,
        judged=judged,
    )
