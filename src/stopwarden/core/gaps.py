"""Gap notices: every result that a bounded queue left out, named to the model and to the person, each once.

Theory of operation. A result that finds no room is not lost: its text is in the store already, and a
*gap entry* says its id, its task and where to read it. Entries are numbered in the order they came
and written to the store before anything else happens. For each addressee an entry is untold, being
told, or told. The model is told with the next turn of any kind; an entry rides on one turn and is told when
the provider has accepted that turn, and is untold again when the turn came to nothing. The person is
told by an event, one at a time, so a burst becomes a few lines and not a thousand. Told marks are
written to the store; after a restart the entries that it still holds open are read back.

In memory are at most `GAPS_HELD` entries, always the lowest numbers; the further ones are in the store
and are read when there is room. A notice names at most `GAPS_IN_A_NOTICE`; the rest follow in the next.
So memory, a notice and a turn's text stay bounded while nothing is left unnamed.

May not live here: the queues (notifications.py, fires.py), wording, the store.
"""

from __future__ import annotations

from stopwarden.core.bounds import GAPS_HELD, GAPS_IN_A_NOTICE
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Addressee = Literal["model", "person"]
    Why = Literal["queue_full", "cleared"]


class Gap(Record):
    """One result that was left out. `where` is how to read it; `turn` is the turn that tells the model now."""

    number: int
    id: str
    kind: str
    task: str
    where: str
    why: Why
    told_model: bool = False
    told_person: bool = False
    turn: str = ""
    showing: bool = False


class Gaps(Record):
    """The open entries in memory, the number the next one gets, and the highest number ever taken into memory."""

    open: tuple[Gap, ...] = ()
    next: int = 1
    held: int = 0

    @property
    def further(self) -> int:
        """How many open entries are in the store alone."""
        return self.next - 1 - self.held


class OpenGap(Record):
    """Effect: write this entry to the store, with the told marks it has, before the step's other effects."""

    gap: Gap


class MarkTold(Record):
    """Effect: write to the store that these results were told; an entry told to both is closed."""

    to: Addressee
    ids: tuple[str, ...]


class ShowGaps(Record):
    """Effect: tell the person of these entries, then answer with `GapsShown` for their ids."""

    gaps: tuple[Gap, ...]


class ReadGaps(Record):
    """Effect: read at most `limit` entries numbered above `after` up to `through`; answer with `GapsRead`."""

    after: int
    through: int
    limit: int


Effects = tuple[Record, ...]
Step = tuple[Gaps, Effects]


def opened(gaps: Gaps, results: tuple[tuple[str, str, str, str], ...], why: Why) -> Step:
    """Entries for results (id, kind, task, where) that were left out, in this order; the person is told."""
    effects: list[Record] = []
    for id, kind, task, where in results:
        gap = Gap(number=gaps.next, id=id, kind=kind, task=task, where=where, why=why)
        effects.append(OpenGap(gap=gap))
        fits = not gaps.further and len(gaps.open) < GAPS_HELD
        gaps = gaps.replace(
            open=(*gaps.open, gap) if fits else gaps.open, next=gaps.next + 1, held=gap.number if fits else gaps.held
        )
    gaps, shown = _shown_next(gaps)
    return gaps, (*effects, *shown)


def ride(gaps: Gaps, turn: str) -> tuple[Gaps, tuple[Gap, ...]]:
    """The entries that this turn tells the model: the first untold ones that no other turn carries."""
    riders = [gap for gap in gaps.open if not gap.told_model and not gap.turn][:GAPS_IN_A_NOTICE]
    if not riders:
        return gaps, ()
    numbers = frozenset(gap.number for gap in riders)
    changed = tuple(gap.replace(turn=turn) if gap.number in numbers else gap for gap in gaps.open)
    return gaps.replace(open=changed), tuple(riders)


def accepted(gaps: Gaps, turn: str) -> Step:
    """The provider has accepted the turn: what rode on it is told. A turn that carries nothing changes nothing."""
    riders = tuple(gap.id for gap in gaps.open if turn and gap.turn == turn)
    if not riders:
        return gaps, ()
    told = tuple(gap.replace(turn="", told_model=True) if gap.turn == turn else gap for gap in gaps.open)
    gaps, read = _closed(gaps.replace(open=told))
    return gaps, (MarkTold(to="model", ids=riders), *read)


