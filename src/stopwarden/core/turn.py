"""One session's turns as a machine: `step(state, event) -> (state, effects)`.

Theory of operation. An event is taken by its row of EVENTS. Then, while nothing is waited for, the next
row of the order in which the turn stands runs: STREAM_ORDER before a send, TOOL_ORDER after tools,
STOP_ORDER at a stop. When a turn has ended, the admitted prompt begins, or else what waits in the
backlog, if nothing holds it back. So each rule is one row of one table, and a step is a walk down.

An answer is taken only if its id is the one waited for. Any other id that was ever given out is
*retired*: the answer is late and without effect, save that words of the person in a late drain are
kept, and a late claim is told to the chain (`core/turn_answers`). Anything else raises IllegalEventError, and the
state is as it was.

Superseding. A newer prompt, a cancel or a dispose marks the running turn `abort`. What it waits for is
cut. A stream, tools, a compression and a send must come back before the turn is over, because they
touch history and the world; all else is not waited for. The newer prompt begins only then, so work set
going by an unwinding turn is old for it.

May not live here: the guard and its suspensions (`guard`, `chain`), the queues (`backlog`), the gate, moves and
loading (`door`), how turns that no person began begin (`automatic`), words.
"""

from __future__ import annotations

from stopwarden.core import automatic, door
from stopwarden.core import away_words as away
from stopwarden.core import backlog_events as waits
from stopwarden.core import chain as chains
from stopwarden.core import chain_words as words
from stopwarden.core import door_events as asks
from stopwarden.core import guard as guards
from stopwarden.core import turn_events as ev
from stopwarden.core.away_at_stop import fault
from stopwarden.core.continuation import STREAM_ORDER, TOOL_ORDER
from stopwarden.core.lineage import Deferral, relevant_background, waited
from stopwarden.core.stop_loop import STOP_ORDER, ask_claim, background, take_drained
from stopwarden.core.turn_answers import answered, settle, strike_drain
from stopwarden.core.turn_state import Found, Pen, Session, Stream, Turn, illegal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from stopwarden.core.record import Record

ORDERS = {"stream": STREAM_ORDER, "tools": TOOL_ORDER, "stop": STOP_ORDER}
# Where a turn stands (its order, and the row that is next; "": the first) -> what is done, and the row after it.
WALK = {
    (name, at): (row.act, following.rule if following is not None else "")
    for name, order in ORDERS.items()
    for row, following in zip(order, (*order[1:], None), strict=True)
    for at in ((row.rule, "") if row is order[0] else (row.rule,))
}
MUST_COME_BACK = ("send", "stream", "tools", "compress")  # before a turn that unwinds is over


def step(state: Session, event: Record) -> tuple[Session, tuple[ev.Effect, ...]]:
    """The session after `event`, and what is to be done, in order. Raises IllegalEventError; then nothing changed."""
    pen = Pen(state)
    take: Callable[[Pen, Any], None] | None = EVENTS.get(type(event))
    if take is None and isinstance(event, ev.Answer):
        take = answered
    if take is None:
        raise illegal(event, "the turn knows no such event")
    door.refuse_while_loading(pen, event)
    take(pen, event)
    go_on(pen)
    door.look_for_rest(pen)
    return pen.written()


def go_on(pen: Pen) -> None:
    """Run rows until something must be waited for; then, with no turn, begin what may begin."""
    while True:
        turn = pen.turn
        if turn is None:
            if not begin_next(pen):
                suggest(pen)
                return
        elif turn.abort:
            if not unwound(pen):
                return
        elif turn.waiting is not None:
            return
        else:
            act, following = WALK[turn.order, turn.row]
            pen.writing().row = following
            act(pen)


def unwound(pen: Pen) -> bool:
    """Whether a turn that was cut is over. What it had not sent is kept; a newer prompt's chain is not touched."""
    turn = pen.running
    if turn.waiting is not None and turn.waiting.what in MUST_COME_BACK:
        return False
    pen.cut(turn.abort)
    if turn.found is not None:
        pen.store(turn.found.parts)
    pen.put_away("superseded")
    pen.end("cancelled", f"turn.{turn.abort}")
    return True


def cut_short(pen: Pen, why: str) -> None:
    """The running turn is to unwind; the first reason stands."""
    turn = pen.running
    if turn.abort:
        return
    pen.on(abort=why)
    if turn.waiting is not None and turn.waiting.what in MUST_COME_BACK:
        pen.do(ev.Abort, of=turn.waiting.id, why=why)


