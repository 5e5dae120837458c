"""``ptkit functions``: where the work went, by function."""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from ptkit.cli import common, selection
from ptkit.cli.call_reports import (
    add_call_options,
    add_measure,
    check_call_options,
    measure_of,
    print_call_report,
)
from ptkit.cli.line_report import print_line_report
from ptkit.cli.output.clock import print_heading
from ptkit.cli.output.colours import print_painted, share_colour
from ptkit.cli.output.durations import Durations
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.parser import refuse_unused
from ptkit.cli.stacks import (
    add_bound,
    add_frames_option,
    add_inlines,
    call_counts,
    entry_names,
    fit,
    line_width,
    note,
    print_sums_json,
    report,
    report_counts,
    shown_name,
)
from ptkit.errors import ConfigError
from ptkit.support.schema import schema_of
from ptkit.support.text import counted
from ptkit.table import Table
from ptkit.trace import Trace

DESCRIPTION = """\
Prints one line per function: how many of the instructions it executed itself, and with what it called; how
often it was called (unseen: frames of which the begin is not in the trace); the median, 99th percentile and
maximum of its calls, in time, or in instructions where times are an emulator's (--of). Call stacks are
rebuilt from the branches (docs/calls.md). Where functions are selected by name, address, file or time,
instructions are numbers instead of shares. With --time, what ran within it counts (crossing: calls that go on
beyond it, which percentiles leave out)."""
EXAMPLES = """examples:
  ptkit functions sort.ptk
  ptkit functions sort.ptk --sort calls --limit 50
  ptkit functions sort.ptk --sort p99 --of instructions
  ptkit functions sort.ptk --by module
  ptkit functions sort.ptk --by line --limit 50
  ptkit functions sort.ptk --instructions 1000-50000
  ptkit functions sort.ptk --inlines
  ptkit functions sort.ptk --imports
  ptkit functions sort.ptk --histogram malloc
  ptkit functions sort.ptk --slow malloc --limit 5
  ptkit functions sort.ptk --symbol 'mem*' --all --json"""

_LIMIT = 20
# By the headings of columns.
_SORTS = {
    "self": "self_instructions",
    "total": "instructions",
    "calls": "count",
    "unseen": "begin_unseen",
    "p50": "p50",
    "p99": "p99",
    "max": "max",
    "name": "function",
}
# Names of columns, and a heading of --by line.
_OTHER_SORTS = {"instructions": "total", "count": "calls", "times": "calls"}
_LENGTHS = ("p50", "p99", "max")
# Selections after which the sum of what is printed is not all that the streams executed.
_NARROWING = ("ip", "symbol", "module", "time", "instructions")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    group = parser.add_argument_group("which calls", "Repeated options add up.")
    selection.add_choice_options(group)
    selection.add_whole_calls(group)
    common.add_open_options(parser)
    add_bound(parser, _LIMIT, "print the first N functions only (default: {})", "print all functions")
    parser.add_argument(
        "--sort",
        type=lambda name: _OTHER_SORTS.get(name, name),
        choices=tuple(_SORTS),
        help="what comes first (default: self; with --imports: calls)",
    )
    parser.add_argument(
        "--by",
        choices=("function", "entry", "module", "line"),
        default="function",
        help="what a line stands for: a function (default), its address in an address space, a file, or a "
        "line of source code (docs/source-lines.md)",
    )
    add_frames_option(parser)
    parser.add_argument(
        "--tails",
        choices=("nested", "replaced"),
        default="nested",
        help="a function that ends by a jump to another one is below it until that one returns (nested, the "
        "default), or ends at the jump (replaced)",
    )
    add_inlines(parser)
    parser.add_argument(
        "--imports",
        action="store_true",
        help="imported functions of which the code is not traced only, those that were called most first",
    )
    add_measure(parser)
    add_call_options(parser)
    common.add_names_option(parser)
    common.add_rva_option(parser)
    common.add_header_option(parser)
    common.add_json_option(parser, "one JSON object on each line: a header, then functions (docs/json.md)")


