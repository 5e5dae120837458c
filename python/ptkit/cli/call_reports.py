"""Reports of ``ptkit functions`` on the calls of one function: lengths, slow calls against fast ones."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ptkit.cli import common, selection
from ptkit.cli.output.clock import print_heading
from ptkit.cli.output.colours import print_painted
from ptkit.cli.output.durations import Durations
from ptkit.cli.output.json_rows import JsonRows
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import print_lines, print_text
from ptkit.cli.parser import Rare, refuse_unused
from ptkit.cli.stacks import call_command, fit, line_width, note, report
from ptkit.decode.call_histogram import CallHistogram, histogram
from ptkit.decode.call_table import CallTable
from ptkit.errors import ConfigError
from ptkit.info import EMULATOR
from ptkit.support.text import counted, duration
from ptkit.table import Table
from ptkit.trace import Trace

if TYPE_CHECKING:
    from ptkit.analysis.slow_calls import CallComparison, CallDifference

__all__ = [
    "add_call_options",
    "add_measure",
    "check_call_options",
    "has_real_times",
    "measure_of",
    "print_call_report",
]

# Options of tables of functions.
_OF_FUNCTIONS = ("by", "sort", "tails", "inlines", "imports", "rva")
_BAR = 40  # columns of the longest bar
_EXAMPLES = 3
_HEADINGS = {"function": "function", "line": "source line, by where blocks begin", "edge": "edge"}


def add_call_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the calls of one function."""
    group = parser.add_argument_group("calls of one function")
    reports = group.add_mutually_exclusive_group()
    reports.add_argument(
        "--histogram",
        metavar="NAME",
        help="print how long the calls of a function are, and the slowest ones; NAME as of --symbol",
    )
    reports.add_argument(
        "--slow",
        metavar="NAME",
        help="print what slow calls of a function did that fast ones did not; NAME as of --symbol",
    )
    group.add_argument(
        "--slow-from",
        metavar="X",
        type=_choice,
        default=0.99,
        help=Rare(
            "slow calls: a share (99%%, the default: the slowest 1%% at most), or the least length: "
            "instructions, or with --of time 50us or TSC ticks"
        ),
    )
    group.add_argument(
        "--fast-to",
        metavar="X",
        type=_choice,
        default=0.5,
        help=Rare("fast calls: a share (default: 50%%), or the largest length"),
    )


def check_call_options(options: argparse.Namespace) -> None:
    """Refuse options that say nothing of the calls of one function."""
    limits = ("slow_from", "fast_to")
    report_of = "--histogram" if options.histogram is not None else "--slow"
    if options.histogram is None and options.slow is None:
        for name in limits:
            if name in options.given_options:
                raise ConfigError(f"--{name.replace('_', '-')} goes with --slow NAME")
        return
    name = options.histogram if options.slow is None else options.slow
    refuse_unused(options, ("symbol",), f"{report_of} {name}", ", which names the function")
    refuse_unused(options, _OF_FUNCTIONS, report_of)
    if options.slow is None:
        refuse_unused(options, (*limits, "limit", "all"), report_of)
    else:
        refuse_unused(options, ("frames",), report_of, ", which compares native frames")


def add_measure(parser: argparse.ArgumentParser) -> None:
    """Add ``--of``."""
    parser.add_argument(
        "--of",
        choices=("instructions", "time"),
        help="what p50, p99, max, --histogram and --slow are of (default: time if the recording's times are "
        "real; else, and for --slow, instructions)",
    )


def measure_of(trace: Trace, options: argparse.Namespace) -> str:
    """Unit of the length of calls, if no option gives it: time where that is real."""
    if options.of is not None:
        return str(options.of)
    return "time" if has_real_times(trace) else "instructions"


def has_real_times(trace: Trace) -> bool:
    """Whether the trace has times, and they are not an emulator's."""
    return trace.open_parts.times.span is not None and trace.info.recording.get("backend") != EMULATOR


def _choice(text: str) -> float | int | tuple[str, str]:
    """Read a share in per cent, a number of instructions or ticks, or a length of time."""
    if text.endswith("%"):
        return common.share(text)
    if text[-1:] == "s":
        return selection.moment(text)
    return common.number()(text)


