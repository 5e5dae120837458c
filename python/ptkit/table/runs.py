"""Columns that change rarely, kept as runs: from a row on, rows have these values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.table.cells import uniform

_NAMES = ("stream", "cpu", "pid", "tid", "space", "flags")


class Runs:
    """Stream, processor, thread and address space of rows.

    Parameters
    ----------
    rows : int
        Number of rows that the runs cover.
    arrays : dict of str to numpy.ndarray
        ``row`` (uint64, the first row of each run, ascending) and one array per column, all of one length.
    """

    __slots__ = ("arrays", "rows")

    def __init__(self, rows: int, arrays: dict[str, NDArray[Any]]) -> None:
        self.rows = rows
        count = int(np.searchsorted(arrays["row"], rows))
        self.arrays = (
            arrays if count == len(arrays["row"]) else {name: array[:count] for name, array in arrays.items()}
        )

    def __len__(self) -> int:
        return len(self.arrays["row"])

    def _lengths(self) -> NDArray[np.int64]:
        starts = self.arrays["row"].astype(np.int64)
        return np.diff(starts, append=np.int64(self.rows))

    def spread(self, name: str) -> NDArray[Any]:
        """The column's value for every row."""
        values = self.arrays[name]
        if len(values) and self.is_uniform(name):
            return uniform(values[0], values.dtype, self.rows)
        return np.repeat(values, self._lengths())

    def is_uniform(self, name: str) -> bool:
        """Whether all rows have the same value."""
        values = self.arrays[name]
        return bool((values == values[:1]).all())

    def copied(self) -> Runs:
        """Return runs that share no memory with these."""
        return Runs(self.rows, {name: values.copy() for name, values in self.arrays.items()})

    def take(self, index: Any) -> Runs:
        """Runs of the rows that an index (slice, mask or positions) chooses."""
        if isinstance(index, slice) and index.step in (None, 1):
            start, stop, _ = index.indices(self.rows)
            return self._clip(start, max(start, stop))
        chosen = self._positions(index)
        of_row = np.searchsorted(self.arrays["row"].astype(np.int64), chosen, side="right") - 1
        first = np.flatnonzero(np.diff(of_row, prepend=-1))
        arrays = {name: self.arrays[name][of_row[first]] for name in _NAMES}
        return Runs(len(of_row), {"row": first.astype(np.uint64)} | arrays)

    def _positions(self, index: slice | NDArray[Any]) -> NDArray[np.int64]:
        if isinstance(index, slice):
            return np.arange(*index.indices(self.rows), dtype=np.int64)
        if index.dtype == np.bool_:
            return np.flatnonzero(index)
        positions = index.astype(np.int64)
        positions[positions < 0] += self.rows
        return positions

    def _clip(self, start: int, stop: int) -> Runs:
        starts = self.arrays["row"].astype(np.int64)
        first = max(int(np.searchsorted(starts, start, side="right")) - 1, 0)
        last = int(np.searchsorted(starts, stop))
        arrays = {name: self.arrays[name][first:last] for name in _NAMES}
        rows = np.maximum(starts[first:last] - start, 0).astype(np.uint64)
        return Runs(stop - start, {"row": rows} | arrays)

    @staticmethod
    def concatenate(parts: Sequence[Runs]) -> Runs:
        """Runs of concatenated tables; equal neighbours become one run."""
        total = 0
        shifted = []
        for part in parts:
            shifted.append(part.arrays["row"] + np.uint64(total))
            total += part.rows
        arrays = {name: np.concatenate([part.arrays[name] for part in parts]) for name in _NAMES}
        rows = np.concatenate(shifted)
        changes = np.ones(len(rows), dtype=np.bool_)
        if len(rows) > 1:
            changes[1:] = False
            for values in arrays.values():
                changes[1:] |= values[1:] != values[:-1]
        return Runs(
            total, {"row": rows[changes]} | {name: values[changes] for name, values in arrays.items()}
        )
