"""The host's own todos of a session: Claude Code's tasks on disk, and what its todo tools reported.

Theory of operation. Two tools, two places. Tasks (TaskCreate, TaskUpdate) lie on disk as one JSON
file each, below `$CLAUDE_CONFIG_DIR` or `~/.claude`, in `tasks/LIST/`; a list is named after its
session, or by `CLAUDE_CODE_TASK_LIST_ID`. TodoWrite leaves no file: it hands over the whole list
each time, so what a later write leaves out has to be remembered. `fold` keeps, in one compact JSON
text a session, what the tools reported: it is all there is of TodoWrite, and of tasks it tells
when each was touched and which were deleted. Disk wins where both speak. Items are called `t3`
after task 3; todos of TodoWrite are numbered as they appear. Since TodoWrite rewrites the whole
list, only a todo that keeps half its words counts as reworded: any other was dropped.

What was not touched in the current chain is *dormant*: shown, never owed. A file that cannot be
read leaves its task as it was last seen, and makes the source unread.

May not live here: when the tools were called (`hook`), the state at the period's start
(`work.identity`), Markdown.
"""

from __future__ import annotations

import os
import stat

from stopwarden import wire
from stopwarden.core.record import Record
from stopwarden.work.checklist import Reading, is_id
from stopwarden.work.identity import match
from stopwarden.work.titles import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from stopwarden.core.events import Instant, ItemState

SOURCE = "todos of this session"
TASK_MAX = 1024 * 1024  # bytes of one task file
TASKS_MAX = 2_000  # files read of one list
KEPT_MAX = 500  # todos that TodoWrite dropped or finished long ago

_STATES: dict[str, ItemState] = {
    "pending": "open",
    "in_progress": "doing",
    "completed": "done",
    "cancelled": "dropped",
    "deleted": "removed",
}


class Todo(Record):
    """One todo of the host, from whichever of its tools."""

    id: str
    title: str
    state: ItemState = "open"
    touched: Instant = 0
    blocked_by: tuple[str, ...] = ()  # ids


class HostTodos(Record):
    """All todos of a session, in order: what is blocked by another stands after it."""

    todos: tuple[Todo, ...] = ()
    unread: tuple[str, ...] = ()  # what could not be read, and why
    unread_ids: tuple[str, ...] = ()  # of which todos

    def reading(self) -> Reading:
        """The same as a list is read, to be tracked across readings."""
        count = len(self.todos)
        return Reading(
            titles=[todo.title for todo in self.todos],
            states=[todo.state for todo in self.todos],
            lines=[0] * count,
            parents=[-1] * count,
            headings=[""] * count,
            waits=[None] * count,
            whys=[""] * count,
            ids=[todo.id for todo in self.todos],
            last_lines={},
        )


# --- what the tools report -------------------------------------------------------------------


def fold(state_json: str, tool_name: str, tool_input: object, tool_response: object, at: Instant) -> str:
    """What is known after one more result of a todo tool. Anything that is not understood changes nothing."""
    known = _Known(state_json)
    given = tool_input if isinstance(tool_input, dict) else {}
    answered = tool_response if isinstance(tool_response, dict) else {}
    if tool_name == "TodoWrite":
        todos = given.get("todos")
        _todos_written(known, todos if isinstance(todos, list) else answered.get("newTodos"), at)
    elif tool_name == "TaskCreate" and len(known.tasks) < TASKS_MAX:
        made = answered.get("task")
        made = made if isinstance(made, dict) else {}
        number = _number(made.get("id"))
        if number:
            known.tasks[number] = [_title(made.get("subject") or given.get("subject"), number), "open", at, []]
    elif tool_name == "TaskUpdate" and answered.get("success") is not False:
        _task_updated(known, given, answered, at)
    return known.json()


class _Known:
    """The folded state, taken apart: tasks by number, todos in order, todos no longer listed."""

    def __init__(self, state_json: str) -> None:
        self.tasks: dict[str, list[Any]] = {}  # number: title, state, touched, numbers that block it
        self.todos: list[list[Any]] = []  # id, title, state, touched
        self.gone: list[list[Any]] = []
        self.last = 0
        try:
            told = wire.loads(state_json) if state_json else {}
            self.tasks, self.todos, self.gone, self.last = told["tasks"], told["todos"], told["gone"], told["last"]
        except (ValueError, KeyError, TypeError):
            pass

    def json(self) -> str:
        return wire.dumps({"tasks": self.tasks, "todos": self.todos, "gone": self.gone, "last": self.last})


