"""What a session may owe beside its lists, and what it may take: holds, the ledger, other trackers."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import pytest

from stopwarden.core.bounds import READY_SHOWN
from stopwarden.core.events import Item, Reservation
from stopwarden.store.memory import MemoryStore
from stopwarden.store.port import LedgerItem, SessionRow, TrackedItem, Tracker
from stopwarden.work import checkout
from stopwarden.work.ready import OtherWork, ledger_number, other_work
from tests.support.stops import NIGHT

SINCE = NIGHT - 3600
MINE, PEER = "s1", "s2"


class Bench:
    """A checkout with a list, a store in memory, and the session s1 in it."""

    def __init__(self, tmp_path: pathlib.Path) -> None:
        self.root = tmp_path / "repo"
        (self.root / ".git").mkdir(parents=True)
        (self.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        self.store = MemoryStore()
        self.row = SessionRow(id=MINE, root=str(self.root), copy="c")
        self.project = checkout.project_key(str(self.root))
        self.lists: dict[str, Sequence[Item]] = {}

    def hold(self, item: str, session: str = MINE, **fields: Any) -> Reservation:
        """A live hold of two hours, made a minute ago, in the project unless said otherwise."""
        held = Reservation(
            **{
                "item": item,
                "session": session,
                "copy": "c",
                "place": self.project,
                "project": self.project,
                "claimed_at": NIGHT - 60,
                "expires_at": NIGHT + 7140,
                "lease": 7200,
                "token": 1,
                "granted_at": NIGHT - 60,
                **fields,
            }
        )
        self.store.save_reservation(held)
        return held

    def add(self, title: str, **fields: Any) -> str:
        """One more item in the ledger, older than the period unless said otherwise; its id."""
        made = {"project": self.project, "title": title, "created_at": SINCE - 100, "changed_at": SINCE - 100}
        return f"w{self.store.add_ledger_item(LedgerItem(**{**made, **fields}))}"

    def track(self, *items: TrackedItem, name: str = "gh", **fields: Any) -> None:
        """A tracker that has answered, with these items."""
        self.store.save_tracker(
            Tracker(**{"project": self.project, "name": name, "kind": "gh", "read_at": NIGHT, **fields})
        )
        self.store.replace_tracked(self.project, name, items)

    def list(self, name: str, *ids: str) -> str:
        """A list in the checkout that the session works from; its path."""
        path = str(self.root / name)
        self.lists[path] = [Item(id=one, title=one) for one in ids]
        return path

    def look(self, now: int = NIGHT) -> OtherWork:
        """What the session is told now."""
        return other_work(self.store, self.row, SINCE, self.lists, now)

    def ready(self) -> list[str]:
        """The ids of the ready queue."""
        return [item.id for item in self.look().ready]


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Bench:
    return Bench(tmp_path)


def tracked(known: str, **fields: Any) -> TrackedItem:
    return TrackedItem(**{"project": "", "tracker": "gh", "id": known, "title": known, "created_at": SINCE, **fields})


# what is owed


def test_held_items_come_before_lapsed_ones_and_both_before_what_was_begun(bench: Bench) -> None:
    """The order of the owed set after the lists."""
    begun = bench.add("begun", state="doing", assigned=MINE)
    bench.hold("late", expires_at=NIGHT - 1)
    bench.hold("held")
    assert [item.id for item in bench.look().items] == ["held", "late", begun]


def test_a_hold_on_an_item_of_its_own_list_adds_no_second_item(bench: Bench) -> None:
    """The list has it already; the hold is there under the same id."""
    path = bench.list("TODO.md", "a3f")
    bench.hold("a3f", place=checkout.place_of_list(path)[1])
    seen = bench.look()
    assert seen.items == ()
    assert [held.item for held in seen.reservations] == ["a3f"]


def test_a_hold_on_the_second_list_has_the_id_the_session_knows(bench: Bench) -> None:
    """Two lists had the same id, so the second's is written with a number before it."""
    bench.list("TODO.md", "a3f")
    path = bench.list("LATER.md", "2.a3f")
    bench.hold("a3f", PEER, place=checkout.place_of_list(path)[1])
    assert [held.item for held in bench.look().reservations] == ["2.a3f"]


def test_a_hold_on_a_list_that_is_not_the_sessions_is_named_with_the_list(bench: Bench) -> None:
    """An id alone could be mistaken for one of its own list."""
    bench.list("TODO.md", "a3f")
    bench.hold("a3f", place=f"{bench.project} docs/PLAN.md", title="write the plan")
    seen = bench.look()
    assert [held.item for held in seen.reservations] == ["docs/PLAN.md#a3f"]
    assert [(item.id, item.title) for item in seen.items] == [("docs/PLAN.md#a3f", "write the plan")]
    assert [(name, held.item) for name, held in seen.own] == [("docs/PLAN.md#a3f", "a3f")]


