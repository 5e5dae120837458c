"""The Linux driver in an emulated machine: QEMU, which has no Processor Trace, and Debian's kernel.

The module is built twice: as it is, and with a model of the processor's registers in their place.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from compiling import COMPILER
from cpio import Archive
from debian import Missing
from debug_kernel import debug_kernel
from kernels import ROOT, Kernel, build_folder, build_module, find_busybox, find_kernel

HERE = Path(__file__).resolve().parent
QEMU = shutil.which("qemu-system-x86_64")
SECONDS = 3600  # at the very most: a machine with much else to do
FUZZ_SECONDS = int(os.environ.get("PTKIT_FUZZ_SECONDS", "0"))
# A timer that comes late, as on a busy host, is broken hardware to the kernel, and it panics.
# A processor that does not schedule for two minutes ends the machine, with the stacks of both on the console.
PARAMETERS = (
    "console=ttyS0,115200n8 loglevel=5 no_timer_check log_buf_len=8M panic=-1 oops=panic"
    " watchdog_thresh=60 softlockup_panic=1 softlockup_all_cpu_backtrace=1"
)

COMPLAINTS = ("WARNING:", "BUG:", "Oops", "general protection", "INFO: task", "unchecked MSR", "NMI received")
DEBUG_COMPLAINTS = ("UBSAN", "KASAN", "ODEBUG", "WARNING", "suspicious", "unreferenced object")
INTERRUPTS_ENABLED = 1 << 9  # in EFLAGS
# What calls perf_event_mmap(), where the driver has its kprobe.
CALLERS_OF_THE_PROBED = (
    "__install_special_mapping",
    "do_brk_flags",
    "expand_downwards",
    "mmap_region",
    "mprotect_fixup",
)
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
        pytest.skip("no compiler for .c files: install gcc and g++, or set CC and CXX")
    try:
        return find_kernel()
    except Missing as missing:
        if os.environ.get("PTKIT_EMULATED") == "1":
            raise
        pytest.skip(f"Debian's kernel and headers: {missing}")


@pytest.fixture(scope="module")
def debugging(kernel: Kernel) -> Kernel:
    """A kernel that looks for mistakes; a quarter of an hour to build, so only where it is asked for."""
    if os.environ.get("PTKIT_DEBUG_KERNEL") != "1":
        pytest.skip("set PTKIT_DEBUG_KERNEL=1 to build a kernel with KASAN and lockdep (1.7 GB)")
    return debug_kernel(build_folder())


def warnings_in(said: str) -> list[str]:
    return [line for line in said.splitlines() if "warning:" in line or "error:" in line]


def build_other(kernel: Kernel, folder: Path) -> Path:
    """A module of which the driver tells."""
    shutil.copytree(HERE / "other", folder)
    run("make", "-C", kernel.headers, f"M={folder}", "modules")
    return folder / "other.ko"


def make_image(kernel: Kernel, folder: Path) -> Path:
    """The initramfs: all modules and the test program."""
    archive = Archive()
    for name, options in (("real", ()), ("model", ("PTKIT_TEST_MODEL=1",))):
        module, said = build_module(kernel, folder / name, *options)
        assert warnings_in(said) == []
        archive.add(f"lib/{name}.ko", module.read_bytes())
    archive.add("lib/other.ko", build_other(kernel, folder / "other").read_bytes())
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


def run_machine(command: list[str], logs: list[Path]) -> list[str]:
    """Runs until the machine is switched off: what it wrote to each of `logs`."""
    limit = SECONDS + FUZZ_SECONDS
    try:
        subprocess.run(command, check=True, timeout=limit, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        pytest.fail(f"still running after {limit} s; console:\n{logs[0].read_text(errors='replace')[-4000:]}")
    return [path.read_text(errors="replace").replace("\r", "") for path in logs]


def is_stuck_at_int3(console: str) -> bool:
    """Whether QEMU goes on executing an INT3 that Linux has overwritten since.

    Linux puts INT3 where it changes a jump while other processors run (static keys). Rarely QEMU 7.2 keeps
    its translation of the INT3 on one of them: the processor takes the exception, finds another instruction,
    returns to it, and takes the exception again, without end. One thread translates what another one is
    writing; QEMU 8.1 locks the page before (its commit deba78709ae8).
    """
    return "soft lockup" in console and "exc_int3" in console


def went_to_zero_at_int3(console: str) -> bool:
    """Whether Linux took such an INT3 for the one of a kprobe, and went on at address 0.

    The driver has a kprobe at perf_event_mmap(), by ftrace: Linux switches between a call and a NOP there,
    with an INT3 in between. If an INT3 comes after the switch, Linux looks for a kprobe there, finds the
    driver's, and treats it as a kprobe that is an INT3: it disables interrupts, and goes on at the copy of
    the instruction, which a kprobe by ftrace does not have (setup_singlestep()). On a processor no INT3 comes
    after the switch: Linux waits until each one has serialized.

    A fault of the driver, such as a null pointer in file_operations, would leave interrupts enabled.
    """
    oops = re.search(
        r"RIP: 0010:0x0\n.*? EFLAGS: (\w+)\n.*?Call Trace:\n\[[ .\d]+\]  <TASK>\n\[[ .\d]+\]  (\w+)\+0x",
        console,
        re.DOTALL,
    )
    if oops is None:
        return False
    return not int(oops[1], 16) & INTERRUPTS_ENABLED and oops[2] in CALLERS_OF_THE_PROBED


def boot(kernel: Kernel, initramfs: Path, arguments: str) -> tuple[str, str]:
    """Boots, and waits until the machine is switched off: results, and the kernel's log.

    After a fault of QEMU it boots once more, with one thread for both processors: that fault takes two. The
    first boot has one for each, as faults of the driver may need processors that run at the same time.
    """
    logs = [initramfs.parent / name for name in ("console", "results", "log")]
    command = [
        str(QEMU), "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "2560", "-nodefaults",
        "-display", "none", "-no-reboot", "-kernel", str(kernel.image), "-initrd", str(initramfs),
        "-append", f"{PARAMETERS} {arguments}",
    ]  # fmt: skip
    for log in logs:
        command += ["-serial", f"file:{log}"]
    console, results, log = run_machine(command, logs)
    if is_stuck_at_int3(console) or went_to_zero_at_int3(console):
        command[command.index("tcg")] = "tcg,thread=single"
        console, results, log = run_machine(command, logs)
    assert "done" in results.splitlines(), f"the machine stopped early:\n{results[-2000:]}{console[-4000:]}"
    return results, log


def run_cases(kernel: Kernel, folder: Path, arguments: str = "") -> str:
    """All cases of driver_test.c; the kernel's log."""
    if QEMU is None:
        pytest.skip("qemu-system-x86_64 is not installed (package qemu-system-x86)")
    results, log = boot(kernel, make_image(kernel, folder), arguments)
    assert "ptkit model: traced at shutdown: 0" in (folder / "console").read_text(errors="replace")
    lines = results.splitlines()
    assert [line for line in lines if line.startswith(("not ok", "#")) and "requests" not in line] == []
    assert (
        sum(line.startswith("ok ") for line in lines)
        == (HERE / "driver_test.c").read_text().count("CASE(") + 1
    )
    return log


