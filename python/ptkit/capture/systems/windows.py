"""Windows: its driver, its programs, and its files. All of this imports on Linux, too, where it is tested."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

from ptkit import _core
from ptkit.capture.backend_probe import BackendProbe
from ptkit.errors import ConfigError

__all__ = [
    "DRIVER_WORDS",
    "LOOK",
    "NOT_EXECUTABLE",
    "describe",
    "find_driver",
    "folder_warnings",
    "machine_of_file",
    "owner_of",
]

LOOK = os.O_RDONLY | getattr(os, "O_BINARY", 0)  # for os.open(); it is 0 where this is tested
NOT_EXECUTABLE = "Windows starts no file of this kind; name a program (.exe)"
DRIVER_WORDS = "ptkit's Windows driver: the processor itself traces, user and kernel code"
_MACHINES = {0x8664: "x86-64", 0x14C: "32-bit x86", 0xAA64: "AArch64", 0x1C4: "ARM"}
_PE_POINTER = 0x3C  # in the DOS header
_WORDS = {
    "topa": "ToPA output",
    "single_range": "single-range output",
    "wake_up": "streaming output",
    "process": "one process",
    "process_both": "user and kernel code of a process at once",
    "sideband": "processes, threads and images",
    "bts": "Branch Trace Store",
    "vmx": "tracing in VMX operation",
}


def owner_of(owner: str | int) -> tuple[int, int]:
    """Refuse the option ``owner``.

    Raises
    ------
    ConfigError
        Always.
    """
    raise ConfigError(
        f"owner: files of Windows have no user and group by number; leave out {owner!r}, and use icacls"
    )


def folder_warnings(path: Path, mode: int | None) -> list[str]:
    """Say why a recording in a folder is not safe. Who may read files there, the folder's own rights say."""
    if mode is None:
        return [f"{path}: a recording cannot be written to this folder; give -o with another folder"]
    return []


def machine_of_file(head: bytes) -> str | None:
    """For which machine a program was built, by its first bytes; None: it is no program of Windows."""
    if not head.startswith(b"MZ") or len(head) < _PE_POINTER + 4:
        return None
    (header,) = struct.unpack_from("<I", head, _PE_POINTER)
    if head[header : header + 4] != b"PE\0\0" or len(head) < header + 6:
        return None
    (machine,) = struct.unpack_from("<H", head, header + 4)
    return _MACHINES.get(machine, f"PE machine {machine:#x}")


def find_driver(what: str = "packets", answer: dict[str, Any] | None = None) -> BackendProbe:
    """Ask the driver.

    Parameters
    ----------
    what : str
        What is to be recorded: ``"packets"`` or ``"bts"``.
    answer : dict, optional
        What it said already, as ``_core.query_driver`` gives it.
    """
    answer = _core.query_driver() if answer is None else answer
    if answer["detail"]:
        missing, _, remedy = answer["detail"].partition("; ")
        return BackendProbe(missing, remedy)
    if what == "packets":
        return BackendProbe(abilities=_abilities(answer))
    if "bts" in answer["features"]:
        return BackendProbe(abilities="whole processors, the kernel, too")
    return BackendProbe(
        "there is no Branch Trace Store on this system: the processor lacks it, or Windows keeps page "
        "tables of user code apart (KVA shadow)",
        "record packets",
    )


def _abilities(answer: dict[str, Any]) -> str:
    words = [_WORDS[name] for name in answer["features"] if name in _WORDS]
    if answer["ranges"]:
        words.append(f"{answer['ranges']} address filters")
    words += [f"{name.upper()} packets" for name in ("mtc", "cyc") if answer[name]]
    return "version {}.{}.{}: {}".format(*answer["version"], ", ".join(words))


def describe() -> list[str]:
    """Lines about driver, processor and Windows, as ``ptkit-capture doctor`` prints them."""
    return list(_core.query_driver()["lines"])
