"""Calls of a window of time: what ran within it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build
from executed_parts import time_at

import ptkit

WINDOWS = 9


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("windows")
    program = build("calls", folder, "-foptimize-sibling-calls", "-fno-inline")
    recording: Path = folder / "calls.ptk"
    ptkit.record([str(program)], output=recording)
    return ptkit.open(recording)


@pytest.fixture(scope="module")
def windows(trace: Any) -> list[Any]:
    limits = [time_at(trace, 100 * i // WINDOWS) for i in range(1, WINDOWS)]
    return [trace.between(*ends) for ends in zip([None, *limits], [*limits, None], strict=True)]


def by_name(functions: Any, column: str) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, value in zip(functions["function"].tolist(), functions[column].tolist(), strict=True):
        sums[name] = sums.get(name, 0) + value
    return {name: value for name, value in sums.items() if value}


@pytest.mark.parametrize("column", ["count", "self_instructions"])
@pytest.mark.parametrize("options", [{}, {"tails": "replaced"}, {"inlines": True}])
def test_adjacent_windows_add_up(trace: Any, windows: list[Any], column: str, options: Any) -> None:
    sums: dict[str, int] = {}
    for window in windows:
        for name, value in by_name(window.functions(**options), column).items():
            sums[name] = sums.get(name, 0) + value
    assert sums == by_name(trace.functions(**options), column)


def test_windows_have_what_their_blocks_have(windows: list[Any]) -> None:
    for window in windows:
        instructions = window.blocks()["instructions"].sum()
        calls = window.calls()
        assert calls["self_instructions"].sum() == instructions
        for sums in (window.functions(), window.functions("module"), window.call_tree()):
            assert sums["self_instructions"].sum() == instructions
            assert sums["crossing"].sum() >= 1
        roots = calls[~calls["parent_known"]]
        assert roots["instructions"].sum() == instructions
        assert roots["branches"].sum() == len(window.branches())


def test_calls_are_cut_at_the_ends(trace: Any, windows: list[Any]) -> None:
    columns = ["id", "entry_ip", "tsc", "end_tsc", "flags", "depth", "instruction", "end_instruction"]
    whole = trace.calls(columns=[*columns, "instructions"])
    of_whole = {number: row for row, number in enumerate(whole["id"].tolist())}
    for window in windows[2:7]:
        calls = window.calls(columns=[*columns, "instructions"])
        rows = whole[np.array([of_whole[number] for number in calls["id"].tolist()])]
        for name in ("entry_ip", "depth"):
            assert (calls[name] == rows[name]).all()
        before, after = np.asarray(calls["begins_before"]), np.asarray(calls["ends_after"])
        assert before.any()
        assert after.any()
        assert (calls["instruction"][~before] == rows["instruction"][~before]).all()
        assert (calls["end_instruction"][~after] == rows["end_instruction"][~after]).all()
        assert len(set(calls["instruction"][before].tolist())) == 1
        assert (calls["tsc"][before] == calls["tsc"].min()).all()
        assert (calls["end_tsc"][after] == calls["end_tsc"].max()).all()
        lengths = calls["end_instruction"] - calls["instruction"]
        assert (lengths == calls["instructions"]).all()
        assert not calls["begin_seen"][before].any()


def test_crossing_calls_are_not_in_percentiles(windows: list[Any]) -> None:
    window = windows[4]
    functions, calls = window.functions(), window.calls()
    crossing = functions[(functions["crossing"] == 1) & (functions["count"] == 0)]
    assert (crossing["instructions"] > 0).any()
    assert not crossing["max_instructions"].any()
    assert not crossing["p50"].any()
    assert calls.histogram().counts.sum() == len(calls) - functions["crossing"].sum()
    assert calls.histogram("time").unknown == 0


def test_whole_calls_on_request(trace: Any, windows: list[Any]) -> None:
    window, calls = windows[4], trace.calls()
    begin, end = window._bound["time"]
    touching = calls[(calls["tsc"] < end) & (calls["end_tsc"] >= begin)]
    assert window.calls(whole_calls=True)["id"].tolist() == touching["id"].tolist()
    assert by_name(window.functions(whole_calls=True), "instructions") == by_name(
        touching.functions(), "instructions"
    )
    assert window.call_tree(whole_calls=True)["count"].sum() == touching.tree()["count"].sum()
    assert sum(map(len, window.iter_calls(whole_calls=True))) == len(touching)
    assert not window.functions(whole_calls=True)["crossing"].any()
    with pytest.raises(ptkit.ConfigError, match="whole_calls"):
        window.functions("line", whole_calls=True)


def test_windows_without_rows_have_no_calls(trace: Any) -> None:
    nothing = (trace.info.first_tsc + 5, trace.info.first_tsc + 5)
    assert len(trace.functions(time=nothing)) == 0
    assert len(trace.call_tree(time=(trace.info.last_tsc + 1, None))) == 0
    assert len(trace.calls(time=nothing)) == 0


@pytest.mark.parametrize("selection", [{"symbol": "fib"}, {"module": "calls"}])
def test_trees_of_functions_leave_out_others(trace: Any, selection: dict[str, str]) -> None:
    tree, functions = trace.call_tree(**selection), trace.functions(**selection)
    assert set(tree["function"].tolist()) == set(functions["function"].tolist())
    for column in ("count", "self_instructions"):
        assert tree[column].sum() == functions[column].sum()
    assert tree["depth"].max() > 0  # of recursion at least
