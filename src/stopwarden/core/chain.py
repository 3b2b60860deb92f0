"""The guard's place in a session: prompts, automatic turns, claims, releases, modes and ends.

`step(chain, event)` answers the chain after the event and what is to be passed on. An event that
cannot happen in the state it meets (ILLEGAL says which) raises IllegalEventError and changes nothing;
an answer that comes too late, or a report of a turn that is over, is no error and does nothing.

Four rules carry everything else.

1. *A person's prompt ends the old chain when it is admitted, and founds the new one when it starts.*
   In between the guard is locked, so that a late todo write of the turn that unwinds cannot arm.
2. *A wait belongs to an owner.* A claim answered `queued` yields to the queued prompt; only that
   owner's release, its own later claim, a prompt or a hard suspension ends the wait. A release that
   overtakes the claim's answer marks the claim, and the late answer then installs nothing.
3. *Order and trust are two things.* `priority_owner` keeps a queued prompt first even if the guard
   has been suspended meanwhile; it never gives back trust, and nothing is sent on the strength of it.
4. *What was held back is let go.* Whenever the chain stops holding automatic turns back, they are
   freed at once, or, while a turn runs or a prompt waits, at its end, even if that end is an error.

May not live here: the queue itself (core/queue), what is related (core/lineage), the turn (core/turn).
"""

from __future__ import annotations

from stopwarden.core import guard as guards
from stopwarden.core.chain_words import (
    TRUSTED_KINDS,
    Admitted,
    AttemptCommitted,
    AttemptCounted,
    AutomaticEnded,
    AutomaticFreed,
    AutomaticStarted,
    AwayChanged,
    BudgetSet,
    CancelAnswered,
    Cancelled,
    Chain,
    ChainEffect,
    ChainEvent,
    ChainSuspended,
    Claim,
    ClaimAnswered,
    ClaimSent,
    ClaimSettled,
    CommitRefused,
    DeferralTooLong,
    Disposed,
    Exhausted,
    ExhaustionReported,
    GateReleased,
    GateTaken,
    GuardChanged,
    LineageReset,
    MidTurnAccepted,
    ModeChanged,
    PriorityChanged,
    PromptAbandoned,
    PromptAdmitted,
    PromptEnded,
    PromptStarted,
    ReleaseAnswered,
    Released,
    Relocated,
    RetryPaused,
    Rewound,
    Running,
    SwitchSet,
    TodoObserved,
    TokensSpent,
)
from stopwarden.core.errors import IllegalEventError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Effects = tuple[ChainEffect, ...]
    Stepped = tuple[Chain, Effects]

# What an answer to a claim says at first sight; `_settled` has the rest.
CLAIM_ANSWERS: Mapping[str, str] = {
    "granted": "claimed",
    "queued": "queued",
    "refused": "unavailable",
    "malformed": "unavailable",
    "unimplemented": "unavailable",
    "deadline": "unavailable",
    "failed": "unavailable",
}


def step(chain: Chain, event: ChainEvent) -> Stepped:
    """The chain after `event`, and what to pass on. Raises IllegalEventError if it cannot happen now."""
    handle = EVENTS.get(type(event))
    if handle is None:
        raise _illegal(event, "the chain knows no such event")
    for is_so, what in ILLEGAL.get(type(event), ()):
        if is_so(chain, event):
            raise _illegal(event, what)
    if chain.disposed and type(event) not in AFTER_DISPOSE:
        return chain, ()
    after, effects = handle(chain, event)
    after, freed = _let_go(chain, after)
    return after, (*effects, *freed, *_changes(chain, after, event))


def read_claim_answer(claimed: object, queued: object) -> str:
    """The answer in the two fields of a response, whatever they hold: a key of CLAIM_ANSWERS."""
    if not isinstance(claimed, bool) or not isinstance(queued, bool) or (claimed and queued):
        return "malformed"
    if claimed:
        return "granted"
    return "queued" if queued else "refused"


