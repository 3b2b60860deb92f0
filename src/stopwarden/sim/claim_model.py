"""The claim protocol with everything around it: every order of events of two machines, tried to the end.

The real turn of a session (`core/turn`: guard, chain, stop order, continuation) and the real queue of
the owner of its prompts (`core/queue`) speak over pipes that may be slow for ever: calls to the owner,
answers and orders to the session. Each pipe keeps its order; answers and orders overtake each other. A
person sends prompts, speaks in the middle of a turn, takes out, cancels, and turns plan mode on and
off; provider, external Stop hooks and deadlines answer as they like.

The person may do all that for ever: what is bounded (`Bounds`) is only how much there is at a time. Two
worlds that differ in names alone are one (`claim_key`), so the states are finite and all are visited,
whatever the length of a history. What must hold is said over what was sent and admitted
(`claim_book`), and by `wrong` and `at_rest`. May not live here: any rule of the machines.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stopwarden.core import chain as chains
from stopwarden.core import queue as queues
from stopwarden.core import queue_words as q
from stopwarden.core import turn as turns
from stopwarden.core import turn_events as ev
from stopwarden.core.chain_words import ReleaseAnswered
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.queue_move import live_queued, running
from stopwarden.core.record import Record
from stopwarden.core.todo_envelope import Todo, TodoList
from stopwarden.core.turn_state import Session, Turn
from stopwarden.sim import claim_pairs as pairs
from stopwarden.sim.claim_book import Book, places
from stopwarden.sim.claim_key import Shapes, digest
from stopwarden.sim.explorer import Explored, explore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LIMIT = 5_000_000  # states
SESSION, CHILD, CLIENT = "s", "child", "person"
UNFINISHED = TodoList(items=(Todo(id="1", content="", status="pending"),))
HOOK_CAP = 2  # blocks in a row; as many as needed to tell the first, a further one and the last apart
FINISHED = TodoList(items=(Todo(id="1", content="", status="completed"),))


class Bounds(Record):
    """How much there is at a time, and what may happen at all. Nothing bounds how often."""

    prompts: int = 2  # admitted and not settled, the running one included
    words: int = 1  # said in the middle of a turn and not delivered
    orders: int = 2  # of the owner on their way to the session; beyond that the person waits
    answers: int = 2  # of the owner on their way to the session; beyond that the owner waits
    removals: bool = True
    cancels: bool = True
    plans: bool = True
    hooks: bool = True
    deadlines: bool = True  # of a claim and of a drain: the answer comes late
    refusals: bool = False  # the provider refuses or breaks a stream, compression fails, hooks cannot be asked
    lost: bool = False  # a claim that is waited for is never answered
    doubled: bool = False  # an answer comes twice
    hung: bool = False  # the owner gives up on a session that does not answer a cancel
    rewinds: bool = False


# The parts of a whole exploration: each visits every state of its dimensions; the rest is as little as can be.
LITTLE = Bounds(words=0, cancels=False, plans=False, hooks=False, deadlines=False)
LOST = LITTLE.replace(prompts=1, words=1, deadlines=True, lost=True, doubled=True)
PARTS: tuple[tuple[str, Bounds, int], ...] = (
    ("promotion, release, drain, deadlines", LITTLE.replace(words=1, deadlines=True), 0),
    ("promotion, release, cancel, plan mode", LITTLE.replace(cancels=True, plans=True), 0),
    ("promotion, release, hooks", LITTLE.replace(hooks=True), 0),
    ("one prompt; all but deadlines; what fails", Bounds(prompts=1, deadlines=False, refusals=True), 0),
    ("one prompt; claims lost, answers doubled", LOST, 0),
    ("one prompt; cancel, deadlines", LITTLE.replace(prompts=1, cancels=True, deadlines=True), 0),
    ("all at once, as far as it goes", Bounds(rewinds=True), 10_000),
)
DEEP: tuple[tuple[str, Bounds, int], ...] = (
    *PARTS[:-1],
    ("one prompt; all of it", Bounds(prompts=1), 0),
    ("a session that does not answer a cancel", LITTLE.replace(prompts=1, words=1, cancels=True, hung=True), 200_000),
    ("all at once, as far as it goes", Bounds(rewinds=True), 1_000_000),
)


class World:
    """Both machines, what is on its way between them, and the book."""

    __slots__ = ("answers", "book", "bounds", "calls", "met", "named", "orders", "queue", "runs", "session")

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.queue, _ = queues.step(queues.open_queue(SESSION, CHILD), q.ClientJoined(at=0, client=CLIENT))
        self.session = Session(hooks=bounds.hooks, hook_cap=HOOK_CAP)
        self.calls: tuple[q.QueueEvent, ...] = ()
        self.orders: tuple[q.Effect, ...] = ()
        self.answers: tuple[ev.Answer, ...] = ()
        self.runs: tuple[tuple[str, int], ...] = ()  # prompts that the session owes an end for, and under which id
        self.named = 0
        self.met: Counter[tuple[str, str, str]] = Counter()  # of all histories together: side, state, event
        self.book = Book()

    def copy(self) -> World:
        """Another world, the same so far."""
        made = World.__new__(World)
        for name in World.__slots__:
            setattr(made, name, getattr(self, name))
        made.book = self.book.copy()
        return made

    @property
    def waits_for(self) -> str:
        """What the session's turn waits for: drain, claim, hooks, compress, send, stream, or nothing."""
        turn = self.session.turn
        return turn.waiting.what if turn is not None and turn.waiting is not None else ""


