"""Durations as they are printed: of frames and functions, with three digits and a unit."""

from __future__ import annotations

import numpy as np

from ptkit.support.text import counted, duration
from ptkit.trace import Trace

_UNKNOWN = "-"


class Durations:
    """Prints TSC ticks as time, or as ticks where the clock of the trace is not known.

    Parameters
    ----------
    trace : Trace
    """

    def __init__(self, trace: Trace) -> None:
        self._length_ns = trace.open_parts.times.length_ns if trace.open_parts.times.knows_seconds else None

    @property
    def unit(self) -> str:
        """Unit after the heading of a column; empty where each time has its unit."""
        return "" if self._length_ns is not None else " [ticks]"

    def text(self, ticks: int | None) -> str:
        """A duration; None: it is not known."""
        if ticks is None:
            return _UNKNOWN
        if self._length_ns is None:
            return f"{ticks:,}"
        return duration(int(self._length_ns(np.array([ticks]))[0]))

    def length(self, amount: int, of: str) -> str:
        """A length of a call with its unit, `of` instructions or time."""
        if of == "instructions":
            return counted(amount, "instruction")
        return self.text(amount) if self._length_ns is not None else counted(amount, "TSC tick")
