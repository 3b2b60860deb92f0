"""The keeper of a simulated session: it lives beside it, waits, and wakes it once.

What it waits for is decided by the real one's `due`. A process of its own starts at every stop and
every error, and it has ended once it has woken the session; a restart of the program ends it too.
May not live here: a rule of the keeper (`hook.keeper`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import leases
from stopwarden.core.bounds import HOUR, MINUTE
from stopwarden.hook import keeper

if TYPE_CHECKING:
    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import Instant, Reservation, SessionState
    from stopwarden.store.port import SessionRow


class Keeper:
    """One session's keeper, if the person allowed it."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._lives = False
        self._woke_at: Instant | None = None

    def starts(self) -> None:
        """The host starts it at the end of a turn, or of an attempt to end it."""
        self._lives = self._policy.keeper

    def ends(self) -> None:
        """The program is gone, and its background with it."""
        self._lives = False

    def look(self, holds: tuple[Reservation, ...], copy: str, now: Instant) -> Instant | None:
        """When it would look at the latest, as a stop is told."""
        if not self._lives:
            return None
        return min(leases.deadline(held, copy, now, self._policy) for held in ((), holds))

    def due(self, row: SessionRow, state: SessionState, *, block_stands: bool) -> Instant | None:
        """When it wakes the session; past a ceiling of the hour it waits on, past the night's it does not wake."""
        if not self._lives:
            return None
        at = keeper.due(row, state, block_stands, self._woke_at).at
        if at is None or state.period_blocks >= self._policy.blocks_a_period:
            return None
        recent = [then for then in state.recent_blocks if then > at - HOUR]
        if len(recent) >= self._policy.blocks_an_hour:
            at = recent[len(recent) - self._policy.blocks_an_hour] + HOUR + MINUTE
        return at

    def wakes(self, state: SessionState, now: Instant) -> SessionState:
        """The session's state once it is woken: the wake is counted like a block, the look is over."""
        self._lives, self._woke_at = False, now
        return state.replace(
            recent_blocks=(*(then for then in state.recent_blocks if then > now - HOUR), now),
            period_blocks=state.period_blocks + 1,
            next_look=None,
            next_look_latest=None,
        )