def begin(bounds: Bounds = Bounds()) -> World:  # noqa: B008 - a Record is immutable
    """A session at rest, its owner's queue empty."""
    return World(bounds)


def key(world: World) -> bytes:
    """The same for worlds that differ in names and ids alone."""
    book = world.book
    queue, ids = _SHAPES.of(world.queue)
    session, more = _SHAPES.of(world.session)
    shapes: list[Any] = [queue, session, world.session.turn is not None and book.turn_facts(), book.wrong]
    every: list[Any] = [*ids, *more]
    for pipe in (world.calls, world.orders, world.answers):
        shape, inside = _SHAPES.all(pipe)
        shapes.append(shape)
        every += inside
    every.append(book.claim)
    shapes.append(book.claim in every[:-1])
    for names in (book.owed, book.said, book.own or (), [name for name, _ in world.runs]):
        shapes.append(len(names))
        every += names
    shapes.append(book.own is None)
    every += [-run for _, run in world.runs]
    for number, rivals in book.grants:
        shapes.append(len(rivals))
        every += (number, *rivals)
    if book.staged is not None:
        shapes += ("staged", len(book.staged[0]), book.staged[1])
        every += book.staged[0]
    return digest(tuple(shapes), every)


_SHAPES = Shapes()


# --- what must hold ------------------------------------------------------------------------------


def wrong(world: World) -> str:
    """The rule that does not hold in this state, in words; "" if all do."""
    if world.book.wrong:
        return world.book.wrong
    if world.queue.wait_owner is not None and not live_queued(world.queue):
        return "I3: the owner remembers a wait, and no prompt is queued"
    if at_rest(world):
        chain = world.session.chain
        if chain.priority:
            return f"I3: the chain waits for a queued prompt ({chain.priority_owner}), and there is none"
        if chain.claims and not world.bounds.lost:  # one that was cut short and lost is nobody's to end
            return "a claim is in flight for ever"
        if world.queue.entries:
            return "a prompt is queued for ever"
    return ""


def at_rest(world: World) -> bool:
    """Nothing is on its way and nothing runs: only the person can make something happen."""
    if world.calls or world.orders or world.answers:
        return False
    return world.session.turn is None and world.session.next is None


# --- what may happen next ------------------------------------------------------------------------


def moves(world: World) -> Iterator[tuple[str, World, bool]]:
    """Everything that may happen next: its words, the world after it, whether the person does it."""
    if len(world.orders) < world.bounds.orders:
        for words, after in _of_the_person(world):
            yield words, after, True
    for words, after in _of_the_pipes(world):
        yield words, after, False
    for words, after in _of_the_turn(world):
        yield words, after, False


