"""Frames of inlined calls: `calls(inlines=True)` and the sums over them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build
from executed_parts import executed_part

import ptkit
from ptkit import CallEnd, CallKind

INLINED = ("leaf", "middle", "outer", "calling", "step", "looping", "throwing", "catching")
SUMS = [(by, tails) for by in ("function", "entry", "module") for tails in ("nested", "replaced")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inlines")
    program = build("inlines", folder, "-g", "-O2")
    ptkit.record([str(program), str(folder / "counts")], output=folder / "inlines.ptk", with_debug=True)
    return folder


@pytest.fixture(scope="module")
def counts(folder: Path) -> dict[str, int]:
    """Executions, as the program counted them."""
    lines = (folder / "counts").read_text().splitlines()
    return {name: int(count) for name, count in map(str.split, lines)}


@pytest.fixture(scope="module")
def trace(folder: Path) -> Any:
    return ptkit.open(folder / "inlines.ptk", threads=1)


@pytest.fixture(scope="module")
def calls(trace: Any) -> Any:
    more = ("instruction", "end_instruction", "inline_level")
    return trace.calls(inlines=True, columns=[*trace.calls().columns, *more])


def bare(name: str | None) -> str:
    """A function's name without arguments."""
    return (name or "").partition("(")[0]


def inlined(calls: Any) -> Any:
    return calls[calls["how"] == CallKind.INLINED]


def test_each_execution_is_a_frame(calls: Any, counts: dict[str, int]) -> None:
    frames = inlined(calls)
    names = frames[~frames["continues_known"]]["entry_symbol"].tolist()
    found = Counter(map(bare, names))
    assert {name: found[name] for name in INLINED} == {name: counts[name] for name in INLINED}


def stub_instructions(trace: Any) -> Counter[int]:
    """How many instructions of PLT entries follow each instruction that is in none."""
    rows = trace.instructions(columns=["ip", "symbol", "module"])
    found: Counter[int] = Counter()
    caller, entered = 0, None
    for ip, name, module in zip(
        rows["ip"].tolist(), rows["symbol"].tolist(), rows["module"].tolist(), strict=True
    ):
        # The first entry of a PLT, behind others of the file, is named by its address at most.
        is_named = name is not None and "!0x" not in name
        is_stub = name.endswith("@plt") if is_named else module == entered
        entered = module if is_stub else None
        if is_stub and module is not None:
            found[caller] += 1
        else:
            caller = ip
    return found


def test_instructions_are_in_the_calls_that_are_inlined_there(trace: Any, calls: Any) -> None:
    rows = trace.instructions(columns=["ip", "space", "tid"])
    ips, times = np.unique(rows["ip"], return_counts=True)
    expected: Counter[str] = Counter()
    depths = 0
    for ip, count in zip(ips.tolist(), times.tolist(), strict=True):
        chain = trace.inlines(ip)
        if len(chain) > 1:
            expected[chain[0].function] += count
            depths += count * (len(chain) - 1)
    for ip, count in stub_instructions(trace).items():
        chain = trace.inlines(ip)
        if len(chain) > 1:
            expected[chain[0].function] += count
    frames = inlined(calls)
    found: Counter[str] = Counter()
    for name, own in zip(frames["entry_symbol_full"], frames["self_instructions"].tolist(), strict=True):
        found[name] += own
    assert +found == expected
    # Each instruction is in one frame of each inlined call, below what these call.
    calls_of = dict(zip(calls["id"].tolist(), calls["how"].tolist(), strict=True))
    called = calls[(calls["how"] != CallKind.INLINED) & calls["parent_known"]]
    above = np.array([calls_of[parent] == CallKind.INLINED for parent in called["parent"].tolist()])
    assert above.any()
    assert depths > sum(expected.values())


def test_each_instruction_is_in_one_frame(trace: Any, calls: Any) -> None:
    assert calls["self_instructions"].sum() == len(trace.instructions(columns=["cls"]))
    roots = calls[~calls["parent_known"]]
    assert roots["instructions"].sum() == calls["self_instructions"].sum()


def test_frames_lie_inside_their_parents(calls: Any) -> None:
    row_of = {number: row for row, number in enumerate(calls["id"].tolist())}
    assert len(row_of) == len(calls)
    inner = calls[calls["parent_known"]]
    outer = calls[np.array([row_of[number] for number in inner["parent"].tolist()])]
    assert (inner["depth"] == outer["depth"] + 1).all()
    for begin, end in (("offset", "end_offset"), ("instruction", "end_instruction"), ("tsc", "end_tsc")):
        assert (inner[begin] >= outer[begin]).all()
        assert (inner[end] <= outer[end]).all()
    assert (inner["tsc"] + inner["tsc_error"] >= outer["tsc"] + outer["tsc_error"]).all()
    assert (inner["end_tsc"] + inner["end_tsc_error"] <= outer["end_tsc"] + outer["end_tsc_error"]).all()
    lengths = calls["end_instruction"] - calls["instruction"]
    np.testing.assert_array_equal(calls["instructions"], lengths)
    assert not inlined(calls)["call_known"].any()


def test_other_frames_are_the_same(trace: Any, calls: Any) -> None:
    others, natives = trace.calls(), calls[calls["how"] != CallKind.INLINED]
    assert len(others) == len(natives) < len(calls)
    changed = {"id", "parent", "depth", "self_instructions", "continues"}
    for column in [*others.columns, "tid", "space", "entry_symbol"]:
        if column not in changed:
            np.testing.assert_array_equal(natives[column], others[column], err_msg=column)
    assert trace.calls(inlines=True, stream=0)["self_instructions"].sum() == (
        trace.calls(stream=0)["self_instructions"].sum()
    )


