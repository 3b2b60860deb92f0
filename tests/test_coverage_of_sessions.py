"""Whom an away period covers, and when."""

from __future__ import annotations

import pytest

from stopwarden.core.events import AwayPeriod
from stopwarden.core.periods import covering, covers, holds

P = AwayPeriod(id="p", since=100, until=200, scope="checkout", copy="k1", root="/work")


def whom(period: AwayPeriod, session: str = "s", copy: str = "k1", root: str = "/work", script: bool = False) -> bool:
    """Whether the period covers such a session."""
    return covers(period, session=session, copy=copy, root=root, script=script)


@pytest.mark.parametrize(("now", "expected"), [(99, False), (100, True), (199, True), (200, False)])
def test_a_period_holds_from_its_beginning_until_its_end(now: int, expected: bool) -> None:
    """Half-open; ended is ended; without an end it holds on."""
    assert holds(P, now) is expected
    assert holds(P.replace(until=None), max(now, 100))
    assert not holds(P.replace(ended_at=150), now)


@pytest.mark.case("BR-083")
def test_a_checkout_is_its_copy_key_and_its_path_only_where_there_is_no_key() -> None:
    """A worktree at the same place with another key is another checkout; a moved checkout is the same one."""
    assert whom(P)
    assert whom(P, root="/moved")
    assert not whom(P, copy="k2")
    assert whom(P.replace(copy=""), copy="k2")
    assert whom(P, copy="", root="/work")
    assert not whom(P, copy="", root="/other")
    assert not whom(P.replace(copy="", root=""), copy="", root="")


def test_scripts_are_covered_on_request_or_by_name() -> None:
    """A script's session needs also_scripts, in every scope but its own."""
    assert not whom(P, script=True)
    assert whom(P.replace(also_scripts=True), script=True)
    everywhere = P.replace(scope="everywhere")
    assert whom(everywhere, copy="k9", root="/x")
    assert not whom(everywhere, script=True)
    own = P.replace(scope="session", session="s")
    assert whom(own, script=True, copy="k9")
    assert not whom(own, session="t")


def test_the_narrowest_and_then_the_newest_period_holds() -> None:
    """The session's own before its checkout's before everywhere; of two alike the later one; none that has ended."""
    everywhere = P.replace(id="e", scope="everywhere", since=150)
    own = P.replace(id="o", scope="session", session="s", since=110)
    newer = P.replace(id="n", since=120)

    def found(*periods: AwayPeriod, now: int = 160) -> str:
        one = covering(periods, session="s", copy="k1", root="/work", script=False, now=now)
        return one.id if one else ""

    assert found(everywhere, P, newer, own) == "o"
    assert found(everywhere, P, newer) == "n"
    assert found(everywhere, P) == "p"
    assert found(everywhere) == "e"
    assert found(everywhere, now=140) == ""
