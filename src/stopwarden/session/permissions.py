"""Which tool calls the person is asked about: one row a mode, one column what a call touches.

Silence, a client that is gone and a time-out are a no, never a yes. While the person is away nobody is
asked: the call is refused with words that let the agent find another way, and is kept for the morning.
May not live here: how a person is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast, get_args

from stopwarden.core.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from stopwarden.models.port import Call
    from stopwarden.session.tools.contract import Arguments, Tool

PermissionMode = Literal["plan", "ask", "accept_edits", "full"]
Rule = Literal["yes", "ask", "no"]

# What a call touches (`tools.contract.Touches`): nothing, reads, edits, runs, person.
RULES: Mapping[str, Mapping[str, Rule]] = {
    "plan": {"nothing": "yes", "reads": "yes", "edits": "no", "runs": "no", "person": "yes"},
    "ask": {"nothing": "yes", "reads": "yes", "edits": "ask", "runs": "ask", "person": "yes"},
    "accept_edits": {"nothing": "yes", "reads": "yes", "edits": "yes", "runs": "ask", "person": "yes"},
    "full": {"nothing": "yes", "reads": "yes", "edits": "yes", "runs": "yes", "person": "yes"},
}
PLANNING = (
    "Not run: this is plan mode. Look around, then tell the person your plan; nothing is changed before they agree."
)
DENIED = "Not run: the person said no. Find another way, or ask what they want instead."
ALONE = (
    "Not run: it needs a permission, and nobody is there to give it. It is kept for them. Find a way that needs none, "
    "or mark the item as waiting for the person and take the next one."
)


def mode_of(word: str) -> PermissionMode:
    """Raises SettingError for a word that is no mode."""
    mode = word.replace("-", "_")
    if mode in get_args(PermissionMode):
        return cast("PermissionMode", mode)
    raise SettingError(
        f"There is no mode {word!r}", kept="The mode is as it was", do=f"Use {', '.join(get_args(PermissionMode))}"
    )


class Permissions:
    """The permissions of one session. `ask` answers once, always or no; `alone` says whether nobody is there."""

    def __init__(
        self,
        mode: PermissionMode,
        ask: Callable[[Tool, Call, Arguments], Awaitable[Literal["once", "always", "no"]]],
        alone: Callable[[], bool] = lambda: False,
    ) -> None:
        self.mode: PermissionMode = mode
        self._ask, self._alone = ask, alone
        self._always: set[str] = set()  # tools that were granted for the rest of this session

    async def __call__(self, tool: Tool, call: Call, given: Arguments) -> str:
        """See `tools.box.Permission`."""
        rule = RULES[self.mode][tool.touches]
        if rule == "no":
            return PLANNING
        if rule == "yes" or tool.name in self._always:
            return ""
        if self._alone():
            return ALONE
        answer = await self._ask(tool, call, given)
        if answer == "always":
            self._always.add(tool.name)
        return "" if answer in ("once", "always") else DENIED
