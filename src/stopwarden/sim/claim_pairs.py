"""Which events met which states of the claim protocol, on both sides; and why the others cannot meet.

A state is named by what the protocol is about: whose turn it is, what is asked, who waits for whom.
The first name that fits is the state's. `unmet` are the pairs that no history came to; UNREACHABLE
explains each of them, and a test holds the two equal. May not live here: what happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import chain as chains
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.queue_move import live_queued, running

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from stopwarden.core.record import Record
    from stopwarden.core.turn_state import Session

SESSION_STATES = ("overtaken", "asked", "abandoned", "yielded", "held back", "armed", "at ease")
SESSION_EVENTS = (
    *("claim granted", "claim queued", "claim refused", "deadline of a claim", "deadline of a drain"),
    *("drained nothing", "drained words", "drained, a prompt waits", "released", "prompt", "cancel"),
    *("plan mode on", "plan mode off", "hint", "hooks allow", "hooks block", "stream begins", "reply ends"),
)
OWNER_STATES = ("gave way", "a prompt waits", "running", "unwinding, a prompt waits", "unwinding", "empty")
OWNER_EVENTS = ("claim", "drain", "turn over", "cancel taken", "prompt", "message", "taken out", "cancel")


def session_state(session: Session) -> str:
    """The session's side. *overtaken*: a release came before the answer; *abandoned*: nobody waits for the answer."""
    chain, turn = session.chain, session.turn
    if chains.tombstones(chain):
        return "overtaken"
    if chain.claims:
        waits = turn is not None and turn.waiting is not None and turn.waiting.what == "claim"
        return "asked" if waits else "abandoned"
    if chain.priority:
        return "yielded"
    if chain.guard.suspended:
        return "held back"
    return "armed" if chain.guard.armed else "at ease"


def session_event(event: Record, session: Session) -> str:
    """What the session hears, as the protocol sees it; "" for what does not concern it."""
    waiting = session.turn.waiting if session.turn is not None else None
    match event:
        case ev.ClaimAnswered():
            return f"claim {chains.read_claim_answer(event.claimed, event.queued)}"
        case ev.Tick():
            return f"deadline of a {waiting.what}" if waiting is not None else ""
        case ev.DrainAnswered():
            return "drained words" if event.parts else "drained, a prompt waits" if event.hint else "drained nothing"
        case ev.ModeChanged():
            return f"plan mode {'on' if event.plan else 'off'}"
        case ev.HookAnswered():
            return "" if event.failed else "hooks block" if event.block else "hooks allow"
        case _:
            return {
                ev.QueueReleased: "released",
                ev.PromptOffered: "prompt",
                ev.Cancelled: "cancel",
                ev.PromptQueuedSeen: "hint",
                ev.ProviderAccepted: "stream begins",
                ev.StreamEnded: "reply ends",
            }.get(type(event), "")


def owner_state(queue: q.Queue) -> str:
    """The owner's side. *gave way*: a chain has yielded to the prompt that waits; *unwinding*: it was cancelled."""
    now, waits = running(queue), bool(live_queued(queue))
    if queue.wait_owner is not None:
        return "gave way"
    if now is None:
        return "empty"
    if now.live:
        return "a prompt waits" if waits else "running"
    return "unwinding, a prompt waits" if waits else "unwinding"


def owner_event(event: Record) -> str:
    """What the owner hears; "" for what does not concern the protocol."""
    return {
        q.AskClaim: "claim",
        q.AskDrain: "drain",
        q.PromptSettled: "turn over",
        q.CancelForwarded: "cancel taken",
        q.Admit: "prompt",
        q.PostMessage: "message",
        q.RemovePrompt: "taken out",
        q.CancelRunning: "cancel",
    }.get(type(event), "")


# Why a pair cannot meet: the side, states (empty: all), events, and the reason. The first line that fits explains it.
UNREACHABLE: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...] = (
    (
        "session",
        ("asked",),
        ("deadline of a drain", "stream begins", "reply ends"),
        "a turn waits for one thing at a time",
    ),
    ("session", ("asked",), ("prompt",), "the owner runs the next prompt when the one before has settled"),
    ("session", ("overtaken",), ("claim refused",), "what was overtaken had been answered with a wait, not refused"),
    ("session", ("yielded",), ("claim granted", "claim queued", "claim refused"), "no claim is under way any more"),
    ("session", (), ("deadline of a claim",), "only a claim that is waited for has a deadline"),
    ("session", ("at ease",), ("deadline of a drain",), "without a list nothing is drained at a stop"),
    ("session", ("armed", "at ease"), ("plan mode off",), "entering plan mode has held the chain back"),
    ("owner", (), ("prompt",), "two prompts at a time are the bound"),
    ("owner", (), ("cancel taken",), "only the turn that was cancelled takes a cancel"),
    ("owner", (), ("taken out",), "no prompt waits"),
    ("owner", ("unwinding", "unwinding, a prompt waits"), ("cancel",), "a turn is cancelled once"),
    ("owner", ("empty",), ("cancel", "message"), "nothing runs"),
    ("owner", ("empty",), ("claim", "drain", "turn over"), "what a turn asks comes before its end, and that once"),
)


def explained(unmet: Iterable[tuple[str, str, str]]) -> dict[str, list[tuple[str, str, str]]]:
    """Pairs by the reason for which they cannot meet; those without one under "not explained"."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for side, state, event in unmet:
        why = next(
            (
                why
                for of, states, events, why in UNREACHABLE
                if of == side and event in events and (not states or state in states)
            ),
            "not explained",
        )
        found.setdefault(why, []).append((side, state, event))
    return found


def every_pair() -> tuple[tuple[str, str, str], ...]:
    """All pairs of a state and an event: the side, the state, the event."""
    session = [("session", state, event) for state in SESSION_STATES for event in SESSION_EVENTS]
    return (*session, *(("owner", state, event) for state in OWNER_STATES for event in OWNER_EVENTS))


def unmet(met: Counter[tuple[str, str, str]]) -> tuple[tuple[str, str, str], ...]:
    """The pairs that no history came to."""
    return tuple(pair for pair in every_pair() if not met[pair])
