"""Cells of columns: arrays of stride 0 where all rows have one value.

Consumers that need contiguous memory get real arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "contiguous",
    "copied",
    "held_bytes",
    "is_uniform",
    "join",
    "read_only",
    "take",
    "uniform",
    "where_set",
]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only."""
    array.flags.writeable = False
    return array


def is_uniform(values: NDArray[Any]) -> bool:
    """Whether one value in memory stands for all rows."""
    return len(values) > 1 and values.strides == (0,)


def uniform(value: Any, dtype: Any, rows: int) -> NDArray[Any]:
    """Return a read-only column that has one value in all rows, and in memory once."""
    return np.broadcast_to(np.array(value, dtype), (rows,))


def contiguous(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column as contiguous memory: the column itself, if it is."""
    if not is_uniform(values):
        return np.ascontiguousarray(values)
    first = values[:1].view(np.ndarray)[0]
    # Zeros that nothing has written take no memory yet.
    made = np.zeros(len(values), values.dtype) if not first else np.full(len(values), first, values.dtype)
    return read_only(made)


def copied(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column in memory of its own."""
    if is_uniform(values):
        return uniform(values[0], values.dtype, len(values))
    return read_only(values.copy())


def held_bytes(values: NDArray[Any]) -> int:
    """Bytes of memory that a column takes."""
    return values.dtype.itemsize if is_uniform(values) else values.nbytes


def where_set(flags: NDArray[Any], mask: int) -> NDArray[np.bool_]:
    """Return where flags have any of these bits."""
    if is_uniform(flags):
        return uniform(bool(int(flags[0]) & mask), np.bool_, len(flags))
    found = flags & flags.dtype.type(mask)
    if found.dtype.itemsize == 1:
        result: NDArray[np.bool_] = found.view(np.bool_)
        np.not_equal(found, 0, out=result)
        return result
    return np.asarray(found != 0)


def take(values: NDArray[Any], index: slice | NDArray[Any], rows: int) -> NDArray[Any]:
    """Return the rows of a column that an index selects: so many."""
    if is_uniform(values) and not isinstance(index, slice):
        return uniform(values[0], values.dtype, rows)
    return read_only(values[index])


def join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate parts of a column."""
    filled = [part for part in parts if len(part)]
    if filled and all(part.strides == (0,) and part[0] == filled[0][0] for part in filled):
        return uniform(filled[0][0], filled[0].dtype, sum(map(len, filled)))
    return read_only(np.concatenate(parts))
