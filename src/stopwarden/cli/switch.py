"""`stopwarden off`, `on`, `observe`: what is done with a stop, for all sessions or for one.

A switch is one stored fact and clears nothing else: away periods, counts and suspensions stand
as they are. A session's own switch goes before the one for all. What weakens the guard is for
the person alone (see `person`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli.person import ALLOWED, names, only_the_person, session_named
from stopwarden.cli.times import parse_until
from stopwarden.core.errors import UsageError
from stopwarden.core.periods import holds
from stopwarden.report.moments import moment
from stopwarden.report.values import utc
from stopwarden.store.port import RecordLine

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Instant
    from stopwarden.store.port import Store

MEANS = {
    "on": "stops are judged, and blocked where work is owed.",
    "off": "no stop is judged.",
    "observe": "stops are judged and recorded, never blocked.",
}
UNDO = {"on": "stopwarden off", "off": "stopwarden on", "observe": "stopwarden on"}


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of all three commands; `on` has one more."""
    word = parser.prog.split()[-1]
    parser.add_argument("--session", metavar="ID", help="only this session (its id, the beginning of it, or its title)")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    if word == "off":
        parser.add_argument(
            "--until", nargs="+", metavar="TIME", help="a pause: on again by itself then (13:00, tue 07:30, 2h)"
        )
    if word == "on":
        parser.add_argument(
            "--agents-may-end",
            choices=("yes", "no"),
            help="whether agents themselves may run back, off and observe (no by default)",
        )
    parser.description = f"{word.capitalize()}: {MEANS.get(word, '')}"
    more = "\n  stopwarden off --until 13:00" if word == "off" else ""
    parser.epilog = f"example:\n  stopwarden {word}\n  stopwarden {word} --session 7e15{more}"


def run(args: argparse.Namespace, context: Context) -> int:
    """Stores the switch and says what holds from now on."""
    word: str = args.command
    leave: str | None = getattr(args, "agents_may_end", None)
    if leave and args.session:
        raise UsageError("--agents-may-end is for all sessions", do="Leave --session out")
    pause: list[str] | None = getattr(args, "until", None)
    until = parse_until(pause, context.now(), context.zone).at if pause else None
    store = context.open_store()
    try:
        if leave:
            only_the_person(context, None, "say what agents may do")
        elif word != "on":
            only_the_person(context, store, f"switch {word}")
        with store.transaction():
            known = {row.id: row for row in store.sessions()}
            key = session_named(args.session, known) if args.session else "all"
            if leave:
                store.save_fact(*ALLOWED, leave)
            else:
                store.save_fact("mode", key, word)
                store.save_fact("mode_since", key, str(context.now()))
                store.save_fact("mode_until", key, str(until) if until is not None else "")
            _record(store, context, f"agents may end away: {leave}" if leave else f"{word}: {key}", key)
        _say(args, context, store, word, key, leave, until)
    finally:
        store.close()
    return 0


def own_switches(store: Store) -> dict[str, str]:
    """The sessions with a switch of their own, by id: "on", "off" or "observe"."""
    own = {row.id: store.fact("mode", row.id) for row in store.sessions()}
    return {session: word for session, word in own.items() if word in MEANS}


def _record(store: Store, context: Context, text: str, key: str) -> None:
    now = context.now()
    for period in store.open_periods():
        if holds(period, now):
            session = "" if key == "all" else key
            store.append([RecordLine(at=now, kind="switched", session=session, period=period.id, text=text)])


def _say(
    args: argparse.Namespace,
    context: Context,
    store: Store,
    word: str,
    key: str,
    leave: str | None,
    until: Instant | None,
) -> None:
    now = context.now()
    away = [period for period in store.open_periods() if holds(period, now)]
    own = {} if key != "all" or leave else {s: w for s, w in own_switches(store).items() if w != word}
    if args.json:
        said = {"v": 1, "mode": word, "of": key, "away": bool(away), "others": own, "until": until and utc(until)}
        context.say(json.dumps({"v": 1, "agents_may_end": leave == "yes"} if leave else said))
        return
    if leave:
        may = "may" if leave == "yes" else "may not"
        context.say(
            f"Agents {may} run back, off and observe themselves. Undo: stopwarden on --agents-may-end {_other(leave)}"
        )
        return
    called = names(store.sessions())
    whom = "" if key == "all" else f" for session {called.get(key, key[:8])}"
    pause = f" until {moment(until, context.zone, now)} {context.zone.name}" if until is not None else ""
    context.say(f"{word.capitalize()}{whom}{pause}: {MEANS[word]}")
    if away and until is not None:
        context.say("Sessions that stop meanwhile wait for that time. The keeper wakes them then; without it, a wake")
        context.say("of their own must, and `stopwarden status` says which did not come back.")
    elif away and word != "on":
        back = away[0].until
        end = f" until {moment(back, context.zone, now)}" if back is not None else ""
        context.say(f"You are away{end}: meanwhile sessions may stop with work owed, and nothing wakes them.")
    for session, switch in own.items():
        context.say(
            f"Session {called[session]} keeps its own switch: {switch}. stopwarden {word} --session {session[:8]}"
        )
    which = "" if key == "all" else f" --session {key[:8]}"
    context.say(f"Undo: {UNDO[word]}{which}")


def _other(leave: str) -> str:
    return "no" if leave == "yes" else "yes"
