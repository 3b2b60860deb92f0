"""docs/comparison.md: what both sides did, a row a scenario, in the same words.

Every cell is made from what was seen. Only what a difference is good for (`Scenario.why`) is written by
hand, and it is an error to have one without a difference, or a difference without one.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from comparison import scenarios
from comparison.seen import differences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.script import Scenario
    from comparison.seen import Seen

WORDS = {
    "calls": "what the model was sent",
    "shown": "what was announced",
    "ends": "how turns ended",
    "hooks": "what became of the Stop hook",
    "answers": "answers to the bridge",
}
HEAD = """# Our machines and the shipped Qwen Code, side by side

Written by `make compare`, not by hand. The command plays every scenario twice: to the pure machines of this project
(`core/turn`, `core/queue`) and to the real program, and fails when ours do not do what is expected of them, or when a
difference has no reason. Measured with Qwen Code {version} on {date}, {isolation}.

{how}

How to read a cell. *Sent*: what was new in each model call since the model's last words: `P1` a prompt, `tools` results
of tools, `guard 1/2` the guard's instruction of that attempt, `S1` words of the person in the middle of a turn, `HOOK1`
the reason of a Stop hook, `result` a result of background work, `gap` a notice of results that were left out,
`(refused)`, a call that the provider did not begin to answer. *Shown*: the guard's announcements, with the open items
of the list. *Ended*: each turn; on our side with the kind of end, which the shipped program does not tell.

{count} Not played, because they take minutes of real time: a self-paced wakeup (60 s at least) and an every-minute
schedule during a wait. Not played either: a move to another directory while a prompt runs.
"""
HOW = """\
The real program runs with an empty environment and home, the guard and its todo tool on, and a scripted model. Its
client is the queue machine of this project, which answers its claims and drains, and names owners as its own daemon
does; in the scenarios N it is a client that speaks to the agent itself, and in the last group the program runs as its
own daemon, `qwen serve`, with its own bridge. What the model was sent is read from the
requests that reached the model."""
ASKS = """
## The order of questions

How the agent asks its bridge: `d` takes the person's words, `c` claims the next place, `*` is a model call. Where
both ask in the same order, one is shown.

| | Qwen Code | ours |
|---|---|---|
"""


def facts(seen: Seen, *, ours: bool) -> str:
    """One side's cell."""
    ends = seen.ends
    if ours:
        pairs = zip(seen.ends, seen.kinds, strict=True)
        ends = [end if end.endswith(kind) else f"{end} ({kind})" for end, kind in pairs]
    told = [f"Sent: {listed(seen.calls)}."]
    if seen.shown:
        told.append(f"Shown: {listed(seen.shown)}.")
    if ends:
        told.append(f"Ended: {listed(ends)}.")
    if seen.hooks:
        told.append(f"Hook: {listed(seen.hooks)}.")
    if seen.answers:
        told.append(f"Answered: {listed(seen.answers)}.")
    return " ".join(told)


def listed(one: list[str]) -> str:
    """In order; what comes several times on end is said once."""
    runs = [(words, len(list(run))) for words, run in itertools.groupby(one)]
    return "; ".join(words if times == 1 else f"{words} ({times} times)" for words, times in runs) or "nothing"


def verdict(scenario: Scenario, ours: Seen, theirs: Seen) -> str:
    """Same or different, and why."""
    different = differences(ours, theirs)
    if not different:
        return "same"
    return f"**different** in {' and in '.join(WORDS[fact] for fact in different)}. {scenario.why}"


def complaints(scenario: Scenario, ours: Seen, theirs: Seen | None) -> list[str]:
    """What is wrong with this row."""
    wrong = []
    did = (ours.attempts, tuple(ours.kinds), len(ours.calls))
    expected = (scenario.expect.attempts, scenario.expect.ends, scenario.expect.calls)
    if did != expected:
        wrong.append(f"{scenario.id}: our side did {did}, expected was {expected}")
    if theirs is not None and bool(differences(ours, theirs)) != bool(scenario.why):
        state = "different without a reason" if not scenario.why else "a reason without a difference"
        wrong.append(f"{scenario.id}: {state}: {ours} {theirs}")
    return wrong


def row(scenario: Scenario, ours: Seen, theirs: Seen) -> str:
    """One line of a table."""
    cells = (
        scenario.id,
        scenario.told,
        facts(theirs, ours=False),
        facts(ours, ours=True),
        verdict(scenario, ours, theirs),
    )
    return "| " + " | ".join(cells) + " |"


def page(ours: Mapping[str, Seen], theirs: Mapping[str, Seen], version: str, date: str, isolation: str) -> str:
    """The whole page."""
    known = [scenario for scenario in scenarios.ALL if scenario.id in theirs]
    same = [one for one in known if not differences(ours[one.id], theirs[one.id])]
    count = f"Of {len(known)} scenarios {len(same)} went the same on both sides."
    lines = [HEAD.format(version=version, date=date, isolation=isolation, how=HOW, count=count)]
    for title, group in scenarios.GROUPS:
        shown = [scenario for scenario in group if scenario.id in theirs]
        if shown:
            lines.append(f"## {title}\n")
            lines.append("| | the person | Qwen Code | ours | |\n|---|---|---|---|---|")
            lines += [row(scenario, ours[scenario.id], theirs[scenario.id]) for scenario in shown]
            lines.append("")
    lines.append(ASKS.strip("\n"))
    for one in known:
        if one.bridge.daemon:
            continue  # what passes between its bridge and its agent is not seen
        here, there = ours[one.id].asks, theirs[one.id].asks
        lines.append(f"| {one.id} | `{there}` | {'same' if here == there else f'`{here}`'} |")
    return "\n".join(lines) + "\n"
