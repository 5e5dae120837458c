"""The checks of context_attribution.py, on synthetic instructions."""

from __future__ import annotations

import numpy as np
import pytest
from context_attribution import OnCpu, assert_processes

FIRST, SECOND = 0x1000_0000, 0x2000_0000  # page tables
KERNEL, USER = False, True

Row = tuple[int, int, bool]  # process that is decoded, page tables, privilege


def cpu(*turns: tuple[Row, int], begin: int = 0) -> OnCpu:
    """Rows, each several times."""
    rows = [row for row, count in turns for _ in range(count)]
    pid = np.array([row[0] for row in rows], dtype=np.int64)
    return OnCpu(
        ip=np.arange(len(rows), dtype=np.uint64),
        pid=pid,
        tid=pid,
        tables=np.array([row[1] for row in rows], dtype=np.uint64),
        user=np.array([row[2] for row in rows]),
        order=np.arange(begin, begin + len(rows)),
    )


def test_switches_at_changes_of_page_tables_are_attributed() -> None:
    one = cpu(
        ((1, FIRST, USER), 9), ((1, FIRST, KERNEL), 9), ((2, SECOND, KERNEL), 9), ((2, SECOND, USER), 9)
    )
    assert_processes([one], 0)


@pytest.mark.parametrize(("process", "tables"), [(1, SECOND), (2, FIRST)])
def test_a_switch_that_is_late_or_early(process: int, tables: int) -> None:
    wrong = ((process, tables, KERNEL), 7)
    one = cpu(((1, FIRST, USER), 9), wrong, ((2, SECOND, KERNEL), 9), ((2, SECOND, USER), 9))
    assert_processes([one], 7)
    with pytest.raises(
        AssertionError, match=rf"7 instructions: CPU 0, \[9, 16\) of 34 .* process {process}, "
    ):
        assert_processes([one], 6)


def test_a_process_that_exits_runs_with_borrowed_page_tables() -> None:
    one = cpu(
        ((1, FIRST, USER), 9), ((1, FIRST, KERNEL), 5), ((2, SECOND, USER), 9),
        ((1, SECOND, KERNEL), 300), ((2, SECOND, USER), 9),
    )  # fmt: skip
    assert_processes([one], 0)


def test_a_process_that_comes_again_does_not() -> None:
    turns = (
        ((1, FIRST, USER), 9),
        ((2, SECOND, USER), 9),
        ((1, SECOND, KERNEL), 300),
        ((2, SECOND, USER), 9),
    )
    here = cpu(*turns)
    assert_processes([here, cpu(((2, SECOND, USER), 9), begin=1000)], 0)
    with pytest.raises(AssertionError, match="300 instructions"):
        assert_processes([here, cpu(((1, FIRST, USER), 9), begin=1000)], 100)


def test_a_late_switch_from_a_process_that_exits_is_wrong() -> None:
    """Its own page tables were in force when it was switched out."""
    one = cpu(
        ((1, FIRST, USER), 9), ((1, FIRST, KERNEL), 5), ((1, SECOND, KERNEL), 300), ((2, SECOND, USER), 9)
    )
    with pytest.raises(AssertionError, match="300 instructions"):
        assert_processes([one], 100)
