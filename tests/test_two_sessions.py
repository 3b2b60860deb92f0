"""Several sessions, one repository, one night: who is told to do what, and what a hold means at a stop."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from stopwarden.core.bounds import Policy
from stopwarden.core.events import Item, Reservation
from stopwarden.core.reservations import Claim, Granted
from stopwarden.store.port import LedgerItem
from stopwarden.work import checkout, reservations
from tests.conftest import at
from tests.support.night import SESSION, HookNight, cron, hook_command
from tests.support.stops import NIGHT, SOON, Night, items

A, B = SESSION, "5d0c7a52-0000-4000-8000-00000000000b"


class TwoSessions(HookNight):
    """One checkout, one list, two sessions of the same away period."""

    def stop(self, session: str, *crons: dict[str, Any]) -> dict[str, Any]:
        """A stop of one of them."""
        return self.send("stop", session_id=session, session_crons=list(crons))

    def reason(self, session: str, *crons: dict[str, Any]) -> str:
        """Why it was blocked, "" if it was not."""
        return str(self.stop(session, *crons).get("reason", ""))

    def hold(self, session: str, item: str, *, lease: int = 7200, on_list: bool = True) -> Reservation:
        """The session holds an item, of the list or of the project."""
        project, place = checkout.place_of_list(str(self.list))
        ask = Claim(
            item=item,
            place=place if on_list else project,
            project=project,
            session=session,
            copy=checkout.copy_key(str(self.project), self.state_dir),
            root=str(self.project),
            title=f"title of {item}",
            lease=lease,
        )
        store = self.store()
        done = reservations.reserve(store, ask, lambda: self.now)
        store.close()
        assert isinstance(done, Granted)
        return done.row

    def stored(self, item: str, *, on_list: bool = True) -> Reservation:
        """The item's reservation as it stands."""
        project, place = checkout.place_of_list(str(self.list))
        store = self.store()
        held = store.reservation(place if on_list else project, item)
        store.close()
        assert held is not None
        return held

    def ids(self) -> list[str]:
        """The ids of the list's items, as the agents are told them."""
        from stopwarden.work.gather import read_lists

        store = self.store()
        (period,) = store.open_periods()
        (one,) = read_lists(store, period.lists, period.id, str(self.project))
        store.close()
        return [item.id for item in one.items]

    def ledger(self, title: str, **fields: Any) -> int:
        """One more item in the project's ledger."""
        store = self.store()
        number = store.add_ledger_item(
            LedgerItem(
                **{
                    "project": checkout.project_key(str(self.project)),
                    "title": title,
                    "created_at": self.now - 9000,
                    "changed_at": self.now - 9000,
                    **fields,
                }
            )
        )
        store.close()
        return number


@pytest.fixture
def night(tmp_path: pathlib.Path) -> TwoSessions:
    two = TwoSessions(tmp_path)
    two.away()
    for session in (A, B):
        two.send("prompt", session_id=session, prompt="go on")
    return two


# who is told to do what


def test_sessions_on_one_list_are_told_to_reserve_first(night: TwoSessions) -> None:
    """Two that work from one list would do the same item; one alone needs no reservation."""
    assert "run `stopwarden reserve" in night.reason(A)
    alone = TwoSessions(night.project.parent / "alone")
    alone.away()
    alone.send("prompt", prompt="go on")
    assert "stopwarden reserve" not in alone.reason(A)


@pytest.mark.case("A143")
def test_a_peer_gets_other_work_while_one_session_is_stalled_and_the_record_shows_why(night: TwoSessions) -> None:
    """A holds the first item and goes silent: B is given the second, told who has the first, and that is recorded once."""
    first, second = night.ids()
    night.hold(A, first)
    reason = night.reason(B)
    assert f"Go on: item {second}" in reason
    assert f"{first} is held by session {A}"[:40] in reason
    night.stop(B)
    store = night.store()
    passed = [(line.session, line.item, line.text) for line in store.lines() if line.kind == "passed_over"]
    store.close()
    assert passed == [(B, first, A)]


def test_what_another_holds_is_not_owed_and_its_holder_still_owes_it(night: TwoSessions) -> None:
    """With everything else held by A, B owes nothing and may wait; A may not."""
    for item in night.ids():
        night.hold(A, item)
    assert night.stop(B, cron("21:30")) == {}
    assert night.reason(A, cron("21:30"))


