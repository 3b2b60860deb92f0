"""Faults put into the machines on purpose: the simulator or the model checker finds each of them."""

from __future__ import annotations

import pytest

from tests import machine_faults
from tests.machine_faults import FAULTS, UNSEEN, Found, MachineFault


def test_there_are_faults_enough_and_each_stands_for_one_place() -> None:
    """At least forty rules, told apart; the text of each stands once in its module, and the patch can be compiled."""
    assert len({fault.what for fault in FAULTS}) == len(FAULTS) >= 40
    for fault in FAULTS:
        compile(machine_faults.patched(fault), fault.module, "exec")
    assert set(UNSEEN) <= {fault.what for fault in FAULTS}


def test_the_page_has_a_line_for_each_fault() -> None:
    """docs/faults.md is written by `make faults`; a fault that is new or gone makes it old."""
    text = machine_faults.PAGE.read_text(encoding="utf-8")
    told = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")][1:]
    assert told == [fault.what for fault in FAULTS]


def test_a_fault_that_nobody_finds_is_told_as_such() -> None:
    """The page does not pass over what is not found, and says why where that is known."""
    found = Found("simulator", 3, "I1: three")
    text = machine_faults.page([(FAULTS[0], found), (MachineFault("odd", "guard", "", ""), Found("", 0, ""))])
    assert f"| {FAULTS[0].what} | `{FAULTS[0].module}` | simulator | 3 seeds | I1 |" in text
    assert "| odd | `guard` | **nobody** |" in text
    assert "1 of 2 are found" in text


def found_soon() -> list[MachineFault]:
    """Those that the page says the simulator finds within a few seeds; the others take minutes each: `make faults`."""
    soon = set()
    for line in machine_faults.PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if len(cells) > 3 and cells[2] == "simulator" and int(cells[3].split()[0].replace(",", "")) <= 12:
            soon.add(cells[0])
    return [fault for fault in FAULTS if fault.what in soon and fault.what not in UNSEEN]


@pytest.mark.slow
@pytest.mark.parametrize("fault", found_soon(), ids=lambda fault: fault.what)
def test_a_fault_of_the_machines_is_found(fault: MachineFault) -> None:
    """Within 2,000 seeds a promise breaks, or within its bounds the model checker comes to a broken rule."""
    assert machine_faults.hunted(fault).by
