"""`doctor` proves by trying: a good installation holds, and each way of being broken is found and said with what to do."""

from __future__ import annotations

import io
import json
import os
import pathlib
import shutil
import tempfile
import time
from typing import Any

import pytest

from stopwarden.cli import doctor, main
from stopwarden.cli.context import Context
from stopwarden.hosts import claude_settings, launcher
from stopwarden.hosts.claude_settings import installed
from stopwarden.sim.rehearsal import Rehearsal

REAL_CLAUDE = os.environ.get("STOPWARDEN_TEST_CLAUDE", "")


class Machine:
    """A home with Stopwarden installed, and what `doctor` says about it."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self.checkout = home / "work"
        self.checkout.mkdir()
        self.env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        self.out = io.StringIO()

    @property
    def settings(self) -> pathlib.Path:
        return self.home / ".claude" / "settings.json"

    @property
    def state(self) -> pathlib.Path:
        return self.home / ".local" / "state" / "stopwarden"

    @property
    def launcher(self) -> pathlib.Path:
        return pathlib.Path(launcher.path(self.env))

    def context(self, **env: str) -> Context:
        self.out = io.StringIO()
        return Context(env={**self.env, **env}, cwd=str(self.checkout), out=self.out, err=self.out)

    def install(self, *words: str) -> None:
        assert main.main(["install", "claude-code", "--yes", *words], self.context()) == 0

    def doctor(self, *words: str, **env: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        """The exit code, and the findings by subject."""
        code = main.main(["doctor", "--json", *words], self.context(**env))
        told = json.loads(self.out.getvalue())
        assert told["ok"] is (code == 0)
        by_subject: dict[str, list[dict[str, Any]]] = {}
        for finding in told["findings"]:
            by_subject.setdefault(finding["subject"], []).append(finding)
        return code, by_subject

    def has_claude(self, script: str) -> str:
        """A program in Claude Code's place."""
        program = self.home / "claude"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        return str(program)

    def has_hook_program(self, source: str) -> None:
        """Another program in the launcher's place."""
        self.launcher.write_text(source, encoding="utf-8")


@pytest.fixture
def machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    tempdir = tmp_path / "tmp"
    tempdir.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tempdir))
    return Machine(tmp_path / "home")


def levels(found: dict[str, list[dict[str, Any]]], level: str) -> set[str]:
    return {subject for subject, findings in found.items() if any(one["level"] == level for one in findings)}


@pytest.mark.case("BR-029")
def test_a_good_installation_is_proven_to_block_and_to_let_go(machine: Machine) -> None:
    """The installed command, run as written: a stop with work owed is blocked while away, and let go while not."""
    machine.install()
    code, found = machine.doctor("--quick")
    assert code == 0
    assert levels(found, "FAIL") == set()
    assert "blocked" in found["away"][0]["text"]
    assert "let go" in found["not away"][0]["text"]
    assert found["hooks"][0]["text"].startswith("10 in ~/.claude/settings.json")


def test_it_leaves_nothing_behind(machine: Machine, tmp_path: pathlib.Path) -> None:
    """Neither in the home, nor in the state, nor among temporary files."""
    machine.install()
    before = sorted(path for path in machine.home.rglob("*"))
    machine.doctor("--claude", machine.has_claude('echo "2.1.332 (Claude Code)"'))
    after = sorted(path for path in machine.home.rglob("*") if path.name != "claude")
    assert after == before
    assert list((tmp_path / "tmp").iterdir()) == []


def test_where_nothing_is_installed_it_says_so_and_makes_nothing(machine: Machine) -> None:
    """Exit 1 with the one command to type; nothing is rehearsed, nothing written."""
    code, found = machine.doctor()
    assert code == 1
    assert found["hooks"][0]["do"] == "Run: stopwarden install claude-code"
    assert "away" not in found
    assert sorted(path.name for path in machine.home.rglob("*")) == ["work"]


@pytest.mark.parametrize(
    "source, subject",
    [
        ("print()", "away"),
        ("raise SystemExit(1)", "away"),
        ("print('block')", "away"),
        ("import sys; sys.stderr.write('go on'); raise SystemExit(2)", "away"),
        ('print(\'{"decision": "block", "reason": "something else"}\')', "away"),
        ('print(\'{"decision": "block", "reason": "always"}\')', "not away"),
        pytest.param(
            'print(\'{"continue": true, "suppressOutput": true}\')', "not away", marks=pytest.mark.case("BR-017")
        ),
    ],
)
def test_a_hook_that_does_not_answer_as_it_should_is_found(machine: Machine, source: str, subject: str) -> None:
    """Silence, an error, plain text, exit 2, a reason that is not ours, a block for everybody, `continue`: all fail."""
    machine.install()
    machine.has_hook_program(source)
    code, found = machine.doctor("--quick")
    assert code == 1
    assert subject in levels(found, "FAIL")


