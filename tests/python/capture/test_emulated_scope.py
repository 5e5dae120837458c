"""Which part of a program is recorded in the emulator: filters, triggers, the ring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rounds import entries, names, needs_emulator, record
from waiting import runs_on

import ptkit

pytestmark = needs_emulator


# ---- filters


def test_filter_traces_one_function(rounds: Path, tmp_path: Path) -> None:
    for number, filters in enumerate(
        (f"filter leaf @ {rounds}", ptkit.Filter.function("leaf"), f"filter leaf / leaf @ {rounds}")
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        trace = record([rounds, "10"], folder, filters=filters)
        assert names(trace) == {"leaf"}
        assert entries(trace)["leaf"] == 30


def test_filters_add_up(rounds: Path, tmp_path: Path) -> None:
    trace = record([rounds, "10"], tmp_path, filters=["filter other", ptkit.Filter.function("work", rounds)])
    assert names(trace) == {"other", "work"}
    assert (entries(trace)["other"], entries(trace)["work"]) == (10, 10)


def test_filter_traces_a_whole_file(rounds: Path, tmp_path: Path) -> None:
    trace = record([rounds, "10"], tmp_path, filters=ptkit.Filter.module(rounds.name))
    assert entries(trace)["leaf"] == 30
    assert entries(trace)["main"] == 1
    names = trace.symbolize(np.unique(trace.instructions(columns=["ip"])["ip"]), modules=True, offsets=False)
    assert not [name for name in names if name and name.startswith(("[libc", "[ld"))]


def test_start_and_stop_filters_switch_tracing(rounds: Path, tmp_path: Path) -> None:
    trace = record([rounds, "10"], tmp_path, filters="start begin, stop end")
    found = entries(trace)
    assert (found["leaf"], found["other"], found["work"]) == (30, 10, 10)
    assert found["main"] == 0
    assert "printf" not in names(trace)
    first = trace.instructions(columns=["ip"])["ip"][:1]
    assert trace.symbolize(first) == ["begin"]


def test_tracestop_filter_ends_tracing(rounds: Path, tmp_path: Path) -> None:
    trace = record([rounds, "10"], tmp_path, filters=[ptkit.Filter.tracestop("end")])
    found = entries(trace)
    assert (found["leaf"], found["main"], found["end"]) == (
        30,
        1,
        1,
    )  # the branch to it is traced, nothing after it
    assert "end" not in names(trace)
    assert len(trace.instructions(columns=["ip"])) > 1000


def ranges(trace: ptkit.Trace) -> set[tuple[str, str | None]]:
    """Address ranges that the recording says: kinds, and where they begin."""
    found = {
        (kind, trace.symbolize([first], space=space)[0])
        for kind, first, _ in trace.info.ranges
        for space in range(len(trace.info.spaces))
    }
    # Where another program of the recording lies at the address, it has no function that begins there.
    return {(kind, name) for kind, name in found if name and "+" not in name}


# A decoder takes the ranges for those of all processes.
def test_ranges_of_several_processes(rounds: Path, tmp_path: Path) -> None:
    shell = ["/bin/sh", "-c", f"{rounds} 10; {rounds} 10; exit 5"]
    trace = record(shell, tmp_path, filters="filter work @ rounds")
    assert ranges(trace) == {("filter", "work")}
    assert entries(trace)["work"] == 20
    trace = record(shell, tmp_path, filters="tracestop end @ rounds")
    assert trace.info.ranges == ()  # the shell, which has other code there, has none
    assert (entries(trace)["work"], entries(trace)["end"]) == (20, 2)
    trace = record(
        shell, tmp_path, filters="filter work @ rounds, tracestop other @ rounds"
    )  # the shell is not traced
    assert ranges(trace) == {("filter", "work"), ("stop", "other")}
    assert names(trace) == {"work"}
    assert (entries(trace)["work"], entries(trace)["other"]) == (2, 2)


def test_more_ranges_than_a_trace_unit_has(rounds: Path, tmp_path: Path) -> None:
    filters = ["filter leaf", "filter work", "filter end", "tracestop other", "tracestop begin"]
    trace = record([rounds, "10"], tmp_path, filters=filters[:4])
    assert ranges(trace) == {("filter", "leaf"), ("filter", "work"), ("filter", "end"), ("stop", "other")}
    assert (entries(trace)["work"], entries(trace)["leaf"]) == (1, 3)
    trace = record([rounds, "10"], tmp_path, filters=["filter main", *filters])
    assert trace.info.ranges == ()
    assert "main" in names(trace)


# ---- triggers

# A recording ends within a line of the plugin (14 blocks) after the trigger's location.
SOON_AFTER_9 = range(9, 15)
# What is in the lines that are read when a signal is reported is not recorded: some hundred instructions.
SOON_AFTER_94 = range(40, 95)


@pytest.mark.parametrize(
    ("triggers", "expected"),
    [
        ("stop at work x4", {"work": (3, 4, 5), "leaf": SOON_AFTER_9, "main": 1, "end": 0}),
        ("start at work x4", {"work": (96, 97), "leaf": 291, "main": 0, "end": 1}),
        (["start at work x4", "stop at other x3"], {"leaf": SOON_AFTER_9, "main": 0, "end": 0}),
        ("stop on USR1", {"work": range(6, 40), "main": 1, "end": 0}),
        (ptkit.Trigger.signal("USR1", action="start"), {"work": SOON_AFTER_94, "main": 0, "end": 1}),
    ],
)
def test_triggers_start_and_stop_the_recording(
    triggers: Any, expected: dict[str, Any], rounds: Path, tmp_path: Path
) -> None:
    trace = record([rounds, "100", "6"], tmp_path, triggers=triggers)
    found = entries(trace)
    for name, count in expected.items():
        assert found[name] in ((count,) if isinstance(count, int) else count), (name, found)
    assert trace.recording is not None
    assert trace.recording.limited == (found["end"] == 0)


# ---- the ring


def test_a_ring_keeps_the_last(rounds: Path, tmp_path: Path) -> None:
    trace = record([rounds, "100000"], tmp_path, ring="64K", psb_period=2048)
    recording = trace.recording
    assert recording is not None
    assert recording.dropped_bytes > 0
    assert trace.info.bytes <= 64 << 10
    found = entries(trace)
    assert found["end"] == 1
    assert found["main"] == found["begin"] == 0
    assert 100 < found["work"] < 90_000


def test_a_snapshot_of_the_ring(rounds: Path, tmp_path: Path) -> None:
    trace = record(
        [rounds, "100000", "1000"], tmp_path, ring="64K", psb_period=2048, triggers="snapshot on USR1"
    )
    recording = trace.recording
    assert recording is not None
    assert recording.snapshots == 1
    assert entries(trace)["end"] == 1


def test_a_snapshot_on_demand(rounds: Path, tmp_path: Path) -> None:
    with ptkit.Recorder(
        [rounds, "0"], tmp_path / "x.ptk", backend="emulator", quiet=True, ring="64K", psb_period=2048
    ) as recorder:
        runs_on(recorder, 1_000_000)
        recorder.snapshot()
        runs_on(recorder, 100_000)
        recorder.stop()
    assert recorder.recording.snapshots == 1
    assert len(recorder.trace.errors) == 0
