"""The todo list: the one tool whose structured result the guard trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from stopwarden.core.bounds import TODO_ID_MAX, TODOS_MAX
from stopwarden.core.todo_envelope import TODO_TOOL
from stopwarden.session.tools.contract import Arguments, Outcome, Touches

if TYPE_CHECKING:
    from stopwarden.session.tools.contract import Place


class Item(Arguments):
    """One item."""

    id: str = Field(min_length=1, max_length=TODO_ID_MAX, description="Stays the same from one writing to the next")
    content: str = Field(description="What is to be done, in one sentence")
    status: Literal["pending", "in_progress", "completed"]


class TodoArguments(Arguments):
    """The whole list, each time."""

    todos: tuple[Item, ...] = Field(max_length=TODOS_MAX)

    @model_validator(mode="after")
    def ids_are_told_apart(self) -> TodoArguments:
        """Two items under one id could not be told apart."""
        ids = [item.id for item in self.todos]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        if twice:
            raise ValueError(f"the ids {', '.join(twice)} stand twice in the list")
        return self


class Todo:
    """Writes the session's todo list."""

    name = TODO_TOOL
    description = (
        "Write down the steps of work that has more than one, and keep them true: the whole list each time, one item "
        "in_progress, completed as soon as it is done. The person sees it."
    )
    touches: Touches = "nothing"
    takes = TodoArguments

    async def run(self, given: TodoArguments, place: Place) -> Outcome:
        """The list, as it stands now."""
        items = [item.model_dump() for item in given.todos]
        left = sum(item["status"] != "completed" for item in items)
        return Outcome(
            text=f"{len(items)} on the list, {left} not finished.", display={"type": "todo_list", "todos": items}
        )
