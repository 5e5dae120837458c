"""Branch Trace Store, programmed by stock Linux (intel_bts): every branch that was executed is a record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compare import RECORD_BYTES, records, share_in_pieces
from executed import Executed, Truth
from machine import Machine, Run
from perf_data import aux_streams
from stock_rounds import record_rounds

pytestmark = pytest.mark.emulated

# Large enough for all of it, and one that interrupts tell to read in time.
CASES = {name: f"--per-thread -m,{pages} -e intel_bts//u" for name, pages in (("large", 1024), ("small", 64))}


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """One run of all cases."""
    return record_rounds(machine, run_folder / "bts", CASES, "cat /proc/interrupts\n")


def branches(executed: Executed) -> list[tuple[int, int]]:
    """From where to where what was executed does not go on behind an instruction."""
    ends = executed.ip[:-1] + executed.size[:-1]
    jumps = np.flatnonzero(executed.ip[1:] != ends)
    return list(zip(executed.ip[jumps].tolist(), executed.ip[jumps + 1].tolist(), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_every_branch(run: Run, name: str) -> None:
    part = 2 * list(CASES).index(name) + 1
    executed = Truth(run.truth).executed(part)
    user = executed.select(executed.cpl == 3)
    (stream,) = aux_streams(run.files[name]).values()
    assert len(stream) % RECORD_BYTES == 0
    records = np.frombuffer(stream, dtype="<u8").reshape(-1, 3)
    records = records[records[:, 1] != 0]  # Linux fills up what it leaves behind with zeros
    assert not (records[:, 1] >> 63).any()  # the kernel's branches are not among them
    returns = records[:, 0] >> 63 == 1  # from the kernel
    assert 0 < returns.sum() < len(records) // 10
    found = [(source, target) for source, target, _ in records[~returns].tolist()]
    assert len(found) > 10_000
    expected = branches(user)
    assert found[: len(expected)] == expected
    assert len(found) <= len(expected) + 1  # the last one's target may come after the last interrupt


@pytest.mark.parametrize("name", CASES)
def test_decoded(run: Run, name: str) -> None:
    """Our decoder makes of the records what user code executed, from the first to the last one."""
    part = 2 * list(CASES).index(name) + 1
    truth = Truth(run.truth)
    executed = truth.executed(part)
    user = executed.select(executed.cpl == 3)
    (stream,) = aux_streams(run.files[name]).values()
    stored = np.frombuffer(stream, dtype="<u8").reshape(-1, 3)
    (process,) = np.unique(user.cr3).tolist()
    table, gaps = records(stored[stored[:, 1] != 0].tobytes(), truth.code(part, process), "user")
    assert len(gaps) == 0, str(gaps)
    assert share_in_pieces(table, gaps, user) > 0.99


def test_interrupts_came(run: Run) -> None:
    (line,) = [line.split() for line in run.files["log"].decode().splitlines() if "PMI:" in line]
    assert int(line[1]) > 0
