"""`stopwarden replay`: recorded stops judged again, as they were or under another policy."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from typing import TYPE_CHECKING

from stopwarden.cli import record
from stopwarden.cli.settings import named_values
from stopwarden.cli.written import put_record
from stopwarden.core.errors import UsageError
from stopwarden.report.reading import LocalTimes, count, padded, plain, short_ids
from stopwarden.report.values import plain_values, utc
from stopwarden.sim import policies
from stopwarden.sim.replay import Replayed, replay
from stopwarden.store.recorded import UnreadLine, lines_of, read_stops, write_stops

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from typing import Any

    from stopwarden.cli.context import Context
    from stopwarden.sim.policies import Guard
    from stopwarden.sim.replay import Again
    from stopwarden.store.port import Store, VerdictRow
    from stopwarden.store.recorded import RecordedStop

SHOWN = 20
BETWEEN_STOPS = ("keeper", "person_prompt_ends")  # they act between stops, of which a record of stops knows nothing
UNKNOWN = "What an agent would have done after another answer cannot be known: each stop is judged as it was recorded."


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = (
        "Judges recorded stops again: those of FILE, or all that are recorded here.\n"
        "Without --policy every verdict must come out the same."
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="stops that --write or `export` wrote; none: this record"
    )
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help=f"a setting (skew=10m), or another rule altogether: {', '.join(policies.GUARDS)}",
    )
    parser.add_argument(
        "--write", metavar="FILE", help="write the stops recorded here to FILE, to be replayed anywhere"
    )
    parser.add_argument("--period", metavar="ID", help="only stops of this away period (its id or the beginning of it)")
    parser.add_argument("--since", metavar="TIME", help="only stops from then on (22:00, 8h, …)")
    parser.add_argument("--verbose", "-v", action="store_true", help="every stop whose verdict changes")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object, times in UTC")
    parser.epilog = (
        "examples:\n"
        "  stopwarden replay\n"
        "  stopwarden replay --policy skew=10m --policy unchanged_looks=2\n"
        "  stopwarden replay --policy block-once --since 22:00\n"
        "  stopwarden replay --write night.jsonl; stopwarden replay night.jsonl\n\n"
        "exit codes: 0 all were judged, and without --policy to the same verdicts; 1 one came out otherwise,\n"
        "or a line could not be read or judged; 2 wrong words"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Prints which verdicts stay and which change."""
    settings, guard = _policy(args.policy)
    if args.write:
        if args.file or args.policy:
            raise UsageError("--write writes what is recorded here", do="Leave FILE and --policy out")
        return _write(args, context)
    unread: list[UnreadLine] = []
    with _stops(args, context, unread) as stops:
        told = replay(stops, settings, guard)
    if not told.stops and not told.unjudged:
        for line in unread[:3]:
            context.warn(f"stopwarden: {line.error}")
        if args.file:
            raise UsageError(f"{args.file} holds no recorded stop", do="Write one with: stopwarden replay --write FILE")
        raise UsageError("No such stop has been judged yet", do="While you are away every stop is: stopwarden away")
    if args.json:
        context.say(json.dumps(_as_json(told, unread, args.policy), ensure_ascii=False))
    else:
        for text in _lines(told, context, args):
            context.say(text)
    for error in [line.error for line in unread] + [one.error for one in told.unjudged]:
        context.warn(f"stopwarden: {error}")
    ours = bool(told.changed) and not told.changed_policy
    return 1 if ours or unread or told.unjudged else 0


def _policy(words: Sequence[str]) -> tuple[dict[str, object], Guard | None]:
    """The settings and the rule that the words name. Raises UsageError or SettingError."""
    guards = [policies.named(word) for word in words if "=" not in word]
    if len(guards) > 1:
        raise UsageError("Two rules cannot judge one replay", do="Replay once for each of them")
    settings = named_values([word for word in words if "=" in word])
    for name in BETWEEN_STOPS:
        if name in settings:
            raise UsageError(
                f"{name} acts between stops, and only stops are recorded", do="See: stopwarden simulate nights"
            )
    return settings, guards[0] if guards else None


# which stops


@contextlib.contextmanager
def _stops(args: argparse.Namespace, context: Context, unread: list[UnreadLine]) -> Iterator[Iterator[RecordedStop]]:
    if args.file:
        period = args.period or ""
        since = record.instant_before(args.since, context.now(), context.zone) if args.since else None
        try:
            with open(os.path.join(context.cwd, args.file), "rb") as file:
                yield (
                    stop
                    for stop in read_stops(lines_of(file), unread.append)
                    if stop.row.period.startswith(period) and (since is None or stop.row.at >= since)
                )
        except OSError as error:
            raise UsageError(
                f"{args.file} cannot be read ({error.strerror})", do="Name a file of recorded stops"
            ) from None
        return
    with record.opened(context) as store:
        yield read_stops(write_stops(store, _rows(args, context, store)), unread.append)


