"""A process that permission bits stop, even where tests run as root: it writes to a store and says what came of it.

Run as: lesser_user.py STATE_HOME. Prints the name of the error and its text, or "stored".
"""

from __future__ import annotations

import ctypes
import os
import sys

from stopwarden.core.errors import StopwardenError
from stopwarden.store import place
from stopwarden.store.port import RecordLine
from stopwarden.store.sqlite import open_sqlite


def give_up_privileges() -> None:
    """Drops every capability (Linux), so that root too is an ordinary owner of its files."""
    if os.geteuid() == 0:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        nothing = (ctypes.c_uint32 * 6)()
        if ctypes.CDLL(None, use_errno=True).capset(header, nothing):
            raise OSError(ctypes.get_errno(), "capset")


def main(state_home: str) -> None:
    """Opens the store below this directory and appends a line."""
    give_up_privileges()
    try:
        store = open_sqlite(place.prepare({"XDG_STATE_HOME": state_home}))
        store.append([RecordLine(at=1, kind="line")])
        print("stored")
    except StopwardenError as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
