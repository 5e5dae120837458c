"""Folded rows: repetitions of loops are found, and unfolded they are all rows, in their order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS, compiled
from golden_recordings import open_recording

import ptkit
from ptkit.analysis.folding import BEGIN, END, GAP, OWNER, ROW, Folded
from ptkit.cli.main import main

SOURCE = PROGRAMS / "branches" / "loops.c"
NESTED = """\
static volatile int sink;
__attribute__((noinline)) static void step(int k) { if (k & 1) sink += k; }
int main(void) {
  for (int i = 0; i < 50; ++i)
    for (int j = 0; j < 60; ++j)
      for (int k = 0; k < 20; ++k) step(3);
  return 0;
}
"""
ALL = 2**64 - 1
Rows = list[tuple[int, ...]]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folding")
    (folder / "nested.c").write_text(NESTED)
    program = compiled(folder / "nested", "-O0", "-g", "-static", folder / "nested.c")
    return ptkit.Recorder([str(program)], folder / "nested.ptk", backend="emulator", quiet=True).run().path


def unfolded(parts: Iterable[Folded]) -> dict[int, Rows]:
    """Rows of each stream: from, to, kind, flags."""
    found: dict[int, Rows] = {}
    levels: list[Rows] = [[]]
    times: list[int] = []
    for part in parts:
        if part.stream not in found:
            assert not times
            levels = [found.setdefault(part.stream, [])]
        for op, first, second, kind, flags in part.tokens():
            if op == ROW:
                levels[-1].append((first, second, kind, flags))
            elif op == BEGIN:
                assert first > 1
                times.append(first)
                levels.append([])
            elif op == END:
                body = levels.pop()
                levels[-1] += body * times.pop()
            else:
                assert not times
    assert not times
    return found


def check(trace: ptkit.Trace, query: dict[str, Any] | None = None, **how: Any) -> list[Folded]:
    parts = list(trace._folded(query or {}, **how))
    found = unfolded(parts)
    names = (("from_ip", ALL), ("to_ip", ALL), ("kind", ALL), ("flags", 1 | 2 | 4 | 8))
    for stream in range(len(trace.info.streams)):
        rows = trace.branches(stream=stream, columns=[name for name, _ in names], **(query or {}))
        own = found.get(stream, [])
        assert len(own) == len(rows)
        if own:
            cells = np.array(own, np.uint64)
            for column, (name, mask) in enumerate(names):
                expected = np.asarray(rows[name]).astype(np.uint64) & np.uint64(mask)
                assert (expected == cells[:, column]).all(), (stream, name)
    return parts


def tokens(parts: list[Folded]) -> int:
    return sum(map(len, parts))


def test_nested_loops_fold_into_each_other_and_back(path: Path) -> None:
    trace = ptkit.open(path)
    parts = check(trace)
    times = [first for part in parts for op, first, *_ in part.tokens() if op == BEGIN]
    assert [50, 60, 20] in [times[at : at + 3] for at in range(len(times))]
    rows = len(trace.branches(columns=[]))
    assert rows > 50 * 60 * 20 * 3
    assert tokens(parts) < rows / 20  # mostly of the program's begin


@pytest.mark.parametrize("flags", ["-O0", "-O2"])
def test_all_rows_come_back(flags: str, tmp_path: Path) -> None:
    program = compiled(tmp_path / "loops", flags, SOURCE)
    path = ptkit.Recorder([str(program)], tmp_path / "l.ptk", backend="emulator", quiet=True).run().path
    trace = ptkit.open(path)
    whole = tokens(check(trace))
    assert whole < len(trace.branches(columns=[]))
    # Bodies are forgotten early: repetitions are split, and nothing is lost.
    assert tokens(check(trace, most_items=8)) >= whole
    check(trace, {"instructions": (1000, 30_000)})


@pytest.mark.parametrize("name", ["all", "kernel", "thread", "user", "tips"])
def test_recordings_of_processors_come_back(name: str, tmp_path: Path) -> None:
    parts = check(open_recording(name, tmp_path))
    ops = {int(op) for part in parts for op in np.unique(part.columns["op"])}
    assert {ROW, OWNER} <= ops


def test_gaps_stand_between_rows(open_trace: Any, loop: Any, packets: Any) -> None:
    begin = loop.header(None, 1000) + packets.pge(loop.BASE) + packets.tnt("111111")
    trace = open_trace(
        begin + packets.OVF + packets.fup(loop.BASE) + packets.tnt("11110"), images=loop.images()
    )
    [part] = check(trace)
    ops = part.columns["op"].tolist()
    assert ops.count(GAP) == 1
    assert ops[: ops.index(GAP)].count(BEGIN) == 1
    assert part.columns["first"][ops.index(BEGIN)] >= 5


def test_verb_prints_folded_rows(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["branches", str(path), "--fold"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("x 50 {"))
    times = [line.split()[1] for line in lines[at:] if "{  loop main+" in line]
    assert times[:3] == ["50", "60", "20"]
    assert sum("{" in line for line in lines) == sum(line.strip() == "}" for line in lines)
    assert main(["branches", str(path), "--fold", "--limit", str(at + 3), "--json"]) == 0
    header, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert header["rows"] == "folded_branches"
    opened = sum({"fold_begin": 1, "fold_end": -1}.get(row["table"], 0) for row in rows)
    assert opened == 0
    assert main(["branches", str(path), "--fold", "--symbol", "main"]) == 2
    assert "--symbol does not go with --fold" in capsys.readouterr().err
