"""What waits for a turn: order, bounds, and nothing lost that is not named."""

from __future__ import annotations

import pytest

from stopwarden.core import backlog, fires, gaps
from stopwarden.core.backlog import defers_guard, step, where_is
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
    LeftOut,
    MessageSending,
    MessageSettled,
    NoticeAsked,
    OnItsWay,
    OwnResultsAsked,
    Paused,
    PersonLooks,
    PromptCame,
    Restored,
    ResultCame,
    RetryLater,
    RunFire,
    Settle,
    ShowRetained,
    Spawned,
    TellModel,
    TurnAccepted,
    TurnReturned,
)
from stopwarden.core.bounds import GAPS_HELD, GAPS_IN_A_NOTICE, SETTLED_RESULTS
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.fires import Fire
from stopwarden.core.gaps import Gap, MarkTold, OpenGap, ReadGaps, ShowGaps
from stopwarden.core.lineage import Task
from stopwarden.core.record import Record
from stopwarden.core.results import Holding, Result

WAITING = Holding(guard_blocks=True)  # a chain with unfinished work waits
PRIORITY = Holding(fifo_priority=True)  # a person's prompt comes first, nothing is trusted
FREE = Holding()
TOO_LONG = Holding(guard_blocks=True, too_long=True)

OLD = tuple(Task(kind="shell", id=f"old{i}") for i in range(30))


def after(state: Backlog, *events: Record) -> Backlog:
    """The state after these events."""
    for event in events:
        state, _ = step(state, event)
    return state


def did(state: Backlog, *events: Record) -> tuple[Record, ...]:
    """The effects of the last of these events."""
    *before, last = events
    return step(after(state, *before), last)[1]


def found(kind: type[Record], effects: tuple[Record, ...]) -> list[Record]:
    return [effect for effect in effects if type(effect) is kind]


def new(id: str, **more: object) -> Result:
    """A result of a shell that this chain started."""
    return Result(id=id, kind="shell", task=f"task-{id}", where=f"output of {id}", **more)  # type: ignore[arg-type]


def old(i: int, **more: object) -> Result:
    """A result of a shell that was there before the chain."""
    return Result(id=f"o{i}", kind="shell", task=f"old{i}", **more)  # type: ignore[arg-type]


def came(*given: Result, holding: Holding = WAITING) -> tuple[ResultCame, ...]:
    return tuple(ResultCame(result=result, holding=holding) for result in given)


def fired(*given: Fire, holding: Holding = WAITING) -> tuple[FireCame, ...]:
    return tuple(FireCame(fire=fire, holding=holding) for fire in given)


def cron(id: str, job: str = "") -> Fire:
    return Fire(id=id, job=job or f"job-{id}")


def wakeup(id: str, job: str = "") -> Fire:
    return Fire(id=id, job=job or f"wake-{id}", kind="wakeup")


def waiting(state: Backlog) -> list[str]:
    return [result.id for result in state.results]


def queued(state: Backlog) -> list[str]:
    return [fire.id for fire in state.fires]


CHAIN = after(Backlog(), ChainBegan(world=OLD))


# Results: relation and order


@pytest.mark.case("G113")
def test_a_result_of_others_waits_while_a_chain_does_and_its_own_goes_first() -> None:
    """An older unrelated result stays where it is; the chain's own is the next turn; afterwards the other goes."""
    alone = after(CHAIN, *came(old(1)))
    assert did(alone, DrainAsked(turn="t", holding=WAITING)) == ()
    both = after(alone, *came(new("mine")))
    assert did(both, DrainAsked(turn="t", holding=WAITING)) == (Deliver(turn="t", results=("mine",), related=True),)
    later = after(both, DrainAsked(turn="t", holding=WAITING), TurnAccepted(turn="t"))
    assert did(later, DrainAsked(turn="u", holding=FREE)) == (Deliver(turn="u", results=("o1",)),)


@pytest.mark.case("G124")
def test_a_new_chain_makes_everything_old_that_waits() -> None:
    """Results of the chain before are kept, but belong to nobody: neither they nor their tasks hold the new one back."""
    state = after(CHAIN, *came(new("r")))
    assert defers_guard(state, ())
    state = after(state, ChainBegan())
    assert [result.related for result in state.results] == [False]
    assert not defers_guard(state, (Task(kind="shell", id="task-r"),)), "a task whose result waits is known too"
    assert did(state, DrainAsked(turn="t", holding=WAITING)) == ()


def test_a_new_chain_forgets_snapshot_related_agents_and_marks_at_once() -> None:
    """Nothing of what the chain before knew of its agents decides for the next one."""
    state = after(CHAIN, Spawned(agent="sub"), MessageSending(send="s", agent="a"))
    world = (Task(kind="agent", id="sub"), Task(kind="agent", id="a"))
    assert defers_guard(state, world)
    state = after(state, ChainBegan(world=world))
    assert not defers_guard(state, world)
    assert step(state, MessageSettled(send="s", succeeded=True)) == (state, ())