# ---- who begins


def begin_next(pen: Pen) -> bool:
    """The admitted prompt first; else what waits in the backlog; nothing before the session is loaded."""
    if pen.state.door.loading:
        return False
    prompt = pen.state.next
    if prompt is not None:
        begin_prompt(pen, prompt)
        return True
    return automatic.begin(pen)


def begin_prompt(pen: Pen, prompt: ev.Prompt) -> None:
    """Every older turn has unwound: the prompt's chain begins or goes on, with words that were kept for it."""
    automatic.give_back(pen, "new_prompt")
    parts = pen.state.kept + prompt.parts
    pen.set(next=None, kept=(), deferral=Deferral())
    pen.chained(words.PromptStarted(id=prompt.id))
    pen.turn = Turn(id=prompt.id, kind=ev.FOREGROUND, owner=prompt.owner, stream=Stream(parts=parts, label=prompt.id))
    pen.do(ev.BeginTurn, turn=prompt.id, kind=ev.FOREGROUND)


def suggest(pen: Pen) -> None:
    """A person's turn has ended of itself, and nothing follows: unless something is held back or still to come."""
    follows = pen.state.arriving or pen.state.starting is not None
    shut = pen.chain.closing or pen.chain.disposed
    if pen.ended and not follows and not shut and chains.may_suggest(pen.chain) and not background(pen):
        pen.do(ev.Suggest, turn=pen.ended)


# ---- events nobody asked for


def offered(pen: Pen, event: ev.PromptOffered) -> None:
    """The first look at the gate; the writer is asked, and then the gate again."""
    prompt = event.prompt
    known = [pen.turn, pen.state.next, *(arriving for _, arriving in pen.state.arriving)]
    if any(one is not None and one.id == prompt.id for one in known):
        raise illegal(event, "this prompt is here already")
    if pen.chain.disposed or pen.chain.closing:
        refuse(pen, prompt, "disposed" if pen.chain.disposed else "closing")
        return
    asked = pen.do(ev.AdmitWriter, prompt=prompt.id)
    pen.set(arriving=(*pen.state.arriving, (asked, prompt)))


def writer_admitted(pen: Pen, event: ev.WriterAdmitted) -> None:
    """The second look. An admitted prompt ends the old chain now and takes the place of whatever runs or waits."""
    prompt = dict(pen.state.arriving).get(event.id)
    if prompt is None:
        if not 0 < event.id < pen.next_id:
            raise illegal(event, f"nothing was asked under id {event.id}")
        return
    pen.set(arriving=tuple(one for one in pen.state.arriving if one[0] != event.id))
    if pen.chain.disposed or pen.chain.closing or not event.granted:
        why = "disposed" if pen.chain.disposed else "closing" if pen.chain.closing else "cancelled"
        refuse(pen, prompt, why)
        return
    if pen.state.next is not None:  # it will not begin: its words go with the newer one
        own = tuple(part for part in pen.state.next.parts if part.kind != "mid_turn")
        drop_next(pen, "new_prompt")
        pen.set(kept=pen.state.kept + own)
    pen.waited(waits.PromptCame())
    pen.chained(words.PromptAdmitted(id=prompt.id, kind=prompt.kind))
    pen.set(next=prompt, retry_at=0)
    if pen.turn is not None:
        cut_short(pen, "new_prompt")


def refuse(pen: Pen, prompt: ev.Prompt, why: str) -> None:
    """The prompt is not taken. Whoever gave way to it waits no more: the owner's side tells no release."""
    pen.do(ev.Refuse, prompt=prompt.id, why=why)
    pen.hold(carried(prompt))
    owners = dict.fromkeys((pen.chain.priority_owner, *(claim.owner for claim in pen.chain.claims)))
    for owner in owners:
        if owner is not None:
            pen.chained(words.Released(owner=owner), unheard=words.ReleaseAnswered)


def drop_next(pen: Pen, why: str) -> None:
    """An admitted prompt that has not begun will not begin. What it carried was said before it, and is kept."""
    prompt = pen.state.next
    if prompt is not None:
        pen.set(next=None)
        pen.do(ev.EndTurn, turn=prompt.id, kind="cancelled", rule=f"turn.{why}")
        pen.hold(carried(prompt))


