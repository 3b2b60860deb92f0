"""`stopwarden transcript`: what the native agent's conversations were, and forgetting one."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from stopwarden.core.errors import UsageError
from stopwarden.report.moments import moment
from stopwarden.report.reading import plain
from stopwarden.store import place
from stopwarden.store.transcripts import open_transcripts

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.store.transcripts import Conversation, TranscriptLine, Transcripts

SHOWN = 400  # characters of one line of words


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = (
        "The conversations of `stopwarden chat` and `stopwarden agent`, the latest first; with an id (or its first\n"
        "letters) all that was said and done in one, the guard's events among it."
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="one conversation")
    parser.add_argument("--forget", action="store_true", help="forget this conversation for good")
    parser.add_argument("--json", action="store_true", help="every line as it is stored, a JSON object each")
    parser.epilog = (
        "examples:\n  stopwarden transcript\n  stopwarden transcript 67dc\n  stopwarden transcript 67dc --forget"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Prints, or forgets."""
    transcripts = open_transcripts(context.env)
    if args.id is None:
        if args.forget:
            raise UsageError("Which conversation is meant?", do="Name it: stopwarden transcript ID --forget")
        rows = transcripts.conversations()
        for row in rows:
            context.say(json.dumps(row.as_dict()) if args.json else _row(row, context))
        if not rows and not args.json:
            context.say("No conversation yet. Begin one: stopwarden chat")
        return 0
    row = named(transcripts, args.id)
    if args.forget:
        transcripts.forget(row.id)
        shutil.rmtree(f"{place.prepare(context.env)}/outputs/{row.id}", ignore_errors=True)
        context.say(f"Forgotten: {row.id[:8]}, in {row.cwd}.")
        return 0
    for line in transcripts.lines(row.id):
        shown = json.dumps(line.as_dict(), ensure_ascii=False) if args.json else _line(line, context)
        if shown:
            context.say(shown)
    return 0


def named(transcripts: Transcripts, word: str) -> Conversation:
    """The one conversation whose id begins so. Raises UsageError."""
    found = [row for row in transcripts.conversations(limit=10_000) if row.id.startswith(word)]
    if len(found) != 1:
        many = "No conversation is" if not found else f"{len(found)} conversations are"
        raise UsageError(f"{many} called {word!r}", do="See: stopwarden transcript")
    return found[0]


def _row(row: Conversation, context: Context) -> str:
    when = moment(row.updated_at, context.zone, context.now())
    return f"{row.id[:8]}  {when}  {row.cwd}  {plain(row.model, 40)}"


def _line(line: TranscriptLine, context: Context) -> str:
    """A line for people; what says nothing to them is left out."""
    body: dict[str, Any] = json.loads(line.body)
    when = moment(line.at // 1_000, context.zone, context.now())
    match line.kind:
        case "prompt" | "said" | "results" | "appended":
            words = [_word(said) for told in body.get("words", {}).values() for said in told]
            return "\n".join(f"{when}  {word}" for word in words)
        case "staged":
            ours = [part["text"] for part in body["parts"] if part["kind"] in ("guard", "away")]
            return "\n".join(f"{when}  guard: {plain(text, SHOWN)}" for text in ours)
        case "AttemptCounted":
            return f"{when}  guard: continuation {body['attempt']} of {body['cap']}, {body['unfinished']} not finished"
        case "turn_ended":
            return f"{when}  turn ended: {body['kind']}"
    return ""


def _word(said: dict[str, Any]) -> str:
    match said["is"]:
        case "Text":
            return plain(str(said["text"]), SHOWN)
        case "Call":
            return f"{said['name']} {plain(str(said['arguments']), SHOWN)}"
        case "Result":
            return f"= {plain(str(said['text']), SHOWN)}"
        case "Image":
            return f"[{said['media_type']}]"
    return f"(thought) {plain(str(said['text']), SHOWN)}"