def test_what_is_on_its_way_becomes_old_too() -> None:
    """A turn that comes back after another chain began brings back old results."""
    state = after(CHAIN, *came(new("r")), *fired(wakeup("w")), DrainAsked(turn="t", holding=WAITING), ChainBegan())
    state = after(state, TurnReturned(turn="t", why="superseded"))
    assert [result.related for result in state.results] == [False]
    state = after(CHAIN, *fired(wakeup("w")), DrainAsked(turn="t", holding=WAITING), ChainBegan())
    state = after(state, TurnReturned(turn="t", why="superseded"))
    assert [fire.related for fire in state.fires] == [False]
    assert ("wakeup", "wake-w") in state.lineage.baseline


def test_the_relation_is_that_of_the_moment_the_result_came() -> None:
    """A task that leaves the host's list, or a send that fails later, changes nothing in a result that waits."""
    asked = after(CHAIN.replace(lineage=CHAIN.lineage.replace(baseline=frozenset({("agent", "a")}))),
                  MessageSending(send="s", agent="a"))  # fmt: skip
    answer = Result(id="r", kind="agent", task="a")
    state = after(asked, ResultCame(result=answer, holding=WAITING), MessageSettled(send="s", succeeded=False))
    assert [result.related for result in state.results] == [True]
    assert not after(CHAIN, ResultCame(result=answer)).results[0].related, "an agent nobody knows is not ours"
    sub = after(CHAIN, Spawned(agent="a"), ResultCame(result=answer))
    assert sub.results[0].related


def test_all_that_may_go_is_one_turn() -> None:
    """Twenty-five finished shells are two turns, not twenty-five; the order is that of their coming."""
    ids = [f"r{i}" for i in range(15)]
    state = after(CHAIN, *came(*map(new, ids)))
    assert did(state, DrainAsked(turn="t", holding=WAITING)) == (Deliver(turn="t", results=tuple(ids), related=True),)
    mixed = after(CHAIN, *came(old(1), new("a"), old(2), new("b")))
    assert did(mixed, DrainAsked(turn="t", holding=FREE))[0] == Deliver(
        turn="t", results=("o1", "a", "o2", "b"), related=True
    )
    assert did(mixed, DrainAsked(turn="t", holding=WAITING))[0] == Deliver(turn="t", results=("a", "b"), related=True)


def test_nothing_goes_before_a_persons_prompt() -> None:
    """Under its priority neither results nor scheduled prompts run, whether related or not."""
    state = after(CHAIN, *came(old(1), new("a")), *fired(cron("c"), wakeup("w")))
    both = Holding(guard_blocks=True, fifo_priority=True, too_long=True)
    assert did(state, DrainAsked(turn="t", holding=PRIORITY)) == ()
    assert did(state, DrainAsked(turn="t", holding=both)) == ()
    assert did(state, OwnResultsAsked(turn="t", holding=PRIORITY)) == ()


def test_past_the_limit_of_the_wait_the_others_run_again_but_the_chains_own_come_first() -> None:
    """A wait of more than half an hour holds nobody else back, and a related result still resumes the chain."""
    state = after(CHAIN, *came(old(1)), *fired(cron("c")))
    assert did(state, DrainAsked(turn="t", holding=WAITING)) == ()
    assert did(state, DrainAsked(turn="t", holding=TOO_LONG)) == (Deliver(turn="t", results=("o1",)),)
    related = after(state, *came(new("a")))
    assert did(related, DrainAsked(turn="t", holding=TOO_LONG)) == (Deliver(turn="t", results=("a",), related=True),)
    fires_only = after(CHAIN, *fired(cron("c")))
    assert did(fires_only, DrainAsked(turn="t", holding=TOO_LONG)) == (RunFire(turn="t", fire="c"),)
    mine_waits = after(state, *fired(wakeup("w")))
    assert did(mine_waits, DrainAsked(turn="t", holding=TOO_LONG)) == (RunFire(turn="t", fire="w", related=True),)


def test_at_a_stop_the_turn_takes_its_own_chains_results_with_it() -> None:
    """They need no turn of their own; those of others stay, even when nothing holds them back."""
    state = after(CHAIN, *came(old(1), new("a"), new("b")))
    effects = did(state, OwnResultsAsked(turn="t_result_1"))
    assert effects == (Deliver(turn="t_result_1", results=("a", "b"), related=True),)
    assert did(CHAIN, *came(old(1)), OwnResultsAsked(turn="t")) == ()


