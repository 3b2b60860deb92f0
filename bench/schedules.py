"""How long it takes to read a schedule and find its next fire: ours against cronsim and croniter.

All are given the same 10,000 expressions, the same instants and the same zone, in turns within one
run, so that whatever else the machine does falls on all alike. What counts are the ratios; exits 1
if ours is slower than either. Both packages are for comparison only (the `dev` extra).

    python -m bench, or this alone: python -m bench.schedules
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from bench.figure import Figure
from stopwarden.clock import SystemZone
from stopwarden.core.cron import next_fire, parse

ZONE = "Europe/London"
EXPRESSIONS = 10_000
SLICE = 500  # expressions a turn
NOW = 1_796_072_400  # 2026-11-30 21:00:00Z


def expressions(count: int, seed: int = 10_000) -> list[str]:
    """Expressions as agents and people write them; every one fires within a year and all three can read it."""
    rng = random.Random(seed)

    def values(low: int, high: int) -> str:
        return ",".join(str(value) for value in sorted(rng.sample(range(low, high + 1), rng.randint(1, 4))))

    def within(low: int, high: int) -> str:
        start = rng.randint(low, high - 1)
        return f"{start}-{rng.randint(start + 1, high)}"

    def made() -> str:
        minute, hour = rng.randrange(60), rng.randrange(24)
        shape = rng.randrange(8)
        if shape == 0:
            return f"*/{rng.choice((1, 2, 5, 7, 10, 15, 20, 30))} * * * *"
        if shape == 1:
            return f"{minute} {hour} * * *"
        if shape == 2:
            return f"{values(0, 59)} {within(0, 23)} * * *"
        if shape == 3:
            return f"{minute} {hour} * * {within(0, 6)}"
        if shape == 4:
            return f"{within(0, 59)}/{rng.randint(2, 20)} */{rng.randint(2, 6)} * * *"
        if shape == 5:
            return f"{minute} {hour} {values(1, 28)} * *"
        if shape == 6:
            return f"{minute} {hour} {rng.randint(1, 28)} {rng.randint(1, 12)} *"
        return f"{minute} {hour} {rng.randint(1, 28)} * {rng.randrange(7)}"

    return [made() for _ in range(count)]


def contestants() -> dict[str, Callable[[str, int], object]]:
    here, there = SystemZone(os.environ), ZoneInfo(ZONE)
    return {
        "ours, recorded rule": lambda text, now: next_fire(parse(text), now, here),
        "ours, Debian's": lambda text, now: next_fire(parse(text), now, here, "debian"),
        "ours, Qwen Code's": lambda text, now: next_fire(parse(text), now, here, "qwen_code"),
        "cronsim": lambda text, now: next(CronSim(text, datetime.fromtimestamp(now, there))),
        "croniter": lambda text, now: croniter(text, datetime.fromtimestamp(now, there)).get_next(),
    }


def measured() -> dict[str, float]:
    """The CPU seconds that each contestant took for all expressions."""
    os.environ["TZ"] = ZONE
    time.tzset()
    texts, rng = expressions(EXPRESSIONS), random.Random(1)
    asked = [(text, NOW + rng.randrange(86_400)) for text in texts]
    named = contestants()
    spent = dict.fromkeys(named, 0.0)
    for start in range(0, EXPRESSIONS, SLICE):
        for name, answer in named.items():
            begun = time.process_time()
            for text, now in asked[start : start + SLICE]:
                answer(text, now)
            spent[name] += time.process_time() - begun
    return spent


def figures() -> list[Figure]:
    """Our slowest dialect against each of the others."""
    spent = measured()
    slowest = max(seconds for name, seconds in spent.items() if name.startswith("ours"))
    each = f"{slowest / EXPRESSIONS * 1e6:.0f} µs each"
    return [
        Figure(f"Next fire of {EXPRESSIONS:,} schedules", peer, slowest / spent[peer], 1.0, each)
        for peer in ("cronsim", "croniter")
    ]


def main() -> int:
    spent = measured()
    ours = spent["ours, recorded rule"]
    print(f"Read and next fire, {EXPRESSIONS:,} expressions, {ZONE}, CPU time")
    print(f"{'':22}{'µs each':>10}{'ratio':>10}")
    for name, seconds in spent.items():
        print(f"{name:22}{seconds / EXPRESSIONS * 1e6:10.1f}{seconds / ours:9.2f}×")
    slowest = max(seconds for name, seconds in spent.items() if name.startswith("ours"))
    if slowest > min(spent["cronsim"], spent["croniter"]):
        print("Ours is slower.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
