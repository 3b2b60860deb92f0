"""`stopwarden demo`: a whole night in a minute, with the real hook program and a scripted agent.

It installs the hooks into a throw-away home, types `away` there, lets the scripted host of
`sim.host` fire every event of the night on a virtual clock, tells each stop, and ends with the
report. No agent program is needed, and nothing of the person's own is touched.
"""

from __future__ import annotations

import io
import json
import textwrap
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stopwarden.cli.context import Context
from stopwarden.cli.main import main
from stopwarden.core.errors import HostError
from stopwarden.core.reason import local_time
from stopwarden.hosts import claude_settings
from stopwarden.report.reading import count
from stopwarden.sim.demo import ZONE, Demo, ToldStop

if TYPE_CHECKING:
    import argparse

    from stopwarden.core.events import Instant
    from stopwarden.sim.host import Happened

COLUMNS = 80
INDENT = " " * 7
WORDS = {"block": "BLOCKED", "waiting": "WAITS"}
AWAY = ("away", "until", "07:30", "--list", "TODO.md")


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = (
        "Plays a whole night in under a minute: a scripted agent with a list of six items, on a virtual clock.\n"
        "The hook program, the commands and the report are the real ones; the home directory is a throw-away one."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a stop, a line each, and nothing else")
    parser.epilog = "examples:\n  stopwarden demo\n  stopwarden demo --json"


def run(args: argparse.Namespace, context: Context) -> int:
    """Plays the night and tells it. 0, or 4 where the hook program or a command of ours fails here."""
    told = _AsJson(context) if args.json else _AsText(context)
    with Demo() as demo:
        told.begins()
        _typed(demo, "install", "claude-code", "--yes")
        demo.play(
            claude_settings.user_settings(demo.env), lambda: told.command(AWAY, _typed(demo, *AWAY)), told.happened
        )
        told.ends(_typed(demo, "report"))
    return 0


def _typed(demo: Demo, *words: str) -> str:
    """What one command says in the throw-away home, at the virtual clock's time. Raises HostError where it fails."""
    out, err = io.StringIO(), io.StringIO()
    there = Context(
        env=demo.env,
        cwd=demo.project,
        now=demo.now,
        zone=ZONE,
        out=out,
        err=err,
        ask=lambda _: None,
        system=demo.machine,
    )
    code = main(words, there)
    if code != 0 or err.getvalue():
        raise HostError(
            f"stopwarden {words[0]} ended with {code} in the demo: {err.getvalue().strip()}",
            kept="Nothing of yours was touched",
            do="Run: stopwarden doctor",
        )
    return out.getvalue().rstrip("\n")


class _AsJson:
    """Every stop as one line of JSON."""

    def __init__(self, context: Context) -> None:
        self._say = context.say

    def begins(self) -> None: ...

    def command(self, words: tuple[str, ...], said: str) -> None: ...

    def happened(self, told: Happened | ToldStop) -> None:
        if isinstance(told, ToldStop):
            look = None if told.next_look is None else _utc(told.next_look)
            values = {
                "at": _utc(told.at),
                "local": local_time(told.at, ZONE, told.at),
                "zone": ZONE.name,
                "said": told.said,
                "block": told.blocked,
                "kind": told.kind,
                "rule": told.rule,
                "why": list(told.why),
                "next_item": told.next_item or None,
                "next_look": look,
                "reason": told.reason or None,
            }
            self._say(json.dumps(values, ensure_ascii=False))

    def ends(self, report: str) -> None: ...


class _AsText:
    """The night as a story. Stops that repeat the one before, but for the hour, are told in one line."""

    def __init__(self, context: Context) -> None:
        self._say = context.say
        self._bold = context.out.isatty() and not context.env.get("NO_COLOR") and context.env.get("TERM") != "dumb"
        self._last: ToldStop | None = None
        self._wake: Happened | None = None  # opened the turn that has not been told yet
        self._again: list[ToldStop] = []
        self._reason_shown = False

    def begins(self) -> None:
        self._say(
            "A night in a minute: the real hooks and commands, with a scripted agent, a\n"
            f"virtual clock ({ZONE.name}) and a throw-away home. Nothing of yours is touched.\n"
        )

    def command(self, words: tuple[str, ...], said: str) -> None:
        self._repeated()
        self._last = None
        self._say(f"\n$ {self._strong('stopwarden ' + ' '.join(words))}\n{said}\n")

    def happened(self, told: Happened | ToldStop) -> None:
        if isinstance(told, ToldStop):
            if self._last is not None and _alike(self._last, told):
                self._again.append(told)
                self._wake = None
            else:
                self._stop(told)
        elif told.kind == "wake":
            self._wake = told
        else:
            self._between(told)

    def ends(self, report: str) -> None:
        self.command(("report",), report)
        self._say("Now for real: stopwarden install claude-code")

    def _stop(self, told: ToldStop) -> None:
        self._repeated()
        self._last = told
        word = WORDS.get(told.kind, "ALLOWED")
        until = f" until {local_time(told.next_look, ZONE, told.at)}" if told.next_look is not None else ""
        self._line(told.at, f'{self._strong(word)}{until}  The agent stops: "{told.said}"')
        first, *rest = told.why
        self._lines(f"{first} ({told.rule})")
        for why in rest:
            self._lines(why)
        if told.next_item:
            self._lines(f'goes on with "{told.next_item}"')
        if told.blocked and not self._reason_shown:
            self._reason_shown = True
            self._say(f"{INDENT}What the agent reads:")
            for line in told.reason.splitlines():
                self._lines(line, "  | ")

    def _between(self, told: Happened) -> None:
        self._repeated()
        self._last = None
        if told.kind == "prompt":
            self._line(told.at, f'You type: "{told.text}"')
        elif told.kind == "refused":
            self._line(told.at, f"{self._strong('REFUSED')}  {told.text}")
            self._lines("not shown, because a dialog would freeze the night; kept for you")
        elif told.kind == "error":
            self._line(told.at, f"{self._strong('ERROR')}  The turn breaks off: {told.text}")
            self._lines("such a turn ends without a stop that could be blocked; only a wake helps")

    def _repeated(self) -> None:
        """Tells what was held back: the stops that repeat the last one, and the wake before what comes now."""
        if self._again:
            last = self._again[-1]
            at = local_time(last.at, ZONE, last.at)
            self._line(self._again[0].at, f"The same after {count(len(self._again), 'more wake')}, until {at}.")
        self._again = []
        if self._wake is not None:
            self._line(self._wake.at, f'{self._strong("WAKE")}  The schedule opens a new turn: "{self._wake.text}"')
        self._wake = None

    def _line(self, at: Instant, text: str) -> None:
        self._say(f"{local_time(at, ZONE, at)}  {text}")

    def _lines(self, text: str, lead: str = "") -> None:
        indent = INDENT + lead
        self._say(textwrap.fill(text, COLUMNS, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False))

    def _strong(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self._bold else text


def _alike(one: ToldStop, other: ToldStop) -> bool:
    return (one.said, one.kind, one.rule, one.why) == (other.said, other.kind, other.rule, other.why)


def _utc(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
