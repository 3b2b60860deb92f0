"""Five-field schedules: what parses, and when each dialect fires next.

Three oracles, none of which shares code with ours: a walk over every real minute (the recorded
rule), the package cronsim (Debian's cron), and a small model of how Qwen Code's parser searches.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given
from hypothesis import strategies as st

from stopwarden.clock import SystemZone, ZoneOf
from stopwarden.core.bounds import DAY, HOUR, MINUTE
from stopwarden.core.cron import DIALECTS, HORIZON, agree, date_of, interval, next_fire, parse
from stopwarden.core.errors import ScheduleError
from tests.conftest import LONDON, at


def fires(schedule: str, after: str, dialect: str = "minute", zone: str = "Europe/London", count: int = 1) -> list[str]:
    """The next fires as local readings with their offset, such as "2026-10-25 01:30+0100"."""
    there, found = ZoneOf(ZoneInfo(zone)), []
    instant: int | None = int(datetime.fromisoformat(after).timestamp()) if "+" in after else at(after, zone)
    for _ in range(count):
        assert instant is not None
        instant = next_fire(parse(schedule), instant, there, dialect)
        found.append(str(instant) if instant is None else shown(instant, zone))
    return found


def shown(instant: int, zone: str = "Europe/London") -> str:
    return datetime.fromtimestamp(instant, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M%z")


# What parses


@pytest.mark.case("A59")
@pytest.mark.parametrize(
    "schedule, expected",
    [
        ("*/15 * * * *", "2026-11-30 21:15+0000"),
        ("1,15,30 * * * *", "2026-11-30 21:01+0000"),
        ("5-10 * * * *", "2026-11-30 21:05+0000"),
        ("0 9 * * 1-5", "2026-12-01 09:00+0000"),
    ],
)
def test_the_four_plain_forms_are_read(schedule: str, expected: str) -> None:
    """Steps, lists, ranges and weekdays parse, and each fires at its first match."""
    assert fires(schedule, "2026-11-30 21:00") == [expected]


@pytest.mark.case("A60")
def test_a_stepped_range_counts_from_its_start() -> None:
    """A range with a step gives 10, 30 and 50, and nothing else in the hour."""
    found = fires("10-50/20 * * * *", "2026-11-30 20:59", count=4)
    assert [text[11:16] for text in found] == ["21:10", "21:30", "21:50", "22:10"]


@pytest.mark.case("A61")
@pytest.mark.parametrize("sunday", ["0", "7", "0,7", "7-7"])
def test_sunday_is_0_and_7(sunday: str) -> None:
    """Both numbers of Sunday mean the same day."""
    assert fires(f"0 9 * * {sunday}", "2026-11-30 21:00") == ["2026-12-06 09:00+0000"]


def test_a_range_of_weekdays_may_end_with_sunday_as_7() -> None:
    """Friday to Sunday written 5-7 is Friday, Saturday, Sunday."""
    found = fires("0 9 * * 5-7", "2026-11-30 21:00", count=4)
    assert [text[8:10] for text in found] == ["04", "05", "06", "11"]


@pytest.mark.case("A62")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_with_both_day_fields_restricted_either_is_enough(dialect: str) -> None:
    """The 13th or any Friday: from 30 November these are 4, 11, 13 and 18 December."""
    found = fires("0 0 13 * 5", "2026-11-30 21:00", dialect, count=4)
    assert [text[5:10] for text in found] == ["12-04", "12-11", "12-13", "12-18"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_with_one_day_field_restricted_that_one_decides(dialect: str) -> None:
    """A lone day of month, or a lone weekday, is not widened by the other field's star."""
    assert fires("0 0 13 * *", "2026-11-30 21:00", dialect) == ["2026-12-13 00:00+0000"]
    assert fires("0 0 * * 5", "2026-11-30 21:00", dialect) == ["2026-12-04 00:00+0000"]


@pytest.mark.case("A63")
def test_a_stepped_star_in_a_day_field_takes_the_later_of_its_two_readings() -> None:
    """Odd days and Fridays: as a wildcard both must hold (11 December), as a restriction either (1 December)."""
    assert fires("0 0 */2 * 5", "2026-11-30 21:00", "qwen_code") == ["2026-12-01 00:00+0000"]
    assert fires("0 0 */2 * 5", "2026-11-30 21:00", "debian") == ["2026-12-11 00:00+0000"]
    assert fires("0 0 */2 * 5", "2026-11-30 21:00", "minute") == ["2026-12-11 00:00+0000"]


