"""Counts of chosen functions: by instruction, with what did not run of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.flow import JUMPS, FunctionFlow, Jumps, Loop
from ptkit.decode import Plan
from ptkit.export.frame_rows import has_source
from ptkit.support.groups import numbered
from ptkit.table import Table
from ptkit.view.annotated.counts import Counts, read_counts
from ptkit.view.annotated.extents import ChosenFunction, signed
from ptkit.view.annotated.idle import MOST_SIZE, Unknown, not_run
from ptkit.view.annotated.lines import Lines, lines_of
from ptkit.view.code import CodeTrace

__all__ = ["FunctionRows", "read_functions"]

_BITS = (64, 32, 16)
_CALLS = tuple(int(kind) for kind in (_core.BranchKind.CALL, _core.BranchKind.CALL_INDIRECT))
_Indices = NDArray[np.int64]


@dataclass
class FunctionRows:
    """A function with its instructions, in the order of RVAs, and its loops.

    Attributes
    ----------
    function : ChosenFunction
    ip, at, size, count, taken, passed, executions : numpy.ndarray
        Of each instruction: address where it ran, RVA, bytes, executions; of conditional branches both
        outcomes, -1 elsewhere; executions of its line that began with it.
    space : numpy.ndarray of uint32
    is_hottest : numpy.ndarray of bool
    targets : list of list of str
        Where calls and jumps out of the function went, most often first.
    texts : sequence of str or None
        Disassembly; None: it is redacted.
    lines : Lines
    loops : list of Loop
    other_loops : int
        Loops with several entries.
    calls : int
        Entries at the begin.
    unknown : list of Unknown
        Bytes that did not run and are not in the recording, or are no code.
    """

    function: ChosenFunction
    ip: NDArray[np.uint64]
    space: NDArray[np.uint32]
    at: NDArray[np.uint64]
    size: _Indices
    count: _Indices
    taken: _Indices
    passed: _Indices
    executions: _Indices
    is_hottest: NDArray[np.bool_]
    targets: list[list[str]]
    calls: int
    unknown: list[Unknown]
    loops: list[Loop]
    other_loops: int
    texts: Sequence[str | None]
    lines: Lines

    @property
    def instructions(self) -> int:
        """How many were executed."""
        return int(self.count.sum())


def read_functions(
    trace: CodeTrace,
    functions: Sequence[ChosenFunction],
    rows: Plan,
    edges: Table,
    most: int,
    *,
    short: bool,
) -> tuple[list[FunctionRows], int, bool]:
    """Count the instructions of functions.

    Parameters
    ----------
    trace : CodeTrace
    functions : sequence of ChosenFunction
    rows : Plan
        Blocks of their code, with `ptkit.decode.BLOCK_COLUMNS`; where it was replaced, its instructions, with
        `INSTRUCTION_COLUMNS`.
    edges : Table
        Edges of the same code, with `EDGE_COLUMNS`.
    most : int
        So many functions at most, those with most instructions.
    short : bool
        Targets have short names.

    Returns
    -------
    functions : list of FunctionRows
    others : int
        How many more functions ran.
    has_code : bool
        No code of an executed block is missing.
    """
    counts = read_counts(trace, functions, rows, edges)
    work = np.zeros(len(functions), np.int64)
    owned = counts.owner >= 0
    np.add.at(work, counts.owner[owned], counts.code.instructions[owned])
    order = sorted(range(len(functions)), key=lambda one: (-work[one], functions[one].name))
    ran = int(np.count_nonzero(work))
    # Of many functions, those that did not run say nothing.
    shown = order[: max(min(most, ran), 1)]
    ranges = rows.selection.get("ips") or ()
    found = [_function(trace, functions[one], one, counts, ranges) for one in shown]
    if short:
        for one in found:
            one.targets = [_core.short_names(names) for names in one.targets]
    return found, ran - min(ran, len(shown)), bool(np.all(counts.code.size[owned] > 0))


def _function(
    trace: CodeTrace,
    function: ChosenFunction,
    number: int,
    counts: Counts,
    ranges: Sequence[tuple[int, int, int | None]],
) -> FunctionRows:
    """The instructions of a function, those of all places where it is mapped together."""
    rows = np.flatnonzero(counts.owner == number)
    local, executed = _executed(counts, rows)
    touching = np.flatnonzero((local[counts.source] >= 0) | (local[counts.target] >= 0))
    edges = counts.edges[touching]
    kinds, times = (np.asarray(edges[name]) for name in ("kind", "count"))
    jumps = Jumps(local[counts.source[touching]], local[counts.target[touching]], kinds, times)
    at, sizes, count = (executed[name] for name in ("at", "size", "count"))
    follows = np.zeros(len(at), np.bool_)
    follows[1:] = at[:-1] + sizes[:-1].astype(np.uint64) == at[1:]
    flow = FunctionFlow(count, follows, jumps)
    entry = np.flatnonzero(at == np.uint64(function.begin))
    begin = int(entry[0]) if len(entry) else None
    executed["is_hottest"] = flow.hottest(begin)
    bits = _bits(trace, counts.bits, executed)
    spaces = set(counts.code.space[rows].tolist())
    more, unknown = not_run(trace, function, (at, sizes), bits, spaces, ranges)
    cells, order = _with_others(executed, more)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    targets = _targets(trace, edges, jumps, [signed(one - function.begin) for one in at.tolist()])
    return FunctionRows(
        function,
        **cells,
        targets=[targets[row] if row < len(at) else [] for row in order.tolist()],
        calls=0 if begin is None else int(count[begin]) - _jumps_to(begin, function, edges, jumps),
        unknown=unknown,
        loops=[
            Loop(int(position[one.head]), np.sort(position[one.rows]), one.count, one.entries)
            for one in flow.loops()
        ],
        other_loops=flow.other_loops,
        **_texts(trace, cells["ip"], cells["space"], bits, unknown),
    )


def _executed(counts: Counts, rows: _Indices) -> tuple[_Indices, dict[str, NDArray[Any]]]:
    """Columns of a function's instructions by RVA, and the index in them of each row, -1 of others."""
    merged, first = numbered((counts.at[rows],))

    def sums(values: _Indices) -> _Indices:
        found = np.zeros(len(first), np.int64)
        np.add.at(found, merged, values[rows])
        return found

    code = counts.code
    local = np.full(len(code.ip) + 1, -1, np.int64)
    local[rows] = merged
    one = rows[first]
    is_branch = counts.taken[one] >= 0
    return local, {
        "ip": code.ip[one],
        "space": code.space[one],
        "at": counts.at[one],
        "size": code.size[one].astype(np.int64),
        "count": sums(code.count),
        "taken": np.where(is_branch, sums(counts.taken), -1),
        "passed": np.where(is_branch, sums(counts.passed), -1),
        "executions": sums(counts.executions),
    }


