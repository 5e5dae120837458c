"""`ptkit record --backend driver` with --bts and --per-thread: what was executed is in its bundles."""

from __future__ import annotations

import json
import re
from pathlib import Path

import boot_image
import numpy as np
import pytest
from compare import Decoded, assert_same, share_in_pieces
from compiling import build
from kernels import build_module, debian_kernel
from machine import Machine
from ptkit_recordings import Recorded, Recording, run_all

import ptkit

pytestmark = pytest.mark.emulated

MULTI_PROCESS = "-- /bin/multi_process /bin/busybox true"
PROGRAM = Recording("program", f"--bts {MULTI_PROCESS}", backend="driver")
BOTH = Recording("both", f"--bts --levels both -m 16M {MULTI_PROCESS}", cpl=None, backend="driver")
WHOLE = Recording("whole", "--bts -a -m 16M -- rounds 300", backend="driver")
RING = Recording("ring", f"--bts -a --ring 256K {MULTI_PROCESS}", backend="driver")
THREAD = Recording("thread", "--per-thread -- rounds 300", backend="driver")
THREAD_BOTH = Recording("thread_both", "--per-thread --levels both -- rounds 300", cpl=None, backend="driver")
THREADS = Recording("threads", f"--per-thread {MULTI_PROCESS}", backend="driver")
ALL = [THREAD, THREAD_BOTH, THREADS, PROGRAM, BOTH, WHOLE, RING]


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path) -> Recorded:
    """One run; under page-table isolation there is no Branch Trace Store."""
    folder = run_folder / "driver_branches"
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    multi_process = boot_image.compile_static(
        boot_image.GUEST / "multi_process.c", folder / "multi_process", "-pthread"
    )
    files = {
        "bin/ptkit.ko": module,
        "bin/multi_process": multi_process,
        "bin/rounds": build("rounds", folder, "-static-pie"),
    }
    return run_all(
        machine,
        folder,
        ALL,
        1,
        files=files,
        arguments="pti=off nmi_watchdog=0",
        before="insmod /bin/ptkit.ko",
    )


def warnings_of(recorded: Recorded, recording: Recording) -> str:
    """What ptkit record warned of."""
    return "\n".join(recorded.report(recording)["warnings"])


@pytest.mark.parametrize("recording", [PROGRAM, WHOLE], ids=lambda recording: recording.name)
def test_every_branch_is_a_record(recorded: Recorded, recording: Recording) -> None:
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
    of_user = table["ip"][table["ip"] >> np.uint64(63) == 0]
    assert np.array_equal(of_user, executed.select(executed.cpl == 3).ip)


@pytest.mark.parametrize("recording", [PROGRAM, BOTH, WHOLE], ids=lambda recording: recording.name)
def test_rows_have_threads_and_times(recorded: Recorded, recording: Recording) -> None:
    rows = recorded.trace(recording).branches()
    assert not warnings_of(recorded, recording)
    known = rows["tid"][rows["pid"] > 0]
    assert len(known) > 0.9 * len(rows)
    if recording is PROGRAM:
        tids = [len(np.unique(rows["tid"][rows["pid"] == pid])) for pid in np.unique(rows["pid"])]
        assert sorted(tids) == [1, 4]  # the child, and the program with three more threads
    timed = rows["time_known"]
    assert np.count_nonzero(timed) > 0.9 * len(rows)
    least = rows["tsc"][timed].astype(np.int64)
    assert np.all(np.diff(least) >= 0)
    assert np.all(np.diff(least + rows["tsc_error"][timed]) >= 0)


def test_ring_has_the_newest_branches(recorded: Recorded) -> None:
    rows = recorded.trace(RING).branches()
    assert len(rows.errors) == 0, str(rows.errors)
    known = rows["taken"] & rows["from_known"] & rows["to_known"]
    assert len(np.unique(rows["tid"][known])) > 1


@pytest.mark.parametrize("recording", [THREAD, THREAD_BOTH], ids=lambda recording: recording.name)
def test_thread_by_its_own_buffer(recorded: Recorded, recording: Recording) -> None:
    trace = recorded.trace(recording)
    assert [(stream.cpu, stream.tid == stream.pid) for stream in trace.streams] == [(None, True)]
    table = trace.instructions(columns=["ip"])
    found = Decoded(table["ip"], [str(table.errors)] if len(table.errors) else [])
    assert len(found) > 1000
    assert_same(found, recorded.executed(recording))


def test_threads_that_begin_later_are_streams(recorded: Recorded) -> None:
    trace = recorded.trace(THREADS)
    late = [stream for stream in trace.streams if stream.tid != stream.pid]
    counts = re.search(
        r"(\d+) threads of process \d+ began while recording.* (\d+) of them ended before",
        warnings_of(recorded, THREADS),
    )
    assert counts is not None
    assert counts[1] == "3"
    assert len(late) == 3 - int(counts[2])
    for index, stream in enumerate(trace.streams):
        rows = trace.instructions(stream=index, columns=["ip"])
        assert len(rows.errors) == 0, str(rows.errors)
        assert rows.gaps is not None
        assert (stream in late) == bool(np.any(rows.gaps["cause"] == ptkit.GapCause.LOST))


def test_doctor_says_what_there_is(recorded: Recorded) -> None:
    report = json.loads(recorded.run.files["doctor"])
    driver = next(found for found in report["backends"] if found["name"] == "driver")
    assert [(other["records"], other["available"]) for other in driver["others"]] == [("bts", True)]
