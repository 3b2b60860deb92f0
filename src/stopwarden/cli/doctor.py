"""`stopwarden doctor`: proves that the hooks run and can block on this machine, or says what it cannot prove.

Nothing is taken on trust that can be tried. The installed command line is run as it is written,
against a synthetic stop, in a throw-away place (`sim.rehearsal`); where Claude Code is found, the
real program is run there offline against a scripted model, and the block's reason has to arrive at
that model. What only the settings can tell is read from them. Each finding is `ok`, `WARN` (a night
would be worse) or `FAIL` (a night would fail), with what to do. Nothing of the person's is changed,
but for the launcher, which an upgrade may have left behind.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from stopwarden import __version__
from stopwarden.cli.doctor_host import check_host, claude_program, host_environment, version_of
from stopwarden.cli.doctor_record import check_record
from stopwarden.cli.finding import INSTALL, Finding, asked, fail, ok, warn
from stopwarden.cli.install import settings_path, short
from stopwarden.core.errors import HostError, StopwardenError
from stopwarden.hosts import claude_settings, installation, launcher

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from stopwarden.cli.context import Context
    from stopwarden.hosts.claude_settings import Installed
    from stopwarden.sim.rehearsal import Ran, Rehearsal
    from stopwarden.store.port import Store

SECONDS = 60  # for everything together
HOST_PROOF = "real host"
SLOW = 1.0  # seconds a stop may take before it is worth a word
# Variables with which Claude Code runs no hooks at all.
BARE = ("CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_RESTRICTED")
IMPORTS = (
    "import sys; sys.path += {sites!r}; import apsw, stopwarden, stopwarden.hook.run, stopwarden.hook.local; "
    "print(stopwarden.__version__, apsw.sqlite_lib_version())"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of the command."""
    parser.add_argument("--claude", metavar="PATH", help="the Claude Code program (default: the one on PATH)")
    parser.add_argument("--quick", action="store_true", help="leave out the run of the real Claude Code")
    parser.add_argument("--json", action="store_true", help="the findings as one JSON object")
    parser.description = (
        "Proves that the hooks run and can block here: runs the installed command on a made-up stop, and Claude Code\n"
        "itself offline against a scripted model. Exit code 1 if a night would fail."
    )
    parser.epilog = "example:\n  stopwarden doctor\n  stopwarden doctor --claude ~/.local/bin/claude --json"


def run(args: argparse.Namespace, context: Context) -> int:
    """0: a night would hold; 1: it would fail, and the findings say where."""
    until = time.monotonic() + SECONDS
    findings: list[Finding] = []
    for finding in findings_of(args, context, until):
        findings.append(finding)
        if not args.json:
            context.say(_line(finding))
    failed = [finding for finding in findings if finding.level == "FAIL"]
    warned = [finding for finding in findings if finding.level == "WARN"]
    if args.json:
        context.say(json.dumps({"v": 1, "ok": not failed, "findings": [asdict(finding) for finding in findings]}))
    elif failed:
        context.say(f"\nA night would fail: {len(failed)} to put right{_and_warned(warned)}.")
    else:
        proven = any(finding.subject == HOST_PROOF and finding.level == "ok" for finding in findings)
        verdict = "A night would hold here" if proven else "What could be tried holds"
        context.say(f"\n{verdict}{_and_warned(warned)}. Next: stopwarden away until 07:30 --list TODO.md")
    return 1 if failed else 0


def _line(finding: Finding) -> str:
    act = f" {finding.do}." if finding.do else ""
    return f"  {finding.level:<5} {finding.subject:<13} {finding.text}{act}"


def _and_warned(warned: list[Finding]) -> str:
    return f"; {len(warned)} warning{'s' if len(warned) > 1 else ''}" if warned else ""


def findings_of(args: argparse.Namespace, context: Context, until: float) -> Iterator[Finding]:
    """Every finding, in the order a person can act on them."""
    refreshed = launcher.refresh_if_stale(context.env)
    files = list(_settings_files(context))
    hooks: list[Installed] = []
    for path in files:
        try:
            found = installation.entries_in(path)
        except HostError as wrong:
            yield fail("settings", str(wrong), "")
            continue
        before = {(hook.event, hook.line) for hook in hooks}  # in two files alike, the host runs it once
        hooks += [hook for hook in found if (hook.event, hook.line) not in before]
    yield from _registered(context, files, hooks)
    yield from check_disabled(context, files, _managed_files(context))
    known_hooks = [hook for hook in hooks if _is_known(hook, context)]
    for strange in sorted({hook.command.launcher for hook in hooks if hook not in known_hooks}):
        # A checkout's settings come with the checkout: what they name is not run on their word.
        yield fail("launcher", f"{strange} was not installed here, so it is not tried.", f"Run: {INSTALL}")
    yield from _interpreter(context, known_hooks, refreshed)
    yield from _state(context)
    extra = host_environment(context, files)
    claude = claude_program(args, context)
    version = version_of(claude, until) if claude else ""
    yield from check_host(claude, version, extra, _has(hooks, claude_settings.KEEPER))
    if _has(known_hooks, "stop"):
        yield from _proofs(context, known_hooks, claude if version and not args.quick else "", args.quick, until)


