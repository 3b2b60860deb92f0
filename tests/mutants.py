"""Changes the core a little in thousands of places, one at a time, and tells which changes no test notices.

`make mutants` runs mutmut over `core/` with the tests that drive it in their own process, and prints
killed / all for each module and every survivor. `make mutants MODULES="guard chain"` takes these alone;
`SAMPLE=10` takes every tenth change, chosen by its name, so that the same are taken again. What the
survivors are is written in docs/mutants.md. A change that makes the tests run for ever counts as killed;
so does one that `make check` refuses: mypy reads the changed functions too, which are typed like the whole one.
"""

from __future__ import annotations

import argparse
import ast
import bisect
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
    refused = refused_by_types()
    for module in sorted({name.split(".")[2] for name, _ in tried}):
        line(module, [one for one in tried if one[0].split(".")[2] == module], refused)
    line("all", tried, refused)
    for name, code in tried:
        if code not in KILLED and name not in refused:
            print(f"\n{name}: {'no test reaches it' if code in (5, 33) else 'survived'}")
            shown = subprocess.run([MUTMUT, "show", name], cwd=ROOT, capture_output=True, text=True)
            print(
                "\n".join(row for row in shown.stdout.splitlines() if row[:1] in "+-" and row[:3] not in ("---", "+++"))
            )


def refused_by_types() -> set[str]:
    """The changes whose function mypy finds at fault, where it finds the same of the whole function right."""
    command = [str(pathlib.Path(MUTMUT).with_name("mypy")), "--output", "json", "src/stopwarden/core"]
    said = subprocess.run(command, cwd=ROOT / "mutants", capture_output=True, text=True).stdout
    by_file: dict[str, list[tuple[int, str]]] = {}
    for row in map(json.loads, said.splitlines()):
        if row["severity"] == "error":
            by_file.setdefault(row["file"], []).append((row["line"], f"{row['code']} {row['message']}"))
    found: dict[str, set[str]] = {}  # by function, what is said of it
    for file, errors in by_file.items():
        path = ROOT / "mutants" / file
        spans = [
            (node.lineno, node.end_lineno or node.lineno, node.name)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name
        ]
        spans.sort()
        for at, what in errors:
            place = bisect.bisect(spans, (at, sys.maxsize, "")) - 1
            if place >= 0 and at <= spans[place][1]:
                found.setdefault(f"stopwarden.core.{path.stem}.{spans[place][2]}", set()).add(what)
    whole = {name.partition("__mutmut_")[0]: said for name, said in found.items() if name.endswith("__mutmut_orig")}
    return {name for name, said in found.items() if said - whole.get(name.partition("__mutmut_")[0], set())}


def line(what: str, tried: list[tuple[str, int | None]], refused: set[str]) -> None:
    """One row of the count."""
    by_test = sum(code in KILLED for _, code in tried)
    by_type = sum(code not in KILLED and name in refused for name, code in tried)
    share = 100 * (by_test + by_type) / max(1, len(tried))
    print(
        f"{what:16} {len(tried):5} tried, {by_test:5} killed by a test, {by_type:4} refused by the types, {share:6.2f} %"
    )


if __name__ == "__main__":
    main()