def carried(prompt: ev.Prompt) -> tuple[ev.Part, ...]:
    """Words that missed their drain and came with this prompt."""
    return tuple(part for part in prompt.parts if part.kind == "mid_turn")


def withdrawn(pen: Pen, event: ev.PromptWithdrawn) -> None:
    """Its caller went away before the admitted prompt could begin."""
    if pen.state.next is not None and pen.state.next.id == event.prompt:
        pen.chained(words.PromptAbandoned(id=event.prompt))
        drop_next(pen, "withdrawn")


def queue_seen(pen: Pen, event: ev.PromptQueuedSeen) -> None:
    """A prompt waits while the hooks are out: a claim says whether that is so, and the hooks go on meanwhile."""
    turn = pen.turn
    if turn is None or turn.abort or turn.waiting is None or turn.waiting.what != "hooks":
        return
    if pen.chain.guard.switch != "on" and not pen.chain.away:
        return
    pen.on(hooks_out=turn.waiting, waiting=None)
    ask_claim(pen, probe=True)


def released(pen: Pen, event: ev.QueueReleased) -> None:
    pen.chained(words.Released(owner=event.owner))


def mode_changed(pen: Pen, event: ev.ModeChanged) -> None:
    pen.chained(words.ModeChanged(plan=event.plan))


def away_set(pen: Pen, event: away.AwaySet) -> None:
    pen.chained(words.AwayChanged(period=event.period))


def fences_changed(pen: Pen, event: away.FencesChanged) -> None:
    pen.set(fences=pen.state.fences + 1)


def switch_set(pen: Pen, event: ev.SwitchSet) -> None:
    """Raises SettingError for another switch, and where the guard is forced off."""
    pen.chained(words.SwitchSet(switch=event.switch))
    tell_settings(pen)


def budget_set(pen: Pen, event: ev.BudgetSet) -> None:
    """Raises SettingError for limits out of range."""
    given = {name: limit for name, limit in event.as_dict().items() if limit is not None}
    pen.chained(words.BudgetSet(budget=pen.chain.guard.budget.replace(**given)))
    tell_settings(pen)


def tell_settings(pen: Pen) -> None:
    guard = pen.chain.guard
    pen.tell("guard_set", switch=guard.switch, **guard.budget.as_dict())


def todo_written(pen: Pen, event: ev.TodoWritten) -> None:
    """People see a trusted list of the turn that runs, whatever the guard makes of it; of a rejected call, nothing."""
    if event.todos is not None and pen.turn is not None and pen.turn.id == event.turn:
        pen.do(ev.ShowPlan, turn=event.turn, todos=event.todos)
    pen.chained(words.TodoObserved(turn=event.turn, todos=event.todos))


def background_changed(pen: Pen, event: ev.BackgroundChanged) -> None:
    """What a guest sets going is none of the work that the chain beside it waits for."""
    if pen.guest:
        known = {(task.kind, task.id) for task in pen.state.tasks}
        made = tuple(task for task in event.tasks if (task.kind, task.id) not in known)
        pen.waited(waits.MadeByAnother(tasks=made))
    pen.set(tasks=event.tasks)
    look_at_the_wait(pen)


def result_arrived(pen: Pen, event: ev.ResultArrived) -> None:
    pen.waited(waits.ResultCame(result=event.result, world=pen.state.tasks, holding=pen.holding()))


def fire_arrived(pen: Pen, event: ev.FireArrived) -> None:
    pen.waited(waits.FireCame(fire=event.fire, holding=pen.holding()))


def rewound(pen: Pen, event: ev.Rewound) -> None:
    pen.chained(words.Rewound())


def cancelled(pen: Pen, event: ev.Cancelled) -> None:
    """Everything of this session stops; results wait for the next prompt."""
    if pen.chain.disposed:
        raise illegal(event, "the session is put away")
    pen.chained(words.Cancelled())
    automatic.give_back(pen, "cancel")
    pen.waited(waits.Paused())
    drop_next(pen, "cancel")
    if pen.turn is not None:
        cut_short(pen, "cancel")