@pytest.mark.parametrize("extra, level", [("", "ok"), (", 'continue': True", "FAIL")])
def test_a_block_that_also_says_continue_fails(machine: Machine, extra: str, level: str) -> None:
    """It names the item and blocks while away only, as ours does; the one key more makes it a failure."""
    machine.install()
    machine.has_hook_program(
        "import json, os, sys\n"
        "session = json.load(sys.stdin)['session_id']\n"
        "if os.path.exists(os.environ['XDG_STATE_HOME'] + '/stopwarden/away.json'):\n"
        f"    print(json.dumps({{'decision': 'block', 'reason': session{extra}}}))\n"
    )
    _, found = machine.doctor("--quick")
    assert (found["not away"][0]["level"], found["away"][0]["level"]) == ("ok", level)


def test_the_installed_hook_never_says_continue(machine: Machine) -> None:
    """Neither answer of ours carries the key that some hosts take for an endless turn."""
    machine.install()
    stop = next(one for one in installed(machine.settings.read_text()) if one.command.word == "stop")
    with Rehearsal() as there:
        idle = there.run(stop.line, there.stop_payload())
        there.arm(int(time.time()))
        away = there.run(stop.line, there.stop_payload())
    assert (idle.code, idle.out) == (0, "")
    assert away.answer is not None
    assert set(away.answer) == {"decision", "reason"}


def test_a_launcher_that_an_upgrade_left_behind_is_brought_up_to_date(machine: Machine) -> None:
    """The one thing doctor mends by itself; the settings stay as they are."""
    machine.install()
    settings, fresh = machine.settings.read_bytes(), machine.launcher.read_text()
    machine.has_hook_program(launcher.text_for(launcher.interpreter(), ["/gone"]))
    code, found = machine.doctor("--quick")
    assert code == 0
    assert "brought up to date" in found["interpreter"][0]["text"]
    assert machine.launcher.read_text() == fresh
    assert machine.settings.read_bytes() == settings


def test_a_launcher_or_interpreter_that_is_gone_is_found(machine: Machine) -> None:
    """Each is named, with the command that brings it back."""
    machine.install()
    machine.launcher.unlink()
    code, found = machine.doctor("--quick")
    assert code == 1
    assert str(machine.launcher) in found["launcher"][0]["text"]
    machine.install()
    record = json.loads((machine.state / "install.json").read_text())
    record["python"] = "/gone/bin/python"
    (machine.state / "install.json").write_text(json.dumps(record), encoding="utf-8")
    machine.settings.write_text(machine.settings.read_text().replace(launcher.interpreter(), "/gone/bin/python"))
    code, found = machine.doctor("--quick")
    assert code == 1
    assert "/gone/bin/python is gone" in found["interpreter"][0]["text"]


def test_a_command_that_a_checkout_brings_along_is_never_run(machine: Machine) -> None:
    """Settings of a cloned repository may name any program in our entry's form: it is named, not started."""
    ran = machine.home / "ran"
    program = machine.checkout / "stopwarden" / "hook.py"
    program.parent.mkdir()
    program.write_text(f"open({str(ran)!r}, 'w')", encoding="utf-8")
    line = claude_settings.command_line(launcher.interpreter(), str(program), "stop")
    shared = machine.checkout / ".claude" / "settings.json"
    shared.parent.mkdir()
    shared.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}}))
    code, found = machine.doctor("--quick")
    assert code == 1
    assert not ran.exists()
    assert str(program) in found["launcher"][0]["text"]


def test_a_missing_entry_is_a_warning(machine: Machine) -> None:
    """Somebody took one of ours out: the night still holds, but it is said."""
    machine.install()
    settings = json.loads(machine.settings.read_text())
    del settings["hooks"]["PermissionRequest"]
    machine.settings.write_text(json.dumps(settings))
    code, found = machine.doctor("--quick")
    assert code == 0
    assert found["hooks"][0]["level"] == "WARN"
    assert "PermissionRequest" in found["hooks"][0]["text"]


