"""Streams merged by time, with errors and gaps at their times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ptkit.table import Table


def _times(table: Table) -> NDArray[np.uint64]:
    """Times of rows, 0 where one is not known."""
    return np.where(np.asarray(table["time_known"]), np.asarray(table["tsc"]), np.uint64(0))


def _without_sides(table: Table) -> Table:
    table.errors = table.gaps = None
    return table


def in_time_order(parts: Iterable[Table]) -> Iterator[Table]:
    """Cut parts of merged streams, so that each has either rows, or errors and gaps of one position.

    Rows need the columns ``tsc`` and ``flags``. What has no time comes first in its part.
    """
    for part in parts:
        keys = np.maximum.accumulate(_times(part)) if len(part) else _times(part)
        notes: list[tuple[int, int, str, int]] = []  # row that follows, order of the table, its name, its row
        for order, name in enumerate(("errors", "gaps")):
            side = getattr(part, name)
            if side is not None:
                positions = np.searchsorted(keys, _times(side), side="right").tolist()
                notes += [(position, order, name, row) for row, position in enumerate(positions)]
        done = 0
        for position, group in groupby(sorted(notes), key=lambda note: note[0]):
            if position > done:
                yield _without_sides(part[done:position])
            done = position
            yield _with_sides(part, list(group))
        if done < len(part):
            yield _without_sides(part[done:])


def _with_sides(part: Table, notes: list[tuple[int, int, str, int]]) -> Table:
    """No rows, and some errors and gaps."""
    sides = _without_sides(part[:0])
    for name in ("errors", "gaps"):
        rows = [row for _, _, of, row in notes if of == name]
        if rows:
            setattr(sides, name, getattr(part, name)[rows])
    return sides
