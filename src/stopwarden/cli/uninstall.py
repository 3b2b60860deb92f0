"""`stopwarden uninstall claude-code`: takes the hooks out again, byte for byte where it can.

Without --user or --project it takes them out of every settings file that we know to hold them: those
recorded, this user's, and this checkout's. Taking hooks out weakens the guard, so an agent may not.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from stopwarden.cli.install import add_place, coloured, settings_path, short
from stopwarden.cli.person import only_the_person
from stopwarden.core.errors import StopwardenError
from stopwarden.hosts import git_exclude, installation, launcher

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.hosts.installation import Plan, Record


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    add_place(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would be taken out, write nothing")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.description = (
        "Takes Stopwarden's hooks out of an agent program's settings. A file that is as we left it is restored byte\n"
        "for byte; if you have edited it since, our entries alone are taken out and your edits stay. Without --user\n"
        "or --project: everywhere. The records of your nights are kept."
    )
    parser.epilog = "example:\n  stopwarden uninstall claude-code\n  stopwarden uninstall claude-code --dry-run"


def run(args: argparse.Namespace, context: Context) -> int:
    """Takes the hooks out. 0: none is left; 1: a file could not be changed and still has them."""
    if not args.dry_run:
        only_the_person(context, None, "take the hooks out")
    record = installation.load(context.state_dir)
    done: list[dict[str, Any]] = []
    failed: list[str] = []
    for path in _paths(args.scope, record, context):
        try:
            plan = installation.plan_removal(path, record, context.state_dir)
            if not plan.changes and record.file(path) is None:
                continue
            if not args.json:
                context.say(_said(plan, record, context, dry_run=args.dry_run))
                if args.dry_run and plan.changes:
                    context.say(coloured(plan.diff(), context))
            done.append(installation.as_json(plan, removed=not args.dry_run))
            if not args.dry_run:
                record = _take_out(plan, record, context)
        except StopwardenError as error:
            failed.append(str(error))
    if not args.dry_run and not record.files and not failed:
        launcher.remove(context.env)
    if args.json:
        context.say(json.dumps({"v": 1, "files": done, "failed": failed}))
    else:
        _say_the_rest(bool(done), failed, args, context)
    return 1 if failed else 0


def _paths(scope: str | None, record: Record, context: Context) -> list[str]:
    """Where our entries may be: the scope asked for, or everywhere."""
    if scope is not None:
        return [settings_path(scope, context)]
    known = [file.path for file in record.files]
    return list(dict.fromkeys([*known, settings_path("user", context), settings_path("project", context)]))


def _take_out(plan: Plan, record: Record, context: Context) -> Record:
    known = record.file(plan.path)
    left = installation.uninstall(plan, record, context.state_dir)
    if known is not None and known.excluded:
        git_exclude.let_git_see_again(known.excluded)
    return left


def _said(plan: Plan, record: Record, context: Context, *, dry_run: bool) -> str:
    where, known = short(plan.path, context), record.file(plan.path)
    would = "would be " if dry_run else ""
    if not plan.changes:
        return f"{where}: our hooks are not in it any more, nothing to take out."
    if plan.then is None:
        return f"{where}: {would}removed, it did not exist before."
    if known is not None and plan.now is not None and installation.digest(plan.now) == known.after:
        return f"{where}: {would}restored byte for byte."
    return f"{where}: our hooks {would or 'are '}taken out; everything else in it stays."


def _say_the_rest(done: bool, failed: list[str], args: argparse.Namespace, context: Context) -> None:
    for line in failed:
        context.warn(f"stopwarden: {line}")
    if not done and not failed:
        context.say("Nothing to take out: our hooks are in no settings file here.")
    if done and not args.dry_run:
        if os.path.lexists(os.path.join(context.state_dir, "away.json")):
            context.say(
                "You are away, and sessions may stop from now on. To go back to it: stopwarden install claude-code"
            )
        context.say("Undo: stopwarden install claude-code")
