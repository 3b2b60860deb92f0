"""The schedules of one session: five-field crons and self-paced wakeups, each a prompt that comes by itself.

A fire is told to the machine as such; what runs meanwhile, coalescing and order are its matter. Schedules start when
the session is loaded, not before. Durable ones are lines of the transcript: made, fired last, gone. After a
restart a one-shot whose time has passed fires at once, and a recurring one at its next time, since a look
that was missed is made up by the next. A recurring schedule ends after seven days.

May not live here: reading schedules (`core/cron`), which turn a fire gets.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING

from stopwarden.core import cron
from stopwarden.core import turn_events as ev
from stopwarden.core.bounds import WAKE_EXPIRY_DEFAULT
from stopwarden.core.errors import RefusedError, ScheduleError
from stopwarden.core.fires import Fire
from stopwarden.core.lineage import Task
from stopwarden.core.record import Record
from stopwarden.models.port import Text
from stopwarden.session.ports import Told
from stopwarden.store.transcripts import TranscriptLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal

    from stopwarden.core.events import Zone
    from stopwarden.session.actor import Session

JOBS_MAX = 50
LOOK_EVERY = 600.0  # seconds at most between two looks at the clock, which may be set or stand still in a sleep
WAKEUP_MIN, WAKEUP_MAX = 60, 3600  # seconds
DIALECT = "debian"


class Job(Record):
    """One schedule. `due` and `until` are seconds UTC; `until` 0: it fires once. `text` is empty for a wakeup."""

    id: str
    kind: Literal["cron", "wakeup"]
    prompt: str
    due: int
    text: str = ""
    until: int = 0
    durable: bool = False


class Schedules:
    """The schedules of one session. `write` puts lines into its transcript."""

    def __init__(self, now: Callable[[], float], zone: Zone, write: Callable[[Sequence[TranscriptLine]], None]) -> None:
        self._now, self._zone, self._write = now, zone, write
        self._jobs: dict[str, Job] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._running = False
        self.session: Session | None = None
        self.changed: Callable[[], None] = lambda: None

    # ---- what tools may do

    def cron(self, text: str, prompt: str, *, once: bool, durable: bool) -> Job:
        """A new schedule. Raises ScheduleError where it cannot be read or never fires, RefusedError for too many."""
        now = int(self._now())
        due = self._next(text, now)
        if due is None:
            raise ScheduleError(
                f"{text!r} does not fire within a year", kept="Nothing was scheduled", do="Check the day"
            )
        until = 0 if once else now + WAKE_EXPIRY_DEFAULT
        return self._add(Job(id=_name(), kind="cron", prompt=prompt, text=text, due=due, until=until, durable=durable))

    def wakeup(self, seconds: int, prompt: str) -> Job:
        """One fire, so many seconds from now. Raises RefusedError for too many."""
        due = int(self._now()) + seconds
        return self._add(Job(id=_name(), kind="wakeup", prompt=prompt, due=due, durable=True))

    def delete(self, id: str) -> None:
        """Raises RefusedError for an id that is not there."""
        if id not in self._jobs:
            raise RefusedError(f"There is no schedule {id!r}", kept="Nothing was deleted", do="See cron_list")
        self._gone(self._jobs[id])
        self.changed()
        self._set()

    def listed(self) -> list[Job]:
        """All of them, the next first."""
        return sorted(self._jobs.values(), key=lambda job: (job.due, job.id))

    def tasks(self) -> tuple[Task, ...]:
        """As background work: a wakeup that the chain made is waited for, a cron is not."""
        return tuple(Task(kind=job.kind, id=job.id, state="scheduled") for job in self._jobs.values())

    # ---- time

    def restore(self, jobs: Iterable[Job]) -> None:
        """Those that were durable before a restart."""
        self._jobs.update((job.id, job) for job in jobs)

    def start(self) -> None:
        """The session is whole: from here on schedules fire."""
        self._running = True
        now = int(self._now())
        for job in self.listed():
            if job.until and job.due <= now:
                self._again(job, now)
        if self._jobs:
            self.changed()
            self.look()

    def look(self) -> None:
        """Fire what is due."""
        now = int(self._now())
        for job in self.listed() if self._running else ():
            if job.due <= now:
                self._fire(job, now)
        self._set()

    def close(self) -> None:
        """Nothing fires any more; durable ones stay in the transcript."""
        self._running = False
        self._set()

    def _fire(self, job: Job, now: int) -> None:
        assert self.session is not None
        name = f"{job.id}-{job.due}"
        about = f"schedule {job.id}, {job.text}" if job.text else f"wakeup {job.id}, set by yourself"
        self.session.conversation.put(name, Text(text=f"[By itself: {about}]\n{job.prompt}"))
        self.session.watcher(Told(kind="background", text=f"{job.kind} {job.id} fires", detail={"task": job.id}))
        where = f"its prompt is: {' '.join(job.prompt.split())[:200]}"
        self.session.feed(ev.FireArrived(fire=Fire(id=name, job=job.id, kind=job.kind, where=where)))
        if job.until:
            self._again(job, now)
        else:
            self._gone(job)
        self.changed()

    def _again(self, job: Job, now: int) -> None:
        due = self._next(job.text, now)
        if due is None or due > job.until:
            self._gone(job)
        else:
            self._jobs[job.id] = job.replace(due=due)

    def _next(self, text: str, now: int) -> int | None:
        return cron.next_fire(cron.parse(text), now, self._zone, DIALECT)

    def _set(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running and self._jobs:
            wait = min(job.due for job in self._jobs.values()) - self._now()
            self._timer = asyncio.get_running_loop().call_later(min(max(wait, 0.0), LOOK_EVERY), self.look)

    # ---- on disk

    def _add(self, job: Job) -> Job:
        if len(self._jobs) >= JOBS_MAX:
            raise RefusedError(f"There are {JOBS_MAX} schedules", kept="Nothing was scheduled", do="Delete one")
        if job.durable:
            self._line("ScheduleMade", job.as_dict())
        self._jobs[job.id] = job
        self.changed()
        self._set()
        return job

    def _gone(self, job: Job) -> None:
        if job.durable:
            self._line("ScheduleGone", {"id": job.id})
        self._jobs.pop(job.id, None)

    def _line(self, kind: str, body: dict[str, object]) -> None:
        assert self.session is not None
        line = TranscriptLine(
            session=self.session.id, at=int(self._now() * 1_000), kind=kind, body=json.dumps(body, ensure_ascii=False)
        )
        self._write([line])


def made_in(lines: Iterable[TranscriptLine]) -> list[Job]:
    """The durable schedules that these lines leave."""
    jobs: dict[str, Job] = {}
    for line in lines:
        if line.kind == "ScheduleMade":
            job = Job(**json.loads(line.body))
            jobs[job.id] = job
        elif line.kind == "ScheduleGone":
            jobs.pop(json.loads(line.body)["id"], None)
    return list(jobs.values())


def _name() -> str:
    return f"job-{uuid.uuid4().hex[:8]}"
