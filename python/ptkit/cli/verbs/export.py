"""``ptkit export``: a recording in another tool's format."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ptkit.cli import common
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.terminal import say

DESCRIPTION = """\
Writes a recording in a format that other tools read.

perf.data: a file for Linux perf, or a folder as `perf record --kcore` writes it, if the recording has kernel
code. Code that perf would not find on this machine goes to OUT.debug, which `perf --buildid-dir` takes;
with --with-code all, all code goes there, for other machines. Notes on standard error list what perf.data
cannot hold."""
EXAMPLES = """examples:
  ptkit export sort.ptk -o sort.data
  ptkit export sort.ptk --format perf.data --with-code all -o sort.data
then, where perf is installed:
  perf script -i sort.data --itrace=b
  perf --buildid-dir sort.data.debug script -i sort.data --itrace=i0ns"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file or folder to write")
    common.add_force_option(parser)
    # Packages' own formats are not named here: their modules would be imported by each verb.
    parser.add_argument(
        "--format",
        dest="to",
        metavar="FORMAT",
        default="perf.data",
        help="perf.data (default), or a format that another package adds; a wrong name lists all of them",
    )
    parser.add_argument(
        "--with-code",
        choices=("needed", "all", "none"),
        help="perf.data: which code goes to OUT.debug (default: needed)",
    )
    common.add_open_options(parser, decoding=False, format_option="--input-format")
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Write the recording in the other format."""
    if options.to == "perf.data":
        common.check_output(options)
    trace = common.open_trace(options)
    more = {} if options.with_code is None else {"code": options.with_code}
    written = trace.export(options.output, options.to, **more)
    if options.json:
        print_document("export", asdict(written))
        return 0
    for note in written.notes:
        say(f"ptkit export: {note}", errors=True)
    print(f"{written.path}: {written.bytes:,} bytes")
    if options.to == "perf.data":
        folder = f"--buildid-dir {written.files[0]} " if written.files else ""
        print(f"perf {folder}script -i {written.path} --itrace=b")
    return 0
