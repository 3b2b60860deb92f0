"""The vocabulary of the core: what happens, what is owed, what the world looks like at a stop.

All instants are whole seconds since 1970-01-01T00:00:00Z (`Instant`); all durations are seconds.
A `Zone` turns an instant into the machine's local reading; the core never asks a clock.
May not live here: any decision.
"""

from __future__ import annotations

from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Protocol

    Instant = int

    class Zone(Protocol):
        """The machine's local time: a name to show, and the offset east of UTC in seconds at an instant."""

        @property
        def name(self) -> str: ...
        def offset(self, instant: Instant) -> int: ...

    ItemState = Literal["open", "doing", "done", "waiting", "removed", "handed_back", "dropped"]
    WaitsOn = Literal["person", "external", "session"]
    WakeKind = Literal["recurring", "one_shot", "self_paced"]
    SchedulerWorks = Literal["all", "non_recurring", "none"]
    Mode = Literal["on", "off", "observe"]


class Item(Record):
    """One piece of owed work, from whichever source.

    `before` is the state it was first seen in during this away period: an item that the agent
    parks or removes meanwhile stays owed for one more block.
    """

    id: str
    title: str
    state: ItemState = "open"
    before: ItemState = "open"
    waits_on: WaitsOn | None = None
    why: str = ""  # why it waits, as the list says
    source: str = ""  # where it stands: "TODO.md", "todos of this session"
    line: int = 0  # 1-based place in its source, 0: none
    verified: bool = False


class Wake(Record):
    """A scheduled prompt as the host lists it, with what else is known of it."""

    id: str
    schedule: str
    kind: WakeKind = "one_shot"
    first_seen: Instant | None = None
    fires_at: Instant | None = None  # the host's own word, jitter included
    fires_said_at: Instant | None = None  # when the host said so
    max_age: int | None = None  # seconds after `first_seen` at which a recurring wake ends, as the host said


class BackgroundTask(Record):
    """Work the host says is running. It never counts as a wake while away."""

    id: str
    type: str
    description: str = ""


class Scheduler(Record):
    """What the host's own scheduler can do in this session, and why not more."""

    works: SchedulerWorks = "all"
    why: str = ""
    jitter: Literal["none", "claude_code", "qwen_code"] = "none"
    dialects: tuple[str, ...] = ("minute", "debian", "qwen_code")
    exempt_self_paced: bool = True


class Stop(Record):
    """A session is about to stop. `wakes` is None where the host reported none at all."""

    session: str
    at: Instant
    host: str = "claude-code"
    nonce: str = ""
    prompt: str = ""  # the host's prompt id
    plan_mode: bool = False
    subagent: bool = False
    wakes: tuple[Wake, ...] | None = None
    unread_wakes: tuple[str, ...] = ()  # entries whose shape could not be understood
    background: tuple[BackgroundTask, ...] = ()
    host_cap: int | None = None  # None: the host said nothing, 0: the host's cap is off
    damaged: bool = False  # the payload could not be read whole


class AwayPeriod(Record):
    """The person is away: from when, until when, for which sessions, on what terms."""

    id: str
    since: Instant
    until: Instant | None = None
    scope: Literal["checkout", "session", "everywhere"] = "checkout"
    copy: str = ""  # the copy key, with scope "checkout"
    root: str = ""  # the checkout's path, to show
    session: str = ""  # with scope "session"
    also_scripts: bool = False
    until_done: bool = False
    lists: tuple[str, ...] = ()  # absolute paths of the lists the person named
    ended_at: Instant | None = None
    ended_why: str = ""  # "time", "back", "done", "prompt", "replaced"
    zone: str = ""


class Reservation(Record):
    """A session's time-limited hold on one item, as stored (see `core.leases` for the arithmetic).

    An item is known by its id in its place: a project, or a list in it. The person's own hold has no
    session and does not lapse.
    """

    item: str
    session: str
    copy: str
    claimed_at: Instant  # of the claim or of its last renewal
    expires_at: Instant | None  # None: it does not lapse
    token: int = 0  # rises by one at each grant of the item
    first_seen: Instant | None = None  # when a clock that was set back first met this claim or renewal
    released_at: Instant | None = None
    terminal: bool = False  # its item is finished
    place: str = ""
    project: str = ""
    title: str = ""
    root: str = ""  # the holder's checkout
    lease: int = 0  # seconds, for renewals
    granted_at: Instant = 0
    footprint: tuple[str, ...] = ()  # paths below the checkout that the work will touch
    taken_from: str = ""  # the session that lost it, if it was taken over
    nonce: str = ""  # of the claim, to know one's own again after a time-out


