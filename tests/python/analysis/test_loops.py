"""Loops with trips: counts by hand, and by walking through every instruction with a stack of its own."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS, build, compiled, line_with
from golden_recordings import open_recording
from same_rows import rows_of

import ptkit
from ptkit.analysis.loops import CodeLoops
from ptkit.cli.main import main

SOURCE = PROGRAMS / "branches" / "loops.c"
KIND = ptkit.BranchKind
Trips = dict[tuple[int, int], Counter[int]]


def line(text: str) -> int:
    """Number of the one line that has a comment."""
    return line_with(SOURCE, f"/* {text} */")


def quantile(trips: Counter[int], percent: int) -> int:
    values = sorted(trips.elements())
    return values[max(-(-len(values) * percent // 100), 1) - 1]


def walked(trace: ptkit.Trace, loops: CodeLoops) -> Trips:
    """Trips of visits that are left within the trace, instruction by instruction.

    Each call has a frame, each return ends one. Of a recording of whole programs that switch no stacks.
    """
    heads = {
        (space, ip): number
        for number, (space, ip) in enumerate(zip(loops.space.tolist(), loops.head.tolist(), strict=True))
    }
    code = loops.code
    cells = (code[f"code_{name}"].tolist() for name in ("first", "last", "space", "loop"))
    innermost = {}
    for first, last, space, loop in zip(*cells, strict=True):
        for ip in range(first, last + 1):
            innermost[space, ip] = loop
    outer = loops.outer.tolist()

    def around(where: tuple[int, int]) -> list[int]:
        found, loop = [], innermost.get(where, -1)
        while loop >= 0:
            found.append(loop)
            loop = outer[loop]
        return found

    trips: dict[int, Counter[int]] = defaultdict(Counter)
    branches = {
        (stream, instruction): KIND[kind]
        for part in trace.iter_branches(columns=["kind", "instruction"])
        for stream, instruction, kind in rows_of(part, "stream", "instruction", "kind")
    }
    for stream in range(len(trace.info.streams)):
        stack: list[dict[int, int]] = [{}]
        number = 0
        for part in trace.iter_instructions(stream=stream, columns=["ip"]):
            for space, ip in rows_of(part, "space", "ip"):
                active, inside = stack[-1], around((space, ip))
                if (space, ip) in innermost:  # else a stub
                    for loop in [one for one in active if one not in inside]:
                        trips[loop][active.pop(loop)] += 1
                head = heads.get((space, ip))
                if head is not None:
                    active[head] = active.get(head, 0) + 1
                kind = branches.get((stream, number))
                number += 1
                if kind in (KIND.CALL, KIND.CALL_INDIRECT):
                    stack.append({})
                elif kind == KIND.RETURN:
                    for loop, times in stack.pop().items():
                        trips[loop][times] += 1
                    stack = stack or [{}]
    return {(int(loops.space[loop]), int(loops.head[loop])): counts for loop, counts in trips.items()}


def check_walked(trace: ptkit.Trace) -> int:
    """Compare all loops that have no cut visit; returns their number."""
    expected = walked(trace, trace._code_loops({}))
    table = trace.loops()
    names = ("space", "head_ip", "count", "visits", "least", "p50", "p99", "most", "exact", "cut_visits")
    compared = 0
    for space, head, count, visits, least, p50, p99, most, is_exact, cut in rows_of(table, *names):
        if cut:
            assert not is_exact
            continue
        trips = expected[space, head]
        assert (visits, count) == (trips.total(), sum(trips.elements())), hex(head)
        quantiles = (quantile(trips, 50), quantile(trips, 99))
        assert (least, p50, p99, most) == (min(trips), *quantiles, max(trips)), hex(head)
        assert is_exact
        compared += 1
    return compared


def test_trips_are_those_of_a_program(loops_trace: ptkit.Trace) -> None:
    """At -O0 loops test at their heads: one trip more than rounds of the body."""
    table = loops_trace.loops(module="loops")
    found = {
        number: cells
        for number, symbol, *cells in rows_of(
            table,
            *("line", "head_symbol", "depth", "count", "visits", "cut_visits", "least", "p50", "p99", "most"),
        )
        if symbol in ("nested", "tree", "outcomes", "machine", "call_all", "search", "main")
    }
    assert found[line("outer")] == [1, 24, 3, 0, 8, 8, 8, 8]
    assert found[line("inner")] == [2, 3 * 35, 21, 0, 2, 5, 8, 8]
    assert found[line("children")] == [1, 4 * 13, 13, 0, 4, 4, 4, 4]
    assert found[line("dispatch") + 1] == [1, 14, 1, 0, 14, 14, 14, 14]
    assert found[line("pointers")] == [1, 41, 1, 0, 41, 41, 41, 41]
    # Found at 0 to 9, twice not.
    assert found[line("search")] == [1, 55 + 22, 12, 0, 1, 6, 11, 11]
    assert found[line("searches")] == [1, 13, 1, 0, 13, 13, 13, 13]
    inner = table[np.flatnonzero(np.asarray(table["line"]) == line("inner"))]
    assert rows_of(inner, "outer_known", "mean", "exact") == [(True, 5.0, True)]
    assert inner.named("outer_symbol") == ["nested"]


def test_trips_are_those_of_every_instruction(loops_trace: ptkit.Trace) -> None:
    assert check_walked(loops_trace) > 20
    assert check_walked(ptkit.open(loops_trace.source, engine="simple", index=False)) > 20


def test_optimized_code_has_the_same_trips(tmp_path: Path) -> None:
    program = compiled(tmp_path / "loops", "-O2", "-g", "-Wl,--build-id", SOURCE)
    path = ptkit.Recorder([str(program)], tmp_path / "o2.ptk", backend="emulator", quiet=True).run().path
    assert check_walked(ptkit.open(path)) > 20


def test_threads_have_frames_of_their_own(tmp_path: Path) -> None:
    program = build("threads", tmp_path, "-g")
    path = ptkit.Recorder([str(program)], tmp_path / "threads.ptk", backend="emulator", quiet=True).run().path
    trace = ptkit.open(path)
    assert len(trace.info.streams) > 1
    whole = trace.loops()
    assert np.asarray(whole["exact"]).any()
    sums: Counter[tuple[int, int]] = Counter()
    for tid in {tid for stream in trace.info.streams for tid in [stream.tid]}:
        for space, head, count in rows_of(trace.loops(tid=tid), "space", "head_ip", "count"):
            sums[space, head] += count
    assert sums == {
        (space, head): count for space, head, count in rows_of(whole, "space", "head_ip", "count")
    }


def test_visits_are_cut_at_gaps_and_at_limits(
    loops_trace: ptkit.Trace, open_trace: Any, loop: Any, packets: Any
) -> None:
    begin = loop.header(None, 1000) + packets.pge(loop.BASE) + packets.tnt("1111")
    lost = packets.OVF + packets.fup(loop.BASE) + packets.tnt("1110") + packets.tip(0x5000)
    damaged = open_trace(begin + lost, images=loop.images())
    table = damaged.loops()
    assert table.gaps is not None
    assert len(table.gaps) == 1
    [(visits, cut, p50, is_exact)] = rows_of(table, "visits", "cut_visits", "p50", "exact")
    assert (visits + cut, is_exact) == (2, False)
    assert cut >= 1
    if not visits:
        assert p50 is None
    # The window begins and ends within main()'s loop of searches.
    edges = loops_trace.branches(symbol="search", columns=["instruction"])["instruction"]
    part = loops_trace.loops(
        instructions=(int(edges[len(edges) // 4]), int(edges[len(edges) * 3 // 4])), module="loops"
    )
    cells = {number: tuple(more) for number, *more in rows_of(part, "line", "visits", "cut_visits", "exact")}
    assert cells[line("searches")] == (0, 1, False)
    visits, cut, is_exact = cells[line("search")]
    assert not is_exact
    assert 0 < visits < 12
    assert 0 < cut <= 2


@pytest.mark.parametrize("name", ["all", "user", "thread"])
def test_visits_of_recordings_of_processors_have_no_more_than_all_executions(
    name: str, tmp_path: Path
) -> None:
    trace = open_recording(name, tmp_path)
    table = trace.loops()
    for count, visits, mean, cut, is_exact in rows_of(
        table, "count", "visits", "mean", "cut_visits", "exact"
    ):
        rounds = round((mean or 0) * visits)
        assert rounds <= count
        assert not is_exact or (rounds == count and not cut)


def test_verb_prints_loops(loops_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["branches", str(loops_path), "--loops", "--symbol", "nested"]) == 0
    outer, inner = sorted(capsys.readouterr().out.splitlines(), key=len)
    assert outer.split()[:7] == ["24", "3", "0", "8", "8", "8", "8"]
    assert inner.split()[:7] == ["105", "21", "0", "2", "5", "8", "8"]
    assert inner.index("nested") == outer.index("nested") + 2  # it is within that one
    assert main(["branches", str(loops_path), "--loops", "--symbol", "nested", "--json"]) == 0
    header, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert header["rows"] == "loops"
    assert {row["line"]: row["mean"] for row in rows} == {line("outer"): 8.0, line("inner"): 5.0}
    assert main(["branches", str(loops_path), "--loops", "--kind", "CALL"]) == 2
    assert "--kind does not go with --loops" in capsys.readouterr().err


def test_paths_are_those_of_a_program(loops_trace: ptkit.Trace) -> None:
    """At -O0 a branch is taken around what is not done, and the loop's own branch is taken to go on."""
    expected = Counter((i & 1 == 0, i >= 40, i % 8 >= 5) for i in range(80))
    table = loops_trace.loop_paths(symbol="outcomes", limit=None)
    found: Counter[tuple[bool, ...]] = Counter()
    for path, steps, rounds, exits, count in rows_of(table, "path", "steps", "rounds", "exits", "paths"):
        outcomes = tuple(step.endswith(":taken") for step in path.split())
        assert (len(outcomes), count) == (steps, 1)
        if exits:  # the last test
            assert (outcomes, rounds, exits) == ((False,), 0, 1)
        else:
            assert outcomes[0]
            found[outcomes[1:]] += rounds
    assert found == expected
    by_share = rows_of(table, "share", "rounds")
    assert all(share == pytest.approx(rounds / 81) for share, rounds in by_share if rounds)
    inner = loops_trace.loop_paths(symbol="nested", limit=1)
    steps = {number: path.split() for number, path in rows_of(inner, "line", "path") if "other" not in path}
    [visit] = [step for step in steps[line("outer")] if step.startswith("loop(")]
    heads = dict(rows_of(loops_trace.loops(symbol="nested"), "line", "head_ip"))
    assert visit == f"loop({heads[line('inner')] - heads[line('outer')]:+#x})"
    dispatch = loops_trace.loop_paths(symbol="machine", limit=1)
    assert rows_of(dispatch, "rounds", "exits", "paths", "is_rest") == [(6, 0, 1, False), (7, 1, 7, True)]


