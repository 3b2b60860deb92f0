"""The words of the bridge's queue: what it holds, what comes in, what is to be done.

One `Queue` is one session's: its full prompts in order (`Entry`), the messages posted in the
middle of a turn (`Message`), who may ask, and who waits. All instants (`at`) are milliseconds of
one clock of the bridge's; durations are milliseconds too. Prompt, message, client, child and
request ids are the caller's strings; ids of effects are whole numbers that only grow.

May not live here: any decision. See `core/queue.py` for how it all works.
"""

from __future__ import annotations

from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    EntryState = Literal["running", "queued", "removed"]
    Outcome = Literal["completed", "cancelled", "failed"]
    Asks = Literal["", "retry", "continue"]
    Fate = Literal["delivered", "promoted", "removed"]
    Told = Literal[
        "pending_prompt_added",
        "pending_prompt_started",
        "pending_prompt_completed",
        "user_message",
        "prompt_cancelled",
        "turn_complete",
        "turn_error",
        "mid_turn_message_queued",
        "mid_turn_message_injected",
        "mid_turn_message_removed",
        "release_failed",
        "session_closed",
        "session_died",
    ]


# --- what the queue holds -----------------------------------------------------------------------


class Message(Record):
    """What a person said in the middle of a turn; `internal` ones are not shown to clients."""

    message: str
    text: str = ""
    client: str | None = None
    attachments: tuple[str, ...] = ()  # to be resolved before it can be handed over
    internal: bool = False
    resolved: bool = False  # its attachments have been read once
    late: bool = False  # it missed the drain that asked for it: the next prompt carries it


class Entry(Record):
    """One full prompt, from admission until its turn has settled and every cancel for it is answered."""

    prompt: str
    content: str = ""  # a reference to the prompt's content, opaque here
    client: str | None = None  # who sent it
    state: EntryState = "queued"
    queued_at: int = 0
    was_queued: bool = False  # it had to wait, so clients were told of it as pending
    asks: Asks = ""
    promoted: bool = False  # it was a message first
    aborted: bool = False
    run: int | None = None  # the RunPrompt that has not settled
    deadline: int | None = None  # the timer that ends it
    terminal: Outcome | None = None  # what was published, at most once
    took: tuple[str, ...] = ()  # ids of the messages handed to its turn

    @property
    def live(self) -> bool:
        """Neither aborted nor ended: it counts in a claim and in a hint."""
        return not self.aborted and self.terminal is None


class Drain(Record):
    """Messages taken out for a drain whose attachments are being read."""

    id: int  # the ResolveMessages that has not been answered
    request: str
    owner: str | None  # whose turn it was when it was asked
    watch: bool
    messages: tuple[Message, ...]
    asked_at: int


class Forward(Record):
    """A cancel on its way to the child: nothing is started until it is answered and its prompt has settled."""

    id: int
    target: str  # a prompt id, a background turn's id, or "" for whatever the child waits for
    timer: int
    answered: bool = False


class Queue(Record):
    """One session's queue."""

    session: str
    child: str | None  # the agent process that hosts the session now; None: it is gone
    limit: int = 5  # full prompts at once, the running one included; 0: no limit
    clients: frozenset[str] = frozenset()
    closing: bool = False
    closed: bool = False  # closing, and everything has ended
    entries: tuple[Entry, ...] = ()  # in order of admission; only the first one can run
    turn: str | None = None  # the background turn in progress: an owner like a prompt
    wait_owner: str | None = None  # whose chain has yielded to a queued prompt
    forwards: tuple[Forward, ...] = ()
    releases: tuple[tuple[int, str], ...] = ()  # SendRelease not answered yet, and its owner
    messages: tuple[Message, ...] = ()
    drain: Drain | None = None
    fates: tuple[tuple[str, Fate], ...] = ()  # ring of messages that are gone, and where to
    terminals: tuple[tuple[str, Outcome], ...] = ()  # ring of prompts that ended
    last_turn: Outcome | None = None  # how the last turn ended; used up by the next prompt that runs
    background_held: bool = False  # after a cancel, until the next prompt runs
    cancel_epoch: int = 0
    now: int = 0  # the latest `at` seen: a clock that steps back changes nothing
    next_effect: int = 1


# --- what comes in ------------------------------------------------------------------------------


class QueueEvent(Record):
    """Anything that happened, at `at`."""

    at: int


class Request(QueueEvent):
    """A client's call. `client` None: the caller did not name itself."""

    request: str
    session: str
    client: str | None = None


class ChildCall(QueueEvent):
    """A call or notification of an agent process."""

    request: str
    session: str
    child: str


class Reply(QueueEvent):
    """What came back for the effect with this id. For a retired id nothing happens."""

    effect: int


class Admit(Request):
    """A full prompt. Its id is ours (a UUID), or the client's own where a stdio client gave one."""

    prompt: str
    content: str = ""
    missing: tuple[str, ...] = ()  # attachments it names that do not exist
    caller_gone: bool = False
    asks: Asks = ""
    deadline: int | None = None  # milliseconds from admission


