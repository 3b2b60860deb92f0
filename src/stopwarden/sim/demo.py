"""The night that `stopwarden demo` plays: a throw-away home, a list, a scripted agent, and what came of each stop.

The agent is the kind that needs a guard: it says "all done" after one item of six, schedules its
look for three in the morning, asks a question that nobody can answer, wants a permission, runs into
an error of its provider, and does not feel like the last item. What the hook makes of it is real;
the verdicts told here are read back from the record, never foretold.

Nothing of the person's own is read or written, no time of day and no chance plays a part, so every
run tells the same. May not live here: the command line, and how a stop is printed (`cli.demo`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from stopwarden.clock import ZoneOf
from stopwarden.report.explanation import RULES
from stopwarden.sim.host import ApiError, Happened, ScriptedHost, environment
from stopwarden.store import journal, place
from stopwarden.store.sqlite import open_sqlite

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.core.events import Instant, Item, Verdict, Zone
    from stopwarden.sim.host import Agent

ZONE: Zone = ZoneOf(UTC, "Europe/London")  # in winter; so the demo needs no zone files
EVENING = int(datetime(2026, 11, 30, 22, 58, tzinfo=UTC).timestamp())
BEGINS = int(datetime(2026, 11, 30, 23, 3, tzinfo=UTC).timestamp())
RETURNS = int(datetime(2026, 12, 1, 7, 31, tzinfo=UTC).timestamp())
SESSION = "7e15c0de-0000-4000-8000-000000000001"

LIST = """\
# Tonight

- [ ] Parse dates that carry a zone
- [ ] Add tests for the zone parser
- [ ] Rename the setting tz to zone
- [ ] Publish a trial package
- [ ] Write the changelog entry
- [ ] Translate the manual page
"""
QUESTION = "Keep the old name tz as an alias?"
LOOK = "Look at TODO.md and go on with it."


@dataclass(frozen=True)
class ToldStop:
    """One stop as it was judged. `why` are sentences without their full stop; the first is the rule's."""

    at: Instant
    said: str  # the agent's last words
    blocked: bool
    kind: str
    rule: str
    why: tuple[str, ...]
    next_item: str = ""
    next_look: Instant | None = None
    reason: str = ""  # what the agent reads
    verdict: Verdict | None = field(default=None, repr=False)


class Demo:
    """The throw-away place; a context manager that leaves nothing behind. `play` runs the night."""

    def __enter__(self) -> Self:
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="stopwarden-demo-"))
        self.home, self.project = os.path.join(self.root, "home"), os.path.join(self.root, "project")
        self.machine = os.path.join(self.root, "machine")  # stands for /proc, /sys and /run: no battery, no programs
        for directory in (self.home, self.project, os.path.join(self.project, ".git"), self.machine):
            os.mkdir(directory, 0o700)
        self.list = os.path.join(self.project, "TODO.md")
        with open(self.list, "w", encoding="utf-8") as file:
            file.write(LIST)
        self.env = {**environment(self.home), "TZ": ZONE.name}
        self.host: ScriptedHost | None = None
        self._judged = 0  # the last verdict that was told
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def now(self) -> Instant:
        """The virtual clock."""
        return self.host.now if self.host is not None else EVENING

    def play(self, settings: str, leave: Callable[[], None], show: Callable[[Happened | ToldStop], None]) -> None:
        """The evening and the night, through the hooks in `settings`.

        The person leaves, by `leave`, while the agent is at its first item. Raises HostError where a hook fails.
        """

        def watch(happened: Happened) -> None:
            show(self._told(happened) if happened.kind == "stop" else happened)

        host = ScriptedHost(settings, self.env, self.project, now=EVENING, zone=ZONE, session=SESSION, watch=watch)
        self.host = host
        host.open()
        host.pass_time(30)
        host.converse(_reading(host), "Read the project and its TODO.md, then wait for me.", BEGINS)
        host.now = BEGINS
        host.converse(_working(host, self.list, leave), "Work through TODO.md.", RETURNS)
        host.now = RETURNS

    def _told(self, stop: Happened) -> ToldStop:
        """A stop with the verdict that was recorded for it, if it was judged at all."""
        store = open_sqlite(place.state_dir(self.env))
        try:
            rows = [row for row in store.verdicts() if row.id > self._judged]
            if not rows:
                unarmed = ("nobody is away, so Stopwarden looks on and says nothing",)
                return ToldStop(stop.at, stop.text, False, "idle", "away.not_away", unarmed)
            self._judged = rows[-1].id
            _, _, world, _, verdict = journal.decode(rows[-1].body, store.snapshot)
        finally:
            store.close()
        items = {item.id: item for item in world.items}
        return ToldStop(
            at=stop.at,
            said=stop.text,
            blocked=verdict.block,
            kind=verdict.kind,
            rule=verdict.rule,
            why=tuple(_why(verdict, items)),
            next_item=items[verdict.owed[0]].title if verdict.block and verdict.owed else "",
            next_look=verdict.wake.nominal if verdict.wake is not None and not verdict.block else None,
            reason=stop.told,
            verdict=verdict,
        )


