"""A scripted model on loopback, so that real agent programs run offline.

It answers on 127.0.0.1 alone, four wires at once (see `model_wires`):

    Anthropic   POST /v1/messages, /v1/messages/count_tokens       streamed and plain
    OpenAI      POST /v1/chat/completions, /v1/responses, GET /v1/models
    Gemini      POST /v1beta/models/M:generateContent, :streamGenerateContent, :countTokens

Replies come from a `Script`, or from any function of the request: a scripted agent that reads what
it was told and acts on it. In a test or in `doctor`:

    with ScriptedModel(Script(replies=["done"])) as model:
        ... run an agent with ANTHROPIC_BASE_URL=model.url ...
        seen = model.wait_for(lambda request: request.says("Go on"), seconds=30)

From a shell: `python -m stopwarden.sim.scripted_model --script S.json --log L.jsonl` prints the
port. S.json is {"replies": [R, ...], "queues": [{"match": REGEX, "replies": [R, ...]}, ...],
"side": "ok", "no_side": false}; R is a text or {"text", "tools": [{"name", "input"}], "delay",
"status", "error_type", "headers", "breaks", "stop_reason", "input_tokens", "output_tokens"}.

A request is answered from the first queue whose pattern is found in its body, else from
`replies`; a queue that has run out repeats its last reply when that is plain text, else says
"done". A request that offers no tools (title makers, quota probes) and matches no queue gets
`side`, unless `no_side`. Every request is logged with the time its last byte was answered.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from stopwarden.models.script import Reply, Request, Script, Tool
from stopwarden.sim import model_wires

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Answer = Callable[[Request], Reply | str | Mapping[str, Any]]

__all__ = ["Reply", "Request", "Script", "ScriptedModel", "Tool"]

# path ending: the wire that answers it, in the order they are tried
WIRES = (
    ("/messages", model_wires.anthropic),
    ("/chat/completions", model_wires.openai_chat),
    ("/responses", model_wires.openai_responses),
    ("enerateContent", model_wires.gemini),
)


class ScriptedModel:
    """The server: a context manager that listens while entered. `url` is http://127.0.0.1:PORT.

    `answer` is called for one request at a time. `streaming` is called when the first event of a stream is
    out, and what follows waits until it returns. Leaving ends every open answer at once.
    """

    def __init__(
        self,
        answer: Answer | None = None,
        *,
        log: str | None = None,
        port: int = 0,
        streaming: Callable[[Request], None] | None = None,
    ) -> None:
        self._answer: Answer = answer if answer is not None else Script()
        self.streaming = streaming
        self._log = log
        self._changed = threading.Condition()
        self._choosing = threading.Lock()
        self._requests: list[Request] = []
        self._closing = threading.Event()
        if log is not None:
            open(log, "a", encoding="utf-8").close()
        self._server = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The base address; agents on the OpenAI wire want `url + "/v1"`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[Request]:
        """All requests for a reply so far, in the order they arrived."""
        with self._changed:
            return list(self._requests)

    def wait_for(
        self, wanted: Callable[[Request], bool], seconds: float, *, unless: Callable[[], bool] = lambda: False
    ) -> Request | None:
        """The first request, past or to come, that is wanted; None once the time is over or `unless` holds."""
        until = time.monotonic() + seconds
        begun = 0
        unanswered: list[Request] = []  # looked at before, but what becomes of them may still be what is wanted
        with self._changed:
            while True:
                candidates = unanswered + self._requests[begun:]
                for request in candidates:
                    if wanted(request):
                        return request
                begun = len(self._requests)
                unanswered = [request for request in candidates if request.answered is None]
                left = until - time.monotonic()
                if left <= 0 or unless():
                    return None
                self._changed.wait(min(left, 0.2))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def serve(self) -> None:
        """Listens in this thread until interrupted."""
        try:
            self._server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            self._closing.set()
            self._server.hang_up()
            self._server.server_close()

    def close(self) -> None:
        """Stops listening and ends every answer under way."""
        self._closing.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    def admit(self, path: str, raw: str, arrived: float) -> Request:
        """A request has arrived whole: it is numbered, shown to those who wait, and its reply chosen."""
        try:
            body = json.loads(raw)
        except ValueError:
            body = {"_raw": raw[:2_000]}
        with self._choosing:
            request = Request(n=len(self._requests) + 1, path=path, body=body, raw=raw, arrived=arrived)
            request.reply = Reply.of(self._answer(request))
            with self._changed:
                self._requests.append(request)
                self._changed.notify_all()
        return request

    def finish(self, request: Request) -> None:
        """The last byte of the answer is out, or the connection is gone."""
        with self._changed:
            request.answered = time.time()
            if self._log is not None:
                with open(self._log, "a", encoding="utf-8") as log:
                    log.write(json.dumps(request.as_json()) + "\n")
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Waits before an answer, but not past the server's end."""
        self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    """Knows its open connections, so that leaving never waits for an agent that keeps one alive."""

    daemon_threads = False
    block_on_close = True

    def __init__(self, address: tuple[str, int], model: ScriptedModel) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # an agent that hangs up is everyday; a fault of ours is not
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "scripted"
    # Small writes under Nagle and delayed acknowledgement add 40 ms to some replies (measured).
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_HEAD(self) -> None:
        self._whole({})

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            one = {"id": "scripted", "object": "model", "created": 1, "owned_by": "stopwarden"}
            self._whole({"object": "list", "data": [one]})
        else:
            self._whole({})

    def do_POST(self) -> None:
        arrived = time.time()
        raw = self._read().decode("utf-8", "replace")
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            return self._whole({"input_tokens": 100})
        if path.endswith(":countTokens"):
            return self._whole({"totalTokens": 100})
        wire = next((wire for ending, wire in WIRES if path.endswith(ending)), None)
        if wire is None:
            return self._whole({})
        model = self.server.model
        request = model.admit(self.path, raw, arrived)
        reply = request.reply
        assert reply is not None
        try:
            if reply.delay:
                model.pause(reply.delay)
            if reply.status:
                error = {"type": reply.error_type, "message": reply.text or "scripted error"}
                return self._whole({"type": "error", "error": error}, reply.status, reply.headers)
            body = request.body if isinstance(request.body, dict) else {}
            encoded = wire(body, reply, _new_id, int(time.time()))
            streamed = "stream" in path.rpartition(":")[2] if wire is model_wires.gemini else bool(body.get("stream"))
            if streamed:
                request.broken = not self._stream(encoded, reply.breaks, request)
            else:
                self._whole(encoded.whole)
        except OSError:
            request.broken = True
            self.close_connection = True
        finally:
            model.finish(request)
        return None

    def _read(self) -> bytes:
        if "chunked" in (self.headers.get("transfer-encoding") or ""):
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        return body

    def _whole(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, header in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, header)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _stream(self, encoded: model_wires.Encoded, breaks: int | None, request: Request) -> bool:
        """Whether the whole stream was sent."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, (name, data) in enumerate(encoded.events):
            if number == 1 and self.server.model.streaming is not None:
                self.server.model.streaming(request)
            if breaks is not None and number >= breaks:
                self.close_connection = True
                return False
            text = data if isinstance(data, str) else json.dumps(data)
            event = ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
            self.wfile.write(b"%x\r\n" % len(event) + event + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")
        return True


def _new_id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:24]


def main(argv: Sequence[str] | None = None) -> int:
    """The program: prints its port and serves until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m stopwarden.sim.scripted_model", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--script", required=True, help="the replies, a JSON file")
    parser.add_argument("--log", required=True, help="where each request is appended as a line of JSON")
    parser.add_argument("--port", type=int, default=0, help="default: any free one")
    parser.add_argument("--port-file", help="write the port there as well")
    args = parser.parse_args(argv)
    try:
        with open(args.script, encoding="utf-8") as file:
            script = Script.from_json(json.load(file))
    except (OSError, ValueError, KeyError, TypeError, re.error) as wrong:
        parser.error(f"the script cannot be used: {wrong}")
    model = ScriptedModel(script, log=args.log, port=args.port)
    if args.port_file:
        with open(args.port_file, "w", encoding="utf-8") as file:
            file.write(str(model.port))
    print(model.port, flush=True)
    model.serve()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
