"""The words of the backlog: what it holds, what comes in, what is to be done.

Events come from whoever executes the effects (the turn machine, the bridge, the store); effects carry
the ids that the answers name. Effects of gap entries (`OpenGap`, `MarkTold`, `ShowGaps`, `ReadGaps`)
are in gaps.py. The machine itself is backlog.py.
"""

from __future__ import annotations

from stopwarden.core.fires import Fire, Fires
from stopwarden.core.gaps import Gap, Gaps, ReadGaps
from stopwarden.core.lineage import Lineage, Task
from stopwarden.core.record import Record
from stopwarden.core.results import Holding, Result, Results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class OnItsWay(Record):
    """What a turn carries that the provider has not accepted yet."""

    turn: str
    results: Results = ()
    fire: Fire | None = None


class Backlog(Record):
    """All that waits in one session. Until the next prompt, after a cancel (`paused`) results wait, and after

    vain tries (`retained`) everything does. `settled` holds the names of what was delivered, left out or
    coalesced, the latest 200, so that a host that tells twice is heard once.
    """

    lineage: Lineage = Lineage()
    results: Results = ()
    fires: Fires = ()
    gaps: Gaps = Gaps()
    on_its_way: OnItsWay | None = None
    tries: int = 0
    paused: bool = False
    retained: bool = False
    settled: tuple[str, ...] = ()


# Events


class ChainBegan(Record):
    """A chain of its own began (after its predecessor unwound): all tasks of `world` and all that waits are old."""

    world: tuple[Task, ...] = ()


class MessageSending(Record):
    """`send_message` passed permission and hooks and is about to run. `agent` is its task_id as given."""

    send: str
    agent: object
    team: bool = False


class MessageSettled(Record):
    """`send_message` returned, before its PostToolUse hooks."""

    send: str
    succeeded: bool


class Spawned(Record):
    """The chain made a sub-session."""

    agent: str


class MadeByAnother(Record):
    """A turn beside the chain set these going."""

    tasks: tuple[Task, ...]


class ResultCame(Record):
    """A background task has something to tell. `world` is what the host lists now, for the relation."""

    result: Result
    world: tuple[Task, ...] = ()
    holding: Holding = Holding()


class FireCame(Record):
    """A schedule fired, and its prompt waits for a turn."""

    fire: Fire
    holding: Holding = Holding()


class DrainAsked(Record):
    """The session is idle: what may run now as an automatic turn with this id?"""

    turn: str
    holding: Holding = Holding()


class OwnResultsAsked(Record):
    """The turn is at its stop: the chain's own results are taken as one more send with this id (design §3, step 5)."""

    turn: str
    holding: Holding = Holding()


class NoticeAsked(Record):
    """A prompt or a continuation with this id is about to be sent: which gap entries does it tell the model?"""

    turn: str


class TurnAccepted(Record):
    """The provider answered the turn's (or send's) first request: what it carried is delivered."""

    turn: str


class TurnReturned(Record):
    """The turn was not accepted. "refused": the provider; "not_admitted": the owner's side, so that only results

    are held back; "superseded": a person came first.
    """

    turn: str
    why: Literal["refused", "not_admitted", "superseded"]
    holding: Holding = Holding()


class Paused(Record):
    """The person cancelled: results wait for the next prompt."""


class PromptCame(Record):
    """A prompt of a person, of any kind, was admitted: waiting results may go again afterwards."""


class Cleared(Record):
    """The conversation was cleared: what waits goes to no turn any more; each is named in a gap entry."""


class GapsShown(Record):
    """The answer to `ShowGaps`: the person's stream has these entries, or could not take them."""

    ids: tuple[str, ...]
    done: bool = True


class PersonLooks(Record):
    """A client of the person came: what could not be shown before is shown."""


class GapsRead(Record):
    """The store's answer to a `ReadGaps` effect."""

    asked: ReadGaps
    entries: tuple[Gap, ...] = ()


class Restored(Record):
    """After a restart, once: what the store holds undelivered, its open gap entries and their next number."""

    results: Results = ()
    fires: Fires = ()
    gaps: tuple[Gap, ...] = ()
    next_gap: int = 1
    settled: tuple[str, ...] = ()
    world: tuple[Task, ...] = ()


# Effects (those of gap entries are in gaps.py)


class Keep(Record):
    """Write what came to the store as waiting, with its text, before the step's other effects."""

    item: Result | Fire


class Deliver(Record):
    """Start the turn (or send) with the texts of these results, and name these gap entries in it."""

    turn: str
    results: tuple[str, ...]
    gaps: tuple[Gap, ...] = ()
    related: bool = False


class RunFire(Record):
    """Start the turn with the prompt of this fire, and name these gap entries in it."""

    turn: str
    fire: str
    gaps: tuple[Gap, ...] = ()
    related: bool = False


class TellModel(Record):
    """Name these gap entries in the send with this id."""

    turn: str
    gaps: tuple[Gap, ...]


class Settle(Record):
    """Write to the store that these no longer wait: delivered, or one later fire stands for them."""

    ids: tuple[str, ...]
    how: Literal["delivered", "coalesced"]


class LeftOut(Record):
    """One diagnostic for all that one event left out; each also has a gap entry."""

    queue: Literal["results", "fires"]
    ids: tuple[str, ...]


class RetryLater(Record):
    """Ask for a drain again in so many seconds."""

    seconds: int


class ShowRetained(Record):
    """Tell the person that these results wait for their next message."""

    ids: tuple[str, ...]
