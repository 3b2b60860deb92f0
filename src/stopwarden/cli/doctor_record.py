"""What `doctor` says of the record: how large it is, what becomes of it, and what was set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.cli import retention
from stopwarden.cli.finding import Finding, ok, warn
from stopwarden.report.reading import count
from stopwarden.store import beside, forgetting
from stopwarden.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from stopwarden.store.port import Store

ROOM = 1.1  # a database may be that much larger than its limit before it is worth a word


def check_record(store: Store, state_dir: str) -> list[Finding]:
    """Nothing is changed. Raises the Store…Error classes."""
    if not isinstance(store, SqliteStore):
        return []
    size, held = forgetting.used(store), retention.limits(store)
    text = f"{retention.in_words(size)}; {retention.limits_in_words(held)}"
    if held.size is not None and size > held.size * ROOM:
        found = [warn("record", f"{text}, but it is larger.", "Run: stopwarden forget")]
    elif store.fact("forgetting", "texts"):
        found = [warn("record", f"{text}; what was forgotten still takes room.", "Run: stopwarden forget")]
    else:
        found = [ok("record", text)]
    aside = beside.set_aside(state_dir)
    if aside:
        bytes_ = retention.in_words(sum(one.size for one in aside))
        files = count(len(aside), "damaged file was", "damaged files were")
        text = f"{files} set aside ({bytes_}); nothing of it is in any report."
        found.append(warn("record", text, "To remove it: stopwarden forget --damaged"))
    return found