def test_a_released_hold_is_over_and_a_finished_free_name_is_done(bench: Bench) -> None:
    """Released: nothing is owed. Finished in this period: done, which is progress. Finished before: the past."""
    bench.hold("let-go", released_at=NIGHT - 5)
    bench.hold("finished", released_at=NIGHT - 5, terminal=True)
    bench.hold("long-ago", released_at=SINCE - 1, terminal=True)
    seen = bench.look()
    assert [(item.id, item.state, item.before) for item in seen.items] == [("finished", "done", "open")]
    assert [held.item for held in seen.reservations] == ["finished"]
    assert seen.own == ()


def test_a_held_ledger_item_stands_as_the_ledger_says(bench: Bench) -> None:
    """Its state, title, reason of waiting and proof are the ledger's; who is waited for too."""
    known = bench.add("deploy", state="waiting", waits_on="external", why="the build", changed_at=SINCE - 1)
    bench.hold(known)
    proved = bench.add("test", state="done", assigned=MINE, verified_at=NIGHT, was="doing", changed_at=NIGHT)
    waiting, done = bench.look().items
    assert (waiting.state, waiting.before, waiting.waits_on, waiting.why) == (
        "waiting",
        "waiting",
        "external",
        "the build",
    )
    assert (done.id, done.state, done.before, done.verified) == (proved, "done", "doing", True)


def test_how_an_item_stood_when_the_person_left_is_told_by_when_it_last_changed(bench: Bench) -> None:
    """Changed since: as it was before the change, new ones open. Not changed since: as it is."""
    fresh = bench.add("fresh", state="open", assigned=MINE, changed_at=SINCE)
    parked = bench.add("parked", state="waiting", waits_on="person", was="doing", assigned=MINE, changed_at=SINCE)
    old = bench.add("old", state="doing", was="open", assigned=MINE, changed_at=SINCE - 1)
    assert {item.id: (item.state, item.before, item.waits_on) for item in bench.look().items} == {
        fresh: ("open", "open", None),
        parked: ("waiting", "doing", "person"),
        old: ("doing", "doing", None),
    }


def test_what_was_finished_or_dropped_before_the_person_left_is_not_looked_at(bench: Bench) -> None:
    """Weeks of finished items are no part of a night; what was finished in it is."""
    for state in ("done", "dropped", "handed_back"):
        bench.add("past", state=state, assigned=MINE, changed_at=SINCE - 1)
    tonight = bench.add("tonight", state="dropped", was="doing", assigned=MINE, changed_at=SINCE)
    assert [item.id for item in bench.look().items] == [tonight]


# who is in the way, and for how long


def test_holds_of_sessions_that_have_ended_are_left_out_and_their_items_come_first(bench: Bench) -> None:
    """Whatever the lease says: nobody comes back to it, in whichever copy."""
    urgent = bench.add("urgent", priority=0)
    begun = bench.add("begun", state="doing", assigned=PEER, priority=4)
    bench.hold(begun, PEER, copy="other")
    bench.store.save_session(SessionRow(id=PEER, ended_at=NIGHT - 60))
    seen = bench.look()
    assert seen.reservations == ()
    assert [item.id for item in seen.ready] == [begun, urgent]
    bench.store.save_session(SessionRow(id=PEER, ended_at=NIGHT - 61))
    assert len(bench.look().reservations) == 1, "it came back and claimed since"


def test_a_stalled_holder_of_this_copy_leaves_its_item_first_in_the_queue(bench: Bench) -> None:
    """Its lease ran out: once the margin is over this copy's other sessions take it up; another copy's stays its own."""
    bench.add("new", priority=0)
    mine = bench.add("stalled here", state="doing", assigned=PEER)
    other = bench.add("stalled elsewhere", state="doing", assigned=PEER)
    bench.hold(mine, PEER, expires_at=NIGHT - 300)
    bench.hold(other, PEER, copy="other", expires_at=NIGHT - 300)
    assert bench.ready() == [mine, "w1"]


def test_what_a_stalled_session_left_finished_or_on_its_own_list_is_not_offered(bench: Bench) -> None:
    """Done is done; and what stands on a list of this session's is owed from there."""
    path = bench.list("TODO.md", "a3f")
    done = bench.add("done", state="done", assigned=PEER)
    bench.hold(done, PEER, expires_at=NIGHT - 300)
    bench.hold("a3f", PEER, expires_at=NIGHT - 300, place=checkout.place_of_list(path)[1])
    bench.hold("own", MINE, expires_at=NIGHT - 300)
    bench.hold("persons", "", expires_at=None)
    assert bench.ready() == []


