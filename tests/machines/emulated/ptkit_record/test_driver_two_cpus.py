"""`ptkit record --backend driver` on two CPUs: processes, single CPUs and a thread, packets and branches."""

from __future__ import annotations

from pathlib import Path

import boot_image
import pytest
from compare import assert_same, instructions_of, share_in_pieces
from guest_programs import MIXED_WORKLOAD
from kernels import build_module, debian_kernel
from machine import Machine
from ptkit_recordings import Recorded, Recording, run_all

pytestmark = pytest.mark.emulated

CPUS = 2
MULTI_PROCESS = "-- /bin/multi_process /bin/busybox true"
ROUNDS = {"before": "rounds 0 > /dev/null & P=$!\n", "after": "kill -INT $P\n"}
ATTACHED = Recording("attached", "-p $P --seconds 0.2", backend="driver", **ROUNDS)
ATTACHED_BOTH = Recording(
    "attached_both", "-p $P --levels both --seconds 0.1", cpl=None, backend="driver", **ROUNDS
)
# The recorder stays on CPU 0: on the one that it traces, what it does with the trace makes more of it.
APART = {
    "before": "busybox taskset -p 1 $$ > /dev/null\n",
    "after": "busybox taskset -p 3 $$ > /dev/null\n",
}
ON_ONE = "-- /bin/busybox taskset 2 /bin/multi_process /bin/busybox true"
ONE_CPU = Recording("one_cpu", f"-C 1 {ON_ONE}", backend="driver", **APART)
WORKLOAD = Recording("workload", f"-- {MIXED_WORKLOAD}", backend="driver")
THREAD = Recording("thread", "--per-thread --levels both -- moving_thread", cpl=None, backend="driver")
BRANCHES = Recording("branches", f"--bts {MULTI_PROCESS}", backend="driver")
ATTACHED_BRANCHES = Recording(
    "attached_branches", "--bts -p $P -m 16M --seconds 0.1", backend="driver", **ROUNDS
)
ONE_CPU_BRANCHES = Recording("one_cpu_branches", f"--bts -C 1 -m 16M {ON_ONE}", backend="driver", **APART)
PACKETS = [ATTACHED, ATTACHED_BOTH, WORKLOAD]
RECORDS = [BRANCHES, ATTACHED_BRANCHES]
ONE = [ONE_CPU, ONE_CPU_BRANCHES]
ALL = [*PACKETS, *RECORDS, *ONE, THREAD]


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path, programs: dict[str, Path]) -> Recorded:
    """One run; under page-table isolation there is no Branch Trace Store."""
    folder = run_folder / "driver_two_cpus"
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    moving_thread = boot_image.compile_static(
        boot_image.GUEST / "moving_thread.c", folder / "moving_thread", "-D_GNU_SOURCE"
    )
    return run_all(
        machine,
        folder,
        ALL,
        CPUS,
        files={**programs, "bin/ptkit.ko": module, "bin/moving_thread": moving_thread},
        arguments="pti=off nmi_watchdog=0",
        before="insmod /bin/ptkit.ko",
    )


@pytest.mark.parametrize("recording", PACKETS, ids=lambda recording: recording.name)
def test_a_process_wherever_it_runs(recorded: Recorded, recording: Recording) -> None:
    trace = recorded.trace(recording)
    assert {stream.cpu for stream in trace.streams} == set(range(CPUS))
    found = [instructions_of(trace, number) for number in range(CPUS)]
    assert sum(map(len, found)) > 10_000
    for stream, of_stream in zip(trace.streams, found, strict=True):
        assert_same(of_stream, recorded.of_stream(recording, stream))


@pytest.mark.parametrize("recording", RECORDS, ids=lambda recording: recording.name)
def test_branches_of_a_process_wherever_it_runs(recorded: Recorded, recording: Recording) -> None:
    trace = recorded.trace(recording)
    found = 0
    for number, stream in enumerate(trace.streams):
        table = trace.instructions(stream=number, columns=["ip"])
        assert len(table.errors) == 0, str(table.errors)
        executed = recorded.of_stream(recording, stream)
        assert len(table) == 0 or share_in_pieces(table, table.gaps, executed) > 0.95
        found += len(table)
    assert found > 10_000


@pytest.mark.parametrize("recording", ONE, ids=lambda recording: recording.name)
def test_only_the_chosen_cpu_is_recorded(recorded: Recorded, recording: Recording) -> None:
    trace = recorded.trace(recording)
    assert [stream.cpu for stream in trace.streams] == [1]
    assert len(recorded.executed(recording, 0).ip) == 0
    if recording is ONE_CPU:
        assert_same(instructions_of(trace), recorded.executed(recording, 1))
    else:
        table = trace.instructions(columns=["ip"])
        assert len(table.errors) == 0, str(table.errors)
        assert share_in_pieces(table, table.gaps, recorded.executed(recording, 1)) > 0.95


def test_a_thread_that_moves_between_cpus(recorded: Recorded) -> None:
    trace = recorded.trace(THREAD)
    assert [stream.cpu for stream in trace.streams] == [None]
    both = [len(recorded.executed(THREAD, cpu).ip) for cpu in range(CPUS)]
    assert min(both) > 1000
    assert_same(instructions_of(trace), recorded.of_stream(THREAD, trace.streams[0]))


def test_the_kernel_does_not_complain(recorded: Recorded) -> None:
    _, _, since = recorded.run.files["dmesg"].partition(b"ptkit: ABI ")
    assert since
    for complaint in (b"WARNING:", b"BUG:", b"Oops", b"unchecked MSR", b"unknown reason"):
        assert complaint not in since
