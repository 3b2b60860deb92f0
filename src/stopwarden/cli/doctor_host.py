"""What `doctor` finds out about Claude Code itself: where it is, its version, cap, scheduler and todo tools."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

from stopwarden.cli.finding import INSTALL, Finding, asked, fail, ok, warn
from stopwarden.core.errors import HostError
from stopwarden.hosts import claude_code, installation

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from stopwarden.cli.context import Context

MINIMUM = (2, 1, 145)  # the first Claude Code that reports scheduled wakes
LOW_CAP = 3


def host_environment(context: Context, files: list[str]) -> dict[str, str]:
    """What sessions started here get: this environment, and what settings files add to it.

    The cap is taken from the environment alone: Claude Code ignores it in settings (measured).
    """
    given: dict[str, str] = {}
    for path in files:
        try:
            named = installation.settings_in(path).get("env")
        except HostError:
            continue
        given |= {str(key): str(value) for key, value in named.items()} if isinstance(named, dict) else {}
    given.pop(claude_code.CAP_VARIABLE, None)
    return {**context.env, **given}


def claude_program(args: argparse.Namespace, context: Context) -> str:
    """The program's path, "" where there is none."""
    if args.claude:
        return os.path.abspath(os.path.join(context.cwd, os.path.expanduser(args.claude)))
    found = shutil.which("claude", path=context.env.get("PATH", os.defpath))
    if found:
        return os.path.abspath(found)
    home = context.env.get("HOME", "")
    usual = [os.path.join(home, ".local", "bin", "claude"), os.path.join(home, ".claude", "local", "claude")]
    return next((path for path in usual if home and os.access(path, os.X_OK)), "")


def version_of(claude: str, until: float) -> str:
    """What the program says its version is, "" where it says nothing."""
    from stopwarden.sim.rehearsal import Rehearsal, offline

    with Rehearsal() as there:
        env = {**there.env, **offline("http://127.0.0.1:9")}
        told = asked([claude, "--version"], min(20, until - time.monotonic()), env)
    words = told.stdout.decode("utf-8", "replace").split() if told else []
    return words[0] if words and words[0][0].isdigit() else ""


def check_host(claude: str, version: str, env: Mapping[str, str], keeper: bool) -> Iterator[Finding]:
    if not claude:
        yield warn("Claude Code", "not found on PATH.", "Name it: stopwarden doctor --claude PATH")
    elif not version:
        yield fail("Claude Code", f"{claude} does not say its version.", "See what it prints: claude --version")
    elif _numbers(version) < MINIMUM:
        least = ".".join(map(str, MINIMUM))
        yield fail(
            "Claude Code",
            f"{version} does not report scheduled wakes; {least} is the first that does.",
            "Run: claude update",
        )
    else:
        yield ok("Claude Code", f"{version} ({claude})")
    yield _cap(env)
    yield _scheduler(env, keeper)
    if env.get("CLAUDE_CODE_ENABLE_TODO_TOOLS", "").lower() in ("1", "true", "yes", "on"):
        yield ok("todo tools", "on, so its own todos count as owed besides the list")
    else:
        yield ok(
            "todo tools", "today's models get none unless CLAUDE_CODE_ENABLE_TODO_TOOLS=1; the list is what counts"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("-")[0].split("."))


def _cap(env: Mapping[str, str]) -> Finding:
    name = claude_code.CAP_VARIABLE
    said = env.get(name, "")
    cap = claude_code.host_cap(lambda key: env.get(key, ""))
    if cap is None and said:
        return warn("block cap", f"{name}={said} is no number, so Claude Code takes 8.", f"Type: unset {name}")
    if cap == 0:
        return ok("block cap", f"off ({name}={said}); only our own bounds end a row of blocks")
    if cap is not None and cap < LOW_CAP:
        return warn("block cap", f"only {cap} blocks in a row before Claude Code lets go.", f"Type: unset {name}")
    own = f" ({name})" if cap is not None else ""
    return ok("block cap", f"{cap or 8} blocks in a row without any tool use{own}")


def _scheduler(env: Mapping[str, str], keeper: bool) -> Finding:
    works = claude_code.scheduler("cli", lambda key: env.get(key, ""))
    if works.works == "all":
        return ok("scheduler", "on")
    text = f"{works.why}, so no session can wait for a wake."
    if keeper:
        return warn("scheduler", f"{text} The keeper stands in for it.", "Type: unset CLAUDE_CODE_DISABLE_CRON")
    return fail("scheduler", text, f"Unset CLAUDE_CODE_DISABLE_CRON, or run: {INSTALL} --keeper")
