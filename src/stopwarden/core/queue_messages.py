"""Mid-turn messages: posted once, handed over once, and never lost when a drain or a turn comes to nothing.

A message is in exactly one place: waiting, out with a drain that reads attachments, or gone with a
*fate* (delivered, promoted, removed). A drain that comes to nothing (an attachment cannot be read,
it took so long that the child has stopped listening, its turn is over) puts its messages back in
front. One that missed its drain is carried by the next prompt that runs; what is left when the last
prompt has settled becomes prompts of its own, under the same ids.
"""

from __future__ import annotations

from stopwarden.core.bounds import (
    DRAIN_DEADLINE_MS,
    FATES_KEPT,
    MESSAGE_ID_MAX,
    MESSAGE_TEXT_MAX,
    MESSAGES_A_DRAIN,
    MESSAGES_MAX,
)
from stopwarden.core.queue_claims import hosts
from stopwarden.core.queue_move import Move, expects, is_owner, live_queued, owner_now, running
from stopwarden.core.queue_prompts import append, id_taken, may_run_next, run_next, stranger, welcome
from stopwarden.core.queue_words import (
    AnswerDone,
    AnswerDrain,
    AnswerMessage,
    AskDrain,
    Drain,
    Entry,
    Message,
    MessagesResolved,
    PostMessage,
    Queue,
    RemoveMessage,
    ResolveMessages,
    WriteLedger,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.queue_words import Fate


def waiting(state: Queue) -> tuple[Message, ...]:
    """Every message that was not handed over yet, in order, also those out with a drain."""
    return (state.drain.messages if state.drain is not None else ()) + state.messages


def fate_of(state: Queue, message: str) -> str:
    """Where a message is: waiting, delivered, promoted, removed, or empty for one never seen (or long gone)."""
    if any(one.message == message for one in waiting(state)):
        return "waiting"
    return dict(state.fates).get(message, "")


def idle(state: Queue) -> bool:
    """Whether nothing runs in which a message could be heard."""
    return not state.entries and state.turn is None


# In the order in which they are looked at; the first that holds is the answer. `fate`: see `fate_of`.
POST_REFUSALS: tuple[tuple[str, int, Callable[[Queue, PostMessage, str], bool]], ...] = (
    ("message.unknown_session", 404, lambda state, ask, fate: ask.session != state.session),
    ("message.invalid_client_id", 400, lambda state, ask, fate: stranger(state, ask)),
    ("message.bad_id", 400, lambda state, ask, fate: not 0 < len(ask.message) <= MESSAGE_ID_MAX),
    ("message.empty", 400, lambda state, ask, fate: not ask.text.strip() and not ask.attachments),
    ("message.too_long", 413, lambda state, ask, fate: len(ask.text) > MESSAGE_TEXT_MAX),
    ("message.was_removed", 409, lambda state, ask, fate: fate == "removed"),
    ("message.session_closing", 409, lambda state, ask, fate: state.closing),
    ("message.duplicate_prompt_id", 409, lambda state, ask, fate: not fate and id_taken(state, ask.message)),
    ("message.session_idle", 200, lambda state, ask, fate: not fate and idle(state)),
    ("message.queue_full", 503, lambda state, ask, fate: not fate and len(waiting(state)) >= MESSAGES_MAX),
)


def post(move: Move, ask: PostMessage) -> None:
    """Take a message for the turn in progress; one that is known already is not taken twice."""
    fate = fate_of(move.state, ask.message)
    for rule, status, holds in POST_REFUSALS:
        if holds(move.state, ask, fate):
            move.do(AnswerMessage, request=ask.request, status=status, rule=rule, accepted=False)
            return
    move.do(AnswerMessage, request=ask.request, rule=f"message.{fate or 'taken'}", accepted=True)
    if not fate:
        message = Message(
            message=ask.message,
            text=ask.text,
            client=ask.client,
            attachments=ask.attachments,
            internal=ask.internal,
        )
        move.set(messages=(*move.state.messages, message))
        move.tell("mid_turn_message_queued", client=ask.client, messages=(ask.message,), shown=shown((message,)))


def remove_message(move: Move, ask: RemoveMessage) -> None:
    """Take back a message, as long as no drain has it."""
    if not welcome(move, ask):
        return
    if any(one.message == ask.message for one in move.state.messages):
        taken = tuple(one for one in move.state.messages if one.message == ask.message)
        move.do(AnswerDone, request=ask.request, status=204, rule="message.removed")
        drop(move, taken, "removed", client=ask.client)
    else:
        known = fate_of(move.state, ask.message)
        move.do(AnswerDone, request=ask.request, status=409 if known else 404, rule=f"message.{known or 'unknown'}")


def drop(move: Move, messages: tuple[Message, ...], why: str, client: str | None = None) -> None:
    """Remove waiting messages, each named to the clients."""
    gone(move, messages, "removed")
    move.tell(
        "mid_turn_message_removed",
        client=client,
        messages=tuple(one.message for one in messages),
        shown=shown(messages),
        why=why,
    )


def gone(move: Move, messages: tuple[Message, ...], fate: Fate) -> None:
    """Messages leave the queue for good; their ids are remembered with their fate."""
    names = {one.message for one in messages}
    fates = tuple((one.message, fate) for one in reversed(messages))
    move.set(
        messages=tuple(one for one in move.state.messages if one.message not in names),
        fates=(fates + move.state.fates)[:FATES_KEPT],
    )


def shown(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What clients may see of messages."""
    return tuple(one for one in messages if not one.internal)


# --- drains -------------------------------------------------------------------------------------


def drain(move: Move, ask: AskDrain) -> None:
    """Hand over at most ten messages, in order, to the turn in progress; anybody else gets none."""
    state = move.state
    now = running(state)
    in_turn = (now is None or now.live) if ask.prompt is None else is_owner(state, ask.prompt)
    if not hosts(state, ask) or not in_turn:
        move.do(AnswerDrain, request=ask.request, rule="drain.not_in_turn")
        return
    if state.drain is not None or not state.messages:
        rule = "drain.another_under_way" if state.drain is not None else "drain.nothing"
        move.do(AnswerDrain, request=ask.request, rule=rule, has_queued_prompt=hint(state, ask.watch))
        return
    messages = state.messages[:MESSAGES_A_DRAIN]
    if all(one.resolved or not one.attachments for one in messages):
        hand_over(move, ask.request, messages, ask.watch)
        return
    number = move.do(ResolveMessages, messages=messages)
    out = Drain(
        id=number,
        request=ask.request,
        owner=ask.prompt if ask.prompt is not None else owner_now(state),
        watch=ask.watch,
        messages=messages,
        asked_at=state.now,
    )
    move.set(drain=out, messages=state.messages[len(messages) :])


def hint(state: Queue, watch: bool) -> bool:
    """Whether a live prompt is queued, for a drain that asked to know."""
    return watch and bool(live_queued(state))


def hand_over(move: Move, request: str, messages: tuple[Message, ...], watch: bool) -> None:
    """The messages are the child's from here on; clients see them once."""
    move.do(
        AnswerDrain,
        request=request,
        rule="drain.handed_over",
        messages=messages,
        has_queued_prompt=hint(move.state, watch),
    )
    delivered(move, messages)


def delivered(move: Move, messages: tuple[Message, ...]) -> None:
    """Mark messages as delivered to whoever runs now, and tell the clients in one event."""
    gone(move, messages, "delivered")
    now, owner = running(move.state), owner_now(move.state)
    ids = tuple(one.message for one in messages)
    if now is not None:
        move.change(now.prompt, took=now.took + ids)
    move.tell("mid_turn_message_injected", prompt=owner, messages=ids, shown=shown(messages))


def resolved(move: Move, reply: MessagesResolved) -> None:
    """The attachments were read: hand the messages over, unless one failed or the child no longer listens."""
    out = move.state.drain
    if not expects(move.state, reply.effect, "resolve") or out is None:
        return
    messages = tuple(one.replace(resolved=one.resolved or one.message not in reply.failed) for one in out.messages)
    out = out.replace(messages=messages)
    if move.state.now - out.asked_at >= DRAIN_DEADLINE_MS:
        late = tuple(one.message for one in messages if one.resolved)
        put_back(move, out, "drain.too_late", late)
    elif reply.failed:
        put_back(move, out, "drain.unreadable", ())
    else:
        move.set(drain=None)
        hand_over(move, out.request, messages, out.watch)


def put_back(move: Move, out: Drain, rule: str, late: tuple[str, ...]) -> None:
    """The drain comes to nothing: its messages stand in front again, and it is answered with none.

    `late` names those that the next prompt carries; one that cannot be read must not spoil that prompt.
    """
    back = tuple(one.replace(late=one.late or one.message in late) for one in out.messages)
    move.set(drain=None, messages=back + move.state.messages)
    move.do(AnswerDrain, request=out.request, rule=rule, has_queued_prompt=hint(move.state, out.watch))


# --- what follows every event -------------------------------------------------------------------


def advance(move: Move) -> None:
    """After every event: end a drain whose turn is over, promote what nobody will hear, start the next prompt."""
    out = move.state.drain
    if out is not None and not (out.owner is not None and is_owner(move.state, out.owner)):
        put_back(move, out, "drain.turn_over", tuple(one.message for one in out.messages))
    if move.state.closing:
        wind_up(move)
        return
    if idle(move.state):
        promote(move)
    if may_run_next(move.state):
        carried = tuple(one for one in move.state.messages if one.late)
        run_next(move, carried)
        if carried:
            delivered(move, carried)


def promote(move: Move) -> None:
    """Every message left over becomes a prompt with the same id, beyond the limit if need be: none is refused."""
    for message in move.state.messages:
        gone(move, (message,), "promoted")
        move.do(WriteLedger, prompt=message.message, state="in_flight")
        entry = Entry(
            prompt=message.message,
            content=message.message,
            client=message.client,
            queued_at=move.state.now,
            was_queued=True,
            promoted=True,
        )
        append(move, entry)


def wind_up(move: Move) -> None:
    """A closing session drops what waits, names it, and is closed once the last turn has settled."""
    if move.state.messages:
        drop(move, move.state.messages, "session_closed")
    if not move.state.entries and not move.state.forwards and not move.state.closed:
        move.set(closed=True)
        move.tell("session_closed")
