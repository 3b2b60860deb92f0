"""One step of the bridge's queue while it is being made, and the questions every rule asks of a queue.

A step begins with a state and ends with another and the effects, in order; in between the rules
share one `Move`. Nothing keeps a Move after its step, so `core/queue.py` stays pure.
May not live here: any rule.
"""

from __future__ import annotations

from stopwarden.core.errors import IllegalEventError
from stopwarden.core.queue_words import Effect, Emit, Entry, Queue, StartTimer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from stopwarden.core.queue_words import Told

    Expected = Literal["run", "forward", "release", "resolve", "timer"]


class Move:
    """The state so far and the effects so far.

    `state` is a draft: a copy of the queue that this step alone writes on, and that nobody else sees
    before `done`. A new copy a change would be most of what a step costs.
    """

    def __init__(self, state: Queue) -> None:
        self.state = state.draft()
        self.effects: list[Effect] = []
        self.next_effect = state.next_effect

    def set(self, **changes: Any) -> None:
        """Change fields of the state."""
        state = self.state
        for field, value in changes.items():
            setattr(state, field, value)

    def do(self, kind: type[Effect], **fields: Any) -> int:
        """Add an effect and answer its new id."""
        number = self.next_effect
        self.effects.append(kind(id=number, **fields))
        self.next_effect += 1
        return number

    def done(self) -> tuple[Queue, tuple[Effect, ...]]:
        """The end of the step."""
        self.set(next_effect=self.next_effect)
        return self.state.sealed(), tuple(self.effects)

    def tell(self, told: Told, **fields: Any) -> None:
        """Publish an event of the session."""
        self.do(Emit, told=told, **fields)

    def timer(self, after: int) -> int:
        """Start a timer of so many milliseconds and answer its id."""
        return self.do(StartTimer, after=after)

    def change(self, prompt: str, **changes: Any) -> Entry:
        """Change fields of one entry and answer it."""
        changed = entry_of(self.state, prompt).replace(**changes)
        self.set(entries=tuple(changed if one.prompt == prompt else one for one in self.state.entries))
        return changed


def entry_of(state: Queue, prompt: str) -> Entry:
    """The entry of a prompt that is known to be there."""
    return next(one for one in state.entries if one.prompt == prompt)


def find_entry(state: Queue, prompt: str) -> Entry | None:
    """The entry of a prompt, if it is there."""
    return next((one for one in state.entries if one.prompt == prompt), None)


def running(state: Queue) -> Entry | None:
    """The entry whose turn the child has, live or not."""
    head = state.entries[0] if state.entries else None
    return head if head is not None and head.state != "queued" else None


def live_queued(state: Queue) -> tuple[Entry, ...]:
    """The queued prompts that a chain has to give way to, in order (G143)."""
    return tuple(one for one in state.entries if one.state == "queued" and one.live)


def owner_now(state: Queue) -> str | None:
    """Whose turn it is: the live running prompt, or else the background turn."""
    now = running(state)
    if now is not None:
        return now.prompt if now.live else None
    return state.turn


def is_owner(state: Queue, owner: str) -> bool:
    """Whether this id is the live running prompt's or the background turn's."""
    now = running(state)
    return owner == state.turn or (now is not None and now.live and now.prompt == owner)


def awaited(state: Queue) -> dict[int, Expected]:
    """Every effect that still expects a reply, and of which kind."""
    found: dict[int, Expected] = {}
    for one in state.entries:
        if one.run is not None:
            found[one.run] = "run"
        if one.deadline is not None:
            found[one.deadline] = "timer"
    for forward in state.forwards:
        found[forward.timer] = "timer"
        if not forward.answered:
            found[forward.id] = "forward"
    found.update((number, "release") for number, _ in state.releases)
    if state.drain is not None:
        found[state.drain.id] = "resolve"
    return found


def expects(state: Queue, effect: int, kind: Expected) -> bool:
    """Whether a reply to this effect is awaited; False for one that is retired.

    Raises IllegalEventError for an effect that was never given out, or that is awaited as another kind.
    """
    if not 0 < effect < state.next_effect:
        raise IllegalEventError(
            f"A reply came for effect {effect}, which was never given out",
            kept="The queue is as it was",
            do="Reply with the id that the effect carries",
        )
    found = awaited(state).get(effect, kind)
    if found != kind:
        raise IllegalEventError(
            f"A reply of kind {kind} came for effect {effect}, which expects one of kind {found}",
            kept="The queue is as it was",
            do="Reply with the id that the effect carries",
        )
    return effect in awaited(state)
