"""Everything a session may owe, gathered: which lists, in which order, under which ids, and what is unknown."""

from __future__ import annotations

import os
import pathlib
import shutil

import pytest

from stopwarden.core.bounds import ITEMS_MAX, Policy
from stopwarden.core.events import AwayPeriod, SessionState, Stop, World
from stopwarden.core.judge import judge
from stopwarden.core.owed import assess
from stopwarden.store.memory import MemoryStore
from stopwarden.store.port import SessionRow
from stopwarden.work import checkout
from stopwarden.work.gather import Gathered, gather, keep, read_lists
from tests.conftest import LONDON, at

NIGHT = at("2026-11-30 21:00")


class Work:
    """A checkout with lists, a store, and one session in it."""

    def __init__(self, tmp_path: pathlib.Path) -> None:
        self.root = tmp_path / "repo"
        (self.root / ".git").mkdir(parents=True)
        (self.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        self.store = MemoryStore()
        self.row = SessionRow(id="s1", root=str(self.root))
        self.period = AwayPeriod(id="p1", since=NIGHT)
        self.now = NIGHT

    def list(self, name: str, text: str, *, named: bool = True) -> pathlib.Path:
        """A list file; by default one that the person names when they leave."""
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        if named and str(path) not in self.period.lists:
            self.period = self.period.replace(lists=(*self.period.lists, str(path)))
        return path

    def gathered(self) -> Gathered:
        return gather(self.store, self.row, self.period, {}, self.now)

    def owed(self) -> list[str]:
        """Titles of what is owed, in order."""
        found = self.gathered()
        return [item.title for item in assess(found.items, found.unread, SessionState(id="s1")).owed]

    def reason(self) -> str:
        """What the model is told at a stop now."""
        found = self.gathered()
        world = World(
            zone=LONDON, period=self.period, items=found.items, unread=found.unread, checklist=found.checklist
        )
        verdict = judge(Stop(session="s1", at=self.now, wakes=()), SessionState(id="s1"), world, Policy())
        assert verdict.block
        return verdict.reason


@pytest.fixture
def work(tmp_path: pathlib.Path) -> Work:
    return Work(tmp_path)


@pytest.mark.case("A133", "A136")
def test_the_named_lists_come_in_their_order_each_once_with_unique_ids(work: Work) -> None:
    """A list that is named twice, also by a link, is one list; the same words on two lists are two items."""
    path = work.list("A.md", "- [x] zero\n- [ ] one\n- [ ] two\n")
    work.list("B.md", "- [ ] one\n")
    (work.root / "link.md").symlink_to(path)
    work.period = work.period.replace(lists=(*work.period.lists, str(work.root / "link.md"), str(path)))
    items = work.gathered().items
    assert [(item.title, item.source) for item in items] == [
        ("zero", "A.md"),
        ("one", "A.md"),
        ("two", "A.md"),
        ("one", "B.md"),
    ]
    assert len({item.id for item in items}) == 4
    assert work.gathered().items == items
    assert '"one"' in work.reason()


def test_an_id_that_two_lists_give_gets_the_lists_number_before_it(work: Work) -> None:
    """Names that people wrote are not changed, only told apart."""
    work.list("A.md", "- [ ] one <!-- sw:x -->\n")
    work.list("B.md", "- [ ] other <!-- sw:x -->\n- [ ] more <!-- sw:y -->\n")
    assert [item.id for item in work.gathered().items] == ["x", "2.x", "y"]


@pytest.mark.case("BR-019", "BR-025")
def test_what_is_left_of_a_list_is_owed_whatever_anybody_says(work: Work) -> None:
    """Three of ten ticked: seven are owed and the first of them is named; words about being done count for nothing."""
    work.list("TODO.md", "All done! DONE\n" + "- [x] a\n" * 3 + "".join(f"- [ ] step {n} DONE\n" for n in range(4, 11)))
    assert work.owed() == [f"step {n} DONE" for n in range(4, 11)]
    assert "step 4" in work.reason()
    assert "step 5" not in work.reason()


@pytest.mark.case("A103")
@pytest.mark.parametrize("broken", ["deleted", "folder", "binary", "emptied", "too many"])
def test_a_list_that_cannot_be_read_is_unknown_and_never_nothing(broken: str, work: Work) -> None:
    """It is named with why, the set is owed work, the stop is blocked saying so; other lists are still read."""
    path = work.list("TODO.md", "- [x] a\n")
    work.list("B.md", "- [x] b\n")
    assert work.owed() == []
    path.unlink()
    if broken == "folder":
        path.mkdir()
    elif broken == "binary":
        path.write_bytes(b"\0" * 100)
    elif broken == "emptied":
        path.write_bytes(b"")
        work.now = int(path.stat().st_mtime)
    elif broken == "too many":
        path.write_text("- [ ] a\n" * (ITEMS_MAX + 1))
    found = work.gathered()
    assert [item.title for item in found.items] == ["b"]
    assert len(found.unread) == 1
    assert found.unread[0].startswith("TODO.md (")
    assert assess(found.items, found.unread, SessionState(id="s1")).anything_owed
    assert "TODO.md" in work.reason()


def test_a_list_that_comes_back_has_the_ids_it_had(work: Work) -> None:
    """What was unreadable for a while is the same list afterwards: nothing was taken off it."""
    path = work.list("TODO.md", "- [ ] a\n- [ ] b\n")
    before = work.gathered().items
    text = path.read_bytes()
    path.unlink()
    assert work.gathered().items == ()
    path.write_bytes(text)
    assert work.gathered().items == before


@pytest.mark.case("BR-081")
def test_the_work_of_a_checkout_that_is_gone_is_said_and_not_demanded(work: Work, tmp_path: pathlib.Path) -> None:
    """Nobody can do it any more; a list that lies elsewhere still counts."""
    elsewhere = tmp_path / "notes.md"
    elsewhere.write_text("- [ ] elsewhere\n", encoding="utf-8")
    inside = work.list("TODO.md", "- [ ] here\n")
    work.period = work.period.replace(lists=(*work.period.lists, str(elsewhere)))
    assert work.owed() == ["here", "elsewhere"]
    shutil.rmtree(work.root)
    found = work.gathered()
    assert found.gone == (str(work.root), str(inside))
    assert found.unread == ()
    assert work.owed() == ["elsewhere"]
    work.period = work.period.replace(lists=())
    assert work.gathered().items == ()
    assert work.gathered().unread == ()


@pytest.mark.case("BR-080")
def test_a_session_that_was_moved_to_another_checkout_owes_nothing_of_the_old_one(
    work: Work, tmp_path: pathlib.Path
) -> None:
    """Its own list is that of the checkout it is in now."""
    path, _ = checkout.make_own_list(str(work.root), "s1")
    with open(path, "a", encoding="utf-8") as own:
        own.write("- [ ] in the worktree\n")
    assert work.owed() == ["in the worktree"]
    work.row = work.row.replace(root=str(tmp_path))
    found = work.gathered()
    assert found.items == ()
    assert found.checklist == checkout.own_list_path(str(tmp_path), "s1")


def test_a_session_without_a_named_list_has_its_own_and_no_other_sessions(work: Work) -> None:
    """One that was never made owes nothing; one that was there and is gone is unknown; a planted link is refused."""
    assert work.gathered() == Gathered(checklist=checkout.own_list_path(str(work.root), "s1"))
    path, _ = checkout.make_own_list(str(work.root), "s1")
    other, _ = checkout.make_own_list(str(work.root), "s2")
    for own, what in ((path, "mine"), (other, "theirs")):
        with open(own, "a", encoding="utf-8") as file:
            file.write(f"- [ ] {what}\n")
    assert work.owed() == ["mine"]
    os.unlink(path)
    assert len(work.gathered().unread) == 1
    os.symlink(other, path)
    assert "symbolic link" in work.gathered().unread[0]
    assert work.gathered().items == ()


def test_what_the_agent_parks_or_takes_off_is_told_from_what_was_so_when_the_person_left(work: Work) -> None:
    """The lists are remembered at the beginning, so even the first look shows what changed since."""
    path = work.list("TODO.md", "- [ ] a\n- [ ] b\n- [?] c\n- [ ] d\n")
    for one in read_lists(work.store, work.period.lists, "p1", str(work.root)):
        keep(work.store, one, "p1")
    path.write_text("- [ ] a (waits for person: hm)\n- [?] c\n- [x] d\n", encoding="utf-8")
    items = {item.title: (item.before, item.state) for item in work.gathered().items}
    assert items == {
        "a": ("open", "waiting"),
        "b": ("open", "removed"),
        "c": ("waiting", "waiting"),
        "d": ("open", "done"),
    }
    assert sorted(work.owed()) == ["a", "b"]


def test_two_away_periods_over_one_list_do_not_disturb_each_other(work: Work) -> None:
    """Each remembers for itself what the list was like; ids are the same in both and in the next one."""
    path = work.list("TODO.md", "- [ ] write the parser\n- [ ] b\n")
    first = work.gathered().items
    second = work.period.replace(id="p2")
    for period in (work.period, second):
        work.store.add_period(period, "{}")
    path.write_text("- [ ] write the whole parser\n", encoding="utf-8")
    assert [item.state for item in gather(work.store, work.row, second, {}, NIGHT).items] == ["open"]
    assert [(item.title, item.state) for item in work.gathered().items] == [
        ("write the whole parser", "open"),
        ("b", "removed"),
    ]
    third = gather(work.store, work.row, work.period.replace(id="p3"), {}, NIGHT).items
    assert [item.id for item in third] == [first[0].id]


def test_nothing_is_written_where_nothing_changed(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look at an unchanged list costs the store no write."""
    work.list("TODO.md", "- [ ] a\n")
    work.gathered()
    saved: list[str] = []
    monkeypatch.setattr(work.store, "save_list_snapshot", lambda source, body: saved.append(source))
    work.gathered()
    assert saved == []


def test_without_an_away_period_the_sessions_own_list_is_gathered(work: Work) -> None:
    """The same sources serve who judges without anybody being away."""
    path, _ = checkout.make_own_list(str(work.root), "s1")
    with open(path, "a", encoding="utf-8") as file:
        file.write("- [ ] a\n")
    assert [item.title for item in gather(work.store, work.row, None, {}, NIGHT).items] == ["a"]
