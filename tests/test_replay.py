"""Recorded stops are judged again: as they were to the same verdicts, under another policy with their sessions carried on."""

from __future__ import annotations

import json
import pathlib
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stopwarden.core.bounds import Policy
from stopwarden.core.errors import UsageError
from stopwarden.core.events import BackgroundTask, SessionState, Stop, Wake, World
from stopwarden.core.judge import commit, judge
from stopwarden.core.session import compacted, heard
from stopwarden.report.explanation import explain
from stopwarden.sim import policies
from stopwarden.sim.replay import Replayed, replay
from stopwarden.store import journal
from stopwarden.store.memory import MemoryStore
from stopwarden.store.port import VerdictRow
from stopwarden.store.recorded import read_stops, write_stops
from tests.conftest import LONDON, at
from tests.support.night import HookNight, cron
from tests.support.stops import AWAY, NIGHT, Night, items, one_shot
from tests.support.terminal import Terminal


class Recorded(Night):
    """A night whose stops are journalled as the hook does it."""

    def __init__(self, *owed: Any, **terms: Any) -> None:
        super().__init__(*owed, **terms)
        self.store = MemoryStore()
        self.prompts = 1

    def stop(self, wakes: tuple[Wake, ...] | None = (), **stop: Any) -> Any:
        now = self.now
        self.state, _ = heard(self.state, now, by_stop=True)
        asked = Stop(session="s1", at=now, wakes=wakes, prompt=f"p{self.prompts}", **stop)
        verdict = judge(asked, self.state, self.world, self.policy)
        body = journal.encode(asked, self.state, self.world, self.policy, verdict, self.store.put_snapshot)
        row = VerdictRow(
            at=now, session="s1", period="p1", kind=verdict.kind, rule=verdict.rule, body=body, nonce=str(now)
        )
        self.store.append_verdict(row)
        self.state = commit(self.state, verdict)
        self.now += 10
        return verdict

    def prompt(self, by: str = "person") -> Night:
        self.prompts += 1
        return super().prompt(by)

    def again(self, guard: str = "", **named: object) -> Replayed:
        """Its stops judged again."""
        stops = read_stops(write_stops(self.store, self.store.verdicts()))
        return replay(stops, named, policies.named(guard) if guard else None)


def answers(told: Replayed) -> list[str]:
    return [one.now.kind for one in told.stops]


HOURLY = Wake(id="w1", schedule="*/50 * * * *", kind="recurring", first_seen=NIGHT - 60)


def test_every_recorded_stop_comes_to_the_same_verdict() -> None:
    """As they were: nothing changes, whatever happened between the stops."""
    night = Recorded(*items("A", "B"))
    night.stop()
    night.tool().stop((one_shot("21:30"),))
    night.owes(*items("B", A="done")).tool().stop((one_shot("21:30"),))
    night.at("2026-11-30 21:30").prompt("wake").stop((one_shot("22:10", "w2"),))
    told = night.again()
    assert len(told.stops) == 4
    assert all(one.same for one in told.stops)
    assert not told.changed_policy


def test_a_verdict_that_somebody_changed_is_named_with_its_parts() -> None:
    """It is no verdict of this judge any more."""
    night = Recorded(*items("A"))
    night.stop()
    lines = [
        line.replace("away.no_qualifying_wake", "away.owed_changed")
        for line in write_stops(night.store, night.store.verdicts())
    ]
    told = replay(read_stops(lines))
    (one,) = told.changed
    assert [part.what for part in one.differences] == ["rule"]


def test_another_skew_changes_what_its_deadline_changes() -> None:
    """Only the verdict whose wake is then too late, and the stop after it, which had been told once already."""
    night = Recorded(*items("A"))
    night.stop((one_shot("21:40"),))
    night.stop((one_shot("21:40"),))
    assert answers(night.again()) == ["block", "waiting"]
    told = night.again(look_without_reservation=1800)
    assert answers(told) == ["block", "block"]
    assert [(one.was.rule, one.now.rule) for one in told.changed] == [
        ("away.owed_changed", "away.no_qualifying_wake"),
        ("away.waiting_unchanged", "away.no_qualifying_wake"),
    ]


def test_counts_are_carried_on_under_the_new_policy() -> None:
    """A bound of two is reached at the second block and lets the third stop go, though eight had been recorded."""
    night = Recorded(*items("A"))
    for _ in range(8):
        night.stop()
    told = night.again(blocks_without_tools=2)
    assert answers(told) == ["block", "block", "bound_reached"] * 2 + ["block", "block"]


