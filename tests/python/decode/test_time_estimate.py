"""Estimates of time in nanoseconds: the conversion of those in ticks, inside of their intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ptkit

TABLES = ("branches", "blocks", "instructions", "events")
NO_LIMIT = 2**32 - 1
# Multiplier, shift, time zero [ns]: a tick is 625 / 1024 ns.
PERF_TIME = (625, 10, 1_000_000)
TSC_HZ = 2_400_000_000
FIRST_TSC = 3_000_000_000  # of the first stream


def by_perf_time(tsc: int) -> int:
    multiplier, shift, zero = PERF_TIME
    return zero + (tsc * multiplier >> shift)


def by_frequency(tsc: int) -> int:
    return tsc * 10**9 // TSC_HZ


CLOCKS: dict[str, tuple[dict[str, Any], Callable[[int], int]]] = {
    "perf": ({"perf_time": PERF_TIME}, by_perf_time),
    "frequency": ({"tsc_hz": TSC_HZ}, by_frequency),
}


@pytest.fixture(params=list(CLOCKS))
def timed(request: Any, loop: Any) -> tuple[ptkit.Trace, Callable[[int], int]]:
    """Two streams that have a TSC packet every second round, and the conversion of their clock."""
    clock, convert = CLOCKS[request.param]
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.set_clock(**clock)
    for tid, tsc in ((11, FIRST_TSC), (12, FIRST_TSC // 2)):
        bundle.add_stream(loop.stream(40, psb_every=2, tsc=tsc, step=997), name=f"t{tid}", cpu=0, tid=tid)
    return ptkit.Trace(bundle, ptkit.decode.Settings()), convert


def converted(ticks: NDArray[Any], convert: Callable[[int], int]) -> NDArray[np.int64]:
    return np.array([convert(tsc) for tsc in ticks.tolist()], dtype=np.int64)


COLUMNS = ["stream", "tsc", "tsc_error", "time_known", "time_ns", "tsc_estimate", "time_ns_estimate"]


@pytest.mark.parametrize("table", TABLES)
def test_nanoseconds_are_the_converted_ticks(
    timed: tuple[ptkit.Trace, Callable[[int], int]], table: str
) -> None:
    trace, convert = timed
    rows = getattr(trace, table)(columns=COLUMNS)
    known = rows["time_known"]
    assert known.sum() > 20
    ticks, estimate = rows["tsc_estimate"][known], rows["time_ns_estimate"][known]
    assert estimate.dtype == np.int64
    assert np.array_equal(estimate, converted(ticks, convert))
    # The estimate is more than a limit of the interval.
    assert len(np.unique(estimate)) > len(np.unique(rows["time_ns"][known])) or table == "events"


@pytest.mark.parametrize("table", TABLES)
def test_nanoseconds_lie_inside_of_the_interval(
    timed: tuple[ptkit.Trace, Callable[[int], int]], table: str
) -> None:
    trace, convert = timed
    rows = getattr(trace, table)(columns=COLUMNS)
    known = rows["time_known"]
    estimate = rows["time_ns_estimate"]
    assert (estimate >= rows["time_ns"])[known].all()
    limited = known & (rows["tsc_error"] != NO_LIMIT)
    assert limited.sum() > 20
    latest = converted(rows["tsc"][limited] + rows["tsc_error"][limited], convert)
    assert (estimate[limited] <= latest).all()


@pytest.mark.parametrize("table", TABLES)
def test_nanoseconds_never_go_back_within_a_stream(
    timed: tuple[ptkit.Trace, Callable[[int], int]], table: str
) -> None:
    trace, _ = timed
    rows = getattr(trace, table)(columns=COLUMNS)
    for stream in (0, 1):
        mine = rows["time_known"] & (rows["stream"] == stream)
        assert mine.sum() > 10
        assert (np.diff(rows["time_ns_estimate"][mine]) >= 0).all()
    # The second stream is the older one.
    assert rows["time_ns_estimate"][mine].max() < rows["time_ns_estimate"][rows["stream"] == 0].min()


def test_parts_and_selections_have_the_same_estimates(
    timed: tuple[ptkit.Trace, Callable[[int], int]],
) -> None:
    trace, _ = timed
    whole = trace.branches(columns=COLUMNS)["time_ns_estimate"]
    parts = [part["time_ns_estimate"] for part in trace.iter_branches(columns=["time_ns_estimate"], rows=7)]
    assert np.array_equal(np.concatenate(parts), whole)
    only = trace.branches(columns=["time_ns_estimate"], stream=1)["time_ns_estimate"]
    assert np.array_equal(only, whole[trace.branches(columns=["stream"])["stream"] == 1])


def test_tables_without_estimates_refuse_the_column(
    timed: tuple[ptkit.Trace, Callable[[int], int]],
) -> None:
    trace, _ = timed
    for table in (trace.packets, trace.edges):
        with pytest.raises(ptkit.ColumnError, match="time_ns_estimate"):
            table(columns=["time_ns_estimate"])
    assert "time_ns_estimate" not in trace.errors.columns
