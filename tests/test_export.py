"""The record as lines of a file: whole, self-describing, safe for any reader."""

from __future__ import annotations

import json
import pathlib
import stat
from typing import Any

import pytest

from stopwarden.core.bounds import Policy
from stopwarden.core.events import AwayPeriod, Reservation
from stopwarden.store import recorded
from stopwarden.store.port import LedgerItem, Parked, RecordLine, SeenWake, SessionRow
from tests.conftest import at
from tests.support.person import Person
from tests.support.written_night import PARSER, ordinary_night

HOSTILE = [
    'title "quoted" \\ back',
    "line\nfeed\r\nand\ttab",
    "\u2028\u2029 separators",
    "\x00\x1b[31m\x07 control",
    "\udc88 lone",
    "</script><!-- & -->",
    '{"stopwarden":"stop","v":1}',
    "日本語 " * 200,
    "‮right to left",
]


@pytest.fixture
def person(tmp_path: pathlib.Path) -> Person:
    """The morning after an ordinary night."""
    made = Person(tmp_path)
    made.now = at("2026-12-01 08:00")
    made.interrupt_after = 99
    with made.store() as store:
        ordinary_night().fill(store, policy=json.dumps(Policy().as_dict()))
    return made


def exported(person: Person, *words: str) -> list[dict[str, Any]]:
    """The lines of an export to standard output."""
    assert person.types("export", "-", *words) == 0, person.complained
    return [json.loads(line) for line in person.said.splitlines()]


def of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["stopwarden"] == kind]


def test_every_line_says_what_it_is_and_the_last_how_many_there_are(person: Person) -> None:
    """Kind and format on every line; first what was asked, last the count, so that a cut file is told."""
    lines = exported(person)
    assert all(line["v"] == 1 for line in lines)
    assert lines[0] == {
        "stopwarden": "export", "v": 1, "program": lines[0]["program"], "at": "2026-12-01T08:00:00Z",
        "zone": "Europe/London", "since": None, "period": None, "session": None,
    }  # fmt: skip
    assert lines[-1] == {"stopwarden": "end", "v": 1, "lines": len(lines)}
    with person.store() as store:
        assert len(of(lines, "line")) == len(store.lines())
        assert len(of(lines, "stop")) == len(store.verdicts())
        assert len(of(lines, "question")) == len(store.parked())
    assert [line["id"] for line in of(lines, "period")] == ["p1"]
    assert of(lines, "period")[0]["policy"]["skew"] == Policy().skew
    assert [line["id"] for line in of(lines, "session")] == [PARSER]


def test_every_instant_is_in_utc_and_says_so(person: Person) -> None:
    """No field that holds an instant is a bare number, but for a stop's `at`, which has its `time` beside it."""
    with person.store() as store:
        store.save_wake(SeenWake(session=PARSER, id="w", first_seen=at("2026-11-30 23:10"), fires_at=1, gone_at=2))
        store.add_ledger_item(LedgerItem(project="p", title="x", created_at=5, changed_at=6, verified_at=7))
        held = Reservation(item="i", session="S", copy="c", claimed_at=1, expires_at=2, place="p", token=1)
        store.save_reservation(held.replace(granted_at=1, first_seen=3, released_at=4))

    def bare(value: Any, name: str = "") -> list[str]:
        if isinstance(value, dict):
            return [found for key, part in value.items() for found in bare(part, key)]
        if isinstance(value, list):
            return [found for part in value for found in bare(part, name)]
        instant = name in ("since", "until", "at", "time") or name.endswith(("_at", "first_seen", "_since"))
        return [name] if instant and isinstance(value, int) else []

    lines = exported(person)
    for line in lines:
        if line["stopwarden"] == "stop":
            line = {"time": line["time"], "at": None}
            assert line["time"].endswith("Z")
        assert bare({key: part for key, part in line.items() if key != "policy"}) == [], line
    assert of(lines, "session")[0]["wakes"][0]["first_seen"] == "2026-11-30T23:10:00Z"


def test_the_stops_of_an_export_are_replayed(person: Person) -> None:
    """Both forms are read by `replay`, which comes to the same verdicts."""
    for words in ((), ("--stops",)):
        assert person.types("export", "night.jsonl", "--force", *words) == 0
        file = person.repo / "night.jsonl"
        with person.store() as store:
            stops = list(recorded.read_stops(file.read_bytes().splitlines()))
            assert [stop.row.id for stop in stops] == [row.id for row in store.verdicts()]
            for stop, row in zip(stops, store.verdicts(), strict=True):
                assert json.loads(stop.row.body) == json.loads(row.body)
                stop.decoded()
    assert {line["stopwarden"] for line in map(json.loads, file.read_text().splitlines())} == {"stop"}


