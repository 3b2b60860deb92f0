"""Who may weaken the guard, and how a session is named on the command line.

An agent that could type `stopwarden back` would end the very thing that keeps it working. So what
weakens the guard is refused where an agent program started the command, unless the person said
otherwise in a terminal of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stopwarden.core.bounds import DAY
from stopwarden.core.errors import RefusedError, UsageError
from stopwarden.report.reading import plain, short_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stopwarden.cli.context import Context
    from stopwarden.store.port import SessionRow, Store

RECENT = 1 * DAY  # a session unheard of for longer is taken for closed
ALLOWED = ("agents_may_weaken", "all")  # the fact: "yes" or not
_WHOLE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def only_the_person(context: Context, store: Store | None, act: str) -> None:
    """Lets the act pass unless an agent tries it. `store` None: not even the person's leave counts.

    Raises RefusedError.
    """
    if not context.inside_agent or (store is not None and store.fact(*ALLOWED) == "yes"):
        return
    leave = " To let agents do it, type there: stopwarden on --agents-may-end yes" if store is not None else ""
    raise RefusedError(
        f"Only the person may {act}, and an agent program started this command",
        kept="Nothing was changed",
        do=f"Run it in a terminal of your own.{leave}",
    )


def names(rows: Iterable[SessionRow]) -> dict[str, str]:
    """For each session what to call it: its short id, and its title in quotes where it has one."""
    known = {row.id: row for row in rows}
    short = short_ids(known)
    return {one: f'{short[one]} "{plain(row.title, 40)}"' if row.title else short[one] for one, row in known.items()}


def session_named(said: str, known: Mapping[str, SessionRow]) -> str:
    """The id of the session that `said` names: its id, the beginning of one, or a title.

    A whole id that was never seen is taken at its word. Raises UsageError with those that are known.
    """
    said = said.strip()
    if said in known or _WHOLE_ID.fullmatch(said):
        return said
    begun = [one for one in known if said and one.startswith(said)]
    titled = [one for one, row in known.items() if said and row.title == said]
    found = begun or titled
    if len(found) == 1:
        return found[0]
    shown = names(known[one] for one in found or known)
    which = ", ".join(list(shown.values())[:8])
    if found:
        raise UsageError(f"{said!r} names {len(found)} sessions", do=f"Name one of: {which}")
    raise UsageError(
        f"No session {said!r} is known",
        do=f"Name one of: {which}" if which else "None was heard of yet: start one, or leave --session out",
    )
