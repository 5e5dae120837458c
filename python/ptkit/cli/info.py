"""``ptkit info``: what a trace holds."""

from __future__ import annotations

import argparse

from ptkit.cli import common

HELP = "say what a trace holds: streams, processor, clock, code, losses"
DESCRIPTION = "Prints what is in a trace. With --decode, decodes all of it and counts rows, errors and gaps."
EXAMPLES = """examples:
  ptkit info sort.ptk
  ptkit info --decode --json sort.ptk"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    parser.add_argument("--decode", action="store_true", help="decode everything: count rows, errors, gaps")
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the trace's description."""
    trace = common.open_trace(options)
    counts: dict[str, int] = {}
    if options.decode:
        with common.progress(trace, "decoding"):
            counts["branches"] = sum(len(part) for part in trace.iter_branches(columns=["kind"], reuse=True))
            counts["instructions"] = sum(
                len(part) for part in trace.iter_instructions(columns=["cls"], reuse=True)
            )
            counts["events"] = sum(len(part) for part in trace.iter_events(columns=["kind"], reuse=True))
            counts["errors"] = len(trace.errors)
            counts["gaps"] = len(trace.gaps)
    if options.json:
        common.print_json(trace.info.as_dict() | ({"counts": counts} if counts else {}))
        return 0
    print(trace.info)
    for name, count in counts.items():
        print(f"{name}: {count:,}")
    return 0
