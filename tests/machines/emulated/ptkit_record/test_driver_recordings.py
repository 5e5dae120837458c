"""`ptkit record --backend driver` in the emulated machine: its bundles decode to what was executed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import boot_image
import numpy as np
import pytest
from compare import Decoded, assert_same
from executed import Executed, Truth
from kernels import build_module, debian_kernel
from machine import Machine, Run

import ptkit

pytestmark = pytest.mark.emulated

MULTI_PROCESS = "-- /bin/multi_process /bin/busybox true"
# name: options; the levels are read out of them.
RECORDINGS = {
    "program": f"--levels user {MULTI_PROCESS}",
    "program_both": f"--levels both {MULTI_PROCESS}",
    "ring": f"--levels both --ring 64K {MULTI_PROCESS}",
}


def record(name: str, options: str) -> str:
    """Lines of the guest's script: one part of the log of the truth each, and one that is empty."""
    return (
        f"host log tracing\n"
        f"ptkit record --json --backend driver -o {name}.ptk {options} 2> {name}.json || cat {name}.json\n"
        f"host log never\nhost put {name}.ptk {name}.ptk\nhost put {name}.json {name}.json\n"
    )


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """One run of the machine in which everything is recorded."""
    folder = run_folder / "recorder"
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    source = boot_image.GUEST / "multi_process.c"
    multi_process = boot_image.compile_static(source, folder / "multi_process", "-pthread")
    script = "insmod /bin/ptkit.ko || exit 1\nptkit doctor --json > doctor\nhost put doctor doctor\n"
    script += "".join(record(name, options) for name, options in RECORDINGS.items())
    script += "rmmod ptkit || exit 1\n"
    files = {"bin/ptkit.ko": module, "bin/multi_process": multi_process}
    run = machine.run(script, folder / "run", files=files, python=True, limit=900)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


@pytest.fixture(scope="module")
def truth(run: Run) -> Truth:
    """Executed instructions."""
    return Truth(run.truth)


def opened(run: Run, name: str, folder: Path, engine: str = "ptkit") -> ptkit.Trace:
    """A bundle of the run."""
    path = folder / f"{name}.ptk"
    path.write_bytes(run.files[path.name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(path, engine=engine)


def wanted(executed: Executed, options: str) -> Executed:
    """Those of the levels that were asked for."""
    if "--levels both" in options:
        return executed
    return executed.select((executed.cpl == 3) == ("--levels user" in options))


@pytest.mark.parametrize("name", RECORDINGS)
def test_bundles_decode_to_what_was_executed(run: Run, truth: Truth, name: str, tmp_path: Path) -> None:
    report = json.loads(run.files[f"{name}.json"])
    assert report["exit_status"] == 0
    executed = wanted(truth.executed(2 * list(RECORDINGS).index(name) + 1), RECORDINGS[name])
    table = opened(run, name, tmp_path).instructions(columns=["ip"])
    found = Decoded(table["ip"], [str(error) for error in [table.errors] if len(error)])
    assert len(found) > 1000
    if "--ring" in RECORDINGS[name]:
        assert len(found) < len(executed.ip)
        executed = executed.select(np.arange(len(executed.ip)) >= len(executed.ip) - len(found))
    assert_same(found, executed)


def test_doctor_says_what_the_driver_can_do(run: Run) -> None:
    report = json.loads(run.files["doctor"])
    driver = next(one for one in report["backends"] if one["name"] == "driver")
    assert driver["available"]
    assert "4 address filters" in driver["detail"]
