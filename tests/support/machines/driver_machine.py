"""An emulated machine (QEMU, Debian's kernel) with the Linux driver and tests/machines/linux_driver."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from compiling import COMPILER
from cpio import Archive
from debian import Missing
from kernels import ROOT, Kernel, build_module, find_busybox
from qemu_monitor import Monitor, loops_at_int3

CASES = ROOT / "tests" / "machines" / "linux_driver"
QEMU = shutil.which("qemu-system-x86_64")
CPUS = 2
AT_INT3 = "QEMU: a processor loops at INT3"
QUIET_SECONDS = 120  # then the processors are looked at
SECONDS = 3600  # at the very most: a machine with much else to do
# A timer that comes late, as on a busy host, is broken hardware to the kernel, and it panics.
# A processor that does not schedule for two minutes ends the machine, with the stacks of both on the console.
PARAMETERS = (
    "console=ttyS0,115200n8 loglevel=5 no_timer_check log_buf_len=8M panic=-1 oops=panic"
    " watchdog_thresh=60 softlockup_panic=1 softlockup_all_cpu_backtrace=1"
)

COMPLAINTS = ("WARNING:", "BUG:", "Oops", "general protection", "INFO: task", "unchecked MSR", "NMI received")


def require_qemu() -> None:
    """Skips where QEMU is not installed."""
    if QEMU is None:
        pytest.skip("qemu-system-x86_64 is not installed (package qemu-system-x86)")


def run(*command: str | Path, folder: Path | None = None) -> str:
    """The output of a command, both streams; skips if it is not there, fails if it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except FileNotFoundError:
        pytest.skip(f"{command[0]} is not installed")
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}"
    return done.stdout


def warnings_in(said: str) -> list[str]:
    return [line for line in said.splitlines() if "warning:" in line or "error:" in line]


def build_other(kernel: Kernel, folder: Path) -> Path:
    """A module of which the driver tells."""
    shutil.copytree(CASES / "other", folder)
    run("make", "-C", kernel.headers, f"M={folder}", "modules")
    return folder / "other.ko"


def make_image(kernel: Kernel, folder: Path, change: Callable[[Path], None] | None = None) -> Path:
    """The initramfs: all modules and the test program. `change` changes the sources of the driver."""
    archive = Archive()
    for name, options in (("real", ()), ("model", ("PTKIT_TEST_MODEL=1",))):
        module, said = build_module(kernel, folder / name, *options, change=change)
        assert warnings_in(said) == []
        archive.add(f"lib/{name}.ko", module.read_bytes())
    archive.add("lib/other.ko", build_other(kernel, folder / "other").read_bytes())
    program = folder / "driver_test"
    sources = sorted(CASES.glob("*.c"))
    run(
        str(COMPILER), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-pthread",
        f"-I{ROOT / 'kernel/include'}", "-o", program, *sources,
    )  # fmt: skip
    archive.add("bin/driver_test", program.read_bytes(), 0o755)
    archive.add("init", (CASES / "init.sh").read_bytes(), 0o755)
    try:
        archive.add("bin/busybox", find_busybox().read_bytes(), 0o755)
    except Missing as missing:
        pytest.skip(f"no busybox can be had here: {missing}")
    (folder / "initramfs").write_bytes(archive.bytes())
    return folder / "initramfs"


def run_machine(command: list[str], logs: list[Path], limit: int) -> list[str]:
    """Runs until the machine is switched off, or loops at an INT3: what it wrote to each of `logs`."""
    end = time.monotonic() + limit
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "monitor"
        monitored = [*command, "-monitor", f"unix:{socket},server=on,wait=off"]
        with subprocess.Popen(monitored, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as machine:
            try:
                while not _has_ended(machine):
                    if _is_quiet(logs[1]) and is_at_int3(socket):
                        with logs[0].open("a") as console:
                            console.write(AT_INT3)
                        break
                    if time.monotonic() > end:
                        said = logs[0].read_text(errors="replace")[-4000:]
                        pytest.fail(f"still running after {limit} s; console:\n{said}")
            finally:
                machine.kill()
    return [path.read_text(errors="replace").replace("\r", "") for path in logs]


def _has_ended(machine: subprocess.Popen[bytes]) -> bool:
    """Waits some seconds; fails if QEMU failed."""
    try:
        _, said = machine.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        return False
    assert machine.returncode == 0, said.decode(errors="replace")
    return True


def _is_quiet(results: Path) -> bool:
    """Whether no case has ended for longer than most take. (The kernel goes on complaining.)"""
    written = results.stat().st_mtime if results.exists() else time.time()
    return time.time() - written > QUIET_SECONDS


def is_at_int3(socket: Path) -> bool:
    """Whether a processor of the machine takes INT3 again and again."""
    monitor = Monitor(socket)
    try:
        return loops_at_int3(monitor, CPUS)
    finally:
        monitor.close()


def is_stuck_at_int3(console: str) -> bool:
    """Whether QEMU goes on executing an INT3 that Linux has overwritten since.

    Linux puts INT3 where it changes a jump while other processors run (static keys). Rarely QEMU 7.2 keeps
    its translation of the INT3 on one of them: the processor takes the exception, finds another instruction,
    returns to it, and takes the exception again, without end. One thread translates what another one is
    writing; QEMU 8.1 locks the page before (its commit deba78709ae8). With interrupts disabled, as in
    __schedule(), Linux does not see that it is locked up; QEMU's monitor does.
    """
    return AT_INT3 in console or ("soft lockup" in console and "exc_int3" in console)


def boot(kernel: Kernel, initramfs: Path, arguments: str, more_seconds: int = 0) -> tuple[str, str]:
    """Boots, and waits until the machine is switched off: results, and the kernel's log.

    After a fault of QEMU it boots once more, with one thread for both processors: that fault takes two. The
    first boot has one for each, as faults of the driver may need processors that run at the same time.
    """
    logs = [initramfs.parent / name for name in ("console", "results", "log")]
    command = [
        str(QEMU), "-accel", "tcg", "-cpu", "max", "-smp", str(CPUS), "-m", "2560", "-nodefaults",
        "-display", "none", "-no-reboot", "-kernel", str(kernel.image), "-initrd", str(initramfs),
        "-append", f"{PARAMETERS} {arguments}",
    ]  # fmt: skip
    for log in logs:
        command += ["-serial", f"file:{log}"]
    console, results, log = run_machine(command, logs, SECONDS + more_seconds)
    if is_stuck_at_int3(console):
        command[command.index("tcg")] = "tcg,thread=single"
        console, results, log = run_machine(command, logs, SECONDS + more_seconds)
    assert "done" in results.splitlines(), f"the machine stopped early:\n{results[-2000:]}{console[-4000:]}"
    return results, log


def complaints(log: str, *words: str) -> list[str]:
    """Lines of a kernel's log with any of these words."""
    return [line for line in log.splitlines() if any(word in line for word in words)]
