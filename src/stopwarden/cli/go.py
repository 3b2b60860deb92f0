"""The go/no-go check: what of this night is covered, what is not, and what to do about it now.

`away` runs it before the person leaves, because every one of these things ends a night without a
stop that anyone could block: no hook, a session that sits idle, plans, or waits behind a dialog, a
scheduler that is off, a machine that sleeps. A finding says so in one sentence with the act in it;
what is not covered is recorded too. Facts come in as values, so the check can be tried on any
night. May not live here: changing anything.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Literal

from stopwarden.core.errors import HostError
from stopwarden.core.record import Record
from stopwarden.hosts import claude_code, claude_settings, installation
from stopwarden.report.moments import length, moment
from stopwarden.report.reading import plain
from stopwarden.report.state import Known, Standing, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stopwarden.cli.surroundings import Agent, Power
    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import AwayPeriod, Instant, Mode, Zone
    from stopwarden.store.port import SessionRow, Tracker

START_SLACK = 2  # s: the kernel tells the boot and a start in whole seconds, so a start may read this much early
SHARED_MIN = 2  # sessions that would all be told the same next item
KEEP_AWAKE = "keep it awake: systemd-inhibit sleep 1d"


class Finding(Record):
    """One line of the check. `covered` False: this will not be held in the night."""

    level: Literal["ok", "note", "warn"]
    subject: str
    text: str
    session: str = ""
    covered: bool = True


class Hooks(Record):
    """Where our hooks are registered for a checkout, and what keeps them from running."""

    places: tuple[str, ...] = ()
    keeper: bool = False
    disabled_by: str = ""  # "disableAllHooks in FILE"
    unreadable: tuple[str, ...] = ()
    env: Mapping[str, str] = {}  # what the host's settings put into a session's environment


def hooks_of(env: Mapping[str, str], root: str, system: str = "/") -> Hooks:
    """What the host's settings files, the organisation's included, say about our hooks in this checkout."""
    files = [claude_settings.user_settings(env), os.path.join(root, ".claude", "settings.json")]
    files.append(claude_settings.local_settings(root))
    managed = list(_managed(system))
    places, unreadable, disabled, keeper = [], [], "", False
    said: dict[str, str] = {}
    for path in (*files, *managed):
        try:
            text = installation.read_text(path)
            settings, found = claude_settings.read(text), claude_settings.installed(text)
        except HostError:
            unreadable.append(path)
            continue
        if any(one.command.word == "stop" for one in found):
            places.append(path)
        keeper = keeper or any(one.command.word == claude_settings.KEEPER for one in found)
        named = claude_settings.what_disables(settings, managed=path in managed)
        disabled = disabled or (f"{named} in {path}" if named else "")
        extra = settings.get("env")
        said |= {str(name): str(value) for name, value in extra.items()} if isinstance(extra, dict) else {}
    return Hooks(places=tuple(places), keeper=keeper, disabled_by=disabled, unreadable=tuple(unreadable), env=said)


def _managed(system: str) -> Iterator[str]:
    """The settings files of the organisation."""
    for path in claude_settings.managed_settings(sys.platform):
        there = os.path.join(system, path.lstrip("/"))
        if os.path.isdir(there):
            yield from (os.path.join(there, name) for name in sorted(os.listdir(there)) if name.endswith(".json"))
        elif os.path.isfile(there):
            yield there


def check_hooks(hooks: Hooks) -> list[Finding]:
    """Whether any session here can be held at all."""
    found = []
    if not hooks.places:
        text = "not installed: nothing can be held. Run: stopwarden install claude-code"
        found.append(Finding(level="warn", subject="hooks", text=text, covered=False))
    if hooks.disabled_by:
        text = f"switched off ({hooks.disabled_by}). Take that out, or nothing can be held."
        found.append(Finding(level="warn", subject="hooks", text=text, covered=False))
    for path in hooks.unreadable:
        text = f"{path} cannot be read, so it may hold hooks or not. Mend it."
        found.append(Finding(level="warn", subject="settings", text=text))
    return found


def check_sessions(
    known: Sequence[Known], names: Mapping[str, str], now: Instant, zone: Zone, env: Callable[[str], str], first: str
) -> list[Finding]:
    """One finding a session of the period's scope; `first` is what a prompt could say to begin the work."""
    found = []
    for one in known:
        told = standing(one, now, zone)
        if one.row.ended_at is not None:
            continue
        level, text, covered = _session(one, told, now, zone, env, first)
        subject = f"session {names[one.row.id]}"
        found.append(Finding(level=level, subject=subject, text=text, session=one.row.id, covered=covered))
    return found


def _session(
    one: Known, told: Standing, now: Instant, zone: Zone, env: Callable[[str], str], first: str
) -> tuple[Literal["ok", "warn"], str, bool]:
    row = one.row
    if told.word == "not_covered":
        return "warn", f"{_lower(told.text[:-1])}: not covered. Restart it.", False
    if one.mode == "off":
        return "warn", "switched off: not covered. Run: stopwarden on", False
    if one.mode == "observe":
        return "warn", "only observed: it will not be blocked. Run: stopwarden on", False
    if told.word == "waiting_on_you":
        return "warn", f"{_lower(told.text)} {told.act} now.", False
    if row.permission_mode == "plan":
        return "warn", "in plan mode, which would only wait for you. Leave plan mode there now.", False
    if told.word in ("stopped", "done"):
        if row.error:
            return "warn", f"{_lower(told.text)} {told.act}.", False
        since = moment(row.idle_since or row.last_event_at, zone, now)
        return "warn", f"idle since {since}: no stop will come from it. Type there now: {first}", False
    if told.word in ("stalled", "silent"):
        return "warn", f"{_lower(told.text)} Look at it now.", told.word == "silent"
    scheduler = claude_code.scheduler(row.entrypoint, env)
    seen = f"hook seen {length(now - row.last_event_at)} ago"
    if scheduler.works == "none":
        return "warn", f"{seen}, but it cannot wait: {scheduler.why}. It can only work.", True
    if told.next_look is not None and told.word == "waiting":
        return "ok", f"waits, looks again at {moment(told.next_look, zone, now)}", True
    works = "scheduler on" if scheduler.works == "all" else f"one-shot wakes only ({scheduler.why})"
    return "ok", f"{seen} · {works}", True


