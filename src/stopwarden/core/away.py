"""The away check: while the person is away a session works, or waits with a wake that comes in time.

The table (design §3; the seed's newest rule):

    rule                          wake in time   owed   changed   verdict
    away.waiting_nothing_owed     yes            no     -         allow, waiting
    away.waiting_unchanged        yes            yes    no        allow, waiting
    away.owed_changed             yes            yes    yes       block
    away.no_qualifying_wake       no             yes    -         block
    away.no_next_look             no             no     -         block
    away.ready_offered            a wait, but ready work was not offered yet: block, once
    away.bound_reached            a block would pass a bound      allow, bound_reached
    away.bound_kept_look          the same, a living keeper looks allow, waiting
    away.until_done               nothing owed, held or awaited   allow, done

*Changed* compares the owed set with that of this session's last block (the empty set of a wait
counts too). Neither the host's `stop_hook_active`, nor what the last message says, nor a running
background task has any influence.

The block that reaches a bound is still a block; it records that the session stops with work owed,
and the next stop in that row is allowed. Only progress or an allowed stop begins a row anew.
May not live here: wording, wakes' arithmetic, anything that reads a clock.
"""

from __future__ import annotations

from stopwarden.core import leases, owed, reason, wakes
from stopwarden.core.bounds import HOST_CAP_DEFAULT, HOUR
from stopwarden.core.events import Counters, Happening, Verdict, WakeFinding
from stopwarden.core.record import Record
from stopwarden.core.reservations import is_taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import AwayPeriod, Instant, Item, Reservation, SessionState, Stop, World
    from stopwarden.core.owed import Assessment

PASSED_SHOWN = 20  # items that others hold, named in the record once each


class _Look(Record):
    """The wakes judged: which qualifies, which do not, by when one must come."""

    deadline: Instant
    chosen: WakeFinding | None
    rejected: tuple[WakeFinding, ...]
    overdue: tuple[str, ...]


class _Case(Record):
    """One stop with all that its verdict is made of."""

    stop: Stop
    state: SessionState
    world: World
    policy: Policy
    period: AwayPeriod
    owes: Assessment
    look: _Look
    ready: tuple[Item, ...]  # what of the ready queue this session may take
    others: tuple[Reservation, ...]  # holds that keep it from the rest
    handed_back: Item | None = None
    happenings: tuple[Happening, ...] = ()


def check(stop: Stop, state: SessionState, world: World, policy: Policy, period: AwayPeriod) -> Verdict:
    """The verdict of the away check on a stop that reached it. `period` holds for this session."""
    state = begin_period(state, period)
    items, elsewhere = owed.apart(world.items, world.reservations, stop.session, stop.at)
    owes = owed.assess(items, world.unread, state)
    look = _judge_wakes(stop, world, policy)
    ready, busy = owed.apart(world.ready, world.reservations, stop.session, stop.at)
    ready = tuple(item for item in ready if item.id not in state.handed_back)
    case = _Case(
        stop=stop,
        state=state,
        world=world,
        policy=policy,
        period=period,
        owes=owes,
        look=look,
        ready=ready,
        others=(*elsewhere, *busy),
    )
    if period.until_done and not owes.anything_owed and not owes.awaited and not _held(stop, world):
        return _allow("done", "away.until_done", case.replace(happenings=(Happening(kind="until_done"),)))
    changed = state.fingerprint != owes.fingerprint
    looks = 0 if changed or owes.progressed else state.unchanged_looks + state.wake_started
    if looks >= policy.unchanged_looks and owes.owed:
        case, changed = _handed_back(case, items), True
    else:
        case = case.replace(state=state.replace(unchanged_looks=looks))
    owes = case.owes
    may_wait = look.chosen is not None and not (owes.anything_owed and changed)
    if may_wait and _is_new(case) and not _past_bound(case):
        return _block_within_bounds("away.ready_offered", case)
    if look.chosen is not None and not owes.anything_owed:
        # the empty set is a value: {A}, {}, {A} is a change
        case = case.replace(state=case.state.replace(fingerprint=owes.fingerprint))
        return _allow("waiting", "away.waiting_nothing_owed", case)
    if look.chosen is not None and not changed:
        return _allow("waiting", "away.waiting_unchanged", case)
    if look.chosen is not None:
        rule = "away.owed_changed"
    elif owes.anything_owed:
        rule = "away.no_qualifying_wake"
    else:
        rule = "away.no_next_look"
    return _block_within_bounds(rule, case)


def _handed_back(case: _Case, items: tuple[Item, ...]) -> _Case:
    """The same stop once the next item has gone back to the person."""
    item = case.owes.owed[0]
    state = case.state.replace(handed_back=(*case.state.handed_back, item.id), unchanged_looks=0)
    return case.replace(
        state=state,
        owes=owed.assess(items, case.world.unread, state),
        ready=tuple(one for one in case.ready if one.id != item.id),
        handed_back=item,
        happenings=(Happening(kind="item_handed_back", item=item.id, text=item.title),),
    )


