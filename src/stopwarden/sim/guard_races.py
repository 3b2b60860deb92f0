"""Named races of a guard simulation: what two things happened at once, and how to see it where it happens.

Most are seen from the event and the state that it finds (ON_SESSION, ON_QUEUE); those that show in what
comes out are counted by the book and the wire. Seeing a race decides nothing: a race is counted, and
promises are kept elsewhere. May not live here: promises (`guard_book`), what makes a race likely (`guard_world`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.queue_move import live_queued

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from stopwarden.core.record import Record
    from stopwarden.core.turn_state import Session
    from stopwarden.sim.guard_wire import Wire

RACES: Mapping[str, str] = {
    "tombstone installed": "a release overtook the answer to its owner's claim",
    "late release": "a release came for an owner that waits no more",
    "promotion during a claim": "the next prompt was given out while an older claim was not answered",
    "late claim": "the answer to a claim came after its turn had given up on it",
    "stale commit": "trust went while the provider made up its mind",
    "late drain": "words came after their drain had been given up",
    "superseded in stream": "a newer prompt came while a stream ran",
    "cancelled in stream": "a cancel came while a stream ran",
    "hook cut short": "a queued prompt was confirmed while the hooks were out",
    "yielded": "a turn gave way to a queued prompt",
    "left-over words": "words that no drain took became a prompt",
    "carried words": "words that missed their drain came with the next prompt",
    "settle deadline": "the queue went on without the child's word",
    "never begun": "an admitted prompt was cancelled before it began",
    "late todo write": "a turn that unwinds wrote a list",
    "crash": "the agent process ended, at any effect",
    "crash between acceptance and commit": "the provider has a stream that history does not know of",
    "crash with a send staged": "an intent to send was found by the next process",
    "crash with a stream of the guard staged": "and it was one of the guard's",
    "crash while a result arrives": "before or after it was written down",
    "answer to a dead process": "a claim or a drain was answered to a process that was gone",
    "prompt during a compression": "a prompt was admitted while history was made shorter",
    "cancel during a send": "a cancel came while the provider made up its mind",
    "plan during a claim": "plan mode was entered while a claim was out",
    "switched off during a claim": "the guard was turned off while a claim was out",
    "result while giving way": "a result came while a chain waited for a queued prompt",
    "result during a send of its kind": "a result came while others were on their way to the model",
    "answer before the send settled": "an agent answered a message before the sender knew that it was sent",
    "gate during an unwinding": "the gate was taken while a turn that was cut came to its end",
    "claim answered after the dispose": "a claim was answered to a session that had been put away",
    "prompt while loading": "a prompt came before the session was whole",
    "cancel while loading": "a cancel came before the session was whole",
    "admission during a claim": "a prompt was admitted while a claim was on its way to the owner",
    "removal during a claim": "the last queued prompt was taken out while a claim was on its way to the owner",
    "removal during a drain": "something was taken out while the attachments of a drain were read",
    "two clients at once": "a client's prompt came while another client's waited",
    "deadline in a turn": "a prompt's deadline came while its turn ran",
    "process gone during a drain": "the agent process died while the attachments of a drain were read",
    "take-over": "an item was taken over from a session whose hold had run out",
    "stale fence": "a session wrote under a token that was not the item's last",
    "background turn refused": "a background turn came too late to begin",
}


def out_for(state: Session) -> str:
    """What the turn waits for."""
    turn = state.turn
    return turn.waiting.what if turn is not None and turn.waiting is not None else ""


def claiming(wire: Wire) -> bool:
    """Whether a claim is on its way to the owner."""
    return any(isinstance(call, q.AskClaim) for call in wire.calls)


def another_waits(wire: Wire, event: q.Admit) -> bool:
    """Whether another client's prompt is queued."""
    return any(entry.client != event.client for entry in live_queued(wire.queue))


def marked(state: Session, agent: str) -> bool:
    """Whether a message to this agent is under way."""
    return any(target == agent for _, target in state.backlog.lineage.marks)


def in_its_turn(wire: Wire, effect: int) -> bool:
    """Whether this is the deadline of a prompt that runs."""
    return any(entry.deadline == effect and entry.run is not None for entry in wire.queue.entries)


Seen = tuple[tuple[str, "Callable[[Wire, Any], bool]"], ...]
ON_SESSION: Mapping[type[Record], Seen] = {
    ev.WriterAdmitted: (("prompt during a compression", lambda wire, event: out_for(wire.state) == "compress"),),
    ev.Cancelled: (
        ("cancel during a send", lambda wire, event: out_for(wire.state) == "send"),
        ("cancel while loading", lambda wire, event: bool(wire.state.door.loading)),
    ),
    ev.ModeChanged: (("plan during a claim", lambda wire, event: event.plan and out_for(wire.state) == "claim"),),
    ev.SwitchSet: (
        ("switched off during a claim", lambda wire, event: event.switch == "off" and out_for(wire.state) == "claim"),
    ),
    ev.ResultArrived: (
        ("result while giving way", lambda wire, event: wire.state.chain.priority),
        ("result during a send of its kind", lambda wire, event: wire.state.backlog.on_its_way is not None),
        ("answer before the send settled", lambda wire, event: marked(wire.state, event.result.task)),
    ),
    ev.GateTaken: (
        ("gate during an unwinding", lambda wire, event: bool(wire.state.turn is not None and wire.state.turn.abort)),
    ),
    ev.ClaimAnswered: (("claim answered after the dispose", lambda wire, event: wire.state.chain.disposed),),
    ev.PromptOffered: (("prompt while loading", lambda wire, event: bool(wire.state.door.loading)),),
}
ON_QUEUE: Mapping[type[Record], Seen] = {
    q.Admit: (
        ("admission during a claim", lambda wire, event: claiming(wire)),
        ("two clients at once", another_waits),
    ),
    q.RemovePrompt: (
        ("removal during a claim", lambda wire, event: claiming(wire) and len(live_queued(wire.queue)) == 1),
        ("removal during a drain", lambda wire, event: wire.queue.drain is not None),
    ),
    q.TimerFired: (("deadline in a turn", lambda wire, event: in_its_turn(wire, event.effect)),),
    q.ChildGone: (("process gone during a drain", lambda wire, event: wire.queue.drain is not None),),
}


def look(seen: Mapping[type[Record], Seen], wire: Wire, event: Record) -> None:
    """Count the races that this event makes with what it finds."""
    for name, happens in seen.get(type(event), ()):
        if happens(wire, event):
            wire.book.race(name)
