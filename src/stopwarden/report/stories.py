"""What became of each item of the list in one away period.

The last verdict of each session holds the whole list as it was then; the lines of the record say
when each item moved, and what happened after that verdict. An item that was done, waiting or gone
before the person left is no part of the night. May not live here: time, wording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core.errors import StopwardenError
from stopwarden.core.record import Record
from stopwarden.store import journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal

    from stopwarden.core.events import Instant, Item
    from stopwarden.report.timeline import Judged
    from stopwarden.store.port import RecordLine, VerdictRow

    Outcome = Literal["done", "doing", "open", "parked", "removed", "dropped", "handed_back", "waits", "before"]

BULK = 3  # this many items found ticked at one stop, right after a block, are said to be ticked at once

_MOVES: dict[str, Outcome] = {
    "item_added": "open",
    "item_reopened": "open",
    "item_doing": "doing",
    "item_done": "done",
    "item_parked": "parked",
    "item_removed": "removed",
    "item_handed_back": "handed_back",
}
_STATES: dict[str, Outcome] = {
    "open": "open",
    "doing": "doing",
    "done": "done",
    "waiting": "parked",
    "removed": "removed",
    "dropped": "dropped",
    "handed_back": "handed_back",
}


class Move(Record):
    """One thing that happened to an item."""

    at: Instant
    kind: str  # as in the record: "item_done", …
    session: str = ""
    text: str = ""


class Story(Record):
    """One item and what became of it. "parked" and "removed" were the agent's doing; "before": not of this night."""

    id: str
    title: str
    outcome: Outcome
    source: str = ""
    session: str = ""
    at: Instant | None = None  # when it came to that, where the record says
    why: str = ""
    waits_on: str = ""
    verified: bool = False
    looks: int = 0  # handed back after so many wakes without progress
    at_once: int = 0  # ticked together with so many (itself counted) at the stop after a block
    moves: tuple[Move, ...] = ()

    @property
    def tonight(self) -> bool:
        """Whether it was work of this away period."""
        return self.outcome not in ("before", "waits")


class _Seen(Record):
    """The list as one session's last verdict saw it."""

    session: str
    at: Instant
    items: tuple[Item, ...]
    unread: tuple[str, ...]


def stories(
    rows: Iterable[VerdictRow],
    judged: Sequence[Judged],
    lines: Sequence[RecordLine],
    snapshot: Callable[[str], str],
) -> tuple[tuple[Story, ...], tuple[str, ...]]:
    """Every item's story, in the order of the lists; and the sources that could not be read at the end."""
    seen = _last_lists(rows, snapshot)
    found: dict[tuple[str, str], Story] = {}
    known: dict[tuple[str, str], Instant] = {}  # when each item was last seen in its list
    for view in sorted(seen, key=lambda view: view.at):
        for item in view.items:
            found[item.source, item.id] = _as_last_seen(item, view.session)
            known[item.source, item.id] = view.at
    by_id = {story.id: key for key, story in found.items()}
    bulk = _ticked_at_once(lines, judged)
    for line in lines:
        if line.kind not in _MOVES or not line.item:
            continue
        key = by_id.setdefault(line.item, ("", line.item))
        story = found.get(key) or Story(
            id=line.item, title=line.text or line.item, outcome="open", session=line.session
        )
        story = _moved(story, line, bulk, known.get(key))
        if line.kind == "item_handed_back" and story.outcome == "handed_back":
            allowed = [one.unchanged_looks for one in judged if one.session == line.session and one.at == line.at]
            story = story.replace(looks=max(allowed, default=0))
        found[key] = story
    unread = dict.fromkeys(source for view in seen for source in view.unread)
    return tuple(found.values()), tuple(unread)


def _last_lists(rows: Iterable[VerdictRow], snapshot: Callable[[str], str]) -> list[_Seen]:
    """Of each session the newest verdict whose record can be read and saw a list at all."""
    newest: dict[str, _Seen] = {}
    for row in sorted(rows, key=lambda row: -row.id):
        if row.session in newest or row.kind in ("plan_mode", "cancelled", "off"):
            continue
        try:
            world = journal.decode(row.body, snapshot)[2]
        except StopwardenError:
            continue
        newest[row.session] = _Seen(session=row.session, at=row.at, items=world.items, unread=world.unread)
    return list(newest.values())


def _as_last_seen(item: Item, session: str) -> Story:
    outcome = _STATES.get(item.state, "open")
    if item.before == item.state and item.state not in ("open", "doing"):
        outcome = "waits" if item.state == "waiting" else "before"
    return Story(
        id=item.id,
        title=item.title,
        outcome=outcome,
        source=item.source,
        session=session,
        why=item.why,
        waits_on=item.waits_on or "",
        verified=item.verified,
    )


def _moved(story: Story, line: RecordLine, bulk: dict[tuple[str, Instant], int], known_until: Instant | None) -> Story:
    """The story with one more line. A line older than the last list only dates what that list shows.

    An item handed back is so by our own verdict, which the list of the same stop cannot show yet.
    """
    outcome = _MOVES[line.kind]
    moves = (*story.moves, Move(at=line.at, kind=line.kind, session=line.session, text=line.text))
    newer = known_until is None or line.at > known_until or outcome == "handed_back"
    if newer and not (outcome == "handed_back" and story.outcome == "done"):
        story = story.replace(outcome=outcome)
    if story.outcome != outcome:
        return story.replace(moves=moves)
    why = line.text if outcome == "parked" and line.text != story.title else story.why
    at_once = bulk.get((line.session, line.at), 0) if outcome == "done" else 0
    return story.replace(moves=moves, at=line.at, session=line.session, why=why, at_once=at_once)


def _ticked_at_once(lines: Sequence[RecordLine], judged: Sequence[Judged]) -> dict[tuple[str, Instant], int]:
    """By session and instant: how many items were ticked together, where that is worth a remark."""
    ticked: dict[tuple[str, Instant], int] = {}
    for line in lines:
        if line.kind == "item_done":
            ticked[line.session, line.at] = ticked.get((line.session, line.at), 0) + 1
    said = {(line.session, line.at) for line in lines if line.kind == "bulk_close"}
    return {
        key: number
        for key, number in ticked.items()
        if key in said or (number >= BULK and _follows_a_block(key, judged))
    }


def _follows_a_block(key: tuple[str, Instant], judged: Sequence[Judged]) -> bool:
    session, at = key
    earlier = [one for one in judged if one.session == session and one.at < at]
    return bool(earlier) and max(earlier, key=lambda one: one.id).block
