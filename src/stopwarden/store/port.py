"""The one interface to durable state: rows as values, and what a store can do with them.

Two stores keep it: `sqlite` (one database per user) and `memory` (the reference for the tests);
one conformance suite runs on both. Every method outside a `transaction` is its own transaction.
Append-only tables (away record, verdicts) refuse update and delete in the database itself;
only `forget` may thin them.

All instants are seconds UTC. Raises only the Store…Error classes of `core.errors`.
"""

from __future__ import annotations

from stopwarden.core.events import AwayPeriod, SessionState
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
