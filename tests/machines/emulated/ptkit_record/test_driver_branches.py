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
WHOLE = Recording("whole", "--bts -a -- rounds 300", backend="driver")
RING = Recording("ring", f"--bts -a --ring 256K {MULTI_PROCESS}", backend="driver")
THREAD = Recording("thread", "--per-thread -- rounds 300", backend="driver")
THREAD_BOTH = Recording("thread_both", "--per-thread --levels both -- rounds 300", cpl=None, backend="driver")
THREADS = Recording("threads", f"--per-thread {MULTI_PROCESS}", backend="driver")
LATE = Recording("late", "--per-thread -- late_thread", backend="driver")
ALL = [THREAD, THREAD_BOTH, THREADS, LATE, PROGRAM, BOTH, WHOLE, RING]


@pytest.fixture(scope="module")
def recorded(machine: Machine, run_folder: Path) -> Recorded:
    """One run; under page-table isolation there is no Branch Trace Store."""
    folder = run_folder / "driver_branches"
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    files = {"bin/ptkit.ko": module, "bin/rounds": build("rounds", folder, "-static-pie")}
    for name in ("multi_process", "late_thread"):
        source = boot_image.GUEST / f"{name}.c"
        files[f"bin/{name}"] = boot_image.compile_static(source, folder / name, "-pthread")
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
    """Warnings of ptkit record."""
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
    # The recorder's own branches are stored while it reads branches: a whole CPU's buffer fills up.
    warned = warnings_of(recorded, recording)
    assert warned.startswith("CPU 0: The buffer was full") if recording is WHOLE else not warned
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
    # All user code is recorded, the recorder's own, too: the newest branches may be of one thread.
    known = rows["taken"] & rows["from_known"] & rows["to_known"]
    assert 10_000 < known.sum() <= 256 * 1024 // 24
    assert (rows["tid"][known] > 0).all()


@pytest.mark.parametrize("recording", [THREAD, THREAD_BOTH], ids=lambda recording: recording.name)
def test_thread_by_its_own_buffer(recorded: Recorded, recording: Recording) -> None:
    trace = recorded.trace(recording)
    assert [(stream.cpu, stream.tid == stream.pid) for stream in trace.streams] == [(None, True)]
    table = trace.instructions(columns=["ip"])
    found = Decoded(table["ip"], [str(table.errors)] if len(table.errors) else [])
    assert len(found) > 1000
    assert_same(found, recorded.executed(recording))


def late_threads(recorded: Recorded, recording: Recording) -> tuple[int, int]:
    """How many threads began while recording, and how many of them ended before they were traced."""
    counts = re.search(
        r"(\d+) threads? of process \d+ began while recording.* (\d+) of them ended before",
        warnings_of(recorded, recording),
    )
    return (int(counts[1]), int(counts[2])) if counts else (0, 0)


def test_short_threads_are_counted(recorded: Recorded) -> None:
    began, ended = late_threads(recorded, THREADS)
    assert began == 3
    assert len(recorded.trace(THREADS).streams) == 1 + began - ended


def test_thread_that_begins_later_is_a_stream(recorded: Recorded) -> None:
    assert late_threads(recorded, LATE) == (1, 0)
    trace = recorded.trace(LATE)
    first, second = trace.streams
    assert first.pid == first.tid == second.pid != second.tid
    rows = [trace.instructions(stream=stream, columns=["ip"]) for stream in (0, 1)]
    assert not any(len(found.errors) for found in rows)
    lost = [np.any(found.gaps["cause"] == ptkit.GapCause.LOST) for found in rows]
    assert lost == [False, True]
    assert len(rows[1]) > 5000
    both = np.concatenate([found["ip"] for found in rows])
    assert np.array_equal(np.sort(both), np.sort(recorded.executed(LATE).ip))


def test_doctor_lists_branch_trace_store(recorded: Recorded) -> None:
    report = json.loads(recorded.run.files["doctor"])
    driver = next(found for found in report["backends"] if found["name"] == "driver")
    assert [(other["records"], other["available"]) for other in driver["others"]] == [("bts", True)]