def test_paths_have_all_rounds_of_uncut_loops(loops_trace: ptkit.Trace) -> None:
    heads = {
        (space, head): count
        for space, head, count, is_exact in rows_of(loops_trace.loops(), "space", "head_ip", "count", "exact")
        if is_exact
    }
    assert len(heads) > 20
    for limit in (1, 3, None):
        sums: Counter[tuple[int, int]] = Counter()
        shares: Counter[tuple[int, int]] = Counter()
        names = ("space", "head_ip", "rounds", "exits", "share")
        for space, head, rounds, exits, share in rows_of(loops_trace.loop_paths(limit=limit), *names):
            sums[space, head] += rounds + exits
            shares[space, head] += share
        assert {key: sums[key] for key in heads} == heads
        assert all(share == pytest.approx(1) for share in shares.values())


def test_verb_prints_paths(loops_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["branches", str(loops_path), "--paths", "--symbol", "machine"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.split()[:3] == ["6", "0", "42.9%"]
    assert "->0x" in first
    assert f"(loops.c:{line('dispatch') + 1}): " in first


def test_paths_beyond_the_limit_are_counted_together(tmp_path: Path) -> None:
    tests = "".join(f"    if (bits >> {bit + 16} & 1) ++sink;\n" for bit in range(16))
    source = (
        "static volatile int sink;\nint main(void) {\n  unsigned bits = 1;\n"
        "  for (int i = 0; i < 20000; ++i) {\n    bits = bits * 1103515245u + 12345u;\n"
        f"{tests}  }}\n  return 0;\n}}\n"
    )
    (tmp_path / "many.c").write_text(source)
    program = compiled(tmp_path / "many", "-O0", "-static", tmp_path / "many.c")
    path = ptkit.Recorder([str(program)], tmp_path / "many.ptk", backend="emulator", quiet=True).run().path
    trace = ptkit.open(path)
    table = trace.loop_paths(symbol="main", limit=10)
    assert len(table) == 11
    *alone, rest = rows_of(table, "rounds", "exits", "paths", "is_rest", "more_paths", "path")
    assert not any(more for *_, more, _ in alone)
    rounds, exits, paths, *flags, text = rest
    assert flags == [True, True]
    assert text == f"{paths:,} or more other paths"
    assert paths > 1000
    assert sum(row[0] for row in alone) + rounds == 20_000
    assert sum(row[1] for row in alone) + exits == 1


def test_where_no_instruction_ran_there_are_no_loops(open_trace: Any, packets: Any) -> None:
    nothing = open_trace(packets.PSB + packets.PSBEND)
    tables = nothing.loops(), nothing.loop_paths(), nothing.branch_stats(), nothing.indirect_targets()
    assert [len(table) for table in tables] == [0, 0, 0, 0]
