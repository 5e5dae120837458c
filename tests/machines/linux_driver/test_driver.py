"""The Linux driver in an emulated machine: QEMU, which has no Processor Trace, and Debian's kernel.

The module is built twice: as it is, and with a model of the processor's registers instead of them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from debug_kernel import debug_kernel
from driver_machine import (
    COMPLAINTS,
    boot,
    complaints,
    make_image,
    require_qemu,
    run,
    warnings_in,
)
from kernels import ROOT, Kernel, build_folder, build_module

HERE = Path(__file__).resolve().parent
FUZZ_SECONDS = int(os.environ.get("PTKIT_FUZZ_SECONDS", "0"))
DEBUG_COMPLAINTS = ("UBSAN", "KASAN", "ODEBUG", "WARNING", "suspicious", "unreferenced object")
# As walk.c names them.
SESSION_KINDS = (
    "whole_machine",
    "wake_ups",
    "process_by_cr3",
    "process_with_children",
    "thread",
    "process_that_ends",
    "processor_that_goes",
    "branches",
)

pytestmark = [pytest.mark.emulated, pytest.mark.slow]


@pytest.fixture(scope="module")
def debugging(kernel: Kernel) -> Kernel:
    """A kernel that looks for mistakes; a quarter of an hour to build, so only where it is asked for."""
    if os.environ.get("PTKIT_DEBUG_KERNEL") != "1":
        pytest.skip("set PTKIT_DEBUG_KERNEL=1 to build a kernel with KASAN and lockdep (1.7 GB)")
    return debug_kernel(build_folder())


def run_cases(kernel: Kernel, folder: Path, arguments: str = "") -> str:
    """All cases of driver_test.c; the kernel's log."""
    require_qemu()
    results, log = boot(kernel, make_image(kernel, folder), arguments, FUZZ_SECONDS)
    assert "ptkit model: traced at shutdown: 0" in (folder / "console").read_text(errors="replace")
    lines = results.splitlines()
    assert [line for line in lines if line.startswith(("not ok", "#")) and "requests" not in line] == []
    assert (
        sum(line.startswith("ok ") for line in lines)
        == (HERE / "driver_test.c").read_text().count("CASE(") + 1
    )
    return log


def test_driver_with_a_model_of_the_registers(kernel: Kernel, tmp_path: Path) -> None:
    """The kernel has nothing to complain about."""
    assert complaints(run_cases(kernel, tmp_path), *COMPLAINTS) == []


@pytest.mark.parametrize("isolation", ["pti=off", "pti=on"])
def test_driver_on_a_kernel_that_looks_for_mistakes(
    debugging: Kernel, isolation: str, tmp_path: Path
) -> None:
    """KASAN, UBSAN, lockdep, kmemleak and others find nothing."""
    log = run_cases(debugging, tmp_path, isolation)
    for watcher in ("Lock dependency validator", "KernelAddressSanitizer initialized", "kmemleak: scanned"):
        assert watcher in log
    assert complaints(log, *COMPLAINTS, *DEBUG_COMPLAINTS) == []


@pytest.fixture
def strict(kernel: Kernel, request: pytest.FixtureRequest) -> Kernel:
    """The kernel that looks for mistakes where that is asked for, or Debian's."""
    if os.environ.get("PTKIT_DEBUG_KERNEL") != "1":
        return kernel
    debug: Kernel = request.getfixturevalue("debugging")
    return debug


def run_case(kernel: Kernel, folder: Path, case: str, arguments: str = "") -> list[str]:
    """Runs one case of driver_test.c, and expects no complaint; the lines of its results."""
    require_qemu()
    results, log = boot(kernel, make_image(kernel, folder), f"{arguments} cases={case}", FUZZ_SECONDS)
    passed = [line for line in results.splitlines() if line.startswith("ok ")]
    assert passed == ["ok loads", f"ok {case}", "ok kernel_has_no_complaint"], results
    assert complaints(log, *COMPLAINTS, *DEBUG_COMPLAINTS) == []
    return results.splitlines()


@pytest.mark.parametrize("kind", SESSION_KINDS)
def test_all_sequences_of_six_requests(strict: Kernel, kind: str, tmp_path: Path) -> None:
    """With a failure at each step that can fail (walk.c)."""
    if os.environ.get("PTKIT_WALK") != "1":
        pytest.skip("set PTKIT_WALK=1 to walk all sequences of six requests (an hour)")
    results = run_case(strict, tmp_path, "walks_all_sequences_of_requests", f"walk_kind={kind}")
    walked = [line for line in results if line.startswith(f"# {kind}: ") and "states" in line]
    assert len(walked) == 1, results
    print(walked[0])


def test_random_requests_for_minutes(strict: Kernel, tmp_path: Path) -> None:
    """Where steps fail now and then (fuzz.c)."""
    if FUZZ_SECONDS == 0:
        pytest.skip("set PTKIT_FUZZ_SECONDS=600 for ten minutes of random requests")
    run_case(strict, tmp_path, "survives_nonsense", f"fuzz_seconds={FUZZ_SECONDS}")


def test_module_pleases_checkpatch(debugging: Kernel) -> None:
    """Of the interface, which is read by programs, it is the form that those have."""
    script = debugging.headers / "scripts" / "checkpatch.pl"
    # Types of <stdint.h>, for kernel/common is not of the kernel only; version numbers, in one header.
    ignored = "PREFER_KERNEL_TYPES,LINUX_VERSION_CODE,CONSTANT_COMPARISON"
    folders = ("kernel/common", "kernel/linux", "tests/machines/model/kernel")
    sources = [path for name in folders for path in sorted((ROOT / name).rglob("*.[ch]"))]
    options = ("--no-tree", "--strict", "--terse", "--ignore", ignored, "--file")
    run("perl", script, *options, *sources, folder=debugging.headers)


def test_module_compiles_as_its_users_make_it(kernel: Kernel, tmp_path: Path) -> None:
    """Plain make, without W=1."""
    module, said = build_module(kernel, tmp_path, "W=")
    assert module.is_file()
    assert "warning" not in said


def test_module_pleases_sparse(kernel: Kernel, tmp_path: Path) -> None:
    if shutil.which("sparse") is None:
        pytest.skip("sparse is not installed")
    for name, option in (("real", "PTKIT_TEST_MODEL="), ("model", "PTKIT_TEST_MODEL=1")):
        _, said = build_module(kernel, tmp_path / name, "C=2", option)
        assert " CHECK " in said
        assert warnings_in(said) == []
