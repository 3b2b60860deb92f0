"""What was said, sent, admitted and delivered in a guard simulation, and the promises read from it.

The book is kept beside the machines, from what goes into them and what comes out, never from their
flags (save I3, which is about a flag: a wait that nobody ends). `broken` is the first promise that
does not hold, in words; `hits` counts every kind of event, fault, end and named race.

PROMISES has them in words; each look at one is counted (`checked`).

May not live here: what happens next (`guard_world`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from stopwarden.core import away_words as away
from stopwarden.core import backlog_events as waits
from stopwarden.core import chain_words as words
from stopwarden.core import door_events as asks
from stopwarden.core import queue_words as q
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import DRAIN_DEADLINE_MS, FAULTS_IN_A_ROW, GUARD_STREAMS
from stopwarden.sim.guard_witness import Witness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopwarden.core.events import Verdict
    from stopwarden.core.record import Record
    from stopwarden.sim.guard_disk import Disk

NEVER = 1 << 62
# Ends of a turn in which its stop was judged, and which are not for the judge to say.
NO_VERDICT = ("cancelled", "plan_mode", "yielded", "error", "max_tokens", "loop_detected")
PROMISES: Mapping[str, str] = {
    "I1": "never a third stream of the guard without new words of the person",
    "I2": "none without a claim of its own, granted in time, when no other live prompt was admitted",
    "I3": "no wait for a prompt that is not there once all is quiet, and no release while one is queued",
    "I4": "none of the guard's words in history but where a stream of the guard began; nothing staged is left over",
    "I5": "every word of the person, tool result, background result and scheduled prompt in history once, or named "
    "as removed, refused, cancelled or left out",
    "I6": "nothing sent by the guard after a cancel, in plan mode, after a rewind, a move, a dispose or a claim that "
    "was not granted, until an ordinary prompt begins",
    "I7": "while away no stop is allowed without a verdict in the record, none waits without a wake, and no reason "
    "of the check is sent before its block is recorded",
    "I8": "the judge says the same of the same stop, and the same event on the same state has the same outcome",
    "I9": "two sessions whose clocks differ by no more than the margin never hold one item at one moment, and no write "
    "of a stale holder is taken",
    "I10": "the intent to send on disk before the send; nothing that was written down lost when the agent process dies "
    "at any effect; no stream of the guard for a list of an earlier process",
    "I11": "what another session or its process says here changes nothing",
    "I12": "what we could not judge or record blocks at most three times in a row, and only while away",
    "Waiting": "nothing sent by the guard while a shell of its chain still runs; no stop put off for shells of an "
    "older chain; no scheduled prompt held back beyond the limit",
    "Goes on": "a turn whose list is unfinished, with nothing in its way, is not let stop",
    "Looked": "before each stream of the guard it was looked for words of the person at the stop, after slow hooks "
    "and before the claim, and there were none",
    "Room": "nothing sent that does not fit, and nothing by the guard after a compression that failed",
    "Counted": "an attempt is counted when a stream of the guard begins and at no other time; exhaustion is told once",
    "Order": "a turn that was cancelled ends so; no turn gives way unless a claim said so; no automatic turn before "
    "the prompt that was given way to, before one that is being admitted, with results after a cancel, or before "
    "the time of a retry",
    "Kin": "what is held for a chain's own background work is its own",
    "Gaps": "whatever is left out has a gap entry, of which the model and the person are told once; not what the chain "
    "waits for, while something else could go",
    "Ends": "every prompt has one end; a retry is vouched for after a failure alone",
    "Legal": "no event of a legal world is refused",
    "Rest": "once nothing goes wrong any more, every prompt, message and turn comes to its end",
}


class Book:
    """One history's promises."""

    def __init__(self) -> None:
        self.broken = ""
        self.hits: defaultdict[str, int] = defaultdict(int)
        self.clock = 0
        # the owner's side
        self.live: dict[str, None] = {}  # admitted prompts that neither ended nor are being stopped, in order
        self.queued: dict[str, None] = {}  # those of them that were not given to the child
        self.kinds: dict[str, str] = {}
        # the session's side
        self.turn, self.turn_kind, self.superseded = "", "", False
        self.plan, self.forbidden = False, ""
        self.claims: dict[int, tuple[str, int]] = {}  # not answered: the turn, and when it was asked
        self.grants: dict[int, str] = {}  # what was live when the owner granted it
        self.last_claim, self.usable = 0, False
        self.stage, self.chain = 0, 0
        self.reading: dict[int, str] = {}  # moves that look where the session stands
        self.unfinished, self.switch = 0, "on"  # the last list that counted
        self.listed = False  # one was written in this life of the process
        self.broken_off: dict[str, tuple[str, ...]] = {}  # words of turns that people saw fail or cancelled
        # the away check
        self.away, self.cancelled = "", False  # the period; a cancel, and no ordinary prompt since
        self.record: Verdict | None = None  # the last verdict in the record
        self.stopping = False  # the last reply of the turn asked for no tools
        self.away_late = False  # away began while that stop was being judged
        self.told_stopped = False  # and it is told that the session has stopped
        self.faults = 0  # blocks in a row for faults of ours
        # background work: each task with its kind and the era in which it began
        self.era = 0
        self.tasks: dict[str, tuple[str, int]] = {}
        self.told: dict[str, tuple[str, int]] = {}  # results, of such a task
        self.own_shells: dict[str, None] = {}
        # content
        self.intents: dict[str, tuple[ev.Part, ...]] = {}  # on disk, neither committed nor rolled back
        self.staged: dict[str, ev.Send] = {}  # and sent
        self.guard_began: dict[str, None] = {}
        self.where: dict[str, int] = {}  # how often in history
        self.owed: dict[str, str] = {}  # what must come to history, and what it is
        self.named: dict[str, str] = {}  # what was told not to come, and how
        self.of_prompt: dict[str, tuple[str, ...]] = {}
        self.witness = Witness(self)

    def hit(self, what: str) -> None:
        """Count."""
        self.hits[what] += 1

    def checked(self, promise: str, times: int = 1) -> None:
        """A promise was looked at."""
        self.hits[f"checked {promise}"] += times

    def race(self, what: str) -> None:
        """Count a named race."""
        self.hit(f"race {what}")

    def wrong(self, what: str) -> None:
        """The first broken promise stands."""
        self.broken = self.broken or what

    def forbid(self, why: str) -> None:
        """From here on the guard may not send, until an ordinary prompt begins."""
        self.forbidden = self.forbidden or why

    def owe(self, name: str, what: str) -> None:
        """Something was accepted, and must reach the model."""
        self.owed.setdefault(name, what)

    def name(self, ids: tuple[str, ...], how: str) -> None:
        """People were told that these will not reach the model (or another stands for them)."""
        for one in ids:
            self.named.setdefault(one, how)

    # ---- what the session is told

    def heard(self, event: Record) -> None:
        """An event goes into the session."""
        self.witness.heard(event)
        match event:
            case ev.Cancelled():
                self.cancelled = True
                self.forbid("a cancel")
            case ev.ModeChanged():
                self.plan = event.plan
                if event.plan:
                    self.forbid("plan mode")
            case ev.StreamEnded():
                self.stopping, self.told_stopped, self.away_late = not event.calls, False, False
            case away.AwaySet():
                self.away, self.away_late = event.period, self.stopping
            case ev.SwitchSet():
                self.switch = event.switch
                self.unfinished = 0 if event.switch == "off" else self.unfinished
            case ev.TodoWritten() if event.turn == self.turn and event.todos is not None and self.switch != "off":
                self.unfinished, self.listed = event.todos.unfinished, True
            case ev.BackgroundChanged():
                self._work_changed(event)
            case ev.ResultArrived():
                self.told[event.result.id] = self.tasks.get(event.result.task, (event.result.kind, self.era))
            case ev.FireArrived() if event.fire.kind == "wakeup":
                self.told[event.fire.id] = self.tasks.get(event.fire.job, ("wakeup", self.era))
            case asks.PlaceRead() if self.reading.pop(event.id, "") and not event.same:
                self.forbid("a move to another directory")
            case ev.ToolsDone() if event.stop and not self.superseded and self.turn_kind == ev.FOREGROUND:
                self.forbid(f"a protection ({event.stop})")
            case ev.Rewound() | ev.Disposed() | waits.Cleared():
                self.forbid(f"a session {type(event).__name__.lower()}")
            case ev.Tick():
                self.clock = max(self.clock, event.now)
                for number, (_, asked) in list(self.claims.items()):
                    if self.clock >= asked + DRAIN_DEADLINE_MS:
                        self._not_granted(number, "a claim without an answer in time")
            case ev.HookAnswered():  # nobody waits for a probe any more
                self.claims = {number: (turn, NEVER) for number, (turn, _) in self.claims.items()}
            case ev.ClaimAnswered() if event.id in self.claims:
                if event.claimed is True and event.queued is False:
                    self.usable = event.id == self.last_claim
                    self.claims.pop(event.id)
                elif event.claimed is False and event.queued is True:
                    self.claims.pop(event.id)
                else:
                    self._not_granted(event.id, "a claim that was not granted")
            case ev.PromptOffered():
                prompt = event.prompt
                self.kinds[prompt.id] = prompt.kind
                self.of_prompt[prompt.id] = tuple(part.id for part in prompt.parts)
            case _:
                pass

    def _work_changed(self, event: ev.BackgroundChanged) -> None:
        before = self.tasks
        self.tasks = {task.id: before.get(task.id, (task.kind, self.era)) for task in event.tasks}
        own = {**self.own_shells, **{one: None for one in self.tasks if one not in before}}
        self.own_shells = {one: None for one in own if self.tasks.get(one, ("", 0))[0] == "shell"}

    def _not_granted(self, claim: int, why: str) -> None:
        turn, _ = self.claims.pop(claim)
        if turn == self.turn and not self.superseded:
            self.forbid(why)

    # ---- the agent process ends, and another one loads the session

    def crashed(self, disk: Disk, event: Record, undone: tuple[ev.Effect, ...]) -> None:
        """What was in memory alone is gone: results of tools, and what nobody had written down yet."""
        self.race("crash")
        # A person's cancel holds across a restart, once it was written down; nothing else of a chain does.
        held = self.forbidden == "a cancel" and not isinstance(event, ev.Cancelled)
        self.forbidden = "a cancel" if held else ""
        if any(isinstance(one, ev.WriteHistory) and one.act == "commit" for one in undone):
            self.race("crash between acceptance and commit")
        if disk.staged:
            self.race("crash with a send staged")
            if disk.stages_ours:
                self.race("crash with a stream of the guard staged")
        staged = {part.id for parts in disk.staged.values() for part in parts}
        for one, what in list(self.owed.items()):
            if what == "the tool result" and one not in staged and not self.where.get(one):
                self.name((one,), "a call without its result in the history that is loaded")
            elif what in ("the background result", "the scheduled prompt") and not disk.knows(one):
                self.owed.pop(one)
        if isinstance(event, ev.ResultArrived | ev.FireArrived):
            self.race("crash while a result arrives")

    def restarted(self, now: int) -> None:
        """The session begins anew: no turn, no claim, no list; all work is older than its chains."""
        self.turn, self.superseded, self.clock = "", False, now
        self.claims, self.last_claim, self.usable = {}, 0, False
        self.unfinished, self.listed, self.stage, self.chain = 0, False, 0, -1
        self.era, self.own_shells = self.era + 1, {}
        self.witness.restarted()

    def child_gone(self) -> None:
        """People were told that these turns came to no good end; their words need not be in history."""
        for ids in self.broken_off.values():
            self.name(ids, "its turn ended with the agent process")

    # ---- what the session asks for

    def done(self, effect: ev.Effect, chain_number: int) -> None:
        """An effect came out of the session."""
        self.hit(f"effect {type(effect).__name__}")
        self.witness.done(effect, chain_number)
        match effect:
            case ev.BeginTurn():
                self.turn, self.turn_kind, self.superseded = effect.turn, effect.kind, False
                self.stopping = False
                if effect.kind == ev.FOREGROUND or chain_number != self.chain:
                    self.own_shells = {}
                if self.kinds.get(effect.turn) == ev.ORDINARY:
                    self.cancelled = False
                    self.era += not self.plan
                    self.unfinished = 0
                    self.forbidden = "plan mode" if self.plan else ""
                elif effect.kind != ev.FOREGROUND and chain_number != self.chain:
                    self.stage, self.era = 0, self.era + 1  # a chain of its own
                self.chain = chain_number
            case ev.EndTurn():
                self._ended(effect)
            case asks.ReadPlace():
                self.reading[effect.id] = effect.move
            case asks.MoveEnded():
                self.reading = {one: move for one, move in self.reading.items() if move != effect.move}
            case ev.Refuse():
                self.name(self.of_prompt[effect.prompt], f"refused: {effect.why}")
            case ev.Claim():
                # A claim of the away check that fails holds back that check alone, not the guard's later streams.
                self.claims[effect.id] = ("" if self.away else self.turn, self.clock)
                self.last_claim, self.usable = effect.id, False
                if effect.probe:
                    self.last_claim = 0
            case ev.Send():
                self.checked("I10")
                if self.intents.get(effect.entry) != effect.parts:
                    self.wrong(f"I10: {effect.entry} is sent before the intent to send it is on disk")
                self.staged[effect.entry] = effect
                self.stopping = False
                self._away_sends(effect)
                if effect.attempt:
                    self._guard_sends(effect)
            case ev.WriteHistory():
                self._write(effect)
            case ev.Tell(kind="stopped_while_away"):
                self.told_stopped = True
            case away.Judge():
                self.record = None
            case ev.Abort():
                self.superseded = True
                if effect.why == "not_committed":
                    self.race("stale commit")
                elif effect.why == "queued_prompt":
                    self.race("hook cut short")
            case ev.Pass():
                self._passed(effect.what)
            case _:
                pass

    def _ended(self, effect: ev.EndTurn) -> None:
        self.hit(f"end {effect.kind}")
        if effect.kind == "yielded":
            self.race("yielded")
        if effect.kind == "deferred":
            self.checked("Waiting")
        if effect.kind == "deferred" and not self._something_of_this_chain():
            self.wrong("Waiting: a stop is put off, and nothing of this chain is still to come")
        if self.away and self.stopping and effect.turn == self.turn:
            self._allowed(effect)
        if effect.turn == self.turn:
            self.turn = ""
        elif effect.turn in self.of_prompt and effect.kind == "cancelled":
            self.race("never begun")
            if effect.rule != "turn.new_prompt":  # its words go with the newer one
                self.name(self.of_prompt[effect.turn], "cancelled before it began")

    def _something_of_this_chain(self) -> bool:
        """Whether any work may belong to it: all but the shells of an older era."""
        waiting = [task for one, task in self.told.items() if not self.where.get(one) and one not in self.named]
        return any(kind != "shell" or era == self.era for kind, era in (*self.tasks.values(), *waiting))

    def _passed(self, what: Record) -> None:
        self.hit(f"passed {type(what).__name__}")
        match what:
            case waits.LeftOut():
                self.name(what.ids, "left out, with a gap entry")
            case waits.Settle() if what.how == "coalesced":
                self.name(what.ids, "a later one stands for it")
            case _:
                pass

    # ---- the away check

    def recorded(self, verdict: Verdict) -> None:
        """A verdict is counted and in the record."""
        self.record, self.faults = verdict, 0

    def _away_sends(self, send: ev.Send) -> None:
        reason = next((part.text for part in send.parts if part.kind == "away"), None)
        if reason is None:
            return
        self.checked("I7")
        self.checked("I12")
        held = "in plan mode" if self.plan else "after a cancel" if self.cancelled else "" if self.away else "at home"
        if held:
            self.wrong(f"I6: a reason of the away check is sent {held}")
        if reason.startswith("Stopwarden could not"):
            self.faults += 1
            if self.faults > FAULTS_IN_A_ROW:
                self.wrong(f"I12: our own failure blocks {self.faults} times in a row")
        elif self.record is None or not self.record.block or self.record.reason != reason:
            self.wrong("I7: a reason of the away check is sent, and its block is not in the record")

    def _allowed(self, effect: ev.EndTurn) -> None:
        """What ends a turn while away is a verdict in the record, or something that no policy has a say in."""
        self.checked("I7")
        if effect.kind in NO_VERDICT or (self.away_late and self.told_stopped):
            return
        if self.record is None or self.record.kind != effect.kind:
            self.wrong(f"I7: a stop is allowed as {effect.kind}, and the record does not say so")
        elif effect.kind == "waiting" and self.record.wake is None:
            self.wrong("I7: a session waits without a wake")

    def _guard_sends(self, send: ev.Send) -> None:
        self.hit("guard stream")
        for promise in ("I2", "I6", "Waiting"):
            self.checked(promise)
        if self.own_shells and any(part.kind == "guard" for part in send.parts):
            self.wrong(f"Waiting: the guard goes on while {', '.join(self.own_shells)} of its own chain still runs")
        if self.stage >= GUARD_STREAMS:
            self.wrong(f"I1: a stream of the guard is sent after {self.stage} without new words of the person")
        if self.forbidden:
            self.wrong(f"I6: a stream of the guard is sent after {self.forbidden}")
        if not self.usable:
            self.wrong("I2: a stream of the guard is sent without a granted claim of its own")
        elif self.grants.get(self.last_claim, "?"):
            self.wrong(f"I2: a stream of the guard is sent, though {self.grants[self.last_claim]} had been admitted")
        if not self.listed:
            self.wrong("I10: the guard goes on with a list that this process has not seen written")
        self.usable = False

    def _write(self, effect: ev.WriteHistory) -> None:
        if effect.act == "stage":  # an intent, no history yet
            self.intents[effect.entry] = effect.parts
            return
        if effect.act == "roll_back":
            self.intents.pop(effect.entry)
            self.staged.pop(effect.entry, None)  # a crash may have come before the send
            return
        parts = effect.parts
        if effect.act == "commit":
            self.intents.pop(effect.entry)
            send = self.staged.pop(effect.entry)
            parts = send.parts
            self._count_stage(send)
        for part in parts:
            if part.kind == "guard":
                self.checked("I4")
                if effect.entry not in self.guard_began:
                    self.wrong("I4: our instruction is in history, and no stream of the guard began")
                continue
            if part.kind == "gap":
                continue
            self.checked("I5")
            times = self.where.get(part.id, 0) + 1
            self.where[part.id] = times
            if times > 1:
                self.wrong(f"I5: {part.kind} {part.id} is in history {times} times")

    def _count_stage(self, send: ev.Send) -> None:
        for part in send.parts:
            if part.kind == "mid_turn" or (part.kind == "user" and not self._goes_on(part)):
                self.stage = 0
        if send.attempt:
            self.guard_began[send.entry] = None
            self.stage += 1
            self.checked("I1")
            if self.stage > GUARD_STREAMS:
                self.wrong(f"I1: {self.stage} streams of the guard without new words of the person")

    def _goes_on(self, part: ev.Part) -> bool:
        """Whether these are the words of a retry that takes up an unfinished list: its stage goes on."""
        return self.kinds.get(part.id.removesuffix("-words")) != ev.ORDINARY and self.unfinished > 0

    # ---- the owner's side

    def owner_did(self, event: q.QueueEvent, effect: q.Effect) -> None:
        """An effect came out of the queue."""
        self.hit(f"queue effect {type(effect).__name__}")
        self.witness.owner_did(effect)
        if isinstance(effect, q.SendRelease):
            self.checked("I3")
        match effect:
            case q.WriteLedger():
                if effect.state == "in_flight":
                    self.live[effect.prompt] = self.queued[effect.prompt] = None
                else:
                    self.live.pop(effect.prompt, None)
                    self.queued.pop(effect.prompt, None)
            case q.SendRelease() if self.queued:
                self.wrong(f"I3: {effect.owner} is told that nobody waits, though {', '.join(self.queued)} does")
            case q.ForwardCancel():
                self.live.pop(effect.target, None)
            case q.AnswerClaim() if isinstance(event, q.AskClaim) and effect.claimed:
                self.grants[int(effect.request)] = ", ".join(one for one in self.live if one != event.prompt)
            case q.Emit() if effect.told in ("turn_error", "turn_complete") and effect.state != "completed":
                assert effect.prompt is not None
                self.broken_off[effect.prompt] = (f"{effect.prompt}-words", effect.prompt, *effect.messages)
            case q.RunPrompt():
                self.queued.pop(effect.prompt, None)
                if self.claims:
                    self.race("promotion during a claim")
                if effect.carried:
                    self.race("carried words")
            case q.Emit() if effect.told == "mid_turn_message_removed":
                self.name(effect.messages, "removed")
            case q.Emit() if effect.told == "pending_prompt_completed" and effect.state == "removed" and effect.prompt:
                self.name((f"{effect.prompt}-words", effect.prompt), "removed")
            case _:
                pass

    # ---- at the end

    def settled(self) -> None:
        """Once things are quiet: whatever was owed has come, or was named."""
        self.checked("I4")
        self.checked("I5", len(self.owed))
        for one, what in self.owed.items():
            if not self.where.get(one) and one not in self.named:
                self.wrong(f"I5: {what} {one} is neither in history nor named as left out")
        self.witness.settled()
        if self.intents:
            self.wrong(f"I4: {', '.join(self.intents)} is neither committed nor rolled back")

    def tombstones(self, effects: tuple[ev.Effect, ...], in_flight: bool) -> None:
        """What a release came to."""
        for effect in effects:
            if isinstance(effect, ev.Pass) and isinstance(effect.what, words.ReleaseAnswered):
                if not effect.what.released:
                    self.race("late release")
                elif in_flight:
                    self.race("tombstone installed")
