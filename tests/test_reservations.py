"""Reservations: who may hold an item, until when, and what two sessions in one repository are told."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib

import apsw
import pytest

from stopwarden.core import leases
from stopwarden.core import reservations as rules
from stopwarden.core.bounds import DAY, HOUR, LEASE_MAX, MINUTE, RESERVATIONS_MAX, TAKE_OVER_MARGIN
from stopwarden.core.errors import UsageError
from stopwarden.core.events import Reservation
from stopwarden.core.reservations import Claim, Denied, Granted
from stopwarden.hook import run
from stopwarden.store.port import LedgerItem, TrackedItem
from stopwarden.work import checkout, reservations
from tests.support.night import SESSION, HookNight
from tests.support.person import Person

ONE, TWO = "5d0c7a52-0000-4000-8000-000000000001", "7e15aaaa-0000-4000-8000-000000000002"
LIST = "- [ ] write the lexer\n- [ ] write the parser\n- [x] begin\n"
NOW = 1_000_000


class Repository(Person):
    """A person and sessions in one repository with a list; `as_session` types as an agent's shell would."""

    def as_session(self, session: str, *words: str, cwd: pathlib.Path | None = None) -> int:
        """Runs a command in that session's shell."""
        kept, self.env = self.env, {**self.env, "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session}
        there, self.cwd = self.cwd, cwd or self.cwd
        try:
            return self.types(*words)
        finally:
            self.env, self.cwd = kept, there

    def worktree(self, name: str = "other") -> pathlib.Path:
        """Another checkout of the same repository."""
        own = self.repo / ".git" / "worktrees" / name
        own.mkdir(parents=True)
        (own / "HEAD").write_text("ref: refs/heads/other\n", encoding="ascii")
        (own / "commondir").write_text("../..\n", encoding="ascii")
        root = self.repo.parent / name
        root.mkdir()
        (root / ".git").write_text(f"gitdir: {own}\n", encoding="ascii")
        (root / "TODO.md").write_text(LIST, encoding="utf-8")
        return root

    def holds(self) -> list[Reservation]:
        """Every reservation there ever was."""
        with self.store() as store:
            return store.reservations(released=True)

    def hold(self, item: str) -> Reservation:
        """That item's reservation."""
        (found,) = [held for held in self.holds() if held.item == item]
        return found

    def told(self) -> dict[str, object]:
        """The answer in JSON."""
        return dict(json.loads(self.said))

    def signs(self) -> list[str]:
        """The sessions that have a sign."""
        try:
            return sorted(os.listdir(f"{self.state_dir}/held"))
        except FileNotFoundError:
            return []


@pytest.fixture
def repo(tmp_path: pathlib.Path) -> Repository:
    made = Repository(tmp_path)
    made.list(LIST)
    return made


def ask(item: str = "i1", session: str = "a", **more: object) -> Claim:
    known = {"place": "p", "project": "p", "copy": "here", "lease": 2 * HOUR}
    return Claim(**{**known, "item": item, "session": session, **more})  # type: ignore[arg-type]


def held(item: str = "i1", session: str = "a", at: int = NOW, **more: object) -> Reservation:
    done = rules.claim(ask(item, session, **more), None, [], at)
    assert isinstance(done, Granted)
    return done.row


# --- the rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [TAKE_OVER_MARGIN - 1, TAKE_OVER_MARGIN])
@pytest.mark.case("A117")
def test_what_lapsed_is_kept_for_its_holder_for_five_minutes(late: int) -> None:
    """4 min 59 s after its expiry another is refused and told from when on; at 5 min it is granted the next token."""
    before = held()
    now = NOW + 2 * HOUR + late
    done = rules.claim(ask(session="b"), before, [], now)
    if late < TAKE_OVER_MARGIN:
        assert done == Denied(why="margin", by=(before,), until=now + 1)
        assert isinstance(rules.claim(ask(session="a"), before, [], now), Granted)
    else:
        assert isinstance(done, Granted)
        assert (done.how, done.replaced, done.row.token) == ("took_over", before, 2)
        assert done.row.taken_from == "a"


@pytest.mark.case("A128")
@pytest.mark.parametrize("at, how", [(HOUR - 1, "not_yet"), (HOUR, "renewed"), (2 * HOUR - 1, "renewed")])
def test_a_renewal_is_due_at_half_the_lease(at: int, how: str) -> None:
    """One second before it nothing is written; from then on the lease runs anew, under the same token."""
    done = rules.renew(held(), "a", NOW + at)
    assert isinstance(done, Granted)
    assert done.how == how
    assert done.row.token == 1
    assert done.row.expires_at == NOW + 2 * HOUR + (at if how == "renewed" else 0)


@pytest.mark.case("A128")
def test_an_event_of_the_holder_renews_from_half_the_lease_on() -> None:
    """What its own tools and prompts do: nothing just under half, everything due from then on, nothing once lapsed."""
    early, late = held("i1"), held("i2", at=NOW + MINUTE)
    assert reservations.renew_own([early, late], NOW + HOUR - 1) == []
    (renewed,) = reservations.renew_own([early, late], NOW + HOUR)
    assert (renewed.item, renewed.claimed_at, renewed.token) == ("i1", NOW + HOUR, 1)
    assert reservations.renew_own([early], NOW + 2 * HOUR) == []
    assert reservations.renew_own([held(session="")], NOW + DAY) == []


@pytest.mark.case("A129")
def test_the_fence_refuses_who_lost_the_item() -> None:
    """Another's now, taken over, given back, lapsed, in another copy, an older token: none of these may write."""
    mine = held()
    later = NOW + HOUR
    other = rules.claim(ask(session="b"), mine, [], NOW + 3 * HOUR)
    assert isinstance(other, Granted)
    assert rules.fence(mine, "a", later, token=1, copy="here") is None
    refused = {
        "held": rules.fence(other.row, "a", NOW + 3 * HOUR),
        "fence": rules.fence(other.row, "a", NOW + 3 * HOUR, token=1),
        "not_held": rules.fence(mine.replace(released_at=NOW), "a", later, token=1),
        "lapsed": rules.fence(mine, "a", NOW + 2 * HOUR, token=1),
        "elsewhere": rules.fence(mine, "a", later, token=1, copy="there"),
    }
    assert {name: denied and denied.why for name, denied in refused.items()} == {name: name for name in refused}
    assert rules.fence(other.row, "b", NOW + 3 * HOUR, token=2) is None


def test_what_nobody_holds_may_be_written_and_what_the_person_holds_not() -> None:
    """Holds are no duty: an item nobody reserved, or that lapsed past the margin, is open to all; the person's is not."""
    assert rules.fence(None, "a", NOW) is None
    assert rules.fence(held(), "b", NOW + 2 * HOUR + TAKE_OVER_MARGIN) is None
    assert rules.fence(held(), "b", NOW + 2 * HOUR + TAKE_OVER_MARGIN - 1) is not None
    assert rules.fence(held(session=""), "b", NOW + 30 * DAY) is not None
    assert rules.fence(held(), "", NOW) is None, "the person may write where sessions hold"


@pytest.mark.case("A126")
def test_the_eleventh_live_hold_is_refused_and_names_the_ten() -> None:
    """Ten are enough for one session; a renewal is never refused for that, and neither is the person."""
    ten = [held(f"i{number}") for number in range(RESERVATIONS_MAX)]
    done = rules.claim(ask("i10"), None, ten, NOW)
    assert done == Denied(why="too_many", by=tuple(ten))
    again = rules.claim(ask("i3"), ten[3], ten, NOW + HOUR)
    assert isinstance(again, Granted)
    assert again.how == "renewed"
    over = [one.replace(released_at=NOW) for one in ten[:1]] + ten[1:]
    assert isinstance(rules.claim(ask("i10"), None, over, NOW), Granted)
    assert isinstance(rules.claim(ask("i10"), None, ten, NOW + 2 * HOUR), Granted), "lapsed ones do not count"
    assert isinstance(rules.claim(ask("i10", ""), None, [held(f"i{n}", "") for n in range(20)], NOW), Granted)


@pytest.mark.case("A127")
@pytest.mark.parametrize(
    "one, other, overlaps",
    [
        ("src/a.py", "src/a.py", True),
        ("src", "src/a/b.py", True),
        ("src/a/b.py", "src", True),
        (".", "anything", True),
        ("./src//a", "src/a", True),
        ("a/b", "a/bc", False),
        ("a/bc", "a/b", False),
        ("src/a", "src/b", False),
        ("a", "A", False),
    ],
)
def test_footprints_overlap_by_path_and_by_directory_and_not_by_spelling(one: str, other: str, overlaps: bool) -> None:
    """The same path or one below it is refused to another session, in whichever copy; `a/bc` is not below `a/b`."""
    there = held("i1", footprint=rules.footprint_of([one]))
    for copy in ("here", "there"):
        done = rules.claim(ask("i2", "b", copy=copy, footprint=rules.footprint_of([other])), None, [there], NOW)
        assert isinstance(done, Denied if overlaps else Granted)
        if isinstance(done, Denied):
            assert (done.why, done.by, done.until) == ("footprint", (there,), NOW + 2 * HOUR)


def test_a_footprint_is_in_the_way_of_others_only_while_it_is_held() -> None:
    """Not of the same session in its copy; not once released, or past lease and margin; not in another project."""
    there = held("i1", footprint=("src",))
    wanted = ask("i2", "b", footprint=("src/a",))
    assert isinstance(rules.claim(ask("i2", "a", footprint=("src/a",)), None, [there], NOW), Granted)
    assert isinstance(rules.claim(wanted, None, [there.replace(released_at=NOW)], NOW), Granted)
    free = NOW + 2 * HOUR + TAKE_OVER_MARGIN
    assert isinstance(rules.claim(wanted, None, [there], free - 1), Denied)
    assert isinstance(rules.claim(wanted, None, [there], free), Granted)
    assert isinstance(rules.claim(wanted.replace(project="q", place="q"), None, [there], NOW), Granted)


def test_a_lapsed_hold_that_is_claimed_again_keeps_its_footprint_only_if_it_is_still_free() -> None:
    """Another got the same directory meanwhile: whoever comes back without naming paths is refused like a newcomer."""
    mine = held("i1", footprint=("src",))
    free = NOW + 2 * HOUR + TAKE_OVER_MARGIN
    other = rules.claim(ask("i2", "b", footprint=("src",)), None, [mine], free)
    assert isinstance(other, Granted)
    assert isinstance(rules.claim(ask("i1"), mine, [other.row], free), Denied)
    again = rules.claim(ask("i1"), mine, [], free)
    assert isinstance(again, Granted)
    assert (again.how, again.row.footprint, again.row.token) == ("again", ("src",), 2)


@pytest.mark.case("A122")
@pytest.mark.parametrize(
    "path, why",
    [("", "empty"), ("  ", "empty"), ("/etc/passwd", "absolute"), ("a/../../b", ".."), ("..", ".."), ("a\nb", "line"),
     ("a\0b", "NUL"), ("x" * 401, "longer")],
)  # fmt: skip
def test_a_footprint_outside_the_checkout_is_refused(path: str, why: str) -> None:
    """Absolute, with `..`, empty, with a line break or without end: refused before anything is reserved."""
    with pytest.raises(UsageError, match=r"Nothing was reserved"):
        rules.footprint_of(["fine", path])
    assert why


@pytest.mark.case("A122")
def test_shell_characters_in_a_footprint_are_kept_as_they_are() -> None:
    """Nothing is run, nothing is expanded, nothing is quoted: what was named is what is stored."""
    odd = ["$(rm -rf ~)", "a;b && c | d", "*.py", "`id`", "it's", '"q"', "--all", "naïve/ü", "a b/c"]
    assert rules.footprint_of(odd) == tuple(odd)
    with pytest.raises(UsageError, match="too many"):
        rules.footprint_of([f"f{number}" for number in range(101)])


@pytest.mark.case("BR-142")
def test_what_the_person_holds_never_lapses() -> None:
    """A month later it is still theirs, and no session can take it, whatever it says."""
    theirs = held(session="")
    assert theirs.expires_at is None
    for take_over in (False, True):
        done = rules.claim(ask(session="b", take_over=take_over), theirs, [], NOW + 30 * DAY)
        assert done == Denied(why="held", by=(theirs,), until=None)


def test_a_session_moves_its_own_hold_and_never_takes_anothers() -> None:
    """`take_over` is for one's own hold in another copy; what another holds needs the person's word besides."""
    mine = held(copy="there")
    assert rules.claim(ask(), mine, [], NOW) == Denied(why="elsewhere", by=(mine,), until=mine.expires_at)
    moved = rules.claim(ask(take_over=True), mine, [], NOW)
    assert isinstance(moved, Granted)
    assert (moved.how, moved.row.copy, moved.row.token, moved.replaced) == ("moved", "here", 2, mine)
    assert moved.row.taken_from == ""
    for late in (0, 2 * HOUR):
        refused = rules.claim(ask(session="b", take_over=True), mine, [], NOW + late)
        assert isinstance(refused, Denied)
        taken = rules.claim(ask(session="b", take_over=True, from_others=True), mine, [], NOW + late)
        assert isinstance(taken, Granted)


@pytest.mark.case("A107")
def test_a_clock_set_back_does_not_let_a_dead_hold_live_longer() -> None:
    """Two hours back, seen then: it lapses one lease after that, not when the clock is where it was."""
    seen = held().replace(first_seen=NOW - 2 * HOUR)
    assert leases.is_live(seen, NOW - 1)
    assert not leases.is_live(held(at=NOW + DAY).replace(first_seen=NOW - 2 * HOUR), NOW)
    assert leases.is_live(held(at=NOW + DAY).replace(first_seen=NOW - 2 * HOUR), NOW - 1)
    assert leases.is_live(seen, NOW + 2 * HOUR - 1), "the clock is right again: the plain rule holds"


# --- two sessions, one repository -----------------------------------------------------------------


@pytest.mark.case("A113")
def test_what_another_session_holds_is_refused_with_its_name_and_until_when(repo: Repository) -> None:
    """Exit 3: who, until when by the local clock, and other work instead of trying again; nothing has changed."""
    repo.save(repo.session(ONE, title="the lexer's"))
    assert repo.as_session(ONE, "reserve", "write", "the", "lexer") == 0
    before = repo.holds()
    assert repo.as_session(TWO, "reserve", "write the lexer") == 3
    assert 'held by 5d0c "the lexer\'s" until Tue 01:05 (Europe/London)' in repo.complained
    assert "Take other work" in repo.complained
    assert "do not try again in a loop" in repo.complained
    assert repo.said == ""
    assert repo.holds() == before
    assert repo.as_session(TWO, "reserve", "write the lexer", "--json") == 3
    told = repo.told()
    assert (told["done"], told["why"], told["until"]) == (False, "held", "2026-12-01T01:05:00Z")


@pytest.mark.case("A114")
def test_who_loses_a_race_is_told_the_winner_and_leaves_no_trace(repo: Repository) -> None:
    """It saw the item free; another was quicker: exit 3 naming the winner, and neither row, sign nor record of its own."""
    repo.away_since()
    repo.save(repo.session(ONE))
    repo.as_session(TWO, "peers")
    assert "Nothing is reserved" in repo.said
    assert repo.as_session(ONE, "reserve", "write the lexer") == 0
    with repo.store() as store:
        lines = store.lines()
    assert repo.as_session(TWO, "reserve", "write the lexer") == 3
    assert "5d0c" in repo.complained
    assert [one.session for one in repo.holds()] == [ONE]
    assert repo.signs() == [ONE]
    with repo.store() as store:
        assert store.lines() == lines


@pytest.mark.case("A115")
def test_a_new_session_in_the_same_checkout_goes_on_where_the_ended_one_left(repo: Repository) -> None:
    """The holder's session ended: the next one has the item at once, with the next token, and is told whose it was."""
    repo.save(repo.session(ONE))
    repo.as_session(ONE, "reserve", "write the lexer")
    repo.now += 60
    repo.spools("session-end", ONE, why="prompt_input_exit")
    repo.now += 10
    assert repo.as_session(TWO, "reserve", "write the lexer") == 0
    assert "It replaces the hold of 5d0c in this checkout: its session has ended, or its program died." in repo.said
    (row,) = repo.holds()
    assert (row.session, row.token, row.taken_from) == (TWO, 2, ONE)
    assert repo.signs() == [TWO]


@pytest.mark.case("A116")
def test_my_other_checkout_is_named_and_the_hold_moves_only_on_request(repo: Repository) -> None:
    """Reserved in one worktree, wanted in another: exit 3 with where and until when; with --take-over it moves here."""
    there = repo.worktree()
    assert repo.as_session(ONE, "reserve", "issue-42") == 0
    assert repo.as_session(ONE, "reserve", "issue-42", cwd=there) == 3
    assert f"issue-42 is being worked on in another checkout, {repo.root}, until Tue 01:05" in repo.complained
    assert repo.hold("issue-42").token == 1
    assert repo.as_session(ONE, "reserve", "issue-42", "--take-over", cwd=there) == 0
    assert "Moved here: issue-42" in repo.said
    assert f"It replaces your hold in another checkout, {repo.root}." in repo.said
    row = repo.hold("issue-42")
    assert (row.token, row.root, row.session) == (2, os.path.realpath(there), ONE)


@pytest.mark.case("A116")
def test_what_another_holds_now_is_taken_over_by_the_person_alone(repo: Repository) -> None:
    """Inside an agent --take-over of a live hold is refused; typed by the person it names what it replaced."""
    repo.as_session(ONE, "reserve", "issue-42")
    assert repo.as_session(TWO, "reserve", "issue-42", "--take-over") == 2
    assert "Only the person may take over what another holds" in repo.complained
    assert repo.hold("issue-42").session == ONE
    assert repo.types("reserve", "issue-42") == 3
    assert repo.types("reserve", "issue-42", "--take-over") == 0
    assert "Reserved for you: issue-42, until you release it (token 2)" in repo.said
    assert "It replaces the hold of 5d0c7a52 in this checkout: taken over while held" in repo.said
    assert repo.signs() == []


@pytest.mark.case("A117")
def test_a_take_over_after_the_margin_names_what_it_replaced(repo: Repository) -> None:
    """4 min 59 s after it lapsed: exit 3 with the time to come back at; one second later it is granted."""
    repo.as_session(ONE, "reserve", "issue-42", "--lease", "90m")
    repo.now += 90 * MINUTE + TAKE_OVER_MARGIN - 1
    assert repo.as_session(TWO, "reserve", "issue-42") == 3
    assert "lapsed at 00:35; it is kept for them until 00:40 (Europe/London)" in repo.complained
    assert "Take other work, or try once more at 00:40" in repo.complained
    repo.now += 1
    assert repo.as_session(TWO, "reserve", "issue-42") == 0
    assert "It replaces the hold of 5d0c7a52 in this checkout: it lapsed at 00:35." in repo.said


@pytest.mark.case("A119")
def test_what_is_given_back_is_kept_as_released_and_giving_it_back_again_is_fine(repo: Repository) -> None:
    """No row goes, so no token comes again; a second release is exit 0 and changes nothing."""
    repo.as_session(ONE, "reserve", "issue-42")
    repo.now += 60
    assert repo.as_session(ONE, "release", "issue-42") == 0
    assert "Given back: issue-42" in repo.said
    row = repo.hold("issue-42")
    assert row.released_at == repo.now
    assert repo.signs() == []
    repo.now += 60
    assert repo.as_session(ONE, "release", "issue-42") == 0
    assert "Given back already" in repo.said
    assert repo.hold("issue-42") == row
    assert repo.as_session(TWO, "reserve", "issue-42", "--json") == 0
    assert (repo.told()["token"], repo.told()["how"]) == (2, "new")


@pytest.mark.case("A120")
def test_only_the_holder_gives_back_and_only_in_its_checkout(repo: Repository) -> None:
    """Another session, the person, and the holder in another worktree are refused with exit 2; the hold stays."""
    there = repo.worktree()
    repo.as_session(ONE, "reserve", "issue-42")
    before = repo.holds()
    assert repo.as_session(TWO, "release", "issue-42") == 2
    assert "held by 5d0c7a52" in repo.complained
    assert repo.types("release", "issue-42") == 2
    assert repo.as_session(ONE, "release", "issue-42", cwd=there) == 2
    assert "in another checkout" in repo.complained
    assert repo.as_session(ONE, "release", "issue-42", "--token", "2") == 2
    assert repo.as_session(ONE, "release", "never") == 2
    assert "never is not reserved" in repo.complained
    assert repo.holds() == before


@pytest.mark.case("A121")
def test_an_item_that_is_done_is_free_whatever_the_lease(repo: Repository) -> None:
    """Finished, its hold is over: it is nobody's deadline, its files are free, and it cannot be reserved again."""
    repo.as_session(ONE, "reserve", "write the lexer", "--footprint", "src")
    assert repo.as_session(TWO, "reserve", "write the parser", "--footprint", "src/p.py") == 3
    (row,) = repo.holds()
    with repo.store() as store:
        done = reservations.release(store, row.place, row.item, ONE, lambda: repo.now, done=True)
    assert isinstance(done, Granted)
    assert done.row.terminal
    assert not leases.is_live(done.row, repo.now)
    assert leases.deadline([done.row], row.copy, repo.now, policy_as_shipped()) == repo.now + HOUR
    assert repo.as_session(TWO, "reserve", "write the parser", "--footprint", "src/p.py") == 0
    repo.list(LIST.replace("[ ] write the lexer", "[x] write the lexer"))
    assert repo.as_session(TWO, "reserve", "write the lexer") == 2
    assert "is done already" in repo.complained


def policy_as_shipped():  # type: ignore[no-untyped-def]
    from stopwarden.core.bounds import Policy

    return Policy()


@pytest.mark.case("A111")
@pytest.mark.parametrize("lease", ["59s", "25h", "0", "-2h", "two hours", "1.5d"])
def test_a_lease_out_of_bounds_is_refused_before_anything_is_done(repo: Repository, lease: str) -> None:
    """59 seconds and 25 hours, and what is no length at all: exit 2, and nothing is reserved."""
    assert repo.as_session(ONE, "reserve", "issue-42", f"--lease={lease}") == 2
    assert repo.complained
    assert repo.holds() == []
    assert repo.signs() == []


@pytest.mark.parametrize("lease, seconds", [("1m", MINUTE), ("90m", 90 * MINUTE), ("1h30m", 90 * MINUTE), ("24h", DAY)])
def test_a_lease_is_said_in_hours_and_minutes(repo: Repository, lease: str, seconds: int) -> None:
    """From one minute to a day."""
    assert repo.as_session(ONE, "reserve", "issue-42", "--lease", lease) == 0
    assert repo.hold("issue-42").expires_at == repo.now + seconds
    assert repo.as_session(ONE, "renew", "issue-42", "--lease", "2h") == 0
    assert repo.hold("issue-42").expires_at == repo.now + 2 * HOUR


@pytest.mark.case("A126")
def test_the_eleventh_is_refused_naming_the_ten_and_all_are_renewed(repo: Repository) -> None:
    """Exit 2 with ten names; `renew --all` is refused nothing."""
    for number in range(10):
        assert repo.as_session(ONE, "reserve", f"issue-{number}") == 0
    assert repo.as_session(ONE, "reserve", "issue-10") == 2
    for number in range(10):
        assert f"issue-{number}" in repo.complained
    repo.now += HOUR
    assert repo.as_session(ONE, "renew", "--all") == 0
    assert {row.expires_at for row in repo.holds()} == {repo.now + 2 * HOUR}
    assert repo.as_session(ONE, "release", "--all") == 0
    assert repo.as_session(ONE, "reserve", "issue-10") == 0


@pytest.mark.case("A127")
def test_overlapping_footprints_keep_two_sessions_apart_across_worktrees(repo: Repository) -> None:
    """The second is told which paths are held, by whom and for what; another directory is fine."""
    there = repo.worktree()
    assert repo.as_session(ONE, "reserve", "write the lexer", "--footprint", "src/lexer", "docs/lexer.md") == 0
    assert repo.as_session(TWO, "reserve", "issue-42", "--footprint", "src/lexer/tokens.py", cwd=there) == 3
    assert "src/lexer, docs/lexer.md is held by 5d0c7a52 for" in repo.complained
    assert repo.as_session(TWO, "reserve", "issue-42", "--footprint", "src/lexers", cwd=there) == 0
    assert repo.as_session(TWO, "reserve", "write the parser", "--footprint", "../up", cwd=there) == 2
    assert repo.as_session(TWO, "reserve", "write the lexer", cwd=there) == 3, "the list is the same in each worktree"


def test_a_footprint_of_an_ended_session_is_in_nobodys_way(repo: Repository) -> None:
    """Its item can be had at once, so its files can as well."""
    repo.save(repo.session(ONE))
    repo.as_session(ONE, "reserve", "write the lexer", "--footprint", "src")
    repo.now += 1
    repo.spools("session-end", ONE)
    assert repo.as_session(TWO, "reserve", "issue-42", "--footprint", "src/a") == 0


@pytest.mark.case("BR-142")
def test_the_persons_hold_needs_no_renewal_and_no_lease(repo: Repository) -> None:
    """Reserved by hand it stays until it is given back by hand; a lease for it is refused."""
    assert repo.types("reserve", "issue-42", "--lease", "2h") == 2
    assert repo.types("reserve", "issue-42") == 0
    repo.now += 30 * DAY
    assert repo.as_session(ONE, "reserve", "issue-42") == 3
    assert "held by the person until they release it" in repo.complained
    assert repo.types("renew", "issue-42") == 0
    assert "does not lapse" in repo.said
    assert repo.types("release", "issue-42") == 0
    assert repo.as_session(ONE, "reserve", "issue-42") == 0


def test_bare_commands_point_at_peers(repo: Repository) -> None:
    """Without an item nothing is guessed."""
    for command in ("reserve", "renew", "release"):
        assert repo.types(command) == 2
        assert "stopwarden peers" in repo.complained
    assert repo.types("reserve", "--footprint", "src", "issue-42") == 2
    assert "before --footprint" in repo.complained
    assert repo.types("renew", "issue-42", "--all") == 2
    assert repo.types("release", "--all", "--token", "3") == 2
    assert repo.types("release", "--all") == 0
    assert "Nothing is held" in repo.said


@pytest.mark.parametrize(
    "slip", ["a9z", "k3x", "w99", "t3", "2.a9z", ":99", "-x", "a b", "../up", "x" * 65, "a$b", "ü"]
)
def test_a_slip_of_the_finger_is_no_new_name(repo: Repository, slip: str) -> None:
    """What looks like an id and is none, or could be no name, is refused: nobody else would ever ask for it."""
    assert repo.as_session(ONE, "reserve", "--", slip) == 2
    assert "Nothing was changed" in repo.complained
    assert repo.holds() == []


def test_items_of_the_ledger_and_of_lists_and_free_names_are_told_apart(repo: Repository) -> None:
    """`w1` in the ledger of this project, an item of the list by the beginning of its text, and a name."""
    project = checkout.project_key(repo.root)
    with repo.store() as store:
        number = store.add_ledger_item(LedgerItem(project=project, title="of the ledger"))
        store.replace_tracked(
            project, "gh", [TrackedItem(project=project, tracker="gh", id="gh-7", title="of a tracker")]
        )
        other = store.add_ledger_item(LedgerItem(project="elsewhere", title="of another project"))
        over = store.add_ledger_item(LedgerItem(project=project, title="over", state="done"))
    assert repo.as_session(ONE, "reserve", f"w{number}") == 0
    assert repo.as_session(ONE, "reserve", f"w{other}") == 2
    assert repo.as_session(ONE, "reserve", f"w{over}") == 2
    assert "is done already" in repo.complained
    assert repo.as_session(ONE, "reserve", "GH-7") == 0
    assert repo.as_session(ONE, "reserve", "write the p") == 0
    assert repo.as_session(ONE, "reserve", "feature/x_1.2") == 0
    assert repo.as_session(ONE, "reserve", "write") == 2
    assert "may mean" in repo.complained
    places = {row.item: (row.place, row.title) for row in repo.holds()}
    assert places.pop(f"w{number}") == (project, "of the ledger")
    assert places.pop("gh-7") == (project, "of a tracker")
    assert places.pop("feature/x_1.2") == (project, "")
    ((place, title),) = places.values()
    assert (place, title) == (f"{project} TODO.md", "write the parser")


def test_what_is_held_can_be_given_back_when_it_is_off_its_list(repo: Repository) -> None:
    """By its id or its text, although no list names it any more."""
    repo.as_session(ONE, "reserve", "write the lexer")
    repo.as_session(ONE, "reserve", "write the parser")
    ids = {row.title: row.item for row in repo.holds()}
    repo.list("- [ ] something else\n")
    assert repo.as_session(ONE, "release", "write the lexer") == 0
    assert repo.as_session(ONE, "release", ids["write the parser"]) == 0
    assert all(row.released_at is not None for row in repo.holds())


def test_a_stale_token_renews_and_releases_nothing(repo: Repository) -> None:
    """The hold was lost and won back: who still has the old number is refused, and told the new one."""
    repo.as_session(ONE, "reserve", "issue-42")
    repo.now += 3 * HOUR
    repo.as_session(ONE, "reserve", "issue-42", "--json")
    assert (repo.told()["how"], repo.told()["token"]) == ("again", 2)
    for command in ("renew", "release"):
        assert repo.as_session(ONE, command, "issue-42", "--token", "1") == 2
        assert "is 2 by now" in repo.complained
    assert repo.as_session(ONE, "release", "issue-42", "--token", "2") == 0


def test_a_lapsed_hold_is_not_renewed_but_reserved_again(repo: Repository) -> None:
    """Exit 2 with what to type; `--all` renews what it can and says what it could not."""
    repo.as_session(ONE, "reserve", "short", "--lease", "1m")
    repo.as_session(ONE, "reserve", "long", "--lease", "4h")
    repo.now += 2 * HOUR
    assert repo.as_session(ONE, "renew", "short") == 2
    assert "lapsed at Mon 23:06" in repo.complained
    assert "stopwarden reserve short" in repo.complained
    assert repo.as_session(ONE, "renew", "--all") == 2
    assert repo.hold("long").claimed_at == repo.now
    assert repo.as_session(ONE, "reserve", "short") == 0


def test_what_a_session_claims_after_it_was_said_to_have_ended_is_its_own(repo: Repository) -> None:
    """An end that was heard before the claim says nothing about it: the session was taken up again."""
    repo.save(repo.session(ONE, ended_at=repo.now - 60, ended_why="other"))
    assert repo.as_session(ONE, "reserve", "issue-42") == 0
    assert repo.as_session(TWO, "reserve", "issue-42") == 3


def test_ten_holds_are_ten_in_whichever_projects_and_with_or_without_a_footprint(
    repo: Repository, tmp_path: pathlib.Path
) -> None:
    """Nine here and one elsewhere leave no eleventh, also where only holds with paths would be in the way."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for number in range(9):
        repo.as_session(ONE, "reserve", f"issue-{number}")
    assert repo.as_session(ONE, "reserve", "over-there", cwd=elsewhere) == 0
    assert repo.as_session(ONE, "reserve", "issue-9", "--footprint", "src") == 2
    assert repo.as_session(ONE, "reserve", "issue-9") == 2
    assert "over-there" in repo.complained


def test_the_record_of_a_night_has_each_grant_once(repo: Repository) -> None:
    """Reserved again by its holder it is renewed and no new grant; given back and taken over are lines of their own."""
    repo.away_since()
    repo.save(repo.session(ONE))
    repo.save(repo.session(TWO))
    repo.as_session(ONE, "reserve", "issue-42")
    repo.now += 60
    repo.as_session(ONE, "reserve", "issue-42")
    repo.now += 3 * HOUR
    repo.as_session(TWO, "reserve", "issue-42")
    repo.as_session(TWO, "release", "issue-42")
    with repo.store() as store:
        told = [(line.kind, line.session) for line in store.lines() if line.item == "issue-42"]
    assert told == [("reserved", ONE), ("reserved", TWO), ("hold_lost", ONE), ("released", TWO)]


def test_a_session_is_in_the_checkout_recorded_for_it_wherever_its_shell_is(repo: Repository) -> None:
    """`cd` into another worktree makes no other copy of it: what it reserved it can renew and give back from there."""
    there = repo.worktree()
    repo.save(repo.session(ONE))
    repo.as_session(ONE, "reserve", "issue-42", cwd=there)
    assert repo.hold("issue-42").root == repo.root
    assert repo.as_session(ONE, "release", "issue-42") == 0


# --- clocks -----------------------------------------------------------------------------------------


@pytest.mark.case("A107")
def test_a_clock_that_was_far_ahead_at_the_claim_does_not_keep_an_item_for_years(repo: Repository) -> None:
    """Claimed by a clock a year ahead, then set right: it lapses one lease after another asked for it first."""
    right = repo.now
    repo.now += 365 * DAY
    repo.as_session(ONE, "reserve", "issue-42")
    repo.now = right
    assert repo.as_session(TWO, "reserve", "issue-42") == 3
    repo.now += 2 * HOUR + TAKE_OVER_MARGIN - 1
    assert repo.as_session(TWO, "reserve", "issue-42") == 3
    repo.now += 1
    assert repo.as_session(TWO, "reserve", "issue-42") == 0


@pytest.mark.case("A107")
def test_a_clock_that_was_wrong_for_a_moment_costs_the_holder_nothing(repo: Repository) -> None:
    """Set back by hours, another asks and is refused, and the clock is right again: the hold is as good as before."""
    repo.as_session(ONE, "reserve", "issue-42")
    right = repo.now
    repo.now -= 6 * HOUR
    assert repo.as_session(TWO, "reserve", "issue-42") == 3
    repo.now = right + HOUR
    assert repo.as_session(TWO, "reserve", "issue-42") == 3
    assert repo.as_session(ONE, "renew", "issue-42") == 0
    assert repo.hold("issue-42").first_seen is None


@pytest.mark.case("A107")
def test_a_renewal_after_the_clock_was_set_back_begins_the_lease_anew(repo: Repository) -> None:
    """The claim lies ahead by that clock, so half the lease would be hours away: it is renewed at once."""
    repo.as_session(ONE, "reserve", "issue-42")
    repo.now -= 3 * HOUR
    assert repo.as_session(ONE, "renew", "issue-42") == 0
    assert repo.hold("issue-42").expires_at == repo.now + 2 * HOUR


@pytest.mark.case("A108")
def test_a_clock_set_forward_past_the_expiry_ends_the_hold_and_the_fence_keeps_the_old_holder_out(
    repo: Repository,
) -> None:
    """Three hours on in a moment another has the item; set right again, the first is still refused, by its old number."""
    repo.as_session(ONE, "reserve", "issue-42")
    right = repo.now
    repo.now += 3 * HOUR
    assert repo.as_session(TWO, "reserve", "issue-42") == 0
    repo.now = right
    assert repo.as_session(ONE, "renew", "issue-42", "--token", "1") == 2
    assert repo.as_session(ONE, "renew", "issue-42") == 3
    row = repo.hold("issue-42")
    assert (row.session, row.token) == (TWO, 2)


# --- what hooks heard ---------------------------------------------------------------------------------


@pytest.mark.case("BR-139")
def test_a_session_at_work_keeps_its_hold_though_nobody_is_away(tmp_path: pathlib.Path) -> None:
    """Two hours' lease, a tool a minute, asked at 2 h 2: its tools left word and it is still held, by the same number."""
    night = HookNight(tmp_path)
    start = night.now
    project = str(night.project)

    def clock() -> int:
        return night.now

    with contextlib.closing(night.store()) as store:
        claim = ask(session=SESSION, copy="c", root=project)
        assert isinstance(reservations.reserve(store, claim, clock, state_dir=night.state_dir), Granted)
    os.utime(reservations.sign_path(night.state_dir, SESSION), (start, start))
    for minute in range(1, 123):
        night.now = start + 60 * minute
        night.send("post-tool", tool_name="Bash", tool_input={"command": "make"}, tool_response={})
    spool = pathlib.Path(night.state_dir, "spool").read_text(encoding="utf-8")
    assert 24 <= len(spool.splitlines()) <= 26
    person = Repository(tmp_path)
    person.env |= {"XDG_STATE_HOME": str(tmp_path / "state")}
    person.now = start + 7_320
    person.cwd = night.project
    with contextlib.closing(night.store()) as store:
        assert not leases.is_live(store.reservations_of(session=SESSION)[0], person.now), "nobody has heard yet"
        told = reservations.reserve(
            store, ask(session=TWO), lambda: person.now, first=lambda: hear(store, night.state_dir)
        )
        assert isinstance(told, Denied)
        assert told.why == "held"
        (row,) = store.reservations_of(session=SESSION)
        assert row.token == 1
        assert row.claimed_at >= start + 2 * HOUR - 10 * MINUTE


def hear(store, state_dir: str) -> None:  # type: ignore[no-untyped-def]
    from stopwarden.hook import spool
    from stopwarden.hook.note import take_all
    from tests.conftest import LONDON

    take_all(store, spool.facts(store, state_dir), state_dir, [], LONDON)


@pytest.mark.case("BR-139")
def test_a_hold_that_was_renewed_by_a_spooled_event_is_not_taken_over(repo: Repository) -> None:
    """The command hears what hooks left before it judges: past the stored lease and margin, and still refused."""
    repo.save(repo.session(ONE))
    repo.as_session(ONE, "reserve", "issue-42", "--lease", "1h")
    repo.now += 50 * MINUTE
    repo.spools("post-tool", ONE)
    repo.now += 20 * MINUTE
    assert repo.as_session(TWO, "reserve", "issue-42") == 3
    assert "until 00:55" in repo.complained
    assert repo.hold("issue-42").session == ONE


@pytest.mark.parametrize("event", ["notification", "session-end", "stop-failure"])
def test_what_is_no_work_of_the_holder_renews_nothing(repo: Repository, event: str) -> None:
    """Notifications, ends and failures of its own, and whatever other sessions do."""
    repo.save(repo.session(ONE))
    repo.as_session(ONE, "reserve", "issue-42", "--lease", "1h")
    repo.now += 50 * MINUTE
    repo.spools(event, ONE)
    repo.spools("post-tool", TWO)
    repo.now += 15 * MINUTE
    assert repo.as_session(TWO, "reserve", "issue-42") == 0


def test_a_spool_that_cannot_be_read_grants_nothing(repo: Repository) -> None:
    """It may say that the hold was renewed: exit 4, and nothing is taken over."""
    repo.as_session(ONE, "reserve", "issue-42", "--lease", "1h")
    repo.now += 2 * HOUR
    os.mkdir(f"{repo.state_dir}/spool")
    assert repo.as_session(TWO, "reserve", "issue-42") == 4
    assert "cannot be told what other sessions have renewed" in repo.complained
    assert repo.hold("issue-42").session == ONE


@pytest.mark.parametrize("lease, pause", [(MINUTE, 10), (20 * MINUTE, 200), (2 * HOUR, 300), (DAY, 300)])
def test_tools_leave_word_only_while_their_session_holds_something(
    tmp_path: pathlib.Path, lease: int, pause: int
) -> None:
    """Nobody away: without a sign a tool writes nothing; with one a line, and the next a sixth of the lease later."""
    night = HookNight(tmp_path)
    spool = pathlib.Path(night.state_dir, "spool")

    def tool(later: int) -> int:
        night.now += later - 10
        night.send("post-tool", tool_name="Bash", tool_input={"command": "make"}, tool_response={})
        return len(spool.read_text(encoding="utf-8").splitlines()) if spool.exists() else 0

    assert tool(0) == 0
    reservations.show_sign(night.state_dir, SESSION, lease)
    sign = reservations.sign_path(night.state_dir, SESSION)
    os.utime(sign, (night.now - 1_000, night.now - 1_000))
    assert [tool(later) for later in (10, 1, pause - 2, 1, pause)] == [1, 1, 1, 2, 3]
    os.utime(sign, (night.now + 9_000, night.now + 9_000))
    assert tool(10) == 4, "the clock was set back: it is not waited for"
    os.unlink(sign)
    assert tool(600) == 4


def test_the_shortest_lease_says_how_often_a_tool_leaves_word(repo: Repository) -> None:
    """Of several holds the shortest counts, also when a renewal makes one shorter; hook and store mean the same unit."""
    repo.as_session(ONE, "reserve", "long", "--lease", "24h")
    sign = reservations.sign_path(repo.state_dir, ONE)
    assert os.stat(sign).st_size * run.SIGN_UNIT == 300
    repo.as_session(ONE, "reserve", "short", "--lease", "10m")
    assert os.stat(sign).st_size * run.SIGN_UNIT == 100
    repo.as_session(ONE, "reserve", "another", "--lease", "2h")
    assert os.stat(sign).st_size * run.SIGN_UNIT == 100
    repo.as_session(ONE, "renew", "long", "--lease", "1m")
    assert os.stat(sign).st_size * run.SIGN_UNIT == 10
    assert run.SIGN_UNIT == reservations.SIGN_UNIT


@pytest.mark.parametrize("session", ["../../etc", "a/b", "..", "é", "a\0b", "x" * 150, "-"])
def test_a_session_id_is_no_path_to_a_sign(tmp_path: pathlib.Path, session: str) -> None:
    """An id that is no file's name has no sign, and no file elsewhere is touched for it."""
    path = reservations.sign_path(str(tmp_path), session)
    assert path in ("", f"{tmp_path}/held/{session}")
    assert (path == "") == (session != "-") or session == "-"


def test_a_sign_that_cannot_be_made_is_told_and_nothing_is_reserved(repo: Repository) -> None:
    """Without it the session's work would not renew the hold: exit 4 rather than a hold that dies by itself."""
    repo.types("peers")
    with repo.store():
        pathlib.Path(repo.state_dir, "held").write_text("in the way", encoding="ascii")
    assert repo.as_session(ONE, "reserve", "issue-42") == 4
    assert "Nothing was reserved" in repo.complained
    assert repo.holds() == []


# --- peers ------------------------------------------------------------------------------------------


def test_peers_shows_who_holds_what_and_whether_the_holder_is_still_there(repo: Repository) -> None:
    """Waiting with its look, gone, silent, lapsed: told apart, with times by the local clock."""
    there = repo.worktree()
    repo.save(repo.session(ONE, title="lexer", last_event="stop"), next_look=repo.now + 20 * MINUTE)
    repo.save(repo.session(TWO, last_event_at=repo.now - HOUR))
    repo.as_session(ONE, "reserve", "write the lexer", "--footprint", "src")
    repo.as_session(TWO, "reserve", "issue-42", "--lease", "1m")
    repo.types("reserve", "mine")
    repo.now += 2 * MINUTE
    repo.cwd = there
    assert repo.types("peers") == 0
    lines = repo.said.splitlines()
    assert lines[0] == "Times are Europe/London."
    assert any(
        '"write the lexer"' in one and "held until Tue 01:05" in one and "next look 23:25" in one for one in lines
    )
    assert any(
        "issue-42" in one and "lapsed, free from 23:11" in one and "not heard of since 22:05" in one for one in lines
    )
    assert any(one.startswith("mine") and "the person" in one and "another checkout" in one for one in lines)
    assert "    footprint: src" in lines
    assert lines[-1] == 'Held now: 1 item by the person, 1 item by 5d0c "lexer"'
    repo.now += 10 * MINUTE
    repo.spools("session-end", TWO)
    repo.types("peers")
    assert "free since 23:11" in repo.said
    assert "gone, ended 23:17" in repo.said
    assert repo.types("peers", "--json") == 0
    assert "copy" not in {key for one in repo.told()["peers"] for key in one if one["copy"] not in ("this", "another")}  # type: ignore[attr-defined]
    with repo.store() as store:
        keys = {row.copy for row in store.reservations()}
    assert not any(key in repo.said for key in keys)


def test_peers_shows_given_back_ones_and_other_projects_only_when_asked(
    repo: Repository, tmp_path: pathlib.Path
) -> None:
    """`--all` does; nothing is made where nothing was ever stored."""
    assert repo.types("peers") == 0
    assert repo.said == "Nothing is reserved in this project.\n"
    assert not os.path.exists(repo.state_dir)
    repo.as_session(ONE, "reserve", "issue-42")
    repo.as_session(ONE, "release", "issue-42")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    repo.as_session(TWO, "reserve", "over-there", cwd=elsewhere)
    repo.types("peers")
    assert repo.said == "Nothing is reserved in this project.\n"
    repo.types("peers", "--all")
    assert "released" in repo.said
    assert "over-there" in repo.said


HOSTILE = [
    "a\nb: held by nobody\x1b[2J",
    "\x1b]0;title\x07",
    "'; DROP TABLE reservation; --",
    "$(id)",
    "\u202eevil",
    "x" * 50_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=["lines", "escapes", "sql", "shell", "bidi", "50 kB"])
def test_hostile_titles_are_data(repo: Repository, text: str) -> None:
    """Stored as they came from the list or from elsewhere; shown on one line, without control characters, cut."""
    with repo.store() as store:
        claim = ask("issue-1", ONE, place=checkout.project_key(repo.root), project=checkout.project_key(repo.root))
        claim = claim.replace(title=text, root=text, copy="c", footprint=(text,))
        assert isinstance(reservations.reserve(store, claim, lambda: repo.now), Granted)
        (row,) = store.reservations()
        assert (row.title, row.footprint) == (text, (text,))
    assert repo.types("peers") == 0
    assert all(len(line) < 400 and line.isprintable() for line in repo.said.splitlines())
    assert len(repo.said.splitlines()) == 4
    assert repo.as_session(TWO, "reserve", "issue-1") == 3
    assert len(repo.complained) < 1_000
    assert repo.complained.rstrip("\n").isprintable()


@pytest.mark.case("A132")
def test_a_row_without_sense_is_listed_and_blocks_its_own_item_alone(repo: Repository) -> None:
    """The database refuses rows of the wrong shape; values that mean nothing are shown as unreadable, and others go on."""
    repo.as_session(ONE, "reserve", "issue-1", "--footprint", "src")
    path = f"{repo.state_dir}/stopwarden.db"
    by_hand = apsw.Connection(path)
    for torn in ("not json", "[1, 2]", "{}", '"src"', ""):
        with pytest.raises(apsw.Error):
            by_hand.execute("UPDATE reservation SET footprint = ?", (torn,))
        with pytest.raises(apsw.Error):
            by_hand.execute(
                "INSERT INTO reservation SELECT place, 'torn', project, session, copy, root, title, claimed_at, expires_at,"
                " lease, token, first_seen, granted_at, released_at, terminal, ?, taken_from, nonce FROM reservation",
                (torn,),
            )
    with pytest.raises(apsw.Error):
        by_hand.execute("UPDATE reservation SET claimed_at = 'soon'")
    by_hand.execute("UPDATE reservation SET claimed_at = ?, expires_at = ?, granted_at = -1", (2**61, 2**62))
    by_hand.close()
    assert repo.types("peers") == 0
    assert "unreadable" in repo.said
    assert repo.types("peers", "--json") == 0
    assert repo.as_session(TWO, "reserve", "issue-2") == 0
    assert repo.as_session(TWO, "reserve", "issue-1") == 3
    repo.now += LEASE_MAX + TAKE_OVER_MARGIN
    assert repo.as_session(TWO, "reserve", "issue-1") == 0, "nothing is held for ever by a value without sense"


@pytest.mark.case("BR-138", "BR-135")
def test_two_sessions_in_one_directory_have_a_hold_each_and_leave_the_others_as_it_is(repo: Repository) -> None:
    """Reserving, renewing and giving back in one leaves the other's row and sign as they were, to the last byte."""
    repo.as_session(ONE, "reserve", "write the lexer")
    (first,) = repo.holds()
    sign = os.stat(reservations.sign_path(repo.state_dir, ONE))
    repo.now += HOUR
    repo.as_session(TWO, "reserve", "write the parser")
    repo.as_session(TWO, "renew", "--all", "--lease", "4h")
    repo.as_session(TWO, "release", "--all")
    assert [row for row in repo.holds() if row.session == ONE] == [first]
    assert os.stat(reservations.sign_path(repo.state_dir, ONE)) == sign


@pytest.mark.case("BR-136")
@pytest.mark.parametrize("session", ["null", "undefined", "", " "])
def test_a_word_for_nothing_is_no_session(repo: Repository, session: str) -> None:
    """An agent's shell whose session is `null` is asked for its id: what it held would pass for the person's."""
    assert repo.as_session(session, "reserve", "issue-42") == 2
    assert "does not say which session it is" in repo.complained
    assert repo.holds() == []
    assert repo.as_session(session, "peers") == 0
