"""Every verdict can be explained, and judging its record again gives the same verdict."""

from __future__ import annotations

import pathlib
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stopwarden.clock import ZoneOf
from stopwarden.core.bounds import Policy
from stopwarden.core.errors import StoreCorruptError
from stopwarden.core.events import BackgroundTask, Item, Reservation, Scheduler, Stop, Verdict, Wake
from stopwarden.core.judge import judge
from stopwarden.report import explanation
from stopwarden.report.explanation import explain, render
from stopwarden.store import journal
from stopwarden.store.port import SessionRow, VerdictRow
from stopwarden.wire import dumps, loads
from tests.conftest import LONDON, at
from tests.support.stops import NIGHT, SOON, Night, items, one_shot
from tests.support.terminal import Terminal
from tests.support.written_night import ordinary_night

KEPT: dict[str, str] = {}


def put(body: str) -> str:
    import hashlib

    digest = hashlib.sha256(body.encode()).hexdigest()
    KEPT[digest] = body
    return digest


def recorded(night: Night, wakes: tuple[Wake, ...] | None = (), *, number: int = 41, **stop: Any) -> VerdictRow:
    """One stop as the journal holds it; the night goes on after it."""
    before = night.state
    given_ = Stop(session="s1", at=night.now, wakes=wakes, **stop)
    verdict = judge(given_, before, night.world, night.policy)
    body = journal.encode(given_, before, night.world, night.policy, verdict, put)
    night.stop(wakes, **stop)
    return VerdictRow(
        at=verdict.at, session="s1", period="p1", kind=verdict.kind, rule=verdict.rule, body=body, id=number
    )


def told(row: VerdictRow, *, verbose: bool = False, zone: Any = LONDON) -> str:
    """The explanation as running text."""
    text = render(explain(row, KEPT.__getitem__, 's1 "parser"'), zone, row.at + 3600, verbose=verbose)
    return " ".join(text.split())


def changed(row: VerdictRow, **verdict: Any) -> VerdictRow:
    """The same record with another verdict written into it."""
    whole = loads(row.body)
    whole["verdict"].update(verdict)
    return row.replace(body=dumps(whole))


def test_a_blocked_stop_is_explained_in_plain_words() -> None:
    """What was answered, by which row, until when a wake must come, what became of each wake, what is owed."""
    night = Night(*items("A", "B"))
    daily = Wake(id="d1", schedule="0 9 * * *", kind="recurring", first_seen=NIGHT)
    row = recorded(night, (daily,), unread_wakes=("{...}",), background=(BackgroundTask(id="b", type="shell"),))
    assert render(explain(row, KEPT.__getitem__, 's1 "parser"'), LONDON, row.at + 3600).splitlines() == [
        'Verdict 41   Mon 21:00:00   Europe/London   s1 "parser"',
        "",
        "VERDICT    blocked: the agent was told to go on",
        "WHY        work is owed, and no wake comes in time (away.no_qualifying_wake)",
        "DEADLINE   22:00, in 1 h: nothing is held, so within 1 h",
        'WAKES      d1 "0 9 * * *"   fires 09:00   does not count: it '
        + explain(row, KEPT.__getitem__).findings[0].why,
        "           {...}   cannot be read, so it does not count",
        "           1 background task running; that is no wake",
        "OWED       A  do A",
        "           B  do B",
        "           nothing was blocked before",
        "COUNTS     block 1 of 40 in a row without progress · 1 of 8 without a tool",
        "           1 of 30 this hour · 1 of 300 this away period",
        "AGAIN      judged again from the record: the same verdict (judge 0.1.0, rules 2)",
    ]


def test_a_wait_names_the_wake_that_counts_and_those_that_come_in_time_too() -> None:
    """Every wake has its interval: when it fires at the earliest and at the latest."""
    night = Night(*items("A"), scheduler=Scheduler(jitter="claude_code"))
    recurring = Wake(id="r1", schedule="*/20 * * * *", kind="recurring", first_seen=NIGHT)
    recorded(night, (recurring, one_shot("21:47")))
    text = told(recorded(night, (recurring, one_shot("21:47"))))
    assert "VERDICT allowed: the session waits for its next look" in text
    assert 'r1 "*/20 * * * *" fires 21:20 to 21:30 this one counts' in text
    assert 'w1 "47 21 * * *" fires 21:47 comes in time too' in text
    assert "the same as at the last block" in text


