"""Callers of a function: a call tree from one function down to those that called it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptkit.decode.call_names import called_functions
from ptkit.decode.call_table import sum_columns
from ptkit.decode.caller_chains import Chains, most_shared_with_ancestors
from ptkit.decode.scope import Range
from ptkit.support.groups import numbered
from ptkit.support.memory import require_memory
from ptkit.support.schema import schema_of
from ptkit.table import Columns, Table

__all__ = ["callers_of"]

# Columns that tell functions apart, and columns that are equal in all rows of a function.
_FUNCTION = ("entry_ip", "import_ip", "space", "code_tsc", "file", "inline_level")
# Sums over the contexts of a row that lie in no other one of the row; other sums are over all of them.
_OF_OUTER = ("instructions", "branches", "least", "most")
_ROW_BYTES = 600  # of Python's numbers and of columns, while they are made
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
    functions, first = numbered([kinds, *(np.asarray(tree[one]) for one in _FUNCTION)])
    frames = np.bincount(functions, tree["count"] + tree["begin_unseen"], minlength=len(first))
    numbers = called_functions(tree[first], frames.astype(np.int64), name, ranges)
    trie = _trie(tree, functions, np.flatnonzero(np.isin(functions, numbers)), depth)
    rows = _in_order(trie)
    parents, depths, contexts = trie.parents[rows], trie.depths[rows], trie.contexts[rows]
    row_of = np.empty(len(rows), np.int64)
    row_of[rows] = np.arange(len(rows))
    sums = {one: values[rows] for one, values in trie.sums.items()}
    flags = kinds[contexts] | np.where(depths > 0, masks["parent_known"], 0)
    flags |= np.where(sums.pop("time_known"), masks["time_known"], 0)
    flags |= np.where(sums.pop("not_exact"), 0, masks["count_exact"])
    found: dict[str, NDArray[Any]] = {
        "node": np.arange(len(rows)),
        "parent": np.where(depths > 0, row_of[parents], 0),
        "depth": depths,
        "flags": flags,
        **{one: tree[one][contexts] for one in _FUNCTION},
        **sums,
    }
    schema = schema_of("callers")
    arrays = {one: found[one].astype(schema.columns[one].dtype) for one in schema.names("stored")}
    for array in arrays.values():
        array.flags.writeable = False
    data = Columns(schema, len(rows), arrays, context=tree.data.context)
    return Table(data, errors=tree.errors, gaps=tree.gaps)


class _Trie(NamedTuple):
    """Rows, each of contexts of one function with the same callers up to the row's. Callees come first."""

    parents: NDArray[np.int64]  # what the caller called; -1: the row is of the function itself
    depths: NDArray[np.int64]
    contexts: NDArray[np.int64]  # a row of the tree that the caller is of
    sums: dict[str, NDArray[Any]]


def _ends(tree: Table) -> NDArray[np.int64]:
    """For each context the first row after it that is not of what it called."""
    sizes = [1] * len(tree)
    parents, known = tree["parent"].tolist(), tree["parent_known"].tolist()
    for row in range(len(tree) - 1, -1, -1):
        if known[row]:
            sizes[parents[row]] += sizes[row]
    return np.arange(len(tree)) + np.array(sizes, np.int64)