def test_a_tool_between_two_stops_counts_for_the_carried_session_too() -> None:
    """What events wrote into the recorded state is taken over; what verdicts wrote is not."""
    night = Recorded(*items("A"))
    for _ in range(6):
        night.tool().stop()
    assert answers(night.again(blocks_without_tools=2)) == ["block"] * 6
    assert answers(night.again(blocks_without_progress=2)) == ["block", "block", "bound_reached"] * 2


def test_block_once_yields_to_a_reply_that_only_waits() -> None:
    """The session that said it waits for the person slept: the second stop of a turn passes, with work open."""
    night = Recorded(*items("A"))
    night.stop()
    night.stop()
    night.prompt("wake").stop()
    told = night.again("block-once")
    assert answers(told) == ["block", "idle", "block"]
    assert [one.same for one in told.stops] == [True, False, True], "only the answer counts: its rules have other names"
    assert answers(night.again()) == ["block", "block", "block"]


@pytest.mark.parametrize("task", ["sleep 36000", "tail -f log"])
def test_the_first_rule_takes_a_background_task_for_a_wake(task: str) -> None:
    """An endless command counted as work in flight; ours blocks."""
    night = Recorded()
    night.stop(background=(BackgroundTask(id="b1", type="shell", description=task),))
    assert answers(night.again()) == ["block"]
    assert [one.now.rule for one in night.again("first-rule").stops] == ["first_rule.in_flight"]


def test_the_first_rule_lets_unchanged_work_pass_at_the_second_try() -> None:
    """Owed work, told once in this turn, nothing changed: allowed without any wake."""
    night = Recorded(*items("A"))
    night.stop()
    night.stop()
    assert [one.now.rule for one in night.again("first-rule").stops] == ["first_rule.owed", "first_rule.unchanged"]


def test_nominal_wakes_pass_what_comes_late() -> None:
    """A wake that is due at :50 may come 25 minutes late; by its next minute alone it is in time."""
    night = Recorded(*items("A"))
    night.world = night.world.replace(scheduler=night.world.scheduler.replace(jitter="claude_code"))
    night.at("2026-11-30 21:10").stop((HOURLY,))
    night.stop((HOURLY,))
    assert answers(night.again()) == ["block", "block"]
    assert answers(night.again("nominal")) == ["block", "waiting"]


def test_no_guard_lets_every_stop_pass() -> None:
    """And takes nothing from what is left alone anyway."""
    night = Recorded(*items("A"))
    night.stop()
    night.stop(plan_mode=True)
    assert [one.now.rule for one in night.again("none").stops] == ["none.allowed", "stop.plan_mode"]


def test_a_record_that_cannot_be_judged_is_named_and_the_others_are_judged() -> None:
    """Values of a wrong kind in a hostile file: an error of its line, and nothing else is lost."""
    night = Recorded(*items("A"))
    for _ in range(3):
        night.stop()
    lines = list(write_stops(night.store, night.store.verdicts()))
    told = json.loads(lines[1])
    told["body"]["stop"]["at"] = "midnight"
    lines[1] = json.dumps(told)
    for again in (replay(read_stops(lines)), replay(read_stops(lines), {"skew": 60})):
        assert [one.line for one in again.stops] == [1, 3]
        (bad,) = again.unjudged
        assert "Line 2" in str(bad.error)


def test_a_fault_of_ours_is_told_and_not_judged() -> None:
    """No judge had reached that answer."""
    night = Recorded(*items("A"))
    night.stop()
    lines = [
        line.replace("away.no_qualifying_wake", "fault.deadline")
        for line in write_stops(night.store, night.store.verdicts())
    ]
    (one,) = replay(read_stops(lines)).stops
    assert not one.judged
    assert one.same


WAKES = st.sampled_from([None, (), (one_shot("21:30"),), (one_shot("23:59", "w3"),), (HOURLY,)])
STEPS = st.lists(
    st.tuples(st.sampled_from(["stop", "stop", "tool", "wake", "person", "compact", "done", "doing", "wait", "gone"]), WAKES, st.integers(0, 4000)),
    max_size=25,
)  # fmt: skip


