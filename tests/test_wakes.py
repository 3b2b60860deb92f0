"""Which wakes come in time: the recorded rule, the host's jitter, its own word, expiry, and what to suggest."""

from __future__ import annotations

import random
from zoneinfo import ZoneInfo

import pytest

from stopwarden.clock import ZoneOf
from stopwarden.core.bounds import DAY, HOUR, MINUTE, ONE_SHOT_GRACE, Policy
from stopwarden.core.cron import HORIZON, next_fire, parse
from stopwarden.core.events import Reservation, Scheduler, Wake, WakeFinding
from stopwarden.core.leases import deadline
from stopwarden.core.wakes import judge_wake, judge_wakes, suggest
from tests.conftest import LONDON, at

NOW = at("2026-11-30 21:00")
PLAIN = Scheduler()
CLAUDE = Scheduler(jitter="claude_code")
QWEN = Scheduler(jitter="qwen_code", dialects=("qwen_code",))
BOTH = pytest.mark.parametrize("evidence", ["evidence", "nominal"])


def once(schedule: str, **more: object) -> Wake:
    return Wake(id="w1", schedule=schedule, **more)  # type: ignore[arg-type]


def every(schedule: str, **more: object) -> Wake:
    return Wake(id="w1", schedule=schedule, kind="recurring", **more)  # type: ignore[arg-type]


def judged(
    wake: Wake,
    by: str | int = "2026-11-30 21:25",
    *,
    now: str | int = NOW,
    scheduler: Scheduler = PLAIN,
    evidence: str = "evidence",
) -> WakeFinding:
    return judge_wake(
        wake,
        now=at(now) if isinstance(now, str) else now,
        deadline=at(by) if isinstance(by, str) else by,
        scheduler=scheduler,
        zone=LONDON,
        evidence=evidence,
    )


def look_by(claimed: str, now: str | int = NOW, lease: int = 2 * HOUR) -> int:
    """The deadline of a session whose copy holds one reservation claimed then."""
    start = at(claimed)
    held = Reservation(item="i", session="s", copy="c", claimed_at=start, expires_at=start + lease)
    return deadline([held], "c", at(now) if isinstance(now, str) else now, Policy())


# The recorded rule, and the same wakes by evidence where nothing else is known


@BOTH
@pytest.mark.parametrize(
    "schedule, qualifies",
    [
        pytest.param("0 9 * * *", False, marks=pytest.mark.case("A26"), id="tomorrow morning"),
        pytest.param("20 21 * * *", True, marks=pytest.mark.case("A27"), id="five minutes to spare"),
        pytest.param("25 21 * * *", True, marks=pytest.mark.case("A28"), id="at the deadline"),
        pytest.param("26 21 * * *", False, marks=pytest.mark.case("A29"), id="a minute after it"),
        pytest.param("45 22 * * *", False, marks=pytest.mark.case("A30"), id="after the expiry"),
        pytest.param("15 22 * * *", False, marks=pytest.mark.case("A31"), id="between due and expiry"),
    ],
)
def test_a_wake_qualifies_up_to_the_deadline_of_a_reservation(schedule: str, qualifies: bool, evidence: str) -> None:
    """Claimed at 20:30 for two hours, the session must look by 21:25, that minute included and no later."""
    finding = judged(once(schedule), look_by("2026-11-30 20:30"), evidence=evidence)
    assert finding.qualifies is qualifies
    assert bool(finding.why) is not qualifies


@BOTH
@pytest.mark.parametrize(
    "schedule, qualifies",
    [
        pytest.param("0 22 * * *", True, marks=pytest.mark.case("A39"), id="in 60 minutes"),
        pytest.param("1 22 * * *", False, marks=pytest.mark.case("A40"), id="in 61 minutes"),
    ],
)
def test_without_a_reservation_a_wake_qualifies_for_an_hour(schedule: str, qualifies: bool, evidence: str) -> None:
    """Nothing reserved: a look in exactly an hour is enough, one minute more is not."""
    by = deadline((), "c", NOW, Policy())
    assert judged(once(schedule), by, evidence=evidence).qualifies is qualifies


@pytest.mark.case("A44")
@BOTH
def test_with_the_renewal_overdue_no_wake_is_early_enough(evidence: str) -> None:
    """The deadline was 20:55: neither a wake in one minute nor one that is due this very moment qualifies."""
    by = look_by("2026-11-30 20:00")
    finding = judged(once("1 21 * * *"), by, evidence=evidence)
    assert not finding.qualifies
    assert finding.why == "fires 21:01, 6 minutes after 20:55"
    assert not judged(every("* * * * *"), by, evidence=evidence).qualifies
    assert not judged(once("0 21 * * *", first_seen=NOW - HOUR), by, evidence=evidence).qualifies
    assert suggest(NOW, by, CLAUDE, LONDON, evidence) == ""


