"""What a session owes: which items count, in which order, and what of that is progress.

Theory of operation. The sources hand over every item they know with two states: the one it is in
now and the one it was first seen in during this away period (`before`). From these and from what
the session's state remembers, `assess` says

* the *owed set*, in order: what is open or being done first, in the order of its sources; then what
  the agent parked, dropped or removed since the last block, which stays owed for one more block;
* what *waits* on a person or on something external: listed, never owed;
* the *fingerprint* of ids and states of the owed set, so that titles and order do not count;
* whether there was *progress*: an item that reached doing or done for the first time in this
  period. Adding, rewording, reordering, or going back and forth is none.

A source that cannot be read makes the set *unknown*, which is owed work, never an empty set.
May not live here: wakes, counters, wording.
"""

from __future__ import annotations

from stopwarden.core.digest import digest
from stopwarden.core.events import Happening, Item
from stopwarden.core.record import Record
from stopwarden.core.reservations import is_taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.core.events import Instant, Reservation, SessionState

LIVE = ("open", "doing")
GIVEN_UP = ("waiting", "removed", "dropped")
REACHED = ("doing", "done")


class Assessment(Record):
    """The owed set of one session at one stop, and what has happened to it since the last."""

    owed: tuple[Item, ...]
    waiting: tuple[Item, ...]
    unread: tuple[str, ...]
    fingerprint: str
    progressed: bool
    reached: tuple[str, ...]  # what the session's state remembers from now on
    newly_given_up: tuple[str, ...]  # ids blocked for once more now; `graced` after that block
    happenings: tuple[Happening, ...]

    @property
    def anything_owed(self) -> bool:
        """Owed work, or work that cannot be seen: unknown is never nothing."""
        return bool(self.owed or self.unread)

    @property
    def awaited(self) -> bool:
        """Something not done by a person is awaited (an external receipt, another session)."""
        return any(item.waits_on in ("external", "session") for item in self.waiting)


def fingerprint(owed: Iterable[Item], unread: Sequence[str] = ()) -> str:
    """A digest of the ids and states of an owed set. Order and titles do not count; the empty set has one too."""
    parts = sorted([f"{item.id}\0{item.state}" for item in owed]) + [f"?\0{source}" for source in sorted(set(unread))]
    return digest("\n".join(["owed 1", *parts]))


def assess(items: Iterable[Item], unread: Sequence[str], state: SessionState) -> Assessment:
    """The owed set of a session whose state is `state`, from every item of every source, in order."""
    reached = dict.fromkeys(state.reached)
    happenings: list[Happening] = []
    given_up: list[Item] = []
    waiting: list[Item] = []
    handed_back, graced = frozenset(state.handed_back), frozenset(state.graced)
    known = _each_once(items)
    if handed_back:
        known = [item for item in known if item.state == "done" or item.id not in handed_back]
    live = [item for item in known if item.state in LIVE]
    for item in [item for item in known if item.state != "open"]:  # most of a long list is open
        if item.state in REACHED:
            happenings += _first_reached(item, reached)
        elif item.state in GIVEN_UP:
            if item.before in LIVE and item.id not in graced:
                given_up.append(item)
            elif item.state == "waiting":
                waiting.append(item)
    newly = tuple(item.id for item in given_up)
    owed = (*live, *given_up)
    return Assessment(
        owed=owed,
        waiting=tuple(waiting),
        unread=tuple(unread),
        fingerprint=fingerprint(owed, unread),
        progressed=len(reached) > len(state.reached),
        reached=tuple(reached),
        newly_given_up=newly,
        happenings=tuple(happenings),
    )


def _each_once(items: Iterable[Item]) -> Iterable[Item]:
    """Of items with the same id the first."""
    every = tuple(items)
    if len({item.id for item in every}) == len(every):
        return every
    by_id: dict[str, Item] = {}
    for item in every:
        by_id.setdefault(item.id, item)
    return by_id.values()


def apart(
    items: tuple[Item, ...], reservations: Iterable[Reservation], session: str, now: Instant
) -> tuple[tuple[Item, ...], tuple[Reservation, ...]]:
    """What this session may do of these items, in order; and the holds by which others keep it from the rest.

    What another session finished is not this one's progress either.
    """
    held = {one.item: one for one in reservations if one.session != session and (one.terminal or is_taken(one, now))}
    if not held:
        return items, ()
    mine, others = [], []
    for item in items:
        hold = held.get(item.id)
        if hold is None or (hold.terminal and item.state != "done"):
            mine.append(item)
        elif not hold.terminal:
            others.append(hold)
    return tuple(mine), tuple(others)


def _first_reached(item: Item, reached: dict[str, None]) -> list[Happening]:
    """Notes in `reached` what an item that is being done, or done, attained for the first time, and says so."""
    if item.before in ("done", item.state):
        return []
    key = f"{item.state} {item.id}"
    if key in reached:
        return []
    reached[key] = None
    if item.state == "done":
        reached[f"doing {item.id}"] = None
    return [Happening(kind=f"item_{item.state}", item=item.id, text=item.title)]
