"""Another session beside the one that is played: what it says here by mistake, and one item that both want.

`misaddress` lets a call, a removal, a release or a list of the other session come here. Nothing may
change by it, and it is answered with a refusal (I11).

`share` lets both sessions, each by a clock of its own, claim, renew, release and write to one item by the
rules of `core/reservations`; one row holds the item, as in the store. Their clocks differ by no more
than the take-over margin. A session *believes* that it holds what it was granted until it released it or
its own clock is past the expiry. At no moment do both believe it, and a write under a token that is not
the last one granted is refused (I9). May not live here: the machines of the session that is played.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import leases
from stopwarden.core import queue as queues
from stopwarden.core import queue_words as q
from stopwarden.core import reservations as rules
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import MINUTE, TAKE_OVER_MARGIN
from stopwarden.sim.guard_person import Person
from stopwarden.sim.guard_wire import CLIENTS, SESSION

if TYPE_CHECKING:
    from stopwarden.core.events import Reservation
    from stopwarden.sim.guard_faults import Plan

OTHER = "another session"
MONDAY = 1_000_000  # seconds: when a history begins, by a clock that is right
AHEAD = {SESSION: 0, OTHER: TAKE_OVER_MARGIN}  # of the right time, by whole seconds
LEASES = (1 * MINUTE, 10 * MINUTE, 60 * MINUTE)


class Neighbour(Person):
    """One history's other session."""

    def __init__(self, plan: Plan, told: list[str] | None = None) -> None:
        super().__init__(plan, told)
        self.item: Reservation | None = None
        self.grants: dict[str, Reservation] = {}
        self.newest = 0  # the last token that was given

    # ---- what is not for us

    def misaddress(self) -> None:
        """Something of another session comes here."""
        turn = "a turn of another session"
        client, request = CLIENTS[0], self.name("stray")
        prompts = [entry.prompt for entry in self.queue.entries] or ["P0"]
        calls: tuple[q.QueueEvent, ...] = (
            q.AskClaim(at=0, request=request, session=OTHER, child=self.child, prompt=prompts[0]),
            q.AskClaim(at=0, request=request, session=SESSION, child="another child", prompt=prompts[0]),
            q.AskDrain(at=0, request=request, session=OTHER, child=self.child, prompt=prompts[0]),
            q.StartTurn(at=0, request=request, session=OTHER, child=self.child, turn=turn, epoch=0),
            q.Admit(at=0, request=request, session=OTHER, client=client, prompt="stray"),
            q.RemovePrompt(at=0, request=request, session=OTHER, client=client, prompt=prompts[0]),
            q.CancelRunning(at=0, request=request, session=OTHER, client=client),
            q.PostMessage(at=0, request=request, session=OTHER, client=client, message="stray", text="also"),
            q.EndTurn(at=0, request=request, session=OTHER, child=self.child, turn=next(iter(self.registered), turn)),
            q.ChildGone(at=0, child="another child"),
        )
        events = (ev.QueueReleased(owner="a prompt of another session"), ev.TodoWritten(turn=turn, todos=None))
        pick = self.choices.below(len(calls) + len(events))
        self.book.checked("I11")
        if pick < len(calls):
            self._unmoved_owner(calls[pick])
        elif not self.down:
            self._unmoved_session(events[pick - len(calls)])

    def _unmoved_owner(self, call: q.QueueEvent) -> None:
        """The queue is as it was, but for its clock and its count of effects, and nobody is told to do anything."""
        self.say(f"  owner <- {type(call).__name__} of another session or process")
        self.book.hit(f"queue {type(call).__name__}")
        self.events += 1
        before = self.queue
        self.queue, effects = queues.step(before, call.replace(at=max(0, self.now)))
        same = self.queue.replace(now=before.now, next_effect=before.next_effect) == before
        if not same or any(not isinstance(one, q.Answer) or _grants(one) for one in effects):
            self.book.wrong(f"I11: {type(call).__name__} of another session is taken for one of this session")

    def _unmoved_session(self, event: ev.Event) -> None:
        before = self.state
        self.feed(event)
        if not self.down and self.state.replace(next_id=before.next_id) != before:
            self.book.wrong(f"I11: {type(event).__name__} of another session changed this one")

    # ---- what both want

    def _clock(self, session: str) -> int:
        return MONDAY + max(0, self.now) // 1_000 + AHEAD[session]

    def _believes(self, session: str) -> bool:
        grant = self.grants.get(session)
        return grant is not None and leases.is_live(grant, self._clock(session))

    def share(self) -> None:
        """One of two sessions does something with the item that both want."""
        session = (SESSION, OTHER)[self.choices.below(2)]
        now, grant = self._clock(session), self.grants.get(session)
        pick = self.choices.below(4) if grant is not None else 0
        if pick == 0:
            lease = LEASES[self.choices.below(3)]
            ask = rules.Claim(item="item", place="list", project="p", session=session, copy=session, lease=lease)
            self._granted(session, rules.claim(ask, self.item, (), now))
        elif pick == 1:
            assert grant is not None
            self._granted(session, rules.renew(self.item, session, now, token=grant.token, copy=session))
        elif pick == 2:
            assert grant is not None
            said = rules.release(self.item, session, now, token=grant.token, copy=session)
            if isinstance(said, rules.Granted):
                self.item = said.row
            self.grants.pop(session)
        else:
            assert grant is not None
            self._writes(session, grant, now)
        self.book.checked("I9")
        if self._believes(SESSION) and self._believes(OTHER):
            self.book.wrong("I9: two sessions hold one item at one moment")

    def _granted(self, session: str, said: rules.Granted | rules.Denied) -> None:
        if isinstance(said, rules.Denied):
            self.book.hit(f"hold {said.why}")
            return
        self.book.hit(f"hold {said.how}")
        if said.how == "took_over":
            self.book.race("take-over")
        self.item, self.grants[session], self.newest = said.row, said.row, said.row.token

    def _writes(self, session: str, grant: Reservation, now: int) -> None:
        refused = rules.fence(self.item, session, now, token=grant.token, copy=session)
        stale = grant.token != self.newest
        if stale:
            self.book.race("stale fence")
        if refused is None and (stale or not self._believes(session)):
            self.book.wrong("I9: a write is taken from a session that does not hold the item any more")


def _grants(answer: q.Answer) -> bool:
    """Whether an answer gives something away."""
    return bool(
        getattr(answer, "claimed", False) or getattr(answer, "accepted", False) or getattr(answer, "prompt", "")
    )
