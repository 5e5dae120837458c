"""``ptkit index``: a file beside a trace, so that parts of it can be decoded alone."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ptkit.cli import common
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import decoding
from ptkit.errors import ConfigError
from ptkit.system import STANDARD_INPUT
from ptkit.text import counted

DESCRIPTION = """\
Decodes a trace once and writes an index (FILE.ptindex): where parts of the trace begin, which times they have
and which code they execute. Selections by time, address or symbol then decode only the parts that they need.
An index that is damaged, or was written for another trace, other images or settings, is written anew."""
EXAMPLES = """examples:
  ptkit index sort.ptk
  ptkit branches sort.ptk --symbol malloc"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the index to this file (default: FILE.ptindex)"
    )
    common.add_open_options(parser)
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the index, unless there is a good one."""
    if options.path == STANDARD_INPUT and options.output is None:
        raise ConfigError("standard input has no path: say by -o FILE where to write the index")
    trace = common.open_trace(options, index=False)
    with decoding(trace, what="indexing"):
        made = trace.index(options.output)
    if options.json:
        print_document("index", asdict(made))
    else:
        print(f"{made.path}: {made.size_bytes:,} bytes, {counted(made.segments, 'segment')}")
    return 0