@pytest.mark.parametrize(
    "seconds, qualifies",
    [
        pytest.param(3_600, False, marks=pytest.mark.case("A45")),
        pytest.param(3_000, True, marks=pytest.mark.case("A46")),
    ],
)
def test_the_longest_delay_right_after_a_claim_is_too_long_by_the_skew(seconds: int, qualifies: bool) -> None:
    """Claimed now, the deadline is in 55 minutes: a delay of an hour is late, fifty minutes are in time."""
    fires = NOW + seconds
    by_schedule = once(f"{fires // 60 % 60} {fires // HOUR % 24} * * *", kind="self_paced", first_seen=NOW)
    for wake in (by_schedule, by_schedule.replace(fires_at=fires)):
        assert judged(wake, look_by("2026-11-30 21:00"), scheduler=CLAUDE).qualifies is qualifies


@pytest.mark.case("A49")
@BOTH
def test_every_thirty_minutes_is_not_within_thirty_minutes(evidence: str) -> None:
    """Ten seconds past the hour the next fire is half past, five minutes after the deadline."""
    finding = judged(every("*/30 * * * *"), now=NOW + 10, evidence=evidence)
    assert not finding.qualifies
    assert finding.nominal == at("2026-11-30 21:30")


@pytest.mark.case("A63")
@BOTH
def test_a_doubtful_reading_costs_the_earlier_fire(evidence: str) -> None:
    """Odd days or Fridays, odd days and Fridays: tonight's midnight counts only if both readings name it."""
    by = at("2026-12-01 00:00")
    assert not judged(once("0 0 */2 * 5"), by, evidence=evidence).qualifies
    assert judged(once("0 0 */2 * 2"), by, evidence=evidence).qualifies  # 1 December is a Tuesday, and odd


@pytest.mark.case("A68")
@BOTH
def test_a_date_that_never_comes_never_qualifies(evidence: str) -> None:
    """It can be read, and there is nothing to wait for, by whatever deadline."""
    finding = judged(once("0 0 31 2 *"), NOW + 50 * HORIZON, evidence=evidence)
    assert not finding.qualifies
    assert finding.why == "is not sure to fire within a year"
    assert not judged(every("0 0 31 2 *"), NOW + 50 * HORIZON, evidence=evidence, scheduler=CLAUDE).qualifies


@pytest.mark.parametrize("kind", ["recurring", "one_shot"])
def test_a_wake_that_one_of_two_readings_never_fires_does_not_qualify(kind: str) -> None:
    """30 February or a Saturday, 30 February and a Saturday: where the host is not known, nothing is promised."""
    wake = once("0 0 30 2 */6", kind=kind)
    unsure = Scheduler(dialects=("qwen_code", "debian"))
    finding = judged(wake, NOW + HORIZON, scheduler=unsure)
    assert not finding.qualifies
    assert finding.why == "is not sure to fire within a year"
    assert finding.earliest is not None
    assert judged(wake, NOW + HORIZON, scheduler=Scheduler(dialects=("qwen_code",))).qualifies is (kind == "one_shot")


@pytest.mark.case("A72")
@BOTH
def test_an_unreadable_wake_does_not_spoil_a_good_one(evidence: str) -> None:
    """Between two that cannot be read the good one is chosen, and each of the others says what is wrong."""
    wakes = [once("@hourly"), once("20 21 * * *").replace(id="good"), once("0 0 9 * * *"), once("61 * * * *")]
    chosen, findings = judge_wakes(
        wakes, now=NOW, deadline=at("2026-11-30 21:25"), scheduler=PLAIN, zone=LONDON, evidence=evidence
    )
    assert chosen is not None
    assert chosen.id == "good"
    assert [finding.why for finding in findings] == [
        "cannot be read: one field instead of five",
        "",
        "cannot be read: six fields instead of five",
        "cannot be read: minute: 61 is outside 0 to 59",
    ]
    assert findings[0].nominal is None


@pytest.mark.parametrize("value", [None, 5, ["* * * * *"], "", "5\x00 * * * *"])
@BOTH
def test_a_schedule_that_is_no_text_is_a_finding_and_no_failure(value: object, evidence: str) -> None:
    """Whatever a host sends where an expression belongs, the judgement goes on."""
    assert judged(once(value), evidence=evidence).why.startswith("cannot be read: ")  # type: ignore[arg-type]


@pytest.mark.case("A77")
@BOTH
def test_a_time_in_the_skipped_hour_does_not_qualify(evidence: str) -> None:
    """London, 28 March 2027 at 00:40: hosts disagree whether 01:30 is run at 02:00, so it is no promise."""
    finding = judged(once("30 1 * * *"), "2027-03-28 02:30", now="2027-03-28 00:40", evidence=evidence)
    assert not finding.qualifies
    assert finding.latest == at("2027-03-29 01:30")
    assert finding.earliest == at("2027-03-28 02:00" if evidence == "evidence" else "2027-03-29 01:30")


