"""Which away period is meant for a session, and which of several holds."""

from __future__ import annotations

import pytest

from stopwarden.core.events import AwayPeriod
from stopwarden.core.periods import covering, covers, holds

HERE = {"session": "s1", "copy": "c1", "root": "/work/repo", "script": False}
EVERYWHERE = AwayPeriod(id="all", since=100, scope="everywhere")
CHECKOUT = AwayPeriod(id="repo", since=100, scope="checkout", copy="c1", root="/work/repo")
SESSION = AwayPeriod(id="mine", since=100, scope="session", session="s1")


@pytest.mark.parametrize(
    "period, now, held",
    [
        (EVERYWHERE, 99, False),
        (EVERYWHERE, 100, True),
        (EVERYWHERE.replace(until=200), 199, True),
        (EVERYWHERE.replace(until=200), 200, False),
        (EVERYWHERE.replace(ended_at=150), 120, False),
    ],
)
def test_a_period_holds_from_its_first_second_until_its_end(period: AwayPeriod, now: int, held: bool) -> None:
    """The first second belongs to it, the last does not; one that was ended holds no more, whatever the clock reads."""
    assert holds(period, now) is held


@pytest.mark.parametrize(
    "period, where, meant",
    [
        (SESSION, HERE, True),
        (SESSION, {**HERE, "session": "s2"}, False),
        (SESSION, {**HERE, "script": True}, True),
        (EVERYWHERE, HERE, True),
        (EVERYWHERE, {**HERE, "script": True}, False),
        (EVERYWHERE.replace(also_scripts=True), {**HERE, "script": True}, True),
        (CHECKOUT, {**HERE, "root": "/moved"}, True),
        (CHECKOUT, {**HERE, "copy": "c2"}, False),
        (CHECKOUT, {**HERE, "script": True}, False),
        (CHECKOUT, {**HERE, "copy": ""}, True),
        (CHECKOUT, {**HERE, "copy": "", "root": "/other"}, False),
        (CHECKOUT.replace(copy=""), HERE, True),
        (CHECKOUT.replace(copy="", root=""), {**HERE, "root": ""}, False),
    ],
)
def test_a_period_is_meant_for_its_session_its_copy_or_everyone(
    period: AwayPeriod, where: dict[str, object], meant: bool
) -> None:
    """The copy decides where both know it, else the path; scripts only by leave, except where a session is named."""
    assert covers(period, **where) is meant  # type: ignore[arg-type]


def test_of_several_periods_the_narrowest_holds_and_of_equals_the_newest() -> None:
    """A session's own before its checkout's before one for everything; those that do not hold are not asked."""
    newer = CHECKOUT.replace(id="newer", since=150)
    given = [EVERYWHERE, CHECKOUT, newer, SESSION]
    assert [covering(given[:n], **HERE, now=180) for n in range(5)] == [None, EVERYWHERE, CHECKOUT, newer, SESSION]  # type: ignore[arg-type]
    assert covering(given[::-1], **HERE, now=120) == SESSION  # type: ignore[arg-type]
    assert covering([newer, CHECKOUT], **HERE, now=120) == CHECKOUT  # type: ignore[arg-type]
