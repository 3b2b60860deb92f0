"""Which process the agent program is: the nearest above this hook that is no shell.

Hosts start hooks through a shell that may stay between. Runs at every event, so it imports
`posix` alone. May not live here: whether that process still lives (`machine`).
"""

from __future__ import annotations

import posix

SHELLS = (b"sh", b"bash", b"dash", b"ash", b"ksh", b"zsh", b"fish", b"busybox", b"env", b"timeout", b"nice")
LEVELS = 5  # processes that may stand in between


def program() -> int:
    """Its pid; that of our own parent where the system does not tell more; 0 where only shells are found."""
    pid = posix.getppid()
    for _ in range(LEVELS):
        name, above = _stat(pid)
        if name not in SHELLS:
            return pid
        pid = above
    return 0


def _stat(pid: int) -> tuple[bytes, int]:
    """The name of a process and its parent's pid; no name where they cannot be read."""
    try:
        file = posix.open(f"/proc/{pid}/stat", posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            told = posix.read(file, 512)
        finally:
            posix.close(file)
        name, _, rest = told[told.index(b"(") + 1 :].rpartition(b")")
        return name, int(rest.split()[1])
    except (OSError, ValueError, IndexError):
        return b"", 0