def disposed(pen: Pen, event: ev.Disposed) -> None:
    """A controlled end with its own reason. What waits lies in the store, and comes back when the session is loaded."""
    if pen.chain.disposed:
        raise illegal(event, "the session is put away")
    pen.chained(words.Disposed())
    automatic.give_back(pen, "dispose")
    drop_next(pen, "dispose")
    for _, prompt in pen.state.arriving:
        pen.do(ev.Refuse, prompt=prompt.id, why="disposed")
        pen.hold(carried(prompt))
    pen.set(arriving=())
    pen.store(pen.state.kept)
    pen.set(kept=())
    door.disposed(pen)
    if pen.turn is not None:
        cut_short(pen, "dispose")


def restored(pen: Pen, event: asks.RestoreAnswered) -> None:
    """A session that cannot be restored is put away: it would go on from half of what was known."""
    if door.restore_answered(pen, event):
        disposed(pen, ev.Disposed())


def ticked(pen: Pen, event: ev.Tick) -> None:
    """Deadlines, and the limit of the wait for background work."""
    pen.set(now=max(pen.state.now, event.now))
    turn = pen.turn
    waiting = turn.waiting if turn is not None else None
    if waiting is not None and waiting.due is not None and pen.state.now >= waiting.due:
        pen.on(waiting=None)
        if waiting.what == "claim":
            settle(pen, waiting.id, "deadline")
        elif waiting.what in ("verdict", "commit"):
            fault(pen, "no answer in time")
        else:
            pen.set(late_drains=(*pen.state.late_drains, waiting.id))
            strike_drain(pen)
            take_drained(pen, Found(reliable=False))
    automatic.ticked(pen)
    door.ticked(pen)
    look_at_the_wait(pen)


def look_at_the_wait(pen: Pen) -> None:
    """Past its limit, a wait for background work no longer holds unrelated turns back (design §8.5).

    A guest that runs beside the chain ends no wait.
    """
    tasks: tuple[str, ...] = ()
    if guards.trusted_unfinished(pen.chain.guard) and (pen.turn is None or pen.guest):
        tasks = tuple(task.id for task in relevant_background(pen.backlog.lineage, pen.state.tasks))
    deferral, effects = waited(pen.state.deferral, tasks, pen.seconds())
    pen.set(deferral=deferral)
    for effect in effects:
        pen.do(ev.Pass, what=effect)
        pen.chained(words.DeferralTooLong())


def to_backlog(pen: Pen, event: Record) -> None:
    """What concerns the backlog alone."""
    pen.waited(event)


def to_lineage(pen: Pen, event: Record) -> None:
    """An agent that a turn made or writes to is related to its chain; a guest has none."""
    if not pen.guest:
        pen.waited(event)


def cleared(pen: Pen, event: waits.Cleared) -> None:
    """The conversation is emptied, between turns: what waits is named in gap entries, and they stay."""
    pen.chained(words.Rewound())
    automatic.give_back(pen, "cleared")
    pen.waited(event)


EVENTS: Mapping[type[Record], Callable[[Pen, Any], None]] = {
    ev.PromptOffered: offered,
    ev.WriterAdmitted: writer_admitted,
    ev.TurnRegistered: automatic.registered,
    ev.PromptWithdrawn: withdrawn,
    ev.PromptQueuedSeen: queue_seen,
    ev.QueueReleased: released,
    ev.ModeChanged: mode_changed,
    ev.SwitchSet: switch_set,
    ev.BudgetSet: budget_set,
    away.AwaySet: away_set,
    away.FencesChanged: fences_changed,
    ev.TodoWritten: todo_written,
    ev.BackgroundChanged: background_changed,
    ev.ResultArrived: result_arrived,
    ev.FireArrived: fire_arrived,
    ev.Rewound: rewound,
    ev.Cancelled: cancelled,
    ev.Disposed: disposed,
    ev.GateTaken: door.gate_taken,
    ev.GateReleased: door.gate_released,
    asks.SettleAsked: door.settle_asked,
    asks.ActivitySeen: door.activity_seen,
    asks.MoveAsked: door.move_asked,
    asks.PlaceChecked: door.place_checked,
    asks.PlaceRead: door.place_read,
    asks.MoveMade: door.move_made,
    asks.LoadBegan: door.load_began,
    asks.RestoreAnswered: restored,
    ev.Tick: ticked,
    waits.MessageSending: to_lineage,
    waits.MessageSettled: to_backlog,
    waits.Spawned: to_lineage,
    waits.Cleared: cleared,
    waits.GapsShown: to_backlog,
    waits.PersonLooks: to_backlog,
    waits.GapsRead: to_backlog,
}
