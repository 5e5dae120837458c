"""Where checks record: programs in a temporary folder, one processor, one back end."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ptkit
from ptkit.selftest.compare import Rows
from ptkit.selftest.logged import LoggedRecorder
from ptkit.selftest.outcome import CheckFailed, Unavailable
from ptkit.selftest.programs import Program

__all__ = ["Bench", "Taken", "Truths"]

#: By the name of a program: its file, and what it executes by single steps.
Truths = dict[str, tuple[bytes, NDArray[np.uint64]]]

_NO_LOSS = (ptkit.GapCause.START,)


@dataclass(frozen=True)
class Taken:
    """A recording of a program.

    Attributes
    ----------
    program : Program
    trace : ptkit.Trace
    recording : ptkit.capture.Recording
    cpu : int
        The processor that the program ran on.
    """

    program: Program
    trace: ptkit.Trace
    recording: ptkit.capture.Recording
    cpu: int

    @property
    def streams(self) -> list[int]:
        """Streams of the program's processor. Those of others are empty, but for what is no whole packet.

        Raises
        ------
        CheckFailed
            If there is none.
        """
        found = [number for number, one in enumerate(self.trace.streams) if one.cpu in (None, self.cpu)]
        if not found:
            raise CheckFailed(f"nothing was recorded on processor {self.cpu}, where the program ran")
        return found

    def instructions(self) -> ptkit.Table:
        """Return all instructions of the program's processor."""
        return self.trace.instructions(stream=self.streams, columns=["ip"])

    def rows(self) -> Rows:
        """Return the instructions of the program's own code."""
        table = self.instructions()
        ips = table["ip"]
        own = np.zeros(len(ips), dtype=bool)
        for begin, end in self.program.regions:
            own |= (ips >= begin) & (ips < end)
        before = np.concatenate([[0], np.cumsum(own)])
        assert table.gaps is not None
        assert table.errors is not None
        gaps = table.gaps["instruction"][~np.isin(table.gaps["cause"], _NO_LOSS)]
        cuts = sorted({int(before[min(int(gap), len(ips))]) for gap in gaps})
        overflows = int(np.count_nonzero(table.gaps["cause"] == ptkit.GapCause.OVERFLOW))
        return Rows(ips[own], tuple(cuts), _errors(table.errors), overflows)


def _errors(errors: ptkit.Table) -> tuple[str, ...]:
    return tuple(
        f"{ptkit.ErrorCode(code).name} at byte {offset}"
        for code, offset in zip(errors["code"].tolist(), errors["offset"].tolist(), strict=True)
    )


@dataclass
class Bench:
    """A back end and the processor that programs run on.

    Attributes
    ----------
    backend : str
    cpu : int
    folder : Path
        For programs and recordings.
    seed : int
        Of programs that are made by chance.
    truths : dict
        File and instructions of the last program of each name, by single steps; kept from round to round.
    shared : dict
        Recordings of this round that several checks look at.
    """

    backend: str
    cpu: int
    folder: Path
    seed: int = 1
    truths: Truths = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)

    def write(self, program: Program) -> Path:
        """Write a program's file."""
        path = self.folder / f"ptkit-{program.name}"
        if not path.exists() or path.read_bytes() != program.image:
            path.unlink(missing_ok=True)
            path.write_bytes(program.image)
            path.chmod(0o755)
        return path

    def executed(self, program: Program) -> NDArray[np.uint64]:
        """Return the address of each instruction that single steps see."""
        image, executed = self.truths.get(program.name, (b"", None))
        if executed is None or image != program.image:
            executed = self.step(program)
            self.truths[program.name] = program.image, executed
        return executed

    def step(self, program: Program) -> NDArray[np.uint64]:
        """Run a program by single steps."""
        log = self.folder / "steps"
        log.mkdir(exist_ok=True)
        taken = self._record("step", program, truth=log)
        executed = np.fromfile(log / "stream-0.u64", dtype=np.uint64)
        if taken.recording.exit_status != 0 or not len(executed):
            raise CheckFailed(
                f"the program {program.name} ended with status {taken.recording.exit_status} by single steps"
            )
        return executed

    def record(self, program: Program, **options: Any) -> Taken:
        """Record a program with this back end.

        Raises
        ------
        Unavailable
            If the processor or the kernel cannot do what the options ask for.
        CheckFailed
            If recording fails, or the program does not end as it should.
        """
        return self.record_by(self.backend, program, **options)

    def record_by(self, backend: str, program: Program, **options: Any) -> Taken:
        """Record a program with another back end, as `record`."""
        taken = self._record(backend, program, **options)
        if taken.recording.exit_status != 0:
            raise CheckFailed(f"the program ended with status {taken.recording.exit_status}, 0 is right")
        return taken

    def _record(self, backend: str, program: Program, **options: Any) -> Taken:
        output = self.folder / f"{backend}.ptk"
        output.unlink(missing_ok=True)
        try:
            recorder = LoggedRecorder(
                [self.write(program)], output, backend=backend, quiet=True, force=True, **options
            )
            with _on_cpu(self.cpu):
                recorder.start()
            _wait(recorder)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ptkit.PtkitWarning)  # checks compare instructions instead
                return Taken(program, recorder.trace, recorder.recording, self.cpu)
        except (ptkit.ConfigError, ptkit.UnsupportedError) as error:
            raise Unavailable(str(error)) from error
        except ptkit.PtkitError as error:
            raise CheckFailed(f"recording failed: {error}") from error


def _wait(recorder: ptkit.Recorder) -> None:
    try:
        recorder.wait()
    except KeyboardInterrupt:
        recorder.stop()
        raise


@contextmanager
def _on_cpu(cpu: int) -> Iterator[None]:
    """Start a program on one processor; threads of this process go where they like after that."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a thread that has ended
                os.sched_setaffinity(int(task.name), before)
