"""Commands of docs/hardware-recipes.md in the emulated machine: the driver back end as its users call it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import boot_image
import numpy as np
import pytest
from executed import PROCESS, Truth
from kernels import build_guest_module, build_module, debian_kernel
from machine import Machine, Run

import ptkit
from ptkit.cli import main

pytestmark = pytest.mark.emulated

# A module of the kernel by the addresses of one of its functions, and a process by its page tables.
TRACED = ("target_branch", "target_first", "target_second")
BRANCHES = ", ".join(f"filter {name} @ target.ko" for name in TRACED)
SCRIPT = f"""\
insmod /bin/ptkit.ko || exit 1
insmod /bin/target.ko || exit 1
ptkit doctor --json > doctor || exit 1
host put doctor doctor
host log tracing
ptkit record --backend driver -a --levels kernel --timing tsc --filter 'filter target_work @ target.ko' \\
    -o module.ptk -- sh -c 'echo 20 > /sys/module/target/parameters/work' || exit 1
host log never
host put module.ptk module.ptk
host log tracing
ptkit record --backend driver --no-children -o process.ptk -- ls /proc > /dev/null || exit 1
host log never
host put process.ptk process.ptk
host log tracing
ptkit record --backend driver -a --levels kernel --filter '{BRANCHES}' -o branches.ptk \\
    -- sh -c 'for i in 1 2 3; do echo 20 > /sys/module/target/parameters/branches; done' || exit 1
host log never
host put branches.ptk branches.ptk
rmmod target
rmmod ptkit || exit 1
"""


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """A run in which every command of SCRIPT succeeded."""
    folder = run_folder / "recipes"
    kernel = debian_kernel(machine.folder)
    module, _ = build_module(kernel, folder / "driver")
    target = build_guest_module(kernel, boot_image.GUEST / "target.c", folder / "target")
    files = {"bin/ptkit.ko": module, "bin/target.ko": target}
    run = machine.run(SCRIPT, folder / "run", files=files, python=True)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


@pytest.fixture
def bundle(run: Run, tmp_path: Path) -> Path:
    """The recording of the module."""
    path = tmp_path / "module.ptk"
    path.write_bytes(run.files["module.ptk"])
    return path


def test_doctor_says_what_the_driver_can_do(run: Run) -> None:
    backends = {one["name"]: one for one in json.loads(run.files["doctor"])["backends"]}
    assert backends["driver"]["available"], backends["driver"]


def test_a_module_by_address_range(run: Run, bundle: Path) -> None:
    executed = Truth(run.truth).executed(1, 0)
    trace = ptkit.open(bundle)
    found = trace.instructions(columns=["ip", "symbol"])
    assert set(found["symbol"].tolist()) == {"target_work"}
    first, last = int(found["ip"].min()), int(found["ip"].max())
    inside = (executed.ip >= first) & (executed.ip <= last)
    assert np.array_equal(found["ip"], executed.ip[inside])
    assert len(found) > 20 * 5


def test_packets_of_a_module_have_names(run: Run, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["packets", "--branches", "--no-pad", str(bundle)]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = next(i for i, line in enumerate(lines) if "tip.pge" in line)
    assert re.search(r"tip\.pge +\d: [0-9a-f?]+ .*target_work$", lines[begin])
    kinds = [line.split()[1] for line in lines[begin:] if line[0] != " "]
    # Out of the range and back: to the function that is called, and from it.
    assert kinds.count("tip.pgd") >= 2
    told = [line.split() for line in lines if line.startswith(" ")]
    assert {words[0] for words in told} >= {"!", "."}
    assert all(words[2].startswith("target_work") for words in told if words[0] in "!.")


def test_frames_of_a_module_with_retpolines(run: Run, tmp_path: Path) -> None:
    """Calls through pointers by retpolines within a function, of which the caller is not traced."""
    path = tmp_path / "branches.ptk"
    path.write_bytes(run.files["branches.ptk"])
    trace = ptkit.open(path)
    functions = trace.functions()
    counts = dict(zip(functions["function"].tolist(), functions["count"].tolist(), strict=True))
    assert {name: counts.get(name) for name in TRACED} == dict(zip(TRACED, (3, 30, 30), strict=True))
    # Nothing else has code: neither the caller of target_branch() nor the retpolines.
    assert set(functions["function"][functions["self_instructions"] != 0].tolist()) == set(TRACED)
    calls = trace.calls()
    called = calls[calls["how"] == ptkit.CallKind.CALL]
    first = called.where(entry_symbol="target_first")
    assert len(first) == 30
    callers = calls.where(entry_symbol="target_branch")
    assert set(first["parent"].tolist()) == set(callers["id"].tolist())
    assert set(callers["depth"].tolist()) == {0}
    assert len(trace.stack_anomalies) == 0


def test_a_process_by_its_page_tables(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "process.ptk"
    path.write_bytes(run.files["process.ptk"])
    trace = ptkit.open(path)
    found = trace.instructions(columns=["ip", "pid"])
    assert len(found.errors) == 0, found.errors
    assert len(np.unique(found["pid"])) == 1
    executed = Truth(run.truth).executed(3, 0)
    user = executed.select(executed.cpl == 3)  # of all processes: TraceEn stays set
    processes = user.cr3 & np.uint64(PROCESS)
    assert len(np.unique(processes)) > 1
    assert any(np.array_equal(found["ip"], user.ip[processes == one]) for one in np.unique(processes))