def check_unseen(
    agents: Sequence[Agent], heard: Sequence[SessionRow], installed_at: Instant, now: Instant, zone: Zone
) -> list[Finding]:
    """Agent programs that are open here and whose hooks were never heard of; `heard` are the sessions that were.

    A program that a session named as its own was heard of. Of the others, one started before the
    install has no hooks; beyond those, as many as there are more programs than sessions left.
    """
    named = {row.program for row in heard} & {agent.pid for agent in agents}
    others = [agent for agent in agents if agent.pid not in named]
    before = [agent for agent in others if agent.started and agent.started + START_SLACK < installed_at]
    rest = [agent for agent in others if agent not in before]
    unnamed = sum(row.program not in named for row in heard)
    unseen = before + rest[: max(0, len(rest) - unnamed)]
    found = []
    for agent in unseen:
        since = f", open since {moment(agent.started, zone, now)}" if agent.started else ""
        text = f"hook never seen{since}: not covered. Restart it, or give it a prompt and run this again."
        found.append(Finding(level="warn", subject=f"program {agent.pid}", text=text, covered=False))
    return found


def check_power(power: Power) -> list[Finding]:
    """Whether the machine is likely to sleep, which stops everything."""
    if not power.has_battery or (power.kept_awake and not power.on_battery):
        return []
    if power.on_battery:
        left = f" ({power.percent} %)" if power.percent is not None else ""
        act = "Plug in." if power.kept_awake else f"Plug in, and {KEEP_AWAKE}."
        return [Finding(level="warn", subject=f"on battery{left}", text=f"sleep stops everything. {act}")]
    text = f"it may sleep by itself or when closed. Leave it open, and {KEEP_AWAKE}."
    return [Finding(level="note", subject="plugged in", text=text)]


def check_keeper(policy: Policy, hooks: Hooks) -> list[Finding]:
    """Whether somebody wakes a session that missed its look or met an error."""
    if policy.keeper and hooks.keeper:
        return [Finding(level="ok", subject="keeper", text="on: it wakes a session after an error or a missed look")]
    if policy.keeper:
        text = "wanted, but its hooks are not installed. Run: stopwarden install claude-code --keeper"
        return [Finding(level="warn", subject="keeper", text=text)]
    how = "--set keeper=true" if hooks.keeper else "stopwarden install claude-code --keeper"
    text = f"off. It would wake sessions after an error: {how}"
    return [Finding(level="note", subject="keeper", text=text)]


def check_switch(mode: Mode) -> list[Finding]:
    """Whether stops are judged and blocked at all."""
    if mode == "on":
        return []
    text = {"off": "nothing will be held", "observe": "stops are only recorded, nothing is blocked"}[mode]
    return [Finding(level="warn", subject=f"switched {mode}", text=f"{text}. Run: stopwarden on", covered=False)]


def check_tracker(tracker: Tracker, ready: int | None) -> Finding:
    """Whether what is open in another tracker is known; `ready` of it could be taken up."""
    if tracker.failed_at is not None:
        text = (
            f"cannot be read ({plain(tracker.why, 160)}): what is open there is unknown. "
            f"Put that right, then: stopwarden tracker read {tracker.name}"
        )
        return Finding(level="warn", subject=f"tracker {tracker.name}", text=text)
    text = "can be read" if ready is None else f"read now, {ready} could be taken up"
    return Finding(level="ok", subject=f"tracker {tracker.name}", text=text)


def check_overlap(
    period: AwayPeriod, others: Iterable[AwayPeriod], sharing: int, now: Instant, zone: Zone
) -> list[Finding]:
    """Whether two periods or two sessions would work on the same list."""
    found = []
    for other in others:
        end = f" until {moment(other.until, zone, now)}" if other.until is not None else ""
        shared = [os.path.basename(path) for path in period.lists if path in other.lists]
        if shared:
            text = f"also named by the away period of {scope_words(other)}{end}: two sessions may do one item twice."
            found.append(Finding(level="warn", subject=", ".join(shared), text=text))
        elif "everywhere" in (other.scope, period.scope) or (other.scope == "session") != (period.scope == "session"):
            narrow = "the narrower one holds where both would"
            text = f"{scope_words(other)}{end} holds too: {narrow}. Undo that: stopwarden back --all"
            found.append(Finding(level="note", subject="also away", text=text))
    if sharing >= SHARED_MIN and period.lists:
        text = f"{sharing} sessions share it and are told the same next item. Better one list each (--session ID)."
        found.append(Finding(level="note", subject=", ".join(map(os.path.basename, period.lists)), text=text))
    return found


def scope_words(period: AwayPeriod) -> str:
    """For whom a period holds, in words."""
    if period.scope == "everywhere":
        return "everywhere"
    if period.scope == "session":
        return f"session {period.session[:8]}"
    return period.root


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
