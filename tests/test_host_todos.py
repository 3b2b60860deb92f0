"""The host's own todos: tasks on disk, and what TodoWrite, TaskCreate and TaskUpdate reported."""

from __future__ import annotations

import json
import os
import pathlib
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwarden.core.events import AwayPeriod, Item, SessionState
from stopwarden.core.owed import assess
from stopwarden.store.memory import MemoryStore
from stopwarden.store.port import SessionRow
from stopwarden.work import host_todos
from stopwarden.work.gather import Gathered, gather
from tests.conftest import at
from tests.support.payloads import RECORDED

NIGHT = at("2026-11-30 21:00")
SESSION = "7e15e06a-eefe-44da-90ad-b64555a1702d"


class Todos:
    """One session's todos: tools report, files change, and everything is gathered as at a stop."""

    def __init__(self, tmp_path: pathlib.Path) -> None:
        self.env = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
        self.folder = tmp_path / "config" / "tasks" / SESSION
        self.store = MemoryStore()
        self.row = SessionRow(id=SESSION)
        self.period = AwayPeriod(id="p1", since=NIGHT)
        self.now = NIGHT

    def reports(self, tool: str, given: object, answered: object = None) -> Todos:
        """A todo tool has answered, a minute later."""
        self.now += 60
        before = self.store.host_todos(SESSION)
        self.store.save_host_todos(SESSION, host_todos.fold(before, tool, given, answered or {}, self.now))
        return self

    def writes(self, *todos: str) -> Todos:
        """TodoWrite with these: "text", or "text=status"."""
        said = [todo.partition("=") for todo in todos]
        return self.reports("TodoWrite", {"todos": [{"content": t, "status": s or "pending"} for t, _, s in said]})

    def task(self, number: str, text: str = "", **fields: object) -> Todos:
        """A task file as the host writes it, or with other content."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{number}.json"
        whole = {
            "id": number,
            "subject": f"task {number}",
            "status": "pending",
            "blocks": [],
            "blockedBy": [],
            **fields,
        }
        path.write_text(text or json.dumps(whole), encoding="utf-8")
        os.utime(path, (self.now, self.now))
        return self

    def gathered(self) -> Gathered:
        return gather(self.store, self.row, self.period, self.env, self.now)

    def stand(self) -> list[tuple[str, str, str]]:
        """Id, title and state of every todo."""
        return [(item.id, item.title, item.state) for item in self.gathered().items]

    def owed(self) -> list[str]:
        found = self.gathered()
        return [item.id for item in assess(found.items, found.unread, SessionState(id=SESSION)).owed]


@pytest.fixture
def todos(tmp_path: pathlib.Path) -> Todos:
    return Todos(tmp_path)


# --- TodoWrite ---------------------------------------------------------------------------------


@pytest.mark.case("BR-020")
def test_a_todo_that_a_later_write_drops_is_kept_as_removed(todos: Todos) -> None:
    """The whole list is rewritten each time, so what is left out is remembered, until a write brings it back."""
    todos.writes("a", "b=in_progress", "c")
    assert todos.owed() == ["t1", "t2", "t3"]
    todos.writes("a")
    assert todos.stand() == [("t1", "a", "open"), ("t2", "b", "removed"), ("t3", "c", "removed")]
    assert todos.owed() == ["t1", "t2", "t3"]
    todos.writes("c", "a")
    assert todos.stand() == [("t3", "c", "open"), ("t1", "a", "open"), ("t2", "b", "removed")]


def test_a_todo_dropped_before_the_person_left_is_not_owed_for_it(todos: Todos) -> None:
    """What was off the list when the period began is history, not something the agent got rid of."""
    todos.writes("a", "b").writes("a")
    assert todos.stand() == [("t1", "a", "open"), ("t2", "b", "removed")]
    assert todos.owed() == ["t1"]


@pytest.mark.case("BR-077", "BR-011")
def test_writing_the_same_todos_again_changes_nothing_that_counts(todos: Todos) -> None:
    """Same items, same states: the same ids, and no progress, however often; also when all are done."""
    todos.writes("a=completed", "b")
    first = todos.gathered()
    state = SessionState(id=SESSION, reached=assess(first.items, (), SessionState(id=SESSION)).reached)
    again = todos.writes("a=completed", "b").gathered()
    assert again.items == first.items
    assert not assess(again.items, (), state).progressed
    done = todos.writes("a=completed", "b=completed").gathered()
    state = state.replace(reached=assess(done.items, (), state).reached)
    found = assess(todos.writes("a=completed", "b=completed").gathered().items, (), state)
    assert (found.owed, found.progressed) == ((), False)


def test_a_todo_that_keeps_half_its_words_is_reworded_any_other_is_new(todos: Todos) -> None:
    """A plan that is replaced by another plan leaves the first one's items behind as removed."""
    todos.writes("write the parser", "run all tests")
    todos.writes("write the parser now=in_progress", "call it a day")
    assert todos.stand() == [
        ("t1", "write the parser now", "doing"),
        ("t3", "call it a day", "open"),
        ("t2", "run all tests", "removed"),
    ]


