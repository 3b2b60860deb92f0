"""The page docs/nights.md: the tables of a comparison, what they rest on, how to run it again.

Written from the numbers alone, so whoever runs it again with the same seed gets the same page, byte
for byte. May not live here: a number that was not counted.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from stopwarden.core.bounds import HOUR
from stopwarden.sim import plans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopwarden.sim.comparison import Result

HELD = 20  # nights whose table a quick test holds equal
COLUMNS = 118
COMMAND = "stopwarden simulate nights --nights {} --seed {} --table docs/nights.md"


def percent(share: float) -> str:
    """ "97.2 %"; only what is whole is "100 %"."""
    return "100 %" if share == 1 else f"{min(99.9, 100 * share):.1f} %"


def table(results: Sequence[Result]) -> list[str]:
    """The comparison as lines of a Markdown table, hours and numbers a night."""
    rows = [
        [
            *("policy", "working, or waiting with a wake in time", "lost hours", "over-run turns"),
            *("quiet stalls", "blocked stops", "items done"),
        ]
    ]
    for one in results:
        total = one.total
        stalls = f"{total.stalls} in {one.nights} nights, {_hours(total.quiet)}" if total.stalls else "none"
        rows.append(
            [
                one.contender.words,
                percent(total.share),
                f"{one.a_night(total.lost) / HOUR:.1f}",
                f"{one.a_night(total.over_run):.2f}",
                stalls,
                f"{one.a_night(total.forced):.1f}",
                f"{one.a_night(total.done):.1f}",
            ]
        )
    return _markdown(rows)


def page(results: Sequence[Result], held: Sequence[Result], seed: int) -> str:
    """The whole page; `held` is the comparison of the first nights alone."""
    nights = results[0].nights
    parts = [
        ["# The same nights under six policies"],
        _wrapped(
            f"{nights} nights of 8 to 10.5 hours, one session each, simulated on a virtual clock (seed {seed}). Every "
            "policy meets the same nights: the same items, agents, errors and schedules. This page is written by the "
            "following command, and is the same whenever it is run. Numbers are a night's average where nothing else "
            "is said."
        ),
        ["```", COMMAND.format(nights, seed), "```"],
        table(results),
        _measures(),
        ["## What to see in it"],
        _findings({one.contender.name: one for one in results}),
        ["## Where the rest of the time went"],
        _wrapped(
            "Hours over all nights. The host's cap, scheduler, errors and restarts are what the world did not allow, "
            "and are left out of the share above: the host let the session stop whatever it was answered, a wake was "
            "promised in time and the host did not fire it, or a turn ended without any stop that could be judged, and "
            "nothing was there to open another."
        ),
        _rest_table(results),
        ["## By the kind of agent"],
        ["The share of the first table."],
        _temper_table(results),
        ["## What a night is made of"],
        _makings(),
        [f"## The first {HELD} nights alone"],
        ["A test plays these at every run, so this page cannot go stale."],
        table(held),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _measures() -> list[str]:
    return _points(
        "*Working, or waiting with a wake in time*: of the time that the world allowed, the share in which a turn ran, "
        "or the session waited for a wake that came by its deadline (the renewal due of what it holds, else an hour), "
        "or nothing was left: no item open, none awaited from outside.",
        "*Lost hours*: idle while an item of the list could have been worked on, for whatever reason, the world's "
        "included. A session that was told, and waits for its next look although it could go on, loses time too.",
        "*Over-run turns*: blocked stops with nothing to work on while a wake was coming anyway.",
        "*Quiet stalls*: idle past the deadline with work pending, and nothing in any record that says so.",
    )


def _findings(by_name: dict[str, Result]) -> list[str]:
    """What the numbers say, our own weak places first."""
    ours, kept, nominal = (by_name[name].total for name in ("ours", "ours-with-keeper", "nominal"))
    return _points(
        f"Without the keeper, sessions spent {_hours(ours.at_bound)} of these nights past a bound of ours and "
        f"{_hours(ours.at_host_cap)} past the host's own cap, all of it in the record: agents that make no wake "
        "however often they are told. A hook that starts nothing cannot wake them. The host's cap is the world's; "
        "ours counts. "
        f"With both left out, the share is {percent(ours.told_share)}. With the keeper, nothing left out, it is "
        f"{percent(kept.share)}.",
        "After an error that ends a turn only a wake that was made before, or the keeper, opens another: "
        f"{_hours(ours.after_error)} went that way without the keeper, {_hours(kept.after_error)} with it. Counted "
        f"against the policy, the share is {percent(ours.share_with_errors)} without and "
        f"{percent(kept.share_with_errors)} with the keeper.",
        "Judging wakes by evidence instead of by their next minute changes little here: looks that came late are "
        f"{(nominal.late + nominal.missed) / HOUR:.1f} h by the next minute, {(ours.late + ours.missed) / HOUR:.1f} h "
        "by evidence. Most agents end up with the exact call that the reason gives, which comes in time either way.",
        f"No policy makes an agent work that will not. Of the {_hours(ours.lost)} lost under ours "
        f"{_hours(ours.lost_waiting)} are time in which a session that was told what is open, and did not go on, waits "
        "validly for its next look. The rest is what the world took, and what is past a bound.",
    )


def _rest_table(results: Sequence[Result]) -> list[str]:
    rows = [
        [
            *("policy", "past a bound of ours, recorded", "look missed, recorded", "late", "past the host's cap"),
            *("scheduler silent", "after an error", "after a restart", "items ticked, not done", "holds lost"),
        ]
    ]
    for one in results:
        total = one.total
        spent = (total.at_bound, total.missed, total.late)
        world = (total.at_host_cap, total.silent_scheduler, total.after_error, total.after_restart)
        counts = [str(total.false_ticks), str(total.holds_lost)]
        rows.append([one.contender.words, *(f"{part / HOUR:.1f}" for part in (*spent, *world)), *counts])
    return _markdown(rows)


def _temper_table(results: Sequence[Result]) -> list[str]:
    rows = [["policy", *plans.TEMPERS]]
    rows += [[one.contender.words, *(percent(told.share) for told in one.by_temper.values())] for one in results]
    return _markdown(rows)


def _makings() -> list[str]:
    tempers = ", ".join(f"{share} % {temper}" for temper, share in plans.TEMPERS.items())
    obstacles, silent, short = plans.OBSTACLES, _percents(plans.SILENT), _percents(plans.SHORT_SILENT)
    return _points(
        f"Agents: {tempers}. An obedient one does what it is told and stops after some items; a lazy one stops early "
        "and schedules its look for the morning; a looping one moves nothing (one in five of them never schedules "
        "anything either); a lying one ticks what it has not done, moves states back and forth, rewords the list, "
        "takes items off it, leaves `sleep 36000` running; a mixed one is another of these at each turn.",
        f"Work: 3 to 24 items of 4 to 120 minutes; {obstacles['person']} % wait on a person, {obstacles['external']} % "
        "on something that comes in the night.",
        f"Provider: {plans.ERRORS} errors a night; an outage of 20 to 180 minutes in {_percents(plans.OUTAGE)} of the "
        f"nights, a usage limit of 1 to 4 hours in {_percents(plans.LIMIT)}. An error ends a turn without a stop.",
        "Scheduler: as measured ([hosts](hosts.md)), late by up to half the interval and 30 minutes. It is silent for "
        f"the rest of {silent} of the nights, and for 2 to 6 hours of {short}; one one-shot in "
        f"{1 / plans.VANISHES:.0f} never fires.",
        f"The agent program dies and is started again in {_percents(plans.RESTART)} of the nights. One night in twelve "
        f"has a change of clocks. In {_percents(plans.HOLDS)} the session holds its items by a lease.",
        "Dialogs, which freeze a session under a policy that does not refuse them, are left out, in favour of others.",
        "The agents are simple models. The tables tell how policies differ, not how your agent will work.",
    )


def _percents(share: float) -> str:
    return f"{100 * share:.0f} %"


def _points(*texts: str) -> list[str]:
    return [line for text in texts for line in _wrapped(text, "- ", "  ")]


def _wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    """Lines of the page's width; a number is not parted from its unit."""
    whole = text.replace(" %", "\u00a0%").replace(" h ", "\u00a0h ")
    lines = textwrap.wrap(
        whole,
        COLUMNS,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace("\u00a0", " ") for line in lines]


def _hours(seconds: int) -> str:
    return f"{seconds / HOUR:.0f} h"


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *others = rows
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *others)]
