"""Installing and taking out again: what is written, that nothing else moves, and that the launcher always answers."""

from __future__ import annotations

import io
import json
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from stopwarden.cli import main
from stopwarden.cli.context import Context
from stopwarden.core.bounds import LEASE_MAX, STOP_DEADLINE
from stopwarden.core.errors import HostError
from stopwarden.hosts import claude_settings, installation, json_text, launcher
from stopwarden.hosts.claude_settings import command_line, entries, installed

PYTHON, LAUNCHER = "/opt/venv/bin/python", "/home/u/.local/share/stopwarden/hook.py"
REAL_CLAUDE = os.environ.get("STOPWARDEN_TEST_CLAUDE", "")

THEIRS = """{
    "model": "opus",
    "permissions": {"allow": ["Bash(ls:*)", "Read"], "deny": []},
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]}
        ],
        "PostToolUse": [
            {
                "matcher": "Edit|Write",
                "hooks": [
                    {"type": "command", "command": "fmt"}
                ]
            }
        ]
    },
    "odd": 1.0e3,
    "name": "Andr\\u00e9"
}
"""


class Person:
    """Somebody with a home and a checkout, who answers what they are told to answer."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self.checkout = home / "work"
        self.checkout.mkdir()
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"]}
        self.asked: list[str] = []
        self.out, self.err = io.StringIO(), io.StringIO()

    @property
    def settings(self) -> pathlib.Path:
        return self.home / ".claude" / "settings.json"

    @property
    def local(self) -> pathlib.Path:
        return self.checkout / ".claude" / "settings.local.json"

    @property
    def state(self) -> pathlib.Path:
        return self.home / ".local" / "state" / "stopwarden"

    def has(self, text: str | bytes) -> None:
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_bytes(text if isinstance(text, bytes) else text.encode())

    def types(self, *words: str, answers: Callable[[str], str | None] = lambda question: None, **env: str) -> int:
        """Runs one command; the answers are given to whatever is asked."""
        self.out, self.err = io.StringIO(), io.StringIO()

        def ask(question: str) -> str | None:
            self.asked.append(question)
            return answers(question)

        context = Context(
            env={**self.env, **env},
            cwd=str(self.checkout),
            now=lambda: 1_700_000_000,
            out=self.out,
            err=self.err,
            ask=ask,
        )
        return main.main(words, context)

    def files(self) -> dict[str, bytes]:
        """Everything below the home, but for what git keeps for itself."""
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in sorted(self.home.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Person:
    return Person(tmp_path / "home")


def yes(question: str) -> str:
    return "y"


def yes_but_no_keeper(question: str) -> str:
    return "no" if "wake" in question else "yes"


# --- what is written ---------------------------------------------------------------------------------


def test_what_is_written_is_shown_first_and_nothing_is_written_without_a_yes(person: Person) -> None:
    """The whole change is on the screen before the question; a no leaves home and state as they were."""
    person.has(THEIRS)
    before = person.files()
    assert person.types("install", "claude-code", answers=lambda question: "") == 1
    shown = person.out.getvalue()
    for entry in entries(keeper=False):
        assert command_line(launcher.interpreter(), launcher.path(person.env), entry.word) in shown
    assert person.asked == ["Proceed? [y/N] "]
    assert person.files() == before


def test_the_diff_shown_is_the_change_made(person: Person) -> None:
    """Every added line of the diff stands in the file afterwards, in that order, and no other line was added."""
    person.has(THEIRS)
    person.types("install", "claude-code", "--dry-run", "--json")
    plan = json.loads(person.out.getvalue())
    added = [line[1:] for line in plan["diff"].splitlines() if line[:1] == "+" and line[:3] != "+++"]
    removed = [line[1:] for line in plan["diff"].splitlines() if line[:1] == "-" and line[:3] != "---"]
    person.types("install", "claude-code", "--yes")
    now = person.settings.read_text(encoding="utf-8").splitlines()
    assert [line for line in now if line not in THEIRS.splitlines()] == [
        line for line in added if line not in THEIRS.splitlines()
    ]
    assert len(now) == len(THEIRS.splitlines()) + len(added) - len(removed)


def test_without_a_terminal_nothing_is_written_unless_told_so(person: Person) -> None:
    """Where nobody can be asked, silence is no yes: exit 2 and the way to say it."""
    assert person.types("install", "claude-code") == 2
    assert "--yes" in person.err.getvalue()
    assert person.files() == {}
    assert person.types("install", "claude-code", "--json") == 2
    assert person.files() == {}
    assert person.types("install", "claude-code", "--yes") == 0
    assert person.settings.exists()


def test_the_keeper_is_asked_for_by_itself_and_its_two_hooks_are_shown(person: Person) -> None:
    """A yes to the hooks is no yes to a program that may start turns; a no installs the ten hooks alone."""
    person.types("install", "claude-code", answers=yes_but_no_keeper)
    assert len(person.asked) == 2
    assert "wake a session" in person.asked[1]
    assert "asyncRewake" in person.out.getvalue()
    assert "asyncRewake" not in person.settings.read_text(encoding="utf-8")
    assert not installation.keeper_installed(str(person.state))
    person.types("install", "claude-code", "--keeper", answers=yes)
    keepers = [found for found in installed(person.settings.read_text()) if found.command.word == "keep"]
    assert [found.event for found in keepers] == ["Stop", "StopFailure"]
    assert all(found.handler["asyncRewake"] is True and found.handler["timeout"] > LEASE_MAX for found in keepers)
    assert installation.keeper_installed(str(person.state))


def test_installing_again_keeps_the_keeper_unless_told_otherwise(person: Person) -> None:
    """Neither a plain install nor --yes takes back what the person once agreed to."""
    person.types("install", "claude-code", "--keeper", "--yes")
    before = person.settings.read_bytes()
    assert person.types("install", "claude-code", "--yes") == 0
    assert person.settings.read_bytes() == before
    assert person.types("install", "claude-code", "--no-keeper", "--yes") == 0
    assert "asyncRewake" not in person.settings.read_text()


def test_only_the_events_we_answer_are_registered() -> None:
    """No SubagentStop: a child's stop is left alone. Questions are matched by name, everything else is heard whole."""
    events = {(entry.event, entry.word): entry for entry in entries(keeper=True)}
    assert {event for event, _ in events} == {
        "Stop", "StopFailure", "SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PermissionRequest",
        "PostToolUse", "Notification", "PreCompact",
    }  # fmt: skip
    matchers = {event: entry.matcher for (event, _), entry in events.items() if entry.matcher}
    assert matchers == {"PreToolUse": "AskUserQuestion|EnterPlanMode|ExitPlanMode"}