def played(steps: list[tuple[str, Any, int]], policy: Policy) -> Recorded:
    """Any night at all."""
    night = Recorded(*items("A", "B", "C", "D"), policy=policy)
    dice = random.Random(len(steps))
    for what, wakes, seconds in steps:
        night.now += seconds
        owed = list(night.world.items)
        if what == "stop":
            night.stop(wakes)
        elif what == "tool":
            night.tool()
        elif what in ("wake", "person"):
            night.prompt(what)
        elif what == "compact":
            night.state = compacted(night.state)
        elif owed:
            place = dice.randrange(len(owed))
            state = {"done": "done", "doing": "doing", "wait": "waiting", "gone": "removed"}[what]
            owed[place] = owed[place].replace(state=state)
            night.owes(*owed)
    return night


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, st.sampled_from([Policy(), Policy(blocks_without_tools=2), Policy(unchanged_looks=1, blocks_an_hour=3)]))
def test_any_recorded_night_replays_to_the_same_verdicts_and_explain_agrees(
    steps: list[tuple[str, Any, int]], policy: Policy
) -> None:
    """As it was; and carried on under the very same terms, which must find the same states by itself."""
    night = played(steps, policy)
    assert not night.again().changed
    assert not night.again(skew=policy.skew).changed
    for row in night.store.verdicts():
        assert explain(row, night.store.snapshot).agrees


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, st.sampled_from(sorted(policies.GUARDS)))
def test_every_rule_answers_every_stop_purely(steps: list[tuple[str, Any, int]], name: str) -> None:
    """The same answer twice, with a state to store; nothing is raised."""
    night = played(steps, Policy())
    told = night.again(name)
    assert len(told.stops) == len(night.store.verdicts())
    assert told == night.again(name)


def test_a_night_through_the_hook_replays_to_the_same_verdicts(tmp_path: pathlib.Path) -> None:
    """The stored states are those that carrying on finds: the same night under the terms it had."""
    night = HookNight(tmp_path)
    night.away()
    night.send("prompt", prompt="go on")
    for crons in ([], [cron("21:30")], [cron("21:30")], [cron("09:00", "w2")]):
        night.send("stop", session_crons=crons)
        night.send("post-tool", tool_name="Bash")
    night.list.write_text("- [x] A\n- [ ] B\n", encoding="utf-8")
    night.send("stop", session_crons=[cron("21:30")])
    night.now = at("2026-11-30 21:30:10")
    night.send("prompt", prompt="look again")
    night.send("stop", session_crons=[cron("22:05", "w3")])
    store = night.store()
    stops = list(read_stops(write_stops(store, store.verdicts())))
    store.close()
    assert len(stops) == 6
    assert not replay(stops).changed
    assert not replay(stops, {"skew": Policy().skew}).changed


# the command


def kept(tmp_path: pathlib.Path, night: Recorded) -> Terminal:
    terminal = Terminal(tmp_path)
    store = terminal.store()
    for row in night.store.verdicts():
        store.append_verdict(row)
    store.close()
    return terminal


def two_blocks() -> Recorded:
    night = Recorded(*items("A"))
    night.stop((one_shot("21:40"),))
    night.stop((one_shot("21:40"),))
    return night


def test_the_command_says_that_all_is_the_same(tmp_path: pathlib.Path) -> None:
    """Exit code 0, and how much was judged."""
    code, out, err = kept(tmp_path, two_blocks()).run("replay")
    assert (code, err) == (0, "")
    assert "2 stops of 1 session judged again" in out
    assert "Every verdict came out the same." in out


def test_the_command_says_what_another_policy_changes(tmp_path: pathlib.Path) -> None:
    """How many, which kinds, by which rule, and that nights are not foretold."""
    code, out, _ = kept(tmp_path, two_blocks()).run("replay", "--policy", "look_without_reservation=30m")
    assert code == 0
    assert "0 verdicts stay, 2 change." in out
    assert "waiting -> block" in out
    assert "away.no_qualifying_wake" in out
    assert "cannot be known" in out


def test_a_file_stands_for_the_record_on_any_machine(tmp_path: pathlib.Path) -> None:
    """Written here, replayed where there is no record at all."""
    file = str(tmp_path / "night.jsonl")
    code, out, _ = kept(tmp_path / "one", two_blocks()).run("replay", "--write", file)
    assert (code, "2 stops written" in out) == (0, True)
    there = Terminal(tmp_path / "other")
    code, out, err = there.run("replay", file)
    assert (code, err) == (0, "")
    assert "2 stops of 1 session" in out
    told = there.json("replay", file, "--policy", "none")
    assert (told["judged"], told["same"], len(told["changed"])) == (2, 1, 1)
    assert told["changed"][0]["now"]["rule"] == "none.allowed"


