"""A process that writes to the store as fast as it can, and says what the store has acknowledged.

Run as: busy_writer.py STATE_DIR NAME COUNT [delete]. Every transaction appends two lines that
belong together and replaces the writer's state; its number is printed only after it has committed.
"""

from __future__ import annotations

import os
import sys

from stopwarden.store import database
from stopwarden.store.port import RecordLine
from stopwarden.store.sqlite import open_sqlite


def main(state_dir: str, name: str, count: int, journal_mode: str = "wal") -> None:
    """Writes `count` numbered transactions; 0 means until killed."""
    if journal_mode == "delete":
        database.WAL_SINCE = (99,)
    database.LOG_PAGES = 20
    store = open_sqlite(state_dir, wait=60)
    number = store.state(name).revision
    while not count or number < count:
        number += 1
        with store.transaction():
            state = store.state(name)
            store.append(
                RecordLine(at=number, kind=half, session=name, text=f"{half} {number} " + "x" * 300)
                for half in ("first", "second")
            )
            store.save_state(state.replace(blocks=number), expected_revision=state.revision)
        os.write(1, b"%d\n" % number)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
