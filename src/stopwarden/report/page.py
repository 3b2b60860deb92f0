"""What stands on the page of an account: an `Account` in, words and numbers out, in the order of a morning.

The same facts and the same words as the account on the terminal (see `text`), but everything is
there: long lists are folded, never cut. Pure; the markup is in `page.html.j2`, which only lays out
these values. All text is plain here, with control characters taken out; escaping is the template's.
May not live here: any decision about what happened, markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden import __version__
from stopwarden.core.bounds import MINUTE
from stopwarden.core.record import Record
from stopwarden.report.lanes import KINDS, SHAPES, charts
from stopwarden.report.moments import length
from stopwarden.report.nights import nights
from stopwarden.report.phrases import CAUSES, ENDED, SPENT, Phrases, proof
from stopwarden.report.reading import LocalTimes, count, hours, plain, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.core.events import AwayPeriod, Zone
    from stopwarden.report.account import Account
    from stopwarden.report.lanes import Chart
    from stopwarden.report.nights import Night
    from stopwarden.report.stories import Story
    from stopwarden.store.port import Parked

NAME = 60  # characters of a session's name
WORTH_SAYING = 5 * MINUTE  # a shorter time lost, or stopped as at the beginning, is no headline
OPEN = 12  # a list of so many entries is shown, a longer one is folded
SIGNS = {"done": "✓", "doing": "◐", "open": "○", "parked": "‖", "removed": "×", "dropped": "×", "handed_back": "↩"}


class Figure(Record):
    """One headline figure."""

    kind: str
    value: str
    label: str
    notes: tuple[str, ...] = ()


class Need(Record):
    """Something the person should do, and the lane of the session it is about."""

    text: str
    anchor: str = ""


class Question(Record):
    """A question that waits for the person, and the command that answers it."""

    text: str
    anchor: str
    asked: str
    options: tuple[str, ...]
    chosen: str
    command: str


class Entry(Record):
    """One item and what became of it."""

    sign: str
    outcome: str
    title: str
    said: str
    moves: str = ""


class Group(Record):
    """Items of one list that came to alike ends; `open` unless there are many."""

    title: str
    entries: tuple[Entry, ...]
    open: bool


class WorkList(Record):
    """One list of work."""

    name: str
    result: str
    groups: tuple[Group, ...]


class Row(Record):
    """One line of a table: its cells."""

    cells: tuple[str, ...]


class Page(Record):
    """Everything that stands on the page, from top to bottom."""

    title: str
    times: str
    zone: str
    result: str
    state: str
    notes: tuple[str, ...]
    calm: bool  # nothing waits for the person and nothing went wrong
    heard: bool
    figures: tuple[Figure, ...]
    questions: tuple[Question, ...]
    first: tuple[Need, ...]
    aside: tuple[Entry, ...]
    look_at: tuple[str, ...]
    nights: tuple[Row, ...]
    charts: tuple[Chart, ...]
    kinds: tuple[tuple[str, str], ...]  # the legend of what is drawn: bars, then marks
    shapes: tuple[tuple[str, str], ...]
    lists: tuple[WorkList, ...]
    promised: tuple[str, ...]
    refused: tuple[str, ...]
    answered: tuple[str, ...]
    cost: tuple[str, ...]
    away: tuple[Row, ...]
    made: str
    version: str


def page(account: Account, zone: Zone) -> Page:
    """The page of an account, times local to `zone`."""
    return _Writer(account, zone).page()


class _Writer:
    """One account put into words; each method is one part of the page."""

    def __init__(self, account: Account, zone: Zone) -> None:
        self.account, self.zone = account, zone
        self.times = LocalTimes(zone, account.since, account.until, account.now)
        self.covered = [one for one in account.sessions if one.covered]
        self.say = Phrases(account, self.times, {one.id: plain(one.name, NAME) for one in account.sessions})
        self.nights = nights(account, zone)
        self.anchors: dict[str, str] = {}  # the newest lane of each session

    def page(self) -> Page:
        account, times = self.account, self.times
        end = f"now ({times.time_of_day(account.now)})" if account.running else times.day_clock(account.until)
        aside = [story for story in account.tonight if _for_you(story)]
        when = f"{times.day_clock(account.since)} – {end}"
        drawn = charts(account, self.nights, self.zone, times, self.say)
        self.anchors = {lane.session: lane.anchor for chart in drawn for lane in chart.lanes}
        first = tuple(
            Need(text=line, anchor=self.anchors.get(one.id, ""))
            for one in self.covered
            for line in self.say.needs_you(one)
        )
        used = {mark.shape for chart in drawn for lane in chart.lanes for mark in lane.marks}
        drawn_kinds = {bar.kind for chart in drawn for lane in chart.lanes for bar in lane.bars}
        look_at = tuple(self._look_at())
        return Page(
            title=f"{when} · Stopwarden",
            times=when,
            zone=self.zone.name,
            result=self._result(),
            state=self._state(),
            notes=tuple(self._notes()),
            calm=not (account.empty or account.open_questions or first or aside or look_at)
            and account.total("lost") < WORTH_SAYING,
            heard=not account.empty,
            figures=tuple(self._figures()),
            questions=tuple(self._question(parked) for parked in account.open_questions),
            first=first,
            aside=tuple(self._entry(story) for story in aside),
            look_at=look_at,
            nights=tuple(self._nights()),
            charts=drawn,
            kinds=tuple((kind, said) for kind, said in KINDS.items() if kind in drawn_kinds),
            shapes=tuple((shape, said) for shape, said in SHAPES.items() if shape in used),
            lists=tuple(self._lists()),
            promised=tuple(self.say.timed(one) for one in account.timed),
            refused=tuple(self._refused()),
            answered=tuple(self._answered()),
            cost=tuple(self._cost()),
            away=tuple(self._away(period) for period in account.periods),
            made=f"Made by Stopwarden {__version__}, {times.day_clock(account.now)}.",
            version=__version__,
        )

    # --- the head

    def _result(self) -> str:
        account = self.account
        if account.tonight:
            return f"{len(account.done):,} of {len(account.tonight):,} done"
        if account.unread:
            return "The list could not be read"
        return "Nothing was heard of any session" if account.empty else "No list"

    def _state(self) -> str:
        account = self.account
        if not account.running:
            period = account.periods[-1]
            why = ENDED.get(period.ended_why, period.ended_why) if len(account.periods) == 1 else ""
            early = period.until - account.until if period.until is not None else 0
            if not why:
                return "Over"
            return f"Over, {length(early)} early: {plain(why)}" if early > 0 else f"Over: {plain(why)}"
        return "Still running, until " + (
            self.times.day_clock(account.planned) if account.planned is not None else "you are back"
        )

    def _notes(self) -> Iterable[str]:
        if self.account.zone and self.account.zone != self.zone.name:
            yield f"It was recorded in {self.account.zone}; the times here are those of {self.zone.name}."
        yield from self.times.notes()

    def _figures(self) -> Iterable[Figure]:
        account = self.account
        if account.for_you:
            yield Figure(kind="you", value=f"{account.for_you:,}", label="for you")
        for kind, word in SPENT.items():
            seconds = account.total(kind)
            if seconds >= WORTH_SAYING or (kind in ("working", "waiting", "lost") and not account.empty):
                yield Figure(kind=kind, value=hours(seconds), label=word, notes=tuple(self._causes(kind)))

    def _causes(self, kind: str) -> Iterable[str]:
        """Why so much time was lost or stopped, the most first; of work, by how many."""
        if kind == "working" and len(self.covered) > 1:
            yield f"in {count(len(self.covered), 'session')}"
        seconds: dict[str, int] = {}
        for one in self.covered:
            for span in one.spans:
                if span.kind == kind and span.cause:
                    why = CAUSES.get(span.cause, "") if span.cause != "api_error" else self.say.why(span)
                    seconds[why or span.cause] = seconds.get(why or span.cause, 0) + span.seconds
        for why, spent in sorted(seconds.items(), key=lambda pair: -pair[1]):
            if spent >= MINUTE:
                yield f"{hours(spent)} {why}" if len(seconds) > 1 else why

    # --- what needs the person

    def _question(self, parked: Parked) -> Question:
        times = f", {parked.times} times" if parked.times > 1 else ""
        name = self.say.names.get(parked.session, "")
        return Question(
            text=plain(parked.text, 600),
            anchor=self.anchors.get(parked.session, ""),
            asked=f"asked {self.times.clock(parked.at)}{times}" + (f" by {name}" if len(self.covered) > 1 else ""),
            options=tuple(plain(option, 120) for option in parked.options),
            chosen=plain(parked.chosen, 300),
            command=f"stopwarden answer {parked.id} TEXT",
        )

    def _look_at(self) -> Iterable[str]:
        account = self.account
        still = {one.id for one in self.covered if one.now is not None and one.now.cause == "bound"}
        for bound in account.bounds:
            if bound.resumed_at is not None or bound.session not in still:
                yield self.say.let_stop(bound)
        for trouble in account.troubles:
            yield self.say.trouble(trouble)
        for stall in account.stalls:
            yield self.say.stalled(stall)
        for source in account.unread:
            yield f"{plain(source, 120)} could not be read at the end: what it holds is not known."

    # --- the time

    def _nights(self) -> Iterable[Row]:
        if len(self.nights) < 2:
            return
        kinds = ("working", "waiting", "lost", "stopped")

        def row(when: str, some: Sequence[Night]) -> Row:
            spent = [sum(getattr(one, kind) for one in some) for kind in kinds]
            counted = (sum(one.done for one in some), sum(one.blocks for one in some))
            return Row(cells=(when, f"{counted[0]:,}", *map(hours, spent), f"{counted[1]:,}"))

        for one in self.nights:
            yield row(f"{self.times.day_clock(one.since)} – {self.times.day_clock(one.until)}", (one,))
        yield row("in all", self.nights)

    # --- the work

    def _lists(self) -> Iterable[WorkList]:
        lists: dict[tuple[str, str], list[Story]] = {}
        for story in self.account.items:
            lists.setdefault((story.root, story.source), []).append(story)
        several = len({root for root, _ in lists}) > 1
        for (root, source), stories in lists.items():
            tonight = [story for story in stories if story.tonight]
            done = sorted((s for s in tonight if s.outcome == "done"), key=lambda s: (s.at is None, s.at or 0))
            left = [story for story in tonight if story.outcome != "done"]
            waited = [story for story in stories if story.outcome == "waits"]
            groups = [self._group("not done", left), self._group("done", done)]
            groups.append(self._group("waited for you or others before you left", waited))
            name = plain(source, 80) or "not on any list that was seen"
            if several and root:
                name = f"{name} in {plain(root, 100)}"
            kept = tuple(group for group in groups if group.entries)
            if kept:
                yield WorkList(name=name, result=f"{len(done):,} of {len(tonight):,} done", groups=kept)

    def _group(self, title: str, stories: Sequence[Story]) -> Group:
        return Group(
            title=f"{len(stories):,} {title}",
            entries=tuple(self._entry(story) for story in stories),
            open=len(stories) <= OPEN,
        )

    def _entry(self, story: Story) -> Entry:
        if story.outcome == "done":
            at_once = f", {story.at_once} at once after a block" if story.at_once else ""
            said = f"{self.say.when(story.at).strip()} {proof(story)}{at_once}".strip()
        elif _for_you(story):
            why = f": {plain(story.why, 300)}" if story.why and story.why != story.title else ""
            said = f"set aside for you by the agent{self.say.when(story.at)}{why}"
        elif story.outcome == "waits":
            said = plain(story.why, 300)
        else:
            said = self.say.not_done_why(story)
        moves = [f"{self.say.move(move, story)} {self.times.clock(move.at)}" for move in story.moves]
        return Entry(
            sign=SIGNS.get(story.outcome, "‖"),
            outcome=story.outcome,
            title=plain(story.title, 300),
            said=said,
            moves=" · ".join(moves) if len(moves) > 1 else "",
        )

    # --- the rest

    def _refused(self) -> Iterable[str]:
        for parked in self.account.refused:
            what = "" if parked.kind == "permission" else f"{parked.kind}: "
            times = f" ({parked.times} times)" if parked.times > 1 else ""
            yield f"{self.times.clock(parked.at)}  {what}{plain(parked.text, 300)}{times}"

    def _answered(self) -> Iterable[str]:
        for parked in self.account.questions:
            if parked.answered_at is not None:
                when = self.times.clock(parked.answered_at)
                yield f"{plain(parked.text, 300)}  answered {when}: {plain(parked.answer, 300)}"

    def _cost(self) -> Iterable[str]:
        sessions = self.account.sessions
        if self.account.empty:
            return
        looks = [look for one in sessions for look in one.looks]
        yield count(len(self.covered), "session")
        yield count(sum(one.turns for one in sessions), "turn")
        yield count(len(looks), "wake")
        for number, what in (
            (sum(len(one.missed_looks) for one in sessions), "missed"),
            (sum(look.outcome == "failed" for look in looks), "failed"),
            (sum(look.kept for look in looks), "by the keeper"),
        ):
            if number:
                yield f"{count(number, 'wake')} {what}"
        yield count(sum(one.blocks for one in sessions), "block")
        if used := sum(one.tokens for one in sessions):
            yield f"{tokens(used)} tokens"

    def _away(self, period: AwayPeriod) -> Row:
        whom = {"everywhere": "every checkout", "session": f"session {plain(period.session, 60)}"}.get(
            period.scope, plain(period.root, 200) or "this checkout"
        )
        over = period.ended_at if period.ended_at is not None else period.until
        if over is not None and over <= self.account.now:
            end, why = self.times.day_clock(over), ENDED.get(period.ended_why, period.ended_why) or "its time"
        else:
            end = f"until {self.times.day_clock(over)}" if over is not None else "until you are back"
            why = ""
        lists = ", ".join(plain(one.rpartition("/")[2], 60) for one in period.lists)
        terms = [f"list: {lists}"] if lists else []
        terms += ["until done"] if period.until_done else []
        terms += ["scripts, too"] if period.also_scripts else []
        return Row(
            cells=(
                self.times.day_clock(period.since),
                end,
                plain(why, 60),
                whom,
                "; ".join(terms),
                plain(period.id, 40),
            )
        )


def _for_you(story: Story) -> bool:
    return story.outcome == "parked" and story.waits_on in ("", "person")
