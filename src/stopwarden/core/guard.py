"""The todo guard: whether this chain's own unfinished list is a reason to go on.

A `Guard` is a value; every operation is a function from a guard to a guard, without I/O, clock or
queue. Two questions are kept apart: `decide` says what a stop would get and changes nothing, and
`commit` counts an attempt once the provider has answered. An operation whose condition does not
hold changes nothing and says so with False; it is never an error, because late calls are normal.

What may arm it is `core/todo_envelope`'s business; prompts, claims, releases and plan mode are
`core/chain`'s, which also keeps the waiting for a queued prompt in step with `awaiting`.

States (`state_name`):

    OFF        the person's switch is off
    IDLE       no unfinished list of this chain is known
    ARMED      there is one; `attempts` of the stage's streams are used
    DONE       the list was finished inside a stream of ours
    PAUSED     armed, after a failure of the provider; a trusted retry goes on
    AWAITING   yielded to a queued prompt
    SUSPENDED  held back until an ordinary prompt starts; `suspended_by` says why

The switch and the budget may change at any time (off, observe, on; streams a stage, tokens and wall
time a chain). A change never lifts a suspension and never gives an attempt back.
"""

from __future__ import annotations

from stopwarden.core.bounds import GUARD_STREAMS
from stopwarden.core.errors import IllegalEventError, SettingError
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopwarden.core.todo_envelope import TodoList

SWITCHES = ("off", "observe", "on")
# What keeps the guard off in a session, whatever its switch; plan mode does the same for as long as it lasts.
FORCED_OFF = ("safe", "bare", "no_todo_tool")


class Suspension(Record):
    """What a reason of hard suspension does beside locking the chain."""

    forgets: bool  # arming, list and attempts are wiped too
    keeps_priority: bool  # a queued prompt that was yielded to still goes first


# One row a reason. Every hard suspension clears what is awaited, its
# priority and its owner; plan mode and rewinding clear trust alone.
SUSPENSIONS: Mapping[str, Suspension] = {
    "plan": Suspension(forgets=True, keeps_priority=True),
    "rewound": Suspension(forgets=True, keeps_priority=True),
    "superseded": Suspension(forgets=True, keeps_priority=False),  # from a prompt's admission to its start
    "untrusted_retry": Suspension(forgets=True, keeps_priority=False),
    "drain_unreliable": Suspension(forgets=True, keeps_priority=False),
    "claim_unavailable": Suspension(forgets=True, keeps_priority=False),
    "released": Suspension(forgets=True, keeps_priority=False),
    "relocated": Suspension(forgets=True, keeps_priority=False),
    "disposed": Suspension(forgets=True, keeps_priority=False),
    "exhausted": Suspension(forgets=False, keeps_priority=False),
    "cancelled": Suspension(forgets=False, keeps_priority=False),
    "aborted": Suspension(forgets=False, keeps_priority=False),
    "loop_protection": Suspension(forgets=False, keeps_priority=False),
    "tool_failures": Suspension(forgets=False, keeps_priority=False),
    "tool_hook_stop": Suspension(forgets=False, keeps_priority=False),
    "todo_cancelled": Suspension(forgets=False, keeps_priority=False),
    "not_sent": Suspension(forgets=False, keeps_priority=False),
    "token_limit": Suspension(forgets=False, keeps_priority=False),
    "compression_failed": Suspension(forgets=False, keeps_priority=False),
    "hook_cap": Suspension(forgets=False, keeps_priority=False),
    "goal_ended": Suspension(forgets=False, keeps_priority=False),
}


class Budget(Record):
    """What the guard may use: streams in a stage (1 or 2); tokens and seconds in a chain (0: no limit)."""

    attempts: int = GUARD_STREAMS
    tokens: int = 0
    wall_time: int = 0


class Guard(Record):
    """The guard of one session. Immutable; change it with the functions of this module."""

    switch: str = "on"
    forced_off: str = ""  # a word of FORCED_OFF
    budget: Budget = Budget()
    armed: bool = False
    unfinished: int = 0
    attempts: int = 0
    suspended_by: str | None = None
    retry_paused: bool = False
    awaiting: bool = False
    exhaustion_reported: bool = False
    tokens: int = 0  # used by the guard's streams in this chain
    first_attempt_at: int | None = None  # of this chain; seconds

    @property
    def suspended(self) -> bool:
        """Whether the chain is held back until an ordinary prompt starts."""
        return self.suspended_by is not None


class Decision(Record):
    """What the guard says at a stop: `inactive`, `deferred`, `exhausted`, `continue` or `observed`.

    `why` tells an inactive guard's state, the budget that is used up, or what an observed guard would
    have said. `attempt` is the one to commit for `continue`, the last committed one for `exhausted`.
    """

    kind: str
    why: str = ""
    attempt: int = 0
    cap: int = GUARD_STREAMS
    unfinished: int = 0
    tool_closure: bool = False


