"""What one session did with the time: spans of working, waiting, stopped and lost, without a gap.

Theory of operation. The away record holds what happened, not how long it lasted. A session's
lines and verdicts, in order, are walked once; each opens or closes a state, and the time between
two events belongs to the state in between, with these corrections:

* a wait whose next look did not come is waiting until the look's latest time, then lost;
* work that a new turn follows although no stop was seen has ended somewhere in between: after a
  block that reached a bound the host let it stop there; else, if it is long, the session was silent;
* the length of a step of the wall clock belongs to nothing.

The spans of a session cover the away period exactly once. May not live here: items, wording.
"""

from __future__ import annotations

from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from stopwarden.core.bounds import MISSED_LOOK_AFTER, SILENT_AFTER
from stopwarden.core.record import Record
from stopwarden.report.judged import Judged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Literal

    from stopwarden.core.events import Instant
    from stopwarden.store.port import RecordLine, SessionRow

    SpanKind = Literal["working", "waiting", "lost", "stopped", "finished", "unknown", "clock"]
    _What = tuple[SpanKind, str, str, Instant | None, Instant | None]  # a span's fields but since and until
    _Stretch = tuple[Instant, Instant, SpanKind, str, str, Instant | None, Instant | None]

STEP_MIN = 60  # a smaller step of the clock is not worth a span of its own


class Span(Record):
    """One stretch of a session's time. `cause` says why it is no work; `look` is the look waited for."""

    since: Instant
    until: Instant
    kind: SpanKind
    cause: str = ""
    detail: str = ""
    look: Instant | None = None
    resets_at: Instant | None = None  # a usage limit still on at the end: when it was to pass

    @property
    def seconds(self) -> int:
        """How long it lasted."""
        return self.until - self.since


class Look(Record):
    """A wake that opened a turn, and how that turn ended: "ok", "failed" (with the error) or "open"."""

    at: Instant
    session: str
    kept: bool = False  # the keeper woke it
    outcome: Literal["ok", "failed", "open"] = "open"
    error: str = ""


class _State(NamedTuple):
    """What the session is doing since `since`. A tuple, because a hundred thousand of them are made and dropped."""

    since: Instant
    kind: SpanKind
    cause: str = ""
    detail: str = ""
    look: Instant | None = None
    latest: Instant | None = None
    resets_at: Instant | None = None
    at_bound: str = ""  # working on after the block that reached this bound


def limit_named(error: str) -> bool:
    """Whether a host's error is a usage limit: it passes by itself, at a time."""
    kind = error.partition(";")[0].strip().lower()
    return "resets" in error or kind in ("rate_limit", "usage_limit", "quota")


def spans(
    lines: Iterable[RecordLine], verdicts: Iterable[Judged], since: Instant, until: Instant, row: SessionRow | None
) -> tuple[Span, ...]:
    """One session's time from `since` to `until`; lines and verdicts are its own, in the order they were written."""
    events = [event for event in _in_order(lines, verdicts) if event.at <= until and not _of_others(event)]
    if not events:
        return (Span(since=since, until=until, kind="stopped", cause="not_heard"),) if until > since else ()
    walk = _Walk(since, until, _before(events[0], since))
    for event in events:
        walk.take(event)
    walk.end(row)
    return walk.told()


def looks(lines: Iterable[RecordLine], verdicts: Iterable[Judged], session: str = "") -> tuple[Look, ...]:
    """Every turn that a wake or the keeper opened in one session, with its outcome."""
    told: list[tuple[Instant, bool, str, str]] = []  # when, whether by the keeper, outcome, error
    for event in _in_order(lines, verdicts):
        if isinstance(event, Judged):
            if told and told[-1][2] == "open":
                told[-1] = (*told[-1][:2], "ok", "")
        elif event.kind in ("look", "kept_look") or (event.kind == "prompt" and event.text == "wake"):
            kept = event.kind == "kept_look"
            if told and told[-1][0] == event.at:  # a look and its prompt are two lines of one turn
                told[-1] = (event.at, told[-1][1] or kept, *told[-1][2:])
            else:
                told.append((event.at, kept, "open", ""))
        elif event.kind == "error" and told and told[-1][2] == "open":
            told[-1] = (*told[-1][:2], "failed", event.text)
    if not told:
        return ()
    columns = dict(zip(("at", "kept", "outcome", "error"), zip(*told, strict=True), strict=True))
    return tuple(Look.many(len(told), {**columns, "session": [session] * len(told)}))


_AT = attrgetter("at")


