"""The account of a night on one terminal screen; with `verbose`, everything on as many as it takes.

The order is that of a morning: what needs the person, what went wrong with us or the record, what
was done, what was not and why, where the time went, what was refused, what it took. A section with
nothing to say is left out; a night in which nothing is wrong says so in one line. Colour only
helps: the words stand without it. Pure: an `Account` and a zone in, text out.
May not live here: any decision about what happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core.bounds import DAY, MINUTE
from stopwarden.report.moments import length
from stopwarden.report.nights import nights
from stopwarden.report.phrases import ENDED, SPENT, Phrases, proof
from stopwarden.report.reading import LocalTimes, count, cut, hours, padded, plain, tokens, whole_minutes, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeVar

    from stopwarden.core.events import Instant, Zone
    from stopwarden.report.account import Account, SessionAccount
    from stopwarden.report.nights import Night

    Entry = TypeVar("Entry")

LABEL = 11  # columns of the section's name
SHOWN = 5  # entries of a section on the one screen
WORTH_A_CAUSE = 5 * MINUTE  # shorter stops, as at the beginning, need no explanation
TITLE = 44  # columns of an item's title


def render(account: Account, zone: Zone, *, verbose: bool = False, columns: int = 80, color: bool = False) -> str:
    """The account as text of at most `columns` columns a line, times local to `zone`."""
    return _Page(account, zone, verbose, max(50, columns), color).text()


class _Page:
    """One account laid out; each method is one section."""

    def __init__(self, account: Account, zone: Zone, verbose: bool, columns: int, color: bool) -> None:
        self.account, self.zone, self.verbose, self.columns, self.color = account, zone, verbose, columns, color
        self.times = LocalTimes(zone, account.since, account.until, account.now)
        self.covered = [one for one in account.sessions if one.covered]
        self.names = {one.id: plain(one.name, 30) for one in account.sessions}
        self.say = Phrases(account, self.times, self.names)
        self.lines: list[str] = []

    def text(self) -> str:
        """The whole page."""
        self._head()
        if self.account.empty:
            self._nothing_heard()
        else:
            self._do_first()
        self._look_at()
        self.lines.append("")
        self._nights()
        self._done()
        self._not_done()
        self._time()
        self._refused()
        self._stalled()
        self._promised()
        self._cost()
        if self.verbose:
            self._sessions()
            self._stories()
        return "\n".join(line.rstrip() for line in self.lines).replace("\n\n\n", "\n\n").rstrip("\n") + "\n"

    # --- the sections

    def _head(self) -> None:
        account, times = self.account, self.times
        begin = times.day_clock(account.since)
        if account.running:
            until = account.planned
            end = f"now ({times.time_of_day(account.now)})"
            planned = f", until {times.day_clock(until)}" if until is not None else ", until you are back"
        else:
            end, planned = times.day_clock(account.until), ""
        result = self._result()
        head = f"{begin} - {end}{planned}   {self.zone.name}"
        wide = width(head) + 3 + width(result) <= self.columns
        self.lines.append(self._bold(f"{head}   {result}" if wide else head))
        if not wide:
            self.lines.append(self._bold(result))
        why = ENDED.get(account.periods[-1].ended_why, account.periods[-1].ended_why)
        planned_end = account.periods[-1].until
        if why and not account.running and len(account.periods) == 1:
            early = planned_end is not None and planned_end - account.until
            self._sentence(f"It ended {length(early)} early: {why}." if early and early > 0 else f"It ended: {why}.")
        if account.zone and account.zone != self.zone.name:
            self._sentence(f"It was recorded in {account.zone}; the times here are those of {self.zone.name}.")
        for note in times.notes():
            self._sentence(note)

    def _result(self) -> str:
        account = self.account
        parts = []
        if account.tonight:
            parts.append(f"{len(account.done)} of {len(account.tonight)} done")
        elif account.unread:
            parts.append("the list could not be read")
        elif not account.empty:
            parts.append("no list")
        if account.for_you:
            parts.append(f"{account.for_you} for you")
        return " · ".join(parts)

    def _nothing_heard(self) -> None:
        so_far = " yet" if self.account.running else ""
        self.lines.append("")
        if any(one.kind == "forgotten" for one in self.account.troubles):
            self._section("NOTHING", ["Nothing of any session is recorded any more."])
            return
        self._section("NOTHING", [f"No session was heard of{so_far}. Is its hook running? stopwarden doctor"])

    def _do_first(self) -> None:
        entries = [line for parked in self._few(self.account.open_questions, 3) for line in self.say.question(parked)]
        left = len(self.account.open_questions) - 3
        if left > 0 and not self.verbose:
            entries.append(f"{count(left, 'more question')}: stopwarden parked")
        aside = [s for s in self.account.tonight if s.outcome == "parked" and s.waits_on in ("", "person")]
        for story in self._few(aside, 3):
            why = f": {plain(story.why, 100)}" if story.why and story.why != story.title else ""
            entries.append(f'"{plain(story.title, 60)}"  set aside for you by the agent{self.say.when(story.at)}{why}')
        if len(aside) > 3 and not self.verbose:
            entries.append(f"{len(aside) - 3} more set aside for you: stopwarden report --verbose")
        entries += [line for one in self.covered for line in self.say.needs_you(one)]
        wrong = self.account.troubles or self.account.bounds or self.account.stalls
        if not entries and not wrong:
            if self.account.total("lost") < WORTH_A_CAUSE:
                self._sentence("Nothing waits for you, and nothing went wrong.")
            else:
                self._sentence("Nothing waits for you. Time was lost, though: see below.")
            return
        self.lines.append("")
        self._section("DO FIRST", entries)

    def _look_at(self) -> None:
        still = {one.id for one in self.covered if one.now is not None and one.now.cause == "bound"}  # said above
        passed = [bound for bound in self.account.bounds if bound.resumed_at is not None or bound.session not in still]
        entries = [self.say.let_stop(bound) for bound in self._few(passed, 3)]
        entries += [self.say.trouble(one) for one in self._few(self.account.troubles)]
        entries += [
            f"{source} could not be read at the end: what it holds is not known." for source in self.account.unread
        ]
        if len(self.account.troubles) > SHOWN and not self.verbose:
            entries.append(f"{len(self.account.troubles) - SHOWN} more: stopwarden report --verbose")
        self._section("LOOK AT", entries)

    def _nights(self) -> None:
        told = nights(self.account, self.zone)
        if len(told) < 2:
            return
        rows: list[tuple[str, ...]] = [("", "done", "worked", "waited", "lost", "stopped")]
        for when, some in [*((night_times(one, self.times), (one,)) for one in told), ("in all", told)]:
            spent = [sum(getattr(one, kind) for one in some) for kind in ("working", "waiting", "lost", "stopped")]
            rows.append((when, f"{sum(one.done for one in some):,}", *map(hours, spent)))
        widths = [max(width(row[place]) for row in rows) for place in range(len(rows[0]))]
        self._section(
            "NIGHTS",
            [
                padded(row[0], widths[0])
                + "".join(f"  {part:>{columns}}" for part, columns in zip(row[1:], widths[1:], strict=True))
                for row in rows
            ],
        )
        self.lines.append("")

    def _done(self) -> None:
        done = self.account.done
        at_once = [s for s in done if s.at_once and not s.verified]
        single = [s for s in done if s not in at_once]
        proven = [s for s in single if s.verified]
        all_fit = len(single) <= SHOWN or self.verbose
        shown = self._few(single if all_fit else proven or single, SHOWN if all_fit else SHOWN - 1)
        entries = self._table([(plain(s.title), self._clock(s.at), proof(s)) for s in shown])
        left = len(single) - len(shown)
        if left:
            entries.append(
                f"{left} more ticked" + ("" if any(s.verified for s in single if s not in shown) else ", not verified")
            )
        for at in dict.fromkeys(s.at for s in at_once):
            together = [plain(s.title, 30) for s in at_once if s.at == at]
            names = ", ".join(together if self.verbose else together[:3]) + (
                ", …" if len(together) > 3 and not self.verbose else ""
            )
            entries.append(f"{len(together)} ticked at once {self._clock(at)}, after a block, not verified: {names}")
        self._section("DONE", entries)

    def _not_done(self) -> None:
        left = [
            s
            for s in self.account.tonight
            if s.outcome != "done" and not (s.outcome == "parked" and s.waits_on in ("", "person"))
        ]
        shown = self._few(left)
        entries = self._table([(plain(s.title), "", self.say.not_done_why(s)) for s in shown])
        if len(left) > len(shown):
            entries.append(f"{len(left) - len(shown)} more not done: stopwarden list")
        waited = sum(s.outcome == "waits" for s in self.account.items)
        if waited:
            entries.append(f"{count(waited, 'item')} waited for you or others before you left.")
        self._section("NOT DONE", entries)

    def _time(self) -> None:
        many = len(self.covered) > 1
        name_columns = max((width(self.names[one.id]) for one in self.covered), default=0)
        entries = []
        for one in self._few(self.covered, 6):
            said = self._spent(one)
            entries.append(f"{padded(self.names[one.id], name_columns)}  {said}" if many else said)
        if len(self.covered) > 6 and not self.verbose:
            entries.append(f"{count(len(self.covered) - 6, 'more session')}: stopwarden report --verbose")
        if not self.account.empty:
            self._section("TIME", entries, name_columns + 2 if many else 2)

    def _spent(self, one: SessionAccount) -> str:
        seconds = whole_minutes([one.seconds(kind) for kind in SPENT])
        parts = []
        for (kind, word), spent in zip(SPENT.items(), seconds, strict=True):
            if not one.seconds(kind) or (not spent and kind in ("stopped", "finished")):
                continue
            why = self._causes(one, kind)
            parts.append(f"{word} {hours(spent)}" + (f" ({why})" if why else ""))
        return " · ".join(parts) or "no time at all"

    def _causes(self, one: SessionAccount, kind: str) -> str:
        """The two longest causes of one kind of time, in the order of the night."""
        spans = [span for span in one.spans if span.kind == kind and span.cause]
        if kind == "stopped" and one.seconds(kind) < WORTH_A_CAUSE and not self.verbose:
            return ""
        longest = sorted(spans, key=lambda span: -span.seconds)
        kept = spans if self.verbose else [span for span in spans if span in longest[:2] and span.seconds >= 60]
        said = [self.say.cause(span) for span in kept]
        if len(spans) > len(kept) and kept:
            said.append(f"{len(spans) - len(kept)} more")
        return "; ".join(said)

    def _refused(self) -> None:
        entries = []
        for kind, one_word in (("permission", "permission prompt"), ("plan", "plan")):
            refused = [parked for parked in self.account.refused if parked.kind == kind]
            if refused:
                shown = [
                    plain(one.text, 60) + (f" ({one.times}x)" if one.times > 1 else "") for one in self._few(refused, 4)
                ]
                more = f", {len(refused) - 4} more: stopwarden parked" if len(refused) > len(shown) else ""
                number = sum(one.times for one in refused)
                entries.append(f"{count(number, one_word)}: {', '.join(shown)}{more}")
        self._section("REFUSED", entries)

    def _stalled(self) -> None:
        """What a watch saw, the last ones."""
        told = self.account.stalls if self.verbose else self.account.stalls[-SHOWN:]
        entries = [self.say.stalled(one) for one in told]
        if len(told) < len(self.account.stalls):
            entries.append(f"{len(self.account.stalls) - len(told)} earlier: stopwarden report --verbose")
        self._section("STALLED", entries)

    def _promised(self) -> None:
        """Looks and promises of the lists; what is settled only in the long form, or as a number."""
        told = sorted(self.account.timed, key=lambda one: (one.at is None, one.at or 0))
        left = [one for one in told if self.verbose or not one.handled]
        entries = [self.say.timed(one) for one in self._few(left)]
        settled = len(self.account.timed) - len(left)
        if len(left) > len(entries):
            entries.append(f"{len(left) - len(entries)} more: stopwarden list")
        if settled:
            entries.append(f"{settled} settled")
        self._section("PROMISED", entries)

    def _cost(self) -> None:
        sessions = self.account.sessions
        if self.account.empty:
            return
        looks = [look for one in sessions for look in one.looks]
        aside = []
        if missed := sum(len(one.missed_looks) for one in sessions):
            aside.append(f"{missed} missed")
        if failed := sum(look.outcome == "failed" for look in looks):
            aside.append(f"{failed} failed")
        if kept := sum(look.kept for look in looks):
            aside.append(f"{kept} by the keeper")
        parts = [count(sum(one.turns for one in sessions), "turn")]
        parts.append(count(len(looks), "wake") + (f" ({', '.join(aside)})" if aside else ""))
        parts.append(count(sum(one.blocks for one in sessions), "block"))
        if used := sum(one.tokens for one in sessions):
            parts.append(f"{tokens(used)} tokens")
        self._section("COST", [" · ".join(parts)])

    # --- the long form

    def _sessions(self) -> None:
        for one in self.account.sessions:
            told = [(span.since, f"  {self.say.stretch(span)}") for span in one.spans]
            told += [(look.at, f"    {self.say.look(look)}") for look in one.looks]
            entries = [f"{self.names[one.id]}   session {plain(one.id, 60)}"]
            self.lines.append("")
            self._section("SESSION", entries + [line for _, line in sorted(told, key=lambda pair: pair[0])])

    def _stories(self) -> None:
        entries = []
        for story in self.account.items:
            entries.append(
                f"{story.id}  {plain(story.title)}" + (f"   ({plain(story.source, 60)})" if story.source else "")
            )
            entries += [f"  {self.times.clock(move.at)}  {self.say.move(move, story)}" for move in story.moves]
        if entries:
            self.lines.append("")
        self._section("ITEMS", entries)

    # --- laying out

    def _section(self, label: str, entries: Sequence[str], hang: int = 2) -> None:
        for place, entry in enumerate(entries):
            indent = len(entry) - len(entry.lstrip(" "))
            first = self._bold(padded(label, LABEL)) if place == 0 else " " * LABEL
            wrapped = _wrapped(entry, self.columns - LABEL, indent + hang)
            self.lines.append(first + wrapped[0])
            self.lines += [" " * LABEL + line for line in wrapped[1:]]

    def _sentence(self, sentence: str) -> None:
        self.lines += _wrapped(sentence, self.columns, 0)

    def _table(self, rows: Sequence[tuple[str, str, str]]) -> list[str]:
        title = min(TITLE, max((width(row[0]) for row in rows), default=0))
        clock = max((width(row[1]) for row in rows), default=0)
        return [
            "  ".join(
                part for part in (padded(cut(row[0], title), title), padded(row[1], clock), row[2]) if part
            ).rstrip()
            for row in rows
        ]

    def _few(self, entries: Sequence[Entry], number: int = SHOWN) -> Sequence[Entry]:
        return entries if self.verbose else entries[:number]

    def _clock(self, at: Instant | None) -> str:
        return "" if at is None else self.times.clock(at)

    def _bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.color else text


def night_times(night: Night, times: LocalTimes) -> str:
    """ "Mon 23:05-07:30", and with both days where it is longer than one."""
    end = times.time_of_day(night.until) if night.until - night.since < DAY else times.day_clock(night.until)
    return f"{times.day_clock(night.since)}-{end}"


def _wrapped(text: str, columns: int, indent: int) -> list[str]:
    """The text broken between words into lines of at most `columns`, later ones indented."""
    lead = len(text) - len(text.lstrip(" "))
    lines, line = [], " " * lead
    for word in _words(text.strip(" ")):
        if width(line) + width(word.rstrip()) > columns and line.strip():
            lines.append(line.rstrip())
            line = " " * indent
        line += cut(word, columns - indent) if width(word) > columns - indent else word
    return [*lines, line.rstrip()]


def _words(text: str) -> Iterable[str]:
    """The words of a text, each with the blanks and the dot that follow it."""
    start = 0
    for place in range(1, len(text)):
        if text[place] not in " ·" and text[place - 1] == " ":
            yield text[start:place]
            start = place
    yield text[start:]
