"""``ptkit events``: what happened beside the instructions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from ptkit._core import EventFlag, EventKind
from ptkit.cli import common, selection
from ptkit.cli.listing import begin_rows, every_part, notes_of, print_rows
from ptkit.cli.output.clock import Clock
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.terminal import line_of
from ptkit.cli.parser import refuse_unused
from ptkit.errors import ConfigError
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints one line per event: time, address, what happened, and the function. Events are asynchronous branches,
changes of the address space and of the mode, PTWRITE, power events, and others (docs/tables.md). Those that
repeat the state in PSB+ are left out, unless --status is given. Errors and gaps stand in brackets among
the lines, unless rows are selected."""
EXAMPLES = """examples:
  ptkit events sort.ptk --limit 20
  ptkit events sort.ptk --kind PTWRITE --functions
  ptkit events sort.ptk --kind ENABLED --kind DISABLED --time 0%-10%
  ptkit events sort.ptk --status --json"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    selection.add_selection_options(parser)
    common.add_open_options(parser)
    parser.add_argument(
        "--kind",
        type=common.kind(EventKind),
        action="append",
        metavar="KIND",
        help="events of this kind only: PTWRITE, INTERRUPT, ...; may be repeated",
    )
    parser.add_argument(
        "--functions",
        action="store_true",
        help="with --kind PTWRITE: the function that wrote each value; takes a second pass",
    )
    common.add_status_option(parser)
    common.add_address_options(parser)
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the events stream by stream, or merged by time."""
    if options.functions and set(options.kind or ()) != {EventKind.PTWRITE.name}:
        raise ConfigError("--functions goes with --kind PTWRITE alone")
    if options.functions:
        refuse_unused(options, ("status",), "--functions")
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    narrowed = bool(chosen.keys() - {"stream", "cpu"})
    table = "ptwrites" if options.functions else "events"
    print_rows(
        trace,
        options,
        partial(_ptwrites, trace) if options.functions else trace.iter_events,
        json_columns(table),
        chosen,
        _Lines(trace, options),
        JsonRows(trace, table),
        sides=not narrowed,
        kept=every_part if options.status or options.functions else _that_happened,
    )
    return 0


def _ptwrites(
    trace: Trace, *, rows: int, columns: list[str], reuse: bool = False, kind: list[str], **chosen: Any
) -> Iterator[Table]:
    """The values that were written, with their functions, as one part."""
    yield trace.ptwrites(columns=columns, **chosen)


def _that_happened(parts: Iterable[Table]) -> Iterator[Table]:
    """Parts without events that repeat the state."""
    for part in parts:
        shown = part[(part["flags"] & EventFlag.STATUS) == 0]
        shown.errors, shown.gaps = part.errors, part.gaps
        yield shown


class _Lines:
    """Prints lines of events."""

    def __init__(self, trace: Trace, options: argparse.Namespace) -> None:
        self._merged = options.order == "time" and len(selection.chosen_streams(trace, options)) > 1
        self._clock = Clock(trace, options.time_unit)
        self._writer = common.line_writer(trace, options)
        self._rva = options.rva
        self._options = options

    @property
    def heading(self) -> str:
        """Names of the columns."""
        owner = f"{'stream':>6} {'tid':>7}  " if self._merged else ""
        return f"{owner}{self._clock.heading:>16}  event"

    def print_part(self, part: Table, *, merged: bool, sides: bool) -> None:
        """Print events; `sides`: with errors and gaps between them."""
        writer = self._writer
        begin_rows(writer, part, self._clock, merged=merged)
        if part.name == "ptwrites":
            writer.literal("ptwrite: ")
            writer.number("value", "hex")
            functions = common.function_names(self._options, part)
            writer.texts([line_of(f"  in {name}" if name else "") for name in functions])
        else:
            writer.texts([line_of(text) for text in part.messages()])
        known = part.known("ip")
        if known is not None:
            writer.label(known, [b"", b"  "])
        writer.address("name", "ip")
        writer.print(notes_of(part, sides=sides, rva=self._rva))
