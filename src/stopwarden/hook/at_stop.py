"""A stop: gathers what it is judged by, judges it, and stores verdict, state and account together."""

from __future__ import annotations

import os

from stopwarden import machine
from stopwarden.core import leases
from stopwarden.core.bounds import HOUR
from stopwarden.core.events import World
from stopwarden.core.judge import commit, judge
from stopwarden.core.periods import covers
from stopwarden.hook import at_event
from stopwarden.hook.terms import mode_of, paused_until, policy_of
from stopwarden.hosts import claude_code
from stopwarden.hosts.claude_code_facts import digest
from stopwarden.store import journal
from stopwarden.store.port import SeenWake, VerdictRow
from stopwarden.work import gather
from stopwarden.work.ready import ledger_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import AwayPeriod, Instant, Reservation, Stop, Verdict
    from stopwarden.hook.local import Event
    from stopwarden.hook.note import Noted
    from stopwarden.store.port import Store
    from stopwarden.work.gather import Gathered


def judged(event: Event, store: Store, noted: Noted) -> str:
    """The answer to a stop. Nothing is stored for a session that no away period covers."""
    stored = _answered_before(event, store, noted)
    if stored is not None:
        return stored
    period = noted.period(event.now)
    if period is None or event.told.get("agent"):
        return ""
    policy = policy_of(store, period)
    stop = claude_code.stop(
        event.payload,
        session=event.session,
        at=event.now,
        env=event.env,
        seen=store.wakes(event.session),
        nonce=f"{machine.boot_id()[:8]}-{event.started}-{os.getpid()}-{event.at}",
        damaged=event.damaged,
    )
    _remember_wakes(store, stop, event)
    checklist = at_event.own_list(event, store, noted, period)
    gathered = gather.gather(store, noted.row, period, os.environ, event.now)
    for place in gathered.gone:
        if not store.fact("gone_said", f"{event.session} {place}"):
            store.save_fact("gone_said", f"{event.session} {place}", str(event.now))
            noted.line(event.now, "checkout_gone", place)
    world = World(
        zone=event.zone,
        mode=mode_of(store, event.session, event.now),
        paused_until=paused_until(store, event.session),
        period=period,
        items=gathered.items,
        unread=gathered.unread,
        ready=gathered.ready,
        reservations=gathered.reservations,
        unread_ready=gathered.unread_ready,
        shared=_shares_its_list(store, noted, period),
        copy=noted.row.copy,
        scheduler=claude_code.scheduler(noted.row.entrypoint, event.env),
        kept_look=_or_declared(
            kept_look(store, event.session, noted.row.copy, event.now, policy, gathered.reservations), stop, store
        ),
        checklist=checklist or gathered.checklist,
        answers=at_event.answers(store, event.session),
        ask_safety_wake=noted.row.asked_safety_wake != period.id,
    )
    verdict = judge(stop, noted.state, world, policy)
    if verdict.block:
        at_event.delivered(store, event.session, event.now)
        noted.row = noted.row.replace(asked_safety_wake=period.id)
    _store(event, store, noted, period, stop, world, policy, verdict, gathered)
    if gathered.bulleted:
        from stopwarden.hook import promised

        promised.noticed(store, gathered.bulleted, period, event.zone, event.now)
    return claude_code.stop_answer(verdict.replace(notice=_notice(verdict, stop, store, event)))


def _shares_its_list(store: Store, noted: Noted, period: AwayPeriod) -> bool:
    """Whether another session that lives works from the lists the person named."""
    return bool(period.lists) and any(
        row.id != noted.row.id
        and row.ended_at is None
        and covers(period, session=row.id, copy=row.copy, root=row.root, script=claude_code.is_script(row.entrypoint))
        for row in store.sessions(period.since)
    )


def kept_look(
    store: Store, session: str, copy: str, now: Instant, policy: Policy, holds: tuple[Reservation, ...] = ()
) -> Instant | None:
    """When a living keeper of this session would look at the latest, or None: sooner where a hold must be renewed."""
    row = store.keeper(session)
    if row is None or not policy.keeper or not machine.is_alive(row.pid, row.started):
        return None
    return min(leases.deadline((), copy, now, policy), leases.deadline(holds, copy, now, policy, session))


def _or_declared(kept: Instant | None, stop: Stop, store: Store) -> Instant | None:
    """The keeper's look, or a sooner one that the session declared itself; that only where a host reports no wakes."""
    if stop.wakes is not None or stop.damaged:
        return kept
    from stopwarden.hook.declared import declared_look

    said = declared_look(store, stop.session, stop.host, stop.at)
    return said if kept is None or (said is not None and said < kept) else kept


