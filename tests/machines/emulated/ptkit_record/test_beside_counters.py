"""`ptkit record --backend driver` beside the NMI watchdog and `perf record -e cycles -F 4000`."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare import assert_same, function, instructions_of, spans_of_pieces
from driver_neighbours import CPUS, Part, Recorded, record, run_beside
from executed import Executed
from machine import IPS, Machine

import ptkit

pytestmark = pytest.mark.emulated

ROUNDS = 300
LONG = 1_500_000  # rounds: more than two seconds of instructions
LOSING = 1_000_000  # rounds: LONGEST_LOSS several times
LONGEST_LOSS = IPS // 20  # 50 ms in instructions
MODULES = 0xFFFFFFFFC0000000  # address where the kernel loads modules

COUNTED = Part("counted", "", ())
WHOLE = Part(
    "whole",
    record("whole", "--levels both -m 1M -- /bin/multi_process /bin/busybox true"),
    ("whole.ptk", "whole.json"),
)
# CPU 0 and nothing else, in a buffer that is too small; the recorder is on the other CPU.
FULL = Part(
    "full",
    "taskset 2 "
    + record("full", f"-C 0 --levels both --timing tsc,mtc,cyc -m 64K -- taskset 1 rounds {LOSING}"),
    ("full.ptk", "full.json"),
)


def note(name: str) -> str:
    """A command that hands over how many NMIs each processor has had."""
    return f"grep NMI: /proc/interrupts > {name}\nhost put {name} {name}\n"


SCRIPT = f"""\
cd /proc/sys/kernel
echo 0 > perf_cpu_time_max_percent || exit 1
echo 1 > watchdog_thresh || exit 1
echo 1 > nmi_watchdog || exit 1
cd /tmp
{note("nmi.begin")}
host log always
taskset 1 perf stat -x, -o counts -e cycles:u,cycles:k rounds {ROUNDS}
host log never
host put counts counts
taskset 1 rounds {LONG}
{note("nmi.watchdog")}
taskset 2 perf record -q -e cycles -F 4000 -a -o /tmp/samples.data sleep 1000 2> samples.log &
SAMPLER=$!
while [ ! -s /tmp/samples.data ]; do sleep 0.1; done
{WHOLE.lines()}{FULL.lines()}
kill -INT $SAMPLER
wait $SAMPLER
host put samples /tmp/samples.data
{note("nmi.samples")}
echo 0 > /proc/sys/kernel/nmi_watchdog"""


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path) -> Recorded:
    """One run of the machine for all tests."""
    return run_beside(machine, run_folder / "beside_counters", [COUNTED, WHOLE, FULL], SCRIPT, {})


def nmis(recorded: Recorded, name: str) -> list[int]:
    """How many each processor has had."""
    return [int(word) for word in recorded.text(name).split()[1 : 1 + CPUS]]


def rounds_of(recorded: Recorded, executed: Executed) -> int:
    """How many instructions the process executed that called `work` of rounds.c so often."""
    start, _ = function(recorded.folder / "rounds", "work")
    entries, counts = np.unique(executed.ip[executed.ip % 4096 == start % 4096], return_counts=True)
    (entry,) = entries[counts == ROUNDS]
    (space,) = np.unique(executed.cr3[executed.ip == entry])
    return int((executed.cr3 == space).sum())


def test_counters_count_what_is_executed(recorded: Recorded) -> None:
    """Bochs' count has faults and iterations of string instructions besides."""
    lines = [line.split(",") for line in recorded.text("counts").splitlines() if "cycles" in line]
    user, kernel = (int(words[0]) for words in lines)
    executed = rounds_of(recorded, recorded.user(COUNTED, 0))
    assert executed > 10_000
    assert executed <= user < executed * 1.2
    assert kernel > 20_000


def test_the_watchdog_interrupts(recorded: Recorded) -> None:
    begin, end = nmis(recorded, "nmi.begin"), nmis(recorded, "nmi.watchdog")
    assert 1 <= sum(end) - sum(begin) < 20


