"""The session's door: its gate, moves to another directory, and how a session is put together again."""

from __future__ import annotations

from typing import Any

import pytest

from stopwarden.core import backlog_events as waits
from stopwarden.core import door_events as asks
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import GATE_DEADLINE_MS, MOVES_MAX, SETTLE_PAUSE_MS
from stopwarden.core.door import LOAD_ORDER
from stopwarden.core.errors import IllegalEventError
from stopwarden.core.fires import Fire
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from tests.support.turns import ARM, LOOK, World, at_the_stop, todos

SHELL_RESULT = Result(id="r1", kind="shell", task="sh1")


class Door(World):
    """A world whose driver moves, settles and restores by hand."""

    def ask(self, kind: type[ev.Effect]) -> Any:
        """The newest effect of this kind."""
        return [one for one in self.effects if isinstance(one, kind)][-1]

    def count(self, kind: type[ev.Effect]) -> int:
        """How often this was asked for."""
        return sum(isinstance(one, kind) for one in self.effects)

    def move(self, name: str = "m1") -> None:
        """The person asks for another directory, and it is found to be one."""
        self.feed(asks.MoveAsked(move=name, path=f"/{name}"))
        self.say(asks.CheckPlace, asks.PlaceChecked, place=f"/real/{name}")

    def say(self, asked: type[ev.Effect], answer: type[ev.Answer], **said: Any) -> list[ev.Effect]:
        """Answer the newest effect of a kind."""
        self.open.pop(self.ask(asked).id, None)
        return self.feed(answer(id=self.ask(asked).id, **said))

    def look(self, *, live: bool = False, ended: bool = False) -> None:
        """What the driver sees behind the gate."""
        self.say(asks.LookForActivity, asks.ActivitySeen, live=live, ended=ended)

    def ended(self) -> list[tuple[str, str, str]]:
        """The moves that are over."""
        return [(one.move, one.kind, one.why) for one in self.effects if isinstance(one, asks.MoveEnded)]

    @property
    def held_by(self) -> str | None:
        """What holds the guard back."""
        return self.state.chain.guard.suspended_by


def armed() -> Door:
    """A session whose turn is over; the list it left waits for background work, so the guard is armed."""
    world = Door()
    world.replies.append(ARM)
    world.prompt(play=False)
    world.play(until=ev.RunTools)
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh1"),)))
    world.play()
    assert world.ends() == [("P1", "deferred")]
    return world


# ---- /cd


@pytest.mark.case("G141")
def test_a_move_is_checked_before_it_disturbs_anybody() -> None:
    """A path that leads nowhere is refused without the gate, while a prompt is taken and the guard stays armed."""
    world = armed()
    world.feed(asks.MoveAsked(move="m1", path="/nowhere"))
    assert not world.state.chain.closing
    world.say(asks.CheckPlace, asks.PlaceChecked, problem="directory_not_found")
    assert world.ended() == [("m1", "refused", "directory_not_found")]
    assert world.state.chain.guard.armed
    assert world.count(asks.ReadPlace) == 0


@pytest.mark.case("G141")
def test_a_move_to_where_the_session_stands_changes_nothing() -> None:
    """Only with the gate held is it certain; then the gate is opened again and the armed chain lives on."""
    world = armed()
    world.move()
    assert world.state.chain.closing
    world.say(asks.ReadPlace, asks.PlaceRead, same=True)
    assert world.ended() == [("m1", "unchanged", "")]
    assert world.state.chain.guard.armed
    assert world.held_by is None
    assert not world.state.chain.closing


def test_a_folder_that_looked_like_no_move_is_asked_for_trust_once_the_gate_is_held() -> None:
    """Trust was skipped at the check; the second look says it is missing: refused, and nothing has changed."""
    world = armed()
    world.feed(asks.MoveAsked(move="m1", path="."))
    world.say(asks.CheckPlace, asks.PlaceChecked, place="/here", trusted=False)
    assert world.ask(asks.ReadPlace).trusted is False
    world.say(asks.ReadPlace, asks.PlaceRead, problem="not_trusted")
    assert world.ended() == [("m1", "refused", "not_trusted")]
    assert world.state.chain.guard.armed
    assert not world.state.chain.closing


