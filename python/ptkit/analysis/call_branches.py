"""Branches within calls: how often each edge was executed, and how many instructions came after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptkit.decode.call_table import CallTable
from ptkit.table import Table

__all__ = ["BRANCH_COLUMNS", "EdgeWork", "edge_work"]

#: Columns that `edge_work` needs of branches.
BRANCH_COLUMNS = ("from_ip", "to_ip", "flags", "instruction", "tid", "space")

_MOST_BRANCHES = 4_000_000  # of all calls together that are looked at
_KEY = np.dtype([("space", np.uint32), ("from_ip", np.uint64), ("to_ip", np.uint64)])


@dataclass(frozen=True)
class EdgeWork:
    """Edges within calls of several kinds. Counts and instructions are means over the calls of a kind.

    Attributes
    ----------
    from_ip, to_ip : numpy.ndarray of uint64, shape (n,)
    space : numpy.ndarray of uint32, shape (n,)
    counts, instructions : numpy.ndarray of float64, shape (kinds, n)
        Executions, and instructions from the edge up to the next branch.
    examples : numpy.ndarray of int64, shape (kinds, n)
        ``id`` of the first call with the edge; -1: none.
    """

    from_ip: NDArray[np.uint64]
    to_ip: NDArray[np.uint64]
    space: NDArray[np.uint32]
    counts: NDArray[np.float64]
    instructions: NDArray[np.float64]
    examples: NDArray[np.int64]

    def merged(self, names: Sequence[str | None]) -> tuple[EdgeWork, list[str]]:
        """Sums of the edges with one name each; those without a name are left out."""
        known = [row for row, name in enumerate(names) if name is not None]
        distinct = list(dict.fromkeys(str(names[row]) for row in known))
        number = {name: at for at, name in enumerate(distinct)}
        to = np.array([number[str(names[row])] for row in known], np.intp)
        first = np.array([known[at] for at in np.unique(to, return_index=True)[1]], np.intp)
        kinds = len(self.counts)
        counts, instructions = np.zeros((2, kinds, len(distinct)))
        examples = np.full((kinds, len(distinct)), np.iinfo(np.int64).max)
        for kind in range(kinds):
            np.add.at(counts[kind], to, self.counts[kind, known])
            np.add.at(instructions[kind], to, self.instructions[kind, known])
            own = self.examples[kind, known]
            np.minimum.at(examples[kind], to[own >= 0], own[own >= 0])
        examples[examples == np.iinfo(np.int64).max] = -1
        ends = self.from_ip[first], self.to_ip[first], self.space[first]
        return EdgeWork(*ends, counts, instructions, examples), distinct


def edge_work(kinds: Sequence[CallTable], branches: Callable[[int], Iterator[Table]]) -> EdgeWork:
    """Count the edges within calls.

    Parameters
    ----------
    kinds : sequence of CallTable
        Calls of each kind, with ``instruction`` and ``end_instruction``; none is above another one. Those
        after the first 4,000,000 branches of a kind are left out.
    branches : callable
        Parts of the branches of a stream, with `BRANCH_COLUMNS`.
    """
    kinds = [_bounded(calls) for calls in kinds]
    found = [
        part
        for stream in np.unique(np.concatenate([np.asarray(calls["stream"]) for calls in kinds])).tolist()
        for part in _stream_edges([calls[calls["stream"] == stream] for calls in kinds], branches(stream))
    ]
    keys = np.concatenate([part[0] for part in found]) if found else np.empty(0, _KEY)
    edges, inverse = _distinct(keys)
    counts, instructions = np.zeros((2, len(kinds), len(edges)))
    examples = np.full((len(kinds), len(edges)), np.iinfo(np.int64).max)
    if found:
        kind, length, number = (np.concatenate([part[at] for part in found]) for at in (1, 2, 3))
        np.add.at(counts, (kind, inverse), 1)
        np.add.at(instructions, (kind, inverse), length)
        np.minimum.at(examples, (kind, inverse), number)
    examples[examples == np.iinfo(np.int64).max] = -1
    sizes = np.array([[max(len(calls), 1)] for calls in kinds])
    ends = edges["from_ip"], edges["to_ip"], edges["space"]
    return EdgeWork(*ends, counts / sizes, instructions / sizes, examples)


def _distinct(keys: NDArray[np.void]) -> tuple[NDArray[np.void], NDArray[np.intp]]:
    """As `numpy.unique` with the inverse, which takes ten times as long to compare records."""
    order = np.lexsort([keys[name] for name in ("to_ip", "from_ip", "space")])
    ordered = keys[order]
    is_new = np.ones(len(keys), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    inverse = np.empty(len(keys), np.intp)
    inverse[order] = np.cumsum(is_new) - 1
    return ordered[is_new], inverse


def _bounded(calls: CallTable) -> CallTable:
    """The first calls, with so many branches; at least one."""
    branches = np.asarray(calls["branches"])
    kept: NDArray[np.bool_] = np.cumsum(branches) - branches < _MOST_BRANCHES
    return calls[kept]


_Part = tuple[NDArray[np.void], NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]


def _stream_edges(kinds: list[CallTable], parts: Iterator[Table]) -> Iterator[_Part]:
    """Keys, kinds, instructions and calls of the edges in the parts of one stream."""
    names = ("instruction", "end_instruction", "tid", "id")
    begin, end, tid, number = (
        np.concatenate([np.asarray(calls[name]) for calls in kinds]).astype(np.int64) for name in names
    )
    kind = np.repeat(np.arange(len(kinds)), [len(calls) for calls in kinds])
    last = int(end.max(initial=0))
    for part in parts:
        at = np.asarray(part["instruction"]).astype(np.int64)
        if not len(at):
            continue
        first, end_row = np.searchsorted(at, begin), np.searchsorted(at, end)
        sizes = end_row - first
        if sizes.any():
            call = np.repeat(np.arange(len(begin)), sizes)
            rows = np.arange(len(call)) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
            own = np.asarray(part["tid"])[rows] == tid[call]
            own &= np.asarray(part["to_known"])[rows] & np.asarray(part["from_known"])[rows]
            call, rows = call[own], rows[own]
            keys = np.empty(len(rows), _KEY)
            for name in ("space", "from_ip", "to_ip"):
                keys[name] = np.asarray(part[name])[rows]
            after_last = np.append(at[1:], at[-1] + 1)
            length = np.minimum(after_last[rows], end[call] - 1) - at[rows]
            yield keys, kind[call], np.maximum(length, 0), number[call]
        if at[-1] >= last:
            return