@pytest.mark.case("A117", "BR-163")
def test_a_lapsed_hold_keeps_others_off_until_the_margin_is_over() -> None:
    """Four minutes and 59 seconds after the lease the item is still left alone; at five minutes it is anybody's."""
    held = Reservation(item="A", session="s2", copy="c", claimed_at=NIGHT - 7500, expires_at=NIGHT - 299)
    assert "item B" in Night(*items("A", "B"), reservations=(held,)).stop().reason
    assert "item A" in Night(*items("A", "B"), reservations=(held.replace(expires_at=NIGHT - 300),)).stop().reason


def test_what_another_finished_is_no_progress_of_mine() -> None:
    """B ticks items all night; a spinning A is still let go at its own bound."""
    night = Night(*items("A", "B"))
    for _ in range(7):
        night.stop()
    done = items("A", B="done")
    done = tuple(item.replace(before="open") for item in done)
    finished = Reservation(
        item="B", session="s2", copy="c", claimed_at=NIGHT, expires_at=NIGHT + 60, released_at=NIGHT, terminal=True
    )
    night.owes(*done)
    night.world = night.world.replace(reservations=(finished,))
    assert night.stop().counters.blocks == 8
    assert "stopped_with_work_owed" in night.lines


def test_a_finished_item_that_is_opened_again_is_owed_again() -> None:
    """The box is what counts: an open item is nobody's past."""
    finished = Reservation(
        item="A", session="s2", copy="c", claimed_at=NIGHT, expires_at=NIGHT + 60, released_at=NIGHT, terminal=True
    )
    assert "item A" in Night(*items("A"), reservations=(finished,)).stop().reason


def test_the_persons_own_hold_keeps_every_session_off_and_sets_no_deadline(night: TwoSessions) -> None:
    """A person who works on an item neither lapses nor has to renew."""
    first, second = night.ids()
    night.hold("", first)
    night.now += 30 * 3600 - 20 * 3600
    reason = night.reason(A)
    assert f"item {second}" in reason
    assert "held by the person" in reason


# holds that were lost


@pytest.mark.case("BR-144")
def test_a_session_that_lost_its_hold_is_told_to_leave_the_item(night: TwoSessions) -> None:
    """A slept past its lease and B took over: A is told, and is given other work."""
    first, second = night.ids()
    night.hold(A, first, lease=60)
    night.now += 60 + 300
    night.hold(B, first)
    reason = night.reason(A)
    assert f"You lost your hold of {first} to session {B}" in reason
    assert f"item {second}" in reason
    assert "hold_lost" in night.lines()


@pytest.mark.case("BR-164")
def test_a_lapsed_hold_of_its_own_is_owed_and_must_be_reserved_again(night: TwoSessions) -> None:
    """Nobody took it: the item stays this session's, but only after a new claim."""
    number = night.ledger("sweep the yard")
    night.hold(A, f"w{number}", lease=60, on_list=False)
    night.list.write_text("")
    night.now += 120
    reason = night.reason(A)
    assert f"item w{number}" in reason
    assert f"first run `stopwarden reserve w{number}`" in reason


# what renews, and by when to look


@pytest.mark.case("A33", "BR-139")
@pytest.mark.parametrize("event", ["post-tool", "prompt", "stop"])
def test_the_holders_own_events_renew_past_half_the_lease(event: str, night: TwoSessions) -> None:
    """Tools, prompts and stops of the holding session renew; the token stays."""
    first = night.ids()[0]
    held = night.hold(A, first, lease=3600)
    night.now = held.claimed_at + 1799
    night.send("post-tool", session_id=A, tool_name="Bash")
    night.send("notification", session_id=A, notification_type="auth_success")
    assert night.stored(first).claimed_at == held.claimed_at, "not before half of it is over"
    night.now = held.claimed_at + 1800
    at = night.now
    night.send(event, session_id=A)
    night.send("notification", session_id=B, notification_type="auth_success")  # takes over what was spooled
    assert night.stored(first).claimed_at == at
    assert night.stored(first).expires_at == at + 3600
    assert night.stored(first).token == held.token


@pytest.mark.parametrize("event", ["notification", "session-end", "pre-compact"])
def test_other_events_and_other_sessions_renew_nothing(event: str, night: TwoSessions) -> None:
    """A notification, an end or another session's work is no sign that the holder still works on it."""
    first = night.ids()[0]
    held = night.hold(A, first, lease=3600)
    night.now = held.claimed_at + 2000
    night.send(event, session_id=A, notification_type="idle_prompt", reason="other")
    for other in ("post-tool", "prompt", "stop"):
        night.send(other, session_id=B)
    assert night.stored(first).claimed_at == held.claimed_at


