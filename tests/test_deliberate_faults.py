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
    Fault("ready work is never offered", "core/away.py", "return case.policy.offer_ready and bool(case.ready)", "return False and bool(case.ready)", ("test_two_sessions.py::test_the_hold_of_a_session_that_has_ended_binds_nobody_and_its_item_comes_first",)),
    Fault("ready work is offered for ever", "core/away.py", "case.ready[0].id not in case.state.offered", "True", ("test_two_sessions.py::test_ready_work_is_offered_once_before_a_session_may_wait",)),
    Fault("an offer is made past a bound", "core/away.py", "and not _past_bound(case):", ":", ("test_two_sessions.py::test_past_a_bound_nothing_is_offered_to_a_session_that_may_wait",)),
    Fault("who was passed over is not recorded", "core/away.py", "if key not in case.state.passed_over", "if False", ("test_two_sessions.py::test_a_peer_gets_other_work_while_one_session_is_stalled_and_the_record_shows_why",)),
    Fault("another's progress is mine", "core/owed.py", "(one.terminal or is_taken(one, now))", "is_taken(one, now)", ("test_two_sessions.py::test_what_another_finished_is_no_progress_of_mine",)),
    Fault("a stalled peer traps the checkout", "core/leases.py", "or _look_by(held, policy) > now", "or True", ("test_two_sessions.py::test_a_hold_that_only_its_stalled_holder_could_renew_binds_no_peer_for_ever",)),
    Fault("a pause is forgotten", "hook/terms.py", 'return "off" if until is None or now < until else "on"', 'return "off" if until is None else "on"', ("test_switches.py::test_a_pause_until_a_time_is_honoured_and_over_by_itself",)),
    Fault("a pause never ends", "hook/terms.py", 'return "off" if until is None or now < until else "on"', 'return "off"', ("test_switches.py::test_a_pause_until_a_time_is_honoured_and_over_by_itself",)),
    Fault("a stale list is pressed on", "core/away.py", "stale=state.tool_used and", "stale=False and", ("test_reasons.py::test_a_list_that_does_not_move_while_tools_run_is_to_be_brought_up_to_date_first",)),
    Fault("own tools do not renew", "hook/note.py", 'RENEWS = ("post-tool", "prompt", "stop")', 'RENEWS = ("prompt", "stop")', ("test_two_sessions.py::test_a_tool_event_that_is_heard_late_renews_from_when_it_happened",)),
    Fault("a notification renews", "hook/note.py", 'RENEWS = ("post-tool", "prompt", "stop")', 'RENEWS = ("post-tool", "prompt", "stop", "notification")', ("test_two_sessions.py::test_the_holders_own_events_renew_past_half_the_lease",)),
    Fault("a stop does not renew what is overdue", "hook/note.py", 'self._renew(at, by_stop=answering and event == "stop")', "self._renew(at, by_stop=False)", ("test_two_sessions.py::test_an_overdue_renewal_is_made_first_and_then_the_stop_is_judged",)),
    Fault("a dead program holds on", "work/reservations.py", "return leases.NEVER if dead else -1", "return -1", ("test_two_sessions.py::test_a_session_that_goes_on_in_a_new_process_is_alive",)),
    Fault("a process seen once is the program", "work/reservations.py", "row.program_seen > 1 and", "row.program_seen and", ("test_two_sessions.py::test_a_session_that_goes_on_in_a_new_process_is_alive",)),
    Fault("a tracker that fails is known", "work/ready.py", "if tracker.failed_at is not None or tracker.read_at is None", "if False", ("test_ready.py::test_a_tracker_that_did_not_answer_is_unknown_and_what_it_said_before_stands",)),
    Fault("the held hide the free", "work/ready.py", "READY_SHOWN + len(taken) + len(owed)", "READY_SHOWN", ("test_ready.py::test_taken_items_never_hide_the_free_ones_behind_them",)),
    Fault("an ended session's item is not offered first", "work/ready.py", "if (gone or stalled) and", "if False and", ("test_ready.py::test_holds_of_sessions_that_have_ended_are_left_out_and_their_items_come_first",)),
    Fault("the ledger's moves count before they happened", "work/ready.py", 'if item.changed_at >= since else state', "if True else state", ("test_ready.py::test_a_held_ledger_item_stands_as_the_ledger_says",)),
    Fault("two at once are both away", "cli/away.py", "if (one.since, one.id) != stays:", "if one.id in seen:", ("test_away_command.py::test_of_two_away_at_the_same_moment_one_stays",)),
    Fault("a claim is granted over a queued prompt", "core/queue_claims.py", "queued=True, has_queued_prompt=True, wait=\"set\"", "queued=True, claimed=True, wait=\"set\"", ("test_claim_model.py::test_no_order_of_events_breaks_a_rule_of_the_claim",)),
    Fault("a release that overtook is forgotten", "core/chain.py", '(claim.released, "unavailable", "released"),', "", ("test_claim_model.py::test_no_order_of_events_breaks_a_rule_of_the_claim",)),
    Fault("a third continuation is counted", "core/bounds.py", "GUARD_STREAMS = 2", "GUARD_STREAMS = 3", ("test_guard.py::test_two_attempts_are_decided_and_counted_and_the_third_is_refused",)),
    Fault("a cancel in a wait is not heard", "core/queue_prompts.py", "elif move.state.child is not None and not any", "elif turn is not None and not any", ("test_queue.py::test_a_cancel_holds_background_turns_back_until_the_next_prompt",)),
    Fault("nobody is told of the release", "core/queue_prompts.py", "move.do(SendRelease", "(lambda *_, **__: 0)(SendRelease", ("test_claim_model.py::test_no_order_of_events_breaks_a_rule_of_the_claim",)),
    Fault("an unchanged list is blocked again", "core/away.py", "look.chosen is not None and not changed", "False", ("test_away_check.py::test_progress_buys_another_push_and_only_an_unchanged_list_may_wait",)),
    Fault("a changed list may wait", "core/away.py", "changed = state.fingerprint != owes.fingerprint", "changed = False", ("test_away_check.py::test_progress_buys_another_push_and_only_an_unchanged_list_may_wait",)),
    Fault("nothing owed needs no wake", "core/away.py", "look.chosen is not None and not owes.anything_owed", "not owes.anything_owed", ("test_away_check.py::test_with_nothing_owed_and_no_wake_the_ready_item_comes_before_the_look",)),
    Fault("unknown is taken for empty", "core/owed.py", "return bool(self.owed or self.unread)", "return bool(self.owed)", ("test_away_check.py::test_a_list_that_cannot_be_read_is_unknown_never_empty",)),
    Fault("the empty set is not kept", "core/away.py", "case = case.replace(state=case.state.replace(fingerprint=owes.fingerprint))", "pass", ("test_away_check.py::test_the_empty_list_is_a_change_too",)),
    Fault("a title counts in the digest", "core/owed.py", '{item.id}\\0{item.state}"', '{item.id}\\0{item.state}{item.title}"', ("test_away_check.py::test_rewording_and_reordering_are_no_change",)),
    Fault("the order counts in the digest", "core/owed.py", "parts = sorted([", "parts = list([", ("test_away_check.py::test_rewording_and_reordering_are_no_change",)),
    Fault("the state does not count", "core/owed.py", '{item.id}\\0{item.state}"', '{item.id}"', ("test_away_check.py::test_the_digest_is_the_same_in_every_process_and_on_every_machine",)),
    Fault("what waits on a person is owed", "core/owed.py", 'LIVE = ("open", "doing")', 'LIVE = ("open", "doing", "waiting")', ("test_away_check.py::test_an_item_that_waits_on_a_person_is_listed_but_not_owed",)),
    Fault("what is parked is let go at once", "core/owed.py", "item.before in LIVE and item.id not in graced", "False", ("test_away_check.py::test_what_the_agent_parks_or_removes_stays_owed_for_one_more_block",)),
    Fault("what is parked is owed for ever", "core/owed.py", "item.before in LIVE and item.id not in graced", "item.before in LIVE", ("test_away_check.py::test_what_the_agent_parks_or_removes_stays_owed_for_one_more_block",)),
    Fault("going back and forth is progress", "core/owed.py", "    if key in reached:\n        return []\n", "", ("test_bounds.py::test_only_first_reached_states_are_progress",)),
    Fault("done from the start is progress", "core/owed.py", 'if item.before in ("done", item.state):', "if False:", ("test_bounds.py::test_only_first_reached_states_are_progress",)),
    Fault("the cap comes one block late", "core/away.py", "counts.without_tools >= cap", "counts.without_tools > cap", ("test_bounds.py::test_the_eighth_block_is_still_a_block_and_recorded_the_ninth_stop_is_allowed",)),
    Fault("a cap of zero ends at once", "core/away.py", "if cap and counts", "if counts", ("test_bounds.py::test_the_hosts_cap_is_the_bound_and_zero_leaves_the_larger_one",)),
    Fault("a tool resets the plain count", "core/away.py", "blocks=0 if owes.progressed else state.blocks", "blocks=0 if owes.progressed or state.tool_used else state.blocks", ("test_bounds.py::test_tool_use_begins_the_hosts_count_anew_but_not_ours",)),
    Fault("a tool does not reset the host's count", "core/away.py", "owes.progressed or state.tool_used", "owes.progressed", ("test_bounds.py::test_tool_use_begins_the_hosts_count_anew_but_not_ours",)),
    Fault("an allowed stop keeps the row", "core/away.py", "        blocks=0,\n        blocks_without_tools=0,\n        tool_used=False,\n        bound=", "        tool_used=False,\n        bound=", ("test_bounds.py::test_an_allowed_stop_begins_the_row_anew",)),
    Fault("the stop at a bound is not recorded", "core/away.py", "    if not bound:\n", "    if True:\n", ("test_bounds.py::test_the_eighth_block_is_still_a_block_and_recorded_the_ninth_stop_is_allowed",)),
    Fault("no ceiling of an hour", "core/away.py", "len(counts.this_hour) >= policy.blocks_an_hour", "False", ("test_bounds.py::test_thirty_blocks_an_hour_are_the_ceiling_whatever_moves",)),
    Fault("no ceiling of a period", "core/away.py", "counts.in_period >= policy.blocks_a_period", "False", ("test_bounds.py::test_a_whole_period_has_a_ceiling_too",)),
    Fault("the hour never passes", "core/away.py", "if now - HOUR < then <= now", "", ("test_bounds.py::test_thirty_items_finished_in_a_night_are_thirty_blocks_and_no_bound",)),
    Fault("a new period inherits the last block", "core/away.py", "if state.period == period.id:", "if state.period:", ("test_away_check.py::test_a_new_away_period_knows_no_last_block",)),
    Fault("until done forgets what is awaited", "core/away.py", "and not owes.awaited ", "", ("test_away_check.py::test_away_until_done_ends_with_the_list_and_only_with_all_of_it",)),
    Fault("until done forgets what is held", "core/away.py", "and not _held(stop, world)", "", ("test_away_check.py::test_away_until_done_ends_with_the_list_and_only_with_all_of_it",)),
    Fault("a subagent is judged", "core/judge.py", "if stop.subagent:", "if False:", ("test_away_check.py::test_a_subagents_stop_is_left_alone",)),
    Fault("plan mode is continued", "core/judge.py", "if stop.plan_mode:", "if False:", ("test_away_check.py::test_plan_mode_is_never_continued_and_is_recorded_while_away",)),
    Fault("a cancel is forgotten", "core/judge.py", "if session.cancelled:", "if False:", ("test_away_check.py::test_a_persons_cancel_holds_until_an_ordinary_prompt",)),
    Fault("observe blocks", "core/judge.py", "verdict.replace(block=False, kind=\"observed\"", "verdict.replace(kind=\"observed\"", ("test_away_check.py::test_off_judges_nothing_and_observe_records_without_blocking",)),
    Fault("a stale verdict is committed", "core/judge.py", "verdict.after.revision != session.revision", "False", ("test_away_check.py::test_judging_twice_gives_the_same_and_a_stale_verdict_is_refused",)),
    Fault("a machine's prompt ends a cancel", "core/session.py", 'if by == "person":', "if True:", ("test_away_check.py::test_after_three_looks_without_a_change_the_item_goes_back_to_the_person",)),
    Fault("a look is missed at once", "core/session.py", "state.next_look_latest + MISSED_LOOK_AFTER", "state.next_look_latest", ("test_bounds.py::test_a_look_that_did_not_happen_is_recorded_once_at_the_next_event",)),
    Fault("a resumed session stays stopped", "core/session.py", "if state.bound and not by_stop and not _before_last_block(state, now):", "if False:", ("test_bounds.py::test_any_later_event_marks_a_stopped_session_as_resumed",)),
    Fault("an item is never handed back", "core/away.py", "looks >= policy.unchanged_looks and owes.owed", "False", ("test_away_check.py::test_after_three_looks_without_a_change_the_item_goes_back_to_the_person",)),
    Fault("another's hold is offered", "core/owed.py", "if hold is None or (hold.terminal", "if True or (hold.terminal", ("test_away_check.py::test_the_ready_queue_skips_what_another_session_holds_and_names_it",)),
    Fault("control characters reach the model", "core/reason.py", 'char if char.isprintable() else " " for char in text', "char for char in text", ("test_away_check.py::test_work_text_reaches_the_model_as_one_quoted_line_only",)),
    Fault("the deadline is exclusive", "core/wakes.py", "if expected.latest <= terms.deadline:", "if expected.latest < terms.deadline:", ("test_wakes.py::test_a_wake_qualifies_up_to_the_deadline_of_a_reservation",)),
    Fault("jitter is forgotten", "core/wakes.py", "earliest, latest = fire, fire + worst", "earliest, latest = fire, fire", ("test_wakes.py::test_an_hourly_wake_that_may_come_half_an_hour_late_does_not_qualify",)),
    Fault("a wake never ages", "core/wakes.py", "if latest > ends else", "if False else", ("test_wakes.py::test_a_wake_that_one_of_two_readings_never_fires_does_not_qualify",)),
    Fault("a lease lives through its last second", "core/leases.py", "now < lapses_at(reservation, now)", "now <= lapses_at(reservation, now)", ("test_leases.py::test_thirty_days_count_as_one",)),
    Fault("the skew is not taken off", "core/leases.py", "renewal_due(reservation) - skew_for", "renewal_due(reservation) + 0 * skew_for", ("test_leases.py::test_two_hours_from_half_past_eight_are_due_at_half_past_nine",)),
    Fault("a lease longer than a day", "core/leases.py", "min(reservation.expires_at, reservation.claimed_at + LEASE_MAX)", "reservation.expires_at", ("test_leases.py::test_thirty_days_count_as_one",)),
    Fault("another copy's hold sets the deadline", "core/leases.py", "if held.copy == copy and held.expires_at", "if held.expires_at", ("test_leases.py::test_reservations_of_other_copies_are_ignored",)),
    Fault("revisions are not compared", "store/sql/queries.sql", "WHERE :expected_revision = coalesce((SELECT revision FROM session_state WHERE id = :id), 0)", "WHERE 1", ("test_store.py::test_a_verdict_reached_on_an_older_state_is_refused",)),
    Fault("a period ends twice", "store/sql/queries.sql", "WHERE id = :id AND ended_at IS NULL", "WHERE id = :id", ("test_store.py::test_a_period_ends_once",)),
    Fault("a nonce is stored twice", "store/sql/queries.sql", "session = :session AND nonce = :nonce AND nonce <> ''", "0 AND nonce = :nonce AND session = :session", ("test_store.py::test_the_same_stop_judged_twice_has_one_verdict",)),
    Fault("the marker goes first", "store/marker.py", "            write(state_dir, told.values(), {period.id: policy_json})\n", "", ("test_marker.py::test_arming_and_disarming_change_both",)),
    Fault("a fault blocks for ever", "hook/fault.py", "in_a_row(state_dir, session) >= FAULTS_IN_A_ROW", "False", ("test_our_own_faults.py::test_faults_in_a_row_block_three_times_and_then_allow",)),
    Fault("a fault is let pass", "hook/fault.py", "    return Fault(\n        True,", "    return Fault(\n        False,", ("test_our_own_faults.py::test_faults_in_a_row_block_three_times_and_then_allow",)),
    Fault("an uncounted fault blocks", "hook/fault.py", "if not count(state_dir, session, now, what):", "count(state_dir, session, now, what)\n    if False:", ("test_our_own_faults.py::test_a_fault_that_cannot_be_counted_never_blocks",)),
    Fault("the same stop is counted twice", "hook/at_stop.py", "if event.started >= row.answered_ticks:", "if True:", ("test_hook_at_a_stop.py::test_the_same_stop_from_two_registrations_is_counted_once",)),
    Fault("an unreadable cap switches the cap off", "hosts/claude_code.py", "        return None\n    return max(0, int(text))", "        return 0\n    return max(0, int(text))", ("test_hook_at_a_stop.py::test_an_unreadable_cap_is_eight_and_zero_or_less_is_off",)),
    Fault("a permission is granted", "hosts/claude_code.py", '"behavior": "deny"', '"behavior": "allow"', ("test_refusals.py::test_a_permission_prompt_is_refused_never_granted",)),
    Fault("a promise without a time counts", "work/promises.py", "return self.at is not None and not self.handled and now > self.at", "return not self.handled and now > (self.at or 0)", ("test_promises.py::test_a_promise_without_a_fallback_time_is_refused_and_never_counts",)),
    Fault("a declared look is kept by nobody", "hook/declared.py", "    if watch is None:\n        return \"no keeper", "    if False:\n        return \"no keeper", ("test_declared_looks.py::test_the_function_says_when_and_why_not",)),
    Fault("a stall is told at every look", "cli/watch.py", "if store.fact(TOLD, stall.key) != stall.episode)", ")", ("test_watch.py::test_an_overdue_promise_is_told_once_and_one_line_whoever_saw_it_first",)),
    Fault("a session is resumed beside an open program", "cli/resuming.py", "if surroundings.agents(row.root, context.system):", "if False:", ("test_watch.py::test_an_idle_session_is_resumed_only_where_no_program_can_be_open",)),
    Fault("one stall is resumed again and again", "cli/resuming.py", 'if store.fact(RESUMED, session) == f"{kind} {episode}":', "if False:", ("test_watch.py::test_a_session_closed_with_work_owed_is_resumed_once",)),
    Fault("the keeper wakes a session at work", "hook/keeper.py", "or row.last_event not in IDLE_AFTER", "", ("test_keeper.py::test_it_never_wakes_after_back_the_sessions_end_off_or_a_persons_prompt",)),
    Fault("an old keeper wakes too", "hook/keeper.py", "or keeper.generation != generation ", "", ("test_keeper.py::test_an_older_keeper_ends_even_if_the_newest_is_dead",)),
    Fault("a kept look forgets what is held", "hook/at_stop.py", "leases.deadline(holds, copy, now, policy, session)", "leases.deadline((), copy, now, policy)", ("test_keeper.py::test_a_keeper_looks_in_time_for_what_the_session_holds",)),
    Fault("a replay judges the recorded state", "sim/replay.py", "state=commit(state, now)", "state=commit(recorded, as_stored)", ("test_replay.py::test_counts_are_carried_on_under_the_new_policy",)),
    Fault("a torn line is passed over", "store/recorded.py", "        except StopwardenError as error:\n            if unread is None:\n                raise\n            unread(UnreadLine(line=number, error=error))\n            continue\n", "        except StopwardenError:\n            continue\n", ("test_recorded_stops.py::test_what_is_no_recorded_stop_is_named_by_its_line",)),
    Fault("a wake that never comes is valid", "sim/tally.py", "self.silent_scheduler += length - waited", "self.waiting += length - waited", ("test_nights.py::test_the_page_is_what_the_first_nights_give",)),
    Fault("a lapsed hold is granted at once", "core/reservations.py", "leases.lapses_at(held, now) + TAKE_OVER_MARGIN", "leases.lapses_at(held, now)", ("test_reservations.py::test_what_lapsed_is_kept_for_its_holder_for_five_minutes",)),
    Fault("a live hold is granted", "core/reservations.py", "if gone or not is_taken(stored, now) or", "if True or", ("test_reservations.py::test_what_lapsed_is_kept_for_its_holder_for_five_minutes",)),
    Fault("a token is given twice", "core/reservations.py", "else stored.token + 1 if stored is not None else 1", "else stored.token if stored is not None else 1", ("test_reservations.py::test_what_lapsed_is_kept_for_its_holder_for_five_minutes",)),
    Fault("an older token passes", "core/reservations.py", "    if token is not None and token != stored.token:\n        return Denied(why=\"fence\", by=(stored,), until=_until(stored, now))\n    if stored.session == session:\n        if", "    if stored.session == session:\n        if", ("test_reservations.py::test_the_fence_refuses_who_lost_the_item",)),
    Fault("a lapsed holder may write", "core/reservations.py", '            return Denied(why="lapsed", by=(stored,), until=stored.expires_at)\n', "            return None\n", ("test_reservations.py::test_the_fence_refuses_who_lost_the_item",)),
    Fault("another copy goes on unasked", "core/reservations.py", "        if stored.copy == ask.copy:", "        if True:", ("test_reservations.py::test_a_session_moves_its_own_hold_and_never_takes_anothers",)),
    Fault("an eleventh is granted", "core/reservations.py", "len(mine) >= RESERVATIONS_MAX", "len(mine) > RESERVATIONS_MAX", ("test_reservations.py::test_the_eleventh_live_hold_is_refused_and_names_the_ten",)),
    Fault("footprints are compared by spelling", "core/reservations.py", 'path.startswith(above + "/")', "path.startswith(above)", ("test_reservations.py::test_footprints_overlap_by_path_and_by_directory_and_not_by_spelling",)),
    Fault("another gives a hold back", "core/reservations.py", "    if stored.session != session:\n        return Denied", "    if False:\n        return Denied", ("test_reservations.py::test_only_the_holder_gives_back_and_only_in_its_checkout",)),
    Fault("the fence is asked only before the write", "work/reservations.py", "                write()\n                refused = rules.fence(", "                write()\n                refused = None and rules.fence(", ("test_claims_at_once.py::test_a_holder_that_was_stopped_past_its_lease_writes_nothing",)),
    Fault("the clock is read outside", "work/reservations.py", "    try:\n        with store.transaction():\n            if first is not None:\n                first()\n            done = _claimed(store, ask, clock(), state_dir)", "    now = clock()\n    try:\n        with store.transaction():\n            if first is not None:\n                first()\n            done = _claimed(store, ask, now, state_dir)", ("test_claims_at_once.py::test_a_claim_that_waited_for_the_lock_is_judged_by_the_time_at_which_it_got_it",)),
    Fault("a claim is no transaction", "work/reservations.py", "        with store.transaction():\n            if first is not None:\n                first()\n            done = _claimed(", "        if True:\n            if first is not None:\n                first()\n            done = _claimed(", ("test_claims_at_once.py::test_a_claim_that_waited_for_the_lock_is_judged_by_the_time_at_which_it_got_it",)),
    Fault("a claim that is not known is taken for failed", "work/reservations.py", "        _read_back(store, ask, failed)", "        raise", ("test_holds_on_a_failing_disk.py::test_a_claim_whose_commit_says_it_failed_is_read_back_and_granted",)),
    Fault("any hold of the session is taken for the claim", "work/reservations.py", "or held.nonce != ask.nonce ", "", ("test_holds_on_a_failing_disk.py::test_another_claim_of_the_same_session_is_not_taken_for_the_one_that_failed",)),
    Fault("what hooks heard is not taken over first", "cli/reserve.py", "first=lambda: holds.hear(store, context)", "first=None", ("test_reservations.py::test_a_footprint_of_an_ended_session_is_in_nobodys_way",)),
    Fault("an agent takes what another holds", "cli/reserve.py", "args.take_over and _may_take(context, store)", "args.take_over", ("test_reservations.py::test_what_another_holds_now_is_taken_over_by_the_person_alone",)),
    Fault("tools of a holder leave no word", "hook/run.py", " or _renews(told[\"s\"], place, at)", "", ("test_reservations.py::test_a_session_at_work_keeps_its_hold_though_nobody_is_away",)),
    Fault("what comes later is ready", "store/sql/queries.sql", "json_each(ledger_item.needs)", "json_each(needs)", ("test_ledger.py::test_what_comes_after_something_is_ready_once_that_is_done_or_dropped",)),
    Fault("items wait for each other", "work/ledger.py", "            _refuse_circle(store, item)\n", "", ("test_ledger.py::test_what_cannot_be_is_refused_and_nothing_is_written",)),
    Fault("nobody asks again after the command", "work/ledger.py", "        denied = _written(store, by, item, clock, token)\n", "        store.save_ledger_item(item)\n        denied = None\n", ("test_ledger.py::test_a_session_that_slept_past_its_lease_writes_nothing",)),
    Fault("a session's word does for a command", "work/ledger.py", "if item.verify and ran is None and by.session:", "if False:", ("test_ledger.py::test_an_item_with_a_command_is_done_only_when_the_command_passed",)),
    Fault("another priority hides what was parked", "work/ledger.py", "cleared if state == item.state else cleared.replace", "cleared.replace", ("test_ledger.py::test_was_tells_of_changes_of_state_and_of_nothing_else",)),
    Fault("a failed command is a pass", "cli/verify.py", "passed=ran.code == 0", "passed=True", ("test_ledger_commands.py::test_done_is_what_the_command_says",)),
    Fault("every failure is another", "cli/verify.py", '_VARYING.sub(b"~", ran.out)', "ran.out", ("test_ledger_commands.py::test_failing_the_same_way_twice_is_said_so_that_nobody_tries_for_ever",)),
    Fault("a list is edited without its fence", "cli/fenced.py", "            if denied is not None:\n", "            if False:\n", ("test_ledger_commands.py::test_a_refusal_is_json_too",)),
    Fault("a tracker that failed is believed", "work/trackers.py", "    if ran.code != 0:\n", "    if False:\n", ("test_trackers.py::test_beads_are_listed_and_what_it_calls_not_ready_is_blocked",)),
    Fault("what a tracker said is forgotten when it fails", "work/trackers.py", "        if not said.why:\n            before", "        if True:\n            before", ("test_trackers.py::test_what_was_read_before_stays_but_counts_as_unknown",)),
    Fault("a running night is forgotten", "store/forgetting.py", "if one.ended_at is not None and one.id not in marked]", "]", ("test_forgetting.py::test_a_running_night_and_what_it_needs_are_never_forgotten",)),
    Fault("a verdict can be deleted at any time", "store/sql/migrations/003_forgetting.sql", "ON verdict\nWHEN NOT EXISTS (SELECT 1 FROM forgetting)", "ON verdict\nWHEN 0", ("test_forgetting.py::test_a_delete_passes_only_while_a_forgetting_is_open",)),
    Fault("a text that is still named is forgotten", "store/forgetting.py", "if digest not in named:", "if True:", ("test_forgetting.py::test_a_verdict_that_comes_meanwhile_keeps_the_texts_it_names",)),
    Fault("what stands behind a limit's time is kept", "hosts/claude_code_facts.py", "            break\n        kept.append(word)", "            pass\n        kept.append(word)", ("test_privacy.py::test_no_message_of_an_unarmed_day_is_stored_or_told",)),
    Fault("a title becomes markup", "report/html.py", "autoescape=True", "autoescape=False", ("test_report_page.py::test_hostile_text_is_shown_as_it_is",)),
    Fault("a mistyped name costs a list", "cli/written.py", "if begins and mark.encode() not in begins:", "if False:", ("test_report_page.py::test_an_older_report_is_replaced_and_nothing_else",)),
    Fault("time under two periods is told twice", "report/heard.py", "if found and since <= found[-1][1]:", "if False:", ("test_report_many_nights.py::test_a_session_under_two_periods_at_once_is_not_counted_twice",)),
    Fault("what an earlier night did is forgotten", "report/stories.py", "if earlier.outcome in as_left.get(later.outcome, ()):", "if False:", ("test_report_many_nights.py::test_what_one_night_did_is_still_done_two_nights_on",)),
    Fault("what finds no room is dropped without a word", "core/backlog.py", "    if not gone:\n", "    if True:\n", ("test_backlog.py::test_twenty_results_of_others_do_not_push_out_the_chains_own",)),
    Fault("others push out the chain's own result", "core/results.py", "if not (holding.deferring and waiting.related)]", "]", ("test_backlog.py::test_twenty_results_of_others_do_not_push_out_the_chains_own",)),
    Fault("the snapshot is reset without the related agents", "core/backlog.py", "begun = lineage.begun(event.world, _tasks(backlog))", "begun = lineage.begun(event.world, _tasks(backlog)).replace(related=backlog.lineage.related)", ("test_backlog.py::test_a_new_chain_forgets_snapshot_related_agents_and_marks_at_once",)),
    Fault("results of the chain before stay related", "core/backlog.py", "results=results.as_old(backlog.results)", "results=backlog.results", ("test_backlog.py::test_a_new_chain_makes_everything_old_that_waits",)),
    Fault("an interrupted scheduled turn wipes the others", "core/backlog.py", "fires.put_back(backlog.fires, way.fire, holding)", "fires.put_back((), way.fire, holding)", ("test_backlog.py::test_an_interrupted_scheduled_turn_costs_no_other_fire",)),
    Fault("a turn that came to nothing has told of the gaps", "core/gaps.py", 'open=tuple(gap.replace(turn="") if gap.turn == turn', 'open=tuple(gap.replace(turn="", told_model=True) if gap.turn == turn', ("test_backlog.py::test_a_send_that_came_to_nothing_has_told_nothing",)),
    Fault("gap entries beyond memory are forgotten", "core/gaps.py", "held = found[-1].number if len(found) == room else asked.through", "held = asked.through", ("test_backlog.py::test_what_memory_does_not_hold_is_read_from_the_store_in_order",)),
    Fault("a related wakeup is trimmed", "core/fires.py", "unrelated = [fire for fire in queue if not fire.related]", "unrelated = list(queue)", ("test_backlog.py::test_a_trim_leaves_the_youngest_and_names_all_that_went_at_once",)),
    Fault("one failed send takes away every mark of its agent", "core/lineage.py", "if mark[0] != send)", "if mark[1] not in targets)", ("test_lineage.py::test_a_send_that_fails_takes_away_only_its_own_mark",)),
    Fault("a missing parent counts as related", "core/lineage.py", "answer = known.get(agent) if agent else True", "answer = known.get(agent) if agent in self._parents() else True", ("test_lineage.py::test_doubt_about_an_agents_descent_is_never_related",)),
    Fault("the wait for background work has no limit", "core/lineage.py", "if deferral.too_long or now - since < limit:", "if True:", ("test_lineage.py::test_a_task_that_never_ends_holds_a_chain_back_for_half_an_hour_only",)),
    Fault("a chain overtakes a queued prompt", "core/queue_claims.py", 'queued=True, has_queued_prompt=True, wait="set")', 'queued=True, claimed=True, wait="set")', ("test_queue.py::test_a_retry_that_had_to_wait_is_vouched_for_when_its_turn_comes_and_ends_the_wait",)),
    Fault("a refused claim takes another's wait", "core/queue_claims.py", 'ClaimRow(rule="claim.not_the_owner", owner="other")', 'ClaimRow(rule="claim.not_the_owner", owner="other", wait="set")', ("test_queue.py::test_a_claim_is_answered_by_owner_queue_and_competitor_in_that_order",)),
    Fault("a release while another prompt waits", "core/queue_prompts.py", "if owner is not None and not live_queued(move.state):", "if owner is not None:", ("test_queue.py::test_the_owner_is_released_only_when_the_last_prompt_it_waits_for_is_taken_out",)),
    Fault("a hung child holds the queue for ever", "core/queue_prompts.py", '        end_turn_of(move, entry.prompt, "cancelled")', "        return", ("test_queue.py::test_a_child_that_never_settles_a_cancelled_turn_holds_up_the_queue_for_thirty_seconds_only",)),
    Fault("messages of a failed drain are lost", "core/queue_messages.py", "move.set(drain=None, messages=back + move.state.messages)", "move.set(drain=None)", ("test_queue.py::test_attachments_that_cannot_be_read_put_the_messages_back_in_front_and_in_order",)),
    Fault("a late message is handed over twice", "core/queue_messages.py", "        if carried:\n            delivered(move, carried)\n", "", ("test_queue.py::test_a_message_that_missed_its_drain_is_carried_by_the_next_prompt_exactly_once",)),
    Fault("a channel keeps what it has dropped", "core/claim_hosts.py", "known=channel.known - {session}", "known=channel.known", ("test_claim_hosts.py::test_a_channel_that_clears_retires_or_stops_has_lost_the_session_in_that_step",)),
    Fault("a retry lifts a suspension", "core/chain.py", '"lineage" if held_hard else "chain"', '"chain"', ("test_chain.py::test_a_retry_lifts_no_hard_suspension",)),
    Fault("a wait is installed after its release", "core/chain.py", '(claim.released, "unavailable", "released"),', "", ("test_chain.py::test_a_release_that_overtakes_the_answer_leaves_no_wait",)),
    Fault("an automatic turn lifts a suspension", "core/chain.py", "    if guard.suspended:\n        return started, ()\n", "", ("test_chain.py::test_a_chain_that_yielded_ends_when_the_queue_is_empty_after_all",)),
    Fault("a claim of an older chain counts", "core/chain.py", '(claim.chain != chain.number, "unavailable", "superseded"),', "", ("test_chain.py::test_an_answer_for_a_chain_that_was_replaced_touches_nothing_of_the_new_one",)),
    Fault("a third stream is counted", "core/guard.py", "or attempt > guard.budget.attempts:", "or False:", ("test_guard.py::test_two_attempts_are_decided_and_counted_and_the_third_is_refused",)),
    Fault("half a todo list is read", "core/todo_envelope.py", "if len(items) != len(todos) or", "if", ("test_guard.py::test_only_the_whole_structured_envelope_is_a_list",)),
    Fault("a stream of the guard goes without a claim", "core/continuation.py", "    ask_claim(pen, probe=False)\n", '    pen.on(claim="claimed")\n', ("test_stop_loop.py::test_a_claim_that_is_not_granted_sends_nothing",)),
    Fault("words drained on yielding are forgotten", "core/continuation.py", "        give_way(pen, found.parts)", "        give_way(pen)", ("test_stop_loop.py::test_words_drained_with_a_queued_prompt_are_stored_when_the_turn_yields",)),
    Fault("a refused stream stays in history", "core/turn_state.py", 'act="roll_back"', 'act="commit"', ("test_turn.py::test_a_refused_stream_costs_nothing_and_leaves_no_trace",)),
    Fault("an unwinding turn loses its tool results", "core/turn_answers.py", "        pen.store(event.parts)\n        return", "        return", ("test_turn.py::test_a_newer_prompt_ends_the_older_turn_and_keeps_its_results",)),
    Fault("a chain waits for a prompt that was refused", "core/turn.py", "            pen.chained(words.Released(owner=owner), unheard=words.ReleaseAnswered)", "            pass", ("test_guard_simulation.py::test_a_chain_that_gave_way_waits_no_more_for_a_prompt_that_was_refused",)),
    Fault("a dispose settles what waits", "core/turn.py", "    pen.chained(words.Disposed())\n", "    pen.chained(words.Disposed())\n    pen.waited(waits.Cleared())\n", ("test_notices_in_turns.py::test_what_waits_when_a_session_is_put_away_comes_back_when_it_is_loaded",)),
    Fault("a prompt tells of no gaps", "core/continuation.py", "or not pen.backlog.gaps.open:", "or stream.first:", ("test_notices_in_turns.py::test_an_ordinary_prompt_tells_the_model_what_was_left_out",)),
    Fault("a refused send has told of the gaps", "core/turn_state.py", "        if stream.notice:\n            self.waited(", "        if False:\n            self.waited(", ("test_notices_in_turns.py::test_a_refused_send_has_told_nothing_and_a_broken_one_has",)),
    Fault("a send is not on disk before it goes", "core/continuation.py", "    pen.do(WriteHistory, act=\"stage\"", "    () and pen.do(WriteHistory, act=\"stage\"", ("test_turn.py::test_with_the_guard_off_a_stop_is_a_stop",)),
    Fault("a guest ends the wait of the chain", "core/turn.py", "(pen.turn is None or pen.guest)", "pen.turn is None", ("test_turn_deferral.py::test_a_guest_that_runs_when_the_clock_ticks_does_not_begin_the_wait_anew",)),
    Fault("a chain that went on counts its old wait", "core/automatic.py", "        pen.set(deferral=Deferral())\n", "        pass\n", ("test_turn_deferral.py::test_what_the_chain_goes_on_waiting_for_is_counted_from_when_it_went_on",)),
    Fault("what a guest sets going holds the chain", "core/turn.py", "        pen.waited(waits.MadeByAnother(tasks=made))", "        del made", ("test_turn_deferral.py::test_what_a_turn_beside_the_chain_sets_going_is_none_of_its_work",)),
    Fault("a yes to a turn for results is not looked at again", "core/automatic.py", "    if pen.state.arriving or not chains.may_start_automatic(pen.chain, wanted.related):\n", "    if False:\n", ("test_automatic_turns.py::test_a_yes_is_looked_at_again",)),
    Fault("a turn for results claims for nobody", "core/automatic.py", "owner=None if event.unknown_method else wanted.turn", "owner=None", ("test_automatic_turns.py::test_a_turn_for_results_is_an_owner_once_it_is_let_in",)),
    Fault("a turn that will not begin stays registered", "core/automatic.py", 'pen.do(ev.EndTurn, turn=wanted.turn, kind="cancelled", rule=f"turn.{why}")', "pass", ("test_automatic_turns.py::test_what_comes_before_the_answer_gives_the_results_back",)),
    Fault("a refused turn has made work old", "core/automatic.py", "    asked = pen.do(ev.RegisterTurn, turn=name)\n", "    asked = pen.do(ev.RegisterTurn, turn=name)\n    pen.waited(waits.ChainBegan(world=pen.state.tasks))\n", ("test_automatic_turns.py::test_a_refusal_changes_neither_chain_nor_lineage",)),
    Fault("a forced-off guard is turned on", "core/guard.py", '    if guard.forced_off and switch != "off":\n', "    if False:\n", ("test_turn_switches.py::test_where_the_guard_is_forced_off_no_switch_turns_it_on",)),
    Fault("a rejected list is shown", "core/turn.py", "    if event.todos is not None and pen.turn", "    if pen.turn", ("test_turn_switches.py::test_a_rejected_list_is_shown_to_nobody",)),
    Fault("a follow-up is suggested though work is awaited", "core/turn.py", "may_suggest(pen.chain) and not background(pen)", "may_suggest(pen.chain)", ("test_turn_switches.py::test_nothing_is_suggested_while_work_of_the_chain_is_awaited",)),
    Fault("observing leaves no record", "core/stop_loop.py", '    if decision.kind == "observed":  # judged', "    if False:  # judged", ("test_turn_switches.py::test_observing_judges_and_records_and_goes_on_with_nothing",)),
    Fault("the guard decides while away", "core/away_at_stop.py", "    if not pen.chain.away:\n        return\n", "    if pen.chain.away:\n        return\n", ("test_away_at_stop.py::test_a_session_that_owes_work_and_has_no_wake_is_blocked_without_any_armed_list",)),
    Fault("the away check goes on without a claim", "core/continuation.py", "    elif pen.running.claim == \"claimed\":\n        return\n", "    elif pen.running.claim == \"claimed\" or pen.running.stream.away:\n        return\n", ("test_away_at_stop.py::test_a_hooks_reason_goes_on_alone_when_the_claim_fails",)),
    Fault("a claim of the away check locks the guard", "core/stop_loop.py", 'policy = "away" if pen.chain.away', 'policy = "guard" if pen.chain.away', ("test_away_at_stop.py::test_its_claim_says_whose_it_is",)),
    Fault("a verdict on old facts is sent", "core/away_at_stop.py", "    return pen.running.judged != revision(pen)", "    return False", ("test_away_at_stop.py::test_a_verdict_on_facts_that_have_changed_is_not_sent_but_judged_again",)),
    Fault("a stale record counts", "core/turn_answers.py", "    if event.stale:\n", "    if event.stale and not event.stale:\n", ("test_away_at_stop.py::test_the_store_may_know_better_and_the_stop_is_judged_again",)),
    Fault("an allow is not recorded", "core/away_at_stop.py", "    elif not verdict.block:\n        ask_commit(pen)\n", "    elif not verdict.block:\n        return\n", ("test_away_at_stop.py::test_a_session_with_a_wake_and_nothing_owed_waits_and_that_is_in_the_record_before_the_turn_ends",)),
    Fault("our own faults block for ever", "core/away_at_stop.py", "elif pen.state.faults > FAULTS_IN_A_ROW:", "elif not pen.state.faults:", ("test_away_at_stop.py::test_a_judge_that_fails_blocks_three_times_in_a_row_and_then_lets_go",)),
    Fault("a block of the judge goes on after a cancel", "core/away_at_stop.py", "    elif held := held_back(pen):\n        pen.on(verdict=None)", "    elif held := \"\":\n        pen.on(verdict=None)", ("test_away_at_stop.py::test_not_even_a_block_of_the_judge_goes_on_against_the_person",)),
    Fault("a list holds back the wake of a session that waits", "core/chain.py", "and not chain.too_long and not chain.away)", "and not chain.too_long)", ("test_away_at_stop.py::test_an_unfinished_list_does_not_hold_back_the_wakes_of_a_session_that_waits",)),
    Fault("the away check goes on in plan mode once sent", "core/turn_answers.py", "if not counted or (stream.away is not None and pen.chain.plan):", "if not counted:", ("test_away_at_stop.py::test_plan_mode_that_comes_while_a_continuation_is_prepared_or_opens_ends_it",)),
    Fault("a slow claim ends the night", "core/away_at_stop.py", "    if stream.claims < FAULTS_IN_A_ROW:", "    if stream.claims < 1:", ("test_away_at_stop.py::test_a_claim_that_fails_is_asked_for_again",)),
    Fault("a session that fails while away is not known to have stopped", "core/turn_state.py", "if self.chain.away and not let and rule", "if self.chain.away and not let and kind == 'error' and rule", ("test_away_at_stop.py::test_a_context_that_is_full_ends_the_turn_once",)),
    Fault("a broken hook ends the night", "core/turn_answers.py", "    if event.failed and not pen.chain.away:\n", "    if event.failed:\n", ("test_away_at_stop.py::test_hooks_that_cannot_be_asked_do_not_end_the_night",)),
    Fault("a move to the same place ends the chain", "core/door.py", "    elif event.same:\n", "    elif False:\n", ("test_door.py::test_a_move_to_where_the_session_stands_changes_nothing",)),
    Fault("a failed move keeps the gate", "core/door.py", "    if held:\n        open_gate(pen)", "    if held and not why:\n        open_gate(pen)", ("test_door.py::test_a_folder_that_looked_like_no_move_is_asked_for_trust_once_the_gate_is_held",)),
    Fault("settling does not wait for the successor", "core/door.py", "    return pen.turn is None and pen", "    return pen", ("test_door.py::test_a_move_in_the_middle_of_a_turn_stops_the_guard_and_waits_for_the_turn",)),
    Fault("a live flag counts as rest", "core/door.py", "    if event.live:\n", "    if event.live and event.ended:\n", ("test_door.py::test_a_move_that_finds_no_rest_fails_after_its_time",)),
    Fault("schedules start before agents are restored", "core/door.py", "    if number < len(LOAD_ORDER):\n", "    if number < len(LOAD_ORDER):\n        if number == 2:\n            pen.do(asks.StartCron)\n", ("test_door.py::test_schedules_start_when_all_is_restored_and_not_before",)),
    Fault("a prompt begins in a session half restored", "core/turn.py", "    if pen.state.door.loading:\n        return False\n", "", ("test_door.py::test_schedules_start_when_all_is_restored_and_not_before",)),
    Fault("words of a drain after the dispose are lost", "core/turn_state.py", "        if self.chain.disposed:\n            self.store(parts)", "        if self.chain.disposed:\n            pass", ("test_guard_simulation.py::test_words_of_a_drain_that_answers_after_the_dispose_are_kept_in_history",)),
    Fault("words that a prompt carried die with it", "core/turn.py", "        pen.hold(carried(prompt))\n\n\ndef carried", "        pass\n\n\ndef carried", ("test_turn_edges.py::test_words_that_came_with_a_prompt_outlive_the_prompt",)),
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
