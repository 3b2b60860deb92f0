"""The state of one session's turns, and the pen with which a step writes the next one.

A session runs at most one turn. While an older one unwinds, the prompt that replaced it waits in
`next`. Where a turn stands is `order` and `row`: the name of a table (`core/turn` lists them) and the
row of it that runs next; `waiting` is the one effect whose answer it needs before it goes on. What a
row learned lies in fields of the turn until the rows that judge it have passed.

The pen holds state, turn and chain while one event is handled and collects the effects; nothing
outside a single `step` ever sees it.
"""

from __future__ import annotations

from stopwarden.core import backlog as backlogs
from stopwarden.core import bounds
from stopwarden.core import chain as chains
from stopwarden.core import chain_words as words
from stopwarden.core import guard as guards
from stopwarden.core.backlog_events import (
    Backlog,
    ChainBegan,
    Deliver,
    NoticeAsked,
    RetryLater,
    RunFire,
    TellModel,
    TurnReturned,
)
from stopwarden.core.chain_words import Chain
from stopwarden.core.door_events import Door
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.lineage import Deferral
from stopwarden.core.record import Record
from stopwarden.core.results import Holding
from stopwarden.core.turn_events import Abort, Effect, EndTurn, HoldWords, Part, Pass, Prompt, Tell, WriteHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from stopwarden.core.away_words import Revision
    from stopwarden.core.events import Verdict
    from stopwarden.core.gaps import Gap
    from stopwarden.core.lineage import Task

# Parts that the backlog gave out: if they are not sent they go back there, not into history.
CARRIED = ("result", "fire", "gap")
FOLLOWED = ("turn.new_prompt", "turn.yielded")
FAILED = ("error", "loop_detected", "max_tokens")


class Waiting(Record):
    """The effect whose answer the turn needs. Past `due` there will be none in time."""

    id: int
    what: str  # drain, claim, hooks, verdict, commit, model, compress, tokens, send, stream, tools
    due: int | None = None
    owner: str | None = None


class Found(Record):
    """What a drain brought."""

    parts: tuple[Part, ...] = ()
    hint: bool = False
    reliable: bool = True


class HookSaid(Record):
    """What the external Stop hooks said about this stop."""

    block: bool = False
    reason: str = ""
    message: str = ""


class Stream(Record):
    """The next model stream while it is prepared, and while it runs.

    `parts` go to the model whatever becomes of the guard; the guard's own instruction is never among
    them, so whatever is stored from `parts` is free of it by construction.
    """

    parts: tuple[Part, ...] = ()
    attempt: int = 0  # of the guard; 0: an ordinary stream
    closure: bool = False  # the list is finished: only tool results go back
    unfinished: int = 0
    first: bool = True  # of its continuation, no tool batch in between
    away: Part | None = None  # the reason of the away check; it goes last and is never stored but with its stream
    claims: int = 0  # asked for this stream
    hook: HookSaid | None = None  # this continuation also follows a block of the hooks
    entry: str = ""  # staged in history, not yet committed or rolled back
    begun: bool = False  # the provider has answered with a first event
    carried: str = ""  # under this name the backlog knows what it gave out for this stream
    notice: tuple[Part, ...] = ()  # gap entries that ride along, known to the backlog by `entry`
    cap: int = bounds.GUARD_STREAMS
    label: str = ""


class Turn(Record):
    """One turn that runs or unwinds."""

    id: str
    kind: str
    owner: str | None = None
    order: str = "stream"
    row: str = ""  # the next row of that table; empty: its first
    waiting: Waiting | None = None
    abort: str = ""  # new_prompt, cancel or dispose: it unwinds
    stream: Stream = Stream()
    found: Found | None = None
    claim: str = ""  # what the last claim came to: claimed, queued or unavailable
    judged: Revision | None = None  # what the away check's verdict on this stop is judged by
    verdict: Verdict | None = None
    hook: HookSaid | None = None
    hook_blocks: int = 0  # in a row
    hook_streams: int = 0
    forced: bool = False  # the stop before was blocked by a hook
    forced_shown: bool = False  # people were told of the hook's present block
    compression_failed: bool = False
    fits: bool = True
    model: str = ""  # chosen for pictures, kept to the end of the turn
    reply: str = ""
    tool_parts: tuple[Part, ...] = ()
    tool_stop: str = ""
    hooks_out: Waiting | None = None  # the hooks go on while a queued prompt is confirmed
    labels: int = 0


class Starting(Record):
    """A turn for results that asks the owner's side whether it may begin."""

    turn: str
    parts: tuple[Part, ...]
    related: bool
    asked: int = 0  # the RegisterTurn that is out
    due: int = 0  # milliseconds: no answer by then is a no


