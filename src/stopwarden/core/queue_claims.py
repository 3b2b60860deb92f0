"""Who may go next: the claim table of the queue's owner, the hint of a drain, and background turns.

A chain that wants to go on by itself claims the next place in order. The answer is the point at
which the order is decided: a prompt admitted before it wins, one admitted after it comes after the
continuation. So the table is asked in one step, over what the queue holds at that instant.
"""

from __future__ import annotations

from stopwarden.core.queue_move import Move, is_owner, live_queued, running
from stopwarden.core.queue_words import (
    AnswerClaim,
    AnswerTurn,
    AskClaim,
    ChildCall,
    EndTurn,
    Queue,
    StartTurn,
)
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Owner = Literal["none", "current", "other"]
    Wait = Literal["keep", "set", "clear_own"]


class ClaimFacts(Record):
    """What the table looks at."""

    hosted: bool  # the session is this one, open, and hosted by the child that asks
    owner: Owner  # the id given is none, that of the turn in progress, or any other
    rival: bool  # another live prompt runs
    queued: bool  # a live prompt is queued
    busy: bool  # any prompt is live or has not settled, or a background turn is in progress


class ClaimRow(Record):
    """One line of the table; a condition of None holds for any value."""

    rule: str
    hosted: bool | None = True
    owner: Owner | None = None
    rival: bool | None = None
    queued: bool | None = None
    busy: bool | None = None
    claimed: bool = False
    has_queued_prompt: bool = False
    wait: Wait = "keep"

    def fits(self, facts: ClaimFacts) -> bool:
        """Whether this line is the one for these facts."""
        return all(
            getattr(self, name) is None or getattr(self, name) == getattr(facts, name) for name in ClaimFacts.fields
        )


# Exactly one line fits any facts (tests/test_queue.py tries them all).
# fmt: off
CLAIM_TABLE = (
    ClaimRow(rule="claim.foreign_session", hosted=False),
    ClaimRow(rule="claim.not_the_owner", owner="other"),
    ClaimRow(rule="claim.competing_prompt", owner="current", rival=True),
    ClaimRow(rule="claim.queued", owner="current", rival=False, queued=True, has_queued_prompt=True, wait="set"),
    ClaimRow(rule="claim.granted", owner="current", rival=False, queued=False, claimed=True, wait="clear_own"),
    ClaimRow(rule="claim.ownerless_busy", owner="none", busy=True),
    ClaimRow(rule="claim.ownerless_idle", owner="none", busy=False, claimed=True),
)
# fmt: on


def hosts(state: Queue, call: ChildCall) -> bool:
    """Whether the child that calls hosts this session, and the session is open."""
    return call.session == state.session and call.child == state.child and not state.closing


def claim_facts(state: Queue, ask: AskClaim) -> ClaimFacts:
    """What the claim table looks at, for one claim."""
    now = running(state)
    owner: Owner = "none" if ask.prompt is None else "current" if is_owner(state, ask.prompt) else "other"
    return ClaimFacts(
        hosted=hosts(state, ask),
        owner=owner,
        rival=now is not None and now.live and now.prompt != ask.prompt,
        queued=bool(live_queued(state)),
        busy=bool(state.entries) or state.turn is not None,
    )


def claim(move: Move, ask: AskClaim) -> None:
    """Answer a claim by the table."""
    facts = claim_facts(move.state, ask)
    row = next(row for row in CLAIM_TABLE if row.fits(facts))
    if row.wait == "set":
        move.set(wait_owner=ask.prompt)
    elif row.wait == "clear_own" and move.state.wait_owner == ask.prompt:
        move.set(wait_owner=None)
    move.do(
        AnswerClaim,
        request=ask.request,
        rule=row.rule,
        claimed=row.claimed,
        has_queued_prompt=row.has_queued_prompt,
    )


# Why a background turn may not begin; the first that holds is the answer.
TURN_REFUSALS = (
    ("turn.foreign_session", lambda state, ask: not hosts(state, ask)),
    ("turn.held_after_cancel", lambda state, ask: state.background_held),
    ("turn.overtaken_by_cancel", lambda state, ask: ask.epoch != state.cancel_epoch),
    ("turn.prompt_first", lambda state, ask: bool(state.entries)),
    ("turn.cancel_under_way", lambda state, ask: bool(state.forwards)),
    ("turn.another_turn", lambda state, ask: state.turn is not None and state.turn != ask.turn),
)


def start_turn(move: Move, ask: StartTurn) -> None:
    """Let a background turn begin, as an owner like a prompt, unless a prompt or a cancel was first."""
    rule = next((rule for rule, holds in TURN_REFUSALS if holds(move.state, ask)), "")
    if not rule:
        move.set(turn=ask.turn)
    move.do(AnswerTurn, request=ask.request, rule=rule or "turn.accepted", accepted=not rule)


def end_turn(move: Move, ask: EndTurn) -> None:
    """A background turn is over; a word about any other turn is late and changes nothing."""
    ours = ask.session == move.state.session and ask.child == move.state.child
    if ours and move.state.turn == ask.turn:
        move.set(turn=None)
