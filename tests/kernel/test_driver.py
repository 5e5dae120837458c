"""The Linux driver in an emulated machine: QEMU, which has no Processor Trace, and Debian's kernel.

The module is built twice: as it is, and with a model of the processor's registers in their place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from compiling import COMPILER
from cpio import Archive
from debian import Missing
from kernels import ROOT, Kernel, build_module, find_busybox, find_kernel

HERE = Path(__file__).resolve().parent
QEMU = shutil.which("qemu-system-x86_64")
SECONDS = 300  # at the very most: a machine with much else to do

pytestmark = [pytest.mark.emulated, pytest.mark.slow]


def run(*command: str | Path, folder: Path | None = None) -> str:
    """What a command prints, both streams; skips if it is not there, fails if it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except FileNotFoundError:
        pytest.skip(f"{command[0]} is not installed")
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    """Debian's kernel; skips where it cannot be downloaded."""
    if COMPILER is None:
        pytest.skip("no C compiler: install gcc, or set CC")
    try:
        return find_kernel()
    except Missing as missing:
        if os.environ.get("PTKIT_EMULATED") == "1":
            raise
        pytest.skip(f"Debian's kernel and headers: {missing}")


def warnings_in(said: str) -> list[str]:
    return [line for line in said.splitlines() if "warning:" in line or "error:" in line]


@pytest.fixture(scope="module")
def image(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The initramfs: both modules and the test program."""
    folder = tmp_path_factory.mktemp("driver")
    archive = Archive()
    for name, options in (("real", ()), ("model", ("PTKIT_TEST_MODEL=1",))):
        module, said = build_module(kernel, folder / name, *options)
        assert warnings_in(said) == []
        archive.add(f"lib/{name}.ko", module.read_bytes())
    program = folder / "driver_test"
    sources = sorted(HERE.glob("*.c"))
    run(
        str(COMPILER), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-pthread",
        f"-I{ROOT / 'kernel/include'}", "-o", program, *sources,
    )  # fmt: skip
    archive.add("bin/driver_test", program.read_bytes(), 0o755)
    archive.add("init", (HERE / "init.sh").read_bytes(), 0o755)
    try:
        archive.add("bin/busybox", find_busybox().read_bytes(), 0o755)
    except Missing as missing:
        pytest.skip(f"no busybox can be had here: {missing}")
    (folder / "initramfs").write_bytes(archive.bytes())
    return folder / "initramfs"


def boot(kernel: Kernel, initramfs: Path) -> tuple[str, str]:
    """Boots, and waits until the machine is switched off: results, and the kernel's log."""
    logs = [initramfs.parent / name for name in ("console", "results", "log")]
    command = [
        str(QEMU), "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "512", "-nodefaults",
        "-display", "none", "-no-reboot", "-kernel", str(kernel.image), "-initrd", str(initramfs),
        "-append", "console=ttyS0,115200n8 quiet panic=-1 oops=panic",
    ]  # fmt: skip
    for log in logs:
        command += ["-serial", f"file:{log}"]
    try:
        subprocess.run(command, check=True, timeout=SECONDS, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        pytest.fail(
            f"still running after {SECONDS} s; console:\n{logs[0].read_text(errors='replace')[-4000:]}"
        )
    console, results, log = (path.read_text(errors="replace").replace("\r", "") for path in logs)
    assert "done" in results.splitlines(), f"the machine stopped early:\n{results[-2000:]}{console[-4000:]}"
    return results, log


def test_driver_with_a_model_of_the_registers(kernel: Kernel, image: Path) -> None:
    """All cases of driver_test.c, and the kernel has nothing to complain about."""
    if QEMU is None:
        pytest.skip("qemu-system-x86_64 is not installed (package qemu-system-x86)")
    results, log = boot(kernel, image)
    lines = results.splitlines()
    assert [line for line in lines if line.startswith(("not ok", "#")) and "requests" not in line] == []
    assert (
        sum(line.startswith("ok ") for line in lines)
        == (HERE / "driver_test.c").read_text().count("CASE(") + 1
    )
    for complaint in ("WARNING:", "BUG:", "Oops", "general protection", "INFO: task", "unchecked MSR"):
        assert complaint not in log


def test_module_pleases_sparse(kernel: Kernel, tmp_path: Path) -> None:
    if shutil.which("sparse") is None:
        pytest.skip("sparse is not installed")
    for name, option in (("real", "PTKIT_TEST_MODEL="), ("model", "PTKIT_TEST_MODEL=1")):
        _, said = build_module(kernel, tmp_path / name, "C=2", option)
        assert " CHECK " in said
        assert warnings_in(said) == []
