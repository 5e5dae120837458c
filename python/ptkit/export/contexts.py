"""Calling contexts of a trace, with the call sites between them: what profiles are written of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.export.frame_rows import FrameRows, ProfileTrace, rows_of
from ptkit.export.function_names import FunctionNames, function_names
from ptkit.support.arguments import integer
from ptkit.support.groups import numbered
from ptkit.support.text import counted

__all__ = ["MOST_CALLERS", "Contexts", "contexts_of"]

#: Callers of a context that has a row of its own, unless another number is asked for.
MOST_CALLERS = 1000
_MOST_DEPTH = 2**31 - 1

_Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Contexts:
    """Calling contexts: a function, and the calls that lead to it. Callers come before what they call.

    Attributes
    ----------
    functions : FunctionNames
        Functions, by number.
    function : numpy.ndarray of int64, shape (contexts,)
        Number of the function.
    parent : numpy.ndarray of int64, shape (contexts,)
        Row of the caller; -1: none.
    site : numpy.ndarray of uint64, shape (contexts,)
        Address of the call instruction, or of what else entered the function.
    site_space : numpy.ndarray of uint32, shape (contexts,)
        Its address space.
    site_known : numpy.ndarray of bool, shape (contexts,)
        `site` is known.
    count : numpy.ndarray of int64, shape (contexts,)
        Frames of which the begin is in the trace, as `ptkit.Trace.functions` counts.
    unseen : numpy.ndarray of int64, shape (contexts,)
        Other frames.
    own : numpy.ndarray of int64, shape (contexts,)
        Instructions of its frames alone.
    total : numpy.ndarray of int64, shape (contexts,)
        Instructions of its frames and of those above them.
    ns : numpy.ndarray of int64, shape (contexts,), or None
        Nanoseconds of its frames alone, from begin to end, both at their earliest; None: not asked for.
    notes : tuple of str
        Sentences: losses, and functions that are not distinguished.
    """

    functions: FunctionNames
    function: _Indices
    parent: _Indices
    site: NDArray[np.uint64]
    site_space: NDArray[np.uint32]
    site_known: NDArray[np.bool_]
    count: _Indices
    unseen: _Indices
    own: _Indices
    total: _Indices
    ns: _Indices | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.function)

    def preorder(self) -> tuple[_Indices, _Indices]:
        """Rows so that what a context calls follows it, and how many callers each of these rows has."""
        order = np.argsort(self.parent, kind="stable")
        first = np.searchsorted(self.parent[order], np.arange(-1, len(self) + 1))
        rows = np.empty(len(self), np.int64)
        depths = np.empty(len(self), np.int64)
        waiting = [(0, 0, int(first[1]))] if len(self) else []  # depth, and a range of `order`
        at = 0
        children = order.tolist()
        while waiting:
            depth, begin, end = waiting.pop()
            row = children[begin]
            if begin + 1 < end:
                waiting.append((depth, begin + 1, end))
            rows[at], depths[at] = row, depth
            at += 1
            if first[row + 1] < first[row + 2]:
                waiting.append((depth + 1, int(first[row + 1]), int(first[row + 2])))
        return rows, depths


def contexts_of(
    trace: ProfileTrace,
    *,
    names: str = "short",
    sites: bool = True,
    times: bool = False,
    depth: int | None = None,
    frames: str = "native",
    inlines: bool = False,
    marks_inlined: bool = True,
    **query: Any,
) -> Contexts:
    """Sum up the frames of a trace by calling context.

    Parameters
    ----------
    trace : Trace
    names : str
        ``"short"`` or ``"full"`` names of functions.
    sites : bool
        Calls from different addresses are different contexts.
    times : bool
        Sum up times as well.
    depth : int, optional
        Contexts with more callers count as that caller of theirs that has so many; None: 1,000.
    frames, inlines, **query
        As for `ptkit.Trace.call_tree`.
    marks_inlined : bool
        As for `function_names`.

    Raises
    ------
    ConfigError
        If the query chooses columns, an order, or rows that frames have not; or times are asked for that
        there are not.
    """
    most = MOST_CALLERS if depth is None else integer("depth", depth, 0, _MOST_DEPTH)
    read = rows_of(
        trace,
        sites=sites,
        times=times,
        **{**query, "frames": frames, "inlines": inlines},
    )
    rows, notes = read.rows, read.notes
    deeper = int(np.count_nonzero(rows.depth > most))
    made = _summed(rows, most)
    if deeper:
        notes.append(
            f"{counted(deeper, 'call or context', 'calls or contexts')} with more than "
            f"{counted(most, 'caller')}: counted for the caller at that depth"
        )
    return Contexts(
        function_names(
            read.functions, names, [path for path, _ in trace.info.files], marks_inlined=marks_inlined
        ),
        made.function,
        made.parent,
        made.site,
        made.site_space,
        made.site_known,
        made.sums["count"],
        made.sums["unseen"],
        made.sums["own"],
        made.sums["total"],
        None if read.length_ns is None else read.length_ns(np.maximum(made.sums["ticks"], 0)),
        tuple(notes),
    )


def _summed(rows: FrameRows, most: int) -> FrameRows:
    """Unite rows that have the same function, call site and caller."""
    size = len(rows.parent)
    kept = np.arange(size, dtype=np.int64)
    if (deep := rows.depth > most).any():
        kept = np.where(deep, rows.parent, kept)
        while (rows.depth[kept] > most).any():
            kept = kept[kept]
    site = np.where(rows.site_known, rows.site, np.uint64(0))
    space = np.where(rows.site_known, rows.site_space, np.uint32(0))
    kinds, _ = numbered((rows.function, site, space, rows.site_known))
    span = int(kinds.max(initial=0)) + 1
    context = np.full(size, -1, np.int64)
    chosen: list[_Indices] = []
    total = 0
    by_depth = np.argsort(rows.depth, kind="stable")
    ends = np.searchsorted(rows.depth[by_depth], np.arange(min(int(rows.depth.max(initial=0)), most) + 2))
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        here = by_depth[begin:end]
        above = rows.parent[here]
        caller = np.where(above >= 0, context[above], -1)
        _, first, number = np.unique(
            (caller + 1) * span + kinds[here], return_index=True, return_inverse=True
        )
        context[here] = total + number
        chosen.append(here[first])
        total += len(first)
    of_rows = context[kept]
    row = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
    above = rows.parent[row]
    inner = kept == np.arange(size)
    sums: dict[str, _Indices] = {}
    for name, values in rows.sums.items():
        sums[name] = np.zeros(total, np.int64)
        # What deeper frames executed is in the total of their caller already.
        chosen_rows = inner if name == "total" else slice(None)
        np.add.at(sums[name], of_rows[chosen_rows], values[chosen_rows])
    return FrameRows(
        np.where(above >= 0, context[above], -1),
        rows.depth[row],
        rows.function[row],
        rows.site[row],
        rows.site_space[row],
        rows.site_known[row],
        rows.recursive[row],
        sums,
    )