def _limit(trace: Trace, options: argparse.Namespace, name: str) -> float | int:
    """A share, or a limit in instructions or ticks."""
    given: float | int | tuple[str, str] = getattr(options, name)
    if not isinstance(given, tuple):
        return given
    option = f"--{name.replace('_', '-')}"
    if options.of != "time":
        raise ConfigError(f"{option} {''.join(given)} is a time: compare by --of time, or give instructions")
    return selection.length(trace, given, option)


def print_call_report(trace: Trace, options: argparse.Namespace, chosen: dict[str, Any]) -> int:
    """Print the report of ``--histogram`` or ``--slow``."""
    is_histogram = options.histogram is not None
    return _histogram(trace, options, chosen) if is_histogram else _slow(trace, options, chosen)


def _histogram(trace: Trace, options: argparse.Namespace, chosen: dict[str, Any]) -> int:
    name, of = options.histogram, measure_of(trace, options)
    ranges = trace.open_parts.ranges_of(name)
    with decoding(trace, streams=selection.chosen_streams(trace, options)):
        calls = trace.calls(frames=options.frames, **chosen | {"symbol": name}) if ranges else None
        if not calls:  # imported functions have no address; the others are for what an error lists
            calls = trace.calls(frames=options.frames, **chosen)
    calls = calls.of_function(name, ranges)
    found = calls.histogram(of)
    if options.json:
        _print_json(trace, "call_histogram", [{"unit": found.unit, **one} for one in _bins(found)])
    elif len(calls):
        _print_bins(trace, calls, found, options)
        _print_examples(trace, calls.slowest(_EXAMPLES, of), options)
    if found.unknown:
        note(options, f"{counted(found.unknown, 'call')} without known times: not among these")
    if crossing := int((calls["begins_before"] | calls["ends_after"]).sum()):
        cut = "time" if options.instructions is None else "instructions"
        note(options, f"{counted(crossing, 'call')} beyond the ends of --{cut}: not among these")
    report(trace, options, len(calls), _losses(calls))
    return 0


