"""Which background work belongs to the chain, and how long the chain waits for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwarden.core import lineage
from stopwarden.core.bounds import DEFERRAL_LIMIT, MINUTE
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.lineage import (
    Deferral,
    DeferredTooLong,
    Lineage,
    Task,
    begun,
    has_relevant_background,
    is_related,
    message_sending,
    message_settled,
    relevant_background,
    spawned,
    waited,
)


def agent(id: str, parent: str = "", **more: object) -> Task:
    return Task(kind="agent", id=id, parent=parent, **more)  # type: ignore[arg-type]


LIVE = (
    agent("a"),
    Task(kind="shell", id="s"),
    Task(kind="monitor", id="m"),
    Task(kind="workflow", id="w"),
    Task(kind="wakeup", id="u", state="scheduled"),
)


@pytest.mark.case("G104")
def test_what_ran_before_the_chain_does_not_hold_it_back() -> None:
    """Tasks of every kind that were there when the chain began are none of its business."""
    assert has_relevant_background(Lineage(), LIVE)
    assert relevant_background(begun(LIVE), LIVE) == ()


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(agent("a"), marks=pytest.mark.case("G105"), id="running agent"),
        pytest.param(agent("a", state="paused"), marks=pytest.mark.case("G106"), id="paused agent"),
        pytest.param(Task(kind="shell", id="s"), marks=pytest.mark.case("G107"), id="shell"),
        pytest.param(Task(kind="monitor", id="m"), marks=pytest.mark.case("G108"), id="monitor"),
        pytest.param(Task(kind="wakeup", id="u", state="scheduled"), marks=pytest.mark.case("G109"), id="wakeup"),
        pytest.param(agent("a", state="cancelled"), id="cancelled agent that has not told so yet"),
        pytest.param(Task(kind="workflow", id="w", state="paused"), id="paused workflow"),
    ],
)
def test_live_work_of_the_chain_holds_it_back(task: Task) -> None:
    """A new task that can still bring something defers the guard, among any number of old ones."""
    chain = begun(LIVE)
    new = task.replace(id=f"new-{task.id}")
    assert relevant_background(chain, (*LIVE, new)) == (new,)
    assert has_relevant_background(chain, (*LIVE, new))


@pytest.mark.parametrize(
    "task",
    [
        agent("a", state="finished"),
        agent("a", foreground=True),
        agent("a", state="cancelled", notified=True),
        Task(kind="shell", id="s", state="finished"),
        Task(kind="monitor", id="m", state="paused"),
        Task(kind="workflow", id="w", state="cancelled"),
        Task(kind="wakeup", id="u", state="cancelled"),
        Task(kind="cron", id="c", state="scheduled"),
    ],
    ids=lambda task: f"{task.kind} {task.state}",
)
def test_work_that_brings_nothing_more_holds_nothing_back(task: Task) -> None:
    """Over, waited for in the foreground, already told, or an ordinary schedule: the guard does not wait."""
    assert not has_relevant_background(Lineage(), (task,))


@pytest.mark.case("BR-055")
def test_a_chain_waits_for_all_sub_agents_it_started() -> None:
    """Several agents run at once: as long as one of them does, the stop is one that waits."""
    chain = begun((agent("old"),))
    first, second = agent("first"), agent("second", "first")
    assert relevant_background(chain, (agent("old"), first, second)) == (first, second)
    one_left = (first.replace(state="finished"), second)
    assert has_relevant_background(chain, one_left)
    assert not has_relevant_background(chain, tuple(task.replace(state="finished") for task in one_left))


@pytest.mark.case("G37")
def test_what_an_unwinding_turn_still_starts_is_old_for_the_next_chain() -> None:
    """The snapshot is taken when the new prompt really starts, so late children of its predecessor are in it."""
    admitted = begun((agent("before"),))
    late = (agent("before"), agent("late", "before"), Task(kind="shell", id="late"))
    assert has_relevant_background(admitted, late)
    assert not has_relevant_background(begun(late), late)


def test_a_child_is_of_its_parents_chain_however_deep() -> None:
    """Agents of agents go by the first ancestor that decides; ten thousand generations are no trouble."""
    deep = tuple(agent(f"n{i}", f"n{i + 1}" if i < 9_999 else "") for i in range(10_000))
    assert is_related(Lineage(), deep, "agent", "n0")
    assert not is_related(begun((agent("n9999"),)), deep, "agent", "n0")
    assert is_related(begun(deep[9_000:]).replace(related=frozenset({"n9000"})), deep, "agent", "n0")
    assert len(relevant_background(Lineage(), deep)) == 10_000


@pytest.mark.parametrize(
    "world",
    [
        pytest.param((), id="unknown"),
        pytest.param((agent("a", "gone"),), id="missing parent"),
        pytest.param((agent("a", "a"),), id="its own parent"),
        pytest.param((agent("a", "b"), agent("b", "c"), agent("c", "b")), id="circle above"),
    ],
)
def test_doubt_about_an_agents_descent_is_never_related(world: tuple[Task, ...]) -> None:
    """An unknown agent, a parent nobody knows and a circle of parents belong to no chain, asked in any order."""
    assert not is_related(Lineage(), world, "agent", "a")
    assert relevant_background(Lineage(), world) == ()
    assert relevant_background(Lineage(), tuple(reversed(world))) == ()


@pytest.mark.case("G121")
def test_a_monitor_goes_by_its_owner_both_ways() -> None:
    """An owner's relation decides against the snapshot in both directions; without an owner the snapshot does."""
    old, mine = agent("old"), agent("mine")
    watched = Task(kind="monitor", id="m", parent="mine")
    chain = begun((old, watched))
    assert is_related(chain, (old, mine), "monitor", "m", "mine")
    assert not is_related(chain, (old, mine), "monitor", "new", "old")
    assert not is_related(chain, (old, mine), "monitor", "new", "nobody")
    assert not is_related(chain, (), "monitor", "m")
    assert is_related(chain, (), "monitor", "new")


