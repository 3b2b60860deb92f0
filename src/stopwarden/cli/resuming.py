"""The resume command of `watch`: when it may run, that it was seen to work, and how often.

Theory of operation. A session whose program is gone can go on under the same id (`claude -p
--resume ID`). Two programs on one conversation would spoil it, so a session is resumed only where
no program of it can be open: its end was heard, or no agent program works in its checkout at all.
What cannot be known counts as open. There is one owner of a session's recovery: while its keeper
lives, the command does not run; nor for a session that is off, observed or cancelled.

A command is *proven* for a host once an event of the very session it resumed was heard within two
minutes; that is stored with the command's digest. A command that is not proven may try once.

One resume an episode of a stall, with a back-off between them, counted under the person's
ceilings like the keeper's wakes. May not live here: which sessions have stalled.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Protocol

from stopwarden.cli import surroundings
from stopwarden.cli.context import AGENT_VARIABLES
from stopwarden.core.bounds import HOUR, KEEPER_BACKOFF
from stopwarden.core.digest import digest
from stopwarden.core.errors import StaleVerdictError, UsageError
from stopwarden.core.record import Record
from stopwarden.hook import declared, terms
from stopwarden.hosts import claude_code
from stopwarden.hosts.claude_code_facts import KEPT_LOOK
from stopwarden.store.port import RecordLine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stopwarden.cli.context import Context
    from stopwarden.core.events import Instant
    from stopwarden.report.state import Known
    from stopwarden.store.port import Store

SEEN_WITHIN = 120  # seconds in which an event of the resumed session proves the command
TRIED = "resume_tried"  # fact (TRIED, digest): a command that is not proven was tried then
RESUMED = "resumed"  # fact (RESUMED, session): the episode it was resumed for last
COUNT = "resumes"  # fact (COUNT, session): how often lately, and when last
SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")

PROMPTS = {
    "declared_look": "next look is due; look again, and go on with the list of work.",
    "missed_look": "next look is overdue; look again, and go on with the list of work.",
    "error": "last turn ended in an error; go on with the list of work.",
    "closed": "program ended with work owed; go on with the list of work.",
    "prove": "program was resumed to see whether that works. Answer with one word and stop.",
}
OTHERWISE = "session was idle with work owed; go on with the list of work."


class Process(Protocol):
    """A program that was started."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...


class Command(Record):
    """A resume command, taken apart into words; `{session}` and `{prompt}` are filled in after that."""

    words: tuple[str, ...]

    @property
    def digest(self) -> str:
        """By which a proof knows it."""
        return digest("\0".join(self.words), 12)

    def filled(self, session: str, kind: str) -> list[str]:
        """Its words for one session. No shell reads them."""
        fields = {"{session}": session, "{prompt}": prompt_of(kind)}
        return [re.sub(r"\{session\}|\{prompt\}", lambda found: fields[found[0]], word) for word in self.words]


def command_of(text: str) -> Command:
    """The command that the person gave. Raises UsageError."""
    right = "For instance: --resume 'claude -p --resume {session} {prompt}'"
    try:
        words = shlex.split(text)
    except ValueError as wrong:
        raise UsageError(f"--resume {text!r} cannot be taken apart into words: {wrong}", do=right) from None
    if not any("{session}" in word for word in words[1:]):
        raise UsageError("--resume does not say which session: it names no {session}", do=right)
    return Command(words=tuple(words))


def prompt_of(kind: str) -> str:
    """What the resumed session is told. It begins as the keeper's line does, so it is known as no person's."""
    return KEPT_LOOK + PROMPTS.get(kind, OTHERWISE)


