"""A record behaves the same before and after its class is compiled, and a draft becomes a record like any other."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from stopwarden.core.record import WARM_AFTER, Record, warm


class Place(Record):
    """Has fields of names that compiled code might stumble over."""

    kind: str
    made: tuple[int, ...] = ()
    other: int = 0
    new: int = 0
    sealed_by: str = "nobody"

    @property
    def long(self) -> bool:
        """Whether it has much in it."""
        return len(self.made) > 1


class Nothing(Record):
    """Has no field."""


def kinds(warmed: bool) -> tuple[type[Place], type[Any], type[Nothing]]:
    """Fresh classes: one with fields, one that inherits them, one without."""
    fresh: Any = type(Record)("Place", (Record,), {**body_of(Place), "long": Place.long})
    heir: Any = type(Record)("Heir", (fresh,), {"__annotations__": {"more": "int"}, "more": 7, "__module__": __name__})
    empty: Any = type(Record)("Nothing", (Record,), {"__module__": __name__})
    for kind in (fresh, heir, empty) if warmed else ():
        warm(kind)
    return fresh, heir, empty


def body_of(kind: type[Record]) -> dict[str, Any]:
    """What the class was written as."""
    return {"__annotations__": kind.__annotations__, "__module__": __name__, **kind.defaults}


COLD_AND_WARM = pytest.mark.parametrize("warmed", [False, True], ids=["cold", "warm"])


@COLD_AND_WARM
def test_a_record_is_a_value(warmed: bool) -> None:
    """Equal fields of one class are equal and hash alike; another class, or another field, is another value."""
    place, heir, empty = kinds(warmed)
    one, other = place(kind="a", made=(1, 2)), place(made=(1, 2), kind="a")
    assert (one, hash(one)) == (other, hash(other))
    assert one != one.replace(other=3)
    assert one != heir(kind="a", made=(1, 2))
    assert heir(kind="a", made=(1, 2)) != one
    assert one != one.as_dict()
    assert empty() == empty()
    assert hash(empty()) == hash(empty())
    assert repr(one) == "Place(kind='a', made=(1, 2), other=0, new=0, sealed_by='nobody')"


@COLD_AND_WARM
def test_a_class_keeps_its_own_fields_whatever_its_parent_was_compiled_for(warmed: bool) -> None:
    """A child of a compiled class has its own constructor, copy and comparison, made later or earlier."""
    place, heir, _ = kinds(warmed)
    later: Any = type(Record)("Later", (place,), {"__annotations__": {"more": "int"}, "__module__": __name__})
    for kind in (heir, later):
        made = kind(kind="a", more=3)
        assert type(made.replace(kind="b")) is kind
        assert made.replace(kind="b").as_dict() == {**made.as_dict(), "kind": "b"}
        assert made != made.replace(more=4)


@COLD_AND_WARM
def test_fields_that_are_unknown_or_missing_are_refused(warmed: bool) -> None:
    """Both by the constructor and by a copy, as TypeError that names the field."""
    place, _, empty = kinds(warmed)
    with pytest.raises(TypeError, match="colour"):
        place(kind="a", colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="kind"):
        place()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="colour"):
        place(kind="a").replace(colour="red")
    with pytest.raises(TypeError, match="fields"):
        place(kind="a").replace(fields=())
    with pytest.raises(TypeError, match="colour"):
        empty(colour="red")  # type: ignore[call-arg]


@COLD_AND_WARM
def test_a_record_cannot_be_changed(warmed: bool) -> None:
    """Neither as it was constructed nor as a copy, and nothing can be added."""
    place, _, _ = kinds(warmed)
    for one in (place(kind="a"), place(kind="b").replace(kind="a"), place(kind="a").draft().sealed()):
        with pytest.raises(AttributeError, match="immutable"):
            one.kind = "b"  # type: ignore[misc]
        with pytest.raises(AttributeError, match="immutable"):
            one.colour = "red"  # type: ignore[attr-defined]
        assert one == place(kind="a")


@COLD_AND_WARM
def test_a_draft_is_written_and_then_a_record(warmed: bool) -> None:
    """What it was made from stays as it is; its properties and fields can be asked meanwhile; sealing twice is idle."""
    place, _, _ = kinds(warmed)
    one = place(kind="a")
    draft = one.draft()
    draft.kind, draft.made = "b", (1, 2)  # type: ignore[misc]
    assert (draft.long, draft.as_dict()) == (True, {**one.as_dict(), "kind": "b", "made": (1, 2)})
    with pytest.raises(AttributeError):
        draft.colour = "red"  # type: ignore[attr-defined]
    done = draft.sealed()
    assert type(done) is place
    assert done == place(kind="b", made=(1, 2))
    assert done.sealed() is done
    assert one == place(kind="a")


def test_a_record_is_copied_and_stored_as_what_it_is() -> None:
    """A copy, a deep copy and a pickle are equal to it, from a class that was compiled."""
    warm(Place)
    one = Place(kind="a", made=(1, 2))
    assert one == copy.copy(one) == copy.deepcopy(one) == pickle.loads(pickle.dumps(one))


def test_a_class_is_compiled_when_it_has_made_many_and_not_before() -> None:
    """A program that makes a few of each never pays for it; records from before and after are equal."""
    place, _, _ = kinds(warmed=False)
    before = vars(place)["__init__"]
    made = [place(kind="a") for _ in range(WARM_AFTER - 1)]
    assert vars(place)["__init__"] is before
    made.append(made[0].replace(kind="a"))
    assert vars(place)["__init__"] is not before
    made.append(place(kind="a"))
    assert len(set(made)) == 1
    assert [one.kind for one in place.many(2, {"kind": ["a", "b"]})] == ["a", "b"]


def test_many_records_are_made_from_columns() -> None:
    """A field without a column keeps its default; a column that is unknown, missing or of another length is refused."""
    assert Place.many(2, {"kind": ["a", "b"], "other": [1, 2]}) == [Place(kind="a", other=1), Place(kind="b", other=2)]
    assert Place.many(0, {"kind": []}) == []
    with pytest.raises(TypeError, match="colour"):
        Place.many(1, {"kind": ["a"], "colour": ["red"]})
    with pytest.raises(TypeError, match="kind"):
        Place.many(1, {"other": [1]})
    with pytest.raises(ValueError, match="other has 1 values, not 2"):
        Place.many(2, {"kind": ["a", "b"], "other": [1]})
