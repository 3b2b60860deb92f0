"""How a person says when they are back: every spelling, every clock change, every unclear word."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stopwarden.cli.times import LONGEST, duration, instants_of, local, parse_until
from stopwarden.clock import ZoneOf
from stopwarden.core.bounds import DAY, HOUR, MINUTE
from stopwarden.core.errors import UsageError
from tests.conftest import LONDON, at

NOW = at("2026-11-30 23:05")  # a Monday

ZONES = ("Europe/London", "Asia/Kolkata", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("until 07:30", "2026-12-01 07:30"),
        ("07:30", "2026-12-01 07:30"),
        ("until 7:30", "2026-12-01 07:30"),
        ("until 7.30", "2026-12-01 07:30"),
        ("until 0730", "2026-12-01 07:30"),
        ("until 7:30am", "2026-12-01 07:30"),
        ("until 7 am", "2026-12-01 07:00"),
        ("until 7pm", "2026-12-01 19:00"),
        ("until 12am", "2026-12-01 00:00"),
        ("until 12:15 PM", "2026-12-01 12:15"),
        ("until noon", "2026-12-01 12:00"),
        ("until midnight", "2026-12-01 00:00"),
        ("until 23:06", "2026-11-30 23:06"),
        ("until tonight 23:30", "2026-11-30 23:30"),
        ("until tomorrow 07:30", "2026-12-01 07:30"),
        ("until tomorrow at 07:30", "2026-12-01 07:30"),
        ("until 07:30 tomorrow", "2026-12-01 07:30"),
        ("until 22:00 tomorrow", "2026-12-01 22:00"),
        ("until tue 07:30", "2026-12-01 07:30"),
        ("until Wednesday, 07:30", "2026-12-02 07:30"),
        ("until 07:30 on friday", "2026-12-04 07:30"),
        ("until mon 23:10", "2026-11-30 23:10"),
        ("until 2026-12-24 18:00", "2026-12-24 18:00"),
        ("until 2026-12-24T18:00", "2026-12-24 18:00"),
        ("until 24 dec 18:00", "2026-12-24 18:00"),
        ("until December 24th 2026 18:00", "2026-12-24 18:00"),
        ("till 07:30", "2026-12-01 07:30"),
    ],
)
def test_an_end_is_read_as_the_persons_own_clock_will_show_it(said: str, meant: str) -> None:
    """Times of day, days by name and dates, in either order, in the local zone."""
    assert parse_until(said.split(), NOW, LONDON).at == at(meant)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("for 8h", 8 * HOUR),
        ("8h", 8 * HOUR),
        ("for 8h30m", 8 * HOUR + 30 * MINUTE),
        ("for 8h30", 8 * HOUR + 30 * MINUTE),
        ("for 8 h 30 min", 8 * HOUR + 30 * MINUTE),
        ("for 8 hours and 30 minutes", 8 * HOUR + 30 * MINUTE),
        ("for 90m", 90 * MINUTE),
        ("for 1.5h", 90 * MINUTE),
        ("for 2d", 2 * DAY),
        ("for 1 day 1 hour", 25 * HOUR),
        ("for 60s", MINUTE),
    ],
)
def test_a_length_is_counted_from_now(said: str, seconds: int) -> None:
    """`for` takes hours, minutes and days, short or written out."""
    assert parse_until(said.split(), NOW, LONDON).at == NOW + seconds


def test_no_words_mean_until_back() -> None:
    """Away alone has no end of its own."""
    assert parse_until([], NOW, LONDON).at is None


def test_a_time_that_has_passed_today_is_tomorrow() -> None:
    """Neither the minute that runs nor the second of the call itself is a time to come."""
    assert parse_until(["until", "23:05"], NOW, LONDON).at == at("2026-12-01 23:05")
    assert parse_until(["until", "23:05"], NOW + 20, LONDON).at == at("2026-12-01 23:05")
    assert parse_until(["until", "23:05"], NOW - 1, LONDON).at == NOW


def test_a_weekday_whose_time_has_passed_is_the_one_in_a_week() -> None:
    """It is Monday 23:05, so Monday 23:00 is in a week, and Monday 23:10 is in five minutes."""
    assert parse_until(["until", "mon", "23:00"], NOW, LONDON).at == at("2026-12-07 23:00")


def test_a_date_without_a_year_is_the_next_one() -> None:
    """In December the tenth of January is next year's."""
    assert parse_until(["until", "10", "jan", "07:30"], at("2026-12-20 12:00"), LONDON).at == at("2027-01-10 07:30")


