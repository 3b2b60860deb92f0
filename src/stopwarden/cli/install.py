"""`stopwarden install claude-code`: adds the hooks, after showing exactly what it writes.

The order is: look, show, ask, then write (launcher, bytecode, backup, record, settings file last).
Until the person says yes nothing is written anywhere. The keeper is asked for by itself, because
it alone lets a program of ours start a turn.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from stopwarden import __version__
from stopwarden.cli.person import only_the_person
from stopwarden.core.errors import HostError, UsageError
from stopwarden.hosts import claude_settings, git_exclude, installation, launcher
from stopwarden.hosts.installation import SettingsFile
from stopwarden.store import place

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.hosts.installation import Plan, Record

HOSTS = ("claude-code",)
KEEPER_QUESTION = "May a waiting hook wake a session that missed its look or hit an API error? [y/N] "


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    add_place(parser)
    keeper = parser.add_mutually_exclusive_group()
    keeper.add_argument(
        "--keeper",
        action="store_true",
        default=None,
        dest="keeper",
        help="let a waiting hook wake a session that missed its look or hit an API error",
    )
    keeper.add_argument("--no-keeper", action="store_false", dest="keeper", help="no such hook (what you get unasked)")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show what would be written, write nothing")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object (asks nothing: add --yes)")
    parser.description = (
        "Adds Stopwarden's hooks to an agent program's settings. Shows every line first, asks, and keeps a backup.\n"
        "With --project the entries go into .claude/settings.local.json, not settings.json: they name paths of this\n"
        "machine, which must not be committed."
    )
    parser.epilog = "example:\n  stopwarden install claude-code\n  stopwarden install claude-code --project --keeper"


def add_place(parser: argparse.ArgumentParser) -> None:
    """Which program, and which of its settings files."""
    parser.add_argument("host", choices=HOSTS, help="the agent program")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--user",
        action="store_const",
        const="user",
        dest="scope",
        help="all your sessions: ~/.claude/settings.json (or below CLAUDE_CONFIG_DIR)",
    )
    place.add_argument(
        "--project",
        action="store_const",
        const="project",
        dest="scope",
        help="this checkout alone: .claude/settings.local.json, which stays on this machine",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Shows, asks, writes. 0: installed, or nothing to change; 1: the person said no."""
    path = settings_path(args.scope or "user", context)
    record = installation.load(context.state_dir)
    python, hook = launcher.interpreter(), launcher.path(context.env)
    had_keeper = _has_keeper(path)
    keeper = had_keeper if args.keeper is None else args.keeper
    if had_keeper and not keeper:
        only_the_person(context, None, "take the keeper away")

    def plan_with(keeper: bool) -> Plan:
        wanted = claude_settings.entries(keeper)
        return installation.plan_install(path, wanted, python, hook, record, context.state_dir)

    plan = plan_with(keeper)
    if not args.json:
        _show(plan, keeper, context)
    if plan.changes and not args.dry_run and not args.yes:
        if args.json:
            raise UsageError("Nothing is written unasked", do="Add --yes, or look at it first with --dry-run")
        if not _agreed(context, "Proceed? [y/N] "):
            context.say("Nothing was written.")
            return 1
        if args.keeper is None and not keeper:
            context.say("\nThe keeper would add two more:")
            for entry in claude_settings.KEEPER_ENTRIES:
                group = entry.group(claude_settings.command_line(python, hook, entry.word))
                context.say(f"  {entry.event}: {json.dumps(group)}")
            if _agreed(context, KEEPER_QUESTION):
                keeper, plan = True, replace(plan_with(True), now=plan.now)  # of what was shown, not of what came since
    refreshed = False
    if not args.dry_run:
        refreshed = _write(plan, keeper, args.scope or "user", record, python, context)
    if args.json:
        told = installation.as_json(plan, keeper=keeper, python=python, launcher=hook, written=not args.dry_run)
        context.say(json.dumps(told | {"launcher_written": refreshed}))
    elif not args.dry_run:
        _say_what_next(plan, keeper, refreshed, context)
    return 0