# Results: overflow


@pytest.mark.case("G126")
def test_twenty_results_of_others_do_not_push_out_the_chains_own() -> None:
    """While the chain waits its result stays first in line; of the others the oldest is left out, and named."""
    state = after(CHAIN, *came(new("mine"), *(old(i) for i in range(19))))
    effects = did(state, *came(old(19)))
    assert waiting(after(state, *came(old(19)))) == ["mine", *(f"o{i}" for i in range(1, 20))]
    assert found(LeftOut, effects) == [LeftOut(queue="results", ids=("o0",))]
    assert [gap.gap.id for gap in found(OpenGap, effects)] == ["o0"]  # type: ignore[attr-defined]


@pytest.mark.case("G127", "BR-162")
def test_when_all_belong_to_the_chain_the_newcomer_is_named_and_kept() -> None:
    """A twenty-first result of the waiting chain has no room: its text is stored, model and person hear where it is."""
    full = after(CHAIN, *came(*(new(f"r{i}") for i in range(20))))
    state, effects = step(full, *came(new("r20")))
    assert waiting(state) == [f"r{i}" for i in range(20)]
    gap = Gap(number=1, id="r20", kind="shell", task="task-r20", where="output of r20", why="queue_full")
    assert effects[0] == Keep(item=new("r20", related=True)), "the text first"
    assert effects[1:] == (OpenGap(gap=gap), ShowGaps(gaps=(gap,)), LeftOut(queue="results", ids=("r20",)))
    (deliver,) = did(state, DrainAsked(turn="t", holding=WAITING))
    assert isinstance(deliver, Deliver)
    assert [(one.id, one.where) for one in deliver.gaps] == [("r20", "output of r20")]


@pytest.mark.case("G128")
def test_the_chains_results_are_protected_by_a_persons_priority_alone() -> None:
    """A prompt that comes first holds automatic work back without any trust: related results stay all the same."""
    full = after(CHAIN, *came(new("mine"), *(old(i) for i in range(19)), holding=PRIORITY))
    assert waiting(after(full, *came(old(19), holding=PRIORITY)))[0] == "mine"
    assert waiting(after(full, *came(old(19), holding=FREE)))[0] == "o0", "with nothing held back the oldest goes"


def test_a_pulse_goes_before_a_result() -> None:
    """An interim pulse of a monitor gives way first, and is not worth a result when it comes last."""
    pulse = Result(id="pulse", kind="monitor", task="m", interim=True)
    full = after(CHAIN, *came(*(old(i) for i in range(10)), pulse, *(old(i) for i in range(10, 19)), holding=FREE))
    assert where_is(after(full, *came(old(19), holding=FREE)), "pulse") == "gap"
    results_only = after(CHAIN, *came(*(old(i) for i in range(20)), holding=FREE))
    late = after(results_only, *came(pulse, holding=FREE))
    assert (where_is(late, "pulse"), len(late.results)) == ("gap", 20)
    newer = pulse.replace(id="newer")
    assert waiting(after(full, *came(newer, holding=FREE)))[-1] == "newer"


@pytest.mark.case("BR-159")
def test_a_result_that_is_told_again_and_again_is_one_result() -> None:
    """The same id, or the same content of the same task under another id, is heard once in every place it may be."""
    report = new("r", digest="d1")
    again = report.replace(id="r-again")
    state = after(CHAIN, *came(report))
    assert step(state, *came(report)) == (state, ())
    assert step(state, *came(again)) == (state, ())
    state = after(state, DrainAsked(turn="t", holding=WAITING))
    assert step(state, *came(again)) == (state, ())
    state = after(state, TurnAccepted(turn="t"))
    assert step(state, *came(again)) == (state, ())
    assert step(state, *came(report)) == (state, ())
    assert waiting(after(state, *came(again.replace(digest="d2")))) == ["r-again"]
    assert waiting(after(state, ResultCame(result=again.replace(kind="agent")))) == ["r-again"], "another task"


def test_a_fire_that_is_told_again_waits_once() -> None:
    """The same id came already: nothing changes, and nobody is told."""
    state = after(Backlog(), *fired(cron("c1")))
    assert step(state, *fired(cron("c1"))) == (state, ())


def test_what_was_left_out_is_not_left_out_twice() -> None:
    """A host that repeats an omitted result opens no second entry, before and after all know of it."""
    full = after(CHAIN, *came(*(new(f"r{i}") for i in range(20)), new("out")))
    assert step(full, *came(new("out"))) == (full, ())
    told = after(full, GapsShown(ids=("out",)), NoticeAsked(turn="p"), TurnAccepted(turn="p"))
    assert told.gaps.open == ()
    assert step(told, *came(new("out"))) == (told, ())


# Turns that come to nothing


