"""`ptkit record --backend perf` in the emulated machine: its bundles decode to what was executed."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import boot_image
import numpy as np
import pytest
from compare import Decoded, assert_same, of_function
from compiling import build
from executed import Executed, Truth
from machine import Machine, Run

import ptkit

pytestmark = pytest.mark.emulated

CROWD = "-- /bin/crowd /bin/busybox true"


@dataclass(frozen=True)
class Recording:
    """One call of ptkit record."""

    name: str
    options: str
    cpl: int | None = 3  # None: all
    before: str = ""  # lines of the guest's script
    after: str = ""

    def script(self) -> str:
        """Lines of the guest's script: a part of the log of the truth for it, and one that is empty."""
        name = self.name
        record = f"ptkit record --json --backend perf -o {name}.ptk {self.options} 2> {name}.json"
        return (
            f"{self.before}host log tracing\n{record} || cat {name}.json\n"
            f"host log never\n{self.after}host put {name}.ptk {name}.ptk\nhost put {name}.json {name}.json\n"
        )


ROUNDS = 300
WHOLE = [
    Recording("program", f"--levels user {CROWD}"),
    Recording("both", f"--levels both {CROWD}", cpl=None),
    Recording("kernel", "--levels kernel -- true", cpl=0),
    Recording("timed", f"--levels both --timing tsc,mtc,cyc --cyc-threshold 2 {CROWD}", cpl=None),
    Recording(
        "attached", "-p $P --seconds 0.2", before="rounds 0 > /dev/null & P=$!\n", after="kill -INT $P\n"
    ),
    Recording("thread", f"--per-thread -- rounds {ROUNDS}"),
]
FILTER = Recording("filter", f"--filter 'filter work @ /bin/rounds' -- rounds {ROUNDS}")
RING = Recording("ring", f"--levels both --ring 64K {CROWD}", cpl=None)
RECORDINGS = [*WHOLE, FILTER, RING]


@dataclass(frozen=True)
class Recorded:
    """A run of the machine in which everything is recorded."""

    run: Run
    truth: Truth
    folder: Path

    def trace(self, recording: Recording) -> ptkit.Trace:
        """The bundle."""
        path = self.folder / f"{recording.name}.ptk"
        path.write_bytes(self.run.files[path.name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptkit.PtkitWarning)
            return ptkit.open(path)

    def executed(self, recording: Recording) -> Executed:
        """What was executed meanwhile, of the levels that were asked for."""
        executed = self.truth.executed(2 * RECORDINGS.index(recording) + 1)
        return executed if recording.cpl is None else executed.select(executed.cpl == recording.cpl)


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path) -> Recorded:
    """The run."""
    folder = run_folder / "perf_recordings"
    folder.mkdir()
    crowd = boot_image.compile_static(boot_image.HERE / "guest" / "crowd.c", folder / "crowd", "-pthread")
    rounds = build("rounds", folder, "-static-pie")
    script = "ptkit doctor --json > doctor\nhost put doctor doctor\n"
    script += "".join(recording.script() for recording in RECORDINGS)
    run = machine.run(
        script, folder / "run", files={"bin/crowd": crowd, "bin/rounds": rounds}, python=True, limit=900
    )
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return Recorded(run, Truth(run.truth), folder)


def decoded(trace: ptkit.Trace) -> Decoded:
    """All instructions of a bundle."""
    ips = trace.instructions(columns=["ip"])["ip"]
    return Decoded(ips, [str(trace.errors)] if len(trace.errors) else [])


@pytest.mark.parametrize("recording", WHOLE, ids=lambda recording: recording.name)
def test_bundles_decode_to_what_was_executed(recorded: Recorded, recording: Recording) -> None:
    report = json.loads(recorded.run.files[f"{recording.name}.json"])
    assert report["backend"] == "perf"
    found = decoded(recorded.trace(recording))
    assert len(found) > 1000
    assert_same(found, recorded.executed(recording))


def test_address_filter(recorded: Recorded) -> None:
    found = decoded(recorded.trace(FILTER))
    executed = of_function(recorded.folder / "rounds", "work", recorded.executed(FILTER), ROUNDS)
    assert_same(found, executed)


def test_a_ring_has_the_end(recorded: Recorded) -> None:
    found, executed = decoded(recorded.trace(RING)), recorded.executed(RING)
    assert 1000 < len(found) < len(executed.ip)
    assert_same(found, executed.select(np.arange(len(executed.ip)) >= len(executed.ip) - len(found)))


def test_threads_are_told_apart(recorded: Recorded) -> None:
    table = recorded.trace(RECORDINGS[0]).instructions(columns=["ip", "pid", "tid"])
    tids = [len(np.unique(table["tid"][table["pid"] == pid])) for pid in np.unique(table["pid"])]
    assert sorted(tids) == [1, 4]  # crowd's child, and crowd with three more threads


def test_doctor_says_what_perf_can_do(recorded: Recorded) -> None:
    report = json.loads(recorded.run.files["doctor"])
    perf = next(found for found in report["backends"] if found["name"] == "perf")
    assert perf["available"]
    assert "4 address filters" in perf["detail"]
    assert "whole processors" in perf["detail"]
