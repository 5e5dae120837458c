"""Output of ``ptkit calls --anomalies``: returns and jumps that fit no open frame."""

from __future__ import annotations

import argparse
from typing import Any

from ptkit._core import StackAnomaly
from ptkit.cli import common, selection
from ptkit.cli.output.clock import Clock, print_heading
from ptkit.cli.output.json_rows import JsonRows
from ptkit.cli.output.line_writer import LineWriter
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import print_text
from ptkit.cli.stacks import address_names, fit, line_width, note
from ptkit.support.text import counted
from ptkit.table import Table
from ptkit.trace import Trace

__all__ = ["print_anomalies"]

_COLUMNS = ["id", "tsc"]  # of the frames, which are not printed
_NO_CALL = "*"  # marks targets of returns that are no return addresses


def print_anomalies(trace: Trace, options: argparse.Namespace, chosen: dict[str, Any], losses: Losses) -> int:
    """Print a line for each anomaly, stream by stream, up to the limit; how many there are."""
    with decoding(trace, streams=selection.chosen_streams(trace, options)):
        frames, anomalies = trace.calls_and_anomalies(**{**chosen, "columns": _COLUMNS})
    losses.count(frames)
    shown = anomalies if options.all else anomalies[: options.limit]
    if options.json:
        form = JsonRows(trace, "stack_anomalies")
        form.print_header()
        form.print_lines(shown, [])
    elif len(shown):
        _print(trace, shown, options)
    elif not chosen:
        note(options, "no anomalies: each return went to the return address of an open call")
    if len(shown) < len(anomalies):
        more = counted(len(anomalies) - len(shown), "more anomaly", "more anomalies")
        note(options, f"{more}: --limit N prints N, --all all")
    return len(anomalies)


def _print(trace: Trace, shown: Table, options: argparse.Namespace) -> None:
    heads, cells = [], []
    if len(trace.streams) > 1:
        heads, cells = ["stream"], [list(map(str, shown["stream"].tolist()))]
    names = "rva and symbol" if options.rva else "symbol"
    clock, writer = Clock(trace, None), LineWriter(trace, names, short=common.has_short_names(options))
    writer.begin(shown)
    if trace.open_parts.times.span is None:
        heads.append("instruction")
        writer.number("instruction", "decimal")
    else:
        heads.append(clock.heading)
        clock.add(writer, shown)
    cells.append([line.decode() for line in writer.lines()])
    heads.append("tid")
    cells.append(["-" if tid is None else str(tid) for tid in shown.named("tid")])
    widths = [max(map(len, [head, *column])) for head, column in zip(heads, cells, strict=True)]
    no_call = shown["no_call_before"].tolist()
    kinds = [
        StackAnomaly(kind).name.lower().replace("_", " ") + _NO_CALL * mark
        for kind, mark in zip(shown["kind"].tolist(), no_call, strict=True)
    ]
    wide = max(map(len, ["kind", *kinds]))
    heads_text = " ".join(map(str.rjust, heads, widths))
    marked = f" ({_NO_CALL}: no call before it)" if any(no_call) else ""
    print_heading(options, f"{heads_text}  {'kind':<{wide}}  from -> to{marked}, expected")
    from_to = [address_names(shown, writer, name) for name in ("from_ip", "to_ip", "expected_ip")]
    width = line_width(options)
    for row, (kind, came, went, expected) in enumerate(zip(kinds, *from_to, strict=True)):
        begin = " ".join(column[row].rjust(size) for column, size in zip(cells, widths, strict=True))
        begin += f"  {kind:<{wide}}  "
        text = f"{came or '-'} -> {went}" + (f", expected {expected}" if expected else "")
        print_text(begin + fit(text, len(begin), width))
