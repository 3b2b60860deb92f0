"""Policies on the same simulated nights: ours stalls nowhere unseen, and the page of tables is what the nights give."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Any

import pytest

from stopwarden.core.bounds import HOUR, MINUTE, Policy
from stopwarden.core.events import Item, SessionState, Stop, World
from stopwarden.sim import nights_page, plans, policies, scheduler
from stopwarden.sim.agents import TEMPERS, Told, Work
from stopwarden.sim.comparison import CONTENDERS, Result, compare, contender
from stopwarden.sim.nights import SessionNight
from stopwarden.sim.plans import ZONE, Errand, Plan, Trouble
from stopwarden.sim.tally import NEVER, Rest, Tally
from tests.support.terminal import Terminal

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "nights.md"
OURS, KEPT = "ours", "ours-with-keeper"
BEGINS = plans.FIRST_EVENING
DOABLE = tuple(Errand(id=f"i{n}", minutes=30, obstacle="", clears_at=0) for n in range(1, 40))


@pytest.fixture(scope="module")
def twenty() -> dict[str, Result]:
    """The first nights of the page, under every policy."""
    return {one.contender.name: one for one in compare(CONTENDERS, nights_page.HELD, 1)}


def night(temper: str, errands: tuple[Errand, ...] = DOABLE, **world: Any) -> Plan:
    """A night of eight hours in which nothing else happens."""
    return Plan(
        **{
            "seed": 1,
            "number": 0,
            "since": BEGINS,
            "until": BEGINS + 8 * HOUR,
            "temper": temper,
            "errands": errands,
            **world,
        }
    )


def played(plan: Plan, name: str) -> Tally:
    """What comes of it under a policy."""
    one = contender(name)
    return SessionNight(plan, one.guard, one.policy).play()


# the comparison


def test_every_second_of_every_night_is_on_one_account(twenty: dict[str, Result]) -> None:
    """The parts add up to the nights, the same under every policy."""
    drawn = [plans.plan(1, number) for number in range(nights_page.HELD)]
    for one in twenty.values():
        assert one.total.night == sum(plan.until - plan.since for plan in drawn)


@pytest.mark.parametrize("name", [OURS, KEPT])
def test_ours_never_stalls_unseen_and_keeps_the_night(twenty: dict[str, Result], name: str) -> None:
    """No quiet stall; at least 99 % working or validly waiting, what the world did not allow and a recorded bound apart."""
    total = twenty[name].total
    assert total.stalls == total.quiet == 0
    assert total.told_share >= 0.99


def test_the_others_stall_where_nobody_would_know(twenty: dict[str, Result]) -> None:
    """No guard, one block a turn, and the first rule leave sessions silent with work owed; each is better than the one before."""
    none, once, first, ours = (twenty[name].total for name in ("none", "block-once", "first-rule", OURS))
    assert none.quiet > once.quiet > first.quiet > ours.quiet == 0
    assert none.lost > once.lost > first.lost > ours.lost
    assert none.share < once.share < first.share < ours.share


def test_blocks_that_ask_for_nothing_are_few(twenty: dict[str, Result]) -> None:
    """Going on is asked where something can be done, or a wake is missing: over-run turns are a tenth of the blocks at most."""
    for name in (OURS, KEPT):
        assert twenty[name].total.over_run <= twenty[name].total.forced / 10


def test_the_page_is_what_the_first_nights_give(twenty: dict[str, Result]) -> None:
    """docs/nights.md cannot go stale: its last table is played at every run."""
    told = PAGE.read_text(encoding="utf-8")
    assert told.endswith("\n".join(nights_page.table(list(twenty.values()))) + "\n"), (
        "the nights come out otherwise; run: " + nights_page.COMMAND.format(200, 1)
    )


@pytest.mark.slow
def test_two_hundred_nights_give_the_page_as_it_stands() -> None:
    """The whole page, byte for byte, and what it claims of ours."""
    results = compare(CONTENDERS, 200, 1)
    assert PAGE.read_text(encoding="utf-8") == nights_page.page(results, compare(CONTENDERS, nights_page.HELD, 1), 1)
    by_name = {one.contender.name: one for one in results}
    for name in (OURS, KEPT):
        assert by_name[name].total.quiet == 0
        assert by_name[name].total.told_share >= 0.99
    assert by_name[KEPT].total.share >= 0.99, "with the keeper nothing is left out but the world"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 77])
def test_other_nights_tell_the_same(seed: int) -> None:
    """The page's seed is no lucky one; past a bound are only agents that never make a wake."""
    for number in range(150):
        plan = plans.plan(seed, number)
        for name in (OURS, KEPT):
            told = played(plan, name)
            assert told.quiet == 0, (seed, number, name)
            assert told.told_share >= 0.99, (seed, number, name)
            if told.at_bound or told.at_host_cap:
                assert name == OURS
                assert plan.temper == "looping"
                assert plan.dice("temper").random() < 0.2


