"""One measured figure: what was compared with what, the ratio of the medians, and the most it may be."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Figure:
    """`ratio` is median against median of the same interleaved run."""

    name: str
    peer: str
    ratio: float
    limit: float
    detail: str = ""

    @property
    def holds(self) -> bool:
        return self.ratio <= self.limit

    def row(self) -> str:
        verdict = "ok" if self.holds else "OVER"
        limit = f"at most {self.limit:.1f} x"
        return f"{self.name:<46}  {self.ratio:5.2f} x {self.peer:<20}  {limit}  {verdict:<4}  {self.detail}"


def ratio(ours: Sequence[float], peers: Sequence[float]) -> float:
    """The median of ours over the median of the peer's."""
    return statistics.median(ours) / statistics.median(peers)
