"""Deliberate faults of the machines, and the hunt for each: what finds it, and how soon.

Each fault is a small patch to a module of `core/`: place, the text that stands there, another text.
`python -m tests.machine_faults` hunts all of them in processes of their own, with the patched module in
the place of the real one, and writes `docs/faults.md`; `python -m tests.machine_faults "WHAT"` hunts one.
The simulator plays seeds from 1 on until a promise breaks, at most SEEDS; what it does not find, the
model checker of the claim protocol is asked for.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

ROOT = pathlib.Path(__file__).parent.parent
CORE = ROOT / "src" / "stopwarden" / "core"
PAGE = ROOT / "docs" / "faults.md"
SEEDS = int(os.environ.get("STOPWARDEN_HUNT_SEEDS", "2000"))
STATES = 8_000  # of each part of the model
# What waits is beyond the model: it has no background work and no schedules.
BEYOND_THE_MODEL = ("backlog", "fires", "gaps", "lineage", "results")


class MachineFault(NamedTuple):
    """One broken rule: what goes wrong, in which module of the core, and the text that is replaced."""

    what: str
    module: str
    old: str
    new: str


class Found(NamedTuple):
    """Who found it ("simulator", "model" or ""), after how many seeds or states, and the broken promise."""

    by: str
    after: int
    broken: str


F = MachineFault
FAULTS = (
    # the guard
    F("a third stream is allowed", "guard", "if guard.attempts >= budget.attempts:", "if guard.attempts > budget.attempts:"),
    F("an attempt is not counted", "guard", "guard.replace(attempts=attempt, first_attempt_at=first), True", "guard.replace(first_attempt_at=first), True"),
    F("a hard suspension does not lock", "guard", "return guard.replace(suspended_by=held_by, awaiting=False)", "return guard.replace(awaiting=False)"),
    F("a suspension that forgets does not lock", "guard", "start_ordinary(guard).replace(suspended_by=_held_by(guard, reason))", "start_ordinary(guard)"),
    F("running background work is not looked at", "guard", "    if background:\n        return Decision(kind=\"deferred\", why=\"background\", attempt", "    if False:\n        return Decision(kind=\"deferred\", why=\"background\", attempt"),
    F("an observing guard sends", "guard", "    if guard.switch == \"observe\":\n", "    if False:\n"),
    F("a paused chain goes on by itself", "guard", "return not guard.suspended and not guard.retry_paused and not guard.awaiting", "return not guard.suspended and not guard.awaiting"),
    F("half a stage is left after words of the person", "guard", "guard.replace(attempts=0, retry_paused=False, awaiting=False, exhaustion_reported=False)", "guard.replace(retry_paused=False, awaiting=False, exhaustion_reported=False)"),
    F("a list written in plan mode arms", "chain", "allow_arm=not chain.plan", "allow_arm=True"),
    # the chain
    F("the old chain is not locked when a prompt is admitted", "chain", "guard = guards.block_until_ordinary(guard, \"superseded\")", "pass"),
    F("a new prompt inherits the old chain's trust", "chain", "guards.start_ordinary(chain.guard) if founds == \"chain\" else chain.guard", "chain.guard.replace(suspended_by=None)"),
    F("an ordinary prompt lifts no suspension", "chain", "guards.start_ordinary(chain.guard) if founds == \"chain\" else chain.guard", "chain.guard"),
    F("a retry lifts a suspension", "chain", "\"lineage\" if held_hard else \"chain\"", "\"chain\""),
    F("an automatic turn lifts a suspension", "chain", "    if guard.suspended:\n        return started, ()\n", ""),
    F("an admitted prompt does not end the wait for it", "chain", "guard=guard, priority_owner=None, number=number", "guard=guard, number=number"),
    F("a wait is installed after its release", "chain", "        (claim.released, \"unavailable\", \"released\"),\n", ""),
    F("a release marks no claim in flight", "chain", "one.replace(released=True) if one.owner", "one if one.owner"),
    F("a release does not end the wait", "chain", "        after = _held_back(after, \"released\")\n", "        pass\n"),
    F("a release for anybody ends the wait", "chain", "waited = chain.priority_owner == event.owner", "waited = chain.priority"),
    F("a claim of an older chain counts", "chain", "        (claim.chain != chain.number, \"unavailable\", \"superseded\"),\n", ""),
    F("a refused claim leaves the chain trusted", "chain", "after = _held_back(after, \"claim_unavailable\").replace(priority_owner=others)", "pass"),
    F("a malformed answer is a grant", "chain", "return \"malformed\"", "return \"granted\""),
    F("a deadline is a grant", "chain", "\"deadline\": \"unavailable\"", "\"deadline\": \"claimed\""),
    F("a cancel does not hold the chain", "chain", "_held_back(chain.replace(admitted=None), \"cancelled\"), (CancelAnswered", "chain.replace(admitted=None), (CancelAnswered"),
    F("plan mode does not clear trust", "chain", "after = _held_back(chain.replace(plan=True), \"plan\")", "after = chain.replace(plan=True)"),
    F("history taken back leaves the chain trusted", "chain", "return _held_back(chain, \"rewound\"), ()", "return chain, ()"),
    F("a moved session goes on with its chain", "chain", "return _held_back(chain, \"relocated\").replace(drain_when_idle=False), ()", "return chain.replace(drain_when_idle=False), ()"),
    F("plan mode lets an automatic turn pass the queued prompt", "guard", "\"plan\": Suspension(forgets=True, keeps_priority=True)", "\"plan\": Suspension(forgets=True, keeps_priority=False)"),
    F("exhaustion is told again and again", "chain", "    if not _has_say(chain, event.turn) or chain.guard.exhaustion_reported:\n        return chain, ()", "    if not _has_say(chain, event.turn):\n        return chain, ()"),
    F("an automatic turn begins over a waiting prompt", "chain", "quiet = chain.running is None and chain.admitted is None and", "quiet = chain.running is None and"),
    # the stop and the stream
    F("the claim is dropped", "continuation", "    ask_claim(pen, probe=False)\n", "    pen.on(claim=\"claimed\")\n"),
    F("a refused claim sends all the same", "continuation", "    elif pen.running.claim == \"claimed\":\n        return\n", "    elif pen.running.claim:\n        return\n"),
    F("a claim answered with a queued prompt sends", "continuation", "        give_way(pen)\n    elif", "        return\n    elif"),
    F("a guard stream asks no drain", "continuation", "        ask_drain(pen, watched=True)\n    else:\n", "        pen.go(\"stream\", \"stream.look_at_plan\")\n    else:\n"),
    F("the claim comes before the drain", "continuation", "    Row(rule=\"stream.drain\", act=drain),\n", "    Row(rule=\"stream.claim_first\", act=claim),\n    Row(rule=\"stream.weigh_claim_first\", act=weigh_claim),\n    Row(rule=\"stream.drain\", act=drain),\n"),
    F("words drained on yielding are forgotten", "continuation", "    pen.store(drained)\n", ""),
    F("words drained at a stop are forgotten on yielding", "stop_loop", "        pen.store(found.parts)\n        pen.end(\"yielded\"", "        pen.end(\"yielded\""),
    F("a hint is taken for a queued prompt", "stop_loop", "        ask_claim(pen, probe=True)\n", "        pen.on(claim=\"queued\")\n"),
    F("the last look before a send is dropped", "continuation", "    if stream.attempt and (guard.suspended or guard.switch", "    if False and (guard.suspended or guard.switch"),
    F("the instruction is written before the stream begins", "continuation", "    pen.ask(\"send\", Send, entry", "    pen.store(parts)\n    pen.ask(\"send\", Send, entry"),
    F("a stream without room is sent", "continuation", "    if not turn.fits:\n", "    if False:\n"),
    F("the guard sends though compression failed", "continuation", "if pen.running.compression_failed and (stream.attempt or", "if pen.running.compression_failed and ("),
    F("results of a stopped batch are forgotten", "continuation", "        pen.on(stream=following)\n        pen.put_away(\"refused\")\n", ""),
    F("results after the last attempt are forgotten", "continuation", "        pen.store(following.parts)\n", ""),
    F("words drained after tools are forgotten", "continuation", "    parts = turn.tool_parts + drained\n", "    parts = turn.tool_parts\n"),
    F("a protection leaves the chain trusted", "failures", "        pen.chained(words.ChainSuspended(turn=turn, reason=failure.trust))\n", "        pass\n"),
    F("a late commit counts", "turn_answers", "    if not counted or (", "    if ("),
    F("a late commit leaves its entry staged", "turn_answers", "    pen.roll_back()\n    pen.do(ev.Abort", "    pen.do(ev.Abort"),
    F("a refused stream costs an attempt", "turn_answers", "    pen.roll_back()\n    if not", "    pen.chained(words.AttemptCommitted(turn=pen.running.id, attempt=pen.running.stream.attempt, at=pen.seconds()))\n    pen.roll_back()\n    if not"),
    F("a refused stream stays in history", "turn_answers", "    pen.roll_back()\n    if not", "    pen.do(ev.WriteHistory, act=\"commit\", entry=pen.running.stream.entry)\n    if not"),
    F("a begun stream does not count", "turn_answers", "        committed = words.AttemptCommitted(turn=turn.id, attempt=stream.attempt, at=pen.seconds())\n        counted = not any(isinstance(effect, words.CommitRefused) for effect in pen.chained(committed))\n", "        pass\n"),
    F("an unwinding turn loses its tool results", "turn_answers", "        pen.store(event.parts)\n        return\n    pen.on(tool", "        return\n    pen.on(tool"),
    F("what is delivered is not known to be", "turn_answers", "        pen.waited(waits.TurnAccepted(turn=stream.carried or stream.entry))\n", "        pass\n"),
    # the turn
    F("a drain that took too long is forgotten", "turn", "            pen.set(late_drains=(*pen.state.late_drains, waiting.id))\n", ""),
    F("a drain that was cut is forgotten", "turn_state", "                self.set(late_drains=(*self.state.late_drains, waiting.id))\n", "                pass\n"),
    F("an unwinding turn forgets what it had drained", "turn", "    if turn.found is not None:\n        pen.store(turn.found.parts)\n", ""),
    F("words kept for the next prompt are dropped", "turn", "    parts = pen.state.kept + prompt.parts\n", "    parts = prompt.parts\n"),
    F("the gate is looked at once", "turn", "    if pen.chain.disposed or pen.chain.closing or not event.granted:", "    if pen.chain.disposed or not event.granted:"),
    F("a turn begins while a prompt is being admitted", "automatic", " or pen.state.arriving or pen.state.now < pen.state.retry_at:", " or pen.state.now < pen.state.retry_at:"),
    F("a failed turn is tried again at once", "automatic", " or pen.state.arriving or pen.state.now < pen.state.retry_at:", " or pen.state.arriving:"),
    F("results are told right after a cancel", "turn", "    pen.waited(waits.Paused())\n", ""),
    F("a release is not heard", "turn", "    pen.chained(words.Released(owner=event.owner))\n", "    pass\n"),
    F("words kept for a drain are lost when the session is put away", "turn", "    pen.store(pen.state.kept)\n    pen.set(kept=())\n    door", "    pen.set(kept=())\n    door"),
    F("a cancel does not cut the turn", "turn", "    drop_next(pen, \"cancel\")\n    if pen.turn is not None:\n        cut_short(pen, \"cancel\")", "    drop_next(pen, \"cancel\")"),
    F("what was not sent goes nowhere", "turn_state", "            self.store(tuple(part for part in stream.parts if part.kind not in CARRIED))\n", ""),
    F("results in hand are lost with the turn", "turn_state", "        self.store(self.running.tool_parts)\n", ""),
    F("what was carried does not come back", "turn_state", "                self.waited(TurnReturned(turn=stream.carried, why=why, holding=self.holding()))", "                pass"),
    # lineage
    F("the snapshot is reset without the related agents", "backlog", "begun = lineage.begun(event.world, _tasks(backlog))", "begun = lineage.begun(event.world, _tasks(backlog)).replace(related=backlog.lineage.related)"),
    F("the snapshot is reset without the marks", "backlog", "begun = lineage.begun(event.world, _tasks(backlog))", "begun = lineage.begun(event.world, _tasks(backlog)).replace(marks=backlog.lineage.marks)"),
    F("a new chain takes old work for its own", "lineage", "baseline=frozenset((task.kind, task.id) for task in world) | frozenset(queued)", "baseline=frozenset(queued)"),
    F("what waits is no part of the snapshot", "lineage", " for task in world) | frozenset(queued))", " for task in world))"),
    F("results of the chain before stay related", "backlog", "results=results.as_old(backlog.results)", "results=backlog.results"),
    F("one failed send takes away every mark of its agent", "lineage", "if mark[0] != send)", "if mark[1] not in targets)"),
    F("a failed send relates its agent", "lineage", "if succeeded else lineage.related\n", "\n"),
    F("a send that is under way does not count", "lineage", "    return lineage.replace(marks=(*lineage.marks, (send, agent)))", "    return lineage"),
    F("a send that succeeded does not count", "lineage", "related = lineage.related | frozenset(targets) if succeeded else lineage.related", "related = lineage.related"),
    F("a missing parent counts as related", "lineage", "answer = known.get(agent) if agent else True", "answer = known.get(agent) if agent in parents else True"),
    F("a circle of parents is related", "lineage", "known[agent] = False", "known[agent] = True"),
    F("a monitor is judged without its owner", "lineage", "if rule == \"by_owner\" and owner:", "if False:"),
    F("an ordinary schedule is related", "lineage", "return rule != \"never\" and", "return"),
    F("the wait for background work has no limit", "lineage", "if deferral.too_long or now - since < limit:", "if True:"),
    # what waits
    F("the queue evicts what the chain waits for", "results", "if not (holding.deferring and waiting.related)]", "]"),
    F("a related wakeup is trimmed", "fires", "unrelated = [fire for fire in queue if not fire.related]", "unrelated = list(queue)"),
    F("what finds no room is dropped without a word", "backlog", "    if not gone:\n", "    if True:\n"),
    F("what finds no room has no gap entry", "backlog", "    now_open, effects = gaps.opened(backlog.gaps, named, why)\n", "    now_open, effects = backlog.gaps, ()\n"),
    F("a batch loses one", "backlog", "    ids = tuple(result.id for result in batch)\n", "    ids = tuple(result.id for result in batch[1:] or batch)\n"),
    F("an interrupted scheduled turn wipes the others", "backlog", "fires.put_back(backlog.fires, way.fire, holding)", "fires.put_back((), way.fire, holding)"),
    F("results that came back are dropped", "backlog", "results.put_back(backlog.results, way.results, holding)", "results.put_back(backlog.results, way.results[1:], holding)"),
    F("a later fire swallows the one before without a word", "backlog", "    replaced = tuple(fire.id for fire in admission.replaced)\n", "    replaced: tuple[str, ...] = ()\n"),
    F("a turn that came to nothing has told of the gaps", "gaps", "open=tuple(gap.replace(turn=\"\") if gap.turn == turn", "open=tuple(gap.replace(turn=\"\", told_model=True) if gap.turn == turn"),
    F("the model is told of a gap twice", "gaps", "gap.replace(turn=\"\", told_model=True) if gap.turn == turn else gap for gap in gaps.open)\n    gaps, read", "gap.replace(turn=\"\") if gap.turn == turn else gap for gap in gaps.open)\n    gaps, read"),
    F("a gap that could not be shown counts as shown", "gaps", "showing=False, told_person=done", "showing=False, told_person=True"),
    F("a gap that one knows of is closed", "gaps", "if not (gap.told_model and gap.told_person))", "if not (gap.told_model or gap.told_person))"),
    F("gap entries beyond memory are forgotten", "gaps", "held = found[-1].number if len(found) == room else asked.through", "held = asked.through"),
    # the owner's queue
    F("a chain overtakes a queued prompt", "queue_claims", "queued=True, has_queued_prompt=True, wait=\"set\")", "queued=True, claimed=True)"),
    F("a stranger's claim is granted", "queue_claims", "ClaimRow(rule=\"claim.not_the_owner\", owner=\"other\")", "ClaimRow(rule=\"claim.not_the_owner\", owner=\"other\", claimed=True)"),
    F("a claim without an owner is granted while a prompt runs", "queue_claims", "ClaimRow(rule=\"claim.ownerless_busy\", owner=\"none\", busy=True)", "ClaimRow(rule=\"claim.ownerless_busy\", owner=\"none\", busy=True, claimed=True)"),
    F("a release while another prompt waits", "queue_prompts", "if owner is not None and not live_queued(move.state):", "if owner is not None:"),
    F("nobody is released", "queue_prompts", "if owner is not None and not live_queued(move.state):", "if False:"),
    F("a release goes to nobody", "queue_prompts", "number = move.do(SendRelease, owner=owner)", "number = move.do(SendRelease, owner=\"nobody\")"),
    F("a promotion does not clear the wait", "queue_prompts", "        move.set(wait_owner=None)\n        move.tell(\"pending_prompt_started\"", "        move.tell(\"pending_prompt_started\""),
    F("a hung child holds the queue for ever", "queue_prompts", "        end_turn_of(move, entry.prompt, \"cancelled\")", "        return"),
    F("the next prompt begins before a cancel is answered", "queue_prompts", "state.child is None or state.closing or state.forwards:", "state.child is None or state.closing:"),
    F("a prompt has two ends", "queue_prompts", "    if entry.terminal is not None:\n        return\n    move.change(prompt, terminal", "    move.change(prompt, terminal"),
    F("a retry is vouched for that no failure preceded", "queue_prompts", "if entry.asks == \"retry\" and state.last_turn == \"failed\":", "if entry.asks == \"retry\":"),
    F("messages of a failed drain are lost", "queue_messages", "move.set(drain=None, messages=back + move.state.messages)", "move.set(drain=None)"),
    F("a message is handed over twice", "queue_messages", "    delivered(move, messages)\n\n\ndef delivered", "\n\ndef delivered"),
    F("a late message is handed over twice", "queue_messages", "        if carried:\n            delivered(move, carried)\n", ""),
    F("a message that nobody heard becomes no prompt", "queue_messages", "        append(move, entry)\n", ""),
)  # fmt: skip


# What neither finds, and why. Such a fault is kept: another test finds it, or the machines make up for it.
UNSEEN: dict[str, str] = {
    "an observing guard sends": "made up for: the last look before the send holds it back",
    "a paused chain goes on by itself": "made up for: the turn that failed has ended, and what begins the next one resumes the chain",
    "half a stage is left after words of the person": "errs on the safe side: fewer streams than allowed, and no promise is about that",
    "a list written in plan mode arms": "made up for: plan mode has locked the chain before",
    "the old chain is not locked when a prompt is admitted": "made up for: the old turn is cut and the new chain begins clean",
    "a release for anybody ends the wait": "made up for: a legal owner releases nobody else",
    "a refused claim leaves the chain trusted": "made up for within the turn; rare: the seeds played so far did not come there after it",
    "plan mode lets an automatic turn pass the queued prompt": "rare: the seeds played so far did not come there",
    "history taken back leaves the chain trusted": "rare: the seeds played so far did not come there",
    "exhaustion is told again and again": "made up for: an exhausted chain is locked and asks no more",
    "an automatic turn begins over a waiting prompt": "made up for: an admitted prompt is always looked at first",
    "a refused claim sends all the same": "made up for: the refusal has locked the chain, and the last look before the send holds it back",
    "a stranger's claim is granted": "made up for: a legal session claims for the turn that runs",
    "an unwinding turn forgets what it had drained": "rare: the seeds played so far did not come there",
    "words kept for a drain are lost when the session is put away": "rare: the seeds played so far did not come there",
    "what waits is no part of the snapshot": "rare: the seeds played so far did not come there",
    "results of the chain before stay related": "rare: the seeds played so far did not come there",
    "one failed send takes away every mark of its agent": "rare: the seeds played so far did not come there",
    "a failed send relates its agent": "rare: the seeds played so far did not come there",
    "a circle of parents is related": "rare: the seeds played so far did not come there",
    "a related wakeup is trimmed": "rare: the seeds played so far did not come there",
    "a claim without an owner is granted while a prompt runs": "rare: the seeds played so far did not come there",
    "the next prompt begins before a cancel is answered": "rare: the seeds played so far did not come there",
}


class Patched(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Loads one module of the core with a text replaced."""

    def __init__(self, fault: MachineFault) -> None:
        self.fault, self.name = fault, f"stopwarden.core.{fault.module}"

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The patched module, and no other."""
        return importlib.util.spec_from_loader(name, self) if name == self.name else None

    def get_source(self, fullname: str) -> str:
        """The module's text with the fault in it."""
        return patched(self.fault)