def test_a_hold_that_sets_the_deadline_is_named() -> None:
    """The earliest renewal due, less the skew; a deadline already past says that a hold had to be renewed first."""
    held = Reservation(
        item="A", session="s1", copy="c", claimed_at=at("2026-11-30 20:30"), expires_at=at("2026-11-30 22:30")
    )
    night = Night(*items("A"), copy="c", reservations=(held,))
    assert "DEADLINE 21:25, in 25 min: the hold on A is to be renewed at 21:30, less 5 min" in told(recorded(night))
    lapsed = held.replace(item="B", claimed_at=at("2026-11-30 18:00"), expires_at=at("2026-11-30 20:00"))
    night = Night(*items("A"), copy="c", reservations=(lapsed, held))
    assert "in 25 min: the hold on A is to be renewed" in told(recorded(night))
    late = Night(*items("A"), copy="c", reservations=(held,)).at("2026-11-30 21:40")
    assert "was 21:25, already past: a hold had to be renewed first" in told(recorded(late))


def test_a_bound_is_named_at_the_block_that_reached_it_and_at_the_stop_it_let_pass() -> None:
    """The last block says that it reached the bound; the allowed stop says which bound let it pass."""
    night = Night(*items("A"), policy=Policy(blocks_without_tools=2))
    recorded(night)
    last, let = recorded(night), recorded(night)
    assert "This block reached a bound: blocks in a row without any tool use." in told(last)
    assert "VERDICT allowed: it had been sent on as often as is allowed" in told(let)
    assert "The bound: blocks in a row without any tool use." in told(let)


def test_an_item_handed_back_is_named() -> None:
    """After the third wake-started turn without progress the item goes back to the person."""
    night = Night(*items("A", "B"))
    recorded(night)
    for _ in range(2):
        night.prompt("wake")
        recorded(night, (one_shot("21:40"),))
    night.prompt("wake")
    assert '"do A" went back to you after 3 wakes without progress.' in told(recorded(night, (one_shot("21:40"),)))


def test_a_stop_without_any_report_of_wakes_says_so() -> None:
    """None reported is not none scheduled."""
    night = Night(*items("A"))
    assert "WAKES none reported: this program does not tell its scheduled wakes" in told(recorded(night, None))
    assert "WAKES none scheduled" in told(recorded(night, ()))


def test_a_list_that_could_not_be_read_is_not_called_nothing() -> None:
    """Unknown is never nothing owed."""
    night = Night(unread=("TODO.md",))
    text = told(recorded(night))
    assert "OWED TODO.md could not be read: what it holds is not known" in text
    assert "OWED nothing" not in text
    assert "OWED nothing" in told(recorded(Night()))


@pytest.mark.parametrize(
    ("circumstances", "stop", "words"),
    [
        ({"period": None}, {}, "allowed: nobody is away for this session"),
        ({"mode": "off"}, {}, "allowed: the check was switched off"),
        ({"mode": "observe"}, {}, "allowed: the check only observes"),
        ({}, {"plan_mode": True}, "allowed: the session is in plan mode"),
        ({}, {"subagent": True}, "it was the stop of a child agent"),
    ],
)
def test_stops_that_are_left_alone_are_explained_too(
    circumstances: dict[str, Any], stop: dict[str, Any], words: str
) -> None:
    """Each names what let it pass, and is judged the same again."""
    row = recorded(Night(*items("A"), **circumstances), (), **stop)
    assert words in told(row)
    assert explain(row, KEPT.__getitem__).agrees


def test_a_verdict_that_comes_out_otherwise_today_is_not_covered_up() -> None:
    """What differs is named with both values, and the version that judged it."""
    row = changed(recorded(Night(*items("A"))), block=False, kind="waiting")
    again = explain(row, KEPT.__getitem__)
    assert not again.agrees
    assert {one.what for one in again.differences} == {"block", "kind"}
    text = told(row)
    assert "judged again from the record: NOT the same (it was judged by 0.1.0, rules 2)" in text
    assert "kind: was waiting, is now block" in text


