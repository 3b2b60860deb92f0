"""`stopwarden away`: the person leaves; what holds from now on, and whether anything stands in the way.

Everything that can be refused is looked at before anything is changed: the time, the settings, the
lists. Then the lists are remembered as they are now (so that work done meanwhile is told from work
done before), and the period is begun, the marker before the database. The go/no-go check (`go`)
is printed with it, and what it finds not covered is recorded with the night.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from stopwarden import wire
from stopwarden.cli import go, surroundings
from stopwarden.cli.known import Tally, end_those_over, known_sessions, take_in, tally
from stopwarden.cli.person import RECENT, session_named
from stopwarden.cli.retention import keep_to_limits
from stopwarden.cli.settings import policy_of, settings_path
from stopwarden.cli.times import parse_until
from stopwarden.core.bounds import CHOICES, RANGES
from stopwarden.core.errors import RefusedError, UsageError
from stopwarden.core.events import AwayPeriod
from stopwarden.core.periods import covers
from stopwarden.core.record import Record
from stopwarden.hook.terms import mode_of
from stopwarden.hosts import claude_code, installation
from stopwarden.report.moments import length, moment
from stopwarden.report.reading import padded, plain, short_ids, width
from stopwarden.report.values import utc
from stopwarden.store import marker
from stopwarden.store.port import RecordLine
from stopwarden.work import checkout, gather

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stopwarden.cli.context import Context
    from stopwarden.cli.go import Finding
    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import Instant
    from stopwarden.report.state import Known
    from stopwarden.store.port import SessionRow, Store

LIKELY_LISTS = ("TODO.md", "TODO", "todo.md", "TASKS.md", "tasks.md")
MARKS = {"ok": "ok", "note": "note", "warn": "WARN"}


class _List(Record):
    """A list the person named: where it is, how it stands, its items, and its bullets without a box."""

    path: str
    tally: Tally
    items: int = 0
    bullets: int = 0


class _Plan(Record):
    """What is to hold, before anything has been changed."""

    period: AwayPeriod
    policy: Policy
    lists: tuple[_List, ...]
    replaced: tuple[AwayPeriod, ...]
    note: str  # how the time was read, if oddly


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `away`."""
    parser.add_argument(
        "when", nargs="*", metavar="until 07:30 | for 8h", help="when you are back; without it: at `back`"
    )
    parser.add_argument("--list", action="append", default=[], metavar="FILE", help="a Markdown task list to work on")
    parser.add_argument("--until-done", action="store_true", help="let sessions stop for good once the list is done")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--everywhere", action="store_true", help="for every checkout, not only this one")
    which.add_argument("--session", metavar="ID", help="for this one session only")
    parser.add_argument("--also-scripts", action="store_true", help="also for sessions a script started (claude -p)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting for this time away, see below"
    )
    parser.add_argument("--dry-run", action="store_true", help="only check: exit code 0 go, 1 something is not covered")
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.description = (
        "You leave: from now on the sessions of this checkout go on with the list, or wait with a wake.\n"
        "Away ends at its time, or when you type `stopwarden back`. A second away replaces the first."
    )
    parser.epilog = (
        "examples:\n"
        "  stopwarden away until 07:30 --list TODO.md --until-done\n"
        "  stopwarden away for 8h30m\n"
        "  stopwarden away until mon 09:00 --everywhere --set keeper=true\n\n"
        f"settings (also in {settings_path({'XDG_CONFIG_HOME': '', 'HOME': '~'})}):\n{_settings_help()}\n\n"
        "exit codes: 0 away holds (read the WARN lines); 2 wrong words, nothing was changed"
    )


def _settings_help() -> str:
    lines = [f"  {name:<24} {low} to {high}" for name, (low, high) in RANGES.items()]
    lines += [f"  {name:<24} {' or '.join(str(one).lower() for one in choices)}" for name, choices in CHOICES.items()]
    return "\n".join(lines)


