"""Lines of instructions: address, disassembly, symbol, each by its address space and its time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ptkit.table import Table
from ptkit.trace import Trace

_KEPT_LINES = 1 << 20
_Key = tuple[int, int, int, int, bytes]  # ip, size, mode, space, code (empty where it never changes)


class Listing:
    """Makes lines of instructions.

    Lines are kept by address and space. Where a recording may have several versions of the code, the bytes
    of each row are looked up by its time, so that it shows the version that was executed.

    Parameters
    ----------
    trace : Trace
    bare : bool
        Addresses only.
    """

    def __init__(self, trace: Trace, *, bare: bool) -> None:
        self._trace = trace
        self._bare = bare
        self._kept: dict[_Key, tuple[str, str]] = {}
        self._changing = _changing_code(trace.opened.bundle.code)

    def lines(self, part: Table) -> list[str]:
        """All lines of a part with the columns ip, size, mode, flags, tsc and space, in order."""
        ips = part["ip"].tolist()
        marks = ["? " if in_tx else "" for in_tx in part["in_tx"].tolist()]
        if self._bare:
            return [f"{mark}{ip:016x}" for mark, ip in zip(marks, ips, strict=True)]
        return [
            f"{mark}{ip:016x}  {text:<44} {symbol}".rstrip()
            for mark, ip, (text, symbol) in zip(marks, ips, self.texts(part), strict=True)
        ]

    def texts(self, part: Table) -> list[tuple[str, str]]:
        """Disassembly and symbol (or an empty text) of each row of a part with these columns."""
        ips, sizes, spaces = part["ip"].tolist(), part["size"].tolist(), part["space"].tolist()
        # The earliest time of a row chose the version of the code when it was decoded.
        times = np.where(part["time_known"], part["tsc"], 0).tolist()
        read = self._trace.opened.session.read_code
        places = zip(self._changes(part).tolist(), ips, sizes, spaces, times, strict=True)
        versions = [
            read(ip, size, space, time) if changes else b"" for changes, ip, size, space, time in places
        ]
        keys = zip(ips, sizes, part["mode"].tolist(), spaces, versions, strict=True)
        kept = self._kept
        if len(kept) > _KEPT_LINES:
            kept.clear()
        return [kept.get(key) or self._text(key, time) for time, key in zip(times, keys, strict=True)]

    def _text(self, key: _Key, time: int) -> tuple[str, str]:
        ip, size, mode, space, _ = key
        text = self._trace.disassemble(ip, size, mode=mode, space=space, tsc=time)
        symbol = self._trace.symbolize([ip], space=space, tsc=time)[0]
        if symbol is None:
            symbol = self._trace.symbolize([ip], space=space)[0] or ""
        self._kept[key] = text, symbol
        return text, symbol

    def _changes(self, part: Table) -> NDArray[np.bool_]:
        """Which rows are of code that may have several versions."""
        result = np.zeros(len(part), dtype=np.bool_)
        spaces = part["space"]
        for space in np.unique(spaces).tolist():
            starts, ends = self._changing.get(space, self._changing[0])
            if not len(starts):
                continue
            ips = part["ip"]
            # An instruction may begin before the code that changes.
            index = np.searchsorted(starts, ips + part["size"], side="left").astype(np.int64) - 1
            inside = (index >= 0) & (ips < ends[np.maximum(index, 0)])
            result |= inside & (spaces == space)
        return result


_Intervals = tuple[NDArray[np.uint64], NDArray[np.uint64]]


def _changing_code(regions: Iterable[tuple[int, int, bool, int, int]]) -> dict[int, _Intervals]:
    """Starts and ends of code that lies in more than one region, by space; 0 stands for any space."""
    by_space: dict[int, list[tuple[int, int]]] = {0: []}
    for address, size, _, space, _ in regions:
        by_space.setdefault(space, []).append((address, address + size))
    return {
        space: _overlaps(ranges if space == 0 else ranges + by_space[0]) for space, ranges in by_space.items()
    }


def _overlaps(ranges: list[tuple[int, int]]) -> _Intervals:
    """Where at least two of the ranges lie, as disjoint intervals in order."""
    changes: dict[int, int] = {}
    for start, end in ranges:
        changes[start] = changes.get(start, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    depth = 0
    starts, ends = [], []
    places = sorted(changes)
    for place, following in pairwise(places):
        depth += changes[place]
        if depth > 1:
            starts.append(place)
            ends.append(following)
    return np.array(starts, np.uint64), np.array(ends, np.uint64)
