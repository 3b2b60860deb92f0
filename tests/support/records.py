"""Any record of the core or the store: strategies made from a record's annotations."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from stopwarden.core.record import Record

TEXTS = st.one_of(
    st.sampled_from(["", "a", "b", "S1", "S2", "naïve", "\0", "a\nb", "\ud83d\udca4"]),
    st.text(max_size=8),
    st.text(st.characters(categories=["Cs", "Ll"]), max_size=3),  # lone surrogates, as clipped payloads have them
)
INSTANTS = st.one_of(st.integers(0, 5), st.integers(-(2**63), 2**64))
CHOICES = {
    "scope": st.sampled_from(["checkout", "session", "everywhere"]),
    "revision": st.integers(0, 3),
    "generation": st.integers(0, 3),
}


def _of(annotation: str) -> st.SearchStrategy[Any]:
    if annotation.endswith("| None"):
        return st.none() | _of(annotation.removesuffix("| None").strip())
    if annotation.startswith("tuple["):
        return st.lists(_of(annotation[6:].partition(",")[0]), max_size=3).map(tuple)
    return {"str": TEXTS, "bool": st.booleans()}.get(annotation, INSTANTS)


def records(kind: type[Record], **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Records of this kind; `fixed` gives the strategies of some fields."""
    annotations = kind.__annotations__
    given = {**CHOICES, **fixed}
    fields = {field: given[field] if field in given else _of(annotations[field]) for field in kind.fields}
    return st.fixed_dictionaries(fields).map(lambda values: kind(**values))
