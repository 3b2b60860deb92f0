"""What the hook may import: exactly the modules named here, so that its start stays cheap.

An agent waits for the hook at every stop, and every tool call starts it too. A bare interpreter
takes some milliseconds; `typing`, `re` or `json` cost half as much again, each. Who adds a module
here adds its cost to every stop of every session: run `make bench` first.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import sysconfig

import pytest

from stopwarden.work.reservations import show_sign
from tests.support.night import SESSION, SOURCE, HookNight, cron

# Whatever the interpreter is built with: these differ between Pythons and cost nothing that can be measured.
BUILT_IN = frozenset(sys.builtin_module_names)

UNARMED = {
    *("__future__", "_json"),
    *("stopwarden", "stopwarden.wire"),
    *("stopwarden.hook", "stopwarden.hook.run", "stopwarden.hook.payload", "stopwarden.hook.starter"),
    *("stopwarden.hosts", "stopwarden.hosts.claude_code_facts"),
}
DIGEST = {"_blake2", "stopwarden.core", "stopwarden.core.digest"}  # to know a prompt again
ARMED = {
    *UNARMED,
    *DIGEST,
    *("os", "os.path", "posixpath", "genericpath", "stat", "_stat", "_collections_abc"),
    *("apsw", "collections", "collections.abc", "keyword", "operator", "reprlib"),  # apsw asks for collections.abc
}
OURS = {
    "core": "away bounds cron errors events judge leases owed periods reason record reservations session wakes",
    "hook": "at_event at_stop fault local note spool terms words",
    "hosts": "claude_code",
    "store": "database failure journal migrate mounts place port rows sqlite",
    "work": "checkout checklist files gather host_todos identity ready reservations titles",
}
ARMED |= {"stopwarden.clock", "stopwarden.machine", "stopwarden.store", "stopwarden.work"}
ARMED |= {f"stopwarden.{package}.{module}" for package, modules in OURS.items() for module in modules.split()}

LISTING = """
import sys, posix
bare = set(sys.modules)
sys.path[:0] = {paths!r}
def compiled():
    record = sys.modules.get("stopwarden.core.record")
    return ["compiled:" + kind.__name__ for kind in (record.Record.__subclasses__() if record else ()) if kind.cold[0] < 1]
def listed(code):
    posix.write(2, chr(10).join([*(set(sys.modules) - bare), *compiled()]).encode())
    leave(code)
leave, posix._exit = posix._exit, listed
from stopwarden.hook.run import main
main()
"""


def loaded(night: HookNight, event: str, payload: dict[str, object]) -> set[str]:
    """The modules that the real program has loaded beyond a bare interpreter when it ends, and records compiled."""
    paths = [str(SOURCE), sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
    command = [sys.executable, "-I", "-S", "-c", LISTING.format(paths=paths), event, "--at", str(night.now)]
    done = subprocess.run(command, input=json.dumps(payload).encode(), capture_output=True, env=night.env, timeout=60)
    night.now += 10
    assert done.returncode == 0
    assert (b'"block"' in done.stdout) == (event == "stop" and night.armed)
    return set(done.stderr.decode().split()) - BUILT_IN


@pytest.mark.parametrize("event", ["stop", "post-tool", "session-start", "subagent-stop"])
def test_with_nothing_armed_the_hook_loads_next_to_nothing(event: str, tmp_path: pathlib.Path) -> None:
    """Whatever the event: a few small modules of ours and the JSON accelerator."""
    night = HookNight(tmp_path)
    assert loaded(night, event, night.payload()) == UNARMED


@pytest.mark.parametrize("away", [False, True])
def test_a_tool_that_was_used_loads_no_database_armed_or_not(away: bool, tmp_path: pathlib.Path) -> None:
    """PostToolUse comes most often of all: no store, no core; only a scheduled prompt needs a digest."""
    night = HookNight(tmp_path)
    if away:
        night.away()
    bash = night.payload("PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_response={"stdout": ""})
    wake = night.payload("PostToolUse", tool_name="CronCreate", tool_input={"cron": "* * * * *", "prompt": "look"})
    assert loaded(night, "post-tool", bash) == UNARMED
    assert loaded(night, "post-tool", wake) == UNARMED | DIGEST


def test_a_tool_of_a_session_that_holds_something_loads_nothing_more(tmp_path: pathlib.Path) -> None:
    """Nobody away: that it renews something is known by one look at a file, and costs one line in the spool."""
    night = HookNight(tmp_path)
    tool = night.payload("PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_response={})
    spool = pathlib.Path(night.state_dir, "spool")
    assert loaded(night, "post-tool", tool) == UNARMED
    assert not spool.exists()
    show_sign(night.state_dir, SESSION, 60)
    assert loaded(night, "post-tool", tool) == UNARMED
    assert len(spool.read_text(encoding="utf-8").splitlines()) == 1


def test_a_prompt_loads_a_digest_besides(tmp_path: pathlib.Path) -> None:
    """With nothing armed a prompt leaves a digest of itself, and nothing else."""
    night = HookNight(tmp_path)
    assert loaded(night, "prompt", night.payload("UserPromptSubmit", prompt="go on")) == UNARMED | DIGEST


def test_an_armed_stop_loads_the_core_and_the_store_and_nothing_heavy(tmp_path: pathlib.Path) -> None:
    """The whole list: judged with wakes, the database opened and written, and no module that is not named here."""
    night = HookNight(tmp_path)
    night.away()
    night.send("prompt", prompt="go on")
    found = loaded(night, "stop", night.payload(session_crons=[cron("09:00"), cron("09:30", "w2", recurring=True)]))
    assert found - ARMED == set(), "loaded, and not in the list: is it worth its cost?"
    assert ARMED - BUILT_IN - found == set(), "in the list, and not loaded any more: take it out"


def test_a_stop_with_fifty_wakes_compiles_no_record(tmp_path: pathlib.Path) -> None:
    """Compiling a class is for machines that run for hours: no process that lives for one stop pays for it."""
    night = HookNight(tmp_path)
    night.away()
    night.send("prompt", prompt="go on")
    found = loaded(night, "stop", night.payload(session_crons=[cron("09:00", f"w{one}") for one in range(50)]))
    assert "stopwarden.core.record" in found
    assert not [name for name in found if name.startswith("compiled:")]
