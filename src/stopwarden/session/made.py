"""A session and the queue of its prompts, put together with the tools it has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stopwarden.clock import SystemZone
from stopwarden.core.backlog_events import Restored as Waiting
from stopwarden.core.chain_words import Chain
from stopwarden.core.guard import Guard
from stopwarden.core.turn_state import Session as Machine
from stopwarden.session.actor import Session
from stopwarden.session.agents import Agents, Mail
from stopwarden.session.conversation import Conversation
from stopwarden.session.journal import Journal, Restored, restored
from stopwarden.session.ports import HookSays
from stopwarden.session.prompts import Prompts
from stopwarden.session.schedules import Schedules, made_in
from stopwarden.session.tasks import Background
from stopwarden.session.tools.agents import Agent, SendMessage
from stopwarden.session.tools.background import Monitor, TaskList, TaskOutput, TaskStop
from stopwarden.session.tools.box import Box
from stopwarden.session.tools.contract import Place
from stopwarden.session.tools.files import Edit, Find, Read, Write
from stopwarden.session.tools.schedules import CronCreate, CronDelete, CronList, Wakeup
from stopwarden.session.tools.shell import Shell
from stopwarden.session.tools.todo import Todo
from stopwarden.session.waiting import waiting
from stopwarden.store.transcripts import Conversation as Kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopwarden.models.port import Model
    from stopwarden.session.permissions import Permissions
    from stopwarden.session.ports import Told, Watcher
    from stopwarden.session.tools.contract import Tool
    from stopwarden.store.transcripts import Transcripts

SYSTEM = """You are a coding agent in the directory {cwd}. Work on what the person asks for with your tools.
Read before you edit; run the tests that concern what you changed; say plainly what you did and what you did not.
For work of several steps keep a todo list with todo_write and keep it true: completed means done and tried."""


NOTHING = Waiting()  # that waits
OF_A_CHILD = 6  # of the tools: no background work, no sub-agents


def _unseen(told: Told) -> None:
    """What a sub-agent does is seen in its result."""


class NoHooks:
    """Nobody has hooks here."""

    has_stop = False

    async def stop(self, *, forced: bool, reply: str) -> HookSays:
        """See `ports.Hooks`."""
        return HookSays()


def make(
    *,
    id: str,
    cwd: str,
    model: Model,
    permissions: Permissions,
    watcher: Watcher,
    guard: str,
    now: Callable[[], float],
    transcripts: Transcripts,
    outputs: str = "",
) -> tuple[Session, Prompts]:
    """A session in a directory: a new one, or one that is loaded again from its transcript.

    `guard` is on, off or observe; `now` is seconds; `outputs` is where the output of background work is kept, empty:
    a directory that goes with the session. Nothing that was restored is trusted: the todo list of
    before arms nothing. Raises the Store…Error classes.
    """
    known = transcripts.conversation(id)
    moment = int(now())
    row = known or Kept(id=id, cwd=cwd, created_at=moment, updated_at=moment)
    transcripts.save(row.replace(updated_at=moment, model=model.name, mode=permissions.mode, ended_at=None))
    before = restored(transcripts.lines(id)) if known is not None else Restored(conversation=Conversation())
    journal = Journal(id, transcripts.write)
    journal.known(before.conversation.names)
    prompts = Prompts(id, watcher, now)
    background = Background(f"{outputs}/{id}" if outputs else "")
    place = Place(cwd, background=background)
    own: list[Tool] = [Todo(), Read(), Write(), Edit(), Find(), Shell()]

    def spawn(child: str, mail: Mail) -> Session:
        there = Place(cwd)
        made = Session(
            id=child,
            system=SYSTEM.format(cwd=cwd),
            model=model,
            tools=Box(own[:OF_A_CHILD], there, permissions, _unseen),
            owner=mail,
            hooks=NoHooks(),
            watcher=_unseen,
            now=now,
            machine=Machine(chain=Chain(guard=Guard(switch=guard))),
            shares_model=True,
        )
        there.todos = made.todos_written
        return made

    agents = Agents(background, spawn)
    background.agents = agents
    own += [Monitor(), TaskList(), TaskOutput(), TaskStop(), Agent(agents), SendMessage(agents)]
    schedules = Schedules(now, SystemZone(os.environ), transcripts.write)
    if known is not None:
        schedules.restore(made_in(transcripts.lines(id)))
    background.scheduled, schedules.changed = schedules.tasks, background.changed
    own += [CronCreate(schedules), CronList(schedules), CronDelete(schedules), Wakeup(schedules)]
    tools = Box(own, place, permissions, watcher)
    plan = permissions.mode == "plan"
    session = Session(
        id=id,
        system=SYSTEM.format(cwd=cwd),
        model=model,
        tools=tools,
        owner=prompts,
        hooks=NoHooks(),
        watcher=watcher,
        now=now,
        journal=journal,
        conversation=before.conversation,
        names=before.numbered,
        background=background,
        schedules=schedules,
        kept=lambda: waiting(transcripts.lines(id)),
        machine=Machine(chain=Chain(guard=Guard(switch=guard), plan=plan)),
    )
    prompts.session = background.session = schedules.session = session
    place.todos = session.todos_written
    if known is not None and (schedules.listed() or waiting(transcripts.lines(id)) != NOTHING):
        session.load()
    else:
        schedules.start()
    return session, prompts