def test_holds_of_this_copy_in_another_project_are_known_too(bench: Bench) -> None:
    """A list that lies elsewhere: the hold binds this copy's deadline, under a name that cannot be mistaken."""
    bench.hold("x", PEER, place="/other/.git", project="/other/.git")
    assert [held.item for held in bench.look().reservations] == ["/other/.git#x"]


def test_a_claim_from_the_future_is_dated_once(bench: Bench) -> None:
    """A clock set back: first sight is stored and stays; present claims and released ones are left alone."""
    bench.hold("future", PEER, claimed_at=NIGHT + 1)
    bench.hold("present", PEER, claimed_at=NIGHT)
    bench.hold("over", PEER, claimed_at=NIGHT + 1, released_at=NIGHT, terminal=True)
    bench.look()
    bench.look(NIGHT + 1)
    stored = {held.item: held.first_seen for held in bench.store.reservations(released=True)}
    assert stored == {"future": NIGHT, "present": None, "over": None}


# the ready queue


@pytest.mark.case("A138")
def test_ledger_and_trackers_share_one_queue_by_priority_then_age(bench: Bench) -> None:
    """Urgent before old, old before new, wherever it stands."""
    second = bench.add("b", priority=1, created_at=30)
    last = bench.add("d", priority=3, created_at=10)
    bench.track(tracked("gh-1", priority=1, created_at=20), tracked("gh-2", priority=1, created_at=40))
    assert bench.ready() == ["gh-1", second, "gh-2", last]


def test_what_is_blocked_begun_finished_or_owed_already_is_not_ready(bench: Bench) -> None:
    """Only open items that nobody has, that need nothing and that were not just finished."""
    need = bench.add("first")
    bench.add("after it", needs=(int(need[1:]),))
    bench.add("begun", state="doing")
    held = bench.add("held by me")
    bench.hold(held)
    bench.track(tracked("gh-1", blocked=True), tracked("gh-2", state="done"), tracked("gh-3"), tracked("gh-4"))
    bench.hold("gh-3", PEER, released_at=NIGHT, terminal=True)
    assert bench.ready() == ["gh-4", need] or bench.ready() == [need, "gh-4"]


def test_taken_items_never_hide_the_free_ones_behind_them(bench: Bench) -> None:
    """However many others hold: as many free items are seen as ever, and some of the held, to be named."""
    ids = [bench.add(f"item {number}", created_at=number) for number in range(3 * READY_SHOWN)]
    for known in ids[: READY_SHOWN + 5]:
        bench.hold(known, PEER)
    ready = bench.ready()
    free = [known for known in ready if known in ids[READY_SHOWN + 5 :]]
    assert free == ids[READY_SHOWN + 5 : 2 * READY_SHOWN + 5]
    assert len(ready) - len(free) == READY_SHOWN
    assert ready == sorted(ready, key=ids.index)


def test_own_holds_do_not_count_as_taken_by_others(bench: Bench) -> None:
    """Ten of mine at the head: the queue still shows as many free ones as it may."""
    ids = [bench.add(f"item {number}", created_at=number) for number in range(2 * READY_SHOWN)]
    for known in ids[:10]:
        bench.hold(known)
    assert bench.ready() == ids[10 : 10 + READY_SHOWN]


def test_a_tracker_that_did_not_answer_is_unknown_and_what_it_said_before_stands(bench: Bench) -> None:
    """Never read, or failed since: named with why. One that answered is known."""
    bench.track(tracked("gh-1"))
    bench.track(tracked("bd-1", tracker="bd"), name="bd", failed_at=NIGHT, why="did not answer")
    bench.track(name="new", read_at=None)
    assert bench.look().unread == ("bd: did not answer", "new: never read yet")
    assert bench.ready() == ["bd-1", "gh-1"]


def test_without_a_checkout_there_is_no_queue(bench: Bench) -> None:
    """A session whose directory is not known owes what it holds and no more."""
    bench.add("x")
    bench.row = bench.row.replace(root="", copy="")
    bench.hold("mine", copy="")
    assert bench.look().ready == ()


@pytest.mark.parametrize(
    ("known", "number"),
    [("w12", 12), ("w", None), ("x12", None), ("w1a", None), ("w²", None), ("w" + "9" * 16, None), ("", None)],
)
def test_a_ledger_id_is_w_and_a_number(known: str, number: int | None) -> None:
    """Nothing else is taken for one."""
    assert ledger_number(known) == number
