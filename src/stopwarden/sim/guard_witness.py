"""The second book of a guard simulation: promises about order, room, counts, lineage, gaps and ends.

Like the first (`guard_book`) it is kept from what goes in and what comes out. It asks more of a history
than what may not be sent: that a turn which had every reason to go on did, that each stream of the guard was
looked at in the right order, that each attempt is counted when its stream begins and at no other time,
that what is left out is named, and who comes before whom. May not live here: what happens next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import away_words as away
from stopwarden.core import backlog_events as waits
from stopwarden.core import chain_words as words
from stopwarden.core import door_events as asks
from stopwarden.core import gaps
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_TIMEOUTS_MAX
from stopwarden.core.fires import Fire
from stopwarden.sim.guard_kin import Kin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from stopwarden.core.record import Record
    from stopwarden.sim.guard_book import Book

# How a turn may end although its list is unfinished, with nothing in its way and no fault anywhere.
MAY_END = frozenset({"yielded", "cancelled", "exhausted", "deferred", "bound_reached"})

MAKES_OWN = (ev.BackgroundChanged, waits.Spawned, waits.MessageSending, waits.MessageSettled)


class Witness:
    """What else was promised in one history."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.kin = Kin()
        self.switch, self.mode_moved, self.disposed = "on", False, False
        # what was left out, and who was told
        self.gaps: set[str] = set()
        self.person: set[str] = set()
        self.model: set[str] = set()
        self.again: set[str] = set()  # told before a crash: may be told again
        # the owner's side
        self.admitted: set[str] = set()
        self.ran: set[str] = set()
        self.last_end = ""
        self._at_rest()

    def _at_rest(self) -> None:
        """What is known of the running process alone."""
        # the turn; `left` is its own list, as it stands
        self.ordinary, self.clean, self.left = False, False, 0
        self.missed = 0  # drains that may have been given up on
        # the preparation of a stream
        self.drain, self.heard_nothing, self.claim_is_next = 0, False, False
        self.looks, self.looks_due = 0, 2  # drains that brought nothing
        self.hooks, self.compress, self.tokens, self.no_room, self.too_big = 0, 0, 0, False, False
        # attempts
        self.counted, self.begun, self.exhausted = 0, 0, False
        # who comes first
        self.told_to_yield, self.gave_way, self.paused, self.not_before = False, False, False, 0
        self.arriving: set[int] = set()
        self.admission = False  # since the last turn began
        self.perhaps_guest = False  # an automatic turn that began no chain: it goes on with one, or is its guest
        self.newest, self.cleared, self.cut = "", False, ""
        self.showing: set[str] = set()

    # ---- what the session is told

    def heard(self, event: Record) -> None:
        """An event goes into the session."""
        if self.perhaps_guest and isinstance(event, MAKES_OWN):  # what a guest makes is not the chain's own
            self.kin.doubted()
        self.kin.heard(event)
        self.cleared = isinstance(event, waits.Cleared)
        self.clean = self.clean and not self.cleared
        take = HEARD.get(type(event))
        if take is not None:
            take(self, event)

    def _mode(self, event: ev.ModeChanged) -> None:
        self.mode_moved, self.clean = True, False

    def _switched(self, event: ev.SwitchSet) -> None:
        self.switch, self.clean = event.switch, False

    def _gate(self, event: ev.GateTaken | asks.MoveAsked | away.AwaySet) -> None:
        self.clean = False

    def _moved(self, event: asks.PlaceRead) -> None:
        self.gave_way = self.clean = False

    def _listed(self, event: ev.TodoWritten) -> None:
        if event.turn == self.book.turn and event.todos is not None and not self.book.superseded:
            self.left = event.todos.unfinished

    def _drained(self, event: ev.DrainAnswered) -> None:
        if event.id == self.drain:
            self.drain = 0
            self.heard_nothing = event.reliable and not event.unknown_method and not event.parts
            self.looks += self.heard_nothing

    def _stops(self, event: ev.StreamEnded | ev.ToolsDone) -> None:
        # One at the stop, one before the stream; the one after tools may come to nothing.
        self.looks, self.looks_due = 0, 2 if isinstance(event, ev.StreamEnded) else 1

    def _hooked(self, event: ev.HookAnswered) -> None:
        if event.id == self.hooks:  # they may have been slow: it is looked again
            self.hooks, self.looks = 0, 0

    def _ticked(self, event: ev.Tick) -> None:
        if self.drain:  # it may have taken too long; after three of these the session asks for none any more
            self.clean, self.missed = False, self.missed + 1

    def _claimed(self, event: ev.ClaimAnswered) -> None:
        self.told_to_yield = self.told_to_yield or (event.claimed is False and event.queued is True)

    def _not_compressed(self, event: ev.CompressionFailed) -> None:
        self.no_room = self.no_room or event.id == self.compress

    def _measured(self, event: ev.TokensChecked) -> None:
        self.too_big = self.too_big or (event.id == self.tokens and not event.fits)

    def _admitted(self, event: ev.WriterAdmitted) -> None:
        self.arriving.discard(event.id)
        self.admission = True
        self.gave_way, self.not_before = False, 0
        self.paused = self.paused and not event.granted

    def _released(self, event: ev.QueueReleased) -> None:
        self.gave_way = self.clean = False

    def _cancelled(self, event: ev.Cancelled) -> None:
        self.gave_way, self.paused, self.clean = False, True, False
        self.cut = self.book.turn

    def _disposed(self, event: ev.Disposed) -> None:
        self.gave_way, self.disposed = False, True
        self.arriving.clear()

    def _shown(self, event: waits.GapsShown) -> None:
        told = self.showing.intersection(event.ids)
        self.showing -= told
        if event.done:
            self.person |= told

    # ---- what the session asks for

    def done(self, effect: ev.Effect, chain_number: int) -> None:
        """An effect came out of the session; the first book has not seen it yet."""
        match effect:
            case ev.BeginTurn():
                self._begins(effect, chain_number)
            case ev.EndTurn():
                self._ends(effect)
            case ev.AdmitWriter():
                self.arriving.add(effect.id)
            case ev.Refuse():
                self.gave_way = False
            case ev.Drain():
                self.drain, self.heard_nothing = effect.id, False
            case ev.Claim() if not effect.probe:
                self.claim_is_next = self.heard_nothing and self.looks >= self.looks_due
                self.heard_nothing = False
            case ev.RunHooks():
                self.hooks = effect.id
            case ev.Compress():
                self.compress, self.no_room = effect.id, False
            case ev.CheckTokens():
                self.tokens, self.too_big = effect.id, False
            case ev.Send():
                self._sends(effect)
                self.no_room = False  # that was about this stream; a model chosen for pictures needs no room made
            case ev.WriteHistory():
                self._writes(effect)
            case ev.Pass():
                take = PASSED.get(type(effect.what))
                if take is not None:
                    take(self, effect.what)
            case _:
                pass

    def _begins(self, effect: ev.BeginTurn, chain_number: int) -> None:
        book = self.book
        book.checked("Order")
        self.told_to_yield, self.no_room, self.too_big, self.left = False, False, False, 0
        self.counted = self.begun = 0
        if effect.kind == ev.FOREGROUND:
            self.ordinary = book.kinds.get(effect.turn) == ev.ORDINARY
            self.clean = (
                self.ordinary
                and not (book.plan or book.away or self.mode_moved)
                and self.switch == "on"
                and self.missed < DRAIN_TIMEOUTS_MAX
            )
            if self.ordinary:
                self.exhausted = False
            if self.ordinary and not book.plan and not self.mode_moved:
                self.kin.began()
            elif not (self.ordinary and book.plan and not self.mode_moved):
                self.kin.doubted()
            self.mode_moved = self.admission = self.perhaps_guest = False
            return
        self.ordinary = self.clean = False
        if chain_number != book.chain and self.admission:  # of a prompt that never began
            self.kin.doubted()
        elif chain_number != book.chain:
            self.kin.began()
        self.perhaps_guest = chain_number == book.chain
        self.admission = False
        if self.gave_way:
            book.wrong("Order: an automatic turn begins before the queued prompt that was given way to")
        if self.arriving:
            book.wrong("Order: an automatic turn begins while a prompt is being admitted")
        if self.paused and effect.kind == ev.NOTIFICATION:
            book.wrong("Order: results begin a turn after a cancel, before the next prompt")
        if book.clock < self.not_before:
            book.wrong("Order: a turn that failed is tried again before its time")

    def _ends(self, effect: ev.EndTurn) -> None:
        book = self.book
        if effect.turn != book.turn:
            return
        if self.cut == effect.turn and effect.kind != "cancelled":
            book.wrong(f"Order: a turn that the person cancelled ends as {effect.kind}")
        if effect.kind == "yielded":
            book.checked("Order")
            if not self.told_to_yield:
                book.wrong("Order: a turn gives way, and no claim said that a prompt is queued")
            self.gave_way = True
        if effect.kind == "deferred" and self.kin.certain:
            book.checked("Kin")
            if not self.kin.live() and not any(one.related for one in self.kin.kept.values()):
                book.wrong("Kin: a stop is put off, and no work of this chain is still to come")
        ours = not book.away  # while away the check is the policy, and not the guard
        if ours and self.clean and self.left and not book.forbidden and effect.kind not in MAY_END:
            book.checked("Goes on")
            if effect.kind == "done" or not any(name.startswith("fault ") for name in book.hits):
                book.wrong(
                    f"Goes on: a turn ends as {effect.kind} with {self.left} items open, and nothing is in its way"
                )

    def _sends(self, send: ev.Send) -> None:
        book = self.book
        book.checked("Room")
        if self.too_big:
            book.wrong("Room: what does not fit is sent")
        if not send.attempt:
            return
        book.checked("Looked")
        if self.switch != "on":
            book.wrong(f"I6: a stream of the guard is sent while it is switched to {self.switch}")
        if not self.claim_is_next:
            book.wrong("Looked: a stream of the guard is sent, and no drain that brought nothing came before its claim")
        if self.no_room:
            book.wrong("Room: the guard sends although compression failed")
        self.claim_is_next = False
        if any(part.kind == "guard" for part in send.parts) and self.kin.certain:
            book.checked("Kin")
            if self.kin.live():
                book.wrong(f"Kin: the guard goes on while {', '.join(self.kin.live())} of its own chain still runs")

    def _writes(self, effect: ev.WriteHistory) -> None:
        book = self.book
        send = book.staged.get(effect.entry) if effect.act != "append" else None
        if send is not None and send.attempt:
            book.checked("Counted")
            self.begun += effect.act == "commit"
            if self.counted != self.begun:
                book.wrong(f"Counted: {self.counted} attempts are counted, and {self.begun} streams of the guard began")
            if effect.act == "commit" and book.forbidden:
                book.wrong(f"I6: a stream of the guard is taken into history after {book.forbidden}")
        if effect.act not in ("commit", "append"):
            return
        for part in send.parts if send is not None else effect.parts:
            if part.kind == "gap":
                book.checked("Gaps")
                if part.id in self.model - self.again:
                    book.wrong(f"Gaps: the model is told of {part.id} twice")
                self.model.add(part.id)

    def _attempt(self, what: words.AttemptCounted) -> None:
        self.counted += 1

    def _exhausts(self, what: words.Exhausted) -> None:
        self.book.checked("Counted")
        if self.exhausted:
            self.book.wrong("Counted: exhaustion is told twice")
        self.exhausted = True

    def _later(self, what: waits.RetryLater) -> None:
        self.not_before = self.book.clock + 1_000 * what.seconds

    def _keeps(self, what: waits.Keep) -> None:
        one = what.item
        self.kin.kept[one.id] = one
        self.newest = one.id
        if not self.kin.certain:
            return
        self.book.checked("Kin")
        if self.kin.related(one) != one.related:
            named = f"{one.kind} {one.job}" if isinstance(one, Fire) else f"{one.kind} {one.task}"
            is_so = (
                "is taken for the chain's own, and is not"
                if one.related
                else "is the chain's own, and is not taken for it"
            )
            self.book.wrong(f"Kin: {one.id} of {named} {is_so}")

    def _settles(self, what: waits.Settle) -> None:
        for name in what.ids:
            self.kin.kept.pop(name, None)

    def _opens(self, what: gaps.OpenGap) -> None:
        self.gaps.add(what.gap.id)

    def _left_out(self, what: waits.LeftOut) -> None:
        self.book.checked("Gaps")
        for name in what.ids:
            if name not in self.gaps:
                self.book.wrong(f"Gaps: {name} is left out, and no gap entry names it")
        gone = [self.kin.kept.pop(name) for name in what.ids if name in self.kin.kept]
        if self.disposed or self.cleared or not self.kin.certain:
            return
        for one in gone:
            if isinstance(one, Fire):
                if one.related:
                    self.book.wrong(f"Gaps: the wakeup {one.id} is left out, which the chain waits for")
            elif one.related and (one.id != self.newest or not one.interim) and self._holds() and self._others():
                self.book.wrong(f"Gaps: {one.id} is left out, which the chain waits for, and others wait")

    def _holds(self) -> bool:
        """Whether for certain a chain with an unfinished list holds others back."""
        return self.clean and self.left > 0 and not self.book.forbidden

    def _others(self) -> bool:
        return any(not isinstance(one, Fire) and not one.related for one in self.kin.kept.values())

    def _marks(self, what: gaps.MarkTold) -> None:
        self.book.checked("Gaps")
        known = self.model if what.to == "model" else self.person
        missing = [name for name in what.ids if name not in known]
        if missing:
            self.book.wrong(f"Gaps: the {what.to} counts as told of {', '.join(missing)}, and is not")

    def _shows(self, what: gaps.ShowGaps) -> None:
        self.book.checked("Gaps")
        for gap in what.gaps:
            if gap.id in self.person - self.again:
                self.book.wrong(f"Gaps: the person is told of {gap.id} twice")
            self.showing.add(gap.id)

    # ---- the owner's side

    def owner_did(self, effect: q.Effect) -> None:
        """An effect came out of the queue."""
        match effect:
            case q.WriteLedger(state="in_flight"):
                self.admitted.add(effect.prompt)
            case q.WriteLedger():
                self.book.checked("Ends")
                if effect.prompt not in self.admitted:
                    self.book.wrong(f"Ends: {effect.prompt} ends twice, or was never admitted")
                self.admitted.discard(effect.prompt)
                if effect.prompt in self.ran:
                    self.last_end = effect.state
            case q.RunPrompt():
                self.ran.add(effect.prompt)
                self.book.checked("Ends")
                if (
                    effect.trust
                    and self.last_end != "failed"
                    and (effect.trust, self.last_end) != ("continue", "cancelled")
                ):
                    self.book.wrong(
                        f"Ends: {effect.prompt} is vouched for as a {effect.trust} after a turn that {self.last_end}"
                    )
                self.last_end = ""
            case _:
                pass

    # ---- restart, and the end

    def restarted(self) -> None:
        """A new process. What was in the memory of the old one is gone; what it told of may be told again."""
        self._at_rest()
        self.switch, self.disposed = "on", False
        self.again |= self.person | self.model
        self.kin.restarted()

    def untold(self) -> set[str]:
        """What was left out, and the model was not told of it yet."""
        return self.gaps - self.model

    def settled(self) -> None:
        """Once things are quiet."""
        self.book.checked("Gaps", len(self.gaps))
        for name in sorted(self.gaps - self.person):
            self.book.wrong(f"Gaps: the person is never told of {name}")
        for name in sorted(self.untold()):
            self.book.wrong(f"Gaps: the model is never told of {name}")
        for name in sorted(self.admitted):
            self.book.wrong(f"Ends: {name} never ends")


