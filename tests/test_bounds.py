"""Every row of blocks has an end that is recorded; nothing but progress or an allowed stop begins a new row."""

from __future__ import annotations

import pytest

from stopwarden.core.bounds import Policy, policy_from
from stopwarden.core.errors import SettingError
from tests.conftest import at
from tests.support.stops import AWAY, SOON, Night, items, one_shot

RECORD = "stopped_with_work_owed"


@pytest.mark.case("A81", "A86", "BR-016")
def test_the_eighth_block_is_still_a_block_and_recorded_the_ninth_stop_is_allowed() -> None:
    """Eight text-only blocks in a row: the eighth records the stop once, the next is allowed with no second line."""
    night = Night(*items("A"))
    verdicts = [night.stop() for _ in range(8)]
    assert all(verdict.block for verdict in verdicts)
    assert [verdict.counters.blocks_without_tools for verdict in verdicts] == list(range(1, 9))
    assert night.lines.count(RECORD) == 1
    ninth = night.stop()
    assert (ninth.block, ninth.kind, ninth.rule) == (False, "bound_reached", "away.bound_reached")
    assert night.lines.count(RECORD) == 1
    assert night.state.bound == "blocks_without_tools"


@pytest.mark.case("A82", "A83", "BR-004")
@pytest.mark.parametrize(("cap", "recorded_at"), [(3, 3), (1, 1), (None, 8), (0, 40)])
def test_the_hosts_cap_is_the_bound_and_zero_leaves_the_larger_one(cap: int | None, recorded_at: int) -> None:
    """Cap 3 records at the third block; none said is 8; switched off, only the larger bound of 40 serves."""
    night = Night(*items("A"), policy=Policy(blocks_an_hour=1000))
    for block in range(1, recorded_at + 1):
        assert night.stop(host_cap=cap).block
        assert night.lines.count(RECORD) == (block == recorded_at)
    assert night.stop(host_cap=cap).kind == "bound_reached"


@pytest.mark.case("A85")
def test_an_allowed_stop_begins_the_row_anew() -> None:
    """Blocked seven times, then waiting once: the next seven blocks reach no bound."""
    night = Night(*items("A"))
    for _ in range(7):
        night.stop()
    assert night.stop(SOON).kind == "waiting"
    for _ in range(7):
        assert night.stop().block
    assert RECORD not in night.lines


@pytest.mark.case("A87")
def test_any_later_event_marks_a_stopped_session_as_resumed() -> None:
    """The record of a stop is provisional: a tool or a prompt after it says resumed, once."""
    for later in (Night.tool, Night.prompt):
        night = Night(*items("A"))
        for _ in range(9):
            night.stop()
        later(night)
        later(night)
        assert night.lines.count("resumed") == 1
        assert night.state.bound == ""


@pytest.mark.case("A88")
def test_a_bound_with_nothing_owed_has_a_word_of_its_own() -> None:
    """Stopped without a next look is not stopped with work owed."""
    night = Night()
    for _ in range(8):
        night.stop()
    assert "stopped_without_next_look" in night.lines
    assert RECORD not in night.lines


@pytest.mark.case("A89")
def test_tool_use_begins_the_hosts_count_anew_but_not_ours() -> None:
    """With a tool between blocks the host's kind of count stays at one; the plain count goes on to its own bound."""
    night = Night(*items("A"), policy=Policy(blocks_an_hour=1000))
    for block in range(1, 41):
        verdict = night.tool().stop()
        assert verdict.block
        assert (verdict.counters.blocks_without_tools, verdict.counters.blocks) == (1, block)
    assert night.lines.count(RECORD) == 1
    assert night.state.bound == "blocks_without_progress"
    assert night.stop().kind == "bound_reached"


def test_thirty_items_finished_in_a_night_are_thirty_blocks_and_no_bound() -> None:
    """Each finished item is progress and buys another push; no row grows."""
    names = [f"i{number}" for number in range(31)]
    night = Night(*items(*names))
    for number in range(30):
        states = dict.fromkeys(names[:number], "done")
        night.owes(*items(*names[number:], **states))
        verdict = night.tool().stop()
        assert verdict.block
        assert verdict.counters.blocks == 1
        night.now += 600
    assert RECORD not in night.lines


