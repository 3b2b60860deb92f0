"""The bridge's queue of one session: `step(state, event) -> (state, effects)`.

**Theory of operation.** The queue is the one place that knows in which order people have spoken. It
holds the full prompts of a session in order of admission (one FIFO for all clients), the messages
posted in the middle of a turn, and who waits for whom. An agent process (the *child*) runs one
prompt at a time; a chain that wants to go on by itself asks for the next place in order (a *claim*).

- *Prompts* (`queue_prompts`): admitted or refused; running, queued or removed; given to the child one
  by one; ended by exactly one terminal event. The next one waits until the one before has settled and
  every cancel for it was answered.
- *Claims* (`queue_claims`): a table. Granted only to the turn in progress and only while no live prompt
  is queued; otherwise the chain is told to give way, and the queue remembers whom (`wait_owner`).
- *Release*: when the last prompt that owner waited for is taken out, the owner is told. When it is
  promoted instead, the wait is simply over: the person's prompt has taken over.
- *Messages* (`queue_messages`): taken once per id, handed over once, in order; left-over ones become
  prompts with the same ids.

Rules that hold after every step: `wait_owner` is set only while a live prompt is queued (I3); no claim
is granted while another live prompt was admitted before (I2); every admitted prompt and message is in
one place or has one fate (I5); at most the first entry runs.

An event that cannot be (a reply for an effect never given out, or of another kind; a second child)
raises IllegalEventError and changes nothing. A reply for an effect that is retired is expected and
does nothing: the world is late. `at` never goes back: an earlier one counts as the latest seen.

The same machine serves a stdio client's agent (design §8.6): its prompts get owner ids and their
place in the FIFO too, and a second prompt waits where it used to throw the first one out.

May not live here: I/O, clocks, ids made up, and what a prompt says.
"""

from __future__ import annotations

from stopwarden.core import queue_claims, queue_messages, queue_prompts
from stopwarden.core.bounds import PROMPTS_MAX
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.queue_move import Move, entry_of, live_queued, running
from stopwarden.core.queue_words import (
    Admit,
    AskClaim,
    AskDrain,
    CancelForwarded,
    CancelRunning,
    ChildCame,
    ChildGone,
    ClientJoined,
    ClientLeft,
    Close,
    Effect,
    EndTurn,
    ListPending,
    MessagesResolved,
    PostMessage,
    PromptSettled,
    Queue,
    QueueEvent,
    ReleaseAnswered,
    RemoveMessage,
    RemovePrompt,
    StartTurn,
    TimerFired,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def open_queue(session: str, child: str, *, limit: int = PROMPTS_MAX) -> Queue:
    """The empty queue of a session that this child hosts. `limit` 0: any number of prompts."""
    return Queue(session=session, child=child, limit=limit)


def step(state: Queue, event: QueueEvent) -> tuple[Queue, tuple[Effect, ...]]:
    """The state after an event, and what is to be done, in order.

    Raises IllegalEventError for an event that cannot come in this state; the state is a value, so
    nothing has changed then.
    """
    take = TAKES.get(type(event))
    if take is None:
        raise IllegalEventError(
            f"The queue knows no event {type(event).__name__}",
            kept="The queue is as it was",
            do="Send one of the events of core/queue_words",
        )
    move = Move(state)
    move.set(now=max(state.now, event.at))
    take(move, event)
    queue_messages.advance(move)
    return move.done()


def child_came(move: Move, event: ChildCame) -> None:
    """An agent process hosts the session again; what waited goes on."""
    if move.state.child is not None:
        raise IllegalEventError(
            f"Child {event.child} came while {move.state.child} hosts the session",
            kept="The queue is as it was",
            do="Report the first one gone before another takes over",
        )
    move.set(child=event.child)


def child_gone(move: Move, event: ChildGone) -> None:
    """The agent process ended: its turn failed, its claims and waits are void; what is queued waits for the next."""
    if move.state.child != event.child:
        return
    move.set(child=None, turn=None, wait_owner=None, forwards=(), releases=())
    move.tell("session_died")
    entry = running(move.state)
    if entry is not None:
        queue_prompts.end_turn_of(move, entry.prompt, "cancelled" if entry.aborted else "failed")


def close(move: Move, event: Close) -> None:
    """The session ends: queued prompts are named as removed, what runs is stopped, nothing new is taken."""
    if move.state.closing:
        return
    move.set(closing=True)
    for entry in live_queued(move.state):
        queue_prompts.take_out(move, entry.prompt, "cancelled", "session_closed")
    entry_now = running(move.state)
    if entry_now is not None and entry_now.run is not None:
        queue_prompts.stop_running(move, entry_of(move.state, entry_now.prompt))
    elif move.state.turn is not None and not move.state.forwards:
        queue_prompts.forward_cancel(move, move.state.turn)


TAKES: Mapping[type[QueueEvent], Callable[[Move, Any], None]] = {
    Admit: queue_prompts.admit,
    RemovePrompt: queue_prompts.remove,
    CancelRunning: queue_prompts.cancel,
    ListPending: queue_prompts.pending,
    PromptSettled: queue_prompts.settled,
    CancelForwarded: queue_prompts.cancel_forwarded,
    ReleaseAnswered: queue_prompts.release_answered,
    TimerFired: queue_prompts.timer_fired,
    ClientJoined: queue_prompts.client_joined,
    ClientLeft: queue_prompts.client_left,
    AskClaim: queue_claims.claim,
    StartTurn: queue_claims.start_turn,
    EndTurn: queue_claims.end_turn,
    PostMessage: queue_messages.post,
    RemoveMessage: queue_messages.remove_message,
    AskDrain: queue_messages.drain,
    MessagesResolved: queue_messages.resolved,
    ChildCame: child_came,
    ChildGone: child_gone,
    Close: close,
}
