"""The plan of a recording: what a probe says of rates and losses, and the options that avoid losses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ptkit.capture.option_table import default_timing, read_option
from ptkit.errors import ConfigError, OpenError
from ptkit.planning.advice import Advice, Choice, advise, alternatives
from ptkit.planning.drain import Drain, measure
from ptkit.planning.estimates import Consumer, Estimate, estimate
from ptkit.planning.packet_bytes import PacketBytes, count_bytes
from ptkit.planning.probe import HARDWARE, Probe, available_memory, record_probe
from ptkit.planning.settings import Settings

__all__ = ["RecordingPlan", "StreamRate", "plan_recording"]

_WINDOW_SECONDS = 0.001
_MOST_WINDOWS = 400
_PSB_PERIOD = 4096
_MEMORY_PART = 4  # buffers may take this part of the free memory, as in src/capture/linux/perf/sizes.cpp


@dataclass(frozen=True)
class StreamRate:
    """One stream of a probe: of a processor, or of a thread.

    Attributes
    ----------
    name : str
        ``"processor 3"``, or the thread.
    bytes : int
        Its trace.
    bytes_per_second : float
        Mean over the probe.
    largest : float
        Bytes a second of the window with most.
    """

    name: str
    bytes: int
    bytes_per_second: float
    largest: float


@dataclass(frozen=True)
class RecordingPlan:
    """Results of a probe, and recommended options.

    Attributes
    ----------
    backend : str
        Name of the back end that recorded the probe.
    reason : str
        Requirements that better back ends lacked.
    measures_silicon : bool
        Whether a processor traced: otherwise rates are those of an emulator or of single steps.
    seconds : float
        Length of the probe.
    complete : bool
        The program, or the process, ended within the probe.
    trace_bytes : int
        Trace of the probe.
    instructions, branches : int
        Executed; 0 if the back end does not count them.
    window_seconds : float
        Length of a window.
    streams : tuple of StreamRate
        The streams with a trace, those with most of it first.
    timing : tuple of str
        Timing packets of the probe.
    groups : dict
        Bytes of ``TNT``, ``TIP`` (with TIP.PGE, TIP.PGD, FUP), ``CYC``, ``MTC``, ``TSC`` (with TMA), ``PSB+``
        and ``other`` packets.
    overflows : int
        OVF packets: the trace unit could not write as much.
    losses, lost_bytes : int
        Losses of the recorder, and how many bytes if that is known.
    warnings : tuple of str
        Of the probe.
    folder : str
        Where the recording is to be written.
    drain_bytes_per_second : float
        Trace that is packed and written there.
    packed : float
        Bytes of a bundle for each byte of trace.
    estimates : tuple of Estimate
        Settings with fewer and fewer packets: all timing packets, what was wished, what takes less.
    command : tuple of str
        The recommended command.
    reasons : tuple of tuple of str
        Its options, and why.
    """

    backend: str
    reason: str
    measures_silicon: bool
    seconds: float
    complete: bool
    trace_bytes: int
    instructions: int
    branches: int
    window_seconds: float
    streams: tuple[StreamRate, ...]
    timing: tuple[str, ...]
    groups: dict[str, int]
    overflows: int
    losses: int
    lost_bytes: int
    warnings: tuple[str, ...]
    folder: str
    drain_bytes_per_second: float
    packed: float
    estimates: tuple[Estimate, ...]
    command: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]

    @property
    def bytes_per_second(self) -> float:
        """Of all streams, with all packets of the probe."""
        return self.trace_bytes / self.seconds

    @property
    def branch_bytes(self) -> int:
        """Bytes of TNT and TIP packets, which do not depend on time."""
        return self.groups["TNT"] + self.groups["TIP"]


def plan_recording(
    command: Sequence[str] = (),
    *,
    output: str | os.PathLike[str] = "trace.ptk",
    seconds: float | None = None,
    keep: bool = False,
    timing: str | Sequence[str] | None = None,
    **options: Any,
) -> RecordingPlan:
    """Record a probe, and plan a recording without losses.

    A program that the probe has started gets SIGTERM when the probe ends; its standard output is discarded.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; empty with `pid` or `cpus`.
    output : path
        Where the recording is to be written: its folder is measured.
    seconds : float, optional
        Length of the probe; by default 0.2, and 2 where no processor traces.
    keep : bool
        Let the program run to its end, without trace; this waits for it.
    timing : str or sequence of str, optional
        Timing packets that the recording should have, as `ptkit.capture.Options` has them.
    **options
        Of `ptkit.capture.Options`: ``backend``, ``levels``, ``pid``, ``cpus``, ``filters`` (text).

    Returns
    -------
    RecordingPlan

    Raises
    ------
    ConfigError
        If an option is out of range, there is no such program, or the folder cannot be written.
    UnsupportedError
        If no back end works on this system.
    FormatError
        If nothing was recorded.

    Examples
    --------
    >>> from ptkit.planning import plan_recording
    >>> plan = plan_recording(["sh", "-c", "while :; do :; done"], seconds=0.5)
    >>> plan.complete, plan.overflows, plan.command[:4]
    (False, 0, ('ptkit', 'record', '-o', 'trace.ptk'))
    """
    wished = None if timing is None else tuple(read_option("timing", timing))
    _check(command, seconds, options)
    path = Path(output)
    with _work_folder(path.parent) as folder:
        probe = record_probe(list(command), Path(folder), seconds, keep, options)
        drain = measure(probe.trace, Path(folder))
        window = max(_WINDOW_SECONDS, probe.seconds / _MOST_WINDOWS)
        found = count_bytes(probe.trace, probe.seconds, window, _PSB_PERIOD, complete=probe.complete)
    settings = _settings(probe)
    usual = Settings(default_timing(probe.recording.backend)[0], settings.mtc_period)
    wish = usual if wished is None else Settings(wished, settings.mtc_period)
    streams = sum(one.size > 0 for one in probe.trace.info.streams)
    consumer = Consumer(drain.bytes_per_second, available_memory() // _MEMORY_PART // max(streams, 1))
    extra = [settings] if "cyc" in set(probe.timing) - set(wish.timing) else []
    shown = [*extra, *alternatives(wish, probe.timing)]
    estimates = estimate(found, settings, shown, usual, consumer)
    choices = [Choice(*one) for one in zip(shown, estimates, strict=True)][len(extra) :]
    if probe.recording.backend in HARDWARE:
        advice = advise(found, choices, usual)
    else:
        advice = Advice(choices[0].settings.words(usual), ())
    advice = replace(advice, reasons=(*advice.reasons, *_limits(probe, wish, advice)))
    words = _command(command, path, {**options, "backend": probe.recording.backend}, advice)
    return _plan(probe, found, drain, path, tuple(estimates), words, advice)


def _limits(probe: Probe, wish: Settings, advice: Advice) -> Iterator[tuple[str, str]]:
    """Wished or recommended packets that this machine refuses."""
    for name in wish.timing:
        if name not in probe.timing:
            yield f"(no {name})", f"{name.upper()} packets cannot be recorded on this system"
    if probe.refused and "--buffer" in advice.options:
        yield "(memory)", f"larger buffers were refused for the probe: {probe.refused}"


def _check(command: Sequence[str], seconds: float | None, options: dict[str, Any]) -> None:
    unknown = sorted(set(options) - {"backend", "levels", "pid", "cpus", "filters"})
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}; a plan takes backend, levels, pid, cpus and filters")
    if not command and options.get("pid") is None and options.get("cpus") is None:
        raise ConfigError("nothing to probe: give a program, or a process or processors (pid, cpus)")
    if seconds is not None and not (isinstance(seconds, int | float) and 0.001 <= seconds <= 3600):
        raise ConfigError(f"seconds: expected a number from 0.001 to 3600, found {seconds!r}")


def _work_folder(parent: Path) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="ptkit-plan-", dir=parent)
    except OSError as error:
        raise OpenError(f"output: cannot write to {str(parent)!r} ({error.strerror}); name another") from None


def _settings(probe: Probe) -> Settings:
    """The settings of the probe; its period of MTC packets is what the processor has."""
    period = probe.trace.info.mtc_period
    return Settings(probe.timing, default_timing(probe.recording.backend)[1] if period is None else period)


def _command(
    command: Sequence[str], output: Path, options: dict[str, Any], advice: Advice
) -> tuple[str, ...]:
    words = ["ptkit", "record", "-o", str(output), "--backend", options["backend"]]
    if options.get("levels"):
        words += ["--levels", options["levels"]]
    filters = options.get("filters") or ()
    for one in [filters] if isinstance(filters, str) else filters:
        words += ["--filter", one]
    if options.get("pid") is not None:
        words += ["-p", str(options["pid"])]
    if options.get("cpus") is not None:
        cpus = options["cpus"]
        words += ["-a"] if cpus == "all" else ["-C", ",".join(map(str, cpus))]
    return (*words, *advice.options, *(("--", *map(str, command)) if command else ()))


def _rates(probe: Probe, found: PacketBytes) -> list[StreamRate]:
    windows = found.windows.sum(axis=(2, 3))
    rates = []
    for stream, row in zip(probe.trace.info.streams, windows, strict=True):
        if stream.size:
            name = stream.name if stream.cpu is None else f"processor {stream.cpu}"
            mean, largest = stream.size / found.seconds, row.max() / found.window_seconds
            rates.append(StreamRate(name, stream.size, mean, float(largest)))
    return sorted(rates, key=lambda one: one.bytes, reverse=True)


def _plan(
    probe: Probe,
    found: PacketBytes,
    drain: Drain,
    output: Path,
    estimates: tuple[Estimate, ...],
    command: tuple[str, ...],
    advice: Advice,
) -> RecordingPlan:
    info, recording = probe.trace.info, probe.recording
    return RecordingPlan(
        backend=recording.backend,
        reason=recording.reason,
        measures_silicon=recording.backend in HARDWARE,
        seconds=found.seconds,
        complete=probe.complete,
        trace_bytes=found.total,
        instructions=recording.instructions,
        branches=recording.branches,
        window_seconds=found.window_seconds,
        streams=tuple(_rates(probe, found)),
        timing=probe.timing,
        groups=found.groups,
        overflows=int(found.overflows.sum()),
        losses=sum(stream.losses for stream in info.streams),
        lost_bytes=sum(stream.lost_bytes for stream in info.streams),
        warnings=tuple(map(str, recording.warnings)),
        folder=str(output.parent),
        drain_bytes_per_second=drain.bytes_per_second,
        packed=drain.packed,
        estimates=estimates,
        command=command,
        reasons=advice.reasons,
    )