@pytest.mark.case("G141")
def test_a_real_move_ends_the_chain_and_opens_the_gate() -> None:
    """The guard is held from before the move begins; afterwards prompts are taken again."""
    world = armed()
    world.move()
    world.say(asks.ReadPlace, asks.PlaceRead)
    assert world.held_by == "relocated"
    assert world.count(asks.MakeMove) == 0
    world.look()
    assert world.ask(asks.MakeMove).place == "/real/m1"
    world.say(asks.MakeMove, asks.MoveMade, warnings=("memory",))
    assert world.ask(asks.MoveEnded).warnings == ("memory",)
    assert world.ended() == [("m1", "moved", "")]
    world.prompt()
    assert world.held_by is None


@pytest.mark.case("G141")
def test_a_move_that_failed_leaves_the_guard_held_and_the_gate_open() -> None:
    """The directory could not be entered: the chain is over all the same, and nobody is locked out."""
    world = armed()
    world.move()
    world.say(asks.ReadPlace, asks.PlaceRead)
    world.look()
    world.say(asks.MakeMove, asks.MoveMade, problem="no_access")
    assert world.ended() == [("m1", "failed", "no_access")]
    assert world.held_by == "relocated"
    assert not world.state.chain.closing


@pytest.mark.case("G141")
def test_a_move_waits_for_a_gate_that_another_holds() -> None:
    """It is let in when the gate opens, before what waits in the queues; a second move waits for the first."""
    world = Door()
    world.feed(ev.GateTaken())
    world.move("m1")
    world.move("m2")
    world.feed(ev.ResultArrived(result=SHELL_RESULT))
    assert world.count(asks.ReadPlace) == 0
    world.feed(ev.GateReleased())
    assert world.ask(asks.ReadPlace).move == "m1"
    assert world.count(ev.BeginTurn) == 0
    world.say(asks.ReadPlace, asks.PlaceRead, same=True)
    assert world.ask(asks.ReadPlace).move == "m2"
    assert world.count(ev.BeginTurn) == 0
    world.say(asks.ReadPlace, asks.PlaceRead, same=True)
    world.play()
    assert world.stored("r1") == 1


def test_a_move_does_not_wait_for_the_gate_for_ever() -> None:
    """After thirty seconds it is refused, and nothing has changed; the late check of its path is nothing."""
    world = armed()
    world.feed(ev.GateTaken())
    world.feed(asks.MoveAsked(move="slow", path="/net"))
    world.move("m1")
    world.feed(ev.Tick(now=GATE_DEADLINE_MS - 1))
    assert world.ended() == []
    world.feed(ev.Tick(now=GATE_DEADLINE_MS))
    assert world.ended() == [("slow", "refused", "no_gate_in_time"), ("m1", "refused", "no_gate_in_time")]
    assert world.state.chain.guard.armed
    check = next(one for one in world.effects if isinstance(one, asks.CheckPlace))
    assert world.feed(asks.PlaceChecked(id=check.id, place="/net")) == []


def test_a_move_whose_second_look_never_ends_gives_the_gate_back() -> None:
    """It holds the gate and nobody says where the session stands: thirty seconds after it was asked for it is refused."""
    world = armed()
    world.move()
    world.feed(ev.Tick(now=GATE_DEADLINE_MS))
    assert world.ended() == [("m1", "refused", "no_gate_in_time")]
    assert not world.state.chain.closing
    assert world.held_by is None
    assert world.feed(asks.PlaceRead(id=world.ask(asks.ReadPlace).id)) == []


def test_a_move_that_finds_no_rest_fails_after_its_time() -> None:
    """Something stays live behind the gate: the move fails, the gate opens, the guard stays held."""
    world = armed()
    world.move()
    world.say(asks.ReadPlace, asks.PlaceRead)
    world.look(live=True)
    world.feed(ev.Tick(now=GATE_DEADLINE_MS))
    assert world.ended() == [("m1", "failed", "not_settled")]
    assert world.held_by == "relocated"
    assert not world.state.chain.closing


