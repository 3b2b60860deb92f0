"""What was seen of one scenario on one side, in words that both sides share, and what differs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Seen:
    """The facts, each in order.

    `calls`: what was new in each model call since the model's last reply, with what became of the call.
    `shown`: the guard's announcements. `ends`: the turns that ended, `name how`. `asks`: the child's
    questions to the bridge, with `*` for a model call. `hooks`: what became of a Stop hook that was slow.
    `answers`: what the child answered to releases.
    `kinds`: how the turns ended in the words of our own machine; the other side has none.
    """

    calls: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    asks: str = ""
    hooks: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def attempts(self) -> tuple[int, ...]:
        """The attempts that were announced as begun."""
        return tuple(int(one.split("/")[0]) for one in self.shown if "/" in one)


CUT_SHORT, WAITED_FOR = "cut short", "waited for"
FACTS = ("calls", "shown", "ends", "hooks", "answers")


def differences(ours: Seen, theirs: Seen) -> list[str]:
    """Which of the shared facts differ."""
    return [fact for fact in FACTS if getattr(ours, fact) != getattr(theirs, fact)]


def started(attempt: int, cap: int, left: int) -> str:
    """An announcement: an attempt is under way."""
    return f"{attempt}/{cap} with {left} left"


def gave_up(left: int) -> str:
    """An announcement: the guard goes on no more."""
    return f"gave up with {left} left"