def trusted_unfinished(guard: Guard) -> bool:
    """Whether an unfinished list of this chain counts; then unrelated automatic turns are held back too."""
    return guard.switch == "on" and _holds_a_list(guard)


def needs_inspection(guard: Guard) -> bool:
    """Whether a stop of this chain must be looked at (drained, and decided) before it is allowed."""
    return trusted_unfinished(guard) and not guard.retry_paused and not guard.awaiting


def has_committed(guard: Guard) -> bool:
    """Whether a stream of this stage was the guard's."""
    return guard.switch != "off" and guard.attempts > 0


def state_name(guard: Guard) -> str:
    """The named state; `attempts`, `unfinished` and `suspended_by` tell the rest."""
    if guard.switch == "off":
        return "OFF"
    if guard.suspended:
        return "SUSPENDED"
    if guard.awaiting:
        return "AWAITING"
    if guard.armed:
        return "PAUSED" if guard.retry_paused else "ARMED"
    return "DONE" if guard.attempts else "IDLE"


def of_session(switch: str, forced_off: str = "", budget: Budget | None = None) -> Guard:
    """The guard with which a session begins. Raises SettingError for an unknown switch, reason or budget."""
    if forced_off and forced_off not in FORCED_OFF:
        known = ", ".join(FORCED_OFF)
        raise SettingError(f"{forced_off!r} is nothing that keeps the guard off", do=f"Use one of {known}")
    guard = set_budget(set_switch(Guard(), switch), budget or Budget())
    return guard.replace(switch="off", forced_off=forced_off) if forced_off else guard


def start_ordinary(guard: Guard) -> Guard:
    """A fresh chain: everything forgotten, a suspension too. The only act that lifts one."""
    return Guard(switch=guard.switch, forced_off=guard.forced_off, budget=guard.budget)


clear_trust = start_ordinary


def block_until_ordinary(guard: Guard, reason: str) -> Guard:
    """Forget the chain and hold it back. Raises IllegalEventError for an unknown reason."""
    return start_ordinary(guard).replace(suspended_by=_held_by(guard, reason))


def suspend(guard: Guard, reason: str) -> Guard:
    """Hold the chain back as the reason's row of SUSPENSIONS says. Raises IllegalEventError for another reason.

    Recorded with the switch off too: a cancel must still hold when the guard is turned on again.
    """
    held_by = _held_by(guard, reason)
    if SUSPENSIONS[reason].forgets:
        return block_until_ordinary(guard, reason)
    return guard.replace(suspended_by=held_by, awaiting=False)


def resume_trusted(guard: Guard) -> Guard:
    """A trusted retry, a related result or a granted claim: goes on where it was. Never lifts a suspension."""
    return guard.replace(awaiting=False, retry_paused=False)


def pause_retry(guard: Guard) -> Guard:
    """The provider failed: trust and attempts are kept, nothing is sent until someone retries."""
    return guard.replace(retry_paused=True, awaiting=False) if guard.armed else guard


def await_queued(guard: Guard) -> tuple[Guard, bool]:
    """Yield to a queued prompt. False if there is nothing to yield with."""
    if guard.suspended or not (guard.armed or guard.attempts):
        return guard, False
    return guard.replace(awaiting=True), True


def accept_mid_turn(guard: Guard) -> Guard:
    """The person said something in the middle of the turn: a new stage, with all its attempts."""
    if guard.switch == "off" or guard.suspended or not (guard.armed or guard.attempts):
        return guard
    return guard.replace(attempts=0, retry_paused=False, awaiting=False, exhaustion_reported=False)


def observe(guard: Guard, todos: TodoList | None, allow_arm: bool) -> tuple[Guard, bool]:
    """Take note of a todo list (None: untrusted). False if it does not count, and then nothing changes.

    `allow_arm` is False in plan mode: such a write locks the chain, so that it cannot arm after the
    mode has changed either. A list written while the switch is off makes the one known before it old.
    """
    if todos is None:
        return guard, False
    if guard.switch == "off":
        return guard.replace(armed=False, unfinished=0), False
    if not allow_arm:
        return block_until_ordinary(guard, "plan"), True
    left = todos.unfinished
    armed = left > 0 and (guard.armed or not guard.suspended)
    return guard.replace(unfinished=left, armed=armed, exhaustion_reported=False), True


def decide(guard: Guard, background: bool, at: int = 0) -> Decision:
    """What a stop gets now. Pure.

    `background`: related work is still running, or its result is queued. `at`: the time in seconds, for the
    wall time of the budget.
    """
    if guard.switch == "off" or not _may_send(guard) or not _holds_a_list(guard):
        return Decision(kind="inactive", why=guard.suspended_by or state_name(guard).lower())
    decision = _decide_armed(guard, background, at)
    if guard.switch == "observe":
        return decision.replace(kind="observed", why=decision.kind)
    return decision


