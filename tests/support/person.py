"""A person at a terminal: types commands, with a clock and a home of their own, and reads the answer."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from stopwarden import wire
from stopwarden.cli.context import Context
from stopwarden.cli.main import main
from stopwarden.clock import ZoneOf
from stopwarden.core.bounds import Policy
from stopwarden.core.events import AwayPeriod, SessionState
from stopwarden.hosts import claude_settings, installation
from stopwarden.store import marker, place
from stopwarden.store.port import SessionRow, Store
from stopwarden.store.sqlite import open_sqlite
from stopwarden.work import checkout
from tests.conftest import LONDON, at


class Person:
    """Runs the real command line in process; `said` and `complained` are what the last command printed."""

    def __init__(self, tmp_path: pathlib.Path, zone: ZoneOf = LONDON) -> None:
        self.home = tmp_path / "home"
        self.repo = tmp_path / "repo"
        self.repo.mkdir(exist_ok=True)
        (self.repo / ".git").mkdir(exist_ok=True)
        (self.repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        self.system = tmp_path / "machine"
        self.env = {"HOME": str(self.home), "TZ": "Europe/London", "PATH": os.defpath}
        self.cwd = self.repo
        self.now = at("2026-11-30 23:05")
        self.zone = zone
        self.said = self.complained = ""
        self.naps: list[float] = []
        self.interrupt_after = 3

    def types(self, *words: str) -> int:
        """Runs `stopwarden WORDS`. Its exit code."""
        out, err = io.StringIO(), io.StringIO()
        context = Context(
            env=self.env,
            cwd=str(self.cwd),
            now=lambda: self.now,
            zone=self.zone,
            out=out,
            err=err,
            ask=lambda question: None,
            sleep=self._sleep,
            system=str(self.system),
        )
        code = main(list(words), context)
        self.said, self.complained = out.getvalue(), err.getvalue()
        return code

    def _sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += int(seconds)
        if len(self.naps) >= self.interrupt_after:
            raise KeyboardInterrupt

    @property
    def state_dir(self) -> str:
        """Where this person's state is."""
        return place.state_dir(self.env)

    @property
    def root(self) -> str:
        """The checkout, as Stopwarden finds it."""
        return checkout.find_root(str(self.repo))

    @property
    def copy(self) -> str:
        """Its copy key."""
        place.prepare(self.env)
        return checkout.copy_key(self.root, self.state_dir)

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """The real database."""
        opened = open_sqlite(place.prepare(self.env))
        try:
            yield opened
        finally:
            opened.close()

    def save(self, row: SessionRow, **state: Any) -> SessionRow:
        """Makes a session known, as hooks do; with words for its state."""
        with self.store() as store:
            store.save_session(row)
            if state:
                known = store.state(row.id)
                store.save_state(SessionState(id=row.id, **state), expected_revision=known.revision)
        return row

    def session(self, session: str = "7e15aaaa", **fields: Any) -> SessionRow:
        """A session of this checkout that was heard of twelve seconds ago, in a turn."""
        known: dict[str, Any] = {
            "root": self.root,
            "copy": self.copy,
            "entrypoint": "cli",
            "permission_mode": "default",
            "first_event_at": self.now - 3600,
            "chain_started_at": self.now - 600,
            "last_event_at": self.now - 12,
            "last_event": "post-tool",
        }
        return SessionRow(id=session, **{**known, **fields})

    def fact(self, subject: str, name: str) -> str:
        """One stored fact."""
        with self.store() as store:
            return store.fact(subject, name)

    def away_since(self, policy: Policy | None = None, **fields: Any) -> AwayPeriod:
        """An away period that holds already, by default for this checkout."""
        made: dict[str, Any] = {
            "id": f"p{self.now}", "since": self.now, "root": self.root, "copy": self.copy, "zone": "Europe/London",
        }  # fmt: skip
        period = AwayPeriod(**{**made, **fields})
        with self.store() as store:
            marker.arm(store, self.state_dir, period, wire.dumps((policy or Policy()).as_dict()))
        return period

    def installs(self, *, keeper: bool = False, when: int | None = None) -> None:
        """Our hooks as `install claude-code` writes them, recorded as of `when` (else long ago)."""
        settings = pathlib.Path(claude_settings.user_settings(self.env))
        settings.parent.mkdir(parents=True, exist_ok=True)
        wanted = claude_settings.entries(keeper)
        text = claude_settings.add("", wanted, "/usr/bin/python3", "/opt/share/stopwarden/hook.py")
        settings.write_text(text, encoding="utf-8")
        file = installation.SettingsFile(path=str(settings), scope="user", keeper=keeper, at=when or self.now - 86_400)
        installation.save(place.prepare(self.env), installation.Record(files=(file,)))

    def machine_has(self, path: str, text: str) -> None:
        """One of the kernel's files, on this person's machine."""
        file = self.system / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def spools(self, event: str, session: str = "7e15aaaa", **told: Any) -> None:
        """A fact that a hook left in the spool while nothing was armed."""
        fact = {"e": event, "t": self.now, "s": session, "cwd": str(self.repo), "ep": "cli", **told}
        with open(f"{place.prepare(self.env)}/spool", "a", encoding="utf-8") as file:
            file.write(wire.dumps(fact) + "\n")

    def list(self, text: str, name: str = "TODO.md") -> str:
        """Writes a list into the checkout; its path."""
        path = self.repo / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def marked(self) -> list[str]:
        """The ids of the periods in the marker."""
        return [period.id for period in marker.read(self.state_dir) or ()]
