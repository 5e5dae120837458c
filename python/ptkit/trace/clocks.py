"""Times by other clocks than the TSC, as TSC ticks of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, numbers

if TYPE_CHECKING:
    from ptkit.trace.time_range import TimeScale

__all__ = ["CLOCKS", "Clocks", "clock_sample"]

#: Clocks of times that are given.
CLOCKS = ("tsc", "ns", "seconds", "percent", "monotonic", "realtime")

_NS = 1_000_000_000
_MOST_NS = 2**62
_SPARE = 64  # ticks on both sides of where a time is looked for at first
_LAST_FLOAT = float(np.nextafter(2.0**64, 0.0))  # the largest one that is a number of ticks


def clock_sample(recording: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """The moment that a recorder read by all clocks, if it did: TSC, CLOCK_MONOTONIC, CLOCK_REALTIME."""
    tsc, monotonic, realtime = (
        recording.get(f"clocks_{name}") for name in ("tsc", "monotonic_ns", "realtime_ns")
    )
    if not (isinstance(tsc, int) and isinstance(monotonic, int) and isinstance(realtime, int)):
        return None
    return tsc, monotonic, realtime


class Clocks:
    """Times of a trace by the clocks that it can be asked by.

    Parameters
    ----------
    scale : TimeScale
        The times of the trace.
    sample : tuple of int or None
        One moment by the TSC, by CLOCK_MONOTONIC and by CLOCK_REALTIME (nanoseconds), as the recorder
        read them; None: it did not.
    """

    def __init__(self, scale: TimeScale, sample: tuple[int, int, int] | None) -> None:
        self._scale = scale
        self._sample = sample

    def intervals(
        self, times: ArrayLike, clock: str, before: float = 0, after: float = 0
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """TSC ticks that times by a clock can be, first and last one.

        Parameters
        ----------
        times : array_like of int or float, shape (n,)
        clock : str
            One of `CLOCKS`.
        before, after : int or float
            The true times are in [time - before, time + after], by the same clock.

        Raises
        ------
        ConfigError
            If they are no times, or the trace cannot convert them.
        """
        check_choice("clock", clock, CLOCKS)
        given = _numbers(times, fractions=clock in ("seconds", "percent"))
        if clock == "tsc":
            return _ticks(given, -before), _ticks(given, after)
        if clock == "percent":
            ends = [given - before, given + after]
            first, last = (
                np.array([self._scale.ticks("percent", one) for one in end.tolist()], np.uint64)
                for end in ends
            )
            return first, last
        if clock == "seconds":
            start = self._scale.start_ns
            before, after = round(before * _NS), round(after * _NS)
            given = start + np.rint(given * _NS).astype(np.int64)
        else:
            given = _nanoseconds(given) + self._offset(clock)
        least = self._first_ticks(given - int(before))
        most = self._first_ticks(given + int(after) + 1)
        return least, np.maximum(most, least + np.uint64(1)) - np.uint64(1)

    def _offset(self, clock: str) -> int:
        """Nanoseconds from a clock to that of the recorder (column ``time_ns``)."""
        if clock == "ns":
            return 0
        if self._sample is None:
            system = "CLOCK_MONOTONIC" if clock == "monotonic" else "CLOCK_REALTIME"
            raise ConfigError(
                f"clock={clock!r}: the recording does not state how its clock relates to {system}; "
                "recordings of ptkit record do. Or add the difference yourself, and give "
                'clock="ns": nanoseconds of the recorder\'s clock, as in column time_ns'
            )
        tsc, monotonic, realtime = self._sample
        return self._scale.ns(tsc) - (monotonic if clock == "monotonic" else realtime)

    def _first_ticks(self, ns: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The first tick of each time, or after it."""
        origin, rate = self._scale.line()
        spare = np.full(len(ns), _SPARE, np.float64)
        guess = np.maximum(origin[0] + (ns - origin[1]) * rate, 0.0)
        low, high = (np.zeros(len(ns), np.uint64) for _ in range(2))
        open_ends = np.ones(len(ns), np.bool_)
        while open_ends.any():
            near = np.clip(guess - spare, 0.0, _LAST_FLOAT)
            low[open_ends] = near[open_ends].astype(np.uint64)
            far = np.minimum(guess + spare, _LAST_FLOAT)[open_ends]
            high[open_ends] = np.where(far < _LAST_FLOAT, far.astype(np.uint64), np.uint64(LAST_ADDRESS))
            ends_late = (high < np.uint64(LAST_ADDRESS)) & (self._ns(high) < ns)
            open_ends = (low > 0) & (self._ns(low) >= ns) | ends_late
            spare *= 16
        while (low < high).any():
            middle = low + (high - low) // np.uint64(2)
            below = self._ns(middle) < ns
            low = np.where(below & (low < high), middle + np.uint64(1), low)
            high = np.where(below, high, np.minimum(middle, high))
        return low

    def _ns(self, ticks: NDArray[np.uint64]) -> NDArray[np.int64]:
        assert self._scale.to_ns is not None
        return self._scale.to_ns(ticks)


def _numbers(times: ArrayLike, *, fractions: bool) -> NDArray[Any]:
    array = np.atleast_1d(np.asarray(times) if fractions else numbers(times))
    if array.shape == (0,):
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in ("biuf" if fractions else "iu") or array.dtype.kind == "b":
        expected = "numbers" if fractions else "integers"
        raise ConfigError(f"times must be {expected} in one dimension, not an array of {array.dtype}")
    if fractions:
        if not np.isfinite(array).all():
            raise ConfigError("times must be finite numbers")
        return array.astype(np.float64)
    return array


def _nanoseconds(times: NDArray[Any]) -> NDArray[np.int64]:
    if len(times) and (int(times.min()) < -_MOST_NS or int(times.max()) > _MOST_NS):
        raise ConfigError("times: nanoseconds must be in [-2**62, 2**62]")
    return times.astype(np.int64)


def _ticks(times: NDArray[Any], add: float) -> NDArray[np.uint64]:
    """Ticks, and some more or less, within [0, 2**64)."""
    if len(times) and int(times.min()) < 0:
        raise ConfigError(f"times: {int(times.min())} is no number of TSC ticks")
    ticks = times.astype(np.uint64)
    amount = np.uint64(min(abs(int(add)), LAST_ADDRESS))
    if add < 0:
        ends: NDArray[np.uint64] = np.where(ticks > amount, ticks - amount, np.uint64(0))
    else:
        last = np.uint64(LAST_ADDRESS)
        ends = np.where(ticks > last - amount, last, ticks + amount)
    return ends
