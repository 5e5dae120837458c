"""Chains of callers, from a function outwards: in order, with what two of them have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chains", "most_shared_with_ancestors"]

_BITS = 4096  # of a block of _Positions
_NONE = -1


class Chains:
    """The chain of each context of a call tree: its function, that of its caller, and so on.

    Chains are compared by prefix doubling (Karp, Miller and Rosenberg): ranks of the first 1, 2, 4, ...
    functions of all chains, each made of two of the ranks before. So deep recursion costs no more than the
    logarithm of its depth for each context.

    Parameters
    ----------
    parents : numpy.ndarray of int64, shape (contexts,)
        The caller of each context; -1: it has none.
    functions : numpy.ndarray of integer, shape (contexts,)
        Numbers of functions.
    most : int
        So many functions of a chain count.
    """

    def __init__(self, parents: NDArray[np.int64], functions: NDArray[Any], most: int) -> None:
        self._ranks = [functions.astype(np.int64)]
        self._above = [parents]
        distinct = 0
        while 1 << (len(self._ranks) - 1) < most and distinct < len(parents):
            ranks, above = self._ranks[-1], self._above[-1]
            has_more = above != _NONE
            if not has_more.any():
                break
            rest = np.where(has_more, ranks[above] + 1, 0)
            found, numbers = np.unique(ranks * np.int64(len(ranks) + 1) + rest, return_inverse=True)
            distinct = len(found)
            self._ranks.append(numbers.reshape(-1))
            self._above.append(np.where(has_more, above[above], _NONE))

    @property
    def order(self) -> NDArray[np.int64]:
        """A number for each context, by which chains are in order. Equal: their first functions are."""
        return self._ranks[-1]

    def shared(
        self, some: NDArray[np.int64], others: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many functions two different chains begin with alike, and where the first one then is."""
        count = np.zeros(len(some), np.int64)
        for level in range(len(self._ranks) - 1, -1, -1):
            ranks, above = self._ranks[level], self._above[level]
            alike = (some != _NONE) & (others != _NONE) & (ranks[some] == ranks[others])
            count += np.where(alike, 1 << level, 0)
            some, others = np.where(alike, above[some], some), np.where(alike, above[others], others)
        return count, some


def most_shared_with_ancestors(
    chains: Chains, contexts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each context, how much of its chain one of `contexts` that it lies in has, too: the most.

    Parameters
    ----------
    chains : Chains
    contexts : numpy.ndarray of int64
        Rows of the tree, in the order of their chains.
    ends : numpy.ndarray of int64
        Of each row of the tree, the first row after it that does not lie in it.
    """
    # Of chains in order, those next to one have most in common with it.
    most = np.zeros(len(contexts), np.int64)
    pairs = np.array(_neighbours(contexts, ends), np.int64).reshape(-1, 2)
    shared, _ = chains.shared(contexts[pairs[:, 0]], contexts[pairs[:, 1]])
    np.maximum.at(most, pairs[:, 0], shared)
    return most


def _neighbours(contexts: NDArray[np.int64], ends: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Positions of contexts, each with the nearest ones before and after it of contexts that it lies in."""
    open_positions = _Positions(len(contexts))
    stack: list[tuple[int, int]] = []
    found = []
    by_row = np.argsort(contexts)
    rows = contexts[by_row]
    for position, row, end in zip(by_row.tolist(), rows.tolist(), ends[rows].tolist(), strict=True):
        while stack and stack[-1][0] <= row:
            open_positions.remove(stack.pop()[1])
        if stack:
            near = (open_positions.before(position), open_positions.after(position))
            found += [(position, other) for other in near if other != _NONE]
        stack.append((end, position))
        open_positions.add(position)
    return found


class _Positions:
    """A set of numbers below a limit: blocks of bits, and a bit for each block that has any."""

    def __init__(self, limit: int) -> None:
        self._blocks = [0] * (limit // _BITS + 1)
        self._used = 0

    def add(self, position: int) -> None:
        block, bit = divmod(position, _BITS)
        self._blocks[block] |= 1 << bit
        self._used |= 1 << block

    def remove(self, position: int) -> None:
        block, bit = divmod(position, _BITS)
        self._blocks[block] ^= 1 << bit
        if not self._blocks[block]:
            self._used ^= 1 << block

    def before(self, position: int) -> int:
        """The largest number below one; -1: there is none."""
        block, bit = divmod(position, _BITS)
        below = self._blocks[block] & ((1 << bit) - 1)
        if not below:
            block = (self._used & ((1 << block) - 1)).bit_length() - 1
            if block < 0:
                return _NONE
            below = self._blocks[block]
        return block * _BITS + below.bit_length() - 1

    def after(self, position: int) -> int:
        """The least number above one; -1: there is none."""
        block, bit = divmod(position, _BITS)
        above = self._blocks[block] >> (bit + 1)
        if above:
            return position + 1 + _lowest(above)
        used = self._used >> (block + 1)
        if not used:
            return _NONE
        block += 1 + _lowest(used)
        return block * _BITS + _lowest(self._blocks[block])


def _lowest(bits: int) -> int:
    """The number of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1
