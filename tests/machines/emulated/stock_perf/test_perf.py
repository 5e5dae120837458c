"""Stock Linux' own perf driver on the trace unit's model: what is decoded is what the machine executed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from compare import Decoded, assert_same, instructions, instructions_of, of_function
from compiling import build
from executed import Executed
from machine import Machine
from perf_data import aux_streams
from stock_recordings import Recorded, Recording, run_all

from ptkit import _core

pytestmark = pytest.mark.emulated

ROUNDS = 300
PERF = "perf"  # its decoder, beside our engines
OPENED = "opened"  # our decoder, for the file as ptkit.open() reads it, with code by its records
ENGINES = [*_core.engines(), PERF, OPENED]


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
class Decoders:
    """A run of the machine, and who decodes what it recorded.

    Attributes
    ----------
    kcore
        Which recording has the kernel's code, where that was traced.
    """

    recorded: Recorded
    kcore: str

    def streams(self, recording: Recording, engine: str) -> list[tuple[Decoded, Executed]]:
        """For each stream of a recording what is decoded, and what its CPU executed meanwhile."""
        recorded = self.recorded
        path = recorded.perf.path(recording.name, recording.name if recording.cpl == 3 else self.kcore)
        trace = recorded.opened(path) if engine == OPENED else None
        code = recorded.truth.code(recorded.part(recording))
        pairs = []
        for number, ((cpu, _), stream) in enumerate(aux_streams(recorded.run.files[recording.name]).items()):
            if trace is not None:
                found = instructions_of(trace, number)
            elif engine == PERF:
                found = recorded.perf.instructions(path, cpu if cpu >= 0 else None)
            else:
                found = instructions(stream, code, engine)
            pairs.append((found, recorded.executed(recording, max(cpu, 0))))
        return pairs


@pytest.fixture(scope="module")
def program(run_folder: Path) -> Path:
    """tests/programs/times/rounds.c, at addresses that no other program has."""
    return build("rounds", run_folder, "-static-pie")


@pytest.fixture(scope="module")
def one(machine: Machine, program: Path, run_folder: Path) -> Decoders:
    """The run on one CPU."""
    files = {"bin/rounds": program}
    recorded = run_all(
        machine, run_folder / "one", [*ONE, KERNEL], files=files, cpus=1, after="cat /proc/interrupts\n"
    )
    return Decoders(recorded, "both")


@pytest.fixture(scope="module")
def two(machine: Machine, program: Path, run_folder: Path) -> Decoders:
    """The run on two CPUs."""
    return Decoders(run_all(machine, run_folder / "two", TWO, files={"bin/rounds": program}, cpus=2), "all")


def test_linux_finds_the_trace_unit(one: Decoders) -> None:
    assert b"Performance Events: Skylake events" in one.recorded.run.files["dmesg"]
    assert b"unchecked MSR access error: WRMSR to 0x5" not in one.recorded.run.files["dmesg"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("recording", ONE, ids=lambda recording: recording.name)
def test_one_cpu(one: Decoders, recording: Recording, engine: str) -> None:
    ((found, executed),) = one.streams(recording, engine)
    assert len(found) > 10_000
    assert_same(found, executed)


# libipt binds TIP.PGD to the MOV CR3 before SYSRET, and leaves out the instructions between them.
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "libipt"])
def test_kernel_alone(one: Decoders, engine: str) -> None:
    ((found, executed),) = one.streams(KERNEL, engine)
    assert len(found) > 100_000
    assert_same(found, executed)


def test_interrupts_of_the_trace_unit_came(one: Decoders) -> None:
    (line,) = [line.split() for line in one.recorded.run.files["log"].decode().splitlines() if "PMI:" in line]
    assert int(line[1]) > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_two_cpus(two: Decoders, engine: str) -> None:
    pairs = two.streams(BOTH_CPUS, engine)
    assert len(pairs) == 2
    for found, executed in pairs:
        assert len(found) > 100_000
        assert_same(found, executed)


@pytest.mark.parametrize("engine", ENGINES)
def test_address_filter(two: Decoders, program: Path, engine: str) -> None:
    ((found, executed),) = two.streams(FILTER, engine)
    assert_same(found, of_function(program, "work", executed, ROUNDS))


@pytest.mark.parametrize("engine", ENGINES)
def test_trace_stop(two: Decoders, program: Path, engine: str) -> None:
    ((found, executed),) = two.streams(STOP, engine)
    expected = of_function(program, "work", executed, ROUNDS)
    count = len(expected.ip)
    before = count // ROUNDS * (ROUNDS // 3)
    assert before <= len(found) < count
    # Linux clears STATUS.Stopped when it lets the program run again, after a switch of tasks.
    after = count - (len(found) - before)
    positions = np.arange(count)
    assert_same(found, expected.select((positions < before) | (positions >= after)))


@pytest.mark.parametrize("engine", ENGINES)
def test_snapshot(two: Decoders, engine: str) -> None:
    pairs = two.streams(SNAPSHOT, engine)
    assert sum(len(found) for found, _ in pairs) > 10_000
    for found, executed in pairs:
        assert not found.errors, str(found.errors)
        starts = np.flatnonzero(executed.ip == found.ip[0]) if len(found) else []
        pieces = (executed.ip[start : start + len(found)] for start in starts)
        assert len(found) == 0 or any(np.array_equal(found.ip, piece) for piece in pieces)
