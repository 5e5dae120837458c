"""Stock Linux' own perf driver on the trace unit's model: what is decoded is what the machine executed."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from compare import assert_same, instructions
from compiling import build
from executed import Executed, Truth
from machine import Machine, Run
from perf_data import aux_streams

import ptkit
from ptkit import _core

pytestmark = pytest.mark.emulated

ROUNDS = 300


@dataclass(frozen=True)
class Recording:
    """One call of perf record."""

    name: str
    options: str
    program: str
    cpl: int | None = 3  # None: all

    def script(self) -> str:
        """Lines of the guest's script: a part of the log of the truth for it, and one that is empty."""
        data = f"/tmp/{self.name}.data"
        perf = f"perf record {self.options} -o {data} {self.program}"
        return f"host log tracing\n{perf}\nhost log never\nhost put {self.name} {data}\n"


WORK = "filter work @ /bin/rounds"
# On one CPU.
ONE = [
    Recording("user", "-e intel_pt//u", "true"),
    Recording("both", "-e intel_pt//", "ls /proc", cpl=None),
    Recording("timed", "-e intel_pt/cyc,mtc,tsc,cyc_thresh=2/", "ls /proc", cpl=None),
    Recording("tips", "-e intel_pt/noretcomp/", "ls /", cpl=None),
    Recording("small", "-m,16 -e intel_pt//u", "rounds 3000"),
]
KERNEL = Recording("kernel", "-e intel_pt//k", "true", cpl=0)
# On two.
BOTH_CPUS = Recording("all", "-a -m,512 -e intel_pt//", "sh -c 'rounds 300 & ls /; wait'", cpl=None)
FILTER = Recording("filter", f"-m,64 -e intel_pt//u --filter '{WORK}'", f"rounds {ROUNDS}")
STOP = Recording(
    "stop",
    f"-m,64 -e intel_pt//u --filter '{WORK} , tracestop handler @ /bin/rounds'",
    f"rounds {ROUNDS} {ROUNDS // 3}",
)
SNAPSHOT = Recording(
    "snapshot", "-S0x8000 -m,8 -e intel_pt//u", "sh -c 'rounds 3000; kill -USR2 $PPID; sleep 1'"
)
TWO = [BOTH_CPUS, FILTER, STOP, SNAPSHOT]


@pytest.fixture(scope="module")
def program(run_folder: Path) -> Path:
    """tests/programs/rounds.c, at addresses that no other program has."""
    return build("rounds", run_folder, "-static-pie")


def run_all(machine: Machine, program: Path, folder: Path, recordings: list[Recording], cpus: int) -> Run:
    """One run of the machine in which everything is recorded."""
    script = "".join(recording.script() for recording in recordings) + "cat /proc/interrupts\n"
    run = machine.run(script, folder, files={"bin/rounds": program}, cpus=cpus)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


@pytest.fixture(scope="module")
def one(machine: Machine, program: Path, run_folder: Path) -> Run:
    """The run on one CPU."""
    return run_all(machine, program, run_folder / "one", [*ONE, KERNEL], 1)


@pytest.fixture(scope="module")
def two(machine: Machine, program: Path, run_folder: Path) -> Run:
    """The run on two CPUs."""
    return run_all(machine, program, run_folder / "two", TWO, 2)


def streams_of(
    run: Run, recordings: list[Recording], recording: Recording, engine: str
) -> list[tuple[ptkit.Table, Executed]]:
    """For each stream of a recording what is decoded, and what its CPU executed meanwhile."""
    truth = Truth(run.truth)
    part = 2 * recordings.index(recording) + 1
    code = truth.code(part)
    pairs = []
    for (cpu, _), stream in aux_streams(run.files[recording.name]).items():
        executed = truth.executed(part, max(cpu, 0))
        if recording.cpl is not None:
            executed = executed.select(executed.cpl == recording.cpl)
        pairs.append((instructions(stream, code, engine), executed))
    return pairs


def function(program: Path, name: str) -> tuple[int, int]:
    """Offset and size of a function in the program's file."""
    symbols = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    for line in symbols.splitlines():
        words = line.split()
        if words[-1] == name and len(words) == 4:
            return int(words[0], 16), int(words[1], 16)
    raise AssertionError(f"{program} has no function {name}")


def of_work(program: Path, executed: Executed) -> Executed:
    """The instructions of the function `work`, which was called ROUNDS times."""
    start, size = function(program, "work")
    entries, counts = np.unique(executed.ip[executed.ip % 4096 == start % 4096], return_counts=True)
    (entry,) = entries[counts == ROUNDS]
    return executed.select((executed.ip >= entry) & (executed.ip < entry + size))


def test_linux_finds_the_trace_unit(one: Run) -> None:
    assert b"Performance Events: Skylake events" in one.files["dmesg"]
    assert b"unchecked MSR access error: WRMSR to 0x5" not in one.files["dmesg"]


@pytest.mark.parametrize("engine", _core.engines())
@pytest.mark.parametrize("recording", ONE, ids=lambda recording: recording.name)
def test_one_cpu(one: Run, recording: Recording, engine: str) -> None:
    ((found, executed),) = streams_of(one, ONE, recording, engine)
    assert len(found) > 10_000
    assert_same(found, executed)


# libipt takes the MOV CR3 before SYSRET for the place of TIP.PGD, and leaves out what is between them.
@pytest.mark.parametrize("engine", [engine for engine in _core.engines() if engine != "libipt"])
def test_kernel_alone(one: Run, engine: str) -> None:
    ((found, executed),) = streams_of(one, [*ONE, KERNEL], KERNEL, engine)
    assert len(found) > 100_000
    assert_same(found, executed)


def test_interrupts_of_the_trace_unit_came(one: Run) -> None:
    (line,) = [line.split() for line in one.files["log"].decode().splitlines() if "PMI:" in line]
    assert int(line[1]) > 0


@pytest.mark.parametrize("engine", _core.engines())
def test_two_cpus(two: Run, engine: str) -> None:
    pairs = streams_of(two, TWO, BOTH_CPUS, engine)
    assert len(pairs) == 2
    for found, executed in pairs:
        assert len(found) > 100_000
        assert_same(found, executed)


@pytest.mark.parametrize("engine", _core.engines())
def test_address_filter(two: Run, program: Path, engine: str) -> None:
    ((found, executed),) = streams_of(two, TWO, FILTER, engine)
    assert_same(found, of_work(program, executed))


@pytest.mark.parametrize("engine", _core.engines())
def test_trace_stop(two: Run, program: Path, engine: str) -> None:
    ((found, executed),) = streams_of(two, TWO, STOP, engine)
    expected = of_work(program, executed)
    count = len(expected.ip)
    before = count // ROUNDS * (ROUNDS // 3)
    assert before <= len(found) < count
    # Linux clears STATUS.Stopped when it lets the program run again, after a switch of tasks.
    after = count - (len(found) - before)
    places = np.arange(count)
    assert_same(found, expected.select((places < before) | (places >= after)))


@pytest.mark.parametrize("engine", _core.engines())
def test_snapshot(two: Run, engine: str) -> None:
    pairs = streams_of(two, TWO, SNAPSHOT, engine)
    assert sum(len(found) for found, _ in pairs) > 10_000
    for found, executed in pairs:
        assert len(found.errors) == 0, str(found.errors)
        starts = np.flatnonzero(executed.ip == found["ip"][0]) if len(found) else []
        pieces = (executed.ip[start : start + len(found)] for start in starts)
        assert len(found) == 0 or any(np.array_equal(found["ip"], piece) for piece in pieces)