# --- the settings ------------------------------------------------------------------------------------


def _settings_files(context: Context) -> Iterator[str]:
    """The settings files that Claude Code reads for this user in this directory, organisation's ones aside."""
    root = claude_settings.project_root(context.cwd)
    yield settings_path("user", context)
    yield os.path.join(root, ".claude", "settings.json")
    yield settings_path("project", context)


def _is_known(hook: Installed, context: Context) -> bool:
    """Whether the entry starts this installation, or the one on record."""
    record = installation.load(context.state_dir)
    ours = ((launcher.interpreter(), launcher.path(context.env)), (record.python, record.launcher))
    return (hook.command.python, hook.command.launcher) in ours


def _has(hooks: list[Installed], word: str) -> bool:
    return any(hook.command.word == word for hook in hooks)


def _registered(context: Context, files: list[str], hooks: list[Installed]) -> Iterator[Finding]:
    if not _has(hooks, "stop"):
        yield fail("hooks", "not installed: nothing can be held.", f"Run: {INSTALL}")
        return
    keeper = _has(hooks, claude_settings.KEEPER)
    wanted = {(entry.event, entry.word) for entry in claude_settings.entries(keeper)}
    missing = sorted(event for event, word in wanted - {(hook.event, hook.command.word) for hook in hooks})
    where = ", ".join(short(path, context) for path in files if _holds(path))
    said = f"{len(hooks)} in {where}; the keeper is {'on' if keeper else 'off'}"
    if missing:
        yield warn("hooks", f"{said}, but none for {', '.join(missing)}.", f"Run: {INSTALL}")
    else:
        yield ok("hooks", said)


def _holds(path: str) -> bool:
    try:
        return bool(installation.entries_in(path))
    except HostError:
        return False


def _managed_files(context: Context) -> list[str]:
    """Where an organisation's settings may be on this machine."""
    single, directory = claude_settings.managed_settings(sys.platform)
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    further = [os.path.join(directory, name) for name in names if name.endswith(".json")]
    return [single, *further, os.path.join(claude_settings.config_dir(context.env), "remote-settings.json")]


def check_disabled(context: Context, files: list[str], managed_files: list[str]) -> Iterator[Finding]:
    """What keeps hooks from running although they are registered."""
    for path in [*files, *managed_files]:
        try:
            settings = installation.settings_in(path)
        except HostError as wrong:
            if path not in files:
                yield warn(
                    "policy", f"{wrong.happened}, so it may switch hooks off.", "Ask whoever manages this machine"
                )
            continue
        named = claude_settings.what_disables(settings, managed=path not in files)
        if named and path in files:
            yield fail("hooks", f"switched off by {named} in {short(path, context)}.", "Take that line out")
        elif named:
            yield fail("policy", f"{named} in {path} keeps our hooks from running.", "Ask whoever manages this machine")
    for name in BARE:
        if context.env.get(name, "").lower() not in ("", "0", "false", "no", "off"):
            yield fail("hooks", f"sessions started here run none: {name} is set.", f"Type: unset {name}")


# --- the program behind them --------------------------------------------------------------------------


def _interpreter(context: Context, hooks: list[Installed], refreshed: bool) -> Iterator[Finding]:
    ours = (launcher.interpreter(), launcher.path(context.env))
    for python, hook in sorted({(hook.command.python, hook.command.launcher) for hook in hooks}):
        gone = launcher.what_is_gone(python, hook)
        if gone:
            yield fail("launcher" if gone == hook else "interpreter", f"{gone} is gone.", f"Run: {INSTALL}")
            continue
        code = IMPORTS.format(sites=list(_sites(hook)))
        told = asked([python, "-I", "-S", "-c", code], 20)
        if told is None or told.returncode != 0:
            said = told.stderr.decode("utf-8", "replace").split("\n") if told else []
            why = next((line for line in reversed(said) if line.strip()), "no answer")
            yield fail("launcher", f"Stopwarden cannot be loaded from it ({why}).", f"Run: {INSTALL}")
            continue
        version, sqlite = told.stdout.decode().split()
        text = f"{short(python, context)} loads Stopwarden {version}, SQLite {sqlite}"
        if (python, hook) != ours:
            yield warn(
                "interpreter",
                f"{text}, which is not the installation this command belongs to ({__version__}).",
                f"If that is not meant, run: {INSTALL}",
            )
        else:
            yield ok("interpreter", text + (" (launcher brought up to date)" if refreshed else ""))


def _sites(hook: str) -> tuple[str, ...]:
    known = launcher.read_file(hook)
    return known.sites if known else ()