def begin_period(state: SessionState, period: AwayPeriod) -> SessionState:
    """A new away period forgets the counts, blocks and progress of the one before, never a cancel."""
    if state.period == period.id:
        return state
    return type(state)(
        id=state.id,
        period=period.id,
        revision=state.revision,
        cancelled=state.cancelled,
        compacted=state.compacted,
        tool_used=state.tool_used,
        wake_started=state.wake_started,
    )


def _judge_wakes(stop: Stop, world: World, policy: Policy) -> _Look:
    deadline = leases.deadline(world.reservations, world.copy, stop.at, policy, stop.session)
    chosen, findings = wakes.judge_wakes(
        stop.wakes or (),
        now=stop.at,
        deadline=deadline,
        scheduler=world.scheduler,
        zone=world.zone,
        evidence=policy.wake_evidence,
    )
    unread = tuple(
        WakeFinding(id="?", schedule=entry, qualifies=False, why="its entry cannot be read")
        for entry in stop.unread_wakes
    )
    kept = world.kept_look
    if kept is not None and stop.at < kept <= deadline and (chosen is None or kept < (chosen.nominal or kept)):
        chosen = WakeFinding(id="kept", schedule="", qualifies=True, nominal=kept, earliest=kept, latest=kept)
    return _Look(
        deadline=deadline,
        chosen=chosen,
        rejected=tuple(finding for finding in findings if not finding.qualifies) + unread,
        overdue=leases.overdue(world.reservations, world.copy, stop.at, policy, stop.session),
    )


def _is_new(case: _Case) -> bool:
    """Whether the head of the ready queue was not offered to this session in this period."""
    return case.policy.offer_ready and bool(case.ready) and case.ready[0].id not in case.state.offered


def _held(stop: Stop, world: World) -> bool:
    return any(held.session == stop.session and leases.is_live(held, stop.at) for held in world.reservations)


# --- bounds -------------------------------------------------------------------------------------


class _Counts(Record):
    """The counts as they stand before this block."""

    blocks: int
    without_tools: int
    this_hour: tuple[Instant, ...]
    in_period: int


def _counts(state: SessionState, owes: Assessment, now: Instant) -> _Counts:
    return _Counts(
        blocks=0 if owes.progressed else state.blocks,
        without_tools=0 if owes.progressed or state.tool_used else state.blocks_without_tools,
        this_hour=tuple(then for then in state.recent_blocks if now - HOUR < then <= now),
        in_period=state.period_blocks,
    )


def cap_of(stop: Stop, policy: Policy) -> int:
    """The bound for blocks in a row without tool use: the person's, else the host's, else 8; 0 is none."""
    if policy.blocks_without_tools is not None:
        return policy.blocks_without_tools
    return HOST_CAP_DEFAULT if stop.host_cap is None else max(0, stop.host_cap)


def _bound(counts: _Counts, case: _Case) -> str:
    """The name of a bound these counts have reached, or ""."""
    stop, policy = case.stop, case.policy
    cap = cap_of(stop, policy)
    if cap and counts.without_tools >= cap:
        return "blocks_without_tools"
    if counts.blocks >= policy.blocks_without_progress:
        return "blocks_without_progress"
    if len(counts.this_hour) >= policy.blocks_an_hour:
        return "blocks_an_hour"
    if counts.in_period >= policy.blocks_a_period:
        return "blocks_a_period"
    if policy.wall_time and stop.at >= case.period.since + policy.wall_time:
        return "wall_time"
    if policy.tokens and case.world.tokens_used >= policy.tokens:
        return "tokens"
    return ""


def _past_bound(case: _Case) -> str:
    """The bound that the last block of this row had reached already, or ""."""
    bound = _bound(_counts(case.state, case.owes, case.stop.at), case)
    return bound if bound not in ("wall_time", "tokens") or case.state.bound == bound else ""


# --- verdicts -----------------------------------------------------------------------------------


def _allow(kind: str, rule: str, case: _Case) -> Verdict:
    state, owes, happenings = case.state, case.owes, case.happenings
    waits_for = case.look.chosen if kind == "waiting" else None
    after = state.replace(
        blocks=0,
        blocks_without_tools=0,
        tool_used=False,
        bound=state.bound if kind == "bound_reached" else "",
        next_look=waits_for.nominal if waits_for else None,
        next_look_latest=waits_for.latest if waits_for else None,
        wake_started=False,
        reached=owes.reached,
    )
    if state.bound and kind != "bound_reached":
        happenings = (*happenings, Happening(kind="resumed", text=state.bound))
    counters = Counters(period_blocks=after.period_blocks, blocks_this_hour=len(after.recent_blocks))
    return _verdict(kind, rule, case, after, counters, waits_for).replace(happenings=(*owes.happenings, *happenings))


