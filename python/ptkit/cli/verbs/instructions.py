"""``ptkit instructions``: every instruction of a trace, with events and errors between them."""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ptkit._core import EventFlag
from ptkit.cli import common, selection
from ptkit.cli.output.clock import Clock, Heading
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.rows import Budget, Losses, rows_before, side_lines
from ptkit.cli.output.terminal import line_of, print_lines
from ptkit.cli.parser import refuse_unused
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints one line per instruction, with the name of a direct branch's target after it and its own name at the
end: [FILE]+RVA where there is no symbol. Events, errors and gaps stand in brackets among the lines. Events
that repeat the state in PSB+ are left out, unless --status is given. With a selection by time, address,
symbol, module, thread or process only instructions are printed. With --order time, lines begin with stream,
thread and time, and there are no events."""
EXAMPLES = """examples:
  ptkit instructions sort.ptk | head -50
  ptkit instructions sort.ptk --symbol malloc --raw
  ptkit instructions raw.pt --code code.bin@0x400000 --resync psb"""

_EVENT_ROWS = 256  # few, for the first lines need only the events before them
_Notes = list[tuple[int, bytes]]  # lines between rows
_Form = Callable[[Table, _Notes], None]  # prints a part's rows, and notes before rows
_Texts = Callable[[Table], list[bytes]]  # lines of events, errors or gaps
_Sides = Callable[[Table], _Notes]  # lines of errors and gaps, by position
_MARKS = [b"", b"? "]  # by whether a transaction was running
_COLUMNS = ["ip", "size", "mode", "flags", "tsc", "offset", "space", "stream", "tid"]


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    selection.add_selection_options(parser)
    common.add_open_options(parser)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--no-inst", action="store_true", help="print addresses without disassembly and symbols"
    )
    forms.add_argument("--raw", action="store_true", help="print the bytes of instructions, too")
    parser.add_argument("--no-events", action="store_true", help="leave out events, errors and gaps")
    common.add_status_option(parser)
    common.add_address_options(parser)
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the instructions stream by stream, or merged by time."""
    if options.no_inst:
        refuse_unused(options, ("names", "file_offsets"), "--no-inst")
    if options.no_events:
        refuse_unused(options, ("status",), "--no-events")
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    narrowed = bool(chosen.keys() - {"stream", "cpu"})
    lines = _Lines(trace, options)
    columns = [*_COLUMNS, "tsc_error"] if options.no_inst and options.rva else _COLUMNS
    form: _Form = lines.print_part
    texts: _Texts = partial(_texts, rva=options.rva)
    if options.json:
        made = JsonRows(trace, "instructions", symbols=not options.no_inst)
        columns, texts = json_columns("instructions"), made.lines
        form = _json_lines(made, bare=options.no_inst, raw=options.raw)
        made.print_header()
    heading = Heading(options, lines.heading)
    losses, budget, rows = Losses(), Budget(options.limit), 0
    has_events = not (options.no_events or narrowed)
    decodes = 2 if has_events and options.order == "stream" else 1
    for stream, parts in selection.passes(
        trace, options, trace.iter_instructions, columns, chosen, decodes=decodes
    ):
        if budget.spent:
            break
        counted = heading.before(losses.counted(budget.cut(parts)))
        if not options.json:
            selection.print_stream_heading(trace, stream)
        if stream is None:
            sides = made.side_lines if options.json else partial(side_lines, rva=options.rva)
            rows += _print_merged(form, counted, sides=None if narrowed else sides)
        else:
            hidden = 0 if options.status else EventFlag.STATUS
            notes = _notes(trace, stream, texts, hidden) if has_events else iter(())
            rows += _print_stream(form, counted, notes)
    selection.report_no_rows(trace, options, rows)
    selection.report_index(trace, options)
    losses.report(options.path)
    return 0


