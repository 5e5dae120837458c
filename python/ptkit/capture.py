"""Recording: the back ends that this machine has, and what others need."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptkit import _core
from ptkit.arguments import flag, integer
from ptkit.errors import ConfigError, UnsupportedError

__all__ = ["Backend", "Recording", "probe", "record"]

_TIMING = ("tsc", "mtc", "cyc")


@dataclass(frozen=True)
class Backend:
    """One way of recording.

    Attributes
    ----------
    name : str
        What ``record(backend=...)`` takes.
    available : bool
        Whether it works here.
    detail : str
        What it is, or what is missing.
    remedy : str
        How to get it; empty if it is there.
    """

    name: str
    available: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Recording(os.PathLike[str]):
    """What came of a recording. It stands for the path of the bundle wherever a path is wanted.

    Attributes
    ----------
    path : pathlib.Path
        The bundle.
    exit_status : int
        Of the program; 128 + signal if it was killed.
    backend : str
        Name of the way of recording that was used; see `probe`.
    instructions : int
        Executed by all threads.
    streams : int
        One for each thread and program image.
    trace_bytes : int
        Bytes of Processor Trace.
    interrupted : bool
        Ctrl-C ended it.
    limited : bool
        ``max_instructions`` ended it.
    warnings : list of str
        What went wrong without stopping it.
    """

    path: Path
    exit_status: int
    backend: str
    instructions: int = 0
    streams: int = 0
    trace_bytes: int = 0
    interrupted: bool = False
    limited: bool = False
    warnings: list[str] = field(default_factory=list)

    def __fspath__(self) -> str:
        return str(self.path)


def _processor_has_pt() -> bool:
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return any(line.startswith("flags") and " intel_pt" in line for line in flags.splitlines())


def _perf() -> Backend:
    if not _processor_has_pt():
        detail = "Linux perf with the intel_pt event; this processor (or its hypervisor) has no Intel PT"
        return Backend("perf", False, detail, "use a machine with Intel PT (Broadwell or newer)")
    if not Path("/sys/bus/event_source/devices/intel_pt").exists():
        detail = "Linux perf with the intel_pt event; the kernel has none"
        return Backend(
            "perf", False, detail, "boot a kernel with CONFIG_CPU_SUP_INTEL and load its intel_pt event"
        )
    return Backend(
        "perf", False, "Linux perf with the intel_pt event; this ptkit cannot drive it", "use step"
    )


def _driver() -> Backend:
    detail = "a kernel driver of ptkit's own; this ptkit has none"
    return Backend("driver", False, detail, "use step")


def _step() -> Backend:
    detail = "single steps (ptrace): any program on x86-64 Linux, some 30 000 instructions a second"
    if platform.system() != "Linux" or platform.machine() not in {"x86_64", "AMD64"}:
        return Backend("step", False, detail, "use an x86-64 Linux machine")
    try:
        scope = int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        scope = 0
    if scope >= 3:
        return Backend(
            "step",
            False,
            "single steps; ptrace is off (kernel.yama.ptrace_scope = 3)",
            "boot without that setting",
        )
    return Backend("step", True, detail)


# Best first.
_PROBES: tuple[Callable[[], Backend], ...] = (_perf, _driver, _step)


def probe() -> list[Backend]:
    """Say which back ends work here, best first, and what the others lack.

    Returns
    -------
    list of Backend
    """
    return [look() for look in _PROBES]


def _choose(backend: str) -> Backend:
    found = probe()
    if backend == "auto":
        for one in found:
            if one.available:
                return one
        raise UnsupportedError("no way of recording works here; `ptkit doctor` says what each one lacks")
    for one in found:
        if one.name == backend:
            if not one.available:
                raise UnsupportedError(f"backend {backend!r} does not work here: {one.detail}; {one.remedy}")
            return one
    names = ", ".join(["auto", *(one.name for one in found)])
    raise ConfigError(f"backend: expected one of {names}, found {backend!r}")


def _timing(timing: Sequence[str]) -> dict[str, bool]:
    if not isinstance(timing, Iterable):
        raise ConfigError(f"timing: expected any of {', '.join(_TIMING)}, found {timing!r}")
    names = (timing,) if isinstance(timing, str) else tuple(timing)
    for name in names:
        if name not in _TIMING:
            raise ConfigError(f"timing: expected any of {', '.join(_TIMING)}, found {name!r}")
    return {name: name in names for name in _TIMING}


def _program(argv: Sequence[str | os.PathLike[str]]) -> list[bytes]:
    if isinstance(argv, str | bytes):
        raise ConfigError(f"argv: expected a list of program and arguments, found {argv!r}; use shlex.split")
    try:
        words = [os.fsencode(word) for word in argv]
    except TypeError:
        raise ConfigError(f"argv: expected a list of words, found {argv!r}") from None
    if not words:
        raise ConfigError("argv: expected a program, found nothing")
    if any(b"\0" in word for word in words):
        raise ConfigError("argv: a program and its arguments have no NUL")
    if shutil.which(os.fsdecode(words[0])) is None:
        raise ConfigError(
            f"argv: there is no program {os.fsdecode(words[0])!r} that can be run; check the name and PATH"
        )
    return words


def _path(name: str, path: str | os.PathLike[str]) -> bytes:
    try:
        text = os.fsencode(path)
    except TypeError:
        raise ConfigError(f"{name}: expected a path, found {path!r}") from None
    if not text or b"\0" in text:
        raise ConfigError(f"{name}: {path!r} is no path: it is empty or has a NUL")
    return text


def _to_temporary_file(record_to: Callable[..., dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Record into a new file, which does not outlive a failure."""
    handle, name = tempfile.mkstemp(prefix="ptkit-", suffix=".ptk")
    os.close(handle)
    try:
        return name, record_to(output=os.fsencode(name))
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def record(
    argv: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    backend: str = "auto",
    return_compression: bool = True,
    timing: Sequence[str] = _TIMING,
    psb_period: int = 4096,
    tnt_64: bool = False,
    mtc_period: int = 8,
    cyc_threshold: int = 0,
    max_instructions: int | None = None,
    quiet: bool = False,
    truth: str | os.PathLike[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Recording:
    """Run a program and record what its user code executes as Intel Processor Trace.

    Threads, children and programs that it executes are followed. Standard input and output pass through.
    Ctrl-C ends the recording: the program gets SIGINT too, and what was recorded until then is kept.

    Parameters
    ----------
    argv : sequence of str or path
        Program (searched for in PATH) and arguments.
    output : path, optional
        The bundle to write; by default a file in the folder for temporary files.
    backend : str
        ``"auto"`` or a name that `probe` gives.
    return_compression : bool
        Returns that match their call take a bit instead of a TIP packet (SDM, "Return Compression").
    timing : sequence of str
        Timing packets: any of ``"tsc"``, ``"mtc"`` (with TMA), ``"cyc"``.
    psb_period : int
        Bytes between PSB packets: a power of two, 2048 at least.
    tnt_64 : bool
        Use long TNT packets where they save bytes.
    mtc_period : int
        IA32_RTIT_CTL.MTCFreq, 0 to 15: an MTC each 2**mtc_period ticks of the crystal clock (TSC / 480 here).
    cyc_threshold : int
        IA32_RTIT_CTL.CycThresh, 0 to 15.
    max_instructions : int, optional
        Stop recording after so many; the program runs on untraced.
    quiet : bool
        Discard the program's standard output.
    truth : path, optional
        A folder for ``stream-N.u64``: the IP of every instruction that stream N executed, 64 bits each.
    progress : callable, optional
        Called with the number of instructions some times a second.

    Returns
    -------
    Recording
        With the path, the program's exit status and counts. Usable as a path.

    Raises
    ------
    ConfigError
        If an argument is out of range or there is no such program.
    UnsupportedError
        If the back end does not work here.
    OpenError
        If the bundle cannot be written.

    Examples
    --------
    >>> import ptkit
    >>> recording = ptkit.capture.record(["true"])
    >>> recording.exit_status
    0
    """
    chosen = _choose(backend)
    clocks = _timing(timing)
    program = _program(argv)
    mtc_period = integer("mtc_period", mtc_period, 0, 15)
    cyc_threshold = integer("cyc_threshold", cyc_threshold, 0, 15)
    psb_period = integer("psb_period", psb_period, 0, 1 << 26)
    if max_instructions is not None:
        max_instructions = integer("max_instructions", max_instructions, 1, 2**63 - 1)
    for name, value in (("return_compression", return_compression), ("tnt_64", tnt_64), ("quiet", quiet)):
        flag(name, value)
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress: expected a function of one number, found {progress!r}")
    record_to = functools.partial(
        _core.record_steps,
        argv=program,
        truth=b"" if truth is None else _path("truth", truth),
        return_compression=bool(return_compression),
        tsc=clocks["tsc"],
        mtc=clocks["mtc"],
        cyc=clocks["cyc"],
        tnt_64=bool(tnt_64),
        psb_period=psb_period,
        mtc_period=mtc_period,
        cyc_threshold=cyc_threshold,
        max_instructions=max_instructions or 0,
        quiet=bool(quiet),
        progress=progress,
    )
    if output is None:
        output, result = _to_temporary_file(record_to)
    else:
        result = record_to(output=_path("output", output))
    return Recording(
        path=Path(os.fsdecode(output)),
        exit_status=result["exit_status"],
        backend=chosen.name,
        instructions=result["instructions"],
        streams=result["streams"],
        trace_bytes=result["trace_bytes"],
        interrupted=result["interrupted"],
        limited=result["limited"],
        warnings=result["warnings"],
    )
