"""Counts of calls are never above executions, in every recording that the tests have."""

from __future__ import annotations

import lzma
import warnings
from pathlib import Path

import numpy as np
import pytest
from call_bounds import check_printed, check_sums, false_counts, false_instructions
from compiling import build
from figures import CORPUS, TRACES, open_trace
from perf_data import aux_streams
from reduced import unpack

import ptkit
from ptkit import capture

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "recordings"
GRIFFIN = ("hello", "ovf-04-poc", "uaf-05-poc")
PROGRAMS = (
    "branches",
    "brief",
    "calls",
    "forks",
    "inlined",
    "inlines",
    "jit",
    "plugins",
    "selfmod",
    "signals",
    "threads",
)


def check(trace: ptkit.Trace, folder: Path) -> int:
    """The number of calls."""
    assert false_counts(trace) == []
    assert false_instructions(trace) == []
    check_sums(trace)
    check_printed(trace, folder / "saved.ptk")
    return int(trace.functions()["count"].sum())


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.npz")))
def test_golden_recordings(name: str, tmp_path: Path) -> None:
    truth = unpack(GOLDEN / f"{name}.npz")
    found = 0
    for stream in aux_streams(lzma.decompress((GOLDEN / f"{name}.perf.data.xz").read_bytes())).values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptkit.PtkitWarning)  # the processor is not known
            found += check(ptkit.open(stream, images=[truth.images]), tmp_path)
    assert found > 0


@pytest.mark.parametrize("name", GRIFFIN)
def test_recordings_of_other_people(name: str, tmp_path: Path) -> None:
    folder = CORPUS / "griffin" / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent (set PTKIT_CORPUS)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        assert check(ptkit.open(folder), tmp_path) > 100


@pytest.mark.parametrize("name", TRACES)
def test_traces_of_other_systems(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        assert check(open_trace(name), tmp_path) > 0 or name.startswith("lldb")


@pytest.mark.skipif(
    not any(one.name == "emulator" and one.available for one in capture.probe()),
    reason="no emulator here: " + "; ".join(f"{one.name}: {one.detail}" for one in capture.probe()),
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_recorded_programs(name: str, tmp_path: Path) -> None:
    program = build(name, tmp_path, "-g", *(("-static", "-nostdlib") if name == "brief" else ()))
    recording = ptkit.Recorder([program], tmp_path / "out.ptk", backend="emulator", quiet=True).run()
    trace = ptkit.open(recording)
    assert check(trace, tmp_path) > 0
    main = np.flatnonzero(trace.functions()["function"] == "main")
    assert name == "brief" or trace.functions()["count"][main].sum() > 0