def _block_within_bounds(rule: str, case: _Case) -> Verdict:
    past = _past_bound(case)
    if past and case.look.chosen is not None and case.look.chosen.id == "kept":
        return _allow("waiting", "away.bound_kept_look", case)
    if past:
        return _allow("bound_reached", "away.bound_reached", case.replace(state=case.state.replace(bound=past)))
    state, owes, ready = case.state, case.owes, case.ready
    before = _counts(state, owes, case.stop.at)
    counts = before.replace(
        blocks=before.blocks + 1,
        without_tools=before.without_tools + 1,
        this_hour=(*before.this_hour, case.stop.at),
        in_period=before.in_period + 1,
    )
    bound = _bound(counts, case)
    offered = ready[0] if ready and (rule == "away.ready_offered" or not owes.anything_owed) else None
    after = state.replace(
        fingerprint=owes.fingerprint,
        blocks=counts.blocks,
        blocks_without_tools=counts.without_tools,
        tool_used=False,
        recent_blocks=counts.this_hour,
        period_blocks=counts.in_period,
        bound=bound,
        next_look=None,
        next_look_latest=None,
        wake_started=False,
        reached=owes.reached,
        graced=(*state.graced, *owes.newly_given_up),
        offered=(*state.offered, offered.id) if offered and offered.id not in state.offered else state.offered,
        passed_over=tuple(dict.fromkeys((*state.passed_over, *_passed(case)))),
        compacted=False,
    )
    counters = Counters(
        blocks=counts.blocks,
        blocks_without_tools=counts.without_tools,
        blocks_this_hour=len(counts.this_hour),
        period_blocks=counts.in_period,
        cap=cap_of(case.stop, case.policy),
    )
    return _verdict("block", rule, case, after, counters, case.look.chosen).replace(
        block=True,
        reason=reason.block_reason(owes, _circumstances(case, counts.blocks, offered)),
        happenings=(*owes.happenings, *_given_up(owes), *_passed_over(case), *case.happenings, *_at_bound(case, bound)),
    )


def _verdict(
    kind: str, rule: str, case: _Case, after: SessionState, counters: Counters, wake: WakeFinding | None
) -> Verdict:
    """What every verdict of the check says of its stop."""
    return Verdict(
        block=False,
        kind=kind,
        rule=rule,
        at=case.stop.at,
        owed=tuple([item.id for item in case.owes.owed]),
        fingerprint=case.owes.fingerprint,
        counters=counters,
        wake=wake,
        rejected=case.look.rejected,
        deadline=case.look.deadline,
        zone=case.world.zone.name,
        after=after,
    )


def _circumstances(case: _Case, blocks: int, offered: Item | None) -> reason.Circumstances:
    """What the reason is worded from; this is the `blocks`-th block of its row."""
    stop, state, world, look = case.stop, case.state, case.world, case.look
    call = ""
    if look.chosen is None and (blocks >= reason.ESCALATE_FROM or world.ask_safety_wake):
        call = wakes.suggest(stop.at, look.deadline, world.scheduler, world.zone, case.policy.wake_evidence)
    mine = tuple(held for held in world.reservations if held.session == stop.session and not held.terminal)
    return reason.Circumstances(
        now=stop.at,
        zone=world.zone,
        deadline=look.deadline,
        block=blocks,
        chosen=look.chosen,
        rejected=look.rejected,
        wakes_reported=stop.wakes is not None,
        scheduler_off=world.scheduler.why if world.scheduler.works == "none" else "",
        call=call if blocks >= reason.ESCALATE_FROM else "",
        safety_call=call if world.ask_safety_wake else "",
        overdue=look.overdue,
        handed_back=case.handed_back,
        compacted=state.compacted,
        checklist=world.checklist,
        background=stop.background,
        answers=world.answers,
        held_by_others=case.others,
        held=tuple(held.item for held in mine if leases.is_live(held, stop.at)),
        lapsed=tuple(held.item for held in mine if not leases.is_live(held, stop.at) and held.released_at is None),
        lost=tuple(held for held in world.reservations if held.taken_from == stop.session and is_taken(held, stop.at)),
        finished=tuple(held for held in world.reservations if held.terminal and held.session != stop.session),
        shared=world.shared,
        offered=offered,
        unread_ready=world.unread_ready,
        stale=state.tool_used and blocks >= reason.ESCALATE_FROM and state.fingerprint == case.owes.fingerprint,
    )


# --- what goes into the record --------------------------------------------------------------------


def _at_bound(case: _Case, bound: str) -> tuple[Happening, ...]:
    resumed = (Happening(kind="resumed", text=case.state.bound),) if case.state.bound else ()
    if not bound:
        return resumed
    stopped = "stopped_with_work_owed" if case.owes.anything_owed else "stopped_without_next_look"
    return (*resumed, Happening(kind=stopped, text=bound))


def _given_up(owes: Assessment) -> tuple[Happening, ...]:
    """What the agent parked or took off the list since the last block; it stands last of what is owed."""
    return tuple(
        Happening(
            kind="item_parked" if item.state == "waiting" else "item_removed", item=item.id, text=item.why or item.title
        )
        for item in owes.owed[len(owes.owed) - len(owes.newly_given_up) :]
    )


def _passed(case: _Case) -> dict[str, Reservation]:
    return {f"{held.item} {held.session}": held for held in case.others[:PASSED_SHOWN]}


def _passed_over(case: _Case) -> tuple[Happening, ...]:
    """What another holds, said once a period."""
    return tuple(
        Happening(kind="passed_over", item=held.item, text=held.session or "the person")
        for key, held in _passed(case).items()
        if key not in case.state.passed_over
    )
