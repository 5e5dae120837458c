"""Options of the back ends that have the processor itself trace: the kernel driver and perf."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptkit.capture.sizes import size_of
from ptkit.errors import ConfigError
from ptkit.support.arguments import chosen, flag, integer, several

__all__ = ["ABILITIES", "LEVELS", "MOST_CPUS", "NO_CHILDREN", "OPTIONS", "PACKETS", "arguments_of"]

LEVELS = ("user", "kernel", "both")
PACKETS = ("ptwrite", "power", "events")
NO_CHILDREN = "children=False"
MOST_CPUS = 1 << 16
# What no other back end has.
_BOTH = ("levels", "pid", "cpus", "children", "seconds", "buffer", "packets", "per_thread", "bts")
_SAMPLES = ("branch_stack", "sample_period", "sample_frequency")
_ONLY = {"driver": ("single_range",), "perf": ("event", "triggers", *_SAMPLES)}
OPTIONS = (*_BOTH, "single_range", "event", *_SAMPLES)
# By back end, what it can that others cannot.
ABILITIES = {
    name: frozenset({"filters", "ring", "redact", NO_CHILDREN, *_BOTH, *own}) for name, own in _ONLY.items()
}


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
    """Read the options that only these back ends have, as far as they are used.

    Returns
    -------
    dict
        What ``_core.DriverRecorder`` and ``_core.PerfRecorder`` take.

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
        found |= dict.fromkeys(chosen("packets", options["packets"], PACKETS), True)
    if options.get("pid") is not None:
        found["process"] = integer("pid", options["pid"], 1, 2**31 - 1)
    if options.get("cpus") is not None:
        found |= _cpus(options["cpus"])
        if "process" in found:
            raise ConfigError("cpus: a process is followed to whatever processor it runs on; leave pid out")
    if options.get("children") is not None:
        found["children"] = flag("children", options["children"])
    for name in ("single_range", "per_thread"):
        if options.get(name) is not None and flag(name, options[name]):
            found[name] = True
    if options.get("event") is not None:
        found["event"] = _event(options["event"])
    if options.get("buffer") is not None:
        found["buffer_bytes"] = size_of("buffer", options["buffer"])
    if options.get("seconds") is not None:
        found["limit_ms"] = _milliseconds(options["seconds"])
    return found | _branches(options)


def _branches(options: dict[str, Any]) -> dict[str, Any]:
    """What is recorded instead of packets, and how often."""
    found: dict[str, Any] = {}
    if options.get("bts") is not None and flag("bts", options["bts"]):
        found["bts"] = True
    kinds = options.get("branch_stack")
    if kinds is not None and kinds is not False:
        found["branch_stack"] = "any" if kinds is True else ",".join(_kinds(kinds))
    if len(found) > 1:
        raise ConfigError("bts, branch_stack: a recording has one of both")
    if found:
        for name in ("timing", "mtc_period"):
            if options.get(name) is not None:
                raise ConfigError(f"{name}: this is of packets, and branch records have none; leave it out")
    for name in ("sample_period", "sample_frequency"):
        if options.get(name) is None:
            continue
        if "branch_stack" not in found:
            raise ConfigError(f"{name}: says how often a branch stack is taken; give branch_stack, too")
        found[name] = integer(name, options[name], 1, 2**63 - 1)
    return found


def _kinds(value: Any) -> tuple[str, ...]:
    expected = "kinds of branches such as 'any_call'"
    names = several("branch_stack", value.split(",") if isinstance(value, str) else value, str, expected)
    if not names or not all(name and name.isascii() for name in names):
        raise ConfigError(f"branch_stack: expected {expected}, found {value!r}")
    return tuple(names)


def _event(text: Any) -> bytes:
    if not isinstance(text, str) or not text.isascii() or "\0" in text:
        raise ConfigError(f"event: expected perf's terms, such as 'tsc,noretcomp', found {text!r}")
    return text.encode()


def _milliseconds(seconds: Any) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.001 <= seconds <= 1e9:
        raise ConfigError(f"seconds: expected a number from 0.001 to 1e9, found {seconds!r}")
    return round(seconds * 1000)
