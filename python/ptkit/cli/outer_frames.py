"""Selected frames with all frames above them, found in frames that come in the order in which they end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ptkit.table import Table

__all__ = ["OUTER", "OuterFrames"]

#: Arguments that select frames by their function.
OUTER = ("ip", "symbol", "module")

_NEVER = np.iinfo(np.int64).max


class OuterFrames:
    """The first selected frames of a stream; one that is above another one comes with that.

    Parameters
    ----------
    most : int or None
        How many are kept; None: all.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._rows = np.empty((0, 4), np.int64)  # thread, number, depth, position in the order of the ends
        self._count = 0

    def add(self, part: Table) -> None:
        """Add selected frames."""
        positions = self._count + np.arange(len(part))
        columns = (_threads(part), part["id"], part["depth"], positions)
        rows = np.column_stack([np.asarray(column).astype(np.int64) for column in columns])
        self._count += len(part)
        self._rows = np.concatenate([self._rows, rows])
        self._rows = self._rows[np.argsort(self._rows[:, 1], kind="stable")][: self._most]

    @property
    def left_out(self) -> bool:
        """There were more than are kept."""
        return self._count > len(self._rows)

    def with_those_above(self, parts: Iterator[Table], depth: int | None) -> Iterator[Table]:
        """Pass on these frames and those above them, `depth` levels at most; stops after the last one."""
        stacks = {int(thread): _Stack(self._of(thread)) for thread in np.unique(self._rows[:, 0])}
        for part in parts if stacks else ():
            found = np.zeros(len(part), np.bool_)
            threads = _threads(part)
            for thread, stack in stacks.items():
                rows = np.flatnonzero(threads == thread)
                numbers, depths = (np.asarray(part[name])[rows].astype(np.int64) for name in ("id", "depth"))
                found[rows] = stack.above(numbers, depths, depth)
            yield part[found]
            if all(stack.ended for stack in stacks.values()):
                return

    def _of(self, thread: np.int64) -> NDArray[np.int64]:
        """Numbers and depths of a thread's frames that are above none of the others."""
        found: list[tuple[int, int]] = []
        last_end = -1
        for _, number, depth, end in self._rows[self._rows[:, 0] == thread].tolist():
            if end > last_end:
                found.append((number, depth))
                last_end = end
        return np.array(found, np.int64).reshape(-1, 2)


class _Stack:
    """Frames of a thread of which none is above another one, while the frames of the thread end."""

    def __init__(self, frames: NDArray[np.int64]) -> None:
        self._numbers, self._depths = frames[:, 0], frames[:, 1]
        self._ends = np.full(len(frames), _NEVER)  # by number of the thread's frame that ends
        self._count = 0

    @property
    def ended(self) -> bool:
        """None of the frames is open, or still to come."""
        return not bool((self._ends == _NEVER).any())

    def above(
        self, numbers: NDArray[np.int64], depths: NDArray[np.int64], most: int | None
    ) -> NDArray[np.bool_]:
        """Which of the next frames of the thread are these, or above them.

        A frame is above the last one that has a smaller number, if that one is deeper down and ends later.
        """
        positions = self._count + np.arange(len(numbers))
        self._count += len(numbers)
        below = np.searchsorted(self._numbers, numbers, side="right") - 1
        known = below >= 0
        below[~known] = 0
        ending = known & (self._numbers[below] == numbers)
        self._ends[below[ending]] = positions[ending]
        levels = depths - self._depths[below]
        found: NDArray[np.bool_] = known & (positions <= self._ends[below]) & ((levels > 0) | ending)
        return found if most is None else np.logical_and(found, levels < most)


def _threads(part: Table) -> NDArray[np.int64]:
    """Threads of frames; -1: not known."""
    threads = np.asarray(part["tid"]).astype(np.int64)
    known = part.known("tid")
    return threads if known is None else np.where(known, threads, -1)