def _answered_before(event: Event, store: Store, noted: Noted) -> str | None:
    """The stored answer, if this very stop was judged already by a second registration of our hook.

    A host asks again only after every hook has answered, so a process that was started before the
    last answer was stored belongs to the same stop. Nothing in the payload could tell.
    """
    row = noted.row
    if not row.last_verdict or not event.started or row.boot != machine.boot_id():
        return None
    if event.started >= row.answered_ticks:
        return None
    stored = store.verdict(row.last_verdict)
    if stored is None:
        return None
    verdict = journal.decode(stored.body, store.snapshot)[4]
    return claude_code.stop_answer(verdict)


def _remember_wakes(store: Store, stop: Stop, event: Event) -> None:
    """First sights of listed wakes; a known wake that is listed no more is gone."""
    if stop.wakes is None:
        return
    prompts = {
        str(entry.get("id", ""))[:60]: entry.get("prompt")
        for entry in event.payload.get("session_crons") or ()
        if isinstance(entry, dict)
    }
    known = {wake.id: wake for wake in store.wakes(event.session)}
    listed = {wake.id for wake in stop.wakes}
    for wake in stop.wakes:
        before = known.get(wake.id)
        if before is None or before.gone_at is not None or (not before.schedule and wake.schedule):
            prompt = prompts.get(wake.id)
            store.save_wake(
                (before or SeenWake(session=event.session, id=wake.id, first_seen=event.now)).replace(
                    schedule=wake.schedule[:200],
                    kind="recurring" if wake.kind == "recurring" else "one_shot",
                    first_seen=before.first_seen if before and before.gone_at is None else event.now,
                    prompt_digest=digest(prompt) if isinstance(prompt, str) else "",
                    gone_at=None,
                )
            )
    for seen in known.values():
        over = seen.kind == "self_paced" and seen.fires_at is not None and seen.fires_at < event.now - HOUR
        if seen.gone_at is None and seen.id not in listed and (seen.kind != "self_paced" or over):
            store.save_wake(seen.replace(gone_at=event.now))


def _store(
    event: Event,
    store: Store,
    noted: Noted,
    period: AwayPeriod,
    stop: Stop,
    world: World,
    policy: Policy,
    verdict: Verdict,
    gathered: Gathered,
) -> None:
    body = journal.encode(stop, noted.state, world, policy, verdict, store.put_snapshot)
    number = store.append_verdict(
        VerdictRow(
            at=event.now,
            session=event.session,
            period=period.id,
            nonce=stop.nonce,
            kind=verdict.kind,
            rule=verdict.rule,
            body=body,
        )
    )
    noted.lines_for(event.now, verdict.happenings)
    for happening in verdict.happenings:
        if happening.kind == "item_handed_back":
            _hand_back(store, gathered, happening.item, event.now)
    noted.state = commit(noted.state, verdict)
    noted.row = noted.row.replace(
        last_verdict=number, boot=machine.boot_id(), answered_ticks=int(machine.boot_seconds() * 100)
    )
    if verdict.kind == "plan_mode":
        noted.row = noted.row.replace(waits_on_person="plan", waits_since=event.now)
    if verdict.kind == "done":
        _end_if_all_are_done(store, period, noted, event.now)


def _hand_back(store: Store, gathered: Gathered, item: str, now: Instant) -> None:
    """An item that goes back to the person is held no longer, and the ledger says whose it is."""
    for name, held in gathered.own:
        if name == item:
            store.save_reservation(held.replace(released_at=now))
    number = ledger_number(item)
    row = store.ledger_item(number) if number is not None else None
    if row is not None and row.state != "done":
        store.save_ledger_item(row.replace(state="handed_back", was=row.state, changed_at=now))


def _end_if_all_are_done(store: Store, period: AwayPeriod, noted: Noted, now: Instant) -> None:
    """Away until done ends when every session it covers, and that has not ended, has nothing left."""
    for row in store.sessions(period.since):
        if row.id == noted.row.id or row.ended_at is not None or not row.last_verdict:
            continue
        last = store.verdict(row.last_verdict)
        if last is not None and last.period == period.id and last.kind != "done":
            return
    if store.end_period(period.id, now, "done"):
        noted.line(now, "period_ended", "done")


def _notice(verdict: Verdict, stop: Stop, store: Store, event: Event) -> str:
    """One line for the person, where there is something to say."""
    if verdict.kind == "bound_reached":
        return f"Stopwarden: stopped with work owed, a bound was reached ({verdict.rule}). See: stopwarden status"
    if stop.wakes is None and not stop.damaged and not store.fact("no_wakes_said", event.session):
        store.save_fact("no_wakes_said", event.session, str(event.now))
        return (
            "Stopwarden: this program reports no scheduled wakes (Claude Code does since 2.1.145), so none can count."
        )
    return verdict.notice