@pytest.mark.case("G122")
def test_a_message_makes_an_old_agent_related_if_it_arrives_and_leaves_no_trace_if_not() -> None:
    """From before the send until its failure the target counts as this chain's; a success keeps it so."""
    world = (agent("old"),)
    sending = message_sending(begun(world), "send-1", "old")
    assert has_relevant_background(sending, world), "a quick answer must find the mark"
    assert message_settled(sending, "send-1", succeeded=False) == begun(world)
    done = message_settled(sending, "send-1", succeeded=True)
    assert (done.related, done.marks) == (frozenset({"old"}), ())
    assert has_relevant_background(done, world)


@pytest.mark.case("G123")
@pytest.mark.parametrize("order", [("fails", "works"), ("works", "fails")])
def test_a_send_that_fails_takes_away_only_its_own_mark(order: tuple[str, str]) -> None:
    """Two messages to one agent overlap, one fails: in both orders the other one's mark and success stand."""
    world = (agent("old"),)
    both = message_sending(message_sending(begun(world), "fails", "old"), "works", "old")
    first = message_settled(both, order[0], succeeded=order[0] == "works")
    assert has_relevant_background(first, world)
    last = message_settled(first, order[1], succeeded=order[1] == "works")
    assert (last.related, last.marks) == (frozenset({"old"}), ())


def test_two_failures_leave_nothing() -> None:
    """The mark is gone with the last of several sends that fail, not with the first."""
    world = (agent("old"),)
    chain = begun(world)
    for send in "abc":
        chain = message_sending(chain, send, "old")
    for send in "ab":
        chain = message_settled(chain, send, succeeded=False)
        assert has_relevant_background(chain, world)
    assert message_settled(chain, "c", succeeded=False) == begun(world)


@pytest.mark.parametrize("target", ["", None, 7, ["old"]])
def test_a_message_to_no_agent_marks_nothing(target: object) -> None:
    """Only a text that names something can be a target."""
    assert message_sending(Lineage(), "s", target) == Lineage()


def test_a_message_to_a_team_changes_nothing() -> None:
    """Speaking to all is not asking one: the lineage stays, whatever the send becomes."""
    chain = begun((agent("old"),))
    assert message_settled(message_sending(chain, "s", "old", team=True), "s", succeeded=True) == chain


def test_a_failed_message_to_a_related_agent_keeps_it_related() -> None:
    """What an earlier success made related no later failure undoes."""
    chain = Lineage(related=frozenset({"old"}))
    assert message_settled(message_sending(chain, "s", "old"), "s", succeeded=False) == chain


def test_a_send_of_an_earlier_chain_does_not_reach_into_this_one() -> None:
    """Snapshot, related agents and marks are reset as one; a success that comes late finds no mark."""
    world = (agent("old"), agent("spoken to"))
    chain = spawned(message_sending(begun(()), "late", "old"), "spoken to")
    fresh = begun(world)
    assert fresh.marks == ()
    assert fresh.related == frozenset()
    assert relevant_background(chain, world) == world
    assert message_settled(fresh, "late", succeeded=True) == fresh


