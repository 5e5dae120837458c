"""Executed code of functions: instructions and source lines, with counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode.line_counts import ExecutedCode, line_executions
from ptkit.export.frame_rows import ProfileTrace, has_source
from ptkit.export.instruction_costs import locations_of, owners_of
from ptkit.support.groups import numbered
from ptkit.support.text import one_line

if TYPE_CHECKING:
    from ptkit.export.function_names import FunctionNames
    from ptkit.table import Table

__all__ = ["CodeTrace", "FunctionCode", "branch_directions", "read_code", "source_texts"]

_CONDITIONAL = int(_core.BranchKind.COND)
_BITS = 64
_MOST_SOURCE = 4 << 20  # bytes of a file
_MOST_LINES = 400
_AWAY = 40  # lines without executed ones, after which others are of other functions
_BEFORE = 3  # lines that are shown before the first executed one
_MOST_TEXT = 200  # characters of a line

_Indices = NDArray[np.int64]


class CodeTrace(ProfileTrace, Protocol):
    """A trace, or a part of one, of which code is shown."""

    def edges(self, **query: Any) -> Table:
        """Branches by source and target."""


@dataclass
class FunctionCode:
    """Executed code, ordered by function and location.

    Attributes
    ----------
    limits : numpy.ndarray of int64, shape (functions + 1,)
        Rows of each function.
    begin : numpy.ndarray of uint64, shape (functions,)
        RVA or address of the function; 0: not known.
    ip, space : numpy.ndarray
        Address of each instruction, in one of the spaces that have it.
    at : numpy.ndarray of uint64
        RVA in its file; the address elsewhere.
    count : numpy.ndarray of int64
        Executions.
    taken, passed : numpy.ndarray of int64
        Executions of a conditional branch that took it, and that did not; -1 of other instructions.
    path : numpy.ndarray of int32
        Index of the source file in `paths`; -1: not known.
    line : numpy.ndarray of int64
        Line in it.
    executions : numpy.ndarray of int64
        Executions of that line that began with the instruction.
    paths : list of str
    session : _core.Session
    bits : int
        16, 32 or 64.
    cs_base : int
    has_source : bool
        Source lines were found for a function that was asked for.
    """

    limits: _Indices
    begin: NDArray[np.uint64]
    ip: NDArray[np.uint64]
    space: NDArray[np.uint32]
    at: NDArray[np.uint64]
    count: _Indices
    taken: _Indices
    passed: _Indices
    path: NDArray[np.int32]
    line: _Indices
    executions: _Indices
    paths: list[str]
    session: _core.Session
    bits: int
    cs_base: int
    has_source: bool = False

    @property
    def has_instructions(self) -> bool:
        """Whether there is any code."""
        return bool(len(self.ip))

    def of(self, number: int) -> dict[str, Any]:
        """Members ``code`` and ``source`` of a function's details."""
        rows = slice(int(self.limits[number]), int(self.limits[number + 1]))
        if rows.start == rows.stop:
            return {"code": None, "source": None}
        source, index = self._source(rows, int(self.begin[number]))
        texts, missing = self._texts(rows)
        cells = (self.at, self.count, self.taken, self.passed)
        instructions = [
            [f"{at:x}", text, count, line, *((taken, passed) if taken >= 0 else ())]
            for text, line, at, count, taken, passed in zip(
                texts, index, *(one[rows].tolist() for one in cells), strict=True
            )
        ]
        return {"code": {"instructions": instructions, "bytes_missing": missing}, "source": source}

    def _texts(self, rows: slice) -> tuple[list[str], int]:
        """Instructions as text; how many of them have no bytes."""
        texts = self.session.disassemble(self.ip[rows], self.space[rows], self.bits, self.cs_base)
        return [text or "(bad)" for text in texts], texts.count("")

    def _source(self, rows: slice, begin_at: int) -> tuple[dict[str, Any] | None, list[int]]:
        """Lines of the file that the function begins in, and the index of each instruction's line."""
        path, line = self.path[rows], self.line[rows]
        known = np.flatnonzero((path >= 0) & (line > 0))
        none = [-1] * len(path)
        if not len(known):
            return None, none
        # Cold parts of a function may lie before its begin.
        entry = known[min(int(np.searchsorted(self.at[rows][known], begin_at)), len(known) - 1)]
        own = known[path[known] == path[entry]]
        lines, first = np.unique(line[own], return_inverse=True)
        low, high = _span(lines, int(line[entry]))
        name = self.paths[int(path[entry])]
        texts = source_texts(name)
        begin = max(low - _BEFORE, 1)
        if texts is None or high > len(texts):
            return None, none
        self.has_source = True
        counts: list[int | None] = [None] * (high - begin + 1)
        sums = np.bincount(first, self.executions[rows][own], len(lines))
        for at, count in zip(lines.tolist(), sums.tolist(), strict=True):
            if low <= at <= high:
                counts[at - begin] = int(count)
        index = np.where((path == path[entry]) & (line >= low) & (line <= high), line - begin, -1)
        shown = [one_line(text[:_MOST_TEXT].expandtabs()) for text in texts[begin - 1 : high]]
        return {"path": one_line(name), "first": begin, "lines": shown, "counts": counts}, index.tolist()


