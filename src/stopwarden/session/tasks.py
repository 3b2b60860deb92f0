"""Background work of one session: commands that run beside it, what they have to tell, and their end.

Each piece of work is a `core.lineage.Task`, told to the machine whenever the list changes. A result is told before
its task leaves the list, because it is classified by the list of that moment. Its words are in the conversation
before the machine hears of it; the whole output, within a bound, is a file that `task_output` reads, also
after a restart. Everything that still runs is ended with the session, with its whole process group.

May not live here: when a result is delivered, and whether the guard waits for it (`core/`).
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import uuid
from typing import TYPE_CHECKING

from stopwarden.core import turn_events as ev
from stopwarden.core.errors import RefusedError
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from stopwarden.models.port import Text
from stopwarden.session.ports import Told
from stopwarden.session.tools.contract import plain, shortened
from stopwarden.session.tools.shell import Kept, end_group

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from stopwarden.core.results import ResultKind
    from stopwarden.session.actor import Session
    from stopwarden.session.agents import Agents

RUNNING_MAX = 20  # pieces of work at once
FILE_MAX = 8 * 1024 * 1024  # bytes of output in a file; of what is longer, the end is added
TOLD_MAX = 4_000  # characters of output in a result; the rest is read with task_output
PULSE_EVERY = 5.0  # seconds between two pulses of a monitor
PULSE_MAX = 2_000  # characters of a pulse
NAME = re.compile(r"[a-z]+-[0-9a-f]{8}")


class Work:
    """One piece of background work."""

    def __init__(self, task: Task, about: str) -> None:
        self.task, self.about = task, about
        self.kept = Kept()
        self.doing: asyncio.Task[None] | None = None
        self.stopped = False
        self.pulses = 0
        self.lines: list[str] = []  # of a monitor, not told yet
        self.alarm: asyncio.TimerHandle | None = None


class Background:
    """The background work of one session.

    `outputs` is the directory of its files, made at first use; empty: one that goes with the session.
    """

    def __init__(self, outputs: str, pulse_every: float = PULSE_EVERY) -> None:
        self._outputs, self._pulse_every = outputs, pulse_every
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._works: dict[str, Work] = {}
        self._rounds: dict[str, int] = {}  # how often a task has ended: a sub-agent goes on
        self._closed = False
        self.session: Session | None = None
        self.scheduled: Callable[[], tuple[Task, ...]] = tuple
        self.agents: Agents | None = None

    # ---- what tools may do

    async def command(self, command: str, cwd: str, kind: ResultKind = "shell") -> str:
        """Start a command; answers its task's id. `kind` monitor: its lines are told while it runs.

        Raises RefusedError when too many run, and OSError when it cannot be started.
        """
        self.room()
        program = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", command),
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        task = Task(kind=kind, id=f"{kind}-{uuid.uuid4().hex[:8]}")
        return self.begin(task, command, lambda work: self._run(work, program)).task.id

    def listed(self) -> list[tuple[Task, str]]:
        """What runs, with what each is about, in the order it was begun."""
        return [(work.task, work.about) for work in self._works.values()]

    def output(self, task: str) -> str:
        """What a task has put out so far, or had when it ended. Raises RefusedError for a task nobody knows."""
        work = self._works.get(task)
        if work is not None:
            return plain(work.kept.data)
        if NAME.fullmatch(task):
            try:
                with open(self._file(task), "rb") as kept:
                    return plain(kept.read(FILE_MAX * 2))
            except FileNotFoundError:
                pass
        raise RefusedError(f"There is no task {task!r}", kept="Nothing was read", do="See task_list")

    async def stop(self, task: str) -> None:
        """End a task and all it started; its result says so. Raises RefusedError for one that does not run."""
        work = self._works.get(task)
        if work is None or work.doing is None:
            raise RefusedError(f"No task {task!r} runs", kept="Nothing was ended", do="See task_list")
        work.stopped = True
        work.doing.cancel()
        await asyncio.gather(work.doing, return_exceptions=True)

    async def close(self) -> None:
        """End everything; nothing is told any more."""
        self._closed = True
        doing = [work.doing for work in self._works.values() if work.doing is not None]
        for one in doing:
            one.cancel()
        await asyncio.gather(*doing, return_exceptions=True)
        if self.agents is not None:
            await self.agents.close()
        if self._own is not None:
            self._own.cleanup()

    # ---- one piece of work

    def room(self) -> None:
        """Raises RefusedError when too many run, or the session is over."""
        if len(self._works) >= RUNNING_MAX or self._closed:
            raise RefusedError(
                f"{len(self._works)} tasks run already", kept="Nothing was started", do="Wait for one, or stop one"
            )

    def runs(self, task: str) -> bool:
        """Whether it has not ended yet."""
        return task in self._works

    def begin(self, task: Task, about: str, run: Callable[[Work], Coroutine[Any, Any, None]]) -> Work:
        """What `run` does is a task from here on; at its end it calls `ended`."""
        work = self._works[task.id] = Work(task, about)
        work.doing = asyncio.get_running_loop().create_task(run(work))
        self.changed()
        return work

    async def _run(self, work: Work, program: asyncio.subprocess.Process) -> None:
        """A command to its end."""
        id, written = work.task.id, 0
        assert program.stdout is not None
        try:
            handle = os.open(self._file(id), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(handle, "wb", buffering=0) as file:
                while piece := await program.stdout.read(65_536):
                    work.kept.take(piece)
                    written += file.write(piece[: max(0, FILE_MAX - written)])
                    if work.task.kind == "monitor":
                        self._heard(work, piece)
                if work.kept.size > written:
                    file.write(b"\n[... left out ...]\n" + work.kept.tail)
            await program.wait()
            how = f"exit code {program.returncode}"
            status = "completed" if program.returncode == 0 else "failed"
        except asyncio.CancelledError:
            how, status = "stopped", "cancelled"
        except OSError as failed:
            how, status = f"its output could not be kept: {failed.strerror}", "failed"
        finally:
            await end_group(program)
        self.ended(work, status, how)

    def ended(self, work: Work, status: str, how: str) -> None:
        """The result, then the list without the task."""
        if work.alarm is not None:
            work.alarm.cancel()
        rounds = self._rounds[work.task.id] = self._rounds.get(work.task.id, 0) + 1
        name = f"{work.task.id}-end-{rounds}"
        text = shortened(plain(work.kept.data), TOLD_MAX) or "[no output]"
        if work.task.kind == "agent":
            with open(os.open(self._file(work.task.id), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(work.kept.data)
        self._tell(work, name, f"has ended ({how})", text, status=status, interim=False)
        del self._works[work.task.id]
        self.changed()

    def _heard(self, work: Work, piece: bytes) -> None:
        """Lines of a monitor: the first are told at once, those of the next seconds together."""
        work.lines.append(plain(piece))
        if work.alarm is None:
            self._pulse(work)

    def _pulse(self, work: Work) -> None:
        work.alarm = None
        if not work.lines:
            return
        text, work.lines = shortened("".join(work.lines), PULSE_MAX), []
        work.pulses += 1
        work.alarm = asyncio.get_running_loop().call_later(self._pulse_every, self._pulse, work)
        self._tell(work, f"{work.task.id}-{work.pulses}", "says", text, status="running", interim=True)

    # ---- telling

    def _tell(self, work: Work, name: str, what: str, text: str, *, status: str, interim: bool) -> None:
        if self._closed or self.session is None or work.task.foreground:
            return
        task = work.task
        where = f"task_output with task {task.id}"
        words = f"[Background {task.kind} {task.id} {what}: {work.about[:200]}]\n{text}\n[All of it: {where}.]"
        self.session.conversation.put(name, Text(text=words))
        told = {"task": task.id, "kind": task.kind, "status": status}
        self.session.watcher(Told(kind="background", text=f"{task.kind} {task.id} {what}", detail=told))
        result = Result(id=name, kind=task.kind, task=task.id, status=status, where=where, interim=interim)  # type: ignore[arg-type]
        self.session.feed(ev.ResultArrived(result=result))

    def changed(self) -> None:
        """The list of this session's background work, schedules among it, is another one."""
        if not self._closed and self.session is not None:
            works = tuple(work.task for work in self._works.values())
            self.session.feed(ev.BackgroundChanged(tasks=(*works, *self.scheduled())))

    def _file(self, task: str) -> str:
        if not self._outputs:
            self._own = tempfile.TemporaryDirectory(prefix="stopwarden-")
            self._outputs = self._own.name
        os.makedirs(self._outputs, mode=0o700, exist_ok=True)
        return f"{self._outputs}/{task}.txt"
