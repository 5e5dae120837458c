"""Loops and the hottest path of a function, by hand-made flow."""

from __future__ import annotations

import numpy as np

from ptkit import BranchKind
from ptkit.analysis.flow import FunctionFlow, Jumps, Loop

COND, JUMP, CALL, RETURN, IRET = (
    int(BranchKind[name]) for name in ("COND", "JUMP", "CALL", "RETURN", "IRET")
)


def flow(counts: list[int], *jumps: tuple[int, int, int, int]) -> FunctionFlow:
    """Flow of instructions that follow each other; jumps: source, target (-1: outside), kind, count."""
    source, target, kind, count = np.array(jumps, np.int64).reshape(-1, 4).T
    follows = np.arange(len(counts)) > 0
    return FunctionFlow(
        np.array(counts, np.int64), follows, Jumps(source, target, kind.astype(np.uint8), count)
    )


def facts(loops: list[Loop]) -> list[tuple[int, list[int], int, int]]:
    return [(one.head, one.rows.tolist(), one.count, one.entries) for one in loops]


def test_a_loop_that_tests_at_its_end() -> None:
    # 0: entry; 1, 2: body with a branch back; 3: return. Two calls, 5 rounds each.
    found = flow([2, 10, 10, 2], (-1, 0, CALL, 2), (2, 1, COND, 8), (2, 3, COND, 2), (3, -1, RETURN, 2))
    assert facts(found.loops()) == [(1, [1, 2], 10, 2)]
    assert found.loops()[0].mean == 5
    assert found.hottest(0).tolist() == [True] * 4


def test_a_loop_that_tests_at_its_begin_has_the_test_as_head() -> None:
    # gcc -O0: 0 jumps to the test 2; 1: body, falls into 2; 2: test, back to 1; 3: return.
    found = flow(
        [3, 12, 15, 3],
        (-1, 0, CALL, 3),
        (0, 2, JUMP, 3),
        (2, 1, COND, 12),
        (2, 3, COND, 3),
        (3, -1, RETURN, 3),
    )
    assert facts(found.loops()) == [(2, [1, 2], 15, 3)]
    assert found.hottest(0).all()


def test_nested_loops_and_the_path_around_a_rare_block() -> None:
    # 1..6: outer loop; 2, 3: inner; 4 skips 5 mostly.
    found = flow(
        [1, 10, 40, 40, 10, 2, 10, 1],
        *((-1, 0, CALL, 1), (3, 2, COND, 30), (3, 4, COND, 10), (4, 6, COND, 8), (4, 5, COND, 2)),
        *((6, 1, COND, 9), (6, 7, COND, 1), (7, -1, RETURN, 1)),
    )
    assert facts(found.loops()) == [(1, [1, 2, 3, 4, 5, 6], 10, 1), (2, [2, 3], 40, 10)]
    assert found.hottest(0).tolist() == [True, True, True, True, True, False, True, True]


def test_several_ways_back_are_one_loop() -> None:
    # continue: 1 is the head, 2 and 3 go back.
    found = flow(
        [1, 6, 6, 4, 1], (-1, 0, CALL, 1), (2, 1, COND, 2), (2, 3, COND, 4), (3, 1, COND, 3), (3, 4, COND, 1)
    )
    assert facts(found.loops()) == [(1, [1, 2, 3], 6, 1)]


def test_a_loop_with_two_entries_has_no_trips() -> None:
    # 0 goes to 1 or to 2, which lead to each other.
    found = flow(
        [4, 8, 10, 4], (-1, 0, CALL, 4), (0, 2, COND, 2), (0, 1, COND, 2), (2, 1, COND, 6), (2, 3, COND, 4)
    )
    assert found.loops() == []
    assert found.other_loops == 1


def test_recursion_and_interrupts_are_no_loops() -> None:
    # 2 calls the function itself, and comes back to 3; an interrupt comes back to 1.
    found = flow([5, 5, 4, 4, 5], (-1, 0, CALL, 1), (2, 0, CALL, 4), (1, 4, COND, 1), (1, 2, COND, 4),
                 (4, 3, RETURN, 4), (4, -1, RETURN, 1), (-1, 1, IRET, 1))  # fmt: skip
    assert found.loops() == []
    assert found.other_loops == 0


def test_a_trace_that_begins_in_a_loop() -> None:
    found = flow([3, 3], (1, 0, JUMP, 3))
    (loop,) = found.loops()
    assert (loop.head, loop.count, loop.entries, loop.mean) == (0, 3, 0, None)


def test_code_that_did_not_run_has_no_flow() -> None:
    found = flow([])
    assert found.loops() == []
    assert found.hottest().tolist() == []