@pytest.mark.case("BR-156")
def test_a_refused_turn_is_tried_again_and_then_waits_for_the_person() -> None:
    """Nothing is lost and the order stays: three more tries after 1, 2 and 4 s, then a word that a message is needed."""
    state = after(CHAIN, *came(new("a"), new("b")))
    for seconds in (1, 2, 4):
        state = after(state, DrainAsked(turn=f"t{seconds}", holding=WAITING), *came(new(f"meanwhile{seconds}")))
        state, effects = step(state, TurnReturned(turn=f"t{seconds}", why="refused", holding=WAITING))
        assert effects == (RetryLater(seconds=seconds),)
        assert waiting(state)[:2] == ["a", "b"]
    state = after(state, *fired(wakeup("w")), DrainAsked(turn="last", holding=WAITING))
    state, effects = step(state, TurnReturned(turn="last", why="refused", holding=WAITING))
    (told,) = effects
    assert isinstance(told, ShowRetained)
    assert told.ids == ("a", "b", "meanwhile1", "meanwhile2", "meanwhile4")
    assert did(state, DrainAsked(turn="no", holding=FREE)) == ()
    assert did(state, PromptCame(), DrainAsked(turn="yes", holding=FREE))[0].results == told.ids  # type: ignore[attr-defined]


def test_a_person_who_comes_first_costs_no_try() -> None:
    """A superseded turn puts everything back and asks for nothing: the drain after the person's turn takes it."""
    state = after(CHAIN, *came(new("a")))
    for i in range(9):
        state = after(state, DrainAsked(turn=f"t{i}", holding=WAITING))
        state, effects = step(state, TurnReturned(turn=f"t{i}", why="superseded", holding=WAITING))
        assert (effects, state.tries, waiting(state)) == ((), 0, ["a"])


def test_an_accepted_turn_ends_the_counting_of_tries() -> None:
    """Tries are counted in a row."""
    state = after(CHAIN, *came(new("a")), DrainAsked(turn="t"), TurnReturned(turn="t", why="refused"))
    state = after(state, DrainAsked(turn="u"))
    assert did(state, TurnAccepted(turn="u")) == (Settle(ids=("a",), how="delivered"),)
    assert after(state, TurnAccepted(turn="u")).tries == 0


def test_more_than_fits_when_a_turn_comes_back_is_named() -> None:
    """Twenty on their way and twenty new ones: those that find no room again are gap entries, none is gone."""
    state = after(CHAIN, *came(*(new(f"a{i}") for i in range(20))), DrainAsked(turn="t", holding=WAITING))
    state = after(state, *came(*(new(f"b{i}") for i in range(20))))
    state, effects = step(state, TurnReturned(turn="t", why="superseded", holding=WAITING))
    assert waiting(state) == [f"a{i}" for i in range(20)]
    assert found(LeftOut, effects) == [LeftOut(queue="results", ids=tuple(f"b{i}" for i in range(20)))]
    assert [gap.id for gap in state.gaps.open] == [f"b{i}" for i in range(20)]


def test_after_a_cancel_results_wait_for_the_next_prompt() -> None:
    """A cancel wipes nothing; scheduled prompts still run, results when the person has spoken again."""
    state = after(CHAIN, *came(new("a")), *fired(cron("c")), Paused())
    assert did(state, DrainAsked(turn="t")) == (RunFire(turn="t", fire="c"),)
    assert did(state, PromptCame(), DrainAsked(turn="t")) == (Deliver(turn="t", results=("a",), related=True),)


def test_answers_about_turns_that_are_over_change_nothing() -> None:
    """Late, doubled and unknown answers are expected."""
    state = after(CHAIN, *came(new("a")), DrainAsked(turn="t"), TurnAccepted(turn="t"), *came(new("b")))
    for late in (TurnAccepted(turn="t"), TurnReturned(turn="t", why="refused"), TurnAccepted(turn="never")):
        assert step(state, late) == (state, ())
    carrying = after(state, DrainAsked(turn="u"))
    for other in (TurnAccepted(turn="t"), TurnReturned(turn="t", why="refused")):
        assert step(carrying, other) == (carrying, ())


# Scheduled prompts


@pytest.mark.case("G129")
def test_a_wakeup_that_waited_before_the_chain_runs_after_it() -> None:
    """It is old: it neither holds the chain back nor overtakes it, and it runs when the chain is over."""
    state = after(Backlog(), *fired(wakeup("w")), ChainBegan())
    assert not defers_guard(state, (Task(kind="wakeup", id="wake-w", state="scheduled"),))
    assert did(state, DrainAsked(turn="t", holding=WAITING)) == ()
    assert did(state, DrainAsked(turn="t", holding=FREE)) == (RunFire(turn="t", fire="w"),)


