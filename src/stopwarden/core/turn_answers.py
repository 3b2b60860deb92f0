"""What each answer means to the turn that waits for it.

One row of ANSWERS for what was asked and what may come back. An answer leaves what was learned in the
turn's fields; the rows of the orders (`core/turn`) judge it. Late answers are harmless: the words of a
late drain are kept for the next drain or prompt, a late claim is told to the chain (order may follow
from it, trust never), and everything else passes unheard.
"""

from __future__ import annotations

from stopwarden.core import away_words as away
from stopwarden.core import backlog_events as waits
from stopwarden.core import chain as chains
from stopwarden.core import chain_words as words
from stopwarden.core import turn_events as ev
from stopwarden.core.away_at_stop import fault, judge_again
from stopwarden.core.bounds import DRAIN_TIMEOUTS_MAX
from stopwarden.core.failures import fail, give_up, strike, what_went
from stopwarden.core.stop_loop import take_drained
from stopwarden.core.turn_state import Found, HookSaid, Pen, Stream, illegal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def answered(pen: Pen, event: ev.Answer) -> None:
    """An answer that is waited for is taken; a late one is heard where words or order are at stake."""
    turn = pen.turn
    if event.id >= pen.next_id or event.id < 1:
        raise illegal(event, f"nothing was asked under id {event.id}")
    hooks_out = turn.hooks_out if turn is not None else None
    if hooks_out is not None and event.id == hooks_out.id:
        hooks_heard_early(pen, event)
        return
    waiting = turn.waiting if turn is not None else None
    if waiting is None or waiting.id != event.id:
        late(pen, event)
        return
    take = ANSWERS.get((waiting.what, type(event)))
    if take is None:
        raise illegal(event, f"the answer to {waiting.what} is another")
    if waiting.what != "send" or not isinstance(event, ev.ProviderAccepted):
        pen.writing().waiting = None
    take(pen, event)


def late(pen: Pen, event: ev.Answer) -> None:
    """The id is retired."""
    if isinstance(event, ev.DrainAnswered) and event.id in pen.state.late_drains:
        rest = tuple(one for one in pen.state.late_drains if one != event.id)
        pen.set(late_drains=rest)
        pen.hold(event.parts)
    elif isinstance(event, ev.ClaimAnswered) and event.id <= pen.chain.last_claim:
        answer = chains.read_claim_answer(event.claimed, event.queued)
        pen.chained(words.ClaimAnswered(id=event.id, answer=answer))


def drained(pen: Pen, event: ev.DrainAnswered) -> None:
    """A watched drain must say whether a prompt is queued. One that the owner's side does not know is asked no more."""
    if event.unknown_method:
        pen.set(drain_gone=True)
    elif event.reliable:
        pen.set(drain_strikes=0)
    watched = pen.running.order != "tools"
    reliable = event.reliable and not event.unknown_method and not (watched and event.hint is None)
    take_drained(pen, Found(parts=event.parts, hint=bool(event.hint) and reliable, reliable=reliable))


def strike_drain(pen: Pen) -> None:
    strikes = pen.state.drain_strikes + 1
    pen.set(drain_strikes=strikes, drain_gone=pen.state.drain_gone or strikes >= DRAIN_TIMEOUTS_MAX)


def claim_answered(pen: Pen, event: ev.ClaimAnswered) -> None:
    settle(pen, event.id, chains.read_claim_answer(event.claimed, event.queued))


def settle(pen: Pen, claim: int, answer: str) -> None:
    """The chain says what a claim comes to, and the turn that waited for it hears so."""
    for effect in pen.chained(words.ClaimAnswered(id=claim, answer=answer)):
        if isinstance(effect, words.ClaimSettled):
            pen.on(claim=effect.outcome)
    turn = pen.running
    if turn.hooks_out is None:
        return
    if turn.claim == "queued":  # a prompt waits indeed: the hooks are cut short, and the turn yields
        pen.cut("queued_prompt")
        pen.end("yielded", "turn.yielded")
    else:
        pen.on(waiting=turn.hooks_out, hooks_out=None, claim="")


def hooks_answered(pen: Pen, event: ev.HookAnswered) -> None:
    if event.failed and not pen.chain.away:
        fail(pen, "hooks", "the Stop hooks could not be asked")
        return
    if event.failed:  # nobody is there to try again: the stop is judged without them
        strike(pen, "hooks")
        pen.tell("hooks_failed")
    said = HookSaid(block=event.block, reason=event.reason, message=event.message)
    pen.on(hook=said, found=None, claim="")


def hooks_heard_early(pen: Pen, event: ev.Answer) -> None:
    """The hooks answered before the queue did: they are no longer out, and the claim is not needed."""
    if not isinstance(event, ev.HookAnswered):
        raise illegal(event, "the answer to hooks is another")
    pen.on(hooks_out=None, waiting=None)  # the drain that follows the hooks asks the queue again
    hooks_answered(pen, event)


