"""Rows of the first screen: the function of the longest slice in each column of pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["COLUMNS", "DEPTHS", "NONE", "FirstScreen"]

COLUMNS = 512
DEPTHS = 24
#: A cell in which there is no slice.
NONE = 65535


class FirstScreen:
    """Cells of all tracks, filled part by part.

    Parameters
    ----------
    tracks : int
        How many there are.
    begin, end : int
        Positions [begin, end) that the columns divide.
    """

    def __init__(self, tracks: int, begin: int, end: int) -> None:
        self._begin = begin
        self._length = max(end - begin, 1)
        size = tracks * DEPTHS * COLUMNS
        self._longest = np.zeros(size, np.uint64)  # 0: none, else length + 1
        self._function = np.full(size, NONE, np.uint16)
        #: Of each track: slices, the greatest depth (-1: no slice), the first and the last position.
        self.slices = np.zeros(tracks, np.int64)
        self.depth = np.full(tracks, -1, np.int64)
        self.first = np.full(tracks, np.iinfo(np.uint64).max, np.uint64)
        self.last = np.zeros(tracks, np.uint64)

    def add(self, part: Mapping[str, NDArray[Any]], function: NDArray[np.uint32]) -> None:
        """Add slices, at least one: columns of a timeline, and the numbers of their functions in the page."""
        track = part["track"]
        self.slices += np.bincount(track, minlength=len(self.slices))
        np.maximum.at(self.depth, track, part["depth"].astype(np.int64))
        np.minimum.at(self.first, track, part["begin"])
        np.maximum.at(self.last, track, part["end"])
        shown = np.flatnonzero((part["depth"] < DEPTHS) & (function < NONE))
        length = part["end"][shown] - part["begin"][shown]
        first, last = (
            self._columns(part["begin"][shown]),
            self._columns(part["end"][shown] - (length > 0).astype(np.uint64)),
        )
        row = track[shown].astype(np.int64) * DEPTHS + part["depth"][shown]
        # Longer ones come last: of equal indexes NumPy keeps the last value.
        order = np.argsort(length, kind="stable")
        length, row, first, last = length[order], row[order], first[order], last[order]
        width = last - first + 1
        of = np.repeat(np.arange(len(order)), width)
        cell = (row * COLUMNS + first)[of] + np.arange(len(of)) - np.repeat(np.cumsum(width) - width, width)
        low, high = (number * DEPTHS * COLUMNS for number in (int(track[0]), int(track[-1]) + 1))
        best = np.zeros(high - low, np.uint64)
        chosen = np.zeros(high - low, np.uint16)
        best[cell - low] = (length + np.uint64(1))[of]
        chosen[cell - low] = function[shown][order][of].astype(np.uint16)
        longer = best > self._longest[low:high]
        self._longest[low:high][longer] = best[longer]
        self._function[low:high][longer] = chosen[longer]

    def _columns(self, position: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The column of each position, without products that do not fit."""
        share = (position.astype(np.float64) - float(self._begin)) / float(self._length)
        return np.clip((share * COLUMNS).astype(np.int64), 0, COLUMNS - 1)

    def rows(self, track: int) -> NDArray[np.uint16]:
        """Cells of a track, of shape (depths, columns): as many depths as it has."""
        depths = min(int(self.depth[track]) + 1, DEPTHS)
        cells = self._function.reshape(-1, DEPTHS, COLUMNS)[track, :depths]
        return np.ascontiguousarray(cells)
