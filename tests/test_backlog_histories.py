"""Any history of what waits: each result reaches the model once or is named once, and every bound holds, always.

The world around the machine is a store that does what the effects say, a model and a person that note
what they are told. Turns are accepted, refused or never answered, the process is killed between two
effects, the person's stream is full, conversations are cleared, hosts tell everything twice.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from stopwarden.core.backlog import step, where_is
from stopwarden.core.backlog_events import (
    Backlog,
    ChainBegan,
    Cleared,
    Deliver,
    DrainAsked,
    FireCame,
    GapsRead,
    GapsShown,
    Keep,
    MessageSending,
    MessageSettled,
    NoticeAsked,
    OwnResultsAsked,
    Paused,
    PersonLooks,
    PromptCame,
    Restored,
    ResultCame,
    RunFire,
    Settle,
    TellModel,
    TurnAccepted,
    TurnReturned,
)
from stopwarden.core.bounds import DEFERRED_FIRES_MAX, FIRES_MAX, GAPS_HELD, GAPS_IN_A_NOTICE, NOTIFICATIONS_MAX
from stopwarden.core.fires import Fire
from stopwarden.core.gaps import Gap, MarkTold, OpenGap, ReadGaps, ShowGaps
from stopwarden.core.record import Record
from stopwarden.core.results import Holding, Result

HOLDING = st.builds(Holding, guard_blocks=st.booleans(), fifo_priority=st.booleans(), too_long=st.booleans())
KILLED = st.sampled_from([None] * 12 + [0, 1, 2, 3])  # how many effects of a step are done before the process dies


class Histories(RuleBasedStateMachine):
    """One session's backlog and the world that serves it."""

    def __init__(self) -> None:
        super().__init__()
        self.backlog = Backlog()
        self.made = 0
        self.came: list[Result | Fire] = []
        # The store.
        self.kept: dict[str, Result | Fire] = {}
        self.ended: dict[str, str] = {}
        self.entries: dict[int, Gap] = {}
        # Those who are told.
        self.turns: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}  # turn -> (what it delivers, names)
        self.delivered: Counter[str] = Counter()
        self.named: Counter[str] = Counter()
        self.shown: Counter[str] = Counter()
        self.showing: list[tuple[str, ...]] = []
        self.questions: list[ReadGaps] = []
        self.sends: set[str] = set()

    # The world

    def take(self, event: Record, killed: int | None = None) -> None:
        self.backlog, effects = step(self.backlog, event)
        for effect in effects[:killed]:
            self.execute(effect)
        if killed is not None and killed < len(effects):
            self.restart()

    def execute(self, effect: Record) -> None:
        if isinstance(effect, Keep):
            self.kept[effect.item.id] = effect.item
        elif isinstance(effect, Settle):
            self.ended.update(dict.fromkeys(effect.ids, effect.how))
        elif isinstance(effect, OpenGap):
            assert effect.gap.number not in self.entries, "a number is given once"
            assert effect.gap.id in self.kept, "the text is kept before it is left out"
            self.entries[effect.gap.number] = effect.gap
            self.ended[effect.gap.id] = "gap"
        elif isinstance(effect, MarkTold):
            for number, gap in self.entries.items():
                if gap.id in effect.ids:
                    self.entries[number] = gap.replace(**{f"told_{effect.to}": True})
        elif isinstance(effect, ShowGaps):
            assert len(effect.gaps) <= GAPS_IN_A_NOTICE
            self.showing.append(tuple(gap.id for gap in effect.gaps))
        elif isinstance(effect, ReadGaps):
            self.questions.append(effect)
        elif isinstance(effect, Deliver | RunFire | TellModel):
            assert len(effect.gaps) <= GAPS_IN_A_NOTICE
            what: tuple[str, ...] = ()
            if isinstance(effect, Deliver):
                what = effect.results
            elif isinstance(effect, RunFire):
                what = (effect.fire,)
            self.turns[effect.turn] = (what, tuple(gap.id for gap in effect.gaps))

    def restart(self) -> None:
        waits = [item for id, item in self.kept.items() if id not in self.ended]
        still_open = [gap for _, gap in sorted(self.entries.items()) if not (gap.told_model and gap.told_person)]
        # Turns, events and questions of the process that died are nobody's any more.
        self.turns, self.showing, self.questions, self.sends = {}, [], [], set()
        self.backlog = Backlog()
        self.take(
            Restored(
                results=tuple(item for item in waits if isinstance(item, Result)),
                fires=tuple(item for item in waits if isinstance(item, Fire)),
                gaps=tuple(still_open[:GAPS_HELD]),
                next_gap=max(self.entries, default=0) + 1,
                settled=tuple(self.ended),
            )
        )

    def new_id(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    # What may happen

    @rule(
        count=st.sampled_from([1, 1, 1, 3, 25]),
        task=st.sampled_from(["t1", "t2", "t3"]),
        kind=st.sampled_from(["shell", "monitor", "workflow"]),
        interim=st.booleans(),
        holding=HOLDING,
        killed=KILLED,
    )
    def results_come(
        self, count: int, task: str, kind: str, interim: bool, holding: Holding, killed: int | None
    ) -> None:
        for _ in range(count):
            id = self.new_id("r")
            result = Result(id=id, kind=kind, task=task, interim=interim)  # type: ignore[arg-type]
            self.came.append(result)
            self.take(ResultCame(result=result, holding=holding), killed)

    @rule(
        count=st.sampled_from([1, 1, 3, 25]),
        job=st.sampled_from(["", "j1", "j2", "own"]),
        kind=st.sampled_from(["cron", "wakeup"]),
        holding=HOLDING,
        killed=KILLED,
    )
    def fires_come(self, count: int, job: str, kind: str, holding: Holding, killed: int | None) -> None:
        for _ in range(count):
            id = self.new_id("f")
            fire = Fire(id=id, job=id if job == "own" else job, kind=kind)  # type: ignore[arg-type]
            self.came.append(fire)
            self.take(FireCame(fire=fire, holding=holding), killed)

    @precondition(lambda self: self.came)
    @rule(data=st.data(), holding=HOLDING)
    def the_host_tells_again(self, data: st.DataObject, holding: Holding) -> None:
        item = data.draw(st.sampled_from(self.came[-60:]))
        if item.id not in self.kept:
            return  # the process died before it had heard of it
        event = ResultCame(result=item, holding=holding) if isinstance(item, Result) else FireCame(fire=item)
        before = self.backlog
        self.take(event)
        assert self.backlog == before

    @precondition(lambda self: self.backlog.on_its_way is None)
    @rule(holding=HOLDING, own=st.booleans(), killed=KILLED)
    def a_turn_takes(self, holding: Holding, own: bool, killed: int | None) -> None:
        turn = self.new_id("turn")
        before = [result.id for result in self.backlog.results]
        self.take((OwnResultsAsked if own else DrainAsked)(turn=turn, holding=holding), killed)
        taken = self.turns.get(turn, ((), ()))[0]
        assert [id for id in before if id in taken] == list(taken) or len(taken) == 1, "in the order of their coming"

    @rule(killed=KILLED)
    def a_prompt_is_sent(self, killed: int | None) -> None:
        self.take(NoticeAsked(turn=self.new_id("prompt")), killed)

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def the_provider_accepts(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from(sorted(self.turns)))
        delivers, names = self.turns.pop(turn)
        self.delivered.update(delivers)
        self.named.update(names)
        self.take(TurnAccepted(turn=turn))

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), why=st.sampled_from(["refused", "superseded"]), holding=HOLDING, killed=KILLED)
    def a_turn_comes_back(self, data: st.DataObject, why: str, holding: Holding, killed: int | None) -> None:
        turn = data.draw(st.sampled_from(sorted(self.turns)))
        del self.turns[turn]
        self.take(TurnReturned(turn=turn, why=why, holding=holding), killed)  # type: ignore[arg-type]

    @precondition(lambda self: self.showing)
    @rule(done=st.booleans())
    def the_person_is_told(self, done: bool) -> None:
        ids = self.showing.pop()
        if done:
            self.shown.update(ids)
        self.take(GapsShown(ids=ids, done=done))

    @precondition(lambda self: self.questions)
    @rule(lost=st.booleans(), twice=st.booleans())
    def the_store_answers(self, lost: bool, twice: bool) -> None:
        asked = self.questions.pop(0)
        if lost:
            return
        numbers = [
            number
            for number, gap in sorted(self.entries.items())
            if asked.after < number <= asked.through and not (gap.told_model and gap.told_person)
        ]
        answer = GapsRead(asked=asked, entries=tuple(self.entries[number] for number in numbers[: asked.limit]))
        self.take(answer)
        if twice:
            self.take(answer)

    @rule(event=st.sampled_from([ChainBegan(), Paused(), PromptCame(), PersonLooks(), TurnAccepted(turn="never")]))
    def something_else(self, event: Record) -> None:
        self.take(event)

    @rule(killed=KILLED)
    def the_conversation_is_cleared(self, killed: int | None) -> None:
        self.take(Cleared(), killed)

    @rule()
    def the_process_dies(self) -> None:
        self.restart()

    @rule(agent=st.sampled_from(["a", "b"]))
    def a_message_is_sent(self, agent: str) -> None:
        send = self.new_id("send")
        self.sends.add(send)
        self.take(MessageSending(send=send, agent=agent))

    @precondition(lambda self: self.sends)
    @rule(succeeded=st.booleans())
    def a_message_settles(self, succeeded: bool) -> None:
        send = min(self.sends)
        self.sends.discard(send)
        self.take(MessageSettled(send=send, succeeded=succeeded))

    # What always holds

    @invariant()
    def every_bound_holds(self) -> None:
        state, way = self.backlog, self.backlog.on_its_way
        assert len(state.results) <= NOTIFICATIONS_MAX
        assert way is None or len(way.results) <= NOTIFICATIONS_MAX
        assert sum(not fire.related for fire in state.fires) <= FIRES_MAX
        assert len(state.gaps.open) <= GAPS_HELD
        assert state.gaps.further >= 0
        assert {send for send, _ in state.lineage.marks} <= self.sends

    @invariant()
    def everything_is_in_one_place(self) -> None:
        for id in self.kept:
            here, ended = where_is(self.backlog, id), self.ended.get(id)
            if ended is None:
                assert here in ("waiting", "on_its_way"), f"{id} is {here or 'lost'}"
                assert not self.delivered[id]
            else:
                assert here not in ("waiting", "on_its_way"), f"{id} is {ended} and {here}"
            assert self.delivered[id] == (ended == "delivered")

    @invariant()
    def nobody_is_told_twice(self) -> None:
        for told in (self.delivered, self.named, self.shown):
            assert not told or max(told.values()) == 1
        assert not self.delivered.keys() & (self.named.keys() | self.shown.keys())

    def teardown(self) -> None:
        """The world heals: then everything that came is delivered, stood for by a later fire, or known to both."""
        for round in range(200):
            for turn in sorted(self.turns):
                delivers, names = self.turns.pop(turn)
                self.delivered.update(delivers)
                self.named.update(names)
                self.take(TurnAccepted(turn=turn))
            while self.showing:
                self.the_person_is_told(True)  # type: ignore[call-arg]
            while self.questions:
                self.the_store_answers(False, False)  # type: ignore[call-arg]
            self.take(PromptCame())
            self.take(PersonLooks())
            self.take(DrainAsked(turn=f"heal{round}"))
            self.take(NoticeAsked(turn=f"notice{round}"))
            if not (self.turns or self.showing or self.questions):
                break
        for id in self.kept:
            ended = self.ended[id]
            assert (self.delivered[id], self.named[id], self.shown[id]) == {
                "delivered": (1, 0, 0),
                "coalesced": (0, 0, 0),
                "gap": (0, 1, 1),
            }[ended], f"{id} {ended}"
        assert self.backlog.gaps.open == ()
        for send in sorted(self.sends):
            self.take(MessageSettled(send=send, succeeded=False))
        assert self.backlog.lineage.marks == ()


def test_every_result_is_delivered_once_or_named_once() -> None:
    """In no history of faults is a result, a scheduled prompt or a gap entry lost, doubled or kept beyond its bound."""
    run_state_machine_as_test(Histories, settings=settings(max_examples=60, stateful_step_count=40, deadline=None))


@pytest.mark.slow
def test_every_result_is_delivered_once_or_named_once_in_many_histories() -> None:
    """The same, more often and longer; the simulation of the turn keeps a book of its own on the same rules."""
    run_state_machine_as_test(Histories, settings=settings(max_examples=200, stateful_step_count=80, deadline=None))


def test_while_something_is_held_back_the_twenty_are_never_passed() -> None:
    """After any fire that came while a chain waited, at most twenty unrelated ones wait."""
    state = Backlog()
    for i in range(70):
        state, _ = step(state, FireCame(fire=Fire(id=f"f{i}", job=f"j{i}")))
    for i in range(70, 100):
        kind = "wakeup" if i % 3 else "cron"
        fire = Fire(id=f"f{i}", job=f"j{i}", kind=kind)
        state, _ = step(state, FireCame(fire=fire, holding=Holding(guard_blocks=True)))
        assert sum(not waits.related for waits in state.fires) <= DEFERRED_FIRES_MAX
