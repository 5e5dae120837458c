"""Timelines of calls against the table of calls."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from compiling import build

import ptkit
from ptkit.decode import CallTimeline

_EXACT = int(ptkit.CallFlag.EXACT)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("timeline")
    program = build("calls", folder, "-foptimize-sibling-calls", "-fno-inline")
    ptkit.record([str(program)], output=folder / "calls.ptk")
    return ptkit.open(folder / "calls.ptk")


@pytest.fixture(scope="module")
def switching(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A program that switches stacks."""
    folder = tmp_path_factory.mktemp("fibers")
    program = build("fibers", folder)
    ptkit.record([str(program)], output=folder / "fibers.ptk")
    return ptkit.open(folder / "fibers.ptk")


def parents_of(columns: dict[str, Any]) -> list[int | None]:
    """The number of the slice around each."""
    path: list[int] = []
    parents: list[int | None] = []
    for number, depth in zip(columns["id"].tolist(), columns["depth"].tolist(), strict=True):
        assert depth <= len(path)
        del path[depth:]
        parents.append(path[-1] if path else None)
        path.append(number)
    return parents


def check_nesting(timeline: CallTimeline) -> None:
    for track in range(len(timeline.tracks)):
        columns = timeline.columns(track)
        assert (columns["begin"] <= columns["end"]).all()
        position = 0
        path: list[int] = []  # ends of open slices
        for begin, end, depth in zip(
            *(columns[name].tolist() for name in ("begin", "end", "depth")), strict=True
        ):
            while len(path) > depth:
                position = max(position, path.pop())
            assert begin >= position
            assert not path or end <= path[-1]
            position = begin
            path.append(end)


def check_whole(timeline: CallTimeline, calls: Any, by: str = "time") -> None:
    """Each call has a slice, with the same caller and the same facts."""
    columns = timeline.columns()
    assert timeline.facts()["is_whole"]
    order = np.argsort(columns["id"], kind="stable")
    assert columns["id"][order].tolist() == calls["id"].tolist()
    for name in ("instructions", "branches", "how", "end_how", "flags"):
        assert (columns[name][order] == calls[name]).all(), name
    for name in ("entry_ip", "function_full"):
        of_slices = np.asarray(timeline.functions[name])[columns["function"][order]]
        assert (of_slices == np.asarray(calls.function_rows()[name])[calls["function"]]).all(), name
    assert (columns["calls"] == 1).all()
    assert (columns["covered"] == columns["end"] - columns["begin"]).all()
    parents = np.array([-1 if one is None else one for one in parents_of(columns)])[order]
    assert (parents == np.where(calls["parent_known"], calls["parent"].astype(np.int64), -1)).all()
    if by == "time" and not timeline.facts()["clamped"]:
        assert (columns["begin"][order] == calls["tsc"]).all()
        assert (columns["end"][order] == calls["end_tsc"]).all()
        assert (columns["begin_error"][order] == calls["tsc_error"]).all()
        assert (columns["end_error"][order] == calls["end_tsc_error"]).all()
    check_nesting(timeline)


_COLUMNS = [
    *("id", "parent", "entry_ip", "depth", "how", "end_how", "flags", "instructions", "self_instructions"),
    *("branches", "tsc", "tsc_error", "end_tsc", "end_tsc_error", "function"),
]


def calls_of(trace: Any, **query: Any) -> Any:
    return trace.calls(columns=_COLUMNS, **query)


@pytest.mark.parametrize("by", ["time", "instructions"])
def test_whole_timelines_have_each_call(trace: Any, by: str) -> None:
    timeline = trace.call_timeline(by)
    calls = calls_of(trace)
    check_whole(timeline, calls, by)
    assert len(timeline) == len(calls)
    columns = timeline.columns()
    if by == "instructions":
        assert (columns["end"] - columns["begin"] == columns["instructions"]).all()
    if len(timeline.tracks) == 1 and calls["depth"].min() == 0:
        order = np.argsort(columns["id"], kind="stable")
        assert (columns["depth"][order] == calls["depth"]).all()


def test_reduced_timelines_add_up(trace: Any) -> None:
    calls = calls_of(trace)
    most = len(calls) // 3
    timeline = trace.call_timeline("instructions", slices=most)
    check_nesting(timeline)
    columns = timeline.columns()
    facts = timeline.facts()
    assert len(timeline) == most
    assert columns["calls"].sum() == len(calls) == facts["calls"]
    assert columns["covered"].sum() == calls["instructions"].sum() == columns["instructions"].sum()
    assert columns["branches"].sum() == calls["branches"].sum()
    merged = columns["calls"] > 1
    assert merged.sum() == facts["merged_slices"] > 0
    assert columns["calls"][merged].sum() == facts["merged_calls"]
    assert ((columns["end"] - columns["begin"])[merged] <= facts["longest_merged"]).all()
    # Merged slices are exact if all their calls are.
    exact = (calls["flags"] & _EXACT) != 0
    assert not exact.all() or ((columns["flags"] & _EXACT) != 0).all()
    note = timeline.notes()[0]
    assert "merged" in note
    assert f"{facts['merged_calls']:,}" in note