@pytest.mark.case("BR-116", "BR-099")
def test_only_first_reached_states_are_progress() -> None:
    """Adding items, going back and forth between states, and an item done before the night are no progress."""
    night = Night(*items("A", "B"))
    night.stop()
    assert night.owes(*items("A", "B", "C")).stop().counters.blocks == 2
    assert night.owes(*items("B", "C", A="doing")).stop().counters.blocks == 1
    assert night.owes(*items("A", "B", "C")).stop().counters.blocks == 2
    assert night.owes(*items("B", "C", A="doing")).stop().counters.blocks == 3
    assert night.owes(*items("B", "C", A="done")).stop().counters.blocks == 1
    assert night.owes(*items("B", "C", A="open")).stop().counters.blocks == 2
    assert night.owes(*items("B", "C", A="done")).stop().counters.blocks == 3
    from stopwarden.core.events import Item

    old = Item(id="O", title="old", state="done", before="done")
    assert night.owes(*items("B", "C", A="done"), old).stop().counters.blocks == 4
    assert (night.lines.count("item_doing"), night.lines.count("item_done")) == (1, 1), "each is told once"


@pytest.mark.case("BR-113", "BR-114")
def test_thirty_blocks_an_hour_are_the_ceiling_whatever_moves() -> None:
    """The thirtieth block within an hour is recorded and the next stop allowed; an hour later blocks come again."""
    names = [f"i{number}" for number in range(40)]
    night = Night(*items(*names))
    for number in range(30):
        night.owes(*items(*names[number:], **dict.fromkeys(names[:number], "done")))
        assert night.stop().block
    assert night.state.bound == "blocks_an_hour"
    assert night.stop().kind == "bound_reached"
    night.now += 3600
    assert night.prompt("wake").stop().block


def test_a_whole_period_has_a_ceiling_too() -> None:
    """The ceiling of a period counts every block of it, and stays reached."""
    night = Night(*items("A"), policy=Policy(blocks_a_period=5))
    for _ in range(5):
        assert night.tool().stop().block
    assert night.state.bound == "blocks_a_period"
    night.now += 7200
    assert night.tool().stop().kind == "bound_reached"
    assert night.tool().stop().kind == "bound_reached"


@pytest.mark.parametrize(
    ("policy", "world"), [(Policy(wall_time=60), {}), (Policy(tokens=1000), {"tokens_used": 1000})]
)
def test_wall_time_and_tokens_end_it_where_they_are_set(policy: Policy, world: dict[str, int]) -> None:
    """Off by default; set, the first block past them records, and the next stop is allowed."""
    night = Night(*items("A"), policy=policy, **world)
    assert night.stop().block
    assert night.lines.count(RECORD) == 1
    assert night.stop().kind == "bound_reached"
    assert Night(*items("A"), **world).tool().stop().counters.blocks == 1


@pytest.mark.case("BR-028")
def test_a_finished_list_counts_before_any_bound() -> None:
    """Whoever has a wake and nothing owed waits, however many blocks came before."""
    night = Night(*items("A"))
    for _ in range(8):
        night.stop()
    night.owes(*items(A="done"))
    assert night.stop(SOON).kind == "waiting"


def test_past_a_bound_a_living_keeper_turns_the_stop_into_a_wait() -> None:
    """A kept look qualifies like any wake; past a bound the session waits with it instead of stopping."""
    night = Night(*items("A"), policy=Policy(keeper=True))
    for _ in range(8):
        night.stop()
    night.owes(*items("A", "B"))
    night.world = night.world.replace(kept_look=night.now + 1800)
    verdict = night.stop()
    assert (verdict.block, verdict.kind, verdict.rule) == (False, "waiting", "away.bound_kept_look")
    assert night.state.next_look == verdict.at + 1800


def test_from_the_third_block_on_the_reason_gives_the_exact_call() -> None:
    """The first two blocks name the item; the third adds a call that would qualify."""
    night = Night(*items("A"))
    reasons = [night.stop().reason for _ in range(3)]
    assert ["This call would do" in reason for reason in reasons] == [False, False, True]
    assert "CronCreate" in reasons[2]