def test_a_tool_event_that_is_heard_late_renews_from_when_it_happened(night: TwoSessions) -> None:
    """The spool may be read hours later; the lease counts from the tool's own time, and a newer renewal stays."""
    first = night.ids()[0]
    held = night.hold(A, first, lease=3600)
    night.now = held.claimed_at + 2000
    happened = night.now
    night.send("post-tool", session_id=A, tool_name="Bash")
    night.now += 3000
    night.send("notification", session_id=B, notification_type="auth_success")
    assert night.stored(first).claimed_at == happened
    night.now += 10_000
    night.send("post-tool", session_id=A, tool_name="Bash")
    night.send("notification", session_id=B, notification_type="auth_success")
    assert night.stored(first).claimed_at == happened, "a lapsed hold is not renewed"


@pytest.mark.case("A44")
def test_an_overdue_renewal_is_made_first_and_then_the_stop_is_judged(night: TwoSessions) -> None:
    """Past due less the skew no wake could qualify: the stop itself renews, and a wake for the new time is enough."""
    first = night.ids()[0]
    held = night.hold(A, first, lease=3600)
    night.now = held.claimed_at + 1799
    night.reason(A)
    assert night.stored(first).claimed_at == held.claimed_at + 1799
    night.now = held.claimed_at + 1810
    assert night.stop(A, cron("21:50")) == {}


@pytest.mark.case("A32", "A34")
def test_the_earliest_renewal_due_in_this_copy_is_every_sessions_deadline(night: TwoSessions) -> None:
    """A peer's hold in the same checkout binds too; one in another checkout does not."""
    night.hold(A, "short", lease=2400, on_list=False)
    late, soon = cron("21:40"), cron("21:10")
    night.list.write_text("")
    assert night.reason(B, late)
    assert night.stop(B, soon) == {}
    store = night.store()
    (held,) = store.reservations()
    store.save_reservation(held.replace(copy="f" * 32))
    store.close()
    assert night.stop(B, late) == {}


def test_a_hold_that_only_its_stalled_holder_could_renew_binds_no_peer_for_ever(night: TwoSessions) -> None:
    """A goes silent past its renewal: B cannot renew for it, and its own wakes count again."""
    held = night.hold(A, "long", lease=14_400, on_list=False)
    night.list.write_text("")
    night.now = held.claimed_at + 7300
    assert night.stop(B, cron("23:30")) == {}


def test_the_hold_of_a_session_that_has_ended_binds_nobody_and_its_item_comes_first(night: TwoSessions) -> None:
    """A ended with an item in hand: it is offered to B before anything else, at once."""
    night.ledger("urgent", priority=0)
    mine = night.ledger("begun by A", priority=4, state="doing", assigned=A)
    night.hold(A, f"w{mine}", on_list=False)
    night.list.write_text("")
    night.send("session-end", session_id=A, reason="other")
    reason = night.reason(B, cron("21:30"))
    assert f"item w{mine}" in reason
    assert "urgent" not in reason


@pytest.mark.case("A107")
def test_after_a_clock_was_set_back_a_claim_is_renewed_within_half_its_lease_from_then(night: TwoSessions) -> None:
    """The claim lies in the future by the new clock: a peer's deadline counts from when it was first seen."""
    night.list.write_text("")
    night.now += 7200
    night.hold(A, "x", lease=7200, on_list=False)
    night.now -= 7200
    begun = night.now
    night.stop(B)
    assert night.stored("x", on_list=False).first_seen == begun
    assert night.reason(B, cron("22:40"))
    assert night.stop(B, cron("21:50")) == {}


# the ready queue


def test_ready_work_is_offered_once_before_a_session_may_wait(night: TwoSessions) -> None:
    """Nothing owed and a wake in time: first the head of the queue is named, once; then it may wait."""
    night.list.write_text("")
    number = night.ledger("tidy the cellar")
    reason = night.reason(A, cron("21:30"))
    assert f"item w{number}" in reason
    assert "tidy the cellar" in reason
    assert night.stop(A, cron("21:30")) == {}
    assert f"item w{number}" in night.reason(B, cron("21:30")), "offered to each session"
    night.ledger("more urgent", priority=0)
    assert "more urgent" in night.reason(A, cron("21:30")), "a new head is a new offer"


