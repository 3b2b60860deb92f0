"""The closed set of errors that Stopwarden raises.

Each says three things: what happened, what was kept, and what to do. `str(error)` is those three
as one line that can be shown to a person as it stands. Nothing outside this module defines an
exception class, so a caller can handle every failure of ours by name.
"""

from __future__ import annotations


class StopwardenError(Exception):
    """Any failure of ours. `exit_code` is what a command that meets it ends with."""

    exit_code = 4

    def __init__(self, happened: str, *, kept: str = "", do: str = "") -> None:
        self.happened, self.kept, self.do = happened, kept, do
        super().__init__(". ".join(part.rstrip(".") for part in (happened, kept, do) if part) + ".")


class UsageError(StopwardenError):
    """A command was given words it does not take; nothing was done."""

    exit_code = 2


class RefusedError(StopwardenError):
    """A rule refuses the act (for instance `back` inside an agent's environment); nothing was done."""

    exit_code = 2


class HeldError(StopwardenError):
    """Another session, or the person, holds the item; nothing was done. Take other work, do not retry in a loop."""

    exit_code = 3


class SettingError(StopwardenError):
    """A setting is unknown, of the wrong type or outside its range; the old value holds."""

    exit_code = 2


class ScheduleError(StopwardenError):
    """A five-field expression does not parse; such a wake never qualifies."""

    exit_code = 2


class ListError(StopwardenError):
    """A list of work cannot be read or edited; what it held is unknown, never empty."""


class HostError(StopwardenError):
    """A payload or a settings file of an agent program cannot be understood; it was left as it is."""


class StorePlaceError(StopwardenError):
    """The state directory is refused: a symbolic link, another owner, or a network file system."""


class StoreBusyError(StopwardenError):
    """The database stayed locked past the deadline; nothing was written."""


class StoreCorruptError(StopwardenError):
    """The database cannot be read; it was set aside, and a new one is begun at the next command."""


class StoreUnwritableError(StopwardenError):
    """The database cannot be written (full or read-only disk); nothing was written."""


class StoreNewerError(StopwardenError):
    """The database was written by a newer Stopwarden; nothing in it was read or changed."""


class StaleVerdictError(StopwardenError):
    """The verdict was reached on a state that has changed since; judge again."""


class IllegalEventError(StopwardenError):
    """An event came to a machine that cannot take it in its state; the state is as it was."""


class DeadlineError(StopwardenError):
    """Our own time to answer ran out."""


class ModelRefusedError(StopwardenError):
    """A provider did not begin an answer; the request is not in history and costs no attempt.

    `why` is rate_limit, overloaded, too_long, access, network, request or error; `retry_after` is in
    seconds, None where the provider does not say.
    """

    def __init__(self, happened: str, *, why: str = "error", retry_after: float | None = None, do: str = "") -> None:
        super().__init__(happened, kept="Nothing was added to the conversation", do=do)
        self.why, self.retry_after = why, retry_after


class ModelBrokenError(StopwardenError):
    """An answer that had begun ended early; what was sent stays in history."""


class ScriptError(StopwardenError):
    """A script for the offline model cannot be read or has words it does not know; nothing was run."""

    exit_code = 2
