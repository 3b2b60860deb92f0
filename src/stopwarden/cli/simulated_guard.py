"""`stopwarden simulate guard`: what was checked and met in many histories, or one history told.

The exit code is 1 where a promise is broken, and where so many seeds were played that what was never
met is a fault of the simulation itself. May not live here: playing (`sim/guard_run`).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from stopwarden.core.errors import UsageError
from stopwarden.sim import guard_run, guard_story
from stopwarden.sim.guard_book import PROMISES
from stopwarden.sim.guard_faults import FAULTS, drawn
from stopwarden.sim.guard_races import RACES

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.sim.guard_run import Swept

SEEDS, SEEDS_MAX, JOBS_MAX = 300, 10_000_000, 64
# The names of hits by their beginning, the longest first, and how the group is called.
GROUPS = (
    ("queue effect ", "effects of the owner's queue"),
    ("queue ", "events of the owner's queue"),
    ("event ", "events of the session"),
    ("effect ", "effects of the session"),
    ("passed ", "what the session passes on"),
    ("end ", "ends of turns"),
    ("fault ", "faults"),
    ("race ", "races"),
    ("", "other"),
)


def simulate(args: argparse.Namespace, context: Context) -> int:
    """Plays the seeds, or tells one."""
    if args.seed is not None:
        return _one(args.seed, args.json, context)
    if not 1 <= args.seeds <= SEEDS_MAX:
        raise UsageError(f"{args.seeds} seeds cannot be played", do=f"Use 1 to {SEEDS_MAX:,}")
    jobs = (os.cpu_count() or 1) if args.jobs is None else args.jobs
    if not 1 <= jobs <= JOBS_MAX:
        raise UsageError(f"{jobs} processes cannot be used", do=f"Use 1 to {JOBS_MAX}")
    quiet = args.json or not context.err.isatty()

    def progress(played: int) -> None:
        if not quiet:
            print(f"\r{played:,} of {args.seeds:,}\x1b[K", end="\r", file=context.err)

    found = guard_run.sweep(args.seeds, args.first, jobs=jobs, progress=progress)
    story = guard_story.story(guard_story.shrunk(drawn(found.seed), found.broken)) if found.broken else ()
    if args.json:
        context.say(json.dumps(_as_json(found, args.first, story)))
    else:
        _say(found, args.first, story, context)
    return 1 if found.failed else 0


def _one(seed: int, as_json: bool, context: Context) -> int:
    """One history, whole, and if it breaks a promise the short one."""
    plan = drawn(seed)
    whole, broken = guard_story.story(plan), guard_run.play(plan).book.broken
    short = guard_story.story(guard_story.shrunk(plan, broken)) if broken else ()
    if as_json:
        told = {"v": 1, "seed": seed, "broken": broken or None, "history": list(whole), "story": list(short)}
        context.say(json.dumps(told))
        return 1 if broken else 0
    for line in whole:
        context.say(line)
    if broken:
        context.say("\nThe same promise broken in a shorter history:")
        for line in short:
            context.say(line)
    return 1 if broken else 0


def _say(found: Swept, first: int, story: tuple[str, ...], context: Context) -> None:
    context.say(f"{found.seeds:,} seeds from {first}: {found.events:,} events, {found.median} in the middle one.")
    context.say("\nPromises, and how often each was looked at:")
    for name, words in PROMISES.items():
        context.say(f"  {found.hits.get(f'checked {name}', 0):>11,}  {name}: {words}")
    context.say("\nWhat was met:")
    said = {f"fault {name}": words for name, words in FAULTS.items()}
    said |= {f"race {name}": words for name, words in RACES.items()}
    for title, names in grouped(found):
        context.say(f"  {title}")
        for name, short in names:
            words = said.get(name, "")
            context.say(f"  {found.hits.get(name, 0):>11,}  {short}{': ' if words else ''}{words}")
    if found.broken:
        context.say(f"\nBROKEN  {found.broken}\n")
        context.say(f"The shortest history that was found to break it, from seed {found.seed}:")
        for line in story:
            context.say(f"  {line}")
        context.say(f"\nThe whole one again: stopwarden simulate guard --seed {found.seed}")
        return
    context.say("\nNot looked for:")
    for name, why in guard_run.UNMET.items():
        context.say(f"  {name}: {why}")
    context.say("\nEvery promise held.")
    if found.never:
        context.say(f"Never met, of what is to be met: {', '.join(found.never)}")
    if found.failed:
        context.say(f"From {guard_run.ENOUGH:,} seeds on that is a fault of the simulation.")


def grouped(found: Swept) -> list[tuple[str, list[tuple[str, str]]]]:
    """What was or was to be met by group: its title, and names whole and without what they begin with."""
    names = sorted({*found.hits, *guard_run.EXPECTED})
    groups: dict[str, list[tuple[str, str]]] = {beginning: [] for beginning, _ in GROUPS}
    for name in names:
        if not name.startswith("checked "):
            beginning = next(one for one, _ in GROUPS if name.startswith(one))
            groups[beginning].append((name, name.removeprefix(beginning)))
    return [(title, groups[beginning]) for beginning, title in GROUPS if groups[beginning]]


def _as_json(found: Swept, first: int, story: tuple[str, ...]) -> dict[str, object]:
    return {
        "v": 1,
        "seeds": found.seeds,
        "first": first,
        "events": found.events,
        "median": found.median,
        "checked": {name: found.hits.get(f"checked {name}", 0) for name in PROMISES},
        "hits": {name: found.hits.get(name, 0) for name in sorted({*found.hits, *guard_run.EXPECTED})},
        "never": list(found.never),
        "broken": found.broken or None,
        "seed": found.seed or None,
        "story": list(story),
    }
