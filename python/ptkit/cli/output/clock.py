"""Times as they are printed."""

from __future__ import annotations

import sys

import numpy as np

from ptkit.table import Table
from ptkit.trace import Trace

_UNKNOWN = "-"


class Clock:
    """Prints times of rows in one unit.

    Parameters
    ----------
    trace : Trace
    unit : str or None
        ``"s"`` or ``"ns"`` from the start of the trace, or ``"tsc"`` (ticks). None: seconds if standard
        output is a terminal and the clock of the trace is known, else ticks.

    Raises
    ------
    ConfigError
        If the unit needs a clock and the trace does not know its own.
    """

    def __init__(self, trace: Trace, unit: str | None) -> None:
        self._times = trace._times
        if unit is None:
            unit = "s" if sys.stdout.isatty() and self._times.knows_seconds else "tsc"
        self.unit = unit
        if unit != "tsc":
            self._times.ns_from_start(np.empty(0, np.uint64))  # says what is missing

    @property
    def heading(self) -> str:
        """Heading of a column of times."""
        return {"s": "time [s]", "ns": "time [ns]", "tsc": "TSC [ticks]"}[self.unit]

    def texts(self, part: Table) -> list[str]:
        """Time of each row of a part with the columns ``tsc`` and ``flags``."""
        ticks = np.asarray(part["tsc"])
        if self.unit == "tsc":
            texts = list(map(str, ticks.tolist()))
        elif self.unit == "ns":
            texts = list(map(str, self._times.ns_from_start(ticks).tolist()))
        else:
            texts = [f"{ns // 10**9}.{ns % 10**9:09d}" for ns in self._times.ns_from_start(ticks).tolist()]
        known = part["time_known"].tolist()
        return [text if ok else _UNKNOWN for text, ok in zip(texts, known, strict=True)]


def print_heading(text: str) -> None:
    """Print names of what stands in the lines that follow, if standard output is a terminal."""
    if sys.stdout.isatty():
        print(text)
