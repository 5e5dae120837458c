"""A short recording of a program, a process or whole processors."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptkit.errors import ConfigError, FormatError, UnsupportedError
from ptkit.trace.recording import Recorder

if TYPE_CHECKING:
    from ptkit.capture import Recording
    from ptkit.trace import Trace

__all__ = ["HARDWARE", "Probe", "available_memory", "record_probe"]

#: Back ends with which the processor itself traces.
HARDWARE = ("perf", "driver")
_ALL_TIMING = ("tsc", "mtc", "cyc")
_USUAL_SECONDS = {"emulator": 2.0, "step": 2.0}  # programs run slowly there
_HARDWARE_SECONDS = 0.2
_MOST_BUFFER = 64 << 20
_EXIT_SECONDS = 5.0  # from SIGTERM to SIGKILL


@dataclass(frozen=True)
class Probe:
    """A probe.

    Attributes
    ----------
    trace : Trace
        Its trace.
    recording : Recording
        Its result.
    timing : tuple of str
        Its timing packets.
    seconds : float
        How long it was recorded.
    complete : bool
        The program ended by itself before the probe did.
    refused : str
        Why larger buffers were not used; empty if they were.
    """

    trace: Trace
    recording: Recording
    timing: tuple[str, ...]
    seconds: float
    complete: bool
    refused: str = ""


def available_memory() -> int:
    """Bytes of memory that are free; 0 if that is not known."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def _large_buffer() -> int:
    """A buffer for each processor that a probe does not fill, and that leaves most memory free."""
    most = available_memory() // 8 // (os.cpu_count() or 1)
    return max(1 << 16, min(_MOST_BUFFER, 1 << max(most, 1).bit_length() - 1))


def _attempts(backend: str) -> Iterator[dict[str, Any]]:
    """Options to try, the best first; the last ones are what every recording has."""
    buffers: list[dict[str, Any]] = [{"buffer": _large_buffer()}, {}] if backend in HARDWARE else [{}]
    for timing in ({"timing": _ALL_TIMING}, {}):
        for buffer in buffers:
            yield {**timing, **buffer}


def _started(
    command: Sequence[str], output: Path, options: dict[str, Any]
) -> tuple[Recorder, dict[str, Any], Exception | None]:
    """A recorder that has begun, which of the attempts it is, and why the one before was refused."""
    refused: Exception | None = None
    for attempt in _attempts(Recorder(command, output, **options).backend):
        try:
            return Recorder(command, output, **options, **attempt).start(), attempt, refused
        except (ConfigError, UnsupportedError) as error:
            refused = error
    assert refused is not None
    raise refused


def _parents() -> Iterator[tuple[int, int]]:
    """The PID of each process and that of its parent."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError, IndexError, ValueError):
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                yield int(folder.name), int(fields[1])


def _family(pid: int) -> list[int]:
    """A process and all that it started, and these started."""
    parents, found = list(_parents()), [pid]
    for one in found:
        found += [child for child, parent in parents if parent == one and child not in found]
    return found


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _leave(recorder: Recorder, launched: bool, keep: bool) -> None:
    """End the recording, and the program if the probe has started it."""
    if recorder.backend == "step":
        recorder.stop()
        return
    family = _family(recorder.pid) if launched and recorder.pid else []
    recorder.detach()
    if not keep:
        _signal(family, signal.SIGTERM)
        if family and not recorder.wait(_EXIT_SECONDS):
            _signal(family, signal.SIGKILL)
    recorder.wait()


def record_probe(
    command: Sequence[str], folder: Path, seconds: float | None, keep: bool, options: dict[str, Any]
) -> Probe:
    """Record with all timing packets that there are, and large buffers.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; empty for what runs already.
    folder : pathlib.Path
        Where the bundle goes.
    seconds : float, optional
        How long; by default 0.2, where the processor does not trace 2.
    keep : bool
        Let the program run to its end, without trace.
    options : dict
        Of `ptkit.Recorder`: backend, levels, pid, cpus, filters.

    Raises
    ------
    ConfigError, UnsupportedError, OpenError
        As for `ptkit.Recorder`.
    FormatError
        If there is no trace.
    """
    given = dict(options, quiet=True) if command else options
    recorder, attempt, refused = _started(command, folder / "probe.ptk", given)
    begin = time.monotonic()
    with ExitStack() as stack:
        stack.push(recorder)  # ends the recording after Ctrl-C
        limit = _USUAL_SECONDS.get(recorder.backend, _HARDWARE_SECONDS) if seconds is None else seconds
        complete = recorder.wait(limit)
        length = time.monotonic() - begin
        if not complete:
            _leave(recorder, bool(command), keep)
    recording = recorder.recording
    if recording.trace_bytes == 0:
        raise FormatError(_nothing(complete, length, bool(command)))
    small = recorder.backend in HARDWARE and "buffer" not in attempt
    return Probe(
        trace=recorder.trace,
        recording=recording,
        timing=attempt.get("timing", ("tsc", "mtc")),
        seconds=min(length, recording.seconds),
        complete=complete,
        refused=str(refused) if small else "",
    )


def _nothing(complete: bool, seconds: float, launched: bool) -> str:
    if complete and launched:
        return "the probe is empty: the program ended before it executed anything that is traced"
    subject = "the program" if launched else "what is traced"
    return (
        f"the probe is empty: {subject} did not run within {seconds:.1f} s; give it work, or more --seconds"
    )