def test_recorded_results_of_the_todo_tools_are_understood(todos: Todos) -> None:
    """What Claude Code really sent for TodoWrite and for its task tools."""
    for case in ("todo-todowrite", "todo-block1"):
        store = MemoryStore()
        for path in sorted(RECORDED.glob(f"{case}.PostToolUse-*.json")):
            told = json.loads(path.read_text(encoding="utf-8"))
            body = host_todos.fold(
                store.host_todos(SESSION), told["tool_name"], told["tool_input"], told["tool_response"], NIGHT
            )
            store.save_host_todos(SESSION, body)
        found = host_todos.read_todos({}, SESSION, store.host_todos(SESSION))
        assert [(todo.id, todo.title, todo.state) for todo in found.todos] == [
            ("t1", "Write parser", "done"),
            ("t2", "Write tests", "doing"),
            ("t3", "Run tests", "open"),
        ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["TodoWrite", "TaskCreate", "TaskUpdate", "Bash", ""]),
            st.recursive(
                st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["1", "2", "pending", "deleted"]),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(
                        st.sampled_from(
                            [
                                "todos",
                                "newTodos",
                                "content",
                                "status",
                                "task",
                                "id",
                                "taskId",
                                "subject",
                                "addBlockedBy",
                                "addBlocks",
                            ]
                        ),
                        inner,
                        max_size=4,
                    )
                ),
                max_leaves=8,
            ),
        ),
        max_size=6,
    )
)
def test_no_result_of_any_shape_breaks_the_fold(results: list[tuple[str, object]]) -> None:
    """Wrong types, missing fields, unknown tools: whatever is told, ids stay unique and the state readable."""
    body = ""
    for tool, value in results:
        body = host_todos.fold(body, tool, value, value, NIGHT)
        found = host_todos.read_todos({}, SESSION, body)
        names = [todo.id for todo in found.todos]
        assert len(names) == len(set(names))
    assert host_todos.fold("{", "Bash", {}, {}, 0) == host_todos.fold("", "Bash", {}, {}, 0)


# --- tasks on disk -----------------------------------------------------------------------------


def test_the_tasks_that_the_host_keeps_on_disk_are_read(todos: Todos, tmp_path: pathlib.Path) -> None:
    """Recorded files, with whatever else lies beside them; another task list can be named by the host."""
    shutil.copytree(RECORDED / "tasks-sample", todos.folder)
    (todos.folder / ".lock").write_text("")
    (todos.folder / ".highwatermark").write_text("9")
    (todos.folder / "notes.txt").write_text("x")
    assert [state for _, _, state in todos.stand()] == ["done", "doing", "open"]
    todos.folder.rename(todos.folder.parent / "team-1")
    todos.env["CLAUDE_CODE_TASK_LIST_ID"] = "team/1"
    assert [name for name, _, _ in todos.stand()] == ["t1", "t2", "t3"]


