"""Rows between two stream positions: by stream offset, instruction, or order of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, integer

if TYPE_CHECKING:
    from ptkit.table import Table

__all__ = ["Limits", "columns_of", "offset_limits", "rows_between"]

#: Column that limits rows, and [low, high) of it: ``"offset"``, ``"instruction"``, ``"order"``.
Limits = Mapping[str, tuple[int, int]]

# Where rows have a beginning and an end: the columns of both, or of the beginning and the length.
_ENDS = {("gaps", "offset"): ("begin", "end")}
_LENGTHS = {("blocks", "instruction"): "instructions"}


def offset_limits(offset: object) -> tuple[int, int]:
    """Check the argument ``offset`` of a query.

    Raises
    ------
    ConfigError
        If it is no pair of stream offsets, or the first is above the second.
    """
    if not isinstance(offset, tuple) or len(offset) != 2:
        raise ConfigError(f"offset={offset!r} is no pair of stream offsets (first, end)")
    low = 0 if offset[0] is None else integer("offset: first", offset[0], 0, LAST_ADDRESS)
    high = LAST_ADDRESS if offset[1] is None else integer("offset: end", offset[1], 0, LAST_ADDRESS)
    if low > high:
        raise ConfigError(f"offset={offset!r}: the first must not be above the end")
    return low, high


def columns_of(table: str, limits: Limits) -> set[str]:
    """Columns that tell whether a row lies between the limits."""
    found: set[str] = set()
    for name in limits:
        found.update(_ENDS.get((table, name), (name,)))
        if (table, name) in _LENGTHS:
            found.add(_LENGTHS[table, name])
    return found


def _bounds(table: Table, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """First and last position of each row."""
    key = table.name, name
    if key in _ENDS:
        begin, end = _ENDS[key]
        return table.data.arrays[begin], table.data.arrays[end]
    first = table.data.arrays[name]
    if key in _LENGTHS:
        return first, first + np.maximum(table.data.arrays[_LENGTHS[key]], 1).astype(np.uint64) - np.uint64(1)
    return first, first


def rows_between(table: Table, limits: Limits) -> tuple[NDArray[np.bool_], bool]:
    """Which rows lie between the limits, and whether later rows of the stream may."""
    kept = np.ones(len(table), np.bool_)
    more = True
    for name, (low, high) in limits.items():
        first, last = _bounds(table, name)
        after = first >= np.uint64(high)
        kept &= (last >= np.uint64(low)) & ~after
        more = more and not after.any()
    return kept, more
