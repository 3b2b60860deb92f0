"""`stopwarden agent`: the native agent for an ACP client, on standard input and output."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from typing import TYPE_CHECKING

from stopwarden.core.errors import SettingError

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = (
        "The native agent for an editor or another client of the Agent Client Protocol. It speaks on standard input\n"
        "and output; the client starts it. Models are chosen as for `stopwarden chat`."
    )
    parser.add_argument("--model", default="", metavar="NAME", help="anthropic:, openai:, google:NAME or scripted:FILE")
    parser.add_argument("--mode", default="ask", metavar="MODE", help="plan, ask, accept_edits or full (default ask)")
    parser.add_argument("--guard", choices=("on", "off", "observe"), default="on", help="the todo guard (default on)")
    parser.add_argument("--bridge", action="store_true", help="the client is a bridge: its prompt ids are owners")
    parser.add_argument(
        "--json", action="store_true", help="taken for the sake of scripts: the protocol is JSON anyway"
    )
    parser.epilog = "example, as an editor starts it:\n  stopwarden agent --model anthropic:claude-sonnet-4-5"


def run(args: argparse.Namespace, context: Context) -> int:
    """Serves until the client hangs up."""
    if importlib.util.find_spec("acp") is None:
        raise SettingError(
            "The native agent's libraries are not installed", kept="Nothing was run", do="Install stopwarden[agent]"
        )
    from stopwarden.acp.agent import NativeAgent
    from stopwarden.models.choice import choose
    from stopwarden.session.permissions import mode_of
    from stopwarden.store import place
    from stopwarden.store.transcripts import open_transcripts

    agent = NativeAgent(
        lambda: choose(args.model, context.env),
        mode=mode_of(args.mode),
        guard=args.guard,
        bridged=args.bridge,
        now=time.time,
        transcripts=open_transcripts(context.env),
        outputs=f"{place.prepare(context.env)}/outputs",
    )
    asyncio.run(agent.serve())
    return 0
