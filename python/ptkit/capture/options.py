"""Options of a recording: their check, and the plan that comes from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptkit.capture import qemu
from ptkit.capture.backends import choose
from ptkit.capture.filters import Filter
from ptkit.capture.functions import check_functions
from ptkit.capture.option_table import option_rows, read_option
from ptkit.capture.option_types import Options
from ptkit.capture.program import NATIVE, encoded_arguments, machine_of
from ptkit.capture.triggers import Trigger
from ptkit.errors import ConfigError

__all__ = ["Options", "Plan", "path_of", "plan_of"]


@dataclass(frozen=True)
class Plan:
    """A recording that can start.

    Attributes
    ----------
    backend : str
        Name of the back end that is taken.
    reason : str
        Why no better one is used; empty if `backend` was given.
    arguments : dict
        What the core's recorder takes, without the output.
    force : bool
        The output may replace a file that is no recording.
    """

    backend: str
    reason: str
    arguments: dict[str, Any]
    force: bool = False


def path_of(name: str, path: str | os.PathLike[str]) -> bytes:
    """Return a path as the system takes it.

    Raises
    ------
    ConfigError
        If it is none; `name` is the argument's.
    """
    try:
        text = os.fsencode(path)
    except TypeError:
        raise ConfigError(f"{name}: expected a path, found {path!r}") from None
    if not text or b"\0" in text:
        raise ConfigError(f"{name}: {path!r} is no path: it is empty or has a NUL")
    return text


def _check_together(given: dict[str, Any]) -> None:
    """Refuse options that exclude or need each other.

    Raises
    ------
    ConfigError
        Names them.
    """
    if "with_debug" in given and "redact" in given:
        raise ConfigError("with_debug: debug information has the paths of source files; leave out redact")
    if "pid" in given and "cpus" in given:
        raise ConfigError("cpus: a process is followed to whatever processor it runs on; leave pid out")
    if "bts" in given and "branch_stack" in given:
        raise ConfigError("bts, branch_stack: a recording has one of both")
    if "bts" in given or "branch_stack" in given:
        for name in ("timing", "mtc_period"):
            if name in given:
                raise ConfigError(f"{name}: this is of packets, and branch records have none; leave it out")
    for name in ("sample_period", "sample_frequency"):
        if name in given and "branch_stack" not in given:
            raise ConfigError(f"{name}: says how often a branch stack is taken; give branch_stack, too")
    if "ring" not in given and any(one.action == "snapshot" for one in given.get("triggers", [])):
        raise ConfigError("triggers: a snapshot keeps what is in the ring; give its size, such as ring='64M'")


def _as_tuple(value: Any) -> Any:
    """A filter or trigger as the core takes it."""
    if isinstance(value, Filter):
        return value.kind, os.fsencode(value.file), value.symbol, value.first, value.last
    if isinstance(value, Trigger):
        file = os.fsencode(value.file)
        return value.event, value.action, file, value.name, value.location, value.number, value.count
    return value


def _program(argv: Sequence[str | os.PathLike[str]], options: Options) -> tuple[list[bytes], str]:
    """The program with its arguments, and the machine that it was built for; none without a program."""
    other = options.get("pid") is not None or options.get("cpus") is not None
    if other and not argv:
        return [], NATIVE
    if options.get("pid") is not None:
        raise ConfigError("pid: this process is recorded, so give no program")
    words = encoded_arguments(argv)
    return words, machine_of(words[0])


def plan_of(argv: Sequence[str | os.PathLike[str]], options: Options) -> Plan:
    """Check all options, and choose the back end.

    Raises
    ------
    ConfigError
        If an option is out of range or there is no such program.
    UnsupportedError
        If the back end does not work on this system.
    TypeError
        If there is no such option.
    """
    rows = option_rows()
    unknown = sorted(set(options) - set(rows))
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}; there are {', '.join(rows)}")
    program, machine = _program(argv, options)
    values = {name: read_option(name, options.get(name)) for name in rows}
    given = {name: value for name, value in values.items() if value is not None}
    _check_together(given)
    force = given.pop("force", False)
    asked = given.pop("backend", "auto")
    # Options that not every back end has. A flag that is true by default is named by its value.
    wanted = [
        f"{name}=False" if value is False else name
        for name, value in given.items()
        if rows[name].back_ends != rows["backend"].back_ends
    ]
    backend, reason = choose(asked, wanted, machine, starts=bool(program))
    arguments: dict[str, Any] = {"backend": backend.name, "argv": program}
    if backend.name == "emulator":
        check_functions(program[0], given.get("filters", []), given.get("triggers", []))
        found = qemu.find()
        arguments |= {"qemu": os.fsencode(found.path), "plugin": os.fsencode(found.plugin)}
    for name, value in given.items():
        arguments[name] = [_as_tuple(one) for one in value] if isinstance(value, list) else value
    return Plan(backend.name, reason, arguments, force)
