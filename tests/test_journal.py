"""A recorded verdict comes back as exactly the values it was reached by."""

from __future__ import annotations

import hashlib
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stopwarden.clock import ZoneOf
from stopwarden.core.bounds import DAY, Policy
from stopwarden.core.errors import StoreCorruptError
from stopwarden.core.events import (
    AwayPeriod,
    BackgroundTask,
    Counters,
    Happening,
    Item,
    Reservation,
    Scheduler,
    SessionState,
    Stop,
    Verdict,
    Wake,
    WakeFinding,
    World,
)
from stopwarden.core.record import Record
from stopwarden.store import journal
from stopwarden.wire import loads
from tests.conftest import LONDON, at

ZONES = ("Europe/London", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata", "UTC")
NOW = at("2026-10-24 23:10")

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
instant = st.integers(1_600_000_000, 2_500_000_000)
plain = st.one_of(st.booleans(), st.integers(-5, 10**12), text, st.none())


class Snapshots:
    """Texts by digest, as a store keeps them."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def put(self, body: str) -> str:
        digest = hashlib.sha256(body.encode()).hexdigest()
        self.kept[digest] = body
        return digest

    def get(self, digest: str) -> str:
        return self.kept.get(digest, "")


def some(kind: type[Record], **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a kind: every field not fixed holds any plain value, so no field can be forgotten."""
    fields = {field: fixed.get(field, plain) for field in kind.fields}
    return st.builds(lambda **given: kind(**given), **fields)


def many(kind: type[Record], size: int = 4, **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(some(kind, **fixed), max_size=size).map(tuple)


words = st.lists(text, max_size=4).map(tuple)
wakes = many(Wake, first_seen=st.one_of(st.none(), instant), fires_said_at=st.one_of(st.none(), instant))
stops = some(
    Stop,
    at=instant,
    wakes=st.one_of(st.none(), wakes),
    unread_wakes=words,
    background=many(BackgroundTask),
)
sessions = some(
    SessionState,
    recent_blocks=st.lists(instant, max_size=3).map(tuple),
    reached=words,
    graced=words,
    handed_back=words,
)
worlds = some(
    World,
    zone=st.sampled_from(ZONES).map(lambda name: ZoneOf(ZoneInfo(name))),
    period=st.one_of(st.none(), some(AwayPeriod, lists=words)),
    items=st.one_of(many(Item), many(Item, size=70)),
    unread=words,
    ready=many(Item),
    reservations=many(Reservation, claimed_at=instant),
    scheduler=some(Scheduler, dialects=words),
    answers=words,
)
verdicts = some(
    Verdict,
    owed=words,
    counters=some(Counters),
    wake=st.one_of(st.none(), some(WakeFinding)),
    rejected=many(WakeFinding),
    happenings=many(Happening),
    after=st.one_of(st.none(), sessions),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(stops, sessions, worlds, some(Policy), verdicts)
def test_a_recorded_verdict_comes_back_as_it_went_in(
    stop: Stop, session: SessionState, world: World, policy: Policy, verdict: Verdict
) -> None:
    """Every field of every record survives the journal, whatever it holds; only `after` is left out."""
    snapshots = Snapshots()
    body = journal.encode(stop, session, world, policy, verdict, snapshots.put)
    again = journal.decode(body, snapshots.get)
    assert again[0] == stop
    assert again[1] == session
    assert again[2].replace(zone=None) == world.replace(zone=None)
    assert again[3] == policy
    assert again[4] == verdict.replace(after=None)
    assert journal.encode(*again, snapshots.put) == body


@settings(deadline=None)
@given(st.sampled_from(ZONES), instant, st.lists(st.floats(0, 400), min_size=1, max_size=30))
def test_the_recorded_zone_answers_like_the_machine_did(name: str, now: int, days: list[float]) -> None:
    """From the stop to 400 days later every instant has the offset that the real zone gives it."""
    zone = ZoneOf(ZoneInfo(name))
    recorded = world_again(Stop(session="s", at=now), World(zone=zone)).zone
    assert recorded.name == name
    for instant_ in (now, *(now + int(day * DAY) for day in days)):
        assert recorded.offset(instant_) == zone.offset(instant_)


@pytest.mark.parametrize("name", ZONES)
def test_the_recorded_zone_changes_in_the_very_second(name: str) -> None:
    """Both sides of every change of the year are right, to the second."""
    zone = ZoneOf(ZoneInfo(name))
    recorded = world_again(Stop(session="s", at=NOW), World(zone=zone)).zone
    changes = [
        second
        for hour in range(NOW, NOW + 400 * DAY, 3600)
        if zone.offset(hour) != zone.offset(hour + 3600)
        for second in range(hour, hour + 3601, 60)
    ]
    assert changes or name in ("UTC", "Asia/Kolkata")
    for second in changes:
        assert recorded.offset(second) == zone.offset(second)
        assert recorded.offset(second - 1) == zone.offset(second - 1)


def test_the_recorded_zone_reaches_back_to_the_first_sight_of_a_wake() -> None:
    """A one-shot seen before the clocks changed is judged from its first sight, so the offset of then is kept."""
    seen = at("2026-10-20 12:00")
    stop = Stop(session="s", at=at("2026-10-28 12:00"), wakes=(Wake(id="w", schedule="0 9 * * *", first_seen=seen),))
    recorded = world_again(stop, World(zone=LONDON)).zone
    assert recorded.offset(seen) == 3600
    assert recorded.offset(stop.at) == 0


def test_the_recorded_zone_keeps_summer_and_winter_beyond_its_end() -> None:
    """A leap-day wake years ahead still reads winter time, a July one summer time."""
    recorded = world_again(Stop(session="s", at=NOW), World(zone=LONDON)).zone
    for far in ("2028-02-29 12:00", "2031-07-15 12:00", "2033-01-15 12:00"):
        assert recorded.offset(at(far)) == LONDON.offset(at(far))


def test_a_long_list_is_kept_once_for_all_stops_of_a_night() -> None:
    """A hundred items at two stops are one snapshot a column; the verdicts themselves stay small."""
    items = tuple(Item(id=f"i{n}", title=f"write part {n}", source="TODO.md", line=n) for n in range(100))
    snapshots = Snapshots()
    bodies = [encoded(at_, World(zone=LONDON, items=items), snapshots) for at_ in (NOW, NOW + 600)]
    assert len(snapshots.kept) == 3, "ids, titles and lines; every other column is one value"
    assert max(map(len, bodies)) < 5_000
    assert journal.decode(bodies[1], snapshots.get)[2].items == items


def test_a_verdict_names_the_version_that_judged_it() -> None:
    """The judge's version stands in the record, and an unreadable one has none."""
    assert journal.judged_by(encoded(NOW, World(zone=LONDON), Snapshots())) == "0.1.0, rules 2"
    assert [journal.judged_by(body) for body in ("", "[]", "{}", "{")] == ["", "", "", ""]


def test_every_field_of_every_record_is_written() -> None:
    """Defaults are written too: a default that changes later must not change what was recorded."""
    body = loads(encoded(NOW, World(zone=LONDON, period=AwayPeriod(id="p", since=NOW)), Snapshots()))
    for name, kind in {"stop": Stop, "session": SessionState, "world": World, "policy": Policy}.items():
        assert set(body[name]) == set(kind.fields)
    assert set(body["verdict"]) == set(Verdict.fields) - {"after"}
    assert set(body["world"]["period"]) == set(AwayPeriod.fields)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"v":2}',
        '{"v":1,"world":{}}',
        '{"v":1,"world":{"zone":{"name":"x","offsets":[]}}}',
    ],
)
def test_a_damaged_record_is_said_and_never_guessed(body: str) -> None:
    """What cannot be read whole is an error that says what was kept, not a verdict with holes."""
    with pytest.raises(StoreCorruptError, match="left as it is"):
        journal.decode(body, Snapshots().get)


def test_a_snapshot_that_is_gone_is_said() -> None:
    """A record whose long list was forgotten cannot be judged again, and says so."""
    items = tuple(Item(id=f"i{n}", title="x") for n in range(60))
    body = encoded(NOW, World(zone=LONDON, items=items), Snapshots())
    with pytest.raises(StoreCorruptError):
        journal.decode(body, Snapshots().get)


def encoded(now: int, world: World, snapshots: Snapshots) -> str:
    verdict = Verdict(block=True, kind="block", rule="away.owed_changed", at=now)
    stop = Stop(session="s", at=now)
    return journal.encode(stop, SessionState(id="s"), world, Policy(), verdict, snapshots.put)


def world_again(stop: Stop, world: World) -> World:
    snapshots = Snapshots()
    verdict = Verdict(block=False, kind="waiting", rule="away.waiting", at=stop.at)
    body = journal.encode(stop, SessionState(id="s"), world, Policy(), verdict, snapshots.put)
    return journal.decode(body, snapshots.get)[2]
