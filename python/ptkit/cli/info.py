"""``ptkit info``: what a trace holds."""

from __future__ import annotations

import argparse

from ptkit.cli import common, output
from ptkit.cli.plain import say
from ptkit.trace import Trace

HELP = "say what a trace holds: streams, processor, clock, code, losses"
DESCRIPTION = "Prints what is in a trace. With --decode, decodes all of it and counts rows, errors and gaps."
EXAMPLES = """examples:
  ptkit info sort.ptk
  ptkit info --decode --json sort.ptk"""

_ROWS = 1 << 17  # between two looks at the progress


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    parser.add_argument("--decode", action="store_true", help="decode everything: count rows, errors, gaps")
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the trace's description."""
    trace = common.open_trace(options)
    counts = _counts(trace) if options.decode else {}
    if options.json:
        output.print_json(trace.info.as_dict() | ({"counts": counts} if counts else {}))
        return 0
    say(trace.info)
    for name, count in counts.items():
        print(f"{name}: {count:,}")
    return 0


def _counts(trace: Trace) -> dict[str, int]:
    """Decode everything; count rows, errors and gaps."""
    counts = dict.fromkeys(("branches", "instructions", "events", "errors", "gaps"), 0)
    tables = (trace.iter_branches, trace.iter_instructions, trace.iter_events)
    everything = range(len(trace.streams))
    before = 0
    with output.progress(trace, "decoding", streams=everything, passes=len(tables), prints_rows=False) as at:
        for name, table in zip(counts, tables, strict=False):
            losses = output.Losses()
            for stream in everything:
                parts = losses.counted(table(rows=_ROWS, columns=["offset"], reuse=True, stream=stream))
                counts[name] += sum(len(part) for part in output.watched(parts, at, before))
                before += trace.streams[stream].size
            counts["errors"], counts["gaps"] = losses.errors, losses.gaps
    return counts