def run(args: argparse.Namespace, context: Context) -> int:
    """Begins the period, unless `--dry-run`, and prints the check."""
    now = context.now()
    until = parse_until(args.when, now, context.zone)
    policy = policy_of(context.env, args.set, keeper=installation.keeper_installed(context.state_dir))
    lists = tuple(_list(context, name) for name in dict.fromkeys(args.list))
    store = context.open_store()
    try:
        marker.settle(store, context.state_dir)
        missed = take_in(store, context)
        end_those_over(store, now)
        open_now = store.open_periods()
        _refuse_an_agent(context, open_now)
        period = _period(args, context, store, now, until.at, lists)
        replaced = tuple(one for one in open_now if _same_scope(one, period))
        plan = _Plan(period=period, policy=policy, lists=lists, replaced=replaced, note=until.note)
        others = [one for one in open_now if one not in replaced]
        findings = _check(context, store, plan, others, now)
        findings += _check_trackers(context, store, period, now, keep=not args.dry_run)
        if missed:
            findings.append(go.Finding(level="warn", subject="spool", text=missed))
        if not args.dry_run:
            _begin(context, store, plan, findings, now)
        if args.json:
            context.say(json.dumps(_as_json(plan, findings, args.dry_run)))
        else:
            _say(context, store, plan, findings, args.dry_run, now)
        if not args.dry_run:
            keep_to_limits(store, context)
    finally:
        store.close()
    return 1 if args.dry_run and not _is_go(findings) else 0


def _refuse_an_agent(context: Context, open_now: Sequence[AwayPeriod]) -> None:
    """An agent may arm the guard, but not change the terms on which a person left."""
    if context.inside_agent and open_now:
        raise RefusedError(
            "The person is away on terms of their own, and an agent program started this command",
            kept="Those terms hold",
            do="Go on with the work",
        )


def _list(context: Context, name: str) -> _List:
    path = os.path.abspath(os.path.join(context.cwd, os.path.expanduser(name)))
    if not os.path.isfile(path):
        there = "is a directory" if os.path.isdir(path) else "does not exist"
        raise UsageError(
            f"The list {path} {there}",
            kept="You are not away",
            do="Name a Markdown file with lines such as: - [ ] what to do",
        )
    (found,) = gather.read_lists(None, (path,), "", "")
    if found.unread:
        raise UsageError(f"The list {found.unread} cannot be read", kept="You are not away", do="Put that right first")
    return _List(
        path=path,
        tally=_as_it_stands(found),
        items=len(found.items),
        bullets=found.reading.bullets if found.reading else 0,
    )


def _as_it_stands(found: gather.ReadList) -> Tally:
    """A list before the person leaves: what is done now was done before, and counts for nothing."""
    return tally(item.replace(before=item.state) for item in found.items)


def _period(
    args: argparse.Namespace,
    context: Context,
    store: Store,
    now: Instant,
    until: Instant | None,
    lists: Sequence[_List],
) -> AwayPeriod:
    root = checkout.find_root(context.cwd)
    session = session_named(args.session, {row.id: row for row in store.sessions()}) if args.session else ""
    return AwayPeriod(
        id=os.urandom(4).hex(),
        since=now,
        until=until,
        scope="session" if session else "everywhere" if args.everywhere else "checkout",
        copy=checkout.copy_key(root, context.state_dir, make=not args.dry_run),
        root=root,
        session=session,
        also_scripts=args.also_scripts,
        until_done=args.until_done,
        lists=tuple(one.path for one in lists),
        zone=context.zone.name,
    )


def _same_scope(one: AwayPeriod, other: AwayPeriod) -> bool:
    if one.scope != other.scope:
        return False
    if one.scope == "checkout":
        return one.root == other.root or (one.copy != "" and one.copy == other.copy)
    return one.scope == "everywhere" or one.session == other.session


# --- the check ----------------------------------------------------------------------------------


def _check(context: Context, store: Store, plan: _Plan, others: Sequence[AwayPeriod], now: Instant) -> list[Finding]:
    period = plan.period
    hooks = go.hooks_of(context.env, period.root, context.system)
    installed_at = installed_since(context.state_dir, hooks.places)
    known = [
        one.replace(period=period)
        for one, _ in known_sessions(store, [period], now, context.zone, since=now - RECENT, installed_at=installed_at)
        if _covers(period, one.row)
    ]
    first = f"Work through {os.path.basename(period.lists[0])}" if period.lists else "Go on with your list of work"
    sessions = go.check_sessions(
        known,
        {one.row.id: _subject(one.row, known) for one in known},
        now,
        context.zone,
        lambda name: hooks.env.get(name) or context.env.get(name, ""),
        first,
    )
    live = [one.row for one in known if one.row.ended_at is None and one.row.last_event_at >= installed_at]
    agents = surroundings.agents(period.root, context.system) if period.scope == "checkout" else []
    unseen = go.check_unseen(agents, live, installed_at, now, context.zone)
    found = [*go.check_hooks(hooks), *go.check_switch(mode_of(store, "", now)), *sessions, *unseen]
    if not sessions and not unseen and hooks.places:
        whom = "in this checkout" if period.scope == "checkout" else "anywhere"
        text = f"one that is started now {whom} will be covered"
        found.append(go.Finding(level="note", subject="no session yet", text=text))
    if hooks.places:
        found.append(go.Finding(level="ok", subject="permission prompts", text="will be refused and noted"))
    found += go.check_keeper(plan.policy, hooks)
    found += go.check_overlap(period, others, len(live), now, context.zone)
    found += go.check_power(surroundings.power(context.system))
    found += _check_lists(plan, context)
    return sorted(found, key=lambda one: ("ok", "note", "warn").index(one.level))


