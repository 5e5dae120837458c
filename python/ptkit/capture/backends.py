"""Back ends: which work on this system, what the others lack, and which one is used."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from platform import machine as this_machine
from platform import system

from ptkit.capture import perf, ptrace, qemu
from ptkit.capture.backend_probe import BackendProbe
from ptkit.capture.option_table import option_rows
from ptkit.capture.program import I386, NATIVE, UNKNOWN, UNSUPPORTED
from ptkit.capture.systems import platform
from ptkit.errors import ConfigError, UnsupportedError

__all__ = ["Backend", "choose", "probe"]


_MACHINES = {
    "perf": {NATIVE, I386, UNSUPPORTED, UNKNOWN},
    "driver": {NATIVE, I386, UNSUPPORTED, UNKNOWN},
    "emulator": {NATIVE, UNKNOWN},
    "step": {NATIVE, I386, UNSUPPORTED, UNKNOWN},
}


@dataclass(frozen=True)
class Backend:
    """A back end: one way of recording.

    Attributes
    ----------
    name : str
        What ``record(backend=...)`` takes.
    available : bool
        Whether it works on this system.
    detail : str
        What it is, and what is missing.
    remedy : str
        How to get it; empty if it is there.
    missing : str
        What is missing; empty if it is there.
    records : str
        What it records: ``"packets"``, or the option that asks for other things.
    others : tuple of Backend
        The same for other things that it can record; their `records` are options.
    """

    name: str
    available: bool
    detail: str
    remedy: str = ""
    missing: str = ""
    records: str = "packets"
    others: tuple[Backend, ...] = ()

    def recording(self, wanted: Collection[str]) -> Backend:
        """Return the variant that records what the options ask for: packets, BTS or branch stacks."""
        return next((other for other in self.others if other.records in wanted), self)


def _lacking(name: str, what: str, missing: str, remedy: str) -> Backend:
    return Backend(name, False, f"{what}; {missing}", remedy, missing)


def _seen(name: str, what: str, found: BackendProbe, *others: Backend, records: str = "packets") -> Backend:
    if found.missing:
        one = _lacking(name, what, found.missing, found.remedy)
    else:
        cannot = _unstartable(name, starts=True)
        one = Backend(name, True, f"{what}; {found.abilities}" + (f"; {cannot}" if cannot else ""))
    return replace(one, records=records, others=others)


def _perf() -> Backend:
    store = "Linux perf with the intel_bts event: each taken branch, many times slower than native"
    stacks = "Linux perf's samples with branch stacks (LBR): the last branches, again and again"
    what = "Linux perf with the intel_pt event: the processor itself traces"
    if system() == "Windows":
        return _lacking("perf", what, "this is Windows", "use the driver (docs/windows-capture.md), or Linux")
    return _seen(
        "perf",
        what,
        perf.find(),
        _seen("perf", store, perf.find(what="bts"), records="bts"),
        _seen("perf", stacks, perf.find(what="branch_stack"), records="branch_stack"),
    )


def _driver() -> Backend:
    store = "ptkit's kernel driver with Branch Trace Store: each taken branch, many times slower than native"
    return _seen(
        "driver",
        platform.DRIVER_WORDS,
        platform.find_driver(),
        _seen("driver", store, platform.find_driver("bts"), records="bts"),
    )


def _runs_programs() -> bool:
    return system() == "Linux" and this_machine() in {"x86_64", "AMD64"}


def _emulator() -> Backend:
    what = "QEMU's user mode emulation: any x86-64 program, some times slower than native"
    if not _runs_programs():
        return _lacking("emulator", what, "this is no x86-64 Linux", "use an x86-64 Linux machine")
    found = qemu.find()
    if found.missing:
        return _lacking("emulator", what, found.missing, found.remedy)
    untried = "" if found.tried else "; ptkit was not tested with this version of QEMU"
    return Backend("emulator", True, f"{what}; QEMU {found.version} ({found.path}){untried}")


def _step() -> Backend:
    what = "single steps (ptrace): any x86 program, some 30 000 instructions a second"
    if not _runs_programs():
        return _lacking("step", what, "this is no x86-64 Linux", "use an x86-64 Linux machine")
    missing, remedy = ptrace.refused()
    return (
        _lacking("step", what, missing, f"{remedy}, or use emulator")
        if missing
        else Backend("step", True, what)
    )


# Best first.
_PROBES: tuple[Callable[[], Backend], ...] = (_perf, _driver, _emulator, _step)


def probe() -> list[Backend]:
    """Return the back ends, best first: which work on this system, and what the others lack.

    Returns
    -------
    list of Backend

    Examples
    --------
    >>> import ptkit
    >>> [backend.name for backend in ptkit.capture.probe()]
    ['perf', 'driver', 'emulator', 'step']
    """
    return [look() for look in _PROBES]


def _lacking_options(name: str, wanted: Collection[str]) -> list[str]:
    """The options that a back end does not have; an option may be written with its value."""
    rows = option_rows()
    return sorted(one for one in set(wanted) if name not in rows[one.partition("=")[0]].back_ends)


def _unable(name: str, wanted: Collection[str], machine: str, starts: bool) -> str:
    """Why a back end that works on this system cannot record with these options; empty if it can."""
    if machine not in _MACHINES[name]:
        return f"it does not run programs for {machine}"
    lacks = _lacking_options(name, wanted)
    return f"it has no {', '.join(lacks)}" if lacks else _unstartable(name, starts)


def _unstartable(name: str, starts: bool) -> str:
    missing, remedy = ptrace.refused() if starts and name != "emulator" else ("", "")
    return f"it cannot start programs, as {missing}; {remedy}" if missing else ""


def choose(backend: str, wanted: Collection[str], machine: str, starts: bool = True) -> tuple[Backend, str]:
    """Choose the back end.

    Parameters
    ----------
    backend : str
        ``"auto"`` or a name.
    wanted : collection of str
        Options that are used and that not every back end has.
    machine : str
        For which machine the program was built, as `ptkit.capture.program.machine_of` says.
    starts : bool
        Whether a program is started, not only what runs already recorded.

    Returns
    -------
    backend : Backend
    reason : str
        Why ``"auto"`` took none of the better ones; empty if `backend` is a name.

    Raises
    ------
    ConfigError
        If no back end has that name, or it cannot do what is asked for.
    UnsupportedError
        If it does not work on this system, or not with this program.
    """
    found = [one.recording(wanted) for one in probe()]
    names = [one.name for one in found]
    if backend not in ("auto", *names):
        raise ConfigError(f"backend: expected one of {', '.join(['auto', *names])}, found {backend!r}")
    if not any(machine in machines for machines in _MACHINES.values()):
        raise UnsupportedError(f"argv: this is a program for {machine}; only x86-64 programs can be recorded")
    if backend != "auto":
        return _named(backend, found, wanted, machine, starts), ""
    reasons: dict[str, list[str]] = {}
    for one in found:
        problem = one.missing or _unable(one.name, wanted, machine, starts)
        if not problem:
            return one, "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
        reasons.setdefault(problem, []).append(one.name)
    raise _nothing(found, wanted)


def _named(
    name: str, found: Collection[Backend], wanted: Collection[str], machine: str, starts: bool
) -> Backend:
    one = next(one for one in found if one.name == name)
    if not one.available:
        raise UnsupportedError(
            f"backend {one.name!r} does not work on this system: {one.missing}; "
            f"{one.remedy or 'see `ptkit doctor`'}"
        )
    problem = _unable(one.name, wanted, machine, starts)
    if problem:
        able = [name for name in _MACHINES if not _unable(name, wanted, machine, starts)]
        working = [other.name for other in found if other.available and other.name in able]
        able = working or able
        foreign = machine not in _MACHINES[one.name] or problem == _unstartable(one.name, starts)
        error = UnsupportedError if foreign else ConfigError
        raise error(f"backend {one.name!r}: {problem}; use {' or '.join(map(repr, able)) or 'other options'}")
    return one


def _nothing(found: Collection[Backend], wanted: Collection[str]) -> Exception:
    if not any(one.available for one in found):
        return UnsupportedError("no back end works on this system; `ptkit doctor` says what each one lacks")
    lacks: dict[str, list[str]] = {}  # names of back ends by what they lack
    for one in found:
        if not _lacking_options(one.name, wanted):
            lack = "; ".join(filter(None, (one.missing or "not for this program", one.remedy)))
            lacks.setdefault(lack, []).append(one.name)
    says = [f"{', '.join(names)}: {lack}" for lack, names in lacks.items()]
    if {"pid", "cpus"} & set(wanted):
        says.append("emulator and step only start programs: ptkit record -- PROGRAM ARGS")
    asked = ", ".join(sorted(wanted)) or "argv"
    return UnsupportedError("; ".join([f"{asked}: no back end on this system can do this", *says]))