def test_ready_work_is_offered_beside_owed_work_that_cannot_move() -> None:
    """Row 3 would let it wait: the ready item is named instead of the stuck one."""
    ready = (Item(id="w1", title="tidy the docs"),)
    night = Night(*items("A"), ready=ready)
    night.stop(SOON)
    offered = night.stop(SOON)
    assert (offered.block, offered.rule) == (True, "away.ready_offered")
    assert "tidy the docs" in offered.reason
    assert night.stop(SOON).kind == "waiting"


def test_an_offer_is_no_change_no_progress_and_can_be_switched_off() -> None:
    """It counts as a block like any other; with the setting off the recorded rule holds."""
    ready = (Item(id="w1", title="tidy the docs"),)
    night = Night(ready=ready)
    offered = night.stop(SOON)
    assert offered.fingerprint == Night().stop(SOON).fingerprint
    assert offered.counters.blocks == 1
    assert Night(ready=ready, policy=Policy(offer_ready=False)).stop(SOON).kind == "waiting"


def test_past_a_bound_nothing_is_offered_to_a_session_that_may_wait() -> None:
    """A bound ends offers as well; a wake in time still lets it wait."""
    ready = (Item(id="w1", title="tidy the docs"),)
    night = Night(policy=Policy(blocks_without_tools=1), ready=())
    assert night.stop().block
    night.world = night.world.replace(ready=ready)
    assert night.stop(SOON).kind == "waiting"


def test_an_item_handed_back_is_released_and_the_ledger_says_so(night: TwoSessions) -> None:
    """Three looks without a change: the hold ends, the item is the person's, the next one is named."""
    stuck = night.ledger("stuck", state="doing", assigned=A)
    night.hold(A, f"w{stuck}", on_list=False)
    night.list.write_text("")
    for _ in range(4):
        night.stop(A, cron("21:40"))
        night.stop(A, cron("21:40"))
        night.send("prompt", session_id=A, prompt="look again")
    store = night.store()
    row, held = store.ledger_item(stuck), store.reservation(checkout.project_key(str(night.project)), f"w{stuck}")
    store.close()
    assert row is not None
    assert held is not None
    assert (row.state, held.released_at is not None) == ("handed_back", True)
    assert "item_handed_back" in night.lines()


def test_an_unread_tracker_is_said_and_never_taken_for_an_empty_queue() -> None:
    """What is ready there is not known; the reason says which."""
    verdict = Night(unread_ready=("github: did not answer within 20 s",)).stop()
    assert "not known" in verdict.reason
    assert "did not answer within 20 s" in verdict.reason


# what is owed beside the list


def test_begun_ledger_items_are_owed_after_the_list_and_before_nothing_else(night: TwoSessions) -> None:
    """The list first, then what is held, then what was begun; done in the ledger is done here."""
    held = night.ledger("held")
    begun = night.ledger("begun", state="doing", assigned=A)
    night.hold(A, f"w{held}", on_list=False)
    store = night.store()
    night.stop(A)
    verdict = store.verdicts()[-1]
    from stopwarden.store import journal

    assert journal.decode(verdict.body, store.snapshot)[4].owed == (*night.ids(), f"w{held}", f"w{begun}")
    store.close()


def test_a_ledger_item_begun_in_the_night_is_progress_once(night: TwoSessions) -> None:
    """Begun, then done: each counts when first reached, as on a list."""
    number = night.ledger("begun", state="open", assigned=A)
    for _ in range(3):
        night.stop(A)
    store = night.store()
    row = store.ledger_item(number)
    assert row is not None
    store.save_ledger_item(row.replace(state="doing", was="open", changed_at=night.now))
    night.stop(A)
    assert store.state(A).blocks == 1
    night.stop(A)
    assert store.state(A).blocks == 2
    store.save_ledger_item(row.replace(state="done", was="doing", changed_at=night.now))
    night.stop(A)
    assert store.state(A).blocks == 1
    store.close()


def test_a_hold_made_while_nobody_is_away_follows_its_item_through_an_edit(tmp_path: pathlib.Path) -> None:
    """The list is reworded afterwards, and the person leaves later still: the item keeps the id that is held."""
    night = TwoSessions(tmp_path, todo="- [ ] lexer\n- [ ] parser\n")
    assert night.types("reserve", "lexer", session=A) == 0
    night.list.write_text("- [ ] lexer, but quicker\n- [ ] parser\n")
    assert night.types("reserve", "lexer", session=B) == 3
    night.away()
    for session in (A, B):
        night.send("prompt", session_id=session, prompt="go on")
    assert '"parser"' in night.reason(B)
    assert "lexer, but quicker" not in night.reason(B).partition("Not for you now")[0]


