"""The words of a session's door: who holds its gate, what a move to another directory asks, how a session is loaded.

Events are what came back or was asked, effects what is to be done; both as in `turn_events`, with whose
`GateTaken` and `GateReleased` a close or a live restore holds the gate from outside. Paths and
places are the driver's words; nothing here is a path of ours. No decisions: those are `core/door`.
"""

from __future__ import annotations

from stopwarden.core.record import Record
from stopwarden.core.turn_events import Answer, Effect, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.backlog_events import Restored


class Move(Record):
    """A move to another directory that was asked for. Stages: checking, waiting, reading, settling, moving."""

    id: str
    path: str
    stage: str = "checking"
    asked: int = 0  # the effect whose answer it needs; 0: none
    due: int | None = None  # milliseconds: until then it must have the gate, and know where it stands
    place: str = ""  # the path made canonical
    trusted: bool = True


class Door(Record):
    """Who may come in. The chain's `closing` says that the gate is held; here is by whom, and what for."""

    holder: str = ""  # "": nobody; OUTSIDE; or the id of the move that holds it
    settling: bool = False
    asked: int = 0  # the look for activity that is out; 0: none
    due: int | None = None  # milliseconds: until then all must have come to rest
    again_at: int = 0  # milliseconds: no other look before
    moves: tuple[Move, ...] = ()  # in the order they were asked for
    loading: str = ""  # what is being restored now, by its row of LOAD_ORDER
    restoring: int = 0  # the effect that restores it


# ---- events


class SettleAsked(Event):
    """Who holds the gate from outside wants to know when all has come to rest; `GateSettled` tells."""


class MoveAsked(Event):
    """The person wants the session in another directory (`/cd`)."""

    move: str
    path: str


class PlaceChecked(Answer):
    """The directory a path leads to, or the problem with it. `trusted` False: it looked like no move, so trust was

    not looked at yet.
    """

    place: str = ""
    problem: str = ""
    trusted: bool = True


class PlaceRead(Answer):
    """Where the session stands, now that it holds still: in the very place already, or elsewhere; or a problem."""

    same: bool = False
    problem: str = ""


class ActivitySeen(Answer):
    """What a look found: whether anything is `live` still, and whether something had come to an end meanwhile."""

    live: bool = False
    ended: bool = False


class MoveMade(Answer):
    """The session stands elsewhere, perhaps with warnings; or it could not be moved (`problem`)."""

    problem: str = ""
    warnings: tuple[str, ...] = ()


class LoadBegan(Event):
    """This session existed before: it is to be put together again. Only a session to which nothing happened yet.

    `first` is the first id for an effect: ids name entries and turns, so no process uses one that another used.
    """

    first: int = 1


class RestoreAnswered(Answer):
    """One thing is restored, or not (`problem`). What waited for a turn comes in `waiting`."""

    problem: str = ""
    waiting: Restored | None = None


# ---- effects


class CheckPlace(Effect):
    """Is this a directory the session may stand in? Sandbox, existence, containment, trust. Moves nothing."""

    move: str
    path: str


class ReadPlace(Effect):
    """Where does the session stand? If elsewhere than `place` and not `trusted`, look at the trust now."""

    move: str
    place: str
    trusted: bool


class LookForActivity(Effect):
    """Wait for whatever is about to end, let everything else have its turn once, and say what is live."""


class MakeMove(Effect):
    """Move the session: nothing of it is active."""

    move: str
    place: str


class MoveEnded(Effect):
    """What became of a move: `moved`, `unchanged`, `refused` (nothing has changed) or `failed` (the guard is held)."""

    move: str
    kind: str
    why: str = ""
    warnings: tuple[str, ...] = ()


class GateSettled(Effect):
    """Nothing is active behind the gate; or, past the deadline, still something is."""

    settled: bool


class Restore(Effect):
    """Restore this: history, waiting (results, fires and gap entries of the store), agents, or the rest."""

    what: str


class LoadEnded(Effect):
    """The session is whole, or it could not be restored, and is put away."""

    problem: str = ""


class StartCron(Effect):
    """Let schedules fire from now on."""
