"""Work in the background of a native session: its results, what waits for them, what is left out, and its end."""

from __future__ import annotations

import asyncio
import os

from stopwarden.core import turn_events as ev
from stopwarden.core.results import Result
from stopwarden.models.port import Text
from stopwarden.models.script import Reply, Request, Tool
from tests.support.native import Native, run, todos, told_to


def arrives(native: Native, name: str, *, task: str = "elsewhere") -> None:
    """The result of a task that this session's tools did not begin."""
    native.session.conversation.put(name, Text(text=f"words of {name}"))
    where = f"task_output with task {task}"
    native.session.feed(ev.ResultArrived(result=Result(id=name, kind="shell", task=task, where=where)))


async def rests(native: Native, requests: int) -> None:
    """Until so many requests were made and no turn runs."""
    async with asyncio.timeout(8):
        while len(native.model.seen) < requests or native.session.machine.turn is not None:
            await asyncio.sleep(0)


def in_background(command: str) -> Tool:
    """A call that starts a command beside the session."""
    return Tool("shell", {"command": command, "background": True})


def test_the_result_of_a_command_in_the_background_begins_a_turn_of_its_own() -> None:
    """The model waits for nothing; when the command has ended it is told its output, and how to read all of it."""

    async def story() -> None:
        native = Native([Reply(text="I start it.", tools=(in_background("echo built"),)), "Started.", "I saw it."])
        assert await native.say("Build in the background.") == "done"
        await rests(native, 3)
        last = told_to(native.model.seen[-1])
        assert "built" in last
        assert "exit code 0" in last
        assert "task_output" in last
        assert native.words.endswith("I saw it.")
        await native.session.close()

    run(story())


def test_a_list_waits_for_its_own_background_work_and_goes_on_with_the_same_attempts(
    tmp_path: os.PathLike[str],
) -> None:
    """While the command runs the guard asks for nothing; its result resumes the chain, and no attempt was spent."""
    gate = f"{tmp_path}/gate"
    os.mkfifo(gate)

    async def story() -> None:
        start = Reply(text="I start.", tools=(todos("pending", "pending"), in_background(f"cat {gate}")))
        native = Native([start, "I wait.", "I saw the result.", "Still not.", "Nor now."])
        assert await native.say("Do two things.") == "deferred"
        assert not native.kinds("AttemptCounted")
        with open(gate, "w") as door:
            door.write("ready")
        await rests(native, 5)
        assert "ready" in told_to(native.model.seen[2])
        assert [told.detail["attempt"] for told in native.kinds("AttemptCounted")] == [1, 2]
        await native.session.close()

    run(story())


def test_a_result_of_other_work_waits_behind_a_list_that_waits(tmp_path: os.PathLike[str]) -> None:
    """It is old to the chain: no turn begins for it while the chain's own work still runs."""
    gate = f"{tmp_path}/gate"
    os.mkfifo(gate)

    async def story() -> None:
        beside, mine = in_background(f"cat {gate}"), in_background("sleep 60")
        start = Reply(text="I start.", tools=(todos("pending"), mine))
        native = Native([Reply(text="Beside.", tools=(beside,)), "Runs.", start, "I wait."])
        assert await native.say("Something beside.") == "done"
        assert await native.say("Do a thing.") == "deferred"
        with open(gate, "w") as door:
            door.write("old news")
        await native.until("background")
        assert len(native.model.seen) == 4
        assert [result.related for result in native.session.machine.backlog.results] == [False]
        await native.session.close()

    run(story())


def test_more_results_than_wait_are_told_as_one_batch_that_names_the_rest() -> None:
    """Twenty go together; each of the five that found no room is named with how it can be read."""

    async def story() -> None:
        native = Native([Reply(text="Slow.", delay=0.05), "I saw them."])
        turn = asyncio.ensure_future(native.say("Talk."))
        await native.until("turn_begun")
        for number in range(25):
            arrives(native, f"r{number:02}", task=f"shell-{number:08x}")
        assert await turn == "done"
        await rests(native, 2)
        last = told_to(native.model.seen[-1])
        assert [f"words of r{number:02}" in last for number in range(25)] == [False] * 5 + [True] * 20
        assert all(f"r{number:02} of shell-" in last for number in range(5))
        assert last.count("Not delivered") == 5
        assert "task_output with task shell-00000000" in last
        assert not native.session.machine.backlog.gaps.open
        await native.session.close()

    run(story())


