"""The hook as `install` writes it, whole processes, against a bare interpreter of the same kind.

Each round starts every program once, and right before or after it the bare interpreter, so that
whatever else the machine does meets both alike. Before a judged stop the list has been edited and
a few tools were used, as in a real night. What is measured is the process from its start to its
end, its payload on standard input; what the disk costs is part of it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.figure import Figure, ratio
from stopwarden import wire
from stopwarden.core.bounds import HOUR, Policy
from stopwarden.core.events import AwayPeriod, Reservation
from stopwarden.hosts import launcher
from stopwarden.store import marker, place
from stopwarden.store.port import LedgerItem
from stopwarden.store.sqlite import open_sqlite
from stopwarden.work import checkout

if TYPE_CHECKING:
    from collections.abc import Callable

PEER = "python -I -S -c pass"
UNBOUND = Policy(blocks_without_tools=0, blocks_without_progress=1_000, blocks_an_hour=1_000, blocks_a_period=100_000)
TOOLS_BEFORE_A_STOP = 5
WARMING_UP = 2  # rounds that do not count


@dataclass(frozen=True)
class _Program:
    """A program to start: what prepares it (unmeasured), and what its answer must hold to count."""

    name: str
    limit: float
    command: tuple[str, ...]
    payload: bytes
    env: dict[str, str]
    prepare: Callable[[], None] = lambda: None
    holds: bytes = b""


class Machine:
    """A throw-away home with the launcher installed, and where wanted an away period over a list of work."""

    def __init__(self, root: str, name: str, *, items: int = 0, ledger: int = 0, holds: int = 0) -> None:
        self.home, self.project = os.path.join(root, name), os.path.join(root, name, "project")
        os.makedirs(os.path.join(self.project, ".git"))
        self.env = {"HOME": self.home, "PATH": os.defpath, "TZ": "Europe/London", "CLAUDE_CODE_ENTRYPOINT": "cli"}
        self.state = place.prepare(self.env)
        self.python = launcher.interpreter()
        launcher.write(self.env, self.python)
        self.list = os.path.join(self.project, "TODO.md")
        self._items, self._edits = items, 0
        if items:
            self._go_away()
        if ledger:
            self._fill(ledger, holds)

    def command(self, word: str) -> tuple[str, ...]:
        """The command line of a hook, as it stands in the settings."""
        return (self.python, "-I", "-S", launcher.path(self.env), word)

    def payload(self, event: str, **fields: Any) -> bytes:
        """A payload as Claude Code writes it."""
        known = {
            "session_id": "5d0c7a52-0000-4000-8000-000000000001",
            "transcript_path": f"{self.home}/.claude/projects/p/5d0c7a52.jsonl",
            "cwd": self.project,
            "prompt_id": "684eeac1-3584-4e83-8322-48d853f18810",
            "permission_mode": "acceptEdits",
            "effort": {"level": "medium"},
            "hook_event_name": event,
        }
        return json.dumps(known | fields).encode()

    def stop(self, wakes: int = 0) -> bytes:
        """A stop with so many scheduled wakes of every kind, the last of which comes in time."""
        schedules = ("0 9 * * 1-5", "30 4 1,15 * *", "7 3 * * *", "*/10 2 * * *", "15 */6 * * 6")
        crons = [
            {
                "id": f"{number:08x}",
                "schedule": schedules[number % len(schedules)],
                "recurring": number % 3 > 0,
                "prompt": f"look again, number {number}",
            }
            for number in range(wakes - 1)
        ]
        crons += [{"id": "ba56762a", "schedule": "*/20 * * * *", "recurring": True, "prompt": "go on"}] * (wakes > 0)
        return self.payload(
            "Stop",
            stop_hook_active=False,
            last_assistant_message="All done. " * 40,
            background_tasks=[],
            session_crons=crons,
        )

    def tool(self) -> bytes:
        """A tool was used."""
        return self.payload(
            "PostToolUse",
            tool_name="Bash",
            tool_input={"command": "make test"},
            tool_response={"stdout": "ok\n" * 200, "stderr": "", "interrupted": False},
            tool_use_id="toolu_49159217953d47b08e7555eb",
            duration_ms=1100,
        )

    def work(self) -> None:
        """The agent works between two stops: tools are used, and the list is edited."""
        for _ in range(TOOLS_BEFORE_A_STOP):
            subprocess.run(self.command("post-tool"), input=self.tool(), env=self.env, check=True)
        self._edits += 1
        doing = self._edits % self._items
        with open(self.list, "w", encoding="utf-8") as file:
            file.writelines(
                f"- [{'/' if number == doing else ' '}] write the parser for thing number {number}\n"
                for number in range(self._items)
            )

    def _fill(self, ledger: int, holds: int) -> None:
        """A ledger in which a third of the items need an earlier one, and sessions that hold some of it."""
        now, project = int(time.time()), checkout.project_key(self.project)
        copy = checkout.copy_key(self.project, self.state)
        store = open_sqlite(self.state)
        with store.transaction():
            for number in range(1, ledger + 1):
                item = LedgerItem(
                    project=project,
                    title=f"write the parser for thing number {number}",
                    priority=number % 5,
                    needs=(number - 1,) if number % 3 == 0 else (),
                    created_at=now - ledger + number,
                )
                store.add_ledger_item(item)
            for number in range(1, holds + 1):
                held = Reservation(
                    item=f"w{5 * number}",
                    place=project,
                    project=project,
                    session=f"session-{number // 10}",
                    copy=copy if number % 4 == 0 else f"{number % 7:032x}",
                    claimed_at=now,
                    expires_at=now + 8 * HOUR,
                    lease=8 * HOUR,
                    token=1,
                    footprint=(f"src/part{number}",),
                )
                store.save_reservation(held)
        store.close()

    def _go_away(self) -> None:
        now = int(time.time())
        period = AwayPeriod(
            id="bench", since=now - 60, until=now + 8 * HOUR, scope="everywhere", root=self.project, lists=(self.list,)
        )
        store = open_sqlite(self.state)
        marker.arm(store, self.state, period, wire.dumps(UNBOUND.as_dict()))
        store.close()


def figures(rounds: int = 40) -> list[Figure]:
    """Every figure of the hook."""
    launcher.compile_package()
    with tempfile.TemporaryDirectory(prefix="stopwarden-bench-") as root:
        programs = _programs(root)
        bare = (launcher.interpreter(), "-I", "-S", "-c", "pass")
        times: dict[str, tuple[list[float], list[float]]] = {program.name: ([], []) for program in programs}
        for number in range(rounds + WARMING_UP):
            for program in programs:
                program.prepare()
                pair = [(program.command, program.payload, program.holds), (bare, b"", b"")]
                order = (0, 1) if number % 2 else (1, 0)  # whoever comes second finds warmer caches
                for one in order:
                    seconds = _seconds(*pair[one], program.env)
                    if number >= WARMING_UP:
                        times[program.name][one].append(seconds)
    return [
        Figure(
            program.name,
            PEER,
            ratio(*times[program.name]),
            program.limit,
            f"{statistics.median(times[program.name][0]) * 1000:.1f} ms",
        )
        for program in programs
    ]


def _programs(root: str) -> list[_Program]:
    unarmed, hundred = Machine(root, "unarmed"), Machine(root, "hundred", items=100)
    many = Machine(root, "many", items=10_000)
    fleet = Machine(root, "fleet", items=100, ledger=10_000, holds=200)
    blocked = b'"decision":"block"'
    stop, tool = unarmed.command("stop"), unarmed.command("post-tool")
    return [
        _Program("Stop, nothing armed", 1.5, stop, unarmed.stop(1), unarmed.env),
        _Program("PostToolUse, nothing armed", 1.6, tool, unarmed.tool(), unarmed.env),
        _Program("PostToolUse, away", 1.6, hundred.command("post-tool"), hundred.tool(), hundred.env),
        _Program(
            "Stop, away, 100 items edited, 50 wakes",
            6.0,
            hundred.command("stop"),
            hundred.stop(50),
            hundred.env,
            hundred.work,
            blocked,
        ),
        _Program(
            "Stop, away, 10,000 items edited, 50 wakes",
            8.0,
            many.command("stop"),
            many.stop(50),
            many.env,
            many.work,
            blocked,
        ),
        _Program(
            "Stop, away, 10,000 in the ledger, 200 holds",
            8.0,
            fleet.command("stop"),
            fleet.stop(50),
            fleet.env,
            fleet.work,
            blocked,
        ),
    ]


def _seconds(command: tuple[str, ...], payload: bytes, holds: bytes, env: dict[str, str]) -> float:
    """How long one process takes, from its start until it has ended."""
    began = time.perf_counter()
    done = subprocess.run(command, input=payload, capture_output=True, env=env)
    took = time.perf_counter() - began
    if done.returncode != 0 or done.stderr or holds not in done.stdout or (done.stdout and not holds):
        raise SystemExit(f"{' '.join(command)} answered {done.returncode} {done.stdout!r} {done.stderr!r}")
    return took
