"""A batch of tool calls from the model's words to their results.

For each call in order: its arguments are read (broken JSON, unknown tools and wrong fields are answered,
not raised), the person's permission is asked where the mode says so, the tool runs, and a trusted todo
list is told to the turn before anybody else sees the result. A batch that is cut short still answers
every call, because a provider takes no call without a result.

May not live here: what a tool does; who is asked for permission.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from stopwarden.core.todo_envelope import TODO_TOOL, ToolResult, trusted_todos
from stopwarden.models.port import Result, ToolSpec
from stopwarden.session.ports import Batch, Told
from stopwarden.session.tools.contract import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stopwarden.models.port import Call
    from stopwarden.session.ports import Watcher
    from stopwarden.session.tools.contract import Arguments, Place, Tool

CUT = "Cut short before it was done."


class Permission(Protocol):
    """Whoever may say no."""

    async def __call__(self, tool: Tool, call: Call, given: Arguments) -> str:
        """Empty: go ahead. Else why not, in words for the model. Doubt, silence and a lost client are a no."""
        ...


class Box:
    """The tools of one session."""

    def __init__(self, tools: Sequence[Tool], place: Place, permission: Permission, watcher: Watcher) -> None:
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        self._place, self._permission, self._watcher = place, permission, watcher

    def specs(self) -> Sequence[ToolSpec]:
        """See `ports.ToolBox`."""
        return [
            ToolSpec(name=tool.name, description=tool.description, schema=tool.takes.model_json_schema())
            for tool in self._tools.values()
        ]

    async def run(self, turn: str, calls: Sequence[Call]) -> Batch:
        """See `ports.ToolBox`."""
        results: list[Result] = []
        try:
            for call in calls:
                results.append(await self._one(turn, call))
        except asyncio.CancelledError:
            results += [_result(call, Outcome(text=CUT, failed=True)) for call in calls[len(results) :]]
        return Batch(results=tuple(results))

    async def _one(self, turn: str, call: Call) -> Result:
        tool = self._tools.get(call.name)
        self._watcher(Told(kind="call", turn=turn, text=call.arguments, detail={"tool": call.name, "call": call.id}))
        outcome = await self._outcome(tool, call)
        if tool is not None and tool.name == TODO_TOOL:
            known = ToolResult(tool=tool.name, display=outcome.display, succeeded=not outcome.failed)
            self._place.todos(turn, trusted_todos(known))
        shown: dict[str, Any] = {
            "tool": call.name,
            "call": call.id,
            "failed": outcome.failed,
            "display": outcome.display,
        }
        self._watcher(Told(kind="result", turn=turn, text=outcome.text, detail=shown))
        return _result(call, outcome)

    async def _outcome(self, tool: Tool | None, call: Call) -> Outcome:
        if tool is None:
            return Outcome(text=f"There is no tool {call.name}. There are: {', '.join(self._tools)}.", failed=True)
        try:
            given = tool.takes.model_validate_json(call.arguments or "{}")
        except ValidationError as wrong:
            return Outcome(text=_what_is_wrong(tool, wrong), failed=True)
        denied = await self._permission(tool, call, given)
        if denied:
            return Outcome(text=denied, failed=True)
        return await tool.run(given, self._place)


def _result(call: Call, outcome: Outcome) -> Result:
    return Result(call=call.id, name=call.name, text=outcome.text, failed=outcome.failed)


def _what_is_wrong(tool: Tool, wrong: ValidationError) -> str:
    """For the model: which field, why, and what the tool takes."""
    said = "; ".join(
        f"{'.'.join(str(step) for step in error['loc']) or 'the arguments'}: {error['msg']}"
        for error in wrong.errors()[:5]
    )
    takes = json.dumps(tool.takes.model_json_schema().get("properties", {}))[:2_000]
    return f"{tool.name} was not run: {said}. It takes {takes}."
