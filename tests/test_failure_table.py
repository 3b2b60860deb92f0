"""What becomes of guard, content and turn at each point where a continuation may fail, row by row.

Each row is played three times: for the guard's first stream, for one that also follows a hook's block,
and for the stream that takes tool results back. What is kept is kept once, the guard's words are in
history only with a stream that began, and an attempt counts only where the provider had begun.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_DEADLINE_MS
from stopwarden.core.lineage import Task
from stopwarden.core.record import Record
from tests.support.turns import BLOCK, LOOK, Reply, World


class Row(Record):
    """One failure: how it comes, and what it leaves."""

    name: str
    comes: Callable[[World], None]
    held: str | None  # what the guard is held back by
    end: str
    rule: str
    alone: bool = False  # a hook's block goes on by itself
    paused: bool = False
    counts: bool = False  # the provider had begun
    follows: bool = True  # a stream with tool results meets it as well


def answer(kind: type[ev.Effect], made: type[ev.Answer], **said: Any) -> Callable[[World], None]:
    """The effect is answered badly."""

    def comes(world: World) -> None:
        asked = world.play(until=kind)
        world.fail(asked, made(id=asked.id, **said))

    return comes


def meanwhile(kind: type[ev.Effect], event: ev.Event) -> Callable[[World], None]:
    """Something happens while the effect is out."""

    def comes(world: World) -> None:
        world.play(until=kind)
        world.feed(event)

    return comes


def silence(kind: type[ev.Effect]) -> Callable[[World], None]:
    """No answer in time."""

    def comes(world: World) -> None:
        world.open.pop(world.play(until=kind).id)
        world.feed(ev.Tick(now=world.state.now + DRAIN_DEADLINE_MS))

    return comes


def opens(reply: Reply) -> Callable[[World], None]:
    """The provider, or the tools of the stream, do this."""
    return lambda world: world.replies.append(reply)


def overtaken(world: World) -> None:
    """A newer prompt is admitted while the stream is prepared."""
    world.play(until=ev.CheckTokens)
    world.prompt(play=False)


OWN = ev.BackgroundChanged(tasks=(Task(kind="shell", id="mine"),))
PLAN, CANCEL, DISPOSE = ev.ModeChanged(plan=True), ev.Cancelled(), ev.Disposed()

ROWS = [
    Row(
        name="drain error",
        comes=answer(ev.Drain, ev.DrainAnswered, reliable=False),
        held="drain_unreliable",
        end="suspended",
        rule="turn.drain_unreliable",
        alone=True,
    ),
    Row(
        name="drain time-out",
        comes=silence(ev.Drain),
        held="drain_unreliable",
        end="suspended",
        rule="turn.drain_unreliable",
        alone=True,
    ),
    Row(
        name="drain unknown",
        comes=answer(ev.Drain, ev.DrainAnswered, unknown_method=True),
        held="drain_unreliable",
        end="suspended",
        rule="turn.drain_unreliable",
        alone=True,
    ),
    Row(
        name="claim refused",
        comes=answer(ev.Claim, ev.ClaimAnswered, claimed=False, queued=False),
        held="claim_unavailable",
        end="suspended",
        rule="turn.claim_unavailable",
        alone=True,
    ),
    Row(
        name="claim time-out",
        comes=silence(ev.Claim),
        held="claim_unavailable",
        end="suspended",
        rule="turn.claim_unavailable",
        alone=True,
    ),
    Row(
        name="claim queued",
        comes=answer(ev.Claim, ev.ClaimAnswered, claimed=False, queued=True),
        held=None,
        end="yielded",
        rule="turn.yielded",
    ),
    Row(
        name="plan mode",
        comes=meanwhile(ev.Drain, PLAN),
        held="plan",
        end="plan_mode",
        rule="turn.plan_mode",
        alone=True,
    ),
    Row(
        name="work of its own",
        comes=meanwhile(ev.Drain, OWN),
        held=None,
        end="deferred",
        rule="turn.deferred",
        alone=True,
    ),
    Row(
        name="compression",
        comes=answer(ev.Compress, ev.CompressionFailed),
        held="compression_failed",
        end="suspended",
        rule="turn.compression_failed",
        alone=True,
        follows=False,  # a second stream is not compressed again
    ),
    Row(
        name="token limit",
        comes=answer(ev.CheckTokens, ev.TokensChecked, fits=False),
        held="token_limit",
        end="max_tokens",
        rule="turn.token_limit",
    ),
    Row(
        name="refused",
        comes=opens(Reply(refused="429")),
        held=None,
        end="error",
        rule="turn.provider_refused",
        paused=True,
    ),
    Row(
        name="broken",
        comes=opens(Reply(broken="network")),
        held=None,
        end="error",
        rule="turn.stream_broken",
        paused=True,
        counts=True,
    ),
    Row(
        name="an abort that nobody asked for",
        comes=opens(Reply(broken="AbortError")),
        held=None,
        end="error",
        rule="turn.stream_broken",
        paused=True,
        counts=True,
    ),
    Row(name="overtaken", comes=overtaken, held=None, end="cancelled", rule="turn.new_prompt"),
    Row(
        name="cancel",
        comes=meanwhile(ev.CheckTokens, CANCEL),
        held="cancelled",
        end="cancelled",
        rule="turn.cancel",
    ),
    Row(
        name="dispose",
        comes=meanwhile(ev.CheckTokens, DISPOSE),
        held="disposed",
        end="cancelled",
        rule="turn.dispose",
    ),
    Row(
        name="tool loop",
        comes=opens(Reply(calls=1, stop="loop")),
        held="loop_protection",
        end="loop_detected",
        rule="turn.loop_protection",
        counts=True,
    ),
    Row(
        name="tools fail again and again",
        comes=opens(Reply(calls=1, stop="repeated_failure")),
        held="tool_failures",
        end="loop_detected",
        rule="turn.repeated_failure",
        counts=True,
    ),
    Row(
        name="a tool hook says stop",
        comes=opens(Reply(calls=1, stop="post_tool_use")),
        held="tool_hook_stop",
        end="suspended",
        rule="turn.post_tool_use",
        counts=True,
    ),
]


def at_the_continuation(hooks: bool = False) -> World:
    """The stop was looked at, and the guard's stream is about to be prepared: its own drain is out."""
    world = World(hooks=hooks)
    if hooks:
        world.hooks.append(BLOCK)
    world.arm()
    world.play(until=ev.Drain, skip=3 if hooks else 2)
    assert world.state.turn is not None
    assert world.state.turn.stream.attempt == 1
    return world


