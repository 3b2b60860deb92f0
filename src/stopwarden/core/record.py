"""Immutable values, without what `dataclasses` costs at start-up.

Every value of the core is a `Record`: fields by annotation, defaults by assignment, compared and
hashed by value, changed only by `replace`. The hook is a process of its own at every stop, and
`import dataclasses` plus twenty frozen classes costs it four times a bare interpreter start (see
docs/decisions.md); a metaclass of fifty lines costs nothing that can be measured. Type checkers
see an ordinary frozen dataclass (`dataclass_transform`).

A class that makes records by the thousand is *warmed*: it gets a constructor, a copy and a comparison
compiled for its very fields. Compiling them costs what they save in some hundred constructions, so a
class is warmed after WARM_AFTER, and the hook, which makes a few records of many classes, never pays.
What makes them quick is the class's *open twin*: a subclass without the ban on setting fields. A record
is filled as a twin, by plain assignments, and becomes one of its class when it is whole. `draft` hands
such a copy to a machine, which writes on it while it takes one event and then has it `sealed`.
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


WARM_AFTER = 500  # records made one by one: more than the hook makes of any class at an ordinary stop
# What each class has of its own until it is warmed: it must not inherit what was compiled for another's fields.
_COLD: dict[str, Any] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
class RecordType(type):
    """Turns the annotations of a class body into slots and a checked constructor."""

    fields: tuple[str, ...]
    names: frozenset[str]
    defaults: Mapping[str, Any]
    setters: Mapping[str, Any]  # by field; `getters` in the order of the fields, each with its setter
    getters: tuple[tuple[Any, Any], ...]
    cold: list[int]  # so many more records, and the class is warmed

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> RecordType:
        own = tuple(body.get("__annotations__", ()))
        fields: tuple[str, ...] = ()
        defaults: dict[str, Any] = {}
        for base in bases:
            fields += getattr(base, "fields", ())
            defaults.update(getattr(base, "defaults", {}))
        defaults.update((field, body.pop(field)) for field in own if field in body)
        made = super().__new__(mcs, name, bases, {**_COLD, "cold": [WARM_AFTER], **body, "__slots__": own})
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
            kind.cold[0] -= 1
            if not kind.cold[0]:
                warm(kind)

        def __setattr__(self, field: str, value: Any) -> None:
            raise AttributeError(f"{type(self).__name__} is immutable: use replace({field}=…)")

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed. Raises TypeError for a field that does not exist."""
        kind = type(self)
        if not changes.keys() <= kind.names:
            raise TypeError(_misfit(kind, {**self.as_dict(), **changes}))
        made = object.__new__(kind)
        for get, put in kind.getters:
            put(made, get(self))
        setters = kind.setters
        for field, value in changes.items():
            setters[field](made, value)
        kind.cold[0] -= 1
        if not kind.cold[0]:
            warm(kind)
        return made

    def draft(self) -> Self:
        """A copy whose fields can be set while one event is handled. Nobody else may see it until it is `sealed`."""
        warm(type(self))
        return self.draft()

    def sealed(self) -> Self:
        """An open copy, now a record like any other. A record is one already."""
        return self

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


_COLD.update((name, vars(Record)[name]) for name in ("__init__", "replace", "draft", "__eq__", "__hash__"))


def warm(kind: type[Record]) -> None:
    """Compile for this class what it had in common with all others. It does the same, several times as quickly.

    A field may have any name, so our own in the constructor begin with an underscore.
    """
    fields = kind.fields
    given = ", ".join(f"{name}=_defaults[{name!r}]" if name in kind.defaults else name for name in fields)
    source = f"""
def __init__(_made{", *, " if fields else ""}{given}):
    _become(_made, _twin)
    {"; ".join(f"_made.{name} = {name}" for name in fields)}
    _made.__class__ = _kind

def draft(self):
    made = _new(_twin)
    {"; ".join(f"made.{name} = self.{name}" for name in fields)}
    return made

def sealed(self):
    self.__class__ = _kind
    return self

def __eq__(self, other):
    return {" and ".join(("type(other) is _kind", *(f"self.{name} == other.{name}" for name in fields)))}

def __hash__(self):
    return hash((_kind, {"".join(f"self.{name}, " for name in fields)}))
"""
    known: dict[str, Any] = {"_kind": kind, "_defaults": kind.defaults, "_new": object.__new__}
    known["_become"] = vars(object)["__class__"].__set__
    exec(source, known)
    body = {"__slots__": (), "__setattr__": object.__setattr__, "sealed": known["sealed"]}
    known["_twin"] = type.__new__(RecordType, kind.__name__, (kind,), body)
    for name in ("__init__", "draft", "__eq__", "__hash__"):
        setattr(kind, name, known[name])
    kind.replace = _replace_warm  # type: ignore[assignment, method-assign]


def _replace_warm(self: Record, **changes: Any) -> Record:
    made = self.draft()
    try:
        for field, value in changes.items():
            setattr(made, field, value)
    except AttributeError:
        raise TypeError(_misfit(type(self), {**self.as_dict(), **changes})) from None
    made.__class__ = type(self)
    return made


def _misfit(kind: type[Record], given: Mapping[str, Any]) -> str:
    """What is wrong with fields given for a record."""
    if unknown := given.keys() - kind.names:
        return f"{kind.__name__} has no field {', '.join(sorted(unknown))}"
    return f"{kind.__name__} needs {', '.join(sorted(kind.names - given.keys()))}"


def _rebuild(kind: type[Record], fields: dict[str, Any]) -> Record:
    return kind(**fields)