def test_an_answer_that_no_judge_reached_is_not_said_to_agree() -> None:
    """When we failed, the answer came from the rule for failures; there is nothing to judge again."""
    row = changed(recorded(Night(*items("A"))), kind="error", rule="fault.store", block=False)
    again = explain(row, KEPT.__getitem__)
    assert (again.agrees, again.differences) == (False, ())
    assert "no judge reached this" in told(row)


def test_a_record_that_cannot_be_read_is_an_error_that_says_so() -> None:
    """Nothing is explained from half a record."""
    row = recorded(Night(*items("A")))
    with pytest.raises(StoreCorruptError, match="cannot be read"):
        explain(row.replace(body=row.body[:200]), KEPT.__getitem__)


def test_times_are_those_of_the_reader_and_the_zone_of_the_judge_is_said() -> None:
    """A stop judged in London and read in Calcutta."""
    text = told(recorded(Night(*items("A"))), zone=ZoneOf(ZoneInfo("Asia/Kolkata")))
    assert "Tue 02:30:00 Asia/Kolkata" in text
    assert "It was judged in Europe/London; the times here are those of Asia/Kolkata." in text


def test_what_the_agent_was_told_is_shown_on_request() -> None:
    """The reason as it went out, with hostile titles made harmless."""
    night = Night(Item(id="A", title="x\x1b[2Jy", source="TODO.md"))
    row = recorded(night)
    assert "SAID Go on: item A" in told(row, verbose=True)
    assert "SAID" not in told(row)
    assert "\x1b" not in told(row, verbose=True)


some_items = st.lists(
    st.builds(
        lambda number, state, before: Item(id=f"i{number}", title="t", state=state, before=before, source="TODO.md"),
        st.integers(0, 80),
        st.sampled_from(["open", "doing", "done", "waiting", "removed", "dropped"]),
        st.sampled_from(["open", "doing", "done", "waiting"]),
    ),
    max_size=70,
).map(tuple)
some_wakes = st.lists(
    st.builds(
        lambda number, schedule, kind, seen, said: Wake(
            id=f"w{number}",
            schedule=schedule,
            kind=kind,
            first_seen=NIGHT - seen if seen else None,
            fires_at=NIGHT + said if said else None,
            fires_said_at=NIGHT - seen if said else None,
        ),
        st.integers(0, 9),
        st.sampled_from(
            ["*/20 * * * *", "30 1 * * *", "0 0 29 2 *", "15 21 30 11 *", "0 0 */2 * 5", "@hourly", "5/15 * * * *"]
        ),
        st.sampled_from(["recurring", "one_shot", "self_paced"]),
        st.sampled_from([0, 60, 86_400 * 6, 86_400 * 40]),
        st.sampled_from([0, -600, 600, 7_200]),
    ),
    max_size=5,
).map(tuple)
some_holds = st.lists(
    st.builds(
        lambda ago, lease, copy: Reservation(
            item="i1", session="s1", copy=copy, claimed_at=NIGHT - ago, expires_at=NIGHT - ago + lease
        ),
        st.integers(0, 90_000),
        st.integers(60, 90_000),
        st.sampled_from(["c", "d"]),
    ),
    max_size=3,
).map(tuple)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # it may be busy
@given(
    some_items,
    st.lists(st.tuples(some_wakes, st.integers(0, 4_000), st.booleans()), min_size=1, max_size=5),
    some_holds,
    st.sampled_from(["2026-11-30 21:00", "2026-10-24 23:30", "2027-03-27 23:50", "2026-12-31 23:50"]),
    st.sampled_from(["evidence", "nominal"]),
)
def test_explain_agrees_with_every_judged_stop(
    owed: tuple[Item, ...], stops: list[Any], holds: tuple[Reservation, ...], evening: str, evidence: str
) -> None:
    """Whatever stops there are, in nights when the clocks change too: the record alone gives the verdict again."""
    shift = at(evening) - NIGHT
    holds = tuple(h.replace(claimed_at=h.claimed_at + shift, expires_at=h.expires_at + shift) for h in holds)
    night = Night(*owed, policy=Policy(wake_evidence=evidence), copy="c", reservations=holds)
    night.now = NIGHT + shift
    for wakes, later, tool in stops:
        night.now += later
        if tool:
            night.tool()
        row = recorded(night, wakes)
        again = explain(row, KEPT.__getitem__)
        assert again.differences == ()
        assert told(row)
        assert explanation.as_json(again)["agrees"] is True


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def terminal(tmp_path: pathlib.Path) -> Terminal:
    terminal = Terminal(tmp_path, "2026-11-30 22:00")
    store = terminal.store()
    with store.transaction():
        for session, title in (("s1aa0000", "parser"), ("s1bb0000", "")):
            night = Night(*items("A"))
            for wakes in ((), SOON):
                row = recorded(night, wakes)
                for body in KEPT.values():
                    store.put_snapshot(body)
                number = store.append_verdict(row.replace(id=0, session=session, nonce=f"{session}{row.kind}{wakes}"))
            store.save_session(SessionRow(id=session, title=title, last_verdict=number, last_event_at=night.now))
    store.close()
    return terminal


