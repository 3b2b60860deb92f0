"""Runs a program that the person named, within limits of time and output.

A verify command and another tracker's program may hang, leave children behind, or print without
end. So each runs in a process group of its own, without input, and the whole group is killed at
the time limit, at too much output, and when the program itself has ended: nothing of it stays.
Killed together with us as well, as far as a signal tells us.

Never on the hook's path. May not live here: what the output means.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from stopwarden.core.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

AFTER_EXIT = 1.0  # seconds in which what a program has printed is still read
_STEP = 0.05  # seconds between looks at a program whose children hold its output open
_PART = 1 << 16
_running: set[subprocess.Popen[bytes]] = set()


class Ran(Record):
    """How it ended. `code` is its exit code, minus a signal, or None if it was killed for a limit or never began."""

    code: int | None
    out: bytes = b""
    err: bytes = b""
    timed_out: bool = False
    too_much: bool = False
    never: str = ""  # why it could not even be started


def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    limit: float,
    keep: int,
    tail: bool = False,
    together: bool = False,
) -> Ran:
    """Runs it to its end, at most `limit` seconds, keeping `keep` bytes of each output.

    With `tail` the last bytes are kept, however much there is; without, more than that ends it
    (`too_much`). `together`: errors go to the output. Raises nothing of the program's making.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if together else subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as failed:
        gone = not os.path.isdir(cwd)
        why = f"{cwd} is not there" if gone else os.strerror(getattr(failed, "errno", 0) or 22).lower()
        return Ran(code=None, never=why)
    _running.add(process)
    with ended_with_us(), contextlib.ExitStack() as opened:
        opened.callback(_end, process)
        pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
        for pipe in pipes:
            opened.enter_context(pipe)
        kept, timed_out, too_much = _read(process, [pipe.fileno() for pipe in pipes], limit, keep, tail)
        _kill(process)
        code = process.wait()
    out, err = kept[0], kept[1] if len(kept) > 1 else b""
    return Ran(code=None if timed_out or too_much else code, out=out, err=err, timed_out=timed_out, too_much=too_much)


def _read(
    process: subprocess.Popen[bytes], pipes: Sequence[int], limit: float, keep: int, tail: bool
) -> tuple[list[bytes], bool, bool]:
    """What each pipe said, and which limit ended it, if one did."""
    until = time.monotonic() + limit
    kept = {pipe: bytearray() for pipe in pipes}
    timed_out = too_much = False
    with selectors.DefaultSelector() as ready:
        for pipe in pipes:
            ready.register(pipe, selectors.EVENT_READ)
        ended_at: float | None = None
        while ready.get_map():
            now = time.monotonic()
            if ended_at is None and process.poll() is not None:
                ended_at = now
            if now >= (until if ended_at is None else min(until, ended_at + AFTER_EXIT)):
                timed_out = ended_at is None
                break
            for key, _ in ready.select(min(_STEP, until - now)):
                part = os.read(key.fd, _PART)
                if not part:
                    ready.unregister(key.fd)
                    continue
                text = kept[key.fd]
                text += part
                if len(text) > keep:
                    if not tail:
                        too_much = True
                    del text[: len(text) - keep]
            if too_much:
                break
    while not timed_out and not too_much and process.poll() is None:  # it closed its output and goes on
        if time.monotonic() >= until:
            timed_out = True
        time.sleep(_STEP)
    return [bytes(kept[pipe]) for pipe in pipes], timed_out, too_much


def _end(process: subprocess.Popen[bytes]) -> None:
    _kill(process)
    process.wait()
    _running.discard(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends its whole group, children that outlived it too."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def ended_with_us() -> Iterator[None]:
    """What runs inside is killed when a signal or an error ends us. In the main thread; elsewhere it does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {one: signal.signal(one, end) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except BaseException:
        for process in tuple(_running):
            _kill(process)
        raise
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
