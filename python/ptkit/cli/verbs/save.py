"""``ptkit save``: a recording of any format as a bundle."""

from __future__ import annotations

import argparse

from ptkit.cli import common
from ptkit.cli.output.json_values import print_document

DESCRIPTION = """\
Writes a recording of any known format as one bundle (.ptk), with its code, the names of functions, and what
is given by --image, --code and --processor. Nothing is left out: paths, command lines and names are in it.
`ptkit redact` writes a bundle without them."""
EXAMPLES = """examples:
  ptkit save sort.ptk -o copy.ptk
  ptkit save raw.pt --code code.bin@0x400000 --processor 6/158/10 -o raw.ptk"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the bundle to write")
    common.add_force_option(parser)
    common.add_open_options(parser, decoding=False)
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the bundle."""
    common.check_output(options)
    trace = common.open_trace(options)
    size = trace.save(options.output)
    if options.json:
        print_document("save", {"source": options.path, "output": options.output, "bytes": size})
    else:
        print(f"{options.output}: {size:,} bytes")
    return 0
