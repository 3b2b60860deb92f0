"""What becomes of guard, content and turn when something on the way to a stream fails.

One row a failure. `trust` is what the chain suffers: a reason of guard.SUSPENSIONS, *pause*
(until a retry), or nothing. `alone` says whether a block of an external Stop hook goes on by itself
where the guard had to give up. `end` is the kind with which the turn ends otherwise. Content is never
in question: the parts of a stream that was not begun are stored once, as an entry of their own, and the
guard's instruction was never among them.

Beyond the source (design §8.1): a stream is *begun* at the provider's first event. One that was refused
has its staged entry rolled back by id, costs no attempt and was never announced.
"""

from __future__ import annotations

from stopwarden.core import chain_words as words
from stopwarden.core.record import Record
from stopwarden.core.turn_events import FOREGROUND
from stopwarden.core.turn_state import Pen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Failure(Record):
    """A row of the table."""

    rule: str
    trust: str
    alone: bool
    end: str


FAILURES: Mapping[str, Failure] = {
    "drain": Failure(rule="turn.drain_unreliable", trust="drain_unreliable", alone=True, end="suspended"),
    "claim": Failure(rule="turn.claim_unavailable", trust="", alone=True, end="suspended"),  # the chain has locked it
    "plan": Failure(rule="turn.plan_mode", trust="", alone=True, end="plan_mode"),  # likewise
    "deferred": Failure(rule="turn.deferred", trust="", alone=True, end="deferred"),
    "observed": Failure(rule="turn.observed", trust="", alone=True, end="observed"),
    "exhausted": Failure(rule="turn.exhausted", trust="", alone=True, end="exhausted"),
    "off": Failure(rule="turn.off", trust="", alone=True, end="off"),
    "inactive": Failure(rule="turn.suspended", trust="", alone=True, end="suspended"),
    "compression": Failure(rule="turn.compression_failed", trust="compression_failed", alone=True, end="suspended"),
    "tokens": Failure(rule="turn.token_limit", trust="token_limit", alone=False, end="max_tokens"),
    "refused": Failure(rule="turn.provider_refused", trust="pause", alone=False, end="error"),
    "broken": Failure(rule="turn.stream_broken", trust="pause", alone=False, end="error"),
    "hooks": Failure(rule="turn.hooks_failed", trust="pause", alone=False, end="error"),
    "loop": Failure(rule="turn.loop_protection", trust="loop_protection", alone=False, end="loop_detected"),
    "repeated_failure": Failure(rule="turn.repeated_failure", trust="tool_failures", alone=False, end="loop_detected"),
    "post_tool_use": Failure(rule="turn.post_tool_use", trust="tool_hook_stop", alone=False, end="suspended"),
    "permission": Failure(rule="turn.permission_cancelled", trust="todo_cancelled", alone=False, end="cancelled"),
    "hook_cap": Failure(rule="turn.hook_cap", trust="hook_cap", alone=False, end="bound_reached"),
}


def what_went(pen: Pen) -> str:
    """Why a stream of the guard that had its claim does not go on after all: a row of FAILURES."""
    if pen.chain.plan:
        return "plan"
    if not pen.chain.guard.suspended and pen.running.stream.attempt > pen.chain.guard.budget.attempts:
        return "exhausted"  # the person gave it less meanwhile
    return "inactive"


def strike(pen: Pen, point: str) -> Failure:
    """Do to the chain's trust what the row of this failure says."""
    failure, turn = FAILURES[point], pen.running.id
    if failure.trust == "pause":
        pen.chained(words.RetryPaused(turn=turn))
    elif failure.trust:
        pen.chained(words.ChainSuspended(turn=turn, reason=failure.trust))
    return failure


def give_up(pen: Pen, point: str) -> None:
    """Our policy cannot have this stream. A hook's block goes on alone; else all is kept, and the turn ends.

    What befalls a stream of the away check costs the guard nothing.
    """
    stream = pen.running.stream
    failure = strike(pen, point) if stream.away is None else FAILURES[point]
    if failure.alone and stream.hook is not None:
        pen.on(stream=stream.replace(attempt=0, closure=False, away=None))
        pen.go("stream", "stream.show_hook")
        return
    pen.put_away("refused")
    pen.end(failure.end if stream.away is None else "error", failure.rule)


def fail(pen: Pen, point: str, why: str = "") -> None:
    """The turn cannot go on: what it has not sent is kept, and it ends as the table says."""
    failure, turn = strike(pen, point), pen.running
    pen.put_away("refused")
    graceful = failure.end == "loop_detected" and turn.kind != FOREGROUND
    pen.end("suspended" if graceful else failure.end, failure.rule, why)
