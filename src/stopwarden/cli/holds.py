"""What the commands on reservations share: which item is meant, who asks, and what is heard first.

An item is one of a list (by its id, its line, or how its text begins), one of the ledger (`w12`) or of
another tracker, or a free name such as `issue-42` that sessions agree on. Who asks is the session whose shell this is,
or the person. Before anything is judged, what hooks left in the spool is taken over in the same
transaction: another session's tools may have renewed its holds there.

May not live here: who may hold what (`core.reservations`), what is written (`work.reservations`),
any sentence about a hold (`cli.hold_words`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from stopwarden.cli import hold_words, lists
from stopwarden.cli.context import SESSION_VARIABLES
from stopwarden.cli.hold_words import called
from stopwarden.core.errors import RefusedError, StoreUnwritableError, UsageError
from stopwarden.core.record import Record
from stopwarden.core.reservations import Denied
from stopwarden.hook import spool
from stopwarden.hook.note import take_all
from stopwarden.report.reading import plain
from stopwarden.work import checkout
from stopwarden.work.reservations import Actor

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from stopwarden.cli.context import Context
    from stopwarden.core.errors import StopwardenError
    from stopwarden.core.events import Reservation
    from stopwarden.core.reservations import Granted
    from stopwarden.store.port import Store

    Act = Callable[..., Granted | Denied]

LEDGER_ID = re.compile(r"w([0-9]{1,15})")
FREE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")
LIKE_AN_ID = re.compile(r"[a-z][2-9][2-9a-z]{1,4}|[0-9]+\.[a-z][2-9][2-9a-z]*|t[0-9]+|w[0-9]+")
ITEM_HELP = "its id, the beginning of its text, its line as :12, an id of the ledger (w12), or any name (issue-42)"


class Target(Record):
    """One item, wherever it stands."""

    item: str
    place: str
    project: str
    title: str = ""
    over: str = ""  # "done" or "dropped", where its list or the ledger says so

    @property
    def words(self) -> str:
        """How to call it in a sentence."""
        return called(self.item, self.title)


class Words(NamedTuple):
    """How `renew` or `release` speaks: its participle, what it did, why it did not."""

    word: str
    said: Callable[[Granted, Target, Context], str]
    refused: Callable[[Denied, Target, Store, Context], StopwardenError]


def add_words(parser: argparse.ArgumentParser) -> None:
    """What `renew` and `release` share: the item or all, the token, the list."""
    parser.add_argument("item", nargs="*", metavar="ITEM", help=ITEM_HELP)
    parser.add_argument("--all", action="store_true", help="everything this session (or you) holds")
    parser.add_argument("--token", type=int, metavar="N", help="only if N is still the number of this hold")
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object, times in UTC")


def meant_by(args: argparse.Namespace, context: Context, store: Store, by: Actor) -> list[Target]:
    """What `renew` or `release` is to be done to: the item named, or with `--all` all that the asker holds."""
    said = " ".join(args.item).strip()
    if args.all == bool(said):
        raise UsageError(
            "Which item" if not said else "An item and --all",
            kept="Nothing was changed",
            do="Name one item, or --all alone; what is held: stopwarden peers",
        )
    if args.all and args.token is not None:
        raise UsageError("A token is of one item", kept="Nothing was changed", do="Name the item instead of --all")
    if said:
        return [own_target(context, store, by, said, args.list)]
    return [target_of(held) for held in own(store, by)]


def carry_out(args: argparse.Namespace, context: Context, act: Act, words: Words) -> int:
    """Renews or releases what is meant, one hold after the other, and says what became of each.

    The exit code is that of the first refusal, 0 if there was none.
    """
    store = context.open_store()
    code, told = 0, []
    try:
        by = asker(context, store)
        targets = meant_by(args, context, store, by)
        for target in targets:
            done = act(
                store,
                target.place,
                target.item,
                by.session,
                context.now,
                token=args.token,
                copy=by.copy,
                state_dir=context.state_dir,
                first=lambda: hear(store, context),
            )
            if isinstance(done, Denied):
                refused = words.refused(done, target, store, context)
                code = code or refused.exit_code
                told.append(hold_words.denied_json(done, target, by, store, context))
                context.warn(f"stopwarden: {refused}")
                continue
            told.append({"v": 1, "done": True, "how": done.how} | hold_words.as_json(done.row, by, context))
            if not args.json:
                context.say(words.said(done, target, context))
        if args.json:
            context.say(json.dumps({"v": 1, words.word: told} if args.all else told[0]))
        elif not targets:
            context.say(f"Nothing is held, so nothing was {words.word}.")
    finally:
        store.close()
    return code


# --- who asks, and for what -------------------------------------------------------------------


def asker(context: Context, store: Store, *, only_looks: bool = False) -> Actor:
    """Who asks, and in which checkout: a session is in the one recorded for it, wherever its shell is now.

    Raises RefusedError for an agent that does not say which session it is: what it held would pass for
    the person's, which never lapses. `only_looks`: nothing is to be held, so it does not matter.
    """
    session = context.session
    if not session and context.inside_agent and not only_looks:
        raise RefusedError(
            "An agent program started this command, and it does not say which session it is",
            kept="Nothing was changed",
            do=f"Set {SESSION_VARIABLES[0]} to the session's id, or type it in a terminal of your own",
        )
    known = store.session(session) if session else None
    root = known.root if known is not None and known.root else checkout.find_root(context.cwd)
    copy = checkout.copy_key(root, context.state_dir)
    return Actor(session=session, root=root, copy=copy, project=checkout.project_key(root))


def target(context: Context, store: Store, by: Actor, said: str, named: str | None) -> Target:
    """The item that words name. Raises UsageError and ListError.

    What looks like an id of a list or of the ledger and is none is refused: a slip of the finger
    must not become a name that nobody else would ever ask for.
    """
    said = said.strip()
    ledger = LEDGER_ID.fullmatch(said)
    if ledger is not None and not named:
        row = store.ledger_item(int(ledger[1]))
        if row is not None and row.project == by.project:
            over = row.state if row.state in ("done", "dropped") else ""
            return Target(item=row.id, place=by.project, project=by.project, title=row.title, over=over)
    if "-" in said and " " not in said and not named:
        tracked = next((one for one in store.tracked_items(by.project) if one.id.lower() == said.lower()), None)
        if tracked is not None:
            over = tracked.state if tracked.state in ("done", "dropped") else ""
            return Target(item=tracked.id, place=by.project, project=by.project, title=tracked.title, over=over)
    try:
        found = lists.item_meant(lists.lists_meant(context, named), said)
    except UsageError as error:
        may_mean_more = "may mean" in error.happened
        if named or may_mean_more or LIKE_AN_ID.fullmatch(said) or not FREE_NAME.fullmatch(said):
            raise _unknown(error, said, named) from error
        return Target(item=said, place=by.project, project=by.project)
    lists.keep_ids(store, found)
    project, place = checkout.place_of_list(found.one.path)
    over = found.item.state if found.item.state in ("done", "dropped") else ""
    bare = found.item.id.rpartition(".")[2]
    return Target(item=bare, place=place, project=project, title=found.item.title, over=over)


def _unknown(error: UsageError, said: str, named: str | None) -> UsageError:
    if named or "may mean" in error.happened or LIKE_AN_ID.fullmatch(said):
        return UsageError(error.happened, kept="Nothing was changed", do=error.do)
    if " " in said or not said:
        return UsageError(error.happened, kept="Nothing was changed", do=f"{error.do}. Or give a name without blanks")
    return UsageError(
        f'"{plain(said, 80)}" is no item here, and no name to reserve',
        kept="Nothing was changed",
        do="A name begins with a letter or digit, then letters, digits and . _ - /, at most 64",
    )


def own_target(context: Context, store: Store, by: Actor, said: str, named: str | None) -> Target:
    """The item that words name, what the asker holds first: it may be off its list by now. Raises as `target`."""
    said = said.strip()
    bare = said.rpartition(".")[2] if LIKE_AN_ID.fullmatch(said) else said
    mine = own(store, by)
    found = [held for held in mine if held.item in (said, bare)] if not named else []
    if not found and not named and said:
        found = [held for held in mine if held.title.lower().startswith(said.lower())]
    if len(found) > 1:
        here = [held for held in found if held.project == by.project]
        found = here if len(here) == 1 else found
    if len(found) > 1:
        which = "; ".join(f"{called(held.item, held.title)} of {_place(held)}" for held in found[:6])
        raise UsageError(
            f'"{plain(said, 60)}" may mean {which}',
            kept="Nothing was changed",
            do="Say which with its list: --list FILE",
        )
    return target_of(found[0]) if found else target(context, store, by, said, named)


def target_of(held: Reservation) -> Target:
    """The item of a hold."""
    return Target(item=held.item, place=held.place, project=held.project, title=held.title)


def refuse_what_is_over(target: Target) -> None:
    """Raises RefusedError for an item that is done or dropped."""
    if target.over:
        raise RefusedError(
            f"{target.words} is {target.over} already",
            kept="Nothing was reserved",
            do="See what is open: stopwarden list",
        )


def own(store: Store, by: Actor) -> list[Reservation]:
    """What the asker holds, live or lapsed; the person's holds are those without a session."""
    if by.session:
        return store.reservations_of(session=by.session)
    return [held for held in store.reservations() if not held.session]


def _place(held: Reservation) -> str:
    return held.place[len(held.project) :].strip() or "this project"


def hear(store: Store, context: Context) -> None:
    """Takes over the spool; call it in the transaction that judges. Raises StoreUnwritableError if that cannot be."""
    try:
        told = spool.facts(store, context.state_dir)
    except OSError as error:
        raise StoreUnwritableError(
            f"What hooks left in {context.state_dir}/spool cannot be read ({error.strerror or type(error).__name__}), "
            "so it cannot be told what other sessions have renewed",
            kept="Nothing was changed",
            do="Make that file readable",
        ) from error
    take_all(store, told, context.state_dir, store.open_periods(), context.zone)
