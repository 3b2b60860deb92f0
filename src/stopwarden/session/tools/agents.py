"""Tools for sub-agents: one that works on a task, and words to one.

May not live here: the children (`session/agents`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from stopwarden.core.errors import RefusedError
from stopwarden.session.tools.contract import Arguments, Outcome, Touches, shortened

if TYPE_CHECKING:
    from stopwarden.session.agents import Agents
    from stopwarden.session.tools.contract import Place


class AgentArguments(Arguments):
    """A task for a sub-agent."""

    prompt: str = Field(min_length=1)
    background: bool = False


class MessageArguments(Arguments):
    """Words to a sub-agent."""

    task_id: str = Field(min_length=1, max_length=100)
    text: str = Field(min_length=1)


class Agent:
    """Gives a task to a sub-agent."""

    name = "agent"
    description = (
        "Give a task to a sub-agent with a conversation of its own; it knows only what you tell it. Its last reply "
        "is the result. With background you go on meanwhile and are told when it ends."
    )
    touches: Touches = "nothing"  # what it does asks for itself
    takes = AgentArguments

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    async def run(self, given: AgentArguments, place: Place) -> Outcome:
        """Its last reply, or its id."""
        try:
            id, reply = await self._agents.begin(given.prompt, background=given.background)
        except RefusedError as refused:
            return Outcome(text=str(refused), failed=True)
        if given.background:
            return Outcome(text=f"Works in the background as {id}. You are told when it ends; go on with other work.")
        return Outcome(text=f"{id} says:\n{shortened(reply)}")


class SendMessage:
    """Says something to a sub-agent."""

    name = "send_message"
    description = "Say something to a sub-agent: one that works hears it at its next step, one that has ended goes on."
    touches: Touches = "nothing"
    takes = MessageArguments

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    async def run(self, given: MessageArguments, place: Place) -> Outcome:
        """Whether it works already or goes on now."""
        try:
            works = self._agents.send(given.task_id, given.text)
        except RefusedError as refused:
            return Outcome(text=str(refused), failed=True)
        return Outcome(text=f"{given.task_id} {'hears it at its next step' if works else 'goes on with it'}.")