def test_a_move_in_the_middle_of_a_turn_stops_the_guard_and_waits_for_the_turn() -> None:
    """No stream of the old list is sent any more; the session is moved when the turn is over."""
    world = Door()
    world.replies.append(ARM)
    world.prompt(play=False)
    world.play(until=ev.RunTools)
    world.move()
    world.say(asks.ReadPlace, asks.PlaceRead)
    assert world.count(asks.LookForActivity) == 0
    world.play(until=asks.LookForActivity)
    assert world.attempts() == []
    assert world.ends() == [("P1", "suspended")]
    world.look()
    assert world.count(asks.MakeMove) == 1


def test_only_so_many_moves_wait() -> None:
    """A client that asks again and again is refused beyond five; a session put away refuses at once."""
    world = Door()
    world.feed(ev.GateTaken())
    for number in range(MOVES_MAX + 1):
        world.feed(asks.MoveAsked(move=f"m{number}", path="/x"))
    assert world.ended() == [(f"m{MOVES_MAX}", "refused", "too_many_moves")]
    world.feed(ev.Disposed())
    world.feed(asks.MoveAsked(move="late", path="/x"))
    assert world.ended()[-1] == ("late", "refused", "disposed")


@pytest.mark.parametrize("at", ["checking", "waiting", "reading", "settling", "moving"])
def test_a_dispose_ends_every_move(at: str) -> None:
    """Whatever the move waits for, its caller hears of the end; a late answer is nothing, the gate stays shut."""
    world = Door()
    if at == "waiting":
        world.feed(ev.GateTaken())
    world.feed(asks.MoveAsked(move="m1", path="/x"))
    last = world.ask(asks.CheckPlace)
    if at != "checking":
        world.say(asks.CheckPlace, asks.PlaceChecked)
    if at in ("settling", "moving"):
        world.say(asks.ReadPlace, asks.PlaceRead)
    if at == "moving":
        world.look()
        last = world.ask(asks.MakeMove)
    assert world.state.door.moves[0].stage == at
    world.feed(ev.Disposed())
    assert world.ended() == [("m1", "failed" if at in ("settling", "moving") else "refused", "disposed")]
    answer = asks.MoveMade if at == "moving" else asks.PlaceChecked
    assert world.feed(answer(id=last.id)) == []


# ---- gate and settling


@pytest.mark.case("G137")
def test_the_gate_refuses_prompts_until_everything_has_come_to_rest() -> None:
    """Who holds it hears so only when the turn is over and nothing else is live; meanwhile every prompt is refused."""
    world = Door()
    world.replies.append(LOOK)
    world.prompt(play=False)
    world.play(until=ev.RunTools)
    world.feed(ev.GateTaken())
    world.feed(asks.SettleAsked())
    world.feed(ev.PromptOffered(prompt=ev.Prompt(id="early")))
    world.play(until=asks.LookForActivity)
    assert world.ends() == [("P1", "done")]
    world.feed(ev.PromptOffered(prompt=ev.Prompt(id="later")))
    assert world.count(asks.GateSettled) == 0
    world.look()
    assert world.ask(asks.GateSettled).settled
    world.feed(ev.PromptOffered(prompt=ev.Prompt(id="still")))
    refused = [(one.prompt, one.why) for one in world.effects if isinstance(one, ev.Refuse)]
    assert refused == [("early", "closing"), ("later", "closing"), ("still", "closing")]
    world.feed(ev.GateReleased())
    world.prompt()
    assert world.ends()[-1] == ("P2", "done")


@pytest.mark.case("G140")
def test_a_successor_of_what_has_ended_is_waited_for() -> None:
    """The prompt let in before the gate begins when the older turn ends: settling goes on until that is over too."""
    world = Door()
    world.replies.append(LOOK)
    world.prompt(play=False)
    tools = world.play(until=ev.RunTools)
    world.prompt(play=False)
    world.feed(ev.GateTaken())
    world.feed(asks.SettleAsked())
    world.answer(tools)
    assert world.ends() == [("P1", "cancelled")]
    assert world.state.turn is not None
    assert world.count(asks.LookForActivity) == 0
    world.play(until=asks.LookForActivity)
    assert world.ends()[-1] == ("P2", "done")


