"""Loops of all functions that ran: their trips, by the frames of call stacks, and the paths through them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.branch_stats import bits_of, table_of
from ptkit.analysis.flow import JUMPS, FunctionFlow, Jumps
from ptkit.decode import ExecutedCode, Plan, Window
from ptkit.decode.calls import call_query, side_tables, too_large
from ptkit.support.groups import numbered
from ptkit.table import Table

__all__ = ["CodeLoops", "find_loops", "read_loops"]

#: Parts that compilers move out of a function: control comes there by jumps, in the function's frame.
_MOVED = re.compile(r"\.cold(\.\d+)?$")
_FEWER = "select fewer streams or threads"
_Indices = NDArray[np.int64]


@dataclass
class CodeLoops:
    """Loops of which the head is the only way in; an outer one comes before those in it.

    Attributes
    ----------
    head, space : numpy.ndarray
        Address of each loop's first instruction.
    outer : numpy.ndarray of int32
        The innermost loop around it; -1: there is none.
    count, entries, instructions : numpy.ndarray of int64
        Executions of the head, those that came from outside, instructions that were executed in the loop.
    code : dict of str to numpy.ndarray
        Instructions of functions that have loops, as `_core.LoopMap` takes them.
    others : int
        Loops that are entered in several places.
    """

    head: NDArray[np.uint64]
    space: NDArray[np.uint32]
    outer: NDArray[np.int32]
    count: _Indices
    entries: _Indices
    instructions: _Indices
    code: dict[str, NDArray[Any]]
    others: int

    @cached_property
    def depth(self) -> _Indices:
        """Loops that each one is in, with itself."""
        depth = np.ones(len(self.head), np.int64)
        for number, outer in enumerate(self.outer.tolist()):
            if outer >= 0:
                depth[number] = depth[outer] + 1
        return depth

    @cached_property
    def map(self) -> _core.LoopMap:
        """What the core follows."""
        return _core.LoopMap(head=self.head, space=self.space, outer=self.outer, **self.code)


def _functions(session: _core.Session, code: ExecutedCode) -> _Indices:
    """Number the function of each instruction; code without a symbol is one function for each file."""
    symbols, _, names = _core.name_symbols(session, code.ip, code.space, None, None, False, False)
    files, _ = _core.name_files(session, code.ip, code.space, None, None, False, False)
    whole = {name: number for number, name in enumerate(names)}
    own = [whole.get(_MOVED.sub("", name), number) for number, name in enumerate(names)]
    symbols = np.array([*own, -1], np.int32)[symbols]
    return numbered((code.space, files, symbols))[0]


def _by_group(group: _Indices, count: int) -> tuple[_Indices, _Indices]:
    """Rows in the order of their groups, and where each group begins and ends; rows of -1 are left out."""
    order = np.argsort(group, kind="stable")
    return order, np.searchsorted(group[order], np.arange(count + 1))


def _each_flow(
    code: ExecutedCode, edges: Table, function: _Indices
) -> Iterator[tuple[int, _Indices, FunctionFlow]]:
    """Functions that jump backwards: number, instructions, and flow."""
    count = int(function.max(initial=-1)) + 1
    source, target = code.ends(edges)
    kinds, times = (np.asarray(edges[name]) for name in ("kind", "count"))
    of_row = np.append(function, -1)
    of_source, of_target = of_row[source], of_row[target]
    back = np.isin(kinds, JUMPS) & (of_source >= 0) & (of_source == of_target) & (target <= source)
    instructions, begins = _by_group(function, count)
    position = np.empty(len(function) + 1, np.int64)
    position[instructions] = np.arange(len(function)) - begins[function[instructions]]
    both = np.concatenate([of_source, np.where(of_target == of_source, -1, of_target)])
    touching, edge_begins = _by_group(both, count)
    touching %= max(len(source), 1)
    for number in np.unique(of_source[back]).tolist():
        rows = instructions[begins[number] : begins[number + 1]]
        some = touching[edge_begins[number] : edge_begins[number + 1]]
        jumps = Jumps(
            np.where(of_source[some] == number, position[source[some]], -1),
            np.where(of_target[some] == number, position[target[some]], -1),
            kinds[some],
            times[some],
        )
        follows = np.zeros(len(rows), np.bool_)
        follows[1:] = code.before[rows[1:]] == rows[:-1]
        yield number, rows, FunctionFlow(code.count[rows], follows, jumps)


def find_loops(plan: Plan, code: ExecutedCode, edges: Table) -> CodeLoops:
    """Find the loops of all functions.

    Parameters
    ----------
    plan : Plan
        Of what was counted.
    code, edges
        Of `ptkit.decode.read_counts`.
    """
    loops: list[tuple[int, int, int, int, int]] = []  # row of the head, outer, count, entries, instructions
    parts: list[tuple[_Indices, _Indices, int]] = []  # rows, their innermost loops, function
    others = 0
    for number, rows, flow in _each_flow(code, edges, _functions(plan.session, code)):
        others += flow.other_loops
        found = sorted(flow.loops(), key=lambda loop: -len(loop.rows))
        innermost = np.full(len(rows), -1, np.int64)
        for loop in found:
            outer = int(innermost[loop.head])
            innermost[loop.rows] = len(loops)
            work = int(code.instructions[rows[loop.rows]].sum())
            loops.append((int(rows[loop.head]), outer, loop.count, loop.entries, work))
        if found:
            parts.append((rows, innermost, number))
    cells = np.array(loops, np.int64).reshape(len(loops), 5)
    heads = cells[:, 0]
    return CodeLoops(
        code.ip[heads],
        code.space[heads],
        cells[:, 1].astype(np.int32),
        cells[:, 2],
        cells[:, 3],
        cells[:, 4],
        code=_code_of(code, parts),
        others=others,
    )


def _code_of(code: ExecutedCode, parts: list[tuple[_Indices, _Indices, int]]) -> dict[str, NDArray[Any]]:
    """Instructions of functions with loops, those that follow each other in one loop together."""
    nothing = np.zeros(0, np.int64)
    rows = np.concatenate([nothing, *(one[0] for one in parts)])
    loop = np.concatenate([nothing, *(one[1] for one in parts)])
    function = np.repeat([one[2] for one in parts] or nothing, [len(one[0]) for one in parts] or nothing)
    order = np.argsort(rows)  # by space and address
    rows, loop, function = rows[order], loop[order], function[order]
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (code.before[rows[1:]] != rows[:-1]) | (loop[1:] != loop[:-1])
    starts[1:] |= function[1:] != function[:-1]
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(rows)) - 1 if len(first) else first
    return {
        "code_first": code.ip[rows[first]],
        "code_last": code.ip[rows[last]],
        "code_space": code.space[rows[first]],
        "code_function": function[first].astype(np.uint32),
        "code_loop": loop[first].astype(np.int32),
    }


def read_loops(plan: Plan, window: Window | None, loops: CodeLoops, wanted: NDArray[np.bool_]) -> Table:
    """Count the trips of loops.

    Parameters
    ----------
    plan : Plan
        Of calls.
    window : Window or None
    loops : CodeLoops
    wanted : numpy.ndarray of bool
        Loops that get a row.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for calls.
    """
    query = call_query(plan, window=window)
    try:
        sums, *sides = _core.read_loops(query, loops.map)
    except MemoryError:
        raise too_large("the loops", query, _FEWER) from None
    errors, gaps = side_tables(plan, sides)
    has_outer, has_visits = loops.outer >= 0, sums["visits"] > 0
    is_exact = sums["exact"] & (sums["cut"] == 0) & (sums["rounds"] == loops.count)
    flags = bits_of(
        "loops",
        outer_known=has_outer,
        trips_known=has_visits,
        exact=is_exact & (sides[1] is None or not sides[1][0]),
    )
    cells = {
        "head_ip": loops.head,
        "outer_ip": np.where(has_outer, loops.head[loops.outer], 0) if len(loops.head) else loops.head,
        "depth": loops.depth,
        "count": loops.count,
        "visits": sums["visits"],
        "cut_visits": sums["cut"],
        **{name: sums[name] for name in ("least", "p50", "p99", "most")},
        "mean": sums["rounds"] / np.maximum(sums["visits"], 1),
        "instructions": loops.instructions,
        "space": loops.space,
    }
    order = np.flatnonzero(wanted)
    order = order[np.argsort(-loops.instructions[order], kind="stable")]
    table = table_of(
        plan, "loops", {name: one[order] for name, one in cells.items()}, "head_ip", flags[order]
    )
    table.errors, table.gaps = errors, gaps
    return table
