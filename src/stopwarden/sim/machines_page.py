"""The page docs/machines.md: the machines of the core as diagrams and tables, read out of the code itself.

`python -m stopwarden.sim.machines_page` (`make diagrams`). The guard's transitions are found by doing
every operation of `core/guard` in every state that can be come to. The rows of the turn are those of its
tables; what a row may ask, where it may go and how it may end a turn is read from the row's function and
the functions it calls. A test holds the page to the code. May not live here: any rule of a machine.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import pathlib
import textwrap
from typing import TYPE_CHECKING

from stopwarden.core import chain as chains
from stopwarden.core import guard as guards
from stopwarden.core import turn as turns
from stopwarden.core import turn_answers
from stopwarden.core.failures import FAILURES
from stopwarden.core.queue_claims import CLAIM_TABLE, TURN_REFUSALS
from stopwarden.core.queue_messages import POST_REFUSALS
from stopwarden.core.queue_prompts import ADMISSION_REFUSALS
from stopwarden.core.todo_envelope import Todo, TodoList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from stopwarden.core.guard import Guard
    from stopwarden.core.stop_loop import Row

CALLED = {"stream": "STREAM_ORDER", "tools": "TOOL_ORDER", "stop": "STOP_ORDER"}
PAGE = pathlib.Path(__file__).parents[3] / "docs" / "machines.md"
HEAD = """# The machines, as they are in the code

Written by `make diagrams` from the tables and functions of `src/stopwarden/core`; do not edit. A test holds it to the
code. What the words mean and why it is so: [architecture.md](architecture.md), [decisions.md](decisions.md)."""


def page() -> str:
    """The whole page."""
    parts = [HEAD, *_guard(), *_turn(), *_chain(), *_queue()]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _said(thing: object) -> str:
    """The first paragraph of a docstring, as one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _mermaid(lines: Iterable[str]) -> str:
    return "\n".join(["```mermaid", *lines, "```"])


# --- the guard -----------------------------------------------------------------------------------

_OPEN = TodoList(items=(Todo(id="1", content="", status="pending"),))
_DONE = TodoList(items=(Todo(id="1", content="", status="completed"),))

# Every operation of the guard, each with its words.
OPERATIONS: tuple[tuple[str, Callable[[Guard], Guard]], ...] = (
    ("an ordinary prompt starts", guards.start_ordinary),
    ("held back, forgets", lambda guard: guards.suspend(guard, "released")),
    ("held back, keeps its list", lambda guard: guards.suspend(guard, "cancelled")),
    ("given up, told once", lambda guard: guards.mark_exhaustion_reported(guard)[0]),
    ("a list with open items", lambda guard: guards.observe(guard, _OPEN, allow_arm=True)[0]),
    ("a list that is done", lambda guard: guards.observe(guard, _DONE, allow_arm=True)[0]),
    ("a list in plan mode", lambda guard: guards.observe(guard, _OPEN, allow_arm=False)[0]),
    ("an attempt is committed", lambda guard: guards.commit(guard, guard.attempts + 1)[0]),
    ("the person's words mid-turn", guards.accept_mid_turn),
    ("gives way to a queued prompt", lambda guard: guards.await_queued(guard)[0]),
    ("the provider fails", guards.pause_retry),
    ("goes on, trusted", guards.resume_trusted),
    ("switched off", lambda guard: guards.set_switch(guard, "off")),
    ("switched on", lambda guard: guards.set_switch(guard, "on")),
)


def guard_transitions() -> list[tuple[str, str, str]]:
    """From, operation, to: of named states with their attempts, by doing everything everywhere."""
    found: dict[tuple[str, str, str], None] = {}
    met = {guards.Guard(): None}
    ahead = list(met)
    while ahead:
        guard = ahead.pop(0)
        for words, operation in OPERATIONS:
            if words == "given up, told once" and guards.decide(guard, background=False).kind != "exhausted":
                continue  # core/chain calls that illegal
            after = operation(guard)
            if _name(after) != _name(guard):
                found[_name(guard), words, _name(after)] = None
            if after not in met:
                met[after] = None
                ahead.append(after)
    return list(found)


def _name(guard: Guard) -> str:
    name = guards.state_name(guard)
    return f"{name}({guard.attempts})" if name in ("ARMED", "DONE", "PAUSED", "AWAITING") else name


