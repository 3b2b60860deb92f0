"""Plays the scenarios on both sides, writes docs/comparison.md; exit code 1 if something is not as it must be.

    python -m comparison --program DIR               all scenarios, and the page
    python -m comparison --program DIR --only A,B    those, as lines of JSON; no page
    python -m comparison --ours                      our side alone, as lines of JSON

Everything runs in a network namespace of its own, where there is nothing but loopback, if the machine allows it;
else with a proxy set that nobody answers. The page says which.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from comparison import ours, page, scenarios
from comparison.daemon import Daemon
from comparison.qwen import Program, command

if TYPE_CHECKING:
    from comparison.script import Scenario
    from comparison.seen import Seen

PAGE = Path(__file__).resolve().parent.parent / "docs" / "comparison.md"
APART = ("unshare", "--map-root-user", "--net")
INSIDE = "COMPARISON_INSIDE"
ALONE = "in a network namespace with nothing but loopback"
PROXIED = "with every proxy set to a dead address"


def main(argv: list[str]) -> int:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m comparison", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--program", type=Path, help="where comparison/install.sh has installed Qwen Code")
    parser.add_argument("--only", default="", help="ids of scenarios, with commas")
    parser.add_argument("--ours", action="store_true", help="our side alone")
    args = parser.parse_args(argv)
    only = [one for one in args.only.split(",") if one]
    chosen = [scenario for scenario in scenarios.ALL if not only or scenario.id in only]
    if args.ours or args.program is None:
        return tell(chosen, {scenario.id: ours.play(scenario) for scenario in chosen}, {})
    isolation = set_apart(argv)
    mine = {scenario.id: ours.play(scenario) for scenario in chosen}
    theirs, version = play_theirs(command(args.program.resolve()), chosen)
    if only:
        return tell(chosen, mine, theirs)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    PAGE.write_text(page.page(mine, theirs, version, today, isolation), encoding="utf-8")
    return complain(chosen, mine, theirs)


def play_theirs(program: tuple[str, ...], chosen: list[Scenario]) -> tuple[dict[str, Seen], str]:
    """All chosen scenarios on the real program; one that runs serves all of a kind."""
    seen: dict[str, Seen] = {}
    version = ""
    for kind in dict.fromkeys(scenario.kind for scenario in chosen):
        with (Daemon if kind == "daemon" else Program)(program, kind) as running:
            version = running.version or version
            for scenario in chosen:
                if scenario.kind == kind:
                    seen[scenario.id] = running.play(scenario)
                    print(f"{scenario.id} played", file=sys.stderr, flush=True)
    return seen, version


def tell(chosen: list[Scenario], mine: dict[str, Seen], theirs: dict[str, Seen]) -> int:
    """A line of JSON a scenario."""
    for scenario in chosen:
        there = theirs.get(scenario.id)
        line = {"id": scenario.id, "ours": mine[scenario.id].as_json(), "theirs": there.as_json() if there else None}
        print(json.dumps(line))
    return complain(chosen, mine, theirs)


def complain(chosen: list[Scenario], mine: dict[str, Seen], theirs: dict[str, Seen]) -> int:
    """1, and what is wrong, or 0."""
    wrong = [words for one in chosen for words in page.complaints(one, mine[one.id], theirs.get(one.id))]
    for words in wrong:
        print(words, file=sys.stderr)
    return 1 if wrong else 0


def set_apart(argv: list[str]) -> str:
    """Starts this program again in a network namespace of its own; there, brings up loopback. Says what was done."""
    if os.environ.get(INSIDE):
        raise_loopback()
        return ALONE
    able = shutil.which(APART[0]) and subprocess.run([*APART, "true"], capture_output=True).returncode == 0
    if able:
        os.execvpe(APART[0], [*APART, sys.executable, "-m", "comparison", *argv], {**os.environ, INSIDE: "1"})
    return PROXIED


def raise_loopback() -> None:
    """Sets the interface lo up (it is down in a new namespace)."""
    get_flags, set_flags, up = 0x8913, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh", b"lo", 0)
        (flags,) = struct.unpack("16xh", fcntl.ioctl(any_socket, get_flags, asked)[:18])
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh", b"lo", flags | up))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
