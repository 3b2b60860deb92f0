"""Hosts without a queue of prompts: who is granted a claim, and what an agent learns from silence."""

from __future__ import annotations

import pytest

from stopwarden.core import claim_hosts
from stopwarden.core.claim_hosts import Channel, Desktop, HostCalls, PlainStdio, after_drain


def granted(host: claim_hosts.Host, session: str | None) -> bool:
    """Whether the host grants the claim; never with a queued prompt, for it has none."""
    answer = claim_hosts.claim(host, session)
    assert answer is not None
    assert not answer.has_queued_prompt
    return answer.claimed


@pytest.mark.case("G148")
def test_a_channel_grants_the_sessions_it_has_and_no_other() -> None:
    """A chat room's bridge grants a session it has opened, and refuses one it never saw or a call without any."""
    channel = claim_hosts.opened(Channel(), "s1")
    assert granted(channel, "s1")
    assert not granted(channel, "s2")
    assert not granted(channel, None)


@pytest.mark.case("G148")
def test_a_channel_that_clears_retires_or_stops_has_lost_the_session_in_that_step() -> None:
    """The very next claim after a clear, a retirement or a stop is refused; a stopped bridge opens nothing again."""
    channel = claim_hosts.opened(claim_hosts.opened(Channel(), "s1"), "s2")
    cleared = claim_hosts.dropped(channel, "s1")
    assert (granted(cleared, "s1"), granted(cleared, "s2")) == (False, True)
    stopped = claim_hosts.stopped(channel)
    assert not granted(stopped, "s2")
    assert not granted(claim_hosts.opened(stopped, "s2"), "s2")


@pytest.mark.case("G148")
def test_the_desktop_grants_its_current_session_and_its_fallback_refuses() -> None:
    """The session that is open now is granted; an old one, and a call that belongs to none, are not."""
    desktop = claim_hosts.switched(Desktop(), "s1")
    assert granted(desktop, "s1")
    assert not granted(desktop, None)
    moved = claim_hosts.switched(desktop, "s2")
    assert (granted(moved, "s1"), granted(moved, "s2")) == (False, True)
    assert not granted(Desktop(), None)


def test_the_desktop_keeps_what_was_typed_for_a_session_until_that_session_drains() -> None:
    desktop = claim_hosts.typed(claim_hosts.switched(Desktop(), "s1"), "first")
    assert claim_hosts.typed(Desktop(), "nowhere") == Desktop()
    away = claim_hosts.typed(claim_hosts.switched(desktop, "s2"), "second")
    assert claim_hosts.drain(away, "s1") == (away, claim_hosts.HostDrain())
    away, answer = claim_hosts.drain(away, "s2")
    assert answer == claim_hosts.HostDrain(messages=("second",))
    back, answer = claim_hosts.drain(claim_hosts.switched(away, "s1"), "s1")
    assert answer == claim_hosts.HostDrain(messages=("first",))
    assert claim_hosts.drain(back, "s1")[1] == claim_hosts.HostDrain()


def test_a_channel_has_no_messages_and_a_plain_client_knows_neither_call() -> None:
    channel = claim_hosts.opened(Channel(), "s1")
    assert claim_hosts.drain(channel, "s1") == (channel, claim_hosts.HostDrain())
    assert claim_hosts.drain(PlainStdio(), "s1") == (PlainStdio(), None)
    assert claim_hosts.claim(PlainStdio(), "s1") is None


@pytest.mark.case("G47")
def test_a_drain_that_does_not_exist_is_never_asked_again_nor_one_that_was_silent_three_times() -> None:
    """An unknown method latches at once; time-outs only three in a row, and an answer in between starts anew."""
    assert after_drain(HostCalls(), "unimplemented").drain_unavailable
    calls = HostCalls()
    for came in ("timed_out", "timed_out", "answered", "timed_out", "failed", "timed_out"):
        calls = after_drain(calls, came)  # type: ignore[arg-type]
        assert not calls.drain_unavailable
    calls = after_drain(calls, "timed_out")
    assert calls.drain_unavailable
    assert after_drain(calls, "answered").drain_unavailable