def test_the_later_reading_is_the_later_one_whichever_it_is() -> None:
    """A stepped star in the weekday field is doubtful too, and the doubt costs the earlier fire."""
    assert fires("0 0 1 * */6", "2026-11-30 21:00", "qwen_code") == ["2026-12-01 00:00+0000"]
    assert fires("0 0 1 * */6", "2026-11-30 21:00", "debian") == ["2027-05-01 00:00+0100"]
    assert fires("0 0 1 * */6", "2026-11-30 21:00", "minute") == ["2027-05-01 00:00+0100"]


@pytest.mark.case("BR-154")
@pytest.mark.parametrize(
    "field, debian, alone",
    [("0/2", "0246", "0"), ("7/2", "0", "0"), ("1/3", "014", "1"), ("6/2", "6", "6"), ("*/2", "0246", "0246")],
)
def test_a_step_on_a_single_weekday_is_read_per_dialect(field: str, debian: str, alone: str) -> None:
    """Debian runs on to 7, which is Sunday; Qwen Code takes the value alone. The table is our documented rule."""
    for dialect, expected in (("debian", debian), ("qwen_code", alone)):
        found = fires(f"0 12 * * {field}", "2026-11-30 21:00", dialect, count=7)
        days = {datetime.fromisoformat(text[:10]).isoweekday() % 7 for text in found}
        assert "".join(str(day) for day in sorted(days)) == expected


def test_a_step_on_a_single_minute_is_doubtful_so_the_later_fire_counts() -> None:
    """5/15 is 5, 20, 35, 50 to Debian and 5 alone to Qwen Code; seen at 21:06 the plain rule takes 22:05."""
    assert fires("5/15 * * * *", "2026-11-30 21:06", "debian") == ["2026-11-30 21:20+0000"]
    assert fires("5/15 * * * *", "2026-11-30 21:06", "qwen_code") == ["2026-11-30 22:05+0000"]
    assert fires("5/15 * * * *", "2026-11-30 21:06", "minute") == ["2026-11-30 22:05+0000"]


@pytest.mark.parametrize(
    "schedule", ["@hourly", "@wakeup", "0 9 * * MON", "0 9 * JAN *", "0 9 L * *", "0 9 15W * *", "0 9 ? * 1"]
)
@pytest.mark.case("A64")
def test_names_and_extensions_do_not_parse(schedule: str) -> None:
    """Nicknames, names of days and months, L, W and ? belong to other crons."""
    with pytest.raises(ScheduleError):
        parse(schedule)


@pytest.mark.parametrize(
    "schedule, clause",
    [
        ("0 9 * *", "four fields"),
        ("0 0 9 * * *", "six fields"),
        ("", "no fields"),
        ("   ", "no fields"),
        ("* " * 30, "30 fields"),
    ],
)
@pytest.mark.case("A65")
def test_a_wrong_number_of_fields_is_named(schedule: str, clause: str) -> None:
    """Four fields, six fields and none at all are refused, and the message counts them."""
    with pytest.raises(ScheduleError, match=clause):
        parse(schedule)


@pytest.mark.parametrize(
    "schedule",
    [
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "50-60 * * * *",
        "0-60/5 * * * *",
    ],
)
@pytest.mark.case("A66")
def test_a_value_outside_its_field_does_not_parse(schedule: str) -> None:
    """One past either end of a field is refused, alone or as the end of a range."""
    with pytest.raises(ScheduleError, match="outside"):
        parse(schedule)


@pytest.mark.parametrize("value", ["59", "0"])
def test_the_ends_of_a_field_parse(value: str) -> None:
    """The first and the last value of each field are read."""
    first = {"0": "0 0 1 1 0", "59": "59 23 31 12 7"}[value]
    assert parse(first).text == first


@pytest.mark.parametrize(
    "field",
    [
        "*/0",
        "5-1",
        "1,,2",
        "-5",
        "1-",
        "a",
        ",",
        "1,",
        ",1",
        "*/",
        "/5",
        "1/",
        "*/-1",
        "*/2/3",
        "1-2-3",
        "**",
        "*5",
        "*-5",
        "+5",
        "1.5",
        "0x5",
        "1e1",
        "*/1a",
        "5x",
        "~",
        "1–5",
        "²",
    ],
)
@pytest.mark.case("A67")
def test_a_malformed_field_does_not_parse(field: str) -> None:
    """A step of zero, a falling range, an empty list entry, a sign or a letter: none is guessed at."""
    for place in range(5):
        fields = ["*"] * 5
        fields[place] = field
        with pytest.raises(ScheduleError):
            parse(" ".join(fields))