@pytest.mark.case("BR-129", "BR-131")
def test_every_hook_has_a_small_time_out_of_its_own() -> None:
    """A hook that hangs holds a turn for seconds, never for the host's ten minutes; the stop's exceeds our own deadline."""
    for entry in entries(keeper=False):
        timeout = entry.group("x")["hooks"][0]["timeout"]
        assert 0 < timeout <= 15
        assert timeout <= 5 or entry.event == "Stop"
    stop = next(entry for entry in entries(keeper=False) if entry.event == "Stop")
    assert stop.timeout > STOP_DEADLINE


@pytest.mark.case("BR-126")
def test_the_hook_on_every_tool_never_holds_the_agent_up() -> None:
    """It is heard at each tool call, because progress is told by it, so the host must not wait for it."""
    tool = next(entry for entry in entries(keeper=False) if entry.event == "PostToolUse")
    assert tool.group("x")["hooks"][0]["async"] is True
    waited_for = [entry for entry in entries(keeper=True) if entry.event == "PreToolUse"]
    assert all(entry.matcher for entry in waited_for)


def test_project_settings_go_into_the_local_file_of_the_checkout(person: Person) -> None:
    """From anywhere inside a repository: its top, and the file that is not shared."""
    subprocess.run(["git", "init", "-q", str(person.checkout)], check=True)
    deep = person.checkout / "a" / "b"
    deep.mkdir(parents=True)
    context = Context(env=person.env, cwd=str(deep), out=io.StringIO(), err=io.StringIO())
    assert main.main(["install", "claude-code", "--project", "--yes"], context) == 0
    assert installed(person.local.read_text())
    assert not person.settings.exists()
    assert not (deep / ".claude").exists()


def test_a_checkouts_local_settings_are_not_committed_by_accident(person: Person) -> None:
    """An agent that adds everything adds no paths of this machine; after uninstalling, git is as before."""
    git = ["git", "-C", str(person.checkout)]
    subprocess.run(["git", "init", "-q", str(person.checkout)], check=True)
    exclude = person.checkout / ".git" / "info" / "exclude"
    before = exclude.read_bytes() if exclude.exists() else b""
    person.types("install", "claude-code", "--project", "--yes")
    assert subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True).stdout == b""
    person.types("install", "claude-code", "--project", "--yes", "--keeper")
    assert exclude.read_bytes().count(b"settings.local.json") == 1
    person.types("uninstall", "claude-code")
    assert exclude.read_bytes() == before
    assert not person.local.parent.exists()


