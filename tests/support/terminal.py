"""The commands as a person types them, on a store of their own and a clock that stands still."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from stopwarden.cli.context import Context
from stopwarden.cli.main import main
from tests.conftest import LONDON, at

if TYPE_CHECKING:
    import pathlib

    from stopwarden.store.port import Store
    from tests.support.written_night import Night


class Terminal:
    """A person's terminal in London. `now` may be moved."""

    def __init__(self, tmp_path: pathlib.Path, now: str = "2026-12-01 08:00", **env: str) -> None:
        self.now = at(now)
        self.env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "TZ": "Europe/London", **env}
        self.out, self.err = io.StringIO(), io.StringIO()
        self.context = Context(
            env=self.env, cwd="/work/shop", now=lambda: self.now, zone=LONDON, out=self.out, err=self.err
        )

    def store(self) -> Store:
        """The user's database; close it."""
        return self.context.open_store()

    def keep(self, night: Night) -> None:
        """Puts a written night into the database."""
        store = self.store()
        night.fill(store)
        store.close()

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and error output of one command."""
        for stream in (self.out, self.err):
            stream.seek(0)
            stream.truncate()
        code = main(words, self.context)
        return code, self.out.getvalue(), self.err.getvalue()

    def json(self, *words: str) -> Any:
        """The JSON that one command prints."""
        return json.loads(self.run(*words, "--json")[1])
