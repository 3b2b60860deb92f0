"""The order at a stop (design §3): what is asked, in which order, before a turn may end.

A stop is a reply without tool calls. The rows of STOP_ORDER run from top to bottom; a row may end the
turn, begin another stream (`core/continuation`), ask something and wait for its answer, or do nothing,
and then the next row runs. After a continuation the order begins again at the top.

The queue comes before everything of ours: a queued prompt is a hint until a claim confirms it, and then
the turn yields with the drained words stored; words for this turn are user input and begin a new stage.
Both are looked for again after the external Stop hooks, which may be slow, and what is found discards
their answer: not shown, not counted. A queued prompt that is seen while the hooks are still out is
confirmed at once and cuts them short (design §8.5).

Beyond the source, as design §3 has it: plan mode ends the stop before anything is asked, and the drain
comes before the results of this turn's own background work.
"""

from __future__ import annotations

from stopwarden.core import backlog as backlogs
from stopwarden.core import chain as chains
from stopwarden.core import chain_words as words
from stopwarden.core import guard as guards
from stopwarden.core.away_at_stop import allow_by_verdict, ask_verdict, hook_stream, weigh_verdict
from stopwarden.core.backlog_events import Deliver, OwnResultsAsked, RunFire
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.core.failures import fail, strike
from stopwarden.core.record import Record
from stopwarden.core.turn_events import FOREGROUND, Claim, Drain, Part, RunHooks
from stopwarden.core.turn_state import Found, HookSaid, Pen, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stopwarden.core.gaps import Gap
    from stopwarden.core.guard import Decision

    Act = Callable[[Pen], None]


class Row(Record):
    """One row of an order: the rule's id and what it does."""

    rule: str
    act: Act


# ---- what a stop and the preparation of a stream both ask


def ask_drain(pen: Pen, *, watched: bool) -> None:
    """Take the mid-turn messages; words that came too late for the last drain are among them."""
    if pen.state.drain_gone:
        take_drained(pen, Found(reliable=False))
        return
    pen.on(found=None)
    due = pen.state.now + DRAIN_DEADLINE_MS
    pen.ask("drain", Drain, due, owner=pen.running.owner, watched=watched)


def take_drained(pen: Pen, found: Found) -> None:
    """What a drain brought, with the words that were kept for it in front."""
    pen.on(found=found.replace(parts=pen.state.kept + found.parts))
    pen.set(kept=())


def ask_claim(pen: Pen, *, probe: bool) -> None:
    """Ask for the next place in order. A probe only wants to know whether the hint was true."""
    turn = pen.running
    owner = turn.owner
    policy = "away" if pen.chain.away and not turn.stream.attempt else "guard"
    pen.on(claim="")
    pen.ask("claim", Claim, pen.state.now + DRAIN_DEADLINE_MS, owner=owner, probe=probe)
    pen.chained(words.ClaimSent(id=pen.next_id - 1, owner=owner, policy=policy))


def background(pen: Pen) -> bool:
    """Whether work of this chain, or its result, is still to come."""
    return backlogs.defers_guard(pen.backlog, pen.state.tasks)


def inspects(pen: Pen) -> bool:
    """Whether the guard has something to say in this turn."""
    running = pen.chain.running
    return running is not None and not running.guest and guards.needs_inspection(pen.chain.guard)


def may_go_on(pen: Pen) -> bool:
    """Whether a policy of ours may have a reason to go on at this stop."""
    return inspects(pen) or (bool(pen.chain.away) and not chains.is_cancelled(pen.chain))


def begin_stream(pen: Pen, stream: Stream) -> None:
    """Go on with another stream; its preparation begins at the first row."""
    pen.on(stream=stream, found=None, claim="", compression_failed=False)
    pen.go("stream")


def label(pen: Pen, suffix: str) -> str:
    """A name for a stream in telemetry. Never an owner."""
    pen.on(labels=pen.running.labels + 1)
    return f"{pen.running.id}_{suffix}_{pen.running.labels}"


# ---- the rows


def plan_mode(pen: Pen) -> None:
    """In plan mode nothing goes on by itself; while away that is recorded, since the session waits for the person."""
    if not pen.chain.plan:
        return
    failure = strike(pen, "plan")
    if pen.chain.away:
        pen.on(hook=None)
        pen.go("stop", "stop.ask_verdict")
    else:
        pen.end("plan_mode", failure.rule)


def yielded(pen: Pen) -> None:
    """The chain has given way to a queued prompt before."""
    if pen.chain.priority:
        pen.end("yielded", "turn.yielded")


def drain(pen: Pen) -> None:
    """A stop that would be continued is looked at first."""
    pen.on(found=None, claim="")
    if may_go_on(pen):
        ask_drain(pen, watched=True)


def confirm_queue(pen: Pen) -> None:
    """A queued prompt is a hint; the claim is the truth."""
    found = pen.running.found
    if found is not None and found.hint:
        ask_claim(pen, probe=True)


def weigh_drained(pen: Pen) -> None:
    """Yield to a queued prompt, or go on with the person's words; either discards what the hooks said."""
    turn = pen.running
    found, claim = turn.found, turn.claim
    if found is None:
        return
    pen.on(found=None, claim="")
    if claim == "queued":
        pen.store(found.parts)
        pen.end("yielded", "turn.yielded")
        return
    if claim == "unavailable":
        strike(pen, "claim")
    elif not found.reliable and not found.parts and inspects(pen):
        strike(pen, "drain")
    if found.parts:
        pen.chained(words.MidTurnAccepted(turn=turn.id))
        pen.on(hook=None, hook_blocks=0, hook_streams=0, forced=False)
        begin_stream(pen, Stream(parts=found.parts, label=label(pen, "mid_turn")))


