"""Our own faults at an event: never silence, never a loop (design §3).

Hosts let an agent stop when a hook fails. So while away holds, a stop that we cannot judge or
record is blocked with a reason that says so, up to three times in a row; then it is allowed.
The count is an append-only file beside the marker, because the database may be what is broken. A
block that cannot be counted would be a loop, so it is not given: then the stop is allowed, and
the person is told. If away does not hold, a fault never blocks.

Runs when anything may be broken: it uses only the operating system and the marker.
"""

from __future__ import annotations

import os

from stopwarden.core.bounds import FAULTS_IN_A_ROW
from stopwarden.core.errors import StopwardenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import AwayPeriod

READ_MAX = 64 * 1024


class Fault:
    """What to answer to a fault at a stop: block it (with a reason), or allow it with a notice."""

    def __init__(self, block: bool, text: str) -> None:
        self.block, self.text = block, text


def named(failed: BaseException) -> str:
    """What failed, without a word of what it was doing it with: another's error may quote a message."""
    if isinstance(failed, StopwardenError):
        return str(failed).rstrip(".")
    if isinstance(failed, OSError) and failed.errno:
        return f"{type(failed).__name__}: {os.strerror(failed.errno)}"
    at, place = failed.__traceback__, ""
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        place = f" at {file[file.rfind('/') + 1 :]}:{at.tb_lineno}"
        at = at.tb_next
    return f"{type(failed).__name__}{place}"


def away_holds(state_dir: str, session: str, cwd: str, now: float) -> bool:
    """Whether the marker says away for this session. What cannot be read counts as away."""
    from stopwarden.store import marker

    try:
        periods = marker.read(state_dir)
    except Exception:
        return True
    return periods is not None and any(_covers(period, session, cwd, now) for period in periods)


def _covers(period: AwayPeriod, session: str, cwd: str, now: float) -> bool:
    if period.until is not None and now >= period.until:
        return False
    if period.scope == "session":
        return not session or period.session == session
    return period.scope == "everywhere" or not cwd or not period.root or f"{cwd}/".startswith(f"{period.root}/")


def at_stop(state_dir: str, session: str, cwd: str, now: float, what: str) -> Fault:
    """The answer to a stop that could not be judged or recorded, counted first."""
    if not away_holds(state_dir, session, cwd, now):
        return Fault(False, f"Stopwarden could not judge this stop ({what}). It was allowed: you are not away.")
    if in_a_row(state_dir, session) >= FAULTS_IN_A_ROW:
        notice = f"Stopwarden failed {FAULTS_IN_A_ROW} times in a row ({what}) and let the session stop."
        return Fault(False, f"{notice} Run: stopwarden doctor")
    if not count(state_dir, session, now, what):
        return Fault(False, f"Stopwarden failed ({what}) and could not even count it, so it let the session stop.")
    return Fault(
        True,
        f"Stopwarden could not judge this stop ({what}), and the person is away. Go on with the work that is owed; "
        "if nothing can be done, schedule a wake within the hour before you stop. Nobody is there to answer.",
    )


def in_a_row(state_dir: str, session: str) -> int:
    """Faults of this session since its last judged stop."""
    row = 0
    for line in _read(state_dir).splitlines():
        words = line.split(" ", 3)
        if len(words) >= 3 and words[1] == _word(session):
            row = row + 1 if words[2] == "fault" else 0
    return row


def count(state_dir: str, session: str, now: float, what: str) -> bool:
    """Adds one fault to the file; False if that cannot be done."""
    return _append(state_dir, f"{int(now)} {_word(session)} fault {' '.join(what.split())[:300]}\n")


def all_is_well(state_dir: str, session: str, now: float) -> None:
    """After a judged stop: the row of faults ends."""
    _append(state_dir, f"{int(now)} {_word(session)} judged\n")


def _word(session: str) -> str:
    """The session's id as one word, or "?"."""
    return "".join(char if (char.isascii() and char.isalnum()) or char in "-_" else "_" for char in session[:80]) or "?"


def _read(state_dir: str) -> str:
    try:
        file = os.open(f"{state_dir}/faults", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        size = os.fstat(file).st_size
        os.lseek(file, max(0, size - READ_MAX), os.SEEK_SET)
        return os.read(file, READ_MAX).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)


def _append(state_dir: str, line: str) -> bool:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(f"{state_dir}/faults", flags, 0o600)
    except OSError:
        return False
    try:
        data = line.encode()
        return os.write(file, data) == len(data)
    except OSError:
        return False
    finally:
        os.close(file)
