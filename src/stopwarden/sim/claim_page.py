"""What an exploration of the claim protocol says to a person: dimensions, bounds, counts, pairs, and a story.

May not live here: the model (`claim_model`), what a pair is (`claim_pairs`).
"""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stopwarden.sim import claim_model, claim_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stopwarden.sim.claim_model import Bounds, World
    from stopwarden.sim.explorer import Explored

HELD = (
    "Held in every one, said over what was sent and admitted: never a third continuation without a word of the",
    "person (I1), none without a claim of its own, none ahead of a prompt admitted before that claim (I2), no wait",
    "for a prompt that is not there (I3), none of the guard's words in history without a stream (I4), every word of",
    "the person given to the model once (I5), nothing sent after a cancel, in plan mode or after a refusal (I6), no",
    "hook's answer that the person had overtaken; and from every state the world comes to rest by itself.",
)


@dataclass
class Told:
    """The parts of one exploration, in order, up to the first that is broken."""

    parts: list[tuple[str, Bounds, Explored[World]]] = field(default_factory=list)
    met: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    all_dimensions: bool = True

    @property
    def broken(self) -> str:
        """The rule that was broken; "" for none."""
        return self.parts[-1][2].broken

    def as_json(self) -> dict[str, Any]:
        """Everything as one JSON object."""
        met = [pair for pair in claim_pairs.every_pair() if self.met[pair]]
        return {
            "v": 2,
            "parts": [
                {
                    "name": name,
                    "bounds": bounds.as_dict(),
                    "states": found.states,
                    "moves": found.moves,
                    "whole": found.whole,
                    "complete_to": found.complete_to,
                    "kinds": found.words,
                }
                for name, bounds, found in self.parts
            ],
            "pairs": [{"side": one[0], "state": one[1], "event": one[2], "times": self.met[one]} for one in met],
            "broken": self.broken or None,
            "story": list(self.parts[-1][2].story),
        }

    def lines(self) -> Iterator[str]:
        """Everything for a terminal."""
        for name, bounds, found in self.parts:
            yield f"{name}"
            yield f"  {_bounds(bounds)}"
            until = "all of them" if found.whole else f"all that {found.complete_to} events can lead to, and more"
            yield f"  {found.states:,} states, {found.moves:,} moves; {until}"
        yield "\nWhat happened, in all parts together:"
        words: Counter[str] = Counter()
        for _, _, found in self.parts:
            words.update(found.words)
        for kind, times in sorted(words.items()):
            yield f"  {times:>9,}  {kind}"
        if self.broken:
            yield f"\nBROKEN  {self.broken}"
            for place, step in enumerate(self.parts[-1][2].story, start=1):
                yield f"  {place:>2}  {step.removesuffix(': ')}"
            return
        if self.all_dimensions:
            yield from self._pairs()
        yield ""
        yield from HELD

    def _pairs(self) -> Iterator[str]:
        every = claim_pairs.every_pair()
        unmet = claim_pairs.unmet(self.met)
        yield f"\nStates and events of the claim protocol: {len(every) - len(unmet)} of {len(every)} pairs met."
        for side, state in dict.fromkeys(pair[:2] for pair in every):
            times = [
                f"{event} {self.met[side, state, event]:,}" for _, _, event in every if self.met[side, state, event]
            ]
            yield f"  {side}, {state}: {'; '.join(dict.fromkeys(times))}"
        yield "The others meet in no history within the bounds:"
        for why, pairs in claim_pairs.explained(unmet).items():
            yield f"  {why}:"
            for side, state in dict.fromkeys(pair[:2] for pair in pairs):
                yield f"    {side}, {state}: {'; '.join(event for a, b, event in pairs if (a, b) == (side, state))}"


def _bounds(bounds: Bounds) -> str:
    """The dimensions of a part and how much of each."""
    told = bounds.as_dict()
    amounts = [f"{told[name]} {name}" for name in ("prompts", "words", "orders", "answers")]
    on = [name for name, value in told.items() if value is True]
    return f"at a time at most {', '.join(amounts)}; as often as you like: {', '.join(on)}"


def told(prompts: int | None = None, *, deep: bool = False) -> Told:
    """Explores all parts, or with `prompts` only prompts and their removal."""
    parts = claim_model.DEEP if deep else claim_model.PARTS
    if prompts is not None:
        parts = (("prompts, claims, releases", claim_model.LITTLE.replace(prompts=prompts), 0),)
    done = Told(all_dimensions=prompts is None)
    collecting = gc.isenabled()
    gc.disable()  # states hold on to each other for as long as it takes: there is nothing to collect
    try:
        for name, bounds, limit in parts:
            found, met = claim_model.explore_part(bounds, limit)
            done.parts.append((name, bounds, found))
            done.met += met
            if found.broken:
                break
    finally:
        if collecting:
            gc.enable()
    return done
