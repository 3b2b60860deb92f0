"""What `doctor` finds: one line each, with what to do."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

INSTALL = "stopwarden install claude-code"


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    level: str  # "ok", "WARN", "FAIL"
    subject: str
    text: str
    do: str = ""


def ok(subject: str, text: str) -> Finding:
    return Finding("ok", subject, text)


def warn(subject: str, text: str, do: str) -> Finding:
    return Finding("WARN", subject, text, do)


def fail(subject: str, text: str, do: str) -> Finding:
    return Finding("FAIL", subject, text, do)


def asked(
    command: list[str], seconds: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes] | None:
    """How a short command ended, None where it did not."""
    if seconds <= 0:
        return None
    try:
        return subprocess.run(
            command, capture_output=True, timeout=seconds, env=dict(env or {}), stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
