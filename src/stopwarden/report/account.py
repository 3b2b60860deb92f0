"""The account of a night: one value from which text, JSON and the page are drawn.

`account` is pure: rows of the store in, an `Account` out; no clock but the `now` it is given. It
covers one away period, or several: a person who came back for an hour, the nights of a week, several
checkouts at once. Where periods overlap or touch, a session's time in them is told once, as one.
Whatever the record does not hold is said as a `Trouble`, never filled in. Instants are seconds UTC.
May not live here: reading a database, local time, wording.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

from stopwarden.core.record import Record
from stopwarden.report import holes, stories, timeline
from stopwarden.report.heard import Heard, end_of
from stopwarden.report.reading import short_ids
from stopwarden.report.values import plain_values
from stopwarden.store.port import Parked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from stopwarden.core.events import AwayPeriod, Instant
    from stopwarden.report.judged import Bare, Judged
    from stopwarden.report.nights import Night
    from stopwarden.report.stories import Story
    from stopwarden.report.timeline import Look, Span
    from stopwarden.store.port import RecordLine, SessionRow, VerdictRow
    from stopwarden.work.promises import Timed

# Lines that say something went wrong, with us, the record or the machine, or that limit what was guarded.
_KINDS = ("working", "waiting", "lost", "stopped", "finished", "unknown")
_REFUSED = {"refused_permission": "permission", "refused_plan": "plan"}
_TROUBLES = (
    "fault",
    "store_damaged",
    "payload_damaged",
    "clock_stepped",
    "not_covered",
    "relocated",
    "checkout_gone",
    "switched",
)


class Trouble(Record):
    """Something that limits what the account can say, or that the person should act on."""

    at: Instant
    kind: str  # one of the record's kinds, or "record_gap", "forgotten", "verdict_unreadable"
    text: str = ""
    session: str = ""
    times: int = 1


class BoundReached(Record):
    """A row of blocks reached a bound: the session was let stop."""

    at: Instant
    session: str
    bound: str
    owed: bool  # work was owed then; else only a next look was missing
    resumed_at: Instant | None = None


class Failure(Record):
    """A turn that ended in an error of the provider, and when the session went on."""

    at: Instant
    session: str
    error: str
    limit: bool = False
    resumed_at: Instant | None = None


class StallTold(Record):
    """A session that did not go on, or a promise that was not kept, as a watch or a stop recorded it."""

    at: Instant
    kind: str  # as in `report.stalls`: "missed_look", "silent", "lost_hold", "empty_promise", …
    session: str
    since: Instant  # when it began
    detail: str = ""  # work text, or an error's name
    resumed_at: Instant | None = None  # when the watch's command was run for it


class SessionAccount(Record):
    """One session's night. `name` is its title, else a short id; the spans cover the period without a gap."""

    id: str
    name: str
    spans: tuple[Span, ...] = ()
    looks: tuple[Look, ...] = ()
    missed_looks: tuple[Instant, ...] = ()  # the looks that did not come
    root: str = ""  # its checkout
    turns: int = 0
    blocks: int = 0
    blocked_at: tuple[Instant, ...] = ()
    verdicts: int = 0
    tokens: int = 0
    covered: bool = True
    heard_at: Instant = 0  # when it was last heard of, after the period too

    def seconds(self, kind: str) -> int:
        """How long it was "working", "waiting", "lost", "stopped", "finished", or "unknown"."""
        return timeline.total(self.spans, kind)

    @property
    def now(self) -> Span | None:
        """The last span: what the session was doing at the end."""
        return self.spans[-1] if self.spans else None