def _lengths(tree: Table, parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many contexts each one lies in, and one more."""
    lengths = [1] * len(tree)
    for row, parent in enumerate(parents.tolist()):
        if parent >= 0:
            lengths[row] = lengths[parent] + 1
    return np.array(lengths, np.int64)


def _trie(tree: Table, functions: NDArray[np.intp], chosen: NDArray[np.intp], depth: int | None) -> _Trie:
    """Put the chains of callers of the chosen contexts into one tree."""
    parents = np.where(tree["parent_known"], tree["parent"].astype(np.int64), -1)
    lengths, ends = _lengths(tree, parents), _ends(tree)
    most = int(lengths.max()) if depth is None else min(depth + 1, int(lengths.max()))
    chains = Chains(parents, functions, most)
    contexts = chosen[np.argsort(chains.order[chosen], kind="stable")]
    lengths = np.minimum(lengths[contexts], most)
    shared, others = np.zeros(len(contexts), np.int64), contexts.copy()
    shared[1:], others[1:] = chains.shared(contexts[1:], contexts[:-1])
    shared = np.minimum(shared, lengths)
    count = int((lengths - shared).sum())
    require_memory(f"{count:,} rows of callers", count * _ROW_BYTES, "give fewer levels of callers: depth=")
    own = {one: np.asarray(tree[one])[contexts] for one in sum_columns("callers")}
    own |= {"time_known": np.asarray(tree["time_known"])[contexts].astype(np.int64)}
    own |= {"not_exact": np.asarray(~tree["count_exact"])[contexts].astype(np.int64)}
    inner = np.minimum(most_shared_with_ancestors(chains, contexts, ends), most)
    return _rows(parents, own, *(one.tolist() for one in (shared, lengths, others, inner)))


def _rows(
    above: NDArray[np.int64],
    own: dict[str, NDArray[Any]],
    shared: list[int],
    lengths: list[int],
    others: list[int],
    inner: list[int],
) -> _Trie:
    """Make the rows in the order of chains, of each one those that the chain before has not.

    Parameters
    ----------
    above : numpy.ndarray of int64
        The caller of each context.
    own : dict
        Amounts that each chain adds to the sums of its rows.
    shared, lengths, others : list of int
        Of each chain: how much of it the one before has, its length, and the context where they part.
    inner : list of int
        So many rows of the chain have another context that its context lies in.
    """
    callers = above.tolist()
    columns: list[list[int]] = [[] for _ in range(6)]
    parents, depths, contexts, firsts, ends, lasts = columns
    path: list[int] = []
    lacks: list[list[int]] = [[], []]  # chains, and the rows from which on they are no outer ones
    for chain, (same, length, context, hidden) in enumerate(zip(shared, lengths, others, inner, strict=True)):
        _end(path, same, ends, lasts, chain, len(contexts))
        for level in range(same, length):
            parents.append(path[-1] if path else -1)
            path.append(len(contexts))
            depths.append(level)
            contexts.append(context)
            firsts.append(chain)
            context = callers[context]
        ends += [0] * (length - same)
        lasts += [0] * (length - same)
        if hidden:
            lacks[0].append(chain)
            lacks[1].append(path[hidden - 1])
    _end(path, 0, ends, lasts, len(shared), len(contexts))
    sums = {one: _between(values, firsts, ends) for one, values in own.items()}
    for one in (*_OF_OUTER, "time_known"):  # less what lies in another context of the row
        hidden_sums = np.zeros(len(contexts), sums[one].dtype)
        np.add.at(hidden_sums, lacks[1], own[one][lacks[0]])
        sums[one] = sums[one] - _between(hidden_sums, range(len(contexts)), lasts)
    return _Trie(np.array(parents), np.array(depths), np.array(contexts), sums)


def _end(path: list[int], same: int, ends: list[int], lasts: list[int], chain: int, row: int) -> None:
    """End the rows of a path that the next chain has not."""
    for one in path[same:]:
        ends[one], lasts[one] = chain, row
    del path[same:]


def _between(values: NDArray[Any], firsts: Sequence[int], ends: Sequence[int]) -> NDArray[Any]:
    """Sums of `values` from a first position to before an end."""
    sums = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(sums[np.asarray(ends, np.intp)] - sums[np.asarray(firsts, np.intp)])


def _in_order(trie: _Trie) -> NDArray[np.int64]:
    """Numbers of rows, each before its callers, those with most instructions first."""
    amounts = [-trie.sums[one] for one in ("count", "self_instructions", "instructions")]
    order = np.lexsort((*amounts, trie.parents))
    bounds = np.searchsorted(trie.parents[order], np.arange(-1, len(order) + 1)).tolist()
    below = order.tolist()
    left = below[: bounds[1]][::-1]
    rows = []
    while left:
        row = left.pop()
        rows.append(row)
        left += reversed(below[bounds[row + 1] : bounds[row + 2]])
    return np.array(rows, np.int64)
