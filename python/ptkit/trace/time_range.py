"""Times of a trace in ticks, nanoseconds, seconds from the start, and per cent."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NS = 1_000_000_000
_SLACK = 1024  # a time that is later than the last one by this part of the span is no mistake
_UNITS = ("ns", "seconds", "percent")


class TimeScale:
    """The times of a trace, and conversions between them.

    Parameters
    ----------
    span : callable
        Returns first and last time of the trace in TSC ticks, or None if it has no times.
    to_ns : callable or None
        TSC ticks to nanoseconds of the recorder's clock; None if the clock is not known.
    """

    def __init__(
        self,
        span: Callable[[], tuple[int, int] | None],
        to_ns: Callable[[NDArray[np.uint64]], NDArray[np.int64]] | None,
    ) -> None:
        self._find_span = span
        self.to_ns = to_ns

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """First and last time in TSC ticks; None: the trace has no times."""
        return self._find_span()

    @property
    def knows_seconds(self) -> bool:
        """Whether ticks can be converted to seconds from the start."""
        return self.to_ns is not None and self.span is not None

    def seconds(self, tsc: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Seconds from the start of the trace."""
        return self.ns_from_start(tsc) / _NS

    def ns_from_start(self, tsc: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Nanoseconds from the start of the trace."""
        if self.to_ns is None:
            raise self._no_clock()
        return np.asarray(self.to_ns(tsc) - self.ns(self._known_span()[0]))

    @property
    def start_ns(self) -> int:
        """The first time of the trace, in nanoseconds of the recorder's clock."""
        return self.ns(self._known_span()[0])

    def line(self) -> tuple[tuple[int, int], float]:
        """A tick of the trace with its nanoseconds, and about how many ticks a nanosecond has."""
        low, last = self._known_span()
        end = min(max(last, low + 1_000_000_000), LAST_ADDRESS)
        begin = max(min(low, end - 1_000_000_000), 0)
        return (low, self.ns(low)), (end - begin) / max(self.ns(end) - self.ns(begin), 1)

    def length_ns(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nanoseconds that lengths of time are, given in ticks."""
        if self.to_ns is None:
            raise self._no_clock()
        begin = np.uint64(0 if self.span is None else self.span[0])
        return np.asarray(self.to_ns(ticks.astype(np.uint64) + begin) - self.ns(int(begin)))

    def ticks(self, unit: str, value: float) -> int:
        """The first tick at or after a time.

        Parameters
        ----------
        unit : str
            ``"ns"`` (of the recorder's clock, as column ``time_ns``), ``"seconds"`` (from the start of the
            trace) or ``"percent"`` (of its span).
        value : float

        Raises
        ------
        ConfigError
            If the trace does not know its clock, or has no times.
        """
        first, last = self._known_span()
        if unit == "percent":
            return min(max(first + int((last + 1 - first) * value / 100), 0), LAST_ADDRESS)
        if unit == "ns":
            return self._tick_of_ns(int(value))
        return self._tick_of_ns(self.ns(first) + round(value * _NS))

    def range(self, unit: str, bounds: Any) -> tuple[int | None, int | None]:
        """Turn ``(begin, end)`` of a unit into ticks; None leaves an end open.

        Raises
        ------
        ConfigError
            If they are no two numbers in order, or cannot be converted.
        """
        try:
            begin, end = bounds
        except (TypeError, ValueError):
            raise ConfigError(f"{unit}={bounds!r} must be (begin, end); None leaves an end open") from None
        low, high = _number(unit, begin), _number(unit, end)
        if low is not None and high is not None and low > high:
            raise ConfigError(f"{unit}={bounds!r}: begin must not be above end")
        return (
            None if low is None else self.ticks(unit, low),
            None if high is None else self.ticks(unit, high),
        )

    def check(self, low: int, high: int, hint: str) -> None:
        """Raise ConfigError if the trace has no times in [low, high); `hint` says how to give other units."""
        if low == 0 and high == LAST_ADDRESS:
            return
        if self.span is None:
            raise ConfigError("no row can be selected by time: the trace has no times (no TSC packet)")
        first, last = self.span
        is_before = high <= first and high != LAST_ADDRESS  # which leaves the end open
        if is_before or low > last + (last - first) // _SLACK:
            text = f"TSC ticks [{low:,}, {high:,})" if high != LAST_ADDRESS else f"TSC ticks from {low:,} on"
            raise ConfigError(f"{text} are outside the trace, which spans {self.text()}; {hint}")

    def text(self) -> str:
        """Span of the trace in words."""
        if self.span is None:
            return "no times"
        first, last = self.span
        text = f"TSC {first:,} to {last:,}"
        if self.to_ns is None:
            return text
        begin, end = self.ns(first), self.ns(last)
        return f"{text} ({(end - begin) / _NS:.9f} s; {begin:,} to {end:,} ns)"

    def _known_span(self) -> tuple[int, int]:
        if self.span is None:
            raise ConfigError("no row can be selected by time: the trace has no times (no TSC packet)")
        return self.span

    def ns(self, tick: int) -> int:
        """A tick in nanoseconds of the recorder's clock."""
        if self.to_ns is None:
            raise self._no_clock()
        return int(self.to_ns(np.array([tick], np.uint64))[0])

    def _tick_of_ns(self, ns: int) -> int:
        """The first tick of which `to_ns` is not below; outside the trace, about where it would be."""
        low, last = self._known_span()
        begin, end = self.ns(low), self.ns(last)
        ticks_per_ns = (last - low) / (end - begin) if end > begin else 1.0
        if ns > end:
            return min(last + 1 + int((ns - end) * ticks_per_ns), LAST_ADDRESS)
        if ns < begin:
            return max(low - int((begin - ns) * ticks_per_ns), 0)
        high = last
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.ns(middle) < ns else (low, middle)
        return low

    @staticmethod
    def _no_clock() -> ConfigError:
        return ConfigError(
            "the clock of this trace is not known: open it with tsc_hz= (--tsc-hz), or give TSC ticks"
        )


def _number(unit: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ConfigError(f"{unit}: {value!r} is not a number")
    if not np.isfinite(value):
        raise ConfigError(f"{unit}: {value!r} is not a time")
    if unit == "percent" and not 0 <= value <= 100:
        raise ConfigError(f"percent: {value!r} is not in [0, 100]")
    return integer(unit, int(value), -(2**63), 2**63 - 1) if unit == "ns" else float(value)


def interval(scale: TimeScale, t0: Any, t1: Any, others: dict[str, Any]) -> tuple[tuple[Any, Any], str]:
    """Turn the arguments of `Trace.between` into ticks, and words for them."""
    given = {unit: others[unit] for unit in _UNITS if others.get(unit) is not None}
    if len(given) + (t0 is not None or t1 is not None) > 1:
        raise ConfigError(f"between() takes one interval: ticks, or one of {', '.join(_UNITS)}")
    for unit, bounds in given.items():
        return scale.range(unit, bounds), f"between {bounds[0]} and {bounds[1]} ({unit})"
    return (t0, t1), f"between {t0} and {t1}"
