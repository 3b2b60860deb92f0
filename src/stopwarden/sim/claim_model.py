"""The claim protocol with everything around it, small enough that every order of events can be tried.

Two machines that run in two processes: the session's chain (`core.chain`) with one turn at a time,
and the owner's queue (`core.queue`). Between them two pipes that may be slow for ever; they keep
their order, save that a claim's answer and what the owner sends unasked may overtake each other. A
person admits prompts, takes queued ones out, cancels, and turns plan mode on and off. The turn is
the plainest there is: its list is unfinished, so at each stop it asks the guard, claims, and sends
if it may; its claim's deadline may pass at any time while the answer is on its way.

What is checked is said over what was sent and admitted, and kept beside the machines (`seen_live`,
`sent`), never over their own flags: see `wrong`. May not live here: any rule of the machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import chain as chains
from stopwarden.core import chain_words as said
from stopwarden.core import queue as queues
from stopwarden.core import queue_words as q
from stopwarden.core.bounds import GUARD_STREAMS
from stopwarden.core.chain_words import Chain
from stopwarden.core.guard import state_name
from stopwarden.core.queue_move import live_queued, running
from stopwarden.core.record import Record
from stopwarden.core.todo_envelope import Todo, TodoList

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION, CHILD, CLIENT = "s", "child", "person"
UNFINISHED = TodoList(items=(Todo(id="1", content="", status="pending"),))


class Bounds(Record):
    """How much of each the person and the world may do."""

    prompts: int = 2
    removals: int = 1
    cancels: int = 1
    plans: int = 1
    deadlines: int = 1


class World(Record):
    """Both machines, what is on its way between them, and what was seen."""

    queue: q.Queue
    chain: Chain
    left: Bounds
    calls: tuple[tuple[str, int, str], ...] = ()  # from the session to the owner: kind, number, word
    orders: tuple[tuple[str, int, str], ...] = ()  # from the owner to the session
    phase: str = "idle"  # of the turn: idle, stop, claiming, granted, ending
    prompt: str = ""  # whose turn it is, and the effect that began it
    run: int = 0
    claim: int = 0  # claims sent so far; the last one is the one waited for
    outcome: str = "completed"
    seen_live: tuple[str, ...] = ()  # live prompts admitted before the claim that was granted, other than its owner
    sent: int = 0  # continuations of this stage
    trouble: str = ""


def begin(bounds: Bounds = Bounds()) -> World:  # noqa: B008 - a Record is immutable
    """A session at rest, its owner's queue empty."""
    queue, _ = queues.step(queues.open_queue(SESSION, CHILD), q.ClientJoined(at=0, client=CLIENT))
    return World(queue=queue, chain=Chain(), left=bounds)


def moves(world: World) -> Iterator[tuple[str, World]]:
    """Everything that may happen next, each with its words."""
    yield from _of_the_person(world)
    if world.calls:
        (kind, number, word), rest = world.calls[0], world.calls[1:]
        yield (
            f"the owner hears: {kind} {number or ''} {word}".strip(),
            _owner(world.replace(calls=rest), kind, number, word),
        )
    for place in _next_orders(world.orders):
        kind, number, word = world.orders[place]
        rest = (*world.orders[:place], *world.orders[place + 1 :])
        after = _session(world.replace(orders=rest), kind, number, word)
        yield f"the session hears: {kind} {number or ''} {word}".strip(), after
    yield from _of_the_turn(world)


def _next_orders(orders: tuple[tuple[str, int, str], ...]) -> list[int]:
    """Which may be heard next: the first answer, and the first of all others."""
    firsts: dict[bool, int] = {}
    for place, (kind, _, _) in enumerate(orders):
        firsts.setdefault(kind == "answer", place)
    return list(firsts.values())


def wrong(world: World, at_end: bool) -> str:
    """The invariant that does not hold, in words; "" if all do."""
    if world.trouble:
        return world.trouble
    if world.sent > GUARD_STREAMS:
        return f"I1: {world.sent} continuations in one stage without new user input"
    quiet = not world.calls and not world.orders and world.phase == "idle"
    if quiet and world.chain.priority and not live_queued(world.queue):
        return f"I3: the chain waits for a queued prompt ({world.chain.priority_owner}), and none is live"
    if quiet and world.queue.wait_owner is not None and not live_queued(world.queue):
        return "I3: the owner remembers a wait, and no prompt is queued"
    if at_end and live_queued(world.queue):
        return "a prompt is queued for ever"
    if at_end and world.chain.claims:
        return "a claim is in flight for ever"
    return ""


# --- the person ---------------------------------------------------------------------------------


def _of_the_person(world: World) -> Iterator[tuple[str, World]]:
    left = world.left
    if left.prompts:
        name = f"p{left.prompts}"
        ask = q.Admit(at=0, request=name, session=SESSION, client=CLIENT, prompt=name)
        yield f"the person sends: {name}", _queued(world.replace(left=left.replace(prompts=left.prompts - 1)), ask)
    if left.removals:
        after = world.replace(left=left.replace(removals=left.removals - 1))
        for entry in live_queued(world.queue):
            ask_out = q.RemovePrompt(at=0, request="out", session=SESSION, client=CLIENT, prompt=entry.prompt)
            yield f"the person takes out: {entry.prompt}", _queued(after, ask_out)
    if left.cancels and running(world.queue) is not None:
        ask_cancel = q.CancelRunning(at=0, request="cancel", session=SESSION, client=CLIENT)
        yield "the person cancels", _queued(world.replace(left=left.replace(cancels=left.cancels - 1)), ask_cancel)
    if left.plans or world.chain.plan:
        on = not world.chain.plan
        after = world.replace(left=left.replace(plans=left.plans - on))
        yield f"plan mode: {'on' if on else 'off'}", _told(after, said.ModeChanged(plan=on))


