"""``ptkit instructions``: every instruction of a trace, with events and errors at their place."""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections.abc import Iterator

from ptkit.cli import common, output
from ptkit.cli.listing import Listing
from ptkit.cli.plain import say
from ptkit.schema import schema_of
from ptkit.table import Table
from ptkit.trace import Trace

HELP = "print instructions with disassembly and symbols, in the manner of ptxed"
DESCRIPTION = (
    "Prints one line per instruction; events, errors and gaps stand in brackets at their place. "
    "With a selection by time, address, symbol or thread only instructions are printed."
)
EXAMPLES = """examples:
  ptkit instructions sort.ptk | head -50
  ptkit instructions sort.ptk --symbol malloc --no-events
  ptkit instructions raw.pt --code code.bin@0x400000 --resync psb"""

_EVENT_ROWS = 65536
_COLUMNS = ["ip", "size", "mode", "flags", "tsc", "offset", "space"]


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    common.add_selection_options(parser, flow=True)
    parser.add_argument("--no-inst", action="store_true", help="addresses only: no disassembly, no symbols")
    parser.add_argument("--no-events", action="store_true", help="instructions only")
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the instructions stream by stream."""
    trace = common.open_trace(options)
    chosen = common.selection(options)
    losses = output.Losses()
    budget = output.Budget(options.limit)
    narrowed = bool(chosen.keys() - {"stream"})
    columns = _COLUMNS
    if options.json:
        columns = [*schema_of("instructions").names("stored"), "stream", "tid", "space"]
    listing = Listing(trace, bare=options.no_inst)
    for stream in common.chosen_streams(trace, options):
        if budget.spent:
            break
        with output.progress(trace, "decoding", streams=[stream]) as at:
            parts = trace.iter_instructions(rows=65536, columns=columns, **chosen | {"stream": stream})
            parts = losses.counted(budget.cut(output.watched(parts, at)))
            if options.json:
                for part in parts:
                    output.print_json_rows(part)
                continue
            common.print_stream_heading(trace, stream)
            notes = iter(()) if options.no_events or narrowed else _notes(trace, stream)
            _print_stream(listing, parts, notes)
    losses.report()
    return 0


def _notes(trace: Trace, stream: int) -> Iterator[tuple[int, str]]:
    """Events, errors and gaps of a stream with the number of instructions before each, in order."""
    waiting: list[tuple[int, int, str]] = []  # order, instruction, text
    for part in trace.iter_events(rows=_EVENT_ROWS, stream=stream):
        for table, prefix in ((part, ""), (part.errors, "error: "), (part.gaps, "gap: ")):
            if table is not None:
                places = zip(
                    table["order"].tolist(), table["instruction"].tolist(), table.messages(), strict=True
                )
                waiting += [(order, before, f"[{prefix}{message}]") for order, before, message in places]
        waiting.sort()
        # Errors of the next part cannot stand before the last event of this one.
        last = int(part["order"][-1]) if len(part) else -1
        ready = bisect_right(waiting, last, key=lambda note: note[0])
        yield from ((before, text) for _, before, text in waiting[:ready])
        del waiting[:ready]
    yield from ((before, text) for _, before, text in waiting)


def _print_stream(listing: Listing, parts: Iterator[Table], notes: Iterator[tuple[int, str]]) -> None:
    position = 0
    note = next(notes, None)
    for part in parts:
        lines = listing.lines(part)
        out: list[str] = []
        done = 0
        while note is not None and note[0] < position + len(lines):
            out += lines[done : note[0] - position]
            done = max(done, note[0] - position)
            out.append(note[1])
            note = next(notes, None)
        out += lines[done:]
        position += len(lines)
        if out:
            say("\n".join(out))
    while note is not None and note[0] <= position:
        say(note[1])
        note = next(notes, None)
