"""The native agent under the protocol's own Python client, on real pipes: an editor's view of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
from typing import TYPE_CHECKING, Any

import pytest
from acp import RequestError, helpers
from acp.client import ClientSideConnection
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

from stopwarden.acp.agent import NativeAgent
from stopwarden.models.script import Reply, Tool
from stopwarden.models.scripted import Scripted
from stopwarden.store.transcripts import MemoryTranscripts
from tests.support.native import ARM, FINISH, todos

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Editor:
    """A client that notes what it is told and answers permissions as it was set."""

    def __init__(self, allows: str = "once") -> None:
        self.updates: list[Any] = []
        self.asked: list[str] = []
        self.allows = allows

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append(tool_call.title)
        if self.allows == "raise":
            raise RequestError.internal_error({"details": "the dialog broke"})
        if self.allows == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.allows))

    def on_connect(self, conn: Any) -> None: ...

    def kinds(self) -> list[str]:
        """The updates by kind, repetitions in a row once."""
        kinds: list[str] = []
        for update in self.updates:
            if not kinds or kinds[-1] != update.session_update:
                kinds.append(update.session_update)
        return kinds

    def guard(self) -> list[tuple[str, int]]:
        """The guard's own messages."""
        metas = [update.field_meta or {} for update in self.updates]
        return [(meta["event"], meta["attempt"]) for meta in metas if meta.get("source") == "todo_stop_guard"]


@contextlib.asynccontextmanager
async def connected(
    replies: list[Reply | str], editor: Editor, transcripts: MemoryTranscripts | None = None, mode: Any = "ask"
) -> AsyncIterator[tuple[Any, Scripted]]:
    """A connection of the editor's to an agent that answers on the other end of a real socket."""
    left = list(replies)
    model = Scripted(lambda _: left.pop(0) if left else "Nothing more.")
    agent = NativeAgent(
        lambda: model,
        mode=mode,
        guard="on",
        bridged=False,
        now=lambda: 1_000.0,
        transcripts=transcripts or MemoryTranscripts(),
    )
    served: asyncio.Queue[None] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await agent.serve_on(reader, writer)
        finally:
            writer.close()
            await writer.wait_closed()
            served.put_nowait(None)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    connection = ClientSideConnection(editor, writer, reader)
    try:
        yield connection, model
    finally:
        await connection.close()
        writer.close()
        await writer.wait_closed()
        await served.get()
        server.close()
        await server.wait_closed()


def play(
    story: Callable[[Any, Scripted, Editor], Any], replies: list[Reply | str], **setting: Any
) -> tuple[Any, Editor]:
    """Play a story against a fresh agent."""
    editor = Editor(setting.pop("allows", "once"))

    async def within() -> Any:
        async with asyncio.timeout(20):
            async with connected(replies, editor, **setting) as (connection, model):
                await connection.initialize(protocol_version=1)
                return await story(connection, model, editor)
        return None

    return asyncio.run(within()), editor


def text(said: str) -> list[Any]:
    return [helpers.text_block(said)]


def test_an_editor_sees_the_plan_the_calls_and_the_guard_and_then_the_end(tmp_path: pathlib.Path) -> None:
    async def story(connection: Any, model: Scripted, editor: Editor) -> Any:
        session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        return await connection.prompt(session_id=session.session_id, prompt=text("Do two things."))

    response, editor = play(story, [ARM, "I stop.", FINISH, "All done."])
    assert response.stop_reason == "end_turn"
    assert editor.guard() == [("attempt", 1), ("attempt", 2)]
    plans = [update.entries for update in editor.updates if update.session_update == "plan"]
    assert [[entry.status for entry in plan] for plan in plans] == [["pending"] * 2, ["completed"] * 2]
    said = "".join(
        update.content.text
        for update in editor.updates
        if update.session_update == "agent_message_chunk" and not update.field_meta
    )
    assert said == "I plan.I stop.All is done.All done."


def test_a_call_is_shown_before_it_is_asked_about_and_runs_only_after_a_yes(tmp_path: pathlib.Path) -> None:
    async def story(connection: Any, model: Scripted, editor: Editor) -> bool:
        session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        await connection.prompt(session_id=session.session_id, prompt=text("Write it."))
        return (tmp_path / "x").exists()

    writes = Reply(tools=(Tool("write_file", {"path": "x", "content": "y"}),))
    written, editor = play(story, [writes, "Done."])
    assert written
    assert editor.asked == ["write_file"]
    assert editor.kinds()[:2] == ["tool_call", "tool_call_update"]


@pytest.mark.parametrize("allows", ["no", "cancelled", "raise", "something else"])
def test_anything_but_a_plain_yes_is_a_no(tmp_path: pathlib.Path, allows: str) -> None:
    """A refusal, a closed dialog, a client that fails, an answer that was not offered."""

    async def story(connection: Any, model: Scripted, editor: Editor) -> bool:
        session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        await connection.prompt(session_id=session.session_id, prompt=text("Write it."))
        return (tmp_path / "x").exists()

    writes = Reply(tools=(Tool("write_file", {"path": "x", "content": "y"}),))
    written, editor = play(story, [writes, "Well."], allows=allows)
    assert not written
    assert editor.asked == ["write_file"]


