"""Which list of work a command means, which item on it, and changing that one item.

The person, the agent and these commands edit one and the same file. So a command never keeps a
text of its own: it looks up the item again in whatever the file holds at the moment of writing.
Ids are those that the hook tells the agent: they come from the same snapshots.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stopwarden.cli.person import RECENT
from stopwarden.core import periods
from stopwarden.core.errors import ListError, StopwardenError, UsageError
from stopwarden.core.record import Record
from stopwarden.report.reading import count, plain
from stopwarden.work import checkout, edits, files, gather, identity
from stopwarden.work.checklist import read
from stopwarden.work.gather import ReadList
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stopwarden.cli.context import Context
    from stopwarden.core.events import AwayPeriod, Item, ItemState, WaitsOn
    from stopwarden.store.port import Store

USUAL_LISTS = ("TODO.md", "todo.md")
UNFINISHED = ("open", "doing", "waiting")
SHOWN_CANDIDATES = 6


class Meant(Record):
    """The lists that a command works on, and where they belong."""

    paths: tuple[str, ...]
    lists: tuple[ReadList, ...]
    root: str
    period: str = ""  # the away period that holds here
    period_lists: bool = False  # the person named them when they left: the first is the one to add to


class Found(Record):
    """One item on one list."""

    one: ReadList
    item: Item
    period: str = ""  # the away period that holds here

    @property
    def where(self) -> str:
        """The place to look at, as `TODO.md:12`."""
        return f"{self.one.name}:{self.item.line}"

    @property
    def words(self) -> str:
        """How to call it in a sentence."""
        return f'{self.item.id} "{plain(self.item.title, 80)}"'


def add_list_option(parser: argparse.ArgumentParser) -> None:
    """`--list FILE`, the same for every command on lists."""
    parser.add_argument(
        "--list", metavar="FILE", help="the Markdown list; without it the one you are away with, else TODO.md here"
    )


# --- which list -------------------------------------------------------------------------------


def lists_meant(context: Context, named: str | None, *, adding: bool = False) -> Meant:
    """The lists a command works on, read. With `adding`, the first of them may be made.

    `--list`, else those of the away period that holds here, else the session's own (inside an agent
    program), else TODO.md of the checkout. Raises UsageError where there is none.
    """
    store = _store(context)
    try:
        return _meant(context, store, named, adding)
    finally:
        if store is not None:
            store.close()


def _meant(context: Context, store: Store | None, named: str | None, adding: bool) -> Meant:
    session = context.session
    known = store.session(session) if store is not None and session else None
    root = known.root if known is not None and known.root else checkout.find_root(context.cwd)
    period = _period_here(context, store, root, session)
    period_id, period_lists = (period.id, period.lists) if period is not None else ("", ())
    own = checkout.own_list_path(root, session) if session else ""
    if named:
        path = os.path.abspath(os.path.join(context.cwd, os.path.expanduser(named)))
        together = os.path.realpath(path) in map(os.path.realpath, period_lists)
        paths: tuple[str, ...] = (path,)
    else:
        together = False
        paths = period_lists or _lists_there(store, period, root, session, own, adding)
    lists = gather.read_lists(store, period_lists if together else paths, period_id, root)
    if together:
        lists = [one for one in lists if os.path.realpath(one.path) == os.path.realpath(paths[0])]
    return Meant(paths=paths, lists=tuple(lists), root=root, period=period_id, period_lists=paths == period_lists)


def _lists_there(
    store: Store | None, period: AwayPeriod | None, root: str, session: str, own: str, adding: bool
) -> tuple[str, ...]:
    """The lists where nobody named one."""
    if own and (os.path.lexists(own) or (period is not None and adding)):
        return (own,)
    if period is not None and store is not None and not session:
        rows = [row for row in store.sessions(period.since - RECENT) if row.root == root]
        theirs = tuple(path for row in rows if os.path.lexists(path := checkout.own_list_path(root, row.id)))
        if theirs:
            return theirs
    for name in USUAL_LISTS:
        path = f"{root.rstrip('/')}/{name}"
        if os.path.lexists(path):
            return (path,)
    if own and adding:
        return (own,)
    raise UsageError(
        "There is no list of work here",
        do='Name one with --list FILE, or begin one: stopwarden add "what to do" --list TODO.md. '
        'Or use the ledger of this project: stopwarden add "what to do" --ledger',
    )


def _store(context: Context) -> Store | None:
    """The store if there is one. What is wrong with it is said, and the lists are shown all the same."""
    from stopwarden.store import place

    try:
        if not os.path.exists(f"{context.state_dir}/{place.DATABASE}"):
            return None
        return context.open_store()
    except StopwardenError as error:
        context.warn(f"stopwarden: {error} The list is used without what is stored about it.")
        return None


def _period_here(context: Context, store: Store | None, root: str, session: str) -> AwayPeriod | None:
    """The away period that holds for this session, or for this checkout where no session asks."""
    if store is None:
        return None
    now = context.now()
    copy = checkout.copy_key(root, context.state_dir, make=False)
    there = [one for one in store.open_periods() if periods.holds(one, now)]
    mine = periods.covering(there, session=session, copy=copy, root=root, script=False, now=now)
    if mine is not None or session:
        return mine
    return max((one for one in there if one.root == root), key=lambda one: one.since, default=None)


# --- which item -------------------------------------------------------------------------------


def item_meant(meant: Meant, said: str) -> Found:
    """The item that words name: its id, its line as `:12`, or the beginning of its text.

    Raises ListError if a list cannot be read, UsageError where nothing or more than one thing is meant.
    """
    for one in meant.lists:
        if one.unread:
            raise files.unknown(one.unread)
    everything = [Found(one=one, item=item, period=meant.period) for one in meant.lists for item in one.items]
    there = [found for found in everything if found.item.line]
    said = one_line(said)
    if said.startswith(":") and said[1:].isdigit():
        found = [one for one in there if one.item.line == int(said[1:])]
    else:
        found = _by_words(there, said)
    if len(found) == 1:
        return found[0]
    if found:
        names = "; ".join(f"{one.words} ({one.where})" for one in found[:SHOWN_CANDIDATES])
        more = f"; and {len(found) - SHOWN_CANDIDATES} more" if len(found) > SHOWN_CANDIDATES else ""
        raise UsageError(
            f'"{plain(said, 60)}" may mean {names}{more}', kept="Nothing was changed", do="Say which by its id"
        )
    raise _not_found(everything, there, said)


def _by_words(there: Sequence[Found], said: str) -> list[Found]:
    by_id = [one for one in there if one.item.id == said] or [one for one in there if one.item.id == said.lower()]
    if by_id or not said:
        return by_id
    lower = said.lower()
    begun = [one for one in there if one.item.title.lower().startswith(lower)]
    exact = [one for one in begun if one.item.title.lower() == lower]
    for group in (exact, begun):
        unfinished = [one for one in group if one.item.state in UNFINISHED]
        if unfinished or group:
            return unfinished or group
    return []


def _not_found(everything: Sequence[Found], there: Sequence[Found], said: str) -> UsageError:
    quoted = f'"{plain(said, 60)}"'
    vanished = next((one for one in everything if not one.item.line and one.item.id == said), None)
    if vanished is not None:
        return UsageError(f"{vanished.words} was taken off {vanished.one.name}", do="Add it again, if it is to be done")
    if said[:1] == "t" and said[1:].isdigit():
        return UsageError(
            f"{quoted} is a todo of the agent program, on no list here",
            do="The agent keeps those itself, with its todo tool",
        )
    near = [one for one in there if said and said.lower() in one.item.title.lower()][:SHOWN_CANDIDATES]
    if near:
        names = "; ".join(f"{one.words} ({one.where})" for one in near)
        return UsageError(f"No item begins with {quoted}", do=f"Did you mean {names}? Say it by its id")
    names = ", ".join(dict.fromkeys(one.one.name for one in everything)) or "the list"
    return UsageError(f"{quoted} is no item of {names}", do="See the ids: stopwarden list --all")


def keep_ids(store: Store, found: Found) -> None:
    """Lets the list's items keep their ids while nobody is away, since a hold knows its item by its id alone."""
    if not found.period and found.one.snapshot != found.one.stored:
        gather.keep(store, found.one, gather.NOBODY_AWAY)


