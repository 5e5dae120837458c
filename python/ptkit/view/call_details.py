"""Details of functions that slices tell: lengths of calls, the slowest ones, slow against fast ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.slow_calls import choose_calls, chosen_text
from ptkit.decode.call_histogram import histogram
from ptkit.errors import ConfigError
from ptkit.support.text import duration
from ptkit.view.nesting import Nesting, narrow, nesting_of

__all__ = ["CallDetails", "SliceRows"]

_SLOWEST = 20
_DIFFERENCES = 12
_SLOW, _FAST = 0.99, 0.5  # shares, as `Trace.compare` has them
_COLUMNS = ("track", "depth", "begin", "length", "id", "instructions", "flags", "is_single", "function")
_CROSSING = _core.CallFlag.BEGINS_BEFORE | _core.CallFlag.ENDS_AFTER


class SliceRows:
    """Columns of all slices that details are made of, gathered part by part."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _COLUMNS}

    def add(self, part: Mapping[str, NDArray[Any]], function: NDArray[np.uint32]) -> None:
        """Add slices: columns of a timeline, and the numbers of their functions in the page."""
        found = {
            **part,
            "length": part["end"] - part["begin"],
            "is_single": part["calls"] == 1,
            "function": function,
        }
        for name in _COLUMNS:
            self._parts[name].append(_short(found[name]))

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns; the parts are given up."""
        found = {}
        for name in list(self._parts):
            parts = self._parts.pop(name)
            found[name] = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
        return found


def _short(values: NDArray[Any]) -> NDArray[Any]:
    """Values in fewer bytes where they fit: a recording has millions of them."""
    if values.dtype.itemsize <= 2:
        return values
    most = int(values.max(initial=0))
    dtype: np.dtype[Any] = np.min_scalar_type(most) if most < 1 << 32 else values.dtype
    return np.asarray(values, dtype)


@dataclass(frozen=True)
class _Chosen:
    """Slow and fast calls of a function, and limits of their lengths."""

    slow: NDArray[np.int64]
    fast: NDArray[np.int64]
    slow_from: int
    fast_to: int


class CallDetails:
    """Details by the function's number in the page.

    Parameters
    ----------
    columns : dict of str to numpy.ndarray
        Those of `SliceRows`.
    calls : numpy.ndarray of int64
        Calls of each function: of a function with merged calls, not all lengths are known.
    names : list of str
        Names of functions.
    origin : int
        Position 0 of the page.
    length_ns : callable or None
        Ticks to nanoseconds; None: lengths are instructions.
    """

    def __init__(
        self,
        columns: dict[str, NDArray[Any]],
        calls: NDArray[np.int64],
        names: list[str],
        origin: int,
        length_ns: Callable[[NDArray[np.int64]], NDArray[np.int64]] | None,
    ) -> None:
        self._columns = columns
        self._calls = calls
        self._names = names
        self._origin = origin
        self._length_ns = length_ns
        # A call takes more positions than it has instructions where another stack was executed meanwhile.
        self._length = columns["instructions" if length_ns is None else "length"].astype(np.int64)
        self._is_whole = bool(columns["is_single"].all())
        self._has_length = (columns["flags"] & _CROSSING) == 0
        self._nesting: Nesting | None = None
        function = columns["function"]
        self._order = np.argsort(narrow(function), kind="stable")
        self._limits = np.searchsorted(function[self._order], np.arange(len(names) + 1))

    @property
    def unit(self) -> str:
        """Unit of lengths of calls."""
        return "instructions" if self._length_ns is None else "ns"

    def of(self, number: int) -> dict[str, Any]:
        """Members ``histogram``, ``slowest`` and ``slow`` of a function's details."""
        rows = self._order[self._limits[number] : self._limits[number + 1]]
        single = rows if self._is_whole else rows[self._columns["is_single"][rows]]
        is_complete = self._is_whole or len(single) >= self._calls[number]
        return {
            "histogram": self._histogram(single) if is_complete else None,
            "slowest": self._slowest(single),
            "slow": self._slow(rows, number) if self._is_whole else None,
        }

    def _in_unit(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        return lengths if self._length_ns is None else self._length_ns(lengths)

    def _histogram(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        whole = rows[self._has_length[rows]]
        found = histogram(self._in_unit(self._length[whole]), self.unit, 0, None)
        return {"edges": found.limits.tolist(), "counts": found.counts.tolist(), "of": self.unit}

    def _slowest(self, rows: NDArray[np.int64]) -> list[dict[str, int]]:
        length = self._length[rows]
        if len(rows) > _SLOWEST:
            limit = np.partition(length, len(rows) - _SLOWEST)[len(rows) - _SLOWEST]
            rows = rows[length >= limit]
        rows = rows[np.lexsort((self._columns["id"][rows], ~self._length[rows]))][:_SLOWEST]
        cells = self._columns
        return [
            {
                "id": int(cells["id"][row]),
                "track": int(cells["track"][row]),
                "begin": int(cells["begin"][row]) - self._origin,
                "duration": int(cells["length"][row]),
                "instructions": int(cells["instructions"][row]),
            }
            for row in rows.tolist()
        ]

    def _slow(self, rows: NDArray[np.int64], number: int) -> dict[str, Any] | None:
        """Compare slow calls with fast ones, as `Trace.compare` does; None: no call is slow."""
        if len(rows) < 2:
            return None
        if self._nesting is None:
            self._nesting = nesting_of(self._columns["depth"], self._columns["instructions"])
        rows = self._nesting.outermost(rows)
        chosen = self._choose(rows)
        if chosen is None:
            return None
        means = [self._means(side) for side in (chosen.slow, chosen.fast)]
        extra = means[0] - means[1]
        more = np.flatnonzero(extra > 0)
        first = more[np.argsort(-extra[more], kind="stable")[:_DIFFERENCES]]
        shown = [
            {
                "name": self._names[one],
                "slow": _rounded(means[0][one]),
                "fast": _rounded(means[1][one]),
                "extra": _rounded(extra[one]),
            }
            for one in first.tolist()
        ]
        return {"text": self._sentence(len(rows), chosen, number), "rows": shown}

    def _choose(self, rows: NDArray[np.int64]) -> _Chosen | None:
        length = self._length[rows]
        if int(length.min(initial=0)) == int(length.max(initial=0)):
            return None
        try:
            is_slow, is_fast, _ = choose_calls(length, _SLOW, _FAST, "instructions")
        except ConfigError:  # no call is longer than the fast ones
            return None
        return _Chosen(rows[is_slow], rows[is_fast], int(length[is_slow].min()), int(length[is_fast].max()))

    def _means(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Instructions of each function alone in a call and all that it called."""
        assert self._nesting is not None
        inside = self._nesting.within(rows)
        function = self._columns["function"][inside]
        return np.bincount(function, self._nesting.own[inside], len(self._names)) / len(rows)

    def _sentence(self, calls: int, chosen: _Chosen, number: int) -> str:
        slow, fast = (
            (f"{value:,} instructions" if self._length_ns is None else duration(int(ns)))
            for value, ns in zip(
                (chosen.slow_from, chosen.fast_to),
                self._in_unit(np.array([chosen.slow_from, chosen.fast_to], np.int64)),
                strict=True,
            )
        )
        return chosen_text(self._names[number], calls, len(chosen.slow), slow, len(chosen.fast), fast)


def _rounded(value: float) -> float | int:
    """A mean, with fractions where it is small."""
    return round(value) if abs(value) >= 100 or value == int(value) else round(float(value), 2)
