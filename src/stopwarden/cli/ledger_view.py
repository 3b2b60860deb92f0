"""The ledger of a project and what other trackers said, as `list` and `show` tell of it.

The ready queue is the one that a stop is judged by (`work.ready`), so the order shown is the order
in which work is offered. Everything else of the ledger stands below it, with why it is not ready.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.cli import hold_words
from stopwarden.cli import ledger as on_ledger
from stopwarden.cli.person import names
from stopwarden.core import ledger as rules
from stopwarden.core.record import Record
from stopwarden.core.reservations import is_taken
from stopwarden.report.moments import moment
from stopwarden.report.reading import count, padded, plain, width
from stopwarden.report.values import utc
from stopwarden.store.port import SessionRow
from stopwarden.work import ready

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Instant, Item, Reservation
    from stopwarden.store.port import LedgerItem, Store, TrackedItem, Tracker
    from stopwarden.work.reservations import Actor

SHOWN = 100  # of the ledger, and
SHOWN_TRACKED = 20  # of each tracker: an agent reads this
BOXES = {"open": "[ ]", "doing": "[/]", "done": "[x]", "waiting": "[?]", "dropped": "[-]", "handed_back": "[?]"}
WAITS = {"person": "waits for you", "external": "waits for something external", "session": "waits for another session"}


class View(Record):
    """One project at one moment."""

    items: tuple[LedgerItem, ...] = ()
    ready: tuple[Item, ...] = ()  # in order, nothing that another holds
    holds: Mapping[str, Reservation] = {}  # of ids of the project that are not free
    trackers: tuple[Tracker, ...] = ()
    tracked: tuple[TrackedItem, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.items and not self.trackers


def view(store: Store, by: Actor, now: Instant) -> View:
    """All of it, as seen by who acts."""
    row = store.session(by.session) if by.session else None
    row = row or SessionRow(id=by.session, root=by.root, copy=by.copy)
    work = ready.other_work(store, row, now, {}, now)
    taken = {one.item for one in work.reservations if one.session != row.id and is_taken(one, now)}
    return View(
        items=tuple(store.ledger_items(by.project)),
        ready=tuple(item for item in work.ready if item.id not in taken),
        holds={
            held.item: held
            for held in store.reservations_in(by.project)
            if held.place == by.project and is_taken(held, now)
        },
        trackers=tuple(store.trackers(by.project)),
        tracked=tuple(store.tracked_items(by.project)),
    )


# --- list -----------------------------------------------------------------------------------------


def say_ready(context: Context, seen: View) -> None:
    """The ready queue alone."""
    if not seen.ready:
        context.say("Nothing is ready.")
    columns = max((width(item.id) for item in seen.ready), default=0)
    for item in seen.ready:
        context.say(f"  {padded(item.id, columns)}  {plain(item.title)}")
    _say_unknown(context, seen)


def say_ledger(context: Context, seen: View, store: Store, by: Actor, *, everything: bool) -> None:
    """The ledger by how its items stand, ready ones first, then what other trackers said."""
    if seen.items:
        context.say(how_it_stands(seen.items))
        states = {item.number: item.state for item in seen.items}
        place = {item.id: at for at, item in enumerate(seen.ready)}
        shown = [item for item in seen.items if everything or item.state not in rules.OVER]
        shown.sort(
            key=lambda item: (
                item.state in rules.OVER,
                place.get(item.id, len(place)),
                item.state != "open" or rules.unmet(item, states) != (),
                item.priority,
                item.created_at,
            )
        )
        left_out = 0 if everything else max(0, len(shown) - SHOWN)
        shown = shown[: len(shown) - left_out]
        columns = max((len(item.id) for item in shown), default=0)
        for item in shown:
            said = _stands(context, item, states, seen, store, by)
            context.say(
                f"    {BOXES.get(item.state, '[ ]')} {item.id:<{columns}}  {plain(item.title)}"
                + (f"   ({said})" if said else "")
            )
        if left_out:
            context.say(f"  {left_out:,} more are not over: --all shows them.")
        hidden = len(seen.items) - len(shown) - left_out
        if hidden:
            context.say(f"  {count(hidden, 'more is', 'more are')} done or dropped: --all shows them.")
    for tracker in seen.trackers:
        _say_tracker(context, tracker, seen, store, by, everything=everything)


def how_it_stands(items: Sequence[LedgerItem]) -> str:
    """`Ledger: 3 open, 1 begun, 1 waits for you, 2 done`."""
    states = [item.state for item in items]
    yours = sum(item.state == "handed_back" or (item.state, item.waits_on) == ("waiting", "person") for item in items)
    others = states.count("waiting") + states.count("handed_back") - yours
    parts = [
        count(states.count("open"), "open", "open"),
        f"{states.count('doing')} begun",
        f"{yours} {'waits' if yours == 1 else 'wait'} for you",
        f"{others} waiting",
        f"{states.count('done')} done",
        f"{states.count('dropped')} dropped",
    ]
    return "Ledger: " + ", ".join([parts[0], *(part for part in parts[1:] if not part.startswith("0 "))])


def _stands(context: Context, item: LedgerItem, states: Mapping[int, str], seen: View, store: Store, by: Actor) -> str:
    """Why it is where it is, in brackets behind its title."""
    said = []
    if item.priority != rules.PRIORITY_DEFAULT and item.state not in rules.OVER:
        said.append(f"priority {item.priority}")
    unmet = rules.unmet(item, states)
    if item.state == "open" and unmet:
        said.append(f"after {', '.join(f'w{need}' for need in unmet)}")
    if item.state == "waiting":
        said.append(WAITS.get(item.waits_on, "waits") + (f": {plain(item.why, 100)}" if item.why else ""))
    if item.state == "handed_back":
        said.append("handed back to you" + (f": {plain(item.why, 100)}" if item.why else ""))
    held = seen.holds.get(item.id)
    if held is not None:
        said.append(on_ledger.held_by(held, context, store, by))
    elif item.state == "doing":
        whom = f" by {_called(item.assigned, store)}" if item.assigned else ""
        said.append(f"begun{whom}, held by nobody now" + (": start takes it up" if item.assigned else ""))
    if item.state == "done" and item.verify:
        said.append("verified" if item.verified_at is not None else "not verified")
    return "; ".join(said)


def _called(session: str, store: Store) -> str:
    row = store.session(session)
    return f"session {names([row])[session]}" if row is not None else f"session {plain(session, 8)}"


def _say_tracker(context: Context, tracker: Tracker, seen: View, store: Store, by: Actor, *, everything: bool) -> None:
    items = [item for item in seen.tracked if item.tracker == tracker.name]
    context.say(f"{tracker.name}: {read_words(tracker, len(items), context)}")
    left_out = 0 if everything else max(0, len(items) - SHOWN_TRACKED)
    items = items[: len(items) - left_out]
    columns = max((width(item.id) for item in items), default=0)
    for item in items:
        held = seen.holds.get(item.id)
        said = [f"priority {item.priority}"] if item.priority != rules.PRIORITY_DEFAULT else []
        said += ["blocked there"] if item.blocked else []
        if held is not None:
            said.append(on_ledger.held_by(held, context, store, by))
        context.say(
            f"    {BOXES.get(item.state, '[ ]')} {padded(item.id, columns)}  {plain(item.title)}"
            + (f"   ({'; '.join(said)})" if said else "")
        )
    if left_out:
        context.say(f"  {left_out:,} more are open there: --all shows them.")


def read_words(tracker: Tracker, items: int, context: Context) -> str:
    """How it stands with a tracker: `12 open, read at 23:05`."""
    known = "never read" if tracker.read_at is None else _at(tracker.read_at, context)
    if tracker.failed_at is not None:
        before = "" if tracker.read_at is None else f"; {items} open when it was last read, at {known}"
        return f"cannot be read ({plain(tracker.why, 160)}), so what is open there is unknown{before}"
    if tracker.read_at is None:
        return "never read yet. Read it: stopwarden tracker read"
    return f"{count(items, 'open', 'open')}, read at {known}"


def _at(instant: Instant, context: Context) -> str:
    return moment(instant, context.zone, context.now())


def _say_unknown(context: Context, seen: View) -> None:
    for tracker in seen.trackers:
        if tracker.failed_at is not None or tracker.read_at is None:
            context.say(f"  {tracker.name}: {read_words(tracker, 0, context)}")


# --- show -----------------------------------------------------------------------------------------


def say_item(context: Context, item: LedgerItem, seen: View, store: Store, by: Actor) -> None:
    """Everything known of one item of the ledger."""
    states = {one.number: one.state for one in seen.items}
    context.say(f"{BOXES.get(item.state, '[ ]')} {item.id}  {plain(item.title, 200)}")
    stands = _stands(context, item.replace(priority=rules.PRIORITY_DEFAULT), states, seen, store, by)
    lines = [("state", f"{_word(item)}; {stands}" if stands else _word(item))]
    lines.append(("priority", f"{item.priority} (0 first, 4 last)"))
    place = next((at for at, one in enumerate(seen.ready, 1) if one.id == item.id), 0)
    if place:
        lines.append(("ready", f"number {place} of what is offered next"))
    if item.needs:
        lines.append(("after", ", ".join(f"w{need} ({states.get(need, 'gone')})" for need in item.needs)))
    before = [one.id for one in seen.items if item.number in one.needs]
    if before:
        lines.append(("before", ", ".join(before)))
    who = "you" if not item.created_by else f"session {item.created_by[:8]}"
    lines.append(("added", f"{_at(item.created_at, context)} by {who}"))
    if item.changed_at != item.created_at or item.was:
        was = f", before that {item.was}" if item.was else ""
        lines.append(("since", f"{_at(item.changed_at, context)} {item.state}{was}"))
    held = store.reservation(by.project, item.id)
    if held is not None:
        over = f", ended {_at(held.released_at, context)}" if held.released_at is not None else ""
        lines.append(
            ("token", f"{held.token}, {on_ledger.held_by(held.replace(expires_at=None), context, store, by)}{over}")
        )
    if item.verify:
        lines += [("verify", plain(item.verify, 300)), ("verified", _verified(context, item))]
    _say_pairs(context, lines)
    say_lines(context, store, item.id, item.created_at)


def say_tracked(context: Context, item: TrackedItem, seen: View, store: Store, by: Actor) -> None:
    """Everything known of one item of another tracker."""
    context.say(f"{BOXES.get(item.state, '[ ]')} {item.id}  {plain(item.title, 200)}")
    tracker = next(one for one in seen.trackers if one.name == item.tracker)
    lines = [("tracker", f"{tracker.name}: {read_words(tracker, 1, context)}")]
    lines += [("state", f"{item.state}{', blocked there' if item.blocked else ''}"), ("priority", str(item.priority))]
    held = seen.holds.get(item.id)
    if held is not None:
        lines.append(("held", on_ledger.held_by(held, context, store, by).removeprefix("held ")))
    _say_pairs(context, lines)
    say_lines(context, store, item.id, 0)


def say_lines(context: Context, store: Store, known: str, since: Instant) -> None:
    """The item's last lines in the away record."""
    lines = [line for line in store.lines(since=since) if line.item == known]
    if lines:
        context.say("  in the away record:")
    for line in lines[-10:]:
        whom = f" session {line.session[:8]}" if line.session else ""
        text = f": {plain(line.text, 120)}" if line.text else ""
        context.say(f"    {_at(line.at, context)} {line.kind.replace('_', ' ')}{whom}{text}")


