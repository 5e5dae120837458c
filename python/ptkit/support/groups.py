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
    order = np.lexsort(keys[::-1])
    is_new = np.zeros(len(order), np.bool_)
    is_new[:1] = True
    for key in keys:
        is_new[1:] |= key[order][1:] != key[order][:-1]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    return numbers, order[is_new]