@pytest.mark.case("G140")
def test_settling_asks_again_while_anything_is_live() -> None:
    """Something ended and another is live: asked again at once. Nothing ended: a moment later, not in between."""
    world = Door()
    world.feed(ev.GateTaken())
    world.feed(asks.SettleAsked())
    world.look(live=True, ended=True)
    assert world.count(asks.LookForActivity) == 2
    world.look(live=True)
    assert world.count(asks.LookForActivity) == 2
    world.feed(ev.Tick(now=SETTLE_PAUSE_MS - 1))
    assert world.count(asks.LookForActivity) == 2
    world.feed(ev.Tick(now=SETTLE_PAUSE_MS))
    assert world.count(asks.LookForActivity) == 3
    world.look()
    assert world.ask(asks.GateSettled).settled


def test_settling_has_an_end() -> None:
    """After thirty seconds the holder hears that something is still live; a look that comes then is late."""
    world = Door()
    world.feed(ev.GateTaken())
    world.feed(asks.SettleAsked())
    world.feed(ev.Tick(now=GATE_DEADLINE_MS - 1))
    assert world.count(asks.GateSettled) == 0
    world.feed(ev.Tick(now=GATE_DEADLINE_MS))
    assert not world.ask(asks.GateSettled).settled
    assert world.feed(asks.ActivitySeen(id=world.ask(asks.LookForActivity).id)) == []
    assert world.state.chain.closing


def test_who_lets_go_while_it_settles_hears_no_more_of_it() -> None:
    """The gate is released before the look is answered: the answer is late, prompts are taken."""
    world = Door()
    world.feed(ev.GateTaken())
    world.feed(asks.SettleAsked())
    world.feed(ev.GateReleased())
    assert world.feed(asks.ActivitySeen(id=world.ask(asks.LookForActivity).id)) == []
    assert world.count(asks.GateSettled) == 0


@pytest.mark.case("G138")
def test_a_session_put_away_behind_its_gate_stays_shut() -> None:
    """Who held the gate and waited for rest is answered, lets go, and the gate is not opened again."""
    world = Door()
    world.feed(ev.GateTaken())
    world.feed(asks.SettleAsked())
    world.feed(ev.Disposed())
    assert not world.ask(asks.GateSettled).settled
    world.feed(ev.GateReleased())
    assert world.state.chain.closing
    with pytest.raises(IllegalEventError):
        world.feed(asks.SettleAsked())


@pytest.mark.parametrize(
    "event",
    [
        ev.GateReleased(),
        ev.GateTaken(),
        asks.SettleAsked(),
        asks.MoveAsked(move="m1", path="/again"),
        asks.MoveAsked(move="", path="/x"),
        asks.MoveAsked(move="outside", path="/x"),
        asks.MoveMade(id=2),
        asks.PlaceRead(id=9_999),
        asks.ActivitySeen(id=0),
        asks.RestoreAnswered(id=9_999),
        asks.LoadBegan(),
    ],
)
def test_what_cannot_happen_at_the_door_is_an_error_that_changes_nothing(event: ev.Event) -> None:
    """A move holds the gate and looks where the session stands: nobody else opens, takes or settles it."""
    world = Door()
    world.move()
    before = world.state
    with pytest.raises(IllegalEventError):
        world.feed(event)
    assert world.state is before


# ---- loading


def load(world: Door, **restored: Any) -> None:
    """Restore everything, row by row."""
    world.feed(asks.LoadBegan())
    for row in LOAD_ORDER:
        what = waits.Restored(**restored) if row.what == "waiting" else None
        world.say(asks.Restore, asks.RestoreAnswered, waiting=what)