def test_after_a_cancel_results_wait_for_the_next_prompt() -> None:
    async def story() -> None:
        native = Native(["Hello.", "And the result."])
        native.session.cancel()
        arrives(native, "late")
        assert not native.model.seen
        assert await native.say("Hello?") == "done"
        await rests(native, 2)
        assert ["words of late" in told_to(one) for one in native.model.seen] == [False, True]
        await native.session.close()

    run(story())


def test_what_waited_when_the_program_ended_is_delivered_by_the_next_one() -> None:
    """Once: a third process has nothing to deliver."""

    async def story() -> None:
        first = Native([])
        first.session.cancel()
        arrives(first, "kept")
        second = Native(["I saw it."], transcripts=first.transcripts)
        await rests(second, 1)
        assert "words of kept" in told_to(second.model.seen[0])
        third = Native([], transcripts=first.transcripts)
        assert third.session.machine.turn is None
        assert not third.session.machine.backlog.results

    run(story())


def test_a_result_that_was_on_its_way_when_the_program_ended_is_delivered_once() -> None:
    """Its entry was staged and not known to be sent: it waits again, and is not told twice in one request."""

    async def story() -> None:
        first = Native([Reply(text="never", delay=30)])
        arrives(first, "kept")
        async with asyncio.timeout(5):
            while not any(line.kind == "staged" for line in first.transcripts.lines("s")):
                await asyncio.sleep(0)
        second = Native(["I saw it."], transcripts=first.transcripts)
        await rests(second, 1)
        assert told_to(second.model.seen[0]).count("words of kept") == 1
        await first.session.close()

    run(story())


def test_a_command_in_the_background_ends_with_its_session(tmp_path: os.PathLike[str]) -> None:
    """With all it started, and without a last turn."""

    async def story() -> None:
        command = f"sleep 60 & echo $! > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; wait"
        native = Native([Reply(text="I start it.", tools=(in_background(command),)), "Started."])
        await native.say("Start it.")
        async with asyncio.timeout(5):
            while not os.path.exists(f"{tmp_path}/pid"):
                await asyncio.sleep(0.01)
        with open(f"{tmp_path}/pid") as kept:
            child = int(kept.read())
        await native.session.close()
        async with asyncio.timeout(5):
            while _alive(child):
                await asyncio.sleep(0.01)
        assert len(native.model.seen) == 2

    run(story())


def test_a_task_is_listed_read_while_it_runs_and_ended(tmp_path: os.PathLike[str]) -> None:
    """Its result says that it was stopped; its output can be read afterwards too."""

    async def story() -> None:
        seen: list[str] = []

        def model(request: Request) -> Reply | str:
            seen.append(told_to(request))
            task = native.session.background.listed()[0][0].id if native.session.background.listed() else ""
            match len(seen):
                case 1:
                    return Reply(text="a", tools=(in_background("echo hello; sleep 60"),))
                case 2:
                    return Reply(text="b", tools=(Tool("task_list", {}), Tool("task_stop", {"task": task})))
                case 3:
                    name = seen[-1].split("shell-")[1][:8]
                    return Reply(text="c", tools=(Tool("task_output", {"task": f"shell-{name}"}),))
                case _:
                    return "done"

        native = Native(model)
        await native.say("Go.")
        await rests(native, 3)
        assert "sleep 60" in seen[2]
        assert "was ended" in seen[2]
        assert "(stopped)" in seen[-1]
        await native.session.close()

    run(story())


