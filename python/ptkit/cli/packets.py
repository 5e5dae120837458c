"""``ptkit packets``: the packets of a trace."""

from __future__ import annotations

import argparse

from ptkit import PacketKind
from ptkit.cli import common, output
from ptkit.table import Table

HELP = "print packets, in the manner of ptdump"
DESCRIPTION = (
    "Prints one line per packet: offset, name, payload. Errors and gaps stand in brackets at their place."
)
EXAMPLES = """examples:
  ptkit packets sort.ptk --limit 20
  ptkit packets raw.pt --last-ip --tsc
  ptkit packets raw.pt --json | jq 'select(.kind == "TSC")'"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    common.add_selection_options(parser, flow=False)
    parser.add_argument("--last-ip", action="store_true", help="add the rebuilt IP")
    parser.add_argument("--tsc", action="store_true", help="add the time, in TSC ticks, and its error")
    parser.add_argument("--no-pad", action="store_true", help="leave out runs of PAD")
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the packets stream by stream."""
    trace = common.open_trace(options)
    columns = ["offset", "kind", "size", "flags", "ip", "payload", "payload2"]
    if options.tsc or options.json:
        columns += ["tsc", "tsc_error"]
    if options.json:
        columns.append("stream")
    losses = output.Losses()
    budget = output.Budget(options.limit)
    for stream in common.chosen_streams(trace, options):
        if budget.spent:
            break
        if not options.json:
            common.print_stream_heading(trace, stream)
        parts = trace.iter_packets(
            rows=65536, columns=columns, **common.selection(options) | {"stream": stream}
        )
        with output.progress(trace, "decoding", streams=[stream]) as at:
            for part in losses.counted(budget.cut(output.watched(parts, at))):
                if options.json:
                    output.print_json_rows(part)
                else:
                    _print_part(part, options)
    losses.report()
    return 0


def _print_part(part: Table, options: argparse.Namespace) -> None:
    columns = [part["offset"].tolist(), part["kind"].tolist(), part.messages()]
    ips = (
        [f"  ip {ip:016x}" if ip is not None else "" for ip in part.named("ip")]
        if options.last_ip
        else [""] * len(part)
    )
    times = [""] * len(part)
    if options.tsc:
        pairs = zip(part.named("tsc"), part["tsc_error"].tolist(), strict=True)
        times = ["" if tsc is None else f"  tsc {tsc} +{error}" for tsc, error in pairs]
    lines = [
        None if options.no_pad and kind == PacketKind.PAD else f"{offset:016x}  {text:<35}{ip}{time}".rstrip()
        for offset, kind, text, ip, time in zip(*columns, ips, times, strict=True)
    ]
    output.print_rows(columns[0], lines, output.side_lines(part, as_json=False))