def ended(world: World) -> ev.EndTurn:
    """How the first turn ended."""
    return next(one for one in world.effects if isinstance(one, ev.EndTurn) and one.turn == "P1")


def check_history(world: World, row: Row) -> None:
    """Tool results once each; the guard's words only with the streams that began."""
    results = [part.id for send in world.sent for part in send.parts if part.kind == "tool_result"]
    results += [p.id for parts in world.history.values() for p in parts if p.kind == "tool_result"]
    assert all(world.stored(one) == 1 for one in results)
    began = sum(1 for send in world.committed if send.attempt)
    ours = sum(part.kind == "guard" for parts in world.history.values() for part in parts)
    assert ours == began
    assert world.state.chain.guard.retry_paused == row.paused


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_the_first_stream_of_the_guard_fails(row: Row) -> None:
    """The turn ends as its row says, and the guard is held, paused or left as it was."""
    world = at_the_continuation()
    row.comes(world)
    world.play()
    end = ended(world)
    assert (end.kind, end.rule) == (row.end, row.rule)
    assert world.state.chain.guard.suspended_by == row.held
    counted = [one["attempt"] for one in world.told("AttemptCounted")]
    assert counted == ([1] if row.counts else [])
    check_history(world, row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_the_stream_fails_that_also_follows_a_hooks_block(row: Row) -> None:
    """Where the row says so the hook's reason goes on alone, told and sent once; else it is kept, or dropped for a person."""
    world = at_the_continuation(hooks=True)
    before = len(world.sent)
    row.comes(world)
    world.play()
    sent = [[part.kind for part in send.parts] for send in world.sent[before:]]
    assert (sent[:1] == [["hook_reason"]]) == row.alone
    assert len(world.told("hook_block")) == (0 if row.end == "yielded" else 1)
    assert world.state.chain.guard.suspended_by == row.held
    if not row.alone:
        assert ended(world).rule == row.rule
    check_history(world, row)


@pytest.mark.parametrize("row", [row for row in ROWS if row.follows], ids=lambda row: row.name.replace(" ", "-"))
def test_the_stream_fails_that_takes_tool_results_back(row: Row) -> None:
    """The results of the guard's first stream are in history once, whatever becomes of the second."""
    world = at_the_continuation()
    world.replies.append(LOOK)
    world.play(until=ev.RunTools)
    world.answer(world.pending(ev.RunTools))
    world.answer(world.pending(ev.Drain))  # the one after tools; the stream's own is out now
    assert world.state.turn is not None
    assert world.state.turn.stream.attempt == 2
    row.comes(world)
    world.play()
    assert ended(world).rule == row.rule
    counted = [one["attempt"] for one in world.told("AttemptCounted")]
    assert counted == ([1, 2] if row.counts else [1])
    check_history(world, row)


def test_words_of_the_person_that_were_drained_before_a_failed_claim_are_sent_alone() -> None:
    """The hint could not be confirmed: the guard is locked, and the words are the person's own stream."""
    world = at_the_continuation()
    drain = world.pending(ev.Drain)
    word = ev.Part(kind="mid_turn", id="word")
    world.fail(drain, ev.DrainAnswered(id=drain.id, parts=(word,), hint=True))
    world.claims.append("malformed")
    world.play()
    assert [part.id for part in world.sent[2].parts] == ["word"]
    assert world.state.chain.guard.suspended_by == "claim_unavailable"
    assert world.attempts() == []
