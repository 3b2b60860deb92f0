"""What waits for a turn in one session: background results, scheduled prompts, gap entries, with their lineage.

Theory of operation. One machine, `step(backlog, event) -> (backlog, effects)`. What comes in is written to
the store first (`Keep`), classified by the lineage of that moment, and queued within bounds. `DrainAsked`
takes what may go now: one turn of all results that may go, or one scheduled prompt; nothing else goes
until that turn is `TurnAccepted` (the provider answered) or `TurnReturned` (it came to nothing: all of it is
in front again). What a bound leaves out becomes a gap entry, which rides on the next turn of any kind.

So every result is in exactly one place: waiting, on its way, delivered, or a gap entry until both model and
person know of it. `where_is` tells. Answers about turns that are over are expected and change nothing.
An event that cannot be taken raises IllegalEventError, and the state is as it was.

In memory are at most 20 waiting results and 20 on their way, 20 unrelated scheduled prompts while a chain waits
(100 otherwise), one entry per related wakeup, 100 gap entries and 200 remembered names.

May not live here: whether the session is idle or closing (turn.py), the guard (guard.py), texts.
"""

from __future__ import annotations

from stopwarden.core import fires, gaps, lineage, results
from stopwarden.core.backlog_events import (
    Backlog,
    ChainBegan,
    Cleared,
    Deliver,
    DrainAsked,
    FireCame,
    GapsRead,
    GapsShown,
    Keep,
    LeftOut,
    MadeByAnother,
    MessageSending,
    MessageSettled,
    NoticeAsked,
    OnItsWay,
    OwnResultsAsked,
    Paused,
    PersonLooks,
    PromptCame,
    Restored,
    ResultCame,
    RetryLater,
    RunFire,
    Settle,
    ShowRetained,
    Spawned,
    TellModel,
    TurnAccepted,
    TurnReturned,
)
from stopwarden.core.bounds import RETRY_AFTER, SETTLED_RESULTS
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.results import RESULT_KINDS, Holding, Result, Results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Literal

    from stopwarden.core.fires import Fire
    from stopwarden.core.lineage import Task
    from stopwarden.core.record import Record

    Step = tuple[Backlog, tuple[Record, ...]]


def step(backlog: Backlog, event: Record) -> Step:
    """The backlog after an event, and what is to be done. Raises IllegalEventError; then nothing has changed."""
    handle = _STEPS.get(type(event))
    if handle is None:
        raise IllegalEventError(f"The backlog knows no event {type(event).__name__}", kept="Nothing was changed")
    return handle(backlog, event)


def defers_guard(backlog: Backlog, world: Iterable[Task]) -> bool:
    """Whether the guard waits for this chain's work: a related result or wakeup waits, or a live task is related."""
    waiting = any(result.related for result in backlog.results) or any(fire.related for fire in backlog.fires)
    return waiting or lineage.has_relevant_background(backlog.lineage, world)


def where_is(backlog: Backlog, id: str) -> str:
    """Where a result or fire is: "waiting", "on_its_way", "gap", "settled" or "" (not known here).

    A gap entry that only the store holds, or that both know of, is "settled".
    """
    way = backlog.on_its_way
    if id in {result.id for result in backlog.results} | {fire.id for fire in backlog.fires}:
        return "waiting"
    if way is not None and id in _carried_ids(way):
        return "on_its_way"
    if any(gap.id == id for gap in backlog.gaps.open):
        return "gap"
    return "settled" if id in backlog.settled else ""


# Steps


def _chain_began(backlog: Backlog, event: ChainBegan) -> Step:
    way = backlog.on_its_way
    if way is not None:
        way = way.replace(results=results.as_old(way.results), fire=way.fire and way.fire.replace(related=False))
    begun = lineage.begun(event.world, _tasks(backlog))
    old = backlog.replace(
        lineage=begun, results=results.as_old(backlog.results), fires=fires.as_old(backlog.fires), on_its_way=way
    )
    return old, ()


def _message_sending(backlog: Backlog, event: MessageSending) -> Step:
    marked = lineage.message_sending(backlog.lineage, event.send, event.agent, team=event.team)
    return backlog.replace(lineage=marked), ()


