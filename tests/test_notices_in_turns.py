"""Gap notices in turns: what was left out is named with the next send of any kind, to the model and the person, once."""

from __future__ import annotations

from typing import Any

import pytest

from stopwarden.core import backlog_events as waits
from stopwarden.core import turn_events as ev
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.fires import Fire
from stopwarden.core.gaps import Gap, ShowGaps
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from tests.support.turns import BLOCK, FINISH, LOOK, SAY, Reply, World


def left_out(world: World, count: int = 1) -> list[str]:
    """Results that find no room while a person's prompt goes first; the names of those that had to go."""
    for number in range(20 + count):
        result = Result(id=f"r{number}", kind="shell", task=f"t{number}", where="task output")
        world.feed(ev.ResultArrived(result=result))
    return [gap.id for gap in world.state.backlog.gaps.open]


def old_work(**kw: Any) -> World:
    """A world whose background work was there before the person's prompt: its results belong to no chain."""
    world = World(**kw)
    world.feed(ev.BackgroundChanged(tasks=tuple(Task(kind="shell", id=f"t{number}") for number in range(21))))
    return world


def cleared(world: World) -> None:
    """A scheduled prompt waited when the conversation was emptied: it became a gap entry."""
    world.feed(ev.GateTaken())
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    world.feed(waits.Cleared())
    world.feed(ev.GateReleased())


def notices(world: World) -> list[list[str]]:
    """The gap entries that each committed send named, where it named any."""
    named = [[part.id for part in send.parts if part.kind == "gap"] for send in world.committed]
    return [one for one in named if one]


def marks(world: World) -> list[tuple[str, tuple[str, ...]]]:
    """The told marks that were written."""
    return [(one["to"], one["ids"]) for one in world.told("MarkTold")]


def test_an_ordinary_prompt_tells_the_model_what_was_left_out() -> None:
    """The entry stands in front of the person's words, is told once, and not with the next prompt again."""
    world = World()
    cleared(world)
    world.prompt()
    assert world.kinds(0) == ["gap", "user"]
    world.prompt()
    assert notices(world) == [["fire"]]
    assert marks(world) == [("model", ("fire",))]


@pytest.mark.parametrize("kind", [ev.ORDINARY, ev.RETRY, ev.CONTINUE])
def test_a_prompt_of_any_kind_tells_it(kind: str) -> None:
    """A retry is a send like any other."""
    world = World()
    cleared(world)
    world.prompt(kind=kind)
    assert notices(world) == [["fire"]]


def test_a_continuation_of_the_guard_tells_what_was_left_out_meanwhile() -> None:
    """Twenty-one results come while the tools of an armed chain run: the follow-up of that very turn names the one."""
    world = old_work()
    world.arm()
    world.play(until=ev.Drain, skip=1)
    gone = left_out(world)
    assert len(gone) == 1
    world.play()
    told = next(send for send in world.committed if any(part.kind == "gap" for part in send.parts))
    assert [part.kind for part in told.parts] == ["gap", "guard"]
    assert told.attempt == 1
    assert notices(world) == [gone]


def test_a_hooks_continuation_tells_it_too() -> None:
    """With the guard off, the block of a Stop hook is the next send."""
    world = World(hooks=True, switch="off")
    world.hooks.append(BLOCK)
    world.prompt(play=False)
    world.play(until=ev.RunHooks)
    gone = left_out(world)
    world.play()
    assert [part.kind for part in world.committed[1].parts] == ["gap", "hook_reason"]
    assert notices(world) == [gone]


def test_a_closing_stream_carries_its_results_alone() -> None:
    """The notice waits for the send after it."""
    world = old_work()
    world.arm()
    world.replies.append(FINISH)
    world.play(until=ev.RunTools, skip=1)
    gone = left_out(world)
    world.play()
    closing = [send for send in world.committed if send.attempt][-1]
    assert [part.kind for part in closing.parts] == ["tool_result"]
    assert notices(world) == [gone]


@pytest.mark.parametrize("answer", [Reply(refused="down"), Reply(broken="down")])
def test_a_refused_send_has_told_nothing_and_a_broken_one_has(answer: Reply) -> None:
    """The model knows what the provider accepted; what it refused is told with the next send."""
    world = World()
    cleared(world)
    world.replies.append(answer)
    world.prompt()
    assert notices(world) == ([] if answer.refused else [["fire"]])
    world.prompt()
    assert notices(world) == [["fire"]]
    assert world.state.backlog.gaps.open[0].turn == ""


@pytest.mark.parametrize("until", [ev.CheckTokens, ev.Send])
def test_a_send_that_a_newer_prompt_overtook_leaves_the_notice_to_it(until: type[ev.Effect]) -> None:
    """It was prepared, or already asked for, and came to nothing."""
    world = World()
    cleared(world)
    world.prompt(play=False)
    waits_now = world.play(until=until)
    world.prompt(play=False)
    if until is ev.Send:
        world.fail(waits_now, ev.ProviderRefused(id=waits_now.id, why="cut"))
    world.play()
    assert notices(world) == [["fire"]]
    assert marks(world) == [("model", ("fire",))]


def test_a_stream_that_is_not_counted_tells_nothing() -> None:
    """Plan mode came while the provider made up its mind: the stream is cut, and the next send names the entry."""
    world = old_work()
    world.arm()
    world.play(until=ev.Drain, skip=1)
    gone = left_out(world)
    send = world.play(until=ev.Send)
    assert send.attempt == 1
    world.feed(ev.ModeChanged(plan=True))
    world.play()
    world.feed(ev.ModeChanged(plan=False))
    world.prompt()
    assert send.entry not in world.history
    assert notices(world) == [gone]
    assert len(marks(world)) == 1