def test_slowest_calls_are_whole(trace: Any) -> None:
    calls = calls_of(trace)
    timeline = trace.call_timeline("instructions", slices=max(1000, len(calls) // 4))
    columns = timeline.columns()
    slowest = timeline.facts()["slowest"]
    assert slowest > 0
    whole = set(columns["id"][columns["calls"] == 1].tolist())
    for function in np.unique(calls["function"]):
        own = np.flatnonzero(calls["function"] == function)
        order = own[np.lexsort((calls["id"][own], -calls["instructions"][own]))]
        assert set(calls["id"][order[:slowest]].tolist()) <= whole


def test_timelines_are_reduced_again(trace: Any) -> None:
    timeline = trace.call_timeline("instructions")
    count = len(timeline)
    for most in (count, count // 2, count // 5, 50):
        timeline.reduce(most)
        assert len(timeline) == most
        assert timeline.facts()["calls"] + timeline.facts()["too_deep"] == count
        check_nesting(timeline)
    with pytest.raises(ptkit.ConfigError, match="slices"):
        timeline.reduce(0)


class Stopped(Exception):
    pass


def stop(*_: Any) -> None:
    raise Stopped


@pytest.fixture
def alarm() -> Iterator[None]:
    """SIGALRM raises an exception."""
    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_interrupted_reductions_leave_a_timeline(trace: Any) -> None:
    calls = len(trace.call_timeline("instructions"))
    for delay in (0.0005, 0.01, 0.06):
        timeline = trace.call_timeline("instructions")
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            timeline.reduce(calls // 3)
            time.sleep(1)
        except Stopped:
            pass
        else:
            pytest.fail("not interrupted")
        check_nesting(timeline)
        assert calls // 3 <= len(timeline) <= calls
        assert timeline.facts()["calls"] == calls
        timeline.reduce(calls // 3)
        assert len(timeline) == calls // 3


def test_parts_are_the_whole(trace: Any) -> None:
    timeline = trace.call_timeline()
    whole = timeline.columns()
    parts = list(timeline.parts(1000))
    assert all(len(part["id"]) == 1000 for part in parts[:-1])
    for name, column in whole.items():
        assert (np.concatenate([part[name] for part in parts]) == column).all()
    reading = timeline.parts(10)
    next(reading)
    timeline.reduce(100)
    with pytest.raises(RuntimeError, match="reduced"):
        next(reading)


def test_windows_cut_calls(trace: Any) -> None:
    first, last = trace.info.first_tsc, int(trace.calls()["end_tsc"].max())
    view = trace.between(first + (last - first) // 3, first + (last - first) // 2)
    calls = calls_of(view)
    assert len(calls)
    check_whole(view.call_timeline(), calls)


def test_selections_leave_out_calls(trace: Any) -> None:
    calls = calls_of(trace, symbol="fib")
    assert len(calls)
    timeline = trace.call_timeline(symbol="fib")
    columns = timeline.columns()
    assert sorted(columns["id"].tolist()) == calls["id"].tolist()
    names = timeline.functions.named("function")
    assert {names[number] for number in columns["function"].tolist()} == {"fib"}
    # fib() calls itself: what is selected nests.
    assert columns["depth"].max() > 0
    check_nesting(timeline)


def test_inlined_and_replaced_calls(trace: Any) -> None:
    check_nesting(trace.call_timeline(inlines=True))
    replaced = trace.call_timeline(tails="replaced")
    check_nesting(replaced)
    assert len(replaced) == len(trace.call_timeline())


def test_stacks_have_tracks(switching: Any) -> None:
    calls = calls_of(switching)
    timeline = switching.call_timeline()
    check_whole(timeline, calls)
    tracks = timeline.tracks
    assert {one.stack for one in tracks} == set(range(len(tracks)))
    assert len(tracks) > 1
    assert len({(one.pid, one.tid) for one in tracks}) == 1
    assert all(not len(timeline.counts(number)[0]) for number in range(len(tracks)))
    assert timeline.facts()["without_counts"] == 1
    assert any("stacks" in note for note in timeline.notes())


def test_counts_end_with_all_branches(trace: Any) -> None:
    timeline = trace.call_timeline("instructions")
    position, branches = timeline.counts(0)
    assert (np.diff(position.astype(np.int64)) > 0).all()
    assert (np.diff(branches.astype(np.int64)) >= 0).all()
    assert len(position) <= 2048
    roots = trace.calls(stream=0)
    assert branches[-1] == roots[~roots["parent_known"]]["branches"].sum()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_do_not_change_it(trace: Any, threads: int) -> None:
    first = trace.call_timeline(slices=500).columns()
    second = trace.call_timeline(slices=500, threads=threads).columns()
    for name, column in first.items():
        assert (column == second[name]).all(), name


def test_messages_name_arguments(trace: Any) -> None:
    for query, message in (
        ({"columns": ["id"]}, "columns"),
        ({"order": "time"}, "order"),
        ({"by": "cycles"}, "by"),
        ({"slices": 0}, "slices"),
        ({"frames": "java"}, "frames"),
        ({"tails": "long"}, "tails"),
        ({"offset": (0, 5)}, "offset"),
    ):
        with pytest.raises(ptkit.ConfigError, match=message):
            trace.call_timeline(**query)
    with pytest.raises(IndexError, match="tracks"):
        trace.call_timeline().columns(1000)
