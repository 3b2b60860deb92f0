"""The one interface to durable state: rows as values, and what a store can do with them.

Two stores keep it: `sqlite` (one database per user) and `memory` (the reference for the tests);
one conformance suite runs on both. Every method outside a `transaction` is its own transaction.
Append-only tables (away record, verdicts) refuse update and delete in the database itself;
only `forget` may thin them.

All instants are seconds UTC. Raises only the Store…Error classes of `core.errors`.
"""

from __future__ import annotations

from stopwarden.core.events import AwayPeriod, Reservation, SessionState
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from stopwarden.core.events import Instant


class SessionRow(Record):
    """What is known of a session besides its state: where it runs and when it was last heard of."""

    id: str
    host: str = "claude-code"
    root: str = ""  # checkout root recorded at its first event, never the hook's working directory
    copy: str = ""  # that checkout's copy key
    title: str = ""
    entrypoint: str = ""  # as the host says: "cli", "sdk-cli", …
    host_version: str = ""
    permission_mode: str = ""
    transcript: str = ""
    first_event_at: Instant = 0
    last_event_at: Instant = 0
    last_event: str = ""
    chain_started_at: Instant = 0  # the last ordinary prompt
    asked_safety_wake: str = ""  # the away period in which it was asked for one
    waits_on_person: str = ""  # "", "permission", "question", "plan"
    waits_since: Instant | None = None
    idle_since: Instant | None = None  # the host said it sits idle
    error: str = ""  # the last turn ended in this error
    error_at: Instant | None = None
    error_resets_at: Instant | None = None
    errors_in_a_row: int = 0
    ended_at: Instant | None = None
    ended_why: str = ""
    last_verdict: int = 0
    boot: str = ""  # boot id, and the boot clock in ticks at which the last verdict was committed
    answered_ticks: int = 0
    wall_minus_boot: int = 0  # seconds, to notice a stepped clock
    program: int = 0  # pid of the agent program, as our hooks see it; 0: not known
    program_started: str = ""  # its start time as the system gives it, so that a reused pid is told apart
    program_seen: int = 0  # events in which it was seen, up to 2: once may have been something in between


class SeenWake(Record):
    """A wake as first seen, with the host's own word about it. Holds no prompt text, only its digest."""

    session: str
    id: str
    schedule: str = ""
    kind: str = "one_shot"
    first_seen: Instant = 0
    fires_at: Instant | None = None
    fires_said_at: Instant | None = None
    max_age: int | None = None
    prompt_digest: str = ""
    gone_at: Instant | None = None


class RecordLine(Record):
    """One line of the append-only away record."""

    at: Instant
    kind: str
    session: str = ""
    period: str = ""
    item: str = ""
    text: str = ""  # work text or our own words; never message text
    seq: int = 0  # given by the store


class VerdictRow(Record):
    """One verdict of the journal. `body` is the JSON that `explain` judges again."""

    at: Instant
    session: str
    period: str = ""
    nonce: str = ""
    kind: str = ""
    rule: str = ""
    body: str = ""
    id: int = 0  # given by the store


class Parked(Record):
    """A question or a permission prompt that was refused while the person was away."""

    at: Instant
    session: str
    period: str
    kind: str  # "question", "permission", "plan"
    digest: str  # of session, kind and text: asked again, it is counted, not repeated
    text: str
    options: tuple[str, ...] = ()
    times: int = 1
    chosen: str = ""  # what the agent said it did meanwhile
    answer: str = ""
    answered_at: Instant | None = None
    delivered_at: Instant | None = None
    id: int = 0  # given by the store; short and typable


class KeeperRow(Record):
    """The background hook that keeps a session's next look. One a session: the newest."""

    session: str
    pid: int
    started: str  # the process's start time as the system gives it, so that a reused pid is told apart
    generation: int
    at: Instant
    woke_at: Instant | None = None


class LedgerItem(Record):
    """One item of the ledger: work of a project that stands on no list. Its id is "w" and its number."""

    project: str  # see `work.checkout.project_key`
    title: str
    state: str = "open"  # "open", "doing", "done", "waiting", "dropped", "handed_back"
    was: str = ""  # the state before the last change
    changed_at: Instant = 0
    priority: int = 2  # 0 first, 4 last
    needs: tuple[int, ...] = ()  # numbers of items that must be done, or dropped, first
    waits_on: str = ""  # "person", "external", "session"
    why: str = ""
    verify: str = ""  # a shell command; run only by `stopwarden done`
    verified_at: Instant | None = None
    failure: str = ""  # digest of how its command failed last
    assigned: str = ""  # the session that began it
    created_at: Instant = 0
    created_by: str = ""  # a session; "" the person
    done_by: str = ""
    number: int = 0  # given by the store

    @property
    def id(self) -> str:
        return f"w{self.number}"


class Tracker(Record):
    """Another tracker whose open items are read, never written."""

    project: str
    name: str
    kind: str  # "gh", "bd", "command"
    command: tuple[str, ...] = ()  # as it is started, without a shell
    root: str = ""  # the directory it is started in
    read_at: Instant | None = None  # when it last answered
    failed_at: Instant | None = None  # when it last did not; cleared by an answer
    why: str = ""


class TrackedItem(Record):
    """One item of another tracker, as it was when last read."""

    project: str
    tracker: str
    id: str
    title: str
    state: str = "open"  # as a ledger item's
    priority: int = 2
    blocked: bool = False
    created_at: Instant = 0


