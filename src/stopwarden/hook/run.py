"""The program that hosts start at every event. It must answer, quickly, whatever happens.

Most of the time nothing is armed, or a tool has just run: then one line of facts is added to the
spool (with nothing armed only of a tool that tells of work or of wakes, or renews a hold) and that
is all, at little more than the cost of starting the interpreter. Nothing but `sys` and `posix` and
four small modules of ours are imported for it; a test holds the list. Only a stop, a prompt, a
refusal or another event that needs an answer while the marker says *away* loads the core and the
database (`hook.local`).

Whatever goes wrong here while nothing is armed ends in silence and exit 0: the host goes on as if
we were not there. While armed it is answered as `hook.fault` says.
"""

from __future__ import annotations

import posix
import sys

from stopwarden.hook.payload import read_payload
from stopwarden.hook.starter import program
from stopwarden.hosts.claude_code_facts import fact, matters_unarmed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PAYLOAD_MAX = 8 * 1024 * 1024  # as core.bounds says; a test holds the two together
SPOOL_UNARMED_MAX = 1024 * 1024
SIGN_UNIT = 10  # as work.reservations says; a test holds the two together
EVENTS = (
    "stop",
    "subagent-stop",
    "stop-failure",
    "session-start",
    "session-end",
    "prompt",
    "pre-tool",
    "permission",
    "post-tool",
    "notification",
    "pre-compact",
    "keep",
)


def env(name: str) -> str:
    """One variable of the environment, "" where it is not set."""
    return posix.environ.get(name.encode(), b"").decode("utf-8", "replace")


def state_dir() -> str:
    """Where this user's state is; the same rule as `store.place.state_dir`."""
    base = env("XDG_STATE_HOME")
    if not base.startswith("/"):
        home = env("HOME")
        if not home.startswith("/"):
            from pwd import getpwuid

            home = getpwuid(posix.geteuid()).pw_dir
        base = home.rstrip("/") + "/.local/state"
    return base.rstrip("/") + "/stopwarden"


def main(argv: Sequence[str] | None = None) -> None:
    """Answers one event and ends the process. Never raises, never returns while armed without an answer."""
    words = list(sys.argv[1:] if argv is None else argv)
    event = words[0] if words else ""
    at = _now(words)
    if event not in EVENTS:
        _say_wrong_use(event)
        posix._exit(2)
    raw = _read_all(0, PAYLOAD_MAX + 1)
    place = state_dir()
    if event == "subagent-stop":
        posix._exit(0)  # a child's stop is never continued by its parent's work
    if _armed(place) and event != "post-tool":
        if event != "keep":
            import gc

            gc.disable()  # this process is gone before a collection would pay, with ten thousand items too
        try:
            from stopwarden.hook import local

            asked = local.Event(event, raw, place, at)
        except BaseException as broken:
            _answer_broken(event, raw, place, at, broken)
        else:
            local.answer(asked)
        posix._exit(0)
    try:
        _spool(event, raw, place, at)
    except BaseException as fault:  # the host's turn must not suffer
        _complain(f"{type(fault).__name__}: {fault}")
    posix._exit(0)


def _answer_broken(event: str, raw: bytes, place: str, at: float, broken: BaseException) -> None:
    """Away, and our own program cannot be loaded (a half-done upgrade): a fault like any other."""
    what = f"Stopwarden itself cannot be loaded: {type(broken).__name__}: {broken}"
    _complain(what)
    if event != "stop":
        return
    from stopwarden import wire
    from stopwarden.hook import fault

    told = fact(event, read_payload(raw, PAYLOAD_MAX)[0], env, at)
    found = fault.at_stop(place, told["s"], str(told.get("cwd", "")), at, what)
    answer = {"decision": "block", "reason": found.text} if found.block else {"systemMessage": found.text}
    posix.write(1, (wire.dumps(answer) + "\n").encode())


def _spool(event: str, raw: bytes, place: str, at: float) -> None:
    """Adds the event's fact as one line, if the state directory exists (`install` makes it)."""
    from stopwarden import wire

    payload, _damaged = read_payload(raw, PAYLOAD_MAX)
    told = fact(event, payload, env, at)
    told["pp"] = program()
    armed = _armed(place)
    if not told["s"] or not (armed or matters_unarmed(told) or _renews(told["s"], place, at)):
        return
    line = (wire.dumps(told) + "\n").encode()
    flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_CLOEXEC
    try:
        spool = posix.open(place + "/spool", flags, 0o600)
    except FileNotFoundError:
        return
    posix.write(spool, line)  # one write of an append-only file: whole lines, whoever else writes
    if not armed and posix.fstat(spool).st_size > SPOOL_UNARMED_MAX:
        posix.rename(place + "/spool", place + "/spool.old")
    posix.close(spool)


def _renews(session: str, place: str, at: float) -> bool:
    """Whether a tool of this session renews something: it has a sign that it holds some item (`work.reservations`).

    The sign's own time is that of the last such line, and its size says how long that is enough.
    """
    if not session.isascii() or not session.replace("-", "").replace("_", "").isalnum():
        return False  # no file's name: it has none, and none is asked for
    path = f"{place}/held/{session}"
    try:
        sign = posix.lstat(path)
        if 0 <= at - sign.st_mtime < SIGN_UNIT * sign.st_size:
            return False
        posix.utime(path, (at, at), follow_symlinks=False)
    except OSError:
        return False
    return True


def _armed(place: str) -> bool:
    """Whether the marker of an away period is there; what cannot be told counts as there."""
    try:
        posix.lstat(place + "/away.json")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _now(words: Sequence[str]) -> float:
    """Seconds UTC: the clock, or `--at SECONDS` (a rehearsal on a virtual clock)."""
    if "--at" in words:
        try:
            seconds = float(words[words.index("--at") + 1])
            if 0 <= seconds < 1e11:
                return seconds
        except (IndexError, ValueError):
            pass
        _complain("--at takes seconds since 1970; the clock is used")
    from time import time

    return time()


def _read_all(stream: int, limit: int) -> bytes:
    """Everything on the stream up to the limit; what comes after is read and dropped, so the host can go on."""
    parts, size = [], 0
    while True:
        try:
            part = posix.read(stream, 1 << 16)
        except OSError:
            break
        if not part:
            break
        if size < limit:
            parts.append(part)
            size += len(part)
    return b"".join(parts)[:limit]


def _say_wrong_use(event: str) -> None:
    _complain(f"no event {event[:60]!r}; one of {', '.join(EVENTS)}")


def _complain(text: str) -> None:
    try:
        posix.write(2, f"stopwarden: {text}\n".encode("utf-8", "replace"))
    except OSError:
        pass


if __name__ == "__main__":
    main()
