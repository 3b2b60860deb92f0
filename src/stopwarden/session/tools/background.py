"""Tools for work in the background: what runs, what it put out, its end, and commands whose lines are told.

May not live here: the work itself (`session/tasks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from stopwarden.core.errors import RefusedError
from stopwarden.session.tools.contract import Arguments, Outcome, Touches, shortened

if TYPE_CHECKING:
    from stopwarden.session.tools.contract import Place


class NoArguments(Arguments):
    """None."""


class TaskArguments(Arguments):
    """A task."""

    task: str = Field(min_length=1, max_length=100)


class MonitorArguments(Arguments):
    """A command whose lines are of interest while it runs."""

    command: str = Field(min_length=1)


class TaskList:
    """What runs."""

    name = "task_list"
    description = "List what runs in the background."
    touches: Touches = "nothing"
    takes = NoArguments

    async def run(self, given: NoArguments, place: Place) -> Outcome:
        """One line a task."""
        lines = [f"{task.id} ({task.kind}, {task.state}): {about[:200]}" for task, about in place.background.listed()]
        return Outcome(text="\n".join(lines) or "Nothing runs in the background.")


class TaskOutput:
    """What a task put out."""

    name = "task_output"
    description = "Read what a background task has put out, while it runs or after it has ended."
    touches: Touches = "nothing"
    takes = TaskArguments

    async def run(self, given: TaskArguments, place: Place) -> Outcome:
        """The head and the tail of it."""
        try:
            return Outcome(text=shortened(place.background.output(given.task)) or "[no output yet]")
        except RefusedError as refused:
            return Outcome(text=str(refused), failed=True)


class TaskStop:
    """Ends a task."""

    name = "task_stop"
    description = "End a background task and everything it started."
    touches: Touches = "nothing"
    takes = TaskArguments

    async def run(self, given: TaskArguments, place: Place) -> Outcome:
        """When it has ended."""
        try:
            await place.background.stop(given.task)
        except RefusedError as refused:
            return Outcome(text=str(refused), failed=True)
        return Outcome(text=f"{given.task} was ended.")


class Monitor:
    """A command whose lines are told."""

    name = "monitor"
    description = (
        "Run a command in the background and be told what it prints while it runs, some seconds apart. "
        "For watching a log, a build, a file. You are woken for it; do not wait."
    )
    touches: Touches = "runs"
    takes = MonitorArguments

    async def run(self, given: MonitorArguments, place: Place) -> Outcome:
        """The task's id."""
        return await begun(place, given.command, "monitor")


async def begun(place: Place, command: str, kind: str) -> Outcome:
    """A command in the background, and its id in words."""
    try:
        task = await place.background.command(command, place.cwd, kind)
    except RefusedError as refused:
        return Outcome(text=str(refused), failed=True)
    except OSError as failed:
        return Outcome(text=f"The command could not be started: {failed.strerror}.", failed=True)
    return Outcome(text=f"Runs in the background as {task}. You are told when it ends; go on with other work.")
