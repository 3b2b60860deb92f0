"""What the person sets while the session runs, what keeps the guard off, and what people are shown beside it."""

from __future__ import annotations

from typing import Any

import pytest

from stopwarden.core import turn_events as ev
from stopwarden.core.chain_words import Chain
from stopwarden.core.errors import SettingError
from stopwarden.core.fires import Fire
from stopwarden.core.guard import FORCED_OFF, Budget, of_session
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from stopwarden.core.todo_envelope import ToolResult, trusted_todos
from stopwarden.core.turn_state import Session
from tests.support.turns import ARM, FINISH, HINT, LOOK, SAY, Reply, World, at_the_stop, todos

SHELL = Task(kind="shell", id="sh1")


def suggested(world: World) -> list[str]:
    """The turns after which a follow-up may be suggested."""
    return [one.turn for one in world.effects if isinstance(one, ev.Suggest)]


def shown(world: World) -> list[int]:
    """The lists that people were shown, by what is unfinished."""
    return [one.todos.unfinished for one in world.effects if isinstance(one, ev.ShowPlan)]


def guards_send(world: World) -> ev.Send:
    """The guard's first stream is about to be opened."""
    while not (send := world.play(until=ev.Send)).attempt:
        world.answer(send)
    assert isinstance(send, ev.Send)
    return send


# ---- forced off


@pytest.mark.parametrize(
    "forced",
    [
        pytest.param("safe", marks=pytest.mark.case("G26")),
        pytest.param("bare", marks=pytest.mark.case("G26")),
        "no_todo_tool",
    ],
)
def test_where_the_guard_is_forced_off_no_switch_turns_it_on(forced: str) -> None:
    """An unfinished list is not continued, the end says why, and the person's switch is refused with the reason."""
    world = World()
    world.state = Session(chain=Chain(guard=of_session("on", forced)))
    for switch in ("on", "observe"):
        before = world.state
        with pytest.raises(SettingError, match=forced):
            world.feed(ev.SwitchSet(switch=switch))
        assert world.state is before
    world.feed(ev.SwitchSet(switch="off"))
    world.replies.append(ARM)
    world.prompt()
    world.replies.append(ARM)
    world.prompt()
    assert world.attempts() == []
    assert world.ends() == [("P1", "off"), ("P2", "off")]
    assert [one.why for one in world.effects if isinstance(one, ev.EndTurn)] == [forced, forced]


@pytest.mark.case("G26")
def test_in_plan_mode_from_the_start_the_guard_says_nothing() -> None:
    """A session that begins in plan mode arms nothing, and leaving the mode later does not bring its list to life."""
    world = World()
    world.state = Session(chain=Chain(plan=True))
    world.replies.append(ARM)
    world.prompt()
    assert world.ends() == [("P1", "plan_mode")]
    world.feed(ev.ModeChanged(plan=False))
    world.prompt(kind=ev.RETRY)
    assert world.attempts() == []


def test_a_session_begins_with_what_was_configured() -> None:
    """Switch and limits are checked like any the person sets later; only known reasons keep the guard off."""
    assert of_session("observe", budget=Budget(attempts=1)).budget.attempts == 1
    assert {of_session("on", forced).switch for forced in FORCED_OFF} == {"off"}
    for wrong in ({"switch": "maybe"}, {"switch": "on", "forced_off": "mood"}):
        with pytest.raises(SettingError):
            of_session(**wrong)
    with pytest.raises(SettingError):
        of_session("on", budget=Budget(attempts=3))


# ---- the plan that people see


@pytest.mark.case("G28")
def test_a_rejected_list_is_shown_to_nobody() -> None:
    """The tool refused its arguments: no plan appears, nothing is armed. The list that is taken is shown once."""
    world = World()
    world.replies.append(LOOK)
    world.prompt(play=False)
    world.play(until=ev.RunTools)
    display = {"type": "todo_list", "todos": [{"id": "1", "content": "work", "status": "pending"}]}
    refused = ToolResult(tool="todo_write", display=display, succeeded=False)
    world.feed(ev.TodoWritten(turn="P1", todos=trusted_todos(refused)))
    assert shown(world) == []
    assert not world.state.chain.guard.armed
    world.feed(ev.TodoWritten(turn="P1", todos=trusted_todos(refused.replace(succeeded=True))))
    assert shown(world) == [1]