def _message_settled(backlog: Backlog, event: MessageSettled) -> Step:
    settled = lineage.message_settled(backlog.lineage, event.send, succeeded=event.succeeded)
    return backlog.replace(lineage=settled), ()


def _spawned(backlog: Backlog, event: Spawned) -> Step:
    return backlog.replace(lineage=lineage.spawned(backlog.lineage, event.agent)), ()


def _made_by_another(backlog: Backlog, event: MadeByAnother) -> Step:
    return backlog.replace(lineage=lineage.of_another(backlog.lineage, event.tasks)), ()


def _result_came(backlog: Backlog, event: ResultCame) -> Step:
    result = event.result
    if not result.id or not result.task or result.kind not in RESULT_KINDS:
        raise IllegalEventError(
            f"A result needs an id, a task and a kind, not {result.id!r}, {result.task!r}, {result.kind!r}",
            kept="The queue is as it was",
        )
    if _is_known(backlog, result.known_as):
        return backlog, ()
    related = lineage.is_related(backlog.lineage, event.world, result.kind, result.task, result.owner)
    result = result.replace(related=related)
    queue, gone = results.admitted(backlog.results, result, event.holding)
    backlog, effects = _left_out(backlog.replace(results=queue), "results", gone)
    return backlog, (Keep(item=result), *effects)


def _fire_came(backlog: Backlog, event: FireCame) -> Step:
    fire = event.fire
    if not fire.id or fire.kind not in ("cron", "wakeup") or fire.times < 1:
        raise IllegalEventError(
            f"A fire needs an id, a kind and a count, not {fire.id!r}, {fire.kind!r}, {fire.times!r}",
            kept="The queue is as it was",
        )
    if _is_known(backlog, (fire.id,)):
        return backlog, ()
    fire = fire.replace(related=bool(fire.job) and lineage.is_related(backlog.lineage, (), fire.kind, fire.job))
    backlog, effects = _with_fires(backlog, fires.admitted(backlog.fires, fire, event.holding))
    stands = next((waits for waits in backlog.fires if waits.id == fire.id), fire)  # with the fires it stands for
    return backlog, (Keep(item=stands), *effects)


def _drain_asked(backlog: Backlog, event: DrainAsked) -> Step:
    _refuse_second_turn(backlog, event.turn)
    if backlog.retained:
        return backlog, ()
    batch = () if backlog.paused else results.may_go(backlog.results, event.holding)
    fire = fires.next_up(backlog.fires, event.holding)
    # Related before unrelated, and of equals the results: one turn takes all of them.
    waits = event.holding.guard_blocks
    if batch and not (waits and fire is not None and fire.related and not batch[0].related):
        return _carried(backlog, event.turn, batch)
    if fire is None:
        return backlog, ()
    rest = tuple(other for other in backlog.fires if other is not fire)
    now_open, riders = gaps.ride(backlog.gaps, event.turn)
    backlog = backlog.replace(fires=rest, gaps=now_open, on_its_way=OnItsWay(turn=event.turn, fire=fire))
    return backlog, (RunFire(turn=event.turn, fire=fire.id, gaps=riders, related=fire.related),)


def _own_results_asked(backlog: Backlog, event: OwnResultsAsked) -> Step:
    _refuse_second_turn(backlog, event.turn)
    batch = () if event.holding.fifo_priority else tuple(result for result in backlog.results if result.related)
    return _carried(backlog, event.turn, batch) if batch else (backlog, ())


def _notice_asked(backlog: Backlog, event: NoticeAsked) -> Step:
    if not event.turn:
        raise IllegalEventError("A send without an id cannot tell of gaps", kept="The gap entries are as they were")
    now_open, riders = gaps.ride(backlog.gaps, event.turn)
    return backlog.replace(gaps=now_open), ((TellModel(turn=event.turn, gaps=riders),) if riders else ())


