"""`ptkit record --backend driver` beside stock `perf record -e intel_pt//`: one of them has a trace unit."""

from __future__ import annotations

from pathlib import Path

import pytest
from compare import assert_same, instructions_of
from driver_neighbours import CPUS, Part, Recorded, record, run_beside
from executed import merge
from machine import Machine
from perf_decoder import KEEP_OBJECTS, PerfDecoder, keep

pytestmark = pytest.mark.emulated

ROUNDS = 300
BUSY = "another tracer is active (another ptkit, or perf with intel_pt)"


def by_perf(name: str, options: str, program: str, *files: str) -> Part:
    """Perf records."""
    data = f"/tmp/{name}.data"
    script = f"perf record {options} -e intel_pt//u -o {data} {program}"
    return Part(name, script, files, keep(f"{name}.data", data))


# Perf asks for the trace unit while ptkit has it.
LATER = Part(
    "later",
    f"{{ {record('later', '-- sh /bin/holds.sh')}; }} &\n"
    "while [ ! -e held ] && kill -0 $!; do sleep 0.1; done\n"
    "perf record -e intel_pt//u -o none.data true 2> later.perf\n"
    "echo $? > later.perf.status\ntouch asked\nwait $!",
    ("later.ptk", "later.json", "later.perf", "later.perf.status"),
)
# Ptkit asks for all processors while perf has one of them, and while perf has a task.
EARLIER = by_perf("earlier", "-C 0", "sh /bin/earlier.sh", "earlier.ptk", "earlier.json")
TASK = by_perf("task", "--per-thread -T", "sh /bin/task.sh", "task.json", "task.status")
ALONE = by_perf("alone", "", "multi_process")
PARTS = [LATER, EARLIER, TASK, ALONE]
# The recorder stays on the processor that it records, and off the one that perf records.
SCRIPTS = {
    "holds.sh": f"rounds {ROUNDS}\ntouch held\nwhile [ ! -e asked ]; do sleep 0.1; done\n",
    "earlier.sh": f"taskset 1 rounds {ROUNDS}\ntaskset 2 {record('earlier', '-a -- rounds 500')}\n",
    "task.sh": f"{record('task', '-- true')}\n",
}
SCRIPT = "".join(part.lines() for part in PARTS) + KEEP_OBJECTS


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path) -> Recorded:
    """One run of the machine for all tests."""
    return run_beside(machine, run_folder / "beside_intel_pt", PARTS, SCRIPT, SCRIPTS)


@pytest.fixture(scope="module")
def perf(machine: Machine, recorded: Recorded) -> PerfDecoder:
    """Decodes what perf recorded."""
    return PerfDecoder(machine.userland, recorded.run.files, recorded.folder / "perf")


def test_perf_is_refused_while_ptkit_records(recorded: Recorded) -> None:
    assert int(recorded.text("later.perf.status")) != 0
    assert "busy" in recorded.text("later.perf").lower()
    trace = recorded.trace(LATER)
    for number, stream in enumerate(trace.streams):
        assert stream.cpu is not None
        assert_same(instructions_of(trace, number), recorded.user(LATER, stream.cpu))
    assert sum(len(recorded.user(LATER, cpu).ip) for cpu in range(CPUS)) > 20_000


def test_ptkit_leaves_a_processor_to_perf(recorded: Recorded, perf: PerfDecoder) -> None:
    assert any("perf's intel_pt" in warning for warning in recorded.report(EARLIER)["warnings"])
    trace = recorded.trace(EARLIER)
    streams = {stream.cpu: number for number, stream in enumerate(trace.streams)}
    refused = trace.instructions(stream=streams[0], columns=["ip"])
    assert len(refused) == len(refused.errors) == 0
    assert refused.gaps.named("code") == ["NOT_TRACED"]
    assert trace.streams[streams[0]].losses == 1
    assert_same(instructions_of(trace, streams[1]), recorded.user(EARLIER, 1))
    assert_same(perf.instructions(perf.path("earlier.data"), 0), recorded.user(EARLIER, 0))


def test_ptkit_is_refused_while_perf_has_a_task(recorded: Recorded, perf: PerfDecoder) -> None:
    assert int(recorded.text("task.status")) != 0
    assert BUSY in recorded.text("task.json")
    executed = merge([recorded.user(TASK, cpu) for cpu in range(CPUS)])
    assert_same(perf.instructions(perf.path("task.data")), executed)


def test_perf_alone_records_afterwards(recorded: Recorded, perf: PerfDecoder) -> None:
    """Its copies of the unit's registers are right again."""
    path = perf.path("alone.data")
    for cpu in range(CPUS):
        assert_same(perf.instructions(path, cpu), recorded.user(ALONE, cpu))
    assert sum(len(recorded.user(ALONE, cpu).ip) for cpu in range(CPUS)) > 100_000


def test_the_kernel_does_not_complain(recorded: Recorded) -> None:
    recorded.assert_no_complaint()