def settings_path(scope: str, context: Context) -> str:
    """The settings file of a scope, as the host names it."""
    if scope == "user":
        return claude_settings.user_settings(context.env)
    return claude_settings.local_settings(claude_settings.project_root(context.cwd))


def short(path: str, context: Context) -> str:
    """A path as a person writes it."""
    home = context.env.get("HOME", "")
    return "~" + path[len(home) :] if len(home) > 1 and path.startswith(home + "/") else path


def coloured(diff: str, context: Context) -> str:
    """A diff with colour where somebody sees it."""
    if not diff or not context.out.isatty() or context.env.get("NO_COLOR"):
        return diff.rstrip("\n")
    colours = {"+": "32", "-": "31", "@": "36"}
    lines = diff.rstrip("\n").split("\n")
    return "\n".join(f"\033[{colours[line[0]]}m{line}\033[0m" if line[:1] in colours else line for line in lines)


def _has_keeper(path: str) -> bool:
    try:
        there = installation.entries_in(path)
    except HostError:
        return False  # planning says what is wrong with the file
    return any(found.command.word == claude_settings.KEEPER for found in there)


def _show(plan: Plan, keeper: bool, context: Context) -> None:
    count = len(claude_settings.entries(keeper))
    where = short(plan.path, context)
    if not plan.changes:
        context.say(f"Nothing to change: {where} holds the {count} hooks already.")
        return
    there = len(claude_settings.installed((plan.now or b"").decode()))
    if there:
        context.say(f"Renews the {there} hooks in {where} ({count} now):\n")
    else:
        context.say(f"Adds {count} hooks to {where}{'' if plan.now is not None else ' (a new file)'}:\n")
    context.say(coloured(plan.diff(), context))
    context.say()
    if plan.target != os.path.abspath(plan.path):
        context.say(f"{where} is a link; what is written is {short(plan.target, context)}.")
    if plan.without is not None:
        context.say("A backup is kept: `stopwarden uninstall claude-code` restores the file byte for byte.")
    context.say("Nothing is held back until you say `stopwarden away`.")


def _agreed(context: Context, question: str) -> bool:
    """Whether the person says yes. Raises UsageError where nobody can be asked."""
    answer = context.ask(question)
    if answer is None:
        raise UsageError(
            "Nobody can be asked here (no terminal), so nothing was written",
            do="Run it in a terminal, or say --yes (look first with --dry-run)",
        )
    return answer.strip().lower() in ("y", "yes")


def _write(plan: Plan, keeper: bool, scope: str, record: Record, python: str, context: Context) -> bool:
    """Writes everything, the settings file last. Whether the launcher was written."""
    state_dir = place.prepare(context.env)
    refreshed = launcher.write(context.env, python)
    launcher.compile_package()
    known = record.file(plan.path)
    excluded = known.excluded if known else ""
    if scope == "project" and not excluded:
        excluded = git_exclude.keep_out_of_git(claude_settings.project_root(context.cwd), plan.path)
    settings = SettingsFile(path=plan.path, scope=scope, keeper=keeper, excluded=excluded, at=context.now())
    named = replace(record, python=python, launcher=launcher.path(context.env), version=__version__)
    installation.install(plan, named, state_dir, settings)
    return refreshed


def _say_what_next(plan: Plan, keeper: bool, refreshed: bool, context: Context) -> None:
    if not plan.changes:
        if refreshed:
            context.say("The launcher behind them was brought up to date.")
        if not keeper:
            context.say("The keeper is off. To turn it on: stopwarden install claude-code --keeper")
        return
    context.say("Done. Undo: stopwarden uninstall claude-code")
    context.say("See that it works: stopwarden doctor")
    context.say("A session that is open already may need a restart; `stopwarden away` names any that is not covered.")
