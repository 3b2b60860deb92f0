"""Prints every figure with its limit; exit code 1 if one is over."""

from __future__ import annotations

import os
import platform
import sys

from bench import claims, hook, report, schedules, turns


def main() -> int:
    """Measures and prints the table."""
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        print("PYTHONDONTWRITEBYTECODE is set: without cached bytecode no figure means anything. Unset it.")
        return 2
    print(f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores")
    found = [*hook.figures(), *schedules.figures(), *turns.figures(), *claims.figures(), *report.figures()]
    for figure in found:
        print(figure.row())
    over = [figure for figure in found if not figure.holds]
    print(f"{len(over)} over their limit" if over else "all within their limits")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
