"""The person of a guard simulation: one human being at two clients, who may be impatient in every way.

Prompts, words in the middle of a turn, second thoughts, cancels through the bridge and at the session
itself, plan mode, the guard's switch, rewinding, and moving the session to another directory. Each method
is one move; whether it is possible now, and how likely, stands in `guard_world`.
May not live here: what comes of it.
"""

from __future__ import annotations

from stopwarden.core import backlog_events as waits
from stopwarden.core import door_events as asks
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.queue_move import live_queued
from stopwarden.sim.guard_wire import CLIENTS, SESSION
from stopwarden.sim.guard_work import Work


class Person(Work):
    """One history's person."""

    def ask(self, kind: type[q.Request], **fields: object) -> None:
        """A client's call."""
        client = CLIENTS[self.choices.below(2)]
        if client not in self.queue.clients:
            client = CLIENTS[0]
        self.owner(kind(at=0, request=self.name("ask"), session=SESSION, client=client, **fields))

    def prompt(self) -> None:
        """The person writes a prompt, now and then a retry or with a deadline."""
        self.prompts += 1
        asks = ("", "", "", "retry", "continue")[self.choices.below(5)] if not self.healed else ""
        deadline = 30_000 if not self.healed and self.choices.one_in(8) else None
        self.ask(q.Admit, prompt=f"P{self.prompts}", asks=asks, deadline=deadline)

    def message(self) -> None:
        """The person says something in the middle of a turn."""
        name = self.name("m")
        files = ("picture",) if self.choices.one_in(2) else ()
        self.ask(q.PostMessage, message=name, text="also", attachments=files)

    def remove_prompt(self) -> None:
        """The person takes a prompt out of the queue."""
        entries = live_queued(self.queue)
        self.ask(q.RemovePrompt, prompt=entries[self.choices.below(len(entries))].prompt)

    def remove_message(self) -> None:
        """The person takes a message back."""
        self.ask(q.RemoveMessage, message=self.queue.messages[0].message)

    def cancel(self) -> None:
        """The person cancels what runs, through the bridge."""
        self.ask(q.CancelRunning)

    def cancel_here(self) -> None:
        """The person cancels at the session itself."""
        self.feed(ev.Cancelled())

    def change_mode(self) -> None:
        """The person enters or leaves plan mode."""
        self.feed(ev.ModeChanged(plan=not self.state.chain.plan))

    def set_switch(self) -> None:
        """The person turns the guard off, lets it observe, or on again."""
        on = self.state.chain.guard.switch == "on"
        self.feed(ev.SwitchSet(switch=("observe", "off")[self.choices.below(2)] if on else "on"))

    def set_budget(self) -> None:
        """The person gives the guard less, or more again."""
        pick = self.choices.below(3)
        self.feed(ev.BudgetSet(attempts=(1, 2, None)[pick], tokens=(0, 0, 25)[pick]))

    def look(self) -> None:
        """A client comes and looks, or goes."""
        if CLIENTS[1] in self.queue.clients:
            self.owner(q.ClientLeft(at=0, client=CLIENTS[1]))
        else:
            self.owner(q.ClientJoined(at=0, client=CLIENTS[1]))
            self.ask(q.ListPending)
            self.feed(waits.PersonLooks())

    def withdraw(self) -> None:
        """The caller of a prompt that waits for an older turn goes away."""
        assert self.state.next is not None
        self.feed(ev.PromptWithdrawn(prompt=self.state.next.id))

    def rewind(self) -> None:
        """Between turns, history is taken back."""
        self.feed(ev.Rewound())

    def clear(self) -> None:
        """Between turns, the conversation is emptied."""
        self.feed(waits.Cleared())

    def gate(self) -> None:
        """Somebody outside closes the session, may wait until all rests, and opens it again."""
        door = self.state.door
        if not self.state.chain.closing:
            self.feed(ev.GateTaken())
        elif not door.settling and self.choices.one_in(2):
            self.feed(asks.SettleAsked())
        else:
            self.feed(ev.GateReleased())

    def move(self) -> None:
        """The person moves the session to another directory."""
        self.feed(asks.MoveAsked(move=self.name("move"), path="elsewhere"))