class _Lines:
    """Prints lines of instructions."""

    def __init__(self, trace: Trace, options: argparse.Namespace) -> None:
        self._bare = options.no_inst
        self._style = "raw" if options.raw else "text"
        self._merged = options.order == "time" and len(selection.chosen_streams(trace, options)) > 1
        timed = self._merged or options.time_unit is not None
        self._clock = Clock(trace, options.time_unit) if timed else None
        self._rva = options.rva
        self._writer = common.line_writer(trace, options, symbols=not options.no_inst)

    @property
    def heading(self) -> str:
        """Names of the columns."""
        owner = f"{'stream':>6} {'tid':>7}  " if self._merged else ""
        time = f"{self._clock.heading:>16}  " if self._clock else ""
        raw = f"{'bytes':<24} " if self._style == "raw" else ""
        return f"{owner}{time}{'address':<16}  {raw}{'instruction':<44} symbol"

    def print_part(self, part: Table, notes: _Notes) -> None:
        """Print instructions, and notes before rows of the part."""
        writer = self._writer
        writer.begin(part)
        if self._merged:
            selection.add_owners(writer)
        if self._clock is not None:
            self._clock.add(writer, part, width=16)
            writer.literal("  ")
        writer.names_of("in_tx", _MARKS)
        if self._bare:
            writer.number("ip", "hex16")
            if self._rva:
                writer.literal("  ")
                writer.address("name", "ip")
        else:
            writer.instruction(self._style)
        writer.print(notes)


def _print_merged(form: _Form, parts: Iterator[Table], *, sides: _Sides | None) -> int:
    rows = 0
    for part in parts:
        rows += len(part)
        notes = sides(part) if sides is not None else []
        if notes:
            notes = rows_before(np.asarray(part["offset"]).astype(np.int64), notes)
        form(part, notes)
    return rows


def _texts(table: Table, *, rva: bool) -> list[bytes]:
    """Events, errors or gaps in words."""
    prefix = {"errors": "error: ", "gaps": "gap: "}.get(table.name, "")
    return [line_of(f"[{prefix}{message}]") for message in table._messages(rva=rva)]


def _json_lines(rows: JsonRows, *, bare: bool, raw: bool) -> _Form:
    """Printer of instructions as JSON; `bare`: without their disassembly; `raw`: with their bytes."""

    def disassembly(writer: LineWriter) -> None:
        writer.literal(', "disassembly": ')
        writer.instruction("json")
        if raw:
            writer.literal(', "bytes": ')
            writer.instruction("json bytes")

    return lambda part, notes: rows.print_lines(part, notes, None if bare else disassembly)


def _notes(trace: Trace, stream: int, form: _Texts, hidden: int) -> Iterator[tuple[int, bytes]]:
    """Events, errors and gaps of a stream with the number of instructions before each, in order.

    Events with one of the flags `hidden` are left out.
    """
    waiting: list[tuple[int, int, bytes]] = []  # order, instruction, text
    for part in trace.iter_events(rows=_EVENT_ROWS, stream=stream):
        shown = part[(part["flags"] & hidden) == 0] if hidden else part
        for table in (shown, part.errors, part.gaps):
            if table is not None:
                waiting += zip(
                    table["order"].tolist(), table["instruction"].tolist(), form(table), strict=True
                )
        waiting.sort()
        # Errors of the next part cannot stand before the last event of this one.
        last = int(part["order"][-1]) if len(part) else -1
        ready = bisect_right(waiting, last, key=lambda note: note[0])
        yield from ((before, text) for _, before, text in waiting[:ready])
        del waiting[:ready]
    yield from ((before, text) for _, before, text in waiting)


def _print_stream(form: _Form, parts: Iterator[Table], notes: Iterator[tuple[int, bytes]]) -> int:
    position = 0
    note = next(notes, None)
    for part in parts:
        between: _Notes = []
        done = 0
        while note is not None and note[0] < position + len(part):
            done = max(done, note[0] - position)
            between.append((done, note[1]))
            note = next(notes, None)
        form(part, between)
        position += len(part)
    while note is not None and note[0] <= position:
        print_lines([note[1]])
        note = next(notes, None)
    return position
