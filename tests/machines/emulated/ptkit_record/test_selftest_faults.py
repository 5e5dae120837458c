"""`ptkit selftest` in the emulated machine: no fault where there is none, and each planted one by name.

The faults are of the trace unit's model (machine/instrument/faults.h). One boot has all, without page-table
isolation, as Linux has intel_bts only so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boot_image
import pytest
from kernels import build_module, debian_kernel
from machine import Machine, Run

pytestmark = pytest.mark.emulated

# Fault: the check that is meant for it, and what it says.
FAULTS = {
    "time": ("mtc", "the crystal clock advanced by"),
    "filter": ("filter", "instructions outside of the range"),
    "topa": ("regions", "instruction"),
    "interrupt": ("interrupts", "no interrupt (PMI of /proc/interrupts)"),
    "returns": ("returns", "with return compression: instruction"),
}
CHECKS = ("instructions", "returns", "mtc", "filter", "regions", "interrupts")
FLAWLESS = ("tsc", "cyc", "no-time", "losses", "ring", "kernel", "registers", "bts")
OF_DRIVER = ("tsc", "cyc", "losses", "ring", "single-range", "registers")
SCRIPT = """\
insmod /bin/msr.ko || exit 1
python3 /bin/selftest_rounds.py {perf} || exit 1
insmod /bin/ptkit.ko || exit 1
python3 /bin/selftest_rounds.py {driver} || exit 1
rmmod ptkit || exit 1
"""


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """The run with all self-tests."""
    folder = run_folder / "selftest"
    kernel = debian_kernel(machine.folder)
    module, _ = build_module(kernel, folder / "build")
    (registers,) = kernel.image.parents[1].glob("lib/modules/*/kernel/arch/x86/kernel/msr.ko")
    script = SCRIPT.format(
        perf=" ".join(
            [f"none:perf:{','.join(CHECKS + FLAWLESS)}"]
            + [f"{fault}:perf:{','.join(CHECKS)}" for fault in FAULTS]
        ),
        driver=f"none:driver:{','.join(CHECKS + OF_DRIVER)}",
    )
    files = {
        "bin/ptkit.ko": module,
        "bin/msr.ko": registers,
        "bin/selftest_rounds.py": boot_image.GUEST / "selftest_rounds.py",
    }
    run = machine.run(script, folder / "run", files=files, python=True, limit=900, arguments="pti=off")
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


def report(run: Run, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run.files[f"{name}.json"])
    return document


def results(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["check"]: (one["result"], one["detail"]) for one in document["checks"]}


@pytest.mark.parametrize(("backend", "more"), [("perf", FLAWLESS), ("driver", OF_DRIVER)])
def test_no_fault_is_found_where_there_is_none(run: Run, backend: str, more: tuple[str, ...]) -> None:
    document = report(run, f"none-{backend}")
    assert {name: one for name, one in results(document).items() if one[0] != "passed"} == {}
    assert set(results(document)) == {*CHECKS, *more}
    assert run.files[f"none-{backend}.status"] == b"0"


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found_and_named(run: Run, fault: str) -> None:
    check, words = FAULTS[fault]
    document = report(run, f"{fault}-perf")
    assert document["causes"] == [f"perf {check}"], results(document)
    found = next(one for one in document["checks"] if one["check"] == check)
    assert words in found["detail"]
    assert found["suggests"]
    others = [one["check"] for one in document["checks"] if one["result"] != "passed"]
    assert others == [check]
    assert run.files[f"{fault}-perf.status"] == b"1"


def test_report_has_the_processor_of_the_machine(run: Run) -> None:
    machine = report(run, "none-perf")["machine"]
    assert (machine["family"], machine["model"]) == (6, 85)
    words = {(row["leaf"], row["subleaf"]): row for row in machine["cpuid"]}
    assert int(words["0x14", "0x0"]["ebx"], 16) & 0xF == 0xF