class RemovePrompt(Request):
    """Take a queued prompt out, or stop the running one."""

    prompt: str


class CancelRunning(Request):
    """Stop what runs. Queued prompts stay."""


class ListPending(Request):
    """What is running, queued and waiting to be handed over."""


class PostMessage(Request):
    """Say something in the middle of a turn; the same `message` id twice is one message."""

    message: str
    text: str = ""
    attachments: tuple[str, ...] = ()
    internal: bool = False


class RemoveMessage(Request):
    """Take back a message that was not handed over yet."""

    message: str


class ClientJoined(QueueEvent):
    """A client attached to the session under its own id."""

    client: str


class ClientLeft(QueueEvent):
    """A client's connection ended. What it asked for stays."""

    client: str


class AskClaim(ChildCall):
    """May the next place in order go to one automatic continuation? `prompt`: the owner, where known."""

    prompt: str | None = None


class AskDrain(ChildCall):
    """Hand over the messages. `prompt`: the turn that asks, where known."""

    prompt: str | None = None
    watch: bool = True  # a hint about queued prompts is wanted


class StartTurn(ChildCall):
    """The child wants to begin a background turn. `epoch`: the queue's `cancel_epoch` when its request came in."""

    turn: str
    epoch: int


class EndTurn(ChildCall):
    """A background turn is over."""

    turn: str


class ChildCame(QueueEvent):
    """An agent process hosts the session (again)."""

    child: str


class ChildGone(QueueEvent):
    """The agent process ended."""

    child: str


class Close(QueueEvent):
    """The session ends. Everything still owed is named in its own terminal event."""


class PromptSettled(Reply):
    """The child's turn for a RunPrompt is over."""

    outcome: Outcome


class CancelForwarded(Reply):
    """The child has taken (or failed to take) a forwarded cancel."""

    ok: bool = True


class ReleaseAnswered(Reply):
    """The child's answer to a release; `failed` says why there is none."""

    released: bool = False
    failed: str = ""


class MessagesResolved(Reply):
    """The attachments of a drain were read; `failed` names the messages for which they were not."""

    failed: tuple[str, ...] = ()


class TimerFired(Reply):
    """A timer of ours ran out."""


# --- what is to be done -------------------------------------------------------------------------


class Effect(Record):
    """Something to be done, in the order given. `id` names it in the reply, if one is expected."""

    id: int


class RunPrompt(Effect):
    """Give the prompt to the child; reply PromptSettled. `trust` is what we vouch for, never what a client wrote."""

    prompt: str
    content: str
    client: str | None
    trust: Asks = ""
    carried: tuple[Message, ...] = ()  # late messages, read or not, to stand before the prompt


class ForwardCancel(Effect):
    """Tell the child to stop this prompt or background turn ("": nothing runs here); reply CancelForwarded."""

    target: str


class SendRelease(Effect):
    """Tell the child that the last prompt this owner waited for is gone; reply ReleaseAnswered."""

    owner: str


class CutStopHook(Effect):
    """Tell the child that a prompt is waiting: a Stop hook that still runs in this turn need not be waited for."""

    owner: str


class ResolveMessages(Effect):
    """Read the attachments of these messages; reply MessagesResolved."""

    messages: tuple[Message, ...]


class StartTimer(Effect):
    """Reply TimerFired after so many milliseconds."""

    after: int


class WriteLedger(Effect):
    """Put on disk, before what follows, that a prompt is in flight or how it ended."""

    prompt: str
    state: str  # "in_flight" or an Outcome


class Emit(Effect):
    """Publish an event of the session to all its clients."""

    told: Told
    prompt: str | None = None
    client: str | None = None  # who began it (`originatorClientId`)
    state: str = ""
    messages: tuple[str, ...] = ()
    shown: tuple[Message, ...] = ()  # the same, without the internal ones
    why: str = ""


class Answer(Effect):
    """The answer to the call named by `request`; `status` is the HTTP status, `rule` says which rule gave it."""

    request: str
    status: int = 200
    rule: str = ""


class AnswerAdmission(Answer):
    """Admitted (202, with the prompt's id and place, 0 runs) or refused (no prompt)."""

    prompt: str | None = None
    place: int = 0


class AnswerClaim(Answer):
    """Granted (True, False), a live queued prompt (False, True), or refused (False, False)."""

    claimed: bool
    has_queued_prompt: bool


class AnswerDrain(Answer):
    """The messages, now the child's, and whether a live prompt is queued."""

    messages: tuple[Message, ...] = ()
    has_queued_prompt: bool = False


class AnswerTurn(Answer):
    """Whether the background turn may begin."""

    accepted: bool


class AnswerList(Answer):
    """What is pending, in order."""

    entries: tuple[Entry, ...] = ()
    messages: tuple[Message, ...] = ()


class AnswerMessage(Answer):
    """Whether the message is (or was) taken; `rule` says why not."""

    accepted: bool


class AnswerDone(Answer):
    """A removal or a cancel was carried out, or not (see `status`)."""
