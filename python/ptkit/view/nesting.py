"""Slices in the order of calls: what each executed itself, and which slices are within it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Nesting", "narrow", "nesting_of"]

_Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Nesting:
    """Slices of which callers come before what they call.

    Attributes
    ----------
    own : numpy.ndarray of int64, shape (slices,)
        Instructions of each alone.
    end : numpy.ndarray of int64, shape (slices,)
        The first row that is not within it.
    """

    own: NDArray[np.int64]
    end: _Rows

    def outermost(self, rows: _Rows) -> _Rows:
        """Those of ascending rows that are in none of the others."""
        ends = np.maximum.accumulate(self.end[rows])
        is_outer = np.ones(len(rows), np.bool_)
        is_outer[1:] = rows[1:] >= ends[:-1]
        return rows[is_outer]

    def within(self, rows: _Rows) -> _Rows:
        """The rows, none of which is within another one, with all that is within them."""
        size = self.end[rows] - rows
        return np.repeat(rows - np.cumsum(size) + size, size) + np.arange(int(size.sum()))


def nesting_of(depth: NDArray[np.uint32], instructions: NDArray[np.uint64]) -> Nesting:
    """Find what is within each slice.

    Parameters
    ----------
    depth : numpy.ndarray of uint32, shape (slices,)
        Callers that are slices; 0 where a track begins.
    instructions : numpy.ndarray of uint64, shape (slices,)
    """
    size = np.ones(len(depth), np.int64)
    own = instructions.astype(np.int64)
    for callers, rows in _pairs_of_levels(depth):
        # Rows ascend, so those of one caller follow each other.
        caller = callers[np.searchsorted(callers, rows) - 1]
        first = np.flatnonzero(np.diff(caller, prepend=-1))
        size[caller[first]] += np.add.reduceat(size[rows], first)
        own[caller[first]] -= np.add.reduceat(instructions[rows].astype(np.int64), first)
    return Nesting(own, size + np.arange(len(depth)))


def narrow(values: NDArray[np.uint32]) -> NDArray[Any]:
    """Values in 16 bits if they fit, as NumPy sorts these in linear time."""
    return values.astype(np.uint16) if int(values.max(initial=0)) < 1 << 16 else values


def _pairs_of_levels(depth: NDArray[np.uint32]) -> Iterator[tuple[_Rows, _Rows]]:
    """Rows of a depth and of the next one, the deepest first."""
    order = np.argsort(narrow(depth), kind="stable")
    limits = np.searchsorted(depth[order], np.arange(int(depth.max(initial=0)) + 2))
    for level in range(len(limits) - 2, 0, -1):
        low, middle, high = limits[level - 1 : level + 2].tolist()
        yield order[low:middle], order[middle:high]
