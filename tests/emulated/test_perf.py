"""Stock Linux' own perf driver on the trace unit's model: what is decoded is what the machine executed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from compare import Decoded, assert_same, instructions, of_function
from compiling import build
from executed import Executed, Truth
from machine import Machine, Run
from perf_data import aux_streams
from perf_decoder import KEEP_OBJECTS, PerfDecoder, keep

from ptkit import _core

pytestmark = pytest.mark.emulated

ROUNDS = 300
PERF = "perf"  # its decoder, beside our engines
ENGINES = [*_core.engines(), PERF]


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
        return f"host log tracing\n{perf}\nhost log never\n{keep(self.name, data)}"


WORK = "filter work @ /bin/rounds"
# On one CPU.
ONE = [
    Recording("user", "-e intel_pt//u", "true"),
    Recording("both", "--kcore -e intel_pt//", "ls /proc", cpl=None),
    Recording("timed", "-e intel_pt/cyc,mtc,tsc,cyc_thresh=2/", "ls /proc", cpl=None),
    Recording("tips", "-e intel_pt/noretcomp/", "ls /", cpl=None),
    Recording("small", "-m,16 -e intel_pt//u", "rounds 3000"),
]
KERNEL = Recording("kernel", "-e intel_pt//k", "true", cpl=0)
# On two.
BOTH_CPUS = Recording("all", "-a --kcore -m,512 -e intel_pt//", "sh -c 'rounds 300 & ls /; wait'", cpl=None)
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


@dataclass(frozen=True)
class Recorded:
    """A run of the machine, and who decodes what it recorded.

    Attributes
    ----------
    kcore
        Which recording has the kernel's code, for perf.
    """

    run: Run
    truth: Truth
    perf: PerfDecoder
    recordings: list[Recording]
    kcore: str

    def streams(self, recording: Recording, engine: str) -> list[tuple[Decoded, Executed]]:
        """For each stream of a recording what is decoded, and what its CPU executed meanwhile."""
        part = 2 * self.recordings.index(recording) + 1
        code = self.truth.code(part)
        pairs = []
        for (cpu, _), stream in aux_streams(self.run.files[recording.name]).items():
            executed = self.truth.executed(part, max(cpu, 0))
            if recording.cpl is not None:
                executed = executed.select(executed.cpl == recording.cpl)
            if engine == PERF:
                kcore = None if recording.cpl == 3 else self.kcore
                found = self.perf.instructions(recording.name, cpu if cpu >= 0 else None, kcore)
            else:
                found = instructions(stream, code, engine)
            pairs.append((found, executed))
        return pairs


@pytest.fixture(scope="module")
def program(run_folder: Path) -> Path:
    """tests/programs/rounds.c, at addresses that no other program has."""
    return build("rounds", run_folder, "-static-pie")


def run_all(
    machine: Machine, program: Path, folder: Path, recordings: list[Recording], cpus: int, kcore: str
) -> Recorded:
    """One run of the machine in which everything is recorded."""
    script = "".join(recording.script() for recording in recordings)
    script += "cat /proc/interrupts\n" + KEEP_OBJECTS
    run = machine.run(script, folder, files={"bin/rounds": program}, cpus=cpus)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    perf = PerfDecoder(machine.userland, run.files, folder / "perf")
    return Recorded(run, Truth(run.truth), perf, recordings, kcore)


@pytest.fixture(scope="module")
def one(machine: Machine, program: Path, run_folder: Path) -> Recorded:
    """The run on one CPU."""
    return run_all(machine, program, run_folder / "one", [*ONE, KERNEL], 1, "both")


@pytest.fixture(scope="module")
def two(machine: Machine, program: Path, run_folder: Path) -> Recorded:
    """The run on two CPUs."""
    return run_all(machine, program, run_folder / "two", TWO, 2, "all")


def test_linux_finds_the_trace_unit(one: Recorded) -> None:
    assert b"Performance Events: Skylake events" in one.run.files["dmesg"]
    assert b"unchecked MSR access error: WRMSR to 0x5" not in one.run.files["dmesg"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("recording", ONE, ids=lambda recording: recording.name)
def test_one_cpu(one: Recorded, recording: Recording, engine: str) -> None:
    ((found, executed),) = one.streams(recording, engine)
    assert len(found) > 10_000
    assert_same(found, executed)


# libipt takes the MOV CR3 before SYSRET for the place of TIP.PGD, and leaves out what is between them.
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "libipt"])
def test_kernel_alone(one: Recorded, engine: str) -> None:
    ((found, executed),) = one.streams(KERNEL, engine)
    assert len(found) > 100_000
    assert_same(found, executed)


def test_interrupts_of_the_trace_unit_came(one: Recorded) -> None:
    (line,) = [line.split() for line in one.run.files["log"].decode().splitlines() if "PMI:" in line]
    assert int(line[1]) > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_two_cpus(two: Recorded, engine: str) -> None:
    pairs = two.streams(BOTH_CPUS, engine)
    assert len(pairs) == 2
    for found, executed in pairs:
        assert len(found) > 100_000
        assert_same(found, executed)


@pytest.mark.parametrize("engine", ENGINES)
def test_address_filter(two: Recorded, program: Path, engine: str) -> None:
    ((found, executed),) = two.streams(FILTER, engine)
    assert_same(found, of_function(program, "work", executed, ROUNDS))


@pytest.mark.parametrize("engine", ENGINES)
def test_trace_stop(two: Recorded, program: Path, engine: str) -> None:
    ((found, executed),) = two.streams(STOP, engine)
    expected = of_function(program, "work", executed, ROUNDS)
    count = len(expected.ip)
    before = count // ROUNDS * (ROUNDS // 3)
    assert before <= len(found) < count
    # Linux clears STATUS.Stopped when it lets the program run again, after a switch of tasks.
    after = count - (len(found) - before)
    places = np.arange(count)
    assert_same(found, expected.select((places < before) | (places >= after)))


@pytest.mark.parametrize("engine", ENGINES)
def test_snapshot(two: Recorded, engine: str) -> None:
    pairs = two.streams(SNAPSHOT, engine)
    assert sum(len(found) for found, _ in pairs) > 10_000
    for found, executed in pairs:
        assert not found.errors, str(found.errors)
        starts = np.flatnonzero(executed.ip == found.ip[0]) if len(found) else []
        pieces = (executed.ip[start : start + len(found)] for start in starts)
        assert len(found) == 0 or any(np.array_equal(found.ip, piece) for piece in pieces)
