"""Helpers of the verbs that print a table row by row."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from ptkit.cli import selection
from ptkit.cli.output.clock import Clock, Heading
from ptkit.cli.output.json_rows import JsonRows
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.positions import row_positions
from ptkit.cli.output.rows import Budget, Losses, rows_before, side_lines
from ptkit.table import Table
from ptkit.trace import Trace

__all__ = ["Lines", "begin_rows", "every_part", "notes_of", "print_rows"]


class Lines(Protocol):
    """Prints the rows of a table as text."""

    @property
    def heading(self) -> str:
        """Names of the columns."""

    def print_part(self, part: Table, *, merged: bool, sides: bool) -> None:
        """Print rows; `sides`: with errors and gaps between them."""


def every_part(parts: Iterable[Table]) -> Iterator[Table]:
    """Parts as they are."""
    yield from parts


def print_rows(
    trace: Trace,
    options: argparse.Namespace,
    read: Callable[..., Iterator[Table]],
    columns: list[str],
    chosen: dict[str, Any],
    lines: Lines,
    form: JsonRows,
    *,
    sides: bool,
    kept: Callable[[Iterable[Table]], Iterator[Table]] = every_part,
) -> None:
    """Print the selected rows stream by stream, or merged by time, as text or JSON.

    Parameters
    ----------
    trace : Trace
    options : argparse.Namespace
        Of the verb; ``json``, ``limit``, ``order`` and ``path`` are used.
    read : callable
        An ``iter_`` method of the trace.
    columns : list of str
    chosen : dict
        The selection.
    lines, form : Lines, JsonRows
        Printers of text, and of JSON.
    sides : bool
        Also print errors and gaps.
    kept : callable
        Leaves out rows of the parts.
    """
    losses, budget, rows = Losses(), Budget(options.limit), 0
    heading = Heading(options, lines.heading)
    if options.json:
        form.print_header()
    for stream, parts in selection.passes(trace, options, read, columns, chosen):
        if budget.spent:
            break
        if not options.json:
            selection.print_stream_heading(trace, stream)
        for part in heading.before(losses.counted(budget.cut(kept(parts)))):
            rows += len(part)
            if options.json:
                form.print(part, sides=sides)
            else:
                lines.print_part(part, merged=stream is None, sides=sides)
    selection.report_no_rows(trace, options, rows)
    selection.report_index(trace, options)
    losses.report(options.path)


def notes_of(part: Table, *, sides: bool, rva: bool = False) -> list[tuple[int, bytes]]:
    """Errors and gaps of a part as lines before rows, if they are to be printed; `rva`: with RVAs."""
    notes = side_lines(part, rva=rva) if sides else []
    return rows_before(row_positions(part), notes) if notes else []


def begin_rows(writer: LineWriter, part: Table, clock: Clock, *, merged: bool) -> None:
    """Begin lines with the time, and those of merged streams with stream and thread."""
    writer.begin(part)
    if merged:
        selection.add_owners(writer)
    clock.add(writer, part, width=16)
    writer.literal("  ")