def test_a_blocked_task_stands_after_what_blocks_it(todos: Todos) -> None:
    """In the order in which they can be done, else by number; a circle is no obstacle."""
    todos.task("1", blockedBy=["3"]).task("2", blockedBy=["10", "nobody"]).task("3").task("10", blockedBy=["2"])
    assert todos.owed() == ["t3", "t1", "t10", "t2"]


def test_hidden_deleted_and_unknown_states(todos: Todos) -> None:
    """What the host hides is not shown, what it deleted is removed, a state nobody knows is open."""
    todos.task("1", metadata={"_internal": True}).task("2", status="blocked").task("3", status="completed")
    todos.gathered()
    todos.reports("TaskUpdate", {"taskId": "2", "status": "deleted"}, {"success": True, "taskId": "2"})
    (todos.folder / "2.json").unlink()
    assert todos.stand() == [("t2", "task 2", "removed"), ("t3", "task 3", "done")]
    assert todos.owed() == ["t2"]


def test_what_tools_reported_is_laid_beside_what_is_on_disk(todos: Todos) -> None:
    """A task that only the reports know was taken away, unless its file is merely broken; a refused update is none."""
    for number in ("1", "2", "3"):
        todos.reports("TaskCreate", {"subject": f"task {number}"}, {"task": {"id": number}})
    assert todos.owed() == ["t1", "t2", "t3"]
    todos.task("2").task("3", "{")
    assert todos.stand() == [("t1", "task 1", "removed"), ("t2", "task 2", "open"), ("t3", "task 3", "open")]
    todos.folder.rename(todos.folder.with_name("other"))
    todos.reports("TaskUpdate", {"taskId": "2", "status": "completed"}, {"success": False, "error": "no such task"})
    assert todos.stand()[1] == ("t2", "task 2", "open")


def test_a_task_that_vanished_unfinished_is_removed_one_that_was_done_is_done(todos: Todos) -> None:
    """The host clears its list when all is done; anything else that goes is the agent's doing."""
    todos.task("1", status="completed").task("2").task("3")
    todos.gathered()
    (todos.folder / "1.json").unlink()
    (todos.folder / "2.json").unlink()
    assert [(name, state) for name, _, state in todos.stand()] == [("t3", "open"), ("t1", "done"), ("t2", "removed")]


@pytest.mark.parametrize("content", ["{", "[]", "null", '{"id": ', "\0\xff", "x" * 2_000_000])
def test_a_broken_task_file_is_unread_and_its_task_stays_as_it_was(todos: Todos, content: str) -> None:
    """One bad file makes the source unknown, takes no task away, and hides no other."""
    todos.task("1").task("2")
    todos.gathered()
    todos.task("1", content)
    found = todos.gathered()
    assert [(item.id, item.state) for item in found.items] == [("t2", "open"), ("t1", "open")]
    assert [source for source in found.unread if "task 1" in source]
    assert assess(found.items, found.unread, SessionState(id=SESSION)).anything_owed