def _say_pairs(context: Context, lines: Sequence[tuple[str, str]]) -> None:
    for name, said in lines:
        context.say(f"  {name:<9} {said}")


def _word(item: LedgerItem) -> str:
    return {"open": "open", "doing": "begun", "handed_back": "handed back"}.get(item.state, item.state)


def _verified(context: Context, item: LedgerItem) -> str:
    if item.verified_at is not None:
        return f"passed {_at(item.verified_at, context)}"
    if item.failure:
        return "failed when it was last run"
    return "done without it, on the person's word" if item.state == "done" else "not run yet"


# --- as JSON --------------------------------------------------------------------------------------


def as_json(item: LedgerItem, seen: View) -> dict[str, object]:
    """One item of the ledger."""
    states = {one.number: one.state for one in seen.items}
    held = seen.holds.get(item.id)
    return {
        **item_json(item),
        "blocked_by": [f"w{need}" for need in rules.unmet(item, states)],
        "needed_by": [one.id for one in seen.items if item.number in one.needs],
        "ready": next((at for at, one in enumerate(seen.ready, 1) if one.id == item.id), None),
        "held": None if held is None else hold_json(held),
    }


def item_json(item: LedgerItem) -> dict[str, object]:
    """The item's own fields."""
    return {
        "id": item.id,
        "title": item.title,
        "state": item.state,
        "was": item.was,
        "changed_at": utc(item.changed_at),
        "priority": item.priority,
        "after": [f"w{need}" for need in item.needs],
        "waits_on": item.waits_on or None,
        "why": item.why,
        "verify": item.verify,
        "verified_at": None if item.verified_at is None else utc(item.verified_at),
        "assigned": item.assigned,
        "created_at": utc(item.created_at),
        "created_by": item.created_by,
        "done_by": item.done_by,
    }


