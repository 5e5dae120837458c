"""``ptkit instructions``: every instruction of a trace, with events and errors at their place."""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from ptkit.cli import common
from ptkit.table import Table
from ptkit.trace import Trace

HELP = "print instructions with disassembly and symbols, in the manner of ptxed"
DESCRIPTION = (
    "Prints one line per instruction; events, errors and gaps stand in brackets at their place. "
    "With a selection by time, address, symbol or thread only instructions are printed."
)
EXAMPLES = """examples:
  ptkit instructions sort.ptk | head -50
  ptkit instructions sort.ptk --symbol main --no-events
  ptkit instructions raw.pt --code code.bin@0x400000 --resync psb"""

_EVENT_ROWS = 65536
_COLUMNS = ["ip", "size", "mode", "flags"]


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    common.add_open_options(parser)
    common.add_selection_options(parser, flow=True)
    parser.add_argument("--no-inst", action="store_true", help="addresses only: no disassembly, no symbols")
    parser.add_argument("--no-events", action="store_true", help="instructions only")
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the instructions stream by stream."""
    trace = common.open_trace(options)
    chosen = common.selection(options)
    losses = common.Losses()
    narrowed = bool(chosen.keys() - {"stream"})
    for stream in common.chosen_streams(trace, options):
        columns = None if options.json else _COLUMNS
        parts = losses.counted(
            trace.iter_instructions(rows=65536, columns=columns, **chosen | {"stream": stream})
        )
        with common.progress(trace, "decoding"):
            if options.json:
                for part in common.limited(parts, options.limit):
                    common.rows_as_json(part, sys.stdout)
                continue
            common.print_stream_heading(trace, stream)
            notes = iter(()) if options.no_events or narrowed else _notes(trace, stream)
            _print_stream(
                _Printer(trace, stream, bare=options.no_inst), common.limited(parts, options.limit), notes
            )
    losses.report()
    return 0


class _Printer:
    """Makes the line of an instruction."""

    def __init__(self, trace: Trace, stream: int, *, bare: bool) -> None:
        self.bare = bare
        space = trace.streams[stream].space
        self.text = lru_cache(maxsize=1 << 20)(
            lambda ip, size, mode: (
                f"{trace.disassemble(ip, size, mode=mode, space=space):<44} {trace.symbolize([ip])[0] or ''}"
            )
        )

    def lines(self, part: Table) -> list[str]:
        """All lines of a part, in order."""
        rows = zip(
            part["ip"].tolist(),
            part["size"].tolist(),
            part["mode"].tolist(),
            part["in_tx"].tolist(),
            strict=True,
        )
        if self.bare:
            return [f"{'? ' if in_tx else ''}{ip:016x}" for ip, _, _, in_tx in rows]
        return [
            f"{'? ' if in_tx else ''}{ip:016x}  {self.text(ip, size, mode)}".rstrip()
            for ip, size, mode, in_tx in rows
        ]


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


def _print_stream(printer: _Printer, parts: Iterator[Table], notes: Iterator[tuple[int, str]]) -> None:
    position = 0
    note = next(notes, None)
    for part in parts:
        lines = printer.lines(part)
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
            print("\n".join(out))
    while note is not None and note[0] <= position:
        print(note[1])
        note = next(notes, None)
