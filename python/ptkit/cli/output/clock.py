"""Times as they are printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.terminal import print_text
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
        self._times = trace.open_parts.times
        if unit is None:
            unit = "s" if sys.stdout.isatty() and self._times.knows_seconds else "tsc"
        self.unit = unit
        if unit != "tsc":
            self._times.ns_from_start(np.empty(0, np.uint64))  # says what is missing

    @property
    def heading(self) -> str:
        """Heading of a column of times."""
        return {"s": "time [s]", "ns": "time [ns]", "tsc": "TSC [ticks]"}[self.unit]

    def add(self, writer: LineWriter, part: Table, *, unknown: str = _UNKNOWN, **options: Any) -> None:
        """Add the times of a part with the columns ``tsc`` and ``flags`` to its lines.

        Options are those of `LineWriter.values`.
        """
        times = np.asarray(part["tsc"])
        if self.unit != "tsc":
            times = self._times.ns_from_start(times)
        form = "seconds" if self.unit == "s" else "decimal"
        writer.values(times, form, known=np.asarray(part["time_known"]), unknown=unknown, **options)


class Heading:
    """Names of what stands in lines, printed once before them.

    They go to standard error where standard output is no terminal, so that a pipe or a file has rows alone;
    then they come with the first row, if there is one. JSON has none.
    """

    def __init__(self, options: argparse.Namespace, text: str) -> None:
        self._text = "" if options.no_header or options.json else text.rstrip()
        if sys.stdout.isatty():
            self.print()

    def print(self) -> None:
        """Print it, if it has not been printed yet."""
        if self._text:
            print_text(self._text, errors=not sys.stdout.isatty())
        self._text = ""

    def before(self, parts: Iterable[Table]) -> Iterator[Table]:
        """Print it before the first row of parts."""
        for part in parts:
            if len(part):
                self.print()
            yield part


def print_heading(options: argparse.Namespace, text: str) -> None:
    """Print names of what stands in the lines that follow; see `Heading`."""
    Heading(options, text).print()
