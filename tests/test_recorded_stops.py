"""Recorded stops travel as lines of a file, each whole by itself; what is no such line is named."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopwarden.core.errors import StoreCorruptError, StoreNewerError
from stopwarden.core.events import Item, Stop
from stopwarden.core.judge import judge
from stopwarden.store import journal, recorded
from stopwarden.store.memory import MemoryStore
from stopwarden.store.port import VerdictRow
from stopwarden.store.recorded import UnreadLine, lines_of, read_stops, write_stops
from tests.support.stops import SOON, Night, items


def kept(store: MemoryStore, *nights: Night, stops: int = 2) -> list[VerdictRow]:
    """Some stops of each night, journalled as the hook does."""
    rows = []
    for place, night in enumerate(nights):
        for number in range(stops):
            before, world, now = night.state, night.world, night.now
            verdict = night.stop(SOON)
            stop = Stop(session="s1", at=now, wakes=SOON)
            assert judge(stop, before, world, night.policy) == verdict
            body = journal.encode(stop, before, world, night.policy, verdict, store.put_snapshot)
            row = VerdictRow(
                at=now, session="s1", period="p1", nonce=f"{place}-{number}", kind=verdict.kind, rule=verdict.rule, body=body
            )  # fmt: skip
            rows.append(row.replace(id=store.append_verdict(row)))
    return rows


LONG = tuple(Item(id=f"i{n}", title=f"item {n}, a long one", source="TODO.md") for n in range(200))


def test_a_line_stands_alone() -> None:
    """What was judged comes back from the line alone, the texts of a long list included."""
    store = MemoryStore()
    rows = kept(store, Night(*items("A", "B")), Night(*LONG))
    read = list(read_stops(write_stops(store, rows)))
    assert [stop.row for stop in read] == rows
    assert [stop.line for stop in read] == [1, 2, 3, 4]
    assert [stop.decoded() for stop in read] == [journal.decode(row.body, store.snapshot) for row in rows]
    assert not read[0].texts
    assert read[2].texts


def test_a_line_is_plain_ascii_and_says_what_it_is() -> None:
    """Any tool can read it: one JSON object with its kind, format, moment and answer in front."""
    store = MemoryStore()
    rows = kept(store, Night(Item(id="Ä\n", title="Wörter\u2028")), stops=1)
    (line,) = write_stops(store, rows)
    assert line.isascii()
    assert "\n" not in line
    told = json.loads(line)
    assert (told["stopwarden"], told["v"], told["rule"]) == ("stop", 1, "away.owed_changed")
    assert told["body"]["world"]["items"]["title"] == "Wörter\u2028"


def test_lines_of_other_kinds_and_empty_ones_are_passed_over() -> None:
    """An export holds more than stops; their numbers are those of the file all the same."""
    store = MemoryStore()
    line, other = write_stops(store, kept(store, Night(*items("A"))))
    read = list(read_stops(['{"stopwarden":"session","v":1}', "", line, " \r\n", other]))
    assert [stop.line for stop in read] == [3, 5]


TORN = "it ends early"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"stopwarden":"stop","v":1,"id":4', TORN),
        ("not json at all", "no recorded stop"),
        ('{"v":1}', "JSON of another program"),
        ("[1,2,3]", "JSON of another program"),
        ('{"stopwarden":"stop"}', "does not say its format"),
        ('{"stopwarden":"stop","v":true}', "does not say its format"),
        ('{"stopwarden":"stop","v":1,"id":"x","at":1}', "its id is no number"),
        ('{"stopwarden":"stop","v":1,"id":1,"at":1e3}', "its at is no number"),
        (f'{{"stopwarden":"stop","v":1,"id":1,"at":{10**40}}}', "its at is no number"),
        (f'{{"stopwarden":"stop","v":1,"id":1,"at":{2**40}}}', "no time of this age"),
        ('{"stopwarden":"stop","v":1,"id":1,"at":-1}', "no time of this age"),
        ('{"stopwarden":"stop","v":1,"id":1,"at":1,"session":null}', "its session is no text"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "nested too deeply"),
        ('{"stopwarden":"stop","v":1,"id":1,"at":1' + ',"x":' + "9" * 9000 + "}", "no recorded stop"),
        (b"\xff\xfe{\x00", "no recorded stop"),
    ],
)
def test_what_is_no_recorded_stop_is_named_by_its_line(line: str | bytes, says: str) -> None:
    """Torn, foreign and hostile lines: the number and what is wrong."""
    with pytest.raises(StoreCorruptError, match="Line 2 is no recorded stop") as failed:
        list(read_stops(["", line]))
    assert says in str(failed.value)


def test_a_newer_format_is_left_to_the_program_that_knows_it() -> None:
    """It is not read half."""
    with pytest.raises(StoreNewerError, match="Line 1 has format 2"):
        list(read_stops(['{"stopwarden":"stop","v":2}']))


def test_a_table_that_asks_for_all_memory_is_refused() -> None:
    """A few bytes must not become a thousand million records."""
    store = MemoryStore()
    (line,) = write_stops(store, kept(store, Night(*items("A")), stops=1))
    told = json.loads(line)
    told["body"]["world"]["items"]["rows"] = 10**12
    with pytest.raises(StoreCorruptError, match="impossible length"):
        list(read_stops([json.dumps(told)]))


def test_a_file_that_was_cut_off_loses_only_its_last_line() -> None:
    """With somebody to tell, every whole line is read and the torn one is told."""
    store = MemoryStore()
    whole = "\n".join(write_stops(store, kept(store, Night(*items("A")), stops=3)))
    unread: list[UnreadLine] = []
    read = list(read_stops(lines_of(io.BytesIO(whole[:-40].encode())), unread.append))
    assert [stop.line for stop in read] == [1, 2]
    assert [(one.line, TORN in str(one.error)) for one in unread] == [(3, True)]


def test_a_line_beyond_all_measure_is_told_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The following lines keep their numbers."""
    store = MemoryStore()
    monkeypatch.setattr(recorded, "LINE_MAX", 20_000)
    (line,) = write_stops(store, kept(store, Night(*items("A")), stops=1))
    unread: list[UnreadLine] = []
    file = io.BytesIO(b"x" * 70_001 + b"\n" + line.encode() + b"\n")
    assert [stop.line for stop in read_stops(lines_of(file), unread.append)] == [2]
    assert "longer than" in str(unread[0].error)


def test_a_text_that_is_gone_is_said_when_the_line_is_read() -> None:
    """What the store no longer holds cannot be written; the line says so instead of giving another list."""
    store, empty = MemoryStore(), MemoryStore()
    (line,) = write_stops(empty, kept(store, Night(*LONG), stops=1))
    (stop,) = read_stops([line])
    with pytest.raises(StoreCorruptError, match="cannot be read"):
        stop.decoded()


def test_a_body_that_is_no_json_is_kept_as_it_is() -> None:
    """A damaged row is written out unchanged: nothing is lost on the way."""
    row = VerdictRow(at=5, session="s1", kind="block", rule="x", body='{"torn', id=7)
    (stop,) = read_stops(write_stops(MemoryStore(), [row]))
    assert stop.row == row


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(), st.binary(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps)))
def test_no_line_whatever_ends_in_anything_but_an_error_of_ours(line: str | bytes) -> None:
    """Whatever a file holds is read, passed over or named."""
    unread: list[UnreadLine] = []
    list(read_stops([line], unread.append))
    assert all("Line 1" in str(one.error) for one in unread)