def _guard() -> list[str]:
    found = guard_transitions()
    states = list(dict.fromkeys(name.partition("(")[0] for one in found for name in (one[0], one[2])))
    coarse = dict.fromkeys((a.partition("(")[0], words, b.partition("(")[0]) for a, words, b in found)
    lines, everywhere = ["stateDiagram-v2", "    [*] --> IDLE"], []
    for words in dict.fromkeys(words for _, words, _ in coarse):
        arrows = [(a, b) for a, named, b in coarse if named == words]
        targets = {b for _, b in arrows}
        if len(targets) == 1 and {a for a, _ in arrows} >= set(states) - targets - {"OFF"}:
            everywhere.append(f"*{words}*: {targets.pop()}")
        elif len(targets) > 2 and len({a for a, _ in arrows}) == 1:
            everywhere.append(f"*{words}*: from {arrows[0][0]} back to what it was")
    drawn: dict[tuple[str, str], list[str]] = {}
    for a, words, b in coarse:
        if not any(one.startswith(f"*{words}*") for one in everywhere):
            drawn.setdefault((a, b), []).append(words)
    lines += [f"    {a} --> {b}: {' / '.join(words)}" for (a, b), words in drawn.items()]
    rows: dict[tuple[str, str], list[str]] = {}
    for a, words, b in found:
        if "back to what it was" not in next((one for one in everywhere if one.startswith(f"*{words}*")), ""):
            rows.setdefault((words, b), []).append(a)
    return [
        "## The todo guard (`core/guard.py`)",
        _mermaid(lines),
        "Not drawn, because they lead from every state to one, or back: " + "; ".join(everywhere) + ".",
        "The same with the attempts used; what changes no named state is not told.",
        _table(
            ("operation", "from", "to"), ((words, ", ".join(sorted(a)), b) for (words, b), a in sorted(rows.items()))
        ),
        "### Why a chain is held back (`SUSPENSIONS`)",
        _table(
            ("reason", "forgets list and attempts", "keeps a queued prompt first"),
            ((reason, _yes(row.forgets), _yes(row.keeps_priority)) for reason, row in guards.SUSPENSIONS.items()),
        ),
    ]


def _yes(value: object) -> str:
    return "yes" if value else ""


# --- the turn ------------------------------------------------------------------------------------


class Does:
    """What a row may do, read from its function and what that calls."""

    def __init__(self, act: Callable[..., Any]) -> None:
        self.asks: dict[str, None] = {}
        self.goes: dict[str, None] = {}
        self.ends: dict[str, None] = {}
        self._seen: set[object] = set()
        self._read(act)

    def _read(self, act: Callable[..., Any]) -> None:
        if act in self._seen:
            return
        self._seen.add(act)
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(act)))):
            if isinstance(node, ast.Call):
                self._call(node, act.__globals__)

    def _call(self, call: ast.Call, known: dict[str, Any]) -> None:
        words = [one.value if isinstance(one, ast.Constant) else None for one in call.args]
        if (
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "pen"
        ):
            if call.func.attr == "ask":
                self.asks[str(words[0])] = None
            elif call.func.attr == "go":
                self.goes[str(words[1]) if len(words) > 1 else turns.ORDERS[str(words[0])][0].rule] = None
            elif call.func.attr == "end":
                self._end(call.args[1])
        elif isinstance(call.func, ast.Name):
            if call.func.id in ("fail", "give_up_guard"):
                self.ends[
                    FAILURES[str(words[1])].rule if str(words[1]) in FAILURES else "turn.… (as FAILURES says)"
                ] = None
                if call.func.id == "give_up_guard":
                    self.goes["stream.show_hook"] = None
            elif inspect.isfunction(known.get(call.func.id)) and call.func.id != "strike":
                self._read(known[call.func.id])

    def _end(self, rule: ast.expr) -> None:
        match rule:
            case ast.Constant():
                self.ends[str(rule.value)] = None
            case ast.JoinedStr():
                self.ends["guard.… (as ALLOWED says)"] = None
            case ast.Attribute(value=ast.Call(args=[_, ast.Constant(value=point)])):  # strike(pen, point).rule
                self.ends[FAILURES[str(point)].rule] = None
            case ast.Attribute(value=ast.Subscript(slice=ast.Constant(value=point))):  # FAILURES[point].rule
                self.ends[FAILURES[str(point)].rule] = None
            case _:
                self.ends[ast.unparse(rule)] = None