class World(Record):
    """All that a stop is judged by besides the stop and the session's own state."""

    zone: Zone
    mode: Mode = "on"
    paused_until: Instant | None = None  # with mode "off": when the person wants it on again
    period: AwayPeriod | None = None  # None: away does not hold for this session
    items: tuple[Item, ...] = ()  # every item of every source, in order
    unread: tuple[str, ...] = ()  # sources that could not be read: what is owed is unknown
    ready: tuple[Item, ...] = ()  # the ready queue
    reservations: tuple[Reservation, ...] = ()
    copy: str = ""  # this checkout's copy key
    scheduler: Scheduler = Scheduler()
    kept_look: Instant | None = None  # a living keeper can look exactly then
    checklist: str = ""  # where this session's own list is, to tell it
    answers: tuple[str, ...] = ()  # the person's answers to parked questions, not yet delivered
    ask_safety_wake: bool = False  # this session was not yet asked for a recurring safety wake
    shared: bool = False  # other sessions work from the same list
    unread_ready: tuple[str, ...] = ()  # trackers whose open items are not known now
    tokens_used: int = 0


class SessionState(Record):
    """What one session's next stop is judged by; one row, written whole. Keyed by session id alone."""

    id: str
    fingerprint: str | None = None  # of the owed set at the last block, or of the empty set (row 2)
    blocks: int = 0  # in a row without progress
    blocks_without_tools: int = 0  # of those, without any tool use in between
    tool_used: bool = False  # since the last block
    recent_blocks: tuple[Instant, ...] = ()  # within the last hour
    period: str = ""  # the away period these counts belong to
    period_blocks: int = 0
    bound: str = ""  # the bound the last block reached: the next stop in this row is allowed
    next_look: Instant | None = None  # nominal, to show
    next_look_latest: Instant | None = None
    wake_started: bool = False  # this turn was started by a wake
    unchanged_looks: int = 0
    reached: tuple[str, ...] = ()  # "doing ID" and "done ID" counted as progress in this period
    graced: tuple[str, ...] = ()  # parked or removed by the agent, and blocked once more for it
    handed_back: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()  # of the ready queue, named to this session in this period
    passed_over: tuple[str, ...] = ()  # "ITEM SESSION" of items another holds, recorded in this period
    compacted: bool = False  # since the last block
    cancelled: bool = False  # a person's cancel holds until an ordinary prompt
    revision: int = 0


class WakeFinding(Record):
    """One wake judged: the interval in which it fires, whether it qualifies, and if not, why."""

    id: str
    schedule: str
    qualifies: bool
    nominal: Instant | None = None
    earliest: Instant | None = None
    latest: Instant | None = None
    why: str = ""


class Counters(Record):
    """The counts after this verdict, to record and to show."""

    blocks: int = 0
    blocks_without_tools: int = 0
    blocks_this_hour: int = 0
    period_blocks: int = 0
    cap: int = 0  # the bound for blocks without tools, 0: none


class Happening(Record):
    """A line for the away record that a verdict brings with it."""

    kind: str  # "stopped_with_work_owed", "item_done", "item_parked", "missed_look", …
    item: str = ""
    text: str = ""


class Verdict(Record):
    """The answer to a stop, with everything it was reached by."""

    block: bool
    kind: str  # "block", or why it is allowed: see design §4
    rule: str
    at: Instant
    reason: str = ""
    notice: str = ""
    owed: tuple[str, ...] = ()
    fingerprint: str = ""
    counters: Counters = Counters()
    wake: WakeFinding | None = None
    rejected: tuple[WakeFinding, ...] = ()
    deadline: Instant | None = None
    zone: str = ""
    after: SessionState | None = None  # what `commit` stores; None leaves the session's state alone
    happenings: tuple[Happening, ...] = ()