def _rows(args: argparse.Namespace, context: Context, store: Store) -> list[VerdictRow]:
    """The verdicts recorded here that the words name, oldest first. Raises UsageError."""
    since = record.instant_before(args.since, context.now(), context.zone) if args.since else 0
    period = record.period_named(args.period, store.periods()).id if args.period else None
    return store.verdicts(period=period, since=since)


def _write(args: argparse.Namespace, context: Context) -> int:
    """Writes the file whole or not at all; an older one of that name is kept until the new one is there."""
    path = os.path.join(context.cwd, args.write)
    with record.opened(context) as store:
        rows = _rows(args, context, store)
        put_record(path, args.write, write_stops(store, rows))
    if args.json:
        context.say(json.dumps({"v": 1, "written": len(rows), "file": path}))
    else:
        context.say(f"{count(len(rows), 'stop')} written to {args.write}. It holds work text and paths, no messages.")
        context.say(f"Again: stopwarden replay {args.write}")
    return 0


# how it is told


def _lines(told: Replayed, context: Context, args: argparse.Namespace) -> Iterator[str]:
    judged = [one for one in told.stops if one.judged]
    sessions = short_ids(one.session for one in told.stops)
    moments = [one.at for one in told.stops] or [context.now()]
    times = LocalTimes(context.zone, min(moments), max(moments), context.now())
    yield (
        f"{count(len(judged), 'stop')} of {count(len(sessions), 'session')} judged again, "
        f"{times.day_clock(min(moments))} to {times.day_clock(max(moments))} ({context.zone.name})."
    )
    faults = len(told.stops) - len(judged)
    if faults:
        yield f"{count(faults, 'stop')} no judge had reached: Stopwarden had failed and answered as it does then."
    if not told.changed_policy:
        yield from _as_it_was(told, judged)
    else:
        yield f"Policy: {', '.join(args.policy)}."
        yield from _otherwise(told, judged)
    shown = told.changed if args.verbose else told.changed[:SHOWN]
    widest = max((len(_short(one, sessions)) for one in shown), default=0)
    for one in shown:
        at = f"{times.day(one.at)} {times.second(one.at)}"
        yield f"{one.id:>5}  {at}  {padded(_short(one, sessions), widest)}  {_change(one)}"
    if len(told.changed) > len(shown):
        yield f"       {len(told.changed) - len(shown)} more: --verbose"
    if told.changed_policy and told.changed:
        yield UNKNOWN


def _as_it_was(told: Replayed, judged: Sequence[Again]) -> Iterator[str]:
    if not told.changed:
        yield "Every verdict came out the same." if judged else "None of them had been judged."
        return
    yield (
        f"{count(len(told.changed), 'verdict')} did NOT come out the same: a fault of Stopwarden, or a file that "
        "somebody changed:"
    )


def _otherwise(told: Replayed, judged: Sequence[Again]) -> Iterator[str]:
    stay = len(judged) - len(told.changed)
    yield f"{count(stay, 'verdict stays', 'verdicts stay')}, {count(len(told.changed), 'changes', 'change')}."
    kinds = Counter((_answer(one.was), _answer(one.now)) for one in told.changed)
    for (was, now), number in kinds.most_common():
        yield f"{number:>5}  {was} -> {now}" if was != now else f"{number:>5}  {was}, by another rule"


def _change(one: Again) -> str:
    if any(part.what in ("block", "kind", "rule") for part in one.differences):
        was, now = f"{_answer(one.was)} ({plain(one.was.rule, 60)})", f"{_answer(one.now)} ({one.now.rule})"
        return f"{was} -> {now}"
    return "; ".join(
        f"{part.what}: {plain(part.recorded, 60)} -> {plain(part.now, 60)}" for part in one.differences[:3]
    )


def _answer(verdict: Any) -> str:
    if verdict.kind == "idle" and not str(verdict.rule).startswith("away."):
        return "allowed"
    return plain(str(verdict.kind).replace("_", " "), 40)


def _short(one: Again, sessions: dict[str, str]) -> str:
    return plain(sessions[one.session], 40)


def _as_json(told: Replayed, unread: Sequence[UnreadLine], words: Sequence[str]) -> dict[str, Any]:
    judged = [one for one in told.stops if one.judged]
    kinds = Counter((one.was.kind, one.now.kind) for one in told.changed)
    return {
        "v": 1,
        "policy": list(words),
        "judged": len(judged),
        "same": len(judged) - len(told.changed),
        "changed": [
            {
                "line": one.line,
                "id": one.id,
                "at": utc(one.at),
                "session": one.session,
                "was": {"kind": one.was.kind, "rule": one.was.rule},
                "now": {"kind": one.now.kind, "rule": one.now.rule},
                "differences": plain_values(one.differences),
            }
            for one in told.changed
        ],
        "kinds": [{"was": was, "now": now, "stops": number} for (was, now), number in kinds.most_common()],
        "not_judged": [{"id": one.id, "at": utc(one.at), "why": "a fault"} for one in told.stops if not one.judged]
        + [{"line": one.line, "id": one.id, "why": str(one.error)} for one in told.unjudged]
        + [{"line": one.line, "why": str(one.error)} for one in unread],
        "note": UNKNOWN if told.changed_policy else "",
    }
