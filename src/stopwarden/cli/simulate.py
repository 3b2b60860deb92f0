"""`stopwarden simulate`: policies on the same nights; every order of the claim protocol; seeds of the todo guard."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

from stopwarden.cli import written
from stopwarden.cli.settings import named_values
from stopwarden.core.bounds import policy_from
from stopwarden.core.errors import UsageError
from stopwarden.sim import comparison
from stopwarden.sim.comparison import CONTENDERS, Contender, compare
from stopwarden.sim.nights_page import HELD, page, percent
from stopwarden.sim.policies import GUARDS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stopwarden.cli.context import Context
    from stopwarden.sim.comparison import Result

NIGHTS, NIGHTS_MAX = 60, 10_000


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = (
        "nights: plays seeded nights on a virtual clock under several policies, with agents that obey, are lazy, loop\n"
        "or lie, and says what came of it. claims: tries every order of events between a session and the owner of\n"
        "its prompts, and tells the first broken rule as the shortest story. guard: plays seeded histories of\n"
        "sessions in which much goes wrong, sees to the todo guard's promises at each event, and tells a broken one\n"
        "as a short story; with --seed it tells one history whole. Nothing of yours is read; no agent program is run."
    )
    parser.add_argument("what", choices=("nights", "claims", "guard"), help="what to simulate")
    parser.add_argument(
        "--prompts",
        type=int,
        metavar="N",
        help="claims: only prompts and their removal, N at a time, 1 to 3 (otherwise all dimensions, in parts)",
    )
    parser.add_argument("--deep", action="store_true", help="claims: wider bounds; takes many minutes")
    parser.add_argument("--seeds", type=int, default=300, metavar="N", help="guard: so many histories (default 300)")
    parser.add_argument("--first", type=int, default=1, metavar="S", help="guard: the first seed (default 1)")
    parser.add_argument(
        "--jobs", type=int, metavar="J", help="guard: so many processes (default: one a core); the outcome is the same"
    )
    parser.add_argument("--nights", type=int, default=NIGHTS, metavar="N", help=f"how many nights (default {NIGHTS})")
    parser.add_argument("--seed", type=int, metavar="S", help="which nights (default 1); guard: only this one, told")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help=f"only these ({', '.join(one.name for one in CONTENDERS)}); NAME=VALUE adds ours with that setting",
    )
    parser.add_argument("--table", metavar="FILE", help="write the page of tables (docs/nights.md) there")
    parser.add_argument("--json", action="store_true", help="every number as one JSON object")
    parser.epilog = (
        "examples:\n"
        "  stopwarden simulate nights\n"
        "  stopwarden simulate nights --nights 200 --policy block-once --policy ours\n"
        "  stopwarden simulate nights --policy ours --policy look_without_reservation=30m\n"
        "  stopwarden simulate claims\n"
        "  stopwarden simulate guard --seeds 1000\n"
        "  stopwarden simulate guard --seed 4711"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Plays and prints the comparison, or explores and prints what was found."""
    if args.what == "claims":
        return _claims(args, context)
    if args.what == "guard":
        from stopwarden.cli import simulated_guard

        return simulated_guard.simulate(args, context)
    seed = 1 if args.seed is None else args.seed
    if not 1 <= args.nights <= NIGHTS_MAX:
        raise UsageError(f"{args.nights} nights cannot be played", do=f"Use 1 to {NIGHTS_MAX:,}")
    if args.table and args.policy:
        raise UsageError("The page compares all policies", do="Leave --policy out, or --table")
    chosen = _contenders(args.policy)
    results = compare(chosen, args.nights, seed, _progress(context, args))
    if args.table:
        held = compare(chosen, min(HELD, args.nights), seed)
        _write(os.path.join(context.cwd, args.table), page(results, held, seed))
    if args.json:
        context.say(json.dumps(_as_json(results, args.nights, seed)))
        return 0
    context.say(f"{args.nights} nights, seed {seed}; hours and numbers are a night's average.\n")
    for line in _columns(results):
        context.say(line)
    context.say("\nWhat each column means, and what a night is made of: docs/nights.md")
    return 0


def _claims(args: argparse.Namespace, context: Context) -> int:
    """Explores the claim protocol; 1 where a rule is broken."""
    from stopwarden.sim import claim_page

    if args.prompts is not None and not 1 <= args.prompts <= 3:
        raise UsageError(f"{args.prompts} prompts cannot be tried in all orders", do="Use 1 to 3")
    told = claim_page.told(args.prompts, deep=args.deep)
    if args.json:
        context.say(json.dumps(told.as_json()))
    else:
        for line in told.lines():
            context.say(line)
    return 1 if told.broken else 0


def _contenders(words: Sequence[str]) -> list[Contender]:
    """All, or those named; settings make one more of ours. Raises UsageError, SettingError."""
    chosen = [comparison.contender(word) for word in words if "=" not in word]
    settings = [word for word in words if "=" in word]
    if settings:
        policy = policy_from(named_values(settings))
        chosen.append(Contender("ours-set", f"ours, {', '.join(settings)}", GUARDS["ours"], policy))
    return chosen or list(CONTENDERS)


def _progress(context: Context, args: argparse.Namespace) -> Any:
    if args.json or not context.err.isatty():
        return lambda name, night: None
    return lambda name, night: print(f"\r{name}: night {night + 1} of {args.nights}\x1b[K", end="\r", file=context.err)


def _columns(results: Sequence[Result]) -> list[str]:
    """The comparison for a terminal."""
    head = ("", "kept", "lost h", "over-run", "quiet stalls", "blocks", "done")
    rows = [head]
    for one in results:
        total = one.total
        rows.append(
            (
                one.contender.words,
                percent(total.share),
                f"{one.a_night(total.lost) / 3600:.1f}",
                f"{one.a_night(total.over_run):.2f}",
                str(total.stalls),
                f"{one.a_night(total.forced):.1f}",
                f"{one.a_night(total.done):.1f}",
            )
        )
    wide = [max(len(row[place]) for row in rows) for place in range(len(head))]
    return [
        "  ".join(
            [row[0].ljust(wide[0]), *(cell.rjust(wide[place + 1]) for place, cell in enumerate(row[1:]))]
        ).rstrip()
        for row in rows
    ]


def _write(path: str, text: str) -> None:
    try:
        written.put(path, [text], mode=0o644)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror})", do="Name another file") from None


def _as_json(results: Sequence[Result], nights: int, seed: int) -> dict[str, Any]:
    return {
        "v": 1,
        "nights": nights,
        "seed": seed,
        "policies": [
            {
                "name": one.contender.name,
                "words": one.contender.words,
                "share": round(one.total.share, 6),
                **dataclasses.asdict(one.total),
                "share_by_agent": {temper: round(told.share, 6) for temper, told in one.by_temper.items()},
            }
            for one in results
        ],
    }