def _why(verdict: Verdict, items: dict[str, Item]) -> list[str]:
    """Why the stop was answered so: the rule, the wakes that do not count, what else was decided with it."""
    said = [RULES.get(verdict.rule, verdict.rule)]
    if verdict.wake is None:
        said += [f'its wake "{finding.schedule}" does not count: it {finding.why}' for finding in verdict.rejected]
    for happening in verdict.happenings:
        title = items[happening.item].title if happening.item in items else happening.text
        if happening.kind == "item_parked":
            said.append(f'"{title}" is asked for once more, then it is kept for you')
        elif happening.kind == "item_handed_back":
            said.append(f'"{title}" did not move in several looks, so it goes back to you')
    return said


class _List:
    """The agent's hand on the list: it edits the file as any program would."""

    def __init__(self, host: ScriptedHost, path: str) -> None:
        self._host, self._path = host, path

    def mark(self, number: int, box: str, note: str = "", *, minutes: float = 0) -> None:
        """Puts a mark into the box of the n-th item, and a note behind its text."""
        with open(self._path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        place = [index for index, line in enumerate(lines) if line.startswith("- [")][number - 1]
        lines[place] = f"- [{box}] {lines[place][6:]}{note}"
        with open(self._path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self._host.use("Edit", {"file_path": self._path}, {"filePath": self._path}, minutes=minutes)


def _reading(host: ScriptedHost) -> Agent:
    """Before the person leaves."""
    yield ""
    host.use("Read", {"file_path": "TODO.md"}, {"type": "text"}, minutes=1)
    yield "I have read everything. Six items are open."


def _working(host: ScriptedHost, path: str, leave: Callable[[], None]) -> Agent:
    """The night's work, such as it is."""
    todo = _List(host, path)

    def shell(command: str, minutes: float) -> None:
        host.use("Bash", {"command": command}, {"stdout": "ok"}, minutes=minutes)

    yield ""
    todo.mark(1, "/", minutes=2)
    leave()
    shell("make test", 22)
    todo.mark(1, "x")
    yield "All done! Everything works."

    todo.mark(2, "/")
    shell("make test", 31)
    todo.mark(2, "x")
    late = host.schedule("0 3 1 12 *", LOOK, recurring=False)
    yield "I have scheduled a look for three o'clock. Until then!"

    host.unschedule(late)
    host.schedule("*/20 * * * *", LOOK, recurring=True)
    yield "Then I look every 20 minutes."

    todo.mark(3, "/", minutes=2)
    if host.ask(QUESTION, ("keep it as an alias", "remove it")):
        shell("git commit -m 'Rename tz to zone, keep tz as an alias'", 11)
    todo.mark(3, "x")
    yield "Renamed. I kept tz as an alias; that can be undone."

    todo.mark(4, "/", minutes=1)
    if host.permit("Bash", {"command": "make publish"}):
        todo.mark(4, " ", " (waits for person: may I publish?)", minutes=1)
    yield "I may not publish by myself, so I set that aside."

    todo.mark(5, "/", minutes=1)
    shell("git log --oneline", 5)
    yield ApiError("server_error", "API Error: 529 overloaded")

    todo.mark(5, "x", minutes=6)
    yield "The changelog entry is written."

    while True:  # it does not feel like the sixth, and says so at every wake
        shell("git status", 1)
        yield "Nothing new since my last look."
