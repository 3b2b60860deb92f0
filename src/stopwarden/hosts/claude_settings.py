"""What Stopwarden writes into Claude Code's settings, and how it finds and takes out its own again.

The entries are the whole interface between the host and the hook program; every other key of a
settings file is the person's. An entry of ours is known by its command line alone (interpreter,
`-I -S`, a `stopwarden/hook.py`, an event word), so it is found after the host or the person has
rewritten the file, and after the launcher has moved.

Facts the entries rest on (measured with Claude Code 2.1.332): time-outs are in seconds; a command
runs through a shell; the whole command line is shown to the model with a block's reason, so it is
short; `async` on PostToolUse costs the agent nothing; `asyncRewake` wakes an idle session.

Pure: text and values. Files are in `hosts.installation`.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stopwarden.core.errors import HostError
from stopwarden.hosts import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LAUNCHER_ENDING = "/stopwarden/hook.py"
KEEPER = "keep"
KEEPER_TIMEOUT = 25 * 60 * 60  # seconds: longer than the longest lease a session may wait
QUESTIONS = "AskUserQuestion|EnterPlanMode|ExitPlanMode"


@dataclass(frozen=True)
class Entry:
    """One hook: the host's event, our word for it, and how the host is to run it (time-out in seconds)."""

    event: str
    word: str
    timeout: int = 5
    matcher: str = ""
    background: str = ""  # "": the host waits for the answer; else "async" or "asyncRewake"

    def group(self, command: str) -> dict[str, Any]:
        """The entry as it stands in the list of its event."""
        handler: dict[str, Any] = {"type": "command", "command": command, "timeout": self.timeout}
        if self.background:
            handler[self.background] = True
        return {"matcher": self.matcher, "hooks": [handler]} if self.matcher else {"hooks": [handler]}


# SubagentStop is left alone: a child's stop is never continued by its parent's work.
ENTRIES = (
    Entry("Stop", "stop", timeout=15),  # our own deadline is 8 s
    Entry("StopFailure", "stop-failure"),
    Entry("SessionStart", "session-start"),
    Entry("SessionEnd", "session-end", timeout=2),  # the host gives all of them 1.5 s unless told more
    Entry("UserPromptSubmit", "prompt"),
    Entry("PreToolUse", "pre-tool", matcher=QUESTIONS),
    Entry("PermissionRequest", "permission"),
    Entry("PostToolUse", "post-tool", background="async"),
    Entry("Notification", "notification"),
    Entry("PreCompact", "pre-compact"),
)
KEEPER_ENTRIES = (
    Entry("Stop", KEEPER, timeout=KEEPER_TIMEOUT, background="asyncRewake"),
    Entry("StopFailure", KEEPER, timeout=KEEPER_TIMEOUT, background="asyncRewake"),
)
WORDS = frozenset(entry.word for entry in ENTRIES + KEEPER_ENTRIES)


def entries(keeper: bool) -> tuple[Entry, ...]:
    """The entries to install, in order; with the keeper two more."""
    return ENTRIES + KEEPER_ENTRIES if keeper else ENTRIES


def command_line(python: str, launcher: str, word: str) -> str:
    """The command of an entry, safe in sh, bash and zsh whatever the paths hold.

    Raises HostError for a path that is not Unicode text: a settings file cannot hold it.
    """
    for path in (python, launcher):
        try:
            path.encode()
        except UnicodeEncodeError:
            raise HostError(
                f"A settings file cannot hold the path {path!a}: it is no Unicode text",
                kept="Nothing was changed",
                do="Install Stopwarden under a path that is (set XDG_DATA_HOME for the launcher)",
            ) from None
    return f"{shlex.quote(python)} -I -S {shlex.quote(launcher)} {word}"


@dataclass(frozen=True)
class Command:
    """A command line of ours, taken apart."""

    python: str
    launcher: str
    word: str


def ours(command: object) -> Command | None:
    """The command line taken apart if it is one of ours, else None."""
    if not isinstance(command, str) or LAUNCHER_ENDING not in command:
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if len(words) == 5 and words[1:3] == ["-I", "-S"] and words[3].endswith(LAUNCHER_ENDING) and words[4] in WORDS:
        return Command(words[0], words[3], words[4])
    return None


@dataclass(frozen=True)
class Installed:
    """An entry of ours as it stands in a settings file."""

    event: str
    command: Command
    line: str  # the command as written
    handler: Mapping[str, Any]
    matcher: str
    place: tuple[str, int, str, int]  # path below the root: "hooks.EVENT" group, handler


def installed(text: str) -> list[Installed]:
    """Every entry of ours in a settings text, in its order. Raises HostError for a text that is no settings file."""
    found = []
    for event, groups in _hooks_of(read(text)).items():
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for place, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                line = handler.get("command") if isinstance(handler, dict) else None
                command = ours(line)
                if command is not None:
                    matcher = str(group.get("matcher") or "")
                    found.append(
                        Installed(event, command, str(line), handler, matcher, (event, number, "hooks", place))
                    )
    return found


