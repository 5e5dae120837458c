"""A range of the instructions of threads, and where it lies among those of their streams."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit.decode.read import iterate
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, integer

if TYPE_CHECKING:
    from ptkit.decode.plan import Plan
    from ptkit.decode.query import Query
    from ptkit.decode.scope import Scope
    from ptkit.table import Table

__all__ = ["OF_OWNERS", "InstructionRanges", "instruction_range"]

_Range = tuple[int, int]
_ROWS = 1 << 16
#: Arguments of a query that choose streams and threads.
OF_OWNERS = ("stream", "cpu", "tid", "pid", "space", "cr3", "threads")


def instruction_range(*queries: Query | None) -> _Range | None:
    """The range that all queries with an argument ``instructions`` select; None: none has one.

    Raises
    ------
    ConfigError
        If it is no pair of numbers of instructions, or the first is above the second.
    """
    found: _Range | None = None
    for query in queries:
        value: Any = None if query is None else query.get("instructions")
        if value is None:
            continue
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise ConfigError(f"instructions={value!r} must be (first, end); None leaves an end open")
        low = 0 if value[0] is None else integer("instructions: first", value[0], 0, LAST_ADDRESS)
        high = LAST_ADDRESS if value[1] is None else integer("instructions: end", value[1], 0, LAST_ADDRESS)
        if low > high:
            raise ConfigError(f"instructions={value!r}: the first must not be above the end")
        if found is not None:
            low, high = max(low, found[0]), max(min(high, found[1]), low, found[0])
        found = low, high
    return found


class InstructionRanges:
    """Finds ranges of the instructions of threads in their streams, and keeps what it has found.

    Parameters
    ----------
    scope : Scope
        The threads of each stream.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._found: dict[Hashable, _Range | None] = {}

    def in_streams(self, blocks: Plan, wanted: _Range) -> _Range:
        """Find the instructions of streams that are those of the selected threads.

        Parameters
        ----------
        blocks : Plan
            Of the blocks of the selected streams and threads, with their columns ``instruction`` and
            ``instructions``.
        wanted : tuple of int
            First and end, counted from the begin of each thread in its stream.

        Raises
        ------
        ConfigError
            If a stream has several of the selected threads, or the range lies elsewhere in each stream.
        """
        found = {stream: self._in_stream(blocks, stream, wanted) for stream in blocks.streams}
        different = {one for one in found.values() if one is not None}
        if len(different) > 1:
            streams = ", ".join(str(stream) for stream, one in found.items() if one is not None)
            raise ConfigError(
                f"instructions: threads count from their begins in each of the streams {streams}, which they "
                "share with others: choose one by stream= (--stream)"
            )
        return different.pop() if different else (LAST_ADDRESS, LAST_ADDRESS)

    def is_of_one_thread(self, stream: int) -> bool:
        """Whether all instructions of a stream are those of one thread."""
        threads = self._scope.threads_of(stream)
        return len(threads) == 1 and (min(threads)[1] >= 0 or self._scope.spaces_count == 1)

    def _in_stream(self, blocks: Plan, stream: int, wanted: _Range) -> _Range | None:
        if "spaces" not in blocks.selection and self.is_of_one_thread(stream):
            return wanted
        names = ("tids", "pids", "spaces")
        owners = tuple((name, tuple(blocks.selection.get(name, ()))) for name in names)
        key = stream, owners, wanted
        if key not in self._found:
            self._found[key] = _measured(replace(blocks, streams=(stream,)), stream, wanted)
        return self._found[key]


def _measured(blocks: Plan, stream: int, wanted: _Range) -> _Range | None:
    """Count the instructions of the one thread that blocks are of; None: there are none."""
    count = 0
    owners: set[tuple[int, int]] = set()
    found: dict[int, int] = {0: 0}
    for part in iterate(blocks, _ROWS, reuse=True):
        if not len(part):
            continue
        owners |= _owners(part)
        if len(owners) > 1:
            raise _several(stream, owners)
        sizes = part["instructions"].astype(np.int64)
        ends = count + np.cumsum(sizes)
        for position in wanted:
            if position in found or position > int(ends[-1]):
                continue
            # Where others follow, their instructions come after it.
            row = int(np.searchsorted(ends, position))
            found[position] = int(part["instruction"][row] + sizes[row] - ends[row]) + position
        count = int(ends[-1])
    low, high = (found.get(position, LAST_ADDRESS) for position in wanted)
    return (low, high) if count else None


def _owners(part: Table) -> set[tuple[int, int]]:
    """Processes and threads of rows; of a thread that is not known, -1 and a number for its space."""
    assert part.data.runs is not None
    runs = part.data.runs.arrays
    first = runs["row"].astype(np.int64)
    known = part.known("tid")
    is_known = [True] * len(first) if known is None else known[first].tolist()
    cells = (runs[name].tolist() for name in ("pid", "tid", "space"))
    return {
        (pid, tid) if one else (-1, -1 - space) for one, pid, tid, space in zip(is_known, *cells, strict=True)
    }


def _several(stream: int, owners: set[tuple[int, int]]) -> ConfigError:
    unknown = [tid for _, tid in owners if tid < 0]
    by = "tid= (--tid)" if not unknown else "tid= (--tid) or space= (--space)"
    return ConfigError(
        f"instructions: stream {stream} has instructions of several threads, each of which counts from its "
        f"own begin: choose one by {by}"
    )
