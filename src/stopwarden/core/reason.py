"""The words a model reads at a blocked stop, and the words a person reads about it.

A reason says in this order: what to do now; the item as quoted data; the deadline as local time
and minutes from now; how to schedule, last. Work text is untrusted: it is quoted, on one line,
without control characters, cut. The whole stays under `REASON_MAX` characters: what is least
needed is left out first. No reason ever tells an agent to ask somebody: nobody is there.
"""

from __future__ import annotations

import time

from stopwarden.core.bounds import MINUTE, REASON_MAX, TITLE_MAX
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import BackgroundTask, Instant, Item, Reservation, WakeFinding, Zone
    from stopwarden.core.owed import Assessment

ESCALATE_FROM = 3  # the third block in a row names the exact call that would schedule a qualifying wake
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Circumstances(Record):
    """What a reason is worded from besides the owed set."""

    now: Instant
    zone: Zone
    deadline: Instant
    block: int  # this is the n-th block in a row without progress
    chosen: WakeFinding | None = None
    rejected: tuple[WakeFinding, ...] = ()
    wakes_reported: bool = True
    scheduler_off: str = ""
    call: str = ""  # the exact call that would schedule a qualifying wake
    safety_call: str = ""  # asked for once a session: an error ends a turn without a stop that could be blocked
    overdue: tuple[str, ...] = ()  # items whose reservation should have been renewed by now
    handed_back: Item | None = None
    compacted: bool = False
    checklist: str = ""
    background: tuple[BackgroundTask, ...] = ()
    answers: tuple[str, ...] = ()
    held_by_others: tuple[Reservation, ...] = ()
    held: tuple[str, ...] = ()  # items this session holds
    lapsed: tuple[str, ...] = ()  # items whose hold of this session ran out
    lost: tuple[Reservation, ...] = ()  # holds that took this session's place
    finished: tuple[Reservation, ...] = ()  # what another session said it finished
    shared: bool = False  # other sessions work from the same list
    offered: Item | None = None  # the head of the ready queue, to be named
    unread_ready: tuple[str, ...] = ()
    stale: bool = False  # tools ran, and for several blocks the list has not moved


def quoted(text: str, limit: int = TITLE_MAX) -> str:
    """Untrusted text as one quoted line: no control or invisible characters, no quotes inside, cut."""
    if len(text) > 4 * limit:
        text = text[: 4 * limit]
    plain = " ".join("".join(char if char.isprintable() else " " for char in text).replace('"', "'").split())
    return f'"{plain if len(plain) <= limit else plain[: limit - 1] + "…"}"'


def local_time(instant: Instant, zone: Zone, near: Instant) -> str:
    """The local reading of an instant: "23:55", with the weekday where it is not near's day."""
    there = time.gmtime(instant + zone.offset(instant))
    here = time.gmtime(near + zone.offset(near))
    clock = f"{there.tm_hour:02}:{there.tm_min:02}"
    return clock if there[:3] == here[:3] else f"{WEEKDAYS[there.tm_wday]} {clock}"


def span(seconds: int) -> str:
    """A length of time in words: "52 minutes", "8 h 25 min"."""
    minutes = max(0, seconds) // MINUTE
    if minutes < 90:
        return "1 minute" if minutes == 1 else f"{minutes} minutes"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def block_reason(owed: Assessment, so: Circumstances) -> str:
    """The reason for the model at a blocked stop, under REASON_MAX characters."""
    needed = [*_what_to_do(owed, so), *_deadline(owed, so)]
    wanted = _circumstances(owed, so)
    text = "\n".join(needed)
    for line in wanted:
        if len(text) + 1 + len(line) < REASON_MAX:
            text += "\n" + line
    return text[: REASON_MAX - 1]


def _what_to_do(owed: Assessment, so: Circumstances) -> list[str]:
    lines = []
    for lost in so.lost[:2]:
        lines.append(f"You lost your hold of {_id(lost.item)} to {_holder(lost)}: leave it, write nothing of it.")
    if so.overdue:
        names = ", ".join(quoted(item, 60) for item in so.overdue[:3])
        lines.append(f"First renew your hold, it is overdue: {names} (stopwarden renew).")
    if so.compacted and owed.owed:
        lines.append("The conversation was compacted: first bring the list up to date with what is really done.")
    if so.stale and owed.owed and not so.compacted:
        lines.append(
            "Tools ran since you were last told, but the list has not moved for several stops: first bring it up to "
            "date, tick what is done, mark begun what you are at."
        )
    if so.handed_back is not None:
        lines.append(f"{_named(so.handed_back)} did not move in several looks: it goes back to the person. Leave it.")
    if so.offered is not None and owed.owed:
        lines.append(
            f"Before you wait: the next ready item is free, {_named(so.offered)}. Take it with "
            f"`stopwarden start {_id(so.offered.id)}` if you can do it now; if you cannot, wait as you meant to."
        )
    elif owed.owed:
        lines += _next_item(owed.owed[0], so)
    for source in owed.unread[:3]:
        lines.append(f"What is owed cannot be known: {quoted(source, 160)} could not be read. Make it readable again.")
    if not owed.anything_owed:
        if so.offered is not None:
            after = (
                "Only then schedule your next look."
                if so.chosen is None
                else "If you cannot do it, wait as you meant to."
            )
            lines.append(
                f"Nothing on your list is open. First take the next ready item: {_named(so.offered)} "
                f"(stopwarden start {_id(so.offered.id)}). {after}"
            )
        else:
            lines.append("Nothing is owed now, but nothing would wake you either: schedule your next look.")
    return lines