def read(text: str) -> dict[str, Any]:
    """The settings as a dict; an empty file is no settings. Raises HostError for what is no settings file."""
    if not text.strip("\ufeff \t\r\n"):
        return {}
    settings = json_text.parse(text).value
    if not isinstance(settings, dict):
        raise HostError("the file holds no settings object")
    return settings


def _hooks_of(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    hooks = settings.get("hooks")
    return hooks if isinstance(hooks, dict) else {}


def is_as_wanted(text: str, wanted: Sequence[Entry], python: str, launcher: str) -> bool:
    """Whether exactly the wanted entries are there, as we would write them."""
    there = [(found.event, found.matcher, found.line, dict(found.handler)) for found in installed(text)]
    should = []
    for entry in wanted:
        line = command_line(python, launcher, entry.word)
        should.append((entry.event, entry.matcher, line, entry.group(line)["hooks"][0]))
    return len(there) == len(should) and all(one in there for one in should)


def add(text: str, wanted: Sequence[Entry], python: str, launcher: str) -> str:
    """The text with the entries added at the end of their lists, each in one line; nothing else is touched.

    Raises HostError where the text is no settings file, or `hooks` is not laid out as the host wants it.
    """
    if not read(text):
        text = text if text.strip("\ufeff \t\r\n") else "{}\n"
    if json_text.parse(text).member("hooks") is None:
        text = json_text.insert(text, (), {}, key="hooks")
    for entry in wanted:
        group = entry.group(command_line(python, launcher, entry.word))
        if json_text.parse(text).at(("hooks", entry.event)) is None:
            text = json_text.insert(text, ("hooks",), [group], key=entry.event, one_line=True)
        else:
            text = json_text.insert(text, ("hooks", entry.event), group, one_line=True)
    return text


def take_out(text: str, before: str | None = None) -> str:
    """The text without our entries, and without what we had to make to hold them.

    `before` is the text from before we came, where it is known: a list or object that was there
    and empty then stays. An entry that the person moved into a group of theirs is taken out of it.
    """
    kept = _containers(before)
    for found in reversed(installed(text)):
        event, number, _, place = found.place
        path: tuple[str | int, ...] = ("hooks", event, number, "hooks", place)
        group = json_text.parse(text).at(path[:3])
        handlers = json_text.parse(text).at(path[:4])
        if group is not None and handlers is not None and len(handlers.parts) == 1:
            path = path[:3]
        text = json_text.remove(text, path)
        for holder in (("hooks", event), ("hooks",)):
            emptied = json_text.parse(text).at(holder)
            if emptied is not None and not emptied.parts and holder not in kept:
                text = json_text.remove(text, holder)
    return text


def _containers(before: str | None) -> set[tuple[str, ...]]:
    """Which of `hooks` and its lists a text has."""
    try:
        settings = read(before) if before is not None else {}
    except HostError:
        return set()
    there = {("hooks",)} if "hooks" in settings else set[tuple[str, ...]]()
    return there | {("hooks", event) for event in _hooks_of(settings)}


# --- where the host looks, and what switches hooks off there ---------------------------------------


def config_dir(env: Mapping[str, str]) -> str:
    """The host's own directory of this user."""
    named = env.get("CLAUDE_CONFIG_DIR", "")
    return os.path.abspath(named) if named else os.path.join(env.get("HOME") or os.path.expanduser("~"), ".claude")


def user_settings(env: Mapping[str, str]) -> str:
    """The settings file for every session of this user."""
    return os.path.join(config_dir(env), "settings.json")


def local_settings(root: str) -> str:
    """The settings file for one checkout on this machine; the host keeps it out of version control."""
    return os.path.join(root, ".claude", "settings.local.json")


def project_root(cwd: str) -> str:
    """Where the host looks for a checkout's settings: the top of the repository, else the directory itself."""
    above = os.path.abspath(cwd)
    while True:
        if os.path.lexists(os.path.join(above, ".git")):
            return above
        if os.path.dirname(above) == above:
            return os.path.abspath(cwd)
        above = os.path.dirname(above)


def managed_settings(platform: str) -> tuple[str, ...]:
    """Where an organisation's settings are on this machine: a file, and a directory of further ones."""
    base = "/Library/Application Support/ClaudeCode" if platform == "darwin" else "/etc/claude-code"
    return (f"{base}/managed-settings.json", f"{base}/managed-settings.d")


def what_disables(settings: Mapping[str, Any], *, managed: bool) -> str:
    """The name of the setting that keeps our hooks from running, or ""."""
    if settings.get("disableAllHooks") is True:
        return "disableAllHooks"
    if managed and settings.get("allowManagedHooksOnly") is True:
        return "allowManagedHooksOnly"
    only = settings.get("strictPluginOnlyCustomization")
    if managed and (only is True or (isinstance(only, list) and "hooks" in only)):
        return "strictPluginOnlyCustomization"
    return ""
