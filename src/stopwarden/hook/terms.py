"""On what terms a session is judged: the policy fixed when the person left, and the switch."""

from __future__ import annotations

from stopwarden import wire
from stopwarden.core.bounds import Policy, policy_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import AwayPeriod, Mode
    from stopwarden.store.port import Store


def policy_of(store: Store, period: AwayPeriod) -> Policy:
    """The terms of an away period, as checked when the person left."""
    text = store.period_policy(period.id)
    return policy_from(wire.loads(text)) if text else Policy()


def mode_of(store: Store, session: str) -> Mode:
    """on, off or observe: the session's own switch, else the one for all."""
    said = store.fact("mode", session) or store.fact("mode", "all")
    return "off" if said == "off" else "observe" if said == "observe" else "on"