def _in_order(lines: Iterable[RecordLine], verdicts: Iterable[Judged]) -> Iterable[RecordLine | Judged]:
    """Lines by sequence and verdicts by id, merged by time: of the same second, the lines come first."""
    told = sorted(lines, key=attrgetter("seq"))
    given = sorted(verdicts, key=attrgetter("id"))
    if _in_time(told) and _in_time(given):
        return sorted([*told, *given], key=_AT)  # the same order, many times as quick
    return merge(told, given, key=_AT)  # the clock was set back: what was written later still comes later


def _in_time(events: Sequence[RecordLine | Judged]) -> bool:
    times = list(map(_AT, events))
    return times == sorted(times)


def _of_others(event: RecordLine | Judged) -> bool:
    return not isinstance(event, Judged) and event.kind in _NOT_ITS_OWN


def _before(first: RecordLine | Judged, since: Instant) -> _State:
    """What the session did before its first event: at a stop it was working, before a new turn it was idle."""
    if isinstance(first, Judged):
        return _State(since=since, kind="working")
    if first.kind in ("prompt", "look", "kept_look", "missed_look", "idle"):
        return _State(since=since, kind="stopped", cause="no_turn")
    if first.kind in ("session_started", "not_covered"):
        return _State(since=since, kind="stopped", cause="not_there" if first.kind == "session_started" else first.kind)
    return _State(since=since, kind="working")


# Lines that may name a session and yet are no sign of it.
_NOT_ITS_OWN = (
    "away",
    "back",
    "period_ended",
    "on",
    "off",
    "observe",
    "switched",
    "fault",
    "item_added",
    "relocated",
    "checkout_gone",
    "stall",
    "watch_resumed",
)
# Events after which the session is at work, whatever it did before.
_AT_WORK = (
    "prompt",
    "look",
    "kept_look",
    "refused_permission",
    "refused_plan",
    "parked_question",
    "api_resumed",
    "resumed",
)
_TURN_OPENED = ("prompt", "look", "kept_look")
_ENDS_DIALOG = (*_AT_WORK, "person_answered", "wake_seen", "item_done", "item_doing", "compacted")
_ALLOWED: dict[str, tuple[SpanKind, str]] = {
    "done": ("finished", ""),
    "bound_reached": ("stopped", "bound"),
    "waiting_on_person": ("stopped", "waits_for_you"),
    "plan_mode": ("lost", "plan_mode"),
    "cancelled": ("stopped", "cancelled"),
    "suspended": ("stopped", "suspended"),
    "exhausted": ("stopped", "exhausted"),
    "error": ("stopped", "our_fault"),
    "off": ("stopped", "off"),
    "observed": ("stopped", "observe"),
    "idle": ("stopped", "not_away"),
    "yielded": ("working", ""),
    "deferred": ("waiting", ""),
}


