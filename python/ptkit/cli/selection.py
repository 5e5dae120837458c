"""Arguments that choose rows, and the passes through the streams that have them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import Any

from ptkit.cli.addresses import address, address_or_range
from ptkit.cli.common import LAST_32, cpu_numbers, number
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.terminal import print_text
from ptkit.cli.output.time_order import in_time_order
from ptkit.decode import Query
from ptkit.errors import ConfigError
from ptkit.support.text import shortened
from ptkit.table import Table
from ptkit.trace import Trace

_ROWS = 65536
# Arguments by which an index selects parts, and bytes of trace from which on a note is worth it.
_BY_INDEX = ("time", "ip", "symbol")
_LONG = 32 << 20
_REPEATED = ("stream", "tid", "pid", "space", "cr3", "cpu", "ip", "symbol", "module", "kind")
#: Arguments that select streams and threads; their first calls have the number 0.
OWNERS = ("stream", "cpu", "tid", "pid", "space", "cr3")
_TICKS = r"0[xX][0-9a-fA-F_]+|0[bBoO][0-7_]+|[0-9][0-9_]*"
_NUMBER = r"0[xX][0-9a-fA-F_]+|[0-9][0-9_,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_MOMENT = rf"({_NUMBER})(s|ms|us|ns|%|)"
_INTERVAL = re.compile(rf"(?:{_MOMENT})?-(?:{_MOMENT})?")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_INSTRUCTIONS = re.compile(r"([0-9][0-9_,]*)?-([0-9][0-9_,]*)?")
_TIME_FORMS = "write FROM-TO, such as 10ms-20ms, 0.1s-0.2s, 10%-20%, or TSC ticks"

#: A time as it was written: its number and its unit, "" for ticks. None: an open end.
Moment = tuple[str, str] | None


def add_selection_options(parser: argparse.ArgumentParser) -> None:
    """Add the choice of rows, and how they are printed."""
    group = parser.add_argument_group(
        "which rows", "Repeated options add up. --time, --instructions and --limit take one value."
    )
    add_choice_options(group)
    group.add_argument(
        "--limit", type=number(), metavar="N", help="print N rows at most, of all streams together"
    )
    group = parser.add_argument_group("how rows are printed")
    group.add_argument(
        "--order",
        choices=("stream", "time"),
        default="stream",
        help="stream by stream (default), or all streams merged by time",
    )
    group.add_argument(
        "--time-unit",
        choices=("s", "ns", "tsc"),
        help="show times in seconds or nanoseconds from the start of the trace, or in TSC ticks (default: "
        "seconds on a terminal, if the clock is known; else ticks)",
    )


def add_owner_options(group: argparse._ActionsContainer) -> None:
    """Add the options that select streams, processors, threads, processes and address spaces."""
    add_stream_option(group)
    group.add_argument(
        "-C",
        "--cpu",
        metavar="CPUS",
        type=cpu_numbers,
        action="extend",
        help="numbers of processors, such as 0,2-3",
    )
    group.add_argument("--tid", metavar="N", type=number(LAST_32), action="append", help="a thread")
    group.add_argument("--pid", metavar="N", type=number(LAST_32), action="append", help="a process")
    group.add_argument(
        "--space",
        metavar="INDEX",
        type=number(LAST_32),
        action="append",
        help="an address space: its number in `ptkit info`",
    )
    group.add_argument(
        "--cr3", metavar="VALUE", type=address, action="append", help="an address space, by its CR3"
    )


def add_choice_options(group: argparse._ActionsContainer) -> None:
    """Add the options that select rows."""
    add_owner_options(group)
    group.add_argument(
        "--ip",
        metavar="ADDRESS[-TO]",
        type=address_or_range,
        action="append",
        help="an address, or [ADDRESS, TO)",
    )
    group.add_argument(
        "--symbol",
        metavar="NAME",
        action="append",
        help="a function; a pattern (mem*); an address in a function (main+0x10) or file ([libc.so.6]+0x10)",
    )
    add_module_and_time(group)


def add_module_and_time(group: argparse._ActionsContainer) -> None:
    """Add ``--module`` and ``--time``."""
    group.add_argument(
        "--module",
        metavar="NAME",
        action="append",
        help="a program or library: libc.so.6, or its path; the file of Python functions: app.py, '*.py'",
    )
    add_time(group)
    group.add_argument(
        "--instructions",
        metavar="FROM-TO",
        type=_instructions,
        help="instructions FROM to before TO of the thread, counted from its begin in its stream; choose the "
        "thread by --tid where a stream has several; one end may be left out",
    )


def add_time(group: argparse._ActionsContainer, what: str = "") -> None:
    """Add ``--time``; `what` begins its help."""
    group.add_argument(
        "--time",
        metavar="FROM-TO",
        type=_interval,
        help=f"{what}from FROM to before TO: s, ms, us or ns from the start of the trace, %% of its span, or "
        "TSC ticks, such as 10ms-20ms; one end may be left out",
    )


def add_whole_calls(group: argparse._ActionsContainer) -> None:
    """Add ``--whole-calls``."""
    group.add_argument(
        "--whole-calls",
        action="store_true",
        help="with --time: calls of which a part lies in it, as a whole (default: what they did within it)",
    )


def add_direction_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--taken`` and ``--not-taken``."""
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--taken", action="store_true", help="taken branches only")
    direction.add_argument(
        "--not-taken", action="store_true", help="conditional branches that fell through only"
    )


