"""A session as lines on a terminal: what it says, what it does, and what the guard decides.

May not live here: reading the keys; any state of the session.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from stopwarden.core.todo_envelope import TODO_TOOL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from stopwarden.session.ports import Told

MARKS = {"completed": "[green]x[/]", "in_progress": "[yellow]/[/]", "pending": " "}
SHOWN_LINES = 8
ENDS = {
    "done": "",
    "yielded": "",
    "cancelled": "cancelled",
    "exhausted": "The todo list is not finished, and it was continued as often as it may be.",
    "deferred": "It waits for background work and goes on by itself then.",
    "plan_mode": "",
    "suspended": "",
    "max_tokens": "The conversation does not fit the model any more.",
    "loop_detected": "It repeated itself and was stopped.",
}


class Screen:
    """Shows one session; it is the session's `Watcher`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._open = False  # a line of words is not ended yet

    def __call__(self, told: Told) -> None:
        """See `ports.Watcher`."""
        show = SHOWS.get(told.kind)
        if show is not None:
            show(self, told)

    def note(self, text: str, style: str = "dim") -> None:
        """A line of ours."""
        self._end_line()
        self._console.print(f"[{style}]{escape(text)}[/]", highlight=False)

    def _end_line(self) -> None:
        if self._open:
            self._console.print()
            self._open = False

    def _words(self, told: Told) -> None:
        self._console.print(escape(told.text), end="", highlight=False, soft_wrap=True)
        self._open = not told.text.endswith("\n")

    def _call(self, told: Told) -> None:
        self._end_line()
        tool = str(told.detail["tool"])
        if tool != TODO_TOOL:
            self._console.print(f"[bold]{escape(tool)}[/] [dim]{escape(_brief(told.text))}[/]", highlight=False)

    def _result(self, told: Told) -> None:
        if told.detail["tool"] == TODO_TOOL and not told.detail["failed"]:
            return  # the plan is shown
        lines = told.text.splitlines() or [""]
        style = "red" if told.detail["failed"] else "dim"
        for line in lines[:SHOWN_LINES]:
            self._console.print(f"  [{style}]{escape(line[:200])}[/]", highlight=False, soft_wrap=True)
        if len(lines) > SHOWN_LINES:
            self._console.print(f"  [dim]... {len(lines) - SHOWN_LINES} more lines[/]", highlight=False)

    def _plan(self, told: Told) -> None:
        for item in told.detail["todos"]:
            mark = MARKS[item["status"]]
            self._console.print(f"  \\[{mark}] {escape(item['content'])}", highlight=False)

    def _attempt(self, told: Told) -> None:
        left, attempt, cap = (told.detail[name] for name in ("unfinished", "attempt", "cap"))
        self.note(f"Todo guard: {left} not finished, going on ({attempt} of {cap})", "yellow")

    def _guard_deferred(self, told: Told) -> None:
        self.note("Todo guard: waiting for background work", "yellow")

    def _background(self, told: Told) -> None:
        self.note(f"Background: {told.text}")

    def _hook_block(self, told: Told) -> None:
        self.note(f"Stop hook: {told.detail['reason']}", "yellow")

    def _turn_ended(self, told: Told) -> None:
        self._end_line()
        kind = str(told.detail["kind"])
        if kind == "error":
            self.note(f"The model could not be asked: {told.text}", "red")
        elif said := ENDS.get(kind, kind):
            self.note(said)


SHOWS: Mapping[str, Callable[[Screen, Told], None]] = {
    "words": Screen._words,
    "call": Screen._call,
    "result": Screen._result,
    "plan": Screen._plan,
    "AttemptCounted": Screen._attempt,
    "guard_deferred": Screen._guard_deferred,
    "hook_block": Screen._hook_block,
    "background": Screen._background,
    "turn_ended": Screen._turn_ended,
}


def _brief(arguments: str) -> str:
    """The arguments of a call on one line."""
    try:
        given: Mapping[str, Any] = json.loads(arguments)
        first = next((str(given[name]) for name in ("command", "path", "pattern", "question") if name in given), "")
    except (ValueError, TypeError, AttributeError):
        return arguments[:120]
    return " ".join((first or arguments).split())[:120]
