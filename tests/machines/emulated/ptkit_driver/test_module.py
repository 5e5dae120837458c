"""Our own module in the emulated machine: what is decoded is what was executed."""

from __future__ import annotations

import re
from pathlib import Path

import boot_image
import numpy as np
import pytest
from compare import assert_same, instructions
from executed import Executed, Truth
from kernels import ROOT, build_module, debian_kernel
from machine import Machine, Run
from numpy.typing import NDArray

from ptkit import _core

pytestmark = pytest.mark.emulated

# name: (output, levels, scope, program); guest/trace.c says what they mean.
RECORDINGS = {
    "user": ("topa", "user", "all", "true"),
    "both": ("topa", "both", "all", "ls /proc"),
    "kernel": ("topa", "kernel", "all", "true"),
    "single": ("single", "both", "all", "true"),
    "ring": ("ring", "both", "all", "ls /proc"),
    "wake": ("wake", "both", "all", "ls /proc"),
    "stop": ("topa", "both", "stop", ""),
    "user_process": ("topa", "user", "process", ""),
    "kernel_process": ("single", "kernel", "process", ""),
    "range": ("single", "user", "range", ""),
}

RING_BYTES = 64 << 10  # as in guest/trace.c


def record(name: str, output: str, levels: str, scope: str, program: str) -> str:
    """Lines of the guest's script: one part of the log of the truth each, and one that is empty."""
    file = f"/tmp/{name}.pt"
    return (
        f"host log tracing\ntrace {output} {levels} {scope} {file} {program} || exit 1\nhost log never\n"
        f"host put {name} {file}\n"
    )


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """One run of the machine in which everything is recorded."""
    folder = run_folder / "module"
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    # Not where busybox is: code of several processes is told apart by its address.
    flags = (f"-I{ROOT / 'kernel/include'}", "-Wl,-Ttext-segment=0x10000000")
    trace = boot_image.compile_static(boot_image.GUEST / "trace.c", folder / "trace", *flags)
    script = "insmod /bin/ptkit.ko || exit 1\n"
    script += "".join(record(name, *what) for name, what in RECORDINGS.items())
    script += "rmmod ptkit || exit 1\n"
    run = machine.run(script, folder / "run", files={"bin/ptkit.ko": module, "bin/trace": trace})
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


@pytest.fixture(scope="module")
def truth(run: Run) -> Truth:
    """Executed instructions."""
    return Truth(run.truth)


def work(log: str) -> tuple[int, int]:
    """Addresses of work() in guest/trace.c: the first one, and the one behind it."""
    first, end = re.findall(r"work (\S+) (\S+)", log)[0]
    return int(first, 16), int(end, 16)


def in_work(executed: Executed, log: str) -> NDArray[np.bool_]:
    """Which instructions are work()'s."""
    first, end = work(log)
    return (executed.ip >= first) & (executed.ip < end)


def wanted(executed: Executed, name: str, log: str) -> Executed:
    """Those instructions that the configuration asked for."""
    _, levels, scope, _ = RECORDINGS[name]
    if scope == "process":
        # Only the process worked. Isolated from it, the kernel has a table of its own, in the page before.
        table = int(executed.cr3[in_work(executed, log)][0]) & ~0xFFF
        table -= 0x1000 if levels == "kernel" else 0
        executed = executed.select(executed.cr3 & ~np.uint64(0xFFF) == table)
    if levels != "both":
        executed = executed.select((executed.cpl == 3) == (levels == "user"))
    if scope == "range":
        executed = executed.select(in_work(executed, log))
    if scope == "stop":
        executed = executed.select(np.cumsum(in_work(executed, log)) == 0)
    return executed


def test_module_loads_and_leaves(run: Run) -> None:
    _, _, since = run.files["dmesg"].partition(b"ptkit: ABI ")
    assert since
    for complaint in (b"WARNING:", b"BUG:", b"Oops", b"unchecked MSR", b"unknown reason"):
        assert complaint not in since


@pytest.mark.parametrize("engine", _core.engines())
@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_are_what_was_executed(run: Run, truth: Truth, name: str, engine: str) -> None:
    if name == "kernel" and engine == "libipt":
        pytest.skip("libipt ends a stretch of kernel code at MOV CR3 (docs/kernel-driver.md)")
    part = 2 * list(RECORDINGS).index(name) + 1
    executed = truth.executed(part)
    log = run.files["log"].decode()
    code: dict[int, bytes] = {}
    for space in np.unique(executed.cr3).tolist():
        code |= truth.code(part, space)
    executed = wanted(executed, name, log)
    found = instructions(run.files[name], code, engine)
    assert len(found) > 1000
    if name == "wake":
        assert len(run.files[name]) > RING_BYTES
        woken = int(re.findall(r"woken up (\d+) times", log)[0])
        assert woken >= len(run.files[name]) // (RING_BYTES // 4)
    if RECORDINGS[name][0] == "ring":
        assert len(run.files[name]) == RING_BYTES
        executed = executed.select(np.arange(len(executed.ip)) >= len(executed.ip) - len(found))
    assert_same(found, executed)