def add_stream_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--stream``."""
    parser.add_argument(
        "--stream",
        metavar="INDEX",
        type=number(LAST_32),
        action="append",
        help="a stream: its number in `ptkit info`",
    )


def _interval(text: str) -> tuple[Moment, Moment]:
    """Read an interval of time, each end in its own unit."""
    found = _INTERVAL.fullmatch(text)
    if found is None or text == "-":
        raise argparse.ArgumentTypeError(f"{text!r} is not an interval of time: {_TIME_FORMS}")
    begin: Moment = None if found[1] is None else (found[1], found[2])
    end: Moment = None if found[3] is None else (found[3], found[4])
    for moment in (begin, end):
        if moment is not None and not moment[1] and not re.fullmatch(_TICKS, moment[0].replace(",", "")):
            raise argparse.ArgumentTypeError(
                f"{text}: {moment[0]} has no unit, and TSC ticks are whole numbers"
            )
    if begin and end and bool(begin[1]) != bool(end[1]):
        raise argparse.ArgumentTypeError(f"{text}: give both ends a unit, or none (TSC ticks)")
    return begin, end


def _instructions(text: str) -> tuple[int | None, int | None]:
    """Read a range of instructions."""
    found = _INSTRUCTIONS.fullmatch(text)
    if found is None or text == "-":
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a range of instructions: write FROM-TO, such as 1000-3000 or 1000-"
        )
    first, end = (None if one is None else number()(one.replace(",", "")) for one in found.groups())
    if first is not None and end is not None and first > end:
        raise argparse.ArgumentTypeError(f"{text}: FROM must not be above TO")
    return first, end


def moment(text: str) -> tuple[str, str]:
    """Read one time, or a length of time: its number and its unit."""
    found = re.fullmatch(_MOMENT, text)
    if found is None or (not found[2] and not re.fullmatch(_TICKS, found[1].replace(",", ""))):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time: write 10ms, 0.1s, 10%, or TSC ticks (whole numbers)"
        )
    return found[1], found[2]


def selection(trace: Trace, options: argparse.Namespace) -> dict[str, Any]:
    """Collect the selection as keyword arguments of the tables.

    Raises
    ------
    ConfigError, SymbolError
        If the trace does not have what is selected.
    """
    chosen = {name: found for name in _REPEATED if (found := getattr(options, name, None))}
    interval = getattr(options, "time", None)
    if interval is not None:
        chosen["time"] = _ticks(trace, interval)
    if getattr(options, "instructions", None) is not None:
        chosen["instructions"] = options.instructions
    if getattr(options, "taken", False) or getattr(options, "not_taken", False):
        chosen["taken"] = options.taken
    # The plan says what is wrong before anything is printed.
    table = "branches" if {"kind", "taken"} & chosen.keys() and options.verb != "events" else "events"
    if options.verb == "packets":
        table = options.verb
    trace.open_parts.plan(table, Query(**chosen))  # type: ignore[typeddict-item]
    if getattr(options, "whole_calls", False):
        if interval is None:
            what = "without it, all calls are whole"
            if "instructions" in chosen:
                what = "a range of instructions has parts of calls"
            raise ConfigError(f"--whole-calls goes with --time: {what}")
        chosen["whole_calls"] = True
    return chosen


def _ticks(trace: Trace, interval: tuple[Moment, Moment]) -> tuple[int | None, int | None]:
    """Turn an interval into TSC ticks; it must meet the trace's span."""
    begin, end = (None if moment is None else tick(trace, moment, "--time") for moment in interval)
    if begin is not None and end is not None and begin > end:
        raise ConfigError("--time: FROM must be below TO")
    low, high = 0 if begin is None else begin, 2**64 - 1 if end is None else end
    trace.open_parts.times.check(low, high, "--time takes s, ms, us, ns and %, too: --time 10ms-20ms")
    return begin, end