# --- the owner's side ---------------------------------------------------------------------------


def _owner(world: World, kind: str, number: int, word: str) -> World:
    if kind == "claim":
        ask = q.AskClaim(at=0, request=str(number), session=SESSION, child=CHILD, prompt=word)
        return _queued(world, ask)
    if kind == "settled":
        outcome: q.Outcome = "cancelled" if word == "cancelled" else "completed"
        return _queued(world, q.PromptSettled(at=0, effect=number, outcome=outcome))
    if kind == "cancel taken":
        return _queued(world, q.CancelForwarded(at=0, effect=number))
    return _queued(world, q.ReleaseAnswered(at=0, effect=number, released=word == "yes"))


def _queued(world: World, event: q.QueueEvent) -> World:
    """The owner's queue takes an event; what it tells the session is on its way."""
    before = world.queue
    queue, effects = queues.step(before, event)
    orders = list(world.orders)
    seen_live = world.seen_live
    for effect in effects:
        if isinstance(effect, q.RunPrompt):
            orders.append(("run", effect.id, effect.prompt))
        elif isinstance(effect, q.SendRelease):
            orders.append(("release", effect.id, effect.owner))
        elif isinstance(effect, q.ForwardCancel):
            orders.append(("cancel", effect.id, effect.target))
        elif isinstance(effect, q.AnswerClaim):
            answer = chains.read_claim_answer(effect.claimed, effect.has_queued_prompt)
            orders.append(("answer", int(effect.request), answer))
            if answer == "granted" and isinstance(event, q.AskClaim):
                seen_live = tuple(one.prompt for one in before.entries if one.live and one.prompt != event.prompt)
    return world.replace(queue=queue.replace(now=0), orders=tuple(orders), seen_live=seen_live)


# --- the session's side -------------------------------------------------------------------------


def _session(world: World, kind: str, number: int, word: str) -> World:
    if kind == "run":
        world = _told(world, said.PromptAdmitted(id=word))
        world = _told(world, said.PromptStarted(id=word))
        world = _told(world, said.TodoObserved(turn=word, todos=UNFINISHED))
        return world.replace(phase="stop", prompt=word, run=number, outcome="completed", sent=0)
    if kind == "answer":
        return _told(world, said.ClaimAnswered(id=number, answer=word))
    if kind == "release":
        return _told(world, said.Released(owner=word), number)
    world = world.replace(calls=(*world.calls, ("cancel taken", number, "")))
    if world.phase == "idle" or world.prompt != word:
        return world
    return _told(world, said.Cancelled()).replace(phase="ending", outcome="cancelled")


def _told(world: World, event: said.ChainEvent, number: int = 0) -> World:
    """The chain takes an event; what it asks for is done at once, or is on its way."""
    chain, effects = chains.step(world.chain, event)
    world = world.replace(chain=chain)
    for effect in effects:
        if isinstance(effect, said.ReleaseAnswered):
            answer = ("release answered", number, "yes" if effect.released else "no")
            world = world.replace(calls=(*world.calls, answer))
        elif isinstance(effect, said.ClaimSettled) and world.phase == "claiming" and effect.id == world.claim:
            world = world.replace(phase="granted" if effect.outcome == "claimed" else "ending")
    return world


def _of_the_turn(world: World) -> Iterator[tuple[str, World]]:
    turn = world.prompt
    if world.phase == "stop":
        decision = chains.decide(world.chain, turn, background=False)
        if decision.kind == "continue":
            number = world.claim + 1
            after = _told(world, said.ClaimSent(id=number, owner=turn))
            yield (
                f"a stop: {turn} claims",
                after.replace(phase="claiming", claim=number, calls=(*world.calls, ("claim", number, turn))),
            )
        elif decision.kind == "exhausted":
            yield (
                f"a stop: {turn} has used its budget",
                _told(world, said.ExhaustionReported(turn=turn)).replace(phase="ending"),
            )
        else:
            yield f"a stop: {turn} may stop", world.replace(phase="ending")
    elif world.phase == "claiming" and world.left.deadlines:
        after = world.replace(left=world.left.replace(deadlines=world.left.deadlines - 1))
        yield "the deadline of the claim passes", _told(after, said.ClaimAnswered(id=world.claim, answer="deadline"))
    elif world.phase == "granted":
        yield f"the turn of {turn}: sends, or not", _sent(world)
    elif world.phase == "ending":
        outcome = "cancelled" if world.outcome == "cancelled" else "ended"
        after = _told(world, said.PromptEnded(id=turn, outcome=outcome))
        calls = (*after.calls, ("settled", world.run, world.outcome))
        yield f"the turn of {turn}: ends", after.replace(phase="idle", prompt="", run=0, calls=calls)


def _sent(world: World) -> World:
    """The last look before the send, and the send."""
    turn, decision = world.prompt, chains.decide(world.chain, world.prompt, background=False)
    if decision.kind != "continue":
        return world.replace(phase="ending")
    trouble = ""
    if world.seen_live:
        trouble = f"I2: a continuation is sent, though {', '.join(world.seen_live)} had been admitted before its claim"
    if state_name(world.chain.guard) == "SUSPENDED":
        trouble = "I6: a suspended chain sends"
    after = _told(world, said.AttemptCommitted(turn=turn, attempt=decision.attempt))
    return after.replace(phase="stop", sent=world.sent + 1, trouble=trouble)
