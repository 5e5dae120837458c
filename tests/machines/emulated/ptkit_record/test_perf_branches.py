"""`ptkit record --backend perf --bts` in the emulated machine: every branch that was executed is a record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare import share_in_pieces
from executed import Executed
from machine import Machine
from ptkit_recordings import Recorded, Recording
from test_perf_recordings import MULTI_PROCESS, record_multi_process

pytestmark = pytest.mark.emulated

PROGRAM = Recording("program", f"--bts {MULTI_PROCESS}")
BOTH = Recording("both", f"--bts --levels both -m 16M {MULTI_PROCESS}", cpl=None)
THREAD = Recording("thread", "--bts --per-thread -- rounds 300")
ALL = [PROGRAM, BOTH, THREAD]


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path) -> Recorded:
    """One run; under page-table isolation Linux has no Branch Trace Store."""
    return record_multi_process(
        machine, run_folder / "perf_branches", ALL, 1, arguments="pti=off nmi_watchdog=0"
    )


def branches_of(executed: Executed) -> np.ndarray[Any, Any]:
    """From where to where what was executed does not go on behind an instruction."""
    jumps = np.flatnonzero(executed.ip[1:] != executed.ip[:-1] + executed.size[:-1])
    return np.stack([executed.ip[jumps], executed.ip[jumps + 1]], axis=1)


def taken_by_user(recorded: Recorded, recording: Recording) -> np.ndarray[Any, Any]:
    """The branches of user code to user code that the bundle has, in order."""
    rows = recorded.trace(recording).branches()
    assert len(rows.errors) == 0, str(rows.errors)
    of_user = (rows["from_ip"] >> np.uint64(63) == 0) & (rows["to_ip"] >> np.uint64(63) == 0)
    known = rows["taken"] & rows["from_known"] & rows["to_known"] & of_user
    return np.stack([rows["from_ip"][known], rows["to_ip"][known]], axis=1)


def test_every_branch(recorded: Recorded) -> None:
    expected = branches_of(recorded.executed(THREAD))
    found = taken_by_user(recorded, THREAD)
    assert len(expected) > 5_000
    assert np.array_equal(found[: len(expected)], expected)
    assert len(found) <= len(expected) + 1  # the last one's target may come after the last interrupt


@pytest.mark.parametrize("recording", [PROGRAM, THREAD], ids=lambda recording: recording.name)
def test_bundles_decode_to_what_was_executed(recorded: Recorded, recording: Recording) -> None:
    """Up to what comes behind the last record of each piece."""
    trace = recorded.trace(recording)
    assert {stream.kind for stream in trace.streams} == {"branch records"}
    table = trace.instructions(columns=["ip"])
    assert len(table.errors) == 0, str(table.errors)
    assert share_in_pieces(table, table.gaps, recorded.executed(recording)) > 0.95


def test_with_the_kernel_all_user_code_is_there(recorded: Recorded) -> None:
    """Between pieces the kernel's is missing; a return there that was interrupted may look executed."""
    table = recorded.trace(BOTH).instructions(columns=["ip"])
    assert len(table.errors) == 0, str(table.errors)
    executed = recorded.executed(BOTH)
    assert abs(len(table) / len(executed.ip) - 1) < 0.01
    of_user = table["ip"][table["ip"] >> np.uint64(63) == 0]
    assert np.array_equal(of_user, executed.select(executed.cpl == 3).ip)


def test_threads_are_told_apart(recorded: Recorded) -> None:
    table = recorded.trace(PROGRAM).instructions(columns=["ip", "pid", "tid"])
    tids = [len(np.unique(table["tid"][table["pid"] == pid])) for pid in np.unique(table["pid"])]
    assert sorted(tids) == [1, 4]  # the child, and the program with three more threads


def test_doctor_lists_branch_records(recorded: Recorded) -> None:
    """Linux takes it for granted that the processor has branch stacks (check_msr() of its driver)."""
    report = json.loads(recorded.run.files["doctor"])
    perf = next(found for found in report["backends"] if found["name"] == "perf")
    others = {other["records"]: other for other in perf["others"]}
    assert others["bts"]["available"], others["bts"]
    assert others["branch_stack"]["available"], others["branch_stack"]
    assert "32 branches a sample" in others["branch_stack"]["detail"]