def test_the_repeated_hour_is_doubtful_by_evidence_and_plain_by_the_recorded_rule() -> None:
    """Seen at 01:40 summer time, the second 01:30 is a fire to the recorded rule; some hosts take the first only."""
    now, by = at("2026-10-25 01:40"), at("2026-10-25 01:30", fold=1)
    assert judged(once("30 1 * * *"), by, now=now, evidence="nominal").qualifies
    assert not judged(once("30 1 * * *"), by, now=now, evidence="evidence").qualifies


def test_an_hourly_wake_may_be_two_real_hours_away_in_autumn() -> None:
    """At 01:10 summer time: two dialects fire at the second 01:00, Qwen Code at 02:00 winter time; the latest counts."""
    now = at("2026-10-25 01:10")
    finding = judged(every("0 * * * *"), now + 90 * MINUTE, now=now)
    assert finding.nominal == at("2026-10-25 01:00", fold=1)
    assert finding.latest == at("2026-10-25 02:00")
    assert not finding.qualifies
    assert judged(every("0 * * * *"), now + 110 * MINUTE, now=now).qualifies
    one = Scheduler(dialects=("minute", "debian"))
    assert judged(every("0 * * * *"), now + 90 * MINUTE, now=now, scheduler=one).qualifies


@pytest.mark.case("A79")
@BOTH
def test_a_wake_on_the_leap_day_qualifies_the_evening_before(evidence: str) -> None:
    """28 February 2028, 23:30, one hour to the deadline: the 29th begins in half an hour."""
    assert judged(once("0 0 29 2 *"), "2028-02-29 00:30", now="2028-02-28 23:30", evidence=evidence).qualifies


@pytest.mark.case("A53")
def test_sixty_wakes_are_all_judged_at_a_bounded_cost() -> None:
    """Every one gets its finding, and none asks the zone more than a few dozen times."""

    class Counting:
        name, calls = "Europe/London", 0

        def offset(self, instant: int) -> int:
            self.calls += 1
            return LONDON.offset(instant)

    zone = Counting()
    kinds = [every("*/7 * * * *"), once("0 9 * * *"), every("0 9 1 1 *"), once("nonsense"), every("5/15 */2 * * 1-5")]
    wakes = [kinds[n % 5].replace(id=f"w{n}") for n in range(60)]
    _, findings = judge_wakes(wakes, now=NOW, deadline=NOW + HOUR, scheduler=CLAUDE, zone=zone, evidence="evidence")
    assert [finding.id for finding in findings] == [wake.id for wake in wakes]
    assert all(finding.qualifies or finding.why for finding in findings)
    assert zone.calls < 60 * 30


# One-shots keep the moment of first sight


@pytest.mark.case("A54")
@pytest.mark.parametrize("late, due", [(0, True), (20, True), (ONE_SHOT_GRACE, True), (ONE_SHOT_GRACE + 1, False)])
def test_a_one_shot_known_before_is_due_for_two_minutes_after_its_minute(late: int, due: bool) -> None:
    """Seen at 14:10 for 14:18, and still queued at 14:18:20: it is due now; past the grace it is overdue."""
    fire = at("2026-11-30 14:18")
    wake = once("18 14 * * *", first_seen=at("2026-11-30 14:10"))
    finding = judged(wake, fire + HOUR, now=fire + late)
    assert finding.qualifies is due
    assert finding.nominal == fire
    assert finding.latest == (fire + late if due else fire)
    assert due or finding.why == "was due 14:18, 2 minutes ago, and has not fired"


@pytest.mark.case("A54")
@pytest.mark.parametrize("first_seen", [None, at("2026-11-30 14:18:20")])
def test_a_one_shot_seen_first_after_its_minute_is_tomorrows(first_seen: int | None) -> None:
    """Nothing tells 14:18 today from 14:18 tomorrow at first sight, so the later one is taken."""
    now = at("2026-11-30 14:18:20")
    finding = judged(once("18 14 * * *", first_seen=first_seen), now + HOUR, now=now)
    assert not finding.qualifies
    assert finding.nominal == at("2026-12-01 14:18")


def test_by_the_recorded_rule_a_passed_one_shot_is_tomorrows_whoever_knew_it() -> None:
    """First sight is evidence, which the recorded rule does not weigh."""
    wake = once("18 14 * * *", first_seen=at("2026-11-30 14:10"))
    finding = judged(wake, "2026-11-30 15:00", now="2026-11-30 14:18:20", evidence="nominal")
    assert finding.nominal == at("2026-12-01 14:18")
    assert not finding.qualifies


def test_an_overdue_one_shot_is_not_taken_for_the_next_days() -> None:
    """A day later the same five fields match again; the wake of first sight is still the one that never came."""
    wake = once("18 14 * * *", first_seen=at("2026-11-29 14:10"))
    finding = judged(wake, "2026-11-30 15:00", now="2026-11-30 14:10")
    assert not finding.qualifies
    assert finding.nominal == at("2026-11-29 14:18")
    assert finding.why == "was due Sun 14:18, 23 h 52 min ago, and has not fired"


