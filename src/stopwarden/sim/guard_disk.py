"""What a simulated session has on disk: exactly what its effects wrote, and what a new process makes of it.

Whatever crashes, crashes between two effects, so the disk holds the ones before. History is a list of
entries; a staged entry is the intent to send, on disk before anything goes to the provider. `recovered`
is what loading does with entries that nobody committed: the provider may have had them, or not. Words of
people and results of tools go into history (the model may meet them twice, never not at all); what the
backlog had given out is still waiting there and goes again; words of ours are gone.

May not live here: when a crash comes (`guard_wire`), what is asked of the disk (`guard_book`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import backlog_events as waits
from stopwarden.core import chain_words as words
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import SETTLED_RESULTS
from stopwarden.core.fires import Fire
from stopwarden.core.gaps import Gap, MarkTold, OpenGap
from stopwarden.core.results import Result
from stopwarden.core.turn_state import CARRIED

if TYPE_CHECKING:
    from stopwarden.core.gaps import ReadGaps
    from stopwarden.core.lineage import Task
    from stopwarden.core.record import Record


class Disk:
    """One session's store."""

    def __init__(self) -> None:
        self.history: dict[str, tuple[ev.Part, ...]] = {}
        self.staged: dict[str, tuple[ev.Part, ...]] = {}
        self.held: dict[str, ev.Part] = {}  # words that no entry has yet
        self.fresh: set[str] = set()  # those of them that the process of now still knows of
        self.waiting: dict[str, Result | Fire] = {}
        self.settled: dict[str, None] = {}
        self.gaps: dict[int, Gap] = {}
        self.numbers: dict[str, int] = {}  # of gap entries, by what was left out
        self.cancelled = False  # and no ordinary prompt has begun since
        self.last_id = 0  # no process uses an id twice: it names entries

    def write(self, effect: ev.Effect) -> None:
        """The effect is on disk from here on."""
        self.last_id = max(self.last_id, effect.id)
        match effect:
            case ev.WriteHistory(act="stage"):
                self.staged[effect.entry] = effect.parts
            case ev.WriteHistory(act="append"):
                self._enter(effect.entry, effect.parts)
            case ev.WriteHistory(act="commit"):
                self._enter(effect.entry, self.staged.pop(effect.entry))
            case ev.WriteHistory():
                self.staged.pop(effect.entry)
            case ev.HoldWords():
                self.held.update((part.id, part) for part in effect.parts)
                self.fresh.update(part.id for part in effect.parts)
            case ev.Pass():
                self._keep(effect.what)
            case _:
                pass

    def _enter(self, entry: str, parts: tuple[ev.Part, ...]) -> None:
        self.history[entry] = parts
        for part in parts:
            self.held.pop(part.id, None)

    def _keep(self, what: Record) -> None:
        match what:
            case waits.Keep():
                self.waiting[what.item.id] = what.item
            case waits.Settle():
                self._settle(what.ids)
            case OpenGap():
                self.gaps[what.gap.number] = what.gap
                self.numbers[what.gap.id] = what.gap.number
                self._settle((what.gap.id,))
            case words.GuardChanged():
                held = what.suspended_by
                self.cancelled = held == "cancelled" or (self.cancelled and held is not None)
            case MarkTold():
                for one in what.ids:
                    number = self.numbers[one]
                    told = {"told_model": True} if what.to == "model" else {"told_person": True}
                    self.gaps[number] = self.gaps[number].replace(**told)
            case _:
                pass

    def _settle(self, ids: tuple[str, ...]) -> None:
        for one in ids:
            self.waiting.pop(one, None)
            self.settled[one] = None

    @property
    def stages_ours(self) -> bool:
        """Whether an instruction of the guard's is about to be sent, or under way."""
        return any(part.kind == "guard" for parts in self.staged.values() for part in parts)

    @property
    def open_gaps(self) -> tuple[Gap, ...]:
        """Entries that model or person do not know of, in order."""
        return tuple(gap for _, gap in sorted(self.gaps.items()) if not (gap.told_model and gap.told_person))

    def knows(self, id: str) -> bool:
        """Whether a result or fire was ever written."""
        return id in self.waiting or id in self.settled

    def read(self, asked: ReadGaps) -> tuple[Gap, ...]:
        """The answer to a question for further gap entries."""
        found = [gap for gap in self.open_gaps if asked.after < gap.number <= asked.through]
        return tuple(found[: asked.limit])

    def process_gone(self) -> None:
        """Whoever held words in memory too is gone: from now on the disk alone knows of them."""
        self.fresh.clear()

    def recover(self) -> tuple[ev.WriteHistory, ...]:
        """What loading writes: words that were held or staged into history, each once; intents are taken back."""
        written: list[ev.WriteHistory] = []
        held = tuple(part for name, part in self.held.items() if name not in self.fresh)
        for entry, staged in self.staged.items():
            parts = tuple(part for part in staged if part.kind not in (*CARRIED, "guard", "away"))
            held = tuple(part for part in held if part not in parts)
            written.append(ev.WriteHistory(id=0, act="roll_back", entry=entry))
            if parts:
                written.append(ev.WriteHistory(id=0, act="append", entry=f"{entry}-again", parts=parts))
        if held:
            written.append(ev.WriteHistory(id=0, act="append", entry=f"held-{self.last_id}", parts=held))
        return tuple(written)

    def restored(self, world: tuple[Task, ...]) -> waits.Restored:
        """What waits, for a new process. What is in history already was delivered, whatever else was not written."""
        there = {part.id for parts in self.history.values() for part in parts}
        left = [item for one, item in self.waiting.items() if one not in there]
        return waits.Restored(
            results=tuple(item for item in left if isinstance(item, Result)),
            fires=tuple(item for item in left if isinstance(item, Fire)),
            gaps=self.open_gaps,
            next_gap=max(self.gaps, default=0) + 1,
            settled=tuple(self.settled)[-SETTLED_RESULTS:],
            world=world,
        )