def test_the_hosts_own_directory_variable_is_respected(person: Person) -> None:
    """With CLAUDE_CONFIG_DIR the user's settings are there, and not in the home."""
    own = person.home / "elsewhere"
    assert person.types("install", "claude-code", "--yes", CLAUDE_CONFIG_DIR=str(own)) == 0
    assert installed((own / "settings.json").read_text())
    assert not person.settings.exists()


# --- that nothing else moves -------------------------------------------------------------------------------


def test_everything_else_in_the_file_stays_where_it_was(person: Person) -> None:
    """Taking our lines away again from the new text gives the old text: key order, spacing, numbers, escapes."""
    person.has(THEIRS)
    person.types("install", "claude-code", "--yes")
    now = person.settings.read_text(encoding="utf-8")
    assert claude_settings.take_out(now, THEIRS) == THEIRS
    settings = json.loads(now)
    assert settings["hooks"]["Stop"][0] == {"hooks": [{"type": "command", "command": "say done"}]}
    assert settings["hooks"]["PostToolUse"][0]["matcher"] == "Edit|Write"
    assert list(settings) == list(json.loads(THEIRS))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{}\n",
        "{ }",
        "",
        " \n",
        '{"a":1,"hooks":{}}',
        '{"hooks": {"Stop": []}}\n',
        '{\r\n\t"a": [1,\r\n\t\t2],\r\n\t"hooks": {\r\n\t}\r\n}\r\n',
        '\ufeff{\n  "a": "b"\n}',
        '{"hooks":{"Stop":[{"hooks":[]}]},"hooks":{"Stop":[{"matcher":"","hooks":[{"type":"command","command":"x"}]}]}}',
        '{\n   "a": {"b": {\n "c": []}}}',
    ],
)
def test_uninstalling_restores_any_style_of_file_byte_for_byte(person: Person, text: str) -> None:
    """Compact or indented, tabs, CRLF, a byte order mark, empty, without a last newline: the same bytes again."""
    person.has(text)
    assert person.types("install", "claude-code", "--yes", "--keeper") == 0
    wanted = [(entry.event, entry.word) for entry in entries(keeper=True)]
    found = [(one.event, one.command.word) for one in installed(person.settings.read_bytes().decode())]
    assert sorted(found) == sorted(wanted)
    if "\r\n" in text:
        assert person.settings.read_bytes().count(b"\n") == person.settings.read_bytes().count(b"\r\n")
    assert person.types("uninstall", "claude-code") == 0
    assert person.settings.read_bytes() == text.encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=6), part, max_size=3),
    max_leaves=12,
)
HANDLER = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=12)})
GROUP = st.fixed_dictionaries({"hooks": st.lists(HANDLER, max_size=2)}, optional={"matcher": st.text(max_size=5)})
HOOKS = st.dictionaries(
    st.sampled_from(["Stop", "PostToolUse", "SubagentStop", "Notification"]), st.lists(GROUP, max_size=2)
)


@limits(max_examples=50, deadline=None)
@given(
    settings=st.dictionaries(st.text(max_size=6).filter(lambda key: key != "hooks"), JSON, max_size=4),
    hooks=st.none() | HOOKS,
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
    ascii_only=st.booleans(),
    keeper=st.booleans(),
)
def test_any_settings_keep_their_meaning_with_us_and_their_text_without_us(
    settings: dict[str, Any], hooks: dict[str, Any] | None, indent: int | str | None, ascii_only: bool, keeper: bool
) -> None:
    """With us: the same settings and our entries. Without us: the same settings; a file with members has the same text."""
    before = settings if hooks is None else {**settings, "hooks": hooks}
    text = json.dumps(before, indent=indent, ensure_ascii=ascii_only)
    wanted = entries(keeper)
    added = claude_settings.add(text, wanted, PYTHON, LAUNCHER)
    now = json.loads(added)
    assert {key: value for key, value in now.items() if key != "hooks"} == settings
    for event, groups in (hooks or {}).items():
        assert now["hooks"][event][: len(groups)] == groups
    assert claude_settings.is_as_wanted(added, wanted, PYTHON, LAUNCHER)
    left = claude_settings.take_out(added, text)
    assert json.loads(left) == before
    if before and (hooks is None or all(hooks.values())):
        assert left == text or not hooks


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(person: Person) -> None:
    """A settings file kept in a dotfiles checkout is edited there, with its own mode, and restored there."""
    kept = person.home / "dotfiles" / "claude.json"
    kept.parent.mkdir()
    kept.write_text(THEIRS, encoding="utf-8")
    kept.chmod(0o640)
    person.settings.parent.mkdir()
    person.settings.symlink_to(kept)
    person.types("install", "claude-code", "--yes")
    assert "is a link" in person.out.getvalue()
    assert person.settings.is_symlink()
    assert installed(kept.read_text())
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    person.types("uninstall", "claude-code")
    assert person.settings.is_symlink()
    assert kept.read_text(encoding="utf-8") == THEIRS
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640


