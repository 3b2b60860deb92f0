"""What became of each item of the lists, in one away period or over several.

The last verdict of each session holds the whole list as it was then; the lines of the record say
when each item moved, and what happened after that verdict. An item that was done, waiting or gone
before the person left is no part of the night. Over several nights each is told by itself first:
what one night did, the next finds as it was before. An item is known by its list and checkout, or,
of a session's own todos, by the session. May not live here: time, wording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core.errors import StopwardenError
from stopwarden.core.record import Record
from stopwarden.store import journal
from stopwarden.work.host_todos import SOURCE as OWN_TODOS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Literal

    from stopwarden.core.events import Instant, Item
    from stopwarden.report.judged import Bare, Judged
    from stopwarden.store.port import RecordLine, VerdictRow

    Key = tuple[str, str, str]  # the checkout or the session, the source, the item
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
HOLDS = ("reserved", "released", "hold_lost", "passed_over")  # who had the item; they change nothing about it
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
    root: str = ""  # the checkout the source stands in
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


class Told(Record):
    """One away period's lines and verdicts, and of each session its newest rows, the newest first."""

    lines: tuple[RecordLine, ...]
    judged: tuple[Judged, ...]
    newest: tuple[tuple[VerdictRow | Bare, ...], ...]


def stories(
    nights: Iterable[Told], roots: Mapping[str, str], snapshot: Callable[[str], str], since: Instant
) -> tuple[tuple[Story, ...], tuple[str, ...]]:
    """Every item's story, in the order of the lists; and the sources that could not be read at the end.

    `nights` are the away periods, oldest first, whole; what was done before `since` is no part of it.
    `roots` is the checkout of each session.
    """
    found: dict[Key, Story] = {}
    unread: dict[str, None] = {}
    for night in nights:
        seen = _last_lists(night.newest, snapshot)
        unread = dict.fromkeys(source for view in seen for source in view.unread) if seen else unread
        told = _of_one_night(night, seen, roots)
        lists = {key[:2] for key in told}
        for key, story in found.items():
            if key not in told and key[:2] in lists and story.outcome in ("open", "doing"):
                found[key] = story.replace(outcome="before")  # taken off the list by the person, in between
        for key, story in told.items():
            found[key] = _joined(found.get(key), story)
    return tuple(_cut(story, since) for story in found.values()), tuple(unread)


def _joined(earlier: Story | None, later: Story) -> Story:
    """One item over two nights: where the later one found it as the earlier one had left it, that was done then."""
    if earlier is None:
        return later
    moves = (*earlier.moves, *later.moves)
    as_left = {"before": ("done", "removed", "dropped", "handed_back"), "waits": ("parked",)}
    if earlier.outcome in as_left.get(later.outcome, ()):
        return earlier.replace(moves=moves)
    return later.replace(moves=moves)


def _cut(story: Story, since: Instant) -> Story:
    done_before = story.outcome == "done" and story.at is not None and story.at < since
    moves = tuple(move for move in story.moves if move.at >= since)
    if not done_before and len(moves) == len(story.moves):
        return story
    return story.replace(outcome="before" if done_before else story.outcome, moves=moves)


def _of_one_night(night: Told, seen: Sequence[_Seen], roots: Mapping[str, str]) -> dict[Key, Story]:
    found: dict[Key, Story] = {}
    known: dict[Key, Instant] = {}  # when each item was last seen in its list
    by_id: dict[tuple[str, str], Key] = {}
    for view in sorted(seen, key=lambda view: view.at):
        root = roots.get(view.session, "")
        for item in view.items:
            place = view.session if item.source == OWN_TODOS else root
            key = (place, item.source, item.id)
            found[key], known[key] = _as_last_seen(item, view.session, root), view.at
            by_id[place, item.id] = key
    bulk = _ticked_at_once(night.lines, night.judged)
    for line in night.lines:
        if line.kind in HOLDS:
            held = by_id.get((line.session, line.item)) or by_id.get((roots.get(line.session, ""), line.item))
            if held is not None:
                move = Move(at=line.at, kind=line.kind, session=line.session, text=line.text)
                found[held] = found[held].replace(moves=(*found[held].moves, move))
            continue
        if line.kind not in _MOVES or not line.item:
            continue
        root = roots.get(line.session, "")
        key = by_id.get((line.session, line.item)) or by_id.setdefault((root, line.item), (root, "", line.item))
        story = found.get(key) or Story(
            id=line.item, title=line.text or line.item, outcome="open", session=line.session, root=root
        )
        story = _moved(story, line, bulk, known.get(key))
        if line.kind == "item_handed_back" and story.outcome == "handed_back":
            allowed = [one.unchanged_looks for one in night.judged if (one.session, one.at) == (line.session, line.at)]
            story = story.replace(looks=max(allowed, default=0))
        found[key] = story
    return found


def _last_lists(newest: Iterable[Sequence[VerdictRow | Bare]], snapshot: Callable[[str], str]) -> list[_Seen]:
    """Of each session the newest verdict whose record can be read."""
    found = []
    for rows in newest:
        for row in rows:
            try:
                world = journal.decode(row.body, snapshot)[2]
            except StopwardenError:
                continue
            found.append(_Seen(session=row.session, at=row.at, items=world.items, unread=world.unread))
            break
    return found


def _as_last_seen(item: Item, session: str, root: str) -> Story:
    outcome = _STATES.get(item.state, "open")
    if item.before == item.state and item.state not in ("open", "doing"):
        outcome = "waits" if item.state == "waiting" else "before"
    return Story(
        id=item.id,
        title=item.title,
        outcome=outcome,
        source=item.source,
        root=root,
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
    many = {key for key, number in ticked.items() if number >= BULK}
    said = {(line.session, line.at) for line in lines if line.kind == "bulk_close"}
    said |= _follow_a_block(many - said, judged)
    return {key: number for key, number in ticked.items() if key in said}


def _follow_a_block(keys: set[tuple[str, Instant]], judged: Sequence[Judged]) -> set[tuple[str, Instant]]:
    """Those of these sessions and instants before which that session's last verdict was a block."""
    last: dict[tuple[str, Instant], Judged] = {}
    sessions = {session for session, _ in keys}
    for one in judged if keys else ():
        if one.session in sessions:
            for key in keys:
                if key[0] == one.session and one.at < key[1] and (key not in last or one.id > last[key].id):
                    last[key] = one
    return {key for key, one in last.items() if one.block}
