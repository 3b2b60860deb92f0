"""The door of a session: its gate, the moves to another directory that go through it, and how a session is loaded.

Theory of operation. One holder at a time has the gate: a close or a live restore from outside, or a move.
While it is held no turn begins, save the prompt that was let in before; whoever holds it may wait until
all has come to *rest*. Rest is looked for in rounds: first the machine's own turn, and the prompt that
follows it, must be over; then the driver is asked what else is live; as long as anything is, it is asked
again, at once if something had ended meanwhile, else a moment later. So a successor that takes the place of what
ended is seen, and a flag that nobody cleared costs the deadline and no more.

A move is checked before the gate is taken, waits for a gate that another holds, and looks again once it
has the gate: if the session stands there already nothing happens, not even to the guard. Only then
does the chain end. Whatever comes of it the gate is opened again; a move that failed leaves the guard held.

A session is loaded in the order of LOAD_ORDER. Until the last row no turn begins, prompts wait, and
schedules do not run; then all that was restored is old, whatever the stored history says of lists.
The guard is never restored.

May not live here: what a turn does (`turn`), where anything is kept (the driver).
"""

from __future__ import annotations

from stopwarden.core import backlog_events as waits
from stopwarden.core import chain_words as words
from stopwarden.core import door_events as asks
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import GATE_DEADLINE_MS, MOVES_MAX, SETTLE_PAUSE_MS
from stopwarden.core.record import Record
from stopwarden.core.turn_state import Pen, illegal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OUTSIDE = "outside"


class Restored(Record):
    """A row of the order in which a session is put together. Without what it `must` have it is not loaded at all."""

    what: str
    must: bool


LOAD_ORDER = (
    Restored(what="history", must=True),
    Restored(what="waiting", must=True),  # results, fires and gap entries that the store holds
    Restored(what="agents", must=False),  # background agents, paused
    Restored(what="rest", must=False),
)
# What cannot happen to a session that is being loaded: nothing of it runs, and no schedule is started.
NOT_WHILE_LOADING = frozenset(
    {
        ev.FireArrived,
        ev.Rewound,
        waits.MessageSending,
        waits.MessageSettled,
        waits.Spawned,
        waits.Cleared,
        asks.LoadBegan,
    }
)
# Nor, until what waited is there again, can a result come: it might be one of those.
NOT_YET_WAITING = {"history": (ev.ResultArrived,), "waiting": (ev.ResultArrived,)}


def refuse_while_loading(pen: Pen, event: Record) -> None:
    """Raises IllegalEventError for what cannot happen before the session is whole."""
    loading = pen.state.door.loading
    if loading and (type(event) in NOT_WHILE_LOADING or type(event) in NOT_YET_WAITING.get(loading, ())):
        raise illegal(event, "the session is being loaded")


def change(pen: Pen, **fields: Any) -> None:
    pen.set(door=pen.state.door.replace(**fields))


def waited_for(pen: Pen, event: ev.Answer, asked: int) -> bool:
    """Whether this is the answer that is waited for; a late one is none. Raises for an id never given out."""
    if not 0 < event.id < pen.next_id:
        raise illegal(event, f"nothing was asked under id {event.id}")
    return event.id == asked


# ---- the gate


def gate_taken(pen: Pen, event: ev.GateTaken) -> None:
    pen.chained(words.GateTaken())
    change(pen, holder=OUTSIDE)


def gate_released(pen: Pen, event: ev.GateReleased) -> None:
    """A session that was put away meanwhile stays shut."""
    if pen.state.door.holder != OUTSIDE:
        raise illegal(event, "nobody outside holds the gate")
    open_gate(pen)


def open_gate(pen: Pen) -> None:
    """The holder lets go, and the next move that waits for the gate has it before anything else."""
    pen.chained(words.GateReleased())
    change(pen, holder="", settling=False, asked=0, due=None, again_at=0)
    let_in(pen)


