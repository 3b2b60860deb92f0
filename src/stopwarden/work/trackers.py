"""Other trackers, read and never written: GitHub through `gh`, beads through `bd`, any program's JSON lines.

Theory of operation. A tracker is a program that prints its open items. It is started without a
shell and without input, in the checkout it was added in, and has a time limit and a limit of
output. Either everything it prints is understood, or the tracker is *unreadable*: what it said
before stays stored, and counts as unknown until it answers again. Not installed, not logged in,
hanging, half an answer, an id twice, a wrong type: all the same, since work that nobody sees must
not look like no work. Titles are strangers' text: they are cleaned, and never a reason to refuse.

An item's id is shown with its tracker's name before it (`gh-42`), and is unique in a project.

No hook ever comes here: trackers are read by `stopwarden tracker read`, when the person leaves,
and by `stopwarden watch`. May not live here: what is offered (`work.ready`), sentences for a person.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stopwarden.core.errors import UsageError
from stopwarden.core.ledger import PRIORITIES, PRIORITY_DEFAULT
from stopwarden.core.record import Record
from stopwarden.store.port import TrackedItem, Tracker
from stopwarden.work import programs
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stopwarden.core.events import Instant
    from stopwarden.store.port import Store

LIMIT = 20.0  # seconds for one tracker, all its commands together
OUTPUT_MAX = 4 * 1024 * 1024  # bytes
TRACKED_MAX = 5_000  # open items of one tracker
ID_MAX = 80
KINDS = ("gh", "bd", "command")
GH = (
    "gh",
    "issue",
    "list",
    "--state",
    "open",
    "--limit",
    str(TRACKED_MAX + 1),
    "--json",
    "number,title,labels,createdAt",
)
BD = ("bd", "list", "--json", "--limit", "0")
BD_READY = ("bd", "ready", "--json", "--limit", "0")
# No question, no colour, no notice of an update: what is printed is the answer and nothing else.
QUIET = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GH_SPINNER_DISABLED": "1",
    "GH_PAGER": "cat",
    "PAGER": "cat",
    "NO_COLOR": "1",
    "CLICOLOR_FORCE": "0",
    "GH_FORCE_TTY": "",
    "BD_JSON_ENVELOPE": "0",
    "BEADS_NO_DAEMON": "1",
    "TERM": "dumb",
}
OVER = frozenset(
    (
        "done",
        "closed",
        "completed",
        "complete",
        "resolved",
        "fixed",
        "cancelled",
        "canceled",
        "dropped",
        "tombstone",
        "wontfix",
        "merged",
    )
)
OPEN = frozenset(("open", "todo", "new", "ready", "reopened", "backlog", "opened"))
DOING = frozenset(("doing", "started", "active", "in_progress", "hooked"))
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_PRIORITY = re.compile(r"(?:priority)?[ :/_-]*p?([0-4])|priority[ :/_-]*([a-z]+)|(critical|urgent)")
_WORDS = {"critical": 0, "urgent": 0, "highest": 0, "high": 1, "medium": 2, "normal": 2, "low": 3, "lowest": 4}
_BLOCKED = re.compile(r"(?:status[ :/_-]*)?(?:blocked|on[ _-]hold|waiting)")


class _Unreadable(Record):
    """Why an answer cannot be used."""

    why: str


class Said(Record):
    """What a tracker answered: its open items, or why that is not known."""

    items: tuple[TrackedItem, ...] = ()
    why: str = ""


# --- which trackers -------------------------------------------------------------------------------


def new_tracker(project: str, root: str, name: str, command: Sequence[str] = (), labels: Iterable[str] = ()) -> Tracker:
    """A tracker to be stored. Raises UsageError for a name or a command that cannot be."""
    if not _NAME.fullmatch(name) or name in ("w", "t"):
        raise UsageError(
            f"{one_line(name, 40)!r} is no name for a tracker",
            kept="Nothing was changed",
            do="Use small letters, digits and _ (not w or t alone), at most 31",
        )
    labelled = [word for label in labels for word in ("--label", label)]
    if command:
        if labelled:
            raise UsageError("--label is for gh and bd", kept="Nothing was changed", do="Put it into the command")
        return Tracker(project=project, name=name, kind="command", command=tuple(command), root=root)
    known = {"gh": GH, "bd": BD}
    if name not in known:
        raise UsageError(
            f"{name} is neither gh nor bd", kept="Nothing was changed", do="Say how it is read: --command 'CMD …'"
        )
    return Tracker(project=project, name=name, kind=name, command=(*known[name], *labelled), root=root)


# --- reading ----------------------------------------------------------------------------------------


def read_all(
    store: Store,
    now: Instant,
    env: Mapping[str, str] | None = None,
    *,
    project: str | None = None,
    name: str | None = None,
    limit: float = LIMIT,
    keep: bool = True,
) -> list[Tracker]:
    """Reads the trackers of a project, or all there are, side by side; how it stands with each.

    What is read, or that it could not be, is stored unless `keep` is false. Takes `limit` seconds at
    most, and a little. Raises the Store…Error classes and nothing of the trackers' making.
    """
    asked = [one for one in store.trackers(project) if name is None or one.name == name]
    if not asked:
        return []
    with programs.ended_with_us(), ThreadPoolExecutor(max_workers=min(8, len(asked))) as side_by_side:
        answers = list(side_by_side.map(lambda one: ask(one, env or os.environ, limit), asked))
    return [_kept(store, one, said, now, keep) for one, said in zip(asked, answers, strict=True)]


def _kept(store: Store, tracker: Tracker, said: Said, now: Instant, keep: bool) -> Tracker:
    """The tracker as it stands after an answer."""
    if said.why:
        told = tracker.replace(failed_at=now, why=said.why)
    else:
        told = tracker.replace(read_at=now, failed_at=None, why="")
    if not keep:
        return told
    with store.transaction():
        there = [one for one in store.trackers(tracker.project) if one.name == tracker.name]
        if [(one.kind, one.command) for one in there] != [(tracker.kind, tracker.command)]:
            return told  # taken away, or another by now
        store.save_tracker(told)
        if not said.why:
            before = {one.id: one.created_at for one in store.tracked_items(tracker.project)}
            dated = [
                item if item.created_at else item.replace(created_at=before.get(item.id, now)) for item in said.items
            ]
            store.replace_tracked(tracker.project, tracker.name, dated)
    return told


def ask(tracker: Tracker, env: Mapping[str, str], limit: float = LIMIT) -> Said:
    """Asks one tracker now; stores nothing."""
    until = time.monotonic() + limit
    out = _output(tracker.command, tracker.root, env, limit)
    if isinstance(out, _Unreadable):
        return Said(why=out.why)
    entries = _entries(out)
    ready: set[str] | None = None
    if tracker.kind == "bd" and not isinstance(entries, _Unreadable):
        also = _output(BD_READY, tracker.root, env, max(0.1, until - time.monotonic()))
        known = also if isinstance(also, _Unreadable) else _entries(also)
        if isinstance(known, _Unreadable):
            return Said(why=known.why)
        ready = {one["id"] for one in known if isinstance(one.get("id"), str)}
    if isinstance(entries, _Unreadable):
        return Said(why=entries.why)
    if len(entries) > TRACKED_MAX:
        return Said(why=f"more than {TRACKED_MAX:,} items: narrow it down, for instance with --label")
    items: dict[str, TrackedItem] = {}
    for place, entry in enumerate(entries, 1):
        item = _item(tracker, entry, ready)
        if isinstance(item, _Unreadable):
            return Said(why=f"item {place}: {item.why}")
        if item is None:
            continue
        if item.id in items:
            return Said(why=f"it names {item.id} twice")
        items[item.id] = item
    return Said(items=tuple(items.values()))


def _output(command: Sequence[str], root: str, env: Mapping[str, str], limit: float) -> bytes | _Unreadable:
    """What the program prints, if it ends well and within its limits."""
    program = command[0]
    if not os.path.isdir(root):
        return _Unreadable(why=f"{root} is not there any more")
    path = os.path.join(root, program) if "/" in program else shutil.which(program, path=env.get("PATH", os.defpath))
    if path is None or not os.path.exists(path):
        return _Unreadable(why=f"{program} is not installed, or not on the PATH")
    ran = programs.run([path, *command[1:]], cwd=root, env={**env, **QUIET}, limit=limit, keep=OUTPUT_MAX)
    if ran.never:
        return _Unreadable(why=f"{program} cannot be started: {ran.never}")
    if ran.timed_out:
        return _Unreadable(why=f"{program} did not answer within {limit:.3g} s")
    if ran.too_much:
        return _Unreadable(why=f"{program} prints more than {OUTPUT_MAX // 1024 // 1024} MiB")
    if ran.code != 0:
        said = one_line(_last_line(ran.err) or _last_line(ran.out), 160)
        if os.path.basename(program) == "gh" and ran.code == 4:
            said = "not logged in. Run: gh auth login"
        return _Unreadable(why=f"{program} ended with exit code {ran.code}" + (f": {said}" if said else ""))
    return ran.out


def _last_line(out: bytes) -> str:
    lines = [line for line in out.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _entries(out: bytes) -> list[dict[str, Any]] | _Unreadable:
    """The objects that a program printed: one JSON array (also inside an envelope), or one object a line."""
    try:
        text = out.decode("utf-8")
        try:
            told = json.loads(text) if text.strip() else []
        except ValueError:
            told = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as failed:
        kind = "no UTF-8" if isinstance(failed, UnicodeDecodeError) else "no JSON, or not all of it"
        return _Unreadable(why=f"its answer is {kind}")
    if isinstance(told, dict):
        told = told["data"] if isinstance(told.get("data"), list) and "id" not in told else [told]
    entries = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else None
    if entries is None or len(entries) != len(told):
        return _Unreadable(why="its answer holds something else than objects")
    return entries


def _item(tracker: Tracker, entry: dict[str, Any], ready: set[str] | None) -> TrackedItem | _Unreadable | None:
    """One item; None where it is over. Anything odd in what orders or names it is refused."""
    said = entry.get("id", entry.get("number"))
    if isinstance(said, bool) or not isinstance(said, (str, int)):
        return _Unreadable(why="it has no id")
    known = str(said) if isinstance(said, int) and abs(said) < 10**18 else said
    if not isinstance(known, str) or not known or len(known) > ID_MAX or one_line(known) != known or " " in known:
        return _Unreadable(why="its id is empty, too long, or holds blanks or control characters")
    title = entry.get("title")
    if not isinstance(title, str):
        return _Unreadable(why=f"{known} has no title")
    labels = _labels(entry.get("labels"))
    priority = _priority(entry.get("priority"), labels)
    created = _created(next((entry[key] for key in ("created", "created_at", "createdAt") if key in entry), None))
    state = entry.get("state", entry.get("status", "open"))
    blocked = entry.get("blocked", False)
    if (
        labels is None
        or priority is None
        or created is None
        or not isinstance(state, str)
        or not isinstance(blocked, bool)
    ):
        odd = (
            "labels" if labels is None else
            "priority" if priority is None else
            "creation time" if created is None else
            "state" if not isinstance(state, str) else "blocked"
        )  # fmt: skip
        return _Unreadable(why=f"{known} has an odd {odd}")
    word = state.strip().lower().replace(" ", "_").replace("-", "_")
    if word in OVER:
        return None
    doing = word in DOING
    held_up = blocked or any(_BLOCKED.fullmatch(label) for label in labels)
    if ready is not None:
        held_up = held_up or (not doing and known not in ready)
    return TrackedItem(
        project=tracker.project,
        tracker=tracker.name,
        id=known if known.startswith(f"{tracker.name}-") else f"{tracker.name}-{known}",
        title=one_line(title) or "(no title)",
        state="doing" if doing else "open",
        priority=priority,
        blocked=held_up or not (doing or word in OPEN),  # a state that we do not know is not offered
        created_at=created,
    )


def _labels(said: object) -> list[str] | None:
    """Names of labels, as `gh` or a plain list gives them; None where they cannot be read."""
    if said is None:
        return []
    if not isinstance(said, list):
        return None
    names = [one.get("name") if isinstance(one, dict) else one for one in said]
    texts = [name.strip().lower() for name in names if isinstance(name, str)]
    return texts if len(texts) == len(names) else None


def _priority(said: object, labels: Sequence[str] | None) -> int | None:
    if said is not None:
        return said if type(said) is int and said in PRIORITIES else None
    found = [_PRIORITY.fullmatch(label) for label in labels or ()]
    ranks = [
        int(one[1]) if one[1] else _WORDS.get(one[2] or one[3], PRIORITY_DEFAULT)
        for one in found
        if one is not None and (one[1] is None or one.string != one[1])  # a bare "3" is no priority
    ]
    return min(ranks, default=PRIORITY_DEFAULT)


def _created(said: object) -> Instant | None:
    """An instant, 0 where none is given, None where it cannot be read."""
    if said is None:
        return 0
    if type(said) is int:
        return said if 0 <= said < 2**40 else None
    if not isinstance(said, str):
        return None
    try:
        moment = datetime.fromisoformat(said)
        at = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None
    return max(at, 0)
