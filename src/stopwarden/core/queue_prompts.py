"""Full prompts: admission, their one turn at a time, their one terminal, removal, cancel, deadline.

Every admitted prompt ends in exactly one terminal event, whichever way it goes. The next one is
given to the child only when the one before has settled and every cancel for it was answered, or
when the child has said nothing for the whole settle deadline: a child that hangs holds up nobody.
"""

from __future__ import annotations

from stopwarden.core.bounds import RELEASES_AWAITED, SETTLE_DEADLINE_MS, TERMINALS_KEPT
from stopwarden.core.queue_move import Move, entry_of, expects, find_entry, live_queued, owner_now, running
from stopwarden.core.queue_words import (
    Admit,
    AnswerAdmission,
    AnswerDone,
    AnswerList,
    CancelForwarded,
    CancelRunning,
    ClientJoined,
    ClientLeft,
    CutStopHook,
    Entry,
    Forward,
    ForwardCancel,
    ListPending,
    PromptSettled,
    Queue,
    ReleaseAnswered,
    RemovePrompt,
    Request,
    RunPrompt,
    SendRelease,
    TimerFired,
    WriteLedger,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.queue_words import Asks, Message, Outcome

NOTHING = ""  # what a cancel is for that came while nothing ran


# --- admission ----------------------------------------------------------------------------------


def id_taken(state: Queue, name: str) -> bool:
    """Whether a prompt or a message of this session has, or lately had, this id."""
    drained = state.drain.messages if state.drain is not None else ()
    return (
        any(one.prompt == name for one in state.entries)
        or any(one.message == name for one in state.messages + drained)
        or name in dict(state.terminals + state.fates)
    )


def stranger(state: Queue, ask: Request) -> bool:
    """Whether the caller names a client that is not attached to this session."""
    return ask.client is not None and ask.client not in state.clients


# In the order in which they are looked at; the first that holds is the answer.
ADMISSION_REFUSALS: tuple[tuple[str, int, Callable[[Queue, Admit], bool]], ...] = (
    ("admit.unknown_session", 404, lambda state, ask: ask.session != state.session),
    ("admit.session_closing", 409, lambda state, ask: state.closing),
    ("admit.invalid_client_id", 400, stranger),
    ("admit.missing_attachment", 400, lambda state, ask: bool(ask.missing)),
    ("admit.bad_deadline", 400, lambda state, ask: ask.deadline is not None and ask.deadline <= 0),
    ("admit.caller_gone", 499, lambda state, ask: ask.caller_gone),
    ("admit.duplicate_prompt_id", 409, lambda state, ask: id_taken(state, ask.prompt)),
    ("admit.prompt_queue_full", 503, lambda state, ask: 0 < state.limit <= len(state.entries)),
)


def admit(move: Move, ask: Admit) -> None:
    """Admit a prompt, or say why not. What is admitted is on disk before its caller is told."""
    for rule, status, holds in ADMISSION_REFUSALS:
        if holds(move.state, ask):
            move.do(AnswerAdmission, request=ask.request, status=status, rule=rule)
            return
    entry = Entry(
        prompt=ask.prompt,
        content=ask.content,
        client=ask.client,
        queued_at=move.state.now,
        was_queued=not may_run_next(move.state, empty=True),
        asks=ask.asks,
    )
    move.do(WriteLedger, prompt=ask.prompt, state="in_flight")
    if ask.deadline is not None:
        entry = entry.replace(deadline=move.timer(ask.deadline))
    place = len(move.state.entries)
    move.do(AnswerAdmission, request=ask.request, status=202, rule="admit.taken", prompt=ask.prompt, place=place)
    append(move, entry)


def append(move: Move, entry: Entry) -> None:
    """Put an entry at the end. The first one to wait behind a turn cuts that turn's slow Stop hook short."""
    first_to_wait = not live_queued(move.state)
    move.set(entries=(*move.state.entries, entry))
    if entry.was_queued:
        move.tell("pending_prompt_added", prompt=entry.prompt, client=entry.client)
        owner = owner_now(move.state)
        if first_to_wait and owner is not None:
            move.do(CutStopHook, owner=owner)


# --- one turn at a time -------------------------------------------------------------------------


def may_run_next(state: Queue, *, empty: bool = False) -> bool:
    """Whether the head may be given to the child. `empty`: asked before the first entry is put in."""
    if state.child is None or state.closing or state.forwards:
        return False
    return not state.entries if empty else bool(state.entries) and state.entries[0].state == "queued"


def run_next(move: Move, carried: tuple[Message, ...]) -> None:
    """Promote the head: whoever waited for it waits no more, for the person's prompt has taken over."""
    head = move.state.entries[0]
    if head.was_queued:
        move.set(wait_owner=None)
        move.tell("pending_prompt_started", prompt=head.prompt, client=head.client)
    move.tell("user_message", prompt=head.prompt, client=head.client)
    run = move.do(
        RunPrompt,
        prompt=head.prompt,
        content=head.content,
        client=head.client,
        trust=granted(move.state, head),
        carried=carried,
    )
    move.change(head.prompt, state="running", run=run)
    move.set(last_turn=None, background_held=False)


def granted(state: Queue, entry: Entry) -> Asks:
    """The trust we vouch for: a retry after an error, a continue after an error or a cancel; never else."""
    if entry.asks == "retry" and state.last_turn == "failed":
        return "retry"
    if entry.asks == "continue" and state.last_turn in ("failed", "cancelled"):
        return "continue"
    return ""


def settled(move: Move, reply: PromptSettled) -> None:
    """The child's turn is over. A failure that our own abort caused is a cancel."""
    if not expects(move.state, reply.effect, "run"):
        return
    entry = next(one for one in move.state.entries if one.run == reply.effect)
    outcome: Outcome = "cancelled" if entry.aborted and reply.outcome == "failed" else reply.outcome
    end_turn_of(move, entry.prompt, outcome)


def end_turn_of(move: Move, prompt: str, outcome: Outcome) -> None:
    """Publish the terminal unless it was, and let the entry go once its cancels are answered."""
    finish(move, prompt, outcome)
    entry = move.change(prompt, run=None)
    move.set(last_turn=entry.terminal)
    let_go(move)


def finish(move: Move, prompt: str, outcome: Outcome, why: str = "") -> None:
    """The one terminal of a prompt: on disk, then told. A second one is never published."""
    entry = entry_of(move.state, prompt)
    if entry.terminal is not None:
        return
    move.change(prompt, terminal=outcome, deadline=None)
    move.set(terminals=((prompt, outcome), *move.state.terminals)[:TERMINALS_KEPT])
    move.do(WriteLedger, prompt=prompt, state=outcome)
    told = {"prompt": prompt, "client": entry.client, "why": why}
    if entry.was_queued:
        move.tell("pending_prompt_completed", state="removed" if entry.state == "removed" else "completed", **told)
    kind = "turn_error" if outcome == "failed" else "turn_complete"
    move.tell(kind, state=outcome, messages=entry.took, **told)  # type: ignore[arg-type]


def let_go(move: Move) -> None:
    """Drop what has both settled and had every cancel answered."""
    unsettled = {one.prompt for one in move.state.entries if one.run is not None}
    forwards = tuple(one for one in move.state.forwards if not one.answered or one.target in unsettled)
    held = {one.target for one in forwards}
    kept = tuple(
        one for one in move.state.entries if one.state == "queued" or one.run is not None or one.prompt in held
    )
    move.set(forwards=forwards, entries=kept)


# --- removal, cancel, deadline ------------------------------------------------------------------


def take_out(move: Move, prompt: str, outcome: Outcome, why: str) -> None:
    """End a queued prompt. If it was the last one that somebody waited for, that owner is released (§4.4)."""
    move.change(prompt, state="removed", aborted=True)
    finish(move, prompt, outcome, why)
    move.set(entries=tuple(one for one in move.state.entries if one.prompt != prompt))
    owner = move.state.wait_owner
    if owner is not None and not live_queued(move.state):
        number = move.do(SendRelease, owner=owner)
        move.set(wait_owner=None, releases=((number, owner), *move.state.releases)[:RELEASES_AWAITED])


def stop_running(move: Move, entry: Entry, **changes: object) -> None:
    """Abort the running prompt and forward the cancel, once."""
    move.change(entry.prompt, aborted=True, **changes)
    if not any(one.target == entry.prompt for one in move.state.forwards):
        forward_cancel(move, entry.prompt)


def forward_cancel(move: Move, target: str) -> None:
    """Send a cancel to the child; the queue waits for its answer, though not for ever."""
    number = move.do(ForwardCancel, target=target)
    forward = Forward(id=number, target=target, timer=move.timer(SETTLE_DEADLINE_MS))
    move.set(forwards=(*move.state.forwards, forward))


def remove(move: Move, ask: RemovePrompt) -> None:
    """Any attached client may take a queued prompt out or stop the running one, whoever sent it."""
    entry = find_entry(move.state, ask.prompt)
    if not welcome(move, ask):
        return
    if entry is None or entry.terminal is not None:
        move.do(AnswerDone, request=ask.request, status=404, rule="remove.not_pending")
        return
    move.do(AnswerDone, request=ask.request, status=204, rule="remove.done")
    if entry.state == "queued":
        take_out(move, entry.prompt, "cancelled", "removed")
    else:
        stop_running(move, entry, state="removed")


def cancel(move: Move, ask: CancelRunning) -> None:
    """Stop what runs now. Queued prompts stay; background turns wait for the next prompt.

    With nothing running the child hears of it all the same: its chain may be waiting for background work.
    """
    if not welcome(move, ask):
        return
    move.do(AnswerDone, request=ask.request, status=204, rule="cancel.done")
    move.set(background_held=True, cancel_epoch=move.state.cancel_epoch + 1)
    entry, turn = running(move.state), move.state.turn
    move.tell("prompt_cancelled", prompt=owner_now(move.state), client=ask.client)
    if entry is not None and entry.run is not None:
        stop_running(move, entry)
    elif move.state.child is not None and not any(one.target == (turn or NOTHING) for one in move.state.forwards):
        forward_cancel(move, turn or NOTHING)


def welcome(move: Move, ask: Request) -> bool:
    """Whether the call is for this session and from one of its clients; answers it if not."""
    if ask.session != move.state.session:
        move.do(AnswerDone, request=ask.request, status=404, rule="call.unknown_session")
    elif stranger(move.state, ask):
        move.do(AnswerDone, request=ask.request, status=400, rule="call.invalid_client_id")
    else:
        return True
    return False


def pending(move: Move, ask: ListPending) -> None:
    """Any attached client sees the whole queue."""
    if welcome(move, ask):
        entries = tuple(one for one in move.state.entries if one.terminal is None)
        move.do(AnswerList, request=ask.request, rule="list.pending", entries=entries, messages=move.state.messages)


def timer_fired(move: Move, reply: TimerFired) -> None:
    """A prompt's deadline ends it; a settle deadline lets the queue go on without the child's word."""
    if not expects(move.state, reply.effect, "timer"):
        return
    entry = next((one for one in move.state.entries if one.deadline == reply.effect), None)
    if entry is None:
        give_up_on_child(move, next(one for one in move.state.forwards if one.timer == reply.effect))
    elif entry.state == "queued":
        take_out(move, entry.prompt, "failed", "deadline")
    else:
        finish(move, entry.prompt, "failed", "deadline")
        stop_running(move, entry)


def give_up_on_child(move: Move, forward: Forward) -> None:
    """The child neither stopped nor answered in time: its turn counts as over, and its late word as retired."""
    move.set(forwards=tuple(one for one in move.state.forwards if one.id != forward.id))
    if move.state.turn == forward.target:
        move.set(turn=None)
    entry = find_entry(move.state, forward.target)
    if entry is not None:
        end_turn_of(move, entry.prompt, "cancelled")


def cancel_forwarded(move: Move, reply: CancelForwarded) -> None:
    """The child has the cancel; its turn may still have to settle."""
    if expects(move.state, reply.effect, "forward"):
        move.set(
            forwards=tuple(one.replace(answered=True) if one.id == reply.effect else one for one in move.state.forwards)
        )
        let_go(move)


def release_answered(move: Move, reply: ReleaseAnswered) -> None:
    """A release that could not be delivered is told, not swallowed."""
    if expects(move.state, reply.effect, "release"):
        owner = next(owner for number, owner in move.state.releases if number == reply.effect)
        move.set(releases=tuple(one for one in move.state.releases if one[0] != reply.effect))
        if reply.failed:
            move.tell("release_failed", prompt=owner, why=reply.failed)


def client_joined(move: Move, event: ClientJoined) -> None:
    """One more client of this session."""
    move.set(clients=move.state.clients | {event.client})


def client_left(move: Move, event: ClientLeft) -> None:
    """A client's connection ended; its prompts and messages stay (§4.1: disconnecting does not cancel)."""
    move.set(clients=move.state.clients - {event.client})
