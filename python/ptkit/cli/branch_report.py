"""How branches behave, as lines of text and of JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptkit.cli import common, selection
from ptkit.cli.output.clock import print_heading
from ptkit.cli.output.json_rows import NAMED, JsonRows
from ptkit.cli.output.json_values import form_of, hexadecimal
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import line_of, print_lines
from ptkit.cli.stacks import fit, line_width, note
from ptkit.support.text import counted
from ptkit.table import Table
from ptkit.trace import Trace

__all__ = ["REPORTS", "print_branch_report"]

#: Attributes of the options, and what they print.
REPORTS = ("stats", "targets", "loops", "paths")
_COLUMNS = {
    "branch_stats": (
        ("count", "times"),
        *((name, name) for name in ("taken", "runs")),
        *(("longest_taken", "longest"), ("longest_not_taken", "longest not")),
        *(("run_entropy", "bits/run"), ("targets", "targets"), ("entropy", "bits/time")),
    ),
    "indirect_targets": (("count", "times"), ("share", "share")),
    "loop_paths": (("rounds", "rounds"), ("exits", "exits"), ("share", "share")),
    "loops": (
        *(("count", "times"), ("visits", "visits"), ("cut_visits", "cut")),
        *((name, name) for name in ("least", "p50", "p99", "most")),
    ),
}
_ADDRESSES = {
    "branch_stats": ("from_ip",),
    "indirect_targets": ("from_ip", "to_ip"),
    "loop_paths": ("head_ip",),
    "loops": ("head_ip",),
}
_NOUNS = {"branch_stats": "branch", "indirect_targets": "target", "loop_paths": "path", "loops": "loop"}
_NAMES = ("symbol", "symbol_full", "symbol_offset", "module", "module_offset")


def print_branch_report(trace: Trace, options: argparse.Namespace) -> int:
    """Print what one of `REPORTS` asks for, most frequent first."""
    chosen = selection.selection(trace, options)
    losses = Losses()
    passes = 1 if options.stats or options.targets else 2
    with decoding(trace, streams=selection.chosen_streams(trace, options), passes=passes):
        table = losses.count(_read(trace, options, chosen))
    shown = table[: options.limit]
    if options.json:
        rows = JsonRows(trace, table.name)
        rows.print_header()
        print_lines(json.dumps(row).encode() for row in json_rows(shown))
    else:
        _print(trace, shown, options)
    if len(shown) < len(table):
        more = len(table) - len(shown)
        note(
            options,
            f"{counted(more, f'more {_NOUNS[table.name]}', f'more {_plural(table.name)}')}: see --limit",
        )
    selection.report_no_rows(trace, options, len(table))
    losses.report(options.path)
    return 0


def _plural(name: str) -> str:
    return "branches" if name == "branch_stats" else f"{_NOUNS[name]}s"


def _read(trace: Trace, options: argparse.Namespace, chosen: dict[str, Any]) -> Table:
    if options.loops:
        return trace.loops(**chosen)
    if options.paths:
        return trace.loop_paths(**chosen)
    if options.stats:
        table = trace.branch_stats(**chosen)
        return table[np.argsort(-np.asarray(table["count"]), kind="stable")]
    table = trace.indirect_targets(**chosen)
    branch = np.stack([np.asarray(table["space"]).astype(np.uint64), np.asarray(table["from_ip"])])
    _, number = np.unique(branch, axis=1, return_inverse=True)
    number = number.reshape(-1)
    total = np.bincount(number, np.asarray(table["count"]))
    return table[np.lexsort((number, -total[number]))]


def _cells(table: Table, name: str) -> list[str]:
    form = {"share": "{:.1%}"}.get(name, "{:.3f}" if table.column(name).dtype == np.float64 else "{:,}")
    return ["-" if value is None else form.format(value) for value in table.named(name)]


def _locations(trace: Trace, table: Table, address: str, options: argparse.Namespace) -> list[str]:
    """Where addresses are: function, offset and source line, else file and RVA, else the address."""
    ips, spaces = table[address], table["space"]
    texts = trace.symbolize(ips, space=spaces, modules=True, lines=address != "to_ip")
    symbol = address.removesuffix("ip") + "symbol_full"
    full = table.named(symbol) if table._can_make(symbol) else [None] * len(table)
    short = common.shown_names(options, full)
    found = []
    for text, name, ip in zip(texts, full, table.named(address), strict=True):
        if ip is None:
            found.append(name or "?")
        elif name is not None and text is not None and text.startswith(name):
            found.append(short.get(name, name) + text[len(name) :])
        else:
            found.append(text or f"{ip:#x}")
    return found


def _print(trace: Trace, table: Table, options: argparse.Namespace) -> None:
    """Print a line for each row: numbers, then where it is."""
    heads = [head for _, head in _COLUMNS[table.name]]
    cells = [_cells(table, name) for name, _ in _COLUMNS[table.name]]
    locations = [" -> ".join(ends) for ends in zip(*_ends(trace, table, options), strict=True)]
    if table.name == "loops":
        locations = [
            f"{'  ' * (depth - 1)}{location}"
            for depth, location in zip(table["depth"].tolist(), locations, strict=True)
        ]
    widths = [max(map(len, [head, *column])) for head, column in zip(heads, cells, strict=True)]
    used, width = sum(widths) + len(widths) + 1, line_width(options)
    print_heading(options, f"{' '.join(map(str.rjust, heads, widths))}  {_NOUNS[table.name]}")
    print_lines(
        line_of(f"{' '.join(map(str.rjust, row, widths))}  {fit(location, used, width)}")
        for *row, location in zip(*cells, locations, strict=True)
    )


def _ends(trace: Trace, table: Table, options: argparse.Namespace) -> list[list[str]]:
    ends = [_locations(trace, table, address, options) for address in _ADDRESSES[table.name]]
    if table.name == "loop_paths":
        return [[f"{head}: {path}" for head, path in zip(ends[0], table.named("path"), strict=True)]]
    if table.name == "indirect_targets":
        rest = zip(table["is_rest"].tolist(), table["targets"].tolist(), ends[1], strict=True)
        ends[1] = [f"{counted(number, 'other target')}" if is_rest else end for is_rest, number, end in rest]
    return ends


def json_rows(table: Table) -> list[dict[str, Any]]:
    """Rows as objects."""
    columns: dict[str, Sequence[Any]] = {}
    flags = [column for column in table.data.schema.columns.values() if column.role == "flag"]
    for name in table.data.schema.names("stored"):
        values = table.named(name)
        if name == "flags":
            values = [[one.name for one in flags if one.mask & value] for value in values]
        elif form_of(table.column(name)) == "hexadecimal":
            values = [hexadecimal(value) for value in values]
        columns[name] = values
    for name in ("path", "source"):
        if table._can_make(name):
            columns[name] = table.named(name)
    for address in NAMED & columns.keys():
        for kind in _NAMES:
            if table._can_make(one := address.removesuffix("ip") + kind):
                columns[one] = table.named(one)
    rows = zip(*columns.values(), strict=True)
    return [{"table": table.name, **dict(zip(columns, row, strict=True))} for row in rows]