def test_an_instant_with_its_own_zone_is_taken_at_its_word() -> None:
    """A full time stamp with an offset does not depend on where the machine is."""
    assert parse_until(["until", "2026-12-01T07:30Z"], NOW, ZoneOf(ZoneInfo("Asia/Kolkata"))).at == at(
        "2026-12-01 07:30"
    )
    assert parse_until(["until", "2026-12-01T07:30+05:30"], NOW, LONDON).at == at("2026-12-01 07:30", "Asia/Kolkata")


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("until", "until 07:30"),
        ("for", "for 8h"),
        ("until 7", "`until 07:00` or `until 19:00`"),
        ("until 19", "`until 19:00` or `for 19h`"),
        ("until 12", "`until 12:00` or `for 12h`"),
        ("until 24", "`until 00:00` or `for 24h`"),
        ("until 25", "neither a day nor a time"),
        ("until 30 nov 23:05", "stopwarden away"),
        ("for 8", "`8h` for hours or `8m` for minutes"),
        ("for 8:30", "`for 8h30m` or `until 8:30`"),
        ("until tomorrow", "until tomorrow 07:30"),
        ("friday", "until friday 07:30"),
        ("until 24:00", "00:00"),
        ("until 25:00", "from 00:00 to 23:59"),
        ("until 07:60", "from 00:00 to 23:59"),
        ("until 13pm", "from 00:00 to 23:59"),
        ("until 1/12 07:30", "2026-12-01 07:30"),
        ("until next friday 07:30", "2026-12-01 07:30"),
        ("until tomorrow midnight", "until 2026-12-02 00:00"),
        ("until tue wed 07:30", "until 07:30"),
        ("until 07:30 08:30", "until 07:30"),
        ("until 2026-02-30 07:30", "until 2026-12-01 07:30"),
        ("until 2026-12-01T25:30Z", "2026-12-01T07:30Z"),
        ("until today 07:30", "until tomorrow 07:30"),
        ("until 2025-12-01 07:30", "until tomorrow 07:30"),
        ("until 2026-11-01T07:30Z", "until tomorrow 07:30"),
        ("until later", "until 07:30"),
        ("until back", "stopwarden away"),
        ("for 8h until 07:30", "8h30m"),
        ("for an hour", "8h30m"),
        ("for 30m8h", "8h30m"),
        ("for 8hays", "8h30m"),
        ("for 30s", "at least 1m"),
        ("for 0h", "at least 1m"),
        ("for 32d", "stopwarden away"),
        ("until 9999-12-31 23:00", "stopwarden away"),
        ("until ٠٧:٣٠", "until 07:30"),
    ],
)
def test_what_is_unclear_is_refused_with_what_would_be_right(said: str, right: str) -> None:
    """No guess where a wrong one costs a night: the refusal names a spelling that is clear."""
    with pytest.raises(UsageError) as refused:
        parse_until(said.split(), NOW, LONDON)
    assert right in str(refused.value)


def test_a_refusal_of_a_past_time_says_what_time_it_is_and_where() -> None:
    """The person sees at once that the machine's clock or zone is not what they thought."""
    with pytest.raises(UsageError, match=re.escape("it is 2026-11-30 23:05 (Europe/London)")):
        parse_until(["until", "2026-11-30", "22:00"], NOW, LONDON)


def test_tomorrow_after_midnight_says_which_day_is_meant() -> None:
    """At half past midnight `tomorrow` is a day away, and the note says how to mean this morning."""
    late = at("2026-12-01 00:30")
    read = parse_until(["until", "tomorrow", "07:30"], late, LONDON)
    assert (read.at, "Leave it out" in read.note) == (at("2026-12-02 07:30"), True)
    assert parse_until(["until", "tomorrow", "07:30"], NOW, LONDON).note == ""


