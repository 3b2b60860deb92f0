"""The scripted agents of the real nights: each is a function of what the model was last told.

They act as an agent would that believes what it reads: take the item that the reason names, tick
it, say something, stop. None of them knows the list; only the reasons tell them what is next.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stopwarden.sim.scripted_model import Reply, Tool
from tests.real_host.harness import REASON, parts, soon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stopwarden.sim.scripted_model import Request

    Step = Reply | str | Callable[[], Reply]

NAMED = re.compile(r'Go on: item .*?"(?P<title>[^"]+)" \(quoted from the list\)')
TASK_NOTIFICATION = "<task-notification>"


def bash(command: str) -> Tool:
    return Tool("Bash", {"command": command, "description": "one step of the work"})


def tick(title: str, path: str = "TODO.md") -> Tool:
    """Ticks one item of the list, as an agent does with its own tools."""
    return bash(f"sed -i 's/- \\[[ /]\\] {title}/- [x] {title}/' {path}")


def cron(schedule: str, prompt: str, *, recurring: bool) -> Tool:
    return Tool("CronCreate", {"cron": schedule, "prompt": prompt, "recurring": recurring})


def look_soon(prompt: str) -> Reply:
    """Schedules a wake that fires once, some half to three minutes from when this is called."""
    return Reply(text="Next.", tools=(cron(soon(), prompt, recurring=False),))


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


def named_item(text: str) -> str:
    """The title of the item that a blocked stop's reason names, or ""."""
    found = NAMED.search(text.partition(REASON)[2])
    return found["title"] if found else ""


class Worker:
    """Answers prompts and reasons from two tables of steps; each step is used once, in turn.

    `prompts` maps words of a prompt to the replies that follow it (the latest prompt counts);
    `items` maps an item's title to the replies that follow each time the item is named. After a
    tool's result comes the next reply of the row that is going on, and when that is used up, the
    words "That is all for now." end the turn. An item without a row is ticked at once. An error is
    answered until another prompt comes, however often the program tries. A step that is called
    makes its reply when it is due.
    """

    def __init__(
        self,
        prompts: dict[str, Iterable[Step]] | None = None,
        items: dict[str, Iterable[Step]] | None = None,
    ) -> None:
        self._prompts = {words: list(row) for words, row in (prompts or {}).items()}
        self._items = {title: list(row) for title, row in (items or {}).items()}
        self._row: list[Step] = []

    def __call__(self, request: Request) -> Reply:
        if not request.tools:
            return Reply(text="ok")  # titles and the like, not the conversation
        self._row = self._row_for(request)
        if not self._row:
            return Reply(text="That is all for now.")
        step = self._row[0]
        reply = Reply.of(step() if callable(step) else step)
        if not reply.status:
            self._row.pop(0)
        return reply

    def _row_for(self, request: Request) -> list[Step]:
        """By the latest thing that was said: a reason, a prompt, or a tool's result, after which the row goes on."""
        for part in reversed(parts(request)):
            if part.is_result:
                return self._row
            title = named_item(part.text)
            if title:
                return self._items.setdefault(title, [Reply(text="Doing it.", tools=(tick(title),))])
            for words, row in self._prompts.items():
                if words in part.text:
                    return row
        return []


def steps(*parts: Tool | Step) -> list[Step]:
    """One reply a tool call; words, replies and what makes them as they are."""
    return [Reply(text="Next.", tools=(part,)) if isinstance(part, Tool) else part for part in parts]


def always(reply: Callable[[Request], Reply | str]) -> Callable[[Request], Reply]:
    """An agent that answers every request of the conversation by one rule."""

    def answer(request: Request) -> Reply:
        return Reply.of(reply(request)) if request.tools else Reply(text="ok")

    return answer