def decide_tool_closure(guard: Guard, current: int, background: bool, at: int = 0) -> Decision:
    """After the tools of attempt `current`: whether their results may be sent back, so the model can close.

    With items unfinished this is `decide`. With none left an unused attempt may carry the results,
    without any instruction of ours.
    """
    if guard.unfinished:
        return decide(guard, background, at)
    if guard.switch != "on" or not _may_send(guard) or not guard.attempts or guard.attempts != current:
        return Decision(kind="inactive", why=guard.suspended_by or state_name(guard).lower())
    if background:
        return Decision(kind="deferred", why="background", cap=guard.budget.attempts)
    if used := _used_up(guard, at):
        return Decision(kind="inactive", why=used, cap=guard.budget.attempts)
    return Decision(kind="continue", attempt=current + 1, cap=guard.budget.attempts, tool_closure=True)


def commit(guard: Guard, attempt: int, at: int = 0) -> tuple[Guard, bool]:
    """Count an attempt: the provider has answered. False if it may not be counted; then nothing changes.

    The switch is not asked: a stream that was sent counts, even if the guard was turned off meanwhile.
    """
    due = _holds_a_list(guard) or (guard.unfinished == 0 and guard.attempts > 0)
    if not due or not _may_send(guard) or attempt != guard.attempts + 1 or attempt > guard.budget.attempts:
        return guard, False
    first = at if guard.first_attempt_at is None else guard.first_attempt_at
    return guard.replace(attempts=attempt, first_attempt_at=first), True


def spend(guard: Guard, tokens: int) -> Guard:
    """Tokens that a stream of the guard used."""
    return guard.replace(tokens=guard.tokens + max(tokens, 0))


def mark_exhaustion_reported(guard: Guard) -> tuple[Guard, bool]:
    """Exhaustion is told once, and then the chain is held back. False if it was told already."""
    if guard.exhaustion_reported:
        return guard, False
    return suspend(guard, "exhausted").replace(exhaustion_reported=True), True


def set_switch(guard: Guard, switch: str) -> Guard:
    """Off, observe or on, from now. Raises SettingError for anything else, and where the guard is forced off."""
    if switch not in SWITCHES:
        raise SettingError(f"The guard cannot be {switch!r}", kept="It is as it was", do="Use off, observe or on")
    if guard.forced_off and switch != "off":
        raise SettingError(
            f"The guard is off in this session ({guard.forced_off})",
            kept="It stays off",
            do="Begin a session without that, and with the todo tool",
        )
    return guard.replace(switch=switch)


def set_budget(guard: Guard, budget: Budget) -> Guard:
    """Other limits, from now. Attempts and tokens already used count against them.

    Raises SettingError if streams a stage are not 1 to 2, or another limit is negative.
    """
    if not 1 <= budget.attempts <= GUARD_STREAMS:
        raise SettingError(f"{budget.attempts} streams a stage are not allowed", do=f"Use 1 to {GUARD_STREAMS}")
    if budget.tokens < 0 or budget.wall_time < 0:
        raise SettingError("A limit below zero is not allowed", do="Use 0 for no limit")
    return guard.replace(budget=budget)


def _holds_a_list(guard: Guard) -> bool:
    return guard.armed and not guard.suspended and guard.unfinished > 0


def _may_send(guard: Guard) -> bool:
    return not guard.suspended and not guard.retry_paused and not guard.awaiting


def _decide_armed(guard: Guard, background: bool, at: int) -> Decision:
    cap, left = guard.budget.attempts, guard.unfinished
    if background:
        return Decision(kind="deferred", why="background", attempt=guard.attempts, cap=cap, unfinished=left)
    if used := _used_up(guard, at):
        return Decision(kind="exhausted", why=used, attempt=guard.attempts, cap=cap, unfinished=left)
    return Decision(kind="continue", attempt=guard.attempts + 1, cap=cap, unfinished=left)


def _used_up(guard: Guard, at: int) -> str:
    """The part of the budget that is used up, or nothing. A clock that went back uses nothing up."""
    budget, first = guard.budget, guard.first_attempt_at
    if guard.attempts >= budget.attempts:
        return "attempts"
    if budget.tokens and guard.tokens >= budget.tokens:
        return "tokens"
    if budget.wall_time and first is not None and at - first >= budget.wall_time:
        return "wall_time"
    return ""


def _held_by(guard: Guard, reason: str) -> str:
    """The reason that stands: the first one, but a passing one gives way, and a cancel takes over and stays.

    A cancel holds the away check back as well, so it must not be hidden by what else happened.
    """
    if reason not in SUSPENSIONS:
        raise IllegalEventError(
            f"{reason!r} is no reason to suspend", kept="The guard is as it was", do="Use a key of SUSPENSIONS"
        )
    stands = guard.suspended_by
    return reason if stands in (None, "superseded") or reason == "cancelled" else str(stands)
