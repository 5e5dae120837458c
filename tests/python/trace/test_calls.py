"""Call stacks: frames, sums over functions, anomalies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build, compiled_by
from executed_parts import executed_part

import ptkit
from ptkit import CallEnd, CallKind

FIB_CALLS = 3 * 67 + 6 * 5  # of fib(8), and of fib(3)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calls")
    program = build("calls", folder, "-foptimize-sibling-calls", "-fno-inline")
    recording = folder / "calls.ptk"
    ptkit.record([str(program)], output=recording)
    return recording


@pytest.fixture(scope="module")
def trace(recorded: Path) -> Any:
    return ptkit.open(recorded)


@pytest.fixture(scope="module")
def calls(trace: Any) -> Any:
    return trace.calls()


def of(calls: Any, name: str) -> Any:
    return calls.where(entry_symbol=name)


def test_each_instruction_is_in_one_frame(trace: Any, calls: Any) -> None:
    assert calls["self_instructions"].sum() == len(trace.instructions(columns=["cls"]))
    roots = calls[~calls["parent_known"]]
    assert roots["instructions"].sum() == calls["self_instructions"].sum()
    assert roots["branches"].sum() == len(trace.branches(columns=["kind"]))


def test_frames_lie_inside_their_parents(calls: Any) -> None:
    row_of = {number: row for row, number in enumerate(calls["id"].tolist())}
    assert len(row_of) == len(calls)
    inner = calls[calls["parent_known"]]
    outer = calls[np.array([row_of[number] for number in inner["parent"].tolist()])]
    assert (inner["depth"] == outer["depth"] + 1).all()
    assert (inner["offset"] >= outer["offset"]).all()
    assert (inner["end_offset"] <= outer["end_offset"]).all()
    assert (inner["instructions"] <= outer["instructions"]).all()


def test_recursion_has_a_frame_for_each_call(calls: Any) -> None:
    fib = of(calls, "fib")
    assert len(fib) == FIB_CALLS
    assert set(fib["end_how"].tolist()) == {CallEnd.RETURN}
    assert Counter(fib["how"].tolist())[CallKind.TAIL] == 6  # apply() jumps
    assert fib["exact"].all()


def test_tail_calls_are_nested(calls: Any) -> None:
    chain = of(calls, "even"), of(calls, "odd")
    assert [len(one) for one in chain] == [4 * 6, 4 * 5]
    assert Counter(chain[0]["how"].tolist()) == {CallKind.CALL: 4, CallKind.TAIL: 4 * 5}
    assert Counter(chain[0]["end_how"].tolist()) == {CallEnd.RETURN: 4, CallEnd.TAIL: 4 * 5}
    assert set(chain[1]["end_how"].tolist()) == {CallEnd.TAIL}


def test_longjmp_ends_the_frames_above(calls: Any) -> None:
    left = of(calls, "leave")
    assert len(left) == 5 * 4
    assert set(left["end_how"].tolist()) == {CallEnd.LONGJMP}
    assert set(of(calls, "guarded")["end_how"].tolist()) == {CallEnd.RETURN}


def test_callbacks_are_below_the_library(calls: Any) -> None:
    smaller = of(calls, "smaller")
    assert len(smaller) > 16
    assert set(smaller["how"].tolist()) == {CallKind.CALL}
    sort = of(calls, "qsort")
    assert set(sort["how"].tolist()) == {CallKind.PLT}
    assert sort["instructions"][0] > smaller["instructions"].sum()


def test_there_are_no_anomalies(trace: Any) -> None:
    kinds = Counter(map(ptkit.StackAnomaly, trace.stack_anomalies["kind"].tolist()))
    assert kinds == {}


def test_functions_are_sums_over_frames(trace: Any, calls: Any) -> None:
    functions = trace.functions()
    assert functions.columns[:3] == ("function", "module", "count")
    assert functions["count"].sum() + functions["begin_unseen"].sum() == len(calls)
    assert functions["self_instructions"].sum() == calls["self_instructions"].sum()
    rows = {name: row for row, name in enumerate(functions["function"].tolist())}
    for name in ("fib", "even", "odd", "leave", "main"):
        frames = of(calls, name)
        row = rows[name]
        assert functions["count"][row] == len(frames)
        assert functions["self_instructions"][row] == frames["self_instructions"].sum()
        outermost = frames[~frames["recursive"]]
        assert functions["instructions"][row] == outermost["instructions"].sum()
        assert functions["branches"][row] == outermost["branches"].sum()
        assert functions["module"][row] == "calls"
        lengths = np.sort(frames["instructions"])
        for percent in (50, 99):
            rank = -(-len(lengths) * percent // 100)
            assert functions[f"p{percent}_instructions"][row] == lengths[rank - 1]
        assert functions["max_instructions"][row] == lengths[-1]
        if functions["time_known"][row]:
            times = np.sort(frames["end_tsc"] - frames["tsc"])
            assert functions["max"][row] == times[-1]
            assert functions["p50"][row] == times[(len(times) + 1) // 2 - 1]


def test_replaced_tail_calls_are_not_below_each_other(trace: Any) -> None:
    nested, replaced = (trace.functions(tails=tails) for tails in ("nested", "replaced"))
    rows = [dict(zip(table["function"], table["instructions"], strict=True)) for table in (nested, replaced)]
    assert rows[1]["apply"] < rows[0]["apply"]
    assert nested["self_instructions"].sum() == replaced["self_instructions"].sum()


def test_sums_by_entry_and_by_module(trace: Any, calls: Any) -> None:
    functions, entries, modules = (trace.functions(by=by) for by in ("function", "entry", "module"))
    names = functions["function"].tolist()
    by_entry = dict(zip(entries["function"].tolist(), entries["count"].tolist(), strict=True))
    for name in ("fib", "main"):
        assert by_entry[name] == functions["count"][names.index(name)]
    assert modules["module"][0] == "calls" or "calls" in modules["module"].tolist()
    for table in (entries, modules):
        assert table["count"].sum() + table["begin_unseen"].sum() == len(calls)
        assert table["self_instructions"].sum() == calls["self_instructions"].sum()
    own = calls[calls["entry_module"] == "calls"]
    row = modules["module"].tolist().index("calls")
    assert modules["count"][row] + modules["begin_unseen"][row] == len(own)
    assert modules["instructions"].max() <= calls["self_instructions"].sum()


def test_tree_has_the_contexts_of_frames(trace: Any, calls: Any) -> None:
    tree = trace.call_tree()
    assert tree["count"].sum() + tree["begin_unseen"].sum() == len(calls)
    assert tree["self_instructions"].sum() == calls["self_instructions"].sum()
    names, parents = tree["function"].tolist(), tree["parent"].tolist()
    known = tree["parent_known"].tolist()
    assert all(parents[row] < row for row in range(len(tree)) if known[row])
    chains = Counter()
    for row, name in enumerate(names):
        if name == "fib":
            chains[names[parents[row]]] += int(tree["count"][row] + tree["begin_unseen"][row])
    fib = of(calls, "fib")
    name_of = dict(zip(calls["id"].tolist(), calls["entry_symbol"].tolist(), strict=True))
    assert chains == Counter(name_of[parent] for parent in fib["parent"].tolist())


def equal(some: Any, others: Any) -> None:
    assert len(some) == len(others)
    for column in (*others.columns, "tid", "space", "stream"):
        np.testing.assert_array_equal(some[column], others[column], err_msg=column)


@pytest.mark.parametrize("rows", [1000, 1_000_000])
def test_parts_have_the_same_frames(trace: Any, calls: Any, rows: int) -> None:
    parts = list(trace.iter_calls(rows=rows))
    assert all(len(part) == rows for part in parts[:-1])
    ids = np.concatenate([part["id"] for part in parts])
    order = np.argsort(ids)
    for column in calls.columns:
        found = np.concatenate([part[column] for part in parts])
        np.testing.assert_array_equal(found[order], calls[column], err_msg=column)
    ends = np.concatenate([part["end_offset"] for part in parts])
    assert (np.diff(ends.astype(np.int64)) >= 0).all()


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
@pytest.mark.parametrize("threads", [1, 2])
def test_engines_and_threads_give_the_same_frames(
    recorded: Path, calls: Any, engine: str, threads: int
) -> None:
    equal(ptkit.open(recorded, engine=engine, threads=threads).calls(), calls)


def test_frames_are_selected(trace: Any, calls: Any) -> None:
    fib = trace.calls(symbol="fib")
    equal(fib, of(calls, "fib"))
    assert trace.functions(symbol="fib")["count"].tolist() == [FIB_CALLS]
    tid = int(calls["tid"][0])
    equal(trace.calls(tid=tid), calls)
    with pytest.raises(ptkit.ConfigError, match="kind selects branches"):
        trace.calls(kind="CALL")
    with pytest.raises(ptkit.ConfigError, match="offset"):
        trace.calls(offset=(0, 10))


def test_signal_handlers_are_frames(tmp_path: Path) -> None:
    trace = ptkit.record([str(build("signals", tmp_path))])
    calls = trace.calls()
    assert calls["self_instructions"].sum() == len(trace.instructions(columns=["cls"]))
    for handler in ("on_usr1", "on_usr2", "on_segv"):
        frames = of(calls, handler)
        assert len(frames)
        assert set(frames["how"].tolist()) == {CallKind.SIGNAL}, handler
    nested = of(calls, "on_usr2")
    parents = set(nested["parent"].tolist()) & set(calls["id"].tolist())
    assert parents
    assert set(of(calls, "on_usr1")["end_how"].tolist()) == {CallEnd.RETURN}
    assert set(of(calls, "main")["end_how"].tolist()) == {CallEnd.RETURN}


def test_each_thread_has_its_stack(tmp_path: Path) -> None:
    trace = ptkit.record([str(build("threads", tmp_path))])
    calls = trace.calls()
    assert calls["self_instructions"].sum() == len(trace.instructions(columns=["cls"]))
    inner = calls[calls["parent_known"]]
    thread_of = dict(zip(calls["id"].tolist(), calls["tid"].tolist(), strict=True))
    parents = [thread_of[number] for number in inner["parent"].tolist()]
    assert parents == inner["tid"].tolist()


def same_sums(some: Any, others: Any) -> None:
    assert some.columns == others.columns
    assert len(some) == len(others)
    for column in others.columns:
        assert some.named(column) == others.named(column), column


SUMS = [(by, tails) for by in ("function", "entry", "module") for tails in ("nested", "replaced")]


@pytest.mark.parametrize(("by", "tails"), SUMS)
def test_sums_over_rows_equal_those_of_a_decode(trace: Any, calls: Any, by: str, tails: str) -> None:
    same_sums(calls.functions(by, tails=tails), trace.functions(by, tails=tails))


def test_trees_of_rows_equal_those_of_a_decode(trace: Any, calls: Any) -> None:
    same_sums(calls.tree(), trace.call_tree())


@pytest.mark.parametrize("name", ["signals", "threads", "forks", "exceptions"])
def test_sums_over_rows_of_other_programs(name: str, tmp_path: Path) -> None:
    trace = ptkit.record([str(build(name, tmp_path))])
    calls = trace.calls()
    for by, tails in SUMS:
        same_sums(calls.functions(by, tails=tails), trace.functions(by, tails=tails))
    same_sums(calls.tree(), trace.call_tree())
    tid = int(calls["tid"][-1])
    same_sums(trace.calls(tid=tid).functions("module"), trace.functions("module", tid=tid))
    same_sums(trace.calls(tid=tid).tree(), trace.call_tree(tid=tid))
    same_sums(trace.calls(order="time").tree(), trace.call_tree())


def test_sums_over_selected_rows(trace: Any, calls: Any) -> None:
    span = int(calls["tsc"].min()), int(calls["end_tsc"].max())
    middle = (span[0] + (span[1] - span[0]) // 3, span[0] + (span[1] - span[0]) // 2)
    for query in ({"symbol": "fib"}, {"module": "libc.so.6"}, {"time": middle}):
        selected = trace.calls(**query)
        assert 0 < len(selected) < len(calls)
        same_sums(selected.functions(), trace.functions(**query))
    same_sums(trace.calls(time=middle).tree(), trace.call_tree(time=middle))
    same_sums(of(calls, "fib").functions(), trace.functions(symbol="fib"))
    shuffled = calls[np.random.default_rng(7).permutation(len(calls))]
    same_sums(shuffled.functions("entry"), trace.functions("entry"))
    same_sums(shuffled.tree(), trace.call_tree())


def test_sums_that_lack_frames_name_the_remedy(trace: Any, calls: Any) -> None:
    for table in (trace.calls(symbol="fib"), calls[1:]):
        with pytest.raises(ptkit.ConfigError, match=r"use trace\.functions\(\)"):
            table.functions("module")
    with pytest.raises(ptkit.ConfigError, match="frames lack their callers"):
        of(calls, "fib").tree()
    with pytest.raises(ptkit.ColumnError, match=r"lack columns parent.*use trace\.functions\(\)"):
        trace.calls(columns=["id", "tsc"]).functions()
    with pytest.raises(ptkit.ConfigError, match="by='line'"):
        calls.functions("line")
    with pytest.raises(ptkit.ColumnError, match="no column 'nothing'"):
        calls.functions(columns=["nothing"])


def test_sums_name_each_column_that_they_lack(trace: Any, calls: Any) -> None:
    summed = type(calls).SUMMED
    assert len(summed) > 10
    assert set(summed) <= set(calls.columns)
    for name in set(summed) - {"flags"}:  # which are read for bool columns
        rest = trace.calls(columns=[one for one in summed if one != name])
        with pytest.raises(ptkit.ColumnError, match=rf"functions: the calls lack columns {name}, function:"):
            rest.functions()
    same_sums(trace.calls(columns=list(summed)).functions(), trace.functions())


def test_parts_of_a_trace_have_frames_and_sums(trace: Any, calls: Any) -> None:
    view = executed_part(trace, 20, 40)
    own = view.calls()
    assert 0 < len(own) < len(calls)
    same_sums(view.functions(), own.functions())
    same_sums(view.call_tree(), own.tree())
    assert sum(map(len, view.iter_calls())) == len(own)
    same_sums(trace.touching("fib").functions(), trace.functions(symbol="fib"))
    events = trace.events(stream=0)
    first, last = len(events) // 3, 2 * len(events) // 3
    part = trace.slice(after=events[first : first + 1], before=events[last : last + 1])
    frames = part.calls()
    assert 0 < len(frames) < len(calls)
    assert frames["self_instructions"].sum() == len(part.instructions(columns=["cls"]))
    assert frames["branches"][frames["depth"] == frames["depth"].min()].sum() == len(part.branches())
    same_sums(part.functions(), frames.functions())
    same_sums(part.call_tree(), frames.tree())
    assert part.functions("module")["self_instructions"].sum() == frames["self_instructions"].sum()
    assert sum(map(len, part.iter_calls())) == len(frames)
    assert len(part.stack_anomalies) == 0


def test_slices_may_have_whole_calls(trace: Any, calls: Any) -> None:
    events = trace.events(stream=0)
    first, last = len(events) // 3, 2 * len(events) // 3
    part = trace.slice(after=events[first : first + 1], before=events[last : last + 1])
    low, high = (int(events["offset"][row]) for row in (first, last))
    inside = (calls["stream"] == 0) & (calls["offset"] < high) & (calls["end_offset"] > low)
    equal(part.calls(whole_calls=True), calls[inside])
    same_sums(part.functions(whole_calls=True), calls[inside].functions())
    same_sums(part.call_tree(whole_calls=True), calls[inside].tree())
    with pytest.raises(ptkit.ConfigError, match="iter_calls"):
        part.iter_calls(whole_calls=True)


def test_frames_and_sums_know_what_was_not_decoded(trace: Any) -> None:
    for table in (trace.calls(), trace.functions(), trace.call_tree(), *trace.iter_calls(stream=0)):
        assert len(table.errors) == len(table.gaps) == 0


def test_time_of_frames_has_parts(trace: Any, calls: Any) -> None:
    known = calls[calls["time_known"] & calls["end_time_known"]]
    assert len(known)
    most = known["end_tsc"] + known["end_tsc_error"] - known["tsc"]
    parts = ("untraced", "switched", "lost", "running")
    assert (sum(known[name] for name in parts) <= most).all()
    assert (known["running"] + known["running_error"] <= most).all()
    # The emulator's streams are of one thread, and without losses.
    assert not known["switched"].any()
    assert not known["lost"].any()
    main, write = of(known, "main"), known[known["how"] == "SYSCALL"]
    assert len(write)
    assert main["untraced"][0] > 0
    leaf = write["untraced"] + write["untraced_error"]
    assert (leaf <= write["end_tsc"] + write["end_tsc_error"] - write["tsc"]).all()
    # What is untraced in a frame is so in the system calls above it.
    row_of = {number: row for row, number in enumerate(known["id"].tolist())}
    whole = np.zeros(len(known), np.uint64)
    for row in np.flatnonzero(known["how"] == "SYSCALL").tolist():
        length, at = known["untraced"][row], row
        while known["parent_known"][at] and int(known["parent"][at]) in row_of:
            at = row_of[int(known["parent"][at])]
            whole[at] += length
    assert (known["untraced"] >= whole).all()
    functions = trace.functions(symbol="main")
    assert functions["untraced"].tolist() == main["untraced"].tolist()
    for name in ("p50", "untraced", "running"):
        ns = functions[f"{name}_ns"]
        assert ns.dtype == np.int64
        assert (ns >= 0).all()
    assert known["untraced_ns"].tolist()[0] >= 0


@pytest.mark.slow
def test_goroutines_have_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is in the function of its caller's frame, however goroutines take turns."""
    monkeypatch.setenv("GODEBUG", "asyncpreemptoff=1")
    trace = ptkit.record([str(compiled_by("go", "calls/goroutines.go", tmp_path, "build"))])
    calls = trace.calls()
    assert set(trace.stack_anomalies["kind"].tolist()) <= {ptkit.StackAnomaly.UNDECIDED}
    assert calls["self_instructions"].sum() == len(trace.instructions(columns=["cls"]))
    inner = calls[(calls["how"] == CallKind.CALL) & calls["parent_known"]]
    row_of = {number: row for row, number in enumerate(calls["id"].tolist())}
    parents = calls[np.array([row_of[number] for number in inner["parent"].tolist()])]
    known = parents["entry_known"]
    assert known.sum() > 1000
    callers = [str(name).partition("+")[0] for name in trace.symbolize(inner["call_ip"][known])]
    assert callers == [str(name) for name in trace.symbolize(parents["entry_ip"][known])]
    assert set(of(calls, "main.send")["end_how"].tolist()) <= {CallEnd.RETURN, CallEnd.TAIL, CallEnd.END}