def test_sub_sessions_of_the_chain_are_related() -> None:
    """A session that the chain made is its own, even where the snapshot names it."""
    assert is_related(spawned(begun((agent("sub"),)), "sub"), (), "agent", "sub")


@pytest.mark.parametrize(
    "illegal",
    [
        lambda chain: message_sending(chain, "under way", "b"),
        lambda chain: message_sending(chain, "", "b"),
        lambda chain: spawned(chain, ""),
        lambda chain: is_related(chain, (), "parrot", "p"),
    ],
    ids=["the same send twice", "a send without id", "a sub-session without id", "an unknown kind"],
)
def test_what_cannot_be_is_an_error(illegal: object) -> None:
    """Each is refused by name; the value that was given stays what it was."""
    chain = message_sending(Lineage(), "under way", "a")
    with pytest.raises(IllegalEventError):
        illegal(chain)  # type: ignore[operator]
    assert chain.marks == (("under way", "a"),)


SENDS = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["x", "y", "z"]), st.sampled_from(range(4))))


@given(SENDS)
def test_marks_follow_the_sends_under_way_in_any_order(acts: list[tuple[str, str, int]]) -> None:
    """Beginnings, ends that work or fail (twice, late) and new chains: the marks are the sends under way, no more."""
    chain, under_way, related = Lineage(), dict[str, str](), set[str]()
    for send, target, act in acts:
        if act == 0 and send not in under_way:
            chain = message_sending(chain, send, target)
            if target not in related:
                under_way[send] = target
        elif act in (1, 2):
            chain = message_settled(chain, send, succeeded=act == 1)
            if send in under_way and act == 1:
                related.add(under_way[send])
            under_way.pop(send, None)
        elif act == 3:
            chain, under_way, related = begun(()), {}, set()
        assert dict(chain.marks) == under_way
        assert len(chain.marks) == len(under_way)
        assert chain.related == related
    for send in tuple(under_way):
        chain = message_settled(chain, send, succeeded=False)
    assert chain.marks == ()


TASKS = st.lists(
    st.builds(
        Task,
        kind=st.sampled_from(list(lineage.RELATION)),
        id=st.sampled_from("abcde"),
        parent=st.sampled_from(["", *"abcdef"]),
        state=st.sampled_from(["running", "paused", "cancelled", "finished", "scheduled"]),
        notified=st.booleans(),
    ),
    max_size=12,
)


@given(TASKS, TASKS, st.sets(st.sampled_from("abcde")))
def test_one_look_at_all_is_as_looks_at_each(old: list[Task], now: list[Task], sent_to: set[str]) -> None:
    """What an answer remembers for the next ones never changes them; nothing of the snapshot alone is related."""
    chain = begun(old).replace(related=frozenset(sent_to))
    singly = tuple(task for task in lineage.live(now) if is_related(chain, now, task.kind, task.id, task.parent))
    assert relevant_background(chain, now) == singly
    assert has_relevant_background(chain, now) == bool(singly)
    orphans = [task.replace(parent="") for task in now]
    assert not has_relevant_background(begun(orphans), orphans)


@pytest.mark.case("BR-058")
def test_a_task_that_never_ends_holds_a_chain_back_for_half_an_hour_only() -> None:
    """At the limit the wait is told once, with the task's name, and stays over until the tasks are."""
    wait, told = waited(Deferral(), ("tail",), 1_000)
    assert told == ()
    assert not wait.too_long
    wait, told = waited(wait, ("tail", "grep"), 1_000 + DEFERRAL_LIMIT - 1)
    assert told == ()
    assert not wait.too_long
    wait, told = waited(wait, ("tail",), 1_000 + DEFERRAL_LIMIT)
    assert told == (DeferredTooLong(since=1_000, now=1_000 + DEFERRAL_LIMIT, tasks=("tail",)),)
    wait, told = waited(wait, ("tail",), 1_000 + 2 * DEFERRAL_LIMIT)
    assert told == ()
    assert wait.too_long
    assert waited(wait, (), 10_000) == (Deferral(), ())


def test_a_clock_set_back_does_not_make_the_wait_endless() -> None:
    """From the earlier time on the limit counts anew; no jump back adds more than one limit."""
    wait, _ = waited(Deferral(), ("t",), 100_000)
    wait, told = waited(wait, ("t",), 10_000)
    assert (wait.since, told) == (10_000, ())
    assert waited(wait, ("t",), 10_000 + 30 * MINUTE)[0].too_long