def holds_automatic(chain: Chain) -> bool:
    """Whether unrelated automatic turns are held back: by a queued prompt, or by a list, but not while away.

    A session that waits while the person is away is woken by just such turns.
    """
    return chain.priority or (guards.trusted_unfinished(chain.guard) and not chain.too_long and not chain.away)


def may_start_automatic(chain: Chain, related: bool) -> bool:
    """Whether a cron or notification turn may begin now."""
    quiet = chain.running is None and chain.admitted is None and not chain.closing and not chain.disposed
    return quiet and not chain.priority and (related or not holds_automatic(chain))


def may_suggest(chain: Chain) -> bool:
    """Whether a follow-up may be suggested to the person: not while anything is held back."""
    return not holds_automatic(chain)


def is_cancelled(chain: Chain) -> bool:
    """Whether a person's cancel holds every policy back, the away check too, until an ordinary prompt."""
    return chain.guard.suspended_by == "cancelled" or chain.disposed


def claims_in_flight(chain: Chain, owner: str | None) -> int:
    """How many claims of this owner are not answered yet."""
    return sum(claim.owner == owner for claim in chain.claims)


def tombstones(chain: Chain) -> frozenset[str | None]:
    """Owners whose release overtook a claim that is still in flight."""
    return frozenset(claim.owner for claim in chain.claims if claim.released)


def decide(chain: Chain, turn: str, background: bool, at: int = 0) -> guards.Decision:
    """What the guard says at a stop of this turn. Pure. See guard.decide."""
    if not _has_say(chain, turn) or chain.priority or chain.plan:
        return guards.Decision(kind="inactive", why=_no_say(chain, turn))
    return guards.decide(chain.guard, background, at)


def decide_tool_closure(chain: Chain, turn: str, current: int, background: bool, at: int = 0) -> guards.Decision:
    """Whether the tool results of attempt `current` may be sent back. Pure. See guard.decide_tool_closure."""
    if not _has_say(chain, turn) or chain.priority or chain.plan:
        return guards.Decision(kind="inactive", why=_no_say(chain, turn))
    return guards.decide_tool_closure(chain.guard, current, background, at)


# ---- prompts


def _admit(chain: Chain, event: PromptAdmitted) -> Stepped:
    guard, founds = chain.guard, "chain"
    held_hard = guard.suspended_by not in (None, "superseded")
    if chain.plan:
        guard, founds = guards.block_until_ordinary(guard, "plan"), ""
    elif event.kind not in TRUSTED_KINDS:
        guard = guards.block_until_ordinary(guard, "superseded")
    elif guards.trusted_unfinished(guard):
        guard, founds = guards.resume_trusted(guard), ""
    else:
        # The seed: a retry never lifts a hard suspension. It only sees today's background work as old.
        guard, founds = guards.block_until_ordinary(guard, "untrusted_retry"), "lineage" if held_hard else "chain"
    admitted = Admitted(id=event.id, founds=founds)
    number = chain.number + 1
    return chain.replace(guard=guard, priority_owner=None, number=number, too_long=False, admitted=admitted), ()


def _start(chain: Chain, event: PromptStarted) -> Stepped:
    assert chain.admitted is not None
    founds = chain.admitted.founds
    guard = guards.start_ordinary(chain.guard) if founds == "chain" else chain.guard
    running = Running(id=event.id, kind="foreground")
    effects = (LineageReset(chain=chain.number),) if founds else ()
    return chain.replace(guard=guard, admitted=None, running=running), effects


def _abandon(chain: Chain, event: PromptAbandoned) -> Stepped:
    if chain.admitted is None or chain.admitted.id != event.id:
        return chain, ()
    return _held_back(chain.replace(admitted=None), "cancelled"), ()


def _end_prompt(chain: Chain, event: PromptEnded) -> Stepped:
    after = chain.replace(running=None)
    if after.admitted is not None:  # the newer prompt owns the slot, the guard and what is still to be drained
        return after, ()
    if event.outcome == "ended" or holds_automatic(after):
        after = after.replace(drain_when_idle=True)
    return after, ()