def test_a_file_and_directory_that_we_made_are_removed_again(person: Person) -> None:
    """Where there was nothing, nothing remains; a new file is private from the start."""
    before = sorted(path.name for path in person.home.iterdir())
    person.types("install", "claude-code", "--yes")
    assert stat.S_IMODE(person.settings.stat().st_mode) == 0o600
    person.types("uninstall", "claude-code")
    assert not person.settings.parent.exists()
    assert not (person.home / ".local" / "share" / "stopwarden").exists()
    assert sorted(path.name for path in person.home.iterdir()) == sorted({*before, ".local"})


@pytest.mark.parametrize(
    "broken",
    [
        '{"a": 1,}',
        "// mine\n{}",
        '{"a": NaN}',
        "[]",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        "{",
        '{"a": 1} {}',
        b"\xff\xfe{}",
        "[" * 5_000,
    ],
)
def test_a_settings_file_that_we_cannot_edit_is_left_alone(person: Person, broken: str | bytes) -> None:
    """Claude Code reads nothing from a broken file, so it is named, and not a byte of it or of the state is touched."""
    person.has(broken)
    before = person.files()
    assert person.types("install", "claude-code", "--yes") == 4
    assert str(person.settings) in person.err.getvalue()
    assert "left as it is" in person.err.getvalue()
    assert person.files() == before


def test_a_settings_path_that_is_no_file_is_refused(person: Person) -> None:
    """A directory or a pipe in its place is named, and nothing hangs."""
    person.settings.mkdir(parents=True)
    assert person.types("install", "claude-code", "--yes") == 4
    person.settings.rmdir()
    os.mkfifo(person.settings)
    assert person.types("install", "claude-code", "--yes") == 4
    assert stat.S_ISFIFO(person.settings.stat().st_mode)


def test_a_file_that_changes_while_the_person_thinks_is_not_overwritten(person: Person) -> None:
    """What another program wrote after the diff was shown stays, and the person is told to run it again."""
    person.has(THEIRS)
    changed = THEIRS.replace("opus", "sonnet")

    def slowly(question: str) -> str:
        person.has(changed)
        return "y"

    assert person.types("install", "claude-code", answers=slowly) == 4
    assert person.settings.read_text(encoding="utf-8") == changed
    assert "again" in person.err.getvalue()
    assert not (person.state / "install.json").exists()


# --- again, and out --------------------------------------------------------------------------------------------


def test_installing_twice_changes_nothing_and_says_so(person: Person) -> None:
    """The second time neither the file nor the backup is touched, and nothing is asked."""
    person.has(THEIRS)
    person.types("install", "claude-code", "--yes")
    before = person.files()
    assert person.types("install", "claude-code") == 0
    assert person.asked == []
    assert "Nothing to change" in person.out.getvalue()
    assert {path: data for path, data in person.files().items() if not path.endswith("install.json")} == {
        path: data for path, data in before.items() if not path.endswith("install.json")
    }
    person.types("uninstall", "claude-code")
    assert person.settings.read_text(encoding="utf-8") == THEIRS


def test_a_moved_launcher_is_renewed_in_place_of_the_old(person: Person) -> None:
    """Entries that name an old launcher are replaced, never doubled, and uninstalling still restores the first file."""
    person.has(THEIRS)
    person.types("install", "claude-code", "--yes", XDG_DATA_HOME=str(person.home / "old"))
    person.types("install", "claude-code", "--yes", XDG_DATA_HOME=str(person.home / "new"))
    found = installed(person.settings.read_text())
    assert len(found) == len(entries(keeper=False))
    assert {one.command.launcher for one in found} == {str(person.home / "new" / "stopwarden" / "hook.py")}
    person.types("uninstall", "claude-code", XDG_DATA_HOME=str(person.home / "new"))
    assert person.settings.read_text(encoding="utf-8") == THEIRS


def test_edits_made_since_are_kept_when_we_go(person: Person) -> None:
    """The host rewrote the file and the person added to it: our entries alone go, even out of a group of theirs."""
    person.has(THEIRS)
    person.types("install", "claude-code", "--yes", "--keeper")
    settings = json.loads(person.settings.read_text())
    settings["model"] = "sonnet"
    ours = settings["hooks"]["Notification"].pop()["hooks"][0]
    settings["hooks"]["Notification"].append({"hooks": [{"type": "command", "command": "bell"}, ours]})
    person.settings.write_text(json.dumps(settings, indent=2), encoding="utf-8")
    assert person.types("uninstall", "claude-code") == 0
    left = json.loads(person.settings.read_text())
    expected = json.loads(THEIRS)
    expected["model"] = "sonnet"
    expected["hooks"]["Notification"] = [{"hooks": [{"type": "command", "command": "bell"}]}]
    assert left == expected
    assert "everything else in it stays" in person.out.getvalue()


