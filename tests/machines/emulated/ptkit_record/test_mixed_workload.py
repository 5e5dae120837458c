"""`ptkit record --backend perf` of what is hard to follow: its bundles against what was executed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compare import Decoded, assert_same, function, instructions_of, of_function, share_in_pieces
from context_attribution import SWITCH, assert_processes, assert_threads, on_cpu
from executed import merge
from guest_programs import MIXED_WORKLOAD, QUESTIONS
from machine import Machine
from perf_script import needs_perf, perf_instructions
from ptkit_recordings import Recorded, Recording, run_all

import ptkit

pytestmark = pytest.mark.emulated

# On two CPUs.
WHOLE = [
    Recording("user", f"-- {MIXED_WORKLOAD}"),
    Recording("both", f"--levels both -- {MIXED_WORKLOAD}", cpl=None),
    Recording("machine", f"-a --levels both -- {MIXED_WORKLOAD}", cpl=None),
]
KERNEL = [one for one in WHOLE if one.cpl is None]
THREAD = Recording("thread", f"--per-thread -- {MIXED_WORKLOAD}")
FILTER = Recording("filter", "--filter 'filter work @ /bin/multi_process' -- multi_process")
ONCE = f"{MIXED_WORKLOAD}; kill -HUP $$; sleep 3"
SNAPSHOTS = Recording(
    "snapshots",
    "--levels both --ring 64K --trigger 'snapshot on HUP'"
    f" -- sh -c 'trap : HUP; {ONCE}; {ONCE}; {MIXED_WORKLOAD}'",
    cpl=None,
)
EXPORTED = [WHOLE[0], WHOLE[1], THREAD]
ALL = [*WHOLE, THREAD, FILTER, SNAPSHOTS]


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path, programs: dict[str, Path]) -> Recorded:
    """The run."""
    folder = run_folder / "mixed_workload"
    folder.mkdir()
    return run_all(machine, folder, ALL, 2, files=programs)


@pytest.mark.parametrize("recording", WHOLE, ids=lambda recording: recording.name)
def test_all_processes_are_decoded_to_what_was_executed(recorded: Recorded, recording: Recording) -> None:
    trace = recorded.trace(recording)
    assert {stream.cpu for stream in trace.streams} == {0, 1}
    for number, stream in enumerate(trace.streams):
        assert_same(instructions_of(trace, number), recorded.of_stream(recording, stream))


@pytest.mark.parametrize("recording", KERNEL, ids=lambda recording: recording.name)
def test_kernel_code_belongs_to_the_process_that_runs(recorded: Recorded, recording: Recording) -> None:
    trace = recorded.trace(recording)
    cpus = [
        on_cpu(trace, number, recorded.of_stream(recording, stream))
        for number, stream in enumerate(trace.streams)
    ]
    assert_processes(cpus, 100)  # by time alone 207 or more of the program, and 1683 of the whole machine
    switch = trace.instructions(symbol=SWITCH, columns=["ip"])["ip"].min()
    assert assert_threads(cpus, int(switch), 1000) >= QUESTIONS


def test_one_thread(recorded: Recorded) -> None:
    trace = recorded.trace(THREAD)
    assert len(trace.streams) == 1
    executed = recorded.of_stream(THREAD, trace.streams[0])
    assert len(executed.ip) > 200_000
    assert_same(instructions_of(trace), executed)


def test_a_filter_on_two_cpus(recorded: Recorded, programs: dict[str, Path]) -> None:
    multi_process = programs["bin/multi_process"]
    parts = [recorded.executed(FILTER, cpu) for cpu in range(2)]
    work = of_function(multi_process, "work", merge(parts), 800)
    begin = int(work.ip.min())
    end = begin + function(multi_process, "work")[1]
    trace = recorded.trace(FILTER)
    for number, stream in enumerate(trace.streams):
        part = recorded.of_stream(FILTER, stream)
        assert_same(instructions_of(trace, number), part.select((part.ip >= begin) & (part.ip < end)))


def test_snapshots_have_the_ends_of_what_was_executed(recorded: Recorded) -> None:
    trace = recorded.trace(SNAPSHOTS)
    assert recorded.report(SNAPSHOTS)["snapshots"] == 2
    for number, stream in enumerate(trace.streams):
        table = trace.instructions(stream=number, columns=["ip"])
        assert len(table.errors) == 0, str(table.errors)
        begun = table.gaps["cause"] == ptkit.GapCause.START
        assert (table.gaps["code"][~begun] == ptkit.ErrorCode.RING_WRAPPED).all()
        assert (~begun).sum() > 0
        assert 0 < share_in_pieces(table, table.gaps, recorded.of_stream(SNAPSHOTS, stream)) < 1


@needs_perf
def test_perf_agrees_on_snapshots_that_are_exported(recorded: Recorded, tmp_path: Path) -> None:
    trace = recorded.trace(SNAPSHOTS)
    data = tmp_path / "perf.data"
    trace.export(data)
    again = ptkit.open(data)
    for number, stream in enumerate(trace.streams):
        of_perf = perf_instructions(data, stream.cpu)
        for one in (trace, again):
            assert np.array_equal(one.instructions(stream=number, columns=["ip"])["ip"], of_perf.from_ip)


@needs_perf
@pytest.mark.parametrize("recording", EXPORTED, ids=lambda recording: recording.name)
def test_perf_agrees_on_what_is_exported(recorded: Recorded, recording: Recording, tmp_path: Path) -> None:
    """Instruction by instruction, and on whose user code it is."""
    trace = recorded.trace(recording)
    data = tmp_path / "perf.data"
    trace.export(data)
    again = ptkit.open(data)
    for number, stream in enumerate(trace.streams):
        executed = recorded.of_stream(recording, stream)
        of_perf = perf_instructions(data, stream.cpu)
        assert_same(Decoded(of_perf.from_ip, of_perf.errors, of_perf.warnings, "perf script"), executed)
        user = executed.cpl == 3
        for one in (trace, again):
            table = one.instructions(stream=number, columns=["ip", "tid"])
            assert np.array_equal(table["ip"], executed.ip)
            assert np.array_equal(table["tid"][user], of_perf.tid[user])