HEARD: Mapping[type[Record], Callable[[Witness, Any], None]] = {
    ev.ModeChanged: Witness._mode,
    ev.SwitchSet: Witness._switched,
    ev.GateTaken: Witness._gate,
    asks.MoveAsked: Witness._gate,
    away.AwaySet: Witness._gate,
    asks.PlaceRead: Witness._moved,
    ev.TodoWritten: Witness._listed,
    ev.DrainAnswered: Witness._drained,
    ev.Tick: Witness._ticked,
    ev.StreamEnded: Witness._stops,
    ev.ToolsDone: Witness._stops,
    ev.HookAnswered: Witness._hooked,
    ev.ClaimAnswered: Witness._claimed,
    ev.CompressionFailed: Witness._not_compressed,
    ev.TokensChecked: Witness._measured,
    ev.WriterAdmitted: Witness._admitted,
    ev.QueueReleased: Witness._released,
    ev.Cancelled: Witness._cancelled,
    ev.Disposed: Witness._disposed,
    waits.GapsShown: Witness._shown,
}
PASSED: Mapping[type[Record], Callable[[Witness, Any], None]] = {
    words.AttemptCounted: Witness._attempt,
    words.Exhausted: Witness._exhausts,
    waits.RetryLater: Witness._later,
    waits.Keep: Witness._keeps,
    waits.Settle: Witness._settles,
    waits.LeftOut: Witness._left_out,
    gaps.OpenGap: Witness._opens,
    gaps.MarkTold: Witness._marks,
    gaps.ShowGaps: Witness._shows,
}
