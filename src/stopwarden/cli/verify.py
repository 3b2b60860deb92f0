"""Runs an item's verify command and tells how it ended.

The command is a shell command of whoever added the item; it runs in the checkout's root. Two
failures are *the same* when exit code and output agree, lengths of time and addresses apart: a
command that fails the same way twice will not pass by being run a third time.

Never on the hook's path. May not live here: what a failure means for the item (`work.ledger`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stopwarden.core.bounds import MINUTE
from stopwarden.core.digest import digest
from stopwarden.core.record import Record
from stopwarden.report.moments import length
from stopwarden.work import programs

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMIT = 10 * MINUTE
LONGEST = 6 * 60 * MINUTE
KEEP = 64 * 1024  # bytes of output
TAIL_LINES = 15
VERIFYING = "STOPWARDEN_VERIFYING"  # set for the command, so that it does not verify itself
_VARYING = re.compile(
    rb"\b\d+(?:[.,]\d+)?\s?(?:ns|us|ms|s|secs?|seconds?|minutes?)\b|0x[0-9a-fA-F]+|\b\d+:\d\d:\d\d(?:[.,]\d+)?\b"
)


class Outcome(Record):
    """How a verify command ended."""

    passed: bool
    how: str  # "exit code 1", "killed by signal 9", "still running after 10 min"
    tail: str = ""  # the last lines of its output
    digest: str = ""  # of a failure


def verify(command: str, *, item: str, root: str, env: Mapping[str, str], limit: int = LIMIT) -> Outcome:
    """Runs it in `root`, at most `limit` seconds."""
    argv = ["sh", "-c", command]
    told = {**env, VERIFYING: item}
    ran = programs.run(argv, cwd=root, env=told, limit=limit, keep=KEEP, tail=True, together=True)
    if ran.never:
        how = f"could not be started: {ran.never}"
    elif ran.timed_out:
        how = f"still running after {length(limit)}"
    elif ran.code is not None and ran.code < 0:
        how = f"killed by signal {-ran.code}"
    else:
        how = f"exit code {ran.code}"
    steady = _VARYING.sub(b"~", ran.out)
    return Outcome(
        passed=ran.code == 0,
        how=how,
        tail=_tail(ran.out),
        digest="" if ran.code == 0 else digest(f"{how}\n{steady.decode('utf-8', 'replace')}", 16),
    )


def _tail(out: bytes) -> str:
    """The last lines, as they can be shown on a terminal."""
    lines = out.decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
    return "\n".join(
        "".join(char if char.isprintable() else " " for char in line[:300].replace("\t", "    ")).rstrip()
        for line in lines
    )
