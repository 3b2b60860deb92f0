"""What both stores share: records as rows and back by field name, texts by digest, refusals.

A field is a column of the same name. Truth values are 0 and 1, tuples are JSON texts, everything
else is itself. What a database could not hold is made storable here, for both stores alike: a lone
surrogate becomes U+FFFD, a number beyond 64 bits the largest there is (an instant that far away
means nothing more exact). May not live here: SQL, and what any field means.
"""

from __future__ import annotations

from stopwarden import wire
from stopwarden.core.errors import StaleVerdictError, StoreUnwritableError

try:
    from _blake2 import blake2b  # `hashlib` loads OpenSSL: a third of an interpreter's start for one digest
except ImportError:  # pragma: no cover - another Python
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    from stopwarden.core.events import Reservation
    from stopwarden.core.record import Record

    R = TypeVar("R", bound=Record)

LARGEST = 2**63 - 1

_read_as: dict[type[Record], tuple[frozenset[str], frozenset[str]]] = {}


def row_of(record: Record) -> dict[str, Any]:
    """The record's columns by name."""
    return {field: storable(getattr(record, field)) for field in type(record).fields}


def record_of(kind: type[R], names: Iterable[str], values: Iterable[Any]) -> R:
    """The record in a row; columns that are no field of it are left out.

    Raises ValueError for a list that is no JSON.
    """
    truths, lists = _read_as.get(kind) or _reading(kind)
    known: Mapping[str, Any] = {name: value for name, value in zip(names, values, strict=True) if name in kind.fields}
    return kind(
        **{
            name: bool(value) if name in truths else _listed(value) if name in lists else value
            for name, value in known.items()
        }
    )


def storable(value: Any) -> Any:
    """The value as a column holds it."""
    if isinstance(value, str):
        return value if value.isascii() else wire.clean(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return max(-LARGEST, min(value, LARGEST))
    if isinstance(value, tuple | list):
        return wire.dumps(wire.clean(list(value)))
    return value


def stored(record: R) -> R:
    """The record as it comes back from a store."""
    row = row_of(record)
    return record_of(type(record), row.keys(), row.values())


def _listed(text: str) -> tuple[Any, ...]:
    if text == "[]":
        return ()
    value = wire.loads(text)
    if not isinstance(value, list):
        raise ValueError(f"no list: {text[:40]}")
    return tuple(value)


def _reading(kind: type[Record]) -> tuple[frozenset[str], frozenset[str]]:
    """Which fields are truth values and which are lists, by their annotations."""
    annotations: Mapping[str, Any] = kind.__annotations__
    told = (
        frozenset(field for field in kind.fields if annotations[field] == "bool"),
        frozenset(field for field in kind.fields if str(annotations[field]).startswith("tuple")),
    )
    _read_as[kind] = told
    return told


def digest_of(text: str) -> str:
    """The name that a text is kept by: 32 hexadecimal digits."""
    return str(blake2b(text.encode(), digest_size=16).hexdigest())


def stale(session_id: str, expected_revision: int) -> StaleVerdictError:
    return StaleVerdictError(
        f"The state of session {storable(session_id)} is no longer at revision {expected_revision}",
        kept="The newer state was kept",
        do="Judge the stop again",
    )


def known_already(period_id: str) -> StoreUnwritableError:
    return StoreUnwritableError(f"There is an away period {storable(period_id)} already", kept="It was left as it is")


def not_parked(number: int) -> StoreUnwritableError:
    return StoreUnwritableError(f"There is no parked question {number}", kept="Nothing was written")


def not_in_the_ledger(number: int) -> StoreUnwritableError:
    return StoreUnwritableError(f"There is no item w{number} in the ledger", kept="Nothing was written")


def another_token(held: Reservation) -> StoreUnwritableError:
    """A hold that goes on keeps token and holder, a grant has the next token: this was neither."""
    return StoreUnwritableError(
        f"The reservation of {storable(held.item)} has another token by now",
        kept="It was left as it is",
        do="Try again",
    )