def test_the_lines_of_a_monitor_wake_the_session_while_it_runs() -> None:
    async def story() -> None:
        watch = Reply(text="I watch.", tools=(Tool("monitor", {"command": "echo line one; sleep 60"}),))
        native = Native([watch, "Watching.", "I saw a line."])
        await native.say("Watch it.")
        await rests(native, 3)
        assert "line one" in told_to(native.model.seen[-1])
        assert len(native.session.machine.tasks) == 1
        await native.session.close()

    run(story())


def test_a_task_nobody_knows_is_told_as_such() -> None:
    """A name is no path: what is no task's is not looked for on disk."""

    async def story() -> None:
        ask = Reply(
            text="?", tools=(Tool("task_output", {"task": "../../etc/passwd"}), Tool("task_stop", {"task": "x"}))
        )
        native = Native([ask, "Oh."])
        await native.say("Look.")
        assert "There is no task" in told_to(native.model.seen[-1])
        assert "No task 'x' runs" in told_to(native.model.seen[-1])
        await native.session.close()

    run(story())


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as state:
            return state.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def asks_agent(prompt: str, *, background: bool = False) -> Tool:
    """A call that gives a task to a sub-agent."""
    return Tool("agent", {"prompt": prompt, "background": background})


def test_a_sub_agent_that_is_waited_for_answers_with_its_last_reply() -> None:
    """It has a conversation of its own: it hears its task and nothing of its parent's."""

    async def story() -> None:
        native = Native([Reply(text="I ask.", tools=(asks_agent("Count to two."),)), "One, two.", "It counted."])
        assert await native.say("Let somebody count.") == "done"
        child, parent = map(told_to, native.model.seen[1:])
        assert "Count to two." in child
        assert "Let somebody count." not in child
        assert "One, two." in parent
        assert native.words == "I ask.It counted."
        await native.session.close()

    run(story())


def test_a_sub_agent_in_the_background_defers_the_list_and_its_result_resumes_it() -> None:
    """And once it has ended, words to it let it go on: the second result is another one."""

    async def story() -> None:
        requests: list[str] = []

        def model(request: Request) -> Reply | str:
            said = told_to(request)
            if "Let somebody" not in said:
                return Reply(text=f"Child {said.count('Child')}.", delay=0.05)
            requests.append(said)
            match len(requests):
                case 1:
                    return Reply(text="a", tools=(todos("pending"), asks_agent("Think.", background=True)))
                case 3:
                    name = said.split("agent-")[1][:8]
                    return Reply(text="b", tools=(Tool("send_message", {"task_id": f"agent-{name}", "text": "More."}),))
                case 5:
                    return Reply(text="c", tools=(todos("completed"),))
                case _:
                    return "I wait."

        native = Native(model)
        assert await native.say("Let somebody think.") == "deferred"
        async with asyncio.timeout(8):
            while len(requests) < 6 or native.session.machine.turn is not None:
                await asyncio.sleep(0)
        assert "Child 0." in requests[2]
        assert "Child 1." in requests[4]
        assert not native.kinds("AttemptCounted")
        await native.session.close()

    run(story())


def test_a_cancel_ends_the_sub_agent_that_is_waited_for() -> None:
    async def story() -> None:
        slow = Reply(text="Slow.", delay=30)
        native = Native([Reply(text="I ask.", tools=(asks_agent("Take your time."),)), slow, "Here."])
        turn = asyncio.ensure_future(native.say("Let somebody dawdle."))
        async with asyncio.timeout(5):
            while len(native.model.seen) < 2:
                await asyncio.sleep(0)
        await native.prompts.cancel()
        assert await turn == "cancelled"
        assert not native.session.machine.tasks
        assert await native.say("And now?") == "done"
        await native.session.close()

    run(story())


def test_words_to_no_agent_are_refused() -> None:
    async def story() -> None:
        native = Native([Reply(text="?", tools=(Tool("send_message", {"task_id": "agent-0", "text": "Hi."}),)), "Oh."])
        await native.say("Say hi.")
        assert "There is no agent" in told_to(native.model.seen[-1])
        assert not native.session.machine.backlog.lineage.marks
        await native.session.close()

    run(story())