class Session(Record):
    """Everything the turn machine knows of one session."""

    chain: Chain = Chain()
    backlog: Backlog = Backlog()
    hooks: bool = False  # an external Stop hook exists and is allowed
    hook_cap: int = bounds.HOST_CAP_DEFAULT
    tasks: tuple[Task, ...] = ()  # background work the host knows of
    now: int = 0  # milliseconds
    workspace: int = 0  # how often the session has moved
    fences: int = 0  # how often its holds have changed
    faults: int = 0  # stops in a row that could not be judged or recorded while away
    deferral: Deferral = Deferral()
    door: Door = Door()
    retry_at: int = 0  # milliseconds; before that no automatic turn begins
    next_id: int = 1
    turn: Turn | None = None
    arriving: tuple[tuple[int, Prompt], ...] = ()  # ask the writer to be let in, by effect id
    starting: Starting | None = None
    registers_none: bool = False  # the owner's side knows nothing of such turns, as far as this session knows
    next: Prompt | None = None  # admitted; begins when the older turn has unwound
    drain_strikes: int = 0
    drain_gone: bool = False  # the owner's side has no drain, as far as this session knows
    late_drains: tuple[int, ...] = ()  # drains given up on; their words are still wanted
    kept: tuple[Part, ...] = ()  # words that came too late, for the next drain or prompt


def illegal(event: Record, what: str) -> IllegalEventError:
    """The error for an event that cannot be taken."""
    name = type(event).__name__
    return IllegalEventError(f"{name} cannot happen: {what}", kept="The session is as it was", do="Mend the driver")