def _next_item(item: Item, so: Circumstances) -> list[str]:
    if item.state in ("removed", "dropped"):
        return [
            f"Go on: {_named(item)} was taken off the list while it was open. Do it, "
            "or leave it off with a line in the list that says why; it is reported to the person."
        ]
    if item.state == "waiting":
        return [
            f"Go on: {_named(item)} was marked as waiting. If any part of it can be done without waiting, do that now; "
            "if not, leave it marked and take the next one; it is reported to the person."
        ]
    lines = [f"Go on: {_named(item)}."]
    elsewhere = next((held for held in so.finished if held.item == item.id), None)
    if elsewhere is not None and elsewhere.released_at is not None:
        at = local_time(elsewhere.released_at, so.zone, so.now)
        lines.append(f"At {at} {_holder(elsewhere)} finished it: see first whether it is there already.")
    elif item.id in so.lapsed:
        lines.append(
            f"Your hold of it ran out: first run `stopwarden reserve {_id(item.id)}`; if it is held now, leave it."
        )
    elif so.shared and item.id not in so.held:
        lines.append(
            f"Other sessions work from the same list: first run `stopwarden reserve {_id(item.id)}`; "
            "if it is held, take the next."
        )
    return [
        *lines,
        "If you cannot, mark it waiting with the reason and take the next one. Decide yourself what can be undone; "
        "nobody is there to answer.",
    ]


def _id(known: str) -> str:
    return quoted(known, 60)[1:-1]


def _named(item: Item) -> str:
    place = f" of {item.source}" if item.source else ""
    line = f", line {item.line}" if item.line else ""
    return f"item {_id(item.id)}{place}{line}, {quoted(item.title)} (quoted from the list)"


def _holder(held: Reservation) -> str:
    return f"session {quoted(held.session, 40)[1:-1]}" if held.session else "the person"


def _deadline(owed: Assessment, so: Circumstances) -> list[str]:
    if so.chosen is not None and so.chosen.nominal is not None:
        look = local_time(so.chosen.nominal, so.zone, so.now)
        return [f"Your next look at {look} is in time: once this has moved, or cannot move, you may wait for it."]
    if so.deadline <= so.now:
        return ["No wake can come in time before that."]
    by = local_time(so.deadline, so.zone, so.now)
    return [f"A wake must come by {by} (in {span(so.deadline - so.now)}) before you may wait."]


def _circumstances(owed: Assessment, so: Circumstances) -> list[str]:
    """Lines in the order of need; what does not fit is left out from the end."""
    lines = []
    if so.safety_call:
        lines.append(f"Before anything else schedule a safety wake, in case an error ends a turn: {so.safety_call}.")
    if so.chosen is None:
        if so.scheduler_off:
            lines.append(f"No wake counts here: {so.scheduler_off}.")
        elif so.block >= ESCALATE_FROM and so.call:
            lines.append(f"This call would do: {so.call}.")
        if not so.wakes_reported:
            lines.append("This program reported no scheduled wakes at all.")
        for finding in so.rejected[:4]:
            lines.append(f"Wake {quoted(finding.id, 40)} {quoted(finding.schedule, 40)} does not count: {finding.why}.")
        if len(so.rejected) > 4:
            lines.append(f"{len(so.rejected) - 4} more wakes do not count either.")
        if not so.scheduler_off:
            lines.append("Schedule a ScheduleWakeup last: with it the turn ends (with a cron it does not).")
    for answer in so.answers[:5]:
        lines.append(f"The person answered: {quoted(answer, 400)}.")
    for task in so.background[:2]:
        lines.append(f"A running {quoted(task.type, 20)[1:-1]} task is no wake: {quoted(task.description, 80)}.")
    for held in so.held_by_others[:3]:
        until = "" if held.expires_at is None else f" until {local_time(held.expires_at, so.zone, so.now)}"
        lines.append(f"Not for you now: {_id(held.item)} is held by {_holder(held)}{until}.")
    if so.unread_ready and not owed.owed:
        lines.append(f"What else is ready is not known: {quoted(so.unread_ready[0], 160)} could not be read.")
    if so.checklist and not owed.owed:
        lines.append(f"Your own list is {so.checklist}: write down there what is left to do.")
    return lines