# ---- automatic turns


def _start_automatic(chain: Chain, event: AutomaticStarted) -> Stepped:
    guard, running = chain.guard, Running(id=event.id, kind=event.kind)
    started = chain.replace(running=running)
    if guard.switch == "off":
        return started, ()
    if chain.plan:
        return _held_back(started, "plan"), ()
    if guard.suspended:
        return started, ()
    if guards.trusted_unfinished(guard):
        if not event.related:
            return chain.replace(running=running.replace(guest=True)), ()
        return started.replace(guard=guards.resume_trusted(guard), too_long=False), ()
    number = chain.number + 1
    founded = started.replace(guard=guards.clear_trust(guard), number=number, too_long=False)
    return founded, (LineageReset(chain=number),)


def _end_automatic(chain: Chain, event: AutomaticEnded) -> Stepped:
    assert chain.running is not None
    after = chain.replace(running=None, drain_when_idle=True)  # the next one was to follow, whatever comes between
    if after.admitted is not None:
        return after, ()
    if event.outcome == "aborted" and not chain.running.guest:
        after = _held_back(after, "aborted")
    return after, ()


# ---- the session's side of a claim


def _send_claim(chain: Chain, event: ClaimSent) -> Stepped:
    claim = Claim(id=event.id, owner=event.owner, chain=chain.number, policy=event.policy)
    return chain.replace(claims=(*chain.claims, claim), last_claim=event.id), ()


def _answer_claim(chain: Chain, event: ClaimAnswered) -> Stepped:
    claim = next((one for one in chain.claims if one.id == event.id), None)
    if claim is None:  # given up on before; the world is late
        return chain, ()
    outcome, why = _settled(chain, claim, event.answer)
    after = chain.replace(claims=tuple(one for one in chain.claims if one is not claim))
    if outcome == "claimed":
        after = _granted(after, claim)
    elif outcome == "queued":
        after = after.replace(guard=guards.await_queued(after.guard)[0], priority_owner=claim.owner)
    elif claim.policy == "guard" and why not in ("superseded", "disposed"):
        # Another owner's wait is not this answer's to end.
        others = after.priority_owner if after.priority_owner != claim.owner else None
        after = _held_back(after, "claim_unavailable").replace(priority_owner=others)
    return after, (ClaimSettled(id=claim.id, outcome=outcome, why=why),)


def _settled(chain: Chain, claim: Claim, answer: str) -> tuple[str, str]:
    """What an answer comes to, and why. The first row that applies holds."""
    outcome = CLAIM_ANSWERS[answer]
    held = chain.guard.suspended if claim.policy == "guard" else is_cancelled(chain)
    rows = (
        (chain.disposed, "unavailable", "disposed"),
        (claim.chain != chain.number, "unavailable", "superseded"),
        (outcome == "unavailable", "unavailable", answer),
        (outcome == "claimed" and held, "unavailable", "suspended"),
        (outcome == "claimed", "claimed", ""),
        (claim.owner is None, "unavailable", "ownerless"),
        (chain.closing, "unavailable", "closing"),
        (claim.released, "unavailable", "released"),
    )
    return next(((then, why) for applies, then, why in rows if applies), ("queued", ""))


def _granted(chain: Chain, claim: Claim) -> Chain:
    if claim.owner is None or claim.owner == chain.priority_owner:
        chain = chain.replace(priority_owner=None, guard=chain.guard.replace(awaiting=False))
    return chain.replace(guard=guards.resume_trusted(chain.guard)) if claim.policy == "guard" else chain


def _release(chain: Chain, event: Released) -> Stepped:
    waited = chain.priority_owner == event.owner
    marked = tuple(
        one.replace(released=True) if one.owner == event.owner and one.chain == chain.number else one
        for one in chain.claims
    )
    if chain.disposed or (not waited and marked == chain.claims):  # of an older owner, or told already
        return chain, (ReleaseAnswered(owner=event.owner, released=False),)
    after = chain.replace(claims=marked)
    if waited or not chain.priority:
        after = _held_back(after, "released")
    return after, (ReleaseAnswered(owner=event.owner, released=True),)