def test_a_night_is_the_same_whoever_plays_it_and_however_many_there_are() -> None:
    """Plans come from seed and number alone, and a night played twice gives the same account."""
    assert plans.plan(1, 5) == plans.plan(1, 5) != plans.plan(2, 5)
    assert played(plans.plan(1, 5), OURS) == played(plans.plan(1, 5), OURS)
    assert compare([contender(OURS)], 3, 4)[0].total != compare([contender(OURS)], 3, 5)[0].total


# single nights


def test_a_session_that_only_says_it_waits_sleeps_till_morning_without_us() -> None:
    """It talks and calls nothing: once blocked it passes under the old rules, and nobody knows; ours sends it on to the bound."""
    plan = night("silent")
    for name in ("none", "block-once", "first-rule"):
        told = played(plan, name)
        assert (told.stalls, told.turns) == (1, 1), name
        assert told.quiet > 7.9 * HOUR
    ours = played(plan, OURS)
    assert (ours.quiet, ours.stalls) == (0, 0)
    assert ours.at_bound + ours.at_host_cap > 7 * HOUR
    assert 8 <= ours.forced <= 30, "sent on as often as is allowed, and no more"


def test_the_keeper_wakes_a_session_that_makes_no_wake_of_its_own() -> None:
    """Told again every hour, all night, within the ceilings; none of it is past a bound."""
    kept = played(night("silent"), KEPT)
    assert kept.at_bound == kept.at_host_cap == kept.quiet == 0
    assert kept.share == 1
    assert 6 <= kept.turns <= 10


def test_an_endless_command_is_no_reason_to_sleep() -> None:
    """With nothing owed but something awaited, the first rule waits for `tail -f` alone; ours for a wake that comes."""
    awaited = (Errand(id="i1", minutes=20, obstacle="external", clears_at=BEGINS + 3 * HOUR),)
    first = SessionNight(night("obedient", awaited), policies.named("first-rule"))
    first.works[0].state, first.works[0].waits_on, first.works[0].met = "waiting", "external", True
    first.leave_running("tail -f build.log")
    assert not first._stop().block
    ours = SessionNight(night("obedient", awaited), policies.named("ours"))
    ours.works[0].state, ours.works[0].waits_on, ours.works[0].met = "waiting", "external", True
    ours.leave_running("tail -f build.log")
    assert ours._stop().block


def test_work_that_becomes_possible_in_the_night_is_done() -> None:
    """What waited for a build goes on at the next look after it; without a guard nobody looks."""
    errands = (*DOABLE[:2], Errand(id="i9", minutes=20, obstacle="external", clears_at=BEGINS + 4 * HOUR))
    assert played(night("obedient", errands), OURS).done == 3
    assert played(night("silent", errands), "none").done == 0


def test_a_silent_scheduler_is_the_worlds_and_the_keeper_makes_up_for_it() -> None:
    """A wake was promised in time and never fired: no policy is blamed, and nothing is quiet."""
    errands = (*DOABLE[:2], Errand(id="i9", minutes=20, obstacle="external", clears_at=BEGINS + 4 * HOUR))
    plan = night("obedient", errands, silent=(BEGINS, BEGINS + 20 * HOUR))
    ours, kept = played(plan, OURS), played(plan, KEPT)
    assert ours.silent_scheduler > 4 * HOUR
    assert ours.quiet == 0
    assert kept.silent_scheduler < ours.silent_scheduler
    assert (ours.done, kept.done) == (2, 3)


def test_an_outage_ends_turns_without_a_stop_and_a_recurring_wake_comes_back() -> None:
    """Down for an hour: the safety wake opens turns that fail, then one that works."""
    plan = night("obedient", troubles=(Trouble(BEGINS + HOUR, BEGINS + 2 * HOUR),))
    ours, none = played(plan, OURS), played(plan, "none")
    assert ours.after_error < 2 * HOUR
    assert ours.done > none.done


def test_after_an_error_without_any_wake_only_the_keeper_helps() -> None:
    """The first turn fails: nothing that judges stops was asked, and no wake was made yet."""
    plan = night("silent", errors=(BEGINS + 10,))
    assert played(plan, OURS).after_error > 7.9 * HOUR
    kept = played(plan, KEPT)
    assert kept.after_error < 5 * MINUTE
    assert kept.turns > 5