def patched(fault: MachineFault) -> str:
    """The module's text with the fault in it. Raises ValueError unless the old text stands there once."""
    text = (CORE / f"{fault.module}.py").read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.module}.py has {text.count(fault.old)} places that read {fault.old!r}")
    return text.replace(fault.old, fault.new)


def hunted_here(fault: MachineFault) -> Found:
    """The hunt, in this process, which must not have loaded the core before."""
    assert not any(name.startswith("stopwarden.core") for name in sys.modules)
    sys.meta_path.insert(0, Patched(fault))
    from stopwarden.sim import claim_model, guard_run
    from stopwarden.sim.guard_faults import drawn

    for seed in range(1, SEEDS + 1):
        try:
            broken = guard_run.play(drawn(seed)).book.broken
        except Exception as error:  # a machine that breaks down is found as well
            broken = f"{type(error).__name__}: {error}"
        if broken:
            return Found("simulator", seed, broken)
    if fault.module in BEYOND_THE_MODEL:
        return Found("", 0, "")
    states = 0
    for _, bounds, limit in claim_model.PARTS:
        found, _ = claim_model.explore_part(bounds, min(limit or STATES, STATES))
        states += found.states
        if found.broken:
            return Found("model", states, found.broken)
    return Found("", 0, "")


def hunted(fault: MachineFault) -> Found:
    """The hunt, in a process of its own."""
    words = [sys.executable, "-m", "tests.machine_faults", fault.what]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{fault.what}: {done.stderr[-2000:]}")
    return Found(*json.loads(done.stdout))


