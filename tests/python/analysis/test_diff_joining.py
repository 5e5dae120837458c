"""Where two sequences of branches part and go on equally: made programs, of which the decisions are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from branching import Execution, Program, TooLongError, arrays_of, run_again
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptkit import BranchKind
from ptkit.analysis.diff import compare as comparing
from ptkit.analysis.diff.compare import Result, compare
from ptkit.analysis.diff.joining import Joined
from ptkit.analysis.diff.keys import Keys, Locations
from ptkit.analysis.diff.sequence import Loss
from ptkit.analysis.diff.sequence import Sequence as Rows

Branch = tuple[int, int, BranchKind]
CALL, RETURN, COND, JUMP = BranchKind.CALL, BranchKind.RETURN, BranchKind.COND, BranchKind.JUMP_INDIRECT
KERNEL = 2**63
MANY = 10**6


class Plain(Keys):
    """Keys of code in one file, loaded at `base`."""

    def __init__(self, base: int = 0) -> None:
        self._base = np.uint64(base)

    def locations(
        self, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], known: NDArray[np.bool_]
    ) -> Locations:
        del spaces
        return Locations(np.where(known, 0, -1), np.where(known, ips - self._base, np.uint64(0xFFFF << 48)))

    def inside(self, begin: Locations, end: Locations) -> None:
        del begin, end


def rows_of(rows: Sequence[Branch], *, base: int = 0, size: int = 1000, losses: Iterable[Loss] = ()) -> Rows:
    """Rows in parts, each of which is overwritten when the next one comes."""

    def parts() -> Iterable[tuple[dict[str, NDArray[np.generic]], list[Loss]]]:
        arrays = arrays_of([(begin + base, end + base, kind) for begin, end, kind in rows])
        rest = list(losses)
        for first in range(0, max(len(rows), 1), size):
            part = {name: array[first : first + size].copy() for name, array in arrays.items()}
            yield part, rest
            rest = []
            for array in part.values():
                array[:] = 1

    return Rows(parts(), Plain(base), np.array([True, False]))


def compared(a: Sequence[Branch], b: Sequence[Branch], **options: int) -> Result:
    return compare(rows_of(a, **options), rows_of(b, base=0x1000000, **options), limit=MANY)


def assert_all_rows(result: Result, a: Sequence[Branch], b: Sequence[Branch]) -> None:
    """Each branch is equal in both, or passed where both part."""
    for side, rows in enumerate((a, b)):
        assert result.compared + sum(one.skipped[side] for one in result.partings) == len(rows)


def sites(result: Result) -> list[int]:
    return [one.after[0].from_ip for one in result.partings if one.after[0] is not None]


def pair(seed: int, count: int) -> tuple[list[Branch], list[Branch], list[int]] | None:
    program = Program(seed)
    try:
        run = Execution(program, seed)
        other, changed = run_again(program, run, seed, count)
    except TooLongError:
        return None
    return run.rows, other.rows, changed


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_changed_decisions_are_found_one_by_one(first: int) -> None:
    exact = programs = 0
    for seed in range(first, first + 30):
        made = pair(seed, count=3)
        if made is None or len(made[0]) < 50:
            continue
        a, b, changed = made
        result = compared(a, b)
        assert_all_rows(result, a, b)
        assert set(changed) <= set(sites(result)), seed
        programs += 1
        exact += sorted(changed) == sorted(sites(result))
    # Two decisions that follow each other may be one divergence.
    assert programs >= 8
    assert exact >= programs - 1


def test_many_changed_decisions_leave_most_branches_equal() -> None:
    made = pair(7, count=600)
    assert made is not None
    a, b, changed = made
    assert len(changed) > 300
    result = compared(a, b)
    assert_all_rows(result, a, b)
    assert set(changed) <= set(sites(result))
    assert len(result.partings) > 0.9 * len(changed)
    assert result.compared > 0.85 * len(a)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2000), st.integers(1, 6), st.integers(1, 400))
def test_parts_of_any_size_give_the_same(seed: int, count: int, size: int) -> None:
    made = pair(seed, count)
    if made is None:
        return
    a, b, _ = made
    if len(a) / size > 2000:
        return
    result, other = compared(a, b), compared(a, b, size=size)
    assert_all_rows(result, a, b)
    assert result.partings == other.partings


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.sampled_from((CALL, RETURN, COND, JUMP)))),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.sampled_from((CALL, RETURN, COND, JUMP)))),
)
def test_any_branches(a: list[Branch], b: list[Branch]) -> None:
    result = compared(a, b, size=7)
    assert_all_rows(result, a, b)
    assert compared(a, a).partings == []


def test_equal_runs_have_no_divergence() -> None:
    rows = Execution(Program(7), 7).rows
    assert len(rows) > 10_000
    result = compared(rows, rows)
    assert result.partings == []
    assert result.compared == len(rows)


# Code of small examples: addresses of a function `main` with a loop that calls `work`.
HEAD, CALLS, BACK, WORK, WORK_END = 0x100, 0x110, 0x120, 0x200, 0x240


def trip(branches: Sequence[Branch] = ()) -> list[Branch]:
    """One trip of the loop; `branches` of `work`."""
    return [
        (HEAD, HEAD + 2, COND),
        (CALLS, WORK, CALL),
        *branches,
        (WORK_END, CALLS + 5, RETURN),
        (BACK, HEAD, COND),
    ]


LOOP_END: list[Branch] = [(BACK, BACK + 2, COND), (0x130, 0x140, JUMP), (0x150, 0x160, JUMP)]
IF, ELSE = (0x210, 0x220, COND), (0x210, 0x212, COND)


def test_other_way_in_a_callee_joins_in_its_caller() -> None:
    a = trip() * 5 + [*trip()[:2], IF, (0x230, CALLS + 5, RETURN), trip()[3]] + trip() * 5
    b = trip() * 5 + trip([ELSE]) + trip() * 5
    [found] = compared(a, b).partings
    assert found.after[0] is not None
    assert found.after[0].from_ip == 0x210
    assert (found.joined, found.depth, found.skipped) == (Joined.CALLER, 1, (2, 2))


def test_more_trips_of_a_loop() -> None:
    inner = [(0x208, 0x204, COND)]
    ends = [(0x208, 0x20A, COND)]
    a = [*trip(inner * 30 + ends), *trip(inner * 10 + ends) * 10]
    b = trip(inner * 10 + ends) * 11
    [found] = compared(a, b).partings
    assert found.skipped == (20, 0)
    assert found.joined == Joined.SAME_FRAME


def test_a_long_loop_is_not_left_for_the_next_trip_of_the_outer_one() -> None:
    inner = [(0x208, 0x204, COND)]
    ends = [(0x208, 0x20A, COND)]
    a = [*trip(inner * 5000 + ends), *trip(inner * 10 + ends) * 10]
    b = trip(inner * 10 + ends) * 11
    [found] = compared(a, b).partings
    assert found.skipped == (4990, 0)


def test_a_run_that_goes_on_longer() -> None:
    a = trip() * 20
    result = compared(a, trip() * 12)
    [found] = result.partings
    assert (found.after[1], found.skipped, found.joined) == (None, (32, 0), Joined.END)


@pytest.mark.parametrize("kind", [JUMP, RETURN])
def test_frames_that_an_exception_leaves(kind: BranchKind) -> None:
    # `work` calls three functions deep, and the landing pad is in `main`.
    deep = [(0x210, 0x300, CALL), (0x310, 0x400, CALL), (0x410, 0x500, CALL)]
    thrown = [*trip()[:2], IF, *deep, (0x510, 0x118, JUMP), trip()[3]]
    if kind == RETURN:
        thrown[-2] = (0x510, 0x118, RETURN)
    a = trip([ELSE]) * 20
    b = trip([ELSE]) * 5 + thrown + trip([ELSE]) * 14
    [found] = compared(a, b).partings
    assert found.after[0] is not None
    assert found.after[0].from_ip == 0x210
    assert found.joined == Joined.CALLER
    assert found.skipped[1] - found.skipped[0] == len(thrown) - len(trip([ELSE]))


def signal_handler(at: int) -> list[Branch]:
    """An interrupt at an address, a handler, and the system call with which it returns."""
    handler = 0x90000
    return [
        (at, 0, BranchKind.ASYNC),
        (handler, handler + 8, COND),
        (handler + 16, 0x80000, RETURN),
        (0x80004, 0, BranchKind.SYSCALL),
    ]


@pytest.mark.parametrize("at", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_signal_is_a_divergence_and_moves_nothing(at: int, size: int) -> None:
    rows = trip([IF])
    interrupted = [*rows[:at], *signal_handler(rows[at][0] - 1), *rows[at:]]
    a = trip([IF]) * 20
    b = trip([IF]) * 5 + interrupted + trip([IF]) * 14
    [found] = compared(a, b, size=size).partings
    assert found.after[1] is not None
    assert found.after[1].enters
    assert (found.joined, found.depth) == (Joined.SAME_FRAME, 0)
    assert found.skipped == (0, 3)


@pytest.mark.parametrize("size", [1, 1000])
def test_a_handler_that_returned_is_left(size: int) -> None:
    """The handler of a later signal lies behind the address that an earlier one had interrupted."""
    rows = trip([IF])
    waits = [(CALLS, 0x70000, CALL), (0x70010, 0, BranchKind.SYSCALL), (0x70020, CALLS + 5, RETURN)]
    later = [(0x300, 0x308, COND), (0x310, 0x80000, RETURN), (0x80004, 0, BranchKind.SYSCALL)]
    a = [*rows[:1], *signal_handler(HEAD + 4), *rows[1:], *waits, *rows * 20]
    b = [*rows[:1], *signal_handler(HEAD + 4), *rows[1:], *waits[:2], *later, *waits[2:], *rows * 20]
    [found] = compared(a, b, size=size).partings
    assert found.after[1] is not None
    assert found.after[1].enters
    assert (found.joined, found.depth, found.skipped) == (Joined.SAME_FRAME, 0, (0, 3))


def test_interrupts_and_kernel_code_are_not_compared() -> None:
    rows = trip([IF])
    interrupt = [(0x211, KERNEL + 0x100, BranchKind.ASYNC), (KERNEL + 0x110, KERNEL + 0x200, CALL)]
    interrupt += [(KERNEL + 0x210, KERNEL + 0x115, RETURN), (KERNEL + 0x120, 0x211, BranchKind.IRET)]
    a = trip([IF]) * 20
    b = trip([IF]) * 5 + [*rows[:3], *interrupt, *rows[3:]] + trip([IF]) * 14
    result = compare(rows_of(a), rows_of(b), limit=MANY)
    assert result.partings == []
    assert result.compared == len(a)


def test_a_system_call_is_one_branch_whatever_the_kernel_did() -> None:
    call = (0x214, 0, BranchKind.SYSCALL)
    kernel = [(0x214, KERNEL, BranchKind.SYSCALL), (KERNEL + 8, 0x216, BranchKind.SYSRET)]
    a, b = trip([call]) * 10, trip(kernel) * 10
    result = compare(rows_of(a), rows_of(b), limit=MANY)
    assert result.partings == []
    assert result.compared == len(a)


def test_very_long_calls_are_passed_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "_FRAME_WINDOWS", (1 << 4, 1 << 6))
    monkeypatch.setattr(comparing, "_ANY_WINDOWS", (1 << 6,))
    monkeypatch.setattr(comparing, "_SURE_ROWS", 1 << 6)
    other = [(0x300 + 4 * at % 1024, 0x305 + 4 * at % 1024, JUMP) for at in range(5000)]
    called = [*trip()[:2], IF, *other, *trip()[2:]]
    ways = [
        *trip()[:2],
        ELSE,
        *[(begin + 0x1000, end, kind) for begin, end, kind in other[:3000]],
        *trip()[2:],
    ]
    a, b = trip([IF]) * 5 + called + trip([IF]) * 5, trip([IF]) * 5 + ways + trip([IF]) * 5
    [found] = compared(a, b, size=100).partings
    assert (found.joined, found.depth) == (Joined.CALLER, 1)
    assert found.skipped == (5002, 3002)


# Gaps.


def loss(rows: Sequence[Branch]) -> Loss:
    return Loss(0, 5 * len(rows), "3 bytes of trace are missing")


def test_what_a_gap_hides_is_no_divergence() -> None:
    program = Execution(Program(7), 7).rows[:5000]
    before, after = program[:2000], program[2300:]
    result = compare(rows_of(program), rows_of([*before, *after], losses=[loss(before)]), limit=MANY)
    assert result.partings == []
    assert len(result.losses[1]) == 1
    assert result.unjudged[0] - result.unjudged[1] == 300
    assert result.unjudged[1] < 50


def test_what_parts_after_a_gap_is_found() -> None:
    rows = Execution(Program(7), 7).rows
    a = [*rows[:5000], IF, *rows[5000:9000]]
    b = [*rows[:2000], *rows[2300:5000], ELSE, *rows[5000:9000]]
    result = compare(rows_of(a), rows_of(b, losses=[loss(b[:2000])]), limit=MANY)
    assert sites(result) == [0x210]


def test_a_gap_without_branches_is_said() -> None:
    a = trip([IF]) * 20
    result = compare(rows_of(a), rows_of(a, losses=[loss(a[:50])]), limit=MANY)
    assert result.compared == len(a)
    assert len(result.losses[1]) == 1


def test_runs_without_anything_in_common_are_unjudged_or_end() -> None:
    a = [(16 * at, 16 * at + 4, COND) for at in range(1, 300)]
    b = [(16 * at + 8, 16 * at + 12, COND) for at in range(1, 300)]
    result = compared(a, b)
    [found] = result.partings
    assert (found.joined, found.skipped) == (Joined.END, (299, 299))
    gap = compare(rows_of(a), rows_of(b, losses=[loss([])]), limit=MANY)
    assert gap.partings == []
    assert gap.unjudged == [299, 299]


def test_the_limit_of_partings_counts_the_rest() -> None:
    a = trip([IF]) * 20
    b = trip([ELSE]) * 20
    result = compare(rows_of(a), rows_of(b), limit=3)
    assert len(result.partings) == 3
    assert result.more == 17


# Two loops in one frame.
INNER, INNER_END = (0x118, 0x114, COND), (0x118, 0x11A, COND)


def outer(trips: int) -> list[Branch]:
    return [(HEAD, HEAD + 2, COND), *[INNER] * trips, INNER_END, (BACK, HEAD, COND)]


@pytest.mark.parametrize("more", [6, 300])
def test_the_inner_loop_ends_before_the_outer_one_goes_on(more: int) -> None:
    a, b = outer(8 + more) + outer(8) * 20, outer(8) * 21
    [found] = compared(a, b).partings
    assert (found.skipped, found.joined) == ((more, 0), Joined.SAME_FRAME)
    [found] = compared(b, a).partings
    assert (found.skipped, found.joined) == ((0, more), Joined.SAME_FRAME)


def test_a_loop_whose_first_instruction_parts_is_gone_around() -> None:
    """The rest of the round is joined, though the begin of the next round would be nearer."""
    tail: list[Branch] = [
        (0x112, 0x114, COND),
        (0x118, 0x11A, COND),
        (0x11C, 0x120, COND),
        (BACK, HEAD, COND),
    ]
    whole = [(HEAD, HEAD + 2, COND), *[(0x108, 0x104, COND)] * 30, (0x108, 0x110, COND), *tail]
    short = [(HEAD, 0x110, COND), *tail]
    [found] = compared(whole * 12, whole * 3 + short + whole * 8).partings
    assert (found.skipped, found.joined) == ((32, 1), Joined.SAME_FRAME)


def test_code_that_the_compiler_moved_is_no_loop() -> None:
    # An `if` of which one side lies behind the loop, and jumps back into it.
    moved: list[Branch] = [(0x108, 0x400, COND), (0x420, 0x10C, BranchKind.JUMP)]
    straight: list[Branch] = [(0x108, 0x10A, COND)]
    a = outer(3) * 5 + [*outer(3)[:1], *moved, *outer(3)[1:]] + outer(3) * 5
    b = outer(3) * 5 + [*outer(3)[:1], *straight, *outer(3)[1:]] + outer(3) * 5
    [found] = compared(a, b).partings
    assert found.skipped == (2, 1)


def test_a_round_that_has_no_jump_back_is_a_round() -> None:
    """Rounds look the same in the frame of the loop: what they call says which one of the other run it is."""

    def rounds(first: int, end: int) -> list[Branch]:
        return [row for number in range(first, end) for row in trip([IF if number % 2 else ELSE])]

    # One side of an `if` does what the round does, and goes on with the next one without a jump.
    planted = [(HEAD, 0x300, COND), (0x308, WORK, CALL), IF, (WORK_END, 0x30D, RETURN)]
    a, b = [*rounds(0, 4), *planted, *rounds(5, 40)], rounds(0, 40)
    [found] = compared(a, b).partings
    assert (found.skipped, found.joined) == ((4, 5), Joined.SAME_FRAME)
    [found] = compared(b, a).partings
    assert found.skipped == (5, 4)


def test_a_caller_that_parts_at_once() -> None:
    checks: list[list[Branch]] = [[(0x118, 0x11A, COND)], [(0x118, 0x11C, COND)]]
    runs = []
    for way, end, check in zip((IF, ELSE), (0x230, WORK_END), checks, strict=True):
        changed = [*trip()[:2], way, (end, CALLS + 5, RETURN), *check, trip()[3]]
        runs.append(trip([IF]) * 5 + changed + trip([IF]) * 5)
    found = compared(*runs).partings
    assert [one.after[0] and one.after[0].from_ip for one in found] == [0x210, 0x118]
    assert found[0].joined == Joined.CALLER
