"""Every state that a model can come to, by breadth first; a broken rule is told as the shortest story.

A *model* is a function from a state to the moves that are possible in it, each with its words and
the state it leads to, and a function that says what is wrong with a state ("" for nothing). States
are values; breadth first makes the first broken one a shortest one. May not live here: any model.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

S = TypeVar("S", bound="Hashable")


@dataclass
class Explored(Generic[S]):
    """What an exploration has found."""

    states: int = 0
    moves: int = 0
    whole: bool = True  # every reachable state was visited; False: the limit came first
    ends: int = 0  # states without any move
    broken: str = ""  # the first rule that was found broken
    story: tuple[str, ...] = ()  # the shortest way there
    words: dict[str, int] = field(default_factory=dict)  # how often each kind of move was made


def explore(
    begin: S,
    moves: Callable[[S], Iterable[tuple[str, S]]],
    wrong: Callable[[S, bool], str],
    *,
    limit: int = 5_000_000,
) -> Explored[S]:
    """Visits every state reachable from `begin`, at most `limit`.

    `wrong` is asked of each state, and told whether it is an end (no move is possible).
    """
    found: Explored[S] = Explored()
    came_from: dict[S, tuple[S, str] | None] = {begin: None}
    ahead = deque([begin])
    while ahead:
        state = ahead.popleft()
        found.states += 1
        possible = list(moves(state))
        found.ends += not possible
        broken = wrong(state, not possible)
        if broken:
            found.broken, found.story = broken, _story(state, came_from)
            return found
        for words, after in possible:
            found.moves += 1
            kind = words.partition(":")[0]
            found.words[kind] = found.words.get(kind, 0) + 1
            if after not in came_from:
                if len(came_from) >= limit:
                    found.whole = False
                    continue
                came_from[after] = (state, words)
                ahead.append(after)
    return found


def _story(state: S, came_from: dict[S, tuple[S, str] | None]) -> tuple[str, ...]:
    told = []
    step = came_from[state]
    while step is not None:
        before, words = step
        told.append(words)
        step = came_from[before]
    return tuple(reversed(told))