def test_a_torn_file_is_told_and_the_rest_is_judged(tmp_path: pathlib.Path) -> None:
    """Exit code 1: somebody must look at it."""
    file = tmp_path / "night.jsonl"
    terminal = kept(tmp_path / "one", two_blocks())
    terminal.run("replay", "--write", str(file))
    file.write_bytes(file.read_bytes()[:-30])
    code, out, err = terminal.run("replay", str(file))
    assert code == 1
    assert "1 stop of 1 session" in out
    assert "Line 2 is no recorded stop: it ends early" in err


def test_a_verdict_that_comes_out_otherwise_is_a_fault_of_ours(tmp_path: pathlib.Path) -> None:
    """Exit code 1, and it is named."""
    file = tmp_path / "night.jsonl"
    terminal = kept(tmp_path / "one", two_blocks())
    terminal.run("replay", "--write", str(file))
    file.write_text(file.read_text(encoding="ascii").replace("away.waiting_unchanged", "away.waiting_nothing_owed"))
    code, out, _ = terminal.run("replay", str(file))
    assert code == 1
    assert "1 verdict did NOT come out the same" in out


@pytest.mark.parametrize(
    "words",
    [
        ("--policy", "skwe=10m"),
        ("--policy", "skew=10 parsecs"),
        ("--policy", "nobody"),
        ("--policy", "none", "--policy", "ours"),
        ("--policy", "keeper=true"),
        ("no-such-file",),
        (".",),
        ("--period", "zzz"),
        ("--write", "x.jsonl", "--policy", "none"),
    ],
)
def test_wrong_words_are_refused(tmp_path: pathlib.Path, words: tuple[str, ...]) -> None:
    """Exit code 2, and what would be right."""
    terminal = kept(tmp_path, two_blocks())
    terminal.context.cwd = str(tmp_path)
    code, out, err = terminal.run("replay", *words)
    assert (code, out) == (2, "")
    assert err.startswith("stopwarden: ")


def test_a_file_without_stops_is_said(tmp_path: pathlib.Path) -> None:
    """Nothing that could be judged is no success."""
    (tmp_path / "empty").write_text("\n")
    code, _, err = Terminal(tmp_path).run("replay", str(tmp_path / "empty"))
    assert code == 2
    assert "holds no recorded stop" in err
    code, _, err = Terminal(tmp_path).run("replay")
    assert code == 2


def test_an_unknown_rule_is_told_with_those_there_are() -> None:
    """So the right word is at hand."""
    with pytest.raises(UsageError, match="none, block-once, first-rule, nominal, ours"):
        policies.named("theirs")


def test_a_session_of_the_recorded_zone_and_world_is_judged_in_it() -> None:
    """The zone is the recorded one, not this machine's."""
    world = World(zone=LONDON, period=AWAY, items=items("A"))
    told = judge(Stop(session="s1", at=NIGHT), SessionState(id="s1"), world, Policy())
    once = policies.block_once(Stop(session="s1", at=NIGHT), SessionState(id="s1"), world, Policy())
    assert (told.zone, once.zone) == ("Europe/London", "Europe/London")


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += _places(part, (*path, key))
    return found


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just(["x", 1]),
    st.just({"rows": 3}),
    st.just({"lines": "gone"}),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_hostile_body_is_an_error_of_its_line_and_nothing_else(data: st.DataObject) -> None:
    """Any value at any place of a record: it is judged or named; nothing else is raised, and the next line is judged."""
    night = Recorded(*items("A", "B"))
    night.stop((one_shot("21:30"), HOURLY), background=(BackgroundTask(id="b", type="shell"),))
    night.stop((one_shot("21:30"),))
    first, second = write_stops(night.store, night.store.verdicts())
    told = json.loads(first)
    path = data.draw(st.sampled_from(_places(told["body"])))
    place = told["body"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = data.draw(ODD)
    for named in ({}, {"skew": 60}):
        unread: list[Any] = []
        again = replay(read_stops([json.dumps(told), second], unread.append), named)
        assert len(again.stops) + len(again.unjudged) + len(unread) == 2
        assert again.stops[-1].line == 2