def _todos_written(known: _Known, written: object, at: Instant) -> None:
    if not isinstance(written, list):
        return
    said = []
    for todo in written:
        if isinstance(todo, dict) and isinstance(todo.get("content"), str):
            said.append((one_line(todo["content"]) or "(no words)", _STATES.get(str(todo.get("status")), "open")))
    listed = len(known.todos)
    old = [*known.todos, *known.gone]
    same = match([todo[1] for todo in known.todos], [text for text, _ in said], [todo[1] for todo in known.gone])
    todos = []
    for (text, state), was in zip(said, same, strict=True):
        if was < 0:
            known.last += 1
        todos.append([old[was][0] if was >= 0 else f"t{known.last}", text, state, at])
    kept = set(same)
    gone = [todo for place, todo in enumerate(old) if place >= listed and place not in kept]
    for place, (name, text, state, touched) in enumerate(known.todos):
        if place not in kept:
            over = state in ("done", "dropped")
            gone.append([name, text, state if over else "removed", touched if over else at])
    known.todos, known.gone = todos, gone[-KEPT_MAX:]


def _task_updated(known: _Known, given: dict[str, Any], answered: dict[str, Any], at: Instant) -> None:
    number = _number(given.get("taskId")) or _number(answered.get("taskId"))
    if not number:
        return
    task = known.tasks.setdefault(number, [f"task {number}", "open", at, []])
    task[0] = _title(given.get("subject") or task[0], number)
    change = answered.get("statusChange")
    status = given.get("status") or (change.get("to") if isinstance(change, dict) else None)
    if isinstance(status, str):
        task[1] = _STATES.get(status, "open")
    task[2] = at
    blockers = given.get("addBlockedBy")
    if isinstance(blockers, list):
        task[3] = [*task[3], *(one for one in map(_number, blockers) if one and one not in task[3])][:100]
    blocked = given.get("addBlocks")
    for other in map(_number, blocked if isinstance(blocked, list) else []):
        if other in known.tasks and number not in known.tasks[other][3]:
            known.tasks[other][3] = [*known.tasks[other][3], number][:100]


# --- what is there ---------------------------------------------------------------------------


def read_todos(env: Mapping[str, str], session_id: str, folded: str = "") -> HostTodos:
    """The todos of a session, from disk and from what its tools reported. Never raises."""
    known = _Known(folded)
    tasks = {number: _todo_of(number, *task) for number, task in known.tasks.items() if is_id(number)}
    on_disk, unread, unread_ids = _tasks_on_disk(env, session_id)
    for number, (todo, internal) in on_disk.items():
        told = tasks.pop(number, None)
        if not internal:
            tasks[number] = todo.replace(touched=max(todo.touched, told.touched)) if told else todo
    if on_disk:  # what the tools reported and the disk no longer has was taken away
        for number, todo in tasks.items():
            if number not in on_disk and number not in unread_ids and todo.state in ("open", "doing"):
                tasks[number] = todo.replace(state="removed")
    todos = list(_in_order(tasks))
    taken = {todo.id for todo in todos}
    for name, title, state, touched in [*known.todos, *known.gone]:
        if name in taken:  # tasks and TodoWrite in one session: never seen, but ids stay unique
            name = f"{name}w"
        todos.append(Todo(id=name, title=title, state=state, touched=touched))
    return HostTodos(todos=tuple(todos), unread=tuple(unread), unread_ids=tuple(f"t{one}" for one in unread_ids))


def tasks_folder(env: Mapping[str, str], session_id: str) -> str:
    """Where the host keeps the tasks of a session; "" if it cannot be told. Never outside `tasks/`."""
    name = env.get("CLAUDE_CODE_TASK_LIST_ID") or session_id
    home = env.get("CLAUDE_CONFIG_DIR") or (f"{env['HOME']}/.claude" if env.get("HOME") else "")
    safe = "".join(char if char.isascii() and (char.isalnum() or char in "_-") else "-" for char in name)
    if not home or not safe or len(safe) > 200:
        return ""
    return f"{home}/tasks/{safe}"


