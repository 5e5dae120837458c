"""Calls from one function to another, by call site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.export.frame_rows import ProfileTrace, rows_of
from ptkit.export.function_names import FunctionNames, function_names
from ptkit.support.groups import numbered

__all__ = ["CallEdges", "edges_of"]

_Indices = NDArray[np.int64]


@dataclass(frozen=True)
class CallEdges:
    """Functions with their own instructions, and the calls between them.

    Attributes
    ----------
    functions : FunctionNames
        Functions, by number.
    own : numpy.ndarray of int64, shape (functions,)
        Instructions of each function alone.
    caller : numpy.ndarray of int64, shape (edges,)
        Number of the function that calls; -1: frames without a caller. Edges are ordered by it.
    callee : numpy.ndarray of int64, shape (edges,)
        Number of the function that is called.
    site : numpy.ndarray of uint64, shape (edges,)
        Address of the call instruction, or of what else entered the function.
    site_space : numpy.ndarray of uint32, shape (edges,)
        Its address space.
    site_known : numpy.ndarray of bool, shape (edges,)
        `site` is known.
    count : numpy.ndarray of int64, shape (edges,)
        Calls of which the begin is in the trace, as `ptkit.Trace.functions` counts.
    total : numpy.ndarray of int64, shape (edges,)
        Instructions of the calls and of what they called. Calls of a function that is open already have
        none: each instruction counts once for a function, as in `ptkit.Trace.functions`.
    notes : list of str
        Losses, and functions that are not distinguished.
    """

    functions: FunctionNames
    own: _Indices
    caller: _Indices
    callee: _Indices
    site: NDArray[np.uint64]
    site_space: NDArray[np.uint32]
    site_known: NDArray[np.bool_]
    count: _Indices
    total: _Indices
    notes: list[str]


def edges_of(trace: ProfileTrace, *, names: str = "short", **query: Any) -> CallEdges:
    """Sum up the frames of a trace by caller, call site and function.

    Parameters
    ----------
    trace : Trace
    names : str
        ``"short"`` or ``"full"`` names of functions.
    **query
        As for `ptkit.Trace.call_tree`.

    Raises
    ------
    ConfigError
        As for `rows_of`.
    """
    read = rows_of(trace, sites=True, times=False, **query)
    rows = read.rows
    functions = function_names(read.functions, names, [path for path, _ in trace.info.files])
    own = np.zeros(len(functions), np.int64)
    np.add.at(own, rows.function, rows.sums["own"])
    caller = np.where(rows.parent >= 0, rows.function[rows.parent], -1)
    site = np.where(rows.site_known, rows.site, np.uint64(0))
    space = np.where(rows.site_known, rows.site_space, np.uint32(0))
    number, first = numbered((caller, site, space, rows.function))
    count, total = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    np.add.at(count, number, rows.sums["count"])
    np.add.at(total, number, np.where(rows.recursive, 0, rows.sums["total"]))
    return CallEdges(
        functions,
        own,
        caller[first],
        rows.function[first],
        site[first],
        space[first],
        rows.site_known[first],
        count,
        total,
        read.notes,
    )
