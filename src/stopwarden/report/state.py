"""What one session is doing, told from what is stored of it: the state and one plain sentence.

Theory of operation. Hooks say when something happened, never that nothing will; so a state is an
inference from the last event, and every branch here answers one question: *will this session go on
by itself?* In a turn it goes on (`working`) until nothing has been heard for too long (`silent`,
then `stalled`). At rest the last verdict says why it rests, and only a look still to come is
`waiting`: once the latest time of that look and a margin have passed without an event it is
`stalled`. A turn that ended in an error, a dialog, plan mode or an idle prompt makes no stop that
anyone could block, so these are told from their own marks. What is unknown counts as work owed.

Pure: rows and an instant in, words out. Reading a state never changes it. May not live here: how a
page is laid out, where the facts come from.
"""

from __future__ import annotations

from stopwarden.core.bounds import LEASE_DEFAULT, MISSED_LOOK_AFTER, ONE_SHOT_GRACE, SILENT_AFTER
from stopwarden.core.record import Record
from stopwarden.report.moments import length, moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from stopwarden.core.events import AwayPeriod, Instant, Mode, SessionState, Zone
    from stopwarden.store.port import SessionRow, VerdictRow

    Word = Literal[
        "working", "silent", "waiting", "waiting_on_you", "stopped", "stalled", "done", "ended", "off", "not_covered"
    ]

STALLED_AFTER = LEASE_DEFAULT  # no event for that long in a turn: no tool runs so long without a sign of life
TURN_EVENTS = ("prompt", "pre-tool", "post-tool", "permission", "pre-compact")  # a turn is running
CONTINUED = ("clear", "resume")  # the conversation went on under another id

ERRORS = {
    "rate_limit": ("usage limit", ""),
    "overloaded": ("the model was overloaded", ""),
    "server_error": ("the provider failed", ""),
    "authentication_failed": ("the login was refused", "Log in again there"),
    "oauth_org_not_allowed": ("the login was refused", "Log in again there"),
    "billing_error": ("the account cannot be charged", "Mend the account"),
    "model_not_found": ("its model is not available", "Choose another model there"),
    "invalid_request": ("the provider refused the request", "Look at the error there"),
    "max_output_tokens": ("the answer grew too long", ""),
}
DIALOGS = {
    "permission": ("a permission prompt", "Answer it in that session"),
    "question": ("a question", "Answer it in that session"),
    "plan": ("a plan to approve", "Approve it there, or leave plan mode"),
}
TYPE_CONTINUE = "Open it and type: continue"


class Standing(Record):
    """One session's state at one moment. `text` is one plain sentence; `act` what the person can do, or ""."""

    session: str
    name: str
    word: Word
    text: str
    act: str = ""
    needs_you: bool = False
    since: Instant | None = None
    next_look: Instant | None = None
    blocked: int = 0  # times in this away period
    blocked_in_a_row: int = 0  # of those, the last ones without progress
    cause: str = ""  # why it rests or may not go on, as one word: "missed_look", "silent", "error", …


class Known(Record):
    """All that is known of one session when its state is asked for."""

    row: SessionRow
    state: SessionState
    period: AwayPeriod | None  # the away period that holds for it
    verdict: VerdictRow | None = None  # its last one
    mode: Mode = "on"
    owes: int | None = None  # items it owes now, where that can be told
    wake_at: Instant | None = None  # the next fire of a wake it is known to have, look or not
    kept: bool = False  # a living keeper will wake it
    keeper_gone: bool = False  # one was to keep its look, and its process is gone
    declared: Instant | None = None  # the look that it declared itself
    declared_counts: bool = False  # and somebody will keep it
    woken_at: Instant | None = None  # when a keeper last woke it
    installed_at: Instant = 0  # when the hooks were installed
    name: str = ""


def standing(known: Known, now: Instant, zone: Zone) -> Standing:
    """The session's state at `now`, with times local to `zone`."""
    found = _Telling(known, now, zone).found()
    if known.mode == "observe" and found.word not in ("ended", "not_covered"):
        return found.replace(text=f"{found.text} Observed only: no stop is blocked.")
    return found


