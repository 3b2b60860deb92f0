"""What any event but a stop does to a session's state.

Each function takes the state and gives the new one; `heard` comes first at every event, because an
event is also the proof that a session lives: a next look that came too late is *missed*, and a
session recorded as stopped has *resumed*.
"""

from __future__ import annotations

from stopwarden.core.bounds import MISSED_LOOK_AFTER
from stopwarden.core.events import Happening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import Instant, SessionState


def heard(state: SessionState, now: Instant, *, by_stop: bool = False) -> tuple[SessionState, tuple[Happening, ...]]:
    """The session gave a sign of life. A stop alone is not yet proof that a stopped session has resumed."""
    happenings: list[Happening] = []
    if state.next_look_latest is not None:
        if now > state.next_look_latest + MISSED_LOOK_AFTER:
            happenings.append(Happening(kind="missed_look", text=str(state.next_look)))
            state = state.replace(next_look=None, next_look_latest=None)
        elif state.next_look is not None and now >= state.next_look and not by_stop:
            state = state.replace(next_look=None, next_look_latest=None)
    if state.bound and not by_stop and not _before_last_block(state, now):
        happenings.append(Happening(kind="resumed", text=state.bound))
        state = state.replace(bound="")
    return state, tuple(happenings)


def tool_used(state: SessionState, at: Instant) -> SessionState:
    """A tool ran; if that was since the last block, the host's count of blocks begins anew."""
    return state if state.tool_used or _before_last_block(state, at) else state.replace(tool_used=True)


def _before_last_block(state: SessionState, at: Instant) -> bool:
    """Whether something that is heard of only now happened before the last block."""
    return bool(state.recent_blocks) and at < state.recent_blocks[-1]


def prompted(state: SessionState, by: str) -> SessionState:
    """A turn begins, started by "person", "wake", "notification" or "ours"."""
    if by == "person":
        return state.replace(cancelled=False, wake_started=False)
    return state.replace(wake_started=by == "wake")


def compacted(state: SessionState) -> SessionState:
    """The conversation was compacted: the next reason asks to bring the list up to date first."""
    return state.replace(compacted=True)


def cancelled(state: SessionState) -> SessionState:
    """A person's cancel holds until an ordinary prompt of this session."""
    return state.replace(cancelled=True)
