"""What comes back to a session's turn, and what the turn asks for next.

The turn machine (`core/turn`) decides; whoever drives it (the native agent, the simulator) executes
its *effects* and feeds what came back as *events*. An effect that is answered carries an id, and the
answer repeats it. Ids rise; an answer to an id that is no longer waited for is expected (the world
is late) and has no effect, save that words of the person in it are kept.

Content is named, not carried: a `Part` has an id under which the driver keeps the text, so a state
stays small and can be hashed. Only what the machine itself words (the guard's instruction) has text.
Time is milliseconds of one clock and comes only with `Tick`. Nothing here decides anything.
"""

from __future__ import annotations

from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.fires import Fire
    from stopwarden.core.lineage import Task
    from stopwarden.core.results import Result
    from stopwarden.core.todo_envelope import TodoList

ORDINARY, RETRY, CONTINUE, RESTORE_QUESTION = "ordinary", "retry", "continue", "restore_question"
FOREGROUND, CRON, NOTIFICATION = "foreground", "cron", "notification"


class Part(Record):
    """A piece of what is sent. Kinds: user, mid_turn, tool_result, hook_reason, guard, away, result, fire, gap."""

    kind: str
    id: str
    text: str = ""  # only of our own words
    image: bool = False


class Prompt(Record):
    """What a turn is begun with. `kind` is ordinary, or retry, continue, restore_question as the bridge vouches."""

    id: str
    kind: str = ORDINARY
    owner: str | None = None  # the bridge's id; None: a client without owners
    parts: tuple[Part, ...] = ()


class Event(Record):
    """Anything that happened."""


class Answer(Event):
    """What came back for the effect with this id."""

    id: int


# ---- prompts, modes, ends: nobody asked for these


class PromptOffered(Event):
    """A prompt has come to the session and asks to be admitted."""

    prompt: Prompt


class WriterAdmitted(Answer):
    """The history's writer lets the prompt in (or its caller has gone away meanwhile)."""

    granted: bool = True


class PromptWithdrawn(Event):
    """The caller of a prompt that waits for an older turn has gone away."""

    prompt: str


class PromptQueuedSeen(Event):
    """The owner's side says that a full prompt waits behind this turn (a hint: a claim confirms it)."""


class QueueReleased(Event):
    """The last queued prompt that `owner` yielded to is gone."""

    owner: str


class ModeChanged(Event):
    """Plan mode was entered or left."""

    plan: bool


class TodoWritten(Event):
    """The todo tool of the turn `turn` has ended; before any PostToolUse hook. None: the result is not trusted."""

    turn: str
    todos: TodoList | None


class BackgroundChanged(Event):
    """The background work the host knows of, as it is now."""

    tasks: tuple[Task, ...] = ()


class ResultArrived(Event):
    """A background task has something to tell; it is classified by the work known now."""

    result: Result


class FireArrived(Event):
    """A schedule fired; its prompt waits for a turn."""

    fire: Fire


class SwitchSet(Event):
    """The person turned the guard on or off, or lets it observe. Lifts no suspension."""

    switch: str


class BudgetSet(Event):
    """The person gave the guard other limits (None: as it is). Gives no attempt back and lifts no suspension."""

    attempts: int | None = None
    tokens: int | None = None
    wall_time: int | None = None  # seconds


class Rewound(Event):
    """History was taken back or restored; only between turns."""


class Cancelled(Event):
    """The person cancelled. Also with nothing running: then what waits is held back until a prompt."""


class Disposed(Event):
    """The session is put away; nothing runs after this."""


class GateTaken(Event):
    """Somebody outside (a close, a live restore) holds the session: no turn begins."""


class GateReleased(Event):
    """The gate is open again."""


class Tick(Event):
    """Time has passed. A time that goes back is taken as no time."""

    now: int


# ---- answers


class TurnRegistered(Answer):
    """Whether a turn for results may begin, as an owner: None for an error or a malformed answer."""

    accepted: bool | None = None
    unknown_method: bool = False


class DrainAnswered(Answer):
    """Mid-turn messages. `reliable` is false for an error or a malformed answer; `hint` None: none was given."""

    parts: tuple[Part, ...] = ()
    hint: bool | None = False
    reliable: bool = True
    unknown_method: bool = False


class ClaimAnswered(Answer):
    """What the owner's side said, as it came: None where a field is missing or no boolean, or the call failed."""

    claimed: bool | None = None
    queued: bool | None = None


