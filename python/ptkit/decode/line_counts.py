"""How often source lines were executed, and with how many instructions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode.plan import Plan
from ptkit.decode.read import iterate, read
from ptkit.support.groups import numbered
from ptkit.support.schema import schema_of
from ptkit.table import Columns, Table

__all__ = [
    "BLOCK_COLUMNS",
    "EDGE_COLUMNS",
    "ExecutedCode",
    "count_blocks",
    "line_executions",
    "read_code",
    "read_counts",
    "read_lines",
    "selected_code",
]

BLOCK_COLUMNS = ("ip", "instructions", "mode", "space")
EDGE_COLUMNS = ("from_ip", "to_ip", "kind", "count", "space")
_ROWS = 1 << 16  # such a part stays in the second level cache
_COUNTED = ("from_ip", "to_ip", "kind", "space", "count")
_WITH_BLOCKS = {"counted_blocks": True}
_CALLS = tuple(
    int(kind) for kind in (_core.BranchKind.CALL, _core.BranchKind.CALL_INDIRECT, _core.BranchKind.FAR_CALL)
)
_JUMPS = tuple(
    int(kind) for kind in (_core.BranchKind.COND, _core.BranchKind.JUMP, _core.BranchKind.JUMP_INDIRECT)
)
_NO_LINE = np.iinfo(np.int64).min
_Indices = NDArray[np.int64]


@dataclass(frozen=True)
class ExecutedCode:
    """The executed instructions, by space and address."""

    ip: NDArray[np.uint64]
    space: NDArray[np.uint32]
    size: NDArray[np.uint8]
    count: NDArray[np.int64]
    instructions: NDArray[np.int64]

    def find(self, ip: NDArray[np.uint64], space: NDArray[np.uint32]) -> _Indices:
        """Return the index of each address, or -1."""
        if len(space) and (space == space[0]).all():
            return self._find_in(int(space[0]), ip)
        found = np.full(len(ip), -1, np.int64)
        for one in np.unique(space).tolist():
            rows = np.flatnonzero(space == one)
            found[rows] = self._find_in(one, ip[rows])
        return found

    def _find_in(self, space: int, ip: NDArray[np.uint64]) -> _Indices:
        begin, end = np.searchsorted(self.space, [space, space + 1])
        if begin == end:
            return np.full(len(ip), -1, np.int64)
        own = self.ip[begin:end]
        at = np.searchsorted(own, ip)
        at[at == len(own)] = 0
        return np.where(own[at] == ip, at + begin, -1)

    def ends(self, edges: Table) -> tuple[_Indices, _Indices]:
        """Return the indices of the source and of the target of each edge, or -1."""
        spaces = np.asarray(edges["space"])
        return self.find(np.asarray(edges["from_ip"]), spaces), self.find(np.asarray(edges["to_ip"]), spaces)

    @cached_property
    def before(self) -> _Indices:
        """The index of the instruction that each one follows in memory, or -1."""
        index = np.arange(len(self.ip), dtype=np.int64) - 1
        if len(index) > 1:
            follows = (self.space[1:] == self.space[:-1]) & (self.ip[:-1] + self.size[:-1] == self.ip[1:])
            index[1:][~follows] = -1
        return index


def count_blocks(parts: Iterator[Table]) -> _core.BlockCounts:
    """Count blocks; `parts` have the columns `BLOCK_COLUMNS`."""
    blocks = _core.BlockCounts()
    for part in parts:
        blocks.add(part["ip"], part["instructions"], part["mode"], part["space"])
    return blocks


def read_counts(plan: Plan) -> tuple[ExecutedCode, Table]:
    """Count edges, and the instructions at the selected addresses, by one pass through the branches.

    Parameters
    ----------
    plan : Plan
        Of the edges, with `EDGE_COLUMNS`. Blocks are selected by the same query: where they overlap its
        addresses.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for reading edges.
    """
    counts = read(replace(plan, selection=plan.selection | _WITH_BLOCKS))
    blocks = _core.BlockCounts()
    is_block = blocks.add_counted(*(counts.data.arrays[name] for name in _COUNTED))
    edges = counts[~is_block]
    edges.errors, edges.gaps = counts.errors, counts.gaps
    return selected_code(blocks.instructions(plan.session), plan), edges


def read_code(blocks: Plan) -> ExecutedCode:
    """Count the instructions at the selected addresses by the rows of blocks, where edges cannot be selected.

    Parameters
    ----------
    blocks : Plan
        Of the blocks, with `BLOCK_COLUMNS`.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for reading the blocks.
    """
    return selected_code(
        count_blocks(iterate(blocks, _ROWS, reuse=True)).instructions(blocks.session), blocks
    )


def selected_code(found: dict[str, NDArray[Any]], plan: Plan) -> ExecutedCode:
    """The counted instructions at the selected addresses."""
    ranges = plan.selection.get("ips")
    if ranges:
        kept = np.zeros(len(found["ip"]), np.bool_)
        for low, last, space in ranges:
            inside = (found["ip"] >= np.uint64(low)) & (found["ip"] <= np.uint64(last))
            kept |= inside if space is None else inside & (found["space"] == space)
        found = {name: cells[kept] for name, cells in found.items()}
    return ExecutedCode(**found)


def line_executions(
    code: ExecutedCode, line: _Indices, edges: Table, ends: tuple[_Indices, _Indices]
) -> NDArray[np.int64]:
    """Return how often the line of each instruction was executed, from that instruction on.

    This is gcov's rule. A basic block is of one line, the highest number that an instruction of it has. A
    line is executed when control comes to one of its blocks from a block of another line, or by a call, or
    jumps back within the line (a loop). A line that has no block is executed as often as the blocks with
    parts of it.

    Parameters
    ----------
    code : ExecutedCode
    line : numpy.ndarray of int64
        Number of the line of each instruction; in a file, the numbers ascend with the lines.
    edges : Table
    ends : tuple of two arrays
        Of `ExecutedCode.ends`.
    """
    source, to = ends
    found = np.zeros(len(code.ip), np.int64)
    if not len(found):
        return found
    block, first = _blocks(code, source, to)
    of_block = _lines_of_blocks(code, line, edges, source, first)
    at = first.copy()  # the first instruction of the line in each block
    owned = np.flatnonzero(line == of_block[block])
    at[block[owned[::-1]]] = owned[::-1]
    inside = to >= 0
    to, source, kind, count = to[inside], source[inside], edges["kind"][inside], edges["count"][inside]
    jumped = np.zeros(len(first), np.int64)
    np.add.at(jumped, block[to], count)
    # A return comes from the line of the call that it returns to.
    source = np.where(kind == int(_core.BranchKind.RETURN), code.before[to], source)
    loops = np.isin(kind, _JUMPS) & (to <= source)
    other = (source < 0) | np.isin(kind, _CALLS) | loops
    other |= of_block[block[source]] != of_block[block[to]]
    other &= of_block[block[to]] != _NO_LINE
    np.add.at(found, at[block[to[other]]], count[other])
    before = code.before[first]
    straight = ((before < 0) | (of_block[block[before]] != of_block)) & (of_block != _NO_LINE)
    found[at[straight]] += np.maximum(code.count[first] - jumped, 0)[straight]
    parts = np.flatnonzero(~np.isin(line, of_block))
    _, once = numbered((block[parts], line[parts]))
    found[parts[once]] = code.count[parts[once]]
    return found


def _lines_of_blocks(
    code: ExecutedCode, line: _Indices, edges: Table, source: _Indices, first: _Indices
) -> _Indices:
    """The line of each basic block; _NO_LINE: of none.

    A jump that is a block of its own leads back to the begin of a loop, and has its line, or is all the code
    of a line (`continue`).
    """
    of_block = np.maximum.reduceat(line, first)
    is_jump = np.zeros(len(code.ip), np.bool_)
    is_jump[source[(source >= 0) & (np.asarray(edges["kind"]) == int(_core.BranchKind.JUMP))]] = True
    alone = is_jump[first] & (np.diff(first, append=len(code.ip)) == 1)
    of_block[alone & np.isin(of_block, of_block[~alone])] = _NO_LINE
    return of_block


def _blocks(code: ExecutedCode, source: _Indices, to: _Indices) -> tuple[_Indices, _Indices]:
    """The number of the basic block of each instruction, and the first instruction of each block."""
    begins = code.before < 0
    begins[to[to >= 0]] = True
    behind = source[source >= 0] + 1
    begins[behind[behind < len(begins)]] = True
    begins[1:] |= code.count[1:] != code.count[:-1]
    return np.cumsum(begins) - 1, np.flatnonzero(begins)


@dataclass(frozen=True)
class _Owners:
    """The functions of instructions: inlined ones where the code is of inlined calls."""

    number: _Indices
    level: NDArray[np.uint8]  # inlined calls that the instruction is in

    def first_of_lines(self, line: _Indices, code: ExecutedCode) -> _Indices:
        """The first instruction of each line that is of the function with most instructions of the line."""
        functions = int(self.number.max(initial=0)) + 1
        pairs, first, pair = np.unique(line * functions + self.number, return_index=True, return_inverse=True)
        work = _sums(pair, code.instructions, len(pairs))
        order = np.lexsort((first, ~work, pairs // functions))
        _, most = np.unique((pairs // functions)[order], return_index=True)
        found: _Indices = first[order[most]]
        return found


def _owners(plan: Plan, code: ExecutedCode, symbols: NDArray[np.int32]) -> _Owners:
    levels = _core.inline_levels(plan.session, code.ip, code.space)
    inlined, _ = _core.name_inlined(plan.session, code.ip, code.space, None, None, levels)
    levels[inlined < 0] = 0
    others = int(symbols.max(initial=-1)) + 2  # after functions, and code that no function has
    return _Owners(np.where(inlined >= 0, inlined + others, symbols + 1).astype(np.int64), levels)


def _lines(plan: Plan, code: ExecutedCode) -> tuple[_Indices, NDArray[np.int32], NDArray[np.int32]]:
    """Number the lines of instructions, without a known line their functions.

    Returns the numbers, the files, and the functions that have a symbol.
    """
    sources, lines, _ = _core.name_lines(plan.session, code.ip, code.space, None)
    files, _ = _core.name_files(plan.session, code.ip, code.space, None, None, False, False)
    symbols, _, _ = _core.name_symbols(plan.session, code.ip, code.space, None, None, False, False)
    unknown = sources < 0
    keys = (files, sources, np.where(unknown, 0, lines), np.where(unknown, -2 - symbols, 0))
    numbers, _ = numbered(keys[::-1])
    return numbers, files, symbols


def _sums(numbers: _Indices, values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    sums = np.zeros(size, np.int64)
    np.add.at(sums, numbers, values)
    return sums


def read_lines(plan: Plan, edges: Plan) -> Table:
    """Count the executions of source lines.

    Parameters
    ----------
    plan : Plan
        Of the table of functions, which has the columns of the result.
    edges : Plan
        Of the same selection, with `EDGE_COLUMNS`.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for reading the edges.
    """
    code, branches = read_counts(edges)
    line, files, symbols = _lines(plan, code)
    lines = int(line.max()) + 1 if len(line) else 0
    instructions = _sums(line, code.instructions, lines)
    entries = _sums(line, line_executions(code, line, branches, code.ends(branches)), lines)
    order = np.argsort(instructions, kind="stable")[::-1]
    owners = _owners(plan, code, symbols)
    first = owners.first_of_lines(line, code)[order]
    columns = schema_of("functions").columns
    known, inlined = columns["entry_known"].mask, columns["is_inlined"].mask
    arrays: dict[str, NDArray[Any]] = {
        "entry_ip": code.ip[first],
        "space": code.space[first],
        "file": np.where(files[first] < len(plan.context.files), files[first], -1).astype(np.int32),
        "inline_level": owners.level[first],
        "flags": np.where(owners.level[first] > 0, known | inlined, known).astype(columns["flags"].dtype),
        "count": entries[order],
        "instructions": instructions[order],
        "self_instructions": instructions[order],
    }
    plan.after()  # warnings of debug files come about while lines are looked up
    data = Columns(schema_of("functions"), lines, arrays, context=plan.context)
    return Table(data, columns=plan.shown, errors=branches.errors, gaps=branches.gaps)
