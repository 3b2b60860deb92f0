"""Where each stretch of time and each mark stands on the page: one chart a night, one lane a session.

Theory of operation. A chart is a time axis from the beginning of a night to its end; places on it are
per cent of its width, so the page needs no measuring. A stretch of time is a bar whose height and
pattern say what it was, without any colour; what happened at an instant is a mark of its own shape.
What would be too narrow to see is drawn together with its neighbours and says so. Lanes that need
the person come first. Pure; may not live here: words for causes (see `phrases`), markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core.bounds import DAY, HOUR, MINUTE
from stopwarden.core.record import Record
from stopwarden.report.nights import within
from stopwarden.report.phrases import SPENT
from stopwarden.report.reading import count, hours, plain, whole_minutes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.core.events import Instant, Zone
    from stopwarden.report.account import Account, SessionAccount
    from stopwarden.report.nights import Night
    from stopwarden.report.phrases import Phrases
    from stopwarden.report.reading import LocalTimes
    from stopwarden.report.timeline import Span
    from stopwarden.store.port import Parked

STEPS = (15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY)
TICKS = 9  # at most so many on an axis
NARROWEST = 600  # parts of the axis: a narrower stretch is drawn with its neighbours
APART = 150  # parts of the axis: marks of one shape that are nearer are one
MANY = 12  # from so many lanes on they are lower
CROWDED = 3_000  # from so many stretches on, work and waits are drawn without a text of their own
LOST_ENOUGH = 5 * MINUTE  # so much lost time puts a session before the others


class Bar(Record):
    """A stretch of time, from `x` on, `width` wide, in per cent of the axis. `tip` says what it was."""

    kind: str  # as of a span: "working", "waiting", …
    x: str
    width: str
    tip: str = ""


class Mark(Record):
    """Something that happened at one instant. `shape` is one of `SHAPES`."""

    shape: str
    x: str
    tip: str


class Lane(Record):
    """One session in one night. `told` is the same in words, for whoever cannot see it."""

    name: str
    session: str = ""
    anchor: str = ""  # by which the page links to it
    where: str = ""  # its checkout, where there are several
    spent: str = ""
    needs: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    marks: tuple[Mark, ...] = ()
    told: tuple[str, ...] = ()
    left_out: int = 0  # stretches of work and waits that `told` leaves out


class Tick(Record):
    """A labelled place on the axis; every other one is `minor`, and left out where it is narrow."""

    x: str
    label: str
    minor: bool = False


class Chart(Record):
    """One night: its axis and its lanes."""

    title: str
    ticks: tuple[Tick, ...]
    lanes: tuple[Lane, ...]
    low: bool = False  # many lanes: each is lower
    attention: int = 0  # so many of them, the first, need a look


# What the bars and the marks mean, in the order of the legend.
KINDS = {
    "working": "working",
    "waiting": "waiting for a wake",
    "lost": "lost",
    "stopped": "stopped",
    "finished": "nothing left",
    "unknown": "not recorded",
    "clock": "the clock was set",
}
SHAPES = {
    "look": "a wake came",
    "kept": "the keeper woke it",
    "failed": "a wake came, its turn failed",
    "missed": "a wake did not come",
    "block": "a stop was blocked",
    "bound": "a bound: let stop",
    "error": "error of the provider",
    "question": "a question was kept for you",
}


def charts(account: Account, nights: Sequence[Night], zone: Zone, times: LocalTimes, say: Phrases) -> tuple[Chart, ...]:
    """One chart for each night in which a session was heard of."""
    covered = [one for one in account.sessions if one.covered and one.spans]
    crowded = sum(len(one.spans) for one in covered) > CROWDED
    several = len({one.root for one in covered}) > 1
    found: list[Chart] = []
    for night in nights:
        last = night.until == account.until
        drawn = []
        for one in covered:
            spans = within(one.spans, night.since, night.until)
            if spans:
                axis = _Axis(night.since, night.until)
                asked = [parked for parked in account.open_questions if parked.session == one.id]
                needs = [*say.needs_you(one), *map(_asks, asked)] if last else []
                lane = _lane(account, one, spans, axis, say, crowded).replace(needs=tuple(needs))
                if several and one.root:
                    lane = lane.replace(where=plain(one.root.rstrip("/").rpartition("/")[2], 40))
                drawn.append((_order(one, spans, needs, axis, account), lane))
        drawn.sort(key=lambda pair: pair[0])
        if drawn:
            found.append(
                Chart(
                    title=f"{times.day_clock(night.since)} – {times.day_clock(night.until)}",
                    ticks=_ticks(night.since, night.until, zone, times),
                    lanes=tuple(
                        lane.replace(anchor=f"night-{len(found) + 1}-lane-{number}")
                        for number, (_, lane) in enumerate(drawn, 1)
                    ),
                    low=len(drawn) > MANY,
                    attention=sum(order < _AT_EASE for order, _ in drawn),
                )
            )
    return tuple(found)


def _asks(parked: Parked) -> str:
    return f'It asks: "{plain(parked.text, 120)}"  stopwarden answer {parked.id} TEXT'


class _Axis:
    """A night's time as per cent of its width."""

    def __init__(self, since: Instant, until: Instant) -> None:
        self.since, self.until, self.length = since, until, max(1, until - since)

    def x(self, at: Instant) -> str:
        return self.share(at - self.since)

    def share(self, seconds: int) -> str:
        return f"{100 * seconds / self.length:.2f}".rstrip("0").rstrip(".")

    def has(self, at: Instant) -> bool:
        return self.since <= at <= self.until