class Store:
    """What every store can do. The two stores keep it by structure; this class is for type checkers."""

    if TYPE_CHECKING:

        def transaction(self) -> AbstractContextManager[None]:
            """Everything inside happens whole or not at all; takes the write lock at once.

            A transaction inside another is whole or not at all by itself (its failure may be
            caught and the outer one goes on), and durable with the outermost.
            """

        @property
        def in_transaction(self) -> bool: ...

        def close(self) -> None:
            """Undoes what is open and lets go; every later use raises StoreUnwritableError."""

        # away periods; listed by `since`, then id
        def add_period(self, period: AwayPeriod, policy_json: str) -> None:
            """Raises StoreUnwritableError if there is a period of this id, open or ended."""

        def end_period(self, period_id: str, at: Instant, why: str) -> bool:
            """True if it was open and is ended now; ending twice changes nothing."""

        def open_periods(self) -> list[AwayPeriod]: ...
        def periods(self, since: Instant = 0) -> list[AwayPeriod]:
            """Those that are open, or ended at `since` or later."""

        def period_policy(self, period_id: str) -> str:
            """The JSON it was added with; "" for an unknown period."""

        # sessions; a row is touched by its own id alone
        def session(self, session_id: str) -> SessionRow | None: ...
        def save_session(self, row: SessionRow) -> None: ...
        def sessions(self, since: Instant = 0) -> list[SessionRow]:
            """Those heard of at `since` or later, by first event, then id."""

        def state(self, session_id: str) -> SessionState:
            """At revision 0 and empty if none was stored."""

        def save_state(self, state: SessionState, *, expected_revision: int) -> None:
            """Stores it with revision expected + 1. Raises StaleVerdictError if another came first."""

        # wakes; listed by first sight, then id
        def wakes(self, session_id: str) -> list[SeenWake]: ...
        def save_wake(self, wake: SeenWake) -> None: ...

        # the append-only account, in the order of appending; `since` and `until` are both included
        def append(self, lines: Iterable[RecordLine]) -> None:
            """All of them or none; whatever `seq` they carry, the store gives its own."""

        def lines(
            self, *, period: str | None = None, since: Instant = 0, until: Instant | None = None
        ) -> list[RecordLine]: ...
        def append_verdict(self, row: VerdictRow) -> int:
            """Its id. A nonce already stored for that session returns the stored verdict's id."""

        def verdict(self, verdict_id: int) -> VerdictRow | None: ...
        def verdicts(
            self, *, period: str | None = None, since: Instant = 0, until: Instant | None = None
        ) -> list[VerdictRow]: ...
        def bare_verdicts(self, period: str) -> list[tuple[int, Instant, str, str, str, str, str]]:
            """A period's verdicts as id, at, session, period, kind, rule and body: a third of the price of the rows."""

        # parked questions, in the order of parking
        def park(self, parked: Parked) -> int:
            """Its id. Asked again by that session in that period (same digest), it is counted and its id returned."""

        def parked(self, *, open_only: bool = False, session: str | None = None) -> list[Parked]:
            """`open_only`: those not answered."""

        def save_parked(self, parked: Parked) -> None:
            """By id. Raises StoreUnwritableError if there is none of that id."""

        # what a list looked like when last read (identity of items across edits), by source; "" if never
        def list_snapshot(self, source: str) -> str: ...
        def save_list_snapshot(self, source: str, body: str) -> None: ...
        def put_snapshot(self, body: str) -> str:
            """Keeps a text by its digest for the journal; the digest."""

        def snapshot(self, digest: str) -> str: ...

        # the host's own todos as tools reported them, by session: the JSON of the last report, or ""
        def host_todos(self, session_id: str) -> str: ...
        def save_host_todos(self, session_id: str, body: str) -> None: ...

        # host facts and switches; "" if not stored
        def fact(self, subject: str, name: str) -> str: ...
        def save_fact(self, subject: str, name: str, value: str) -> None: ...

        # keepers
        def keeper(self, session_id: str) -> KeeperRow | None: ...
        def save_keeper(self, row: KeeperRow) -> bool:
            """False if a keeper of a higher generation is stored: it stays."""

        # reservations, by when they were granted; a row stays when its hold is over
        def reservation(self, place: str, item: str) -> Reservation | None:
            """The last reservation of an item, released or not."""

        def save_reservation(self, held: Reservation) -> None:
            """Raises StoreUnwritableError if its token is neither the stored one, with that holder, nor the next."""

        def reservations(self, *, released: bool = False) -> list[Reservation]:
            """All that are not released; `released`: those as well."""

        def reservations_in(self, project: str, *, finished_since: Instant | None = None) -> list[Reservation]:
            """A project's that are not released; with `finished_since` instead those whose item was finished since."""

        def reservations_of(self, *, session: str = "", copy: str = "") -> list[Reservation]:
            """Those of one session, or of one copy, that are not released."""

        # the ledger, by number
        def add_ledger_item(self, item: LedgerItem) -> int:
            """Its number, whatever number it carries."""

        def save_ledger_item(self, item: LedgerItem) -> None:
            """By number. Raises StoreUnwritableError if there is none of that number."""

        def ledger_item(self, number: int) -> LedgerItem | None: ...
        def ledger_items(self, project: str | None = None) -> list[LedgerItem]: ...
        def ledger_items_assigned(self, session: str) -> list[LedgerItem]: ...
        def ready_items(self, project: str, limit: int) -> list[LedgerItem]:
            """Open items that need nothing unfinished: by priority, then age, then number."""

        # other trackers
        def trackers(self, project: str | None = None) -> list[Tracker]: ...
        def save_tracker(self, tracker: Tracker) -> None: ...
        def remove_tracker(self, project: str, name: str) -> bool:
            """With what it said; False if there was none."""

        def replace_tracked(self, project: str, tracker: str, items: Iterable[TrackedItem]) -> None:
            """All that a tracker said before is replaced; of items with one id the first is kept."""

        def tracked_items(self, project: str) -> list[TrackedItem]:
            """By priority, then age, then tracker and id."""
