"""What a tool is: a name, the arguments it takes, what it may touch, and one coroutine.

Arguments are pydantic models: the schema that the model is shown and the check of what it wrote are
one thing. A tool answers with an `Outcome`, also when it fails; it raises nothing but for our faults.
May not live here: permissions and hooks (`box`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from stopwarden.core.errors import RefusedError
from stopwarden.core.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.lineage import Task
    from stopwarden.core.todo_envelope import TodoList

# What a call may touch; a permission mode says for each whether the person is asked.
Touches = Literal["nothing", "reads", "edits", "runs", "person"]

OUTPUT_MAX = 30_000  # characters of an outcome that go to the model


class Arguments(BaseModel):
    """Base of all arguments. What a tool does not know is refused, so a slip of the model is seen at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Outcome(Record):
    """What a call came to. `display` is for programs: the todo list's envelope, a file's path."""

    text: str
    failed: bool = False
    display: object = None


class BackgroundWork(Protocol):
    """The background work of a session (`session.tasks.Background`)."""

    async def command(self, command: str, cwd: str, kind: Any = "shell") -> str:
        """Start a command; answers its task. Raises RefusedError and OSError."""
        ...

    def listed(self) -> list[tuple[Task, str]]:
        """What runs, and what each is about."""
        ...

    def output(self, task: str) -> str:
        """What a task has put out. Raises RefusedError."""
        ...

    async def stop(self, task: str) -> None:
        """End a task. Raises RefusedError."""
        ...


class Place:
    """Where a session works. `todos` tells the turn of a trusted list."""

    def __init__(
        self,
        cwd: str,
        todos: Callable[[str, TodoList | None], None] = lambda turn, todos: None,
        background: BackgroundWork | None = None,
    ) -> None:
        self.cwd = cwd
        self.todos = todos
        self._background = background

    @property
    def background(self) -> BackgroundWork:
        """The session's background work. Raises RefusedError in a place without."""
        if self._background is None:
            raise RefusedError(
                "A sub-agent has no background work", kept="Nothing was started", do="Run it in the foreground"
            )
        return self._background


class Tool(Protocol):
    """One tool."""

    @property
    def name(self) -> str:
        """What the model calls it."""
        ...

    @property
    def description(self) -> str:
        """What the model is told of it."""
        ...

    @property
    def touches(self) -> Touches:
        """What a call may touch."""
        ...

    @property
    def takes(self) -> type[Arguments]:
        """The arguments."""
        ...

    async def run(self, given: Any, place: Place) -> Outcome:
        """`given` is an instance of `takes`. Cancelled: what it started is ended."""
        ...


def shortened(text: str, limit: int = OUTPUT_MAX) -> str:
    """The head and the tail of a text that is too long for the model, with how much is left out between them."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[-limit // 3 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[... {left_out} characters left out ...]\n{tail}"


def plain(data: bytes) -> str:
    """Bytes of any program as text a model can be sent: no invalid UTF-8, no control characters but tab and newline."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return "".join(char if char >= " " or char in "\n\t" else "\ufffd" for char in text)
