"""``ptkit verify``: ptkit against libipt, to the first difference."""

from __future__ import annotations

import argparse

from ptkit.cli import common, selection
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import progress

DESCRIPTION = """\
Decodes packets, instructions, conditional branches and events with ptkit and with libipt, and compares them
row by row. Exit status 1 if they differ."""
EXAMPLES = """examples:
  ptkit verify sort.ptk
  ptkit verify sort.ptk --json"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser, decoding=False)
    selection.add_stream_option(parser)
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print what was compared, and the first difference if there is one."""
    from ptkit.analysis import verify as verification
    from ptkit.cli.output.json_documents import verify_document

    trace = common.open_trace(options)
    streams = selection.chosen_streams(trace, options)
    with progress(trace, "verifying", streams=streams, passes=verification.PASSES) as at:
        report = verification.verify(trace, streams=streams, progress=at)
    if options.json:
        print_document("verify", verify_document(report))
    else:
        print(report)
    return 0 if report.same else 1
