"""``ptkit cache``: says that decoded code is no longer kept. It goes with the release after 0.1."""

from __future__ import annotations

import argparse

from ptkit.cli import common
from ptkit.cli.output.json_values import print_document

DESCRIPTION = "Decoded code is no longer kept on disk; this verb goes with the next release."
EXAMPLES = """examples:
  ptkit cache"""
SENTENCE = (
    "decoded code is no longer kept on disk, as it saved little; "
    "delete what earlier versions left in ~/.cache/ptkit"
)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--clear", action="store_true", help=argparse.SUPPRESS)
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the sentence."""
    if options.json:
        print_document("cache", {"folder": None, "files": [], "size_bytes": 0})
    else:
        print(SENTENCE)
    return 0
