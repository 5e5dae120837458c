"""Coverage of a trace: its blocks and edges, counted by file and RVA."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.coverage.files import CodeFile, united
from ptkit.analysis.coverage.known import KnownCode
from ptkit.analysis.coverage.rows import BEGINS, LEVELS, PASSES, Rows, grouped
from ptkit.analysis.coverage.runs import CoverageRun
from ptkit.analysis.coverage.sets import Coverage
from ptkit.analysis.coverage.texts import Texts
from ptkit.decode import Plan
from ptkit.decode.line_counts import ExecutedCode, line_executions, read_code
from ptkit.support.groups import numbered
from ptkit.table import Table

__all__ = ["read_coverage"]

_COND, _JUMP, _JUMP_INDIRECT = (
    int(kind) for kind in (_core.BranchKind.COND, _core.BranchKind.JUMP, _core.BranchKind.JUMP_INDIRECT)
)
_Indices = NDArray[np.int64]


@dataclass(frozen=True)
class _Locations:
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


def read_coverage(blocks: Plan, edges: Table, files: Sequence[tuple[str, str]], source: str) -> Coverage:
    """Count what ran.

    Parameters
    ----------
    blocks : Plan
        Of the blocks, with `ptkit.decode.BLOCK_COLUMNS`.
    edges : Table
        Edges of the same selection, with `ptkit.decode.EDGE_COLUMNS`.
    files : sequence of (str, str)
        Path and build-id of each file of the trace.
    source : str
        Path or description of the trace.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for reading the blocks.
    """
    session = blocks.session
    code = read_code(blocks)
    all_files, numbers = united([CodeFile(*file) for file in files])
    locations = _locations(session, code.ip, code.space, numbers)
    executed = np.unique(locations.file[(locations.file >= 0) & (code.size > 0)])
    # The set has the files of the code that ran, and was selected, alone.
    new_numbers = np.full(len(all_files) + 1, -1, np.int32)
    new_numbers[executed] = np.arange(len(executed), dtype=np.int32)
    all_files, numbers = tuple(all_files[number] for number in executed.tolist()), new_numbers[numbers]
    locations = _Locations(new_numbers[locations.file], locations.rva)
    inside = (locations.file >= 0) & (code.size > 0)
    texts = Texts()
    names = _names(session, code, texts)
    to, origin = (code.find(edges[name], edges["space"]) for name in ("to_ip", "from_ip"))
    rows = {
        "code": _code_rows(session, code, locations, names, inside, (origin, to), all_files),
        "edges": _edge_rows(session, code, names, edges, origin, numbers),
        "functions": _function_rows(code, locations, names, inside, (origin, to), edges),
        "lines": _line_rows(code, names, edges),
    }
    blocks.after()  # warnings of debug files come about while lines are looked up
    run = CoverageRun(
        source,
        0 if edges.errors is None else len(edges.errors),
        0 if edges.gaps is None else len(edges.gaps),
        int(code.instructions[~inside].sum()),
    )
    ranges = tuple(blocks.selection.get("ips") or ())
    known = KnownCode(session, numbers, ranges)
    return Coverage(all_files, (run,), texts.all(), rows, (known,))


def _locations(
    session: _core.Session, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], numbers: NDArray[np.int32]
) -> _Locations:
    files, rvas = _core.name_files(session, ips, spaces, None, None, True, True)
    of_file = np.append(numbers, np.int32(-1))  # memory without a file has numbers after those of files
    return _Locations(of_file[np.where((files >= 0) & (files < len(numbers)), files, -1)], rvas)


def _names(session: _core.Session, code: ExecutedCode, texts: Texts) -> _Names:
    sources, lines, paths = _core.name_lines(session, code.ip, code.space, None)
    symbols, inside, functions = _core.name_symbols(session, code.ip, code.space, None, None, True, False)
    # Line 0: code that the compiler gives no line.
    has_line = (sources >= 0) & (lines > 0)
    return _Names(
        np.where(has_line, texts.add(paths, sources), -1).astype(np.int32),
        np.where(has_line, lines, 0).astype(np.uint32),
        texts.add(functions, symbols),
        np.where(symbols >= 0, inside, 0).astype(np.uint64),
    )


def _new(level: str, size: int) -> Rows:
    return np.zeros(size, LEVELS[level].dtype)


def _code_rows(
    session: _core.Session,
    code: ExecutedCode,
    locations: _Locations,
    names: _Names,
    inside: NDArray[np.bool_],
    ends: tuple[_Indices, _Indices],
    files: tuple[CodeFile, ...],
) -> Rows:
    """Instructions; blocks begin at targets, behind branches, and where the code before them did not run."""
    before = code.before()
    origin, target = ends
    begins = before < 0
    begins[target[target >= 0]] = True
    begins |= np.isin(before, origin[origin >= 0])
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
    unidentified = np.flatnonzero(inside & ~has_id[locations.file])
    rows["check"][unidentified] = _checks(session, code, before, unidentified)
    return grouped(LEVELS["code"], rows[inside])


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
    names: _Names,
    edges: Table,
    origin: _Indices,
    numbers: NDArray[np.int32],
) -> Rows:
    """Edges of which both ends lie in files."""
    spaces, kinds = np.asarray(edges["space"]), np.asarray(edges["kind"])
    ends = {
        end: _locations(session, np.asarray(edges[f"{end}_ip"]), spaces, numbers) for end in ("from", "to")
    }
    # Of a conditional branch that did not run with the selected code, the next instruction is not known.
    kept = (origin >= 0) | (kinds != _COND)
    for location in ends.values():
        kept &= location.file >= 0
    is_next = (kinds == _COND) & (origin >= 0)
    is_next[is_next] = (code.ip[origin] + code.size[origin] == edges["to_ip"])[is_next]
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
        rows[name] = np.where(origin >= 0, np.append(values, none)[origin], none)
    return grouped(LEVELS["edges"], rows[kept])


def _function_rows(
    code: ExecutedCode,
    locations: _Locations,
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
    rows = _new("functions", len(code.ip))
    named = names.function >= 0
    rows["file"], rows["function"] = locations.file, names.function
    rows["rva"] = np.where(named, rvas, 0)
    rows["count"], rows["instructions"] = np.maximum(entered, 0), code.instructions
    at_begin = named & (begins == 0)
    rows["source"] = np.where(at_begin, names.source, -1)
    rows["line"] = np.where(at_begin, names.line, 0)
    # The row of the begin comes first in each group: it has the lowest address.
    return grouped(LEVELS["functions"], rows[inside])


def _line_rows(code: ExecutedCode, names: _Names, edges: Table) -> Rows:
    """Source lines, counted by gcov's rule; all files that have code of a line together."""
    numbers, _ = numbered((names.source, names.line, np.where(names.source < 0, names.function, -1)))
    rows = _new("lines", len(code.ip))
    rows["source"], rows["line"] = names.source, names.line
    rows["count"] = line_executions(code, numbers, edges)
    rows["instructions"] = code.instructions
    return grouped(LEVELS["lines"], rows[names.source >= 0])
