"""What holds in whatever order things happen: hypothesis plays person, provider, tools, bridge and clock against a turn.

The promises are stated over what was sent and said, not over the machine's own flags: never a third
stream of the guard without a word of the person (I1), never one without a claim of its own granted
while nothing waited (I2), never our words in history outside a stream that began (I4), every word of
the person and every tool result in history exactly once (I5), never a stream of the guard after a
cancel or in plan mode (I6). While away the check goes on no more than the guard against a cancel, plan mode
or a queued prompt, and no stop is let go that is not in the record (I7).
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stopwarden.core import away_words as away
from stopwarden.core import door_events as asks
from stopwarden.core import turn_events as ev
from stopwarden.core.backlog_events import Cleared
from stopwarden.core.door import OUTSIDE
from stopwarden.core.errors import IllegalEventError, SettingError
from stopwarden.core.fires import Fire
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from tests.support.away_turns import AwayWorld
from tests.support.stops import items
from tests.support.turns import ARM, FINISH, LOOK, SAY, Reply, text, todos

REPLIES = [
    *[ARM] * 3,
    *[SAY] * 5,
    LOOK,
    FINISH,
    Reply(refused="down"),
    Reply(broken="down"),
    Reply(calls=1, stop="loop"),
]
REPLIES += [Reply(calls=1, left=1, stop="post_tool_use"), Reply(calls=2, left=3)]
# Answers that nobody waits for, or of another kind than the one that is.
STRAY = [lambda id: ev.StreamEnded(id=id, reply=f"stray{id}"), lambda id: asks.PlaceChecked(id=id)]
STRAY += [lambda id: asks.MoveMade(id=id), lambda id: asks.ActivitySeen(id=id), lambda id: asks.PlaceRead(id=id)]
STRAY += [lambda id: asks.RestoreAnswered(id=id), lambda _: asks.LoadBegan(), lambda _: asks.SettleAsked()]
STRAY += [lambda id: away.Judged(id=id), lambda id: away.VerdictKept(id=id)]


class AnyOrder(AwayWorld):
    """A world that is told by numbers what happens next, and knows what the person was promised."""

    def __init__(self, hooks: bool) -> None:
        super().__init__(*items("A", "B"), period="", hooks=hooks)
        self.prompts = 1_000  # of the healed end
        self.granted = False  # by a claim that no stream has used
        self.forbidden = ""  # why the guard may not send now
        self.begun: set[str] = set()
        self.stopped = ""  # the last turn that was said to have stopped while away
        self.cancelled = False  # and this holds the away check back too
        self.kinds_of: dict[str, str] = {}
        self.words: list[str] = []
        self.count = 0
        self.waits = False  # a full prompt waits at the bridge
        self.last_claim = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def _note(self, effect: ev.Effect) -> None:
        if isinstance(effect, asks.MakeMove):
            self.forbidden = self.forbidden or "a move"
        if isinstance(effect, ev.BeginTurn) and self.kinds_of.get(effect.turn) == ev.ORDINARY:
            self.forbidden, self.cancelled = "plan" if self.state.chain.plan else "", False
        if isinstance(effect, ev.Send) and effect.parts and effect.parts[-1].kind == "away":
            assert not self.cancelled, "the away check goes on after a cancel"
            assert not self.state.chain.plan, "the away check goes on in plan mode"
            assert self.granted, "a continuation of the away check without a granted claim of its own"
            self.granted = False
        if isinstance(effect, ev.EndTurn) and self.state.chain.away:
            assert not effect.rule.startswith("guard."), "while away a stop is let go by the guard (I7)"
            recorded = self.recorded[-1].rule if self.recorded else ""
            assert not effect.rule.startswith("away.") or effect.rule == recorded, "an allow is not in the record (I7)"
            known = effect.rule in (recorded, "turn.new_prompt", "turn.yielded") or self.stopped == effect.turn
            assert known or effect.turn not in self.begun, "a session that stops while away is not in the record (I7)"
        if isinstance(effect, ev.BeginTurn):
            self.begun.add(effect.turn)
        if isinstance(effect, ev.Tell) and effect.kind == "stopped_while_away":
            self.stopped = effect.turn
        if isinstance(effect, ev.Send) and effect.attempt:
            assert not self.forbidden, f"a stream of the guard after {self.forbidden} (I6)"
            assert self.granted, "a stream of the guard without a granted claim of its own (I2)"
            self.granted = False
        if isinstance(effect, ev.Claim):
            self.granted, self.last_claim = False, effect.id
        super()._note(effect)

    def happen(self, kind: int, choice: int) -> None:
        """One thing, by number. What cannot happen now must be refused and change nothing."""
        before = self.state
        try:
            self._happen(kind, choice)
        except (IllegalEventError, SettingError):
            assert self.state is before

    def _happen(self, kind: int, choice: int) -> None:
        waits = [one for one in self.open.values() if not isinstance(one, ev.Pass)]
        if (kind < 16 or (kind == 16 and choice % 8)) and waits:
            self.reply_to(waits[choice % len(waits)] if kind < 4 else waits[0], choice)
            return
        match kind % 14:
            case 0 if self.state.turn is None or choice % 4 == 0:
                self.new_prompt(choice)
            case 1:
                self.feed(ev.PromptQueuedSeen())
                self.waits = choice % 2 == 0
            case 2:
                self.forbidden, self.cancelled = self.forbidden or "a cancel", True
                self.feed(ev.Cancelled())
            case 3:
                plan = choice % 8 == 0
                self.forbidden = self.forbidden or ("plan mode" if plan else "")
                self.feed(ev.ModeChanged(plan=plan))
            case 4:
                self.feed(ev.BackgroundChanged(tasks=(Task(kind="shell", id="sh"),) if choice % 2 else ()))
            case 5:
                self.feed(ev.ResultArrived(result=Result(id=self.name("r"), kind="shell", task=self.name("task"))))
            case 6:
                self.feed(ev.FireArrived(fire=Fire(id=self.name("f"), job=f"job{choice % 2}")))
            case 7:
                self.feed(ev.Tick(now=self.state.now + (500, 2_000, 2_000_000)[choice % 3]))
            case 8 if choice % 4 == 0:
                self.feed(
                    (ev.BudgetSet(attempts=1 + choice % 3), ev.SwitchSet(switch="observe" if choice % 8 else "on"))[
                        choice % 3 > 0
                    ]
                )
            case 8:
                self.feed(ev.QueueReleased(owner=f"P{choice % 3 + 1}"))
            case 9:
                gate = (ev.GateTaken(), ev.GateReleased(), ev.GateReleased(), asks.SettleAsked())
                self.feed(gate[choice % 4] if choice % 5 else asks.MoveAsked(move=self.name("move"), path="/there"))
            case 10:
                turn = self.state.turn
                self.feed(ev.TodoWritten(turn=turn.id if turn else "old", todos=todos(choice % 3)))
            case 11:
                self.feed(away.AwaySet(period=("p1", "p1", "p1", "p2", "")[choice % 5]))
            case 12:
                self.feed(away.FencesChanged() if choice % 2 else Cleared())
            case _:
                self.feed(STRAY[choice % len(STRAY)](max(1, choice)))

    def new_prompt(self, choice: int) -> None:
        name, kind = self.name("P"), (ev.ORDINARY, ev.ORDINARY, ev.RETRY, ev.CONTINUE)[choice % 4]
        self.kinds_of[name] = kind
        said = ev.Part(kind="user", id=f"{name}-words")
        self.feed(ev.PromptOffered(prompt=ev.Prompt(id=name, kind=kind, owner=name, parts=(said,))))
        self.words.append(said.id)

    def reply_to(self, effect: ev.Effect, choice: int) -> None:
        """An answer: mostly what was hoped for."""
        bad = choice % 7 == 0
        if isinstance(effect, ev.Send) and effect.id not in self.running:
            self.replies.appendleft(REPLIES[choice % len(REPLIES)])
        elif isinstance(effect, ev.Drain):
            self.drains.append(self.drained(choice))
        elif isinstance(effect, ev.Claim):
            self.claims.append("queued" if self.waits else "malformed" if bad else "granted")
        elif isinstance(effect, ev.RegisterTurn) and choice % 3 == 0:
            self.fail(effect, ev.TurnRegistered(id=effect.id, accepted=None if bad else False))
            return
        elif isinstance(effect, ev.RunHooks):
            self.hooks.append({"block": choice % 3 == 0, "reason": "go on", "failed": bad})
        elif isinstance(effect, asks.LookForActivity | asks.ReadPlace) and choice % 2:
            self.at_the_door(effect, choice)
            return
        elif isinstance(effect, away.Judge) and bad:
            self.said.append({"failed": "the disk is full"})
        elif isinstance(effect, away.CommitVerdict) and choice % 5 == 0:
            self.kept.append({"failed": "locked"} if choice % 2 else {"stale": True})
        elif choice % 21 == 0 and isinstance(effect, ev.Compress):
            self.fail(effect, ev.CompressionFailed(id=effect.id))
            return
        elif choice % 21 == 0 and isinstance(effect, ev.CheckTokens):
            self.fail(effect, ev.TokensChecked(id=effect.id, fits=False))
            return
        self.answer(effect)

    def answer(self, effect: ev.Effect) -> None:
        """A granted claim is noted: a stream needs one of its own."""
        if isinstance(effect, ev.Claim):
            said = self.claims[0] if self.claims else "granted"
            self.granted = said == "granted" and effect.id == self.last_claim
        super().answer(effect)

    def at_the_door(self, effect: ev.Effect, choice: int) -> None:
        """Something is live still; or the session stands there already, or must not be there."""
        if isinstance(effect, asks.LookForActivity):
            self.fail(effect, asks.ActivitySeen(id=effect.id, live=True, ended=choice % 4 == 1))
        else:
            problem = "not_trusted" if choice % 4 == 1 else ""
            self.fail(effect, asks.PlaceRead(id=effect.id, same=not problem, problem=problem))

    def drained(self, choice: int) -> dict[str, Any]:
        parts = ()
        if choice % 3 == 0:
            parts = (text(self.name("m"), image=choice % 2 == 0),)
            self.words.append(parts[0].id)
        hint = None if choice % 11 == 0 else self.waits
        return {"parts": parts, "hint": hint, "reliable": choice % 13 != 0}

    def heal(self) -> None:
        """The world becomes quiet and obliging: everything open is answered, time passes, the gate opens."""
        self.waits = False
        self.replies.clear()
        self.hooks.clear()
        self.drains.clear()
        self.feed(away.AwaySet(period=""))
        if self.state.door.holder == OUTSIDE:
            self.feed(ev.GateReleased())
        self.play()
        self.feed(ev.Tick(now=self.state.now + 10_000_000))
        self.play()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.booleans(), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 200)), min_size=5, max_size=90))
def test_the_promises_hold_in_any_order(hooks: bool, things: list[tuple[int, int]]) -> None:
    """After any ninety things, and a healed end: nothing runs, and every word and result is in history once."""
    world = AnyOrder(hooks)
    world.happen(14, 0)
    for kind, choice in things:
        world.happen(kind, choice)
    world.heal()
    assert world.state.turn is None
    assert world.state.next is None
    assert not world.state.chain.closing
    refused = {f"{one.prompt}-words" for one in world.effects if isinstance(one, ev.Refuse)}
    cancelled = {f"{turn}-words" for turn, kind in world.ends() if kind == "cancelled"}
    world.prompt()  # words that were kept come with the next prompt
    for word in world.words:
        expected = world.stored(word) == 1 or word in refused or word in cancelled
        assert expected, f"{word} is in history {world.stored(word)} times"