# ---- modes, history, gate, ends


def _change_mode(chain: Chain, event: ModeChanged) -> Stepped:
    if not event.plan or chain.plan:
        return chain.replace(plan=event.plan), ()
    after = _held_back(chain.replace(plan=True), "plan")
    if after.admitted is not None:  # it will run in plan mode, so it is no ordinary prompt
        after = after.replace(admitted=after.admitted.replace(founds=""))
    return after, ()


def _change_away(chain: Chain, event: AwayChanged) -> Stepped:
    """A list that is left when away ends, nothing running, was put off by the away check: it holds nobody back."""
    idle = chain.running is None or chain.running.guest
    put_off = bool(chain.away) and not event.period and idle and guards.trusted_unfinished(chain.guard)
    return chain.replace(away=event.period, too_long=chain.too_long or put_off), ()


def _rewind(chain: Chain, _: Rewound) -> Stepped:
    return _held_back(chain, "rewound"), ()


def _take_gate(chain: Chain, _: GateTaken) -> Stepped:
    return chain.replace(closing=True), ()


def _release_gate(chain: Chain, _: GateReleased) -> Stepped:
    return chain.replace(closing=False, drain_when_idle=chain.drain_when_idle or chain.closing), ()


def _relocate(chain: Chain, _: Relocated) -> Stepped:
    return _held_back(chain, "relocated").replace(drain_when_idle=False), ()


def _dispose(chain: Chain, _: Disposed) -> Stepped:
    after = _held_back(chain, "disposed")
    return after.replace(drain_when_idle=False, disposed=True, admitted=None), ()


def _cancel(chain: Chain, _: Cancelled) -> Stepped:
    """A cancel holds the chain back whether or not a turn runs: design section 3, and what a person expects."""
    busy = chain.running is not None or chain.admitted is not None
    return _held_back(chain.replace(admitted=None), "cancelled"), (CancelAnswered(running=busy),)


def _wait_too_long(chain: Chain, _: DeferralTooLong) -> Stepped:
    return chain.replace(too_long=True), ()


def _set_switch(chain: Chain, event: SwitchSet) -> Stepped:
    return chain.replace(guard=guards.set_switch(chain.guard, event.switch)), ()


def _set_budget(chain: Chain, event: BudgetSet) -> Stepped:
    return chain.replace(guard=guards.set_budget(chain.guard, event.budget)), ()


# ---- what the running turn reports


def _observe(chain: Chain, event: TodoObserved) -> Stepped:
    """Also from a turn that unwinds: its chain is locked already, or goes on in the retry that waits."""
    if chain.running is None or chain.running.id != event.turn or chain.running.guest:
        return chain, ()
    return chain.replace(guard=guards.observe(chain.guard, event.todos, allow_arm=not chain.plan)[0]), ()


def _accept_mid_turn(chain: Chain, event: MidTurnAccepted) -> Stepped:
    if not _has_say(chain, event.turn):
        return chain, ()
    return chain.replace(guard=guards.accept_mid_turn(chain.guard), too_long=False), ()


def _commit(chain: Chain, event: AttemptCommitted) -> Stepped:
    own = chain.running is not None and chain.running.id == event.turn and not chain.running.guest
    guard, counted = guards.commit(chain.guard, event.attempt, event.at) if own else (chain.guard, False)
    if not counted:
        return chain, (CommitRefused(attempt=event.attempt, why=_no_say(chain, event.turn)),)
    cap, left = guard.budget.attempts, guard.unfinished
    return chain.replace(guard=guard), (AttemptCounted(attempt=event.attempt, cap=cap, unfinished=left),)


def _spend(chain: Chain, event: TokensSpent) -> Stepped:
    if not _has_say(chain, event.turn):
        return chain, ()
    return chain.replace(guard=guards.spend(chain.guard, event.tokens)), ()


