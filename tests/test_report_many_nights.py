"""The account of many nights: several checkouts at once, periods that overlap, weeks, sessions that come and go."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stopwarden.core.bounds import DAY, HOUR
from stopwarden.core.events import AwayPeriod, Item
from stopwarden.report.account import Account, account, as_json
from stopwarden.report.judged import judged
from stopwarden.report.nights import SPENT, nights
from stopwarden.report.text import render
from stopwarden.store import journal
from stopwarden.store.port import RecordLine, VerdictRow
from tests.conftest import LONDON, at
from tests.support.many_nights import busy_night, together, week
from tests.support.terminal import Terminal
from tests.support.written_night import Night, ordinary_night

MILL, SHOP = "51110000-0000-4000-8000-000000000001", "5509b000-0000-4000-8000-000000000002"


def named(told: Account, name: str) -> Any:
    return next(one for one in told.sessions if one.name == name)


def checkout(root: str, session: str, period: str, since: str = "23:05", until: str = "07:30") -> Night:
    """A night in one checkout with one session, named after it."""
    night = Night(since=since, until=until)
    night.period = night.period.replace(id=period, root=root, copy=root, scope="checkout")
    night.rows.clear()
    night.session = session
    night.row(session, title=root.rpartition("/")[2], root=root)
    return night


# --- several checkouts at once --------------------------------------------------------------------


def test_overlapping_periods_of_two_checkouts_are_one_night_with_each_session_told_once() -> None:
    """Its own time is that of its own period; the night lasts from the first to the last."""
    mill = checkout("/w/mill", MILL, "p1", "22:00", "06:00")
    mill.line("22:05", "prompt", "person")
    mill.stop("23:00", "waiting", look="23:40")
    mill.end()
    shop = checkout("/w/shop", SHOP, "p2", "23:05", "07:30")
    shop.line("23:06", "prompt", "person")
    shop.stop("23:40")
    shop.end()
    told = together([mill, shop])
    assert (told.since, told.until) == (at("2026-11-30 22:00"), at("2026-12-01 07:30"))
    assert sum(span.seconds for span in named(told, "mill").spans) == 8 * HOUR
    assert sum(span.seconds for span in named(told, "shop").spans) == 8 * HOUR + 25 * 60
    assert {named(told, "mill").root, named(told, "shop").root} == {"/w/mill", "/w/shop"}
    assert len(nights(told, LONDON)) == 1


def test_an_account_that_runs_in_one_checkout_runs_until_the_last_one_ends() -> None:
    """The period that began last may have ended already."""
    mill = checkout("/w/mill", MILL, "p1", "22:00", "07:30")
    mill.line("22:05", "prompt", "person")
    shop = checkout("/w/shop", SHOP, "p2", "23:05", "00:30")
    shop.line("23:06", "prompt", "person")
    shop.end()
    told = together([mill, shop], "03:00")
    assert told.running
    assert told.planned == at("2026-12-01 07:30")
    assert told.until == at("2026-12-01 03:00")
    assert render(told, LONDON).startswith("Mon 22:00 - now (03:00), until Tue 07:30")


def test_a_session_under_two_periods_at_once_is_not_counted_twice() -> None:
    """Away everywhere, and then for this checkout as well: every second of the session is one second."""
    outer = checkout("/w/shop", SHOP, "p1", "22:00", "08:00")
    outer.line("22:05", "prompt", "person")
    outer.stop("23:30", "waiting", look="23:50")
    inner = checkout("/w/shop", SHOP, "p2", "23:45", "07:00")
    inner.wake("23:50")
    inner.stop("00:10", "waiting", look="07:10")
    told = together([outer, inner], "08:00")
    spans = named(told, "shop").spans
    assert [span.until for span in spans[:-1]] == [span.since for span in spans[1:]]
    assert sum(span.seconds for span in spans) == 10 * HOUR
    assert [span.kind for span in spans] == ["stopped", "working", "waiting", "working", "waiting", "lost"]


def test_going_away_anew_does_not_cut_what_a_session_is_doing() -> None:
    """The wait that the first period saw begin goes on in the second, with the look it waits for."""
    first = checkout("/w/shop", SHOP, "p1", "22:00", "23:00")
    first.line("22:05", "prompt", "person")
    first.stop("22:50", "waiting", look="23:30")
    first.end("23:00", "replaced")
    second = checkout("/w/shop", SHOP, "p2", "23:00", "07:30")
    second.wake("23:30")
    told = together([first, second], "00:00")
    waiting = [span for span in named(told, "shop").spans if span.kind == "waiting"]
    assert [(span.since, span.until, span.look) for span in waiting] == [
        (at("2026-11-30 22:50"), at("2026-11-30 23:30"), at("2026-11-30 23:30"))
    ]


def test_lists_of_one_name_in_two_checkouts_are_two_lists() -> None:
    """Both are called TODO.md, and both have an item i1."""
    mill, shop = checkout("/w/mill", MILL, "p1"), checkout("/w/shop", SHOP, "p2")
    for night, title in ((mill, "grind"), (shop, "sell")):
        night.list(title)
        night.line("23:06", "prompt", "person")
    mill.tick("23:30", "i1")
    for night in (mill, shop):
        night.stop("23:40")
        night.end()
    told = together([mill, shop])
    assert {(story.title, story.outcome, story.root) for story in told.items} == {
        ("grind", "done", "/w/mill"),
        ("sell", "open", "/w/shop"),
    }


def test_todos_of_two_sessions_are_not_one_anothers() -> None:
    """A host numbers the todos of every session from one."""
    mill, shop = checkout("/w/shop", MILL, "p1"), checkout("/w/shop", SHOP, "p2")
    for night, title in ((mill, "grind"), (shop, "sell")):
        night.items["t1"] = Item(id="t1", title=title, source="todos of this session")
        night.line("23:06", "prompt", "person")
    mill.tick("23:30", "t1")
    for night in (mill, shop):
        night.stop("23:40")
    told = together([mill, shop])
    assert {(story.title, story.outcome) for story in told.items} == {("grind", "done"), ("sell", "open")}


# --- night after night ----------------------------------------------------------------------------


def following(first: Night, period: str = "p2") -> Night:
    """The next night of the same session and list, each item as it was left."""
    night = Night("2026-12-01")
    night.period = night.period.replace(id=period)
    night.items = {one: item.replace(before=item.state) for one, item in first.items.items()}
    return night


def two_nights() -> list[Night]:
    """Six items: two done in the first night, one in the second, one handed back, one set aside, one left."""
    first = Night()
    first.list("a", "b", "c", "d", "e", "f")
    first.line("23:06", "prompt", "person")
    first.tick("23:40", "i1", "i2")
    first.line("00:10", "item_handed_back", "c", "i3")
    first.items["i3"] = first.items["i3"].replace(state="handed_back")
    first.line("00:20", "item_parked", "which database?", "i4")
    first.items["i4"] = first.items["i4"].replace(state="waiting", waits_on="person", why="which database?")
    first.stop("00:30")
    first.end()
    second = following(first)
    second.line("23:06", "prompt", "person")
    second.tick("02:00", "i5")
    second.stop("02:10")
    second.end()
    return [first, second]


def test_what_one_night_did_is_still_done_two_nights_on() -> None:
    """The second night finds it done before it began; it is counted where it was done, once."""
    told = together(two_nights())
    assert [story.title for story in told.done] == ["a", "b", "e"]
    assert [story.at for story in told.done] == [*[at("2026-11-30 23:40")] * 2, at("2026-12-02 02:00")]
    assert {story.title: story.outcome for story in told.tonight if story.outcome != "done"} == {
        "c": "handed_back",
        "d": "parked",
        "f": "open",
    }
    assert told.for_you == 1
    assert [night.done for night in nights(told, LONDON)] == [2, 1]


def test_what_the_person_did_in_between_is_no_work_of_a_night() -> None:
    """Open in the first night, ticked in the daytime, or taken off the list."""
    first, second = two_nights()
    second.items["i6"] = second.items["i6"].replace(state="done", before="done")
    second.items["i4"] = second.items["i4"].replace(state="done", before="done", waits_on=None)
    second.stop("03:00")
    told = together([first, second])
    assert "f" not in {story.title for story in told.tonight}
    assert told.for_you == 0
    del second.items["i6"]
    second.stop("03:10")
    assert "f" not in {story.title for story in together([first, second]).tonight}


def test_work_done_before_the_time_asked_for_is_not_counted(tmp_path: pathlib.Path) -> None:
    """--since cuts the items as it cuts the time."""
    terminal = Terminal(tmp_path)
    terminal.keep(ordinary_night())
    assert "1 of 2 done" in terminal.run("report", "--since", "04:00")[1]


def test_a_session_that_ends_and_resumes_has_one_lane_without_a_gap() -> None:
    """Closed, opened again in the same night: the time between is stopped, and said to be."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.line("00:00", "session_ended", "logout")
    night.line("02:00", "session_started", "resume")
    night.line("02:05", "prompt", "person")
    night.stop("03:00", "waiting", look="03:30")
    night.wake("03:30")
    (one,) = night.account("03:40").sessions
    assert [(span.kind, span.cause) for span in one.spans] == [
        ("stopped", "no_turn"),
        ("working", ""),
        ("stopped", "ended"),
        ("stopped", "no_turn"),
        ("working", ""),
        ("waiting", ""),
        ("working", ""),
    ]
    assert [span.until for span in one.spans[:-1]] == [span.since for span in one.spans[1:]]