def tick(trace: Trace, moment: tuple[str, str], option: str) -> int:
    """Turn a time into TSC ticks.

    Raises
    ------
    ConfigError
        If the trace has no times, or does not know its clock.
    """
    text, unit = moment[0].replace(",", ""), moment[1]
    if not unit:
        return number()(text)
    value = float(int(text, 0)) if text[:2] in ("0x", "0X") else float(text)
    if unit == "%":
        if value > 100:
            raise ConfigError(f"{option}: {text}% is more than 100%")
        return trace.open_parts.times.ticks("percent", value)
    return trace.open_parts.times.ticks("seconds", value * _SECONDS[unit])


def length(trace: Trace, moment: tuple[str, str], option: str) -> int:
    """Turn a length of time into TSC ticks; errors as of `tick`."""
    ticks = tick(trace, moment, option)
    first = trace.open_parts.times.span[0] if trace.open_parts.times.span is not None else 0
    return ticks - first if moment[1] else ticks


def chosen_streams(trace: Trace, options: argparse.Namespace) -> list[int]:
    """Indices of the streams that have what is selected."""
    names = ("stream", "cpu", "tid", "pid")
    query = {name: found for name in names if (found := getattr(options, name, None))}
    return list(trace.open_parts.scope.streams(Query(**query)))  # type: ignore[typeddict-item]


def passes(
    trace: Trace,
    options: argparse.Namespace,
    read: Callable[..., Iterator[Table]],
    columns: list[str],
    chosen: dict[str, Any],
    *,
    decodes: int = 1,
) -> Iterator[tuple[int | None, Iterator[Table]]]:
    """Parts of the selected rows: of one stream after the other, or (stream None) of all, merged by time.

    A part is valid until the next one is asked for. Parts of merged streams have either rows, or errors and
    gaps. `decodes`: how often the streams are decoded until all is printed.
    """
    streams = chosen_streams(trace, options)
    with decoding(trace, streams=streams, passes=decodes) as before_rows:
        if options.order == "time" and len(streams) > 1:
            parts = read(rows=_ROWS, columns=columns, order="time", **chosen)
            yield None, _announced(in_time_order(parts), before_rows)
            return
        for stream in streams:
            if len(trace.streams) > 1:
                before_rows()  # a heading comes
            parts = read(rows=_ROWS, reuse=True, columns=columns, **chosen | {"stream": stream})
            yield stream, _announced(parts, before_rows)


def _announced(parts: Iterator[Table], before_rows: Callable[[], None]) -> Iterator[Table]:
    """Pass parts on, and call before each."""
    for part in parts:
        before_rows()
        yield part


def print_stream_heading(trace: Trace, stream: int | None) -> None:
    """Say which stream follows, where there are several."""
    if stream is not None and len(trace.streams) > 1:
        print_text(f"[stream {stream}: {shortened(trace.streams[stream].name) or 'unnamed'}]")


def add_owners(writer: LineWriter) -> None:
    """Begin the lines of merged rows with stream and thread."""
    writer.number("stream", "decimal", width=6)
    writer.literal(" ")
    writer.number("tid", "decimal", unknown="-", width=7)
    writer.literal("  ")


def report_no_rows(trace: Trace, options: argparse.Namespace, rows: int) -> None:
    """Say on standard error that nothing was selected, and what the trace spans."""
    names = (*_REPEATED, "time", "instructions")
    given = [f"--{name}" for name in names if getattr(options, name, None)]
    given += [
        f"--{name.replace('_', '-')}" for name in ("taken", "not_taken") if getattr(options, name, False)
    ]
    if rows == 0 and given and options.limit != 0:
        span = f"; the trace spans {trace.open_parts.times.text()}" if "--time" in given else ""
        print_text(f"ptkit {options.verb}: note: no rows match {', '.join(given)}{span}", errors=True)


def report_index(trace: Trace, options: argparse.Namespace, *, has_sums: bool = False) -> None:
    """Say on standard error that an index makes a question fast that took long without.

    `has_sums`: of the whole trace, which an index has.
    """
    given = [f"--{name}" for name in _BY_INDEX if getattr(options, name, None)]
    if not (given or has_sums) or trace.opened.settings.index is not None or not Path(trace.source).is_file():
        return
    decoded = trace.opened.session.decoded_bytes
    if decoded >= _LONG:
        print_text(
            f"ptkit {options.verb}: note: {' and '.join(given) or 'this'} decoded {decoded / 1e6:,.0f} MB "
            "of trace; "
            f"`ptkit index {quote(options.path)}` makes such questions fast",
            errors=True,
        )