def _of_the_person(world: World) -> Iterator[tuple[str, World]]:
    bounds, queue, now = world.bounds, world.queue, running(world.queue)
    if len(queue.entries) < bounds.prompts:
        after = world.copy()
        name = _name(after, "p")
        after.book.admitted(name)
        _queued(after, q.Admit(at=0, request=name, session=SESSION, client=CLIENT, prompt=name, content=name))
        yield f"the person sends a prompt: {name}", after
    if bounds.words and now is not None and sum(name[0] == "m" for name in world.book.owed) < bounds.words:
        after = world.copy()
        name = _name(after, "m")
        after.book.admitted(name)
        _queued(after, q.PostMessage(at=0, request=name, session=SESSION, client=CLIENT, message=name, text=name))
        yield f"the person says in the middle of the turn: {name}", after
    if bounds.removals:
        for entry in live_queued(queue):
            after = world.copy()
            after.book.taken_back(entry.prompt)
            _queued(after, q.RemovePrompt(at=0, request="out", session=SESSION, client=CLIENT, prompt=entry.prompt))
            yield f"the person takes out a queued prompt: {entry.prompt}", after
    if bounds.cancels and now is not None and now.run is not None and not now.aborted:
        after = world.copy()
        _queued(after, q.CancelRunning(at=0, request="cancel", session=SESSION, client=CLIENT))
        yield f"the person cancels: {now.prompt}", after
    if bounds.plans and not world.session.chain.disposed:
        on = not world.session.chain.plan
        after = world.copy()
        _told(after, ev.ModeChanged(plan=on))
        yield f"plan mode is turned {'on' if on else 'off'}: ", after
    idle = world.session.turn is None and world.session.next is None
    if bounds.rewinds and idle and not world.session.chain.disposed and not world.session.chain.guard.suspended:
        after = world.copy()
        _told(after, ev.Rewound())
        yield "the person takes history back: ", after


def _of_the_pipes(world: World) -> Iterator[tuple[str, World]]:
    if world.calls and (len(world.answers) < world.bounds.answers or isinstance(world.calls[0], q.Reply)):
        call = world.calls[0]
        after = world.copy()
        after.calls = world.calls[1:]
        _queued(after, call)
        yield f"the owner hears: {_shown(call)}", after
    if world.answers:
        answer = world.answers[0]
        after = world.copy()
        after.answers = world.answers[1:]
        _told(after, answer)
        yield f"the session hears: {_shown(answer)}", after
        if world.bounds.doubled:
            after = world.copy()
            _told(after, answer)
            yield f"the session hears, and will hear again: {_shown(answer)}", after
        if world.bounds.lost and _waited_claim(world) == answer.id:
            after = world.copy()
            after.answers = world.answers[1:]
            yield f"an answer is lost: {_shown(answer)}", after
    if world.orders:
        order = world.orders[0]
        after = world.copy()
        after.orders = world.orders[1:]
        _ordered(after, order)
        yield f"the session hears: {_shown(order)}", after
    if world.bounds.hung and world.queue.forwards:
        forward = world.queue.forwards[0]
        after = world.copy()
        _queued(after, q.TimerFired(at=0, effect=forward.timer))
        yield f"the owner gives up on the session: {forward.target}", after


def _waited_claim(world: World) -> int:
    """The claim whose answer the turn waits for; 0 for none."""
    turn = world.session.turn
    return turn.waiting.id if turn is not None and turn.waiting is not None and turn.waiting.what == "claim" else 0


def _of_the_turn(world: World) -> Iterator[tuple[str, World]]:
    """What the session's own process does: hooks, provider, clock."""
    turn = world.session.turn
    if turn is None:
        return
    hooks = turn.waiting if world.waits_for == "hooks" else turn.hooks_out
    if hooks is not None:
        yield _answered(world, "the Stop hooks allow it: ", ev.HookAnswered(id=hooks.id))
        yield _answered(world, "the Stop hooks block: ", ev.HookAnswered(id=hooks.id, block=True, reason="go on"))
        if world.bounds.refusals:
            yield _answered(world, "the Stop hooks cannot be asked: ", ev.HookAnswered(id=hooks.id, failed=True))
    waiting = turn.waiting
    if waiting is None:
        return
    number, failing = waiting.id, world.bounds.refusals
    if waiting.what in ("claim", "drain") and world.bounds.deadlines:
        after = world.copy()
        after.book.deadline_passed(waiting.what if turn.row == "stream.weigh_claim" else "")
        _told(after, ev.Tick(now=waiting.due or 0))
        yield f"the deadline passes: of a {waiting.what}", after
    elif waiting.what == "compress":
        yield _answered(world, "history is made short: ", ev.CompressionDone(id=number))
        if failing:
            yield _answered(world, "history cannot be made short: ", ev.CompressionFailed(id=number))
    elif waiting.what == "send":
        yield _answered(world, "the provider begins to answer: ", ev.ProviderAccepted(id=number))
        if failing:
            yield _answered(world, "the provider refuses: ", ev.ProviderRefused(id=number))
    elif waiting.what == "stream":
        yield from _replies(world, turn, number)