def test_an_empty_list_that_was_there_before_stays(person: Person) -> None:
    """Only what we made to hold our entries goes with them."""
    person.has('{"hooks": {"Stop": []}}')
    person.types("install", "claude-code", "--yes")
    text = person.settings.read_text()
    person.settings.write_text(json_text.insert(text, (), True, key="mine"), encoding="utf-8")
    person.types("uninstall", "claude-code")
    assert json.loads(person.settings.read_text()) == {"hooks": {"Stop": []}, "mine": True}


def test_a_file_we_made_stays_if_the_person_has_put_something_into_it(person: Person) -> None:
    """Removed is only what is ours."""
    person.types("install", "claude-code", "--yes")
    text = person.settings.read_text()
    person.settings.write_text(json_text.insert(text, (), "opus", key="model"), encoding="utf-8")
    person.types("uninstall", "claude-code")
    assert json.loads(person.settings.read_text()) == {"model": "opus"}


def test_without_a_record_the_entries_are_found_by_themselves(person: Person) -> None:
    """The state directory is gone: our entries are known by their command lines, and go all the same."""
    person.has(THEIRS)
    person.types("install", "claude-code", "--yes")
    shutil.rmtree(person.state)
    assert person.types("uninstall", "claude-code") == 0
    assert json.loads(person.settings.read_text()) == json.loads(THEIRS)
    assert "stopwarden" not in person.settings.read_text()


def test_uninstalling_takes_the_hooks_out_of_every_file_it_knows(person: Person) -> None:
    """User and project, wherever the command is typed; --project takes out that one alone."""
    person.types("install", "claude-code", "--yes")
    person.types("install", "claude-code", "--project", "--yes")
    person.types("uninstall", "claude-code", "--project")
    assert not person.local.exists()
    assert installed(person.settings.read_text())
    assert os.path.exists(launcher.path(person.env))
    person.types("install", "claude-code", "--project", "--yes")
    context = Context(env=person.env, cwd="/", out=io.StringIO(), err=io.StringIO())
    assert main.main(["uninstall", "claude-code"], context) == 0
    assert not person.local.exists()
    assert not person.settings.exists()
    assert installation.load(str(person.state)) == installation.Record()


def test_a_file_broken_since_is_named_and_keeps_the_others_from_nothing(person: Person) -> None:
    """One file cannot be read any more: exit 1 names it, the other is restored, and a later try finishes."""
    person.types("install", "claude-code", "--yes")
    person.types("install", "claude-code", "--project", "--yes")
    good = person.local.read_text()
    person.local.write_text(good + "x", encoding="utf-8")
    assert person.types("uninstall", "claude-code") == 1
    assert str(person.local) in person.err.getvalue()
    assert not person.settings.exists()
    assert os.path.exists(launcher.path(person.env))
    person.local.write_text(good, encoding="utf-8")
    assert person.types("uninstall", "claude-code") == 0
    assert not person.local.exists()


def test_uninstalling_where_nothing_is_says_so(person: Person) -> None:
    """Exit 0, one line, nothing made."""
    assert person.types("uninstall", "claude-code") == 0
    assert "Nothing to take out" in person.out.getvalue()
    assert person.files() == {}


def test_a_rehearsed_uninstall_changes_nothing(person: Person) -> None:
    """--dry-run shows the lines that would go."""
    person.types("install", "claude-code", "--yes")
    before = person.files()
    assert person.types("uninstall", "claude-code", "--dry-run") == 0
    assert "hook.py stop" in person.out.getvalue()
    assert person.files() == before


def test_an_agent_may_not_take_the_hooks_out(person: Person) -> None:
    """Neither all of them nor the keeper: inside an agent's environment both are refused, and nothing changes."""
    person.types("install", "claude-code", "--yes", "--keeper")
    before = person.files()
    assert person.types("uninstall", "claude-code", CLAUDECODE="1") == 2
    assert person.types("install", "claude-code", "--no-keeper", "--yes", CLAUDECODE="1") == 2
    assert person.files() == before


def test_record_and_backup_are_private_and_the_record_holds_no_secret(person: Person) -> None:
    """A token in the settings is in the backup, which is 0600, and nowhere else of ours."""
    person.has('{"env": {"ANTHROPIC_API_KEY": "sk-secret"}}')
    person.types("install", "claude-code", "--yes")
    holding = [path for path in person.state.rglob("*") if path.is_file() and b"sk-secret" in path.read_bytes()]
    assert [path.parent.name for path in holding] == ["backups"]
    for path in person.state.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert b"sk-secret" not in pathlib.Path(launcher.path(person.env)).read_bytes()


