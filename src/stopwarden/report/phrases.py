"""How the facts of a night are said: one sentence for each kind of cause, trouble and question.

Every warning ends with what to do. Times are local readings of the page's zone, names are the
session's own. May not live here: which facts are shown, and where (see `text`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.report.moments import length
from stopwarden.report.reading import count, plain
from stopwarden.report.state import BOUNDS, ERRORS, TYPE_CONTINUE
from stopwarden.report.stories import HOLDS
from stopwarden.report.timeline import clock_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopwarden.core.events import Instant
    from stopwarden.report.account import Account, BoundReached, Failure, SessionAccount, StallTold, Trouble
    from stopwarden.report.reading import LocalTimes
    from stopwarden.report.stories import Move, Story
    from stopwarden.report.timeline import Look, Span
    from stopwarden.store.port import Parked
    from stopwarden.work.promises import Timed

CAUSES = {
    "missed_look": "a look did not come",
    "limit": "usage limit",
    "silent": "nothing heard",
    "permission": "frozen by a permission prompt",
    "question": "frozen by a question",
    "plan_mode": "plan mode",
    "not_heard": "never heard of",
    "not_there": "not open yet",
    "not_covered": "not covered",
    "no_turn": "no turn was running",
    "no_stop_seen": "interrupted, or its end was not seen",
    "bound": "sent on as often as is allowed",
    "ended": "closed",
    "cancelled": "you cancelled it",
    "waits_for_you": "all that was left waits for you",
    "our_fault": "Stopwarden failed and let it stop",
    "off": "switched off",
    "observe": "only observed",
    "not_away": "not away for it",
}
MOVES = {
    "item_added": "added",
    "item_doing": "begun",
    "item_done": "done",
    "item_parked": "set aside",
    "item_removed": "taken off",
    "item_handed_back": "handed back",
    "item_reopened": "opened again",
    "reserved": "held by",
    "released": "given back by",
    "hold_lost": "lost by",
    "passed_over": "left alone by",
}
SPENT = {
    "working": "worked",
    "waiting": "waited",
    "lost": "lost",
    "stopped": "stopped",
    "finished": "nothing left",
    "unknown": "not recorded",
}
ENDED = {
    "time": "",
    "back": "you came back",
    "done": "the list was done",
    "prompt": "you typed a prompt",
    "replaced": "you went away anew",
}


STALLS = {
    "missed_look": "its look of {since} did not come",
    "silent": "nothing was heard since {since}",
    "permission": "frozen by a permission prompt since {since}",
    "question": "frozen by a question since {since}",
    "plan": "held in plan mode since {since}",
    "idle": "idle since {since} without a wake",
    "bound": "stopped at a bound at {since}",
    "closed": "closed at {since} with work owed",
    "not_woken": "the keeper woke it at {since}, and nothing came",
    "keeper_gone": "its keeper was gone",
    "lost_hold": "lost its hold on {detail} at {since}",
    "waits_for_you": "all that was left waited for you since {since}",
    "our_fault": "Stopwarden failed and let it stop at {since}",
    "empty_promise": "the promise {detail} was not kept by {since}",
    "missed_timed_look": "the look {detail} of {since} was not made",
}


class Phrases:
    """Says the facts of one account."""

    def __init__(self, account: Account, times: LocalTimes, names: Mapping[str, str]) -> None:
        self.account, self.times, self.names = account, times, names

    def question(self, parked: Parked) -> list[str]:
        """A question the agent asked, what it chose meanwhile, and how to answer."""
        asked = f"asked {self.times.clock(parked.at)}" + (f", {parked.times} times" if parked.times > 1 else "")
        chosen = f" · chosen meanwhile: {plain(parked.chosen, 80)}" if parked.chosen else ""
        lines = [f'"{plain(parked.text, 120)}"  {asked}{chosen}']
        if parked.options:
            lines.append("  " + " / ".join(plain(option, 40) for option in parked.options[:6]))
        return [*lines, f"  stopwarden answer {parked.id} TEXT"]

    def needs_you(self, one: SessionAccount) -> list[str]:
        """What keeps this session from going on at the end, where that is the person's to mend."""
        last, name = one.now, self.names[one.id]
        went_on = not self.account.running and one.heard_at > self.account.until
        if last is None or last.until < self.account.until or went_on:
            return []
        since = self.times.clock(last.since)
        if last.cause in ("permission", "question"):
            return [f"{name}: {CAUSES[last.cause]} since {since}. Answer it in that session."]
        if last.cause == "plan_mode":
            return [f"{name}: held in plan mode since {since}. Approve the plan there, or leave plan mode."]
        if last.cause == "limit" and last.resets_at is not None and last.resets_at <= self.account.until:
            passed = self.times.clock(last.resets_at)
            return [f"{name}: the usage limit passed at {passed}, but the session did not resume. {TYPE_CONTINUE}."]
        if last.cause in ("limit", "api_error"):
            return [f"{name}: {self.cause(last)}. {ERRORS.get(_error(last), ('', ''))[1] or TYPE_CONTINUE}."]
        if last.cause in ("missed_look", "silent") and self.account.running:
            return [f"{name}: {self.cause(last)}. Look at it."]
        if last.cause == "bound":
            return [f"{name}: stopped at {since}, {self.bound(one.id)}. {TYPE_CONTINUE}."]
        return []

    def trouble(self, trouble: Trouble) -> str:
        """What went wrong with us, the record or the machine, and what to do or to believe."""
        if trouble.kind == "forgotten":
            return self._forgotten(trouble)
        at, what = self.times.clock(trouble.at), plain(trouble.text, 160).rstrip(".")
        name = self.names.get(trouble.session, "")
        times = f" ({trouble.times} times)" if trouble.times > 1 and trouble.kind != "record_gap" else ""
        if trouble.kind == "fault":
            return f"{at} Stopwarden itself failed{times}: {what}. Run: stopwarden doctor"
        if trouble.kind == "store_damaged":
            lost = f"could not be read and was set aside: {what}" if what else "was gone, and a new one was begun"
            return f"{at} The database {lost}. What it held is not in this report."
        if trouble.kind == "payload_damaged":
            return f"{at} {name}: what the agent program reported could not be read whole{times}."
        if trouble.kind == "clock_stepped":
            return f"{at} The clock was set{_step(trouble.text)}: times around it are not exact."
        if trouble.kind == "not_covered":
            later = any(one.id == trouble.session and one.verdicts for one in self.account.sessions)
            since = " It was heard of later." if later else ""
            return f"Not covered when you left: {what or name}.{since}"
        if trouble.kind == "switched":
            return f"{at} Switched {what}."
        if trouble.kind == "relocated":
            return f"{at} {name} moved to another folder: {what}"
        if trouble.kind == "checkout_gone":
            return f"{at} {name}: {what} was no longer there, so nothing of it was owed any more."
        if trouble.kind == "verdict_unreadable":
            return f"{at} {name}: the record of stop {what} cannot be read; it is counted, not explained."
        between = self.times.span(trouble.at, int(trouble.text))
        gone = count(trouble.times, "line of the record is gone", "lines of the record are gone")
        return f"{between} {gone}: what happened then is not known."

    def stalled(self, stall: StallTold) -> str:
        """A stall as it was recorded, and whether the watch resumed the session."""
        name, since = self.names.get(stall.session, stall.session[:8]), self.times.clock(stall.since)
        detail = plain(stall.detail, 80)
        what = STALLS.get(stall.kind, stall.kind.replace("_", " ")).format(since=since, detail=f'"{detail}"')
        if stall.kind == "error":
            what = f"{ERRORS.get(stall.detail, ('an error of the provider', ''))[0]} at {since}, and it did not go on"
        resumed = f"; resumed at {self.times.clock(stall.resumed_at)}" if stall.resumed_at is not None else ""
        return f"{self.times.clock(stall.at)} {name + ': ' if name else ''}{what}{resumed}"

    def timed(self, one: Timed) -> str:
        """A look or a promise of a list, and what became of it."""
        if one.at is None:
            return f'{one.kind} "{plain(one.text, 80)}" does not count: {plain(one.refused, 160)}'
        handled = {"look": "looked at", "promise": "kept"}[one.kind]
        late = "overdue" if one.is_overdue(self.account.now) else "to come"
        return f'{one.kind} {self.times.day_clock(one.at)} "{plain(one.text, 80)}": {handled if one.handled else late}'

    def _forgotten(self, trouble: Trouble) -> str:
        """What the person had forgotten of this time, which is not told."""
        gone = count(trouble.times, "entry of the record was", "entries of the record were")
        since, until = self.times.day_clock(trouble.at), self.times.day_clock(int(trouble.text))
        return f"{since} to {until} {gone} forgotten, as you had asked: what is told of that time is not all."

    def move(self, move: Move, story: Story) -> str:
        """What happened to an item, without when; of a hold, whose it was."""
        words = MOVES.get(move.kind, move.kind)
        if move.kind not in HOLDS:
            return words
        told = f"{words} {self.names.get(move.session, move.session[:8])}"
        if move.kind == "passed_over":
            holder = self.names.get(move.text, move.text[:8] if move.text != "the person" else "you")
            return f"{told}, since {holder} had it"
        return f"{told}, {move.text}" if move.text not in ("", story.title) else told

    def not_done_why(self, story: Story) -> str:
        """Why an item of tonight is not done."""
        when, why = self.when(story.at), f": {plain(story.why, 100)}" if story.why else ""
        if story.outcome == "handed_back":
            looks = count(story.looks, "wake") if story.looks else "several wakes"
            return f"handed back to you{when} after {looks} without progress"
        if story.outcome == "parked":
            return f"waits for {'something external' if story.waits_on == 'external' else 'another session'}{why}"
        if story.outcome in ("removed", "dropped"):
            return f"{'taken off the list' if story.outcome == 'removed' else 'dropped'} by the agent{when}{why}"
        return f"begun{when}, not finished" if story.outcome == "doing" else "not begun"

    def when(self, at: Instant | None) -> str:
        """ " 02:11" to follow a verb, "" where the record does not say."""
        return "" if at is None else f" {self.times.clock(at)}"

    def cause(self, span: Span) -> str:
        """Why a stretch of time was no work, and when."""
        ongoing = span.until >= self.account.until and self.account.running
        when = f"since {self.times.clock(span.since)}" if ongoing else self.times.span(span.since, span.until)
        return f"{self.why(span)} {when}"

    def why(self, span: Span) -> str:
        """Why a stretch of time was no work."""
        if span.cause == "missed_look" and span.look is not None:
            return f"the look of {self.times.clock(span.look)} did not come"
        if span.cause == "api_error":
            return ERRORS.get(_error(span), ("an error of the provider", ""))[0]
        if span.cause == "ended" and span.detail and span.detail != "other":
            return f"closed: {plain(span.detail, 30)}"
        return CAUSES.get(span.cause, span.cause.replace("_", " "))

    def stretch(self, span: Span) -> str:
        """One stretch of a session's time: when, what, how long, and why it was no work."""
        what = {"clock": "the clock was set forward", "finished": "nothing left", "unknown": "not recorded"}.get(
            span.kind, span.kind
        )
        look = f", next look {self.times.clock(span.look)}" if span.kind == "waiting" and span.look else ""
        why = f": {self.why(span)}" if span.cause and span.kind not in ("clock", "waiting", "unknown") else ""
        return f"{self.times.span(span.since, span.until)}  {what} {length(span.seconds)}{look}{why}"

    def look(self, look: Look) -> str:
        """A wake that opened a turn, and how that turn ended."""
        by = "the keeper woke it" if look.kept else "a wake came"
        error = f": {plain(look.error, 80)}" if look.error else ""
        return f"{self.times.clock(look.at)}  {by}: {look.outcome}{error}"

    def failed(self, failure: Failure) -> str:
        """A turn that ended in an error of the provider, and when the session went on."""
        named = ERRORS.get(failure.error.partition(";")[0].strip(), ("an error of the provider", ""))[0]
        what = CAUSES["limit"] if failure.limit else named
        if failure.resumed_at is None:
            return f"{what}; it did not go on"
        return f"{what}; it went on at {self.times.clock(failure.resumed_at)}"

    def let_stop(self, bound: BoundReached) -> str:
        """A bound that was reached, and what came of it."""
        went_on = (
            f"went on at {self.times.clock(bound.resumed_at)}" if bound.resumed_at is not None else "did not go on"
        )
        owed = "with work owed" if bound.owed else "with nothing owed, but no next look"
        name = self.names.get(bound.session, bound.session[:8])
        return f"{self.times.clock(bound.at)} {name} was let stop {owed}: {_bound_words(bound)}. It {went_on}."

    def bound(self, session: str) -> str:
        """The bound that a session reached last, in words."""
        reached = [bound for bound in self.account.bounds if bound.session == session]
        return _bound_words(reached[-1]) if reached else "sent on as often as is allowed"


def proof(story: Story) -> str:
    """Whether anything but the agent's own tick says that an item is done."""
    return "verified" if story.verified else "ticked, not verified"


def _error(span: Span) -> str:
    return span.detail.partition(";")[0].strip()


def _bound_words(bound: BoundReached) -> str:
    return BOUNDS.get(bound.bound, "sent on as often as is allowed").replace(
        "{blocks} times in a row it was", "again and again it was"
    )


def _step(text: str) -> str:
    step = clock_step(text)
    return f" {'forward' if step > 0 else 'back'} by {length(abs(step))}" if step else ""