_AT_EASE = (2, 0)


def _order(
    one: SessionAccount, spans: Sequence[Span], needs: Sequence[str], axis: _Axis, account: Account
) -> tuple[int, int]:
    """First what needs the person, then what lost time, the most first, then the rest as they were heard of."""
    lost = sum(span.seconds for span in spans if span.kind == "lost")
    bound = any(mark.session == one.id and axis.has(mark.at) for mark in account.bounds)
    missed = any(axis.has(at) for at in one.missed_looks)
    if needs:
        return (0, -lost)
    return (1, -lost) if lost >= LOST_ENOUGH or bound or missed else _AT_EASE


def _lane(
    account: Account, one: SessionAccount, spans: Sequence[Span], axis: _Axis, say: Phrases, crowded: bool
) -> Lane:
    marks = [*_marks(account, one, axis, say)]
    at_work = ("working", "waiting")
    told = [(span.since, say.stretch(span)) for span in spans if not crowded or span.kind not in at_work]
    if not crowded:
        told += [(look.at, say.look(look)) for look in one.looks if axis.has(look.at)]
    told += [(at, tip) for shape, at, tip in marks if shape in ("missed", "bound", "error", "question")]
    return Lane(
        name=say.names[one.id],
        session=one.id,
        spent=_spent(spans),
        bars=tuple(_bars(spans, axis, say, crowded)),
        marks=tuple(_apart(marks, axis, say)),
        told=tuple(text for _, text in sorted(told, key=lambda pair: pair[0])),
        left_out=sum(span.kind in at_work for span in spans) if crowded else 0,
    )


def _spent(spans: Iterable[Span]) -> str:
    """ "worked 4 h 10 · waited 3 h 20 · lost 0 h 55"."""
    seconds = dict.fromkeys(SPENT, 0)
    for span in spans:
        if span.kind in seconds:
            seconds[span.kind] += span.seconds
    rounded = whole_minutes(list(seconds.values()))
    parts = [f"{word} {hours(spent)}" for word, spent in zip(SPENT.values(), rounded, strict=True) if spent]
    return " · ".join(parts) or "no time at all"