def start(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Process:
    """Starts a program in a session of its own: Ctrl-C here does not end it. Its output is nobody's."""
    return subprocess.Popen(
        list(argv),
        cwd=cwd,
        env={name: value for name, value in env.items() if name not in (*AGENT_VARIABLES, "CLAUDE_CODE_ENTRYPOINT")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def why_not(known: Known, context: Context, running: Process | None) -> str:
    """Why this session may not be resumed now; "" if it may."""
    row = known.row
    if not SAFE_ID.fullmatch(row.id):
        return "its id is none that a command may be given"
    if running is not None and running.poll() is None:
        return f"it was resumed already (process {running.pid})"
    if known.mode != "on":
        return "its stops are not judged"
    if known.state.cancelled:
        return "you cancelled it"
    if known.kept:
        return "its keeper wakes it"
    if not row.root or not os.path.isdir(row.root):
        return "its checkout is gone"
    if row.ended_at is not None and row.last_event_at <= row.ended_at:
        return ""
    if not os.path.isdir(os.path.join(context.system, "proc")):
        return "it is not known whether its program is still open"
    if surroundings.agents(row.root, context.system):
        return "its program may still be open, and a second one beside it would spoil the conversation"
    return ""


def take(store: Store, known: Known, kind: str, episode: str, now: Instant) -> str:
    """Takes the resume in one transaction that checks everything again. "", or why it was not taken."""
    session = known.row.id
    with store.transaction():
        row = store.session(session)
        if row is None or row.last_event_at != known.row.last_event_at:
            return "it was heard of just now"
        period = terms.period_of(row, store.open_periods(), now)
        if period is None:
            return "you are not away for it any more"
        if store.fact(RESUMED, session) == f"{kind} {episode}":
            return "it was resumed for that already"
        count, last = _lately(store, session, now)
        wait = KEEPER_BACKOFF[min(count, len(KEEPER_BACKOFF)) - 1] if count else 0
        if now < last + wait:
            return "it was resumed a moment ago"
        state, policy = store.state(session), terms.policy_of(store, period)
        this_hour = tuple(then for then in state.recent_blocks if now - HOUR < then <= now)
        if len(this_hour) >= policy.blocks_an_hour or state.period_blocks >= policy.blocks_a_period:
            return "it was sent on as often as you allowed"
        counted = state.replace(recent_blocks=(*this_hour, now), period_blocks=state.period_blocks + 1)
        try:
            store.save_state(counted, expected_revision=state.revision)
        except StaleVerdictError:  # pragma: no cover - inside a transaction nobody else writes
            return "it was heard of just now"
        store.save_fact(RESUMED, session, f"{kind} {episode}")
        store.save_fact(COUNT, session, f"{count + 1} {now}")
        store.append(
            [RecordLine(at=now, kind="watch_resumed", session=session, period=period.id, text=f"{kind}; {episode}")]
        )
    return ""


def prove(
    store_of: Callable[[], Store], heard: Callable[[Store], object], command: Command, known: Known, context: Context
) -> bool:
    """Waits, two minutes at most, until an event of the session is heard; that proves the command, and is stored."""
    session, before = known.row.id, known.row.last_event_at
    until = context.now() + SEEN_WITHIN
    while True:
        store = store_of()
        try:
            heard(store)
            row = store.session(session)
            if row is not None and row.last_event_at > before:
                store.save_fact(declared.PROVEN, row.host, f"{command.digest} {context.now()}")
                return True
            if context.now() >= until:
                store.save_fact(TRIED, command.digest, str(context.now()))
                return False
        finally:
            store.close()
        context.sleep(2)


def stays_a_script(known: Known) -> bool:
    """Whether what `-p` resumes would not be held by the away period that covers the session now."""
    period = known.period
    return (
        period is not None
        and period.scope != "session"
        and not period.also_scripts
        and (not claude_code.is_script(known.row.entrypoint))
    )


def _lately(store: Store, session: str, now: Instant) -> tuple[int, Instant]:
    """How often it was resumed within the hours just past, and when last."""
    count, _, last = store.fact(COUNT, session).partition(" ")
    if not (count.isdigit() and last.isdigit()) or now - int(last) > 2 * HOUR:
        return 0, 0
    return int(count), int(last)
