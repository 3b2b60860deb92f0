"""Tools for schedules: prompts that come by themselves, at the times of a cron or once after a while.

May not live here: when they fire (`session/schedules`).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import Field

from stopwarden.core.errors import StopwardenError
from stopwarden.session.schedules import WAKEUP_MAX, WAKEUP_MIN, Job, Schedules
from stopwarden.session.tools.background import NoArguments
from stopwarden.session.tools.contract import Arguments, Outcome, Touches

if TYPE_CHECKING:
    from stopwarden.session.tools.contract import Place


class CronArguments(Arguments):
    """Five fields in local time, and the prompt."""

    cron: str
    prompt: str = Field(min_length=1, max_length=20_000)
    once: bool = False
    durable: bool = False


class JobArguments(Arguments):
    """A schedule."""

    id: str


class WakeupArguments(Arguments):
    """In how many seconds, and what you will be told then."""

    seconds: int = Field(ge=WAKEUP_MIN, le=WAKEUP_MAX)
    prompt: str = Field(min_length=1, max_length=20_000)


class CronCreate:
    """Makes a schedule."""

    name = "cron_create"
    description = (
        "Be given a prompt at the times of a five-field cron expression in local time, each time or once. "
        "Ends after seven days; a durable one outlives a restart of this session."
    )
    touches: Touches = "nothing"
    takes = CronArguments

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def run(self, given: CronArguments, place: Place) -> Outcome:
        """Its id and its first time."""
        try:
            job = self._schedules.cron(given.cron, given.prompt, once=given.once, durable=given.durable)
        except StopwardenError as refused:
            return Outcome(text=str(refused), failed=True)
        return Outcome(text=f"Scheduled: {_line(job)}")


class CronList:
    """Lists schedules."""

    name = "cron_list"
    description = "List your schedules and wakeups, the next first."
    touches: Touches = "nothing"
    takes = NoArguments

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def run(self, given: NoArguments, place: Place) -> Outcome:
        """One line each."""
        return Outcome(text="\n".join(map(_line, self._schedules.listed())) or "Nothing is scheduled.")


class CronDelete:
    """Deletes a schedule."""

    name = "cron_delete"
    description = "Delete a schedule or a wakeup."
    touches: Touches = "nothing"
    takes = JobArguments

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def run(self, given: JobArguments, place: Place) -> Outcome:
        """That it is gone."""
        try:
            self._schedules.delete(given.id)
        except StopwardenError as refused:
            return Outcome(text=str(refused), failed=True)
        return Outcome(text=f"{given.id} was deleted.")


class Wakeup:
    """Wakes the session once."""

    name = "wakeup"
    description = (
        f"Be woken once, {WAKEUP_MIN} to {WAKEUP_MAX} seconds from now, with a prompt of yours. For waiting on "
        "something outside; then end your turn."
    )
    touches: Touches = "nothing"
    takes = WakeupArguments

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    async def run(self, given: WakeupArguments, place: Place) -> Outcome:
        """Its id and its time."""
        try:
            job = self._schedules.wakeup(given.seconds, given.prompt)
        except StopwardenError as refused:
            return Outcome(text=str(refused), failed=True)
        return Outcome(text=f"You will be woken: {_line(job)}")


def _line(job: Job) -> str:
    at = datetime.fromtimestamp(job.due).astimezone().isoformat(" ", "minutes")
    how = job.text or "once"
    return f"{job.id} ({job.kind}, {how}), next at {at}: {' '.join(job.prompt.split())[:100]}"