@pytest.mark.case("G130")
def test_the_chains_own_wakeup_overtakes_older_schedules() -> None:
    """While the chain waits its wakeup is next, whatever came before; the others keep their order."""
    state = after(CHAIN, *fired(cron("c1"), cron("c2"), wakeup("w")))
    assert defers_guard(state, ())
    assert did(state, DrainAsked(turn="t", holding=WAITING)) == (RunFire(turn="t", fire="w", related=True),)
    rest = after(state, DrainAsked(turn="t", holding=WAITING), TurnAccepted(turn="t"))
    assert (queued(rest), did(rest, DrainAsked(turn="u"))) == (["c1", "c2"], (RunFire(turn="u", fire="c1"),))


@pytest.mark.parametrize(
    "holding",
    [
        pytest.param(WAITING, marks=pytest.mark.case("G131"), id="a chain waits"),
        pytest.param(PRIORITY, marks=pytest.mark.case("G132"), id="a prompt comes first"),
    ],
)
def test_twenty_five_fires_of_one_schedule_are_one_look(holding: Holding) -> None:
    """The entry keeps its place in line, is the latest fire, and says how many it stands for."""
    state = after(
        CHAIN, *fired(cron("first")), *fired(*(cron(f"f{i}", "every minute") for i in range(25)), holding=holding)
    )
    state = after(state, *fired(cron("last"), holding=holding))
    state, effects = step(state, *fired(cron("f25", "every minute"), holding=holding))
    assert queued(state) == ["first", "f25", "last"]
    assert state.fires[1].times == 26
    assert effects == (Keep(item=cron("f25", "every minute").replace(times=26)), Settle(ids=("f24",), how="coalesced"))


def test_a_related_and_an_unrelated_fire_of_one_name_are_two() -> None:
    """An old wakeup and a new one under the same id do not stand for each other; nor do fires without a schedule."""
    state = after(Backlog(), *fired(wakeup("w1", "same")), ChainBegan())
    state = state.replace(lineage=state.lineage.replace(baseline=frozenset()))
    assert queued(after(state, *fired(wakeup("w2", "same")))) == ["w1", "w2"]
    nameless = after(CHAIN, *fired(Fire(id="x"), Fire(id="y"), Fire(id="z", kind="wakeup")))
    assert queued(nameless) == ["x", "y", "z"]
    assert not any(fire.related for fire in nameless.fires)


@pytest.mark.case("G133", "G134")
def test_a_trim_leaves_the_youngest_and_names_all_that_went_at_once() -> None:
    """25 waiting: a related newcomer leaves 20 of them beside it, an unrelated one 19 and is the twentieth."""
    many = after(CHAIN, *fired(*(cron(f"c{i}") for i in range(25)), holding=FREE))
    assert len(many.fires) == 25
    state, effects = step(many, *fired(wakeup("mine")))
    assert queued(state) == [*(f"c{i}" for i in range(5, 25)), "mine"]
    assert found(LeftOut, effects) == [LeftOut(queue="fires", ids=("c0", "c1", "c2", "c3", "c4"))]
    assert [gap.id for gap in state.gaps.open] == ["c0", "c1", "c2", "c3", "c4"]
    state, effects = step(state, *fired(cron("newcomer")))
    assert queued(state) == [*(f"c{i}" for i in range(6, 25)), "mine", "newcomer"]
    assert found(LeftOut, effects) == [LeftOut(queue="fires", ids=("c5",))]
    again = did(many, *fired(cron("c7-again", "job-c7")))
    assert found(LeftOut, again) == [LeftOut(queue="fires", ids=("c0", "c1", "c2", "c3", "c4"))], (
        "counted after coalescing"
    )


def test_related_wakeups_are_never_trimmed() -> None:
    """However many schedules press, those of the chain stay."""
    state = after(CHAIN, *fired(*(wakeup(f"w{i}") for i in range(25)), *(cron(f"c{i}") for i in range(60))))
    assert queued(state)[:25] == [f"w{i}" for i in range(25)]
    assert len(state.fires) == 45


def test_an_interrupted_scheduled_turn_costs_no_other_fire() -> None:
    """The one that was not accepted is first again, the one that was is done; all others keep waiting."""
    state = after(CHAIN, *fired(cron("c1"), cron("c2"), cron("c3"), holding=FREE), DrainAsked(turn="t"))
    assert queued(after(state, TurnReturned(turn="t", why="superseded"))) == ["c1", "c2", "c3"]
    accepted = after(state, TurnAccepted(turn="t"), Paused(), TurnReturned(turn="t", why="superseded"))
    assert queued(accepted) == ["c2", "c3"]
    assert where_is(accepted, "c1") == "settled"