def _bars(spans: Sequence[Span], axis: _Axis, say: Phrases, crowded: bool) -> Iterable[Bar]:
    """The stretches as bars; neighbours that would be too narrow to see become one of their most frequent kind."""
    narrow = axis.length // NARROWEST
    together: list[Span] = []
    for span in (*spans, None):
        if together and (span is None or span.seconds >= narrow or together[-1].until - together[0].since >= narrow):
            yield _bar_of(together, axis, say, crowded)
            together = []
        if span is None:
            return
        if span.seconds >= narrow:
            yield _bar_of([span], axis, say, crowded)
        else:
            together.append(span)


def _bar_of(spans: Sequence[Span], axis: _Axis, say: Phrases, crowded: bool) -> Bar:
    since, until = spans[0].since, spans[-1].until
    seconds: dict[str, int] = {}
    for span in spans:
        seconds[span.kind] = seconds.get(span.kind, 0) + span.seconds
    kind = max(seconds, key=lambda one: seconds[one])
    if len(spans) == 1:
        tip = "" if crowded and kind in ("working", "waiting") else say.stretch(spans[0])
    else:
        tip = f"{say.times.span(since, until)}  {count(len(spans), 'short stretch', 'short stretches')}, mostly {kind}"
    return Bar(kind=kind, x=axis.x(since), width=axis.share(until - since), tip=tip)


def _marks(account: Account, one: SessionAccount, axis: _Axis, say: Phrases) -> Iterable[tuple[str, Instant, str]]:
    """Everything that happened at an instant: its shape, when, and in words."""
    clock = say.times.clock
    for at in one.blocked_at:
        yield "block", at, f"{clock(at)}  a stop was blocked"
    for look in one.looks:
        shape = "failed" if look.outcome == "failed" else "kept" if look.kept else "look"
        yield shape, look.at, say.look(look)
    for at in one.missed_looks:
        yield "missed", at, f"{clock(at)}  the look did not come"
    for bound in account.bounds:
        if bound.session == one.id:
            yield "bound", bound.at, say.let_stop(bound)
    for failure in account.failures:
        if failure.session == one.id:
            yield "error", failure.at, f"{clock(failure.at)}  {say.failed(failure)}"
    for parked in account.questions:
        if parked.session == one.id:
            yield "question", parked.at, f"{clock(parked.at)}  asked: {plain(parked.text, 80)}"


def _apart(marks: Iterable[tuple[str, Instant, str]], axis: _Axis, say: Phrases) -> Iterable[Mark]:
    """The marks on this axis; those of one shape that would stand on each other are one."""
    near = axis.length // APART
    groups: list[tuple[str, list[Instant], str]] = []
    for shape, at, tip in sorted((mark for mark in marks if axis.has(mark[1])), key=lambda mark: (mark[0], mark[1])):
        if groups and groups[-1][0] == shape and at - groups[-1][1][0] < near:
            groups[-1][1].append(at)
        else:
            groups.append((shape, [at], tip))
    for shape, at_once, tip in groups:
        if len(at_once) > 1:
            tip = f"{say.times.span(at_once[0], at_once[-1])}  {len(at_once)} times: {SHAPES[shape]}"
        yield Mark(shape=shape, x=axis.x(at_once[0]), tip=tip)


def _ticks(since: Instant, until: Instant, zone: Zone, times: LocalTimes) -> tuple[Tick, ...]:
    """Whole local hours along the axis; at midnight the day is named."""
    step = next((step for step in STEPS if (until - since) / step <= TICKS), DAY)
    axis = _Axis(since, until)
    found = []
    at = since + -since % STEPS[0]
    while at <= until:
        local = at + zone.offset(at)
        if local % step == 0:
            label = times.day(at) if local % DAY == 0 else times.time_of_day(at)
            found.append(Tick(x=axis.x(at), label=label, minor=local // step % 2 == 1))
        at += STEPS[0]
    return tuple(found)
