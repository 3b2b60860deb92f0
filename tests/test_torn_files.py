"""Any file of ours torn or changed at any byte: a clear error or nothing worse, the rest kept, and the next command works."""

from __future__ import annotations

import json
import pathlib
import random
import re
import shutil

import pytest

from stopwarden.core.bounds import DAY
from stopwarden.core.events import Reservation
from stopwarden.store import marker, place
from stopwarden.store.port import LedgerItem
from stopwarden.store.sqlite import open_sqlite
from stopwarden.work import reservations
from tests.support.person import Person
from tests.support.written_night import ordinary_night

COMMANDS = (("status",), ("report",), ("export", "-"), ("forget", "--older-than", "90d", "--yes"), ("report", "--json"))
SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 40))]
SESSION = "5d0c7a52-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A state directory with a night behind it and one that runs, holds, a ledger, a spool and faults."""
    home = tmp_path_factory.mktemp("torn")
    (home / "home").mkdir()
    person = Person(home)
    with person.store() as store:
        ordinary_night().fill(store, policy="{}")
        store.add_ledger_item(LedgerItem(project="p", title="ledger item"))
        held = Reservation(item="i", session=SESSION, copy="c", claimed_at=1, expires_at=2**40, place="p", token=1)
        reservations.show_sign(person.state_dir, SESSION)
        store.save_reservation(held.replace(granted_at=1))
    person.now += DAY
    person.away_since()
    for number in range(20):
        person.spools("prompt", f"spooled{number}", by="person")
    faults = pathlib.Path(person.state_dir, "faults")
    with faults.open("a") as file:
        file.writelines(f"{person.now - 60 + number} {SESSION} fault it broke\n" for number in range(9))
    with person.store() as store:  # and a log that is not written back
        store.save_fact("some", "fact", "value")
    return home


def person_of(template: pathlib.Path, tmp_path: pathlib.Path) -> Person:
    """A copy of that person's machine."""
    home = tmp_path / "copy"
    shutil.copytree(template, home)
    made = Person(home)
    made.now += DAY + 100
    made.interrupt_after = 99
    return made


def torn(data: bytes, chance: random.Random) -> bytes:
    """The bytes cut off, a few of them changed, a block gone to zeros, or a piece written twice."""
    kind, at = chance.randrange(4), chance.randrange(max(1, len(data)))
    if kind == 0:
        return data[:at]
    if kind == 1:
        made = bytearray(data)
        for _ in range(chance.choice((1, 1, 3, 20))):
            made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
        return bytes(made)
    size = chance.choice((1, 16, 512, 4096))
    if kind == 2:
        return data[:at] + bytes(min(size, len(data) - at)) + data[at + size :]
    return data[:at] + data[at : at + size] + data[at:]


def runs(person: Person) -> dict[tuple[str, ...], int]:
    """The commands' exit codes. Whatever is no error of ours would leave `types` as an exception."""
    codes = {}
    for words in COMMANDS:
        codes[words] = person.types(*words)
        if codes[words] == 4:
            assert person.complained.startswith("stopwarden: "), person.complained
            assert person.complained.count(".") >= 2, f"what happened, what was kept, what to do: {person.complained}"
        assert codes[words] in (0, 1, 2, 4), person.complained
        for path in re.findall(r"set aside as (\S+[0-9Z])\.", person.complained):
            assert pathlib.Path(path).stat().st_size > 0 or "-wal" in path, "kept, not deleted"
            assert person.types("report") in (0, 1), "the next command that writes begins a new one"
    return codes


def content(person: Person) -> dict[str, object]:
    """What the database holds."""
    store = open_sqlite(person.state_dir)
    try:
        return {
            "verdicts": store.verdicts(),
            "lines": [line for line in store.lines() if line.kind != "forgotten"],
            "periods": store.periods(),
            "parked": store.parked(),
            "ledger": store.ledger_items(),
            "held": store.reservation("p", "i"),
        }
    finally:
        store.close()


@pytest.mark.case("A96")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_torn_database_is_set_aside_or_read_and_the_next_command_works(
    template: pathlib.Path, tmp_path: pathlib.Path, seed: int
) -> None:
    """The database or its log: nothing is deleted, the person is told where it is, and then all goes on."""
    person, chance = person_of(template, tmp_path), random.Random(seed)
    name = place.DATABASE + chance.choice(("", "", "-wal"))
    path = pathlib.Path(person.state_dir, name)
    damaged = torn(path.read_bytes(), chance)
    path.write_bytes(damaged)
    runs(person)
    runs(person)
    aside = [one for one in pathlib.Path(person.state_dir).iterdir() if ".damaged-" in one.name]
    if aside:
        assert person.types("status") in (0, 1)
        assert marker.read(person.state_dir), "the time away holds on"
        assert person.types("forget", "--damaged", "--dry-run") == 0
        assert all(one.name in person.said for one in aside)
    for words in (("back",), ("away", "for", "8h")):
        if person.types(*words) == 4:  # what is damaged may be met only now
            assert "set aside" in person.complained
            assert person.types(*words) in (0, 1), person.complained


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["spool", "faults", "away.json", f"held/{SESSION}"])
def test_a_torn_file_beside_the_database_costs_nothing_that_the_database_holds(
    template: pathlib.Path, tmp_path: pathlib.Path, name: str, seed: int
) -> None:
    """Spool, faults, mark and signs: what is recorded stays, unreadable counts as away, and a later line is heard."""
    person, chance = person_of(template, tmp_path), random.Random(f"{name}{seed}")
    before = content(person)
    path = pathlib.Path(person.state_dir, name)
    path.write_bytes(torn(path.read_bytes() or b"sign", chance))
    runs(person)
    after = content(person)
    assert after["verdicts"] == before["verdicts"]
    assert after["ledger"] == before["ledger"]
    assert after["held"] == before["held"]
    assert after["parked"] == before["parked"]
    assert all(line in list(after["lines"]) for line in list(before["lines"]))  # type: ignore[call-overload]
    assert marker.read(person.state_dir) is not None, "a torn mark never lets a session go"
    with pathlib.Path(person.state_dir, "spool").open("a") as file:
        file.write("\n")  # whatever was torn there ends here
    person.spools("prompt", "latecomer", by="person")
    assert person.types("status", "--json") in (0, 1)
    with person.store() as store:
        assert store.session("latecomer") is not None


@pytest.mark.parametrize("jump", [-40 * 365 * DAY, -400 * DAY, -3 * DAY, 3 * DAY, 500 * DAY, 40 * 365 * DAY])
def test_a_clock_set_back_or_forward_over_the_record_loses_nothing(
    template: pathlib.Path, tmp_path: pathlib.Path, jump: int
) -> None:
    """Report, status, export and the limits under a clock far off, and again under the right one."""
    person = person_of(template, tmp_path)
    now, before = person.now, content(person)
    person.now = max(1, now + jump)
    for words in (("report",), ("status",), ("export", "-"), ("report", "--json"), ("explain", "--list")):
        assert person.types(*words) in (0, 1, 2), (words, person.complained)
    assert person.types("back") in (0, 1)
    person.now = now + 60
    assert person.types("report", "--json") == 0
    assert json.loads(person.said)["periods"]
    after = content(person)
    assert after["verdicts"] == before["verdicts"]
    assert all(line in list(after["lines"]) for line in list(before["lines"]))  # type: ignore[call-overload]
