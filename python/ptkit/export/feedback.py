"""Profiles that compilers and linkers take: exact counts of runs and taken branches of one program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.export.files import NewFile, joined
from ptkit.export.module_runs import ModuleRuns, RunTrace, in_stubs, module_runs
from ptkit.support.groups import numbered

__all__ = ["write_autofdo", "write_bolt", "write_bolt_traces", "write_llvm"]

#: The greatest count that readers take.
MOST = 2**63 - 1
_OUTSIDE = "X:0"  # an address that is not in the program, for perf2bolt
_EXTERNAL = 1  # the same for llvm-profgen
_NO_PREDICTIONS = "mispredictions are 0: the trace does not have them"


def write_autofdo(trace: RunTrace, path: str, *, build_id: str | None = None, **query: Any) -> dict[str, Any]:
    """Write the text that create_gcov and create_llvm_prof read with ``--profiler=text``.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    build_id : str, optional
        Begin of the build-id of the program.
    **query
        As for `module_runs`.

    Notes
    -----
    Addresses are those of the file less the address of its first segment.
    """
    return _write_profile(path, module_runs(trace, build_id=build_id, **query), is_autofdo=True)


def write_llvm(trace: RunTrace, path: str, *, build_id: str | None = None, **query: Any) -> dict[str, Any]:
    """Write the profile that llvm-profgen reads with ``--unsymbolized-profile --use-offset=0``.

    Parameters
    ----------
    trace, path, build_id, **query
        As for `write_autofdo`.

    Notes
    -----
    Branches from other code have the address 1: they count as calls of the functions that they enter.
    """
    return _write_profile(path, module_runs(trace, build_id=build_id, **query), is_autofdo=False)


def _write_profile(path: str, runs: ModuleRuns, *, is_autofdo: bool) -> dict[str, Any]:
    """Write executions of ranges of code, and of branches within the file or, for LLVM, into it."""
    ranges, branches = _ranges(runs), _branches(runs, external=not is_autofdo)
    base = np.uint64(runs.linked if is_autofdo else 0)

    def lines() -> Iterator[bytes]:
        yield b"%d\n" % len(ranges[0])
        yield from _lines(b"%x-%x:%d\n", (ranges[0] - base, ranges[1] - base, ranges[2]))
        if is_autofdo:
            yield b"0\n"  # counts of addresses without ranges
        yield b"%d\n" % len(branches[0])
        yield from _lines(b"%x->%x:%d\n", (branches[0] - base, branches[1] - base, branches[2]))

    has_line = runs.has_begin & (runs.is_own | (not is_autofdo))
    notes = [*runs.notes, *_border_notes(runs, has_line), *_clip_notes(ranges, branches)]
    return _written(path, lines(), notes)


def write_bolt(trace: RunTrace, path: str, *, build_id: str | None = None, **query: Any) -> dict[str, Any]:
    """Write branches (``B``) and fall-throughs (``F``, ``f``) that ``perf2bolt --pa`` reads.

    Parameters
    ----------
    trace, path, build_id, **query
        As for `write_autofdo`.

    Notes
    -----
    A fall-through is ``f`` if a return or a branch of another file led to it. PLT stubs have branches only:
    perf2bolt knows no blocks there, and before LLVM 21 takes their runs for those of another program.
    """
    runs = module_runs(trace, build_id=build_id, **query)
    branches = _both_ends(runs, np.flatnonzero(runs.has_origin))
    is_stub = in_stubs(trace, runs)
    rows = np.flatnonzero(runs.has_run & ~is_stub)
    is_return = runs.kind == int(_core.BranchKind.RETURN)
    outer = runs.has_origin & (is_return | ~runs.is_own)
    falls = _summed((outer[rows], runs.begin[rows], runs.end[rows]), (runs.count[rows],))

    def lines() -> Iterator[bytes]:
        yield from _branch_lines(branches)
        for is_outer, begin, end, count in _rows(falls):
            yield b"%b %x %x %d\n" % (b"f" if is_outer else b"F", begin, end, count)

    notes = [*runs.notes, *_prediction_notes(runs), *_clip_notes(branches[:-1], falls)]
    if number := int(runs.count[is_stub].sum()):
        notes.append(f"{number:,} executions of PLT stubs have branches, and no fall-through")
    return _written(path, lines(), notes)


def write_bolt_traces(
    trace: RunTrace, path: str, *, build_id: str | None = None, **query: Any
) -> dict[str, Any]:
    """Write traces (``T``, ``R``) that ``perf2bolt --pa`` of LLVM 21 and later reads.

    Parameters
    ----------
    trace, path, build_id, **query
        As for `write_autofdo`.

    Notes
    -----
    A trace is a branch and the run that it leads to; ``R``: the branch is a return. Runs that no branch leads
    to are ``F`` lines, and branches of which the run is not in the file are ``B`` lines.
    """
    runs = module_runs(trace, build_id=build_id, **query)
    is_return = runs.kind == int(_core.BranchKind.RETURN)
    whole = np.flatnonzero(runs.has_origin & runs.has_run)
    traces = _summed(
        (is_return[whole], runs.is_own[whole], runs.origin[whole], runs.begin[whole], runs.end[whole]),
        (runs.count[whole],),
    )
    rows = np.flatnonzero(runs.has_run & ~runs.has_origin)
    falls = _summed((runs.begin[rows], runs.end[rows]), (runs.count[rows],))
    branches = _both_ends(runs, np.flatnonzero(runs.has_origin & ~runs.has_run))

    def lines() -> Iterator[bytes]:
        for returns, is_own, origin, begin, end, count in _rows(traces):
            yield f"{'R' if returns else 'T'} {_at(is_own, origin)} {begin:x} {end:x} {count}\n".encode()
        yield from _lines(b"F %x %x %d\n", falls)
        yield from _branch_lines(branches)

    notes = [*runs.notes, *_clip_notes(traces, falls, branches[:-1])]
    if runs.predictions.any():
        notes.append("T and R lines have no mispredictions: the format bolt has them")
    else:
        notes.append(_NO_PREDICTIONS)
    return _written(path, lines(), notes)


_Columns = tuple[NDArray[Any], ...]


def _summed(keys: _Columns, counts: _Columns) -> _Columns:
    """Rows with equal keys as one, in the order of the keys, with the sums of their counts."""
    numbers, first = numbered(keys)
    sums = []
    for count in counts:
        total = np.zeros(len(first), np.uint64)
        np.add.at(total, numbers, count)
        sums.append(total)
    return (*(key[first] for key in keys), *sums)


def _ranges(runs: ModuleRuns) -> _Columns:
    """First and last address of each run, and how often it was executed."""
    rows = np.flatnonzero(runs.has_run)
    return _summed((runs.begin[rows], runs.end[rows]), (runs.count[rows],))


def _branches(runs: ModuleRuns, *, external: bool = False) -> _Columns:
    """Both ends of each taken branch within the file, or into it, and how often it was executed."""
    rows = np.flatnonzero(runs.has_origin & runs.has_begin & (runs.is_own | external))
    origin = np.where(runs.is_own, runs.origin, np.uint64(_EXTERNAL))
    return _summed((origin[rows], runs.begin[rows]), (runs.count[rows],))


def _both_ends(runs: ModuleRuns, rows: NDArray[np.intp]) -> _Columns:
    """Taken branches with whether each end is in the file, executions and mispredictions."""
    return _summed(
        (runs.is_own[rows], runs.origin[rows], runs.has_begin[rows], runs.begin[rows]),
        (runs.count[rows], runs.mispredicted[rows]),
    )


def _branch_lines(branches: _Columns) -> Iterator[bytes]:
    """Lines of `_both_ends` for perf2bolt."""
    for is_own, origin, has_begin, begin, count, mispredicted in _rows(branches, 2):
        yield f"B {_at(is_own, origin)} {_at(has_begin, begin)} {count} {mispredicted}\n".encode()


def _rows(columns: _Columns, counts: int = 1) -> Iterator[tuple[Any, ...]]:
    """Rows of columns, the last `counts` of which are no more than readers take."""
    keys, numbers = columns[:-counts], columns[-counts:]
    clipped = (np.minimum(column, np.uint64(MOST)) for column in numbers)
    return zip(*(column.tolist() for column in (*keys, *clipped)), strict=True)


def _lines(form: bytes, columns: _Columns) -> Iterator[bytes]:
    return (form % row for row in _rows(columns))


def _at(is_own: bool, address: int) -> str:
    """An address, as perf2bolt reads it."""
    return f"{address:x}" if is_own else _OUTSIDE


def _border_notes(runs: ModuleRuns, has_line: NDArray[np.bool_]) -> list[str]:
    """A sentence on branches that the format has no line for."""
    number = int(runs.count[runs.has_origin & ~has_line].sum())
    if not number:
        return []
    return [f"{number:,} branches between files are left out: the format has those of one file"]


def _clip_notes(*columns: _Columns) -> list[str]:
    """A sentence on counts that are greater than what readers take."""
    number = sum(int(np.count_nonzero(one[-1] > np.uint64(MOST))) for one in columns)
    return [f"{number:,} counts are greater than 2^63 - 1, and are written as that"] if number else []


def _prediction_notes(runs: ModuleRuns) -> list[str]:
    """A sentence on mispredictions."""
    known = int(runs.predictions.sum())
    if not known:
        return [_NO_PREDICTIONS]
    total = int(runs.count[runs.has_origin].sum())
    return [] if known >= total else [f"mispredictions are known of {known:,} of {total:,} branches"]


def _written(path: str, lines: Iterator[bytes], notes: list[str]) -> dict[str, Any]:
    with NewFile(path) as file:
        for chunk in joined(lines):
            file.write(chunk)
    return {"bytes": file.bytes, "notes": notes}
