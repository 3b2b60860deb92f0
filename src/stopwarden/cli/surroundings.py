"""What the machine itself tells about a night: will it sleep, and which agent programs are open.

Read from the kernel's own files only, no process is started. What is not there is unknown and is
not guessed: on a machine without these files no finding is made. May not live here: wording for a
person, anything about sessions that our hooks have seen.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from stopwarden.core.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stopwarden.core.events import Instant

TICKS = 100  # of a process's start time in /proc, by the kernel's fixed user-space unit
AGENTS = ("claude",)


class Power(Record):
    """How the machine is fed. `kept_awake`: something holds sleep off for as long as it runs."""

    has_battery: bool = False
    on_battery: bool = False
    percent: int | None = None
    kept_awake: bool = False


class Agent(Record):
    """An agent program that is open in a checkout."""

    pid: int
    started: Instant  # 0: not known


def power(system: str = "/") -> Power:
    """How the machine is fed, and whether something keeps it awake."""
    base = os.path.join(system, "sys/class/power_supply")
    batteries: list[str] = []
    plugged = False
    for name in _listed(base):
        where = os.path.join(base, name)
        kind = _read(where, "type")
        if kind == "Battery" and _read(where, "scope") != "Device":  # a mouse has one too
            batteries.append(where)
        elif kind in ("Mains", "USB", "Wireless") and _read(where, "online") == "1":
            plugged = True
    draining = any(_read(where, "status") == "Discharging" for where in batteries)
    percents = [int(text) for where in batteries if (text := _read(where, "capacity")).isdigit()]
    return Power(
        has_battery=bool(batteries),
        on_battery=bool(batteries) and (draining or not plugged),
        percent=min(percents, default=None),
        kept_awake=_kept_awake(system),
    )


def _kept_awake(system: str) -> bool:
    """Whether systemd-logind knows somebody who blocks sleep (its inhibitor files)."""
    base = os.path.join(system, "run/systemd/inhibit")
    for name in _listed(base):
        said = dict(line.partition("=")[::2] for line in _read(base, name).splitlines())
        if said.get("MODE") == "block" and "sleep" in said.get("WHAT", "").split(":"):
            return True
    return False


def agents(root: str, system: str = "/") -> list[Agent]:
    """The agent programs of this user that work in the checkout, oldest first."""
    found = []
    booted = _boot_time(system)
    for pid in _listed(os.path.join(system, "proc")):
        where = os.path.join(system, "proc", pid)
        if not pid.isdigit() or not _is_agent(where):
            continue
        try:
            cwd = os.readlink(os.path.join(where, "cwd"))
        except OSError:
            continue
        if f"{cwd}/".startswith(f"{root}/"):
            found.append(Agent(pid=int(pid), started=_started(where, booted)))
    return sorted(found, key=lambda agent: (agent.started, agent.pid))


def _is_agent(where: str) -> bool:
    words = _read(where, "cmdline").split("\0")
    return any(os.path.basename(word) in AGENTS for word in words[:2])


def _started(where: str, booted: Instant) -> Instant:
    fields = _read(where, "stat").rpartition(")")[2].split()
    return booted + int(fields[19]) // TICKS if booted and len(fields) > 19 and fields[19].isdigit() else 0


def _boot_time(system: str) -> Instant:
    found = re.search(r"^btime ([0-9]+)$", _read(os.path.join(system, "proc"), "stat"), re.MULTILINE)
    return int(found[1]) if found else 0


def _listed(path: str) -> Iterator[str]:
    try:
        yield from sorted(os.listdir(path))
    except OSError:
        return


def _read(*parts: str) -> str:
    """A small file of the kernel, "" where there is none."""
    try:
        with open(os.path.join(*parts), "rb") as file:
            return file.read(64 * 1024).decode("utf-8", "replace").strip("\n\0 ")
    except OSError:
        return ""