def test_only_what_belongs_to_a_period_a_session_or_a_time_is_written(person: Person) -> None:
    """What else is recorded is left out; a hole is told all the same."""
    with person.store() as store:
        store.add_period(AwayPeriod(id="q2", since=at("2026-12-01 08:00"), until=None), "{}")
        store.append([RecordLine(at=at("2026-12-01 08:00"), kind="away", session="other", period="q2")])
        store.append([RecordLine(at=5, kind="forgotten", text='{"verdicts":3}')])
        store.save_session(SessionRow(id="other", last_event_at=at("2026-12-01 08:00")))
        store.add_ledger_item(LedgerItem(project="p", title="x", changed_at=at("2026-12-01 08:00")))
    whole = exported(person)
    assert len(of(whole, "period")) == len(of(whole, "session")) == 2
    one = exported(person, "--period", "q2")
    assert [line["kind"] for line in of(one, "line")] == ["away"]
    assert [line["id"] for line in of(one, "session")] == ["other"]
    assert of(one, "stop") == of(one, "item") == []
    assert of(one, "forgotten")[0]["verdicts"] == 3
    mine = exported(person, "--session", "7e15")
    assert {line["session"] for line in of(mine, "line")} == {PARSER}
    assert of(mine, "stop")
    late = exported(person, "--since", "07:50")
    assert [line["kind"] for line in of(late, "line")] == ["away"]
    assert of(late, "stop") == []
    assert len(of(late, "item")) == 1


@pytest.mark.parametrize("title", HOSTILE, ids=range(len(HOSTILE)))
def test_no_title_breaks_a_line(person: Person, title: str) -> None:
    """Whatever stands in a title, a line stays one line of ASCII, and the title comes back as it is stored."""
    with person.store() as store:
        store.save_session(SessionRow(id="h", title=title, last_event_at=person.now))
        store.append([RecordLine(at=person.now, kind="item_done", session="h", period="p1", text=title, item=title)])
        store.park(Parked(at=person.now, session="h", period="p1", kind="question", digest="d", text=title))
        store.add_ledger_item(LedgerItem(project=title, title=title, verify=title))
        there = store.session("h")
    assert there is not None
    assert person.types("export", "x.jsonl") == 0
    raw = (person.repo / "x.jsonl").read_bytes()
    assert raw.isascii()
    assert not any(byte < 32 for byte in raw.replace(b"\n", b""))
    lines = [json.loads(line) for line in raw.split(b"\n")[:-1]]
    assert lines[-1]["lines"] == len(lines)
    assert of(lines, "item")[0]["title"] == there.title
    assert next(line for line in of(lines, "session") if line["id"] == "h")["title"] == there.title


def test_a_file_is_whole_or_not_there_and_for_the_user_alone(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted export leaves the old file; one that is there is replaced only when told to."""
    target = person.repo / "out.jsonl"
    target.write_text("mine")
    assert person.types("export", "out.jsonl") == 2
    assert "--force" in person.complained
    monkeypatch.setattr(recorded, "line_of", _interrupted)
    assert person.types("export", "out.jsonl", "--force") == 130
    assert target.read_text() == "mine"
    monkeypatch.undo()
    assert person.types("export", "out.jsonl", "--force", "--json") == 0
    told = json.loads(person.said)
    assert told["written"] == len(target.read_text().splitlines())
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in person.repo.iterdir() if path.name.startswith(".stopwarden-")] == []
    assert person.types("export", "no/such/place.jsonl") == 4
    assert "cannot be written" in person.complained


def _interrupted(*_: Any) -> str:
    raise KeyboardInterrupt


def test_instants_beyond_all_calendars_are_written_as_the_last_there_is(person: Person) -> None:
    """A clock gone mad stops no export."""
    with person.store() as store:
        store.append([RecordLine(at=2**70, kind="x", period="p1")])
    told = {line["kind"]: line["at"] for line in of(exported(person), "line")}
    assert told["x"] == "9999-12-31T23:59:59Z"


def test_every_field_of_an_export_is_in_its_page(person: Person) -> None:
    """docs/export.md names each kind and each field."""
    with person.store() as store:
        store.add_ledger_item(LedgerItem(project="p", title="x"))
        store.save_wake(SeenWake(session=PARSER, id="w"))
        held = Reservation(item="i", session="S", copy="c", claimed_at=1, expires_at=2, place="p", token=1)
        store.save_reservation(held)
    assert person.types("forget", "--period", "p1", "--yes") == 0
    with person.store() as store:
        ordinary_night().fill(store, policy="{}")
    page = (pathlib.Path(__file__).parent.parent / "docs" / "export.md").read_text(encoding="utf-8")
    lines = exported(person)
    kinds = {line["stopwarden"] for line in lines}
    assert kinds == {
        "export",
        "period",
        "session",
        "line",
        "forgotten",
        "question",
        "item",
        "reservation",
        "stop",
        "end",
    }
    for line in lines:
        assert f"`{line['stopwarden']}`" in page
        for name in line:
            assert name in ("stopwarden", "v") or f"`{name}`" in page, (line["stopwarden"], name)
        for wake in line.get("wakes", ()):
            assert all(f"`{name}`" in page for name in wake)