def _span(lines: NDArray[np.int64], begin: int) -> tuple[int, int]:
    """The first and the last line that are shown: those around `begin`, without far ones."""
    at = int(np.searchsorted(lines, begin))
    low = high = at
    while (
        high + 1 < len(lines)
        and lines[high + 1] - lines[high] <= _AWAY
        and lines[high + 1] - begin < _MOST_LINES
    ):
        high += 1
    while low > 0 and lines[low] - lines[low - 1] <= _BEFORE:
        low -= 1
    return int(lines[low]), int(lines[high])


@lru_cache(maxsize=64)
def source_texts(path: str) -> list[str] | None:
    """Lines of a source file of this machine; None: there is none."""
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > _MOST_SOURCE:
            return None
        return file.read_bytes().decode("utf-8", "replace").split("\n")
    except (OSError, ValueError):
        return None


def read_code(trace: CodeTrace, names: FunctionNames, **query: Any) -> FunctionCode:
    """Count executed instructions and source lines by function.

    Parameters
    ----------
    trace : Trace
    names : FunctionNames
        Functions by number.
    **query
        Which code; see `ptkit.decode.Query`.
    """
    session = trace.opened.session
    code, edges = trace.code_counts(**query)
    path, line, paths = _lines(trace, code)
    key, _ = numbered((line, path))
    executions = line_executions(code, key, edges, code.ends(edges))
    taken, passed = branch_directions(code, edges)
    locations = locations_of(trace, code.ip, code.space)
    owner = owners_of(trace, names, locations)
    inside = np.flatnonzero(owner >= 0)
    order = inside[np.lexsort((locations.at[inside], locations.file[inside], owner[inside]))]
    # Code that is mapped several times is one.
    same = (
        (owner[order][1:] == owner[order][:-1])
        & (locations.file[order][1:] == locations.file[order][:-1])
        & (locations.at[order][1:] == locations.at[order][:-1])
    )
    first = np.flatnonzero(np.concatenate([np.ones(min(len(order), 1), np.bool_), ~same]))
    one = order[first]

    def sums(values: _Indices) -> _Indices:
        return np.add.reduceat(values[order], first) if len(first) else values[:0]

    bits = session.code_bits
    entries = locations_of(trace, np.where(names.entry_known, names.entry, np.uint64(0)), names.space)
    return FunctionCode(
        np.searchsorted(owner[one], np.arange(len(names) + 1)),
        np.where(names.entry_known, entries.at, np.uint64(0)),
        code.ip[one],
        code.space[one],
        locations.at[one],
        sums(code.count),
        np.where(taken[one] < 0, -1, sums(taken)),
        np.where(taken[one] < 0, -1, sums(passed)),
        path[one],
        line[one],
        sums(executions),
        paths,
        session,
        bits[0] if len(bits) == 1 else _BITS,
        trace.info.cs_base,
    )


def _lines(trace: CodeTrace, code: ExecutedCode) -> tuple[NDArray[np.int32], _Indices, list[str]]:
    """Source file and line of each instruction; none where source is not shown."""
    if not has_source(trace):
        return np.full(len(code.ip), -1, np.int32), np.zeros(len(code.ip), np.int64), []
    path, line, paths = _core.name_lines(trace.opened.session, code.ip, code.space, None)
    return path, line.astype(np.int64), paths


def branch_directions(code: ExecutedCode, edges: Table) -> tuple[_Indices, _Indices]:
    """How often conditional branches were taken, and not; -1: it is none."""
    is_conditional = np.flatnonzero(np.asarray(edges["kind"]) == _CONDITIONAL)
    source, target, space, count = (
        np.asarray(edges[name])[is_conditional] for name in ("from_ip", "to_ip", "space", "count")
    )
    row = code.find(source, space)
    found = row >= 0
    row, source, target, count = row[found], source[found], target[found], count[found]
    is_next = source + code.size[row] == target
    taken, passed = (np.full(len(code.ip), -1, np.int64) for _ in range(2))
    for one in (taken, passed):
        one[row] = 0
    np.add.at(taken, row[~is_next], count[~is_next])
    np.add.at(passed, row[is_next], count[is_next])
    return taken, passed
