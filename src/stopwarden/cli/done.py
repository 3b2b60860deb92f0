"""`stopwarden done`: ticks an item; one with a verify command only when the command passes.

This is the one place where a verify command runs. It runs outside any transaction, for as long as
it takes up to the time limit; what was asked before is asked again when its result is written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stopwarden.cli import fenced, holds, ledger, lists, verify
from stopwarden.cli.ledger_view import item_json
from stopwarden.cli.person import only_the_person
from stopwarden.cli.times import duration
from stopwarden.core.errors import RefusedError, UsageError
from stopwarden.core.reservations import Denied
from stopwarden.report.moments import length
from stopwarden.work import ledger as acts
from stopwarden.work import reservations
from stopwarden.work.titles import one_line

if TYPE_CHECKING:
    import argparse

    from stopwarden.cli.context import Context
    from stopwarden.cli.verify import Outcome
    from stopwarden.store.port import LedgerItem, TrackedItem
    from stopwarden.work.gather import ReadList

ITEM_HELP = "w12 in the ledger; or on the list its id, the beginning of its text, or its line as :12"


def configure(parser: argparse.ArgumentParser) -> None:
    """The words of `done`."""
    parser.add_argument("item", nargs="+", metavar="ITEM", help=ITEM_HELP)
    parser.add_argument("--token", type=int, metavar="N", help="only if this is still the token of the hold")
    parser.add_argument(
        "--timeout", metavar="10m", help=f"for the verify command (1m to 6h; without it {length(verify.LIMIT)})"
    )
    parser.add_argument("--unverified", action="store_true", help="done on your word, the command is not run")
    parser.add_argument("--yes", action="store_true", help="run a command that a session wrote without asking you")
    lists.add_list_option(parser)
    parser.add_argument("--json", action="store_true", help="the answer as one JSON object")
    parser.epilog = (
        "examples:\n  stopwarden done a3f\n  stopwarden done write the lexer\n  stopwarden done :12 --list TODO.md\n"
        "  stopwarden done w3 --timeout 30m\n\n"
        "An item of the ledger with a verify command is done when the command ends with exit code 0. A session's hold\n"
        "must outlast the command: renew it first, or lease longer.\n"
        "exit codes: 0 done (or it was already); 1 the command failed, the item stays as it was; 2 nothing, or more\n"
        "than one thing, is meant, or the hold ran out; 3 held by another; 4 it cannot be read or written"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Finishes the one item that is meant."""
    limit = duration(args.timeout) if args.timeout else verify.LIMIT
    if limit > verify.LONGEST:
        raise UsageError(
            f"A command of more than {length(verify.LONGEST)} is not waited for",
            kept="Nothing was changed",
            do="Give a shorter --timeout",
        )
    number = ledger.ledger_number(args)
    if number is not None:
        return _in_ledger(args, context, number, limit)
    tracked = ledger.tracked_meant(context, args)
    if tracked is not None:
        return _tracked(args, context, tracked)
    return _on_list(args, context)


def _on_list(args: argparse.Namespace, context: Context) -> int:
    meant = lists.lists_meant(context, args.list)
    found = lists.item_meant(meant, " ".join(args.item))
    already = found.item.state == "done"
    if not already:
        with fenced.writing(args, context, found, token=args.token, ends=True):
            lists.mark_item(found, "done")
    one = lists.read_again(found.one)
    if args.json:
        context.say(json.dumps({"id": found.item.id, "title": found.item.title, "path": one.path, "already": already}))
        return 0
    context.say(f"{'Was done already' if already else 'Done'}: {found.words} ({found.where})")
    below = _left_below(one, found.item.line)
    if below:
        context.say(f"Still open below it: {below}")
    context.say(lists.how_it_stands(one))
    return 0