def test_alone_it_explains_the_last_verdict_and_by_number_that_one(terminal: Terminal) -> None:
    """Exit code 0: judged again it is the same."""
    code, out, _ = terminal.run("explain")
    assert (code, out.split()[:2]) == (0, ["Verdict", "4"])
    assert terminal.run("explain", "1")[1].startswith("Verdict 1   Mon 21:00:00   Europe/London   s1aa")


@pytest.mark.parametrize("named", ["s1aa0000", "s1aa", "parser"])
def test_a_session_is_explained_by_its_last_verdict(terminal: Terminal, named: str) -> None:
    """By its id, the beginning of it, or its title."""
    assert terminal.run("explain", named)[1].startswith("Verdict 2 ")


@pytest.mark.parametrize(
    ("named", "advice"),
    [
        ("99", "There is no verdict 99. The last one is 4"),
        ("s1", "names 2 sessions"),
        ("zz", "No session 'zz' is known"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(terminal: Terminal, named: str, advice: str) -> None:
    """Exit code 2, and how to find the right one."""
    code, out, err = terminal.run("explain", named)
    assert (code, out) == (2, "")
    assert advice in err


def test_verdicts_can_be_listed(terminal: Terminal) -> None:
    """Number, time, session, kind and rule; of one session on request."""
    lines = terminal.run("explain", "--list")[1].splitlines()
    assert lines[0] == "Times are Europe/London. One of them: stopwarden explain 4"
    assert len(lines) == 5
    assert lines[1].split() == ["1", "Mon", "21:00:00", "s1aa", '"parser"', "block", "away.no_qualifying_wake"]
    assert len(terminal.run("explain", "parser", "--list")[1].splitlines()) == 3
    assert [one["id"] for one in terminal.json("explain", "--list")["verdicts"]] == [1, 2, 3, 4]


def test_another_verdict_today_is_exit_code_1(tmp_path: pathlib.Path) -> None:
    """A script can tell that judging again does not agree."""
    terminal = Terminal(tmp_path)
    night = ordinary_night()
    terminal.keep(night)  # its verdicts were written by hand, with rules that no judge would give
    code, out, _ = terminal.run("explain")
    assert code == 1
    assert "NOT the same" in out
    assert terminal.json("explain")["agrees"] is False


def test_before_any_stop_was_judged_it_says_so(tmp_path: pathlib.Path) -> None:
    """Exit code 2 with what to do."""
    code, _, err = Terminal(tmp_path).run("explain")
    assert code == 2
    assert "No stop has been judged yet" in err


def test_the_explanation_as_json_has_everything(terminal: Terminal) -> None:
    """Inputs, verdict, findings, and what they mean, times in UTC."""
    told_ = terminal.json("explain", "1")
    assert told_["at"] == "2026-11-30T21:00:00Z"
    assert told_["agrees"] is True
    assert told_["verdict"]["rule"] == "away.no_qualifying_wake"
    assert told_["verdict"]["deadline"] == "2026-11-30T22:00:00Z"
    assert told_["because"] == "work is owed, and no wake comes in time"
    assert set(told_["verdict"]) >= set(Verdict.fields) - {"after"}