def test_a_wake_one_second_ahead_is_not_due_yet() -> None:
    """Its latest moment is its own until it is reached."""
    fire = at("2026-11-30 14:18")
    assert judged(once("18 14 * * *", first_seen=fire - HOUR), fire, now=fire - 1).latest == fire
    assert judged(once("18 14 * * *", first_seen=fire - HOUR), fire, now=fire).qualifies


def test_the_hosts_word_for_a_one_shot_beats_its_schedule() -> None:
    """The host said 21:18:40; the schedule, seen first at 21:30, would have meant tomorrow."""
    word = at("2026-11-30 21:18:40")
    wake = once("20 21 * * *", first_seen=NOW, fires_at=word, fires_said_at=NOW)
    finding = judged(wake, scheduler=CLAUDE)
    assert (finding.nominal, finding.earliest, finding.latest) == (word, word, word)
    assert judged(wake, word, scheduler=CLAUDE).qualifies
    assert not judged(wake, word - 1, scheduler=CLAUDE).qualifies
    assert judged(wake, word - 1, scheduler=CLAUDE).why == "fires 21:18, 1 s after 21:18"


def test_a_self_paced_wake_needs_no_schedule_where_its_host_gives_the_time() -> None:
    """Qwen Code lists it as "@wakeup" with the moment beside it; without the moment nothing is known."""
    word = NOW + 20 * MINUTE + 7
    assert judged(once("@wakeup", kind="self_paced", fires_at=word), scheduler=QWEN).latest == word
    assert judged(once("@wakeup", kind="self_paced", fires_at=word), scheduler=QWEN).qualifies
    assert not judged(once("@wakeup", kind="self_paced"), scheduler=QWEN).qualifies
    assert not judged(once("@wakeup", kind="one_shot", fires_at=word), scheduler=QWEN).qualifies
    assert not judged(once("@wakeup", kind="self_paced", fires_at=word), evidence="nominal").qualifies


@pytest.mark.parametrize("word", [10**15, -(10**15), NOW + 2 * HORIZON])
def test_a_word_that_is_no_time_of_this_age_is_not_believed(word: int) -> None:
    """Milliseconds taken for seconds, or worse: the schedule speaks then."""
    for wake in (once("20 21 * * *"), every("*/20 * * * *")):
        finding = judged(wake.replace(fires_at=word, fires_said_at=NOW))
        assert finding.nominal == at("2026-11-30 21:20")
    assert judged(every("*/20 * * * *", fires_at=NOW + 1_230, fires_said_at=word)).latest == NOW + 1_230


# Jitter


@pytest.mark.case("A55")
def test_an_hourly_wake_that_may_come_half_an_hour_late_does_not_qualify() -> None:
    """Nominally at 22:00, by 22:30 at the worst: in time for 22:30, not for 22:29; without jitter for 22:00."""
    wake = every("0 * * * *")
    late = judged(wake, "2026-11-30 22:29", scheduler=CLAUDE)
    assert not late.qualifies
    assert late.why == "fires 22:00 but may come as late as 22:30, 1 minute after 22:29"
    assert judged(wake, "2026-11-30 22:30", scheduler=CLAUDE).qualifies
    assert judged(wake, "2026-11-30 22:00").qualifies
    assert judged(wake, "2026-11-30 22:00", scheduler=CLAUDE, evidence="nominal").qualifies


@pytest.mark.parametrize(
    "schedule, jitter, latest",
    [
        ("*/20 * * * *", "claude_code", "21:30"),  # half of twenty minutes
        ("*/5 * * * *", "claude_code", "21:07:30"),
        ("* * * * *", "claude_code", "21:01:30"),
        ("30 */2 * * *", "claude_code", "23:00"),  # two hours apart: thirty minutes, not sixty
        ("30 22 * * *", "claude_code", "23:00"),
        ("*/50 * * * *", "claude_code", "22:15"),  # next at 21:50, apart by 10 and by 50 minutes: the longer counts
        ("*/20 * * * *", "qwen_code", "21:22"),  # a tenth of twenty minutes
        ("0 * * * *", "qwen_code", "22:06"),
        ("0 22 * * *", "qwen_code", "22:15"),  # a tenth of a day would be more than the host allows itself
        ("0 22 30 11 *", "qwen_code", "22:15"),  # once a year
        ("*/20 * * * *", "none", "21:20"),
    ],
)
def test_a_recurring_wake_is_late_by_a_share_of_its_interval(schedule: str, jitter: str, latest: str) -> None:
    """Claude Code: up to half the interval, 30 minutes at most. Qwen Code: up to a tenth, 15 minutes at most."""
    scheduler = Scheduler(jitter=jitter)  # type: ignore[arg-type]
    worst = at(f"2026-11-30 {latest}")
    finding = judged(every(schedule), scheduler=scheduler)
    assert finding.latest == worst
    assert finding.nominal == finding.earliest
    assert judged(every(schedule), worst, scheduler=scheduler).qualifies
    assert not judged(every(schedule), worst - 1, scheduler=scheduler).qualifies