def _turn() -> list[str]:
    parts = [
        "## The turn (`core/turn.py`)",
        "A turn begins at the top of *stream*, goes on to *tools* when the reply has calls and to *stop* when it has "
        "none. A row that does nothing is followed by the next one. A thick arrow is a jump; a rounded box asks and "
        "waits for the answer. Before each row: a turn that a newer prompt, a cancel or a dispose cut unwinds instead.",
    ]
    for name, order in turns.ORDERS.items():
        does = {row.rule: Does(row.act) for row in order}
        parts.append(f"### {name.capitalize()} (`{CALLED[name]}`)")
        parts.append(_mermaid(_flow(order, does)))
        parts.append(
            _table(
                ("row", "what it does", "asks", "may go to", "may end the turn as"),
                (
                    (
                        f"`{row.rule}`",
                        _said(row.act),
                        ", ".join(does[row.rule].asks),
                        ", ".join(f"`{one}`" for one in does[row.rule].goes),
                        ", ".join(f"`{one}`" for one in does[row.rule].ends),
                    )
                    for row in order
                ),
            )
        )
    parts += [
        "### What comes unasked (`EVENTS`)",
        _table(
            ("event", "what it says", "what is done"),
            ((f"`{event.__name__}`", _said(event), _said(take)) for event, take in turns.EVENTS.items()),
        ),
        "### What an answer means (`ANSWERS`)",
        _table(
            ("asked", "answer", "what it says", "what is done"),
            (
                (asked, f"`{answer.__name__}`", _said(answer), _said(take))
                for (asked, answer), take in turn_answers.ANSWERS.items()
            ),
        ),
        "### What becomes of guard and turn when something fails (`FAILURES`)",
        _table(
            ("at", "rule", "the chain", "a hook's block goes on alone", "else the turn ends as"),
            (
                (point, f"`{row.rule}`", row.trust or "is left as it is", _yes(row.alone), row.end)
                for point, row in FAILURES.items()
            ),
        ),
    ]
    return parts


def _flow(order: Sequence[Row], does: dict[str, Does]) -> list[str]:
    lines = ["flowchart TD"]
    for row in order:
        shown = row.rule.partition(".")[2].replace("_", " ")
        asks = ", ".join(does[row.rule].asks)
        lines.append(
            f'    {_node(row.rule)}("{shown}<br/>asks: {asks}")' if asks else f'    {_node(row.rule)}["{shown}"]'
        )
    following = {row.rule: after.rule for row, after in itertools.pairwise(order)}
    lines += [f"    {_node(rule)} --> {_node(after)}" for rule, after in following.items()]
    others = {row.rule for row in order}
    for row in order:
        for goal in does[row.rule].goes:
            if goal not in others:
                lines.append(f'    {_node(goal)}[["{goal.replace("_", " ").replace(".", ": ")}"]]')
                others.add(goal)
            if goal != following.get(row.rule):
                lines.append(f"    {_node(row.rule)} ==> {_node(goal)}")
        if does[row.rule].ends:
            lines.append(f"    {_node(row.rule)} -.-> over((over))")
    return lines


def _node(rule: str) -> str:
    return rule.replace(".", "_")


# --- chain and queue -----------------------------------------------------------------------------


def _chain() -> list[str]:
    return [
        "## The guard's place in a session (`core/chain.py`)",
        _table(
            ("event", "what it says", "cannot happen when"),
            (
                (f"`{event.__name__}`", _said(event), "; ".join(why for _, why in chains.ILLEGAL.get(event, ())))
                for event in chains.EVENTS
            ),
        ),
        "### The session's side of a claim (`CLAIM_ANSWERS`)",
        _table(("the answer says", "at first sight"), chains.CLAIM_ANSWERS.items()),
    ]


def _queue() -> list[str]:
    facts = ("hosted", "owner", "rival", "queued", "busy")
    return [
        "## The owner's side (`core/queue.py`)",
        "### A claim (`CLAIM_TABLE`)",
        "*hosted*: asked by the child that has the session; *owner*: whose id came along; *rival*: another live "
        "prompt runs; *queued*: a live prompt waits; *busy*: anything is live or has not settled. An empty cell holds "
        "for both.",
        _table(
            ("row", *facts, "granted", "a prompt is queued", "who waits"),
            (
                (
                    f"`{row.rule}`",
                    *("" if getattr(row, one) is None else _fact(getattr(row, one)) for one in facts),
                    _fact(row.claimed),
                    _fact(row.has_queued_prompt),
                    {"keep": "as before", "set": "this owner", "clear_own": "this owner no more"}[row.wait],
                )
                for row in CLAIM_TABLE
            ),
        ),
        _mermaid(_claims()),
        "### What is refused, the first that holds",
        _table(
            ("of", "rule", "status"),
            (
                *(("a prompt", f"`{rule}`", status) for rule, status, _ in ADMISSION_REFUSALS),
                *(("a message mid-turn", f"`{rule}`", status) for rule, status, _ in POST_REFUSALS),
                *(("a background turn", f"`{rule}`", "") for rule, _ in TURN_REFUSALS),
            ),
        ),
    ]


def _fact(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _claims() -> list[str]:
    """The claim table as a picture: what leads to which answer."""
    lines = ["flowchart LR", '    claim(["a claim"])']
    for row in CLAIM_TABLE:
        asked = [
            f"{one.replace('_', ' ')} {_fact(getattr(row, one))}"
            for one in ("hosted", "owner", "rival", "queued", "busy")
            if getattr(row, one) is not None and (one, getattr(row, one)) != ("hosted", True)
        ]
        answer = "granted" if row.claimed else "queued" if row.has_queued_prompt else "refused"
        lines.append(f'    claim -->|"{", ".join(asked)}"| {answer}')
    return lines


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
