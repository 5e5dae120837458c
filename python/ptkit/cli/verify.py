"""``ptkit verify``: ours against libipt, to the first difference."""

from __future__ import annotations

import argparse

from ptkit.cli import common

HELP = "compare our decoder with libipt, show the first difference with context"
DESCRIPTION = (
    "Decodes with both engines in lock step: packets, instructions, conditional branches, events. "
    "Exit status 1 if they differ."
)
EXAMPLES = """examples:
  ptkit verify sort.ptk
  ptkit verify sort.ptk --json"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print what was compared, and the first difference if there is one."""
    from ptkit.analysis import verify as verification

    trace = common.open_trace(options)
    with common.progress(trace, "verifying"):
        report = verification.verify(trace)
    if options.json:
        common.print_json(report.as_dict())
    else:
        print(report)
    return 0 if report.same else 1