def returned(gaps: Gaps, turn: str) -> Gaps:
    """The turn came to nothing: what rode on it is untold again."""
    if not any(turn and gap.turn == turn for gap in gaps.open):
        return gaps
    return gaps.replace(open=tuple(gap.replace(turn="") if gap.turn == turn else gap for gap in gaps.open))


def shown(gaps: Gaps, ids: tuple[str, ...], *, done: bool) -> Step:
    """The person was told of these results, or (`done` false) could not be: then they are told again.

    Ids that are not being shown change nothing, so an answer that comes twice is harmless.
    """
    answered = frozenset(gap.number for gap in gaps.open if gap.showing and gap.id in ids)
    if not answered:
        return gaps, ()
    marked = tuple(gap.id for gap in gaps.open if gap.number in answered)
    gaps = gaps.replace(
        open=tuple(gap.replace(showing=False, told_person=done) if gap.number in answered else gap for gap in gaps.open)
    )
    if not done:
        return gaps, ()
    gaps, read = _closed(gaps)
    gaps, more = _shown_next(gaps)
    return gaps, (MarkTold(to="person", ids=marked), *read, *more)


def show_again(gaps: Gaps) -> Step:
    """There is somebody to tell (a client came, the page opened): what the person does not know is shown.

    Asks for further entries too, in case an earlier question was never answered.
    """
    gaps, read = _closed(gaps)
    gaps, effects = _shown_next(gaps)
    return gaps, (*read, *effects)


def read(gaps: Gaps, asked: ReadGaps, entries: tuple[Gap, ...]) -> Step:
    """The store's answer to `asked`, lowest numbers first. An answer to an older question changes nothing."""
    room = min(asked.limit, GAPS_HELD - len(gaps.open))
    if asked.after != gaps.held or asked.through >= gaps.next or room < 1:
        return gaps, ()
    found = tuple(gap for gap in entries if asked.after < gap.number <= asked.through)[:room]
    # Fewer than asked for means that the store holds no others up to `through`.
    held = found[-1].number if len(found) == room else asked.through
    gaps = gaps.replace(open=(*gaps.open, *map(_at_rest, found)), held=held)
    gaps, more = _closed(gaps)
    gaps, effects = _shown_next(gaps)
    return gaps, (*more, *effects)


def restored(entries: tuple[Gap, ...], next: int) -> Step:
    """After a restart: the open entries of the store, lowest numbers first, and the number the next one gets.

    What was under way is untold: a turn or an event that was not answered is made again.
    """
    kept = tuple(map(_at_rest, sorted(entries, key=lambda gap: gap.number)))[:GAPS_HELD]
    held = kept[-1].number if len(kept) == GAPS_HELD else next - 1
    gaps, read = _closed(Gaps(open=kept, next=next, held=held))
    gaps, effects = _shown_next(gaps)
    return gaps, (*read, *effects)


def _at_rest(gap: Gap) -> Gap:
    return gap.replace(turn="", showing=False)


def _closed(gaps: Gaps) -> Step:
    """Without the entries that both know; where that makes room, further ones are asked for."""
    still = tuple(gap for gap in gaps.open if not (gap.told_model and gap.told_person))
    gaps = gaps.replace(open=still)
    if not gaps.further or len(still) == GAPS_HELD:
        return gaps, ()
    return gaps, (ReadGaps(after=gaps.held, through=gaps.next - 1, limit=GAPS_HELD - len(still)),)


def _shown_next(gaps: Gaps) -> Step:
    """One event to the person at a time: while one is on its way, further entries wait for the next."""
    if any(gap.showing for gap in gaps.open):
        return gaps, ()
    first = [gap for gap in gaps.open if not gap.told_person][:GAPS_IN_A_NOTICE]
    if not first:
        return gaps, ()
    numbers = frozenset(gap.number for gap in first)
    changed = tuple(gap.replace(showing=True) if gap.number in numbers else gap for gap in gaps.open)
    return gaps.replace(open=changed), (ShowGaps(gaps=tuple(first)),)
