"""Written nights of many sessions, and weeks of them: made from a seed, so that they are the same each time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from stopwarden.core.bounds import HOUR, MINUTE
from stopwarden.core.events import Item
from stopwarden.report.account import Account, account
from tests.support.written_night import Night

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = (
    "lexer",
    "parser",
    "printer",
    "errors",
    "readme",
    "docs",
    "cache",
    "index",
    "search",
    "export",
    "login",
    "menu",
)


def busy_night(
    sessions: int = 3,
    items: int = 12,
    *,
    seed: int = 7,
    day: str = "2026-11-30",
    period: str = "p1",
    names: str = "",
    checkouts: bool = False,
    titles: Sequence[str] = (),
) -> Night:
    """A night in which so many sessions work through one list: some wait, some lose time, one asks."""
    rng = random.Random(seed)
    night = Night(day)
    night.period = night.period.replace(id=period)
    for number in range(1, (len(titles) or items) + 1):
        title = (
            titles[number - 1]
            if titles
            else f"{rng.choice(WORDS)}: {rng.choice(('write', 'test', 'mend'))} part {number}"
        )
        night.items[f"{period}i{number}"] = Item(id=f"{period}i{number}", title=title, source="TODO.md", line=number)
    open_items = list(night.items)
    night.rows.clear()
    for number in range(sessions):
        night.session = f"{seed:04x}{number:04x}-0000-4000-8000-{number:012x}"
        name = names.split()[number] if names else f"{rng.choice(WORDS)} {number + 1}"
        night.row(night.session, title=name, root=f"/work/{'shop' if number % 3 else 'mill'}" if checkouts else "")
        _one_session(night, rng, number, open_items)
    night.end()
    return night


def _one_session(night: Night, rng: random.Random, number: int, open_items: list[str]) -> None:
    at, end = night.at("23:06") + 60 * (number % 7), night.at("07:30") - 5 * MINUTE
    until_waiting = at + rng.randrange(2 * HOUR, 7 * HOUR)
    trouble = number % 5
    night.line(at, "prompt", "person")
    tokens = 100_000
    while at < min(until_waiting, end):
        at += rng.randrange(12 * MINUTE, 55 * MINUTE)
        tokens += rng.randrange(20_000, 200_000)
        if open_items and rng.random() < 0.7:
            night.tick(at, open_items.pop(0), verified=rng.random() < 0.5)
        night.stop(at, tokens=tokens)
        if trouble == 1 and rng.random() < 0.15:
            resumed = at + rng.randrange(20 * MINUTE, 80 * MINUTE)
            night.line(
                at + 4 * MINUTE, "error", rng.choice(("rate_limit; resets 3:57am (Europe/London)", "overloaded"))
            )
            night.wake(resumed)
            night.line(resumed + 60, "api_resumed", "rate_limit")
            at = resumed + 60
    if trouble == 2:
        night.ask(
            at + 60,
            f"Drop column legacy_{number}?",
            options=("drop it", "keep it"),
            chosen="keep it",
            period=night.period.id,
        )
    if trouble == 3 and at < end:
        night.stop(at + 120, bound="8 blocks without any tool use")
        night.stop(at + 180, "bound_reached")
        return
    while at < end:
        look = at + rng.randrange(20 * MINUTE, 58 * MINUTE)
        night.stop(at + 60, "waiting", look=look, tokens=tokens)
        if trouble == 4 and rng.random() < 0.25:
            return  # the look never came
        if look >= end:
            return
        night.wake(look)
        at = look + rng.randrange(2 * MINUTE, 9 * MINUTE)


def together(nights: Sequence[Night], now: str | int = "08:00", **more: object) -> Account:
    """One account of several nights."""
    lines = [line for night in nights for line in night.lines]
    verdicts = [row for night in nights for row in night.verdicts]
    kept = {digest: body for night in nights for digest, body in night.kept.items()}
    return account(
        [night.period for night in nights],
        now=nights[-1].at(now),
        lines=[line.replace(seq=number) for number, line in enumerate(sorted(lines, key=lambda line: line.at), 1)],
        verdicts=[row.replace(id=number) for number, row in enumerate(sorted(verdicts, key=lambda row: row.at), 1)],
        sessions=[row for night in nights for row in night.rows.values()],
        parked=[one.replace(id=n) for n, one in enumerate((one for night in nights for one in night.asked), 1)],
        snapshot=lambda digest: kept.get(digest, ""),
        **more,  # type: ignore[arg-type]
    )


def week() -> list[Night]:
    """Seven nights with a few sessions each; no session lives for two of them."""
    return [
        busy_night(3 + number % 3, 8, seed=20 + number, day=f"2026-11-{number + 10}", period=f"p{number}")
        for number in range(7)
    ]
