"""``ptkit branches``: every branch of a trace."""

from __future__ import annotations

import argparse

from ptkit.cli import common, output
from ptkit.table import Table
from ptkit.trace import Trace

HELP = "print branches: from, to, kind, time"
DESCRIPTION = (
    "Prints one line per branch: time, from, to, kind. Conditionals that fall through are lines too (--), "
    "with the next instruction as target. Errors and gaps stand in brackets at their place, unless rows are "
    "selected by time, address, symbol or thread."
)
EXAMPLES = """examples:
  ptkit branches sort.ptk --limit 20
  ptkit branches sort.ptk --symbol malloc --taken
  ptkit branches sort.ptk --kind CALL --kind CALL_INDIRECT --kind RETURN
  ptkit branches sort.ptk --json > branches.jsonl"""

_COLUMNS = ["from_ip", "to_ip", "kind", "flags", "tsc", "tsc_error", "offset", "stream", "tid", "space"]
_UNKNOWN = "?" * 16


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    common.add_selection_options(parser, flow=True)
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--taken", action="store_true", help="taken branches only")
    direction.add_argument("--not-taken", action="store_true", help="conditionals that fell through only")
    parser.add_argument(
        "--kind", action="append", metavar="KIND", help="branches of this kind only; may be repeated"
    )
    parser.add_argument("--no-symbols", action="store_true", help="addresses only")
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the branches stream by stream."""
    trace = common.open_trace(options)
    chosen = common.selection(options)
    if options.kind:
        chosen["kind"] = [kind.upper() for kind in options.kind]
    if options.taken or options.not_taken:
        chosen["taken"] = options.taken
    narrowed = bool(common.selection(options).keys() - {"stream"})
    losses = output.Losses()
    budget = output.Budget(options.limit)
    for stream in common.chosen_streams(trace, options):
        if budget.spent:
            break
        if not options.json:
            common.print_stream_heading(trace, stream)
        parts = trace.iter_branches(rows=65536, columns=_COLUMNS, **chosen | {"stream": stream})
        with output.progress(trace, "decoding", streams=[stream]) as at:
            for part in losses.counted(budget.cut(output.watched(parts, at))):
                if options.json:
                    output.print_json_rows(part)
                else:
                    notes = [] if narrowed else output.side_lines(part, as_json=False)
                    lines = _lines(trace, part, symbols=not options.no_symbols)
                    output.print_rows(part["offset"].tolist(), lines, notes)
    losses.report()
    return 0


def _lines(trace: Trace, part: Table, *, symbols: bool) -> list[str]:
    sources = [_UNKNOWN if ip is None else f"{ip:016x}" for ip in part.named("from_ip")]
    targets = [_UNKNOWN if ip is None else f"{ip:016x}" for ip in part.named("to_ip")]
    names = [""] * len(part)
    if symbols:
        spaces = part["space"]
        ends = (trace.symbolize(part[end], space=spaces, modules=True) for end in ("from_ip", "to_ip"))
        names = [f"  {a or '?'} -> {b or '?'}" if a or b else "" for a, b in zip(*ends, strict=True)]
    times = ["-" if tsc is None else str(tsc) for tsc in part.named("tsc")]
    arrows = ["=>" if taken else "--" for taken in part["taken"].tolist()]
    return [
        f"{time:>16}  {source} {arrow} {target}  {kind.lower():<13}{name}".rstrip()
        for time, source, arrow, target, kind, name in zip(
            times, sources, arrows, targets, part.named("kind"), names, strict=True
        )
    ]