def test_a_tasks_folder_that_cannot_be_read_is_unread(todos: Todos, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown, never empty: what was known of it stays."""
    todos.task("1")
    todos.gathered()
    listed = os.listdir

    def refused(path: str) -> list[str]:
        if path == str(todos.folder):
            raise PermissionError(13, "denied", path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", refused)
    found = todos.gathered()
    assert [item.id for item in found.items] == ["t1"]
    assert len(found.unread) == 1
    assert "permission denied" in found.unread[0]


@pytest.mark.case("A101")
@pytest.mark.parametrize("session", ["../../etc", "a/../../b", "", "..", "x\0y", "é/ü", "a" * 5_000])
def test_a_session_id_never_leads_out_of_the_tasks_folder(session: str, tmp_path: pathlib.Path) -> None:
    """Every character that could be a path is replaced, as the host does it itself."""
    (tmp_path / "1.json").write_text('{"id":"1","subject":"secret","status":"pending"}')
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    folder = host_todos.tasks_folder(env, session)
    assert folder == "" or os.path.dirname(os.path.normpath(folder)) == str(tmp_path / "config" / "tasks")
    assert host_todos.read_todos(env, session).todos == ()


def test_a_planted_link_or_pipe_is_not_followed(todos: Todos, tmp_path: pathlib.Path) -> None:
    """A task file is an ordinary file or it is unread; a pipe never holds the hook up."""
    todos.task("1")
    (tmp_path / "secret.json").write_text('{"id":"2","subject":"secret","status":"pending"}')
    (todos.folder / "2.json").symlink_to(tmp_path / "secret.json")
    os.mkfifo(todos.folder / "3.json")
    found = todos.gathered()
    assert [item.title for item in found.items] == ["task 1"]
    assert len(found.unread) == 2


# --- of this chain -----------------------------------------------------------------------------


@pytest.mark.case("BR-074", "BR-079")
def test_todos_of_an_earlier_chain_are_dormant_shown_and_never_owed(todos: Todos) -> None:
    """Work that no prompt since has touched does not nag; touching it makes it this chain's."""
    todos.reports("TaskCreate", {"subject": "old"}, {"task": {"id": "1", "subject": "old"}})
    todos.reports("TaskCreate", {"subject": "new"}, {"task": {"id": "2", "subject": "new"}})
    todos.row = todos.row.replace(chain_started_at=todos.now)
    found = todos.gathered()
    assert [item.title for item in found.items] == ["new"]
    assert [item.title for item in found.dormant] == ["old"]
    assert todos.owed() == ["t2"]
    todos.reports("TaskUpdate", {"taskId": "1", "status": "in_progress"}, {"success": True})
    assert todos.owed() == ["t1", "t2"]
    todos.row = todos.row.replace(chain_started_at=todos.now + 1)
    assert todos.owed() == []
    todos.row = todos.row.replace(chain_started_at=0)
    assert todos.owed() == ["t1", "t2"]


def test_a_task_file_written_in_this_chain_counts_even_if_no_report_of_it_came(todos: Todos) -> None:
    """A background hook may be lost; the file's own time tells the same."""
    todos.row = todos.row.replace(chain_started_at=NIGHT)
    todos.task("1")
    todos.now = NIGHT - 3600
    todos.task("2")
    todos.now = NIGHT
    assert todos.owed() == ["t1"]
    todos.reports("TaskUpdate", {"taskId": "2", "owner": "me"}, {"success": True})
    assert todos.owed() == ["t1", "t2"]


def test_dropping_a_todo_of_an_earlier_chain_is_an_act_of_this_one(todos: Todos) -> None:
    """What was there when this prompt was given, and then was left out, is reported as removed."""
    todos.writes("a", "b")
    todos.row = todos.row.replace(chain_started_at=todos.now + 1)
    assert todos.stand() == []
    todos.writes("a")
    assert todos.stand() == [("t1", "a", "open"), ("t2", "b", "removed")]


def test_host_todos_come_after_the_lists_and_keep_apart_from_their_ids(todos: Todos, tmp_path: pathlib.Path) -> None:
    """A person may call an item of a list `t1` too."""
    path = tmp_path / "TODO.md"
    path.write_text("- [ ] mine <!-- sw:t1 -->\n", encoding="utf-8")
    todos.period = todos.period.replace(lists=(str(path),))
    todos.task("1")
    assert todos.stand() == [("t1", "mine", "open"), ("todo.t1", "task 1", "open")]
    items: tuple[Item, ...] = todos.gathered().items
    assert [item.source for item in items] == [str(path), "todos of this session"]
