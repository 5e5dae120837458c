"""`ptkit record --backend perf` in the emulated machine: its bundles decode to what was executed."""

from __future__ import annotations

import json
from pathlib import Path

import boot_image
import numpy as np
import pytest
from compare import Decoded, assert_same, instructions_of, of_function
from compiling import build
from machine import Machine
from ptkit_recordings import Recorded, Recording, run_all

import ptkit
from ptkit.planning.packet_bytes import count_bytes
from ptkit.planning.settings import Settings, factors

pytestmark = pytest.mark.emulated

MULTI_PROCESS = "-- /bin/multi_process /bin/busybox true"


ROUNDS = 300
WHOLE = [
    Recording("program", f"--levels user {MULTI_PROCESS}"),
    Recording("both", f"--levels both {MULTI_PROCESS}", cpl=None),
    Recording("kernel", "--levels kernel -- true", cpl=0),
    Recording("timed", f"--levels both --timing tsc,mtc,cyc --cyc-threshold 2 {MULTI_PROCESS}", cpl=None),
    Recording(
        "attached", "-p $P --seconds 0.2", before="rounds 0 > /dev/null & P=$!\n", after="kill -INT $P\n"
    ),
    Recording("thread", f"--per-thread -- rounds {ROUNDS}"),
    Recording("process", f"--no-children {MULTI_PROCESS}"),
    Recording("terms", f"--event noretcomp,mtc=0,mtc_period=0 {MULTI_PROCESS}"),
    Recording("whole", "-a --levels user -- /bin/busybox true"),
    Recording("until", "--trigger 'stop at end' -- rounds 3000"),
    Recording("signal", "--ring 64K --trigger 'snapshot on USR1' -- rounds 3000 1500"),
]
FILTER = Recording("filter", f"--filter 'filter work @ /bin/rounds' -- rounds {ROUNDS}")
RING = Recording("ring", f"--levels both --ring 64K {MULTI_PROCESS}", cpl=None)
STOP = Recording(
    "stop",
    f"--filter 'filter work @ rounds, tracestop handler @ rounds' -- rounds {ROUNDS} {ROUNDS // 3}",
)
ALONE = [*WHOLE, FILTER, RING, STOP]
TWO = [
    Recording("two_both", f"--levels both {MULTI_PROCESS}", cpl=None),
    Recording("two_user", MULTI_PROCESS),
]


def record_multi_process(
    machine: Machine, folder: Path, recordings: list[Recording], cpus: int, arguments: str = ""
) -> Recorded:
    """A run of the machine with these programs; `arguments` are for its kernel."""
    folder.mkdir()
    multi_process = boot_image.compile_static(
        boot_image.GUEST / "multi_process.c", folder / "multi_process", "-pthread"
    )
    files = {"bin/multi_process": multi_process, "bin/rounds": build("rounds", folder, "-static-pie")}
    return run_all(machine, folder, recordings, cpus, files=files, arguments=arguments)


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path) -> Recorded:
    """The run on one CPU."""
    return record_multi_process(machine, run_folder / "perf_recordings", ALONE, 1)


@pytest.fixture(scope="module")
def two(machine: Machine, run_folder: Path) -> Recorded:
    """The run on two CPUs."""
    return record_multi_process(machine, run_folder / "perf_recordings_two", TWO, 2)


@pytest.mark.parametrize("recording", WHOLE, ids=lambda recording: recording.name)
def test_bundles_decode_to_what_was_executed(recorded: Recorded, recording: Recording) -> None:
    assert recorded.report(recording)["backend"] == "perf"
    found = instructions_of(recorded.trace(recording))
    assert len(found) > 1000
    assert_same(found, recorded.executed(recording))


def test_estimated_bytes_without_cyc_packets_are_those_of_a_recording_without(recorded: Recorded) -> None:
    timed, both = (
        recorded.trace(next(one for one in WHOLE if one.name == name)) for name in ("timed", "both")
    )
    found = count_bytes(timed, 1.0, 0.1, 4096)
    with_cyc = Settings(("tsc", "mtc", "cyc"), cyc_threshold=2)
    expected = (found.windows * factors(found, with_cyc, Settings(("tsc", "mtc")))).sum()
    assert found.groups["CYC"] > found.total / 10
    # The program's threads do not run alike twice.
    assert both.info.bytes == pytest.approx(expected, rel=0.05)


def test_address_filter(recorded: Recorded) -> None:
    found = instructions_of(recorded.trace(FILTER))
    executed = of_function(recorded.folder / "rounds", "work", recorded.executed(FILTER), ROUNDS)
    assert_same(found, executed)


def test_trace_stop(recorded: Recorded) -> None:
    """Linux clears STATUS.Stopped when it lets the program run again, after a switch of tasks."""
    table = recorded.trace(STOP).instructions(columns=["ip"])
    assert len(table.errors) == 0, str(table.errors)
    executed = of_function(recorded.folder / "rounds", "work", recorded.executed(STOP), ROUNDS).ip
    stop = len(executed) // 3
    stops = table.gaps["instruction"][table.gaps["cause"] == ptkit.GapCause.TRACE_STOP]
    assert stops.tolist() == [stop]
    # A switch may come before the next call of work: nothing is missing then.
    assert stop <= len(table) <= len(executed)
    assert np.array_equal(table["ip"][:stop], executed[:stop])
    assert np.array_equal(table["ip"][stop:], executed[len(executed) - (len(table) - stop) :])


def test_triggers(recorded: Recorded) -> None:
    until, signal = (next(one for one in WHOLE if one.name == name) for name in ("until", "signal"))
    assert recorded.report(until)["limited"]
    assert recorded.report(signal)["snapshots"] == 1


@pytest.mark.parametrize("recording", TWO, ids=lambda recording: recording.name)
def test_two_cpus(two: Recorded, recording: Recording) -> None:
    trace = two.trace(recording)
    assert len(trace.errors) == 0, trace.errors
    table = trace.instructions(columns=["ip", "stream"])
    assert len(table) > 100_000
    for cpu in range(2):
        assert_same(Decoded(table["ip"][table["stream"] == cpu], []), two.executed(recording, cpu))


def test_a_ring_has_the_end(recorded: Recorded) -> None:
    found, executed = instructions_of(recorded.trace(RING)), recorded.executed(RING)
    assert 1000 < len(found) < len(executed.ip)
    assert_same(found, executed.select(np.arange(len(executed.ip)) >= len(executed.ip) - len(found)))


def test_threads_are_told_apart(recorded: Recorded) -> None:
    table = recorded.trace(WHOLE[0]).instructions(columns=["ip", "pid", "tid"])
    tids = [len(np.unique(table["tid"][table["pid"] == pid])) for pid in np.unique(table["pid"])]
    assert sorted(tids) == [1, 4]  # the child, and the program with three more threads


def test_doctor_says_what_perf_can_do(recorded: Recorded) -> None:
    report = json.loads(recorded.run.files["doctor"])
    perf = next(found for found in report["backends"] if found["name"] == "perf")
    assert perf["available"]
    assert "4 address filters" in perf["detail"]
    assert "whole processors" in perf["detail"]
