"""Takes a fact into the database: who the session is, that it lives, and what the event changed.

The same code takes facts from the spool and the fact of the event being answered, so it does not
matter which way one came. It runs inside the caller's transaction and decides nothing about
stops. Lines go to the away record only for a session that an away period covers then.
"""

from __future__ import annotations

from stopwarden import machine
from stopwarden.core import session as life
from stopwarden.core.bounds import Policy
from stopwarden.core.errors import StopwardenError
from stopwarden.hook import fault
from stopwarden.hook.terms import period_of, policy_of
from stopwarden.store.port import RecordLine, SeenWake, SessionRow
from stopwarden.work import checkout, host_todos, reservations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.core.events import AwayPeriod, Happening, Instant, Reservation, SessionState, Zone
    from stopwarden.hosts.claude_code_facts import Fact
    from stopwarden.store.port import Store


RENEWS = ("post-tool", "prompt", "stop")
LATE_TOOL = 5  # seconds by which a tool's fact, which comes in the background, may be behind the stop it preceded


class Noted:
    """One session, opened to take facts; `save` writes what has changed."""

    def __init__(self, store: Store, session: str, state_dir: str, periods: Sequence[AwayPeriod], zone: Zone) -> None:
        self._store, self._state_dir, self._periods, self._zone = store, state_dir, periods, zone
        self._known = store.session(session)
        self.row = self._known or SessionRow(id=session)
        self._loaded_state = store.state(session)
        self.state: SessionState = self._loaded_state
        self.by = ""  # who started the turn, when the fact was a prompt
        self._lines: list[RecordLine] = []
        self._holds: list[Reservation] | None = None

    def period(self, now: Instant) -> AwayPeriod | None:
        """The away period that covers this session at an instant."""
        return period_of(self.row, self._periods, now)

    def line(self, at: Instant, kind: str, text: str = "", item: str = "") -> None:
        """One line for the away record, if the session is covered then."""
        period = self.period(at)
        if period is not None:
            self._lines.append(
                RecordLine(at=at, kind=kind, session=self.row.id, period=period.id, item=item, text=text[:500])
            )

    def lines_for(self, at: Instant, happenings: Iterable[Happening]) -> None:
        """The lines of what a verdict or an event brought with it."""
        for happening in happenings:
            self.line(at, happening.kind, happening.text, happening.item)

    def take(self, told: Fact, *, answering: bool = False) -> None:
        """Takes one fact; `answering`: of the event that is being answered, not one that was spooled.

        Facts of a subagent only show that the session lives.
        """
        at = int(told["t"])
        event: str = told["e"]
        late = event == "post-tool" and at <= self.row.last_event_at + LATE_TOOL
        self._who(told, at, event, late)
        if event in RENEWS:
            self._renew(at, by_stop=answering and event == "stop")
        self.state, happenings = life.heard(self.state, at, by_stop=event == "stop")
        self.lines_for(at, happenings)
        if told.get("agent") and event != "session-start":
            return
        if event != "notification" and not late:
            self.row = self.row.replace(idle_since=None, waits_on_person="", waits_since=None)
        if self.row.error and event in ("stop", "post-tool") and not late:
            self.line(at, "api_resumed", self.row.error)
            self.row = self.row.replace(error="", error_at=None, error_resets_at=None, errors_in_a_row=0)
        takes = _TAKES.get(event)
        if takes is not None:
            takes(self, told, at)

    def save(self) -> None:
        """Writes row, state and lines."""
        if self._lines:
            self._store.append(self._lines)
            self._lines = []
        if self.row != self._known:
            self._store.save_session(self.row)
            self._known = self.row
        if self.state != self._loaded_state:
            revision = self._loaded_state.revision
            self._store.save_state(self.state, expected_revision=revision)
            self.state = self._loaded_state = self.state.replace(revision=revision + 1)

    def _who(self, told: Fact, at: Instant, event: str, late: bool) -> None:
        row = self.row
        if (not row.root or event == "session-start") and isinstance(told.get("cwd"), str):
            root = checkout.find_root(told["cwd"])
            if row.root and root != row.root:
                self.line(at, "relocated", root)
            row = row.replace(root=root, copy=checkout.copy_key(root, self._state_dir))
        row = _started_by(row, told.get("pp"))
        ended = row.ended_at is not None and at <= row.ended_at  # a fact that came late is no sign of life
        self.row = row.replace(
            entrypoint=str(told.get("ep") or row.entrypoint)[:40],
            host_version=str(told.get("host") or row.host_version)[:100],
            permission_mode=str(told.get("mode") or row.permission_mode)[:40],
            first_event_at=row.first_event_at or at,
            last_event_at=max(row.last_event_at, at),
            last_event=row.last_event if late or told.get("agent") else event,
            ended_at=row.ended_at if ended else None,
            ended_why=row.ended_why if ended else "",
        )

    def _renew(self, at: Instant, *, by_stop: bool) -> None:
        """The session's own tools, prompts and stops renew what it holds."""
        if self._holds is None:
            self._holds = self._store.reservations_of(session=self.row.id) if self.row.id else []
        if not self._holds:
            return
        policy = None
        if by_stop:
            period = self.period(at)
            policy = policy_of(self._store, period) if period is not None else Policy()
        for held in reservations.renew_own(self._holds, at, policy):
            self._store.save_reservation(held)
            self._holds = [held if (one.place, one.item) == (held.place, held.item) else one for one in self._holds]
            self.line(at, "renewed", held.title, item=held.item)

    # --- one method an event -----------------------------------------------------------------

    def _prompt(self, told: Fact, at: Instant) -> None:
        by = told.get("by")
        if not isinstance(by, str):
            digest = told.get("digest")
            scheduled = next((w for w in self._store.wakes(self.row.id) if digest and w.prompt_digest == digest), None)
            by = "wake" if scheduled else "person"
            if scheduled is not None:
                self.line(at, "look", scheduled.id)
        elif by == "wake":
            self.line(at, "look", "kept")
        self.by = by
        self.line(at, "prompt", by)
        self.state = life.prompted(self.state, by)
        if by == "person":
            self.row = self.row.replace(chain_started_at=at)

    def _post_tool(self, told: Fact, at: Instant) -> None:
        self.state = life.tool_used(self.state, at)
        tool, given, answered = told.get("tool"), told.get("in"), told.get("out")
        given = given if isinstance(given, dict) else {}
        answered = answered if isinstance(answered, dict) else {}
        if tool in ("TodoWrite", "TaskCreate", "TaskUpdate"):
            before = self._store.host_todos(self.row.id)
            after = host_todos.fold(before, tool, given, answered, at)
            if after != before:
                self._store.save_host_todos(self.row.id, after)
        elif tool == "CronCreate" and answered.get("id"):
            self._wake_seen(_created(self.row.id, given, answered, at), at)
        elif tool == "ScheduleWakeup" and given.get("stop") is not True and _number(answered.get("scheduledFor")):
            self._wake_seen(_paced(self.row.id, given, answered, at), at)
        elif tool == "CronDelete":
            for wake in self._store.wakes(self.row.id):
                if wake.id == str(given.get("id")) and wake.gone_at is None:
                    self._store.save_wake(wake.replace(gone_at=at))

    def _wake_seen(self, wake: SeenWake, at: Instant) -> None:
        self._store.save_wake(wake)
        self.line(at, "wake_seen", f"{wake.id} {wake.schedule}".strip())

    def _stop_failure(self, told: Fact, at: Instant) -> None:
        from stopwarden.hosts import claude_limits

        error = str(told.get("error") or "unknown")
        resets = str(told.get("resets") or "")
        self.line(at, "error", f"{error}; {resets}" if resets else error)
        self.row = self.row.replace(
            error=error,
            error_at=at,
            error_resets_at=claude_limits.resets_at(resets, at, self._zone),
            errors_in_a_row=self.row.errors_in_a_row + 1,
        )

    def _notification(self, told: Fact, at: Instant) -> None:
        kind = told.get("type")
        if kind == "idle_prompt":
            self.row = self.row.replace(idle_since=self.row.idle_since or at)
            self.line(at, "idle")
        elif kind in ("permission_prompt", "agent_needs_input", "elicitation_dialog"):
            waits = "question" if kind == "elicitation_dialog" else "permission"
            self.row = self.row.replace(waits_on_person=waits, waits_since=self.row.waits_since or at)
            self.line(at, "waiting_permission", waits)

    def _session_start(self, told: Fact, at: Instant) -> None:
        self.line(at, "session_started", str(told.get("source") or ""))

    def _session_end(self, told: Fact, at: Instant) -> None:
        why = str(told.get("why") or "")
        self.line(at, "session_ended", why)
        self.row = self.row.replace(ended_at=at, ended_why=why)

    def _pre_compact(self, told: Fact, at: Instant) -> None:
        self.line(at, "compacted")
        self.state = life.compacted(self.state)


