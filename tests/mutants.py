"""Changes the core a little in thousands of places, one at a time, and tells which changes no test notices.

`make mutants` runs mutmut over `core/` with the tests that drive it in their own process, and prints
killed / all for each module and every survivor. `make mutants MODULES="guard chain"` takes these alone;
`SAMPLE=10` takes every tenth change, chosen by its name, so that the same are taken again. What the
survivors are is written in docs/mutants.md. A change that makes the tests run for ever counts as killed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).parents[1]
MADE = ROOT / "mutants" / "src" / "stopwarden" / "core"
MUTMUT = str(pathlib.Path(sys.executable).with_name("mutmut"))
KILLED = (1, 3, -24, 24, 36, 152, 255)  # a test failed, pytest itself gave up, or time ran out
SKIPPED = (None, 34)  # not tried
NOBODY = "nothing.matches.this"  # makes mutmut write the changes down and learn which tests reach what, no more


def main() -> None:
    """Run mutmut, then count; fails when a module's tests cannot be run at all."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="modules of core/ (default: all)")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="try every Nth change")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--told", action="store_true", help="only tell what the last run found")
    given = parser.parse_args()
    if not given.told:
        if given.sample > 1:
            mutmut(given.processes, NOBODY)
            named = [name for name, _ in results(given.modules) if zlib.crc32(name.encode()) % given.sample == 0]
        else:
            named = [f"stopwarden.core.{module}.*" for module in given.modules]
        if mutmut(given.processes, *named):
            sys.exit("mutmut could not do it: see above")
    tell(given.modules)


def mutmut(processes: int, *names: str) -> int:
    """One run over the named changes, or all; its exit code."""
    return subprocess.run([MUTMUT, "run", "--max-children", str(processes), *names], cwd=ROOT).returncode


def results(modules: list[str]) -> list[tuple[str, int | None]]:
    """Every change by name with the exit code of its tests, in the order of the source; None: not tried."""
    found: list[tuple[str, int | None]] = []
    for file in sorted(MADE.glob("*.py.meta")):
        if not modules or file.name.partition(".")[0] in modules:
            found += json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"].items()
    return found


def tell(modules: list[str]) -> None:
    """Killed of all tried, a line a module, and then each survivor with what was changed."""
    tried = [(name, code) for name, code in results(modules) if code not in SKIPPED]
    for module in sorted({name.split(".")[2] for name, _ in tried}):
        codes = [code for name, code in tried if name.split(".")[2] == module]
        line(module, codes)
    line("all", [code for _, code in tried])
    for name, code in tried:
        if code not in KILLED:
            print(f"\n{name}: {'no test reaches it' if code in (5, 33) else 'survived'}")
            shown = subprocess.run([MUTMUT, "show", name], cwd=ROOT, capture_output=True, text=True)
            print(
                "\n".join(
                    row for row in shown.stdout.splitlines() if row[:1] in "+-@" and row[:3] not in ("---", "+++")
                )
            )


def line(what: str, codes: list[int | None]) -> None:
    """One row of the count."""
    killed = sum(code in KILLED for code in codes)
    print(f"{what:16} {killed:5} of {len(codes):5} killed, {100 * killed / max(1, len(codes)):6.2f} %")


if __name__ == "__main__":
    main()