@pytest.mark.parametrize("where", [".claude/settings.json", ".claude/settings.local.json", "~/.claude/settings.json"])
def test_hooks_switched_off_in_any_settings_file_fail(machine: Machine, where: str) -> None:
    """Measured: `disableAllHooks` of the checkout silences the user's own hooks as well."""
    machine.install()
    path = machine.settings if where[0] == "~" else machine.checkout / where
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**settings, "disableAllHooks": True}))
    code, found = machine.doctor("--quick")
    assert code == 1
    assert any("disableAllHooks" in one["text"] for one in found["hooks"] if one["level"] == "FAIL")


@pytest.mark.parametrize(
    "policy, named",
    [
        ({"disableAllHooks": True}, "disableAllHooks"),
        ({"allowManagedHooksOnly": True}, "allowManagedHooksOnly"),
        ({"strictPluginOnlyCustomization": ["skills", "hooks"]}, "strictPluginOnlyCustomization"),
        ({"strictPluginOnlyCustomization": ["skills"], "allowManagedHooksOnly": False}, ""),
    ],
)
def test_an_organisations_policy_that_silences_hooks_fails(
    machine: Machine, policy: dict[str, Any], named: str
) -> None:
    """Only in a managed file do these count, and the person is sent to whoever manages the machine."""
    managed = machine.home / "managed-settings.json"
    managed.write_text(json.dumps(policy))
    found = list(doctor.check_disabled(machine.context(), [], [str(managed)]))
    assert [one.level for one in found] == (["FAIL"] if named else [])
    assert all(named in one.text and "manages" in one.do for one in found)
    own = [one for one in doctor.check_disabled(machine.context(), [str(managed)], []) if "Managed" in one.text]
    assert own == []


def test_a_settings_file_that_cannot_be_read_fails(machine: Machine) -> None:
    """Claude Code loads nothing from it, our hooks included."""
    machine.install("--project")
    local = machine.checkout / ".claude" / "settings.local.json"
    local.write_text(local.read_text() + "// mine\n")
    code, found = machine.doctor("--quick")
    assert code == 1
    assert str(local) in found["settings"][0]["text"]


@pytest.mark.parametrize("name", ["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"])
def test_an_environment_in_which_no_hook_runs_fails(machine: Machine, name: str) -> None:
    """Measured: with these set Claude Code runs no hook of a settings file."""
    machine.install()
    code, found = machine.doctor("--quick", **{name: "1"})
    assert code == 1
    assert any(name in one["text"] for one in found["hooks"])
    assert machine.doctor("--quick", **{name: "0"})[0] == 0


