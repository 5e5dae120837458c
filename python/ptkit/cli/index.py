"""``ptkit index``: a file beside a trace, so that parts of it can be decoded alone."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ptkit.cli import common
from ptkit.cli.json_values import print_document

HELP = "write an index beside a trace, so that parts of it can be decoded alone"
DESCRIPTION = (
    "Decodes a trace once and writes beside it (TRACE.ptindex) where parts of it begin, and which times and "
    "which code they have. Selections by time, address or symbol then decode only what they need. An index "
    "that is damaged, or of another trace, other images or settings, is made anew."
)
EXAMPLES = """examples:
  ptkit index sort.ptk
  ptkit branches sort.ptk --symbol malloc"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write it here (default: TRACE.ptindex)")
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the index, unless there is a good one."""
    made = common.open_trace(options, index=False).index(options.output)
    if options.json:
        print_document("index", asdict(made))
    else:
        parts = "1 segment" if made.segments == 1 else f"{made.segments:,} segments"
        print(f"{made.path}: {made.size_bytes:,} bytes, {parts}")
    return 0