def test_a_hook_that_goes_on_after_the_guard_gave_up_takes_the_notice_along() -> None:
    """The entry was to ride on a stream of both; it rides on the hook's, once."""
    world = old_work(hooks=True)
    world.hooks.append(BLOCK)
    world.arm()
    world.play(until=ev.RunHooks)
    gone = left_out(world)
    world.play(until=ev.CheckTokens)
    world.feed(ev.SwitchSet(switch="off"))
    world.play()
    assert notices(world) == [gone]
    assert [part.kind for part in next(s for s in world.committed if "gap" in [p.kind for p in s.parts]).parts] == [
        "gap",
        "hook_reason",
    ]


def test_a_prompt_that_does_not_fit_leaves_the_notice_to_the_next() -> None:
    """Nothing was sent, so nothing was told."""
    world = World()
    cleared(world)
    world.prompt(play=False)
    asked = world.play(until=ev.CheckTokens)
    assert [part.kind for part in asked.parts] == ["gap", "user"]
    world.fail(asked, ev.TokensChecked(id=asked.id, fits=False))
    world.play()
    assert notices(world) == []
    world.prompt()
    assert notices(world) == [["fire"]]


def test_the_person_is_told_once_also_after_a_screen_that_could_not_show_it() -> None:
    """An event that failed is shown again when a client comes; one that was shown is not."""
    world = World()
    cleared(world)
    assert [len(one["gaps"]) for one in world.told("ShowGaps")] == [1]
    world.feed(waits.GapsShown(ids=("fire",), done=False))
    world.feed(waits.PersonLooks())
    assert [len(one["gaps"]) for one in world.told("ShowGaps")] == [1, 1]
    world.feed(waits.GapsShown(ids=("fire",)))
    world.feed(waits.PersonLooks())
    assert len(world.told("ShowGaps")) == 2
    world.prompt()
    assert marks(world) == [("person", ("fire",)), ("model", ("fire",))]
    assert world.state.backlog.gaps.open == ()


def test_an_entry_that_only_the_person_knows_is_told_the_model_after_a_restart() -> None:
    """What the store holds open is read back with its marks; the model hears of it with the first prompt, once."""
    entry = Gap(
        number=1, id="r1", kind="shell", task="t1", where="task output", why="queue_full", told_person=True, turn="old"
    )
    world = World()
    restored, effects = world.restored(gaps=(entry,), next_gap=2)
    assert not any(isinstance(effect, ShowGaps) for effect in effects)
    world.state = world.state.replace(backlog=restored)
    world.prompt()
    world.prompt()
    assert notices(world) == [["r1"]]
    assert marks(world) == [("model", ("r1",))]


def test_more_entries_than_a_notice_holds_follow_with_the_next_sends() -> None:
    """A burst of fifty: forty are named with one send, ten with the next; none twice."""
    world = World()
    world.feed(ev.GateTaken())
    for number in range(50):
        world.feed(ev.FireArrived(fire=Fire(id=f"f{number}")))
    world.feed(waits.Cleared())
    world.feed(ev.GateReleased())
    world.replies.extend([LOOK, SAY])
    world.prompt()
    assert [len(one) for one in notices(world)] == [40, 10]
    assert sorted(name for one in notices(world) for name in one) == sorted(f"f{number}" for number in range(50))


# ---- what a dispose leaves


def test_what_waits_when_a_session_is_put_away_comes_back_when_it_is_loaded() -> None:
    """No gap entry and no settling: in the store it waits as before, like after a crash, and the next process has it."""
    world = World()
    world.prompt(play=False)
    result = Result(id="r1", kind="shell", task="t1")
    world.feed(ev.ResultArrived(result=result))
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    world.feed(ev.Disposed())
    kept = [one["item"] for one in world.told("Keep")]
    assert [item.id for item in kept] == ["r1", "fire"]
    assert not world.told("Settle")
    assert not world.told("OpenGap")
    later = World()
    restored, _ = later.restored(results=(kept[0],), fires=(kept[1],))
    later.state = later.state.replace(backlog=restored)
    later.prompt()
    assert (later.stored("r1"), later.stored("fire")) == (1, 1)


def test_what_a_turn_carried_when_the_session_was_put_away_is_not_delivered() -> None:
    """The provider had not answered: it is neither settled nor a gap; it waits in the store."""
    world = World()
    world.feed(ev.FireArrived(fire=Fire(id="fire")))
    send = world.play(until=ev.Send)
    world.feed(ev.Disposed())
    world.fail(send, ev.ProviderRefused(id=send.id, why="cut"))
    assert world.ends() == [(world.ends()[0][0], "cancelled")]
    assert [fire.id for fire in world.state.backlog.fires] == ["fire"]
    assert not world.told("Settle")


def test_a_result_that_comes_after_the_dispose_is_kept() -> None:
    """Nobody will send it in this process; it is on disk."""
    world = World()
    world.feed(ev.Disposed())
    world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="t1")))
    assert [one["item"].id for one in world.told("Keep")] == ["r1"]
    assert not world.open


def test_a_conversation_is_emptied_only_between_turns() -> None:
    """While a turn runs it is refused, and nothing has changed."""
    world = World()
    world.prompt(play=False)
    before = world.state
    with pytest.raises(IllegalEventError):
        world.feed(waits.Cleared())
    assert world.state is before
