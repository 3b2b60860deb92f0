"""Every state that a model can come to, by breadth first; a broken rule is told as the shortest story.

A *model* is a function from a state to the moves that are possible in it, each with its words, the
state it leads to, and whether it is one that nobody has to make (a person's); a function that says
what is wrong with a state ("" for nothing); and, where states are rich, a key that is the same for
states that are one. Breadth first makes the first broken one a shortest one. Where the model says which
states are at rest, every state must be able to come to rest by the other moves alone: the world is
never stuck. May not live here: any model.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

S = TypeVar("S")


@dataclass
class Explored(Generic[S]):
    """What an exploration has found."""

    states: int = 0
    moves: int = 0
    whole: bool = True  # every reachable state was visited; False: the limit came first
    complete_to: int = 0  # every history of so many moves was tried; with `whole`, every one
    resting: int = 0
    depth: int = 0  # the longest of the shortest ways
    broken: str = ""  # the first rule that was found broken
    story: tuple[str, ...] = ()  # the shortest way there
    words: dict[str, int] = field(default_factory=dict)  # how often each kind of move was made


class _Graph:
    """Where each state was first come from, and the moves by which a world goes on by itself."""

    def __init__(self) -> None:
        self.places: dict[Hashable, int] = {}
        self.before = array("q")
        self.words: list[str] = []
        self.arrows = array("q")  # from, to, from, to ...
        self.resting: list[int] = []

    def add(self, key: Hashable, before: int, words: str) -> int:
        place = len(self.words)
        self.places[key] = place
        self.before.append(before)
        self.words.append(words)
        return place

    def story(self, place: int) -> tuple[str, ...]:
        told = []
        while self.before[place] >= 0:
            told.append(self.words[place])
            place = self.before[place]
        return tuple(reversed(told))

    def stuck(self) -> int:
        """The first state from which no state at rest can be come to; -1 if there is none."""
        backwards: dict[int, list[int]] = {}
        for number in range(0, len(self.arrows), 2):
            backwards.setdefault(self.arrows[number + 1], []).append(self.arrows[number])
        good = bytearray(len(self.words))
        ahead = list(self.resting)
        for place in ahead:
            good[place] = 1
        while ahead:
            for before in backwards.get(ahead.pop(), ()):
                if not good[before]:
                    good[before] = 1
                    ahead.append(before)
        return good.find(0)


def explore(
    begin: S,
    moves: Callable[[S], Iterable[tuple[str, S, bool]]],
    wrong: Callable[[S], str],
    *,
    key: Callable[[S], Hashable] = lambda state: state,
    rests: Callable[[S], bool] | None = None,
    limit: int = 5_000_000,
) -> Explored[S]:
    """Visits every state reachable from `begin`, at most `limit`. `rests`: which states are at rest, if it matters."""
    found: Explored[S] = Explored()
    graph = _Graph()
    graph.add(key(begin), -1, "")
    ahead: deque[tuple[S, int, int]] = deque([(begin, 0, 0)])
    while ahead:
        state, place, depth = ahead.popleft()
        found.states, found.depth = found.states + 1, depth
        broken = wrong(state)
        if broken:
            found.broken, found.story = broken, graph.story(place)
            return found
        if rests is not None and rests(state):
            graph.resting.append(place)
        for words, after, free in moves(state):
            found.moves += 1
            kind = words.partition(":")[0]
            found.words[kind] = found.words.get(kind, 0) + 1
            name = key(after)
            there = graph.places.get(name, -1)
            if there < 0:
                if len(graph.words) >= limit:
                    if found.whole:
                        found.whole, found.complete_to = False, depth
                    continue
                there = graph.add(name, place, words)
                ahead.append((after, there, depth + 1))
            if rests is not None and not free:
                graph.arrows.extend((place, there))
    found.resting = len(graph.resting)
    if rests is not None and found.whole and (stuck := graph.stuck()) >= 0:
        found.broken, found.story = (
            "the world is stuck: whatever it does by itself, it never comes to rest",
            graph.story(stuck),
        )
    return found