def test_the_days_are_named_where_the_account_is_longer_than_one() -> None:
    """A time of day alone would not tell which night's."""
    text = render(together(two_nights()), LONDON)
    assert "a  Mon 23:40" in text
    assert "e  Wed 02:00" in text
    assert "e  02:00" not in text


def test_nights_are_told_one_line_each_and_in_all() -> None:
    """With as many items, as much work, waiting and loss as the nights hold together."""
    whole = together(week())
    lines = render(whole, LONDON).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("NIGHTS"))
    table = lines[begin : begin + 9]
    assert table[0].split() == ["NIGHTS", "done", "worked", "waited", "lost", "stopped"]
    assert table[1].split()[:4] == ["Tue", "10", "Nov", "23:05-07:30"]
    assert table[2].split()[:2] == ["Wed", "23:05-07:30"]
    assert table[-1].split()[:3] == ["in", "all", str(len(whole.done))]
    told = nights(whole, LONDON)
    for kind in SPENT:
        assert sum(getattr(night, kind) for night in told) == whole.total(kind)
    assert sum(night.blocks for night in told) == sum(one.blocks for one in whole.sessions)
    assert sum(night.looks for night in told) == sum(len(one.looks) for one in whole.sessions)


def test_one_night_has_no_table_of_nights() -> None:
    """The page of an ordinary night stays as it is."""
    assert "NIGHTS" not in render(ordinary_night().account(), LONDON)


