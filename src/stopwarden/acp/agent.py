"""The native agent for ACP clients: sessions by id, prompts in, updates out.

Each session tells in its own order: what it tells goes through one queue to the client, and a prompt is
answered after everything that its turn told. A plain client gets the queue of this process (`Prompts`):
a second prompt waits its turn with an owner of its own. A bridge that started us says so on the command line;
then its prompt ids are owners, and it is asked for claims and drains.

May not live here: the order of things; how a session works.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from acp import RequestError
from acp.agent.router import build_agent_router
from acp.core import Connection
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptCapabilities,
    PromptResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionInfo,
    SessionMode,
    SessionModeState,
    SessionNotification,
    SetSessionModeResponse,
    ToolCallUpdate,
)
from acp.stdio import stdio_streams

from stopwarden import __version__
from stopwarden.acp.bridge import RELEASED, Bridge
from stopwarden.acp.content import said_in
from stopwarden.acp.updates import replayed, updates
from stopwarden.core import turn_events as ev
from stopwarden.core.errors import RefusedError, SettingError, StopwardenError
from stopwarden.session.made import make
from stopwarden.session.permissions import RULES, Permissions, mode_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.models.port import Call, Model
    from stopwarden.session.actor import Session
    from stopwarden.session.permissions import PermissionMode
    from stopwarden.session.ports import Told
    from stopwarden.session.prompts import Prompts
    from stopwarden.session.tools.contract import Arguments, Tool
    from stopwarden.store.transcripts import Transcripts

PROTOCOL = 1
PERMISSION_SECONDS = 600.0  # a client that does not answer has said no
STREAM_LIMIT = 50 * 1024 * 1024
STOP_REASONS = {"cancelled": "cancelled", "max_tokens": "max_tokens"}
MODES = {
    "plan": ("Plan", "Looks around and plans; changes nothing"),
    "ask": ("Ask", "Asks before it edits or runs anything"),
    "accept_edits": ("Accept edits", "Edits freely, asks before it runs anything"),
    "full": ("Full", "Asks for nothing"),
}
OPTIONS = [
    PermissionOption(option_id="once", name="Allow", kind="allow_once"),
    PermissionOption(option_id="always", name="Allow for this session", kind="allow_always"),
    PermissionOption(option_id="no", name="Do not", kind="reject_once"),
]


@dataclass
class Open:
    """One open session, and what it has to tell."""

    session: Session
    prompts: Prompts | None
    permissions: Permissions
    outbox: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    sender: asyncio.Task[None] | None = None


class NativeAgent:
    """Answers one client. `bridged`: it is a bridge whose private fields are trusted."""

    def __init__(
        self,
        model: Callable[[], Model],
        *,
        mode: PermissionMode,
        guard: str,
        bridged: bool,
        now: Callable[[], float],
        transcripts: Transcripts,
        outputs: str = "",
    ) -> None:
        self._transcripts, self._outputs = transcripts, outputs
        self._model, self._mode, self._guard, self._bridged, self._now = model, mode, guard, bridged, now
        self._open: dict[str, Open] = {}
        self._connection: Connection | None = None

    async def serve(self) -> None:
        """Serve on standard input and output until the client hangs up; then every session is put away."""
        reader, writer = await stdio_streams(limit=STREAM_LIMIT)
        await self.serve_on(reader, writer)

    async def serve_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The same on any streams."""
        router = build_agent_router(cast("Any", self))

        async def handle(method: str, params: Any, is_notification: bool) -> Any:
            if method == RELEASED:
                return self._released(params)
            return await router(method, params, is_notification)

        self._connection = Connection(handle, writer, reader, listening=False)
        try:
            await self._connection.main_loop()
        finally:
            for one in list(self._open.values()):
                await one.session.close()
                if one.sender is not None:
                    one.sender.cancel()
            await self._connection.close()

    # ---- what clients ask

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """Who we are and what we take."""
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL),
            agent_capabilities=AgentCapabilities(
                load_session=True, prompt_capabilities=PromptCapabilities(image=True, embedded_context=True)
            ),
            agent_info=Implementation(name="stopwarden", version=__version__),
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """Keys come from the environment; there is nothing to log in to."""

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """A session in a directory of this machine."""
        id = str(uuid.uuid4())
        one = self._begin(id, cwd)
        return NewSessionResponse(session_id=id, modes=_modes(one.permissions.mode))

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        """An earlier session: the client is told all of it again, then it is open like a new one."""
        if session_id not in self._open and self._transcripts.conversation(session_id) is None:
            raise RequestError.resource_not_found(session_id)
        one = self._open.get(session_id) or self._begin(session_id, cwd)
        for update in replayed(one.session.conversation):
            one.outbox.put_nowait(update)
        await one.outbox.join()
        return LoadSessionResponse(modes=_modes(one.permissions.mode))

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> ListSessionsResponse:
        """The sessions of a directory, or all, the latest first."""
        rows = self._transcripts.conversations(cwd or "")
        told = [
            SessionInfo(
                session_id=row.id,
                cwd=row.cwd,
                title=row.title or None,
                updated_at=datetime.fromtimestamp(row.updated_at, UTC).isoformat(),
            )
            for row in rows
        ]
        return ListSessionsResponse(sessions=told)

    def _begin(self, id: str, cwd: str) -> Open:
        if not os.path.isabs(cwd) or not os.path.isdir(cwd):
            raise RequestError.invalid_params({"details": f"{cwd!r} is no absolute path of a directory"})
        permissions = Permissions(self._mode, lambda tool, call, given: self._ask(id, tool, call, given))
        try:
            model = self._model()
        except SettingError as failed:
            raise RequestError(-32000, str(failed)) from failed
        session, prompts = make(
            id=id,
            cwd=os.path.realpath(cwd),
            model=model,
            permissions=permissions,
            watcher=lambda told: self._tell(id, told),
            guard=self._guard,
            now=self._now,
            transcripts=self._transcripts,
            outputs=self._outputs,
        )
        one = self._open[id] = Open(session, prompts, permissions)
        if self._bridged:
            assert self._connection is not None
            session.owner, one.prompts = Bridge(self._connection, id), None
        one.sender = asyncio.get_running_loop().create_task(self._send(id, one))
        return one

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Another permission mode; plan mode ends the chain."""
        one = self._known(session_id)
        try:
            one.permissions.mode = mode_of(mode_id)
        except SettingError as failed:
            raise RequestError.invalid_params({"details": str(failed)}) from failed
        one.session.mode_changed(plan=one.permissions.mode == "plan")
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **meta: Any) -> PromptResponse:
        """One prompt, answered when its turn has ended and all it told is on its way."""
        one = self._known(session_id)
        said = said_in(prompt)
        try:
            if one.prompts is not None:
                how = await one.prompts.say(*said)
            else:
                how = await one.session.prompt(
                    str(uuid.uuid4()), said, owner=_owner(session_id, meta), kind=_kind(meta)
                )
        except RefusedError as refused:
            raise RequestError(-32000, str(refused), {"reason": "prompt_queue_full"}) from refused
        except StopwardenError as failed:
            raise RequestError(-32603, str(failed)) from failed
        await one.outbox.join()
        if how == "loop_detected":
            raise RequestError(-32603, "The agent repeated itself and was stopped", {"reason": "LOOP_DETECTED"})
        if how == "error":
            raise RequestError(-32603, one.session.last_error or "The model could not be asked")
        return PromptResponse(stop_reason=cast("Any", STOP_REASONS.get(how, "end_turn")))

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop what runs."""
        one = self._open.get(session_id)
        if one is None:
            return
        if one.prompts is not None:
            await one.prompts.cancel()
        else:
            one.session.cancel()

    def _released(self, params: Any) -> dict[str, bool]:
        session, owner = (params.get("sessionId"), params.get("promptId")) if isinstance(params, dict) else (None, None)
        if not isinstance(session, str) or not isinstance(owner, str) or not session or not owner:
            raise RequestError.invalid_params({"details": "sessionId and promptId are needed"})
        return {"released": self._known(session).session.released(owner)}

    # ---- what we tell and ask

    def _known(self, session: str) -> Open:
        if session not in self._open:
            raise RequestError.invalid_params({"details": f"there is no session {session}"})
        return self._open[session]

    def _tell(self, id: str, told: Told) -> None:
        one = self._open.get(id)
        for update in updates(told) if one is not None else []:
            assert one is not None
            one.outbox.put_nowait(update)

    async def _send(self, id: str, one: Open) -> None:
        """One update after the other; a client that is gone hears no more, and the session goes on."""
        assert self._connection is not None
        while True:
            update = await one.outbox.get()
            try:
                told = SessionNotification(session_id=id, update=update)
                await self._connection.send_notification(
                    "session/update", told.model_dump(mode="json", by_alias=True, exclude_none=True)
                )
            except (ConnectionError, OSError, RequestError):
                pass
            finally:
                one.outbox.task_done()

    async def _ask(self, id: str, tool: Tool, call: Call, given: Arguments) -> Literal["once", "always", "no"]:
        """The client's answer; none in time, or a client that is gone, is a no."""
        assert self._connection is not None
        await self._open[id].outbox.join()  # the client is told of the call before it is asked about it
        update = ToolCallUpdate(
            tool_call_id=call.id, title=tool.name, status="pending", raw_input=given.model_dump(mode="json")
        )
        asked = RequestPermissionRequest(session_id=id, tool_call=update, options=OPTIONS)
        try:
            async with asyncio.timeout(PERMISSION_SECONDS):
                answer = RequestPermissionResponse.model_validate(
                    await self._connection.send_request(
                        "session/request_permission", asked.model_dump(mode="json", by_alias=True, exclude_none=True)
                    )
                )
        except Exception:  # time, a broken connection, an answer that is none: never a yes
            return "no"
        outcome = answer.outcome
        if isinstance(outcome, AllowedOutcome) and outcome.option_id in ("once", "always"):
            return cast("Literal['once', 'always']", outcome.option_id)
        return "no"


def _modes(current: str) -> SessionModeState:
    modes = [SessionMode(id=one, name=MODES[one][0], description=MODES[one][1]) for one in RULES]
    return SessionModeState(current_mode_id=current, available_modes=modes)


def _owner(session: str, meta: dict[str, Any]) -> str | None:
    """The bridge's prompt id, if its invocation context is of this session."""
    told = meta.get("qwen-code/invocation")
    if not isinstance(told, dict) or told.get("version") != 1 or told.get("sessionId") != session:
        return None
    owner = told.get("promptId")
    return owner if isinstance(owner, str) and owner else None


def _kind(meta: dict[str, Any]) -> str:
    """What the bridge vouches for."""
    if meta.get("qwen.daemon.retry") is True:
        return ev.RETRY
    return ev.CONTINUE if meta.get("qwen.daemon.continueLastTurn") is True else ev.ORDINARY
