"""``ptkit index``: a file beside a trace, so that parts of it can be decoded alone."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ptkit.cli import common
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import decoding
from ptkit.errors import ConfigError
from ptkit.support.system import STANDARD_INPUT
from ptkit.trace.opening.index import PASSES

DESCRIPTION = """\
Decodes a trace and writes an index (FILE.ptindex): where parts of the trace begin, which times they have,
which code they execute, and the sums of `functions`, `tree` and `edges`. Selections by time, address or
symbol then decode only the parts that they need, and these verbs, of the whole trace, none.
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
        raise ConfigError("standard input has no path: give -o FILE for the index")
    trace = common.open_trace(options, index=False)
    with decoding(trace, activity="indexing", passes=PASSES):
        made = trace.index(options.output)
    if options.json:
        print_document("index", asdict(made))
    else:
        print(made)
    return 0
