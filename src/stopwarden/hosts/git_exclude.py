"""Keeps a checkout's local settings out of its git history.

They name an interpreter and a launcher of this machine, and an agent that works through the night
may well say `git add --all`. Claude Code has git ignore the file when it makes it itself; where it
is ours to make, a line goes into the repository's `info/exclude`, which is never committed.
"""

from __future__ import annotations

import os

EXCLUDE_LINES = ("# added by stopwarden install: it names paths of this machine", "/.claude/settings.local.json")


def git_says(root: str, *words: str) -> str | None:
    """What git answers in a checkout; None where it fails or is not there."""
    import subprocess

    try:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip()


def keep_out_of_git(root: str, path: str) -> str:
    """Sees to it that a checkout's local settings are not committed by accident.

    The exclude file that we added lines to, or "" where none was needed (no repository, ignored already).
    """
    if git_says(root, "rev-parse", "--git-dir") is None or git_says(root, "check-ignore", "--", path) is not None:
        return ""
    exclude = git_says(root, "rev-parse", "--git-path", "info/exclude")
    if not exclude:
        return ""
    exclude = os.path.join(root, exclude)
    there = _content(exclude)
    added = (b"" if not there or there.endswith(b"\n") else b"\n") + "".join(f"{x}\n" for x in EXCLUDE_LINES).encode()
    try:
        os.makedirs(os.path.dirname(exclude), exist_ok=True)
        with open(exclude, "ab") as file:
            file.write(added)
    except OSError:
        return ""
    return exclude


def let_git_see_again(exclude: str) -> None:
    """Takes the lines out again that `keep_out_of_git` added."""
    there = _content(exclude)
    without = there.replace("".join(f"{line}\n" for line in EXCLUDE_LINES).encode(), b"")
    if without == there:
        return
    try:
        with open(exclude, "wb") as file:
            file.write(without)
    except OSError:
        return


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