class _Walk:
    """The state of one session, driven by its events in order."""

    def __init__(self, since: Instant, until: Instant, state: _State) -> None:
        self.since, self.until, self.state = since, until, state
        self._told: list[_Stretch] = []
        self._at_bound: tuple[Instant, str] | None = None

    def take(self, event: RecordLine | Judged) -> None:
        """One event; what it does not touch stays as it is."""
        at = event.at if event.at > self.state.since else self.state.since
        if isinstance(event, Judged):
            self._verdict(at, event)
        elif event.kind in _AT_WORK or (self.state.cause in ("permission", "question") and event.kind in _ENDS_DIALOG):
            self._work(at, event.kind, event.text)
        elif event.kind == "clock_stepped":
            self._clock(at, event.text)
        elif event.kind == "silent":
            self._silent(at, event.text)
        elif event.kind == "error":
            self._become(_State(since=at, kind="lost", cause=_cause_of(event.text), detail=event.text))
        elif event.kind in ("waiting_permission", "plan_mode"):
            cause = (
                "plan_mode" if event.kind == "plan_mode" else "question" if event.text == "question" else "permission"
            )
            self._become(_State(since=at, kind="lost", cause=cause))
        elif event.kind in ("stopped_with_work_owed", "stopped_without_next_look"):
            self._at_bound = (at, event.text)
        elif event.kind == "session_ended" and self.state.kind != "finished":
            self._become(_State(since=at, kind="stopped", cause="ended", detail=event.text))
        elif event.kind == "session_started" and event.text != "compact":
            self._ended_unseen(at)
            self._become(_State(since=at, kind="stopped", cause="no_turn"))
        elif event.kind == "idle" and self.state.kind == "working":
            self._ended_unseen(at)
            self._become(
                _State(since=at, kind="stopped", cause=self.state.cause or "no_stop_seen", detail=self.state.detail)
            )

    def end(self, row: SessionRow | None) -> None:
        """The period's end (or now): closes the last span, as silent where nothing was heard for long."""
        heard = row.last_event_at if row is not None else 0
        state = self.state
        last = max(state.since, heard)
        quiet = bool(heard) and heard <= self.until and self.until - last >= SILENT_AFTER
        if state.kind == "working" and state.at_bound and (quiet or last == state.since):
            self._become(_State(since=last, kind="stopped", cause="bound", detail=state.at_bound))
        elif state.kind == "working" and quiet:
            self._become(_State(since=last, kind="lost", cause="silent"))
        elif state.cause == "limit" and row is not None:
            self.state = state._replace(resets_at=row.error_resets_at)
        self._close(self.until)

    def _verdict(self, at: Instant, verdict: Judged) -> None:
        bound = self._at_bound[1] if self._at_bound and self._at_bound[0] == at else ""
        self._at_bound = None
        state = self.state
        if (
            state.kind == "waiting"
            and state.look
            and state.latest
            and state.look <= at <= state.latest + MISSED_LOOK_AFTER
        ):
            self._become(_State(since=state.look, kind="working"))  # the wake's own prompt was not seen
        if verdict.block:
            self._become(_State(since=at, kind="working", at_bound=bound))
        elif verdict.kind == "waiting" or (verdict.kind == "observed" and verdict.look is not None):
            self._become(
                _State(since=at, kind="waiting", look=verdict.look, latest=verdict.look_latest or verdict.look)
            )
        else:
            kind, cause = _ALLOWED.get(verdict.kind, ("stopped", verdict.kind))
            self._become(_State(since=at, kind=kind, cause=cause))

    def _work(self, at: Instant, by: str, text: str) -> None:
        if by in _TURN_OPENED and text != "person":
            self._ended_unseen(at)
        if self.state.kind != "working":
            self._become(_State(since=at, kind="working"))

    def _ended_unseen(self, at: Instant) -> None:
        """The work of before has ended at some moment without a stop that we saw."""
        state = self.state
        if state.kind == "working" and state.at_bound:
            self.state = state._replace(kind="stopped", cause="bound", detail=state.at_bound)
        elif state.kind == "working" and at - state.since >= SILENT_AFTER:
            self.state = state._replace(kind="lost", cause="silent")

    def _silent(self, at: Instant, text: str) -> None:
        """The hook saw that nothing had been heard since an instant although a turn was running."""
        heard = int(text) if text.isascii() and text.isdigit() else self.state.since
        if self.state.kind == "working":
            self._become(_State(since=min(max(heard, self.state.since), at), kind="lost", cause="silent"))
            self._become(_State(since=at, kind="working"))

    def _clock(self, at: Instant, text: str) -> None:
        """A step forward takes its length out of the state it fell into; the state goes on after it."""
        step = clock_step(text)
        if step >= STEP_MIN:
            state, began = self.state, max(self.state.since, at - step)
            self._become(_State(since=began, kind="clock", cause="clock_stepped"))
            self._become(state._replace(since=at))

    def _become(self, state: _State) -> None:
        """From `state.since` on it is so; never from before the present state began."""
        if state.since < self.state.since:
            state = state._replace(since=self.state.since)
        self._close(state.since)
        self.state = state

    def _close(self, at: Instant) -> None:
        """Writes the spans of the state that ends at `at`."""
        state = self.state
        begin = state.since if state.since > self.since else self.since
        end = at if at > self.since else self.since
        late = end
        if state.kind == "waiting" and state.latest is not None and end > state.latest + MISSED_LOOK_AFTER:
            late = max(begin, state.latest)
        self._add(begin, late, (state.kind, state.cause, state.detail, state.look, state.resets_at))
        if late < end:
            self._add(late, end, ("lost", "missed_look", "", state.look, None))

    def _add(self, since: Instant, until: Instant, what: _What) -> None:
        """Appends a stretch; the same state going on is one stretch."""
        if until <= since:
            return
        if self._told and self._told[-1][1:] == (since, *what):
            since = self._told.pop()[0]
        self._told.append((since, until, *what))

    def told(self) -> tuple[Span, ...]:
        """The stretches so far."""
        if not self._told:
            return ()
        columns = dict(zip(Span.fields, zip(*self._told, strict=True), strict=True))
        return tuple(Span.many(len(self._told), columns))


def clock_step(text: str) -> int:
    """The seconds by which a line says the wall clock was moved ("+10800 s"), 0 where it does not say."""
    step = text.partition(" ")[0]
    return int(step) if step[1:].isascii() and step[1:].isdigit() and step[0] in "+-" else 0


def _cause_of(error: str) -> str:
    return "limit" if limit_named(error) else "api_error"


def total(parts: Sequence[Span], kind: str) -> int:
    """Seconds of all spans of one kind."""
    return sum(span.seconds for span in parts if span.kind == kind)
