"""Every bound in one place, and the policy a person can set within its range.

Durations are whole seconds. A policy is a value: it is resolved once, when the person goes away,
and stored with the away period, so the hook never reads a settings file.
"""

from __future__ import annotations

from stopwarden.core.errors import SettingError
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR

LEASE_DEFAULT = 2 * HOUR
LEASE_MIN = 1 * MINUTE
LEASE_MAX = 24 * HOUR
TAKE_OVER_MARGIN = 5 * MINUTE
RESERVATIONS_MAX = 10  # live ones of one session
READY_SHOWN = 20  # items of the ready queue that a stop is judged by
SKEW_SHARE = 8  # the skew is at most this fraction (1/8) of the lease

HOST_CAP_DEFAULT = 8
WAKE_EXPIRY_DEFAULT = 7 * DAY
MISSED_LOOK_AFTER = 10 * MINUTE
ONE_SHOT_GRACE = 2 * MINUTE
SILENT_AFTER = 30 * MINUTE
KEEPER_BACKOFF = (1 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE)

GUARD_STREAMS = 2  # of one stage: without new words of the person
TODOS_MAX = 10_000  # items of one trusted todo list
TODO_ID_MAX = 1_000  # characters

REASON_MAX = 2_000
TITLE_MAX = 200
PAYLOAD_MAX = 8 * 1024 * 1024
LIST_MAX = 4 * 1024 * 1024  # bytes of one Markdown list
ITEMS_MAX = 50_000  # of one list
STOP_DEADLINE = 8
EVENT_DEADLINE = 2
STORE_WAIT = 5
FAULTS_IN_A_ROW = 3

NOTIFICATIONS_MAX = 20  # results that wait for a turn
DEFERRED_FIRES_MAX = 20  # unrelated cron fires that wait for a chain
FIRES_MAX = 100  # unrelated cron fires that wait for an ordinary turn
GAPS_HELD = 100  # gap entries in memory; further ones wait in the store
GAPS_IN_A_NOTICE = 40  # results named in one notice
SETTLED_RESULTS = 200  # results remembered so that none is told twice
RETRY_AFTER = (1, 2, 4)  # seconds between tries to start a turn for waiting results
DEFERRAL_LIMIT = 30 * MINUTE  # how long background work may hold back a chain

# The bridge's queue. Its durations are milliseconds: a claim has two seconds.
PROMPTS_MAX = 5  # full prompts of a session, the running one included; 503 beyond
MESSAGES_MAX = 20  # mid-turn messages of a session that were not handed over yet
MESSAGE_TEXT_MAX = 16_384
MESSAGE_ID_MAX = 128
MESSAGES_A_DRAIN = 10
FATES_KEPT = 200  # messages remembered after they are gone, so that posting one again is known
TERMINALS_KEPT = 64  # prompts remembered after they ended
RELEASES_AWAITED = 20  # releases whose answer is still waited for
DRAIN_DEADLINE_MS = 2_000
SETTLE_DEADLINE_MS = 30_000  # after a cancel, until the queue goes on without the child's word
GATE_DEADLINE_MS = 30_000  # to have the gate; and once more, until all behind it has come to rest
SETTLE_PAUSE_MS = 10  # between two looks for activity where nothing has ended
MOVES_MAX = 5  # of one session to other directories, asked for and not over
DRAIN_TIMEOUTS_MAX = 3  # in a row, until a host's drain counts as not there


class Policy(Record):
    """What a person may set for an away period. Sources: design §3, §7, §8."""

    blocks_without_tools: int | None = None  # None: the host's own cap, else 8
    blocks_without_progress: int = 40
    blocks_an_hour: int = 30
    blocks_a_period: int = 300
    wall_time: int = 0  # seconds of an away period, 0: no ceiling
    tokens: int = 0  # tokens of an away period where the host reports them, 0: no ceiling
    skew: int = 5 * MINUTE
    look_without_reservation: int = 1 * HOUR
    unchanged_looks: int = 3
    wake_evidence: str = "evidence"  # or "nominal": the next fire, no jitter, one reading
    person_prompt_ends: bool = False
    keeper: bool = False
    offer_ready: bool = True  # ready work is offered once before a session may wait


RANGES: Mapping[str, tuple[int, int]] = {
    "blocks_without_tools": (0, 1_000),
    "blocks_without_progress": (1, 1_000),
    "blocks_an_hour": (1, 1_000),
    "blocks_a_period": (1, 100_000),
    "wall_time": (0, 31 * DAY),
    "tokens": (0, 10**12),
    "skew": (0, 1 * HOUR),
    "look_without_reservation": (5 * MINUTE, LEASE_MAX // 2),
    "unchanged_looks": (1, 100),
}
CHOICES: Mapping[str, tuple[object, ...]] = {
    "wake_evidence": ("evidence", "nominal"),
    "person_prompt_ends": (True, False),
    "keeper": (True, False),
    "offer_ready": (True, False),
}


def policy_from(settings: Mapping[str, object]) -> Policy:
    """A policy from settings by name; what is not named keeps its default.

    Raises SettingError for an unknown name, a wrong type or a value outside its range.
    """
    checked: dict[str, object] = {}
    for name, value in settings.items():
        if name in CHOICES:
            if value not in CHOICES[name] or type(value) is not type(CHOICES[name][0]):
                allowed = " or ".join(repr(choice) for choice in CHOICES[name])
                raise SettingError(f"{name} = {value!r} is not allowed", do=f"Use {allowed}")
        elif name in RANGES:
            low, high = RANGES[name]
            unset = name == "blocks_without_tools" and value is None
            if not unset and (isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high):
                raise SettingError(f"{name} = {value!r} is not allowed", do=f"Use a whole number from {low} to {high}")
        else:
            raise SettingError(f"There is no setting {name}", do="See `stopwarden away --help` for the settings")
        checked[name] = value
    return Policy(**checked)  # type: ignore[arg-type]
