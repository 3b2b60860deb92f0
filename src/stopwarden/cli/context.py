"""What a command may use of the world: environment, clock, zone, terminal, store.

Every command gets one `Context` and touches nothing else, so a test or the demo hands in a
virtual clock and a throw-away home.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from stopwarden.clock import SystemZone, system_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stopwarden.core.events import Instant, Zone
    from stopwarden.store.port import Store

# Set by agent programs for the commands they run: with one of these, "the person" is an agent.
SESSION_VARIABLES = ("CLAUDE_CODE_SESSION_ID", "QWEN_CODE_SESSION_ID", "GEMINI_SESSION_ID")
AGENT_VARIABLES = ("CLAUDECODE", "AI_AGENT", *SESSION_VARIABLES)


def _ask(question: str) -> str | None:
    """A person's answer, or None where nobody can be asked (no terminal)."""
    if not sys.stdin.isatty():
        return None
    try:
        return input(question).strip()
    except EOFError:
        return None


@dataclass
class Context:
    """Where a command runs. `cwd` is absolute; `now()` is seconds UTC."""

    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: str = field(default_factory=os.getcwd)
    now: Callable[[], Instant] = system_now
    zone: Zone = None  # type: ignore[assignment]
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    ask: Callable[[str], str | None] = _ask
    sleep: Callable[[float], None] = time.sleep
    system: str = "/"  # where the machine's own proc, sys and run are

    def __post_init__(self) -> None:
        if self.zone is None:
            self.zone = SystemZone(self.env)

    @property
    def inside_agent(self) -> bool:
        """Whether an agent program started this command."""
        return any(self.env.get(name) for name in AGENT_VARIABLES)

    @property
    def session(self) -> str:
        """The session whose shell this is, "" for the person; a word for nothing names none."""
        for name in SESSION_VARIABLES:
            said = self.env.get(name, "").strip()[:200]
            if said and said not in ("null", "undefined", "None"):
                return said
        return ""

    @property
    def state_dir(self) -> str:
        """The per-user state directory (it need not exist yet)."""
        from stopwarden.store import place

        return place.state_dir(self.env)

    def open_store(self) -> Store:
        """The user's database, created at first use. Raises the Store…Error classes."""
        from stopwarden.store import place
        from stopwarden.store.sqlite import open_sqlite

        return open_sqlite(place.prepare(self.env))

    def say(self, text: str = "") -> None:
        """One line for the person on standard output."""
        print(text, file=self.out)

    def warn(self, text: str) -> None:
        """One line for the person on standard error."""
        print(text, file=self.err)
