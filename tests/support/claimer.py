"""A session as a process of its own: claims, writes under the fence and releases, as it is told line by line.

Run as: claimer.py STATE_DIR SESSION CLOCK GATE [delete]. Orders come as JSON lines on standard input, each
is answered by one JSON line. The clock is the number in the file CLOCK. An order with `"gate": true`
waits, after saying so, for whoever holds the file GATE. An order with `"stop"` stops the process
there with a real SIGSTOP: "before" its transaction, "inside" it before the clock is read, or "writing".
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import sys
from typing import Any

from stopwarden.core.reservations import Claim, Denied, Granted
from stopwarden.store import database
from stopwarden.store.port import RecordLine
from stopwarden.store.sqlite import open_sqlite
from stopwarden.work import reservations

PLACE = "/project/.git"


def ask(session: str, item: str, lease: int = 120, nonce: str = "", **more: Any) -> Claim:
    """A claim of a session in a copy of its own."""
    known = {"place": PLACE, "project": PLACE, "copy": f"copy of {session}", "root": f"/checkout/{session}"}
    return Claim(**{**known, "item": item, "session": session, "lease": lease, "nonce": nonce, **more})


class Claimer:
    """One session."""

    def __init__(self, state_dir: str, session: str, clock: str, gate: str) -> None:
        self.state_dir, self.session, self.clock_file = state_dir, session, clock
        self.gate = os.open(gate, os.O_RDONLY | os.O_CREAT, 0o600)
        self.store = open_sqlite(state_dir, wait=60)
        self.stop = ""

    def now(self) -> int:
        if self.stop == "inside":
            self.freeze()
        with open(self.clock_file, encoding="ascii") as file:
            return int(file.read())

    def freeze(self) -> None:
        self.stop = ""
        os.kill(os.getpid(), signal.SIGSTOP)

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        self.stop = order.get("stop", "")
        if order.get("gate"):
            say({"ready": True})
            fcntl.flock(self.gate, fcntl.LOCK_SH)
            fcntl.flock(self.gate, fcntl.LOCK_UN)
        if self.stop == "before":
            self.freeze()
        told = getattr(self, order["do"])(order)
        if isinstance(told, Granted):
            return {"how": told.how, "token": told.row.token}
        if isinstance(told, Denied):
            return {"why": told.why, "by": [held.session for held in told.by]}
        return {"how": "written"}

    def reserve(self, order: dict[str, Any]) -> Granted | Denied:
        nonce = f"{self.session} {os.getpid()} {random.random()}"
        claim = ask(self.session, order["item"], order.get("lease", 120), nonce)
        return reservations.reserve(self.store, claim, self.now, state_dir=self.state_dir)

    def renew(self, order: dict[str, Any]) -> Granted | Denied:
        return reservations.renew(self.store, PLACE, order["item"], self.session, self.now, lease=order.get("lease"))

    def release(self, order: dict[str, Any]) -> Granted | Denied:
        return reservations.release(self.store, PLACE, order["item"], self.session, self.now, state_dir=self.state_dir)

    def write(self, order: dict[str, Any]) -> Denied | None:
        def change() -> None:
            self.store.append([RecordLine(at=1, kind="work", session=self.session, text=order["text"])])
            if self.stop == "writing":
                self.freeze()

        return reservations.write_fenced(
            self.store, PLACE, order["item"], self.session, self.now, change, token=order.get("token")
        )

    def storm(self, order: dict[str, Any]) -> None:
        """Claims and gives back, one of a few items at a time, until it is killed."""
        chance = random.Random(order["seed"])
        while True:
            item = f"i{chance.randrange(order['items'])}"
            if isinstance(self.reserve({"item": item}), Granted) and chance.random() < 0.7:
                self.release({"item": item})
            os.write(1, b".")


def say(told: dict[str, Any]) -> None:
    os.write(1, json.dumps(told).encode() + b"\n")


def main(state_dir: str, session: str, clock: str, gate: str, journal_mode: str = "wal") -> None:
    if journal_mode == "delete":
        database.WAL_SINCE = (99,)
    claimer = Claimer(state_dir, session, clock, gate)
    say({"ready": True})
    for line in sys.stdin:
        say(claimer.obey(json.loads(line)))


if __name__ == "__main__":
    main(*sys.argv[1:])