@pytest.mark.case("A68")
@pytest.mark.parametrize("schedule", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_date_that_never_comes_parses_and_never_fires(schedule: str) -> None:
    """The thirty-first of February is a date like any other, without a day in this or any other year."""
    parsed = parse(schedule)
    for dialect in DIALECTS:
        assert next_fire(parsed, at("2026-11-30 21:00"), LONDON, dialect, within=50 * HORIZON) is None


@pytest.mark.case("A69")
@pytest.mark.parametrize("schedule", ["  5 9 * * *", "5 9 * * *   ", "5  9   * *  *", "\t5\t9 *\t* *"])
def test_extra_blanks_and_tabs_are_no_matter(schedule: str) -> None:
    """Leading, trailing and doubled blanks, and tabs, separate fields like one blank."""
    assert parse(schedule) == parse("5 9 * * *")


@pytest.mark.case("A70")
def test_a_very_long_expression_is_refused_without_being_read() -> None:
    """Ten thousand characters cost no more than a length check; two hundred are still read."""
    long = "0," * 4_990 + "0 * * * *"
    began = time.process_time()
    for _ in range(1_000):
        parse("1,2,3 4,5 * * 1-5")
    read = time.process_time()
    for _ in range(1_000):
        with pytest.raises(ScheduleError, match="200 characters"):
            parse(long)
    assert time.process_time() - read < 10 * (read - began)
    fits = ",".join(["11"] * 64) + " * * * *"
    assert len(fits) == 199
    assert parse(fits + " ") == parse("11 * * * *").replace(text=fits)
    with pytest.raises(ScheduleError, match="200 characters"):
        parse(fits + "  ")


@pytest.mark.case("A71")
@pytest.mark.parametrize(
    "schedule",
    [
        "٥ * * * *",
        "5 * * * ٥",
        "5\x00 * * * *",
        "\x005 * * * *",
        "5 * * * *\x00",
        "5\u00a0* * * *",
        "5\n* * * *",
        "5 * * * *\n",
        "５ * * * *",
        "5 * * * *\ud800",
        "5\x1f* * * *",
    ],
)
def test_only_plain_digits_and_blanks_are_taken(schedule: str) -> None:
    """Digits of other scripts, NUL, line breaks, no-break spaces and lone surrogates are refused."""
    with pytest.raises(ScheduleError):
        parse(schedule)


@pytest.mark.parametrize("value", [None, 5, 5.0, True, b"* * * * *", ["*"] * 5, {"cron": "* * * * *"}])
def test_what_is_no_text_is_refused(value: object) -> None:
    """Hosts send numbers, lists and nulls where an expression should be."""
    with pytest.raises(ScheduleError, match="not text"):
        parse(value)


@given(st.text(alphabet="0123456789*/-, \tL@MON\x00٥", max_size=40))
def test_any_text_parses_or_is_refused(text: str) -> None:
    """Whatever is written, the answer is a schedule that can be searched, or a ScheduleError."""
    try:
        schedule = parse(text)
    except ScheduleError:
        return
    found = next_fire(schedule, at("2026-11-30 21:00"), LONDON)
    assert found is None or found > at("2026-11-30 21:00")


def test_an_error_says_what_to_write_instead() -> None:
    """A person or an agent that reads the message knows the five fields and an example."""
    with pytest.raises(ScheduleError) as caught:
        parse("0 9 * * MON")
    assert "day of week: MON is no number" in str(caught.value)
    assert "*/15 * * * *" in str(caught.value)


# The next fire


@pytest.mark.case("A47")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_minute_that_begins_now_is_past(dialect: str) -> None:
    """At 21:20:00 sharp a wake for 21:20 is tomorrow's: the next fire is strictly later."""
    assert fires("20 21 * * *", "2026-11-30 21:20", dialect) == ["2026-12-01 21:20+0000"]


@pytest.mark.case("A48")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_minute_under_way_is_no_fire(dialect: str) -> None:
    """At 21:20:30 the minute 21:20 has begun and does not count; one second before it, it does."""
    assert fires("*/20 * * * *", "2026-11-30 21:20:30", dialect) == ["2026-11-30 21:40+0000"]
    assert fires("*/20 * * * *", "2026-11-30 21:19:59", dialect) == ["2026-11-30 21:20+0000"]


@pytest.mark.case("A74")
def test_fires_follow_the_zone_by_half_hours() -> None:
    """In Kolkata, 5:30 ahead, the full hour falls on the half hour of UTC."""
    found = next_fire(parse("0 * * * *"), at("2026-11-30 21:00", "UTC"), ZoneOf(ZoneInfo("Asia/Kolkata")))
    assert found == at("2026-11-30 21:30", "UTC")
    assert next_fire(parse("0 * * * *"), at("2026-11-30 21:00", "UTC"), LONDON) == at("2026-11-30 22:00", "UTC")


@pytest.mark.case("BR-151")
@pytest.mark.parametrize("process_zone", ["UTC", "America/Chicago"])
def test_the_zone_given_decides_and_not_the_zone_of_the_process(
    process_zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """14:00 in Chicago is 19:00 UTC in summer, whether the process runs in UTC or in Chicago."""
    monkeypatch.setenv("TZ", process_zone)
    time.tzset()
    try:
        found = next_fire(parse("0 14 * * *"), at("2026-07-01 00:00", "UTC"), ZoneOf(ZoneInfo("America/Chicago")))
        assert found == at("2026-07-01 19:00", "UTC")
        machine = SystemZone(os.environ)
        assert next_fire(parse("0 14 * * *"), at("2026-07-01 00:00", "UTC"), machine) == at(
            "2026-07-01 14:00", process_zone
        )
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.case("A79")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_leap_day_is_found_within_the_hour_before_it(dialect: str) -> None:
    """At 23:30 on 28 February 2028 the leap day is half an hour away, and a window of one hour holds it."""
    leap = parse("0 0 29 2 *")
    now = at("2028-02-28 23:30")
    assert next_fire(leap, now, LONDON, dialect, within=HOUR) == at("2028-02-29 00:00")
    assert next_fire(leap, now, LONDON, dialect, within=30 * MINUTE) == at("2028-02-29 00:00")
    assert next_fire(leap, now, LONDON, dialect, within=30 * MINUTE - 1) is None


def test_a_fire_more_than_a_year_away_is_none_unless_asked_for() -> None:
    """From 2026 the next leap day is too far; a caller with a wider horizon finds it, across a century too."""
    leap = parse("0 0 29 2 *")
    assert next_fire(leap, at("2026-11-30 21:00"), LONDON) is None
    assert next_fire(leap, at("2026-11-30 21:00"), LONDON, within=3 * HORIZON) == at("2028-02-29 00:00")
    assert next_fire(leap, at("2096-03-01 00:00"), LONDON, within=9 * HORIZON) == at("2104-02-29 00:00")
    assert next_fire(parse("0 0 1 12 *"), at("2026-12-01 00:00"), LONDON) == at("2027-12-01 00:00")
    assert next_fire(leap, at("2027-02-28 00:00"), LONDON) == at("2028-02-29 00:00")  # 366 days
    assert next_fire(leap, at("2027-02-28 00:00") - 1, LONDON) is None


@pytest.mark.parametrize(
    "year, leaps", [(1996, True), (2000, True), (2026, False), (2028, True), (2100, False), (2400, True)]
)
def test_leap_years_are_those_of_the_calendar(year: int, leaps: bool) -> None:
    """Every fourth year, no full century, every fourth century: before 1 March comes the 29th or the 28th."""
    found = next_fire(parse("0 12 29 2 *"), at(f"{year}-02-28 12:00"), LONDON, within=DAY)
    assert found == (at(f"{year}-02-29 12:00") if leaps else None)
    assert next_fire(parse("0 12 1 3 *"), at(f"{year}-02-28 12:00"), LONDON) == at(f"{year}-03-01 12:00")


@pytest.mark.case("A80")
def test_the_new_year_is_a_quarter_of_an_hour_away() -> None:
    """At ten to midnight on New Year's Eve a wake at 00:05 on 1 January fires in fifteen minutes."""
    now = at("2026-12-31 23:50")
    assert next_fire(parse("5 0 1 1 *"), now, LONDON) == now + 15 * MINUTE


def test_every_day_from_1970_to_2500_has_its_date() -> None:
    """Day numbers turn into dates as the calendar has them, century by century."""
    for number in range((date(2500, 1, 1) - date(1970, 1, 1)).days):
        day = date.fromordinal(719_163 + number)
        assert date_of(number) == (day.year, day.month, day.day)


def test_a_schedule_has_as_many_readings_as_doubts_demand() -> None:
    """One where nothing is open, two for one open question, four for two."""
    doubts = {
        "0 9 * * *": 1,
        "0 9 1 * 5": 1,
        "0 9 */2 * *": 1,
        "0 9 */2 * 5": 2,
        "5/15 9 * * *": 2,
        "5/15 9 */2 * 5": 4,
    }
    assert {text: len(parse(text).readings) for text in doubts} == doubts


# The nights on which clocks change


@pytest.mark.case("A75")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_autumn_the_first_half_past_one_comes_first(dialect: str) -> None:
    """London, 25 October 2026, seen at 01:10 summer time: 01:30 is twenty minutes away in every dialect."""
    assert fires("30 1 * * *", "2026-10-25 01:10+01:00", dialect) == ["2026-10-25 01:30+0100"]


@pytest.mark.case("A76")
def test_in_autumn_the_second_half_past_one_is_a_fire_too() -> None:
    """Seen at 01:40 summer time, the plain rule fires again at 01:30 winter time, fifty real minutes later."""
    assert fires("30 1 * * *", "2026-10-25 01:40+01:00") == ["2026-10-25 01:30+0000"]


@pytest.mark.case("BR-155")
@pytest.mark.parametrize("dialect", ["debian", "qwen_code"])
def test_a_daily_job_fires_once_in_the_repeated_hour(dialect: str) -> None:
    """Debian and Qwen Code take the first 01:30 only, also when asked within the second one."""
    assert fires("30 1 * * *", "2026-10-25 00:00", dialect, count=2) == [
        "2026-10-25 01:30+0100",
        "2026-10-26 01:30+0000",
    ]
    assert fires("50 1 * * *", "2026-10-25 01:40+00:00", dialect) == ["2026-10-26 01:50+0000"]


@pytest.mark.case("A77")
def test_in_spring_a_time_that_does_not_exist_is_passed_over() -> None:
    """London, 28 March 2027, seen at 00:40: there is no 01:30 that night, the plain rule waits for the next."""
    assert fires("30 1 * * *", "2027-03-28 00:40") == ["2027-03-29 01:30+0100"]
    assert fires("30 1 * * *", "2027-03-28 00:40", "qwen_code") == ["2027-03-29 01:30+0100"]


@pytest.mark.case("BR-155")
def test_debian_fires_a_skipped_time_at_the_first_instant_after_the_gap() -> None:
    """New York, 8 March 2026: 02:30 does not exist, so the job runs at 03:00 summer time, and once."""
    found = fires("30 2 * * *", "2026-03-07 12:00", "debian", "America/New_York", count=2)
    assert found == ["2026-03-08 03:00-0400", "2026-03-09 02:30-0400"]
    assert fires("0,30 1 * * *", "2027-03-28 00:40", "debian", count=2) == [
        "2027-03-28 02:00+0100",
        "2027-03-29 01:00+0100",
    ]


@pytest.mark.case("A78")
@pytest.mark.parametrize("dialect", ["minute", "debian"])
def test_an_hourly_wake_fires_every_real_hour_across_both_changes(dialect: str) -> None:
    """No hour is left out and none is doubled, in the short night and in the long one."""
    for evening in ("2026-10-24 20:30", "2027-03-27 20:30"):
        instants = [at(evening) + 30 * MINUTE + hour * HOUR for hour in range(12)]
        assert fires("0 * * * *", evening, dialect, count=12) == [shown(instant) for instant in instants]


def test_qwen_codes_hourly_wake_is_two_real_hours_apart_in_autumn() -> None:
    """Its parser passes over the repeated hour: after 01:00 summer time comes 02:00 winter time."""
    found = fires("0 * * * *", "2026-10-25 00:30+01:00", "qwen_code", count=3)
    assert found == ["2026-10-25 01:00+0100", "2026-10-25 02:00+0000", "2026-10-25 03:00+0000"]
    assert fires("*/20 * * * *", "2026-10-25 01:10+00:00", "qwen_code") == ["2026-10-25 02:00+0000"]


@pytest.mark.parametrize(
    "zone, after, schedule, expected",
    [
        ("America/Santiago", "2026-09-05 23:50", "0 * * * *", "2026-09-06 01:00-0300"),  # the gap is at midnight
        ("Africa/Cairo", "2026-04-23 23:50", "30 0 * * *", "2026-04-25 00:30+0300"),  # so is this one
        ("America/Havana", "2026-11-01 00:50-04:00", "30 0 * * *", "2026-11-01 00:30-0500"),  # midnight comes twice
        ("Australia/Lord_Howe", "2026-10-04 01:50", "10 2 * * *", "2026-10-05 02:10+1100"),  # half an hour is skipped
        ("Australia/Lord_Howe", "2027-04-04 01:50+11:00", "40 1 * * *", "2027-04-04 01:40+1030"),  # and repeated
        ("Asia/Kathmandu", "2026-11-30 21:00", "45 21 * * *", "2026-11-30 21:45+0545"),
        ("Pacific/Apia", "2011-12-29 23:30", "0 12 30 12 *", "2012-12-30 12:00+1400"),  # that day was left out whole
        ("America/St_Johns", "2006-10-29 00:00-02:30", "30 23 * * *", "2006-10-28 23:30-0330"),  # back over midnight
    ],
)
def test_the_plain_rule_holds_in_zones_with_odd_changes(zone: str, after: str, schedule: str, expected: str) -> None:
    """Changes at midnight, by half an hour, by a whole day, and back into yesterday."""
    instant = datetime.fromisoformat(after)
    start = int((instant if instant.tzinfo else instant.replace(tzinfo=ZoneInfo(zone))).timestamp())
    found = next_fire(parse(schedule), start, ZoneOf(ZoneInfo(zone)), within=2 * HORIZON)
    assert found is not None
    assert shown(found, zone) == expected


def test_the_interval_spans_the_dialects() -> None:
    """A wake at 01:30 in the skipped hour comes at 02:00 for Debian and a day later for the others."""
    now = at("2027-03-28 00:40")
    assert interval(parse("30 1 * * *"), now, LONDON, DIALECTS) == (at("2027-03-28 02:00"), at("2027-03-29 01:30"))
    assert interval(parse("30 1 * * *"), now, LONDON, ("debian",)) == (at("2027-03-28 02:00"), at("2027-03-28 02:00"))


def test_one_dialect_without_a_fire_leaves_no_latest_time() -> None:
    """What may never come is not promised: 5/30 on a day of February is the 5th alone to one of them."""
    schedule = parse("0 0 30 2 */6")
    assert interval(schedule, at("2026-11-30 21:00"), LONDON, ("debian",)) == (None, None)
    either = at("2027-02-06 00:00")
    assert interval(schedule, at("2026-11-30 21:00"), LONDON, ("debian", "qwen_code")) == (either, None)
    assert next_fire(schedule, at("2026-11-30 21:00"), LONDON, "minute") is None


def test_dialects_are_known_to_agree_only_well_away_from_a_change_of_clocks() -> None:
    """From a day before the stretch to two days after it no clock may change, nor the stretch be long."""
    change, daily = at("2026-10-25 01:00", fold=1), parse("30 1 * * *")
    assert agree(daily, change - 4 * DAY, change - 2 * DAY - 1, LONDON)
    assert not agree(daily, change - 4 * DAY, change - 2 * DAY, LONDON)
    assert agree(daily, change + DAY, change + 2 * DAY, LONDON)
    assert not agree(daily, change + DAY - 1, change + 2 * DAY, LONDON)
    assert agree(daily, change + DAY, change + 5 * DAY, LONDON)
    assert not agree(daily, change + DAY, change + 5 * DAY + 1, LONDON)
    assert not agree(parse("5/15 * * * *"), change + DAY, change + 2 * DAY, LONDON)


def test_an_unknown_dialect_is_refused() -> None:
    """A misspelt dialect is an error of the caller, not a schedule that never fires."""
    with pytest.raises(ScheduleError, match="minute, debian, qwen_code"):
        next_fire(parse("* * * * *"), 0, LONDON, "vixie")


# Against the oracles

BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


class Field:
    """One random field: its text and, apart from our parser, what it means."""

    def __init__(self, text: str, to_end: set[int], alone: set[int]) -> None:
        self.text, self.to_end, self.alone = text, to_end, alone


def random_field(rng: random.Random, low: int, high: int, *, stars: float) -> Field:
    if rng.random() < stars:
        every = set(range(low, high + 1))
        return Field("*", every, every)
    text, to_end, alone = [], set[int](), set[int]()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        start = rng.randint(low, high)
        end = rng.randint(start, high)
        step = rng.choice((2, 3, 5, 10, 15, 20, 30, 70))
        shape = rng.choice(("value", "value", "range", "star step", "range step", "value step"))
        if shape == "value":
            text.append(f"{start:02d}" if rng.random() < 0.1 else str(start))
            narrow = wide = {start}
        elif shape == "range":
            text.append(f"{start}-{end}")
            narrow = wide = set(range(start, end + 1))
        elif shape == "star step":
            text.append(f"*/{step}")
            narrow = wide = set(range(low, high + 1, step))
        elif shape == "range step":
            text.append(f"{start}-{end}/{step}")
            narrow = set(range(start, end + 1, step))
            wide = narrow if start != end else set(range(start, high + 1, step))
        else:
            text.append(f"{start}/{step}")
            narrow, wide = {start}, set(range(start, high + 1, step))
        to_end |= wide
        alone |= narrow
    return Field(",".join(text), to_end, alone)


def random_fields(rng: random.Random) -> list[Field]:
    stars = (0.35, 0.5, 0.7, 0.85, 0.6)
    fields = [random_field(rng, *bounds, stars=star) for bounds, star in zip(BOUNDS, stars, strict=True)]
    if rng.random() < 0.5:
        fields[2] = fields[3] = Field("*", set(range(32)), set(range(32)))
    return fields


Minute = tuple[int, int, int, int, int, int]


def real_minutes(start: str, days: int, zone: str) -> list[Minute]:
    """Every real minute of some days: the instant and its local minute, hour, day, month and weekday."""
    there, first = ZoneInfo(zone), at(start, zone)
    found = []
    for instant in range(first, first + days * DAY, MINUTE):
        local = datetime.fromtimestamp(instant, there)
        found.append((instant, local.minute, local.hour, local.day, local.month, local.isoweekday() % 7))
    return found


def first_matching_minute(fields: list[Field], minutes: list[Minute], after: int) -> int | None:
    """The recorded rule, one minute at a time; of several readings the one that fires last."""
    texts = [field.text for field in fields]
    all_must = {texts[2][0] == "*" or texts[4][0] == "*", texts[2] == "*" or texts[4] == "*"}
    answers = []
    for alone, both in itertools.product((False, True), all_must):
        of_minute, of_hour, of_day, of_month, of_week = (field.alone if alone else field.to_end for field in fields)
        for instant, minute, hour, day, month, weekday in minutes:
            if minute in of_minute and hour in of_hour and month in of_month and instant > after:
                day_matches = day in of_day
                week_matches = weekday in of_week or (weekday == 0 and 7 in of_week)
                if (day_matches and week_matches) if both else (day_matches or week_matches):
                    answers.append(instant)
                    break
        else:
            return None
    return max(answers)


@pytest.mark.case("A73")
def test_ten_thousand_random_expressions_fire_at_their_first_matching_minute() -> None:
    """A walk over every real minute, in four zones and on nights of change, finds the very same fire."""
    rng = random.Random(73)
    stretches = [
        ("2026-11-30 12:00", "Europe/London"),
        ("2026-10-24 12:00", "Europe/London"),
        ("2027-03-27 12:00", "America/New_York"),
        ("2026-12-30 12:00", "Asia/Kolkata"),
        ("2028-02-27 12:00", "America/New_York"),
        ("2026-10-03 12:00", "Australia/Lord_Howe"),
        ("2027-03-13 12:00", "America/New_York"),
        ("2026-10-31 12:00", "America/Havana"),
    ]
    found = 0
    for start, zone in stretches:
        minutes = real_minutes(start, 3, zone)
        there, last = ZoneOf(ZoneInfo(zone)), minutes[-1][0]
        for _ in range(1_250):
            fields = random_fields(rng)
            text = " ".join(field.text for field in fields)
            skip = rng.randrange(1_440)
            after = minutes[skip][0] + rng.choice((0, 0, 1, 30, 59))
            expected = first_matching_minute(fields, minutes[skip:], after)
            got = next_fire(parse(text), after, there, within=last - after)
            assert got == expected, (text, zone, shown(after, zone))
            found += expected is not None
    assert found > 5_000


CHANGES = [
    ("Europe/London", ("2026-03-28", "2026-10-24", "2027-03-27", "2027-10-30")),
    ("America/New_York", ("2026-03-07", "2026-10-31", "2027-03-13", "2027-11-06")),
    ("Australia/Sydney", ("2026-04-04", "2026-10-03", "2027-04-03", "2027-10-02")),
    ("Asia/Kolkata", ("2026-10-24",)),
    ("America/Santiago", ("2026-04-04", "2026-09-05")),
]


def starts(rng: random.Random, per_day: int) -> list[tuple[str, int]]:
    """Instants around each change of the clock, within the hour of the change more often than not."""
    return [
        (zone, at(day, zone) + (rng.randrange(2 * DAY) if rng.random() < 0.4 else DAY + rng.randrange(6 * HOUR)))
        for zone, days in CHANGES
        for day in days
        for _ in range(per_day)
    ]


def debian_says(schedule: str, after: int, zone: str) -> int | None:
    """The next fire by cronsim; within a repeated hour it may name a time already past, which we pass over."""
    try:
        fires = CronSim(schedule, datetime.fromtimestamp(after, ZoneInfo(zone)))
        for fire in fires:
            if (instant := int(fire.timestamp())) > after:
                return instant
    except CronSimError:  # it refuses dates that never come; we read them and find nothing
        pass
    return None


def test_debian_agrees_with_cronsim_on_the_days_of_change() -> None:
    """Random expressions over the changes of 2026 and 2027 in five zones, fixed times above all."""
    rng = random.Random(2026)
    for zone, after in starts(rng, 150):
        fields = random_fields(rng)
        if rng.random() < 0.6:  # a time in the hours around the change
            fields[0], fields[1] = (Field(str(rng.randrange(n)), set(), set()) for n in (60, 4))
        text = " ".join(field.text for field in fields)
        got = next_fire(parse(text), after, ZoneOf(ZoneInfo(zone)), "debian", within=20 * HORIZON)
        assert got == debian_says(text, after, zone), (text, zone, shown(after, zone))


def qwen_code_says(fields: list[Field], after: int, zone: str) -> int | None:
    """How Qwen Code's parser searches, told again in our own words.

    It takes the wall clock's reading, drops the seconds, and adds one to the minute field of a
    JavaScript date until all fields match. Each addition goes through local time: a reading that does
    not exist moves on by the width of the gap, and one that exists twice means the first. A candidate
    that is already past (asked within the repeated hour it starts from the first one) is no promise.
    """
    there = ZoneInfo(zone)

    def settled(local: datetime) -> datetime:
        return local.replace(tzinfo=there, fold=0).astimezone(UTC).astimezone(there)

    of_minute, of_hour, of_day, of_month, of_week = (field.alone for field in fields)
    lone_star = "*" in (fields[2].text, fields[4].text)
    candidate = settled(datetime.fromtimestamp(after, there).replace(tzinfo=None, second=0))
    for _ in range(3 * 24 * 60):
        candidate = settled(candidate.replace(tzinfo=None) + timedelta(minutes=1))
        if candidate.minute not in of_minute or candidate.hour not in of_hour or candidate.month not in of_month:
            continue
        weekday = candidate.isoweekday() % 7
        day_matches, week_matches = candidate.day in of_day, weekday in of_week or (weekday == 0 and 7 in of_week)
        if (day_matches and week_matches) if lone_star else (day_matches or week_matches):
            instant = int(candidate.timestamp())
            if instant > after:
                return instant
    return None


def test_qwen_code_agrees_with_a_model_of_its_parser_on_the_days_of_change() -> None:
    """The dialect and a walk through local time, minute by minute as the host does it, agree."""
    rng = random.Random(24)
    found = 0
    for zone, after in starts(rng, 12):
        fields = random_fields(rng)
        if rng.random() < 0.6:
            minute, hour = rng.randrange(60), rng.randrange(4)
            fields[0] = Field(f"{minute}/20", set(), {minute})
            fields[1] = Field(str(hour), {hour}, {hour}) if rng.random() < 0.7 else Field("*", set(), set(range(24)))
        text = " ".join(field.text for field in fields)
        expected = qwen_code_says(fields, after, zone)
        within = HORIZON if expected is not None else 2 * DAY
        got = next_fire(parse(text), after, ZoneOf(ZoneInfo(zone)), "qwen_code", within=within)
        assert got == expected, (text, zone, shown(after, zone))
        found += expected is not None
    assert found > 60
