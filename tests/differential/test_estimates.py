"""Estimated times against the true ones, on recordings by the software trace unit; and perf's on the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timed_walk
from numpy.typing import NDArray
from perf_script import needs_perf, perf_times
from timed_walk import TimedWalk

import ptkit
from ptkit.table import concatenate

# A bundle without its last chunk, as of a recorder that was killed.
pytestmark = pytest.mark.filterwarnings("ignore::ptkit.PtkitWarning")

NO_LIMIT = 2**32 - 1
STEPS = 60_000
HALTS = 300  # per million instructions
CASES = {
    "TSC, MTC": {"cyc": False},
    "TSC, MTC; clock halts": {"cyc": False, "halts": HALTS},
    "with CYC": {"cyc": True},
    "with CYC; clock halts": {"cyc": True, "halts": HALTS},
}
COLUMNS = ["from_ip", "tsc", "tsc_error", "time_known", "tsc_estimate"]


@pytest.fixture(scope="module", params=list(CASES))
def walk(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, TimedWalk]:
    folder = tmp_path_factory.mktemp("walk")
    return request.param, timed_walk.make(folder, steps=STEPS, **CASES[request.param])


def opened(walk: TimedWalk, **options: Any) -> ptkit.Trace:
    return ptkit.open(walk.path, index=False, **options)


def spread(errors: NDArray[np.float64]) -> tuple[float, float]:
    """Median and 99th percentile of the distance from the truth, in TSC ticks."""
    sizes = np.sort(np.abs(errors))
    return float(np.median(sizes)), float(sizes[len(sizes) * 99 // 100])


def signed(some: NDArray[Any], truth: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (some.astype(np.int64) - truth.astype(np.int64)).astype(np.float64)


@needs_perf
def test_estimates_have_at_most_half_of_perfs_error(walk: tuple[str, TimedWalk]) -> None:
    name, truth = walk
    trace = opened(truth)
    branches = trace.branches(columns=COLUMNS)
    rows = len(truth.tsc)
    assert np.array_equal(branches["from_ip"][:rows], truth.from_ip)
    data = truth.path.with_suffix(".data")
    trace.export(data)
    from_ip, times = perf_times(data)
    taken = np.flatnonzero(truth.taken)
    perf = times[from_ip != 0][: len(taken)]  # behind them: the interrupt that ends the trace
    assert np.array_equal(from_ip[from_ip != 0][: len(taken)], truth.from_ip[taken])
    known = (branches["tsc_error"][:rows][taken] != NO_LIMIT) & branches["time_known"][:rows][taken]
    assert known.mean() > 0.99
    ours = spread(signed(branches["tsc_estimate"][:rows][taken][known], truth.tsc[taken][known]))
    theirs = spread(signed(perf[known], truth.tsc[taken][known]))
    print(f"{name}: estimate {ours[0]:.0f} / {ours[1]:.0f}, perf {theirs[0]:.0f} / {theirs[1]:.0f} ticks")
    assert ours[0] * 2 <= theirs[0]
    assert ours[1] * 2 <= theirs[1]


def test_estimates_are_in_their_intervals_and_never_go_back(walk: tuple[str, TimedWalk]) -> None:
    trace = opened(walk[1])
    for table in ("branches", "blocks", "instructions", "events"):
        rows = getattr(trace, table)(columns=COLUMNS[1:])
        known = rows["time_known"]
        low, error, estimate = (rows[name][known] for name in ("tsc", "tsc_error", "tsc_estimate"))
        assert (estimate >= low).all(), table
        assert (estimate - low <= error).all(), table
        assert (np.diff(estimate.astype(np.int64)) >= 0).all(), table
        assert (rows["tsc_estimate"][~known] == 0).all(), table
        assert len(np.unique(estimate)) > 2 * len(np.unique(low)) or table == "events"


def test_estimates_do_not_depend_on_how_rows_are_read(walk: tuple[str, TimedWalk]) -> None:
    trace = opened(walk[1])
    for table in ("branches", "blocks"):
        whole = getattr(trace, table)(columns=["tsc_estimate"], threads=1)["tsc_estimate"]
        for options in ({"threads": 3}, {"rows": 777}, {"rows": 1000, "reuse": True, "threads": 3}):
            if "rows" in options:
                parts = getattr(trace, f"iter_{table}")(columns=["tsc_estimate"], **options)
                read = concatenate([part[np.arange(len(part))] for part in parts])
            else:
                read = getattr(trace, table)(columns=["tsc_estimate"], **options)
            assert np.array_equal(read["tsc_estimate"], whole), (table, options)
        simple = opened(walk[1], engine="simple")
        assert np.array_equal(getattr(simple, table)(columns=["tsc_estimate"])["tsc_estimate"], whole)


def test_a_selection_changes_no_estimate(walk: tuple[str, TimedWalk]) -> None:
    trace = opened(walk[1])
    whole = trace.branches(columns=["tsc_estimate", "kind", "tsc", "time_known", "from_ip"])
    calls = whole["kind"] == ptkit.BranchKind.CALL
    some = trace.branches(columns=["tsc_estimate"], kind="CALL")
    assert np.array_equal(some["tsc_estimate"], whole["tsc_estimate"][calls])
    begin, end = (int(whole["tsc"][len(whole) * n // 4]) for n in (1, 2))
    inside = whole["time_known"] & (whole["tsc"] >= begin) & (whole["tsc"] < end)
    between = trace.between(begin, end).branches(columns=["tsc_estimate"])
    assert 0 < inside.sum() < len(whole)
    assert np.array_equal(between["tsc_estimate"], whole["tsc_estimate"][inside])


def test_tables_agree_about_a_branch(walk: tuple[str, TimedWalk]) -> None:
    trace = opened(walk[1])
    branches = trace.branches(columns=["tsc_estimate", "tsc", "tsc_error", "instruction", "kind"])
    instructions = trace.instructions(columns=["tsc_estimate", "tsc", "tsc_error"])
    counted = branches["kind"] != ptkit.BranchKind.ASYNC
    at = branches["instruction"][counted]
    same = (instructions["tsc"][at] == branches["tsc"][counted]) & (
        instructions["tsc_error"][at] == branches["tsc_error"][counted]
    )
    assert same.mean() > 0.5
    distance = signed(instructions["tsc_estimate"][at], branches["tsc_estimate"][counted])[same]
    assert np.abs(distance).max() <= 1


def test_unknown_estimates_are_null_in_pandas_and_arrow(walk: tuple[str, TimedWalk], tmp_path: Path) -> None:
    trace = opened(walk[1])
    rows = trace.branches(columns=["tsc_estimate", "time_known"])
    with pytest.raises(ptkit.ColumnError, match="time_ns_estimate"):
        trace.branches(columns=["time_ns_estimate"])  # no clock
    assert "tsc_estimate" not in trace.branches().columns
    pandas = pytest.importorskip("pandas")
    frame = rows.to_pandas(["tsc_estimate"])
    assert isinstance(frame, pandas.DataFrame)
    known = rows["time_known"]
    assert frame["tsc_estimate"][known].tolist() == rows["tsc_estimate"][known].tolist()
    assert frame["tsc_estimate"][~known].isna().all()
    pytest.importorskip("pyarrow")
    assert rows.to_arrow(["tsc_estimate"])["tsc_estimate"].null_count == int((~known).sum())
