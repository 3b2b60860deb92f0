"""On what terms a session is judged: the policy fixed when the person left, and the switch."""

from __future__ import annotations

from stopwarden import wire
from stopwarden.core.bounds import Policy, policy_from
from stopwarden.core.periods import covering
from stopwarden.hosts import claude_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.core.events import AwayPeriod, Instant, Mode
    from stopwarden.store.port import SessionRow, Store


def policy_of(store: Store, period: AwayPeriod) -> Policy:
    """The terms of an away period, as checked when the person left."""
    text = store.period_policy(period.id)
    return policy_from(wire.loads(text)) if text else Policy()


def period_of(row: SessionRow, periods: Iterable[AwayPeriod], now: Instant) -> AwayPeriod | None:
    """The away period that holds for a session now."""
    script = claude_code.is_script(row.entrypoint)
    return covering(periods, session=row.id, copy=row.copy, root=row.root, script=script, now=now)


def mode_of(store: Store, session: str, now: Instant) -> Mode:
    """on, off or observe: the session's own switch, else the one for all. An `off` until a time is over then."""
    said = _switch(store, session)[0]
    if said == "off":
        until = paused_until(store, session)
        return "off" if until is None or now < until else "on"
    return "observe" if said == "observe" else "on"


def paused_until(store: Store, session: str) -> Instant | None:
    """The end of an `off` that the person gave one, or None."""
    said, key = _switch(store, session)
    until = store.fact("mode_until", key) if said == "off" else ""
    return int(until) if until.isdigit() else None


def _switch(store: Store, session: str) -> tuple[str, str]:
    own = store.fact("mode", session)
    return (own, session) if own else (store.fact("mode", "all"), "all")