@pytest.mark.case("G142")
def test_schedules_start_when_all_is_restored_and_not_before() -> None:
    """History, what waited, agents, the rest; each is asked for after the one before, and the scheduler last."""
    world = Door()
    load(world, fires=(Fire(id="due", job="nightly"),))
    asked = [one for one in world.effects if isinstance(one, asks.Restore | asks.LoadEnded | asks.StartCron)]
    assert [getattr(one, "what", type(one).__name__) for one in asked] == [
        *("history", "waiting", "agents", "rest"),
        *("LoadEnded", "StartCron"),
    ]
    assert world.order().index("StartCron") < world.order().index("BeginTurn")
    world.play()
    assert world.stored("due") == 1


@pytest.mark.case("G142", "BR-090")
@pytest.mark.parametrize("rows", range(len(LOAD_ORDER)))
def test_nothing_begins_before_the_session_is_whole(rows: int) -> None:
    """A prompt is taken and waits; what waited before the restart waits too; a schedule cannot fire."""
    world = Door()
    world.feed(asks.LoadBegan())
    world.prompt(play=False)
    for row in LOAD_ORDER[:rows]:
        what = waits.Restored(results=(SHELL_RESULT,)) if row.what == "waiting" else None
        world.say(asks.Restore, asks.RestoreAnswered, waiting=what)
    before = world.state
    for early in (ev.FireArrived(fire=Fire(id="f1", job="nightly")), ev.Rewound(), asks.LoadBegan()):
        with pytest.raises(IllegalEventError):
            world.feed(early)
    assert world.state is before
    assert world.count(ev.BeginTurn) == 0
    for row in LOAD_ORDER[rows:]:
        what = waits.Restored(results=(SHELL_RESULT,)) if row.what == "waiting" else None
        world.say(asks.Restore, asks.RestoreAnswered, waiting=what)
    world.play()
    assert [one.kind for one in world.effects if isinstance(one, ev.BeginTurn)] == ["foreground", "notification"]
    assert world.stored("r1") == 1


@pytest.mark.case("G142")
def test_restored_work_is_old_and_a_restored_list_arms_nothing() -> None:
    """An agent that was there before the restart defers no stop of the next prompt, and a replayed list is no list."""
    world = Door()
    world.feed(asks.LoadBegan())
    world.feed(ev.TodoWritten(turn="P-old", todos=todos(3)))
    world.say(asks.Restore, asks.RestoreAnswered)
    world.say(asks.Restore, asks.RestoreAnswered, waiting=waits.Restored())
    world.feed(ev.BackgroundChanged(tasks=(Task(kind="agent", id="a1"),)))
    world.feed(ev.ResultArrived(result=Result(id="early", kind="agent", task="a1")))
    world.say(asks.Restore, asks.RestoreAnswered)
    assert not world.state.chain.guard.armed
    world.prompt(play=False)
    world.say(asks.Restore, asks.RestoreAnswered)
    assert not any(one.related for one in world.state.backlog.results)
    world.replies.append(ARM)
    world.play()
    assert ("P1", "exhausted") in world.ends()


def test_a_result_cannot_come_before_what_waited_is_known_again() -> None:
    """It might be one of those that waited, and would be told twice."""
    world = Door()
    world.feed(asks.LoadBegan())
    for _ in range(2):
        with pytest.raises(IllegalEventError):
            world.feed(ev.ResultArrived(result=SHELL_RESULT))
        if world.state.door.loading == "history":
            world.say(asks.Restore, asks.RestoreAnswered)


def test_a_cancel_while_a_session_is_loaded_holds_what_waited() -> None:
    """The results that waited before the restart go to no turn of their own until the person writes."""
    world = Door()
    world.feed(asks.LoadBegan())
    world.feed(ev.Cancelled())
    for row in LOAD_ORDER:
        what = waits.Restored(results=(SHELL_RESULT,)) if row.what == "waiting" else None
        world.say(asks.Restore, asks.RestoreAnswered, waiting=what)
    assert world.count(ev.BeginTurn) == 0
    world.prompt()
    assert world.stored("r1") == 1