def _replies(world: World, turn: Turn, number: int) -> Iterator[tuple[str, World]]:
    """How a reply may end: with a list that has unfinished items, with all done, or without a word of it."""
    guard = world.session.chain.guard
    if not guard.unfinished:
        after = world.copy()
        _told(after, ev.TodoWritten(turn=turn.id, todos=UNFINISHED))
        _told(after, ev.StreamEnded(id=number, reply="r"))
        yield "the reply ends, its list is unfinished: ", after
    elif guard.armed and not turn.abort:
        after = world.copy()
        _told(after, ev.TodoWritten(turn=turn.id, todos=FINISHED))
        _told(after, ev.StreamEnded(id=number, reply="r"))
        yield "the reply ends, its list is done: ", after
    yield _answered(world, "the reply ends: ", ev.StreamEnded(id=number, reply="r"))
    if world.bounds.refusals:
        yield _answered(world, "the reply breaks off: ", ev.StreamBroken(id=number))


def _answered(world: World, words: str, answer: ev.Answer) -> tuple[str, World]:
    after = world.copy()
    _told(after, answer)
    return words, after


def _name(world: World, kind: str) -> str:
    world.named += 1
    return f"{kind}{world.named}"


def _shown(told: Record) -> str:
    """Anything on its way, in words."""
    match told:
        case q.AskClaim():
            return f"a claim of {told.prompt}"
        case q.AskDrain():
            return f"a drain for {told.prompt}"
        case q.PromptSettled():
            return f"a turn is over ({told.outcome})"
        case q.CancelForwarded():
            return "the cancel was taken"
        case q.ReleaseAnswered():
            return f"the release is {'taken' if told.released else 'not for anybody'}"
        case q.RunPrompt():
            return f"run {told.prompt}" + ("".join(f" with {one.message}" for one in told.carried))
        case q.SendRelease():
            return f"{told.owner} is released"
        case q.ForwardCancel():
            return f"cancel {told.target}"
        case q.CutStopHook():
            return f"a prompt waits behind {told.owner}"
        case ev.ClaimAnswered():
            return f"the claim is {chains.read_claim_answer(told.claimed, told.queued)}"
        case ev.DrainAnswered():
            words = ", ".join(part.id for part in told.parts) or "nothing"
            return f"drained {words}{', and a prompt waits' if told.hint else ''}"
        case _:
            return type(told).__name__


# --- both machines -------------------------------------------------------------------------------


def _queued(world: World, event: q.QueueEvent) -> None:
    """The owner's queue takes an event; what it tells the session is on its way."""
    before = world.queue
    world.met["owner", pairs.owner_state(before), pairs.owner_event(event)] += 1
    try:
        world.queue, effects = queues.step(before, event)
    except IllegalEventError as error:
        world.book.break_rule(f"the queue calls illegal what can happen: {error}")
        return
    for effect in effects:
        match effect:
            case q.RunPrompt():
                world.orders = (*world.orders, effect)
                world.runs = (*world.runs, (effect.prompt, effect.id))
            case q.SendRelease() | q.ForwardCancel():
                world.orders = (*world.orders, effect)
            case q.CutStopHook() if world.bounds.hooks and not any(
                isinstance(one, q.CutStopHook) for one in world.orders
            ):
                world.orders = (*world.orders, effect)
            case q.AnswerClaim():
                answer = ev.ClaimAnswered(
                    id=int(effect.request), claimed=effect.claimed, queued=effect.has_queued_prompt
                )
                world.answers = (*world.answers, answer)
                assert isinstance(event, q.AskClaim)
                rivals = tuple(one.prompt for one in before.entries if one.live and one.prompt != event.prompt)
                world.book.answered_claim(answer.id, effect.claimed, rivals)
            case q.AnswerDrain():
                parts = tuple(ev.Part(kind="mid_turn", id=one.message) for one in effect.messages)
                drained = ev.DrainAnswered(id=int(effect.request), parts=parts, hint=effect.has_queued_prompt)
                world.answers = (*world.answers, drained)
    _look(world)