def installed_since(state_dir: str, places: Sequence[str]) -> Instant:
    """When the hooks that serve here were installed; 0 where that is not recorded."""
    record = installation.load(state_dir)
    times = [file.at for file in record.files if file.path in places]
    return min(times, default=0)


def _covers(period: AwayPeriod, row: SessionRow) -> bool:
    script = claude_code.is_script(row.entrypoint)
    return covers(period, session=row.id, copy=row.copy, root=row.root, script=script)


def _subject(row: SessionRow, known: Sequence[Known]) -> str:
    short = short_ids(one.row.id for one in known)[row.id]
    return f'{short} "{plain(row.title, 24)}"' if row.title else short


def _check_lists(plan: _Plan, context: Context) -> list[Finding]:
    found = []
    for one in plan.lists:
        if one.tally.open:
            continue
        name = os.path.basename(one.path)
        if not one.items:
            boxes = f" ({one.bullets} bullets without a box)" if one.bullets else ""
            text = f"holds no item{boxes}. An item is a line such as: - [ ] what to do"
        else:
            text = "has no open item: sessions only wait" if not plan.period.until_done else "has no open item"
        found.append(go.Finding(level="warn", subject=name, text=f"{text}."))
    gone = [path for old in plan.replaced for path in old.lists if path not in plan.period.lists]
    for path in dict.fromkeys(gone):
        name = os.path.basename(path)
        text = f"was named before and is not any more. To keep it: --list {name}"
        found.append(go.Finding(level="warn", subject=name, text=text))
    if plan.period.until_done and not plan.lists:
        text = "is without a list: a session with nothing on its own list may stop at once. Name one: --list FILE"
        found.append(go.Finding(level="warn", subject="--until-done", text=text))
    if not plan.lists and not gone:
        for name in LIKELY_LISTS:
            path = os.path.join(context.cwd, name)
            there = _as_it_stands(gather.read_lists(None, (path,), "", "")[0]) if os.path.isfile(path) else Tally()
            if there.open:
                text = f"is here with {there.open} open, but was not named. To work on it: --list {name}"
                found.append(go.Finding(level="note", subject=name, text=text))
                break
    return found


def _check_trackers(context: Context, store: Store, period: AwayPeriod, now: Instant, *, keep: bool) -> list[Finding]:
    """Reads the other trackers, since no hook will: what is open there, or that it is not known."""
    project = None if period.scope == "everywhere" else checkout.project_key(period.root)
    if not store.trackers(project):
        return []
    from stopwarden.work import trackers

    read = trackers.read_all(store, now, context.env, project=project, keep=keep)
    open_there = {
        (item.project, item.tracker, item.id)
        for of in {one.project for one in read}
        for item in store.tracked_items(of)
        if item.state == "open" and not item.blocked
    }
    return [
        go.check_tracker(one, sum((one.project, one.name) == known[:2] for known in open_there) if keep else None)
        for one in read
    ]


def _is_go(findings: Sequence[Finding]) -> bool:
    return all(one.covered for one in findings)


# --- doing it -----------------------------------------------------------------------------------


def _begin(context: Context, store: Store, plan: _Plan, findings: Sequence[Finding], now: Instant) -> None:
    """Remembers the lists, begins the period (marker first), ends what it replaces, and records it all."""
    period = plan.period
    covered = [row for row in store.sessions(now - RECENT) if _covers(period, row)]
    _remember_lists(store, period, covered, now)
    marker.arm(store, context.state_dir, period, wire.dumps(plan.policy.as_dict()))
    with store.transaction():
        seen = {old.id for old in plan.replaced}
        same = [one for one in store.open_periods() if _same_scope(one, period)]
        stays = max(
            (one.since, one.id) for one in same if one.id not in seen
        )  # of two `away` at once the same for both
        for one in same:
            if (one.since, one.id) != stays:
                store.end_period(one.id, now, "replaced")
        if period.id != stays[1]:
            context.warn("Another `away` was said at the same moment, and that one holds. See: stopwarden status")
        lines = [RecordLine(at=now, kind="away", session=period.session, period=period.id, text=_terms(period))]
        lines += [
            RecordLine(
                at=now, kind="not_covered", session=one.session, period=period.id, text=f"{one.subject}: {one.text}"
            )
            for one in findings
            if not one.covered
        ]
        store.append(lines)
    marker.settle(store, context.state_dir)


