"""A program spoken to in JSON-RPC, one message a line, over its standard input and output.

Both sides may ask. Plain lines instead of a protocol library: the agent asks us with method names that
a library for the Agent Client Protocol does not route, and some scenarios must be answered wrongly on
purpose, which a library is made to prevent.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

UNKNOWN_METHOD = -32601


class Refused(Exception):
    """The other side answered with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error.get('code')} {error.get('message')} {json.dumps(error.get('data', {}))[:300]}")
        self.code = error.get("code")


class Peer:
    """The program. `asked(method, params, answer)` is called for each of its requests, in a thread that reads.

    `answer(result)` or `answer(error=(code, message))` may be called at once, later, or never.
    `told(method, params)` is called for its notifications. Leaving ends the program.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        asked: Callable[[str, dict[str, Any], Callable[..., None]], None],
        told: Callable[[str, dict[str, Any]], None],
        errors: Path,
    ) -> None:
        self._asked, self._told = asked, told
        self._writing = threading.Lock()
        self._open: dict[int, Future[Any]] = {}
        self._last = 0
        with open(errors, "wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=dict(env), cwd=cwd
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, method: str, params: Mapping[str, Any]) -> Future[Any]:
        """Sends a request; the future holds its result or raises Refused."""
        future: Future[Any] = Future()
        with self._writing:
            self._last += 1
            number = self._last
            self._open[number] = future
        self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return future

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Sends a notification."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def close(self) -> None:
        """Ends the program: its input first, then by signal."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except OSError:
            pass
        for end in (self.process.terminate, self.process.kill):
            try:
                self.process.wait(2)
                break
            except subprocess.TimeoutExpired:
                end()
        self.process.wait()
        self._reader.join(2)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        with self._writing:
            try:
                self.process.stdin.write(json.dumps(message).encode() + b"\n")
                self.process.stdin.flush()
            except (OSError, ValueError):
                return  # it is gone: whoever waits for an answer sees so

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # a line that is no message is the program's own business
            if "method" not in message:
                self._answered(message)
            elif "id" in message:
                self._asked(message["method"], message.get("params") or {}, self._answer_to(message["id"]))
            else:
                self._told(message["method"], message.get("params") or {})
        for future in list(self._open.values()):
            if not future.done():
                future.set_exception(ConnectionError("the program has ended"))

    def _answered(self, message: Mapping[str, Any]) -> None:
        future = self._open.pop(message.get("id"), None)  # type: ignore[arg-type]
        if future is None:
            return
        if "error" in message:
            future.set_exception(Refused(message["error"]))
        else:
            future.set_result(message.get("result"))

    def _answer_to(self, number: Any) -> Callable[..., None]:
        def answer(result: Any = None, error: tuple[int, str] | None = None) -> None:
            if error is not None:
                self._write({"jsonrpc": "2.0", "id": number, "error": {"code": error[0], "message": error[1]}})
            else:
                self._write({"jsonrpc": "2.0", "id": number, "result": result})

        return answer


def wait_until(true: Callable[[], bool], seconds: float, what: str) -> None:
    """Looks again and again. Raises TimeoutError, naming what did not come."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            raise TimeoutError(f"after {seconds:.0f} s: {what}")
        time.sleep(0.01)