def _ordered(world: World, order: q.Effect) -> None:
    """The session hears what the owner sends unasked."""
    match order:
        case q.RunPrompt():
            carried = tuple(ev.Part(kind="mid_turn", id=one.message) for one in order.carried)
            own = ev.Part(kind="user", id=order.prompt)
            prompt = ev.Prompt(id=order.prompt, owner=order.prompt, parts=(*carried, own))
            _told(world, ev.PromptOffered(prompt=prompt))
        case q.SendRelease():
            _told(world, ev.QueueReleased(owner=order.owner), release=order.id)
        case q.ForwardCancel():
            _told(world, ev.Cancelled())
            _queued(world, q.CancelForwarded(at=0, effect=order.id))
        case q.CutStopHook():
            _told(world, ev.PromptQueuedSeen())


def _told(world: World, event: Record, release: int = 0) -> None:
    """The session takes an event; what it asks for is on its way."""
    world.book.heard(event, world.session)
    before = world.session.turn
    world.met["session", pairs.session_state(world.session), pairs.session_event(event, world.session)] += 1
    try:
        world.session, effects = turns.step(world.session, event)
    except IllegalEventError as error:
        world.book.break_rule(f"the session calls illegal what can happen: {error}")
        return
    for effect in effects:
        if isinstance(effect, ev.EndTurn) and (before is None or before.id != effect.turn):
            world.book.taken_back(effect.turn)  # it never began, and the person is told so
        else:
            world.book.asked(effect)
        match effect:
            case ev.AdmitWriter():
                _told(world, ev.WriterAdmitted(id=effect.id))
            case ev.BeginTurn():
                world.book.began(world.session.chain.plan)
            case ev.Claim():
                world.calls = (*world.calls, _call(q.AskClaim, effect))
            case ev.Drain():
                world.calls = (*world.calls, _call(q.AskDrain, effect))
            case ev.EndTurn():
                _settle(world, effect.turn, effect.kind)
            case ev.Refuse():
                world.book.taken_back(effect.prompt)
                _settle(world, effect.prompt, "error")
            case ev.Pass() if release and isinstance(effect.what, ReleaseAnswered):
                _queued(world, q.ReleaseAnswered(at=0, effect=release, released=effect.what.released))
    _go_on(world)
    _look(world)


def _go_on(world: World) -> None:
    """What nobody can come between: the token check, and all up to the reply of a stream that is not the guard's."""
    turn = world.session.turn
    if turn is None or turn.waiting is None:
        return
    number = turn.waiting.id
    if turn.waiting.what == "tokens":
        _told(world, ev.TokensChecked(id=number))
    elif not turn.stream.attempt and turn.waiting.what == "compress":
        _told(world, ev.CompressionDone(id=number))
    elif not turn.stream.attempt and turn.waiting.what == "send":
        _told(world, ev.ProviderAccepted(id=number))


def _call(kind: type[q.AskClaim] | type[q.AskDrain], effect: ev.Claim | ev.Drain) -> q.QueueEvent:
    return kind(at=0, request=str(effect.id), session=SESSION, child=CHILD, prompt=effect.owner)


def _settle(world: World, prompt: str, kind: str) -> None:
    run = dict(world.runs).get(prompt)
    if run is None:
        return
    world.runs = tuple(one for one in world.runs if one[0] != prompt)
    failed = kind in ("error", "max_tokens", "loop_detected")
    outcome: q.Outcome = "cancelled" if kind == "cancelled" else "failed" if failed else "completed"
    world.calls = (*world.calls, q.PromptSettled(at=0, effect=run, outcome=outcome))


def _look(world: World) -> None:
    book = world.book
    book.look(places(world.queue, world.session, world.orders, world.answers))
    if book.grants:
        under_way = {answer.id for answer in world.answers}
        book.grants = tuple(one for one in book.grants if one[0] in under_way)


# --- the whole -----------------------------------------------------------------------------------


def explore_part(bounds: Bounds, limit: int = 0) -> tuple[Explored[World], Counter[tuple[str, str, str]]]:
    """Visits every state within the bounds (at most `limit`, if given); says which claim states and events met."""
    world = begin(bounds)
    world.met.clear()
    return explore(world, moves, wrong, key=key, rests=at_rest, limit=limit or LIMIT), world.met


def counterexample(bounds: Bounds, limit: int = 20_000) -> tuple[str, tuple[str, ...]] | None:
    """The first broken rule within the bounds and the shortest story of it; None if `limit` states show none."""
    found, _ = explore_part(bounds, limit)
    return (found.broken, found.story) if found.broken else None