def _started_by(row: SessionRow, pid: object) -> SessionRow:
    """The row with which process its agent program is; what was seen once may have been something in between."""
    if isinstance(pid, bool) or not isinstance(pid, int) or not 1 < pid < 2**31:
        return row
    if pid == row.program:
        return row if row.program_seen > 1 else row.replace(program_seen=2)
    return row.replace(program=pid, program_started=str(machine.started_ticks(pid)), program_seen=1)


_TAKES = {
    "prompt": Noted._prompt,
    "post-tool": Noted._post_tool,
    "stop-failure": Noted._stop_failure,
    "notification": Noted._notification,
    "session-start": Noted._session_start,
    "session-end": Noted._session_end,
    "pre-compact": Noted._pre_compact,
}


def take_all(store: Store, told: Iterable[Fact], state_dir: str, periods: Sequence[AwayPeriod], zone: Zone) -> None:
    """Takes spooled facts, each session opened once. Call inside a transaction.

    One that cannot be taken is left out and recorded: kept in the spool it would fail every later event.
    """
    open_sessions: dict[str, Noted] = {}
    for one in told:
        session = one.get("s")
        if not isinstance(session, str) or not session:
            continue
        if session not in open_sessions:
            open_sessions[session] = Noted(store, session, state_dir, periods, zone)
        noted = open_sessions[session]
        row, state = noted.row, noted.state
        try:
            noted.take(one)
        except StopwardenError:
            raise
        except Exception as failed:
            noted.row, noted.state = row, state
            noted.line(row.last_event_at, "fault", f"an event could not be understood: {fault.named(failed)}")
    for noted in open_sessions.values():
        noted.save()