def _state(context: Context) -> Iterator[Finding]:
    from stopwarden.store import place

    try:
        path = context.state_dir
        if not os.path.lexists(path):
            yield warn("state", f"{short(path, context)} is not there yet.", f"Run: {INSTALL}")
            return
        place.check(path)
        watch, recorded = None, list[Finding]()
        if os.path.lexists(os.path.join(path, place.DATABASE)):
            store = context.open_store()
            watch = _watch(store, context)
            recorded = check_record(store, path)
            store.close()
        yield ok("state", f"{short(path, context)} is private and can be written")
        yield from recorded
        if watch is not None:
            yield watch
    except StopwardenError as wrong:
        yield fail("state", str(wrong), "")


def _watch(store: Store, context: Context) -> Finding | None:
    """A `stopwarden watch` that runs, and whether the looks that sessions declare themselves count by it."""
    from stopwarden.hook import declared
    from stopwarden.hosts import claude_code

    watch = declared.running_watch(store, context.now())
    if watch is None:
        return None
    text = f"runs (process {watch.pid}), looks every {watch.every} s"
    if not watch.resume:
        return ok("watch", f"{text}; without --resume no declared look counts by it")
    if declared.is_proven(store, claude_code.NAME, watch.resume):
        return ok("watch", f"{text}; its resume command is proven, so looks that scripts' sessions declare count")
    return warn("watch", f"{text}; its resume command is not proven.", "Try it: stopwarden watch --prove SESSION")


# --- proofs ------------------------------------------------------------------------------------------------


def _proofs(context: Context, hooks: list[Installed], claude: str, quick: bool, until: float) -> Iterator[Finding]:
    """The hook tried as the host would start it, and then by the host itself."""
    from stopwarden.sim.rehearsal import Rehearsal

    stop = next(hook for hook in hooks if hook.command.word == "stop")
    with Rehearsal(context.env.get("PATH")) as there:
        idle = there.run(stop.line, there.stop_payload(), min(20, until - time.monotonic()))
        yield _when_nothing_is_armed(idle)
        try:
            there.arm(int(time.time()))
        except StopwardenError as wrong:
            yield fail("a stop", f"could not be rehearsed: {wrong}", "")
            return
        away = there.run(stop.line, there.stop_payload(), min(20, until - time.monotonic()))
        blocked = _when_away(away, there)
        yield blocked
        if quick:
            return
        if not claude:
            yield warn(HOST_PROOF, "not proven that Claude Code runs the hook: the program was not found.", "")
        elif blocked.level == "ok":
            yield _by_the_host(there, claude, hooks, until)


def _when_nothing_is_armed(ran: Ran) -> Finding:
    if ran.code == 0 and ran.answer is not None and not {"decision", "continue"} & set(ran.answer):
        return ok("not away", f"a made-up stop is let go in {_milliseconds(ran)}")
    return fail("not away", f"a made-up stop is not simply let go: {_how(ran)}.", f"Run: {INSTALL}")


def _when_away(ran: Ran, there: Rehearsal) -> Finding:
    answer = ran.answer or {}
    if ran.code != 0 or answer.get("decision") != "block" or "continue" in answer:
        return fail("away", f"a made-up stop with work owed is not blocked: {_how(ran)}.", f"Run: {INSTALL}")
    if there.token not in str(answer.get("reason", "")):
        return fail(
            "away", f"a made-up stop is blocked, but not for the work owed: {_how(ran)}.", "Run: stopwarden report"
        )
    if ran.seconds > SLOW:
        return warn("away", f"a made-up stop is blocked, but only after {ran.seconds:.1f} s.", f"Run: {INSTALL}")
    return ok("away", f"a made-up stop with work owed is blocked in {_milliseconds(ran)}, naming the item")


def _by_the_host(there: Rehearsal, claude: str, hooks: list[Installed], until: float) -> Finding:
    """The real program, offline, with our hooks but for the keeper's (they would outlive it)."""
    tried = [hook for hook in hooks if hook.command.word != claude_settings.KEEPER]
    told = there.run_claude(claude, tried, max(1, until - time.monotonic() - 5))
    if told.request is not None:
        return ok(
            HOST_PROOF, f"Claude Code ran the hook, and the block's reason reached its model ({told.seconds:.1f} s)"
        )
    said = " ".join(told.err.split())[:300] or "it said nothing"
    if not told.requests:
        text = f"Claude Code never asked its model (exit code {told.code}): {said}."
        return fail(HOST_PROOF, text, "Run it once by hand: claude -p hello")
    return fail(
        HOST_PROOF, f"Claude Code ran, but the block's reason never reached its model: {said}.", f"Run: {INSTALL}"
    )


def _milliseconds(ran: Ran) -> str:
    return f"{ran.seconds * 1000:.0f} ms"


def _how(ran: Ran) -> str:
    """What a hook command did, in one line."""
    ended = "it did not end in time" if ran.code is None else f"exit code {ran.code}"
    said = " ".join((ran.err or ran.out).split())[:300]
    return f"{ended}{f', {said}' if said else ', and it printed nothing'}"