def test_a_second_prompt_in_a_turn_waits_with_an_owner_of_its_own(tmp_path: pathlib.Path) -> None:
    """It is no error, throws nobody out, and goes before any continuation."""

    async def story(connection: Any, model: Scripted, editor: Editor) -> list[str]:
        session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        both = await asyncio.gather(
            connection.prompt(session_id=session.session_id, prompt=text("First.")),
            connection.prompt(session_id=session.session_id, prompt=text("Second.")),
        )
        assert [request.says("Second.") for request in model.seen] == [False, False, True]
        return [one.stop_reason for one in both]

    reasons, editor = play(story, [ARM, "I stop.", "And the second."], mode="full")
    assert reasons == ["end_turn", "end_turn"]
    assert editor.guard() == []


def test_a_cancel_ends_the_turn_as_cancelled_and_the_next_prompt_is_clean(tmp_path: pathlib.Path) -> None:
    async def story(connection: Any, model: Scripted, editor: Editor) -> list[str]:
        session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        turn = asyncio.ensure_future(connection.prompt(session_id=session.session_id, prompt=text("Wait.")))
        while not any(update.session_update == "tool_call" for update in editor.updates):
            await asyncio.sleep(0)
        await connection.cancel(session_id=session.session_id)
        first = await turn
        second = await connection.prompt(session_id=session.session_id, prompt=text("Now?"))
        return [first.stop_reason, second.stop_reason]

    waits = Reply(tools=(Tool("shell", {"command": "sleep 60"}), todos("pending")))
    reasons, _ = play(story, [waits, "Here."], mode="full")
    assert reasons == ["cancelled", "end_turn"]


def test_an_earlier_session_is_listed_and_told_again_from_its_transcript(tmp_path: pathlib.Path) -> None:
    """After the agent's end: the same words, calls and results in the same order, and it goes on."""
    kept = MemoryTranscripts()

    async def first(connection: Any, model: Scripted, editor: Editor) -> str:
        session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        await connection.prompt(session_id=session.session_id, prompt=text("Do two things."))
        return str(session.session_id)

    id, before = play(first, [ARM, FINISH, "All done."], transcripts=kept)

    async def second(connection: Any, model: Scripted, editor: Editor) -> Any:
        listed = await connection.list_sessions(cwd=str(tmp_path))
        assert [one.session_id for one in listed.sessions] == [id]
        await connection.load_session(cwd=str(tmp_path), session_id=id, mcp_servers=[])
        told = [update.session_update for update in editor.updates]
        await connection.prompt(session_id=id, prompt=text("And now?"))
        assert model.seen[-1].says("Do two things.")
        return told

    told, after = play(second, ["Good."], transcripts=kept)
    assert told[0] == "user_message_chunk"
    calls = [update.tool_call_id for update in before.updates if update.session_update == "tool_call"]
    assert [update.tool_call_id for update in after.updates if update.session_update == "tool_call"] == calls


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/new", {"cwd": "relative", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "/no/such/place", "mcpServers": []}, -32602),
        ("session/prompt", {"sessionId": "nobody", "prompt": [{"type": "text", "text": "x"}]}, -32602),
        ("session/prompt", {"sessionId": "SESSION", "prompt": []}, -32602),
        (
            "session/prompt",
            {"sessionId": "SESSION", "prompt": [{"type": "image", "data": "%%", "mimeType": "a/b"}]},
            -32602,
        ),
        ("session/prompt", {"prompt": "no list"}, -32602),
        ("session/set_mode", {"sessionId": "SESSION", "modeId": "wild"}, -32602),
        ("session/load", {"sessionId": "never", "cwd": "/", "mcpServers": []}, -32002),
        ("session/nonsense", {}, -32601),
        ("craft/todoStopGuardQueueReleased", {"sessionId": "SESSION", "promptId": ""}, -32602),
        ("craft/todoStopGuardQueueReleased", {"sessionId": "nobody", "promptId": "p"}, -32602),
    ],
)
def test_bad_requests_get_a_clear_error_and_the_session_stays_usable(
    tmp_path: pathlib.Path, method: str, params: dict[str, Any], code: int
) -> None:
    async def story(connection: Any, model: Scripted, editor: Editor) -> int:
        session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        asked = json.loads(json.dumps(params).replace("SESSION", session.session_id))
        with pytest.raises(RequestError) as refused:
            await connection._conn.send_request(method, asked)
        response = await connection.prompt(session_id=session.session_id, prompt=text("Still there?"))
        assert response.stop_reason == "end_turn"
        return refused.value.code

    found, _ = play(story, ["Yes."])
    assert found == code


def test_a_model_that_refuses_is_an_error_with_its_reason(tmp_path: pathlib.Path) -> None:
    async def story(connection: Any, model: Scripted, editor: Editor) -> str:
        session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        with pytest.raises(RequestError) as refused:
            await connection.prompt(session_id=session.session_id, prompt=text("Hello."))
        await connection.prompt(session_id=session.session_id, prompt=text("Hello again."))
        return str(refused.value)

    said, _ = play(story, [Reply(status=429, text="slow down"), "Hello."])
    assert "429" in said
