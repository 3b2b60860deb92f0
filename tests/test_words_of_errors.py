"""What the core says when it refuses something: what happened, what was kept, what to do, word by word.

Whoever drives the machines, or set a value, has nothing but this line.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stopwarden.core import backlog, bounds, chain, cron, guard, lineage, queue, reservations, turn
from stopwarden.core import backlog_events as waits
from stopwarden.core import chain_words as words
from stopwarden.core import queue_words as asked
from stopwarden.core import turn_events as ev
from stopwarden.core.backlog import Backlog
from stopwarden.core.chain_words import Chain
from stopwarden.core.errors import ModelRefusedError, StopwardenError
from stopwarden.core.fires import Fire
from stopwarden.core.guard import Budget, Guard
from stopwarden.core.lineage import Lineage
from stopwarden.core.queue_words import Queue
from stopwarden.core.results import Result
from stopwarden.core.turn_state import Session

BUSY = Backlog(on_its_way=backlog.OnItsWay(turn="t"))
DISPOSED = turn.step(Session(), ev.Disposed())[0]
OFFERED = turn.step(Session(), ev.PromptOffered(prompt=ev.Prompt(id="p1")))[0]
HOSTED = Queue(session="s1", child="agent-1")

SAID: list[tuple[Callable[[], object], str]] = [
    (
        lambda: backlog.step(Backlog(), waits.ResultCame(result=Result(id="", kind="shell", task="s"))),
        "A result needs an id, a task and a kind, not '', 's', 'shell'. The queue is as it was.",
    ),
    (
        lambda: backlog.step(Backlog(), waits.FireCame(fire=Fire(id="f", times=0))),
        "A fire needs an id, a kind and a count, not 'f', 'cron', 0. The queue is as it was.",
    ),
    (
        lambda: backlog.step(Backlog(), waits.NoticeAsked(turn="")),
        "A send without an id cannot tell of gaps. The gap entries are as they were.",
    ),
    (
        lambda: backlog.step(BUSY, waits.Restored()),
        "Only a backlog without a past is restored. The backlog is as it was.",
    ),
    (
        lambda: backlog.step(BUSY, waits.DrainAsked(turn="u")),
        "Turn 'u' cannot take what waits: another turn is on its way, or it has no id. The queues are as they were. Answer the turn on its way first.",
    ),
    (
        lambda: backlog.step(Backlog(), waits.Keep(item=Fire(id="f"))),
        "The backlog knows no event Keep. Nothing was changed.",
    ),
    (
        lambda: lineage.message_sending(Lineage(), "", "a"),
        "A send without an id cannot be settled. The marks are as they were.",
    ),
    (
        lambda: lineage.message_sending(lineage.message_sending(Lineage(), "s1", "a"), "s1", "b"),
        "The send s1 is under way already. Its mark is as it was.",
    ),
    (
        lambda: lineage.spawned(Lineage(), ""),
        "A sub-session without an id cannot be related. The lineage is as it was.",
    ),
    (
        lambda: lineage.is_related(Lineage(), (), "parrot", "x"),
        "There is no background work of kind 'parrot'. Nothing was changed.",
    ),  # type: ignore[arg-type]
    (
        lambda: chain.step(Chain(), words.PromptStarted(id="p1")),
        "PromptStarted cannot happen: it is not admitted. The chain is as it was. Mend the driver.",
    ),
    (
        lambda: chain.step(Chain(), words.ChainEvent()),
        "ChainEvent cannot happen: the chain knows no such event. The chain is as it was. Mend the driver.",
    ),
    (
        lambda: guard.of_session("on", "whim"),
        "'whim' is nothing that keeps the guard off. Use one of safe, bare, no_todo_tool.",
    ),
    (
        lambda: guard.set_switch(Guard(), "perhaps"),
        "The guard cannot be 'perhaps'. It is as it was. Use off, observe or on.",
    ),
    (
        lambda: guard.set_switch(guard.of_session("on", "no_todo_tool"), "on"),
        "The guard is off in this session (no_todo_tool). It stays off. Begin a session without that, and with the todo tool.",
    ),
    (lambda: guard.set_budget(Guard(), Budget(attempts=9)), "9 streams a stage are not allowed. Use 1 to 2."),
    (lambda: guard.set_budget(Guard(), Budget(tokens=-1)), "A limit below zero is not allowed. Use 0 for no limit."),
    (
        lambda: guard.suspend(Guard(), "mood"),
        "'mood' is no reason to suspend. The guard is as it was. Use a key of SUSPENSIONS.",
    ),
    (
        lambda: bounds.policy_from({"nothing": 1}),
        "There is no setting nothing. See `stopwarden away --help` for the settings.",
    ),
    (
        lambda: bounds.policy_from({"wake_evidence": "rumour"}),
        "wake_evidence = 'rumour' is not allowed. Use 'evidence' or 'nominal'.",
    ),
    (
        lambda: bounds.policy_from({"blocks_an_hour": -1}),
        "blocks_an_hour = -1 is not allowed. Use a whole number from 1 to 1000.",
    ),
    (
        lambda: cron.parse("* * *"),
        "The schedule cannot be read: three fields instead of five. It never counts as a wake. Use five fields: minute, hour, day of month, month, day of week, such as */15 * * * *.",
    ),
    (
        lambda: cron.parse(7),
        "The schedule cannot be read: it is not text. It never counts as a wake. Use five fields: minute, hour, day of month, month, day of week, such as */15 * * * *.",
    ),
    (
        lambda: queue.step(HOSTED, asked.QueueEvent(at=1)),
        "The queue knows no event QueueEvent. The queue is as it was. Send one of the events of core/queue_words.",
    ),
    (
        lambda: queue.step(HOSTED, asked.ChildCame(at=2, child="agent-2")),
        "Child agent-2 came while agent-1 hosts the session. The queue is as it was. Report the first one gone before another takes over.",
    ),
    (
        lambda: queue.step(HOSTED, asked.PromptSettled(at=1, effect=99, outcome="completed")),
        "A reply came for effect 99, which was never given out. The queue is as it was. Reply with the id that the effect carries.",
    ),
    (
        lambda: reservations.footprint_of(["/etc"]),
        "The footprint '/etc' is absolute. Nothing was reserved. Name paths inside the checkout.",
    ),
    (
        lambda: reservations.footprint_of(["a\nb"]),
        "The footprint 'a\\nb' holds a NUL or a line break. Nothing was reserved. Name paths inside the checkout.",
    ),
    (
        lambda: reservations.footprint_of([" "]),
        "The footprint ' ' is empty. Nothing was reserved. Name paths inside the checkout.",
    ),
    (
        lambda: reservations.footprint_of(["../up"]),
        "The footprint '../up' leads out of the checkout (\"..\"). Nothing was reserved. Name paths inside the checkout.",
    ),
    (
        lambda: reservations.footprint_of(["x" * 5000]),
        "The footprint 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' is longer than 400 characters. Nothing was reserved. Name paths inside the checkout.",
    ),
    (
        lambda: reservations.footprint_of([str(i) for i in range(1000)]),
        "1000 paths are too many for one footprint. Nothing was reserved. Name at most 100, or the directories above them.",
    ),
    (
        lambda: turn.step(Session(), ev.Event()),
        "Event cannot happen: the turn knows no such event. The session is as it was. Mend the driver.",
    ),
    (
        lambda: turn.step(DISPOSED, ev.Disposed()),
        "Disposed cannot happen: the session is put away. The session is as it was. Mend the driver.",
    ),
    (
        lambda: turn.step(DISPOSED, ev.Cancelled()),
        "Cancelled cannot happen: the session is put away. The session is as it was. Mend the driver.",
    ),
    (
        lambda: turn.step(Session(), ev.DrainAnswered(id=7)),
        "DrainAnswered cannot happen: nothing was asked under id 7. The session is as it was. Mend the driver.",
    ),
    (
        lambda: turn.step(OFFERED, ev.PromptOffered(prompt=ev.Prompt(id="p1"))),
        "PromptOffered cannot happen: this prompt is here already. The session is as it was. Mend the driver.",
    ),
]


@pytest.mark.parametrize("refused, words", SAID, ids=[f"{number}" for number in range(1, len(SAID) + 1)])
def test_a_refusal_says_what_happened_what_was_kept_and_what_to_do(refused: Callable[[], object], words: str) -> None:
    """One line, as it is shown to people."""
    with pytest.raises(StopwardenError) as raised:
        refused()
    assert str(raised.value) == words


def test_an_error_without_more_to_say_says_what_happened() -> None:
    """Parts that are missing leave no trace; full stops are set once; the parts can be had alone."""
    bare = StopwardenError("It fell.")
    assert (str(bare), bare.happened, bare.kept, bare.do) == ("It fell.", "It fell.", "", "")
    whole = StopwardenError("It fell", kept="All of it.", do="Pick it up")
    assert str(whole) == "It fell. All of it. Pick it up."


def test_a_provider_that_did_not_begin_says_why_and_when_to_ask_again() -> None:
    """For the rule that decides about another try, and for the person."""
    error = ModelRefusedError("The provider is busy", why="overloaded", retry_after=2.5, do="Wait")
    assert (error.why, error.retry_after) == ("overloaded", 2.5)
    assert str(error) == "The provider is busy. Nothing was added to the conversation. Wait."
    assert (ModelRefusedError("It is away").why, ModelRefusedError("It is away").retry_after) == ("error", None)
