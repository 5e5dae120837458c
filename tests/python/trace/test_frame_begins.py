"""Which frames begin, and to which of them instructions belong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from compiling import build, compiled

import ptkit
from ptkit import CallEnd, CallKind, StackAnomaly

CALLS = 25


def recorded(folder: Path, *command: str | Path, **options: Any) -> Any:
    return ptkit.record([str(word) for word in command], output=folder / "out.ptk", **options)


def row_of(functions: Any, name: str) -> dict[str, int]:
    """Count and instructions of a function; 0 if it has no row."""
    rows = functions.where(function=name)
    assert len(rows) <= 1
    columns = ("count", "instructions", "self_instructions")
    return {column: int(rows[column][0]) if len(rows) else 0 for column in columns}


def executed_in(trace: Any, name: str) -> int:
    return len(trace.instructions(symbol=name, columns=["cls"]))


def check_sums(trace: Any) -> None:
    """All ways to sum up frames agree, and have each instruction once."""
    calls, functions = trace.calls(), trace.functions()
    instructions = len(trace.instructions(columns=["cls"]))
    assert functions["self_instructions"].sum() == calls["self_instructions"].sum() == instructions
    tree = trace.call_tree()
    assert tree["self_instructions"].sum() == instructions
    assert trace.functions(by="module")["self_instructions"].sum() == instructions
    for by in ("function", "entry", "module"):
        for tails in ("nested", "replaced"):
            sums = calls.functions(by=by, tails=tails)
            decoded = trace.functions(by=by, tails=tails)
            for column in ("count", "instructions", "self_instructions", "max"):
                assert np.array_equal(sums[column], decoded[column]), (by, tails, column)
    row = {number: at for at, number in enumerate(calls["id"].tolist())}
    inner = np.flatnonzero(calls["parent_known"])
    outer = np.array([row[number] for number in calls["parent"][inner].tolist()], np.int64)
    frames = trace.calls(columns=["instruction", "end_instruction"])
    begin, end = frames["instruction"], frames["end_instruction"]
    assert (begin[inner] >= begin[outer]).all()
    assert (end[inner] <= end[outer]).all()
    assert np.array_equal(end - begin, calls["instructions"])
    parts = trace.iter_calls(rows=100)
    assert sum(int(part["self_instructions"].sum()) for part in parts) == instructions


THREE = ".globl three\n.type three, @function\nthree:\n lea 1(%rdi), %eax\n nop\n ret\n.size three, .-three\n"
CALLER = """
int three(int);
__attribute__((noinline, noclone)) int by_jump(int n) {{ return three(n); }}
int main(void) {{
  int sum = 0;
  for (int i = 0; i < {calls}; ++i) sum += three(i) + by_jump(i);
  return sum == 0;
}}
"""


def test_stubs_belong_to_the_caller(tmp_path: Path) -> None:
    """A function of three instructions that is called through a PLT, with `.plt.sec` and without."""
    (tmp_path / "three.s").write_text(THREE)
    (tmp_path / "main.c").write_text(CALLER.format(calls=CALLS))
    library = compiled(tmp_path / "libthree.so", "-shared", tmp_path / "three.s")
    for flags in (("-fcf-protection=full", "-Wl,-z,now"), ("-fcf-protection=none", "-Wl,-z,lazy")):
        link = ("-O2", f"-Wl,-rpath,{tmp_path}", tmp_path / "main.c", library)
        program = compiled(tmp_path / "main", *flags, *link)
        trace = recorded(tmp_path, program)
        functions = trace.functions()
        assert row_of(functions, "three") == {
            "count": 2 * CALLS,
            "instructions": 3 * 2 * CALLS,
            "self_instructions": 3 * 2 * CALLS,
        }
        # The function that jumps has the PLT entry, of one instruction or two, besides its own.
        by_jump = row_of(functions, "by_jump")
        assert by_jump["count"] == CALLS
        assert by_jump["self_instructions"] > executed_in(trace, "by_jump")
        three = trace.calls(symbol="three")
        assert set(three["how"].tolist()) == {CallKind.PLT, CallKind.TAIL}
        assert (three["instructions"] == 3).all()
        check_sums(trace)


def test_inline_retpolines_are_calls(tmp_path: Path) -> None:
    program = build("calls/retpolines", tmp_path, "-O2", "-mindirect-branch=thunk-inline")
    trace = recorded(tmp_path, program)
    assert row_of(trace.functions(), "main")["count"] == 1
    assert not len(trace.stack_anomalies)
    check_sums(trace)


def far_functions(trace: Any) -> dict[str, int]:
    functions = trace.functions()
    for name in ("_start", "entered", "called", "called_near", "other", "leaf"):
        assert row_of(functions, name)["self_instructions"] == executed_in(trace, name)
    return {
        str(name): int(count) for name, count in zip(functions["function"], functions["count"], strict=True)
    }


def test_far_transfers_to_functions(tmp_path: Path) -> None:
    program = build("calls/far", tmp_path, "-nostdlib", "-static", "-no-pie")
    trace = recorded(tmp_path, program, backend="step")
    times = 12
    counts = far_functions(trace)
    assert counts["_start"] == 1
    assert {counts[name] for name in ("entered", "called", "called_near", "other")} == {times}
    assert counts["leaf"] == 5 * times
    calls = trace.calls()
    start = int(calls.where(entry_symbol="_start")["id"][0])
    for name, how in (("entered", CallKind.TAIL), ("called", CallKind.CALL), ("called_near", CallKind.CALL)):
        frames = calls.where(entry_symbol=name)
        assert set(frames["how"].tolist()) == {how}
        assert set(frames["parent"].tolist()) == {start}
        assert frames["exact"].all()
    assert set(calls.where(entry_symbol="called_near")["end_how"].tolist()) == {CallEnd.TAIL}
    assert set(calls.where(entry_symbol="other")["end_how"].tolist()) == {CallEnd.RETURN}
    assert not len(trace.stack_anomalies)
    check_sums(trace)


def test_pushed_targets_of_the_first_function(tmp_path: Path) -> None:
    program = build("calls/pushed", tmp_path, "-nostdlib", "-static")
    trace = recorded(tmp_path, program)
    calls = trace.calls()
    names = [
        (str(name), int(depth)) for name, depth in zip(calls["entry_symbol"], calls["depth"], strict=True)
    ]
    # The gadgets follow each other; what a return leads to by its entry is above the function that returns.
    assert [name for name, _ in names] == ["_start", "f", "g1", "g2", "last", "f", "None"]
    assert [depth for _, depth in names] == [0, 1, 0, 0, 1, 2, 2]
    assert trace.stack_anomalies["kind"].tolist() == [StackAnomaly.RETURN_ELSEWHERE] * 4
    assert row_of(trace.functions(), "f")["count"] == 2
    check_sums(trace)


def test_returns_to_functions_are_anomalies(tmp_path: Path) -> None:
    program = build("calls/rop", tmp_path, "-nostdlib", "-static")
    trace = recorded(tmp_path, program)
    anomalies = trace.stack_anomalies
    assert set(anomalies["kind"].tolist()) == {StackAnomaly.RETURN_ELSEWHERE}
    assert anomalies["from_symbol"].tolist() == ["victim", "first", "second"]
    assert anomalies["to_symbol"].tolist() == ["first", "second", "third"]
    assert anomalies["no_call_before"].all()
    assert set(anomalies["expected_symbol"].tolist()) == {"_start"}
    calls = trace.calls()
    for name in ("first", "second"):  # tail calls, of which the begin and the end are certain
        assert calls.where(entry_symbol=name)["how"].tolist() == [CallKind.TAIL]
    assert row_of(trace.functions(), "victim")["count"] == 1
    assert calls["self_instructions"].sum() == len(trace.instructions(columns=["cls"]))
    # A function that has returned elsewhere has ended there, if jumps end functions.
    replaced = trace.functions(tails="replaced")
    for name in ("victim", "first", "second", "third"):
        row = row_of(replaced, name)
        assert row["instructions"] == row["self_instructions"] == executed_in(trace, name)
    summed = calls.functions(tails="replaced")
    for column in ("function", "count", "begin_unseen", "instructions", "self_instructions"):
        assert replaced[column].tolist() == summed[column].tolist(), column


CALLBACK = """
#include <stdlib.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
  int values[16];
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 16; ++i) values[i] = (i * 7 + round) % 16;
    qsort(values, 16, sizeof values[0], compare);
  }
  return values[0] == 99;
}
"""


def test_code_outside_of_filters_is_no_function(tmp_path: Path) -> None:
    """Returns to qsort(), which is not traced, and which calls a function that is."""
    (tmp_path / "sorts.c").write_text(CALLBACK)
    program = compiled(tmp_path / "sorts", "-O1", tmp_path / "sorts.c")
    trace = recorded(tmp_path, program, filters=f"filter * @ {program}")
    functions = trace.functions()
    names = {str(name) for name in functions["function"]}
    assert {"main", "compare"} <= names
    own = trace.instructions(columns=["ip"])
    assert row_of(functions, "compare")["self_instructions"] == executed_in(trace, "compare")
    assert functions["self_instructions"].sum() == len(own)
    # Calls of libraries have rows; what returns lead to has none.
    assert not [name for name in names if name.startswith("0x")]
    depths = trace.calls(symbol="compare")["depth"]
    assert len(set(depths.tolist())) == 1


def test_outermost_code_without_a_function_has_the_name_of_its_thread(tmp_path: Path) -> None:
    """Of a program without symbols and unwind tables."""
    program = build("calls/pushed", tmp_path, "-nostdlib", "-static", "-s", "-Wl,--build-id=none")
    trace = recorded(tmp_path, program)
    tid = trace.streams[0].tid
    names = {one[1]: one[2] for one in trace.info.threads}
    name = f"thread {tid} ({names[tid]})"
    assert name in trace.functions()["function"].tolist()
    assert name in trace.call_tree()["function"].tolist()
    calls = trace.calls()
    assert calls["entry_symbol"][calls["depth"] == 0].tolist() == [name]
    entry = trace.functions(by="entry").where(function=name)
    assert (entry["count"].tolist(), entry["begin_unseen"].tolist()) == ([0], [1])
    check_sums(trace)