def _report_exhaustion(chain: Chain, event: ExhaustionReported) -> Stepped:
    if not _has_say(chain, event.turn) or chain.guard.exhaustion_reported:
        return chain, ()
    found = guards.decide(chain.guard, background=False, at=event.at)
    guard, _ = guards.mark_exhaustion_reported(chain.guard)
    told = Exhausted(attempts=found.attempt, cap=found.cap, unfinished=found.unfinished, why=found.why)
    return _held_back(chain.replace(guard=guard), "exhausted"), (told,)


def _suspend(chain: Chain, event: ChainSuspended) -> Stepped:
    return (_held_back(chain, event.reason) if _has_say(chain, event.turn) else chain), ()


def _pause(chain: Chain, event: RetryPaused) -> Stepped:
    if not _has_say(chain, event.turn):
        return chain, ()
    return chain.replace(guard=guards.pause_retry(chain.guard)), ()


# ---- rules that several events share


def _held_back(chain: Chain, reason: str) -> Chain:
    """A hard suspension, with what its row says of the wait for a queued prompt."""
    guard = guards.suspend(chain.guard, reason)
    keeps = guards.SUSPENSIONS[reason].keeps_priority
    return chain.replace(guard=guard, priority_owner=chain.priority_owner if keeps else None)


def _let_go(before: Chain, after: Chain) -> Stepped:
    """Rule 4: what is no longer held back, or is due after a turn, is freed as soon as nothing is in the way."""
    if after.closing or after.disposed:  # an opened gate frees all the same
        return after, ()
    if holds_automatic(before) and not holds_automatic(after):
        after = after.replace(drain_when_idle=True)
    if not after.drain_when_idle or not may_start_automatic(after, related=True):
        return after, ()
    return after.replace(drain_when_idle=False), (AutomaticFreed(),)


def _has_say(chain: Chain, turn: str) -> bool:
    """Whether this turn may still change the guard: it runs, is no guest, and no newer prompt is admitted."""
    running = chain.running
    return running is not None and running.id == turn and not running.guest and chain.admitted is None


def _no_say(chain: Chain, turn: str) -> str:
    """Why this turn gets nothing from the guard."""
    if chain.running is None or chain.running.id != turn:
        return "over"
    if chain.running.guest:
        return "guest"
    if chain.admitted is not None:
        return "superseded"
    if chain.priority:
        return "awaiting"
    return chain.guard.suspended_by or ("plan" if chain.plan else guards.state_name(chain.guard).lower())


def _changes(before: Chain, after: Chain, event: ChainEvent) -> Effects:
    """What people are told of the guard and the order, whatever the event."""
    told: list[ChainEffect] = []
    old, new = before.guard, after.guard
    if new is not old and _standing(old) != _standing(new):
        told.append(
            GuardChanged(
                was=guards.state_name(old),
                state=guards.state_name(new),
                cause=type(event).__name__,
                suspended_by=new.suspended_by,
                attempts=new.attempts,
                unfinished=new.unfinished,
            )
        )
    if before.priority_owner != after.priority_owner:
        told.append(PriorityChanged(owner=after.priority_owner))
    return tuple(told)


def _standing(guard: guards.Guard) -> tuple[object, ...]:
    """What people see of a guard."""
    return guards.state_name(guard), guard.suspended_by, guard.attempts, guard.unfinished


def _illegal(event: ChainEvent, what: str) -> IllegalEventError:
    name = type(event).__name__
    return IllegalEventError(f"{name} cannot happen: {what}", kept="The chain is as it was", do="Mend the driver")


# ---- the tables


def _is_prompt(chain: Chain, name: str) -> bool:
    return chain.running is not None and chain.running.id == name and chain.running.kind == "foreground"


def _is_automatic(chain: Chain, name: str) -> bool:
    return chain.running is not None and chain.running.id == name and chain.running.kind != "foreground"


def _known(chain: Chain, name: str) -> bool:
    return any(one is not None and one.id == name for one in (chain.running, chain.admitted))