@pytest.mark.parametrize(
    "value, level, text",
    [
        (None, "ok", "8 blocks"),
        ("12", "ok", "12 blocks"),
        ("0", "ok", "off"),
        ("2", "WARN", "only 2"),
        ("many", "WARN", "no number"),
    ],
)
def test_the_block_cap_is_read_as_the_host_reads_it(machine: Machine, value: str | None, level: str, text: str) -> None:
    """Unset and unreadable mean the host's own 8; 0 means none; a small one is worth a warning."""
    machine.install()
    env = {} if value is None else {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": value}
    code, found = machine.doctor("--quick", **env)
    assert (code, found["block cap"][0]["level"]) == (0, level)
    assert text in found["block cap"][0]["text"]


def test_a_cap_in_the_settings_is_not_believed(machine: Machine) -> None:
    """Measured: Claude Code takes the cap from the environment alone."""
    machine.install()
    settings = json.loads(machine.settings.read_text())
    machine.settings.write_text(json.dumps({**settings, "env": {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2"}}))
    assert "8 blocks" in machine.doctor("--quick")[1]["block cap"][0]["text"]


def test_a_scheduler_that_is_off_fails_unless_the_keeper_stands_in(machine: Machine) -> None:
    """From the environment or from a settings file; without wakes no session can wait through a night."""
    machine.install()
    assert machine.doctor("--quick", CLAUDE_CODE_DISABLE_CRON="1")[0] == 1
    settings = json.loads(machine.settings.read_text())
    machine.settings.write_text(json.dumps({**settings, "env": {"CLAUDE_CODE_DISABLE_CRON": "1"}}))
    code, found = machine.doctor("--quick")
    assert (code, found["scheduler"][0]["level"]) == (1, "FAIL")
    machine.install("--keeper")
    code, found = machine.doctor("--quick")
    assert (code, found["scheduler"][0]["level"]) == (0, "WARN")
    assert "keeper is on" in found["hooks"][0]["text"]


@pytest.mark.parametrize(
    "script, level",
    [
        ('echo "2.1.145 (Claude Code)"', "ok"),
        ('echo "3.0.0-beta.1 (Claude Code)"', "ok"),
        ('echo "2.1.144 (Claude Code)"', "FAIL"),
        ('echo "1.0.128"', "FAIL"),
        ("echo hello", "FAIL"),
        ("exit 3", "FAIL"),
    ],
)
def test_an_old_host_is_told_by_its_version(machine: Machine, script: str, level: str) -> None:
    """Before 2.1.145 Claude Code reports no wakes, so no session could wait; the update command is named."""
    machine.install()
    code, found = machine.doctor("--quick", "--claude", machine.has_claude(script))
    assert found["Claude Code"][0]["level"] == level
    assert code == (0 if level == "ok" else 1)


def test_without_the_program_it_says_that_nothing_could_be_proven(machine: Machine) -> None:
    """No Claude Code on PATH: a warning, and the real host stays unproven in so many words."""
    machine.install()
    code, found = machine.doctor()
    assert code == 0
    assert "not found" in found["Claude Code"][0]["text"]
    assert found["real host"][0]["level"] == "WARN"
    assert "not proven" in found["real host"][0]["text"]


def test_a_program_that_never_runs_the_hook_fails(machine: Machine) -> None:
    """It answers with a version but asks no model: the proof fails, with what it said."""
    machine.install()
    script = 'case "$1" in --version) echo "2.1.332 (Claude Code)";; *) echo "no credit" >&2; exit 1;; esac'
    code, found = machine.doctor("--claude", machine.has_claude(script))
    assert code == 1
    assert "no credit" in found["real host"][0]["text"]


def test_a_program_that_hangs_is_ended_in_time_with_all_it_started(machine: Machine) -> None:
    """The rehearsal takes no longer than it was given, and leaves no process."""
    pids = machine.home / "pids"
    script = f"echo $$ > {pids}; sleep 600 & echo $! >> {pids}; wait"
    with Rehearsal() as there:
        began = time.monotonic()
        told = there.run_claude(machine.has_claude(script), [], 1)
        assert time.monotonic() - began < 8
        hook = there.run(f"{machine.home / 'claude'}", {}, 0.5)
    assert (told.request, told.requests, told.code) == (None, 0, None)
    assert hook.code is None
    for pid in pids.read_text().split():
        status = pathlib.Path(f"/proc/{pid}/status")
        assert not status.exists() or "Z (zombie)" in status.read_text()


def test_a_state_directory_that_is_refused_fails(machine: Machine) -> None:
    """A link where the state should be: said, with what to do, and not followed."""
    machine.install()
    elsewhere = machine.home / "elsewhere"
    shutil.move(machine.state, elsewhere)
    machine.state.symlink_to(elsewhere)
    code, found = machine.doctor("--quick")
    assert code == 1
    assert "symbolic link" in found["state"][0]["text"]


def test_the_report_is_plain_lines_with_what_to_do(machine: Machine) -> None:
    """For a person: one line a finding, every warning with an act, and one sentence at the end."""
    machine.install()
    assert main.main(["doctor", "--quick"], machine.context()) == 0
    lines = machine.out.getvalue().splitlines()
    assert lines[0].split()[:2] == ["ok", "hooks"]
    assert "What could be tried holds" in lines[-1]
    assert all("stopwarden" in line or "." in line for line in lines if "WARN" in line)
    assert main.main(["doctor", "--quick"], machine.context(CLAUDE_CODE_DISABLE_CRON="1")) == 1
    assert "1 to put right" in machine.out.getvalue()


@pytest.fixture
def claude() -> str:
    if not os.access(REAL_CLAUDE, os.X_OK):
        pytest.skip("real host not installed: run make real-host")
    return REAL_CLAUDE


@pytest.mark.real_host
@pytest.mark.case("BR-029")
def test_the_real_host_runs_the_hook_and_its_model_reads_the_reason(machine: Machine, claude: str) -> None:
    """Claude Code itself, offline, with the entries that are installed: the block's reason arrives at its model."""
    machine.install("--keeper")
    code, found = machine.doctor("--claude", claude)
    assert (code, levels(found, "FAIL")) == (0, set())
    assert "reached its model" in found["real host"][0]["text"]


@pytest.mark.real_host
def test_the_proof_fails_where_the_real_host_runs_no_hook(machine: Machine, claude: str) -> None:
    """The same run with an entry that the host does not start: no reason arrives, and it is not called proven."""
    machine.install()
    hooks = [one for one in installed(machine.settings.read_text()) if one.command.word != "stop"]
    with Rehearsal() as there:
        there.arm(int(time.time()))
        told = there.run_claude(claude, hooks, 30)
    assert told.request is None
    assert told.requests >= 1
    assert told.code == 0
