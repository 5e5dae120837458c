"""``ptkit branches``: every branch of a trace."""

from __future__ import annotations

import argparse

from ptkit._core import BranchKind
from ptkit.cli import common, selection
from ptkit.cli.branch_report import REPORTS, print_branch_report
from ptkit.cli.folded_rows import print_folded
from ptkit.cli.listing import begin_rows, notes_of, print_rows
from ptkit.cli.output.clock import Clock
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.line_writer import labels_of
from ptkit.cli.parser import refuse_unused
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints one line per branch: time, from, to, kind. A conditional branch that falls through has a line, too: its
arrow is -- instead of =>, and its target is the next instruction. Errors and gaps stand in brackets among
the lines, unless rows are selected by time, address, symbol, module, thread or process. With --order time,
lines begin with stream and thread. --stats, --targets, --loops and --paths print how branches behave, most
frequent first; --fold prints repetitions of loops once (docs/branches.md)."""
EXAMPLES = """examples:
  ptkit branches sort.ptk --limit 20
  ptkit branches sort.ptk --symbol malloc --taken
  ptkit branches sort.ptk --kind CALL --kind CALL_INDIRECT --kind RETURN
  ptkit branches sort.ptk --time 10ms-20ms --module libc.so.6
  ptkit branches sort.ptk --order time --time-unit s
  ptkit branches sort.ptk --json > branches.jsonl
  ptkit branches sort.ptk --stats --limit 20
  ptkit branches sort.ptk --targets --module libc.so.6
  ptkit branches sort.ptk --loops --limit 10
  ptkit branches sort.ptk --paths --symbol malloc
  ptkit branches sort.ptk --fold --limit 100"""

_COLUMNS = ["from_ip", "to_ip", "kind", "flags", "tsc", "tsc_error", "offset", "stream", "tid", "space"]
_OF_ROWS = ("order", "time_unit", "taken", "not_taken", "no_symbols", "rva", "file_offsets")
_OF_ADDRESSES = ("ip", "symbol", "module", "kind")
_UNKNOWN = "?" * 16
_ARROWS = [b"--", b"=>"]  # by whether the branch was taken


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    selection.add_selection_options(parser)
    common.add_open_options(parser)
    selection.add_direction_options(parser)
    parser.add_argument(
        "--kind",
        type=common.kind(BranchKind),
        action="append",
        metavar="KIND",
        help="branches of this kind only: CALL, RETURN, ...; may be repeated",
    )
    parser.add_argument("--no-symbols", action="store_true", help="print addresses without names")
    group = parser.add_argument_group("what is printed instead of rows").add_mutually_exclusive_group()
    group.add_argument(
        "--stats",
        action="store_true",
        help="for each branch how often it was taken, in which runs, and its entropy; of indirect ones the "
        "number of targets",
    )
    group.add_argument(
        "--targets", action="store_true", help="for each indirect jump and call where it went, and how often"
    )
    group.add_argument("--loops", action="store_true", help="loops of functions: visits and trips")
    group.add_argument(
        "--fold",
        action="store_true",
        help="rows as they are, but repetitions of what a loop does from head to head are printed once, with "
        "their number",
    )
    group.add_argument("--paths", action="store_true", help="paths through loops: from head to head, and out")
    common.add_address_options(parser)
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the branches stream by stream, or merged by time, or how they behave."""
    if options.fold:
        refuse_unused(options, (*_OF_ROWS, *_OF_ADDRESSES), "--fold", ", which prints all rows of a thread")
        return print_folded(common.open_trace(options), options)
    for report in REPORTS:
        if getattr(options, report):
            refuse_unused(options, _OF_ROWS, f"--{report}")
            if report != "stats":
                refuse_unused(options, ("kind",), f"--{report}")
            return print_branch_report(common.open_trace(options), options)
    if options.no_symbols:
        refuse_unused(options, ("names", "file_offsets"), "--no-symbols")
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    narrowed = bool(chosen.keys() - {"stream", "cpu", "kind", "taken"})
    lines = _Lines(trace, options)
    columns = json_columns("branches") if options.json else _COLUMNS
    form = JsonRows(trace, "branches", symbols=not options.no_symbols)
    print_rows(trace, options, trace.iter_branches, columns, chosen, lines, form, sides=not narrowed)
    return 0


class _Lines:
    """Prints lines of branches."""

    def __init__(self, trace: Trace, options: argparse.Namespace) -> None:
        self._names = options.rva or not options.no_symbols
        self._rva = options.rva
        self._merged = options.order == "time" and len(selection.chosen_streams(trace, options)) > 1
        self._clock = Clock(trace, options.time_unit)
        self._writer = common.line_writer(trace, options, symbols=not options.no_symbols)

    @property
    def heading(self) -> str:
        """Names of the columns."""
        names = "  names" if self._names else ""
        owner = f"{'stream':>6} {'tid':>7}  " if self._merged else ""
        return f"{owner}{self._clock.heading:>16}  {'from':<16}    {'to':<16}  {'kind':<13}{names}"

    def print_part(self, part: Table, *, merged: bool, sides: bool) -> None:
        """Print branches; `sides`: with errors and gaps between them."""
        writer = self._writer
        begin_rows(writer, part, self._clock, merged=merged)
        writer.begin_group()
        writer.number("from_ip", "hex16", unknown=_UNKNOWN)
        writer.literal(" ")
        writer.names_of("taken", _ARROWS)
        writer.literal(" ")
        writer.number("to_ip", "hex16", unknown=_UNKNOWN)
        writer.literal("  ")
        writer.names_of("kind", labels_of("branches", "kind", _kind))
        if self._names:
            writer.names()
        writer.end_group()
        writer.print(notes_of(part, sides=sides, rva=self._rva))


def _kind(name: str) -> str:
    return f"{name.lower():<13}"