def test_a_list_of_another_turn_is_not_shown_as_this_ones() -> None:
    """The write of a turn that is over comes late: no plan."""
    world = World()
    world.prompt()
    world.feed(ev.TodoWritten(turn="P1", todos=todos(2)))
    world.prompt(play=False)
    world.feed(ev.TodoWritten(turn="P1", todos=todos(2)))
    assert shown(world) == []


# ---- switch and limits at run time


def test_observing_judges_and_records_and_goes_on_with_nothing() -> None:
    """Each stop says what would have been done, nothing is claimed or sent, and the list holds nothing back."""
    world = World(switch="observe")
    world.replies.append(ARM)
    world.prompt(play=False)
    world.feed(ev.FireArrived(fire=Fire(id="f1", job="nightly")))
    world.play()
    assert world.told("guard_observed") == [{"would": "continue", "attempt": 1, "unfinished": 2}]
    assert world.ends()[0] == ("P1", "observed")
    assert world.attempts() == []
    assert ev.Claim not in map(type, world.effects)
    assert world.stored("f1") == 1


def test_observing_records_beside_a_hook_that_blocks() -> None:
    """The hook's own reason goes on alone; what the guard would have done is recorded all the same."""
    world = at_the_stop(hooks=True, switch="observe")
    world.hooks.append({"block": True, "reason": "run the tests"})
    world.play()
    assert [one["would"] for one in world.told("guard_observed")] == ["continue", "continue"]
    assert "guard" not in [part.kind for send in world.sent for part in send.parts]


def test_the_guard_can_be_turned_on_in_the_middle_of_a_turn() -> None:
    """Observed so far: the list that is known counts from now on."""
    world = at_the_stop(switch="observe", hooks=True)
    world.play(until=ev.RunHooks)
    world.feed(ev.SwitchSet(switch="on"))
    world.play()
    assert world.attempts() == [1, 2]
    assert world.told("guard_set") == [{"switch": "on", "attempts": 2, "tokens": 0, "wall_time": 0}]


@pytest.mark.parametrize("change", [ev.SwitchSet(switch="on"), ev.BudgetSet(attempts=2, tokens=10**6, wall_time=10**6)])
def test_no_setting_lifts_a_suspension_or_gives_an_attempt_back(change: ev.Event) -> None:
    """After a cancel, and after both attempts, the list stays as it is whatever is switched or allowed."""
    world = at_the_stop()
    world.play()
    assert world.state.chain.guard.suspended_by == "exhausted"
    world.feed(ev.SwitchSet(switch="off"))
    world.feed(change)
    assert world.state.chain.guard.attempts == 2
    assert world.state.chain.guard.suspended_by == "exhausted"
    world.feed(ev.Cancelled())
    world.feed(change)
    assert world.state.chain.guard.suspended_by == "cancelled"


def test_fewer_attempts_hold_at_once() -> None:
    """One stream was sent when the person allows one: there is no second, and the end says exhausted."""
    world = at_the_stop()
    world.answer(guards_send(world))
    world.feed(ev.BudgetSet(attempts=1))
    world.play()
    assert world.attempts() == [1]
    assert world.ends() == [("P1", "exhausted")]


@pytest.mark.parametrize(
    ("limit", "why"), [({"tokens": 100}, "tokens"), ({"wall_time": 60}, "wall_time")], ids=["tokens", "wall time"]
)
def test_tokens_and_time_of_a_chain_have_their_limit(limit: dict[str, Any], why: str) -> None:
    """The first stream used it up: the guard gives up, and says which limit it was."""
    world = at_the_stop()
    world.feed(ev.BudgetSet(**limit))
    send = guards_send(world)
    world.answer(send)
    world.feed(ev.Tick(now=60_000))
    world.open.pop(send.id)
    world.feed(ev.StreamEnded(id=send.id, reply="enough", tokens=100))
    world.play()
    assert world.attempts() == [1]
    assert world.told("Exhausted")[0]["why"] == why


