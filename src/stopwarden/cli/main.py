"""The command line: finds the command's module, and turns every failure of ours into a clear line.

Exit codes: 0 done; 1 the answer is "no", or something needs the person; 2 wrong words, or
refused; 3 held by another session; 4 our own failure. Each command is a module with
`configure(parser)` and `run(args, context) -> int`, imported only when it is called.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import TYPE_CHECKING

from stopwarden import __version__
from stopwarden.core.errors import StopwardenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopwarden.cli.context import Context

# name: (module, one line of help), in the order of a night
COMMANDS = {
    "install": ("install", "add the hooks to an agent program (asks first, keeps a backup)"),
    "uninstall": ("uninstall", "take the hooks out again, byte for byte"),
    "doctor": ("doctor", "prove that the hook runs and can block here"),
    "away": ("away", "you leave: sessions go on with the list, or wait with a wake"),
    "back": ("back", "you are here again"),
    "status": ("status", "one line a session: working, waiting, waiting on you, stopped"),
    "watch": ("watch", "tell of stalled sessions until Ctrl-C; may resume one by a command of yours"),
    "report": ("report", "what happened in the night"),
    "parked": ("parked", "questions and permissions that wait for you"),
    "answer": ("answer", "answer a parked question"),
    "explain": ("explain", "why one stop was blocked or allowed"),
    "replay": ("replay", "judge recorded stops again, as they were or under another policy"),
    "list": ("list", "show the work: lists, ledger, other trackers"),
    "show": ("show", "everything known of one item"),
    "add": ("add", "put an item on the list, or into the ledger"),
    "start": ("start", "begin an item"),
    "done": ("done", "tick an item, once its verify command passes"),
    "wait": ("wait", "mark an item as waiting on a person or something external"),
    "drop": ("drop", "an item that will not be done"),
    "change": ("change", "another priority or other needs for an item of the ledger; or open again"),
    "tracker": ("tracker", "read GitHub, beads or another tracker as well"),
    "reserve": ("reserve", "keep an item for this session, so that no other takes it"),
    "renew": ("renew", "keep what this session holds for another lease"),
    "release": ("release", "give back what this session holds"),
    "peers": ("peers", "who holds what, until when"),
    "look": ("look", "note on the list when to look again"),
    "promise": ("promise", "note on the list what is done once something holds, and by when otherwise"),
    "off": ("switch", "judge nothing until `on`"),
    "on": ("switch", "judge and block again"),
    "observe": ("switch", "judge and record, never block"),
    "forget": ("forget", "forget what is recorded, for good: by age, size, session or night"),
    "export": ("export", "the record as JSON lines, to keep or to look at elsewhere"),
    "chat": ("chat", "a coding agent of our own at the terminal, with the guard inside"),
    "agent": ("agent", "the same agent for editors that speak the Agent Client Protocol"),
    "transcript": ("transcript", "what was said and done in that agent's conversations"),
    "demo": ("demo", "a whole night in a minute, on a virtual clock"),
    "simulate": ("simulate", "many nights under several policies, compared"),
}


def _parser(command: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stopwarden",
        description="Keeps AI coding agents working, or waiting with a wake, while you are away.",
        epilog="First: stopwarden install claude-code. Then: stopwarden away until 07:30 --list TODO.md",
    )
    parser.add_argument("--version", action="version", version=f"stopwarden {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (module, help_line) in COMMANDS.items():
        one = commands.add_parser(name, help=help_line, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == command:
            importlib.import_module(f"stopwarden.cli.{module}").configure(one)
    return parser


def main(argv: Sequence[str], context: Context | None = None) -> int:
    """Runs one command. Returns its exit code; never raises a failure of ours."""
    named = next((word for word in argv if not word.startswith("-")), None)
    parser = _parser(named if named in COMMANDS else None)
    try:
        args = parser.parse_args(list(argv))
    except SystemExit as ended:
        return int(ended.code or 0)
    if args.command is None:
        parser.print_help()
        return 0
    if context is None:
        from stopwarden.cli.context import Context

        context = Context()
    try:
        module = importlib.import_module(f"stopwarden.cli.{COMMANDS[args.command][0]}")
        return int(module.run(args, context))
    except StopwardenError as error:
        context.warn(f"stopwarden: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def run() -> None:
    """The `stopwarden` program."""
    sys.exit(main(sys.argv[1:]))
