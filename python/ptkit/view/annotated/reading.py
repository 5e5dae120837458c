"""Counts of the code of chosen functions: by instruction, with what did not run of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.flow import JUMPS, FunctionFlow, Jumps, Loop
from ptkit.decode import Plan
from ptkit.decode.line_counts import ExecutedCode, count_blocks, line_executions, selected_code
from ptkit.decode.read import iterate
from ptkit.export.frame_rows import has_source
from ptkit.support.groups import numbered
from ptkit.table import Table
from ptkit.view.annotated.extents import ChosenFunction, Extent, signed
from ptkit.view.code import CodeTrace, branch_directions

__all__ = ["EDGE_COLUMNS", "INSTRUCTION_COLUMNS", "FunctionRows", "Lines", "read_functions"]

#: Columns of edges that are needed.
EDGE_COLUMNS = ("from_ip", "to_ip", "kind", "count", "space", "to_known", "to_symbol_full")

INSTRUCTION_COLUMNS = ("ip", "size", "mode", "space")
_ROWS = 1 << 16
_MOST_SWEPT = 1 << 20  # bytes of an extent in which code that did not run is looked for
_MOST_SIZE = 15  # bytes of an instruction
_BITS = (64, 32, 16)
_CALLS = tuple(int(kind) for kind in (_core.BranchKind.CALL, _core.BranchKind.CALL_INDIRECT))
_Indices = NDArray[np.int64]


@dataclass
class Lines:
    """Source lines and inlined functions of instructions; None: not known. `idle`: lines of unknown bytes."""

    path: list[str | None]
    line: list[int]
    inlined: list[str | None]
    idle: list[tuple[str, int]]


@dataclass(frozen=True)
class Unknown:
    """Bytes that did not run: address and address space, RVA, how many."""

    ip: int
    space: int
    at: int
    size: int


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
    is_replaced : bool
        Other code was at its addresses for a time.
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
    is_replaced: bool
    loops: list[Loop]
    other_loops: int
    texts: Sequence[str | None]
    lines: Lines

    @property
    def instructions(self) -> int:
        """How many were executed."""
        return int(self.count.sum())


@dataclass(frozen=True)
class _Counts:
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
    counts = _counts(trace, functions, rows, edges)
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


def _counts(trace: CodeTrace, functions: Sequence[ChosenFunction], plan: Plan, edges: Table) -> _Counts:
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
    if has_source(trace):
        path, line, _ = _core.name_lines(session, code.ip, code.space, None)
        keys, _ = numbered((line.astype(np.int64), path))
        executions = line_executions(code, keys, edges)
    source, target = (code.find(edges[name], edges["space"]) for name in ("from_ip", "to_ip"))
    return _Counts(
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


def _function(
    trace: CodeTrace,
    function: ChosenFunction,
    number: int,
    counts: _Counts,
    ranges: Sequence[tuple[int, int, int | None]],
) -> FunctionRows:
    """The instructions of a function, those of all places where it is mapped together."""
    code = counts.code
    rows = np.flatnonzero(counts.owner == number)
    merged, first = numbered((counts.at[rows],))
    size = len(first)

    def sums(values: _Indices) -> _Indices:
        found = np.zeros(size, np.int64)
        np.add.at(found, merged, values[rows])
        return found

    def first_of(values: NDArray[Any]) -> NDArray[Any]:
        return values[rows[first]]

    is_branch = first_of(counts.taken) >= 0
    local = np.full(len(code.ip) + 1, -1, np.int64)
    local[rows] = merged
    touching = np.flatnonzero((local[counts.source] >= 0) | (local[counts.target] >= 0))
    kinds, times = (np.asarray(counts.edges[name])[touching] for name in ("kind", "count"))
    jumps = Jumps(local[counts.source[touching]], local[counts.target[touching]], kinds, times)
    at, sizes, count = first_of(counts.at), first_of(code.size).astype(np.int64), sums(code.count)
    follows = np.zeros(size, np.bool_)
    follows[1:] = at[:-1] + sizes[:-1].astype(np.uint64) == at[1:]
    flow = FunctionFlow(count, follows, jumps)
    entry = np.flatnonzero(at == np.uint64(function.begin))
    begin = int(entry[0]) if len(entry) else None
    bits = _bits(trace, counts.bits, first_of(code.ip), first_of(code.space), sizes)
    spaces = set(code.space[rows].tolist())
    more, unknown = _not_run(trace, function, (at, sizes), bits, spaces, ranges)
    executed = {
        "ip": first_of(code.ip),
        "space": first_of(code.space),
        "at": at,
        "size": sizes,
        "count": count,
        "taken": np.where(is_branch, sums(counts.taken), -1),
        "passed": np.where(is_branch, sums(counts.passed), -1),
        "executions": sums(counts.executions),
        "is_hottest": flow.hottest(begin),
    }
    cells, order = _with_others(executed, more)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    offsets = [signed(one - function.begin) for one in at.tolist()]
    targets = _targets(trace, counts.edges[touching], jumps, offsets)
    own_jumps = np.isin(jumps.kind, JUMPS) & (jumps.target == begin)
    own_jumps[own_jumps] = _are_inside(function, counts.edges[touching[own_jumps]])
    return FunctionRows(
        function,
        **cells,
        targets=[targets[row] if row < size else [] for row in order.tolist()],
        calls=0 if begin is None else int(count[begin]) - int(jumps.count[own_jumps].sum()),
        unknown=unknown,
        is_replaced=function.is_replaced,
        loops=[
            Loop(int(position[one.head]), np.sort(position[one.rows]), one.count, one.entries)
            for one in flow.loops()
        ],
        other_loops=flow.other_loops,
        **_texts(trace, cells["ip"], cells["space"], bits, unknown),
    )


def _are_inside(function: ChosenFunction, edges: Table) -> NDArray[np.bool_]:
    """Whether branches are of the function: also of code that is not selected."""
    ips, spaces = np.asarray(edges["from_ip"]), np.asarray(edges["space"])
    inside = np.zeros(len(ips), np.bool_)
    for extent in function.extents:
        inside |= extent.rows(ips, spaces)
    return inside


def _texts(
    trace: CodeTrace, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], bits: int, unknown: list[Unknown]
) -> dict[str, Any]:
    """Disassembly and lines; none of a redacted recording."""
    if not has_source(trace):
        nothing: list[str | None] = [None] * len(ips)
        return {"texts": nothing, "lines": Lines(nothing, [0] * len(ips), nothing, [])}
    session = trace.opened.session
    texts = session.disassemble(ips, spaces, bits, trace.info.cs_base)
    return {"texts": [one or "(bad)" for one in texts], "lines": _lines(session, ips, spaces, unknown)}


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


def _bits(
    trace: CodeTrace,
    met: frozenset[int],
    ips: NDArray[np.uint64],
    spaces: NDArray[np.uint32],
    sizes: _Indices,
) -> int:
    """Width of the code: of several that were met, the one in which its instructions have their sizes."""
    if len(met) == 1:
        return next(iter(met))
    session = trace.opened.session
    cells = list(zip(ips.tolist(), spaces.tolist(), sizes.tolist(), strict=True))
    for bits in _BITS:
        if bits in met and all(
            _core.instruction_size(session.read_code(ip, _MOST_SIZE, space), bits) == size
            for ip, space, size in cells
            if size
        ):
            return bits
    return _BITS[0]


def _not_run(
    trace: CodeTrace,
    function: ChosenFunction,
    ran: tuple[NDArray[np.uint64], _Indices],
    bits: int,
    spaces: set[int],
    ranges: Sequence[tuple[int, int, int | None]],
) -> tuple[list[tuple[int, int, int, int]], list[Unknown]]:
    """Instructions that did not run: address, space, RVA and size of each; and bytes that are not known.

    They are read one after the other from the begin, and behind each instruction that ran.
    """
    sizes = dict(zip(ran[0].tolist(), ran[1].tolist(), strict=True))
    found: dict[int, tuple[int, int, int, int]] = {}
    unknown: list[Unknown] = []
    seen: set[int] = set()
    for extent in sorted(function.extents, key=lambda one: one.space not in spaces):
        if extent.at in seen:
            continue  # it is mapped in several places
        seen.add(extent.at)
        executed = sorted(at for at in sizes if extent.at <= at <= extent.at + extent.last - extent.first)
        space = extent.space if extent.space is not None else min(spaces, default=0)
        begin, end = extent.at, min(extent.last - extent.first + 1, _MOST_SWEPT) + extent.at
        for at in [*executed, end]:
            if begin < at:
                some, rest = _sweep(trace, extent, (begin, at), space, bits)
                found |= {one[2]: one for one in some if _is_selected(one[0], space, ranges)}
                if rest is not None and _is_selected(rest.ip, space, ranges):
                    unknown.append(rest)
            begin = max(begin, at + max(sizes.get(at, 0), 1))
    return [one for at, one in found.items() if at not in sizes], unknown


def _sweep(
    trace: CodeTrace, extent: Extent, bounds: tuple[int, int], space: int, bits: int
) -> tuple[list[tuple[int, int, int, int]], Unknown | None]:
    """Read the instructions between two RVAs, as far as they are known."""
    at, end = bounds
    ip = extent.first + at - extent.at
    code = trace.opened.session.read_code(ip, end - at, space)
    found = []
    offset = 0
    while offset < len(code):
        size = _core.instruction_size(code[offset : offset + _MOST_SIZE], bits)
        if size == 0 or offset + size > end - at:
            break
        found.append((ip + offset, space, at + offset, size))
        offset += size
    left = end - at - offset
    return found, Unknown(ip + offset, space, at + offset, left) if left else None


def _is_selected(ip: int, space: int, ranges: Sequence[tuple[int, int, int | None]]) -> bool:
    return not ranges or any(
        low <= ip <= last and (of_space is None or of_space == space) for low, last, of_space in ranges
    )


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


def _lines(
    session: _core.Session, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], unknown: list[Unknown]
) -> Lines:
    path, line, paths = _core.name_lines(session, ips, spaces, None)
    levels = _core.inline_levels(session, ips, spaces)
    codes, names = _core.name_inlined(session, ips, spaces, None, None, levels)
    inlined = np.where(levels > 0, codes, -1)
    known = (path >= 0) & (line > 0)
    return Lines(
        [
            paths[one] if is_known else None
            for one, is_known in zip(path.tolist(), known.tolist(), strict=True)
        ],
        np.where(known, line, 0).tolist(),
        [names[one] if one >= 0 else None for one in inlined.tolist()],
        [one for some in unknown for one in _idle_lines(session, some)],
    )


def _idle_lines(session: _core.Session, unknown: Unknown) -> list[tuple[str, int]]:
    """Lines of bytes that did not run, by the debug information."""
    ips = np.arange(unknown.ip, unknown.ip + unknown.size, dtype=np.uint64)
    path, line, paths = _core.name_lines(session, ips, np.full(len(ips), unknown.space, np.uint32), None)
    pairs = zip(path.tolist(), line.tolist(), strict=True)
    return list(dict.fromkeys((paths[one], number) for one, number in pairs if one >= 0 and number > 0))