def _created(session: str, given: Fact, answered: Fact, at: Instant) -> SeenWake:
    """A wake as CronCreate's result tells of it: the host's own next fire, jitter included, and its age limit."""
    fires, age = _number(answered.get("nextFireAt")), _number(answered.get("maxAgeMs"))
    return SeenWake(
        session=session,
        id=str(answered["id"])[:60],
        schedule=str(given.get("cron") or "")[:200],
        kind="recurring" if answered.get("recurring", given.get("recurring", True)) else "one_shot",
        first_seen=at,
        fires_at=int(fires // 1000) if fires else None,
        fires_said_at=at if fires else None,
        max_age=int(age // 1000) if age else None,
        prompt_digest=str(given.get("digest") or ""),
    )


def _paced(session: str, given: Fact, answered: Fact, at: Instant) -> SeenWake:
    """A self-paced wake: its tool's result carries the time and no id."""
    fires = int((_number(answered.get("scheduledFor")) or 0) // 1000)
    return SeenWake(
        session=session,
        id=f"wakeup-{fires}",
        kind="self_paced",
        first_seen=at,
        fires_at=fires,
        fires_said_at=at,
        prompt_digest=str(given.get("digest") or ""),
    )


def _number(value: object) -> float | None:
    """A finite number a host gave, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e15 < value < 1e15:
        return None
    return float(value)
