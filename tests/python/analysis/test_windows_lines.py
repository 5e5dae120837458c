"""Branches, loops and differences of a program for Windows: at other addresses, with the lines of its PDB."""

from __future__ import annotations

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from windows_programs import LOAD, LOOP_SOURCE, WindowsProgram, windows_program

import ptkit
from ptkit.cli import main

MOVED = LOAD + 0x5670000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> WindowsProgram:
    """A loop, which its last jump enters again."""
    folder = tmp_path_factory.mktemp("windows")
    made = windows_program(folder, "loop", {"loop.c": LOOP_SOURCE}, "-O1")
    (folder / "moved").mkdir()
    shutil.copy(made.path, folder / "moved" / "renamed.exe")
    return made


def opened(program: WindowsProgram, packets: Any, trips: list[int], base: int = LOAD) -> ptkit.Trace:
    """A trace of visits of the loop, each with so many trips."""
    start = base + program.entry
    path = program.path if base == LOAD else program.path.parent / "moved" / "renamed.exe"
    header = packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(start)
    bits = ["1" * (count - 1) + "0" for count in trips]
    visits = [
        b"".join(packets.tnt(one[at : at + 6]) for at in range(0, len(one), 6)) + packets.tip(start)
        for one in bits
    ]
    return ptkit.open(
        header + b"".join(visits), cpu="6/142/9", images=[(path, base)], debug_path=[program.pdb]
    )


def test_equal_runs_are_equal(program: WindowsProgram, packets: Any) -> None:
    a, b = (opened(program, packets, [6] * 20, base) for base in (LOAD, MOVED))
    found = ptkit.diff(a, b)
    assert found.equal is True, str(found)


@pytest.mark.parametrize("trips", [4, 9])
def test_runs_part_at_a_line_of_the_pdb(
    program: WindowsProgram, packets: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], trips: int
) -> None:
    all_trips = [6] * 20
    opened(program, packets, all_trips).save(tmp_path / "a.ptk")
    all_trips[7] = trips
    opened(program, packets, all_trips, MOVED).save(tmp_path / "b.ptk")
    a, b = (ptkit.open(tmp_path / name, debug_path=[program.pdb]) for name in ("a.ptk", "b.ptk"))
    found = ptkit.diff(a, b)
    table = found.divergences
    columns = (table.named(name) for name in ("source", "line", "a_instruction", "b_instruction"))
    [(path, line, *positions)] = list(zip(*columns, strict=True))
    assert (path.rpartition("/")[2], line) == ("loop.c", 2)
    assert positions == [7 * 13 + 2 * min(trips, 6) - 1] * 2  # 13 instructions in each visit before it
    names = ("source", "line", "a_count", "b_count")
    [(path, *sums)] = list(zip(*(found.lines.named(name) for name in names), strict=True))
    assert (path.rpartition("/")[2], sums) == ("loop.c", [2, 120, 114 + trips])
    with redirect_stdout(io.StringIO()) as printed:
        said = main(
            ["diff", str(tmp_path / "a.ptk"), str(tmp_path / "b.ptk"), "--debug-path", str(program.pdb)]
        )
    assert said == 0
    assert "loop.c:2" in printed.getvalue()


def test_branches_and_loops_have_lines_of_the_pdb(program: WindowsProgram, packets: Any) -> None:
    trace = opened(program, packets, [6, 2, 9, 6])
    tables = {
        trace.branch_stats(): ("line", "kind", "count", "taken", "not_taken"),
        trace.loops(): ("line", "count", "cut_visits"),
    }
    rows = [
        (one[0].rpartition("/")[2], *one[1:])
        for table, names in tables.items()
        for one in zip(*(table.named(name) for name in ("source", *names)), strict=True)
    ]
    assert rows == [
        ("loop.c", 2, "COND", 23, 19, 4),
        ("loop.c", 2, "JUMP_INDIRECT", 4, None, None),
        ("loop.c", 2, 23, 1),  # the last jump is a way back, too: one visit, and the trace ends in it
    ]