def _not_exhausted(chain: Chain, event: ExhaustionReported) -> bool:
    if not _has_say(chain, event.turn) or chain.guard.exhaustion_reported:
        return False
    return guards.decide(chain.guard, background=False, at=event.at).kind != "exhausted"


if TYPE_CHECKING:
    Rule = tuple[Callable[[Chain, Any], bool], str]

_DISPOSED: Rule = (lambda chain, _: chain.disposed, "the session is put away")
_CLOSING: Rule = (lambda chain, _: chain.closing, "the gate is held")
_BUSY: Rule = (lambda chain, _: chain.running is not None, "a turn runs")
_WAITING: Rule = (lambda chain, _: chain.admitted is not None, "a prompt is admitted")

# What each event does. One row one event.
EVENTS: Mapping[type[ChainEvent], Callable[[Chain, Any], Stepped]] = {
    PromptAdmitted: _admit,
    PromptStarted: _start,
    PromptAbandoned: _abandon,
    PromptEnded: _end_prompt,
    AutomaticStarted: _start_automatic,
    AutomaticEnded: _end_automatic,
    ClaimSent: _send_claim,
    ClaimAnswered: _answer_claim,
    Released: _release,
    ModeChanged: _change_mode,
    AwayChanged: _change_away,
    Rewound: _rewind,
    GateTaken: _take_gate,
    GateReleased: _release_gate,
    Relocated: _relocate,
    Cancelled: _cancel,
    Disposed: _dispose,
    DeferralTooLong: _wait_too_long,
    SwitchSet: _set_switch,
    BudgetSet: _set_budget,
    TodoObserved: _observe,
    MidTurnAccepted: _accept_mid_turn,
    AttemptCommitted: _commit,
    TokensSpent: _spend,
    ExhaustionReported: _report_exhaustion,
    ChainSuspended: _suspend,
    RetryPaused: _pause,
}

# When an event cannot happen. Events that are not named here can always happen.
ILLEGAL: Mapping[type[ChainEvent], tuple[Rule, ...]] = {
    PromptAdmitted: (_DISPOSED, _CLOSING, (lambda chain, event: _known(chain, event.id), "it is admitted already")),
    PromptStarted: (
        (lambda chain, event: chain.admitted is None or chain.admitted.id != event.id, "it is not admitted"),
        _BUSY,
    ),
    PromptEnded: ((lambda chain, event: not _is_prompt(chain, event.id), "it does not run"),),
    AutomaticStarted: (
        *(_DISPOSED, _CLOSING, _BUSY, _WAITING),
        (lambda chain, event: not may_start_automatic(chain, event.related), "it is held back"),
    ),
    AutomaticEnded: ((lambda chain, event: not _is_automatic(chain, event.id), "it does not run"),),
    ClaimSent: (
        *(_DISPOSED, _WAITING),
        (lambda chain, _: chain.running is None, "no turn runs"),
        (lambda chain, event: event.id <= chain.last_claim, "its id is used"),
    ),
    ClaimAnswered: (
        (lambda chain, event: event.id > chain.last_claim, "there is no such claim"),
        (lambda _, event: event.answer not in CLAIM_ANSWERS, "there is no such answer"),
    ),
    Rewound: (_DISPOSED, _BUSY, _WAITING),
    GateTaken: (_DISPOSED, _CLOSING),
    Relocated: (_DISPOSED, (lambda chain, _: not chain.closing, "the gate is not held")),
    DeferralTooLong: ((lambda chain, _: not guards.trusted_unfinished(chain.guard), "nothing is held back"),),
    ExhaustionReported: ((_not_exhausted, "the guard is not exhausted"),),
    ChainSuspended: (
        (lambda _, event: event.reason not in guards.SUSPENSIONS or event.reason == "superseded", "no turn says that"),
    ),
}

# What still happens once the session is put away; everything else is late and does nothing.
AFTER_DISPOSE = frozenset({PromptEnded, AutomaticEnded, ClaimAnswered, Released, AttemptCommitted})