def test_a_fire_that_comes_back_is_one_with_a_later_one_of_its_schedule() -> None:
    """Its schedule fired again while it was on its way: one look stands for both, in front."""
    state = after(CHAIN, *fired(cron("c1", "job"), cron("other"), holding=FREE), DrainAsked(turn="t"))
    state = after(state, *fired(cron("c2", "job"), holding=FREE))
    state, effects = step(state, TurnReturned(turn="t", why="superseded"))
    assert (queued(state), state.fires[0].times) == (["c2", "other"], 2)
    assert effects == (Settle(ids=("c1",), how="coalesced"),)


def test_schedules_without_a_waiting_chain_are_bounded_too() -> None:
    """A long ordinary turn holds a hundred different fires back; of more the oldest are named."""
    state = after(CHAIN, *fired(*(cron(f"c{i}") for i in range(103)), holding=FREE))
    assert (len(state.fires), where_is(state, "c2"), where_is(state, "c3")) == (100, "gap", "waiting")


# Gap notices


def left_out(count: int, *, shown: bool = False) -> Backlog:
    """A full queue and `count` results that found no room."""
    state = after(CHAIN, *came(*(new(f"r{i}") for i in range(20)), *(new(f"out{i}") for i in range(count))))
    while shown and (showing := [gap.id for gap in state.gaps.open if gap.showing]):
        state = after(state, GapsShown(ids=tuple(showing)))
    return state


def test_each_gap_is_told_once_to_the_model_and_once_to_the_person() -> None:
    """A prompt's own send names it; the next one does not; with both told the entry is closed."""
    state = left_out(1)
    state, (tell,) = step(state, NoticeAsked(turn="prompt"))
    assert isinstance(tell, TellModel)
    assert [gap.id for gap in tell.gaps] == ["out0"]
    assert did(state, NoticeAsked(turn="other")) == (), "it rides already"
    state, effects = step(state, TurnAccepted(turn="prompt"))
    assert effects == (MarkTold(to="model", ids=("out0",)),)
    assert did(state, NoticeAsked(turn="next")) == ()
    state, effects = step(state, GapsShown(ids=("out0",)))
    assert (effects, state.gaps.open) == ((MarkTold(to="person", ids=("out0",)),), ())
    assert step(state, GapsShown(ids=("out0",))) == (state, ())


def test_a_send_that_came_to_nothing_has_told_nothing() -> None:
    """Refused or superseded, the entry rides on the next turn of whatever kind: prompt, results, schedule."""
    state = left_out(1)
    for why in ("refused", "superseded"):
        state = after(state, NoticeAsked(turn=why), TurnReturned(turn=why, why=why))
    with_results = after(state, DrainAsked(turn="t", holding=WAITING), TurnReturned(turn="t", why="superseded"))
    assert with_results == state
    only_fires = after(state.replace(results=()), *fired(cron("c")))
    (run,) = did(only_fires, DrainAsked(turn="t"))
    assert isinstance(run, RunFire)
    assert [gap.id for gap in run.gaps] == ["out0"]


def test_a_clear_names_what_waited_and_forgets_no_older_entry() -> None:
    """Queues empty out into gap entries; what is on its way is left to its turn's answer."""
    state = after(left_out(1), *fired(cron("c")))
    state, effects = step(state, Cleared())
    assert (state.results, state.fires) == ((), ())
    assert [gap.id for gap in state.gaps.open] == ["out0", *(f"r{i}" for i in range(20)), "c"]
    assert {gap.why for gap in state.gaps.open[1:]} == {"cleared"}
    assert [len(left.ids) for left in found(LeftOut, effects)] == [20, 1]  # type: ignore[attr-defined]
    riding = after(CHAIN, *came(new("a")), DrainAsked(turn="t"), Cleared())
    assert where_is(riding, "a") == "on_its_way"
    assert where_is(after(riding, TurnAccepted(turn="t")), "a") == "settled"
    assert where_is(after(riding, TurnReturned(turn="t", why="refused")), "a") == "waiting"


def test_the_person_hears_of_a_burst_in_a_few_words() -> None:
    """One event is on its way at a time; what comes meanwhile is in the next; a failed one is made again."""
    state = left_out(3)
    assert [gap.showing for gap in state.gaps.open] == [True, False, False]
    state, effects = step(state, GapsShown(ids=("out0",)))
    (show,) = found(ShowGaps, effects)
    assert [gap.id for gap in show.gaps] == ["out1", "out2"]  # type: ignore[attr-defined]
    state = after(state, GapsShown(ids=("out1", "out2"), done=False))
    (show,) = did(state, PersonLooks())
    assert [gap.id for gap in show.gaps] == ["out1", "out2"]  # type: ignore[attr-defined]
    assert did(state, PersonLooks(), PersonLooks()) == ()
    assert did(left_out(3, shown=True), PersonLooks()) == ()