@pytest.mark.case("A109", "BR-063", "BR-103")
def test_a_look_that_did_not_happen_is_recorded_once_at_the_next_event() -> None:
    """Ten minutes past the latest time of the look without a sign of life: missed, said once."""
    night = Night()
    night.stop((one_shot("21:30"),))
    night.at("2026-11-30 21:41").prompt("wake")
    assert night.lines.count("missed_look") == 1
    night.prompt("wake").tool()
    assert night.lines.count("missed_look") == 1
    on_time = Night()
    on_time.stop((one_shot("21:30"),))
    on_time.at("2026-11-30 21:39").prompt("wake").at("2026-11-30 23:00").tool()
    assert "missed_look" not in on_time.lines


@pytest.mark.case("A58")
def test_settings_outside_their_range_are_refused_by_name() -> None:
    """A negative skew, a bound of a wrong type or an unknown name: an error that says what would be right."""
    assert policy_from({"skew": 0, "blocks_an_hour": 5}) == Policy(skew=0, blocks_an_hour=5)
    assert policy_from({"blocks_without_tools": None}).blocks_without_tools is None
    for wrong in ({"skew": -1}, {"skew": 1.5}, {"skew": True}, {"keeper": 1}, {"wake_evidence": "maybe"}, {"no": 1}):
        with pytest.raises(SettingError) as said:
            policy_from(wrong)
        assert next(iter(wrong)) in str(said.value)


def test_reset_of_the_hour_does_not_forget_the_period() -> None:
    """Both ceilings are counted from the same blocks."""
    night = Night(*items("A"))
    night.tool().stop()
    night.now += 4000
    counters = night.tool().stop().counters
    assert (counters.blocks_this_hour, counters.period_blocks) == (1, 2)
    assert AWAY.until == at("2026-12-01 07:30")


def test_an_allowed_stop_also_ends_the_longer_row() -> None:
    """Thirty-nine blocks with tools, one wait, thirty-nine more: no bound is reached."""
    night = Night(*items("A"), policy=Policy(blocks_an_hour=1000))
    for _ in range(39):
        assert night.tool().stop().block
    assert night.stop(SOON).kind == "waiting"
    for _ in range(39):
        assert night.tool().stop().block
    assert RECORD not in night.lines


def test_progress_seen_at_an_allowed_stop_is_not_progress_again() -> None:
    """What was ticked when the session was let wait counts once."""
    night = Night(*items("A"))
    night.stop()
    assert night.owes(*items(A="done")).stop(SOON).kind == "waiting"
    night.owes(*items("B", A="open")).stop()
    assert night.owes(*items("B", A="done")).stop().counters.blocks == 2


def test_a_wait_keeps_what_a_compaction_asked_for() -> None:
    """The list still has to be brought up to date at the first block after the wait."""
    night = Night(*items("A"))
    night.stop()
    night.state = night.state.replace(compacted=True)
    assert night.stop(SOON).kind == "waiting"
    assert night.owes(*items("A", "B")).stop(SOON).reason.startswith("The conversation was compacted")


def test_only_the_first_stop_of_a_woken_turn_counts_as_a_look() -> None:
    """A turn that a wake started is one look, however many stops it has."""
    night = Night(*items("A", "B"))
    night.stop(SOON)
    night.prompt("wake").stop(())
    for _ in range(5):
        night.stop(SOON)
    assert night.state.unchanged_looks == 1
    night.prompt("person").stop(SOON)
    night.prompt("notification").stop(SOON)
    assert night.state.unchanged_looks == 1
    night.prompt("wake").prompt("person").stop(SOON)
    assert night.state.unchanged_looks == 1


@pytest.mark.parametrize(("minutes", "missed"), [(9, False), (10, False), (11, True)])
def test_a_look_is_missed_after_ten_minutes_and_not_before(minutes: int, missed: bool) -> None:
    """Ten minutes past its latest time it may still come; a moment later it is missed."""
    night = Night()
    night.stop((one_shot("21:30"),))
    latest = night.state.next_look_latest
    assert latest == at("2026-11-30 21:30")
    night.now = latest + minutes * 60
    night.prompt("wake")
    assert ("missed_look" in night.lines) is missed
    assert night.state.next_look is None


