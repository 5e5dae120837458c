"""Callers of a function: a call tree from one function down to those that called it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptkit.decode.call_names import called_functions
from ptkit.decode.scope import Range
from ptkit.schema import schema_of
from ptkit.table import Table

__all__ = ["callers_of"]

# What tells functions apart, and what each row of a function has the same of.
_FUNCTION = ("entry_ip", "import_ip", "space", "code_tsc", "file", "inline_level")
_OF_ALL = ("count", "begin_unseen", "crossing", "self_instructions")  # sums over all contexts of a row
_OF_OUTER = ("instructions", "branches", "least", "most")  # over those that lie in no other one of the row
_OF_CONTEXT = ("parent_known", "time_known", "count_exact")  # bits of flags that no function has


def callers_of(tree: Table, name: str, ranges: Sequence[Range], depth: int | None) -> Table:
    """Callers of the functions of a name, as `Trace.callers` has them.

    Parameters
    ----------
    tree : Table
        All stored columns of a call tree.
    name : str
        See `called_functions`.
    ranges : sequence of Range
        Where symbols of that name lie.
    depth : int or None
        The largest depth of rows; None: all.

    Raises
    ------
    SymbolError
        If no such function was called.
    """
    masks = {one: schema_of("call_tree").columns[one].mask for one in _OF_CONTEXT}
    kinds = np.asarray(tree["flags"]) & ~np.uint16(sum(masks.values()))
    first, functions = _numbered(tree, kinds)
    frames = np.bincount(functions, tree["count"] + tree["begin_unseen"], minlength=len(first))
    numbers = called_functions(tree[first], frames.astype(np.int64), name, ranges)
    levels = _levels(tree, functions, np.flatnonzero(np.isin(functions, numbers)), depth)
    rows, depths = _in_order(levels)
    parents = _joined(levels, "parents")
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    contexts = _joined(levels, "contexts")[rows]
    sums = {one: np.concatenate([level.sums[one] for level in levels])[rows] for one in levels[0].sums}
    flags = kinds[contexts] | np.where(depths > 0, masks["parent_known"], 0)
    flags |= np.where(sums.pop("time_known"), masks["time_known"], 0)
    flags |= np.where(sums.pop("not_exact"), 0, masks["count_exact"])
    found: dict[str, NDArray[Any]] = {
        "node": np.arange(len(rows)),
        "parent": np.where(depths > 0, place[parents[rows]], 0),
        "depth": depths,
        "flags": flags,
        **{one: tree[one][contexts] for one in _FUNCTION},
        **sums,
    }
    schema = schema_of("callers")
    arrays = {one: found[one].astype(schema.columns[one].dtype) for one in schema.names("stored")}
    for array in arrays.values():
        array.flags.writeable = False
    return Table(schema, len(rows), arrays, None, context=tree._context, errors=tree.errors, gaps=tree.gaps)


class _Level(NamedTuple):
    """Rows of one depth, each of contexts of one function with the same callers up to this depth."""

    parents: NDArray[np.int64]  # numbers of rows, which count those of lower depths
    contexts: NDArray[np.int64]  # a row of the tree that the caller is of
    sums: dict[str, NDArray[Any]]


def _numbered(tree: Table, kinds: NDArray[np.uint16]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """A row of each function, and the number of the function of each row."""
    columns = [kinds, *(tree[one] for one in _FUNCTION)]
    keys = np.empty(len(tree), [(str(i), column.dtype) for i, column in enumerate(columns)])
    for i, column in enumerate(columns):
        keys[str(i)] = column
    _, first, functions = np.unique(keys, return_index=True, return_inverse=True)
    return first, functions.reshape(-1)


def _ends(tree: Table) -> NDArray[np.int64]:
    """For each context the first row behind it that is not of what it called."""
    sizes = [1] * len(tree)
    parents, known = tree["parent"].tolist(), tree["parent_known"].tolist()
    for row in range(len(tree) - 1, -1, -1):
        if known[row]:
            sizes[parents[row]] += sizes[row]
    return np.arange(len(tree)) + np.array(sizes, np.int64)


def _levels(
    tree: Table, functions: NDArray[np.intp], chosen: NDArray[np.intp], depth: int | None
) -> list[_Level]:
    """Follow the callers of the chosen contexts level by level."""
    ends, known = _ends(tree), np.asarray(tree["parent_known"])
    parents = np.asarray(tree["parent"]).astype(np.int64)
    own = {one: np.asarray(tree[one]) for one in (*_OF_ALL, *_OF_OUTER)}
    own |= {"time_known": np.asarray(tree["time_known"]).astype(np.int64)}
    own |= {"not_exact": np.asarray(~tree["count_exact"]).astype(np.int64)}
    callers, rows = chosen, np.zeros(len(chosen), np.int64)
    levels: list[_Level] = []
    first = 0  # number of the level's first row
    while len(chosen):
        # A row is what has the same row of the level before and the same function here.
        order = np.lexsort((chosen, functions[callers], rows))
        chosen, callers, rows = chosen[order], callers[order], rows[order]
        is_first = _differs(rows) | _differs(functions[callers])
        begins, groups = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        outer = _outer(groups, chosen, ends, len(tree))
        sums = {one: np.add.reduceat(own[one][chosen], begins) for one in (*_OF_ALL, "not_exact")}
        for one in (*_OF_OUTER, "time_known"):
            sums[one] = np.add.reduceat(np.where(outer, own[one][chosen], 0), begins)
        levels.append(_Level(rows[begins], callers[begins], sums))
        if depth is not None and len(levels) > depth:
            break
        goes_on = known[callers]
        rows = first + groups[goes_on]
        first += len(begins)
        chosen, callers = chosen[goes_on], parents[callers[goes_on]]
    return levels


def _differs(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a value is not the one before."""
    return np.concatenate([[True], values[1:] != values[:-1]])


def _outer(
    groups: NDArray[np.intp], chosen: NDArray[np.intp], ends: NDArray[np.int64], rows: int
) -> NDArray[np.bool_]:
    """Which contexts lie in no other one of their group. They are ordered by group and row.

    What a context called are the rows up to its end, so it lies in another one that begins before it and ends
    behind it. Groups are laid out one after the other, so that none reaches into the next one.
    """
    shift = groups * np.int64(rows + 1)
    reached = np.maximum.accumulate(ends[chosen] + shift)
    return np.concatenate([[True], chosen[1:] + shift[1:] >= reached[:-1]])


def _joined(levels: list[_Level], name: str) -> NDArray[np.int64]:
    return np.concatenate([getattr(level, name) for level in levels])


def _in_order(levels: list[_Level]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of rows, each before its callers, those with most instructions first; and their depths."""
    first = len(levels[0].parents)
    parents = _joined(levels, "parents")
    parents[:first] = -1
    amounts = [
        -np.concatenate([level.sums[one] for level in levels])
        for one in ("count", "self_instructions", "instructions")
    ]
    order = np.lexsort((*amounts, parents))
    bounds = np.searchsorted(parents[order], np.arange(-1, len(order) + 1)).tolist()
    below = order.tolist()
    left = [(row, 0) for row in reversed(below[:first])]
    rows, depths = [], []
    while left:
        row, depth = left.pop()
        rows.append(row)
        depths.append(depth)
        left += [(one, depth + 1) for one in reversed(below[bounds[row + 1] : bounds[row + 2]])]
    return np.array(rows, np.int64), np.array(depths, np.int64)
