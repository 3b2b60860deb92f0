"""Schedules of a native session: crons and wakeups fire as turns of their own, coalesce, end, and survive a restart."""

from __future__ import annotations

import asyncio

from stopwarden.models.script import Reply, Tool
from tests.native.test_background import rests
from tests.support.native import Native, run, todos, told_to

EVERY_MINUTE = Tool("cron_create", {"cron": "* * * * *", "prompt": "Look at the build.", "durable": True})
WAKE = Tool("wakeup", {"seconds": 60, "prompt": "Has it come?"})


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at

    def passes(self, seconds: float, native: Native) -> None:
        """And the session looks at it."""
        self.at += seconds
        assert native.session.schedules is not None
        native.session.schedules.look()


def test_a_cron_fires_as_a_turn_with_its_prompt_each_time() -> None:
    async def story() -> None:
        clock = Clock()
        native = Native([Reply(text="a", tools=(EVERY_MINUTE,)), "Set.", "First look.", "Second look."], now=clock)
        await native.say("Watch the build.")
        for requests in (3, 4):
            clock.passes(60, native)
            await rests(native, requests)
            assert told_to(native.model.seen[-1]).count("[By itself:") == requests - 2
        assert native.words.endswith("First look.Second look.")
        await native.session.close()

    run(story())


def test_fires_of_one_schedule_are_one_turn_where_a_turn_runs_meanwhile() -> None:
    """Three minutes pass in a turn; what the person wants is the look, not its number."""

    async def story() -> None:
        clock = Clock()
        native = Native([Reply(text="a", tools=(EVERY_MINUTE,)), "Set.", Reply(text="Slow.", delay=0.1)], now=clock)
        await native.say("Watch the build.")
        turn = asyncio.ensure_future(native.say("Talk."))
        async with asyncio.timeout(5):
            while len(native.model.seen) < 3:
                await asyncio.sleep(0)
        for _ in range(3):
            clock.passes(60, native)
        assert [fire.times for fire in native.session.machine.backlog.fires] == [3]
        assert await turn == "done"
        await rests(native, 4)
        assert told_to(native.model.seen[-1]).count("[By itself:") == 1
        assert len(native.model.seen) == 4
        await native.session.close()

    run(story())


def test_a_list_waits_for_the_wakeup_that_its_own_chain_set() -> None:
    """The guard asks for nothing meanwhile; the wakeup resumes the chain, and then the guard has its say."""

    async def story() -> None:
        clock = Clock()
        start = Reply(text="I wait.", tools=(todos("pending"), WAKE))
        native = Native([start, "Until then.", "It is not here.", "Still.", "Still not."], now=clock)
        assert await native.say("Wait for it.") == "deferred"
        assert not native.kinds("AttemptCounted")
        clock.passes(60, native)
        await rests(native, 5)
        assert "Has it come?" in told_to(native.model.seen[2])
        assert [told.detail["attempt"] for told in native.kinds("AttemptCounted")] == [1, 2]
        assert not native.session.machine.tasks
        await native.session.close()

    run(story())


def test_durable_schedules_survive_a_restart_and_a_missed_wakeup_comes_at_once() -> None:
    """The cron goes on at its next time; neither fires before the session is loaded."""

    async def story() -> None:
        clock = Clock()
        first = Native([Reply(text="a", tools=(EVERY_MINUTE, WAKE)), "Set."], now=clock)
        await first.say("Watch.")
        await first.session.close()
        clock.at += 600
        second = Native(["I woke."], transcripts=first.transcripts, now=clock)
        await rests(second, 1)
        assert "Has it come?" in told_to(second.model.seen[0])
        assert "[By itself: schedule" not in told_to(second.model.seen[0])
        kinds = [told.kind for told in second.told]
        assert kinds.index("loaded") < kinds.index("background")
        assert [job.kind for job in second.session.schedules.listed()] == ["cron"]
        await second.session.close()
        third = Native([], transcripts=first.transcripts, now=clock)
        assert [job.kind for job in third.session.schedules.listed()] == ["cron"]
        await third.session.close()

    run(story())


def test_a_recurring_schedule_ends_after_seven_days() -> None:
    async def story() -> None:
        clock = Clock()
        native = Native([Reply(text="a", tools=(EVERY_MINUTE,)), "Set.", "The last look."], now=clock)
        await native.say("Watch.")
        clock.passes(7 * 86_400, native)
        assert not native.session.schedules.listed()
        await rests(native, 3)
        await native.session.close()

    run(story())


def test_schedules_are_listed_and_deleted_and_one_that_cannot_be_read_is_refused() -> None:
    async def story() -> None:
        native = Native(
            [
                Reply(text="a", tools=(EVERY_MINUTE, Tool("cron_create", {"cron": "61 * * * *", "prompt": "?"}))),
                Reply(text="b", tools=(Tool("cron_list", {}), Tool("cron_delete", {"id": "job-none"}))),
                "Done.",
            ]
        )
        await native.say("Set two.")
        assert "cannot be read" in told_to(native.model.seen[1])
        assert "Look at the build." in told_to(native.model.seen[2])
        assert "There is no schedule" in told_to(native.model.seen[2])
        native.session.schedules.delete(native.session.schedules.listed()[0].id)
        assert not native.session.schedules.listed()
        assert not native.session.machine.tasks
        await native.session.close()

    run(story())