def run(options: argparse.Namespace) -> int:
    """Print the functions in the chosen order."""
    _check(options)
    trace = common.open_trace(options)
    chosen = selection.selection(trace, options)
    if options.histogram is not None or options.slow is not None:
        return print_call_report(trace, options, chosen)
    if options.by == "line":
        return print_line_report(trace, options, chosen)
    with decoding(trace, streams=selection.chosen_streams(trace, options)):
        columns = _columns(options.by, options.inlines)
        functions = trace.functions(
            options.by,
            frames=options.frames,
            tails=options.tails,
            inlines=options.inlines,
            imports=options.imports,
            columns=columns,
            **chosen,
        )
    if options.imports and options.sort is None:
        options.sort = "calls"
    of = measure_of(trace, options)
    order = _order(functions, options, of)
    shown = functions[order if options.all else order[: options.limit]]
    if options.json:
        print_sums_json(trace, shown)
    else:
        _print(trace, functions, shown, options, of)
    if len(shown) < len(functions):
        more = counted(len(functions) - len(shown), "more line")
        note(options, f"{more}: --all prints them, --limit N the first N")
    losses = Losses()
    losses.count(functions)
    report(trace, options, len(functions), losses, times=options.json or of == "time")
    report_counts(options, shown)
    native = options.frames == "native" and not options.inlines and options.tails == "nested"
    selection.report_index(trace, options, has_sums=native)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options that say nothing of what is printed."""
    check_call_options(options)
    if options.by == "line":
        no_calls = ", as lines have no calls"
        refuse_unused(options, ("whole_calls", "tails", "frames", "of"), "--by line", no_calls)
        if options.sort in ("p50", "p99", "max", "unseen"):
            raise ConfigError(f"--sort {options.sort} does not go with --by line{no_calls}")
    if options.by in ("module", "line"):
        refuse_unused(options, ("rva", "imports"), f"--by {options.by}")
    if options.by == "line":
        refuse_unused(options, ("inlines",), "--by line", ", which has the lines of inlined functions")


def _columns(by: str, inlines: bool) -> list[str]:
    """All columns that a line may need; a file has no entry."""
    of_functions = {"entry_ip", "space", "code_tsc", "file", "import_ip", "inline_level"}
    left_out = of_functions if by == "module" else set()
    if not inlines:
        left_out.add("inline_level")
    stored = [name for name in schema_of("functions").names("stored") if name not in left_out]
    return ["module", *stored] if by == "module" else ["function", "function_full", "module", *stored]


def _length_column(name: str, of: str) -> str:
    return name if of == "time" else f"{name}_instructions"


def _order(functions: Table, options: argparse.Namespace, of: str) -> NDArray[np.intp]:
    """Rows in the order in which they are printed."""
    column = _SORTS[options.sort or "self"]
    if column in _LENGTHS:
        column = _length_column(column, of)
    if options.sort == "name":
        name = "module" if options.by == "module" else column
        names = np.array([name or "" for name in functions.named(name)], str)
        return np.argsort(names, kind="stable")
    values = np.asarray(functions[column]).astype(np.uint64)
    known = functions.known(column)
    if known is not None:
        values[~known] = 0
    return np.argsort(~values, kind="stable")  # most first, ties as they are


def _print(trace: Trace, functions: Table, shown: Table, options: argparse.Namespace, of: str) -> None:
    """Print a line for each function; lengths of calls are `of` instructions or time."""
    durations, width = Durations(trace), line_width(options)
    narrowed = any(getattr(options, name, None) for name in _NARROWING)
    total = max(int(functions["self_instructions"].sum()), 1)
    work = ("self_instructions", "instructions")
    counts = call_counts(shown)
    by_time = of == "time"
    lengths = [shown.named(_length_column(name, of)) for name in _LENGTHS]
    cells = [
        *([_amount(value, None if narrowed else total) for value in shown[name].tolist()] for name in work),
        *(column for _, column in counts),
        *([durations.text(one) if by_time else f"{one:,}" for one in column] for column in lengths),
    ]
    unit = durations.unit if by_time else ""
    heads = ["self", "total", *(head for head, _ in counts), *(f"{name}{unit}" for name in _LENGTHS)]
    widths = [max(map(len, [head, *column])) for head, column in zip(heads, cells, strict=True)]
    names = _names(shown, options)
    shares = [[amount / total for amount in shown[name].tolist()] for name in work]
    subject = {"function": "function", "entry": "address and function", "module": "file"}[options.by]
    subject += "" if by_time else " (p50, p99, max: instructions)"
    print_heading(options, f"{' '.join(map(str.rjust, heads, widths))}  {subject}")
    used = sum(widths) + len(widths) + 1
    for row, name in enumerate(names):
        texts = [f"{column[row]:>{wide}} " for column, wide in zip(cells, widths, strict=True)]
        painted = [(texts[at], "" if narrowed else share_colour(shares[at][row])) for at in range(len(work))]
        print_painted(*painted, *texts[len(work) :], f" {fit(name, used, width)}")


def _amount(instructions: int, total: int | None) -> str:
    """Instructions as a share, or as their number."""
    return f"{instructions:,}" if total is None else f"{instructions / total:.1%}"


def _names(shown: Table, options: argparse.Namespace) -> list[str]:
    if options.by == "module":
        unnamed = np.where(shown["is_import"], "[imports]", "[unknown]").tolist()
        return [name or other for name, other in zip(shown.named("module"), unnamed, strict=True)]
    functions = common.function_names(options, shown)
    columns = (functions, shown.named("module"), shown["is_inlined"].tolist())
    names = entry_names(functions, shown) if options.rva else [*map(shown_name, *columns)]
    if options.by == "function":
        return names
    ips = ["-" if ip is None else f"{ip:016x}" for ip in shown.named("entry_ip")]
    return [f"{ip:<16}  {name}" for ip, name in zip(ips, names, strict=True)]