def test_a_period_of_days_is_told_from_noon_to_noon() -> None:
    """Local noon, in the week in which the clocks change as well."""
    night = Night("2026-10-22", "20:00", until="")
    night.period = night.period.replace(until=at("2026-10-27 08:00"))
    night.line("20:05", "prompt", "person")
    told = nights(night.account(at("2026-10-27 09:00")), LONDON)
    assert [one.since for one in told] == [
        at("2026-10-22 20:00"),
        *(at(f"2026-10-{day} 12:00") for day in (23, 24, 25, 26)),
    ]
    assert told[-1].until == at("2026-10-27 08:00")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.integers(0, 6 * 24), st.integers(1, 72), st.sampled_from([MILL, SHOP])), min_size=1, max_size=6
    ),
    st.integers(0, 7 * 24),
)
def test_however_periods_lie_no_second_is_told_twice(drawn: list[tuple[int, int, str]], ago: int) -> None:
    """Each session's spans follow each other without overlap, within its periods; the nights cover them all."""
    start = at("2026-11-02 12:00")
    periods, lines, verdicts = [], [], []
    for number, (since, hours, session) in enumerate(sorted(drawn)):
        begin = start + since * HOUR
        periods.append(AwayPeriod(id=f"p{number}", since=begin, until=begin + hours * HOUR, zone="Europe/London"))
        lines.append(RecordLine(at=begin + 60, kind="prompt", text="person", session=session, period=f"p{number}"))
        verdicts.append(VerdictRow(at=begin + 1800, session=session, period=f"p{number}", kind="block", id=number + 1))
    now = start + 9 * DAY
    lines = [line.replace(seq=number) for number, line in enumerate(sorted(lines, key=lambda line: line.at), 1)]
    told = account(periods, now=now, lines=lines, verdicts=verdicts, since=start + ago * HOUR)
    for one in told.sessions:
        own = [p for p in periods if any(line.period == p.id for line in lines if line.session == one.id)]
        for before, after in zip(one.spans, one.spans[1:], strict=False):
            assert before.until <= after.since
        covered = {hour for p in own for hour in range(max(p.since, told.since), p.until or 0, HOUR)}
        assert sum(span.seconds for span in one.spans) == len(covered) * HOUR
    for kind in SPENT:
        assert sum(getattr(night, kind) for night in nights(told, LONDON)) == told.total(kind)


# --- what is read of a verdict --------------------------------------------------------------------