def own_results(pen: Pen) -> None:
    """Results of this chain's own background work go to the model; they cost no attempt.

    Only where nobody else may want them: a chain that the guard does not hold leaves them to a turn of
    their own.
    """
    if not any(result.related for result in pen.backlog.results) or pen.guest or not may_go_on(pen):
        return
    name = label(pen, "background_result")
    given = pen.waited(OwnResultsAsked(turn=name, holding=pen.holding()))
    assert given is not None  # a related result waits, and nothing goes before this turn
    begin_stream(pen, Stream(parts=carried_parts(given), carried=name, label=name))


def carried_parts(given: Deliver | RunFire) -> tuple[Part, ...]:
    """What the backlog gave out, as parts of a send."""
    ids, kind = ((given.fire,), "fire") if isinstance(given, RunFire) else (given.results, "result")
    return (*gap_parts(given.gaps), *(Part(kind=kind, id=one) for one in ids))


def gap_parts(gaps: tuple[Gap, ...]) -> tuple[Part, ...]:
    """Gap entries as parts of a send. They lie in front."""
    return tuple(Part(kind="gap", id=gap.id) for gap in gaps)


def hooks(pen: Pen) -> None:
    """The external Stop hooks have their say, in foreground turns and below their own cap."""
    turn = pen.running
    pen.on(hook=None)
    if pen.state.hooks and turn.kind == FOREGROUND and turn.hook_blocks < pen.state.hook_cap:
        pen.ask("hooks", RunHooks, forced=turn.forced, reply=turn.reply)
    else:
        pen.go("stop", "stop.ask_verdict")


def count_hook(pen: Pen) -> None:
    """An answer that nothing discarded counts; an allow is shown and ends the row of blocks."""
    hook = pen.running.hook or HookSaid()
    if hook.block:
        pen.on(hook_blocks=pen.running.hook_blocks + 1, forced_shown=False)
        return
    if hook.message:
        pen.tell("hook_message", message=hook.message)
    pen.on(hook=None, hook_blocks=0, hook_streams=0, forced=False)


def policy(pen: Pen) -> None:
    """Away does not hold: the guard decides. The hook's reason goes first; without any the turn ends and says why."""
    turn = pen.running
    decision = chains.decide(pen.chain, turn.id, background(pen), pen.seconds())
    if decision.kind == "observed":  # judged and recorded, and nothing more
        pen.tell("guard_observed", would=decision.why, attempt=decision.attempt, unfinished=decision.unfinished)
    if decision.kind == "exhausted":
        pen.chained(words.ExhaustionReported(turn=turn.id, at=pen.seconds()))  # told once, by the chain
    if turn.hook is not None and turn.hook_blocks >= pen.state.hook_cap:
        pen.tell("hook_cap", blocks=turn.hook_blocks)
        fail(pen, "hook_cap")
    elif turn.hook is None and decision.kind != "continue":
        allow(pen, decision)
    else:
        name = label(pen, "stop_hook" if turn.hook else "todo_stop_guard")
        stream = hook_stream(pen, name) if pen.running.hook else Stream(label=name)
        if decision.kind == "continue":
            stream = stream.replace(attempt=decision.attempt, cap=decision.cap, unfinished=decision.unfinished)
        begin_stream(pen, stream)


# How a stop is allowed when nobody has a reason: the decision's kind, and for an idle guard its state.
ALLOWED: Mapping[str, str] = {
    "exhausted": "exhausted",
    "deferred": "deferred",
    "observed": "observed",
    "off": "off",
    "paused": "done",
    "idle": "done",
    "done": "done",
    "awaiting": "yielded",
    "guest": "done",
}


def allow(pen: Pen, decision: Decision) -> None:
    """The turn ends; why is its kind."""
    if decision.kind == "deferred":
        pen.tell("guard_deferred", unfinished=decision.unfinished)
    known = decision.why if decision.kind == "inactive" else decision.kind
    kind = ALLOWED.get(known, "suspended")  # an inactive guard that is locked names what locked it
    forced = pen.chain.guard.forced_off if kind == "off" else ""
    pen.end(kind, f"guard.{kind}", forced or decision.why)


STOP_ORDER = (
    Row(rule="stop.plan_mode", act=plan_mode),  # 2 (1, superseded or aborted, holds before every row of every order)
    Row(rule="stop.yielded", act=yielded),  # 3
    Row(rule="stop.drain", act=drain),  # 4
    Row(rule="stop.confirm_queue", act=confirm_queue),
    Row(rule="stop.weigh_drained", act=weigh_drained),
    Row(rule="stop.own_results", act=own_results),  # 5
    Row(rule="stop.hooks", act=hooks),  # 6
    Row(rule="stop.drain_again", act=drain),  # 4 again
    Row(rule="stop.confirm_queue_again", act=confirm_queue),
    Row(rule="stop.weigh_drained_again", act=weigh_drained),
    Row(rule="stop.count_hook", act=count_hook),
    Row(rule="stop.ask_verdict", act=ask_verdict),  # 7, 8, 9 while away
    Row(rule="stop.weigh_verdict", act=weigh_verdict),
    Row(rule="stop.allow_by_verdict", act=allow_by_verdict),
    Row(rule="stop.policy", act=policy),  # 7, 8, 9 otherwise
)
