"""``ptkit packets``: the packets of a trace."""

from __future__ import annotations

import argparse

from ptkit import PacketKind
from ptkit.cli import common, output
from ptkit.cli.told import Told
from ptkit.errors import ConfigError
from ptkit.table import Table
from ptkit.trace import Trace

HELP = "print packets, in the manner of ptdump"
DESCRIPTION = (
    "Prints one line per packet: offset, name, payload. Errors and gaps stand in brackets at their place."
)
EXAMPLES = """examples:
  ptkit packets sort.ptk --limit 20
  ptkit packets raw.pt --last-ip --tsc
  ptkit packets sort.ptk --branches --limit 100
  ptkit packets raw.pt --json | jq 'select(.kind == "TSC")'"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    common.add_selection_options(parser, flow=False)
    parser.add_argument("--last-ip", action="store_true", help="add the rebuilt IP")
    parser.add_argument(
        "--branches",
        action="store_true",
        help="add the branches that each packet told, with names (needs code)",
    )
    parser.add_argument("--tsc", action="store_true", help="add the time, in TSC ticks, and its error")
    parser.add_argument("--no-pad", action="store_true", help="leave out runs of PAD")
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the packets stream by stream."""
    if options.branches and options.json:
        raise ConfigError(
            "--branches is not for --json: the column offset of `ptkit branches --json` names the packet"
        )
    trace = common.open_trace(options)
    columns = ["offset", "kind", "size", "flags", "ip", "payload", "payload2"]
    if options.tsc or options.json:
        columns += ["tsc", "tsc_error"]
    if options.json:
        columns.append("stream")
    if options.branches:
        columns.append("space")
    losses = output.Losses()
    budget = output.Budget(options.limit)
    for stream in common.chosen_streams(trace, options):
        if budget.spent:
            break
        if not options.json:
            common.print_stream_heading(trace, stream)
        chosen = common.selection(options) | {"stream": stream}
        parts = trace.iter_packets(rows=65536, columns=columns, **chosen)
        told = Told(trace, losses, chosen) if options.branches else None
        with output.progress(trace, "decoding", streams=[stream]) as at:
            for part in budget.cut(output.watched(parts, at)):
                if told is not None:
                    _print_with_branches(trace, part, options, told)
                elif options.json:
                    output.print_json_rows(losses.count(part))
                else:
                    _print_part(losses.count(part), options)
            if told is not None and not budget.spent:
                output.print_rows([], [], told.until(None))
    losses.report()
    return 0


def _print_part(part: Table, options: argparse.Namespace) -> None:
    ips = (
        [f"  ip {ip:016x}" if ip is not None else "" for ip in part.named("ip")]
        if options.last_ip
        else [""] * len(part)
    )
    lines = _lines(part, options, ips)
    output.print_rows(part["offset"].tolist(), lines, output.side_lines(part, as_json=False))


def _print_with_branches(trace: Trace, part: Table, options: argparse.Namespace, told: Told) -> None:
    """The flow's errors and gaps are those of the packets, and more."""
    ips = part.named("ip")
    names = trace.symbolize([ip or 0 for ip in ips], space=part["space"], modules=True)
    notes = [
        "" if ip is None else f"  {_whole(ip, text)}{name or ''}"
        for ip, name, text in zip(ips, names, part.messages(), strict=True)
    ]
    offsets = part["offset"].tolist()
    lines = _lines(part, options, notes)
    output.print_rows(offsets, lines, told.until(offsets[-1] if offsets else 0))


def _lines(part: Table, options: argparse.Namespace, notes: list[str]) -> list[str | None]:
    """A line for each packet, with a note on its address."""
    times = [""] * len(part)
    if options.tsc:
        pairs = zip(part.named("tsc"), part["tsc_error"].tolist(), strict=True)
        times = ["" if tsc is None else f"  tsc {tsc} +{error}" for tsc, error in pairs]
    rows = zip(part["offset"].tolist(), part["kind"].tolist(), part.messages(), notes, times, strict=True)
    return [
        None
        if options.no_pad and kind == PacketKind.PAD
        else f"{offset:016x}  {text:<35}{note}{time}".rstrip()
        for offset, kind, text, note, time in rows
    ]


def _whole(ip: int, text: str) -> str:
    """The address, if a packet's text has not all of it."""
    return f"{ip:016x} " if "?" in text else ""
