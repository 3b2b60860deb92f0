"""One model stream: its preparation in exact order, and what follows its tools.

The rows of STREAM_ORDER run before every send. A stream of the guard's (`attempt` > 0) goes through all
of them; any other begins at the compression. The order is the promise: what the person said is looked
for before pictures choose a model, plan mode, background work and the decision are looked at again
after that, the claim comes when nothing else can change the mind, and only after it come compression,
the token limit and the send. A prompt admitted before the claim wins; one admitted after it waits for
this stream and stops the next, which claims again.

The guard's instruction is made at the send and lies in the staged entry alone. The provider's first
event commits the entry and the attempt; a refusal rolls the entry back by its id (design §8.1).

TOOL_ORDER runs when a batch of tools has ended: the person's words first, then whether the results go
back as another attempt of the guard's, as a plain stream, or into history.
"""

from __future__ import annotations

from stopwarden.core import chain as chains
from stopwarden.core import chain_words as words
from stopwarden.core.away_at_stop import ask_commit, claim_failed, is_stale, judge_again
from stopwarden.core.failures import FAILURES, fail, give_up, strike, what_went
from stopwarden.core.instruction import instruction
from stopwarden.core.stop_loop import (
    Row,
    ask_claim,
    ask_drain,
    background,
    begin_stream,
    confirm_queue,
    gap_parts,
    label,
)
from stopwarden.core.turn_events import CheckTokens, ChooseModel, Compress, Part, Send, WriteHistory
from stopwarden.core.turn_state import Pen, Stream

# ---- before a send


def drain(pen: Pen) -> None:
    """What did the person say meanwhile? Only our policies ask: anybody else's stream is wanted already."""
    stream = pen.running.stream
    if stream.attempt or stream.away is not None:
        ask_drain(pen, watched=True)
    else:
        pen.go("stream", "stream.show_hook")


def see_images(pen: Pen) -> None:
    """Pictures among the drained words choose a model that can see them, for the rest of the turn."""
    found = pen.running.found
    if found is not None and any(part.image for part in found.parts):
        pen.ask("model", ChooseModel, parts=found.parts)


def weigh_drained(pen: Pen) -> None:
    """Yield, or send the person's words instead of ours, or go on.

    In doubt the guard gives up; the away check leaves it to its claim, since nobody may be there to go on.
    """
    turn = pen.running
    found, claim, stream = turn.found, turn.claim, turn.stream
    assert found is not None
    pen.on(found=None, claim="")
    if claim == "queued":
        give_way(pen, found.parts)
    elif found.parts:
        if stream.first:
            forget_hook(pen)
        pen.chained(words.MidTurnAccepted(turn=turn.id))
        kept = () if stream.first else stream.parts
        name = label(pen, "mid_turn")
        pen.on(stream=Stream(parts=kept + found.parts, first=stream.first, label=name), forced=False)
        pen.go("stream", "stream.show_hook")
    elif stream.attempt and claim == "unavailable":
        give_up(pen, "claim")
    elif stream.attempt and not found.reliable:
        give_up(pen, "drain")


def give_way(pen: Pen, drained: tuple[Part, ...] = ()) -> None:
    """A queued prompt goes first: drained words and tool results are stored, a hook's fresh answer is dropped."""
    if pen.running.stream.first:
        forget_hook(pen)
    pen.put_away("superseded")
    pen.store(drained)
    pen.end("yielded", "turn.yielded")


def forget_hook(pen: Pen) -> None:
    """A hook's answer that was overtaken before its stream: not shown, not counted, its reason not sent."""
    turn = pen.running
    if turn.stream.hook is not None:
        pen.on(hook=None, hook_blocks=turn.hook_blocks - 1, hook_streams=turn.hook_streams - 1)
        pen.on(stream=turn.stream.replace(parts=(), hook=None))


def look_at_plan(pen: Pen) -> None:
    """In plan mode the guard sends nothing. A verdict of the away check is stale then, and judged again."""
    if pen.chain.plan and pen.running.stream.attempt:
        give_up(pen, "plan")


