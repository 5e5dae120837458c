"""Stock Linux' own perf driver on the trace unit's model: what is decoded is what the machine executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from compare import assert_same, instructions
from executed import Truth
from machine import Machine, Run
from perf_data import aux_streams

from ptkit import _core

pytestmark = pytest.mark.emulated

# name: (event, program); each is recorded while the log of the truth is on.
RECORDINGS = {
    "user": ("intel_pt//u", "true"),
    "both": ("intel_pt//", "ls /proc"),
    "timed": ("intel_pt/cyc,mtc,tsc,cyc_thresh=2/", "ls /proc"),
    "tips": ("intel_pt/noretcomp/", "ls /"),
}


def record(name: str, event: str, program: str) -> str:
    """Lines of the guest's script: one part of the log of the truth each, and one that is empty."""
    data = f"/tmp/{name}.data"
    perf = f"perf record -e {event} -o {data} {program}"
    return f"host log tracing\n{perf}\nhost log never\nhost put {name} {data}\n"


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """One run of the machine in which everything is recorded."""
    script = "".join(record(name, *what) for name, what in RECORDINGS.items())
    run = machine.run(script, run_folder / "perf")
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


@pytest.fixture(scope="module")
def truth(run: Run) -> Truth:
    """What was executed."""
    return Truth(run.truth)


def test_linux_finds_the_trace_unit(run: Run) -> None:
    assert b"Performance Events: Skylake events" in run.files["dmesg"]
    assert b"unchecked MSR access error: WRMSR to 0x5" not in run.files["dmesg"]


@pytest.mark.parametrize("engine", _core.engines())
@pytest.mark.parametrize("name", RECORDINGS)
def test_perf_recordings_are_what_was_executed(run: Run, truth: Truth, name: str, engine: str) -> None:
    part = 2 * list(RECORDINGS).index(name) + 1
    executed = truth.executed(part)
    if RECORDINGS[name][0].endswith("/u"):
        executed = executed.select(executed.cpl == 3)
    assert len(executed.ip) > 10_000
    (stream,) = aux_streams(run.files[name]).values()
    assert_same(instructions(stream, truth.code(part, int(executed.cr3[-1])), engine), executed)
