"""The words of a scenario: what the model answers, what the person does and when, how the bridge behaves.

A scenario begins with the person's prompt P1. The model answers by `replies`, in order, then with plain
words. A `Step` waits for its moment, then acts; a model call that a step waits for is held open, after
its first words, until all steps of that moment are done. May not live here: how either side is driven.
"""

from __future__ import annotations

from dataclasses import dataclass

# ---- what the model does with one call


@dataclass(frozen=True)
class Reply:
    """`does`: say, look (a plain tool), todo, shell, agent, message (to the agent), refused (HTTP 400)."""

    does: str = "say"
    times: int = 1  # shell: so many at once
    left: int = 0  # todo: items that are not finished
    done: int = 1  # todo: items that are


SAY = Reply()
LOOK = Reply("look")
SHELL = Reply("shell")
SHELLS = Reply("shell", times=25)
AGENT = Reply("agent")
MESSAGE = Reply("message")
REFUSED = Reply("refused")
ARM = Reply("todo", left=2)
FINISH = Reply("todo", left=0, done=3)


# ---- when

IDLE = 0  # nothing runs; a number n > 0: the n-th model call has begun to stream
HOOK = -1  # the external Stop hook runs


# ---- what the person, or the world, does


@dataclass(frozen=True)
class Ask:
    """A full prompt. `how`: ordinary, retry or continue, as the bridge may vouch.

    `client`: desk, phone (a second client of the session), or nobody (one that the session does not know).
    """

    name: str
    how: str = "ordinary"
    client: str = "desk"


@dataclass(frozen=True)
class Speak:
    """Words for the turn that runs."""

    name: str


@dataclass(frozen=True)
class Remove:
    """A queued prompt is taken out again."""

    name: str


@dataclass(frozen=True)
class Cancel:
    """What runs is cancelled."""


@dataclass(frozen=True)
class Plan:
    """Plan mode is entered."""


@dataclass(frozen=True)
class Ends:
    """All background work of this kind ends: shell or agent."""

    kind: str


@dataclass(frozen=True)
class Release:
    """The bridge says that what `owner` waited for is gone (without any such wait); the answer is a fact."""

    owner: str


@dataclass(frozen=True)
class Move:
    """The session is to stand in another directory (`/cd`), or, with `to` empty, where it stands already."""

    to: str = ""


@dataclass(frozen=True)
class Restart:
    """The agent's program ends and is started again, and the session is loaded."""


Act = Ask | Speak | Remove | Cancel | Plan | Ends | Release | Move | Restart


@dataclass(frozen=True)
class Step:
    """At its moment, one act."""

    when: int
    act: Act


# ---- the bridge, and what is expected


@dataclass(frozen=True)
class Manners:
    """How the bridge answers. `claim`: unknown, silent, malformed, queued. `drain`: unknown, no_hint, malformed, late.

    `late`: the drain after the first tools is answered after its deadline, with words of the person (S1).
    `direct`: the client is an editor that speaks to the agent itself; the shipped agent then knows no owners.
    `forged`: such a client sends an owner's id all the same. `daemon`: the shipped agent stands behind its own
    bridge, as `qwen serve`; whether prompts are admitted is a fact then.
    """

    claim: str = ""
    drain: str = ""
    direct: bool = False
    forged: bool = False
    daemon: bool = False


@dataclass(frozen=True)
class Expect:
    """What must hold on our side, else the command fails: the attempts shown, and how the turns end, in our words."""

    attempts: tuple[int, ...]
    ends: tuple[str, ...]
    calls: int


@dataclass(frozen=True)
class Scenario:
    """One line of the page. `hooks`: the reasons with which the Stop hook blocks, one a stop; empty: it allows.

    `why` tells the reason of a difference; the comparison itself is computed.
    """

    id: str
    told: str
    replies: tuple[Reply, ...]
    expect: Expect
    steps: tuple[Step, ...] = ()
    hooks: tuple[str, ...] | None = None
    bridge: Manners = Manners()
    why: str = ""
    patience: float = 0.4  # seconds of quiet after which nothing more will come

    @property
    def kind(self) -> str:
        """Which running program serves it."""
        if self.bridge.daemon:
            return "daemon"
        return "hooks" if self.hooks is not None else "direct" if self.bridge.direct else "bridge"
