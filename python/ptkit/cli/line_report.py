"""``ptkit functions --by line``: executions and instructions of source lines."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from ptkit.cli import common, selection
from ptkit.cli.output.clock import print_heading
from ptkit.cli.output.colours import print_painted, share_colour
from ptkit.cli.output.json_rows import JsonRows
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import print_lines
from ptkit.cli.stacks import fit, line_width, note, report, shown_name
from ptkit.support.text import counted, module_name
from ptkit.table import Table
from ptkit.trace import Trace

__all__ = ["print_line_report"]

_COLUMNS = ("function", "function_full", "module", "source", "line", "entry_ip", "count", "self_instructions")


def print_line_report(trace: Trace, options: argparse.Namespace, chosen: dict[str, Any]) -> int:
    """Print the lines with most instructions, or in the order that was asked for."""
    streams = selection.chosen_streams(trace, options)
    with decoding(trace, streams=streams):
        lines = trace.functions("line", columns=_COLUMNS, **chosen)
    if options.sort == "calls":
        lines = lines[np.argsort(~lines["count"], kind="stable")]
    elif options.sort == "name":
        order = sorted(range(len(lines)), key=lambda row: _sort_key(lines, row))
        lines = lines[np.array(order, np.intp)]
    shown = lines if options.all else lines[: options.limit]
    if options.json:
        _print_json(trace, shown)
    else:
        _print(lines, shown, options)
    if len(shown) < len(lines):
        more = counted(len(lines) - len(shown), "more line")
        note(options, f"{more}: --all prints them, --limit N the first N")
    losses = Losses()
    losses.count(lines)
    report(trace, options, len(lines), losses)
    return 0


def _sort_key(lines: Table, row: int) -> tuple[str, int, str]:
    """Sort key of a line: its number in the source, or the function."""
    source, function = lines["source"][row], lines["function"][row]
    return source or "", int(lines["line"][row]), function or ""


def _print(lines: Table, shown: Table, options: argparse.Namespace) -> None:
    """Print a line for each source line."""
    total = max(int(lines["self_instructions"].sum()), 1)
    own, counts = shown["self_instructions"].tolist(), shown["count"].tolist()
    cells = [
        [f"{work / total:.1%}" for work in own],
        *([f"{one:,}" for one in some] for some in (own, counts)),
    ]
    heads = ["self", "instructions", "times"]
    widths = [max(map(len, [head, *column])) for head, column in zip(heads, cells, strict=True)]
    print_heading(options, f"{' '.join(map(str.rjust, heads, widths))}  source line and function")
    used, width = sum(widths) + len(widths) + 1, line_width(options)
    for row, name in enumerate(_names(shown, options)):
        texts = [f"{column[row]:>{wide}} " for column, wide in zip(cells, widths, strict=True)]
        print_painted((texts[0], share_colour(own[row] / total)), *texts[1:], f" {fit(name, used, width)}")


def _names(shown: Table, options: argparse.Namespace) -> list[str]:
    """Where a row is: file, line and function; the function alone without a line."""
    columns = (shown[name].tolist() for name in ("source", "line", "module"))
    return [
        shown_name(function, module)
        if source is None
        else f"{module_name(source)}:{line}  {shown_name(function, module)}"
        for source, line, module, function in zip(
            *columns, common.function_names(options, shown), strict=True
        )
    ]


def _print_json(trace: Trace, shown: Table) -> None:
    JsonRows(trace, "source_lines").print_header()
    columns = {name: shown.named(name) for name in _COLUMNS}
    rows = (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
    print_lines(
        json.dumps({"table": "source_lines", **row, "entry_ip": f"{row['entry_ip']:#x}"}).encode()
        for row in rows
    )
