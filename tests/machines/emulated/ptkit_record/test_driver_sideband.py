"""Mappings, names and page tables of `ptkit record --backend driver`: by perf's events, and without them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import boot_image
import numpy as np
import pytest
from compare import Decoded, assert_same
from executed import Executed, Truth
from kernels import build_module, debian_kernel
from machine import Machine, Run

import ptkit

pytestmark = pytest.mark.emulated

STATUS = 7  # of life.c
# name: what precedes ptkit, options
RECORDINGS = {
    "life": ("", "--levels user -- /bin/life"),
    "alone": ("", "--levels user --no-children -- /bin/life"),
    "refused": ("without_perf", "--levels user -- /bin/busybox ls /bin"),
}


def record(name: str, before: str, options: str) -> str:
    """Lines of the guest's script: one part of the log of the truth each, and one that is empty."""
    return (
        f"host log tracing\n"
        f"{before} ptkit record --json --backend driver -o {name}.ptk {options} > /dev/null 2> {name}.json\n"
        f"host log never\nhost put {name}.ptk {name}.ptk\nhost put {name}.json {name}.json\n"
    )


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """One run of the machine in which everything is recorded."""
    folder = run_folder / "driver_sideband"
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    files = {"bin/ptkit.ko": module}
    for name in ("life", "without_perf"):
        flags = ("-O1", "-static-pie", "-pthread")
        files[f"bin/{name}"] = boot_image.compile_for_guest(
            boot_image.GUEST / f"{name}.c", folder / name, *flags
        )
    script = "insmod /bin/ptkit.ko || exit 1\n"
    script += "".join(record(name, *words) for name, words in RECORDINGS.items())
    script += "rmmod ptkit || exit 1\n"
    run = machine.run(script, folder / "run", files=files, python=True, limit=900)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


@pytest.fixture(scope="module")
def truth(run: Run) -> Truth:
    """Executed instructions."""
    return Truth(run.truth)


def report(run: Run, name: str) -> dict[str, Any]:
    """Messages of ptkit."""
    found: dict[str, Any] = json.loads(run.files[f"{name}.json"])
    return found


def opened(run: Run, name: str, folder: Path) -> ptkit.Trace:
    """A bundle of the run."""
    path = folder / f"{name}.ptk"
    path.write_bytes(run.files[path.name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(path)


def user_code(truth: Truth, name: str) -> Executed:
    """Instructions that were executed meanwhile."""
    executed = truth.executed(2 * list(RECORDINGS).index(name) + 1)
    return executed.select(executed.cpl == 3)


def warned(run: Run, name: str) -> list[str]:
    """Warnings of the recorder, but for the memory without a file that life makes executable."""
    return [text for text in report(run, name)["warnings"] if not text.startswith("JIT code is not in")]


@pytest.mark.parametrize("name", ["life", "refused"])
def test_all_code_is_decoded(run: Run, truth: Truth, name: str, tmp_path: Path) -> None:
    table = opened(run, name, tmp_path).instructions(columns=["ip"])
    assert_same(
        Decoded(table["ip"], [str(error) for error in [table.errors] if len(error)]), user_code(truth, name)
    )
    assert len(table) > 1000


def test_names_and_mappings_of_a_life(run: Run, tmp_path: Path) -> None:
    assert report(run, "life")["exit_status"] == STATUS
    assert warned(run, "life") == []
    trace = opened(run, "life", tmp_path)
    (parent,) = [one for one in trace.info.processes if one.name == "life"]
    assert "worker" in {thread for _, thread in parent.threads}
    (child,) = [one for one in trace.info.processes if one.name == "busybox" and one.pid > parent.pid]
    # Of life, and of busybox.
    assert len(child.spaces) == 2
    assert len({cr3 for _, cr3 in child.spaces} | {cr3 for _, cr3 in parent.spaces}) == 3
    assert None not in {cr3 for _, cr3 in child.spaces}
    mappings = trace.mappings()
    modules = [
        set(mappings["module"][np.isin(mappings["space"], [space])].tolist()) for space, _ in child.spaces
    ]
    assert "life" in modules[0]
    assert "busybox" not in modules[0]
    assert "busybox" in modules[1]
    assert "life" not in modules[1]
    table = trace.instructions(columns=["ip", "pid", "tid", "symbol"])
    work = table["symbol"] == "work"
    copies = {ip & ~0xFFF for ip in table["ip"][work & (table["pid"] == child.pid)].tolist()}
    assert len(copies) >= 2  # where the program is, and where the file is mapped once more
    (worker,) = [tid for tid, thread in parent.threads if thread == "worker"]
    assert (work & (table["tid"] == worker)).any()


def test_a_process_alone(run: Run, tmp_path: Path) -> None:
    """Without its children."""
    assert warned(run, "alone") == []
    trace = opened(run, "alone", tmp_path)
    assert {one.name for one in trace.info.processes} == {"life"}
    table = trace.instructions(columns=["pid"])
    assert len(table.errors) == 0, str(table.errors)
    assert len(np.unique(table["pid"])) == 1


def test_perf_events_that_are_refused(run: Run) -> None:
    (warning,) = warned(run, "refused")
    assert "perf_event_open: Operation not permitted" in warning
    assert "names of threads" in warning