class HookAnswered(Answer):
    """The external Stop hooks: `block` with a reason, or not; `failed`: they could not be asked."""

    block: bool = False
    reason: str = ""
    message: str = ""
    failed: bool = False


class ModelChosen(Answer):
    """The model for pictures among the drained parts; empty: the ordinary one serves."""

    model: str = ""


class CompressionDone(Answer):
    """History is short enough, or was made so."""


class CompressionFailed(Answer):
    """History could not be made shorter."""


class TokensChecked(Answer):
    """Whether what is to be sent fits the model's limit."""

    fits: bool = True


class ProviderAccepted(Answer):
    """The first event or the headers of a stream: from here on it counts."""


class ProviderRefused(Answer):
    """The provider did not begin a stream."""

    why: str = "error"


class StreamEnded(Answer):
    """A whole reply: the model's words under `reply`, and the tool calls it asks for."""

    reply: str
    calls: tuple[str, ...] = ()
    tokens: int = 0


class StreamBroken(Answer):
    """A stream that had begun ended early. What had come of the model's words is kept under `reply`, if any had."""

    why: str = "error"
    reply: str = ""


class ToolsDone(Answer):
    """The results of a batch. `stop`: post_tool_use, repeated_failure, loop, permission; empty: none."""

    parts: tuple[Part, ...] = ()
    stop: str = ""


# ---- effects


class Effect(Record):
    """Something to be done by whoever drives the machine."""

    id: int


class AdmitWriter(Effect):
    """Ask the history's writer to let this prompt in; answered by WriterAdmitted."""

    prompt: str


class RegisterTurn(Effect):
    """Ask the owner's side whether this turn for results may begin; from a yes on until its end it is an owner."""

    turn: str


class Refuse(Effect):
    """The prompt is not taken, for this reason; nothing else has changed."""

    prompt: str
    why: str


class Abort(Effect):
    """Cut short what the effect `of` is doing; `why` is new_prompt, cancel, dispose or queued_prompt."""

    of: int
    why: str


class Drain(Effect):
    """Take all mid-turn messages; with `watched`, also say whether a full prompt is queued."""

    owner: str | None
    watched: bool


class Claim(Effect):
    """Ask the owner's side for the next place in order."""

    owner: str | None
    probe: bool = False


class RunHooks(Effect):
    """Ask the external Stop hooks about this stop."""

    forced: bool
    reply: str


class ChooseModel(Effect):
    """Choose a model that can see these parts."""

    parts: tuple[Part, ...]


class Compress(Effect):
    """Make history short enough for the next send."""


class CheckTokens(Effect):
    """Does history with these parts fit?"""

    parts: tuple[Part, ...]


class Send(Effect):
    """Open a stream on the staged `entry`, which holds `parts`. `attempt` > 0: one of the guard's."""

    entry: str
    parts: tuple[Part, ...]
    label: str
    attempt: int = 0
    model: str = ""


class RunTools(Effect):
    """Run this batch of calls."""

    calls: tuple[str, ...]


class WriteHistory(Effect):
    """One transaction on history, on disk before the effects that follow.

    `append` parts as `entry`; `stage` them (what is about to be sent, no history yet), then `commit` the
    staged entry, or `roll_back` it.
    """

    act: str
    entry: str
    parts: tuple[Part, ...] = ()


class HoldWords(Effect):
    """Put these words on disk until an entry of history has them: they came too late for their turn.

    What is still held when a process loads the session goes into history then.
    """

    parts: tuple[Part, ...]


class Tell(Effect):
    """An event for people, the transcript and the API. `kind` says what, `detail` its fields by name."""

    kind: str
    turn: str
    detail: tuple[tuple[str, int | str], ...] = ()


class ShowPlan(Effect):
    """A trusted list of the turn, for people to see; a call that was rejected shows none."""

    turn: str
    todos: TodoList


class Suggest(Effect):
    """A follow-up may be suggested to the person after this turn. Drop it when another turn begins."""

    turn: str


class BeginTurn(Effect):
    """A turn begins."""

    turn: str
    kind: str


class Pass(Effect):
    """Something that chain or backlog want done or known: `what` is an effect of theirs, without an answer to us."""

    what: Record


class EndTurn(Effect):
    """A turn has ended, by the rule `rule`; `kind` is why (design §4, or `error`, `max_tokens`, `loop_detected`)."""

    turn: str
    kind: str
    rule: str
    why: str = ""
