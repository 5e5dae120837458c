"""Groups of rows with equal keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["numbered"]


def numbered(keys: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Number rows by their keys, from 0 in the order of the keys; equal keys have one number.

    Parameters
    ----------
    keys : sequence of numpy.ndarray, each of shape (rows,)
        The first one counts most.

    Returns
    -------
    numbers : numpy.ndarray of int64, shape (rows,)
    first : numpy.ndarray of intp, shape (numbers,)
        The first row of each number.

    Examples
    --------
    >>> import numpy as np
    >>> numbered([np.array([7, 5, 7]), np.array([1, 2, 1])])
    (array([1, 0, 1]), array([1, 0]))
    """
    is_new = np.zeros(len(keys[0]), np.bool_)
    is_new[:1] = True
    is_new[1:], in_order = _compared(keys)
    if in_order:
        return np.cumsum(is_new) - 1, np.flatnonzero(is_new)
    order = np.lexsort(keys[::-1])
    is_new[1:], _ = _compared([key[order] for key in keys])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    return numbers, order[is_new]


def _compared(keys: Sequence[NDArray[Any]]) -> tuple[NDArray[np.bool_], bool]:
    """Which rows differ from those before them, and whether no row is less than the one before."""
    same = np.ones(max(len(keys[0]) - 1, 0), np.bool_)
    in_order = same.copy()
    for key in reversed(keys):
        equal = key[1:] == key[:-1]
        in_order &= equal
        in_order |= key[1:] > key[:-1]
        same &= equal
    return ~same, bool(in_order.all())
