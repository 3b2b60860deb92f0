"""The scripted model: what agents get on each wire, how replies are chosen, and that it leaves cleanly."""

from __future__ import annotations

import gzip
import http.client
import json
import pathlib
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from stopwarden.sim.scripted_model import Reply, Request, Script, ScriptedModel, Tool

TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}]


def post(model: ScriptedModel, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """One request as an agent makes it; the status and the body as text."""
    connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=10)
    try:
        connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def events(stream: str) -> list[tuple[str, Any]]:
    """The named events of a stream with their data."""
    found = []
    for block in filter(None, stream.split("\n\n")):
        named = dict(line.split(": ", 1) for line in block.splitlines())
        data = named["data"]
        found.append((named.get("event", ""), data if data == "[DONE]" else json.loads(data)))
    return found


def messages(*texts: str) -> dict[str, Any]:
    """An Anthropic request that offers tools: one user message a text."""
    return {"model": "m", "tools": TOOLS, "messages": [{"role": "user", "content": text} for text in texts]}


def test_an_anthropic_reply_with_text_and_a_tool_is_the_same_streamed_and_plain() -> None:
    """The pieces of the stream put together are the plain body: text, tool input, stop reason."""
    reply = Reply(text="I look.", tools=(Tool("Bash", {"command": "ls 'é'"}),))
    with ScriptedModel(Script(replies=[reply, reply])) as model:
        plain = json.loads(post(model, "/v1/messages?beta=true", messages("go"))[1])
        streamed = events(post(model, "/v1/messages", {**messages("go"), "stream": True})[1])
    assert [block["type"] for block in plain["content"]] == ["text", "tool_use"]
    assert plain["content"][1]["input"] == {"command": "ls 'é'"}
    assert plain["stop_reason"] == "tool_use"
    names = [name for name, _ in streamed]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert names == ["message_start", *block, *block, "message_delta", "message_stop"]
    assert all(data["type"] == name for name, data in streamed)
    deltas = [data["delta"] for name, data in streamed if name == "content_block_delta"]
    assert deltas[0]["text"] == "I look."
    assert json.loads(deltas[1]["partial_json"]) == {"command": "ls 'é'"}
    assert streamed[-2][1]["delta"]["stop_reason"] == "tool_use"


def test_a_text_reply_ends_the_turn() -> None:
    """A reply without tools says end_turn, the moment at which a host asks its Stop hooks."""
    with ScriptedModel(Script(replies=["All done."])) as model:
        plain = json.loads(post(model, "/v1/messages", messages("go"))[1])
    assert plain["stop_reason"] == "end_turn"
    assert plain["content"] == [{"type": "text", "text": "All done."}]