def _tasks_on_disk(
    env: Mapping[str, str], session_id: str
) -> tuple[dict[str, tuple[Todo, bool]], list[str], list[str]]:
    """Tasks by number, each with whether the host hides it; what could not be read; and the numbers of that."""
    tasks: dict[str, tuple[Todo, bool]] = {}
    unread: list[str] = []
    numbers: list[str] = []
    folder = tasks_folder(env, session_id)
    try:
        names = os.listdir(folder) if folder else []
    except (FileNotFoundError, NotADirectoryError):
        return tasks, unread, numbers
    except (OSError, ValueError) as error:
        return tasks, [f"{SOURCE} ({_why(error)})"], numbers
    names = sorted(name for name in names if name.endswith(".json") and is_id(name[:-5]))
    if len(names) > TASKS_MAX:
        unread.append(f"{SOURCE} (more than {TASKS_MAX} tasks)")
    for name in names[:TASKS_MAX]:
        number = name[:-5]
        try:
            told, touched = _task_file(f"{folder}/{name}")
        except FileNotFoundError:
            continue  # deleted since we looked
        except (OSError, ValueError) as error:
            unread.append(f"{SOURCE}, task {number} ({_why(error)})")
            numbers.append(number)
            continue
        metadata = told.get("metadata")
        blockers = told.get("blockedBy")
        todo = _todo_of(
            number,
            _title(told.get("subject"), number),
            _STATES.get(str(told.get("status")), "open"),
            touched,
            blockers if isinstance(blockers, list) else [],
        )
        tasks[number] = (todo, isinstance(metadata, dict) and bool(metadata.get("_internal")))
    return tasks, unread, numbers


def _task_file(path: str) -> tuple[dict[str, Any], Instant]:
    """What a task file says, and when it was written. Raises OSError or ValueError."""
    for attempt in (1, 2):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            there = os.fstat(descriptor)
            if not stat.S_ISREG(there.st_mode) or there.st_size > TASK_MAX:
                raise ValueError("no ordinary file" if there.st_size <= TASK_MAX else "too large")
            text = os.read(descriptor, TASK_MAX)
        finally:
            os.close(descriptor)
        try:
            told = wire.loads(text)
        except ValueError:
            if attempt == 1:  # the host may be in the middle of writing it
                continue
            raise ValueError("no whole JSON text") from None
        if not isinstance(told, dict):
            raise ValueError("not what a task looks like")
        return told, int(there.st_mtime)
    raise AssertionError("unreachable")


def _in_order(tasks: Mapping[str, Todo]) -> Iterator[Todo]:
    """Tasks by number, each after those that block it; a circle of them is broken at its lowest number."""
    placed: set[str] = set()
    by_id = {todo.id: todo for todo in tasks.values()}
    for number in sorted(tasks, key=lambda number: (not number.isdigit(), len(number), number)):
        stack = [tasks[number]]
        climbing = {tasks[number].id}
        while stack:
            todo = stack[-1]
            blocker = next((b for b in todo.blocked_by if b in by_id and b not in placed and b not in climbing), None)
            if blocker is not None:
                climbing.add(blocker)
                stack.append(by_id[blocker])
                continue
            stack.pop()
            if todo.id not in placed:
                placed.add(todo.id)
                yield todo


def _todo_of(number: str, title: str, state: ItemState, touched: Instant, blockers: list[Any]) -> Todo:
    blocked_by = tuple(f"t{one}" for one in map(_number, blockers[:100]) if one)
    return Todo(id=f"t{number}", title=title, state=state, touched=touched, blocked_by=blocked_by)


def _number(given: object) -> str:
    """A task's number as the host gives it ("3"; an integer is taken too), "": none that could be one."""
    number = str(given) if isinstance(given, (str, int)) and not isinstance(given, bool) else ""
    return number if is_id(number) else ""


def _title(given: object, number: str) -> str:
    return (one_line(given) if isinstance(given, str) else "") or f"task {number}"


def _why(error: Exception) -> str:
    return (os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)).lower()