def test_a_usage_limit_is_waited_for_and_not_asked_again_and_again() -> None:
    """The keeper comes when the limit ends, not every half hour."""
    plan = night("silent", troubles=(Trouble(BEGINS + 5, BEGINS + 3 * HOUR, limit=True),))
    one = SessionNight(plan, policies.named("ours"), Policy(keeper=True))
    rest = one._take_turn(Told(by="person"))
    assert rest.why == "error"
    assert one._keeper_due() == BEGINS + 3 * HOUR + MINUTE


def test_a_restart_keeps_cron_wakes_and_loses_self_paced_ones() -> None:
    """As the host does; a wake that was lost so is the world's."""
    one = SessionNight(night("obedient"), policies.named("ours"))
    one.create("*/20 * * * *", recurring=True)
    one.pace(1800)
    assert [wake.kind for wake in one.wakes] == ["recurring", "self_paced"]
    one._restart()
    assert [wake.kind for wake in one.wakes] == ["recurring"]


def test_the_host_ends_a_turn_at_the_ninth_block_without_a_tool() -> None:
    """Whatever a policy says: only tools begin its count anew."""
    one = SessionNight(night("silent"), replaced_judge(block=True))
    rest = one._take_turn(Told(by="person"))
    assert rest.why == "stop"
    talk_only = SessionNight(night("talker"), replaced_judge(block=True))
    talk_only._take_turn(Told(by="person"))
    assert talk_only.tally.forced == 9


def replaced_judge(*, block: bool) -> policies.Guard:
    """A policy that always blocks."""

    def always(stop: Stop, session: SessionState, world: World, policy: Policy) -> Any:
        return policies.no_guard(stop, session, world, policy).replace(block=block, kind="block", reason="go on")

    return policies.Guard(name="always", words="always", judge=always, by_turn=True)


TEMPERS["talker"] = replace(TEMPERS["silent"], deeds={"talk": 1.0})


# the accounts of a rest


def rest(**facts: Any) -> Rest:
    """An hour and a half at rest after an allowed stop, its deadline in an hour, no wake, no record."""
    return Rest(
        **{
            "since": 0,
            "until": 90 * MINUTE,
            "why": "stop",
            "bound": "",
            "promised": NEVER,
            "deadline": HOUR,
            "came": False,
            "look": None,
            **facts,
        }
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, {"quiet": 90, "stalls": 1}),
        ({"bound": "blocks_an_hour"}, {"at_bound": 90}),
        ({"bound": "blocks_without_tools"}, {"at_host_cap": 90}),
        ({"look": HOUR}, {"missed": 90}),
        ({"why": "error"}, {"after_error": 90}),
        ({"why": "restart"}, {"after_restart": 90}),
        ({"promised": 50 * MINUTE, "until": 50 * MINUTE, "came": True}, {"waiting": 50}),
        ({"promised": 50 * MINUTE}, {"waiting": 51, "silent_scheduler": 39}),
        ({"promised": 90 * MINUTE, "came": True}, {"waiting": 60, "quiet": 30, "stalls": 1}),
        ({"promised": 65 * MINUTE, "until": 65 * MINUTE, "came": True}, {"waiting": 60, "late": 5}),
        ({"promised": 61 * MINUTE, "until": 61 * MINUTE, "came": True}, {"waiting": 61}),
    ],
)
def test_a_rest_is_put_to_its_account(facts: dict[str, Any], expected: dict[str, int]) -> None:
    """Minutes by what the session was; a wake that is late excuses the time up to the deadline, one that never comes nothing."""
    tally = Tally()
    tally.rest(rest(**facts), [Work(errand=DOABLE[0], left=30, title="do it")])
    told = {name: value for name, value in vars(tally).items() if value and not name.startswith("lost")}
    assert told == {name: value * (1 if name == "stalls" else MINUTE) for name, value in expected.items()}
    assert tally.lost == rest(**facts).until


def test_a_list_that_is_done_needs_no_wake_under_any_policy() -> None:
    """What waits on a sleeping person is no stall either; what will come from outside is."""
    errand = Errand(id="i1", minutes=5, obstacle="external", clears_at=30 * MINUTE)
    for state, waits_on, expected in (("done", None, 0), ("waiting", "person", 0), ("waiting", "external", 1)):
        tally = Tally()
        tally.rest(rest(), [Work(errand=errand, left=5, title="", state=state, waits_on=waits_on, met=True)])  # type: ignore[arg-type]
        assert tally.stalls == expected
        assert tally.lost == expected * HOUR


# the scheduler of the host