class _Telling:
    """One session at one moment; each method answers for one way of resting, or None where it is not that."""

    def __init__(self, known: Known, now: Instant, zone: Zone) -> None:
        self.known, self.now, self.zone = known, now, zone
        self.row, self.state = known.row, known.state
        period = known.period
        verdict = known.verdict
        judged = verdict is not None and period is not None and verdict.at >= period.since
        self.verdict = verdict if judged else None
        self.counts_hold = period is not None and self.state.period == period.id

    def found(self) -> Standing:
        return (
            self._ended()
            or self._off()
            or self._not_covered()
            or self._at_a_dialog()
            or self._in_a_turn()
            or self._just_woken()
            or self._after_an_error()
            or self._at_rest()
        )

    # --- sayings

    def _is(
        self,
        word: Word,
        text: str,
        act: str = "",
        *,
        needs: bool = False,
        since: Instant | None = None,
        look: Instant | None = None,
        cause: str = "",
    ) -> Standing:
        return Standing(
            session=self.row.id,
            name=self.known.name or self.row.title or self.row.id[:8],
            word=word,
            text=text,
            act=act,
            needs_you=needs,
            since=since,
            next_look=look,
            cause=cause,
            blocked=self.state.period_blocks if self.counts_hold else 0,
            blocked_in_a_row=self.state.blocks if self.counts_hold else 0,
        )

    def _at(self, instant: Instant) -> str:
        return moment(instant, self.zone, self.now)

    @property
    def _may_owe(self) -> bool:
        """Unknown is never nothing."""
        return self.known.owes is None or self.known.owes > 0

    @property
    def _owing(self) -> str:
        owes = self.known.owes
        return "" if not owes else f" with {owes} item{'s' if owes > 1 else ''} owed"

    # --- nothing will come from it, or nothing is asked of it

    def _ended(self) -> Standing | None:
        row = self.row
        if row.ended_at is None or (row.last_event != "session-end" and row.last_event_at > row.ended_at):
            return None
        at = self._at(row.ended_at)
        if row.ended_why in CONTINUED:
            return self._is("ended", f"Went on as another conversation at {at}.", since=row.ended_at)
        covered = self.known.period is not None and self.known.mode != "off"
        if not covered or self.known.owes == 0 or (self.verdict is not None and self.verdict.kind == "done"):
            return self._is("ended", f"Closed at {at}.", since=row.ended_at)
        if self.known.declared_counts and (look := self.known.declared) is not None and look > self.now:
            text = f"Closed at {at}; it will be resumed at {self._at(look)}, the look it declared."
            return self._is("waiting", text, since=row.ended_at, look=look)
        why = f" ({row.ended_why})" if row.ended_why and row.ended_why != "other" else ""
        act = "Open it again (claude --resume)"
        text = f"Closed at {at}{why}{self._owing}."
        return self._is("stopped", text, act, needs=True, since=row.ended_at, cause="closed")

    def _off(self) -> Standing | None:
        if self.known.mode != "off":
            return None
        return self._is("off", "Its stops are not judged.", "stopwarden on")

    def _not_covered(self) -> Standing | None:
        row = self.row
        if row.last_event_at <= 0:
            return self._is("not_covered", "Its hook was never seen.", "Restart it", needs=True)
        if row.last_event_at < self.known.installed_at:
            return self._is("not_covered", "Its hook was not seen since the install.", "Restart it", needs=True)
        if self.known.period is None:
            return self._is("not_covered", "You are not away for it: it may stop as it likes.")
        return None

    def _at_a_dialog(self) -> Standing | None:
        row = self.row
        since = row.waits_since if row.waits_since is not None else row.last_event_at
        went_on = row.last_event in ("prompt", "post-tool", "stop", "stop-failure") and row.last_event_at > since
        if row.waits_on_person not in DIALOGS or went_on:
            return None
        what, act = DIALOGS[row.waits_on_person]
        if row.waits_on_person == "plan":
            text = f"Held: plan mode since {self._at(since)}."
        else:
            text = f"Frozen by {what} since {self._at(since)} ({length(self.now - since)})."
        return self._is("waiting_on_you", text, act, needs=True, since=since, cause=row.waits_on_person)

    # --- in a turn

    def _in_a_turn(self) -> Standing | None:
        row, verdict = self.row, self.verdict
        if row.last_event in TURN_EVENTS:
            begun = True
        elif row.last_event == "stop":
            last = self.known.verdict  # of an earlier period too: the turn that a block continued goes on
            begun = last is not None and last.kind == "block" and last.at >= row.last_event_at - 1
        elif row.last_event in ("session-start", "notification"):  # a compaction, or a resume; some notice
            rested = max(row.error_at or 0, verdict.at if verdict is not None and verdict.kind != "block" else 0)
            begun = row.idle_since is None and (row.chain_started_at > rested or self.state.wake_started)
        else:
            begun = False
        if not begun:
            return None
        return self._past_its_last_block() or self._heard_lately()

    def _past_its_last_block(self) -> Standing | None:
        """The block that reached a bound, and nothing since: the host let it stop."""
        quiet = self.now - self.row.last_event_at
        if self.row.last_event != "stop" or not (self.counts_hold and self.state.bound) or quiet < ONE_SHOT_GRACE:
            return None
        return self._stopped_at_a_bound(self.row.last_event_at)

    def _heard_lately(self) -> Standing:
        heard, quiet = self._at(self.row.last_event_at), self.now - self.row.last_event_at
        look = self._look_to_come()
        if quiet >= STALLED_AFTER:
            text = f"In a turn, but nothing was heard since {heard} ({length(quiet)})."
            return self._is(
                "stalled",
                text,
                "Look at it: a dialog may be open",
                needs=True,
                since=self.row.last_event_at,
                cause="silent",
            )
        if quiet >= SILENT_AFTER:
            text = f"Nothing was heard since {heard} ({length(quiet)}): a long tool, or it was interrupted."
            return self._is(
                "silent",
                text,
                "Look at it if that is not expected",
                since=self.row.last_event_at,
                look=look,
                cause="silent",
            )
        if self.row.permission_mode == "plan":
            text = "Plans only: plan mode will hold it at its next stop."
            return self._is("working", text, "Leave plan mode there", since=self.row.chain_started_at or None)
        return self._is("working", f"Heard {length(quiet)} ago.", since=self.row.chain_started_at or None, look=look)

    def _look_to_come(self) -> Instant | None:
        ahead = [at for at in (self.state.next_look, self.known.wake_at) if at is not None and at > self.now]
        return min(ahead, default=None)

    # --- at rest

    def _just_woken(self) -> Standing | None:
        woken = self.known.woken_at
        if woken is None or woken < self.row.last_event_at:
            return None
        if self.now <= woken + MISSED_LOOK_AFTER:
            return self._is("working", f"Woken by the keeper at {self._at(woken)}.", since=woken)
        text = f"The keeper woke it at {self._at(woken)}, and nothing came."
        return self._is("stalled", text, TYPE_CONTINUE, needs=True, since=woken, cause="not_woken")

    def _after_an_error(self) -> Standing | None:
        row = self.row
        if not row.error or row.error_at is None:
            return None
        if self.verdict is not None and self.verdict.at > row.error_at:
            return None
        what, act = ERRORS.get(row.error, ("an error of the provider", ""))
        since, reset = row.error_at, row.error_resets_at
        if reset is not None and self.now > reset + MISSED_LOOK_AFTER:
            text = f"The limit window passed at {self._at(reset)}, but the session did not resume."
            return self._is("stalled", text, TYPE_CONTINUE, needs=True, since=since, cause="error")
        text = f"Its turn ended at {self._at(since)}: {what}"
        if reset is not None and reset > self.now:
            text += f" until {self._at(reset)}"
        if self.known.kept and not act:
            return self._is("waiting", f"{text}. It will be woken again.", since=since, look=self._look_to_come())
        wake = self._look_to_come()
        if wake is not None and not act:
            return self._is("waiting", f"{text}. Its wake comes at {self._at(wake)}.", since=since, look=wake)
        missed = self._missed_look()
        if missed is not None and not act:
            return missed
        text = f"{text}. Nothing will wake it."
        return self._is("stopped", text, act or TYPE_CONTINUE, needs=True, since=since, cause="error")

    def _at_rest(self) -> Standing:
        verdict = self.verdict
        if verdict is None and self.state.next_look is not None:
            return self._waiting()  # a wait that began before this period
        if verdict is None:
            return self._idle(f"Idle since {self._at(self.row.idle_since or self.row.last_event_at)}")
        if verdict.kind == "waiting":
            return self._waiting()
        at = self._at(verdict.at)
        if verdict.kind == "done":
            return self._is("done", f"Finished at {at}: nothing is left on its list.", since=verdict.at)
        if verdict.kind == "plan_mode":
            act = DIALOGS["plan"][1]
            text = f"Held: plan mode since {at}."
            return self._is("waiting_on_you", text, act, needs=True, since=verdict.at, cause="plan")
        if verdict.kind == "waiting_on_person":
            text = f"All that is left waits on you since {at}."
            return self._is(
                "waiting_on_you", text, "stopwarden parked", needs=True, since=verdict.at, cause="waits_for_you"
            )
        if verdict.kind == "cancelled":
            text = f"Stopped at {at}: you cancelled it, and it is left alone until a prompt of yours{self._owing}."
            return self._is("stopped", text, TYPE_CONTINUE, needs=self._may_owe, since=verdict.at)
        if verdict.kind in ("bound_reached", "block"):
            return self._stopped_at_a_bound(verdict.at)
        if verdict.kind == "error":
            text = f"Stopped at {at}: Stopwarden itself failed and let it go."
            return self._is("stopped", text, "stopwarden doctor", needs=True, since=verdict.at, cause="our_fault")
        why = {"observed": "it was only observed", "off": "it was switched off"}.get(verdict.kind, "it was left alone")
        text = f"Stopped at {at}: {why}{self._owing}."
        return self._is("stopped", text, TYPE_CONTINUE, needs=self._may_owe, since=verdict.at)

    def _waiting(self) -> Standing:
        look = self.state.next_look
        if missed := self._missed_look():
            return missed
        if look is None:
            text = f"No look is known to come{self._owing}."
            return self._is("stopped", text, TYPE_CONTINUE, needs=self._may_owe, cause="idle")
        if look > self.now:
            return self._is(
                "waiting", f"Looks again at {self._at(look)} by itself.", since=self.row.last_event_at, look=look
            )
        text = f"Its look of {self._at(look)} is due now."
        return self._is("waiting", text, since=self.row.last_event_at, look=look)

    def _missed_look(self) -> Standing | None:
        state = self.state
        latest = state.next_look_latest if state.next_look_latest is not None else state.next_look
        if latest is None or self.now <= latest + MISSED_LOOK_AFTER:
            return None
        look = state.next_look if state.next_look is not None else latest
        text = f"Was to look at {self._at(look)}, and nothing came since {self._at(self.row.last_event_at)}."
        if self.known.kept:
            return self._is(
                "stalled",
                text,
                "The keeper should have woken it: stopwarden doctor",
                needs=True,
                since=look,
                cause="missed_look",
            )
        return self._is("stalled", text, TYPE_CONTINUE, needs=True, since=look, cause="missed_look")

    def _stopped_at_a_bound(self, at: Instant) -> Standing:
        bound = self.state.bound if self.counts_hold else ""
        why = BOUNDS.get(bound, "it was sent on as often as is allowed").format(blocks=self.state.blocks)
        text = f"Stopped at {self._at(at)}{self._owing}: {why}."
        return self._is("stopped", text, TYPE_CONTINUE, needs=True, since=at, cause="bound")

    def _idle(self, text: str) -> Standing:
        text = f"{text}: no stop will come from it."
        since = self.row.idle_since or self.row.last_event_at
        return self._is("stopped", text, "Type a prompt there", needs=True, since=since, cause="idle")


BOUNDS = {
    "blocks_without_tools": "{blocks} times in a row it was sent on and did nothing",
    "blocks_without_progress": "{blocks} times in a row it was sent on without progress",
    "blocks_an_hour": "it was sent on too often within an hour",
    "blocks_a_period": "it was sent on as often as one away period allows",
    "wall_time": "its time was used up",
    "tokens": "its tokens were used up",
}