def _turn_accepted(backlog: Backlog, event: TurnAccepted) -> Step:
    told, effects = gaps.accepted(backlog.gaps, event.turn)
    backlog = backlog.replace(gaps=told)
    way = backlog.on_its_way
    if way is None or way.turn != event.turn:
        return backlog, effects
    names = (*(name for result in way.results for name in result.known_as), *((way.fire.id,) if way.fire else ()))
    backlog = _settled(backlog.replace(on_its_way=None, tries=0), names)
    return backlog, (Settle(ids=_carried_ids(way), how="delivered"), *effects)


def _turn_returned(backlog: Backlog, event: TurnReturned) -> Step:
    backlog = backlog.replace(gaps=gaps.returned(backlog.gaps, event.turn))
    way = backlog.on_its_way
    if way is None or way.turn != event.turn:
        return backlog, ()
    backlog, effects = _in_front_again(backlog, way, event.holding)
    if event.why == "superseded":
        return backlog, effects
    tries = backlog.tries + 1
    if tries <= len(RETRY_AFTER):
        return backlog.replace(tries=tries), (*effects, RetryLater(seconds=RETRY_AFTER[tries - 1]))
    held = backlog.replace(tries=0, retained=event.why == "refused", paused=True)
    return held, (*effects, ShowRetained(ids=_carried_ids(way)))


def _paused(backlog: Backlog, event: Paused) -> Step:
    return backlog.replace(paused=True), ()


def _prompt_came(backlog: Backlog, event: PromptCame) -> Step:
    return backlog.replace(paused=False, retained=False, tries=0), ()


def _cleared(backlog: Backlog, event: Cleared) -> Step:
    """What is on its way stays there: its turn's answer tells whether it was delivered."""
    gone, unrun = backlog.results, backlog.fires
    backlog = backlog.replace(results=(), fires=(), tries=0, retained=False)
    backlog, effects = _left_out(backlog, "results", gone, "cleared")
    backlog, more = _left_out(backlog, "fires", unrun, "cleared")
    return backlog, (*effects, *more)


def _gaps_shown(backlog: Backlog, event: GapsShown) -> Step:
    told, effects = gaps.shown(backlog.gaps, event.ids, done=event.done)
    return backlog.replace(gaps=told), effects


def _person_looks(backlog: Backlog, event: PersonLooks) -> Step:
    told, effects = gaps.show_again(backlog.gaps)
    return backlog.replace(gaps=told), effects


def _gaps_read(backlog: Backlog, event: GapsRead) -> Step:
    read, effects = gaps.read(backlog.gaps, event.asked, event.entries)
    return backlog.replace(gaps=read), effects


def _restored(backlog: Backlog, event: Restored) -> Step:
    if backlog.replace(paused=False) != Backlog():  # a cancel may have come first
        raise IllegalEventError("Only a backlog without a past is restored", kept="The backlog is as it was")
    now_open, effects = gaps.restored(event.gaps, event.next_gap)
    backlog = backlog.replace(gaps=now_open, settled=event.settled[-SETTLED_RESULTS:])
    # All that was there before the restart is old: no chain of this process has made it.
    queue, gone = results.put_back((), results.as_old(event.results), Holding())
    backlog, left = _left_out(backlog.replace(results=queue), "results", gone)
    for fire in fires.as_old(event.fires):
        backlog, more = _with_fires(backlog, fires.admitted(backlog.fires, fire, Holding()))
        left += more
    return backlog.replace(lineage=lineage.begun(event.world, _tasks(backlog))), (*effects, *left)


# Parts of steps


def _refuse_second_turn(backlog: Backlog, turn: str) -> None:
    if not turn or backlog.on_its_way is not None:
        raise IllegalEventError(
            f"Turn {turn!r} cannot take what waits: another turn is on its way, or it has no id",
            kept="The queues are as they were",
            do="Answer the turn on its way first",
        )


def _carried(backlog: Backlog, turn: str, batch: Results) -> Step:
    """All of the batch on their way in one turn, with the gap entries that ride along."""
    taken = frozenset(result.id for result in batch)
    rest = tuple(result for result in backlog.results if result.id not in taken)
    now_open, riders = gaps.ride(backlog.gaps, turn)
    backlog = backlog.replace(results=rest, gaps=now_open, on_its_way=OnItsWay(turn=turn, results=batch))
    ids = tuple(result.id for result in batch)
    return backlog, (Deliver(turn=turn, results=ids, gaps=riders, related=any(one.related for one in batch)),)


