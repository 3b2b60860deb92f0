"""`stopwarden chat`: the native agent at the terminal."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import time
import uuid
from typing import TYPE_CHECKING, Literal

from stopwarden.cli.transcript import named
from stopwarden.core.errors import SettingError, UsageError

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from stopwarden.cli.context import Context
    from stopwarden.models.port import Call
    from stopwarden.session.actor import Session
    from stopwarden.session.permissions import Permissions
    from stopwarden.session.ports import Told
    from stopwarden.session.prompts import Prompts
    from stopwarden.session.screen import Screen
    from stopwarden.session.tools.contract import Arguments, Tool
    from stopwarden.store.transcripts import Transcripts

HELP = """Type what you want. While it works, a line goes into the running turn.
  /queue TEXT   a prompt of its own, after the turn
  /mode MODE    plan, ask, accept_edits, full
  /cancel       stop what runs (Ctrl-C does it too)
  /quit         leave (Ctrl-D does it too)"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = (
        "A coding agent of our own at the terminal, with the todo guard inside. Without a key of a provider it\n"
        "answers as the offline model. Lines from a file or a pipe are prompts, one after the other."
    )
    parser.add_argument(
        "--model", default="", metavar="NAME", help="anthropic:NAME, openai:NAME, google:NAME, scripted:FILE"
    )
    parser.add_argument("--mode", default="ask", metavar="MODE", help="plan, ask, accept_edits or full (default ask)")
    parser.add_argument("--guard", choices=("on", "off", "observe"), default="on", help="the todo guard (default on)")
    parser.add_argument("--resume", metavar="ID", help="go on with an earlier conversation, or `latest`")
    parser.add_argument("--json", action="store_true", help="every event as a line of JSON instead of text")
    parser.epilog = (
        "examples:\n"
        "  stopwarden chat\n"
        "  stopwarden chat --model openai:qwen3@32768 --mode accept_edits\n"
        "  echo 'Tidy the imports' | stopwarden chat --mode full"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Holds the conversation until it is left."""
    if importlib.util.find_spec("pydantic") is None:
        raise SettingError(
            "The native agent's libraries are not installed", kept="Nothing was run", do="Install stopwarden[agent]"
        )
    return asyncio.run(_chat(args, context))


async def _chat(args: argparse.Namespace, context: Context) -> int:
    from rich.console import Console

    from stopwarden.models.choice import choose
    from stopwarden.session.permissions import Permissions, mode_of
    from stopwarden.session.screen import Screen

    console = Console(file=context.out)
    screen = Screen(console)
    typed = _Keys(console) if sys.stdin.isatty() else _Lines()

    async def ask(tool: Tool, call: Call, given: Arguments) -> Literal["once", "always", "no"]:
        answer = await typed.line(f"{tool.name}: allow? [y]es, [a]lways, [N]o ")
        first = (answer or "").strip().lower()[:1]
        return "once" if first == "y" else "always" if first == "a" else "no"

    permissions = Permissions(mode_of(args.mode), ask, alone=lambda: not sys.stdin.isatty())
    from stopwarden.session.made import make
    from stopwarden.store import place
    from stopwarden.store.transcripts import open_transcripts

    transcripts = open_transcripts(context.env)
    session, prompts = make(
        id=_which(args.resume, context, transcripts),
        cwd=context.cwd,
        model=choose(args.model, context.env),
        permissions=permissions,
        watcher=(lambda told: context.say(_as_json(told))) if args.json else screen,
        guard=args.guard,
        now=time.time,
        transcripts=transcripts,
        outputs=f"{place.prepare(context.env)}/outputs",
    )
    if not args.json:
        screen.note(f"{session.model.name} in {context.cwd}, mode {permissions.mode}. /help for help.")
    try:
        await _talk(typed, session, prompts, permissions, screen)
    finally:
        await session.close()
    return 0


def _which(resume: str | None, context: Context, transcripts: Transcripts) -> str:
    """The id of a new conversation, or of the one that is meant. Raises UsageError."""
    if resume is None:
        return str(uuid.uuid4())
    if resume != "latest":
        return named(transcripts, resume).id
    latest = transcripts.conversations(context.cwd, limit=1)
    if not latest:
        raise UsageError("There is no earlier conversation in this directory", do="Leave --resume out")
    return latest[0].id


async def _talk(
    typed: _Keys | _Lines, session: Session, prompts: Prompts, permissions: Permissions, screen: Screen
) -> None:
    """One line after the other, until the end of input and of all that was asked for."""
    running: set[asyncio.Task[str]] = set()

    def begin(text: str) -> None:
        from stopwarden.models.port import Text

        task = asyncio.get_running_loop().create_task(prompts.say(Text(text=text)))
        running.add(task)
        task.add_done_callback(running.discard)

    while (line := await typed.line("> ")) is not None:
        word, _, rest = line.strip().partition(" ")
        if not word:
            continue
        if word == "/quit":
            await prompts.cancel()
            break
        if word == "/help":
            screen.note(HELP)
        elif word == "/cancel":
            await prompts.cancel()
        elif word == "/mode":
            from stopwarden.session.permissions import mode_of

            permissions.mode = mode_of(rest.strip())
            session.mode_changed(plan=permissions.mode == "plan")
            screen.note(f"mode {permissions.mode}")
        elif word == "/queue":
            begin(rest)
        elif running and typed.live and await prompts.mention(line):
            continue
        else:
            begin(line)
        if not typed.live:
            await asyncio.gather(*running, return_exceptions=True)
    await asyncio.gather(*running, return_exceptions=True)


def _as_json(told: Told) -> str:
    """One event as a line of JSON; what JSON does not know is told by its name."""
    event = {"kind": told.kind, "turn": told.turn, "text": told.text, "detail": dict(told.detail)}
    return json.dumps(event, ensure_ascii=False, default=str)


class _Lines:
    """Prompts from a file or a pipe."""

    live = False

    async def line(self, prompt: str) -> str | None:
        line = await asyncio.to_thread(sys.stdin.readline)
        return line.rstrip("\n") if line else None


class _Keys:
    """A person at the keys, who may type while the session works."""

    live = True

    def __init__(self, console: Console) -> None:
        from prompt_toolkit import PromptSession

        self._session: PromptSession[str] = PromptSession()

    async def line(self, prompt: str) -> str | None:
        from prompt_toolkit.patch_stdout import patch_stdout

        try:
            with patch_stdout(raw=True):
                return await self._session.prompt_async(prompt)
        except KeyboardInterrupt:
            return "/cancel"
        except EOFError:
            return None
