"""The scripted agents of the real nights: each is a function of what the model was last told.

They act as an agent would that believes what it reads: take the item that the reason names, tick
it, say something, stop. None of them knows the list; only the reasons tell them what is next.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stopwarden.sim.scripted_model import Reply, Tool
from tests.real_host.harness import REASON, after_a_tool, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stopwarden.sim.scripted_model import Request

NAMED = re.compile(r'Go on: item .*?"(?P<title>[^"]+)" \(quoted from the list\)')
TASK_NOTIFICATION = "<task-notification>"


def bash(command: str) -> Tool:
    return Tool("Bash", {"command": command, "description": "one step of the work"})


def tick(title: str) -> Tool:
    """Ticks one item of TODO.md, as an agent does with its own tools."""
    return bash(f"sed -i 's/- \\[[ /]\\] {title}/- [x] {title}/' TODO.md")


def cron(schedule: str, prompt: str, *, recurring: bool) -> Tool:
    return Tool("CronCreate", {"cron": schedule, "prompt": prompt, "recurring": recurring})


def wakeup(seconds: int, prompt: str) -> Tool:
    return Tool("ScheduleWakeup", {"delaySeconds": seconds, "reason": "waiting for the build", "prompt": prompt})


def ask_about(question: str) -> Tool:
    """A question to the person with two options, as the host's question tool takes it."""
    options = [
        {"label": "Keep it", "description": "can be undone"},
        {"label": "Drop it", "description": "cannot be undone"},
    ]
    asked = {"question": question, "header": "Column", "multiSelect": False, "options": options}
    return Tool("AskUserQuestion", {"questions": [asked]})


def named_item(request: Request) -> str:
    """The title of the item that a blocked stop's reason names, or ""."""
    for text in reversed(told(request)):
        found = NAMED.search(text.partition(REASON)[2])
        if found:
            return found["title"]
    return ""


class Worker:
    """Answers prompts and reasons from two tables of steps; each step is used once, in turn.

    `prompts` maps words of a prompt to the replies that follow it; `items` maps an item's title to
    the replies that follow each time the item is named. After a tool's result comes the next reply
    of the row that is going on, and when that is used up, the words "That is all for now." end the
    turn. An item without a row is ticked at once.
    """

    def __init__(
        self,
        prompts: dict[str, Iterable[Reply | str]] | None = None,
        items: dict[str, Iterable[Reply | str]] | None = None,
    ) -> None:
        self._prompts = {words: list(row) for words, row in (prompts or {}).items()}
        self._items = {title: list(row) for title, row in (items or {}).items()}
        self._row: list[Reply | str] = []

    def __call__(self, request: Request) -> Reply:
        if not request.tools:
            return Reply(text="ok")  # titles and summaries, not the conversation
        if not after_a_tool(request):
            self._row = self._next_row(request)
        step = self._row.pop(0) if self._row else "That is all for now."
        return Reply.of(step)

    def _next_row(self, request: Request) -> list[Reply | str]:
        title = named_item(request)
        if title:
            return self._items.setdefault(title, [Reply(text="Doing it.", tools=(tick(title),))])
        news = told(request)
        return next((row for words, row in self._prompts.items() if any(words in text for text in news)), [])


def steps(*parts: Tool | Reply | str) -> list[Reply | str]:
    """One reply a tool call, words and replies as they are."""
    return [Reply(text="Next.", tools=(part,)) if isinstance(part, Tool) else part for part in parts]


def always(reply: Callable[[Request], Reply | str]) -> Callable[[Request], Reply]:
    """An agent that answers every request of the conversation by one rule."""

    def answer(request: Request) -> Reply:
        return Reply.of(reply(request)) if request.tools else Reply(text="ok")

    return answer
