"""``ptkit events``: what happened beside the instructions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from ptkit._core import EventFlag
from ptkit.cli import common, selection
from ptkit.cli.output.clock import Clock, print_heading
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.positions import row_positions
from ptkit.cli.output.rows import Budget, Losses, rows_before, side_lines
from ptkit.cli.output.terminal import line_of
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints one line per event: time, address, what happened, and the function. Events are asynchronous branches,
changes of the address space and of the mode, PTWRITE, power events, and others (docs/tables.md). Those that
repeat the state in PSB+ are left out, unless --status is given. Errors and gaps stand in brackets at their
place, unless rows are selected."""
EXAMPLES = """examples:
  ptkit events sort.ptk --limit 20
  ptkit events sort.ptk --kind PTWRITE
  ptkit events sort.ptk --kind ENABLED --kind DISABLED --time 0%-10%
  ptkit events sort.ptk --status --json"""

_COLUMNS = [*json_columns("events")]


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    selection.add_selection_options(parser, flow=True)
    common.add_open_options(parser)
    parser.add_argument(
        "--kind",
        dest="event_kind",
        action="append",
        metavar="KIND",
        help="events of this kind only: PTWRITE, INTERRUPT, ...; may be repeated",
    )
    parser.add_argument("--status", action="store_true", help="also events that repeat the state in PSB+")
    common.add_file_offsets_option(parser)
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the events stream by stream, or merged by time."""
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    narrowed = bool(chosen.keys() - {"stream", "cpu"}) or options.event_kind is not None
    lines = _Lines(trace, options)
    form = JsonRows(trace, "events")
    losses, budget, rows = Losses(), Budget(options.limit), 0
    if options.json:
        form.print_header()
    else:
        lines.print_heading()
    for stream, parts in selection.passes(trace, options, trace.iter_events, _COLUMNS, chosen):
        if budget.spent:
            break
        if not options.json:
            selection.print_stream_heading(trace, stream)
        for part in budget.cut(_chosen(losses.counted(parts), options)):
            rows += len(part)
            if options.json:
                form.print(part, sides=not narrowed)
            else:
                lines.print_part(part, merged=stream is None, sides=not narrowed)
    selection.report_no_rows(trace, options, rows)
    losses.report(options.path)
    return 0


def _chosen(parts: Iterable[Table], options: argparse.Namespace) -> Iterator[Table]:
    """Parts without events of other kinds, and without those that repeat the state."""
    for part in parts:
        shown = part
        if options.event_kind is not None:
            shown = shown.where(kind=options.event_kind)
        if not options.status:
            shown = shown[(shown["flags"] & EventFlag.STATUS) == 0]
        shown.errors, shown.gaps = part.errors, part.gaps
        yield shown


class _Lines:
    """Prints lines of events."""

    def __init__(self, trace: Trace, options: argparse.Namespace) -> None:
        self._merged = options.order == "time" and len(selection.chosen_streams(trace, options)) > 1
        self._clock = Clock(trace, options.time_unit)
        self._writer = LineWriter(trace, file_offsets=options.file_offsets)

    def print_heading(self) -> None:
        owner = f"{'stream':>6} {'tid':>7}  " if self._merged else ""
        print_heading(f"{owner}{self._clock.heading:>16}  event")

    def print_part(self, part: Table, *, merged: bool, sides: bool) -> None:
        """Print events; `sides`: with errors and gaps at their place."""
        notes = side_lines(part) if sides else []
        if notes:
            notes = rows_before(row_positions(part), notes)
        writer = self._writer
        writer.begin(part)
        if merged:
            selection.add_owners(writer)
        self._clock.add(writer, part, width=16)
        writer.literal("  ")
        writer.texts([line_of(text) for text in part.messages()])
        known = part.known("ip")
        if known is not None:
            writer.label(known, [b"", b"  "])
        writer.address("name", "ip")
        writer.print(notes)
