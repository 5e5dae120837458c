"""``ptkit redact``: a bundle that can be shown to others."""

from __future__ import annotations

import argparse
from pathlib import Path

import ptkit
from ptkit.cli import common
from ptkit.cli.output.json_values import print_document

DESCRIPTION = """\
Writes a recording as a bundle without paths, command lines, and names of threads and of the machine. Trace,
code, names of functions and build-ids stay."""
EXAMPLES = """examples:
  ptkit redact sort.ptk -o redacted.ptk"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "source",
        metavar="TRACE",
        type=common.trace_path,
        help="a recording of any known format; - for standard input",
    )
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the bundle to write")
    common.add_force_option(parser)
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the bundle."""
    common.check_output(options)
    ptkit.redact(options.source, options.output)
    size = Path(options.output).stat().st_size
    if options.json:
        print_document("redact", {"source": options.source, "output": options.output, "bytes": size})
    else:
        print(f"{options.output}: {size:,} bytes, without paths, command lines and names of threads")
    return 0
