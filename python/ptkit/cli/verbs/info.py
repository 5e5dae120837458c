"""``ptkit info``: what a trace holds."""

from __future__ import annotations

import argparse

from ptkit.cli import common
from ptkit.cli.addresses import note_decimals
from ptkit.cli.output.json_documents import info_document
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses, side_texts
from ptkit.cli.output.terminal import print_multiline, print_text
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints what is in a trace, and warnings about it: processes with their threads and address spaces, modules
with base and size, the time span, streams. With --verbose also registers, the clock, build-ids, and all
processes, modules, streams and missing files. With --decode, decodes all of it: counts rows, errors and gaps,
and prints the first errors and gaps."""
EXAMPLES = """examples:
  ptkit info sort.ptk
  ptkit info --verbose sort.ptk
  ptkit info --decode --json sort.ptk"""

_ROWS = 1 << 17  # between two looks at the progress
_SHOWN = 10  # errors and gaps


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    parser.add_argument("--decode", action="store_true", help="decode everything: count rows, errors, gaps")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="registers, clock, build-ids, and lists without an end"
    )
    common.add_rva_option(parser)
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the trace's description; warnings are part of it."""
    note_decimals(options)
    trace = common.open_trace(options, warn=False)
    counts, losses = _counts(trace, options.path, rva=options.rva) if options.decode else ({}, [])
    if options.json:
        print_document("info", info_document(trace.info, counts))
        return 0
    print_multiline(trace.info.text(verbose=options.verbose))
    for name, count in counts.items():
        print(f"{name}: {count:,}")
    for line in losses:
        print_text(line)
    return 0


def _counts(trace: Trace, source: str, *, rva: bool) -> tuple[dict[str, int], list[str]]:
    """Decode everything; count rows, errors and gaps, and give lines of the first errors and gaps."""
    counts = dict.fromkeys(("branches", "instructions", "events", "errors", "gaps"), 0)
    tables = (trace.iter_branches, trace.iter_instructions, trace.iter_events)
    everything = range(len(trace.streams))
    shown: list[str] = []
    with decoding(trace, passes=len(tables)):
        for name, table in zip(counts, tables, strict=False):
            losses, shown = Losses(), []
            for stream in everything:
                parts = losses.counted(table(rows=_ROWS, columns=["offset"], reuse=True, stream=stream))
                for part in parts:
                    counts[name] += len(part)
                    shown += _lines(part, stream, _SHOWN - len(shown), rva=rva)
            counts["errors"], counts["gaps"] = losses.errors, losses.gaps
    left = counts["errors"] + counts["gaps"] - len(shown)
    return counts, [*shown, *([f"... and {left:,} more"] if left else []), *losses.missing_code(source)]


def _lines(part: Table, stream: int, most: int, *, rva: bool) -> list[str]:
    """The first errors and gaps of a part, in order."""
    if most <= 0:
        return []
    return [f"stream {stream}: {text}" for _, text in side_texts(part, rva=rva)[:most]]