def decide_again(pen: Pen) -> None:
    """The decision, with the background work of now. Another answer than the one we set out with ends it."""
    turn, stream = pen.running, pen.running.stream
    if stream.away is not None:
        if is_stale(pen):
            judge_again(pen)
        return
    if stream.closure:
        decision = chains.decide_tool_closure(pen.chain, turn.id, stream.attempt - 1, background(pen), pen.seconds())
    else:
        decision = chains.decide(pen.chain, turn.id, background(pen), pen.seconds())
    if decision.kind == "continue" and decision.attempt == stream.attempt:
        pen.on(stream=stream.replace(closure=decision.tool_closure, unfinished=decision.unfinished))
        return
    if decision.kind == "deferred":
        pen.tell("guard_deferred", unfinished=decision.unfinished)
    give_up(pen, decision.kind if decision.kind in FAILURES else "inactive")


def claim(pen: Pen) -> None:
    """Ask for our place in order. Each stream of ours asks for its own."""
    stream = pen.running.stream
    pen.on(stream=stream.replace(claims=stream.claims + 1))
    ask_claim(pen, probe=False)


def weigh_claim(pen: Pen) -> None:
    """Only a claim that was granted goes on."""
    if pen.running.claim == "queued":
        give_way(pen)
    elif pen.running.claim == "claimed":
        return
    elif pen.running.stream.away is not None:
        claim_failed(pen)
    else:
        give_up(pen, "claim")


def keep_verdict(pen: Pen) -> None:
    """A block of the away check is counted and recorded before it is sent."""
    if pen.running.stream.away is None or pen.running.verdict is None:  # None: it could not be judged
        return
    if is_stale(pen):
        judge_again(pen)
    else:
        ask_commit(pen)


def show_hook(pen: Pen) -> None:
    """Now it is certain that the hook's reason goes on: people are told."""
    turn, stream = pen.running, pen.running.stream
    if stream.hook is not None and stream.first and not turn.forced_shown:
        pen.tell("hook_block", count=turn.hook_blocks, reason=stream.hook.reason, message=stream.hook.message)
        pen.on(forced=True, forced_shown=True)


def compress(pen: Pen) -> None:
    """Make room. Not for another model than the turn's own, and not again within a row of continuations."""
    turn = pen.running
    if not turn.model and turn.stream.attempt < 2 and turn.hook_streams < 2:
        pen.ask("compress", Compress)


def weigh_compression(pen: Pen) -> None:
    """Without room neither policy sends; a hook's reason, and whatever the person said, may."""
    stream = pen.running.stream
    if pen.running.compression_failed and (stream.attempt or stream.away is not None):
        give_up(pen, "compression")


def tell_of_gaps(pen: Pen) -> None:
    """The model is told of results that were left out with the next send of any kind; a closure takes results alone.

    What the backlog gave out for a stream (`carried`) has its gap entries with it.
    """
    stream = pen.running.stream
    if stream.notice or stream.carried or stream.closure or not pen.backlog.gaps.open:
        return
    entry = f"entry-{pen.next_id}"
    pen.on(stream=stream.replace(entry=entry, notice=gap_parts(pen.riders(entry))))


def check_tokens(pen: Pen) -> None:
    """Does it fit?"""
    pen.ask("tokens", CheckTokens, parts=to_send(pen.running.stream))


def send(pen: Pen) -> None:
    """Stage the entry and open the stream, unless trust, or the budget, went since the claim."""
    turn, stream = pen.running, pen.running.stream
    if not turn.fits:
        fail(pen, "tokens")
        return
    guard = pen.chain.guard
    if stream.attempt and (guard.suspended or guard.switch != "on" or stream.attempt > guard.budget.attempts):
        give_up(pen, what_went(pen))
        return
    if stream.away is not None and is_stale(pen):
        judge_again(pen)
        return
    entry, parts = stream.entry or f"entry-{pen.next_id}", to_send(stream)
    pen.on(stream=stream.replace(entry=entry))
    pen.do(WriteHistory, act="stage", entry=entry, parts=parts)  # on disk before the send (I10)
    pen.ask("send", Send, entry=entry, parts=parts, label=stream.label, attempt=stream.attempt, model=turn.model)