def page(found: Sequence[tuple[MachineFault, Found]]) -> str:
    """docs/faults.md."""
    caught = [one for one in found if one[1].by]
    lines = [
        "# Faults put into the machines on purpose",
        "",
        "How to read this: [the simulation](simulation.md).",
        "Written by `make faults`. Each line is a small patch to a module of `core/` (`tests/machine_faults.py` has them), and what",
        f"found it: the simulator after so many seeds, or the model checker after so many states. {len(caught)} of {len(found)} are found.",
        "",
        "| what goes wrong | module | found by | after | the promise it breaks |",
        "|---|---|---|---:|---|",
    ]
    for fault, hunt in found:
        after = f"{hunt.after:,} {'seeds' if hunt.by == 'simulator' else 'states'}" if hunt.by else ""
        broken = hunt.broken.partition(":")[0] if hunt.by else UNSEEN.get(fault.what, "")
        lines.append(f"| {fault.what} | `{fault.module}` | {hunt.by or '**nobody**'} | {after} | {broken} |")
    return "\n".join([*lines, ""])


def main(words: Sequence[str]) -> None:
    """One hunt, as JSON; or all, and the page."""
    if words:
        print(json.dumps(hunted_here(next(one for one in FAULTS if one.what == words[0]))))
        return
    with ThreadPoolExecutor(2) as hunters:
        found = list(zip(FAULTS, hunters.map(hunted, FAULTS), strict=True))
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    main(sys.argv[1:])
