"""Builds Bochs with our trace unit: Debian's source, a few edits, and the instrumentation library."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "support" / "machines"))  # pytest does so by itself

from debian import Missing, Packages
from kernels import build_folder

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
JOBS = 2

CONFIGURE = (
    "--enable-instrumentation=instrument/ptkit",
    "--enable-x86-64", "--enable-cpu-level=6", "--enable-smp",
    "--enable-repeat-speedups", "--enable-fast-function-calls", "--enable-handlers-chaining",
    "--enable-configurable-msrs", "--enable-avx", "--enable-evex", "--enable-long-phy-address",
    "--enable-pci", "--disable-docbook", "--disable-plugins", "--disable-debugger", "--with-nogui",
)  # fmt: skip

_LEAF = (
    "void corei7_skylake_x_t::get_cpuid_leaf"
    "(Bit32u function, Bit32u subfunction, cpuid_function_t *leaf) const\n"
)

# (file, what stands there exactly once, what shall stand there)
EDITS = (
    (  # Registers of Processor Trace, and CPUID, are answered by us.
        "cpu/cpudb/intel/corei7_skylake-x.h",
        "  virtual void dump_cpuid(void) const;\n",
        "  virtual void dump_cpuid(void) const;\n"
        "  virtual int rdmsr(Bit32u index, Bit64u *msr);\n"
        "  virtual int wrmsr(Bit32u index, Bit64u msr);\n"
        "  void get_model_leaf(Bit32u function, Bit32u subfunction, cpuid_function_t *leaf) const;\n",
    ),
    (
        "cpu/cpudb/intel/corei7_skylake-x.cc",
        _LEAF,
        "int corei7_skylake_x_t::rdmsr(Bit32u index, Bit64u *msr)\n"
        "{ return ptkit_read_msr(cpu->bx_cpuid, index, msr); }\n"
        "int corei7_skylake_x_t::wrmsr(Bit32u index, Bit64u msr)\n"
        "{ return ptkit_write_msr(cpu->bx_cpuid, index, msr); }\n\n"
        + _LEAF
        + "{\n"
        "  get_model_leaf(function, subfunction, leaf);\n"
        "  ptkit_change_cpuid(function, subfunction, &leaf->eax, &leaf->ebx, &leaf->ecx, &leaf->edx);\n"
        "}\n\n"
        + _LEAF.replace("get_cpuid_leaf", "get_model_leaf"),
    ),
    (  # The performance counters' interrupt; delivery masks its entry.
        "cpu/apic.h",
        "  Bit32u get_id() const { return apic_id; }\n",
        "  Bit32u get_id() const { return apic_id; }\n"
        "  void raise_perfmon() {\n"
        "    const Bit32u entry = lvt[APIC_LVT_PERFMON];\n"
        "    if (entry & 0x10000) return;\n"
        "    lvt[APIC_LVT_PERFMON] |= 0x10000;\n"
        "    deliver(entry & 0xff, (entry >> 8) & 7, 0);\n"
        "  }\n",
    ),
    (
        "cpu/apic.cc",
        "  if(! software_enabled) {\n    lvt[lvt_entry] |= 0x10000;\n  }\n",
        "  if(! software_enabled) {\n    lvt[lvt_entry] |= 0x10000;\n  }\n"
        "  if (lvt_entry == APIC_LVT_PERFMON && !(lvt[lvt_entry] & 0x10000))\n"
        "    ptkit_unmasked(cpu->bx_cpuid);\n",
    ),
    (  # RDPMC.
        "cpu/proc_ctrl.cc",
        "  if (BX_CPUID_SUPPORT_ISA_EXTENSION(BX_ISA_SSE2)) { // Pentium 4 processor (see cpuid.cc)\n"
        "    if ((ECX & 0x7fffffff) >= 18)\n",
        "  Bit64u count = 0;\n"
        "  if (BX_CPUID_SUPPORT_ISA_EXTENSION(BX_ISA_SSE2)) { // Pentium 4 processor (see cpuid.cc)\n"
        "    if (! ptkit_read_counter(BX_CPU_ID, ECX, &count))\n",
    ),
    (
        "cpu/proc_ctrl.cc",
        "  RAX = 0;\n  RDX = 0; // if P4 and",
        "  RAX = (Bit32u) count;\n  RDX = count >> 32; // if P4 and",
    ),
    (
        "cpu/proc_ctrl.cc",
        '  BX_ERROR(("RDPMC: Performance Counters Support not implemented yet"));\n',
        "",
    ),
    (  # A run can be had again: what RDRAND and RDSEED give comes from the machine's clock,
        "cpu/init.cc",
        "  srand(time(NULL)); //",
        "  srand((unsigned) SIM->get_param_num(BXPN_CLOCK_TIME0)->get64()); //",
    ),
    (  # and no timer looks at this machine's.
        "iodev/virt_timer.cc",
        "#define GET_VIRT_REALTIME64_USEC() (bx_get_realtime64_usec())\n",
        "#define GET_VIRT_REALTIME64_USEC() (bx_pc_system.time_usec())\n",
    ),
    (  # A file larger than one block of memory does not lie in one piece there.
        "memory/misc_mem.cc",
        "    ret = read(fd, (bx_ptr_t) BX_MEM_THIS get_vector(offset), size);\n"
        "    if (ret <= 0) {\n      BX_PANIC((\"RAM: read failed",
        "    ret = read(fd, (bx_ptr_t) BX_MEM_THIS get_vector(offset), size < 4096 ? size : 4096);\n"
        "    if (ret <= 0) {\n      BX_PANIC((\"RAM: read failed",
    ),
)  # fmt: skip


def build(folder: Path) -> Path:
    """Builds what is not built yet; the path of the program.

    Parameters
    ----------
    folder
        The build folder; made if absent.

    Raises
    ------
    Missing
        Something cannot be downloaded or compiled here.
    """
    tree = folder / "bochs"
    program = tree / "bochs"
    stamp = tree / "configured"
    header = (HERE / "instrument" / "instrument.h").read_text()  # all of Bochs includes it
    configured = hashlib.sha256(repr((EDITS, CONFIGURE, header)).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != configured:
        _unpack(folder, tree)
        _edit(tree)
        _link_library(tree)
        flags = {"CFLAGS": "-O2", "CXXFLAGS": "-O2"}
        _run([str(tree / "configure"), *CONFIGURE], tree, os.environ | flags)
        stamp.write_text(configured)
    _link_library(tree)
    _link(tree / "instrument" / "ptkit" / "Makefile", HERE / "instrument" / "Makefile.in")
    _run(["nice", "make", f"-j{JOBS}"], tree, dict(os.environ))
    return program


def _unpack(folder: Path, tree: Path) -> None:
    tarball = Packages(folder / "apt").source_tarball("bochs")
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    _run(["tar", "-xf", str(tarball), "--strip-components=1"], tree, dict(os.environ))


def _edit(tree: Path) -> None:
    for name, old, new in EDITS:
        path = tree / name
        text = path.read_text(encoding="latin-1")
        if text.count(old) != 1:
            raise Missing(f"{name} of this Bochs does not have once, but {text.count(old)} times: {old!r}")
        path.write_text(text.replace(old, new), encoding="latin-1")


def _link_library(tree: Path) -> None:
    """Links to our sources: make sees there what changed, but not that they are another project's now."""
    library = tree / "instrument" / "ptkit"
    library.mkdir(exist_ok=True)
    if (library / "project").resolve() != ROOT:
        shutil.rmtree(library / "obj", ignore_errors=True)
    for source in (HERE / "instrument").iterdir():
        _link(library / source.name, source)
    _link(library / "project", ROOT)


def _link(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


if __name__ == "__main__":
    try:
        print(build(build_folder()))
    except Missing as missing:
        sys.exit(str(missing))