def test_the_few_facts_of_a_verdict_are_those_of_its_record() -> None:
    """Cut out at their keys, they are what decoding the whole record gives; also where titles hold the keys."""
    night = busy_night(5, 20)
    night.list('"tokens_used":9', ',"verdict":{"block":true', "\\", '","wake":null', '"unchanged_looks":1}}')
    night.session = "x"
    night.stop("05:00", tokens=77)
    night.stop("05:10", "waiting", look="05:30", latest="05:35", kept=True)
    for row, facts in zip(night.verdicts, judged(night.verdicts), strict=True):
        _, _, world, policy, verdict = journal.decode(row.body, lambda digest: night.kept[digest])
        assert facts.readable
        assert facts.block is verdict.block
        assert facts.tokens == world.tokens_used
        assert facts.unchanged_looks == policy.unchanged_looks
        assert facts.look == (verdict.wake.nominal if verdict.wake else None)
        assert facts.look_latest == (verdict.wake.latest if verdict.wake else None)
        assert facts.kept == (verdict.wake is not None and verdict.wake.id == "kept")


@pytest.mark.parametrize("damage", [lambda body: body[:-1], lambda body: "", lambda body: body[:900], lambda body: "{}",
    lambda body: body.replace('"wake":{', '"wake":['), lambda body: body.replace('"nominal":1', '"nominal":"x'),
    lambda body: body.replace('"tokens_used":', '"tokens":'), lambda body: body.replace('"tokens_used":', '"tokens_used":-'),
])  # fmt: skip
def test_a_record_whose_facts_are_not_where_they_belong_is_damaged(damage: Any) -> None:
    """Nothing is guessed: the row alone speaks, and the account says that the record cannot be read."""
    night = ordinary_night()
    number = next(n for n, row in enumerate(night.verdicts) if row.kind == "waiting")
    night.verdicts[number] = night.verdicts[number].replace(body=damage(night.verdicts[number].body))
    (facts,) = judged([night.verdicts[number]])
    assert (facts.readable, facts.look, facts.tokens) == (False, None, 0)
    assert [trouble.kind for trouble in night.account().troubles] == ["verdict_unreadable"]


def test_a_list_whose_newest_records_are_damaged_is_read_from_an_older_one() -> None:
    """What the list held then is better than nothing; the damage is said."""
    night = ordinary_night()
    for number in (-1, -2):
        night.verdicts[number] = night.verdicts[number].replace(body="{")
    told = night.account()
    assert len(told.done) == 5
    assert len(told.troubles) == 2


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def terminal(tmp_path: pathlib.Path) -> Terminal:
    terminal = Terminal(tmp_path, "2026-11-17 08:00")
    for night in week():
        terminal.keep(night)
    return terminal


def test_the_report_of_a_week_begins_with_its_nights(terminal: Terminal) -> None:
    """All away periods of the last seven days."""
    code, out, _ = terminal.run("report", "--week")
    assert code == 0
    assert out.startswith("Tue 10 Nov 23:05 - Tue 07:30   Europe/London")
    assert out.count("23:05-07:30") == 7
    assert out.index("NIGHTS") < out.index("DONE")


def test_a_week_begins_with_a_whole_night_and_leaves_out_what_is_older(terminal: Terminal) -> None:
    """The night that ended seven days ago is not cut in two; one that ended before is left out."""
    terminal.now = at("2026-11-18 06:00")
    assert terminal.run("report", "--week")[1].startswith("Tue 10 Nov 23:05 - ")
    terminal.now = at("2026-11-18 08:00")
    assert terminal.run("report", "--week")[1].startswith("Wed 11 Nov 23:05 - ")
    terminal.now = at("2026-11-30 08:00")
    code, out, _ = terminal.run("report", "--week")
    assert code == 1
    assert "Nothing is recorded since" in out


def test_the_nights_are_in_the_json_too(terminal: Terminal) -> None:
    """Instants in UTC, lengths in seconds."""
    told = terminal.json("report", "--week")
    assert [night["since"] for night in told["nights"]][:2] == ["2026-11-10T23:05:00Z", "2026-11-11T23:05:00Z"]
    assert sum(night["working"] for night in told["nights"]) == told["counts"]["seconds"]["working"]
    assert json.loads(json.dumps(told)) == told
    assert as_json(together(week()))["nights"] == []


@pytest.mark.parametrize("words", [("--week", "--since", "22:00"), ("--week", "--period", "p1")])
def test_a_week_and_another_choice_exclude_each_other(terminal: Terminal, words: tuple[str, ...]) -> None:
    """Exit code 2, and nothing is printed that could be taken for an answer."""
    code, out, _ = terminal.run("report", *words)
    assert (code, out) == (2, "")