def test_a_limit_is_changed_alone() -> None:
    """What is not named stays as it was; a limit out of range is refused and changes nothing."""
    world = World()
    world.feed(ev.BudgetSet(tokens=500))
    world.feed(ev.BudgetSet(attempts=1))
    assert world.state.chain.guard.budget == Budget(attempts=1, tokens=500)
    for wrong in (ev.BudgetSet(attempts=3), ev.BudgetSet(attempts=0), ev.BudgetSet(tokens=-1)):
        before = world.state
        with pytest.raises(SettingError):
            world.feed(wrong)
        assert world.state is before


# ---- suggestions


def test_a_follow_up_is_suggested_when_a_persons_turn_has_ended() -> None:
    """A plain answer, and a list worked off: one suggestion after each."""
    world = World()
    world.prompt()
    world.replies.extend([ARM, FINISH, SAY])
    world.prompt()
    assert suggested(world) == ["P1", "P2"]


@pytest.mark.case("G105", "G107", "G108")
@pytest.mark.parametrize(
    "work",
    [
        SHELL,
        Task(kind="agent", id="a1"),
        Task(kind="agent", id="a1", state="paused"),
        Task(kind="monitor", id="m1"),
        Task(kind="workflow", id="w1"),
        Task(kind="wakeup", id="k1", state="scheduled"),
    ],
    ids=lambda task: f"{task.kind} {task.state}",
)
@pytest.mark.parametrize("left", [2, 0])
def test_nothing_is_suggested_while_work_of_the_chain_is_awaited(work: Task, left: int) -> None:
    """It still runs when the turn ends, whether or not the list has an open item."""
    world = World()
    world.replies.append(Reply(calls=1, left=left))
    world.prompt(play=False)
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(work,)))
    world.play()
    assert suggested(world) == []
    assert world.ends() == [("P1", "deferred" if left else "done")]


def test_old_work_keeps_no_suggestion_back() -> None:
    """A shell that ran before the prompt is none of its work."""
    world = World()
    world.feed(ev.BackgroundChanged(tasks=(SHELL,)))
    world.prompt()
    assert suggested(world) == ["P1"]


@pytest.mark.case("G43")
def test_nothing_is_suggested_when_the_turn_gave_way() -> None:
    """A queued prompt follows: it says what comes next."""
    world = at_the_stop()
    world.drains.append(HINT)
    world.claims.append("queued")
    world.play()
    assert world.ends() == [("P1", "yielded")]
    assert suggested(world) == []


def test_nothing_is_suggested_when_something_follows_at_once() -> None:
    """A prompt that waits for the writer, a turn for a result, a closed gate, a cancel, an error."""
    for happens in (
        lambda world: world.feed(ev.PromptOffered(prompt=ev.Prompt(id="next"))),
        lambda world: world.feed(ev.ResultArrived(result=Result(id="r1", kind="shell", task="old"))),
        lambda world: world.feed(ev.GateTaken()),
        lambda world: world.feed(ev.Cancelled()),
        lambda world: world.feed(ev.Disposed()),
    ):
        world = World()
        world.prompt(play=False)
        stream = world.play(until=ev.Send)
        world.answer(stream)
        happens(world)
        world.answer(stream)
        assert suggested(world) == []
    world = World()
    world.replies.append(Reply(broken="down"))
    world.prompt()
    assert suggested(world) == []


@pytest.mark.parametrize("sent", [False, True])
def test_a_budget_that_is_lowered_under_a_claimed_stream_ends_it_as_exhausted(sent: bool) -> None:
    """Before the send nothing goes out; after it the stream is cut, and its words leave no trace in history."""
    world = World()
    world.arm()
    world.answer(guards_send(world))
    asked = world.play(until=ev.CheckTokens)
    if sent:
        world.answer(asked)
        asked = world.play(until=ev.Send)
    assert world.state.turn is not None
    assert world.state.turn.stream.attempt == 2
    world.feed(ev.BudgetSet(attempts=1))
    world.answer(asked)
    world.play()
    assert world.ends()[-1][1] == "exhausted"
    assert world.attempts() == ([1, 2] if sent else [1])
    assert world.state.chain.guard.attempts == 1
    assert [part.id for parts in world.history.values() for part in parts if part.kind == "guard"] == ["guard-1"]
