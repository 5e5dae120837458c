"""Recordings by `ptkit record` in the emulated machine, and what was executed meanwhile."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executed import Executed, Truth, merge
from machine import Machine, Run

import ptkit


@dataclass(frozen=True)
class Recording:
    """One call of ptkit record."""

    name: str
    options: str
    cpl: int | None = 3  # None: all
    before: str = ""  # lines of the guest's script
    after: str = ""
    backend: str = "perf"

    def script(self) -> str:
        """Lines of the guest's script: a part of the log of the truth for it, and one that is empty."""
        name = self.name
        record = f"ptkit record --json --backend {self.backend} -o {name}.ptk {self.options} 2> {name}.json"
        return (
            f"{self.before}host log tracing\n{record} || cat {name}.json\n"
            f"host log never\n{self.after}host put {name}.ptk {name}.ptk\nhost put {name}.json {name}.json\n"
        )


@dataclass(frozen=True)
class Recorded:
    """A run of the machine in which everything is recorded."""

    run: Run
    truth: Truth
    folder: Path
    recordings: list[Recording]
    cpus: int

    def report(self, recording: Recording) -> dict[str, Any]:
        """Messages of ptkit."""
        found: dict[str, Any] = json.loads(self.run.files[f"{recording.name}.json"])
        return found

    def trace(self, recording: Recording) -> ptkit.Trace:
        """The bundle."""
        path = self.folder / f"{recording.name}.ptk"
        path.write_bytes(self.run.files[path.name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptkit.PtkitWarning)
            return ptkit.open(path)

    def executed(self, recording: Recording, cpu: int = 0) -> Executed:
        """Instructions that a processor executed meanwhile, of the requested levels."""
        executed = self.truth.executed(2 * self.recordings.index(recording) + 1, cpu)
        return executed if recording.cpl is None else executed.select(executed.cpl == recording.cpl)

    def of_stream(self, recording: Recording, stream: ptkit.StreamInfo) -> Executed:
        """The subject of a stream of the bundle: a processor, or one thread wherever it ran."""
        if stream.cpu is not None:
            return self.executed(recording, stream.cpu)
        return merge([self.executed(recording, cpu) for cpu in range(self.cpus)])


def run_all(
    machine: Machine,
    folder: Path,
    recordings: list[Recording],
    cpus: int,
    *,
    files: dict[str, Path],
    arguments: str = "",
    before: str = "",
) -> Recorded:
    """One run of the machine in which all is recorded.

    Parameters
    ----------
    files
        Programs, by their path in the guest.
    arguments
        More for its kernel.
    before
        A command of the guest that must work.
    """
    script = f"{before} || exit 1\n" if before else ""
    script += (
        "mount -t tracefs tracefs /sys/kernel/tracing\nptkit doctor --json > doctor\nhost put doctor doctor\n"
    )
    script += "".join(recording.script() for recording in recordings)
    run = machine.run(
        script, folder / "run", files=files, python=True, cpus=cpus, limit=1200, arguments=arguments
    )
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return Recorded(run, Truth(run.truth), folder, recordings, cpus)
