"""``ptkit packets``: the packets of a trace."""

from __future__ import annotations

import argparse

from ptkit import PacketKind
from ptkit.cli import common, selection
from ptkit.cli.output.clock import Clock, print_heading
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.packet_branches import PacketBranches
from ptkit.cli.output.row_names import row_names
from ptkit.cli.output.rows import Budget, Losses, print_rows, side_lines
from ptkit.errors import ConfigError
from ptkit.table import Table
from ptkit.trace import Trace

HELP = "print packets, in the manner of ptdump"
DESCRIPTION = """\
Prints one line per packet: offset, name, payload. Errors and gaps stand in brackets at their place."""
EXAMPLES = """examples:
  ptkit packets sort.ptk --limit 20
  ptkit packets raw.pt --last-ip --tsc
  ptkit packets sort.ptk --branches --limit 100
  ptkit packets raw.pt --json | jq 'select(.kind == "TSC")'"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    selection.add_selection_options(parser, flow=False)
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
    if options.json:
        form.print_header()
    else:
        lines.print_heading()
    for stream, parts in selection.passes(trace, options, trace.iter_packets, _columns(options), chosen):
        if budget.spent:
            break
        if not options.json:
            selection.print_stream_heading(trace, stream)
        branches = PacketBranches(trace, losses, chosen | {"stream": stream}) if options.branches else None
        for part in budget.cut(parts):
            rows += len(part)
            if branches is not None:
                _print_with_branches(part, lines, branches)
            elif options.json:
                form.print(losses.count(part))
            else:
                lines.print_part(losses.count(part))
        if branches is not None and not budget.spent:
            print_rows([], [], branches.until(None))
    selection.report_no_rows(trace, options, rows)
    losses.report(options.path)
    return 0


def _columns(options: argparse.Namespace) -> list[str]:
    if options.json:
        return json_columns("packets")
    columns = ["offset", "kind", "size", "flags", "ip", "payload", "payload2"]
    if options.tsc or options.time_unit or options.order == "time" or options.branches:
        columns += ["tsc", "tsc_error"]
    if options.order == "time":
        columns += ["stream", "tid"]
    if options.branches:
        columns.append("space")
    return columns


class _Lines:
    """Makes lines of packets."""

    def __init__(self, trace: Trace, options: argparse.Namespace) -> None:
        self._options = options
        self._merged = options.order == "time" and len(selection.chosen_streams(trace, options)) > 1
        timed = options.tsc or options.time_unit or self._merged
        self._clock = Clock(trace, options.time_unit) if timed else None

    def print_heading(self) -> None:
        owner = f"{'stream':>6} {'tid':>7}  " if self._merged else ""
        time = f"  {self._clock.heading}" if self._clock else ""
        print_heading(f"{owner}{'offset':<16}  {'packet':<10} {'payload':<24}{time}")

    def print_part(self, part: Table) -> None:
        """Print packets, errors and gaps."""
        notes = [""] * len(part)
        if self._options.last_ip:
            notes = [f"  ip {ip:016x}" if ip is not None else "" for ip in part.named("ip")]
        sides = side_lines(part)
        print_rows(part["offset"].tolist(), self.of(part, notes), sides)

    def of(self, part: Table, notes: list[str]) -> list[str | None]:
        """A line for each packet, with a note on its address."""
        times = self._times(part)
        columns = (part["offset"].tolist(), part["kind"].tolist(), part.messages(), notes, times)
        lines = [
            f"{offset:016x}  {text:<35}{note}{time}".rstrip()
            for offset, _, text, note, time in zip(*columns, strict=True)
        ]
        if self._merged:
            lines = selection.with_owners(part, lines)
        no_pad = self._options.no_pad
        kinds = part["kind"].tolist()
        return [
            None if no_pad and kind == PacketKind.PAD else line
            for kind, line in zip(kinds, lines, strict=True)
        ]

    def _times(self, part: Table) -> list[str]:
        if self._clock is None:
            return [""] * len(part)
        texts = self._clock.texts(part)
        if self._clock.unit != "tsc":
            return ["" if text == "-" else f"  {text} {self._clock.unit}" for text in texts]
        errors = part["tsc_error"].tolist()
        return [
            "" if text == "-" else f"  tsc {text} +{error}" for text, error in zip(texts, errors, strict=True)
        ]


def _print_with_branches(part: Table, lines: _Lines, branches: PacketBranches) -> None:
    """Errors and gaps are those of the branches, which include those of the packets."""
    ips = part.named("ip")
    notes = [
        "" if ip is None else f"  {_whole(ip, text)}{name}"
        for ip, name, text in zip(ips, row_names(part, "ip"), part.messages(), strict=True)
    ]
    offsets = part["offset"].tolist()
    print_rows(offsets, lines.of(part, notes), branches.until(offsets[-1] if offsets else 0))


def _whole(ip: int, text: str) -> str:
    """The address, if a packet's text has not all of it."""
    return f"{ip:016x} " if "?" in text else ""