def test_the_openai_wires_carry_text_and_tool_calls() -> None:
    """Chat completions and responses give the same call, streamed and plain; a custom tool keeps its raw input."""
    reply = Reply(text="I look.", tools=(Tool("shell", {"cmd": "ls"}),))
    custom = Reply(tools=(Tool("apply_patch", "*** Begin", custom=True),))
    with ScriptedModel(Script(replies=[reply, reply, reply, reply, custom])) as model:
        chat = json.loads(post(model, "/v1/chat/completions", {"tools": TOOLS})[1])
        chunks = events(post(model, "/v1/chat/completions", {"tools": TOOLS, "stream": True})[1])
        answer = json.loads(post(model, "/v1/responses", {"tools": TOOLS})[1])
        parts = events(post(model, "/v1/responses", {"tools": TOOLS, "stream": True})[1])
        patched = json.loads(post(model, "/v1/responses", {"tools": TOOLS})[1])
    call = chat["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("shell", {"cmd": "ls"})
    assert chat["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1][1] == "[DONE]"
    assert any(chunk["choices"] and "tool_calls" in chunk["choices"][0]["delta"] for _, chunk in chunks[:-1])
    assert [item["type"] for item in answer["output"]] == ["message", "function_call"]
    assert parts[-1][1]["response"]["status"] == "completed"
    assert [data["sequence_number"] for _, data in parts] == list(range(len(parts)))
    assert patched["output"][0]["type"] == "custom_tool_call"
    assert patched["output"][0]["input"] == "*** Begin"


def test_the_gemini_wire_streams_by_its_path() -> None:
    """Gemini says in the address, not in the body, whether it wants a stream."""
    reply = Reply(tools=(Tool("run_shell_command", {"command": "ls"}),))
    with ScriptedModel(Script(replies=[reply, reply])) as model:
        plain = json.loads(post(model, "/v1beta/models/m:generateContent", {"tools": TOOLS})[1])
        streamed = events(post(model, "/v1beta/models/m:streamGenerateContent?alt=sse", {"tools": TOOLS})[1])
        counted = json.loads(post(model, "/v1beta/models/m:countTokens", {})[1])
    called = {"functionCall": {"name": "run_shell_command", "args": {"command": "ls"}}}
    assert plain["candidates"][0]["content"]["parts"] == [called]
    assert [data for _, data in streamed] == [plain]
    assert counted == {"totalTokens": 100}


def test_a_queue_answers_what_it_matches_and_the_rest_goes_on_in_order() -> None:
    """Matching queues come first, each with its own place; the main list is not used up by them."""
    script = Script.from_json(
        {"replies": ["one", "two"], "queues": [{"match": "title", "replies": [{"text": "A title"}]}]}
    )
    with ScriptedModel(script) as model:
        said = [
            json.loads(post(model, "/v1/messages", messages(text))[1])["content"][0]["text"]
            for text in ("go", "write a title", "go on", "write a title")
        ]
        queues = [request.queue for request in model.requests]
    assert said == ["one", "A title", "two", "A title"]
    assert queues == ["main", "q0", "main", "q0"]


def test_a_script_that_has_run_out_never_calls_a_tool_again() -> None:
    """Its last text is repeated; a last reply with a tool call becomes "done", or an agent would loop for ever."""
    with ScriptedModel(Script(replies=[{"tools": [{"name": "Bash", "input": {}}]}])) as model:
        replies = [json.loads(post(model, "/v1/messages", messages("go"))[1]) for _ in range(3)]
    assert [reply["stop_reason"] for reply in replies] == ["tool_use", "end_turn", "end_turn"]
    assert replies[2]["content"][0]["text"] == "done"


def test_a_request_that_offers_no_tools_does_not_use_up_the_script() -> None:
    """Title makers and quota probes get the side answer, unless the script says it wants them too."""
    probe = {"messages": [{"role": "user", "content": "quota"}]}
    with ScriptedModel(Script(replies=["first"])) as model:
        assert json.loads(post(model, "/v1/messages", probe)[1])["content"][0]["text"] == "ok"
        assert json.loads(post(model, "/v1/messages", messages("go"))[1])["content"][0]["text"] == "first"
    with ScriptedModel(Script(replies=["first"], no_side=True)) as model:
        assert json.loads(post(model, "/v1/messages", probe)[1])["content"][0]["text"] == "first"


def test_a_function_of_the_request_can_be_the_agent() -> None:
    """It reads what was said since the last reply, and which tools there are."""

    def agent(request: Request) -> str:
        return f"{request.tools} heard {request.news()}"

    body = {**messages("first"), "system": "be brief"}
    body["messages"] += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": [{"text": "second"}]}]
    with ScriptedModel(agent) as model:
        answer = json.loads(post(model, "/v1/messages", body)[1])
        assert model.requests[0].says("be brief")
        assert not model.requests[0].says("third")
    assert answer["content"][0]["text"] == "('Bash',) heard second"


def test_an_error_status_goes_out_with_its_type_and_headers() -> None:
    """A usage limit: the status, the error's type and `retry-after`, as the provider would send them."""
    refusal = {"status": 429, "error_type": "rate_limit_error", "text": "limit", "headers": {"retry-after": "60"}}
    with ScriptedModel(Script.from_json({"replies": [refusal]})) as model:
        connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=10)
        connection.request("POST", "/v1/messages", json.dumps(messages("go")))
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
    assert (answer.status, answer.headers["retry-after"]) == (429, "60")
    assert body["error"] == {"type": "rate_limit_error", "message": "limit"}


def test_a_stream_can_break_in_the_middle() -> None:
    """The connection is cut after so many events, and the log says so."""
    with ScriptedModel(Script(replies=[Reply(text="half", breaks=2)])) as model:
        with pytest.raises(http.client.IncompleteRead):
            post(model, "/v1/messages", {**messages("go"), "stream": True})
        seen = model.wait_for(lambda request: request.answered is not None, 5)
    assert seen is not None
    assert seen.broken


def test_bodies_come_chunked_packed_or_broken() -> None:
    """Chunked and gzip bodies are read; what is no JSON is answered and logged, not a crash."""
    body = json.dumps(messages("packed")).encode()
    with ScriptedModel(Script(replies=["yes"], no_side=True)) as model:
        post(model, "/v1/messages", gzip.compress(body), {"content-encoding": "gzip"})
        half = len(body) // 2
        chunked = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (half, body[:half], len(body) - half, body[half:])
        with socket.create_connection(("127.0.0.1", model.port), timeout=10) as raw:
            raw.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunked)
            assert b"200 OK" in raw.recv(200)
        assert post(model, "/v1/messages", b"{not json")[0] == 200
        requests = model.requests
    assert [request.says("packed") for request in requests] == [True, True, False]
    assert requests[2].body == {"_raw": "{not json"}