# a program that died


def agent_program(night: TwoSessions, session: str, *, events: int = 2) -> subprocess.Popen[bytes]:
    """A process that starts our real hook for some events of its session and then sits there, as an agent program does."""
    payload = json.dumps(night.payload("UserPromptSubmit", session_id=session, prompt="go on"))
    hook = shlex.join([*hook_command(), "prompt", "--at", str(night.now)])
    script = (  # as a host does: through a shell that stays in between
        f"import subprocess, time\nfor _ in range({events}):\n"
        f"    subprocess.run(['/bin/sh', '-c', {hook + '; true'!r}], input={payload.encode()!r}, stdout=subprocess.DEVNULL)\n"
        "print('ready', flush=True)\ntime.sleep(600)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", script], env=night.env, cwd=night.project, stdout=subprocess.PIPE)
    assert program.stdout is not None
    assert program.stdout.readline() == b"ready\n"
    return program


@pytest.mark.slow
@pytest.mark.case("BR-145")
@pytest.mark.parametrize("away", [True, False])
def test_a_dead_program_on_this_machine_holds_nothing(away: bool, tmp_path: pathlib.Path) -> None:
    """Its lease has hours to go; once the process is killed the item is free at once, and not a moment before."""
    night = TwoSessions(tmp_path)
    if away:
        night.away()
    program = agent_program(night, A)
    try:
        assert night.types("reserve", "A", session=A) == 0
        assert night.types("reserve", "A", session=B) == 3
        program.kill()
        program.wait()
        assert night.types("reserve", "A", session=B) == 0
        assert "replaces" in night.said
    finally:
        program.kill()
        program.wait()
        assert program.stdout is not None
        program.stdout.close()


@pytest.mark.slow
def test_a_process_that_was_seen_once_is_not_taken_for_the_program(tmp_path: pathlib.Path) -> None:
    """It may have been a shell around the hook: its end says nothing of the session."""
    night = TwoSessions(tmp_path)
    program = agent_program(night, A, events=1)
    program.kill()
    program.wait()
    assert program.stdout is not None
    program.stdout.close()
    assert night.types("reserve", "A", session=A) == 0
    assert night.types("reserve", "A", session=B) == 3


def test_a_session_that_goes_on_in_a_new_process_is_alive(night: TwoSessions) -> None:
    """Resumed elsewhere: the pid that is gone was the old program's, and the next event names the new one."""
    first = night.ids()[0]
    night.hold(A, first)
    store = night.store()
    row = store.session(A)
    assert row is not None
    store.save_session(row.replace(program=4_000_000, program_started="1", program_seen=1))
    assert not reservations.is_gone(store, night.stored(first)), "seen once: it may have been a shell"
    store.save_session(row.replace(program=4_000_000, program_started="1", program_seen=2))
    assert reservations.is_gone(store, night.stored(first))
    resumed = night.payload("UserPromptSubmit", session_id=A, prompt="go on")
    assert night.run("prompt", resumed).returncode == 0  # as the child of a program, which is no shell
    assert not reservations.is_gone(store, night.stored(first))
    store.close()


def test_what_another_finished_in_a_checkout_of_its_own_is_looked_for_before_it_is_done_again() -> None:
    """The list here still shows it open, in a worktree the other's tick may not have come yet."""
    finished = Reservation(
        item="A", session="s2", copy="c2", claimed_at=NIGHT - 60, expires_at=NIGHT + 60, released_at=NIGHT - 5, terminal=True
    )  # fmt: skip
    reason = Night(*items("A"), reservations=(finished,)).stop().reason
    assert "At 20:59 session s2 finished it: see first whether it is there already" in reason
    assert "see first" not in Night(*items("A"), reservations=(finished.replace(session="s1"),)).stop().reason


@pytest.mark.case("A143")
def test_the_report_tells_who_had_an_item_and_who_left_it_alone(night: TwoSessions) -> None:
    """The morning's account shows why the peer went on with other work."""
    assert night.types("start", "A", session=A) == 0
    night.reason(B)
    assert night.types("start", "B", session=B) == 0
    assert night.types("done", "B", session=B) == 0
    night.reason(B)
    night.now = at("2026-12-01 07:40")
    assert night.types("report", "--verbose") == 0
    names = " ".join(night.said.split())
    assert re.search(r"held by 5d0c\S*", names)
    assert re.search(r"left alone by 5d0c\S*, since 5d0c\S* had it", names)
    assert re.search(r"given back by 5d0c\S*, done", names)