# --- changing it ------------------------------------------------------------------------------


def mark_item(found: Found, state: ItemState, waits_on: WaitsOn | None = None, why: str = "") -> None:
    """Changes one item in its file. Raises ListError; the file is then as it was."""

    def change(text: str) -> str:
        reading = read(text)
        _, items = identity.track(found.one.snapshot, reading)
        line = next((item.line for item in items if item.id in (found.item.id, bare(found.item.id))), 0)
        if not line:
            raise ListError(f"{found.words} was taken off {found.one.name} just now", kept="Nothing was changed")
        return edits.mark(text, line, state, waits_on, why)

    files.edit(found.one.path, change, found.one.name)


def bare(known: str) -> str:
    """An id without the number of its list before it (`2.a3f`)."""
    return known.rpartition(".")[2]


def state_words(item: Item) -> str:
    """How an item stands, for a person."""
    if item.state == "waiting":
        whom = {"person": "waits for you", "session": "waits for another session"}.get(
            item.waits_on or "person", "waits for something external"
        )
        return f"{whom}: {plain(item.why, 100)}" if item.why else whom
    words = {"doing": "begun", "dropped": "dropped", "removed": "taken off the list", "done": "ticked, not verified"}
    return words.get(item.state, "")


def how_it_stands(one: ReadList) -> str:
    """A list in one line: `TODO.md: 3 open, 1 begun, 1 waits for you, 2 done`."""
    states = [item.state for item in one.items]
    yours = sum(item.state == "waiting" and item.waits_on == "person" for item in one.items)
    parts = [
        count(states.count("open"), "open", "open"),
        f"{states.count('doing')} begun",
        f"{yours} {'waits' if yours == 1 else 'wait'} for you",
        f"{states.count('waiting') - yours} waiting",
        f"{states.count('done')} done",
        f"{states.count('dropped')} dropped",
        f"{states.count('removed')} taken off",
    ]
    return f"{one.name}: " + ", ".join([parts[0], *(part for part in parts[1:] if not part.startswith("0 "))])


def begin(meant: Meant, path: str, context: Context, *, named: bool) -> None:
    """Makes the list where there is none yet: the one named, or the session's own. Raises ListError."""
    if os.path.lexists(path):
        return
    session = context.session
    if session and path == checkout.own_list_path(meant.root, session):
        checkout.make_own_list(meant.root, session)
    elif named:
        files.create(path, "# To do\n", gather.name_of(path, meant.root))
    else:
        raise ListError(f"{path} (it is not there)", kept="Nothing was changed", do="Name another one with --list")


def read_again(one: ReadList) -> ReadList:
    """The list as it stands after a change, to tell of it."""
    reading = read(files.read_list(one.path, one.name).text)
    snapshot, items = identity.track(one.snapshot, reading, one.name)
    return one.replace(snapshot=snapshot, items=items, reading=reading)