def to_send(stream: Stream) -> tuple[Part, ...]:
    """All parts of a stream: gap entries, the hook's reason, and our policy's words last, none with a closure."""
    parts = stream.notice + stream.parts
    if stream.away is not None:
        return (*parts, stream.away)
    if not stream.attempt or stream.closure:
        return parts
    return (*parts, instruction(stream.unfinished, stream.attempt, stream.cap))


STREAM_ORDER = (
    Row(rule="stream.drain", act=drain),
    Row(rule="stream.see_images", act=see_images),
    Row(rule="stream.confirm_queue", act=confirm_queue),
    Row(rule="stream.weigh_drained", act=weigh_drained),
    Row(rule="stream.look_at_plan", act=look_at_plan),
    Row(rule="stream.decide_again", act=decide_again),
    Row(rule="stream.claim", act=claim),
    Row(rule="stream.weigh_claim", act=weigh_claim),
    Row(rule="stream.keep_verdict", act=keep_verdict),
    Row(rule="stream.show_hook", act=show_hook),
    Row(rule="stream.compress", act=compress),
    Row(rule="stream.weigh_compression", act=weigh_compression),
    Row(rule="stream.tell_of_gaps", act=tell_of_gaps),
    Row(rule="stream.check_tokens", act=check_tokens),
    Row(rule="stream.send", act=send),
)


# ---- after tools. The stream that asked for them has ended; `results` wait in turn.tool_parts.


def heed_stop(pen: Pen) -> None:
    """A protection stopped the tools: the chain is locked; results are stored, or wait for the person's words."""
    stop = pen.running.tool_stop
    if stop == "post_tool_use":
        strike(pen, stop)
    elif stop:
        fail(pen, stop)


def drain_after_tools(pen: Pen) -> None:
    """The person's words of meanwhile go along with the results."""
    ask_drain(pen, watched=False)


def send_results(pen: Pen) -> None:
    """The results go on with the person's words, as an attempt of the guard's, plainly, or into history."""
    turn, ended = pen.running, pen.running.stream
    drained = turn.found.parts if turn.found is not None else ()
    parts = turn.tool_parts + drained
    pen.on(tool_parts=(), found=None)
    following = Stream(parts=parts, first=False, hook=ended.hook, label=label(pen, "tools"))
    if drained:
        pen.chained(words.MidTurnAccepted(turn=turn.id))
        begin_stream(pen, following)
    elif turn.tool_stop:
        pen.on(stream=following)
        pen.put_away("refused")
        pen.end("suspended", FAILURES["post_tool_use"].rule)
    elif not ended.attempt:
        begin_stream(pen, following)
    else:
        after_guard_stream(pen, following, ended.attempt)


def after_guard_stream(pen: Pen, following: Stream, attempt: int) -> None:
    """Every follow-up of a guard stream is an attempt of its own, or is not the guard's, or is not sent."""
    decision = chains.decide_tool_closure(pen.chain, pen.running.id, attempt, background(pen), pen.seconds())
    if decision.kind == "continue":
        begin_stream(
            pen,
            following.replace(
                attempt=decision.attempt,
                cap=decision.cap,
                unfinished=decision.unfinished,
                closure=decision.tool_closure,
            ),
        )
    elif following.hook is not None:
        begin_stream(pen, following)
    else:
        pen.store(following.parts)
        pen.on(stream=Stream())
        pen.go("stop")


TOOL_ORDER = (
    Row(rule="tools.heed_stop", act=heed_stop),
    Row(rule="tools.drain", act=drain_after_tools),
    Row(rule="tools.send_results", act=send_results),
)