def settle_asked(pen: Pen, event: asks.SettleAsked) -> None:
    if pen.state.door.holder != OUTSIDE or pen.chain.disposed or pen.state.door.settling:
        raise illegal(event, "nobody outside holds the gate, or it settles already")
    begin_settling(pen)


def begin_settling(pen: Pen) -> None:
    change(pen, settling=True, due=pen.state.now + GATE_DEADLINE_MS)


def at_rest(pen: Pen) -> bool:
    """Whether nothing of ours is active. A prompt that follows a turn has begun before anybody asks."""
    return pen.turn is None and pen.state.starting is None and not pen.state.door.loading


def look_for_rest(pen: Pen) -> None:
    """One round of settling, after whatever happened: ask, unless something of ours runs, or asking is due later."""
    door = pen.state.door
    if door.settling and not door.asked and at_rest(pen) and pen.state.now >= door.again_at:
        change(pen, asked=pen.do(asks.LookForActivity))


def activity_seen(pen: Pen, event: asks.ActivitySeen) -> None:
    if not waited_for(pen, event, pen.state.door.asked):
        return
    if event.live:
        change(pen, asked=0, again_at=0 if event.ended else pen.state.now + SETTLE_PAUSE_MS)
    else:
        settled(pen, True)


def settled(pen: Pen, rest: bool) -> None:
    """Settling is over: the holder from outside hears it; a move is made, or has failed."""
    change(pen, settling=False, asked=0, due=None, again_at=0)
    move = holding(pen)
    if move is None:
        pen.do(asks.GateSettled, settled=rest)
    elif rest:
        asked = pen.do(asks.MakeMove, move=move.id, place=move.place)
        keep(pen, move.replace(stage="moving", asked=asked))
    else:
        end_move(pen, move, "failed", "not_settled")


# ---- moves


def holding(pen: Pen) -> asks.Move | None:
    """The move that holds the gate."""
    door = pen.state.door
    return next((move for move in door.moves if move.id == door.holder), None)


def answers_to(pen: Pen, event: ev.Answer, stage: str) -> asks.Move | None:
    """The move that waits for this answer; None if it came late."""
    move = next((move for move in pen.state.door.moves if waited_for(pen, event, move.asked)), None)
    if move is None:
        waited_for(pen, event, 0)
    elif move.stage != stage:
        raise illegal(event, f"the move is at {move.stage}")
    return move


def keep(pen: Pen, changed: asks.Move) -> None:
    change(pen, moves=tuple(changed if move.id == changed.id else move for move in pen.state.door.moves))


def move_asked(pen: Pen, event: asks.MoveAsked) -> None:
    """Checked first: a move that cannot be made disturbs nobody."""
    moves = pen.state.door.moves
    if not event.move or event.move == OUTSIDE or any(move.id == event.move for move in moves):
        raise illegal(event, "a move needs an id of its own")
    why = "disposed" if pen.chain.disposed else "too_many_moves" if len(moves) >= MOVES_MAX else ""
    if why:
        pen.do(asks.MoveEnded, move=event.move, kind="refused", why=why)
        return
    asked = pen.do(asks.CheckPlace, move=event.move, path=event.path)
    move = asks.Move(id=event.move, path=event.path, asked=asked, due=pen.state.now + GATE_DEADLINE_MS)
    change(pen, moves=(*moves, move))


def place_checked(pen: Pen, event: asks.PlaceChecked) -> None:
    move = answers_to(pen, event, "checking")
    if move is None:
        return
    if event.problem:
        end_move(pen, move, "refused", event.problem)
        return
    keep(pen, move.replace(stage="waiting", asked=0, place=event.place, trusted=event.trusted))
    let_in(pen)


def let_in(pen: Pen) -> None:
    """The first move that waits gets the gate, if it is free."""
    move = next((move for move in pen.state.door.moves if move.stage == "waiting"), None)
    if move is None or pen.chain.closing:
        return
    pen.chained(words.GateTaken())
    asked = pen.do(asks.ReadPlace, move=move.id, place=move.place, trusted=move.trusted)
    change(pen, holder=move.id)
    keep(pen, move.replace(stage="reading", asked=asked))


