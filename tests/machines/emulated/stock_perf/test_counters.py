"""The machine's performance counters, as stock perf and Linux' NMI watchdog use them."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiling import build
from executed import Truth
from machine import Machine, Run

pytestmark = pytest.mark.emulated

ROUNDS = 2000
LONG = 1_500_000  # rounds: more than two seconds of instructions
SCRIPT = f"""\
echo 1 > /proc/sys/kernel/watchdog_thresh || exit 1
echo 1 > /proc/sys/kernel/nmi_watchdog || exit 1
grep NMI: /proc/interrupts > before
rounds {LONG}
grep NMI: /proc/interrupts > after
echo 0 > /proc/sys/kernel/nmi_watchdog
perf stat -x, -o counts -e cycles:u,cycles:k rounds {ROUNDS}
host log tracing
perf record -e intel_pt//u -o /tmp/data rounds {ROUNDS}
host log never
host put before before
host put after after
host put counts counts
"""


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """One run of the machine."""
    folder = run_folder / "counters"
    folder.mkdir()
    program = build("rounds", folder, "-static-pie")
    run = machine.run(SCRIPT, folder / "run", files={"bin/rounds": program})
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


def test_the_watchdog_interrupts(run: Run) -> None:
    before, after = (int(run.files[name].split()[1]) for name in ("before", "after"))
    assert 1 <= after - before < 20


def test_perf_counts_what_is_executed(run: Run) -> None:
    """But for faults, iterations of string instructions, and the environment of the program."""
    lines = [line.split(",") for line in run.files["counts"].decode().splitlines() if "cycles" in line]
    user, kernel = (int(words[0]) for words in lines)
    executed = Truth(run.truth).executed(1)
    count = int((executed.cpl == 3).sum())
    assert count > 100_000
    assert abs(user - count) < count * 0.02
    assert kernel > 20_000


def test_the_kernel_does_not_complain(run: Run) -> None:
    log = run.files["dmesg"]
    for complaint in (b"BUG:", b"unknown reason", b"LOCKUP", b"MSR access error: WRMSR to 0x3"):
        assert complaint not in log
