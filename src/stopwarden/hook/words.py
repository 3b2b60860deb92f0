"""What the hook says to a model outside a blocked stop: the briefing of a first turn, refusals.

The first word is always `Stopwarden:`, so that our own text coming back as a prompt is known for
what it is. No text ever tells an agent to ask somebody.
"""

from __future__ import annotations

from stopwarden.core.reason import local_time, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopwarden.core.events import AwayPeriod, Instant, Zone

DECIDE = (
    "Decide yourself what can be undone later; for what cannot, note the question in the list, "
    "mark that item as waiting for the person, and go on with the next one."
)


def briefing(period: AwayPeriod, now: Instant, zone: Zone, *, checklist: str, call: str, answers: Sequence[str]) -> str:
    """What a session is told at its first turn while the person is away."""
    until = f" until {local_time(period.until, zone, now)} ({zone.name})" if period.until is not None else ""
    lines = [f"Stopwarden: the person is away{until}; nobody will answer."]
    if call:
        lines.append(
            f"First of all schedule a safety wake, because an error can end a turn with nobody to notice: {call}."
        )
    if checklist:
        lines.append(
            f"The list of work is {quoted(checklist, 500)}. Keep it true: [/] for what you are doing, [x] for done, "
            "and for an item that cannot go on, end its line with (waits for person: why)."
        )
    lines.append("Work through what is open. You may stop only with a wake scheduled that comes in time.")
    lines.append(f"Questions, plans for approval and permission prompts are refused meanwhile. {DECIDE}")
    lines += answered(answers)
    return "\n".join(lines)


def answered(answers: Sequence[str]) -> list[str]:
    """The person's answers to parked questions, one line each."""
    return [f"The person has answered a parked question: {quoted(answer, 600)}" for answer in answers]


def refused_question() -> str:
    """Why a question was not shown, and what to do instead."""
    return f"Stopwarden: the person is away, so this question was kept for them and not shown. {DECIDE}"


def refused_plan() -> str:
    """Why plan mode was not entered or left, and what to do instead."""
    return (
        "Stopwarden: the person is away and cannot approve a plan, so plan mode would only wait. "
        f"Write the plan into the list as items and work through them. {DECIDE}"
    )


def refused_permission() -> str:
    """Why a permission was not granted, and what to do instead."""
    return (
        "Stopwarden: the person is away, so this permission was not granted; it was kept for them. "
        f"Find a way that needs no permission, or leave it. {DECIDE}"
    )