def _bins(found: CallHistogram) -> list[dict[str, int]]:
    columns = (found.limits[:-1], found.limits[1:], found.counts, found.totals)
    names = ("begin", "end", "count", "total")
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _print_bins(trace: Trace, calls: CallTable, found: CallHistogram, options: argparse.Namespace) -> None:
    """Print a line for each bin, with a bar for its calls."""
    by_time = found.unit != "instructions"
    in_ns = by_time and trace.open_parts.times.knows_seconds
    if in_ns:  # with limits that are round
        lengths, known = calls.lengths("time")
        ns = trace.open_parts.times.length_ns(lengths[known])
        found = histogram(ns, "ns", found.unknown, None)
    bins = _bins(found)
    total = max(sum(one["total"] for one in bins), 1)
    most = max((one["count"] for one in bins), default=1)
    unit = Durations(trace).unit if by_time else ""
    print_heading(
        options, f"{'from' + unit:>15} {'calls':>12} {'of all':>6}  {'time' if by_time else 'instructions'}"
    )
    for one in bins:
        begin = duration(one["begin"]) if in_ns else f"{one['begin']:,}"
        bar = "#" * -(-one["count"] * _BAR // most)
        print_painted(f"{begin:>15} {one['count']:12,} {one['total'] / total:6.1%}  ", (bar, "note"))


def _print_examples(trace: Trace, calls: Table, options: argparse.Namespace) -> None:
    """Print calls, each with the command that prints the calls inside."""
    durations = Durations(trace)
    names = ("id", "instructions", "tsc", "end_tsc")
    for number, instructions, begin, end in zip(*map(calls.named, names), strict=True):
        ticks = None if begin is None or end is None else max(end - begin, 0)
        print_text(f"call {number}: {instructions:,} instructions, {durations.text(ticks)}")
        print_text(f"  {call_command(options, number)}")


def _slow(trace: Trace, options: argparse.Namespace, chosen: dict[str, Any]) -> int:
    slow, fast = (_limit(trace, options, name) for name in ("slow_from", "fast_to"))
    streams = selection.chosen_streams(trace, options)
    with decoding(trace, streams=streams, passes=2):  # calls, and branches of some
        found = trace.compare(options.slow, slow=slow, fast=fast, by=options.of or "instructions", **chosen)
    parts = [found.functions, found.lines, found.edges, found.times]
    if options.json:
        rows = [_members(one) for part in parts for one in _bounded(part, options)]
        _print_json(trace, "call_differences", rows)
    else:
        _print_comparison(trace, found, options)
    report(trace, options, len(found.slow), _losses(found.slow))
    return 0


def _losses(calls: CallTable) -> Losses:
    losses = Losses()
    losses.count(calls)
    return losses


def _bounded(part: tuple[CallDifference, ...], options: argparse.Namespace) -> tuple[CallDifference, ...]:
    """Those that are printed: with more instructions, or ticks, in slow calls."""
    if options.all:
        return part
    return tuple(one for one in part if one.extra > 0)[: options.limit]


def _members(one: CallDifference) -> dict[str, Any]:
    names = ("kind", "name", "name_full", "extra", "slow", "fast", "slow_count", "fast_count")
    return {name: getattr(one, name) for name in (*names, "slow_example", "fast_example")}


def _print_comparison(trace: Trace, found: CallComparison, options: argparse.Namespace) -> None:
    durations, of = Durations(trace), found.by
    names = common.shown_names(options, found._full_names())
    function = names.get(found.function_full, found.function_full)
    slow_from, fast_to = (durations.length(limit, of) for limit in (found.slow_from, found.fast_to))
    from ptkit.analysis.slow_calls import chosen_text  # takes a while

    print_text(chosen_text(function, found.calls, len(found.slow), slow_from, len(found.fast), fast_to))
    if len(found.left_out):
        length = durations.length(int(found.left_out.lengths(of)[0][0]), of)
        print_text(
            f"left out: {counted(len(found.left_out), 'call')} of {length}, with which slow ones were more "
            "than their share (--slow-from)"
        )
    width = line_width(options)
    for part in (found.functions, found.lines, found.edges):
        shown = _bounded(part, options)
        if shown:
            print_text("")
            print_text(f"{'extra':>14} {'slow':>14} {'fast':>14} {'times':>17}  {_HEADINGS[shown[0].kind]}")
        for one in shown:
            times = f"{_mean(one.slow_count)} / {_mean(one.fast_count)}"
            line = f"{_mean(one.extra):>14} {_mean(one.slow):>14} {_mean(one.fast):>14} {times:>17}  "
            print_painted((line[:14], "hot"), line[14:], fit(one._with(names), len(line), width))
    _print_times(trace, found)
    _print_pair(trace, found, options)


def _mean(value: float) -> str:
    """A mean, with fractions where it is small."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.2f}"


def _print_times(trace: Trace, found: CallComparison) -> None:
    """Print a line for each kind of time that calls were away, and for gaps."""
    durations = Durations(trace)
    for one in found.times:
        if one.kind == "gap":
            print_text(f"{one.name}: {one.slow:.1%} of the slow ones, {one.fast:.1%} of the fast ones")
            continue
        slow, fast = (durations.text(round(value)) for value in (one.slow, one.fast))
        print_text(
            f"{one.name}: {slow}{durations.unit} in slow calls ({one.slow_count:.1%} have any), {fast} in "
            f"fast ones ({one.fast_count:.1%})"
        )


def _print_pair(trace: Trace, found: CallComparison, options: argparse.Namespace) -> None:
    """Print a slow and a fast call with the first difference."""
    first = found.functions[0] if found.functions else None
    for side, name in ((found.slow, "slow"), (found.fast, "fast")):
        number = None if first is None else getattr(first, f"{name}_example")
        print_text("")
        print_text(f"a {name} one:")
        _print_examples(trace, side[:1] if number is None else found.example(number), options)


def _print_json(trace: Trace, table: str, rows: list[dict[str, Any]]) -> None:
    JsonRows(trace, table).print_header()
    print_lines(json.dumps({"table": table, **row}).encode() for row in rows)
