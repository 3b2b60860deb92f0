"""What the machine says of itself and its processes: the boot clock, and who is alive.

The boot clock neither steps with the wall clock nor stands still while the machine sleeps. A
process is known by its pid together with its start time, because pids are used again.
"""

from __future__ import annotations

import os
import time


def boot_seconds() -> float:
    """Seconds since the machine was started."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot_id() -> str:
    """A name for this start of the machine, "" where the system gives none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def started_ticks(pid: int | None = None) -> int:
    """When a process (this one) was started, in hundredths of a second since boot; 0 if it cannot be told."""
    try:
        with open(f"/proc/{pid or 'self'}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def is_alive(pid: int, started: str) -> bool:
    """Whether the process with this pid and start time (see `started_ticks`) still runs."""
    ticks = started_ticks(pid)
    if ticks:
        return str(ticks) == started
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return started in ("", "0")
