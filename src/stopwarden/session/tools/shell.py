"""Commands: in the foreground, with a limit of time and of output, in a process group of their own.

A command that is cut short takes all it started with it. May not live here: background work (`session/tasks`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

from pydantic import Field

from stopwarden.session.tools.background import begun
from stopwarden.session.tools.contract import Arguments, Outcome, Touches, plain, shortened

if TYPE_CHECKING:
    from stopwarden.session.tools.contract import Place

SECONDS, SECONDS_MAX = 120, 600
KEPT_MAX = 1024 * 1024  # bytes of output that are kept, half from the beginning, half from the end
GRACE = 2.0  # seconds between the polite end and the certain one


class ShellArguments(Arguments):
    """A command and how long it may take."""

    command: str = Field(min_length=1)
    seconds: int = Field(default=SECONDS, ge=1, le=SECONDS_MAX)
    background: bool = False


class Shell:
    """Runs a command."""

    name = "shell"
    description = (
        "Run a command in the checkout and wait for it. Its output and exit code are told. "
        "With background it goes on while you work, without a limit of time, and you are told when it ends."
    )
    touches: Touches = "runs"
    takes = ShellArguments

    async def run(self, given: ShellArguments, place: Place) -> Outcome:
        """Output, exit code, and whether time ran out; of one in the background, its task."""
        if given.background:
            return await begun(place, given.command, "shell")
        try:
            program = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", given.command),
                cwd=place.cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as failed:
            return Outcome(text=f"The command could not be started: {failed.strerror}.", failed=True)
        kept = Kept()
        late = False
        try:
            async with asyncio.timeout(given.seconds):
                await kept.read(program)
                await program.wait()
        except TimeoutError:
            late = True
        finally:
            await end_group(program)
        text = shortened(plain(kept.data))
        if late:
            return Outcome(text=f"{text}\n[ended after {given.seconds} s: time ran out]", failed=True)
        code = program.returncode or 0
        return Outcome(text=f"{text}\n[exit code {code}]" if code else text or "[no output]", failed=code != 0)


class Kept:
    """Output of any length in bounded memory: the beginning and the end."""

    def __init__(self) -> None:
        self._head, self._tail, self._gone = bytearray(), bytearray(), 0

    async def read(self, program: asyncio.subprocess.Process) -> None:
        """Read to the end of the output."""
        assert program.stdout is not None
        while piece := await program.stdout.read(65_536):
            self.take(piece)

    def take(self, piece: bytes) -> None:
        """The next piece of output."""
        room = KEPT_MAX // 2 - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:] if room > 0 else piece
        over = len(self._tail) - KEPT_MAX // 2
        if over > 0:
            del self._tail[:over]
            self._gone += over

    @property
    def size(self) -> int:
        """How many bytes there were."""
        return len(self._head) + len(self._tail) + self._gone

    @property
    def tail(self) -> bytes:
        """The end of an output that is longer than its beginning."""
        return bytes(self._tail)

    @property
    def data(self) -> bytes:
        """What is kept, and how much is not."""
        between = f"\n[... {self._gone} bytes left out ...]\n".encode() if self._gone else b""
        return bytes(self._head) + between + bytes(self._tail)


async def end_group(program: asyncio.subprocess.Process) -> None:
    """End what still runs of a program and all it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(GRACE):
            await program.wait()
    except TimeoutError:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    await program.wait()
