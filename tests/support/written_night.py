"""A night written down by hand: record lines, verdicts and rows, as the hook would have left them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from stopwarden.core.bounds import Policy
from stopwarden.core.events import (
    AwayPeriod,
    Counters,
    Item,
    SessionState,
    Stop,
    Verdict,
    Wake,
    WakeFinding,
    World,
)
from stopwarden.report.account import Account, account
from stopwarden.store import journal
from stopwarden.store.port import Parked, RecordLine, SessionRow, VerdictRow
from tests.conftest import LONDON, at

if TYPE_CHECKING:
    from stopwarden.core.events import Instant, Zone
    from stopwarden.store.port import Store

PARSER = "7e15c0de-0000-4000-8000-000000000001"


class Night:
    """One away period, told event by event; times are local ("23:05" is on the first evening, "02:10" after it)."""

    def __init__(
        self, day: str = "2026-11-30", since: str = "23:05", until: str = "07:30", zone: str = "Europe/London"
    ) -> None:
        self.day, self.zone_name = day, zone
        self.zone: Zone = LONDON
        self.first = since
        self.period = AwayPeriod(
            id="p1",
            since=self.at(since),
            until=self.at(until) if until else None,
            zone=zone,
            root="/work/shop",
            copy="c0",
        )
        self.lines: list[RecordLine] = []
        self.verdicts: list[VerdictRow] = []
        self.rows: dict[str, SessionRow] = {}
        self.asked: list[Parked] = []
        self.items: dict[str, Item] = {}
        self.kept: dict[str, str] = {}
        self.session = PARSER
        self.row(PARSER, title="parser")

    def at(self, clock: str | int, fold: int = 0) -> Instant:
        """The instant of a local time of this night."""
        if isinstance(clock, int):
            return clock
        if " " in clock:
            return at(clock, self.zone_name, fold)
        evening = at(f"{self.day} {clock}", self.zone_name, fold)
        first = at(f"{self.day} {self.first}", self.zone_name)
        if evening >= first:
            return evening
        day = int(self.day[-2:]) + 1
        month = self.day[5:7]
        following = f"{self.day[:8]}{day:02}" if not (month == "11" and day == 31) else f"{self.day[:5]}12-01"
        return at(f"{following} {clock}", self.zone_name, fold)

    def row(self, session: str, **facts: object) -> None:
        """What is known of a session."""
        known = self.rows.get(session) or SessionRow(id=session)
        self.rows[session] = known.replace(**facts)

    def line(
        self, clock: str | int, kind: str, text: str = "", item: str = "", fold: int = 0, session: str | None = None
    ) -> None:
        """One line of the away record."""
        self.lines.append(
            RecordLine(
                at=self.at(clock, fold),
                kind=kind,
                text=text,
                item=item,
                session=self.session if session is None else session,
                period=self.period.id,
                seq=len(self.lines) + 1,
            )
        )
        if session is None:
            self.row(self.session, last_event_at=self.at(clock, fold))

    def list(self, *titles: str, **states: str) -> None:
        """The list as it is from now on: items i1, i2, … open unless `states` says otherwise."""
        for number, title in enumerate(titles, 1):
            self.items[f"i{number}"] = Item(id=f"i{number}", title=title, source="TODO.md", line=number)
        for one, state in states.items():
            self.items[one] = self.items[one].replace(state=state)

    def tick(self, clock: str | int, *ids: str, verified: bool = False, fold: int = 0) -> None:
        """The agent ticks items."""
        for one in ids:
            self.items[one] = self.items[one].replace(state="done", verified=verified)
            self.line(clock, "item_done", self.items[one].title, one, fold)

    def stop(
        self,
        clock: str | int,
        kind: str = "block",
        *,
        look: str | int | None = None,
        latest: str | int | None = None,
        bound: str = "",
        kept: bool = False,
        fold: int = 0,
        tokens: int = 0,
        rule: str = "",
        unread: tuple[str, ...] = (),
    ) -> int:
        """A judged stop; its id."""
        now = self.at(clock, fold)
        if bound:
            self.line(clock, "stopped_with_work_owed", bound, fold=fold)
        wake = None
        if look is not None:
            nominal = self.at(look)
            last = self.at(latest) if latest is not None else nominal
            name = "kept" if kept else "w1"
            wake = WakeFinding(
                id=name, schedule="*/20 * * * *", qualifies=True, nominal=nominal, earliest=nominal, latest=last
            )
        stop = Stop(session=self.session, at=now, wakes=(Wake(id="w1", schedule="*/20 * * * *", kind="recurring"),))
        owed = tuple(item.id for item in self.items.values() if item.state in ("open", "doing"))
        world = World(
            zone=self.zone,
            period=self.period,
            items=tuple(self.items.values()),
            tokens_used=tokens,
            unread=unread,
        )
        verdict = Verdict(
            block=kind == "block",
            kind=kind,
            rule=rule or ("away.no_qualifying_wake" if kind == "block" else f"away.{kind}"),
            at=now,
            owed=owed,
            wake=wake,
            zone=self.zone_name,
            counters=Counters(blocks=1, cap=8),
        )
        body = journal.encode(stop, SessionState(id=self.session, period="p1"), world, Policy(), verdict, self.put)
        self.verdicts.append(
            VerdictRow(
                at=now,
                session=self.session,
                period=self.period.id,
                kind=kind,
                rule=verdict.rule,
                body=body,
                id=len(self.verdicts) + 1,
            )
        )
        self.row(self.session, last_event_at=now)
        return len(self.verdicts)

    def wake(self, clock: str | int, fold: int = 0) -> None:
        """A scheduled wake opens a turn."""
        self.line(clock, "look", "w1", fold=fold)
        self.line(clock, "prompt", "wake", fold=fold)

    def ask(self, clock: str | int, text: str, kind: str = "question", **more: object) -> None:
        """A question or a permission prompt is refused and parked."""
        line = "refused_permission" if kind == "permission" else "parked_question"
        self.line(clock, line, text)
        given = {
            "at": self.at(clock),
            "session": self.session,
            "period": "p1",
            "kind": kind,
            "digest": text,
            "text": text,
        }
        self.asked.append(Parked(**{**given, "id": len(self.asked) + 1, **more}))  # type: ignore[arg-type]

    def end(self, clock: str | int | None = None, why: str = "time") -> None:
        """The away period ends."""
        ended = self.at(clock) if clock is not None else self.period.until
        assert ended is not None
        self.period = self.period.replace(ended_at=ended, ended_why=why)
        self.line(ended, "period_ended", why, session="")

    def put(self, body: str) -> str:
        digest = hashlib.sha256(body.encode()).hexdigest()
        self.kept[digest] = body
        return digest

    def fill(self, store: Store, policy: str = "") -> None:
        """Puts the whole night into a store, as the hook would have."""
        with store.transaction():
            store.add_period(self.period.replace(ended_at=None, ended_why=""), policy)
            if self.period.ended_at is not None:
                store.end_period(self.period.id, self.period.ended_at, self.period.ended_why)
            for body in self.kept.values():
                store.put_snapshot(body)
            store.append([line.replace(seq=0) for line in self.lines])
            for row in self.verdicts:
                number = store.append_verdict(row.replace(id=0, nonce=f"n{row.id}"))
                self.row(row.session, last_verdict=number)
            for known in self.rows.values():
                store.save_session(known)
            for parked in self.asked:
                number = store.park(parked.replace(id=0, times=1))
                for _ in range(parked.times - 1):
                    store.park(parked.replace(id=0))
                if parked.answered_at is not None:
                    store.save_parked(parked.replace(id=number))

    def account(self, now: str | int = "08:00", **more: object) -> Account:
        """The account of this night, read at `now`."""
        return account(
            [self.period],
            now=self.at(now),
            lines=self.lines,
            verdicts=self.verdicts,
            sessions=list(self.rows.values()),
            parked=self.asked,
            snapshot=lambda digest: self.kept.get(digest, ""),
            **more,  # type: ignore[arg-type]
        )


def ordinary_night() -> Night:
    """Six items, five done, one handed back; a question, two refused permissions, one usage limit."""
    night = Night()
    night.list("lexer", "parser", "printer", "errors", "readme", "docs")
    night.line("23:06", "prompt", "person")
    night.tick("23:40", "i1", verified=True)
    night.stop("23:40", tokens=100_000)
    night.tick("00:52", "i2", verified=True)
    night.stop("00:52")
    night.tick("01:30", "i3")
    night.stop("01:30")
    night.tick("02:05", "i4")
    night.ask("02:11", "Drop column legacy_id?", options=("drop it", "keep it"), chosen="keep it (can be undone)")
    night.ask("02:20", "rm -rf build", kind="permission")
    night.ask("02:21", "git push", kind="permission")
    night.stop("02:30")
    night.line("03:02", "error", "rate_limit; resets 3:57am (Europe/London)")
    night.wake("03:57")
    night.line("03:59", "api_resumed", "rate_limit")
    night.tick("04:10", "i5")
    night.stop("04:10")
    night.stop("04:12", "waiting", look="04:50")
    for begin, done, then in (("04:50", "04:56", "05:40"), ("05:40", "05:44", "06:30"), ("06:30", "06:33", "07:20")):
        night.wake(begin)
        if begin == "06:30":
            night.line(done, "item_handed_back", "docs", "i6")
        night.stop(done, "waiting", look=then, tokens=3_200_000)
    night.wake("07:20")
    night.stop("07:25", "waiting", look="08:10", tokens=3_200_000)
    night.end()
    return night