class Account(Record):
    """Everything that is said of one night."""

    periods: tuple[AwayPeriod, ...]
    now: Instant
    since: Instant
    until: Instant  # the end of the account: the period's end, or now while it is running
    running: bool
    zone: str  # as the period recorded it
    sessions: tuple[SessionAccount, ...] = ()
    items: tuple[Story, ...] = ()
    unread: tuple[str, ...] = ()  # lists that could not be read at the end: what they held is not known
    questions: tuple[Parked, ...] = ()
    refused: tuple[Parked, ...] = ()  # permission prompts and plans, which need no answer
    bounds: tuple[BoundReached, ...] = ()
    failures: tuple[Failure, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    stalls: tuple[StallTold, ...] = ()
    timed: tuple[Timed, ...] = ()  # looks and promises of the lists, as they stand now
    finished: bool = False  # the list came to its end, and with --until-done so did the period

    @property
    def empty(self) -> bool:
        """Nothing was heard of any session."""
        return not any(one.turns or one.verdicts for one in self.sessions) and not self.items

    @property
    def planned(self) -> Instant | None:
        """When the last of the periods that still run is to end; None without an end, or where none runs."""
        ends = [period.until for period in self.periods if period.ended_at is None]
        return max((end for end in ends if end is not None), default=None) if None not in ends else None

    @property
    def tonight(self) -> tuple[Story, ...]:
        """The items that were work of this night."""
        return tuple(story for story in self.items if story.tonight)

    @property
    def done(self) -> tuple[Story, ...]:
        """Those of tonight that were done, in the order they were done."""
        return tuple(sorted((s for s in self.tonight if s.outcome == "done"), key=lambda s: (s.at is None, s.at or 0)))

    @property
    def open_questions(self) -> tuple[Parked, ...]:
        """Questions nobody has answered yet."""
        return tuple(parked for parked in self.questions if parked.answered_at is None)

    @property
    def for_you(self) -> int:
        """How many things wait for the person: open questions, and items that the agent set aside for them."""
        parked = sum(story.outcome == "parked" and story.waits_on in ("", "person") for story in self.tonight)
        return len(self.open_questions) + parked

    def total(self, kind: str) -> int:
        """Seconds of one kind of span over all covered sessions."""
        return sum(one.seconds(kind) for one in self.sessions if one.covered)


def account(
    periods: Sequence[AwayPeriod],
    *,
    now: Instant,
    lines: Iterable[RecordLine] = (),
    verdicts: Iterable[VerdictRow | Bare] = (),
    sessions: Iterable[SessionRow] = (),
    parked: Iterable[Parked] = (),
    snapshot: Callable[[str], str] = lambda digest: "",
    since: Instant | None = None,
    timed: Iterable[Timed] = (),
) -> Account:
    """The account of these away periods, oldest first, at least one. With `since`, only from then on.

    `lines` may hold lines of other periods; they are only used to see whether the record is whole.
    """
    begin = max(min(period.since for period in periods), since or 0)
    end = min(max(end_of(period, now) for period in periods), now)
    all_lines = sorted(lines, key=lambda line: line.seq)
    known = {row.id: row for row in sessions}
    night = Heard(periods, all_lines, verdicts, now)
    own = [line for line in night.lines if line.at >= begin]
    stops = [one for one in night.judged if one.at >= begin]
    roots = {one.id: one.root for one in known.values()}
    items, unread = stories.stories(night.told(), roots, snapshot, begin)
    asked = [one for one in parked if one.period in night.ids and one.at >= begin]
    heard = dict.fromkeys([*(line.session for line in own), *(one.session for one in stops)])
    heard.pop("", None)
    names = _names(heard, known)
    known_from = _known_from(own, stops, begin)
    return Account(
        periods=tuple(periods),
        now=now,
        since=begin,
        until=max(begin, end),
        running=any(period.ended_at is None and (period.until is None or now < period.until) for period in periods),
        zone=periods[0].zone,
        sessions=tuple(_session(one, names[one], night, begin, known.get(one), known_from) for one in heard),
        items=items,
        unread=unread,
        questions=tuple(one for one in asked if one.kind == "question"),
        refused=tuple(one for one in asked if one.kind != "question") or _refused_lines(own),
        bounds=_bounds(own),
        failures=_failures(own, stops),
        troubles=_troubles(own, all_lines, stops, begin if since is None else since, max(begin, end)),
        stalls=_stalls(own),
        timed=tuple(timed),
        finished=any(period.ended_why == "done" for period in periods) or any(one.kind == "done" for one in stops),
    )


def _names(ids: Iterable[str], known: dict[str, SessionRow]) -> dict[str, str]:
    """A name for each session: its title, with its short id where others have that title, or the short id alone."""
    short = short_ids(ids)
    titles = {one: known[one].title if one in known else "" for one in short}
    taken = Counter(titles.values())
    return {
        one: short[one] if not title else title if taken[title] == 1 else f"{title} {short[one]}"
        for one, title in titles.items()
    }


def _session(
    session: str, name: str, night: Heard, begin: Instant, row: SessionRow | None, known_from: Instant
) -> SessionAccount:
    mine = [line for line in night.lines_of[session] if line.at >= begin]
    stops = [one for one in night.judged_of[session] if one.at >= begin]
    spans: list[Span] = []
    for since, until in night.times(session, begin):
        if since < known_from < until:
            spans.append(timeline.Span(since=since, until=known_from, kind="unknown"))
            since = known_from
        told = [line for line in mine if since <= line.at <= until]
        judged_then = [one for one in stops if since <= one.at <= until]
        spans += timeline.spans(told, judged_then, since, until, row)
    looks = timeline.looks(mine, stops, session)
    missed = [span.look for span in spans if span.cause == "missed_look" and span.look is not None]
    prompts = sum(line.kind == "prompt" for line in mine)
    at_work_before = bool(spans) and spans[0].kind == "working" and spans[0].since == begin
    used = [one.tokens for one in stops if one.tokens]
    return SessionAccount(
        id=session,
        name=name,
        spans=tuple(spans),
        looks=looks,
        missed_looks=tuple(dict.fromkeys([*missed, *_looks_said_missed(mine)])),
        root=row.root if row is not None else "",
        turns=max(prompts, len(looks)) + at_work_before,
        blocks=sum(one.block for one in stops),
        blocked_at=tuple(one.at for one in stops if one.block),
        verdicts=len(stops),
        tokens=max(used) - (min(used) if len(used) > 1 else 0) if used else 0,
        heard_at=row.last_event_at if row is not None else 0,
        covered=bool(stops) or any(line.kind != "not_covered" for line in mine),
    )


def _known_from(lines: Sequence[RecordLine], judged: Sequence[Judged], begin: Instant) -> Instant:
    """From when on the record tells of sessions: where a database was lost, not before that."""
    lost = max((line.at for line in lines if line.kind == "store_damaged"), default=begin)
    if lost == begin:
        return begin
    told = [line.at for line in lines if line.session] + [one.at for one in judged]
    return lost if all(at >= lost for at in told) else begin


def _looks_said_missed(lines: Iterable[RecordLine]) -> list[Instant]:
    return [
        int(line.text) for line in lines if line.kind == "missed_look" and line.text.isascii() and line.text.isdigit()
    ]


def _refused_lines(lines: Iterable[RecordLine]) -> tuple[Parked, ...]:
    """Refused permission prompts and plans where only the record's lines are left of them."""
    return tuple(
        Parked(
            at=line.at, session=line.session, period=line.period, kind=_REFUSED[line.kind], digest="", text=line.text
        )
        for line in lines
        if line.kind in _REFUSED
    )


def _bounds(lines: Sequence[RecordLine]) -> tuple[BoundReached, ...]:
    """Each bound reached, with when the session went on after it."""
    found: list[BoundReached] = []
    last: dict[str, int] = {}  # by session, the place of its last
    for line in lines:
        if line.kind in ("stopped_with_work_owed", "stopped_without_next_look"):
            owed = line.kind == "stopped_with_work_owed"
            last[line.session] = len(found)
            found.append(BoundReached(at=line.at, session=line.session, bound=line.text, owed=owed))
        elif line.kind == "resumed" and line.session in last:
            place = last[line.session]
            if found[place].resumed_at is None:
                found[place] = found[place].replace(resumed_at=line.at)
    return tuple(found)


def _failures(lines: Sequence[RecordLine], judged: Sequence[Judged]) -> tuple[Failure, ...]:
    """Each error of the provider; errors in a row of one session that nothing came between are one."""
    failed = {line.session for line in lines if line.kind == "error"}
    resumed_at: dict[str, list[Instant]] = {session: [] for session in failed}
    for line in lines:
        if line.kind == "api_resumed" and line.session in failed:
            resumed_at[line.session].append(line.at)
    for one in judged if failed else ():
        if one.session in failed:
            resumed_at[one.session].append(one.at)
    for times in resumed_at.values():
        times.sort()
    found: list[Failure] = []
    for line in lines:
        if line.kind != "error":
            continue
        times = resumed_at[line.session]
        later = bisect_left(times, line.at)
        resumed = times[later] if later < len(times) else None
        if found and found[-1].session == line.session and found[-1].resumed_at == resumed:
            continue
        limit = timeline.limit_named(line.text)
        found.append(Failure(at=line.at, session=line.session, error=line.text, limit=limit, resumed_at=resumed))
    return tuple(found)


def _stalls(lines: Sequence[RecordLine]) -> tuple[StallTold, ...]:
    """Each stall as it was recorded, with when its session was resumed by the watch."""
    resumed = {(line.session, line.text): line.at for line in reversed(lines) if line.kind == "watch_resumed"}
    found = []
    for line in lines:
        kind, _, rest = line.text.partition("; ")
        since, _, detail = rest.partition("; ")
        if line.kind != "stall" or not (since.isascii() and since.isdigit()):
            continue
        at = resumed.get((line.session, f"{kind}; {since}"))
        made = StallTold(at=line.at, kind=kind, session=line.session, since=int(since), detail=detail)
        found.append(made.replace(resumed_at=at))
    return tuple(found)


def _troubles(
    lines: Sequence[RecordLine], all_lines: Sequence[RecordLine], judged: Sequence[Judged], begin: Instant, end: Instant
) -> tuple[Trouble, ...]:
    """What went wrong with us, the record or the machine; the same again is counted, not repeated."""
    found: dict[tuple[str, str, str], Trouble] = {}
    told = [
        Trouble(at=line.at, kind=line.kind, text=line.text, session=line.session)
        for line in lines
        if line.kind in _TROUBLES
    ]
    told += [
        Trouble(at=one.at, kind="verdict_unreadable", text=str(one.id), session=one.session)
        for one in judged
        if not one.readable
    ]
    told += [
        Trouble(at=one.since, kind="record_gap", text=str(one.until), times=one.lines) for one in holes.lost(all_lines)
    ]
    told += [
        Trouble(at=one.since or begin, kind="forgotten", text=str(one.until or end), times=one.verdicts + one.lines)
        for one in holes.forgotten_between(all_lines, begin, end)
    ]
    for trouble in told:
        key = (trouble.kind, trouble.session, trouble.text)
        known = found.get(key)
        found[key] = known.replace(times=known.times + 1) if known else trouble
    return tuple(sorted(found.values(), key=lambda trouble: trouble.at))


# --- as JSON ------------------------------------------------------------------------------------


def as_json(given: Account, nights: Sequence[Night] = ()) -> dict[str, Any]:
    """The account as plain values for JSON: instants as ISO 8601 in UTC, lengths in seconds."""
    whole: dict[str, Any] = {"v": 1, **plain_values(given, ""), "nights": plain_values(tuple(nights), "")}
    whole["counts"] = {
        "done": len(given.done),
        "of": len(given.tonight),
        "for_you": given.for_you,
        "turns": sum(one.turns for one in given.sessions),
        "looks": sum(len(one.looks) for one in given.sessions),
        "missed_looks": sum(len(one.missed_looks) for one in given.sessions),
        "blocks": sum(one.blocks for one in given.sessions),
        "refused": sum(one.times for one in given.refused),
        "tokens": sum(one.tokens for one in given.sessions),
        "seconds": {kind: given.total(kind) for kind in _KINDS},
    }
    return whole