OOPS_AT_INT3 = """\
[   54.049268] BUG: kernel NULL pointer dereference, address: 0000000000000000
[   54.049268] RIP: 0010:0x0
[   54.049268] Code: Unable to access opcode bytes at 0xffffffffffffffd6.
[   54.049268] RSP: 0018:ff36afa1c03ffbd8 EFLAGS: 00000086
[   54.049268] Call Trace:
[   54.049268]  <TASK>
[   54.049268]  mmap_region+0x3cb/0x770
[   54.049268]  do_mmap+0x38b/0x610
"""


@pytest.mark.parametrize(
    ("was", "is_now", "expected"),
    [
        ("", "", True),
        ("EFLAGS: 00000086", "EFLAGS: 00000286", False),
        ("  mmap_region", "  ptkit_mmap", False),
        ("  mmap_region", "  call_mmap+0x1/0x2\n[   54.049268]  mmap_region", False),
        ("0010:0x0", "0010:ptkit_mmap+0x10/0x20 [ptkit]", False),
    ],
)
def test_boots_again_after_no_fault_of_the_driver(was: str, is_now: str, expected: bool) -> None:
    """The oops as it was found, and what a fault of the driver could look like."""
    assert went_to_zero_at_int3(OOPS_AT_INT3.replace(was, is_now)) is expected


def complaints(log: str, *words: str) -> list[str]:
    """Lines of a kernel's log with any of these words."""
    return [line for line in log.splitlines() if any(word in line for word in words)]


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
    if QEMU is None:
        pytest.skip("qemu-system-x86_64 is not installed (package qemu-system-x86)")
    results, log = boot(kernel, make_image(kernel, folder), f"{arguments} cases={case}")
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
    walked = [line for line in results if line.startswith(f"# {kind}: ") and "places" in line]
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
    folders = ("kernel/common", "kernel/linux", "tests/model/kernel")
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