def _jumps_to(begin: int, function: ChosenFunction, edges: Table, jumps: Jumps) -> int:
    """Executions of jumps from the function to its begin: also from code of it that is not selected."""
    rows = np.flatnonzero(np.isin(jumps.kind, JUMPS) & (jumps.target == begin))
    ips, spaces = (np.asarray(edges[name])[rows] for name in ("from_ip", "space"))
    inside = np.zeros(len(rows), np.bool_)
    for extent in function.extents:
        inside |= extent.rows(ips, spaces)
    return int(jumps.count[rows[inside]].sum())


def _texts(
    trace: CodeTrace, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], bits: int, unknown: list[Unknown]
) -> dict[str, Any]:
    """Disassembly and lines; none of a redacted recording."""
    if not has_source(trace):
        nothing: list[str | None] = [None] * len(ips)
        return {"texts": nothing, "lines": Lines(nothing, [0] * len(ips), nothing, [])}
    session = trace.opened.session
    texts = session.disassemble(ips, spaces, bits, trace.info.cs_base)
    return {"texts": [one or "(bad)" for one in texts], "lines": lines_of(session, ips, spaces, unknown)}


def _with_others(
    executed: Mapping[str, NDArray[Any]], more: Sequence[tuple[int, int, int, int]]
) -> tuple[dict[str, Any], _Indices]:
    """Columns of executed instructions and of those that did not run, and the order of both by RVA."""
    others = {name: np.zeros(len(more), cells.dtype) for name, cells in executed.items()}
    for column, name in enumerate(("ip", "space", "at", "size")):
        others[name][:] = [one[column] for one in more]
    for name in ("taken", "passed"):
        others[name][:] = -1
    columns = {name: np.concatenate([cells, others[name]]) for name, cells in executed.items()}
    order = np.argsort(columns["at"], kind="stable")
    return {name: cells[order] for name, cells in columns.items()}, order


def _bits(trace: CodeTrace, met: frozenset[int], executed: Mapping[str, NDArray[Any]]) -> int:
    """Width of the code: of several that were met, the one in which its instructions have their sizes."""
    if len(met) == 1:
        return next(iter(met))
    session = trace.opened.session
    columns = (executed[name].tolist() for name in ("ip", "space", "size"))
    cells = [one for one in zip(*columns, strict=True) if one[2]]
    for bits in _BITS:
        if bits in met and all(
            _core.instruction_size(session.read_code(ip, MOST_SIZE, space), bits) == size
            for ip, space, size in cells
        ):
            return bits
    return _BITS[0]


def _targets(trace: CodeTrace, edges: Table, jumps: Jumps, offsets: list[str]) -> list[list[str]]:
    """Names of what calls and jumps out of the function led to; offsets of targets of indirect jumps in it.

    The most frequent ones come first.
    """
    leaves = np.isin(jumps.kind, _CALLS) | (np.isin(jumps.kind, JUMPS) & (jumps.target < 0))
    leaves |= jumps.kind == int(_core.BranchKind.JUMP_INDIRECT)
    rows = np.flatnonzero(leaves & (jumps.source >= 0))
    edges = edges[rows]
    known = np.asarray(edges["to_known"])
    names = trace.symbolize(edges["to_ip"], space=edges["space"], modules=True)  # type: ignore[attr-defined]
    imports = edges.named("to_symbol_full")
    full = [name if is_known else other for name, is_known, other in zip(names, known, imports, strict=True)]
    times: list[dict[str, int]] = [{} for _ in offsets]
    ends = (jumps.source[rows].tolist(), jumps.target[rows].tolist(), jumps.kind[rows].tolist())
    cells = (*ends, jumps.count[rows].tolist(), full, edges["to_ip"].tolist())
    for row, target, kind, count, name, ip in zip(*cells, strict=True):
        is_inside = kind not in _CALLS and target >= 0
        shown = offsets[target] if is_inside else name or f"{ip:#x}"
        times[row][shown] = times[row].get(shown, 0) + count
    return [sorted(one, key=lambda name: (-one[name], name)) for one in times]
