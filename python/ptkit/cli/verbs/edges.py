"""``ptkit edges``: how often each branch went where."""

from __future__ import annotations

import argparse
import json

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit._core import BranchKind
from ptkit.cli import common, selection
from ptkit.cli.output.clock import print_heading
from ptkit.cli.output.json_rows import JsonRows
from ptkit.cli.output.line_writer import labels_of
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import print_lines, print_text
from ptkit.cli.parser import refuse_unused
from ptkit.cli.stacks import fit, line_width
from ptkit.table import Table
from ptkit.table.labels import Labels
from ptkit.trace import Trace

DESCRIPTION = """\
Prints one line per edge: how often a branch went from its address to its target, most frequent first. With
--by function or module, counts of all branches from one function, or file, to another are added up; branches
within it, too. An edge is of one address space; --by adds up those of all."""
EXAMPLES = """examples:
  ptkit edges sort.ptk --limit 10
  ptkit edges sort.ptk --by function --limit 20
  ptkit edges sort.ptk --by module
  ptkit edges sort.ptk --kind CALL_INDIRECT --module libc.so.6 --json"""

_OF_ADDRESSES = ("rva", "file_offsets", "no_symbols")
_UNKNOWN = "?" * 16


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    group = parser.add_argument_group("which branches", "Repeated options add up.")
    selection.add_choice_options(group)
    group.add_argument(
        "--kind",
        type=common.kind(BranchKind),
        action="append",
        metavar="KIND",
        help="branches of this kind only: CALL, RETURN, ...; may be repeated",
    )
    common.add_open_options(parser)
    selection.add_direction_options(parser)
    parser.add_argument(
        "--limit", metavar="N", type=common.number(first=1), help="print the N most frequent ones only"
    )
    parser.add_argument(
        "--by", choices=("function", "module"), help="add up counts from one function, or file, to another"
    )
    parser.add_argument("--no-symbols", action="store_true", help="print addresses without names")
    common.add_address_options(parser)
    common.add_header_option(parser)
    common.add_json_option(
        parser,
        'one JSON object on each line: a header, then edges; with --by, members "from", "to" and "count" '
        "(docs/json.md)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the edges, most frequent first."""
    if options.by is not None:
        refuse_unused(options, _OF_ADDRESSES, f"--by {options.by}", ", which has no addresses")
    if options.no_symbols:
        refuse_unused(options, ("names", "file_offsets"), "--no-symbols")
    trace = common.open_trace(options)
    losses = Losses()
    chosen = selection.selection(trace, options)
    with decoding(trace, streams=selection.chosen_streams(trace, options)):
        edges = losses.count(trace.edges(**chosen))
    if options.by is not None:
        _print_sums(trace, edges, options)
    else:
        first = np.argsort(edges["count"], kind="stable")[::-1][: options.limit]
        _print_edges(trace, edges[first], options)
    selection.report_no_rows(trace, options, len(edges))
    selection.report_index(trace, options, has_sums=True)
    losses.report(options.path)
    return 0


def _print_edges(trace: Trace, edges: Table, options: argparse.Namespace) -> None:
    if options.json:
        rows = JsonRows(trace, "edges", symbols=not options.no_symbols)
        rows.print_header()
        rows.print_lines(edges, [])
        return
    has_names = options.rva or not options.no_symbols
    names = "  names" if has_names else ""
    print_heading(options, f"{'count':>15}  {'from':<16}    {'to':<16}  {'kind':<13}{names}")
    writer = common.line_writer(trace, options, symbols=not options.no_symbols)
    if has_names and common.has_distinct_names(options):
        writer.show(common.shown_names(options, _functions(edges)))
    writer.begin(edges)
    writer.number("count", "decimal", width=15)
    writer.literal("  ")
    writer.number("from_ip", "hex16")
    writer.literal(" -> ")
    writer.number("to_ip", "hex16", unknown=_UNKNOWN)
    writer.literal("  ")
    writer.names_of("kind", labels_of("edges", "kind", lambda name: f"{name.lower():<13}"))
    if has_names:
        writer.names()
    writer.print()


def _functions(edges: Table) -> list[str]:
    """Full names of the functions at both ends."""
    ends = [edges._derived_values(f"{end}_symbol_full") for end in ("from", "to")]
    return [name for labels in ends if isinstance(labels, Labels) for name in labels.compact().names]


def _print_sums(trace: Trace, edges: Table, options: argparse.Namespace) -> None:
    """Print counts from name to name."""
    by_function = options.by == "function"
    names, sources, targets, counts = _sums(edges, by_function=by_function)
    first = np.argsort(counts, kind="stable")[::-1][: options.limit].tolist()
    rows = [(int(counts[i]), names[sources[i]], names[targets[i]]) for i in first]
    if options.json:
        JsonRows(trace, "edge_sums").print_header()
        print_lines(
            json.dumps({"table": "edge_sums", **_ends(source, target, by_function), "count": count}).encode()
            for count, source, target in rows
        )
        return
    print_heading(options, f"{'count':>15}  {options.by}s")
    width = line_width(options)
    shown = common.shown_names(options, [name for row in rows for name in row[1:]]) if by_function else {}
    for count, source, target in rows:
        ends = [shown.get(name, name) if name else "?" for name in (source, target)]
        line = f"{count:15}  "
        print_text(line + fit(" -> ".join(ends), len(line), width))


def _ends(source: str | None, target: str | None, has_both: bool) -> dict[str, str | None]:
    """Names of both ends; `has_both`: short and full ones."""
    if not has_both:
        return {"from": source, "to": target}
    short = [name and _core.short_names([name])[0] for name in (source, target)]
    return {"from": short[0], "from_full": source, "to": short[1], "to_full": target}


def _sums(
    edges: Table, *, by_function: bool
) -> tuple[list[str | None], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Names, and for each pair of them (as indices) the sum of the counts."""
    codes: dict[str | None, int] = {}
    ends = [
        np.array([codes.setdefault(name, len(codes)) for name in _names(edges, end, by_function)], np.int64)
        for end in ("from", "to")
    ]
    pairs, rows = np.unique(ends[0] * len(codes) + ends[1], return_inverse=True)
    counts = np.zeros(len(pairs), np.int64)
    np.add.at(counts, rows, edges["count"])
    width = max(len(codes), 1)
    return list(codes), pairs // width, pairs % width, counts


def _names(edges: Table, end: str, by_function: bool) -> list[str | None]:
    """The function of each row's end, or its file in brackets where it has none; or the file."""
    modules: list[str | None] = edges[f"{end}_module"].tolist()
    if not by_function:
        return modules
    symbols: list[str | None] = edges[f"{end}_symbol_full"].tolist()
    return [
        symbol if symbol is not None else module and f"[{module}]"
        for symbol, module in zip(symbols, modules, strict=True)
    ]
