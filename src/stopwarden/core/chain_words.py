"""The words of the session's guard state: what it holds, what happens to it, what it asks for.

`core/chain` is the machine. A turn that reports something names itself (`turn`), so that what a turn
of long ago reports late is known for what it is. Owners are the bridge's prompt ids; ids of claims
rise. No effect here waits for an answer; each tells whoever drives the chain something to pass on.
"""

from __future__ import annotations

from stopwarden.core.guard import Budget, Guard
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.todo_envelope import TodoList

TRUSTED_KINDS = ("retry", "continue", "restore_question")  # as the bridge vouches; anything else is ordinary


class Claim(Record):
    """A claim whose answer is still to come. `released`: a release of its owner came first (the tombstone)."""

    id: int
    owner: str | None
    chain: int  # the chain it was sent for
    policy: str = "guard"  # or away
    released: bool = False


class Admitted(Record):
    """A prompt that waits until older turns have unwound.

    `founds` is what its start does: `chain` (a fresh one), `lineage` (only what counts as background
    work begins anew, the suspension stays), or nothing.
    """

    id: str
    founds: str


class Running(Record):
    """The turn that runs. A `guest` runs beside a chain that waits, and has no say in it."""

    id: str
    kind: str  # foreground, cron, notification
    guest: bool = False


class Chain(Record):
    """The guard and all that surrounds it in one session. Immutable; changed by `core.chain.step`."""

    guard: Guard = Guard()
    plan: bool = False
    away: str = ""  # the away period that holds; then the guard is not the policy at a stop
    priority_owner: str | None = None  # who yielded to a queued prompt; that prompt goes first
    claims: tuple[Claim, ...] = ()
    last_claim: int = 0
    number: int = 0  # rises with each chain and each admission; what names an older one is late
    drain_when_idle: bool = False  # automatic work was held back and let go while a prompt ran
    too_long: bool = False  # the wait for background work has passed its limit
    closing: bool = False
    disposed: bool = False
    admitted: Admitted | None = None
    running: Running | None = None

    @property
    def priority(self) -> bool:
        """Whether a queued prompt goes before any automatic turn."""
        return self.priority_owner is not None


# ---- events


class ChainEvent(Record):
    """Anything that happened to the session."""


class TurnEvent(ChainEvent):
    """Something that the turn with this id reports."""

    turn: str


class PromptAdmitted(ChainEvent):
    """A prompt has passed both looks at the gate. `kind`: ordinary, retry, continue or restore_question."""

    id: str
    kind: str = "ordinary"


class PromptStarted(ChainEvent):
    """The admitted prompt begins: every older turn has unwound."""

    id: str


class PromptAbandoned(ChainEvent):
    """Its caller went away before the admitted prompt could begin."""

    id: str


class PromptEnded(ChainEvent):
    """A prompt's turn is over: `ended`, `failed` or `cancelled`."""

    id: str
    outcome: str = "ended"


class AutomaticStarted(ChainEvent):
    """A cron or notification turn begins. `related`: what it brings belongs to this chain (core/lineage)."""

    id: str
    kind: str  # cron or notification
    related: bool = False


class AutomaticEnded(ChainEvent):
    """An automatic turn is over: `ended`, `failed` or `aborted`."""

    id: str
    outcome: str = "ended"


class ClaimSent(ChainEvent):
    """A claim (or a probe) is on its way."""

    id: int
    owner: str | None = None
    policy: str = "guard"


class ClaimAnswered(ChainEvent):
    """What became of a claim: a key of CLAIM_ANSWERS."""

    id: int
    answer: str


class Released(ChainEvent):
    """The owner's side says: the last queued prompt that `owner` yielded to is gone."""

    owner: str


class ModeChanged(ChainEvent):
    """Plan mode was entered or left, or was found so at a stop."""

    plan: bool


class AwayChanged(ChainEvent):
    """Away holds under this period; empty: it does not."""

    period: str


class Rewound(ChainEvent):
    """History was taken back or restored; only between turns."""


class GateTaken(ChainEvent):
    """Somebody closes, restores or moves the session: no turn begins."""


class GateReleased(ChainEvent):
    """The gate is open again."""


class Relocated(ChainEvent):
    """With the gate held, a move to another directory begins."""


class Cancelled(ChainEvent):
    """The person cancelled."""


class Disposed(ChainEvent):
    """The session is put away."""


class DeferralTooLong(ChainEvent):
    """The wait for background work has passed its limit."""


class SwitchSet(ChainEvent):
    """The person turned the guard off or on, or lets it observe."""

    switch: str


class BudgetSet(ChainEvent):
    """The person gave the guard other limits."""

    budget: Budget


class TodoObserved(TurnEvent):
    """A todo write has ended. None: `todo_envelope.trusted_todos` did not trust it."""

    todos: TodoList | None


class MidTurnAccepted(TurnEvent):
    """Words of the person were drained, and are sent next."""


class AttemptCommitted(TurnEvent):
    """The provider has answered a stream of the guard. `at`: the time in seconds."""

    attempt: int
    at: int = 0


class TokensSpent(TurnEvent):
    """What a stream of the guard used."""

    tokens: int


class ExhaustionReported(TurnEvent):
    """A stop found the budget used up."""

    at: int = 0


class ChainSuspended(TurnEvent):
    """The turn cannot go on safely; `reason` is a key of guard.SUSPENSIONS."""

    reason: str


class RetryPaused(TurnEvent):
    """The provider, or the transport of a hook, failed."""


# ---- effects


class ChainEffect(Record):
    """Something to pass on."""


class GuardChanged(ChainEffect):
    """The guard is in another state, or stands otherwise in it. `cause` is the event's name."""

    was: str
    state: str
    cause: str
    suspended_by: str | None
    attempts: int
    unfinished: int


class PriorityChanged(ChainEffect):
    """A queued prompt goes first now (its `owner` yielded), or (None) no longer."""

    owner: str | None


class LineageReset(ChainEffect):
    """All background work known now is old: baseline, related agents, marks and queued results (core/lineage)."""

    chain: int


class AutomaticFreed(ChainEffect):
    """Cron and notification queues may be drained, if nothing else runs."""


class ClaimSettled(ChainEffect):
    """What the claim comes to for its turn: `claimed`, `queued` or `unavailable`, and why."""

    id: int
    outcome: str
    why: str = ""


class ReleaseAnswered(ChainEffect):
    """The answer to a release."""

    owner: str
    released: bool


class CancelAnswered(ChainEffect):
    """Whether there was anything to cancel."""

    running: bool


class AttemptCounted(ChainEffect):
    """An attempt is under way: the status event for people."""

    attempt: int
    cap: int
    unfinished: int


class CommitRefused(ChainEffect):
    """The attempt is not counted; a stream that was opened for it must be ended."""

    attempt: int
    why: str


class Exhausted(ChainEffect):
    """The guard gives up, told once. `why`: attempts, tokens or wall_time."""

    attempts: int
    cap: int
    unfinished: int
    why: str