def test_a_notice_is_bounded_and_the_next_goes_on_where_it_ended() -> None:
    """More than one notice may hold are told in order, in as many notices as it takes."""
    state = left_out(GAPS_IN_A_NOTICE + 5, shown=True)
    for turn, ids in (("t", range(GAPS_IN_A_NOTICE)), ("u", range(GAPS_IN_A_NOTICE, GAPS_IN_A_NOTICE + 5))):
        state, (tell,) = step(state, NoticeAsked(turn=turn))
        assert [gap.id for gap in tell.gaps] == [f"out{i}" for i in ids]  # type: ignore[attr-defined]
        state = after(state, TurnAccepted(turn=turn))
    assert state.gaps.open == ()


def test_what_memory_does_not_hold_is_read_from_the_store_in_order() -> None:
    """Past a hundred open entries the store alone has them; each closed notice makes room and asks for the next."""
    state = CHAIN
    store: dict[int, Gap] = {}
    for event in came(*(new(f"r{i}") for i in range(20)), *(new(f"out{i}") for i in range(250))):
        state, effects = step(state, event)
        store.update((gap.gap.number, gap.gap) for gap in found(OpenGap, effects))  # type: ignore[attr-defined]
    assert (len(state.gaps.open), state.gaps.further, len(store)) == (GAPS_HELD, 150, 250)
    told: list[str] = []
    turn = 0
    while state.gaps.open:
        turn += 1
        showing = tuple(gap.id for gap in state.gaps.open if gap.showing)
        state = after(state, GapsShown(ids=showing), NoticeAsked(turn=f"t{turn}"))
        told += [gap.id for gap in state.gaps.open if gap.turn]
        state, effects = step(state, TurnAccepted(turn=f"t{turn}"))
        for asked in found(ReadGaps, effects):
            assert isinstance(asked, ReadGaps)
            numbers = [n for n in store if asked.after < n <= asked.through][: asked.limit]
            answer = GapsRead(asked=asked, entries=tuple(store[n] for n in numbers))
            state = after(state, answer)
            assert len(state.gaps.open) <= GAPS_HELD
            assert step(state, answer) == (state, ()), "an answer that comes twice brings nothing"
    assert told == [f"out{i}" for i in range(250)]
    assert state.gaps.further == 0


def test_a_newcomer_does_not_overtake_entries_that_are_only_in_the_store() -> None:
    """While further ones are being read there is room in memory, but a new entry goes behind them."""
    state = left_out(GAPS_HELD + 50, shown=True)
    state, effects = step(after(state, NoticeAsked(turn="t")), TurnAccepted(turn="t"))
    (asked,) = found(ReadGaps, effects)
    late = after(state, *came(new("late")))
    assert (late.gaps.further, late.gaps.open) == (state.gaps.further + 1, state.gaps.open)
    assert asked.through == GAPS_HELD + 50  # type: ignore[attr-defined]


def test_an_open_entry_is_known_however_much_came_after_it() -> None:
    """A host that repeats an omitted result while nobody has heard of it yet opens no second entry."""
    state = left_out(1)
    for i in range(SETTLED_RESULTS):
        state = after(state, *came(new(f"x{i}")), OwnResultsAsked(turn=f"t{i}"), TurnAccepted(turn=f"t{i}"))
    assert "out0" not in state.settled
    assert step(state, *came(new("out0"))) == (state, ())


def test_a_store_that_lost_entries_is_not_asked_for_ever() -> None:
    """An answer with less than was asked for says that there is no more up to there."""
    open_now = tuple(
        Gap(number=n, id=f"g{n}", kind="shell", task="t", where="", why="queue_full") for n in range(1, 101)
    )
    state = Backlog(gaps=gaps.Gaps(open=open_now, next=131, held=100))
    state = after(state, PersonLooks(), NoticeAsked(turn="t"), TurnAccepted(turn="t"))
    ids = tuple(gap.id for gap in state.gaps.open if gap.showing)
    state, effects = step(state, GapsShown(ids=ids))
    (asked,) = found(ReadGaps, effects)
    assert asked == ReadGaps(after=100, through=130, limit=40)
    state, effects = step(state, GapsRead(asked=asked))  # type: ignore[arg-type]
    assert (state.gaps.further, found(ReadGaps, effects)) == (0, [])
    bogus = ReadGaps(after=130, through=900, limit=10)
    assert step(state, GapsRead(asked=bogus)) == (state, ())