def test_an_hour_that_clocks_show_twice_ends_the_second_time() -> None:
    """On the autumn night the later reading holds, so that the person is not found unguarded; it is said."""
    read = parse_until(["until", "01:30"], at("2026-10-24 23:10"), LONDON)
    assert read.at == at("2026-10-25 01:30", fold=1)
    assert "twice" in read.note


def test_a_time_that_clocks_skip_ends_as_they_jump() -> None:
    """On the spring night 01:30 does not exist; the end is the jump itself, 02:00 summer time."""
    read = parse_until(["until", "01:30"], at("2027-03-28 00:40"), LONDON)
    assert read.at == at("2027-03-28 02:00")
    assert "skip 01:30" in read.note


def test_an_odd_time_that_rolls_over_to_an_even_day_carries_no_note() -> None:
    """After the jump 01:30 is tomorrow's, an ordinary one."""
    read = parse_until(["until", "01:30"], at("2027-03-28 03:40"), LONDON)
    assert (read.at, read.note) == (at("2027-03-29 01:30"), "")


def test_a_length_is_real_time_over_a_clock_change() -> None:
    """Eight hours over the autumn change end one hour earlier on the clock."""
    start = at("2026-10-24 23:10")
    assert parse_until(["for", "8h"], start, LONDON).at == start + 8 * HOUR == at("2026-10-25 06:10")


@given(
    instant=st.integers(at("2026-01-01 00:00"), at("2028-01-01 00:00")),
    clock=st.tuples(st.integers(0, 23), st.integers(0, 59)),
    zone=st.sampled_from(ZONES),
)
@example(instant=at("2026-10-25 00:59"), clock=(1, 30), zone="Europe/London")
@example(instant=at("2027-03-28 00:59"), clock=(1, 30), zone="Europe/London")
def test_a_time_of_day_is_the_next_one_that_the_clocks_there_show(
    instant: int, clock: tuple[int, int], zone: str
) -> None:
    """In every zone: strictly ahead, at most a day and a changed hour away, and shown by that zone's own clock."""
    there = ZoneOf(ZoneInfo(zone))
    end = parse_until([f"{clock[0]:02}:{clock[1]:02}"], instant, there).at
    assert end is not None
    assert instant < end <= instant + DAY + HOUR
    shown = datetime.fromtimestamp(end, ZoneInfo(zone))
    wall = datetime(shown.year, shown.month, shown.day, *clock)
    if instants_of(wall, there):
        assert (shown.hour, shown.minute, shown.second) == (*clock, 0)
    else:  # skipped: the first second after the jump
        assert there.offset(end - 1) != there.offset(end)


@given(minute=st.integers(at("2026-01-01 00:00") // 60, at("2028-01-01 00:00") // 60), zone=st.sampled_from(ZONES))
def test_the_local_reading_of_an_instant_leads_back_to_it(minute: int, zone: str) -> None:
    """`instants_of` finds every instant at which a wall time is shown, and no other."""
    there = ZoneOf(ZoneInfo(zone))
    found = instants_of(local(minute * 60, there), there)
    assert minute * 60 in found
    assert {local(one, there) for one in found} == {local(minute * 60, there)}
    naive = local(minute * 60, there)
    folds = {int(naive.replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()) for fold in (0, 1)}
    assert set(found) == folds


@given(
    text=st.text(max_size=40)
    | st.lists(
        st.sampled_from(["until", "for", "7", "07:30", "8h", "mon", "dec", "24", "at", "m", ":", "-", "tomorrow"])
    ).map(" ".join)
)
def test_any_words_are_read_or_refused(text: str) -> None:
    """Nothing a person types ends in anything but an instant ahead, or a refusal."""
    try:
        end = parse_until(text.split(), NOW, LONDON).at
    except UsageError:
        return
    assert end is None or NOW < end <= NOW + LONGEST


@given(hours=st.integers(0, 700), minutes=st.integers(0, 59))
def test_a_length_comes_to_its_seconds(hours: int, minutes: int) -> None:
    """Hours and minutes add up; less than a minute is refused."""
    if hours + minutes == 0:
        with pytest.raises(UsageError):
            duration(f"{hours}h{minutes}m")
    else:
        assert duration(f"{hours}h{minutes}m") == timedelta(hours=hours, minutes=minutes).total_seconds()
