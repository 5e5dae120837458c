"""ptkit's kernel driver: whether it is there, what it can do, and what it is told."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptkit import _core
from ptkit.arguments import flag, integer
from ptkit.capture.sizes import size_of
from ptkit.errors import ConfigError

__all__ = [
    "DEVICE",
    "LEVELS",
    "MOST_CPUS",
    "NO_CHILDREN",
    "NO_PT",
    "OPTIONS",
    "PACKETS",
    "Found",
    "arguments_of",
    "find",
    "processor_has_pt",
]

NO_PT = "this processor has no Intel PT, or its hypervisor hides it"
DEVICE = "/dev/ptkit"
LEVELS = ("user", "kernel", "both")
# What no other back end has.
OPTIONS = ("levels", "pid", "cpus", "children", "seconds", "buffer", "single_range", "packets")
NO_CHILDREN = "children=False"
MOST_CPUS = 1 << 16
PACKETS = ("ptwrite", "power", "events")
_LOAD = "build and load it: `make -C kernel/linux && insmod kernel/linux/ptkit.ko`, or by DKMS"
_LOCKDOWN = Path("/sys/kernel/security/lockdown")
_MODULE = Path("/sys/module/ptkit")
_WORDS = {
    "topa": "tables of regions",
    "single_range": "single ranges",
    "wake_up": "buffers that are emptied meanwhile",
    "process": "one process",
    "process_both": "its user and kernel code at once",
    "children": "its children",
    "task": "one thread",
    "sideband": "switches and mappings",
    "bts": "Branch Trace Store",
    "vmx": "beside a hypervisor",
}


@dataclass(frozen=True)
class Found:
    """What there is of the driver.

    Attributes
    ----------
    missing, remedy : str
        Why it does not work here, and what to do; empty if it does.
    abilities : str
        What it can do here, in words.
    """

    missing: str = ""
    remedy: str = ""
    abilities: str = ""


def processor_has_pt() -> bool:
    """Whether the kernel says that the processor has Intel PT."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return any(line.startswith("flags") and " intel_pt" in line for line in flags.splitlines())


def _locked_down() -> str:
    """Why the kernel takes no module that nobody signed; empty if it takes it, or does not say."""
    try:
        text = _LOCKDOWN.read_text()
    except OSError:
        return ""
    level = text.partition("[")[2].partition("]")[0]
    return "" if level in ("", "none") else level


def _unloaded() -> Found:
    if not processor_has_pt():
        return Found(NO_PT, "use emulator, or a machine with Intel PT (Broadwell or newer)")
    level = _locked_down()
    if level:
        return Found(
            f"the driver is not loaded, and the kernel, locked down ({level}), takes signed modules only",
            "sign ptkit.ko with a key that the machine trusts (mokutil --import), or switch Secure Boot off",
        )
    return Found("the driver is not loaded", _LOAD)


def _abilities(answer: dict[str, Any]) -> str:
    words = [_WORDS[name] for name in answer["features"]]
    if answer["ranges"]:
        words.append(f"{answer['ranges']} address filters")
    words += [f"{name.upper()} packets" for name in ("mtc", "cyc") if answer[name]]
    return "version {}.{}.{}: {}".format(*answer["version"], ", ".join(words))


def find(answer: dict[str, Any] | None = None) -> Found:
    """Ask the driver.

    Parameters
    ----------
    answer : dict, optional
        What it said already, as ``_core.ask_driver`` gives it.
    """
    answer = _core.ask_driver() if answer is None else answer
    error = answer["errno"]
    if error in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        return _unloaded()
    if error in (errno.EACCES, errno.EPERM):
        return Found(
            f"{DEVICE} may not be opened",
            "run as root, or give the program the capability CAP_PERFMON and access to that file",
        )
    if error:
        return Found(
            f"{DEVICE} does not answer ({os.strerror(error)})",
            "unload what made that file, and load ptkit's driver",
        )
    if answer["abi"] != answer["known_abi"]:
        older = answer["abi"] < answer["known_abi"]
        return Found(
            f"the driver's interface has version {answer['abi']}, and this ptkit knows {answer['known_abi']}",
            "load the driver that belongs to this ptkit" if older else "take the ptkit of that driver",
        )
    return Found(abilities=_abilities(answer))


def _names(name: str, value: Any, allowed: tuple[str, ...]) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Iterable):
        raise ConfigError(f"{name}: expected any of {', '.join(allowed)}, found {value!r}")
    names = tuple(names)
    for one in names:
        if one not in allowed:
            raise ConfigError(f"{name}: expected any of {', '.join(allowed)}, found {one!r}")
    return names


def _cpus(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        if value == "all":
            return {"all_cpus": True}
        raise ConfigError(f"cpus: expected 'all' or numbers, found {value!r}")
    numbers = [value] if isinstance(value, int) else value
    if not isinstance(numbers, Iterable):
        raise ConfigError(f"cpus: expected 'all' or numbers, found {value!r}")
    found = sorted({integer("cpus", number, 0, MOST_CPUS - 1) for number in numbers})
    if not found:
        raise ConfigError("cpus: expected 'all' or numbers, found none")
    return {"cpus": found}


def arguments_of(options: dict[str, Any]) -> dict[str, Any]:
    """Read the options that only this back end has, as far as they are used.

    Returns
    -------
    dict
        What ``_core.DriverRecorder`` takes.

    Raises
    ------
    ConfigError
        If one is out of range, or two exclude each other.
    """
    found: dict[str, Any] = {}
    if options.get("levels") is not None:
        level = options["levels"]
        if level not in LEVELS:
            raise ConfigError(f"levels: expected one of {', '.join(LEVELS)}, found {level!r}")
        found |= {"user": level != "kernel", "kernel": level != "user"}
    if options.get("packets") is not None:
        names = _names("packets", options["packets"], PACKETS)
        found |= dict.fromkeys(names, True)
    if options.get("pid") is not None:
        found["process"] = integer("pid", options["pid"], 1, 2**31 - 1)
    if options.get("cpus") is not None:
        found |= _cpus(options["cpus"])
        if "process" in found:
            raise ConfigError("cpus: a process is followed to whatever processor it runs on; leave pid out")
    if options.get("children") is not None:
        found["children"] = flag("children", options["children"])
    if options.get("single_range"):
        found["single_range"] = flag("single_range", options["single_range"])
    if options.get("buffer") is not None:
        found["buffer_bytes"] = size_of("buffer", options["buffer"])
    if options.get("seconds") is not None:
        found["limit_ms"] = _milliseconds(options["seconds"])
    return found


def _milliseconds(seconds: Any) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.001 <= seconds <= 1e9:
        raise ConfigError(f"seconds: expected a number from 0.001 to 1e9, found {seconds!r}")
    return round(seconds * 1000)
