"""The machine as a report describes it: processor, microcode, kernel; no name of a person or a host."""

from __future__ import annotations

import getpass
import os
import platform
import re
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptkit import msr

__all__ = ["describe_machine", "interrupts", "read_registers", "without_names"]

_CPUINFO = Path("/proc/cpuinfo")
_INTERRUPTS = Path("/proc/interrupts")
_FIELDS = {
    "vendor_id": "vendor",
    "cpu family": "family",
    "model": "model",
    "stepping": "stepping",
    "model name": "name",
    "microcode": "microcode",
}
# Registers that software other than the trace unit's user must find as it left them.
_REGISTERS = ("IA32_RTIT_CTL", "IA32_RTIT_STATUS", "IA32_RTIT_CR3_MATCH")
_KEPT_FOLDERS = ("/proc", "/sys", "/dev")
_PATH = re.compile(r"(?<![\w./])~?(?:/[^\s:;,'\"()]+)+")
_SHORTEST_NAME = 3


def describe_machine() -> dict[str, Any]:
    """Return what a reader of the report has to know of this machine.

    Returns
    -------
    dict
        ``vendor``, ``family``, ``model``, ``stepping``, ``name``, ``microcode`` (None: not known),
        ``hypervisor`` (bool), ``processors``, ``kernel``, ``cpuid`` (words of the leaves about tracing).
    """
    cpu = _cpu(_read(_CPUINFO))
    words = [
        dict(zip(("leaf", "subleaf", "eax", "ebx", "ecx", "edx"), map(hex, row), strict=True))
        for row in msr.capabilities().words
    ]
    return {**cpu, "processors": os.cpu_count(), "kernel": platform.release(), "cpuid": words}


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _cpu(text: str) -> dict[str, Any]:
    """The first processor of /proc/cpuinfo."""
    found: dict[str, Any] = dict.fromkeys(_FIELDS.values()) | {"hypervisor": False}
    for line in text.partition("\n\n")[0].splitlines():
        name, _, value = (part.strip() for part in line.partition(":"))
        if name in _FIELDS:
            found[_FIELDS[name]] = int(value) if value.isdecimal() else value
        elif name == "flags":
            found["hypervisor"] = "hypervisor" in value.split()
    return found


def interrupts(text: str | None = None) -> Mapping[str, int]:
    """Count interrupts of all processors.

    Parameters
    ----------
    text : str, optional
        ``/proc/interrupts``, by default that of now.

    Returns
    -------
    mapping
        ``NMI`` and ``PMI`` (performance monitoring interrupts that Linux' perf has handled).
    """
    counts = {"NMI": 0, "PMI": 0}
    for line in (_read(_INTERRUPTS) if text is None else text).splitlines():
        name, _, rest = line.partition(":")
        if name.strip() in counts:
            counts[name.strip()] = sum(int(word) for word in rest.split() if word.isdecimal())
    return counts


@dataclass(frozen=True)
class _Device:
    """/dev/cpu/N/msr."""

    cpu: int

    @property
    def path(self) -> Path:
        return Path(f"/dev/cpu/{self.cpu}/msr")

    def read(self, number: int) -> int:
        handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            (value,) = struct.unpack("<Q", os.pread(handle, 8, number))
        finally:
            os.close(handle)
        return int(value)


def read_registers(cpu: int) -> dict[str, int]:
    """Read the registers of a processor's trace unit, as far as they exist.

    Raises
    ------
    OSError
        If registers cannot be read at all; RTIT_CTL exists wherever there is Processor Trace.
    """
    device, found = _Device(cpu), {}
    for name in _REGISTERS:
        try:
            found[name] = device.read(msr.register(name).number)
        except OSError:
            if not found:
                raise
    return found


def without_names(text: str) -> str:
    """Return text without paths (but those of the kernel's file systems), host and user names."""
    text = _PATH.sub(lambda path: path[0] if path[0].startswith(_KEPT_FOLDERS) else "PATH", text)
    names = [platform.node(), platform.node().partition(".")[0]]
    with suppress(KeyError, OSError):
        names.append(getpass.getuser())
    for name in names:
        if len(name) >= _SHORTEST_NAME and name != "root":
            text = re.sub(rf"\b{re.escape(name)}\b", "NAME", text)
    return text