def place_read(pen: Pen, event: asks.PlaceRead) -> None:
    """The second look: a move to where the session stands ends nothing."""
    move = answers_to(pen, event, "reading")
    if move is None:
        return
    if event.problem:
        end_move(pen, move, "refused", event.problem)
    elif event.same:
        end_move(pen, move, "unchanged")
    else:
        pen.chained(words.Relocated())
        pen.set(workspace=pen.state.workspace + 1)
        keep(pen, move.replace(stage="settling", asked=0, due=None))
        begin_settling(pen)


def move_made(pen: Pen, event: asks.MoveMade) -> None:
    move = answers_to(pen, event, "moving")
    if move is not None:
        end_move(pen, move, "failed" if event.problem else "moved", event.problem, event.warnings)


def end_move(pen: Pen, move: asks.Move, kind: str, why: str = "", warnings: tuple[str, ...] = ()) -> None:
    """The move is over, and if it holds the gate that is opened."""
    held = pen.state.door.holder == move.id
    change(pen, moves=tuple(one for one in pen.state.door.moves if one.id != move.id))
    pen.do(asks.MoveEnded, move=move.id, kind=kind, why=why, warnings=warnings)
    if held:
        open_gate(pen)


# ---- time, and the end


def ticked(pen: Pen) -> None:
    """What has taken too long is given up. Not a move that is being made: it touches the world, and must come back."""
    door, now = pen.state.door, pen.state.now
    for move in door.moves:
        if move.due is not None and now >= move.due:
            end_move(pen, move, "refused", "no_gate_in_time")
    if door.settling and door.due is not None and now >= door.due:
        settled(pen, False)


def disposed(pen: Pen) -> None:
    """Whoever waits at the door hears that the session is put away. It is not opened again."""
    door = pen.state.door
    if door.loading:
        pen.do(asks.LoadEnded, problem="disposed")
    if door.settling and door.holder == OUTSIDE:
        pen.do(asks.GateSettled, settled=False)
    for move in door.moves:
        begun = move.stage in ("settling", "moving")
        pen.do(asks.MoveEnded, move=move.id, kind="failed" if begun else "refused", why="disposed")
    pen.set(door=asks.Door(holder=OUTSIDE if door.holder == OUTSIDE else ""))


# ---- loading


def load_began(pen: Pen, event: asks.LoadBegan) -> None:
    """Only a session without a past of its own can be given one."""
    if pen.next_id != 1 or pen.backlog != waits.Backlog() or pen.chain.disposed:
        raise illegal(event, "something has happened to this session already")
    if event.first < 1:
        raise illegal(event, "ids begin with 1")
    pen.next_id = event.first
    restore(pen, 0)


def restore(pen: Pen, number: int) -> None:
    """Restore the next thing. After the last all of it is old, and only then do schedules start."""
    if number < len(LOAD_ORDER):
        what = LOAD_ORDER[number].what
        change(pen, loading=what, restoring=pen.do(asks.Restore, what=what))
        return
    change(pen, loading="", restoring=0)
    pen.waited(waits.ChainBegan(world=pen.state.tasks))
    pen.do(asks.LoadEnded)
    pen.do(asks.StartCron)


def restore_answered(pen: Pen, event: asks.RestoreAnswered) -> bool:
    """Goes on with the next row. True if the session cannot be: then it is to be put away."""
    door = pen.state.door
    if not waited_for(pen, event, door.restoring):
        return False
    number = next(number for number, row in enumerate(LOAD_ORDER) if row.what == door.loading)
    row = LOAD_ORDER[number]
    if (row.what == "waiting" and not event.problem) != (event.waiting is not None):
        raise illegal(event, "what waited comes with its own row, and with no other")
    if event.problem and row.must:
        pen.do(asks.LoadEnded, problem=event.problem)
        change(pen, loading="", restoring=0)
        return True
    if event.problem:
        pen.tell("not_restored", what=row.what, why=event.problem)
    if event.waiting is not None:
        pen.waited(event.waiting)
    restore(pen, number + 1)
    return False
