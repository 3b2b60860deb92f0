"""Turns that no person began: for the results of background work, or for a scheduled prompt. Who may start, and when.

Theory of operation. Such a turn begins only when no turn runs, no prompt is admitted or asks to be, the gate
is open, no queued prompt goes first, and time for another try has come; beside a chain that waits, only
what belongs to it. A turn for results is *registered* with the owner's side first: if that says yes, the turn is
an owner like a prompt, in claims and drains and for a cancel. Until then nothing has changed but where the results
are: neither the chain nor what counts as its work (the source resets both first, and a refusal cannot take that
back). A no, or no answer in time, gives the results back, to be tried again later. Whatever comes between (a
prompt, a cancel, a dispose) gives them back too, and tells the owner's side that the turn is over, for
its yes may be on the way. A scheduled prompt's turn is nobody's, and begins at once; so does any turn where
the owner's side knows no such call.

May not live here: what waits (`backlog`), what a turn does (`turn`).
"""

from __future__ import annotations

from stopwarden.core import backlog_events as waits
from stopwarden.core import chain as chains
from stopwarden.core import chain_words as words
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.core.lineage import Deferral
from stopwarden.core.stop_loop import carried_parts
from stopwarden.core.turn_state import Pen, Starting, Stream, Turn, illegal


def begin(pen: Pen) -> bool:
    """Whether a turn for what waits has begun. One that must be registered first has not."""
    waiting = pen.backlog
    if not (waiting.results or waiting.fires) or pen.state.arriving or pen.state.now < pen.state.retry_at:
        return False
    if waiting.on_its_way is not None or not chains.may_start_automatic(pen.chain, related=True):
        return False
    name = f"auto-{pen.next_id}"
    given = pen.waited(waits.DrainAsked(turn=name, holding=pen.holding()))
    if given is None:
        return False
    wanted = Starting(turn=name, parts=carried_parts(given), related=given.related)
    if isinstance(given, waits.RunFire) or pen.state.registers_none:
        start(pen, wanted, ev.CRON if isinstance(given, waits.RunFire) else ev.NOTIFICATION)
        return True
    asked = pen.do(ev.RegisterTurn, turn=name)
    pen.set(starting=wanted.replace(asked=asked, due=pen.state.now + DRAIN_DEADLINE_MS))
    return False


def start(pen: Pen, wanted: Starting, kind: str, owner: str | None = None) -> None:
    """The turn begins, and the chain hears of it now."""
    pen.chained(words.AutomaticStarted(id=wanted.turn, kind=kind, related=wanted.related))
    if not pen.guest:  # the chain goes on, or another begins: the next wait is counted from its own beginning
        pen.set(deferral=Deferral())
    stream = Stream(parts=wanted.parts, carried=wanted.turn, label=wanted.turn)
    pen.turn = Turn(id=wanted.turn, kind=kind, owner=owner, stream=stream)
    pen.do(ev.BeginTurn, turn=wanted.turn, kind=kind)


def registered(pen: Pen, event: ev.TurnRegistered) -> None:
    """The owner's answer. A yes is looked at again: the gate may be held by now, or a prompt on its way."""
    wanted = pen.state.starting
    if not 0 < event.id < pen.next_id:
        raise illegal(event, f"nothing was asked under id {event.id}")
    if wanted is None or wanted.asked != event.id:
        return
    if event.unknown_method:
        pen.set(registers_none=True)
    elif event.accepted is not True:
        refused(pen, wanted)
        return
    if pen.state.arriving or not chains.may_start_automatic(pen.chain, wanted.related):
        give_back(pen, "held_back")
        return
    pen.set(starting=None)
    start(pen, wanted, ev.NOTIFICATION, owner=None if event.unknown_method else wanted.turn)


def refused(pen: Pen, wanted: Starting) -> None:
    """The owner's side does not want it now."""
    pen.set(starting=None)
    pen.waited(waits.TurnReturned(turn=wanted.turn, why="not_admitted", holding=pen.holding()))


def ticked(pen: Pen) -> None:
    """No answer in time is a no; the turn is over for the owner's side too."""
    wanted = pen.state.starting
    if wanted is not None and pen.state.now >= wanted.due:
        refused(pen, wanted)
        pen.do(ev.EndTurn, turn=wanted.turn, kind="cancelled", rule="turn.not_admitted")


def give_back(pen: Pen, why: str) -> None:
    """The turn that asks to begin will not: something came first."""
    wanted = pen.state.starting
    if wanted is not None:
        pen.set(starting=None)
        pen.waited(waits.TurnReturned(turn=wanted.turn, why="superseded", holding=pen.holding()))
        pen.do(ev.EndTurn, turn=wanted.turn, kind="cancelled", rule=f"turn.{why}")
