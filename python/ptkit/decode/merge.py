"""Streams merged by time.

Rows without a time stay after the row before them; ties go to the lower stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ptkit.table import Table, concatenate

#: Bytes of working memory for each row that is sorted, besides a copy of the row: keys, their order, and what
#: the sort and the runs need at the same time.
MERGE_BYTES = 48


def _keys(table: Table, before: int = 0) -> NDArray[np.uint64]:
    """Times of one stream's rows that never go back."""
    tsc = table.data.arrays["tsc"].copy()
    known = table.known("tsc")
    if known is not None:
        tsc[~known] = 0
    if len(tsc):
        tsc[0] = max(int(tsc[0]), before)
    return np.maximum.accumulate(tsc) if len(tsc) else tsc


def sorted_by_time(table: Table) -> Table:
    """Rows of several streams in one table, in the order of time."""
    streams = table["stream"]
    if not len(streams):
        return table
    changes = np.flatnonzero(np.diff(streams)) + 1
    bounds = [0, *changes.tolist(), len(streams)]
    keys = [_keys(table._rows_of(slice(a, b))) for a, b in pairwise(bounds)]
    order = np.argsort(np.concatenate(keys), kind="stable")
    del keys
    return table._rows_of(order, table.errors, table.gaps)


class _Head:
    """Rows of one stream that were decoded and not yet given out."""

    def __init__(self, parts: Iterator[Table]) -> None:
        self._parts = parts
        self.rows: Table | None = None
        self.keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.ended = False
        self.sides: list[Table] = []
        self._last = 0

    def fill(self) -> None:
        """Decode on until there are rows or the stream ends."""
        while not self.ended and not len(self.keys):
            part = next(self._parts, None)
            if part is None:
                self.ended = True
                return
            self.sides.append(part)
            if len(part):
                self.rows = part
                self.keys = _keys(part, self._last)
                self._last = int(self.keys[-1])

    def take(self, count: int) -> Table:
        assert self.rows is not None
        taken = self.rows._rows_of(slice(count))
        self.rows, self.keys = self.rows._rows_of(slice(count, None)), self.keys[count:]
        return taken


def _safe_rows(heads: Sequence[_Head]) -> list[int]:
    """Numbers of rows of each stream that no later row can precede."""
    open_ends = [(int(head.keys[-1]), i) for i, head in enumerate(heads) if not head.ended]
    if not open_ends:
        return [len(head.keys) for head in heads]
    last, stream = min(open_ends)
    # Rows at `last` itself are safe up to the stream that ends there: it may still get rows of that time.
    return [
        int(np.searchsorted(head.keys, np.uint64(last), side="right" if i <= stream else "left"))
        for i, head in enumerate(heads)
    ]


def _merged(heads: Sequence[_Head]) -> Iterator[Table]:
    """Merge in parts of any size."""
    while True:
        for head in heads:
            head.fill()
        counts = _safe_rows(heads)
        if not any(counts):
            return
        keys = np.concatenate([head.keys[:count] for head, count in zip(heads, counts, strict=True)])
        parts = [head.take(count) for head, count in zip(heads, counts, strict=True) if count]
        yield concatenate(parts)._rows_of(np.argsort(keys, kind="stable"))


def _give_sides(table: Table, heads: Sequence[_Head]) -> Table:
    for name in ("errors", "gaps"):
        rows = [side for head in heads for part in head.sides if (side := getattr(part, name)) is not None]
        setattr(table, name, concatenate(rows) if rows else None)
    for head in heads:
        head.sides.clear()
    return table


def merge_in_time(streams: Sequence[Iterator[Table]], rows: int) -> Iterator[Table]:
    """Merge streams of parts into parts of exactly `rows` rows (the last may have fewer)."""
    heads = [_Head(parts) for parts in streams]
    waiting: list[Table] = []
    count = 0
    for part in _merged(heads):
        waiting.append(part)
        count += len(part)
        while count >= rows:
            joined = concatenate(waiting)
            yield _give_sides(joined._rows_of(slice(rows)), heads)
            waiting, count = [joined._rows_of(slice(rows, None))], count - rows
    rest = [part for part in waiting if len(part)] or waiting[:1]
    if rest and (count or any(head.sides for head in heads)):
        yield _give_sides(concatenate(rest)._rows_of(slice(None)), heads)
