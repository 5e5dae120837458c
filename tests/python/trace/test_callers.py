"""`trace.callers()`: sums over the calls of a function for each chain of its callers."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build, compiled

import ptkit

SUMS = ("count", "begin_unseen", "instructions", "self_instructions", "branches", "least", "most")
NAMES = ("fib", "leave", "even", "odd", "main", "malloc")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    folder = tmp_path_factory.mktemp("callers")
    program = build("calls", folder, "-foptimize-sibling-calls", "-fno-inline", "-static")
    return ptkit.record([str(program)], output=folder / "calls.ptk")


def chains(callers: Any) -> list[tuple[str, ...]]:
    """Names from the function to the outermost caller, of each row."""
    names, parents = callers.named("function"), callers["parent"].tolist()
    found: list[tuple[str, ...]] = []
    for row, depth in enumerate(callers["depth"].tolist()):
        found.append((*(found[parents[row]] if depth else ()), names[row]))
    return found


def chains_of_calls(calls: Any, name: str) -> dict[tuple[str, ...], list[int]]:
    """By chain of callers: calls, instructions of the outermost ones, and instructions of the function."""
    names = dict(zip(calls["id"].tolist(), calls.named("entry_symbol"), strict=True))
    parents = dict(zip(calls["id"].tolist(), calls.named("parent"), strict=True))
    sums: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    stacks: dict[int, list[str]] = {}

    def stack(number: int | None) -> list[str]:
        if number is None:
            return []
        if number not in stacks:
            stacks[number] = [names[number] or "", *stack(parents[number])]
        return stacks[number]

    for number, whole, own in zip(
        *(calls[one].tolist() for one in ("id", "instructions", "self_instructions")), strict=True
    ):
        if names[number] != name:
            continue
        here = stack(number)
        for length in range(1, len(here) + 1):
            chain = tuple(here[:length])
            is_inner = any(tuple(here[at : at + length]) == chain for at in range(1, len(here)))
            row = sums[chain]
            row[0] += 1
            row[1] += 0 if is_inner else whole
            row[2] += own
    return sums


@pytest.mark.parametrize("name", NAMES)
def test_roots_have_the_sums_of_functions(trace: ptkit.Trace, name: str) -> None:
    roots = trace.callers(name, depth=0)
    functions = trace.functions(symbol=name)
    assert len(roots) == 1
    for column in (*SUMS, "count_exact"):
        assert roots[column].tolist() == functions[column].tolist(), column


@pytest.mark.parametrize("name", ["fib", "leave", "even", "malloc"])
def test_rows_are_those_of_the_calls_with_these_callers(trace: ptkit.Trace, name: str) -> None:
    callers: Any = trace.callers(name)
    expected = chains_of_calls(trace.calls(), name)
    columns = ("count", "begin_unseen", "instructions", "self_instructions")
    for chain, begun, unseen, whole, own in zip(
        chains(callers), *(callers[one].tolist() for one in columns), strict=True
    ):
        named = tuple("" if one.startswith("thread ") else one for one in chain)
        assert [begun + unseen, whole, own] == expected[named], chain
    assert len(callers) == len(expected)


def test_recursion_counts_an_instruction_once(trace: ptkit.Trace) -> None:
    callers = trace.callers("fib")
    assert (callers["instructions"] >= callers["self_instructions"]).all()
    inner = callers[callers["parent_known"]]
    outer = callers[inner["parent"]]
    assert (inner["instructions"] <= outer["instructions"]).all()
    assert (inner["depth"] == outer["depth"] + 1).all()
    # fib() executes all of its instructions itself, at any depth of the recursion.
    root = callers[:1]
    assert root["instructions"][0] == root["self_instructions"][0]


def test_callers_come_after_what_they_call_those_with_most_instructions_first(trace: ptkit.Trace) -> None:
    callers = trace.callers("even")
    assert callers["node"].tolist() == list(range(len(callers)))
    assert (callers["parent"][1:] < callers["node"][1:]).all()
    for node in callers["node"].tolist():
        below = callers[(callers["parent"] == node) & callers["parent_known"]]
        assert (np.diff(below["instructions"]) <= 0).all()


def test_depth_bounds_the_levels_of_callers(trace: ptkit.Trace) -> None:
    everything = trace.callers("fib")
    some = trace.callers("fib", depth=2)
    shallow = everything[everything["depth"] <= 2]
    assert chains(some) == [one for one in chains(everything) if len(one) <= 3]
    for column in SUMS:
        assert some[column].tolist() == shallow[column].tolist()
    with pytest.raises(ptkit.ConfigError, match="depth"):
        trace.callers("fib", depth=-1)


def test_each_function_of_a_pattern_has_a_row_without_a_callee(trace: ptkit.Trace) -> None:
    callers = trace.callers("[eo][vd][ed]*", depth=1)
    roots = callers[callers["depth"] == 0]
    assert {"even", "odd"} <= set(roots.named("function"))
    alone = trace.callers("odd", depth=1)
    assert chains(alone) == [one for one in chains(callers) if one[0] == "odd"]
    with pytest.raises(ptkit.SymbolError, match="no function 'fob' was called; did you mean 'fib'"):
        trace.callers("fob")


def test_threads_times_and_slices_select_calls(trace: ptkit.Trace) -> None:
    (tid,) = {tid for _, tid, _ in trace.info.threads}
    assert chains(trace.callers("fib", tid=tid)) == chains(trace.callers("fib"))
    calls: Any = trace.calls(symbol="guarded")
    begin, end = (int(calls[one].min()) for one in ("tsc", "end_tsc"))
    part = trace.between(begin, end).callers("guarded", depth=0)
    assert part["count"][0] < trace.callers("guarded", depth=0)["count"][0]
    assert trace.callers("guarded", depth=0, time=(begin, end))["count"][0] == part["count"][0]


RECURSIVE = """
static volatile long sum;
__attribute__((noinline)) void leaf(int n) { sum += n; }
__attribute__((noinline)) void again(int n) { if (n > 0) again(n - 1); leaf(n); ++sum; }
int main(void) { again(3000); return 0; }
"""


def test_deep_recursion_has_a_row_for_each_chain(tmp_path: Path) -> None:
    (tmp_path / "deep.c").write_text(RECURSIVE)
    program = compiled(
        tmp_path / "deep", "-O1", "-fno-optimize-sibling-calls", tmp_path / "deep.c", "-static"
    )
    trace = ptkit.record([str(program)], output=tmp_path / "deep.ptk")
    for name, calls in ("leaf", 3001), ("again", 3001):
        callers: Any = trace.callers(name)
        functions = trace.functions(symbol=name)
        for column in SUMS:
            assert callers[column][0] == functions[column][0], column
        recursive = callers[np.array([one == "again" for one in callers.named("function")])]
        counts = recursive["count"].tolist()
        assert counts == list(range(calls, 0, -1))  # of so many calls, the caller is so far away
        assert sum(one == "main" for one in callers.named("function")) == calls


def test_rows_that_do_not_fit_are_refused(trace: ptkit.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(trace.callers("fib", depth=1)) < 16
    monkeypatch.setattr("ptkit.decode.callers._ROW_BYTES", 1 << 20)
    monkeypatch.setattr("ptkit.support.memory.free", lambda: (10, "RLIMIT_AS"))
    with pytest.raises(ptkit.OutOfMemoryError, match=r"rows of callers take .* give fewer levels"):
        trace.callers("fib")
    assert len(trace.callers("fib", depth=1)) < 16


def test_the_function_is_among_those_that_are_selected(trace: ptkit.Trace) -> None:
    both = trace.callers("fib", symbol=["fib", "main"])
    assert set(both.named("function")) == {"fib", "main"}
    with pytest.raises(ptkit.SymbolError, match="symbol: 'fib' is not among the functions that are selected"):
        trace.callers("fib", symbol="main")
    with pytest.raises(ptkit.SymbolError, match="no function 'fob' was called"):
        trace.callers("fob")


def test_columns_are_those_that_were_asked_for(trace: ptkit.Trace) -> None:
    callers = trace.callers("malloc", columns=["function", "count", "entry_ip"])
    assert callers.columns == ("function", "count", "entry_ip")
    assert callers.name == "callers"
    with pytest.raises(ptkit.ConfigError, match="name of a function"):
        trace.callers(7)  # type: ignore[arg-type]


def test_inlined_calls_have_rows_of_their_own(tmp_path: Path) -> None:
    program = build("inlined", tmp_path, "-g")
    trace = ptkit.record([str(program)], output=tmp_path / "inlined.ptk", with_debug=True)
    functions: Any = trace.functions(inlines=True)
    inlined = functions[functions["is_inlined"]]
    name = str(inlined["function"][0])
    roots: Any = trace.callers(name, inlines=True, depth=0)
    same = functions[[one == name for one in functions.named("function")]]
    assert sorted(roots["is_inlined"].tolist()) == sorted(same["is_inlined"].tolist())
    assert sorted(roots["instructions"].tolist()) == sorted(same["instructions"].tolist())
