"""Which result of a tool is a todo list that may arm the guard.

Only one thing is trusted: a successful result of the agent's own todo tool, in this chain, whose
display value is the structured envelope

    {"type": "todo_list", "todos": [{"id": …, "content": …, "status": …}, …]}

with `status` one of `pending`, `in_progress`, `completed`. What a model merely *says* (arguments,
text, a JSON string), what another tool of the same name answers, a sub-agent's list, replayed
history: none of it. One bad item makes the whole list untrusted, because a list that is half read
could be taken for a finished one. Extra keys are passed over, so that a newer agent is still read.

An untrusted result is no error: it is `None`, and the guard stays as it was.
"""

from __future__ import annotations

from stopwarden.core.bounds import TODO_ID_MAX, TODOS_MAX
from stopwarden.core.record import Record

TODO_TOOL = "todo_write"
STATUSES = ("pending", "in_progress", "completed")


class Todo(Record):
    """One item of a trusted list. `content` is untrusted text, without lone surrogates."""

    id: str
    content: str
    status: str


class TodoList(Record):
    """A trusted list, in its order."""

    items: tuple[Todo, ...] = ()

    @property
    def unfinished(self) -> int:
        """How many items are pending or in progress."""
        return sum(item.status != "completed" for item in self.items)


class ToolResult(Record):
    """What is known of a tool's result when its status has been worked out, before any hook sees it."""

    tool: str
    display: object
    built_in: bool = True  # the agent's own tool of that name, not one discovered or served by MCP
    kind: str = "think"
    succeeded: bool = True
    by_subagent: bool = False
    replayed: bool = False  # comes from restored history, or repeats a call already answered


def trusted_todos(result: ToolResult) -> TodoList | None:
    """The list of a result that may arm the guard; None for every other result."""
    own = result.tool == TODO_TOOL and result.built_in and result.kind == "think"
    if not own or not result.succeeded or result.by_subagent or result.replayed:
        return None
    return read_envelope(result.display)


def read_envelope(display: object) -> TodoList | None:
    """The list in a structured envelope; None if anything in it is not as it must be."""
    if not isinstance(display, dict) or display.get("type") != "todo_list":
        return None
    todos = display.get("todos")
    if not isinstance(todos, list) or len(todos) > TODOS_MAX:
        return None
    items = [item for item in map(_read_item, todos) if item is not None]
    if len(items) != len(todos) or len({item.id for item in items}) != len(items):
        return None
    return TodoList(items=tuple(items))


def _read_item(value: object) -> Todo | None:
    if not isinstance(value, dict):
        return None
    name, content, status = value.get("id"), value.get("content"), value.get("status")
    if not isinstance(name, str) or not isinstance(content, str) or not isinstance(status, str):
        return None
    # An id is written down and compared: it must be one that can be encoded.
    if not 0 < len(name) <= TODO_ID_MAX or status not in STATUSES or _has_lone_surrogate(name):
        return None
    if _has_lone_surrogate(content):
        content = content.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return Todo(id=name, content=content, status=status)


def _has_lone_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)
