"""``ptkit packets``: the packets of a trace."""

from __future__ import annotations

import argparse

import numpy as np

from ptkit import PacketKind
from ptkit.cli import common, selection
from ptkit.cli.output.clock import Clock, Heading
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.packet_branches import PacketBranches
from ptkit.cli.output.rows import Budget, Losses, rows_before, side_lines
from ptkit.cli.output.terminal import print_lines
from ptkit.errors import ConfigError
from ptkit.support.schema import schema_of
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints one line per packet: offset, name, payload. Errors and gaps stand in brackets among the lines."""
EXAMPLES = """examples:
  ptkit packets sort.ptk --limit 20
  ptkit packets raw.pt --last-ip --tsc
  ptkit packets sort.ptk --branches --limit 100
  ptkit packets nine.bin --no-sync
  ptkit packets raw.pt --json | jq 'select(.kind == "TSC")'"""

_IP_KINDS = [PacketKind.TIP, PacketKind.TIP_PGE, PacketKind.TIP_PGD, PacketKind.FUP]
_CUT = [0, 1, 2, 4]  # IPBytes of payloads without the upper bytes of the address


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    selection.add_selection_options(parser)
    common.add_open_options(parser)
    parser.add_argument(
        "--last-ip", action="store_true", help="add the whole IP of packets that have only its low bytes"
    )
    parser.add_argument(
        "--branches",
        action="store_true",
        help="add the branches that each packet reports, with names (needs code)",
    )
    parser.add_argument(
        "--tsc", action="store_true", help="add the time, in TSC ticks or the unit of --time-unit"
    )
    parser.add_argument("--no-pad", action="store_true", help="leave out runs of PAD")
    common.add_address_options(parser)
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the packets stream by stream."""
    if options.branches and options.json:
        raise ConfigError(
            "--branches is not for --json: the column offset of `ptkit branches --json` names the packet"
        )
    if options.branches and options.order == "time":
        raise ConfigError("--branches is for one stream after the other: leave out --order time")
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    lines = _Lines(trace, options)
    losses, budget, rows = Losses(), Budget(options.limit), 0
    form = JsonRows(trace, "packets")
    heading = Heading(options, lines.heading)
    if options.json:
        form.print_header()
    decodes = 2 if options.branches else 1
    columns = _columns(options)
    for stream, parts in selection.passes(
        trace, options, trace.iter_packets, columns, chosen, decodes=decodes
    ):
        if budget.spent:
            break
        if not options.json:
            selection.print_stream_heading(trace, stream)
        branches = None
        if options.branches:
            of_stream = chosen | {"stream": stream}
            writer = common.line_writer(trace, options)
            branches = PacketBranches(trace, losses, of_stream, writer, rva=options.rva)
        for part in heading.before(budget.cut(parts)):
            rows += len(part)
            if branches is not None:
                lines.print_with_branches(part, branches)
            elif options.json:
                form.print(losses.count(part))
            else:
                lines.print_part(losses.count(part))
        if branches is not None and not budget.spent:
            print_lines(text for _, text in branches.until(None))
    selection.report_no_rows(trace, options, rows)
    losses.report(options.path)
    return 0


def _columns(options: argparse.Namespace) -> list[str]:
    if options.json:
        return json_columns("packets")
    columns = ["offset", "kind", "size", "ip", "payload", "payload2"]
    named = options.branches or options.rva
    if options.tsc or options.time_unit or options.order == "time" or named:
        columns += ["flags", "tsc", "tsc_error"]
    else:  # bit by bit: the column `flags` has one that says whether the time is known, and so computes times
        columns += [name for name in schema_of("packets").names("flag") if name != "time_known"]
    if options.order == "time":
        columns += ["stream", "tid"]
    if named:
        columns.append("space")
    return columns


class _Lines:
    """Prints lines of packets."""

    def __init__(self, trace: Trace, options: argparse.Namespace) -> None:
        self._options = options
        self._merged = options.order == "time" and len(selection.chosen_streams(trace, options)) > 1
        timed = options.tsc or options.time_unit or self._merged
        self._clock = Clock(trace, options.time_unit) if timed else None
        self._writer = common.line_writer(trace, options, symbols=options.branches)

    @property
    def heading(self) -> str:
        """Names of the columns."""
        owner = f"{'stream':>6} {'tid':>7}  " if self._merged else ""
        time = f"  {self._clock.heading}" if self._clock else ""
        return f"{owner}{'offset':<16}  {'packet':<10} {'payload':<24}{time}"

    def print_part(self, part: Table) -> None:
        """Print packets, errors and gaps."""
        rva = self._options.rva
        self._print(part, side_lines(part, rva=rva), last_ip=self._options.last_ip, names=rva)

    def print_with_branches(self, part: Table, branches: PacketBranches) -> None:
        """Print packets, branches under them, and the errors and gaps of both."""
        last = int(part["offset"][-1]) if len(part) else 0
        self._print(part, list(branches.until(last)), names=True)

    def _print(
        self, part: Table, notes: list[tuple[int, bytes]], *, last_ip: bool = False, names: bool = False
    ) -> None:
        if notes:
            notes = rows_before(np.asarray(part["offset"]).astype(np.int64), notes)
        writer = self._writer
        writer.begin(part)
        if self._merged:
            selection.add_owners(writer)
        writer.number("offset", "hex16")
        writer.literal("  ")
        writer.packet(width=35)
        if last_ip:
            writer.number("ip", "hex16", unknown="", before="  ip ")
        if names:
            _add_address(writer, part, whole=not last_ip)
        self._add_times(part)
        shown = np.asarray(part["kind"]) != PacketKind.PAD if self._options.no_pad else None
        writer.print(notes, shown)

    def _add_times(self, part: Table) -> None:
        if self._clock is None:
            return
        if self._clock.unit != "tsc":
            self._clock.add(self._writer, part, unknown="", before="  ", after=f" {self._clock.unit}")
            return
        self._clock.add(self._writer, part, unknown="", before="  tsc ")
        self._writer.number("tsc_error", "decimal", known=part["time_known"], unknown="", before=" +")


def _add_address(writer: LineWriter, part: Table, *, whole: bool) -> None:
    """Add the address, if a packet's text has not all of it and `whole` is set, and its name."""
    known = np.asarray(part["ip_known"])
    cut = np.isin(part["kind"], _IP_KINDS) & np.isin(part["payload2"] & 7, _CUT)
    writer.label(known, [b"", b"  "])
    if whole:
        writer.number("ip", "hex16", known=known & cut, unknown="", after=" ")
    writer.address("name", "ip", known=known)
