"""Recordings by stock perf in the emulated machine, what was executed meanwhile, and perf's own decoder."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

from executed import Executed, Truth
from machine import Machine, Run
from perf_decoder import KEEP_OBJECTS, PerfDecoder, keep

import ptkit


@dataclass(frozen=True)
class Recording:
    """One call of perf record.

    Attributes
    ----------
    cpl
        The privilege level that is traced; None: all.
    """

    name: str
    options: str
    program: str
    cpl: int | None = 3

    def script(self) -> str:
        """Lines of the guest's script: a part of the log of the truth for it, and one that is empty."""
        data = f"/tmp/{self.name}.data"
        perf = f"perf record {self.options} -o {data} {self.program}"
        return f"host log tracing\n{perf}\nhost log never\n{keep(self.name, data)}"


@dataclass(frozen=True)
class Recorded:
    """A run of the machine, and who decodes what it recorded."""

    run: Run
    truth: Truth
    perf: PerfDecoder
    recordings: list[Recording]

    def part(self, recording: Recording) -> int:
        """Of the log of the truth."""
        return 2 * self.recordings.index(recording) + 1

    def executed(self, recording: Recording, cpu: int) -> Executed:
        """Instructions that a CPU executed meanwhile, of the traced levels."""
        executed = self.truth.executed(self.part(recording), cpu)
        return executed if recording.cpl is None else executed.select(executed.cpl == recording.cpl)

    def opened(self, path: Path, *folders: Path) -> ptkit.Trace:
        """A recording, with what `perf record` has left of programs, and other folders of binaries."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptkit.PtkitWarning)
            return ptkit.open(path, binaries=[self.perf.objects, *folders])


def run_all(
    machine: Machine,
    folder: Path,
    recordings: list[Recording],
    *,
    files: dict[str, Path],
    cpus: int,
    before: str = "",
    after: str = "",
) -> Recorded:
    """One run of the machine in which all is recorded, with what else the guest does before and after."""
    script = before + "".join(recording.script() for recording in recordings) + after
    run = machine.run(script + KEEP_OBJECTS, folder, files=files, cpus=cpus, limit=900)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    perf = PerfDecoder(machine.userland, run.files, folder / "perf")
    return Recorded(run, Truth(run.truth), perf, recordings)