def test_an_event_before_the_look_leaves_it_standing() -> None:
    """A prompt at 21:10 does not use up the look at 21:30; a stop at 21:30 does not either, its verdict does."""
    night = Night()
    night.stop((one_shot("21:30"),))
    night.at("2026-11-30 21:10").prompt("person").tool()
    assert night.state.next_look == at("2026-11-30 21:30")
    night.at("2026-11-30 21:30").tool()
    assert night.state.next_look is None


def test_the_hour_of_the_ceiling_is_an_hour() -> None:
    """A block sixty minutes old counts no more; one a second younger does."""
    night = Night(*items("A"), policy=Policy(blocks_an_hour=2))
    night.tool().stop()
    began = night.now - 10
    night.now = began + 3599
    assert night.tool().stop().counters.blocks_this_hour == 2
    fresh = Night(*items("A"), policy=Policy(blocks_an_hour=2))
    fresh.tool().stop()
    fresh.now = began + 3600
    assert fresh.tool().stop().counters.blocks_this_hour == 1


def test_a_kept_look_counts_only_in_time_and_after_now_and_the_earlier_look_is_chosen() -> None:
    """A keeper's look between now and the deadline is a wake; the host's earlier wake comes first."""
    for kept, waits in ((0, False), (1, True), (3600, True), (3601, False)):
        night = Night(policy=Policy(keeper=True))
        night.world = night.world.replace(kept_look=night.now + kept)
        assert (night.stop().kind == "waiting") is waits, kept
    both = Night()
    both.world = both.world.replace(kept_look=at("2026-11-30 21:45"))
    earlier, later = both.judged((one_shot("21:30"),)).wake, both.judged((one_shot("21:50"),)).wake
    assert earlier is not None
    assert later is not None
    assert (earlier.id, later.id) == ("w1", "kept")


def test_observing_keeps_the_look_it_sees() -> None:
    """Observe tells when a session would look again, and that it would not."""
    night = Night(mode="observe")
    night.stop(SOON)
    assert night.state.next_look == night.state.next_look_latest == at("2026-11-30 21:30")
    night.stop()
    assert night.state.next_look is None


def test_the_bounds_are_those_of_the_contract() -> None:
    """The numbers that the documents promise."""
    from stopwarden.core import bounds

    policy = Policy()
    assert (policy.blocks_without_progress, policy.blocks_an_hour, policy.blocks_a_period) == (40, 30, 300)
    assert (policy.skew, policy.look_without_reservation, policy.unchanged_looks) == (300, 3600, 3)
    assert (policy.wall_time, policy.tokens, policy.keeper, policy.person_prompt_ends) == (0, 0, False, False)
    assert policy.wake_evidence == "evidence"
    assert (bounds.LEASE_DEFAULT, bounds.LEASE_MIN, bounds.LEASE_MAX) == (7200, 60, 86400)
    assert (bounds.TAKE_OVER_MARGIN, bounds.SKEW_SHARE, bounds.HOST_CAP_DEFAULT) == (300, 8, 8)
    assert (bounds.WAKE_EXPIRY_DEFAULT, bounds.MISSED_LOOK_AFTER, bounds.ONE_SHOT_GRACE) == (7 * 86400, 600, 120)
    assert bounds.KEEPER_BACKOFF == (60, 300, 900, 1800)
    assert (bounds.REASON_MAX, bounds.TITLE_MAX, bounds.PAYLOAD_MAX) == (2000, 200, 8 * 1024 * 1024)
    assert (bounds.STOP_DEADLINE, bounds.EVENT_DEADLINE, bounds.STORE_WAIT, bounds.FAULTS_IN_A_ROW) == (8, 2, 5, 3)
    assert bounds.SILENT_AFTER == 1800


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("blocks_without_tools", 0, 1_000),
        ("blocks_without_progress", 1, 1_000),
        ("blocks_an_hour", 1, 1_000),
        ("blocks_a_period", 1, 100_000),
        ("wall_time", 0, 31 * 86_400),
        ("tokens", 0, 10**12),
        ("skew", 0, 3_600),
        ("look_without_reservation", 300, 43_200),
        ("unchanged_looks", 1, 100),
    ],
)
def test_a_setting_is_taken_from_its_lowest_to_its_highest_value(name: str, low: int, high: int) -> None:
    """Both ends are allowed, one beyond is refused with the range in the message."""
    for value in (low, high):
        assert getattr(policy_from({name: value}), name) == value
    for value in (low - 1, high + 1):
        with pytest.raises(SettingError, match=f"from {low} to {high}"):
            policy_from({name: value})


