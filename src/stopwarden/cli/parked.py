"""`stopwarden parked`: the questions that wait for you, and what was refused in your absence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import record
from stopwarden.cli.person import names
from stopwarden.report.reading import LocalTimes, count, plain
from stopwarden.report.values import plain_values

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.store.port import Parked

KINDS = {"question": "question", "permission": "permission refused", "plan": "plan refused"}


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's words."""
    parser.description = (
        "Questions that agents asked while you were away, and the permissions they were refused.\n"
        "Nothing was granted; the agent was told to decide what can be undone and to go on."
    )
    parser.add_argument("--all", action="store_true", help="answered ones and those of earlier away periods too")
    parser.add_argument("--json", action="store_true", help="the list as one JSON object, times in UTC")
    parser.epilog = "examples:\n  stopwarden parked\n  stopwarden answer 1 keep it\nexit code: 0"


def run(args: argparse.Namespace, context: Context) -> int:
    """Prints what is parked."""
    with record.opened(context) as store:
        everything = sorted(store.parked(), key=lambda parked: parked.id)
        last = max(store.periods(), key=lambda period: period.since, default=None)
        called = names(store.sessions())
    shown = everything if args.all else [one for one in everything if _is_open(one, last.id if last else "")]
    if args.json:
        told = [{**plain_values(one), "session_name": called.get(one.session, one.session[:8])} for one in shown]
        context.say(json.dumps({"v": 1, "parked": told}, ensure_ascii=False))
        return 0
    hidden = len(everything) - len(shown)
    older = f" {count(hidden, 'more is answered or older', 'more are answered or older')}: stopwarden parked --all"
    if not shown:
        context.say("Nothing waits for an answer." + (older if hidden else ""))
        return 0
    times = LocalTimes(context.zone, shown[0].at, context.now())
    context.say(f"Times are {context.zone.name}. Answer with: stopwarden answer NUMBER TEXT")
    for one in shown:
        for line in _lines(one, times, called.get(one.session, one.session[:8])):
            context.say(line)
    if hidden:
        context.say(older.strip())
    return 0


def _is_open(one: Parked, last_period: str) -> bool:
    """A question until it is answered; what was refused only for the last away period, since nothing waits on it."""
    return one.answered_at is None and (one.kind == "question" or one.period == last_period)


def _lines(one: Parked, times: LocalTimes, name: str) -> list[str]:
    asked = f", asked {one.times} times" if one.times > 1 else ""
    lines = [
        f'{one.id:>3}  {times.day_clock(one.at)}  {name}  {KINDS.get(one.kind, one.kind)}{asked}: "{plain(one.text)}"'
    ]
    if one.options:
        numbered = [f"{place} {plain(option, 60)}" for place, option in enumerate(one.options, 1)]
        lines.append("       options: " + " · ".join(numbered))
    if one.chosen:
        lines.append(f"       chosen meanwhile: {plain(one.chosen)}")
    if one.answered_at is not None:
        told = (
            f"told the session {times.day_clock(one.delivered_at)}" if one.delivered_at is not None else "not told yet"
        )
        lines.append(f"       your answer {times.day_clock(one.answered_at)}: {plain(one.answer)} ({told})")
    return lines
