"""How `watch` tells the person of a stall: the terminal, a desktop notification, a command of theirs.

A stall's words hold titles that agents wrote. They go to the terminal cleaned, to the notification
as an argument, and to the command in its environment; never into a command line, so no shell ever
reads them. A command has a time limit and a process group of its own, and nothing of it stays.
"""

from __future__ import annotations

import json
import shlex
import shutil
from typing import TYPE_CHECKING

from stopwarden.core.errors import UsageError
from stopwarden.report.moments import moment
from stopwarden.report.reading import plain
from stopwarden.report.values import utc
from stopwarden.work import programs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopwarden.cli.context import Context
    from stopwarden.report.stalls import Stall

LIMIT = 30.0  # seconds for a notification or the person's command
KEPT = 2_000  # bytes of what it prints
DESKTOP = (  # how a desktop is told, title and words being arguments
    ("notify-send", ("--app-name=Stopwarden", "--urgency=critical", "--", "{title}", "{words}")),
    (
        "osascript",
        (
            *("-e", "on run told", "-e", "display notification (item 2 of told) with title (item 1 of told)"),
            *("-e", "end run", "{title}", "{words}"),
        ),
    ),
)


class Alerts:
    """Tells of stalls in the ways that were asked for."""

    def __init__(self, context: Context, *, desktop: bool = False, run: str = "", as_json: bool = False) -> None:
        self._context, self._as_json = context, as_json
        self._command = _words(run) if run else []
        self._desktop = self._found() if desktop else None

    def tell(self, stall: Stall) -> None:
        """Tells of one stall in every way; a way that fails is said, and the others are gone all the same."""
        name, words = plain(stall.name, 60), f"{stall.text} {stall.act}." if stall.act else stall.text
        if self._as_json:
            self._context.say(json.dumps(as_json(stall)))
        else:
            at = moment(self._context.now(), self._context.zone, self._context.now())
            self._context.say(f"{at}  {name}  {words}")
        if self._desktop is not None:
            program, arguments = self._desktop
            said = {"{title}": f"Stopwarden: {name}", "{words}": words}
            self._start([program, *(said.get(word, word) for word in arguments)], {}, "The notification")
        if self._command:
            self._start(self._command, variables(stall), "--run")
        self._context.out.flush()

    def _found(self) -> tuple[str, Sequence[str]] | None:
        for name, arguments in DESKTOP:
            program = shutil.which(name, path=self._context.env.get("PATH", ""))
            if program is not None:
                return program, arguments
        self._context.warn(
            "stopwarden: no desktop notifications here (neither notify-send nor osascript is installed). "
            "Stalls are told in this terminal; --run CMD tells them in any other way."
        )
        return None

    def _start(self, argv: Sequence[str], more: dict[str, str], what: str) -> None:
        env = {**self._context.env, **more}
        ran = programs.run(argv, cwd=self._context.cwd, env=env, limit=LIMIT, keep=KEPT, tail=True, together=True)
        if ran.code == 0:
            return
        why = (
            f"could not be started: {ran.never}" if ran.never else
            f"had not ended after {LIMIT:g} s and was killed" if ran.timed_out else
            f"ended with {ran.code}: {plain(ran.out.decode('utf-8', 'replace').strip()[-200:], 200)}"
        )  # fmt: skip
        self._context.warn(f"stopwarden: {what} {why}.")


def variables(stall: Stall) -> dict[str, str]:
    """What the person's command finds in its environment."""
    return {
        "STOPWARDEN_KIND": stall.kind,
        "STOPWARDEN_SESSION": stall.session,
        "STOPWARDEN_NAME": plain(stall.name, 60),
        "STOPWARDEN_TEXT": stall.text,
        "STOPWARDEN_ACT": stall.act,
        "STOPWARDEN_SINCE": utc(stall.since),
        "STOPWARDEN_ROOT": stall.root,
    }


def as_json(stall: Stall) -> dict[str, object]:
    """A stall as plain values."""
    return {
        "kind": stall.kind,
        "session": stall.session or None,
        "name": plain(stall.name, 60),
        "since": utc(stall.since),
        "text": stall.text,
        "act": stall.act,
        "root": stall.root,
    }


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as wrong:
        raise UsageError(
            f"--run {command!r} cannot be taken apart into words: {wrong}", do="Quote it as a shell"
        ) from None
    if not words:
        raise UsageError("--run names no command", do="For instance: --run 'ntfy publish mytopic stalled'")
    return words
