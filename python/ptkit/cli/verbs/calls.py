"""``ptkit calls``: the tree of calls, in the manner of a function-graph tracer."""

from __future__ import annotations

import argparse
from typing import Any

from ptkit.cli import common, selection
from ptkit.cli.anomalies import print_anomalies
from ptkit.cli.call_lines import CallLines
from ptkit.cli.calls_around_time import print_around
from ptkit.cli.frames import (
    FRAME_COLUMNS,
    Window,
    first_frames,
    frame_names,
    frames_of_call,
    slowest_frames,
)
from ptkit.cli.outer_frames import OUTER
from ptkit.cli.output.clock import Heading, print_heading
from ptkit.cli.output.durations import Durations
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import print_text
from ptkit.cli.parser import refuse_unused
from ptkit.cli.stacks import (
    add_bound,
    add_frames_option,
    add_inlines,
    call_command,
    fit,
    line_width,
    note,
    report,
)
from ptkit.errors import ConfigError
from ptkit.support.text import counted
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints calls in the order of entry, callees indented below their caller: duration, instructions, name. Calls
in a row that did the same are one line, "x 37", with the sums of all. A comment says how a call began or
ended unless that was a call and a return. With --time, calls are what they did within it. With a selection by
name, address or file, those calls and what is below them are printed; with --id, one call and what it called.
With --around, what each thread was in at that time stands side by side, and what it called and left around
it; "~": the line of another thread may have come first. With --anomalies, returns and jumps that fit no open
call are printed instead. Call stacks are rebuilt from the branches (docs/calls.md)."""
EXAMPLES = """examples:
  ptkit calls sort.ptk --depth 8
  ptkit calls sort.ptk --symbol qsort --limit 50
  ptkit calls sort.ptk --slowest 10 --symbol malloc
  ptkit calls sort.ptk --id 100 --depth 3
  ptkit calls sort.ptk --around 50% --window 10us
  ptkit calls sort.ptk --anomalies
  ptkit calls sort.ptk --limit 1000 --json"""

_LIMIT = 200
_OTHER_CALLS = (*OUTER, "slowest", "around", "anomalies")  # than one by its number
_WAYS = ("inlines", "frames", "whole_calls")  # of frames


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    group = parser.add_argument_group("which calls", "Repeated options add up.")
    selection.add_choice_options(group)
    selection.add_whole_calls(group)
    common.add_open_options(parser)
    all_text = "print all calls: their number decides the memory"
    add_bound(parser, _LIMIT, "print N calls at most (default: {})", all_text)
    add_frames_option(parser)
    add_inlines(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--depth", metavar="N", type=common.number(first=1), help="print N levels of calls only"
    )
    form.add_argument(
        "--slowest",
        metavar="N",
        type=common.number(2**20, 1),
        help="print the N calls with most instructions instead, and the commands that print what they called",
    )
    form.add_argument(
        "--around",
        metavar="TIME",
        type=selection.moment,
        help="print the open functions of each thread at a time side by side, and the calls around it: s, "
        "ms, us or ns from the start of the trace, %% of its span, or TSC ticks",
    )
    form.add_argument(
        "--anomalies",
        action="store_true",
        help="print returns that go to no return address, and what else fits no open call, instead: time, "
        "thread, kind, where control came from and went, and the return address of the call",
    )
    parser.add_argument(
        "--id",
        metavar="N",
        type=common.number(2**63 - 1),
        help="print one call and what it called; N is its id in trace.calls() of the streams and threads "
        "that are chosen, and with --stream that of --json",
    )
    parser.add_argument(
        "--clock",
        choices=("monotonic", "realtime"),
        help="with --around: TIME is of CLOCK_MONOTONIC or CLOCK_REALTIME, as in a log: 81234.567890s, or a "
        "number of nanoseconds",
    )
    parser.add_argument(
        "--window",
        metavar="LENGTH",
        type=selection.moment,
        help="with --around: calls up to so long before and after it (default: 1us)",
    )
    common.add_names_option(parser)
    common.add_rva_option(parser)
    common.add_header_option(parser)
    common.add_json_option(
        parser, "one JSON object on each line: a header, then calls, none folded (docs/json.md)"
    )


def run(options: argparse.Namespace) -> int:
    """Print the calls stream by stream, or the slowest of all."""
    if options.window is not None and options.around is None:
        raise ConfigError("--window goes with --around TIME")
    if options.clock is not None and options.around is None:
        raise ConfigError("--clock goes with --around TIME")
    if options.around is not None:
        refuse_unused(options, (*_WAYS, *OUTER, "time", "instructions", "space", "cr3"), "--around")
    if options.anomalies:
        refuse_unused(options, _WAYS, "--anomalies")
    if options.slowest is not None:
        refuse_unused(options, ("limit", "all"), "--slowest", ", which gives the number")
    if options.id is not None:
        given = [name for name in _OTHER_CALLS if name in options.given_options]
        if given:
            raise ConfigError(f"--id does not go with --{given[0]}: it is one call, and what it called")
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    if options.inlines:
        chosen["inlines"] = True
    if options.frames != "native":
        chosen["frames"] = options.frames
    losses = Losses()
    if options.around is not None:
        report(trace, options, print_around(trace, options, chosen, losses), losses)
        return 0
    if options.anomalies:
        report(trace, options, print_anomalies(trace, options, chosen, losses), losses, times=False)
        return 0
    if options.json:
        columns = json_columns("calls")
        form = JsonRows(trace, "calls")
        form.print_header()
    else:
        columns = FRAME_COLUMNS
    if options.slowest is not None:
        frames = slowest_frames(trace, options.slowest, columns, chosen, losses)
        if options.json:
            form.print_lines(frames, [])
        else:
            _print_slowest(trace, frames, options)
        report(trace, options, len(frames), losses)
        return 0
    rows = _print_streams(trace, options, columns, chosen, form if options.json else None, losses)
    report(trace, options, rows, losses)
    return 0


def _print_streams(
    trace: Trace,
    options: argparse.Namespace,
    columns: list[str],
    chosen: dict[str, Any],
    form: JsonRows | None,
    losses: Losses,
) -> int:
    """Print the calls of one stream after the other, until the limit; how many there are."""
    left = None if options.all else options.limit
    lines = CallLines(Durations(trace), line_width(options))
    rows = 0
    how = {"depth": options.depth, "folds": form is None, "losses": losses}
    if options.id is None:
        streams = selection.chosen_streams(trace, options)
    else:
        stream, call = frames_of_call(trace, options.id, left, columns, chosen, **how)
        streams = [stream]
    heading = Heading(options, lines.heading)
    for index, stream in enumerate(streams):
        here = chosen | {"stream": stream}
        window = call if options.id is not None else first_frames(trace, left, columns, here, **how)
        rows += window.count
        if not window.count:
            continue
        if form is not None:
            shown = window.frames if left is None else window.frames[:left]
            form.print_lines(shown, [])
            printed, covered = len(shown), len(shown)
        else:
            heading.print()
            selection.print_stream_heading(trace, stream)
            printed, covered = lines.print(window.frames, frame_names(window.frames, options), left)
        if left is not None:
            left -= printed
            if _is_cut(options, window, covered, len(streams) - index - 1, done=left == 0):
                break
    return rows


def _is_cut(options: argparse.Namespace, window: Window, covered: int, streams: int, *, done: bool) -> bool:
    """Say what the limit has left out; whether it is reached."""
    left_out = window.count - covered
    if left_out or (done and streams):
        parts = [counted(left_out, "more call")] if left_out else []
        parts += [] if window.counted else ["others after them"]
        parts += [counted(streams, "more stream")] if streams else []
        note(options, f"{' and '.join(parts)}: --limit N prints N calls, --all all, --depth N fewer levels")
    return bool(left_out) or done


def _print_slowest(trace: Trace, frames: Table, options: argparse.Namespace) -> None:
    """Print a line for each call, and below it the command that prints what it called."""
    durations, width = Durations(trace), line_width(options)
    print_heading(
        options,
        f"{'instructions':>14} {'duration' + durations.unit:>12}  {'tid':>7}  function, and what it called",
    )
    names = ("id", "instructions", "tsc", "end_tsc", "stream", "tid")
    for number, instructions, begin, end, stream, tid, name in zip(
        *map(frames.named, names), frame_names(frames, options), strict=True
    ):
        ticks = None if begin is None or end is None else max(end - begin, 0)
        line = f"{instructions:14,} {durations.text(ticks):>12}  {'-' if tid is None else tid:>7}  "
        print_text(f"{line}{fit(name, len(line), width)}")
        print_text(f"{'':>14} {'':>12}  {call_command(options, number, stream)}")