def _left_below(one: ReadList, line: int) -> str:
    """What is unfinished below an item, named."""
    if one.reading is None or line not in one.reading.lines:
        return ""
    reading = one.reading
    inside = {reading.lines.index(line)}
    left = []
    for index, parent in enumerate(reading.parents):
        if parent in inside:
            inside.add(index)
            if reading.states[index] in lists.UNFINISHED:
                left.append(f'"{reading.titles[index]}"')
    return ", ".join(left[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")


# --- in the ledger --------------------------------------------------------------------------------


def _in_ledger(args: argparse.Namespace, context: Context, number: int, limit: int) -> int:
    with ledger.opened(context) as (store, by):
        told = acts.may_finish(
            store, by, number, context.now, token=args.token, first=lambda: holds.hear(store, context)
        )
        if isinstance(told, Denied):
            raise ledger.refusal(told, acts.item_of(store, by.project, number), args, context, store)
        item = told
        if item.state == "done":
            return _say_done(args, context, item, None, already=True)
        if item.verify and args.unverified:
            only_the_person(context, store, f"finish {item.id} without its verify command")
        root = ledger.verify_root(context, by)
        run_it = bool(item.verify) and not args.unverified
        if run_it:
            _refuse_within_itself(context, item)
            _let_the_person_see(args, context, item)
    outcome = None  # the store is closed meanwhile: the command may take an hour
    if run_it:
        if not args.json:
            context.say(f"Runs in {root}, at most {length(limit)}: {one_line(item.verify)}")
            context.out.flush()
        outcome = verify.verify(item.verify, item=item.id, root=root, env=context.env, limit=limit)
    ran = None if outcome is None else acts.Passed() if outcome.passed else acts.Failed(digest=outcome.digest)
    with ledger.opened(context) as (store, by):
        ended = acts.finish(
            store, by, number, context.now, token=args.token, ran=ran, first=lambda: holds.hear(store, context)
        )
        if isinstance(ended, Denied):
            if outcome is not None and not args.json:
                context.say(f"The command {'passed' if outcome.passed else f'failed ({outcome.how})'}.")
            raise ledger.refusal(ended, item, args, context, store)
        ledger.settle(store, context, [ended.released])
    if outcome is not None and not outcome.passed:
        return _say_failed(args, context, item, outcome)
    return _say_done(args, context, ended.item, outcome, already=False)


def _refuse_within_itself(context: Context, item: LedgerItem) -> None:
    """A verify command that finishes its own item would run itself for ever."""
    if context.env.get(verify.VERIFYING):
        raise RefusedError(
            f"The verify command of {context.env[verify.VERIFYING]} would verify {item.id} from within",
            kept="Nothing was changed",
            do="Take `stopwarden done` out of that command",
        )


def _let_the_person_see(args: argparse.Namespace, context: Context, item: LedgerItem) -> None:
    """A session wrote the command; at the person's terminal it would run with more than the session may do."""
    if context.inside_agent or not item.created_by or args.yes:
        return
    context.say(f"A session wrote this command: {one_line(item.verify, acts.VERIFY_MAX)}")
    answer = context.ask("Run it here? [y/N] ")
    if answer is None or answer.lower() not in ("y", "yes"):
        raise RefusedError(
            "The command was not run", kept="Nothing was changed", do="Run it with --yes, or finish with --unverified"
        )


def _say_failed(args: argparse.Namespace, context: Context, item: LedgerItem, outcome: Outcome) -> int:
    again = item.failure == outcome.digest
    if args.json:
        told = {"done": False, "how": outcome.how, "output": outcome.tail, "same_failure": again}
        context.say(json.dumps({**item_json(item), **told}))
        return 1
    if outcome.tail:
        context.say("\n".join(f"  | {line}" for line in outcome.tail.splitlines()))
    context.say(f"Not done: {ledger.words(item)}, its command failed ({outcome.how}). It stays {item.state}.")
    if again:
        context.say(
            "It failed the same way twice. Change something before it is run again, or mark it waiting: "
            f'stopwarden wait {item.id} --for person --why "…"'
        )
    return 1


def _say_done(
    args: argparse.Namespace, context: Context, item: LedgerItem, outcome: Outcome | None, *, already: bool
) -> int:
    if args.json:
        context.say(json.dumps({**item_json(item), "done": True, "already": already}))
        return 0
    how = ", verified" if outcome is not None else ", not verified" if item.verify and not item.verified_at else ""
    context.say(f"{'Was done already' if already else 'Done'}{how}: {ledger.words(item)}")
    return 0


# --- of another tracker ---------------------------------------------------------------------------


def _tracked(args: argparse.Namespace, context: Context, item: TrackedItem) -> int:
    """Ends this session's hold as finished; the tracker itself is never written."""
    with ledger.opened(context) as (store, by):
        told = reservations.release(
            store,
            by.project,
            item.id,
            by.session,
            context.now,
            done=True,
            token=args.token,
            state_dir=context.state_dir,
            first=lambda: holds.hear(store, context),
        )
        if isinstance(told, Denied):
            raise ledger.refusal(told, item, args, context, store)
    if args.json:
        context.say(json.dumps({"id": item.id, "title": item.title, "tracker": item.tracker, "done": True}))
        return 0
    context.say(f'Done here: {item.id} "{item.title}". {item.tracker} still has it open: close it there.')
    return 0