def test_waiting_for_a_request_sees_past_and_coming_ones_and_gives_up() -> None:
    """A proof waits for the request that carries the reason, and not longer than it was told."""
    with ScriptedModel(Script(replies=["yes"])) as model:
        post(model, "/v1/messages", messages("early"))
        assert model.wait_for(lambda request: request.says("early"), 0) is not None
        late = threading.Thread(target=post, args=(model, "/v1/messages", messages("late")))
        late.start()
        assert model.wait_for(lambda request: request.says("late"), 10) is not None
        late.join()
        assert model.wait_for(lambda request: request.says("never"), 0) is None
        assert model.wait_for(lambda request: request.says("never"), 60, unless=lambda: True) is None


def test_leaving_ends_a_delayed_answer_and_an_idle_connection_at_once() -> None:
    """Closing never waits for an agent that keeps its connection, nor for a reply that is still held back."""
    idle = socket.create_connection
    with ScriptedModel(Script(replies=[Reply(text="slow", delay=600)])) as model:
        kept = idle(("127.0.0.1", model.port), timeout=10)
        held = threading.Thread(target=_try_post, args=(model, messages("go")))
        held.start()
        assert model.wait_for(lambda request: request.says("go"), 10) is not None
        began = time.monotonic()
    assert time.monotonic() - began < 5
    held.join(5)
    assert not held.is_alive()
    kept.close()


def _try_post(model: ScriptedModel, body: Any) -> None:
    try:
        post(model, "/v1/messages", body)
    except (OSError, http.client.HTTPException):  # cut at the connection, before or within the answer
        pass


def test_the_log_has_one_line_a_request(tmp_path: pathlib.Path) -> None:
    """Number, times, path, the reply and the whole body: what the real nights are judged by."""
    log = tmp_path / "requests.jsonl"
    with ScriptedModel(Script(replies=[Reply(text="a", tools=(Tool("Bash", {"x": 1}),))]), log=str(log)) as model:
        post(model, "/v1/messages", messages("go"))
        assert model.wait_for(lambda request: request.answered is not None, 5) is not None
    line = json.loads(log.read_text(encoding="utf-8"))
    assert (line["n"], line["path"], line["queue"], line["broken"]) == (1, "/v1/messages", "main", False)
    assert line["t_in"] <= line["t_out"]
    assert line["reply"] == {"text": "a", "tools": [{"name": "Bash", "input": {"x": 1}}]}
    assert line["body"]["messages"][0]["content"] == "go"


@pytest.mark.parametrize("wrong", [{"replies": [{"txt": "typo"}]}, {"reply": []}])
def test_a_misspelt_script_is_refused(wrong: dict[str, Any]) -> None:
    """A silent empty reply would make a proof pass or fail for the wrong reason."""
    with pytest.raises(ValueError, match="no "):
        Script.from_json(wrong)


def test_it_runs_as_a_program_and_listens_on_loopback_only(tmp_path: pathlib.Path) -> None:
    """It prints its port, answers there, and ends when it is told to."""
    script, log = tmp_path / "s.json", tmp_path / "l.jsonl"
    script.write_text('{"replies": ["hello"]}', encoding="utf-8")
    command = [sys.executable, "-m", "stopwarden.sim.scripted_model", "--script", str(script), "--log", str(log)]
    source = str(pathlib.Path(__file__).resolve().parents[1] / "src")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": source}) as program:
        try:
            assert program.stdout is not None
            port = int(program.stdout.readline())
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("POST", "/v1/messages", json.dumps(messages("go")))
            assert b"hello" in connection.getresponse().read()
            connection.close()
            listening = pathlib.Path(f"/proc/{program.pid}/net/tcp")
            if listening.exists():
                assert f"0100007F:{port:04X} 00000000:0000 0A" in listening.read_text()
        finally:
            program.terminate()
    assert len(log.read_text(encoding="utf-8").splitlines()) == 1
