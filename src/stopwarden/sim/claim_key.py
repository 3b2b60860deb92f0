"""When two worlds of the claim model are the same: equal but for what things are called.

Ids and names only grow, so no two states of a long history are equal as they stand. What a machine
does depends on which of them are the same, never on what they are: so each is replaced by its place
in the order in which it is met, and what can have no influence is left out. `LEFT_OUT`, `IDS` and
`NAMES` say of which fields that is true; a field that is not in them counts as it is, so a field that
somebody adds makes more states, never fewer. May not live here: what happens (`claim_model`).
"""

from __future__ import annotations

import hashlib
import marshal
from typing import TYPE_CHECKING, Any

from stopwarden.core.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

# Counters of ids, clocks that nothing here depends on, labels, and rings of what is over: no id comes twice.
LEFT_OUT = {
    "Session": ("next_id", "now", "retry_at"),
    "Chain": ("last_claim", "number"),
    "Claim": ("chain",),  # whether it is the chain of now is told with the chain
    "Guard": ("first_attempt_at", "tokens"),
    "Turn": ("labels", "reply"),
    "Waiting": ("due",),  # of a drain or a claim, and then always the same
    "Stream": ("label",),
    "Part": ("text",),
    "Queue": ("next_effect", "now", "fates", "terminals", "cancel_epoch", "background_held", "last_turn"),
    "Entry": ("content", "queued_at", "took"),
    "Message": ("text",),
    "RunPrompt": ("content",),
    "CutStopHook": ("id",),
}
# What is given out by the session, and what by the queue.
IDS = {
    "Claim": "id",
    "Waiting": "id",
    "ClaimAnswered": "id",
    "DrainAnswered": "id",
    "AskClaim": "request",
    "AskDrain": "request",
}
QUEUE_IDS = {
    "Entry": ("run", "deadline"),
    "Forward": ("id", "timer"),
    "RunPrompt": ("id",),
    "SendRelease": ("id",),
    "ForwardCancel": ("id",),
    "PromptSettled": ("effect",),
    "CancelForwarded": ("effect",),
    "ReleaseAnswered": ("effect",),
}
NAMES = {
    "Chain": ("priority_owner",),
    "Claim": ("owner",),
    "Admitted": ("id",),
    "Running": ("id",),
    "Turn": ("id", "owner"),
    "Waiting": ("owner",),
    "Prompt": ("id", "owner"),
    "Part": ("id",),
    "Queue": ("wait_owner",),
    "Entry": ("prompt",),
    "Forward": ("target",),
    "Message": ("message",),
    "AskClaim": ("prompt",),
    "AskDrain": ("prompt",),
    "RunPrompt": ("prompt",),
    "SendRelease": ("owner",),
    "ForwardCancel": ("target",),
    "CutStopHook": ("owner",),
}


# How a field counts.
_PLAIN, _NAME, _ID, _QUEUE_ID, _IDS, _PAIRS, _THERE, _CLAIMS = range(8)
_OTHERS = {
    ("Session", "late_drains"): _IDS,
    ("Stream", "entry"): _THERE,
    ("Queue", "releases"): _PAIRS,
    ("Chain", "claims"): _CLAIMS,
}
_HOWS: dict[type[Record], tuple[tuple[Callable[[Any], Any], int], ...]] = {}


class Shapes:
    """Splits values into a *shape*, a number for all that counts as it is, and the ids and names in it, in order.

    Ids of the queue are negative, so that the three kinds never meet. A shape is made once for an object.
    """

    def __init__(self) -> None:
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.known: dict[int, tuple[Record, int, tuple[Any, ...]]] = {}  # by identity; holds on to the object

    def of(self, record: Record) -> tuple[int, tuple[Any, ...]]:
        """The shape of a record, and its ids and names."""
        known = self.known.get(id(record))
        if known is None:
            plain: list[Any] = [type(record).__name__]
            ids: list[Any] = []
            for get, how in _HOWS.get(type(record)) or _hows(type(record)):
                self._add(get(record), how, plain, ids)
            if type(record).__name__ == "Chain":
                plain += [claim.chain == record.number for claim in record.claims]  # type: ignore[attr-defined]
            if len(self.known) > KEPT:
                self.known.clear()
            known = (record, self.number(tuple(plain)), tuple(ids))
            self.known[id(record)] = known
        return known[1], known[2]

    def all(self, records: tuple[Record, ...]) -> tuple[int, list[Any]]:
        """The shape of several records in order."""
        plain: list[Any] = []
        ids: list[Any] = []
        for record in records:
            shape, inside = self.of(record)
            plain.append(shape)
            ids += inside
        return self.number(tuple(plain)), ids

    def number(self, plain: tuple[Any, ...]) -> int:
        """A number for plain values; True is not 1 in it, as both say different things."""
        return self.numbers.setdefault(plain, len(self.numbers))

    def _add(self, value: Any, how: int, plain: list[Any], ids: list[Any]) -> None:
        if how == _PLAIN:
            if isinstance(value, Record):
                shape, inside = self.of(value)
                plain.append(shape)
                ids += inside
            elif isinstance(value, tuple) and value and isinstance(value[0], Record):
                shape, more = self.all(value)
                plain.append(shape)
                ids += more
            else:
                plain.append(tuple(sorted(value)) if isinstance(value, frozenset) else value)
        elif how == _THERE:
            plain.append(bool(value))
        elif how == _IDS:
            plain.append(len(value))
            ids += value
        elif how == _PAIRS:
            plain.append(len(value))
            for number, name in value:
                ids += (-number, name)
        elif how == _CLAIMS:
            shape, more = self.all(value)
            plain.append(shape)
            ids += more
        else:
            plain.append(value is not None and value != "")
            if value is not None and value != "":
                ids.append(value if how == _NAME else int(value) if how == _ID else -value)


KEPT = 300_000  # shapes of objects that are remembered at a time


def _hows(kind: type[Record]) -> tuple[tuple[Callable[[Any], Any], int], ...]:
    """How each field of a record counts; read once for each kind of record."""
    name, hows = kind.__name__, []
    for field, (get, _) in zip(kind.fields, kind.getters, strict=True):
        if field in LEFT_OUT.get(name, ()):
            continue
        how = _OTHERS.get((name, field), _PLAIN)
        if field == IDS.get(name):
            how = _ID
        elif field in QUEUE_IDS.get(name, ()):
            how = _QUEUE_ID
        elif field in NAMES.get(name, ()):
            how = _NAME
        hows.append((get, how))
    _HOWS[kind] = tuple(hows)
    return _HOWS[kind]


def digest(shapes: tuple[Any, ...], ids: list[Any]) -> bytes:
    """Sixteen bytes for shapes and for which of the ids are the same."""
    met: dict[Any, int] = {}
    places = [met.setdefault(one, len(met)) for one in ids]
    return hashlib.blake2b(marshal.dumps((shapes, places), 2), digest_size=16).digest()