def model_chosen(pen: Pen, event: ev.ModelChosen) -> None:
    pen.on(model=event.model)


def compressed(pen: Pen, event: ev.CompressionDone) -> None:
    pen.on(compression_failed=False)


def not_compressed(pen: Pen, event: ev.CompressionFailed) -> None:
    pen.on(compression_failed=True)


def tokens_checked(pen: Pen, event: ev.TokensChecked) -> None:
    pen.on(fits=event.fits)


def accepted(pen: Pen, event: ev.ProviderAccepted) -> None:
    """The stream has begun: the entry is history, the attempt is counted and shown, what was carried is delivered."""
    turn, stream = pen.running, pen.running.stream
    assert turn.waiting is not None
    counted = True
    if stream.attempt:
        committed = words.AttemptCommitted(turn=turn.id, attempt=stream.attempt, at=pen.seconds())
        counted = not any(isinstance(effect, words.CommitRefused) for effect in pen.chained(committed))
    if not counted or (stream.away is not None and pen.chain.plan):
        refuse_late_commit(pen)
        return
    pen.do(ev.WriteHistory, act="commit", entry=stream.entry)
    if stream.carried or stream.notice:
        pen.waited(waits.TurnAccepted(turn=stream.carried or stream.entry))
    pen.on(stream=stream.replace(begun=True), waiting=turn.waiting.replace(what="stream"))


def refuse_late_commit(pen: Pen) -> None:
    """Trust went while the provider was making up its mind: the stream is cut, and our words leave no trace."""
    turn = pen.running
    assert turn.waiting is not None
    pen.roll_back()
    pen.do(ev.Abort, of=turn.waiting.id, why="not_committed")
    pen.on(waiting=None)
    if turn.abort:
        return
    if turn.stream.away is not None:
        judge_again(pen)
        return
    give_up(pen, what_went(pen))


def refused(pen: Pen, event: ev.ProviderRefused) -> None:
    """No stream: the staged entry is taken back by its id, and nothing was spent."""
    pen.roll_back()
    if not pen.running.abort:
        fail(pen, "refused", event.why)


def stream_ended(pen: Pen, event: ev.StreamEnded) -> None:
    """A reply with calls goes on to the tools; one without is a stop."""
    turn = pen.running
    keep_reply(pen, event.reply)
    pen.on(reply=event.reply)
    if turn.stream.attempt:
        pen.chained(words.TokensSpent(turn=turn.id, tokens=event.tokens))
    if turn.abort:
        return
    if event.calls:
        pen.go("tools")
        pen.ask("tools", ev.RunTools, calls=event.calls)
    else:
        pen.on(stream=Stream())
        pen.go("stop")


def keep_reply(pen: Pen, reply: str) -> None:
    """The model's words are history."""
    pen.do(ev.WriteHistory, act="append", entry=reply, parts=(ev.Part(kind="reply", id=reply),))


def stream_broken(pen: Pen, event: ev.StreamBroken) -> None:
    """The attempt counts and the entry stays: the provider had begun. Half an answer is an answer to what was sent."""
    if event.reply:
        keep_reply(pen, event.reply)
    if not pen.running.abort:
        fail(pen, "broken", event.why)


def tools_done(pen: Pen, event: ev.ToolsDone) -> None:
    """Results of a turn that unwinds are stored; else the rows after tools judge them."""
    if pen.running.abort:
        pen.store(event.parts)
        return
    pen.on(tool_parts=event.parts, tool_stop=event.stop)


def judged(pen: Pen, event: away.Judged) -> None:
    """The away check's verdict; what it comes to is the next row's."""
    if event.verdict is None:
        fault(pen, event.failed)
    else:
        pen.on(verdict=event.verdict)


def verdict_kept(pen: Pen, event: away.VerdictKept) -> None:
    """It is counted and in the record; or it is judged again; or it is a fault of ours."""
    if event.stale:
        judge_again(pen)
    elif event.failed:
        fault(pen, event.failed)
    else:
        pen.set(faults=0)


ANSWERS: Mapping[tuple[str, type[ev.Answer]], Callable[[Pen, Any], None]] = {
    ("drain", ev.DrainAnswered): drained,
    ("claim", ev.ClaimAnswered): claim_answered,
    ("hooks", ev.HookAnswered): hooks_answered,
    ("verdict", away.Judged): judged,
    ("commit", away.VerdictKept): verdict_kept,
    ("model", ev.ModelChosen): model_chosen,
    ("compress", ev.CompressionDone): compressed,
    ("compress", ev.CompressionFailed): not_compressed,
    ("tokens", ev.TokensChecked): tokens_checked,
    ("send", ev.ProviderAccepted): accepted,
    ("send", ev.ProviderRefused): refused,
    ("stream", ev.StreamEnded): stream_ended,
    ("stream", ev.StreamBroken): stream_broken,
    ("tools", ev.ToolsDone): tools_done,
}
