"""What ran of chosen functions, by address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode import Plan
from ptkit.decode.line_counts import ExecutedCode, count_blocks, line_executions, selected_code
from ptkit.decode.read import iterate
from ptkit.export.frame_rows import has_source
from ptkit.support.groups import numbered
from ptkit.table import Table
from ptkit.view.annotated.extents import ChosenFunction
from ptkit.view.code import CodeTrace, branch_directions

__all__ = ["EDGE_COLUMNS", "INSTRUCTION_COLUMNS", "Counts", "read_counts"]

#: Columns of edges, and of instructions, that are needed.
EDGE_COLUMNS = ("from_ip", "to_ip", "kind", "count", "space", "to_known", "to_symbol_full")
INSTRUCTION_COLUMNS = ("ip", "size", "mode", "space")
_ROWS = 1 << 16
_Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """What ran of all chosen functions."""

    code: ExecutedCode
    owner: _Indices  # number of the function, or -1
    at: NDArray[np.uint64]
    taken: _Indices
    passed: _Indices
    executions: _Indices
    source: _Indices  # row of each edge's branch, and of its target; -1: elsewhere
    target: _Indices
    edges: Table
    bits: frozenset[int]


def read_counts(trace: CodeTrace, functions: Sequence[ChosenFunction], plan: Plan, edges: Table) -> Counts:
    bits: set[int] = set()

    def noting_bits(parts: Iterator[Table]) -> Iterator[Table]:
        for part in parts:
            bits.update(np.flatnonzero(np.bincount(part["mode"])).tolist())
            yield part

    session = plan.session
    parts = noting_bits(iterate(plan, _ROWS, reuse=True))
    if plan.table == "blocks":
        code = selected_code(count_blocks(parts).instructions(session), plan)
    else:
        code = _count_each(parts)
    owner = np.full(len(code.ip), -1, np.int64)
    at = code.ip.copy()
    for number, function in enumerate(functions):
        for extent in function.extents:
            rows = np.flatnonzero(extent.rows(code.ip, code.space) & (owner < 0))
            owner[rows] = number
            at[rows] = code.ip[rows] - np.uint64(extent.first) + np.uint64(extent.at)
    taken, passed = branch_directions(code, edges)
    executions = np.zeros(len(code.ip), np.int64)
    source, target = code.ends(edges)
    if has_source(trace):
        path, line, _ = _core.name_lines(session, code.ip, code.space, None)
        keys, _ = numbered((line.astype(np.int64), path))
        executions = line_executions(code, keys, edges, (source, target))
    return Counts(
        code,
        owner,
        at,
        taken,
        passed,
        executions,
        source,
        target,
        edges,
        frozenset(bits or session.code_bits),
    )


def _count_each(parts: Iterator[Table]) -> ExecutedCode:
    """Count instructions one by one; of several at an address, the size of the most frequent one holds."""
    keys = np.dtype([("space", np.uint32), ("ip", np.uint64), ("size", np.uint8)])
    found, sums = np.zeros(0, keys), np.zeros(0, np.int64)
    for part in parts:
        rows = np.empty(len(part), keys)
        for name in keys.names or ():
            rows[name] = part[name]
        some, counts = np.unique(rows, return_counts=True)
        found, row = np.unique(np.concatenate([found, some]), return_inverse=True)
        sums = np.bincount(row, np.concatenate([sums, counts]), len(found)).astype(np.int64)
    number, _ = numbered((found["space"], found["ip"]))
    order = np.lexsort((~sums, number))
    first = order[np.searchsorted(number[order], np.arange(number.max(initial=-1) + 1))]
    count = np.bincount(number, sums, len(first)).astype(np.int64)
    return ExecutedCode(found["ip"][first], found["space"][first], found["size"][first], count, count)
