"""Coverage of a trace: its blocks and edges, counted by file and RVA."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.coverage.files import CodeFile, united
from ptkit.analysis.coverage.known import KnownCode
from ptkit.analysis.coverage.lines import source_lines
from ptkit.analysis.coverage.rows import BEGINS, LEVELS, PASSES, Rows, grouped
from ptkit.analysis.coverage.runs import CoverageRun
from ptkit.analysis.coverage.sets import Coverage
from ptkit.analysis.coverage.texts import Texts
from ptkit.decode import Plan
from ptkit.decode.line_counts import ExecutedCode, line_executions
from ptkit.table import Table

__all__ = ["Locations", "locate", "read_coverage"]

_COND, _JUMP, _JUMP_INDIRECT = (
    int(kind) for kind in (_core.BranchKind.COND, _core.BranchKind.JUMP, _core.BranchKind.JUMP_INDIRECT)
)
_Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Locations:
    """Where addresses lie: number of the file, -1 outside of files, and the RVA in it."""

    file: NDArray[np.int32]
    rva: NDArray[np.uint64]


@dataclass(frozen=True)
class _Names:
    """Source lines and functions of instructions, as numbers of texts; -1: none."""

    source: NDArray[np.int32]
    line: NDArray[np.uint32]
    function: NDArray[np.int32]
    inside: NDArray[np.uint64]  # bytes from the begin of the function


def read_coverage(
    plan: Plan, code: ExecutedCode, edges: Table, files: Sequence[tuple[str, str]], source: str
) -> Coverage:
    """Make a set of counted code.

    Parameters
    ----------
    plan : Plan
        Of what was counted.
    code : ExecutedCode
        What ran.
    edges : Table
        Its edges, with `ptkit.decode.EDGE_COLUMNS`.
    files : sequence of (str, str)
        Path and build-id of each file of the trace.
    source : str
        Path or description of the trace.
    """
    session = plan.session
    all_files, numbers = united([CodeFile(*file) for file in files])
    locations = locate(session, code.ip, code.space, numbers)
    inside = (locations.file >= 0) & (code.size > 0)
    executed = np.flatnonzero(np.bincount(locations.file[inside], minlength=1))
    # The set has the files of the code that ran, and was selected, alone.
    new_numbers = np.full(len(all_files) + 1, -1, np.int32)
    new_numbers[executed] = np.arange(len(executed), dtype=np.int32)
    all_files, numbers = tuple(all_files[number] for number in executed.tolist()), new_numbers[numbers]
    locations = Locations(new_numbers[locations.file], locations.rva)
    texts = Texts()
    names = _names(session, code, texts)
    ends = code.ends(edges)
    rows = {
        "code": _code_rows(session, code, locations, names, inside, ends, all_files),
        "edges": _edge_rows(session, code, locations, names, edges, ends, numbers),
        "functions": _function_rows(code, locations, names, inside, ends, edges),
        "lines": _line_rows(code, names, edges, ends),
    }
    plan.after()  # warnings of debug files come about while lines are looked up
    run = CoverageRun(
        source,
        0 if edges.errors is None else len(edges.errors),
        0 if edges.gaps is None else len(edges.gaps),
        int(code.instructions[~inside].sum()),
    )
    ranges = tuple(plan.selection.get("ips") or ())
    known = KnownCode(session, numbers, ranges)
    return Coverage(all_files, (run,), texts.all(), rows, (known,))


def locate(
    session: _core.Session, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], numbers: NDArray[np.int32]
) -> Locations:
    """Return where addresses lie; `numbers`: the number to return of each file of the trace."""
    files, rvas = _core.name_files(session, ips, spaces, None, None, True, True)
    of_file = np.append(numbers, np.int32(-1))  # memory without a file has numbers after those of files
    return Locations(of_file[np.where((files >= 0) & (files < len(numbers)), files, -1)], rvas)


def _names(session: _core.Session, code: ExecutedCode, texts: Texts) -> _Names:
    symbols, inside, functions = _core.name_symbols(session, code.ip, code.space, None, None, True, False)
    sources, lines = source_lines(session, code.ip, code.space, (symbols >= 0) & (inside == 0), texts)
    return _Names(
        sources,
        lines,
        texts.add(functions, symbols),
        np.where(symbols >= 0, inside, 0).astype(np.uint64),
    )


def _new(level: str, size: int) -> Rows:
    return np.zeros(size, LEVELS[level].dtype)


def _code_rows(
    session: _core.Session,
    code: ExecutedCode,
    locations: Locations,
    names: _Names,
    inside: NDArray[np.bool_],
    ends: tuple[_Indices, _Indices],
    files: tuple[CodeFile, ...],
) -> Rows:
    """Instructions; blocks begin at targets, behind branches, and where the code before them did not run."""
    before = code.before
    origin, target = ends
    begins = before < 0
    begins[target[target >= 0]] = True
    is_branch = np.zeros(len(before) + 1, np.bool_)  # the last one is that of index -1
    is_branch[origin] = True
    begins |= is_branch[before]
    rows = _new("code", len(code.ip))
    for name, values in (
        ("file", locations.file),
        ("rva", locations.rva),
        ("size", code.size),
        ("flags", np.where(begins, BEGINS, 0)),
        ("source", names.source),
        ("line", names.line),
        ("function", names.function),
        ("count", code.count),
    ):
        rows[name] = values
    has_id = np.array([bool(file.build_id) for file in files] + [True])
    if not has_id.all():
        unidentified = np.flatnonzero(inside & ~has_id[locations.file])
        rows["check"][unidentified] = _checks(session, code, before, unidentified)
    return grouped(LEVELS["code"], _of(rows, inside))


def _checks(
    session: _core.Session, code: ExecutedCode, before: _Indices, wanted: NDArray[np.intp]
) -> NDArray[np.uint32]:
    """Checksums of the bytes of instructions, which are read run by run."""
    found = np.zeros(len(wanted), np.uint32)
    is_first = np.ones(len(wanted), np.bool_)
    is_first[1:] = before[wanted[1:]] != wanted[:-1]
    starts = np.append(np.flatnonzero(is_first), len(wanted))
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = wanted[begin:end]
        first, last = int(rows[0]), int(rows[-1])
        low = int(code.ip[first])
        text = session.read_code(low, int(code.ip[last]) + int(code.size[last]) - low, int(code.space[first]))
        offsets = (code.ip[rows] - np.uint64(low)).tolist()
        for row, (at, size) in enumerate(zip(offsets, code.size[rows].tolist(), strict=True), begin):
            found[row] = zlib.crc32(text[at : at + size])
    return found


def _edge_rows(
    session: _core.Session,
    code: ExecutedCode,
    locations: Locations,
    names: _Names,
    edges: Table,
    of_edges: tuple[_Indices, _Indices],
    numbers: NDArray[np.int32],
) -> Rows:
    """Edges of which both ends lie in files."""
    spaces, kinds = np.asarray(edges["space"]), np.asarray(edges["kind"])
    ends = {
        end: _end_locations(session, np.asarray(edges[f"{end}_ip"]), spaces, numbers, locations, index)
        for end, index in zip(("from", "to"), of_edges, strict=True)
    }
    origin, _ = of_edges
    # Of a conditional branch that did not run with the selected code, the next instruction is not known.
    kept = (origin >= 0) | (kinds != _COND)
    for location in ends.values():
        kept &= location.file >= 0
    is_next = (kinds == _COND) & (origin >= 0)
    source = origin[is_next]
    is_next[is_next] = code.ip[source] + code.size[source] == np.asarray(edges["to_ip"])[is_next]
    rows = _new("edges", len(kinds))
    for end, location in ends.items():
        rows[f"{end}_file"], rows[f"{end}_rva"] = location.file, location.rva
    rows["kind"], rows["count"] = kinds, edges["count"]
    rows["flags"] = np.where(is_next, PASSES, 0)
    for name, values, none in (
        ("source", names.source, -1),
        ("line", names.line, 0),
        ("function", names.function, -1),
    ):
        rows[name] = _at(values, origin, none)
    return grouped(LEVELS["edges"], _of(rows, kept))


def _end_locations(
    session: _core.Session,
    ips: NDArray[np.uint64],
    spaces: NDArray[np.uint32],
    numbers: NDArray[np.int32],
    known: Locations,
    index: _Indices,
) -> Locations:
    """Locations of addresses, most of which are those of instructions with an index."""
    file, rva = _at(known.file, index, -1), _at(known.rva, index, 0)
    others = np.flatnonzero(index < 0)
    found = locate(session, ips[others], spaces[others], numbers)
    file[others], rva[others] = found.file, found.rva
    return Locations(file, rva)


def _at(values: NDArray[Any], index: _Indices, none: int) -> NDArray[Any]:
    """Values with an index; of index -1: `none`."""
    if not len(values):
        return np.full(len(index), none, values.dtype)
    found = values[index]
    found[index < 0] = none
    return found


def _of(rows: Rows, chosen: NDArray[np.bool_]) -> Rows:
    return rows if chosen.all() else rows[chosen]


def _function_rows(
    code: ExecutedCode,
    locations: Locations,
    names: _Names,
    inside: NDArray[np.bool_],
    ends: tuple[_Indices, _Indices],
    edges: Table,
) -> Rows:
    """Functions: what ran of each, and how often it was entered at its begin.

    A jump back to the begin from within the function is a loop. Code without a symbol is one row of its file.
    """
    entered = np.where((names.function >= 0) & (names.inside == 0), code.count, 0)
    begins = names.inside
    rvas = locations.rva - begins
    origin, target = ends
    is_jump = np.isin(np.asarray(edges["kind"]), (_COND, _JUMP, _JUMP_INDIRECT))
    jumps = np.flatnonzero(is_jump & (origin >= 0) & (target >= 0))
    own = names.function[origin[jumps]] == names.function[target[jumps]]
    own &= (rvas[origin[jumps]] == rvas[target[jumps]]) & (begins[target[jumps]] == 0)
    loops = jumps[own]
    np.subtract.at(entered, target[loops], np.asarray(edges["count"])[loops])
    named = names.function >= 0
    rvas = np.where(named, rvas, 0)
    # Instructions of one function follow each other: they are added up before they are sorted.
    is_first = np.ones(len(rvas), np.bool_)
    for key in (locations.file, rvas, names.function, inside):
        is_first[1:] &= key[1:] == key[:-1]
    is_first[1:] = ~is_first[1:]
    first = np.flatnonzero(is_first)
    rows = _new("functions", len(first))
    if not len(rows):
        return rows
    rows["file"], rows["rva"], rows["function"] = locations.file[first], rvas[first], names.function[first]
    rows["count"] = np.add.reduceat(np.maximum(entered, 0), first)
    rows["instructions"] = np.add.reduceat(code.instructions, first)
    # The row of the begin comes first in each group: it has the lowest address.
    at_begin = (named & (begins == 0))[first]
    rows["source"] = np.where(at_begin, names.source[first], -1)
    rows["line"] = np.where(at_begin, names.line[first], 0)
    return grouped(LEVELS["functions"], _of(rows, inside[first]))


def _line_rows(code: ExecutedCode, names: _Names, edges: Table, ends: tuple[_Indices, _Indices]) -> Rows:
    """Source lines, counted by gcov's rule; all files that have code of a line together."""
    has_line = names.source >= 0
    keys = np.where(has_line, names.source.astype(np.int64) << 32 | names.line, -1 - names.function)
    kept = np.flatnonzero(has_line)
    rows = _new("lines", len(kept))
    rows["source"], rows["line"] = names.source[kept], names.line[kept]
    rows["count"] = line_executions(code, keys, edges, ends)[kept]
    rows["instructions"] = code.instructions[kept]
    return grouped(LEVELS["lines"], rows)
