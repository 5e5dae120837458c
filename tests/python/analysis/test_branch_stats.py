"""Statistics of branches: counts by hand, and against rows; entropy by another way; limits and gaps."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS, line_with
from executed_parts import executed_part
from golden_recordings import open_recording
from same_rows import rows_of

import ptkit
from ptkit.cli.main import main

SOURCE = PROGRAMS / "branches" / "loops.c"
KIND = ptkit.BranchKind


def line(text: str) -> int:
    """Number of the one line that has a comment."""
    return line_with(SOURCE, f"/* {text} */")


def entropy(values: Iterable[Any]) -> float:
    """Shannon's, as the mean of what each value tells."""
    counts = Counter(values)
    total = sum(counts.values())
    return sum(times * math.log2(total / times) for times in counts.values()) / total


def outcomes(trace: ptkit.Trace, **query: Any) -> dict[tuple[int, int], list[list[tuple[bool, int]]]]:
    """Runs of each conditional branch, one list for each thread, by the rows of branches."""
    sequences: dict[tuple[int, int], dict[Any, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for part in trace.iter_branches(kind=KIND.COND, **query):
        for space, ip, taken, *owner in rows_of(part, "space", "from_ip", "taken", "stream", "tid"):
            sequences[space, ip][tuple(owner)].append(taken)
    return {
        branch: [
            [(taken, len(list(run))) for taken, run in itertools.groupby(sequence)]
            for sequence in of_threads.values()
        ]
        for branch, of_threads in sequences.items()
    }


def expected_of(of_threads: list[list[tuple[bool, int]]]) -> tuple[Any, ...]:
    runs = [run for sequence in of_threads for run in sequence]
    taken = sum(length for outcome, length in runs if outcome)
    passed = sum(length for outcome, length in runs if not outcome)
    longest = [
        max((length for outcome, length in runs if outcome == one), default=0) for one in (True, False)
    ]
    bits = entropy(runs), entropy([True] * taken + [False] * passed)
    return (
        taken + passed,
        taken,
        passed,
        len(runs),
        *longest,
        *(pytest.approx(one, abs=1e-9) for one in bits),
    )


CELLS = (
    "count",
    "taken",
    "not_taken",
    "runs",
    "longest_taken",
    "longest_not_taken",
    "run_entropy",
    "entropy",
)


def check_conditional(trace: ptkit.Trace, **query: Any) -> ptkit.Table:
    table = trace.branch_stats(kind=KIND.COND, **query)
    expected = outcomes(trace, **query)
    found = {(space, ip): cells for space, ip, *cells in rows_of(table, "space", "from_ip", *CELLS)}
    assert found.keys() == expected.keys()
    for branch, cells in found.items():
        assert tuple(cells) == expected_of(expected[branch]), branch
    return table


def test_outcomes_are_those_of_a_program(loops_trace: ptkit.Trace) -> None:
    table = loops_trace.branch_stats(symbol="outcomes", kind=KIND.COND)
    found = {number: cells for number, *cells in rows_of(table, "line", *CELLS)}
    turns, halves, uneven = (found[line(text)] for text in ("turns", "halves", "uneven"))
    assert turns[:6] == [80, 40, 40, 80, 1, 1]
    assert turns[6:] == [1.0, 1.0]  # two kinds of runs, two outcomes
    assert halves[:6] == [80, 40, 40, 2, 40, 40]
    assert halves[6:] == [1.0, 1.0]
    assert uneven[:6] == [80, 30, 50, 20, 3, 5]  # the branch is taken around what is done
    share = 30 / 80
    assert uneven[6] == 1.0
    assert uneven[7] == pytest.approx(-share * math.log2(share) - (1 - share) * math.log2(1 - share))
    assert np.asarray(table["exact"]).all()
    assert not np.asarray(table["cut_runs"]).any()


def test_targets_are_those_of_a_program(loops_trace: ptkit.Trace) -> None:
    stats = loops_trace.branch_stats(
        symbol=["machine", "call_all"], kind=[KIND.JUMP_INDIRECT, KIND.CALL_INDIRECT]
    )
    cases, pointers = sorted(rows_of(stats, "line", "count", "targets", "entropy", "taken", "exact"))
    code = [0, 0, 0, 1, 0, 2, 3, 3, 4, 0, 5, 6, 0, 7]
    assert cases == (line("cases"), 14, 8, pytest.approx(entropy(code)), None, True)
    assert pointers == (line("pointers"), 40, 3, pytest.approx(1.5), None, True)
    targets = loops_trace.indirect_targets(symbol="call_all")
    assert rows_of(targets, "to_symbol", "count", "share", "targets", "is_rest") == [
        ("add", 20, 0.5, 1, False),
        ("subtract", 10, 0.25, 1, False),
        ("twice", 10, 0.25, 1, False),
    ]


def test_the_rarest_targets_are_one_row(loops_trace: ptkit.Trace) -> None:
    rows = rows_of(
        loops_trace.indirect_targets(symbol="machine", limit=2), "count", "targets", "is_rest", "to_ip"
    )
    whole = loops_trace.indirect_targets(symbol="machine", limit=None)
    assert [row[:3] for row in rows] == [(6, 1, False), (2, 1, False), (6, 6, True)]
    assert [row[3] for row in rows[:2]] == whole["to_ip"][:2].tolist()
    assert rows[2][3] is None
    assert len(whole) == 8
    for limit in (1, 3, 8, 100):
        table = loops_trace.indirect_targets(limit=limit)
        edges = loops_trace.edges(kind=[KIND.JUMP_INDIRECT, KIND.CALL_INDIRECT])
        assert table["count"].sum() == edges["count"].sum()
        assert table["targets"].sum() == len(edges)
    with pytest.raises(ptkit.ConfigError, match="limit=0"):
        loops_trace.indirect_targets(limit=0)


def test_statistics_are_those_of_the_rows(loops_trace: ptkit.Trace) -> None:
    check_conditional(loops_trace)
    check_conditional(ptkit.open(loops_trace.source, engine="simple", index=False))
    check_conditional(loops_trace, instructions=(1000, 20_000))
    check_conditional(executed_part(loops_trace, 25, 75))


def test_threads_have_sequences_of_their_own(open_trace: Any, loop: Any) -> None:
    """Each thread's last run of the branch is not taken, and the next thread's first one is taken."""
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    for thread in (1, 2):
        bundle.add_stream(loop.stream(10 * thread), pid=1, tid=thread)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    [row] = rows_of(check_conditional(trace), *CELLS[:6])
    assert row == (180, 150, 30, 60, 5, 1)
    [row] = rows_of(check_conditional(trace, tid=2), *CELLS[:6])
    assert row == (120, 100, 20, 40, 5, 1)


def test_runs_end_at_gaps_and_nothing_is_exact_then(open_trace: Any, loop: Any, packets: Any) -> None:
    # Three times taken, then packets are lost, then taken twice more.
    begin = loop.header(None, 1000) + packets.pge(loop.BASE) + packets.tnt("111")
    trace = open_trace(
        begin + packets.OVF + packets.fup(loop.BASE) + packets.tnt("110"), images=loop.images()
    )
    table = trace.branch_stats()
    assert table.gaps is not None
    assert len(table.gaps) == 1
    [row] = rows_of(table, *CELLS[:6], "cut_runs", "exact")
    assert row == (6, 5, 1, 3, 3, 1, 1, False)
    [row] = rows_of(trace.branch_stats(instructions=(0, 4)), *CELLS[:6], "cut_runs", "exact")
    assert row == (2, 2, 0, 1, 2, 0, 0, True)


@pytest.mark.parametrize("name", ["all", "kernel", "thread", "user"])
def test_recordings_of_processors_have_the_counts_of_their_rows(name: str, tmp_path: Path) -> None:
    trace = open_recording(name, tmp_path)
    table = trace.branch_stats(kind=KIND.COND)
    expected = outcomes(trace)
    found = {
        (space, ip): cells
        for space, ip, *cells in rows_of(table, "space", "from_ip", "taken", "not_taken", "runs", "cut_runs")
    }
    assert found.keys() == expected.keys()
    for branch, (taken, passed, runs, cut) in found.items():
        counts = expected_of(expected[branch])
        assert (taken, passed) == counts[1:3]
        assert counts[3] <= runs <= counts[3] + cut
    edges = trace.edges(kind=[KIND.JUMP_INDIRECT, KIND.CALL_INDIRECT])
    assert trace.indirect_targets(limit=1)["count"].sum() == edges["count"].sum()


def test_tables_have_the_forms_of_others(loops_trace: ptkit.Trace) -> None:
    table = loops_trace.branch_stats(columns=["from_ip", "run_entropy", "targets", "from_symbol"])
    assert table.columns == ("from_ip", "run_entropy", "targets", "from_symbol")
    assert "run_entropy" in str(table)
    frame = table.to_pandas()
    assert frame["run_entropy"].isna().sum() == (loops_trace.branch_stats()["is_indirect"]).sum()
    arrow = table.to_arrow()
    assert str(arrow.schema.field("run_entropy").type) == "double"
    for name in ("order", "taken"):
        with pytest.raises(ptkit.ConfigError, match=f"{name}: statistics"):
            loops_trace.branch_stats(**{name: "time" if name == "order" else True})
    event = loops_trace.events()
    part = loops_trace.slice(after=event[:1], before=event[-1:])
    assert part.branch_stats()["count"].sum() > 0
    whole = loops_trace.between(percent=(0, 100)).branch_stats(symbol="outcomes")
    assert rows_of(whole, *CELLS[:6]) == rows_of(loops_trace.branch_stats(symbol="outcomes"), *CELLS[:6])


def test_verb_prints_statistics(loops_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["branches", str(loops_path), "--symbol", "outcomes"]
    assert main([*arguments, "--stats", "--limit", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:3] == ["81", "80", "2"]
    assert f"outcomes+0x{0:x}" not in lines[0]
    assert f"(loops.c:{line('turns') - 1})" in lines[0]
    assert main([*arguments, "--stats", "--json"]) == 0
    header, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert header["rows"] == "branch_stats"
    uneven = next(row for row in rows if row["line"] == line("uneven"))
    assert (uneven["count"], uneven["taken"], uneven["runs"], uneven["targets"]) == (80, 30, 20, None)
    assert uneven["flags"] == ["line_known", "is_conditional", "exact"]
    assert main(["branches", str(loops_path), "--targets", "--symbol", "call_all"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[:2] == ["20", "50.0%"]
    assert main([*arguments, "--stats", "--order", "time"]) == 2
    assert "--order does not go with --stats" in capsys.readouterr().err