@pytest.mark.parametrize(
    "record", ["", "{", "[]", '{"files": 1}', '{"files": [{"path": "/x", "unknown": 1}]}', '{"v": 1, "files": [1]}']
)
def test_a_damaged_record_is_no_obstacle(person: Person, record: str) -> None:
    """It counts as none: installing again finds the entries there, and uninstalling takes them out."""
    person.has(THEIRS)
    person.types("install", "claude-code", "--yes")
    (person.state / "install.json").write_text(record, encoding="utf-8")
    assert person.types("install", "claude-code", "--yes") == 0
    assert person.types("uninstall", "claude-code") == 0
    assert json.loads(person.settings.read_text()) == json.loads(THEIRS)


def test_help_says_why_the_project_file_is_the_local_one(capsys: pytest.CaptureFixture[str]) -> None:
    """A person who wonders reads it in the help, with an example."""
    main.main(["install", "--help"])
    text = capsys.readouterr().out
    assert "settings.local.json" in text
    assert "must not be committed" in text
    assert "stopwarden install claude-code" in text


def test_commands_that_are_not_ours_are_never_taken_for_ours() -> None:
    """Only interpreter, -I -S, a stopwarden/hook.py and a word of ours make an entry of ours."""
    for line in (
        "python -I -S /x/stopwarden/hook.py",
        "python /x/stopwarden/hook.py stop",
        "python -I -S /x/other/hook.py stop",
        "python -I -S /x/stopwarden/hook.py stop; rm x",
        "python -I -S /x/stopwarden/hook.py dance",
        "python -I -S '/x/stopwarden/hook.py stop",
        "",
        7,
        None,
    ):
        assert claude_settings.ours(line) is None
    assert claude_settings.ours(command_line("/a b/python", "/c d/stopwarden/hook.py", "stop")) is not None


def test_a_path_that_a_settings_file_cannot_hold_is_refused() -> None:
    """A directory name that is no Unicode text would be written as something else."""
    with pytest.raises(HostError, match="no Unicode"):
        command_line("/opt/\udcff/python", LAUNCHER, "stop")


# --- the launcher -------------------------------------------------------------------------------------------------

STAND_IN = "import bisect, sys\ndef main(argv=None):\n    print('heard', sys.argv[1], len(sys.stdin.read()))\n"


class Environment:
    """An interpreter with a site directory of its own, as an installer makes them."""

    def __init__(self, root: pathlib.Path) -> None:
        self.python = root / "bin" / "python"
        self.site = root / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        self.python.parent.mkdir(parents=True)
        self.site.mkdir(parents=True)
        self.python.symlink_to(os.path.realpath(sys.executable))
        self.launcher = root / "data" / "stopwarden" / "hook.py"
        self.launcher.parent.mkdir(parents=True)

    def has_package(self, source: str = STAND_IN) -> None:
        package = self.site / "stopwarden" / "hook"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").touch()
        (package / "__init__.py").touch()
        (package / "run.py").write_text(source, encoding="utf-8")

    def has_launcher(self, *sites: str) -> None:
        self.launcher.write_text(launcher.text_for(str(self.python), sites), encoding="utf-8")

    def line(self, word: str) -> str:
        return command_line(str(self.python), str(self.launcher), word)

    def runs(self, word: str, shell: str = "/bin/sh", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([shell, "-c", self.line(word)], input="{}", capture_output=True, text=True, env=env)


@pytest.fixture
def environment(tmp_path: pathlib.Path) -> Environment:
    return Environment(tmp_path / "env")


def test_the_launcher_starts_the_hook_program_without_any_site(environment: Environment) -> None:
    """It imports from the directory it was told; no .pth file runs, and nothing there shadows the standard library."""
    environment.has_package()
    environment.has_launcher(str(environment.site))
    (environment.site / "evil.pth").write_text("import sys; sys.stdout.write('pth ran')\n", encoding="utf-8")
    (environment.site / "bisect.py").write_text("raise SystemExit('shadowed')", encoding="utf-8")
    (environment.launcher.parent / "posix.py").write_text("raise SystemExit('shadowed')", encoding="utf-8")
    ran = environment.runs("stop", PYTHONPATH=str(environment.launcher.parent), PYTHONSTARTUP="/nowhere")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "heard stop 2\n", "")


def test_the_launcher_finds_the_package_again_after_an_upgrade(environment: Environment) -> None:
    """The directory it knew is gone (another minor Python): it looks below its own interpreter."""
    environment.has_package()
    environment.has_launcher("/gone/lib/python3.9/site-packages")
    assert environment.runs("stop").stdout == "heard stop 2\n"
    assert environment.runs("post-tool").stdout == "heard post-tool 2\n"