def test_samples_and_trace_interrupt(recorded: Recorded, machine: Machine) -> None:
    """Perf loses none of its interrupts to the driver."""
    path = recorded.folder / "samples.data"
    path.write_bytes(recorded.run.files["samples"])
    perf = machine.userland.command("usr/bin/perf")
    command = [*perf, "script", "-f", "-i", str(path), "-F", "cpu"]
    samples = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    begin, end = nmis(recorded, "nmi.watchdog"), nmis(recorded, "nmi.samples")
    for cpu in range(CPUS):
        taken = samples.count(f"[{cpu:03}]")
        assert 100 < taken <= end[cpu] - begin[cpu]


def test_code_beside_samples_is_traced_whole(recorded: Recorded) -> None:
    trace = recorded.trace(WHOLE)
    report = recorded.report(WHOLE)
    assert report["exit_status"] == 0
    assert report["warnings"] == []
    assert sum(stream.losses for stream in trace.streams) == 0
    for number, stream in enumerate(trace.streams):
        assert stream.cpu is not None
        assert_same(instructions_of(trace, number), recorded.executed(WHOLE, stream.cpu))
    assert sum(len(recorded.executed(WHOLE, cpu).ip) for cpu in range(CPUS)) > 1_000_000


class DriverCode:
    """The driver's functions, as a processor executed them."""

    def __init__(self, trace: ptkit.Trace, executed: Executed) -> None:
        self.ip = executed.ip
        addresses = np.unique(executed.ip[executed.ip >= MODULES])
        self._symbols = dict(zip(addresses.tolist(), map(str, trace.symbolize(addresses)), strict=True))
        self._entries = {name: address for address, name in self._symbols.items() if "+" not in name}

    def entries(self, name: str) -> Any:
        """Where it was entered: indexes into the executed instructions, ascending."""
        return np.flatnonzero(self.ip == self._entries.get(name))

    def caller(self, entry: int, through: Collection[str]) -> str:
        """The function that made a call. Those in `through` stand for their own callers."""
        name = self._symbols[int(self.ip[entry - 1])].partition("+")[0]
        if name not in through:
            return name
        own = self.entries(name)
        return self.caller(int(own[np.searchsorted(own, entry) - 1]), through)


def test_interrupts_that_perf_took_are_noticed(recorded: Recorded) -> None:
    """perf's handler acknowledges those that come during one of its own: the driver looks afterwards.

    It looked before perf's handler, too, so the interrupt came in between.
    """
    code = DriverCode(recorded.trace(FULL), recorded.executed(FULL, 0))
    taken = code.entries("switch_buffer")
    # The compiler is free to make these functions a part of others.
    callers = np.array([code.caller(entry, ("take_interrupt", "take_early")) for entry in taken.tolist()])
    noticed = taken[callers == "handle_taken_interrupt"]
    assert 0 < len(noticed) < np.count_nonzero(callers == "handle_interrupt")
    looks = code.entries("handle_interrupt")
    waits = noticed - looks[np.searchsorted(looks, noticed) - 1]
    assert 0 < waits.max() < LONGEST_LOSS


def test_losses_beside_samples_are_gaps(recorded: Recorded) -> None:
    """The unit waits for room, also in NMIs of perf, which then acknowledge its interrupt."""
    trace = recorded.trace(FULL)
    (stream,) = trace.streams
    executed = recorded.executed(FULL, 0)
    table = trace.instructions(columns=["ip"])
    assert len(table.errors) == 0, str(table.errors)
    gaps = table.gaps
    lost = np.asarray(gaps["code"] == ptkit.ErrorCode.BUFFER_FULL)
    assert (lost | (gaps["cause"] == ptkit.GapCause.START)).all()
    assert lost.sum() == stream.losses >= 3
    spans = spans_of_pieces(table, gaps, executed)
    ends = [end for _, end in spans]
    begins = [begin for begin, _ in spans]
    lengths = [begin - end for begin, end in zip([*begins, len(executed.ip)], [0, *ends], strict=True)]
    assert max(lengths) < LONGEST_LOSS < len(executed.ip) // 3, sorted(lengths)[-5:]
    assert sum(lengths) < len(executed.ip) // 2


def test_the_kernel_does_not_complain(recorded: Recorded) -> None:
    recorded.assert_no_complaint()
