"""Our own module on two processors that are traced at once, one of which goes away and comes back."""

from __future__ import annotations

from pathlib import Path

import boot_image
import numpy as np
import pytest
from compare import assert_same, instructions
from executed import Truth
from kernels import ROOT, build_module, debian_kernel
from machine import Machine, Run

from ptkit import _core

pytestmark = pytest.mark.emulated

CPUS = 2
# name: levels, and what else guest/trace_all.c is told
RECORDINGS = {"both": ("both", ""), "user": ("user", ""), "offline": ("both", "offline")}


def record(name: str, levels: str, more: str) -> str:
    """Lines of the guest's script: one part of the log of the truth each, and one that is empty."""
    lines = [
        "host log tracing",
        f"trace_all {levels} /tmp/{name} {more} > /dev/null || exit 1",
        "host log never",
    ]
    return "\n".join(lines + [f"host put {name}.{cpu} /tmp/{name}.{cpu}" for cpu in range(CPUS)]) + "\n"


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """One run of the machine in which everything is recorded."""
    folder = run_folder / "module_smp"
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    shared = ROOT / "tests" / "machines" / "linux_driver"
    # Not where busybox is: code of several processes is told apart by its address.
    flags = (
        f"-I{ROOT / 'kernel/include'}",
        f"-I{shared}",
        shared / "machine.c",
        "-Wl,-Ttext-segment=0x10000000",
    )
    program = boot_image.GUEST / "trace_all.c"
    trace = boot_image.compile_static(program, folder / "trace_all", *map(str, flags))
    script = "insmod /bin/ptkit.ko || exit 1\n"
    script += "".join(record(name, *what) for name, what in RECORDINGS.items())
    script += "rmmod ptkit || exit 1\n"
    files = {"bin/ptkit.ko": module, "bin/trace_all": trace}
    run = machine.run(script, folder / "run", files=files, cpus=CPUS)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


@pytest.fixture(scope="module")
def truth(run: Run) -> Truth:
    """Executed instructions."""
    return Truth(run.truth)


@pytest.mark.parametrize("engine", _core.engines())
@pytest.mark.parametrize("cpu", range(CPUS))
@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_are_what_was_executed(run: Run, truth: Truth, name: str, cpu: int, engine: str) -> None:
    part = 2 * list(RECORDINGS).index(name) + 1
    executed = truth.executed(part, cpu)
    code: dict[int, bytes] = {}
    for space in np.unique(executed.cr3).tolist():
        code |= truth.code(part, space)
    if RECORDINGS[name][0] == "user":
        executed = executed.select(executed.cpl == 3)
    found = instructions(run.files[f"{name}.{cpu}"], code, engine)
    assert len(found) > 10_000
    assert_same(found, executed)


def test_the_kernel_does_not_complain(run: Run) -> None:
    _, _, since = run.files["dmesg"].partition(b"ptkit: ABI ")
    assert since
    for complaint in (b"WARNING:", b"BUG:", b"Oops", b"unchecked MSR", b"unknown reason"):
        assert complaint not in since