@pytest.mark.case("A56")
@pytest.mark.parametrize("jitter", ["claude_code", "qwen_code"])
def test_a_self_paced_wake_has_no_jitter(jitter: str) -> None:
    """A loop's own wake at 22:00 comes then, neither up to 90 s early nor late, and qualifies up to that minute."""
    wake = once("0 22 * * *", kind="self_paced", first_seen=NOW)
    scheduler = Scheduler(jitter=jitter)  # type: ignore[arg-type]
    finding = judged(wake, "2026-11-30 22:00", scheduler=scheduler)
    assert finding.qualifies
    assert finding.earliest == finding.latest == at("2026-11-30 22:00")
    not_exempt = scheduler.replace(exempt_self_paced=False)
    assert judged(wake, "2026-11-30 22:00", scheduler=not_exempt).earliest == at("2026-11-30 22:00") - 90


@pytest.mark.parametrize("minute, early", [(0, 90), (30, 90), (1, 0), (29, 0), (15, 0)])
def test_a_one_shot_on_the_hour_or_half_hour_may_be_early_and_is_never_late(minute: int, early: int) -> None:
    """Up to 90 seconds before :00 and :30, exact at other minutes; what decides is the latest moment."""
    fire = at(f"2026-11-30 22:{minute:02}")
    finding = judged(once(f"{minute} 22 * * *"), fire, scheduler=CLAUDE)
    assert finding.qualifies
    assert (finding.earliest, finding.nominal, finding.latest) == (fire - early, fire, fire)


def test_the_half_hours_of_a_zone_that_is_half_an_hour_off_are_its_own() -> None:
    """In Kolkata the full hour is local: 22:00 there may be early, whatever UTC reads."""
    zone = ZoneOf(ZoneInfo("Asia/Kolkata"))
    now = at("2026-11-30 21:00", "Asia/Kolkata")
    for minute, early in ((0, 90), (45, 0)):
        fire = at(f"2026-11-30 22:{minute:02}", "Asia/Kolkata")
        finding = judge_wake(
            once(f"{minute} 22 * * *"), now=now, deadline=fire, scheduler=CLAUDE, zone=zone, evidence="evidence"
        )
        assert finding.earliest == fire - early


# The host's own word about a recurring wake


def test_the_hosts_word_for_the_next_fire_is_exact() -> None:
    """Every seven minutes, and the host said 21:08:27: that is when it comes, not half an interval later."""
    word = at("2026-11-30 21:08:27")
    wake = every("*/7 * * * *", first_seen=NOW + 60, fires_at=word, fires_said_at=NOW + 60)
    finding = judged(wake, now=NOW + 2 * MINUTE, scheduler=CLAUDE)
    assert (finding.nominal, finding.earliest, finding.latest) == (at("2026-11-30 21:07"), word, word)
    assert judged(wake, word, now=NOW + 2 * MINUTE, scheduler=CLAUDE).qualifies
    assert not judged(wake, word - 1, now=NOW + 2 * MINUTE, scheduler=CLAUDE).qualifies


def test_what_is_shown_is_no_time_already_past() -> None:
    """Between the scheduled 21:07 and the promised 21:08:27 the next look shown is the promised one."""
    word = at("2026-11-30 21:08:27")
    wake = every("*/7 * * * *", fires_at=word, fires_said_at=NOW + 60)
    assert judged(wake, now=at("2026-11-30 21:07:30"), scheduler=CLAUDE).nominal == word


def test_the_lateness_a_host_has_shown_holds_for_later_fires() -> None:
    """Said once to come 87 s after its minute, it comes 87 s after the later ones too, and not up to 210 s."""
    wake = every("*/7 * * * *", fires_at=at("2026-11-30 21:08:27"), fires_said_at=NOW + 60)
    finding = judged(wake, now="2026-11-30 21:15", scheduler=CLAUDE)
    assert finding.earliest == finding.latest == at("2026-11-30 21:15:27")
    later = judged(wake, now="2026-11-30 21:16", scheduler=CLAUDE)
    assert later.nominal == at("2026-11-30 21:21")
    assert later.latest == at("2026-11-30 21:22:27")


