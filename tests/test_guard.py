"""The todo guard as a value: what arms it, what a stop gets, what counts, what locks it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwarden.core import guard as guards
from stopwarden.core.bounds import TODO_ID_MAX, TODOS_MAX
from stopwarden.core.errors import IllegalEventError, SettingError
from stopwarden.core.guard import SUSPENSIONS, SWITCHES, Budget, Guard
from stopwarden.core.todo_envelope import Todo, TodoList, ToolResult, read_envelope, trusted_todos


def todos(*statuses: str) -> TodoList:
    """A trusted list with items of these statuses."""
    return TodoList(items=tuple(Todo(id=str(n), content="", status=status) for n, status in enumerate(statuses)))


TWO_LEFT = todos("pending", "in_progress", "completed")
FINISHED = todos("completed")


def armed(attempts: int = 0, **fields: object) -> Guard:
    """A guard with two items left and some attempts used."""
    return Guard(armed=True, unfinished=2, attempts=attempts, **fields)  # type: ignore[arg-type]


def done(attempts: int) -> Guard:
    """A guard whose list was finished inside attempt `attempts`."""
    return guards.observe(armed(attempts), FINISHED, allow_arm=True)[0]


def committed(guard: Guard, attempt: int) -> Guard:
    after, counted = guards.commit(guard, attempt)
    assert counted
    return after


def envelope(*items: object, **fields: object) -> dict[str, object]:
    return {"type": "todo_list", "todos": list(items), **fields}


def item(**fields: object) -> dict[str, object]:
    return {"id": "1", "content": "write", "status": "pending", **fields}


# ---- what may arm


@pytest.mark.case("G1")
@pytest.mark.parametrize(
    "display",
    [
        pytest.param([item()], id="a-bare-list"),
        pytest.param('{"type":"todo_list","todos":[]}', id="a-string-of-json"),
        pytest.param(envelope({"content": "write", "status": "pending"}), id="an-item-without-id"),
        pytest.param(envelope(item(), item(id=2)), id="one-bad-item-among-good"),
        pytest.param(envelope(item(status="blocked")), id="an-unknown-status"),
        pytest.param(envelope(item(status=["pending"])), id="a-status-that-cannot-be-hashed"),
        pytest.param(envelope(item(content=None)), id="no-content"),
        pytest.param(envelope(item(), item()), id="the-same-id-twice"),
        pytest.param(envelope(item(id="")), id="an-empty-id"),
        pytest.param(envelope(item(id="\ud83d")), id="an-id-that-cannot-be-written"),
        pytest.param(envelope(item(id="x" * (TODO_ID_MAX + 1))), id="a-huge-id"),
        pytest.param(envelope(envelope(item())), id="an-envelope-within"),
        pytest.param(envelope([item()]), id="a-list-for-an-item"),
        pytest.param({"type": "todo_list"}, id="no-todos"),
        pytest.param({"type": "todo_list", "todos": {"0": item()}}, id="a-mapping-of-todos"),
        pytest.param({"type": "todos", "todos": [item()]}, id="another-type"),
        pytest.param({"type": "todo_list", "todos": [item()] * (TODOS_MAX + 1)}, id="a-huge-list"),
        pytest.param(None, id="nothing"),
    ],
)
def test_only_the_whole_structured_envelope_is_a_list(display: object) -> None:
    """Whatever is not exactly the structured list, as a whole, is no list at all, and arms nothing."""
    assert read_envelope(display) is None
    assert guards.observe(Guard(), read_envelope(display), allow_arm=True) == (Guard(), False)


def test_a_good_envelope_is_read_with_what_a_newer_agent_adds_passed_over() -> None:
    read = read_envelope(envelope(item(note=1), item(id="2", status="completed"), version=3))
    assert read == TodoList(
        items=(Todo(id="1", content="write", status="pending"), Todo(id="2", content="write", status="completed"))
    )
    assert read.unfinished == 1


def test_a_clipped_letter_in_a_text_does_not_cost_the_list() -> None:
    """Half of a surrogate pair in the text is replaced, whole pairs and other letters stay."""
    read = read_envelope(envelope(item(content="caf\u00e9 \U0001f600 \ud83d")))
    assert read is not None
    assert read.items[0].content == "caf\u00e9 \U0001f600 \ufffd"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=()), max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["type", "todos", "id", "content", "status"]), inner, max_size=5)
        ),
        max_leaves=12,
    )
)
def test_no_value_whatever_breaks_the_reader(display: object) -> None:
    """Any nesting of any values is answered with a list or with nothing; never with an error."""
    for value in (display, {"type": "todo_list", "todos": display}, {"type": "todo_list", "todos": [display]}):
        assert read_envelope(value) is None or isinstance(read_envelope(value), TodoList)


@pytest.mark.case("G24")
@pytest.mark.parametrize("display", ["Todos have been modified", [], {"todos": []}])
def test_a_result_without_structure_does_not_arm(display: object) -> None:
    """The own tool's answer counts only when it is the structured list, not its text for the model."""
    assert trusted_todos(ToolResult(tool="todo_write", display=display)) is None
    assert trusted_todos(ToolResult(tool="todo_write", display=envelope(item()))) is not None