def _carried_ids(way: OnItsWay) -> tuple[str, ...]:
    return (*(result.id for result in way.results), *((way.fire.id,) if way.fire is not None else ()))


def _in_front_again(backlog: Backlog, way: OnItsWay, holding: Holding) -> Step:
    """What was on its way waits again, before all others."""
    queue, gone = results.put_back(backlog.results, way.results, holding)
    backlog, effects = _left_out(backlog.replace(results=queue, on_its_way=None), "results", gone)
    if way.fire is None:
        return backlog, effects
    backlog, more = _with_fires(backlog, fires.put_back(backlog.fires, way.fire, holding))
    return backlog, (*effects, *more)


def _with_fires(backlog: Backlog, admission: fires.Admission) -> Step:
    """The queue after an admission: what was replaced is settled, what had to go is named once."""
    backlog = backlog.replace(fires=admission.queue)
    replaced = tuple(fire.id for fire in admission.replaced)
    effects: tuple[Record, ...] = (Settle(ids=replaced, how="coalesced"),) if replaced else ()
    backlog, more = _left_out(_settled(backlog, replaced), "fires", admission.gone)
    return backlog, (*effects, *more)


def _left_out(
    backlog: Backlog,
    queue: Literal["results", "fires"],
    gone: tuple[Result | Fire, ...],
    why: gaps.Why = "queue_full",
) -> Step:
    """A gap entry for each, and one diagnostic for all."""
    if not gone:
        return backlog, ()
    named = tuple((one.id, one.kind, one.task if isinstance(one, Result) else one.job, one.where) for one in gone)
    now_open, effects = gaps.opened(backlog.gaps, named, why)
    names = (name for one in gone for name in (one.known_as if isinstance(one, Result) else (one.id,)))
    backlog = _settled(backlog.replace(gaps=now_open), tuple(names))
    return backlog, (*effects, LeftOut(queue=queue, ids=tuple(one.id for one in gone)))


def _settled(backlog: Backlog, names: tuple[str, ...]) -> Backlog:
    return backlog.replace(settled=(*backlog.settled, *names)[-SETTLED_RESULTS:]) if names else backlog


def _is_known(backlog: Backlog, names: tuple[str, ...]) -> bool:
    """Whether this result or fire is here already, or was: hosts tell some of them twice."""
    way = backlog.on_its_way
    carried = way.results if way is not None else ()
    here = {name for result in (*backlog.results, *carried) for name in result.known_as}
    here.update(fire.id for fire in (*backlog.fires, *((way.fire,) if way is not None and way.fire else ())))
    here.update(gap.id for gap in backlog.gaps.open)
    return any(name in here or name in backlog.settled for name in names)


def _tasks(backlog: Backlog) -> tuple[tuple[str, str], ...]:
    """The (kind, id) of every task whose result or fire waits or is on its way."""
    way = backlog.on_its_way or OnItsWay(turn="")
    told = tuple((result.kind, result.task) for result in (*way.results, *backlog.results))
    fired = (*((way.fire,) if way.fire is not None else ()), *backlog.fires)
    return (*told, *((fire.kind, fire.job) for fire in fired if fire.job))


_STEPS: Mapping[type[Record], Callable[[Backlog, Any], Step]] = {
    ChainBegan: _chain_began,
    MessageSending: _message_sending,
    MessageSettled: _message_settled,
    Spawned: _spawned,
    MadeByAnother: _made_by_another,
    ResultCame: _result_came,
    FireCame: _fire_came,
    DrainAsked: _drain_asked,
    OwnResultsAsked: _own_results_asked,
    NoticeAsked: _notice_asked,
    TurnAccepted: _turn_accepted,
    TurnReturned: _turn_returned,
    Paused: _paused,
    PromptCame: _prompt_came,
    Cleared: _cleared,
    GapsShown: _gaps_shown,
    PersonLooks: _person_looks,
    GapsRead: _gaps_read,
    Restored: _restored,
}