@pytest.mark.parametrize("name", ["00000000", "7fffffff", "ffffffff"])
def test_a_wake_fires_as_the_real_host_does(name: str) -> None:
    """A recurring one late by up to half its interval, always by as much; a self-paced one at the full minute."""
    share = int(name, 16) / 16**8
    wake = scheduler.create(name, "*/20 * * * *", recurring=True, now=BEGINS, zone=ZONE, says=True)
    assert wake.said == wake.fires_at
    first = wake.fires_at
    assert 0 <= first % (20 * MINUTE) - share * 10 * MINUTE < 2 or share == 1
    scheduler.advance(wake, first, ZONE)
    assert abs(wake.fires_at - first - 20 * MINUTE) <= 1
    paced = scheduler.pace(name, 1501, now=BEGINS, zone=ZONE, says=True)
    assert BEGINS + 1501 <= paced.fires_at < BEGINS + 1501 + MINUTE
    assert paced.fires_at % MINUTE == 0
    at_the_hour = scheduler.create(name, "0 23 * * *", recurring=False, now=BEGINS, zone=ZONE, says=False)
    hour = BEGINS + HOUR  # 23:00 in summer time
    assert hour - 90 <= at_the_hour.fires_at <= hour
    assert at_the_hour.listed().fires_at is None


def test_a_wake_in_the_repeated_hour_fires_when_its_clock_says(twenty: dict[str, Result]) -> None:
    """One night of twelve has the change of clocks; nothing stalls in it."""
    changes = [plans.plan(1, number) for number in (4, 16)]
    for plan in changes:
        assert ZONE.offset(plan.since) != ZONE.offset(plan.until)
        assert played(plan, OURS).quiet == 0


# the rules compared


def asked(name: str, session: SessionState | None = None, **world: Any) -> Any:
    one = SessionNight(night("obedient"), policies.named(name))
    stop = Stop(session="s1", at=BEGINS)
    return policies.named(name).judge(stop, session or one.state, one._world().replace(**world), Policy())


@pytest.mark.parametrize("name", sorted(policies.GUARDS))
def test_what_is_left_alone_is_left_alone_by_every_rule(name: str) -> None:
    """No away period, the switch, a cancel: only the away check is compared."""
    assert asked(name, period=None).rule == "away.not_away"
    assert asked(name, mode="off").rule == "policy.off"
    assert asked(name, SessionState(id="s1", cancelled=True)).rule == "stop.cancelled"


def test_the_first_rule_records_the_block_that_reaches_the_hosts_cap() -> None:
    """With owed work that changes at every stop, and no tool."""
    state = SessionState(id="s1")
    for number in range(8):
        told = asked("first-rule", state, items=(Item(id=f"x{number}", title=""),))
        assert told.block
        state = told.after
    assert [one.kind for one in told.happenings] == ["stopped_with_work_owed"]


# the command


def test_the_command_prints_a_row_for_each_policy(tmp_path: pathlib.Path) -> None:
    """And one for ours with the settings that were asked for."""
    code, out, err = Terminal(tmp_path).run(
        "simulate", "nights", "--nights", "2", "--policy", "none", "--policy", "skew=10m"
    )
    assert (code, err) == (0, "")
    assert "no guard" in out
    assert "ours, skew=10m" in out
    told = Terminal(tmp_path).json("simulate", "nights", "--nights", "2", "--policy", "ours")
    assert [one["name"] for one in told["policies"]] == ["ours"]
    assert told["policies"][0]["quiet"] == 0


def test_the_command_writes_the_page(tmp_path: pathlib.Path) -> None:
    """The same bytes at every run."""
    terminal = Terminal(tmp_path)
    terminal.context.cwd = str(tmp_path)
    pages = []
    for _ in range(2):
        assert terminal.run("simulate", "nights", "--nights", "2", "--table", "page.md")[0] == 0
        pages.append((tmp_path / "page.md").read_bytes())
    assert pages[0] == pages[1]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("page")) == ["page.md"]


@pytest.mark.parametrize(
    "words",
    [
        ("--nights", "0"),
        ("--policy", "nobody"),
        ("--policy", "skwe=1"),
        ("--policy", "ours", "--table", "x"),
        ("--nights", "1", "--table", "no/such/place.md"),
    ],
)
def test_wrong_words_are_refused(tmp_path: pathlib.Path, words: tuple[str, ...]) -> None:
    """Exit code 2, and what would be right."""
    terminal = Terminal(tmp_path)
    terminal.context.cwd = str(tmp_path)
    code, out, err = terminal.run("simulate", "nights", *words)
    assert (code, out) == (2, "")
    assert err.startswith("stopwarden: ")
