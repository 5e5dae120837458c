"""``ptkit threads``: how long threads ran, and where they waited."""

from __future__ import annotations

import argparse
import json
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ptkit.cli import common, selection
from ptkit.cli.output.clock import print_heading
from ptkit.cli.output.durations import Durations
from ptkit.cli.output.json_rows import JsonRows
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import print_text
from ptkit.cli.stacks import add_bound, address_names, fit, line_width, note, report
from ptkit.support.text import counted, shortened
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints one line per thread: instructions, how long it ran, how long and how often it was switched out as it
could not go on (waiting) and otherwise (preempted), by the recorded context switches. Where none are
recorded, running is the time in traced code, and untraced the time in which packets were disabled, in system
calls for the most part. With --waits, the sites where it waited stand below it: the system call, and the
call from another file that led there (docs/calls.md)."""
EXAMPLES = """examples:
  ptkit threads sort.ptk
  ptkit threads sort.ptk --waits
  ptkit threads sort.ptk --waits --all --json"""

_LIMIT = 20
_SITES = 5  # of each thread


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    group = parser.add_argument_group("which threads", "Repeated options add up.")
    selection.add_owner_options(group)
    common.add_open_options(parser)
    add_bound(parser, _LIMIT, "print N threads at most (default: {})", "print all threads, and all sites")
    parser.add_argument(
        "--waits",
        action="store_true",
        help=f"print below each thread the {_SITES} sites where it waited longest",
    )
    common.add_address_options(parser)
    common.add_header_option(parser)
    common.add_json_option(
        parser, "one JSON object on each line: a header, then threads, or waits (docs/json.md)"
    )


def run(options: argparse.Namespace) -> int:
    """Print the threads, those that ran longest first."""
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    with decoding(trace, streams=selection.chosen_streams(trace, options)):
        threads, waits = trace.threads_and_waits(**chosen)
    shown = threads if options.all else threads[: options.limit]
    if options.json:
        rows = waits[_of_threads(waits, shown)] if options.waits else shown
        form = JsonRows(trace, rows.name)
        form.print_header()
        form.print_lines(rows, [], None if options.waits else partial(_add_names, trace, rows))
    else:
        _print(trace, shown, waits, options)
    if len(shown) < len(threads):
        note(options, f"{counted(len(threads) - len(shown), 'more thread')}: --limit N prints N, --all all")
    _print_unknowns(options, threads)
    losses = Losses()
    losses.count(threads)
    report(trace, options, len(threads), losses)
    return 0


def _of_threads(waits: Table, threads: Table) -> NDArray[np.bool_]:
    """Which waits are of threads that are printed."""
    printed = set(zip(threads["pid"].tolist(), threads["tid"].tolist(), strict=True))
    owners = zip(waits["pid"].tolist(), waits["tid"].tolist(), strict=True)
    return np.array([owner in printed for owner in owners], np.bool_)


def _names(trace: Trace, threads: Table) -> list[str | None]:
    names = {tid: name for _, tid, name in trace.info.threads if tid is not None}
    return [names.get(tid) or None for tid in threads.named("tid")]


def _add_names(trace: Trace, threads: Table, writer: LineWriter) -> None:
    writer.literal(', "name": ')
    writer.texts([json.dumps(name).encode() for name in _names(trace, threads)])


def _print_unknowns(options: argparse.Namespace, threads: Table) -> None:
    if not len(threads):
        return
    if not threads["time_known"].all():
        note(options, "-: the trace has no times")
    elif not threads["switches_known"].all():
        some = " of some threads" if threads["switches_known"].any() else ""
        text = f"no times of context switches{some} are recorded: untraced has waits and work of the kernel"
        note(options, text)
    if threads["incomplete"].any():
        note(options, "~: data was lost: times and numbers are not exact")


def _print(trace: Trace, shown: Table, waits: Table, options: argparse.Namespace) -> None:
    durations = Durations(trace)
    heads = ["tid", "instructions", *(f"{name}{durations.unit}" for name in ("running", "untraced"))]
    heads += [f"waiting{durations.unit}", "waits", f"preempted{durations.unit}", "times"]
    lost = ["~" if one else "" for one in shown["incomplete"].tolist()]

    def times(name: str) -> list[str]:
        cells = [durations.text(one) for one in shown.named(name)]
        return [cell if cell == "-" else mark + cell for mark, cell in zip(lost, cells, strict=True)]

    def numbers(name: str) -> list[str]:
        cells = zip(lost, shown.named(name), strict=True)
        return ["-" if one is None else f"{mark}{one:,}" for mark, one in cells]

    tids = ["-" if tid is None else str(tid) for tid in shown.named("tid")]
    cells = [tids, numbers("instructions"), times("running"), times("untraced"), times("waiting")]
    cells += [numbers("waits"), times("preempted"), numbers("preemptions")]
    # Of waits and untraced time, one is known of all threads in most recordings.
    kept = [at for at, column in enumerate(cells) if at < 3 or set(column) != {"-"}]
    widths = [max(map(len, [heads[at], *cells[at]])) for at in kept]
    print_heading(
        options, f"{' '.join(heads[at].rjust(wide) for at, wide in zip(kept, widths, strict=True))}  name"
    )
    width = line_width(options)
    for row, name in enumerate(_names(trace, shown)):
        begin = " ".join(cells[at][row].rjust(wide) for at, wide in zip(kept, widths, strict=True)) + "  "
        print_text(f"{begin}{fit(shortened(name or '-'), len(begin), width)}")
        if options.waits:
            own = waits[_of_threads(waits, shown[row : row + 1])]
            _print_waits(trace, own if options.all else own[:_SITES], lost[row], durations, options)


def _print_waits(
    trace: Trace, own: Table, mark: str, durations: Durations, options: argparse.Namespace
) -> None:
    writer, width = common.line_writer(trace, options), line_width(options)
    sites, callers = address_names(own, writer, "ip"), address_names(own, writer, "caller_ip")
    lengths = [durations.text(one) for one in own.named("length")]
    marks = [" (preempted)" if one else "" for one in own["is_preempted"].tolist()]
    for length, count, site, caller, preempted in zip(
        lengths, own["count"].tolist(), sites, callers, marks, strict=True
    ):
        begin = f"{mark + length:>16} {count:>9,} x  "
        location = site or "in no system call"
        text = f"{location} < {caller}" if caller else location
        print_text(begin + fit(text, len(begin) + len(preempted), width) + preempted)