@pytest.mark.case("G25")
@pytest.mark.parametrize(
    "other",
    [
        {"built_in": False},
        {"kind": "other"},
        {"tool": "mcp__x__todo_write"},
        {"succeeded": False},
        {"by_subagent": True},
        {"replayed": True},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_list_of_anybody_else_does_not_arm(other: dict[str, object]) -> None:
    """A perfect list from another tool of that name, a failed call, a sub-agent or old history is not trusted."""
    own: dict[str, object] = {"tool": "todo_write", "display": envelope(item())}
    assert trusted_todos(ToolResult(**{**own, **other})) is None  # type: ignore[arg-type]


# ---- arming and deciding


@pytest.mark.case("G2")
@pytest.mark.parametrize("over", [FINISHED, todos()], ids=["completed", "empty"])
def test_a_finished_or_empty_list_disarms(over: TodoList) -> None:
    """As soon as nothing is left on the list, a stop is nobody's business."""
    before, counts = guards.observe(Guard(), TWO_LEFT, allow_arm=True)
    assert (counts, before.armed, guards.decide(before, False).kind) == (True, True, "continue")
    after, counts = guards.observe(before, over, allow_arm=True)
    assert (counts, after.armed, guards.decide(after, False).kind) == (True, False, "inactive")


@pytest.mark.case("G3")
def test_two_attempts_are_decided_and_counted_and_the_third_is_refused() -> None:
    """Deciding any number of times changes nothing; two counted attempts use the stage up."""
    guard = armed()
    for attempt in (1, 2):
        first = guards.decide(guard, False)
        assert first == guards.decide(guard, False)
        assert (first.kind, first.attempt, first.cap, first.unfinished) == ("continue", attempt, 2, 2)
        guard = committed(guard, attempt)
    over = guards.decide(guard, False)
    assert (over.kind, over.why, over.attempt, over.cap, over.unfinished) == ("exhausted", "attempts", 2, 2, 2)
    assert guards.commit(guard, 3) == (guard, False)


@pytest.mark.parametrize("attempt", [-1, 0, 2, 3])
def test_only_the_next_attempt_can_be_counted(attempt: int) -> None:
    assert guards.commit(armed(), attempt) == (armed(), False)


@pytest.mark.case("G4")
def test_an_item_in_progress_is_unfinished() -> None:
    """What is being worked on is as unfinished as what was not begun."""
    guard, _ = guards.observe(Guard(), todos("in_progress"), allow_arm=True)
    assert (guard.unfinished, guards.decide(guard, False).kind) == (1, "continue")


@pytest.mark.case("G5")
def test_exhaustion_is_told_once_and_locks() -> None:
    """The first report locks the chain, a second is refused, and no later list opens it again."""
    guard, told = guards.mark_exhaustion_reported(armed(2))
    assert (told, guard.suspended_by) == (True, "exhausted")
    assert guards.mark_exhaustion_reported(guard) == (guard, False)
    later, _ = guards.observe(guard, TWO_LEFT, allow_arm=True)
    assert guards.decide(later, False).kind == "inactive"
    assert not guards.trusted_unfinished(later)


@pytest.mark.case("G6")
def test_the_tool_results_of_a_finished_list_may_use_the_attempt_that_is_left() -> None:
    """After attempt 1 finished the list its results may go back once; not while waiting, not after attempt 2."""
    closing = guards.decide_tool_closure(done(1), 1, False)
    assert (closing.kind, closing.attempt, closing.unfinished, closing.tool_closure) == ("continue", 2, 0, True)
    assert guards.commit(done(1), 2)[1]
    assert guards.decide_tool_closure(done(1), 1, True).kind == "deferred"
    awaiting, _ = guards.await_queued(done(1))
    assert guards.decide_tool_closure(awaiting, 1, False).kind == "inactive"
    assert guards.decide_tool_closure(done(2), 2, False).kind == "inactive"
    assert guards.decide_tool_closure(done(1), 2, False).kind == "inactive"
    assert guards.decide_tool_closure(Guard(), 0, False).kind == "inactive"


def test_a_closure_with_items_left_is_an_ordinary_decision() -> None:
    assert guards.decide_tool_closure(armed(1), 1, False) == guards.decide(armed(1), False)


@pytest.mark.case("G7")
def test_after_a_suspension_nothing_closes_waits_or_counts() -> None:
    """A chain that is locked sends no tool results back, cannot yield, and counts no attempt."""
    held = guards.suspend(done(1), "aborted")
    assert guards.decide_tool_closure(held, 1, False).kind == "inactive"
    assert guards.await_queued(held) == (held, False)
    assert guards.commit(held, 2) == (held, False)


@pytest.mark.case("G8")
def test_an_ordinary_start_forgets_all_and_a_retry_keeps_the_attempts() -> None:
    """What a person asks anew begins with both attempts; what is retried goes on where it failed."""
    paused = guards.pause_retry(armed(1))
    assert guards.start_ordinary(paused) == Guard()
    assert guards.start_ordinary(guards.suspend(armed(2), "cancelled")) == Guard()
    assert guards.resume_trusted(paused) == armed(1)


@pytest.mark.case("G9")
def test_a_failure_of_the_provider_pauses_until_a_retry() -> None:
    """While paused a stop gets nothing; after the retry the second attempt is next."""
    paused = guards.pause_retry(armed(1))
    assert guards.decide(paused, False).kind == "inactive"
    assert guards.decide(paused, False).why == "paused"
    assert guards.commit(paused, 2) == (paused, False)
    assert guards.decide(guards.resume_trusted(paused), False).attempt == 2
    assert guards.pause_retry(Guard()) == Guard()


@pytest.mark.case("G10")
def test_a_list_written_between_the_lock_and_the_start_neither_arms_nor_survives() -> None:
    """Between a prompt's admission and its start the old turn's late list finds the guard locked."""
    late, counts = guards.observe(guards.block_until_ordinary(armed(1), "superseded"), TWO_LEFT, allow_arm=True)
    assert (counts, late.armed, guards.decide(late, False).kind) == (True, False, "inactive")
    assert guards.start_ordinary(late) == Guard()


@pytest.mark.case("G11")
def test_new_words_give_a_new_stage_of_an_armed_chain() -> None:
    """What the person says in the middle resets the attempts and lifts a pause; the list stays."""
    after = guards.accept_mid_turn(guards.pause_retry(armed(2)))
    assert after == armed(0)
    assert guards.accept_mid_turn(Guard()) == Guard()


@pytest.mark.case("G12")
def test_new_words_after_the_list_was_finished_give_a_later_list_both_attempts() -> None:
    """Attempts used for a finished list are not held against the next one."""
    after = guards.accept_mid_turn(done(2))
    again, _ = guards.observe(after, TWO_LEFT, allow_arm=True)
    assert guards.decide(again, False).attempt == 1


@pytest.mark.case("G13")
@pytest.mark.parametrize("reason", SUSPENSIONS)
def test_new_words_lift_no_suspension(reason: str) -> None:
    """Whatever locked the chain, words in the middle of a turn do not unlock it."""
    held = guards.suspend(armed(1), reason)
    assert guards.accept_mid_turn(held) == held
    assert guards.resume_trusted(held).suspended_by == reason


@pytest.mark.case("G14")
def test_a_lock_on_an_idle_guard_holds_until_an_ordinary_prompt() -> None:
    """A guard that had nothing when it was locked does not arm by the next list either."""
    held, _ = guards.observe(guards.suspend(Guard(), "cancelled"), TWO_LEFT, allow_arm=True)
    assert guards.decide(held, False).kind == "inactive"
    fresh, _ = guards.observe(guards.start_ordinary(held), TWO_LEFT, allow_arm=True)
    assert guards.decide(fresh, False).kind == "continue"


@pytest.mark.case("G15")
def test_background_work_defers_and_a_locked_chain_holds_nobody_back() -> None:
    """With related work running a stop is deferred, at no cost; a lock lets other automatic turns run."""
    deferred = guards.decide(armed(2), True)
    assert (deferred.kind, deferred.attempt) == ("deferred", 2)
    assert guards.trusted_unfinished(armed())
    assert not guards.trusted_unfinished(guards.suspend(armed(), "exhausted"))


@pytest.mark.case("G16")
def test_a_paused_chain_still_holds_unrelated_turns_back() -> None:
    """A pause is no end: nobody else's turn may come between the failure and the retry."""
    paused = guards.pause_retry(armed())
    assert guards.trusted_unfinished(paused)
    assert not guards.needs_inspection(paused)


@pytest.mark.case("G17")
def test_a_list_written_while_yielding_does_not_resume() -> None:
    """A chain that has yielded to a queued prompt stays so, whatever it writes down."""
    awaiting, yields = guards.await_queued(armed())
    after, _ = guards.observe(awaiting, todos("pending"), allow_arm=True)
    assert (yields, guards.state_name(after), guards.decide(after, False).kind) == (True, "AWAITING", "inactive")
    assert guards.commit(after, 1) == (after, False)


@pytest.mark.case("G18")
def test_clearing_a_chain_that_yielded_ends_the_blocking() -> None:
    """With trust gone nothing is held back, and there is nothing left to yield with."""
    cleared = guards.clear_trust(guards.await_queued(armed())[0])
    assert not guards.trusted_unfinished(cleared)
    assert guards.await_queued(cleared) == (cleared, False)


@pytest.mark.case("G19")
def test_a_list_written_where_it_may_not_arm_locks_the_chain_for_good() -> None:
    """A list written in plan mode locks the chain, and writing it again after the mode has changed is too late."""
    held, counts = guards.observe(armed(1), TWO_LEFT, allow_arm=False)
    assert (counts, held) == (True, Guard(suspended_by="plan"))
    later, _ = guards.observe(held, TWO_LEFT, allow_arm=True)
    assert guards.decide(later, False).kind == "inactive"


@pytest.mark.case("G20")
def test_a_guard_that_is_off_does_nothing() -> None:
    """Off: lists are not noted, stops get nothing, nothing waits, counts or is held back."""
    off = Guard(switch="off")
    assert guards.observe(off, TWO_LEFT, allow_arm=True) == (off, False)
    assert guards.observe(off, TWO_LEFT, allow_arm=False) == (off, False)
    assert guards.await_queued(off) == (off, False)
    assert guards.commit(off, 1) == (off, False)
    assert guards.state_name(off) == "OFF"
    turned_off = guards.set_switch(armed(1), "off")
    assert guards.decide(turned_off, False).kind == "inactive"
    assert guards.decide_tool_closure(guards.set_switch(done(1), "off"), 1, False).kind == "inactive"
    assert not guards.trusted_unfinished(turned_off)
    assert not guards.has_committed(turned_off)
    assert guards.accept_mid_turn(turned_off) == turned_off


# ---- switch and budget


def test_observing_judges_and_never_asks_for_a_continuation() -> None:
    """An observing guard says what it would have said, and holds nobody back."""
    watching = guards.set_switch(armed(), "observe")
    said = guards.decide(watching, False)
    assert (said.kind, said.why, said.attempt) == ("observed", "continue", 1)
    assert guards.decide(watching, True).why == "deferred"
    assert not guards.trusted_unfinished(watching)
    assert guards.decide_tool_closure(guards.set_switch(done(1), "observe"), 1, False).kind == "inactive"


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("budget", [Budget(), Budget(attempts=1), Budget(tokens=5, wall_time=9)])
def test_no_setting_lifts_a_lock_or_gives_an_attempt_back(switch: str, budget: Budget) -> None:
    """Turning the guard off and on, or giving it more, neither unlocks the chain nor forgets what was used."""
    held = guards.suspend(armed(2), "exhausted")
    after = guards.set_switch(guards.set_budget(guards.set_switch(held, switch), budget), "on")
    assert (after.suspended_by, after.attempts) == ("exhausted", 2)


def test_a_cancel_while_the_guard_is_off_holds_when_it_is_turned_on() -> None:
    cancelled = guards.suspend(Guard(switch="off"), "cancelled")
    on, _ = guards.observe(guards.set_switch(cancelled, "on"), TWO_LEFT, allow_arm=True)
    assert guards.decide(on, False) == guards.Decision(kind="inactive", why="cancelled")


def test_a_list_that_changed_while_the_guard_was_off_is_not_trusted_when_it_is_on() -> None:
    """What was known before is old; a guard turned off and on in between, with no list written, goes on."""
    assert guards.set_switch(guards.set_switch(armed(1), "off"), "on") == armed(1)
    off, counts = guards.observe(guards.set_switch(armed(1), "off"), FINISHED, allow_arm=True)
    assert not counts
    assert guards.decide(guards.set_switch(off, "on"), False).kind == "inactive"


def test_a_stream_that_was_sent_counts_although_the_guard_was_turned_off_meanwhile() -> None:
    """Else a switch turned twice in time would give streams without end."""
    assert committed(guards.set_switch(armed(), "off"), 1).attempts == 1


def test_a_smaller_budget_counts_what_was_used() -> None:
    one = guards.set_budget(armed(1), Budget(attempts=1))
    assert (guards.decide(one, False).kind, guards.decide(one, False).cap) == ("exhausted", 1)
    assert guards.commit(one, 2) == (one, False)
    assert guards.decide_tool_closure(guards.set_budget(done(1), Budget(attempts=1)), 1, False).kind == "inactive"


def test_tokens_and_time_are_limits_of_the_chain() -> None:
    """New words give a new stage, but no new tokens and no new time; an ordinary prompt gives both."""
    limited = guards.set_budget(armed(), Budget(tokens=100, wall_time=60))
    used = guards.accept_mid_turn(guards.spend(guards.commit(limited, 1, at=1_000)[0], 100))
    assert guards.decide(used, False, at=1_000).why == "tokens"
    assert guards.spend(used, -50) == used
    timed = guards.accept_mid_turn(guards.commit(limited, 1, at=1_000)[0])
    assert guards.decide(timed, False, at=1_059).kind == "continue"
    assert guards.decide(timed, False, at=1_060).why == "wall_time"
    assert guards.decide(timed, False, at=0).kind == "continue"  # a clock that went back
    assert guards.commit(timed, 1, at=1_050)[0].first_attempt_at == 1_000
    assert guards.start_ordinary(used) == Guard(budget=limited.budget)


@pytest.mark.parametrize("budget", [Budget(attempts=0), Budget(attempts=3), Budget(tokens=-1), Budget(wall_time=-1)])
def test_a_budget_out_of_range_is_refused(budget: Budget) -> None:
    with pytest.raises(SettingError):
        guards.set_budget(Guard(), budget)


def test_an_unknown_switch_or_reason_is_refused() -> None:
    with pytest.raises(SettingError):
        guards.set_switch(Guard(), "maybe")
    with pytest.raises(IllegalEventError):
        guards.suspend(Guard(), "mood")
    with pytest.raises(IllegalEventError):
        guards.block_until_ordinary(Guard(), "mood")


# ---- reasons and states


def test_every_state_has_its_name() -> None:
    states = {
        "OFF": Guard(switch="off"),
        "IDLE": Guard(),
        "ARMED": armed(1),
        "DONE": done(1),
        "PAUSED": guards.pause_retry(armed()),
        "AWAITING": guards.await_queued(done(1))[0],
        "SUSPENDED": guards.suspend(armed(), "exhausted"),
    }
    assert {name: guards.state_name(guard) for name, guard in states.items()} == {name: name for name in states}


@pytest.mark.parametrize(("reason", "row"), SUSPENSIONS.items())
def test_a_suspension_keeps_or_forgets_the_numbers_by_its_row(reason: str, row: guards.Suspension) -> None:
    held = guards.suspend(guards.await_queued(armed(2))[0], reason)
    assert (held.attempts, held.unfinished, held.armed) == ((0, 0, False) if row.forgets else (2, 2, True))
    assert (held.suspended_by, held.awaiting) == (reason, False)
    assert guards.decide(held, False) == guards.Decision(kind="inactive", why=reason)


def test_the_first_reason_stands_but_a_cancel_takes_over_and_an_admission_gives_way() -> None:
    """Why a chain is held back must not be hidden by what comes after; a person's cancel outranks all."""
    exhausted = guards.suspend(armed(2), "exhausted")
    assert guards.suspend(exhausted, "aborted").suspended_by == "exhausted"
    cancelled = guards.suspend(exhausted, "cancelled")
    assert guards.block_until_ordinary(cancelled, "superseded").suspended_by == "cancelled"
    admitted = guards.block_until_ordinary(armed(), "superseded")
    assert guards.suspend(admitted, "relocated").suspended_by == "relocated"


ANY_GUARD = st.builds(
    Guard,
    switch=st.sampled_from(SWITCHES),
    budget=st.builds(Budget, attempts=st.integers(1, 2)),
    armed=st.booleans(),
    unfinished=st.integers(0, 3),
    attempts=st.integers(0, 2),
    suspended_by=st.sampled_from([None, *SUSPENSIONS]),
    retry_paused=st.booleans(),
    awaiting=st.booleans(),
    exhaustion_reported=st.booleans(),
)


@given(ANY_GUARD, st.booleans(), st.integers(-1, 4))
def test_in_every_state_the_answers_agree(guard: Guard, background: bool, attempt: int) -> None:
    """What is decided can be counted, once; a locked chain is never continued; nothing passes two."""
    decision = guards.decide(guard, background)
    closure = guards.decide_tool_closure(guard, guard.attempts, background)
    for one in (decision, closure):
        if one.kind == "continue":
            assert not guard.suspended
            assert guard.switch == "on"
            assert 1 <= one.attempt <= guard.budget.attempts <= 2
            assert guards.commit(guard, one.attempt)[1]
    after, counted = guards.commit(guard, attempt)
    assert after.attempts == (attempt if counted else guard.attempts) <= 2
    assert not (counted and guard.suspended)
    assert guards.trusted_unfinished(guard) or not guards.needs_inspection(guard)
    assert (decision.kind in ("continue", "deferred", "exhausted")) == guards.needs_inspection(guard)
    assert guards.decide(guard, background) == decision


# ---- what the small steps leave behind


def test_a_word_in_the_middle_begins_a_stage_of_which_nothing_is_told_yet() -> None:
    """All attempts are there again, and if they are used up once more that is told once more."""
    fresh = guards.accept_mid_turn(armed(2).replace(exhaustion_reported=True))
    assert (fresh.attempts, fresh.exhaustion_reported) == (0, False)


def test_a_list_written_while_the_switch_is_off_leaves_nothing_unfinished_behind() -> None:
    """What was known before is old: neither armed nor counted."""
    off = guards.observe(armed(1).replace(switch="off"), FINISHED, allow_arm=True)[0]
    assert (off.armed, off.unfinished) == (False, 0)


def test_a_closure_that_is_not_given_says_why() -> None:
    """Suspended: by what; waiting for background work: with the limit it would have been counted against."""
    held = guards.suspend(done(1), "cancelled")
    assert guards.decide_tool_closure(held, 1, False).why == "cancelled"
    waiting = guards.decide_tool_closure(done(1), 1, True)
    assert (waiting.kind, waiting.why, waiting.cap) == ("deferred", "background", 2)


def test_an_id_of_the_greatest_length_is_read() -> None:
    """The bound itself belongs to what is allowed."""
    display = envelope(item(id="x" * TODO_ID_MAX))
    assert read_envelope(display) is not None


def test_a_session_begins_with_the_switch_it_was_given_where_nothing_forces_it_off() -> None:
    """On, off or observing, as set; forced off whatever was set."""
    for switch in ("on", "off", "observe"):
        assert guards.of_session(switch).switch == switch
    assert guards.of_session("on", "bare").switch == "off"


def test_a_closure_that_waits_names_the_limit_that_was_set() -> None:
    """One attempt, not the two of the default."""
    one = done(1).replace(budget=Budget(attempts=1))
    assert guards.decide_tool_closure(one, 1, True).cap == 1