def test_a_stop_waits_for_an_upgrade_under_way(environment: Environment) -> None:
    """The package is away for a moment while it is replaced: the stop is answered by the new one."""
    environment.has_launcher(str(environment.site))
    with subprocess.Popen(
        ["/bin/sh", "-c", environment.line("stop")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={}
    ) as running:
        waiting = threading.Timer(0.4, environment.has_package)
        waiting.start()
        out, _ = running.communicate("{}", timeout=30)
        waiting.join()
    assert (running.returncode, out) == (0, "heard stop 2\n")


@pytest.mark.parametrize("source", [None, "def main(:\n", "raise RuntimeError('half')\n"])
def test_a_package_that_is_gone_or_broken_is_said_in_one_line_and_never_a_traceback(
    environment: Environment, source: str | None
) -> None:
    """The host goes on, the person is told at the stop what to run, and the other events are silent."""
    if source is not None:
        environment.has_package(source)
    environment.has_launcher(str(environment.site))
    stop, tool = environment.runs("stop"), environment.runs("post-tool")
    assert (stop.returncode, stop.stderr) == (0, "")
    assert stop.stdout.count("\n") == 1
    said = json.loads(stop.stdout)
    assert list(said) == ["systemMessage"]
    assert "stopwarden doctor" in said["systemMessage"]
    assert (tool.returncode, tool.stdout, tool.stderr) == (0, "", "")


SHELLS = [shell for shell in ("/bin/sh", "/bin/bash", "/bin/dash", "/usr/bin/zsh", "/bin/zsh") if os.path.exists(shell)]
ODD_NAMES = [
    "a b",
    "it's",
    'say "hi"',
    "$HOME`id`",
    "back\\slash",
    "ünïcödé 漢字",
    "semi;colon&amp|",
    "-dash",
    "new\nline",
    "*?[x]",
]


@pytest.mark.case("BR-121")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_command_line_survives_any_shell_and_any_path(tmp_path: pathlib.Path, name: str, shell: str) -> None:
    """Blanks, quotes, dollars, backslashes and letters of any script in the paths reach the interpreter unchanged."""
    environment = Environment(tmp_path / name)
    environment.has_package()
    environment.has_launcher(str(environment.site))
    ran = environment.runs("stop", shell)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "heard stop 2\n", "")
    assert shlex.split(environment.line("stop"))[3] == str(environment.launcher)


