"""The native session on the real machines: what the model is sent, what the person sees, and in which order."""

from __future__ import annotations

import asyncio

import pytest

from stopwarden.core import turn as machine
from stopwarden.core import turn_events as ev
from stopwarden.core.instruction import MARKER
from stopwarden.models.script import Reply, Request, Tool
from tests.support.native import ARM, FINISH, Native, run, todos, told_to


def test_an_unfinished_list_is_continued_twice_and_then_told_as_exhausted() -> None:
    """Each continuation is one request more with our instruction in it, and the person sees each."""

    async def story() -> None:
        native = Native([ARM, "I stop.", "I stop again.", "And again."])
        assert await native.say("Do two things.") == "exhausted"
        assert [MARKER in told_to(one) for one in native.model.seen] == [False, False, True, True]
        counted = native.kinds("AttemptCounted")
        assert [(told.detail["attempt"], told.detail["unfinished"]) for told in counted] == [(1, 2), (2, 2)]
        assert len(native.kinds("Exhausted")) == 1
        assert await native.say("Thanks.") == "done"
        assert MARKER in told_to(native.model.seen[-1])  # what the model was told stays, where it was told

    run(story())


def test_a_list_that_is_finished_is_not_continued() -> None:
    async def story() -> None:
        native = Native([ARM, FINISH, "All done."])
        assert await native.say("Do two things.") == "done"
        assert not native.kinds("AttemptCounted")

    run(story())


def test_off_and_observe_continue_nothing() -> None:
    async def story(guard: str) -> tuple[str, int]:
        native = Native([ARM, "I stop."], guard=guard)
        return await native.say("Do two things."), len(native.model.seen)

    assert run(story("off")) == ("off", 2)
    assert run(story("observe")) == ("observed", 2)


def test_a_second_prompt_waits_and_goes_before_the_guard() -> None:
    """It is queued with an owner of its own; the chain that would be continued gives way to it."""

    async def story() -> None:
        native = Native([ARM, Reply(text="I stop.", delay=0.05), "Your second wish."])
        first = asyncio.ensure_future(native.say("Do two things."))
        await native.until("result")
        second = asyncio.ensure_future(native.say("Something else."))
        assert await first == "yielded"
        assert await second == "done"
        assert not native.kinds("AttemptCounted")
        assert "Something else." in told_to(native.model.seen[-1])

    run(story())


def test_words_of_the_person_go_along_with_the_tool_results_once() -> None:
    async def story() -> None:
        waits = Reply(text="Waiting.", tools=(Tool("shell", {"command": "sleep 0.2"}),))
        native = Native([waits, "I heard you."])
        turn = asyncio.ensure_future(native.say("Wait a little."))
        await native.until("call")
        assert await native.prompts.mention("And be quick.")
        assert await turn == "done"
        assert [told_to(one).count("And be quick.") for one in native.model.seen] == [0, 1]

    run(story())


def test_a_cancel_ends_the_tool_and_the_next_prompt_is_clean() -> None:
    """The call that was cut has a result all the same, because a provider takes no call without one."""

    async def story() -> None:
        waits = Reply(text="Waiting.", tools=(Tool("shell", {"command": "sleep 60"}),))
        native = Native([waits, "Here again."])
        turn = asyncio.ensure_future(native.say("Wait long."))
        await native.until("call")
        await native.prompts.cancel()
        assert await turn == "cancelled"
        assert await native.say("And now?") == "done"
        body = native.model.seen[-1].body["messages"]
        kinds = [[part["type"] for part in message["content"]] for message in body]
        assert kinds == [["text"], ["text", "tool_use"], ["tool_result", "text"]]

    run(story())


def test_a_refused_request_costs_no_attempt_and_leaves_no_instruction() -> None:
    async def story() -> None:
        native = Native([ARM, "I stop.", Reply(status=429, text="too fast", headers={"retry-after": "7"}), "Hello."])
        assert await native.say("Do two things.") == "error"
        assert "429" in native.session.last_error
        assert not native.kinds("AttemptCounted")
        await native.say("Still there?")
        assert MARKER not in told_to(native.model.seen[-1])
        assert "Still there?" in told_to(native.model.seen[-1])

    run(story())


def test_a_stream_that_breaks_keeps_what_was_sent() -> None:
    async def story() -> None:
        native = Native([Reply(text="I begin and then", breaks=1), "Again."])
        assert await native.say("Say much.") == "error"
        await native.say("Again, please.")
        assert "Say much." in told_to(native.model.seen[-1])

    run(story())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Tool("todo_write", "{not json"), "Invalid JSON"),
        (Tool("todo_write", {"todos": [{"id": "1", "content": "a", "status": "open"}]}), "status"),
        (Tool("todo_write", {"todos": [{"id": "1", "content": "a", "status": "pending"}] * 2}), "stand twice"),
        (Tool("no_such_tool", {}), "There is no tool no_such_tool"),
        (Tool("shell", {"command": ""}), "at least 1 character"),
        (Tool("read_file", {"path": "x", "depth": 3}), "depth"),
    ],
)
def test_a_broken_call_is_answered_and_arms_nothing(call: Tool, said: str) -> None:
    """The model is told what is wrong; the session goes on."""

    async def story() -> None:
        native = Native([Reply(tools=(call,)), "I see."])
        assert await native.say("Try.") == "done"
        result = native.kinds("result")[0]
        assert result.detail["failed"]
        assert said in result.text
        assert not native.kinds("AttemptCounted")

    run(story())


def test_with_a_machine_that_only_ends_turns_no_continuation_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session decides nothing: one request a prompt, whatever the list says."""

    def ends(state: machine.Session, event: ev.Event) -> tuple[machine.Session, tuple[ev.Effect, ...]]:
        if isinstance(event, ev.PromptOffered):
            names.append(event.prompt.id)
            send = ev.Send(id=1, entry="e", parts=event.prompt.parts, label="")
            return state, (send,)
        if isinstance(event, ev.StreamEnded):
            return state, (ev.EndTurn(id=2, turn=names[0], kind="done", rule="none"),)
        return state, ()

    names: list[str] = []

    async def story() -> None:
        native = Native([ARM, "Never asked for."])
        monkeypatch.setattr("stopwarden.session.actor.step", ends)
        assert await native.say("Do two things.") == "done"
        assert len(native.model.seen) == 1

    run(story())


def test_plan_mode_changes_nothing_and_continues_nothing() -> None:
    async def story() -> None:
        writes = Reply(text="I plan.", tools=(todos("pending"), Tool("write_file", {"path": "x", "content": "y"})))
        native = Native([writes, "This is my plan."], mode="plan")
        assert await native.say("Plan it.") == "plan_mode"
        assert [told.detail["failed"] for told in native.kinds("result")] == [False, True]
        assert "plan mode" in native.kinds("result")[1].text

    run(story())


def test_whoever_may_not_be_asked_has_said_no() -> None:
    async def story() -> None:
        native = Native([Reply(tools=(Tool("shell", {"command": "echo no > made"}),)), "Well."], mode="ask")
        assert await native.say("Run it.") == "done"
        assert "the person said no" in native.kinds("result")[0].text

    run(story())


def test_a_script_may_read_what_it_was_told() -> None:
    """The offline model is a function of the request, as the scripted server is."""

    async def story() -> None:
        native = Native(lambda request: "seen" if request.says("magic") else "not seen")
        await native.say("nothing")
        await native.say("magic")
        assert [_reply(one) for one in native.model.seen] == ["not seen", "seen"]

    run(story())


def _reply(request: Request) -> str:
    assert request.reply is not None
    return request.reply.text