@pytest.mark.parametrize("lost", ["history", "waiting"])
def test_without_its_history_or_its_queue_a_session_is_not_loaded(lost: str) -> None:
    """It is put away with the problem told, the prompt that waited is ended, and no schedule starts."""
    world = Door()
    world.feed(asks.LoadBegan())
    world.prompt(play=False)
    if lost == "waiting":
        world.say(asks.Restore, asks.RestoreAnswered)
    world.say(asks.Restore, asks.RestoreAnswered, problem="torn")
    assert world.ask(asks.LoadEnded).problem == "torn"
    assert world.state.chain.disposed
    assert world.ends() == [("P1", "cancelled")]
    assert world.count(asks.StartCron) == 0


def test_a_session_without_its_old_agents_is_loaded_all_the_same() -> None:
    """What could not be restored is told, and the rest goes on."""
    world = Door()
    world.feed(asks.LoadBegan())
    world.say(asks.Restore, asks.RestoreAnswered)
    world.say(asks.Restore, asks.RestoreAnswered, waiting=waits.Restored())
    world.say(asks.Restore, asks.RestoreAnswered, problem="gone")
    assert world.told("not_restored") == [{"what": "agents", "why": "gone"}]
    world.say(asks.Restore, asks.RestoreAnswered)
    assert world.count(asks.StartCron) == 1


def test_a_dispose_ends_a_load() -> None:
    """Whoever loads it hears so; the answer that comes then is late, and no schedule starts."""
    world = Door()
    world.feed(asks.LoadBegan())
    world.feed(ev.Disposed())
    assert world.ask(asks.LoadEnded).problem == "disposed"
    world.say(asks.Restore, asks.RestoreAnswered)
    assert world.count(asks.StartCron) == 0


def test_settling_waits_for_a_load() -> None:
    """A session that is being loaded is not at rest."""
    world = Door()
    world.feed(asks.LoadBegan())
    world.feed(ev.GateTaken())
    world.feed(asks.SettleAsked())
    assert world.count(asks.LookForActivity) == 0
    for row in LOAD_ORDER:
        what = waits.Restored() if row.what == "waiting" else None
        world.say(asks.Restore, asks.RestoreAnswered, waiting=what)
    assert world.count(asks.LookForActivity) == 1


def test_what_waited_is_no_part_of_another_row() -> None:
    """An answer with it for another row, or without it for its own, is refused and changes nothing."""
    world = Door()
    world.feed(asks.LoadBegan())
    for answer in ({"waiting": waits.Restored()}, {}):
        before = world.state
        if not answer:
            world.say(asks.Restore, asks.RestoreAnswered)
            before = world.state
        with pytest.raises(IllegalEventError):
            world.say(asks.Restore, asks.RestoreAnswered, **answer)
        assert world.state is before


@pytest.mark.parametrize(
    "first",
    [
        ev.PromptOffered(prompt=ev.Prompt(id="P1")),
        ev.ResultArrived(result=SHELL_RESULT),
        ev.Disposed(),
    ],
)
def test_a_session_with_a_past_is_given_no_other(first: ev.Event) -> None:
    """Loading is for a session to which nothing has happened."""
    world = Door()
    world.feed(first)
    with pytest.raises(IllegalEventError):
        world.feed(asks.LoadBegan())


def test_a_loaded_session_counts_its_effects_from_one_at_least() -> None:
    """Ids name entries of history: one below the first there can be is refused."""
    world = Door()
    with pytest.raises(IllegalEventError):
        world.feed(asks.LoadBegan(first=0))


# ---- failures that look like a cancel


@pytest.mark.case("G136")
@pytest.mark.parametrize("answer", [ev.ProviderRefused, ev.StreamBroken])
def test_an_abort_that_nobody_asked_for_is_an_error(answer: Any) -> None:
    """The provider says its request was aborted, and we did not abort it: the turn fails, may be retried, is no cancel."""
    world = at_the_stop()
    send = world.play(until=ev.Send)
    while not send.attempt:
        world.answer(send)
        send = world.play(until=ev.Send)
    if answer is ev.StreamBroken:
        world.answer(send)
    world.fail(send, answer(id=send.id, why="AbortError"))
    assert world.ends() == [("P1", "error")]
    assert world.state.chain.guard.retry_paused
    assert not world.state.chain.guard.suspended