class Pen:
    """Writes one step: state, turn and chain as they become, and the effects in order."""

    __slots__ = ("backlog", "before", "chain", "effects", "ended", "next_id", "state", "turn")

    def __init__(self, state: Session) -> None:
        self.before, self.chain, self.next_id = state, state.chain, state.next_id
        self.backlog = state.backlog
        self.state: Session = state  # an open copy from the first change on
        self.turn: Turn | None = state.turn  # likewise
        self.effects: list[Effect] = []
        self.ended = ""  # a person's turn that has ended of itself in this step

    def written(self) -> tuple[Session, tuple[Effect, ...]]:
        """The state after this step, and what is to be done."""
        written = self.before.draft() if self.state is self.before else self.state
        written.chain, written.backlog, written.next_id = self.chain, self.backlog, self.next_id  # type: ignore[misc]
        written.turn = self.turn.sealed() if self.turn is not None else None  # type: ignore[misc]
        return written.sealed(), tuple(self.effects)

    def set(self, **changes: Any) -> None:
        """Change the session."""
        if self.state is self.before:
            self.state = self.before.draft()
        state = self.state
        for field, value in changes.items():
            setattr(state, field, value)

    @property
    def running(self) -> Turn:
        """The turn; only rows of a running turn ask for it."""
        assert self.turn is not None
        return self.turn

    @property
    def guest(self) -> bool:
        """Whether the turn that runs is a guest beside a chain that waits."""
        running = self.chain.running
        return running is not None and running.guest

    def writing(self) -> Any:
        """The running turn, open from here to the end of the step: its fields can be set. Quicker than `on`."""
        turn = self.turn
        assert turn is not None
        if type(turn) is Turn:
            self.turn = turn = turn.draft()
        return turn

    def on(self, **changes: Any) -> None:
        """Change the running turn. Whoever holds it sees the change: take out first what is still needed."""
        turn = self.turn
        if type(turn) is Turn:
            turn = self.writing()
        for field, value in changes.items():
            setattr(turn, field, value)

    def go(self, order: str, row: str = "") -> None:
        """Let the running turn go on in another table, or at a row of it."""
        turn = self.writing()
        turn.order, turn.row = order, row

    def do(self, effect: type[Effect], /, **fields: Any) -> int:
        """Ask for an effect; answers its id."""
        made, self.next_id = self.next_id, self.next_id + 1
        self.effects.append(effect(id=made, **fields))
        return made

    def ask(self, what: str, effect: type[Effect], due: int | None = None, /, **fields: Any) -> None:
        """Ask for an effect and let the turn wait for its answer, until `due` where that is given."""
        made = self.do(effect, **fields)
        turn = self.writing()
        turn.waiting = Waiting(id=made, what=what, due=due, owner=turn.owner)

    def tell(self, kind: str, **detail: int | str) -> None:
        """Tell people what happened, in fields a program can read."""
        self.do(Tell, kind=kind, turn=self.turn.id if self.turn else "", detail=tuple(detail.items()))

    def chained(
        self, event: words.ChainEvent, unheard: type[words.ChainEffect] = words.AutomaticFreed
    ) -> tuple[words.ChainEffect, ...]:
        """Let the chain take an event; what it wants known (but what is `unheard`) is passed on.

        A new chain makes all work old. Automatic turns that are freed need no word: we look for them
        whenever nothing runs.
        """
        self.chain, effects = chains.step(self.chain, event)
        for effect in effects:
            if isinstance(effect, words.LineageReset):
                self.waited(ChainBegan(world=self.state.tasks))
            elif not isinstance(effect, (words.AutomaticFreed, unheard)):
                self.do(Pass, what=effect)
        return effects

    def riders(self, entry: str) -> tuple[Gap, ...]:
        """The gap entries that this send tells the model of."""
        self.backlog, effects = backlogs.step(self.backlog, NoticeAsked(turn=entry))
        return tuple(gap for effect in effects if isinstance(effect, TellModel) for gap in effect.gaps)

    def waited(self, event: Record) -> Deliver | RunFire | None:
        """Let the backlog take an event; answers what it gives out for a send, if anything."""
        self.backlog, effects = backlogs.step(self.backlog, event)
        given: Deliver | RunFire | None = None
        for effect in effects:
            if isinstance(effect, Deliver | RunFire):
                given = effect
            else:
                if isinstance(effect, RetryLater):
                    self.set(retry_at=self.state.now + effect.seconds * 1_000)
                self.do(Pass, what=effect)
        return given

    def holding(self) -> Holding:
        """What holds automatic turns back now."""
        blocks = guards.trusted_unfinished(self.chain.guard) and not self.chain.away
        return Holding(guard_blocks=blocks, fifo_priority=self.chain.priority, too_long=self.chain.too_long)

    def seconds(self) -> int:
        """The time as chain and guard count it."""
        return self.state.now // 1_000

    def put_away(self, why: Literal["refused", "superseded"]) -> None:
        """What the running turn has not sent goes where it is not lost, once: words into history, the rest back."""
        stream = self.running.stream
        self.store(self.running.tool_parts)
        if not stream.begun:
            self.store(tuple(part for part in stream.parts if part.kind not in CARRIED))
            if stream.carried:
                self.waited(TurnReturned(turn=stream.carried, why=why, holding=self.holding()))
            self.untell()
        self.on(stream=Stream(), tool_parts=())

    def untell(self) -> None:
        """The entry of this stream is none any more: the gap entries that rode along are untold again."""
        stream = self.running.stream
        if stream.notice:
            self.waited(TurnReturned(turn=stream.entry, why="superseded"))
        self.on(stream=stream.replace(entry="", notice=()))

    def roll_back(self) -> None:
        """Take the staged entry back by its id."""
        self.do(WriteHistory, act="roll_back", entry=self.running.stream.entry)
        self.untell()

    def store(self, parts: tuple[Part, ...]) -> None:
        """Put parts that the model was not sent into history, once, as an entry of their own."""
        if parts:
            self.do(WriteHistory, act="append", entry=f"kept-{self.next_id}", parts=parts)

    def hold(self, parts: tuple[Part, ...]) -> None:
        """Words that missed their turn: for the next drain or prompt; into history where neither will come."""
        if not parts:
            return
        if self.chain.disposed:
            self.store(parts)
        else:
            self.do(HoldWords, parts=parts)
            self.set(kept=self.state.kept + parts)

    def cut(self, why: str) -> None:
        """Cut short what the turn waits for, and wait no longer. A late answer will find its id retired."""
        waiting = self.running.waiting
        if waiting is not None:
            self.do(Abort, of=waiting.id, why=why)
            if waiting.what == "drain":
                self.set(late_drains=(*self.state.late_drains, waiting.id))
            self.on(waiting=None)
        if self.running.hooks_out is not None:
            self.do(Abort, of=self.running.hooks_out.id, why=why)
            self.on(hooks_out=None)

    def end(self, kind: str, rule: str, why: str = "") -> None:
        """The turn ends here, and the chain hears how. `kind` as in EndTurn.

        While away a session that stops without a verdict that let it is known to have stopped (I7), unless a
        person's prompt follows.
        """
        turn = self.running
        let = turn.verdict is not None and not turn.verdict.block
        if self.chain.away and not let and rule not in FOLLOWED:
            self.tell("stopped_while_away", end=kind, rule=rule)
        outcome = "cancelled" if turn.abort or kind == "cancelled" else "failed" if kind in FAILED else "ended"
        self.do(EndTurn, turn=turn.id, kind=kind, rule=rule, why=why)
        self.turn = None
        if turn.kind == "foreground":
            self.ended = turn.id if outcome == "ended" else ""
            self.chained(words.PromptEnded(id=turn.id, outcome=outcome))
        else:
            self.chained(words.AutomaticEnded(id=turn.id, outcome="aborted" if outcome == "cancelled" else outcome))