@pytest.mark.case("BR-117", "BR-123")
def test_the_hook_needs_no_other_program(person: Person) -> None:
    """With an empty PATH and an empty environment the installed stop hook runs: no jq, no bash, no python3 of PATH."""
    person.types("install", "claude-code", "--yes")
    stop = next(one for one in installed(person.settings.read_text()) if one.command.word == "stop")
    payload = '{"session_id": "s", "hook_event_name": "Stop"}'
    ran = subprocess.run(
        ["/bin/sh", "-c", stop.line],
        input=payload,
        capture_output=True,
        text=True,
        env={"PATH": "", "HOME": "/nonexistent"},
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_the_interpreter_named_is_real_absolute_and_always_the_same(tmp_path: pathlib.Path) -> None:
    """A script that stands in for an interpreter is never named; a virtual environment's own path is kept."""
    named = launcher.interpreter()
    assert os.path.isabs(named)
    with open(named, "rb") as file:
        assert file.read(2) != b"#!"
    if sys.prefix != sys.base_prefix:
        assert named == os.path.join(sys.prefix, "bin", "python")
    source = str(pathlib.Path(__file__).resolve().parents[1] / "src")
    code = f"import sys; sys.path.insert(0, {source!r}); from stopwarden.hosts import launcher; print(launcher.interpreter())"
    shim = tmp_path / "python3"
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    fooled = f"import sys; sys.executable = {str(shim)!r}; {code}"
    for program, text in ((str(shim), code), (sys.executable, fooled)):
        told = subprocess.run([program, "-c", text], capture_output=True, text=True, check=True).stdout.strip()
        assert "python3" not in os.path.relpath(told, tmp_path).split(os.sep)[:1]
        assert os.path.realpath(told) == os.path.realpath(sys.executable)


def test_the_launcher_stays_where_it_is_and_only_its_content_follows_an_upgrade(person: Person) -> None:
    """A later command renews a stale launcher and never the settings; twice is no change."""
    person.types("install", "claude-code", "--yes")
    path, settings = launcher.path(person.env), person.settings.read_bytes()
    fresh = pathlib.Path(path).read_text()
    pathlib.Path(path).write_text(launcher.text_for(launcher.interpreter(), ["/old/site"]), encoding="utf-8")
    assert launcher.refresh_if_stale(person.env)
    assert pathlib.Path(path).read_text() == fresh
    assert not launcher.refresh_if_stale(person.env)
    assert person.settings.read_bytes() == settings


def test_another_installation_does_not_take_the_hooks_over(person: Person) -> None:
    """A launcher written for another interpreter, a foreign file, or none at all is left as it is."""
    path = pathlib.Path(launcher.path(person.env))
    assert not launcher.refresh_if_stale(person.env)
    assert not path.exists()
    path.parent.mkdir(parents=True)
    for text in (launcher.text_for("/another/python", ["/its/site"]), "print('somebody else')\n", ""):
        path.write_text(text, encoding="utf-8")
        assert not launcher.refresh_if_stale(person.env)
        assert path.read_text(encoding="utf-8") == text


def test_refreshing_never_raises(person: Person) -> None:
    """A launcher directory that cannot be written, or is no directory, is no reason to stop `away`."""
    path = pathlib.Path(launcher.path(person.env))
    path.parent.mkdir(parents=True)
    path.write_text(launcher.text_for(launcher.interpreter(), ["/old/site"]), encoding="utf-8")
    (path.parent / f"hook.py.{os.getpid()}.new").mkdir()
    assert not launcher.refresh_if_stale(person.env)
    assert "/old/site" in path.read_text(encoding="utf-8")


def test_installing_caches_the_bytecode_of_the_hook(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hook has to compile the package at a stop, even where the shell says to write no bytecode."""
    import importlib.util

    import stopwarden.hook

    cached = importlib.util.cache_from_source(os.path.join(os.path.dirname(stopwarden.hook.__file__), "run.py"))
    pathlib.Path(cached).unlink(missing_ok=True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    person.types("install", "claude-code", "--yes")
    assert os.path.exists(cached)


# --- the real host -----------------------------------------------------------------------------------------------


@pytest.fixture
def claude() -> str:
    if not os.access(REAL_CLAUDE, os.X_OK):
        pytest.skip("real host not installed: run make real-host")
    return REAL_CLAUDE


@pytest.mark.real_host
@pytest.mark.parametrize(
    "replies, expected",
    [
        pytest.param(
            [{"tools": [{"name": "Bash", "input": {"command": "true", "description": "x"}}]}, "done"],
            {"session-start", "prompt", "post-tool", "stop", "keep", "session-end"},
            id="a turn with a tool",
        ),
        pytest.param([{"status": 400, "text": "no"}] * 30, {"prompt", "stop-failure", "keep"}, id="an API error"),
        pytest.param(
            [{"tools": [{"name": "Bash", "input": {"command": "rm -rf /nonexistent", "description": "x"}}]}, "done"],
            {"permission", "stop"},
            id="a permission prompt",
        ),
    ],
)
def test_the_real_host_accepts_what_we_write_and_runs_it(claude: str, replies: list[Any], expected: set[str]) -> None:
    """Claude Code loads the settings without a word and starts each hook at its event, async and asyncRewake included."""
    from stopwarden.sim.rehearsal import Rehearsal, offline
    from stopwarden.sim.scripted_model import Script, ScriptedModel

    with Rehearsal(os.environ["PATH"]) as there:
        heard = pathlib.Path(there.root) / "heard"
        heard.mkdir()
        recorder = pathlib.Path(there.root) / "recorder"
        recorder.write_text(f'#!/bin/sh\ncat > "$(mktemp {heard}/"$4".XXXXXX)"\n', encoding="utf-8")
        recorder.chmod(0o755)
        settings = pathlib.Path(there.project) / ".claude" / "settings.local.json"
        settings.parent.mkdir()
        text = claude_settings.add("", entries(keeper=True), str(recorder), f"{there.root}/stopwarden/hook.py")
        settings.write_text(text, encoding="utf-8")
        with ScriptedModel(Script(replies=replies)) as model:
            ran = subprocess.run(
                [claude, "-p", "go"],
                env={**there.env, **offline(model.url)},
                cwd=there.project,
                capture_output=True,
                text=True,
                timeout=60,
                stdin=subprocess.DEVNULL,
            )
        words = {path.name.partition(".")[0] for path in heard.iterdir()}
        payloads = [json.loads(path.read_text()) for path in heard.iterdir() if path.stat().st_size]
    assert "settings" not in ran.stderr.lower()
    assert expected <= words
    assert all(payload["session_id"] for payload in payloads)


def test_the_words_registered_are_words_the_hook_program_knows() -> None:
    """An event word that the hook program refuses would be a hook that never answers."""
    from stopwarden.hook.run import EVENTS

    assert set(EVENTS) >= claude_settings.WORDS
