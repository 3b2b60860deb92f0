"""What other events get while away: a briefing at a first turn, a refusal instead of a dialog.

A dialog freezes a session whole, its scheduled wakes included (measured), so while away no
question, plan or permission prompt is shown: it is refused with advice, and parked with its
options for the person. Nothing is ever granted.
"""

from __future__ import annotations

from stopwarden import wire
from stopwarden.core import leases, wakes
from stopwarden.core.errors import StopwardenError
from stopwarden.hook import words
from stopwarden.hook.terms import mode_of, policy_of
from stopwarden.hosts import claude_code
from stopwarden.hosts.claude_code_facts import digest
from stopwarden.store.port import Parked
from stopwarden.work import checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stopwarden.core.events import AwayPeriod, Instant
    from stopwarden.hook.local import Event
    from stopwarden.hook.note import Noted
    from stopwarden.store.port import Store

PLAN_TOOLS = ("EnterPlanMode", "ExitPlanMode")
TEXT_MAX = 500


def briefed(event: Event, store: Store, noted: Noted) -> str:
    """Context for a prompt or a session's start: the briefing once a period, and answers to questions."""
    period = noted.period(event.now)
    if period is None or event.told.get("agent"):
        return _answers_only(event, store)
    policy = policy_of(store, period)
    if noted.by == "person" and policy.person_prompt_ends and store.end_period(period.id, event.now, "prompt"):
        noted.line(event.now, "period_ended", "prompt")
        return _answers_only(event, store)
    if mode_of(store, event.session, event.now) != "on":
        return ""
    if noted.row.asked_safety_wake == period.id and event.told.get("source") not in ("compact", "clear"):
        return _answers_only(event, store)
    made = own_list(event, store, noted, period)
    checklist = ", ".join(period.lists) or made
    deadline = leases.deadline((), noted.row.copy, event.now, policy)
    scheduler = claude_code.scheduler(noted.row.entrypoint, event.env)
    call = wakes.suggest(event.now, deadline, scheduler, event.zone, policy.wake_evidence)
    noted.row = noted.row.replace(asked_safety_wake=period.id)
    known = answers(store, event.session)
    delivered(store, event.session, event.now)
    text = words.briefing(period, event.now, event.zone, checklist=checklist, call=call, answers=known)
    return claude_code.context_answer(event.name, text)


def _answers_only(event: Event, store: Store) -> str:
    told = answers(store, event.session)
    if not told:
        return ""
    delivered(store, event.session, event.now)
    return claude_code.context_answer(event.name, "\n".join(["Stopwarden:", *words.answered(told)]))


def refused(event: Event, store: Store, noted: Noted) -> str:
    """Refuses a question, a plan or a permission prompt while away, and parks it."""
    period = noted.period(event.now)
    if period is None or mode_of(store, event.session, event.now) == "off":
        return ""
    tool = event.payload.get("tool_name")
    given = event.payload.get("tool_input")
    given = given if isinstance(given, dict) else {}
    if event.name == "permission":
        kind, text = "permission", words.refused_permission()
        asked: list[tuple[str, tuple[str, ...]]] = [(_act(tool, given), ())]
    elif tool in PLAN_TOOLS:
        kind, text = "plan", words.refused_plan()
        plan = given.get("plan")
        asked = [(_one_line(plan) if isinstance(plan, str) else "asked to enter plan mode", ())]
    elif tool == "AskUserQuestion" or event.damaged:
        kind, text = "question", words.refused_question()
        asked = list(_questions(given)) or [("a question that could not be read", ())]
    else:
        return ""
    line = {"permission": "refused_permission", "plan": "refused_plan", "question": "parked_question"}[kind]
    for what, options in asked:
        number = store.park(
            Parked(
                at=event.now,
                session=event.session,
                period=period.id,
                kind=kind,
                digest=digest(f"{event.session}\n{kind}\n{what}"),
                text=what,
                options=options,
            )
        )
        noted.line(event.now, line, what, item=str(number))
    if mode_of(store, event.session, event.now) == "observe":
        return ""
    return claude_code.refusal_answer(event.name, text)


def left(event: Event, noted: Noted) -> None:
    """A session ends while away with a wake or a bound pending: what it leaves is said in its line already."""
    noted.state = noted.state.replace(next_look=None, next_look_latest=None)


def own_list(event: Event, store: Store, noted: Noted, period: AwayPeriod) -> str:
    """The path of the session's own list, made at its first event while away if no list was named, else ""."""
    if period.lists or not noted.row.root:
        return ""
    try:
        path, made = checkout.make_own_list(noted.row.root, event.session, noted.row.title)
    except (StopwardenError, OSError) as failed:
        noted.line(event.now, "fault", f"no list could be made: {failed}")
        return ""
    if made:
        noted.line(event.now, "checklist_made", path)
    return path


def answers(store: Store, session: str) -> tuple[str, ...]:
    """The person's answers to this session's parked questions that it has not been told yet."""
    return tuple(
        f"{parked.text}: {parked.answer}"
        for parked in store.parked(session=session)
        if parked.answer and parked.delivered_at is None
    )


def delivered(store: Store, session: str, now: Instant) -> None:
    """Marks those answers as told."""
    for parked in store.parked(session=session):
        if parked.answer and parked.delivered_at is None:
            store.save_parked(parked.replace(delivered_at=now))


def _questions(given: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The questions of one AskUserQuestion call, each with the labels of its options."""
    asked = given.get("questions")
    for one in asked if isinstance(asked, list) else [given]:
        if isinstance(one, dict) and isinstance(one.get("question"), str):
            options = one.get("options")
            labels = [
                _one_line(option.get("label") if isinstance(option, dict) else option, 120)
                for option in (options if isinstance(options, list) else [])[:12]
            ]
            yield _one_line(one["question"]), tuple(label for label in labels if label)


def _act(tool: object, given: dict[str, Any]) -> str:
    """What a permission was asked for, in one line."""
    name = tool if isinstance(tool, str) else "a tool"
    for field in ("command", "file_path", "path", "url", "pattern", "query"):
        if isinstance(given.get(field), str):
            return _one_line(f"{name}: {given[field]}", 300)
    return _one_line(f"{name}: {wire.dumps(given)}" if given else name, 300)


def _one_line(text: object, limit: int = TEXT_MAX) -> str:
    plain = " ".join("".join(char if char.isprintable() else " " for char in str(text)[: 4 * limit]).split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"
