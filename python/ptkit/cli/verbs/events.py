"""``ptkit events``: what happened beside the instructions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from functools import partial

from ptkit._core import EventFlag, EventKind
from ptkit.cli import common, selection
from ptkit.cli.listing import begin_rows, notes_of, print_rows
from ptkit.cli.output.clock import Clock, print_heading
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.line_writer import LineWriter
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


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    selection.add_selection_options(parser)
    common.add_open_options(parser)
    parser.add_argument(
        "--kind",
        dest="event_kind",
        type=common.kind(EventKind),
        action="append",
        metavar="KIND",
        help="events of this kind only: PTWRITE, INTERRUPT, ...; may be repeated",
    )
    common.add_status_option(parser)
    common.add_file_offsets_option(parser)
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the events stream by stream, or merged by time."""
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    narrowed = bool(chosen.keys() - {"stream", "cpu"}) or options.event_kind is not None
    form = JsonRows(trace, "events")
    print_rows(
        trace,
        options,
        trace.iter_events,
        json_columns("events"),
        chosen,
        _Lines(trace, options),
        form,
        sides=not narrowed,
        kept=partial(_chosen, options=options),
    )
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
        writer = self._writer
        begin_rows(writer, part, self._clock, merged=merged)
        writer.texts([line_of(text) for text in part.messages()])
        known = part.known("ip")
        if known is not None:
            writer.label(known, [b"", b"  "])
        writer.address("name", "ip")
        writer.print(notes_of(part, sides=sides))
