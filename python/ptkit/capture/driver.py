"""ptkit's kernel driver: whether it is loaded, and what it can do."""

from __future__ import annotations

import errno
import os
import shlex
from pathlib import Path
from typing import Any

from ptkit import __version__, _core
from ptkit.capture.backend_probe import BackendProbe

__all__ = ["DEVICE", "NO_PT", "NO_PT_REMEDY", "find", "find_sources", "processor_has_pt"]

NO_PT = "this processor has no Intel PT, or its hypervisor hides it"
NO_PT_REMEDY = "needs a machine with Intel PT (Broadwell or newer)"
DEVICE = "/dev/ptkit"
_LOCKDOWN = Path("/sys/kernel/security/lockdown")
_MODULE = Path("/sys/module/ptkit")
_WORDS = {
    "topa": "ToPA output",
    "single_range": "single-range output",
    "wake_up": "streaming output",
    "process": "one process",
    "process_both": "user and kernel code of a process at once",
    "children": "children of a process",
    "task": "one thread",
    "sideband": "context switches and page tables",
    "bts": "Branch Trace Store",
    "vmx": "tracing in VMX operation",
    "reserves": "trace units reserved against perf's intel_pt",
}


def processor_has_pt() -> bool:
    """Whether the kernel says that the processor has Intel PT."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return any(line.startswith("flags") and " intel_pt" in line for line in flags.splitlines())


def _locked_down() -> str:
    """The lockdown level that makes the kernel refuse unsigned modules; empty: none, or it is unknown."""
    try:
        text = _LOCKDOWN.read_text()
    except OSError:
        return ""
    level = text.partition("[")[2].partition("]")[0]
    return "" if level in ("", "none") else level


def find_sources() -> Path | None:
    """The folder ``kernel`` with the driver's sources: of the installed package, or of the source tree."""
    package = Path(__file__).resolve().parents[1]
    folders = (package / "kernel", package.parents[1] / "kernel")
    return next((folder for folder in folders if (folder / "linux" / "Kbuild").is_file()), None)


def _how_to_load() -> str:
    sources = find_sources()
    if sources is None:
        return "build and load it from the folder kernel/ of ptkit's sources (docs/kernel-driver.md)"
    quoted = shlex.quote(str(sources))
    return (
        f"build and load it (docs/kernel-driver.md): `cp -r {quoted} ptkit-kernel && "
        "make -C ptkit-kernel/linux && insmod ptkit-kernel/linux/ptkit.ko`, or with DKMS "
        f"`dkms add {quoted} && dkms install ptkit/{__version__} && modprobe ptkit`"
    )


def _unloaded() -> BackendProbe:
    if not processor_has_pt():
        return BackendProbe(NO_PT, NO_PT_REMEDY)
    level = _locked_down()
    if level:
        return BackendProbe(
            f"the driver is not loaded, and the kernel, locked down ({level}), takes signed modules only",
            "sign ptkit.ko with a key that the machine trusts (sign-file, mokutil --import; "
            "docs/kernel-driver.md), or switch Secure Boot off",
        )
    return BackendProbe("the driver is not loaded", _how_to_load())


def _abilities(answer: dict[str, Any]) -> str:
    words = [_WORDS[name] for name in answer["features"]]
    if "reserves" not in answer["features"]:
        words.append("no intel_pt of perf to reserve trace units against")
    if answer["ranges"]:
        words.append(f"{answer['ranges']} address filters")
    words += [f"{name.upper()} packets" for name in ("mtc", "cyc") if answer[name]]
    return "version {}.{}.{}: {}".format(*answer["version"], ", ".join(words))


def _of_branches(answer: dict[str, Any]) -> BackendProbe:
    if "bts" in answer["features"]:
        return BackendProbe(abilities="the kernel and whole processors, too")
    return BackendProbe(
        "there is no Branch Trace Store on this system: the processor lacks it, or the kernel isolates "
        "page tables",
        "boot with pti=off where that is acceptable, or record packets",
    )


def find(answer: dict[str, Any] | None = None, what: str = "packets") -> BackendProbe:
    """Ask the driver.

    Parameters
    ----------
    answer : dict, optional
        What it said already, as ``_core.query_driver`` gives it.
    what : str
        What is to be recorded: ``"packets"`` or ``"bts"``.
    """
    answer = _core.query_driver() if answer is None else answer
    error = answer["errno"]
    if error in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return _unloaded()
    if error in (errno.EACCES, errno.EPERM):
        return BackendProbe(
            f"{DEVICE} may not be opened",
            "run as root, or give the program the capability CAP_PERFMON and access to that file",
        )
    if error:
        return BackendProbe(
            f"{DEVICE} does not answer ({os.strerror(error)})",
            "unload what made that file, and load ptkit's driver",
        )
    if answer["abi"] != answer["known_abi"]:
        older = answer["abi"] < answer["known_abi"]
        return BackendProbe(
            f"the driver's interface has version {answer['abi']}, and this ptkit knows {answer['known_abi']}",
            "load the driver that belongs to this ptkit" if older else "take the ptkit of that driver",
        )
    return BackendProbe(abilities=_abilities(answer)) if what == "packets" else _of_branches(answer)
