"""Which sessions of an away period have stalled, and what could be done about each: what `stopwarden watch` reports.

Theory of operation. A session's state (`report.state`) says how it stands; here it is asked whether
that is a stall, and *which* one: a kind and the instant at which it began. The two together are an
episode. An episode is told of once, whoever asks how often; the same session that stalls again
begins another one. A stall is `resumable` where its session rests and something is owed: only then
may a resume command be of use. Whether its program is still open is not known here.

Pure: rows and an instant in, stalls out. May not live here: telling anybody, running anything.
"""

from __future__ import annotations

from stopwarden.core import leases
from stopwarden.core.bounds import KEEPER_BACKOFF, MISSED_LOOK_AFTER
from stopwarden.core.record import Record
from stopwarden.hosts import claude_code
from stopwarden.report.moments import moment
from stopwarden.report.reading import plain
from stopwarden.report.state import ERRORS, TYPE_CONTINUE, standing
from stopwarden.work.promises import STALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.core.events import Instant, Reservation, Zone
    from stopwarden.report.state import Known, Standing
    from stopwarden.work.promises import Timed

RESUMABLE = ("missed_look", "silent", "error", "idle", "bound", "closed", "not_woken", "keeper_gone")
NOT_A_STALL = ("", "cancelled")


class Stall(Record):
    """One session that does not go on, or one thing about it that does not. `since` and `subject` name the episode."""

    kind: str
    session: str  # "" where a shared list is meant
    name: str
    since: Instant
    text: str  # one plain sentence
    act: str = ""  # what the person can do
    subject: str = ""  # the item or the promise, where a session may have several
    detail: str = ""  # for the record: work text or an error's name, no times
    period: str = ""
    root: str = ""
    resumable: bool = False

    @property
    def key(self) -> str:
        """What is stored of it, together with `episode`."""
        return " ".join(part for part in (self.session or self.period, self.kind, self.subject) if part)

    @property
    def episode(self) -> str:
        return str(self.since)


def stalls(
    known: Known,
    now: Instant,
    zone: Zone,
    *,
    holds: Iterable[Reservation] = (),
    lost: Iterable[Reservation] = (),
) -> list[Stall]:
    """What is wrong with one session now. `holds` are its own reservations, `lost` those that others took from it."""
    period = known.period
    if period is None or known.mode == "off":
        return []
    told = standing(known, now, zone)
    if told.word in ("ended", "off", "not_covered", "done"):
        return []
    found = []
    if _is_stall(known, told, now):
        text = f"{told.text}{_holding(told, holds, now, zone)}"
        found.append(_stall(known, told, told.cause, told.since or known.row.last_event_at, text, told.act))
    elif known.keeper_gone and told.word == "waiting":
        text = f"{told.text} Its keeper is gone, so nobody would notice if it did not."
        found.append(_stall(known, told, "keeper_gone", known.row.last_event_at, text, "stopwarden doctor"))
    found += _lost_holds(known, told, now, zone, holds, lost)
    return found


def overdue(told: Iterable[tuple[str, Timed]], now: Instant, zone: Zone) -> list[Stall]:
    """The looks and promises of lists that were not handled in time; each with its away period."""
    found = []
    for period, one in told:
        if one.is_overdue(now) and one.at is not None:
            what = "was not kept by" if one.kind == "promise" else "was not made at"
            found.append(
                Stall(
                    kind=STALL[one.kind],
                    session=one.session,
                    name=one.source,
                    since=one.at,
                    text=f'The {one.kind} "{plain(one.text, 80)}" {what} {moment(one.at, zone, now)}.',
                    act=f"Settle it, then: stopwarden {one.kind} --{'kept' if one.kind == 'promise' else 'looked'} …",
                    subject=one.id,
                    detail=one.text,
                    period=period,
                )
            )
    return found


def look_is_due(known: Known, now: Instant) -> bool:
    """Whether the look that a session declared itself is due now: the time in which it is kept, not missed.

    Only of a session that is closed, or of a script that has stopped: an open program looks by itself.
    """
    look, row = known.declared, known.row
    if look is None or known.period is None or row.last_event_at >= look:
        return False
    if row.ended_at is None and not (claude_code.is_script(row.entrypoint) and row.last_event == "stop"):
        return False
    return look <= now <= look + MISSED_LOOK_AFTER


def _is_stall(known: Known, told: Standing, now: Instant) -> bool:
    """Whether its state is one that somebody must hear of. An error may still pass by itself."""
    if told.cause in NOT_A_STALL or not (told.needs_you or told.cause == "silent"):
        return False
    row, period = known.row, known.period
    if told.cause == "closed":
        before = row.ended_at is not None and period is not None and row.ended_at < period.since
        return not before and not look_is_due(known, now)
    if told.cause != "error" or told.act != TYPE_CONTINUE or row.error_at is None:
        return True
    if row.error_resets_at is not None:
        return now > row.error_resets_at + MISSED_LOOK_AFTER
    return now >= row.error_at + KEEPER_BACKOFF[min(max(row.errors_in_a_row, 1), len(KEEPER_BACKOFF)) - 1]


def _holding(told: Standing, holds: Iterable[Reservation], now: Instant, zone: Zone) -> str:
    """What it keeps from others meanwhile."""
    live = [held for held in holds if leases.is_live(held, now)]
    if told.cause == "silent" and live:
        until = max(leases.effective_expiry(held) for held in live)
        names = ", ".join(plain(held.title or held.item, 40) for held in live[:3])
        return f" It holds {names} until {moment(until, zone, now)}."
    return ""


def _lost_holds(
    known: Known, told: Standing, now: Instant, zone: Zone, holds: Iterable[Reservation], lost: Iterable[Reservation]
) -> list[Stall]:
    found = []
    for held in holds:
        if held.released_at is None and not held.terminal and not leases.is_live(held, now):
            lapsed = leases.effective_expiry(held)
            text = f"Its hold on {_item(held)} lapsed at {moment(lapsed, zone, now)}: others may take it."
            found.append(_lost(known, told, held, lapsed, text))
    for held in lost:
        text = f"Its hold on {_item(held)} went to session {held.session[:8] or 'yours'} at "
        found.append(_lost(known, told, held, held.granted_at, f"{text}{moment(held.granted_at, zone, now)}."))
    return found


def _lost(known: Known, told: Standing, held: Reservation, since: Instant, text: str) -> Stall:
    made = _stall(known, told, "lost_hold", since, text, "stopwarden peers")
    return made.replace(subject=f"{held.place} {held.item}", detail=held.title or held.item)


def _item(held: Reservation) -> str:
    return f'{held.item} "{plain(held.title, 60)}"' if held.title else held.item


def _stall(known: Known, told: Standing, kind: str, since: Instant, text: str, act: str) -> Stall:
    period = known.period
    return Stall(
        kind=kind,
        session=known.row.id,
        name=told.name,
        since=since,
        text=text,
        act=act,
        detail=known.row.error if kind == "error" else known.row.ended_why if kind == "closed" else "",
        period=period.id if period is not None else "",
        root=known.row.root,
        resumable=kind in RESUMABLE and (known.owes is None or known.owes > 0) and not _needs_the_person(known),
    )


def _needs_the_person(known: Known) -> bool:
    """An error that only a person can mend, and a session they cancelled, are not resumed."""
    mended_there = known.row.error_at is not None and bool(ERRORS.get(known.row.error, ("", ""))[1])
    return known.state.cancelled or mended_there
