"""``ptkit branches``: every branch of a trace."""

from __future__ import annotations

import argparse
import sys

from ptkit.cli import common
from ptkit.table import Table
from ptkit.trace import Trace

HELP = "print branches: from, to, kind, time"
DESCRIPTION = (
    "Prints one line per branch: time, from, to, kind. Conditionals that fall through are lines too (--), "
    "with the next instruction as target."
)
EXAMPLES = """examples:
  ptkit branches sort.ptk --limit 20
  ptkit branches sort.ptk --symbol main --taken
  ptkit branches sort.ptk --json > branches.jsonl"""

_COLUMNS = ["from_ip", "to_ip", "kind", "flags", "tsc", "tsc_error", "offset"]
_UNKNOWN = "?" * 16


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    common.add_selection_options(parser, flow=True)
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--taken", action="store_true", help="taken branches only")
    direction.add_argument("--not-taken", action="store_true", help="conditionals that fell through only")
    parser.add_argument("--no-symbols", action="store_true", help="addresses only")
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the branches stream by stream."""
    trace = common.open_trace(options)
    chosen = common.selection(options)
    if options.taken or options.not_taken:
        chosen["taken"] = options.taken
    losses = common.Losses()
    for stream in common.chosen_streams(trace, options):
        if not options.json:
            common.print_stream_heading(trace, stream)
        parts = losses.counted(
            trace.iter_branches(rows=65536, columns=_COLUMNS, **chosen | {"stream": stream})
        )
        with common.progress(trace, "decoding"):
            for part in common.limited(parts, options.limit):
                if options.json:
                    common.rows_as_json(part, sys.stdout)
                else:
                    _print_part(trace, part, symbols=not options.no_symbols)
    losses.report()
    return 0


def _print_part(trace: Trace, part: Table, *, symbols: bool) -> None:
    sources = [_UNKNOWN if ip is None else f"{ip:016x}" for ip in part.named("from_ip")]
    targets = [_UNKNOWN if ip is None else f"{ip:016x}" for ip in part.named("to_ip")]
    names = [""] * len(part)
    if symbols:
        from_names = trace.symbolize(part["from_ip"], modules=True)
        to_names = trace.symbolize(part["to_ip"], modules=True)
        names = [
            f"  {a or '?'} -> {b or '?'}" if a or b else "" for a, b in zip(from_names, to_names, strict=True)
        ]
    times = ["-" if tsc is None else str(tsc) for tsc in part.named("tsc")]
    arrows = ["=>" if taken else "--" for taken in part["taken"].tolist()]
    lines = [
        f"{time:>16}  {source} {arrow} {target}  {kind.lower():<13}{name}".rstrip()
        for time, source, arrow, target, kind, name in zip(
            times, sources, arrows, targets, part.named("kind"), names, strict=True
        )
    ]
    print("\n".join(lines))
