"""Rules broken on purpose: each fault is patched into a copy of the program, and the tests must notice it.

A fault is a place in a file, what stands there, what is put instead, and the very tests that notice it
(a file alone stands for all its tests, which takes longer). A fault that its tests do not notice, or
whose place has changed, fails here.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support.fault_server import FaultServer

ROOT = pathlib.Path(__file__).parent.parent
TABLE, BOUNDS, STOPS = "test_away_check.py", "test_bounds.py", "test_hook_at_a_stop.py"
PEERS = "test_two_sessions.py"
HOLDS = ("test_reservations.py", "test_reservation_rules.py")
TURNS = ("test_turn.py", "test_stop_loop.py")
NOTICES = ("test_notices_in_turns.py",)
DEFERRAL = ("test_turn_deferral.py",)
AWAY_TURNS = ("test_away_at_stop.py",)
WAITS = ("test_backlog.py", "test_backlog_histories.py")


class Fault(NamedTuple):
    """One rule broken."""

    what: str
    file: str
    old: str
    new: str
    noticed_by: tuple[str, ...]


FAULTS = (
    Fault("ready work is never offered", "core/away.py", "return case.policy.offer_ready and bool(case.ready)", "return False and bool(case.ready)", (PEERS,)),
    Fault("ready work is offered for ever", "core/away.py", "case.ready[0].id not in case.state.offered", "True", (PEERS,)),
    Fault("an offer is made past a bound", "core/away.py", "and not _past_bound(case):", ":", (PEERS,)),
    Fault("who was passed over is not recorded", "core/away.py", "if key not in case.state.passed_over", "if False", (PEERS,)),
    Fault("another's progress is mine", "core/owed.py", "(one.terminal or is_taken(one, now))", "is_taken(one, now)", (PEERS,)),
    Fault("a stalled peer traps the checkout", "core/leases.py", "or _look_by(held, policy) > now", "or True", (PEERS,)),
    Fault("a pause is forgotten", "hook/terms.py", 'return "off" if until is None or now < until else "on"', 'return "off" if until is None else "on"', ("test_switches.py",)),
    Fault("a pause never ends", "hook/terms.py", 'return "off" if until is None or now < until else "on"', 'return "off"', ("test_switches.py",)),
    Fault("a stale list is pressed on", "core/away.py", "stale=state.tool_used and", "stale=False and", ("test_reasons.py",)),
    Fault("own tools do not renew", "hook/note.py", 'RENEWS = ("post-tool", "prompt", "stop")', 'RENEWS = ("prompt", "stop")', (PEERS,)),
    Fault("a notification renews", "hook/note.py", 'RENEWS = ("post-tool", "prompt", "stop")', 'RENEWS = ("post-tool", "prompt", "stop", "notification")', (PEERS,)),
    Fault("a stop does not renew what is overdue", "hook/note.py", 'self._renew(at, by_stop=answering and event == "stop")', "self._renew(at, by_stop=False)", (PEERS,)),
    Fault("a dead program holds on", "work/reservations.py", "return leases.NEVER if dead else -1", "return -1", (PEERS,)),
    Fault("a process seen once is the program", "work/reservations.py", "row.program_seen > 1 and", "row.program_seen and", (PEERS,)),
    Fault("a tracker that fails is known", "work/ready.py", "if tracker.failed_at is not None or tracker.read_at is None", "if False", ("test_ready.py",)),
    Fault("the held hide the free", "work/ready.py", "READY_SHOWN + len(taken) + len(owed)", "READY_SHOWN", ("test_ready.py",)),
    Fault("an ended session's item is not offered first", "work/ready.py", "if (gone or stalled) and", "if False and", ("test_ready.py",)),
    Fault("the ledger's moves count before they happened", "work/ready.py", 'if item.changed_at >= since else state', "if True else state", ("test_ready.py",)),
    Fault("two at once are both away", "cli/away.py", "if (one.since, one.id) != stays:", "if one.id in seen:", ("test_away_command.py",)),
    Fault("a claim is granted over a queued prompt", "core/queue_claims.py", "queued=True, has_queued_prompt=True, wait=\"set\"", "queued=True, claimed=True, wait=\"set\"", ("test_claim_model.py",)),
    Fault("a release that overtook is forgotten", "core/chain.py", '(claim.released, "unavailable", "released"),', "", ("test_claim_model.py",)),
    Fault("a third continuation is counted", "core/bounds.py", "GUARD_STREAMS = 2", "GUARD_STREAMS = 3", ("test_guard.py",)),
    Fault("a cancel in a wait is not heard", "core/queue_prompts.py", "elif move.state.child is not None and not any", "elif turn is not None and not any", ("test_queue.py",)),
    Fault("nobody is told of the release", "core/queue_prompts.py", "move.do(SendRelease", "(lambda *_, **__: 0)(SendRelease", ("test_claim_model.py",)),
    Fault("an unchanged list is blocked again", "core/away.py", "look.chosen is not None and not changed", "False", (TABLE,)),
    Fault("a changed list may wait", "core/away.py", "changed = state.fingerprint != owes.fingerprint", "changed = False", (TABLE,)),
    Fault("nothing owed needs no wake", "core/away.py", "look.chosen is not None and not owes.anything_owed", "not owes.anything_owed", (TABLE,)),
    Fault("unknown is taken for empty", "core/owed.py", "return bool(self.owed or self.unread)", "return bool(self.owed)", (TABLE,)),
    Fault("the empty set is not kept", "core/away.py", "case = case.replace(state=case.state.replace(fingerprint=owes.fingerprint))", "pass", (TABLE,)),
    Fault("a title counts in the digest", "core/owed.py", '{item.id}\\0{item.state}"', '{item.id}\\0{item.state}{item.title}"', (TABLE,)),
    Fault("the order counts in the digest", "core/owed.py", "parts = sorted([", "parts = list([", ("test_gather.py", TABLE)),
    Fault("the state does not count", "core/owed.py", '{item.id}\\0{item.state}"', '{item.id}"', (TABLE,)),
    Fault("what waits on a person is owed", "core/owed.py", 'LIVE = ("open", "doing")', 'LIVE = ("open", "doing", "waiting")', (TABLE,)),
    Fault("what is parked is let go at once", "core/owed.py", "item.before in LIVE and item.id not in graced", "False", (TABLE,)),
    Fault("what is parked is owed for ever", "core/owed.py", "item.before in LIVE and item.id not in graced", "item.before in LIVE", (TABLE,)),
    Fault("going back and forth is progress", "core/owed.py", "    if key in reached:\n        return []\n", "", (BOUNDS,)),
    Fault("done from the start is progress", "core/owed.py", 'if item.before in ("done", item.state):', "if False:", (BOUNDS,)),
    Fault("the cap comes one block late", "core/away.py", "counts.without_tools >= cap", "counts.without_tools > cap", (BOUNDS,)),
    Fault("a cap of zero ends at once", "core/away.py", "if cap and counts", "if counts", (BOUNDS,)),
    Fault("a tool resets the plain count", "core/away.py", "blocks=0 if owes.progressed else state.blocks", "blocks=0 if owes.progressed or state.tool_used else state.blocks", (BOUNDS,)),
    Fault("a tool does not reset the host's count", "core/away.py", "owes.progressed or state.tool_used", "owes.progressed", (BOUNDS,)),
    Fault("an allowed stop keeps the row", "core/away.py", "        blocks=0,\n        blocks_without_tools=0,\n        tool_used=False,\n        bound=", "        tool_used=False,\n        bound=", (BOUNDS,)),
    Fault("the stop at a bound is not recorded", "core/away.py", "    if not bound:\n", "    if True:\n", (BOUNDS,)),
    Fault("no ceiling of an hour", "core/away.py", "len(counts.this_hour) >= policy.blocks_an_hour", "False", (BOUNDS,)),
    Fault("no ceiling of a period", "core/away.py", "counts.in_period >= policy.blocks_a_period", "False", (BOUNDS,)),
    Fault("the hour never passes", "core/away.py", "if now - HOUR < then <= now", "", (BOUNDS,)),
    Fault("a new period inherits the last block", "core/away.py", "if state.period == period.id:", "if state.period:", (TABLE,)),
    Fault("until done forgets what is awaited", "core/away.py", "and not owes.awaited ", "", (TABLE,)),
    Fault("until done forgets what is held", "core/away.py", "and not _held(stop, world)", "", (TABLE,)),
    Fault("a subagent is judged", "core/judge.py", "if stop.subagent:", "if False:", (TABLE,)),
    Fault("plan mode is continued", "core/judge.py", "if stop.plan_mode:", "if False:", (TABLE,)),
    Fault("a cancel is forgotten", "core/judge.py", "if session.cancelled:", "if False:", (TABLE,)),
    Fault("observe blocks", "core/judge.py", "verdict.replace(block=False, kind=\"observed\"", "verdict.replace(kind=\"observed\"", (TABLE,)),
    Fault("a stale verdict is committed", "core/judge.py", "verdict.after.revision != session.revision", "False", (TABLE,)),
    Fault("a machine's prompt ends a cancel", "core/session.py", 'if by == "person":', "if True:", (TABLE,)),
    Fault("a look is missed at once", "core/session.py", "state.next_look_latest + MISSED_LOOK_AFTER", "state.next_look_latest", (BOUNDS,)),
    Fault("a resumed session stays stopped", "core/session.py", "if state.bound and not by_stop and not _before_last_block(state, now):", "if False:", (BOUNDS,)),
    Fault("an item is never handed back", "core/away.py", "looks >= policy.unchanged_looks and owes.owed", "False", (TABLE,)),
    Fault("another's hold is offered", "core/owed.py", "if hold is None or (hold.terminal", "if True or (hold.terminal", (TABLE,)),
    Fault("control characters reach the model", "core/reason.py", 'char if char.isprintable() else " " for char in text', "char for char in text", (TABLE,)),
    Fault("the deadline is exclusive", "core/wakes.py", "if expected.latest <= terms.deadline:", "if expected.latest < terms.deadline:", ("test_wakes.py",)),
    Fault("jitter is forgotten", "core/wakes.py", "earliest, latest = fire, fire + worst", "earliest, latest = fire, fire", ("test_wakes.py",)),
    Fault("a wake never ages", "core/wakes.py", "if latest > ends else", "if False else", ("test_wakes.py",)),
    Fault("a lease lives through its last second", "core/leases.py", "now < lapses_at(reservation, now)", "now <= lapses_at(reservation, now)", ("test_leases.py",)),
    Fault("the skew is not taken off", "core/leases.py", "renewal_due(reservation) - skew_for", "renewal_due(reservation) + 0 * skew_for", ("test_leases.py",)),
    Fault("a lease longer than a day", "core/leases.py", "min(reservation.expires_at, reservation.claimed_at + LEASE_MAX)", "reservation.expires_at", ("test_leases.py",)),
    Fault("another copy's hold sets the deadline", "core/leases.py", "if held.copy == copy and held.expires_at", "if held.expires_at", ("test_leases.py",)),
    Fault("revisions are not compared", "store/sql/queries.sql", "WHERE :expected_revision = coalesce((SELECT revision FROM session_state WHERE id = :id), 0)", "WHERE 1", ("test_store.py",)),
    Fault("a period ends twice", "store/sql/queries.sql", "WHERE id = :id AND ended_at IS NULL", "WHERE id = :id", ("test_store.py",)),
    Fault("a nonce is stored twice", "store/sql/queries.sql", "session = :session AND nonce = :nonce AND nonce <> ''", "0 AND nonce = :nonce AND session = :session", ("test_store.py",)),
    Fault("the marker goes first", "store/marker.py", "            write(state_dir, told.values(), {period.id: policy_json})\n", "", ("test_marker.py",)),
    Fault("a fault blocks for ever", "hook/fault.py", "in_a_row(state_dir, session) >= FAULTS_IN_A_ROW", "False", ("test_our_own_faults.py",)),
    Fault("a fault is let pass", "hook/fault.py", "    return Fault(\n        True,", "    return Fault(\n        False,", ("test_our_own_faults.py",)),
    Fault("an uncounted fault blocks", "hook/fault.py", "if not count(state_dir, session, now, what):", "count(state_dir, session, now, what)\n    if False:", ("test_our_own_faults.py",)),
    Fault("the same stop is counted twice", "hook/at_stop.py", "if event.started >= row.answered_ticks:", "if True:", (STOPS,)),
    Fault("an unreadable cap switches the cap off", "hosts/claude_code.py", "        return None\n    return max(0, int(text))", "        return 0\n    return max(0, int(text))", (STOPS,)),
    Fault("a permission is granted", "hosts/claude_code.py", '"behavior": "deny"', '"behavior": "allow"', ("test_refusals.py",)),
    Fault("a promise without a time counts", "work/promises.py", "return self.at is not None and not self.handled and now > self.at", "return not self.handled and now > (self.at or 0)", ("test_promises.py",)),
    Fault("a declared look is kept by nobody", "hook/declared.py", "    if watch is None:\n        return \"no keeper", "    if False:\n        return \"no keeper", ("test_declared_looks.py",)),
    Fault("a stall is told at every look", "cli/watch.py", "if store.fact(TOLD, stall.key) != stall.episode)", ")", ("test_watch.py",)),
    Fault("a session is resumed beside an open program", "cli/resuming.py", "if surroundings.agents(row.root, context.system):", "if False:", ("test_watch.py",)),
    Fault("one stall is resumed again and again", "cli/resuming.py", 'if store.fact(RESUMED, session) == f"{kind} {episode}":', "if False:", ("test_watch.py",)),
    Fault("the keeper wakes a session at work", "hook/keeper.py", "or row.last_event not in IDLE_AFTER", "", ("test_keeper.py",)),
    Fault("an old keeper wakes too", "hook/keeper.py", "or keeper.generation != generation ", "", ("test_keeper.py",)),
    Fault("a kept look forgets what is held", "hook/at_stop.py", "leases.deadline(holds, copy, now, policy, session)", "leases.deadline((), copy, now, policy)", ("test_keeper.py",)),
    Fault("a replay judges the recorded state", "sim/replay.py", "state=commit(state, now)", "state=commit(recorded, as_stored)", ("test_replay.py",)),
    Fault("a torn line is passed over", "store/recorded.py", "        except StopwardenError as error:\n            if unread is None:\n                raise\n            unread(UnreadLine(line=number, error=error))\n            continue\n", "        except StopwardenError:\n            continue\n", ("test_recorded_stops.py",)),
    Fault("a wake that never comes is valid", "sim/tally.py", "self.silent_scheduler += length - waited", "self.waiting += length - waited", ("test_nights.py",)),
    Fault("a lapsed hold is granted at once", "core/reservations.py", "leases.lapses_at(held, now) + TAKE_OVER_MARGIN", "leases.lapses_at(held, now)", HOLDS),
    Fault("a live hold is granted", "core/reservations.py", "if gone or not is_taken(stored, now) or", "if True or", HOLDS),
    Fault("a token is given twice", "core/reservations.py", "else stored.token + 1 if stored is not None else 1", "else stored.token if stored is not None else 1", HOLDS),
    Fault("an older token passes", "core/reservations.py", "    if token is not None and token != stored.token:\n        return Denied(why=\"fence\", by=(stored,), until=_until(stored, now))\n    if stored.session == session:\n        if", "    if stored.session == session:\n        if", HOLDS),
    Fault("a lapsed holder may write", "core/reservations.py", '            return Denied(why="lapsed", by=(stored,), until=stored.expires_at)\n', "            return None\n", HOLDS),
    Fault("another copy goes on unasked", "core/reservations.py", "        if stored.copy == ask.copy:", "        if True:", HOLDS),
    Fault("an eleventh is granted", "core/reservations.py", "len(mine) >= RESERVATIONS_MAX", "len(mine) > RESERVATIONS_MAX", HOLDS),
    Fault("footprints are compared by spelling", "core/reservations.py", 'path.startswith(above + "/")', "path.startswith(above)", HOLDS),
    Fault("another gives a hold back", "core/reservations.py", "    if stored.session != session:\n        return Denied", "    if False:\n        return Denied", HOLDS),
    Fault("the fence is asked only before the write", "work/reservations.py", "                write()\n                refused = rules.fence(", "                write()\n                refused = None and rules.fence(", ("test_claims_at_once.py",)),
    Fault("the clock is read outside", "work/reservations.py", "    try:\n        with store.transaction():\n            if first is not None:\n                first()\n            done = _claimed(store, ask, clock(), state_dir)", "    now = clock()\n    try:\n        with store.transaction():\n            if first is not None:\n                first()\n            done = _claimed(store, ask, now, state_dir)", ("test_claims_at_once.py",)),
    Fault("a claim is no transaction", "work/reservations.py", "        with store.transaction():\n            if first is not None:\n                first()\n            done = _claimed(", "        if True:\n            if first is not None:\n                first()\n            done = _claimed(", ("test_claims_at_once.py",)),
    Fault("a claim that is not known is taken for failed", "work/reservations.py", "        _read_back(store, ask, failed)", "        raise", ("test_holds_on_a_failing_disk.py",)),
    Fault("any hold of the session is taken for the claim", "work/reservations.py", "or held.nonce != ask.nonce ", "", ("test_holds_on_a_failing_disk.py",)),
    Fault("what hooks heard is not taken over first", "cli/reserve.py", "first=lambda: holds.hear(store, context)", "first=None", HOLDS),
    Fault("an agent takes what another holds", "cli/reserve.py", "args.take_over and _may_take(context, store)", "args.take_over", HOLDS),
    Fault("tools of a holder leave no word", "hook/run.py", " or _renews(told[\"s\"], place, at)", "", HOLDS),
    Fault("what comes later is ready", "store/sql/queries.sql", "json_each(ledger_item.needs)", "json_each(needs)", ("test_ledger.py",)),
    Fault("items wait for each other", "work/ledger.py", "            _refuse_circle(store, item)\n", "", ("test_ledger.py",)),
    Fault("nobody asks again after the command", "work/ledger.py", "        denied = _written(store, by, item, clock, token)\n", "        store.save_ledger_item(item)\n        denied = None\n", ("test_ledger.py",)),
    Fault("a session's word does for a command", "work/ledger.py", "if item.verify and ran is None and by.session:", "if False:", ("test_ledger.py",)),
    Fault("another priority hides what was parked", "work/ledger.py", "cleared if state == item.state else cleared.replace", "cleared.replace", ("test_ledger.py",)),
    Fault("a failed command is a pass", "cli/verify.py", "passed=ran.code == 0", "passed=True", ("test_ledger_commands.py",)),
    Fault("every failure is another", "cli/verify.py", '_VARYING.sub(b"~", ran.out)', "ran.out", ("test_ledger_commands.py",)),
    Fault("a list is edited without its fence", "cli/fenced.py", "            if denied is not None:\n", "            if False:\n", ("test_ledger_commands.py",)),
    Fault("a tracker that failed is believed", "work/trackers.py", "    if ran.code != 0:\n", "    if False:\n", ("test_trackers.py",)),
    Fault("what a tracker said is forgotten when it fails", "work/trackers.py", "        if not said.why:\n            before", "        if True:\n            before", ("test_trackers.py",)),
    Fault("a running night is forgotten", "store/forgetting.py", "if one.ended_at is not None and one.id not in marked]", "]", ("test_forgetting.py",)),
    Fault("a verdict can be deleted at any time", "store/sql/migrations/003_forgetting.sql", "ON verdict\nWHEN NOT EXISTS (SELECT 1 FROM forgetting)", "ON verdict\nWHEN 0", ("test_forgetting.py",)),
    Fault("a text that is still named is forgotten", "store/forgetting.py", "if digest not in named:", "if True:", ("test_forgetting.py",)),
    Fault("what stands behind a limit's time is kept", "hosts/claude_code_facts.py", "            break\n        kept.append(word)", "            pass\n        kept.append(word)", ("test_privacy.py",)),
    Fault("a title becomes markup", "report/html.py", "autoescape=True", "autoescape=False", ("test_report_page.py",)),
    Fault("a mistyped name costs a list", "cli/written.py", "if begins and mark.encode() not in begins:", "if False:", ("test_report_page.py",)),
    Fault("time under two periods is told twice", "report/heard.py", "if found and since <= found[-1][1]:", "if False:", ("test_report_many_nights.py",)),
    Fault("what an earlier night did is forgotten", "report/stories.py", "if earlier.outcome in as_left.get(later.outcome, ()):", "if False:", ("test_report_many_nights.py",)),
    Fault("what finds no room is dropped without a word", "core/backlog.py", "    if not gone:\n", "    if True:\n", WAITS),
    Fault("others push out the chain's own result", "core/results.py", "if not (holding.deferring and waiting.related)]", "]", WAITS),
    Fault("the snapshot is reset without the related agents", "core/backlog.py", "begun = lineage.begun(event.world, _tasks(backlog))", "begun = lineage.begun(event.world, _tasks(backlog)).replace(related=backlog.lineage.related)", WAITS),
    Fault("results of the chain before stay related", "core/backlog.py", "results=results.as_old(backlog.results)", "results=backlog.results", WAITS),
    Fault("an interrupted scheduled turn wipes the others", "core/backlog.py", "fires.put_back(backlog.fires, way.fire, holding)", "fires.put_back((), way.fire, holding)", WAITS),
    Fault("a turn that came to nothing has told of the gaps", "core/gaps.py", 'open=tuple(gap.replace(turn="") if gap.turn == turn', 'open=tuple(gap.replace(turn="", told_model=True) if gap.turn == turn', WAITS),
    Fault("gap entries beyond memory are forgotten", "core/gaps.py", "held = found[-1].number if len(found) == room else asked.through", "held = asked.through", WAITS),
    Fault("a related wakeup is trimmed", "core/fires.py", "unrelated = [fire for fire in queue if not fire.related]", "unrelated = list(queue)", WAITS),
    Fault("one failed send takes away every mark of its agent", "core/lineage.py", "if mark[0] != send)", "if mark[1] not in targets)", ("test_lineage.py",)),
    Fault("a missing parent counts as related", "core/lineage.py", "answer = known.get(agent) if agent else True", "answer = known.get(agent) if agent in self._parents() else True", ("test_lineage.py",)),
    Fault("the wait for background work has no limit", "core/lineage.py", "if deferral.too_long or now - since < limit:", "if True:", ("test_lineage.py",)),
    Fault("a chain overtakes a queued prompt", "core/queue_claims.py", 'queued=True, has_queued_prompt=True, wait="set")', 'queued=True, claimed=True, wait="set")', ("test_queue.py",)),
    Fault("a refused claim takes another's wait", "core/queue_claims.py", 'ClaimRow(rule="claim.not_the_owner", owner="other")', 'ClaimRow(rule="claim.not_the_owner", owner="other", wait="set")', ("test_queue.py",)),
    Fault("a release while another prompt waits", "core/queue_prompts.py", "if owner is not None and not live_queued(move.state):", "if owner is not None:", ("test_queue.py",)),
    Fault("a hung child holds the queue for ever", "core/queue_prompts.py", '        end_turn_of(move, entry.prompt, "cancelled")', "        return", ("test_queue.py",)),
    Fault("messages of a failed drain are lost", "core/queue_messages.py", "move.set(drain=None, messages=back + move.state.messages)", "move.set(drain=None)", ("test_queue.py",)),
    Fault("a late message is handed over twice", "core/queue_messages.py", "        if carried:\n            delivered(move, carried)\n", "", ("test_queue.py",)),
    Fault("a channel keeps what it has dropped", "core/claim_hosts.py", "known=channel.known - {session}", "known=channel.known", ("test_claim_hosts.py",)),
    Fault("a retry lifts a suspension", "core/chain.py", '"lineage" if held_hard else "chain"', '"chain"', ("test_chain.py",)),
    Fault("a wait is installed after its release", "core/chain.py", '(claim.released, "unavailable", "released"),', "", ("test_chain.py",)),
    Fault("an automatic turn lifts a suspension", "core/chain.py", "    if guard.suspended:\n        return started, ()\n", "", ("test_chain.py",)),
    Fault("a claim of an older chain counts", "core/chain.py", '(claim.chain != chain.number, "unavailable", "superseded"),', "", ("test_chain.py",)),
    Fault("a third stream is counted", "core/guard.py", "or attempt > guard.budget.attempts:", "or False:", ("test_guard.py",)),
    Fault("half a todo list is read", "core/todo_envelope.py", "if len(items) != len(todos) or", "if", ("test_guard.py",)),
    Fault("a stream of the guard goes without a claim", "core/continuation.py", "    ask_claim(pen, probe=False)\n", '    pen.on(claim="claimed")\n', TURNS),
    Fault("words drained on yielding are forgotten", "core/continuation.py", "        give_way(pen, found.parts)", "        give_way(pen)", TURNS),
    Fault("a refused stream stays in history", "core/turn_state.py", 'act="roll_back"', 'act="commit"', TURNS),
    Fault("an unwinding turn loses its tool results", "core/turn_answers.py", "        pen.store(event.parts)\n        return", "        return", TURNS),
    Fault("a chain waits for a prompt that was refused", "core/turn.py", "            pen.chained(words.Released(owner=owner), unheard=words.ReleaseAnswered)", "            pass", ("test_guard_simulation.py",)),
    Fault("a dispose settles what waits", "core/turn.py", "    pen.chained(words.Disposed())\n", "    pen.chained(words.Disposed())\n    pen.waited(waits.Cleared())\n", NOTICES),
    Fault("a prompt tells of no gaps", "core/continuation.py", "or not pen.backlog.gaps.open:", "or stream.first:", NOTICES),
    Fault("a refused send has told of the gaps", "core/turn_state.py", "        if stream.notice:\n            self.waited(", "        if False:\n            self.waited(", NOTICES),
    Fault("a send is not on disk before it goes", "core/continuation.py", "    pen.do(WriteHistory, act=\"stage\"", "    () and pen.do(WriteHistory, act=\"stage\"", TURNS),
    Fault("a guest ends the wait of the chain", "core/turn.py", "(pen.turn is None or pen.guest)", "pen.turn is None", DEFERRAL),
    Fault("a chain that went on counts its old wait", "core/automatic.py", "        pen.set(deferral=Deferral())\n", "        pass\n", DEFERRAL),
    Fault("what a guest sets going holds the chain", "core/turn.py", "        pen.waited(waits.MadeByAnother(tasks=made))", "        del made", DEFERRAL),
    Fault("a yes to a turn for results is not looked at again", "core/automatic.py", "    if pen.state.arriving or not chains.may_start_automatic(pen.chain, wanted.related):\n", "    if False:\n", ("test_automatic_turns.py",)),
    Fault("a turn for results claims for nobody", "core/automatic.py", "owner=None if event.unknown_method else wanted.turn", "owner=None", ("test_automatic_turns.py",)),
    Fault("a turn that will not begin stays registered", "core/automatic.py", 'pen.do(ev.EndTurn, turn=wanted.turn, kind="cancelled", rule=f"turn.{why}")', "pass", ("test_automatic_turns.py",)),
    Fault("a refused turn has made work old", "core/automatic.py", "    asked = pen.do(ev.RegisterTurn, turn=name)\n", "    asked = pen.do(ev.RegisterTurn, turn=name)\n    pen.waited(waits.ChainBegan(world=pen.state.tasks))\n", ("test_automatic_turns.py",)),
    Fault("a forced-off guard is turned on", "core/guard.py", '    if guard.forced_off and switch != "off":\n', "    if False:\n", ("test_turn_switches.py",)),
    Fault("a rejected list is shown", "core/turn.py", "    if event.todos is not None and pen.turn", "    if pen.turn", ("test_turn_switches.py",)),
    Fault("a follow-up is suggested though work is awaited", "core/turn.py", "may_suggest(pen.chain) and not background(pen)", "may_suggest(pen.chain)", ("test_turn_switches.py",)),
    Fault("observing leaves no record", "core/stop_loop.py", '    if decision.kind == "observed":  # judged', "    if False:  # judged", ("test_turn_switches.py",)),
    Fault("the guard decides while away", "core/away_at_stop.py", "    if not pen.chain.away:\n        return\n", "    if pen.chain.away:\n        return\n", AWAY_TURNS),
    Fault("the away check goes on without a claim", "core/continuation.py", "    elif pen.running.claim == \"claimed\":\n        return\n", "    elif pen.running.claim == \"claimed\" or pen.running.stream.away:\n        return\n", AWAY_TURNS),
    Fault("a claim of the away check locks the guard", "core/stop_loop.py", 'policy = "away" if pen.chain.away', 'policy = "guard" if pen.chain.away', AWAY_TURNS),
    Fault("a verdict on old facts is sent", "core/away_at_stop.py", "    return pen.running.judged != revision(pen)", "    return False", AWAY_TURNS),
    Fault("a stale record counts", "core/turn_answers.py", "    if event.stale:\n", "    if event.stale and not event.stale:\n", AWAY_TURNS),
    Fault("an allow is not recorded", "core/away_at_stop.py", "    elif not verdict.block:\n        ask_commit(pen)\n", "    elif not verdict.block:\n        return\n", AWAY_TURNS),
    Fault("our own faults block for ever", "core/away_at_stop.py", "elif pen.state.faults > FAULTS_IN_A_ROW:", "elif not pen.state.faults:", AWAY_TURNS),
    Fault("a block of the judge goes on after a cancel", "core/away_at_stop.py", "    elif held := held_back(pen):\n        pen.on(verdict=None)", "    elif held := \"\":\n        pen.on(verdict=None)", AWAY_TURNS),
    Fault("a list holds back the wake of a session that waits", "core/chain.py", "and not chain.too_long and not chain.away)", "and not chain.too_long)", AWAY_TURNS),
    Fault("the away check goes on in plan mode once sent", "core/turn_answers.py", "if not counted or (stream.away is not None and pen.chain.plan):", "if not counted:", AWAY_TURNS),
    Fault("a slow claim ends the night", "core/away_at_stop.py", "    if stream.claims < FAULTS_IN_A_ROW:", "    if stream.claims < 1:", AWAY_TURNS),
    Fault("a session that fails while away is not known to have stopped", "core/turn_state.py", "if self.chain.away and not let and rule", "if self.chain.away and not let and kind == 'error' and rule", AWAY_TURNS),
    Fault("a broken hook ends the night", "core/turn_answers.py", "    if event.failed and not pen.chain.away:\n", "    if event.failed:\n", AWAY_TURNS),
    Fault("a move to the same place ends the chain", "core/door.py", "    elif event.same:\n", "    elif False:\n", ("test_door.py",)),
    Fault("a failed move keeps the gate", "core/door.py", "    if held:\n        open_gate(pen)", "    if held and not why:\n        open_gate(pen)", ("test_door.py",)),
    Fault("settling does not wait for the successor", "core/door.py", "    return pen.turn is None and pen", "    return pen", ("test_door.py",)),
    Fault("a live flag counts as rest", "core/door.py", "    if event.live:\n", "    if event.live and event.ended:\n", ("test_door.py",)),
    Fault("schedules start before agents are restored", "core/door.py", "    if number < len(LOAD_ORDER):\n", "    if number < len(LOAD_ORDER):\n        if number == 2:\n            pen.do(asks.StartCron)\n", ("test_door.py",)),
    Fault("a prompt begins in a session half restored", "core/turn.py", "    if pen.state.door.loading:\n        return False\n", "", ("test_door.py",)),
    Fault("words of a drain after the dispose are lost", "core/turn_answers.py", "        if pen.chain.disposed:  # no drain", "        if False:  # no drain", ("test_guard_simulation.py",)),
)  # fmt: skip


def test_there_are_faults_enough_and_each_is_told_apart() -> None:
    """At least twenty-five rules, each with a sentence of its own."""
    assert len({fault.what for fault in FAULTS}) == len(FAULTS) >= 25
    for fault in FAULTS:
        text = (ROOT / "src" / "stopwarden" / fault.file).read_text(encoding="utf-8")
        for name in fault.noticed_by:
            file, _, test = name.partition("::")
            told = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert not test or f"def {test.rpartition('::')[2]}(" in told, (
                f"{name} is named for {fault.what!r} and not there"
            )
        assert text.count(fault.old) == 1, f"{fault.file} has {text.count(fault.old)} places that read {fault.old!r}"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    """One server for all faults: what they share is imported once."""
    started = FaultServer(tmp_path_factory.mktemp("faults"))
    yield started
    started.close()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what.replace(" ", "-"))
def test_a_broken_rule_is_noticed(fault: Fault, server: FaultServer) -> None:
    """With the rule broken, the tests that tell of it fail."""
    text = (ROOT / "src" / "stopwarden" / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1, f"{fault.file} has {text.count(fault.old)} places that read {fault.old!r}"
    code, words = server.tests(fault.file, text.replace(fault.old, fault.new), fault.noticed_by)
    assert code == 1, f"nobody noticed: {fault.what}\n{words[-1500:]}"


def test_whole_rules_are_not_called_broken(server: FaultServer) -> None:
    """Without a fault the same tests pass in the same way, and a test that is not there is not taken for a notice."""
    fault = FAULTS[0]
    text = (ROOT / "src" / "stopwarden" / fault.file).read_text(encoding="utf-8")
    assert server.tests(fault.file, text, fault.noticed_by)[0] == 0
    assert server.tests(fault.file, text, ("test_bounds.py::test_that_is_not_there",))[0] == 4
