"""perf.data by stock Linux and perf with other things than a whole trace, opened as anybody would."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from executed import Executed, Truth
from machine import Machine, Run
from stock_rounds import record_rounds

import ptkit

pytestmark = pytest.mark.emulated

# name: options of perf record
CASES = {
    "store": "--per-thread -m,1024 -e intel_bts//u",
    "samples": "--aux-sample=4096 -e '{intel_pt//u,cpu-clock:u}' -F 4000",
}


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """One run of all cases."""
    return record_rounds(machine, run_folder / "samples", CASES)


def opened(run: Run, name: str, folder: Path) -> tuple[ptkit.Trace, Executed]:
    """A recording, and the user instructions that were executed meanwhile."""
    path = folder / name
    path.write_bytes(run.files[name])
    truth = Truth(run.truth)
    part = 2 * list(CASES).index(name) + 1
    executed = truth.executed(part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)  # programs of the machine are not here
        trace = ptkit.open(path, images=[truth.code(part)])
    return trace, executed.select(executed.cpl == 3)


def test_every_branch_of_a_store(run: Run, tmp_path: Path) -> None:
    trace, user = opened(run, "store", tmp_path)
    ends = user.ip[:-1] + user.size[:-1]
    jumps = np.flatnonzero(user.ip[1:] != ends)
    assert {stream.kind for stream in trace.streams} == {"branch records"}
    rows = trace.branches()
    of_user = (rows["from_ip"] >> np.uint64(63) == 0) & (rows["to_ip"] >> np.uint64(63) == 0)
    taken = rows["taken"] & rows["from_known"] & rows["to_known"] & of_user
    found = np.stack([rows["from_ip"][taken], rows["to_ip"][taken]], axis=1)
    expected = np.stack([user.ip[jumps], user.ip[jumps + 1]], axis=1)
    assert len(expected) > 10_000
    assert np.array_equal(found[: len(expected)], expected)
    assert len(found) <= len(expected) + 1  # the last one's target may come after the last interrupt
    assert len(rows.errors) == 0


def test_trace_in_samples(run: Run, tmp_path: Path) -> None:
    trace, user = opened(run, "samples", tmp_path)
    rows = trace.instructions(columns=["ip"])
    assert len(rows.errors) == 0
    assert len(rows) > len(user.ip) // 2
    # Copies of the ring overlap: where that can be shown, nothing is missing and nothing comes twice.
    begins = rows.gaps["instruction"].tolist()
    assert len(begins) < 10
    executed = user.ip.tobytes()
    position = 0
    for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True):
        position = executed.find(rows["ip"][begin:end].tobytes(), position)
        assert position >= 0, (begin, end)
        position += 8 * (end - begin)