def test_a_lateness_shown_before_a_short_interval_grows_with_a_longer_one() -> None:
    """Apart by 45 and 15 minutes: 5 of at most 7.5 minutes late before the short one may be 15 before the long one."""
    wake = every("0,45 * * * *", fires_at=at("2026-11-30 21:50"), fires_said_at=NOW + 60)
    finding = judged(wake, now="2026-11-30 21:52", scheduler=CLAUDE)
    assert finding.nominal == at("2026-11-30 22:00")
    assert finding.earliest == at("2026-11-30 22:05")
    assert finding.latest == at("2026-11-30 22:15")
    same = judged(wake, now="2026-11-30 22:20", scheduler=CLAUDE)  # the next fire is like the one spoken of
    assert (same.earliest, same.nominal) == (at("2026-11-30 22:50"), at("2026-11-30 22:45"))
    plain = judged(wake, now="2026-11-30 21:52")  # a host whose lateness is not known keeps what it has shown
    assert plain.earliest == plain.latest == at("2026-11-30 22:05")


def test_a_word_that_does_not_fit_the_schedule_leaves_the_worst_lateness() -> None:
    """Forty minutes after the fire it should belong to: once it is past, the host's general bound counts again."""
    wake = every("0 * * * *", fires_at=at("2026-11-30 20:40"), fires_said_at=at("2026-11-30 19:30"))
    assert judged(wake, scheduler=CLAUDE).latest == at("2026-11-30 22:30")
    early = every("0 * * * *", fires_at=at("2026-11-30 19:59"), fires_said_at=at("2026-11-30 19:30"))
    assert judged(early, scheduler=CLAUDE).latest == at("2026-11-30 22:30")


# Expiry


@pytest.mark.case("BR-072")
def test_a_recurring_wake_counts_only_until_it_ends() -> None:
    """Seven days after first sight an hourly wake is over: the fire at that second still counts, none after it."""
    seen = at("2026-11-23 22:00")
    wake = every("0 * * * *", first_seen=seen)
    assert judged(wake, NOW + 3 * HOUR).qualifies
    ended = judged(wake.replace(first_seen=seen - 1), NOW + 3 * HOUR)
    assert not ended.qualifies
    assert ended.why == "ends 21:59, before it is sure to have fired again"
    assert not judged(wake, NOW + 3 * HOUR, scheduler=CLAUDE).qualifies  # it may come half an hour after the end


def test_the_age_the_host_gave_counts_instead_of_seven_days() -> None:
    """Claude Code said thirty days; another host may say one hour."""
    month = every("0 * * * *", first_seen=NOW - 20 * DAY, max_age=30 * DAY)
    assert judged(month, NOW + 3 * HOUR, scheduler=CLAUDE).qualifies
    assert not judged(month.replace(max_age=None), NOW + 3 * HOUR, scheduler=CLAUDE).qualifies
    assert not judged(month.replace(first_seen=NOW - 30 * DAY), NOW + 3 * HOUR, scheduler=CLAUDE).qualifies
    assert not judged(every("0 * * * *", first_seen=NOW, max_age=HOUR - 1), NOW + 3 * HOUR).qualifies
    assert judged(every("0 * * * *", first_seen=NOW, max_age=HOUR), NOW + 3 * HOUR).qualifies


def test_a_wake_that_fires_once_has_no_age() -> None:
    """Only recurring wakes end by age."""
    assert judged(once("20 21 9 12 *", first_seen=NOW), "2026-12-09 21:20", now="2026-12-09 21:00").qualifies


# A scheduler that does not work


@pytest.mark.case("A57")
@BOTH
def test_with_the_scheduler_off_nothing_qualifies_and_the_reason_says_so(evidence: str) -> None:
    """CLAUDE_CODE_DISABLE_CRON: wakes are still listed and none will come."""
    off = Scheduler(works="none", why="its scheduler is switched off (CLAUDE_CODE_DISABLE_CRON)")
    for wake in (every("* * * * *"), once("1 21 * * *"), once("1 21 * * *", kind="self_paced", fires_at=NOW + 60)):
        finding = judged(wake, scheduler=off, evidence=evidence)
        assert not finding.qualifies
        assert finding.why == "its scheduler is switched off (CLAUDE_CODE_DISABLE_CRON)"
    assert judged(once("1 21 * * *"), scheduler=Scheduler(works="none")).why == "its scheduler is off"
    assert suggest(NOW, NOW + HOUR, off, LONDON, evidence) == ""


@pytest.mark.case("BR-064")
def test_on_a_host_that_delivers_no_wakes_a_listed_one_is_no_wake() -> None:
    """Behind an editor's adapter the list names a wake every five minutes and nothing ever delivers it."""
    adapter = Scheduler(works="none", why="sessions run through an adapter get no wakes")
    chosen, findings = judge_wakes(
        [every("*/5 * * * *")], now=NOW, deadline=NOW + HOUR, scheduler=adapter, zone=LONDON, evidence="evidence"
    )
    assert chosen is None
    assert findings[0].why == "sessions run through an adapter get no wakes"