@pytest.mark.case("BR-160")
def test_after_a_restart_everything_unfinished_is_there_once_and_old() -> None:
    """Results without an answer wait again; entries are told only to those who do not know; the numbers go on."""
    told = Gap(number=7, id="known", kind="shell", task="t", where="w", why="queue_full", told_model=True, turn="x")
    both = told.replace(number=8, id="done", told_person=True)
    never = told.replace(number=9, id="new", told_model=False, showing=True)
    start = Restored(
        results=(new("a", related=True), new("b")),
        fires=(wakeup("w").replace(related=True),),
        gaps=(never, told, both),
        next_gap=12,
        settled=("delivered",),
        world=(Task(kind="shell", id="running"),),
    )
    state, effects = step(Backlog(), start)
    assert (waiting(state), queued(state)) == (["a", "b"], ["w"])
    assert not any(item.related for item in (*state.results, *state.fires))
    assert not defers_guard(state, (Task(kind="shell", id="running"), Task(kind="shell", id="task-a")))
    assert [gap.id for gap in state.gaps.open] == ["known", "new"]
    assert [[gap.id for gap in show.gaps] for show in found(ShowGaps, effects)] == [["known", "new"]]  # type: ignore[attr-defined]
    (tell,) = did(state, NoticeAsked(turn="t"))
    assert [gap.id for gap in tell.gaps] == ["new"]  # type: ignore[attr-defined]
    assert step(state, *came(new("delivered"))) == (state, ())
    later = after(state, *came(*(new(f"r{i}") for i in range(19))))
    assert later.gaps.open[-1].number == 12


def test_a_restart_with_more_than_fits_names_the_rest() -> None:
    """Bounds hold from the first moment on; entries beyond memory are known to be in the store."""
    many = tuple(Gap(number=n, id=f"g{n}", kind="shell", task="t", where="", why="cleared") for n in range(1, 101))
    state, effects = step(Backlog(), Restored(results=tuple(new(f"r{i}") for i in range(45)), gaps=many, next_gap=301))
    assert waiting(state) == [f"r{i}" for i in range(25, 45)]
    assert state.gaps.further == 225, "200 of before and 25 that found no room now"
    assert len(found(OpenGap, effects)) == 25


# What cannot be


ILLEGAL = [
    ResultCame(result=new("").replace(id="")),
    ResultCame(result=new("x").replace(task="")),
    ResultCame(result=new("x").replace(kind="wakeup")),
    ResultCame(result=new("x").replace(kind="parrot")),
    FireCame(fire=cron("")),
    FireCame(fire=cron("x").replace(kind="shell")),
    FireCame(fire=cron("x").replace(times=0)),
    DrainAsked(turn=""),
    OwnResultsAsked(turn=""),
    NoticeAsked(turn=""),
    MessageSending(send="", agent="a"),
    Spawned(agent=""),
    Keep(item=new("an effect is no event")),
]


@pytest.mark.parametrize("event", ILLEGAL, ids=lambda event: type(event).__name__)
def test_what_cannot_be_is_an_error_and_changes_nothing(event: Record) -> None:
    """Refused by name in a fresh, a busy and a full state; each can go on as before."""
    busy = after(left_out(2), DrainAsked(turn="t"), *fired(cron("c")))
    for state in (Backlog(), busy, left_out(150)):
        before = hash(state)
        with pytest.raises(IllegalEventError):
            step(state, event)
        assert hash(state) == before


def test_two_turns_cannot_take_at_once_nor_a_past_be_restored_over() -> None:
    """While one turn is unanswered no other takes anything; a restart happens once."""
    busy = after(CHAIN, *came(new("a"), new("b")), DrainAsked(turn="t"))
    for event in (DrainAsked(turn="u"), OwnResultsAsked(turn="u"), Restored()):
        with pytest.raises(IllegalEventError):
            step(busy, event)
    assert busy.on_its_way == OnItsWay(turn="t", results=(new("a", related=True), new("b", related=True)))


def test_names_remembered_are_bounded() -> None:
    """The latest two hundred are known again, whatever went through."""
    state = CHAIN
    for i in range(SETTLED_RESULTS + 50):
        state = after(state, *came(new(f"r{i}")), DrainAsked(turn=f"t{i}"), TurnAccepted(turn=f"t{i}"))
    assert len(state.settled) == SETTLED_RESULTS
    assert (where_is(state, "r249"), where_is(state, "r0")) == ("settled", "")


def test_every_event_has_its_step() -> None:
    """The table and the events named in the module are the same set."""
    from stopwarden.core import backlog_events as words

    names = {kind for kind in vars(words).values() if isinstance(kind, type) and kind.__module__ == words.__name__}
    effects = {Keep, Deliver, RunFire, TellModel, Settle, LeftOut, RetryLater, ShowRetained, Backlog, OnItsWay}
    assert set(backlog._STEPS) == names - effects
    assert fires.next_up((), FREE) is None
