"""``ptkit instructions``: every instruction of a trace, with events and errors at their place."""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections.abc import Callable, Iterator

from ptkit._core import EventFlag
from ptkit.cli import common, selection
from ptkit.cli.output.clock import Clock, print_heading
from ptkit.cli.output.disassembly import Listing
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.rows import Budget, Losses, print_rows, side_lines
from ptkit.cli.output.terminal import say, say_lines
from ptkit.table import Table
from ptkit.trace import Trace

HELP = "print instructions with disassembly and symbols, in the manner of ptxed"
DESCRIPTION = """\
Prints one line per instruction; events, errors and gaps stand in brackets at their place. Events that repeat
the state in PSB+ are left out (--json has them, with the flag status). With a selection by time, address,
symbol, module, thread or process only instructions are printed. With --order time, lines begin with stream,
thread and time, and there are no events."""
EXAMPLES = """examples:
  ptkit instructions sort.ptk | head -50
  ptkit instructions sort.ptk --symbol malloc --no-events
  ptkit instructions raw.pt --code code.bin@0x400000 --resync psb"""

_EVENT_ROWS = 65536
_Form = Callable[[Table], list[str]]  # lines of a table's rows
_Sides = Callable[[Table], list[tuple[int, str]]]  # lines of its errors and gaps
_COLUMNS = ["ip", "size", "mode", "flags", "tsc", "offset", "space", "stream", "tid"]


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    selection.add_selection_options(parser, flow=True)
    common.add_open_options(parser)
    parser.add_argument(
        "--no-inst", action="store_true", help="print addresses without disassembly and symbols"
    )
    parser.add_argument("--no-events", action="store_true", help="leave out events, errors and gaps")
    common.add_rows_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the instructions stream by stream, or merged by time."""
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    narrowed = bool(chosen.keys() - {"stream", "cpu"})
    lines = _Lines(trace, options)
    columns = _COLUMNS
    form: _Form = lines.of
    texts: _Form = _texts
    if options.json:
        made = JsonRows(trace, "instructions", symbols=not options.no_inst)
        columns, texts = json_columns("instructions"), _json_notes(made)
        form = _json_lines(made, Listing(trace, bare=options.no_inst), bare=options.no_inst)
        made.print_header()
    else:
        lines.print_heading()
    losses, budget, rows = Losses(), Budget(options.limit), 0
    for stream, parts in selection.passes(trace, options, trace.iter_instructions, columns, chosen):
        if budget.spent:
            break
        counted = losses.counted(budget.cut(parts))
        if not options.json:
            selection.print_stream_heading(trace, stream)
        if stream is None:
            sides = made.side_lines if options.json else side_lines
            rows += _print_merged(form, counted, sides=None if narrowed else sides)
        else:
            hidden = 0 if options.json else EventFlag.STATUS
            notes = iter(()) if options.no_events or narrowed else _notes(trace, stream, texts, hidden)
            rows += _print_stream(form, counted, notes)
    selection.report_no_rows(trace, options, rows)
    losses.report(options.path)
    return 0


class _Lines:
    """Makes lines of instructions."""

    def __init__(self, trace: Trace, options: argparse.Namespace) -> None:
        self._listing = Listing(trace, bare=options.no_inst)
        self._merged = options.order == "time" and len(selection.chosen_streams(trace, options)) > 1
        timed = self._merged or options.time_unit is not None
        self._clock = Clock(trace, options.time_unit) if timed else None

    def print_heading(self) -> None:
        owner = f"{'stream':>6} {'tid':>7}  " if self._merged else ""
        time = f"{self._clock.heading:>16}  " if self._clock else ""
        print_heading(f"{owner}{time}{'address':<16}  {'instruction':<44} symbol")

    def of(self, part: Table) -> list[str]:
        lines = self._listing.lines(part)
        if self._clock is not None:
            times = self._clock.texts(part)
            lines = [f"{time:>16}  {line}" for time, line in zip(times, lines, strict=True)]
        return selection.with_owners(part, lines) if self._merged else lines


def _print_merged(form: _Form, parts: Iterator[Table], *, sides: _Sides | None) -> int:
    rows = 0
    for part in parts:
        rows += len(part)
        notes = sides(part) if sides is not None else []
        print_rows(part["offset"].tolist(), form(part), notes)
    return rows


def _texts(table: Table) -> list[str]:
    """Events, errors or gaps in words."""
    prefix = {"errors": "error: ", "gaps": "gap: "}.get(table.name, "")
    return [f"[{prefix}{message}]" for message in table.messages()]


def _json_notes(rows: JsonRows) -> _Form:
    """What makes JSON of events, errors or gaps."""
    return lambda table: rows.lines(table, message=table.messages())


def _json_lines(rows: JsonRows, listing: Listing, *, bare: bool) -> _Form:
    """What makes JSON of instructions; `bare`: without their disassembly."""

    def lines(part: Table) -> list[str]:
        more = {} if bare else {"disassembly": [text for text, _ in listing.texts(part)]}
        return rows.lines(part, **more)

    return lines


def _notes(trace: Trace, stream: int, form: _Form, hidden: int) -> Iterator[tuple[int, str]]:
    """Events, errors and gaps of a stream with the number of instructions before each, in order.

    Events with one of the flags `hidden` are left out.
    """
    waiting: list[tuple[int, int, str]] = []  # order, instruction, text
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


def _print_stream(form: _Form, parts: Iterator[Table], notes: Iterator[tuple[int, str]]) -> int:
    position = 0
    note = next(notes, None)
    for part in parts:
        lines = form(part)
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
            say_lines(out)
    while note is not None and note[0] <= position:
        say(note[1])
        note = next(notes, None)
    return position
