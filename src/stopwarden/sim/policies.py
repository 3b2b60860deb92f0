"""Other answers to the same stop: what Stopwarden is compared with, each a pure function like `core.judge`.

* `none`: no hook at all; every stop is allowed.
* `block-once`: the stop hook that many people write. It blocks while the list has an open item,
  unless the turn goes on because of a block already (the host's `stop_hook_active`).
* `first-rule`: the rule before ours. With nothing owed it allows if the host reports any scheduled
  wake or background task, else it blocks once; what is owed blocks while it changes, and unchanged
  it passes once the turn goes on because of a block.
* `nominal`: our rule, with wakes judged by their next minute alone: no jitter, no evidence.
* `ours`: `core.judge`.

What our judge leaves alone (no away period, plan mode, a cancel, a subagent, the switch) every one
of them leaves alone, so only the away check is compared. `stop_hook_active` is no part of a `Stop`,
because nothing of ours may depend on it; the first two rules read it from the count of blocks in the
turn, which `turn_begins` sets back.
May not live here: an agent, a world, a night.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import leases, owed
from stopwarden.core.bounds import HOST_CAP_DEFAULT, HOUR
from stopwarden.core.errors import UsageError
from stopwarden.core.events import Counters, Happening, Verdict
from stopwarden.core.judge import judge
from stopwarden.core.reason import local_time
from stopwarden.core.record import Record
from stopwarden.core.session import prompted

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import Instant, SessionState, Stop, World

    Judge = Callable[[Stop, SessionState, World, Policy], Verdict]


class Guard(Record):
    """One answer to stops. `judge` has the same signature as `core.judge.judge`."""

    name: str
    words: str  # in a table
    judge: Judge
    by_turn: bool = False  # its count of blocks is that of the turn
    records: bool = True  # it keeps an account: bounds, looks, errors


def turn_begins(guard: Guard, state: SessionState, by: str) -> SessionState:
    """The state of a session whose turn begins, started by "person", "wake", "notification" or "ours"."""
    state = prompted(state, by)
    return state.replace(blocks=0) if guard.by_turn else state


def no_guard(stop: Stop, session: SessionState, world: World, policy: Policy) -> Verdict:
    """Every stop is allowed."""
    left = _left_alone(stop, session, world, policy)
    return _answer("none.allowed", "", stop, session, world) if left is None else left


def block_once(stop: Stop, session: SessionState, world: World, policy: Policy) -> Verdict:
    """Blocks while an item is open, once a turn."""
    left = _left_alone(stop, session, world, policy)
    if left is not None:
        return left
    items = [item for item in world.items if item.state in owed.LIVE]
    if not items:
        return _answer("block_once.nothing_open", "", stop, session, world)
    if session.blocks:
        return _answer("block_once.yielded", "", stop, session, world)
    reason = f"{len(items)} items are open. Go on with {items[0].id}."
    return _answer("block_once.open_items", reason, stop, session, world)


def first_rule(stop: Stop, session: SessionState, world: World, policy: Policy) -> Verdict:
    """The superseded rule; it records the block that reaches the host's cap."""
    left = _left_alone(stop, session, world, policy)
    if left is not None:
        return left
    every = tuple(item.id for item in world.items)  # it asked for nothing that is parked or removed
    owes = owed.assess(world.items, world.unread, session.replace(graced=every))
    going_on = session.blocks > 0
    by = local_time(leases.deadline(world.reservations, world.copy, stop.at, policy), world.zone, stop.at)
    changed = session.fingerprint != owes.fingerprint
    state = session.replace(reached=owes.reached)
    if not owes.anything_owed:
        if stop.wakes or stop.background:
            return _answer("first_rule.in_flight", "", stop, state, world)
        if going_on:
            return _answer("first_rule.told_once", "", stop, state, world)
        ask = f"Schedule your next look: a wake must come by {by}."
        return _answer("first_rule.no_look", ask, stop, state, world, records_bound=True)
    if going_on and not changed:
        return _answer("first_rule.unchanged", "", stop, state, world)
    state = state.replace(fingerprint=owes.fingerprint)
    named = f"Go on: item {owes.owed[0].id}." if owes.owed else "Go on."
    return _answer("first_rule.owed", named, stop, state, world, records_bound=True)


def nominal(stop: Stop, session: SessionState, world: World, policy: Policy) -> Verdict:
    """Our rule with the recorded reading of wakes."""
    return judge(stop, session, world, policy.replace(wake_evidence="nominal"))


GUARDS = {
    guard.name: guard
    for guard in (
        Guard(name="none", words="no guard", judge=no_guard, by_turn=True, records=False),
        Guard(name="block-once", words="block once, then yield", judge=block_once, by_turn=True, records=False),
        Guard(name="first-rule", words="the superseded first rule", judge=first_rule, by_turn=True),
        Guard(name="nominal", words="nominal wakes", judge=nominal),
        Guard(name="ours", words="ours", judge=judge),
    )
}


def named(name: str) -> Guard:
    """The guard of this name. Raises UsageError with those that there are."""
    if name not in GUARDS:
        raise UsageError(f"There is no policy {name!r}", do=f"Use one of: {', '.join(GUARDS)}")
    return GUARDS[name]


def _left_alone(stop: Stop, session: SessionState, world: World, policy: Policy) -> Verdict | None:
    """Our own verdict where no away check is made, or is only observed."""
    if world.period is not None and world.mode == "on" and not (stop.subagent or stop.plan_mode or session.cancelled):
        return None
    return judge(stop, session, world, policy)


def _answer(
    rule: str, reason: str, stop: Stop, session: SessionState, world: World, *, records_bound: bool = False
) -> Verdict:
    """A block where there is a reason, else an allow; with the state after it, which is all that is counted."""
    block = bool(reason)
    this_hour = _within_the_hour(session, stop.at)
    after = session.replace(
        period=world.period.id if world.period else session.period,
        blocks=session.blocks + 1 if block else 0,
        blocks_without_tools=(0 if session.tool_used else session.blocks_without_tools) + 1 if block else 0,
        tool_used=False,
        recent_blocks=(*this_hour, stop.at) if block else this_hour,
        period_blocks=session.period_blocks + block,
        wake_started=False,
        compacted=session.compacted and not block,
    )
    cap = HOST_CAP_DEFAULT if stop.host_cap is None else stop.host_cap
    reached = records_bound and block and 0 < cap <= after.blocks_without_tools
    happenings = (Happening(kind="stopped_with_work_owed", text="blocks_without_tools"),) if reached else ()
    counters = Counters(
        blocks=after.blocks,
        blocks_without_tools=after.blocks_without_tools,
        blocks_this_hour=len(after.recent_blocks),
        period_blocks=after.period_blocks,
        cap=cap,
    )
    return Verdict(
        block=block,
        kind="block" if block else "idle",
        rule=rule,
        at=stop.at,
        reason=reason,
        counters=counters,
        zone=world.zone.name,
        after=after.replace(bound="blocks_without_tools" if reached else ""),
        happenings=happenings,
    )


def _within_the_hour(session: SessionState, now: Instant) -> tuple[Instant, ...]:
    return tuple(then for then in session.recent_blocks if now - HOUR < then <= now)
