"""The ledger's rules: what may follow what, what is ready, and in which order.

An item is *ready* while it is open and everything it needs is done or dropped. The ready queue is
by priority (0 first), then age, then number. Needs never form a circle: `circle` finds the one
that a change would close.

Works on any values with the fields of a ledger item (`store.port.LedgerItem`), so the store can
ask the same question in SQL; a test holds the two answers equal. May not live here: the store,
who holds an item (`core.reservations`), running a verify command.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol, TypeVar

    from stopwarden.core.events import Instant

    class Listed(Protocol):
        """What the rules look at."""

        @property
        def number(self) -> int: ...
        @property
        def state(self) -> str: ...
        @property
        def priority(self) -> int: ...
        @property
        def needs(self) -> tuple[int, ...]: ...
        @property
        def created_at(self) -> Instant: ...

    L = TypeVar("L", bound=Listed)

OVER = ("done", "dropped")  # what needs it may begin
PRIORITIES = range(5)  # 0 first
PRIORITY_DEFAULT = 2


def ready(items: Iterable[L], everything: Iterable[Listed]) -> list[L]:
    """Those of `items` that are ready, in order; `everything` holds whatever they may need."""
    states = {one.number: one.state for one in everything}
    found = [item for item in items if item.state == "open" and not unmet(item, states)]
    return sorted(found, key=lambda item: (item.priority, item.created_at, item.number))


def unmet(item: Listed, states: Mapping[int, str]) -> tuple[int, ...]:
    """The numbers it needs that are not over. One that does not exist is needed no more."""
    return tuple(need for need in item.needs if states.get(need, "done") not in OVER)


def circle(number: int, needs: Iterable[int], known: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """The way from the item back to itself that these needs would close, both ends included; () if none."""
    came_from: dict[int, int] = {}
    ahead = list(needs)
    for first in ahead:
        came_from.setdefault(first, number)
    while ahead:
        at = ahead.pop()
        if at == number:
            way = [number]
            back = came_from[number]
            while back != number:
                way.append(back)
                back = came_from[back]
            way.append(number)
            return tuple(reversed(way))
        for further in known.get(at, ()):
            if further not in came_from:
                came_from[further] = at
                ahead.append(further)
    return ()