def hold_json(held: Reservation) -> dict[str, object]:
    """Who holds it."""
    return {
        "session": held.session,
        "token": held.token,
        "until": hold_words.utc_or_none(held.expires_at),
        "footprint": list(held.footprint),
    }


def tracked_json(item: TrackedItem, seen: View) -> dict[str, object]:
    """One item of another tracker."""
    held = seen.holds.get(item.id)
    return {
        "id": item.id,
        "title": item.title,
        "tracker": item.tracker,
        "state": item.state,
        "priority": item.priority,
        "blocked": item.blocked,
        "created_at": utc(item.created_at),
        "held": None if held is None else hold_json(held),
    }


def tracker_json(tracker: Tracker) -> dict[str, object]:
    """How it stands with a tracker."""
    return {
        "name": tracker.name,
        "kind": tracker.kind,
        "command": list(tracker.command),
        "root": tracker.root,
        "read_at": None if tracker.read_at is None else utc(tracker.read_at),
        "failed_at": None if tracker.failed_at is None else utc(tracker.failed_at),
        "why": tracker.why,
        "known": tracker.read_at is not None and tracker.failed_at is None,
    }


def view_json(seen: View) -> dict[str, object]:
    """The whole view."""
    return {
        "ready": [item.id for item in seen.ready],
        "ledger": [as_json(item, seen) for item in seen.items],
        "trackers": [tracker_json(one) for one in seen.trackers],
        "tracked": [tracked_json(item, seen) for item in seen.tracked],
    }
