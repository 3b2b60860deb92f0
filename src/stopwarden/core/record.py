"""Immutable values, without what `dataclasses` costs at start-up.

Every value of the core is a `Record`: fields by annotation, defaults by assignment, compared and
hashed by value, changed only by `replace`. The hook is a process of its own at every stop, and
`import dataclasses` plus twenty frozen classes costs it four times a bare interpreter start (see
docs/decisions.md); a metaclass of fifty lines costs nothing that can be measured. Type checkers
see an ordinary frozen dataclass (`dataclass_transform`).
"""

from __future__ import annotations

from _collections import deque  # type: ignore[import-not-found]  # built in: `collections` is not loaded for it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_: object):
        return lambda decorated: decorated


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
class RecordType(type):
    """Turns the annotations of a class body into slots and a checked constructor."""

    fields: tuple[str, ...]
    names: frozenset[str]
    defaults: Mapping[str, Any]
    setters: Mapping[str, Any]  # by field; `getters` in the order of the fields, each with its setter
    getters: tuple[tuple[Any, Any], ...]

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> RecordType:
        own = tuple(body.get("__annotations__", ()))
        fields: tuple[str, ...] = ()
        defaults: dict[str, Any] = {}
        for base in bases:
            fields += getattr(base, "fields", ())
            defaults.update(getattr(base, "defaults", {}))
        defaults.update((field, body.pop(field)) for field in own if field in body)
        made = super().__new__(mcs, name, bases, {**body, "__slots__": own})
        made.fields = fields + own
        made.names = frozenset(made.fields)
        made.defaults = defaults
        slots = [getattr(made, field) for field in made.fields]
        made.setters = {field: slot.__set__ for field, slot in zip(made.fields, slots, strict=True)}
        made.getters = tuple((slot.__get__, slot.__set__) for slot in slots)
        return made


class Record(metaclass=RecordType):
    """Base of all values. Constructed by keyword; an unknown or missing field raises TypeError."""

    if not TYPE_CHECKING:

        def __init__(self, **given: Any) -> None:
            kind = type(self)
            values = {**kind.defaults, **given}
            if values.keys() != kind.names:
                raise TypeError(_misfit(kind, values))
            setters = kind.setters
            for field, value in values.items():
                setters[field](self, value)

        def __setattr__(self, field: str, value: Any) -> None:
            raise AttributeError(f"{type(self).__name__} is immutable: use replace({field}=…)")

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed. Raises TypeError for a field that does not exist.

        The machines of the core do little else, so it copies slot by slot and builds no dictionary.
        """
        kind = type(self)
        if not changes.keys() <= kind.names:
            raise TypeError(_misfit(kind, {**self.as_dict(), **changes}))
        made = object.__new__(kind)
        for get, put in kind.getters:
            put(made, get(self))
        setters = kind.setters
        for field, value in changes.items():
            setters[field](made, value)
        return made

    @classmethod
    def many(cls, count: int, columns: Mapping[str, Sequence[Any]]) -> list[Self]:
        """`count` records from a column of values a field; a field without a column keeps its default.

        Eight times as quick as one by one: the hook may meet a list of ten thousand items. Raises
        TypeError for an unknown or missing field, ValueError for a column of another length.
        """
        if columns.keys() - cls.names:
            raise TypeError(_misfit(cls, columns))
        made = list(map(object.__new__, [cls] * count))
        for field in cls.fields:
            column = columns.get(field)
            if column is None:
                if field not in cls.defaults:
                    raise TypeError(f"{cls.__name__} needs {field}")
                column = [cls.defaults[field]] * count
            elif len(column) != count:
                raise ValueError(f"{field} has {len(column)} values, not {count}")
            deque(map(getattr(cls, field).__set__, made, column), 0)  # runs through all and keeps nothing
        return made

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, values as they are (nested records stay records)."""
        return {field: getattr(self, field) for field in type(self).fields}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, field) == getattr(other, field) for field in type(self).fields
        )

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, field) for field in type(self).fields)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{field}={getattr(self, field)!r}" for field in type(self).fields)
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.as_dict()))


def _misfit(kind: type[Record], given: Mapping[str, Any]) -> str:
    """What is wrong with fields given for a record."""
    if unknown := given.keys() - kind.names:
        return f"{kind.__name__} has no field {', '.join(sorted(unknown))}"
    return f"{kind.__name__} needs {', '.join(sorted(kind.names - given.keys()))}"


def _rebuild(kind: type[Record], fields: dict[str, Any]) -> Record:
    return kind(**fields)
