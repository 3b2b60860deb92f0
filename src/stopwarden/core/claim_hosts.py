"""Hosts without a queue of prompts: how they answer a claim and a drain, and what an agent learns of them.

The full queue (`core/queue`) is what our daemon has, and what our agent keeps for a plain stdio
client. Other hosts have less, and each answers from the little it knows:

- a *channel bridge* (a chat room that talks to an agent) knows the sessions it has opened. It drops
  one in the same step in which it clears or retires it, or stops: no claim can come in between;
- the *desktop's shared agent* knows its current session; its fallback for calls it cannot place refuses;
- a *plain stdio client* (an editor) often does not know the methods at all. Then a claim is simply
  not granted, and drains are not asked for again (`HostCalls`).

All are values; every function answers a new one. May not live here: queues, time-outs themselves.
"""

from __future__ import annotations

from stopwarden.core.bounds import DRAIN_TIMEOUTS_MAX
from stopwarden.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    DrainCall = Literal["answered", "unimplemented", "timed_out", "failed"]


class HostClaim(Record):
    """A host's answer to a claim. Without a FIFO no prompt is ever queued."""

    claimed: bool
    rule: str
    has_queued_prompt: bool = False


class HostDrain(Record):
    """A host's answer to a drain: message texts in order."""

    messages: tuple[str, ...] = ()
    has_queued_prompt: bool = False


class Channel(Record):
    """A channel bridge and the sessions it has."""

    known: frozenset[str] = frozenset()
    stopped: bool = False


class Desktop(Record):
    """The desktop's shared agent: its current session and what was typed into it meanwhile."""

    current: str | None = None
    messages: tuple[tuple[str, str], ...] = ()  # (session, text), in order


class PlainStdio(Record):
    """An editor that speaks only the base protocol."""


Host = Channel | Desktop | PlainStdio


# --- a channel bridge ---------------------------------------------------------------------------


def opened(channel: Channel, session: str) -> Channel:
    """The channel works with this session from now on; a stopped bridge opens none."""
    return channel if channel.stopped else channel.replace(known=channel.known | {session})


def dropped(channel: Channel, session: str) -> Channel:
    """The session was cleared, or its loop retired: its claims are refused from this step on."""
    return channel.replace(known=channel.known - {session})


def stopped(channel: Channel) -> Channel:
    """The bridge stops: it owns nothing any more, for good."""
    return channel.replace(known=frozenset(), stopped=True)


# --- the desktop's shared agent -----------------------------------------------------------------


def switched(desktop: Desktop, session: str | None) -> Desktop:
    """Another session is the current one. What was typed for the old one waits there until the person is back."""
    return desktop.replace(current=session)


def typed(desktop: Desktop, text: str) -> Desktop:
    """A message for the current session; without one there is nowhere to put it, and nothing changes."""
    if desktop.current is None:
        return desktop
    return desktop.replace(messages=(*desktop.messages, (desktop.current, text)))


# --- claims and drains --------------------------------------------------------------------------


def _channel_claim(channel: Channel, session: str | None) -> HostClaim:
    known = session in channel.known
    return HostClaim(claimed=known, rule="host.known_session" if known else "host.unknown_session")


def _desktop_claim(desktop: Desktop, session: str | None) -> HostClaim:
    if session is None:
        return HostClaim(claimed=False, rule="host.no_session")
    current = session == desktop.current
    return HostClaim(claimed=current, rule="host.current_session" if current else "host.unknown_session")


# One line a host: None says that the method is not implemented.
CLAIMS: Mapping[type[Record], Callable[[Any, str | None], HostClaim | None]] = {
    Channel: _channel_claim,
    Desktop: _desktop_claim,
    PlainStdio: lambda host, session: None,
}


def claim(host: Host, session: str | None) -> HostClaim | None:
    """The host's answer to a claim for this session; `session` None is a call that no session can be found for.

    None: the host does not implement claims, which an agent treats as a refusal.
    """
    return CLAIMS[type(host)](host, session)


def drain(host: Host, session: str | None) -> tuple[Host, HostDrain | None]:
    """The host after a drain, and its answer; None: it does not implement drains."""
    if isinstance(host, PlainStdio):
        return host, None
    if isinstance(host, Desktop) and session is not None and session == host.current:
        ours = tuple(text for owner, text in host.messages if owner == session)
        return host.replace(messages=tuple(one for one in host.messages if one[0] != session)), HostDrain(messages=ours)
    return host, HostDrain()


# --- what the agent learns ----------------------------------------------------------------------


class HostCalls(Record):
    """What an agent has learned about its host's drain in this session."""

    drain_unavailable: bool = False  # latched: never asked again
    timeouts: int = 0  # in a row


def after_drain(calls: HostCalls, came: DrainCall) -> HostCalls:
    """A method that does not exist latches at once, time-outs after three in a row; an answer starts the count anew."""
    if calls.drain_unavailable or came == "unimplemented":
        return calls.replace(drain_unavailable=True)
    if came == "timed_out":
        timeouts = calls.timeouts + 1
        return HostCalls(drain_unavailable=timeouts >= DRAIN_TIMEOUTS_MAX, timeouts=timeouts)
    return HostCalls() if came == "answered" else calls