def _remember_lists(store: Store, period: AwayPeriod, rows: Sequence[SessionRow], now: Instant) -> None:
    """Keeps how each list stands now, so that work of this time away is told from work before it."""
    with store.transaction():
        for one in gather.read_lists(store, period.lists, period.id, period.root, now=now):
            if not one.unread:
                gather.keep(store, one, period.id)
        for row in rows if not period.lists else ():
            own = checkout.own_list_path(row.root, row.id) if row.root else ""
            if own and os.path.isfile(own):
                for one in gather.read_lists(store, (own,), period.id, row.root, now=now, own=own):
                    if not one.unread:
                        gather.keep(store, one, period.id)


def _terms(period: AwayPeriod) -> str:
    whom = go.scope_words(period)
    end = f" until {utc(period.until)}" if period.until is not None else " until back"
    done = ", until done" if period.until_done else ""
    lists = f", lists: {', '.join(period.lists)}" if period.lists else ""
    return f"{whom}{end}{done}{lists}"


# --- saying it ----------------------------------------------------------------------------------


def _say(context: Context, store: Store, plan: _Plan, findings: Sequence[Finding], dry_run: bool, now: Instant) -> None:
    period = plan.period
    if period.until is None:
        end = "until you type `stopwarden back`"
    else:
        end = f"until {moment(period.until, context.zone, now)} {context.zone.name} ({length(period.until - now)})"
    lists = " ".join(_list_words(one) for one in plan.lists) or "Each session is given a list of its own."
    context.say(f"{'Would be away: ' if dry_run else ''}{_whom(period, store)}, {end}. {lists}")
    if plan.note:
        context.say(plan.note)
    for old in plan.replaced:
        before = f" until {moment(old.until, context.zone, now)}" if old.until is not None else ""
        context.say(f"It replaces the time away{before} that held since {moment(old.since, context.zone, now)}.")
    columns = max((width(one.subject) for one in findings), default=0)
    for one in findings:
        context.say(f"  {MARKS[one.level]:<4}  {padded(one.subject, columns)}  {one.text}")
    if dry_run:
        context.say("Nothing was changed." if _is_go(findings) else "Nothing was changed. Not everything is covered.")
    else:
        which = (
            f" --session {period.session[:8]}" if period.session else " --all" if period.scope == "everywhere" else ""
        )
        context.say(f"Undo: stopwarden back{which}")


def _whom(period: AwayPeriod, store: Store) -> str:
    if period.scope == "everywhere":
        return "Every checkout"
    if period.scope == "checkout":
        return "This checkout"
    row = store.session(period.session)
    title = f' "{plain(row.title, 40)}"' if row is not None and row.title else ""
    return f"Session {period.session[:8]}{title}"


def _list_words(one: _List) -> str:
    parts = [f"{one.tally.open} open"]
    if one.tally.waits_for_you:
        parts.append(f"{one.tally.waits_for_you} {'waits' if one.tally.waits_for_you == 1 else 'wait'} for you")
    if one.tally.waits:
        parts.append(f"{one.tally.waits} waiting on something else")
    return f"{os.path.basename(one.path)}: {', '.join(parts)}."


def _as_json(plan: _Plan, findings: Sequence[Finding], dry_run: bool) -> dict[str, object]:
    fields = plan.period.as_dict()
    until = plan.period.until
    return {
        "v": 1,
        "away": not dry_run,
        "go": _is_go(findings),
        "period": {**fields, "since": utc(plan.period.since), "until": None if until is None else utc(until)},
        "policy": plan.policy.as_dict(),
        "lists": [{"path": one.path, **one.tally.as_dict()} for one in plan.lists],
        "replaced": [one.id for one in plan.replaced],
        "findings": [one.as_dict() for one in findings],
        "note": plan.note,
        "undo": "stopwarden back",
    }
