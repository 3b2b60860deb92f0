"""Step 7 of the order at a stop while the person is away: the away check is the policy, and not the todo guard.

Theory of operation. The verdict is asked for, weighed, and recorded before it takes effect: an allow
before the turn ends, a block after its claim was granted and before its stream is sent. So whatever a
crash cuts off, the record says how the stop was judged, and nothing is sent twice. If what it was judged
by has changed meanwhile, here or in the store, it is *stale* and the stop is judged again.

A verdict that cannot be had or recorded is a fault of ours: then the stop is blocked with a reason that
says so, three times in a row, and after that allowed. A claim that comes to nothing is asked for again as
often; then the turn ends as an error. Whatever ends a turn without a verdict that let it is told
(`stopped_while_away`). So no stop ends in silence, and none of this loops. A hook's reason goes on alone
wherever the check has none.

A person's cancel and plan mode hold this policy back too, whatever a verdict says; the todo guard's other
suspensions do not. May not live here: the check itself (`core/away`), what is read for it (the driver).
"""

from __future__ import annotations

from stopwarden.core import chain as chains
from stopwarden.core.away_words import CommitVerdict, Judge, Revision
from stopwarden.core.bounds import FAULTS_IN_A_ROW, STOP_DEADLINE
from stopwarden.core.failures import give_up, strike
from stopwarden.core.turn_events import Part
from stopwarden.core.turn_state import Pen, Stream

IDLE = "idle"  # the verdict where away does not hold after all
FAULT = (
    "Stopwarden could not judge this stop ({why}), and the person is away. Go on with the work that is owed; "
    "if nothing can be done, schedule a wake within the hour before you stop. Nobody is there to answer."
)


def revision(pen: Pen) -> Revision:
    """What a verdict given now would be judged by."""
    chain, session = pen.chain, pen.state
    return Revision(
        switch=chain.guard.switch,
        cancelled=chains.is_cancelled(chain),
        queue=(chain.number, chain.priority_owner),
        plan=chain.plan,
        away=chain.away,
        workspace=session.workspace,
        fences=session.fences,
    )


def is_stale(pen: Pen) -> bool:
    """Whether anything has changed since the stop was judged."""
    return pen.running.judged != revision(pen)


def judge_again(pen: Pen) -> None:
    """The stream of a block will not be sent, for it is stale; a hook's reason is kept for what the stop comes to."""
    take_back(pen)
    pen.go("stop", "stop.ask_verdict")


def take_back(pen: Pen) -> None:
    """The stream that was prepared will not be sent."""
    turn = pen.running
    pen.untell()
    pen.on(hook_streams=turn.hook_streams - (turn.stream.hook is not None))
    pen.on(stream=Stream(), found=None, claim="")


# ---- the rows at a stop


def ask_verdict(pen: Pen) -> None:
    """While away the stop is judged; hooks that have had all their blocks have no say in it any more."""
    turn = pen.running
    pen.on(verdict=None, judged=None)
    if not pen.chain.away:
        return
    if pen.chain.priority:  # a late word on the queue
        go_on_or_end(pen, "yielded", "turn.yielded")
        return
    if turn.hook is not None and turn.hook_blocks >= pen.state.hook_cap:
        pen.tell("hook_cap", blocks=turn.hook_blocks)
        strike(pen, "hook_cap")
        pen.on(hook=None)
    now = revision(pen)
    pen.on(judged=now)
    pen.ask("verdict", Judge, due(pen), turn=turn.id, reply=turn.reply, revision=now)


def weigh_verdict(pen: Pen) -> None:
    """A block begins a stream; an allow is recorded first; without a period after all, the todo guard decides."""
    verdict = pen.running.verdict
    if verdict is None:
        return
    if is_stale(pen):
        pen.go("stop", "stop.ask_verdict")
    elif verdict.kind == IDLE:
        pen.on(judged=None)
    elif not verdict.block:
        ask_commit(pen)
    elif held := held_back(pen):
        pen.on(verdict=None)
        go_on_or_end(pen, held, f"turn.{held}")
    else:
        block(pen, Part(kind="away", id=f"away-{pen.next_id}", text=verdict.reason))


def allow_by_verdict(pen: Pen) -> None:
    """The allow is in the record."""
    verdict = pen.running.verdict
    if verdict is not None and verdict.kind != IDLE:
        go_on_or_end(pen, verdict.kind, verdict.rule)


def held_back(pen: Pen) -> str:
    """What holds every policy back now, or nothing."""
    return "plan_mode" if pen.chain.plan else "cancelled" if chains.is_cancelled(pen.chain) else ""


# ---- what a verdict comes to


def block(pen: Pen, reason: Part) -> None:
    """Go on: the hook's reason first, the away check's second."""
    pen.on(labels=pen.running.labels + 1)
    turn = pen.running
    name = f"{turn.id}_away_{turn.labels}"
    stream = hook_stream(pen, name) if turn.hook is not None else Stream(label=name)
    pen.on(stream=stream.replace(away=reason), found=None, claim="", compression_failed=False)
    pen.go("stream")


def go_on_or_end(pen: Pen, kind: str, rule: str, why: str = "") -> None:
    """Without a reason of the check a hook's goes on alone, or the turn ends and says how it was judged."""
    if pen.running.hook is None:
        pen.end(kind, rule, why)
        return
    pen.on(labels=pen.running.labels + 1, found=None, claim="", compression_failed=False)
    pen.on(stream=hook_stream(pen, f"{pen.running.id}_stop_hook_{pen.running.labels}"))
    pen.go("stream")


def hook_stream(pen: Pen, name: str) -> Stream:
    """A stream that begins with the reason of the hook's block."""
    turn = pen.running
    assert turn.hook is not None
    reason = Part(kind="hook_reason", id=f"{turn.id}-hook-{turn.labels}", text=turn.hook.reason)
    pen.on(hook_streams=turn.hook_streams + 1)
    return Stream(parts=(reason,), hook=turn.hook, label=name)


def fault(pen: Pen, why: str) -> None:
    """We could not judge or record: block and say so, three times in a row at most, and never against the person."""
    pen.set(faults=pen.state.faults + 1)
    take_back(pen)
    pen.on(verdict=None)
    pen.tell("away_fault", why=why, count=pen.state.faults)
    if held := held_back(pen):
        go_on_or_end(pen, held, f"turn.{held}", why)
    elif pen.state.faults > FAULTS_IN_A_ROW:
        go_on_or_end(pen, "error", "turn.away_fault", why)
    else:
        block(pen, Part(kind="away", id=f"away-{pen.next_id}", text=FAULT.format(why=why)))


def claim_failed(pen: Pen) -> None:
    """Ask again, a bounded number of times: the session must not stop for one slow answer."""
    stream = pen.running.stream
    if stream.claims < FAULTS_IN_A_ROW:
        pen.go("stream", "stream.claim")
    else:
        give_up(pen, "claim")


# ---- the record


def due(pen: Pen) -> int:
    """When the driver has no answer in time."""
    return pen.state.now + STOP_DEADLINE * 1_000


def ask_commit(pen: Pen) -> None:
    """Count and record; what stands in the record has an effect, and the other way round."""
    turn = pen.running
    pen.ask("commit", CommitVerdict, due(pen), turn=turn.id, verdict=turn.verdict, revision=turn.judged)
