"""Two sessions of the real agent program in two terminals, one repository, one list, one night."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from stopwarden.sim.scripted_model import Reply
from tests.real_host.harness import REASON, parts
from tests.real_host.workers import bash

if TYPE_CHECKING:
    from stopwarden.sim.scripted_model import Request
    from tests.real_host.conftest import Furnish

pytestmark = [pytest.mark.real_host, pytest.mark.slow]

TITLES = ("write the lexer", "write the parser", "write the printer", "write the docs", "write the news")
TODO = "# Tonight\n\n" + "".join(f"- [ ] {title}\n" for title in TITLES)
FIRST, SECOND = "you are the first", "you are the second"
NAMED = re.compile(r"Go on: item (\S+) of TODO\.md")


class Peer:
    """An agent that does what it reads: reserves the item it is told, does it if it got it, else says so and stops."""

    def __init__(self) -> None:
        self._item: dict[bool, str] = {}  # what each of the two was told last

    def __call__(self, request: Request) -> Reply:
        if not request.tools:
            return Reply(text="ok")
        for part in reversed(parts(request)):
            if part.is_result:
                return self._after(part.text, self._item[request.says(SECOND)])
            if REASON in part.text:
                found = NAMED.search(part.text.partition(REASON)[2])
                item = self._item[request.says(SECOND)] = found[1] if found else ""
                if not item:
                    return Reply(text="Nothing is left for me.")
                return Reply(text="Mine?", tools=(bash(f"stopwarden reserve {item}"),))
            if "Work through TODO.md" in part.text:
                return Reply(text="All done.")
        return Reply(text="ok")

    def _after(self, result: str, item: str) -> Reply:
        if "Reserved" in result:
            return Reply(text="It is mine: I do it.", delay=1.5, tools=(bash(f"stopwarden done {item}"),))
        if "Done:" in result:
            return Reply(text="That one is done.")
        return Reply(text="Another has it; I take the next.")


@pytest.mark.case("BR-135", "BR-138")
def test_two_sessions_share_one_list_and_do_every_item_once(furnish: Furnish) -> None:
    """Both are told to reserve first; no item is granted twice, both work, and the night ends when all is done."""
    night = furnish(Peer(), allow=("Bash(stopwarden:*)",))
    night.todo.write_text(TODO)
    night.install()
    night.leave_for("2h", "--until-done")
    for who in (FIRST, SECOND):
        night.start()
        night.type(f"Work through TODO.md, {who}")
    night.wait_until("the night is over", lambda: bool(night.lines("period_ended")), 90)

    grants = night.lines("reserved")
    assert sorted(line.text for line in grants) == sorted(TITLES), night.account()
    assert len({line.session for line in grants}) == 2, "both worked"
    assert night.todo.read_text().count("- [x]") == len(TITLES)
    assert any("Other sessions work from the same list" in reason for reason in night.reasons())
    assert [line.text for line in night.lines("period_ended")] == ["done"]
    for row in night.sessions():
        program = os.readlink(f"/proc/{row.program}/exe")
        assert (os.path.basename(program), row.program_seen) == ("claude", 2), (
            "known by the process that starts our hooks"
        )
    assert "Nothing is reserved" in night.stopwarden("peers", expect=None)