def test_a_stop_that_a_bound_allows_tells_nothing_so_the_change_is_still_news() -> None:
    """What changed at the stop past the bound was never told: with a wake at hand the next stop is blocked for it."""
    night = Night(*items("A"))
    for _ in range(8):
        night.stop()
    assert night.owes(*items("A", "B")).stop().kind == "bound_reached"
    assert night.prompt("wake").stop(SOON).rule == "away.owed_changed"


def test_a_wait_after_a_bound_ends_it_and_is_recorded_as_resumed() -> None:
    """Stopped by a bound, then waiting with a wake: the bound is over, said once."""
    night = Night(*items("A"))
    for _ in range(8):
        night.stop()
    assert night.stop(SOON).kind == "waiting"
    assert night.state.bound == ""
    assert night.lines.count("resumed") == 1


def test_a_tool_counts_for_one_block_only() -> None:
    """Tool use before a wait or a block is spent with it."""
    night = Night(*items("A"))
    assert night.tool().stop().counters.blocks_without_tools == 1
    assert not night.state.tool_used
    assert night.stop().counters.blocks_without_tools == 2
    assert night.tool().stop(SOON).kind == "waiting"
    assert not night.state.tool_used


def test_a_block_takes_the_next_look_away() -> None:
    """A session that was waiting and is blocked again is at work: it has no look until it waits again."""
    night = Night(*items("A"))
    night.stop(SOON)
    night.stop(SOON)
    assert night.state.next_look is not None
    night.owes(*items("A", "B")).stop(SOON)
    assert (night.state.next_look, night.state.next_look_latest) == (None, None)


def test_the_other_events_of_a_session() -> None:
    """A tool in the second of a block comes after it; compaction and a cancel are remembered."""
    from stopwarden.core.events import SessionState
    from stopwarden.core.session import cancelled, compacted, tool_used

    blocked = SessionState(id="s", recent_blocks=(50, 100))
    assert tool_used(blocked, 100).tool_used
    assert not tool_used(blocked, 99).tool_used
    assert tool_used(SessionState(id="s"), 1).tool_used
    assert compacted(blocked).compacted
    assert cancelled(blocked).cancelled


def test_what_is_only_observed_is_not_in_the_record_as_done_by_us() -> None:
    """Observing writes no line of progress, bounds or parked items."""
    night = Night(*items("A", B="done"), mode="observe")
    night.stop()
    assert night.lines == []


def test_a_scheduler_with_limits_is_not_said_to_be_off() -> None:
    """Only where nothing at all can fire does the reason say that no wake counts."""
    from stopwarden.core.events import Scheduler

    limited = Scheduler(works="non_recurring", why="it leaves with a recurring wake")
    assert "No wake counts here" not in Night(*items("A"), scheduler=limited).stop().reason


def test_a_verdict_carries_what_it_was_counted_against() -> None:
    """Block or not: the deadline of the next look, the blocks of the hour and of the period."""
    night = Night(*items("A"))
    blocked = night.stop()
    waits = night.stop(SOON)
    assert (blocked.block, waits.block) == (True, False)
    assert [verdict.deadline for verdict in (blocked, waits)] == [blocked.at + 3_600, waits.at + 3_600]
    assert (waits.counters.period_blocks, waits.counters.blocks_this_hour) == (1, 1)


def test_the_wall_time_of_a_period_is_counted_from_its_beginning() -> None:
    """One second before it nothing is bound; the stop in its last second is recorded as one at a bound."""
    policy = Policy(wall_time=3_600)
    night = Night(*items("A"), policy=policy)
    assert night.world.period is not None
    night.now = night.world.period.since + 3_599
    night.stop()
    assert "stopped_with_work_owed" not in night.lines
    night.now = night.world.period.since + 3_600
    night.stop()
    assert "stopped_with_work_owed" in night.lines