@BOTH
def test_where_only_single_wakes_keep_the_session_a_recurring_one_does_not_qualify(evidence: str) -> None:
    """`claude -p` stays for a wake that fires once and leaves with a recurring one pending."""
    script = Scheduler(works="non_recurring", why="`claude -p` leaves with a recurring wake pending")
    assert judged(every("*/5 * * * *"), scheduler=script, evidence=evidence).why == script.why
    assert judged(once("20 21 * * *"), scheduler=script, evidence=evidence).qualifies
    assert judged(once("20 21 * * *", kind="self_paced"), scheduler=script, evidence=evidence).qualifies


# Choosing


@BOTH
def test_of_the_qualifying_wakes_the_earliest_is_chosen(evidence: str) -> None:
    """Whatever their order, and past one that is earlier and does not qualify."""
    wakes = [
        once("24 21 * * *").replace(id="late"),
        once("10 21 * * *").replace(id="early"),
        once("5 21 * * MON").replace(id="unreadable"),
        once("17 21 * * *").replace(id="middle"),
    ]
    for order in (wakes, wakes[::-1]):
        chosen, findings = judge_wakes(
            order, now=NOW, deadline=at("2026-11-30 21:25"), scheduler=PLAIN, zone=LONDON, evidence=evidence
        )
        assert chosen is not None
        assert chosen.id == "early"
        assert [finding.id for finding in findings] == [wake.id for wake in order]


def test_of_two_wakes_at_one_time_the_surer_is_chosen() -> None:
    """Both at 21:10, one of them possibly late: the exact one is the look that is kept."""
    recurring, single = every("10 * * * *").replace(id="a"), once("10 21 * * *").replace(id="b")
    chosen, _ = judge_wakes(
        [recurring, single], now=NOW, deadline=NOW + HOUR, scheduler=CLAUDE, zone=LONDON, evidence="evidence"
    )
    assert chosen is not None
    assert chosen.id == "b"


def test_without_wakes_nothing_is_chosen() -> None:
    """An empty list gives no wake and no finding."""
    assert judge_wakes((), now=NOW, deadline=NOW + HOUR, scheduler=PLAIN, zone=LONDON, evidence="evidence") == (
        None,
        (),
    )


# Why not, in words


@pytest.mark.parametrize(
    "wake, why",
    [
        (once("0 9 * * *"), "fires Tue 09:00, 11 h 35 min after 21:25"),
        (once("26 21 * * *"), "fires 21:26, 1 minute after 21:25"),
        (once("0 9 25 12 *"), "fires 2026-12-25 09:00, 587 h 35 min after 21:25"),
        (once("0 9 * * MON"), "cannot be read: day of week: MON is no number"),
        (once("@hourly"), "cannot be read: one field instead of five"),
        (once(""), "cannot be read: no fields instead of five"),
    ],
)
def test_a_rejected_wake_says_in_one_clause_what_is_wrong(wake: Wake, why: str) -> None:
    """When it fires and by how much that is too late, or what in it cannot be read."""
    assert judged(wake).why == why


def test_a_far_fire_is_told_with_its_local_date() -> None:
    """Two in the night of the 25th in Kolkata is the 24th in UTC: the person's own date is shown."""
    zone = ZoneOf(ZoneInfo("Asia/Kolkata"))
    finding = judge_wake(
        once("0 2 25 12 *"), now=NOW, deadline=NOW + HOUR, scheduler=PLAIN, zone=zone, evidence="evidence"
    )
    assert finding.why.startswith("fires 2026-12-25 02:00, ")


# What to suggest


@BOTH
@pytest.mark.parametrize("scheduler", [PLAIN, CLAUDE, QWEN], ids=["none", "claude_code", "qwen_code"])
@pytest.mark.parametrize("works", ["all", "non_recurring"])
def test_what_is_suggested_qualifies_whatever_the_jitter(scheduler: Scheduler, works: str, evidence: str) -> None:
    """The call is read back and judged, now and a minute on, in 500 random situations and around a change of clocks."""
    rng = random.Random(8)
    scheduler = scheduler.replace(works=works)
    suggested = 0
    for _ in range(500):
        now = rng.choice((NOW, at("2026-10-25 00:00"), at("2027-03-28 00:00"))) + rng.randrange(3 * HOUR)
        by = now + rng.randrange(70 * MINUTE)
        call = suggest(now, by, scheduler, LONDON, evidence)
        if not call:
            assert by - now < 4 * MINUTE or evidence == "evidence"
            continue
        suggested += 1
        words = call.split('"')
        if call.startswith("CronCreate with cron "):
            assert works == "all"
            assert words[2] == " and recurring true"
            wake = every(words[1], first_seen=now)
        else:
            assert call.startswith("ScheduleWakeup with delaySeconds ")
            delay = int(call.split()[-1])
            assert 60 <= delay <= 3_600
            fires = now + delay
            wake = once(
                f"{(fires + LONDON.offset(fires)) // 60 % 60} {(fires + LONDON.offset(fires)) // HOUR % 24} * * *",
                kind="self_paced",
                first_seen=now,
                fires_at=fires if evidence == "evidence" else None,
            )
        assert judged(wake, by, now=now, scheduler=scheduler, evidence=evidence).qualifies, (call, now, by)
    assert suggested > 400


