"""``ptkit tree``: where the work went, by calling context."""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from ptkit.cli import common, selection
from ptkit.cli.call_reports import has_real_times
from ptkit.cli.output.clock import print_heading
from ptkit.cli.output.colours import print_painted, share_colour
from ptkit.cli.output.durations import Durations
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.parser import refuse_unused
from ptkit.cli.stacks import (
    add_frames_option,
    add_inlines,
    call_counts,
    entry_names,
    fit,
    indentation,
    line_width,
    note,
    print_sums_json,
    report,
    report_counts,
    shown_name,
)
from ptkit.decode.call_table import tree_columns
from ptkit.support.text import counted
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints one line per calling context, a function below all its callers: the share of the instructions that
it executed with what it called, and alone, and how often it was called. Callees stand indented below their
caller, the one with most instructions first. Contexts with a small share are left out. Where functions are
selected by name, address or file, others are left out: what these called stands below their callers. With
--time, what ran within it counts. With --callers, one function stands above its callers, and each line has
what that function did in calls by these callers. Call stacks are rebuilt from the branches
(docs/calls.md)."""
EXAMPLES = """examples:
  ptkit tree sort.ptk
  ptkit tree sort.ptk --min 0.1% --depth 12
  ptkit tree sort.ptk --limit 30
  ptkit tree sort.ptk --time 40%-50%
  ptkit tree sort.ptk --module sort
  ptkit tree sort.ptk --callers malloc
  ptkit tree sort.ptk --all --json"""

_LEAST = "1%"
_COLUMNS = ("function_full", "entry_ip", "entry_module_offset")  # beside those of `tree_columns`


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    group = parser.add_argument_group("which contexts", "Repeated options add up.")
    selection.add_choice_options(group)
    selection.add_whole_calls(group)
    common.add_open_options(parser)
    bound = parser.add_mutually_exclusive_group()
    bound.add_argument(
        "--min",
        metavar="SHARE",
        type=common.share,
        help="leave out contexts with less than this share of the instructions, or of those of the function "
        f"of --callers (default: {_LEAST[:-1]}%%; with --limit: none)",
    )
    bound.add_argument("--all", action="store_true", help="print contexts of any share")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=common.number(first=1),
        help="print the N contexts with most instructions",
    )
    parser.add_argument(
        "--depth", metavar="N", type=common.number(first=1), help="print N levels of callers and callees only"
    )
    parser.add_argument(
        "--callers",
        metavar="NAME",
        help="print the callers of a function, and theirs, below it: total and self are shares of what it "
        "executed; NAME as of --symbol; each function of a pattern has a tree of its own",
    )
    add_frames_option(parser)
    add_inlines(parser)
    common.add_names_option(parser)
    common.add_rva_option(parser)
    common.add_header_option(parser)
    common.add_json_option(parser, "one JSON object on each line: a header, then contexts (docs/json.md)")


def run(options: argparse.Namespace) -> int:
    """Print the contexts, callers before their callees."""
    if options.limit is not None:
        refuse_unused(options, ("all",), "--limit")
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    chosen |= {"frames": options.frames, "inlines": options.inlines, "columns": (*tree_columns(), *_COLUMNS)}
    with decoding(trace, streams=selection.chosen_streams(trace, options)):
        if options.callers is None:
            tree = trace.call_tree(**chosen)
        else:
            tree = trace.callers(options.callers, depth=options.depth, **chosen)
    wholes = _wholes(tree)
    kept = _kept(tree, wholes, options)
    shown = tree[kept]
    if options.json:
        print_sums_json(trace, shown)
    else:
        _print(trace, shown, np.maximum(wholes[kept], 1), options)
    if len(shown) < len(tree):
        note(options, f"{counted(len(tree) - len(shown), 'more context')}: {_remedy(options)}")
    losses = Losses()
    losses.count(tree)
    report(trace, options, len(tree), losses)
    report_counts(options, shown)
    native = options.frames == "native" and not options.inlines
    selection.report_index(trace, options, has_sums=native)
    return 0


def _remedy(options: argparse.Namespace) -> str:
    """How contexts that were left out are printed."""
    smaller = [] if options.limit is None else ["--limit N prints N"]
    if options.min is not None or (options.limit is None and not options.all):
        smaller += ["--min SHARE prints smaller ones, --all those of any share"]
    deeper = [] if options.depth is None else ["a larger --depth prints deeper ones"]
    return "; ".join(smaller + deeper)


def _wholes(tree: Table) -> NDArray[np.int64]:
    """Instructions that the shares of each row are of: all, or those of the function above its callers."""
    if tree.name == "call_tree":  # with what was called: callees may be left out
        return np.full(len(tree), tree["instructions"][~tree["parent_known"]].sum())
    functions = np.maximum.accumulate(np.where(tree["depth"] == 0, np.arange(len(tree)), 0))
    return np.asarray(tree["instructions"][functions])


def _kept(tree: Table, wholes: NDArray[np.int64], options: argparse.Namespace) -> NDArray[np.intp]:
    """Rows that are printed. A row has at least the instructions of those below it, so it is among them."""
    kept = np.ones(len(tree), np.bool_)
    amounts = np.asarray(tree["instructions"])
    least = options.min
    if least is None:
        least = 0 if options.all or options.limit is not None else common.share(_LEAST)
    kept &= amounts >= least * wholes
    if options.depth is not None and len(tree):
        depths = np.asarray(tree["depth"])
        kept &= depths - depths.min() < options.depth
    rows = np.flatnonzero(kept)
    if options.limit is None:
        return rows
    return np.sort(rows[np.argsort(-amounts[rows], kind="stable")[: options.limit]])


def _aligned(head: str, texts: list[str]) -> list[str]:
    """A column with its head, right-aligned."""
    wide = max(map(len, [head, *texts]))
    return [text.rjust(wide) for text in [head, *texts]]


def _print(trace: Trace, shown: Table, wholes: NDArray[np.int64], options: argparse.Namespace) -> None:
    """Print a line for each context, indented; `wholes`: what the shares of each are of."""
    width = line_width(options)
    cells = [_aligned(head, texts) for head, texts in (*_amounts(trace, shown), *call_counts(shown))]
    head, *counts = (" ".join(row) for row in zip(*cells, strict=True))
    subject = "function" if shown.name == "call_tree" else "function, called by"
    print_heading(options, f" total   self {head}  {subject}")
    first = int(shown["depth"].min()) if len(shown) else 0
    columns = (shown[name].tolist() for name in ("instructions", "self_instructions", "depth"))
    inlined = shown["is_inlined"].tolist()
    functions = common.function_names(options, shown)
    names = (
        entry_names(functions, shown)
        if options.rva
        else map(shown_name, functions, shown.named("module"), inlined)
    )
    for count, whole, total, own, depth, name in zip(counts, wholes.tolist(), *columns, names, strict=True):
        shares = [(f"{share:6.1%} ", share_colour(share)) for share in (total / whole, own / whole)]
        begin = f"{count}  "
        used = sum(len(text) for text, _ in shares)
        begin += indentation(depth - first, used + len(begin), width)
        print_painted(*shares, begin, fit(name, used + len(begin), width))


def _amounts(trace: Trace, shown: Table) -> list[tuple[str, list[str]]]:
    """With callers: instructions, and the least possible time if times are real."""
    if shown.name == "call_tree":
        return []
    columns = [("instructions", [f"{one:,}" for one in shown["instructions"].tolist()])]
    if has_real_times(trace):
        durations = Durations(trace)
        columns.append((f"least{durations.unit}", [durations.text(one) for one in shown.named("least")]))
    return columns