def test_exceptions_end_inlined_calls(calls: Any, counts: dict[str, int]) -> None:
    frames = inlined(calls)
    frames = frames[np.array([bare(name) == "throwing" for name in frames["entry_symbol"]])]
    thrown = len(range(0, counts["throwing"], 3))
    assert Counter(frames["end_how"].tolist())[CallEnd.UNWIND] == thrown


def test_functions_count_executions(trace: Any, counts: dict[str, int]) -> None:
    functions = trace.functions(inlines=True, columns=["function_full", "count", "is_inlined", "module"])
    rows = list(zip(*(functions[name].tolist() for name in functions.columns), strict=True))
    found = {
        (bare(name), is_inlined): count for name, count, is_inlined, module in rows if module == "inlines"
    }
    assert {name: found[name, True] for name in INLINED} == {name: counts[name] for name in INLINED}
    called = [count for name, count, is_inlined, _ in rows if "called(" in name and not is_inlined]
    assert sum(called) == counts["called"]
    both = [found.get(("both", is_inlined), 0) for is_inlined in (False, True)]
    assert sum(both) == counts["both"]
    assert not trace.functions()["is_inlined"].any()


def same_sums(some: Any, others: Any) -> None:
    assert len(some) == len(others)
    for column in others.columns:
        assert some.named(column) == others.named(column), column


@pytest.mark.parametrize(("by", "tails"), SUMS)
def test_sums_over_rows_equal_those_of_a_decode(trace: Any, calls: Any, by: str, tails: str) -> None:
    functions = trace.functions(by, tails=tails, inlines=True)
    same_sums(calls.functions(by, tails=tails), functions)
    assert functions["self_instructions"].sum() == calls["self_instructions"].sum()
    if by != "module":
        assert functions["is_inlined"].any()


def test_trees_have_inlined_functions(trace: Any, calls: Any, counts: dict[str, int]) -> None:
    tree = trace.call_tree(inlines=True)
    same_sums(calls.tree(), tree)
    leaves = [
        count
        for name, count, is_inlined in zip(
            tree["function"], tree["count"].tolist(), tree["is_inlined"].tolist(), strict=True
        )
        if bare(name) == "leaf" and is_inlined
    ]
    assert len(leaves) > 2
    assert sum(leaves) == counts["leaf"]


def equal(some: Any, others: Any, *, times: bool = True) -> None:
    assert len(some) == len(others)
    for column in (*others.columns, "tid", "space", "stream", "entry_symbol"):
        if not times and ("tsc" in column or "offset" in column):
            continue
        np.testing.assert_array_equal(some[column], others[column], err_msg=column)


def test_parts_have_the_same_frames(trace: Any, calls: Any) -> None:
    parts = list(trace.iter_calls(rows=1000, inlines=True))
    order = np.argsort(np.concatenate([part["id"] for part in parts]))
    for column in (*parts[0].columns, "entry_symbol"):
        found = np.concatenate([part[column] for part in parts])
        np.testing.assert_array_equal(found[order], calls[column], err_msg=column)


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
@pytest.mark.parametrize("threads", [1, 2])
def test_engines_and_threads_give_the_same_frames(
    folder: Path, calls: Any, engine: str, threads: int
) -> None:
    other = ptkit.open(folder / "inlines.ptk", engine=engine, threads=threads)
    equal(other.calls(inlines=True, columns=calls.columns), calls, times=threads == 1)


def test_parts_of_a_trace_have_inlined_calls(trace: Any) -> None:
    view = executed_part(trace, 50, 99)
    own = view.calls(inlines=True)
    assert len(inlined(own))
    same_sums(view.functions(inlines=True), own.functions())
    same_sums(view.call_tree(inlines=True), own.tree())
    events = trace.events(stream=0)
    part = trace.slice(after=events[:1])
    assert len(inlined(part.calls(inlines=True)))
    assert part.functions(inlines=True)["is_inlined"].any()


def test_frames_are_those_of_the_recorded_debug_information(tmp_path: Path) -> None:
    program = build("inlines", tmp_path, "-g", "-O2", "-static")
    path = tmp_path / "inlines.ptk"
    ptkit.record([str(program), str(tmp_path / "counts")], output=path, with_debug=True)
    there = ptkit.open(path, threads=1).calls(inlines=True)
    program.unlink()
    gone = ptkit.open(path, threads=1).calls(inlines=True)
    equal(gone, there)
    assert len(inlined(gone))


def test_without_debug_information_there_are_none(tmp_path: Path) -> None:
    program = build("inlines", tmp_path, "-O2", "-static", "-s")
    ptkit.record([str(program), str(tmp_path / "counts")], output=tmp_path / "inlines.ptk")
    trace = ptkit.open(tmp_path / "inlines.ptk", threads=1)
    calls = trace.calls(inlines=True)
    assert not len(inlined(calls))
    equal(calls, trace.calls())


def test_wrong_arguments(trace: Any) -> None:
    with pytest.raises(ptkit.ConfigError, match="inlines=1 must be True or False"):
        trace.calls(inlines=1)
    with pytest.raises(ptkit.ConfigError, match='by="line"'):
        trace.functions("line", inlines=True)


def test_views_of_python_leave_no_choice_of_inlined_functions(trace: Any) -> None:
    for call in (trace.calls, trace.functions, trace.call_tree):
        with pytest.raises(ptkit.ConfigError, match="inlines: frames='mixed'"):
            call(frames="mixed", inlines=True)