@pytest.mark.parametrize(
    "minutes, works, call",
    [
        (55, "all", 'CronCreate with cron "*/30 * * * *" and recurring true'),
        (31, "all", 'CronCreate with cron "*/20 * * * *" and recurring true'),
        (25, "all", 'CronCreate with cron "*/15 * * * *" and recurring true'),
        (19, "all", 'CronCreate with cron "*/12 * * * *" and recurring true'),
        (16, "all", 'CronCreate with cron "*/10 * * * *" and recurring true'),
        (10, "all", 'CronCreate with cron "*/6 * * * *" and recurring true'),
        (9, "all", 'CronCreate with cron "*/5 * * * *" and recurring true'),
        (8, "all", "ScheduleWakeup with delaySeconds 300"),
        (6, "all", "ScheduleWakeup with delaySeconds 240"),
        (4, "all", "ScheduleWakeup with delaySeconds 120"),
        (55, "non_recurring", "ScheduleWakeup with delaySeconds 3000"),
        (720, "non_recurring", "ScheduleWakeup with delaySeconds 3600"),
        (2, "all", "ScheduleWakeup with delaySeconds 60"),
        (1, "all", ""),
        (0, "all", ""),
        (-5, "all", ""),
    ],
)
def test_the_call_suggested_has_the_fewest_turns_that_are_still_in_time(minutes: int, works: str, call: str) -> None:
    """With jitter up to half the interval: 30 minutes fit into 55, and less room asks for shorter ones."""
    scheduler = CLAUDE.replace(works=works)
    assert suggest(NOW, NOW + minutes * MINUTE, scheduler, LONDON, "evidence") == call


def test_without_jitter_the_interval_may_fill_the_room() -> None:
    """By the recorded rule every 20 minutes is in time for a deadline in 21, and a minute less is not."""
    assert '"*/20 * * * *"' in suggest(NOW, NOW + 21 * MINUTE, CLAUDE, LONDON, "nominal")
    assert '"*/15 * * * *"' in suggest(NOW, NOW + 21 * MINUTE - 1, CLAUDE, LONDON, "nominal")
    assert '"*/20 * * * *"' in suggest(NOW, NOW + 21 * MINUTE, PLAIN, LONDON, "evidence")
    assert '"*/15 * * * *"' in suggest(NOW, NOW + 21 * MINUTE - 1, PLAIN, LONDON, "evidence")


def test_a_delay_that_the_hosts_rounding_makes_too_long_is_not_suggested() -> None:
    """Asked at ten seconds past, sixty seconds are rounded up to the second full minute: in time for it only."""
    assert suggest(NOW + 10, NOW + 120, CLAUDE, LONDON, "evidence") == "ScheduleWakeup with delaySeconds 60"
    assert suggest(NOW + 10, NOW + 119, CLAUDE, LONDON, "evidence") == ""


def test_the_same_wakes_are_judged_the_same_twice() -> None:
    """A finding depends on what is given and on nothing else."""
    wakes = [every("*/7 * * * *", fires_at=NOW + 500, fires_said_at=NOW), once("20 21 * * *"), once("x")]
    answers = {
        judge_wakes(wakes, now=NOW, deadline=NOW + HOUR, scheduler=CLAUDE, zone=LONDON, evidence="evidence")
        for _ in range(2)
    }
    assert len(answers) == 1


def test_the_shortcut_over_dialects_changes_no_finding() -> None:
    """Where no clock changes, one dialect is asked for all; each asked alone gives the same interval."""
    rng = random.Random(5)
    for _ in range(300):
        schedule = rng.choice(
            ("*/7 * * * *", "0 9 * * *", "15 */3 * * 1-5", "0 9 1 * *", "30 1 * * *", "*/45 0-3 * * *")
        )
        now = at(rng.choice(("2026-10-20 00:00", "2027-03-24 00:00"))) + rng.randrange(8 * DAY)
        word = next_fire(parse(schedule), now - HOUR, LONDON)
        assert word is not None
        said = {"fires_at": word + 40, "fires_said_at": now - HOUR} if rng.random() < 0.5 else {}
        for wake in (every(schedule, **said), once(schedule, first_seen=now - 5 * MINUTE)):
            alone = [judged(wake, now=now, scheduler=CLAUDE.replace(dialects=(dialect,))) for dialect in PLAIN.dialects]
            together = judged(wake, now=now, scheduler=CLAUDE)
            assert together.earliest == min(finding.earliest for finding in alone if finding.earliest is not None)
            assert together.latest == max(finding.latest for finding in alone if finding.latest is not None)
